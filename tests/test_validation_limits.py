"""Shared checks of numbers, choices, groups and weights: the last value that passes, the first that does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mercer._validation import (
    check_choice,
    check_count,
    check_flag,
    check_not_negative,
    check_number,
    check_offsets,
    check_positive,
    check_seed,
    check_sparse,
    check_weights,
    group_order,
    hyphenated,
    is_dask,
    is_partitioned,
    thread_count,
    used_examples,
)

NAN, INF, TINY = float("nan"), float("inf"), np.nextafter(0.0, 1.0)
NO_NUMBERS = [NAN, INF, -INF, True, False, None, "1", 1j, [1.0]]


@pytest.mark.parametrize(
    ("check", "kind", "taken", "refused", "message"),
    [
        (check_number, float, [-1e300, -1, 0, 2.5, np.float32(0.5)], NO_NUMBERS, "x must be a finite number, got"),
        (
            check_positive, float, [TINY, 1, 1e300, np.int8(3)], [*NO_NUMBERS, 0, -0.0, -TINY],
            "x must be a positive finite number, got",
        ),
        (
            check_not_negative, float, [0, 0.0, TINY, 1e300], [*NO_NUMBERS, -TINY, -1],
            "x must be a number of at least 0, got",
        ),
        (check_count, int, [1, 2, np.int64(3)], [*NO_NUMBERS, 0, -1, 1.0], "x must be an integer of at least 1, got"),
        (
            lambda name, value: check_count(name, value, 3), int, [3, 4], [2, 3.0],
            "x must be an integer of at least 3, got",
        ),
        (check_flag, bool, [True, False, np.True_], [0, 1, None, "True"], "x must be True or False, got"),
    ],
    ids=["number", "positive", "not negative", "count", "count from 3", "flag"],
)  # fmt: skip
def test_numbers(check: Callable[..., Any], kind: type, taken: list[Any], refused: list[Any], message: str) -> None:
    for value in taken:
        made = check("x", value)
        assert type(made) is kind
        assert made == value
    for value in refused:
        with pytest.raises(ValueError, match=message):
            check("x", value)


def test_seeds_have_64_bits() -> None:
    assert [check_seed(seed) for seed in (0, 1, 2**64 - 1)] == [0, 1, 2**64 - 1]
    with pytest.raises(ValueError, match=r"seed must be below 2\^64"):
        check_seed(2**64)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0"):
        check_seed(-1)


def test_choices() -> None:
    assert check_choice("x", "b", ("a", "b")) == "b"
    with pytest.raises(ValueError, match="x must be one of 'a', 'b', got 'c'"):
        check_choice("x", "c", ("a", "b"))
    with pytest.raises(ValueError, match="x must be one of 'a', 'b', got an array"):
        check_choice("x", np.array(["a", "b"]), ("a", "b"))
    assert (hyphenated("mean_field"), hyphenated(3)) == ("mean-field", 3)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0: {3, 5, 6, 7}}[process], raising=False)
    counts = {None: 1, 1: 1, 2: 2, 9: 9, -1: 4, -2: 3, -4: 1, -5: 1, -9: 1}
    assert {n_jobs: thread_count(n_jobs) for n_jobs in counts} == counts
    assert type(thread_count(np.int64(2))) is int
    monkeypatch.delattr(os, "sched_getaffinity")
    for cores, wanted in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert thread_count(-1) == wanted
    for wrong in (0, True, False, 1.0, "2"):
        with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
            thread_count(wrong)  # type: ignore[arg-type]


def test_groups() -> None:
    order, offsets = group_order(None, 3)
    assert (order.tolist(), offsets.tolist()) == ([0, 1, 2], [0, 3])
    for groups in (["b", "a", "b", "a"], [2.0, 1.5, 2.0, 1.5], np.array([1, 0, 1, 0])):
        order, offsets = group_order(groups, 4)
        assert (order.tolist(), offsets.tolist()) == ([1, 3, 0, 2], [0, 2, 4])
        assert offsets.dtype == np.int64
    many = np.random.default_rng(0).integers(0, 3, 200)
    order, offsets = group_order(many, 200)
    assert order.tolist() == sorted(range(200), key=lambda i: many[i])
    for groups, message in (
        ([1, 2], "one value for each of the 3 rows"),
        ([[1, 2, 3]], "one value for each of the 3 rows"),
        ([[1], [2], [3]], "one value for each of the 3 rows"),
        ([1.0, NAN, 2.0], "NaN or infinite"),
        ([1.0, INF, 2.0], "NaN or infinite"),
        (np.array([1, "a", None], object), "one kind that can be sorted"),
    ):
        with pytest.raises(ValueError, match=message):
            group_order(groups, 3)


def test_weights() -> None:
    assert check_weights(None, 3) is None
    assert used_examples(None, 3) == (None, None)
    made = check_weights([0, 1, True], 3)
    assert made is not None
    assert (made.tolist(), made.dtype) == ([0.0, 1.0, 1.0], np.float64)
    places, weights = used_examples([0.5, 0.0, 2.0], 3)
    assert places is not None
    assert weights is not None
    assert (places.tolist(), weights.tolist()) == ([0, 2], [0.5, 2.0])
    for wrong, message in (
        (["a", 1, 1], "must hold numbers"),
        ([1, 1], "each of the 3 examples, got shape"),
        ([[1, 1, 1]], "each of the 3 examples, got shape"),
        (1.0, "each of the 3 examples, got shape"),
        ([1, NAN, 1], "finite numbers of at least 0"),
        ([1, INF, 1], "finite numbers of at least 0"),
        ([1, -TINY, 1], "finite numbers of at least 0"),
        ([0, 0, 0], "zero for all examples"),
    ):
        with pytest.raises(ValueError, match=message):
            check_weights(wrong, 3)


def test_parts_of_a_stack_may_begin_and_end_inside() -> None:
    for taken in ([0, 3], [1, 3], [0, 2], [3], [0]):
        assert check_offsets("places", taken, 3, part=True).tolist() == taken
    assert check_offsets("places", [5, 9], part=True).tolist() == [5, 9]
    for refused in ([-1, 3], [0, 4], [2, 1]):
        with pytest.raises(ValueError, match=r"places must lie in 0 \.\. 3 and must not decrease"):
            check_offsets("places", refused, 3, part=True)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_the_last_index_of_a_sparse_matrix_is_one_below_its_size(kind: str) -> None:
    for shape in ((2, 5), (5, 2)):
        X = sp.random(*shape, density=1.0, format=kind, random_state=0)
        assert check_sparse("X", X) is X
        indices = X.col if kind == "coo" else X.indices
        last = shape[1] if kind != "csc" else shape[0]
        assert indices.max() == last - 1
        indices[indices.argmax()] = last
        with pytest.raises(ValueError, match=f"X is not a valid sparse matrix: .* must lie between 0 and {last - 1}"):
            check_sparse("X", X)


def test_blocks_of_a_sparse_matrix_are_counted_by_their_size() -> None:
    X = sp.bsr_matrix(np.ones((4, 9)), blocksize=(2, 3))
    assert check_sparse("X", X) is X
    X.indices[-1] = 3
    with pytest.raises(ValueError, match="indices must lie between 0 and 2"):
        check_sparse("X", X)
    X = sp.bsr_matrix(np.ones((4, 9)), blocksize=(2, 3))
    X.indptr = np.array([0, 3, 3, 6], np.int32)
    with pytest.raises(ValueError, match="indptr must hold 3 values, found 4"):
        check_sparse("X", X)


def test_sparse_vectors_have_one_row() -> None:
    if hasattr(sp, "csr_array"):
        X = sp.coo_array(np.array([0.0, 1.0, 2.0]))
        assert check_sparse("X", X) is X


def test_parts_are_told_by_their_class() -> None:
    delayed = type("Delayed", (), {"__module__": "dask.delayed"})()
    ours = type("Store", (), {"__mercer_partitions__": True})()
    assert [is_dask(X) for X in (delayed, [delayed], [delayed, 1])] == [True, True, True]
    assert [is_dask(X) for X in ([], [[delayed]], [1, delayed], ours, "dask", np.zeros(2))] == [False] * 6
    assert [is_partitioned(X) for X in (delayed, [delayed], ours)] == [True, True, True]
    assert [is_partitioned(X) for X in ([1], np.zeros(2), type("Other", (), {})())] == [False, False, False]
