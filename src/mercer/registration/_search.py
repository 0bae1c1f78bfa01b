"""Select the best of many rough poses: score all, refine the best few, keep those that differ."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from mercer import _core
from mercer.registration._evidence import (
    CLEAR,
    CONTACT,
    CONTACT_OF_CURVES,
    LEAD,
    MARGIN,
    NORMALS,
    OVERLAP,
    WIDE,
    Evidence,
    Judge,
    distinct,
)
from mercer.registration.result import move

__all__ = ["Found", "best_pose", "challenged", "merged", "refine", "verdict"]

_core_registration = _core.registration


@dataclass
class Found:
    """A refined pose with its evidence, and the other refined poses, best first."""

    pose: np.ndarray
    evidence: Evidence
    others: list[tuple[np.ndarray, Evidence]] = field(default_factory=list)
    challenged: bool = False
    """Whether the pose was compared with its turned copies."""
    decided: bool = False
    """Whether its lead over all of them is beyond chance, though it may be small."""


def refine(judge: Judge, pose: np.ndarray, limits: list[float], step: int = 1) -> np.ndarray:
    """Run plane-to-plane ICP on the thinned clouds (every ``step``-th source point) for each distance limit in turn."""
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
    best = _ranked(judge, [item for ranking in parts for item in [(ranking.pose, ranking.evidence), *ranking.others]])
    if best is not None:
        same = [ranking for ranking in parts if ranking.challenged and ranking.pose is best.pose]
        best.challenged = bool(same)
        best.decided = any(ranking.decided for ranking in same) and len(best.others) == len(same[0].others)
    return best


def challenged(judge: Judge, ranking: Found | None) -> Found | None:
    """Compare a pose that would be certified with poses that a search may have missed: turned or shifted copies of it.

    Nearly symmetric shapes fit nearly as well after a half or quarter turn, and a search may have found only one of
    these poses. The part of the source that lies on the target is therefore turned about its principal axes, and each
    turned pose is refined. If parts are missing, a straight piece can be shifted along itself to a larger overlap. It
    is therefore also shifted along the eigenvectors of its normals. Shifted poses are not refined, because refinement
    would undo the shift.
    """
    for _ in range(3):
        if ranking is None or ranking.challenged or not _lies(ranking):
            return ranking
        turned, shifted = _copies(judge, ranking.pose)
        turned = [refine(judge, pose, [4 * judge.r, 2 * judge.r], 3) for pose in turned]
        rivals = [(pose, judge.evidence(pose)) for pose in turned + shifted if np.isfinite(pose).all()]
        rivals = [
            (pose, evidence)
            for pose, evidence in rivals
            if MARGIN * evidence.score > ranking.evidence.score
            and distinct(pose, ranking.pose, judge.centre, judge.shift)
        ]
        finer = [
            refine(judge, pose, [1.5 * judge.r]) for pose, _ in sorted(rivals, key=lambda item: -item[1].score)[:3]
        ]
        rivals += [(pose, judge.evidence(pose)) for pose in finer if np.isfinite(pose).all()]
        best, evidence = ranking.pose, ranking.evidence
        whole = judge.whole(best)
        ranking = _ranked(judge, [(best, evidence), *ranking.others, *rivals])
        assert ranking is not None
        if whole and ranking.pose is not best and judge.lead(best, ranking.pose) > 0:
            # scores of two samples differ by chance; distances to planes differ less
            others = [(ranking.pose, ranking.evidence), *(item for item in ranking.others if item[0] is not best)]
            ranking = Found(best, evidence, others)
        ranking.challenged = ranking.pose is best
        if ranking.challenged and whole:
            close = [pose for pose, other in ranking.others if WIDE * other.score > evidence.score]
            ranking.decided = all(judge.lead(best, pose) >= LEAD for pose in close)
    return ranking


def _lies(ranking: Found) -> bool:
    """Return whether the surfaces coincide, regardless of other poses."""
    return verdict(Found(ranking.pose, ranking.evidence))[0]


def _copies(judge: Judge, pose: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return copies of a pose: turned about the principal axes of the overlapping part of the source, and shifted."""
    points = judge.source.points
    squared, _ = judge.target.nearest(move(pose, points), judge.r)
    part = points[np.isfinite(squared)]
    centre, d = part.mean(axis=0), judge.source.dimension
    axes = np.linalg.svd(part - centre, full_matrices=False)[2]
    planes = [(axes[i], axes[j]) for i, j in itertools.combinations(range(d), 2)]
    out = []
    for (u, v), angle in itertools.product(planes, (0.5 * math.pi, math.pi, 1.5 * math.pi)):
        turn = np.eye(d) + (math.cos(angle) - 1) * (np.outer(u, u) + np.outer(v, v))
        turn += math.sin(angle) * (np.outer(v, u) - np.outer(u, v))
        about = np.eye(d + 1)
        about[:-1, :-1], about[:-1, -1] = turn, centre - turn @ centre
        out.append(pose @ about)
    shifted = []
    normals = judge.source.normals[np.isfinite(squared)]
    for axis, sign in itertools.product(np.linalg.eigh(normals.T @ normals)[1].T, (1.05, 1.5, -1.05, -1.5)):
        along = np.eye(d + 1)
        along[:-1, -1] = sign * judge.shift * axis
        shifted.append(pose @ along)
    return out, shifted


def _ranked(judge: Judge, refined: list[tuple[np.ndarray, Evidence]]) -> Found | None:
    refined = sorted(refined, key=lambda item: -item[1].score)
    kept: list[tuple[np.ndarray, Evidence]] = []
    for pose, evidence in refined:
        if all(distinct(pose, other, judge.centre, judge.shift) for other, _ in kept):
            kept.append((pose, evidence))
    return Found(*kept[0], kept[1:]) if kept else None


def verdict(ranking: Found) -> tuple[bool, str, dict[str, float]]:
    """Return whether the evidence rules out a fit by chance, and the reason."""
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
    if margin < needed and not ranking.decided:
        return False, f"another pose fits nearly as well: the margin is {margin:.2f} (needs {needed})", figures
    lead = f"{margin:.1f} times the score of the next pose"
    if margin < needed:
        lead = f"both clouds cover each other, and the lead over the next pose is beyond chance ({margin:.2f} times)"
    return True, f"contact {e.contact:.2f}, normals {e.normals:.2f}, {lead}", figures
