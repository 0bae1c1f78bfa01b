"""Cutting planes for structured margins.

1-slack: one slack for all examples and one plane Σ_i plane_i per iteration, so the number of planes does not grow with
the data. Earlier planes of the examples are cached. Their best combination is tried first, and the search over outputs
(the oracle) runs only when it no longer cuts enough.

n-slack: one slack per example. Every violated plane joins its example's working set, and the dual over all working sets
is solved one example at a time. The bounds of a relative margin are a second kind of planes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import _core
from mercer._validation import check_choice
from mercer.learning.checkpoint import array_of, count_of
from mercer.learning.losses import RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Resumed, Solver
from mercer.learning.solvers.bundle import Bundle
from mercer.learning.solvers.certified import Best, check_planes, check_ridge, named, part_of

_KEPT = 5  # planes of an example in the cache of the 1-slack form
_SWEEPS = 20  # over the working sets, at most, before searching again
_MAX_IDLE = 100  # visits after which a plane without weight is dropped


class WorkingSets:
    """The working sets of all examples, in the compiled core, with the weights of their multipliers."""

    def __init__(self, risk: Risk, weight: float) -> None:
        self.risk, self.weight = risk, weight
        self.power = getattr(risk.loss, "power", 1)
        self.bound = getattr(risk.loss, "B", np.inf)
        self.planes = _core.planes.Planes(risk.n_examples, risk.n_weights, np.full(risk.n_examples, weight), self.power)
        self.w = np.zeros(risk.n_weights)
        self.everyone = np.arange(risk.n_examples)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {"w": self.w, **self.planes.state()}

    def resume(self, arrays: dict[str, np.ndarray]) -> None:
        """The inverse of :meth:`arrays`."""
        self.w = array_of(arrays, "w", self.w.shape)
        kept_arrays = {name: np.ascontiguousarray(x) for name, x in arrays.items() if name != "w"}
        self.planes.restore(**kept_arrays)
        a = kept_arrays["multipliers"]
        slopes = csr_array(
            (kept_arrays["values"], kept_arrays["indices"], kept_arrays["indptr"]), shape=(len(a), len(self.w))
        )
        most = (abs(slopes).T @ (a + 1e-3 * self.weight)).max(initial=0.0)
        if np.abs(slopes.T @ a - self.w).max(initial=0.0) > 1e-6 * most + 1e-12:
            raise ValueError("its weights are not those of its multipliers")

    def known(self, w: np.ndarray) -> float:
        """Return the lower bound on C Σ loss at w from the planes found so far."""
        values = np.empty(len(self.everyone))
        self.planes.highest(w, values, np.zeros(len(w)))
        return self.loss(values)

    @property
    def dual(self) -> float:
        """Return the dual value of the multipliers."""
        return self.planes.linear - self.planes.quadratic - 0.5 * float(self.w @ self.w)

    def search(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, Any, np.ndarray]:
        """Find the highest planes at w and add them to the working sets."""
        values, slopes, offsets = self.risk.oracle(w, examples)
        blocks = self.everyone if examples is None else self.everyone[examples]
        self.add(blocks, slopes, offsets, w)
        if examples is None and not self.risk.loss.exact:
            known = np.empty(len(values))
            self.planes.highest(w, known, np.zeros(len(w)))
            values = np.maximum(values, known)
        return values, slopes, offsets

    def add(self, blocks: np.ndarray, slopes: Any, offsets: np.ndarray, w: np.ndarray, bound: bool = False) -> int:
        """Add one plane per example; return the number of new planes."""
        return self.planes.add(
            np.ascontiguousarray(blocks, dtype=np.int64),
            slopes.indptr.astype(np.int64),
            slopes.indices.astype(np.int64),
            slopes.data.astype(float),
            np.asarray(offsets, dtype=float),
            bound,
            w,
        )

    def add_bounds(self, w: np.ndarray, tol: float, examples: slice | None = None) -> tuple[float, int]:
        """Add planes for true outputs with a margin above B; return the largest margin and their number."""
        leads, slopes = self.risk.lowest(w, examples)
        blocks = self.everyone if examples is None else self.everyone[examples]
        over = np.flatnonzero(leads > self.bound * (1.0 + tol))
        if len(over):
            self.add(blocks[over], -slopes[over], np.full(len(over), -self.bound), w, True)
        return float(leads.max(initial=0.0)), len(over)

    def loss(self, values: np.ndarray) -> float:
        """Return C Σ loss of plane values."""
        return self.weight * float((values**self.power).sum())

    def primal(self, values: np.ndarray, w: np.ndarray) -> float:
        """Return ½‖w‖² + C Σ loss."""
        return 0.5 * float(w @ w) + self.loss(values)

    def solve(self, order: np.ndarray, max_idle: int = 0) -> None:
        """Take steps on the dual of the given examples."""
        self.planes.solve(np.ascontiguousarray(order, dtype=np.int64), self.w, max_idle)

    def feasible(self, best: Best, values: np.ndarray, lead: float) -> None:
        """Offer w to ``best``; if a margin exceeds the bound, scale w down (margins scale with w)."""
        if lead <= self.bound:
            best.offer(self.primal(values, self.w), self.w)
            return
        w = self.w * (self.bound / lead)
        best.offer(0.5 * float(w @ w) + self.weight * self.risk.value(w), w)


class CuttingPlane(Solver):
    """Cutting planes, for losses that are maxima of planes.

    Parameters
    ----------
    slack : {"one", "n"}, default="one"
        A relative margin is always solved with one slack per example.
    cache : bool, default=True
        With one slack: try the planes of earlier iterations before a new search.

    References
    ----------
    .. [Joachims2009] T. Joachims, T. Finley and C.-N. Yu. Cutting-plane training of structural SVMs. Machine Learning
       77, 2009.
    """

    name = "cutting-plane"
    default_max_iter = 2000
    default_tol = 1e-3

    def __init__(self, slack: str = "one", cache: bool = True) -> None:
        self.slack, self.cache = check_choice("slack", slack, ("one", "n")), cache

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a loss that is a maximum of planes, and ½‖w‖²."""
        check_ridge(penalty, self.name)
        check_planes(risk, self.name, bounds=True)

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
        best = Best(risk.n_weights)
        squared = getattr(risk.loss, "power", 1) == 2
        rounds = self._n_slack if self.slack == "n" or squared or isinstance(risk.loss, RelativeMargin) else self._one
        try:
            if resumed is not None:
                with monitor.restoring():
                    best.resume(resumed[1], monitor.source)
            elif not isinstance(risk.loss, RelativeMargin):
                best.start(risk, C / penalty.l2, w0)
            return rounds(risk, C / penalty.l2, penalty.l2, best, max_iter, tol, monitor, resumed)
        except KeyboardInterrupt:
            return best.interrupted(monitor)

    def _one(
        self,
        risk: Risk,
        weight: float,
        scale: float,
        best: Best,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        resumed: Resumed,
    ) -> Result:
        sets, bundle = WorkingSets(risk, weight), Bundle(risk.n_weights)
        values, w = np.empty(risk.n_examples), np.zeros(risk.n_weights)
        rounds, passes, cached, done = 0, 0, 0, False
        if resumed is not None:
            with monitor.restoring():
                rounds, passes, cached = (count_of(resumed[0], name) for name in ("rounds", "passes", "cached"))
                w = array_of(resumed[1], "w", w.shape)
                bundle.resume(part_of(resumed[1], "bundle"))
                sets.resume(part_of(resumed[1], "sets"))
            best.verify(risk, weight, max(sets.known(best.w), bundle.model(best.w)))

        def arrays() -> dict[str, np.ndarray]:
            parts = {**named("bundle", bundle.arrays()), **named("sets", sets.arrays())}
            return {"w": w, **best.arrays(), **parts}

        for round_ in range(rounds + 1, max_iter + 1):
            slope = np.zeros(risk.n_weights)
            fresh = True
            if self.cache and passes:
                value, offset = sets.planes.highest(w, values, slope)
                # Worth a round of its own if it closes a good part of what is open.
                needed = 0.5 * max(best.primal - best.dual, tol * abs(best.primal))
                fresh = value - bundle.model(w) <= needed
            if fresh:
                values_, slopes, offsets = sets.search(w) if self.cache else risk.oracle(w)
                sets.planes.trim(_KEPT)
                passes += 1
                best.offer(sets.primal(values_, w), w)
                slope, offset = weight * (slopes.T @ np.ones(len(offsets))), weight * float(offsets.sum())
                done = best.gap <= tol
            else:
                cached += 1
            if not done:
                bundle.add(-slope, offset)
                w, bound = bundle.solve()
                best.dual = max(best.dual, bound)
                done = best.gap <= tol
            figures = best.figures(scale, passes=passes, cached=cached, planes=bundle.size - 1)
            if monitor.record(lambda: best.w, **figures):
                return best.result(monitor, True, tol, max_iter, stopped=True)
            if done:
                break
            monitor.save({"rounds": round_, "passes": passes, "cached": cached}, arrays)
        return best.result(monitor, done, tol, max_iter)

    def _n_slack(
        self,
        risk: Risk,
        weight: float,
        scale: float,
        best: Best,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        resumed: Resumed,
    ) -> Result:
        sets = WorkingSets(risk, weight)
        before, done = 0, False
        if resumed is not None:
            with monitor.restoring():
                before = count_of(resumed[0], "passes")
                sets.resume(part_of(resumed[1], "sets"))
                best.match(sets.dual)
            best.verify(risk, weight, sets.known(best.w))
        for passes in range(before + 1, max_iter + 1):
            values, _, _ = sets.search(sets.w)
            lead = 0.0
            if np.isfinite(sets.bound):
                lead, _ = sets.add_bounds(sets.w, 0.1 * tol)
            sets.feasible(best, values, lead)
            done = best.gap <= tol
            if not done:
                open_ = max(best.primal - best.dual, 0.0) if np.isfinite(best.dual) else np.inf
                for _ in range(_SWEEPS):
                    sets.solve(sets.everyone, _MAX_IDLE)
                    if sets.planes.residual(sets.w) <= 0.3 * min(open_, best.primal - sets.dual):
                        break
                best.dual = max(best.dual, sets.dual)
                done = best.gap <= tol
            if monitor.record(lambda: best.w, **best.figures(scale, passes=passes, planes=sets.planes.count)):
                return best.result(monitor, True, tol, max_iter, stopped=True)
            if done:
                break
            monitor.save({"passes": passes}, lambda: {**best.arrays(), **named("sets", sets.arrays())})
        return best.result(monitor, done, tol, max_iter)
