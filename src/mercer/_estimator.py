"""The base class of all estimators: a fit that fails leaves the model as it was."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.base import BaseEstimator

from mercer._validation import thread_count

__all__ = ["Estimator", "rollback_on_error"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def rollback_on_error(method: _Method) -> _Method:
    """Wrap a method that trains: check ``n_jobs``, and restore the attributes of the model on an exception or Ctrl-C.

    A model that has no ``history_`` keeps the one that the exception carries (see `mercer.learning.training.train`),
    so that a training that diverged can be looked at. Attributes are restored, not copied: training must replace
    arrays and not write into those of the last fit.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread_count(getattr(self, "n_jobs", None))
        before = dict(self.__dict__)
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if "history_" not in before and hasattr(error, "history"):
                self.history_ = error.history
            raise

    return cast(_Method, run)


class Estimator(BaseEstimator):
    """scikit-learn's base class, with ``fit`` and ``partial_fit`` of every subclass made all or nothing."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in ("fit", "partial_fit"):
            method = cls.__dict__.get(name)
            if inspect.isfunction(method):
                setattr(cls, name, rollback_on_error(method))
        super().__init_subclass__(**kwargs)
