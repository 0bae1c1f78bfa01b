"""The interface between structures and the code that learns or predicts with them.

A structure scores the parts of its outputs, θ = ⟨w, Φ(x, part)⟩, and implements eight inference methods on a batch of
θ. Losses and solvers use nothing else, so a new structure works with all of them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.structures.costs import Cost

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Structure(ABC):
    """A space of outputs with part scores and inference.

    A batch of inputs X is a sequence that can be sliced; the structure chooses the types of batches of part scores
    θ and of outputs y. All inference methods take θ of a whole batch.

    Attributes
    ----------
    n_weights : int
        Length of the weight vector w.
    threads : int
        Number of threads for compiled methods. Results do not depend on it.
    """

    n_weights: int
    threads: int = 1
    searched_together = 1  # examples that a margin solver searches at one w: more where a call costs more than a search
    weighs_examples = False  # whether marginals keep examples apart, so that their scale takes a factor for each

    # ------------------------------------------------------------------ between weights and part scores

    @abstractmethod
    def scores(self, w: np.ndarray, X: Any) -> Any:
        """Return the part scores θ = ⟨w, Φ(x, part)⟩ of a batch."""

    @abstractmethod
    def backward(self, X: Any, mu: Any, out: np.ndarray) -> None:
        """Compute ``out += Σ_part μ[part] Φ(x, part)``: the adjoint of :meth:`scores`."""

    def has_curvature(self, X: Any) -> bool:
        """Return whether :meth:`curvature` supports these inputs."""
        return False

    def curvature(self, X: Any, theta: Any, out: np.ndarray) -> None:
        """Add an estimate of the diagonal of the Hessian of the log loss in the weights, for preconditioning."""
        raise NotImplementedError

    def batches(self, X: Any, positions: int) -> Iterator[slice]:
        """Return slices of X with scores of about ``positions`` parts each."""
        size = max(1, positions)
        for start in range(0, len(X), size):
            yield slice(start, min(start + size, len(X)))

    # ------------------------------------------------------------------ verbs

    @abstractmethod
    def argmax(self, theta: Any) -> tuple[Any, np.ndarray]:
        """Return the best output of each example and its score. Ties: the first in the order of the labels."""

    @abstractmethod
    def argmin(self, theta: Any) -> tuple[Any, np.ndarray]:
        """Return the worst allowed output of each example and its score."""

    @abstractmethod
    def k_best(self, theta: Any, k: int) -> tuple[Any, np.ndarray]:
        """Return the k best outputs, best first, and their scores of shape (n, k); -inf where there are fewer."""

    @abstractmethod
    def log_partition(self, theta: Any) -> np.ndarray:
        """Return log Σ_y exp score(y); -inf where no output is allowed."""

    @abstractmethod
    def marginals(self, theta: Any) -> Any:
        """Return μ: the probability of each part under p(y) ∝ exp score(y); has ``log_partition`` and ``subtract``."""

    @abstractmethod
    def sample(self, theta: Any, size: int, random_state: Any = None) -> Any:
        """Return outputs drawn from p(y) ∝ exp score(y), ``size`` for each example."""

    @abstractmethod
    def entropy(self, theta: Any) -> np.ndarray:
        """Return −Σ_y p(y) log p(y) of each example."""

    @abstractmethod
    def score(self, theta: Any, y: Any) -> np.ndarray:
        """Return the score of the given outputs."""

    def log_cardinality(self, X: Any) -> np.ndarray:
        """Return log ``|Y(x)|``: the logarithm of the number of outputs of each input; −inf where none is allowed.

        By default, log Z at weights of 0. A structure with approximate sums, or sums in the precision of X, overrides
        it.
        """
        w = np.zeros(self.n_weights)
        parts = [self.log_partition(self.scores(w, X[batch])) for batch in self.batches(X, 4096)]
        return np.concatenate([np.zeros(0), *parts])

    # ------------------------------------------------------------------ truth

    @abstractmethod
    def subtract_truth(self, mu: Any, y: Any) -> None:
        """Compute ``μ -= 1_y``, in place, for fully known outputs."""

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: Any) -> Any:
        """Return μ = 0, in the form of the marginals of this batch."""
        raise _missing(self, "zeros")

    def add_output(self, mu: Any, y: Any, weights: np.ndarray) -> None:
        """Compute ``μ += weights[i] · 1_{y_i}``, in place."""
        raise _missing(self, "add_output")

    def scaled(self, theta: Any, factor: float) -> Any:
        """Return factor · θ, for a factor above 0."""
        raise _missing(self, "scaled")

    def augment(self, theta: Any, y: Any, cost: Cost | None = None, scale: float | np.ndarray = 1.0) -> Any:
        """Return θ + scale · Δ(y, ·) for a cost that decomposes over parts (None: the default of the structure)."""
        raise _missing(self, "augment")

    def cost_between(self, y: Any, z: Any, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z) of each example."""
        raise _missing(self, "cost_between")

    def equal(self, y: Any, z: Any) -> np.ndarray:
        """Return whether two outputs are the same, for each example."""
        raise _missing(self, "equal")

    def select(self, chosen: np.ndarray, y: Any, z: Any) -> Any:
        """Return y where ``chosen`` is true, z elsewhere, example by example."""
        raise _missing(self, "select")

    def best_product(self, theta: Any, y: Any, cost: Cost | None = None) -> tuple[Any, np.ndarray, np.ndarray] | None:
        """Return z = argmax Δ(y, z) (1 + score(z) − score(y)), that maximum and Δ; None without an exact search."""
        return None

    def difference(self, X: Any, y: Any, z: Any) -> csr_array:
        """Return Φ(x, y) − Φ(x, z) of each example, one per row."""
        raise _missing(self, "difference")

    def runner_up(self, theta: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return the best output other than y and its score; −inf (and y itself) where there is no other."""
        outputs, scores = self.k_best(theta, 2)
        same = self.equal(y, outputs[0])
        score = np.where(same, scores[:, 1], scores[:, 0])
        z = self.select(same, outputs[1], outputs[0])
        return self.select(np.isneginf(score), y, z), score

    def most_violating(
        self, theta: Any, y: Any, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z), that maximum and Δ(y, z)."""
        if cost is None or cost.decomposes:
            z, value = self.argmax(self.augment(theta, y, cost, scale))
            return z, value, self.cost_between(y, z, cost)
        other, score = self.runner_up(theta, y)
        truth = self.score(theta, y)
        better = score + scale > truth
        return self.select(better, other, y), np.where(better, score + scale, truth), better.astype(float)

    def online(
        self,
        rule: int,
        X: Any,
        y: Any,
        order: np.ndarray,
        w: np.ndarray,
        extra: np.ndarray,
        state: Any,
        *,
        rate: float = 0.0,
        decay: float = 0.0,
        l2: float = 0.0,
        l1: float = 0.0,
        aggressiveness: float = 0.0,
    ) -> tuple[float, int]:
        """Make one pass of an online rule, a step for each example; return (summed loss, wrong parts).

        The default calls the inference methods for each example; a structure with a compiled loop overrides it.
        """
        from mercer.structures.online import online_by_verbs

        worker = copy.copy(self)  # several passes may run side by side
        return online_by_verbs(
            worker, rule, X, y, order, w, extra, state,
            rate=rate, decay=decay, l2=l2, l1=l1, aggressiveness=aggressiveness,
        )  # fmt: skip

    def is_partial(self, y: Any) -> bool:
        """Return whether some of the outputs are only partly known."""
        return False

    def restrict(self, theta: Any, y: Any) -> Any:
        """Return θ with every output forbidden that contradicts the known part of y."""
        raise TypeError(f"{type(self).__name__} does not take partly known outputs")


def _missing(structure: Structure, verb: str) -> TypeError:
    return TypeError(f"{type(structure).__name__} has no {verb}: the loss or solver needs it")


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
