"""Two choices of the mean map, on sets that are not in the tables of `proportions.py`.

    MERCER_DATA=... python benchmarks/proportions_mean_map.py [--runs 2]

Nine sets: two digits and WDBC and a wine of scikit-learn; diabetes, 700 rows of a1a and of mushrooms; two letters. The
protocol is that of the tables, of which the folds 0, 2 and 4 are taken. Accuracy in % by the size of bags, the mean of
all sets: with the penalty alpha on the mean of losses ({.1, 1, 10}), on their sum (these / N) or on either, whichever
held-out bags choose; with the threshold of the model, or where the shares of the training bags are met best.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from itertools import product

import numpy as np
from _timing import from_data, parse, sized
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file, load_wine

from mercer.datasets._home import data_file
from proportions import judged

SIZES = sized((2, 8, 32, 64), (8,))
ALPHAS = (0.1, 1.0, 10.0)


def scaled(X: np.ndarray) -> np.ndarray:
    """Every attribute in [-1, 1]; those that never change are left out."""
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * ((X - low) / np.where(high > low, high - low, 1.0))[:, high > low] - 1


def against_rest(X: np.ndarray, y: np.ndarray, label: object, most: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """One class against equally many rows of the others."""
    random = np.random.RandomState(0)
    own = random.permutation(np.flatnonzero(y == label))[:most]
    rows = np.concatenate([own, random.permutation(np.flatnonzero(y != label))[: len(own)]])
    return scaled(X[rows]), (y[rows] == label).astype(int)


def sparse(name: str, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_svmlight_file(str(data_file("libsvm", name)))
    rows = np.random.RandomState(0).permutation(len(y))[:most] if most else np.arange(len(y))
    return scaled(X[rows].toarray()), (y[rows] == y.max()).astype(int)


def letters() -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(data_file("uci", "LetterRecognition.csv.gz"), "rt") as file:
        _, *rows = csv.reader(file)
    return np.array([row[1:] for row in rows], float), np.array([row[0] for row in rows])


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    digits, cells, wine, letter = load_digits(), load_breast_cancer(), load_wine(), letters()
    return {
        "digits-8": against_rest(digits.data, digits.target, 8),
        "digits-3": against_rest(digits.data, digits.target, 3),
        "wdbc": (scaled(cells.data), cells.target),
        "wine-1": against_rest(wine.data, wine.target, 1),
        "diabetes": sparse("diabetes_scale.svm"),
        "a1a": sparse("a1a", 700),
        "mushrooms": sparse("mushrooms", 700),
        "letter-R": against_rest(*letter, "R"),
        "letter-A": against_rest(*letter, "A"),
    }


def few_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """One small set, to see that it runs."""
    return {"wine-1": against_rest(*load_wine(return_X_y=True), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2)
    options = parse(parser, runs=1)
    with from_data("the nine sets"):
        compare(options, sized(sets, few_sets)())


def compare(options: argparse.Namespace, data: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    print("| kernel | alpha of | threshold | " + " | ".join(map(str, SIZES)) + " |")
    print("|---|---|---|" + "---|" * len(SIZES))
    for kernel, scale, threshold in product(("linear", "rbf"), ("mean", "sum", "either"), ("model", "shares")):
        cells = []
        for size in SIZES:
            found = []
            for X, y in data.values():
                n = len(y) - len(y) // 5
                alphas = [a for a in ALPHAS if scale != "sum"] + [a / n for a in ALPHAS if scale != "mean"]
                grid = [{"alpha": a, "threshold": threshold} for a in alphas]
                folds = product(range(options.runs), sized((0, 2, 4), (0,)))
                found += [judged(X, y, size, kernel, "mean-map", run, fold, grid)[0] for run, fold in folds]
            cells.append(f"{np.mean(found):.1f}")
        print(f"| {kernel} | {scale} | {threshold} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
