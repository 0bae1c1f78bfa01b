"""Kernels of strings by their definitions: slow, and obviously right. Strings are any sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

String = Sequence[Hashable]
Features = dict[Any, float]


def dot(a: Features, b: Features) -> float:
    return float(sum(value * b.get(key, 0) for key, value in a.items()))


def substrings(x: String, length: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(x[i : i + length]) for i in range(len(x) - length + 1))


def spectrum(
    x: String, z: String, lengths: Sequence[int], weight: Callable[[int], float], presence: bool = False
) -> float:
    total = 0.0
    for n in lengths:
        a, b = substrings(x, n), substrings(z, n)
        if presence:
            a, b = Counter(set(a)), Counter(set(b))
        total += weight(n) * dot(a, b)
    return total


def all_substrings(x: String, z: String, weight: Callable[[int], float]) -> float:
    return spectrum(x, z, range(1, min(len(x), len(z)) + 1), weight)


def mismatch_features(x: String, k: int, m: int, alphabet: Sequence[Hashable]) -> Features:
    found = {}
    for u in product(alphabet, repeat=k):
        windows = [x[i : i + k] for i in range(len(x) - k + 1)]
        found[u] = sum(sum(a != b for a, b in zip(u, window, strict=True)) <= m for window in windows)
    return found


def wildcard_features(x: String, k: int, m: int) -> Features:
    """k-mers with at most m places left open."""
    found: Features = Counter()
    for i in range(len(x) - k + 1):
        for n in range(min(m, k) + 1):
            for places in combinations(range(k), n):
                found[tuple(None if j in places else (x[i + j],) for j in range(k))] += 1
    return found


def gappy_features(x: String, k: int, gap: int | None, decay: float) -> Features:
    found: Features = Counter()
    for places in combinations(range(len(x)), k):
        span = places[-1] - places[0] + 1
        if gap is None or span <= k + gap:
            found[tuple(x[i] for i in places)] += decay**span
    return found


def weighted_degree(x: String, z: String, degree: int, shift: int, weight: Callable[[int], float]) -> float:
    total = 0.0
    for d in range(1, degree + 1):
        for i in range(len(x) - d + 1):
            for j in range(len(z) - d + 1):
                if abs(i - j) <= shift and tuple(x[i : i + d]) == tuple(z[j : j + d]):
                    total += weight(d) * (1 - abs(i - j) / (shift + 1))
    return total


def edit_distance(x: String, z: String, indel: float = 1.0, substitution: float = 1.0) -> float:
    @cache
    def d(i: int, j: int) -> float:
        if i == 0 or j == 0:
            return (i + j) * indel
        replaced = d(i - 1, j - 1) + (0.0 if x[i - 1] == z[j - 1] else substitution)
        return min(replaced, d(i - 1, j) + indel, d(i, j - 1) + indel)

    return d(len(x), len(z))
