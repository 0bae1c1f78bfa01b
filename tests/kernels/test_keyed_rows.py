"""Rows under 64-bit keys: products by lists and by dense columns equal the definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mercer import _core
from mercer.kernels import _keyed
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import Work


def random_counts(seed: int, n: int, n_keys: int, whole: bool = True) -> list[dict[int, float]]:
    """Rows over keys of which some are frequent and most are rare; the first row is empty."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, 2**64, size=n_keys, dtype=np.uint64)
    share = 1.0 / np.arange(1, n_keys + 1)
    rows: list[dict[int, float]] = [{}]
    for _ in range(n - 1):
        held = keys[random.random(n_keys) < share]
        rows.append({int(key): float(random.integers(1, 9)) if whole else random.normal() for key in held})
    return rows


def inner(a: dict[int, float], b: dict[int, float]) -> float:
    return sum(value * b[key] for key, value in a.items() if key in b)


@pytest.mark.parametrize("gain", [0, 30, 10**9], ids=["lists", "both", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 3])
def test_products_equal_the_definition(gain, dtype, threads, monkeypatch):
    monkeypatch.setattr(_keyed, "DENSE_GAIN", gain)
    left, right = random_counts(0, 70, 200), random_counts(0, 41, 200)
    A, B = KeyedRows.from_counts(left), KeyedRows.from_counts(right)
    work = Work(threads, dtype)
    K = A.gram(B, work)
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, [[inner(a, b) for b in right] for a in left])
    np.testing.assert_array_equal(A.gram(None, work), [[inner(a, b) for b in left] for a in left])
    np.testing.assert_array_equal(A.diag(), [inner(a, a) for a in left])


def test_the_result_does_not_depend_on_threads():
    rows = KeyedRows.from_counts(random_counts(1, 120, 500, whole=False))
    np.testing.assert_array_equal(rows.gram(None, Work(1)), rows.gram(None, Work(4)))
    np.testing.assert_array_equal(K := rows.gram(None, Work(2)), K.T)


def test_cut_rows_give_parts_of_the_matrix():
    A, B = KeyedRows.from_counts(random_counts(2, 30, 90)), KeyedRows.from_counts(random_counts(3, 20, 90))
    K, L = A.gram(None, Work()), A.gram(B, Work())
    np.testing.assert_array_equal(A[5:20].gram(A[:7], Work()), K[5:20, :7])
    np.testing.assert_array_equal(A[5:20][3:9].gram(None, Work()), K[8:14, 8:14])
    np.testing.assert_array_equal(A[5:20].gram(B[2:3], Work()), L[5:20, 2:3])
    np.testing.assert_array_equal(B.gram(A[4:6], Work()), L.T[:, 4:6])
    assert A[3:3].gram(B, Work()).shape == (0, 20)
    again = pickle.loads(pickle.dumps(A[5:20]))
    np.testing.assert_array_equal(again.gram(None, Work()), K[5:20, 5:20])


def test_few_dense_columns_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(_keyed, "DENSE_BYTES", 8 * 2 * 40 * 3)
    counts = random_counts(4, 40, 100)
    rows = KeyedRows.from_counts(counts)
    np.testing.assert_array_equal(rows.gram(None, Work()), [[inner(a, b) for b in counts] for a in counts])


def test_rows_without_keys():
    rows = KeyedRows.from_counts([{}, {}])
    np.testing.assert_array_equal(rows.gram(None, Work()), np.zeros((2, 2)))
    np.testing.assert_array_equal(rows.diag(), [0.0, 0.0])
    assert matrices([rows])[0].shape == (2, 1)


def test_matrices_share_their_columns():
    left, right = random_counts(5, 12, 40), random_counts(5, 9, 40)
    F, G = matrices([KeyedRows.from_counts(left), KeyedRows.from_counts(right)])
    np.testing.assert_array_equal((F @ G.T).toarray(), [[inner(a, b) for b in right] for a in left])


def test_columns_follow_the_order_of_keys():
    keys = np.random.default_rng(0).integers(0, 2**64, size=1000, dtype=np.uint64)
    keys = np.concatenate([keys, keys[:300], np.array([0, 2**64 - 1, 1], np.uint64)])
    columns, n = _core.kernels.key_columns(keys)
    every, expected = np.unique(keys, return_inverse=True)
    assert n == len(every)
    np.testing.assert_array_equal(columns, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left_offsets": np.array([0, 5])}, "end with the number of entries"),
        ({"left_offsets": np.array([0, 2, 1])}, "decrease"),
        ({"left_columns": np.array([0, 9], np.int32)}, "out of range"),
        ({"left_values": np.array([1.0, np.nan])}, "finite"),
        ({"out": np.zeros((2, 2))}, "shape"),
        ({"right_offsets": np.array([0, 0])}, "right rows"),
        ({"threads": 0}, "threads"),
    ],
)
def test_compiled_products_check_their_arrays(changes, message):
    arguments = {
        "left_offsets": np.array([0, 2]),
        "left_columns": np.array([0, 1], np.int32),
        "left_values": np.ones(2),
        "right_offsets": None,
        "right_columns": None,
        "right_values": None,
        "dense": np.full(2, -1, np.int32),
        "out": np.zeros((1, 1)),
        "threads": 1,
    }
    with pytest.raises(ValueError, match=message):
        _core.kernels.keyed_products(**{**arguments, **changes})
