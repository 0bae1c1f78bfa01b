"""The contract between structures and everything that learns or predicts with them.

A structure scores the parts of its outputs, θ = ⟨w, Φ(x, part)⟩, and answers eight verbs about a batch of θ. Losses and
solvers see nothing else, so a new structure works with all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np


class Structure(ABC):
    """A space of outputs with part scores and verbs.

    A batch of inputs X is a sequence that can be sliced; a batch of part scores θ and of outputs y is whatever the
    structure chooses. All verbs take θ of a whole batch.

    Attributes
    ----------
    n_weights : int
        Length of the weight vector w.
    threads : int
        Number of threads the compiled verbs may use. Results do not depend on it.
    """

    n_weights: int
    threads: int = 1

    # ------------------------------------------------------------------ between weights and part scores

    @abstractmethod
    def scores(self, w: np.ndarray, X: Any) -> Any:
        """Part scores θ = ⟨w, Φ(x, part)⟩ of a batch."""

    @abstractmethod
    def backward(self, X: Any, mu: Any, out: np.ndarray) -> None:
        """``out += Σ_part μ[part] Φ(x, part)``: the adjoint of :meth:`scores`."""

    def batches(self, X: Any, positions: int) -> Iterator[slice]:
        """Slices of X that fill about ``positions`` parts' worth of scores each."""
        size = max(1, positions)
        for start in range(0, len(X), size):
            yield slice(start, min(start + size, len(X)))

    # ------------------------------------------------------------------ verbs

    @abstractmethod
    def argmax(self, theta: Any) -> tuple[Any, np.ndarray]:
        """The best output of each example and its score. Ties: the first in the order of the labels."""

    @abstractmethod
    def argmin(self, theta: Any) -> tuple[Any, np.ndarray]:
        """The worst allowed output of each example and its score."""

    @abstractmethod
    def k_best(self, theta: Any, k: int) -> tuple[Any, np.ndarray]:
        """The k best outputs, best first, and their scores of shape (n, k); -inf where there are fewer."""

    @abstractmethod
    def log_partition(self, theta: Any) -> np.ndarray:
        """log Σ_y exp score(y); -inf where no output is allowed."""

    @abstractmethod
    def marginals(self, theta: Any) -> Any:
        """μ: the probability of each part under p(y) ∝ exp score(y); has ``log_partition`` and ``subtract``."""

    @abstractmethod
    def sample(self, theta: Any, size: int, random_state: Any = None) -> Any:
        """Outputs drawn from p(y) ∝ exp score(y), ``size`` for each example."""

    @abstractmethod
    def entropy(self, theta: Any) -> np.ndarray:
        """−Σ_y p(y) log p(y) of each example."""

    @abstractmethod
    def score(self, theta: Any, y: Any) -> np.ndarray:
        """The score of the given outputs."""

    # ------------------------------------------------------------------ truth

    @abstractmethod
    def subtract_truth(self, mu: Any, y: Any) -> None:
        """``μ -= 1_y``, in place, for fully known outputs."""

    def is_partial(self, y: Any) -> bool:
        """Whether some of the outputs are only partly known."""
        return False

    def restrict(self, theta: Any, y: Any) -> Any:
        """θ with every output forbidden that contradicts what is known of y."""
        raise TypeError(f"{type(self).__name__} does not take partly known outputs")


def check_random_seed(random_state: Any) -> int:
    """A 64-bit seed from None, an int, a Generator or a RandomState."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)[0])
    raise ValueError(f"random_state must be None, an int or a NumPy generator, got {random_state!r}")
