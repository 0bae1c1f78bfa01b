"""Logistic regression: time to one gradient norm, beside all of scikit-learn's solvers that can reach it.

    min  ½‖W‖² + C Σ_i log loss,   constants without a penalty; with two classes one vector, as scikit-learn has it

    python benchmarks/logistic.py [--repeats 3] [--only fourier,sparse,digits,wide,long,news20] [--most 60] [--smoke]

The norm to reach is 1e-4 of the gradient's at 0, measured from outside in NumPy. scikit-learn's solvers stop on other
rules: their tol is lowered from 0.1 by factors of 0.3 until the weights are good enough, and that tol is timed. One
thread on both sides (set OPENBLAS_NUM_THREADS=1); processor seconds, medians of interleaved rounds. ``--most`` is for a
fit: a solver that needs longer is stopped, and its row says that it does, and how far off the norm it was. ``wide`` and
``news20`` run for minutes and only when they are named.

``fourier``  300 Fourier features of 14,000 rows of covtype, two classes
``sparse``   50,000 × 300, nine entries a row, two classes
``digits``   scikit-learn's digits, ten classes
``wide``     400 faces of 40 people, 10,304 pixels
``long``     100,000 × 20, two classes
``news20``   words of 20 newsgroups, rows of length 1
"""

from __future__ import annotations

import argparse
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _timing import from_data, interleaved, parse, record, sized
from sklearn.datasets import load_digits, load_svmlight_file, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize

from mercer.classification import LinearClassifier
from mercer.datasets import load_faces
from mercer.maps import FourierFeatures

NORM = 1e-4
SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky")  # liblinear's problem is another: it penalises the constant
Problem = tuple[str, Any, np.ndarray, float]


def folder() -> Path:
    if not (name := os.environ.get("MERCER_DATA")):
        raise OSError("MERCER_DATA names no folder")
    return Path(name)


def fourier() -> Problem:
    path = folder() / "covtype-subset" / "covtype_kaggle_train15120.csv.gz"
    table = np.loadtxt(path, delimiter=",", skiprows=1, max_rows=14_000)
    X = StandardScaler().fit_transform(table[:, 1:11])
    return "Fourier features of covtype", FourierFeatures(300, random_state=0).fit_transform(X), table[:, -1] <= 2, 10.0


def sparse() -> Problem:
    n = sized(50_000, 300)
    random = np.random.default_rng(0)
    X = sp.random(n, 300, density=0.03, format="csr", random_state=0)
    return "sparse", X, X @ random.normal(size=300) + 0.3 * random.normal(size=n) > 0, 1.0


def digits() -> Problem:
    X, y = load_digits(return_X_y=True)
    return "digits", X[: sized(None, 200)] / 16.0, y[: sized(None, 200)], 1.0


def wide() -> Problem:
    faces = load_faces("orl")
    return "faces", np.reshape(faces.images, (len(faces.images), -1)), np.asarray(faces.names), 0.1


def long() -> Problem:
    X, y = make_classification(sized(100_000, 300), 20, random_state=0)
    return "long", X, y, 1.0


def news20() -> Problem:
    X, y = load_svmlight_file(str(folder() / "news20" / "news20.bz2"))
    return "news20", normalize(X), y, 1.0


PROBLEMS = {"fourier": fourier, "sparse": sparse, "digits": digits, "wide": wide, "long": long, "news20": news20}


def gradient_norm(X: Any, y: np.ndarray, C: float, model: Any) -> float:
    """The norm of the gradient in scikit-learn's parameters: one vector with two classes, else one a class."""
    classes, y = np.unique(y, return_inverse=True)
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    if len(classes) == 2:
        slopes = C * (1 / (1 + np.exp(-scores)) - y[:, None])
    else:
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P[np.arange(len(y)), y] -= 1.0
        slopes = C * P
    return float(np.hypot(np.linalg.norm(np.asarray(X.T @ slopes) + model.coef_.T), np.linalg.norm(slopes.sum(axis=0))))


class Zero:
    def __init__(self, n_rows: int, n_features: int) -> None:
        self.coef_, self.intercept_ = np.zeros((n_rows, n_features)), np.zeros(n_rows)


class TooLongError(Exception):
    """A fit that took more than its share of the processor."""


def stop(*_: Any) -> None:
    raise TooLongError


def until(
    fit: Callable[[float], Any], norm: Callable[[Any], float], aim: float, most: float
) -> tuple[float | None, float]:
    """The largest tolerance of the series whose model is good enough, None if none is in time; the norm of the last."""
    tol, reached = 0.1, np.inf
    signal.signal(signal.SIGPROF, stop)
    while tol > 1e-12:
        signal.setitimer(signal.ITIMER_PROF, most)
        try:
            reached = norm(fit(tol))
        except TooLongError:
            break
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if reached <= aim:
            return tol, reached
        tol *= 0.3
    return None, reached


def fits(X: Any, y: np.ndarray, C: float) -> Iterator[tuple[str, Callable[[float], Any]]]:
    n_classes = len(np.unique(y))
    binary = n_classes == 2
    yield "mercer", lambda tol: LinearClassifier("log", C=C / 2 if binary else C, tol=tol).fit(X, y)
    for solver in SOLVERS:
        if solver == "newton-cholesky" and X.shape[1] * (1 if binary else n_classes) > 4000:
            continue  # its matrix would have more than 16 million entries
        yield (
            solver,
            lambda tol, solver=solver: LogisticRegression(C=C, solver=solver, tol=tol, max_iter=5000).fit(X, y),
        )


def measure(name: str, X: Any, y: np.ndarray, C: float, repeats: int, most: float) -> None:
    n_classes = len(np.unique(y))
    norm = partial(gradient_norm, X, y, C)
    aim = NORM * norm(Zero(1 if n_classes == 2 else n_classes, X.shape[1]))
    size = f"{X.shape[0]:,} x {X.shape[1]:,}, {n_classes} classes"
    print(f"{name}: {size}, C = {C:g}", flush=True)
    chosen: dict[str, Callable[[], Any]] = {}
    reached: dict[str, float] = {}
    for solver, fit in fits(X, y, C):
        tol, last = until(fit, norm, aim, most)
        reached[solver] = last / aim
        if tol is not None:
            chosen[solver] = partial(fit, tol)
    taken = dict(zip(chosen, interleaved(repeats, *chosen.values()), strict=True))
    for solver, off in reached.items():
        value = taken.get(solver, most)
        stopped = "" if solver in taken else f"; stopped after {most:g} s"
        ratio = f"{value / taken['mercer']:6.2f}x" if solver != "mercer" else ""
        print(f"  {solver:18}{value:9.4f} s   norm / aim {off:.2f} {ratio}{stopped}", flush=True)
        if solver != "mercer":
            record(
                "solvers", f"{name}, {solver}", ours=taken["mercer"], theirs=value, peer=f"scikit-learn {solver}",
                sizes=size, note=f"norm / aim: {reached['mercer']:.2f}, theirs {off:.2f}{stopped}",
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="fourier,sparse,digits,long", help="problems, separated by commas")
    parser.add_argument("--most", type=float, default=60.0, help="processor seconds of a fit")
    args = parse(parser, repeats=1, only="sparse,digits,long")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in args.only.split(","):
        with from_data(name):
            measure(*PROBLEMS[name](), args.repeats, args.most)


if __name__ == "__main__":
    main()
