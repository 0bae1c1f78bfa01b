"""Registration by matching local descriptors, for partial overlap, outliers and any rotation.

Descriptors of surface points (fast point feature histograms) give matches, most of which may be wrong. Correct matches
are consistent with each other: a rigid motion preserves lengths and the angles between normals. Sets of consistent
matches give poses. Poses are refined and compared by how well the surfaces coincide. If the evidence for the best pose
is weak, the search is repeated with other neighbourhood sizes and more matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_count, check_positive
from mercer.registration._evidence import Judge
from mercer.registration._search import Found, best_pose, challenged, merged, verdict
from mercer.registration.base import Registration
from mercer.registration.kernel import finished
from mercer.registration.prepared import Cloud

__all__ = ["FeatureMatching"]


class FeatureMatching(Registration):
    """Align partially overlapping clouds with outliers, from any rotation, by matching local descriptors.

    Clouds need two or three dimensions. In two dimensions, descriptors carry less information (angles in a plane), and
    outlines work better than areas.

    Parameters
    ----------
    n_points : int, default=1500
        Number of points per cloud with a descriptor: means of grid cells.
    radius : float, default=5.0
        Radius of the neighbourhood of a descriptor, in units of 1.3 times the spacing of these points; four times as
        much in the plane.
    tolerance : float, default=1.5
        Largest difference of the lengths between two matches, in the same units.
    effort : int, default=2
        Maximal number of searches until a pose is certified: the first with these settings, then with other radii and
        more matches.
    n_jobs : int, optional
        Number of threads. Results do not depend on it.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult
        ``result_.certified`` is True if the evidence rules out a fit by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import make_mug
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import FeatureMatching
    >>> both = make_mug(4000, random_state=0)
    >>> source, target = both[:2000], both[2000:] @ SO(3).Exp([3.0, 0.0, 0.0]).T
    >>> source, target = source[source[:, 0] > -0.4], target[target[:, 2] < 0.3]  # parts of both are missing
    >>> matched = FeatureMatching().fit(source, target)
    >>> bool(np.abs(matched.transform_[:3, :3] - SO(3).Exp([3.0, 0.0, 0.0])).max() < 0.02)
    True

    References
    ----------
    .. [Rusu2009] R. Rusu, N. Blodow and M. Beetz. Fast point feature histograms (FPFH) for 3D registration. ICRA, 2009.
    .. [Chen2022] Z. Chen, K. Sun, F. Yang and W. Tao. SC²-PCR: a second order spatial compatibility for efficient and
       robust point cloud registration. CVPR, 2022.
    """

    def __init__(
        self,
        n_points: int = 1500,
        *,
        radius: float = 5.0,
        tolerance: float = 1.5,
        effort: int = 2,
        n_jobs: int | None = None,
    ) -> None:
        self.n_points = n_points
        self.radius = radius
        self.tolerance = tolerance
        self.effort = effort
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        if source.dimension > 3:
            raise ValueError(f"FeatureMatching needs clouds in 2 or 3 dimensions, got {source.dimension}")
        judge = Judge(source, target, check_count("n_points", self.n_points, 20))
        ranking = self.search(judge)
        facts: dict[str, Any] = {"method": "matching"}
        if ranking is None:
            start = np.eye(source.dimension + 1)
            start[:-1, -1] = target.points.mean(axis=0) - source.points.mean(axis=0)
            return start, facts | {"reason": "no three matches agree with each other", "converged": True}
        return finished(source, target, weights, judge, ranking, facts)

    def search(self, judge: Judge) -> Found | None:
        """Return the best pose of all searches, or None if no matches are consistent."""
        radius, tolerance = check_positive("radius", self.radius), check_positive("tolerance", self.tolerance)
        ranking: Found | None = None
        for step in range(check_count("effort", self.effort)):
            if ranking is not None and verdict(ranking)[0]:
                break
            if step == 0:
                poses = poses_of_matches(judge, radius, tolerance, mutual=True, wanted=20)
                ranking = challenged(judge, best_pose(judge, poses, most=6))
                continue
            for factor in _FACTORS:
                poses = poses_of_matches(judge, radius * factor, tolerance, mutual=False, wanted=60)
                ranking = challenged(judge, merged(judge, ranking, best_pose(judge, poses, most=16)))
                if ranking is not None and verdict(ranking)[0]:
                    break
        return ranking


_FACTORS = (1.0, 1.4, 0.8)


def poses_of_matches(judge: Judge, radius: float, tolerance: float, *, mutual: bool, wanted: int) -> np.ndarray:
    """Return poses that are consistent with many matches of descriptors, best first."""
    source, target = judge.source, judge.target
    unit = 1.3 * max(source.spacing, target.spacing)
    reach = radius * unit * (4 if source.dimension == 2 else 1)  # a curve has fewer points within a radius
    a, b = (np.sqrt(_descriptors(cloud, reach)) for cloud in (source, target))
    rows, columns = _matches(a, b, mutual)
    slack = tolerance * unit
    return _core.registration.consistent_poses(
        np.ascontiguousarray(source.points[rows]),
        np.ascontiguousarray(target.points[columns]),
        np.ascontiguousarray(source.normals[rows]),
        np.ascontiguousarray(target.normals[columns]),
        slack,
        3 * slack,
        0.3,
        200 if mutual else 400,
        40,
        wanted,
        source.threads,
    )[0]


def _descriptors(cloud: Cloud, radius: float) -> np.ndarray:
    if cloud.dimension == 2:  # in the plane z = 0
        points, normals = (np.pad(rows, ((0, 0), (0, 1))) for rows in (cloud.points, cloud.normals))
        return _core.registration.CloudTree(points).descriptors(normals, radius, cloud.threads)
    return cloud.tree.descriptors(np.ascontiguousarray(cloud.normals), radius, cloud.threads)


def _matches(a: np.ndarray, b: np.ndarray, mutual: bool, most: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of mutual or one-sided nearest neighbours among the rows, best first."""
    forth, back = np.empty(len(a), np.int64), np.zeros(len(b), np.int64)
    likeness, best = np.empty(len(a), np.float32), np.full(len(b), -np.inf, np.float32)
    for start, block in _blocks(a):
        similar = block @ b.T
        rows = np.arange(len(block))
        forth[start : start + len(block)] = similar.argmax(axis=1)
        likeness[start : start + len(block)] = similar[rows, forth[start : start + len(block)]]
        top = similar.argmax(axis=0)
        value = similar[top, np.arange(len(b))]
        better = value > best
        best[better], back[better] = value[better], start + top[better]
    rows, columns, quality = np.arange(len(a)), forth, likeness
    if mutual:
        agreed = back[forth] == rows
        rows, columns, quality = rows[agreed], columns[agreed], quality[agreed]
    else:
        rows, columns = np.concatenate([rows, back]), np.concatenate([columns, np.arange(len(b))])
        quality = np.concatenate([quality, best])
        _, first = np.unique(rows * len(b) + columns, return_index=True)
        rows, columns, quality = rows[first], columns[first], quality[first]
    order = np.argsort(-quality, kind="stable")[:most]
    return rows[order], columns[order]


def _blocks(a: np.ndarray, size: int = 2048) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(a), size):
        yield start, a[start : start + size]
