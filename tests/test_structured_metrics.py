"""Structured losses, boundaries and clusterings: hand-worked cases, and the definitions written out slowly."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.cluster import pair_confusion_matrix

from mercer.metrics import (
    ClusterScore,
    b_cubed_score,
    boundary_f1,
    hamming_loss,
    muc_score,
    pairwise_score,
    token_accuracy,
    zero_one_loss,
)

labels = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)


# ---------------------------------------------------------------------------------------------------------- losses


def test_hamming_loss_by_hand():
    y, z = [list("abc"), list("a"), []], [list("abd"), list("b"), []]
    assert hamming_loss(y, z) == 2 / 4
    assert hamming_loss(y, z, normalize=False) == 2 / 3
    assert hamming_loss([np.array([1, 2])], [np.array([1, 3])]) == 0.5


@given(labels)
def test_hamming_loss_is_one_minus_token_accuracy(pair):
    y, z = pair
    assert hamming_loss([y], [z]) == pytest.approx(1 - token_accuracy([y], [z]))


def test_zero_one_loss_by_hand():
    tree = ("S", ("NP", "dog"), ("VP", "barks"))
    assert zero_one_loss([tree, "x"], [("S", ("NP", "dog"), ("VP", "bites")), "x"]) == 0.5
    assert zero_one_loss([[1, 2], [1]], [[1, 2], [1, 2]]) == 0.5
    assert zero_one_loss([np.eye(2), 3], [np.eye(2), 4]) == 0.5
    assert zero_one_loss([{"a": 1}, {1, 2}], [{"a": 1}, {2, 1}]) == 0.0


@pytest.mark.parametrize("function", [hamming_loss, zero_one_loss, b_cubed_score])
def test_nothing_at_all_has_no_score(function):
    with pytest.raises(ValueError, match="holds no"):
        function([], [])


@pytest.mark.parametrize("function", [hamming_loss, boundary_f1, pairwise_score, muc_score, b_cubed_score])
def test_lengths_that_differ_are_named(function):
    with pytest.raises(ValueError, match="1 sequences, but y_pred has 2"):
        function([[1]], [[1], [2]])
    with pytest.raises(ValueError, match="sequence 1 has 1 labels in y_true, but 2 in y_pred"):
        function([[1]], [[1, 2]])
    with pytest.raises(ValueError, match="list of label sequences"):
        function([1], [1])


def test_zero_one_loss_names_numbers_of_outputs_that_differ():
    with pytest.raises(ValueError, match="1 outputs, but y_pred has 2"):
        zero_one_loss([[1]], [[1], [2]])


# ------------------------------------------------------------------------------------------------------ boundaries


@pytest.mark.parametrize(
    ("true", "predicted", "tolerance", "expected"),
    [
        ("aabb", "aabb", 0, 1.0),
        ("aabb", "abbb", 0, 0.0),
        ("aabb", "abbb", 1, 1.0),
        ("aaaa", "aaaa", 0, 1.0),
        ("aaaa", "aabb", 0, 0.0),
        ("aabbcc", "aabbbb", 0, 2 / 3),
        ("abab", "aaab", 1, 2 * 1 / 4),
    ],
)
def test_boundary_f1_by_hand(true, predicted, tolerance, expected):
    assert boundary_f1([list(true)], [list(predicted)], tolerance=tolerance) == pytest.approx(expected)


@given(labels, st.integers(0, 3))
def test_boundaries_are_paired_as_well_as_any_pairing_does(pair, tolerance):
    a, b = ([t for t in range(1, len(y)) if y[t] != y[t - 1]] for y in pair)
    if len(a) > len(b):
        a, b = b, a
    best = max(
        (sum(abs(x - y) <= tolerance for x, y in zip(a, chosen, strict=False)) for chosen in permutations(b, len(a))),
        default=0,
    )
    expected = 2 * best / (len(a) + len(b)) if a or b else 1.0
    assert boundary_f1([pair[0]], [pair[1]], tolerance=tolerance) == pytest.approx(expected)


@pytest.mark.parametrize("tolerance", [-1, 0.5, True, None])
def test_a_tolerance_must_be_a_count(tolerance):
    with pytest.raises(ValueError, match="tolerance must be"):
        boundary_f1([[1]], [[1]], tolerance=tolerance)


# ------------------------------------------------------------------------------------------------------ clusterings


def clusters(y):
    return [{i for i, c in enumerate(y) if c == name} for name in set(y)]


def slow_muc(true, predicted):
    """Recall: of the links each true cluster needs, those the predicted clusters keep."""
    needed = kept = 0
    for cluster in clusters(true):
        parts = [cluster & other for other in clusters(predicted) if cluster & other]
        needed += len(cluster) - 1
        kept += len(cluster) - len(parts)
    return kept / needed if needed else 1.0


def slow_b_cubed(true, predicted):
    """Recall: item by item."""
    shares = []
    for i in range(len(true)):
        own = next(c for c in clusters(true) if i in c)
        guess = next(c for c in clusters(predicted) if i in c)
        shares.append(len(own & guess) / len(own))
    return sum(shares) / len(shares)


def slow_pairs(true, predicted):
    """Recall: pair by pair."""
    together = [(i, j) for i, j in combinations(range(len(true)), 2) if true[i] == true[j]]
    return sum(predicted[i] == predicted[j] for i, j in together) / len(together) if together else 1.0


@pytest.mark.parametrize(
    ("fast", "slow"),
    [(muc_score, slow_muc), (b_cubed_score, slow_b_cubed), (pairwise_score, slow_pairs)],
    ids=["muc", "b-cubed", "pairs"],
)
@given(pair=labels)
def test_cluster_scores_equal_their_definitions(fast, slow, pair):
    y, z = pair
    score = fast([y], [z])
    assert score.recall == pytest.approx(slow(y, z))
    assert score.precision == pytest.approx(slow(z, y))
    renamed = [f"c{c}" for c in z]
    assert fast([y], [renamed]) == score
    assert fast([y], [y]).f1 == 1.0


def test_the_worked_example_of_five_two_five():
    # Truth {1..5} {6, 7} {8..12}; the answer joins the first and the last.
    true = [0] * 5 + [1] * 2 + [2] * 5
    joined = [0] * 5 + [1] * 2 + [0] * 5
    assert muc_score([true], [joined]) == ClusterScore.from_shares(9 / 10, 1.0)
    score = b_cubed_score([true], [joined])
    assert score.precision == pytest.approx((10 * 0.5 + 2) / 12)
    assert score.recall == 1.0


def test_pairs_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    y, z = random.integers(0, 4, 30), random.integers(0, 5, 30)
    (_, extra), (missed, both) = pair_confusion_matrix(y, z)
    score = pairwise_score([y.tolist()], [z.tolist()])
    assert score.precision == pytest.approx(both / (both + extra))
    assert score.recall == pytest.approx(both / (both + missed))


def test_sets_are_counted_together():
    y, z = [[0, 0], [0, 1, 1]], [[0, 1], [0, 1, 1]]
    assert pairwise_score(y, z) == ClusterScore.from_shares(1.0, 0.5)
    assert muc_score(y, z) == ClusterScore.from_shares(1.0, 0.5)
    assert b_cubed_score(y, z).recall == pytest.approx((0.5 + 0.5 + 1 + 1 + 1) / 5)


def test_links_of_single_things_are_all_right():
    """Where one side has no links, none is wrong and none is missed: a share of 1, not 0 and not more."""
    alone, joined = [[0, 1, 2]], [[0, 0, 0]]
    assert muc_score(alone, alone) == ClusterScore.from_shares(1.0, 1.0)
    assert muc_score(alone, joined) == ClusterScore.from_shares(0.0, 1.0)
    assert muc_score(joined, alone) == ClusterScore.from_shares(1.0, 0.0)
