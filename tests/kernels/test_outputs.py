"""Kernels of label sets: definite after the repair, and as their formulas say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.multilabel import LinearOutput, LogOddsOutput, PolynomialOutput

CODES = ("centred", "signs", "indicator")


def labels(n: int = 60, T: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, T)) < [0.05, 0.2, 0.5, 0.5, 0.8, 0.3]).astype(int)
    Y[:, 3] = Y[:, 2] ^ (rng.random(n) < 0.1)
    return Y


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("kernel", [LinearOutput, PolynomialOutput, LogOddsOutput])
def test_kernels_are_positive_semi_definite_with_ones_on_the_diagonal(kernel, code):
    Y = labels()
    K = kernel(code=code).for_labels(sp.csr_matrix(Y))(Y)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10
    coded = Y.any(axis=1) if code == "indicator" else np.ones(len(Y), bool)
    assert np.allclose(np.diag(K)[coded], 1)


def test_codes_are_what_they_say():
    Y = labels()
    for code, V in (("centred", Y - Y.mean(axis=0)), ("signs", 2.0 * Y - 1), ("indicator", 1.0 * Y)):
        lengths = np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
        assert np.allclose(LinearOutput(code=code).for_labels(Y).features(Y), V / lengths)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("kernel", [LinearOutput, PolynomialOutput, LogOddsOutput])
def test_sparse_products_are_those_of_dense_codes(kernel, code):
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((50, 30)) < 0.08).astype(float))
    fitted = kernel(code=code).for_labels(Y)
    V = fitted.features(Y)
    assert np.allclose(fitted.gram(Y), fitted.of_features(V, V))
    K, alpha = rng.normal(size=(50, 50)), rng.random(50)
    assert np.allclose(fitted.expand(K, alpha, Y), K @ (alpha[:, None] * V))


def test_log_odds_equal_their_formula_and_the_repair_is_reported():
    Y = labels(200)
    Q, smallest = LogOddsOutput(smoothing=0.5).matrix(Y)
    for r, s in ((0, 1), (2, 3), (4, 4)):
        a, b = Y[:, r], Y[:, s]
        counts = [np.sum((a == i) & (b == j)) + 0.5 for i, j in ((1, 1), (0, 0), (1, 0), (0, 1))]
        assert Q[r, s] == pytest.approx(np.log(counts[0] * counts[1] / (counts[2] * counts[3])))
    assert smallest == pytest.approx(np.linalg.eigvalsh(Q)[0])
    assert Q[2, 3] > 3
    clipped = LogOddsOutput().for_labels(sp.csr_matrix(Y)).factor
    values, vectors = np.linalg.eigh(Q)
    assert np.allclose(clipped @ clipped.T, (vectors * np.maximum(values, 0)) @ vectors.T)
    squared = LogOddsOutput(repair="square").for_labels(sp.csr_matrix(Y)).factor
    assert np.allclose(squared @ squared.T, Q @ Q)


def test_log_odds_of_independent_labels_vanish_as_rows_grow():
    rng = np.random.default_rng(0)
    sizes = []
    for n in (200, 20_000):
        Q, _ = LogOddsOutput().matrix(rng.random((n, 5)) < 0.3)
        sizes.append(np.abs(Q - np.diag(np.diag(Q))).max())
    assert sizes[1] < 0.15 < sizes[0]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("degree", "coef0"), [(1, 2.0), (2, 0.0), (2, 1.0), (3, 0.5)])
def test_a_polynomial_is_of_what_two_sets_share_without_what_all_of_them_share(degree, coef0, code):
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((30, 5)) < 0.4).astype(float))
    weights = rng.random(30)
    kernel = PolynomialOutput(degree, coef0, code=code).for_labels(Y, weights)
    V = {"centred": Y - weights @ Y / weights.sum(), "signs": 2 * Y.toarray() - 1, "indicator": Y.toarray()}[code]
    V = np.asarray(V) / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
    expected = (V @ V.T + coef0) ** degree - coef0**degree
    if code == "centred" and degree > 1:
        share = weights / weights.sum()
        expected = expected - expected @ share[:, None] - share @ expected + share @ expected @ share
    lengths = np.sqrt(np.maximum(np.diag(expected), 1e-300))
    expected = expected / lengths[:, None] / lengths
    assert np.allclose(kernel(Y), expected)
    assert np.allclose(kernel.gram(Y), expected)
    assert np.allclose(kernel(Y[:7], Y[5:]), expected[:7, 5:])
    assert kernel.is_linear == (degree == 1)
    assert np.linalg.eigvalsh(expected)[0] > -1e-9


@pytest.mark.parametrize("coef0", [-1.0, 1e7])
def test_a_constant_out_of_range_is_named(coef0):
    with pytest.raises(ValueError, match="coef0"):
        PolynomialOutput(2, coef0).for_labels(sp.csr_matrix(np.eye(3)))
