"""The default C: units of features and costs do not matter, and what was used is recorded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import mercer
from mercer.data.sequences import Rows
from mercer.datasets import make_digit_codes, make_regions
from mercer.labeling import GraphLabeler
from mercer.learning import Hinge, Log, Slack, SquaredHinge
from mercer.learning.strength import mean_square, resolve_strength
from mercer.segmentation import Segmenter
from mercer.structures import CostMatrix
from mercer.tagging import Tagger

MARGINS = ["hinge", "squared-hinge", "slack", "relative-margin"]


@pytest.fixture(scope="module")
def codes():
    return make_digit_codes(12, 1, random_state=4)


@pytest.mark.parametrize("form", ["dense", "sparse", "names"])
def test_the_mean_square_is_that_of_the_rows(form):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 1.0, 0.0]])
    if form == "names":
        X = (X > 0).astype(float)
    rows = Rows.from_matrix(X if form == "dense" else csr_matrix(X))
    assert mean_square(rows) == pytest.approx((X**2).sum() / 3)
    assert mean_square(X if form == "dense" else csr_matrix(X)) == pytest.approx((X**2).sum() / 3)


def test_rows_without_features_have_a_strength():
    assert resolve_strength("auto", Hinge(), np.zeros((3, 2))) == 1.0
    assert resolve_strength("auto", Hinge(), np.zeros((0, 2))) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "slack"])
def test_the_unit_of_the_features_does_not_matter(loss, codes):
    plain, scaled = (
        GraphLabeler(loss, edge_weights="none", bias=False, tol=1e-4, random_state=0).fit(
            [(factor * x, np.zeros((0, 2), int)) for x in codes.X_train[:6]], codes.y_train[:6]
        )
        for factor in (1.0, 1000.0)
    )
    assert pytest.approx(plain.C_ / 1e6) == scaled.C_
    np.testing.assert_allclose(1000.0 * scaled.coef_, plain.coef_, atol=0.03 * np.abs(plain.coef_).max())


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "slack"])
def test_the_unit_of_the_cost_does_not_matter(loss, codes):
    """Weights grow with the cost under margin rescaling and stay under slack rescaling, whose margin is 1."""
    costs, X, y = 1.0 - np.eye(10), codes.X_train[:6], codes.y_train[:6]
    plain, scaled = (
        Tagger(loss, cost=CostMatrix(factor * costs), tol=1e-4, random_state=0).fit(X, y) for factor in (1.0, 20.0)
    )
    factor = 1.0 if loss == "slack" else 20.0
    np.testing.assert_allclose(scaled.coef_, factor * plain.coef_, atol=0.03 * factor * np.abs(plain.coef_).max())


def test_the_default_is_better_than_one_where_features_are_many():
    codes = make_digit_codes(200, 200, random_state=1)
    scores = [
        Tagger("hinge", C=C, random_state=0).fit(codes.X_train, codes.y_train).score(codes.X_test, codes.y_test)
        for C in ("auto", 1.0)
    ]
    assert scores[0] > scores[1] + 0.005


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "hybrid"])
def test_likelihoods_have_a_strength_of_one(loss, codes):
    tagger = Tagger(loss, tol=0.5).fit(codes.X_train[:5], codes.y_train[:5])
    assert tagger.C_ == 1.0


@pytest.mark.parametrize("loss", MARGINS)
def test_auto_is_the_number_it_records(loss, codes, tmp_path):
    X, y = codes.X_train[:12], codes.y_train[:12]
    tagger = Tagger(loss, random_state=0, tol=0.05).fit(X, y)
    given = Tagger(loss, C=tagger.C_, random_state=0, tol=0.05).fit(X, y)
    np.testing.assert_array_equal(given.coef_, tagger.coef_)
    assert given.C_ == tagger.C_
    mercer.save(tagger, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    assert (loaded.C, loaded.C_) == ("auto", tagger.C_)


def test_partial_fits_go_on_with_the_strength_of_the_first(codes):
    tagger = Tagger("hinge", "passive-aggressive").partial_fit(codes.X_train[:5], codes.y_train[:5], list("0123456789"))
    first = tagger.C_
    tagger.partial_fit([10.0 * x for x in codes.X_train[5:10]], codes.y_train[5:10])
    assert first == tagger.C_


def test_graphs_and_segments_follow_the_same_rule(tmp_path):
    task = make_regions(12)
    labeler = GraphLabeler("hinge", tol=0.1).fit(task.X, task.y)
    nodes = np.concatenate([graph[0] for graph in task.X])
    assert pytest.approx(2 / ((nodes**2).sum() / len(nodes) + 1)) == labeler.C_  # and the constant
    X, y = [np.eye(3)[[0, 0, 1, 2]], np.eye(3)[[1, 1, 2]]] * 2, [["a", "a", "b", "b"], ["b", "b", "b"]] * 2
    segmenter = Segmenter(loss="hinge").fit(X, y)
    assert segmenter.C_ == 2.0
    for model in (labeler, segmenter):
        mercer.save(model, tmp_path / "model")
        assert mercer.load(tmp_path / "model").C_ == model.C_


def test_a_given_strength_is_kept():
    for loss in (Log(), Hinge(), SquaredHinge(), Slack()):
        assert resolve_strength(0.3, loss, np.ones((2, 2))) == 0.3


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "one", None, True])
@pytest.mark.parametrize("estimator", [Tagger, Segmenter, GraphLabeler])
def test_other_strengths_are_refused(estimator, C):
    X = [(np.ones((2, 1)), [(0, 1)])] if estimator is GraphLabeler else [np.ones((2, 1))]
    with pytest.raises(ValueError, match="C must be a positive finite number or 'auto'"):
        estimator(C=C).fit(X, [["a", "b"]])
