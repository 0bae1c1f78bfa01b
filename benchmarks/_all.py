"""Runs every benchmark, one after the other, and says at the end which failed and which peers were not installed.

    python benchmarks/_all.py [SCRIPT ...] [--smoke]
    python benchmarks/_all.py --install-only

A script that fails does not stop the others: the status is 1 at the end. ``--smoke`` runs all at their smallest size.
``--install-only`` installs the peers of the extra ``bench``, one by one, so that one that cannot be installed here is
left out like any other that is missing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MISSING = re.compile(r"^(\S+): not installed")


def install(requirements: list[str]) -> None:
    """Install one by one, and say which could not be."""
    for requirement in requirements:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            print(f"{requirement}: could not be installed", flush=True)


def run(script: Path, options: list[str]) -> tuple[bool, set[str]]:
    """Whether a script ended well, and the peers that it missed; its output is shown as it comes."""
    print(f"== {script.name}", flush=True)
    command = [sys.executable, "-u", str(script), *options]
    absent = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := MISSING.match(line):
                absent.add(found[1])
    return process.returncode == 0, absent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", help="names without .py; default: all")
    parser.add_argument("--smoke", action="store_true", help="the smallest size of everything")
    parser.add_argument("--install-only", action="store_true", help="install the peers, run nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.install_only:
        project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
        install(project["optional-dependencies"]["bench"])
        return 0
    scripts = sorted(arguments.folder.glob("[!_]*.py"))
    if arguments.scripts:
        scripts = [arguments.folder / f"{name}.py" for name in arguments.scripts]
    failed, absent = [], set()
    for script in scripts:
        ended_well, missed = run(script, ["--smoke"] if arguments.smoke else [])
        absent |= missed
        if not ended_well:
            failed.append(script.name)
    print(f"\n{len(scripts)} scripts, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    if absent:
        print(f"peers that were not installed: {', '.join(sorted(absent))}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
