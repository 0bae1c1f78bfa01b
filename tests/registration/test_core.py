"""The compiled parts of registration against brute force: neighbours, normals, descriptors, ICP steps, matches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer import _core
from mercer.datasets import make_mug
from mercer.manifolds import SE, SO

core = _core.registration


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_neighbours_equal_brute_force(d, n, rng):
    points, queries = rng.standard_normal((n, d)).round(1), rng.standard_normal((50, d)).round(1)  # with equal points
    tree = core.CloudTree(points)
    squared = ((queries[:, None] - points) ** 2).sum(axis=2)
    distance, position = tree.nearest(queries, math.inf, 1)
    np.testing.assert_allclose(distance, squared.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(squared[np.arange(50), position], distance, atol=1e-12)
    k = min(n, 6)
    distances, positions = tree.k_nearest(queries, k, 2)
    np.testing.assert_allclose(distances, np.sort(squared, axis=1)[:, :k], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(squared, positions, axis=1), distances, atol=1e-12)
    assert all(len(set(row)) == k for row in positions)
    np.testing.assert_array_equal(tree.count(queries, 0.75, 1), (squared <= 0.75**2).sum(axis=1))
    distance, position = tree.nearest(queries, 0.01, 1)
    assert ((position < 0) == (squared.min(axis=1) > 0.01)).all()


def test_equal_points_make_one_leaf_and_an_empty_tree_answers(rng):
    tree = core.CloudTree(np.zeros((1000, 3)))
    assert tree.count(np.zeros((1, 3)), 1.0, 1)[0] == 1000
    assert core.CloudTree(np.zeros((0, 3))).nearest(np.zeros((2, 3)), math.inf, 1)[1].tolist() == [-1, -1]


@pytest.mark.parametrize("d", [2, 3])
def test_normals_are_the_direction_of_least_spread(d, rng):
    points = rng.standard_normal((200, d)) * ([3, 1, 0.5][:d])
    tree = core.CloudTree(points)
    normals, shares = tree.normals(15, None, 2)
    neighbours = points[tree.k_nearest(points, 15, 1)[1]]
    for k in range(200):
        values, vectors = np.linalg.eigh(np.cov(neighbours[k].T, bias=True))
        assert abs(vectors[:, 0] @ normals[k]) == pytest.approx(1, abs=1e-6)
        assert shares[k] == pytest.approx(values[0] / values.sum(), abs=1e-9)
        assert normals[k] @ (neighbours[k].mean(axis=0) - points[k]) >= -1e-12
    np.testing.assert_allclose(tree.normals(15, points, 1)[0], normals)


def test_descriptors_do_not_change_under_motions(rng):
    points = make_mug(400, random_state=0)
    motion = SE(3).random(rng)
    moved = np.ascontiguousarray(points @ motion[:3, :3].T + motion[:3, 3])
    first, second = (core.CloudTree(p) for p in (points, moved))
    normals = first.normals(12, None, 1)[0]
    a = first.descriptors(normals, 0.5, 1)
    b = second.descriptors(np.ascontiguousarray(normals @ motion[:3, :3].T), 0.5, 2)
    assert (np.abs(a - b).max(axis=1) < 0.05).mean() > 0.95  # values on the edge of a bin may fall to either side
    np.testing.assert_allclose(a.reshape(-1, 3, 11).sum(axis=2), 1, atol=1e-5)


def test_fit_counts_points_near_the_tree(rng):
    target, points = rng.standard_normal((100, 3)), rng.standard_normal((60, 3))
    poses = np.stack([np.eye(4), SE(3).random(rng)])
    scores, counts = core.CloudTree(target).fit(points, poses, 0.8, 1)
    for pose, score, count in zip(poses, scores, counts, strict=True):
        squared = ((points @ pose[:3, :3].T + pose[:3, 3])[:, None] - target[None]) ** 2
        least = squared.sum(axis=2).min(axis=1)
        assert count == (least <= 0.64).sum()
        assert score == pytest.approx(np.maximum(0, 1 - least / 0.64).sum())


def icp(
    target, source, kind, start=None, *, normals=(None, None), weights=None, max_iter=1, keep=1.0, limit=1e9, threads=1
):
    start = np.eye(source.shape[1] + 1) if start is None else start
    tree = core.CloudTree(target)
    return core.icp(
        tree, normals[1], source, normals[0], weights, start, kind, limit, keep, 1e-3, max_iter, 1e-12, 1e-12, threads
    )


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_fixed_point_of_icp_has_no_gradient(d, kind, rng):
    """At convergence the objective, with its pairs and weights as they are, is stationary in the motion."""
    target = make_mug(300, random_state=1)[:, :d].copy()
    source = np.ascontiguousarray(
        (target + 0.02 * rng.standard_normal(target.shape)) @ SO(d).Exp(0.05 * np.ones(d * (d - 1) // 2))
    )
    normals = [core.CloudTree(p).normals(12, None, 1)[0] for p in (source, target)]
    weights = rng.random(len(source))
    pose, _, _, _, used, value = icp(target, source, kind, normals=normals, weights=weights, max_iter=200)
    assert used == len(source)

    moved = source @ pose[:d, :d].T + pose[:d, d]
    partner = core.CloudTree(target).nearest(moved, math.inf, 1)[1]
    nq, nx = normals[1][partner], normals[0] @ pose[:d, :d].T
    eye = np.broadcast_to(np.eye(d), (len(source), d, d))
    outer = lambda n: n[:, :, None] * n[:, None, :]  # noqa: E731
    M = [eye, outer(nq), np.linalg.inv(2 * eye - 0.999 * (outer(nq) + outer(nx)))][kind]

    def objective(xi):
        p = SE(d).Exp(xi)
        e = moved @ p[:d, :d].T + p[:d, d] - target[partner]
        return np.einsum("n,ni,nij,nj", weights, e, M, e)

    assert objective(np.zeros(SE(d).dimension)) == pytest.approx(value, rel=1e-9)
    h = 1e-5
    slopes = [(objective(h * e) - objective(-h * e)) / (2 * h) for e in np.eye(SE(d).dimension)]
    assert np.abs(slopes).max() < 1e-5 * weights.sum()


def test_one_step_of_points_equals_least_squares(rng):
    """For small angles a Gauss-Newton step over given pairs is the Procrustes motion."""
    target = rng.standard_normal((200, 3)) * 5
    motion = SE(3).Exp(1e-5 * rng.standard_normal(6))
    source = np.ascontiguousarray((target - motion[:3, 3]) @ motion[:3, :3])
    pose = icp(target, source, 0)[0]
    np.testing.assert_allclose(pose, motion, atol=1e-9)


def test_trimming_and_limits_leave_far_pairs_out(rng):
    target = rng.standard_normal((100, 3)) * 5
    source = target.copy()
    source[:20] += 0.3  # a fifth of the points is off
    pose = icp(target, source, 0, max_iter=50, keep=0.8)[0]
    np.testing.assert_allclose(pose, np.eye(4), atol=1e-6)
    pose, *_, used, _ = icp(target, source, 0, max_iter=50, limit=0.1)
    assert used == 80
    assert np.abs(icp(target, source, 0, max_iter=50)[0] - np.eye(4)).max() > 1e-3


def test_results_do_not_depend_on_threads(rng):
    target = make_mug(3000, random_state=0)
    source = np.ascontiguousarray(make_mug(3000, random_state=1) @ SO(3).Exp([0.1, 0.0, 0.1]))
    normals = [core.CloudTree(p).normals(12, None, 1)[0] for p in (source, target)]
    one, four = (icp(target, source, 2, normals=normals, max_iter=20, threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one[0], four[0])


def test_poses_from_matches_that_are_mostly_wrong(rng):
    motion = SE(3).random(rng)
    a = rng.standard_normal((300, 3))
    b = rng.standard_normal((300, 3)) * 2
    b[:30] = a[:30] @ motion[:3, :3].T + motion[:3, 3] + 0.005 * rng.standard_normal((30, 3))  # one in ten is right
    poses, support = core.consistent_poses(a, b, None, None, 0.03, 0.1, 0.3, 100, 40, 5, 2)
    np.testing.assert_allclose(poses[0], motion, atol=0.01)
    assert support[0] >= 25
    assert (support[:-1] >= support[1:]).all()
    assert len(core.consistent_poses(a[:2], b[:2], None, None, 0.03, 0.1, 0.3, 100, 40, 5, 1)[0]) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: core.CloudTree(np.full((3, 2), np.nan)), "finite"),
        (lambda: core.CloudTree(np.zeros((3, 65))), "between 1 and 64"),
        (lambda: core.CloudTree(np.zeros((3, 2))).nearest(np.zeros((1, 3)), 1.0, 1), "as many coordinates"),
        (lambda: core.CloudTree(np.zeros((3, 2))).k_nearest(np.zeros((1, 2)), 4, 1), "k must be between"),
        (lambda: core.CloudTree(np.zeros((3, 4))).normals(4, None, 1), "2 or 3 dimensions"),
        (lambda: core.CloudTree(np.zeros((3, 3))).descriptors(np.zeros((2, 3)), 1.0, 1), "a normal for each point"),
        (lambda: icp(np.zeros((5, 3)), np.zeros((5, 3)), 1), "needs normals of the target"),
        (lambda: icp(np.zeros((5, 3)), np.zeros((5, 2)), 0), "as many coordinates"),
        (lambda: icp(np.zeros((5, 3)), np.zeros((5, 3)), 0, keep=0.0), "must be positive"),
    ],
)
def test_wrong_arrays_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
