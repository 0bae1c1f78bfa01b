"""Outputs of a model's verbs as one value, and equality of such values to the last bit."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from estimators.cases import Case

REFUSALS = (ValueError, AttributeError)  # of a verb that this setting does not have, with its reason


def fit(case: Case, seed: int = 0, model: Any = None) -> Any:
    """Fit a model (a new one by default) to the case's data of this seed."""
    data = case.data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (case.make() if model is None else model).fit(*data.args, **data.kwargs)


@functools.cache
def fitted(case: Case) -> tuple[Any, Any]:
    """A model that no test changes, and its outputs."""
    model = fit(case)
    return model, outputs(case, model)


def outputs(case: Case, model: Any, seed: int = 0, new: Any = None) -> Any:
    """What all verbs of the case answer for new inputs."""
    inputs = case.data(seed).new if new is None else new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.use is not None:
            return case.use(model, inputs)
        answers = {}
        for verb in verbs_of(case, model):
            try:
                answers[verb] = getattr(model, verb)(inputs)
            except REFUSALS as error:
                answers[verb] = str(error)
        assert any(not isinstance(answer, str) for answer in answers.values()), answers
        return answers


def verbs_of(case: Case, model: Any) -> list[str]:
    """The verbs that the model has in this setting."""
    return [verb for verb in case.verbs if hasattr(model, verb)]


def equal(a: Any, b: Any) -> bool:
    """Whether two outputs are the same to the last bit."""
    if sp.issparse(a) or sp.issparse(b):
        return sp.issparse(a) and sp.issparse(b) and equal(a.toarray(), b.toarray())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype == object:
            return all(equal(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if type(a).__eq__ is object.__eq__:
        return type(a) is type(b) and equal(vars(a), vars(b))
    answer = a == b
    return bool(answer) or (a != a and b != b)
