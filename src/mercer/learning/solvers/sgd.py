"""Stochastic gradient descent, one example per step, for the log loss.

    minimise  (1/n) Σ_i loss_i(w) + λ/2 ‖w‖² + λ₁ ‖w‖₁,   λ = l2 / (C n),  λ₁ = l1 / (C n)
    η_t = η₀ / (1 + η₀ λ t)

which has the minimiser of F(w) = penalty + C Σ loss. η₀ needs no tuning: a few rates are tried on a sample of the
examples, and the rate that lowers its objective most is used. The ℓ2 shrinkage of all weights is one number; the ℓ1
penalty of a weight is applied when its feature next occurs. The reported objective of an epoch sums each example's loss
before its step, so no extra pass is needed.

Without ℓ1 the result is a mean of the weights at the ends of the epochs, in which later ones count more (polynomial
decay, [Shamir2013]): it has a lower objective than the last weights, which are noisy. With ℓ1 the mean would have fewer
zeros, so the last weights are returned.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer import _core
from mercer.learning.checkpoint import array_of, count_of, number_of
from mercer.learning.losses import Log
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.online import Epochs, check_online, side_by_side

_RULE = 0
_SAMPLE = 256  # examples on which rates are tried
_DECAY = 3  # the weights after epoch k have the share (_DECAY + 1) / (k + _DECAY) in the mean
_SHARDS = 2  # parts of a warm-up's epochs; not the number of threads, on which the result must not depend


class SGD(Solver):
    """Stochastic gradient descent with an automatic step size.

    References
    ----------
    .. [Shamir2013] O. Shamir and T. Zhang. Stochastic gradient descent for non-smooth optimization: convergence results
       and optimal averaging schemes. ICML, 2013.
    """

    name = "sgd"
    online = True
    reads_examples = True
    default_max_iter = 50
    default_tol = 1e-4

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Require the log loss; accept any penalty."""
        check_online(risk, self.name)
        if not isinstance(risk.loss, Log):
            raise ValueError(f"solver 'sgd' minimises the log loss; the loss is {risk.loss.name!r}")

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
        # More data with each call (partial_fit): the penalty is shared by all examples so far.
        earlier = int(state["examples"]) if state else 0
        options = _options(risk, penalty, C, earlier)
        epochs = Epochs(risk, _RULE, w0, random_state, lean=not penalty.l1)
        done, previous, calm = 0, np.inf, 0
        mean = np.zeros(0 if penalty.l1 else risk.n_weights)

        def current() -> np.ndarray:
            return mean if mean.size and done else epochs.weights()

        def arrays() -> dict[str, np.ndarray]:
            return {**epochs.arrays(), "mean": mean}

        def chosen() -> np.ndarray:
            return current() if monitor.best_w is None else monitor.best_w

        try:
            if resumed is not None:
                with monitor.restoring():
                    epochs.from_state(*resumed)
                    rate, done = number_of(resumed[0], "rate"), count_of(resumed[0], "epochs")
                    previous, calm = number_of(resumed[0], "previous"), count_of(resumed[0], "calm")
                    mean[:] = array_of(resumed[1], "mean", mean.shape)
            elif state:
                rate = float(state["rate"])
                epochs.extra = state["extra"]
                epochs.state.step, epochs.state.l1_total = float(state["step"]), float(state["l1_total"])
            else:
                rate = _calibrate(risk, penalty, C, w0, epochs, options)
            message, converged = "", False
            while done < max_iter:
                loss, _ = epochs.run(epochs.shuffled(), rate=rate, **options)
                done += 1
                if mean.size:
                    share = (_DECAY + 1) / (done + _DECAY)
                    mean *= 1.0 - share
                    _core.vectors.axpy(share * epochs.state.scale, epochs.w, mean)
                objective = C * loss + penalty.value(epochs.weights())
                calm = calm + 1 if abs(previous - objective) <= tol * max(abs(objective), 1e-300) * 10 else 0
                previous = objective
                stop = monitor.record(current, objective=objective, passes=done, rate=rate)
                monitor.save(
                    {**epochs.to_state(), "rate": rate, "epochs": done, "previous": previous, "calm": calm},
                    arrays,
                )
                if stop:
                    message, converged = "stopped early: no better score on the held-out data", True
                    break
                if calm >= 2:
                    message, converged = "converged", True
                    break
        except KeyboardInterrupt:
            return Result(chosen(), False, "interrupted: these are the weights so far", True)
        if not converged:
            message = (
                f"stopped after max_iter={max_iter} epochs while the objective still changed by more than "
                f"{10 * tol:g} of itself: raise max_iter or tol, or use solver='lbfgs'"
            )
        kept = {
            "rate": rate,
            "step": epochs.state.step,
            "l1_total": epochs.state.l1_total,
            "extra": epochs.extra,
            "examples": earlier + risk.n_examples,
        }
        return Result(chosen(), converged, message, state=kept)


def _options(risk: Risk, penalty: Penalty, C: float, earlier: int = 0) -> dict[str, float]:
    # An example without positions makes no step: it must not take a share of the penalty that the steps pay.
    n = max(1, earlier + int(np.count_nonzero(risk.X.lengths)))
    options = {"l2": penalty.l2 / (C * n), "l1": penalty.l1 / (C * n)}
    # Without any ℓ2 the step size still has to fall: as it would with a penalty of C = 1.
    options["decay"] = options["l2"] or 1.0 / n
    return options


def warm_up(
    risk: Risk, penalty: Penalty, C: float, epochs: int, random_state: Any, w0: np.ndarray | None = None
) -> np.ndarray:
    """Return the weights after a few epochs from ``w0`` (default 0), as a start for another solver.

    The result is 0 if the structure has no compiled loop.

    An epoch of many examples is split into two shards with their own weights, which are averaged at its end. Two
    threads can then share the work, and the objective falls equally fast. (With ℓ1 there is one shard, because the mean
    has too few zeros.) Without a ``random_state`` the order of the examples is fixed, so the result is reproducible.
    """
    if not risk.at_hand:
        return risk.warm_up(penalty, C, epochs, random_state)  # type: ignore[attr-defined]
    if not getattr(risk.structure, "quick_online", False) or not risk.n_examples:
        return np.zeros(risk.n_weights)
    n_shards = _SHARDS if risk.n_examples >= 2 * _SHARDS * _SAMPLE and not penalty.l1 else 1
    seed = 0 if random_state is None else random_state
    shards = [Epochs(risk, _RULE, w0, seed, lean=not penalty.l1) for _ in range(n_shards)]
    first, *others = shards
    options = _options(risk, penalty, C)
    options["rate"] = _calibrate(risk, penalty, C, w0, first, options)
    for _ in range(epochs):
        orders = np.array_split(first.shuffled(), n_shards)
        side_by_side(
            risk.structure.threads,
            [partial(shard.run, order, **options) for shard, order in zip(shards, orders, strict=True)],
        )
        if others:
            first.w *= first.state.scale / n_shards
            for shard in others:
                _core.vectors.axpy(shard.state.scale / n_shards, shard.w, first.w)
            for shard in others:
                shard.w[:] = first.w
            for shard in shards:
                shard.state.scale = 1.0
    first.w *= first.state.scale
    return first.w


def _calibrate(
    risk: Risk, penalty: Penalty, C: float, w0: np.ndarray | None, epochs: Epochs, options: dict[str, float]
) -> float:
    """The rate that lowers the objective of a sample most in one pass, by doubling and halving from a first guess."""
    sample = epochs.shuffled()[:_SAMPLE]
    share = len(sample) / max(1, risk.n_examples)
    threads = risk.structure.threads
    still = {"rate": 0.0, "decay": 0.0, "l2": 0.0, "l1": 0.0}
    known: dict[float, float] = {}

    def objective(rate: float) -> float:
        trial = Epochs(risk, _RULE, w0, 0, lean=not penalty.l1)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                trial.run(sample, rate=rate, **options)
                loss, _ = trial.run(sample, **still)
            except ValueError:  # the rate was so high that scores left the range of floating point
                return np.inf
            trial.w *= trial.state.scale
            value = C * loss + share * penalty.value(trial.w)
        return value if np.isfinite(value) else np.inf

    def objective_of(rate: float, *later: float) -> float:
        """The objective; where there are threads, those of rates that may be asked for later are found beside it."""
        if rate not in known:
            rates = (rate, *later)[:threads]
            known.update(zip(rates, side_by_side(threads, [partial(objective, r) for r in rates]), strict=True))
        return known[rate]

    # A wrong label set or an infeasible example must show here, not look like a high rate.
    Epochs(risk, _RULE, w0, 0, lean=True).run(sample, **still)
    rate = 0.1
    best = objective_of(rate, 2.0 * rate)
    for factor in (2.0, 0.5):
        improved = False
        while 1e-8 < rate * factor < 1e4:
            value = objective_of(rate * factor, rate * factor * factor)
            if not value < best:
                break
            rate, best, improved = rate * factor, value, True
        if improved:
            break
    return rate
