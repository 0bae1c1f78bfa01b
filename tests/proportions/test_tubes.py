"""Regression with tubes: the optimum, proved by conditions that are checked here, and no worse than scikit-learn's."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from mercer.learning.qp.interior_point import _Tubes, fit_tubes
from mercer.proportions import make_bags


def objective(K, beta, b, low, high, upper):
    """P by its formula."""
    f = K @ beta
    return 0.5 * beta @ f + upper @ np.maximum(0.0, np.maximum(low - f - b, f + b - high))


def dual(K, beta, low, high):
    return low @ np.maximum(beta, 0.0) + high @ np.minimum(beta, 0.0) - 0.5 * beta @ K @ beta


def check_optimal(found, K, low, high, upper, tol=1e-7):
    """Feasible, and P − D small: no w and b are better by more than that."""
    beta, b = found.coefficients, found.intercept
    assert found.converged
    assert (np.abs(beta) <= upper * (1 + 1e-9)).all()
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum() + 1e-12
    value = objective(K, beta, b, low, high, upper)
    assert value == pytest.approx(found.objective, rel=1e-7)
    assert value - dual(K, beta, low, high) <= tol * value


def peer(K, target, epsilon, upper):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVR(kernel="precomputed", C=1.0, epsilon=epsilon, tol=1e-6, max_iter=200_000)
        model.fit(K, target, sample_weight=upper)
    beta = np.zeros(len(target))
    beta[model.support_] = model.dual_coef_[0]
    return objective(K, beta, float(model.intercept_[0]), target - epsilon, target + epsilon, upper)


def points(seed, n=40, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.standard_t(2, size=n), rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e4])
@pytest.mark.parametrize("shape", [(40, 6), (20, 60)], ids=["tall", "wide"])
def test_features_and_inner_products_reach_the_optimum(shape, C, epsilon):
    X, t, weight = points(0, *shape)
    upper, K = C * weight, X @ X.T
    by_rows = fit_tubes(X, t - epsilon, t + epsilon, upper, 1e-9, None, gram=False)
    by_gram = fit_tubes(K, t - epsilon, t + epsilon, upper, 1e-9, None, gram=True)
    by_sparse = fit_tubes(sp.csr_matrix(X), t - epsilon, t + epsilon, upper, 1e-9, None, gram=False)
    for found in (by_rows, by_gram, by_sparse):
        check_optimal(found, K, t - epsilon, t + epsilon, upper)
        np.testing.assert_allclose(X.T @ found.coefficients, X.T @ by_rows.coefficients, atol=1e-4)
    if C <= 10:
        assert by_rows.objective <= peer(K, t, epsilon, upper) * (1 + 1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_kernels_reach_the_optimum(gamma, C, epsilon):
    X, t, weight = points(1)
    K, upper = rbf_kernel(X, gamma=gamma), C * weight
    found = fit_tubes(K, t - epsilon, t + epsilon, upper, 1e-9, None, gram=True)
    check_optimal(found, K, t - epsilon, t + epsilon, upper)
    assert found.objective <= peer(K, t, epsilon, upper) * (1 + 1e-8)


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_points_that_coincide(gram, C):
    X, t, weight = points(2)
    X = np.round(X[:, :2] / 2)  # few different points, and K of rank 2
    K = X @ X.T
    found = fit_tubes(K if gram else X, t, t, C * weight, 1e-9, None, gram=gram)
    check_optimal(found, K, t, t, C * weight)


@pytest.mark.parametrize("gram", [True, False])
def test_points_that_say_nothing_leave_the_weighted_median(gram):
    t, upper = np.array([0.0, 1.0, 5.0, 2.0]), np.array([1.0, 1.0, 1.5, 1.0])
    found = fit_tubes(np.zeros((4, 4)) if gram else np.ones((4, 2)), t, t, upper, 1e-9, None, gram=gram)
    assert found.intercept == pytest.approx(2.0, abs=1e-6)
    assert found.objective == pytest.approx(2.0 + 1.0 + 4.5, rel=1e-8)


def test_one_number_in_all_tubes_needs_no_weights():
    X, _, weight = points(3)
    low = np.linspace(-2, -1, 40)
    found = fit_tubes(X, low, np.full(40, 0.5), weight, 1e-8, None, gram=False)
    assert not found.coefficients.any()
    assert -1 <= found.intercept <= 0.5
    assert found.objective == found.gap == 0


def test_points_within_their_tubes_have_no_coefficient():
    X, t, _ = points(4)
    low, high, upper = t - 1.0, t + 1.0, np.full(40, 5.0)
    found = fit_tubes(X, low, high, upper, 1e-9, None, gram=False)
    f = X @ (X.T @ found.coefficients) + found.intercept
    inside = (f > low + 1e-6) & (f < high - 1e-6)
    assert inside.sum() > 10
    assert not found.coefficients[inside].any()
    assert (found.coefficients[f < low - 1e-6] == 5.0).all()
    assert (found.coefficients[f > high + 1e-6] == -5.0).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    d=st.integers(1, 12),
    log_C=st.floats(-4, 5),
    log_scale=st.floats(-2, 2),
    share=st.floats(0, 1),
    gram=st.booleans(),
)
def test_any_tubes_weights_and_points(seed, n, d, log_C, log_scale, share, gram):
    rng = np.random.default_rng(seed)
    X = 10**log_scale * rng.normal(size=(n, d))
    low = np.round(rng.normal(size=n), 1)
    high = low + np.where(rng.random(n) < share, rng.exponential(size=n), 0.0)
    upper = 10**log_C * np.where(rng.random(n) < 0.1, 0.0, rng.exponential(size=n))
    upper[0] = 10**log_C
    K = X @ X.T
    found = fit_tubes(K if gram else X, low, high, upper, 1e-8, None, gram=gram)
    if found.converged or upper.max() * np.diagonal(K).mean() <= 1e4:
        check_optimal(found, K, low, high, upper)
    else:  # rounding
        assert found.stalled
        assert found.gap > 1e-8 * found.objective


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e8])
def test_gaps_that_are_not_small_beside_the_objective_are_not_the_optimum(scale):
    X, t, weight = points(6, 50, 100)
    found = fit_tubes(scale * X, t, t, weight, 1e-8, None, gram=False)
    assert found.gap > 1e-8 * found.objective  # rounding of f by 1e-16 is a loss that counts beside ½‖w‖²
    assert not found.converged
    assert found.stalled


def test_large_means_of_features_cost_no_digits():
    X, t, weight = points(7, 20, 60)
    X = np.round(256 * X) / 256  # exact with the offset, too
    near = fit_tubes(X, t, t, weight, 1e-9, None, gram=False)
    far = fit_tubes(X + 2.0**27, t, t, weight, 1e-9, None, gram=False)
    assert far.converged
    assert far.objective == pytest.approx(near.objective, rel=1e-6)
    np.testing.assert_allclose(X.T @ far.coefficients, X.T @ near.coefficients, atol=1e-5)


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("shape", [(40, 6), (20, 60)], ids=["tall", "wide"])
def test_products_beyond_the_range_of_numbers_are_named(shape, gram):
    X, t, weight = points(0, *shape)
    X = 1e200 * X
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="scale the features"):
        fit_tubes(X @ X.T if gram else X, t, t, weight, 1e-8, None, gram=gram)


def test_steps_end_when_the_gap_is_no_number(monkeypatch):
    X, t, weight = points(5)
    evaluated = _Tubes._evaluated

    def broken(tubes, beta, b):
        found = evaluated(tubes, beta, b)
        return replace(found, gap=np.nan) if tubes.path.f.any() else found  # after the start

    monkeypatch.setattr(_Tubes, "_evaluated", broken)
    found = fit_tubes(X, t, t, weight, 1e-8, 50, gram=False)
    assert found.steps == 5
    assert found.stalled


def test_a_limit_on_steps_is_kept():
    X, t, weight = points(5)
    found = fit_tubes(X, t, t, weight, 1e-8, 2, gram=False)
    assert found.steps == 2
    assert not found.converged
    assert found.gap > 1e-8 * found.objective


@pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")
@pytest.mark.parametrize(("name", "size"), [("heart", 2), ("heart", 16), ("dna-1", 8)])
@pytest.mark.parametrize("gamma", [None, 0.1])
def test_public_sets_are_no_worse_than_by_scikit_learn(name, size, gamma):
    from mercer.datasets import load_proportion_set

    X, y = load_proportion_set(name)
    bags = make_bags(y, size, random_state=0)
    average = sp.csr_matrix((1 / bags.sizes[bags.number], (bags.number, bags.members)))
    share = np.clip(bags.proportions, 0.02, 0.98)
    t = np.log(share / (1 - share))
    m, K = average @ X, average @ (average @ (X @ X.T if gamma is None else rbf_kernel(X, gamma=gamma))).T
    for C, epsilon in ((0.1, 0.0), (1.0, 0.1)):
        upper = np.full(len(t), C)
        found = fit_tubes(K if gamma else m, t - epsilon, t + epsilon, upper, 1e-8, None, gram=gamma is not None)
        check_optimal(found, K, t - epsilon, t + epsilon, upper)
        assert found.objective <= peer(K, t, epsilon, upper) * (1 + 1e-8)
