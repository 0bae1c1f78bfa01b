"""Kernel matrices in the place of objects give what their kernels give, and what is wrong with a matrix is said."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.kernel_methods import HSIC, MMD, KernelCCA, KernelDependencyEstimation, choose_regularization
from mercer.kernels import Gaussian, Linear

k, l = Gaussian(0.5), Gaussian(0.2)
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(24, 2)), rng.normal(size=(24, 3))
Y[:, 0] += X[:, 0] ** 2
NEW, NEW_Y = rng.normal(size=(7, 2)), rng.normal(size=(7, 3))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("kernels", [("precomputed", "precomputed"), ("precomputed", l), (k, "precomputed")])
def test_hsic_of_matrices_is_that_of_their_kernels(kernels, estimator):
    left, right = (k(X) if kernels[0] == "precomputed" else X), (l(Y) if kernels[1] == "precomputed" else Y)
    given, plain = HSIC(*kernels, estimator=estimator), HSIC(k, l, estimator=estimator)
    assert given.statistic(left, right) == pytest.approx(plain.statistic(X, Y), rel=1e-12)
    for null in ("permutation", "gamma"):
        found, wanted = (
            model.test(*views, 99, null=null, random_state=0)
            for model, views in ((given, (left, right)), (plain, (X, Y)))
        )
        assert found.p_value == pytest.approx(wanted.p_value)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_mmd_of_a_matrix_is_that_of_its_kernel_whatever_the_order_of_the_objects(estimator):
    second = rng.permutation(np.repeat([False, True], [10, 14]))
    given, plain = MMD("precomputed", estimator), MMD(k, estimator)
    want = plain.statistic(X[~second], X[second])
    assert given.statistic(k(X), second) == pytest.approx(want, rel=1e-10)
    assert given.statistic(k(X), second.astype(int)) == pytest.approx(want, rel=1e-10)
    for null in ("permutation", "gamma"):
        found = given.test(k(X), second, 99, null=null, random_state=0)
        assert found.p_value == pytest.approx(plain.test(X[~second], X[second], 99, null=null, random_state=0).p_value)


def test_a_conditionally_definite_matrix_is_taken_by_tests():
    D = -np.linalg.norm(X[:, None] - X[None], axis=2)
    assert np.linalg.eigvalsh(D)[0] < -1
    second = np.arange(24) < 9
    result = MMD("precomputed").test(D, second, 99, random_state=0)
    assert result.statistic == pytest.approx(_energy(D, second))
    assert MMD("precomputed").statistic(D, second) == pytest.approx(_energy(D, second))


def _energy(D, second):
    a, b = np.flatnonzero(~second), np.flatnonzero(second)
    within = D[np.ix_(a, a)].sum() / (len(a) * (len(a) - 1)) + D[np.ix_(b, b)].sum() / (len(b) * (len(b) - 1))
    return within - 2 * D[np.ix_(a, b)].mean()


@pytest.mark.parametrize("kernels", ["precomputed", ["precomputed", l], [k, "precomputed"]])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_cca_of_matrices_is_that_of_their_kernels(kernels, weighted, tmp_path):
    weights = np.arange(24) % 3 if weighted else None
    given_kernels = [kernels] * 2 if isinstance(kernels, str) else kernels
    views, new = [], []
    for kind, kernel, old, other in zip(given_kernels, (k, l), (X, Y), (NEW, NEW_Y), strict=True):
        views.append(kernel(old) if kind == "precomputed" else old)
        new.append(kernel(other, old) if kind == "precomputed" else other)
    given = KernelCCA(kernels, 2).fit(views, sample_weight=weights)
    plain = KernelCCA([k, l], 2).fit([X, Y], sample_weight=weights)
    np.testing.assert_allclose(given.correlations_, plain.correlations_, rtol=1e-8)
    for found, wanted in zip(given.transform(new), plain.transform([NEW, NEW_Y]), strict=True):
        signs = np.sign((found * wanted).sum(axis=0))  # of components: the largest share may be a tie
        np.testing.assert_allclose(found * signs, wanted, atol=1e-7)
    mercer.save(given, tmp_path / "cca.mercer")
    again = mercer.load(tmp_path / "cca.mercer")
    for found, wanted in zip(again.transform(new), given.transform(new), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_ridge_is_chosen_by_matrices_as_by_objects():
    values = [0.1, 1.0, 10.0]
    found = choose_regularization(KernelCCA("precomputed"), [k(X), l(Y)], values, random_state=0)
    wanted = choose_regularization(KernelCCA([k, l]), [X, Y], values, random_state=0)
    assert found[0] == wanted[0]
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inputs", ["precomputed", k])
@pytest.mark.parametrize("outputs", ["precomputed", l])
def test_dependency_estimation_of_matrices_is_that_of_their_kernels(inputs, outputs, weighted, tmp_path):
    weights = 1.0 + np.arange(24) % 2 if weighted else None
    plain = KernelDependencyEstimation(k, l, 5).fit(X, Y, weights)
    given = KernelDependencyEstimation(inputs, outputs, 5)
    given.fit(k(X) if inputs == "precomputed" else X, l(Y) if outputs == "precomputed" else Y, weights)
    new = k(NEW, X) if inputs == "precomputed" else NEW
    np.testing.assert_allclose(
        np.abs(given.predict_coordinates(new)), np.abs(plain.predict_coordinates(NEW)), atol=1e-8
    )
    wanted, found = plain.predict(NEW), given.predict(new)
    np.testing.assert_array_equal(Y[found] if outputs == "precomputed" else found, wanted)
    mercer.save(given, tmp_path / "kde.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "kde.mercer").predict(new), found)
    if outputs == "precomputed":
        assert set(given.predict(new, candidates=[3, 5])) <= {3, 5}


def test_pairs_of_weight_0_are_not_learnt_from_where_matrices_are_given():
    weights = np.arange(24) % 3
    used = np.flatnonzero(weights)
    given = KernelDependencyEstimation("precomputed", "precomputed", 5).fit(k(X), l(Y), weights)
    fewer = KernelDependencyEstimation(k, l, 5).fit(X[used], Y[used], weights[used])
    np.testing.assert_allclose(
        np.abs(given.predict_coordinates(k(NEW, X))), np.abs(fewer.predict_coordinates(NEW)), atol=1e-8
    )
    places = given.predict(k(NEW, X))
    np.testing.assert_array_equal(Y[places], fewer.predict(NEW))
    assert set(places) <= set(used)


K = k(X)
SKEW, INDEFINITE, HOLED = K.copy(), K - 2 * np.diag(np.diag(K)), K.copy()
SKEW[0, 3] += 1
HOLED[1, 1] = np.nan
HALF = np.arange(24) < 12
CALLS = {
    "HSIC": lambda M: HSIC("precomputed", l).statistic(M, Y[: len(M)]),
    "MMD": lambda M: MMD("precomputed").statistic(M, HALF),
    "KernelCCA": lambda M: KernelCCA(["precomputed", l]).fit([M, Y[: len(M)]]),
    "inputs": lambda M: KernelDependencyEstimation("precomputed", l).fit(M, Y[: len(M)]),
    "outputs": lambda M: KernelDependencyEstimation(l, "precomputed").fit(Y[: len(M)], M),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (K[:, :-1], "must be a square matrix"),
        (SKEW, r"must be symmetric in fit, but .*\[0, 3\]"),
        (INDEFINITE, "must be positive definite.*smallest eigenvalue is -"),
        (HOLED, "must be finite"),
    ],
)
def test_what_a_matrix_is_not_is_said(call, matrix, message):
    with pytest.raises(ValueError, match=message):
        CALLS[call](matrix)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HSIC("precomputed", l, method="features").statistic(K, Y), "needs a kernel with a map, but kernel_x"),
        (lambda: MMD("precomputed", method="block").statistic(K, HALF), "needs a kernel"),
        (lambda: MMD("precomputed").statistic(K, HALF[:-1]), "each of the 24 objects"),
        (lambda: MMD("precomputed").statistic(K, X), "each of the 24 objects"),
        (lambda: MMD("precomputed").statistic(K, np.arange(24) < 1), "at least 2 objects, got 23 and 1"),
        (lambda: KernelCCA("precomputed", method="features").fit([K, K]), "precomputed"),
        (lambda: KernelCCA("linear").fit([K, K]), "must be a Kernel"),
        (lambda: KernelCCA("precomputed").fit([K, l(Y)]).transform([K[:, :-1], K]), "24 columns"),
        (lambda: KernelDependencyEstimation("precomputed", l).fit(K, Y).predict(K[:, :3]), "24 columns"),
        (lambda: KernelDependencyEstimation(k, "precomputed", pre_image="beam").fit(X, K), "must be 'candidates'"),
        (lambda: KernelDependencyEstimation(k, "precomputed").fit(X, K).predict(X, [24]), "from 0 to 23"),
        (lambda: KernelDependencyEstimation(k, "precomputed").fit(X, K).predict(X, [[0.5]]), "must be places"),
    ],
)
def test_wrong_uses_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_matrix_of_low_rank_is_taken_and_not_changed():
    K = Linear()(X)
    before = K.copy()
    KernelCCA("precomputed").fit([K, K])
    KernelDependencyEstimation("precomputed", "precomputed").fit(K, K)
    HSIC("precomputed", "precomputed").test(K, K, 9)
    np.testing.assert_array_equal(K, before)
