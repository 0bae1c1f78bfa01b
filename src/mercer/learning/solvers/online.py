"""Code shared by the online solvers: epochs over shuffled examples, in the loop of the structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from mercer import _core
from mercer._threads import each
from mercer.exceptions import InfeasibleError
from mercer.learning.checkpoint import array_of, generator_from_state, generator_to_state, number_of
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.vectors import zeros
from mercer.structures.base import check_random_seed

# Examples handled by one compiled call: Python looks for Ctrl-C in between.
_BLOCK = 20_000
_scores_lock = Lock()  # a structure's score buffers are used by one thread at a time

Given = TypeVar("Given")


def side_by_side(threads: int, calls: list[Callable[[], Given]]) -> list[Given]:
    """Return the results of independent calls, on up to ``threads`` threads."""
    return each(lambda call: call(), calls, max(1, threads))


def check_online(risk: Risk, name: str) -> None:
    """Require a structure with an online loop, and equal example weights."""
    if isinstance(risk, WeightedRisk):
        raise ValueError(f"solver {name!r} takes no weights of examples (sample_weight); use 'auto'")
    if not hasattr(risk, "structure"):
        raise ValueError(f"solver {name!r} takes examples one by one, which {type(risk).__name__} has not; use 'auto'")


class Epochs:
    """The weights, the auxiliary vector and the counters of an online rule, with passes over the data.

    ``true_w = state.scale · w``; ``extra`` holds sums for averaging, or the ℓ1 penalty paid so far (``lean``: neither).
    """

    def __init__(self, risk: Risk, rule: int, w0: np.ndarray | None, random_state: Any, *, lean: bool = False) -> None:
        self.risk, self.rule = risk, rule
        self.w = zeros(risk.n_weights)
        if w0 is not None:
            self.w[:] = w0
        self.extra = zeros(0 if lean else risk.n_weights)
        self.state = _core.chain.OnlineState()
        self.random = np.random.Generator(np.random.PCG64(check_random_seed(random_state)))

    def run(self, order: np.ndarray, **options: float) -> tuple[float, int]:
        """Make one pass in the given order; return (summed loss, wrong labels)."""
        loss, wrong = 0.0, 0
        for block in _blocks(order):
            part, mistakes = self.risk.structure.online(
                self.rule, self.risk.X, self.risk.y, block, self.w, self.extra, self.state, **options
            )
            if np.isnan(part):
                raise ValueError("scores left the range of floating point: scale the features, or lower C")
            if not np.isfinite(part):
                raise InfeasibleError(self._infeasible(block))
            loss, wrong = loss + part, wrong + mistakes
        return loss, wrong

    def _infeasible(self, block: np.ndarray) -> int:
        """The first example of a block without a finite loss, for the message."""
        for i in np.sort(block):
            one = slice(int(i), int(i) + 1)
            structure = self.risk.structure
            with _scores_lock:
                theta = structure.scores(self.weights(), self.risk.X[one])
                value, _ = self.risk.loss.value_and_gradient(structure, theta, self.risk.y[one])
            if not np.isfinite(value).all():
                return int(i)
        return int(block[0])

    def shuffled(self) -> np.ndarray:
        """Return the examples in a new random order."""
        return self.random.permutation(self.risk.n_examples).astype(np.int64)

    def weights(self) -> np.ndarray:
        """Return the weights."""
        return self.w * self.state.scale

    def average(self) -> np.ndarray:
        """Return the mean of the weights over all steps."""
        return self.w - self.extra / (self.state.step + 1.0)

    def to_state(self) -> dict[str, Any]:
        """Return counters and random generator as plain data."""
        return {
            "scale": self.state.scale,
            "step": self.state.step,
            "l1_total": self.state.l1_total,
            "random": generator_to_state(self.random),
        }

    def from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore from :meth:`to_state`."""
        self.w, self.extra = array_of(arrays, "w", self.w.shape), array_of(arrays, "extra", self.extra.shape)
        self.state.scale, self.state.step = number_of(state, "scale"), number_of(state, "step")
        self.state.l1_total = number_of(state, "l1_total")
        generator_from_state(self.random, state["random"])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the vectors to store."""
        return {"w": self.w, "extra": self.extra}


def _blocks(order: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(order), _BLOCK):
        yield order[start : start + _BLOCK]
