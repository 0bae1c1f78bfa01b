"""A finite set of enumerated outputs: slow but simple, the reference in tests of the other structures.

θ[i, k] = ⟨w, Φ(x_i, y_k)⟩ for every output y_k
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer.structures.base import Structure
from mercer.structures.costs import Cost
from mercer.structures.labels import LabelMarginals, Labels


class Enumerated(Structure):
    """Any small set of outputs with any joint features.

    Parameters
    ----------
    outputs : sequence of objects, or callable x → sequence of objects
        All possible outputs (of an input). A batch of outputs y holds their indices.
    features : callable (x, output) → array of shape (n_weights,)
    n_weights : int
    cost : callable (output, output) → float, optional
        Δ(y, z) of predicting z if y is true; default 1 for any other output.

    Examples
    --------
    >>> import numpy as np
    >>> s = Enumerated(["cat", "dog"], lambda x, y: np.array([x, 0.0]) if y == "cat" else np.array([0.0, x]), 2)
    >>> theta = s.scores(np.array([1.0, 2.0]), [3.0])
    >>> theta
    array([[3., 6.]])
    >>> s.outputs_of(3.0)[s.argmax(theta)[0][0]]
    'dog'
    """

    weighs_examples = True

    def __init__(
        self,
        outputs: Sequence[Any] | Callable[[Any], Sequence[Any]],
        features: Callable[[Any, Any], np.ndarray],
        n_weights: int,
        cost: Callable[[Any, Any], float] | None = None,
    ) -> None:
        self.outputs, self.features, self.n_weights, self.cost = outputs, features, n_weights, cost
        self._verbs = Labels(1, 0)  # the verbs over a finite set are those of multiclass labels

    def outputs_of(self, x: Any) -> Sequence[Any]:
        """Return all outputs of an input."""
        return self.outputs(x) if callable(self.outputs) else self.outputs

    def joint(self, x: Any) -> np.ndarray:
        """Return Φ(x, y) of all outputs, one per row."""
        rows = np.array([self.features(x, y) for y in self.outputs_of(x)], dtype=float)
        if rows.ndim != 2 or rows.shape[1] != self.n_weights:
            raise ValueError(f"features must give arrays of length {self.n_weights} for at least one output")
        if not np.isfinite(rows).all():
            raise ValueError("features must be finite")
        return rows

    def scores(self, w: np.ndarray, X: Sequence[Any]) -> np.ndarray:
        """Return scores of shape (n, maximum number of outputs); −inf where an input has fewer."""
        self._inputs = list(X)
        return _stacked([self.joint(x) @ w for x in X])

    def backward(self, X: Sequence[Any], mu: LabelMarginals, out: np.ndarray) -> None:
        """Add Σ_y μ(y) Φ(x, y)."""
        for x, weights in zip(X, mu.probabilities, strict=True):
            rows = self.joint(x)
            out += weights[: len(rows)] @ rows

    def argmax(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index and the score of the best output."""
        return self._verbs.argmax(theta)

    def argmin(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index and the score of the worst output."""
        return self._verbs.argmin(theta)

    def k_best(self, theta: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return indices of shape (k, n) and scores (n, k)."""
        return self._verbs.k_best(theta, k)

    def log_partition(self, theta: np.ndarray) -> np.ndarray:
        """Return log Σ_y exp score(y)."""
        return self._verbs.log_partition(theta)

    def marginals(self, theta: np.ndarray) -> LabelMarginals:
        """Return p(y)."""
        return self._verbs.marginals(theta)

    def sample(self, theta: np.ndarray, size: int, random_state: Any = None) -> np.ndarray:
        """Return indices of shape (size, n)."""
        return self._verbs.sample(theta, size, random_state)

    def entropy(self, theta: np.ndarray) -> np.ndarray:
        """Return −Σ p log p."""
        return self._verbs.entropy(theta)

    def log_cardinality(self, X: Sequence[Any]) -> np.ndarray:
        """Return the logarithm of the number of outputs."""
        with np.errstate(divide="ignore"):
            return np.log(np.array([len(self.outputs_of(x)) for x in X], dtype=float))

    def score(self, theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the scores of the given outputs."""
        return self._verbs.score(theta, y)

    def subtract_truth(self, mu: LabelMarginals, y: np.ndarray) -> None:
        """Compute ``μ -= 1_y``."""
        self._verbs.subtract_truth(mu, y)

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: np.ndarray) -> LabelMarginals:
        """Return μ = 0."""
        return self._verbs.zeros(theta)

    def add_output(self, mu: LabelMarginals, y: np.ndarray, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        self._verbs.add_output(mu, y, weights)

    def costs(self, y: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, ·) of the batch last scored; 0 where an input has fewer outputs."""
        rows = []
        for x, true in zip(self._inputs, y, strict=True):
            outputs = self.outputs_of(x)
            if cost is not None:
                rows.append(cost.table(np.array([true]), len(outputs))[0])
            elif self.cost is not None:
                rows.append(np.array([self.cost(outputs[true], z) for z in outputs], dtype=float))
            else:
                rows.append((np.arange(len(outputs)) != true).astype(float))
        return _stacked(rows, 0.0)

    def scaled(self, theta: np.ndarray, factor: float) -> np.ndarray:
        """Return factor · θ."""
        return theta * factor

    def augment(
        self, theta: np.ndarray, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Return θ + scale · Δ(y, ·), for the batch last scored."""
        return theta + np.asarray(scale)[..., None] * self.costs(y, cost)

    def cost_between(self, y: np.ndarray, z: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z), for the batch last scored."""
        return self._verbs.score(self.costs(y, cost), z)

    def most_violating(
        self, theta: np.ndarray, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z), exactly: every cost is a table here."""
        z, value = self.argmax(self.augment(theta, y, cost, scale))
        return z, value, self.cost_between(y, z, cost)

    def equal(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y == z."""
        return self._verbs.equal(y, z)

    def select(self, chosen: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y where chosen, else z."""
        return self._verbs.select(chosen, y, z)

    def difference(self, X: Sequence[Any], y: np.ndarray, z: np.ndarray) -> csr_array:
        """Return Φ(x, y) − Φ(x, z)."""
        joint = [self.joint(x) for x in X]
        return csr_array(np.array([rows[a] - rows[b] for rows, a, b in zip(joint, y, z, strict=True)]))


def _stacked(rows: list[np.ndarray], fill: float = -np.inf) -> np.ndarray:
    out = np.full((len(rows), max(map(len, rows), default=0)), fill)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out
