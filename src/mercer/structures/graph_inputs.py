"""Inputs of graph labelling: many graphs as one stack of nodes and one stack of edges.

Graph i holds the nodes ``offsets[i] .. offsets[i + 1]`` and the edges ``edge_offsets[i] .. edge_offsets[i + 1]`` of the
stack; edges name nodes of the stack. A slice of graphs is a view. :mod:`mercer.inference.batched` caches the edge
structure for inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from mercer._validation import check_offsets, check_sparse, decreases
from mercer.data.graphs import Graph, Graphs
from mercer.inference.batched import BatchRoot, GraphBatch

__all__ = ["GraphInputs"]


class GraphInputs:
    """Graphs with features of nodes and edges: what :class:`~mercer.structures.GraphLabels` labels.

    Parameters
    ----------
    nodes : array or sparse matrix of shape (n_nodes, n_features)
        Features of the nodes of all graphs, one graph after another.
    offsets : array of int of shape (n_graphs + 1,)
        Offsets of the nodes of each graph.
    edges : array of int of shape (m, 2)
        Pairs of nodes, numbered in the stack; the edges of a graph are adjacent.
    edge_offsets : array of int of shape (n_graphs + 1,), optional
        Offsets of the edges of each graph; by default they are inferred from the nodes.
    edge_features : array of shape (m, d), optional
        Default: a constant 1.
    edge_types : array of int of shape (m,), optional
        Each type has its own weights. Default: one type.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures import GraphInputs
    >>> graphs = GraphInputs.from_list([(np.eye(3), [(0, 1), (1, 2)]), (np.ones((2, 3)), [(0, 1)])])
    >>> graphs
    GraphInputs(2 graphs, 5 nodes, 3 edges, 3 features, 1 edge feature)
    >>> graphs[1:].edges.tolist()
    [[3, 4]]
    """

    def __init__(
        self,
        nodes: Any,
        offsets: Any,
        edges: Any,
        edge_offsets: Any = None,
        edge_features: Any = None,
        edge_types: Any = None,
    ) -> None:
        self.nodes = _features("nodes", nodes)
        self.offsets = check_offsets("offsets", offsets, self.nodes.shape[0])
        pairs = _edges(edges, self.nodes.shape[0], "edges")
        owner = np.searchsorted(self.offsets, pairs, side="right") - 1
        if (owner[:, 0] != owner[:, 1]).any():
            at = int(np.flatnonzero(owner[:, 0] != owner[:, 1])[0])
            raise ValueError(f"edge {at} joins nodes of two graphs: {pairs[at].tolist()}")
        if edge_offsets is None:
            if decreases(owner[:, 0]):
                raise ValueError("the edges of a graph must stand together, in the order of the graphs")
            edge_offsets = np.searchsorted(owner[:, 0], np.arange(len(self.offsets)))
        self.edges, self.edge_offsets = pairs, check_offsets("edge_offsets", edge_offsets, len(pairs))
        if len(self.edge_offsets) != len(self.offsets) or (
            len(pairs) and (owner[:, 0] != np.repeat(np.arange(len(self)), np.diff(self.edge_offsets))).any()
        ):
            raise ValueError("edge_offsets do not fit the graphs of the edges")
        self.edge_features = (
            np.ones((len(pairs), 1)) if edge_features is None else _edge_features(edge_features, len(pairs))
        )
        self.edge_types = None if edge_types is None else _types(edge_types, len(pairs))
        self._shapes, self._first = BatchRoot(self.offsets, self.edges, self.edge_offsets), 0

    @classmethod
    def from_list(cls, graphs: Any) -> GraphInputs:
        """Build from a list with (node features, edges), (…, edge features) or (…, edge types) of each graph.

        Edges are numbered within their graph. You can also pass `mercer.data.Graphs` with node attributes.
        """
        if isinstance(graphs, GraphInputs):
            return graphs
        if isinstance(graphs, Graphs):
            if graphs.node_attributes is None:
                raise ValueError("Graphs need node_attributes: they are the features of the nodes")
            graphs = [(graph.node_attributes, graph.edges) for graph in graphs]
        if isinstance(graphs, (str, bytes)) or not hasattr(graphs, "__len__"):
            raise TypeError(f"X must be a list of graphs, got {type(graphs).__name__}")
        items = [_item(i, graph) for i, graph in enumerate(graphs)]
        if not items:
            return cls(np.zeros((0, 0)), [0], np.zeros((0, 2), np.int64), edge_features=np.zeros((0, 1)))
        widths = {rows.shape[1] for rows, *_ in items}
        if len(widths) > 1:
            raise ValueError(f"graphs have different numbers of node features: {sorted(widths)}")
        for place, name in ((2, "edge features"), (3, "edge types")):
            given = [item[place] is not None for item in items]
            if any(given) and not all(given):
                raise ValueError(
                    f"graph {given.index(False)} has no {name}, others have: give them for all or for none"
                )
        sizes, counts = [item[0].shape[0] for item in items], [len(item[1]) for item in items]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sparse = any(issparse(rows) for rows, *_ in items)
        rows = [csr_array(item[0]) if sparse else item[0] for item in items]
        features = [item[2] for item in items if item[2] is not None]
        widths = {rows.shape[1] for rows in features}
        if len(widths) > 1:
            raise ValueError(f"graphs have different numbers of edge features: {sorted(widths)}")
        types = [item[3] for item in items if item[3] is not None]
        return cls(
            vstack(rows, format="csr") if sparse else np.concatenate(rows),
            offsets,
            np.concatenate([item[1] + start for item, start in zip(items, offsets[:-1], strict=True)]),
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate(features) if features else None,
            np.concatenate(types) if types else None,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> GraphInputs:
        if not isinstance(key, slice):
            chosen = np.arange(len(self))[key]
            return GraphInputs.from_list([self._graph(int(i)) for i in np.atleast_1d(chosen)])
        start, stop, step = key.indices(len(self))
        if step != 1:
            return self[np.arange(len(self))[key]]
        stop = max(start, stop)
        made = object.__new__(GraphInputs)
        a, b = int(self.offsets[start] - self.offsets[0]), int(self.offsets[stop] - self.offsets[0])
        c, d = int(self.edge_offsets[start] - self.edge_offsets[0]), int(self.edge_offsets[stop] - self.edge_offsets[0])
        made.nodes, made.offsets = self.nodes[a:b], self.offsets[start : stop + 1]
        made.edges, made.edge_offsets = self.edges[c:d], self.edge_offsets[start : stop + 1]
        made.edge_features = self.edge_features[c:d]
        made.edge_types = None if self.edge_types is None else self.edge_types[c:d]
        made._shapes, made._first = self._shapes, self._first + start
        return made

    def __repr__(self) -> str:
        d = self.n_edge_features
        return (
            f"GraphInputs({len(self)} graphs, {self.nodes.shape[0]} nodes, {len(self.edges)} edges, "
            f"{self.n_features} features, {d} edge feature{'s' if d != 1 else ''})"
        )

    @property
    def n_features(self) -> int:
        """Features of a node."""
        return int(self.nodes.shape[1])

    @property
    def n_edge_features(self) -> int:
        """Features of an edge."""
        return int(self.edge_features.shape[1])

    @property
    def lengths(self) -> np.ndarray:
        """Nodes of each graph."""
        return np.diff(self.offsets)

    @property
    def n_positions(self) -> int:
        """Nodes of all graphs."""
        return int(self.nodes.shape[0])

    @property
    def n_types(self) -> int:
        """One more than the highest edge type."""
        return 1 if self.edge_types is None or not len(self.edge_types) else int(self.edge_types.max()) + 1

    def shape(self, n_labels: int, edges: bool = True) -> GraphBatch:
        """Return the edges of these graphs (or none of them), ready for inference with so many labels."""
        root = self._shapes if edges else self._shapes.alone
        return root.batch(n_labels, self._first, self._first + len(self))

    def with_features(self, nodes: Any, edge_features: Any = None) -> GraphInputs:
        """Return the same graphs with other features; cached edge structures are shared."""
        made = self[:]
        made.nodes = _features("nodes", nodes)
        if made.nodes.shape[0] != self.nodes.shape[0]:
            raise ValueError(f"nodes must have {self.nodes.shape[0]} rows, got {made.nodes.shape[0]}")
        if edge_features is not None:
            made.edge_features = _edge_features(edge_features, len(self.edges))
        return made

    def _graph(self, i: int) -> tuple[Any, ...]:
        one = self[i : i + 1]
        arrays: list[Any] = [one.nodes, one.edges - one.offsets[0], one.edge_features]
        return tuple(arrays if one.edge_types is None else [*arrays, one.edge_types])


def _item(i: int, graph: Any) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
    if isinstance(graph, Graph):
        if graph.node_attributes is None:
            raise ValueError(f"graph {i} has no node_attributes: they are the features of the nodes")
        graph = (graph.node_attributes, graph.edges)
    if not isinstance(graph, Sequence) or not 2 <= len(graph) <= 4:
        raise TypeError(
            f"graph {i}: expected (node features, edges), (node features, edges, edge features) or "
            f"(node features, edges, edge features, edge types), got {type(graph).__name__}"
        )
    try:
        rows = _features("node features", graph[0])
        pairs = _edges(graph[1], rows.shape[0], "edges")
        features = None if len(graph) < 3 or graph[2] is None else _edge_features(graph[2], len(pairs))
        types = None if len(graph) < 4 or graph[3] is None else _types(graph[3], len(pairs))
    except ValueError as error:
        raise ValueError(f"graph {i}: {error}") from None
    return rows, pairs, features, types


def _features(name: str, values: Any) -> Any:
    if issparse(values):
        matrix = csr_array(check_sparse(name, values), dtype=np.float64)
        finite = np.isfinite(matrix.data).all()
    else:
        try:
            matrix = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be numbers") from None
        finite = np.isfinite(matrix).all()
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix with a row for each node, got shape {matrix.shape}")
    if not finite:
        raise ValueError(f"{name} holds NaN or infinity")
    return matrix


def _edge_features(values: Any, m: int) -> np.ndarray:
    try:
        rows = values.toarray() if issparse(values) else np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"edge features must be numbers with a row for each of the {m} edges") from None
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.size == 0 and m == 0:
        rows = rows.reshape(0, rows.shape[1] if rows.ndim == 2 else 1)
    if rows.ndim != 2 or len(rows) != m:
        raise ValueError(f"edge features must have a row for each of the {m} edges, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("edge features hold NaN or infinity")
    return rows


def _edges(values: Any, n: int, name: str) -> np.ndarray:
    pairs = np.asarray(values)
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be pairs of nodes: integers of shape (m, 2), got {pairs.dtype} of shape {pairs.shape}"
        )
    wrong = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if wrong.any():
        raise ValueError(f"{name} name nodes from 0 to {n - 1}, got {pairs[np.flatnonzero(wrong)[0]].tolist()}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise ValueError(f"{name} must join two different nodes, got {pairs[np.flatnonzero(loops)[0]].tolist()}")
    return pairs.astype(np.int64)


def _types(values: Any, m: int) -> np.ndarray:
    types = np.asarray(values)
    if types.shape != (m,) or (m and types.dtype.kind not in "iu") or (m and types.min() < 0):
        raise ValueError(f"edge types must be {m} integers of at least 0, one for each edge")
    return types.astype(np.int64)
