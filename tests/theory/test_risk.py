"""The bounds on risks have their values, and hold when simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.theory.risk import (
    excess_risk_bound,
    margin_bound,
    mcdiarmid_bound,
    noise_exponent,
    noise_rate,
    rademacher_bound,
    rademacher_linear,
    surrogate_loss,
    uniform_deviation,
    zero_one_loss,
)

LOSSES = ("hinge", "squared_hinge", "logistic", "exponential", "squared")


@pytest.mark.parametrize("loss", LOSSES)
@given(margin=st.floats(-50, 50))
def test_surrogates_are_nowhere_below_the_zero_one_loss(loss, margin):
    assert surrogate_loss(margin, loss) >= zero_one_loss(margin) - 1e-12


def test_a_logistic_loss_with_natural_logarithms_would_be():
    assert math.log(2.0) * surrogate_loss(0.0, "logistic") == pytest.approx(0.693, abs=1e-3)
    assert zero_one_loss(0.0) == 1.0


@pytest.mark.parametrize(("eps", "n"), [(0.05, 50), (0.1, 50), (0.1, 200)])
def test_means_deviate_no_more_often_than_mcdiarmid_says(eps, n):
    rng = np.random.default_rng(0)
    means = rng.binomial(n, 0.5, size=20_000) / n
    share = np.mean(0.5 - means > eps)
    assert 0.0 < share <= mcdiarmid_bound(eps, n, 1.0 / n)


def test_mcdiarmid_and_the_deviation_are_inverse():
    eps = uniform_deviation(2.0, 500, 0.03)
    assert mcdiarmid_bound(eps, 500, 2.0 / 500) == pytest.approx(0.03)


def test_the_largest_deviation_of_a_class_stays_below_its_bound_in_enough_draws():
    """Thresholds on [0, 1]: sup over t of (P{x ≤ t} − share of x ≤ t), its mean by simulation."""
    rng = np.random.default_rng(1)
    n, delta = 100, 0.1
    x = np.sort(rng.random((4000, n)), axis=1)
    suprema = (x - np.arange(n) / n).max(axis=1)
    allowed = suprema.mean() + uniform_deviation(1.0, n, delta)
    assert np.mean(suprema <= allowed) >= 1 - delta
    assert suprema.mean() <= 2 * math.sqrt(2 * math.log(2 * (n + 1)) / n)  # Massart: the class has n + 1 members


@pytest.mark.parametrize("n", [2, 5, 8])
def test_the_rademacher_average_equals_the_mean_over_all_signs(n):
    A = np.random.default_rng(n).normal(size=(n, 3))
    K = A @ A.T
    exact = np.mean([math.sqrt(np.array(s) @ K @ np.array(s)) / n for s in itertools.product([-1, 1], repeat=n)])
    average, error = rademacher_linear(K, 20_000, random_state=0)
    assert abs(average - exact) < 4 * error + 1e-12


def test_the_rademacher_average_lies_between_its_bounds():
    rng = np.random.default_rng(0)
    for d in (1, 3, 30):
        X = rng.normal(size=(80, d))
        average, error = rademacher_linear(X @ X.T, 2000, random_state=0)
        r = math.sqrt(np.square(X).sum() / 80)
        bound = rademacher_bound(1.0, 1.0, r, 0.0, 80)
        assert average - 4 * error <= bound
        assert average + 4 * error >= bound / math.sqrt(2)


def test_an_offset_adds_its_share():
    """sup over b in {−B, B} of b · mean σ."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(5000, 60))
    assert np.abs(signs.mean(axis=1)).mean() <= rademacher_bound(1.0, 0.0, 0.0, 1.0, 60)
    both = rademacher_bound(2.0, 3.0, 1.0, 0.5, 60)
    parts = rademacher_bound(2.0, 3.0, 1.0, 0.0, 60) + rademacher_bound(2.0, 0.0, 1.0, 0.5, 60)
    assert both == pytest.approx(parts)


@pytest.mark.parametrize(
    ("loss", "psi"), [("hinge", "hinge"), ("exponential", "exponential"), ("logistic", "logistic")]
)
def test_excess_errors_stay_below_those_of_the_surrogate(loss, psi):
    """One x with P(y = 1) = η and every prediction f: both excess risks by hand."""
    f = np.linspace(-3, 3, 601)
    natural = math.log(2.0) if psi == "logistic" else 1.0
    for eta in (0.5, 0.55, 0.7, 0.95):
        risk = natural * (eta * surrogate_loss(f, psi) + (1 - eta) * surrogate_loss(-f, psi))
        errors = np.where(f > 0, 1 - eta, eta)
        excess = risk - risk.min()
        assert (errors - min(eta, 1 - eta) <= excess_risk_bound(excess, loss) + 1e-12).all()


def test_the_margin_bound_holds_in_enough_draws():
    """Weights of the unit ball chosen on the sample; the error by a large sample of its own."""
    rng = np.random.default_rng(0)
    delta, n, d, gamma = 0.2, 400, 5, 2.0
    truth = np.ones(d) / math.sqrt(d)

    def draw(size):
        X = rng.normal(size=(size, d))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        return X, np.where(X @ truth + 0.2 * rng.normal(size=size) > 0, 1.0, -1.0)

    X_test, y_test = draw(20_000)
    held, bounds = 0, []
    for _ in range(40):
        X, y = draw(n)
        w = X.T @ y
        w /= np.linalg.norm(w)
        risk = np.maximum(0.0, 1.0 - gamma * y * (X @ w)).mean()
        bounds.append(margin_bound(risk, n, W=1.0, R=1.0, gamma=gamma, delta=delta))
        held += np.mean(y_test * (X_test @ w) <= 0) <= bounds[-1]
    assert held >= 40 * (1 - delta)
    assert max(bounds) < 1.0  # it says something


def test_the_margin_bound_falls_as_the_root_of_n():
    at = [margin_bound(0.0, n, W=1.0, R=1.0, gamma=1.0, delta=0.1) for n in (10_000, 40_000)]
    assert at[0] / at[1] == pytest.approx(2.0)
    assert margin_bound(0.9, 10, W=1.0, R=1.0, gamma=1.0, delta=0.1) == 1.0


@given(st.floats(0, 1e6))
def test_noise_exponents_run_from_none_to_massart(gamma):
    assert 0.0 <= noise_exponent(gamma) <= 1.0
    assert 0.5 <= noise_rate(gamma) <= 1.0
    assert noise_exponent(gamma) <= noise_exponent(gamma + 1.0)


def test_tsybakov_implies_the_bound_on_squares():
    """P{|η − 1/2| ≤ t} = (2t)^γ: E 1{g ≠ g*} ≤ c (E excess)^α over all sets where g errs against the best."""
    rng = np.random.default_rng(0)
    gamma = 2.0
    away = 0.5 * rng.random(50_000) ** (1 / gamma)  # |η − 1/2|
    alpha = noise_exponent(gamma)
    ratios = []
    for t in (0.05, 0.1, 0.2, 0.5):
        differs = away <= t  # the cheapest way to differ on that share
        ratios.append(differs.mean() / (2 * (away * differs).mean()) ** alpha)
    assert max(ratios) / min(ratios) < 1.2  # the exponent is the right one: the ratio does not depend on the share


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: surrogate_loss(0.0, "huber"), "loss must be one of"),
        (lambda: surrogate_loss(np.nan), "margin must be finite"),
        (lambda: mcdiarmid_bound(-1.0, 10, 1.0), "eps must be"),
        (lambda: mcdiarmid_bound(0.1, 0, 1.0), "n must be"),
        (lambda: uniform_deviation(1.0, 10, 1.0), "delta must be"),
        (lambda: rademacher_linear(np.zeros((2, 3))), "K must be a square matrix"),
        (lambda: rademacher_linear([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: rademacher_bound(1.0, -1.0, 1.0, 0.0, 5), "W must be"),
        (lambda: excess_risk_bound(-0.1), "psi_excess must be at least 0"),
        (lambda: margin_bound(0.1, 10, W=1.0, R=1.0, gamma=1.0, delta=0.1, r=2.0), "r is a root mean square"),
        (lambda: noise_exponent(-1.0), "gamma must be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
