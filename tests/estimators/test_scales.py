"""Units, offsets, order of columns, repeated rows and constant columns.

Predictions are the same where theory says so; elsewhere they are finite, and a model that can no longer predict warns.
A case names in ``same`` the changes that must change nothing. A regularised linear model of data in other units is
another model: the claim there is only that extreme units are not met with silence.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.cases import CASES, Case
from estimators.outputs import fitted, outputs

Change = Callable[[np.ndarray], np.ndarray]

CHANGES: dict[str, Change] = {
    "scaled": lambda X: X * 1e6,
    "tiny": lambda X: X * 1e-6,
    "shifted": lambda X: X + 1e6,
    "permuted": lambda X: np.ascontiguousarray(X[:, ::-1]),
    "constant": lambda X: np.c_[X, np.ones(len(X))],
}
ARRAYS = [case for case in CASES if case.arrays]
by_class = {"ids": lambda case: case.cls.__name__}


@functools.cache
def changed(case: Case, name: str) -> tuple[Any, Any, list[str]]:
    """A model of changed data or the ValueError of its fit, its outputs on changed inputs, and warnings on the way."""
    data, change = case.data(0), CHANGES[name]
    model = answers = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = case.make().fit(change(data.args[0]), *data.args[1:], **data.kwargs)
            answers = outputs(case, model, new=change(np.asarray(data.new)))
        except ValueError as error:
            return error if model is None else model, None, [str(error)]
    return model, answers, [str(warning.message) for warning in caught]


def numbers(answers: Any) -> list[np.ndarray]:
    """All arrays of numbers in the outputs."""
    if isinstance(answers, dict):
        return [array for value in answers.values() for array in numbers(value)]
    if sp.issparse(answers):
        return [answers.data]
    array = np.asarray(answers)
    return [array] if array.dtype.kind in "fciu" else []


@pytest.mark.parametrize("case", ARRAYS, **by_class)
@pytest.mark.parametrize("name", CHANGES)
def test_outputs_stay_finite_or_somebody_says_why(case: Case, name: str) -> None:
    _, answers, messages = changed(case, name)
    assert max(map(len, messages), default=0) > 20 or all(np.isfinite(array).all() for array in numbers(answers))


@pytest.mark.parametrize("case", [case for case in ARRAYS if hasattr(case.make(), "predict")], **by_class)
@pytest.mark.parametrize("name", CHANGES)
def test_predictions_agree_or_somebody_warns(case: Case, name: str) -> None:
    """On the training rows, for nine in ten of them; correlation for real numbers and orders."""
    X = case.data(0).args[0]
    model, _, messages = changed(case, name)
    if isinstance(model, ValueError) or messages:  # the test above reads the message
        return
    before = np.asarray(fitted(case)[0].predict(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        after = np.asarray(model.predict(CHANGES[name](X)))
    if caught:
        return
    agreement = np.corrcoef(before, after)[0, 1] if before.dtype.kind == "f" else (before == after).mean()
    assert agreement >= case.agreement


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else value.cls.__name__


SAME = [(case, name) for case in ARRAYS for name in sorted(case.same) if name in CHANGES]


@pytest.mark.parametrize(("case", "name"), SAME, ids=name_of)
def test_changes_that_theory_ignores_change_nothing(case: Case, name: str) -> None:
    _, answers, _ = changed(case, name)
    expected = fitted(case)[1]
    for verb in answers:
        a, b = answers[verb], expected[verb]
        if np.asarray(b).dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=case.rtol, atol=case.rtol * np.abs(b).max())
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", [case for case in ARRAYS if "repeated" in case.same], **by_class)
def test_rows_given_twice_change_nothing(case: Case) -> None:
    data = case.data(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make().fit(*(np.repeat(argument, 2, axis=0) for argument in data.args), **data.kwargs)
        answers, expected = outputs(case, model), fitted(case)[1]
    for verb in answers:
        if np.asarray(expected[verb]).dtype.kind == "f":
            np.testing.assert_allclose(answers[verb], expected[verb], rtol=1e-6, atol=1e-8)
        else:
            np.testing.assert_array_equal(answers[verb], expected[verb])
