"""Codes by circulant, bilinear and dense projections: dense matrices, variances, learning."""

from __future__ import annotations

import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import _core
from mercer.maps import FourierFeatures
from mercer.retrieval import (
    BilinearEmbedding,
    CirculantEmbedding,
    HammingIndex,
    SignProjection,
    angle_estimate,
    circulant_variance_bound,
    hamming_distances,
    hamming_variance,
    pack_codes,
    recall_at,
    unpack_codes,
)
from mercer.retrieval.circulant import _Learner, frequency_step
from reference.codes import dense_circulant, packed

EMBEDDINGS = [
    CirculantEmbedding(n_bits=40, random_state=0),
    CirculantEmbedding(n_bits=40, method="learned", max_iter=3, random_state=0),
    CirculantEmbedding(n_bits=200, random_state=0),
    BilinearEmbedding(n_bits=40, random_state=0),
    BilinearEmbedding(n_bits=41, method="learned", max_iter=3, random_state=0),
    SignProjection(n_bits=40, random_state=0),
]
LENGTHS = [1, 2, 3, 7, 16, 17, 37, 60, 256, 770, 784, 1000, 1024, 1280, 1536, 2002, 2048, 4096, 4800, 25_600]


def gaussian(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_the_fast_projection_is_the_dense_circulant(d, dtype, tolerance):
    for n in (1, 2, 5) if d > 800 else (1, 5, 37):
        X = gaussian(n, d, dtype=dtype)
        model = CirculantEmbedding(n_bits=d, random_state=1).fit(X)
        found = model.project(X)
        if d <= 800:
            expected = (X.astype(np.float64) * model.signs_[0]) @ dense_circulant(model.r_[0]).T
        else:  # too large to write down: the definition by sums over shifts, for some outputs
            expected, rows = X * model.signs_[0].astype(np.float64), [*range(0, d, d // 15), d // 3, d - 1]
            found = found[:, rows]
            expected = np.stack([expected @ np.roll(model.r_[0][::-1], i + 1) for i in rows], axis=1)
        scale = np.linalg.norm(X, axis=1, keepdims=True) * np.linalg.norm(model.r_[0])
        assert found.dtype == dtype
        assert np.max(np.abs(found - expected) / scale) < tolerance


@pytest.mark.parametrize("d", [60, 770, 1280, 1540, 4096, 9 * 1024])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_the_same_on_every_instruction_set_and_number_of_threads(d, dtype):
    X = gaussian(45, d, dtype=dtype)
    before = _core.instruction_set()
    found = []
    try:
        for name in _core.instruction_sets():
            _core.use_instruction_set(name)
            for threads in (1, 3):
                model = CirculantEmbedding(n_bits=d, random_state=0, n_jobs=threads).fit(X)
                found.append((model.transform(X).tobytes(), model.project(X).tobytes()))
    finally:
        _core.use_instruction_set(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [64, 37, 2048])
def test_rows_of_very_different_lengths_do_not_disturb_each_other(d, dtype):
    X = gaussian(8, d, dtype=dtype)
    scales = np.array([1, 1e-30, 1e30, 0, 1e-5, 1e5, 1, 0], dtype)[:, None]
    model = CirculantEmbedding(n_bits=d, random_state=0).fit(X)
    expected = np.where(scales == 0, 0, model.project(X)) * scales
    size = np.linalg.norm(X, axis=1, keepdims=True) * np.linalg.norm(model.r_) * scales
    assert (np.abs(model.project(X * scales) - expected) <= 2e-6 * size).all()
    assert (model.transform(X * scales, packed=False)[[3, 7]] == 1).all()  # sign(0) = +1


@pytest.mark.parametrize("d", [37, 64, 2048])
def test_fewer_bits_are_the_first_ones_and_more_bits_come_from_more_circulants(d):
    X = gaussian(4, d)
    whole = CirculantEmbedding(n_bits=d, random_state=0).fit(X)
    part = CirculantEmbedding(n_bits=d // 3, random_state=0).fit(X)
    np.testing.assert_array_equal(part.project(X), whole.project(X)[:, : d // 3])
    more = CirculantEmbedding(n_bits=2 * d + 5, random_state=0).fit(X)
    assert more.r_.shape == (3, d)
    np.testing.assert_allclose(more.project(X), X @ more.to_dense().T, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(more.transform(X), pack_codes(more.project(X)))


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
@pytest.mark.parametrize("d", [1, 2, 30, 53])
def test_codes_are_packed_signs_of_projections_and_repeat(embedding, d):
    """Packing, and the same codes from the same seed."""
    X = gaussian(11, d)
    model = clone(embedding).fit(X)
    projected = model.project(X)
    np.testing.assert_array_equal(model.transform(X), packed(projected >= 0))
    np.testing.assert_array_equal(model.transform(X, packed=False), np.where(projected >= 0, 1, -1))
    np.testing.assert_array_equal(clone(embedding).fit(X).transform(X), model.transform(X))
    scores = model.asymmetric_scores(X, model.transform(X))
    np.testing.assert_allclose(scores, projected @ np.where(projected >= 0, 1, -1).T, atol=1e-9)
    disagree = (projected[:, None, :] >= 0) != (projected[None, :, :] >= 0)
    distances = (np.abs(projected)[:, None, :] * disagree).sum(axis=2)
    np.testing.assert_allclose(model.asymmetric_distances(X, model.transform(X)), distances, atol=1e-6)


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
def test_models_survive_files_and_pickles_and_stand_in_pipelines(embedding, tmp_path):
    X = gaussian(20, 30)
    model = clone(embedding).fit(X)
    mercer.save(model, tmp_path / "model")
    for copy in (mercer.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        assert copy.get_params() == model.get_params()
    pipeline = make_pipeline(StandardScaler(), clone(embedding)).fit(X)
    assert pipeline.transform(X).shape == (20, -(-embedding.n_bits // 8))
    assert len(model.get_feature_names_out()) == pipeline.transform(X).shape[1]


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
def test_frames_have_the_names_of_the_bits(embedding):
    pytest.importorskip("pandas")
    frame = clone(embedding).set_output(transform="pandas").fit_transform(gaussian(20, 30))
    assert list(frame.columns) == list(clone(embedding).fit(gaussian(20, 30)).get_feature_names_out())


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
def test_bad_input_is_named(embedding):
    X = gaussian(6, 30)
    with pytest.raises(NotFittedError):
        clone(embedding).transform(X)
    model = clone(embedding).fit(X)
    with pytest.raises(TypeError, match=r"sparse.*toarray"):
        model.transform(sp.csr_matrix(X))
    for wrong in (X[0], np.full((2, 30), np.nan), X[:, :29], np.zeros((0, 30)), np.full((2, 30), np.inf)):
        with pytest.raises(ValueError):
            model.transform(wrong)
    with pytest.raises(ValueError, match="n_bits"):
        clone(embedding).set_params(n_bits=0).fit(X)
    with pytest.raises(ValueError, match="packed codes"):
        model.asymmetric_scores(X, X)
    integers = np.arange(60).reshape(2, 30)
    np.testing.assert_array_equal(model.transform(integers), model.transform(integers.astype(float)))
    wide = np.zeros((6, 60))
    wide[:, ::2] = X
    np.testing.assert_array_equal(model.transform(wide[:, ::2]), model.transform(X))
    np.testing.assert_array_equal(model.transform(np.asfortranarray(X)), model.transform(X))


@pytest.mark.parametrize("d", [1, 37, 60, 1001, 1024, 2048, 2050])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_bad_number_among_many_is_found_wherever_it_is(d, dtype, value):
    X = gaussian(70, d, dtype=dtype)
    for bits in (d, 2 * d + 1):
        model = CirculantEmbedding(bits, random_state=0, n_jobs=2).fit(X)
        for row, column in ((0, 0), (69, d - 1), (33, d // 2)):
            wrong = X.copy()
            wrong[row, column] = value
            for call in (model.transform, model.project):
                with pytest.raises(ValueError, match=r"NaN|infinity"):
                    call(wrong)


@pytest.mark.parametrize("d", [60, 2048])
def test_numbers_whose_squares_are_out_of_range_are_no_bad_numbers(d):
    X = gaussian(6, d)
    model = CirculantEmbedding(d, random_state=0).fit(X)
    for scale in (1e200, 1e-200, 1e300):
        np.testing.assert_array_equal(model.transform(X * scale), model.transform(X))


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
def test_numbers_of_other_types_are_read_or_refused(embedding):
    X = np.round(gaussian(6, 30), 1)
    model = clone(embedding).fit(X)
    for same in (X.tolist(), X.astype(object)):
        np.testing.assert_array_equal(model.transform(same), model.transform(X))
    half = X.astype(np.float16)
    np.testing.assert_array_equal(model.transform(half), model.transform(half.astype(np.float32)))
    for wrong in (X.astype(complex), X.astype(str).astype("U9")[:, :29], [["a"] * 30]):
        with pytest.raises(ValueError):
            model.transform(wrong)


@pytest.mark.parametrize(("params", "fit", "message"), [
    ({"method": "best"}, {}, "method"), ({"alpha": 0.0}, {}, "alpha"), ({"pair_weight": -1.0}, {}, "pair_weight"),
    ({"max_iter": 0}, {}, "max_iter"), ({"rest": "one"}, {}, "rest"), ({"sign_flip": "no"}, {}, "sign_flip"),
    ({"method": "learned"}, {"similar": [[0, 99]]}, "rows 0 … 5"),
    ({"method": "learned"}, {"dissimilar": [0, 1]}, "pairs, 2"),
    ({}, {"similar": [[0, 1]]}, "learned"),
])  # fmt: skip
def test_parameters_of_circulants_are_checked(params, fit, message):
    with pytest.raises(ValueError, match=message):
        CirculantEmbedding(n_bits=8, **params).fit(gaussian(6, 10), **fit)


@pytest.mark.parametrize(("d", "bits"), [(24, 12), (36, 36), (13, 7), (64, 100)])
def test_bilinear_codes_are_those_of_the_kronecker_product(d, bits):
    """Signs are equal; where d or k is no product near a square, zeros fill up and values are cut."""
    X = gaussian(7, d)
    model = BilinearEmbedding(n_bits=bits, random_state=0).fit(X)
    dense = np.kron(model.left_, model.right_)[:d, :bits]  # rows of Z one after the other
    np.testing.assert_allclose(model.project(X), X @ dense, atol=1e-9)
    np.testing.assert_array_equal(model.transform(X), packed(X @ dense >= 0))
    assert model.left_.shape[1] * model.right_.shape[1] >= bits


def test_d_numbers_and_signs_are_all_that_is_kept():
    """The storage. Times against d are printed by benchmarks/codes.py."""
    model = CirculantEmbedding(4096, random_state=0).fit(gaussian(1, 4096))
    assert sum(array.size for array in model.to_state()[1].values()) == 2 * 4096
    assert model.signs_.itemsize == 1


def variance(d, k, x, y, theta, draws, sign_flip):
    """Mean square deviation of the share of differing bits from θ/π, over random circulants with fixed signs."""
    shares = []
    for seed in range(draws):
        model = CirculantEmbedding(n_bits=k, random_state=seed, sign_flip=sign_flip).fit(x[None])
        shares.append(hamming_distances(model.transform(np.stack([x, y])))[0, 1] / k)
    shares = np.array(shares)
    assert abs(shares.mean() - theta / np.pi) < 4 * shares.std() / np.sqrt(draws)  # unbiased
    return float(np.mean((shares - theta / np.pi) ** 2))


def test_signs_make_the_variance_that_of_independent_projections():
    """And the bound of P9."""
    d, k, draws = 256, 64, 250
    t = 2 * np.pi * np.arange(d) / d
    x, y = np.cos(t), np.cos(2 * t)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)  # smooth, at a right angle
    reference = hamming_variance(np.pi / 2, k)
    with_signs = variance(d, k, x, y, np.pi / 2, draws, True)
    assert with_signs / reference < 1.5
    assert with_signs <= circulant_variance_bound(np.pi / 2, k, float(np.max(np.abs([x, y]))), 0.01)
    assert variance(d, k, x, y, np.pi / 2, draws, False) / reference > 5


@pytest.mark.parametrize("theta", [np.pi / 6, np.pi / 2])
@pytest.mark.parametrize("kind", ["dense", "smooth"])
def test_circulant_codes_estimate_angles_as_well_as_independent_ones(theta, kind):
    """The variance within 30% of that of independent projections, and below the bound of the theorem."""
    d, k, draws = 512, 128, 200
    x, z = gaussian(2, d) if kind == "dense" else np.cumsum(gaussian(2, d), axis=1)
    x = x / np.linalg.norm(x)
    z = z - (z @ x) * x
    y = np.cos(theta) * x + np.sin(theta) * z / np.linalg.norm(z)
    found = variance(d, k, x, y, theta, draws, True)
    assert 0.7 < found / hamming_variance(theta, k) < 1.3
    assert found <= circulant_variance_bound(theta, k, float(np.max(np.abs([x, y]))), 0.01)


@pytest.mark.parametrize("theta", [np.pi / 6, np.pi / 2])
def test_dense_codes_have_the_variance_of_the_formula(theta):
    k = 64
    x, y = np.array([1.0, 0.0]), np.array([np.cos(theta), np.sin(theta)])
    codes = SignProjection(n_bits=64 * 4000, random_state=0).fit(x[None]).transform(np.stack([x, y]), packed=False)
    shares = (codes[0] != codes[1]).reshape(4000, k).mean(axis=1)
    assert abs(shares.mean() - theta / np.pi) < 3 * shares.std() / np.sqrt(4000)
    assert abs(shares.var() / hamming_variance(theta, k) - 1) < 0.15
    assert angle_estimate(k * shares.mean(), k) == pytest.approx(theta, rel=0.02)


def low_rank(n, d, rank=40, seed=0):
    X = gaussian(n, rank, seed) @ gaussian(rank, d, 99) + 0.1 * gaussian(n, d, seed + 1)
    X -= X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def dense_objective(model, X, lambda_, mu=0.0, similar=(), dissimilar=()):
    """The objective as it is written, with matrices (one circulant)."""
    d = X.shape[1]
    R, XD = dense_circulant(model.r_[0]), X * model.signs_[0]
    H = XD @ R.T
    B = np.where(H >= 0, 1.0, -1.0)
    if model.rest == "zero":
        B[:, model.n_bits :] = 0
    total = np.sum((B - H) ** 2) + lambda_ * np.sum((R @ R.T - np.eye(d)) ** 2)
    for weight, pairs in ((mu, similar), (-mu, dissimilar)):
        total += weight * sum(np.sum((H[i] - H[j]) ** 2) for i, j in pairs)
    return total


@pytest.mark.parametrize("d", [30, 31, 256])
@pytest.mark.parametrize("lambda_", [0.1, 1.0, 10.0])
def test_the_objective_never_rises_and_is_what_it_says(d, lambda_):
    X = low_rank(300, d)
    similar, dissimilar = [(0, 1), (2, 3)], [(4, 5), (0, 6), (1, 7)]
    given = {"similar": similar, "dissimilar": dissimilar}
    for bits, rest, pairs in ((d, "sign", {}), (d // 2, "zero", {}), (d // 2, "sign", {}), (d, "auto", given)):
        options = {"alpha": lambda_, "pair_weight": 0.5, "rest": rest, "random_state": 0}
        model = CirculantEmbedding(bits, "learned", max_iter=8, **options).fit(X, **pairs)
        history = np.array(model.history_[0])
        assert (np.diff(history) <= 1e-8 * np.abs(history[:-1])).all()
        assert history[-1] < history[0]
        last = dense_objective(model, X, lambda_, 0.5 if pairs else 0.0, **pairs)
        assert last <= history[-1] * (1 + 1e-9)  # new bits for the last r can only be better
        again = CirculantEmbedding(bits, "learned", max_iter=9, **options).fit(X, **pairs)
        assert again.history_[0][-1] <= last * (1 + 1e-9)
        assert again.history_[0][:9] == pytest.approx(model.history_[0])


def test_a_converged_objective_equals_that_of_dense_matrices():
    X = low_rank(40, 12)
    model = CirculantEmbedding(12, "learned", max_iter=200, random_state=0).fit(X)
    assert len(model.history_[0]) < 200  # bits no longer change: it stops by itself
    assert dense_objective(model, X, 1.0) == pytest.approx(model.history_[0][-1], rel=1e-9)


@pytest.mark.parametrize("real", [False, True])
def test_the_step_of_a_frequency_is_the_best_one(real):
    """No search finds a lower value."""
    random = np.random.default_rng(0)
    n = 20
    a = random.uniform(-3, 8, n)  # negative ones come from dissimilar pairs
    c = random.normal(size=n) * 3 * random.integers(0, 2, n) + (0 if real else 1j) * random.normal(size=n)
    for weight in (0.05, 1.0, 20.0):
        start = random.normal(size=n) + (0 if real else 1j) * random.normal(size=n)
        z = frequency_step(a, c, weight, start)

        def value(z, a, c, weight=weight):
            return a * np.abs(z) ** 2 + weight * (np.abs(z) ** 2 - 1) ** 2 - 2 * np.real(np.conj(c) * z)

        for l in range(n):
            line = np.linspace(-8, 8, 1601)
            grid = line if real else (line[::8, None] + 1j * line[None, ::8]).ravel()
            best = grid[np.argmin(value(grid, a[l], c[l]))]
            polished = minimize(lambda p, l=l: value(p[0] + 1j * p[1], a[l], c[l]), [best.real, best.imag], tol=1e-12)
            least = value(best, a[l], c[l]) if real else min(polished.fun, value(best, a[l], c[l]))
            assert value(z[l], a[l], c[l]) <= least + 1e-8
        if real:
            assert np.abs(z.imag).max() == 0 if np.iscomplexobj(z) else True


@pytest.mark.parametrize("d", [1, 2, 9, 10])
def test_the_spectrum_that_is_learned_belongs_to_a_real_vector(d):
    """Over all d frequencies, the inverse transform has no imaginary part; odd and even d."""
    X = low_rank(50, d, rank=3) if d > 1 else gaussian(50, 1)
    r = CirculantEmbedding(d, "learned", max_iter=3, random_state=0).fit(X).r_[0]
    half = np.fft.rfft(r)
    whole = np.concatenate([half, np.conj(half[1 : (d + 1) // 2][::-1])])
    assert np.abs(np.fft.ifft(whole).imag).max() < 1e-10
    np.testing.assert_allclose(np.fft.ifft(whole).real, r, atol=1e-12)


def test_learned_bilinear_projections_agree_more_with_their_signs_every_round():
    model = BilinearEmbedding(30, "learned", max_iter=8, random_state=0).fit(low_rank(200, 64))
    assert (np.diff(model.history_) >= -1e-9).all()
    assert model.history_[-1] > model.history_[0]


def recall(embedding, X, queries, k=50):
    truth = np.argsort(-(queries @ X.T), axis=1)[:, :10]
    model = embedding.fit(X[:1000])
    index = HammingIndex(model.transform(X), n_bits=model.n_bits)
    return recall_at(index.search(model.transform(queries), k=k)[1], truth, [k])[k]


def test_learned_codes_find_more_neighbours_than_random_ones_and_these_as_many_as_dense_ones():
    """On synthetic rows; on dna.scale below."""
    X = low_rank(1500, 128, rank=60)
    base, queries = X[:1300], X[1300:]
    rand = np.mean([recall(CirculantEmbedding(128, random_state=s), base, queries) for s in range(3)])
    dense = np.mean([recall(SignProjection(128, random_state=s), base, queries) for s in range(3)])
    learned = np.mean([recall(CirculantEmbedding(128, "learned", random_state=s), base, queries) for s in range(3)])
    assert abs(rand - dense) < 0.04
    assert learned > rand + 0.02


@pytest.mark.parametrize("bits", [32, 64])
def test_fewer_learned_bits_than_features_find_more_neighbours_than_random_ones(bits):
    """On drawn data whose variance many directions share."""
    X = low_rank(1500, 128, rank=60)
    base, queries = X[:1300], X[1300:]
    rand = np.mean([recall(CirculantEmbedding(bits, random_state=s), base, queries) for s in range(2)])
    learned = np.mean([recall(CirculantEmbedding(bits, "learned", random_state=s), base, queries) for s in range(2)])
    assert learned > rand + 0.02


def decaying(n, d, seed=0):
    """Smooth rows, most of whose variance lies in a few directions."""
    X = np.cumsum(np.cumsum(gaussian(n, d, seed), axis=1), axis=1)
    X -= X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("bits", [48, 256])
def test_learned_codes_are_not_worse_than_random_ones_where_few_directions_hold_the_variance(bits):
    X = np.concatenate([decaying(1500, 128), low_rank(1500, 128)], axis=1)
    X = X[np.random.default_rng(0).permutation(len(X))]
    base, queries = X[:1300], X[1300:]

    def mean(**options):
        return np.mean([recall(CirculantEmbedding(bits, random_state=s, **options), base, queries) for s in range(2)])

    rand, zero, auto = mean(), mean(method="learned", rest="zero"), mean(method="learned")
    assert zero < rand - 0.01  # the rule of the source
    assert auto > rand - 0.01


def test_what_keeps_most_neighbours_of_new_rows_is_taken():
    """Smooth rows: the random start; rows that share their variance: learned."""
    options = {"n_bits": 128, "method": "learned", "random_state": 0}
    start = CirculantEmbedding(128, random_state=0)
    smooth, shared = decaying(600, 128), low_rank(600, 128, rank=60)
    stayed = CirculantEmbedding(**options).fit(smooth)
    np.testing.assert_array_equal(stayed.transform(smooth), start.fit_transform(smooth))
    assert stayed.history_ == [[]]
    auto, sign = (CirculantEmbedding(rest=rest, **options).fit(shared) for rest in ("auto", "sign"))
    np.testing.assert_array_equal(auto.r_, sign.r_)
    assert auto.history_ == sign.history_
    assert len(auto.history_[0]) > 1


def test_neighbours_are_those_of_held_out_rows_among_the_learned_ones():
    base, queries = low_rank(90, 32, seed=1), low_rank(40, 32, seed=2)
    signs = np.where(np.random.default_rng(0).random(32) < 0.5, -1, 1).astype(np.int8)
    learner = _Learner(base, signs, 20, 1.0, 1)
    vectors = [np.random.default_rng(seed).normal(size=32) for seed in (3, 4)]
    kept = learner.kept_neighbours(queries, vectors)
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    for counts, r in zip(kept, vectors, strict=True):
        P = (dense_circulant(r) * signs)[:20]
        for count, q in zip(counts, queries, strict=True):
            near = set(np.argsort(-(unit @ q), kind="stable")[:10].tolist())
            equal_bits = ((base @ P.T >= 0) == (P @ q >= 0)).sum(axis=1)
            first = np.argsort(-equal_bits, kind="stable").tolist()
            assert count == (len(near & set(first[:10])) + len(near & set(first[: 90 // 8]))) / 2


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ({"sign": 0.0, "zero": 0.0}, "random"),
        ({"sign": 0.1, "zero": 0.05}, "random"),  # a tenth of a neighbour more, ± 3 a query: chance
        ({"sign": -1.0, "zero": -2.0}, "random"),
        ({"sign": 2.0, "zero": 0.1}, "sign"),
        ({"sign": 1.0, "zero": 2.0}, "zero"),
    ],
)
def test_learned_codes_must_be_better_than_random_ones_by_more_than_chance(monkeypatch, gains, chosen):
    def counts(self, queries, vectors):
        noise = np.random.default_rng(0).normal(0.0, 3.0, size=len(queries))
        noise -= noise.mean()
        return np.array([np.full(len(queries), 4.0), *(4.0 + gain + noise for gain in gains.values())])

    monkeypatch.setattr(_Learner, "kept_neighbours", counts)
    X = low_rank(400, 32)
    model = CirculantEmbedding(16, "learned", max_iter=3, random_state=0).fit(X)
    if chosen == "random":
        expected = CirculantEmbedding(16, random_state=0).fit(X)
        assert model.history_ == [[]]
    else:
        expected = CirculantEmbedding(16, "learned", rest=chosen, max_iter=3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))


@pytest.mark.parametrize("means", ["smooth", "dense"])
def test_pairs_bring_classes_together(means):
    """Two Gaussian classes, 200 pairs of each kind, μ from 0.1 to 100.

    Distances within classes fall against those between for every μ. Retrieval of the class by codes gains at the best
    μ, and loses at most 0.02 at any (with dense means there is a dip at μ = 1).
    """
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 400)
    X = random.normal(size=(400, 64))
    t = 2 * np.pi * np.arange(64) / 64
    mean = np.cos(t) + np.sin(2 * t) if means == "smooth" else random.normal(size=64)
    X += 3 * np.outer(2 * y - 1, mean / np.linalg.norm(mean))
    X -= X.mean(axis=0)
    same = [(i, j) for i, j in random.integers(0, 400, size=(800, 2)) if y[i] == y[j] and i != j][:200]
    apart = [(i, j) for i, j in random.integers(0, 400, size=(800, 2)) if y[i] != y[j]][:200]

    def ratio(model):
        H = model.project(X)
        mean = [np.mean([np.sum((H[i] - H[j]) ** 2) for i, j in pairs]) for pairs in (same, apart)]
        return mean[0] / mean[1]

    def auc(model):
        near = -hamming_distances(model.transform(X))[np.triu_indices(400, 1)]
        return roc_auc_score((y[:, None] == y)[np.triu_indices(400, 1)], near)

    plain = CirculantEmbedding(64, "learned", sign_flip=False, random_state=0).fit(X)
    found = []
    for mu in (0.1, 0.3, 1.0, 3.0, 10.0, 100.0):
        paired = CirculantEmbedding(64, "learned", pair_weight=mu, sign_flip=False, random_state=0)
        paired.fit(X, similar=same, dissimilar=apart)
        assert ratio(paired) < ratio(plain)
        found.append(auc(paired))
    assert min(found) >= auc(plain) - 0.02
    assert max(found) >= auc(plain) + 0.04


def test_in_equal_time_long_circulant_codes_find_more_than_short_dense_ones():
    """With operations for time: two real transforms take 5 d log₂ d, a dense bit takes 2 d (d = 2,048)."""
    d = 2048
    X = low_rank(900, d, rank=100)
    base, queries = X[:800], X[800:]
    bits = round(5 * d * np.log2(d) / (2 * d))
    assert bits < 30
    circulant = recall(CirculantEmbedding(d, random_state=0), base, queries)
    assert circulant > recall(SignProjection(bits, random_state=0), base, queries) + 0.2
    assert circulant > recall(SignProjection(8 * bits, random_state=0), base, queries)  # transforms are slower per step


def test_a_classifier_of_codes_judges_real_projections_as_well():
    """Digits expanded to 512 features: trained on ±1 codes, tried on projections and on codes."""
    X, y = load_digits(return_X_y=True)
    X = FourierFeatures(512, gamma=0.001, random_state=0).fit_transform(X)
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = CirculantEmbedding(512, "learned", random_state=0).fit(X[:1000])
    codes, real = model.transform(X, packed=False).astype(float), model.project(X)
    real /= np.abs(real[:1000]).mean()
    classifier = LogisticRegression(max_iter=300).fit(codes[:1000], y[:1000])
    asymmetric, symmetric = classifier.score(real[1000:], y[1000:]), classifier.score(codes[1000:], y[1000:])
    original = LogisticRegression(C=100, max_iter=300).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    assert asymmetric >= symmetric - 0.005
    assert asymmetric >= original - 0.02


def test_batches_teach_as_much_as_all_rows_at_once():
    X = low_rank(1500, 128, rank=60)
    base, queries = X[:1300], X[1300:]
    truth = np.argsort(-(queries @ base.T), axis=1)[:, :10]
    model = CirculantEmbedding(200, "learned", random_state=0)
    for _ in range(3):
        for start in range(0, 1300, 260):
            model.partial_fit(base[start : start + 260])
    assert [len(history) for history in model.history_] == [15, 15]
    assert model.history_[0][-1] < model.history_[0][0]

    def found(model):
        index = HammingIndex(model.transform(base), n_bits=200)
        return recall_at(index.search(model.transform(queries), k=50)[1], truth, [50])[50]

    assert found(model) > found(CirculantEmbedding(200, random_state=0).fit(base)) + 0.02
    assert abs(found(model) - found(CirculantEmbedding(200, "learned", random_state=0).fit(base))) < 0.03
    copy = pickle.loads(pickle.dumps(model)).partial_fit(base[:100])
    np.testing.assert_array_equal(copy.r_, model.partial_fit(base[:100]).r_)
    with pytest.raises(ValueError, match="127 features"):
        model.partial_fit(base[:, 1:])


def test_the_first_batch_is_the_first_round_and_random_embeddings_stay():
    X = low_rank(200, 30)
    model = CirculantEmbedding(30, "learned", random_state=0).partial_fit(X)
    once = CirculantEmbedding(30, "learned", max_iter=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.r_, once.r_, atol=1e-12)
    assert model.history_[0][0] == pytest.approx(once.history_[0][-1] / 200)
    assert len(model.fit(X).history_[0]) > 2  # fit begins anew
    random = CirculantEmbedding(30, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(random.partial_fit(X[:3]).r_, CirculantEmbedding(30, random_state=0).fit(X).r_)


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: f"{type(e).__name__}-{e.n_bits}")
def test_scikit_learn_finds_nothing_to_object_to(embedding):
    check_estimator(clone(embedding))


def test_codes_decode_to_the_direction_they_came_from():
    X = gaussian(6, 128)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for embedding in (CirculantEmbedding(1280, random_state=0), SignProjection(1280, random_state=0)):
        codes = embedding.fit(X).transform(X)
        back = embedding.inverse_transform(codes)
        assert np.sum(back * X, axis=1).min() > 0.9
        np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1)


def test_constant_and_zero_data_can_be_learned_from():
    with pytest.warns(UserWarning, match="all rows of X are zero"):
        model = CirculantEmbedding(8, "learned", random_state=0).fit(np.zeros((5, 8)))
    assert (model.transform(np.zeros((5, 8)), packed=False) == 1).all()
    constant = CirculantEmbedding(8, "learned", random_state=0).fit(np.ones((5, 8)))
    assert np.isfinite(constant.r_).all()


def test_tensors_of_torch_give_tensors():
    torch = pytest.importorskip("torch")
    X = gaussian(4, 64, dtype=np.float32)
    model = CirculantEmbedding(32, random_state=0).fit(torch.from_numpy(X))
    codes = model.transform(torch.from_numpy(X))
    assert isinstance(codes, torch.Tensor)
    np.testing.assert_array_equal(codes.numpy(), model.transform(X))
    assert model.project(torch.from_numpy(X)).dtype == torch.float32


def test_dna_recall_is_that_of_the_specification():
    home = os.environ.get("MERCER_DATA")
    path = Path(home or "missing") / "libsvm" / "dna.scale"
    if not home or not path.exists():
        pytest.skip("MERCER_DATA is not set, or has no libsvm/dna.scale")
    from sklearn.datasets import load_svmlight_file

    X = load_svmlight_file(str(path), n_features=180)[0].toarray()
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.random.default_rng(0).permutation(len(X))]
    base, queries = X[:1800], X[1800:]
    for bits, gain in ((180, 0.08), (45, 0.02)):
        rand = np.mean([recall(CirculantEmbedding(bits, random_state=s), base, queries) for s in range(3)])
        dense = np.mean([recall(SignProjection(bits, random_state=s), base, queries) for s in range(3)])
        learned = []
        for l in (0.1, 1.0, 10.0):
            models = [CirculantEmbedding(bits, "learned", alpha=l, random_state=s) for s in range(2)]
            learned.append(np.mean([recall(model, base, queries) for model in models]))
        assert learned[1] >= rand + gain
        assert abs(rand - dense) <= 0.04
        assert max(learned) - min(learned) <= 0.03


def test_unpacked_and_packed_distances_agree():
    X = gaussian(10, 50)
    model = CirculantEmbedding(50, random_state=0).fit(X)
    signs = unpack_codes(model.transform(X), 50).astype(int)
    np.testing.assert_array_equal(hamming_distances(model.transform(X)), (50 - signs @ signs.T) // 2)


def test_a_bad_batch_does_not_spoil_what_was_learned():
    X = gaussian(400, 64)
    model = CirculantEmbedding(32, "learned", random_state=0).partial_fit(X)
    r = model.r_.copy()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X)
    np.testing.assert_array_equal(model.r_, r)


VERBS = {
    "transform": lambda model, X, codes: model.transform(X),
    "signs": lambda model, X, codes: model.transform(X, packed=False),
    "project": lambda model, X, codes: model.project(X),
    "asymmetric_scores": lambda model, X, codes: model.asymmetric_scores(X, codes),
    "asymmetric_distances": lambda model, X, codes: model.asymmetric_distances(X, codes),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
def test_a_refused_query_leaves_the_model_as_it_was(embedding, verb):
    X = gaussian(12, 60)
    model = clone(embedding).fit(X)
    codes = model.transform(X)
    with_nan = X.copy()
    with_nan[3, 5] = np.nan
    for bad in (gaussian(4, 61), gaussian(4, 30), with_nan, sp.csr_matrix(X), X[0], [["a"] * 60]):
        with pytest.raises((ValueError, TypeError)):
            VERBS[verb](model, bad, codes)
        assert model.n_features_in_ == 60
        np.testing.assert_array_equal(model.transform(X), codes)
    with pytest.raises(ValueError, match="bytes"):
        model.asymmetric_scores(X, codes[:, :-1])
    with pytest.raises(ValueError, match=r"bytes|packed|matrix"):
        model.inverse_transform(codes[:, :-1])
    np.testing.assert_array_equal(model.transform(X), codes)


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
def test_a_failed_fit_leaves_the_old_codes(embedding):
    X = gaussian(12, 60)
    model = clone(embedding).fit(X)
    codes = model.transform(X)
    wide, with_nan = gaussian(12, 64), gaussian(12, 64)
    with_nan[2, 3] = np.nan
    calls = [lambda: model.fit(with_nan), lambda: model.fit(wide[:, :0])]
    if isinstance(model, CirculantEmbedding):
        calls.append(lambda: model.fit(wide, similar=[[0, 99]]))
    for call in calls:
        with pytest.raises(ValueError):
            call()
        np.testing.assert_array_equal(model.transform(X), codes)


def test_the_bound_on_variances_is_its_formula():
    expected = hamming_variance(1.0, 64) + 8 * 0.01 * math.sqrt(math.log(8 * 64**2 / 0.1))
    assert circulant_variance_bound(1.0, 64, 0.01, 0.1) == pytest.approx(expected, rel=1e-12)
