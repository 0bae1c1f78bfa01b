"""A set of labels for each example, with weights for pairs of labels that are there together.

    score(y) = Σ_t y_t θ_t + Σ_{s,t} y_s y_t θ_st,     θ_t = ⟨w_t, x⟩,   y in {0, 1}^T

θ_st are weights of their own, the same for all examples. Without pairs every verb has a closed form and labels are
independent: the hinge loss with the Hamming cost is then the sum of T separate machines of two classes. With pairs all
2^T sets are looked at, for up to 16 labels; where no pair weighs less than 0, the best set of any number of labels is a
minimum cut.

A batch of inputs is a :class:`~mercer.data.Sequences` whose sequences all have length one, a batch of outputs an array
(n, T) of 0 and 1.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp

from mercer import _core
from mercer.data.sequences import Sequences
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.costs import Cost, Hamming

__all__ = ["LabelSetMarginals", "LabelSetScores", "LabelSets"]

MOST_ENUMERATED = 16
_CELLS = 1 << 22  # scores of sets that are held at a time


class LabelSetScores:
    """Part scores of a batch: of labels (n, T), of pairs (P,), and what every set of an example has (n,)."""

    def __init__(self, labels: np.ndarray, pairs: np.ndarray, constant: np.ndarray) -> None:
        self.labels, self.pairs, self.constant = labels, pairs, constant

    def __len__(self) -> int:
        return len(self.labels)


class LabelSetMarginals:
    """Probabilities of labels (n, T) and of pairs (n, P), or a gradient in part scores; and log Z."""

    def __init__(self, labels: np.ndarray, pairs: np.ndarray, log_partition: np.ndarray) -> None:
        self.labels, self.pairs, self.log_partition = labels, pairs, log_partition

    def subtract(self, other: LabelSetMarginals) -> None:
        """``self -= other``."""
        self.labels -= other.labels
        self.pairs -= other.pairs

    def scale(self, factor: float | np.ndarray) -> None:
        """``self *= factor``, one number or one for each example."""
        factor = factor if np.ndim(factor) == 0 else np.asarray(factor)[:, None]
        self.labels *= factor
        self.pairs *= factor


class LabelSets(Structure):
    """A set of labels for each example.

    Parameters
    ----------
    n_labels, n_features : int
    pairs : "all", or list of pairs of labels
        Pairs with a weight; an empty list makes labels independent. ``"all"`` is for up to 16 labels.
    threads : int, default=1

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import LabelSets
    >>> structure = LabelSets(n_labels=2, n_features=1, pairs=[(0, 1)])
    >>> theta = structure.with_scores(np.array([[-1.0, 0.5]]), np.array([2.0]))
    >>> structure.argmax(theta)
    (array([[1, 1]], dtype=int8), array([1.5]))
    """

    weighs_examples = True

    def __init__(self, n_labels: int, n_features: int, pairs: Any = "all", *, threads: int = 1) -> None:
        if n_labels < 1:
            raise ValueError(f"n_labels must be at least 1, got {n_labels}")
        if isinstance(pairs, str):
            if pairs != "all":
                raise ValueError(f"pairs must be 'all' or a list of pairs of labels, got {pairs!r}")
            if n_labels > MOST_ENUMERATED:
                raise ValueError(f"pairs='all' is for up to {MOST_ENUMERATED} labels, got {n_labels}: list the pairs")
            pairs = list(combinations(range(n_labels), 2))
        self.pairs = np.array([tuple(sorted(pair)) for pair in pairs], np.int64).reshape(-1, 2)
        wrong = len(self.pairs) and (
            self.pairs.min() < 0 or self.pairs.max() >= n_labels or (self.pairs[:, 0] == self.pairs[:, 1]).any()
        )
        if wrong or len({tuple(pair) for pair in self.pairs.tolist()}) < len(self.pairs):
            raise ValueError(f"pairs must name two different labels of 0 .. {n_labels - 1} each, and none twice")
        self.n_labels, self.n_features, self.threads = n_labels, n_features, threads
        self._pattern = _core.linear.Pattern(n_features, n_labels)
        self.n_weights = self._pattern.n_weights + len(self.pairs)
        self._every: tuple[np.ndarray, np.ndarray] | None = None

    # ------------------------------------------------------------------ between weights and part scores

    def with_scores(self, labels: np.ndarray, pairs: np.ndarray) -> LabelSetScores:
        """Part scores from arrays: of labels (n, T), and of the pairs of the structure."""
        labels, pairs = np.asarray(labels, float), np.asarray(pairs, float)
        if labels.ndim != 2 or labels.shape[1] != self.n_labels or pairs.shape != (len(self.pairs),):
            raise ValueError(f"expected scores of {self.n_labels} labels and {len(self.pairs)} pairs")
        return LabelSetScores(labels, pairs, np.zeros(len(labels)))

    def scores(self, w: np.ndarray, X: Sequences) -> LabelSetScores:
        """θ of labels = X W, and the weights of pairs."""
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} features, the model has {self.n_features}")
        theta = np.empty((X.n_positions, self.n_labels), X.dtype)
        end = self._pattern.n_weights
        own = np.ascontiguousarray(w[:end])
        _core.linear.scores(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, own, theta, self.threads)
        return LabelSetScores(theta.astype(float, copy=False), np.array(w[end:], float), np.zeros(len(theta)))

    def backward(self, X: Sequences, mu: LabelSetMarginals, out: np.ndarray) -> None:
        """``out += Xᵀ μ``, and the sums of μ of the pairs."""
        end = self._pattern.n_weights
        own = np.zeros(end)
        weights = np.ascontiguousarray(mu.labels, dtype=X.dtype)
        _core.linear.backward(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, weights, own, self.threads)
        out[:end] += own
        out[end:] += mu.pairs.sum(axis=0)

    # ------------------------------------------------------------------ all sets

    def _independent(self, theta: LabelSetScores) -> bool:
        return not theta.pairs.any()

    def _sets(self) -> tuple[np.ndarray, np.ndarray]:
        """All sets (2^T, T) in the order of their labels, and their pairs (2^T, P)."""
        if self.n_labels > MOST_ENUMERATED:
            raise ValueError(
                f"{self.n_labels} labels with weights of pairs: 2^{self.n_labels} sets are too many (the limit"
                f" is {MOST_ENUMERATED} labels); use fewer labels, or no pairs"
            )
        if self._every is None:
            T = self.n_labels
            sets = ((np.arange(2**T)[:, None] >> np.arange(T)) & 1).astype(float)
            self._every = sets, sets[:, self.pairs[:, 0]] * sets[:, self.pairs[:, 1]]
        return self._every

    def _blocks(self, theta: LabelSetScores) -> Any:
        """Slices of examples with the scores (m, 2^T) of all their sets."""
        sets, together = self._sets()
        shared = together @ theta.pairs
        step = max(1, _CELLS // len(sets))
        for at in range(0, len(theta), step):
            part = slice(at, at + step)
            yield part, theta.labels[part] @ sets.T + shared + theta.constant[part, None]

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: LabelSetScores) -> tuple[np.ndarray, np.ndarray]:
        """The best set; of equal ones that with fewer labels."""
        if self._independent(theta):
            y = (theta.labels > 0).astype(np.int8)
        elif self.n_labels > MOST_ENUMERATED and (theta.pairs >= 0).all():
            y = np.stack([self._cut(row, theta.pairs) for row in theta.labels])
        else:
            sets = self._sets()[0].astype(np.int8)
            best = [scores.argmax(axis=1) for _, scores in self._blocks(theta)]
            y = sets[np.concatenate(best)] if best else np.zeros((0, self.n_labels), np.int8)
        return y, self.score(theta, y)

    def _cut(self, labels: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """The best set where pairs attract: label t is there if t stays with the source."""
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        T = self.n_labels
        own = labels.astype(float).copy()
        # w y_s y_t = w/2 (y_s + y_t) − w/2 |y_s − y_t|
        np.add.at(own, self.pairs[:, 0], pairs / 2)
        np.add.at(own, self.pairs[:, 1], pairs / 2)
        unit = max(np.abs(own).max(initial=0.0), pairs.max(initial=0.0), 1e-300) / 2**28
        s, t = self.pairs.T
        rows = np.concatenate([np.full(T, T), np.arange(T), s, t])
        columns = np.concatenate([np.arange(T), np.full(T, T + 1), t, s])
        capacity = np.concatenate([np.maximum(own, 0), np.maximum(-own, 0), pairs / 2, pairs / 2]) / unit
        graph = csr_array((np.rint(capacity).astype(np.int32), (rows, columns)), shape=(T + 2, T + 2))
        flow = maximum_flow(graph, T, T + 1).flow
        left = graph - flow
        left.data[left.data <= 0] = 0
        left.eliminate_zeros()
        reached = breadth_first_order(csr_array(left), T, return_predecessors=False)
        y = np.zeros(T + 2, np.int8)
        y[reached] = 1
        return y[:T]

    def argmin(self, theta: LabelSetScores) -> tuple[np.ndarray, np.ndarray]:
        """The worst set."""
        y, value = self.argmax(LabelSetScores(-theta.labels, -theta.pairs, -theta.constant))
        return y, -value

    def k_best(self, theta: LabelSetScores, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Sets of shape (k, n, T), −1 where there are fewer, and scores (n, k)."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        sets = self._sets()[0].astype(np.int8)
        n, m = len(theta), min(k, len(sets))
        y = np.full((k, n, self.n_labels), -1, np.int8)
        value = np.full((n, k), -np.inf)
        for part, scores in self._blocks(theta):
            order = np.argsort(-scores, axis=1, kind="stable")[:, :m]
            y[:m, part] = sets[order].transpose(1, 0, 2)
            value[part, :m] = np.take_along_axis(scores, order, 1)
        return y, value

    def log_partition(self, theta: LabelSetScores) -> np.ndarray:
        """log Σ_y exp score(y)."""
        if self._independent(theta):
            return theta.constant + np.logaddexp(0.0, theta.labels).sum(axis=1)
        return np.concatenate([logsumexp(scores, axis=1) for _, scores in self._blocks(theta)] or [np.zeros(0)])

    def marginals(self, theta: LabelSetScores) -> LabelSetMarginals:
        """Probabilities of labels, and of pairs to be there together."""
        n, P = len(theta), len(self.pairs)
        if self._independent(theta):
            p = expit(theta.labels)
            together = p[:, self.pairs[:, 0]] * p[:, self.pairs[:, 1]]
            return LabelSetMarginals(p, together, self.log_partition(theta))
        sets, both = self._sets()
        labels, pairs, log_partition = np.empty((n, self.n_labels)), np.empty((n, P)), np.empty(n)
        for part, scores in self._blocks(theta):
            log_partition[part] = logsumexp(scores, axis=1)
            p = np.exp(scores - log_partition[part, None])
            labels[part], pairs[part] = p @ sets, p @ both
        return LabelSetMarginals(labels, pairs, log_partition)

    def sample(self, theta: LabelSetScores, size: int, random_state: Any = None) -> np.ndarray:
        """Sets of shape (size, n, T)."""
        random = np.random.default_rng(check_random_seed(random_state))
        n, T = len(theta), self.n_labels
        if self._independent(theta):
            return (random.random((size, n, T)) < expit(theta.labels)).astype(np.int8)
        sets, y = self._sets()[0].astype(np.int8), np.empty((size, n, T), np.int8)
        for part, scores in self._blocks(theta):
            cumulative = np.cumsum(np.exp(scores - logsumexp(scores, axis=1)[:, None]), axis=1)
            for i, row in enumerate(cumulative, part.start):
                drawn = np.searchsorted(row, random.random(size) * row[-1], side="right")
                y[:, i] = sets[np.minimum(drawn, len(sets) - 1)]
        return y

    def entropy(self, theta: LabelSetScores) -> np.ndarray:
        """−Σ_y p(y) log p(y)."""
        mu = self.marginals(theta)
        expected = theta.constant + (mu.labels * theta.labels).sum(axis=1) + mu.pairs @ theta.pairs
        return np.maximum(0.0, mu.log_partition - expected)

    def log_cardinality(self, X: Sequences) -> np.ndarray:
        """T log 2: pairs of labels change scores, not which sets there are."""
        return np.full(len(X), self.n_labels * np.log(2.0))

    def score(self, theta: LabelSetScores, y: np.ndarray) -> np.ndarray:
        """The scores of the given sets."""
        y = np.asarray(y, float)
        together = y[:, self.pairs[:, 0]] * y[:, self.pairs[:, 1]]
        return theta.constant + (theta.labels * y).sum(axis=1) + together @ theta.pairs

    # ------------------------------------------------------------------ truth, costs and margins

    def zeros(self, theta: LabelSetScores) -> LabelSetMarginals:
        """μ = 0."""
        n = len(theta)
        return LabelSetMarginals(np.zeros((n, self.n_labels)), np.zeros((n, len(self.pairs))), np.zeros(n))

    def subtract_truth(self, mu: LabelSetMarginals, y: np.ndarray) -> None:
        """``μ -= 1_y``."""
        self.add_output(mu, y, np.full(len(y), -1.0))

    def add_output(self, mu: LabelSetMarginals, y: np.ndarray, weights: np.ndarray) -> None:
        """``μ += weights · 1_y``."""
        y = np.asarray(y, float)
        mu.labels += weights[:, None] * y
        mu.pairs += weights[:, None] * (y[:, self.pairs[:, 0]] * y[:, self.pairs[:, 1]])

    def _price(self, cost: Cost | None) -> np.ndarray:
        """What a wrong label costs, for each label."""
        if cost is None or (type(cost) is Hamming and cost.weights is None):
            return np.ones(self.n_labels)
        if type(cost) is Hamming:
            return _weights(cost, self.n_labels)
        raise ValueError(f"label sets take the Hamming cost, or no cost, not {type(cost).__name__}")

    def scaled(self, theta: LabelSetScores, factor: float) -> LabelSetScores:
        """factor · θ."""
        return LabelSetScores(factor * theta.labels, factor * theta.pairs, factor * theta.constant)

    def augment(
        self, theta: LabelSetScores, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> LabelSetScores:
        """θ + scale · Δ(y, ·), Δ the number of wrong labels."""
        price = np.broadcast_to(np.asarray(scale, float), (len(theta),))[:, None] * self._price(cost)
        y = np.asarray(y, float)
        constant = theta.constant + (price * y).sum(axis=1)
        return LabelSetScores(theta.labels + price * (1 - 2 * y), theta.pairs, constant)

    def cost_between(self, y: np.ndarray, z: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Δ(y, z): the number of wrong labels."""
        if cost is not None and not cost.decomposes:
            return (~self.equal(y, z)).astype(float)
        return (np.asarray(y) != np.asarray(z)) @ self._price(cost)

    def equal(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Whether two sets are the same."""
        return (np.asarray(y) == np.asarray(z)).all(axis=1)

    def select(self, chosen: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """y where chosen, else z."""
        return np.where(np.asarray(chosen)[:, None], y, z).astype(np.int8)

    def difference(self, X: Sequences, y: np.ndarray, z: np.ndarray) -> csr_array:
        """x ⊗ (y − z), and the difference of the pairs."""
        rows = csr_array(X.rows.matrix(int(X.offsets[0]), int(X.offsets[-1])))
        y, z = np.asarray(y, float), np.asarray(z, float)
        change = y - z
        pairs = y[:, self.pairs[:, 0]] * y[:, self.pairs[:, 1]] - z[:, self.pairs[:, 0]] * z[:, self.pairs[:, 1]]
        indices, values, starts = [], [], [0]
        for i in range(len(y)):
            own = slice(rows.indptr[i], rows.indptr[i + 1])
            labels, moved = np.flatnonzero(change[i]), np.flatnonzero(pairs[i])
            columns = (rows.indices[own].astype(np.int64)[:, None] * self.n_labels + labels).ravel()
            indices += [columns, self._pattern.n_weights + moved]
            values += [np.outer(rows.data[own], change[i, labels]).ravel(), pairs[i, moved]]
            starts.append(starts[-1] + len(columns) + len(moved))
        flat = np.concatenate(indices) if indices else np.zeros(0, np.int64)
        data = np.concatenate(values) if values else np.zeros(0)
        return csr_array((data, flat, np.array(starts)), shape=(len(y), self.n_weights))


def _weights(cost: Hamming, n_labels: int) -> np.ndarray:
    weights = np.asarray(cost.weights, float)
    if weights.shape != (n_labels,):
        raise ValueError(f"the cost must have a weight for each of the {n_labels} labels")
    return weights
