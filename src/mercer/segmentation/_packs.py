"""Code shared by feature packs: features of segmentations, segment statistics by prefix sums, and rescaling.

The score of a segment [s, e) that starts at s is ⟨w_b, φ(x, s)⟩ + ⟨w_g, ψ(x, s, e)⟩: φ are the boundary features of
its first position, and ψ statistics of the frame features h_s .. h_{e−1}. With prefix sums H_t = Σ_{u<t} h_u and Q_t =
Σ_{u<t} h_u²,

    sum = H_e − H_s,   mean = sum / (e − s),   variance = (Q_e − Q_s) / (e − s) − mean²,   length = e − s,

in time that does not depend on the length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Saved
from mercer._validation import check_choice
from mercer.data.sequences import Sequences

__all__ = [
    "STATISTICS",
    "FeaturePack",
    "MinMaxRescaler",
    "SegmentFeatures",
    "bow_rescale",
    "check_statistics",
    "segment_statistics",
]

STATISTICS = ("sum", "mean", "variance", "length")


@dataclass(frozen=True)
class SegmentFeatures:
    """Features of sequences for segmentation, the result of a :class:`FeaturePack`.

    Attributes
    ----------
    frames : Sequences
        A row of features for each position; the features of a segment are statistics of its rows.
    boundaries : Sequences
        A row of features for each position, for a segment that starts there.
    statistics : tuple of str
        Statistics of the frames, among ``"sum"``, ``"mean"``, ``"variance"`` and ``"length"``.
    frame_names, boundary_names : tuple of str
        Names of the columns.
    segments : tuple of arrays of shape (n, max_length, k), optional
        Features of whole segments beyond statistics of frames: ``segments[i][s, l − 1]`` belongs to the segment [s, s +
        l) of sequence i, and is 0 beyond the end.
    segment_names : tuple of str
        Names of the k columns of ``segments``.
    pairs : tuple of arrays of shape (n, max_length, max_length, k), optional
        Features of two whole neighbouring segments: ``pairs[i][t, l − 1, m − 1]`` belongs to [t − l, t) and [t, t + m)
        of sequence i, and is 0 where one of them goes beyond the sequence. Needs ``segments`` of the same lengths.
    pair_names : tuple of str
        Names of the columns of ``pairs``.
    """

    frames: Sequences
    boundaries: Sequences
    statistics: tuple[str, ...]
    frame_names: tuple[str, ...]
    boundary_names: tuple[str, ...]
    segments: tuple[np.ndarray, ...] | None = None
    segment_names: tuple[str, ...] = ()
    pairs: tuple[np.ndarray, ...] | None = None
    pair_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not np.array_equal(self.frames.lengths, self.boundaries.lengths):
            raise ValueError("frames and boundaries must have the same sequences of the same lengths")
        check_statistics("statistics", self.statistics)
        for name, names, n in (
            ("frame_names", self.frame_names, self.frames.n_features),
            ("boundary_names", self.boundary_names, self.boundaries.n_features),
        ):
            if len(names) != n:
                raise ValueError(f"{name} holds {len(names)} names for {n} columns")
        for name, tables in (("segments", self.segments), ("pairs", self.pairs)):
            if tables is not None and [len(table) for table in tables] != self.lengths.tolist():
                raise ValueError(f"{name} must hold a table for each sequence, with a row for each position")
        if self.pairs is not None and self.segments is None:
            raise ValueError("pairs need segments: features of neighbouring segments go with those of single ones")

    @property
    def lengths(self) -> np.ndarray:
        """Number of positions of each sequence."""
        return self.frames.lengths

    @property
    def shape(self) -> tuple[int]:
        """Return (number of sequences,), for scikit-learn's splitters."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, key: Any) -> SegmentFeatures:
        """Return the sequences of a slice, a list of integers or a mask; an integer selects one."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, int | np.integer):
            i = range(len(self))[int(key)]
            key = slice(i, i + 1)
        chosen = np.arange(len(self))[key]
        segments, pairs = (t if t is None else tuple(t[i] for i in chosen) for t in (self.segments, self.pairs))
        return SegmentFeatures(
            self.frames[key],
            self.boundaries[key],
            self.statistics,
            self.frame_names,
            self.boundary_names,
            segments,
            self.segment_names,
            pairs,
            self.pair_names,
        )


class FeaturePack(Saved, TransformerMixin, Estimator, ABC):
    """Base class of transformers from raw sequences to :class:`SegmentFeatures`.

    A pack is a scikit-learn transformer: `fit` learns vocabularies and ranges from training sequences, `transform`
    applies them. A subclass implements ``_fit(documents)``, which learns and returns the features of the training
    sequences, and ``transform``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.segmentation import FeaturePack, SegmentStatistics
    >>> pack = SegmentStatistics(window=1, contrast=0).fit([np.eye(4)])
    >>> isinstance(pack, FeaturePack)
    True
    >>> pack.transform([np.eye(4)]).boundary_names
    ('start', 'frame[0]:0', 'frame[0]:1', 'frame[0]:2', 'frame[0]:3')
    """

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from training sequences; ``y`` is ignored."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> SegmentFeatures:
        """Learn from training sequences and return their features."""
        return self._fit(X)

    @abstractmethod
    def transform(self, X: Any) -> SegmentFeatures:
        """Return the features of sequences."""

    @abstractmethod
    def _fit(self, X: Any) -> SegmentFeatures: ...


def check_statistics(name: str, statistics: Any) -> tuple[str, ...]:
    """A tuple of different names of statistics."""
    if isinstance(statistics, str) or not isinstance(statistics, Sequence):
        raise ValueError(f"{name} must be a tuple of names among {', '.join(STATISTICS)}, got {statistics!r}")
    for statistic in statistics:
        check_choice(name, statistic, STATISTICS)
    if len(set(statistics)) < len(statistics):
        raise ValueError(f"{name} names a statistic twice: {statistics!r}")
    return tuple(statistics)


def segment_statistics(
    frames: Any, segments: Any, statistics: Sequence[str] = ("mean", "variance", "length")
) -> np.ndarray:
    """Return statistics of segments of one sequence by prefix sums, in the order in which they are named.

    Parameters
    ----------
    frames : array of shape (T, d)
    segments : array of int of shape (n, 2)
        First position and first position after each segment.
    statistics : tuple of str, default=("mean", "variance", "length")
        Among ``"sum"``, ``"mean"``, ``"variance"`` (d columns each) and ``"length"`` (one column).

    Returns
    -------
    features : array of shape (n, columns)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.segmentation import segment_statistics
    >>> frames = np.array([[0.0], [2.0], [4.0], [4.0]])
    >>> segment_statistics(frames, [(0, 3), (2, 4)])
    array([[2.        , 2.66666667, 3.        ],
           [4.        , 0.        , 2.        ]])
    """
    h = np.asarray(frames, dtype=float)
    if h.ndim != 2:
        raise ValueError(f"frames must be an array of positions x features, got shape {h.shape}")
    if not np.isfinite(h).all():
        raise ValueError("frames must not hold NaN or infinite values")
    spans = np.asarray(segments)
    if spans.size == 0:
        spans = spans.reshape(0, 2).astype(np.int64)
    if spans.ndim != 2 or spans.shape[1] != 2 or spans.dtype.kind not in "iu":
        raise ValueError("segments must be an array of integers of shape (n, 2)")
    names = check_statistics("statistics", statistics)
    start, end = spans.T
    if len(spans) and (start.min() < 0 or end.max() > len(h) or (end <= start).any()):
        raise ValueError(f"segments must be pairs start < end within 0 .. {len(h)}")
    length = (end - start)[:, None].astype(float)
    centre = h.mean(axis=0) if len(h) else np.zeros(h.shape[1])  # the variance is the same, and rounds better around 0
    first = np.concatenate([np.zeros((1, h.shape[1])), np.cumsum(h - centre, axis=0)])
    mean = (first[end] - first[start]) / length
    parts = {"length": length, "mean": mean + centre, "sum": (mean + centre) * length}
    if "variance" in names:
        second = np.concatenate([np.zeros((1, h.shape[1])), np.cumsum((h - centre) ** 2, axis=0)])
        parts["variance"] = np.maximum((second[end] - second[start]) / length - mean**2, 0.0)
    return np.hstack([parts[name] for name in names]) if names else np.zeros((len(spans), 0))


class MinMaxRescaler(Saved, OneToOneFeatureMixin, TransformerMixin, Estimator):
    """u → (u − min) / (max − min) with the ranges of the training data.

    Values of new data beyond these ranges become 0 or 1. A feature that is constant in training becomes 0.

    Attributes
    ----------
    minimum_, maximum_ : arrays of shape (n_features,)

    Examples
    --------
    >>> from mercer.segmentation import MinMaxRescaler
    >>> MinMaxRescaler().fit([[1.0, 5.0], [3.0, 5.0]]).transform([[2.0, 7.0], [9.0, 5.0]])
    array([[0.5, 0. ],
           [1. , 0. ]])
    """

    minimum_: np.ndarray
    maximum_: np.ndarray

    saved = Fields(minimum_=Floats("n_features_in_"), maximum_=Floats("n_features_in_"))

    def _check_state(self) -> None:
        if (self.minimum_ > self.maximum_).any():
            raise ValueError("minimum_ must not exceed maximum_")

    def fit(self, X: Any, y: Any = None) -> MinMaxRescaler:
        """Learn the ranges."""
        X = self._checked(X)
        if not len(X):
            raise ValueError("X has no rows to learn ranges from")
        self.n_features_in_ = X.shape[1]
        self.minimum_, self.maximum_ = X.min(axis=0), X.max(axis=0)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Rescale with the ranges learnt."""
        check_is_fitted(self)
        X = self._checked(X)
        if X.shape[1] != len(self.minimum_):
            raise ValueError(f"X has {X.shape[1]} features, but the rescaler was fitted to {len(self.minimum_)}")
        width = self.maximum_ - self.minimum_
        scaled = np.divide(X - self.minimum_, width, out=np.zeros_like(X), where=width > 0)
        return np.clip(scaled, 0.0, 1.0)

    @staticmethod
    def _checked(X: Any) -> np.ndarray:
        return check_array(X, dtype=float, ensure_min_samples=0, input_name="X")


def bow_rescale(B: Any, power: int = 2) -> Any:
    """Return bags of words divided by a power of their norm: B / ⟨B, B⟩ for 2, the unit vector B / ‖B‖ for 1.

    With the squared norm, ⟨B / ⟨B, B⟩, B⟩ = 1.

    Parameters
    ----------
    B : array or sparse matrix of shape (n, d)
        One bag of words per row; rows of zeros stay zero.
    power : {1, 2}, default=2

    Returns
    -------
    rescaled : array or CSR matrix, as given

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.segmentation import bow_rescale
    >>> bow_rescale(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0.5, 0.5],
           [0. , 0. ]])
    """
    check_choice("power", power, (1, 2))
    if hasattr(B, "tocsr"):
        from scipy.sparse import diags_array

        csr = B.tocsr()
        squares = np.asarray(csr.multiply(csr).sum(axis=1), dtype=float).ravel()
        return (diags_array(_inverse(squares, power)) @ csr).tocsr()
    dense = np.asarray(B, dtype=float)
    if dense.ndim != 2:
        raise ValueError(f"B must have two dimensions, got shape {dense.shape}")
    return dense * _inverse((dense**2).sum(axis=1), power)[:, None]


def _inverse(squares: np.ndarray, power: int) -> np.ndarray:
    norms = squares if power == 2 else np.sqrt(squares)
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
