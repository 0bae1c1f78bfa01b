"""Slow and obvious: all stumps, all labellings of a bag."""

from __future__ import annotations

import numpy as np


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
