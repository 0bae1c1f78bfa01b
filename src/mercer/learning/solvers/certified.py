"""Code shared by the margin solvers: checks, the certified gap, and the end of a run.

primal  P(w) = ½ ‖w‖² + C Σ_i loss_i(w)        dual  D ≤ min P        relative gap  (P − D) / |P|
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import ModelFileError
from mercer.learning.checkpoint import array_of
from mercer.learning.losses import PlaneLoss, RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.solvers.base import Result


def check_ridge(penalty: Penalty, name: str) -> None:
    """Require the penalty ½‖w‖², on which the dual of these methods is based."""
    if penalty.l1 or penalty.l2 <= 0:
        raise ValueError(f"solver {name!r} needs penalty='l2'")


def check_planes(risk: Any, name: str, *, bounds: bool = False) -> None:
    """Require a loss that is a maximum of planes."""
    loss = getattr(risk, "loss", None)
    if not isinstance(loss, PlaneLoss):
        given = "a smooth risk" if loss is None else repr(loss.name)
        raise ValueError(f"solver {name!r} works on hinge-like losses, not on {given}; use 'bmrm'")
    if not risk.n_examples:
        raise ValueError("nothing to learn from: there are no examples")
    risk.check_known()
    if isinstance(loss, RelativeMargin) and not bounds:
        raise ValueError(f"solver {name!r} takes no bound on margins; use 'cutting-plane' or 'bcfw'")


_ROUNDING = 1e-6  # share of P by which D may lie above it in a state that was saved
_SINGLE = 1e-3  # the same for values computed anew, where scores may be single precision


class Best:
    """The best primal and dual values so far, and their record in the history."""

    def __init__(self, n_weights: int) -> None:
        self.source: str | None = None  # the checkpoint that it went on from
        self.w = np.zeros(n_weights)
        self.primal, self.dual = np.inf, -np.inf

    def start(self, risk: Any, weight: float, w0: np.ndarray | None) -> None:
        """Take initial weights as the first candidate; a dual method cannot continue from them."""
        if w0 is not None:
            self.offer(0.5 * float(w0 @ w0) + weight * risk.value(w0), w0)

    def offer(self, primal: float, w: np.ndarray) -> None:
        """Take a point if it is better."""
        if not np.isfinite(primal):
            raise ValueError("scores left the range of floating point: scale the features, or lower C")
        if primal < self.primal:
            self.primal, self.w = primal, w.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for a checkpoint; a bound may be infinite."""
        return {"best.w": self.w, "best.bounds": np.array([self.primal, self.dual])}

    def resume(self, arrays: dict[str, np.ndarray], source: str) -> None:
        """Restore the state from :meth:`arrays`; ``source`` names the checkpoint in messages."""
        w = array_of(arrays, "best.w", self.w.shape)
        primal, dual = map(float, arrays["best.bounds"])
        if not (dual < np.inf and dual <= primal + _ROUNDING * abs(primal) + 1e-12):
            raise ValueError(f"best.bounds must be P and a D below it, found {primal:g} and {dual:g}")
        self.w, self.primal, self.dual, self.source = w, primal, dual, source

    def verify(self, risk: Any, weight: float, known: float = 0.0) -> None:
        """Check that the restored weights have the stored objective, and that it is not below the ``known`` planes.

        Losses whose worst output may be missed are not checked: their values are estimates.
        """
        if not getattr(getattr(risk, "loss", None), "exact", True):
            self.source = None
        if self.source is None or not np.isfinite(self.primal):
            return
        half = 0.5 * float(self.w @ self.w)
        primal = half + weight * risk.value_and_gradient(self.w)[0]
        slack = _SINGLE * max(abs(primal), abs(self.primal)) + _ROUNDING * weight * getattr(risk, "n_examples", 1)
        if not abs(primal - self.primal) <= slack:
            raise ModelFileError(
                f"{self.source}: the best weights had the objective {self.primal:g} and have {primal:g} now: "
                "the checkpoint belongs to another training; remove it or give another path"
            )
        if not half + known <= self.primal + slack:
            raise ModelFileError(f"{self.source}: the planes of the checkpoint lie above the loss")

    def match(self, dual: float) -> None:
        """Check that the restored multipliers have no better dual value than the best one."""
        if not dual <= self.dual + _ROUNDING * max(abs(self.dual), abs(dual)) + 1e-12:
            raise ValueError(f"its multipliers have the dual value {dual:g}, above the best of {self.dual:g}")

    @property
    def gap(self) -> float:
        """Return (P − D) / |P|, or 0 if both are 0.

        If D exceeds P by rounding, the gap is 0. A larger excess after a checkpoint means that the bound belongs to
        another problem. (Without a checkpoint it means that the worst outputs were missed, and P is an estimate.)
        """
        if not np.isfinite(self.primal) or not np.isfinite(self.dual):
            return np.inf
        if self.source is not None and self.dual > self.primal + _SINGLE * abs(self.primal) + 1e-12:
            raise ModelFileError(
                f"{self.source}: the checkpoint's dual value {self.dual:g} lies above the objective {self.primal:g}: "
                "it belongs to another training (or the worst outputs are missed); remove it or give another path"
            )
        return max(0.0, self.primal - self.dual) / max(abs(self.primal), 1e-300)

    def figures(self, scale: float, **more: float) -> dict[str, float]:
        """Return the values for the history; ``scale`` converts P and D to the caller's objective."""
        primal, dual = scale * self.primal, scale * self.dual
        return {"objective": primal, "primal": primal, "dual": dual, "gap": self.gap, **more}

    def result(
        self,
        monitor: Monitor,
        done: bool,
        tol: float,
        max_iter: int,
        *,
        stopped: bool = False,
        iterations: int | None = None,
    ) -> Result:
        """Return the result of a run; pass ``iterations`` if it differs from the recorded number."""
        w = monitor.best_w if monitor.best_w is not None else self.w
        if stopped:
            return Result(w, True, "stopped early: no better score on the held-out data", n_iter=iterations)
        if done:
            return Result(w, True, f"converged: relative gap {self.gap:.2g}", n_iter=iterations)
        limit = "" if iterations is not None and iterations < max_iter else "max_iter="
        advice = "raise max_iter or tol, or lower C" if limit else "the solver can do no better: raise tol, or lower C"
        return Result(
            w,
            False,
            f"stopped after {limit}{max_iter if limit else iterations} iterations at a relative gap of {self.gap:.2g} "
            f"(tol={tol:g}): {advice}",
            n_iter=iterations,
        )

    def interrupted(self, monitor: Monitor, *, iterations: int | None = None) -> Result:
        """Return the result of a run that Ctrl-C ended."""
        w = monitor.best_w if monitor.best_w is not None else self.w
        message = f"interrupted: these are the best weights so far (relative gap {self.gap:.2g})"
        return Result(w, False, message, True, n_iter=iterations)


def named(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of one part of a solver's state, with a prefix for their names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part_of(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays with this prefix: the inverse of :func:`named`."""
    return {name.removeprefix(f"{prefix}."): array for name, array in arrays.items() if name.startswith(f"{prefix}.")}
