"""Which values of their parameters estimators, kernels, losses and solvers take, and which they refuse.

The record is limits.txt beside this file.

Numbers below, at and above the usual limits, and what is no number. To record a change that is meant:

    PYTHONPATH=tests python tests/estimators/test_limits.py
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators.cases import CASES, Case
from estimators.outputs import fit
from mercer import inference, kernels, learning, manifolds, maps, structures
from mercer.alignment import AlignmentStructure
from mercer.structures.row_sets import RowSets

RECORD = Path(__file__).with_name("limits.txt")
ANYTHING_GOES = {"verbose", "random_state", "n_jobs", "seed"}  # they have tests of their own
COUNTS = [-1, 0, 1, 2, 0.5, True, "no such thing"]
NUMBERS = [-1.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 1 + 1e-7, 2.0, float("nan"), float("inf"), True, "no such thing"]
NAMES = ["no such thing", "", 3]


def values_for(default: Any) -> list[Any]:
    """What to try in the place of a default."""
    if isinstance(default, bool):
        return []
    kinds = {int: COUNTS, float: NUMBERS, str: NAMES}
    return next((values for kind, values in kinds.items() if isinstance(default, kind)), [])


def limits(constructor: Callable[..., Any], attempt: Callable[[dict[str, Any]], Any]) -> list[str]:
    """One line for each parameter: the values with which an attempt succeeds, and those that are refused."""
    lines = []
    for name, parameter in inspect.signature(constructor).parameters.items():
        values = [] if name in ANYTHING_GOES else values_for(parameter.default)
        taken, refused = [], []
        for value in values:
            try:
                attempt({name: value})
            except (ValueError, TypeError) as error:
                if "not supported" in str(error):  # it was compared before it was checked
                    raise
                refused.append(repr(value))
            else:
                taken.append(repr(value))
        if values:
            told = (
                f"takes {', '.join(taken) or 'none'}; refuses {', '.join(refused)}" if refused else "not looked at here"
            )
            lines.append(f"{name}: {told}")
    return lines


def of_case(case: Case) -> list[str]:
    return limits(case.cls, lambda given: fit(case, model=case.make().set_params(**given)))


def recorded() -> dict[str, list[str]]:
    """The lines of each case, by its number and class."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in RECORD.read_text().splitlines():
        if line.startswith("  "):
            sections[title].append(line.strip())
        else:
            title = line
            sections[title] = []
    return sections


def titles() -> dict[str, Case]:
    """A name for each case: its class, and which of several of that class."""
    named: dict[str, Case] = {}
    for case in CASES:
        name, k = case.cls.__name__, 1
        while (title := name if k == 1 else f"{name} {k}") in named:
            k += 1
        named[title] = case
    return named


TITLES = titles()

# ------------------------------------------------------------------------- kernels, losses, solvers, structures

PLACES = ("kernels", "kernel_methods", "learning", "learning.learners", "learning.solvers", "multilabel", "maps")
BASES = {"EnergyModel", "Kernel", "Learner", "Loss", "Solver", "TaxonomyLoss"}  # nothing is made without more
GRAPH = np.array([[0.0, 1.0], [1.0, 0.0]])
WITH_ARGUMENTS: dict[str, Callable[..., Any]] = {
    "AlignmentStructure": functools.partial(AlignmentStructure, n_symbols=2),
    "Chain": functools.partial(structures.Chain, n_labels=2, n_features=1),
    "Checkpoint": functools.partial(learning.Checkpoint, "model.mercer"),
    "CountMinSketch": functools.partial(maps.CountMinSketch, width=8, depth=2),
    "Diffusion": functools.partial(kernels.Diffusion, GRAPH),
    "GraphLabels": functools.partial(structures.GraphLabels, n_labels=2, n_features=1),
    "LabelSets": functools.partial(structures.LabelSets, n_labels=2, n_features=1),
    "Labels": functools.partial(structures.Labels, n_labels=2, n_features=1),
    "Metropolis": functools.partial(inference.Metropolis, lambda x: 0.0),
    "Oblique": functools.partial(manifolds.Oblique, 2),
    "Power": functools.partial(kernels.Power, kernels.Linear()),
    "RegularizedLaplacian": functools.partial(kernels.RegularizedLaplacian, GRAPH),
    "RowSets": functools.partial(RowSets, np.zeros((2, 1)), 1),
    "SE": functools.partial(manifolds.SE, 2),
    "Scaled": functools.partial(kernels.Scaled, kernels.Linear()),
    "Segments": functools.partial(structures.Segments, n_labels=2, n_features=1, max_length=2),
}


def constructors() -> dict[str, Callable[..., Any]]:
    """What can be constructed without data, by name: with defaults alone, or with the arguments above."""
    folder = Path(__file__).parent.parent.parent / "tools"
    found = {}
    for name, thing in runpy.run_path(str(folder / "signatures.py"))["public_things"]().items():
        module, _, short = name.removeprefix("mercer.").rpartition(".")
        if not inspect.isclass(thing) or issubclass(thing, Exception) or hasattr(thing, "fit"):
            continue
        if module in PLACES and short not in BASES:
            needed = [p for p in inspect.signature(thing).parameters.values() if p.default is p.empty]
            if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in needed):
                found[short] = thing
    return dict(sorted({**found, **WITH_ARGUMENTS}.items()))


def examples() -> list[Any]:
    """A few objects of each kind that kernels compare."""
    vectors = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    strings = ["abab", "abba", "bab"]
    trees = ["(NP (D the) (N dog))", "(NP (D the) (N cat))"]
    edges = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]]
    attributed = [(vectors, graph) for graph in edges]
    return [vectors, strings, trees, edges, attributed, [vectors, vectors[:2] ** 2]]


def use_of(make: Callable[..., Any]) -> Callable[[Any], Any]:
    """How something made is asked about its parameters: kernels compare objects of their kind."""
    made = make()
    for objects in examples() if isinstance(made, kernels.Kernel) else []:
        with contextlib.suppress(ValueError, TypeError):
            made(objects)
            return lambda kernel: kernel(objects)
    return lambda made: made


@functools.cache
def of_objects() -> dict[str, list[str]]:
    """The lines of all objects that check something."""
    lines = {}
    for name, make in constructors().items():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use = use_of(make)
            told = limits(make, lambda given, make=make, use=use: use(make(**given)))
        if any("refuses" in line for line in told):
            lines[name] = told
    return lines


# ------------------------------------------------------------------------------------------------ the record


@pytest.mark.parametrize("title", TITLES)
def test_limits_of_estimators_are_those_on_record(title: str) -> None:
    assert of_case(TITLES[title]) == recorded().get(title), "if this is meant, see the top of this file"


@pytest.mark.parametrize("title", sorted(set(recorded()) - set(TITLES)))
def test_limits_of_objects_are_those_on_record(title: str) -> None:
    assert of_objects().get(title) == recorded()[title], "if this is meant, see the top of this file"


def test_the_record_has_what_there_is() -> None:
    assert list(recorded()) == [*TITLES, *of_objects()]


if __name__ == "__main__":
    every = {title: of_case(case) for title, case in TITLES.items()} | of_objects()
    RECORD.write_text(
        "".join(f"{title}\n" + "".join(f"  {line}\n" for line in lines) for title, lines in every.items())
    )
