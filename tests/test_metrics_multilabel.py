"""Scores of label sets against hand-made examples and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sk

from mercer.metrics import (
    label_propensities,
    multilabel_scores,
    one_error,
    precision_at_k,
    propensity_scored_precision_at_k,
    tag_score,
)

Y = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]])
P = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]])
S = np.array([[0.9, 0.1, 0.5], [0.2, 0.3, 0.6], [0.8, 0.4, 0.1], [0.3, 0.2, 0.1]])


def test_tag_scores_of_an_example_by_hand():
    # Precisions 2/2, 1/1, 0/1; recalls 2/2, 1/2, 0/1.
    score = tag_score(Y, P)
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == pytest.approx(0.5)
    assert score.f1 == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))


def test_a_label_never_given_has_precision_0_and_one_never_there_recall_0():
    assert tag_score([[1, 0]], [[0, 0]]) == tag_score([[0, 1]], [[0, 0]])
    assert tag_score([[1, 0]], [[1, 0]]).precision == 0.5


def test_rankings_of_an_example_by_hand():
    assert one_error(Y, S) == pytest.approx(1 / 3)
    assert precision_at_k(Y, S, 2) == pytest.approx((2 + 1 + 2) / 6)
    p = np.array([0.5, 0.25, 1.0])
    # Best two of each row: labels 0, 2 | 2, 1 | 0, 1. Weights 2, 4, 1.
    assert propensity_scored_precision_at_k(Y, S, p, 2) == pytest.approx((3 + 4 + 6) / (3 + 4 + 6))
    assert propensity_scored_precision_at_k(Y, S, p, 1) == pytest.approx((2 + 0 + 2) / (2 + 4 + 4))


def test_propensities_equal_their_formula():
    n_t = np.array([1, 10, 50])
    labels = (np.arange(100)[:, None] < n_t).astype(int)
    c = (np.log(100) - 1) * 2.5**0.55
    assert np.allclose(label_propensities(labels), 1 / (1 + c * (n_t + 1.5) ** -0.55))


def test_scores_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, given, scores = rng.random((50, 7)) < 0.3, rng.random((50, 7)) < 0.3, rng.random((50, 7))
    truth[:, 0] |= ~truth.any(axis=1)
    found = multilabel_scores(truth, sp.csr_matrix(given), scores)
    assert found.hamming_loss == pytest.approx(sk.hamming_loss(truth, given))
    assert found.subset_accuracy == pytest.approx(sk.accuracy_score(truth, given))
    for name, average in (("micro_f1", "micro"), ("macro_f1", "macro"), ("example_f1", "samples")):
        assert getattr(found, name) == pytest.approx(
            sk.f1_score(truth, given, average=average, zero_division=1.0)
            if average == "samples"
            else sk.f1_score(truth, given, average=average, zero_division=0.0)
        )
    assert found.ranking_loss == pytest.approx(sk.label_ranking_loss(truth, scores))
    assert found.coverage == pytest.approx(sk.coverage_error(truth, scores) - 1)


def test_rankings_leave_out_rows_without_labels():
    assert one_error(np.r_[Y, [[0, 0, 0]]], np.r_[S, [[1, 2, 3]]]) == one_error(Y, S)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tag_score(Y, P[:2]), "shape"),
        (lambda: tag_score(2 * Y, P), "0 and 1"),
        (lambda: tag_score([1, 0], [1, 0]), "matrix"),
        (lambda: one_error(Y, S[:, :2]), "shape"),
        (lambda: one_error(Y, np.full(Y.shape, np.nan)), "NaN"),
        (lambda: one_error(0 * Y, S), "no row with a label"),
        (lambda: precision_at_k(Y, S, 4), "k is 4"),
        (lambda: propensity_scored_precision_at_k(Y, S, [0, 1, 1]), "propensities"),
        (lambda: tag_score(np.zeros((0, 3)), np.zeros((0, 3))), "empty"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
