"""HSIC equals its definitions, by Gram matrices, by low-rank factors and by features; its tests keep their level."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from mercer import _core
from mercer.kernel_methods import HSIC, MMD
from mercer.kernel_methods import _permutations as sums
from mercer.kernels import Constant, Gaussian, Kernel, Linear
from reference.dependence import Grams, hsic_biased, hsic_unbiased


def pair(n, d=1, seed=0, dependent=False):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    return X, np.abs(X) + 0.3 * Y if dependent else Y


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.5), (1.0 + Linear()) ** 2], ids=repr)
@pytest.mark.parametrize("n", [4, 5, 9])
def test_statistics_equal_their_sums(kernel, n):
    X, Y = pair(n, 2)
    K, L = kernel(X), kernel(Y)
    assert HSIC(kernel, kernel, "biased").statistic(X, Y) == pytest.approx(hsic_biased(K, L), rel=1e-10, abs=1e-13)
    assert HSIC(kernel, kernel).statistic(X, Y) == pytest.approx(hsic_unbiased(K, L), rel=1e-10, abs=1e-13)


def test_only_the_unbiased_statistic_has_mean_zero_over_all_permutations():
    X, Y = pair(5)
    k = Gaussian(1.0)
    values = [HSIC(k, k).statistic(X, Y[list(order)]) for order in permutations(range(5))]
    biased = [HSIC(k, k, "biased").statistic(X, Y[list(order)]) for order in permutations(range(5))]
    assert abs(np.mean(values)) < 1e-12
    assert np.mean(biased) > 0.001


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_the_normalized_statistic_of_equal_views_is_one_and_does_not_see_scale(estimator):
    X, Y = pair(30, 2, dependent=True)
    k = Gaussian(0.5)
    model = HSIC(k, k, estimator, normalized=True)
    assert model.statistic(X, X) == pytest.approx(1.0)
    assert HSIC(3.0 * k, 0.2 * k, estimator, normalized=True).statistic(X, Y) == pytest.approx(model.statistic(X, Y))
    assert -1.0 <= model.statistic(X, Y) <= 1.0


# ------------------------------------------------------------------------------------------- sums over permutations


def brute_products(K, L, orders):
    return np.array([(K * L[np.ix_(order, order)]).sum() for order in orders])


@pytest.mark.parametrize("rank", [2, 40], ids=["by factors", "compiled"])
@pytest.mark.parametrize("n", [1, 2, 7, 37, 40])
def test_products_over_permutations_equal_brute_force(n, rank):
    rng = np.random.default_rng(n + rank)
    K, L = (A @ A.T for A in rng.normal(size=(2, n, rank)))
    orders = sums.permutations(n, 9, rng)
    assert orders[0].tolist() == list(range(n))
    expected = brute_products(K, L, orders)
    np.testing.assert_allclose(sums.products(K, L, orders, 1), expected, rtol=1e-10)
    out = np.empty(10)
    for threads in (1, 3):
        _core.kernels.permuted_products(K, L, orders, out, threads)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    K, L = (A @ A.T for A in rng.normal(size=(2, 150, 150)))
    orders = sums.permutations(150, 20, rng)
    one, three = sums.products(K, L, orders, 1), sums.products(K, L, orders, 3)
    assert (one == three).all()


@pytest.mark.parametrize("change", ["range", "repeat", "shape", "nan"])
def test_the_compiled_loop_refuses_what_is_no_permutation(change):
    K = np.eye(3)
    orders = np.array([[0, 1, 2]], np.int32)
    if change == "range":
        orders[0, 0] = 3
    elif change == "repeat":
        orders[0, 0] = 1
    elif change == "shape":
        orders = orders[:, :2].copy()
    else:
        K = np.full((3, 3), np.nan)
    with pytest.raises(ValueError, match=r"must"):
        _core.kernels.permuted_products(K, np.eye(3), orders, np.empty(1), 1)


def test_a_low_rank_factor_rebuilds_the_matrix_and_declines_a_full_one():
    X = np.random.default_rng(0).normal(size=(300, 1))
    K = Gaussian(0.5)(X)
    A = sums.low_rank_factor(K, 60)
    assert A is not None
    assert A.shape[1] < 40
    np.testing.assert_allclose(A @ A.T, K, atol=1e-11)
    assert sums.low_rank_factor(np.eye(50), 20) is None
    assert sums.low_rank_factor(np.zeros((5, 5)), 3).shape == (5, 0)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_moments_equal_those_over_all_permutations(n):
    X, Y = pair(n, 2, seed=n)
    K, L = sums.centered(Gaussian(0.5)(X)), sums.centered(Linear()(Y))
    values = brute_products(K, L, [list(order) for order in permutations(range(n))])
    mean, variance = sums.moments(K, L)
    assert mean == pytest.approx(values.mean())
    assert variance == pytest.approx(values.var())


# ------------------------------------------------------------------------------------------------ tests


def test_the_permutation_p_value_is_that_of_its_null_sample():
    X, Y = pair(40, dependent=True)
    k = Gaussian(0.5)
    for estimator in ("biased", "unbiased"):
        result = HSIC(k, k, estimator).test(X, Y, 99, random_state=3)
        assert result.statistic == pytest.approx(HSIC(k, k, estimator).statistic(X, Y), rel=1e-9)
        assert result.p_value == (1 + np.sum(result.null >= result.statistic)) / 100
        assert result.rejected == (result.statistic > result.threshold)
        assert result.null_mean == pytest.approx(result.null.mean())
    again = HSIC(k, k).test(X, Y, 99, random_state=3, n_jobs=2)
    assert (again.null == HSIC(k, k).test(X, Y, 99, random_state=3).null).all()


def test_too_few_permutations_have_no_threshold():
    X, Y = pair(20)
    assert HSIC(Linear(), Linear()).test(X, Y, 10, alpha=0.05, random_state=0).threshold == np.inf


@pytest.mark.parametrize(
    ("method", "null"),
    [("exact", "permutation"), ("exact", "gamma"), ("features", "permutation"), ("features", "gamma")],
)
def test_level_and_power(method, null):
    k = Gaussian(0.5)
    model = HSIC(k, k, method=method, n_components=40)
    runs, rejected, found = 150, 0, 0
    for seed in range(runs):
        rejected += model.test(*pair(30, seed=seed), 59, null, alpha=0.1, random_state=seed).rejected
        if seed < 20:
            found += model.test(*pair(40, seed=seed, dependent=True), 59, null, alpha=0.1, random_state=seed).rejected
    # 0.1 ± 3.5 standard errors; the gamma distribution is an approximation, with a little room more
    assert runs * 0.1 - 13 <= rejected <= runs * 0.1 + (13 if null == "permutation" else 17)
    assert found >= 19  # no correlation, and dependence of y on |x|


def test_gamma_and_permutations_agree_on_tails():
    X, Y = pair(150, seed=5)
    k = Gaussian(0.5)
    exact = HSIC(k, k, "biased").test(X, Y, 2000, random_state=0)
    approximate = HSIC(k, k, "biased").test(X, Y, null="gamma")
    assert approximate.p_value == pytest.approx(exact.p_value, abs=0.05)
    assert approximate.threshold == pytest.approx(exact.threshold, rel=0.1)
    assert approximate.null_mean == pytest.approx(exact.null_mean, rel=0.05)
    assert approximate.null_std == pytest.approx(exact.null_std, rel=0.1)


def test_ties_of_discrete_data_do_not_count_as_smaller():
    X = np.tile([[0.0], [1.0]], (10, 1))
    constant = np.ones((20, 1))
    assert HSIC(Linear(), Linear()).test(X, constant, 50, random_state=0).p_value == 1.0
    assert HSIC(Linear(), Linear()).test(X, constant, null="gamma").p_value == 1.0


def test_without_kernels_gaussians_have_the_median_width(monkeypatch):
    import mercer.kernels

    monkeypatch.setattr(mercer.kernels, "Gaussian", Gaussian, raising=False)
    monkeypatch.setattr(mercer.kernels, "median_heuristic", lambda X, random_state: float(len(X[0])), raising=False)
    X, Y = pair(30, dependent=True)
    Y = np.hstack([Y, Y])
    assert HSIC().statistic(X, Y) == HSIC(Gaussian(1.0), Gaussian(2.0)).statistic(X, Y)
    assert MMD().statistic(X, X + 1.0) == MMD(Gaussian(1.0)).statistic(X, X + 1.0)


def test_strings_against_numbers():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ab"), 12, p=[p, 1 - p])) for p in rng.uniform(0.1, 0.9, 60)]
    shares = np.array([[s.count("a") / 12] for s in strings])
    model = HSIC(Grams(2), Gaussian(5.0))
    assert model.test(strings, shares, 99, random_state=0).p_value == 0.01
    assert model.test(strings, rng.permutation(shares), 99, random_state=0).p_value > 0.05


# ------------------------------------------------------------------------------------------------ features


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("normalized", [False, True])
def test_features_of_full_rank_give_the_statistic_itself(estimator, normalized):
    X, Y = pair(900, 3, dependent=True)  # several blocks of rows
    exact = HSIC(Linear(), Linear(), estimator, normalized)
    features = HSIC(Linear(), Linear(), estimator, normalized, method="features", n_components=8)
    assert features.statistic(X, Y, random_state=0) == pytest.approx(exact.statistic(X, Y), rel=1e-3, abs=1e-6)
    ours, theirs = (m.test(X, Y, 99, random_state=0) for m in (features, exact))
    assert ours.null_mean == pytest.approx(theirs.null_mean, abs=3 * theirs.null_std / 5)
    assert ours.null_std == pytest.approx(theirs.null_std, rel=0.5)
    gammas = [m.test(X, Y, null="gamma", random_state=0) for m in (features, exact)]
    assert gammas[0].threshold == pytest.approx(gammas[1].threshold, rel=1e-3, abs=1e-6)


def test_runs_of_objects_are_permuted_as_single_ones_would_be(monkeypatch):
    import mercer.kernel_methods.hsic as module

    X, Y = pair(1003, 2, dependent=True)
    model = HSIC(Linear(), Linear(), method="features", n_components=4)
    whole = model.test(X, Y, 300, random_state=0)
    monkeypatch.setattr(module, "CELLS", 200)
    runs = model.test(X, Y, 300, random_state=0)
    assert runs.statistic == pytest.approx(whole.statistic, rel=1e-3, abs=1e-6)
    assert runs.null_std == pytest.approx(whole.null_std, rel=0.4)
    assert abs(runs.null_mean - whole.null_mean) < 0.3 * whole.null_std


def test_runs_keep_the_level(monkeypatch):
    import mercer.kernel_methods.hsic as module

    monkeypatch.setattr(module, "CELLS", 40)
    model = HSIC(Linear(), Linear(), method="features", n_components=2)
    rejected = sum(model.test(*pair(205, seed=seed), 39, alpha=0.1, random_state=seed).rejected for seed in range(200))
    assert 5 <= rejected <= 35


def test_features_that_do_not_fit_into_memory_are_refused_by_the_test(monkeypatch):
    import mercer.kernel_methods.hsic as hsic

    asked = []
    monkeypatch.setattr(hsic, "check_memory", lambda rows, columns, dtype: asked.append((rows, columns, dtype)))
    X, Y = pair(60, 2, dependent=True)
    HSIC(Linear(), Linear(), method="features", n_components=8).test(X, Y, 19, random_state=0)
    assert (60, 16, np.float32) in asked  # the features of both sides


def test_blocks_of_features_do_not_change_the_sums(monkeypatch):
    import mercer.kernel_methods._feature_sums as streams

    X, Y = pair(1000, 2, dependent=True)
    k = Gaussian(0.5)
    model = HSIC(k, k, method="features", n_components=20)
    whole = model.statistic(X, Y, random_state=1)
    cut = streams.feature_blocks

    def small(feature_map, X, width):
        return cut(feature_map, X, 1 << 20)  # as if features were so many that 256 rows are a block

    monkeypatch.setattr(streams, "feature_blocks", small)
    assert model.statistic(X, Y, random_state=1) == pytest.approx(whole, rel=1e-4)


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel_x": "rbf"}, "kernel_x must be a Kernel"),
        ({"estimator": "v"}, "estimator must be one of"),
        ({"method": "fast"}, "method must be one of"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, Y = pair(10)
    model = HSIC(Linear(), Linear()).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.test(X, Y)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.zeros((5, 1)), np.zeros((6, 1)), "equally many objects, got 5 and 6"),
        (np.zeros((3, 1)), np.zeros((3, 1)), "at least 4 objects"),
        (np.full((5, 1), np.nan), np.zeros((5, 1)), "NaN"),
        ("text", np.zeros((5, 1)), "collection of objects"),
    ],
)
def test_bad_data_are_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        HSIC(Linear(), Linear()).statistic(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"alpha": 0.0}, "alpha must be"), ({"n_permutations": 0}, "n_permutations"), ({"null": "chi2"}, "null must be")],
)
def test_bad_settings_of_a_test_are_named(change, message):
    X, Y = pair(10)
    with pytest.raises(ValueError, match=message):
        HSIC(Linear(), Linear()).test(X, Y, **change)


class Distance(Kernel):
    """−|x − z|: conditionally positive definite."""

    definiteness = "cpd"

    def _prepare(self, X):
        return np.asarray(X, float).ravel()

    def _gram(self, A, B, work):
        return -np.abs(A[:, None] - (A if B is None else B)[None, :])


def test_conditionally_positive_definite_kernels_are_taken_where_they_are_centred():
    X, Y = pair(50, dependent=True)
    assert HSIC(Distance(), Distance()).test(X, Y, 99, random_state=0).p_value == 0.01
    with pytest.raises(ValueError, match="only conditionally positive definite"):
        HSIC(Distance(), Distance(), method="features").statistic(X, Y)


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_constant_kernel_shows_no_dependence(method):
    X, Y = pair(20, dependent=True)
    result = HSIC(Constant(1.0), Linear(), normalized=True, method=method).test(X, Y, 20, random_state=0)
    assert result.statistic == 0.0
    assert result.p_value == 1.0
