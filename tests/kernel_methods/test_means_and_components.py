"""Class means, Parzen windows, principal components, ridge regression, Cholesky factors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid

from mercer.kernel_methods import IncompleteCholesky, KernelMeanClassifier, KernelPCA, KernelRidge, ParzenWindow
from mercer.kernels import Linear
from reference.kernel_methods import Bump, Letters, Minus, blobs


def test_mean_classifier_equals_explicit_class_means():
    X, y = blobs(0, n=41)
    Z = np.random.default_rng(1).normal(size=(20, 2))
    positive, negative = X[y == 1].mean(axis=0), X[y == 0].mean(axis=0)
    explicit = (Z - (positive + negative) / 2) @ (positive - negative)
    np.testing.assert_allclose(KernelMeanClassifier().fit(X, y).decision_function(Z), explicit, atol=1e-12)


def test_mean_classifier_chooses_the_nearest_of_many_means():
    X, y = blobs(1, n=60, classes=4)
    Z = 3 * np.random.default_rng(1).normal(size=(50, 2))
    np.testing.assert_array_equal(KernelMeanClassifier().fit(X, y).predict(Z), NearestCentroid().fit(X, y).predict(Z))
    np.testing.assert_array_equal(
        KernelMeanClassifier(Minus()).fit(X, y).predict(Z), NearestCentroid().fit(X, y).predict(Z)
    )


def test_weights_of_a_mean_are_repetitions():
    X, y = blobs(2, n=20)
    weights = np.arange(20) % 3
    repeated = np.repeat(np.arange(20), weights)
    weighted = KernelMeanClassifier(Bump()).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        weighted.decision_function(X),
        KernelMeanClassifier(Bump()).fit(X[repeated], y[repeated]).decision_function(X),
        atol=1e-12,
    )


def test_mean_classifier_without_offset_is_the_difference_of_two_parzen_windows():
    rng = np.random.default_rng(0)
    half = rng.normal([1.5, 0.0], 1.0, size=(30, 2))
    X, y = np.vstack([half, -half]), np.repeat([1, 0], 30)  # both classes have the same norm, so b = 0
    model = KernelMeanClassifier(Bump(0.7)).fit(X, y)
    assert abs(model.intercept_[0]) < 1e-12
    Z = rng.normal(size=(40, 2))
    densities = [ParzenWindow(Bump(0.7)).fit(X[y == c]).score_samples(Z) for c in (0, 1)]
    np.testing.assert_allclose(model.decision_function(Z), densities[1] - densities[0], atol=1e-12)
    np.testing.assert_array_equal(model.predict(Z), (densities[1] > densities[0]).astype(int))


def test_parzen_window_of_a_gaussian_kernel_is_a_density():
    x = np.linspace(-12, 12, 4001)[:, None]
    p = ParzenWindow(Bump(0.5)).fit(np.random.default_rng(0).normal(size=(50, 1))).score_samples(x)
    assert np.sum(p) * (x[1, 0] - x[0, 0]) / np.sqrt(2 * np.pi) == pytest.approx(1.0, abs=1e-6)


def test_parzen_window_refuses_kernels_with_negative_values():
    X, _ = blobs(0, n=20)
    for kernel in (Linear(), Minus()):
        with pytest.raises(ValueError, match=r"ParzenWindow needs a kernel whose values are not negative.* gave -"):
            ParzenWindow(kernel).fit(X)
    with pytest.raises(ValueError, match="values are not negative"):
        ParzenWindow("precomputed").fit(Linear()(X))
    # A kernel that is not negative among the training objects may be so with others.
    model = ParzenWindow(Linear()).fit(np.abs(X))
    assert (model.score_samples(np.abs(X)) >= 0).all()
    with pytest.raises(ValueError, match="values are not negative"):
        model.score_samples(X)
    matrix = ParzenWindow("precomputed").fit(Bump()(X))
    with pytest.raises(ValueError, match="values are not negative"):
        matrix.score_samples(-Bump()(X))


def test_a_refused_kernel_leaves_the_old_window():
    X, _ = blobs(0, n=20)
    model = ParzenWindow().fit(X)
    before = model.score_samples(X)
    with pytest.raises(ValueError, match="not negative"):
        model.set_params(kernel=Linear()).fit(X[:10])
    np.testing.assert_array_equal(model.set_params(kernel=None).score_samples(X), before)


def test_components_of_the_linear_kernel_are_those_of_pca_up_to_sign():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 5)) @ rng.normal(size=(5, 5)) + 3.0, rng.normal(size=(10, 5))
    ours, theirs = KernelPCA(n_components=4).fit(X), PCA(n_components=4).fit(X)
    for points in (X, Z):
        a, b = ours.transform(points), theirs.transform(points)
        np.testing.assert_allclose(a * np.sign((a * b).sum(axis=0)), b, atol=1e-8)
    np.testing.assert_allclose(ours.eigenvalues_ / 49, theirs.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("kernel", [Bump(0.3), Minus(), Letters()], ids=repr)
def test_all_components_rebuild_the_centred_matrix(kernel):
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcd"), 5)) for _ in range(30)]
    X = words if isinstance(kernel, Letters) else rng.normal(size=(30, 3))
    model = KernelPCA(kernel)
    F = model.fit_transform(X)
    H = np.eye(30) - 1 / 30
    np.testing.assert_allclose(F @ F.T, H @ kernel(X) @ H, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), F, atol=1e-8)
    if kernel.definiteness == "pd":
        G = KernelPCA(kernel, center=False).fit_transform(X)
        np.testing.assert_allclose(G @ G.T, kernel(X), atol=1e-8)
    else:
        with pytest.raises(ValueError, match="KernelPCA needs a positive definite kernel"):
            KernelPCA(kernel, center=False).fit(X)


def test_two_rings_come_apart_on_the_first_components():
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 200), np.repeat([0.3, 1.0], 100)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 0.02 * rng.normal(size=(200, 2))
    F = KernelPCA(Bump(3.0), n_components=3).fit_transform(X)

    def best_threshold(values: np.ndarray) -> float:
        cuts = np.sort(values)
        return max(max(np.mean((values > c) == (radius == r)) for r in (0.3, 1.0)) for c in cuts)

    assert max(best_threshold(F[:, j]) for j in range(3)) == 1.0
    assert max(best_threshold(X[:, j]) for j in range(2)) < 0.8


def test_components_that_have_no_variance_are_left_out():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert KernelPCA(n_components=10).fit_transform(X).shape == (20, 3)
    assert KernelPCA(n_components=10).fit(X).get_feature_names_out().tolist() == [
        "kernelpca0",
        "kernelpca1",
        "kernelpca2",
    ]
    with pytest.raises(ValueError, match="no components"):
        KernelPCA().fit(np.ones((4, 2)))


def test_ridge_equals_the_primal_one():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    weights = rng.uniform(0.5, 2.0, 30)
    ours = KernelRidge(alpha=0.7).fit(X, Y, sample_weight=weights)
    theirs = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)
    K = X @ X.T
    before = K.copy()
    by_matrix = KernelRidge("precomputed", alpha=0.7).fit(K, Y[:, 0])
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(by_matrix.predict(K), KernelRidge(alpha=0.7).fit(X, Y[:, 0]).predict(X), atol=1e-10)


@pytest.mark.parametrize("kernel", [Linear(), Bump(0.2), Letters()], ids=repr)
def test_cholesky_factor_is_exact_on_its_pivots_and_everywhere_when_it_is_complete(kernel):
    rng = np.random.default_rng(2)
    X = (
        ["".join(rng.choice(list("abcd"), 5)) for _ in range(30)]
        if isinstance(kernel, Letters)
        else rng.normal(size=(30, 3))
    )
    K = kernel(X)
    whole = IncompleteCholesky(kernel, tol=1e-12)
    L = whole.fit_transform(X)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-8 * K.max())
    np.testing.assert_allclose(whole.transform(X), L, atol=1e-6 * np.sqrt(K.max()))
    part = IncompleteCholesky(kernel, rank=3)
    M = part.fit_transform(X)
    assert M.shape == (30, 3)
    np.testing.assert_allclose((M @ M.T)[part.support_], K[part.support_], atol=1e-9 * K.max())
    assert np.all(np.diff(part.residuals_) <= 1e-12)
    assert part.residuals_[-1] == pytest.approx(np.trace(K - M @ M.T), abs=1e-8 * np.trace(K))
    assert np.linalg.eigvalsh(K - M @ M.T).min() > -1e-9 * np.trace(K)


def test_cholesky_pivots_are_those_with_the_largest_residual():
    X = np.random.default_rng(3).normal(size=(25, 6))
    model = IncompleteCholesky(rank=5).fit(X)
    rest = X.copy()
    for pivot in model.support_:
        assert pivot == (rest**2).sum(axis=1).argmax()
        direction = rest[pivot] / np.linalg.norm(rest[pivot])
        rest = rest - np.outer(rest @ direction, direction)
