"""Newton's method for convex functions.

    u ← u + t d        H(u) d = −∇(u),        t from a search along d

Users: ``proportions.MeanMap`` (directions by conjugate gradients, lengths by halving) and
``kernel_methods.RepresenterEstimator`` (directions by Cholesky, lengths where the slope is 0, because losses may have
kinks). ``learning.weighted_machines`` trains many classifiers over the same rows together.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["NewtonProblem", "NewtonResult", "minimize_by_newton"]


class NewtonProblem(Protocol):
    """A convex function with the methods that Newton's method needs."""

    def gradient(self, u: np.ndarray) -> np.ndarray: ...

    def direction(self, u: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return a descent direction, −H⁻¹ ∇ or an approximation."""
        ...

    def length(self, u: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> float:
        """Return the step length, 0 if no step decreases the function. The next gradient is computed there."""
        ...


class NewtonResult(NamedTuple):
    """The result of Newton's method."""

    u: np.ndarray
    steps: int
    norm: float  # of the gradient
    gain: float  # that the quadratic model still promised, where a step no longer moved u; 0 otherwise


def minimize_by_newton(problem: NewtonProblem, u: np.ndarray, enough: float, max_iter: int) -> NewtonResult:
    """Step until the gradient is at most ``enough``, steps no longer move ``u``, or after ``max_iter`` steps."""
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
