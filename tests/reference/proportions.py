"""Slow and obvious: all stumps, all labellings of a bag."""

from __future__ import annotations

from itertools import product

import numpy as np
from sklearn.svm import SVC


def stumps(values):
    """Every labelling of numbers by a threshold, as (threshold, sign)."""
    distinct = np.unique(values)
    thresholds = np.concatenate([[distinct[0] - 1], (distinct[1:] + distinct[:-1]) / 2, [distinct[-1] + 1]])
    return [(t, sign) for t in thresholds for sign in (1, -1)]


def stump_predictions(stump, values):
    threshold, sign = stump
    return (sign * (values - threshold) > 0).astype(int)


def best_stump(bags, shares):
    """Empirical proportion risk minimisation over stumps by trying all: bags is (M, r), shares (M,)."""
    risks = [np.abs(stump_predictions(stump, bags).mean(axis=1) - shares).mean() for stump in stumps(bags.ravel())]
    at = int(np.argmin(risks))
    return stumps(bags.ravel())[at], risks[at]


def least_objective(X, number, shares, C):
    """The least ½ ‖w‖² + Σ hinge + C Σ_k |p_k − ȳ_k| over all labellings, a support vector machine for each."""
    least = np.inf
    for labels in product((-1, 1), repeat=len(X)):
        y = np.array(labels)
        off = C * sum(abs((y[number == k] > 0).mean() - share) for k, share in enumerate(shares))
        if off >= least:
            continue
        if abs(y.sum()) == len(y):  # one class: w = 0
            least = off
            continue
        machine = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X, y)
        hinge = np.maximum(0.0, 1.0 - y * machine.decision_function(X)).sum()
        least = min(least, 0.5 * float((machine.coef_**2).sum()) + hinge + off)
    return least
