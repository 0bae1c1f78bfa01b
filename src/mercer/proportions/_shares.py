"""Thresholds of scores by the shares of bags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.proportions._base import Problem

_SAME = 1e-9  # relative

__all__ = ["labelled_alone", "share_error", "share_threshold"]


def labelled_alone(scores: np.ndarray, problem: Problem) -> tuple[np.ndarray, Problem]:
    """Return scores and bags, with every labelled instance added as a bag of one with weight 1.

    This includes instances in bags, because a share does not tell which instances are positive.
    """
    labelled = np.flatnonzero(problem.known[: problem.n_inside])
    added = replace(
        problem,
        known=np.append(problem.known, problem.known[labelled]),
        row_weight=np.append(problem.row_weight, np.ones(len(labelled))),
    )
    return np.append(scores, scores[labelled]), added.single_bags()


def share_error(problem: Problem, shares: np.ndarray) -> float:
    """Return Σ_k v_k |p_k − ȳ_k|, outside of bounds."""
    away = np.maximum(np.maximum(problem.low - shares, shares - problem.high), 0.0)
    return float(problem.bag_weight @ away)


def share_threshold(scores: np.ndarray, problem: Problem) -> tuple[float, float]:
    """Return the least Σ_k v_k |p_k − ȳ_k| over all b of sign(f + b), and the minimiser b nearest to 0.

    All instances are in bags. No b sets a score to 0, or separates two scores that are equal up to rounding.
    """
    order = np.argsort(-scores, kind="stable")
    bag = np.repeat(np.arange(problem.n_bags), problem.sizes)
    part = problem.row_weight / np.add.reduceat(problem.row_weight, problem.offsets[:-1])[bag]  # of the bag
    bag, part = bag[order], part[order]
    # Instances become positive in this order, and each moves the share of its bag up by its part.
    by_bag = np.argsort(bag, kind="stable")
    total = np.cumsum(part[by_bag])
    after = np.empty(len(order))
    after[by_bag] = total - np.append(0.0, total)[problem.offsets[bag[by_bag]]]

    def off(share: np.ndarray, bags: np.ndarray) -> np.ndarray:
        away = np.maximum(np.maximum(problem.low[bags] - share, share - problem.high[bags]), 0.0)
        return np.asarray(problem.bag_weight[bags] * away)

    first = off(np.zeros(problem.n_bags), np.arange(problem.n_bags)).sum()
    errors = np.concatenate([[first], first + np.cumsum(off(after, bag) - off(after - part, bag))])
    ordered = scores[order]
    # b lies between the scores on the two sides of a cut.
    upper = np.concatenate([[np.inf], ordered])
    lower = np.concatenate([ordered, [-np.inf]])
    wide = float(np.ptp(scores)) or 1.0
    same = _SAME * max(wide, float(np.abs(scores).max()))  # scores of equal rows, which rounding must not tell apart
    possible = upper - lower > same
    least = errors[possible].min()
    near = possible & (errors <= least + 1e-9 * max(1.0, least))
    if (near & (lower <= -same) & (upper > same)).any():
        return float(least), 0.0
    cuts = np.clip((np.maximum(lower, ordered[-1] - wide) + np.minimum(upper, ordered[0] + wide)) / 2, lower, upper)
    cuts = cuts[near]
    return float(least), -float(cuts[np.abs(cuts).argmin()])
