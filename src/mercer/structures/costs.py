"""Costs Δ(y, z) ≥ 0 of predicting z if y is true, for the margin losses.

    Hamming      Σ_t weight[y_t] · 1[y_t ≠ z_t]
    CostMatrix   Σ_t D[y_t, z_t]
    Taxonomy     Σ_t shortest path between y_t and z_t on a weighted graph of labels
    ZeroOne      1[y ≠ z], of the whole output
    BoundaryDifference, SegmentDifference   |y Δ z|: boundaries or whole segments in only one of the two

All costs but ZeroOne and the last two are sums over positions, so a structure adds them to its part scores. To define
such a cost, subclass :class:`Cost` with one method, or pass a function of two labels. The last two are sums over the
segments of a segmentation (:class:`SegmentCost`), and only :class:`~mercer.structures.Segments` takes them. It also
takes the other costs, position by position ("frame" costs).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from mercer._state.values import Codec, Reader, Writer, register
from mercer.data.segments import Segmentations


class Cost(ABC):
    """A cost that is a sum over positions: Δ(y, z) = Σ_t table[t, z_t].

    Subclasses return the table of the true labels. Labels are numbers in the order of ``classes``, which :meth:`bind`
    sets before training.
    """

    decomposes = True

    def bind(self, classes: Sequence[Hashable]) -> Cost:
        """Return the cost for these labels; raise ValueError if it does not fit them."""
        return self

    @abstractmethod
    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Return costs of shape (len(truth), n_labels): the cost of each label, given the true labels ``truth``."""

    def to_json(self) -> dict[str, Any]:
        """Return the cost as plain data, for model files."""
        raise TypeError(f"a {type(self).__name__} cost cannot be saved: set cost='hamming' before saving")

    def matrix_of(self, n_labels: int) -> np.ndarray | None:
        """Return the matrix of costs of label pairs, if the cost depends on nothing else; compiled loops use it."""
        return None

    def between(self, truth: np.ndarray, labels: np.ndarray, n_labels: int) -> np.ndarray:
        """Return the cost at each position."""
        return np.take_along_axis(self.table(truth, n_labels), labels[:, None].astype(np.int64), 1)[:, 0]


class Hamming(Cost):
    """The number of wrong labels, or a sum of their weights.

    Parameters
    ----------
    weights : mapping label → float, or array over labels, optional
        The cost of missing a label. Labels missing in a mapping cost 1.

    Examples
    --------
    >>> import numpy as np
    >>> Hamming({"B": 3.0}).bind(["B", "O"]).table(np.array([0, 1]), 2)
    array([[0., 3.],
           [1., 0.]])
    """

    def __init__(self, weights: Mapping[Any, float] | Sequence[float] | np.ndarray | None = None) -> None:
        self.weights = weights

    def bind(self, classes: Sequence[Hashable]) -> Cost:
        """Return the weights in the order of the labels."""
        if self.weights is None:
            return self
        if isinstance(self.weights, Mapping):
            unknown = set(self.weights) - set(classes)
            if unknown:
                raise ValueError(f"cost weights name the label {min(unknown, key=str)!r}, which does not occur")
            weights = np.array([self.weights.get(c, 1.0) for c in classes], dtype=float)
        else:
            weights = np.asarray(self.weights, dtype=float)
        if weights.shape != (len(classes),):
            raise ValueError(f"cost weights must be one number a label ({len(classes)}), got shape {weights.shape}")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("cost weights must be finite and not negative")
        return Hamming(weights)

    def to_json(self) -> dict[str, Any]:
        """Return weights, in the order of the labels once bound."""
        weights = self.weights
        if weights is not None and not isinstance(weights, Mapping):
            weights = np.asarray(weights, dtype=float).tolist()
        return {"kind": "hamming", "weights": weights}

    def matrix_of(self, n_labels: int) -> np.ndarray:
        """Return weight[y] off the diagonal."""
        return self.table(np.arange(n_labels), n_labels)

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Return weight[y], and 0 at y."""
        weights = None if self.weights is None else np.asarray(self.weights)
        table = np.ones((len(truth), n_labels)) if weights is None else np.repeat(weights[truth][:, None], n_labels, 1)
        table[np.arange(len(truth)), truth] = 0.0
        return table


class CostMatrix(Cost):
    """A cost matrix over pairs (true label, predicted label).

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        ``matrix[y, z]``: rows are true labels, in the sorted order of ``classes_``. Not negative, 0 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> CostMatrix([[0, 1], [5, 0]]).table(np.array([1]), 2)
    array([[5., 0.]])
    """

    def __init__(self, matrix: Any) -> None:
        D = np.asarray(matrix, dtype=float)
        if D.ndim != 2 or D.shape[0] != D.shape[1]:
            raise ValueError(f"a cost matrix must be square, got shape {D.shape}")
        if not np.isfinite(D).all():
            raise ValueError("a cost matrix must be finite")
        if (D < 0).any():
            y, z = np.argwhere(D < 0)[0]
            raise ValueError(f"a cost must not be negative: the cost of {z} where {y} is true is {D[y, z]:g}")
        if np.diagonal(D).any():
            y = int(np.flatnonzero(np.diagonal(D))[0])
            raise ValueError(f"the right answer must cost nothing: the diagonal entry of label {y} is {D[y, y]:g}")
        self.matrix = D

    def bind(self, classes: Sequence[Hashable]) -> Cost:
        """Check the size."""
        if len(classes) != len(self.matrix):
            raise ValueError(f"the cost matrix is for {len(self.matrix)} labels, the data has {len(classes)}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the matrix."""
        return {"kind": "matrix", "matrix": self.matrix.tolist()}

    def matrix_of(self, n_labels: int) -> np.ndarray:
        """Return the matrix itself."""
        return self.matrix

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Return rows of the matrix."""
        if n_labels != len(self.matrix):
            raise ValueError(f"the cost matrix is for {len(self.matrix)} labels, not {n_labels}")
        return self.matrix[truth]


class Taxonomy(Cost):
    """Shortest path between labels on a weighted, undirected graph: confusing near labels costs little.

    Parameters
    ----------
    edges : iterable of (node, node) or (node, node, length)
        Nodes are labels or inner nodes of a tree; lengths are positive; the default is 1.

    Examples
    --------
    >>> cost = Taxonomy([("animal", "cat"), ("animal", "dog"), ("thing", "car"), ("animal", "thing", 2.0)])
    >>> cost.bind(["car", "cat", "dog"]).matrix
    array([[0., 4., 4.],
           [4., 0., 2.],
           [4., 2., 0.]])
    """

    def __init__(self, edges: Any) -> None:
        self.edges = [(e[0], e[1], float(e[2]) if len(e) == 3 else 1.0) for e in edges]
        for a, b, length in self.edges:
            if not np.isfinite(length) or length <= 0:
                raise ValueError(f"the edge {a!r} - {b!r} must have a positive length, got {length!r}")

    def bind(self, classes: Sequence[Hashable]) -> CostMatrix:
        """Return the matrix of distances between the labels."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        lengths: dict[tuple[Any, Any], float] = {}
        nodes: dict[Any, int] = {}
        for a, b, length in self.edges:
            pair = (nodes.setdefault(a, len(nodes)), nodes.setdefault(b, len(nodes)))
            pair = (min(pair), max(pair))
            lengths[pair] = min(length, lengths.get(pair, np.inf))
        missing = [c for c in classes if c not in nodes]
        if missing:
            raise ValueError(f"the taxonomy has no node for the label {missing[0]!r}")
        rows, columns = np.array(list(lengths)).T
        graph = coo_array((list(lengths.values()), (rows, columns)), shape=(len(nodes), len(nodes))).tocsr()
        places = [nodes[c] for c in classes]
        distances = dijkstra(graph, directed=False, indices=places)[:, places]
        if np.isinf(distances).any():
            a, b = np.argwhere(np.isinf(distances))[0]
            raise ValueError(f"the taxonomy does not connect {classes[a]!r} and {classes[b]!r}")
        return CostMatrix(distances)

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Raise an error: call :meth:`bind` first, because distances are between names."""
        raise ValueError("a taxonomy must be bound to the labels first")


class ZeroOne(Cost):
    """1 for any wrong output; not a sum over positions, so structures search for the best wrong output."""

    decomposes = False

    def to_json(self) -> dict[str, Any]:
        """Return only the name."""
        return {"kind": "zero-one"}

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Return the cost of one label alone."""
        return Hamming().table(truth, n_labels)


class SegmentCost(Cost):
    """A cost that is a sum over the segments of the output: Δ(y, z) = Σ starts[s, c] + mark · [segment in y].

    Subclasses define the cost of a segment by its start, and the credit for a segment of y.
    """

    @abstractmethod
    def start_costs(self, truth: Segmentations, n_labels: int) -> np.ndarray:
        """Return costs of shape (n_positions, n_labels) of starting a segment with a label at a position.

        Constant terms are added at position 0, where every segmentation has a segment.
        """

    mark: float = 0.0  # added for each segment of the answer that is one of the truth

    @abstractmethod
    def distance(self, truth: Segmentations, answer: Segmentations) -> np.ndarray:
        """Return Δ(y, z) of each sequence."""

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        """Raise an error: the cost is not a sum over positions."""
        raise ValueError(f"the cost {type(self).__name__} compares segmentations: it is for structures.Segments only")


class BoundaryDifference(SegmentCost):
    """Boundaries that only one of two segmentations has: ``|y| + |z| − 2 |y ∩ z|``.

    A boundary is the start of a segment, except position 0, which every segmentation has. The cost can exceed ``|y|``.

    Parameters
    ----------
    labelled : bool, default=False
        The label of the segment that starts there must match as well (then 0 also counts).

    Examples
    --------
    >>> from mercer.data import Segmentations
    >>> y = Segmentations([2, 3, 1], [0, 1, 0], [0, 3], [0, 6])
    >>> z = Segmentations([2, 4], [0, 0], [0, 2], [0, 6])
    >>> BoundaryDifference().distance(y, z), BoundaryDifference(labelled=True).distance(y, z)
    (array([1.]), array([3.]))
    """

    def __init__(self, labelled: bool = False) -> None:
        self.labelled = bool(labelled)

    def to_json(self) -> dict[str, Any]:
        """Return whether labels count."""
        return {"kind": "boundary", "labelled": self.labelled}

    def start_costs(self, truth: Segmentations, n_labels: int) -> np.ndarray:
        """Return 1 for a wrong start, −1 for a right one, and ``|y|`` at position 0."""
        table = np.ones((truth.n_positions, n_labels))
        first = _firsts_of(truth)
        counts = np.diff(truth.firsts).astype(float)
        if self.labelled:
            table[truth.starts, truth.labels] -= 2.0
        else:
            table[truth.starts] -= 2.0
            table[first] += 1.0  # 0 is always a boundary: it costs nothing and is not counted
            counts -= 1.0
        table[first] += counts[np.diff(truth.positions) > 0][:, None]
        return table

    def distance(self, truth: Segmentations, answer: Segmentations) -> np.ndarray:
        """Return the size of the symmetric difference."""
        n = 1 if not self.labelled else 1 + int(max(truth.labels.max(initial=0), answer.labels.max(initial=0)))
        keys = [y.starts * n + (y.labels if self.labelled else 0) for y in (truth, answer)]
        return _only_in_one(truth, answer, *keys)


class SegmentDifference(SegmentCost):
    """Segments, with both ends and their label, that only one of two segmentations has: ``|y| + |z| − 2 |y ∩ z|``.

    Examples
    --------
    >>> from mercer.data import Segmentations
    >>> y = Segmentations([2, 3, 1], [0, 1, 0], [0, 3], [0, 6])
    >>> z = Segmentations([2, 4], [0, 0], [0, 2], [0, 6])
    >>> SegmentDifference().distance(y, z)
    array([3.])
    """

    mark = -2.0

    def to_json(self) -> dict[str, Any]:
        """Return only the name."""
        return {"kind": "segment"}

    def start_costs(self, truth: Segmentations, n_labels: int) -> np.ndarray:
        """Return 1 for each segment, and ``|y|`` at position 0."""
        table = np.ones((truth.n_positions, n_labels))
        table[_firsts_of(truth)] += np.diff(truth.firsts)[np.diff(truth.positions) > 0][:, None]
        return table

    def distance(self, truth: Segmentations, answer: Segmentations) -> np.ndarray:
        """Return the size of the symmetric difference."""
        n = 1 + int(max(truth.labels.max(initial=0), answer.labels.max(initial=0)))
        keys = [(y.starts * (truth.n_positions + 1) + y.lengths) * n + y.labels for y in (truth, answer)]
        return _only_in_one(truth, answer, *keys)


def _firsts_of(y: Segmentations) -> np.ndarray:
    """The first positions of sequences that have any."""
    return (y.positions[:-1] - y.positions[0])[np.diff(y.positions) > 0]


def _only_in_one(y: Segmentations, z: Segmentations, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many keys of segments, one each, are in one of two segmentations only, sequence by sequence."""
    if len(y) != len(z):
        raise ValueError(f"{len(y)} true segmentations, {len(z)} answers")
    wrong = np.concatenate([y.sequence[~np.isin(a, b)], z.sequence[~np.isin(b, a)]])
    return np.bincount(wrong, minlength=len(y)).astype(float)


class _OfLabels(Cost):
    """A function of two labels."""

    def __init__(self, function: Callable[[Any, Any], float]) -> None:
        self.function = function

    def bind(self, classes: Sequence[Hashable]) -> Cost:
        return CostMatrix([[self.function(y, z) for z in classes] for y in classes])

    def table(self, truth: np.ndarray, n_labels: int) -> np.ndarray:
        raise ValueError("a cost function must be bound to the labels first")


COSTS: dict[str, type[Cost]] = {
    "boundary": BoundaryDifference,
    "hamming": Hamming,
    "segment": SegmentDifference,
    "zero-one": ZeroOne,
}


def cost_from_json(data: Any) -> Any:
    """Return a cost from :meth:`Cost.to_json`; a bare name stays a name."""
    if isinstance(data, str):
        return data
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "hamming":
        return Hamming(data["weights"])
    if kind == "matrix":
        return CostMatrix(data["matrix"])
    if kind == "zero-one":
        return ZeroOne()
    if kind == "boundary":
        return BoundaryDifference(data["labelled"])
    if kind == "segment":
        return SegmentDifference()
    raise ValueError("not a cost that this version knows")


def resolve_cost(cost: Any) -> Cost:
    """Return a cost from its name, weights by label, a matrix, a function of two labels, or the object itself."""
    if isinstance(cost, Cost):
        return cost
    if isinstance(cost, str):
        if cost in COSTS:
            return COSTS[cost]()
        raise ValueError(f"unknown cost {cost!r}; known are {', '.join(map(repr, sorted(COSTS)))}")
    if isinstance(cost, Mapping):
        return Hamming(cost)
    if callable(cost):
        return _OfLabels(cost)
    if isinstance(cost, (list, tuple, np.ndarray)):
        return CostMatrix(cost) if np.ndim(cost) == 2 else Hamming(cost)
    raise TypeError(f"cost must be a name, weights, a matrix, a function or a Cost, got {type(cost).__name__}")


def _write(cost: Cost, out: Writer) -> dict[str, Any]:
    """Numbers in an array: there may be as many as pairs of labels."""
    data = cost.to_json()
    held = {k: out.place(np.array(v), k) for k, v in data.items() if isinstance(v, list)}
    return {"of": {k: v for k, v in data.items() if k not in held}, "arrays": held}


def _read(node: dict[str, Any], source: Reader) -> Cost:
    return cost_from_json({**node["of"], **{k: source.array(place) for k, place in node["arrays"].items()}})


register(Cost, Codec("cost", _write, _read))
