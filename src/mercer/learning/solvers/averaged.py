"""Mistake-driven online learners with averaged weights.

    averaged perceptron  w += Φ(x, y) − Φ(x, ŷ)
    passive-aggressive   w += τ (Φ(x, y) − Φ(x, ŷ)),  τ = min(C, (score(ŷ) − score(y) + √errors) / ‖Φ(x, y) − Φ(x, ŷ)‖²)

with ŷ the best labelling under the current weights. They ignore the loss and the penalty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.learning.checkpoint import count_of, number_of
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers.base import Result, Solver
from mercer.learning.solvers.online import Epochs, check_online


class _MistakeDriven(Solver):
    online = True
    reads_examples = True
    default_max_iter = 20
    default_tol = 1e-4
    rule: int

    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Accept any loss and penalty: neither is used."""
        check_online(risk, self.name)

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
        """See :class:`~.Solver`. Stops when an epoch makes mistakes on at most the share ``tol`` of the parts."""
        epochs = Epochs(risk, self.rule, w0, random_state)
        done = 0
        if resumed is not None:
            with monitor.restoring():
                epochs.from_state(*resumed)
                done = count_of(resumed[0], "epochs")
        elif state:
            epochs.w, epochs.extra = state["w"], state["extra"]
            epochs.state.step = number_of(state, "step")
        parts = max(1, getattr(risk.X, "n_positions", len(risk.X)))
        message = f"all max_iter={max_iter} epochs done"
        try:
            for epoch in range(done, max_iter):
                loss, wrong = epochs.run(epochs.shuffled(), aggressiveness=C)
                stop = monitor.record(epochs.average, loss=loss, mistakes=wrong, passes=epoch + 1)
                monitor.save({**epochs.to_state(), "epochs": epoch + 1}, epochs.arrays)
                if stop or wrong <= tol * parts:
                    message = "stopped early: no better score on the held-out data" if stop else "no mistakes left"
                    break
        except KeyboardInterrupt:
            w = monitor.best_w if monitor.best_w is not None else epochs.average()
            return Result(w, False, "interrupted: these are the averaged weights so far", True)
        w = monitor.best_w if monitor.best_w is not None else epochs.average()
        kept = {"w": epochs.w, "extra": epochs.extra, "step": epochs.state.step}
        # A fixed number of epochs is the usual way to use these rules: running all of them is no failure.
        return Result(w, True, message, state=kept)


class AveragedPerceptron(_MistakeDriven):
    """The structured perceptron with averaged weights.

    References
    ----------
    .. [Collins2002] M. Collins. Discriminative training methods for hidden Markov models: theory and experiments with
       perceptron algorithms. EMNLP, 2002.
    """

    name = "averaged-perceptron"
    rule = 1


class PassiveAggressive(_MistakeDriven):
    """Passive-aggressive steps, bounded by C, with averaged weights.

    References
    ----------
    .. [Crammer2006] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer. Online passive-aggressive
       algorithms. Journal of Machine Learning Research 7, 2006.
    """

    name = "passive-aggressive"
    rule = 2
