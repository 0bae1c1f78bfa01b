"""Patterns: the (feature, column) pairs that occur, as CSR and as keys, and weights carried between them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from mercer.data.sequences import Rows
from mercer.structures import Chain, patterns


def pairs_of(pattern, n_features, n_columns) -> set[tuple[int, int]]:
    return {(int(k) // n_columns, int(k) % n_columns) for k in patterns.keys(pattern, n_features, n_columns)}


def slow_pairs(matrix: np.ndarray, columns: np.ndarray, n_columns: int) -> set[tuple[int, int]]:
    """Feature f with column c if they occur in one row; −1 is any column, −2 none; half of them means all."""
    found = set()
    for f in range(matrix.shape[1]):
        here = columns[matrix[:, f] != 0]
        own = set(here[here >= 0].tolist())
        if (here == -1).any() or (own and len(own) >= max(1.0, patterns.FILL * n_columns)):
            own = set(range(n_columns))
        found |= {(f, c) for c in own}
    return found


@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 25, 70_000])
@pytest.mark.parametrize("unknown", [False, True])
def test_observed_pairs_are_those_that_occur_together(n_columns, unknown):
    rng = np.random.default_rng(n_columns)
    matrix = random_array((60, 40), density=0.05, rng=rng).toarray()
    columns = rng.integers(-2 if unknown else 0, n_columns, size=60).astype(np.int32)
    pattern = patterns.observed(Rows.from_matrix(csr_matrix(matrix)), columns, n_columns)
    assert pairs_of(pattern, 40, n_columns) == slow_pairs(matrix, columns, n_columns)
    if pattern is not None:
        starts, listed = pattern
        assert (starts.dtype, listed.dtype) == (np.uint32, np.uint16 if n_columns <= 1 << 16 else np.int32)
        assert starts[0] == 0
        assert starts[-1] == len(listed)
        for a, b in itertools.pairwise(starts):
            assert (np.diff(listed[a:b]) > 0).all()


def test_dense_rows_and_full_patterns_need_no_list():
    assert patterns.observed(Rows.from_matrix(np.ones((3, 2))), np.zeros(3, np.int32), 4) is None
    full = patterns.observed(Rows.from_matrix(csr_matrix(np.ones((4, 2)))), np.arange(4, dtype=np.int32), 4)
    assert full is None


def test_keys_and_patterns_are_inverse_where_no_row_is_filled():
    found = np.array([0, 3, 11, 24, 25])  # of 6 features and 5 columns: features 0, 2, 4, 5
    pattern = patterns.from_keys(found, 6, 5)
    np.testing.assert_array_equal(patterns.keys(pattern, 6, 5), found)
    np.testing.assert_array_equal(patterns.keys(None, 2, 3), np.arange(6))


def test_weights_move_to_where_their_pair_went():
    """Feature f, column c of three becomes column place[c] of five; pairs not in the target are left out."""
    old = np.array([0, 2, 4, 8])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    place = np.array([4, 1, 0])
    at = patterns.moved(old, place, 5)
    assert at.tolist() == [4, 0, 6, 10]
    target = np.array([0, 3, 4, 10])
    np.testing.assert_array_equal(patterns.spread(weights, at, target), [2.0, 0.0, 1.0, 4.0])
    assert len(patterns.spread(weights, at, np.array([], dtype=np.int64))) == 0


@pytest.mark.parametrize("edges", [0, 3])
def test_a_chain_carries_weights_over_to_new_labels_and_features(edges):
    rng = np.random.default_rng(0)
    old = Chain(2, 3, n_edge_features=edges, pattern=(np.array([0, 1, 1, 3]), np.array([1, 0, 1], np.int32)))
    new = Chain(3, 5, n_edge_features=edges + 1 if edges else 0)
    w = rng.normal(size=old.n_weights)
    place = np.array([2, 0])
    out = new.carry_over(w, old, place)

    def dense(chain, weights):
        nodes = np.zeros(chain.n_features * chain.n_labels)
        nodes[chain.keys("nodes")] = weights[chain.slices["nodes"]]
        C = chain.n_labels
        trans = weights[chain.slices["transitions"]].reshape(C, C)
        own = weights[chain.slices["edges"]].reshape(-1, C, C) if chain.n_edge_features else np.zeros((0, C, C))
        return nodes.reshape(-1, C), trans, weights[chain.slices["start"]], weights[chain.slices["end"]], own

    before, after = dense(old, w), dense(new, out)
    np.testing.assert_array_equal(after[0][:3][:, place], before[0])
    np.testing.assert_array_equal(after[1][np.ix_(place, place)], before[1])
    np.testing.assert_array_equal(after[2][place], before[2])
    np.testing.assert_array_equal(after[3][place], before[3])
    np.testing.assert_array_equal(after[4][:edges][:, place[:, None], place], before[4])
    assert np.count_nonzero(out) == old.n_weights
