"""The share of pairs in the wrong order, against all pairs and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mercer.metrics import pairwise_error
from reference import ranking as reference

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 2)), min_size=1, max_size=15)


@given(ROWS)
def test_error_is_that_of_all_pairs(rows):
    y, s, groups = (np.array(column) for column in zip(*rows, strict=True))
    if any(len(set(y[groups == g])) > 1 for g in set(groups)):
        assert pairwise_error(y / 2, s, groups) == pytest.approx(reference.pairwise_error(y, s, groups), abs=1e-15)
    else:
        with pytest.raises(ValueError, match="no pair"):
            pairwise_error(y, s, groups)


def test_for_two_grades_it_is_one_minus_the_roc_area():
    random = np.random.default_rng(0)
    y, s = random.integers(0, 2, 5000), random.normal(size=5000).round(1)
    assert pairwise_error(y, s) == pytest.approx(1 - roc_auc_score(y, s), abs=1e-12)


@pytest.mark.parametrize(
    ("y", "s", "groups", "match"),
    [
        ([1, 2], [1.0], None, "2 grades and y_score 1"),
        ([1, np.nan], [1.0, 2.0], None, "y_true must not hold NaN"),
        ([1, 2], [1.0, np.inf], None, "y_score must not"),
        (["a", "b"], [1.0, 2.0], None, "y_true must be an array of numbers"),
        ([[1, 2]], [1.0, 2.0], None, "one dimension"),
        ([1, 2], [1.0, 2.0], [1], "groups"),
        ([], [], None, "no pair"),
    ],
)
def test_wrong_input_is_named(y, s, groups, match):
    with pytest.raises(ValueError, match=match):
        pairwise_error(y, s, groups)
