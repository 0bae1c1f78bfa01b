"""Slack rescaling of segmentations: the best score at each cost level gives the exact max Δ (1 + score − truth).

With an integer cost, the cost level is part of the state: T · K · C steps for each level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.segments import Segmentations
from mercer.structures.costs import Cost, SegmentCost
from mercer.structures.segment_parts import SegmentScores

MAX_WORK = 100_000_000  # numbers that a search may look at


def cut(theta: SegmentScores, at: slice) -> dict[str, Any]:
    """Return the parts of some positions."""
    parts: dict[str, Any] = {}
    for name in ("frames", "means", "starts", "edges", "spans", "features"):
        part = getattr(theta, name)
        parts[name] = None if part is None else part[at]
    if theta.marks is not None:
        parts["marks"] = tuple(m[at] for m in theta.marks)
    return parts


def levels_of(cost: Cost, y: Segmentations, n_labels: int, max_length: int) -> tuple[np.ndarray | None, float]:
    """Return the integer cost of each segment, by start, length and label; None without a common unit."""
    T = y.n_positions
    table = np.zeros((T, max_length, n_labels))
    if isinstance(cost, SegmentCost):
        table += cost.start_costs(y, n_labels)[:, None]
        known = y.lengths <= max_length
        table[y.starts[known], y.lengths[known] - 1, y.labels[known]] += cost.mark
    else:
        sums = np.concatenate([np.zeros((1, n_labels)), np.cumsum(cost.table(y.frames(), n_labels), axis=0)])
        for size in range(1, min(max_length, T) + 1):
            table[: T - size + 1, size - 1] = sums[size:] - sums[: T - size + 1]
    whole = np.rint(table * 1e6)
    if np.abs(whole - table * 1e6).max(initial=0.0) > 1e-3:
        return None, 1.0
    divisor = max(1, int(np.gcd.reduce(np.abs(whole).astype(np.int64), axis=None)))
    return (whole.astype(np.int64) // divisor), divisor / 1e6


def level_search(
    theta: SegmentScores, spans: np.ndarray, levels: np.ndarray, truth: float
) -> tuple[tuple[np.ndarray, np.ndarray], int, float]:
    """Return the segmentation with the largest level · (1 + score − truth); the cost level is part of the state."""
    T, K, C = spans.shape
    D = highest_level(levels)
    entered = np.full((T, C, D + 1), -np.inf)  # best score before a segment that starts here, at each level
    ended, sizes = np.full((T + 1, C, D + 1), -np.inf), np.zeros((T + 1, C, D + 1), np.int32)
    before = np.zeros((T, C, D + 1), np.int32)
    zero = np.zeros((T, C))
    starts = zero if theta.starts is None else theta.starts
    entered[0, :, 0] = theta.start + starts[0]
    for e in range(1, T + 1):
        for size in range(1, min(K, e) + 1):
            for c in np.flatnonzero(~np.isneginf(spans[e - size, size - 1])).tolist():
                shift = int(levels[e - size, size - 1, c])
                to, of = slice(max(shift, 0), D + 1 + min(shift, 0)), slice(max(-shift, 0), D + 1 - max(shift, 0))
                value = entered[e - size, c, of] + spans[e - size, size - 1, c]
                better = value > ended[e, c, to]
                ended[e, c, to][better], sizes[e, c, to][better] = value[better], size
        if e < T:
            into = theta.transitions if theta.edges is None else theta.transitions + theta.edges[e]
            scores = ended[e][:, None] + into[:, :, None]
            before[e] = scores.argmax(axis=0)
            entered[e] = scores.max(axis=0) + starts[e][:, None]
    last = ended[T] + theta.end[:, None]
    with np.errstate(invalid="ignore"):
        products = np.arange(D + 1) * (1.0 + last.max(axis=0) - truth)
    products[0] = 0.0
    level = int(np.argmax(products))
    length, label = np.zeros(T, np.int32), np.zeros(T, np.int32)
    if level == 0:
        return (length, label), 0, 0.0
    s, at, c = T, level, int(last[:, level].argmax())
    while True:
        size = int(sizes[s, c, at])
        s -= size
        length[s], label[s] = size, c
        if s == 0:
            return (length, label), level, float(products[level])
        at -= int(levels[s, size - 1, c])
        c = int(before[s, c, at])


def highest_level(levels: np.ndarray) -> int:
    """Return an upper bound on the cost level, from the most expensive segment at every position."""
    T, K, _ = levels.shape
    best = np.zeros(T + 1, np.int64)
    for e in range(1, T + 1):
        sizes = np.arange(1, min(K, e) + 1)
        best[e] = (best[e - sizes] + np.maximum(levels[e - sizes, sizes - 1].max(axis=1), 0)).max()
    return int(best[T])
