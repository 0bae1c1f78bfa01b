"""Kernels between graphs that are inner products of counts: of paths, refined labels and small subgraphs.

shortest paths     Σ_{(u,v)} Σ_{(u',v')} k(label u, label u') k(label v, label v') k(d(u,v), d(u',v'))
refined labels     Σ_t Σ_c #{v : c_t(v) = c} #{v' : c_t(v') = c}                                      Weisfeiler, Lehman
graphlets          Σ_S Φ_S(G) Φ_S(G')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count
from mercer.data.graphs import Graphs, as_graphs
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import INDEFINITE, PD, Kernel, Work, check_kernel, mirrored
from mercer.maps.graphlets import MAX_SIZE, label_keys

__all__ = ["Graphlet", "ShortestPath", "WeisfeilerLehman"]

LABELS = ("auto", True, False)
STEPS_A_CALL = 1 << 25  # nodes and edges that one compiled call may visit


# ---------------------------------------------------------------------------------------------- reading collections


def read_graphs(X: Any, labels: Any, edge_labels: bool = False, weighted: bool = False) -> Graphs:
    """Return the graphs of a collection, with the labels and weights that a kernel needs.

    networkx graphs have them in the attributes ``label`` (nodes, edges) and ``weight``.

    Examples
    --------
    >>> from mercer.kernels.graphs import read_graphs
    >>> read_graphs([[(0, 1), (1, 2)]], "auto")
    Graphs(1 graphs, 3 nodes, 2 edges)
    """
    try:
        graphs = _read(X, labels, edge_labels, weighted)
    except (TypeError, ValueError) as error:
        raise ValueError(with_way_out(error)) from error
    if labels is True and graphs.node_labels is None and graphs.n_nodes:
        raise ValueError("labels=True needs graphs with node labels, these have none")
    if edge_labels and graphs.edge_labels is None and graphs.n_edges:
        raise ValueError("edge_labels=True needs graphs with edge labels, these have none")
    if weighted and graphs.edge_weights is None and graphs.n_edges:
        raise ValueError("weighted=True needs graphs with edge weights, these have none")
    if weighted and graphs.edge_weights is not None and (graphs.edge_weights < 0).any():
        raise ValueError("weighted=True needs edge weights of at least 0")
    return graphs


def with_way_out(error: Exception) -> str:
    """Adapt the message of a `Graphs` error to kernels, which have no argument ``simplify``."""
    ways = "from_edges, from_networkx or from_scipy of mercer.data.Graphs"
    return str(error).replace("pass simplify=True", f"make the graphs by {ways} with simplify=True")


def _read(X: Any, labels: Any, edge_labels: bool, weighted: bool) -> Graphs:
    if isinstance(X, Graphs) or hasattr(X, "is_directed") or hasattr(X, "tocsr"):
        return as_graphs(X)  # refuses a single graph
    items = list(X)
    if items and all(hasattr(item, "is_directed") and hasattr(item, "nodes") for item in items):
        return Graphs.from_networkx(
            items,
            node_label=_node_label(items, labels),
            edge_label="label" if edge_labels else None,
            weight="weight" if weighted else None,
        )
    if weighted and items and all(hasattr(item, "tocsr") or isinstance(item, np.ndarray) for item in items):
        return Graphs.from_scipy(items, weighted=True)
    return as_graphs(items)


def _node_label(items: list[Any], labels: Any) -> str | None:
    """The attribute of networkx nodes that holds their labels: ``label``, or under ``"auto"`` the only one there is."""
    if labels is True:
        return "label"
    return None if labels != "auto" else "label" if _has_node_labels(items) else "auto"


def _has_node_labels(items: list[Any]) -> bool:
    """Whether networkx nodes have the attribute ``label``: all or none."""
    labelled = {"label" in data for graph in items for _, data in graph.nodes(data=True)}
    if len(labelled) > 1:
        raise ValueError("some nodes have the attribute 'label' and some do not: pass labels=False to ignore it")
    return labelled == {True}


def _kind(labels: np.ndarray | None, count: int) -> str:
    """What kind of labels a collection has; "any" fits all, for a collection without nodes (or edges)."""
    if not count:
        return "any"
    return "no" if labels is None else "string" if labels.dtype.kind == "U" else "integer"


class Labelled:
    """A prepared collection and the kinds of its labels. Collections with different kinds cannot be compared."""

    def __init__(self, rows: Any, kind: str, edge_kind: str = "ignored") -> None:
        self.rows = rows
        self.kind = kind
        self.edge_kind = edge_kind

    @classmethod
    def of(cls, rows: Any, graphs: Graphs, labels: Any, edge_labels: bool = False) -> Labelled:
        """Wrap a collection; the kinds are those of the graphs' labels, or "ignored"."""
        return cls(
            rows,
            "ignored" if labels is False else _kind(graphs.node_labels, graphs.n_nodes),
            _kind(graphs.edge_labels, graphs.n_edges) if edge_labels else "ignored",
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> Labelled:
        return Labelled(self.rows[rows], self.kind, self.edge_kind)


def comparable(*parts: Labelled) -> None:
    """Raises ValueError for collections with labels of different kinds."""
    for what, kinds_of in (("node", [part.kind for part in parts]), ("edge", [part.edge_kind for part in parts])):
        kinds = sorted(set(kinds_of) - {"any"})
        if len(kinds) > 1:
            first, second = (f"without {what} labels" if k == "no" else f"with {k} {what} labels" for k in kinds)
            raise ValueError(
                f"graphs {first} cannot be compared with graphs {second}: give both the same kind of labels, or pass "
                f"{'labels' if what == 'node' else 'edge_labels'}=False"
            )


def node_keys(graphs: Graphs, labels: Any) -> np.ndarray | None:
    """Return the node labels as 64-bit numbers, if they exist and are used."""
    return None if labels is False or graphs.node_labels is None else label_keys(graphs.node_labels)


def edge_keys(graphs: Graphs, edge_labels: bool) -> np.ndarray | None:
    """Return the edge labels as 64-bit numbers, if they are used."""
    return label_keys(graphs.edge_labels) if edge_labels and graphs.edge_labels is not None else None


def in_stretches(graphs: Graphs, rows: Callable[[Graphs], Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return rows of counts (offsets, keys, …). A compiled call cannot be interrupted, so it gets few large graphs."""
    nodes = np.diff(graphs.offsets).astype(np.float64)
    ends = np.cumsum(nodes * (nodes + np.diff(graphs.indptr[graphs.offsets])))  # a search from every node
    made: list[Sequence[np.ndarray]] = []
    start = 0
    while start < len(graphs) or not made:
        done = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, done + STEPS_A_CALL, side="right")))
        made.append(rows(graphs[start:stop]))
        start = stop
    if len(made) == 1:
        return list(made[0])
    counts = np.concatenate([np.diff(part[0]) for part in made])
    others = [np.concatenate(parts) for parts in list(zip(*made, strict=True))[1:]]
    return [np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), *others]


class _Counting(Kernel):
    """Kernels that are inner products of counts."""

    has_features = True
    labels: Any

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        if B is None:
            return A.rows.gram(None, work)
        comparable(A, B)
        return A.rows.gram(B.rows, work)

    def _diag(self, A: Labelled, work: Work) -> np.ndarray:
        return A.rows.diag()

    def _features(self, parts: list[Labelled]) -> list[Any]:
        comparable(*parts)
        return matrices([part.rows for part in parts])


# ---------------------------------------------------------------------------------------------- shortest paths


class PathCounts:
    """Counts of (labels of the ends, length), where lengths are compared by a kernel."""

    def __init__(self, offsets: np.ndarray, ends: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        self.offsets = offsets
        self.ends = ends
        self.lengths = lengths
        self.values = values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> PathCounts:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        at = slice(self.offsets[start], self.offsets[stop])
        return PathCounts(self.offsets[start : stop + 1] - at.start, self.ends[at], self.lengths[at], self.values[at])

    def by_length(self, ends: np.uint64, lengths: np.ndarray) -> Any:
        """Return the counts for one pair of labels, one column per length."""
        at = np.flatnonzero(self.ends == ends)
        row = np.searchsorted(self.offsets, at, side="right") - 1
        column = np.searchsorted(lengths, self.lengths[at])
        return sp.csr_matrix((self.values[at], (row, column)), shape=(len(self), len(lengths)))


class ShortestPath(_Counting):
    """Pairs of nodes with the same labels and the same distance (Borgwardt and Kriegel's shortest-path kernel).

    k(G, G') = Σ_{u≠v} Σ_{u'≠v'} [label u = label u'] [label v = label v'] k_length(d(u, v), d(u', v'))

    over ordered pairs of connected nodes. Breadth-first search from all nodes turns each graph once into counts of
    (label, label, length). The Gram matrix is a product of sparse matrices. Graphs without an edge have the value 0
    with all graphs.

    Parameters
    ----------
    labels : {"auto", True, False}, default="auto"
        Whether to compare the labels of the two end nodes: if there are any, always, or never. networkx graphs have
        them in the attribute ``label``.
    length_kernel : "delta" or Kernel, default="delta"
        ``"delta"`` compares lengths for equality. Alternatively, a kernel of vectors with one component.
    weighted : bool, default=False
        The length of a path is the sum of its edge weights instead of their number. Lengths that agree in 34 bits (10
        digits) count as equal.

    References
    ----------
    .. [Borgwardt2005] K. Borgwardt and H.-P. Kriegel. Shortest-path kernels on graphs. ICDM, 2005.

    Examples
    --------
    >>> from mercer.kernels import ShortestPath
    >>> path, triangle = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    >>> ShortestPath()([path, triangle])  # ordered pairs: 4 at distance 1 and 2 at distance 2; 6 at distance 1
    array([[20., 24.],
           [24., 36.]])
    """

    def __init__(self, labels: Any = "auto", length_kernel: Any = "delta", weighted: bool = False) -> None:
        self.labels = labels
        self.length_kernel = length_kernel
        self.weighted = weighted

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self._delta()

    @property
    def definiteness(self) -> str:
        # Counts of lengths do not sum to 0 where coefficients of graphs do: cpd is not enough.
        return PD if self._delta() or self.length_kernel.definiteness == PD else INDEFINITE

    def _check_params(self) -> None:
        check_choice("labels", self.labels, LABELS)
        check_choice("weighted", self.weighted, (True, False))
        if self._delta():
            check_choice("length_kernel", self.length_kernel, ("delta",))
        else:
            check_kernel("length_kernel", self.length_kernel)._check_params()

    def _prepare(self, X: Any) -> Labelled:
        graphs = read_graphs(X, self.labels, weighted=self.weighted)

        def rows(part: Graphs) -> Any:
            keys, weights = node_keys(part, self.labels), part.edge_weights if self.weighted else None
            return _core.kernels.shortest_path_rows(part.offsets, part.indptr, part.indices, keys, weights, 1)

        starts, keys, ends, lengths, counts = in_stretches(graphs, rows)
        if self._delta():
            return Labelled.of(KeyedRows(starts, keys, counts), graphs, self.labels)
        return Labelled.of(PathCounts(starts, ends, lengths, counts), graphs, self.labels)

    def _delta(self) -> bool:
        return isinstance(self.length_kernel, str)

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        if self._delta():
            return super()._gram(A, B, work)
        if B is not None:
            comparable(A, B)
        K = self._by_length_kernel(A.rows, (A if B is None else B).rows)
        return mirrored(K) if B is None else K

    def _diag(self, A: Labelled, work: Work) -> np.ndarray:
        return super()._diag(A, work) if self._delta() else Kernel._diag(self, A, work)

    def _by_length_kernel(self, left: PathCounts, right: PathCounts) -> np.ndarray:
        """Σ over the labels of the ends: counts by length × kernel of lengths × counts by length."""
        lengths = np.unique(np.concatenate([left.lengths, right.lengths]))
        K = np.zeros((len(left), len(right)))
        if not len(lengths):
            return K
        between = self.length_kernel(lengths[:, None])
        for ends in np.intersect1d(left.ends, right.ends):
            K += left.by_length(ends, lengths) @ between @ right.by_length(ends, lengths).T
        return K


# ---------------------------------------------------------------------------------------------- refined labels


class WeisfeilerLehman(_Counting):
    """Labels refined repeatedly by the labels of the neighbours (Weisfeiler-Lehman kernels).

    k(G, G') = Σ_{t=0}^{h} k_base(G with labels c_t, G' with labels c_t),   c_{t+1}(v) = (c_t(v), {{c_t(u) : u ~ v}})

    Labels are 64-bit hashes, so no dictionary is needed, and graphs of different calls can be compared.

    Parameters
    ----------
    h : int, default=4
        Refinement iterations; 0 compares the given labels alone.
    labels : {"auto", True, False}, default="auto"
        Whether to start from the node labels: if there are any, always, or never. Without labels all nodes start equal.
        networkx graphs have them in the attribute ``label``.
    base : {"subtree", "edge", "shortest_path"}, default="subtree"
        What each iteration counts: nodes by label; edges by the labels of their ends; pairs of nodes by their labels
        and their distance, as in `ShortestPath`.
    edge_labels : bool, default=False
        Also refine (and count edges) by the labels of edges.

    References
    ----------
    .. [Shervashidze2011] N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn and K. Borgwardt.
       Weisfeiler-Lehman graph kernels. Journal of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> from mercer.kernels import WeisfeilerLehman
    >>> path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    >>> WeisfeilerLehman(h=1)([path, star])  # degrees of the path: 1 2 2 1, of the star: 3 1 1 1
    array([[24., 22.],
           [22., 26.]])
    """

    def __init__(self, h: int = 4, labels: Any = "auto", base: str = "subtree", edge_labels: bool = False) -> None:
        self.h = h
        self.labels = labels
        self.base = base
        self.edge_labels = edge_labels

    def _check_params(self) -> None:
        if check_count("h", self.h, 0) > 1000:
            raise ValueError(f"h must be at most 1000, got {self.h!r}")
        check_choice("labels", self.labels, LABELS)
        check_choice("base", self.base, ("subtree", "edge", "shortest_path"))
        check_choice("edge_labels", self.edge_labels, (True, False))

    def _prepare(self, X: Any) -> Labelled:
        graphs = read_graphs(X, self.labels, edge_labels=self.edge_labels)

        def rows(part: Graphs) -> Any:
            keys, edges = node_keys(part, self.labels), edge_keys(part, self.edge_labels)
            return _core.kernels.weisfeiler_lehman_rows(
                part.offsets, part.indptr, part.indices, keys, edges, int(self.h), self.base, 1
            )

        keyed = in_stretches(graphs, rows) if self.base == "shortest_path" else rows(graphs)
        return Labelled.of(KeyedRows(*keyed), graphs, self.labels, self.edge_labels)


# ---------------------------------------------------------------------------------------------- graphlets


class Graphlet(_Counting):
    """The graphlet kernel: count small induced subgraphs of the same type.

    k(G, G') = Σ_S f_S(G) f_S(G'),  f_S(G) the share of the type S among the subgraphs of its size in G

    The counts are those of `mercer.maps.GraphletHasher`, with 64-bit keys instead of columns. A graph with fewer nodes
    than a size has no features of that size.

    Parameters
    ----------
    sizes : int or sequence of int, default=(3, 4, 5)
        Numbers of nodes of the subgraphs, from 1 to 9.
    n_samples : int, optional
        Estimate the counts from this number of random subgraphs for each graph and size; a graph with no more subgraphs
        than that is counted exactly. By default all subgraphs of all graphs are counted.
    labels : {"auto", True, False}, default=False
        Whether to distinguish subgraphs by their node labels: if there are any, always, or never.
    connected : bool, default=True
        Connected subgraphs only.
    normalize : bool, default=True
        Shares instead of counts.
    random_state : int, default=0
        Seed of the samples; samples of a graph depend on the graph and the seed only.

    References
    ----------
    .. [Shervashidze2009] N. Shervashidze, S. V. N. Vishwanathan, T. Petri, K. Mehlhorn and K. Borgwardt. Efficient
       graphlet kernels for large graph comparison. AISTATS, 2009.

    Examples
    --------
    >>> from mercer.kernels import Graphlet
    >>> paw, square = [(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> Graphlet(3, normalize=False)([paw, square])  # two paths and a triangle; four paths
    array([[ 5.,  8.],
           [ 8., 16.]])
    """

    def __init__(
        self,
        sizes: int | Sequence[int] = (3, 4, 5),
        n_samples: int | None = None,
        labels: Any = False,
        connected: bool = True,
        normalize: bool = True,
        random_state: int = 0,
    ) -> None:
        self.sizes = sizes
        self.n_samples = n_samples
        self.labels = labels
        self.connected = connected
        self.normalize = normalize
        self.random_state = random_state

    def _check_params(self) -> None:
        self._sizes()
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples)
        check_choice("labels", self.labels, LABELS)
        check_choice("connected", self.connected, (True, False))
        check_choice("normalize", self.normalize, (True, False))
        if check_count("random_state", self.random_state, 0) >= 1 << 64:
            raise ValueError(f"random_state must be below 2^64, got {self.random_state!r}")

    def _sizes(self) -> list[int]:
        given: list[Any] = [self.sizes] if isinstance(self.sizes, Integral) else list(self.sizes)  # type: ignore[arg-type]
        wrong = [k for k in given if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= MAX_SIZE]
        if wrong or not given or len(set(given)) < len(given):
            raise ValueError(f"sizes must be different integers from 1 to {MAX_SIZE}, got {self.sizes!r}")
        return sorted(int(k) for k in given)

    def _prepare(self, X: Any) -> Labelled:
        graphs = read_graphs(X, self.labels)
        keys = codes = None
        labels = node_keys(graphs, self.labels)
        if labels is not None:
            keys, places = np.unique(labels, return_inverse=True)
            codes = places.astype(np.int32)
        keyed = _core.graphs.graphlet_keys(
            graphs.offsets,
            graphs.indptr,
            graphs.indices,
            codes,
            keys,
            self._sizes(),
            "exact" if self.n_samples is None else "sample",
            bool(self.connected),
            1 if self.n_samples is None else int(self.n_samples),
            bool(self.normalize),
            int(self.random_state),
            1,
        )
        return Labelled.of(KeyedRows(*keyed), graphs, self.labels)
