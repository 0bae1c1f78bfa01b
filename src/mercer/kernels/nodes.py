"""Kernels between the nodes of one graph, by the paths between them.

diffusion                exp(−β L) = lim (I − β L / n)ⁿ,   L = D − A (some texts print the opposite sign)
regularised Laplacian    (I + β L)⁻¹

With the normalised Laplacian, L = I − D^−½ A D^−½.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_positive, thread_count
from mercer.data.graphs import Graph, Graphs, as_graphs
from mercer.kernels.base import Kernel, Work, check_memory, mirrored
from mercer.kernels.graphs import with_way_out

__all__ = ["Diffusion", "RegularizedLaplacian", "neighbor_graph"]

DENSE_NODES = 2000  # graphs of up to so many nodes are decomposed into eigenvectors; of larger ones, columns are solved
CHUNK = 64  # columns that are computed together


class _NodeKernel(Kernel):
    """A function of the Laplacian of a graph; objects are nodes."""

    _block_entries = None

    def __init__(self, graph: Any, beta: float = 0.5, normalized_laplacian: bool = False) -> None:
        self.graph = graph
        self.beta = beta
        self.normalized_laplacian = normalized_laplacian

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self._laplacian()[0].shape[0] <= DENSE_NODES

    def _check_params(self) -> None:
        check_positive("beta", self.beta)
        check_choice("normalized_laplacian", self.normalized_laplacian, (True, False))
        self._laplacian()

    # ------------------------------------------------------------------ what a subclass says

    def _spectrum(self, eigenvalues: np.ndarray) -> np.ndarray:
        """The function of the eigenvalues of L."""
        raise NotImplementedError

    def _columns(self, L: Any, E: np.ndarray) -> np.ndarray:
        """The function of L, times some columns, for large graphs."""
        raise NotImplementedError

    # ------------------------------------------------------------------ the graph, once

    def _kept_for(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for the same graph and parameters before, or what is made now."""
        kept = self.__dict__.setdefault("_kept", {})
        if name not in kept or kept[name][0] is not self.graph or kept[name][1] != key:
            kept[name] = (self.graph, key, make())
        return kept[name][2]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def _laplacian(self) -> tuple[Any, dict[Hashable, int] | None]:
        """L in CSR form, and the numbers of the nodes by name."""
        key = bool(self.normalized_laplacian)
        return self._kept_for("laplacian", key, lambda: _laplacian(self.graph, key))

    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        key = bool(self.normalized_laplacian)
        return self._kept_for("eigen", key, lambda: np.linalg.eigh(self._laplacian()[0].toarray()))

    def _dense(self) -> np.ndarray:
        def make() -> np.ndarray:
            values, vectors = self._eigen()
            return mirrored((vectors * self._spectrum(values)) @ vectors.T)

        return self._kept_for("matrix", (self.beta, bool(self.normalized_laplacian)), make)

    def matrix(self) -> np.ndarray:
        """Return the kernel of all nodes with all nodes, in the order of the graph.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
        """
        self._check_params()
        n = self._laplacian()[0].shape[0]
        check_memory(n, n, np.float64)
        return self._gram(np.arange(n), None, Work())

    # ------------------------------------------------------------------ the contract

    def _prepare(self, X: Any) -> np.ndarray:
        L, names = self._laplacian()
        n = L.shape[0]
        if isinstance(X, np.ndarray) and X.dtype.kind in "iu" and X.ndim == 1 and not _named_by_numbers(names):
            numbers = X.astype(np.int64)
            wrong = (numbers < 0) | (numbers >= n)
            if wrong.any():
                raise ValueError(f"the graph has nodes from 0 to {n - 1}, got {X[wrong][0]}")
            return numbers
        return np.array([_node(node, n, names) for node in X], np.int64)

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Work) -> np.ndarray:
        to = A if B is None else B
        if self._laplacian()[0].shape[0] <= DENSE_NODES:
            return self._dense()[np.ix_(A, to)].astype(work.dtype, copy=False)
        left, right = np.unique(A), np.unique(to)
        K = self._solved(left, right) if len(right) <= len(left) else self._solved(right, left).T
        K = np.ascontiguousarray(K[np.ix_(np.searchsorted(left, A), np.searchsorted(right, to))])
        return mirrored(K) if B is None else K

    def _solved(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Entries (rows, columns), by computing the columns, some at a time."""
        L = self._laplacian()[0]
        K = np.empty((len(rows), len(columns)))
        for start in range(0, len(columns), CHUNK):
            chosen = columns[start : start + CHUNK]
            E = np.zeros((L.shape[0], len(chosen)))
            E[chosen, np.arange(len(chosen))] = 1.0
            K[:, start : start + CHUNK] = self._columns(L, E)[rows]
        return K

    def _diag(self, A: np.ndarray, work: Work) -> np.ndarray:
        if self._laplacian()[0].shape[0] <= DENSE_NODES:
            return self._dense().diagonal()[A]
        nodes, place = np.unique(A, return_inverse=True)
        parts = [self._solved(part, part).diagonal() for part in np.array_split(nodes, -(-len(nodes) // CHUNK) or 1)]
        return np.concatenate(parts)[place] if len(nodes) else np.zeros(0)

    def _features(self, parts: list[np.ndarray]) -> list[Any]:
        values, vectors = self._eigen()
        scaled = vectors * np.sqrt(self._spectrum(values))
        return [scaled[part] for part in parts]

    def __repr__(self) -> str:
        normalized = ", normalized_laplacian=True" if self.normalized_laplacian else ""
        try:
            graph = f"{self._laplacian()[0].shape[0]} nodes"
        except ValueError:  # not a graph: a call says so
            graph = type(self.graph).__name__
        return f"{type(self).__name__}({graph}, beta={self.beta!r}{normalized})"


class Diffusion(_NodeKernel):
    """The diffusion kernel exp(−β L): heat that flows from one node to another.

    Rows of the matrix sum to 1 with the plain Laplacian L = D − A: heat is conserved. Nodes in different components
    have the value 0. Up to 2,000 nodes L is decomposed once; on larger graphs only the requested columns are computed,
    by products with the sparse L.

    Parameters
    ----------
    graph : Graph, networkx graph, adjacency matrix, or list of edges
        Edge weights, if there are any, are used; they must not be negative.
    beta : float, default=0.5
        Diffusion time; above 0.
    normalized_laplacian : bool, default=False
        Use L = I − D^−½ A D^−½, which lets heat flow equally fast out of all nodes.

    Notes
    -----
    Objects are node numbers or names. Names are the nodes of a networkx graph, or the node labels of a `Graph` if these
    are distinct strings.

    References
    ----------
    .. [Kondor2002] R. Kondor and J. Lafferty. Diffusion kernels on graphs and other discrete input spaces. ICML, 2002.

    Examples
    --------
    >>> from mercer.kernels import Diffusion
    >>> k = Diffusion([(0, 1), (1, 2), (2, 3), (3, 4)], beta=0.5)
    >>> k([0], [0, 1, 4]).round(3)
    array([[0.674, 0.258, 0.001]])
    >>> k.matrix().sum(axis=1).round(6)
    array([1., 1., 1., 1., 1.])
    """

    def _spectrum(self, eigenvalues: np.ndarray) -> np.ndarray:
        return np.exp(-self.beta * eigenvalues)

    def _columns(self, L: Any, E: np.ndarray) -> np.ndarray:
        from scipy.sparse.linalg import expm_multiply

        return expm_multiply(-self.beta * L, E, traceA=-self.beta * L.diagonal().sum())


class RegularizedLaplacian(_NodeKernel):
    """The regularised Laplacian kernel (I + β L)⁻¹: walks of all lengths, discounted by length.

    Rows of the matrix sum to 1 with the plain Laplacian L = D − A. Nodes in different components have the value 0. On
    graphs of more than 2,000 nodes only the requested columns are computed, by conjugate gradients.

    Parameters
    ----------
    graph : Graph, networkx graph, adjacency matrix, or list of edges
        Edge weights, if there are any, are used; they must not be negative.
    beta : float, default=0.5
        Range of the kernel; above 0.
    normalized_laplacian : bool, default=False
        Use L = I − D^−½ A D^−½.

    Notes
    -----
    Objects are nodes, as in `Diffusion`.

    References
    ----------
    .. [Smola2003] A. Smola and R. Kondor. Kernels and regularization on graphs. COLT, 2003.

    Examples
    --------
    >>> from mercer.kernels import RegularizedLaplacian
    >>> RegularizedLaplacian([(0, 1)], beta=1.0).matrix().round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """

    def _spectrum(self, eigenvalues: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + self.beta * np.maximum(eigenvalues, 0.0))

    def _columns(self, L: Any, E: np.ndarray) -> np.ndarray:
        """Conjugate gradients on all columns side by side: I + βL has no eigenvalue below 1."""
        x, residual = np.zeros_like(E), E.copy()
        direction, rr = residual.copy(), np.einsum("ij,ij->j", residual, residual)
        goal = 1e-24 * rr
        for _ in range(10 * L.shape[0]):
            if (rr <= goal).all():
                return x
            image = direction + self.beta * (L @ direction)
            alpha = np.where(rr > 0, rr / np.maximum(np.einsum("ij,ij->j", direction, image), 1e-300), 0.0)
            x += alpha * direction
            residual -= alpha * image
            last, rr = rr, np.einsum("ij,ij->j", residual, residual)
            direction = residual + np.where(last > 0, rr / np.maximum(last, 1e-300), 0.0) * direction
        raise RuntimeError(f"conjugate gradients did not converge: beta={self.beta!r} is too large for this graph")


# ---------------------------------------------------------------------------------------------- graphs and nodes


def _laplacian(graph: Any, normalized: bool) -> tuple[Any, dict[Hashable, int] | None]:
    A, names = _adjacency(graph)
    if (A.data < 0).any():
        raise ValueError("graph must have edge weights of at least 0")
    degree = np.asarray(A.sum(axis=1)).ravel()
    if not normalized:
        return sp.csr_matrix(sp.diags(degree) - A), names
    scale = np.where(degree > 0, 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    return sp.csr_matrix(sp.diags((degree > 0).astype(float)) - sp.diags(scale) @ A @ sp.diags(scale)), names


def _adjacency(graph: Any) -> tuple[Any, dict[Hashable, int] | None]:
    """The weighted adjacency of one graph, and the numbers of its nodes by name."""
    if isinstance(graph, Graphs):
        if len(graph) != 1:
            raise ValueError(f"graph must be one graph, got Graphs with {len(graph)} of them")
        graph = graph[0]
    if isinstance(graph, Graph):
        return graph.adjacency(), _names(graph.node_labels)
    try:
        if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
            weighted = graph.number_of_edges() > 0 and all("weight" in data for *_, data in graph.edges(data=True))
            read = Graphs.from_networkx([graph], node_label=None, weight="weight" if weighted else None)[0]
            return read.adjacency(), {node: i for i, node in enumerate(graph.nodes)}
        if hasattr(graph, "tocsr") or isinstance(graph, np.ndarray):
            return Graphs.from_scipy([graph], weighted=True)[0].adjacency(), None
        return as_graphs([graph])[0].adjacency(), None
    except ValueError as error:
        raise ValueError(with_way_out(error).replace("graph 0", "graph")) from error
    except TypeError as error:
        raise ValueError(
            "graph must be a Graph, a networkx graph, an adjacency matrix or a list of edges, got "
            f"{type(graph).__name__}"
        ) from error


def _names(labels: np.ndarray | None) -> dict[Hashable, int] | None:
    if labels is None or labels.dtype.kind != "U":
        return None
    names = {str(name): i for i, name in enumerate(labels)}
    return names if len(names) == len(labels) else None  # type: ignore[return-value]


def _named_by_numbers(names: dict[Hashable, int] | None) -> bool:
    """Whether a number is a name (in a networkx graph) and not the place of a node."""
    return names is not None and any(isinstance(name, Integral) for name in names)


def _node(node: Any, n: int, names: dict[Hashable, int] | None) -> int:
    by_name = names is not None and (not isinstance(node, Integral) or _named_by_numbers(names))
    if by_name:
        node = node.item() if isinstance(node, np.generic) else node
        try:
            return names[node]  # type: ignore[index]
        except (KeyError, TypeError):
            raise ValueError(f"the graph has no node {node!r}") from None
    if isinstance(node, bool) or not isinstance(node, Integral):
        raise ValueError(f"nodes must be numbers from 0 to {n - 1}, got {node!r}")
    if not 0 <= int(node) < n:
        raise ValueError(f"the graph has nodes from 0 to {n - 1}, got {node!r}")
    return int(node)


def neighbor_graph(
    items: Sequence[Any],
    distance: str | Callable[[Any, Any], float] = "edit",
    threshold: float = 1,
    *,
    n_jobs: int | None = None,
) -> Graph:
    """Return the graph with an edge between items whose distance is at most a threshold.

    Parameters
    ----------
    items : sequence
        Strings for ``distance="edit"``; any objects for your own distance.
    distance : "edit" or callable, default="edit"
        ``"edit"`` counts insertions, deletions and substitutions of characters. A callable gets two items; it is
        assumed to be symmetric and called once for every pair.
    threshold : float, default=1
        Largest distance of neighbours, at least 0.
    n_jobs : int, optional
        Threads, for ``distance="edit"``.

    Returns
    -------
    graph : Graph
        One node for each item; strings are kept as node labels, so that `Diffusion` takes them as names.

    Examples
    --------
    >>> from mercer.kernels import Diffusion, neighbor_graph
    >>> graph = neighbor_graph(["cat", "cart", "card", "dog"])
    >>> graph.edges.tolist()
    [[0, 1], [1, 2]]
    >>> Diffusion(graph, beta=0.5)(["cat"], ["cart", "card", "dog"]).round(3)
    array([[0.259, 0.067, 0.   ]])
    """
    words = list(items)
    if isinstance(threshold, bool) or not np.isfinite(threshold) or threshold < 0:
        raise ValueError(f"threshold must be a finite number of at least 0, got {threshold!r}")
    strings = all(isinstance(word, str) for word in words)
    if isinstance(distance, str):
        check_choice("distance", distance, ("edit",))
        if not strings:
            raise ValueError("items must be strings for distance='edit'")
        codes = [np.frombuffer(word.encode("utf-32-le", "surrogatepass"), "<i4") for word in words]
        offsets = np.concatenate([[0], np.cumsum([len(code) for code in codes])]).astype(np.int64)
        joined = np.concatenate([np.zeros(0, np.int32), *codes]).astype(np.int32)
        limit = int(min(np.floor(threshold), max([1, *(len(code) for code in codes)])))
        first, second, _ = _core.kernels.edit_pairs(offsets, joined, limit, thread_count(n_jobs))
        edges = np.stack([first, second], axis=1)
    elif callable(distance):
        edges = np.array(_near_pairs(words, distance, threshold), np.int64).reshape(-1, 2)
    else:
        raise ValueError(f"distance must be 'edit' or a function of two items, got {distance!r}")
    labels = [np.array(words, dtype=str)] if strings and words else None
    return Graphs.from_edges([edges], [len(words)], node_labels=labels)[0]


def _near_pairs(items: list[Any], distance: Callable[[Any, Any], float], threshold: float) -> list[tuple[int, int]]:
    pairs = []
    for i, x in enumerate(items):
        for j in range(i):
            d = distance(x, items[j])
            if not d >= 0:
                raise ValueError(f"distance must give numbers of at least 0, got {d!r} for items {j} and {i}")
            if d <= threshold:
                pairs.append((j, i))
    return pairs
