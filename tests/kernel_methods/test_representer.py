"""Any loss over the space of a kernel, against solutions over explicit features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge

from mercer.kernel_methods import (
    ExponentialLoss,
    HingeLoss,
    HuberLoss,
    KernelRidge,
    KernelSVC,
    LogisticLoss,
    MulticlassHingeLoss,
    PerceptronLoss,
    PinballLoss,
    RepresenterEstimator,
    SquaredLoss,
)
from mercer.kernels import Linear
from mercer.learning import ConvergenceWarning
from reference.kernel_methods import Bump, Letters, Minus, blobs

LABELS = [LogisticLoss(), ExponentialLoss(), HingeLoss()]
NUMBERS = [SquaredLoss(), HuberLoss(0.3), PinballLoss(0.7)]


def problem(loss, seed=0, n=50):
    X, y = blobs(seed, n=n, apart=0.8, d=3)
    return X, (y if loss.task == "binary" else np.sin(X[:, 0]) + 0.1 * X[:, 1])


@pytest.mark.parametrize("loss", LABELS + NUMBERS, ids=repr)
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_solution_over_coefficients_is_the_one_over_explicit_features(loss, offset, solver):
    X, y = problem(loss)
    kernel = (Linear() + 1.0) ** 2
    F = kernel.features(X)
    F = F.toarray() if hasattr(F, "toarray") else np.asarray(F)
    targets = np.where(y == 1, 1.0, -1.0) if loss.task == "binary" else y
    C = 0.7
    smooth = loss.smoothed(1e-4)

    def risk(u):
        w, b = (u[:-1], u[-1]) if offset else (u, 0.0)
        f = F @ w + b
        g = C * smooth.gradient(f, targets)
        return 0.5 * w @ w + C * smooth.value(f, targets).sum(), np.append(w + F.T @ g, [g.sum()] if offset else [])

    primal = minimize(
        risk, np.zeros(F.shape[1] + offset), jac=True, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RepresenterEstimator(kernel, loss, C, offset=offset, solver=solver, max_iter=2000).fit(X, y)
    kinks = loss.smoothed(1.0) is not loss
    # Rounding a kink over a width of 1e-4 changes the risk by at most C n 1e-4 / 2.
    assert model.objective_[0] == pytest.approx(primal.fun, abs=C * 50 * 1e-4 if kinks else 1e-7 * primal.fun)
    w, b = (primal.x[:-1], primal.x[-1]) if offset else (primal.x, 0.0)
    outputs = model._outputs(X)[:, 0]
    np.testing.assert_allclose(outputs, F @ w + b, atol=2e-2 if kinks else 1e-4)
    a = model.dual_coef_[0]
    assert offset or model.intercept_[0] == 0.0
    own = 0.5 * a @ kernel(X) @ a + C * loss.value(outputs, targets).sum()
    assert own == pytest.approx(model.objective_[0], rel=1e-7)


@pytest.mark.parametrize("loss", LABELS + NUMBERS, ids=repr)
def test_no_other_function_has_a_lower_risk_least_of_all_one_with_an_orthogonal_part(loss):
    X, y = problem(loss, seed=1, n=30)
    rng = np.random.default_rng(0)
    kernel, C = Bump(0.5), 2.0
    model = RepresenterEstimator(kernel, loss, C, offset=False).fit(X, y)
    targets = np.where(y == 1, 1.0, -1.0) if loss.task == "binary" else y
    points = np.vstack([X, rng.normal(size=(20, 3))])  # functions that need points outside the sample
    K = kernel(points)

    def risk(a):
        return 0.5 * a @ K @ a + C * loss.value((K @ a)[:30], targets).sum()

    a = np.concatenate([model.dual_coef_[0], np.zeros(20)])
    least = risk(a)
    assert least == pytest.approx(model.objective_[0], rel=1e-8)
    for _ in range(20):
        direction = rng.normal(size=50)
        assert risk(a + 1e-3 * direction) >= least - 1e-6
        # Orthogonal to all k(·, x_i): its values on the sample are 0, so that only the norm changes.
        outside = rng.normal(size=20)
        inside = -np.linalg.lstsq(K[:30, :30], K[:30, 30:] @ outside, rcond=None)[0]
        orthogonal = np.concatenate([inside, outside])
        np.testing.assert_allclose((K @ orthogonal)[:30], 0.0, atol=1e-6)
        assert risk(a + 0.1 * orthogonal) > least


def test_squared_loss_without_offset_is_ridge_regression():
    X, y = problem(SquaredLoss())
    ours = RepresenterEstimator(Bump(), C=2.0, offset=False).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), KernelRidge(Bump(), alpha=0.25).fit(X, y).predict(X), atol=1e-8)
    linear = RepresenterEstimator(C=2.0).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), Ridge(alpha=0.25).fit(X, y).predict(X), atol=1e-8)


def test_logistic_loss_is_logistic_regression():
    X, y = problem(LogisticLoss())
    ours = RepresenterEstimator(loss="logistic", C=0.5).fit(X, y)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("kernel", [Linear(), Bump(0.5), Minus()], ids=repr)
def test_hinge_loss_with_offset_is_the_support_vector_machine(kernel):
    X, y = problem(HingeLoss())
    ours = RepresenterEstimator(kernel, "hinge", C=0.5).fit(X, y)
    machine = KernelSVC(kernel, C=0.5, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), machine.decision_function(X), atol=1e-3)
    assert abs(ours.dual_coef_.sum()) < 1e-8


def test_pinball_loss_is_quantile_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = X[:, 0] * rng.normal(size=300)
    ours = RepresenterEstimator(loss=PinballLoss(0.9), C=1e4).fit(X, y)
    theirs = QuantileRegressor(quantile=0.9, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-2)
    assert np.mean(y <= ours.predict(X)) == pytest.approx(0.9, abs=0.01)


def test_a_function_serves_as_a_loss():
    X, y = problem(SquaredLoss())

    def cauchy(f, y):  # not convex
        e = f - y
        return np.log1p(e * e), 2 * e / (1 + e * e)

    model = RepresenterEstimator(Bump(), cauchy, C=5.0).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.9
    assert is_regressor(model)
    assert not hasattr(model, "decision_function")
    with pytest.raises(ValueError, match="second derivative"):
        RepresenterEstimator(Bump(), cauchy, solver="newton").fit(X, y)
    with pytest.raises(ValueError, match=r"loss must give values and derivatives of shape \(50,\)"):
        RepresenterEstimator(Bump(), lambda f, y: (0.0, f)).fit(X, y)


def test_classes_against_all_others_and_objects_that_are_strings():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 8, p=p)) for p in 0.1 + 0.6 * np.eye(4)[:3] for _ in range(20)]
    y = np.repeat(["x", "y", "z"], 20)
    model = RepresenterEstimator(Letters(), "logistic", C=10.0).fit(words, y)
    assert is_classifier(model)
    assert model.score(words, y) > 0.95
    assert model.dual_coef_.shape == (3, 60)
    np.testing.assert_allclose(model.predict_proba(words).sum(axis=1), 1.0)
    assert not hasattr(RepresenterEstimator(loss="hinge"), "predict_proba")


def test_weights_are_repetitions():
    X, y = problem(LogisticLoss())
    weights = np.arange(50) % 3
    chosen = np.repeat(np.arange(50), weights)
    weighted = RepresenterEstimator(loss="logistic").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        weighted.decision_function(X),
        RepresenterEstimator(loss="logistic").fit(X[chosen], y[chosen]).decision_function(X),
        atol=1e-6,
    )


def test_a_limit_on_steps_warns():
    X, y = problem(LogisticLoss())
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        RepresenterEstimator(Bump(), "logistic", C=100.0, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "novelty"}, "loss must be one of"),
        ({"loss": MulticlassHingeLoss()}, "loss must be a loss of two labels or of numbers"),
        ({"loss": PerceptronLoss()}, "loss must be a loss of two labels or of numbers"),
        ({"C": 0.0}, "C must be"),
        ({"solver": "sgd"}, "solver must be one of"),
        ({"kernel": Minus(), "offset": False}, "needs a positive definite kernel"),
        ({"tol": 0.0}, "tol must be"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    X, y = problem(SquaredLoss())
    with pytest.raises(ValueError, match=message):
        RepresenterEstimator(**options).fit(X, y)
