"""Changes single places of the code and asks whether the tests notice: found / all, and what survived.

    python tools/mutate.py [--python 40] [--cpp 8] [--seconds 60] [--jobs 2] [--minutes M] [--seed HEX]
        [--near] [--at-least 0.95] [--list]

A sample of mutants is drawn over src/mercer and cpp/ by a seed that nobody chose, the hash of the current commit, which
is printed. A mutant in Python swaps a comparison, a sign or and/or, turns a condition round, changes a number or True
and False, or drops a ``raise``; one in C++ does the like to a line, and what includes its file is compiled again.
Everything happens in copies of the package (build/mutate): nothing in the working tree is touched.

First `reach.py` records which tests reach which block of the code, once for each file of tests; with ``--near`` only
for those that name the module of a mutant, which takes minutes instead of the time of the suite. Against each mutant
run, until one fails or ``--seconds`` of the processor are over, the tests that reach its block or call what its C++
file offers, nearest files and shortest tests first, then the others of the same files, slow ones last. A mutant of a
function in Python costs nothing but these tests: they run in a fork of a process that has imported the package and
collected all tests, in which the function gets the code of the mutant. What runs on import, and C++, takes a process
that imports the copy.

A mutant is found where a test fails, where the interpreter crashes, or where a single test takes more than
``TEST_SECONDS`` and ten times what it takes otherwise, and the same test passes on the code as it is. One that none of
these tests minds has survived, and so has one for which the time was too short (it is marked). Some survivors mean the
same as the original: read them.

Verdicts are kept in build/mutate, one file a seed: a call that ``--minutes`` or Ctrl-C ended goes on where it stopped.

The status is 0, unless ``--at-least`` is given and a smaller share was found, or some are not judged yet.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reach

ROOT = Path(__file__).resolve().parent.parent
CPP = ROOT / "cpp"
WORK = ROOT / "build" / "mutate"  # with a copy of the package for each mutant that is judged at a time
TEST_SECONDS = 10  # of the processor, for one test, and ten times what it takes without a change
LEFT_OUT = ("nn/", "retrieval/_tensors.py", "retrieval/_cuda", "report/")  # need PyTorch, or make pictures


@dataclass(frozen=True)
class Mutant:
    """A change of one place: the characters from start to end of a file become another text."""

    path: str  # from the root of the repository
    start: int
    end: int
    text: str
    line: int
    what: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


# ------------------------------------------------------------------------------------------------ Python

COMPARED = {"<=": "<", ">=": ">", "==": "!=", "!=": "==", "<": "<=", ">": ">=", "is not": "is", "is": "is not"}
COMPARED |= {"not in": "in", "in": "not in"}
COMPUTED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Mod: ("%", "*")}
COMPUTED_BITS = {ast.FloorDiv: ("//", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&")}


class PythonMutants(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self.lines = source.split("\n")
        self.starts = [0, *itertools.accumulate(len(line) + 1 for line in self.lines)]
        self.visit(ast.parse(source))

    def offset(self, line: int, column: int) -> int:
        """A place in characters: syntax trees count bytes."""
        text = self.lines[line - 1]
        return self.starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def add(self, start: int, end: int, text: str, line: int) -> None:
        before = " ".join(self.source[start:end].split())
        shown = before if len(before) <= 60 else before[:57] + "..."
        self.found.append(Mutant(self.path, start, end, text, line, f"{shown} → {' '.join(text.split())[:70]}"))

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """An operator between two expressions."""
        low, high = self.span(left)[1], self.span(right)[0]
        place = self.source.find(old, low, high)
        if place >= 0:
            context = self.source[max(self.span(left)[0], low - 25) : min(self.span(right)[1], high + 25)]
            at = self.source.count("\n", 0, place) + 1
            shown = f"{old} → {new} in {' '.join(context.split())}"
            self.found.append(Mutant(self.path, place, place + len(old), new, at, shown))

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        names = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is"}
        names |= {ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
        for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
            self.between(left, right, names[type(operator)], COMPARED[names[type(operator)]])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        swap = (COMPUTED | COMPUTED_BITS).get(type(node.op))
        sides = (node.left, node.right)
        if swap and not any(isinstance(side, ast.Constant | ast.JoinedStr) and not _number(side) for side in sides):
            self.between(node.left, node.right, *swap)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._turned(node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_If  # type: ignore[assignment]

    def _turned(self, test: ast.expr) -> None:
        start, end = self.span(test)
        self.add(start, end, f"not ({self.source[start:end]})", test.lineno)

    def visit_Raise(self, node: ast.Raise) -> None:
        start, end = self.span(node)
        lines = "\n" * self.source.count("\n", start, end)  # so that what follows stays on its lines
        self.add(start, end, "pass" + lines, node.lineno)  # and nothing inside: messages are not changed

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self.span(node)
        if isinstance(node.value, bool):
            self.add(start, end, str(not node.value), node.lineno)
        elif _number(node):
            self.add(start, end, f"({self.source[start:end]} + 1)", node.lineno)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: only says what is so, as an assertion
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *node.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are not changed."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nor what only says what is so."""


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def python_mutants() -> list[Mutant]:
    mutants = []
    for path in sorted((ROOT / "src" / "mercer").rglob("*.py")):
        name = path.relative_to(ROOT / "src" / "mercer").as_posix()
        if not name.startswith(LEFT_OUT):
            mutants += PythonMutants(path.relative_to(ROOT).as_posix(), path.read_text()).found
    return mutants


# ------------------------------------------------------------------------------------------------ C++

SWAPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" \+= ", " -= "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"(?<=[ (])0(?=[;,) ])", "1"), (r"(?<=[ (])1(?=[;,) ])", "2"),
    (r"if \(", "if (!"), (r"throw [^;]*;", ";"), (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
]  # fmt: skip
NO_CODE = re.compile(r"^\s*(//|#|\*|template|using|namespace|static_assert|m\.def|nb::)|operator|<<|->|\"")


def cpp_mutants() -> list[Mutant]:
    mutants = []
    for path in sorted(CPP.rglob("*.[ch]pp")):
        if path.name.startswith("unicode"):
            continue
        source, at = path.read_text(), 0
        for number, line in enumerate(source.splitlines(keepends=True), 1):
            code = line.split("//")[0]
            if not NO_CODE.search(code):
                for pattern, new in SWAPS:
                    for place in re.finditer(pattern, code):
                        if new == "if (!":
                            close = _closing(code, place.end() - 1)
                            if close is None:
                                continue
                            inner = code[place.end() : close]
                            span, text = (place.start(), close + 1), f"if (!({inner}))"
                        else:
                            span, text = place.span(), new
                        shown = " ".join(line.split())
                        what = f"{place[0].strip()} → {text.strip()} in {shown[:90]}"
                        name = path.relative_to(ROOT).as_posix()
                        mutants.append(Mutant(name, at + span[0], at + span[1], text, number, what))
            at += len(line)
    return mutants


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None


# ------------------------------------------------------------------------------------------------ which tests


def package_of(path: str) -> str:
    """The package a file belongs to: ``kernels`` of src/mercer/kernels/sets.py, the module's name at the top."""
    parts = Path(path).parts
    return parts[2] if len(parts) > 3 else Path(path).stem


def marks_of(mutant: Mutant) -> list[str]:
    """What tests must have reached to notice a mutant, as `reach.py` names it; nothing for what runs on import."""
    if not mutant.path.endswith(".py"):
        return sorted(f"core:{name}" for name in bound_names(mutant.path))
    block = reach.block_at(ast.parse((ROOT / mutant.path).read_text()), mutant.line)
    return [f"{mutant.path}:{block.name}"] if block else []


def tests_of(mutant: Mutant, reached: reach.Reached, seconds: float) -> list[str]:
    """Names of tests in the order in which they are asked, about as many as fit into the time.

    Those that reach the block of a mutant, or call what its C++ file offers; nearest files first, then the shortest.
    After them, as several tests may share what one of them made: the others of the same files. Where nothing is known
    (the mutant runs on import, or the file is new): the files of its module and its package, whole.
    """
    near = dict(ranked_tests(mutant))
    near[mutant.path] = 0

    def order(test: reach.Test) -> tuple[int, float, str]:
        return (max(0, near.get(test.file, 6) - 1), test.seconds, test.name)

    marks = marks_of(mutant)
    chosen = {test.name: test for mark in marks for test in reached.by_name.get(mark, [])}
    first = sorted(chosen.values(), key=order)
    files = {test.file for test in first}
    beside = [test for file in files for test in reached.by_file[file] if test.name not in chosen]
    if not first:
        files = {file for file, rank in near.items() if rank <= 3}
        beside = [test for file in files for test in reached.by_file.get(file, [])]
    beside += [test for file in SIGNATURES - files for test in reached.by_file.get(file, [])]
    names, total = [], 0.0
    for test in [*first, *sorted(beside, key=order)]:
        if total + test.seconds <= seconds:
            names.append(test.name)
            total += test.seconds + 0.005
    slow = {file: None for test in first for file in [test.file]} | {f: None for f, rank in near.items() if rank <= 2}
    return names + [f"{file}{SLOW}" for file in sorted(slow, key=lambda file: near.get(file, 6))]


SLOW = "::slow"  # after the name of a file: all of its tests that were not recorded


SIGNATURES = {"tests/test_signatures.py"}


def python_users(mutant: Mutant) -> set[str]:
    """The module of a mutant, or those that call the compiled functions of its file."""
    if mutant.path.endswith(".py"):
        return {Path(mutant.path).stem}
    names = bound_names(mutant.path)
    return {p.stem for p, text in texts("src/mercer").items() if names & set(CALLS.findall(text))}


CALLS = re.compile(r"_core\.(?:\w+\.)?(\w+)")


@functools.cache
def texts(folder: str) -> dict[Path, str]:
    """The files of Python in a folder."""
    return {path: path.read_text() for path in sorted((ROOT / folder).rglob("*.py"))}


def ranked_tests(mutant: Mutant) -> list[tuple[str, int]]:
    """Files of tests, each with a rank: 0 and 1 are about the module, 2 its package, 3 and 4 those that use it."""
    tests = {p: t for p, t in texts("tests").items() if p.name.startswith("test_")}
    tests = {p: t for p, t in tests.items() if not p.relative_to(ROOT).as_posix().startswith(reach.LEFT_OUT)}
    stem = Path(mutant.path).stem.strip("_")
    package = package_of(mutant.path) if mutant.path.endswith(".py") else "core"
    modules = python_users(mutant)
    users = {package_of(p.relative_to(ROOT).as_posix()) for p in importers(modules)}

    def rank(path: Path) -> int:
        folder = path.parent.name
        if stem in path.stem:
            return 0 if folder == package else 1
        if any(module.strip("_") in path.stem for module in modules) or (folder == package and stem in tests[path]):
            return 1
        if folder == package:
            return 2
        if re.search(rf"\b{re.escape(stem)}\b", tests[path]) and folder in users:
            return 3
        return 4 if folder in users else 5

    ranks = sorted((rank(path), path.name, path.relative_to(ROOT).as_posix()) for path in tests)
    return [(path, order) for order, _, path in ranks]


def near_files(mutants: list[Mutant]) -> list[str]:
    """Files of tests that name the modules of mutants, and these modules where they have examples."""
    near = {file for mutant in mutants for file, rank in ranked_tests(mutant) if rank <= 1}
    near |= {mutant.path for mutant in mutants}
    return [file for file in reach.test_files([]) if file in near]


def bound_names(path: str) -> set[str]:
    """Names of the compiled functions that a C++ file offers, or those that include it or the headers it includes."""
    name = path.removeprefix("cpp/")
    units = {name, *translation_units(name)}
    found = offered(units)
    if not found:  # loops that are compiled for each instruction set: others call them through a table in a header
        headers = {header for unit in units for header in re.findall(r'#include "(\S+)"', (CPP / unit).read_text())}
        own = {header for header in headers if Path(header).parent in {Path(unit).parent for unit in units}} or headers
        found = offered({unit for header in own for unit in translation_units(header)})
    return found


def offered(units: set[str]) -> set[str]:
    """Names that files of C++ give to Python."""
    return {
        name
        for unit in units
        for name in re.findall(r'(?:def|bind|both)\w*(?:<[^>(]*>)?\([\w\s,]*"(\w+)"', (CPP / unit).read_text())
    }


def importers(modules: set[str]) -> Iterator[Path]:
    """Modules of the package that import one of these, and these."""
    for path, text in texts("src/mercer").items():
        if path.stem in modules or any(re.search(rf"(from|import) mercer[\w.]*\b{m}\b", text) for m in modules):
            yield path


# ------------------------------------------------------------------------------------------------ compiling


def ninja(*arguments: str) -> str:
    """Ask ninja about the build that the installation has left."""
    build = next((ROOT / "build").glob("cp*/build.ninja")).parent
    command = [str(Path(sys.executable).parent / "ninja"), "-C", str(build), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@functools.cache
def build_commands() -> tuple[list[dict[str, str]], str]:
    """How each file of C++ is compiled, and how the core is linked."""
    jobs = [job for job in json.loads(ninja("-t", "compdb")) if job["file"].endswith(".cpp") and job["command"]]
    core = next((copy_of(0) / "src" / "mercer").glob("_core*.so"))
    return jobs, ninja("-t", "commands", core.name).strip().splitlines()[-1]


def compile_core(mutant: Mutant, copy: Path) -> bool:
    """Compile what includes the mutant's file, link it with the objects there are; whether that works."""
    jobs, link = build_commands()
    units = {str(CPP / unit) for unit in translation_units(Path(mutant.path).relative_to("cpp").as_posix())}
    core = next((copy / "src" / "mercer").glob("_core*.so"))
    for number, job in enumerate(job for job in jobs if job["file"] in units):
        made = copy / f"object{number}.o"
        command = job["command"].replace(str(CPP), str(copy / "cpp"))  # the file, and where it includes from
        command = re.sub(r" -O[23]\b", " -O1", command)  # a third of the time
        command = command.replace(f"-o {job['output']}", f"-o {made}").replace(f"{job['output']}.d", f"{made}.d")
        if subprocess.run(command, shell=True, cwd=job["directory"], capture_output=True, check=False).returncode:
            return False
        link = link.replace(f" {job['output']} ", f" {made} ")
    link = link.replace(f"-o {core.name}", f"-o {core}")
    core.unlink()  # others may be running the old one
    return subprocess.run(link, shell=True, cwd=jobs[0]["directory"], capture_output=True, check=False).returncode == 0


@functools.cache
def included_by() -> dict[str, set[str]]:
    """Files of C++ by what they include, all by their path in cpp/."""
    users: dict[str, set[str]] = {}
    for path in CPP.rglob("*.[ch]pp"):
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            users.setdefault(name, set()).add(path.relative_to(CPP).as_posix())
    return users


def translation_units(name: str) -> set[str]:
    """Files that are compiled and include this one, at any depth; all by their path in cpp/."""
    reached = {name}
    while new := {user for file in reached for user in included_by().get(file, ())} - reached:
        reached |= new
    return {file for file in reached if file.endswith(".cpp")}


# ------------------------------------------------------------------------------------------------ running


def copy_of(number: int) -> Path:
    return WORK / str(number)


def prepare(number: int) -> None:
    """A copy of what tests need, apart from the working tree, for one mutant at a time."""
    copy = copy_of(number)
    for name in ("src", "tests", "cpp", "site"):
        shutil.rmtree(copy / name, ignore_errors=True)
    copy.mkdir(parents=True, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "cpp", "tools", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored, dirs_exist_ok=True)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, copy / path.name)
    (copy / "site").mkdir()
    (copy / "site" / "sitecustomize.py").write_text(SITE)
    restore_core(copy)


# Interpreters that tests start import the copy as well: an editable installation is before PYTHONPATH.
SITE = """import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
"""


def restore_core(copy: Path) -> None:
    """The core as it is installed; not imported here, since the forks must be the first to load it."""
    installed = next(Path(sysconfig.get_path("platlib")).glob("mercer/_core*.so"))
    (copy / "src" / "mercer" / installed.name).unlink(missing_ok=True)
    shutil.copy2(installed, copy / "src" / "mercer")


class Watch:
    """Writes down which test runs, and ends one that takes far longer than it did on the code as it is."""

    def __init__(self, copy: Path, seconds: float, usual: dict[str, float]) -> None:
        self.copy, self.usual = copy, usual
        self.end = sum(os.times()[:2]) + seconds

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if sum(os.times()[:2]) > self.end:
            os._exit(OUT_OF_TIME)
        (self.copy / "current").write_text(nodeid)
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS + 10 * self.usual.get(nodeid, 1.0))

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            (self.copy / "failed").write_text(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            (self.copy / "failed").write_text("")


def begin_child(copy: Path) -> None:
    """In a fork: a group of its own, outputs to a file, and what it starts imports the copy."""
    os.setpgid(0, 0)
    os.chdir(copy)
    for name in ("current", "failed"):
        (copy / name).unlink(missing_ok=True)
    with open(copy / "log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["PYTHONPATH"] = f"{copy / 'site'}{os.pathsep}{copy / 'src'}"


NO_FUNCTION, OUT_OF_TIME = 99, 98  # statuses


def outcome(child: int, seconds: float) -> str:
    """Wait for a fork: "found", "survived", "endless", "time", or "cold" where no function could be exchanged."""
    end = time.monotonic() + 30 * seconds  # it may wait for others, or for ever
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            answers = {0: "survived", NO_FUNCTION: "cold", OUT_OF_TIME: "time", -signal.SIGPROF: "endless"}
            return answers.get(code, "found")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "endless"


def failed_test(copy: Path) -> str | None:
    """The test that failed, or that ran when the process ended; None where none had begun."""
    for name in ("failed", "current"):
        if (copy / name).exists():
            return (copy / name).read_text() or None
    return None


class Cold:
    """Runs tests in a process that imports the package first: for what happens on import, and for another core."""

    def run(self, names: list[str], copy: Path, seconds: float, usual: dict[str, float], mutant: Mutant | None) -> str:
        child = os.fork()
        if child:
            return outcome(child, seconds)
        code = 3
        try:
            begin_child(copy)
            sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
            sys.path.insert(0, str(copy / "src"))
            import pytest

            files = list(dict.fromkeys(name.partition("::")[0] for name in names))
            for some in (files[:6], files[6:40]):
                if some:
                    options = ["-x", "-q", "-p", "no:xdist", "--capture=no", *some]
                    code = int(pytest.main(options, plugins=[Watch(copy, seconds, usual), Select(names)]))
                    code = 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code
                    if code:
                        break
        finally:
            os._exit(code)


class Select:
    """Runs only these tests, in this order; `SLOW` after a file stands for the others that it has."""

    def __init__(self, names: list[str]) -> None:
        self.order = {name: number for number, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [item for item in items if self.place(item.nodeid) >= 0]
        items[:] = sorted(chosen, key=lambda item: self.place(item.nodeid))

    def place(self, name: str) -> int:
        return self.order.get(name, self.order.get(name.partition("::")[0] + SLOW, -1))


class Warm:
    """Runs tests in a fork of a process that has imported the package and collected all tests: code is exchanged there.

    It is a plugin of pytest: what would run the tests judges mutants instead.
    """

    def __init__(self, judge_all: Callable[[Warm], None]) -> None:
        self.judge_all = judge_all

    def pytest_runtestloop(self, session: Any) -> bool:
        self.session = session
        self.items = list(session.items)
        self.judge_all(self)
        return True

    def run(self, names: list[str], copy: Path, seconds: float, usual: dict[str, float], mutant: Mutant | None) -> str:
        child = os.fork()
        if child:
            return outcome(child, seconds)
        code = 3
        try:
            begin_child(copy)
            gc.unfreeze()
            if mutant is not None and not exchange(mutant):
                os._exit(NO_FUNCTION)
            import _pytest.main

            self.session.items[:] = self.items
            Select(names).pytest_collection_modifyitems(self.session.items)
            self.session.config.pluginmanager.register(Watch(copy, seconds, usual))
            with contextlib.suppress(self.session.Failed):
                _pytest.main.pytest_runtestloop(self.session)
            code = int(self.session.testsfailed > 0)
        finally:
            os._exit(code)


def exchange(mutant: Mutant) -> bool:
    """Give the functions of this process the code of the mutant; whether there are such functions."""
    path = copy_of(0) / mutant.path  # where this process has imported it from
    source = (ROOT / mutant.path).read_text()
    old = _codes(compile(source, str(path), "exec"))
    new = _codes(compile(mutant.apply(source), str(path), "exec"))
    changed = {key: new[key][0] for key, codes in old.items() if new[key] != codes and len(codes) == 1}
    exchanged = False
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(path):
            key = (thing.__code__.co_qualname, thing.__code__.co_firstlineno)
            if key in changed:
                thing.__code__ = changed[key]
                exchanged = True
    return exchanged


def _codes(code: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """The codes of functions in a code, by name and line; more than one where a line has several lambdas."""
    found = {(code.co_qualname, code.co_firstlineno): [code]}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            for key, codes in _codes(inner).items():
                found.setdefault(key, []).extend(codes)
    return found


def check(mutant: Mutant, reached: reach.Reached, seconds: float, number: int, runner: Warm | Cold) -> str:
    """Put a mutant into a copy, test it, take it out again."""
    copy = copy_of(number)
    target = copy / mutant.path
    original = (ROOT / mutant.path).read_text()
    compiled = not mutant.path.endswith(".py")
    usual = {test.name: test.seconds for tests in reached.by_file.values() for test in tests}
    names, not_here = tests_of(mutant, reached, seconds), set[str]()
    try:
        target.write_text(mutant.apply(original))
        if compiled and not compile_core(mutant, copy):
            return "does not compile"
        while (answer := runner.run(names, copy, seconds, usual, mutant)) in ("found", "endless"):
            failed = failed_test(copy)
            if failed is None:
                return "found"  # it cannot be imported
            target.write_text(original)
            changed = copy / "core of the mutant"
            if compiled:
                core = next((copy / "src" / "mercer").glob("_core*.so"))
                core.replace(changed)
                restore_core(copy)
            if runner.run([failed], copy, seconds, usual, None) == "survived":
                (copy / "failed").write_text(failed)
                return "found"
            not_here.add(failed)  # fails in the copy without any change: it says nothing about the mutant
            names = [name for name in names if name not in not_here]
            target.write_text(mutant.apply(original))
            if compiled:
                changed.replace(core)
        return answer
    finally:
        target.write_text(original)
        if compiled:
            restore_core(copy)


# ------------------------------------------------------------------------------------------------ judging


class Verdicts:
    """What was said of each mutant, kept in a file after every one."""

    def __init__(self, seed: str, count: int) -> None:
        self.place, self.count = WORK / f"{seed}.json", count
        self.begin = time.monotonic()
        self.read()

    def read(self) -> None:
        self.of: dict[str, dict[str, Any]] = json.loads(self.place.read_text()) if self.place.exists() else {}

    def add(self, mutant: Mutant, answer: str, seconds: float, by: str | None) -> None:
        self.of[str(mutant)] = {"answer": answer, "seconds": round(seconds, 1), "by": by}
        self.place.write_text(json.dumps(self.of, indent=1, ensure_ascii=False))
        print(f"[{len(self.of)}/{self.count}] {answer:16} {seconds:5.0f} s  {mutant}", flush=True)


def judge_all(
    runner: Warm | Cold,
    mutants: list[Mutant],
    reached: reach.Reached,
    seconds: float,
    jobs: int,
    verdicts: Verdicts,
    end: float,
) -> None:
    """Judge mutants, several at a time: each in a fork that tells its verdict, and has a copy of the files."""
    waiting, free = list(mutants), list(range(jobs))
    running: dict[int, tuple[Mutant, int, int, float]] = {}
    while waiting or running:
        while waiting and free and time.monotonic() < end:
            mutant, number = waiting.pop(0), free.pop(0)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    answer = check(mutant, reached, seconds, number, runner)
                    found = failed_test(copy_of(number)) if answer == "found" else None
                    os.write(write, json.dumps([answer, found]).encode()[:4000])
                finally:
                    os._exit(0)
            os.close(write)
            running[child] = (mutant, number, read, time.monotonic())
        if not running:
            return
        child = next((pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]), 0)
        if not child:
            time.sleep(0.02)
            continue
        mutant, number, read, begin = running.pop(child)
        free.append(number)
        with os.fdopen(read, "rb") as told:
            text = told.read()
        if text:
            answer, found = json.loads(text)
            if answer != "cold":
                verdicts.add(mutant, answer, time.monotonic() - begin, found)
        else:
            print(f"not judged: {mutant}", flush=True)


def judge(
    mutants: list[Mutant], seconds: float, jobs: int, seed: str, minutes: float, everywhere: bool = True
) -> Verdicts:
    """The verdict on each mutant, those of earlier calls with this seed among them."""
    WORK.mkdir(parents=True, exist_ok=True)
    verdicts = Verdicts(seed, len(mutants))
    tasks = [mutant for mutant in mutants if str(mutant) not in verdicts.of]
    if not tasks:
        return verdicts
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    files = reach.test_files([]) if everywhere else near_files(tasks)
    left = reach.record(files, jobs, minutes)
    if left and time.monotonic() > end:
        print(f"{len(left)} files of tests are not recorded yet: call again", flush=True)
        return verdicts
    reached = reach.Reached({mark for mutant in tasks for mark in marks_of(mutant)})
    for number in range(jobs):
        prepare(number)
    warm = [mutant for mutant in tasks if mutant.path.endswith(".py") and marks_of(mutant)]
    if warm:
        files = sorted({name.partition("::")[0] for mutant in warm for name in tests_of(mutant, reached, seconds)})
        child = os.fork()
        if child == 0:
            try:
                collect_and_judge(files, lambda runner: judge_all(runner, warm, reached, seconds, jobs, verdicts, end))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        verdicts.read()
    cold = [mutant for mutant in tasks if str(mutant) not in verdicts.of]
    judge_all(Cold(), cold, reached, seconds, jobs, verdicts, end)
    return verdicts


def collect_and_judge(files: list[str], judge_warm: Callable[[Warm], None]) -> None:
    """Import the copy and collect tests in this process, then judge."""
    copy = copy_of(0)
    os.chdir(copy)
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
    sys.path.insert(0, str(copy / "src"))
    import pytest

    existing = [file for file in files if (copy / file).exists()]
    pytest.main(["-x", "-q", "-p", "no:xdist", "--capture=no", *existing], plugins=[Warm(judge_warm)])


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=int, default=40, help="mutants of Python")
    parser.add_argument("--cpp", type=int, default=8, help="mutants of C++, each compiled anew")
    parser.add_argument("--seconds", type=float, default=60.0, help="most processor time for the tests of one")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after these; call again to go on")
    parser.add_argument("--seed", help="default: the hash of the current commit")
    parser.add_argument(
        "--near", action="store_true", help="record and ask only files of tests that name the module of a mutant"
    )
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--at-least", type=float, default=0.0, help="share that must be found")
    parser.add_argument("--list", action="store_true", help="show the sample and end")
    arguments = parser.parse_args()
    seed = arguments.seed or head()
    drawing = random.Random(seed)
    sample = []
    for every, count in ((python_mutants(), arguments.python), (cpp_mutants(), arguments.cpp)):
        every = [mutant for mutant in every if arguments.only in mutant.path]
        sample += drawing.sample(every, min(count, len(every)))
        print(f"{len(every):,} places, {min(count, len(every))} drawn", flush=True)
    print(f"seed {seed}", flush=True)
    if arguments.list:
        print("\n".join(map(str, sample)))
        return 0
    reach.warm_up()
    verdicts = judge(sample, arguments.seconds, arguments.jobs, seed, arguments.minutes, everywhere=not arguments.near)
    return report(sample, verdicts, seed, arguments.at_least)


def report(sample: list[Mutant], verdicts: Verdicts, seed: str, at_least: float) -> int:
    """Print what was found and what survived; the status."""
    answers = {str(mutant): verdicts.of[str(mutant)]["answer"] for mutant in sample if str(mutant) in verdicts.of}
    for kind, of in (("Python", "src/"), ("C++", "cpp/")):
        judged = [a for name, a in answers.items() if name.startswith(of) and a != "does not compile"]
        if judged:
            found = sum(answer in FOUND for answer in judged)
            print(f"{kind}: {found} of {len(judged)} mutants found ({100 * found / len(judged):.0f} %)")
    judged = [name for name, answer in answers.items() if answer != "does not compile"]
    survivors = [name for name in judged if answers[name] not in FOUND]
    share = 1 - len(survivors) / len(judged) if judged else 1.0
    print(f"\n{len(judged) - len(survivors)} of {len(judged)} mutants found ({100 * share:.1f} %), seed {seed}")
    if len(answers) < len(sample):
        print(f"{len(sample) - len(answers)} of the sample are not judged yet: call again")
    for survivor in survivors:
        print(f"survived: {survivor}{'  (the time was too short)' if answers[survivor] == 'time' else ''}")
    return int(bool(at_least) and (share < at_least or len(answers) < len(sample)))


FOUND = ("found",)


if __name__ == "__main__":
    sys.exit(main())
