"""Pre-images and kernel dependency estimation: strings reversed, sets mapped, means recovered."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mercer.kernel_methods import KernelDependencyEstimation, PreImage
from mercer.kernels import Gaussian, Linear
from reference.dependence import Grams


def strings(n, seed, letters="abc", longest=7):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), rng.integers(4, longest + 1))) for _ in range(n)]


# ------------------------------------------------------------------------------------------------ pre-images


@pytest.mark.parametrize("method", ["candidates", "beam"])
def test_the_pre_image_of_a_training_string_is_itself(method):
    points = sorted(set(strings(15, 0)))
    decoder = PreImage(Grams(7), method=method).fit(points)
    assert list(decoder.decode(np.eye(len(points)))) == points


@pytest.mark.parametrize("method", ["candidates", "fixed_point"])
def test_the_pre_image_of_a_training_vector_is_itself(method):
    points = np.random.default_rng(0).normal(size=(12, 3))
    found = PreImage(Gaussian(0.5), method=method).fit(points).decode(np.eye(12))
    np.testing.assert_allclose(found, points, atol=1e-8)


def test_the_best_candidate_is_the_nearest_in_feature_space():
    rng = np.random.default_rng(0)
    points, candidates, coef = strings(10, 1), strings(30, 2), rng.normal(size=(5, 10))
    decoder = PreImage(Grams(2)).fit(points)
    distances = decoder.distances(coef, candidates)
    K, crossed = Grams(2)(points), Grams(2)(points, candidates)
    expected = np.array(
        [[c @ K @ c + Grams(2).pair(y, y) - 2 * c @ crossed[:, j] for j, y in enumerate(candidates)] for c in coef]
    )
    np.testing.assert_allclose(distances, expected, atol=1e-9)
    assert decoder.decode(coef, candidates) == [candidates[j] for j in expected.argmin(axis=1)]


def test_the_fixed_point_is_nearer_than_every_training_vector():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2))
    coef = rng.random((6, 40))
    coef /= coef.sum(axis=1, keepdims=True)
    decoder = PreImage(Gaussian(0.2), method="fixed_point").fit(points)
    found = decoder.decode(coef)
    for t in range(6):
        assert (
            decoder.distances(coef[t : t + 1], found[t : t + 1]).min()
            < decoder.distances(coef[t : t + 1], points).min()
        )
        # a stationary point: no small step helps
        for step in 1e-3 * rng.normal(size=(20, 2)):
            moved = decoder.distances(coef[t : t + 1], found[t : t + 1] + step).min()
            assert moved >= decoder.distances(coef[t : t + 1], found[t : t + 1]).min() - 1e-12


def test_the_search_finds_strings_it_was_not_given():
    points = strings(60, 0, longest=6)
    kernel = Grams(3)
    unseen = sorted(set(strings(30, 5, longest=6)) - set(points))[:15]
    # The target is φ(y) of a string that is not there, as far as the strings that are there span it.
    coef = np.linalg.lstsq(kernel(points), kernel(points, unseen), rcond=None)[0].T
    decoder = PreImage(kernel, method="beam").fit(points)
    found = decoder.decode(coef)
    for t, (y, s) in enumerate(zip(unseen, found, strict=True)):
        near = decoder.distances(coef[t : t + 1], [y, s])[0]
        assert near[1] <= near[0] + 1e-9  # as near as the right one, or nearer
    assert np.mean([a == b for a, b in zip(found, unseen, strict=True)]) > 0.8


def test_a_callable_decodes_itself():
    decoder = PreImage(Linear(), method=lambda kernel, points, coef: float(coef @ np.ravel(points))).fit([[1.0], [3.0]])
    assert decoder.decode([[1.0, 1.0], [0.0, 2.0]]) == [4.0, 6.0]


@pytest.mark.parametrize(
    ("decoder", "points", "message"),
    [
        (PreImage("x"), ["a"], "kernel must be a Kernel"),
        (PreImage(Linear(), "inverse"), [[1.0]], "method must be one of"),
        (PreImage(Linear(), "fixed_point"), [[1.0]], "for Gaussian kernels"),
        (PreImage(Grams(2), "beam", alphabet=["ab"]), ["ab"], "single characters"),
        (PreImage(Linear(), "beam"), [[1.0]], "points must be strings"),
        (PreImage(Grams(2)), [], "at least 1 objects"),
    ],
)
def test_bad_decoders_are_named(decoder, points, message):
    with pytest.raises(ValueError, match=message):
        decoder.fit(points)


@pytest.mark.parametrize("coef", [[1.0, 2.0], [[1.0]], [[np.nan, 1.0]]])
def test_bad_coefficients_are_named(coef):
    with pytest.raises(ValueError, match="coef must"):
        PreImage(Grams(1)).fit(["a", "b"]).decode(coef)


# ------------------------------------------------------------------------------------------------ dependency


def test_strings_are_reversed_where_the_nearest_training_output_never_is_right():
    X = strings(220, 0)
    Y = [x[::-1] for x in X]
    unseen = sorted(set(strings(60, 9)) - set(X) - set(Y))[:30]
    truth = [x[::-1] for x in unseen]
    kernel = Grams(3)
    model = KernelDependencyEstimation(kernel, kernel, alpha=1e-6, pre_image="beam").fit(X, Y)
    found = model.predict(unseen)
    nearest = KernelDependencyEstimation(kernel, kernel, alpha=1e-6).fit(X, Y).predict(unseen)
    right = np.mean([a == b for a, b in zip(found, truth, strict=True)])
    baseline = np.mean([a == b for a, b in zip(nearest, truth, strict=True)])
    assert right >= baseline + 0.7  # the stated margin, in the share of strings that are exactly right
    among_all = model.predict(unseen, candidates=[*Y, *truth])
    assert np.mean([a == b for a, b in zip(among_all, truth, strict=True)]) > 0.8


def test_label_sets_are_found_among_all_subsets():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(5, 4))
    X = rng.normal(size=(150, 5))
    Y = (X @ W > 0).astype(float)
    subsets = np.array(list(product([0.0, 1.0], repeat=4)))
    train, test = slice(0, 100), slice(100, 150)
    model = KernelDependencyEstimation(Gaussian(0.05), Linear(), alpha=1e-2).fit(X[train], Y[train])
    right = (model.predict(X[test], candidates=subsets) == Y[test]).all(axis=1).mean()
    majority = (Y[test] == np.round(Y[train].mean(axis=0))).all(axis=1).mean()
    assert right > majority + 0.3


def test_all_components_and_no_ridge_reproduce_the_training_outputs():
    X = sorted(set(strings(30, 0)))[:25]
    Y = strings(25, 1)
    model = KernelDependencyEstimation(Grams(7), Grams(3), alpha=1e-12).fit(X, Y)
    assert model.predict(X) == Y
    few = KernelDependencyEstimation(Grams(7), Grams(3), n_components=2).fit(X, Y)
    assert few.predict_coordinates(X).shape == (25, 2)


def test_coordinates_are_those_of_a_ridge_regression():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    model = KernelDependencyEstimation(Linear(), Linear(), alpha=0.1).fit(X, Y)
    U, s, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    ridge = 0.1 * np.square(X).sum() / 20
    expected = X @ np.linalg.solve(X.T @ X + ridge * np.eye(3), X.T @ (U * s))
    np.testing.assert_allclose(np.abs(model.predict_coordinates(X)), np.abs(expected), atol=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, "alpha must be"),
        ({"input_kernel": None}, "input_kernel must be a Kernel"),
        ({"output_kernel": None}, "output_kernel must be a Kernel"),
        ({"n_components": 0}, "n_components must be"),
        ({"pre_image": "magic"}, "method must be one of"),
        ({"pre_image": PreImage(Linear())}, "must have the output kernel"),
    ],
)
def test_bad_parameters_are_named(change, message):
    model = KernelDependencyEstimation(Grams(2), Grams(2)).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(strings(6, 0), strings(6, 1))


def test_inputs_and_outputs_must_be_equally_many():
    with pytest.raises(ValueError, match="equally many objects, got 6 and 5"):
        KernelDependencyEstimation(Grams(2), Grams(2)).fit(strings(6, 0), strings(5, 1))
