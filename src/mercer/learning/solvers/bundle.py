"""Bundle method for regularised risk minimisation (BMRM): any convex risk, by planes below it (spec 000 S51).

    R(w) ≥ max_j b_j + ⟨s_j, w⟩,   s_j = ∇R(w_j),  b_j = R(w_j) − ⟨s_j, w_j⟩
    w_{t+1} = argmin ½‖w‖² + max_j (b_j + ⟨s_j, w⟩),   dual: max_{a in simplex} ⟨b, a⟩ − ½ ‖Σ a_j s_j‖²

R is C times the summed loss. The lower bound never falls, so the gap is certified. Where the new point is no better
than the best one, a second plane is taken between the two, where the planes known of each meet (line search): it cuts
where the minimum is. (The printed algorithm updates inside the loop over examples and stops at a small risk: both
wrong.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.learning.losses import RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.qp import simplex_qp
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_ridge

_MAX_IDLE = 30


class Bundle:
    """Planes below a risk of value at least 0, their Gram matrix and the multipliers of the last program."""

    def __init__(self, n_weights: int) -> None:
        self.slopes = np.zeros((8, n_weights))
        # The plane 0 comes first: losses are not negative.
        self.offsets, self.a, self.idle = np.zeros(1), np.ones(1), np.zeros(1, int)
        self.gram = np.zeros((1, 1))

    @property
    def size(self) -> int:
        """Number of planes, the plane 0 included."""
        return len(self.offsets)

    def add(self, slope: np.ndarray, offset: float) -> None:
        """One more plane; those that long had no weight make room."""
        keep = (self.idle < _MAX_IDLE) | (np.arange(self.size) == 0)
        if not keep.all():
            kept = np.flatnonzero(keep)
            self.slopes[: len(kept)] = self.slopes[kept]
            self.offsets, self.a, self.idle = self.offsets[kept], self.a[kept], self.idle[kept]
            self.gram = self.gram[np.ix_(kept, kept)]
        m = self.size
        if m == len(self.slopes):
            self.slopes = np.concatenate([self.slopes, np.empty((max(8, m // 2), self.slopes.shape[1]))])
        self.slopes[m] = slope
        products = self.slopes[: m + 1] @ slope
        gram = np.empty((m + 1, m + 1))
        gram[:m, :m], gram[m], gram[:, m] = self.gram, products, products
        self.gram, self.offsets = gram, np.append(self.offsets, offset)
        self.a, self.idle = np.append(self.a, 0.0), np.append(self.idle, 0)

    def solve(self) -> tuple[np.ndarray, float]:
        """The minimiser of the model and the lower bound it proves."""
        self.a = simplex_qp(self.gram, self.offsets, 1.0, self.a)
        self.idle = np.where(self.a > 0, 0, self.idle + 1)
        w = -(self.a @ self.slopes[: self.size])
        return w, float(self.offsets @ self.a) - 0.5 * float(w @ w)

    def model(self, w: np.ndarray) -> float:
        """The highest plane at w."""
        return float((self.offsets + self.slopes[: self.size] @ w).max())


class BMRM(Solver):
    """Bundle method, for every convex loss and every structure.

    Parameters
    ----------
    line_search : bool, default=True
    """

    name = "bmrm"
    default_max_iter = 1000
    default_tol = 1e-3
    resumable = False

    def __init__(self, line_search: bool = True) -> None:
        self.line_search = line_search

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Any loss without a bound, ½‖w‖²."""
        check_ridge(penalty, self.name)
        if isinstance(getattr(risk, "loss", None), RelativeMargin):
            raise ValueError("solver 'bmrm' takes no bound on margins; use 'cutting-plane' or 'bcfw'")

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
        """See :class:`Solver`."""
        weight, bundle, best = C / penalty.l2, Bundle(risk.n_weights), Best(risk.n_weights)
        passes, done = 0, False
        held: tuple[np.ndarray, float] | None = None  # slope and value of R at the best point

        def visit(w: np.ndarray) -> tuple[np.ndarray, float]:
            nonlocal passes, held
            value, slope = risk.value_and_gradient(w)
            passes += 1
            value, slope = weight * value, weight * slope
            if not getattr(getattr(risk, "loss", None), "exact", True):
                value = max(value, bundle.model(w))
            before = best.primal
            best.offer(0.5 * float(w @ w) + value, w)
            if best.primal < before:
                held = slope, value
            bundle.add(slope, value - float(slope @ w))
            return slope, value

        try:
            w = np.zeros(risk.n_weights) if w0 is None else np.array(w0, dtype=float)
            visit(w)
            for _ in range(max_iter):
                w, bound = bundle.solve()
                best.dual = max(best.dual, bound)
                done = best.gap <= tol
                if not done:
                    center, at_center, primal = best.w, held, best.primal
                    slope, value = visit(w)
                    if self.line_search and best.primal >= primal and at_center is not None:
                        step = _crossing(center, at_center, w, (slope, value))
                        if 1e-3 < step < 1 - 1e-3:
                            visit(center + step * (w - center))
                figures = best.figures(penalty.l2, passes=passes, planes=bundle.size - 1)
                if monitor.record(lambda: best.w, **figures):
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if done:
                    break
        except KeyboardInterrupt:
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)


def _crossing(u: np.ndarray, at_u: tuple[np.ndarray, float], v: np.ndarray, at_v: tuple[np.ndarray, float]) -> float:
    """Where ½‖w‖² plus the higher of two planes is least between u and v, as a share of the way."""
    d = v - u
    curve, linear = float(d @ d), float(u @ d)
    slopes = float(at_u[0] @ d), float(at_v[0] @ d)
    heights = at_u[1], at_v[1] - slopes[1]  # of both planes at u
    if curve == 0.0:
        return 0.0
    # Minima under each plane alone, else where they meet.
    for slope, height, other, rise in ((slopes[0], heights[0], heights[1], slopes[1]),
                                       (slopes[1], heights[1], heights[0], slopes[0])):  # fmt: skip
        step = min(1.0, max(0.0, -(linear + slope) / curve))
        if height + step * slope >= other + step * rise:
            return step
    return min(1.0, max(0.0, (heights[0] - heights[1]) / (slopes[1] - slopes[0])))
