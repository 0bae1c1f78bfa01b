"""Scorers of structured outputs for scikit-learn's ``cross_val_score``, ``GridSearchCV`` and their kin.

A scorer is called as ``scorer(estimator, X, y)``. :func:`register_scorers` enters ours into scikit-learn's table of
names, so that ``sklearn.metrics.get_scorer("span_f1")`` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mercer._validation import check_choice
from mercer.metrics.segments import boundary_f1, segment_f1
from mercer.metrics.sequences import sequence_accuracy, span_report, token_accuracy
from mercer.metrics.structured import bracket_f1

__all__ = ["SCORERS", "OutputScorer", "make_span_scorer", "register_scorers"]

_MEASURES = ("f1", "precision", "recall")


class OutputScorer:
    """A scorer ``(estimator, X, y) → float`` that compares the estimator's predictions with y.

    Parameters
    ----------
    name : str
        How it is shown.
    measure : function
        ``measure(y, predicted)`` → float, higher is better.
    """

    def __init__(self, name: str, measure: Callable[[Any, Any], float]) -> None:
        self.name, self.measure = name, measure

    def __repr__(self) -> str:
        return self.name

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> float:
        """Return the score of the estimator's predictions for X."""
        return float(self.measure(y, estimator.predict(X, **params)))


class _Spans:
    """A measure of spans, of all labels or of one; an object of the module, so that it can be pickled."""

    def __init__(self, measure: str, label: str | None) -> None:
        self.measure, self.label = measure, label

    def __call__(self, y: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> float:
        report = span_report(y, predicted)
        if self.label is None:
            return float(getattr(report, self.measure))
        score = report.by_label.get(self.label)
        if score is None:
            raise ValueError(f"no span of type {self.label!r}, true or predicted; there are {sorted(report.by_label)}")
        return float(getattr(score, self.measure))


def make_span_scorer(measure: str = "f1", *, label: str | None = None) -> OutputScorer:
    """Return a scorer of labelled spans (``B-NP``, ``I-NP``, ``O``), as the scorer of CoNLL counts them.

    Parameters
    ----------
    measure : {"f1", "precision", "recall"}, default="f1"
    label : str, optional
        Only spans of this type, such as ``"NP"``.

    Returns
    -------
    OutputScorer
        For ``scoring=`` of scikit-learn's functions.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from mercer.metrics import make_span_scorer
    >>> from mercer.tagging import Tagger
    >>> X, y = [["the", "dog", "barks"], ["a", "cat"]] * 6, [["B-NP", "I-NP", "O"], ["B-NP", "I-NP"]] * 6
    >>> cross_val_score(Tagger(), X, y, cv=3, scoring=make_span_scorer(label="NP"))
    array([1., 1., 1.])
    """
    check_choice("measure", measure, _MEASURES)
    shown = "" if label is None else f", label={label!r}"
    return OutputScorer(f"make_span_scorer({measure!r}{shown})", _Spans(measure, label))


def _segments(y: Any, predicted: Any) -> float:
    return segment_f1(y, predicted).f1


def _brackets(y: Any, predicted: Any) -> float:
    return bracket_f1(y, predicted).f1


SCORERS: dict[str, OutputScorer] = {
    **{f"span_{measure}": make_span_scorer(measure) for measure in _MEASURES},
    "token_accuracy": OutputScorer("token_accuracy", token_accuracy),
    "sequence_accuracy": OutputScorer("sequence_accuracy", sequence_accuracy),
    "segment_f1": OutputScorer("segment_f1", _segments),
    "boundary_f1": OutputScorer("boundary_f1", boundary_f1),
    "bracket_f1": OutputScorer("bracket_f1", _brackets),
}
"""Scorers by their names."""


def register_scorers() -> list[str]:
    """Enter our scorers into scikit-learn's table of names, and return these names.

    ``sklearn.metrics.get_scorer("span_f1")`` and tools that ask it find them then. scikit-learn's own searches compare
    a string with the names that there were when it was imported: pass them ``scoring=get_scorer("span_f1")``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> from mercer.metrics import register_scorers
    >>> "span_f1" in register_scorers(), get_scorer("span_f1")
    (True, make_span_scorer('f1'))
    """
    from sklearn.metrics import _scorer

    for name, scorer in SCORERS.items():
        _scorer._SCORERS.setdefault(name, scorer)
    return list(SCORERS)
