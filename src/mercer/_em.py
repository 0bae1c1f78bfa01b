"""Expectation maximisation from several starts: where to begin, when to stop, which run to keep.

Equal states are a saddle point of the likelihood. Random weights of positions average out over many positions and give
nearly equal states. Starts therefore come from the data, by three methods in turn:

- positions are clustered by their own features (k-means), symbols by the symbols before and after them;
- positions are clustered by their own features and those of the neighbouring positions, so that states may differ in
  their neighbours alone;
- parameters are drawn at random; for vectors, positions follow the nearest of random ones.

Short runs from many starts, then long ones from the best, find higher likelihoods at equal cost than long runs from few
(em-EM [Biernacki2003]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

SHORT = 20  # iterations of every start
FINALISTS = 2  # one of so many starts runs until convergence
SLOWEST = 0.9  # ratio of gains that is expected at least
KINDS = 3  # ways to start, which take turns
WIDEST = 32  # features that are clustered; more are projected at random
MOST = 20_000  # positions that centres are found for; the others follow the nearest centre
ROUNDS = 10  # of k-means
SOFTNESS = 0.2  # share of a position that is spread over all states


@dataclass
class Run:
    """A run: its current parameters, and the values of all iterations so far."""

    parameters: Any
    objective: list[float] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    converged: bool = False


def race(
    n_starts: int, begin: Callable[[int], Run], climb: Callable[[Run, int], Run], max_iter: int, tol: float
) -> Run:
    """Return the best of several runs: all are started, only some are finished.

    Parameters
    ----------
    n_starts : int
    begin : callable
        The number of a start → a run without iterations.
    climb : callable
        ``climb(run, n)`` iterates until the run has converged or made n iterations in all.
    max_iter, tol : int and float
        As for the estimators.
    """
    runs = [climb(begin(turn), min(SHORT, max_iter)) for turn in range(n_starts)]
    finished = [climb(run, max_iter) for run in _finalists(runs)]
    top = max(run.objective[-1] for run in finished)
    # The first of those that come to the highest objective, up to what the stop leaves open.
    return next(run for run in finished if top - run.objective[-1] <= max(tol, 0.0) * (top - run.objective[0]))


def _finalists(runs: list[Run]) -> list[Run]:
    """Half of the runs: the best of each kind of start, since what rises first need not rise most, then the best."""
    order = sorted(range(len(runs)), key=lambda turn: -runs[turn].objective[-1])
    leaders = [next((t for t in order if t % KINDS == kind), None) for kind in range(KINDS)]
    order.sort(key=lambda turn: turn not in leaders)
    return [runs[turn] for turn in sorted(order[: max(1, len(runs) // FINALISTS)])]


def is_over(objective: list[float], tol: float) -> bool:
    """Return whether the remaining gain is below ``tol`` times the gain so far.

    Gains g of expectation maximisation fall geometrically in the end. With r = g_t / g_{t−1}, the remaining gain is g_t
    r / (1 − r) (Aitken). First gains fall faster than later ones, so r is taken as at least `SLOWEST`. If gains grow,
    the run is leaving a saddle point and continues.
    """
    if len(objective) < 2 or tol < 0:
        return False
    gain = objective[-1] - objective[-2]
    if gain <= 1e-13 * abs(objective[-1]):
        return True
    before = objective[-2] - objective[-3] if len(objective) > 2 else 0.0
    ratio = max(gain / before, SLOWEST) if before > 0 else 1.0
    return ratio < 1 and gain * ratio / (1 - ratio) <= tol * (objective[-1] - objective[0])


def pair_counts(
    responsibilities: np.ndarray, offsets: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of first states and of successive states, as if positions were independent.

    ``weights`` holds a weight for each position, constant within a sequence.
    """
    first = offsets[:-1][np.diff(offsets) > 0]
    inner = np.ones(len(responsibilities), bool)
    inner[first] = False
    at = np.flatnonzero(inner)
    weighted = responsibilities if weights is None else weights[:, None] * responsibilities
    return weighted[first].sum(axis=0), responsibilities[at - 1].T @ weighted[at]


def random_counts(total: np.ndarray, k: int, random: np.random.Generator) -> np.ndarray:
    """Return counts (features, k) that differ at random from the total counts of the features."""
    return (total * random.exponential(size=(k, len(total)))).T


def clusters(points: np.ndarray, k: int, random: np.random.Generator, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the cluster of each point: k-means from the seeds of k-means++ [Arthur2007]_.

    Parameters
    ----------
    points : array (n, d)
    k : int
        Clusters; some may stay empty.
    weights : array (n,), optional
        Weight of each point.

    References
    ----------
    .. [Arthur2007] D. Arthur and S. Vassilvitskii. k-means++: the advantages of careful seeding. SODA, 2007.
    """
    n = len(points)
    mass = np.ones(n) if weights is None else weights
    some = random.choice(n, MOST, replace=False) if n > MOST else slice(None)
    centres = _centres(points[some], k, mass[some], random)
    return np.concatenate([_nearest(points[a:b], centres) for a, b in pairwise([*range(0, n, MOST), n])])


def _centres(points: np.ndarray, k: int, mass: np.ndarray, random: np.random.Generator) -> np.ndarray:
    centres = points[[_draw(mass, random)]]
    near = _squares(points, centres)[:, 0]
    while len(centres) < k:
        at = _draw(near * mass if (near * mass).sum() > 0 else mass, random)
        centres = np.concatenate([centres, points[[at]]])
        near = np.minimum(near, _squares(points, points[[at]])[:, 0])
    for _ in range(ROUNDS):
        member = np.eye(k)[_nearest(points, centres)] * mass[:, None]
        count = member.sum(axis=0)
        moved = np.where(count[:, None] > 0, member.T @ points / np.maximum(count, 1e-300)[:, None], centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _draw(weights: np.ndarray, random: np.random.Generator) -> int:
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, random.random() * sums[-1], side="right")), len(sums) - 1)


def _squares(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    distances = (points**2).sum(axis=1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(distances, 0.0)


def _nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return _squares(points, centres).argmin(axis=1)


def around(features: np.ndarray, offsets: np.ndarray, width: int) -> np.ndarray:
    """Return the mean features of the `width` positions before and after each, side by side; zero beyond the ends."""
    n, d = features.shape
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    out = np.zeros((n, 2 * d))
    for k in range(1, width + 1):
        same = sequence[k:] == sequence[:-k]
        out[k:, :d] += features[:-k] * same[:, None]
        out[:-k, d:] += features[k:] * same[:, None]
    return out / width


def standardised(points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return columns with mean 0 and variance 1 (0 for constant ones)."""
    away = points - np.average(points, axis=0, weights=weights)
    spread = np.sqrt(np.average(away**2, axis=0, weights=weights))
    return away / np.where(spread > 0, spread, 1.0)


def soft(member: np.ndarray, k: int) -> np.ndarray:
    """Return responsibilities that lean to the given clusters."""
    return (1.0 - SOFTNESS) * np.eye(k)[member] + SOFTNESS / k


def projected(matrix: Any, random: np.random.Generator) -> np.ndarray:
    """Return the rows divided by their sums, as they are or, where they are many, in random directions."""
    sums = np.asarray(matrix.sum(axis=1), dtype=float).ravel()
    scale = 1.0 / np.where(sums > 0, sums, 1.0)
    if matrix.shape[1] <= WIDEST:
        dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, float)
        return dense * scale[:, None]
    return np.asarray(matrix @ random.normal(size=(matrix.shape[1], WIDEST))) * scale[:, None] / np.sqrt(WIDEST)


def of_counts(matrix: Any, offsets: np.ndarray, k: int, turn: int, random: np.random.Generator) -> np.ndarray | None:
    """Return responsibilities for features that are counts; None asks for random parameters."""
    kind = turn % KINDS
    if kind == 2:
        return None
    rows = projected(matrix, random)
    width = 1 + turn // KINDS % 3
    beside = around(rows, offsets, width)
    if kind == 0 and k <= matrix.shape[1]:
        count = np.asarray(matrix.sum(axis=0), dtype=float).ravel()
        contexts = np.asarray(matrix.T @ beside) / np.maximum(count, 1.0)[:, None]
        of_symbol = clusters(standardised(contexts, np.maximum(count, 1e-12)), k, random, count + 1e-12)
        shares = np.asarray(matrix @ np.eye(k)[of_symbol], dtype=float)
        sums = shares.sum(axis=1, keepdims=True)
        shares = np.where(sums > 0, shares / np.where(sums > 0, sums, 1.0), 1.0 / k)
        return (1.0 - SOFTNESS) * shares + SOFTNESS / k
    return soft(clusters(np.concatenate([rows, beside], axis=1), k, random), k)


def of_vectors(matrix: np.ndarray, offsets: np.ndarray, k: int, turn: int, random: np.random.Generator) -> np.ndarray:
    """Return responsibilities for vectors."""
    points = standardised(matrix)
    kind = turn % KINDS
    if kind == 2:
        chosen = random.choice(len(points), size=k, replace=len(points) < k)
        return np.eye(k)[_nearest(points, points[chosen])]
    if kind == 1:
        width = 2 + turn // KINDS % 3
        beside = around(np.concatenate([points, points**2], axis=1), offsets, width)
        d = 2 * points.shape[1]
        local = standardised((beside[:, :d] + beside[:, d:]) / 2)
        points = np.concatenate([points, local], axis=1)
    return np.eye(k)[clusters(points, k, random)]
