"""Scorers for label sequences, for scikit-learn's ``cross_val_score`` and ``GridSearchCV``.

scikit-learn's metrics take one label per sample. A tagger returns one list of labels per sequence, so each position
counts as a sample. ``scoring="f1_macro"`` means the same for Mercer's models; a scorer of this module also takes other
models that predict lists of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names

from mercer.metrics import SCORERS
from mercer.metrics.positions import score_positions

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
        return score_positions(get_scorer(self.scoring), estimator, X, y)
