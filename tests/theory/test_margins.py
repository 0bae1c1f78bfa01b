"""Geometric margins equal their definition, probabilistic ones theirs; projections equal quadratic programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

import mercer
from mercer.kernel_methods import KernelSVC
from mercer.kernels import Linear
from mercer.learning import LOSSES
from mercer.structures import Labels
from mercer.theory import margins

NAMES = ("svm", "lcrf", "circle")


def points(n: int, k: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


# ---------------------------------------------------------------------------------- geometric


def test_the_hard_margin_machine_has_a_margin_of_one_over_its_norm():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = 4.0 * np.eye(3)[y] + rng.normal(scale=0.3, size=(30, 3))
    model = mercer.LinearClassifier(loss="hinge", C=1e6, tol=1e-8, fit_intercept=False).fit(X, y)
    assert margins.geometric(model, X, y).min() == pytest.approx(1.0 / np.linalg.norm(model.coef_), rel=1e-3)


def test_leads_of_a_tagger_are_those_of_its_two_best_outputs():
    X = [["a", "b"], ["b", "a", "a"], ["c"]]
    y = [["x", "y"], ["y", "x", "x"], ["y"]]
    model = mercer.Tagger(C=1.0).fit(X, y)
    found = margins.geometric(model, X, y)
    for i, best in enumerate(model.k_best(X, 2)):
        lead = best[0][1] - best[1][1] if list(best[0][0]) == y[i] else None
        if lead is not None:
            assert found[i] == pytest.approx(lead / np.linalg.norm(model.coef_), rel=1e-6)


def test_a_kernel_machine_is_measured_in_the_space_of_its_kernel():
    X = np.array([[2.0, 0.0], [3.0, 1.0], [-2.0, 0.0], [-3.0, 1.0]])
    y = np.array([1, 1, 0, 0])
    model = KernelSVC(Linear(), C=100.0).fit(X, y)
    f = model.as_function()
    leads = np.where(y == 1, 1, -1) * model.decision_function(X)
    norm = math.hypot(f.norm(), float(model.intercept_[0]))
    np.testing.assert_allclose(margins.geometric(model, X, y), leads / norm, rtol=1e-9)


def test_models_that_have_no_margin_are_refused_by_name():
    X, y = np.eye(3), [0, 1, 2]
    with pytest.raises(NotFittedError):
        margins.geometric(mercer.LinearClassifier(), X, y)
    with pytest.raises(NotFittedError):
        margins.geometric(mercer.Tagger(), [["a"]], [["x"]])
    with pytest.raises(TypeError, match="HiddenMarkovModel is not a linear model"):
        margins.geometric(mercer.HiddenMarkovModel(2), X, y)
    with pytest.raises(TypeError, match=r"KernelSVC.*no single norm"):
        margins.geometric(KernelSVC(Linear()).fit(np.repeat(X, 4, axis=0), np.repeat(y, 4)), X, y)
    model = mercer.LinearClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"label .*7"):
        margins.geometric(model, X, [0, 1, 7])
    with pytest.raises(ValueError, match="fully known"):
        margins.geometric(mercer.Tagger().fit([["a", "b"]], [["x", "y"]]), [["a", "b"]], [["x", None]])
    model.coef_[:] = 0.0
    model.intercept_[:] = 0.0
    with pytest.raises(ValueError, match="weights of the model are 0"):
        margins.geometric(model, X, y)


# ---------------------------------------------------------------------------------- probabilistic


@pytest.mark.parametrize(("loss", "name"), [("hinge", "svm"), ("log", "lcrf"), ("circle", "circle")])
def test_losses_are_margins_that_are_missing(loss, name):
    rng = np.random.default_rng(0)
    for f in rng.normal(scale=2.0, size=(50, 4)):
        y = int(rng.integers(4))
        wanted = LOSSES[loss]().value_and_gradient(Labels(4, 0), f[None], np.array([y]))[0][0]
        margin, gamma = margins.as_margin(loss)
        assert margin.name == name
        assert margin.loss(f, y) == pytest.approx(wanted, abs=1e-12)
        p = np.exp(f) / np.exp(f).sum()
        assert max(0.0, gamma - margin.mu(p, y)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_margins_are_convex_and_nested(name, k):
    assert margins.check_margin(margins.probabilistic(name), n_labels=k) == []


def test_the_squared_hinge_without_truncation_is_none():
    def squared(p, y):
        m = math.log(p[y]) - math.log(np.delete(p, y).max())
        return m - m * m / 2

    def truncated(p, y):
        m = math.log(p[y]) - math.log(np.delete(p, y).max())
        return 0.5 - max(0.0, 1.0 - m) ** 2 / 2

    problems = margins.check_margin(squared, n_points=2000)
    assert any("not convex" in problem for problem in problems)
    assert any("corner" in problem for problem in problems)
    assert margins.check_margin(truncated, n_points=2000) == []
    with pytest.raises(ValueError, match="squared hinge"):
        margins.as_margin("squared-hinge")


def reference(name, p, y, gamma):
    """The nearest point of the set by a general solver of quadratic programs."""
    k = len(p)
    corner = np.eye(k)[y]
    constraints = [{"type": "eq", "fun": lambda q: q.sum() - 1.0}]
    if name == "svm":
        constraints.append({"type": "ineq", "fun": lambda q: np.delete(math.exp(-gamma) * q[y] - q, y)})
    elif name == "lcrf":
        constraints.append({"type": "ineq", "fun": lambda q: q[y] - math.exp(gamma)})
    else:
        constraints.append({"type": "ineq", "fun": lambda q: (1.0 - gamma) ** 2 - (q - corner) @ (q - corner)})
    found = minimize(
        lambda q: 0.5 * (q - p) @ (q - p), 0.9 * corner + 0.1 / k, jac=lambda q: q - p, method="SLSQP",
        bounds=[(0.0, 1.0)] * k, constraints=constraints, options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    assert found.status in (0, 8), found.message
    return found.x


@pytest.mark.parametrize("name", NAMES)
def test_projections_equal_a_quadratic_program(name):
    margin = margins.probabilistic(name)
    for p in points(6, 4, seed=1):
        for gamma in margin.contours:
            q = margin.project(p, 2, gamma)
            assert q.sum() == pytest.approx(1.0)
            assert (q >= -1e-12).all()
            assert margin.mu(np.clip(q, 0.0, 1.0), 2) >= gamma - 1e-9
            wanted = reference(name, p, 2, gamma)
            np.testing.assert_allclose(q, wanted, atol=2e-6)
            assert np.linalg.norm(q - p) <= np.linalg.norm(wanted - p) + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_points_of_a_set_are_their_own_projection(name):
    margin = margins.probabilistic(name)
    p = np.array([0.9, 0.05, 0.05])
    assert margin.contains(p, 0, margin.contours[0])
    np.testing.assert_array_equal(margin.project(p, 0, margin.contours[0]), p / p.sum())
    assert not margin.contains(p, 1, margin.contours[0])


def test_pictures_show_three_contours():
    plt = pytest.importorskip("matplotlib.pyplot")
    for name in NAMES:
        ax = margins.probabilistic(name).plot(resolution=12)
        assert ax.get_title() == name
        plt.close(ax.figure)


# ---------------------------------------------------------------------------------- bad input


def test_wrong_arguments_are_named():
    margin = margins.probabilistic("circle")
    with pytest.raises(ValueError, match="name"):
        margins.probabilistic("square")
    with pytest.raises(ValueError, match="p must sum to 1"):
        margin.mu([0.5, 0.6], 0)
    with pytest.raises(ValueError, match="at least two labels"):
        margin.mu([1.0], 0)
    with pytest.raises(ValueError, match="label from 0 to 1"):
        margin.mu([0.5, 0.5], 2)
    with pytest.raises(ValueError, match="gamma must be a finite number"):
        margin.contains([0.5, 0.5], 0, np.nan)
    with pytest.raises(ValueError, match="no distribution has μ above 1"):
        margin.project([0.5, 0.5], 0, 1.5)
    with pytest.raises(ValueError, match="no distribution has μ above 0"):
        margins.probabilistic("lcrf").project([0.5, 0.5], 0, 0.5)
    with pytest.raises(ValueError, match="one of three labels"):
        margin.plot(y=3)
    with pytest.raises(ValueError, match="loss"):
        margins.as_margin("slack")
