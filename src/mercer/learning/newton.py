"""Newton's method for convex functions, once.

    u ← u + t d        H(u) d = −∇(u),        t from a search along d

Users: ``proportions.MeanMap`` (directions by conjugate gradients, lengths by halving) and
``kernel_methods.RepresenterEstimator`` (directions by Cholesky, lengths where the slope is 0, since losses may have
kinks).
Many machines over the same rows step together in ``learning.weighted_machines``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["NewtonProblem", "NewtonResult", "minimize_by_newton"]


class NewtonProblem(Protocol):
    """A convex function, as Newton's method sees it."""

    def gradient(self, u: np.ndarray) -> np.ndarray: ...

    def direction(self, u: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """A direction of descent, −H⁻¹ ∇ or near it."""
        ...

    def length(self, u: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> float:
        """How far to go; 0 where nothing is to be gained. The next gradient is asked for there."""
        ...


class NewtonResult(NamedTuple):
    """Where Newton's method ended."""

    u: np.ndarray
    steps: int
    norm: float  # of the gradient
    gain: float  # that the quadratic model still promised, where a step no longer moved u; 0 otherwise


def minimize_by_newton(problem: NewtonProblem, u: np.ndarray, enough: float, max_iter: int) -> NewtonResult:
    """Step until the gradient is at most ``enough``, steps no longer move ``u``, or there were ``max_iter``."""
    for step in range(max_iter + 1):
        gradient = problem.gradient(u)
        norm = float(np.linalg.norm(gradient))
        if norm <= enough or step == max_iter:
            break
        direction = problem.direction(u, gradient)
        length = problem.length(u, gradient, direction)
        if length * np.linalg.norm(direction) <= 1e-15 * np.linalg.norm(u):  # the rest is rounding
            return NewtonResult(u, step, norm, -float(gradient @ direction))
        u = u + length * direction
    return NewtonResult(u, step, norm, 0.0)
