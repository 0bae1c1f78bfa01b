"""The part of ``mercer demo`` about shares: single digits classified from the shares of odd digits in bags."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from mercer.cli import terminal

if TYPE_CHECKING:
    from mercer.report.demo_shares import Learner, ShareResult

_BAG = 16
_GRID = (0.01, 0.1, 1.0)


def run_shares(n_bags: int = 72, seed: int = 0) -> ShareResult:
    """Learn odd and even digits without labels of single digits, and test on new digits and bags."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.svm import LinearSVC

    from mercer.proportions import AlternatingProportionSVM, BagCV, InverseCalibration, make_bags
    from mercer.report.demo_shares import ShareResult

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    X, y = digits.data[order] / 16.0, np.array(["even", "odd"])[digits.target[order] % 2]
    n = min(n_bags * _BAG, len(y) - 10 * _BAG)
    bags, tests = make_bags(y[:n], _BAG, random_state=seed), make_bags(y[n:], _BAG, random_state=seed)
    means = BagCV(InverseCalibration(), {"C": _GRID}, cv=5, random_state=seed)
    machine = AlternatingProportionSVM(10.0, init="inverse-calibration", annealing=False)
    chosen = BagCV(machine, {"C_instance": _GRID}, cv=5, random_state=seed)
    learners = [
        _learner("inverse calibration", means, {"bags": bags}, X, y, n),
        _learner("alternating machine", chosen, {"bags": bags}, X, y, n),
        _learner("all labels known", LinearSVC(random_state=seed), {"y": y[:n]}, X, y, n),
    ]
    return ShareResult(n, len(bags), len(y) - n, learners, tests, chosen.predict_proportions(X[n:], tests), _toy())


def _learner(name: str, model: Any, known: dict[str, Any], X: Any, y: Any, n: int) -> Learner:
    from mercer.report.demo_shares import Learner

    begin = time.perf_counter()
    model.fit(X[:n], **known)
    return Learner(name, model, float(model.score(X[n:], y[n:])), time.perf_counter() - begin)


def _toy() -> list[tuple[str, Any, Any, Any]]:
    """Two bags whose means mislead: (name, model, points, bags)."""
    from mercer.datasets import make_proportion_toy
    from mercer.proportions import AlternatingProportionSVM, InverseCalibration, bag_proportions

    X, y, bags = make_proportion_toy(random_state=0)
    machine = AlternatingProportionSVM(10.0, random_state=0)
    models = []
    for name, model in [("inverse calibration", InverseCalibration()), ("alternating machine", machine)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first model warns that it meets the shares no better than a constant
            model.fit(X, bags=bags, proportions=bag_proportions(y, bags))
        right = (model.predict(X) == (y == y.max())).mean()
        models.append((f"{name}: {100 * right:.0f} % right", model, X, bags))
    return models


def show_shares(result: ShareResult) -> None:
    """Print the table on the terminal."""
    terminal.heading(
        f"{result.n_test} handwritten digits, odd or even, learnt from the shares of {result.n_bags} bags of {_BAG}"
    )
    print()
    rows = [(learner.name, f"{100 * learner.right:.1f} %", f"{learner.seconds:.2f} s") for learner in result.learners]
    terminal.table(["", "digits correct", "training"], rows, "lrr")
    print()
