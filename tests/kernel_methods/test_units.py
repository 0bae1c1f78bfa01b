"""Units, offsets, order and repetition of the data: the same answer where theory says so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer.kernel_methods import (
    HSIC,
    MMD,
    IncompleteCholesky,
    KernelCCA,
    KernelFisher,
    KernelMeanClassifier,
    KernelPCA,
    KernelRidge,
    ParzenWindow,
    RepresenterEstimator,
)
from mercer.kernels import Gaussian, Laplacian, Matern, median_heuristic
from mercer.maps import CompactNonlinearMap
from mercer.maps.spectra import scale_gamma

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, :2] ** 2 + 0.3 * RNG.normal(size=(60, 2))
LABELS = np.arange(60) % 2
MOVED = X + 2.0 * LABELS[:, None]

# What does not change distances between rows, up to a common factor.
ALIKE = {
    "large": lambda Z: 1e6 * Z,
    "small": lambda Z: 1e-6 * Z,
    "far": lambda Z: Z + 1e6,
    "permuted": lambda Z: Z[:, ::-1],
    "constant column": lambda Z: np.hstack([Z, np.full((len(Z), 1), 1e6 / 3)]),
}
SAME_SCALE = {name: change for name, change in ALIKE.items() if name not in ("large", "small")}


# ------------------------------------------------------------------------------------------------ widths


@pytest.mark.parametrize("change", ALIKE)
def test_median_heuristic_follows_the_units(change):
    factor = {"large": 1e-12, "small": 1e12}.get(change, 1.0)
    assert median_heuristic(ALIKE[change](X)) == pytest.approx(factor * median_heuristic(X), rel=1e-8)


@pytest.mark.parametrize("change", ["large", "small", "far", "permuted", "repeated rows"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_scale_follows_the_units(change, kind):
    factor = {"large": 1e-12, "small": 1e12}.get(change, 1.0)
    changed = np.vstack([X, X]) if change == "repeated rows" else ALIKE[change](X)
    assert scale_gamma(kind(changed)) == pytest.approx(factor / (4 * X.var()), rel=1e-8)
    weights = np.arange(60) % 3
    repeated = np.repeat(changed, weights, axis=0) if change != "repeated rows" else np.repeat(X, weights, axis=0)
    given = changed if change != "repeated rows" else X
    assert scale_gamma(kind(given), weights) == pytest.approx(scale_gamma(kind(repeated)), rel=1e-10)


def test_scale_refuses_data_whose_variance_is_no_number():
    with pytest.raises(ValueError, match="gamma='scale' needs entries of a usual size"):
        scale_gamma(1e200 * X)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.3), Matern(1.5)], ids=repr)
@pytest.mark.parametrize("change", SAME_SCALE)
def test_kernels_of_differences_do_not_see_offsets_order_and_constant_columns(kernel, change):
    np.testing.assert_allclose(kernel(SAME_SCALE[change](X)), kernel(X), atol=1e-8)


@pytest.mark.parametrize("change", ["large", "small", "far", "permuted"])
def test_the_width_that_compact_maps_start_from_follows_the_units(change):
    factor = {"large": 1e-12, "small": 1e12}.get(change, 1.0)
    width = lambda Z: CompactNonlinearMap(4, "kernel", max_iter=1, random_state=0).fit(Z).gamma_  # noqa: E731
    assert width(ALIKE[change](X)) == pytest.approx(factor * width(X), rel=1e-6)


# ------------------------------------------------------------------------------------------------ tests of dependence


@pytest.mark.parametrize("change", ALIKE)
@pytest.mark.parametrize("null", ["permutation", "gamma"])
def test_independence_and_two_sample_tests_do_not_see_units(change, null):
    for test, views, changed in (
        (HSIC(), (X, Y), (ALIKE[change](X), Y)),
        (HSIC(), (X, Y), (X, ALIKE[change](Y))),
        (HSIC(estimator="biased", normalized=True), (X, Y), (ALIKE[change](X), ALIKE[change](Y))),
        (MMD(), (X, MOVED), (ALIKE[change](X), ALIKE[change](MOVED))),
    ):
        before = test.test(*views, null=null, n_permutations=50, random_state=0)
        after = test.test(*changed, null=null, n_permutations=50, random_state=0)
        assert after.statistic == pytest.approx(before.statistic, rel=1e-6, abs=1e-9)
        assert after.p_value == pytest.approx(before.p_value, rel=1e-5, abs=1e-12)


# ------------------------------------------------------------------------------------------------ components


@pytest.mark.parametrize("change", ALIKE)
def test_components_of_the_linear_kernel_do_not_see_offsets_and_follow_units(change):
    factor = {"large": 1e6, "small": 1e-6}.get(change, 1.0)
    plain, changed = (KernelPCA(n_components=3).fit_transform(Z) for Z in (X, ALIKE[change](X)))
    signs = np.sign((plain * changed).sum(axis=0))
    tolerance = 1e-2 if change in ("far", "constant column") else 1e-8  # inner products of 10¹² have few digits left
    np.testing.assert_allclose(signs * changed / factor, plain, atol=tolerance)


@pytest.mark.parametrize("change", SAME_SCALE)
@pytest.mark.parametrize(
    "make",
    [
        lambda: KernelPCA(Gaussian(0.3), 2),
        lambda: KernelFisher(Gaussian(0.3)),
        lambda: KernelMeanClassifier(Gaussian(0.3)),
        lambda: KernelRidge(Gaussian(0.3)),
        lambda: RepresenterEstimator(Gaussian(0.3)),
        lambda: IncompleteCholesky(Gaussian(0.3), rank=10),
        lambda: ParzenWindow(Gaussian(0.3)),
    ],
    ids=["pca", "fisher", "means", "ridge", "representer", "cholesky", "parzen"],
)
def test_methods_with_a_kernel_of_differences_do_not_see_offsets_order_and_constant_columns(make, change):
    def outputs(Z):
        model = make().fit(Z, LABELS)
        name = next(n for n in ("transform", "decision_function", "predict", "score_samples") if hasattr(model, n))
        return np.abs(getattr(model, name)(Z))  # components have any sign

    np.testing.assert_allclose(outputs(SAME_SCALE[change](X)), outputs(X), atol=1e-6)


@pytest.mark.parametrize("change", ALIKE)
def test_kernel_correlations_with_widths_from_data_do_not_see_units(change):
    def correlations(A, B):
        kernels = [Gaussian(median_heuristic(A)), Gaussian(median_heuristic(B))]
        return KernelCCA(kernels, 2, alpha=1.0).fit([A, B]).correlations_

    np.testing.assert_allclose(correlations(ALIKE[change](X), ALIKE[change](Y)), correlations(X, Y), atol=1e-7)


@pytest.mark.parametrize("factor", [1e6, 1e-6, 1e-12])
def test_kernel_correlations_depend_on_the_ridge_in_units_of_the_kernel(factor):
    model = KernelCCA(Gaussian(0.5), 2, alpha=2.0)
    scaled = clone(model).set_params(kernels=factor * Gaussian(0.5), alpha=2.0 * factor)
    np.testing.assert_allclose(scaled.fit([X, Y]).correlations_, model.fit([X, Y]).correlations_, atol=1e-8)


@pytest.mark.parametrize("make", [KernelMeanClassifier, ParzenWindow])
def test_means_do_not_see_repetition(make):
    plain = make(Gaussian(0.3)).fit(X, LABELS)
    twice = make(Gaussian(0.3)).fit(np.vstack([X, X]), np.r_[LABELS, LABELS])
    name = "decision_function" if make is KernelMeanClassifier else "score_samples"
    np.testing.assert_allclose(getattr(twice, name)(X), getattr(plain, name)(X), atol=1e-12)
