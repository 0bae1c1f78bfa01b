"""Maximum entropy discrimination with a Laplace prior: a bundle method for a non-quadratic penalty.

With independent Laplace priors of rate s, the posterior of maximum entropy discrimination is Q(w) ∝ P(w) exp⟨η, w⟩,
η = Σ α ΔΦ. Its mean is μ = 2 η / (s² − η²), and the divergence KL(Q ‖ P), as a function of the mean, is

    Ω(μ) = Σ_k √(1 + s² μ_k²) − 1 + log [2 (√(1 + s² μ_k²) − 1) / (s² μ_k²)],   Ω*(η) = −Σ_k log(1 − η_k² / s²),

near ½ (s²/2) μ² for small weights and s |μ| for large ones. min Ω(μ) + C · risk(μ) is solved by planes below the risk:

    max_{a in simplex} ⟨b, a⟩ − Ω*(−Σ_j a_j s_j)

Ω is concave in μ², so its quadratic upper bound at the last point, ½ Σ v_k μ_k² with v_k = η_k / μ_k, gives a sequence
of quadratic programs over the simplex whose values decrease to the optimum of the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._validation import check_positive
from mercer.learning.losses import RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.qp.simplex import simplex_qp
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.certified import Best, check_ridge

_INNER = 200  # quadratic programs of one model at most
_MAX_IDLE = 30  # rounds after which a plane without a multiplier makes room


class LaplaceDiscrimination(Solver):
    """Minimise Ω(w) + C · risk(w), with Ω the divergence from a Laplace prior of standard deviation ``scale``.

    Parameters
    ----------
    scale : float, default=1.0
        Standard deviation of the prior of each weight: the rate is √2 / scale.
    """

    name = "laplace-discrimination"
    default_max_iter = 1000
    default_tol = 1e-3

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = check_positive("scale", scale)

    @property
    def rate(self) -> float:
        """s."""
        return float(np.sqrt(2.0) / self.scale)

    def natural(self, mean: np.ndarray) -> np.ndarray:
        """Return η of the posterior with this mean, between −s and s."""
        square = (self.rate * mean) ** 2
        root = np.sqrt(1.0 + square)
        return self.rate**2 * mean / (root + 1.0)

    def divergence(self, mean: np.ndarray) -> float:
        """Return KL(Q ‖ P) of the posterior with this mean."""
        root = np.sqrt(1.0 + (self.rate * mean) ** 2)
        return float((root - 1.0 - np.log1p(0.5 * (root - 1.0))).sum())

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require a convex loss without a bound; the penalty stands for the prior."""
        check_ridge(penalty, self.name)
        if isinstance(getattr(risk, "loss", None), RelativeMargin):
            raise ValueError("maximum entropy discrimination takes no bound on margins: use the loss 'hinge'")
        if not getattr(getattr(risk, "loss", None), "convex", True):
            raise ValueError(
                f"maximum entropy discrimination needs a convex loss, and {risk.loss.name!r} is not convex"
            )

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
        """See :class:`mercer.learning.Solver`. A resumed run begins at its best weights."""
        best = Best(risk.n_weights)
        slopes, offsets = np.zeros((1, risk.n_weights)), np.zeros(1)  # losses are not negative
        a, idle = np.ones(1), np.zeros(1, int)
        w = np.zeros(risk.n_weights) if w0 is None else np.array(w0, dtype=float)
        if resumed is not None:
            with monitor.restoring():
                best.resume(resumed[1], monitor.source)
                w, best.dual = best.w.copy(), -np.inf
        done = False
        try:
            for used in range(max_iter):
                value, slope = risk.value_and_gradient(w)
                best.offer(self.divergence(w) + C * value, w)
                keep = (idle < _MAX_IDLE) | (np.arange(len(a)) == 0)
                slopes = np.concatenate([slopes[keep], C * slope[None]])
                offsets = np.append(offsets[keep], C * (value - float(slope @ w)))
                a, idle = np.append(a[keep], 0.0), np.append(idle[keep], 0)
                w, bound, a = self._model(slopes, offsets, a, best.w, tol)
                idle = np.where(a > 0, 0, idle + 1)
                best.dual = max(best.dual, bound)
                done = best.gap <= tol
                stopped = monitor.record(lambda: best.w, **best.figures(1.0, planes=len(a) - 1))
                if stopped:
                    return best.result(monitor, True, tol, max_iter, stopped=True)
                if done:
                    break
                monitor.save({"used": used + 1}, best.arrays)
        except KeyboardInterrupt:
            return best.interrupted(monitor)
        return best.result(monitor, done, tol, max_iter)

    def _model(
        self, slopes: np.ndarray, offsets: np.ndarray, a: np.ndarray, start: np.ndarray, tol: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """The minimiser of Ω + the highest plane, a lower bound of its value, and the multipliers."""
        w, bound = start, -np.inf
        for _ in range(_INNER):
            inverse = (np.sqrt(1.0 + (self.rate * w) ** 2) + 1.0) / self.rate**2  # 1 / v
            a = simplex_qp((slopes * inverse) @ slopes.T, offsets, 1.0, a)
            eta = -(a @ slopes)
            w = inverse * eta
            value = self.divergence(w) + float((offsets + slopes @ w).max())
            bound = max(bound, self._bound(eta, float(offsets @ a)))
            if value - bound <= 0.1 * tol * max(abs(value), 1e-12):
                break
        return w, bound, a

    def _bound(self, eta: np.ndarray, linear: float) -> float:
        """The dual value; the multipliers are moved towards the plane 0 where η leaves the domain of Ω*."""
        largest = float(np.abs(eta).max(initial=0.0)) / self.rate
        share = min(1.0, 0.999999 / largest) if largest > 0 else 1.0
        return share * linear + float(np.log1p(-((share * eta / self.rate) ** 2)).sum())
