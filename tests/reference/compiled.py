"""Code of a GPU's kernel as a library for the CPU, made by the C++ compiler once for each text."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path


@functools.cache
def library(text: str) -> ctypes.CDLL:
    """Compile and load."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.cpp"
        file.write_text(text)
        subprocess.run(["c++", "-O0", "-shared", "-fPIC", "-o", str(file) + ".so", str(file)], check=True)
        return ctypes.CDLL(str(file) + ".so")
