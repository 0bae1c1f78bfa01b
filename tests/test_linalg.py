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


@pytest.mark.parametrize("most", [5, 64, 65, 100, 129, 140, 150])
def test_pivots_beyond_the_first_rows_that_were_allotted(most):
    K = low_rank(150, 140)
    L, pivots, sums = _linalg.pivoted_cholesky(np.diag(K), lambda p: K[:, p], most, spent(K))
    rank = min(most, 140)
    assert (L.shape, len(pivots), len(set(pivots.tolist())), len(sums)) == ((150, rank), rank, rank, rank + 1)
    np.testing.assert_allclose((L @ L.T)[pivots][:, pivots], K[pivots][:, pivots], atol=1e-8)
    assert sums[-1] == pytest.approx(np.trace(K - L @ L.T), abs=1e-7)


def test_pivoting_ends_where_nothing_is_left():
    L, pivots, sums = _linalg.pivoted_cholesky(np.zeros(3), lambda p: np.zeros(3), 3, lambda largest, total: False)
    assert (L.shape, pivots.tolist(), sums.tolist()) == ((3, 0), [], [0.0])
    diagonal = np.array([4.0, 9.0])
    L, pivots, sums = _linalg.pivoted_cholesky(
        diagonal, lambda p: np.diag(diagonal)[p], 9, lambda largest, total: False
    )
    assert (L.tolist(), pivots.tolist(), sums.tolist()) == ([[0.0, 2.0], [3.0, 0.0]], [1, 0], [13.0, 4.0, 0.0])


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-6])
def test_conjugate_gradients_take_no_step_more_than_the_tolerance_needs(preconditioned, tol):
    H, right = low_rank(20, 30), np.random.default_rng(1).normal(size=20)
    options = {"precondition": lambda r: r / np.diag(H)} if preconditioned else {}
    asked, steps = [], []

    def product(z):
        asked.append(z)
        return H @ z

    def residual(solution):
        return np.linalg.norm(right - H @ solution) / np.linalg.norm(right)

    found = _linalg.conjugate_gradients(product, right, tol, stepped=steps.append, **options)
    assert residual(found) <= tol * (1 + 1e-6)
    assert len(asked) == len(steps)
    np.testing.assert_allclose(sum(step * z for step, z in zip(steps, asked, strict=True)), found)
    before = _linalg.conjugate_gradients(lambda z: H @ z, right, tol, len(steps) - 1, **options)
    assert residual(before) > tol
    for a, b in ((0, 1), (0, 2), (1, 2)):  # directions are conjugate
        if b < len(asked):
            assert asked[a] @ H @ asked[b] == pytest.approx(0.0, abs=1e-8 * np.abs(H).max())


def test_an_exact_preconditioner_needs_one_step():
    H, right = low_rank(20, 30), np.random.default_rng(1).normal(size=20)
    steps = []
    found = _linalg.conjugate_gradients(
        lambda z: H @ z, right, 1e-8, precondition=lambda r: np.linalg.solve(H, r), stepped=steps.append
    )
    np.testing.assert_allclose(found, np.linalg.solve(H, right), rtol=1e-6)
    assert steps == pytest.approx([1.0])


def test_conjugate_gradients_stop_after_twice_the_unknowns_and_twenty():
    rng, asked = np.random.default_rng(0), []

    def product(z):  # never the same matrix twice, so that the residual stays
        asked.append(1)
        return rng.uniform(0.5, 2.0, size=4) * z

    _linalg.conjugate_gradients(product, np.ones(4), 0.0)
    assert len(asked) == 28
    asked.clear()
    _linalg.conjugate_gradients(product, np.ones(4), 0.0, 3)
    assert len(asked) == 3


def test_conjugate_gradients_of_nothing_ask_for_nothing():
    def product(z):
        raise AssertionError("not needed")

    assert _linalg.conjugate_gradients(product, np.zeros(3), 1e-6).tolist() == [0.0, 0.0, 0.0]


def test_the_place_of_an_asymmetry():
    assert _linalg.asymmetry(np.eye(3)) == (0.0, 0, 0)
    K = np.zeros((3, 3))
    K[2, 1] = 0.5
    assert _linalg.asymmetry(K) == (0.5, 1, 2)
    K[1, 0] = 0.5  # equally far, and found later or earlier: a place of the worst either way
    assert _linalg.asymmetry(K)[0] == 0.5
