"""Iterative closest points: match each point to its nearest neighbour, move the cloud, repeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, check_flag, check_positive, hyphenated
from mercer.registration.base import Registration, check_start
from mercer.registration.prepared import Cloud, umeyama
from mercer.registration.result import move

__all__ = ["ICP"]

KINDS = ("point", "plane", "generalized")
THIN = 1e-3
"""The least variance across a plane, in units of that along it."""
COPIES = 0.6
"""Share of the spacing: pairs whose median distance is below it are copies of each other."""
ROUNDS, SAMPLE = 4, 1000
"""Of settling: the median distance falls to that of the points that have a counterpart. It is that of a sample."""


class ICP(Registration):
    """Align clouds that are nearly aligned, by iterative closest points.

    Parameters
    ----------
    kind : {"generalized", "plane", "point"}, default="generalized"
        Distance that is minimised over the pairs: ``"point"`` from point to point [Besl1992]_, ``"plane"`` from point
        to the tangent plane of the target [Chen1992]_, ``"generalized"`` from plane to plane [Segal2009]_. Plane to
        plane is the most accurate if the clouds sample surfaces. Missing normals of a :class:`~mercer.data.PointCloud`
        are estimated. If one cloud is a copy of the other, with noise and outliers, ``"generalized"`` excludes the
        outliers and matches noisy copies point to point. If ``overlap`` is below 1, ``overlap`` alone decides which
        points are excluded.
    overlap : float, default=1.0
        Share of the source points to use in each iteration, nearest first (trimmed ICP [Chetverikov2005]_). Choose a
        value below the true overlap, so that the other points do not bias the pose.
    max_distance : float, optional
        Exclude points farther from the target than this distance. By default all points are used.
    scale : bool, default=False
        Also estimate a scale factor; needs ``kind="point"``.
    start : {"centroid", "identity"} or matrix of shape (d + 1, d + 1), default="centroid"
        Initial pose: ``"centroid"`` aligns the centroids, ``"identity"`` leaves the source in place; or pass a pose.
    max_iter : int, default=100
    tol : float, default=1e-5
        Stop when a step turns by less than this angle (radians) and shifts by less than this share of the target's
        radius.
    n_neighbors : int, default=12
        Number of neighbours for estimating normals.
    n_jobs : int, optional
        Number of threads. Results do not depend on it.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import ICP
    >>> target = np.random.default_rng(0).standard_normal((300, 3)) * [3, 2, 1]
    >>> source = target @ SO(3).Exp([0.1, 0.05, -0.1]) + 0.1
    >>> icp = ICP(kind="point").fit(source, target)
    >>> bool(np.abs(icp.transform(source) - target).max() < 1e-4)
    True

    References
    ----------
    .. [Besl1992] P. Besl and N. McKay. A method for registration of 3-D shapes. IEEE Transactions on Pattern Analysis
       and Machine Intelligence 14, 1992.
    .. [Chen1992] Y. Chen and G. Medioni. Object modelling by registration of multiple range images. Image and Vision
       Computing 10, 1992.
    .. [Segal2009] A. Segal, D. Haehnel and S. Thrun. Generalized-ICP. Robotics: Science and Systems, 2009.
    .. [Chetverikov2005] D. Chetverikov, D. Stepanov and P. Krsek. Robust Euclidean alignment of 3D point sets: the
       trimmed iterative closest point algorithm. Image and Vision Computing 23, 2005.
    """

    def __init__(
        self,
        kind: str = "generalized",
        *,
        overlap: float = 1.0,
        max_distance: float | None = None,
        scale: bool = False,
        start: Any = "centroid",
        max_iter: int = 100,
        tol: float = 1e-5,
        n_neighbors: int = 12,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.overlap = overlap
        self.max_distance = max_distance
        self.scale = scale
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        kind = check_choice("kind", hyphenated(self.kind), KINDS)
        overlap = check_positive("overlap", self.overlap)
        if overlap > 1:
            raise ValueError(f"overlap must be a share between 0 and 1, got {self.overlap!r}")
        limit = math.inf if self.max_distance is None else check_positive("max_distance", self.max_distance)
        tol, max_iter = check_positive("tol", self.tol), check_count("max_iter", self.max_iter)
        pose = check_start(self.start, source.points, target.points)
        for cloud in (source, target):
            cloud.k = check_count("n_neighbors", self.n_neighbors, cloud.dimension)
        facts: dict[str, Any] = {"method": f"{kind} icp"}
        if check_flag("scale", self.scale) and kind != "point":
            raise ValueError(f"scale=True needs kind='point', got kind={self.kind!r}")
        if self.scale or source.dimension > 3:
            if kind != "point":
                raise ValueError(f"kind={self.kind!r} needs clouds in 2 or 3 dimensions, got {source.dimension}")
            pose, facts["n_iter"], facts["converged"] = closest_points(
                source, target, weights, pose, limit, overlap, max_iter, tol, self.scale
            )
            return pose, facts
        if kind == "generalized" and overlap == 1:
            found = settled(source, target, weights, pose, limit, max_iter, tol)
        else:
            found = compiled(source, target, weights, pose, kind, limit, overlap, max_iter, tol)
        pose, facts["n_iter"], facts["converged"] = found
        return pose, facts


def compiled(
    source: Cloud,
    target: Cloud,
    weights: np.ndarray | None,
    pose: np.ndarray,
    kind: str,
    limit: float,
    overlap: float,
    max_iter: int,
    tol: float,
    epsilon: float | None = None,
) -> tuple[np.ndarray, int, bool]:
    """Run the compiled loop.

    For plane to plane, a covariance has variance 1 along the plane and ε across it. The usual ε = 0.001 trusts planes
    that noise has tilted. Here the default of ε is the thickness of the clouds, so noisy clouds are matched more like
    points.
    """
    if epsilon is None:
        epsilon = max(source.thickness, target.thickness) if kind == "generalized" else 0.0
    result = _core.registration.icp(
        target.tree,
        None if kind == "point" else target.normals,
        source.points,
        source.normals if kind == "generalized" else None,
        weights,
        np.ascontiguousarray(pose),
        KINDS.index(kind),
        min(limit, 1e150),
        overlap,
        min(1.0, max(THIN, epsilon)),
        max_iter,
        tol,
        tol,
        target.threads,
    )
    return result[0], result[1], result[2]


def settled(
    source: Cloud, target: Cloud, weights: np.ndarray | None, pose: np.ndarray, limit: float, max_iter: int, tol: float
) -> tuple[np.ndarray, int, bool]:
    """Run plane-to-plane ICP, and a second run with adapted settings if one cloud is a copy of the other.

    The distance between points of two samples of a surface is about the spacing of one sample. Pairs that are much
    closer are the same points, moved by noise. Pairs beyond three times the median distance are then outliers, which
    would bias the pose. Noise moves the others across planes as far as along them, so planes carry no more information
    than points.
    """
    pose, total, converged = compiled(source, target, weights, pose, "generalized", limit, 1.0, max_iter, tol)
    some = np.ascontiguousarray(source.points[:: max(1, len(source) // SAMPLE)])
    apart = COPIES * min(source.spacing, target.spacing)
    for _ in range(ROUNDS):
        if total >= max_iter:
            break
        moved = move(pose, some)
        squared, partner = target.nearest(moved, limit)
        pairs = partner >= 0
        if pairs.sum() <= 4 * source.dimension:
            break
        middle = math.sqrt(float(np.median(squared[pairs])))
        if not 1e-9 * target.radius < middle < apart:
            break
        core = squared <= 9 * middle**2
        across = ((moved[core] - target.points[partner[core]]) * target.normals[partner[core]]).sum(axis=1) ** 2
        along = float((squared[core] - across).sum()) / (source.dimension - 1)
        reached, limit = limit, min(limit, 3 * middle)
        epsilon = float(across.sum()) / max(along, 1e-300)
        pose, n_iter, converged = compiled(
            source, target, weights, pose, "generalized", limit, 1.0, max_iter - total, tol, epsilon
        )
        total += n_iter
        if limit > 0.9 * reached:
            break
    return pose, total, converged


def closest_points(
    source: Cloud,
    target: Cloud,
    weights: np.ndarray | None,
    pose: np.ndarray,
    limit: float,
    overlap: float,
    max_iter: int,
    tol: float,
    scale: bool,
) -> tuple[np.ndarray, int, bool]:
    """Run point-to-point ICP in any dimension, with or without a scale factor."""
    x = source.points
    for k in range(1, max_iter + 1):
        squared, partner = target.nearest(move(pose, x), limit)
        used = partner >= 0
        if overlap < 1:
            last = math.ceil(overlap * len(x)) - 1
            used &= squared <= np.partition(squared, last)[last]
        if used.sum() <= source.dimension:
            return pose, k, False
        after = umeyama(x[used], target.points[partner[used]], None if weights is None else weights[used], scale=scale)
        shift = float(np.linalg.norm(move(after, x.mean(axis=0)[None]) - move(pose, x.mean(axis=0)[None])))
        change = float(np.abs(after[:-1, :-1] - pose[:-1, :-1]).max())
        pose = after
        if change < tol and shift < tol * target.radius:
            return pose, k, True
    return pose, max_iter, False
