"""Part scores and marginals of segmentations, and the features of lengths; see :mod:`mercer.structures.segments`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lgamma
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice

LENGTHS = ("table", "poisson", "log-normal", "constant")


@dataclass
class SegmentScores:
    """Part scores of a batch of segmentations; −inf forbids a part (but not in means and variances).

    Attributes
    ----------
    lengths : array of shape (max_length, n_labels)
        Row l − 1 holds the scores of length l.
    transitions : array of shape (n_labels, n_labels)
    start, end : arrays of shape (n_labels,)
        Scores of the first and the last label.
    offsets : int64 array of shape (n_sequences + 1,)
    frames, means, starts : arrays of shape (n_positions, n_labels), optional
        Scores summed over a segment, averaged over a segment, and of a segment that starts at the position.
    edges : array of shape (n_positions, n_labels, n_labels), optional
        Scores of a boundary before the position, by the labels on both sides. Values at first positions are ignored.
    spans : array of shape (n_positions, max_length, n_labels), optional
        Scores of whole segments, by start and length.
    features : array of shape (n_positions, n_features), optional
        Features whose variances are scored.
    variances : array of shape (n_features, n_labels), optional
        The score of one unit of variance.
    pair_means, pair_variances : arrays of shape (n_positions or n_features, n_labels, n_labels), optional
        As means and variances, by the label of the segment and the label after it.
    pair_spans : array of shape (n_positions, max_length, max_length, n), optional
        Features of two whole neighbouring segments: entry [t, l − 1, m − 1] is for lengths l and m on the two sides of
        the boundary before position t. Values at first positions are ignored.
    pair_span_scores : array of shape (n, n_labels, n_labels), optional
        The score of one unit of such a feature, by the labels on both sides.
    marks : tuple (length, label, score) of arrays of shape (n_positions,), optional
        An additional score for the segment of that length and label at each position; length 0: none.
    cuts : bool array of shape (n_positions,), optional
        Positions where a segment must begin.
    """

    lengths: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    offsets: np.ndarray
    frames: np.ndarray | None = None
    means: np.ndarray | None = None
    starts: np.ndarray | None = None
    edges: np.ndarray | None = None
    spans: np.ndarray | None = None
    features: np.ndarray | None = None
    variances: np.ndarray | None = None
    pair_means: np.ndarray | None = None
    pair_variances: np.ndarray | None = None
    pair_spans: np.ndarray | None = None
    pair_span_scores: np.ndarray | None = None
    marks: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    cuts: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.lengths.shape[1]

    @property
    def max_length(self) -> int:
        """The longest length."""
        return self.lengths.shape[0]

    @property
    def n_positions(self) -> int:
        """Number of positions in all sequences together."""
        return int(self.offsets[-1] - self.offsets[0])

    def negated(self) -> SegmentScores:
        """Return −θ; forbidden parts stay forbidden."""
        changed: dict[str, Any] = {name: _flipped(getattr(self, name)) for name in (*_SHARED, *_OPTIONAL)}
        marks = None if self.marks is None else (*self.marks[:2], -self.marks[2])
        return replace(self, **changed, marks=marks, features=self.features)

    def scaled(self, factor: float) -> SegmentScores:
        """Return factor · θ."""
        held = {name: getattr(self, name) for name in (*_SHARED, *_OPTIONAL)}
        changed: dict[str, Any] = {name: None if x is None else factor * x for name, x in held.items()}
        marks = None if self.marks is None else (*self.marks[:2], factor * self.marks[2])
        return replace(self, **changed, marks=marks, features=self.features)

    def _parts(self) -> Any:
        """The checked arrays, for the compiled verbs."""
        parts: dict[str, Any] = {name: _double(getattr(self, name)) for name in (*_SHARED, *_OPTIONAL)}
        if self.marks is not None:
            length, label, score = self.marks
            parts["mark_length"] = np.ascontiguousarray(length, dtype=np.int32)
            parts["mark_label"] = np.ascontiguousarray(label, dtype=np.int32)
            parts["mark_score"] = _double(score)
        if self.cuts is not None:
            parts["cuts"] = np.ascontiguousarray(self.cuts, dtype=np.uint8)
        offsets = np.ascontiguousarray(self.offsets, dtype=np.int64)
        parts["x"], parts["pair_spans"] = _double(self.features), _double(self.pair_spans)
        return _core.segments.SegmentParts(offsets=offsets, **parts)


_SHARED = ("lengths", "transitions", "start", "end")
_OPTIONAL = (
    "frames",
    "means",
    "starts",
    "edges",
    "pair_means",
    "spans",
    "variances",
    "pair_variances",
    "pair_span_scores",
)


def _flipped(x: np.ndarray | None) -> np.ndarray | None:
    return None if x is None else np.where(np.isneginf(x), x, -x)


def _double(x: np.ndarray | None) -> np.ndarray | None:
    return None if x is None else np.ascontiguousarray(x, dtype=np.float64)


@dataclass
class SegmentMarginals:
    """Part marginals of a batch of segmentations (or differences of them: a gradient in part scores).

    ``frames[t, c]`` is the probability that position t has label c, ``starts[t, c]`` that a segment labelled c starts
    there. ``lengths`` (expected numbers of segments by length and label), ``transitions``, ``start`` and ``end`` are
    summed over all sequences, as their scores are shared. ``means[t, c]`` is Σ p(segment) / length over the segments
    around t, ``variances`` the expected variances, ``pair_span_scores`` the expected ``pair_spans`` of θ. These and the
    other fields exist if θ has such scores (``edges`` and ``spans`` also on request).
    """

    frames: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    log_partition: np.ndarray
    means: np.ndarray | None = None
    edges: np.ndarray | None = None
    spans: np.ndarray | None = None
    variances: np.ndarray | None = None
    pair_means: np.ndarray | None = None
    pair_variances: np.ndarray | None = None
    pair_span_scores: np.ndarray | None = None
    features: np.ndarray | None = field(default=None, repr=False)
    pair_spans: np.ndarray | None = field(default=None, repr=False)

    def subtract(self, other: SegmentMarginals) -> None:
        """Compute ``self -= other`` for the parts."""
        for mine, theirs in zip(self._all(), other._all(), strict=True):
            if mine is not None and theirs is not None:
                mine -= theirs

    def scale(self, factor: float) -> None:
        """Compute ``self *= factor`` for the parts."""
        for part in self._all():
            if part is not None:
                part *= factor

    def _all(self) -> list[np.ndarray | None]:
        return [getattr(self, name) for name in _PARTS]


_PARTS = (
    "frames",
    "starts",
    "lengths",
    "transitions",
    "start",
    "end",
    "means",
    "edges",
    "spans",
    "variances",
    "pair_means",
    "pair_variances",
    "pair_span_scores",
)


def length_basis(model: Any, max_length: int) -> np.ndarray:
    """Return features of lengths 1 … max_length, one row per length: scores of lengths are this matrix times weights.

    - ``"table"``: one per length. Any table (a log-histogram).
    - ``"poisson"``: 1, l, −log l!. log λ^l e^{−λ} / l!, and its generalisation with any power of l!.
    - ``"log-normal"``: 1, log l, (log l)². Log-normal densities.
    - ``"constant"``: 1. The same score for every segment (Φ0).

    Parameters
    ----------
    model : str, None (no features) or array of shape (max_length, n_features)
    max_length : int

    Examples
    --------
    >>> length_basis("poisson", 3).round(3)
    array([[ 1.   ,  1.   ,  0.   ],
           [ 1.   ,  2.   , -0.693],
           [ 1.   ,  3.   , -1.792]])
    """
    l = np.arange(1, max_length + 1, dtype=float)
    if model is None:
        return np.zeros((max_length, 0))
    if not isinstance(model, str):
        basis = np.asarray(model, dtype=float)
        if basis.ndim != 2 or basis.shape[0] != max_length or not np.isfinite(basis).all():
            raise ValueError(f"lengths must be of shape ({max_length}, n) and finite, got shape {basis.shape}")
        return basis
    check_choice("lengths", model, LENGTHS)
    if model == "table":
        return np.eye(max_length)
    if model == "poisson":
        return np.stack([np.ones_like(l), l, 0.0 - np.array([lgamma(k + 1) for k in l])], axis=1)
    if model == "log-normal":
        return np.stack([np.ones_like(l), np.log(l), np.log(l) ** 2], axis=1)
    return np.ones((max_length, 1))
