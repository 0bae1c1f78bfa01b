"""Writes the types of the compiled core, `src/mercer/_core`, with nanobind's generator of stubs.

    python tools/stubs.py            # compares the stubs with the compiled module, shows what changed
    python tools/stubs.py --write    # writes them anew (make stubs)

One correction is made: where C++ returns an `object`, which may be an array or None, the type is `Any`.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
STUBS = ROOT / "src" / "mercer" / "_core"
HEADER = '# Made from the compiled module by "make stubs" (nanobind {version}); not to be edited.\n'


def generated() -> dict[str, str]:
    """The stubs that fit the compiled module, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-m", "mercer._core", "-r", "-q", "-O", folder]
        subprocess.run([sys.executable, "-m", "nanobind.stubgen", *options], check=True)
        if (flat := Path(folder, "_core.pyi")).exists():
            Path(folder, "_core").mkdir()
            flat.rename(Path(folder, "_core", "__init__.pyi"))
        files = sorted(Path(folder, "_core").glob("*.pyi"))
        for file in files:
            file.write_text(HEADER.format(version=version("nanobind")) + returning_any(file.read_text()))
        settings = ["--config", str(ROOT / "pyproject.toml")]
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *settings, folder], check=True)
        return {file.name: file.read_text() for file in files}


def returning_any(stub: str) -> str:
    """A stub whose functions return Any where nanobind knows of an object only."""
    changed = re.sub(r"(?<=\) -> )[^\n]*", lambda returned: re.sub(r"\bobject\b", "Any", returned[0]), stub)
    if changed == stub:
        return stub
    if "\nfrom typing import " in changed:
        return changed.replace("\nfrom typing import ", "\nfrom typing import Any, ", 1)
    return re.sub(r'^("""(?:.|\n)*?"""\n)?', r"\1\nfrom typing import Any\n", changed, count=1)


def written() -> dict[str, str]:
    """The stubs in the package."""
    return {file.name: file.read_text() for file in sorted(STUBS.glob("*.pyi"))}


def differences() -> list[str]:
    """Lines of a diff from the stubs in the package to those that fit the module; none where they agree."""
    old, new = written(), generated()
    lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        lines += difflib.unified_diff(before, after, f"_core/{name}", f"_core/{name} (compiled)", lineterm="", n=1)
    return lines


def write() -> None:
    """Replace the stubs in the package."""
    files = generated()
    shutil.rmtree(STUBS, ignore_errors=True)
    STUBS.mkdir()
    for name, text in files.items():
        (STUBS / name).write_text(text)


def main() -> int:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the stubs anew")
    if parser.parse_args().write:
        write()
        return 0
    lines = differences()
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
