"""Correlation clustering: every search against all partitions, and the bound above all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer.clustering import Clustering, correlation_clustering
from mercer.structures.correlation import canonical, improved, is_integral, n_items, relaxed_partition, square, together
from reference.partitions import best, partitions, value

BELL = [1, 1, 2, 5, 15, 52, 203, 877]


def random_affinity(seed: int, n: int, spread: float = 1.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    y = random.integers(0, max(2, n // 3), n)
    noise = random.normal(size=n * (n - 1) // 2)
    return square(np.where(together(y) > 0, 1.0, -1.0) + spread * noise, n)


def test_the_reference_lists_every_partition_once():
    for n, count in enumerate(BELL):
        found = list(partitions(n))
        assert len(found) == len(set(found)) == count
        assert all(tuple(canonical(y)) == y for y in found)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_searches_against_all_partitions(seed, n):
    A = random_affinity(seed, n, spread=1.5)
    _, top = best(A)
    exact, relaxed, greedy = (correlation_clustering(A, decode) for decode in ("exact", "lp", "greedy"))
    for found in (exact, relaxed, greedy):
        assert found.value == pytest.approx(value(A, tuple(found.labels)), abs=1e-9)
        assert tuple(canonical(found.labels)) == tuple(found.labels)
        assert found.value <= top + 1e-9
    assert exact.value == pytest.approx(top, abs=1e-9)
    assert exact.gap == 0.0
    assert relaxed.bound >= top - 1e-6
    assert greedy.bound == np.inf
    x, _ = relaxed_partition(A[np.triu_indices(n, 1)], n)
    if is_integral(x):
        assert relaxed.value == pytest.approx(top, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6).flatmap(lambda n: arrays(np.int64, n * (n - 1) // 2, elements=st.integers(-2, 2))))
def test_ties_and_zeros_do_not_disturb_the_searches(a):
    # Whole numbers are full of ties.
    A = square(a.astype(float), n_items(len(a)))
    _, top = best(A)
    assert correlation_clustering(A, "exact").value == pytest.approx(top)
    assert correlation_clustering(A, "lp").bound >= top - 1e-6
    assert correlation_clustering(A, "greedy").value <= top + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_beyond_ten_items_the_integral_program_lies_between_greedy_and_the_bound(seed):
    A = random_affinity(seed, 14)
    exact, relaxed, greedy = (correlation_clustering(A, decode) for decode in ("exact", "lp", "greedy"))
    assert greedy.value <= exact.value + 1e-6
    assert relaxed.value <= exact.value + 1e-6
    assert exact.value <= relaxed.bound + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_local_search_never_loses_and_ends_where_no_move_helps(seed):
    A = random_affinity(seed, 9, spread=2.0)
    start = np.random.default_rng(seed).integers(0, 4, 9)
    end = improved(A, start)
    assert value(A, tuple(end)) >= value(A, tuple(start)) - 1e-9
    for i in range(9):
        for c in range(10):
            moved = end.copy()
            moved[i] = c
            assert value(A, tuple(moved)) <= value(A, tuple(end)) + 1e-9


def test_a_clear_block_structure_is_found_by_all():
    y = np.array([0, 0, 1, 2, 1, 0, 2, 2])
    A = np.where(y[:, None] == y, 1.0, -1.0)
    for decode in ("greedy", "lp", "exact"):
        np.testing.assert_array_equal(correlation_clustering(A, decode).labels, y)
    assert correlation_clustering(A, "lp").gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("decode", ["greedy", "lp", "exact"])
def test_one_item_and_none(decode):
    assert correlation_clustering(np.zeros((1, 1)), decode).labels.tolist() == [0]
    assert correlation_clustering(np.zeros((0, 0)), decode).labels.tolist() == []


@pytest.mark.parametrize(
    ("affinity", "decode", "message"),
    [
        (np.zeros((2, 3)), "lp", "square"),
        (np.zeros(3), "lp", "square"),
        ([[0, 1], [2, 0]], "lp", "symmetric"),
        ([[0, np.nan], [np.nan, 0]], "lp", "finite"),
        (np.zeros((2, 2)), "best", "decode must be one of"),
    ],
)
def test_wrong_affinities_are_refused(affinity, decode, message):
    with pytest.raises(ValueError, match=message):
        correlation_clustering(affinity, decode)


def test_the_diagonal_does_not_matter():
    A = np.array([[np.nan, 1.0], [1.0, np.inf]])
    assert correlation_clustering(A) == Clustering(pytest.approx(np.array([0, 0])), 1.0, 1.0)
