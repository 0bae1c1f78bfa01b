"""Segmentation by independent decisions on each position: baselines for models of whole segments.

A classifier gives every position t ≥ 1 a score f(φ(x, t)) from its boundary features alone, and a segment starts where

    f(φ(x, t)) + offset > 0.

A larger offset only adds starts, so recall never falls as it grows. Choose the offset with the best score on held-out
documents (the weight of the constant feature Φ_0 of a segment model is tuned in the same way).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._validation import check_choice, check_number, check_weights, used_examples
from mercer.data.sequences import Sequences
from mercer.metrics import boundary_score
from mercer.segmentation._packs import FeaturePack, SegmentFeatures
from mercer.segmentation._starts import check_all_starts, starts_mask

__all__ = ["BoundaryClassifier", "OffsetCurve", "tune_offset"]

_METRICS = ("f1", "accuracy", "recall", "precision")
_MOST_OFFSETS = 200
_LARGEST = 1e6  # stands in for an infinite score, as of a probability of 1


@dataclass(frozen=True)
class OffsetCurve:
    """Scores of segment starts over offsets; see :func:`tune_offset`.

    Attributes
    ----------
    offsets, accuracy, precision, recall, f1 : arrays
        The offsets, ascending, and their scores.
    best : float
        The chosen offset.
    """

    offsets: np.ndarray
    accuracy: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    best: float


def tune_offset(
    predict: Callable[[float], Sequence[Any]],
    starts: Sequence[Any],
    lengths: Sequence[int] | np.ndarray,
    offsets: Sequence[float] | np.ndarray,
    *,
    metric: str = "f1",
    min_recall: float = 0.0,
    min_precision: float = 0.0,
) -> OffsetCurve:
    """Choose the offset with the best score on held-out sequences.

    Parameters
    ----------
    predict : function of an offset
        Returns the predicted starts of each sequence. Any model with a bonus for every segment can be used.
    starts : list of arrays of int
        The true starts.
    lengths : list of int
        The number of positions of each sequence.
    offsets : array of float
        The offsets to try. 0 is tried in any case, so that the result is never worse than without.
    metric : {"f1", "accuracy", "recall", "precision"}, default="f1"
    min_recall, min_precision : float, default=0.0
        Only offsets that reach these are considered, for example for the best precision at a recall of 0.8. If none
        does, an error is raised.

    Returns
    -------
    curve : OffsetCurve
        If several offsets are equally good, ``best`` is the one nearest to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.segmentation import tune_offset
    >>> scores = np.array([0.0, -0.2, -3.0, 1.0, -2.0])
    >>> def predict(offset):
    ...     return [np.flatnonzero((scores + offset > 0) | (np.arange(5) == 0))]
    >>> curve = tune_offset(predict, [[0, 1, 3]], [5], [-2.0, 1.0, 4.0])
    >>> curve.best, curve.recall
    (1.0, array([0. , 0.5, 1. , 1. ]))
    """
    check_choice("metric", metric, _METRICS)
    tried = np.unique(np.append(np.asarray(offsets, dtype=float).ravel(), 0.0))
    if not np.isfinite(tried).all():
        raise ValueError("offsets must not hold NaN or infinite values")
    scores = [boundary_score(starts, predict(float(offset)), lengths) for offset in tried]
    curves = {name: np.array([getattr(score, name) for score in scores]) for name in _METRICS}
    allowed = (curves["recall"] >= min_recall) & (curves["precision"] >= min_precision)
    if not allowed.any():
        raise ValueError(f"no offset reaches a recall of {min_recall} with a precision of {min_precision}")
    quality = np.where(allowed, curves[metric], -np.inf)
    winners = tried[quality == quality.max()]
    return OffsetCurve(offsets=tried, best=float(winners[np.argmin(np.abs(winners))]), **curves)


class BoundaryClassifier(Estimator):
    """A segmenter that classifies each position: does a segment start there?

    Parameters
    ----------
    estimator : {"majority", "svm", "stumps"} or a scikit-learn classifier, default="svm"
        ``"majority"``: a start everywhere or nowhere, whichever has the higher accuracy. ``"svm"``: a linear support
        vector machine, :class:`mercer.classification.LinearClassifier` with ``C=10``. ``"stumps"``: 100 boosted trees
        of one split (scikit-learn's gradient boosting with the exponential loss). Another classifier needs
        ``decision_function`` or ``predict_proba``.
    features : FeaturePack, optional
        Computes features of raw sequences; refitted by `fit`. None: X holds features already.
    offset : float, default=0.0
        Added to every score before it is compared with 0, until :meth:`tune_offset` sets another.

    Attributes
    ----------
    estimator_ : the fitted classifier
    features_ : the fitted pack, or None
    offset_ : float
    curve_ : OffsetCurve
        The result of :meth:`tune_offset`.

    Examples
    --------
    >>> from mercer.datasets import make_paragraphs
    >>> from mercer.segmentation import BoundaryClassifier, ParagraphFeatures
    >>> task = make_paragraphs(n_documents=20, topic_share=0.6)
    >>> model = BoundaryClassifier("svm", features=ParagraphFeatures(words=False))
    >>> _ = model.fit(task.documents[:10], task.starts[:10])
    >>> _ = model.tune_offset(task.documents[10:15], task.starts[10:15])
    >>> model.score(task.documents[15:], task.starts[15:]) > 0.7
    True
    """

    estimator_: Any
    offset_: float

    def __init__(self, estimator: Any = "svm", *, features: FeaturePack | None = None, offset: float = 0.0) -> None:
        self.estimator = estimator
        self.features = features
        self.offset = offset

    def fit(self, X: Any, y: Sequence[Any], sample_weight: Any = None) -> BoundaryClassifier:
        """Train the classifier on all positions but the first of each sequence, where a segment always starts.

        Parameters
        ----------
        X : SegmentFeatures, Sequences or list of feature matrices; raw sequences if there is a feature pack
        y : list of arrays of int
            The starts of the segments of each sequence, ascending; the first is 0.
        sample_weight : array of a number for each sequence, optional
            At least 0: passed on to the classifier for all positions of the sequence; a sequence of weight 0 is left
            out.

        Returns
        -------
        self
        """
        check_number("offset", self.offset)
        used, weights = used_examples(sample_weight, len(X))
        if used is not None and self.features is not None:  # what a pack learns, it learns from these alone
            X, y = [X[i] for i in used.tolist()], [y[i] for i in used.tolist()]
        elif sample_weight is not None:
            weights = check_weights(sample_weight, len(X))
        self.features_ = None if self.features is None else clone(self.features)
        rows = _boundaries(X if self.features_ is None else self.features_.fit_transform(X))
        starts = check_all_starts("y", y, rows.lengths)
        inner = _inner(rows)
        if weights is not None:
            weights = np.repeat(weights, rows.lengths)
            inner = inner[weights[inner] > 0]
        if not len(inner):
            raise ValueError("X has no sequence with a second position, so there is no boundary to learn")
        labels = np.concatenate([starts_mask(s, int(n)) for s, n in zip(starts, rows.lengths, strict=True)])
        target = labels[inner].astype(np.int64)
        self._constant = float(np.sign(target[0] - 0.5)) if len(np.unique(target)) == 1 else None
        self.estimator_ = _estimator(self.estimator)
        if self._constant is None:
            more = {} if weights is None else {"sample_weight": weights[inner]}
            self.estimator_.fit(rows.matrix()[inner], target, **more)
        self.n_features_in_ = rows.n_features
        self.offset_ = float(self.offset)
        return self

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Return the scores of all positions without the offset; log-odds if the classifier has only probabilities."""
        check_is_fitted(self, "estimator_")
        rows = _boundaries(X if self.features_ is None else self.features_.transform(X))
        if rows.n_features != self.n_features_in_:
            raise ValueError(f"X has {rows.n_features} features, but the model was fitted to {self.n_features_in_}")
        if self._constant is not None:
            scores = np.full(rows.n_positions, self._constant)
        else:
            scores = _scores(self.estimator_, rows.matrix()) if rows.n_positions else np.zeros(0)
        return np.split(scores, (rows.offsets - rows.offsets[0])[1:-1])

    def predict(self, X: Any) -> list[np.ndarray]:
        """Return the starts of each sequence."""
        return _starts_of(self.decision_function(X), self.offset_)

    def tune_offset(
        self, X: Any, y: Sequence[Any], *, metric: str = "f1", min_recall: float = 0.0, min_precision: float = 0.0
    ) -> BoundaryClassifier:
        """Set ``offset_`` to the best on held-out sequences, of up to 200 between their scores (:func:`tune_offset`).

        Parameters
        ----------
        X, y
            As for :meth:`fit`, but not the training data.
        metric : {"f1", "accuracy", "recall", "precision"}, default="f1"
        min_recall, min_precision : float, default=0.0

        Returns
        -------
        self
        """
        scores = self.decision_function(X)
        inner = np.unique(np.concatenate([one[1:] for one in scores] or [np.zeros(0)]))
        middles = -(inner[1:] + inner[:-1]) / 2
        ends = np.array([-inner[0] + 1, -inner[-1] - 1]) if len(inner) else np.zeros(0)
        if len(middles) > _MOST_OFFSETS:
            middles = middles[np.linspace(0, len(middles) - 1, _MOST_OFFSETS).astype(int)]
        self.curve_ = tune_offset(
            lambda offset: _starts_of(scores, offset),
            y,
            [len(one) for one in scores],
            np.concatenate([middles, ends]),
            metric=metric,
            min_recall=min_recall,
            min_precision=min_precision,
        )
        self.offset_ = self.curve_.best
        return self

    def score(self, X: Any, y: Sequence[Any]) -> float:
        """Return the F1 of the starts; see :func:`mercer.metrics.boundary_score` for accuracy, precision and recall."""
        predicted = self.decision_function(X)
        return boundary_score(y, _starts_of(predicted, self.offset_), [len(one) for one in predicted]).f1


def _boundaries(X: Any) -> Sequences:
    if isinstance(X, SegmentFeatures):
        return X.boundaries
    return X if isinstance(X, Sequences) else Sequences.from_matrices(X)


def _inner(rows: Sequences) -> np.ndarray:
    """All positions but the first of each sequence."""
    mask = np.ones(rows.n_positions, bool)
    begins = (rows.offsets - rows.offsets[0])[:-1][rows.lengths > 0]
    mask[begins] = False
    return np.flatnonzero(mask)


def _starts_of(scores: Sequence[np.ndarray], offset: float) -> list[np.ndarray]:
    starts = []
    for one in scores:
        chosen = one + offset > 0
        chosen[:1] = True
        starts.append(np.flatnonzero(chosen))
    return starts


def _scores(estimator: Any, matrix: Any) -> np.ndarray:
    if hasattr(estimator, "decision_function"):
        return np.clip(np.asarray(estimator.decision_function(matrix), dtype=float).ravel(), -_LARGEST, _LARGEST)
    p = np.asarray(estimator.predict_proba(matrix), dtype=float)[:, 1]
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -_LARGEST, _LARGEST)


def _estimator(given: Any) -> Any:
    if not isinstance(given, str):
        if not (hasattr(given, "decision_function") or hasattr(given, "predict_proba")):
            raise ValueError(f"estimator must have decision_function or predict_proba, got {given!r}")
        return clone(given)
    check_choice("estimator", given, ("majority", "svm", "stumps"))
    if given == "svm":
        from mercer.classification import LinearClassifier

        return LinearClassifier(C=10.0, random_state=0)
    if given == "majority":
        from sklearn.dummy import DummyClassifier

        return DummyClassifier(strategy="most_frequent")
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        loss="exponential", max_depth=1, n_estimators=100, learning_rate=0.5, random_state=0
    )
