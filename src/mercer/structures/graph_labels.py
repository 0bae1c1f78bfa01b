"""Labels of the nodes of graphs with dependent neighbours: conditional random fields.

    score(y) = Σ_v θ_v[y_v] + Σ_{(u,v)∈E} θ_uv[y_u, y_v],   θ_v[l] = ⟨w_l, x_v⟩,   θ_uv[k, l] = ⟨w_{t,kl}, x_uv⟩

with node features x_v, edge features x_uv and the type t of an edge. Grids of pixels are a special case.
``edge_weights`` selects the weights of a pair of labels.

Weights are one vector: ``[ nodes: (feature, label) | edges: (type, edge feature, kind of pair) ]``.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer._state.limits import reserve
from mercer._state.saved import Saved
from mercer._validation import check_choice, check_count, hyphenated
from mercer.data.labels import TagSequences
from mercer.inference import batched
from mercer.inference.batched import GraphBatch
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.costs import Cost, Hamming, ZeroOne
from mercer.structures.graph_inputs import GraphInputs
from mercer.structures.online import online_by_verbs

__all__ = ["EDGE_WEIGHTS", "GraphLabels", "GraphMarginals", "GraphScores"]

EDGE_WEIGHTS = ("symmetric", "directed", "potts", "attractive", "none")


@dataclass
class GraphScores:
    """Part scores of a batch of graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import GraphLabels, GraphInputs
    >>> graphs = GraphInputs.from_list([(np.eye(2), [(0, 1)])])
    >>> theta = GraphLabels(n_labels=2, n_features=2).scores(np.arange(7.0), graphs)
    >>> theta.nodes.tolist(), theta.edges.tolist()
    ([[0.0, 1.0], [2.0, 3.0]], [[[4.0, 5.0], [5.0, 6.0]]])
    """

    nodes: np.ndarray
    """(nodes × labels)"""
    edges: np.ndarray
    """(edges × labels × labels)"""
    shape: GraphBatch
    """Which graph has which nodes and edges."""
    below: np.ndarray | None = None
    """Weights of "attractive" edges that are below 0 and count as 0: (types × edge features × kinds of pairs)."""

    def __len__(self) -> int:
        return len(self.shape)

    @property
    def offsets(self) -> np.ndarray:
        """Return the offsets of the nodes of each graph, from 0."""
        return self.shape.offsets


@dataclass
class GraphMarginals:
    """Probabilities of the parts of a batch of graphs (or a gradient in part scores) and log Z.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import GraphLabels, GraphInputs
    >>> graphs = GraphInputs.from_list([(np.eye(2), [(0, 1)])])
    >>> structure = GraphLabels(n_labels=2, n_features=2)
    >>> structure.marginals(structure.scores(np.zeros(7), graphs)).nodes.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    nodes: np.ndarray
    """(nodes × labels)"""
    edges: np.ndarray
    """(edges × labels × labels)"""
    log_partition: np.ndarray
    """log Z of each graph: exact, a bound or an estimate."""
    shape: GraphBatch
    """Assignment of nodes and edges to graphs."""
    below: np.ndarray | None = None
    """The ignored weights of the θ of these marginals."""

    def subtract(self, other: GraphMarginals) -> None:
        """Compute ``self -= other``."""
        self.nodes -= other.nodes
        self.edges -= other.edges

    def scale(self, factor: float | np.ndarray) -> None:
        """Compute ``self *= factor``, one number or one for each graph."""
        if np.ndim(factor) == 0:
            self.nodes *= factor
            self.edges *= factor
            return
        of_node = np.repeat(factor, np.diff(self.shape.offsets))
        self.nodes *= of_node[:, None]
        self.edges *= of_node[self.shape.edges[:, 0]][:, None, None]

    def __deepcopy__(self, memo: Any) -> GraphMarginals:
        nodes, edges, log_z = self.nodes.copy(), self.edges.copy(), self.log_partition.copy()
        return GraphMarginals(nodes, edges, log_z, self.shape, self.below)


class GraphLabels(Saved, Structure):
    """A label for each node of a graph; neighbours depend on each other.

    Parameters
    ----------
    n_labels, n_features : int
    n_edge_features : int, default=1
    n_types : int, default=1
        Types of edges, each with its own weights.
    edge_weights : {"symmetric", "directed", "potts", "attractive", "none"}, default="symmetric"
        Weights of an edge feature: one for each pair of labels without order, one for each ordered pair, one for
        all pairs of equal labels, the same but never below 0 (so that minimum cuts are exact for two labels; edge
        features must not be negative), or none: nodes are then labelled independently.
    inference : {"auto", "exact", "bp", "trw", "mean-field", "cuts", "expansion", "swap", "lp", "dual", "icm"}
        The method of inference. "auto": exact if graphs have no cycles or small cliques; minimum cuts for two
        attractive labels; else tree-reweighted messages for sums, and expansion moves or dual ascent for the best
        labelling. Methods that only maximise use "trw" for sums. See :meth:`plan`.
    threads : int, default=1
        For exact sums over cliques. Results do not depend on it.

    Notes
    -----
    With approximate inference losses are those of the approximation: with "trw" the log loss is a convex upper bound
    of the exact one; with "bp" and "mean-field" it need not be convex. ``unconverged`` counts runs that did not
    converge, and ``residual`` is the largest change of their last sweep.

    Weights of "attractive" edges that a solver sets below 0 count as 0. This is exact for smooth losses; cutting-plane
    solvers may stop slightly short of their gap.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import GraphLabels, GraphInputs
    >>> square = GraphInputs.from_list([(np.array([[2.0], [0.1], [-0.2], [1.0]]), [(0, 1), (1, 2), (2, 3), (3, 0)])])
    >>> structure = GraphLabels(n_labels=2, n_features=1, edge_weights="potts")
    >>> theta = structure.scores(np.array([-1.0, 1.0, 0.5]), square)
    >>> structure.argmax(theta)
    (array([1, 1, 1, 1], dtype=int32), array([4.9]))
    >>> str(structure.plan(theta))
    'sums: junction-tree (exact), best: junction-tree (exact): the cliques are small'
    """

    weighs_examples = True

    def __init__(
        self,
        n_labels: int,
        n_features: int,
        *,
        n_edge_features: int = 1,
        n_types: int = 1,
        edge_weights: str = "symmetric",
        inference: str = "auto",
        threads: int = 1,
    ) -> None:
        self.n_labels, self.n_features = check_count("n_labels", n_labels), check_count("n_features", n_features, 0)
        self.n_edge_features = check_count("n_edge_features", n_edge_features, 0)
        self.n_types = check_count("n_types", n_types)
        self.edge_weights = check_choice("edge_weights", edge_weights, EDGE_WEIGHTS)
        self.inference = check_choice("inference", hyphenated(inference), batched.INFERENCE)
        self.threads = threads
        self.unconverged, self.residual = 0, 0.0
        self._memory: dict[GraphBatch, np.ndarray] | None = None
        self._kinds = _kinds(self.n_labels, edge_weights)  # pairs of labels × kinds, 0 or 1
        nodes = self.n_features * self.n_labels
        self.n_weights = nodes + self.n_types * self.n_edge_features * self._kinds.shape[1]
        self.has_edges = self.edge_weights != "none"
        self.slices = {"nodes": slice(0, nodes), "edges": slice(nodes, self.n_weights)}

    def _saved_params(self) -> dict[str, Any]:
        return {name: value for name, value in super()._saved_params().items() if name != "threads"}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> GraphLabels:
        pairs = check_count("n_labels", params["n_labels"]) ** 2
        kinds = {"none": 0, "directed": pairs, "symmetric": pairs}.get(params["edge_weights"], 1)
        reserve(8 * pairs * kinds, "the kinds of pairs of labels")
        return cls(**params)

    # ------------------------------------------------------------------ between weights and part scores

    def split(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of nodes (features × labels) and of edges (types × edge features × kinds of pairs)."""
        edges = w[self.slices["edges"]].reshape(self.n_types, self.n_edge_features, self._kinds.shape[1])
        return w[self.slices["nodes"]].reshape(self.n_features, self.n_labels), edges

    @property
    def kinds_of_pairs(self) -> np.ndarray:
        """Return a 0/1 matrix of which label pairs (rows) share a weight (columns)."""
        return self._kinds

    def pair_weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of pairs of labels: (types × edge features × labels × labels)."""
        table = self._signed(self.split(w)[1]) @ self._kinds.T
        return table.reshape(self.n_types, self.n_edge_features, self.n_labels, self.n_labels)

    def _signed(self, edge_weights: np.ndarray) -> np.ndarray:
        return np.maximum(edge_weights, 0.0) if self.edge_weights == "attractive" else edge_weights

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Return the weights with negative weights of "attractive" edges set to 0."""
        if self.edge_weights != "attractive":
            return w
        clipped = w.copy()
        clipped[self.slices["edges"]] = np.maximum(clipped[self.slices["edges"]], 0.0)
        return clipped

    def scores(self, w: np.ndarray, X: GraphInputs) -> GraphScores:
        """Return θ of nodes and edges."""
        self._check_inputs(X)
        L = self.n_labels
        node_weights, edge_weights = self.split(w)
        nodes = np.ascontiguousarray(X.nodes @ node_weights)
        shape = X.shape(L, self.has_edges)
        edges = np.zeros((len(shape.edges), L * L))
        if len(edges):
            signed = self._signed(edge_weights)
            for t, rows in self._types(X):
                edges[rows] = (X.edge_features[rows] @ signed[t]) @ self._kinds.T
        below = edge_weights < 0 if self.edge_weights == "attractive" else None
        return GraphScores(nodes, edges.reshape(-1, L, L), shape, below)

    def backward(self, X: GraphInputs, mu: GraphMarginals, out: np.ndarray) -> None:
        """Compute ``out += Φᵀ μ``; 0 for weights that were ignored in the θ of μ."""
        self._check_inputs(X)
        nodes, edges = self.split(out)
        nodes += X.nodes.T @ mu.nodes
        if len(mu.edges):
            flat = mu.edges.reshape(len(X.edges), -1) @ self._kinds
            for t, rows in self._types(X):
                slope = X.edge_features[rows].T @ flat[rows]
                edges[t] += slope if mu.below is None else np.where(mu.below[t], 0.0, slope)

    def difference(self, X: GraphInputs, y: TagSequences, z: TagSequences) -> csr_array:
        """Return Φ(x, y) − Φ(x, z) of each graph, from the nodes and edges where y and z differ."""
        self._check_inputs(X)
        shape, L = X.shape(self.n_labels, self.has_edges), self.n_labels
        rows, columns, values = [], [], []

        def take(graphs: np.ndarray, features: Any, first: np.ndarray, step: int, sign: int) -> None:
            features = csr_array(features)
            row = np.repeat(np.arange(len(graphs)), np.diff(features.indptr))
            rows.append(graphs[row])
            columns.append(first[row] + step * features.indices.astype(np.int64))
            values.append(sign * features.data)

        at = np.flatnonzero(y.labels != z.labels)
        for labels, sign in ((y.labels, 1), (z.labels, -1)):
            take(shape.graph_of_node[at], X.nodes[at], labels[at].astype(np.int64), L, sign)
        if len(shape.edges) and self.has_edges:
            u, v = shape.edges.T
            of_y, of_z = (labels[u].astype(np.int64) * L + labels[v] for labels in (y.labels, z.labels))
            kinds = self._kinds.shape[1]
            kind = np.where(self._kinds.any(axis=1), self._kinds.argmax(axis=1), -1)  # of each pair of labels
            types = np.zeros(len(u), np.int64) if self.n_types == 1 else X.edge_types
            begin = self.slices["edges"].start + types * (self.n_edge_features * kinds)
            for pairs, sign in ((of_y, 1), (of_z, -1)):
                at = np.flatnonzero((of_y != of_z) & (kind[pairs] >= 0))
                take(shape.graph_of_edge[at], X.edge_features[at], begin[at] + kind[pairs[at]], kinds, sign)
        there = np.concatenate(rows), np.concatenate(columns)
        summed = csr_array((np.concatenate(values), there), shape=(len(X), self.n_weights))
        summed.sum_duplicates()
        summed.eliminate_zeros()
        return summed

    def batches(self, X: GraphInputs, positions: int) -> Iterator[slice]:
        """Return slices of graphs with about ``positions`` nodes each."""
        start, filled = 0, 0
        for i, length in enumerate(X.lengths.tolist()):
            if filled and filled + length > positions:
                yield slice(start, i)
                start, filled = i, 0
            filled += length
        if start < len(X):
            yield slice(start, len(X))

    def _types(self, X: GraphInputs) -> Iterator[tuple[int, Any]]:
        if self.n_types == 1:
            yield 0, slice(None)
            return
        assert X.edge_types is not None
        for t in range(self.n_types):
            yield t, np.flatnonzero(X.edge_types == t)

    def _check_inputs(self, X: GraphInputs) -> None:
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} node features, the model has {self.n_features}")
        if not self.has_edges:
            return
        if X.n_edge_features != self.n_edge_features:
            raise ValueError(f"X has {X.n_edge_features} edge features, the model has {self.n_edge_features}")
        if self.n_types > 1 and X.edge_types is None:
            raise ValueError(f"X has no edge types, the model has {self.n_types}")
        if self.n_types > 1 and X.n_types > self.n_types:
            raise ValueError(f"X has an edge of type {X.n_types - 1}, the model has {self.n_types} types")
        if self.edge_weights == "attractive" and (X.edge_features < 0).any():
            raise ValueError("edge_weights='attractive' needs edge features of at least 0")

    # ------------------------------------------------------------------ how verbs are answered

    def plan(self, theta: GraphScores | GraphInputs) -> batched.Plan:
        """Return the methods of inference for these graphs: ``sums``, ``maxima``, exactness and ``reason``.

        One plan serves all slices of one `GraphInputs`.
        """
        if isinstance(theta, GraphInputs):
            root = theta._shapes if self.has_edges else theta._shapes.alone
        else:
            root = theta.shape.root
        key = (self.n_labels, self.inference, self.edge_weights)
        if key not in root.plans:
            whole = root.batch(self.n_labels, 0, len(root.offsets) - 1)
            inference = self.inference if self.has_edges else "auto"
            root.plans[key] = batched.make_plan(whole, inference, self.edge_weights == "attractive")
        return root.plans[key]

    @contextlib.contextmanager
    def remembering(self) -> Iterator[None]:
        """Within this context, messages start from the last messages of the same graphs.

        Training calls inference repeatedly with slightly different weights. Warm starts need far fewer sweeps and give
        the same beliefs up to the tolerance of the messages. "bp" always restarts, because its fixed point may depend
        on the start.
        """
        self._memory = None if self.inference == "bp" else {}
        try:
            yield
        finally:
            self._memory = None

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: GraphScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labelling found of each graph (labels of all nodes) and its score."""
        labels = self._best(theta, False)
        return labels, self._score(theta, labels)

    def argmin(self, theta: GraphScores) -> tuple[np.ndarray, np.ndarray]:
        """Return the worst allowed labelling found of each graph and its score."""
        negated = replace(theta, nodes=_negated(theta.nodes), edges=_negated(theta.edges))
        labels = self._best(negated, True)
        return labels, self._score(theta, labels)

    def _best(self, theta: GraphScores, worst: bool) -> np.ndarray:
        plan = self.plan(theta)
        if not len(theta.nodes):
            return np.zeros(0, np.int32)
        return np.asarray(batched.maxima(theta.shape, plan, theta.nodes, theta.edges, self.threads, worst), np.int32)

    def k_best(self, theta: GraphScores, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return labels of shape (k, nodes), −1 where there are fewer, and scores (graphs, k).

        If inference is not exact, k is at most 2, and the second labelling is the best that differs from the first at
        one node.
        """
        check_count("k", k)
        plan = self.plan(theta)
        if plan.exact_sums:
            labels, there = batched.best_of_cliques(theta.shape, plan, theta.nodes, theta.edges, k, self.threads)
            safe = np.maximum(labels, 0)
            scores = np.stack([self._score(theta, row) for row in safe], axis=1)
            return labels, np.where(there, scores, -np.inf)
        if k > 2:
            raise ValueError(f"inference={self.inference!r} finds two best labellings at most here, got k={k}")
        first, score = self.argmax(theta)
        if k == 1:
            return first[None], score[:, None]
        second, other = self._best_change(theta, first, score)
        return np.stack([first, second]), np.stack([score, other], axis=1)

    def _best_change(self, theta: GraphScores, labels: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best labelling that differs at one node from the given one."""
        local = self._conditional(theta, labels)
        gain = local - np.take_along_axis(local, labels[:, None].astype(np.int64), 1)
        np.put_along_axis(gain, labels[:, None].astype(np.int64), -np.inf, 1)
        out, value = labels.copy(), np.full(len(theta), -np.inf)
        for i, (a, b) in enumerate(zip(theta.offsets[:-1].tolist(), theta.offsets[1:].tolist(), strict=True)):
            if a == b:
                continue
            v, label = np.unravel_index(int(gain[a:b].argmax()), (b - a, self.n_labels))
            value[i] = score[i] + gain[a + v, label]
            out[a + v] = label
        return out, value

    def _conditional(self, theta: GraphScores, labels: np.ndarray) -> np.ndarray:
        """Scores of each node's labels with all other nodes as given: θ_v[l] + Σ_u θ_vu[l, y_u]."""
        u, v = theta.shape.edges.T
        local = theta.nodes.copy()
        index = np.arange(len(u))
        np.add.at(local, u, theta.edges[index, :, labels[v]])
        np.add.at(local, v, theta.edges[index, labels[u], :])
        return local

    def log_partition(self, theta: GraphScores) -> np.ndarray:
        """Return log Z of each graph: exact, a bound or an estimate, as the plan says."""
        return self.marginals(theta).log_partition

    def marginals(self, theta: GraphScores) -> GraphMarginals:
        """Return the probabilities of the labels of nodes and of pairs of neighbours."""
        plan, shape = self.plan(theta), theta.shape
        if not len(theta.nodes):
            return self.zeros(theta)
        nodes, edges, log_z, change = batched.sums(shape, plan, theta.nodes, theta.edges, self.threads, self._memory)
        self.unconverged += change > 0
        self.residual = max(self.residual, change)
        return GraphMarginals(nodes, edges, log_z, shape, theta.below)

    def sample(self, theta: GraphScores, size: int, random_state: Any = None) -> np.ndarray:
        """Return labels of shape (size, nodes), by Gibbs sampling if inference is not exact."""
        plan = self.plan(theta)
        return batched.samples(theta.shape, plan, theta.nodes, theta.edges, size, check_random_seed(random_state))

    def entropy(self, theta: GraphScores) -> np.ndarray:
        """Return log Z − E[score] of each graph."""
        mu = self.marginals(theta)
        expected = batched.per_graph(
            theta.shape,
            batched.expected(mu.nodes, theta.nodes).sum(axis=1),
            batched.expected(mu.edges, theta.edges).sum(axis=(1, 2)),
        )
        return mu.log_partition - expected

    def log_cardinality(self, X: GraphInputs) -> np.ndarray:
        """Return nodes · log C: edges change scores, not the number of labellings."""
        return X.lengths * np.log(self.n_labels)

    def score(self, theta: GraphScores, y: TagSequences) -> np.ndarray:
        """Return the scores of given labellings."""
        return self._score(theta, y.labels)

    def _score(self, theta: GraphScores, labels: np.ndarray) -> np.ndarray:
        u, v = theta.shape.edges.T
        return batched.per_graph(
            theta.shape,
            theta.nodes[np.arange(len(labels)), labels],
            theta.edges[np.arange(len(u)), labels[u], labels[v]],
        )

    # ------------------------------------------------------------------ truth

    def subtract_truth(self, mu: GraphMarginals, y: TagSequences) -> None:
        """Compute ``μ -= 1_y``."""
        self.add_output(mu, y, -np.ones(len(y)))

    def is_partial(self, y: TagSequences) -> bool:
        """Return whether labels are missing."""
        return y.partial

    def restrict(self, theta: GraphScores, y: TagSequences) -> GraphScores:
        """Return θ with −inf for all labels that contradict the known ones."""
        allowed = np.ones(theta.nodes.shape, bool) if y.allowed is None else y.allowed.astype(bool)
        known = np.flatnonzero(y.labels >= 0)
        allowed[known] = False
        allowed[known, y.labels[known]] = True
        return replace(theta, nodes=np.where(allowed, theta.nodes, -np.inf))

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: GraphScores) -> GraphMarginals:
        """Return μ = 0."""
        return GraphMarginals(
            np.zeros(theta.nodes.shape), np.zeros(theta.edges.shape), np.zeros(len(theta)), theta.shape, theta.below
        )

    def add_output(self, mu: GraphMarginals, y: TagSequences, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        shape, labels = mu.shape, y.labels
        u, v = shape.edges.T
        mu.nodes[np.arange(len(labels)), labels] += weights[shape.graph_of_node]
        mu.edges[np.arange(len(u)), labels[u], labels[v]] += weights[shape.graph_of_edge]

    def scaled(self, theta: GraphScores, factor: float) -> GraphScores:
        """Return factor · θ."""
        return replace(theta, nodes=factor * theta.nodes, edges=factor * theta.edges)

    def augment(
        self, theta: GraphScores, y: TagSequences, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> GraphScores:
        """Return θ + scale · Δ(y, ·)."""
        table = (cost or Hamming()).table(y.labels, self.n_labels)
        factor = scale if np.ndim(scale) == 0 else np.asarray(scale)[theta.shape.graph_of_node][:, None]
        return replace(theta, nodes=theta.nodes + factor * table)

    def cost_between(self, y: TagSequences, z: TagSequences, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z) of each graph."""
        if isinstance(cost, ZeroOne):
            return (~self.equal(y, z)).astype(float)
        return _sums((cost or Hamming()).between(y.labels, z.labels, self.n_labels), y.offsets)

    def equal(self, y: TagSequences, z: TagSequences) -> np.ndarray:
        """Return whether all labels of a graph are the same."""
        return _sums((y.labels != z.labels).astype(float), y.offsets) == 0

    def select(self, chosen: np.ndarray, y: TagSequences, z: TagSequences) -> TagSequences:
        """Return y where chosen, else z."""
        return y.where(chosen, z)

    def most_violating(
        self, theta: GraphScores, y: TagSequences, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[TagSequences, np.ndarray, np.ndarray]:
        """Return z = argmax scale · Δ(y, z) + score(z); y itself if approximate search finds nothing better."""
        if cost is not None and not cost.decomposes:
            return super().most_violating(theta, y, cost, scale)
        labels, value = self.argmax(self.augment(theta, y, cost, scale))
        truth = self.score(theta, y)
        z = self.select(truth > value, y, TagSequences(labels, y.offsets, partial=False))
        return z, np.maximum(value, truth), self.cost_between(y, z, cost)

    def runner_up(self, theta: GraphScores, y: TagSequences) -> tuple[TagSequences, np.ndarray]:
        """Return the best labelling other than y and its score."""
        labels, scores = self.k_best(theta, 2)
        first, second = (TagSequences(row, y.offsets, partial=False) for row in labels)
        same = self.equal(y, first)
        score = np.where(same, scores[:, 1], scores[:, 0])
        z = self.select(same, second, first)
        return self.select(np.isneginf(score), y, z), score

    # ------------------------------------------------------------------ steps on single graphs

    def online(
        self,
        rule: int,
        X: GraphInputs,
        y: TagSequences,
        order: np.ndarray,
        w: np.ndarray,
        extra: np.ndarray,
        state: Any,
        **options: float,
    ) -> tuple[float, int]:
        """Make one pass of an online rule, a step for each graph; return (summed loss, wrong labels)."""
        worker = copy.copy(self)  # several passes may run side by side
        worker._memory, worker.unconverged, worker.residual = None, 0, 0.0
        result = online_by_verbs(worker, rule, X, y, order, w, extra, state, **options)
        self.unconverged, self.residual = self.unconverged + worker.unconverged, max(self.residual, worker.residual)
        return result

    def carry_over(self, w: np.ndarray, old: GraphLabels, place: np.ndarray) -> np.ndarray:
        """Return weights of another graph structure in this layout; ``place`` maps its labels.

        Features must be the same; new labels and types of edges begin at 0.
        """
        if (old.n_features, old.n_edge_features) != (self.n_features, self.n_edge_features):
            raise ValueError(
                f"weights of {old.n_features} node and {old.n_edge_features} edge features cannot be carried over to "
                f"{self.n_features} and {self.n_edge_features}"
            )
        if old.edge_weights != self.edge_weights or old.n_types > self.n_types:
            raise ValueError("weights can be carried over to the same edge_weights and at least as many types only")
        out = np.zeros(self.n_weights)
        nodes, edges = self.split(out)
        old_nodes, old_edges = old.split(w)
        nodes[:, place] = old_nodes
        if self.edge_weights in ("potts", "attractive"):
            edges[: old.n_types] = old_edges
        elif self.has_edges:
            # The kind of each ordered pair of old labels, there and here.
            here = self._kinds.reshape(self.n_labels, self.n_labels, -1)[np.ix_(place, place)].argmax(axis=2).ravel()
            edges[: old.n_types, :, here] = old_edges[:, :, old._kinds.argmax(axis=1)]
        return out

    # ------------------------------------------------------------------ training without inference

    def pseudo_likelihood(self, theta: GraphScores, y: TagSequences) -> tuple[np.ndarray, GraphMarginals]:
        """Return −Σ_v log p(y_v | y of its neighbours) of each graph, and its gradient in θ.

        Only nodes with a known label and known neighbour labels count.
        """
        shape, labels = theta.shape, np.maximum(y.labels, 0)
        u, v = shape.edges.T
        known = y.labels >= 0
        counted = known.copy()
        counted[u[~known[v]]] = False
        counted[v[~known[u]]] = False
        value, slope = _log_losses(self._conditional(theta, labels), labels, counted)
        mu = self.zeros(theta)
        mu.nodes += slope
        index = np.arange(len(u))
        mu.edges[index, :, labels[v]] += slope[u]
        mu.edges[index, labels[u], :] += slope[v]
        mu.log_partition = batched.per_graph(shape, value, np.zeros(len(u)))
        return mu.log_partition.copy(), mu

    def piecewise(self, theta: GraphScores, y: TagSequences) -> tuple[np.ndarray, GraphMarginals]:
        """Return −log-likelihood of every node and every edge separately, and its gradient in θ."""
        shape, labels, L = theta.shape, np.maximum(y.labels, 0), self.n_labels
        u, v = shape.edges.T
        known = y.labels >= 0
        node, node_slope = _log_losses(theta.nodes, labels, known)
        pairs = labels[u].astype(np.int64) * L + labels[v]
        both = known[u] & known[v]
        edge, edge_slope = _log_losses(theta.edges.reshape(len(u), L * L), pairs, both)
        log_z = batched.per_graph(shape, node, edge)
        edge_slope = edge_slope.reshape(theta.edges.shape)
        return log_z, GraphMarginals(node_slope, edge_slope, log_z.copy(), shape, theta.below)


def _log_losses(scores: np.ndarray, labels: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log Σ exp − score of the label in each row, and softmax − 1; 0 in rows that do not count."""
    if not scores.size:
        return np.zeros(len(scores)), np.zeros_like(scores)
    top = scores.max(axis=1, keepdims=True)
    z = np.exp(scores - top)
    total = z.sum(axis=1, keepdims=True)
    at = labels[:, None].astype(np.int64)
    value = (np.log(total) + top - np.take_along_axis(scores, at, 1))[:, 0]
    slope = z / total
    np.put_along_axis(slope, at, np.take_along_axis(slope, at, 1) - 1.0, 1)
    return np.where(counted, value, 0.0), np.where(counted[:, None], slope, 0.0)


def _kinds(n_labels: int, edge_weights: str) -> np.ndarray:
    """Which weight each ordered pair of labels has: (pairs × kinds), one 1 in a row at most."""
    L = n_labels
    if edge_weights == "none":
        return np.zeros((L * L, 0))
    if edge_weights == "directed":
        return np.eye(L * L)
    if edge_weights in ("potts", "attractive"):
        return np.eye(L).reshape(L * L, 1)
    first, second = np.triu_indices(L)
    same = np.zeros((L, L, len(first)))
    kinds = np.arange(len(first))
    same[first, second, kinds] = same[second, first, kinds] = 1.0
    return same.reshape(L * L, -1)


def _negated(x: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(x), x, -x)


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    totals = np.concatenate([[0.0], np.cumsum(values)])
    return totals[offsets[1:] - offsets[0]] - totals[offsets[:-1] - offsets[0]]
