"""What the baselines do on public data; generated data have the same claims elsewhere."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mercer.datasets import load_adult, load_proportion_set
from mercer.proportions import (
    AlternatingProportionSVM,
    Bags,
    IllPosedWarning,
    InverseCalibration,
    MajorityBag,
    MeanMap,
    bag_proportions,
    make_bags,
)

pytestmark = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


def test_occupations_tell_incomes_better_than_their_majorities():
    data = load_adult()
    held = np.random.default_rng(0).random(len(data)) < 0.2
    group, y = data.groups["occupation"], data.y
    bags = Bags(group[~held], bag_proportions(y[~held], group[~held]))
    baseline = 1 - MajorityBag().fit(bags).score(group[held], y[held])
    assert 0.23 < baseline < 0.26
    for model in (InverseCalibration(C=1.0), MeanMap(0.1), AlternatingProportionSVM(random_state=0)):
        assert 1 - model.fit(data.X[~held], bags=bags).score(data.X[held], y[held]) < 0.21


@pytest.mark.parametrize("size", [8, 32])
@pytest.mark.parametrize("model", [InverseCalibration(), MeanMap()], ids=["inverse calibration", "mean map"])
def test_votes_in_bags_at_the_prior_are_flagged_as_ill_posed(model, size):
    X, y = load_proportion_set("vote")
    bags = make_bags(y, size, random_state=0)
    with pytest.warns(IllPosedWarning):
        model.fit(X, bags=bags, proportions=np.full(len(bags), y.mean()))
    assert set(model.predict(X)) == {0}


@pytest.mark.parametrize(("size", "least"), [(8, 0.92), (32, 0.85)])
def test_votes_are_told_apart_where_all_bags_are_alike(size, least):
    X, y = load_proportion_set("vote")
    rng, ones = np.random.default_rng(0), round(0.386 * size)
    groups = rng.permutation(np.flatnonzero(y == 1)), rng.permutation(np.flatnonzero(y == 0))
    count = min(len(groups[0]) // ones, len(groups[1]) // (size - ones))
    rows = [part[: count * n].reshape(count, n) for part, n in zip(groups, (ones, size - ones), strict=True)]
    model = AlternatingProportionSVM(random_state=0).fit(
        X[np.hstack(rows).ravel()], bags=np.repeat(np.arange(count), size), proportions=np.full(count, ones / size)
    )
    assert model.score(X, y) > least


@pytest.mark.parametrize("model", [InverseCalibration(10.0), MeanMap(0.1)], ids=["inverse calibration", "mean map"])
def test_votes_in_small_bags_are_learnt(model):
    X, y = load_proportion_set("vote")
    assert model.fit(X, bags=make_bags(y, 4, random_state=0)).score(X, y) > 0.88
