"""First-order chains: a label for each position of a sequence, with transition scores.

    score(y) = start[y_0] + Σ_t nodes[t, y_t] + Σ_{t≥1} (transitions[y_{t−1}, y_t] + edges[t, y_{t−1}, y_t]) +
    end[y_{T−1}]

The weight vector is [nodes | transitions (C × C) | start (C) | end (C) | edges]. Node weights exist for all (feature,
label) pairs or for a pattern of them. The same holds for edge weights (observation-dependent transitions) of (feature,
label pair).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import _core
from mercer._state.saved import Saved
from mercer._validation import check_count
from mercer.data.labels import TagSequences
from mercer.data.sequences import Sequences
from mercer.structures import patterns
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.constraints import SharedScores
from mercer.structures.costs import Cost, Hamming
from mercer.structures.patterns import Pattern


@dataclass
class ChainScores:
    """Part scores of a batch of chains; −inf forbids a part.

    Attributes
    ----------
    nodes : array of shape (n_positions, n_labels)
    transitions : array of shape (n_labels, n_labels)
    start, end : arrays of shape (n_labels,)
    offsets : int64 array of shape (n_sequences + 1,)
    edges : array of shape (n_positions, n_labels, n_labels), optional
        Scores of the transition into a position, added to ``transitions``; values at first positions are ignored.
    """

    nodes: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    edges: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.nodes.shape[1]

    def negated(self) -> ChainScores:
        """Return −θ; forbidden parts stay forbidden."""

        def flip(x: np.ndarray) -> np.ndarray:
            return np.where(np.isneginf(x), x, -x)

        edges = None if self.edges is None else flip(self.edges)
        return ChainScores(
            flip(self.nodes), flip(self.transitions), flip(self.start), flip(self.end), self.offsets, edges
        )

    def _arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
        return self.nodes, self.transitions, self.start, self.end, self.edges, self.offsets


@dataclass
class ChainMarginals:
    """Part marginals of a batch of chains (or differences of them: a gradient in part scores).

    ``nodes`` and ``edges`` are for each position; ``transitions``, ``start`` and ``end`` are summed over all
    sequences, as their scores are shared.
    """

    nodes: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    log_partition: np.ndarray
    edges: np.ndarray | None = None

    def subtract(self, other: ChainMarginals) -> None:
        """Compute ``self -= other`` for the parts."""
        self.nodes -= other.nodes
        self.transitions -= other.transitions
        self.start -= other.start
        self.end -= other.end
        if self.edges is not None and other.edges is not None:
            self.edges -= other.edges

    def scale(self, factor: float) -> None:
        """Compute ``self *= factor`` for the parts."""
        for part in (self.nodes, self.transitions, self.start, self.end, self.edges):
            if part is not None:
                part *= factor


class Chain(SharedScores, Saved, Structure):
    """Label sequences with first-order scores.

    Parameters
    ----------
    n_labels : int
    n_features : int
        Number of features of a position.
    n_edge_features : int, default=0
        Number of features of the transition into a position (observation-dependent transitions).
    pattern, edge_pattern : tuple (starts, columns), optional
        Which (feature, label) and (feature, label pair) pairs have weights, in CSR form; default all.
    masks : tuple of bool arrays (labels × labels, labels, labels), optional
        True for forbidden transitions, starts and ends; see :meth:`.Constraints.masks`.
    trained_transitions : bool array of shape (n_labels, n_labels), optional
        False for transitions whose weight stays 0.
    threads : int, default=1

    Examples
    --------
    >>> import numpy as np
    >>> chain = Chain(n_labels=2, n_features=1)
    >>> theta = ChainScores(np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([[0.0, -1.0], [0.0, 0.0]]), np.zeros(2),
    ...                     np.zeros(2), np.array([0, 2]))
    >>> chain.argmax(theta)[0]
    array([0, 0], dtype=int32)
    >>> chain.log_partition(theta).round(4)
    array([1.9482])
    """

    quick_online = True  # its loop is compiled: a few epochs are worth it before a batch method

    def __init__(
        self,
        n_labels: int,
        n_features: int,
        *,
        n_edge_features: int = 0,
        pattern: Pattern = None,
        edge_pattern: Pattern = None,
        masks: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        trained_transitions: np.ndarray | None = None,
        threads: int = 1,
    ) -> None:
        self.n_labels, self.n_features, self.n_edge_features = n_labels, n_features, n_edge_features
        self.pattern, self.edge_pattern = pattern, edge_pattern
        self.masks, self.trained_transitions, self.threads = masks, trained_transitions, threads
        self._nodes = _pattern(n_features, n_labels, pattern)
        self._edges = _pattern(n_edge_features, n_labels**2, edge_pattern) if n_edge_features else None
        self._buffers: dict[str, np.ndarray] = {}
        n, square = self._nodes.n_weights, n_labels**2
        bounds = np.cumsum([0, n, square, n_labels, n_labels, self._edges.n_weights if self._edges else 0])
        self.slices = dict(
            zip(
                ("nodes", "transitions", "start", "end", "edges"),
                (slice(int(a), int(b)) for a, b in pairwise(bounds)),
                strict=True,
            )
        )
        self.n_weights = int(bounds[-1])

    def _saved_params(self) -> dict[str, Any]:
        return {name: value for name, value in super()._saved_params().items() if name not in ("masks", "threads")}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> Chain:
        for name, least in (("n_labels", 1), ("n_features", 0), ("n_edge_features", 0)):
            check_count(name, params[name], least)
        trained, square = params["trained_transitions"], 2 * (params["n_labels"],)
        if trained is not None and (trained.shape != square or trained.dtype != bool):
            raise ValueError(f"trained_transitions must be booleans of shape {square}")
        return cls(**{**params, **{name: patterns.from_file(params[name]) for name in ("pattern", "edge_pattern")}})

    # ------------------------------------------------------------------ between weights and part scores

    def scores(self, w: np.ndarray, X: Sequences) -> ChainScores:
        """Return the part scores of a batch. The next call reuses the arrays."""
        self._check_features(X)
        C, count, row, dtype = self.n_labels, X.n_positions, int(X.offsets[0]), X.dtype
        nodes = self._buffer("nodes", (count, C), dtype)
        _core.linear.scores(X.rows.core, row, count, self._nodes, w[self.slices["nodes"]], nodes, self.threads)
        edges = None
        if self._edges is not None and X.edges is not None:
            edges = self._buffer("edges", (count, C, C), dtype)
            _core.linear.scores(
                X.edges.core,
                row,
                count,
                self._edges,
                w[self.slices["edges"]],
                edges.reshape(count, C * C),
                self.threads,
            )
        transitions, start, end = self.shared_scores(w, dtype)
        return ChainScores(nodes, transitions, start, end, X.offsets, edges)

    def backward(self, X: Sequences, mu: ChainMarginals, out: np.ndarray) -> None:
        """Add the features of a batch, weighted by μ."""
        C, count, row = self.n_labels, X.n_positions, int(X.offsets[0])
        _core.linear.backward(X.rows.core, row, count, self._nodes, mu.nodes, out[self.slices["nodes"]], self.threads)
        transitions = mu.transitions
        if self.trained_transitions is not None:
            transitions = np.where(self.trained_transitions, transitions, 0.0)
        out[self.slices["transitions"]] += transitions.ravel()
        out[self.slices["start"]] += mu.start
        out[self.slices["end"]] += mu.end
        if self._edges is not None and X.edges is not None and mu.edges is not None:
            flat = mu.edges.reshape(count, C * C)
            _core.linear.backward(X.edges.core, row, count, self._edges, flat, out[self.slices["edges"]], self.threads)

    def has_curvature(self, X: Sequences) -> bool:
        """Return whether all features are 0 or 1, and so equal to their squares."""
        rows = X.rows if X.edges is None else X.edges
        return all(one.dense is None and one.values is None for one in (X.rows, rows))

    def curvature(self, X: Sequences, theta: ChainScores, out: np.ndarray) -> None:
        """Add Σ_t x[t] μ[t] (1 − μ[t]): positions count as independent. Of pairs a bound by both labels."""
        mu = self.marginals(theta)
        mu.nodes *= 1.0 - mu.nodes
        spread = mu.nodes.sum(axis=0)
        mu.transitions = np.minimum(mu.transitions, spread[:, None] + spread)
        if mu.edges is not None:
            mu.edges *= 1.0 - mu.edges
        self.backward(X, mu, out)

    def has_log_loss(self, X: Sequences, y: TagSequences) -> bool:
        """Return whether :meth:`log_loss` is for these data: all labels known, no observation-dependent transitions."""
        return not y.partial and (self._edges is None or X.edges is None)

    def log_loss(self, w: np.ndarray, X: Sequences, y: TagSequences, out: np.ndarray) -> np.ndarray:
        """Return log Z − score(y) of each sequence; add the gradient in the weights to ``out``."""
        self._check_features(X)
        values, shared = np.empty(len(X)), np.zeros(self.n_labels**2 + 2 * self.n_labels)
        nodes = self.slices["nodes"]
        _core.chain.log_loss(
            X.rows.core,
            self._nodes,
            w[nodes],
            *self.shared_scores(w, X.dtype),
            X.offsets,
            y.labels,
            values,
            out[nodes],
            shared,
            self.threads,
        )
        if self.trained_transitions is not None:
            shared[: self.n_labels**2][~self.trained_transitions.ravel()] = 0.0
        out[self.slices["transitions"].start : self.slices["end"].stop] += shared
        return values

    def decode(self, w: np.ndarray, X: Sequences) -> tuple[np.ndarray, np.ndarray]:
        """Return ``argmax(scores(w, X))`` in one compiled call if transitions depend on labels only."""
        if self._edges is not None and X.edges is not None:
            return self.argmax(self.scores(w, X))
        self._check_features(X)
        labels, score = np.empty(X.n_positions, np.int32), np.empty(len(X))
        shared = self.shared_scores(w, X.dtype)
        nodes = w[self.slices["nodes"]]
        _core.chain.decode(X.rows.core, self._nodes, nodes, *shared, X.offsets, labels, score, self.threads)
        return labels, score

    def batches(self, X: Sequences, positions: int) -> Iterator[slice]:
        """Return slices of whole sequences of about ``positions`` positions (fewer where edges make them large)."""
        if self._edges is not None:
            positions = max(1, positions // self.n_labels)
        start = 0
        while start < len(X):
            stop = int(np.searchsorted(X.offsets, X.offsets[start] + positions, side="right")) - 1
            stop = min(max(stop, start + 1), len(X))
            yield slice(start, stop)
            start = stop

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: ChainScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels, stacked, and their scores, by the Viterbi algorithm."""
        labels = np.empty(len(theta.nodes), dtype=np.int32)
        score = np.empty(len(theta))
        _core.chain.viterbi(*theta._arguments(), labels, score, self.threads)
        return labels, score

    def argmin(self, theta: ChainScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest-scoring allowed labelling."""
        labels, score = self.argmax(theta.negated())
        return labels, -score

    def k_best(self, theta: ChainScores, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return labels of shape (k, n_positions), −1 where there are fewer than k labellings, and scores (n, k)."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        labels = np.empty((k, len(theta.nodes)), dtype=np.int32)
        score = np.empty((len(theta), k))
        _core.chain.k_best(*theta._arguments(), labels, score, self.threads)
        return labels, score

    def log_partition(self, theta: ChainScores) -> np.ndarray:
        """Return log Z of each sequence."""
        out = np.empty(len(theta))
        _core.chain.marginals(*theta._arguments(), None, None, None, None, None, out, None, self.threads)
        return out

    def marginals(self, theta: ChainScores, *, edges: bool = False) -> ChainMarginals:
        """Return node marginals and summed transition marginals; with ``edges`` also those of each position.

        The next call reuses the node and edge arrays.
        """
        C, count, dtype = self.n_labels, len(theta.nodes), theta.nodes.dtype
        mu = ChainMarginals(
            self._buffer("mu", (count, C), dtype), np.zeros((C, C)), np.zeros(C), np.zeros(C), np.empty(len(theta))
        )
        if edges or theta.edges is not None:
            mu.edges = self._buffer("mu_edges", (count, C, C), dtype)
        _core.chain.marginals(
            *theta._arguments(),
            mu.nodes,
            mu.transitions,
            mu.start,
            mu.end,
            mu.edges,
            mu.log_partition,
            None,
            self.threads,
        )
        return mu

    def marginals_of_each(self, theta: ChainScores) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return node marginals, and for each sequence those of its start, its summed transitions, and log Z.

        Returns
        -------
        nodes : array of shape (n_positions, n_labels)
        start : array of shape (n_sequences, n_labels)
        transitions : array of shape (n_sequences, n_labels, n_labels)
        log_partition : array of shape (n_sequences,)
        """
        n, C = len(theta), self.n_labels
        nodes, start, transitions = np.zeros((len(theta.nodes), C)), np.zeros((n, C)), np.zeros((n, C, C))
        log_partition, end = np.empty(n), np.empty(C)
        for i, (a, b) in enumerate(pairwise(theta.offsets.tolist())):
            one, edges = np.array([0, b - a]), None if theta.edges is None else theta.edges[a:b]
            _core.chain.marginals(
                theta.nodes[a:b], theta.transitions, theta.start, theta.end, edges, one,
                nodes[a:b], transitions[i], start[i], end, None, log_partition[i : i + 1], None, 1,
            )  # fmt: skip
        return nodes, start, transitions, log_partition

    def sample(self, theta: ChainScores, size: int, random_state: Any = None) -> np.ndarray:
        """Return labels of shape (size, n_positions); −1 for a sequence that has no allowed labelling."""
        labels = np.empty((size, len(theta.nodes)), dtype=np.int32)
        _core.chain.sample(*theta._arguments(), check_random_seed(random_state), labels, self.threads)
        return labels

    def entropy(self, theta: ChainScores) -> np.ndarray:
        """Return log Z − E[score] of each sequence."""
        log_partition, out = np.empty(len(theta)), np.empty(len(theta))
        _core.chain.marginals(*theta._arguments(), None, None, None, None, None, log_partition, out, self.threads)
        return out

    def log_cardinality(self, X: Sequences) -> np.ndarray:
        """Return the number of labellings that the masks allow, computed once for each length."""
        lengths, which = np.unique(X.lengths, return_inverse=True)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        nodes = np.zeros((int(offsets[-1]), self.n_labels))
        return self.log_partition(ChainScores(nodes, *self.shared_scores(np.zeros(self.n_weights)), offsets))[which]

    def score(self, theta: ChainScores, y: TagSequences) -> np.ndarray:
        """Return the score of fully known labellings."""
        out = np.empty(len(theta))
        _core.chain.score(*theta._arguments(), y.labels, out)
        return out

    # ------------------------------------------------------------------ truth

    def subtract_truth(self, mu: ChainMarginals, y: TagSequences) -> None:
        """Compute ``μ -= 1_y``."""
        self.add_output(mu, y, np.full(len(y), -1.0))

    def is_partial(self, y: TagSequences) -> bool:
        """Return whether some label is unknown."""
        return y.partial

    def restrict(self, theta: ChainScores, y: TagSequences) -> ChainScores:
        """Forbid all labellings that contradict the known labels."""
        allowed = np.ones(theta.nodes.shape, dtype=bool) if y.allowed is None else y.allowed.astype(bool)
        known = y.labels >= 0
        allowed[known] = False
        allowed[known, y.labels[known]] = True
        return replace(theta, nodes=np.where(allowed, theta.nodes, -np.inf).astype(theta.nodes.dtype))

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: ChainScores) -> ChainMarginals:
        """Return μ = 0. The next call reuses the node and edge arrays."""
        C, count, dtype = self.n_labels, len(theta.nodes), theta.nodes.dtype
        nodes = self._buffer("mu", (count, C), dtype)
        nodes[:] = 0.0
        mu = ChainMarginals(nodes, np.zeros((C, C)), np.zeros(C), np.zeros(C), np.zeros(len(theta)))
        if theta.edges is not None:
            mu.edges = self._buffer("mu_edges", (count, C, C), dtype)
            mu.edges[:] = 0.0
        return mu

    def add_output(self, mu: ChainMarginals, y: TagSequences, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        parts = mu.nodes, mu.transitions, mu.start, mu.end, mu.edges
        _core.chain.add(y.labels, y.offsets, np.asarray(weights, dtype=float), *parts)

    def scaled(self, theta: ChainScores, factor: float) -> ChainScores:
        """Return factor · θ."""
        by = theta.nodes.dtype.type(factor)
        edges = None if theta.edges is None else by * theta.edges
        return ChainScores(
            by * theta.nodes, by * theta.transitions, by * theta.start, by * theta.end, theta.offsets, edges
        )

    def augment(
        self, theta: ChainScores, y: TagSequences, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> ChainScores:
        """Return node scores plus scale · Δ(y, ·)."""
        table = (cost or Hamming()).table(y.labels, self.n_labels)
        if np.ndim(scale):
            table = table * np.repeat(scale, np.diff(theta.offsets))[:, None]
        elif scale != 1.0:
            table = table * scale
        return replace(theta, nodes=theta.nodes + table.astype(theta.nodes.dtype, copy=False))

    def cost_between(self, y: TagSequences, z: TagSequences, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z) of each sequence."""
        if cost is not None and not cost.decomposes:
            return (~self.equal(y, z)).astype(float)
        return _sums((cost or Hamming()).between(y.labels, z.labels, self.n_labels), y.offsets)

    def equal(self, y: TagSequences, z: TagSequences) -> np.ndarray:
        """Return whether all labels of a sequence agree."""
        return _sums(y.labels != z.labels, y.offsets) == 0

    def select(self, chosen: np.ndarray, y: TagSequences, z: TagSequences) -> TagSequences:
        """Return y where chosen, else z."""
        return y.where(chosen, z)

    def most_violating(
        self, theta: ChainScores, y: TagSequences, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[TagSequences, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z), that maximum and Δ(y, z)."""
        if cost is not None and not cost.decomposes:
            return super().most_violating(theta, y, cost, scale)
        labels, value = self.argmax(self.augment(theta, y, cost, scale))
        z = TagSequences(labels, y.offsets, partial=False)
        return z, value, self.cost_between(y, z, cost)

    def best_product(
        self, theta: ChainScores, y: TagSequences, cost: Cost | None = None
    ) -> tuple[TagSequences, np.ndarray, np.ndarray] | None:
        """Return the exact maximum for integer costs: the best labelling at each cost level (T · C² per level)."""
        cost = cost or Hamming()
        if not cost.decomposes:
            return None
        table = cost.table(y.labels, self.n_labels)
        unit = _unit(table)
        if unit is None:
            return None
        levels = np.rint(table / unit).astype(np.int64)
        truth = self.score(theta, y)
        labels, value, delta = y.labels.copy(), np.zeros(len(theta)), np.zeros(len(theta))
        begin = int(theta.offsets[0])
        for i, (a, b) in enumerate(pairwise((theta.offsets - begin).tolist())):
            if a == b:
                continue
            edges = None if theta.edges is None else theta.edges[a:b].astype(float)
            shared = theta.transitions.astype(float), theta.start.astype(float), theta.end.astype(float)
            if levels[a:b].max(axis=1).sum() > _MAX_LEVELS:
                return None
            z, level, product = _level_search(theta.nodes[a:b].astype(float), edges, *shared, levels[a:b], truth[i])
            if product > 0:
                labels[a:b], value[i], delta[i] = z, unit * product, unit * level
        return TagSequences(labels, y.offsets, partial=False), value, delta

    def runner_up(self, theta: ChainScores, y: TagSequences) -> tuple[TagSequences, np.ndarray]:
        """Return the best labelling other than y and its score."""
        labels, scores = self.k_best(theta, 2)
        first, second = (TagSequences(row, y.offsets, partial=False) for row in labels)
        same = self.equal(y, first)
        score = np.where(same, scores[:, 1], scores[:, 0])
        z = self.select(same, second, first)
        return self.select(np.isneginf(score), y, z), score

    def difference(self, X: Sequences, y: TagSequences, z: TagSequences) -> csr_array:
        """Return Φ(x, y) − Φ(x, z) of each sequence."""
        self._check_features(X)
        edges = X.edges.core if self._edges is not None and X.edges is not None else None
        indptr, columns, values = _core.planes.chain_difference(
            X.rows.core,
            self._nodes,
            edges,
            self._edges if edges is not None else None,
            np.ascontiguousarray(X.offsets),
            y.labels,
            z.labels,
            self._shared_mask(),
        )
        return csr_array((values, columns, indptr), shape=(len(X), self.n_weights))

    # ------------------------------------------------------------------ online learning, compiled

    def online(
        self,
        rule: int,
        X: Sequences,
        y: TagSequences,
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
        """Make one compiled pass of an online rule; return (summed loss, wrong labels).

        Compiled in ``cpp/solvers/chain_online.hpp``.
        """
        self._check_features(X)
        edges, labels, allowed = self._online_data(X, y)
        return _core.chain.online(
            X.rows.core,
            self._nodes,
            edges,
            self._edges if edges is not None else None,
            np.ascontiguousarray(X.offsets),
            labels,
            self._shared_mask(),
            allowed,
            rule,
            rate,
            decay,
            l2,
            l1,
            aggressiveness,
            order,
            w,
            extra,
            state,
        )

    def ascent(
        self, loss: Any, X: Sequences, y: TagSequences, order: np.ndarray, w: np.ndarray, planes: Any, max_idle: int
    ) -> float | None:
        """Return a compiled pass of block-coordinate ascent; None where the loss or its cost needs the general path."""
        cost = self._cost_matrix(loss)
        if cost is None:
            return None
        return _core.planes.chain_ascent(*self._margin_arguments(X, y), cost, order, w, planes, max_idle)

    def subgradient(
        self, loss: Any, X: Sequences, y: TagSequences, order: np.ndarray, total: np.ndarray, mass: float, state: Any
    ) -> tuple[float, float] | None:
        """Return a compiled pass of Pegasos steps; None where the loss or its cost needs the general path."""
        cost = self._cost_matrix(loss)
        if cost is None:
            return None
        return _core.planes.chain_subgradient(*self._margin_arguments(X, y), cost, order, total, mass, state)

    # ------------------------------------------------------------------ parts

    def _cost_matrix(self, loss: Any) -> np.ndarray | None:
        """Costs of label pairs, for the hinge and its square."""
        if loss.name not in ("hinge", "squared-hinge"):
            return None
        matrix = (loss.cost or Hamming()).matrix_of(self.n_labels)
        return None if matrix is None else np.ascontiguousarray(matrix, dtype=float)

    def _margin_arguments(self, X: Sequences, y: TagSequences) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        self._check_features(X)
        edges, labels, _ = self._online_data(X, y)
        edge_pattern = self._edges if edges is not None else None
        offsets = np.ascontiguousarray(X.offsets)
        return X.rows.core, self._nodes, edges, edge_pattern, offsets, labels, self._shared_mask()

    def _online_data(self, X: Sequences, y: TagSequences) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Edge rows, and labels for all rows of the matrix behind X (which may be a view of it)."""
        edges = X.edges.core if self._edges is not None and X.edges is not None else None
        n_rows = X.rows.shape[0]
        first, last = int(X.offsets[0]), int(X.offsets[-1])
        labels, allowed = y.labels, y.allowed
        if (first, last) != (0, n_rows):
            labels = np.full(n_rows, -1, np.int32)
            labels[first:last] = y.labels
            if allowed is not None:
                allowed = np.ones((n_rows, self.n_labels), np.uint8)
                allowed[first:last] = y.allowed
        return edges, labels, allowed

    def _shared_mask(self) -> np.ndarray | None:
        if self.masks is None and self.trained_transitions is None:
            return None
        C = self.n_labels
        mask = np.zeros(C * C + 2 * C, np.uint8)
        if self.trained_transitions is not None:
            mask[: C * C][~self.trained_transitions.ravel()] = 2
        if self.masks is not None:
            mask[np.concatenate([m.ravel() for m in self.masks])] = 1
        return mask

    def _check_features(self, X: Sequences) -> None:
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} features, the model has {self.n_features}")
        if self.n_edge_features and X.n_edge_features != self.n_edge_features:
            raise ValueError(f"X has {X.n_edge_features} edge features, the model has {self.n_edge_features}")

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Scratch memory that grows and is used again: fresh pages cost more than the work done in them."""
        size = int(np.prod(shape))
        held = self._buffers.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._buffers[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)

    def resized(self, pattern: Pattern, edge_pattern: Pattern) -> Chain:
        """Return the same structure with different patterns."""
        return Chain(**{**self.__getstate__(), "pattern": pattern, "edge_pattern": edge_pattern})

    def carry_over(self, w: np.ndarray, old: Chain, place: np.ndarray) -> np.ndarray:
        """Return the weights of another chain in this one's layout.

        Its label c is label ``place[c]`` here; features keep their columns.
        """
        C, out = self.n_labels, np.zeros(self.n_weights)
        pairs = (place[:, None] * C + place).ravel()
        for part, columns, width in (("nodes", place, C), ("edges", pairs, C * C)):
            at = patterns.moved(old.keys(part), columns, width)
            out[self.slices[part]] = patterns.spread(w[old.slices[part]], at, self.keys(part))
        for part, columns in (("transitions", pairs), ("start", place), ("end", place)):
            out[self.slices[part]][columns] = w[old.slices[part]]
        return out

    def keys(self, part: str) -> np.ndarray:
        """Return the (feature, column) pairs of the weights of ``"nodes"`` or ``"edges"``, as sorted keys."""
        if part == "nodes":
            return patterns.keys(self.pattern, self.n_features, self.n_labels)
        return patterns.keys(self.edge_pattern, self.n_edge_features, self.n_labels**2)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("n_labels", "n_features", "n_edge_features", "pattern", "edge_pattern", "masks", "trained_transitions")
        return {name: getattr(self, name) for name in (*kept, "threads")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums over sequences; 0 for those without positions."""
    totals = np.concatenate([[0.0], np.cumsum(values, dtype=float)])
    return totals[offsets[1:] - offsets[0]] - totals[offsets[:-1] - offsets[0]]


_MAX_LEVELS = 4096


def _unit(table: np.ndarray) -> float | None:
    """The largest number of which all costs are multiples; None where there is none of a reasonable size."""
    values = np.unique(table)
    whole = np.rint(values * 1e6)
    if np.abs(whole - values * 1e6).max(initial=0.0) > 1e-3:
        return None
    divisor = int(np.gcd.reduce(whole.astype(np.int64))) if len(whole) else 0
    return divisor / 1e6 if divisor else 1.0


def _level_search(
    nodes: np.ndarray,
    edges: np.ndarray | None,
    transitions: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    levels: np.ndarray,
    truth: float,
) -> tuple[np.ndarray, int, float]:
    """The labelling with the largest level · (1 + score − truth): Viterbi with the level as part of the state."""
    T, C = nodes.shape
    D = int(levels.max(axis=1).sum())
    best, back = np.full((D + 1, C), -np.inf), np.zeros((T, D + 1, C), np.int32)
    best[levels[0], np.arange(C)] = start + nodes[0]
    for t in range(1, T):
        into = transitions if edges is None else transitions + edges[t]
        scores = best[:, :, None] + into
        arg = scores.argmax(axis=1)
        reached = np.take_along_axis(scores, arg[:, None], 1)[:, 0] + nodes[t]
        best = np.full((D + 1, C), -np.inf)
        for c in range(C):
            shift = int(levels[t, c])
            best[shift:, c] = reached[: D + 1 - shift, c]
            back[t, shift:, c] = arg[: D + 1 - shift, c]
    last = best + end
    products = np.arange(D + 1) * (1.0 + last.max(axis=1) - truth)
    products[0] = 0.0
    level = int(np.argmax(products))
    z = np.empty(T, np.int32)
    if level == 0:
        return z, 0, 0.0
    at, z[-1] = level, int(np.argmax(last[level]))
    for t in range(T - 1, 0, -1):
        z[t - 1] = back[t, at, z[t]]
        at -= int(levels[t, z[t]])
    return z, level, float(products[level])


def _pattern(n_features: int, width: int, pattern: Pattern) -> Any:
    if pattern is None:
        return _core.linear.Pattern(n_features, width)
    return _core.linear.Pattern(pattern[0], pattern[1], width)
