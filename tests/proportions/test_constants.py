"""Models beside the answer that looks at no row: one share for all bags, one class for all rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer.proportions import (
    AlternatingProportionSVM,
    BagCV,
    Bags,
    ConstantAnswerWarning,
    ConvexProportionSVM,
    InverseCalibration,
    MeanMap,
    ProportionClassifier,
    bag_score,
    make_bags,
    proportion_risk,
)
from mercer.proportions.selection import constant_shares

LEARNERS = [
    AlternatingProportionSVM(random_state=0),
    ConvexProportionSVM(),
    InverseCalibration(),
    MeanMap(),
    ProportionClassifier(n_init=1, max_iter=100, random_state=0),
    ProportionClassifier(scorer="mlp", n_init=1, max_iter=30, random_state=0),
]
NAMES = ["alternating", "convex", "inverse calibration", "mean map", "gradient", "network"]


def rows(seed, apart, n=200, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 3)) + apart * np.eye(3)[y], y


def told(fit):
    """Messages of the warnings that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if issubclass(w.category, ConstantAnswerWarning)]


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_noise_is_told_from_held_out_bags_and_easy_rows_are_not(learner):
    grid = {"C": [0.1, 1.0]} if hasattr(learner, "C") else {"alpha": [0.01, 1.0]}
    X, y = rows(0, 0.0)
    search = BagCV(learner, grid, random_state=0)
    messages = told(lambda: search.fit(X, bags=make_bags(y, 8, random_state=0)))
    assert len(messages) == 1
    assert "the shares of held-out bags are met no better" in messages[0]
    assert search.best_score_ <= search.constant_score_ < 0
    assert search.majority_score_ <= search.constant_score_
    easy, classes = rows(0, 4.0)
    assert not told(lambda: search.fit(easy, bags=make_bags(classes, 8, random_state=0)))
    assert search.best_score_ > search.constant_score_


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_errors_on_training_bags_are_those_of_the_predictions(learner, classes, tmp_path):
    X, y = rows(0, 4.0, classes=classes)
    bags = make_bags(y, 8, random_state=0)
    learner.fit(X, bags=bags)
    assert learner.bag_error_ == pytest.approx(-bag_score(learner, X, bags))
    assert learner.bag_error_ < learner.constant_bag_error_ < learner.majority_bag_error_
    frequent = np.bincount(y).argmax()
    everywhere = np.eye(classes)[np.full(len(bags), frequent)]
    assert learner.majority_bag_error_ == pytest.approx(proportion_risk(everywhere, bags))
    mercer.save(learner, tmp_path / "model")
    assert mercer.load(tmp_path / "model").constant_bag_error_ == learner.constant_bag_error_
    learner.fit(X, y)  # without bags there is nothing to compare
    assert not hasattr(learner, "bag_error_")


def test_training_bags_are_judged_where_there_is_no_search():
    X, y = rows(3, 0.0)
    bags = make_bags(y, 8, random_state=0)
    model = MeanMap(10.0)
    messages = told(lambda: model.fit(X, bags=bags))
    assert len(messages) == (model.bag_error_ >= model.constant_bag_error_) == 1
    assert "training bags" in messages[0]
    X, y = rows(3, 4.0)
    assert not told(lambda: MeanMap(0.1).fit(X, bags=make_bags(y, 8, random_state=0)))


def test_equal_shares_cannot_be_beaten_and_are_no_reason_to_warn():
    X, y = rows(0, 4.0)
    order = np.argsort(y, kind="stable")
    number = np.empty(200, int)
    number[order] = np.arange(200) % 20
    shares = np.full(20, y.mean())
    assert not told(lambda: AlternatingProportionSVM(C=10.0, random_state=0).fit(X, bags=number, proportions=shares))


@pytest.mark.parametrize("seed", range(10))
def test_one_share_for_all_bags_is_the_best_of_many(seed):
    rng = np.random.default_rng(seed)
    bags = Bags(np.repeat(np.arange(9), 2), rng.random(9), bag_weight=rng.random(9) + 0.1)
    best = proportion_risk(np.tile(constant_shares(bags), (9, 1)), bags)
    assert best <= min(proportion_risk(np.full(9, share), bags) for share in np.linspace(0, 1, 201)) + 1e-12


def test_searches_with_scores_of_ones_own_are_not_judged():
    X, y = rows(0, 0.0)
    search = BagCV(MeanMap(), {"alpha": [0.1]}, scoring=lambda model, X, bags: 0.0, random_state=0)
    assert not told(lambda: search.fit(X, bags=make_bags(y, 8, random_state=0)))
    assert not hasattr(search, "constant_score_")
