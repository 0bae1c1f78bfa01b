"""Kernels of sets, bags and subspaces by their definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np


def counts_of(x: Any) -> dict[Any, float]:
    if isinstance(x, Mapping):
        return {element: float(weight) for element, weight in x.items() if weight}
    return {element: float(count) for element, count in Counter(x.tolist() if hasattr(x, "tolist") else x).items()}


def intersection(x: Any, z: Any, counts: str = "set") -> float:
    a, b = counts_of(x), counts_of(z)
    if counts == "set":
        return float(len(set(a) & set(b)))
    if counts == "product":
        return sum(a[e] * b[f] for e in a for f in b if e == f)
    return sum(min(a.get(e, 0.0), b.get(e, 0.0)) for e in set(a) | set(b))


def jaccard(x: Any, z: Any, counts: str = "set") -> float:
    a, b = counts_of(x), counts_of(z)
    if not a and not b:
        return 1.0
    if counts == "set":
        return len(set(a) & set(b)) / len(set(a) | set(b))
    if counts == "min":
        every = set(a) | set(b)
        return sum(min(a.get(e, 0), b.get(e, 0)) for e in every) / sum(max(a.get(e, 0), b.get(e, 0)) for e in every)
    m = intersection(x, z, "product")
    return m / (intersection(x, x, "product") + intersection(z, z, "product") - m)


def set_mean(x: Any, z: Any, kernel: Callable[[Any, Any], float]) -> float:
    return sum(kernel(a, b) for a in x for b in z) / (len(x) * len(z))


def orthonormal(X: Any, dim: int | None = None) -> np.ndarray:
    """An orthonormal basis of the span of the rows, as columns."""
    X = np.asarray(X, float)
    vectors = np.linalg.eigh(X.T @ X)[1]
    rank = np.linalg.matrix_rank(X, tol=1e-7 * np.linalg.norm(X, 2)) if dim is None else dim
    return vectors[:, ::-1][:, :rank]


def cosines(x: Any, z: Any, dim: int | None = None) -> np.ndarray | None:
    """Cosines of principal angles by maximising over unit vectors, one after the other; None for unequal dimensions."""
    U, V = orthonormal(x, dim), orthonormal(z, dim)
    found = []
    for _ in range(min(U.shape[1], V.shape[1])):
        M = U.T @ V
        values, vectors = np.linalg.eigh(M @ M.T)
        found.append(np.sqrt(max(0.0, values[-1])))
        a = vectors[:, -1]
        b = M.T @ a
        U = U @ _complement(a)
        V = V @ _complement(b / np.linalg.norm(b) if np.linalg.norm(b) > 1e-12 else np.eye(len(b))[0])
    return np.array(found)


def _complement(a: np.ndarray) -> np.ndarray:
    """An orthonormal basis of all that is orthogonal to a."""
    return np.linalg.svd(a[None, :])[2][1:].T


def principal_angles(x: Any, z: Any, dim: int | None = None) -> float:
    if orthonormal(x, dim).shape[1] != orthonormal(z, dim).shape[1]:
        return 0.0
    return float(np.prod(cosines(x, z, dim) ** 2))


def projection(x: Any, z: Any, dim: int | None = None) -> float:
    U, V = orthonormal(x, dim), orthonormal(z, dim)
    return float(np.trace(U @ U.T @ V @ V.T))


def binet_cauchy(x: Any, z: Any, order: int) -> float:
    A, B = np.asarray(x, float), np.asarray(z, float)
    return float(
        sum(
            np.linalg.det(A[list(S)] @ B[list(T)].T) ** 2
            for S in combinations(range(len(A)), order)
            for T in combinations(range(len(B)), order)
        )
    )
