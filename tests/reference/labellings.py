"""Slow and obvious: costs of labellings by formula, the best of all 2ⁿ, and the convex machine over all of them."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import minimize


def instance_loss(loss, y, f):
    short = np.maximum(0.0, 1.0 - y * f)
    return short if loss == "hinge" else short**2


def bag_cost(y, f, low, high, weights, r, loss, proportion_loss):
    """Σ L'(y_i, f_i) + r L(p(y)) of one bag."""
    p = weights[y > 0].sum() / weights.sum()
    off = max(0.0, low - p, p - high)
    return instance_loss(loss, y, f).sum() + r * (off if proportion_loss == "absolute" else off**2)


def best_cost(f, low, high, weights, known, r, loss="hinge", proportion_loss="absolute"):
    """The least cost of one bag over all labellings that keep known labels."""
    choices = [(k,) if k else (-1, 1) for k in known]
    labellings = (np.array(y) for y in itertools.product(*choices))
    return min(bag_cost(y, f, low, high, weights, r, loss, proportion_loss) for y in labellings)


def agreeing(offsets: np.ndarray, low: np.ndarray, high: np.ndarray, known: np.ndarray) -> np.ndarray:
    """All labellings whose bags have a share of positives in [low, high], and that agree with what is known."""
    kept = []
    for signs in itertools.product([-1, 1], repeat=int(offsets[-1])):
        y = np.array(signs, np.int8)
        shares = np.array([np.mean(y[a:b] > 0) for a, b in itertools.pairwise(offsets)])
        if (shares >= low - 1e-9).all() and (shares <= high + 1e-9).all() and (y == known)[known != 0].all():
            kept.append(y)
    return np.array(kept)


def relaxed_value(K: np.ndarray, labelings: np.ndarray, C: float) -> float:
    """max_α,s Σα − s/2 with s ≥ αᵀ(K ∘ y yᵀ)α for every labelling and 0 ≤ α ≤ C, by a general solver."""
    matrices = [K * np.outer(y, y) for y in labelings.astype(float)]
    n = len(K)
    start = np.append(np.full(n, C / 2), 0.0)
    start[n] = max(start[:n] @ Q @ start[:n] for Q in matrices) + 1.0
    found = minimize(
        lambda v: v[n] / 2 - v[:n].sum(),
        start,
        jac=lambda v: np.append(-np.ones(n), 0.5),
        bounds=[(0, C)] * n + [(0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda v: np.array([v[n] - v[:n] @ Q @ v[:n] for Q in matrices]),
            "jac": lambda v: np.array([np.append(-2 * Q @ v[:n], 1.0) for Q in matrices]),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    a = found.x[:n]
    return float(a.sum() - max(a @ Q @ a for Q in matrices) / 2)


def integer_value(K: np.ndarray, labelings: np.ndarray, C: float) -> float:
    """The least value over single labellings: the machine before it is relaxed."""
    return min(relaxed_value(K, y[None], C) for y in labelings)
