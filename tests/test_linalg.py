"""Shared linear algebra against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _linalg


def low_rank(n: int, rank: int, seed: int = 0) -> np.ndarray:
    V = np.random.default_rng(seed).normal(size=(n, rank))
    return V @ V.T


def spent(K: np.ndarray):
    return lambda largest, total: largest <= 1e-11 * np.diag(K).max()


def test_both_pivoted_choleskys_choose_the_same_pivots_and_rebuild_the_matrix():
    K = low_rank(40, 7)
    L, pivots, sums = _linalg.pivoted_cholesky(np.diag(K), lambda p: K[:, p], 40, spent(K))
    whole, order = _linalg.pivoted_cholesky_of(K, 1e-11 * np.diag(K).max())
    assert L.shape == whole.shape == (40, 7)
    np.testing.assert_array_equal(pivots, order)
    np.testing.assert_allclose(L, whole, atol=1e-7)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-9)
    for rank in range(8):
        assert sums[rank] == pytest.approx(np.trace(K - L[:, :rank] @ L[:, :rank].T), abs=1e-8)


def test_a_matrix_of_low_rank_is_factored_and_one_of_higher_rank_is_not():
    K = low_rank(30, 4)
    factor = _linalg.low_rank_factor(K, 4, spent(K))
    assert factor.shape == (30, 4)
    np.testing.assert_allclose(factor @ factor.T, K, atol=1e-9)
    assert _linalg.low_rank_factor(K, 3, spent(K)) is None
    assert _linalg.low_rank_factor(np.eye(5), 5, spent(np.eye(5))).shape == (5, 5)
    assert _linalg.low_rank_factor(np.zeros((5, 5)), 3, spent(np.zeros((5, 5)))).shape == (5, 0)


def test_conjugate_gradients_solve_a_system():
    H, right = low_rank(20, 30), np.random.default_rng(1).normal(size=20)
    found = _linalg.conjugate_gradients(lambda z: H @ z, right, 1e-12)
    np.testing.assert_allclose(found, np.linalg.solve(H, right), rtol=1e-6)


def test_conjugate_gradients_keep_what_they_have_where_curvature_vanishes():
    H = np.diag([2.0, 3.0, 0.0])
    found = _linalg.conjugate_gradients(lambda z: H @ z, np.array([2.0, 3.0, 1.0]), 1e-9)
    assert np.isfinite(found).all()
    assert found @ np.array([2.0, 3.0, 1.0]) > 0
    flat = np.array([0.0, 0.0, 1.0])
    np.testing.assert_array_equal(_linalg.conjugate_gradients(lambda z: H @ z, flat, 1e-9), np.zeros(3))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_conjugate_gradients_do_not_depend_on_the_unit(scale):
    H, right = low_rank(20, 30), np.random.default_rng(1).normal(size=20)
    found = _linalg.conjugate_gradients(lambda z: scale * (H @ z), right, 1e-12)
    np.testing.assert_allclose(scale * found, np.linalg.solve(H, right), rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 600])
def test_asymmetry_is_that_of_the_worst_pair(n):
    K = low_rank(n, 3)
    assert _linalg.asymmetry(K)[0] == (np.abs(K - K.T).max() if n else 0.0)
    if n < 2:
        return
    for i, j in ((0, n - 1), (n - 1, 0), (n // 2, n // 2 - 1)):
        changed = K.copy()
        changed[i, j] += 7.0
        largest, *where = _linalg.asymmetry(changed)
        assert largest == np.abs(changed - changed.T).max()
        assert where == sorted((i, j))
