"""Registration in one call: a coarse pose by kernels or matching, chosen by the evidence, then refinement by ICP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_flag, thread_count
from mercer._warnings import warn_caller
from mercer.data.clouds import PointCloud
from mercer.exceptions import UncertainPoseWarning
from mercer.registration._evidence import MARGIN, Judge
from mercer.registration._search import Found, best_pose, challenged, merged, verdict
from mercer.registration.base import check_start, pair_radius, summary
from mercer.registration.icp import ICP
from mercer.registration.kernel import KernelRegistration, finished
from mercer.registration.matching import FeatureMatching
from mercer.registration.prepared import Cloud, check_pair
from mercer.registration.result import RegistrationResult

__all__ = ["UncertainPoseWarning", "register"]

METHODS = ("auto", "kernel", "matching", "icp")


def register(
    source: Any,
    target: Any,
    *,
    method: str = "auto",
    start: Any = None,
    scale: bool = False,
    reflection: bool = False,
    weights: Any = None,
    effort: int = 2,
    n_jobs: int | None = None,
) -> RegistrationResult:
    """Find the transform that aligns one point cloud with another, from any rotation and with partial overlap.

    Parameters
    ----------
    source : array of shape (n, d) or PointCloud
        The cloud that moves.
    target : array of shape (m, d) or PointCloud
        The cloud that stays.
    method : {"auto", "kernel", "matching", "icp"}, default="auto"
        Method for the coarse pose. ``"kernel"`` aligns kernel principal components: whole clouds, any dimension.
        ``"matching"`` matches local descriptors: partial overlap and outliers, 2 or 3 dimensions. ``"icp"`` only
        refines from ``start``. ``"auto"`` tries kernels first if the two clouds have similar moments. It uses matching
        if the moments differ or the pose is not certified.
    start : {"centroid", "identity"} or matrix of shape (d + 1, d + 1), optional
        A pose to refine; no other pose is searched for.
    scale : bool, default=False
        Also estimate a scale factor between the clouds. By default only rigid motions are considered.
    reflection : bool, default=False
        Also try the mirror image of the source, and choose it if it fits better. ``result.rotation`` then has the
        determinant −1.
    weights : array of shape (n,), optional
        Weights of the source points.
    effort : int, default=2
        Maximal number of searches by matching until a pose is certified.
    n_jobs : int, optional
        Number of threads. Results do not depend on it.

    Returns
    -------
    RegistrationResult
        ``transform``, ``fitness``, ``rmse``, ``correspondences``, ``certified`` with its ``reason``, and
        ``alternatives`` if several poses fit nearly as well.

    Warns
    -----
    UncertainPoseWarning
        If the evidence does not rule out that the pose fits by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import make_mug
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import register
    >>> source = make_mug(1000, random_state=0)
    >>> target = make_mug(1200, random_state=1) @ SO(3).Exp([0.5, 2.0, -1.0]).T + [10, 0, 0]
    >>> result = register(source, target)
    >>> result.certified, bool(result.fitness > 0.99)
    (True, True)
    >>> bool(np.abs(result.rotation - SO(3).Exp([0.5, 2.0, -1.0])).max() < 0.02)
    True
    """
    method = check_choice("method", method, METHODS)
    x, y, w = check_pair(source, target, weights)
    threads = thread_count(n_jobs)
    a, b = (
        Cloud(points, cloud.normals if isinstance(cloud, PointCloud) else None, threads)
        for points, cloud in ((x, source), (y, target))
    )
    if method == "matching" and (a.dimension > 3 or scale):
        raise ValueError("method='matching' needs clouds in 2 or 3 dimensions and scale=False")
    check_flag("scale", scale)
    check_count("effort", effort)
    if check_flag("reflection", reflection) and start is not None:
        raise ValueError(
            "reflection=True cannot be combined with start: pass a start matrix that contains the reflection"
        )

    def align(cloud: Cloud) -> RegistrationResult:
        if method == "icp" or start is not None:
            pose, facts = _fine(cloud, b, w, "centroid" if start is None else start, scale, n_jobs)
        elif scale or cloud.dimension > 3:
            pose, facts = KernelRegistration(scale=scale, n_jobs=n_jobs)._align(cloud, b, w)
        else:
            pose, facts = _coarse(cloud, b, w, method, effort)
        return summary(cloud, b, pose, pair_radius(cloud, b), **facts)

    result = align(a)
    if reflection:
        result = _with_mirror(result, align(_mirrored(a)))
    if result.fitness < 0.05:
        what = "the clouds do not overlap, or the pose is wrong"
        message = f"only {result.fitness:.1%} of the source points come near the target: {what}"
        warn_caller(message, UncertainPoseWarning)
    elif not result.certified and (result.evidence or method != "icp") and start is None and not scale:
        warn_caller(f"the pose is not certified: {result.reason}", UncertainPoseWarning)
    return result


def _mirrored(cloud: Cloud) -> Cloud:
    """Return the mirror image along the first axis."""
    signs = np.r_[-1.0, np.ones(cloud.dimension - 1)]
    normals = None if cloud._given is None else cloud._given * signs
    return Cloud(np.ascontiguousarray(cloud.points * signs), normals, cloud.threads, cloud.k)


def _with_mirror(plain: RegistrationResult, mirrored: RegistrationResult) -> RegistrationResult:
    """Return the better of the plain and the mirrored result; the plain one if both fit equally well."""
    flip = np.diag(np.r_[-1.0, np.ones(plain.dimension)])
    mirrored = replace(
        mirrored,
        transform=mirrored.transform @ flip,
        alternatives=[pose @ flip for pose in mirrored.alternatives],
        method=mirrored.method + ", mirrored",
    )
    scores = [r.evidence.get("score", r.fitness / (1 + r.rmse / r.radius)) for r in (plain, mirrored)]
    ratio = scores[1] / max(scores[0], 1e-300)
    best, other = (mirrored, plain) if ratio > 1.05 else (plain, mirrored)
    if max(ratio, 1 / max(ratio, 1e-300)) < MARGIN:
        reason = "the mirror image fits nearly as well" if best.certified else best.reason
        best = replace(best, certified=False, reason=reason, alternatives=[*best.alternatives, other.transform])
    return best


def _fine(
    source: Cloud, target: Cloud, weights: np.ndarray | None, start: Any, scale: bool, n_jobs: int | None
) -> tuple[np.ndarray, dict[str, Any]]:
    """Run ICP from the given pose."""
    kind = "point" if scale or source.dimension > 3 else "generalized"
    check_start(start, source.points, target.points)
    pose, facts = ICP(kind, scale=scale, start=start, n_jobs=n_jobs)._align(source, target, weights)
    facts["reason"] = "refined from the given start; no other pose was searched for"
    return pose, facts


def _coarse(
    source: Cloud, target: Cloud, weights: np.ndarray | None, method: str, effort: int
) -> tuple[np.ndarray, dict[str, Any]]:
    judge = Judge(source, target)
    steps = ["kernel", "matching"] if method == "auto" else [method]
    if method == "auto" and not alike(judge.source.points, judge.target.points):
        steps = ["matching", "kernel"]
    ranking: Found | None = None
    used = steps[0]
    for step in steps:
        if step == "kernel":
            poses = KernelRegistration().candidates(judge.source, judge.target)[0]
            new = best_pose(judge, poses, reach=8 * judge.r, most=4)
        else:
            new = FeatureMatching(effort=effort).search(judge)
        best = challenged(judge, merged(judge, ranking, new))
        if best is not None and (ranking is None or best.evidence.score > ranking.evidence.score):
            used = step
        ranking = best
        if ranking is not None and verdict(ranking)[0]:
            break
    if ranking is None:
        pose = check_start("centroid", source.points, target.points)
        return pose, {"method": "none", "reason": "no pose was found", "evidence": {}}
    return finished(source, target, weights, judge, ranking, {"method": used})


def alike(x: np.ndarray, y: np.ndarray, tolerance: float = 0.06) -> bool:
    """Return whether two clouds have similar moments, as complete clouds of one shape do and partial ones do not."""
    spreads = [np.linalg.svd(p - p.mean(axis=0), compute_uv=False) / np.sqrt(len(p)) for p in (x, y)]
    return bool(np.abs(spreads[0] - spreads[1]).max() <= tolerance * max(spreads[0][0], spreads[1][0]))
