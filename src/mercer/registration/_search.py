"""From many rough poses to the best one: score all, refine the best few, keep those that differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mercer import _core
from mercer.registration._evidence import (
    CLEAR,
    CONTACT,
    CONTACT_OF_CURVES,
    MARGIN,
    NORMALS,
    OVERLAP,
    WIDE,
    Evidence,
    Judge,
    distinct,
)

__all__ = ["Found", "best_pose", "merged", "refine", "verdict"]

_core_registration = _core.registration


@dataclass
class Found:
    """A refined pose with the evidence for it, and the others that were refined, best first."""

    pose: np.ndarray
    evidence: Evidence
    others: list[tuple[np.ndarray, Evidence]] = field(default_factory=list)


def refine(judge: Judge, pose: np.ndarray, limits: list[float], step: int = 1) -> np.ndarray:
    """Plane-to-plane ICP on the thinned clouds (every ``step``-th source point), one distance limit after another."""
    source, target = judge.source, judge.target
    points, normals = (np.ascontiguousarray(rows[::step]) for rows in (source.points, source.normals))
    for limit in limits:
        pose = _core_registration.icp(
            target.tree, target.normals, points, normals, None, np.ascontiguousarray(pose), 2, limit, 1.0,
            1e-2, 12, 1e-3, 1e-3, source.threads,
        )[0]  # fmt: skip
    return pose


def best_pose(judge: Judge, poses: np.ndarray, *, reach: float | None = None, most: int = 8) -> Found | None:
    """Refine the ``most`` best of some rough poses and return the one with the highest score, or None without poses."""
    if not len(poses):
        return None
    reach = 4 * judge.r if reach is None else reach
    rough = judge.rough(poses, reach / 2)
    # all on a third of the points, then the three best and different ones on all of them
    first = [refine(judge, poses[k], [reach, reach / 2], 3) for k in np.argsort(-rough, kind="stable")[:most]]
    ranking = _ranked(judge, [(pose, judge.evidence(pose)) for pose in first if np.isfinite(pose).all()])
    if ranking is None:
        return None
    ranked = [(ranking.pose, ranking.evidence), *ranking.others]
    last = [max(1.5 * judge.r, reach / 4), 1.5 * judge.r]
    fine = [refine(judge, pose, last) for pose, _ in ranked[:3]]
    better = [(pose, judge.evidence(pose)) for pose in fine if np.isfinite(pose).all()]
    return _ranked(judge, better + ranked)


def merged(judge: Judge, one: Found | None, other: Found | None) -> Found | None:
    """Return the best of two searches, with all their poses that differ."""
    parts = [ranking for ranking in (one, other) if ranking is not None]
    return _ranked(judge, [item for ranking in parts for item in [(ranking.pose, ranking.evidence), *ranking.others]])


def _ranked(judge: Judge, refined: list[tuple[np.ndarray, Evidence]]) -> Found | None:
    refined = sorted(refined, key=lambda item: -item[1].score)
    kept: list[tuple[np.ndarray, Evidence]] = []
    for pose, evidence in refined:
        if all(distinct(pose, other, judge.centre, judge.shift) for other, _ in kept):
            kept.append((pose, evidence))
    return Found(*kept[0], kept[1:]) if kept else None


def verdict(ranking: Found) -> tuple[bool, str, dict[str, float]]:
    """Whether the evidence rules out chance, and why."""
    e = ranking.evidence
    second = max((other.score for _, other in ranking.others), default=0.0)
    margin = e.score / second if second > 0 else math.inf
    figures = {"overlap": e.overlap, "contact": e.contact, "normals": e.normals, "margin": margin, "score": e.score}
    if e.overlap < OVERLAP:
        return False, f"only {e.overlap:.1%} of the surface of the source lies on the target", figures
    contact = CONTACT_OF_CURVES if len(ranking.pose) == 3 else CONTACT
    if e.contact < contact or e.normals < NORMALS:
        what = f"contact {e.contact:.2f} (needs {contact}), agreement of normals {e.normals:.2f} (needs {NORMALS})"
        return False, f"the surfaces cross rather than lie on each other: {what}", figures
    needed = MARGIN if e.normals >= CLEAR else WIDE
    if margin < needed:
        return False, f"another pose fits nearly as well: the margin is {margin:.2f} (needs {needed})", figures
    return (
        True,
        f"contact {e.contact:.2f}, normals {e.normals:.2f}, {margin:.1f} times the score of the next pose",
        figures,
    )
