"""Canonical correlations: planted ones are found, the printed problems are solved, held-out objects decide."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_linnerud

from mercer.kernel_methods import CCA, KernelCCA, MultiSetCCA, choose_regularization
from mercer.kernel_methods._permutations import centered
from mercer.kernels import Constant, Gaussian, Linear
from reference.dependence import (
    Grams,
    agreement_by_search,
    cca_by_svd,
    kernel_cca_by_eigenvalues,
    lemma_sides,
)


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
    plain = CCA(n_components=2, alpha=ridge).fit(X, Y)
    kernel = KernelCCA(Linear(), n_components=2, alpha=ridge).fit([X, Y])
    features = KernelCCA(Linear(), 2, ridge, method="features", n_features=20, random_state=0).fit([X, Y])
    others = planted(30, seed=1)
    for model in (kernel, features):
        np.testing.assert_allclose(model.correlations_, plain.correlations_, atol=1e-8)
        for ours, theirs in zip(model.transform(others), plain.transform(*others), strict=True):
            np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_the_printed_eigenproblem_is_solved():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(15, 1))
    views = [z + 0.5 * rng.normal(size=(15, 2)) for _ in range(2)]
    k = Gaussian(0.3)
    expected = kernel_cca_by_eigenvalues(*(centered(k(X)) for X in views), 0.7)
    correlations = KernelCCA(k, n_components=3, alpha=0.7).fit(views).correlations_
    np.testing.assert_allclose(correlations, expected[:3], atol=1e-5)


def test_without_regularization_kernels_of_full_rank_correlate_with_anything():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(50, 2)), rng.normal(size=(50, 2))]
    assert KernelCCA(Gaussian(2.0), alpha=0.0).fit(views).correlations_[0] > 0.999
    assert KernelCCA(Gaussian(2.0), alpha=1.0).fit(views).correlations_[0] < 0.8


@pytest.mark.parametrize("method", ["exact", "features"])
def test_held_out_correlation_tells_dependent_views_from_independent_ones(method):
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
    model = KernelCCA(Gaussian(0.5), alpha=20.0, method=method, n_features=50, random_state=0)
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


def three_views(seed, n=40, shared=0.7, d=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    return [shared * z + rng.normal(size=(n, d)) for _ in range(3)]


@pytest.mark.parametrize(("ridge", "p", "shared"), [(0.0, 1, 0.7), (0.0, 2, 0.0), (3.0, 1, 0.0), (3.0, 2, 0.7)])
def test_no_search_finds_views_that_agree_more_under_the_constraint_of_each_view(ridge, p, shared):
    views = three_views(p, shared=shared)
    model = MultiSetCCA(p, ridge).fit(views)
    largest = agreement_by_search([X - X.mean(axis=0) for X in views], ridge, p, starts=4)
    assert 6 * model.correlations_.sum() == pytest.approx(largest, abs=1e-6)
    kernel = KernelCCA(Linear(), p, ridge).fit(views)
    np.testing.assert_allclose(kernel.correlations_, model.correlations_, atol=1e-8)


@pytest.mark.parametrize("p", [1, 3])
def test_projections_of_each_of_several_views_have_variance_one_and_are_uncorrelated(p):
    views = three_views(0)
    views[2] = views[2] * [1.0, 0.1, 10.0]
    views.append(np.random.default_rng(5).normal(size=(40, 5)))  # a view that shares nothing with the others
    model = MultiSetCCA(p).fit(views)
    projections = model.transform(views)
    for P in projections:
        np.testing.assert_allclose(np.cov(P.T, bias=True).reshape(p, p), np.eye(p), atol=1e-10)
    pairs = [P.T @ Q / 40 for P in projections for Q in projections if P is not Q]
    np.testing.assert_allclose(np.mean(pairs, axis=0), np.diag(model.correlations_), atol=1e-8)
    assert model.score(views) == pytest.approx(model.correlations_.mean(), abs=1e-10)


# ------------------------------------------------------------------------------------------------ units


CHANGES = {
    "large column": lambda X: X * [1e7, 1.0, 1.0, 1.0],
    "small column": lambda X: X * [1e-7, 1.0, 1.0, 1.0],
    "all sizes": lambda X: X * [1e-7, 1e7, 1e-3, 1e150],
    "tiny": lambda X: X * 1e-160,
    "shift": lambda X: X + 1e6,
    "permuted": lambda X: X[:, ::-1],
    "constant column": lambda X: np.hstack([X, np.full((len(X), 1), 1e6 / 3)]),
    "repeated column": lambda X: np.hstack([X, X[:, :1] + 1e6]),
    "repeated rows": lambda X: np.vstack([X, X]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", [CCA(2), MultiSetCCA(2)], ids=["CCA", "MultiSetCCA"])
def test_units_of_columns_change_neither_correlations_nor_projections(model, change):
    X, Y = planted(200)
    twice = change == "repeated rows"

    def fitted(X):
        views = [X, np.vstack([Y, Y]) if twice and len(X) > len(Y) else Y]
        if isinstance(model, CCA):
            return (here := clone(model).fit(*views)), here.transform(*views)
        views.append(views[1][:, 1:] ** 3)
        return (here := clone(model).fit(views)), here.transform(views)

    plain, before = fitted(X)
    changed, after = fitted(CHANGES[change](X))
    np.testing.assert_allclose(changed.correlations_, plain.correlations_, atol=1e-8)
    if isinstance(model, CCA):
        np.testing.assert_allclose(plain.correlations_, cca_by_svd(X, Y)[:2], atol=1e-10)
    for P, Q in zip(before, after, strict=True):
        sign = np.sign((P * Q[: len(P)]).sum(axis=0)) if change == "permuted" else 1.0
        np.testing.assert_allclose(sign * Q[: len(P)], P, atol=1e-6)


@pytest.mark.parametrize("ridge", [1e-3, 10.0])
def test_a_ridge_is_added_to_the_sums_of_squares_whatever_the_size_of_a_column(ridge):
    X, Y = (Z[:, :2] for Z in planted(100))
    X = X * [1e7, 1.0]
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    scale = np.diag([1e-7, 1.0])  # the same problem in weights of columns of one size
    L = np.linalg.cholesky(scale @ (A.T @ A + ridge * np.eye(2)) @ scale)
    R = np.linalg.cholesky(B.T @ B + ridge * np.eye(2))
    expected = np.linalg.svd(np.linalg.solve(L, scale @ A.T @ B) @ np.linalg.inv(R).T, compute_uv=False)
    np.testing.assert_allclose(CCA(2, ridge).fit(X, Y).correlations_, expected, atol=1e-9)


def test_a_ridge_on_columns_of_less_rank_is_that_of_their_directions():
    X, Y = planted(50)
    doubled = np.hstack([X, X]) / np.sqrt(2)  # the same Gram matrix
    np.testing.assert_allclose(
        CCA(3, 2.0).fit(doubled, Y).correlations_, CCA(3, 2.0).fit(X, Y).correlations_, atol=1e-10
    )
    with pytest.raises(ValueError, match="n_components must be at most 4, the rank"):
        CCA(5).fit(doubled, np.hstack([Y, Y**2]))


def test_a_failed_fit_leaves_the_old_model():
    X, Y = planted(50)
    views = [X, Y, X**2]
    for model in (MultiSetCCA(2), KernelCCA(Linear(), 2)):
        before = model.fit(views).transform(views)
        with pytest.raises(ValueError, match="n_components"):
            model.set_params(n_components=9).fit([X[:20], Y[:20], X[:20]])
        for P, Q in zip(before, model.transform(views), strict=True):
            np.testing.assert_array_equal(P, Q)


def test_strings_and_numbers():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ab"), 12, p=[p, 1 - p])) for p in rng.uniform(0.1, 0.9, 120)]
    share = np.array([[s.count("ab")] for s in strings], float)
    model = KernelCCA([Grams(2), Linear()], alpha=5.0).fit([strings[:80], share[:80]])
    assert model.score([strings[80:], share[80:]]) > 0.9


def test_regularization_is_chosen_on_held_out_objects():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 1))
    views = [x, x**2 + 0.1 * rng.normal(size=x.shape)]
    model = KernelCCA(Gaussian(2.0))
    best, scores = choose_regularization(model, views, [1e-8, 1.0, 1e4], cv=4, random_state=0)
    assert best == [1e-8, 1.0, 1e4][int(scores.argmax())]
    assert scores[0] < scores.max()
    assert model.alpha == 1.0


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("model", "views", "message"),
    [
        (KernelCCA("rbf"), [np.zeros((5, 1))] * 2, "kernel must be a Kernel|one for each"),
        (KernelCCA([Linear()]), [np.zeros((5, 1))] * 2, "one for each of the 2 views, got 1"),
        (KernelCCA(Linear()), [np.eye(5), np.eye(4)], r"equally many objects, got \[5, 4\]"),
        (KernelCCA(Linear()), [np.eye(5)], "at least two collections"),
        (KernelCCA(Linear()), np.eye(5), "at least two collections"),
        (KernelCCA(Linear(), alpha=-1.0), [np.eye(5)] * 2, "alpha must be"),
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
