"""Sets, bags and subspaces."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.kernels import Constant, Intersection, Jaccard, Linear, SetMean, Subspace
from reference.sets import binet_cauchy, intersection, jaccard, principal_angles, projection, set_mean

ELEMENTS = ["a", "b", "ä", "", 1, 2, 2**70, -3, 0.5, None, ("a", 1), ("a", (2, "b")), frozenset({"a", 1}), b"a"]


def sets(random: np.random.Generator, n: int) -> list[Any]:
    """Lists with repeats, sets, and mappings to counts; empty and equal ones among them."""
    found: list[Any] = [[], ["a", "a", "b"]]
    while len(found) < n:
        chosen = [ELEMENTS[i] for i in random.integers(0, len(ELEMENTS), random.integers(0, 9))]
        kind = random.integers(0, 3)
        found.append(
            chosen if kind == 0 else set(chosen) if kind == 1 else {e: int(random.integers(0, 4)) for e in chosen}
        )
    found[-1] = found[n // 2]
    return found[:n]


def weighted_sets(random: np.random.Generator, n: int) -> list[Any]:
    return [
        {int(e): float(w) for e, w in zip(random.integers(0, 6, 5), random.gamma(1.0, size=5), strict=True)}
        if i
        else {}
        for i in range(n)
    ]


def words(random: np.random.Generator, n: int) -> list[list[str]]:
    return [["ab"[i] * int(j) for i, j in random.integers(0, 2, (random.integers(0, 6), 2))] for _ in range(n)]


def bags(random: np.random.Generator, n: int) -> list[np.ndarray]:
    """Bags of vectors that span one to three dimensions of three."""
    found = [random.normal(size=(random.integers(1, 5), 3)) for _ in range(n)]
    found[-1] = found[n // 2]
    return found


def planes(random: np.random.Generator, n: int) -> list[np.ndarray]:
    found = [random.normal(size=(random.integers(2, 6), 4)) for _ in range(n)]
    found[-1] = found[n // 2]
    return found


def bags_of_sets(random: np.random.Generator, n: int) -> list[list[Any]]:
    return [sets(random, int(random.integers(2, 5))) for _ in range(n)]


def dot(x: Any, z: Any) -> float:
    return float(np.dot(x, z))


def shuffled(random: np.random.Generator, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x[random.permutation(len(x))]
    if isinstance(x, dict):
        names = list(x)
        return {names[i]: x[names[i]] for i in random.permutation(len(names))}
    listed = list(x)
    return [listed[i] for i in random.permutation(len(listed))]


def doubled(random: np.random.Generator, x: Any) -> Any:
    return x if isinstance(x, dict) else list(x) + list(x)


def as_tuple(random: np.random.Generator, x: Any) -> Any:
    return x if isinstance(x, dict) else tuple(x)


def respanned(random: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Other vectors with the same span: a well-conditioned change of basis."""
    Q, _ = np.linalg.qr(random.normal(size=(len(x), len(x))))
    return (Q * random.uniform(0.5, 2.0, len(x))) @ x


def rotated(random: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return np.linalg.qr(random.normal(size=(len(x), len(x))))[0] @ x


ORDER = {"order of the elements": shuffled, "kind of container": as_tuple}

CASES = [
    Case("intersection of sets", Intersection(), sets, intersection, ORDER | {"repeats": doubled}),
    *(
        Case(f"intersection {counts}", Intersection(counts), sets, partial(intersection, counts=counts), ORDER)
        for counts in ("product", "min")
    ),
    Case("intersection of weights", Intersection("min"), weighted_sets, partial(intersection, counts="min"), ORDER),
    Case("intersection of words", Intersection(), words, intersection, ORDER),
    Case("jaccard", Jaccard(), sets, jaccard, ORDER | {"repeats": doubled}),
    *(
        Case(f"jaccard {counts}", Jaccard(counts), sets, partial(jaccard, counts=counts), ORDER)
        for counts in ("product", "min")
    ),
    Case("jaccard of weights", Jaccard("min"), weighted_sets, partial(jaccard, counts="min"), ORDER),
    Case(
        "mean of linear", SetMean(Linear()), bags, partial(set_mean, kernel=dot),
        {"order of the elements": shuffled, "repeats": lambda random, x: np.vstack([x, x])},
    ),
    Case("mean of squares", SetMean(Linear() ** 2 + Constant(0.5)), bags,
         partial(set_mean, kernel=lambda a, b: dot(a, b) ** 2 + 0.5)),
    Case("mean of intersections", SetMean(Intersection()), bags_of_sets, partial(set_mean, kernel=intersection)),
    Case("mean of jaccard", SetMean(Jaccard()), bags_of_sets, partial(set_mean, kernel=jaccard)),
    Case("principal angles", Subspace(), bags, principal_angles, {"basis": respanned}, rtol=1e-7),
    Case(
        "principal angles of planes", Subspace(dim=2), planes, partial(principal_angles, dim=2),
        {"order of the vectors": shuffled, "rotation": rotated}, rtol=1e-7,
    ),
    Case("principal angles in feature space", Subspace(kernel=Linear(), dim=2), planes,
         partial(principal_angles, dim=2), rtol=1e-7),
    Case("projection", Subspace("projection"), bags, projection, {"basis": respanned}, rtol=1e-7),
    Case("projection in feature space", Subspace("projection", kernel=Linear(), dim=2), planes,
         partial(projection, dim=2), rtol=1e-7),
    Case("binet-cauchy 1", Subspace("binet_cauchy", dim=1), bags, partial(binet_cauchy, order=1),
         {"rotation": rotated}),
    Case("binet-cauchy 2", Subspace("binet_cauchy", dim=2), bags, partial(binet_cauchy, order=2),
         {"rotation": rotated}),
    Case("binet-cauchy in feature space", Subspace("binet_cauchy", dim=2, kernel=Linear()), planes,
         partial(binet_cauchy, order=2), rtol=1e-7),
]  # fmt: skip
