"""Scorers for label sequences, for scikit-learn's ``cross_val_score`` and ``GridSearchCV``.

scikit-learn's metrics take one label a sample. A tagger answers with one list of labels a sequence, so
``scoring="f1_macro"`` fails inside scikit-learn, which then reports NaN. ``scoring=sequence_scorer("f1_macro")`` counts
each position as a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from mercer._estimator import Estimator
from mercer.metrics import SCORERS

__all__ = ["SequenceScorer", "sequence_scorer"]

OWN = {name: SCORERS[name] for name in ("span_f1", "sequence_accuracy", "token_accuracy")}


def sequence_scorer(scoring: str = "f1_macro") -> SequenceScorer:
    """Return a scorer of label sequences for ``cross_val_score`` and ``GridSearchCV``.

    Parameters
    ----------
    scoring : str
        ``"span_f1"``, ``"sequence_accuracy"`` or ``"token_accuracy"`` of :mod:`mercer.metrics`; or a name of
        scikit-learn for classifiers (``"f1_macro"``, ``"balanced_accuracy"``, ``"neg_log_loss"``, …), which then counts
        every position as a sample. Positions whose true label is None or a set are left out.

    Returns
    -------
    SequenceScorer

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from mercer.tagging import Tagger, sequence_scorer
    >>> X, y = [["a", "b", "b"], ["b", "a"]] * 6, [["A", "B", "B"], ["B", "A"]] * 6
    >>> cross_val_score(Tagger(), X, y, cv=3, scoring=sequence_scorer("f1_macro"))
    array([1., 1., 1.])
    """
    return SequenceScorer(scoring)


class SequenceScorer:
    """A scorer ``(estimator, X, y) → float`` of label sequences; see :func:`sequence_scorer`."""

    def __init__(self, scoring: str) -> None:
        if not isinstance(scoring, str) or (scoring not in OWN and scoring not in get_scorer_names()):
            raise ValueError(
                f"unknown scoring {scoring!r}; known are {', '.join(map(repr, OWN))}, and scikit-learn's names for "
                "classifiers, such as 'f1_macro' or 'balanced_accuracy'"
            )
        self.scoring = scoring

    def __repr__(self) -> str:
        return f"sequence_scorer({self.scoring!r})"

    def __call__(self, estimator: Any, X: Any, y: Sequence[Sequence[Any]]) -> float:
        """Return the score of the estimator's predictions for X."""
        if self.scoring in OWN:
            return OWN[self.scoring](estimator, X, y)
        positions = _Positions(estimator, X, [len(labels) for labels in y])
        truth = [label for labels in y for label in labels]
        known = np.array([label is not None and not isinstance(label, (set, frozenset)) for label in truth], bool)
        if not known.any():
            raise ValueError("no known label to compare with")
        rows = np.flatnonzero(known)
        return float(get_scorer(self.scoring)(positions, rows, np.array([truth[i] for i in rows])))


class _Positions(ClassifierMixin, Estimator):
    """A fitted tagger as a classifier of single positions, which are numbered through all sequences."""

    def __init__(self, estimator: Any, X: Any, lengths: list[int]) -> None:
        self.estimator, self.X, self.lengths = estimator, X, lengths
        self.classes_ = estimator.classes_

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the labels of these positions."""
        return np.array(self._stacked(self.estimator.predict(self.X)))[rows]

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return the marginals of these positions."""
        return np.array(self._stacked(self.estimator.predict_marginals(self.X)))[rows]

    def _stacked(self, sequences: Sequence[Any]) -> list[Any]:
        found = [len(one) for one in sequences]
        if found != self.lengths:
            raise ValueError("y has other lengths than the predictions: give y a label for each position of X")
        return [label for one in sequences for label in one]

    def __sklearn_is_fitted__(self) -> bool:
        return True
