"""Changes single places of the code and asks whether the tests notice: found / all, and what survived.

    python tools/mutate.py [--python 40] [--cpp 8] [--seconds 90] [--jobs 2] [--minutes M] [--seed HEX]
        [--at-least 0.95] [--list]

A sample of mutants is drawn over src/mercer and cpp/ by a seed that nobody chose, the hash of the current commit, which
is printed. A mutant in Python swaps a comparison, a sign or and/or, turns a condition round, changes a number or True
and False, or drops a ``raise``; one in C++ does the like to a line, and what includes its file is compiled again, in a
folder of its own (build/mutate), where a copy of the package lies too: nothing in the working tree is touched.

Against each mutant run, until one fails or ``--seconds`` of the processor are over: the tests of its package that name
the function it is in, the examples in the docstrings of its module and the tests that name the module, the other tests
of its package, those of them that are slow, the suite of all estimators for the classes of the module, and the tests of
the packages that import it. A mutant is found where a test fails, where the interpreter crashes, or where a single test
takes more than ``TEST_SECONDS`` of the processor, and the same test passes on the code as it is. One that none of these
tests minds has survived, and so has one for which the time was too short (it is marked). Some survivors mean the same
as the original: read them.

Verdicts are kept in build/mutate, one file a seed: a call that ``--minutes`` or Ctrl-C ended goes on where it stopped.

The status is 0, unless ``--at-least`` is given and a smaller share was found, or some are not judged yet.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = ROOT / "cpp"
WORK = ROOT / "build" / "mutate"  # of one worker: a folder in it
TEST_SECONDS = 30  # of the processor, for one test; the suite has none that takes half of that
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
        starts = [0]
        for line in source.encode().split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self.starts, self.bytes = starts, source.encode()
        self.visit(ast.parse(source))

    def offset(self, line: int, column: int) -> int:
        """A place in characters: syntax trees count bytes."""
        return len(self.bytes[: self.starts[line - 1] + column].decode())

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
        self.add(start, end, "pass", node.lineno)  # and nothing inside: messages are not changed

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


def stages_of(mutant: Mutant) -> list[list[str]]:
    """What pytest is called with, call after call: the tests likeliest to notice first."""
    ranked = ranked_tests(mutant)
    python = mutant.path.endswith(".py")
    own = ([mutant.path] if python else []) + [path for path, rank in ranked if rank <= 1]
    package = [path for path, rank in ranked if rank == 2]
    users = [path for path, rank in ranked if 3 <= rank < 5]
    fast, slow = ["-m", "not slow"], ["-m", "slow"]
    names = enclosing_names(mutant)
    named = (
        [p for p in own[int(python) :] + package if any(n in (ROOT / p).read_text() for n in names)] if names else []
    )
    stages = [[*named, *fast] if named else [], [*(p for p in own if p not in named), *fast]]
    rest = [p for p in package if p not in named]
    stages.append([*rest, *fast] if rest else [])
    stages += [[*tests, *slow] for tests in (own[int(python) :], package) if tests]
    classes = sorted(classes_of(mutant))
    if classes:
        stages.append(["tests/estimators", "-k", " or ".join(f"{name}]" for name in classes)])
    if python:
        stages.append(["tests/test_signatures.py"])
    stages += [[*users, *fast] if users else []]
    return [stage for stage in stages if stage]


def enclosing_names(mutant: Mutant) -> list[str]:
    """What tests may call a mutant's place: the name of the innermost function or class around it."""
    if not mutant.path.endswith(".py"):
        return []
    around = [
        node.name
        for node in ast.walk(ast.parse((ROOT / mutant.path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    public = [name.strip("_") for name in around if not name.startswith("__")]
    return public[-1:]


def classes_of(mutant: Mutant, most: int = 4) -> set[str]:
    """Public estimators that the file of a mutant defines, or some that use it where it defines none."""
    known = set(re.findall(r'"mercer\.[\w.]+:(\w+)"', (ROOT / "src/mercer/_state/registry.py").read_text()))
    known |= set(re.findall(r"\b([A-Z]\w+)\(", (ROOT / "tests/estimators/cases.py").read_text()))
    users = sorted(importers(python_users(mutant)), key=lambda path: path.stem != Path(mutant.path).stem)
    found = set[str]()
    for path in users:
        if len(found) < most:
            found |= set(re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.M)) & known
        if found and path.stem == Path(mutant.path).stem:
            break
    return found


def python_users(mutant: Mutant) -> set[str]:
    """The module of a mutant, or those that call the compiled functions of its file."""
    if mutant.path.endswith(".py"):
        return {Path(mutant.path).stem}
    names = bound_names(mutant.path)
    files = (ROOT / "src" / "mercer").rglob("*.py")
    return {p.stem for p in files if names & set(re.findall(r"_core\.(?:\w+\.)?(\w+)", p.read_text()))}


def ranked_tests(mutant: Mutant) -> list[tuple[str, int]]:
    """Files of tests, each with a rank: 0 and 1 are about the module, 2 its package, 3 and 4 those that use it."""
    tests = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "peers" not in path.parts]
    tests = [path for path in tests if path.name not in ("test_benchmarks.py", "test_docs.py", "test_mutate.py")]
    texts = {path: path.read_text() for path in tests}
    stem = Path(mutant.path).stem.strip("_")
    package = package_of(mutant.path) if mutant.path.endswith(".py") else "core"
    modules = python_users(mutant)
    users = {package_of(p.relative_to(ROOT).as_posix()) for p in importers(modules)}

    def rank(path: Path) -> int:
        folder = path.parent.name
        if stem in path.stem:
            return 0 if folder == package else 1
        if any(module.strip("_") in path.stem for module in modules) or (folder == package and stem in texts[path]):
            return 1
        if folder == package:
            return 2
        if re.search(rf"\b{re.escape(stem)}\b", texts[path]) and folder in users:
            return 3
        return 4 if folder in users else 5

    ranks = sorted((rank(path), path.name, path.relative_to(ROOT).as_posix()) for path in tests)
    return [(path, order) for order, _, path in ranks]


def bound_names(path: str) -> set[str]:
    """Names of the compiled functions that a C++ file, or one that includes it, offers."""
    name = Path(path).relative_to("cpp").as_posix()
    files = [ROOT / path, *(p for p in CPP.rglob("*.cpp") if f'"{name}"' in p.read_text())]
    return {found for p in files for found in re.findall(r'def\(\s*"(\w+)"', p.read_text())}


def importers(modules: set[str]) -> Iterator[Path]:
    """Modules of the package that import one of these, and these."""
    for path in (ROOT / "src" / "mercer").rglob("*.py"):
        text = path.read_text()
        if path.stem in modules or any(re.search(rf"(from|import) mercer[\w.]*\b{m}\b", text) for m in modules):
            yield path


# ------------------------------------------------------------------------------------------------ running


def prepare(worker: int) -> None:
    """A copy of what the tests of a worker need, apart from the working tree."""
    global WORK
    WORK = WORK / str(worker)
    if WORK.exists():
        for name in ("src", "tests"):
            shutil.rmtree(WORK / name, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("src", "tests", "tools", "examples"):
        shutil.copytree(ROOT / name, WORK / name, ignore=ignored, dirs_exist_ok=True)
    for name in ("conftest.py", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, WORK / name)
    shutil.copytree(CPP, WORK / "cpp", dirs_exist_ok=True)
    restore_core()


def restore_core() -> None:
    """The core as it is installed; not imported here, since the forks must be the first to load it."""
    shutil.copy2(next(Path(sysconfig.get_path("platlib")).glob("mercer/_core*.so")), WORK / "src" / "mercer")


def ninja(*arguments: str) -> str:
    """Ask ninja about the build that the installation has left."""
    build = next((ROOT / "build").glob("cp*/build.ninja")).parent
    command = [str(Path(sys.executable).parent / "ninja"), "-C", str(build), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compile_core(mutant: Mutant) -> bool:
    """Compile what includes the mutant's file, link it with the objects there are; whether that works."""
    name = Path(mutant.path).relative_to("cpp").as_posix()
    jobs = [job for job in json.loads(ninja("-t", "compdb")) if job["file"].endswith(".cpp") and job["command"]]
    units = {str(CPP / unit) for unit in translation_units(name)}
    changed = [job for job in jobs if job["file"] in units]
    core = next((WORK / "src" / "mercer").glob("_core*.so"))
    link = ninja("-t", "commands", core.name).strip().splitlines()[-1]
    for number, job in enumerate(changed):
        made = WORK / f"object{number}.o"
        command = job["command"].replace(str(CPP), str(WORK / "cpp"))  # the file, and where it includes from
        command = re.sub(r" -O[23]\b", " -O1", command)  # a third of the time
        command = command.replace(f"-o {job['output']}", f"-o {made}").replace(f"{job['output']}.d", f"{made}.d")
        if subprocess.run(command, shell=True, cwd=job["directory"], capture_output=True, check=False).returncode:
            return False
        link = link.replace(f" {job['output']} ", f" {made} ")
    link = link.replace(f"-o {core.name}", f"-o {core}")
    return subprocess.run(link, shell=True, cwd=jobs[0]["directory"], capture_output=True, check=False).returncode == 0


def translation_units(name: str) -> set[str]:
    """Files that are compiled and include this one, at any depth; all by their path in cpp/."""
    texts = {path.relative_to(CPP).as_posix(): path.read_text() for path in CPP.rglob("*.[ch]pp")}
    reached = {name}
    while new := {file for file, text in texts.items() for r in reached if f'"{r}"' in text} - reached:
        reached |= new
    return {file for file in reached if file.endswith(".cpp")}


def warm_up() -> None:
    """Import what all tests need but the package: a fork for each mutant then starts at once."""
    import hypothesis
    import numpy
    import pytest
    import scipy.sparse.linalg
    import scipy.stats
    import sklearn.svm
    import sklearn.utils.estimator_checks

    del hypothesis, numpy, pytest, scipy, sklearn
    assert "mercer" not in sys.modules


def verdict(stages: list[list[str]], seconds: float) -> str:
    """Whether tests of the copy fail, in a process of its own: "found", "survived", "endless" or "time"."""
    child = os.fork()
    if child == 0:
        _test_here(stages, seconds)
    end = time.monotonic() + 20 * seconds  # it may wait for others, or for ever
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            answers = {0: "survived", -signal.SIGXCPU: "time", -signal.SIGPROF: "endless"}
            return answers.get(code, "found")
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "endless"


class Watch:
    """Writes down which test runs, and ends it where it takes far longer than any does."""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        (WORK / "current").write_text(nodeid)
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _test_here(stages: list[list[str]], seconds: float) -> None:
    code = 3
    try:
        os.setpgid(0, 0)
        used = sum(os.times()[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, resource.RLIM_INFINITY))
        os.chdir(WORK)
        (WORK / "current").write_text("")
        with open(WORK / "log", "w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
        sys.path.insert(0, str(WORK / "src"))
        os.environ["PYTHONPATH"] = str(WORK / "src")  # for interpreters that tests start
        import pytest

        for stage in stages:
            code = int(pytest.main(["-x", "-q", "-p", "no:xdist", *stage, *_deselected()], plugins=[Watch()]))
            code = 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code
            if code:
                break
    finally:
        os._exit(code)


def check(mutant: Mutant, seconds: float) -> str:
    """Put a mutant into the copy, test it, take it out again."""
    target = WORK / mutant.path
    original = (ROOT / mutant.path).read_text()
    compiled = not mutant.path.endswith(".py")
    core = next((WORK / "src" / "mercer").glob("_core*.so"))
    changed = WORK / "core of the mutant"
    try:
        target.write_text(mutant.apply(original))
        if compiled:
            if not compile_core(mutant):
                return "does not compile"
            shutil.copy2(core, changed)
        while (answer := verdict(stages_of(mutant), seconds)) in ("found", "endless"):
            failed = failed_test()
            if failed is None:
                break  # it cannot be imported
            target.write_text(original)
            if compiled:
                restore_core()
            if verdict([[failed]], 600.0) == "survived":
                return "found"
            NOT_HERE.add(failed)  # fails in the copy without any change: it says nothing about the mutant
            target.write_text(mutant.apply(original))
            if compiled:
                shutil.copy2(changed, core)
        return "found" if answer == "endless" else answer
    finally:
        target.write_text(original)
        if compiled:
            restore_core()


NOT_HERE: set[str] = set()


def _deselected() -> list[str]:
    return [part for name in sorted(NOT_HERE) for part in ("--deselect", name)]


def failed_test() -> str | None:
    """The test that failed or crashed last; None where none had begun."""
    found = re.search(r"^(?:FAILED|ERROR) ((?:src|tests)/[^ ]+(?:\[.*?\])?)(?: - |$)", (WORK / "log").read_text(), re.M)
    return found[1] if found else (WORK / "current").read_text() or None


def timed_check(task: tuple[Mutant, float]) -> tuple[Mutant, str, float]:
    begin = time.monotonic()
    return task[0], check(*task), time.monotonic() - begin


def worker(numbers: multiprocessing.Queue[int]) -> None:
    """Make a copy to change, and see that its tests pass without a change."""
    prepare(numbers.get())
    warm_up()
    if verdict([["tests/core/test_hash.py", "src/mercer/tagging/tagger.py"]], 600.0) != "survived":
        print(f"error: tests of the copy fail without a change, see {WORK / 'log'}", file=sys.stderr)
        os._exit(2)


def judge(mutants: list[Mutant], seconds: float, jobs: int, seed: str, minutes: float) -> dict[str, str]:
    """The verdict on each mutant by its name, those of earlier calls with this seed among them."""
    memory = ROOT / "build" / "mutate" / f"{seed}.json"
    memory.parent.mkdir(parents=True, exist_ok=True)
    verdicts: dict[str, str] = json.loads(memory.read_text()) if memory.exists() else {}
    tasks = [(mutant, seconds) for mutant in mutants if str(mutant) not in verdicts]
    if not tasks:
        return verdicts
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    context = multiprocessing.get_context("fork")
    numbers: multiprocessing.Queue[int] = context.Queue()
    for number in range(jobs):
        numbers.put(number)
    with context.Pool(jobs, worker, (numbers,)) as pool:
        for mutant, answer, took in pool.imap_unordered(timed_check, tasks):
            verdicts[str(mutant)] = answer
            memory.write_text(json.dumps(verdicts, indent=1, ensure_ascii=False))
            print(f"[{len(verdicts)}/{len(mutants)}] {answer:16} {took:5.0f} s  {mutant}", flush=True)
            if time.monotonic() > end:
                break
    return verdicts


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=int, default=40, help="mutants of Python")
    parser.add_argument("--cpp", type=int, default=8, help="mutants of C++, each compiled anew")
    parser.add_argument("--seconds", type=float, default=90.0, help="most processor time for the tests of one")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after these; call again to go on")
    parser.add_argument("--seed", help="default: the hash of the current commit")
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
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    verdicts = judge(sample, arguments.seconds, arguments.jobs, seed, arguments.minutes)
    judged = [mutant for mutant in sample if verdicts.get(str(mutant), "does not compile") != "does not compile"]
    survivors = [mutant for mutant in judged if verdicts[str(mutant)] != "found"]
    share = 1 - len(survivors) / len(judged) if judged else 1.0
    print(f"\n{len(judged) - len(survivors)} of {len(judged)} mutants found ({100 * share:.0f} %), seed {seed}")
    if len(verdicts) < len(sample):
        print(f"{len(sample) - len(verdicts)} of the sample are not judged yet: call again")
    for survivor in survivors:
        print(f"survived: {survivor}{'  (the time was too short)' if verdicts[str(survivor)] == 'time' else ''}")
    return int(bool(arguments.at_least) and (share < arguments.at_least or len(verdicts) < len(sample)))


if __name__ == "__main__":
    sys.exit(main())
