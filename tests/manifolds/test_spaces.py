"""Manifolds: points stay on them, tangent vectors are tangent, exp and log undo each other."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from mercer.manifolds import SE, SO, Oblique, Stiefel
from mercer.manifolds.spaces import _series

SPACES = [
    Oblique(4, 3),
    Oblique(3),
    Stiefel(5, 2),
    Stiefel(4, 4),
    Stiefel(4, 1),
    SO(2),
    SO(3),
    SO(5),
    SE(2),
    SE(3),
    SE(4),
]


@pytest.fixture(params=SPACES, ids=repr)
def space(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_random_points_and_moves_stay_on_the_manifold(space, rng):
    for _ in range(20):
        x = space.random(rng)
        v = space.random_tangent(x, rng)
        for length in (1e-9, 0.3, 3.0, 30.0):
            assert space.residual(x) < 1e-12
            assert space.residual(space.retract(x, length * v)) < 1e-10
            assert space.residual(space.exp(x, length * v)) < 1e-10


def test_projection_is_orthogonal_and_gives_tangent_vectors(space, rng):
    x = space.random(rng)
    a = rng.standard_normal(space.shape)
    v = space.project(x, a)
    np.testing.assert_allclose(space.project(x, v), v, atol=1e-13)
    for _ in range(5):
        u = space.random_tangent(x, rng)
        if not isinstance(space, SE):  # whose last row is no direction, and whose metric has a unit of length
            assert abs(np.vdot(a - v, u)) < 1e-12
    # a tangent vector is the velocity of a curve on the manifold
    h = 1e-5
    drift = space.residual(x + h * v / max(1, space.norm(x, v)))
    assert drift < 1e-9


def test_tangent_spaces_have_the_stated_dimension(space, rng):
    x = space.random(rng)
    n = space.shape[0] * space.shape[1]
    images = [space.project(x, e.reshape(space.shape)).ravel() for e in np.eye(n)]
    assert np.linalg.matrix_rank(np.array(images)) == space.dimension


@pytest.mark.parametrize("move", ["retract", "exp"])
def test_moves_agree_with_straight_lines_to_first_order(space, move, rng):
    x = space.random(rng)
    v = space.random_tangent(x, rng)
    for h in (1e-3, 1e-4):
        assert np.abs(getattr(space, move)(x, h * v) - x - h * v).max() < 2 * h * h


def test_retraction_and_exp_agree_to_second_order(space, rng):
    x = space.random(rng)
    v = space.random_tangent(x, rng)
    h = 1e-3
    difference = space.retract(x, h * v) - space.exp(x, h * v)
    if isinstance(space, SE):
        difference[:, -1] = 0  # the group's curves turn the translation
    assert np.abs(difference).max() < 5 * h**3


@pytest.mark.parametrize("space", [s for s in SPACES if not isinstance(s, Stiefel)], ids=repr)
def test_log_undoes_exp(space, rng):
    for _ in range(30):
        x = space.random(rng)
        v = space.random_tangent(x, rng) * rng.choice([1e-8, 1e-3, 0.1, 1.0, 2.0])
        np.testing.assert_allclose(space.log(x, space.exp(x, v)), v, atol=1e-12)
        y = space.random(rng)
        np.testing.assert_allclose(space.exp(x, space.log(x, y)), y, atol=1e-12)


def test_stiefel_geodesics_have_constant_speed(rng):
    space = Stiefel(5, 2)
    x = space.random(rng)
    v = space.random_tangent(x, rng)
    points = [space.exp(x, t * v) for t in np.linspace(0, 1, 1001)]
    lengths = [np.linalg.norm(b - a) for a, b in pairwise(points)]
    np.testing.assert_allclose(lengths, 1e-3, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="closed form"):
        space.log(x, points[5])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_group_exponential_equals_a_power_series(n, rng):
    group = SE(n)
    for scale in (1e-7, 1e-3, 0.5):
        xi = scale * rng.standard_normal(group.dimension)
        generator = np.zeros((n + 1, n + 1))
        generator[:n, :n], generator[:n, n] = SO(n).hat(xi[:-n]), xi[-n:]
        term = total = np.eye(n + 1)
        for k in range(1, 60):
            term = term @ generator / k
            total = total + term
        np.testing.assert_allclose(group.Exp(xi), total, atol=1e-13)
        np.testing.assert_allclose(group.Log(group.Exp(xi)), xi, atol=1e-12)
        np.testing.assert_allclose(SO(n).vee(SO(n).hat(xi[:-n])), xi[:-n])


@pytest.mark.parametrize("angle", [0.0, 1e-5, 0.0099])
def test_coefficients_near_no_rotation_have_all_their_digits(angle):
    powers = [(-1) ** k * angle ** (2 * k) for k in range(5)]
    expected = [sum(p / math.factorial(2 * k + n) for k, p in enumerate(powers)) for n in (1, 2, 3)]
    np.testing.assert_allclose(_series(angle), expected, rtol=1e-14)


@pytest.mark.parametrize("angle", [0, 1e-12, 1e-7, 1e-4, 0.009, 0.011, 1, 2.5, np.pi - 1e-3, np.pi - 1e-8, np.pi])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_log_of_rotations_by_any_angle(n, angle, rng):
    frame = SO(n).random(rng)
    plane = np.outer(frame[:, 1], frame[:, 0])
    w = SO(n).vee(angle * (plane - plane.T))
    rotation = SO(n).Exp(w)
    np.testing.assert_allclose(SO(n).Exp(SO(n).Log(rotation)), rotation, atol=1e-12)
    assert np.linalg.norm(SO(n).Log(rotation)) == pytest.approx(np.linalg.norm(w), abs=1e-7)


def test_two_half_turns_have_a_logarithm():
    rotation = np.diag([-1.0, -1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(SO(5).Exp(SO(5).Log(rotation)), rotation, atol=1e-12)


def test_hat_is_the_cross_product(rng):
    w, x = rng.standard_normal((2, 3))
    np.testing.assert_allclose(SO(3).hat(w) @ x, np.cross(w, x))


def test_motions_compose_and_invert(rng):
    group = SE(3)
    a, b = group.random(rng), group.random(rng)
    assert group.residual(a @ b) < 1e-12
    np.testing.assert_allclose(group.inverse(a) @ a, np.eye(4), atol=1e-14)


def test_nearest_is_nearer_than_other_points(space, rng):
    x = space.random(rng)
    a = x + 0.1 * rng.standard_normal(space.shape)
    near = space.nearest(a)

    def far(y):
        return np.linalg.norm((y - a)[:-1] if isinstance(space, SE) else y - a)

    for _ in range(20):
        assert far(near) <= far(space.retract(near, 0.05 * space.random_tangent(near, rng))) + 1e-12


def test_wrong_points_and_sizes_are_named():
    with pytest.raises(ValueError, match="x0 must have shape"):
        SO(3).check("x0", np.eye(4))
    with pytest.raises(ValueError, match="NaN"):
        SO(3).check("x0", np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match=r"not on SO\(3\)"):
        SO(3).check("x0", -np.eye(3))
    with pytest.raises(ValueError, match="m must be at most n"):
        Stiefel(2, 3)
    with pytest.raises(ValueError, match="n must be an integer of at least 2"):
        SO(1)
    with pytest.raises(ValueError, match="length"):
        SE(3, length=0)
    with pytest.raises(ValueError, match="3 coordinates"):
        SO(3).Exp([1, 2])
    with pytest.raises(ValueError, match="opposite columns"):
        Oblique(2).log(np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]]))
    with pytest.raises(ValueError, match="a column is 0"):
        Oblique(2).nearest(np.zeros((2, 1)))
