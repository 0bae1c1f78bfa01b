"""Minima on manifolds against closed forms: eigenvectors, Procrustes, means of rotations."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.manifolds import SE, SO, Oblique, Stiefel, check_gradient, minimize

METHODS = ["trust-region", "conjugate-gradient", "gradient"]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("method", METHODS)
def test_stiefel_finds_the_leading_eigenvectors(method, rng):
    a = rng.standard_normal((12, 12))
    a = a @ a.T
    values, vectors = np.linalg.eigh(a)
    space = Stiefel(12, 3)
    f, g = (lambda x: -np.trace(x.T @ a @ x)), (lambda x: -2 * a @ x)
    assert check_gradient(f, g, space) < 1e-8
    result = minimize(f, g, space, method=method, random_state=0, tol=1e-8, max_iter=3000)
    assert result.converged
    assert result.value == pytest.approx(-values[-3:].sum(), rel=1e-10)
    cosines = np.linalg.svd(vectors[:, -3:].T @ result.x, compute_uv=False)
    assert np.arccos(np.minimum(cosines, 1)).max() < 1e-6
    assert space.residual(result.x) < 1e-10


def test_the_leading_eigenvector_on_the_sphere(rng):
    a = np.diag([3.0, 2.0, 1.0, 0.5])
    result = minimize(lambda x: -np.sum(x * (a @ x)), lambda x: -2 * a @ x, Oblique(4), random_state=1, tol=1e-9)
    assert abs(result.x[0, 0]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_motions_equal_the_procrustes_solution(method, n, rng):
    x, y = rng.standard_normal((2, 30, n))
    space = SE(n)

    def f(p):
        return 0.5 * np.sum((x @ p[:-1, :-1].T + p[:-1, -1] - y) ** 2)

    def g(p):
        r = x @ p[:-1, :-1].T + p[:-1, -1] - y
        out = np.zeros(space.shape)
        out[:-1, :-1], out[:-1, -1] = r.T @ x, r.sum(axis=0)
        return out

    assert check_gradient(f, g, space) < 1e-7
    rotation = SO(n).nearest((y - y.mean(0)).T @ (x - x.mean(0)))
    start = space.point(SO(n).exp(rotation, 0.5 * SO(n).random_tangent(rotation, 0)), np.zeros(n))
    result = minimize(f, g, space, start, method=method, tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(result.x[:-1, :-1], rotation, atol=1e-6)
    np.testing.assert_allclose(result.x[:-1, -1], y.mean(0) - rotation @ x.mean(0), atol=1e-6)
    assert result.history == sorted(result.history, reverse=True) or method == "gradient"


def test_a_given_hessian_gives_the_same_minimum(rng):
    a = np.diag([5.0, 3.0, 1.0])
    space = Stiefel(3, 1)
    f, g = (lambda x: -0.5 * np.sum(x * (a @ x))), (lambda x: -a @ x)

    def hessian(x, d):
        return space.project(x, -a @ d + d * np.sum(x * (a @ x)))

    first = minimize(f, g, space, random_state=0, hessian=hessian, tol=1e-10)
    second = minimize(f, g, space, random_state=0, tol=1e-10)
    assert first.value == pytest.approx(second.value, rel=1e-12)


def test_the_length_unit_of_motions_changes_the_path_and_not_the_minimum():
    x = np.random.default_rng(0).standard_normal((50, 3)) * 1e3 + 5e3
    motion = SE(3).point(SO(3).Exp([0.3, -0.2, 0.4]), [100.0, 200.0, -300.0])
    y = x @ motion[:-1, :-1].T + motion[:-1, -1]
    x, y = x - x.mean(0), y - y.mean(0)
    out = np.zeros((4, 4))

    def g(p):
        r = x @ p[:-1, :-1].T + p[:-1, -1] - y
        out[:-1, :-1], out[:-1, -1] = r.T @ x, r.sum(axis=0)
        return out

    for length in (1.0, 1e3):
        space = SE(3, length=length)
        f = lambda p: 0.5 * np.sum((x @ p[:-1, :-1].T + p[:-1, -1] - y) ** 2)  # noqa: E731
        assert check_gradient(f, g, space) < 1e-6
        result = minimize(f, g, space, np.eye(4), tol=1e-8)
        np.testing.assert_allclose(result.x[:-1, :-1], motion[:-1, :-1], atol=1e-6)


def test_a_wrong_gradient_is_found():
    assert check_gradient(lambda x: x[0, 0], lambda x: 2 * np.eye(3), SO(3)) > 0.1


def test_bad_calls_are_named():
    f, g = (lambda x: 0.0), (lambda x: np.zeros((3, 3)))
    with pytest.raises(ValueError, match="manifold must be"):
        minimize(f, g, 3)
    with pytest.raises(ValueError, match="method must be one of"):
        minimize(f, g, SO(3), method="newton")
    with pytest.raises(ValueError, match=r"gradient must return an array of shape \(3, 3\)"):
        minimize(f, lambda x: np.zeros(3), SO(3))
    with pytest.raises(ValueError, match="f must be finite"):
        minimize(lambda x: np.nan, g, SO(3))
    with pytest.raises(ValueError, match="NaN"):
        minimize(f, lambda x: np.full((3, 3), np.nan), SO(3))
    with pytest.raises(ValueError, match="not on SO"):
        minimize(f, g, SO(3), 2 * np.eye(3))


def test_too_few_iterations_are_said():
    a = np.diag(np.arange(1.0, 9.0))
    with pytest.warns(UserWarning, match="1 iterations were not enough"):
        result = minimize(
            lambda x: -np.sum(x * (a @ x)), lambda x: -2 * a @ x, Stiefel(8, 1), random_state=0, max_iter=1
        )
    assert not result.converged
    assert minimize(lambda x: 1.0, lambda x: np.zeros((3, 3)), SO(3)).converged  # a constant
