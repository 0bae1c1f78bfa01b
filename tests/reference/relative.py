"""The relative margin machine as a plain quadratic program, for small problems with a linear kernel."""

from __future__ import annotations

import numpy as np
from scipy.optimize import LinearConstraint, minimize


def primal_linear(X: np.ndarray, y: np.ndarray, C: float, B: float) -> tuple[np.ndarray, float, float]:
    """(w, b, objective) of min ½‖w‖² + C Σ ξ, y f ≥ 1 − ξ, ξ ≥ 0, −B ≤ f ≤ B, with every constraint written out."""
    n, d = X.shape
    Z = np.hstack([X, np.ones((n, 1))])
    none = np.zeros((n, n))
    A = np.vstack(
        [
            np.hstack([y[:, None] * Z, np.eye(n)]),
            np.hstack([np.zeros((n, d + 1)), np.eye(n)]),
            np.hstack([Z, none]),
            np.hstack([-Z, none]),
        ]
    )
    bound = np.concatenate([np.ones(n), np.zeros(n), np.full(2 * n, -B)])
    quadratic = np.concatenate([np.ones(d), np.zeros(n + 1)])
    linear = np.concatenate([np.zeros(d + 1), np.full(n, C)])
    found = minimize(
        lambda v: 0.5 * v @ (quadratic * v) + linear @ v,
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        jac=lambda v: quadratic * v + linear,
        hess=lambda v: np.diag(quadratic),
        constraints=LinearConstraint(A, bound, np.inf),
        method="trust-constr",
        options={"maxiter": 3000, "gtol": 1e-9, "xtol": 1e-11, "barrier_tol": 1e-10},
    )
    return found.x[:d], float(found.x[d]), float(found.fun)
