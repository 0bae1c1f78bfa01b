"""Machines with the hinge beside liblinear, on the sets of logistic regression: time to one objective.

    min  ½‖W‖² + C Σ_i hinge loss,   with a penalised constant; many classes: the machine of Crammer and Singer

    python benchmarks/hinge.py [--repeats 3] [--only fourier,sparse,digits,wide,long,news20] [--most 60] [--smoke]

liblinear is scikit-learn's LinearSVC with loss="hinge" (multi_class="crammer_singer" for many classes). Both stop on
rules of their own, ours on a certified gap: tol is lowered from 0.1 by factors of 0.3 until the primal objective,
computed from outside in NumPy, is at most 1.001 times the least, which ours reaches with a gap of 1e-6; that tol is
timed. One thread on both sides; processor seconds, medians of interleaved rounds. ``--most`` is for a fit, as in
logistic.py.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _timing import from_data, interleaved, parse, record
from logistic import PROBLEMS, TooLongError, until
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from mercer.classification import LinearClassifier

ABOVE = 1e-3  # of the least objective


def objective(X: Any, y: np.ndarray, C: float, model: Any) -> float:
    """F in liblinear's parameters: one vector with two classes, else one a class."""
    classes, y = np.unique(y, return_inverse=True)
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    if len(classes) == 2:
        losses = np.maximum(0.0, 1.0 - (2 * y - 1) * scores[:, 0])
    else:
        rows = np.arange(len(y))
        margins = scores - scores[rows, y][:, None] + 1.0
        margins[rows, y] = 0.0
        losses = margins.max(axis=1)
    return float(0.5 * (model.coef_**2).sum() + 0.5 * (model.intercept_**2).sum() + C * losses.sum())


def measure(name: str, X: Any, y: np.ndarray, C: float, repeats: int, most: float) -> None:
    n_classes = len(np.unique(y))
    value = partial(objective, X, y, C)
    ours: Callable[[float], Any] = lambda tol: LinearClassifier(  # noqa: E731
        "hinge", "dual", C=C / 2 if n_classes == 2 else C, tol=tol, random_state=0, max_iter=100_000
    ).fit(X, y)
    kind = "ovr" if n_classes == 2 else "crammer_singer"
    theirs: Callable[[float], Any] = lambda tol: LinearSVC(  # noqa: E731
        C=C, loss="hinge", tol=tol, multi_class=kind, random_state=0, max_iter=1_000_000
    ).fit(X, y)
    least = value(ours(1e-6))
    size = f"{X.shape[0]:,} x {X.shape[1]:,}, {n_classes} classes"
    print(f"{name}: {size}, C = {C:g}, least objective {least:.6g}", flush=True)
    calls, reached = [], []
    for fit in (ours, theirs):
        tol, last = until(fit, value, (1 + ABOVE) * least, most)
        reached.append(last / least - 1)
        calls.append(None if tol is None else partial(fit, tol))
    taken = iter(interleaved(repeats, *(call for call in calls if call is not None)))
    mine, peer = (most if call is None else next(taken) for call in calls)
    stopped = "" if calls[1] is not None else f"; stopped after {most:g} s"
    note = f"above the least objective: {reached[0]:.1e}, theirs {reached[1]:.1e}{stopped}"
    print(f"  mercer {mine:.4f} s, liblinear {peer:.4f} s, {peer / mine:.2f}x; {note}", flush=True)
    record("hinge", name, ours=mine, theirs=peer, peer="sklearn LinearSVC", sizes=size, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="fourier,sparse,digits,long,wide", help="problems, separated by commas")
    parser.add_argument("--most", type=float, default=60.0, help="processor seconds of a fit")
    args = parse(parser, repeats=1, only="sparse,digits,long")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in args.only.split(","):
        with from_data(name):
            try:
                measure(*PROBLEMS[name](), args.repeats, args.most)
            except TooLongError:
                print(f"  {name}: stopped")


if __name__ == "__main__":
    main()
