"""The mutants that `make mutate` draws from: valid code, one change each, and the tests that should notice them."""

from __future__ import annotations

import ast
import importlib.util
import random
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("mutate", ROOT / "tools" / "mutate.py")
mutate = importlib.util.module_from_spec(spec)
sys.modules["mutate"] = mutate  # dataclasses look their module up
spec.loader.exec_module(mutate)
reach = mutate.reach

SOURCE = '''
def scale(x: int = 2, on: bool = True) -> float:
    """Doc with 1 < 2."""
    if x < 0 and on:
        raise ValueError(f"x must be at least {0}")
    assert on or x > 3
    return [1.5][0] * x + sum(zip(x, x, strict=True))
'''


def test_each_kind_of_place_is_changed_once():
    found = mutate.PythonMutants("src/mercer/x.py", SOURCE).found
    changed = sorted(" ".join(m.apply(SOURCE).split()) for m in found)
    plain = " ".join(SOURCE.split())
    expected = [
        plain.replace("x: int = 2", "x: int = (2 + 1)"),
        plain.replace("= True", "= False"),
        plain.replace("x < 0 and", "x <= 0 and"),
        plain.replace("< 0 and on", "< 0 or on"),
        plain.replace("x < 0 and", "x < (0 + 1) and"),
        plain.replace("if x < 0 and on:", "if not (x < 0 and on):"),
        plain.replace('raise ValueError(f"x must be at least {0}")', "pass"),
        plain.replace("[1.5]", "[(1.5 + 1)]"),
        plain.replace("[0]", "[(0 + 1)]"),
        plain.replace("* x", "/ x"),
        plain.replace("x + sum", "x - sum"),
    ]
    assert changed == sorted(expected)


def test_mutants_of_the_package_are_python(monkeypatch):
    # Of a fifth of the files: a walk over all of them takes seconds.
    rglob = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda path, pattern: sorted(rglob(path, pattern))[::5])
    mutants = mutate.python_mutants()
    assert len(mutants) > 4000
    for mutant in random.Random(0).sample(mutants, 40):
        source = (ROOT / mutant.path).read_text()
        assert mutant.apply(source) != source
        ast.parse(mutant.apply(source))


def test_mutants_of_compiled_code_change_one_line():
    mutants = mutate.cpp_mutants()
    assert len(mutants) > 10_000
    for mutant in random.Random(0).sample(mutants, 40):
        source = (ROOT / mutant.path).read_text()
        before, after = source.splitlines(), mutant.apply(source).splitlines()
        assert [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b] == [mutant.line]


def test_a_dropped_raise_leaves_later_lines_where_they_are():
    source = "def f(x):\n    raise ValueError(\n        x\n    )\n\n\ndef g(): return 1\n"
    (dropped,) = [m for m in mutate.PythonMutants("src/mercer/x.py", source).found if "pass" in m.text]
    assert dropped.apply(source).splitlines()[6] == "def g(): return 1"
    ast.parse(dropped.apply(source))


BLOCKS = '''
LIMIT = 3

class Box:
    size = 2

    def grow(self, by=1):
        """Doc."""
        if by > LIMIT:
            self.size = 0
        else:
            for _ in range(by):
                self.size += 1
        return self.size

def outer():
    def inner(): return 4
    return inner()
'''


def test_blocks_are_named_by_their_function_and_what_runs_is_marked():
    tree = ast.parse(BLOCKS)
    lines = BLOCKS.splitlines()

    def at(text):
        block = reach.block_at(tree, lines.index(text) + 1)
        return block and block.name

    assert at("LIMIT = 3") is at("    size = 2") is at("    def grow(self, by=1):") is None
    names = ["        if by > LIMIT:", "            self.size = 0", "                self.size += 1"]
    assert list(map(at, names)) == ["Box.grow#1", "Box.grow#2", "Box.grow#4"]
    assert at("    def inner(): return 4") == "outer.inner#1"
    reached: set[str] = set()
    space = {reach.MARK: reached.add}
    exec(reach.instrumented(BLOCKS, "x.py", "x"), space)
    assert (space["Box"]().grow(2), space["outer"](), space["Box"].grow.__doc__) == (4, 4, "Doc.")
    assert reached == {f"x:{name}" for name in ("Box.grow#1", "Box.grow#3", "Box.grow#4", "outer#1", "outer.inner#1")}


def test_functions_of_a_process_get_the_code_of_a_mutant(tmp_path, monkeypatch):
    source = "def plain(x):\n    return x < 2\n\n\ndef kept(x, y=3):\n    return [plain(v) for v in x], y\n"
    for root in (tmp_path, tmp_path / "0"):
        root.mkdir(exist_ok=True)
        (root / "code.py").write_text(source)
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "WORK", tmp_path)
    space: dict = {}
    exec(compile(source, str(tmp_path / "0" / "code.py"), "exec"), space)
    swapped, default = (m for m in mutate.PythonMutants("code.py", source).found if m.what[0] in "<3")
    assert space["kept"]([2]) == ([False], 3)
    assert mutate.exchange(swapped)
    assert space["kept"]([2]) == ([True], 3)
    assert not mutate.exchange(default)  # runs on import: that takes a new process


def test_tests_that_reach_a_block_come_first_and_neighbours_follow():
    path = "src/mercer/kernels/sets.py"
    source = (ROOT / path).read_text()
    mutant = next(m for m in mutate.PythonMutants(path, source).found if mutate.marks_of(m))
    (mark,) = mutate.marks_of(mutant)
    far = reach.Test("tests/cli/test_cli.py::test_far", 0.01)
    near = reach.Test("tests/kernels/test_sets.py::test_near", 1.0)
    long = reach.Test("tests/kernels/test_sets.py::test_long", 100.0)
    beside = reach.Test("tests/kernels/test_sets.py::test_beside", 0.1)
    reached = reach.Reached(set(), folder=ROOT / "no such folder")
    reached.by_name = {mark: [far, near, long]}
    reached.by_file = {near.file: [near, long, beside], far.file: [far]}
    tests = mutate.tests_of(mutant, reached, seconds=60.0)
    assert tests[:3] == [near.name, far.name, beside.name]
    assert tests[3:5] == [f"{near.file}{mutate.SLOW}", f"{path}{mutate.SLOW}"]
    assert f"tests/kernels/test_algebra.py{mutate.SLOW}" in tests
    assert long.name not in tests
    assert "structures/alignment.cpp" in mutate.translation_units("base/parallel.hpp")
    assert mutate.translation_units("solvers/bag_assignment.cpp") == {"solvers/bag_assignment.cpp"}


def test_near_files_name_the_module_of_a_mutant():
    mutant = mutate.Mutant("src/mercer/manifolds/spaces.py", 0, 1, "", 1, "")
    files = mutate.near_files([mutant])
    assert {"tests/manifolds/test_spaces.py", mutant.path} <= set(files)
    assert "tests/fields/test_rbm.py" not in files


def test_what_a_compiled_file_offers_is_known():
    for path in sorted((ROOT / "cpp").rglob("*.cpp"))[::4]:
        mutant = mutate.Mutant(path.relative_to(ROOT).as_posix(), 0, 0, "", 1, "")
        assert mutate.marks_of(mutant), path.name
