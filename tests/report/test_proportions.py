"""Pictures of shares and of decisions show what they are given and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mercer.report import plot_decision, plot_proportions


def test_every_bag_is_a_circle_that_says_its_name_and_shares() -> None:
    svg = plot_proportions([0.0, 0.5, 1.0], [0.1, 0.5, 0.9], ["a", "<b>", "c"], [1, 4, 9])
    assert svg.count("<circle") == 3
    assert "&lt;b&gt;: 0.5 known, 0.5 predicted" in svg


def test_several_classes_have_a_circle_each() -> None:
    assert plot_proportions(np.eye(3), np.full((3, 3), 1 / 3)).count("<circle") == 9


@pytest.mark.parametrize(
    ("truth", "predicted", "options", "message"),
    [
        ([0.5], [0.5, 0.5], {}, "same shape"),
        ([1.5], [0.5], {}, "truth must contain shares"),
        ([0.5], [np.nan], {}, "predicted must contain shares"),
        ([0.5], [0.5], {"names": ["a", "b"]}, "a name for each of the 1 bags"),
        ([0.5], [0.5], {"sizes": [0]}, "positive"),
        ([], [], {}, "same shape"),
    ],
)
def test_wrong_shares_are_named(truth: list, predicted: list, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_proportions(truth, predicted, **options)


def test_decisions_are_a_picture_under_the_points() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    svg = plot_decision(model, X, np.arange(30) % 2)
    assert svg.count("<image") == 1
    assert svg.count("<circle") == 16
    with pytest.raises(ValueError, match="points of the plane"):
        plot_decision(model, X[:, :1])
    with pytest.raises(ValueError, match="a value for each"):
        plot_decision(model, X, [1])
