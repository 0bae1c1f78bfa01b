"""The base class of all estimators: a fit that fails leaves the model as it was."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer._explain import Explained
from mercer._validation import is_partitioned, thread_count
from mercer._warnings import warn_caller
from mercer.exceptions import DataScaleWarning

__all__ = ["Estimator", "Outputs", "rollback_on_error"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def rollback_on_error(method: _Method) -> _Method:
    """Wrap a method that trains: check ``n_jobs``, and restore the attributes of the model on an exception or Ctrl-C.

    A model without ``history_`` keeps that of the exception (see `mercer.learning.training.train`), so that you can
    inspect a diverged training. Attributes are restored, not copied: training must replace arrays and not write into
    those of the last fit.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread_count(getattr(self, "n_jobs", None))
        before = dict(self.__dict__)
        try:
            if is_partitioned(args[0] if args else kwargs.get("X")):
                return _parts().fitted(self, method, args, kwargs)
            model = method(self, *args, **kwargs)
            if method.__name__ == "fit":
                _remember_columns(self, args[0] if args else kwargs.get("X"), before.get("feature_names_in_"))
            if self._depends_on_units():
                _warn_of_units(type(self).__name__, args[0] if args else kwargs.get("X"))
            return model
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if "history_" not in before and hasattr(error, "history"):
                self.history_ = error.history
            raise

    return cast(_Method, run)


def _parts() -> Any:
    """What trains and asks models on examples in parts; it lives above this layer."""
    return importlib.import_module("mercer.learning.partitioned")


ASKED = (
    "predict", "predict_proba", "predict_log_proba", "predict_marginals", "decision_function", "transform", "score",
    "k_best", "top_k", "sample", "entropy", "log_likelihood", "score_samples",
)  # fmt: skip
"""Methods that answer about inputs, and so can be asked part by part."""


def _by_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that answers about inputs: those in parts are answered part by part."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if X is not None and is_partitioned(X):
            rest = dict(kwargs)
            rest.pop("X", None)
            return _parts().asked(self, method.__name__, X, args[1:], rest)
        return method(self, *args, **kwargs)

    run._by_parts = True  # type: ignore[attr-defined]
    return run


def _remember_columns(model: Any, X: Any, earlier: Any) -> None:
    """Keep the names of the columns of a frame as ``feature_names_in_``, where ``fit`` did not see to it itself."""
    present = model.__dict__.get("feature_names_in_")
    if present is not None and present is not earlier:
        return
    columns = getattr(X, "columns", None) if hasattr(X, "dtypes") or hasattr(X, "schema") else None
    names = [] if columns is None else list(columns)
    if names and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.array(names, dtype=object)
    elif present is not None:
        del model.feature_names_in_


def _warn_of_units(owner: str, X: Any) -> None:
    """Warn of columns that no common regularisation fits: spread beyond 1e±5, or an offset of 1e4 times the spread."""
    if hasattr(X, "select_dtypes"):
        X = X.select_dtypes("number").to_numpy()
    if sp.issparse(X):
        values = X.tocsr().data
        largest = float(np.abs(values).max(initial=0.0)) if values.dtype.kind in "fiu" else 0.0
        spreads, means = np.array([largest]), np.zeros(1)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu" and X.size:
        spreads, means = _spreads_and_means(X)
    else:
        return
    varies = spreads > 1e-12 * np.abs(means)
    if not varies.any():
        return
    column = int(np.where(varies, spreads, 0.0).argmax())
    offset = int(np.where(varies, np.abs(means) / np.maximum(spreads, 1e-300), 0.0).argmax())
    if spreads[column] > 1e5 or spreads[column] < 1e-5:
        problem = f"the values of column {column} of X spread by {spreads[column]:.2g}"
    elif abs(means[offset]) > 1e4 * spreads[offset]:
        problem = f"column {offset} of X has mean {means[offset]:.2g} and spread {spreads[offset]:.2g}"
    else:
        return
    warn_caller(
        f"{problem}: {owner} regularises all columns alike and expects values of moderate size; rescale X first, for"
        " example with sklearn.preprocessing.StandardScaler",
        DataScaleWarning,
    )


def _spreads_and_means(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations and means of columns, in pieces that stay in the cache; seen from the first row."""
    n_rows = max(1, 32768 // X.shape[1])
    first = X[0].astype(np.float64)
    origin, ones, room = np.tile(first, (n_rows, 1)), np.ones(n_rows), np.empty((n_rows, X.shape[1]))
    sums, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), n_rows):
        piece = X[start : start + n_rows]
        n = len(piece)
        away = np.subtract(piece, origin[:n], out=room[:n])
        sums += ones[:n] @ away
        squares += ones[:n] @ np.multiply(away, away, out=away)
    shifts = sums / len(X)
    return np.sqrt(np.maximum(squares / len(X) - shifts**2, 0.0)), first + shifts


class Outputs(NamedTuple):
    """The kind of prediction for one input, where it is not one label: ``"labels"`` (of positions), ``"trees"``, …"""

    form: str
    scorers: tuple[str, ...] = ()  # names for ``scoring=`` that suit


class Estimator(Explained, BaseEstimator):
    """scikit-learn's base class, with ``fit`` and ``partial_fit`` of every subclass made all or nothing.

    Models whose scores are sums have `top_features` and `explain` (see ``mercer._explain``).
    """

    _output_form: ClassVar[Outputs | None] = None

    def _depends_on_units(self) -> bool:
        """Whether data in other units give another model, so that extreme ones deserve a warning."""
        return False

    _parts_how: ClassVar[str] = "no"
    """How it learns from examples in parts: "sums" over them, the "first" part (where it tells all there is to learn),
    a "stream" of them (``partial_fit``), whole "bags" in each, or "no", with a reason."""
    _parts_reason: ClassVar[str] = (
        "it needs all examples in memory: its training is no sum over partitions, or not written as one"
    )

    def _reason_against_parts(self) -> str | None:
        """Why the model with these parameters cannot learn from examples in parts; None where it can."""
        return self._parts_reason if self._parts_how == "no" else None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in ("fit", "partial_fit"):
            method = cls.__dict__.get(name)
            if inspect.isfunction(method):
                setattr(cls, name, rollback_on_error(method))
        for name in ASKED:
            method = inspect.getattr_static(cls, name, None)
            if inspect.isfunction(method) and not hasattr(method, "_by_parts"):
                setattr(cls, name, _by_parts(method))
            elif name in cls.__dict__ and hasattr(method, "fn") and not hasattr(method.fn, "_by_parts"):
                method.fn = _by_parts(method.fn)  # of scikit-learn's available_if
        super().__init_subclass__(**kwargs)
