"""Generative models and kernels from them by their definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal


def numeric_gradient(model: Any, x: Any, step: float = 1e-5) -> np.ndarray:
    """∂ log p(x | θ) / ∂θ by central differences."""
    theta = model.parameters
    found = np.zeros(len(theta))
    for i in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        h = step * max(1.0, abs(theta[i]))
        up[i] += h
        down[i] -= h
        found[i] = (model.at(up).log_prob([x])[0] - model.at(down).log_prob([x])[0]) / (2 * h)
    return found


def hmm_probability(pi: Any, A: Any, B: Any, codes: Sequence[int]) -> float:
    """The sum over all paths of states."""
    S = len(pi)
    total = 0.0
    for path in product(range(S), repeat=len(codes)):
        p = 1.0
        for t, (s, x) in enumerate(zip(path, codes, strict=True)):
            p *= (pi[s] if t == 0 else A[path[t - 1]][s]) * B[s][x]
        total += p
    return total


def mixture_log_density(x: Any, weights: Any, means: Any, covariances: Any) -> float:
    parts = zip(weights, means, covariances, strict=True)
    return float(np.log(sum(w * multivariate_normal.pdf(x, m, C) for w, m, C in parts)))


def fisher(x: Any, z: Any, score: Callable[[Any], np.ndarray], information: Any) -> float:
    return float(score(x) @ np.linalg.solve(information, score(z)))


def gaussian_of(bag: Any, reg: float, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    X = np.asarray(bag, float)
    covariance = np.cov(X.T, bias=True).reshape(X.shape[1], X.shape[1]) if len(X) > 1 else np.zeros((X.shape[1],) * 2)
    covariance = np.diag(np.diag(covariance)) if diagonal else covariance
    return X.mean(axis=0), covariance + reg * np.eye(X.shape[1])


def gaussian_product(x: Any, z: Any, rho: float, reg: float, diagonal: bool = False) -> float:
    """∫ p^ρ q^ρ: p^ρ is a multiple of a normal density with covariance Σ/ρ, and ∫ of two of these a density of Δ."""
    (m, C), (n, D) = gaussian_of(x, reg, diagonal), gaussian_of(z, reg, diagonal)
    d = len(m)

    def multiple(covariance: np.ndarray) -> float:
        return (2 * np.pi) ** (d * (1 - rho) / 2) * np.linalg.det(covariance) ** ((1 - rho) / 2) * rho ** (-d / 2)

    return float(multiple(C) * multiple(D) * multivariate_normal.pdf(m - n, np.zeros(d), (C + D) / rho))


def multinomial_product(x: Any, z: Any, rho: float) -> float:
    a, b = Counter(x), Counter(z)
    return sum((a[s] / len(x)) ** rho * (b[s] / len(z)) ** rho for s in a if s in b)
