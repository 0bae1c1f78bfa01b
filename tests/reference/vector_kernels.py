"""Kernels of two vectors by their definitions: loops over coordinates, subsets, windows and patches."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import kv


def dot(x: Any, z: Any) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(x, z, strict=True))


def squared_distance(x: Any, z: Any) -> float:
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True))


def absolute_distance(x: Any, z: Any) -> float:
    return math.fsum(abs(float(a) - float(b)) for a, b in zip(x, z, strict=True))


def matern(x: Any, z: Any, length_scale: float, nu: float) -> float:
    r = math.sqrt(2 * nu * squared_distance(x, z)) / length_scale
    return 1.0 if r == 0 else float(2 ** (1 - nu) / gamma_function(nu) * r**nu * kv(nu, r))


def anova(x: Any, z: Any, degree: int, gamma: float | None) -> float:
    values = [a * b if gamma is None else math.exp(-gamma * (a - b) ** 2) for a, b in zip(x, z, strict=True)]
    return math.fsum(math.prod(values[k] for k in chosen) for chosen in combinations(range(len(values)), degree))


def intersection(x: Any, z: Any) -> float:
    return math.fsum(min(a, b) for a, b in zip(x, z, strict=True))


def chi_squared(x: Any, z: Any, gamma: float | None) -> float:
    pairs = [(a, b) for a, b in zip(x, z, strict=True) if a + b > 0]
    if gamma is None:
        return math.fsum(2 * a * b / (a + b) for a, b in pairs)
    return math.exp(-gamma * math.fsum((a - b) ** 2 / (a + b) for a, b in pairs))


def locality(x: Any, z: Any, weights: Any, window: Any, p1: int, p2: int, channels: int) -> float:
    positions, half = len(x) // channels, len(window) // 2
    agree = [dot(x[p * channels : (p + 1) * channels], z[p * channels : (p + 1) * channels]) for p in range(positions)]
    total = 0.0
    for p in range(positions):
        inside = sum(window[j + half] * agree[p + j] for j in range(-half, half + 1) if 0 <= p + j < positions)
        total += weights[p] * inside**p1
    return total**p2


def pyramid(x: Any, z: Any, shape: tuple[int, ...], patch: tuple[int, int], p1: int, p2: int, stride: int) -> float:
    a, b = np.reshape(x, shape), np.reshape(z, shape)
    total = 0.0
    for r in range(0, shape[0] - patch[0] + 1, stride):
        for c in range(0, shape[1] - patch[1] + 1, stride):
            here = slice(r, r + patch[0]), slice(c, c + patch[1])
            total += float((a[here] * b[here]).sum()) ** p1
    return total**p2


# ------------------------------------------------------------------------------------------------ B-splines


STEP = 1.0 / 2000


@lru_cache(maxsize=16)
def _convolved(order: int) -> np.ndarray:
    """B_order at the middles of the cells of a grid, by numeric convolution with B_0 (the midpoint rule)."""
    if order == 0:
        return np.ones(round(1 / STEP))
    return np.convolve(_convolved(order - 1), _convolved(0)) * STEP


def b_spline_by_convolution(order: int, t: float) -> float:
    """B_order(t), to about STEP².

    The convolution of n cells with m cells has n + m − 1 values; the middle of all of them is at t = 0.
    """
    values = _convolved(order)
    at = (len(values) - 1) / 2 + t / STEP
    low = int(np.floor(at))
    if low < 0 or low + 1 >= len(values):
        return 0.0
    share = at - low
    return float((1 - share) * values[low] + share * values[low + 1])


def b_spline(order: int, t: float) -> float:
    """B_order(t) by the alternating sum of truncated powers, in exact arithmetic."""
    from fractions import Fraction

    at = Fraction(t) + Fraction(order + 1, 2)
    total = Fraction(0)
    for r in range(order + 2):
        if at - r > 0 or (order == 0 and at - r == 0):
            total += (-1) ** r * math.comb(order + 1, r) * (at - r) ** order
    return float(total / math.factorial(order))
