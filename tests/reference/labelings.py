"""The convex machine of proportions by enumeration: every labelling, and general solvers."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import minimize


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
