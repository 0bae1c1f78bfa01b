"""scikit-learn's checks of estimators: all of them for the first setting of a class, a dozen for its other settings.

    @contract([KernelSVC(), KernelSVC("precomputed")])
    def test_scikit_learn_contract(checks):
        checks()

One test for each estimator instead of one for each check: there are sixty checks, most of a few milliseconds. The
error of a check names it. A check that passes although it is expected to fail is an error too: the list of exceptions
must not outlive its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

VARIANTS = frozenset(
    {
        "check_classifiers_train",
        "check_dict_unchanged",
        "check_estimators_dtypes",
        "check_estimators_nan_inf",
        "check_estimators_pickle",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in_after_fitting",
        "check_parameters_default_constructible",
        "check_regressors_train",
        "check_transformer_general",
    }
)
"""What depends on the setting: shapes and types of inputs, answers for parts of them, copies."""


def contract(estimators: Iterable[Any], **options: Any) -> pytest.MarkDecorator:
    """Parametrise a test by estimators: ``checks`` runs those of scikit-learn, ``options`` are for its decorator."""
    seen: set[type] = set()
    groups = []
    for estimator in estimators:
        listed = list(parametrize_with_checks([estimator], **options).args[1])
        if type(estimator) in seen:
            listed = [item for item in listed if _name(_parts(item)[1]) in VARIANTS]
        seen.add(type(estimator))
        groups.append(pytest.param(_all(listed), id=repr(estimator).replace("\n", "")))
    return pytest.mark.parametrize("checks", groups)


def _all(listed: list[Any]) -> Callable[[], None]:
    def run() -> None:
        assert listed
        passed: list[str] = []
        for item in listed:
            estimator, check = _parts(item)
            is_expected = any(mark.name == "xfail" for mark in getattr(item, "marks", ()))
            try:
                check(estimator)
            except SkipTest:
                continue
            except Exception as error:
                if is_expected:
                    continue
                error.add_note(f"{_name(check)} of {estimator!r}")
                raise
            if is_expected:
                passed.append(_name(check))
        assert not passed, f"take off the list of expected failures of {estimator!r}: {passed}"

    return run


def _parts(item: Any) -> tuple[Any, Any]:
    return getattr(item, "values", item)


def _name(check: Any) -> str:
    return getattr(check, "func", check).__name__
