"""Stochastic subgradient descent with Pegasos steps.

    w ← (1 − 1/t) w + (C n / t) slope_i,   so that   w_t = (C / epochs) Σ slopes met so far

After whole epochs every example has contributed the same number of planes, so their shares are feasible multipliers.
The dual value (C / epochs) Σ offsets − ½‖w‖² comes with the weights, and certifying the gap costs no more than
computing the objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.exceptions import InfeasibleError
from mercer.learning.checkpoint import array_of, count_of, generator_from_state, generator_to_state, number_of
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_planes, check_ridge
from mercer.structures.base import check_random_seed


class Subgradient(Solver):
    """Stochastic subgradient descent, one example per step, for losses that are maxima of planes."""

    name = "subgradient"
    default_max_iter = 200
    default_tol = 1e-3

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a loss that is a maximum of planes, not squared and without bound, and ½‖w‖²."""
        check_ridge(penalty, self.name)
        check_planes(risk, self.name)
        if getattr(risk.loss, "power", 1) != 1:
            raise ValueError("solver 'subgradient' takes no squared loss; use 'bcfw'")

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
        weight, n, best = C / penalty.l2, risk.n_examples, Best(risk.n_weights)
        random = np.random.default_rng(check_random_seed(random_state))
        total, steps, offsets = np.zeros(risk.n_weights), _core.chain.OnlineState(), 0.0  # w = steps.scale · total
        done, before = False, 0
        if resumed is not None:
            with monitor.restoring():
                numbers, arrays = resumed
                best.resume(arrays, monitor.source)
                generator_from_state(random, numbers["random"])
                total = array_of(arrays, "total", total.shape)
                before, offsets = count_of(numbers, "epochs"), number_of(numbers, "offsets")
                steps.step, steps.scale = number_of(numbers, "step"), number_of(numbers, "scale")
                best.match(offsets * steps.scale - 0.5 * steps.scale**2 * float(total @ total))
        try:
            if resumed is None:
                best.start(risk, weight, w0)
            else:
                best.verify(risk, weight)
            for epoch in range(before + 1, max_iter + 1):
                offsets += self._epoch(risk, weight * n, random.permutation(n), total, steps)
                w = total * steps.scale
                best.offer(0.5 * float(w @ w) + weight * risk.value(w), w)
                best.dual = max(best.dual, offsets * steps.scale - 0.5 * float(w @ w))
                done = best.gap <= tol
                if monitor.record(lambda: best.w, **best.figures(penalty.l2, passes=2 * epoch)):
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if done:
                    break
                monitor.save(
                    {
                        "epochs": epoch,
                        "offsets": offsets,
                        "step": steps.step,
                        "scale": steps.scale,
                        "random": generator_to_state(random),
                    },
                    lambda: {"total": total, **best.arrays()},
                )
        except KeyboardInterrupt:
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)

    @staticmethod
    def _epoch(risk: Risk, mass: float, order: np.ndarray, total: np.ndarray, steps: Any) -> float:
        """One step an example; returns mass · Σ offsets."""
        plain = risk.at_hand and not isinstance(risk, WeightedRisk)
        compiled = getattr(risk.structure, "subgradient", None) if plain else None
        if compiled is not None:
            epoch = compiled(risk.loss, risk.X, risk.y, order, total, mass, steps)
            if epoch is not None:
                if not np.isfinite(epoch[0]):
                    risk.oracle(total * steps.scale)  # names the example
                    raise InfeasibleError(int(order[0]))
                # Sequences without positions take a step of their own here, so that every example has one.
                steps.step += float((np.diff(risk.X.offsets) == 0).sum())
                steps.scale = 1.0 / max(1.0, steps.step)
                return float(epoch[1])
        offsets = 0.0
        for i in order.tolist():
            _, slope, offset = risk.oracle(total * steps.scale if steps.step else total, slice(i, i + 1))
            total[slope.indices] += mass * slope.data
            offsets += mass * float(offset[0])
            steps.step += 1.0
            steps.scale = 1.0 / steps.step
        return offsets
