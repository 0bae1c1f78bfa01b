"""Minimise a function on a manifold: gradient descent, conjugate gradients, trust region.

All three access the manifold by project, retract, transport and inner. With ``g`` the Riemannian gradient:

    gradient            x ← R_x(−t g), t by backtracking from the Barzilai-Borwein length
    conjugate-gradient  d ← −g + β T(d), β of Hestenes and Stiefel, at least 0
    trust-region        d ≈ argmin ⟨g, d⟩ + ½ ⟨H d, d⟩ within a radius, by truncated conjugate gradients (Steihaug);
                        H d is a difference of transported gradients where no Hessian is given

The methods are those of [Absil2008].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_not_negative, hyphenated
from mercer._warnings import warn_caller
from mercer.manifolds.spaces import Manifold

__all__ = ["MinimizeResult", "check_gradient", "minimize"]

METHODS = ("trust-region", "conjugate-gradient", "gradient")
Function = Callable[[np.ndarray], float]
Derivative = Callable[[np.ndarray], np.ndarray]
Hessian = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class MinimizeResult:
    """The result of :func:`minimize`."""

    x: np.ndarray
    """The best point."""
    value: float
    """The function value at this point."""
    gradient_norm: float
    """Norm of the Riemannian gradient at this point."""
    n_iter: int
    converged: bool
    message: str
    history: list[float] = field(default_factory=list)
    """The value at the start and after each iteration."""


class _Problem:
    """A function with its Riemannian gradient and curvature."""

    def __init__(self, f: Function, gradient: Derivative, manifold: Manifold, hessian: Hessian | None) -> None:
        self.f, self.derivative, self.manifold, self.hessian = f, gradient, manifold, hessian

    def value(self, x: np.ndarray) -> float:
        value = float(self.f(x))
        return value if value == value else math.inf  # a step into NaN is a step too far

    def gradient(self, x: np.ndarray) -> np.ndarray:
        g = np.asarray(self.derivative(x), dtype=float)
        if g.shape != self.manifold.shape:
            raise ValueError(f"gradient must return an array of shape {self.manifold.shape}, got {g.shape}")
        if not np.isfinite(g).all():
            raise ValueError("gradient returned NaN or infinite values")
        convert = getattr(self.manifold, "gradient", self.manifold.project)
        return np.asarray(convert(x, g))

    def curvature(self, x: np.ndarray, g: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the Hessian times d, by a difference of gradients where it is not given."""
        m = self.manifold
        if self.hessian is not None:
            return m.project(x, np.asarray(self.hessian(x, d), dtype=float))
        length = m.norm(x, d)
        if not length:
            return np.zeros_like(d)
        step = 1e-6 * max(1.0, float(np.abs(x).max())) / length
        y = m.retract(x, step * d)
        return (m.transport(y, x, self.gradient(y)) - g) / step


def minimize(
    f: Function,
    gradient: Derivative,
    manifold: Manifold,
    x0: Any = None,
    *,
    method: str = "trust-region",
    hessian: Hessian | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    random_state: Any = None,
) -> MinimizeResult:
    """Minimise a differentiable function on a manifold.

    Parameters
    ----------
    f : callable
        The function, of a matrix of shape ``manifold.shape``.
    gradient : callable
        Its partial derivatives by the entries of that matrix, in the same shape. They need not be tangent.
    manifold : Manifold
        Such as ``SO(3)`` or ``Stiefel(n, m)``.
    x0 : array, optional
        Initial point; random by default.
    method : {"trust-region", "conjugate-gradient", "gradient"}, default="trust-region"
        The trust region converges fastest near the minimum; conjugate gradients take less work per iteration.
    hessian : callable, optional
        ``hessian(x, d)``: the Riemannian Hessian at ``x`` times a tangent vector, for the trust region. By default it
        is approximated by differences of gradients.
    max_iter : int, default=500
    tol : float, default=1e-6
        Stop when the Riemannian gradient is shorter than ``tol`` times its length at the start, or when no step
        decreases the value.
    random_state : int, Generator or None
        Seed of the initial point, if ``x0`` is not given.

    Returns
    -------
    MinimizeResult

    Examples
    --------
    The rotation that takes one set of points to another (the orthogonal Procrustes problem):

    >>> import numpy as np
    >>> from mercer.manifolds import SO, minimize
    >>> rng = np.random.default_rng(0)
    >>> X, R = rng.standard_normal((20, 3)), SO(3).random(1)
    >>> Y = X @ R.T
    >>> result = minimize(
    ...     lambda Q: 0.5 * np.sum((X @ Q.T - Y) ** 2), lambda Q: (X @ Q.T - Y).T @ X, SO(3), np.eye(3)
    ... )
    >>> result.converged, np.allclose(result.x, R)
    (True, True)

    References
    ----------
    .. [Absil2008] P.-A. Absil, R. Mahony and R. Sepulchre. Optimization algorithms on matrix manifolds. Princeton
       University Press, 2008.
    """
    if not isinstance(manifold, Manifold):
        raise ValueError(f"manifold must be a Manifold such as SO(3), got {type(manifold).__name__}")
    method = check_choice("method", hyphenated(method), METHODS)
    check_count("max_iter", max_iter, 0)
    check_not_negative("tol", tol)
    x = manifold.random(random_state) if x0 is None else manifold.check("x0", x0)
    problem = _Problem(f, gradient, manifold, hessian)
    value = problem.value(x)
    if not math.isfinite(value):
        raise ValueError(f"f must be finite at the start, got {value}")
    solver = {"trust-region": _trust_region, "conjugate-gradient": _conjugate, "gradient": _steepest}[method]
    result = solver(problem, x, value, max_iter, tol)
    if not result.converged:
        warn_caller(f"minimize stopped before it converged: {result.message}")
    return result


def check_gradient(
    f: Function, gradient: Derivative, manifold: Manifold, x: Any = None, random_state: Any = 0
) -> float:
    """Return the distance of a gradient from central differences of the function, relative to its length.

    Parameters
    ----------
    f, gradient, manifold
        As for :func:`minimize`.
    x : array, optional
        Point of the check; random by default.
    random_state : int, Generator or None, default=0

    Returns
    -------
    error : float
        The largest error over random tangent directions; about 1e-9 for a correct gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import Oblique, check_gradient
    >>> A = np.diag([3.0, 2.0, 1.0])
    >>> check_gradient(lambda x: np.sum(x * (A @ x)), lambda x: 2 * A @ x, Oblique(3)) < 1e-8
    True
    """
    rng = np.random.default_rng(random_state)
    point = manifold.random(rng) if x is None else manifold.check("x", x)
    problem = _Problem(f, gradient, manifold, None)
    g = problem.gradient(point)
    scale = max(manifold.norm(point, g), 1e-300)
    worst = 0.0
    for _ in range(min(10, 2 * manifold.dimension)):
        d = manifold.random_tangent(point, rng)
        h = 1e-5
        slope = (problem.value(manifold.retract(point, h * d)) - problem.value(manifold.retract(point, -h * d))) / (
            2 * h
        )
        worst = max(worst, abs(slope - manifold.inner(point, g, d)) / scale)
    return worst


# ------------------------------------------------------------------------------------------------ line searches


def _backtrack(
    problem: _Problem, x: np.ndarray, value: float, d: np.ndarray, slope: float, step: float, before: float
) -> tuple[np.ndarray, float, float]:
    """A point with Armijo's decrease against ``before`` (the worst of the last values), or x itself with step 0."""
    for _ in range(60):
        y = problem.manifold.retract(x, step * d)
        new = problem.value(y)
        if new <= before + 1e-4 * step * slope and new < math.inf:
            return y, new, step
        # the minimum of the parabola through both values and the slope
        bend = new - value - step * slope
        step *= min(0.5, max(0.1, -0.5 * step * slope / bend)) if math.isfinite(bend) and bend > 0 else 0.25
    return x, value, 0.0


def _finish(
    problem: _Problem, x: np.ndarray, value: float, norm: float, k: int, message: str, history: list[float]
) -> MinimizeResult:
    return MinimizeResult(x, value, norm, k, not message, message or "the gradient is below the tolerance", history)


_STALLED = "no step decreases the value"


def _settled(norm: float, scale: float) -> str:
    """Nothing decreases the value: converged to rounding errors if the gradient has shrunk to their size."""
    return "" if norm <= 1e-4 * scale or norm < 1e-12 else _STALLED


def _flat(history: list[float]) -> bool:
    """Whether ten iterations changed the value by rounding errors only."""
    return len(history) > 10 and abs(history[-11] - history[-1]) <= 4e-16 * abs(history[-1])


def _steepest(problem: _Problem, x: np.ndarray, value: float, max_iter: int, tol: float) -> MinimizeResult:
    m = problem.manifold
    g = problem.gradient(x)
    norm = first = m.norm(x, g)
    history, step = [value], 1 / max(first, 1e-300) * 0.1
    for k in range(max_iter + 1):
        if norm <= tol * first or norm == 0:
            return _finish(problem, x, value, norm, k, "", history)
        if k == max_iter:
            break
        y, new, taken = _backtrack(problem, x, value, -g, -norm * norm, step, max(history[-10:]))
        if not taken:
            return _finish(problem, x, value, norm, k, _settled(norm, first), history)
        after = problem.gradient(y)
        s = m.transport(x, y, -taken * g)
        change = after - m.transport(x, y, g)
        curve = abs(m.inner(y, s, change))
        step = min(1e10, max(1e-10, m.inner(y, s, s) / curve)) if curve > 0 else 2 * taken
        x, value, g = y, new, after
        norm = m.norm(x, g)
        history.append(value)
        if _flat(history):
            return _finish(problem, x, value, norm, k + 1, _settled(norm, first), history)
    return _finish(problem, x, value, norm, max_iter, f"{max_iter} iterations were not enough", history)


def _conjugate(problem: _Problem, x: np.ndarray, value: float, max_iter: int, tol: float) -> MinimizeResult:
    m = problem.manifold
    g = problem.gradient(x)
    norm = first = m.norm(x, g)
    d, history, step = -g, [value], 0.1 / max(first, 1e-300)
    for k in range(max_iter + 1):
        if norm <= tol * first or norm == 0:
            return _finish(problem, x, value, norm, k, "", history)
        if k == max_iter:
            break
        slope = m.inner(x, g, d)
        if slope >= 0:
            d, slope = -g, -norm * norm
        y, new, taken = _backtrack(problem, x, value, d, slope, step, value)
        if not taken and slope != -norm * norm:
            d, slope = -g, -norm * norm
            y, new, taken = _backtrack(problem, x, value, d, slope, step, value)
        if not taken:
            return _finish(problem, x, value, norm, k, _settled(norm, first), history)
        after = problem.gradient(y)
        moved, change = m.transport(x, y, d), after - m.transport(x, y, g)
        denominator = m.inner(y, moved, change)
        beta = max(0.0, m.inner(y, after, change) / denominator) if denominator else 0.0
        # the next first step: as much decrease as this one promised
        step = min(
            1e10, max(1e-12, 2 * max(value - new, 1e-300) / max(-m.inner(y, after, -after + beta * moved), 1e-300))
        )
        x, value, g, d = y, new, after, -after + beta * moved
        norm = m.norm(x, g)
        history.append(value)
        if _flat(history):
            return _finish(problem, x, value, norm, k + 1, _settled(norm, first), history)
    return _finish(problem, x, value, norm, max_iter, f"{max_iter} iterations were not enough", history)


# ------------------------------------------------------------------------------------------------ trust region


def _trust_region(problem: _Problem, x: np.ndarray, value: float, max_iter: int, tol: float) -> MinimizeResult:
    m = problem.manifold
    largest = math.sqrt(max(1, m.dimension))
    radius = largest / 8
    g = problem.gradient(x)
    norm = first = m.norm(x, g)
    history = [value]
    for k in range(max_iter + 1):
        if norm <= tol * first or norm == 0:
            return _finish(problem, x, value, norm, k, "", history)
        if k == max_iter:
            break
        d, decrease, at_border = _truncated_cg(problem, x, g, norm, radius, min(0.1, norm / first))
        y = m.retract(x, d)
        new = problem.value(y)
        noise = 1e-14 * max(1.0, abs(value))  # where both decreases are rounding errors, believe the model
        ratio = (value - new + noise) / (decrease + noise)
        if ratio < 0.25:
            radius *= 0.25
        elif ratio > 0.75 and at_border:
            radius = min(2 * radius, largest)
        if ratio > 0.1:
            x, value = y, new
            g = problem.gradient(x)
            norm = m.norm(x, g)
            history.append(value)
        elif radius < 1e-14:
            return _finish(problem, x, value, norm, k, _settled(norm, first), history)
    return _finish(problem, x, value, norm, max_iter, f"{max_iter} iterations were not enough", history)


def _truncated_cg(
    problem: _Problem, x: np.ndarray, g: np.ndarray, norm: float, radius: float, forcing: float
) -> tuple[np.ndarray, float, bool]:
    """The step, the decrease that the quadratic model promises, and whether the radius ended it."""
    m = problem.manifold
    d = hd = np.zeros_like(g)
    r, p = g, -g
    rr = norm * norm
    for _ in range(m.dimension):
        hp = problem.curvature(x, g, p)
        bend = m.inner(x, p, hp)
        alpha = rr / bend if bend > 0 else math.inf
        if bend <= 0 or m.norm(x, d + alpha * p) >= radius:
            dp, pp, dd = m.inner(x, d, p), m.inner(x, p, p), m.inner(x, d, d)
            alpha = (-dp + math.sqrt(dp * dp + pp * (radius * radius - dd))) / pp
            d, hd = d + alpha * p, hd + alpha * hp
            return d, -(m.inner(x, g, d) + 0.5 * m.inner(x, d, hd)), True
        d, hd = d + alpha * p, hd + alpha * hp
        r = m.project(x, r + alpha * hp)
        after = m.inner(x, r, r)
        if math.sqrt(after) <= norm * forcing:
            break
        p = m.project(x, -r + after / rr * p)
        rr = after
    return d, -(m.inner(x, g, d) + 0.5 * m.inner(x, d, hd)), False
