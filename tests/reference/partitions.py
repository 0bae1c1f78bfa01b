"""Partitions of small sets, all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every partition of n items, as labels that number clusters by their first items."""
    if n == 0:
        yield ()
        return
    for head in partitions(n - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


def value(A: np.ndarray, y: tuple[int, ...]) -> float:
    """Σ A_ij over the pairs within clusters."""
    return float(sum(A[i, j] for i, j in combinations(range(len(y)), 2) if y[i] == y[j]))


def best(A: np.ndarray) -> tuple[tuple[int, ...], float]:
    """A best partition and its value."""
    found = max(partitions(len(A)), key=lambda y: value(A, y))
    return found, value(A, found)


def wrong_pairs(y: tuple[int, ...], z: tuple[int, ...]) -> int:
    """Pairs that one puts together and the other apart."""
    return sum((y[i] == y[j]) != (z[i] == z[j]) for i, j in combinations(range(len(y)), 2))
