"""Bundle method for regularised risk minimisation (BMRM): any convex risk, by cutting planes.

    R(w) ≥ max_j b_j + ⟨s_j, w⟩,   s_j = ∇R(w_j),  b_j = R(w_j) − ⟨s_j, w_j⟩
    w_{t+1} = argmin ½‖w‖² + max_j (b_j + ⟨s_j, w⟩),   dual: max_{a in simplex} ⟨b, a⟩ − ½ ‖Σ a_j s_j‖²

R is C times the summed loss. The lower bound never falls, so the gap is certified. If the new point is no better than
the best one, a second plane is taken between the two, where their known planes intersect (line search): it cuts near
the minimum.

A mostly smooth risk (the hybrid loss) has few kinks and much curvature, which planes do not model. For such a risk,
quasi-Newton steps on ½‖w‖² + R come first, as if R had a gradient everywhere. Every visited point gives a plane, so the
bound is nearly tight at the end, and a few bundle iterations certify it. (Some printed versions of the algorithm update
inside the loop over examples and stop at a small risk; both are errors.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.learning.checkpoint import array_of, count_of
from mercer.learning.losses import PlaneLoss, RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.qp.simplex import simplex_qp
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_ridge, named, part_of

_MAX_IDLE = 30
_PATIENCE, _SHARE = 15, 0.3  # quasi-Newton steps end when so many in a row bring less than this share of the gap


class Bundle:
    """Planes below a nonnegative risk, their Gram matrix and the multipliers of the last program."""

    def __init__(self, n_weights: int) -> None:
        self.slopes = np.zeros((8, n_weights))
        # The plane 0 comes first: losses are not negative.
        self.offsets, self.a, self.idle = np.zeros(1), np.ones(1), np.zeros(1, int)
        self.gram = np.zeros((1, 1))

    @property
    def size(self) -> int:
        """Return the number of planes, including the plane 0."""
        return len(self.offsets)

    def add(self, slope: np.ndarray, offset: float) -> None:
        """Add a plane, and drop planes that have had no weight for long."""
        keep = (self.idle < _MAX_IDLE) | (np.arange(self.size) == 0)
        if not keep.all():
            kept = np.flatnonzero(keep)
            for new, old in enumerate(kept.tolist()):  # row by row: a second matrix costs more than the products below
                if new != old:
                    self.slopes[new] = self.slopes[old]
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
        """Return the minimiser of the model, and its lower bound."""
        self.a = simplex_qp(self.gram, self.offsets, 1.0, self.a)
        self.idle = np.where(self.a > 0, 0, self.idle + 1)
        w = -(self.a @ self.slopes[: self.size])
        return w, float(self.offsets @ self.a) - 0.5 * float(w @ w)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for a checkpoint."""
        return {
            "slopes": self.slopes[: self.size],
            "offsets": self.offsets,
            "gram": self.gram,
            "multipliers": self.a,
            "idle": self.idle,
        }

    def resume(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state from :meth:`arrays`."""
        m, n = len(arrays["offsets"]), self.slopes.shape[1]
        self.slopes, self.gram = array_of(arrays, "slopes", (m, n)), array_of(arrays, "gram", (m, m))
        self.offsets, self.a = array_of(arrays, "offsets", (m,)), array_of(arrays, "multipliers", (m,))
        self.idle = array_of(arrays, "idle", (m,)).astype(int)
        if not m or self.offsets[0] or self.slopes[0].any():
            raise ValueError("the first plane of the bundle must be 0")
        if (self.a < 0).any() or abs(self.a.sum() - 1.0) > 1e-6:
            raise ValueError("the multipliers of the bundle must be shares of 1")
        products = self.slopes @ self.slopes.T
        if np.abs(products - self.gram).max() > 1e-6 * np.diagonal(products).max() + 1e-12:
            raise ValueError("gram is not that of the slopes")

    def model(self, w: np.ndarray) -> float:
        """Return the highest plane at w."""
        return float((self.offsets + self.slopes[: self.size] @ w).max())


class BMRM(Solver):
    """Bundle method, for every convex loss and every structure.

    Parameters
    ----------
    line_search : bool, default=True
    descent : bool, optional
        Whether to start with quasi-Newton steps. Default: for losses that are neither smooth nor maxima of planes (the
        hybrid).

    References
    ----------
    .. [Teo2010] C. H. Teo, S. V. N. Vishwanathan, A. Smola and Q. Le. Bundle methods for regularized risk minimization.
       Journal of Machine Learning Research 11, 2010.
    """

    name = "bmrm"
    default_max_iter = 1000
    default_tol = 1e-3

    def __init__(self, line_search: bool = True, descent: bool | None = None) -> None:
        self.line_search, self.descent = line_search, descent

    def _descends(self, risk: Any) -> bool:
        if self.descent is not None:
            return self.descent
        loss = getattr(risk, "loss", None)
        return loss is not None and not loss.smooth and not isinstance(loss, PlaneLoss)

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a convex loss without a bound, and ½‖w‖²."""
        check_ridge(penalty, self.name)
        if isinstance(getattr(risk, "loss", None), RelativeMargin):
            raise ValueError("solver 'bmrm' takes no bound on margins; use 'cutting-plane' or 'bcfw'")
        if not getattr(getattr(risk, "loss", None), "convex", True):
            raise ValueError(f"solver 'bmrm' needs a convex loss, and {risk.loss.name!r} is not convex; use 'lbfgs'")

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
        weight, bundle, best = C / penalty.l2, Bundle(risk.n_weights), Best(risk.n_weights)
        passes, used, done = 0, 0, False
        recent: deque[float] = deque(maxlen=_PATIENCE)
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

        def certify() -> np.ndarray:
            nonlocal done
            w, bound = bundle.solve()
            best.dual = max(best.dual, bound)
            done = best.gap <= tol
            return w

        def record() -> bool:
            return monitor.record(lambda: best.w, **best.figures(penalty.l2, passes=passes, planes=bundle.size - 1))

        def save(descending: bool) -> None:
            monitor.save(
                {"used": used, "passes": passes, "descending": descending, "recent": list(recent)},
                lambda: {
                    **best.arrays(),
                    **named("bundle", bundle.arrays()),
                    **({} if held is None else {"held.slope": held[0], "held.value": np.array([held[1]])}),
                },
            )

        def after_step() -> tuple[bool, bool]:
            nonlocal used
            used += 1
            certify()
            recent.append(best.primal)
            # At kinks quasi-Newton steps hardly move: what is open is then for planes to close.
            stuck = len(recent) == _PATIENCE and recent[0] - recent[-1] < _SHARE * (best.primal - best.dual)
            stopped = record()
            save(not stuck)
            return stopped, done or stuck

        try:
            w = np.zeros(risk.n_weights) if w0 is None else np.array(w0, dtype=float)
            descending = self._descends(risk) and max_iter > 1
            if resumed is not None:
                with monitor.restoring():
                    numbers, arrays = resumed
                    best.resume(arrays, monitor.source)
                    bundle.resume(part_of(arrays, "bundle"))
                    if "held.slope" in arrays:
                        held = array_of(arrays, "held.slope", w.shape), float(array_of(arrays, "held.value", (1,))[0])
                    passes, used = count_of(numbers, "passes"), count_of(numbers, "used")
                    descending = bool(numbers["descending"])
                    recent.extend(map(float, numbers["recent"]))
                best.verify(risk, weight, bundle.model(best.w))
                w = best.w.copy()  # quasi-Newton steps begin anew there; the bundle knows of no point
            if descending and used < max_iter // 2:
                if _descend(visit, w, max_iter // 2 - used, tol, after_step):
                    return best.result(monitor, True, tol, max_iter, stopped=True)
            elif resumed is None:
                visit(w)
            while used < max_iter and not done:
                used += 1
                w = certify()
                if not done:
                    center, at_center, primal = best.w, held, best.primal
                    slope, value = visit(w)
                    if self.line_search and best.primal >= primal and at_center is not None:
                        step = _crossing(center, at_center, w, (slope, value))
                        if 1e-3 < step < 1 - 1e-3:
                            visit(center + step * (w - center))
                if record():
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if not done:
                    save(descending=False)
        except KeyboardInterrupt:
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)


def _descend(
    visit: Callable[[np.ndarray], tuple[np.ndarray, float]],
    w: np.ndarray,
    most: int,
    tol: float,
    after_step: Callable[[], tuple[bool, bool]],
) -> bool:
    """L-BFGS on ½‖w‖² + R from w; returns whether the monitor stopped it."""
    from scipy.optimize import minimize  # here, as few need it and it takes a while to load

    stopped = False

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        slope, value = visit(w)
        return 0.5 * float(w @ w) + value, w + slope

    def after(_: np.ndarray) -> None:
        nonlocal stopped
        stopped, done = after_step()
        if stopped or done:
            raise StopIteration

    options = {"maxiter": most, "maxfun": 3 * most, "maxcor": 20, "ftol": 1e-4 * tol, "gtol": 0.0}
    minimize(objective, w, jac=True, method="L-BFGS-B", callback=after, options=options)
    return stopped


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
