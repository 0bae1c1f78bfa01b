"""Correlation clustering: partitions that keep attracting pairs together and separate repelling pairs.

    max_y Σ_{i<j} A_ij x_ij,    x_ij = 1 where i and j share a cluster of y, else 0

A is symmetric, with values of either sign; the number of clusters follows from it. The problem is NP-hard, so there are
three methods:

``greedy``  merge the two clusters with the highest mean affinity while it is positive, then move single items and merge
            or dissolve clusters while that helps. A lower bound.
``lp``      relax x to 0 ≤ x_ij ≤ 1 with x_ij + x_jk − x_ik ≤ 1 for all triples, added only when the solution
            violates them. An upper bound, and the optimum itself if x is integral.
``exact``   all partitions of up to ten items (a recursion over subsets); for more, the same program with integral x.

Pairs (i, j), i < j, are laid out row by row in vectors of length n (n − 1) / 2: "condensed".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from mercer._validation import check_choice

DECODERS = ("greedy", "lp", "exact")
_ENUMERATED = 10  # items up to which all partitions are compared
_ROUNDS = 200  # of adding triangles
_ADDED = 2000  # triangles in a round
_VIOLATED = 1e-6


class Clustering(NamedTuple):
    """A partition, its value, and a bound on the value of every partition.

    Attributes
    ----------
    labels : array of int
        Clusters, numbered in the order of their first items.
    value : float
        Summed affinity of the pairs that share a cluster.
    bound : float
        No partition has a higher value; ``inf`` for a greedy search.
    """

    labels: np.ndarray
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Return ``bound - value``, the maximum distance from the best partition; 0 proves optimality."""
        return max(0.0, self.bound - self.value)


def correlation_clustering(affinity: Any, decode: str = "lp") -> Clustering:
    """Return the partition with the highest summed affinity within its clusters.

    Parameters
    ----------
    affinity : array of shape (n, n)
        Symmetric; positive values attract. The diagonal is ignored.
    decode : {"greedy", "lp", "exact"}, default="lp"
        ``"greedy"``: merging and moving; fast, without a bound. ``"lp"``: a linear relaxation; if its solution is
        integral it is optimal, else the best of its rounding and the greedy partition, with the bound. ``"exact"``: the
        optimum.

    Returns
    -------
    clustering : Clustering
        ``labels``, ``value`` and ``bound``.

    Examples
    --------
    >>> from mercer.clustering import correlation_clustering
    >>> A = [[0, 2, -1, -1], [2, 0, 1, -3], [-1, 1, 0, -2], [-1, -3, -2, 0]]
    >>> correlation_clustering(A, decode="exact")
    Clustering(labels=array([0, 0, 0, 1]), value=2.0, bound=2.0)
    """
    check_choice("decode", decode, DECODERS)
    A = np.asarray(affinity, dtype=float)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"affinity must be a square matrix, got shape {A.shape}")
    off = ~np.eye(len(A), dtype=bool)
    if not np.isfinite(A[off]).all():
        raise ValueError("affinity must be finite")
    if not np.allclose(A[off], A.T[off], rtol=1e-9, atol=1e-12):
        raise ValueError("affinity must be symmetric")
    return decoded(A[np.triu_indices(len(A), 1)], len(A), decode)


def decoded(a: np.ndarray, n: int, decode: str) -> Clustering:
    """Return the partition for condensed affinities of n items, by one of the three methods."""
    if decode == "greedy":
        labels = greedy_partition(a, n)
        return Clustering(labels, float(a @ together(labels)), np.inf)
    if decode == "exact":
        labels = best_partition(a, n)
        value = float(a @ together(labels))
        return Clustering(labels, value, value)
    x, bound = relaxed_partition(a, n)
    labels = rounded(a, x, n)
    return Clustering(labels, float(a @ together(labels)), bound)


# ----------------------------------------------------------------------------------------------------- between forms


@lru_cache(maxsize=64)
def upper(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the items i < j of the condensed pairs."""
    i, j = np.triu_indices(n, 1)
    i.flags.writeable = j.flags.writeable = False
    return i, j


def n_items(n_pairs: int) -> int:
    """n of n (n − 1) / 2."""
    return int((1 + np.sqrt(1 + 8 * n_pairs)) / 2 + 0.5)


def canonical(labels: Any) -> np.ndarray:
    """Return clusters numbered in the order of their first items."""
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def together(labels: np.ndarray) -> np.ndarray:
    """Condensed: 1.0 for pairs that share a cluster."""
    i, j = upper(len(labels))
    return (labels[i] == labels[j]).astype(float)


def square(a: np.ndarray, n: int) -> np.ndarray:
    """Return the symmetric matrix of a condensed vector, with zeros on the diagonal."""
    A = np.zeros((n, n))
    i, j = upper(n)
    A[i, j] = A[j, i] = a
    return A


# ------------------------------------------------------------------------------------------------------------ greedy


def greedy_partition(a: np.ndarray, n: int, start: np.ndarray | None = None) -> np.ndarray:
    """Return the best partition by merging and local moves, from single items and from ``start``."""
    A = square(a, n)
    partitions = [improved(A, agglomerated(A))]
    if start is not None:
        partitions.append(improved(A, start))
    values = [float(a @ together(labels)) for labels in partitions]
    return partitions[int(np.argmax(values))]


def agglomerated(A: np.ndarray) -> np.ndarray:
    """Merge the two clusters with the highest mean affinity while this is positive."""
    n = len(A)
    sums, sizes = A.copy(), np.ones(n)
    mean = A.copy()
    np.fill_diagonal(mean, -np.inf)
    labels = np.arange(n)
    for _ in range(max(0, n - 1)):
        i, j = divmod(int(mean.argmax()), n)
        if mean[i, j] <= 0:
            break
        labels[labels == j] = i
        sums[i] += sums[j]
        sums[:, i] += sums[:, j]
        sizes[i] += sizes[j]
        merged = np.where(np.isneginf(mean[i]), -np.inf, sums[i] / (sizes[i] * sizes))
        mean[i], mean[:, i] = merged, merged
        mean[j], mean[:, j] = -np.inf, -np.inf
        mean[i, i] = -np.inf
    return canonical(labels)


def improved(A: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Improve by local search: the best move of one item to any cluster or a new one, else the best merge."""
    n = len(A)
    labels = canonical(labels)
    small = 1e-12 * max(1.0, float(np.abs(A).max(initial=0.0)))
    items = np.arange(n)
    inside = A @ (labels[:, None] == items)  # affinity of item i to cluster c; clusters without items are free places
    while n:
        gain = inside - inside[items, labels][:, None]
        i, c = divmod(int(gain.argmax()), n)
        if gain[i, c] > small:
            inside[:, labels[i]] -= A[:, i]
            inside[:, c] += A[:, i]
            labels[i] = c
            continue
        between = (items[:, None] == labels) @ inside
        np.fill_diagonal(between, -np.inf)
        c, d = divmod(int(between.argmax()), n)
        if between[c, d] <= small:
            break
        inside[:, c] += inside[:, d]
        inside[:, d] = 0.0
        labels[labels == d] = c
    return canonical(labels)


# ------------------------------------------------------------------------------------------------------------- exact


@lru_cache(maxsize=16)
def _subsets(n: int) -> list[np.ndarray]:
    """For every set of items (a bit mask): its subsets that hold its lowest item."""
    result = [np.zeros(1, dtype=np.int64)]
    for mask in range(1, 1 << n):
        low = mask & -mask
        rest, sub, subs = mask ^ low, mask ^ low, []
        while True:
            subs.append(sub | low)
            if not sub:
                break
            sub = (sub - 1) & rest
        result.append(np.array(subs, dtype=np.int64))
    return result


def best_partition(a: np.ndarray, n: int) -> np.ndarray:
    """Return an optimal partition."""
    if n > _ENUMERATED:
        x = _lazy(a, n, integral=True)[0]
        return canonical(components(x > 0.5, n))
    A = square(a, n)
    weight = np.zeros(1 << n)  # of a cluster
    for i in range(n):
        masks = np.arange(1 << i)
        bits = (masks[:, None] >> np.arange(i)) & 1
        weight[(1 << i) + masks] = weight[masks] + bits @ A[i, :i]
    best, choice = np.zeros(1 << n), np.zeros(1 << n, dtype=np.int64)
    for mask, subs in enumerate(_subsets(n)):
        if mask:
            values = weight[subs] + best[mask ^ subs]
            k = int(values.argmax())
            best[mask], choice[mask] = values[k], subs[k]
    labels, mask = np.zeros(n, dtype=np.int64), (1 << n) - 1
    while mask:
        labels[[i for i in range(n) if choice[mask] >> i & 1]] = mask
        mask ^= int(choice[mask])
    return canonical(labels)


# ------------------------------------------------------------------------------------------------- linear relaxation


def relaxed_partition(a: np.ndarray, n: int) -> tuple[np.ndarray, float]:
    """Return the optimal x of the relaxation, condensed, and its value, an upper bound."""
    return _lazy(a, n, integral=False)


def rounded(a: np.ndarray, x: np.ndarray, n: int) -> np.ndarray:
    """Round x: x itself if integral, else the best of its thresholds and the greedy partition, improved."""
    if is_integral(x):
        return canonical(components(x > 0.5, n))
    A = square(a, n)
    starts = [components(x > threshold, n) for threshold in (0.4, 0.5, 0.67, 0.9)]
    partitions = [improved(A, labels) for labels in [*starts, agglomerated(A)]]
    return partitions[int(np.argmax([float(a @ together(labels)) for labels in partitions]))]


def is_integral(x: np.ndarray) -> bool:
    """Return whether x describes a partition."""
    return bool((np.minimum(x, 1 - x) < 1e-6).all())


def components(linked: np.ndarray, n: int) -> np.ndarray:
    """Return connected components over the linked pairs."""
    from scipy.sparse.csgraph import connected_components

    i, j = upper(n)
    graph = csr_array((np.ones(int(linked.sum())), (i[linked], j[linked])), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _lazy(a: np.ndarray, n: int, integral: bool) -> tuple[np.ndarray, float]:
    """The program with the triangles that were broken so far, until none is."""
    x = (a > 0).astype(float)
    bound = float(np.maximum(a, 0).sum())
    rows: list[np.ndarray] = []
    seen: set[tuple[int, int, int]] = set()
    for _ in range(_ROUNDS):
        new = [t for t in _broken(x, n) if t not in seen]
        if not new:
            break
        seen.update(new)
        rows.extend(np.array(t) for t in new)
        x, bound = _solve(a, np.array(rows), integral)
    return x, bound


def _broken(x: np.ndarray, n: int) -> list[tuple[int, int, int]]:
    """The most broken triangles, as pairs (ij, jk, ik): x_ij + x_jk ≤ 1 + x_ik."""
    X = square(x, n)
    place = np.zeros((n, n), dtype=np.int64)
    rows, columns = upper(n)
    place[rows, columns] = place[columns, rows] = np.arange(len(x))
    broken: list[tuple[float, int, int, int]] = []
    for j in range(n):  # the item in the middle; n² at a time
        excess = X[j][:, None] + X[j][None, :] - X - 1.0
        excess[j, :] = excess[:, j] = 0.0
        i, k = np.nonzero(np.triu(excess > _VIOLATED, 1))
        broken.extend(zip(-excess[i, k], place[i, j], place[j, k], place[i, k], strict=True))
    broken.sort()
    return [(int(p), int(q), int(r)) for _, p, q, r in broken[:_ADDED]]


def _solve(a: np.ndarray, triangles: np.ndarray, integral: bool) -> tuple[np.ndarray, float]:
    m, t = len(a), len(triangles)
    values = np.tile([1.0, 1.0, -1.0], t)
    matrix = csr_array((values, (np.repeat(np.arange(t), 3), triangles.ravel())), shape=(t, m))
    if integral:
        program = milp(
            -a,
            integrality=np.ones(m),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, -np.inf, np.ones(t)),
            options={"mip_rel_gap": 0.0},
        )
    else:
        program = linprog(-a, A_ub=matrix, b_ub=np.ones(t), bounds=(0, 1), method="highs")
    if program.x is None:
        raise RuntimeError(f"the linear program was not solved: {program.message}")
    x = np.round(program.x) if integral else np.clip(program.x, 0.0, 1.0)
    x[np.minimum(x, 1 - x) < 1e-9] = np.round(x[np.minimum(x, 1 - x) < 1e-9])
    return x, float(-program.fun)
