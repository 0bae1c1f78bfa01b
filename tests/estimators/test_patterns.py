"""Four places where defects hid, for every public estimator: one bad item among good ones, degenerate inputs, single
examples, and an object where a name is usual.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.cases import CASES, Case
from estimators.outputs import equal, fit, fitted, outputs, verbs_of
from estimators.test_every_estimator import error_of, every_array_case, explained
from mercer.learning.losses import LOSSES
from mercer.learning.solvers import SOLVERS

NOT_READ = {"RecordHasher": "fit learns nothing", "MajorityBag": "predict only counts its inputs"}
LISTS = [case for case in CASES if case.use is None and isinstance(case.data(0).new, list)]
every_list_case = pytest.mark.parametrize("case", LISTS, ids=lambda case: case.cls.__name__)


def with_one_bad(items: list[Any]) -> list[Any]:
    """The items with one in their middle that is of no kind."""
    return [*items[:1], object(), *items[2:]]


@every_list_case
def test_one_bad_item_among_good_ones_is_refused_by_fit(case: Case) -> None:
    data = case.data(0)
    at = 0 if isinstance(data.args[0], list) else 1  # trees are the second argument of a parser
    bad = [*data.args[:at], with_one_bad(data.args[at]), *data.args[at + 1 :]]
    model = copy.deepcopy(fitted(case)[0])
    error = error_of(functools.partial(model.fit, *bad, **data.kwargs))
    assert explained(error) or (error is None and case.cls.__name__ in NOT_READ), repr(error)
    assert equal(outputs(case, model), fitted(case)[1])


@every_list_case
def test_one_bad_item_among_good_ones_is_refused_by_every_verb(case: Case) -> None:
    model, expected = fitted(case)
    for verb in (verb for verb in expected if not isinstance(expected[verb], str)):
        error = error_of(functools.partial(getattr(model, verb), with_one_bad(case.data(0).new)))
        assert explained(error) or (error is None and case.cls.__name__ in NOT_READ), (verb, repr(error))
    assert equal(outputs(case, model), expected)


def finite(answer: Any) -> bool:
    """Whether no number of an answer is NaN."""
    if sp.issparse(answer):
        return finite(answer.data)
    if isinstance(answer, np.ndarray):
        return answer.dtype.kind not in "fc" or not np.isnan(answer).any()
    if isinstance(answer, dict):
        return all(map(finite, answer.values()))
    return (
        all(map(finite, answer))
        if isinstance(answer, list | tuple)
        else not isinstance(answer, float) or answer == answer
    )


@every_array_case
def test_rows_of_zeros_have_finite_answers(case: Case) -> None:
    model, expected = fitted(case)
    zeros = np.zeros_like(np.asarray(case.data(0).new))
    for verb in verbs_of(case, model):
        if isinstance(expected[verb], str):
            continue
        answers: list[Any] = []
        error = error_of(lambda verb=verb, keep=answers: keep.append(getattr(model, verb)(zeros)))
        assert explained(error) if error else finite(answers), (verb, error or answers)


def degenerate(case: Case) -> dict[str, tuple[Any, ...]]:
    """Arguments of ``fit`` with rows that say little: all of one class, one row only, all rows zero."""
    args = case.data(0).args
    X = args[0]
    found = {"zeros": (np.zeros_like(X), *args[1:])}
    if case.paired:
        found["one row"] = tuple(argument[:1] for argument in args)
        if len(args) > 1 and isinstance(args[1], np.ndarray):
            found["one output"] = (X, np.repeat(args[1][:1], len(X), axis=0), *args[2:])
    return found


@every_array_case
def test_degenerate_rows_are_refused_or_have_finite_answers(case: Case) -> None:
    data = case.data(0)
    for name, args in degenerate(case).items():
        model = case.make()
        error = error_of(functools.partial(model.fit, *args, **data.kwargs))
        if error is not None:
            assert explained(error), (name, repr(error))
            continue
        answers = outputs(case, model)
        assert finite(answers), (name, answers)


def flat_clouds(case: Case) -> dict[str, tuple[Any, ...]]:
    """Clouds that do not say how they lie: one point, many times the same, a line, a plane, a cloud and a point."""
    source, target = case.data(0).args
    line, spot = np.outer(np.linspace(0.0, 1.0, 30), [1.0, 2.0, 3.0]), np.full((30, 3), 2.0)
    return {
        "one point": (source[:1], target[:1]),
        "two points": (source[:2], target[:2]),
        "equal points": (spot, spot + 1.0),
        "zeros": (np.zeros((30, 3)), np.zeros((30, 3))),
        "lines": (line, line + 1.0),
        "planes": (source * [1.0, 1.0, 0.0], source * [1.0, 1.0, 0.0] + 1.0),
        "a cloud and equal points": (source, spot),
        "a cloud and a line": (source, line),
    }


def poor_bits(case: Case) -> dict[str, tuple[Any, ...]]:
    """Rows of zeros and ones that say little."""
    (X,) = case.data(0).args
    found = {"zeros": np.zeros_like(X), "ones": np.ones_like(X), "one row": X[:1], "one column": X[:, :1]}
    return {name: (rows,) for name, rows in found.items()}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.data.__name__ in ("two_clouds", "bits")], ids=lambda case: case.cls.__name__
)
def test_poor_clouds_and_bits_are_refused_or_have_finite_answers(case: Case) -> None:
    makes = {"two_clouds": flat_clouds, "bits": poor_bits}[case.data.__name__]
    for name, args in makes(case).items():
        model = case.make()
        error = error_of(functools.partial(model.fit, *args))
        if error is not None:
            assert explained(error), (name, repr(error))
            continue
        answers = outputs(case, model, new=args[0])
        assert finite([answers, *vars(model).values()]), (name, answers)
        if case.data.__name__ == "two_clouds":
            rotation = model.result_.rotation
            np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-8, err_msg=name)


def named(parameter: str, known: Any) -> list[Case]:
    """Cases whose parameter is one of these names."""
    given = [(case, case.make().get_params(deep=False).get(parameter)) for case in CASES]
    return [case for case, value in given if isinstance(value, str) and value in known]


@pytest.mark.parametrize("case", named("loss", LOSSES), ids=lambda case: case.cls.__name__)
def test_a_loss_as_an_object_is_the_loss_of_that_name(case: Case) -> None:
    model = case.make()
    error = error_of(lambda: fit(case, model=model.set_params(loss=LOSSES[model.loss]())))
    assert explained(error) if error else equal(outputs(case, model), fitted(case)[1]), error


@pytest.mark.parametrize(
    "case",
    [case for case in named("solver", ["auto", *SOLVERS]) if "loss" in case.make().get_params()],
    ids=lambda case: case.cls.__name__,
)
def test_a_solver_as_an_object_is_the_solver_of_that_name(case: Case) -> None:
    model = case.make()
    name = getattr(fitted(case)[0], "solver_", "")
    if name not in SOLVERS:
        pytest.skip("solvers of its own")
    by_name = fit(case, model=case.make().set_params(solver=name))
    fit(case, model=model.set_params(solver=SOLVERS[name]()))
    assert equal(outputs(case, model), outputs(case, by_name))
