"""Kernels between graphs: what two graphs have in common, be it paths, refined labels, small subgraphs or walks.

shortest paths     Σ_{(u,v)} Σ_{(u',v')} k(label u, label u') k(label v, label v') k(d(u,v), d(u',v'))     spec 002 C14
refined labels     Σ_t Σ_c #{v : c_t(v) = c} #{v' : c_t(v') = c}                                      Weisfeiler, Lehman
graphlets          Σ_S Φ_S(G) Φ_S(G')                                                                      spec 000 S24
walks              Σ_l λ^l 1ᵀ W×^l 1 = 1ᵀ (I − λ W×)⁻¹ 1,  W× the adjacency of the product graph   spec 002 C12, 000 S24
random walks       Σ_{h,h'} p(h|G) p(h'|G') [h and h' have the same labels]                               spec 002 C15
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive
from mercer.data.graphs import Graphs, as_graphs
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import Kernel, Work, check_kernel, mirrored
from mercer.maps.graphlets import MAX_SIZE, label_keys

__all__ = ["Graphlet", "RandomWalk", "ShortestPath", "WeisfeilerLehman"]

LABELS = ("auto", True, False)
DENSE_NODES = 2000  # graphs of up to so many nodes are decomposed into eigenvectors
DIRECT_PAIRS = 5000  # unknowns of the largest dense system


# ---------------------------------------------------------------------------------------------- reading collections


def read_graphs(X: Any, labels: Any, edge_labels: bool = False, weighted: bool = False) -> Graphs:
    """The graphs of a collection, with the labels and weights that a kernel asks for.

    networkx graphs have them in the attributes ``label`` (nodes, edges) and ``weight``.

    Examples
    --------
    >>> from mercer.kernels.graphs import read_graphs
    >>> read_graphs([[(0, 1), (1, 2)]], "auto")
    Graphs(1 graphs, 3 nodes, 2 edges)
    """
    try:
        graphs = _read(X, labels, edge_labels, weighted)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if labels is True and graphs.node_labels is None and graphs.n_nodes:
        raise ValueError("labels=True needs graphs with node labels, these have none")
    if edge_labels and graphs.edge_labels is None and graphs.n_edges:
        raise ValueError("edge_labels=True needs graphs with edge labels, these have none")
    if weighted and graphs.edge_weights is None and graphs.n_edges:
        raise ValueError("weighted=True needs graphs with edge weights, these have none")
    if weighted and graphs.edge_weights is not None and (graphs.edge_weights < 0).any():
        raise ValueError("weighted=True needs edge weights of at least 0")
    return graphs


def _read(X: Any, labels: Any, edge_labels: bool, weighted: bool) -> Graphs:
    if isinstance(X, Graphs):
        return X
    items = list(X)
    if items and all(hasattr(item, "is_directed") and hasattr(item, "nodes") for item in items):
        return Graphs.from_networkx(
            items,
            node_label="label" if labels is True or (labels == "auto" and _has_node_labels(items)) else None,
            edge_label="label" if edge_labels else None,
            weight="weight" if weighted else None,
        )
    if weighted and items and all(hasattr(item, "tocsr") or isinstance(item, np.ndarray) for item in items):
        return Graphs.from_scipy(items, weighted=True)
    return as_graphs(items)


def _has_node_labels(items: list[Any]) -> bool:
    """Whether networkx nodes have the attribute ``label``: all or none."""
    found = {"label" in data for graph in items for _, data in graph.nodes(data=True)}
    if len(found) > 1:
        raise ValueError("some nodes have the attribute 'label' and some do not: pass labels=False to ignore it")
    return found == {True}


def _kind(labels: np.ndarray | None, count: int) -> str:
    """What kind of labels a collection has; "any" fits all, for a collection without nodes (or edges)."""
    if not count:
        return "any"
    return "no" if labels is None else "string" if labels.dtype.kind == "U" else "integer"


class Labelled:
    """A prepared collection and the kinds of its labels: collections of different kinds cannot be compared."""

    def __init__(self, rows: Any, kind: str, edge_kind: str = "ignored") -> None:
        self.rows = rows
        self.kind = kind
        self.edge_kind = edge_kind

    @classmethod
    def of(cls, rows: Any, graphs: Graphs, labels: Any, edge_labels: bool = False) -> Labelled:
        """The kinds are those of the graphs' labels, or "ignored"."""
        return cls(
            rows,
            "ignored" if labels is False else _kind(graphs.node_labels, graphs.n_nodes),
            _kind(graphs.edge_labels, graphs.n_edges) if edge_labels else "ignored",
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> Labelled:
        return Labelled(self.rows[rows], self.kind, self.edge_kind)


def _comparable(*parts: Labelled) -> None:
    for what, found in (("node", [part.kind for part in parts]), ("edge", [part.edge_kind for part in parts])):
        kinds = sorted(set(found) - {"any"})
        if len(kinds) > 1:
            first, second = (f"without {what} labels" if k == "no" else f"with {k} {what} labels" for k in kinds)
            raise ValueError(
                f"graphs {first} cannot be compared with graphs {second}: give both the same kind of labels, or pass "
                f"{'labels' if what == 'node' else 'edge_labels'}=False"
            )


def _node_keys(graphs: Graphs, labels: Any) -> np.ndarray | None:
    return None if labels is False or graphs.node_labels is None else label_keys(graphs.node_labels)


def _edge_keys(graphs: Graphs, edge_labels: bool) -> np.ndarray | None:
    return label_keys(graphs.edge_labels) if edge_labels and graphs.edge_labels is not None else None


class _Counting(Kernel):
    """Kernels that are inner products of counts."""

    has_features = True
    labels: Any

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        if B is None:
            return A.rows.gram(None, work)
        _comparable(A, B)
        return A.rows.gram(B.rows, work)

    def _diag(self, A: Labelled, work: Work) -> np.ndarray:
        return A.rows.diag()

    def _features(self, parts: list[Labelled]) -> list[Any]:
        _comparable(*parts)
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
        """Counts for one pair of labels, a column for each length."""
        at = np.flatnonzero(self.ends == ends)
        row = np.searchsorted(self.offsets, at, side="right") - 1
        column = np.searchsorted(lengths, self.lengths[at])
        return sp.csr_matrix((self.values[at], (row, column)), shape=(len(self), len(lengths)))


class ShortestPath(_Counting):
    """Pairs of nodes with the same labels and the same distance (Borgwardt and Kriegel's shortest-path kernel).

    k(G, G') = Σ_{u≠v} Σ_{u'≠v'} [label u = label u'] [label v = label v'] k_length(d(u, v), d(u', v'))

    over ordered pairs of nodes that a path joins. Every graph is turned into the counts of (label, label, length), by
    breadth-first search from all nodes, once; the Gram matrix is a product of sparse matrices. Graphs
    without an edge have the value 0 with all graphs.

    Parameters
    ----------
    labels : {"auto", True, False}, default="auto"
        Compare the labels of the two ends: if there are any, always, or never. networkx graphs have them in the
        attribute ``label``.
    length_kernel : "delta" or Kernel, default="delta"
        ``"delta"`` compares lengths for equality. A kernel of vectors with one component compares them in another way.
    weighted : bool, default=False
        The length of a path is the sum of its edge weights instead of their number. Lengths that agree in 34 bits
        (10 digits) are equal.

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
        return "pd" if self._delta() else self.length_kernel.definiteness

    def _check_params(self) -> None:
        check_choice("labels", self.labels, LABELS)
        check_choice("weighted", self.weighted, (True, False))
        if self._delta():
            check_choice("length_kernel", self.length_kernel, ("delta",))
        else:
            check_kernel("length_kernel", self.length_kernel)._check_params()

    def _prepare(self, X: Any) -> Labelled:
        graphs = read_graphs(X, self.labels, weighted=self.weighted)
        starts, keys, ends, lengths, counts = _core.shortest_path_rows(
            graphs.offsets,
            graphs.indptr,
            graphs.indices,
            _node_keys(graphs, self.labels),
            graphs.edge_weights if self.weighted else None,
            1,
        )
        if self._delta():
            return Labelled.of(KeyedRows(starts, keys, counts), graphs, self.labels)
        return Labelled.of(PathCounts(starts, ends, lengths, counts), graphs, self.labels)

    def _delta(self) -> bool:
        return isinstance(self.length_kernel, str)

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        if self._delta():
            return super()._gram(A, B, work)
        if B is not None:
            _comparable(A, B)
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
    """Labels refined by the labels of the neighbours, again and again (Weisfeiler-Lehman kernels).

    k(G, G') = Σ_{t=0}^{h} k_base(G with labels c_t, G' with labels c_t),   c_{t+1}(v) = (c_t(v), {{c_t(u) : u ~ v}})

    Labels are 64-bit hashes, so no dictionary is kept, and graphs can be compared with graphs that come later.

    Parameters
    ----------
    h : int, default=4
        Rounds of refinement; 0 compares the given labels alone.
    labels : {"auto", True, False}, default="auto"
        Begin with the labels of the nodes: if there are any, always, or never. Without labels all nodes begin equal.
        networkx graphs have them in the attribute ``label``.
    base : {"subtree", "edge", "shortest_path"}, default="subtree"
        What is counted in every round: nodes by label; edges by the labels of their ends; pairs of nodes by their
        labels and their distance, as in `ShortestPath`.
    edge_labels : bool, default=False
        Refine (and count edges) by the labels of edges, too.

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
        found = _core.weisfeiler_lehman_rows(
            graphs.offsets,
            graphs.indptr,
            graphs.indices,
            _node_keys(graphs, self.labels),
            _edge_keys(graphs, self.edge_labels),
            int(self.h),
            self.base,
            1,
        )
        return Labelled.of(KeyedRows(*found), graphs, self.labels, self.edge_labels)


# ---------------------------------------------------------------------------------------------- graphlets


class Graphlet(_Counting):
    """Small induced subgraphs of the same type: the graphlet kernel.

    k(G, G') = Σ_S f_S(G) f_S(G'),  f_S(G) the share of the type S among the subgraphs of its size in G

    The counts are those of `mercer.maps.GraphletHasher`, under keys of 64 bits instead of columns. A graph with fewer
    nodes than a size has no features of that size.

    Parameters
    ----------
    sizes : int or sequence of int, default=(3, 4, 5)
        Numbers of nodes of the subgraphs, from 1 to 9.
    n_samples : int, optional
        Estimate the counts from so many random subgraphs for each graph and size; a graph with no more than that is
        counted. By default all subgraphs of all graphs are counted.
    labels : {"auto", True, False}, default=False
        Distinguish subgraphs by the labels of their nodes, too: if there are any, always, or never.
    connected : bool, default=True
        Connected subgraphs only.
    normalize : bool, default=True
        Shares instead of counts.
    random_state : int, default=0
        Seed of the samples; samples of a graph depend on the graph and the seed only.

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
        labels = _node_keys(graphs, self.labels)
        if labels is not None:
            keys, codes = np.unique(labels, return_inverse=True)
            codes = codes.astype(np.int32)
        found = _core.graphlet_keys(
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
        return Labelled.of(KeyedRows(*found), graphs, self.labels)


# ---------------------------------------------------------------------------------------------- walks


class Walks:
    """Graphs prepared for walks: symmetric S, start and stop weights of every node, nodes sorted by label.

    The sum over walks of all lengths is sᵀ (I − S)⁻¹ r on one graph; on a pair it is the same on the product graph.
    """

    def __init__(self, graphs: dict[str, np.ndarray], edge_keys: np.ndarray) -> None:
        self.graphs = graphs
        self.edge_keys = edge_keys  # of the codes in graphs["edge_codes"]
        self._spectra: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.graphs["offsets"]) - 1

    def __getitem__(self, rows: slice) -> Walks:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        g = self.graphs
        nodes = slice(g["offsets"][start], g["offsets"][stop])
        entries = slice(g["indptr"][nodes.start], g["indptr"][nodes.stop])
        cut = {name: g[name][nodes] for name in ("keys", "start", "stop")}
        cut |= {name: g[name][entries] for name in ("indices", "weights", "edge_codes")}
        cut["offsets"] = g["offsets"][start : stop + 1] - nodes.start
        cut["indptr"] = g["indptr"][nodes.start : nodes.stop + 1] - entries.start
        cut["radius"] = g["radius"][start:stop]
        made = Walks(cut, self.edge_keys)
        if self._spectra is not None:
            starts, weights, values = self._spectra
            at = slice(starts[start], starts[stop])
            made._spectra = (starts[start : stop + 1] - at.start, weights[at], values[at])
        return made

    def compiled(self, edge_keys: np.ndarray) -> _core.WalkGraphs:
        """For the compiled loops, with edge codes that number the given keys."""
        g = dict(self.graphs)
        if len(g["edge_codes"]):
            g["edge_codes"] = np.searchsorted(edge_keys, self.edge_keys)[g["edge_codes"]].astype(np.int32)
        return _core.WalkGraphs(**g, n_edge_codes=max(1, len(edge_keys)))

    def matrix(self, i: int) -> np.ndarray:
        """S of one graph, dense."""
        g = self.graphs
        first, last = g["offsets"][i], g["offsets"][i + 1]
        entries = slice(g["indptr"][first], g["indptr"][last])
        S = np.zeros((last - first, last - first))
        rows = np.repeat(np.arange(last - first), np.diff(g["indptr"][first : last + 1]))
        S[rows, g["indices"][entries]] = g["weights"][entries]
        return S

    def ends(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Start and stop weights of one graph."""
        nodes = slice(self.graphs["offsets"][i], self.graphs["offsets"][i + 1])
        return self.graphs["start"][nodes], self.graphs["stop"][nodes]

    def spectra(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offsets, a and μ of all graphs: sᵀ S^l r = Σ_i a_i μ_i^l. Eigenvectors without a part in it are left out."""
        if self._spectra is None:
            starts, weights, values = [0], [np.zeros(0)], [np.zeros(0)]
            for i in range(len(self)):
                mu, U = np.linalg.eigh(self.matrix(i))
                start, stop = self.ends(i)
                a = (start @ U) * (U.T @ stop)
                kept = np.abs(a) > 1e-16 * np.abs(a).sum()
                weights.append(a[kept])
                values.append(mu[kept])
                starts.append(starts[-1] + int(kept.sum()))
            self._spectra = (np.array(starts, np.int64), np.concatenate(weights), np.concatenate(values))
        return self._spectra

    def scale(self, factor: np.ndarray) -> None:
        """Multiplies S of each graph, and its eigenvalues."""
        nodes = np.repeat(factor, np.diff(self.graphs["offsets"]))
        self.graphs["weights"] = self.graphs["weights"] * np.repeat(nodes, np.diff(self.graphs["indptr"]))
        if self._spectra is not None:
            starts, weights, values = self._spectra
            self._spectra = (starts, weights, values * np.repeat(factor, np.diff(starts)))

    def moments(self, max_length: int) -> np.ndarray:
        """sᵀ S^l r for l = 0 .. max_length, a row a graph."""
        g = self.graphs
        rows = np.repeat(np.arange(len(g["keys"])), np.diff(g["indptr"]))
        graph = np.repeat(np.arange(len(self)), np.diff(g["offsets"]))
        columns = g["indices"] + g["offsets"][graph[rows]] if len(rows) else g["indices"]
        S = sp.csr_matrix((g["weights"], (rows, columns)), shape=(len(g["keys"]),) * 2)
        x, found = g["stop"], []
        for _ in range(max_length + 1):
            found.append(np.bincount(graph, weights=g["start"] * x, minlength=len(self))[: len(self)])
            x = S @ x
        return np.stack(found, axis=1) if len(self) else np.zeros((0, max_length + 1))


class RandomWalk(Kernel):
    """Walks with the same labels in two graphs, of all lengths: the geometric and the marginalised walk kernel.

    k(G, G') = Σ_l λ^l #{pairs of walks of l edges with equal labels}                        ``kind="geometric"``

    k(G, G') = Σ_{h, h'} p(h|G) p(h'|G') [h and h' have equal labels]                       ``kind="marginalized"``

    where p is a random walk that begins anywhere, stops in each node with the stop probability (certainly where there
    is no neighbour), and else goes to a neighbour, in proportion to the edge weights. Both are linear systems on the
    product graph, whose nodes are the pairs of nodes with equal labels. Graphs without nodes have the value 0, and
    isolated nodes are walks of length 0.

    Parameters
    ----------
    kind : {"geometric", "marginalized"}, default="geometric"
        See above.
    decay : float, default=0.01
        λ of the geometric kernel, one number for all pairs. The sum is finite for λ ρ ρ' < 1, with the largest
        eigenvalues ρ, ρ' of the adjacency matrices; a larger λ is an error that names the largest possible value.
    scaled : bool, default=False
        For the geometric kernel: divide each adjacency matrix by its own largest eigenvalue, so that every decay
        below 1 will do. The kernel stays positive definite, since the factor belongs to a single graph.
    stop_probability : float, default=0.1
        Of the marginalised kernel, above 0 and at most 1.
    max_length : int, optional
        Only walks of at most so many edges; then every decay will do.
    labels : {"auto", True, False}, default="auto"
        Compare the labels of nodes: if there are any, always, or never.
    edge_labels : bool, default=False
        Compare the labels of edges.
    weighted : bool, default=False
        A walk counts with the product of its edge weights (geometric), or follows them (marginalised).
    solver : {"auto", "spectral", "cg", "fixed_point", "direct"}, default="auto"
        ``"spectral"`` decomposes each graph once and needs no labels: Σ_ij a_i b_j / (1 − λ μ_i ν_j). ``"cg"``
        (conjugate gradients) and ``"fixed_point"`` solve the system of each pair without making its matrix.
        ``"direct"`` makes it, for small graphs. ``"auto"`` takes ``"spectral"`` where it can be had, else ``"cg"``.
    tol : float, default=1e-10
        Relative error allowed in ``"cg"`` and ``"fixed_point"``.

    Examples
    --------
    >>> from mercer.kernels import RandomWalk
    >>> edge, triangle = [(0, 1)], [(0, 1), (1, 2), (2, 0)]
    >>> RandomWalk(decay=0.1)([edge, triangle]).round(4)  # n n' / (1 - 0.1 d d') with degrees d of regular graphs
    array([[ 4.4444,  7.5   ],
           [ 7.5   , 15.    ]])
    >>> RandomWalk(decay=0.3)([triangle])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: decay must be below 0.25 for these graphs (1 / ρ² with the largest eigenvalue ρ = 2), got 0.3: ...
    """

    _block_entries = 1 << 13

    def __init__(
        self,
        kind: str = "geometric",
        decay: float = 0.01,
        scaled: bool = False,
        stop_probability: float = 0.1,
        max_length: int | None = None,
        labels: Any = "auto",
        edge_labels: bool = False,
        weighted: bool = False,
        solver: str = "auto",
        tol: float = 1e-10,
    ) -> None:
        self.kind = kind
        self.decay = decay
        self.scaled = scaled
        self.stop_probability = stop_probability
        self.max_length = max_length
        self.labels = labels
        self.edge_labels = edge_labels
        self.weighted = weighted
        self.solver = solver
        self.tol = tol

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.max_length is not None and self.labels is False and not self.edge_labels

    def _check_params(self) -> None:
        check_choice("kind", self.kind, ("geometric", "marginalized"))
        check_positive("decay", self.decay)
        if check_positive("stop_probability", self.stop_probability) > 1:
            raise ValueError(f"stop_probability must be at most 1, got {self.stop_probability!r}")
        if self.max_length is not None:
            check_count("max_length", self.max_length, 0)
        check_choice("labels", self.labels, LABELS)
        for name in ("scaled", "edge_labels", "weighted"):
            check_choice(name, getattr(self, name), (True, False))
        check_choice("solver", self.solver, ("auto", "spectral", "cg", "fixed_point", "direct"))
        if self.solver == "spectral" and (self.labels is True or self.edge_labels):
            raise ValueError("solver='spectral' is for walks without labels: pass labels=False and edge_labels=False")
        check_positive("tol", self.tol)
        if self.scaled and self.kind == "geometric" and self.max_length is None and self.decay >= 1:
            raise ValueError(f"decay must be below 1 with scaled=True, got {self.decay!r}")

    # ------------------------------------------------------------------ one collection

    def _prepare(self, X: Any) -> Labelled:
        graphs = read_graphs(X, self.labels, self.edge_labels, self.weighted)
        walks = self._sorted_by_label(graphs)
        prepared = Labelled.of(walks, graphs, self.labels, self.edge_labels)
        spectral = self._solver(prepared) == "spectral"
        if self.kind == "marginalized":
            self._set_probabilities(walks)
        else:
            self._set_weights(walks, spectral)
        if spectral:
            walks.spectra()  # once, not in every block
        return prepared

    def _sorted_by_label(self, graphs: Graphs) -> Walks:
        """Adjacency (weights or ones) with the nodes of every graph in the order of their labels."""
        keys = _node_keys(graphs, self.labels)
        keys = np.zeros(graphs.n_nodes, np.uint64) if keys is None else keys
        graph = graphs.graph_of_node
        order = np.lexsort((keys, graph))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows, columns = graphs._entries()
        entries = np.lexsort((place[columns], place[rows]))
        weights = graphs.edge_weights if self.weighted else None
        edges = _edge_keys(graphs, self.edge_labels)
        distinct, codes = np.unique(np.zeros(len(rows), np.uint64) if edges is None else edges, return_inverse=True)
        starts = graphs.offsets[graph[rows[entries]]] if len(rows) else rows
        return Walks(
            {
                "offsets": graphs.offsets,
                "indptr": np.concatenate([[0], np.cumsum(graphs.degrees[order])]).astype(np.int64),
                "indices": (place[columns[entries]] - starts).astype(np.int32),
                "weights": np.ones(len(rows)) if weights is None else weights[entries].astype(np.float64),
                "edge_codes": codes[entries].astype(np.int32),
                "keys": keys[order],
            },
            distinct,
        )

    def _set_probabilities(self, walks: Walks) -> None:
        """Steps, ends and a bound of the eigenvalues of S for random walks, from the adjacency.

        Their steps P = (1 − q) D⁻¹ A are not symmetric. With D^½ on one side and D^−½ on the other they are, and the
        ends take the opposite factors.
        """
        g, q = walks.graphs, self.stop_probability
        graph = np.repeat(np.arange(len(walks)), np.diff(g["offsets"]))
        rows = np.repeat(np.arange(len(graph)), np.diff(g["indptr"]))
        columns = g["indices"] + (g["offsets"][graph[rows]] if len(rows) else 0)
        degree = np.bincount(rows, weights=g["weights"], minlength=len(graph))
        root = np.sqrt(np.where(degree > 0, degree, 1.0))
        g["weights"] = (1.0 - q) * g["weights"] / (root[rows] * root[columns])
        g["start"] = 1.0 / (np.diff(g["offsets"])[graph] * root)
        g["stop"] = np.where(degree > 0, q, 1.0) * root
        g["radius"] = np.full(len(walks), 1.0 - q)

    def _set_weights(self, walks: Walks, spectral: bool) -> None:
        """The same for counted walks: S = √λ A, or √λ A / ρ; a bound is of use only for walks of all lengths."""
        g = walks.graphs
        g["start"] = g["stop"] = np.ones(len(g["keys"]))
        radius = np.zeros(len(walks))
        if spectral:
            starts, _, values = walks.spectra()
            # The largest eigenvalue of non-negative weights has a non-negative eigenvector, so it is not left out.
            radius = np.array([values[a:b].max(initial=0.0) for a, b in pairwise(starts)])
        elif self.scaled or self.max_length is None:
            radius = np.array([_spectral_radius(walks, i) for i in range(len(walks))], np.float64)
        factor = np.full(len(walks), np.sqrt(self.decay))
        if self.scaled:
            factor /= np.where(radius > 0, radius, 1.0)
        walks.scale(factor)
        g["radius"] = radius * factor

    # ------------------------------------------------------------------ pairs

    def _solver(self, *parts: Labelled) -> str:
        plain = not self.edge_labels and all(part.kind in ("ignored", "no", "any") for part in parts)
        if self.solver == "spectral" and not plain:
            raise ValueError("solver='spectral' is for walks without labels: pass labels=False")
        if self.max_length is not None:
            return "moments" if plain else "fixed_point"
        if self.solver != "auto":
            return self.solver
        largest = max((int(np.diff(part.rows.graphs["offsets"]).max(initial=0)) for part in parts), default=0)
        return "spectral" if plain and largest <= DENSE_NODES else "cg"

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        other = A if B is None else B
        _comparable(A, other)
        left, right = A.rows, other.rows
        self._check_decay(left.graphs["radius"], right.graphs["radius"])
        solver = self._solver(A, other)
        if solver == "moments":
            F, G = left.moments(self.max_length), right.moments(self.max_length)
            return mirrored(F @ G.T) if B is None else F @ G.T
        if solver == "direct":
            return self._direct(left, None if B is None else right)
        K = np.empty((len(left), len(right)))
        if solver == "spectral":
            a, b = left.spectra(), right.spectra()
            _core.spectral_gram(a[0], a[1], a[2], b[0], b[1], b[2], B is None, K, work.threads)
            return K
        edge_keys = np.union1d(left.edge_keys, right.edge_keys)
        compiled = left.compiled(edge_keys)
        to = None if B is None else right.compiled(edge_keys)
        max_length = -1 if self.max_length is None else int(self.max_length)
        _core.walk_gram(compiled, to, solver, max_length, float(self.tol), K, work.threads)
        return K

    def _diag(self, A: Labelled, work: Work) -> np.ndarray:
        if self._solver(A) == "moments":
            return np.square(A.rows.moments(self.max_length)).sum(axis=1)
        return super()._diag(A, work)

    def _features(self, parts: list[Labelled]) -> list[Any]:
        return [part.rows.moments(self.max_length) for part in parts]

    def _check_decay(self, left: np.ndarray, right: np.ndarray) -> None:
        """The same λ for all pairs: it must be small enough for the largest eigenvalues of both collections."""
        most = left.max(initial=0.0) * right.max(initial=0.0)
        if self.max_length is not None or self.kind == "marginalized" or most < 1.0 - 1e-12:
            return
        limit = self.decay / most
        rho = np.sqrt(1.0 / limit)
        raise ValueError(
            f"decay must be below {limit:.6g} for these graphs (1 / ρ² with the largest eigenvalue ρ = {rho:.6g}), got "
            f"{self.decay!r}: pass a smaller decay, scaled=True, or max_length"
        )

    def _direct(self, left: Walks, right: Walks | None) -> np.ndarray:
        other = left if right is None else right
        K = np.empty((len(left), len(other)))
        for i in range(len(left)):
            for j in range(i + 1 if right is None else len(other)):
                K[i, j] = _solved(left, i, other, j)
        return mirrored(K) if right is None else K


def _spectral_radius(walks: Walks, i: int) -> float:
    """The largest eigenvalue of an adjacency matrix."""
    n = int(walks.graphs["offsets"][i + 1] - walks.graphs["offsets"][i])
    if n == 0:
        return 0.0
    if n <= DENSE_NODES:
        return float(max(0.0, np.linalg.eigvalsh(walks.matrix(i))[-1]))
    from scipy.sparse.linalg import eigsh

    g = walks.graphs
    first, last = g["offsets"][i], g["offsets"][i + 1]
    entries = slice(g["indptr"][first], g["indptr"][last])
    indptr = g["indptr"][first : last + 1] - entries.start
    A = sp.csr_matrix((g["weights"][entries], g["indices"][entries], indptr), shape=(n, n))
    begin = np.random.default_rng(0).uniform(0.5, 1.5, size=n)  # not an eigenvector, not orthogonal to the one wanted
    return float(max(0.0, eigsh(A, 1, which="LA", return_eigenvectors=False, v0=begin)[0])) if A.nnz else 0.0


def _solved(left: Walks, i: int, right: Walks, j: int) -> float:
    """One pair, by solving the system of its product graph."""
    S, T = left.matrix(i), right.matrix(j)
    nodes = [slice(w.graphs["offsets"][at], w.graphs["offsets"][at + 1]) for w, at in ((left, i), (right, j))]
    same = np.equal.outer(left.graphs["keys"][nodes[0]], right.graphs["keys"][nodes[1]]).ravel()
    if same.sum() > DIRECT_PAIRS:
        raise ValueError(
            f"solver='direct' would make a matrix of {same.sum()} x {same.sum()}: use solver='cg' or 'spectral'"
        )
    W = np.einsum("uv,xy->uxvy", S, T)
    if len(np.union1d(left.edge_keys, right.edge_keys)) > 1:
        W = W * np.equal(_edge_table(left, i)[:, None, :, None], _edge_table(right, j)[None, :, None, :])
    W = W.reshape(len(same), len(same))[np.ix_(same, same)]
    (start, stop), (start2, stop2) = left.ends(i), right.ends(j)
    x = np.linalg.solve(np.eye(len(W)) - W, np.outer(stop, stop2).ravel()[same])
    return float(np.outer(start, start2).ravel()[same] @ x)


def _edge_table(walks: Walks, i: int) -> np.ndarray:
    """Keys of the edge labels of one graph, as a dense matrix."""
    g = walks.graphs
    first, last = g["offsets"][i], g["offsets"][i + 1]
    entries = slice(g["indptr"][first], g["indptr"][last])
    table = np.zeros((last - first, last - first), np.uint64)
    rows = np.repeat(np.arange(last - first), np.diff(g["indptr"][first : last + 1]))
    table[rows, g["indices"][entries]] = walks.edge_keys[g["edge_codes"][entries]]
    return table
