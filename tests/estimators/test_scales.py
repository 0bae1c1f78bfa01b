"""Units, offsets, order of columns, repeated rows and constant columns.

Predictions are the same where theory says so; elsewhere they are finite, and a model that can no longer predict warns.
A case names in ``same`` the changes that must change nothing. A regularised linear model of data in other units is
another model: the claim there is only that extreme units are not met with silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.cases import CASES, Case
from estimators.outputs import fit, outputs

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


def changed(case: Case, change: Change) -> tuple[Any, list[str]]:
    """Outputs of a model of changed data on changed inputs, and the warnings on the way."""
    data = case.data(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = case.make().fit(change(data.args[0]), *data.args[1:], **data.kwargs)
        answers = outputs(case, model, new=change(np.asarray(data.new)))
    return answers, [str(warning.message) for warning in caught]


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
    try:
        answers, messages = changed(case, CHANGES[name])
    except ValueError as error:
        answers, messages = None, [str(error)]
    assert max(map(len, messages), default=0) > 20 or all(np.isfinite(array).all() for array in numbers(answers))


@pytest.mark.parametrize("case", [case for case in ARRAYS if hasattr(case.make(), "predict")], **by_class)
@pytest.mark.parametrize("name", CHANGES)
def test_predictions_agree_or_somebody_warns(case: Case, name: str) -> None:
    """On the training rows, for nine in ten of them; correlation for real numbers and orders."""
    data = case.data(0)
    X = data.args[0]
    before = np.asarray(fit(case).predict(X))
    moved = CHANGES[name](X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            after = np.asarray(case.make().fit(moved, *data.args[1:], **data.kwargs).predict(moved))
        except ValueError:  # the tests above read the message
            return
    if caught:
        return
    agreement = np.corrcoef(before, after)[0, 1] if before.dtype.kind == "f" else (before == after).mean()
    assert agreement >= case.agreement


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else value.cls.__name__


SAME = [(case, name) for case in ARRAYS for name in sorted(case.same) if name in CHANGES]


@pytest.mark.parametrize(("case", "name"), SAME, ids=name_of)
def test_changes_that_theory_ignores_change_nothing(case: Case, name: str) -> None:
    answers, _ = changed(case, CHANGES[name])
    expected = outputs(case, fit(case))
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
        answers, expected = outputs(case, model), outputs(case, fit(case))
    for verb in answers:
        if np.asarray(expected[verb]).dtype.kind == "f":
            np.testing.assert_allclose(answers[verb], expected[verb], rtol=1e-6, atol=1e-8)
        else:
            np.testing.assert_array_equal(answers[verb], expected[verb])
