"""Kernels between graphs whose nodes have attributes: rows of numbers, compared by any kernel.

paths     Σ_{u≠v} Σ_{u'≠v'} k_v(u, u') k_v(v, v') k_l(d(u, v), d(u', v'))
walks     Σ_l λ^l Σ over pairs of walks of l edges of  Π k_v(u_i, u'_i) Π k_e(u_i u_{i+1}, u'_i u'_{i+1})
hashes    mean over t of a kernel on the labels ⌊(⟨x, r_t⟩ + b_t) / w⌋ of the nodes

where k_v is a kernel on attributes, times the equality of labels where there are labels. Let F_l(u, u') be the sum over
the pairs of walks that begin in u and u'. Then F_0 = K_v and F_{l+1} = K_v ∘ (S F_l S'ᵀ), and the product graph is
never built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from mercer._validation import check_choice, check_count, check_positive, check_seed
from mercer.data.graphs import Graphs
from mercer.kernels._keyed import KeyedRows
from mercer.kernels.base import INDEFINITE, PD, Kernel, Work, check_kernel, mirrored
from mercer.kernels.graphs import (
    LABELS,
    Labelled,
    WeisfeilerLehman,
    _Counting,
    comparable,
    node_keys,
    read_graphs,
)
from mercer.kernels.vectors import Gaussian

__all__ = ["AttributedPaths", "AttributedWalks", "HashedAttributes"]

_MOST_EDGE_VALUES = 64
_MOST_ROUNDS = 10_000


class _Nodes:
    """Stacked graphs: attributes and labels of all nodes, and a matrix or more for each graph."""

    def __init__(self, graphs: Graphs, keys: np.ndarray | None, matrices: list[Any], ends: Any = None) -> None:
        self.offsets, self.keys, self.matrices, self.ends = graphs.offsets, keys, matrices, ends
        self.attributes = np.asarray(graphs.node_attributes, np.float64)

    def __len__(self) -> int:
        return len(self.matrices)

    def __getitem__(self, rows: slice) -> _Nodes:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        nodes = slice(self.offsets[start], self.offsets[stop])
        part = object.__new__(_Nodes)
        part.offsets, part.matrices = self.offsets[start : stop + 1] - nodes.start, self.matrices[start:stop]
        part.keys = None if self.keys is None else self.keys[nodes]
        part.ends = None if self.ends is None else tuple(end[nodes] for end in self.ends)
        part.attributes = self.attributes[nodes]
        return part

    def nodes(self, i: int) -> slice:
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))


class _Attributed(Kernel):
    """Kernels with a kernel of node attributes."""

    _block_entries = None
    node_kernel: Any
    labels: Any

    @property
    def definiteness(self) -> str:
        return PD if all(k.definiteness == PD for k in self._parts()) else INDEFINITE

    def _parts(self) -> list[Kernel]:
        """The kernels that it multiplies."""
        return [self._of_nodes()]

    def _of_nodes(self) -> Kernel:
        return Gaussian() if self.node_kernel is None else self.node_kernel

    def _check_params(self) -> None:
        check_choice("labels", self.labels, LABELS)
        if self.node_kernel is not None:
            check_kernel("node_kernel", self.node_kernel)._check_params()

    def _read(self, X: Any, edge_labels: bool = False, weighted: bool = False) -> Graphs:
        graphs = read_graphs(X, self.labels, edge_labels, weighted)
        if graphs.node_attributes is None:
            if graphs.n_nodes:
                raise ValueError(
                    f"{type(self).__name__} needs graphs with node attributes, these have none: make them with"
                    " mercer.data.Graphs and node_attributes="
                )
            graphs = Graphs(graphs.offsets, graphs.indptr, graphs.indices, node_attributes=np.zeros((0, 1)))
        return graphs

    def _prepared_nodes(self, graphs: Graphs, matrices: list[Any], ends: Any = None) -> Labelled:
        nodes = _Nodes(graphs, node_keys(graphs, self.labels), matrices, ends)
        return Labelled.of(nodes, graphs, self.labels)

    def _gram(self, A: Labelled, B: Labelled | None, work: Work) -> np.ndarray:
        comparable(A, A if B is None else B)
        left, right = A.rows, A.rows if B is None else B.rows
        if left.attributes.shape[1] != right.attributes.shape[1] and len(left.attributes) and len(right.attributes):
            raise ValueError(
                f"graphs with {left.attributes.shape[1]} node attributes cannot be compared with graphs with "
                f"{right.attributes.shape[1]}"
            )
        K = np.zeros((len(left), len(right)))
        kernel, stacked = self._of_nodes(), self._stack(left, right)
        for i in range(len(left)):
            at = left.nodes(i)
            last = i + 1 if B is None else len(right)  # of a symmetric matrix the rows up to the diagonal
            end = int(right.offsets[last])
            if at.start == at.stop or end == 0:
                continue
            between = kernel(left.attributes[at], right.attributes[:end])
            if not np.isfinite(between).all():
                raise ValueError(f"node_kernel {kernel!r} gave a value that is NaN or infinite")
            if left.keys is not None and right.keys is not None:
                between = between * (left.keys[at][:, None] == right.keys[None, :end])
            K[i, :last] = self._row(left, i, right, last, between, stacked)
        return mirrored(K) if B is None else K

    def _stack(self, left: _Nodes, right: _Nodes) -> Any:
        """What rows of the matrix share."""
        return None

    def _row(self, left: _Nodes, i: int, right: _Nodes, last: int, between: np.ndarray, stacked: Any) -> np.ndarray:
        """k(graph i, graph j) for j < last, from the kernel between their nodes."""
        raise NotImplementedError


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums of the entries of a vector, for each graph."""
    padded = np.append(values, 0.0)
    sums = np.add.reduceat(padded, np.minimum(offsets[:-1], len(values))) if len(offsets) > 1 else np.zeros(0)
    return np.where(np.diff(offsets) > 0, sums, 0.0)


class AttributedPaths(_Attributed):
    """Shortest-path kernel with a kernel on node attributes: compare pairs of nodes by attributes and distance.

    k(G, G') = Σ_{u≠v} Σ_{u'≠v'} k_v(u, u') k_v(v, v') k_l(d(u, v), d(u', v'))

    over ordered pairs of connected nodes; k_v is ``node_kernel`` on attributes, and 0 where labels differ. For graphs
    without attributes, :class:`ShortestPath` counts the same pairs and is much faster.

    Parameters
    ----------
    node_kernel : Kernel, optional
        Positive definite, on rows of attributes; by default ``Gaussian()``. Attributes are not rescaled: scale them
        first.
    length_kernel : "delta" or Kernel, default="delta"
        Compares path lengths: for equality, or by a kernel of vectors with one component.
    max_length : int, optional
        Longer paths are ignored.
    labels : {"auto", True, False}, default="auto"
        Whether to compare node labels too: if there are any, always, or never.

    References
    ----------
    .. [Borgwardt2005] K. Borgwardt and H.-P. Kriegel. Shortest-path kernels on graphs. ICDM, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import Graphs
    >>> from mercer.kernels import AttributedPaths, Gaussian
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]], node_attributes=[[[0.0], [1.0]], [[0.0], [1.1]]])
    >>> AttributedPaths(Gaussian(1.0))(graphs).round(3)
    array([[2.271, 2.2  ],
           [2.2  , 2.178]])
    """

    def __init__(
        self, node_kernel: Any = None, length_kernel: Any = "delta", max_length: int | None = None, labels: Any = "auto"
    ) -> None:
        self.node_kernel = node_kernel
        self.length_kernel = length_kernel
        self.max_length = max_length
        self.labels = labels

    def _parts(self) -> list[Kernel]:
        return [*super()._parts(), *([] if isinstance(self.length_kernel, str) else [self.length_kernel])]

    def _check_params(self) -> None:
        super()._check_params()
        if self.max_length is not None:
            check_count("max_length", self.max_length)
        if isinstance(self.length_kernel, str):
            check_choice("length_kernel", self.length_kernel, ("delta",))
        else:
            check_kernel("length_kernel", self.length_kernel)._check_params()

    def _prepare(self, X: Any) -> Labelled:
        graphs = self._read(X)
        matrices = []
        for graph in graphs:
            distance = shortest_path(graph.adjacency() != 0, unweighted=True) if graph.n_nodes else np.zeros((0, 0))
            lengths = np.where(np.isfinite(distance), distance, 0).astype(int)
            most = int(lengths.max(initial=0)) if self.max_length is None else int(self.max_length)
            matrices.append(np.array([lengths == k for k in range(1, most + 1)], float).reshape(most, *lengths.shape))
        return self._prepared_nodes(graphs, matrices)

    def _stack(self, left: _Nodes, right: _Nodes) -> Any:
        """The kernel between lengths 1, 2, …; None where they are compared for equality."""
        if isinstance(self.length_kernel, str):
            return None
        most = max([len(m) for part in (left, right) for m in part.matrices], default=0)
        return self.length_kernel(np.arange(1.0, most + 1)[:, None])

    def _row(self, left: _Nodes, i: int, right: _Nodes, last: int, between: np.ndarray, stacked: Any) -> np.ndarray:
        mine = left.matrices[i]
        reached = mine @ between  # (lengths, nodes of i, all nodes of the others)
        out = np.zeros(last)
        for j in range(last):
            at, others = right.nodes(j), right.matrices[j]
            if not len(mine) or not len(others):
                continue
            if stacked is None:
                both = min(len(mine), len(others))
                pairs, others = reached[:both, :, at], others[:both]
            else:
                pairs = np.tensordot(stacked[: len(others), : len(mine)], reached[:, :, at], 1)
            out[j] = ((pairs @ others.transpose(0, 2, 1)).sum(axis=0) * between[:, at]).sum()
        return out


class AttributedWalks(_Attributed):
    """Walk kernels that compare node attributes and edge values by kernels.

    Parameters
    ----------
    node_kernel : Kernel, optional
        Positive definite, on rows of attributes; by default ``Gaussian()``. Scale attributes first.
    edge_kernel : Kernel, optional
        On rows of one number, the weight of an edge (or its label, an integer, with ``edge_values="labels"``); at most
        64 different values. By default all edges are equal.
    kind : {"geometric", "marginalized"}, default="geometric"
        Walks of all lengths with the weight λ^length, or random walks with their probabilities, as in `RandomWalk`.
    decay : float, default=0.01
        λ of the geometric kernel. The sum is finite for λ ρ ρ' c < 1, with the largest eigenvalues ρ, ρ' of the
        adjacency matrices and c the largest product of k_v and k_e.
    stop_probability : float, default=0.1
        For the marginalised kernel; above 0 and at most 1.
    max_length : int, optional
        Maximum number of edges of a walk; then every decay is valid.
    edge_values : {"weights", "labels"}, default="weights"
        What ``edge_kernel`` compares.
    labels : {"auto", True, False}, default="auto"
        Whether to compare node labels too.
    tol : float, default=1e-10
        Relative tolerance: longer walks are added until no value changes by more than this share.

    References
    ----------
    .. [Gartner2003] T. Gärtner, P. Flach and S. Wrobel. On graph kernels: hardness results and efficient alternatives.
       COLT, 2003.
    .. [Kashima2003] H. Kashima, K. Tsuda and A. Inokuchi. Marginalized kernels between labeled graphs. ICML, 2003.

    Examples
    --------
    >>> from mercer.data import Graphs
    >>> from mercer.kernels import AttributedWalks, Gaussian
    >>> graphs = Graphs.from_edges([[(0, 1)], [(0, 1)]], node_attributes=[[[0.0], [1.0]], [[0.0], [1.1]]])
    >>> AttributedWalks(Gaussian(1.0), decay=0.5, max_length=1)(graphs).round(3)
    array([[3.871, 3.756],
           [3.756, 3.685]])
    """

    def __init__(
        self,
        node_kernel: Any = None,
        edge_kernel: Any = None,
        kind: str = "geometric",
        decay: float = 0.01,
        stop_probability: float = 0.1,
        max_length: int | None = None,
        edge_values: str = "weights",
        labels: Any = "auto",
        tol: float = 1e-10,
    ) -> None:
        self.node_kernel = node_kernel
        self.edge_kernel = edge_kernel
        self.kind = kind
        self.decay = decay
        self.stop_probability = stop_probability
        self.max_length = max_length
        self.edge_values = edge_values
        self.labels = labels
        self.tol = tol

    def _parts(self) -> list[Kernel]:
        return [*super()._parts(), *([] if self.edge_kernel is None else [self.edge_kernel])]

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("kind", self.kind, ("geometric", "marginalized"))
        check_choice("edge_values", self.edge_values, ("weights", "labels"))
        check_positive("decay", self.decay)
        check_positive("tol", self.tol)
        if check_positive("stop_probability", self.stop_probability) > 1:
            raise ValueError(f"stop_probability must be at most 1, got {self.stop_probability!r}")
        if self.max_length is not None:
            check_count("max_length", self.max_length, 0)
        if self.edge_kernel is not None:
            check_kernel("edge_kernel", self.edge_kernel)._check_params()

    def _prepare(self, X: Any) -> Labelled:
        by_labels = self.edge_kernel is not None and self.edge_values == "labels"
        graphs = self._read(X, by_labels, self.edge_kernel is not None and not by_labels)
        matrices: list[dict[float, sp.csr_matrix]] = []
        starts, stops = [np.zeros(0)], [np.zeros(0)]
        for graph in graphs:
            n = graph.n_nodes
            degree = np.diff(graph.indptr).astype(float)
            row = np.repeat(np.arange(n), np.diff(graph.indptr))
            if self.kind == "geometric":
                steps, start, stop = np.full(len(row), np.sqrt(self.decay)), np.ones(n), np.ones(n)
            else:
                steps = (1.0 - self.stop_probability) / degree[row]
                start, stop = np.full(n, 1.0 / max(1, n)), np.where(degree > 0, self.stop_probability, 1.0)
            values = np.zeros(len(row))
            if self.edge_kernel is not None and len(row):
                given: Any = graph.edge_labels if by_labels else graph.edge_weights
                if given.dtype.kind == "U":
                    raise ValueError("edge_kernel compares numbers, and the labels of edges are strings")
                values = given.astype(float)
            matrices.append(
                {
                    float(value): sp.csr_matrix((steps[at], (row[at], graph.indices[at])), (n, n))
                    for value in np.unique(values)
                    for at in [values == value]
                }
            )
            starts.append(start)
            stops.append(stop)
        return self._prepared_nodes(graphs, matrices, (np.concatenate(starts), np.concatenate(stops)))

    def _stack(self, left: _Nodes, right: _Nodes) -> Any:
        """Steps of all graphs of the right side for each edge value, and the kernel between values."""
        values = sorted({value for part in (left, right) for steps in part.matrices for value in steps})
        if len(values) > _MOST_EDGE_VALUES:
            raise ValueError(
                f"edges have {len(values)} different values, and edge_kernel is evaluated for at most "
                f"{_MOST_EDGE_VALUES}: round them"
            )
        if not values:
            values = [0.0]
        weights = np.ones((1, 1))
        if self.edge_kernel is not None:
            weights = np.asarray(self.edge_kernel(np.array(values)[:, None]))
        sizes = np.diff(right.offsets)
        blocks = [
            sp.block_diag(
                [steps.get(value, sp.csr_matrix((n, n))) for steps, n in zip(right.matrices, sizes, strict=True)], "csr"
            )
            for value in values
            if len(right)
        ]
        return values, weights, blocks

    def _row(self, left: _Nodes, i: int, right: _Nodes, last: int, between: np.ndarray, stacked: Any) -> np.ndarray:
        values, weights, blocks = stacked
        end = between.shape[1]
        mine = left.matrices[i]
        places = {value: values.index(value) for value in mine}
        start, stop = (side[left.nodes(i)] for side in left.ends)
        other_start, other_stop = (side[:end] for side in right.ends)
        F = between * np.outer(stop, other_stop)
        offsets = right.offsets[: last + 1]
        total = _sums((start @ F) * other_start, offsets)
        before, limit = np.inf, _MOST_ROUNDS if self.max_length is None else int(self.max_length)
        for step in range(limit):
            after = np.zeros_like(F)
            for b, block in enumerate(blocks):
                mixed: Any = 0.0
                for value, a in places.items():
                    if weights[a, b]:
                        mixed = mixed + weights[a, b] * (mine[value] @ F)
                if isinstance(mixed, np.ndarray):
                    after += (block[:end, :end] @ mixed.T).T
            F = between * after
            added = _sums((start @ F) * other_start, offsets)
            total = total + added
            change = float(np.abs(added).max(initial=0.0))
            if self.max_length is None:
                if change <= self.tol * float(np.abs(total).max(initial=0.0)):
                    break
                if (step > 50 and change >= before) or not np.isfinite(change):
                    raise ValueError(
                        f"the sum over walks of all lengths does not converge with decay={self.decay!r}: pass a "
                        "smaller decay, or max_length"
                    )
                before = change
        return total


class HashedAttributes(_Counting):
    """A kernel of labelled graphs on hashed attributes, averaged over hashes: the hash graph kernel.

    Attributes x of a node become the label ⌊(⟨x, r⟩ + b) / w⌋ with a random direction r and shift b: near attributes
    often get the same label. A kernel of labels compares these labels (together with the node labels), and the value is
    the mean over the hashes. Features are sparse counts. Time is linear in the number of graphs, hashes and iterations.

    Parameters
    ----------
    base : WeisfeilerLehman, optional
        The kernel of labels; by default ``WeisfeilerLehman(2)``.
    n_hashes : int, default=20
        Hashes to average over.
    width : float, default=1.0
        w, the cell width; wider cells distinguish less. Attributes are not rescaled: scale them to variance 1 first.
    random_state : int, default=0
        Seed of directions and shifts.

    References
    ----------
    .. [Morris2016] C. Morris, N. Kriege, K. Kersting and P. Mutzel. Faster kernels for graphs with continuous
       attributes via hashing. ICDM, 2016.

    Examples
    --------
    >>> from mercer.data import Graphs
    >>> from mercer.kernels import HashedAttributes
    >>> graphs = Graphs.from_edges(
    ...     [[(0, 1)], [(0, 1)], [(0, 1)]], node_attributes=[[[0.0], [1.0]], [[0.1], [1.0]], [[9.0], [5.0]]]
    ... )
    >>> K = HashedAttributes(n_hashes=100)(graphs)
    >>> bool(K[0, 1] > 5 * K[0, 2])
    True
    """

    def __init__(self, base: Any = None, n_hashes: int = 20, width: float = 1.0, random_state: int = 0) -> None:
        self.base = base
        self.n_hashes = n_hashes
        self.width = width
        self.random_state = random_state

    def _of_labels(self) -> WeisfeilerLehman:
        return WeisfeilerLehman(2) if self.base is None else self.base

    def _check_params(self) -> None:
        if not isinstance(self._of_labels(), WeisfeilerLehman):
            raise ValueError(f"base must be WeisfeilerLehman, got {type(self.base).__name__}")
        self._of_labels()._check_params()
        if self._of_labels().labels is not True and self._of_labels().labels != "auto":
            raise ValueError("base must have labels='auto': the hashes of attributes are labels")
        check_count("n_hashes", self.n_hashes)
        check_positive("width", self.width)
        check_seed(self.random_state)

    def _prepare(self, X: Any) -> Labelled:
        base = self._of_labels()
        graphs = read_graphs(X, "auto", base.edge_labels)
        if graphs.node_attributes is None and graphs.n_nodes:
            raise ValueError("HashedAttributes needs graphs with node attributes, these have none")
        attributes = np.zeros((0, 1)) if graphs.node_attributes is None else graphs.node_attributes
        given = node_keys(graphs, "auto")
        random = np.random.default_rng([self.random_state, attributes.shape[1]])
        parts: list[KeyedRows] = []
        for number in range(self.n_hashes):
            direction, shift = random.standard_normal(attributes.shape[1]), random.random() * self.width
            cells = np.floor((attributes @ direction + shift) / self.width).astype(np.int64)
            labels = cells if given is None else _mixed(cells.astype(np.uint64), given).astype(np.int64)
            made = Graphs(
                graphs.offsets, graphs.indptr, graphs.indices, node_labels=labels, edge_labels=graphs.edge_labels
            )
            rows = base._prepare(made).rows
            parts.append(KeyedRows(rows.offsets, _mixed(rows.keys, np.uint64(number + 1)), rows.values))
        return Labelled.of(_side_by_side(parts, 1.0 / np.sqrt(self.n_hashes)), graphs, "auto", base.edge_labels)


def _mixed(keys: np.ndarray, other: Any) -> np.ndarray:
    """Keys together with others, as new keys: splitmix64."""
    with np.errstate(over="ignore"):
        z = keys * np.uint64(0x9E3779B97F4A7C15) + np.asarray(other, np.uint64) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _side_by_side(parts: list[KeyedRows], factor: float) -> KeyedRows:
    """The rows of several stacks, one after the other, with ascending keys."""
    lengths = np.array([np.diff(part.offsets) for part in parts])
    row = np.concatenate([np.repeat(np.arange(lengths.shape[1]), counts) for counts in lengths])
    keys, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "values"))
    order = np.lexsort((keys, row))
    offsets = np.concatenate([[0], np.cumsum(lengths.sum(axis=0))]).astype(np.int64)
    return KeyedRows(offsets, keys[order], factor * values[order])
