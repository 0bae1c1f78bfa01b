"""Online learners against perceptrons on vectors, explicit gradient steps and batch optima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.data import Graphs
from mercer.kernel_methods import (
    ExponentialLoss,
    HingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    MulticlassLogisticLoss,
    MulticlassPerceptronLoss,
    NoveltyLoss,
    OnlineKernelClassifier,
    PerceptronLoss,
    RepresenterEstimator,
    TaxonomyLoss,
)
from mercer.kernels import Kernel, Linear
from reference.kernel_methods import Bump, Letters, Minus, blobs, multiclass_perceptron, perceptron


def weights(model: OnlineKernelClassifier) -> np.ndarray:
    """w of the linear kernel, a row for each function."""
    return model.dual_coef_ @ model.support_objects_


def separable(seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(60) % classes
    return 4.0 * np.eye(classes)[y] + rng.uniform(-1.5, 1.5, size=(60, classes)), y


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("eta", [0.1, 1.0, 7.0])
def test_perceptron_makes_at_most_as_many_mistakes_as_the_margin_allows(seed, eta):
    X, y = separable(seed)
    model = OnlineKernelClassifier(learning_rate=eta, max_iter=500, random_state=seed).fit(X, y)
    w = weights(model)[0]
    assert np.any(w != 0)
    assert model.converged_
    assert model.score(X, y) == 1.0
    signs = np.where(y == 1, 1.0, -1.0)
    R = np.linalg.norm(X, axis=1).max()
    gamma = (signs * (X @ w)).min() / np.linalg.norm(w)  # a lower bound of the largest margin
    best = minimize(lambda v: -(signs * (X @ v)).min() / np.linalg.norm(v), w, method="Nelder-Mead")
    gamma = max(gamma, -best.fun)
    assert 1 <= model.n_mistakes_ <= (R / gamma) ** 2


@pytest.mark.parametrize("seed", range(5))
def test_perceptron_for_classes_keeps_its_mistake_bound(seed):
    X, y = separable(seed, classes=4)
    model = OnlineKernelClassifier(max_iter=2000, random_state=seed).fit(X, y)
    assert model.converged_
    W = weights(model)
    scores = X @ W.T
    others = np.where(np.eye(4, dtype=bool)[y], -np.inf, scores)
    gamma = (scores[np.arange(60), y] - others.max(axis=1)).min() / np.linalg.norm(W)
    R = np.sqrt(2) * np.linalg.norm(X, axis=1).max()  # ‖φ(x, y) − φ(x, z)‖
    assert gamma > 0
    assert 1 <= model.n_mistakes_ <= (R / gamma) ** 2


@pytest.mark.parametrize("eta", [0.5, 3.0])
def test_kernel_perceptron_is_the_perceptron_on_vectors(eta):
    X, y = blobs(3, n=50, apart=1.0, d=3)
    model = OnlineKernelClassifier(learning_rate=eta, max_iter=7, shuffle=False).fit(X, y)
    w, mistakes, _ = perceptron(X, np.where(y == 1, 1.0, -1.0), eta, 7)
    np.testing.assert_allclose(weights(model)[0], w, atol=1e-9)
    assert model.n_mistakes_ == mistakes == model.n_updates_


def test_kernel_perceptron_for_classes_is_the_one_on_vectors():
    X, y = blobs(3, n=50, apart=1.0, classes=4, d=3)
    model = OnlineKernelClassifier(learning_rate=0.7, max_iter=5, shuffle=False).fit(X, y)
    W, mistakes = multiclass_perceptron(X, y, 4, 0.7, 5)
    np.testing.assert_allclose(weights(model), W, atol=1e-9)
    assert model.n_mistakes_ == mistakes


@pytest.mark.parametrize("classes", [2, 4])
def test_norma_with_the_perceptron_loss_is_the_perceptron_update_by_update(classes):
    X, y = blobs(5, n=40, apart=1.0, classes=classes, d=3)
    loss = PerceptronLoss() if classes == 2 else MulticlassPerceptronLoss()
    norma = OnlineKernelClassifier(algorithm="norma", loss=loss, alpha=0.0, learning_rate=0.5, schedule="constant")
    plain = OnlineKernelClassifier(learning_rate=0.5)
    _, _, course = perceptron(X, np.where(y == 1, 1.0, -1.0), 0.5, 1)
    for i in range(40):
        for model in (norma, plain):
            model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(classes))
        np.testing.assert_array_equal(norma.dual_coef_, plain.dual_coef_)
        np.testing.assert_array_equal(norma.support_, plain.support_)
        if classes == 2:
            np.testing.assert_allclose(weights(norma)[0], course[i], atol=1e-12)


LOSSES = [HingeLoss(), LogisticLoss(), ExponentialLoss(), PerceptronLoss(), NoveltyLoss()]
MANY = [
    MulticlassHingeLoss(),
    MulticlassLogisticLoss(),
    TaxonomyLoss([("r", 0), ("r", "i"), ("i", 1), ("i", 2)], (0, 1, 2)),
]


@pytest.mark.parametrize("loss", LOSSES + MANY, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("schedule", ["constant", "sqrt"])
def test_norma_takes_the_steps_of_its_definition(loss, schedule):
    many = loss.task == "multiclass"
    X, y = blobs(6, n=30, apart=1.0, classes=3 if many else 2, d=3)
    model = OnlineKernelClassifier(
        algorithm="norma",
        loss=loss,
        alpha=0.1,
        learning_rate=0.5,
        schedule=schedule,
        max_iter=3,
        shuffle=False,
        average=True,
    ).fit(X, y)
    W, total, t = np.zeros((3 if many else 1, 3)), 0.0, 0
    for _ in range(3):
        for x, c in zip(X, y, strict=True):
            t += 1
            eta = 0.5 / np.sqrt(t) if schedule == "sqrt" else 0.5
            f = (W @ x)[None, :] if many else W @ x
            g = loss.gradient(f, np.array([c] if many else [2.0 * c - 1.0])).ravel()
            W = W - eta * (np.outer(g, x) + 0.1 * W)
            total = total + W
    np.testing.assert_allclose(model.dual_coef_ @ model.support_objects_, total / t, atol=1e-9)
    np.testing.assert_allclose(model._coef.T @ model.support_objects_, W, atol=1e-9)
    assert model.t_ == 90


def test_norma_comes_near_the_batch_optimum():
    X, y = blobs(7, n=200, apart=1.0)
    lam, kernel = 0.1, Bump(0.5)
    model = OnlineKernelClassifier(
        kernel, "norma", loss="hinge", alpha=lam, learning_rate=1.0, max_iter=40, average=True, random_state=0
    ).fit(X, y)
    signs, K = np.where(y == 1, 1.0, -1.0), kernel(X)

    def risk(a: np.ndarray) -> float:
        f = K @ a
        return np.maximum(0, 1 - signs * f).mean() + 0.5 * lam * a @ f

    a = np.zeros(200)
    a[model.support_] = model.dual_coef_[0]
    batch = RepresenterEstimator(kernel, "hinge", C=1 / (200 * lam), offset=False).fit(X, y)
    optimum = lam * batch.objective_[0]
    assert risk(batch.dual_coef_[0]) == pytest.approx(optimum, rel=1e-9)
    assert optimum <= risk(a) <= 1.05 * optimum


@pytest.mark.parametrize("policy", ["oldest", "smallest"])
def test_memory_stays_within_its_budget(policy):
    X, y = blobs(8, n=300, apart=2.0)
    model = OnlineKernelClassifier(Bump(), "norma", budget=17, budget_policy=policy, random_state=0)
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
        assert len(model.support_) <= 17
    assert len(model.support_objects_) == model.dual_coef_.shape[1] == 17
    assert np.all(model.dual_coef_ != 0)
    np.testing.assert_array_equal(model.support_objects_, X[model.support_])
    if policy == "oldest":
        steps = OnlineKernelClassifier(Bump(), "norma", budget=17)
        for i in range(300):
            steps.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        np.testing.assert_array_equal(np.sort(steps.support_), np.sort(model.support_))
        assert np.sort(model.support_)[0] > 200  # nothing of long ago
    assert model.score(X, y) > 0.8


def test_stream_in_any_pieces_gives_the_same_function():
    X, y = blobs(9, n=120, apart=1.0, classes=3)
    models = []
    for size in (1, 13, 120):
        model = OnlineKernelClassifier(Bump(), "norma", alpha=0.01, average=True)
        for start in range(0, 120, size):
            model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1, 2])
        models.append(model)
    for other in models[1:]:
        np.testing.assert_allclose(other.decision_function(X), models[0].decision_function(X), atol=1e-10)
        assert other.n_mistakes_ == models[0].n_mistakes_


def test_decay_to_nothing_does_not_lose_precision():
    X, y = blobs(10, n=60, apart=1.0)
    model = OnlineKernelClassifier(
        Bump(), "norma", alpha=0.9, learning_rate=1.0, schedule="constant", max_iter=30, random_state=0
    )
    f = model.fit(X, y).decision_function(X)
    assert np.isfinite(f).all()
    assert np.abs(f).max() > 1e-3


def test_novelty_loss_tells_the_known_from_the_new():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = OnlineKernelClassifier(
        Bump(0.5), "norma", loss=NoveltyLoss(), alpha=0.01, learning_rate=0.5, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(model.predict([[0.0, 0.0], [9.0, 9.0]]), [1, -1])
    assert model.classes_.tolist() == [-1, 1]


def test_taxonomy_gives_its_labels_names():
    X, y = blobs(11, n=60, apart=6.0, classes=3)
    names = np.array(["CDROM", "HDD", "cables"])[y]
    loss = TaxonomyLoss([("storage", "HDD"), ("storage", "CDROM"), ("hardware", "storage"), ("hardware", "cables")])
    model = OnlineKernelClassifier(Linear() + 1.0, "norma", loss=loss, random_state=0).fit(X, names)
    assert model.score(X, names) > 0.9


class EdgeCount(Kernel):
    """The number of edges of graphs, multiplied."""

    def _prepare(self, X):
        return np.array([graph.n_edges for graph in X], dtype=float)

    def _gram(self, A, B, work):
        return np.multiply.outer(A, A if B is None else B) + 1.0


@pytest.mark.parametrize("kind", ["strings", "graphs", "frame", "columns"])
def test_streams_of_objects_of_any_kind(kind):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 6)) for _ in range(60)]
    y = np.array([w.count("a") > w.count("b") for w in words])
    X, kernel = {
        "strings": (words, Letters()),
        "graphs": (
            Graphs.from_edges([[(0, i + 1) for i in range(w.count("a"))] for w in words], n_nodes=[8] * 60),
            EdgeCount(),
        ),
        "frame": (pd.DataFrame({"word": words}), Letters().on("word")),
        "columns": ({"word": words}, Letters().on("word")),
    }[kind]

    def rows(start, stop):
        if kind == "frame":
            return X.iloc[start:stop]
        return {"word": words[start:stop]} if kind == "columns" else X[start:stop]

    model = OnlineKernelClassifier(kernel)
    for start in range(0, 60, 20):
        model.partial_fit(rows(start, start + 20), y[start : start + 20], classes=[False, True])
    fitted = OnlineKernelClassifier(kernel, shuffle=False, max_iter=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), fitted.decision_function(X))


def test_precomputed_matrix_gives_the_same_as_the_kernel():
    X, y = blobs(12, n=40, apart=1.0, classes=3)
    K = Bump()(X)
    by_matrix = OnlineKernelClassifier("precomputed", random_state=3).fit(K, y)
    by_kernel = OnlineKernelClassifier(Bump(), random_state=3).fit(X, y)
    np.testing.assert_allclose(by_matrix.decision_function(K), by_kernel.decision_function(X), atol=1e-10)
    with pytest.raises(ValueError, match="partial_fit needs a kernel"):
        by_matrix.partial_fit(K, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "svm"}, "algorithm must be one of"),
        ({"algorithm": "norma", "loss": "squared"}, "loss must be one of"),
        ({"algorithm": "norma", "learning_rate": 2.0, "alpha": 0.5}, "learning_rate \\* alpha must be below 1"),
        ({"algorithm": "norma", "alpha": -1.0}, "alpha must be"),
        ({"algorithm": "norma", "loss": "exponential"}, "is for two classes"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"budget": 0}, "budget must be"),
        ({"budget_policy": "random"}, "budget_policy must be"),
        ({"schedule": "linear"}, "schedule must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"kernel": Minus()}, "needs a positive definite kernel"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    X, y = blobs(0, n=12, classes=3)
    with pytest.raises(ValueError, match=message):
        OnlineKernelClassifier(**options).fit(X, y)


def test_labels_that_were_not_announced_are_refused():
    X, y = blobs(0, n=12, classes=3)
    with pytest.raises(ValueError, match="label 2"):
        OnlineKernelClassifier().partial_fit(X, y, classes=[0, 1])
    model = OnlineKernelClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="those of the first call"):
        model.partial_fit(X, y, classes=[0, 1])
