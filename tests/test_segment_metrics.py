"""Scores of segmentations against their definitions, written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.metrics import boundary_cost, boundary_f1, boundary_score, pk, segment_f1, window_diff
from reference import prose as slow


@st.composite
def segmentations(draw, count=2):
    n = draw(st.integers(2, 14))
    return n, *(sorted({0, *draw(st.sets(st.integers(1, n - 1)))}) for _ in range(count))


@given(segmentations(), st.integers(1, 4))
def test_window_scores_equal_the_definition(case, k):
    n, a, b = case
    if n <= k:
        return
    assert window_diff([a], [b], [n], window=k) == np.mean(slow.window_diff(a, b, n, k))
    assert pk([a], [b], [n], window=k) == np.mean(slow.pk(a, b, n, k))


def test_windows_of_all_sequences_count_alike():
    cases = [([0, 3], [0, 2], 6), ([0], [0, 5], 9)]
    true, predicted, lengths = (list(part) for part in zip(*cases, strict=True))
    wrong = [x for a, b, n in cases for x in slow.window_diff(a, b, n, 2)]
    assert window_diff(true, predicted, lengths, window=2) == np.mean(wrong)


def test_the_default_window_is_half_the_mean_segment():
    true, predicted = [[0, 4, 8]], [[0, 5, 8]]
    assert window_diff(true, predicted, [12]) == window_diff(true, predicted, [12], window=2)
    assert pk(true, predicted, [12]) == pk(true, predicted, [12], window=2)


@given(segmentations())
def test_window_scores_are_0_for_the_truth_and_pk_is_at_most_window_diff(case):
    n, a, b = case
    assert window_diff([a], [a], [n], window=1) == pk([a], [a], [n], window=1) == 0
    for k in range(1, min(n, 4)):
        assert pk([a], [b], [n], window=k) <= window_diff([a], [b], [n], window=k)


@given(segmentations())
def test_boundary_scores_count_inner_starts(case):
    n, a, b = case
    score = boundary_score([a], [b], [n])
    inner = [set(a) - {0}, set(b) - {0}]
    assert (score.support, score.predicted, score.correct) == (len(inner[0]), len(inner[1]), len(inner[0] & inner[1]))
    assert score.accuracy == pytest.approx(np.mean([(t in a) == (t in b) for t in range(1, n)]))
    if inner[0] or inner[1]:
        assert score.f1 == pytest.approx(boundary_f1([slow.segment_of(a, n)], [slow.segment_of(b, n)]))


def test_boundary_cost_is_the_size_of_the_symmetric_difference():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        a, b = (np.flatnonzero(np.append(True, rng.random(9) < 0.4)) for _ in range(2))
        cost = boundary_cost(a, b)
        assert cost == len(a) + len(b) - 2 * len(np.intersect1d(a, b)) == boundary_cost(b, a)
        assert cost == len(a) + sum(1 - 2 * (t in a) for t in b)  # the form that decomposes over predicted boundaries
        assert (cost == 0) == np.array_equal(a, b)


def test_boundary_cost_may_exceed_the_number_of_boundaries():
    assert boundary_cost([0], [0, 1, 2, 3]) == 3
    assert boundary_cost([0, 2], [0, 2], labels=("ab", "ac")) == 2
    assert boundary_cost([0, 2], [0, 2], labels=("ab", "ab")) == 0


def test_segments_by_hand():
    true = [[(0, 2, "a"), (2, 4, "a"), (4, 6, "b")]]
    found = [[(0, 2, "a"), (2, 6, "b")]]
    score = segment_f1(true, found)
    assert (score.support, score.predicted, score.correct) == (3, 2, 1)
    assert segment_f1([list("aabb")], [[(0, 2, "x"), (2, 4, "b")]]).correct == 1
    assert segment_f1([list("aabb")], [list("ccdd")], labelled=False).f1 == 1.0
    assert segment_f1([np.array([1, 1, 2])], [np.array([1, 1, 2])]).f1 == 1.0
    assert segment_f1([[]], [[]]).support == 0


@pytest.mark.parametrize("score", [boundary_score, window_diff, pk])
def test_bad_starts_are_named(score):
    for bad, message in [
        ([1, 3], "must begin with 0"),
        ([0, 3, 3], "must rise"),
        ([0, 9], "starts at 9"),
        ([0.5, 2], "list of integers"),
        ([], "must begin with 0"),
        ([[0]], "list of integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            score([[0, 2]], [bad], [8])
    with pytest.raises(ValueError, match="as many"):
        score([[0]], [[0]], [3, 4])
    with pytest.raises(ValueError, match="sequence is empty"):
        score([[0]], [[0]], [0])
    with pytest.raises(ValueError):
        score([[0]], [[0]], [1])


def test_bad_arguments_of_segment_scores():
    with pytest.raises(ValueError, match="window must be"):
        window_diff([[0]], [[0]], [4], window=0)
    with pytest.raises(ValueError, match="gap or overlap"):
        segment_f1([[(0, 2, "a"), (3, 4, "a")]], [list("aaaa")])
    with pytest.raises(ValueError, match="gap or overlap"):
        segment_f1([[(0, 2, "a"), (1, 4, "a")]], [list("aaaa")])
    with pytest.raises(ValueError, match="another position"):
        segment_f1([list("aaa")], [list("aaaa")])
    with pytest.raises(ValueError, match="list of labels"):
        segment_f1(["aaa"], ["aaa"])
    with pytest.raises(ValueError, match="holds 1 labels"):
        boundary_cost([0, 2], [0], labels=("a", "a"))
