"""Proportions from whole bags in parts: the model of all rows in memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mercer.data import Partitions, Store
from mercer.maps import FourierFeatures
from mercer.proportions import AlternatingProportionSVM, Bags, InverseCalibration, MeanMap


def problem():
    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    names = np.sort([f"b{i:02d}" for i in random.integers(12, size=120)])
    return random.normal(size=(120, 3)) + 1.5 * y[:, None], y, names


X, Y, NAMES = problem()
ROWS = {name: np.flatnonzero(name == NAMES) for name in np.unique(NAMES)}
SHARES = {name: float(Y[rows].mean()) for name, rows in ROWS.items()}


def parts():
    """Four parts, one of them empty."""
    cuts = [0, *(int(np.searchsorted(NAMES, f"b{i:02d}")) for i in (4, 4, 9)), len(X)]
    return [
        (X[a:b], Bags(NAMES[a:b], {name: SHARES[name] for name in np.unique(NAMES[a:b])}) if a < b else None)
        for a, b in pairwise(cuts)
    ]


MODELS = {
    "mean map": lambda: MeanMap(),
    "laplacian": lambda: MeanMap(laplacian=0.5),
    "threshold": lambda: MeanMap(threshold="shares"),
    "calibration": lambda: InverseCalibration(),
    "map": lambda: InverseCalibration(map=FourierFeatures(20, gamma=0.3, random_state=0)),
}


@pytest.mark.parametrize("name", MODELS)
def test_parts_and_stores_give_the_model_of_memory(name, tmp_path):
    store = Store(tmp_path / "bags.store")
    for part in parts():
        if part[1] is not None:
            store.append(*part)
    whole, here, there = (MODELS[name]() for _ in range(3))
    whole.fit(X, bags=Bags(NAMES, SHARES))
    here.fit(Partitions(part for part in parts() if part[1] is not None))
    np.testing.assert_allclose(MODELS[name]().fit(Partitions(parts())).coef_, here.coef_, rtol=1e-9)
    there.fit(store)
    np.testing.assert_allclose(here.coef_, whole.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert here.bag_error_ == pytest.approx(whole.bag_error_)
    assert here.n_features_in_ == whole.n_features_in_ == 3
    np.testing.assert_array_equal(there.predict(store), whole.predict(X))


def test_several_classes():
    y = np.arange(120) % 3
    rows = X + 2.0 * np.eye(3)[y]
    shares = {name: np.bincount(y[own], minlength=3) / len(own) for name, own in ROWS.items()}
    cut = int(np.searchsorted(NAMES, "b05"))
    split = [
        (rows[part], Bags(NAMES[part], {name: shares[name] for name in np.unique(NAMES[part])}))
        for part in (slice(cut), slice(cut, None))
    ]
    whole = MeanMap().fit(rows, bags=Bags(NAMES, shares))
    np.testing.assert_allclose(MeanMap().fit(Partitions(split)).coef_, whole.coef_, rtol=1e-6, atol=1e-9)


def one(name="a", rows=4, columns=3):
    return X[:rows, :columns], Bags([name] * rows, {name: 0.5})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([one(), (X[:0], None), one()], "bag 'a' is in partitions 0 and 2: keep bags whole"),
        ([one(), one("b", columns=2)], "partition 1: 2 features, where partition 0 has 3"),
        ([(X[:4], Y[:4])], "partition 0: y must be Bags with proportions"),
        ([(X[:4], Bags(["a"] * 4))], "partition 0: MeanMap requires proportions"),
        ([(X[:4], Bags(["a", "a", "a", None], {"a": 0.5}))], "partition 0: row 3 is in no bag"),
        ([one(), (X[:4], Bags(["b"] * 4, {"b": [0.2, 0.3, 0.5]}))], "partitions 0 and 1 have other classes"),
        ([one(), (np.full((4, 3), np.nan), one("b")[1])], "partition 1: .*NaN"),
        ([(X[:0], None)], "all partitions are empty"),
    ],
)
def test_parts_that_do_not_fit_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        MeanMap().fit(Partitions(bad))


def test_what_cannot_learn_from_parts_says_why():
    for model, message in (
        (MeanMap(kernel="linear"), "a kernel compares the rows of all bags"),
        (AlternatingProportionSVM(), "the shares of all bags are met together"),
    ):
        with pytest.raises(TypeError, match=message):
            model.fit(Partitions(parts()))
    with pytest.raises(TypeError, match="each partition holds its own bags"):
        MeanMap().fit(Partitions(parts()), bags=NAMES)
