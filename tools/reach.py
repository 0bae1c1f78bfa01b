"""Records which tests reach which block of the package, and which functions of the compiled core; `mutate.py` asks.

    python tools/reach.py [--jobs 2] [--files tests/kernels src/mercer/kernels] [--minutes M]

The package is imported with a mark at the begin of every block (body of a function, branch, body of a loop), and every
function of the core is wrapped. What a test that is not marked slow reached, how long it took and whether it passed
goes to build/mutate/reach, one file for each file of tests, named by its contents: what is there already is not run
again. A block is named by its function and its number there, so that changes elsewhere do not matter. Processes that
tests start are not seen.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
REACH = ROOT / "build" / "mutate" / "reach"
MARK = "__mercer_reached__"
MOST_SECONDS = 900.0  # for a file
LEFT_OUT = ("tests/peers/", "tests/fuzz/", "tests/test_benchmarks.py", "tests/test_docs.py", "tests/test_mutate.py")
LEFT_OUT += ("tests/test_collection.py", "src/mercer/nn/", "src/mercer/fields/_walks.py", "tests/nn/")

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Block:
    """Statements that run one after the other: of a function, a branch or a loop."""

    function: str  # its qualified name, "" outside of functions
    number: int
    first: int  # lines
    last: int
    statements: list[ast.stmt] = field(repr=False, default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.function}#{self.number}"


def blocks_of(tree: ast.Module) -> Iterator[Block]:
    """Blocks of the functions of a file, outer ones first."""
    yield from _blocks_in(tree.body, "", "", [0], executed=False)


def _blocks_in(body: list[ast.stmt], owner: str, function: str, count: list[int], executed: bool) -> Iterator[Block]:
    if executed and body:
        count[0] += 1
        yield Block(function, count[0], body[0].lineno, max(node.end_lineno or 0 for node in body), body)
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{owner}{statement.name}"
            yield from _blocks_in(statement.body, f"{name}.", name, [0], executed=True)
        elif isinstance(statement, ast.ClassDef):
            yield from _blocks_in(statement.body, f"{owner}{statement.name}.", function, count, executed=False)
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _blocks_in(getattr(statement, part, []), owner, function, count, executed)
            for inner in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
                yield from _blocks_in(inner.body, owner, function, count, executed)


def block_at(tree: ast.Module, line: int) -> Block | None:
    """The innermost block of a function that holds a line; None where the line runs when the file is imported."""
    found = None
    for block in blocks_of(tree):
        if block.first <= line <= block.last:
            found = block if found is None or block.first >= found.first else found
    return found


def instrumented(source: str, path: str, prefix: str) -> CodeType:
    """Code of a file that tells each block which it enters."""
    tree = ast.parse(source)
    for block in list(blocks_of(tree)):
        call = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [ast.Constant(f"{prefix}:{block.name}")], []))
        at = block.statements[0]
        documented = isinstance(at, ast.Expr) and isinstance(at.value, ast.Constant) and isinstance(at.value.value, str)
        ast.copy_location(call, at)
        ast.fix_missing_locations(call)
        call.end_lineno = call.lineno
        block.statements.insert(int(documented and block.number == 1), call)
    return compile(tree, path, "exec")


class Loader(importlib.machinery.SourceFileLoader):
    """Loads modules with marks, and keeps nothing of them on the disk."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.path)
        return instrumented(path.read_text(), self.path, path.relative_to(ROOT).as_posix())


class Finder:
    """Finds modules of the package before the finder of the installation does."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "mercer":
            return None
        place = SOURCE.joinpath(*name.split("."))
        if (place / "__init__.py").exists():
            file, folders = place / "__init__.py", [str(place)]
        elif place.with_suffix(".py").exists():
            file, folders = place.with_suffix(".py"), None
        else:
            return None
        loader = Loader(name, str(file))
        return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)


def wrap_core(mark: Any) -> None:
    """Let every function and method of the compiled core tell its name."""
    from mercer import _core

    def wrapped(name: str, function: Any) -> Any:
        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            mark(name)
            return function(*args, **kwargs)

        return call

    for module in [_core, *(value for value in vars(_core).values() if isinstance(value, ModuleType))]:
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, str | ModuleType):
                continue
            if isinstance(value, type):
                for part, member in list(vars(value).items()):
                    if not part.startswith("_") and callable(member):
                        setattr(value, part, wrapped(f"core:{part}", member))
            elif callable(value):
                setattr(module, name, wrapped(f"core:{name}", value))


class Recorder:
    """Keeps what each test reaches."""

    def __init__(self, reached: set[str]) -> None:
        self.reached, self.numbers = reached, dict[str, int]()
        self.tests: list[tuple[str, float, bool, list[int]]] = []
        self.passed = True
        self.begin = 0.0

    def pytest_runtest_logstart(self) -> None:
        self.reached.clear()
        self.passed, self.begin = True, time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed &= report.outcome == "passed"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in sorted(self.reached)]
        self.tests.append((nodeid, round(time.process_time() - self.begin, 4), self.passed, numbers))


def import_with_marks() -> set[str]:
    """Import the whole package with marks; what they are written to."""
    os.chdir(ROOT)
    reached: set[str] = set()
    setattr(builtins, MARK, reached.add)
    sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]
    for path in sorted((SOURCE / "mercer").rglob("*.py")):
        if path.name not in ("__init__.py", "__main__.py"):
            with contextlib.suppress(ImportError):  # needs what is not installed
                importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    wrap_core(reached.add)
    return reached


class Loop:
    """A plugin of pytest that runs the tests of each file in a fork of the process that has collected all of them."""

    def __init__(self, reached: set[str], jobs: int, minutes: float) -> None:
        self.reached, self.jobs = reached, jobs
        self.end = time.monotonic() + 60 * minutes if minutes else float("inf")

    def pytest_runtestloop(self, session: Any) -> bool:
        waiting: dict[str, list[Any]] = {}
        for item in session.items:
            waiting.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for file in list(waiting):
            if place_of(file).exists():
                del waiting[file]
        running: dict[int, tuple[str, float]] = {}
        done, total = 0, len(waiting)
        while waiting or running:
            while waiting and len(running) < self.jobs and time.monotonic() < self.end:
                file = next(iter(waiting))
                items = waiting.pop(file)
                child = os.fork()
                if child == 0:
                    try:
                        os.setpgid(0, 0)
                        self.record(session, file, items)
                    finally:
                        os._exit(0)
                running[child] = (file, time.monotonic())
            if not running:
                return True
            child = next((pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]), 0)
            if child:
                file, begin = running.pop(child)
                done += 1
                print(f"[{done}/{total}] {time.monotonic() - begin:5.0f} s  {file}", file=sys.stderr, flush=True)
                continue
            for pid, (_, begin) in running.items():
                if time.monotonic() - begin > MOST_SECONDS:
                    os.killpg(pid, signal.SIGKILL)
            time.sleep(0.02)
        return True

    def record(self, session: Any, file: str, items: list[Any]) -> None:
        """Run the tests of one file in this process, and write down what they reach."""
        import _pytest.main

        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        recorder = Recorder(self.reached)
        session.config.pluginmanager.register(recorder)
        session.items[:] = items
        _pytest.main.pytest_runtestloop(session)
        write(file, recorder)


def write(file: str, recorder: Recorder) -> None:
    """Keep what the tests of a file reached, in the place of an older record."""
    place = place_of(file)
    REACH.mkdir(parents=True, exist_ok=True)
    for old in REACH.glob(f"{place.name.rpartition('-')[0]}-*"):
        old.unlink()
    names = sorted(recorder.numbers, key=recorder.numbers.__getitem__)
    partial = place.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({"file": file, "names": names, "tests": recorder.tests}))
    partial.replace(place)


def place_of(file: str) -> Path:
    """Where the record of a file of tests is."""
    key = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]
    return REACH / f"{file.replace('/', '.')}-{key}.json"


def test_files(under: list[str]) -> list[str]:
    """Files of tests, and modules whose docstrings have examples."""
    tests = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    modules = [
        p.relative_to(ROOT).as_posix() for p in sorted((SOURCE / "mercer").rglob("*.py")) if ">>> " in p.read_text()
    ]
    found = [file for file in tests + modules if not file.startswith(LEFT_OUT) and "_tensors.py" not in file]
    return [file for file in found if not under or file.startswith(tuple(under))]


def record(files: list[str], jobs: int, minutes: float) -> list[str]:
    """Record what is not there; files that are left."""
    missing = [file for file in files if not place_of(file).exists()]
    if missing:
        child = os.fork()  # which imports the package: this process must not
        if child == 0:
            try:
                import pytest

                loop = Loop(import_with_marks(), jobs, minutes)
                options = ["-p", "no:xdist", "--capture=no", "-m", "not slow", "--continue-on-collection-errors"]
                status = pytest.main(["-q", *options, *missing], plugins=[loop])
                whole = status != pytest.ExitCode.USAGE_ERROR and time.monotonic() < loop.end
                for file in missing:
                    if whole and not place_of(file).exists():
                        write(file, Recorder(set()))  # has no test that is not slow, or ends the process
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    return [file for file in missing if not place_of(file).exists()]


@dataclass
class Test:
    """A test that passes on the code as it is."""

    name: str
    seconds: float

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Reached:
    """What was recorded: tests by what they reach, and by their file."""

    def __init__(self, wanted: set[str], folder: Path = REACH) -> None:
        self.by_name: dict[str, list[Test]] = {name: [] for name in wanted}
        self.by_file: dict[str, list[Test]] = {}
        self.files: set[str] = set()
        for place in sorted(folder.glob("*.json")):
            content = json.loads(place.read_text())
            if not (ROOT / content["file"]).exists():
                continue
            self.files.add(content["file"])
            kept = {number: name for number, name in enumerate(content["names"]) if name in wanted}
            for name, seconds, passed, numbers in content["tests"]:
                if passed:
                    test = Test(name, seconds)
                    self.by_file.setdefault(test.file, []).append(test)
                    for number in numbers:
                        if number in kept:
                            self.by_name[kept[number]].append(test)


def warm_up() -> None:
    """Import what all tests need but the package: a fork then starts at once.

    OpenMP gets one thread first, since libgomp reads that when it is loaded: a fork of a process with a pool of threads
    waits for them forever.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    import hypothesis
    import numpy
    import pytest
    import scipy.sparse.linalg
    import scipy.stats
    import sklearn.svm
    import sklearn.utils.estimator_checks

    del hypothesis, numpy, pytest, scipy, sklearn
    assert "mercer" not in sys.modules


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--files", nargs="*", default=[], help="only files whose path begins so")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no file after these; call again to go on")
    options = parser.parse_args()
    warm_up()
    left = record(test_files(options.files), options.jobs, options.minutes)
    print(f"{len(left)} files are not recorded{': ' if left else ''}{', '.join(left)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
