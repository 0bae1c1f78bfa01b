"""Random features keep inner products on average, and their error falls with the square root of their number."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.maps import EmpiricalKernelMap, RandomFeatures, RandomProjection

KINDS = ["gaussian", "achlioptas", "sign"]

# ------------------------------------------------------------------------------------------------ projections


def squared_distances(Z: np.ndarray) -> np.ndarray:
    norms = (Z**2).sum(axis=1)
    return (norms[:, None] + norms - 2 * Z @ Z.T)[np.triu_indices(len(Z), 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_projections_keep_squared_distances(kind):
    X = np.random.default_rng(0).standard_normal((100, 10_000))
    Z = RandomProjection(512, kind, random_state=1).fit_transform(X)
    ratio = squared_distances(Z) / squared_distances(X)
    assert np.abs(ratio - 1).mean() < 0.1
    assert abs(ratio.mean() - 1) < 0.01  # scaled so that the mean is the truth


@pytest.mark.parametrize("kind", KINDS)
def test_projected_inner_products_are_unbiased(kind):
    random = np.random.default_rng(1)
    x, z = random.standard_normal((2, 30))
    estimates = [
        float(np.prod(RandomProjection(4, kind, random_state=seed).fit_transform(np.array([x, z])), axis=0).sum())
        for seed in range(250)
    ]
    assert abs(np.mean(estimates) - x @ z) < 3 * np.std(estimates) / np.sqrt(len(estimates))


def test_entries_are_what_their_kind_says():
    X = np.zeros((1, 400))
    signs = RandomProjection(100, "sign", random_state=0).fit(X).components_
    np.testing.assert_allclose(np.abs(signs), 0.1)
    sparse = RandomProjection(100, "achlioptas", random_state=0).fit(X).components_
    assert sp.issparse(sparse)
    np.testing.assert_allclose(np.abs(sparse.data), np.sqrt(0.03))
    assert sparse.nnz / sparse.toarray().size == pytest.approx(1 / 3, abs=0.01)
    assert (sparse.data > 0).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_give_what_dense_ones_give(kind, dtype):
    X = sp.random(20, 50, 0.2, random_state=0, format="csc")
    projection = RandomProjection(8, kind, random_state=0, dtype=dtype).fit(X)
    dense = projection.transform(X.toarray())
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == dtype
    np.testing.assert_allclose(projection.transform(X), dense, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_projection_follows_the_habits_of_estimators(kind):
    check_estimator(RandomProjection(3, kind, random_state=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_projection_comes_back_from_a_file(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 7))
    projection = RandomProjection(4, kind, random_state=0, dtype=np.float32).fit(X)
    mercer.save(projection, tmp_path / "projection.mercer")
    found = mercer.load(tmp_path / "projection.mercer")
    assert found.transform(X).tobytes() == projection.transform(X).tobytes()
    assert list(found.get_feature_names_out()) == [f"randomprojection{j}" for j in range(4)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"kind": "cosine"}, "kind must be one of"),
        ({"dtype": int}, "dtype must be"),
    ],
)
def test_wrong_parameters_of_a_projection_raise(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomProjection(**parameters).fit(np.eye(3))


# ------------------------------------------------------------------------------------------------ random features


def waves(n, random):
    return random.standard_normal((5, n)), random.uniform(0, 2 * np.pi, n)


def cosines(X, draws):
    return np.sqrt(2) * np.cos(X @ draws[0] + draws[1])


def test_random_fourier_features_are_close_to_the_gaussian_kernel():
    X = np.random.default_rng(0).standard_normal((200, 5))
    kernel = rbf_kernel(X, gamma=0.5)
    Z = RandomFeatures(cosines, waves, 4096, random_state=0).fit_transform(X)
    assert np.abs(Z @ Z.T - kernel).max() < 0.08
    sizes = 2 ** np.arange(6, 13)
    errors = []
    for n in sizes:
        runs = [RandomFeatures(cosines, waves, int(n), random_state=seed).fit_transform(X) for seed in range(3)]
        errors.append(np.mean([np.sqrt(np.mean((Z @ Z.T - kernel) ** 2)) for Z in runs]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.1


def test_random_features_take_any_input():
    """A string kernel: the share of random letters that both strings have."""

    def sampler(n, random):
        return random.choice(list("abcd"), n)

    def feature(words, letters):
        return np.array([[float(letter in word) for letter in letters] for word in words])

    Z = RandomFeatures(feature, sampler, 4000, random_state=0).fit_transform(["ab", "bc", "d"])
    np.testing.assert_allclose(Z @ Z.T, [[0.5, 0.25, 0.0], [0.25, 0.5, 0.0], [0.0, 0.0, 0.25]], atol=0.03)


def test_random_features_repeat_and_are_cloned():
    X = np.eye(5)
    maps = RandomFeatures(cosines, waves, 10, random_state=3)
    np.testing.assert_array_equal(maps.fit_transform(X), clone(maps).fit_transform(X))
    assert list(maps.get_feature_names_out())[:2] == ["randomfeatures0", "randomfeatures1"]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (lambda X, draws: np.zeros((3, 2)), r"shape \(5, 10\)"),
        (lambda X, draws: np.full((5, 10), np.nan), "finite real numbers"),
        (lambda X, draws: np.full((5, 10), 1j), "finite real numbers"),
    ],
)
def test_features_of_another_kind_raise(feature, message):
    with pytest.raises(ValueError, match=message):
        RandomFeatures(feature, waves, 10).fit_transform(np.eye(5))


def test_wrong_parameters_of_random_features_raise():
    with pytest.raises(ValueError, match="n_components"):
        RandomFeatures(cosines, waves, 0).fit()
    with pytest.raises(TypeError, match="sampler must be a function"):
        RandomFeatures(cosines, None).fit()  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        RandomFeatures(cosines, waves).transform(np.eye(5))


# ------------------------------------------------------------------------------------------------ empirical kernel map


def test_features_are_similarities_to_anchors():
    X = np.random.default_rng(0).standard_normal((30, 4))
    maps = EmpiricalKernelMap("rbf", n_components=10, kernel_params={"gamma": 0.3}, random_state=0).fit(X)
    assert len(np.unique(maps.anchors_, axis=0)) == 10
    assert all(any((row == anchor).all() for row in X) for anchor in maps.anchors_)
    np.testing.assert_allclose(maps.transform(X[:5]), rbf_kernel(X[:5], maps.anchors_, gamma=0.3) / np.sqrt(10))


def test_its_kernel_is_the_mean_over_the_data():
    X = np.random.default_rng(1).standard_normal((400, 3))
    K = rbf_kernel(X, gamma=0.5)
    truth = K @ K.T / len(X)
    gamma = {"gamma": 0.5}
    estimates = []
    for seed in range(20):
        Z = EmpiricalKernelMap("rbf", n_components=200, kernel_params=gamma, random_state=seed).fit(X).transform(X[:10])
        estimates.append(Z @ Z.T)
    error = np.abs(np.mean(estimates, axis=0) - truth[:10, :10])
    assert (error < 4 * np.std(estimates, axis=0) / np.sqrt(20) + 1e-12).all()
    everything = EmpiricalKernelMap("rbf", anchors=X, kernel_params=gamma).fit(X).transform(X)
    np.testing.assert_allclose(everything @ everything.T, truth, atol=1e-12)


def test_sparse_data_and_named_kernels_go_together():
    X = sp.random(20, 30, 0.3, random_state=0, format="csr")
    maps = EmpiricalKernelMap("linear", n_components=5, random_state=0).fit(X)
    np.testing.assert_allclose(maps.transform(X), (X @ maps.anchors_.T).toarray() / np.sqrt(5))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_components": 50}, ValueError, "at most the 5 rows"),
        ({"n_components": 0}, ValueError, "n_components"),
        ({"kernel": 3}, TypeError, "kernel must be a name or a function"),
        ({"kernel": lambda X, A: 0, "kernel_params": {"gamma": 1}, "n_components": 2}, ValueError, "kernel_params"),
        ({"kernel": lambda X, A: np.zeros((1, 1)), "n_components": 2}, ValueError, r"shape \(5, 2\)"),
        ({"kernel": lambda X, A: np.full((5, 2), np.nan), "n_components": 2}, ValueError, "NaN or infinite"),
        ({"kernel": lambda X, A: np.zeros((5, 0)), "anchors": []}, ValueError, "anchors must not be empty"),
    ],
)
def test_wrong_parameters_of_the_map_raise(parameters, error, message):
    with pytest.raises(error, match=message):
        EmpiricalKernelMap(**parameters).fit_transform(np.eye(5))


def test_the_map_must_be_fitted():
    with pytest.raises(NotFittedError):
        EmpiricalKernelMap().transform(np.eye(3))
