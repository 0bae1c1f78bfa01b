"""Canonical correlations: planted ones are found, the printed problems are solved, held-out objects decide."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_linnerud

from mercer.kernel_methods import CCA, KernelCCA, MultiSetCCA, choose_regularization
from mercer.kernel_methods._permutations import centered
from mercer.kernels import Constant, Gaussian, Linear
from reference.dependence import Grams, cca_by_svd, kernel_cca_by_eigenvalues, lemma_sides


def planted(n, correlations=(0.9, 0.5), noise=2, seed=0):
    """Two views that share Gaussians with these correlations, mixed by random matrices."""
    rng = np.random.default_rng(seed)
    p = len(correlations)
    X, Y = rng.normal(size=(n, p + noise)), rng.normal(size=(n, p + noise))
    for i, rho in enumerate(correlations):
        Y[:, i] = rho * X[:, i] + np.sqrt(1 - rho**2) * Y[:, i]
    return X @ rng.normal(size=(p + noise, p + noise)), Y @ rng.normal(size=(p + noise, p + noise))


def test_planted_correlations_are_found():
    X, Y = planted(5000)
    cca = CCA(n_components=2).fit(X, Y)
    np.testing.assert_allclose(cca.correlations_, [0.9, 0.5], atol=0.02)
    assert CCA(n_components=2).fit(X[:2500], Y[:2500]).score(X[2500:], Y[2500:]) == pytest.approx(0.7, abs=0.03)


def test_linnerud_equals_the_form_by_singular_values():
    X, Y = load_linnerud(return_X_y=True)
    np.testing.assert_allclose(CCA(n_components=3).fit(X, Y).correlations_, cca_by_svd(X, Y), atol=1e-8)


def test_projections_have_variance_one_and_are_uncorrelated_but_for_their_partners():
    X, Y = planted(400)
    cca = CCA(n_components=3).fit(X, Y)
    left, right = cca.transform(X, Y)
    both = np.cov(np.hstack([left, right]).T, bias=True)
    np.testing.assert_allclose(both[:3, :3], np.eye(3), atol=1e-8)
    np.testing.assert_allclose(both[3:, 3:], np.eye(3), atol=1e-8)
    np.testing.assert_allclose(both[:3, 3:], np.diag(cca.correlations_), atol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_linear_kernels_give_the_correlations_of_vectors(ridge):
    X, Y = planted(60)
    plain = CCA(n_components=2, regularization=ridge).fit(X, Y)
    kernel = KernelCCA(Linear(), n_components=2, regularization=ridge).fit([X, Y])
    features = KernelCCA(Linear(), 2, ridge, method="features", n_features=20, random_state=0).fit([X, Y])
    others = planted(30, seed=1)
    for model in (kernel, features):
        np.testing.assert_allclose(model.correlations_, plain.correlations_, atol=1e-8)
        for ours, theirs in zip(model.transform(others), plain.transform(*others), strict=True):
            np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


@pytest.mark.parametrize("views", [2, 3])
def test_the_printed_eigenproblem_is_solved(views):
    rng = np.random.default_rng(views)
    z = rng.normal(size=(15, 1))
    objects = [z + 0.5 * rng.normal(size=(15, 2)) for _ in range(views)]
    k = Gaussian(0.3)
    expected = kernel_cca_by_eigenvalues([centered(k(X)) for X in objects], 0.7)
    found = KernelCCA(k, n_components=3, regularization=0.7).fit(objects).correlations_
    np.testing.assert_allclose(found, expected[:3], atol=1e-5)


def test_without_regularization_kernels_of_full_rank_correlate_with_anything():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(50, 2)), rng.normal(size=(50, 2))]
    assert KernelCCA(Gaussian(2.0), regularization=0.0).fit(views).correlations_[0] > 0.999
    assert KernelCCA(Gaussian(2.0), regularization=1.0).fit(views).correlations_[0] < 0.8


@pytest.mark.parametrize("method", ["exact", "features"])
def test_held_out_correlation_tells_dependent_views_from_independent_ones(method):
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
    model = KernelCCA(Gaussian(0.5), regularization=20.0, method=method, n_features=50, random_state=0)
    independent = clone(model).fit([x[:200], other[:200]]).score([x[200:], other[200:]])
    dependent = clone(model).fit([x[:200], x[:200] ** 2]).score([x[200:], x[200:] ** 2])
    assert independent < 0.2
    assert dependent > 0.8


def test_more_views_find_what_all_of_them_share():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 1))
    views = [np.hstack([z + 0.2 * rng.normal(size=z.shape), rng.normal(size=(200, 2))]) for _ in range(4)]
    plain = MultiSetCCA(n_components=2).fit([v[:100] for v in views])
    assert plain.score([v[100:] for v in views]) == pytest.approx(
        np.mean([plain._held_out([v[100:] for v in views])]), abs=1e-12
    )
    first = plain._held_out([v[100:] for v in views])
    assert first[0] > 0.9
    assert abs(first[1]) < 0.3
    for P in plain.transform([v[100:] for v in views]):
        assert abs(np.corrcoef(P[:, 0], z[100:, 0])[0, 1]) > 0.95


@pytest.mark.parametrize("J", [2, 3, 7])
def test_pairwise_disagreement_is_2J_times_that_with_the_mean(J):
    rng = np.random.default_rng(J)
    pairs, to_mean = lemma_sides([rng.normal(size=(20, 3)) for _ in range(J)])
    assert pairs / to_mean == pytest.approx(2 * J, rel=1e-12)


def test_multi_set_projections_disagree_less_than_any_others_of_their_scale():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(80, 1))
    views = [z + rng.normal(size=(80, 3)) for _ in range(3)]
    views = [v - v.mean(axis=0) for v in views]
    best, _ = lemma_sides(MultiSetCCA().fit(views).transform(views))
    for _ in range(200):
        others = [v @ rng.normal(size=(3, 1)) for v in views]
        scale = np.sqrt(3 * 80 / sum(np.square(P).sum() for P in others))
        assert best <= lemma_sides([scale * P for P in others])[0] + 1e-9


def test_strings_and_numbers():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ab"), 12, p=[p, 1 - p])) for p in rng.uniform(0.1, 0.9, 120)]
    share = np.array([[s.count("ab")] for s in strings], float)
    model = KernelCCA([Grams(2), Linear()], regularization=5.0).fit([strings[:80], share[:80]])
    assert model.score([strings[80:], share[80:]]) > 0.9


def test_regularization_is_chosen_on_held_out_objects():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 1))
    views = [x, x**2 + 0.1 * rng.normal(size=x.shape)]
    model = KernelCCA(Gaussian(2.0))
    best, scores = choose_regularization(model, views, [1e-8, 1.0, 1e4], cv=4, random_state=0)
    assert best == [1e-8, 1.0, 1e4][int(scores.argmax())]
    assert scores[0] < scores.max()
    assert model.regularization == 1.0


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("model", "views", "message"),
    [
        (KernelCCA("rbf"), [np.zeros((5, 1))] * 2, "kernel must be a Kernel|one for each"),
        (KernelCCA([Linear()]), [np.zeros((5, 1))] * 2, "one for each of the 2 views, got 1"),
        (KernelCCA(Linear()), [np.eye(5), np.eye(4)], r"equally many objects, got \[5, 4\]"),
        (KernelCCA(Linear()), [np.eye(5)], "at least two collections"),
        (KernelCCA(Linear()), np.eye(5), "at least two collections"),
        (KernelCCA(Linear(), regularization=-1.0), [np.eye(5)] * 2, "regularization must be"),
        (KernelCCA(Linear(), n_components=9), [np.eye(5)] * 2, "n_components must be at most 4"),
        (KernelCCA(Constant(1.0)), [np.eye(5)] * 2, "constant on"),
        (KernelCCA(Linear(), method="x"), [np.eye(5)] * 2, "method must be one of"),
        (MultiSetCCA(), [np.eye(5), np.full((5, 2), np.nan)], r"views\[1\] contains NaN"),
    ],
)
def test_bad_input_is_named(model, views, message):
    with pytest.raises(ValueError, match=message):
        model.fit(views)


def test_views_of_another_shape_are_refused():
    X, Y = planted(30)
    cca = CCA().fit(X, Y)
    with pytest.raises(ValueError, match=r"views\[1\] must have 4 variables, got 3"):
        cca.transform(X, Y[:, :3])
    with pytest.raises(ValueError, match="two views"):
        CCA().fit(X)
    with pytest.raises(ValueError, match="cv must leave"):
        choose_regularization(CCA(), [X, Y], [1.0], cv=16)
