"""Polynomial sketches are convolutions of count sketches and estimate (γ⟨x, z⟩ + c)^p."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer.maps import PolynomialSketch


def rows(n: int = 8, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)


def brute_force(map_: PolynomialSketch, X: np.ndarray) -> np.ndarray:
    """Every product of coordinates goes to the sum of their columns with the product of their signs."""
    full = np.hstack([np.sqrt(map_.gamma) * X, np.full((len(X), 1), np.sqrt(map_.coef0))])
    out = np.zeros((len(X), map_.n_components))
    for places in product(range(full.shape[1]), repeat=map_.degree):
        column = sum(map_.columns_[p, i] for p, i in enumerate(places)) % map_.n_components
        sign = np.prod([map_.signs_[p, i] for p, i in enumerate(places)])
        out[:, column] += sign * np.prod(full[:, places], axis=1)
    return out


@pytest.mark.parametrize("n", [1, 2, 7, 16, 37])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
def test_a_sketch_is_the_sum_over_all_products(degree, n, coef0, monkeypatch):
    X = rows()
    map_ = PolynomialSketch(n, degree, gamma=0.6, coef0=coef0, random_state=0).fit(X)
    expected = brute_force(map_, X)
    assert np.allclose(map_.transform(X), expected, atol=1e-12)
    assert np.allclose(map_.transform(sp.csr_matrix(X)), expected, atol=1e-12)
    monkeypatch.setattr("mercer.maps.sketches.compiled", lambda: None)
    assert np.allclose(map_.transform(X), expected, atol=1e-12)


@pytest.mark.parametrize(("degree", "coef0"), [(1, 0.0), (2, 0.0), (2, 1.0), (3, 0.5)])
def test_the_mean_over_draws_is_the_kernel(degree, coef0):
    X = rows()
    draws = np.array(
        [
            (lambda Z: Z @ Z.T)(PolynomialSketch(64, degree, coef0=coef0, random_state=seed).fit_transform(X))
            for seed in range(120)
        ]
    )
    deviation = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - (X @ X.T + coef0) ** degree) <= 5 * deviation + 1e-9).all()


def test_the_error_halves_with_four_times_the_features():
    X = rows(30, 20)
    K = (X @ X.T + 1) ** 2

    def error(n):
        maps = (PolynomialSketch(n, coef0=1.0, random_state=s).fit_transform(X) for s in range(20))
        return np.sqrt(np.mean([(Z @ Z.T - K) ** 2 for Z in maps]))

    sizes = [64, 256, 1024]
    assert abs(np.polyfit(np.log(sizes), np.log([error(n) for n in sizes]), 1)[0] + 0.5) < 0.12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_the_rows_is_kept(dtype):
    X = rows(200, 30).astype(dtype)
    one, two = (PolynomialSketch(128, coef0=1.0, n_jobs=n, random_state=0).fit_transform(X) for n in (1, 2))
    assert one.dtype == dtype
    assert np.array_equal(one, two)
    assert PolynomialSketch(128).fit_transform(sp.csr_matrix(X)).dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_come_back_as_tensors(dtype):
    torch = pytest.importorskip("torch")
    X = rows(6, 40).astype(dtype)
    map_ = PolynomialSketch(50, 3, coef0=0.5, random_state=0).fit(X)
    found = map_.transform(torch.from_numpy(X))
    assert found.dtype == getattr(torch, dtype)
    assert np.allclose(found.numpy(), map_.transform(X), atol=1e-5)


def test_odd_inputs():
    map_ = PolynomialSketch(6, random_state=0)
    for X in (rows(3, 1), rows(1, 3), np.zeros((2, 4)), rows(9, 8)[::2, ::3], np.arange(6).reshape(2, 3)):
        assert np.allclose(map_.fit_transform(X), brute_force(map_, np.asarray(X, np.float64)))
    with pytest.raises(ValueError, match="NaN"):
        map_.fit([[np.nan]])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"degree": 0}, "degree"),
        ({"gamma": -1.0}, "gamma"),
        ({"coef0": -0.1}, "coef0"),
    ],
)
def test_bad_parameters_are_named(options, name):
    with pytest.raises(ValueError, match=name):
        PolynomialSketch(**options).fit(rows())


def test_scikit_learn_finds_nothing_to_object_to():
    check_estimator(PolynomialSketch(6, random_state=0))


def test_a_file_keeps_the_map(tmp_path):
    map_ = PolynomialSketch(12, coef0=0.3, random_state=0).fit(rows())
    mercer.save(map_, tmp_path / "map.mercer")
    assert np.array_equal(mercer.load(tmp_path / "map.mercer").transform(rows()), map_.transform(rows()))
    meta, arrays = map_.to_state()
    with pytest.raises(ValueError, match="columns_ must hold integers below 12"):
        PolynomialSketch.from_state(meta, {**arrays, "columns_": arrays["columns_"] + 12})
