"""Scorers of structured outputs for scikit-learn's ``cross_val_score``, ``GridSearchCV`` and similar functions.

A scorer is called as ``scorer(estimator, X, y)``. Importing this module registers Mercer's scorers with scikit-learn,
so that ``scoring="span_f1"`` and ``sklearn.metrics.get_scorer("span_f1")`` find them. scikit-learn's own names then
also work for models that label positions: each position is a sample.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
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
        Display name.
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
    """Return a scorer of labelled spans (``B-NP``, ``I-NP``, ``O``), with the counts of the CoNLL scorer.

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


_TABLE = "sklearn.metrics._scorer"  # the module of scikit-learn that holds the names of scorers


def register_scorers() -> list[str]:
    """Register Mercer's scorers with scikit-learn, and return their names.

    Importing ``mercer.metrics``, as taggers, segmenters and parsers do, already registers them: immediately if
    scikit-learn has loaded its table, else when it does. ``scoring="span_f1"`` then works in ``cross_val_score``,
    ``GridSearchCV`` and similar functions. Existing names are not replaced, except that scikit-learn's own scorers
    (``"f1_macro"``, …) treat positions of sequences as samples for Mercer's models that label positions.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from mercer.tagging import Tagger
    >>> X, y = [["the", "dog", "barks"], ["a", "cat"]] * 6, [["B-NP", "I-NP", "O"], ["B-NP", "I-NP"]] * 6
    >>> cross_val_score(Tagger(), X, y, cv=3, scoring="span_f1")
    array([1., 1., 1.])
    """
    importlib.import_module(_TABLE)
    _enter_names()
    return list(SCORERS)


def _enter_names() -> None:
    """Add our names to the table, and to the checks of arguments that were made from it when scikit-learn was imported.

    scikit-learn has no public door for this. Where a version keeps its names elsewhere, nothing happens here, and
    scorers are passed as objects.
    """
    table = getattr(sys.modules.get(_TABLE), "_SCORERS", None)
    if not isinstance(table, dict):
        return
    known = set(table)
    if all(hasattr(sys.modules[_TABLE], name) for name in ("_Scorer", "_cached_call")):
        importlib.import_module("mercer.metrics.positions").cover_positions(table)
    for name, scorer in SCORERS.items():
        table.setdefault(name, scorer)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("sklearn."):
            for value in list(vars(module).values()):
                if isinstance(value, type | FunctionType):
                    _allow_names(value, known)


def _allow_names(owner: Any, known: set[str]) -> None:
    """Let ``scoring=`` of a function or class of scikit-learn take our names, if it took those of the table."""
    for attribute in ("_skl_parameter_constraints", "_parameter_constraints"):
        constraints = vars(owner).get(attribute)
        scoring = constraints.get("scoring") if isinstance(constraints, dict) else None
        for constraint in scoring if isinstance(scoring, list) else ():
            options = getattr(constraint, "options", None)
            if isinstance(options, set) and options & known and all(isinstance(name, str) for name in options):
                options.update(SCORERS)


class _Awaiting(MetaPathFinder):
    """Enters our names as soon as scikit-learn has loaded its table, without loading it for that."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != _TABLE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_enter(module: ModuleType) -> None:
                execute(module)
                _enter_names()

            with contextlib.suppress(AttributeError):  # a loader that takes no attributes
                spec.loader.exec_module = execute_and_enter  # type: ignore[method-assign]
        return spec


if _TABLE in sys.modules:
    _enter_names()
else:
    sys.meta_path.insert(0, _Awaiting())
