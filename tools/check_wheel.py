"""Install a wheel where no compiler can be found, and use it: ``python tools/check_wheel.py dist``.

The environment is new and has nothing but the wheel and what it requires. ``mercer doctor`` checks the installation,
``mercer demo`` trains and applies the models that the package comes with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path


def wheel_in(folder: Path) -> Path:
    """Return the one wheel in the folder that this interpreter can install, or end with a word."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = [path for path in sorted(folder.glob("mercer-*.whl")) if tag in path.name]
    if len(wheels) != 1:
        sys.exit(f"expected one wheel for {tag} in {folder}, found {len(wheels)}: run 'make wheel' first")
    return wheels[0]


def check(wheel: Path) -> None:
    """Install the wheel into a new environment and run doctor and demo there."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        tools = home / "env" / "bin"
        # Only the environment's own commands: no compiler, no cmake, no headers by accident.
        place = {**os.environ, "PATH": str(tools), "CXX": "/nonexistent", "CC": "/nonexistent"}
        start = time.perf_counter()
        install = [tools / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel]
        subprocess.run(install, check=True, env=place, cwd=home)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, installed in {time.perf_counter() - start:.0f} s")
        subprocess.run([tools / "mercer", "doctor"], check=True, env=place, cwd=home)
        subprocess.run([tools / "mercer", "demo", "--output", "demo.html"], check=True, env=place, cwd=home)
        page = (home / "demo.html").stat().st_size
        if page < 10_000:
            sys.exit(f"the page of the demo has only {page} bytes")
        print(f"demo: a page of {page / 1e3:.0f} kB")


if __name__ == "__main__":
    check(wheel_in(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()))
