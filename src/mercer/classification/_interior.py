"""An interior point method for the relative margin machine with few features.

    min ½‖w‖² + C Σ ξ_i,   a_i + ξ_i − 1 = z_i ≥ 0,  ξ_i ≥ 0,  p_i = B − a_i ≥ 0,  q_i = B + a_i ≥ 0,   a = y (V w + b)

with multipliers α of z, ν = C − α of ξ, β of p and γ of q. Every Newton step is one system with as many unknowns as V
has columns, and one more:

    (Q + Aᵀ diag(α / (z + α ξ / ν) + β / p + γ / q) A) Δu = …,      A = y [V 1],  u = (w, b),  Q = diag(1, …, 1, 0).

Steps over two variables (``cpp/solvers/relative_margin.cpp``) crawl where the kernel matrix has a low rank; this method
does not. What it finds is a start for them, so that the certificate comes from one place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

_MAX_ITERATIONS = 100


def interior_point(V: np.ndarray, y: np.ndarray, C: float, B: float, tol: float = 1e-10) -> np.ndarray:
    """The coefficients s of w = Vᵀ s, on the corners of the dual where they belong there, with Σ s = 0.

    ``tol`` is the relative gap at which it stops; the last point is given where rounding ends it sooner.
    """
    point = _Point(y[:, None] * np.hstack([V, np.ones((len(y), 1))]), C, B)
    for _ in range(_MAX_ITERATIONS):
        residual, mu = point.residual(), point.mu()
        value = 0.5 * point.u[:-1] @ point.u[:-1] + C * point.primal[1].sum()
        if 4 * len(y) * mu <= tol * max(value, 1e-300) and np.abs(residual).max() <= tol * (1 + C):
            break
        factor = point.factor()
        if factor is None:
            break
        # Mehrotra's two steps: one towards products of zero, tried only, then one that aims at what the first would
        # have reached and takes its curvature into account.
        targets = [-x * m for x, m in point.pairs()]
        first = point.direction(factor, residual, targets)
        ahead = point.mu(first, point.longest(first))
        centre = mu * min(1.0, max(ahead, 0.0) / mu) ** 3
        targets = [t + centre - dx * dm for t, dx, dm in zip(targets, first.primal, first.dual, strict=True)]
        step = point.direction(factor, residual, targets)
        t = 0.995 * point.longest(step)
        if not np.isfinite(t) or t < 1e-12:
            break
        point.move(step, t)
    # Of each complementary pair the smaller one is zero at the optimum.
    kept = [np.where(m < C * x, 0.0, m) for x, m in point.pairs()]
    delta = np.where(kept[1] == 0.0, C, kept[0])  # ν = 0 means α = C
    if point.bounded:
        delta = delta - kept[2] + kept[3]
    return _balanced(y * delta, y, C)


class _Step(NamedTuple):
    u: np.ndarray
    primal: list[np.ndarray]
    dual: list[np.ndarray]


class _Point:
    """u and the complementary pairs (z, α), (ξ, ν) and, with a bound, (p, β), (q, γ): all of them positive.

    Slacks and multipliers move by their own steps: computing B − a anew would lose all digits near the bound.
    """

    def __init__(self, A: np.ndarray, C: float, B: float) -> None:
        n = len(A)
        self.A, self.bounded = A, bool(np.isfinite(B))
        self.Q = np.ones(A.shape[1])
        self.Q[-1] = 0.0
        self.u = np.zeros(A.shape[1])
        self.primal = [np.full(n, 1.0), np.full(n, 2.0)]
        self.dual = [np.full(n, C / 2), np.full(n, C / 2)]
        if self.bounded:
            self.primal += [np.full(n, B), np.full(n, B)]
            self.dual += [np.full(n, C / 2), np.full(n, C / 2)]

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(zip(self.primal, self.dual, strict=True))

    def mu(self, step: _Step | None = None, t: float = 0.0) -> float:
        """The mean product of a pair, here or after a step."""
        if step is None:
            return float(np.mean([x @ m / len(x) for x, m in self.pairs()]))
        moved = zip(self.pairs(), step.primal, step.dual, strict=True)
        return float(np.mean([(x + t * dx) @ (m + t * dm) / len(x) for (x, m), dx, dm in moved]))

    def residual(self) -> np.ndarray:
        pull = self.dual[0] - self.dual[2] + self.dual[3] if self.bounded else self.dual[0]
        return self.Q * self.u - self.A.T @ pull

    def _curvature(self) -> np.ndarray:
        (z, alpha), (xi, nu) = self.pairs()[:2]
        return z + alpha * xi / nu

    def factor(self) -> Any:
        """The Newton matrix, factored; None where rounding has spoilt it."""
        weights = self.dual[0] / self._curvature()
        for x, m in self.pairs()[2:]:
            weights = weights + m / x
        matrix = (self.A.T * weights) @ self.A + np.diag(self.Q)
        if not np.isfinite(matrix).all():
            return None
        try:
            return cho_factor(matrix)
        except np.linalg.LinAlgError:
            return None

    def direction(self, factor: Any, residual: np.ndarray, targets: list[np.ndarray]) -> _Step:
        """The Newton step towards the given changes of the products."""
        (_, alpha), (xi, nu) = self.pairs()[:2]
        curvature = self._curvature()
        fixed = (targets[0] - alpha / nu * targets[1]) / curvature
        pull = fixed
        if self.bounded:
            pull = fixed - targets[2] / self.primal[2] + targets[3] / self.primal[3]
        du = cho_solve(factor, self.A.T @ pull - residual)
        da = self.A @ du
        dalpha = fixed - alpha / curvature * da
        dxi = (targets[1] + xi * dalpha) / nu
        primal, dual = [da + dxi, dxi], [dalpha, -dalpha]
        if self.bounded:
            (p, beta), (q, gamma) = self.pairs()[2:]
            primal += [-da, da]
            dual += [(targets[2] + beta * da) / p, (targets[3] - gamma * da) / q]
        return _Step(du, primal, dual)

    def longest(self, step: _Step) -> float:
        """The step, at most 1, after which something first becomes zero."""
        longest = 1.0
        for value, change in zip(self.primal + self.dual, step.primal + step.dual, strict=True):
            falls = change < 0
            longest = min(longest, float((value[falls] / -change[falls]).min(initial=np.inf)))
        return longest

    def move(self, step: _Step, t: float) -> None:
        self.u = self.u + t * step.u
        self.primal = [x + t * dx for x, dx in zip(self.primal, step.primal, strict=True)]
        self.dual = [m + t * dm for m, dm in zip(self.dual, step.dual, strict=True)]


def _balanced(s: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    """s with Σ s = 0: what rounding left over goes to the coefficient that is farthest from its corners."""
    delta = y * s
    distance = np.minimum(np.abs(delta), np.abs(delta - C))
    s = s.copy()
    s[int(distance.argmax())] -= s.sum()
    return s
