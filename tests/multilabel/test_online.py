"""The online joint machine: its bound on updates, norms, both updates, streams; recovery of compressed labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.kernels import Gaussian, Linear
from mercer.metrics import multilabel_scores
from mercer.multilabel import CompressedLabels, JointSVM, OnlineJointSVM


def task(n: int = 200, T: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, Y = make_multilabel_classification(n, 8, n_classes=T, n_labels=2, random_state=seed)
    return StandardScaler().fit_transform(X), Y


def separable(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows and label sets that some W of norm 1 separates by a margin that is known."""
    rng = np.random.default_rng(seed)
    d, T, n = rng.integers(2, 6), rng.integers(2, 5), 60
    W = rng.normal(size=(T, d))
    W /= np.linalg.norm(W)
    X = rng.normal(size=(4 * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = (X @ W.T > 0).astype(int)
    V = (2 * Y - 1) / math.sqrt(T)
    margins = (V * (X @ W.T)).sum(axis=1)
    kept = np.argsort(-margins)[:n]
    return X[kept], Y[kept], float(margins[kept].min())


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_updates_and_margins_keep_to_the_bounds_on_200_problems(step):
    for seed in range(100):
        X, Y, gamma = separable(seed)
        model = OnlineJointSVM(
            step, 1.0, 5000, code="signs", fit_intercept=False, average=False, threshold=None, random_state=seed
        )
        model._check_parameters()
        model.fit(X, Y)
        assert model.n_iter_ < 5000
        assert model.n_updates_ <= (1 + 2 / step) / gamma**2
        assert model.margin_ >= gamma / (step + 2) - 1e-12
        assert model.n_updates_ <= model.update_bound_
        assert model.squared_norm_ == pytest.approx((model.weights_**2).sum(), rel=1e-9)


def test_the_weights_are_those_of_updates_by_hand():
    X, Y = task(40)
    model = OnlineJointSVM(0.7, 0.5, 3, shuffle=False, average=False, fit_intercept=False).fit(X, Y)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    V = model.output_.features(Y)
    W, updates = np.zeros((X.shape[1], Y.shape[1])), 0
    total = np.zeros_like(W)
    for _ in range(3):
        for x, v in zip(rows, V, strict=True):
            if v @ (x @ W) < 0.5:
                W += 0.7 * np.outer(x, v)
                updates += 1
            total += W
    assert np.allclose(model.coef_, W)
    assert model.n_updates_ == updates
    averaged = OnlineJointSVM(0.7, 0.5, 3, shuffle=False, fit_intercept=False).fit(X, Y)
    assert np.allclose(averaged.coef_, total / 120)


def test_kernels_with_perceptron_updates_are_the_weights_of_features():
    X, Y = task(60)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    settings = {"max_iter": 4, "shuffle": False}
    by_weights = OnlineJointSVM(average=False, fit_intercept=False, **settings).fit(rows, Y)
    by_kernel = OnlineJointSVM(kernel=Linear(), **settings).fit(rows, Y)
    assert by_kernel.n_updates_ == by_weights.n_updates_
    assert np.allclose(by_kernel.decision_function(rows), by_weights.decision_function(rows))
    assert by_kernel.squared_norm_ == pytest.approx(by_weights.squared_norm_)


def test_gradient_updates_move_all_coefficients_and_keep_them_from_becoming_negative():
    X, Y = task(40)
    kernel = Gaussian(0.2)
    model = OnlineJointSVM(0.3, 1.0, 2, kernel, update="gradient", shuffle=False).fit(X, Y)
    V = model.output_.features(Y)
    G = kernel(X) * (V @ V.T)
    alpha, updates = np.zeros(40), 0
    for _ in range(2):
        for i in range(40):
            if G[i] @ alpha < 1.0:
                alpha = np.maximum(0, alpha + 0.3 * G[i])
                updates += 1
    full = np.zeros(40)
    full[model.support_] = model.dual_coef_
    assert np.allclose(full, alpha)
    assert model.n_updates_ == updates


def test_what_a_row_added_to_its_own_score_is_left_out():
    X, Y = task(40)
    for average in (False, True):
        model = OnlineJointSVM(max_iter=3, average=average, random_state=0)
        rows = model._rows(X, reset=True)
        model.output_ = JointSVM().fit(X, Y).output_
        V = model.output_.features(Y)
        model._start(rows.shape[1], V.shape[1])
        own = model._passes(rows, V, np.random.RandomState(0))
        # W = Σ_i own_i v_i x_i', so that the rows' own terms make up the weights.
        unit = own / (rows**2).sum(axis=1)
        assert np.allclose((unit[:, None] * rows).T @ V, model.coef_)


def test_scores_come_near_those_of_the_batch_machine():
    X, Y = task(400)
    batch = JointSVM(kernel=Linear() + 1.0).fit(X[:300], Y[:300]).score(X[300:], Y[300:])
    online = OnlineJointSVM(random_state=0).fit(X[:300], Y[:300]).score(X[300:], Y[300:])
    assert online > batch - 0.1


def test_sparse_rows_are_the_same_as_dense_ones():
    X, Y = task()
    X = X * (np.abs(X) > 0.5)
    dense = OnlineJointSVM(random_state=0).fit(X, Y)
    sparse = OnlineJointSVM(random_state=0).fit(sp.csr_matrix(X), Y)
    assert np.allclose(dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)))


def test_a_stream_is_learned_in_parts():
    X, Y = task(600)
    model = OnlineJointSVM(random_state=0)
    for at in range(0, 500, 50):
        model.partial_fit(X[at : at + 50], Y[at : at + 50])
    assert model.n_seen_ == 500
    assert model.score(X[500:], Y[500:]) > 0.6
    named = OnlineJointSVM().partial_fit(X[:2], [["b"], ["a"]], classes=["a", "b", "c"])
    assert list(named.classes_) == ["a", "b", "c"]
    named.partial_fit(X[2:4], [["c"], []])
    with pytest.raises(ValueError, match="'d'"):
        named.partial_fit(X[:1], [["d"]])


def test_a_stream_that_fails_leaves_the_model():
    X, Y = task()
    model = OnlineJointSVM(random_state=0).partial_fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="rows"):
        model.partial_fit(X[:5], Y[:4])
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"step": 0}, "step"),
        ({"margin": -1}, "margin"),
        ({"update": "newton"}, "update"),
        ({"max_iter": 0}, "max_iter"),
        ({"code": "hot"}, "code"),
        ({"kernel": "rbf"}, "kernel"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        OnlineJointSVM(**params).fit(*task())


def test_kernels_take_no_stream():
    with pytest.raises(ValueError, match="partial_fit learns weights"):
        OnlineJointSVM(kernel=Gaussian()).partial_fit(*task())


@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)])
def test_files_hold_the_model(kernel, tmp_path):
    X, Y = task()
    model = OnlineJointSVM(kernel=kernel, random_state=0).fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict_proba(X), model.predict_proba(X))


# ------------------------------------------------------------------------------------------------------- compressed


def sparse_sets(n: int, T: int, k: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, T), int)
    for row in Y:
        row[rng.choice(T, k, replace=False)] = 1
    return Y


@pytest.mark.parametrize("solver", ["omp", "l1"])
def test_planted_label_sets_are_recovered_from_their_codes(solver):
    """200 labels, 3 of them there, 60 numbers: at least 95 % of the label sets exactly."""
    Y = sparse_sets(300, 200, 3)
    X = np.random.default_rng(1).normal(size=(300, 5))
    model = CompressedLabels(60, n_nonzero=3, solver=solver, random_state=0).fit(X, Y)
    scores = model.recover(model.projection_.transform(sp.csr_matrix(Y)))
    exact = ((scores > 0.5).astype(int) == Y).all(axis=1).mean()
    assert exact >= 0.95


def test_labels_that_follow_the_features_are_found_by_few_regressions():
    Y = sparse_sets(500, 100, 2)
    rng = np.random.default_rng(2)
    X = Y @ rng.normal(size=(100, 120)) + 0.1 * rng.normal(size=(500, 120))
    model = CompressedLabels(50, alpha=0.01, random_state=0).fit(X[:400], Y[:400])
    assert model.coef_.shape == (120, 50)
    assert multilabel_scores(Y[400:], model.predict(X[400:])).micro_f1 > 0.9


@pytest.mark.parametrize("shape", [(60, 8), (30, 50)], ids=["tall", "wide"])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_left_out_are_those_of_a_regression_without_the_row(shape, sparse):
    from mercer.multilabel.compressed import _ridge

    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    X[:, :2] *= rng.random((shape[0], 2)) < 0.5
    given = sp.csr_matrix(X) if sparse else X
    B, b, left_out = _ridge(given, Z, 0.5, True)
    penalty = 0.5 * (X**2).sum() / len(X)
    centred = X - X.mean(axis=0)
    assert np.allclose(B, np.linalg.solve(centred.T @ centred + penalty * np.eye(shape[1]), centred.T @ Z))
    assert np.allclose(b, Z.mean(axis=0) - X.mean(axis=0) @ B)
    for i in (0, 7):
        others = np.arange(len(X)) != i
        part, mean = X[others] - X[others].mean(axis=0), Z[others].mean(axis=0)
        own = np.linalg.solve(part.T @ part + penalty * np.eye(shape[1]), part.T @ (Z[others] - mean))
        assert np.allclose(left_out[i], (X[i] - X[others].mean(axis=0)) @ own + mean, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"alpha": 0}, "alpha"),
        ({"solver": "lars"}, "solver"),
        ({"n_hashes": 0}, "n_hashes"),
    ],
)
def test_wrong_compressions_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        CompressedLabels(**params).fit(*task())


def test_compressed_labels_survive_files(tmp_path):
    X, Y = task()
    model = CompressedLabels(random_state=0).fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="codes must be finite"):
        model.recover(np.zeros((2, 1)))
