"""Kernel machines and Fourier features as they come, beside scikit-learn's: accuracy without any tuning.

    MERCER_DATA=... python benchmarks/kernel_defaults.py [--parts rows graphs] [--sets wdbc ...] [--rows 800] [--quick]

rows     KernelSVC() beside SVC(), and a linear machine on 256 features of FourierFeatures() beside RBFSampler(), as it
         comes (gamma=1) and with gamma="scale"; columns are standardised on the training rows
graphs   KernelSVC(kernel) with its scaled C beside C = 1, normalised and plain kernels of graphs; at most 600 graphs

Mean accuracy in % over five folds, the same for all. C = 3 / spread was chosen on heart, australian, ionosphere, vowel,
glass, votes, two sets of strings (promoters, splice) and the graphs MUTAG, PTC_MR, MSRC_9 and ENZYMES: these are left
out unless they are named.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from _timing import from_data, parse, record
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from mercer.data import read_tu
from mercer.datasets._home import data_home
from mercer.kernel_methods import KernelSVC
from mercer.kernels import ShortestPath, WeisfeilerLehman
from mercer.maps import FourierFeatures


def svmlight(name: str) -> Callable[[Path], Any]:
    def read(root: Path) -> Any:
        X, y = load_svmlight_file(str(root / "libsvm" / name))
        return X.toarray(), y

    return read


def table(name: str, label: int, header: bool = False, first: int = 0) -> Callable[[Path], Any]:
    """A table of numbers and words without its incomplete rows; words become columns of 0 and 1."""

    def read(root: Path) -> Any:
        path = root / "uci" / name
        with gzip.open(path, "rt") if name.endswith(".gz") else path.open() as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
        rows = [row for row in rows[header:] if not {"?", "NA", ""} & set(row)]
        label_column = label % len(rows[0])
        y = LabelEncoder().fit_transform([row[label_column] for row in rows])
        columns = [as_numbers([row[c] for row in rows]) for c in range(first, len(rows[0])) if c != label_column]
        return np.hstack(columns), y

    return read


def as_numbers(values: list[str]) -> np.ndarray:
    try:
        return np.array(values, float)[:, None]
    except ValueError:
        return np.array([[value == word for word in sorted(set(values))] for value in values], float)


SETS: dict[str, Callable[[Path], Any]] = {
    "diabetes": svmlight("diabetes_scale.svm"),
    "a1a": svmlight("a1a"),
    "dna": svmlight("dna.scale"),
    "breast": table("BreastCancer.csv", -1, header=True, first=1),
    "letter": table("LetterRecognition.csv.gz", 0, header=True),
    "satimage": table("keel-satimage.dat", -1),
    "segment": table("keel-segment.dat", -1),
    "soybean": table("Soybean.csv", 0, header=True),
    "wdbc": lambda root: load_breast_cancer(return_X_y=True),
    "digits": lambda root: load_digits(return_X_y=True),
    "heart": svmlight("heart_scale"),
    "australian": table("keel-australian.dat", -1),
    "ionosphere": table("ionosphere.data", -1),
    "vowel": table("Vowel.csv", -1, header=True),
    "glass": table("Glass.csv", -1, header=True),
    "votes": table("HouseVotes84.csv", 0, header=True),
}
CHOSEN_ON = ("heart", "australian", "ionosphere", "vowel", "glass", "votes")
GRAPHS = ("PTC_MM", "Mutagenicity", "MSRC_21", "PROTEINS", "PTC_FM", "PTC_FR")


def some(n: int, most: int) -> np.ndarray:
    """At most so many places, drawn once."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def accuracy(model: Any, X: Any, y: np.ndarray) -> float:
    """Over five folds, in %."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = [
        clone(model).fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds.split(y[:, None], y)
    ]
    return 100 * float(np.mean(scores))


def print_row(table: str, titles: list[str], name: str, shape: str, values: list[float]) -> None:
    record(table, name, values=dict(zip(titles, [shape, *(round(value, 1) for value in values)], strict=True)))
    print(f"| {name} | {shape} | " + " | ".join(f"{value:.1f}" for value in values) + " |", flush=True)


def rows(sets: list[str], most: int) -> None:
    """Vectors: machines and features."""
    linear = LinearSVC(max_iter=20_000)
    models = {
        "SVC()": SVC(),
        "KernelSVC()": KernelSVC(),
        "RBFSampler()": make_pipeline(RBFSampler(n_components=256, random_state=0), linear),
        'RBFSampler(gamma="scale")': make_pipeline(RBFSampler(gamma="scale", n_components=256, random_state=0), linear),
        "FourierFeatures()": make_pipeline(FourierFeatures(256, random_state=0), linear),
    }
    print("| set | rows × columns, classes | majority | " + " | ".join(models) + " |")
    print("|---|---|" + "---:|" * (1 + len(models)))
    titles = ["rows × columns, classes", "majority", *models]
    found = []
    for name in sets:
        X, y = SETS[name](Path(os.environ.get("MERCER_DATA", "")))
        chosen = some(len(y), most)
        X, y = X[chosen], LabelEncoder().fit_transform(y[chosen])
        kept = np.bincount(y)[y] >= 5
        X, y = X[kept], LabelEncoder().fit_transform(y[kept])
        values = [accuracy(make_pipeline(StandardScaler(), model), X, y) for model in models.values()]
        found.append([100 * np.bincount(y).max() / len(y), *values])
        print_row("rows", titles, name, f"{len(y):,} × {X.shape[1]}, {y.max() + 1}", found[-1])
    print_row("rows", titles, "mean", "", np.mean(found, axis=0).tolist())


def graphs(sets: list[str], most: int) -> None:
    """Graphs: C in the units of the kernel."""
    kernels = {"Weisfeiler-Lehman": WeisfeilerLehman(h=3), "shortest paths": ShortestPath()}
    print("| set | kernel | C = 1, normalised | scaled C, normalised | C = 1 | scaled C |")
    print("|---|---|---:|---:|---:|---:|")
    titles = ["kernel", "C = 1, normalised", "scaled C, normalised", "C = 1", "scaled C"]
    found = []
    for name in sets:
        objects, labels = read_tu(data_home() / "graphs" / name)[:2]
        chosen = some(len(labels), most)
        objects, y = objects[chosen], np.asarray(labels)[chosen]
        for label, kernel in kernels.items():
            values = [
                accuracy(_Matrix(C, made(objects)), np.arange(len(y)), y)
                for made in (kernel.normalized(), kernel)
                for C in (1.0, "scale")
            ]
            found.append(values)
            print_row("graphs", titles, f"{name}, {label}", label, values)
    print_row("graphs", titles, "mean", "", np.mean(found, axis=0).tolist())


class _Matrix:
    """A machine on the rows of one Gram matrix, which is computed once for all folds."""

    def __init__(self, C: Any, K: np.ndarray) -> None:
        self.C, self.K = C, K

    def __sklearn_clone__(self) -> _Matrix:
        return _Matrix(self.C, self.K)

    def fit(self, train: np.ndarray, y: np.ndarray) -> _Matrix:
        self.train, self.model = train, KernelSVC("precomputed", self.C).fit(self.K[np.ix_(train, train)], y)
        return self

    def score(self, test: np.ndarray, y: np.ndarray) -> float:
        return float(self.model.score(self.K[np.ix_(test, self.train)], y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("rows", "graphs"), default=["rows", "graphs"])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=[s for s in SETS if s not in CHOSEN_ON])
    parser.add_argument("--rows", type=int, default=800, help="at most so many rows of a set")
    parser.add_argument("--quick", action="store_true", help="one small set, without MERCER_DATA")
    options = parse(parser, quick=True)
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.quick:
        rows(["digits"], 200)
        return
    with from_data("the sets"):
        if "rows" in options.parts:
            rows(options.sets, options.rows)
        if "graphs" in options.parts:
            graphs(list(GRAPHS), min(options.rows, 600))


if __name__ == "__main__":
    main()
