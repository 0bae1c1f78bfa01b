"""Transducers by listing paths, and rational kernels by their definitions: slow, and obviously right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from mercer.kernels import Transducer

SMALLEST = 1e-15  # real paths below this weight are not followed further: cycles that read and write nothing


def path_weights(T: Transducer, x: Any, y: Any) -> Iterator[float]:
    """The weight of every path that reads x and writes y; of cycles only rounds that still matter."""
    real = T.semiring == "real"

    def follow(state: Any, i: int, j: int, weight: float, seen: frozenset[Any]) -> Iterator[float]:
        if i == len(x) and j == len(y) and state in T.final:
            yield weight * T.final[state] if real else weight + T.final[state]
        for source, a, b, w, target in arcs:
            moves = source == state and (a is None or x[i : i + 1] == a) and (b is None or y[j : j + 1] == b)
            visited = seen | {target} if a is None and b is None else frozenset({target})
            after = weight * w if real else weight + w
            # Without negative cycles, going round is never lighter.
            again = a is None and b is None and target in seen
            if moves and (abs(after) >= SMALLEST if real else not again):
                yield from follow(target, i + (a is not None), j + (b is not None), after, visited)

    arcs = T.arcs
    for state, weight in T.initial.items():
        yield from follow(state, 0, 0, weight, frozenset({state}))


def weight(T: Transducer, x: Any, y: Any) -> float:
    """[[T]](x, y)."""
    return sum(path_weights(T, x, y)) if T.semiring == "real" else min(path_weights(T, x, y), default=math.inf)


def strings(alphabet: str, longest: int) -> list[str]:
    return ["".join(s) for n in range(longest + 1) for s in product(alphabet, repeat=n)]


def random_machine(
    random: np.random.Generator, semiring: str, inputs: Any = ("a", "b", None), outputs: Any = ("a", "b", None)
) -> Transducer:
    """Three states, some arcs with weights that are small where they read and write nothing."""
    T = Transducer(semiring)
    for _ in range(9):
        a, b = inputs[random.integers(len(inputs))], outputs[random.integers(len(outputs))]
        w = float(random.normal()) if semiring == "real" else float(random.integers(-2, 6))
        if a is None and b is None:
            w = 0.05 * w if semiring == "real" else abs(w)
        T.add_arc(int(random.integers(3)), a, b, w, int(random.integers(3)))
    T.set_initial(0).set_initial(1, 0.5).set_final(1, 2.0)
    return T.set_final(int(random.integers(3)), -0.5)


# ---------------------------------------------------------------------------------------------------- outputs


def ngram_outputs(x: str, n: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for i in range(len(x) - n + 1):
        found[x[i : i + n]] = found.get(x[i : i + n], 0.0) + 1.0
    return found


def gappy_outputs(x: str, n: int, decay: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for kept in combinations(range(len(x)), n):
        z = "".join(x[i] for i in kept)
        found[z] = found.get(z, 0.0) + decay ** (kept[-1] - kept[0] + 1)
    return found


def mismatch_outputs(x: str, k: int, m: int, alphabet: str) -> dict[str, float]:
    found = {}
    for z in map("".join, product(alphabet, repeat=k)):
        blocks = (x[i : i + k] for i in range(len(x) - k + 1))
        found[z] = float(sum(sum(a != b for a, b in zip(block, z, strict=True)) <= m for block in blocks))
    return found


def dot(a: dict[Any, float], b: dict[Any, float]) -> float:
    return sum(w * b.get(z, 0.0) for z, w in a.items())


def levenshtein(x: str, y: str) -> float:
    if not x or not y:
        return float(len(x) + len(y))
    return min(levenshtein(x[1:], y) + 1, levenshtein(x, y[1:]) + 1, levenshtein(x[1:], y[1:]) + (x[0] != y[0]))
