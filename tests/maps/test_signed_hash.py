"""Signed hash projections equal their matrix, keep inner products on average, and store nothing but a seed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import _core
from mercer.maps import SignedHashProjection
from mercer.maps.signed_hash import hashed_places


def rows(n: int = 8, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def explicit(map_: SignedHashProjection) -> np.ndarray:
    """H / √S, entry by entry."""
    buckets, signs = hashed_places(map_.n_features_in_, map_.n_hashes, map_.n_components, map_.seed_)
    H = np.zeros((map_.n_components, map_.n_features_in_))
    for t in range(map_.n_features_in_):
        for bucket, sign in zip(buckets[t], signs[t], strict=True):
            H[bucket, t] += sign
    return H / np.sqrt(map_.n_hashes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k", "S"), [(1, 1, 1, 1), (3, 300, 7, 3), (20, 513, 50, 20), (33, 40, 51, 2)])
def test_the_implicit_product_equals_the_explicit_matrix(n, d, k, S, dtype, monkeypatch):
    X = rows(n, d).astype(dtype)
    map_ = SignedHashProjection(k, n_hashes=S, random_state=1).fit(X)
    expected, tolerance = X @ explicit(map_).T, 1e-12 if dtype == np.float64 else 3e-4
    assert np.allclose(map_.to_matrix().toarray(), explicit(map_), atol=1e-14)
    Z = map_.transform(X)
    assert Z.dtype == dtype
    assert np.allclose(Z, expected, atol=tolerance)
    assert np.allclose(map_.transform(sp.csr_matrix(X)), expected, atol=tolerance)
    monkeypatch.setattr("mercer.maps.signed_hash.compiled", lambda: None)
    assert np.allclose(map_.transform(X), expected, atol=tolerance)
    assert np.allclose(map_.transform(sp.csr_matrix(X)), expected, atol=tolerance)


@pytest.mark.parametrize("k", [50, 51])
@pytest.mark.parametrize("S", [1, 4])
def test_inner_products_are_kept_on_average_for_even_and_odd_sizes(k, S):
    # Positive rows have a large sum: signs that agree within a bucket would add (1/k) Σu Σv to the inner product.
    u, v = np.abs(rows(2, 400))
    maps = (SignedHashProjection(k, n_hashes=S, random_state=seed).fit(u[None]) for seed in range(200))
    draws = np.array([np.prod(map_.transform(np.stack([u, v])), axis=0).sum() for map_ in maps])
    error = draws.std() / np.sqrt(len(draws))
    assert abs(draws.mean() - u @ v) <= 3 * error
    assert u.sum() * v.sum() / k > 20 * error  # what the biased estimate would show


def test_squared_norms_of_columns_are_one_on_average_and_entries_may_exceed_one():
    X = rows(1, 2000)
    map_ = SignedHashProjection(50, n_hashes=50, random_state=0).fit(X)
    H = map_.to_matrix().toarray() * np.sqrt(50)
    norms = (H**2).sum(axis=0)
    assert abs(norms.mean() - 50) <= 3 * norms.std() / np.sqrt(len(norms))
    assert np.abs(H).max() > 1


def test_signs_and_buckets_are_independent():
    buckets, signs = hashed_places(20_000, 5, 50, seed=3)
    share = np.array([[(signs[:, s][buckets[:, s] == b]).mean() for b in range(50)] for s in range(5)])
    assert np.abs(share).max() < 5 / np.sqrt(20_000 / 50)
    counts = np.bincount(buckets.ravel(), minlength=50)
    assert np.abs(counts / 2000 - 1).max() < 0.15
    pairs = np.corrcoef(signs.T) - np.eye(5)
    assert np.abs(pairs).max() < 5 / np.sqrt(20_000)


def test_places_are_the_same_in_all_versions():
    buckets, signs = hashed_places(3, 3, 1000, seed=7)
    assert buckets.tolist() == [[276, 557, 123], [925, 186, 879], [950, 412, 316]]
    assert signs.tolist() == [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_do_not_change_a_bit(sparse):
    X = rows(300, 90)
    X = sp.csr_matrix(X * (X > 0.5)) if sparse else X
    one, three = (SignedHashProjection(31, n_jobs=n, random_state=0).fit_transform(X) for n in (1, 3))
    assert np.array_equal(one, three)


def test_a_row_alone_gives_what_it_gives_among_others():
    X = rows(40, 700)
    map_ = SignedHashProjection(64, random_state=0).fit(X)
    assert np.array_equal(map_.transform(X)[37:38], map_.transform(X[37:38]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_buckets_equal_additions_to_places(dtype):
    X = rows(19, 1100).astype(dtype)
    core = _core.maps
    assert core.hash_plan_serves(1100, 12, 31)
    plan = core.HashPlan(1100, 5, 12, 31)
    alone = np.empty((1, 31), dtype)
    core.planned_hash_rows(plan, X[:1].copy(), alone, 1)
    for n in (1, 2, 19):
        ours, theirs = np.empty((n, 31), dtype), np.empty((n, 31), dtype)
        core.planned_hash_rows(plan, X[:n].copy(), ours, 1)
        core.signed_hash_rows(X[:n].copy(), 5, 12, theirs, 1)
        assert np.allclose(ours, theirs, atol=1e-12 if dtype == np.float64 else 1e-4)
        assert np.array_equal(ours[:1], alone)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("k", [8, 1024], ids=["plan", "no plan"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_its_sums(bad, k, n):
    X = rows(n, 700)
    map_ = SignedHashProjection(k, n_hashes=6, random_state=0).fit(X)
    for feature in (0, 699):
        wrong = X.copy()
        wrong[-1, feature] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            map_.transform(wrong)
    with np.errstate(all="ignore"):
        assert not np.isfinite(
            map_.transform(np.full((n, 700), 1.7e308))
        ).all()  # overflow of finite numbers is no error


def test_thousands_of_places_in_one_bucket():
    X = rows(3, 300)
    map_ = SignedHashProjection(1, n_hashes=500, random_state=0).fit(X)
    assert np.allclose(map_.transform(X), X @ map_.to_matrix().T.toarray(), atol=1e-9)


def test_many_buckets_and_many_places_have_no_plan():
    core = _core.maps
    assert not core.hash_plan_serves(1100, 4, 1024)  # four places of a tile for two buckets
    assert not core.hash_plan_serves(1 << 24, 4, 8)
    assert not core.hash_plan_serves(20, 0, 8)
    assert not core.hash_plan_serves(1, 1 << 62, 8)
    with pytest.raises(ValueError, match="does not pay"):
        core.HashPlan(1100, 5, 4, 1024)
    with pytest.raises(ValueError, match="features of the plan"):
        core.planned_hash_rows(core.HashPlan(40, 0, 4, 8), rows(2, 41), np.empty((2, 8)), 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_come_back_as_tensors(dtype):
    torch = pytest.importorskip("torch")
    X = torch.tensor(rows(6, 40), dtype=getattr(torch, dtype))
    map_ = SignedHashProjection(16, random_state=0).fit(X)
    plain, followed = map_.transform(X), map_.transform(X.clone().requires_grad_())
    assert plain.dtype == X.dtype
    assert torch.allclose(plain, followed, atol=1e-5)
    followed.sum().backward()


def test_scikit_learn_accepts_the_projection():
    check_estimator(SignedHashProjection(8, random_state=0))


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1 << 40}, "n_components"),
        ({"n_hashes": 0}, "n_hashes"),
        ({"n_hashes": 1 << 30}, "n_hashes"),
        ({"n_hashes": 2.5}, "n_hashes"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_named(params, name):
    with pytest.raises((ValueError, TypeError), match=name):
        SignedHashProjection(**params).fit(rows())


def test_a_file_holds_a_seed_and_no_matrix(tmp_path):
    map_ = SignedHashProjection(300, n_hashes=20, random_state=0).fit(rows(2, 32_256))
    mercer.save(map_, tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 2000
    X = rows(3, 32_256, seed=1)
    assert np.array_equal(mercer.load(tmp_path / "map").transform(X), map_.transform(X))
