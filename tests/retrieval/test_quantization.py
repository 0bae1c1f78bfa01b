"""Iterative quantization, spectral hashing and codes of shift-invariant kernels against their definitions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

import mercer
from mercer.retrieval import (
    HammingIndex,
    IterativeQuantization,
    ShiftInvariantHashing,
    SignProjection,
    SpectralHashing,
    hamming_distances,
    pack_codes,
    recall_at,
)
from mercer.retrieval.quantization import principal_axes

MODELS = [
    IterativeQuantization(13, random_state=0),
    SpectralHashing(13),
    SpectralHashing(45),
    ShiftInvariantHashing(45, random_state=0),
]
NAMES = [f"{type(model).__name__}-{model.n_bits}" for model in MODELS]


def decaying(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return 3.0 + rng.normal(size=(n, d)) * 0.8 ** np.arange(d) @ np.linalg.qr(rng.normal(size=(d, d)))[0]


@pytest.mark.parametrize("shape", [(60, 12), (9, 30)])
def test_principal_axes_are_those_of_scikit_learn(shape):
    X = decaying(*shape)
    mean, axes = principal_axes(X, np.ones(len(X)), 7)
    wanted = PCA(7, svd_solver="full").fit(X)
    np.testing.assert_allclose(mean, wanted.mean_, atol=1e-12)
    np.testing.assert_allclose(np.abs((axes * wanted.components_.T).sum(axis=0)), 1.0, atol=1e-8)
    np.testing.assert_allclose(axes.T @ axes, np.eye(7), atol=1e-10)


def test_iterative_quantization_is_its_two_steps_and_the_loss_never_rises():
    X, k = decaying(200, 20), 6
    model = IterativeQuantization(k, max_iter=12, random_state=3).fit(X)
    V = PCA(k, svd_solver="full").fit_transform(X)
    # From the axes of the model, the alternation of the definition, by a dense solution of each step.
    _, axes = principal_axes(X, np.ones(200), k)
    V = (X - X.mean(axis=0)) @ axes
    u, _, vt = np.linalg.svd(np.random.RandomState(3).standard_normal((k, k)))
    R, losses = u @ vt, []
    losses.append(np.square(np.sign(V @ R) - V @ R).sum() / 200)
    for _ in range(12):
        B = np.sign(V @ R)
        u, _, vt = np.linalg.svd(V.T @ B)
        R = u @ vt
        losses.append(np.square(np.sign(V @ R) - V @ R).sum() / 200)
    np.testing.assert_allclose(model.history_, losses, rtol=1e-9)
    assert (np.diff(model.history_) <= 1e-12).all()
    assert model.history_[-1] < 0.97 * model.history_[0]
    np.testing.assert_allclose(model.components_, axes @ R, atol=1e-9)
    np.testing.assert_array_equal(model.transform(X, packed=False), np.sign(V @ R))
    np.testing.assert_allclose(model.components_.T @ model.components_, np.eye(k), atol=1e-10)
    direction = model.inverse_transform(model.transform(X))
    centred = X - X.mean(axis=0)
    assert ((direction * centred).sum(axis=1) > 0).all()  # half of each plane


@pytest.mark.parametrize("bits", [1, 5, 40])
def test_spectral_hashing_takes_the_eigenfunctions_that_vary_least(bits):
    X = decaying(150, 6)
    model = SpectralHashing(bits).fit(X)
    k = min(bits, 6)
    _, axes = principal_axes(X, np.ones(150), k)
    V = (X - X.mean(axis=0)) @ axes
    low, high = V.min(axis=0), V.max(axis=0)
    every = sorted((m / (high[i] - low[i]), i, m) for i in range(k) for m in range(1, bits + 1))[:bits]
    assert [(i, m) for _, i, m in every] == list(zip(model.axis_, model.mode_, strict=True))
    new = decaying(30, 6, seed=1)
    Z = (new - X.mean(axis=0)) @ axes
    bit = np.array(
        [[np.sin(np.pi / 2 + np.pi * m * (row[i] - low[i]) / (high[i] - low[i])) for _, i, m in every] for row in Z]
    )
    np.testing.assert_allclose(model.project(new), bit, atol=1e-9)
    np.testing.assert_array_equal(model.transform(new), pack_codes(bit))


def test_constant_columns_add_no_eigenfunctions():
    X = np.c_[decaying(40, 3), np.full(40, 7.0)]
    assert SpectralHashing(12).fit(X).axes_.shape[1] == 3


@pytest.mark.parametrize("r", [0.0, 0.3, 1.0, 2.5, 20.0])
def test_distances_of_shift_invariant_codes_have_the_expectation_of_the_theorem(r):
    rng = np.random.default_rng(1)
    x = rng.normal(size=5)
    step = rng.normal(size=5)
    y = x + r * step / np.linalg.norm(step)
    model = ShiftInvariantHashing(40_000, gamma=0.7, random_state=0).fit(x[None])
    share = hamming_distances(model.transform(np.stack([x, y])))[0, 1] / 40_000
    wanted = model.expected_share(r)
    m = np.arange(1, 20_001)
    series = 8 / np.pi**2 * ((1 - np.exp(-0.7 * m**2 * r**2)) / (4 * m**2 - 1)).sum()
    assert wanted == pytest.approx(series, abs=2e-5)
    assert share == pytest.approx(wanted, abs=4 * np.sqrt(0.25 / 40_000))
    assert wanted <= 4 / np.pi**2 + 1e-12


def test_the_width_is_the_mean_distance_of_the_50th_neighbor():
    X = decaying(120, 4)
    D = np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)
    assert ShiftInvariantHashing(8, random_state=0).fit(X).gamma_ == pytest.approx(1 / (2 * D[:, 50].mean() ** 2))
    few = ShiftInvariantHashing(8, random_state=0).fit(X[:6]).gamma_
    near = np.sort(np.linalg.norm(X[:6, None] - X[None, :6], axis=2), axis=1)[:, 5].mean()
    assert few == pytest.approx(1 / (2 * near**2))


def test_learned_quantization_finds_more_neighbors_than_random_directions():
    X = decaying(1500, 40)
    base, queries = X[100:], X[:100]
    truth = np.argsort(((queries[:, None] - base[None]) ** 2).sum(axis=2), axis=1)[:, :10]

    def recall(model):
        model.fit(base)
        return recall_at(
            HammingIndex(model.transform(base), n_bits=16).search(model.transform(queries), 50)[1], truth, (50,)
        )[50]

    centred = [recall(IterativeQuantization(16, random_state=seed)) for seed in range(2)]
    base, queries = base - base.mean(axis=0), queries - base.mean(axis=0)
    assert min(centred) > max(recall(SignProjection(16, random_state=seed)) for seed in range(2)) + 0.05


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_signs_repeat_and_survive_files(model, dtype, tmp_path):
    X = decaying(80, 20).astype(dtype)
    fitted = clone(model).fit(X)
    values = fitted.project(X)
    assert values.dtype == dtype
    assert values.shape == (80, model.n_bits)
    np.testing.assert_array_equal(fitted.transform(X), pack_codes(values))
    np.testing.assert_array_equal(clone(model).fit(X).transform(X), fitted.transform(X))
    scores = fitted.asymmetric_scores(X, fitted.transform(X))
    np.testing.assert_allclose(scores, values @ np.where(values >= 0, 1, -1).T, rtol=1e-4, atol=1e-4)
    mercer.save(fitted, tmp_path / "model")
    for copy in (mercer.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copy.transform(X), fitted.transform(X))


@pytest.mark.parametrize(
    "model", [IterativeQuantization(6, random_state=0), SpectralHashing(9)], ids=lambda m: type(m).__name__
)
def test_whole_weights_are_repeats_and_0_is_no_row(model):
    X = decaying(60, 8)
    times = np.arange(60) % 3
    weighted, repeated = clone(model).fit(X, sample_weight=times), clone(model).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.project(X), repeated.project(X), atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_bad_input_is_named(model):
    X = decaying(40, 20)
    with pytest.raises(NotFittedError):
        clone(model).transform(X)
    with pytest.raises(TypeError, match=r"sparse.*toarray"):
        clone(model).fit(sp.csr_matrix(X))
    for wrong in (X[0], np.full((2, 20), np.nan), np.zeros((0, 20))):
        with pytest.raises(ValueError):
            clone(model).fit(wrong)
    with pytest.raises(ValueError, match="n_bits"):
        clone(model).set_params(n_bits=0).fit(X)
    fitted = clone(model).fit(X)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(X[:, 1:])
    assert hasattr(fitted, "inverse_transform") == isinstance(model, IterativeQuantization)


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (IterativeQuantization(21), decaying(40, 20), "at most 20, the number of features"),
        (IterativeQuantization(11), decaying(10, 20), "at most 10, the number of rows"),
        (SpectralHashing(4), np.ones((5, 3)), "rows that differ"),
        (ShiftInvariantHashing(4), np.ones((5, 3)), "rows that differ"),
        (ShiftInvariantHashing(4), np.ones((1, 3)), "rows that differ"),
        (ShiftInvariantHashing(4, gamma=-1.0), np.eye(3), "gamma must be"),
        (ShiftInvariantHashing(4, gamma="scale"), np.eye(3), "gamma must be"),
        (IterativeQuantization(2, max_iter=0), np.eye(3), "max_iter"),
    ],
)
def test_what_cannot_be_learned_is_said(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    with pytest.raises(ValueError, match="at least 0"):
        ShiftInvariantHashing(4, gamma=1.0).fit(X).expected_share(-1.0)
