"""scikit-learn's named scores for models that predict a label for each position of an input.

scikit-learn's metrics take one label per sample. A tagger predicts a list of labels for each sequence, so
``scoring="f1_macro"`` would fail inside scikit-learn, which then reports NaN. Here every position is a sample.

Loaded by :mod:`mercer.metrics.scorers`, once scikit-learn has its table of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import _scorer

__all__ = ["PositionScorer", "cover_positions", "score_positions"]


class Positions(ClassifierMixin, BaseEstimator):
    """A fitted model as a classifier of single positions, numbered across all inputs."""

    def __init__(self, estimator: Any, X: Any, lengths: list[int]) -> None:
        self.estimator, self.X, self.lengths = estimator, X, lengths
        self.classes_ = np.asarray(structured_step(estimator).classes_)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the labels of these positions."""
        return np.array(self._stacked(map(flat, self.estimator.predict(self.X))))[rows]

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return the marginals of these positions."""
        model, X = answering(self.estimator, self.X)
        chances = model.predict_marginals(X)
        return np.array(self._stacked(one.reshape(-1, one.shape[-1]) for one in chances))[rows]

    def _stacked(self, answers: Iterable[Any]) -> list[Any]:
        outputs = list(answers)
        if [len(one) for one in outputs] != self.lengths:
            raise ValueError("y has other lengths than the predictions: give y a label for each position of X")
        return [label for one in outputs for label in one]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def score_positions(scorer: Any, estimator: Any, X: Any, y: Sequence[Sequence[Any]]) -> float:
    """Return the score of a scorer of scikit-learn over all positions whose label is known.

    ``scorer`` is called with a classifier of positions, their numbers and their labels.
    """
    labels = [flat(one) for one in y]
    positions = Positions(estimator, X, [len(one) for one in labels])
    truth = [label for one in labels for label in one]
    known = [i for i, label in enumerate(truth) if label is not None and not isinstance(label, set | frozenset)]
    if not known:
        raise ValueError("no known label to compare with")
    return float(scorer(positions, np.array(known), np.array([truth[i] for i in known])))


def flat(labels: Any) -> list[Any]:
    """Return the labels of a sequence, or of an image row after row."""
    return labels.ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def structured_step(estimator: Any) -> Any:
    """Return the predicting model: the last step of a pipeline, or the best model of a search."""
    while True:
        inner = getattr(estimator, "best_estimator_", None)
        if inner is None and hasattr(estimator, "steps"):
            inner = estimator.steps[-1][1]
        if inner is None:
            return estimator
        estimator = inner


def answering(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the predicting model and its inputs, transformed by the preceding steps."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        else:
            return estimator, X


class PositionScorer(_scorer._Scorer):
    """A scorer of scikit-learn that treats every position of a sequence as a sample.

    For models of other libraries it is the unchanged scorer of scikit-learn.
    """

    def __init__(self, scorer: Any) -> None:
        self._plain = scorer
        method = scorer._response_method
        # Several scores at once ask for this method of the model before they are computed, and a tagger has marginals
        # of positions in the place of predict_proba.
        methods = [*([method] if isinstance(method, str) else method), "predict"]
        super().__init__(scorer._score_func, scorer._sign, scorer._kwargs, list(dict.fromkeys(methods)))

    def __repr__(self) -> str:
        return repr(self._plain)

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> Any:
        model = structured_step(estimator)
        outputs = getattr(model, "_output_form", None)
        if outputs is None:
            return self._plain._score(method_caller, estimator, X, y_true, **kwargs)
        if outputs.form != "labels" or self._score_func.__module__ == "sklearn.metrics._regression":
            named = [*map(repr, outputs.scorers), "a function scorer(estimator, X, y)"]
            raise ValueError(
                f"{self._score_func.__name__} does not apply to the {outputs.form} that {type(model).__name__} "
                f"predicts; scoring can be {', '.join(named[:-1])}{' or ' if len(named) > 1 else ''}{named[-1]}"
            )
        if kwargs.get("sample_weight") is not None:
            raise ValueError(f"{self._score_func.__name__} over positions takes no sample_weight")
        call = partial(_scorer._cached_call, None)  # of its own: what others cached is a prediction of lists
        return score_positions(lambda *samples: self._plain._score(call, *samples), estimator, X, y_true)


def cover_positions(table: dict[str, Any]) -> None:
    """Extend the scorers of a scikit-learn table to sequences."""
    for name, scorer in table.items():
        if type(scorer) is _scorer._Scorer:
            table[name] = PositionScorer(scorer)
