"""Values, subgradients and most violated outputs of the ranking losses equal those found by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.ranking.risks import MEASURES, RankingRisk
from reference import ranking as reference


def draw(seed, n, ties, grades=2):
    """Scores (on a grid of quarters if there are to be ties) and grades, with the best and the worst present."""
    random = np.random.default_rng(seed)
    s = random.integers(-6, 7, n) / 4 if ties else random.normal(size=n)
    y = random.integers(0, grades, n)
    y[:2] = 0, grades - 1
    return s, random.permutation(y)


def losses(s, y, **options):
    return RankingRisk(np.zeros((len(s), 1)), np.asarray(y), **options).losses(np.asarray(s, float))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("grades", [2, 3, 40])
@pytest.mark.parametrize("n_groups", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_pair_loss_and_gradient_equal_the_sum_over_all_pairs(squared, grades, n_groups, seed):
    s, y = draw(seed, 40, False, grades)
    groups = np.random.default_rng(seed).integers(0, n_groups, 40)
    values, gradient = losses(s, y, groups=groups, squared=squared)
    value, expected = reference.pair_loss(s, y, groups, squared)
    assert values.sum() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-10)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_with_ties_the_pair_loss_is_right_and_its_slope_a_subgradient(squared, seed):
    s, y = draw(seed, 30, True, 4)
    values, gradient = losses(s, y, squared=squared)
    assert values.sum() == pytest.approx(reference.pair_loss(s, y, squared=squared)[0], rel=1e-12)
    random = np.random.default_rng(seed)
    for scale in (1e-3, 0.1, 1.0):
        z = s + scale * random.normal(size=30)
        assert reference.pair_loss(z, y, squared=squared)[0] >= values.sum() + gradient @ (z - s) - 1e-9


@given(
    st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12),
    st.sampled_from([1.0, 0.25, 1e-9]),
)
@settings(max_examples=50, deadline=None)
def test_pair_loss_of_any_small_problem_is_right(rows, unit):
    s, y, groups = (np.array(column) for column in zip(*rows, strict=True))
    values, gradient = losses(s * unit, y, groups=groups)
    assert values.sum() == pytest.approx(reference.pair_loss(s * unit, y, groups)[0], abs=1e-12)
    assert abs(gradient.sum()) < 1e-12


@pytest.mark.parametrize("measure", ["roc-area", "average-precision"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_most_violated_ranking_is_that_of_all_permutations(measure, ties, seed):
    s, y = draw(seed, 6, ties)
    _check(losses(s, y, measure=measure), s, reference.ranking_loss(s, y, measure), ties)


@pytest.mark.parametrize("measure", ["roc-area", "average-precision"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(8))
def test_most_violated_ranking_is_that_of_all_interleavings(measure, scale, seed):
    s, y = draw(seed, 10, False)
    s *= scale
    rankings = list(reference.interleavings(s, y))
    _check(losses(s, y, measure=measure), s, reference.ranking_loss(s, y, measure, rankings), False)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_most_violated_labelling_for_f1_is_that_of_all_labellings(ties, scale, seed):
    s, y = draw(seed, 10, ties)
    _check(losses(s * scale, y, measure="f1"), s * scale, reference.f1_loss(s * scale, y), ties)


@pytest.mark.parametrize("s", [[-2.0, -1.0, -3.0], [1.0, 2.0, -1.0], [-50.0, -60.0, -70.0]])
def test_f1_of_a_group_without_a_positive_is_one_for_no_positive_label(s):
    _check(losses(s, [0, 0, 0], measure="f1"), np.array(s), reference.f1_loss(np.array(s), np.zeros(3, int)), False)


def _check(found, s, expected, ties):
    """The same maximum, attained by the same output; with ties by one of the maximisers' subgradient inequality."""
    values, gradient = found
    value, slopes = expected
    assert values.sum() == pytest.approx(value, abs=1e-12)
    if not ties:
        assert min(np.abs(gradient - slope).max() for slope in slopes) < 1e-12
    else:  # the plane through the maximum: cost = value − ⟨slope, s⟩ is that of an output that attains it
        cost = value - gradient @ s
        assert any(abs(cost - (value - slope @ s)) < 1e-9 for slope in slopes)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_in_the_weights_is_that_of_finite_differences(measure, sparse):
    random = np.random.default_rng(1)
    X = random.normal(size=(30, 4)) * (random.random((30, 4)) < 0.7)
    y = random.integers(0, 2, 30)
    risk = RankingRisk(
        sp.csr_matrix(X) if sparse else X, y, random.integers(0, 3, 30), measure=measure, intercept=measure == "f1"
    )
    w = random.normal(size=risk.n_weights)
    value, gradient = risk.value_and_gradient(w)
    for k, step in enumerate(1e-6 * np.eye(risk.n_weights)):
        difference = (risk.value(w + step) - risk.value(w - step)) / 2e-6
        assert gradient[k] == pytest.approx(difference, abs=1e-4 * max(1.0, abs(difference)))
    out = np.full(risk.n_weights, np.nan)
    assert risk.value_and_gradient(w, out)[0] == value
    np.testing.assert_array_equal(out, gradient)


@pytest.mark.parametrize("measure", MEASURES)
def test_losses_do_not_depend_on_the_number_of_threads(measure):
    random = np.random.default_rng(2)
    s, y, groups = random.normal(size=500), random.integers(0, 2, 500), random.integers(0, 40, 500)
    one = losses(s, y, groups=groups, measure=measure)
    many = losses(s, y, groups=groups, measure=measure, threads=4)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


def test_roc_area_is_the_mean_of_the_pairs_hinges():
    s, y = draw(3, 50, False)
    pairs = losses(s, y)[0].sum() / (y.sum() * (50 - y.sum()))
    assert losses(s, y, measure="roc-area")[0].sum() == pytest.approx(pairs, rel=1e-12)


def test_the_roc_area_of_one_pair_is_its_hinge():
    values, gradient = losses([0.25, 0.5], [1, 0], measure="roc-area")
    assert values.tolist() == [1.25]
    assert gradient.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("measure", ["pairs", "roc-area", "average-precision"])
def test_groups_without_a_pair_cost_nothing(measure):
    values, gradient = losses([3.0, 1.0, 2.0], [1, 1, 0], groups=[0, 0, 1], measure=measure)
    assert not values.any()
    assert not gradient.any()


def test_billions_of_pairs_are_counted_exactly():
    n = 100_000
    values, gradient = losses(np.zeros(n), np.arange(n) % 2)
    assert values.sum() == n / 2 * n / 2
    assert set(gradient) == {-n / 2, n / 2}


def test_the_core_refuses_what_does_not_fit():
    s, y, o = np.zeros(3), np.array([0, 1, 0], np.int32), np.array([0, 3])
    g, v = np.empty(3), np.empty(1)
    good = {"scores": s, "grades": y, "offsets": o, "gradient": g, "values": v}
    bad = [
        {"scores": np.array([0.0, np.nan, 0.0])},
        {"scores": np.zeros(2)},
        {"grades": np.array([0, -1, 0], np.int32)},
        {"grades": np.array([0, 3, 0], np.int32)},
        {"offsets": np.array([0, 2])},
        {"offsets": np.array([0, 5, 3])},
        {"offsets": np.array([1, 3])},
        {"offsets": np.array([], np.int64)},
        {"gradient": np.empty(2)},
        {"values": np.empty(2)},
        {"threads": 0},
    ]
    for change in bad:
        for name, extra in (("pair_losses", {"squared": False}), ("average_precision_losses", {}), ("f1_losses", {})):
            with pytest.raises(ValueError):
                getattr(_core.ranking, name)(**{**good, **extra, **change})
    for name in ("average_precision_losses", "f1_losses"):
        with pytest.raises(ValueError, match="grade"):
            getattr(_core.ranking, name)(**{**good, "grades": np.array([0, 2, 1], np.int32)})
    counts = np.empty(1, np.int64)
    good = {"scores": s, "grades": np.zeros(3), "offsets": o, "counts": counts, "pairs": counts.copy()}
    _core.ranking.swapped_pairs(**good)
    for change in [
        {"scores": np.zeros(2)},
        {"grades": np.array([0.0, np.inf, 1.0])},
        {"offsets": np.array([0, 4, 3])},
        {"counts": np.empty(2, np.int64)},
        {"pairs": np.empty(0, np.int64)},
    ]:
        with pytest.raises(ValueError):
            _core.ranking.swapped_pairs(**{**good, **change})
