"""What speaks for a pose, and the choice among poses.

The score of a pose is Σ (1 − d²/r²) (2 |cos| − 1) over the source points that come within r of the target, where cos is
between the normals of the two points: a surface that lies on the other counts fully, one that crosses it at random
angles counts nothing. A pose is certified where all of the following hold; each is a share that chance makes small.

    overlap    source points within r of the target
    contact    of the source points within 3 r, those within r: 1 where surfaces lie on each other, 1/3 where they cross
    normals    mean of |cos| over the pairs: near 1 where surfaces lie on each other, 1/2 by chance
    margin     score of the pose over that of the best other one, after the same refinement
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.registration._clouds import Cloud
from mercer.registration.result import move

__all__ = ["Evidence", "Judge", "distinct"]

CONTACT, NORMALS, MARGIN, OVERLAP = 0.62, 0.86, 1.25, 0.04
"""What a certificate asks for: no wrong pose passed in 114 runs on coarse chairs and monitors, cut and noisy."""


@dataclass
class Evidence:
    """The figures for one pose."""

    score: float
    overlap: float
    contact: float
    normals: float


def angle_between(p: np.ndarray, q: np.ndarray) -> float:
    """The angle of the rotation between two poses, in radians."""
    d = len(p) - 1
    relative = p[:d, :d] @ q[:d, :d].T
    if d == 3:
        return math.acos(min(1.0, max(-1.0, (float(np.trace(relative)) - 1) / 2)))
    return math.sqrt(max(0.0, float(d - np.trace(relative))))  # of the same order for small angles


def distinct(p: np.ndarray, q: np.ndarray, centre: np.ndarray, shift: float, angle: float = 0.17) -> bool:
    """Whether two poses differ by more than 10 degrees or by more than a shift of the centre."""
    moved = move(p, centre[None])[0] - move(q, centre[None])[0]
    return angle_between(p, q) > angle or float(np.linalg.norm(moved)) > shift


class Judge:
    """Scores poses of one pair of clouds, on thinned copies without stray points."""

    def __init__(self, source: Cloud, target: Cloud, count: int = 1500) -> None:
        clean = [_surface(cloud, count) for cloud in (source, target)]
        self.source, self.target = clean
        self.r = 1.5 * max(cloud.spacing for cloud in clean)
        self.centre = self.source.points.mean(axis=0)
        self.shift = 0.15 * max(cloud.radius for cloud in clean)

    def rough(self, poses: np.ndarray, radius: float) -> np.ndarray:
        """Σ (1 − d²/r²) of each pose, without normals."""
        points = self.source.points
        return self.target.tree.fit(points, np.ascontiguousarray(poses), radius, self.source.threads)[0]

    def evidence(self, pose: np.ndarray) -> Evidence:
        squared, partner = self.target.nearest(move(pose, self.source.points), 3 * self.r)
        near = partner >= 0
        touching = squared <= self.r**2
        n, wide = len(self.source), int(near.sum())
        if not touching.any():
            return Evidence(0.0, 0.0, 0.0, 0.0)
        turned = self.source.normals[touching] @ pose[:-1, :-1].T
        cos = np.abs((turned * self.target.normals[partner[touching]]).sum(axis=1))
        weight = 1 - squared[touching] / self.r**2
        score = float((weight * (2 * cos - 1)).sum()) / n
        return Evidence(
            score, float(touching.mean()), float(touching.sum() / wide), float((weight * cos).sum() / weight.sum())
        )


def _surface(cloud: Cloud, count: int) -> Cloud:
    """About ``count`` points of the cloud's surface, with normals from all of its points."""
    some = cloud
    if len(cloud) > 10 * count:
        chosen = np.sort(np.random.default_rng(0).permutation(len(cloud))[: 10 * count])
        some = Cloud(np.ascontiguousarray(cloud.points[chosen]), threads=cloud.threads)
    kept = np.ascontiguousarray(some.points[some.surface()])
    whole = Cloud(kept, threads=cloud.threads)
    points = whole.thinned_to(count)[0]
    k = min(len(kept), 60, max(12, 25 * len(kept) // max(1, len(points)) // 2))
    return Cloud(points, whole.normals_at(points, k), threads=cloud.threads)
