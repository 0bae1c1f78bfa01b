"""Graphlets: graphs as counts of their small induced subgraphs, hashed by canonical form.

Φ_S(G) = #{A ⊂ V(G), |A| = k : G[A] ≅ S},    Φ̄_j(G) = Σ_{S : hash(form(S)) = j} Φ_S(G)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import _core
from mercer._validation import check_choice, check_count, check_seed, thread_count
from mercer.data.graphs import Graphs, as_graphs, check_labels
from mercer.maps.hashed import HashedMap, check_bits

__all__ = ["GraphletHasher", "canonical_form", "graphlet_name"]

MAX_SIZE = 9
"""The compiled core handles subgraphs of up to 9 nodes."""


class GraphletHasher(HashedMap):
    """Counts of graphlets: small induced subgraphs, by type, hashed into 2^n_bits columns.

    Two subsets of nodes count for the same feature if their induced subgraphs are isomorphic, with ``labels=True`` by
    a map that keeps the labels of the nodes.

    Parameters
    ----------
    sizes : int or sequence of int, default=(3, 4, 5)
        Numbers of nodes of the subgraphs, from 1 to 9.
    method : {"exact", "sample", "mcmc"}, default="exact"
        ``"exact"`` visits all subsets. ``"sample"`` draws independent subsets, weighted so that every subset counts the
        same in expectation. ``"mcmc"`` follows a Markov chain whose stationary distribution weighs a subset by its
        number of edges (``edge_weighting``).
    n_samples : int, default=10_000
        Subsets to draw for each graph and size. With ``method="sample"``, a graph that has no more subsets than that
        is counted exactly.
    labels : bool, default=False
        Distinguish subgraphs by the labels of their nodes as well. networkx graphs have them in the
        attribute ``label``.
    n_bits : int, default=16
        Number of columns, as a power of two.
    edge_weighting : None, sequence or callable, default=None
        For ``"mcmc"``: the weight β(e) of a subset with e edges, up to a factor. None is 1 for all; a sequence is
        indexed by e; a callable is called with e. Not negative; a subset of weight 0 is never counted.
    seed : int, default=0
        Seed of the hash, and of the samples if ``sample_seed`` is None.
    connected : bool, default=True
        Connected subgraphs only; otherwise all. With ``"exact"``, counts of disconnected types of up to 5 nodes without
        labels follow from those of connected ones; else every subset is visited.
    normalize : bool, default=False
        Frequencies instead of counts: the features of each size sum to 1 (before collisions and signs).
    burn_in : int, default=1000
        For ``"mcmc"``: steps before the first sample.
    thin : int, default=1
        For ``"mcmc"``: steps from one sample to the next.
    sample_seed : int, optional
        Seed of the samples. Draws with the same ``seed`` and different ``sample_seed`` have the same columns and can be
        averaged; see `estimate`.
    signed : bool, default=False
        Give each feature a sign from its hash, so that collisions cancel in expectation.
    inverse_size : int, default=0
        Maximum number of graphlet names to store; see `inverse`.
    n_jobs : int or None, default=None
        Number of threads; −1 is all cores.
    dtype : {float64, float32}, default=float64
        Type of the values.

    Notes
    -----
    Without ``normalize``, ``"exact"`` gives counts, ``"sample"`` unbiased estimates of them, and ``"mcmc"`` the number
    of visits, ``n_samples`` in all.

    ``"sample"`` grows connected subsets: a random node, then repeatedly a random node of the boundary. The draw is
    weighted by (number of first nodes) × Π (sizes of the boundaries) / (number of orders in which the subset can be
    grown), whose expectation is 1 for every connected subset; so weighted counts are unbiased and frequencies converge
    to the exact ones. With ``connected=False`` all k-subsets are equally likely.

    ``"mcmc"`` removes a random node from the subset and adds a node j with probability ∝ β of the resulting number
    of edges, which leaves ``P(A) ∝ β(|E(A)|)`` invariant. With ``connected=True`` disconnected results have weight 0;
    the chain is irreducible on a connected graph with β > 0. Where a graph has several components of k nodes or β has
    zeros, one step in eight is an independent draw with a Metropolis test, which keeps P and reaches every subset.

    Samples depend only on the graph and the seed, not on the other graphs, their order or the number of threads. Graphs
    with fewer nodes than a size have no features of that size.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercer.data import Graphs
    >>> from mercer.maps import GraphletHasher
    >>> graphs = Graphs.from_edges([[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2), (2, 3)]])
    >>> hasher = GraphletHasher(sizes=3, n_bits=8, inverse_size=100).fit(graphs)
    >>> X = hasher.transform(graphs)
    >>> for column in sorted(set(X.indices)):
    ...     print(hasher.inverse(column), X[:, [column]].toarray().ravel())
    ['path-3'] [2. 2.]
    ['triangle'] [1. 0.]
    """

    def __init__(
        self,
        sizes: int | Sequence[int] = (3, 4, 5),
        method: str = "exact",
        n_samples: int = 10_000,
        labels: bool = False,
        n_bits: int = 16,
        edge_weighting: Sequence[float] | Callable[[int], float] | None = None,
        seed: int = 0,
        *,
        connected: bool = True,
        normalize: bool = False,
        burn_in: int = 1000,
        thin: int = 1,
        sample_seed: int | None = None,
        signed: bool = False,
        inverse_size: int = 0,
        n_jobs: int | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.sizes = sizes
        self.method = method
        self.n_samples = n_samples
        self.labels = labels
        self.n_bits = n_bits
        self.edge_weighting = edge_weighting
        self.seed = seed
        self.connected = connected
        self.normalize = normalize
        self.burn_in = burn_in
        self.thin = thin
        self.sample_seed = sample_seed
        self.signed = signed
        self.inverse_size = inverse_size
        self.n_jobs = n_jobs
        self.dtype = dtype

    def transform(self, X: Any) -> Any:
        """Return counts (or frequencies) of graphlets, one row per graph.

        Parameters
        ----------
        X : Graphs, or list of networkx graphs, adjacency matrices or edge lists
            See `mercer.data.Graphs` for the requirements.

        Returns
        -------
        counts : CSR matrix of shape (n_graphs, 2^n_bits)
        """
        from scipy.sparse import csr_matrix

        self._check_parameters()
        graphs = self._graphs(X)
        indptr, indices, values = _core.graphs.graphlet_rows(
            **self._arguments(graphs),
            normalize=bool(self.normalize),
            signed=bool(self.signed),
            threads=thread_count(self.n_jobs),
        )
        shape = (len(graphs), self.n_features_out_)
        return csr_matrix((values.astype(self.dtype, copy=False), indices, indptr), shape=shape)

    def estimate(self, X: Any, n_draws: int = 5) -> tuple[Any, Any]:
        """Return means over independent draws of samples, and estimates of their variances.

        With ``"sample"`` the mean is an unbiased estimate of the counts with ``n_draws`` times the samples; with
        ``"exact"`` all variances are 0.

        Parameters
        ----------
        X : as for `transform`
        n_draws : int, default=5
            Number of draws, at least 2.

        Returns
        -------
        mean : CSR matrix of shape (n_graphs, 2^n_bits)
        variance : CSR matrix of shape (n_graphs, 2^n_bits)
            Variance of the mean: the variance over the draws, divided by their number.

        Examples
        --------
        >>> from mercer.data import Graphs
        >>> from mercer.maps import GraphletHasher
        >>> rings = Graphs.from_edges([[(i, (i + 1) % 40) for i in range(40)] + [(0, 20)]])
        >>> mean, variance = GraphletHasher(4, "sample", 200, n_bits=10).estimate(rings, n_draws=20)
        >>> exact = GraphletHasher(4, n_bits=10).transform(rings)
        >>> bool((abs((mean - exact).toarray()) <= 4 * variance.sqrt().toarray() + 1e-9).all())
        True
        """
        check_count("n_draws", n_draws, 2)
        graphs = self._graphs(X)
        first = self.seed if self.sample_seed is None else self.sample_seed
        draws = [
            clone(self).set_params(sample_seed=(check_seed(first) + k) % 2**63).transform(graphs)
            for k in range(n_draws)
        ]
        mean = sum(draws[1:], draws[0]) / n_draws
        squares = sum((draw.power(2) for draw in draws[1:]), draws[0].power(2)) / n_draws
        variance = ((squares - mean.power(2)) / (n_draws - 1)).tocsr()
        variance.data = np.maximum(variance.data, 0.0)  # rounding
        return mean.tocsr(), variance

    def _saved_params(self) -> dict[str, Any]:
        if callable(self.edge_weighting):
            raise ValueError("edge_weighting is a function, which a model file cannot hold: give its values as a list")
        weights = None if self.edge_weighting is None else [float(weight) for weight in self.edge_weighting]
        return {**super()._saved_params(), "sizes": self._sizes(), "edge_weighting": weights}

    # ------------------------------------------------------------------ parts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._sizes()
        check_choice("method", self.method, ("exact", "sample", "mcmc"))
        check_count("n_samples", self.n_samples)
        check_count("burn_in", self.burn_in, 0)
        check_count("thin", self.thin)
        check_seed(self.seed)
        if self.sample_seed is not None:
            check_seed(self.sample_seed)
        for name in ("labels", "connected", "normalize", "signed"):
            check_choice(name, getattr(self, name), (True, False))
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        self._edge_weights()

    def _sizes(self) -> list[int]:
        sizes: Any = self.sizes
        given: list[Any] = [sizes] if isinstance(sizes, Integral) else list(sizes)
        wrong = [k for k in given if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= MAX_SIZE]
        if wrong or not given or len(set(given)) < len(given):
            raise ValueError(f"sizes must be different integers from 1 to {MAX_SIZE}, got {self.sizes!r}")
        return sorted(int(k) for k in given)

    def _edge_weights(self) -> list[list[float]]:
        """β by number of edges, for each size."""
        if self.method != "mcmc":
            if self.edge_weighting is not None:
                raise ValueError(f"edge_weighting is for method='mcmc', got method={self.method!r}")
            return []
        weights = []
        for k in self._sizes():
            most = k * (k - 1) // 2
            if self.edge_weighting is None:
                beta = [1.0] * (most + 1)
            elif callable(self.edge_weighting):
                beta = [float(self.edge_weighting(e)) for e in range(most + 1)]
            else:
                beta = [float(weight) for weight in self.edge_weighting][: most + 1]
                if len(beta) <= most:
                    raise ValueError(
                        f"edge_weighting must hold a weight for each number of edges from 0 to {most} (subgraphs of "
                        f"{k} nodes), got {len(beta)}"
                    )
            if not np.isfinite(beta).all() or min(beta) < 0:
                raise ValueError(f"edge_weighting must give finite numbers of at least 0, got {beta!r}")
            largest = max(beta) or 1.0  # only ratios matter, and sums of large weights must stay finite
            weights.append([weight / largest for weight in beta])
        return weights

    def _graphs(self, X: Any) -> Graphs:
        graphs = as_graphs(X, node_label="label" if self.labels else None)
        if self.labels and graphs.node_labels is None and graphs.n_nodes:
            raise ValueError("labels=True needs graphs with node labels")
        return graphs

    def _arguments(self, graphs: Graphs) -> dict[str, Any]:
        codes = keys = None
        if self.labels and graphs.node_labels is not None:
            keys, codes = np.unique(label_keys(graphs.node_labels), return_inverse=True)
            codes = codes.astype(np.int32)
        return {
            "offsets": graphs.offsets,
            "indptr": graphs.indptr,
            "indices": graphs.indices,
            "codes": codes,
            "keys": keys,
            "sizes": self._sizes(),
            "method": self.method,
            "connected": bool(self.connected),
            "n_samples": int(self.n_samples),
            "burn_in": int(self.burn_in),
            "thin": int(self.thin),
            "beta": self._edge_weights(),
            "seed": check_seed(self.seed),
            "sample_seed": None if self.sample_seed is None else check_seed(self.sample_seed),
            "n_bits": check_bits(self.n_bits),
        }

    def _names(self, X: Any) -> Iterator[tuple[list[str], list[int], list[int]]]:
        graphs = self._graphs(X)
        known: dict[int, Any] = {}
        if self.labels and graphs.node_labels is not None:
            distinct = np.unique(graphs.node_labels)
            known = dict(zip(label_keys(distinct).tolist(), distinct.tolist(), strict=True))
        forms = sorted(_core.graphs.graphlet_forms(**self._arguments(graphs)))
        names = [graphlet_name(form, known) for form, _, _ in forms]
        yield names, [bucket for _, bucket, _ in forms], [max(1, round(weight)) for _, _, weight in forms]


# ---------------------------------------------------------------------------------------------- canonical forms


def canonical_form(adjacency: Any, labels: Any = None) -> bytes:
    """Return the same bytes for isomorphic graphs, and different bytes for all others.

    The form holds the number of nodes, the adjacency bits of a canonical order of the nodes and, with labels, the keys
    of the labels in that order. It is the same on all platforms and in all versions: the least bit string over all
    orders that keep labels together (up to 6 nodes) or over those that colour refinement leaves (up to 9). For larger
    graphs, it is the least of these ordered first by a trace of the refinement, and branches that automorphisms make
    equal are pruned. Graphs of thousands of nodes take seconds or less. Graphs constructed to resist refinement take
    exponential time; Ctrl-C ends the search.

    Parameters
    ----------
    adjacency : array or sparse matrix of shape (n, n)
        Symmetric, with nothing on the diagonal; an entry other than 0 is an edge.
    labels : sequence of int or str, optional
        A label for each node. Isomorphisms keep labels.

    Returns
    -------
    form : bytes

    Examples
    --------
    >>> from mercer.maps import canonical_form
    >>> path = canonical_form([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> path == canonical_form([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    True
    >>> path == canonical_form([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    False
    """
    dense = adjacency.toarray() if hasattr(adjacency, "toarray") else np.asarray(adjacency)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or dense.dtype.kind not in "fiub":
        raise ValueError(f"adjacency must be a square matrix of numbers, got an array of shape {dense.shape}")
    joined = dense != 0
    if not np.array_equal(joined, joined.T) or joined.diagonal().any():
        raise ValueError("adjacency must be symmetric, with nothing on the diagonal")
    keys = None if labels is None else label_keys(check_labels("labels", labels, len(dense)))
    if len(dense) == 0:
        return bytes(4)
    bits = np.ascontiguousarray(joined, dtype=np.uint8)
    if len(dense) <= MAX_SIZE:
        return _core.graphs.canonical_graph(bits, keys)
    return _packed(joined, keys, _core.graphs.canonical_order(bits, keys))


def _packed(joined: np.ndarray, keys: np.ndarray | None, order: np.ndarray) -> bytes:
    """Number of nodes, adjacency bits and keys of labels, in the layout of the compiled core."""
    arranged = joined[np.ix_(order, order)]
    bits = np.packbits(arranged[np.tril_indices(len(order), -1)], bitorder="little").tobytes()
    tail = b"" if keys is None else keys[order].astype("<u8").tobytes()
    return len(order).to_bytes(4, "little") + bits + tail


def label_keys(labels: np.ndarray) -> np.ndarray:
    """Return labels as 64-bit numbers: integers unchanged, strings hashed."""
    if labels.dtype.kind != "U":
        return labels.astype(np.int64).view(np.uint64)
    distinct, place = np.unique(labels, return_inverse=True)
    return np.array([_core.graphs.label_key(label) for label in distinct.tolist()], np.uint64)[place]


# ---------------------------------------------------------------------------------------------- names

_KNOWN = {
    "node": (1, ""),
    "edge": (2, "01"),
    "path-3": (3, "01 12"),
    "triangle": (3, "01 12 20"),
    "path-4": (4, "01 12 23"),
    "star-4": (4, "01 02 03"),
    "cycle-4": (4, "01 12 23 30"),
    "paw": (4, "01 12 20 23"),
    "diamond": (4, "01 12 23 30 02"),
    "clique-4": (4, "01 02 03 12 13 23"),
    "path-5": (5, "01 12 23 34"),
    "fork": (5, "01 02 03 34"),
    "star-5": (5, "01 02 03 04"),
    "cycle-5": (5, "01 12 23 34 40"),
    "bull": (5, "01 12 20 13 24"),
    "cricket": (5, "01 12 20 03 04"),
    "lollipop-3-2": (5, "01 12 20 03 34"),
    "banner": (5, "01 12 23 30 04"),
    "house": (5, "01 12 23 30 04 14"),
    "butterfly": (5, "01 12 20 03 34 40"),
    "dart": (5, "01 12 23 30 02 04"),
    "kite": (5, "01 12 23 30 02 14"),
    "gem": (5, "01 02 03 04 12 23 34"),
    "bipartite-2-3": (5, "02 03 04 12 13 14"),
    "wheel-5": (5, "01 02 03 04 12 23 34 41"),
    "clique-5": (5, "01 02 03 04 12 13 14 23 24 34"),
}
"""Well-known graphlets: number of nodes and edges."""


@cache
def _known_names() -> dict[bytes, str]:
    names = {}
    for name, (k, edges) in _KNOWN.items():
        adjacency = np.zeros((k, k), np.uint8)
        for edge in edges.split():
            u, v = int(edge[0]), int(edge[1])
            adjacency[u, v] = adjacency[v, u] = 1
        names[_core.graphs.canonical_graph(adjacency, None)] = name
    return names


def graphlet_name(form: bytes, labels: dict[int, Any] | None = None) -> str:
    """Return a readable name of a canonical form: a common name, or the number of nodes and edges.

    Parameters
    ----------
    form : bytes
        A result of `canonical_form`.
    labels : dict, optional
        The labels by their keys; without an entry the key is shown.

    Examples
    --------
    >>> from mercer.maps import canonical_form, graphlet_name
    >>> graphlet_name(canonical_form([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    'triangle'
    >>> graphlet_name(canonical_form([[0, 1, 1], [1, 0, 1], [1, 1, 0]], labels=[6, 8, 6]))
    '3: 0-1 0-2 1-2 | 6 6 8'
    """
    k = int.from_bytes(form[:4], "little")
    n_bytes = (k * (k - 1) // 2 + 7) // 8
    tail = form[4 + n_bytes :]
    if len(form) < 4 + n_bytes or len(tail) not in (0, 8 * k):
        raise ValueError("form must be bytes from canonical_form")
    if not tail and form in _known_names():
        return _known_names()[form]
    bits = np.unpackbits(np.frombuffer(form[4 : 4 + n_bytes], np.uint8), bitorder="little")
    ends = [(a, b) for b in range(k) for a in range(b)]
    edges = " ".join(f"{a}-{b}" for (a, b), bit in sorted(zip(ends, bits, strict=False)) if bit)
    name = f"{k}: {edges}" if edges else f"{k}: no edges"
    if not tail:
        return name
    keys = np.frombuffer(tail, "<u8").tolist()
    shown = [str((labels or {}).get(key, key if key < 1 << 63 else key - (1 << 64))) for key in keys]
    return f"{name} | {' '.join(shown)}"
