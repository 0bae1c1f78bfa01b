"""Where the alternating machine starts, on sets that are not in the tables of `proportions.py`.

    MERCER_DATA=... python benchmarks/proportions_starts.py [--kernel linear] [--folds 0 2]

The nine sets, scaling and folds of `proportions_mean_map.py`; parameters are fixed, C = 1 and C = 10 with C* = 1 (and
gamma = .1 of the Gaussian kernel), since defaults are used where nothing is chosen. Accuracy in % by the
size of bags, the mean of all sets and folds, for random starts and for those of other learners, with and without swaps;
and the seconds of the processor for a fit. "better of both" has the smaller objective of the two informed starts, which
is the default.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
from _timing import from_data, parse, sized
from proportions_mean_map import SIZES, few_sets, sets

from mercer.proportions import AlternatingProportionSVM, make_bags
from proportions import Inputs

STARTS: dict[str, dict[str, Any]] = {
    "10 random, annealed": {"init": "random", "annealing": True, "max_swaps": 0},
    "10 random, every second annealed": {"init": "random", "annealing": "mixed", "max_swaps": 0},
    "10 random, every second annealed, swaps": {"init": "random", "annealing": "mixed"},
    "inverse calibration": {"init": "inverse-calibration", "max_swaps": 0},
    "inverse calibration, annealed": {"init": "inverse-calibration", "annealing": True, "max_swaps": 0},
    "mean map": {"init": "mean-map", "max_swaps": 0},
    "better of both": {"init": ["inverse-calibration", "mean-map"], "max_swaps": 0},
    "default (better of both, swaps)": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", choices=["linear", "rbf"], default="linear")
    parser.add_argument("--folds", nargs="+", type=int, default=[0, 2])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    options = parse(parser, folds=[0])
    warnings.simplefilter("ignore")
    with from_data("the nine sets"):
        compare(options, sized(sets, few_sets)())


def compare(options: argparse.Namespace, data: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    print("| C | start | " + " | ".join(map(str, options.sizes)) + " | seconds |")
    print("|---:|---|" + "---:|" * (len(options.sizes) + 1))
    for C, (name, start) in product((1.0, 10.0), STARTS.items()):
        cells, taken = [], []
        for size in options.sizes:
            accuracies = []
            for (X, y), fold in product(data.values(), options.folds):
                order = np.random.RandomState(0).permutation(len(y))
                test = order[fold::5]
                train = np.setdiff1d(order, test)
                bags, inputs = make_bags(y[train], size, random_state=fold), Inputs(X, options.kernel, 0.1)
                kernel = "precomputed" if options.kernel == "rbf" else None
                model = AlternatingProportionSVM(C, kernel=kernel, random_state=0, **start)
                begin = time.process_time()
                model.fit(inputs.train(train), bags=bags)
                taken.append(time.process_time() - begin)
                accuracies.append(float((model.predict(inputs.test(test, train)) == y[test]).mean()))
            cells.append(f"{100 * np.mean(accuracies):.1f}")
        print(f"| {C:g} | {name} | " + " | ".join(cells) + f" | {np.mean(taken):.3f} |", flush=True)


if __name__ == "__main__":
    main()
