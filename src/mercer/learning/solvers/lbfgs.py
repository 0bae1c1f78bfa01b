"""Limited-memory quasi-Newton: L-BFGS for smooth objectives, OWL-QN for objectives with an ℓ1 part.

    minimise  F(w) = l1 ‖w‖₁ + ½ l2 ‖w‖² + C Σ_i loss_i(w)

The last ``memory`` pairs (s = w⁺ − w, y = g⁺ − g of the smooth part) only determine the direction. Large models store
them as bfloat16, in a quarter of the memory, small models in single precision. A direction is computed in single
precision and rounded in the same way before the line search, so that s is an exact multiple of it. Steps, values and
gradients are in double precision. OWL-QN uses the pseudo-gradient of F, keeps the components of the direction that
descend, and projects each trial point onto the orthant of the current point.

If the structure estimates the diagonal of the Hessian, the recursion starts from its inverse instead of a multiple of
the identity: frequent and rare features need steps of different sizes. The diagonal is estimated before the first
iteration, and again after a few iterations if the first estimate was at w = 0.

From w = 0, a few passes of stochastic gradient descent come first if the structure and the loss allow it. They cost as
much as the same number of gradients and replace several times as many iterations.

Training stops when the norm of the (pseudo-)gradient is at most ``tol`` times that at w = 0, and the last five
iterations have lowered the objective by at most the share ``tol``. (The gradient at 0 grows with C. Alone it would end
training with a large C too early.)
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_count
from mercer.learning.checkpoint import array_of, count_of, number_of
from mercer.learning.losses import Log
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.sgd import warm_up
from mercer.learning.vectors import zeros

_SMALL = 1 << 16  # weights up to which the memory of pairs is of no account
_BLOCK = 1 << 16
_ANEW = 5  # iterations from w = 0 after which the curvature is looked at again
_RECENT = 6  # objectives that say whether progress has ended


class _Memory:
    """The two-loop recursion over the last pairs; s is kept as a direction and the length of the step along it."""

    def __init__(self, size: int, n: int, *, rounded: bool) -> None:
        self.size, self.rounded = size, rounded
        kind = np.uint16 if rounded else np.float32
        self.d = [zeros(n, kind) for _ in range(size)]
        self.y = [zeros(n, kind) for _ in range(size)]
        self.pairs: list[tuple[int, float, float]] = []  # slot, step and 1 / ⟨d, y⟩, oldest first
        self.scale = 1.0
        self.inverse: np.ndarray | None = None  # of the diagonal of the Hessian

    def precondition(self, curvature: np.ndarray, smallest: float) -> None:
        """Takes an estimate of the diagonal of the Hessian, which is at least ``smallest``."""
        most = float(curvature.max(initial=0.0))
        if most > 0:
            np.maximum(curvature, max(smallest, 1e-6 * most), out=curvature)
            self.inverse = np.divide(1.0, curvature, dtype=np.float32, casting="unsafe")

    def squared_norm(self, slot: int) -> float:
        """⟨y, y⟩ of a slot in the metric that the recursion begins with."""
        y = self.y[slot]
        if self.inverse is None:
            return _core.vectors.dot(y, y)
        total = 0.0
        for a in range(0, len(y), _BLOCK):
            block = y[a : a + _BLOCK]
            if self.rounded:
                block = (block.astype(np.uint32) << 16).view(np.float32)
            total += float(np.sum(block * block * self.inverse[a : a + _BLOCK], dtype=float))
        return total

    def free_slot(self) -> int:
        """A slot to write the next pair to; the oldest pair gives way when all are taken."""
        if len(self.pairs) < self.size:
            return next(i for i in range(self.size) if all(i != slot for slot, _, _ in self.pairs))
        return self.pairs.pop(0)[0]

    def write(self, q: np.ndarray, out: np.ndarray) -> None:
        """Puts a vector into a slot's d or y."""
        if self.rounded:
            _core.vectors.to_bfloat16(q, out)
        else:
            out[:] = q

    def keep(self, slot: int, step: float) -> None:
        """Takes the pair written to a slot into use if the curvature along it is positive.

        The products are those of the rounded vectors: the matrix they stand for is then positive definite to the last
        bit.
        """
        dy = _core.vectors.dot(self.d[slot], self.y[slot])
        yy = self.squared_norm(slot)
        if step * dy > 1e-10 * yy:
            self.pairs.append((slot, step, 1.0 / dy))
            self.scale = step * dy / yy

    def arrays(self) -> dict[str, np.ndarray]:
        """The pairs in use, for a checkpoint."""
        held = {"pairs": np.array(self.pairs, dtype=float).reshape(-1, 3)}
        for slot, _, _ in self.pairs:
            held[f"d{slot}"], held[f"y{slot}"] = self.d[slot], self.y[slot]
        if self.inverse is not None:
            held["inverse"] = self.inverse
        return held

    def restore(self, arrays: dict[str, np.ndarray], scale: float) -> None:
        """The inverse of :meth:`arrays`."""
        pairs = array_of(arrays, "pairs", (min(len(arrays["pairs"]), self.size), 3))
        self.pairs = [(int(slot), step, rho) for slot, step, rho in pairs.tolist()]
        self.scale = scale
        slots = [slot for slot, _, _ in self.pairs]
        if len(set(slots)) != len(slots) or not all(0 <= slot < self.size for slot in slots):
            raise ValueError("pairs must be of different slots")
        for slot in slots:
            for held, stored in ((self.d[slot], arrays[f"d{slot}"]), (self.y[slot], arrays[f"y{slot}"])):
                if stored.dtype != held.dtype or stored.shape != held.shape:
                    raise ValueError(f"the vectors of a pair must be {held.dtype} of shape {held.shape}")
                held[:] = stored
        if "inverse" in arrays:
            self.inverse = array_of(arrays, "inverse", self.d[0].shape).astype(np.float32)
            if not (np.isfinite(self.inverse) & (self.inverse > 0)).all():
                raise ValueError("inverse must be positive and finite")

    def apply(self, q: np.ndarray) -> None:
        """q = H q, in place."""
        alphas = []
        for slot, _, rho in reversed(self.pairs):
            alphas.append(alpha := rho * _core.vectors.dot(self.d[slot], q))
            _core.vectors.axpy(-alpha, self.y[slot], q)
        q *= np.float32(self.scale)
        if self.inverse is not None:
            q *= self.inverse
        for (slot, step, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            _core.vectors.axpy(step * alpha - rho * _core.vectors.dot(self.y[slot], q), self.d[slot], q)


class LBFGS(Solver):
    """L-BFGS with a Wolfe line search.

    Parameters
    ----------
    memory : int, optional
        Number of correction pairs. Default: 3, or 10 for models with at most 65,536 weights.
    warm_up : int, default=3
        Passes of stochastic gradient descent before the first iteration; 0 for none.

    References
    ----------
    .. [Liu1989] D. Liu and J. Nocedal. On the limited memory BFGS method for large scale optimization. Mathematical
       Programming 45, 1989.
    """

    name = "lbfgs"
    frees_constants = True
    default_max_iter = 500
    default_tol = 1e-4

    def __init__(self, memory: int | None = None, warm_up: int = 3) -> None:
        if memory is not None and memory < 1:
            raise ValueError(f"memory must be at least 1, got {memory}")
        check_count("warm_up", warm_up, 0)
        self.memory, self.warm_up = memory, warm_up

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a smooth loss and a smooth penalty."""
        _check_smooth(risk, self.name)
        if penalty.l1:
            raise ValueError(f"solver {self.name!r} needs a smooth penalty: use 'owlqn' or 'sgd' with l1 penalties")

    def minimize(
        self,
        risk: Risk,
        penalty: Penalty,
        C: float,
        w0: np.ndarray | None,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """See :class:`mercer.learning.Solver`."""
        cold = w0 is None or not w0.any()
        w = zeros(risk.n_weights)
        if not cold:
            w[:] = w0
        objective = _Objective(risk, penalty, C)
        g = zeros(len(w))
        small = len(w) <= _SMALL
        memory = _Memory(self.memory or (10 if small else 3), len(w), rounded=not small)
        iteration, look = 0, 0  # look: the iteration after which the curvature is looked at

        def chosen() -> np.ndarray:
            return w if monitor.best_w is None else monitor.best_w

        try:
            if resumed is not None:  # the same numbers as if nothing had happened
                with monitor.restoring():
                    state_now, held = resumed
                    w[:], g[:] = (array_of(held, name, w.shape) for name in ("w", "g"))
                    objective.passes, iteration = count_of(state_now, "passes"), count_of(state_now, "iterations")
                    value, norm0 = number_of(state_now, "value"), number_of(state_now, "first_norm")
                    recent = deque((float(x) for x in state_now["recent"]), maxlen=_RECENT)
                    memory.restore(held, number_of(state_now, "scale"))
                    look = count_of(state_now, "look")
            else:
                norm0 = objective.norm_at_zero(g)
                if cold and self.warm_up and max_iter and isinstance(getattr(risk, "loss", None), Log):
                    w = warm_up(risk, penalty, C, self.warm_up, random_state)
                    objective.passes += self.warm_up
                    look = 1
                elif max_iter:
                    look = 0 if w.any() else _ANEW
                    objective.precondition(memory, w, g)
                value = objective(w, g)
                recent = deque([value], maxlen=_RECENT)
            pseudo = objective.pseudo_gradient(w, g)
            norm = _norm(pseudo)
            q = zeros(len(w), np.float32)  # a direction in the making, and −g while it is searched

            def converged() -> bool:
                if norm > tol * norm0:
                    return False
                flat = len(recent) == _RECENT and recent[0] - recent[-1] <= tol * abs(recent[-1])
                return flat or norm <= 0.01 * tol * norm0

            while iteration < max_iter and not converged():
                np.negative(pseudo, out=q, casting="unsafe")
                memory.apply(q)
                if penalty.l1:
                    q[q * pseudo >= 0] = 0.0
                blind = not memory.pairs
                slot = memory.free_slot()
                d = memory.d[slot]
                memory.write(q, d)
                slope = _core.vectors.dot(d, pseudo)
                if not slope < 0:  # rounding has spoilt the memory: begin it anew
                    memory.pairs.clear()
                    blind = True
                    np.negative(pseudo, out=q, casting="unsafe")
                    memory.write(q, d)
                    slope = _core.vectors.dot(d, pseudo)
                step = min(1.0, 1.0 / norm) if blind else 1.0
                np.negative(g, out=q, casting="unsafe")
                if penalty.l1:
                    start = w.copy()
                    searched = objective.projected_search(w, start, g, value, pseudo, d, step)
                else:
                    searched = objective.wolfe_search(w, g, value, d, slope, step)
                if searched is None:
                    if not blind:  # once more along the gradient before giving up
                        memory.pairs.clear()
                        value = objective(w, g)
                        pseudo = objective.pseudo_gradient(w, g)
                        continue
                    message = "no step lowers the objective further: the limit of floating-point accuracy"
                    return Result(chosen(), norm <= 1e3 * tol * norm0, message)
                step, value = searched
                q += g
                memory.write(q, memory.y[slot])
                if penalty.l1:  # projected: not along the direction
                    step = 1.0
                    np.subtract(w, start, out=q, casting="unsafe")
                    memory.write(q, d)
                memory.keep(slot, step)
                pseudo = objective.pseudo_gradient(w, g)
                norm = _norm(pseudo)
                recent.append(value)
                iteration += 1
                if iteration == look:
                    objective.precondition(memory, w, zeros(len(w)))
                stop = monitor.record(lambda: w, objective=value, gradient_norm=norm, passes=objective.passes)
                progress = {
                    "passes": objective.passes, "iterations": iteration, "value": value, "first_norm": norm0,
                    "recent": list(recent), "scale": memory.scale, "look": look,
                }  # fmt: skip
                monitor.save(progress, lambda: {"w": w, "g": g, **memory.arrays()})
                if stop:
                    return Result(chosen(), True, "stopped early: no better score on the held-out data")
        except KeyboardInterrupt:
            return Result(chosen(), False, "interrupted: these are the best weights so far", True)
        return Result.by_gradient(chosen(), converged(), norm / max(norm0, 1e-300), tol, max_iter)


class OWLQN(LBFGS):
    """Orthant-wise L-BFGS, for penalties with an ℓ1 part; otherwise the same as L-BFGS.

    References
    ----------
    .. [Andrew2007] G. Andrew and J. Gao. Scalable training of L1-regularized log-linear models. ICML, 2007.
    """

    name = "owlqn"

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a smooth loss; accept any penalty."""
        _check_smooth(risk, self.name)


def _check_smooth(risk: Risk, name: str) -> None:
    loss = getattr(risk, "loss", None)
    if loss is not None and not loss.smooth:
        raise ValueError(f"solver {name!r} needs a smooth loss; for {loss.name!r} use 'auto', 'bmrm' or 'bcfw'")


class _Objective:
    """F and the gradient of its smooth part, counted; and the searches along a direction.

    The searches move w and g in place: there is one weight vector and one gradient.
    """

    def __init__(self, risk: Risk, penalty: Penalty, C: float) -> None:
        self.risk, self.penalty, self.C = risk, penalty, C
        self.passes = 0

    def __call__(self, w: np.ndarray, g: np.ndarray) -> float:
        """F(w); the gradient of the smooth part goes to g."""
        self.passes += 1
        value, _ = self.risk.value_and_gradient(w, g)
        g *= self.C
        if self.penalty.l2:
            _core.vectors.axpy(self.penalty.l2, self.penalty.charged(w), self.penalty.charged(g))
        return self.C * value + self.penalty.value(w)

    def precondition(self, memory: _Memory, w: np.ndarray, g: np.ndarray) -> None:
        """Gives the memory the curvature at w, if there is an estimate of it; g is overwritten."""
        curvature = getattr(self.risk, "curvature", None)
        if curvature is None or self.penalty.l1 or not curvature(w, g):
            return
        self.passes += 1
        g *= self.C
        self.penalty.charged(g)[:] += self.penalty.l2
        memory.precondition(g, 1e-3 * self.penalty.l2)

    def norm_at_zero(self, g: np.ndarray) -> float:
        """The (pseudo-)gradient's norm at w = 0, by which progress is measured; g is overwritten."""
        zero = zeros(len(g))
        self(zero, g)
        return _norm(self.pseudo_gradient(zero, g))

    def pseudo_gradient(self, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The subgradient of F of least norm; g itself without ℓ1."""
        l1 = self.penalty.l1
        if not l1:
            return g
        shrunk = np.where(g > l1, g - l1, np.where(g < -l1, g + l1, 0.0))
        pseudo = np.where(w != 0, g + l1 * np.sign(w), shrunk)
        uncharged = slice(len(w) - self.penalty.free, None)
        pseudo[uncharged] = g[uncharged]
        return pseudo

    def wolfe_search(
        self, w: np.ndarray, g: np.ndarray, value: float, d: np.ndarray, slope: float, step: float
    ) -> tuple[float, float] | None:
        """A step with sufficient decrease (1e-4) and flattened slope (0.9), by expansion and safeguarded interpolation.

        Returns (step, value) with w and g there; None, with w as it was, if there is no such step.
        """
        low, high, at = 0.0, np.inf, 0.0
        low_value, low_slope = value, slope
        noise = 1e-13 * max(1.0, abs(value))  # differences of objectives below this are rounding
        for _ in range(30):
            _core.vectors.axpy(step - at, d, w)
            at = step
            try:
                new_value = self(w, g)
            except KeyboardInterrupt:  # a trial point may be far worse than where the search began
                _core.vectors.axpy(-at, d, w)
                raise
            except ValueError:  # scores beyond the range of floating point: far too long a step
                new_value = np.inf
            new_slope = _core.vectors.dot(d, g) if np.isfinite(new_value) else np.inf
            if not new_value <= value + 1e-4 * step * slope + noise:
                # the minimum of the parabola through (low value, low slope) and the new value
                high, width = step, step - low
                curvature = new_value - low_value - low_slope * width
                guess = low - 0.5 * low_slope * width**2 / curvature if curvature > 0 else 0.5 * (low + step)
                step = min(max(guess, low + 0.1 * width), low + 0.5 * width)
            elif new_slope < 0.9 * slope:
                low, low_value, low_slope = step, new_value, new_slope
                step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
            else:
                return at, new_value
            if high - low < 1e-14 * max(1.0, low):
                break
        _core.vectors.axpy(-at, d, w)
        return None

    def projected_search(
        self,
        w: np.ndarray,
        start: np.ndarray,
        g: np.ndarray,
        value: float,
        pseudo: np.ndarray,
        d: np.ndarray,
        step: float,
    ) -> tuple[float, float] | None:
        """Backtracking over points projected onto the orthant of the start (of −pseudo-gradient where that is 0)."""
        charged = self.penalty.charged(w)
        orthant = np.where(charged != 0, np.sign(charged), -np.sign(self.penalty.charged(pseudo))).astype(np.int8)
        for _ in range(40):
            w[:] = start
            _core.vectors.axpy(step, d, w)
            charged[charged * orthant <= 0] = 0.0
            try:
                new_value = self(w, g)
            except KeyboardInterrupt:
                w[:] = start
                raise
            decrease = _core.vectors.dot(pseudo, w) - _core.vectors.dot(pseudo, start)
            if decrease < 0 and new_value <= value + 1e-4 * decrease:
                return step, new_value
            step *= 0.5
        w[:] = start
        return None


def _norm(x: np.ndarray) -> float:
    return float(np.sqrt(_core.vectors.dot(x, x)))
