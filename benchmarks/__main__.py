"""Runs benchmarks, and keeps what they measured in one file.

    python -m benchmarks                                    # lists the scripts
    python -m benchmarks chain_crf --json --tasks equal     # one script; options that are not ours go to the script
    python -m benchmarks --all [--smoke] [--json]
    python -m benchmarks --install-only

With ``--json`` the rows of the run go into benchmarks/results/measured.jsonl, or the file named: a line of JSON for
each measure, which replaces the one there for the same script, table, measure and peer. ``python -m benchmarks
results`` writes the pages of results and the tables of the documentation from it. ``--smoke`` runs at the smallest
size, whose figures mean nothing: its rows go to the standard output, and what the scripts print to the standard error,
unless a file is named.

A script that fails does not stop the others: the status is 1 at the end, after the peers that were not installed.
``--install-only`` installs the peers of the extra ``bench``: all at once where all have wheels, else one by one, so
that one that cannot be installed here is left out like any other that is missing.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results" / "measured.jsonl"
ROWS = "MERCER_BENCHMARK_ROWS"  # as in _timing.py
MISSING = re.compile(r"^(\S+): not installed")
INSTALL_SECONDS = 600  # for one call of pip: some peers are compiled
KEY = ("script", "table", "measure", "peer")


def scripts_in(folder: Path) -> list[Path]:
    """The scripts of a folder: files that do something when they are run."""
    return [path for path in sorted(folder.glob("[!_]*.py")) if '__name__ == "__main__"' in path.read_text()]


def title(script: Path) -> str:
    """The first line of a script's docstring."""
    return (ast.get_docstring(ast.parse(script.read_text())) or "").partition("\n")[0]


def install() -> None:
    """Install the peers, and say which could not be: all in one call, or one by one where that fails."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
    peers = project["optional-dependencies"]["bench"]
    if installed(peers, ["--only-binary", ":all:"]) is None:
        return
    for peer in peers:
        if why := installed([peer], []):
            print(f"{peer}: {why}", flush=True)


def installed(requirements: list[str], options: list[str]) -> str | None:
    """Install with pip; why that did not work, or None."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options]
    try:
        subprocess.run([*command, *requirements], capture_output=True, check=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not installed within {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError:
        return "could not be installed"
    return None


# --------------------------------------------------------------------------------------------------------- running


@dataclass
class Run:
    """What a script left: whether it ended well, the peers that it missed, its rows."""

    ended_well: bool
    missed: set[str]
    rows: list[dict[str, Any]]


def run(script: Path, options: list[str]) -> Run:
    """Run a script; its output is shown as it comes. One that is terminated leaves the rows that it had."""
    print(f"== {script.name}", flush=True)
    command = [sys.executable, "-u", str(script), *options]
    lines, absent = [], set()
    scratch = tempfile.TemporaryDirectory()
    file = Path(scratch.name) / "rows"
    environment = {**os.environ, ROWS: str(file)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
            if match := MISSING.match(line):
                absent.add(match[1])
        signal.signal(signal.SIGTERM, before)
    rows = read(file) or rows_of_tables(script.stem, lines)
    scratch.cleanup()
    return Run(process.returncode == 0, absent, rows)


def run_all(scripts: list[Path], options: list[str]) -> tuple[int, list[dict[str, Any]]]:
    """Run scripts one after the other; the status, and the rows with where, when and how they were measured."""
    failed: list[str] = []
    absent: set[str] = set()
    rows: list[dict[str, Any]] = []
    where = circumstances(options)
    for script in scripts:
        done = run(script, options)
        rows += [{**row, **where} for row in done.rows]
        absent |= done.missed
        if not done.ended_well:
            failed.append(script.name)
    print(f"\n{len(scripts)} scripts, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    if absent:
        print(f"peers that were not installed: {', '.join(sorted(absent))}")
    return int(bool(failed)), rows


# --------------------------------------------------------------------------------------------------------- results


def rows_of_tables(script: str, lines: list[str]) -> list[dict[str, Any]]:
    """Rows of the tables in Markdown that a script printed, where it recorded nothing itself."""
    rows: list[dict[str, Any]] = []
    titles: list[str] = []
    heading, above, count = "", "", 0
    seen: set[tuple[str, ...]] = set()
    for before, line in zip(["", *lines], [*lines, ""], strict=True):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            heading, titles = line.strip().lstrip("# ") or heading, []
        elif re.fullmatch(r"\|[-:|]+", line.strip()):
            titles = [cell.strip() for cell in before.strip().strip("|").split("|")]
            count += 1
            above, seen = "", set()
        elif titles:
            cells[0] = cells[0] or above
            above = cells[0]
            named = max((at for at, cell in enumerate(cells) if re.match(r"(?!(yes|no)$)[^\W\d]", cell)), default=0) + 1
            while tuple(cells[:named]) in seen and named < len(cells):
                named += 1  # as many of the first cells as it takes to tell rows apart
            seen.add(tuple(cells[:named]))
            measure = (
                f"{titles[0]} {cells[0]}"
                if figure_of(cells[0]) != cells[0] and named == 1
                else ", ".join(cells[:named])
            )
            values = {title: figure_of(cell) for title, cell in zip(titles[named:], cells[named:], strict=False)}
            rows.append({"script": script, "table": heading or f"table {count}", "measure": measure, "values": values})
    return rows


def figure_of(cell: str) -> Any:
    """A number, a mean with its deviation, or the text itself."""
    number = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
    if re.fullmatch(number, cell):
        text = cell.replace(",", "")
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    if match := re.fullmatch(rf"({number}) ?± ?({number})", cell):
        return {"value": figure_of(match[1]), "deviation": figure_of(match[2])}
    return cell


def circumstances(options: list[str]) -> dict[str, str]:
    """Where, when and how: options, machine in words, day and commit."""
    return {
        "options": " ".join(options),
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
    }


def machine() -> str:
    """The machine in words: processor, cores, instruction set, how busy it is."""
    processor = platform.processor() or platform.machine()
    try:
        information = Path("/proc/cpuinfo").read_text()
    except OSError:
        information = ""
    if match := re.search(r"^model name\s*:\s*(.+)$", information, re.M):
        processor = match[1]
    wide = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if f" {flag} " in information), "")
    words = [processor, f"{os.cpu_count()} cores", wide, f"load {os.getloadavg()[0]:.1f}"]
    return ", ".join(word for word in words if word)


def commit() -> str:
    """The commit of the working tree, with a + where files that matter differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "../src", "../cpp", ".", ":!results")
        return git("rev-parse", "--short=10", "HEAD") + "+" * bool(changed)
    except OSError:
        return ""


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of results."""
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Old rows, with new ones in the place of those they replace, else behind the others of their table."""
    rows = list(old)
    for row in new:
        same = [at for at, other in enumerate(rows) if all(other.get(key) == row.get(key) for key in KEY)]
        if same:
            rows[same[0]] = row
            continue
        beside = [
            at
            for at, other in enumerate(rows)
            if other["script"] == row["script"] and other.get("table") == row.get("table")
        ]
        rows.insert(beside[-1] + 1 if beside else len(rows), row)
    return rows


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write a file of results whole or not at all."""
    partial = file.with_suffix(".partial")
    partial.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    partial.replace(file)


# -------------------------------------------------------------------------------------------------------- the door


def split(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Cut a command line into our options, the name of a script, and the options behind it, which are the script's."""
    at = next((at for at, argument in enumerate(arguments) if not argument.startswith("-")), len(arguments))
    return arguments[:at], arguments[at] if at < len(arguments) else None, arguments[at + 1 :]


def without_json(arguments: list[str]) -> tuple[list[str], str | None]:
    """The other arguments, and the file of ``--json [FILE]``: "" where none is named, None without the option."""
    if "--json" not in arguments:
        return arguments, None
    at = arguments.index("--json")
    named = arguments[at + 1 : at + 2]
    if named and (named[0] == "-" or named[0].endswith((".json", ".jsonl"))):
        return arguments[:at] + arguments[at + 2 :], named[0]
    return arguments[:at] + arguments[at + 1 :], ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        usage="%(prog)s [SCRIPT | --all | --install-only] [--json [FILE]] [--smoke] [options of the script]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="run all scripts")
    parser.add_argument("--install-only", action="store_true", help="install the peers, run nothing")
    parser.add_argument("--smoke", action="store_true", help="the smallest size of everything")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=argparse.SUPPRESS)
    others, file = without_json(arguments)
    ours, name, options = split(others)
    asked = parser.parse_args(ours)
    if asked.install_only:
        install()
        return 0
    known = {script.stem: script for script in scripts_in(asked.folder)}
    if not asked.all and name is None:
        print("\n".join(f"{name:22} {title(script)}" for name, script in known.items()))
        return 0
    if asked.all and name is not None:
        parser.error(f"--all runs all scripts: {name!r} is one too many")
    if name is not None and name.removesuffix(".py") not in known:
        parser.error(f"no script is named {name!r}: python -m benchmarks lists them")
    if asked.smoke:
        options = ["--smoke", *options]
    chosen = list(known.values()) if name is None else [known[name.removesuffix(".py")]]
    if file == "":
        file = "-" if "--smoke" in options else str(RESULTS)
    with contextlib.redirect_stdout(sys.stderr if file == "-" else sys.stdout):
        status, rows = run_all(chosen, options)
    if file == "-":
        print("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), end="")
    elif file is not None:
        write(Path(file), merged(read(Path(file)), rows))
        print(f"{len(rows)} rows written to {Path(file).name}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
