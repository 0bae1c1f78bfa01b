"""A set of labels for each example, with weights for pairs of labels that occur together.

    score(y) = Σ_t y_t θ_t + Σ_{s,t} y_s y_t θ_st,     θ_t = ⟨w_t, x⟩,   y in {0, 1}^T

θ_st are separate weights, the same for all examples. Without pairs every method has a closed form and labels are
independent: the hinge loss with the Hamming cost is then the sum of T binary support vector machines. With pairs and up
to 16 labels, all 2^T sets are enumerated. With more labels, the labels of an example are the nodes of a graph and the
pairs its edges, and inference is that of :class:`~mercer.structures.GraphLabels`. Inference is exact by messages if the
pairs have no cycle (`dependent_pairs` finds the tree of the most dependent pairs), by junction trees if the cliques are
small, and by minimum cuts for the best set if no pair has a negative weight. Otherwise sums come from tree-reweighted
messages and the best set from dual ascent; both are approximate. `plan` returns the choice.

A batch of inputs is a :class:`~mercer.data.Sequences` whose sequences all have length one, a batch of outputs an array
(n, T) of 0 and 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp

from mercer import _core
from mercer._validation import check_choice, check_count, hyphenated
from mercer.data.sequences import Sequences
from mercer.inference import batched
from mercer.inference.batched import BatchRoot, GraphBatch
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.costs import Cost, Hamming

__all__ = ["LabelSetMarginals", "LabelSetScores", "LabelSets", "dependent_pairs"]

MOST_ENUMERATED = 16
_QUICK = 8  # labels up to which that is faster than messages on a tree
_CELLS = 1 << 22  # scores of sets that are held at a time
_PARTS = 1 << 18  # labels and pairs of examples that are one graph
INFERENCE = tuple(name for name in batched.INFERENCE if name not in ("cuts", "expansion", "swap"))


class LabelSetScores:
    """Part scores of a batch: of labels (n, T), of pairs (P,), and constants of examples (n,)."""

    def __init__(self, labels: np.ndarray, pairs: np.ndarray, constant: np.ndarray) -> None:
        self.labels, self.pairs, self.constant = labels, pairs, constant

    def __len__(self) -> int:
        return len(self.labels)


class LabelSetMarginals:
    """Probabilities of labels (n, T) and of pairs (n, P), or a gradient in part scores; and log Z."""

    def __init__(self, labels: np.ndarray, pairs: np.ndarray, log_partition: np.ndarray) -> None:
        self.labels, self.pairs, self.log_partition = labels, pairs, log_partition

    def subtract(self, other: LabelSetMarginals) -> None:
        """Compute ``self -= other``."""
        self.labels -= other.labels
        self.pairs -= other.pairs

    def scale(self, factor: float | np.ndarray) -> None:
        """Compute ``self *= factor``, one number or one for each example."""
        factor = factor if np.ndim(factor) == 0 else np.asarray(factor)[:, None]
        self.labels *= factor
        self.pairs *= factor


class LabelSets(Structure):
    """A set of labels for each example.

    Parameters
    ----------
    n_labels, n_features : int
    pairs : "all", or list of pairs of labels
        Pairs with a weight; an empty list makes labels independent. With many labels, choose a few pairs by
        `dependent_pairs`.
    inference : {"auto", "exact", "bp", "trw", "mean-field", "lp", "dual", "icm"}, default="auto"
        The method of inference beyond 16 labels, as in `GraphLabels`. ``"auto"``: exact if the pairs allow it.
    threads : int, default=1

    Attributes
    ----------
    unconverged : int
        Number of message-passing runs that did not converge.
    residual : float
        The largest change of their last sweep.

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

    def __init__(
        self, n_labels: int, n_features: int, pairs: Any = "all", *, inference: str = "auto", threads: int = 1
    ) -> None:
        check_count("n_labels", n_labels)
        self._keep_nothing(check_choice("inference", hyphenated(inference), INFERENCE))
        if isinstance(pairs, str):
            if pairs != "all":
                raise ValueError(f"pairs must be 'all' or a list of pairs of labels, got {pairs!r}")
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

    def _keep_nothing(self, inference: str = "auto") -> None:
        """Begin with how sets are searched, and nothing that is made when it is asked for."""
        self.inference = inference
        self._every: tuple[np.ndarray, np.ndarray] | None = None
        self._shapes: dict[int, GraphBatch] = {}
        self._plan: batched.Plan | None = None
        self.unconverged, self.residual = 0, 0.0

    # ------------------------------------------------------------------ between weights and part scores

    def with_scores(self, labels: np.ndarray, pairs: np.ndarray) -> LabelSetScores:
        """Return the part scores from arrays: of labels (n, T), and of the pairs of the structure."""
        labels, pairs = np.asarray(labels, float), np.asarray(pairs, float)
        if labels.ndim != 2 or labels.shape[1] != self.n_labels or pairs.shape != (len(self.pairs),):
            raise ValueError(f"expected scores of {self.n_labels} labels and {len(self.pairs)} pairs")
        return LabelSetScores(labels, pairs, np.zeros(len(labels)))

    def scores(self, w: np.ndarray, X: Sequences) -> LabelSetScores:
        """Return θ of labels = X W, and the weights of pairs."""
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} features, the model has {self.n_features}")
        theta = np.empty((X.n_positions, self.n_labels), X.dtype)
        end = self._pattern.n_weights
        own = np.ascontiguousarray(w[:end])
        _core.linear.scores(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, own, theta, self.threads)
        return LabelSetScores(theta.astype(float, copy=False), np.array(w[end:], float), np.zeros(len(theta)))

    def backward(self, X: Sequences, mu: LabelSetMarginals, out: np.ndarray) -> None:
        """Compute ``out += Xᵀ μ``, and the sums of μ of the pairs."""
        end = self._pattern.n_weights
        own = np.zeros(end)
        weights = np.ascontiguousarray(mu.labels, dtype=X.dtype)
        _core.linear.backward(X.rows.core, int(X.offsets[0]), X.n_positions, self._pattern, weights, own, self.threads)
        out[:end] += own
        out[end:] += mu.pairs.sum(axis=0)

    # ------------------------------------------------------------------ all sets

    def _independent(self, theta: LabelSetScores) -> bool:
        return not theta.pairs.any()

    @cached_property
    def _enumerates(self) -> bool:
        if self.n_labels > MOST_ENUMERATED:
            return False
        return self.n_labels <= _QUICK or not self._shape(1).compiled.is_forest

    def _sets(self) -> tuple[np.ndarray, np.ndarray]:
        """All sets (2^T, T) in the order of their labels, and their pairs (2^T, P)."""
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

    # ------------------------------------------------------------------ labels as nodes of graphs

    def plan(self) -> batched.Plan:
        """Return the method of inference if pairs have weights, whether it is exact, and why it was chosen."""
        if self._enumerates:
            return batched.Plan("enumeration", "enumeration", True, True, f"2^{self.n_labels} sets are enumerated")
        if self._plan is None:
            self._plan = batched.make_plan(self._shape(1), self.inference, False)
        return self._plan

    def _shape(self, n: int) -> GraphBatch:
        """The graphs of n examples: all the same."""
        if n not in self._shapes:
            if len(self._shapes) > 8:
                self._shapes.clear()
            T, P = self.n_labels, len(self.pairs)
            edges = (self.pairs + T * np.arange(n)[:, None, None]).reshape(-1, 2)
            self._shapes[n] = BatchRoot(T * np.arange(n + 1), edges, P * np.arange(n + 1)).batch(2, 0, n)
        return self._shapes[n]

    def _graphs(self, theta: LabelSetScores, plan: batched.Plan | None = None) -> Any:
        """Slices of examples, their graphs, and the scores of nodes and edges. Of cliques one example at a time."""
        T, P = self.n_labels, len(self.pairs)
        plan = self.plan() if plan is None else plan
        alone = "junction-tree" in (plan.sums, plan.maxima)
        step = 1 if alone else max(1, _PARTS // (T + P))
        for at in range(0, len(theta), step):
            part = slice(at, min(at + step, len(theta)))
            n = part.stop - part.start
            nodes, edges = np.zeros((n * T, 2)), np.zeros((n * P, 2, 2))
            nodes[:, 1] = theta.labels[part].ravel()
            edges[:, 1, 1] = np.tile(theta.pairs, n)
            yield part, self._shape(n), nodes, edges

    def _best_found(self, theta: LabelSetScores) -> np.ndarray:
        y, plan = np.zeros((len(theta), self.n_labels), np.int8), self.plan()
        if plan.maxima != "tree" and (theta.pairs >= 0).all():
            plan = replace(plan, sums="trw", maxima="cuts")  # all pairs attract
        for part, shape, nodes, edges in self._graphs(theta, plan):
            states = batched.maxima(shape, plan, nodes, edges, self.threads)
            y[part] = states.reshape(-1, self.n_labels)
        return y

    def _sums_found(self, theta: LabelSetScores) -> LabelSetMarginals:
        mu = self.zeros(theta)
        for part, shape, nodes, edges in self._graphs(theta):
            labels, pairs, log_z, change = batched.sums(shape, self.plan(), nodes, edges, self.threads)
            mu.labels[part] = labels[:, 1].reshape(-1, self.n_labels)
            mu.pairs[part] = pairs[:, 1, 1].reshape(-1, len(self.pairs))
            mu.log_partition[part] = log_z + theta.constant[part]
            self.unconverged += change > 0
            self.residual = max(self.residual, change)
        return mu

    def _k_found(self, theta: LabelSetScores, k: int) -> tuple[np.ndarray, np.ndarray]:
        n, T = len(theta), self.n_labels
        y, value = np.full((k, n, T), -1, np.int8), np.full((n, k), -np.inf)
        if self.plan().exact_sums or self._independent(theta):
            pairs = theta.pairs if not self._independent(theta) else np.zeros(0)
            exact = self if len(pairs) else LabelSets(T, self.n_features, [])
            for i in range(n):
                one = LabelSetScores(theta.labels[i : i + 1], pairs, theta.constant[i : i + 1])
                _, shape, nodes, edges = next(iter(exact._graphs(one)))
                labels, there = batched.best_of_cliques(shape, exact.plan(), nodes, edges, k, 1)
                y[:, i] = labels
                for place in np.flatnonzero(there[0]):
                    value[i, place] = exact.score(one, labels[place][None])[0]
            return y, value
        if k > 2:
            raise ValueError(f"two best sets at most are found where inference is not exact, got k={k}")
        y[0], value[:, 0] = self.argmax(theta)
        if k == 2:
            gain = self._gains(theta, y[0])
            best = gain.argmax(axis=1)
            y[1] = y[0]
            y[1, np.arange(n), best] ^= 1
            value[:, 1] = value[:, 0] + gain[np.arange(n), best]
        return y, value

    def _gains(self, theta: LabelSetScores, y: np.ndarray) -> np.ndarray:
        """What each single change of a set adds to its score."""
        field = theta.labels.copy()
        for (s, t), weight in zip(self.pairs.tolist(), theta.pairs.tolist(), strict=True):
            field[:, s] += weight * y[:, t]
            field[:, t] += weight * y[:, s]
        return np.where(y > 0, -field, field)

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: LabelSetScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the best set (the best one found if the plan is not exact); ties go to fewer labels."""
        if self._independent(theta):
            y = (theta.labels > 0).astype(np.int8)
        elif not self._enumerates:
            y = self._best_found(theta)
        else:
            sets = self._sets()[0].astype(np.int8)
            best = [scores.argmax(axis=1) for _, scores in self._blocks(theta)]
            y = sets[np.concatenate(best)] if best else np.zeros((0, self.n_labels), np.int8)
        return y, self.score(theta, y)

    def argmin(self, theta: LabelSetScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the worst set."""
        y, value = self.argmax(LabelSetScores(-theta.labels, -theta.pairs, -theta.constant))
        return y, -value

    def k_best(self, theta: LabelSetScores, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sets of shape (k, n, T), −1 where there are fewer, and scores (n, k)."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if not self._enumerates:
            return self._k_found(theta, k)
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
        """Return log Σ_y exp score(y)."""
        if self._independent(theta):
            return theta.constant + np.logaddexp(0.0, theta.labels).sum(axis=1)
        if not self._enumerates:
            return self._sums_found(theta).log_partition
        return np.concatenate([logsumexp(scores, axis=1) for _, scores in self._blocks(theta)] or [np.zeros(0)])

    def marginals(self, theta: LabelSetScores) -> LabelSetMarginals:
        """Return the probabilities of labels, and of pairs of labels."""
        n, P = len(theta), len(self.pairs)
        if self._independent(theta):
            p = expit(theta.labels)
            together = p[:, self.pairs[:, 0]] * p[:, self.pairs[:, 1]]
            return LabelSetMarginals(p, together, self.log_partition(theta))
        if not self._enumerates:
            return self._sums_found(theta)
        sets, both = self._sets()
        labels, pairs, log_partition = np.empty((n, self.n_labels)), np.empty((n, P)), np.empty(n)
        for part, scores in self._blocks(theta):
            log_partition[part] = logsumexp(scores, axis=1)
            p = np.exp(scores - log_partition[part, None])
            labels[part], pairs[part] = p @ sets, p @ both
        return LabelSetMarginals(labels, pairs, log_partition)

    def sample(self, theta: LabelSetScores, size: int, random_state: Any = None) -> np.ndarray:
        """Return sets of shape (size, n, T)."""
        random = np.random.default_rng(check_random_seed(random_state))
        n, T = len(theta), self.n_labels
        if self._independent(theta):
            return (random.random((size, n, T)) < expit(theta.labels)).astype(np.int8)
        if not self._enumerates:
            return self._drawn(theta, size, random)
        sets, y = self._sets()[0].astype(np.int8), np.empty((size, n, T), np.int8)
        for part, scores in self._blocks(theta):
            cumulative = np.cumsum(np.exp(scores - logsumexp(scores, axis=1)[:, None]), axis=1)
            for i, row in enumerate(cumulative, part.start):
                drawn = np.searchsorted(row, random.random(size) * row[-1], side="right")
                y[:, i] = sets[np.minimum(drawn, len(sets) - 1)]
        return y

    def _drawn(self, theta: LabelSetScores, size: int, random: np.random.Generator) -> np.ndarray:
        plan, y = self.plan(), np.empty((size, len(theta), self.n_labels), np.int8)
        for i in range(len(theta)):
            one = LabelSetScores(theta.labels[i : i + 1], theta.pairs, theta.constant[i : i + 1])
            _, shape, nodes, edges = next(iter(self._graphs(one)))
            y[:, i] = batched.samples(shape, plan, nodes, edges, size, int(random.integers(2**31)))
        return y

    def entropy(self, theta: LabelSetScores) -> np.ndarray:
        """Return −Σ_y p(y) log p(y)."""
        mu = self.marginals(theta)
        expected = theta.constant + (mu.labels * theta.labels).sum(axis=1) + mu.pairs @ theta.pairs
        return np.maximum(0.0, mu.log_partition - expected)

    def log_cardinality(self, X: Sequences) -> np.ndarray:
        """Return T log 2: pairs of labels change scores, not the number of sets."""
        return np.full(len(X), self.n_labels * np.log(2.0))

    def score(self, theta: LabelSetScores, y: np.ndarray) -> np.ndarray:
        """Return the scores of the given sets."""
        y = np.asarray(y, float)
        together = y[:, self.pairs[:, 0]] * y[:, self.pairs[:, 1]]
        return theta.constant + (theta.labels * y).sum(axis=1) + together @ theta.pairs

    # ------------------------------------------------------------------ truth, costs and margins

    def zeros(self, theta: LabelSetScores) -> LabelSetMarginals:
        """Return μ = 0."""
        n = len(theta)
        return LabelSetMarginals(np.zeros((n, self.n_labels)), np.zeros((n, len(self.pairs))), np.zeros(n))

    def subtract_truth(self, mu: LabelSetMarginals, y: np.ndarray) -> None:
        """Compute ``μ -= 1_y``."""
        self.add_output(mu, y, np.full(len(y), -1.0))

    def add_output(self, mu: LabelSetMarginals, y: np.ndarray, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
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
        """Return factor · θ."""
        return LabelSetScores(factor * theta.labels, factor * theta.pairs, factor * theta.constant)

    def augment(
        self, theta: LabelSetScores, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> LabelSetScores:
        """Return θ + scale · Δ(y, ·), Δ the number of wrong labels."""
        price = np.broadcast_to(np.asarray(scale, float), (len(theta),))[:, None] * self._price(cost)
        y = np.asarray(y, float)
        constant = theta.constant + (price * y).sum(axis=1)
        return LabelSetScores(theta.labels + price * (1 - 2 * y), theta.pairs, constant)

    def most_violating(
        self, theta: LabelSetScores, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z); y itself where approximate search finds nothing better."""
        if self._enumerates or (cost is not None and not cost.decomposes):
            return super().most_violating(theta, y, cost, scale)
        z, value = self.argmax(self.augment(theta, y, cost, scale))
        truth = self.score(theta, y)
        z = self.select(truth > value, y, z)
        return z, np.maximum(value, truth), self.cost_between(y, z, cost)

    def cost_between(self, y: np.ndarray, z: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z): the number of wrong labels."""
        if cost is not None and not cost.decomposes:
            return (~self.equal(y, z)).astype(float)
        return (np.asarray(y) != np.asarray(z)) @ self._price(cost)

    def equal(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return whether two sets are the same."""
        return (np.asarray(y) == np.asarray(z)).all(axis=1)

    def select(self, chosen: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return y where chosen, else z."""
        return np.where(np.asarray(chosen)[:, None], y, z).astype(np.int8)

    def difference(self, X: Sequences, y: np.ndarray, z: np.ndarray) -> csr_array:
        """Return x ⊗ (y − z), and the difference of the pairs."""
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


def dependent_pairs(Y: Any, n_pairs: int | None = None) -> list[tuple[int, int]]:
    """Return the most dependent pairs of labels, by the mutual information in training labels.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_rows, n_labels), of 0 and 1
    n_pairs : int, optional
        Number of pairs. None: the tree with the largest sum [Chow1968], on which inference is exact for any number of
        labels; independent labels are left out.

    Returns
    -------
    pairs : list of (int, int)
        Pairs, the most dependent first.

    References
    ----------
    .. [Chow1968] C. K. Chow and C. N. Liu. Approximating discrete probability distributions with dependence trees. IEEE
       Transactions on Information Theory 14, 1968.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import dependent_pairs
    >>> first = np.array([0, 1, 0, 1, 1, 0, 0, 1])
    >>> dependent_pairs(np.stack([first, 1 - first, [0, 0, 1, 1, 0, 0, 1, 1]], axis=1))
    [(0, 1)]
    """
    if len(getattr(Y, "shape", np.shape(Y))) != 2:
        raise ValueError("Y must be a matrix with a column for each label")
    indicator = csr_array(Y).astype(float)
    n, T = indicator.shape
    if n == 0:
        raise ValueError("Y has no rows")
    if not np.isin(indicator.data, (0.0, 1.0)).all():
        raise ValueError("Y must hold 0 and 1 only")
    both = (indicator.T @ indicator).toarray() / n
    p = np.diag(both)
    tables = [(both, np.outer(p, p)), (p[:, None] - both, np.outer(p, 1 - p)), (p - both, np.outer(1 - p, p)),
              (1 - p[:, None] - p + both, np.outer(1 - p, 1 - p))]  # fmt: skip
    information = np.zeros((T, T))
    for joint, apart in tables:
        seen = (joint > 0) & (apart > 0)
        information[seen] += joint[seen] * np.log(joint[seen] / apart[seen])
    first, second = np.triu_indices(T, 1)
    gains = information[first, second]
    order = [k for k in np.argsort(-gains, kind="stable").tolist() if gains[k] > 1e-12]
    if n_pairs is not None:
        return [(int(first[k]), int(second[k])) for k in order[: check_count("n_pairs", n_pairs)]]
    group, tree = list(range(T)), []

    def root(t: int) -> int:
        while group[t] != t:
            group[t] = group[group[t]]
            t = group[t]
        return t

    for k in order:
        s, t = int(first[k]), int(second[k])
        if root(s) != root(t):
            group[root(s)] = root(t)
            tree.append((s, t))
    return tree
