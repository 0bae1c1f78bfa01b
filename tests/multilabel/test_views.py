"""Several views: the eigenproblem against alternating updates, blocks against exact matrices, planted latent values."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian, Linear, NGram
from mercer.metrics import multilabel_scores
from mercer.multilabel import KernelHomogeneityAnalysis
from mercer.multilabel._meka import BlockKernel


def task(n: int = 160, T: int = 20, rank: int = 4, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Three views of latent values of low rank, and labels that follow them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, rank))
    Y = (Z @ rng.normal(size=(rank, T)) > 0.8).astype(int)
    mixed = [Z @ rng.normal(size=(rank, 6)) + 0.3 * rng.normal(size=(n, 6)) for _ in range(3)]
    return [mixed[0], np.tanh(mixed[1]), mixed[2]], Y


def rows(views: list[np.ndarray], part: slice) -> list[np.ndarray]:
    return [view[part] for view in views]


def sine(A: np.ndarray, B: np.ndarray) -> float:
    cosines = np.linalg.svd(np.linalg.qr(A)[0].T @ np.linalg.qr(B)[0])[1]
    return float(np.sqrt(max(0.0, 1 - cosines.min() ** 2)))


def test_alternating_updates_end_at_the_eigenvectors():
    views, Y = task()
    eig = KernelHomogeneityAnalysis(4).fit(views, Y)
    als = KernelHomogeneityAnalysis(4, solver="als", max_iter=20_000, tol=1e-9).fit(views, Y)
    gaps = KernelHomogeneityAnalysis(5).fit(views, Y).eigenvalues_
    assert gaps[3] - gaps[4] > 0.001
    assert sine(eig.object_scores_, als.object_scores_) < 1e-3
    assert np.allclose(eig.eigenvalues_, als.eigenvalues_, atol=1e-6)
    assert np.allclose(eig.decision_function(views), als.decision_function(views), atol=1e-3)


def test_the_eigenvectors_are_those_of_the_matrix_by_hand():
    views, Y = task(60)
    model = KernelHomogeneityAnalysis(3, C=0.3, alpha=0.2, kernels=Gaussian(0.1)).fit(views, Y)
    n = len(Y)
    H = np.eye(n) - 1 / n
    A = sum(0.3 * K @ np.linalg.inv(K + 0.2 * np.eye(n)) for K in (H @ Gaussian(0.1)(v) @ H for v in views))
    T = H @ Y
    A = A + T @ T.T @ np.linalg.inv(T @ T.T + 0.2 * np.eye(n))
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    assert np.allclose(model.eigenvalues_, values[::-1][:3])
    assert sine(model.object_scores_, vectors[:, -3:]) < 1e-5
    X = model.object_scores_
    assert np.allclose(X.T @ X, np.eye(3), atol=1e-8)
    assert np.abs(X.sum(axis=0)).max() < 1e-8
    by_hand = 0.0
    new = [v[:5] for v in views]
    for v, w in zip(views, new, strict=True):
        K = Gaussian(0.1)(v)
        alpha = np.linalg.solve(H @ K @ H + 0.2 * np.eye(n), X)
        k = Gaussian(0.1)(w, v)
        by_hand = by_hand + (k - K.mean(axis=0)) @ H @ alpha / 3
    assert np.allclose(model.transform(new), by_hand)


def test_scores_left_out_equal_those_of_a_regression_without_the_row():
    views, _ = task(40)
    model = KernelHomogeneityAnalysis(2, kernels=Linear(), alpha=0.5)
    part = model._exact(views[0], Linear(), 0)
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 2)))[0]
    X -= X.mean(axis=0)
    K = Linear()(views[0])
    H = np.eye(40) - 1 / 40
    K = H @ K @ H
    for i in (0, 11):
        others = np.arange(40) != i
        alpha = np.linalg.solve(K[np.ix_(others, others)] + 0.5 * np.eye(39), X[others])
        assert np.allclose(part.left_out(X)[i], K[i, others] @ alpha)


@pytest.mark.parametrize("p", [4, 8, 16])
def test_planted_latent_values_rank_labels_well_and_a_view_of_noise_costs_little(p):
    views, Y = task(400)
    prior = multilabel_scores(Y[300:], Y[300:], np.tile(Y[:300].mean(axis=0), (100, 1))).ranking_loss
    losses = []
    for given in (views, [*views, np.random.default_rng(9).normal(size=(400, 6))]):
        model = KernelHomogeneityAnalysis(p).fit(rows(given, slice(300)), Y[:300])
        scores = model.decision_function(rows(given, slice(300, None)))
        losses.append(multilabel_scores(Y[300:], Y[300:], scores).ranking_loss)
    assert losses[0] <= 0.07
    assert losses[0] <= prior - 0.2
    assert losses[1] <= losses[0] + 0.02


def clusters(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4)) + 6 * centre[:, None]
    W = np.random.default_rng(42).normal(size=(4, 5))
    return X, (np.c_[np.sin(X @ W) > 0.3, centre] > 0).astype(int)


def test_blocks_approximate_the_matrix_and_their_algebra_is_exact():
    X, _ = clusters(300)
    blocks = BlockKernel(Gaussian(0.1), X, 2, 60, np.random.RandomState(0))
    assert blocks.error(X) < 0.02
    n = len(X)
    V = np.random.default_rng(1).normal(size=(n, 3))
    V -= V.mean(axis=0)
    Z = blocks.lift(np.eye(len(blocks.eigenvalues)))
    assert np.allclose(Z.T @ Z, np.eye(Z.shape[1]), atol=1e-6)
    assert np.allclose(blocks.project(V), Z.T @ V, atol=1e-6)
    K = (Z * blocks.eigenvalues) @ Z.T
    assert np.allclose(blocks.smooth(V, 0.3), K @ np.linalg.solve(K + 0.3 * np.eye(n), V), atol=1e-6)
    assert np.allclose(blocks.leverages(0.3), np.diag(K @ np.linalg.inv(K + 0.3 * np.eye(n))), atol=1e-6)


def test_the_small_matrix_of_blocks_has_the_eigenvectors_of_the_large_one():
    """B'B instead of B B': the same eigenvalues, and latent values that the operator only scales."""
    views, Y = task(120)
    made = {"approx": "meka", "n_blocks": 3, "rank": 12, "random_state": 0}
    eig = KernelHomogeneityAnalysis(4, **made).fit(views, Y)
    als = KernelHomogeneityAnalysis(4, solver="als", max_iter=3000, tol=1e-9, **made).fit(views, Y)
    assert np.allclose(eig.eigenvalues_, als.eigenvalues_, atol=1e-6)
    assert sine(eig.object_scores_, als.object_scores_) < 1e-3
    assert np.allclose(eig.object_scores_.T @ eig.object_scores_, np.eye(4), atol=1e-6)
    assert np.abs(eig.object_scores_.mean(axis=0)).max() < 1e-8


def test_blocks_take_a_small_part_of_the_matrix():
    X, _ = clusters(2000)
    blocks = BlockKernel(Gaussian(0.1), X, 4, 32, np.random.RandomState(0))
    kept = sum(W.size for W in blocks.W) + blocks.L.size + blocks.basis.size
    assert kept < 0.1 * len(X) ** 2


def test_scores_by_blocks_agree_with_exact_ones():
    X, Y = clusters(700)
    exact = KernelHomogeneityAnalysis(3).fit([X[:600]], Y[:600])
    blocks = KernelHomogeneityAnalysis(3, approx="meka", n_blocks=2, rank=80, random_state=0).fit([X[:600]], Y[:600])
    a, b = exact.decision_function([X[600:]]), blocks.decision_function([X[600:]])
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.99


def test_views_may_be_objects_of_any_kind():
    rng = np.random.default_rng(0)
    labels = rng.random((60, 3)) < 0.5
    words = ["".join(rng.choice(list("ab" if row[0] else "cd"), 8)) for row in labels]
    X = labels + 0.3 * rng.normal(size=(60, 3))
    model = KernelHomogeneityAnalysis(2, kernels=[NGram(2).normalized(), None]).fit([words[:40], X[:40]], labels[:40])
    assert (model.predict([words[40:], X[40:]]) == labels[40:]).mean() > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda views, Y: ([views[0], views[1][:-1], views[2]], Y), "different numbers of rows: 160, 159, 160"),
        (lambda views, Y: ([views[0], None], Y), "view 1 is missing"),
        (lambda views, Y: ([], Y), "no view"),
        (lambda views, Y: (views, Y[:-1]), "X has 160 rows and Y 159"),
        (lambda views, Y: ([views[0], np.ones_like(views[1])], Y), "view 1: all rows are the same"),
        (lambda views, Y: ([views[0], np.full_like(views[1], np.nan)], Y), "view 1: .*NaN"),
        (lambda views, Y: (views, np.ones_like(Y)), "nothing to learn"),
    ],
)
def test_wrong_views_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        KernelHomogeneityAnalysis(2).fit(*change(*task()))


def test_more_labels_than_rows_take_as_many_components_as_there_are():
    X = np.random.default_rng(0).normal(size=(12, 3))
    Y = (X @ np.random.default_rng(1).normal(size=(3, 40)) > 0).astype(int)
    assert KernelHomogeneityAnalysis().fit(X, Y).eigenvalues_.shape == (10,)
    with pytest.raises(ValueError, match="three rows or more, got 2"):
        KernelHomogeneityAnalysis().fit(X[:2], Y[:2])


def test_a_view_that_is_missing_or_of_other_width_at_prediction_is_named():
    views, Y = task()
    model = KernelHomogeneityAnalysis(2).fit(views, Y)
    with pytest.raises(ValueError, match="expected 3 views as in fit, got 2"):
        model.predict(views[:2])
    with pytest.raises(ValueError, match="view 1 is missing"):
        model.predict([views[0], None, views[2]])
    with pytest.raises(ValueError, match="view 2"):
        model.predict([views[0], views[1], views[2][:, :3]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 1.5}, "share of the labels"),
        ({"n_components": 159}, "158 at most"),
        ({"C": 0}, "C"),
        ({"alpha": -1}, "alpha"),
        ({"solver": "svd"}, "solver"),
        ({"approx": "rff"}, "approx"),
        ({"kernels": [None]}, "3 views and 1 kernels"),
        ({"approx": "meka", "kernels": "precomputed"}, "precomputed"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        KernelHomogeneityAnalysis(**params).fit(*task())


def exclusive(n: int, seed: int = 0):
    """On one side one of two labels, on the other both or none: each label alone is always as likely as not."""
    rng = np.random.default_rng(seed)
    side, coin = rng.random((2, n)) < 0.5
    return side[:, None] + 0.2 * rng.normal(size=(n, 2)), np.stack([coin, coin ^ side], axis=1).astype(int)


def test_label_sets_that_recur_have_scores_of_their_own(tmp_path):
    """Kernel ridge regression of "the set is y", beside the probabilities of labels; equal by hand and from a file."""
    X, Y = exclusive(160)
    kernel, c = Gaussian(0.5), 0.3
    model = KernelHomogeneityAnalysis(kernels=kernel, alpha=c, measure="subset").fit(X[:120], Y[:120])
    decisions = model.decisions_
    assert decisions.by_sets_
    assert decisions.own_weight_ is not None
    seen = decisions.seen_.toarray()
    members = (Y[:120, None] == seen).all(axis=2).astype(float)
    K, new = kernel(X[:120]), kernel(X[120:], X[:120])
    H = np.eye(120) - 1 / 120
    own = (new - K.mean(axis=0)) @ H @ np.linalg.solve(H @ K @ H + c * np.eye(120), members - members.mean(axis=0))
    P = np.clip(model.predict_proba(X[120:]), 1e-4, 1 - 1e-4)
    likely = np.log(P / (1 - P)) @ seen.T + decisions.own_weight_ * (own + members.mean(axis=0))
    assert np.array_equal(model.predict(X[120:]), seen[likely.argmax(axis=1)])
    assert model.transform(X).shape == (160, 2)
    assert model.score(X[120:], Y[120:]) > 0.35  # by single labels a quarter
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))


def test_scores_of_label_sets_are_left_out_where_sets_hardly_recur():
    X, Y = exclusive(160)
    assert KernelHomogeneityAnalysis(decode="direct").fit(X, Y).set_shares_ is None
    Y = np.hstack([Y, np.eye(160, dtype=int)[:, :100]])
    assert KernelHomogeneityAnalysis(3, measure="subset").fit(X, Y).set_shares_ is None


@pytest.mark.parametrize("approx", [None, "meka"])
def test_files_hold_the_model(approx, tmp_path):
    views, Y = task(80)
    model = KernelHomogeneityAnalysis(3, approx=approx, n_blocks=2, rank=20, random_state=0).fit(views, Y)
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict_proba(views), model.predict_proba(views))
