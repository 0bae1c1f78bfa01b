"""Labels of bags by sorting are the best of all labellings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.proportions import Bags, assign_labels
from reference.labellings import bag_cost, best_cost

LOSSES = ["hinge", "squared-hinge"]
SHARE_LOSSES = ["absolute", "squared"]


@st.composite
def bags_with_scores(draw, equal=True):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    n = sum(sizes)
    # Few distinct scores too, so that there are ties.
    score = st.one_of(st.floats(-3, 3, allow_nan=False), st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
    f = np.array(draw(st.lists(score, min_size=n, max_size=n)))
    bounds = draw(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=len(sizes), max_size=len(sizes)))
    exact = draw(st.booleans())
    low = np.array([a if exact else min(a, b) for a, b in bounds])
    high = np.array([a if exact else max(a, b) for a, b in bounds])
    known = np.array(draw(st.lists(st.sampled_from([0, 0, 0, -1, 1]), min_size=n, max_size=n)), np.int8)
    weights = np.ones(n)
    if not equal:
        weights = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n)))
        weights[np.cumsum([0, *sizes[:-1]])] = 1.0  # no bag weighs nothing
    one = st.sampled_from([0.0, 0.5, 1.0, 4.0])
    bag_weight = np.array(draw(st.lists(one, min_size=len(sizes), max_size=len(sizes))))
    if not bag_weight.any():
        bag_weight[0] = 1.0
    ratio = draw(st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e6]))
    return sizes, f, low, high, known, weights, bag_weight, ratio


def parts(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


@settings(max_examples=25, deadline=None)
@given(bags_with_scores(), st.sampled_from(LOSSES), st.sampled_from(SHARE_LOSSES))
def test_cost_is_the_least_of_all_labellings(case, loss, proportion_loss):
    sizes, f, low, high, known, weights, bag_weight, ratio = case
    bags = Bags(np.repeat(np.arange(len(sizes)), sizes), (low, high), bag_weight=bag_weight)
    labels, cost = assign_labels(f, bags, ratio=ratio, loss=loss, proportion_loss=proportion_loss, known=known)
    least = 0.0
    reached = 0.0
    for k, part in enumerate(parts(sizes)):
        # As Bags holds them: the share of the first class is 1 − that of the second.
        case = (bags.lower[k, 1], bags.upper[k, 1], weights[part])
        r = ratio * bag_weight[k]
        least += best_cost(f[part], *case, known[part], r, loss, proportion_loss)
        reached += bag_cost(labels[part], f[part], *case, r, loss, proportion_loss)
    assert cost == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert reached == pytest.approx(cost, rel=1e-9, abs=1e-9)
    assert (labels[known != 0] == known[known != 0]).all()


@pytest.mark.parametrize("proportion_loss", SHARE_LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_bags_of_twelve_reach_the_least_of_4096_labellings(seed, proportion_loss):
    rng = np.random.default_rng(seed)
    f, known = rng.standard_normal(12), np.zeros(12, np.int8)
    share, ratio = rng.random(), 10.0 ** rng.uniform(-1, 3)
    _, cost = assign_labels(f, np.zeros(12, int), [share], ratio=ratio, proportion_loss=proportion_loss)
    least = best_cost(f, share, share, np.ones(12), known, ratio, "hinge", proportion_loss)
    assert cost == pytest.approx(least, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(bags_with_scores(equal=False), st.sampled_from(LOSSES), st.sampled_from(SHARE_LOSSES))
def test_with_weights_of_rows_no_single_flip_helps(case, loss, proportion_loss):
    sizes, f, low, high, known, weights, bag_weight, ratio = case
    bags = Bags(np.repeat(np.arange(len(sizes)), sizes), (low, high), bag_weight=bag_weight, row_weight=weights)
    labels, cost = assign_labels(f, bags, ratio=ratio, loss=loss, proportion_loss=proportion_loss, known=known)
    least = total = 0.0
    for k, part in enumerate(parts(sizes)):
        r = ratio * bag_weight[k]
        rest = (f[part], bags.lower[k, 1], bags.upper[k, 1], weights[part], r, loss, proportion_loss)
        here = bag_cost(labels[part], *rest)
        total += here
        least += best_cost(*rest[:4], known[part], *rest[4:])
        for i in np.flatnonzero(known[part] == 0):
            flipped = labels[part].copy()
            flipped[i] *= -1
            assert bag_cost(flipped, *rest) >= here - 1e-9 * (1 + abs(here))
    assert cost == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert cost >= least - 1e-9 * (1 + least)


def test_labels_from_before_are_kept_where_greed_does_worse():
    rng = np.random.default_rng(0)
    helped = 0
    for _ in range(300):
        f, v = rng.standard_normal(7), rng.integers(1, 6, 7).astype(float)
        common = (f, np.array([0, 7]), np.array([0.5]), np.array([0.5]), np.ones(1), v, np.zeros(7, np.int8))
        best = best_cost(f, 0.5, 0.5, v, np.zeros(7, int), 20.0)
        options = [2 * np.array(y, np.int8) - 1 for y in np.ndindex(*(2,) * 7)]
        optimum = min(options, key=lambda y, f=f, v=v: bag_cost(y, f, 0.5, 0.5, v, 20.0, "hinge", "absolute"))
        costs = []
        for current in (None, optimum.astype(np.int8)):
            _, rows, shares = _core.bags.assign_labels(*common, current, 20.0, "hinge", "absolute", 1)
            costs.append(rows.sum() + 20.0 * shares.sum())
        assert costs[1] == pytest.approx(best)
        helped += costs[0] > best + 1e-9
    assert helped > 10


def test_labels_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(1)
    f, bags = rng.standard_normal(50_000), rng.integers(0, 300, 50_000)
    shares = rng.random(300)
    one, two = (assign_labels(f, bags, shares, ratio=50.0, n_jobs=n) for n in (1, 4))
    np.testing.assert_array_equal(one[0], two[0])
    assert one[1] == two[1]


def test_large_ratios_follow_the_shares_and_small_ones_the_scores():
    f = np.array([3.0, 2.0, 1.0, -1.0])
    assert assign_labels(f, [0, 0, 0, 0], [0.25], ratio=1e6)[0].tolist() == [1, -1, -1, -1]
    assert assign_labels(f, [0, 0, 0, 0], [0.25], ratio=1e-6)[0].tolist() == [1, 1, 1, -1]
    assert assign_labels(f, [0, 0, 0, 0], ([0.0], [0.5]), ratio=1e6)[0].tolist() == [1, 1, -1, -1]


def test_rows_without_a_bag_keep_their_labels():
    labels, cost = assign_labels([2.0, -2.0, 0.5], ["a", None, "a"], [1.0], ratio=10.0, known=[0, 1, 0])
    assert labels.tolist() == [1, 1, 1]
    assert cost == pytest.approx(3.0 + 0.5)
    with pytest.raises(ValueError, match="row 1 has no bag and no known label"):
        assign_labels([2.0, -2.0, 0.5], ["a", None, "a"], [1.0])


@pytest.mark.parametrize(
    ("scores", "bags", "options", "message"),
    [
        ([0.0, np.nan], [0, 0], {}, "scores must be a finite number"),
        ([[0.0], [1.0]], [0, 0], {}, "scores must be a finite number"),
        ([0.0, 1.0, 2.0], [0, 0], {}, "bags must hold one value for each of the 3 rows"),
        ([0.0, 1.0], [0, 0], {"proportions": None}, "proportions must be given"),
        ([0.0, 1.0], [0, 0], {"proportions": [[0.2, 0.3, 0.5]]}, "two classes, but proportions has 3"),
        ([0.0, 1.0], [[0, 0], [1, 0], [1, 1]], {"proportions": [0.5, 1.0]}, "bags that do not overlap"),
        ([0.0, 1.0], [0, 0], {"ratio": -1.0}, "ratio must be"),
        ([0.0, 1.0], [0, 0], {"ratio": np.inf}, "ratio must be"),
        ([0.0, 1.0], [0, 0], {"loss": "log"}, "loss must be one of"),
        ([0.0, 1.0], [0, 0], {"proportion_loss": "log"}, "proportion_loss must be one of"),
        ([0.0, 1.0], [0, 0], {"known": [0, 2]}, "known must hold"),
        ([0.0, 1.0], [0, 0], {"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_arguments_are_named(scores, bags, options, message):
    with pytest.raises(ValueError, match=message):
        assign_labels(scores, bags, **{"proportions": [0.5], **options})


GOOD = {
    "scores": np.zeros(3), "offsets": np.array([0, 2]), "low": np.array([0.5]), "high": np.array([0.5]),
    "bag_weight": np.ones(1), "row_weight": np.ones(3), "known": np.array([0, 0, 1], np.int8), "current": None,
    "ratio": 1.0, "loss": "hinge", "proportion_loss": "absolute", "threads": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("scores", np.array([0.0, np.inf, 0.0]), "scores must be finite"),
        ("offsets", np.array([1, 2]), "start with 0"),
        ("offsets", np.array([0, 0]), "every bag needs an instance"),
        ("offsets", np.array([0, 4]), "beyond the scores"),
        ("low", np.array([0.6]), "low <= high"),
        ("low", np.array([np.nan]), "low <= high"),
        ("high", np.array([0.5, 0.5]), "one entry for each bag"),
        ("bag_weight", np.array([-1.0]), "bag_weight"),
        ("row_weight", np.array([0.0, 0.0, 1.0]), "row_weight of a bag"),
        ("row_weight", np.array([-1.0, 3.0, 1.0]), "at least 0"),
        ("row_weight", np.ones(2), "one entry for each score"),
        ("known", np.array([0, 0, 0], np.int8), "without a bag needs a known label"),
        ("known", np.array([0, 3, 1], np.int8), "known must be"),
        ("current", np.array([1, 0, 1], np.int8), "current must be -1 or 1"),
        ("current", np.array([1, 1], np.int8), "one entry for each score"),
        ("ratio", np.nan, "ratio must be"),
        ("loss", "log", "loss must be"),
        ("proportion_loss", "log", "proportion_loss must be"),
        ("threads", 0, "threads must be"),
    ],
)
def test_the_core_checks_everything(name, value, message):
    with pytest.raises(ValueError, match=message):
        _core.bags.assign_labels(**{**GOOD, name: value})
