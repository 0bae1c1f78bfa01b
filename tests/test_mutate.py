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


def test_the_tests_of_a_module_come_first_and_neighbours_follow():
    mutant = mutate.Mutant("src/mercer/kernels/sets.py", 0, 0, "", 1, "")
    first, package, *others = mutate.stages_of(mutant)
    assert first[:2] == ["src/mercer/kernels/sets.py", "tests/kernels/test_sets.py"]
    assert "tests/kernels/test_strings.py" in first + package
    assert ["tests/test_signatures.py"] in others
    assert "structures/alignment.cpp" in mutate.translation_units("base/parallel.hpp")
    assert mutate.translation_units("solvers/bag_assignment.cpp") == {"solvers/bag_assignment.cpp"}


def test_the_suite_of_estimators_is_asked_about_the_classes_of_a_module():
    mutant = mutate.Mutant("src/mercer/ranking/ranker.py", 0, 0, "", 1, "")
    assert "Ranker" in mutate.classes_of(mutant)
    assert mutate.classes_of(mutate.Mutant("cpp/solvers/ranking_losses.cpp", 0, 0, "", 1, ""))
