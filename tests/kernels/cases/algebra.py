"""Compositions of kernels of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.kernels import Constant, Convolution, DirectSum, FunctionKernel, Linear, TensorProduct

POINTS = np.array([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0], [0.0, 0.0, 3.0]])
COEF = np.array([0.5, -2.0, 1.0])


def vectors(random: np.random.Generator, n: int) -> np.ndarray:
    X = random.normal(size=(n, 3))
    X[0] = 0.0
    X[-1] = X[n // 2]
    return X


def pairs(random: np.random.Generator, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(vectors(random, n), vectors(random, n), strict=True))


def bags(random: np.random.Generator, n: int) -> list[list[list[float]]]:
    return [random.normal(size=(random.integers(0, 4), 2)).tolist() for _ in range(n)]


def dot(x: Any, z: Any) -> float:
    return float(np.dot(x, z))


def total(x: Any) -> float:
    return float(np.sum(x))


def cosine(x: Any, z: Any) -> float:
    scale = np.linalg.norm(x) * np.linalg.norm(z)
    return dot(x, z) / scale if scale else 0.0


def bag_pairs(x: Any, z: Any) -> float:
    return sum(dot(a, b) ** 2 for a in x for b in z)


def identity(bag: Any) -> Any:
    return bag


CASES = [
    Case("sum", 2.0 * Linear() + Linear() ** 3 + 0.5, vectors, lambda x, z: 2 * dot(x, z) + dot(x, z) ** 3 + 0.5),
    Case("product", (Linear() + 1.0) * Linear(), vectors, lambda x, z: (dot(x, z) + 1) * dot(x, z)),
    Case("constant", Constant(3.0), vectors, lambda x, z: 3.0),
    Case("function", FunctionKernel(total), vectors, lambda x, z: total(x) * total(z)),
    Case("normalized", Linear().normalized(), vectors, cosine),
    Case(
        "translated", Linear().translated(POINTS, COEF), vectors, lambda x, z: dot(x + COEF @ POINTS, z + COEF @ POINTS)
    ),
    Case(
        "centered", Linear().centered(POINTS), vectors,
        lambda x, z: dot(x - POINTS.mean(axis=0), z - POINTS.mean(axis=0)),
    ),
    Case("corrected", Linear().corrected(POINTS), vectors, dot),
    Case("column", Linear().on(2), vectors, lambda x, z: x[2] * z[2]),
    Case("columns", Linear().on([0, 2]), vectors, lambda x, z: x[0] * z[0] + x[2] * z[2]),
    Case(
        "tensor product", TensorProduct(Linear(), Linear()), pairs,
        lambda x, z: dot(x[0], z[0]) * dot(x[1], z[1]),
    ),
    Case(
        "direct sum", DirectSum(Linear(), Linear() ** 2), pairs,
        lambda x, z: dot(x[0], z[0]) + dot(x[1], z[1]) ** 2,
    ),
    Case(
        "convolution", Convolution(identity, Linear() ** 2), bags, bag_pairs,
        {"order of the parts": lambda random, x: [x[i] for i in random.permutation(len(x))]},
    ),
]  # fmt: skip
