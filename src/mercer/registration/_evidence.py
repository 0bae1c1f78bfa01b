"""Score poses, compute the evidence for them, and choose among them.

Of n source points, m come within 3 r of the target, r being 1.5 times the spacing. The score of a pose is

    Σ (1 − d²/r²) max(0, (|cos| − 0.7) / 0.3) / √(n m)    over the points at a distance d ≤ r

where cos is the cosine between the normals of a point and of its nearest neighbour. Surfaces that coincide count fully.
Surfaces that cross at random angles count little and make m larger. A pose is certified if all of the following
statistics are high enough; each is small for a random pose.

    overlap    source points within r of the target
    contact    of the source points within 3 r, those within r: 1 where surfaces lie on each other, 1/3 where they cross
    normals    mean of |cos| over the pairs: near 1 where surfaces lie on each other, 1/2 by chance
    margin     score of the pose over that of the best other one, after the same refinement; wide for noisy normals.
               Where both clouds cover each other, as copies of one shape do, a small margin is enough if it is far
               beyond chance: the handle of a mug is a small part of it, and tells how it is turned
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.registration.prepared import Cloud
from mercer.registration.result import move

__all__ = ["Evidence", "Judge", "distinct"]

CONTACT, NORMALS, OVERLAP = 0.62, 0.85, 0.04
CONTACT_OF_CURVES = 0.8  # in the plane, curves that cross at small angles run side by side for longer
CLEAR, MARGIN, WIDE = 0.9, 1.25, 1.6
"""What a certificate asks for; the wide margin where normals agree less than clearly."""
WHOLE, LEAD = 0.99, 5.0
"""Where this share of both clouds lies within 3 r of the other, a lead of so many standard errors is margin enough."""


@dataclass
class Evidence:
    """The statistics of one pose."""

    score: float
    overlap: float
    contact: float
    normals: float


def angle_between(p: np.ndarray, q: np.ndarray) -> float:
    """Return the angle of the rotation between two poses, in radians."""
    d = len(p) - 1
    relative = p[:d, :d] @ q[:d, :d].T
    if d == 3:
        return math.acos(min(1.0, max(-1.0, (float(np.trace(relative)) - 1) / 2)))
    return math.sqrt(max(0.0, float(d - np.trace(relative))))  # of the same order for small angles


def distinct(p: np.ndarray, q: np.ndarray, centre: np.ndarray, shift: float, angle: float = 0.17) -> bool:
    """Return whether two poses differ by more than 10 degrees or by more than ``shift`` at the centre."""
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
        """Return the score of each pose at a wider radius, on a third of the points."""
        return np.array([self.evidence(pose, radius, 3).score for pose in poses])

    def evidence(self, pose: np.ndarray, radius: float | None = None, step: int = 1) -> Evidence:
        """Return the statistics of a pose, on every ``step``-th point."""
        r = self.r if radius is None else radius
        points, normals = self.source.points[::step], self.source.normals[::step]
        squared, partner = self.target.nearest(move(pose, points), 3 * r)
        touching = squared <= r * r
        n, near = len(points), int((partner >= 0).sum())
        if not touching.any():
            return Evidence(0.0, 0.0, 0.0, 0.0)
        turned = normals[touching] @ pose[:-1, :-1].T
        cos = np.abs((turned * self.target.normals[partner[touching]]).sum(axis=1))
        weight = 1 - squared[touching] / r**2
        score = float((weight * np.maximum(0, (cos - 0.7) / 0.3)).sum()) / math.sqrt(n * near)
        agreement = float((weight * cos).sum() / max(float(weight.sum()), 1e-300))
        return Evidence(score, float(touching.mean()), float(touching.sum() / near), agreement)

    def whole(self, pose: np.ndarray) -> bool:
        """Return whether nearly all points of each cloud lie on the other, so that no missing part can hide a shift."""
        moved = Cloud(np.ascontiguousarray(move(pose, self.source.points)), threads=self.source.threads)
        back = np.isfinite(moved.nearest(self.target.points, 3 * self.r)[0]).mean()
        forth = np.isfinite(self.target.nearest(moved.points, 3 * self.r)[0]).mean()
        return bool(min(back, forth) >= WHOLE)

    def lead(self, pose: np.ndarray, other: np.ndarray) -> float:
        """Return by how many standard errors one pose fits better than another, measured by distances to planes.

        Distances to planes vary less than distances between points of two samples: they show where the surfaces differ.
        """
        fits = []
        for one in (pose, other):
            moved = move(one, self.source.points)
            squared, partner = self.target.nearest(moved, 3 * self.r)
            near = np.isfinite(squared)
            normals = self.target.normals[partner[near]]
            off = ((moved[near] - self.target.points[partner[near]]) * normals).sum(axis=1) * (1.5 / self.r)
            cos = np.abs((self.source.normals[near] @ one[:-1, :-1].T * normals).sum(axis=1))
            fit = np.zeros(len(near))
            fit[near] = np.maximum(0, 1 - off**2) * np.maximum(0, (cos - 0.7) / 0.3)
            fits.append(fit)
        difference = fits[0] - fits[1]
        error = float(difference.std()) / math.sqrt(len(difference))
        return float(difference.mean()) / error if error > 0 else 0.0


def _surface(cloud: Cloud, count: int) -> Cloud:
    """Return about ``count`` points of the cloud's surface, with normals estimated from all of its points."""
    some = cloud
    if len(cloud) > 10 * count:
        chosen = np.sort(np.random.default_rng(0).permutation(len(cloud))[: 10 * count])
        some = Cloud(np.ascontiguousarray(cloud.points[chosen]), threads=cloud.threads)
    kept = np.ascontiguousarray(some.points[some.surface()])
    whole = Cloud(kept, threads=cloud.threads)
    points = whole.thinned_to(count)[0]
    k = min(len(kept), 60, max(12, 25 * len(kept) // max(1, len(points)) // 2))
    return Cloud(points, whole.normals_at(points, k), threads=cloud.threads)
