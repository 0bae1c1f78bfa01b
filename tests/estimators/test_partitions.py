"""Estimators × places of the examples: memory, store, Dask. A full cell works, an empty one has its reason on the page.

The page ``docs/guide/beyond-memory.md`` shows the table. After a change, ``PYTHONPATH=tests python -m
estimators.test_partitions`` prints it anew.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators.cases import CASES, Case
from mercer.data import Partitions, Store

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "beyond-memory.md"
HEADING = "## Which estimators"

FIRST: dict[str, Case] = {}
for _case in CASES:
    FIRST.setdefault(_case.cls.__name__, _case)
HOW = {"sums": ("●", "●"), "first": ("●", "●"), "stream": ("●", "averages"), "bags": ("whole bags", "whole bags")}


def reason(case: Case) -> str | None:
    return case.make()._reason_against_parts()


WORK = sorted(name for name, case in FIRST.items() if reason(case) is None)
DO_NOT = sorted(set(FIRST) - set(WORK))


def table() -> str:
    """The table of the page."""
    lines = ["| | memory | store, partitions | Dask |", "|---|---|---|---|"]
    for name in WORK:
        store, dask = HOW[FIRST[name].make()._parts_how]
        lines.append(f"| `{name}` | ● | {store} | {dask} |")
    why: dict[str, list[str]] = {}
    for name in DO_NOT:
        why.setdefault(str(reason(FIRST[name])), []).append(f"`{name}`")
    lines.append("")
    lines += [f"- {text}: {', '.join(names)}." for text, names in sorted(why.items())]
    return "\n".join(lines)


def in_parts(case: Case) -> Partitions:
    data = case.data(0)
    if case.make()._parts_how == "bags":
        return bags_in_parts(data.args[0], data.kwargs["bags"])
    X, y = data.args[0], data.args[1] if len(data.args) > 1 else None
    if X is None:  # trees have their words
        X = [tree.leaves() for tree in y]
    return Partitions.split(X, y, n=2)


def bags_in_parts(X: np.ndarray, bags: Any) -> Partitions:
    """The first half of the bags, and the others."""
    parts = []
    for chosen in np.array_split(np.arange(len(bags)), 2):
        part, rows = bags.select(chosen)
        parts.append((X[rows], part))
    return Partitions(parts)


@pytest.mark.parametrize("name", WORK)
def test_what_learns_from_parts_does(name, tmp_path):
    case = FIRST[name]
    parts, store = in_parts(case), Store(tmp_path / "s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = case.make().fit(parts)
        for part in parts:
            store.append(part.X, part.y)
        there = case.make().fit(store)
        verb = next(verb for verb in case.verbs if hasattr(here, verb))
        new = case.data(0).new
        one, two = (getattr(model, verb)(new) for model in (here, there))
    assert same(one, two)


def same(one: Any, two: Any) -> bool:
    if hasattr(one, "tocsr"):
        return (one != two).nnz == 0
    if isinstance(one, np.ndarray):
        return np.array_equal(one, two)
    return repr(one) == repr(two)


@pytest.mark.parametrize("name", DO_NOT)
def test_what_does_not_names_its_reason(name):
    model = FIRST[name].make()
    with pytest.raises(TypeError, match=f"{name} cannot learn from partitions: "):
        model.fit(Partitions([(np.ones((2, 2)), [0, 1])]))


def test_the_page_shows_the_table():
    assert table() in PAGE.read_text()


if __name__ == "__main__":
    print(table())
