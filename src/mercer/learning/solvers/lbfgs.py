"""Limited-memory quasi-Newton: L-BFGS for smooth objectives, OWL-QN for those with an ℓ1 part.

    minimise  F(w) = l1 ‖w‖₁ + ½ l2 ‖w‖² + C Σ_i loss_i(w)

Both keep the last ``memory`` pairs (s = w⁺ − w, y = g⁺ − g of the smooth part) in single precision: they only shape the search
direction, and half the memory lets larger models fit. OWL-QN takes the pseudo-gradient of F, keeps the direction where it descends,
and projects each trial point onto the orthant of the current one.

Stops when the (pseudo-)gradient's norm is at most ``tol`` times that at w = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver


class _Memory:
    """The two-loop recursion over the last pairs."""

    def __init__(self, size: int, n: int) -> None:
        self.size = size
        self.s = np.empty((size, n), np.float32)
        self.y = np.empty((size, n), np.float32)
        self.rho: list[float] = []
        self.order: list[int] = []

    def add(self, s: np.ndarray, y: np.ndarray) -> None:
        """Keeps a pair if the curvature along it is positive."""
        slot = len(self.order) if len(self.order) < self.size else self.order[0]
        self.s[slot], self.y[slot] = s, y
        # The inner products are of the stored, rounded vectors: the implied matrix is then exactly positive definite.
        sy = _dot(self.s[slot], self.y[slot])
        yy = _dot(self.y[slot], self.y[slot])
        if not sy > 1e-10 * yy:
            if slot in self.order:
                self._forget(slot)
            return
        if slot in self.order:
            self._forget(slot)
        self.order.append(slot)
        self.rho.append(1.0 / sy)
        self.scale = sy / yy

    def _forget(self, slot: int) -> None:
        place = self.order.index(slot)
        del self.order[place], self.rho[place]

    def direction(self, g: np.ndarray, out: np.ndarray) -> None:
        """out = −H g."""
        np.negative(g, out=out)
        if not self.order:
            return
        alpha = []
        for slot, rho in zip(reversed(self.order), reversed(self.rho), strict=True):
            a = rho * _dot(self.s[slot], out)
            _axpy(-a, self.y[slot], out)
            alpha.append(a)
        out *= self.scale
        for slot, rho, a in zip(self.order, self.rho, reversed(alpha), strict=True):
            _axpy(a - rho * _dot(self.y[slot], out), self.s[slot], out)


# Vectors are walked in blocks: the mixed-precision products then need no copy of a whole vector.
_BLOCK = 1 << 14


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for i in range(0, len(a), _BLOCK):
        total += float(np.dot(a[i : i + _BLOCK].astype(np.float64), b[i : i + _BLOCK].astype(np.float64)))
    return total


def _axpy(alpha: float, x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, len(out), _BLOCK):
        out[i : i + _BLOCK] += alpha * x[i : i + _BLOCK]


class LBFGS(Solver):
    """L-BFGS with a Wolfe line search.

    Parameters
    ----------
    memory : int, default=6
        Number of correction pairs.
    """

    name = "lbfgs"
    default_max_iter = 500
    default_tol = 1e-4

    def __init__(self, memory: int = 6) -> None:
        if memory < 1:
            raise ValueError(f"memory must be at least 1, got {memory}")
        self.memory = memory

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """A smooth penalty only."""
        if penalty.l1:
            raise ValueError(f"solver {self.name!r} needs a smooth penalty: use solver='owlqn' (or 'sgd') with l1 penalties")

    def minimize(
        self,
        risk: Risk,
        penalty: Penalty,
        C: float,
        w0: np.ndarray,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """See :class:`Solver`."""
        w = np.array(w0 if resumed is None else resumed[1]["w"], dtype=float)
        passes = 0 if resumed is None else int(resumed[0]["passes"])
        done = 0 if resumed is None else int(resumed[0]["iterations"])
        l1 = penalty.l1

        def smooth(at: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
            """The smooth part of F and its gradient."""
            nonlocal passes
            passes += 1
            value, gradient = risk.value_and_gradient(at, out)
            gradient *= C
            if penalty.l2:
                _axpy(penalty.l2, at, gradient)
            return C * value + 0.5 * penalty.l2 * _dot(at, at), gradient

        def whole(smooth_value: float, at: np.ndarray) -> float:
            return smooth_value + (l1 * float(np.abs(at).sum()) if l1 else 0.0)

        best = w
        try:
            value, g = smooth(w)
            objective = whole(value, w)
            pseudo = _pseudo_gradient(w, g, l1)
            norm = _norm(pseudo)
            norm0 = norm
            if w.any():
                zero = np.zeros_like(w)
                norm0 = _norm(_pseudo_gradient(zero, smooth(zero)[1], l1))
                del zero
            memory = _Memory(min(self.memory, max(1, max_iter)), len(w))
            direction = np.empty_like(w)
            for iteration in range(done, max_iter):
                if norm <= tol * norm0:
                    break
                memory.direction(pseudo, direction)
                if l1:
                    direction[direction * pseudo >= 0] = 0.0
                slope = _dot(direction, pseudo)
                if not slope < 0:  # rounding has spoilt the memory: begin it anew
                    memory = _Memory(self.memory, len(w))
                    np.negative(pseudo, out=direction)
                    slope = -(norm**2)
                step = 1.0 if memory.order else min(1.0, 1.0 / norm)
                search = _projected if l1 else _wolfe
                found = search(smooth, whole, w, objective, g, pseudo, direction, slope, step, l1)
                if found is None:
                    if memory.order:  # once more along the gradient before giving up
                        memory = _Memory(self.memory, len(w))
                        continue
                    message = "no step lowers the objective further: the limit of floating-point accuracy"
                    return Result(self._chosen(monitor, w), norm <= 1e3 * tol * norm0, message)
                new_w, value, new_g = found
                memory.add(new_w - w, new_g - g)
                w, g, objective = new_w, new_g, whole(value, new_w)
                best = w
                del new_w, new_g, found
                pseudo = _pseudo_gradient(w, g, l1)
                norm = _norm(pseudo)
                stop = monitor.record(lambda w=w: w, objective=objective, gradient_norm=norm, passes=passes)
                monitor.save({"passes": passes, "iterations": iteration + 1}, lambda w=w: {"w": w})
                if stop:
                    return Result(self._chosen(monitor, w), True, "stopped early: no better score on the held-out data")
        except KeyboardInterrupt:
            return Result(self._chosen(monitor, best), False, "interrupted: these are the best weights so far", True)
        if norm <= tol * norm0:
            return Result(self._chosen(monitor, w), True, "converged")
        return Result(
            self._chosen(monitor, w),
            False,
            f"stopped after max_iter={max_iter} iterations with a gradient of {norm / max(norm0, 1e-300):.1e} of its "
            f"first norm (tol={tol:g}): raise max_iter or tol, or lower C",
        )

    @staticmethod
    def _chosen(monitor: Monitor, w: np.ndarray) -> np.ndarray:
        return w if monitor.best_w is None else monitor.best_w


class OWLQN(LBFGS):
    """Orthant-wise L-BFGS: for penalties with an ℓ1 part; without one it is L-BFGS."""

    name = "owlqn"

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Takes every penalty."""


def _norm(x: np.ndarray) -> float:
    return float(np.sqrt(_dot(x, x)))


def _pseudo_gradient(w: np.ndarray, g: np.ndarray, l1: float) -> np.ndarray:
    """The subgradient of least norm of g + l1 ∂‖w‖₁; g itself without ℓ1."""
    if not l1:
        return g
    sign = np.sign(w)
    shrunk = np.where(g > l1, g - l1, np.where(g < -l1, g + l1, 0.0))
    return np.where(sign != 0, g + l1 * sign, shrunk)


def _wolfe(
    smooth: Any,
    whole: Any,
    w: np.ndarray,
    objective: float,
    g: np.ndarray,
    pseudo: np.ndarray,
    direction: np.ndarray,
    slope: float,
    step: float,
    l1: float,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """A step with sufficient decrease (1e-4) and flattened slope (0.9), by expansion and safeguarded interpolation."""
    low, high = 0.0, np.inf
    low_value, low_slope = objective, slope
    noise = 1e-12 * max(1.0, abs(objective))  # below this, differences of objectives are rounding
    for _ in range(30):
        new_w = w + step * direction
        try:
            value, new_g = smooth(new_w)
        except ValueError:  # scores beyond the range of floating point: far too long a step
            if not np.isfinite(new_w).all() or step > 1e-8:
                high, step = step, 0.5 * (low + step)
                continue
            raise
        new_slope = _dot(new_g, direction)
        if not value <= objective + 1e-4 * step * slope + noise:
            high = step
            # the minimum of the parabola through (low value, low slope) and the new value
            width = step - low
            curvature = value - low_value - low_slope * width
            guess = low - 0.5 * low_slope * width**2 / curvature if curvature > 0 else 0.5 * (low + step)
            step = min(max(guess, low + 0.1 * width), low + 0.5 * width)
        elif new_slope < 0.9 * slope:
            low, low_value, low_slope = step, value, new_slope
            step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
        else:
            return new_w, value, new_g
        if high - low < 1e-14 * max(1.0, low):
            return None
    return None


def _projected(
    smooth: Any,
    whole: Any,
    w: np.ndarray,
    objective: float,
    g: np.ndarray,
    pseudo: np.ndarray,
    direction: np.ndarray,
    slope: float,
    step: float,
    l1: float,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Backtracking on points projected onto the orthant of w (or of −pseudo-gradient where w is 0)."""
    orthant = np.where(w != 0, np.sign(w), -np.sign(pseudo))
    for _ in range(40):
        new_w = w + step * direction
        new_w[new_w * orthant <= 0] = 0.0
        value, new_g = smooth(new_w)
        decrease = _dot(pseudo, new_w - w)
        if whole(value, new_w) <= objective + 1e-4 * decrease and decrease < 0:
            return new_w, value, new_g
        step *= 0.5
    return None
