"""Fitted models as the bounds use them: a weight vector w, margins ⟨w, Φ(x, y) − Φ(x, z)⟩, and the number of outputs.

Linear structured models have w and a structure. Kernel machines have w in the feature space of their kernel: one
function for two classes, one per class for more. An intercept is an additional coordinate with the constant feature 1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.clustering.supervised import SupervisedClusterer
from mercer.learning.estimator import StructuredEstimator
from mercer.parsing import Parser
from mercer.structures.alignment_joint import AlignmentJoint
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.chain import Chain
from mercer.structures.enumerated import Enumerated
from mercer.structures.graph_labels import GraphLabels
from mercer.structures.joint import Examples, Joint
from mercer.structures.label_sets import LabelSets
from mercer.structures.labels import Labels
from mercer.structures.partitions import Partitions
from mercer.structures.row_sets import RowSets
from mercer.structures.segments import Segments
from mercer.structures.trees import TreeBatches

__all__ = ["LinearModel", "linear_view", "radius_of"]


class LinearModel:
    """The interface that the bounds need from a model."""

    norm: float
    """‖w‖"""

    def read(self, X: Any, y: Any) -> Any:
        """Return data in the form that the other methods take; raise ValueError if outputs are not fully known."""
        raise NotImplementedError

    def leads(self, data: Any) -> np.ndarray:
        """Return the margin of the true output of each example over the best other one; inf if there is no other."""
        raise NotImplementedError

    def log_cardinality(self, data: Any) -> np.ndarray:
        """Return the logarithm of the number of outputs of each example."""
        raise NotImplementedError

    def radius(self, data: Any) -> float:
        """Return a bound on ‖Φ(x, y) − Φ(x, z)‖ over these inputs and all outputs."""
        raise NotImplementedError

    def noisy_errors(self, data: Any, scale: float, n_draws: int, random_state: Any) -> Sequence[np.ndarray]:
        """Return whether examples are wrong with weights w' ~ N(scale · w/‖w‖, I); each group has its own draw."""
        raise NotImplementedError

    def noisy_predictions(self, X: Any, scale: float, random_state: Any) -> list[Any]:
        """Return the outputs of the inputs; each input has its own draw of weights."""
        raise NotImplementedError


def linear_view(model: Any) -> LinearModel:
    """Return a linear view of the model; raise a TypeError that names the model if it is not linear."""
    if isinstance(model, StructuredEstimator):
        model._check_is_fitted()
        return _Trees(model) if isinstance(model, Parser) else _Structured(model)
    if isinstance(model, SupervisedClusterer):
        model._check_is_fitted()
        return _Clusters(model)
    if hasattr(model, "as_function") and hasattr(model, "predict"):
        check_is_fitted(model)
        return _Kernel(model)
    raise TypeError(
        f"{type(model).__name__} is not a linear model with a norm ‖w‖. These bounds take structured "
        "models (Tagger, Segmenter, LinearClassifier, GraphLabeler, GridLabeler, Parser, Aligner, StructuredPredictor, "
        "SupervisedClusterer) and kernel machines with one function, or one for each class"
    )


class _Structured(LinearModel):
    def __init__(self, model: Any) -> None:
        self.model, self.structure = model, model._structure()
        self.w = np.asarray(model._flat(model), float)
        self.norm = float(np.linalg.norm(self.w))
        if not math.isfinite(self.norm):
            raise TypeError(
                f"this {type(model).__name__} has weights of −inf (excluded outputs), so its norm ‖w‖ is infinite"
            )

    def read(self, X: Any, y: Any) -> Any:
        inputs, truth = self.model._read(X, y)
        if not len(inputs):
            raise ValueError("X contains no examples")
        if self.structure.is_partial(truth):
            raise ValueError("y must be fully known: the bounds compare complete outputs")
        if isinstance(self.structure, GraphLabels):
            plan = self.structure.plan(inputs)
            if not plan.exact_sums:
                raise ValueError(
                    f"the second best labelling is not exact here ({plan}), and bounds need the exact margin"
                )
        return inputs, truth

    def _batches(self, inputs: Any) -> Any:
        return self.structure.batches(inputs, 4096)

    def leads(self, data: Any) -> np.ndarray:
        inputs, truth = data
        out = np.empty(len(inputs))
        for batch in self._batches(inputs):
            theta, y = self.structure.scores(self.w, inputs[batch]), truth[batch]
            score = np.asarray(self.structure.score(theta, y), float)
            with np.errstate(invalid="ignore"):
                lead = score - self.structure.runner_up(theta, y)[1]
            out[batch] = np.where(np.isneginf(score), -np.inf, lead)
        return out

    def log_cardinality(self, data: Any) -> np.ndarray:
        return self.structure.log_cardinality(data[0])

    def radius(self, data: Any) -> float:
        return radius_of(self.structure, data[0])

    def _draw(self, scale: float, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(len(self.w)) + (scale / self.norm if self.norm else 0.0) * self.w

    def noisy_errors(self, data: Any, scale: float, n_draws: int, random_state: Any) -> Sequence[np.ndarray]:
        inputs, truth = data
        rng = np.random.default_rng(check_random_seed(random_state))
        if isinstance(self.structure, Labels):
            return self._noisy_labels(inputs, truth, scale, rng)
        out = []
        for part in np.array_split(np.arange(len(inputs)), min(n_draws, len(inputs))):
            w = self._draw(scale, rng)
            group = slice(int(part[0]), int(part[-1]) + 1)
            X, y, wrong = inputs[group], truth[group], []
            for batch in self._batches(X):
                theta = self.structure.scores(w, X[batch])
                best = self.structure.argmax(theta)[1]
                score = self.structure.score(theta, y[batch])
                # Where the truth has the highest score it is the answer; ties have probability 0.
                wrong.append(score < best - 1e-9 * np.maximum(1.0, np.abs(best)))
            out.append(np.concatenate(wrong))
        return out

    def _noisy_labels(self, inputs: Any, y: np.ndarray, scale: float, rng: np.random.Generator) -> Sequence[np.ndarray]:
        """Draw labels; the scores of one example are independent and normal with variance ‖x‖²."""
        rows = inputs.rows.matrix(int(inputs.offsets[0]), int(inputs.offsets[-1]))
        squares = np.asarray((rows * rows if isinstance(rows, np.ndarray) else rows.multiply(rows)).sum(axis=1)).ravel()
        scores = self.structure.scores(self.w * (scale / self.norm if self.norm else 0.0), inputs)
        drawn = scores + np.sqrt(squares)[:, None] * rng.standard_normal(scores.shape)
        wrong = drawn.argmax(axis=1) != y
        return wrong[:, None]

    def noisy_predictions(self, X: Any, scale: float, random_state: Any) -> list[Any]:
        rng = np.random.default_rng(check_random_seed(random_state))
        out: list[Any] = []
        for i in range(X.shape[0] if hasattr(X, "shape") else len(X)):
            drawn = copy.copy(self.model)
            drawn._keep(self._draw(scale, rng))
            drawn_outputs = drawn.predict(X[i : i + 1])
            out.extend(drawn_outputs.tolist() if isinstance(drawn_outputs, np.ndarray) else drawn_outputs)
        return out


class _Trees(_Structured):
    """Trees over a grammar. A tree that the grammar does not derive counts as an error."""

    def read(self, X: Any, y: Any) -> Any:
        sentences, trees = self.model._read(X, y)
        if not trees:
            raise ValueError("X contains no examples")
        grammar = self.model.structure_.grammar
        inputs, truth = [], []
        for number, (sentence, tree) in enumerate(zip(sentences, trees, strict=True)):
            try:
                inputs.append(grammar.encode(sentence, number))
                truth.append(grammar.derivation(tree))
            except ValueError:
                del inputs[len(truth) :]
        if not truth:
            raise ValueError("y contains no tree of the grammar of this model")
        return Examples(inputs), Examples(truth), len(trees) - len(truth)

    def leads(self, data: Any) -> np.ndarray:
        return np.concatenate([super().leads(data[:2]), np.full(data[2], -np.inf)])

    def noisy_errors(self, data: Any, scale: float, n_draws: int, random_state: Any) -> Sequence[np.ndarray]:
        groups = super().noisy_errors(data[:2], scale, n_draws, random_state)
        shares = np.array_split(np.ones(data[2], bool), len(groups))
        return [np.concatenate([group, share]) for group, share in zip(groups, shares, strict=True)]


class _Clusters(_Structured):
    """Partitions of sets. The second best partition is found by searches that force a pair together or apart."""

    def __init__(self, model: SupervisedClusterer) -> None:
        if model.decode != "exact":
            raise TypeError(
                f"bounds need the exact margin of a SupervisedClusterer, and decode={model.decode!r} may miss the best "
                "partition: fit it with decode='exact'"
            )
        self.model = model
        self.w = np.asarray(model._flat(model), float)
        self.norm = float(np.linalg.norm(self.w))
        self.structure = Joint(Partitions("exact", model.cost), len(self.w))

    def leads(self, data: Any) -> np.ndarray:
        partitions = self.structure.structure
        return np.array([partitions.lead(self.w, x, y) for x, y in zip(*data, strict=True)])


class _Kernel(LinearModel):
    def __init__(self, model: Any) -> None:
        functions = model.as_function()
        functions = functions if isinstance(functions, list) else [functions]
        classes = getattr(model, "classes_", None)
        pairs = hasattr(model, "_score_rows") and model._score_rows().pairs  # machines for pairs of classes vote
        if classes is None or pairs or len(functions) != (1 if len(classes) == 2 else len(classes)):
            raise TypeError(
                f"this {type(model).__name__} does not have one function per class (or one for two classes): "
                "its prediction has no single norm ‖w‖"
            )
        self.model, self.functions, self.classes = model, functions, np.asarray(classes)
        self.intercept = np.atleast_1d(np.asarray(getattr(model, "intercept_", np.zeros(len(functions))), float))
        squares = sum(function.norm() ** 2 for function in functions) + float(self.intercept @ self.intercept)
        self.norm = math.sqrt(squares)

    def read(self, X: Any, y: Any) -> Any:
        y = np.asarray(y)
        if not len(y):
            raise ValueError("X contains no examples")
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise ValueError(f"y contains the label {unknown[0]!r}, which the model does not know")
        scores = np.column_stack([function(X) for function in self.functions]) + self.intercept
        if len(scores) != len(y):
            raise ValueError(f"X has {len(scores)} objects and y {len(y)} labels")
        size = np.asarray(self.functions[0].kernel.diag(X), float) + (1.0 if self.intercept.any() else 0.0)
        return scores, np.searchsorted(self.classes, y), size

    def leads(self, data: Any) -> np.ndarray:
        scores, y, _ = data
        if scores.shape[1] == 1:  # Φ(x, y) = ± φ(x) / 2
            return np.where(y == 1, 1.0, -1.0) * scores[:, 0]
        others = scores.copy()
        others[np.arange(len(y)), y] = -np.inf
        return scores[np.arange(len(y)), y] - others.max(axis=1)

    def log_cardinality(self, data: Any) -> np.ndarray:
        return np.full(len(data[1]), math.log(len(self.classes)))

    def radius(self, data: Any) -> float:
        largest = math.sqrt(float(data[2].max()))
        return largest if len(self.functions) == 1 else math.sqrt(2.0) * largest

    def noisy_errors(self, data: Any, scale: float, n_draws: int, random_state: Any) -> Sequence[np.ndarray]:
        """Return errors for random weights; the scores of one example are normal with variance k(x, x)."""
        scores, y, size = data
        rng = np.random.default_rng(check_random_seed(random_state))
        mean = scores * (scale / self.norm if self.norm else 0.0)
        drawn = mean + np.sqrt(size)[:, None] * rng.standard_normal(scores.shape)
        answers = (drawn[:, 0] > 0).astype(int) if drawn.shape[1] == 1 else drawn.argmax(axis=1)
        return (answers != y)[:, None]

    def noisy_predictions(self, X: Any, scale: float, random_state: Any) -> list[Any]:
        scores = np.column_stack([function(X) for function in self.functions]) + self.intercept
        size = np.asarray(self.functions[0].kernel.diag(X), float) + (1.0 if self.intercept.any() else 0.0)
        rng = np.random.default_rng(check_random_seed(random_state))
        drawn = scores * (scale / self.norm if self.norm else 0.0) + np.sqrt(size)[:, None] * rng.standard_normal(
            scores.shape
        )
        return self.classes[(drawn[:, 0] > 0).astype(int) if drawn.shape[1] == 1 else drawn.argmax(axis=1)].tolist()


# ------------------------------------------------------------------------------------------------ radii
#
# The features of an output are sums of parts x_t ⊗ e_{y_t}. Two outputs that differ everywhere move each feature from
# one column to another, so that the difference is at most √2 times the sums of |x_t|: attained by constant labellings.


def radius_of(structure: Structure, X: Any) -> float:
    """Return a bound on ‖Φ(x, y) − Φ(x, z)‖ over these inputs and all outputs."""
    for kind, function in _RADII.items():
        if isinstance(structure, kind):
            return function(structure, X)
    raise ValueError(
        f"B='data' is not supported for {type(structure).__name__}: pass B, a bound on ‖Φ(x, y) − Φ(x, z)‖"
    )


def _of_labels(structure: Labels, X: Any) -> float:
    return math.sqrt(2.0 * float(_sums(X.rows, X.offsets).max(initial=0.0)))


def _of_label_sets(structure: LabelSets, X: Any) -> float:
    squares = structure.n_labels * float(_sums(X.rows, X.offsets).max(initial=0.0)) + len(structure.pairs)
    return math.sqrt(squares)


def _of_chain(structure: Chain, X: Any) -> float:
    squares = _sums(X.rows, X.offsets)
    if X.edges is not None and structure.n_edge_features:
        squares = squares + _sums(X.edges, X.offsets)
    lengths = np.diff(X.offsets).astype(float)
    squares = squares + np.maximum(lengths - 1.0, 0.0) ** 2 + 2.0 * (lengths > 0)
    return math.sqrt(2.0 * float(squares.max(initial=0.0)))


def _of_segments(structure: Segments, X: Any) -> float:
    """Bound the parts in turn: the largest change by positions, segments and transitions."""
    C, lengths = structure.n_labels, np.diff(X.offsets).astype(float)
    shortest, parts = float(structure.shortest.min()), structure.slices
    # Two labels are two columns: √2 times what one of them can change by.
    columns = 2.0 if C > 1 else 1.0
    most = np.floor(lengths / shortest)  # segments
    squares = np.zeros(len(X))
    if "sum" in parts and C > 1:
        squares += 2.0 * _sums(X.rows, X.offsets)
    for name in ("mean", "pair mean"):  # x_t / length, of segments of at least the shortest length
        if name in parts:
            squares += columns * _sums(X.rows, X.offsets) / shortest**2
    for name in ("variance", "pair variance"):  # Σ (x − mean)² / length ≤ Σ_t (x_t − the mean of all)² / shortest
        if name in parts:
            squares += columns * _scatters(structure._dense(X), X.offsets) / max(2.0, shortest) ** 2
    for name in ("boundary", "edges"):
        if name in parts:
            squares += columns * _sums(X.edges, X.offsets)
    if "span" in parts:
        squares += _spans(structure._spans(X), X.offsets, columns)
    if "length" in parts:
        sizes = np.linalg.norm(structure._basis, axis=1)[:, None] / np.arange(1, structure.K + 1)[:, None]
        largest = lengths * float(np.where(structure._allowed, sizes, 0.0).max())
        # Counts have no negative products; other features of lengths may point away from each other.
        squares += (2.0 if (structure._basis >= 0).all() else 4.0) * largest**2
    squares += columns * np.maximum(most - 1.0, 0.0) ** 2 + (4.0 * (lengths > 0) if C > 1 else 0.0)
    return math.sqrt(float(squares.max(initial=0.0)))


def _scatters(x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Σ_f (Σ_t (x_tf − mean)²)² of each sequence."""
    cuts = offsets - offsets[0]
    parts = [x[a:b] for a, b in pairwise(cuts.tolist())]
    return np.array([float((len(one) ** 2 * one.var(axis=0) ** 2).sum()) if len(one) else 0.0 for one in parts])


def _spans(spans: np.ndarray, offsets: np.ndarray, columns: float) -> np.ndarray:
    """Bound the features of whole segments: a segment may start at each position in either output."""
    low, high = np.minimum(spans.min(axis=1), 0.0), np.maximum(spans.max(axis=1), 0.0)
    change = np.maximum(math.sqrt(columns) * np.maximum(-low, high), high - low)
    cuts = offsets - offsets[0]
    return np.array([float((change[a:b].sum(axis=0) ** 2).sum()) for a, b in pairwise(cuts.tolist())])


def _of_row_sets(structure: RowSets, X: Any) -> float:
    """Bound Σ_{i in y} z_i for every attribute of a query: a row may be in one set and not in the other."""
    change = np.abs(structure.Z).sum(axis=0)
    squares = (X.members**2).sum(axis=1) * (X.masked(np.tile(change, (len(X), 1))) ** 2).sum(axis=1)
    return math.sqrt(float(squares.max(initial=0.0)))


def _of_own(structure: Joint, X: Examples) -> float:
    """The range of each feature, max_y Φ_j − min_y Φ_j, by two searches: ‖Φ − Φ'‖² ≤ Σ_j range_j²."""
    if isinstance(structure.structure, Partitions):  # pairs are together in one and apart in the other
        return max(math.sqrt(float((np.abs(x).sum(axis=0) ** 2).sum()) + len(x) ** 2) for x in X)
    if structure.n_weights > _MOST_SEARCHES:
        raise ValueError(
            f"B='data' would call {type(structure.structure).__name__}.argmax {2 * structure.n_weights:,} times for "
            "each input: pass B, a bound on ‖Φ(x, y) − Φ(x, z)‖"
        )
    squares = np.zeros(len(X))
    for j in range(structure.n_weights):
        one = np.zeros(structure.n_weights)
        one[j] = 1.0
        highest, lowest = (structure.argmax(structure.scores(sign * one, X))[1] for sign in (1.0, -1.0))
        squares += (highest + lowest) ** 2
    return math.sqrt(float(squares.max(initial=0.0)))


def _of_graph(structure: GraphLabels, X: Any) -> float:
    largest = 0.0
    for i in range(len(X)):
        one = X[i : i + 1]
        squares = float((np.abs(one.nodes).sum(axis=0) ** 2).sum())
        if structure.has_edges and len(one.edges):
            squares += float((np.abs(one.edge_features).sum(axis=0) ** 2).sum())
        largest = max(largest, squares)
    return math.sqrt(2.0 * largest)


def _of_outputs(structure: Enumerated, X: Any) -> float:
    largest = 0.0
    for x in X:
        rows = structure.joint(x)
        squares = np.einsum("ij,ij->i", rows, rows)
        largest = max(largest, float((squares[:, None] + squares - 2.0 * rows @ rows.T).max()))
    return math.sqrt(max(0.0, largest))


def _of_counts(structure: Any, X: Any) -> float:
    """Φ counts: ‖Φ − Φ'‖² ≤ ‖Φ‖² + ‖Φ'‖² ≤ 2 max_y ⟨1, Φ(x, y)⟩², the best output with weights of 1."""
    ones, largest = np.ones(structure.n_weights), 0.0
    for batch in structure.batches(X, 4096):
        largest = max(largest, float(structure.argmax(structure.scores(ones, X[batch]))[1].max()))
    return math.sqrt(2.0) * largest


_MOST_SEARCHES = 1000  # features of a structure of one's own, each searched for twice
_RADII: dict[type, Callable[[Any, Any], float]] = {  # the first that fits
    Labels: _of_labels,
    RowSets: _of_row_sets,
    LabelSets: _of_label_sets,
    Chain: _of_chain,
    Segments: _of_segments,
    GraphLabels: _of_graph,
    Enumerated: _of_outputs,
    TreeBatches: _of_counts,
    AlignmentJoint: _of_counts,
    Joint: _of_own,
}


def _sums(rows: Any, offsets: np.ndarray) -> np.ndarray:
    """Σ_f (Σ_t |x_tf|)² of each sequence."""
    from scipy.sparse import csr_array

    matrix = csr_array(abs(rows.matrix(int(offsets[0]), int(offsets[-1]))))
    lengths = np.diff(offsets)
    n = int(lengths.sum())
    gather = csr_array((np.ones(n), np.arange(n), np.concatenate([[0], np.cumsum(lengths)])), shape=(len(lengths), n))
    summed = gather @ matrix
    return np.asarray(summed.multiply(summed).sum(axis=1)).ravel()
