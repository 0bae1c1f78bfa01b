"""Block-coordinate Frank-Wolfe on the dual of structured margins.

Each step visits one example. The output that violates its margin most becomes a plane of the example, and the dual is
maximised over all planes of the example (instead of a line search towards the newest plane). Planes are stored sparse
and dropped after they have had no weight for long. In addition,

- passes over cached planes alternate with passes that search;
- examples with a larger gap are visited more often (gap sampling);
- every few passes the gap is measured at fixed weights, over all examples and on all threads; the planes found there
  also serve as a step;
- the weighted average of the weights can be evaluated with the gap (averaging).

The gap P − D is certified: D is the dual value of the current multipliers, P the objective at the reported weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count
from mercer.exceptions import InfeasibleError
from mercer.learning.checkpoint import array_of, count_of, generator_from_state, generator_to_state, number_of
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_planes, check_ridge, named, part_of
from mercer.learning.solvers.cutting_plane import WorkingSets
from mercer.structures.base import check_random_seed

_MAX_IDLE = 10
_GROUPS = 32  # groups of examples to be visited, at least, where examples are searched together


class BCFW(Solver):
    """Block-coordinate Frank-Wolfe, for losses that are maxima of planes.

    Parameters
    ----------
    sampling : {"gap", "uniform"}, default="gap"
    cached : int, optional
        Passes over cached planes after each pass that searches. Default: 3 with a compiled search, else 10.
    average : bool, default=False
        Also evaluate the weighted average of the weights when the gap is measured. This takes one more pass, and pays
        off if there are few passes over cached planes.
    check_every : int, default=4
        Number of passes between measurements of the gap.

    References
    ----------
    .. [LacosteJulien2013] S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher. Block-coordinate Frank-Wolfe
       optimization for structural SVMs. ICML, 2013.
    """

    name = "bcfw"
    reads_examples = True
    default_max_iter = 1000
    default_tol = 1e-3

    def __init__(
        self, sampling: str = "gap", cached: int | None = None, average: bool = False, check_every: int = 4
    ) -> None:
        self.sampling = check_choice("sampling", sampling, ("gap", "uniform"))
        self.cached = None if cached is None else check_count("cached", cached, 0)
        self.check_every, self.average = check_count("check_every", check_every), average

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
        sets, best = WorkingSets(risk, C / penalty.l2), Best(risk.n_weights)
        random = np.random.default_rng(check_random_seed(random_state))
        cached = self.cached
        if cached is None:
            cached = 3 if hasattr(risk.structure, "ascent") else 10
        average, weights, done, before = np.zeros(risk.n_weights), 0.0, False, 0
        if resumed is not None:
            with monitor.restoring():
                numbers, kept_arrays = resumed
                best.resume(kept_arrays, monitor.source)
                sets.resume(part_of(kept_arrays, "sets"))
                best.match(sets.dual)
                generator_from_state(random, numbers["random"])
                before, weights = count_of(numbers, "passes"), number_of(numbers, "weights")
                average = array_of(kept_arrays, "average", average.shape)

        def arrays() -> dict[str, np.ndarray]:
            return {"average": average, **best.arrays(), **named("sets", sets.arrays())}

        try:
            if resumed is not None:
                best.verify(risk, sets.weight, sets.known(best.w))
            elif not np.isfinite(sets.bound):
                best.start(risk, sets.weight, w0)
            for passes in range(before + 1, max_iter + 1):
                measures = passes % self.check_every == 0 or passes == max_iter
                if measures:
                    self._measure(sets, best, average, tol)
                    done = best.gap <= tol
                else:
                    self._visit(sets, self._order(sets, random, passes), tol)
                if not done:
                    # Measuring searches at one point and takes no step: that needs a pass over what was found.
                    for _ in range(max(cached, int(measures))):
                        sets.solve(random.permutation(sets.everyone), _MAX_IDLE)
                best.dual = max(best.dual, sets.dual)
                done = done or best.gap <= tol
                if self.average:
                    weights += passes
                    average += (passes / weights) * (sets.w - average)
                if monitor.record(
                    lambda: best.w if np.isfinite(best.primal) else sets.w,
                    **best.figures(penalty.l2, passes=passes, planes=sets.planes.count),
                ):
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if done:
                    break
                numbers = {"passes": passes, "weights": weights, "random": generator_to_state(random)}
                monitor.save(numbers, arrays)
        except KeyboardInterrupt:
            if not np.isfinite(best.primal):
                best.w = sets.w
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)

    def _order(self, sets: WorkingSets, random: np.random.Generator, passes: int) -> np.ndarray:
        """n visits: each example once, or in proportion to its gap."""
        n = len(sets.everyone)
        if self.sampling == "uniform" or passes == 1 or passes % 2 == 0:
            return random.permutation(n)
        gaps = sets.planes.gaps()
        total = gaps.sum()
        if total <= 0:
            return random.permutation(n)
        share = 0.1 / n + 0.9 * gaps / total
        counts = np.floor(np.cumsum(share) * n + random.random()).astype(int)  # systematic sampling
        order = np.repeat(sets.everyone, np.diff(np.concatenate([[0], counts])))
        return random.permutation(order)

    def _visit(self, sets: WorkingSets, order: np.ndarray, tol: float) -> None:
        ascent = None if isinstance(sets.risk, WeightedRisk) else getattr(sets.risk.structure, "ascent", None)
        if ascent is not None and not np.isfinite(sets.bound):
            total = ascent(sets.risk.loss, sets.risk.X, sets.risk.y, order, sets.w, sets.planes, _MAX_IDLE)
            if total is not None:
                if not np.isfinite(total):
                    raise InfeasibleError(_first_infeasible(sets))
                return
        for group in self._groups(sets, order):
            sets.search(sets.w, group)
            if np.isfinite(sets.bound):
                sets.add_bounds(sets.w, 0.1 * tol, group)
            sets.solve(sets.everyone[group], _MAX_IDLE)

    def _groups(self, sets: WorkingSets, order: np.ndarray) -> list[slice]:
        """What to search at the same weights: neighbours, at every size-th visit to one of them, and at the first."""
        n = len(sets.everyone)
        size = max(1, min(getattr(sets.risk.structure, "searched_together", 1), n // _GROUPS))
        if size == 1:
            return [slice(i, i + 1) for i in order.tolist()]
        visited = order // size
        seen = np.zeros(-(-n // size), int)
        groups = []
        for g in visited.tolist():
            if seen[g] % size == 0:
                groups.append(slice(g * size, min((g + 1) * size, n)))
            seen[g] += 1
        return groups

    def _measure(self, sets: WorkingSets, best: Best, average: np.ndarray, tol: float) -> None:
        if self.average and not np.isfinite(sets.bound):
            best.offer(0.5 * float(average @ average) + sets.weight * sets.risk.value(average), average)
        values, _, _ = sets.search(sets.w)
        lead = sets.add_bounds(sets.w, 0.1 * tol)[0] if np.isfinite(sets.bound) else 0.0
        sets.feasible(best, values, lead)
        best.dual = max(best.dual, sets.dual)


def _first_infeasible(sets: WorkingSets) -> int:
    """The first example without a finite loss, for the message."""
    try:
        sets.risk.oracle(sets.w)
    except InfeasibleError as error:
        return error.example
    return 0
