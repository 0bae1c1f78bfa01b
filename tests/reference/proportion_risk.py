"""The proportion risk by loops over bags, and its minimiser over a finite class by trying every function."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize


def bag_risk(probabilities, bags, low, high, loss, bag_weight=None):
    """Σ_k u_k L(p̄_k, ȳ_k) with the nearest shares within the bounds found by a general solver."""
    total = 0.0
    for k in range(len(bags)):
        at = slice(bags.offsets[k], bags.offsets[k + 1])
        v = bags.row_weight[at]
        q = sum(w * probabilities[i] for w, i in zip(v, bags.members[at], strict=True)) / v.sum()
        u = 1.0 if bag_weight is None else bag_weight[k]
        total += u * _loss(q, low[k], high[k], loss)
    return total


def _loss(q, low, high, loss):
    if loss == "log":
        if np.allclose(low, high):
            return sum(t * math.log(t / p) for t, p in zip(low, q, strict=True) if t > 0)

        def divergence(t):
            t = np.maximum(t, 1e-12)
            return float(np.sum(t * np.log(t / q)))

        total = {"type": "eq", "fun": lambda t: t.sum() - 1}
        start = low + (high - low) * (1 - low.sum()) / max((high - low).sum(), 1e-12)
        found = minimize(divergence, start, bounds=list(zip(low, high, strict=True)), constraints=[total], tol=1e-12)
        return found.fun
    off = [max(a - p, p - b, 0.0) for p, a, b in zip(q, low, high, strict=True)]
    return 0.5 * sum(x * x for x in off) if loss == "squared" else 0.5 * sum(off)


def best_stump(x, bags, share, loss=np.abs):
    """The threshold and direction with the least Σ_k loss(h̄_k − ȳ_k), of all that differ on the data."""
    best = (math.inf, 0.0, 1)
    values = np.unique(x)
    for t in [values[0] - 1, *(values[:-1] + values[1:]) / 2, values[-1] + 1]:
        for direction in (1, -1):
            h = direction * (x - t) > 0
            risk = float(loss(np.bincount(bags, h) / np.bincount(bags) - share).sum())
            best = min(best, (risk, t, direction))
    return best
