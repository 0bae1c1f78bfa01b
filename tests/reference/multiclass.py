"""The multiclass margin machine as one quadratic program with every constraint written out, for a general solver."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def margin_objective(W, X, y, cost, upper, squared=False):
    """½‖W‖² + Σ_i U_i ξ_i (or ξ_i²); W of shape (labels, features)."""
    scores = X @ W.T
    n = np.arange(len(y))
    slack = (cost[y] + scores).max(axis=1) - scores[n, y]
    return 0.5 * float((W * W).sum()) + float(upper @ (slack**2 if squared else slack))


def margin_optimum(X, y, cost, upper, squared=False):
    """The smallest objective, over W and ξ under ξ_i ≥ Δ(y_i, c) + ⟨w_c − w_{y_i}, x_i⟩ for all i and c."""
    n, d = X.shape
    k = len(cost)

    def parts(v):
        return v[: k * d].reshape(k, d), v[k * d :]

    def value(v):
        W, slack = parts(v)
        return 0.5 * (W * W).sum() + upper @ (slack**2 if squared else slack)

    def slope(v):
        W, slack = parts(v)
        return np.concatenate([W.ravel(), 2 * upper * slack if squared else upper])

    rows, offsets = [], []
    for i in range(n):
        for c in range(k):
            row = np.zeros(k * d + n)
            row[c * d : (c + 1) * d] -= X[i]
            row[y[i] * d : (y[i] + 1) * d] += X[i]
            row[k * d + i] = 1.0
            rows.append(row)
            offsets.append(-cost[y[i], c])
    A, b = np.array(rows), np.array(offsets)
    start = np.concatenate([np.zeros(k * d), cost[y].max(axis=1)])
    found = minimize(
        value,
        start,
        jac=slope,
        constraints={"type": "ineq", "fun": lambda v: A @ v + b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success, found.message
    return float(found.fun)
