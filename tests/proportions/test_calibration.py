"""Inverse calibration: the regression it is, its tubes, its kernels, and when it says nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import SVR

from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, IllPosedWarning, InverseCalibration, make_bags


def blobs(n: int = 120, apart: float = 2.0, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + apart * y[:, None] * [1.0, 0.5, 0.0], y


def logit(p):
    return np.log(p / (1 - p))


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_pure_bags_of_one_are_regression_on_clipped_logits(epsilon):
    X, y = blobs(60)
    model = InverseCalibration(C=2.0, epsilon=epsilon, clip=0.05, tol=1e-6).fit(X, bags=np.arange(60), proportions=y)
    peer = SVR(kernel="linear", C=2.0, epsilon=epsilon, tol=1e-6).fit(X, logit(np.where(y, 0.95, 0.05)))
    np.testing.assert_allclose(model.decision_function(X), peer.predict(X), atol=1e-4)


def test_separable_rows_in_pure_bags_are_separated():
    X, y = blobs(100, apart=6.0)
    assert InverseCalibration().fit(X, bags=np.arange(100), proportions=y).score(X, y) >= 0.95


def test_labels_without_bags_are_bags_of_one():
    X, y = blobs(60)
    by_labels = InverseCalibration(tol=1e-6).fit(X, y)
    by_bags = InverseCalibration(tol=1e-6).fit(X, bags=np.arange(60), proportions=y)
    np.testing.assert_allclose(by_labels.coef_, by_bags.coef_, atol=1e-5)


def test_bags_are_points_at_their_means():
    X, y = blobs()
    bags = make_bags(y, 5, random_state=0)
    model = InverseCalibration(C=3.0, epsilon=0.1, clip=0.1, tol=1e-6).fit(X, bags=bags)
    peer = SVR(kernel="linear", C=3.0, epsilon=0.1, tol=1e-6).fit(
        bags.mean(X[bags.members]), logit(np.clip(bags.proportions, 0.1, 0.9))
    )
    np.testing.assert_allclose(model.decision_function(X), peer.predict(X), atol=1e-3)
    assert 0 <= model.duality_gap_ < 1e-4


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=repr)
def test_the_kernel_of_two_bags_is_the_mean_over_pairs(kernel):
    X, y = blobs()
    bags = make_bags(y, 4, random_state=1)
    A = np.zeros((len(bags), len(X)))
    A[bags.number, bags.members] = 1 / bags.sizes[bags.number]
    K = kernel(X)
    peer = SVR(kernel="precomputed", C=1.0, epsilon=0.0, tol=1e-6).fit(
        A @ K @ A.T, logit(np.clip(bags.proportions, 0.02, 0.98))
    )
    model = InverseCalibration(kernel=kernel, tol=1e-6).fit(X, bags=bags)
    expected = K @ A[peer.support_].T @ peer.dual_coef_[0] + peer.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
    matrix = InverseCalibration(kernel="precomputed", tol=1e-6).fit(K, bags=bags)
    np.testing.assert_allclose(matrix.decision_function(K), model.decision_function(X), atol=1e-6)


def test_sparse_features_give_the_same_machine():
    X, y = blobs()
    X[np.abs(X) < 0.5] = 0
    bags = make_bags(y, 4, random_state=1)
    dense = InverseCalibration(tol=1e-7).fit(X, bags=bags)
    sparse = InverseCalibration(tol=1e-7).fit(sp.csr_matrix(X), bags=bags)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-4)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csr_matrix(X)))


def test_a_map_is_linear_in_its_features():
    X, y = blobs()
    bags = make_bags(y, 4, random_state=1)
    map = FourierFeatures(30, gamma=0.1, random_state=0)
    model = InverseCalibration(map=map).fit(X, bags=bags)
    peer = InverseCalibration().fit(model.map_.transform(X), bags=bags)
    np.testing.assert_allclose(model.coef_, peer.coef_)


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 3.0, 0.5, 1.0, 2.0]])
def test_bounds_widen_the_tube(weights):
    """The optimum of the problem with a tube for each bag, by a general minimiser of its smoothed objective."""
    rng = np.random.default_rng(3)
    X, bag = rng.normal(size=(24, 2)), np.arange(24) // 4
    low = np.array([0.1, 0.3, 0.2, 0.6, 0.5, 0.7])
    high = np.array([0.3, 0.3, 0.5, 0.9, 0.8, 0.9])
    model = InverseCalibration(C=1.5, epsilon=0.05, tol=1e-8).fit(
        X, bags=bag, proportions=(low, high), bag_weight=weights
    )
    m, c = X.reshape(6, 4, 2).mean(axis=1), np.ones(6) if weights is None else np.array(weights)

    def objective(v):
        f = m @ v[:2] + v[2]
        outside = np.maximum(logit(low) - 0.05 - f, 0) + np.maximum(f - logit(high) - 0.05, 0)
        return 0.5 * v[:2] @ v[:2] + 1.5 * c @ outside

    found = objective(np.append(model.coef_[0], model.intercept_[0]))
    best = min(
        minimize(
            objective,
            rng.normal(size=3),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 9000},
        ).fun
        for _ in range(5)
    )
    assert found <= best + 1e-6
    assert model.duality_gap_ < 1e-5


def test_a_bag_of_weight_zero_does_not_count():
    X, y = blobs()
    bags = make_bags(y, 4, random_state=1)
    weight = np.ones(len(bags))
    weight[:10] = 0
    part, rows = bags.select(np.arange(10, len(bags)))
    with_zeros = InverseCalibration(tol=1e-7).fit(X, bags=bags, bag_weight=weight)
    np.testing.assert_allclose(with_zeros.coef_, InverseCalibration(tol=1e-7).fit(X[rows], bags=part).coef_, atol=1e-4)


def test_known_labels_inside_bags_are_bags_of_one():
    X, y = blobs()
    bags = make_bags(y, 6, random_state=1)
    known = np.full(len(y), np.nan)
    known[:5] = y[:5]
    model = InverseCalibration(tol=1e-7).fit(X, known, bags=bags)
    pairs = np.vstack(
        [np.column_stack([bags.members, bags.number]), np.column_stack([np.arange(5), 20 + np.arange(5)])]
    )
    peer = InverseCalibration(tol=1e-7).fit(X, bags=pairs, proportions=np.append(bags.proportions, y[:5]))
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize("size", [1, 8])
def test_shares_of_zero_and_one_stay_finite(size):
    X = np.random.default_rng(0).normal(size=(16, 2))
    y = np.arange(16) >= 8
    X[y] += 4
    model = InverseCalibration().fit(X, bags=np.arange(16) // size, proportions=y[::size].astype(float))
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y.astype(int)) == 1.0


def test_equal_shares_are_flagged():
    X, _ = blobs()
    with pytest.warns(IllPosedWarning, match="one share fits all bags"):
        model = InverseCalibration().fit(X, bags=np.arange(120) // 10, proportions=np.full(12, 0.3))
    assert np.allclose(model.coef_, 0)
    with pytest.warns(IllPosedWarning):
        InverseCalibration().fit(X, bags=np.zeros(120), proportions=[0.5])
    with pytest.warns(IllPosedWarning):
        InverseCalibration().fit(X, bags=np.arange(120) // 60, proportions=([0.1, 0.3], [0.4, 0.5]))


def test_three_classes_are_told_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 2)) + np.array([[0, 0], [5, 0], [0, 5]])[y]
    bags = make_bags(y, 5, random_state=0)
    assert InverseCalibration(C=10).fit(X, bags=bags).score(X, y) > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": np.inf}, "epsilon must be"),
        ({"clip": 0.5}, r"clip must be a number in \(0, 0.5\)"),
        ({"clip": "auto"}, "clip must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X, _ = blobs(20)
    with pytest.raises(ValueError, match=message):
        InverseCalibration(**parameters).fit(X, bags=Bags(np.arange(20) // 2, np.full(10, 0.5)))


def test_a_limit_on_steps_warns():
    from mercer.exceptions import ConvergenceWarning

    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match="stopped after 3 steps"):
        InverseCalibration(max_iter=3).fit(X, bags=make_bags(y, 4, random_state=0))


def test_a_warning_of_rounding_does_not_ask_for_more_steps():
    from mercer.exceptions import ConvergenceWarning

    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 100)) + y[:, None]
    with pytest.warns(ConvergenceWarning, match="by rounding.*scale the features") as caught:
        model = InverseCalibration().fit(1e7 * X, bags=make_bags(y, 8, random_state=0))
    assert model.duality_gap_ > 1e-8
    assert not any("max_iter" in str(warning.message) for warning in caught)


def test_a_kernel_works_on_what_a_map_gives():
    X, y = blobs(60)
    bags = make_bags(y, 4, random_state=0)
    map = FourierFeatures(64, random_state=0)
    linear = InverseCalibration(map=map).fit(X, bags=bags)
    kernel = InverseCalibration(map=map, kernel=Linear()).fit(X, bags=bags)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-4)
