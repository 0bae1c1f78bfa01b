"""One label for each example: multiclass classification as the simplest structure.

    score(c) = θ[c] = ⟨w_c, x⟩

A batch of inputs is a :class:`~mercer.data.Sequences` whose sequences all have length one (or a matrix), a batch of
part scores an array (n, C), a batch of outputs an int array, −1 for unknown labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import _core
from mercer.data.sequences import Sequences
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.costs import Cost, Hamming


class LabelMarginals:
    """Probabilities (n, C) (or a gradient in part scores) and log Z."""

    def __init__(self, probabilities: np.ndarray, log_partition: np.ndarray) -> None:
        self.probabilities, self.log_partition = probabilities, log_partition

    def subtract(self, other: LabelMarginals) -> None:
        """``self -= other``."""
        self.probabilities -= other.probabilities

    def scale(self, factor: float | np.ndarray) -> None:
        """``self *= factor``, one number or one for each example."""
        self.probabilities *= factor if np.ndim(factor) == 0 else np.asarray(factor)[:, None]


class Labels(Structure):
    """A label for each example.

    Parameters
    ----------
    n_labels, n_features : int
    threads : int, default=1

    Examples
    --------
    >>> import numpy as np
    >>> labels = Labels(n_labels=3, n_features=2)
    >>> labels.argmax(np.array([[0.0, 2.0, 1.0]]))
    (array([1], dtype=int32), array([2.]))
    """

    weighs_examples = True

    def __init__(self, n_labels: int, n_features: int, *, threads: int = 1) -> None:
        self.n_labels, self.n_features, self.threads = n_labels, n_features, threads
        self._pattern = _core.linear.Pattern(n_features, n_labels)
        self.n_weights = self._pattern.n_weights

    def scores(self, w: np.ndarray, X: Sequences) -> np.ndarray:
        """Return θ = X W."""
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} features, the model has {self.n_features}")
        theta = np.empty((X.n_positions, self.n_labels), X.dtype)
        _core.linear.scores(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, w, theta, self.threads)
        return theta

    def backward(self, X: Sequences, mu: LabelMarginals, out: np.ndarray) -> None:
        """Compute ``out += Xᵀ μ``."""
        weights = np.ascontiguousarray(mu.probabilities, dtype=X.dtype)
        _core.linear.backward(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, weights, out, self.threads)

    def argmax(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the label with the highest score."""
        best = theta.argmax(axis=1).astype(np.int32)
        return best, np.take_along_axis(theta, best[:, None], 1)[:, 0].astype(float)

    def argmin(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the allowed label with the lowest score."""
        allowed = np.where(np.isneginf(theta), np.inf, theta)
        return allowed.argmin(axis=1).astype(np.int32), allowed.min(axis=1).astype(float)

    def k_best(self, theta: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return labels of shape (k, n), −1 where there are fewer, and scores (n, k)."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        order = np.argsort(-theta, axis=1, kind="stable")[:, :k]
        score = np.full((len(theta), k), -np.inf)
        score[:, : order.shape[1]] = np.take_along_axis(theta, order, 1)
        labels = np.full((k, len(theta)), -1, np.int32)
        labels[: order.shape[1]] = order.T
        labels[np.isneginf(score.T)] = -1
        return labels, score

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        """Return log Σ_c exp θ_c."""
        top = theta.max(axis=1).astype(float)
        shift = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            return shift + np.log(np.exp(theta - shift[:, None]).sum(axis=1, dtype=float))

    def marginals(self, theta: np.ndarray) -> LabelMarginals:
        """Return softmax(θ)."""
        log_partition = self.log_partition(theta)
        shift = np.where(np.isneginf(log_partition), 0.0, log_partition)
        return LabelMarginals(np.exp(theta - shift[:, None]).astype(theta.dtype), log_partition)

    def sample(self, theta: np.ndarray, size: int, random_state: Any = None) -> np.ndarray:
        """Return labels of shape (size, n); −1 for an example that has no allowed label."""
        random = np.random.default_rng(check_random_seed(random_state))
        cumulative = np.cumsum(self.marginals(theta).probabilities, axis=1, dtype=float)
        draws = random.random((size, len(theta), 1)) * cumulative[:, -1:]
        chosen = np.minimum((draws >= cumulative).sum(axis=2), theta.shape[1] - 1).astype(np.int32)
        chosen[:, cumulative[:, -1] == 0] = -1
        return chosen

    def entropy(self, theta: np.ndarray) -> np.ndarray:
        """Return −Σ p log p."""
        mu = self.marginals(theta)
        p = mu.probabilities
        expected = np.where(p > 0, p * np.where(p > 0, theta, 0.0), 0.0).sum(axis=1, dtype=float)
        return np.maximum(0.0, mu.log_partition - expected)

    def log_cardinality(self, X: Sequences) -> np.ndarray:
        """Return log C."""
        return np.full(len(X), np.log(self.n_labels))

    def score(self, theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return θ of the given labels."""
        return np.take_along_axis(theta, np.asarray(y)[:, None], 1)[:, 0].astype(float)

    def subtract_truth(self, mu: LabelMarginals, y: np.ndarray) -> None:
        """Compute ``μ -= 1_y``."""
        mu.probabilities[np.arange(len(y)), y] -= 1.0

    def is_partial(self, y: np.ndarray) -> bool:
        """Return whether a label is unknown."""
        return bool((np.asarray(y) < 0).any())

    def restrict(self, theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Forbid all labels but the known ones."""
        known = np.flatnonzero(np.asarray(y) >= 0)
        out = theta.copy()
        out[known] = -np.inf
        out[known, y[known]] = theta[known, y[known]]
        return out

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: np.ndarray) -> LabelMarginals:
        """Return μ = 0."""
        return LabelMarginals(np.zeros_like(theta), np.zeros(len(theta)))

    def add_output(self, mu: LabelMarginals, y: np.ndarray, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        mu.probabilities[np.arange(len(y)), y] += weights

    def scaled(self, theta: np.ndarray, factor: float) -> np.ndarray:
        """Return factor · θ."""
        return theta * theta.dtype.type(factor)

    def augment(
        self, theta: np.ndarray, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Return θ + scale · Δ(y, ·)."""
        table = (cost or Hamming()).table(np.asarray(y), theta.shape[1])
        return theta + (np.asarray(scale)[..., None] * table).astype(theta.dtype)

    def cost_between(self, y: np.ndarray, z: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z)."""
        return (cost or Hamming()).between(np.asarray(y), np.asarray(z), self.n_labels)

    def most_violating(
        self, theta: np.ndarray, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z), exactly: with one label every cost decomposes."""
        z, value = self.argmax(self.augment(theta, y, cost, scale))
        return z, value, self.cost_between(y, z, cost)

    def equal(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y == z."""
        return np.asarray(y) == np.asarray(z)

    def select(self, chosen: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y where chosen, else z."""
        return np.where(chosen, y, z).astype(np.int32)

    def difference(self, X: Sequences, y: np.ndarray, z: np.ndarray) -> csr_array:
        """Return x ⊗ (e_y − e_z)."""
        rows = csr_array(X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1])))
        sizes = np.where(self.equal(y, z), 0, np.diff(rows.indptr))
        keep = np.repeat(sizes > 0, np.diff(rows.indptr))
        base, values = rows.indices[keep].astype(np.int64) * self.n_labels, rows.data[keep].astype(float)
        first, last = np.minimum(y, z), np.maximum(y, z)
        sign = np.repeat(np.where(np.asarray(y) < z, 1.0, -1.0), sizes)
        columns = np.stack([base + np.repeat(first, sizes), base + np.repeat(last, sizes)], 1).ravel()
        data = np.stack([sign * values, -sign * values], 1).ravel()
        indptr = np.concatenate([[0], np.cumsum(2 * sizes)])
        return csr_array((data, columns, indptr), shape=(len(sizes), self.n_weights))
