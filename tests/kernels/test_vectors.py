"""Kernels of vectors: closed forms, arithmetic in the type asked for, parameters and inputs that are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel, laplacian_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline

from mercer import _core
from mercer.kernels import (
    ANOVA,
    AdditiveMap,
    BSpline,
    ChiSquared,
    ExponentialDot,
    FourierMap,
    Gaussian,
    HistogramIntersection,
    Laplacian,
    Linear,
    LocalityImproved,
    Matern,
    NegativeDistance,
    Polynomial,
    Pyramid,
    median_heuristic,
    position_weights,
)
from reference.vector_kernels import b_spline, b_spline_by_convolution, squared_distance

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 7))
H = RANDOM.dirichlet(np.full(7, 0.4), size=40)
DENSE = [
    Linear(), Polynomial(2, coef0=1.0), ExponentialDot(0.1), Gaussian(0.1), Laplacian(0.1), Matern(), Matern(nu=0.8),
    NegativeDistance(), NegativeDistance(1.3), BSpline(2, 3.0), ANOVA(3), ANOVA(2, gamma=0.5), HistogramIntersection(),
    ChiSquared(), ChiSquared(None), LocalityImproved(window=3, p1=2), Pyramid((7, 1), patch=(2, 1)),
]  # fmt: skip
SPARSE = [k for k in DENSE if k._takes_sparse]


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(("kernel", "peer", "data"), [
    (Gaussian(0.3), lambda A, B: rbf_kernel(A, B, gamma=0.3), X),
    (Laplacian(0.3), lambda A, B: laplacian_kernel(A, B, gamma=0.3), X),
    (ChiSquared(0.7), lambda A, B: chi2_kernel(A, B, gamma=0.7), H),
])  # fmt: skip
def test_values_are_those_of_scikit_learn(kernel, peer, data):
    np.testing.assert_allclose(kernel(data), peer(data, data), rtol=1e-12)
    np.testing.assert_allclose(kernel(data[:5], data[7:]), peer(data[:5], data[7:]), rtol=1e-12)


def test_additive_chi_squared_differs_from_the_distance_by_the_masses():
    mass = H.sum(axis=1)
    np.testing.assert_allclose(
        ChiSquared(None)(H), (mass[:, None] + mass[None, :] + additive_chi2_kernel(H)) / 2, rtol=1e-12
    )


def test_gaussian_is_the_normalized_exponential_of_the_dot_product():
    """exp(−γ‖x − z‖²) = e^{−γ⟨x,x⟩} e^{2γ⟨x,z⟩} e^{−γ⟨z,z⟩}."""
    left = np.exp(-0.2 * (X**2).sum(axis=1))
    np.testing.assert_allclose(Gaussian(0.2)(X), left[:, None] * ExponentialDot(0.4)(X) * left[None, :], rtol=1e-12)
    np.testing.assert_allclose(Gaussian(0.2)(X), ExponentialDot(0.4).normalized()(X), rtol=1e-12)


def test_matern_tends_to_the_gaussian_and_closed_forms_agree_with_bessel():
    np.testing.assert_allclose(Matern(1.5, nu=60.0)(X), Gaussian.from_width(1.5)(X), atol=0.01)
    np.testing.assert_allclose(Matern(1.5, nu=np.inf)(X), Gaussian.from_width(1.5)(X), rtol=1e-12)
    for nu in (0.5, 1.5, 2.5):
        np.testing.assert_allclose(Matern(nu=nu)(X), Matern(nu=nu * (1 + 1e-12))(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", [k for k in DENSE if k._diagonal is not None], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_diagonal_is_exact(kernel, dtype):
    data = (H if kernel._nonnegative else X * 100 + 7).astype(dtype)
    K = kernel(data, dtype=dtype)
    np.testing.assert_array_equal(np.diag(K), kernel._diagonal)
    np.testing.assert_array_equal(K, K.T)
    assert K.max() <= 1.0


# ------------------------------------------------------------------------------------------------ B-splines


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_spline_equals_the_numeric_convolution(p):
    t = np.arange(0, (p + 2) * 40) / 40
    made = BSpline(p)(np.zeros((1, 1)), t[:, None])[0]
    np.testing.assert_allclose(made, [b_spline_by_convolution(2 * p + 1, v) for v in t], atol=2e-6)


def test_cubic_spline_has_the_known_values():
    k = BSpline(1)
    assert k.pair([0.0], [0.0]) == pytest.approx(2 / 3, rel=1e-15)
    assert k.pair([5.0], [4.0]) == pytest.approx(1 / 6, rel=1e-15)
    assert k.pair([0.0], [2.0]) == 0.0
    assert BSpline(1, width=2.0).pair([0.0], [2.0]) == pytest.approx(1 / 6, rel=1e-15)


@pytest.mark.parametrize("p", [7, 12, 20])
def test_splines_of_high_order_keep_their_digits(p):
    t = np.linspace(0, p + 1.5, 37)
    made = BSpline(p)(np.zeros((1, 1)), t[:, None])[0]
    np.testing.assert_allclose(made, [b_spline(2 * p + 1, v) for v in t], rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("order", range(8))
def test_only_odd_orders_are_positive_definite(order):
    """Why p is the parameter and not the order."""
    grid = np.arange(60) * 0.25
    values = [b_spline(order, step * 0.25) for step in range(-59, 60)]
    K = np.array([[values[59 + i - j] for j in range(60)] for i in range(60)])
    smallest = np.linalg.eigvalsh((K + K.T) / 2).min()
    if order % 2:
        assert smallest > -1e-12
        np.testing.assert_allclose(BSpline(order // 2)(grid[:, None]), K, atol=1e-14)
    else:
        assert smallest < -1e-5 * K.max()


# ------------------------------------------------------------------------------------------------ locality


def test_identity_weights_give_the_plain_kernel():
    np.testing.assert_allclose(LocalityImproved(np.ones(7))(X), Linear()(X), rtol=1e-12)
    np.testing.assert_allclose(LocalityImproved(np.ones(7), p2=3)(X), Polynomial(3)(X), rtol=1e-10)
    np.testing.assert_allclose(Pyramid((7, 1), patch=(7, 1), p1=1, p2=2)(X), Polynomial(2)(X), rtol=1e-10)


def test_weighted_dot_product_under_a_gaussian_is_one_of_scaled_vectors():
    w = position_weights(7, 3, 2.0)
    dot = LocalityImproved(w)
    squared = dot.diag(X)[:, None] + dot.diag(X)[None, :] - 2 * dot(X)
    np.testing.assert_allclose(np.exp(-0.3 * squared), Gaussian(0.3)(X * np.sqrt(w)), rtol=1e-10)


def test_permutation_of_pixels_changes_the_pyramid_only():
    images = RANDOM.normal(size=(12, 36))
    shuffled = images[:, RANDOM.permutation(36)]
    for kernel in (Gaussian(0.05), Polynomial(3, coef0=1.0)):
        np.testing.assert_allclose(kernel(shuffled), kernel(images), rtol=1e-10)
    pyramid = Pyramid((6, 6), patch=3)
    assert np.abs(pyramid(shuffled) - pyramid(images)).max() > 0.1 * np.abs(pyramid(images)).max()
    np.testing.assert_array_equal(pyramid(images.reshape(12, 6, 6)), pyramid(images))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
def test_monomials_give_the_polynomial_kernel(d, degree, coef0):
    """As many features as there are monomials, not as there are ordered products."""
    kernel = Polynomial(degree, gamma=1.3, coef0=coef0)
    F = kernel.features(X[:, :d])
    assert F.shape[1] == math.comb(d + (coef0 > 0) + degree - 1, degree)
    np.testing.assert_allclose(F @ F.T, kernel(X[:, :d]), rtol=1e-10, atol=1e-10)


def test_degree_two_map_is_the_printed_one():
    """[x_i², √2 x_i x_j, √(2c) x_i, c]."""
    x, c = np.array([2.0, 3.0]), 0.5
    expected = [4.0, math.sqrt(2) * 6, math.sqrt(2 * c) * 2, 9.0, math.sqrt(2 * c) * 3, c]
    np.testing.assert_allclose(Polynomial(2, coef0=c).features([x])[0], expected)


# ------------------------------------------------------------------------------------------------ types and forms


@pytest.mark.parametrize("kernel", DENSE, ids=repr)
def test_float32_is_computed_as_float32(kernel):
    data = (H if kernel._nonnegative else X).astype(np.float32)
    single, double = kernel(data, dtype=np.float32), kernel(data)
    assert single.dtype == np.float32
    assert double.dtype == np.float64
    np.testing.assert_allclose(single, double, rtol=2e-5, atol=2e-6 * np.abs(double).max())
    assert not np.array_equal(single, double.astype(np.float32))  # or it would have passed through float64


@pytest.mark.parametrize("d", [3, 100, 800])
@pytest.mark.parametrize("shift", [0.0, 100.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_float32_gaussian_is_close_to_the_truth(d, shift, scale):
    data = (RANDOM.normal(size=(60, d)) + shift).astype(np.float32)
    data[1] = data[0] + np.float32(1e-3) * RANDOM.normal(size=d).astype(np.float32)
    gamma = scale / (2 * d)
    exact = data.astype(np.float64)
    truth = [[math.exp(-gamma * squared_distance(a, b)) for b in exact] for a in exact[:8]]
    np.testing.assert_allclose(Gaussian(gamma)(data, dtype=np.float32)[:8], truth, atol=2e-6)
    np.testing.assert_allclose(Gaussian(gamma)(data[:8], data, dtype=np.float32), truth, atol=2e-6)


@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_vectors_give_the_matrix_of_dense_ones(kernel, dtype):
    data = ((H if kernel._nonnegative else X) * (RANDOM.random(X.shape) < 0.4)).astype(dtype)
    expected = kernel(data, dtype=dtype)
    tolerance = 2e-3 if dtype == np.float32 else 1e-7  # √ of a small squared distance
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        K = kernel(form(data), dtype=dtype)
        assert K.dtype == dtype
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel(sp.csr_matrix(data), data[:3], dtype=dtype), expected[:, :3], atol=tolerance)
    np.testing.assert_allclose(kernel(data[:3], sp.csr_matrix(data), dtype=dtype), expected[:3], atol=tolerance)
    np.testing.assert_allclose(kernel.diag(sp.csr_matrix(data)), np.diag(kernel(data)), rtol=1e-9)


def test_sparse_entries_given_twice_are_added():
    twice = sp.coo_matrix(([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    for kernel in (Laplacian(0.1), HistogramIntersection(), Linear()):
        np.testing.assert_allclose(kernel(twice), kernel(twice.toarray()))


@pytest.mark.parametrize("kernel", DENSE, ids=repr)
def test_many_rows_give_the_same_as_few(kernel):
    """Several tiles and panels of the compiled loops, several blocks, ragged ends, two threads."""
    n = 233
    data = RANDOM.dirichlet(np.full(7, 0.4), size=n) if kernel._nonnegative else RANDOM.normal(size=(n, 7))
    K = kernel(data)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel(data, n_jobs=2), K)
    rows = [0, 5, 96, 97, 191, 192, 232]
    np.testing.assert_allclose(kernel(data[rows], data), K[rows], rtol=1e-12, atol=1e-13)
    small = type(kernel)(**kernel.get_params())
    small.__class__ = type("Small", (type(kernel),), {"_block_entries": 50 * n})
    np.testing.assert_array_equal(small(data), K)


@pytest.mark.parametrize("kernel", DENSE, ids=repr)
def test_instruction_sets_agree(kernel):
    data = H if kernel._nonnegative else X
    before = _core.instruction_set()
    try:
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
            found = []
            for name in _core.instruction_sets():
                _core.use_instruction_set(name)
                found.append(kernel(data, dtype=dtype))
            for K in found[1:]:
                np.testing.assert_allclose(K, found[0], rtol=tolerance, atol=tolerance)
    finally:
        _core.use_instruction_set(before)


def test_no_objects_give_an_empty_matrix():
    assert Gaussian()(np.empty((0, 3)), X[:, :3]).shape == (0, 40)
    assert Gaussian()(np.empty((0, 3))).shape == (0, 0)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(("kernel", "message"), [
    (Gaussian(0.0), "gamma must be a positive"),
    (Gaussian(-1.0), "not positive definite"),
    (Gaussian("median"), "median_heuristic"),
    (Gaussian(np.nan), "gamma"),
    (Laplacian(-1), "gamma"),
    (ExponentialDot(-1.0), "not positive definite"),
    (ChiSquared(0), "gamma"),
    (Polynomial(1.5), "degree must be an integer"),
    (Polynomial(0), "degree"),
    (Polynomial(2, coef0=-1.0), "coef0 .* not positive definite"),
    (Polynomial(2, gamma=-1.0), "gamma"),
    (Matern(0.0), "length_scale"),
    (Matern(nu=-0.5), "nu"),
    (NegativeDistance(2.5), "not conditionally positive definite"),
    (NegativeDistance(0), "power"),
    (BSpline(-1), "p must be"),
    (BSpline(1, width=0), "width"),
    (BSpline(21), "at most 20"),
    (ANOVA(0), "degree"),
    (ANOVA(8), "at most the number of coordinates, 7"),
    (ANOVA(2, gamma=-1), "gamma"),
    (LocalityImproved([1.0, -1.0]), "not negative"),
    (LocalityImproved([1.0, 1.0]), "weights must be a list of 7"),
    (LocalityImproved(window=2), "odd"),
    (LocalityImproved(channels=2), "multiple of channels=2"),
    (Pyramid((7,)), "shape must be"),
    (Pyramid((2, 3), 2), "have 7 entries"),
    (Pyramid((7, 1), 3), "does not lie in"),
    (Pyramid((7, 1), (1, 1), stride=0), "stride"),
])  # fmt: skip
def test_parameters_that_are_no_good_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(X)


@pytest.mark.parametrize("kernel", DENSE, ids=repr)
def test_inputs_that_are_no_good_are_refused(kernel):
    data = H if kernel._nonnegative else X
    for bad in (np.nan, np.inf):
        broken = data.copy()
        broken[3, 2] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            kernel(broken)
    with pytest.raises(ValueError, match=r"one row an object, got 7 single values.*reshape"):
        kernel(data[0])
    with pytest.raises(ValueError, match=r"entries"):
        kernel(data, data[:, :6])
    with pytest.raises(ValueError, match="all equally long"):
        kernel([[0.5] * 7, [0.5] * 6])
    with pytest.raises(ValueError):
        kernel([])
    if kernel._nonnegative:
        with pytest.raises(ValueError, match="must not be negative"):
            kernel(-data)
        with pytest.raises(ValueError, match="must not be negative"):
            kernel(sp.csr_matrix(-data))
    if not kernel._takes_sparse:
        with pytest.raises(ValueError, match=r"dense vectors only: pass X.toarray"):
            kernel(sp.csr_matrix(data))


def test_exponential_that_overflows_is_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"too large for float32.*Gaussian"):
        ExponentialDot(1.0)(X * 10, dtype=np.float32)


def test_too_many_features_are_refused():
    for kernel in (Polynomial(9, coef0=1.0), ANOVA(9), Pyramid((8, 8), patch=4, p1=4, p2=3)):
        with pytest.raises(ValueError, match="too many to list"):
            kernel.features(np.ones((3, 64)))
    with pytest.raises(ValueError, match="7 entries, those of Z have 6"):
        Polynomial(2).features(X, X[:, :6])
    with pytest.raises(NotImplementedError, match="no finite features"):
        Gaussian().features(X)


def test_compiled_loops_check_their_arrays():
    A, out = np.ones((2, 3)), np.empty((2, 2))
    rule = _core.kernels.PairRule("product")
    for call in (
        lambda: _core.kernels.pairwise(A, np.ones((2, 4)), rule, None, None, out),
        lambda: _core.kernels.pairwise(A, A, rule, None, None, out, 1),
        lambda: _core.kernels.pairwise(A, np.ones((3, 3)), rule, None, None, out),
        lambda: _core.kernels.pairwise(A, A, rule, np.ones(2), np.ones(2), out),
        lambda: _core.kernels.pairwise(A, A, _core.kernels.PairRule("product", "gaussian"), None, None, out),
        lambda: _core.kernels.pairwise(A, A, _core.kernels.PairRule("groups"), None, None, out),
        lambda: _core.kernels.pairwise(A, A, _core.kernels.PairRule("splines"), None, None, out),
        lambda: _core.kernels.pairwise(A, A, rule, None, None, out.T[:, ::-1]),
        lambda: _core.kernels.PairRule("cosine"),
        lambda: _core.kernels.PairRule("product", "log"),
        lambda: _core.kernels.PairRule("product", "power", 1.0, 0.0, 0),
        lambda: _core.kernels.transpose_into(A, out),
    ):
        with pytest.raises(ValueError):
            call()
    groups = _core.kernels.PairRule("groups")
    groups.set_groups(np.array([0, 1]), np.array([3]), np.ones(1), np.ones(1), 1)
    with pytest.raises(ValueError, match="no column"):
        _core.kernels.pairwise(A, A, groups, None, None, out)


# ------------------------------------------------------------------------------------------------ maps


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Laplacian(0.1), Matern(2.0, nu=1.5), Matern(2.0, nu=np.inf)], ids=repr
)
@pytest.mark.parametrize("n_components", [40, 41])
def test_fourier_features_are_unbiased(kernel, n_components):
    """The mean over draws tends to the kernel, to within 5 standard errors."""
    data, draws = X[:10], 100
    found = []
    for seed in range(draws):
        F = FourierMap(kernel, n_components, random_state=seed).fit_transform(data)
        assert F.shape == (10, n_components)
        found.append(F @ F.T)
    error = np.abs(np.mean(found, axis=0) - kernel(data))
    assert (error <= 5 * np.std(found, axis=0) / np.sqrt(draws) + 1e-12).all()


def test_error_of_fourier_features_falls_with_the_root_of_their_number():
    kernel = Gaussian(0.1)
    K = kernel(X)
    sizes = np.array([64, 256, 1024, 4096])
    errors = []
    for n in sizes:
        each = [FourierMap(kernel, int(n), random_state=s).fit_transform(X) for s in range(10)]
        errors.append(np.sqrt(np.mean([((F @ F.T - K) ** 2).mean() for F in each])))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


def test_fourier_features_keep_the_type_and_take_sparse_vectors():
    made = Gaussian(0.1).approximate(50, random_state=1).fit(X)
    assert isinstance(made, FourierMap)
    assert made.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(made.transform(X.astype(np.float32)), made.transform(X), atol=1e-5)
    np.testing.assert_allclose(made.transform(sp.csr_matrix(X)), made.transform(X), atol=1e-12)
    np.testing.assert_array_equal(made.transform(X), Gaussian(0.1).approximate(50, random_state=1).fit_transform(X))
    assert made.get_feature_names_out()[0] == "fouriermap0"
    with pytest.raises(ValueError, match="fitted to 7"):
        made.transform(X[:, :3])
    with pytest.raises(ValueError, match="NystroemMap takes every kernel"):
        FourierMap(Linear()).fit(X)


@pytest.mark.parametrize("kernel", [ChiSquared(None), HistogramIntersection()], ids=repr)
def test_additive_map_tends_to_the_kernel(kernel):
    K = kernel(H)
    errors = []
    for steps in (1, 3, 8, 30):
        F = AdditiveMap(kernel, n_steps=steps).fit_transform(H)
        assert F.shape == (40, 7 * (2 * steps + 1))
        errors.append(np.abs(F @ F.T - K).max())
    assert errors == sorted(errors, reverse=True)
    assert errors[1] < 0.15
    assert errors[-1] < 0.03
    single = AdditiveMap(kernel).fit_transform(H.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        AdditiveMap(kernel).fit_transform(sp.csr_matrix(H)), AdditiveMap(kernel).fit_transform(H)
    )


def test_waves_on_the_additive_map_approximate_the_exponential_kernel():
    made = make_pipeline(
        AdditiveMap(ChiSquared(None), n_steps=10), FourierMap(Gaussian(0.8), n_components=20_000, random_state=0)
    )
    F = made.fit_transform(H)
    np.testing.assert_allclose(F @ F.T, ChiSquared(0.8)(H), atol=0.04)
    with pytest.raises(ValueError, match="AdditiveMap takes"):
        AdditiveMap(ChiSquared(1.0)).fit(H)


# ------------------------------------------------------------------------------------------------ helpers


def test_median_heuristic_is_half_the_inverse_squared_median():
    distances = [math.sqrt(squared_distance(a, b)) for i, a in enumerate(X) for b in X[:i]]
    assert median_heuristic(X) == pytest.approx(1 / (2 * np.median(distances) ** 2))
    assert median_heuristic(sp.csr_matrix(X)) == pytest.approx(median_heuristic(X))
    big = RANDOM.normal(size=(3000, 4))
    assert median_heuristic(big, random_state=0) == median_heuristic(big, random_state=0)
    assert median_heuristic(big, 500, random_state=0) == pytest.approx(median_heuristic(big, 3000), rel=0.1)
    with pytest.raises(ValueError, match="at least 2"):
        median_heuristic(X[:1])
    with pytest.raises(ValueError, match="median distance is 0"):
        median_heuristic(np.ones((5, 2)))


def test_position_weights_are_largest_at_the_centre():
    w = position_weights(9, center=6, width=2.0)
    assert w.argmax() == 6
    assert w[6] == 1.0
    assert w[4] == w[8] == pytest.approx(math.exp(-0.5))
    for bad in ((0, 1, 1.0), (5, np.nan, 1.0), (5, 1, 0.0)):
        with pytest.raises(ValueError):
            position_weights(*bad)


@pytest.mark.parametrize("nu", [0.3, 7.0, 99.0, 101.0, 400.0, 2000.0])
@pytest.mark.parametrize("distance", [1e-9, 0.01, 1.0, 3.0, 1e7])
def test_matern_of_any_order_is_its_integral(nu: float, distance: float) -> None:
    """K_ν(r) = ∫ exp(−r cosh t) cosh(νt) dt, in logarithms about its largest term: no factor is out of range."""
    r = np.sqrt(2 * nu) * distance
    t = np.linspace(0.0, np.arcsinh(nu / r) + 10.0, 200_001)
    logs = -r * np.cosh(t) + nu * t + np.log1p(np.exp(-2 * nu * t)) - np.log(2.0)
    top = logs.max()
    integral = np.log(np.sum(np.exp(logs - top)) * (t[1] - t[0])) + top
    expected = np.exp((1 - nu) * np.log(2.0) - math.lgamma(nu) + nu * np.log(r) + integral)
    assert Matern(1.0, nu).pair([0.0], [distance]) == pytest.approx(expected, rel=2e-4, abs=1e-12)


def test_sparse_float32_vectors_that_are_long_keep_their_distances() -> None:
    dense = np.random.default_rng(0).normal(0.0, 1.0, size=(30, 8)).astype(np.float32) + np.float32(300.0)
    K = Gaussian(0.5)(sp.csr_matrix(dense), dtype=np.float32)
    np.testing.assert_allclose(K, Gaussian(0.5)(dense.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_a_value_that_is_not_finite_is_named_with_its_place(make: Any) -> None:
    X = np.eye(4)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="Gaussian takes no NaN or infinite numbers: object 2 has nan at place 1"):
        Gaussian()(make(X))


def test_strings_are_no_vectors() -> None:
    with pytest.raises(ValueError, match="Gaussian takes vectors of numbers, got strings"):
        Gaussian()(["ab", "c"])
