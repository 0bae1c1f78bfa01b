"""String kernels by their definitions, on dictionaries: slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product

Features = Counter


def inner(a: Features, b: Features) -> float:
    return sum(value * b[key] for key, value in a.items())


def spectrum(x: str | bytes, k: int, weight: Callable[[int], float]) -> Features:
    return Counter({u: weight(k) * n for u, n in Counter(x[i : i + k] for i in range(len(x) - k + 1)).items()})


def bounded(x: str | bytes, k: int, weight: Callable[[int], float]) -> Features:
    found: Features = Counter()
    for n in range(1, k + 1):
        found.update(spectrum(x, n, weight))
    return found


def mismatch(x: str, k: int, m: int, alphabet: str, weight: Callable[[int], float]) -> Features:
    """Over all strings of k letters of the alphabet."""
    found: Features = Counter()
    for letters in product(sorted(alphabet), repeat=k):
        places = [x[i : i + k] for i in range(len(x) - k + 1)]
        near = sum(sum(a != b for a, b in zip(letters, place, strict=True)) <= m for place in places)
        if near:
            found["".join(letters)] = weight(k) * near
    return found


def gappy(x: str, k: int, gap: int, weight: Callable[[int], float]) -> Features:
    found: Features = Counter()
    for places in combinations(range(len(x)), k):
        span = places[-1] - places[0] + 1
        if span <= k + gap:
            found["".join(x[i] for i in places)] += weight(span)
    return found


def positional(x: str, k: int, shift: int, weight: Callable[[int], float]) -> Features:
    found: Features = Counter()
    for n in range(1, k + 1):
        for i in range(len(x) - n + 1):
            for s in range(shift + 1):
                found[x[i : i + n], i + s] += weight(n)
    return found


def positional_kernel(x: str, z: str, k: int, shift: int, weight: Callable[[int], float]) -> float:
    """The closed form: equal substrings at places i and j count shift + 1 − |i − j|."""
    total = 0.0
    for n in range(1, k + 1):
        for i in range(len(x) - n + 1):
            for j in range(len(z) - n + 1):
                if x[i : i + n] == z[j : j + n]:
                    total += weight(n) ** 2 * max(0, shift + 1 - abs(i - j))
    return total
