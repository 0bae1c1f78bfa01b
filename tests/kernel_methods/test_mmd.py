"""MMD equals its sums by Gram matrices, features and blocks; its tests keep their level."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mercer.kernel_methods import HSIC, MMD
from mercer.kernel_methods import _permutations as sums
from mercer.kernels import Gaussian, Linear, NegativeDistance
from reference.dependence import Grams, mmd


def samples(m, n, seed=0, shift=0.0, d=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), shift + rng.normal(size=(n, d))


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize(("m", "n"), [(2, 2), (4, 7), (9, 3)])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.5)], ids=repr)
def test_statistics_equal_their_sums(kernel, m, n, estimator):
    X, Y = samples(m, n, d=2)
    expected = mmd(kernel(np.vstack([X, Y])), m, estimator == "unbiased")
    assert MMD(kernel, estimator).statistic(X, Y) == pytest.approx(expected, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("rank", [2, 60], ids=["by factors", "triangular"])
def test_quadratic_forms_equal_brute_force(rank):
    rng = np.random.default_rng(rank)
    A = rng.normal(size=(60, rank))
    K, S = A @ A.T, (rng.random((300, 60)) < 0.4).astype(float)
    np.testing.assert_allclose(sums.quadratic_forms(K, S), [s @ K @ s for s in S], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_the_null_sample_is_what_exchanged_objects_give(estimator):
    X, Y = samples(3, 4, shift=1.0)
    pooled = np.vstack([X, Y])
    k = Gaussian(0.5)
    values = {
        round(MMD(k, estimator).statistic(pooled[list(inside)], np.delete(pooled, list(inside), axis=0)), 10)
        for inside in combinations(range(7), 3)
    }
    result = MMD(k, estimator).test(X, Y, 500, random_state=0)
    assert {round(value, 10) for value in result.null.tolist()} == values


def test_the_biased_statistic_is_hsic_with_the_sample_as_the_other_view():
    X, Y = samples(12, 12, shift=0.5)
    label = np.repeat([[1.0], [-1.0]], 12, axis=0)
    k = Gaussian(0.5)
    # ⟨K̃, L̃⟩ / N² with L = labels: zᵀKz (m/N)² · 4
    assert HSIC(k, Linear(), "biased").statistic(np.vstack([X, Y]), label) == pytest.approx(
        MMD(k, "biased").statistic(X, Y) / 4, rel=1e-9
    )


@pytest.mark.parametrize(
    ("method", "null"),
    [
        ("exact", "permutation"),
        ("exact", "gamma"),
        ("features", "permutation"),
        ("features", "gamma"),
        ("block", "permutation"),
    ],
)
def test_level_and_power(method, null):
    model = MMD(Gaussian(0.5), method=method, n_components=40, block_size=5 if method == "block" else None)
    runs, rejected, found = 100 if method == "block" else 200, 0, 0
    n = 30
    for seed in range(runs):
        rejected += model.test(*samples(n, n + 10, seed), 59, null, alpha=0.1, random_state=seed).rejected
        if seed < 20:
            found += model.test(*samples(n, n + 10, seed, 1.5), 59, null, alpha=0.1, random_state=seed).rejected
    # 0.1 ± 3.5 standard errors; approximate null distributions with a little room more
    room = 12 if method == "block" else 15 if null == "permutation" else 22
    assert runs * 0.1 - min(room, 17) <= rejected <= runs * 0.1 + room
    assert found >= 19


def test_gamma_and_permutations_agree():
    X, Y = samples(150, 100, seed=2)
    k = Gaussian(0.5)
    for estimator in ("biased", "unbiased"):
        exact = MMD(k, estimator).test(X, Y, 2000, random_state=0)
        approximate = MMD(k, estimator).test(X, Y, null="gamma")
        assert approximate.p_value == pytest.approx(exact.p_value, abs=0.05)
        assert approximate.null_std == pytest.approx(exact.null_std, rel=0.1)
        assert approximate.threshold == pytest.approx(exact.threshold, rel=0.15)


# ------------------------------------------------------------------------------------------------ features and blocks


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_features_of_full_rank_give_the_statistic_itself(estimator):
    X, Y = samples(700, 500, shift=0.2, d=3)
    exact, features = MMD(Linear(), estimator), MMD(Linear(), estimator, method="features", n_components=8)
    assert features.statistic(X, Y, random_state=0) == pytest.approx(exact.statistic(X, Y), rel=1e-4)
    ours, theirs = (model.test(X, Y, null="gamma", random_state=0) for model in (features, exact))
    assert ours.threshold == pytest.approx(theirs.threshold, rel=1e-3)
    assert ours.p_value == pytest.approx(theirs.p_value, rel=1e-2)


def test_exchanges_of_runs_of_objects_have_the_spread_of_all_exchanges(monkeypatch):
    import mercer.kernel_methods.mmd as module

    X, Y = samples(1003, 911, d=2)
    model = MMD(Linear(), method="features", n_components=4)
    whole = model.test(X, Y, 500, random_state=0)
    monkeypatch.setattr(module, "CELLS", 300)
    runs = model.test(X, Y, 500, random_state=0)
    assert runs.statistic == pytest.approx(whole.statistic, rel=1e-4)
    assert runs.null_std == pytest.approx(whole.null_std, rel=0.25)
    assert runs.p_value == pytest.approx(whole.p_value, abs=0.1)


def test_runs_keep_the_level(monkeypatch):
    import mercer.kernel_methods.mmd as module

    monkeypatch.setattr(module, "CELLS", 40)
    model = MMD(Linear(), method="features", n_components=2)
    rejected = sum(
        model.test(*samples(110, 90, seed), 39, alpha=0.1, random_state=seed).rejected for seed in range(200)
    )
    assert 5 <= rejected <= 35


def test_one_block_of_all_objects_is_the_statistic_itself():
    X, Y = samples(20, 30, shift=0.5)
    assert MMD(Gaussian(0.5), method="block", block_size=20).statistic(X, Y) == pytest.approx(
        MMD(Gaussian(0.5)).statistic(X, Y)
    )


def test_blocks_average_the_statistics_of_blocks():
    X, Y = samples(12, 12, shift=0.5)
    k = Gaussian(0.5)
    blocks = [MMD(k).statistic(X[i : i + 2], Y[i : i + 2]) for i in range(0, 12, 2)]
    model = MMD(k, method="block", block_size=2)
    assert model.statistic(X, Y) == pytest.approx(np.mean(blocks))
    assert model.test(X, Y).null_std == pytest.approx(np.std(blocks, ddof=1) / np.sqrt(6))


def test_blocks_have_two_objects_at_least_and_else_as_many_as_there_are_blocks():
    k = Gaussian(0.5)
    for n, size in ((4, 2), (36, 6)):
        X, Y = samples(n, n, shift=0.5)
        chosen = MMD(k, method="block").statistic(X, Y)
        assert chosen == pytest.approx(MMD(k, method="block", block_size=size).statistic(X, Y))


def test_strings():
    rng = np.random.default_rng(0)
    words = [["".join(rng.choice(list("ab"), 10, p=[p, 1 - p])) for _ in range(40)] for p in (0.5, 0.7, 0.5)]
    assert MMD(Grams(2)).test(words[0], words[1], 99, random_state=0).p_value == 0.01
    assert MMD(Grams(2)).test(words[0], words[2], 99, random_state=0).p_value > 0.05
    assert (
        MMD(Grams(2), method="features", n_components=20).test(words[0], words[1], 99, random_state=0).p_value <= 0.02
    )


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("model", "X", "Y", "message"),
    [
        (MMD("rbf"), np.zeros((5, 1)), np.zeros((5, 1)), "kernel must be a Kernel"),
        (MMD(Linear(), "v"), np.zeros((5, 1)), np.zeros((5, 1)), "estimator must be one of"),
        (MMD(Linear(), method="x"), np.zeros((5, 1)), np.zeros((5, 1)), "method must be one of"),
        (MMD(Linear()), np.zeros((1, 1)), np.zeros((5, 1)), "X must hold at least 2 objects, got 1"),
        (MMD(Linear()), np.zeros((5, 1)), np.full((5, 1), np.inf), "infinit"),
        (MMD(Linear(), method="block", block_size=6), np.zeros((5, 1)), np.zeros((9, 1)), "block_size must be at most"),
        (MMD(Linear(), method="block", block_size=4), np.zeros((5, 1)), np.zeros((9, 1)), "at least two blocks"),
        (MMD(Linear(), method="features", n_components=0), np.zeros((5, 1)), np.zeros((9, 1)), "n_components"),
    ],
)
def test_bad_input_is_named(model, X, Y, message):
    with pytest.raises(ValueError, match=message):
        model.test(X, Y)


def test_equal_objects_are_no_difference():
    X = np.ones((10, 1))
    for method in ("exact", "features"):
        assert MMD(Gaussian(1.0), method=method).test(X, X, 20, random_state=0).p_value == 1.0
    assert MMD(Gaussian(1.0), method="block").test(X, X).p_value == 1.0


@pytest.mark.parametrize("method", ["exact", "features"])
def test_tables_are_cut_by_rows(method):
    pandas = pytest.importorskip("pandas")
    X, Y = samples(40, 30, shift=0.5, d=2)
    frames = [pandas.DataFrame({"a": Z[:, 0], "b": Z[:, 1]}) for Z in (X, Y)]
    columns = [{"a": list(Z[:, 0]), "b": list(Z[:, 1])} for Z in (X, Y)]
    kernel = Linear().on(["a", "b"])
    expected = MMD(Linear(), method=method, n_components=5).test(X, Y, 50, random_state=0).p_value
    for tables in (frames, columns):
        found = MMD(kernel, method=method, n_components=5).test(*tables, 50, random_state=0)
        assert found.p_value == pytest.approx(expected, abs=0.02)
        assert (
            HSIC(kernel, kernel, method=method, n_components=5).test(tables[1], tables[1], 50, random_state=0).rejected
        )


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_permutations_of_a_conditionally_definite_kernel_equal_brute_force(estimator):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(1.5, 1.0, size=(5, 2))
    model = MMD(NegativeDistance(), estimator)
    result = model.test(X, Y, 500, random_state=0)
    assert result.statistic == pytest.approx(model.statistic(X, Y), rel=1e-10)
    both, splits = np.r_[X, Y], list(combinations(range(11), 6))
    values = [model.statistic(both[list(s)], np.delete(both, list(s), axis=0)) for s in splits]
    larger = np.mean(np.asarray(values) >= result.statistic * (1 - 1e-8))
    assert result.p_value == pytest.approx(larger, abs=0.05)
    assert result.null_mean == pytest.approx(np.mean(values), abs=4 * np.std(values) / np.sqrt(500))
