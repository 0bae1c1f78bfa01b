"""Segmentations: a sequence cut into labelled segments [s, e), with scores for whole segments (semi-Markov chains).

    score(y) = start[c_1] + end[c_L] + Σ_segments Φ1 + Φ2 + Σ_neighbours Φ3

    Φ1  boundary      starts[s, c]                              features of the boundary before position s
    Φ2  segment       Σ_{s≤t<e} frames[t, c]                    sums of features of positions
                      1/(e−s) Σ_{s≤t<e} means[t, c]             means of them
                      Σ_k variances[k, c] · var_k(x_s..x_{e−1}) variances of them
                      lengths[e−s, c]                           a free table, or a few features of the length
                      spans[s, e−s, c]                          any other score, tabulated by start and length
    Φ3  neighbours    transitions[c, c'], edges[e, c, c']       features of the boundary between two segments
                      pair_means, pair_variances                mean and variance of a segment, for the label after it
                      Σ_f pair_spans[e, e−s, e'−e, f] v[f, c, c'] any other score of two whole segments [s, e), [e, e')

Design. θ is factored as above, so that it takes O(T·C + K·C) numbers and never T·K·C (K = the longest length): scores
of segments are computed from prefix sums on demand, and all are linear in the weights. Inference methods are in
``cpp/structures/segments.hpp``: O(T·K·C + T·C²) steps, O(T·K·C²) with pair statistics, and O(T·K²·C²) with features of
two whole segments (``cpp/structures/segment_pairs.hpp``). Three decisions keep this exact:

- Bounds on lengths are −inf in ``lengths``, forbidden neighbours −inf in ``transitions``: exact zeros everywhere.
- Φ3 depends on the segment [s, e), on both labels, and on the first ``min_length`` frames after e. The second part
  depends on e alone and is a feature of the boundary (``edges``: the next segment is never shorter). Only the first
  part needs the sum over lengths for each pair of labels.
- Costs that compare segmentations are added to ``starts`` (boundaries; the constant |y| at position 0, where every
  segmentation has a segment), and the reward for a true segment is a mark at its start: O(T) numbers.

The weight vector is [sum | mean | variance | boundary | span | length | transitions | start | end | edges | pair mean |
pair variance | pair span], without the parts a structure does not have. With ``max_length=1`` and ``lengths=None``, the
weight vector and all results equal those of :class:`~mercer.structures.Chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from mercer import _core
from mercer._state.limits import reserve
from mercer._state.saved import Saved
from mercer._validation import check_choice, check_count
from mercer.data.segments import Segmentations
from mercer.data.sequences import Rows, Sequences
from mercer.structures import patterns
from mercer.structures.base import Structure, check_random_seed
from mercer.structures.constraints import SharedScores
from mercer.structures.costs import BoundaryDifference, Cost, Hamming, SegmentCost
from mercer.structures.patterns import Pattern
from mercer.structures.segment_levels import MAX_WORK, cut, highest_level, level_search, levels_of
from mercer.structures.segment_parts import SegmentMarginals, SegmentScores, length_basis

STATISTICS = ("sum", "mean", "variance")
NEIGHBOURS = ("boundary", "mean", "variance")
PAIRS = ("edges", "pair mean", "pair variance", "pair span")  # parts with a weight for each pair of labels


class Segments(SharedScores, Saved, Structure):
    """Labelled segmentations with scores of boundaries, whole segments and neighbouring segments.

    Inputs are :class:`~mercer.data.Sequences`: features of positions in the matrix, features of the boundary before
    each position in ``edges``, and, in a :class:`~mercer.data.SpanSequences`, features of whole segments. Outputs are
    :class:`~mercer.data.Segmentations`. Without labels use ``n_labels=1``.

    Parameters
    ----------
    n_labels : int
    n_features : int
        Features of a position.
    n_boundary_features : int, default=0
        Number of features of the boundary before a position (Φ1, and Φ3 with ``neighbours="boundary"``).
    n_span_features : int, default=0
        Number of features of whole segments (Φ2).
    max_length : int or sequence of int
        Maximum segment length; one number, or one per label.
    min_length : int or sequence of int, default=1
        Minimum segment length.
    statistics : sequence of {"sum", "mean", "variance"}, default=("sum",)
        Statistics of position features in a segment. Variances need dense features.
    boundaries : bool, default=True
        Whether features of a boundary have weights for the label that starts there (Φ1).
    neighbours : sequence of {"boundary", "mean", "variance"}, default=()
        Features with weights for the labels of two neighbouring segments (Φ3): those of the boundary between them, or
        mean and variance of the first segment. The last two take ``n_labels`` times as long.
    lengths : {"table", "poisson", "log-normal", "constant"}, array of shape (max_length, n) or None, default="table"
        Features of the length; see :func:`length_basis`.
    n_pair_features : int, default=0
        Features of two whole neighbouring segments (Φ3), the ``pair_spans`` of a :class:`~mercer.data.SpanSequences`.
        They take ``max_length`` times as long as all other parts together.
    masks : tuple of bool arrays (labels × labels, labels, labels), optional
        True for forbidden neighbours, first and last labels; see :meth:`.Constraints.masks`.
    pattern, boundary_pattern, edge_pattern : tuple (starts, columns), optional
        Which (feature, label), (boundary feature, label) and (boundary feature, label pair) pairs have weights, in CSR
        form; default all.
    threads : int, default=1

    Attributes
    ----------
    slices : dict of str to slice
        Slice of the weights of each part.
    shortest, longest : int arrays of shape (n_labels,)
        The bounds of each label.
    K : int
        The maximum of ``longest``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import Sequences
    >>> segments = Segments(n_labels=2, n_features=1, max_length=3, lengths="constant")
    >>> {name: part for name, part in segments.slices.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'sum': slice(0, 2, None), 'length': slice(2, 4, None), 'transitions': slice(4, 8, None),
     'start': slice(8, 10, None), 'end': slice(10, 12, None)}
    >>> X = Sequences(np.array([[1.0], [1.0], [-1.0], [-1.0], [-1.0]]))
    >>> w = np.zeros(segments.n_weights)
    >>> w[segments.slices["sum"]], w[segments.slices["length"]] = [1.0, -1.0], -1.5
    >>> theta = segments.scores(w, X)
    >>> best, score = segments.argmax(theta)
    >>> best.segments(["up", "down"]), score
    ([[(0, 2, 'up'), (2, 5, 'down')]], array([2.]))
    >>> segments.marginals(theta).starts.sum(axis=1).round(2)
    array([1.  , 0.25, 0.86, 0.3 , 0.22])
    """

    searched_together = 32

    def __init__(
        self,
        n_labels: int,
        n_features: int,
        n_boundary_features: int = 0,
        n_span_features: int = 0,
        *,
        max_length: Any,
        min_length: Any = 1,
        statistics: Sequence[str] = ("sum",),
        boundaries: bool = True,
        neighbours: Sequence[str] = (),
        lengths: Any = "table",
        n_pair_features: int = 0,
        masks: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        pattern: Pattern = None,
        boundary_pattern: Pattern = None,
        edge_pattern: Pattern = None,
        threads: int = 1,
    ) -> None:
        self.n_labels, self.n_features = check_count("n_labels", n_labels), check_count("n_features", n_features, 0)
        self.n_boundary_features = check_count("n_boundary_features", n_boundary_features, 0)
        self.n_span_features = check_count("n_span_features", n_span_features, 0)
        self.n_pair_features = check_count("n_pair_features", n_pair_features, 0)
        self.statistics = _choices("statistics", statistics, STATISTICS)
        self.neighbours = _choices("neighbours", neighbours, NEIGHBOURS)
        self.boundaries, self.lengths, self.masks, self.threads = bool(boundaries), lengths, masks, threads
        self.pattern, self.boundary_pattern, self.edge_pattern = pattern, boundary_pattern, edge_pattern
        self.max_length, self.min_length = max_length, min_length
        self.shortest, self.longest = _bounds(n_labels, min_length, max_length)
        self.K = int(self.longest.max())
        sizes = np.arange(1, self.K + 1)[:, None]
        self._allowed = (sizes >= self.shortest) & (sizes <= self.longest)
        self._basis = length_basis(lengths, self.K)
        self._patterns = self._layout()
        self._places: dict[str, tuple[np.ndarray, np.ndarray | None]] = {}
        self.slices = _slices(self._sizes())
        self.n_weights = max((part.stop for part in self.slices.values()), default=0)

    def _saved_params(self) -> dict[str, Any]:
        params = {name: value for name, value in super()._saved_params().items() if name not in ("masks", "threads")}
        return {**params, "max_length": self.longest, "min_length": self.shortest}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> Segments:
        n_labels, longest = check_count("n_labels", params["n_labels"]), int(np.max(params["max_length"]))
        width = longest if isinstance(params["lengths"], str) and params["lengths"] == "table" else 3
        reserve(8 * longest * (n_labels + width), f"scores of {longest} lengths")
        names = ("pattern", "boundary_pattern", "edge_pattern")
        return cls(**{**params, **{name: patterns.from_file(params[name]) for name in names}})

    def _layout(self) -> dict[str, Any]:
        """The patterns of the parts with features of positions and boundaries that this structure has."""
        C, F, B = self.n_labels, self.n_features, self.n_boundary_features
        wanted = {
            "sum": (F and "sum" in self.statistics, F, C, self.pattern),
            "mean": (F and "mean" in self.statistics, F, C, self.pattern),
            "variance": (F and "variance" in self.statistics, F, C, None),
            "boundary": (B and self.boundaries, B, C, self.boundary_pattern),
            "edges": (B and "boundary" in self.neighbours, B, C * C, self.edge_pattern),
            "pair mean": (F and "mean" in self.neighbours, F, C * C, None),
            "pair variance": (F and "variance" in self.neighbours, F, C * C, None),
        }
        made = {name: _pattern(n, width, given) for name, (has, n, width, given) in wanted.items() if has}
        return {name: pattern for name, pattern in made.items() if pattern.n_weights}

    def _sizes(self) -> dict[str, int]:
        C = self.n_labels
        sizes = {name: part.n_weights for name, part in self._patterns.items()}
        return {
            "sum": sizes.get("sum", 0),
            "mean": sizes.get("mean", 0),
            "variance": sizes.get("variance", 0),
            "boundary": sizes.get("boundary", 0),
            "span": self.n_span_features * C,
            "length": self._basis.shape[1] * C,
            "transitions": C * C,
            "start": C,
            "end": C,
            "edges": sizes.get("edges", 0),
            "pair mean": sizes.get("pair mean", 0),
            "pair variance": sizes.get("pair variance", 0),
            "pair span": self.n_pair_features * C * C,
        }

    # ------------------------------------------------------------------ between weights and part scores

    def scores(self, w: np.ndarray, X: Sequences, joint: np.ndarray | None = None) -> SegmentScores:
        """Return the part scores of a batch; ``joint`` is the result of :meth:`joint_weights` for w, if known."""
        self._check_features(X)
        transitions, start, end = self.shared_scores(w)
        C = self.n_labels
        theta = SegmentScores(self.length_scores(w), transitions, start, end, X.offsets)
        if joint is None:
            theta.frames = self._linear("sum", w, X, X.rows)
            theta.starts = self._linear("boundary", w, X, X.edges)
        else:
            both = np.empty((X.n_positions, 2 * C), X.rows.dtype)
            pattern = _core.linear.Pattern(self.n_features, 2 * C)
            _core.linear.scores(X.rows.core, int(X.offsets[0]), X.n_positions, pattern, joint, both, self.threads)
            theta.frames, theta.starts = (np.ascontiguousarray(x, np.float64) for x in (both[:, :C], both[:, C:]))
        theta.means = self._linear("mean", w, X, X.rows)
        theta.edges = _square(self._linear("edges", w, X, X.edges), C)
        theta.pair_means = _square(self._linear("pair mean", w, X, X.rows), C)
        if "variance" in self._patterns or "pair variance" in self._patterns:
            theta.features = self._dense(X)
        if "variance" in self._patterns:
            theta.variances = w[self.slices["variance"]].reshape(self.n_features, C)
        if "pair variance" in self._patterns:
            theta.pair_variances = w[self.slices["pair variance"]].reshape(self.n_features, C, C)
        if self.n_span_features:
            theta.spans = self._spans(X) @ w[self.slices["span"]].reshape(self.n_span_features, C)
        if self.n_pair_features:
            theta.pair_spans = self._spans(X, "pair_spans")
            theta.pair_span_scores = w[self.slices["pair span"]].reshape(self.n_pair_features, C, C)
        return theta

    def joint_weights(self, w: np.ndarray, X: Sequences) -> np.ndarray | None:
        """Return weights of sums and boundaries together, if boundaries of X have the features of its positions.

        One pass over the features then gives both scores. None if X has other boundary features, or too few positions
        to be worth it.
        """
        F, C = self.n_features, self.n_labels
        if X.edges is not X.rows or not {"sum", "boundary"} <= self._patterns.keys() or X.n_positions * 16 < F * C:
            return None
        joint = np.zeros((F, 2, C))
        for k, (part, given) in enumerate((("sum", self.pattern), ("boundary", self.boundary_pattern))):
            if given is None or len(given[1]) == F * C:
                joint[:, k] = w[self.slices[part]].reshape(F, C)
            else:
                feature = np.repeat(np.arange(F), np.diff(given[0]))
                joint[feature, k, given[1]] = w[self.slices[part]]
        return joint.ravel()

    def length_scores(self, w: np.ndarray) -> np.ndarray:
        """Return scores (max_length, n_labels) of lengths, −inf outside the bounds."""
        scores = np.zeros((self.K, self.n_labels))
        if "length" in self.slices:
            scores = self._basis @ w[self.slices["length"]].reshape(-1, self.n_labels)
        return np.where(self._allowed, scores, -np.inf)

    def backward(self, X: Sequences, mu: SegmentMarginals, out: np.ndarray) -> None:
        """Add the features of a batch, weighted by μ."""
        C = self.n_labels
        self._adjoint("sum", X, X.rows, mu.frames, out)
        self._adjoint("mean", X, X.rows, mu.means, out)
        self._adjoint("boundary", X, X.edges, mu.starts, out)
        self._adjoint("edges", X, X.edges, mu.edges, out)
        self._adjoint("pair mean", X, X.rows, mu.pair_means, out)
        for part, sums in (("variance", mu.variances), ("pair variance", mu.pair_variances)):
            if part in self._patterns and sums is not None:
                out[self.slices[part]] += sums.ravel()
        if self.n_span_features and mu.spans is not None:
            spans = self._spans(X).reshape(-1, self.n_span_features)
            out[self.slices["span"]] += (spans.T @ mu.spans.reshape(-1, C)).ravel()
        if self.n_pair_features and mu.pair_span_scores is not None:
            out[self.slices["pair span"]] += mu.pair_span_scores.ravel()
        if "length" in self.slices:
            out[self.slices["length"]] += (self._basis.T @ mu.lengths).ravel()
        out[self.slices["transitions"]] += mu.transitions.ravel()
        out[self.slices["start"]] += mu.start
        out[self.slices["end"]] += mu.end

    def has_curvature(self, X: Sequences) -> bool:
        """Return whether all features are 0 or 1, and of positions and boundaries only."""
        rows = X.rows if X.edges is None else X.edges
        plain = all(one.dense is None and one.values is None for one in (X.rows, rows))
        return plain and not self.n_span_features and not self.n_pair_features

    def curvature(self, X: Sequences, theta: SegmentScores, out: np.ndarray) -> None:
        """Add Σ_t x[t] μ[t] (1 − μ[t]): positions count as independent. Other weights: Σ μ, an upper bound."""
        mu = self.marginals(theta)
        for part in (mu.frames, mu.starts, mu.edges):
            if part is not None:
                part *= 1.0 - part
        spread = mu.starts.sum(axis=0)
        mu.transitions = np.minimum(mu.transitions, spread[:, None] + spread)
        self.backward(X, mu, out)

    def _linear(self, part: str, w: np.ndarray, X: Sequences, rows: Rows | None) -> np.ndarray | None:
        if part not in self._patterns or rows is None:
            return None
        pattern = self._patterns[part]
        out = np.empty((X.n_positions, pattern.width), rows.dtype)
        _core.linear.scores(
            rows.core, int(X.offsets[0]), X.n_positions, pattern, w[self.slices[part]], out, self.threads
        )
        return out.astype(np.float64, copy=False)

    def _adjoint(self, part: str, X: Sequences, rows: Rows | None, mu: np.ndarray | None, out: np.ndarray) -> None:
        if part not in self._patterns or rows is None or mu is None:
            return
        pattern = self._patterns[part]
        weights = np.ascontiguousarray(mu.reshape(X.n_positions, pattern.width), dtype=rows.dtype)
        row, count = int(X.offsets[0]), X.n_positions
        _core.linear.backward(rows.core, row, count, pattern, weights, out[self.slices[part]], self.threads)

    def _dense(self, X: Sequences) -> np.ndarray:
        if X.rows.dense is None:
            raise ValueError("variances need dense features: X is sparse (X.toarray() may be small enough)")
        return X.rows.dense[int(X.offsets[0]) : int(X.offsets[-1])].astype(np.float64, copy=False)

    def _spans(self, X: Any, name: str = "spans") -> np.ndarray:
        return getattr(X, name)[int(X.offsets[0]) : int(X.offsets[-1])]

    def batches(self, X: Sequences, positions: int) -> Iterator[slice]:
        """Return slices of whole sequences with about ``positions`` positions (fewer if scores of pairs are large)."""
        if "edges" in self._patterns or "pair mean" in self._patterns:
            positions = max(1, positions // self.n_labels)
        if self.n_span_features:
            positions = max(1, positions // self.K)
        if self.n_pair_features:
            positions = max(1, positions // self.K**2)
        start = 0
        while start < len(X):
            stop = int(np.searchsorted(X.offsets, X.offsets[start] + positions, side="right")) - 1
            stop = min(max(stop, start + 1), len(X))
            yield slice(start, stop)
            start = stop

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: SegmentScores) -> tuple[Segmentations, np.ndarray]:
        """Return the best segmentations and their scores (−inf and no segments where none is allowed).

        Ties: from the last segment on, the lowest label, then the shortest length.
        """
        length, label, score = self.best_marks(theta)
        return Segmentations.from_marks(length, label, theta.offsets), score

    def best_marks(self, theta: SegmentScores) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the best segmentations, as length and label by start, and their scores."""
        length, label = (np.empty(theta.n_positions, np.int32) for _ in range(2))
        score = np.empty(len(theta))
        theta._parts().best(length, label, score, self.threads)
        return length, label, score

    def argmin(self, theta: SegmentScores) -> tuple[Segmentations, np.ndarray]:
        """Return the lowest-scoring allowed segmentations."""
        y, score = self.argmax(theta.negated())
        return y, -score

    def k_best(self, theta: SegmentScores, k: int) -> tuple[list[Segmentations], np.ndarray]:
        """Return k segmentations of each sequence, best first (empty if there are fewer), and scores (n, k)."""
        check_count("k", k)
        length, label = (np.empty((k, theta.n_positions), np.int32) for _ in range(2))
        score = np.empty((len(theta), k))
        theta._parts().k_best(length, label, score, self.threads)
        return [Segmentations.from_marks(*marks, theta.offsets) for marks in zip(length, label, strict=True)], score

    def log_partition(self, theta: SegmentScores) -> np.ndarray:
        """Return log Z of each sequence."""
        out = np.empty(len(theta))
        theta._parts().marginals(out, threads=self.threads)
        return out

    def marginals(self, theta: SegmentScores, *, edges: bool = False, spans: bool = False) -> SegmentMarginals:
        """Return the probabilities of parts; ``edges`` and ``spans`` add label pairs and segments at each position.

        ``spans[t, l - 1, c]`` is the probability of the segment of length l and label c that starts at t: positions ×
        max_length × labels numbers.
        """
        return self._expectations(theta, edges, spans)

    def _expectations(
        self, theta: SegmentScores, edges: bool = False, spans: bool = False, entropy: np.ndarray | None = None
    ) -> SegmentMarginals:
        mu = self._room(theta, np.empty)
        C, K, T = theta.n_labels, theta.max_length, theta.n_positions
        if edges and mu.edges is None:
            mu.edges = np.empty((T, C, C))
        if spans and mu.spans is None:
            mu.spans = np.empty((T, K, C))
        parts = theta._parts()
        sums = np.zeros(parts.n_sums)
        positions = mu.frames, mu.means, mu.starts, mu.edges, mu.pair_means, mu.spans
        parts.marginals(mu.log_partition, sums, *positions, entropy, self.threads)
        shared = [mu.lengths, mu.transitions, mu.start, mu.end, mu.variances, mu.pair_variances, mu.pair_span_scores]
        at = 0
        for part in shared:
            if part is not None:
                part[...] = sums[at : at + part.size].reshape(part.shape)
                at += part.size
        return mu

    def sample(self, theta: SegmentScores, size: int, random_state: Any = None) -> list[Segmentations]:
        """Return ``size`` draws of all sequences; no segments for a sequence that has no allowed segmentation."""
        check_count("size", size, 0)
        length, label = (np.empty((size, theta.n_positions), np.int32) for _ in range(2))
        theta._parts().sample(check_random_seed(random_state), length, label, self.threads)
        return [Segmentations.from_marks(*marks, theta.offsets) for marks in zip(length, label, strict=True)]

    def entropy(self, theta: SegmentScores) -> np.ndarray:
        """Return log Z − E[score] of each sequence."""
        out = np.empty(len(theta))
        self._expectations(theta, entropy=out)
        return out

    def log_cardinality(self, X: Sequences) -> np.ndarray:
        """Return the number of segmentations that bounds and masks allow, computed once for each sequence length."""
        lengths, which = np.unique(X.lengths, return_inverse=True)
        w, offsets = np.zeros(self.n_weights), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return self.log_partition(SegmentScores(self.length_scores(w), *self.shared_scores(w), offsets))[which]

    def score(self, theta: SegmentScores, y: Segmentations) -> np.ndarray:
        """Return the score of the given segmentations; −inf where bounds or scores forbid them."""
        out = np.empty(len(theta))
        theta._parts().score(y.lengths, y.labels, y.firsts, out, self.threads)
        return out

    # ------------------------------------------------------------------ truth

    def subtract_truth(self, mu: SegmentMarginals, y: Segmentations) -> None:
        """Compute ``μ -= 1_y``."""
        self.add_output(mu, y, np.full(len(y), -1.0))

    def check(self, X: Sequences, y: Segmentations | None = None, classes: Sequence[Any] | None = None) -> None:
        """Raise ValueError, naming the sequence, if bounds and constraints allow no segmentation, or not y.

        ``classes`` are the names of the labels, for the message.
        """
        zero = np.zeros(self.n_weights)
        theta = SegmentScores(self.length_scores(zero), *self.shared_scores(zero), X.offsets)
        none = np.flatnonzero(np.isneginf(self.argmax(theta)[1]))
        if len(none):
            i = int(none[0])
            raise ValueError(
                f"sequence {i} with {X.lengths[i]} positions cannot be cut into segments of {_said(self.shortest)} to "
                f"{_said(self.longest)} positions (or the constraints forbid every way to do so)"
            )
        if y is None:
            return
        if len(X) != len(y) or (X.lengths != np.diff(y.positions)).any():
            raise ValueError("X and y are not of the same sequences")
        if y.labels.max(initial=0) >= self.n_labels:
            raise ValueError(f"y has the label {y.labels.max()}, the model {self.n_labels} labels")
        for wrong, name, bound in (
            (y.lengths > self.longest[y.labels], "max_length", self.longest),
            (y.lengths < self.shortest[y.labels], "min_length", self.shortest),
        ):
            if wrong.any():
                sizes = y.lengths[wrong]
                k = int(np.flatnonzero(wrong)[sizes.argmax() if name == "max_length" else sizes.argmin()])
                i = int(y.sequence[k])
                start = int(y.starts[k] - (y.positions[i] - y.positions[0]))
                label = y.labels[k] if classes is None else repr(classes[y.labels[k]])
                raise ValueError(
                    f"sequence {i}: the true segment [{start}, {start + y.lengths[k]}) of label {label} has "
                    f"{y.lengths[k]} positions, {name} is {bound[y.labels[k]]}"
                )
        forbidden = np.flatnonzero(np.isneginf(self.score(theta, y)) & (X.lengths > 0))
        if len(forbidden):
            raise ValueError(f"sequence {int(forbidden[0])}: the constraints forbid its true segments")

    # ------------------------------------------------------------------ costs and margins

    def zeros(self, theta: SegmentScores) -> SegmentMarginals:
        """Return μ = 0."""
        return self._room(theta, np.zeros)

    def _room(self, theta: SegmentScores, make: Callable[[Any], np.ndarray]) -> SegmentMarginals:
        """μ with the parts that θ has."""
        C, K, T = theta.n_labels, theta.max_length, theta.n_positions
        mu = SegmentMarginals(*map(make, ((T, C), (T, C), (K, C), (C, C), C, C, len(theta))))
        for name in ("means", "edges", "spans", "variances", "pair_means", "pair_variances", "pair_span_scores"):
            if getattr(theta, name) is not None:
                setattr(mu, name, make(getattr(theta, name).shape))
        mu.features, mu.pair_spans = theta.features, theta.pair_spans
        return mu

    def add_output(self, mu: SegmentMarginals, y: Segmentations, weights: np.ndarray) -> None:
        """Compute ``μ += weights · 1_y``."""
        starts, labels, lengths = y.starts, y.labels, y.lengths
        sequence, counts = y.sequence, np.diff(y.firsts)
        weight = np.asarray(weights, dtype=float)[sequence]
        mu.starts[starts, labels] += weight
        known = np.flatnonzero(lengths <= len(mu.lengths))  # a longer one is forbidden, and has no such part
        np.add.at(mu.lengths, (lengths[known] - 1, labels[known]), weight[known])
        frame, covered = _covered(starts, lengths)
        mu.frames[frame, labels[covered]] += weight[covered]
        if mu.means is not None:
            mu.means[frame, labels[covered]] += (weight / lengths)[covered]
        if mu.spans is not None:
            mu.spans[starts[known], lengths[known] - 1, labels[known]] += weight[known]
        filled = counts > 0
        np.add.at(mu.start, labels[y.firsts[:-1][filled]], np.asarray(weights)[filled])
        np.add.at(mu.end, labels[y.firsts[1:][filled] - 1], np.asarray(weights)[filled])
        first = np.flatnonzero(sequence[1:] == sequence[:-1])  # segments that have a successor
        a, b = labels[first], labels[first + 1]
        np.add.at(mu.transitions, (a, b), weight[first])
        if mu.edges is not None:
            mu.edges[starts[first + 1], a, b] += weight[first]
        if mu.pair_means is not None:
            frame, covered = _covered(starts[first], lengths[first])
            mu.pair_means[frame, a[covered], b[covered]] += (weight[first] / lengths[first])[covered]
        if mu.features is not None:
            v = segment_variances(mu.features, starts, lengths)
            if mu.variances is not None:
                np.add.at(mu.variances.T, labels, weight[:, None] * v)
            if mu.pair_variances is not None:
                np.add.at(mu.pair_variances.transpose(1, 2, 0), (a, b), weight[first, None] * v[first])
        if mu.pair_span_scores is not None and mu.pair_spans is not None:
            K = len(mu.lengths)
            inside = (lengths[first] <= K) & (lengths[first + 1] <= K)
            one = first[inside]
            values = mu.pair_spans[starts[one + 1], lengths[one] - 1, lengths[one + 1] - 1]
            np.add.at(mu.pair_span_scores.transpose(1, 2, 0), (a[inside], b[inside]), weight[one, None] * values)

    def own_cost(self) -> Cost:
        """Return the default cost: wrong frames, or with one label, wrong boundaries."""
        return Hamming() if self.n_labels > 1 else BoundaryDifference()

    def scaled(self, theta: SegmentScores, factor: float) -> SegmentScores:
        """Return factor · θ."""
        return theta.scaled(factor)

    def augment(
        self, theta: SegmentScores, y: Segmentations, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> SegmentScores:
        """Return θ + scale · Δ(y, ·): in frames for costs of labels, in starts and marks for those of segments."""
        cost = cost or self.own_cost()
        self._check_cost(cost)
        factor = np.broadcast_to(np.asarray(scale, dtype=float), len(theta))
        each = np.repeat(factor, np.diff(theta.offsets))[:, None]
        if not isinstance(cost, SegmentCost):
            return replace(theta, frames=_plus(theta.frames, each * cost.table(y.frames(), self.n_labels)))
        augmented = replace(theta, starts=_plus(theta.starts, each * cost.start_costs(y, self.n_labels)))
        if cost.mark:
            if theta.marks is not None:
                raise ValueError("θ has marks already: a cost of segments can be added only once")
            augmented.marks = (*y.marks(), cost.mark * each[:, 0])
        return augmented

    def cost_between(self, y: Segmentations, z: Segmentations, cost: Cost | None = None) -> np.ndarray:
        """Return Δ(y, z) of each sequence."""
        cost = cost or self.own_cost()
        if not cost.decomposes:
            return (~self.equal(y, z)).astype(float)
        self._check_cost(cost)
        if isinstance(cost, SegmentCost):
            return cost.distance(y, z)
        return _sums(cost.between(y.frames(), z.frames(), self.n_labels), y.positions)

    def _check_cost(self, cost: Cost) -> None:
        if self.n_labels == 1 and not isinstance(cost, SegmentCost):
            raise ValueError("a cost of wrong frames sees no error where there is one label: use cost='boundary'")

    def equal(self, y: Segmentations, z: Segmentations) -> np.ndarray:
        """Return whether all segments of a sequence agree."""
        different = np.zeros(y.n_positions, bool)
        for a, b in zip(y.marks(), z.marks(), strict=True):
            different |= a != b
        return _sums(different, y.positions) == 0

    def select(self, chosen: np.ndarray, y: Segmentations, z: Segmentations) -> Segmentations:
        """Return y where chosen, else z."""
        each = np.repeat(chosen, np.diff(y.positions))
        length, label = (np.where(each, a, b) for a, b in zip(y.marks(), z.marks(), strict=True))
        return Segmentations.from_marks(length, label, y.positions)

    def best_product(
        self, theta: SegmentScores, y: Segmentations, cost: Cost | None = None
    ) -> tuple[Segmentations, np.ndarray, np.ndarray] | None:
        """Return the exact maximum for integer costs: the best segmentation at each cost level (T · K · C per level).

        Return None if that is too expensive, and with statistics of neighbours.
        """
        cost = cost or self.own_cost()
        pairs = theta.pair_means, theta.pair_variances, theta.pair_spans
        if not cost.decomposes or any(part is not None for part in pairs):
            return None
        self._check_cost(cost)
        truth, first = self.score(theta, y), theta.offsets - theta.offsets[0]
        (length, label), value, delta = y.marks(), np.zeros(len(theta)), np.zeros(len(theta))
        for i, (a, b) in enumerate(pairwise(first.tolist())):
            if a == b:
                continue
            one = replace(theta, offsets=np.array([0, b - a]), **cut(theta, slice(a, b)))
            levels, unit = levels_of(cost, y[i : i + 1], self.n_labels, theta.max_length)
            if levels is None or levels.size * (highest_level(levels) + 1) > MAX_WORK:
                return None
            segmentation, level, product = level_search(one, self._written_out(one), levels, truth[i])
            if product > 0:
                value[i], delta[i] = unit * product, unit * level
                length[a:b], label[a:b] = segmentation
        return Segmentations.from_marks(length, label, theta.offsets), value, delta

    def _written_out(self, theta: SegmentScores) -> np.ndarray:
        """Scores of all segments by start, length and label: positions × max_length × labels numbers."""
        out = np.empty((theta.n_positions, theta.max_length, theta.n_labels))
        theta._parts().spans(out, self.threads)
        return out

    def difference(self, X: Sequences, y: Segmentations, z: Segmentations) -> csr_array:
        """Return Φ(x, y) − Φ(x, z) of each sequence."""
        self._check_features(X)
        rows, columns, values = [], [], []
        for sign, one in ((1.0, y), (-1.0, z)):
            for row, column, value in self._features(X, one, self._new(y, z) if one is y else self._new(z, y)):
                rows.append(row)
                columns.append(column)
                values.append(sign * value)
        data = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        summed = csr_array(coo_array(data, shape=(len(X), self.n_weights)))
        summed.sum_duplicates()
        summed.eliminate_zeros()
        return summed

    def _new(self, y: Segmentations, z: Segmentations) -> np.ndarray:
        """Segments of y that are not in z: the features of the others cancel (but those of neighbours need a look)."""
        (length, label), starts = z.marks(), y.starts
        return (length[starts] != y.lengths) | (label[starts] != y.labels)

    def _features(self, X: Sequences, y: Segmentations, new: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """(sequence, weight, value) triples of Φ(x, y), without those of segments that are not new."""
        starts, labels, lengths, sequence = y.starts, y.labels.astype(np.int64), y.lengths, y.sequence
        C, begin = self.n_labels, int(X.offsets[0])

        def shared(part: str, column: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, ...]:
            return row, self.slices[part].start + column, np.ones(len(column))

        filled = np.flatnonzero(np.diff(y.firsts))
        yield shared("start", labels[y.firsts[:-1][filled]], filled)
        yield shared("end", labels[y.firsts[1:][filled] - 1], filled)
        first = np.flatnonzero(sequence[1:] == sequence[:-1])
        pair = labels[first] * C + labels[first + 1]
        yield shared("transitions", pair, sequence[first])
        if "edges" in self._patterns and X.edges is not None:
            yield self._spread("edges", X.edges, begin + starts[first + 1], pair, np.ones(len(first)), sequence[first])
        pairs = first[new[first] | new[first + 1]]
        columns = labels[pairs] * C + labels[pairs + 1]
        if "pair mean" in self._patterns:
            frame, covered = _covered(starts[pairs], lengths[pairs])
            share = (1.0 / lengths[pairs])[covered]
            yield self._spread("pair mean", X.rows, begin + frame, columns[covered], share, sequence[pairs][covered])
        if "pair variance" in self._patterns:
            v = segment_variances(self._dense(X), starts[pairs], lengths[pairs])
            yield self._outer("pair variance", v, columns, C * C, sequence[pairs])
        if self.n_pair_features:
            values = self._spans(X, "pair_spans")[starts[pairs + 1], lengths[pairs] - 1, lengths[pairs + 1] - 1]
            yield self._outer("pair span", values, columns, C * C, sequence[pairs])
        starts, labels, lengths, sequence = (a[new] for a in (starts, labels, lengths, sequence))
        frame, covered = _covered(starts, lengths)
        for part, share in (("sum", np.ones(len(frame))), ("mean", (1.0 / lengths)[covered])):
            if part in self._patterns:
                yield self._spread(part, X.rows, begin + frame, labels[covered], share, sequence[covered])
        if "boundary" in self._patterns and X.edges is not None:
            yield self._spread("boundary", X.edges, begin + starts, labels, np.ones(len(starts)), sequence)
        if "variance" in self._patterns:
            yield self._outer("variance", segment_variances(self._dense(X), starts, lengths), labels, C, sequence)
        if self.n_span_features:
            yield self._outer("span", self._spans(X)[starts, lengths - 1], labels, C, sequence)
        if "length" in self.slices:
            yield self._outer("length", self._basis[lengths - 1], labels, C, sequence)

    def _outer(self, part: str, values: np.ndarray, column: np.ndarray, width: int, row: np.ndarray) -> tuple[Any, ...]:
        """Dense features of segments for their labels."""
        at = self.slices[part].start + np.arange(values.shape[1]) * width + column[:, None]
        return np.repeat(row, values.shape[1]), at.ravel(), values.ravel()

    def _spread(
        self, part: str, rows: Rows, at: np.ndarray, column: np.ndarray, share: np.ndarray, row: np.ndarray
    ) -> tuple[Any, ...]:
        """share · features of the matrix rows ``at`` for the columns, as far as they have weights."""
        taken = csr_array(rows.take(at).matrix(0, len(at)))
        sizes = np.diff(taken.indptr)
        width = self._patterns[part].width
        keys = taken.indices.astype(np.int64) * width + np.repeat(column, sizes)
        values, row = taken.data * np.repeat(share, sizes), np.repeat(row, sizes)
        if (known := self._known(part)) is not None:
            place, own = known
            at = place[keys] if own is None else np.minimum(np.searchsorted(own, keys), max(0, len(own) - 1))
            has = at >= 0 if own is None else own[at] == keys if len(own) else np.zeros(len(keys), bool)
            keys, values, row = at[has], values[has], row[has]
        return row, self.slices[part].start + keys, values.astype(float)

    def _known(self, part: str) -> tuple[np.ndarray, np.ndarray | None] | None:
        """How to find the weight of a (feature, column) pair: by a table of all pairs, or among the sorted ones.

        None where all pairs have weights. A table is made where it takes little more memory than the weights.
        """
        given = {"edges": self.edge_pattern, "boundary": self.boundary_pattern}.get(part, self.pattern)
        if given is None or "pair" in part:
            return None
        if part not in self._places:
            pattern = self._patterns[part]
            own = patterns.keys(given, pattern.n_features, pattern.width)
            size = pattern.n_features * pattern.width
            if size <= 8 * len(own):
                place = np.full(size, -1, np.int32)
                place[own] = np.arange(len(own), dtype=np.int32)
                self._places[part] = place, None
            else:
                self._places[part] = own, own
        return self._places[part]

    # ------------------------------------------------------------------ parts

    def _check_features(self, X: Sequences) -> None:
        if X.n_features != self.n_features:
            raise ValueError(f"X has {X.n_features} features, the model has {self.n_features}")
        if self.n_boundary_features and X.n_edge_features != self.n_boundary_features:
            raise ValueError(
                f"X has {X.n_edge_features} features of boundaries (edges), the model has {self.n_boundary_features}"
            )
        if self.n_span_features:
            shape = getattr(X, "spans", np.zeros((0, 0, 0))).shape[1:]
            if shape != (self.K, self.n_span_features):
                raise ValueError(
                    f"X has features of segments of shape {shape}, the model needs (max_length, features) = "
                    f"{(self.K, self.n_span_features)}: see mercer.data.SpanSequences"
                )
        if self.n_pair_features:
            held = getattr(X, "pair_spans", None)
            shape = (0, 0, 0) if held is None else held.shape[1:]
            if shape != (self.K, self.K, self.n_pair_features):
                raise ValueError(
                    f"X has features of neighbouring segments of shape {shape}, the model needs (max_length, "
                    f"max_length, features) = {(self.K, self.K, self.n_pair_features)}: see mercer.data.SpanSequences"
                )

    def keys(self, part: str) -> np.ndarray:
        """Return the (feature, column) pairs of a part's weights as sorted keys; columns are labels or label pairs."""
        C, given = self.n_labels, {"boundary": self.boundary_pattern, "edges": self.edge_pattern}
        width = C * C if part in PAIRS else C
        pattern = self.pattern if part in ("sum", "mean") else given.get(part)
        if pattern is not None:
            return patterns.keys(pattern, 0, width)
        size = self.slices[part]
        return np.arange(size.stop - size.start)

    def carry_over(self, w: np.ndarray, old: Segments, place: np.ndarray) -> np.ndarray:
        """Return the weights of another structure in this one's layout; missing weights start at 0.

        Its label c is label ``place[c]`` here; features and lengths keep their columns.
        """
        C, out = self.n_labels, np.zeros(self.n_weights)
        pairs = (place[:, None] * C + place).ravel()
        for part in self.slices.keys() & old.slices.keys():
            if part == "transitions":
                out[self.slices[part]][pairs] = w[old.slices[part]]
            elif part in ("start", "end"):
                out[self.slices[part]][place] = w[old.slices[part]]
            else:
                wide = part in PAIRS
                at = patterns.moved(old.keys(part), pairs if wide else place, C * C if wide else C)
                out[self.slices[part]] = patterns.spread(w[old.slices[part]], at, self.keys(part))
        return out

    def __getstate__(self) -> dict[str, Any]:
        kept = ("n_labels", "n_features", "n_boundary_features", "n_span_features", "max_length", "min_length")
        more = ("statistics", "boundaries", "neighbours", "lengths", "n_pair_features", "masks", "threads")
        given = ("pattern", "boundary_pattern", "edge_pattern")
        return {name: getattr(self, name) for name in (*kept, *more, *given)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def segment_variances(x: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the variance of each feature over segments, one row per segment."""
    if not len(starts):
        return np.zeros((0, x.shape[1]))
    frame, covered = _covered(starts, lengths)
    values, first = x[frame], np.cumsum(lengths) - lengths
    mean = np.add.reduceat(values, first) / lengths[:, None]
    return np.add.reduceat((values - mean[covered]) ** 2, first) / lengths[:, None]


def _covered(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of segments, and the number of the segment of each."""
    covered = np.repeat(np.arange(len(starts)), lengths)
    inside = np.arange(len(covered)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[covered] + inside, covered


def _bounds(n_labels: int, min_length: Any, max_length: Any) -> tuple[np.ndarray, np.ndarray]:
    """Shortest and longest length of each label."""
    bounds_of = []
    for name, given in (("min_length", min_length), ("max_length", max_length)):
        if np.ndim(given) == 0:
            check_count(name, given)
        elif np.shape(given) != (n_labels,):
            raise ValueError(f"{name} must be one number or one a label ({n_labels}), got shape {np.shape(given)}")
        else:
            for each in np.asarray(given).tolist():
                check_count(name, each)
        bounds_of.append(np.broadcast_to(np.asarray(given, dtype=np.int64), n_labels))
    wrong = np.flatnonzero(bounds_of[0] > bounds_of[1])
    if len(wrong):
        c = int(wrong[0])
        raise ValueError(f"min_length={bounds_of[0][c]} is greater than max_length={bounds_of[1][c]} (label {c})")
    return bounds_of[0], bounds_of[1]


def _said(bound: np.ndarray) -> str:
    return str(bound[0]) if (bound == bound[0]).all() else f"({', '.join(map(str, bound))})"


def _choices(name: str, given: Sequence[str], known: tuple[str, ...]) -> tuple[str, ...]:
    given = (given,) if isinstance(given, str) else tuple(given)
    for each in given:
        check_choice(name, each, known)
    return tuple(each for each in known if each in given)


def _slices(sizes: dict[str, int]) -> dict[str, slice]:
    bounds = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(a, b) for name, (a, b) in zip(sizes, pairwise(bounds), strict=True) if b > a}


def _square(x: np.ndarray | None, C: int) -> np.ndarray | None:
    return None if x is None else x.reshape(-1, C, C)


def _plus(x: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    return y if x is None else x + y


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums over sequences; 0 for those without positions."""
    totals = np.concatenate([[0.0], np.cumsum(values, dtype=float)])
    return totals[offsets[1:] - offsets[0]] - totals[offsets[:-1] - offsets[0]]


def _pattern(n_features: int, width: int, pattern: Pattern) -> Any:
    if pattern is None:
        return _core.linear.Pattern(n_features, width)
    return _core.linear.Pattern(pattern[0], pattern[1], width)
