"""How often `BagCV` says that a model is no better than one share for all bags, and how often it should.

    MERCER_DATA=... python benchmarks/proportions_constants.py [--sizes 8 32 64]

The nine sets of `proportions_mean_map.py`, two folds each, with their labels and with labels permuted at random; three
learners with their default parameters (alternating: C = 10), 5 folds of bags (as many as bags where these are fewer).
The part of the searches that warn, in %: with permuted labels; with real ones where the accuracy on test rows is at
most 0.02 above that of the most frequent class; and where it is higher.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
from _timing import from_data, parse, sized
from proportions_mean_map import few_sets, sets

from mercer.proportions import (
    AlternatingProportionSVM,
    BagCV,
    ConstantAnswerWarning,
    InverseCalibration,
    MeanMap,
    make_bags,
)

LEARNERS: list[tuple[Any, dict[str, list[float]]]] = [
    (InverseCalibration(), {"C": [1.0]}),
    (MeanMap(), {"alpha": [MeanMap().alpha]}),
    (AlternatingProportionSVM(max_swaps=0), {"C": [10.0]}),
]


def warned(X: np.ndarray, y: np.ndarray, size: int, fold: int, learner: Any, grid: Any) -> tuple[bool, float]:
    """Whether the search warns, and how far the accuracy on test rows is above that of the most frequent class."""
    order = np.random.RandomState(0).permutation(len(y))
    test = order[fold::5]
    train = np.setdiff1d(order, test)
    bags = make_bags(y[train], size, random_state=fold)
    search = BagCV(learner, grid, cv=min(5, len(bags)), random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X[train], bags=bags)
    share = float(y[test].mean())
    told = any(issubclass(warning.category, ConstantAnswerWarning) for warning in caught)
    return told, search.score(X[test], y[test]) - max(share, 1 - share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 32, 64])
    options = parse(parser, sizes=[8])
    with from_data("the nine sets"):
        compare(options, sized(sets, few_sets)())


def compare(options: argparse.Namespace, data: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    print("| bags of | permuted labels | no better in accuracy | better |\n|---:|---:|---:|---:|")
    for size in options.sizes:
        counts: dict[str, list[bool]] = defaultdict(list)
        for (X, y), fold, (learner, grid) in product(data.values(), (0, 2), LEARNERS):
            told, above = warned(X, y, size, fold, learner, grid)
            counts["better" if above > 0.02 else "no better"].append(told)
            permuted = np.random.RandomState(fold).permutation(y)
            counts["permuted"].append(warned(X, permuted, size, fold, learner, grid)[0])
        parts = [counts[kind] for kind in ("permuted", "no better", "better")]
        cells = [f"{100 * np.mean(part):.0f} % of {len(part)}" if part else "" for part in parts]
        print(f"| {size} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
