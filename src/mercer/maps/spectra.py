"""Frequencies of stationary kernels: k(x, z) = E cos⟨ω, x − z⟩ with ω drawn from the spectral density (Bochner).

gaussian    exp(−γ‖x − z‖²)              ω = √(2γ) g
laplacian   exp(−γ‖x − z‖₁)              ω = γ times independent Cauchy numbers
matern      ν, ℓ                         ω = g / ℓ · √(2ν / χ²_{2ν}), one χ² for each ω

with g a vector of independent normal numbers. `neighbour_gamma` and `scale_gamma` are rules for the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from mercer._arrays import is_numpy, on_device_of, to_numpy

__all__ = ["amplitudes", "cauchy", "gaussian", "matern", "neighbour_gamma", "orthogonal_normals", "scale_gamma"]


def gaussian(gamma: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Return frequencies of exp(−γ‖x − z‖²), one per column."""
    return np.sqrt(2.0 * gamma) * random.standard_normal((width, count))


def cauchy(gamma: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Return frequencies of exp(−γ‖x − z‖₁), one per column."""
    return gamma * random.standard_cauchy((width, count))


def matern(length_scale: float, nu: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Return frequencies of the Matérn kernel, one per column."""
    normal = random.standard_normal((width, count)) / length_scale
    if nu == np.inf:
        return normal
    return normal * np.sqrt(2 * nu / random.chisquare(2 * nu, count))  # Student's t with 2ν degrees


def amplitudes(
    kernel: str, gamma: float, length_scale: float, nu: float, count: int, random: np.random.RandomState
) -> np.ndarray:
    """Return factors of normal directions: frequencies of an isotropic kernel are amplitude · g."""
    if kernel == "gaussian":
        return np.full(count, np.sqrt(2.0 * gamma))
    if nu == np.inf:
        return np.full(count, 1.0 / length_scale)
    return np.sqrt(2 * nu / random.chisquare(2 * nu, count)) / length_scale


def orthogonal_normals(width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Return normal columns that are orthogonal within blocks of ``width`` columns.

    Directions are columns of a uniformly random rotation, lengths are those of independent normal vectors.
    """
    blocks = []
    for start in range(0, count, width):
        q, r = np.linalg.qr(random.standard_normal((width, width)))
        q *= np.sign(np.diag(r))  # without it the rotation is not uniform
        blocks.append(q[:, : min(width, count - start)])
    lengths = np.sqrt(random.chisquare(width, count))
    return np.hstack(blocks) * lengths


def neighbour_gamma(X: Any, random: np.random.RandomState, neighbours: int = 50, sample: int = 1000) -> float:
    """Return γ = 2 / σ², with σ the mean distance to the 50th nearest neighbour among 1,000 rows."""
    if X.shape[0] > sample:
        X = X[on_device_of(X, np.sort(random.permutation(X.shape[0])[:sample])), :]
    chosen = np.asarray(to_numpy(X), np.float64)
    rounding = 4 * np.finfo(np.float64).eps * float(np.linalg.norm(np.abs(chosen).max(axis=0)))
    chosen = chosen - chosen.mean(axis=0)  # far from 0, distances from squared lengths lose their digits
    norms = (chosen**2).sum(axis=1)
    squared = np.maximum(norms[:, None] + norms - 2 * chosen @ chosen.T, 0)
    place = min(neighbours, len(chosen) - 1)
    sigma = float(np.sqrt(np.partition(squared, place, axis=1)[:, place]).mean())
    return 2.0 / sigma**2 if sigma > rounding else 1.0


def scale_gamma(X: Any, weights: np.ndarray | None = None) -> float:
    """Return γ = 1 / (n_features · variance of all entries), as "scale" in scikit-learn; 1 if all are equal.

    Row weights count as repetitions of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps.spectra import scale_gamma
    >>> scale_gamma(np.array([[0.0, 2.0], [2.0, 0.0]]))
    0.5
    """
    n, width = X.shape
    weights = np.ones(n) if weights is None else weights
    total = float(weights.sum()) * width
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            X = X.tocsr()
            stored, share = np.asarray(X.data, np.float64), np.repeat(weights, np.diff(X.indptr))
            mean = float(share @ stored) / total
            variance = (float(share @ np.square(stored - mean)) + (total - float(share.sum())) * mean**2) / total
        else:
            mean = _sum_over_rows(X, weights, lambda rows: rows) / total
            mean += _sum_over_rows(X, weights, lambda rows: rows - mean) / total  # to the last digit
            variance = _sum_over_rows(X, weights, lambda rows: (rows - mean) ** 2) / total
    # Equal entries may differ from their mean by rounding.
    if math.sqrt(variance) <= 4 * np.finfo(np.float64).eps * abs(mean):
        return 1.0
    gamma = 1.0 / (width * variance)
    if not 0 < gamma < math.inf:
        raise ValueError(f"gamma='scale' needs entries of a usual size, their variance is {variance:g}: scale X first")
    return gamma


def _sum_over_rows(X: Any, weights: np.ndarray, function: Callable[[Any], Any]) -> float:
    """The weighted sum of a function of the entries, in double precision, where X lies and a few rows at a time."""
    xp, (n, width) = array_api_compat.array_namespace(X), X.shape
    step = max(1, (1 << (17 if is_numpy(X) else 24)) // max(1, width))
    total = 0.0
    for start in range(0, n, step):
        rows = xp.astype(X[start : start + step, :], xp.float64)
        total += float(weights[start : start + step] @ to_numpy(xp.sum(function(rows), axis=1)))
    return total
