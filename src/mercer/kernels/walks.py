"""Kernels between graphs that compare walks: of all lengths with a decay, or random walks with their probabilities.

walks           Σ_l λ^l 1ᵀ W×^l 1 = 1ᵀ (I − λ W×)⁻¹ 1,  W× the adjacency of the product graph
random walks    Σ_{h,h'} p(h|G) p(h'|G') [h and h' have the same labels]

Both are sᵀ (I − S ⊗ S')⁻¹ r on the pairs of nodes with equal labels, with a symmetric S for each graph.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive
from mercer.data.graphs import Graphs
from mercer.kernels.base import Kernel, Work, mirrored
from mercer.kernels.graphs import LABELS, Labelled, comparable, edge_keys, node_keys, read_graphs

__all__ = ["RandomWalk"]

DENSE_NODES = 2000  # graphs of up to so many nodes are decomposed into eigenvectors
DIRECT_PAIRS = 5000  # unknowns of the largest dense system
STEPS_A_CALL = 1 << 26  # products of the sizes of two graphs that one compiled call works on


class Walks:
    """Graphs prepared for walks: symmetric S, start and stop weights of each node, nodes sorted by label.

    The sum over walks of all lengths is sᵀ (I − S)⁻¹ r on one graph; on a pair it is the same on the product graph.
    """

    def __init__(self, graphs: dict[str, np.ndarray], distinct: np.ndarray) -> None:
        self.graphs = graphs
        self.edge_keys = distinct  # of the codes in graphs["edge_codes"]
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

    def compiled(self, numbered: np.ndarray) -> _core.kernels.WalkGraphs:
        """Return the input of the compiled loops, with edge codes that number the given keys."""
        g = dict(self.graphs)
        if len(g["edge_codes"]):
            g["edge_codes"] = np.searchsorted(numbered, self.edge_keys)[g["edge_codes"]].astype(np.int32)
        return _core.kernels.WalkGraphs(**g, n_edge_codes=max(1, len(numbered)))

    def sizes(self) -> np.ndarray:
        """Return the number of nodes and edges of each graph; the work on a pair is proportional to their product."""
        offsets = self.graphs["offsets"]
        return np.diff(offsets + self.graphs["indptr"][offsets]).astype(np.float64)

    def matrix(self, i: int) -> np.ndarray:
        """Return S of one graph, dense."""
        g = self.graphs
        first, last = g["offsets"][i], g["offsets"][i + 1]
        entries = slice(g["indptr"][first], g["indptr"][last])
        S = np.zeros((last - first, last - first))
        rows = np.repeat(np.arange(last - first), np.diff(g["indptr"][first : last + 1]))
        S[rows, g["indices"][entries]] = g["weights"][entries]
        return S

    def ends(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return start and stop weights of one graph."""
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
        """Multiply S of each graph, and its eigenvalues."""
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
        x, counts = g["stop"], []
        for _ in range(max_length + 1):
            counts.append(np.bincount(graph, weights=g["start"] * x, minlength=len(self))[: len(self)])
            x = S @ x
        return np.stack(counts, axis=1) if len(self) else np.zeros((0, max_length + 1))


class RandomWalk(Kernel):
    """Count walks with the same labels in two graphs: the geometric and the marginalised random-walk kernel.

    ``k(G, G') = Σ_l λ^l #{pairs of walks of l edges with equal labels}`` (``kind="geometric"``)

    ``k(G, G') = Σ_{h, h'} p(h|G) p(h'|G') [h and h' have equal labels]`` (``kind="marginalized"``)

    where p is the distribution of a random walk. The walk begins in a uniformly drawn node and stops in each node with
    the stop probability (always if the node has no neighbour). Otherwise it moves to a neighbour with probability
    proportional to the edge weight. Both are linear systems on the product graph, whose nodes are the pairs of nodes
    with equal labels. Graphs without nodes have the value 0. Isolated nodes are walks of length 0.

    Parameters
    ----------
    kind : {"geometric", "marginalized"}, default="geometric"
        See above.
    decay : float, default=0.01
        λ of the geometric kernel, one number for all pairs. The sum is finite for λ ρ ρ' < 1, with the largest
        eigenvalues ρ, ρ' of the adjacency matrices; a larger λ raises an error that states the largest possible value.
    scaled : bool, default=False
        For the geometric kernel: divide each adjacency matrix by its own largest eigenvalue, so that every decay
        below 1 is valid. The kernel stays positive definite, because the factor depends on a single graph.
    stop_probability : float, default=0.1
        Of the marginalised kernel, above 0 and at most 1.
    max_length : int, optional
        Maximum number of edges of a walk; then every decay is valid.
    labels : {"auto", True, False}, default="auto"
        Compare the labels of nodes: if there are any, always, or never.
    edge_labels : bool, default=False
        Compare the labels of edges.
    weighted : bool, default=False
        Whether edge weights count: a walk has the product of its edge weights (geometric), or moves in proportion to
        them (marginalised).
    solver : {"auto", "spectral", "cg", "fixed_point", "direct"}, default="auto"
        ``"spectral"`` decomposes each graph once and needs no labels: Σ_ij a_i b_j / (1 − λ μ_i ν_j). ``"cg"``
        (conjugate gradients) and ``"fixed_point"`` solve the system of each pair without building its matrix.
        ``"direct"`` builds it, for small graphs. ``"auto"`` uses ``"spectral"`` where it applies, else ``"cg"``.
    tol : float, default=1e-10
        Relative error allowed in ``"cg"`` and ``"fixed_point"``.

    References
    ----------
    .. [Gartner2003] T. Gärtner, P. Flach and S. Wrobel. On graph kernels: hardness results and efficient alternatives.
       COLT, 2003.
    .. [Kashima2003] H. Kashima, K. Tsuda and A. Inokuchi. Marginalized kernels between labeled graphs. ICML, 2003.

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
        keys = node_keys(graphs, self.labels)
        keys = np.zeros(graphs.n_nodes, np.uint64) if keys is None else keys
        graph = graphs.graph_of_node
        order = np.lexsort((keys, graph))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows, columns = graphs._entries()
        entries = np.lexsort((place[columns], place[rows]))
        weights = graphs.edge_weights if self.weighted else None
        edges = edge_keys(graphs, self.edge_labels)
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
        comparable(A, other)
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
            _core.kernels.spectral_gram(a[0], a[1], a[2], b[0], b[1], b[2], B is None, K, work.threads)
            return K
        self._fill_by_pairs(K, left, None if B is None else right, solver, work)
        return K

    def _fill_by_pairs(self, K: np.ndarray, left: Walks, right: Walks | None, solver: str, work: Work) -> None:
        """Solves the system of every pair; for large graphs a few pairs a call, which cannot be interrupted."""
        other = left if right is None else right
        shared = np.union1d(left.edge_keys, other.edge_keys)
        max_length = -1 if self.max_length is None else int(self.max_length)

        def fill(rows: Walks, columns: Walks | None, out: np.ndarray) -> None:
            to = None if columns is None else columns.compiled(shared)
            _core.kernels.walk_gram(rows.compiled(shared), to, solver, max_length, float(self.tol), out, work.threads)

        sizes, widths = left.sizes(), other.sizes()
        if sizes.sum() * widths.sum() <= STEPS_A_CALL:
            fill(left, right, K)
            return
        for i, size in enumerate(sizes):
            last = i + 1 if right is None else len(other)  # of a symmetric matrix the rows up to the diagonal
            for start, stop in _stretches(size * widths[:last]):
                block = np.empty((1, stop - start))
                fill(left[i : i + 1], other[start:stop], block)
                K[i, start:stop] = block[0]
        if right is None:
            mirrored(K)

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


def _stretches(steps: np.ndarray) -> list[tuple[int, int]]:
    """Stretches of pairs with at most STEPS_A_CALL steps together, or of one pair."""
    ends, stretches, start = np.cumsum(steps), [], 0
    while start < len(steps):
        done = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, done + STEPS_A_CALL, side="right")))
        stretches.append((start, stop))
        start = stop
    return stretches


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
