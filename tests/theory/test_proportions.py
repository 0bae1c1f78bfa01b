"""Bounds on bags and instances have their values, and hold when simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mercer.theory.proportions import (
    adversarial_pure_bag,
    bag_accuracy,
    bags_needed,
    instance_error,
    markov_tolerance,
    min_bag_size,
    monotone_from,
    proportion_gap,
    pure_bag_bound,
)
from reference.proportions import best_stump, stump_predictions, stumps

# ---------------------------------------------------------------------------------------------------- bags


def test_proportions_of_bags_suffice_to_learn_a_threshold():
    """P30: the best of all stumps on 200 bags of 10."""
    rng = np.random.default_rng(0)
    bags = rng.normal(size=(200, 10))
    found, risk = best_stump(bags, (bags > 0.3).mean(axis=1))
    assert risk == 0.0
    fresh = rng.normal(size=5000)
    assert np.mean(stump_predictions(found, fresh) != (fresh > 0.3)) < 0.05


def test_numbers_of_bags_by_hand():
    assert bags_needed(10, 10, 0.1, 0.05) == 935_575
    assert bags_needed(10, 1000, 0.1, 0.05) == math.ceil(6400 * (20 * math.log(120_000) + math.log(80)))
    assert bags_needed(10, 1000, 0.1, 0.05) == pytest.approx(1.5e6, rel=0.02)


def test_bags_grow_with_the_logarithm_of_their_size():
    counts = [bags_needed(3, r, 0.2, 0.1) for r in (1, 10, 100, 1000)]
    steps = np.diff(counts)
    assert np.abs(steps - 64 / 0.04 * 6 * math.log(10)).max() <= 1


def test_the_gap_at_the_number_of_bags_needed_is_below_eps():
    for vc, r, eps in itertools.product((1, 10), (1, 50), (0.1, 0.3)):
        assert proportion_gap(vc, bags_needed(vc, r, eps, 0.05), r, 0.05) <= eps


def test_the_gap_by_hand():
    assert proportion_gap(2, 100, 5, 0.1) == pytest.approx(
        math.sqrt(0.32 * (2 * math.log(2 * math.e * 500 / 2) + math.log(40)))
    )
    assert proportion_gap(1000, 1, 2, 0.1) == pytest.approx(math.sqrt(32 * (4 * math.log(2) + math.log(40))))


@pytest.mark.parametrize(("n_bags", "r"), [(100, 5), (1000, 5), (1000, 20)])
def test_the_largest_deviation_of_stumps_stays_below_the_gap(n_bags, r):
    """P31: thresholds on uniform numbers, truth at 1/2, so that |h̄ − ȳ| is a binomial share of a known error."""
    rng = np.random.default_rng(0)
    thresholds = np.linspace(0, 1, 41)
    expected = np.abs(thresholds - 0.5)  # E|h̄ − ȳ|: mistakes of one stump are all of one kind
    allowed = proportion_gap(2, n_bags, r, 0.05)
    for _ in range(20):
        x = rng.random((n_bags, r))
        truth = (x > 0.5).mean(axis=1)
        training = [np.abs((x > t).mean(axis=1) - truth).mean() for t in thresholds]
        assert np.max(expected - training) <= allowed


def test_stumps_label_n_numbers_in_two_n_ways():
    x = np.random.default_rng(0).normal(size=7)
    assert len({tuple(stump_predictions(stump, x)) for stump in stumps(x)}) == 14


def test_a_mean_error_bounds_large_ones():
    rng = np.random.default_rng(0)
    gaps = rng.beta(0.3, 10, size=100_000)
    for delta in (0.01, 0.1, 0.5):
        assert np.mean(gaps <= markov_tolerance(float(gaps.mean()), delta)) >= 1 - delta


# ---------------------------------------------------------------------------------------------------- instances


@pytest.mark.parametrize("beta", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("r", [5, 20, 50])
def test_bag_accuracy_equals_simulation(r, eps, beta):
    """P32, with a prior of 0.3: false positives and negatives are equally likely, since the priors are equal."""
    rng = np.random.default_rng(r)
    wrong = rng.multinomial(r, [beta / 2, beta / 2, 1 - beta], size=200_000)
    simulated = np.mean(np.abs(wrong[:, 0] - wrong[:, 1]) <= eps * r + 1e-9)
    assert abs(bag_accuracy(beta, r, eps) - simulated) < 0.006


def test_the_prior_does_not_matter():
    rng = np.random.default_rng(1)
    for prior in (0.2, 0.5):
        y = rng.random((100_000, 10)) < prior
        flip = rng.random(y.shape)
        # P(h = 1) = P(y = 1): β/2 of all instances go from each class to the other.
        h = np.where(y, flip >= 0.1 / prior, flip < 0.1 / (1 - prior))
        simulated = np.mean(np.abs(h.mean(axis=1) - y.mean(axis=1)) <= 0.1 + 1e-9)
        assert abs(bag_accuracy(0.2, 10, 0.1) - simulated) < 0.006


def test_bag_accuracy_equals_enumeration():
    for r, beta in itertools.product((1, 3, 4), (0.0, 0.25, 1.0)):
        for e in range(r + 1):
            total = 0.0
            for kinds in itertools.product((1, -1, 0), repeat=r):
                probability = math.prod(1 - beta if kind == 0 else beta / 2 for kind in kinds)
                total += probability * (abs(sum(kinds)) <= e)
            assert bag_accuracy(beta, r, e / r) == pytest.approx(total, abs=1e-12)


def test_the_tolerance_is_not_lost_to_rounding():
    assert 0.15 * 20 < 3.0000001
    assert bag_accuracy(0.5, 20, 0.15) == bag_accuracy(0.5, 20, 0.1500001)
    assert bag_accuracy(0.5, 10, 0.1 + 0.2) == bag_accuracy(0.5, 10, 0.3)


def test_the_curve_turns_near_one_where_the_source_says():
    beta = np.linspace(0, 1, 101)
    curve = bag_accuracy(beta, 10, 0.0)
    assert curve[85] == curve.min() == pytest.approx(0.137, abs=1e-3)
    assert curve[100] == pytest.approx(0.246, abs=2e-3)
    assert monotone_from(10, 0.0) == pytest.approx(curve[100])


@pytest.mark.parametrize(("r", "eps"), [(5, 0.0), (10, 0.0), (10, 0.1), (20, 0.1), (50, 0.2), (300, 0.05)])
def test_the_inverse_undoes_the_curve_above_u(r, eps):
    u = monotone_from(r, eps)
    beta = np.linspace(0.0, 1.0, 41)
    p = bag_accuracy(beta, r, eps)
    # Where bags are met to within rounding of always, the curve is flat and has no inverse.
    clear = (p > u + 1e-9) & ((p < 1 - 1e-9) | (beta == 0))
    assert clear.sum() > 5
    np.testing.assert_allclose(instance_error(p[clear], r, eps), beta[clear], atol=1e-5)
    assert (np.diff(p[p > u + 1e-9]) <= 1e-12).all()


def test_larger_bags_and_tolerances_need_more_accuracy():
    assert monotone_from(20, 0.1) < monotone_from(20, 0.2) < monotone_from(20, 0.4)
    with pytest.raises(ValueError, match="p must be in"):
        instance_error(monotone_from(10, 0.0) - 0.01, 10, 0.0)
    assert instance_error(1.0, 10, 0.2) == 0.0


# ---------------------------------------------------------------------------------------------------- pure bags


@pytest.mark.parametrize(("r", "eta"), [(10, 0.0), (10, 0.2), (20, 0.15), (8, 0.5)])
def test_the_adversarial_bag_is_met_exactly_and_wrong_in_two_eta(r, eta):
    """P33."""
    y, predicted = adversarial_pure_bag(r, eta)
    assert y.mean() == predicted.mean() == pytest.approx(eta)
    assert np.mean(y != predicted) == pytest.approx(2 * eta)
    assert np.sum(y == predicted) == pytest.approx(pure_bag_bound(eta, 0.0, r))


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.3, 0.5])
def test_no_hypothesis_is_worse_than_the_bound_on_pure_bags(eta):
    rng = np.random.default_rng(0)
    r = 20
    for _ in range(2000):
        y = rng.permutation(np.arange(r) < rng.integers(0, int(eta * r) + 1))
        y = y if rng.random() < 0.5 else ~y
        h = np.where(rng.random(r) < rng.random(), rng.random(r) < rng.random(), y)
        eps = abs(h.mean() - y.mean())
        assert np.sum(h == y) >= pure_bag_bound(eta, eps, r) - 1e-9


def test_pure_bag_bounds_of_arrays_and_shares():
    np.testing.assert_allclose(pure_bag_bound([0.0, 0.1, 0.5], 0.1), [0.9, 0.7, 0.0])


@pytest.mark.parametrize(("eps", "delta"), [(0.05, 0.05), (0.1, 0.2), (0.02, 0.01)])
def test_samples_of_the_least_size_fail_no_more_often_than_delta(eps, delta):
    """P34."""
    r = min_bag_size(eps, delta)
    rng = np.random.default_rng(0)
    for p in (0.1, 0.5, 0.8):
        assert np.mean(np.abs(rng.binomial(r, p, 50_000) / r - p) > eps) <= delta


# ---------------------------------------------------------------------------------------------------- wrong inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bags_needed(0, 10, 0.1, 0.1), "vc must be"),
        (lambda: bags_needed(3, 0.5, 0.1, 0.1), "r must be"),
        (lambda: bags_needed(3, 10, 1.0, 0.1), "eps must be"),
        (lambda: bags_needed(3, 10, 0.1, 0.0), "delta must be"),
        (lambda: proportion_gap(3, 0, 10, 0.1), "n_bags must be"),
        (lambda: bag_accuracy(1.5, 10, 0.1), "beta must be"),
        (lambda: bag_accuracy(np.nan, 10, 0.1), "beta must be"),
        (lambda: bag_accuracy(0.5, 2.5, 0.1), "r must be"),
        (lambda: bag_accuracy(0.5, 10, -0.1), "eps must be"),
        (lambda: instance_error(1.2, 10, 0.1), "p must be"),
        (lambda: instance_error(0.9, 10, 1.0), "eps must be below 1"),
        (lambda: pure_bag_bound(0.6, 0.1), "eta must be"),
        (lambda: pure_bag_bound(0.5, 1.1), "eps must be"),
        (lambda: adversarial_pure_bag(10, 0.25), "an integer"),
        (lambda: min_bag_size(0.0, 0.1), "eps must be"),
        (lambda: markov_tolerance(-0.1, 0.1), "error must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
