"""Newton steps for the log loss of single labels: scikit-learn's optimum, exact derivatives, resumption to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from mercer import Tagger, _core
from mercer.classification import LinearClassifier
from mercer.data import Sequences
from mercer.learning import Log, Penalty, Risk
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.risk import WeightedRisk
from mercer.learning.solvers import newton
from mercer.learning.solvers.newton import _Logistic, _newton_step
from mercer.learning.training import train
from mercer.structures import Labels


def draw(n_classes, *, n=60, d=5, sparse=False, single=False, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 2.0
    y = ((X - 2.0) @ random.normal(size=(d, n_classes)) + random.normal(size=(n, n_classes))).argmax(axis=1)
    if sparse:
        X = sp.csr_array(X * (random.random((n, d)) < 0.5))
    return X.astype(np.float32) if single else X, y


def risk_of(n_classes, weights=None, **options) -> Risk:
    X, y = draw(n_classes, **options)
    X = Sequences(X, np.arange(X.shape[0] + 1))
    structure = Labels(n_classes, X.n_features)
    if weights is None:
        return Risk(structure, Log(), X, y.astype(np.int32))
    return WeightedRisk(structure, Log(), X, y.astype(np.int32), weights)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", ["dense", "sparse", "weighted", "wide", "diagonal", "turned", "sampled"])
def test_optimum_and_constants_are_those_of_scikit_learn(n_classes, form, monkeypatch):
    if form == "diagonal":  # what many features have
        monkeypatch.setattr(newton, "_FACTORED", 0)
    n, d = {"wide": (30, 40), "turned": (30, 80), "sampled": (4000, 5)}.get(form, (60, 5))
    X, y = draw(n_classes, d=d, n=n, sparse=form == "sparse")
    weights = np.random.default_rng(1).integers(0, 4, len(y)) if form == "weighted" else None
    model = LinearClassifier("log", C=1.5, tol=1e-10).fit(X, y, sample_weight=weights)
    C = 3.0 if n_classes == 2 else 1.5  # with two labels ours has two vectors, and half of the penalty
    peer = LogisticRegression(C=C, solver="newton-cg", tol=1e-12, max_iter=1000).fit(X, y, sample_weight=weights)
    assert model.solver_ == "newton"
    assert model.converged_
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-5)
    constants = [values - values.mean() if n_classes > 2 else values for values in (model.intercept_, peer.intercept_)]
    np.testing.assert_allclose(*constants, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


def gradient_and_norm(n_classes, penalty, fit_intercept=True, **options):
    """The gradient's norm at the weights that training ended with, as a share of that at 0, from the rows alone."""
    X, y = draw(n_classes, **options)
    model = LinearClassifier("log", tol=1e-8, fit_intercept=fit_intercept).fit(X, y)
    risk = Risk(model._structure(), Log(), model._inputs(X), y.astype(np.int32))
    problem = _Logistic(risk, penalty, 1.0)

    def norm(W):
        return np.linalg.norm(problem.gradient(problem.at(W, problem.scores(W))))

    return norm(problem.start(model._flat(model))) / norm(problem.start(None))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_turned_into_as_many_as_rows_lead_to_the_same_optimum(n_classes, fit_intercept, monkeypatch):
    penalty = Penalty(free=n_classes if fit_intercept else 0)
    options = dict(n=20, d=60, fit_intercept=fit_intercept)
    assert gradient_and_norm(n_classes, penalty, **options) <= 1e-8
    X, y = draw(n_classes, n=20, d=60)
    X, y = (
        np.vstack([X, X[:7], np.zeros((1, 60))]),
        np.concatenate([y, y[::-1][:7], y[:1]]),
    )  # rows that depend on others
    turned = LinearClassifier("log", tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    monkeypatch.setattr(newton, "_TURNED", 0)
    plain = LinearClassifier("log", tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    assert turned.history_["objective"][-1] == pytest.approx(plain.history_["objective"][-1], rel=1e-12)
    np.testing.assert_allclose(turned.coef_, plain.coef_, atol=1e-6)
    warm = turned.set_params(warm_start=True, max_iter=1, tol=1e-7).fit(X, y)  # it begins where it ended
    assert warm.converged_


def test_a_class_that_a_sample_misses_is_no_reason_to_run_away():
    X, y = draw(2, n=4000)
    y[:] = 0
    y[[1, 2, 3]] = 1  # none of every eighth row
    model = LinearClassifier("log", tol=1e-8).fit(X, y)
    peer = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_optimum_is_that_of_lbfgs(n_classes, fit_intercept):
    X, y = draw(n_classes)
    models = [
        LinearClassifier("log", solver, tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
        for solver in ("newton", "lbfgs")
    ]
    first, second = (model.history_["objective"][-1] for model in models)
    assert first == pytest.approx(second, rel=1e-9)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-3)


def test_free_constants_make_the_answer_independent_of_the_origin():
    """Rows moved by a constant: the same decisions, which a penalised constant does not give."""
    X, y = draw(3)
    near, far = (LinearClassifier("log", tol=1e-9).fit(rows, y) for rows in (X, X + 1000.0))
    np.testing.assert_allclose(near.coef_, far.coef_, atol=1e-5)
    np.testing.assert_allclose(near.predict_proba(X), far.predict_proba(X + 1000.0), atol=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_owlqn_leaves_the_constants_free(penalty):
    X, y = draw(2)
    model = LinearClassifier("log", penalty=penalty, C=0.5, tol=1e-9, max_iter=5000).fit(X, y)
    assert model.solver_ == "owlqn"
    scores = model.decision_function(X)
    assert float((1 / (1 + np.exp(-scores)) - (y == 1)).sum()) == pytest.approx(0.0, abs=1e-3)  # ∂F/∂b = 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_and_hessian_are_those_of_finite_differences(n_classes, weighted):
    random = np.random.default_rng(2)
    risk = risk_of(n_classes, random.random(60) if weighted else None)
    penalty = Penalty(free=n_classes)
    problem = _Logistic(risk, penalty, 0.7)
    w = random.normal(size=risk.n_weights)
    if n_classes == 2:  # of all pairs with one difference, that of least penalty
        w = problem.flat(problem.start(w))
    W, V = problem.start(w), random.normal(size=(risk.structure.n_features, problem.n_columns))

    def value(at: np.ndarray) -> float:
        flat = problem.flat(at)
        return 0.7 * risk.value(flat) + penalty.value(flat)

    def gradient(at: np.ndarray) -> np.ndarray:
        return problem.gradient(problem.at(at, problem.scores(at)))

    here = problem.at(W, problem.scores(W))
    assert here.value == pytest.approx(value(W), rel=1e-12)
    h = 1e-5
    slope = (value(W + h * V) - value(W - h * V)) / (2 * h)
    assert float(np.vdot(problem.gradient(here), V)) == pytest.approx(slope, rel=1e-6)
    image, scores = problem.hessian(here.P)(V)
    np.testing.assert_allclose(scores, problem.scores(V), rtol=1e-12)
    np.testing.assert_allclose(image, (gradient(W + h * V) - gradient(W - h * V)) / (2 * h), rtol=1e-5, atol=1e-6)


def test_a_step_solves_the_newton_system_and_knows_its_scores():
    problem = _Logistic(risk_of(3), Penalty(), 1.0)
    W = np.random.default_rng(3).normal(size=(5, 3))
    here = problem.at(W, problem.scores(W))
    g = problem.gradient(here)
    D, scores = _newton_step(problem, here.P, g, 1e-10)
    image, exact = problem.hessian(here.P)(D)
    np.testing.assert_allclose(image, -g, atol=1e-9)
    np.testing.assert_allclose(scores, exact, atol=1e-9)


@pytest.mark.parametrize("last", [0, 2])
@pytest.mark.parametrize("options", [{}, {"n": 30, "d": 80}, {"n": 4000}], ids=["plain", "turned", "sampled"])
def test_a_resumed_training_ends_with_the_same_bits(tmp_path, options, last):
    risk, path = risk_of(3, **options), tmp_path / "run"
    _, history = train(risk, solver="newton", C=1.0, tol=1e-9)

    class KilledError(Exception):
        pass

    steps = iter(range(10))

    def die_late(w: np.ndarray) -> float:
        if next(steps) == last:
            raise KilledError
        return 0.0

    options = dict(solver="newton", C=1.0, tol=1e-9, patience=100, fingerprint=lambda: "same")
    with pytest.raises(KilledError):
        train(risk, checkpoint=Checkpoint(path, every=0), evaluate=die_late, **options)
    resumed, later = train(risk, checkpoint=Checkpoint(path, every=0), evaluate=lambda w: 0.0, **options)
    assert len(later["objective"]) == len(history["objective"])
    assert later["objective"] == history["objective"]
    assert resumed.converged


def test_single_precision_reaches_the_accuracy_of_its_data():
    X, y = draw(3, single=True)
    model = LinearClassifier("log").fit(X, y)
    exact = LinearClassifier("log", tol=1e-9).fit(X.astype(float), y)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-3)


def test_separable_rows_without_a_penalty_end_with_a_word():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    with np.errstate(all="raise"):
        model = LinearClassifier("log", penalty=None, max_iter=40).fit(X, [0, 0, 1, 1])
    assert model.predict(X).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_columns_do_not_keep_it_from_the_optimum(factor):
    X, y = draw(3)
    X[:, 0] *= factor
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    scores = X @ peer.coef_.T + peer.intercept_
    log_loss = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    least = 0.5 * (peer.coef_**2).sum() + log_loss.sum()
    for options, room in (({}, 1e-4), ({"tol": 1e-9}, 1e-8)):  # tol is of the gradient, which other units stretch
        model = LinearClassifier("log", **options).fit(X, y)
        assert model.converged_
        assert model.history_["objective"][-1] == pytest.approx(least, rel=room)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="needs the log loss of single labels"):
        Tagger(solver="newton").fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(ValueError, match="needs the log loss of single labels"):
        LinearClassifier("softmax-margin", "newton").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="needs a smooth penalty"):
        LinearClassifier("log", "newton", penalty="l1").fit([[0.0], [1.0]], [0, 1])
    X = Sequences(np.eye(3), np.arange(4))
    with pytest.raises(ValueError, match="needs to know all labels"):
        train(Risk(Labels(2, 3), Log(), X, np.array([0, 1, -1], np.int32)), solver="newton", C=1.0)


@pytest.mark.parametrize("n", [0, 3, 8, 21])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_slopes_are_those_of_the_definition(n, weighted):
    random = np.random.default_rng(n)
    scores, labels = 30.0 * random.normal(size=n), random.integers(0, 2, n).astype(np.int32)
    scores[:2] = [800.0, -800.0][:n]
    weights = random.random(n) if weighted else np.full(n, 0.7)
    p, slopes = np.empty(n), np.empty(n)
    total = _core.linear.logistic_slopes(scores, labels, weights if weighted else np.empty(0), 0.7, p, slopes)
    signed = np.where(labels == 1, scores, -scores)
    assert total == pytest.approx(float((weights * np.logaddexp(0.0, -signed)).sum()), rel=1e-13)
    np.testing.assert_allclose(p, np.exp(-np.logaddexp(0.0, -scores)), rtol=1e-12, atol=1e-300)
    exact = np.where(labels == 1, -1.0, 1.0) * weights * np.exp(-np.logaddexp(0.0, signed))
    np.testing.assert_allclose(slopes, exact, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_zero_is_the_optimum_of_rows_with_every_label_once(fit_intercept):
    X = np.random.default_rng(0).normal(size=(800, 3))
    model = LinearClassifier("log", fit_intercept=fit_intercept).fit(np.repeat(X, 2, axis=0), [0, 1] * 800)
    assert model.converged_
    assert not model.coef_.any()
    model = LinearClassifier("log", warm_start=True, fit_intercept=False).fit([[1], [1], [2], [2]], [0, 1, 1, 1])
    assert not model.fit([[1], [1], [2], [2]], [0, 1, 0, 1]).coef_.any()


def test_labels_share_no_weights_that_only_cost_a_penalty():
    X, y = draw(3, n=4000, d=8)
    model = LinearClassifier("log", C=100.0).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    exact = LinearClassifier("log", C=100.0, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-4)
