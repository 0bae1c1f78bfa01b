"""Attributes of images from shares of categories: better than making the shares 0 or 1."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score

import mercer
import mercer.proportions
from mercer.datasets import make_attribute_categories
from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import (
    AttributeModeler,
    BinarizedAttributes,
    ProportionClassifier,
    average_precision_at,
    discretize_proportions,
    proportions_from_similarity,
    transfer_proportions,
)
from mercer.proportions.attributes import _spread

TASK = make_attribute_categories(12, 20, 3, 6)


def modeler(**options):
    return AttributeModeler(ProportionClassifier(random_state=0, **options))


def learners():
    found = [ProportionClassifier(random_state=0)]
    return found + ([None] if hasattr(mercer.proportions, "AlternatingProportionSVM") else [])


@pytest.mark.parametrize("estimator", learners(), ids=["gradient", "default"][: len(learners())])
def test_shares_are_worth_more_than_what_is_left_of_them_at_0_or_1(estimator):
    # Graded proportions, new images of the same categories, several seeds.
    ours, theirs = [], []
    for seed in range(3):
        task = make_attribute_categories(20, 60, 3, 20, low=0.2, high=0.8, random_state=seed)
        learn = np.arange(len(task.X)) % 3 > 0
        given = task.X[learn], task.category[learn], task.proportions
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = AttributeModeler(estimator, random_state=0).fit(*given)
        ours.append(model.score(task.X[~learn], task.attributes[~learn]))
        theirs.append(BinarizedAttributes().fit(*given).score(task.X[~learn], task.attributes[~learn]))
    assert np.mean(ours) > np.mean(theirs) + 0.01
    if estimator is None:  # the large margin makes up for few categories
        assert all(a > b + 0.05 for a, b in zip(ours, theirs, strict=True))


def test_every_attribute_is_a_problem_of_its_own():
    model = modeler().fit(TASK.X, TASK.category, TASK.proportions)
    single = ProportionClassifier(random_state=0).fit(TASK.X, bags=TASK.category, proportions=TASK.proportions[:, 1])
    np.testing.assert_array_equal(model.decision_function(TASK.X)[:, 1], single.decision_function(TASK.X))
    np.testing.assert_array_equal(model.predict(TASK.X)[:, 1], single.predict(TASK.X))
    np.testing.assert_array_equal(model.predict_proba(TASK.X)[:, 1], single.predict_proba(TASK.X)[:, 1])
    by_name = model.predict_attributes(TASK.X, kind="probability")
    np.testing.assert_array_equal(by_name["attribute1"], model.predict_proba(TASK.X)[:, 1])
    ranked = zip(TASK.attributes.T, model.decision_function(TASK.X).T, strict=True)
    expected = [average_precision_score(truth, scores) for truth, scores in ranked]
    assert model.score(TASK.X, TASK.attributes) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("form", ["frame", "dict", "array"])
def test_matrices_are_looked_up_by_the_names_of_categories(form):
    pd = pytest.importorskip("pandas")
    names = np.array([f"animal {k:02d}" for k in range(12)])
    order = np.random.default_rng(0).permutation(12)
    frame = pd.DataFrame(TASK.proportions, index=names, columns=["furry", "big", "fast"]).iloc[order]
    frame.loc["unseen"] = 0.5  # of no use, no harm
    matrix = {
        "frame": frame,
        "dict": {name: row for name, row in zip(frame.index, frame.to_numpy(), strict=True)},
        "array": TASK.proportions,
    }[form]
    model = modeler().fit(TASK.X, names[TASK.category], matrix)
    plain = modeler().fit(TASK.X, TASK.category, TASK.proportions)
    np.testing.assert_array_equal(model.decision_function(TASK.X), plain.decision_function(TASK.X))
    assert model.categories_.tolist() == names.tolist()
    if form == "frame":
        assert list(model.predict_attributes(TASK.X)) == ["furry", "big", "fast"]


def test_unknown_shares_say_nothing():
    P = TASK.proportions.copy()
    P[[0, 5], 0] = np.nan
    model = modeler(tol=1e-9, max_iter=500).fit(TASK.X, TASK.category, P)
    low, high = np.where(np.isnan(P[:, 0]), 0, P[:, 0]), np.where(np.isnan(P[:, 0]), 1, P[:, 0])
    single = ProportionClassifier(random_state=0, tol=1e-9, max_iter=500)
    single.fit(TASK.X, bags=TASK.category, proportions=(low, high))
    np.testing.assert_allclose(model.decision_function(TASK.X)[:, 0], single.decision_function(TASK.X))


def test_kernels_and_maps_are_computed_once_for_all_attributes():
    calls = []

    class Counted(Gaussian):
        def __call__(self, *args, **kwargs):
            calls.append(1)
            return super().__call__(*args, **kwargs)

    model = modeler(kernel=Counted()).fit(TASK.X, TASK.category, TASK.proportions)
    assert len(calls) == 1
    single = ProportionClassifier(kernel=Gaussian(), random_state=0)
    single.fit(TASK.X, bags=TASK.category, proportions=TASK.proportions[:, 0])
    np.testing.assert_allclose(model.decision_function(TASK.X)[:, 0], single.decision_function(TASK.X), atol=1e-6)
    given = AttributeModeler(ProportionClassifier(kernel="precomputed", random_state=0))
    given.fit(Gaussian()(TASK.X), TASK.category, TASK.proportions)
    np.testing.assert_allclose(given.decision_function(Gaussian()(TASK.X)), model.decision_function(TASK.X), atol=1e-6)
    mapped = modeler(map=FourierFeatures(n_components=60, random_state=0))
    mapped.fit(TASK.X, TASK.category, TASK.proportions)
    assert all(one.map is None for one in mapped.estimators_)
    assert mapped.predict(TASK.X).shape == (240, 3)


def test_sparse_rows_and_threads_change_nothing():
    one = modeler().fit(TASK.X, TASK.category, TASK.proportions)
    two = modeler().set_params(n_jobs=2).fit(sp.csr_matrix(TASK.X), TASK.category, TASK.proportions)
    np.testing.assert_allclose(one.decision_function(TASK.X), two.decision_function(TASK.X), atol=1e-3)


def test_baseline_is_a_classifier_of_thresholded_categories():
    model = BinarizedAttributes(0.5, RidgeClassifier()).fit(TASK.X, TASK.category, TASK.proportions)
    y = (TASK.proportions > 0.5)[TASK.category, 2].astype(int)
    plain = RidgeClassifier().fit(TASK.X, y).decision_function(TASK.X)
    np.testing.assert_allclose(model.decision_function(TASK.X)[:, 2], plain)
    mean = BinarizedAttributes("mean").fit(TASK.X, TASK.category, TASK.proportions)
    np.testing.assert_array_equal(mean.matrix_, TASK.proportions > TASK.proportions.mean())
    everywhere = np.column_stack([TASK.proportions[:, 0], np.ones(12)])
    constant = BinarizedAttributes().fit(TASK.X, TASK.category, everywhere)
    assert (constant.predict(TASK.X)[:, 1] == 1).all()
    with pytest.raises(TypeError, match="cannot be written"):
        mean.to_state()


@pytest.mark.parametrize(
    ("kernel", "map"),
    [(None, None), (Linear() ** 2, None), (None, FourierFeatures(n_components=30, random_state=0))],
    ids=["linear", "kernel", "map"],
)
def test_model_files(kernel, map, tmp_path):
    model = modeler(kernel=kernel, map=map, max_iter=500).fit(TASK.X, TASK.category, TASK.proportions)
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.decision_function(TASK.X), model.decision_function(TASK.X))
    assert loaded.estimator.kernel == kernel or repr(loaded.estimator.kernel) == repr(kernel)
    again = clone(loaded).fit(TASK.X, TASK.category, TASK.proportions)
    np.testing.assert_allclose(again.decision_function(TASK.X), model.decision_function(TASK.X))
    meta, arrays = model.to_state()
    meta["fitted"]["estimators_"].pop()
    with pytest.raises(ValueError, match="must have 3 items, found 2"):
        AttributeModeler.from_state(meta, arrays)


# ---------------------------------------------------------------------------------------------------- helpers


def test_shares_from_similarity():
    S = np.array([[0.2, 4.0], [0.6, 0.0], [0.4, 4.0]])
    np.testing.assert_allclose(proportions_from_similarity(S), [[0, 1], [1, 0], [0.5, 1]])
    np.testing.assert_allclose(proportions_from_similarity(S, "max"), [[1 / 3, 1], [1, 0], [2 / 3, 1]])
    np.testing.assert_allclose(proportions_from_similarity(S, "rows").sum(axis=1), 1)
    np.testing.assert_allclose(proportions_from_similarity([[2.0], [2.0]]), [[0.5], [0.5]])
    assert np.isnan(proportions_from_similarity([[np.nan], [1.0], [2.0]])[0, 0])
    for wrong, norm, message in [
        ([[-1.0, 2.0]], "max", "at least 0"),
        ([[np.inf]], "minmax", "infinite"),
        ([1.0, 2.0], "minmax", "shape"),
        ([[1.0]], "softmax", "norm must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            proportions_from_similarity(wrong, norm)


def test_transferred_shares_are_weighted_means():
    rng = np.random.default_rng(0)
    S, P = rng.random((3, 5)), rng.random((5, 4))
    P[1, 2] = np.nan
    found = transfer_proportions(S, P)
    for i in range(3):
        for a in range(4):
            known = ~np.isnan(P[:, a])
            assert found[i, a] == pytest.approx(np.average(P[known, a], weights=S[i, known]))
    assert np.isnan(transfer_proportions([[1.0, 0.0]], [[np.nan], [0.3]])[0, 0])
    for similarity, matrix, message in [
        (S[:, :4], P, "a column for each row"),
        (-S, P, "at least 0"),
        (0 * S, P, "positive value in every row"),
        (S, 2 + P, r"\[0, 1\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            transfer_proportions(similarity, matrix)


def test_transferred_shares_teach_attributes_of_new_categories():
    task = make_attribute_categories(40, 40, 2, 10, low=0.05, high=0.95)
    new = task.category >= 20
    like = np.exp(-8 * np.abs(task.proportions[20:, None] - task.proportions[None, :20]).sum(axis=2))
    guessed = transfer_proportions(like, task.proportions[:20])
    model = modeler().fit(task.X[new], task.category[new], guessed)
    assert model.score(task.X[new], task.attributes[new]) > 0.8


def test_levels_are_the_nearest():
    np.testing.assert_allclose(discretize_proportions([0, 0.16, 0.17, 0.6, 1, np.nan]), [0, 0, 1 / 3, 2 / 3, 1, np.nan])
    for wrong, levels, message in [([1.2], 4, r"\[0, 1\]"), ([0.2], 1, "levels must be")]:
        with pytest.raises(ValueError, match=message):
            discretize_proportions(wrong, levels)


def test_precision_at_all_places_is_average_precision():
    rng = np.random.default_rng(0)
    y, s = rng.integers(2, size=40), rng.normal(size=40)
    assert average_precision_at(y, s, 40) == pytest.approx(average_precision_score(y, s))
    assert average_precision_at([0, 1, 1, 1], [4.0, 3.0, 2.0, 1.0], 2) == pytest.approx((1 / 2) / 2)
    assert average_precision_at([0, 0, 1], [3.0, 2.0, 1.0], 2) == 0
    for y, s, k, message in [
        ([0, 0], [1.0, 2.0], 1, "no relevant row"),
        ([0, 2], [1.0, 2.0], 1, "0 and 1"),
        ([0, 1], [1.0, np.nan], 1, "finite"),
        ([0, 1], [1.0, 2.0], 0, "k must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            average_precision_at(y, s, k)


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("make", [modeler, BinarizedAttributes])
@pytest.mark.parametrize(
    ("X", "category", "matrix", "message"),
    [
        (TASK.X, TASK.category[:5], TASK.proportions, "category must hold one value"),
        (TASK.X, TASK.category, TASK.proportions[:5], r"must have shape \(12 categories"),
        (TASK.X, TASK.category, TASK.proportions + 1, r"must lie in \[0, 1\], but category 0"),
        (TASK.X, TASK.category, np.full((12, 2), np.nan), "known share of every attribute"),
        (TASK.X, TASK.category, {0: [0.5]}, "no entry for category 1"),
        (TASK.X, TASK.category, [["a"]] * 12, "must be numbers"),
        (TASK.X, TASK.category * np.nan, TASK.proportions, "NaN"),
        (TASK.X * np.nan, TASK.category, TASK.proportions, "NaN"),
    ],
)
def test_wrong_data_is_named(make, X, category, matrix, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, category, matrix)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AttributeModeler(LogisticRegression()), "estimator must be a learner from proportions"),
        (AttributeModeler(C=-1.0), "C must be"),
        (modeler(kernel=Gaussian(), map=FourierFeatures()), "a kernel or a map"),
        (BinarizedAttributes(1.5), "threshold must be"),
        (BinarizedAttributes("median"), "threshold must be"),
    ],
)
def test_wrong_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(TASK.X, TASK.category, TASK.proportions)


def test_wrong_use_is_named():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        AttributeModeler().predict(TASK.X)
    model = modeler().fit(TASK.X, TASK.category, TASK.proportions)
    with pytest.raises(ValueError, match="features"):
        model.predict(TASK.X[:, :3])
    with pytest.raises(ValueError, match="kind must be"):
        model.predict_attributes(TASK.X, kind="rank")
    with pytest.raises(ValueError, match="A must hold 0 and 1"):
        model.score(TASK.X, TASK.attributes[:, :2])
    baseline = BinarizedAttributes().fit(TASK.X, TASK.category, TASK.proportions)
    with pytest.raises(AttributeError, match="gives no probabilities"):
        baseline.predict_proba(TASK.X)


def test_the_default_does_not_depend_on_the_scale_of_features():
    task = make_attribute_categories(12, 40, random_state=3)
    held = np.arange(len(task.X)) % 3 == 0
    scores = []
    for scale in (0.03, 1.0, 30.0):
        model = AttributeModeler().fit(scale * task.X[~held], task.category[~held], task.proportions)
        scores.append(model.score(scale * task.X[held], task.attributes[held]))
    binarized = BinarizedAttributes().fit(task.X[~held], task.category[~held], task.proportions)
    assert min(scores) > binarized.score(task.X[held], task.attributes[held])
    assert max(scores) - min(scores) < 0.05


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_scale_of_features_is_their_distance_from_the_mean(make):
    X = np.random.default_rng(0).normal(size=(30, 4)) + 5
    assert _spread(make(X)) == pytest.approx(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    assert _spread(make(np.ones((5, 2)))) == 1.0
