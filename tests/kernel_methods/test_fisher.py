"""Fisher's discriminant with a kernel: linear discriminant analysis with a linear one, and any objects with others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

from mercer.kernel_methods import KernelFisher
from mercer.kernels import Gaussian, Linear
from reference.dependence import Grams


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_linear_kernel_gives_linear_discriminant_analysis(load, classes):
    X, y = load(return_X_y=True)
    X, y = X[y < classes] / X.std(axis=0), y[y < classes]
    train = np.arange(len(y)) % 3 != 0
    ours = KernelFisher(Linear(), alpha=1e-9).fit(X[train], y[train])
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X[train], y[train])
    assert (ours.predict(X[~train]) == theirs.predict(X[~train])).all()
    np.testing.assert_allclose(ours.predict_proba(X[~train]), theirs.predict_proba(X[~train]), atol=1e-5)
    expected = theirs.transform(X[~train])
    found = ours.transform(X[~train])
    assert found.shape == expected.shape
    for a, b in zip(found.T, expected.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) > 1 - 1e-8
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-6)


def test_classes_have_covariance_one_on_the_directions():
    X, y = load_iris(return_X_y=True)
    model = KernelFisher(Linear(), alpha=1e-9).fit(X, y)
    Z = model.transform(X)
    within = Z - model.means_[y]
    np.testing.assert_allclose(within.T @ within / len(y), np.eye(2), atol=1e-6)


def rings(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + y + 0.15 * rng.normal(size=n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], y


@pytest.mark.parametrize("method", ["exact", "features"])
def test_rings_are_told_apart_by_a_gaussian_kernel_only(method):
    X, y = rings(300)
    Z, z = rings(200, 1)
    model = KernelFisher(Gaussian(1.0), method=method, n_features=80, random_state=0).fit(X, y)
    assert model.score(Z, z) > 0.95
    assert KernelFisher(Linear()).fit(X, y).score(Z, z) < 0.6
    assert model.transform(Z).shape == (200, 2)
    assert model.decision_function(Z).shape == (200, 3)
    np.testing.assert_allclose(model.predict_proba(Z).sum(axis=1), 1.0)


def test_the_scale_of_the_kernel_does_not_matter():
    X, y = rings(100)
    one, other = (KernelFisher(scale * Gaussian(1.0)).fit(X, y) for scale in (1.0, 1e6))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_strings_with_names_as_labels_under_cross_validation():
    rng = np.random.default_rng(0)
    y = np.repeat(["even", "odd"], 40)
    X = np.array(["".join(rng.choice(list("ab"), 15, p=[p, 1 - p])) for p in np.repeat([0.25, 0.75], 40)])
    assert cross_val_score(KernelFisher(Grams(2), alpha=0.1), X, y, cv=4).mean() > 0.9
    model = KernelFisher(Grams(2)).fit(list(X), y)
    assert set(model.predict(list(X))) == {"even", "odd"}
    assert model.decision_function(list(X)).shape == (80,)


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        ({}, np.zeros(10), "at least two classes"),
        ({}, np.zeros(9), "one label for each of the 10 objects"),
        ({"alpha": 0.0}, np.arange(10) % 2, "alpha must be"),
        ({"n_components": 2}, np.arange(10) % 2, "n_components must be at most 1"),
        ({"kernel": None}, np.arange(10) % 2, "kernel must be a Kernel"),
    ],
)
def test_bad_input_is_named(change, y, message):
    model = KernelFisher(Linear()).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(np.random.default_rng(0).normal(size=(10, 2)), y)
