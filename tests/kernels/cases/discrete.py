"""Objects that are equal or not, and convolutions of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.kernels import Convolution, Delta


def symbols(random: np.random.Generator, n: int) -> list[Any]:
    pool: list[Any] = ["a", "b", 1, (1, "a"), None, frozenset({1})]
    return [pool[i] for i in random.integers(len(pool), size=n)]


def strings(random: np.random.Generator, n: int) -> list[str]:
    return ["".join(random.choice(["a", "b"], size=random.integers(0, 9))) for _ in range(n - 1)] + ["abab"]


def sets(random: np.random.Generator, n: int) -> list[set[int]]:
    return [set(random.integers(6, size=random.integers(0, 6)).tolist()) for _ in range(n - 1)] + [{1, 2}]


def bigrams(x: str) -> list[str]:
    return [x[i : i + 2] for i in range(len(x) - 1)]


def splits(x: str) -> list[tuple[str, str]]:
    return [(x[:i], x[i:]) for i in range(len(x) + 1)]


CASES = [
    Case("delta", Delta(), symbols, lambda x, z: float(x == z)),
    Case(
        "convolution of bigrams", Convolution(bigrams, Delta()), strings,
        lambda x, z: sum(bigrams(x).count(s) * bigrams(z).count(s) for s in set(bigrams(x))),
    ),
    Case(
        "convolution of elements", Convolution(list, Delta()), sets, lambda x, z: len(x & z),
    ),
    Case(
        "convolution of splits", Convolution(splits, Delta(), Delta()), strings,
        lambda x, z: len(x) + 1.0 if x == z else 0.0,
    ),
]  # fmt: skip
