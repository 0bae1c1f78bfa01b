"""Circulant projections are products with circulant matrices, keep lengths on average, and can be fitted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.maps import CirculantProjection

SIZES = [1, 2, 7, 16, 37, 256]


def rows(n: int = 6, d: int = 16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def dense(map_: CirculantProjection) -> np.ndarray:
    """The matrix, by scipy."""
    d, k = map_.n_features_in_, map_._n_features_out
    signs = np.broadcast_to(map_.signs_, (len(map_.vectors_), d))
    blocks = [scipy.linalg.circulant(r)[:, :d] * s for r, s in zip(map_.vectors_, signs, strict=True)]
    return np.vstack(blocks)[:k]


@pytest.mark.parametrize("sign_flip", [True, False, "blocks"])
@pytest.mark.parametrize("expand", ["concat", "pad"])
@pytest.mark.parametrize("d", SIZES)
def test_fourier_transforms_give_the_dense_product(d, expand, sign_flip):
    X = rows(d=d)
    for k in {1, max(1, d // 2), d, d + 1, 3 * d + 2}:
        map_ = CirculantProjection(k, expand=expand, sign_flip=sign_flip, normalize=False, random_state=0).fit(X)
        expected = X @ dense(map_).T
        assert map_.transform(X).shape == (6, k)
        assert np.abs(map_.transform(X) - expected).max() < 1e-10
        assert np.abs(map_.transform(X[:1]) - expected[:1]).max() < 1e-10
        assert np.array_equal(map_.to_dense(), dense(map_))


def test_fewer_outputs_are_the_first_ones():
    X = rows()
    few, all_ = (CirculantProjection(k, normalize=False, random_state=0).fit(X) for k in (5, 16))
    assert np.array_equal(few.transform(X), all_.transform(X)[:, :5])


def test_d_numbers_and_signs_are_all_that_is_kept():
    map_ = CirculantProjection(random_state=0).fit(rows(1, 4096))
    assert map_.vectors_.size == map_.signs_.size == 4096


def test_distances_are_kept():
    """200 unit vectors, 1024 to 256: 99% of squared distances within 40%; their mean within 3%."""
    X = rows(200, 1024)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    apart = pdist(X, "sqeuclidean")
    means = []
    for seed in range(10):
        Z = CirculantProjection(256, random_state=seed).fit_transform(X)
        ratio = pdist(Z, "sqeuclidean") / apart
        assert (np.abs(ratio - 1) < 0.4).mean() >= 0.99
        means.append(ratio.mean())
    assert abs(np.mean(means) - 1) < 0.03


def test_signs_decorrelate_the_outputs_of_smooth_inputs():
    """The variance of the share of differing signs, against that of independent projections."""
    d, k = 256, 64
    t = 2 * np.pi * np.arange(d) / d
    X = np.stack([np.sin(t) + 0.5 * np.sin(2 * t), np.cos(t) + 0.5 * np.cos(2 * t)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)

    def variance(sign_flip):
        codes = (CirculantProjection(k, sign_flip=sign_flip, random_state=s).fit_transform(X) >= 0 for s in range(300))
        return np.var([(a != b).mean() for a, b in codes])

    independent = 0.25 / k
    assert variance(True) < 1.7 * independent
    assert variance(False) > 5 * independent


FITS = [(16, 16, "concat"), (15, 9, "concat"), (8, 20, "concat"), (7, 12, "pad")]


@pytest.mark.parametrize(("d", "k", "expand"), FITS)
def test_a_fit_finds_the_projection_behind_the_targets(d, k, expand):
    X = rows(60, d)
    truth = CirculantProjection(k, expand=expand, random_state=1).fit(X)
    Y = truth.transform(X)
    signs = CirculantProjection(k, expand=expand, vector="fitted", random_state=1)
    # the same seed draws the same signs
    found = signs.fit(X, Y)
    assert np.array_equal(found.signs_, truth.signs_)
    assert np.allclose(found.transform(X), Y, atol=1e-6)


def test_no_other_vector_fits_better():
    X, Y = rows(40, 9), rows(40, 5, seed=1)
    map_ = CirculantProjection(5, vector="fitted", random_state=0).fit(X, Y)
    basis = [np.roll(np.eye(9)[0], i) for i in range(9)]
    columns = [CirculantProjection(5, vector=e, random_state=0).fit(X).transform(X).ravel() for e in basis]
    best = np.linalg.lstsq(np.stack(columns, axis=1), Y.ravel(), rcond=None)[0]
    assert np.allclose(map_.vectors_[0], best, atol=1e-6)


def test_a_given_vector_is_taken():
    X, r = rows(), rows(1, seed=3)[0]
    map_ = CirculantProjection(vector=r, sign_flip=False).fit(X)
    assert np.allclose(map_.transform(X), X @ scipy.linalg.circulant(r).T)
    with pytest.raises(ValueError, match=r"vector must hold finite numbers of shape \(1, 16\)"):
        CirculantProjection(vector=r[:-1]).fit(X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_types_and_tensors_are_kept(dtype):
    X = rows(30, 21).astype(dtype)
    map_ = CirculantProjection(50, random_state=0).fit(X)
    assert map_.transform(X).dtype == dtype
    assert np.allclose(map_.transform(X), X @ map_.to_dense().T, atol=1e-5)
    torch = pytest.importorskip("torch")
    found = map_.transform(torch.from_numpy(X))
    assert found.dtype == getattr(torch, dtype)
    assert np.allclose(found.numpy(), map_.transform(X), atol=1e-5)


def test_odd_inputs():
    map_ = CirculantProjection(5, random_state=0)
    for X in (rows(3, 1), np.zeros((2, 4)), np.ones((2, 4)), rows(9, 8)[::2, ::3], np.arange(6).reshape(2, 3)):
        assert np.allclose(map_.fit_transform(X), X @ map_.to_dense().T)
    with pytest.raises(ValueError, match="NaN"):
        map_.fit([[np.nan]])
    with pytest.raises(TypeError, match="RandomProjection"):
        map_.fit(sp.csr_matrix(rows()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"vector": "learned"}, "vector must be one of"),
        ({"expand": "repeat"}, "expand"),
        ({"sign_flip": "yes"}, "sign_flip"),
        ({"vector": "fitted"}, "needs targets"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        CirculantProjection(**options).fit(rows())


def test_targets_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(6, 4\)"):
        CirculantProjection(4, vector="fitted").fit(rows(), rows(6, 5))


def test_scikit_learn_finds_nothing_to_object_to():
    check_estimator(CirculantProjection(6, random_state=0))


@pytest.mark.parametrize("vector", ["random", "fitted", "given"])
def test_a_file_keeps_the_map(vector, tmp_path):
    X = rows()
    map_ = CirculantProjection(16, vector=rows(1, seed=5)[0] if vector == "given" else vector, random_state=0)
    map_.fit(X, rows(6, 16, seed=2))
    mercer.save(map_, tmp_path / "map.mercer")
    assert np.array_equal(mercer.load(tmp_path / "map.mercer").transform(X), map_.transform(X))
