"""Two-class digits: the relative margin machine beside the SVM and Fisher's discriminant with a kernel.

    python benchmarks/relative_margin.py [--data digits usps mnist] [--splits 4] [--train 400] [--test 1000] [--jobs 2]
                                         [--choose 1000] [--columns d=1 … rbf] [--odd-even]

``digits`` are scikit-learn's 8 × 8 images; ``usps`` and ``mnist`` need MERCER_DATA. For each data set odd against even
digits and some pairs that are hard to tell apart, for each task some random splits: ``--train`` images to learn from,
at most ``--test`` others to count errors on. Images have unit length, so K = ⟨x, z⟩^degree and exp(−gamma ‖x − z‖²)
with gamma = 1, 2 or 4. C, B and gamma are chosen by three-fold cross-validation on the training part, once for each
machine: the SVM chooses C (and gamma), the relative margin machine also a finite B, the discriminant (KLDA) its ridge.
With more than ``--choose`` training images the choice is made on the first so many, and a C for so many of them is one
for all of them. The slide's error counts, from other samples, are printed below ours; only the order of the machines
can be compared.

With ``--odd-even`` there is that task only, and tables are recorded under "… images".
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from itertools import product
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import parse, record, sized, spread
from joblib import Parallel, delayed
from scipy.io import loadmat
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from mercer.classification import RelativeMarginSVC
from mercer.datasets._home import data_file
from mercer.kernel_methods import KernelFisher
from mercer.kernels import Gaussian, Linear

DEGREES = (1, 2, 3, 4, 5, 6, 7)
GAMMAS = sized((1.0, 2.0, 4.0), (1.0,))
CS = sized((1.0, 10.0, 100.0, 1000.0), (1.0,))
BS = sized((1.1, 1.25, 1.5, 2.0, 3.0, 5.0), (1.5,))
RIDGES = sized((1e-3, 1e-2, 1e-1, 1.0), (0.1,))
SELECT_STEPS = 20_000
Task = str | tuple[int, int]
TASKS: dict[str, list[Task]] = {
    "digits": ["odd/even", (1, 8), (3, 8)],
    "usps": ["odd/even", (3, 5), (4, 9)],
    "mnist": ["odd/even", (3, 5), (4, 9), (7, 9)],
}
SLIDE = {
    "digits": ("OPT", [71, 57, 54, 47, 40, 46, 46, 51], [71, 36, 32, 31, 33, 30, 29, 51]),
    "usps": ("USPS", [145, 109, 109, 103, 100, 95, 93, 104], [153, 109, 94, 91, 91, 90, 90, 98]),
    "mnist": ("Full MNIST", [536, 198, 170, 156, 157, 141, 136, 146], [521, 146, 140, 130, 119, 116, 115, 129]),
}
MACHINES = ("SVM", "RMM", "KLDA")
COLUMNS = [*(f"d={d}" for d in DEGREES), "rbf"]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All images as rows of unit length, and their digits."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "usps":
        table = loadmat(data_file("usps", "usps_all.mat"))["usps_all"]
        X, y = table[:, :-1], table[:, -1].astype(int) - 1
    else:
        with gzip.open(data_file("mnist", "train-images-idx3-ubyte")) as images:
            X = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(data_file("mnist", "train-labels-idx1-ubyte")) as labels:
            y = np.frombuffer(labels.read(), np.uint8, offset=8).astype(int)
    X = X.astype(float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def two_classes(X: np.ndarray, y: np.ndarray, task: Task) -> tuple[np.ndarray, np.ndarray]:
    """The images of a task and their two labels."""
    if isinstance(task, str):
        return X, y % 2
    members = (y == task[0]) | (y == task[1])
    return X[members], y[members]


def kernels(inner: np.ndarray, column: str) -> list[np.ndarray]:
    """The kernel matrices that a column of the table may choose from."""
    if column == "rbf":
        return [np.exp(-gamma * 2 * (1 - inner)) for gamma in GAMMAS]
    return [inner ** int(column[2:])]


def errors(K: np.ndarray, y: np.ndarray, fit: np.ndarray, test: np.ndarray, C: float, B: float, final: bool) -> int:
    """Wrong answers on ``test`` of a machine that learnt on ``fit``."""
    limit = None if final else SELECT_STEPS
    model = RelativeMarginSVC("precomputed", C, B, tol=1e-3 if final else 1e-2, max_iter=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(K[np.ix_(fit, fit)], y[fit])
    return int((model.predict(K[np.ix_(test, fit)]) != y[test]).sum())


def fisher_errors(column: str, gamma: float, ridge: float, X: np.ndarray, y: np.ndarray, cut: int) -> int:
    """Wrong answers behind the cut of a discriminant that learnt before it."""
    kernel = Gaussian(gamma) if column == "rbf" else Linear() ** int(column[2:])
    return int((KernelFisher(kernel, ridge).fit(X[:cut], y[:cut]).predict(X[cut:]) != y[cut:]).sum())


def one_split(
    X: np.ndarray, y: np.ndarray, n_train: int, n_test: int, seed: int, n_choose: int, columns: list[str]
) -> dict[str, dict[str, Any]]:
    """Test errors in percent of the machines for every column, and what was chosen."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    rows = np.concatenate([train, test])
    X, labels = X[rows], y[rows]
    few = min(n_train, n_choose)
    inner = X[:few] @ X[:few].T
    own, other = np.arange(n_train), np.arange(n_train, len(rows))
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(own[:few], labels[:few]))
    result: dict[str, dict[str, Any]] = {name: {} for name in MACHINES}
    for column in columns:
        choices = kernels(inner, column)
        made: dict[int, np.ndarray] = {}
        for machine, bounds in (("SVM", (np.inf,)), ("RMM", BS)):
            grid = list(product(range(len(choices)), CS, bounds))
            wrong = [sum(errors(choices[k], labels, fit, held, C, B, False) for fit, held in folds) for k, C, B in grid]
            k, C, B = grid[int(np.argmin(wrong))]  # ties: the smaller C, then the smaller B
            if k not in made:
                made = {k: kernels(X @ X[:n_train].T, column)[k]}
            share = 100 * errors(made[k], labels, own, other, C, B, True) / len(other)
            result[machine][column] = (share, C, B)
        made.clear()
        grid_k = list(product(GAMMAS if column == "rbf" else (1.0,), RIDGES))
        joined = [(np.concatenate(parts), len(parts[0])) for parts in folds]
        wrong = [
            sum(fisher_errors(column, gamma, ridge, X[part], labels[part], cut) for part, cut in joined)
            for gamma, ridge in grid_k
        ]
        gamma, ridge = grid_k[int(np.argmin(wrong))]
        share = 100 * fisher_errors(column, gamma, ridge, X, labels, n_train) / len(other)
        result["KLDA"][column] = (share, ridge, np.inf)
    return result


def table(name: str, results: list[dict[str, dict[str, Any]]], columns: list[str], title: str) -> None:
    """Mean and spread over tasks and splits, the slide's counts, and the differences of the two."""
    shares = {m: np.array([[r[m][c][0] for c in columns] for r in results]) for m in MACHINES}
    ddof = min(1, len(results) - 1)
    print(f"\n{name}: test errors in percent, mean (standard deviation) over {len(results)} runs (tasks x splits)")
    print("           " + "".join(f"{c:>13}" for c in columns))
    for machine, values in shares.items():
        cells = "".join(f"{m:7.2f} ({s:.2f})" for m, s in zip(values.mean(0), values.std(0, ddof=ddof), strict=True))
        print(f"{machine:<11}{cells}")
        figures = {str(c): spread(part, 2) for c, part in zip(columns, values.T, strict=True)}
        record(title, machine, values=figures, sizes=f"{len(results)} runs")
    difference = shares["RMM"] - shares["SVM"]
    error = difference.std(0, ddof=ddof) / np.sqrt(len(results))
    cells = "".join(f"{d:+7.2f} ±{e:.2f} " for d, e in zip(difference.mean(0), error, strict=True))
    pairs = zip(columns, difference.mean(0), error, strict=True)
    figures = {str(c): {"value": round(float(d), 2), "deviation": round(float(e), 2)} for c, d, e in pairs}
    record(title, "RMM less SVM", values=figures, sizes=f"{len(results)} runs")
    print(f"RMM - SVM  {cells}   (± standard error of the paired difference)")
    sample, svm, rmm = SLIDE[name]
    for label, counts in ((f"{sample} SVM", svm), (f"{sample} RMM", rmm)):
        print(f"{label:<15}" + "".join(f"{c:>9}    " for c in counts) + "  (slide, error counts)")
    wins = int((difference.mean(0) < 0).sum()), int((difference.mean(0) > 0).sum())
    clear = int((difference.mean(0) < -2 * error).sum()), int((difference.mean(0) > 2 * error).sum())
    print(
        f"RMM lower in {wins[0]} of {len(columns)} columns, higher in {wins[1]}; by more than two standard errors: "
        f"lower in {clear[0]}, higher in {clear[1]}; slide: lower in "
        f"{sum(a < b for a, b in zip(rmm, svm, strict=True))}, higher in "
        f"{sum(a > b for a, b in zip(rmm, svm, strict=True))}"
    )
    chosen = [r["RMM"][c][2] for r in results for c in columns]
    print("B chosen: " + ", ".join(f"{B:g} in {chosen.count(B)}" for B in BS))


def main() -> None:
    """Runs the table of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--choose", type=int, default=1000, help="training images that choose C, B, gamma and ridge")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--odd-even", action="store_true", help="all digits, odd against even, only")
    arguments = parse(parser, data=["digits"], splits=1, train=30, test=50, jobs=1)
    for name in arguments.data:
        begin = time.perf_counter()
        try:
            X, y = load(name)
        except FileNotFoundError as missing:
            print(f"\n{name}: left out ({missing})")
            continue
        jobs = []
        for task, split in product(TASKS[name][:1] if arguments.odd_even else TASKS[name], range(arguments.splits)):
            own, labels = two_classes(X, y, task)
            n_train = min(arguments.train, max(len(labels) // 2, len(labels) - arguments.test))
            given = n_train, arguments.test, split, arguments.choose, arguments.columns
            jobs.append(delayed(one_split)(own, labels, *given))
        title = f"{name}, {arguments.train:,} images" if arguments.odd_even else name
        table(name, Parallel(n_jobs=arguments.jobs)(jobs), arguments.columns, title)
        print(f"tasks {TASKS[name]}, at most {arguments.train} training images, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
