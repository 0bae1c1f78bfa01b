"""Frequencies of stationary kernels: k(x, z) = E cos⟨ω, x − z⟩ with ω drawn from the spectral density (Bochner).

gaussian    exp(−γ‖x − z‖²)              ω = √(2γ) g
laplacian   exp(−γ‖x − z‖₁)              ω = γ times independent Cauchy numbers
matern      ν, ℓ                         ω = g / ℓ · √(2ν / χ²_{2ν}), one χ² for each ω

with g a vector of independent normal numbers. Spec 004 I-20; the bandwidth rule there is `neighbour_gamma`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.maps._arrays import on_device_of, to_numpy

__all__ = ["amplitudes", "cauchy", "gaussian", "matern", "neighbour_gamma", "orthogonal_normals"]


def gaussian(gamma: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Frequencies of exp(−γ‖x − z‖²), a column each."""
    return np.sqrt(2.0 * gamma) * random.standard_normal((width, count))


def cauchy(gamma: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Frequencies of exp(−γ‖x − z‖₁), a column each."""
    return gamma * random.standard_cauchy((width, count))


def matern(length_scale: float, nu: float, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Frequencies of Matérn's kernel, a column each."""
    normal = random.standard_normal((width, count)) / length_scale
    if nu == np.inf:
        return normal
    return normal * np.sqrt(2 * nu / random.chisquare(2 * nu, count))  # Student's t with 2ν degrees


def amplitudes(
    kernel: str, gamma: float, length_scale: float, nu: float, count: int, random: np.random.RandomState
) -> np.ndarray:
    """What normal directions are to be multiplied with: frequencies of an isotropic kernel are amplitude · g."""
    if kernel == "gaussian":
        return np.full(count, np.sqrt(2.0 * gamma))
    if nu == np.inf:
        return np.full(count, 1.0 / length_scale)
    return np.sqrt(2 * nu / random.chisquare(2 * nu, count)) / length_scale


def orthogonal_normals(width: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """Columns that are each normal, and orthogonal to the others of their block of ``width`` columns.

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
    """γ = 2 / σ², σ the mean distance to the 50th nearest neighbour among 1,000 rows (spec 004 I-20)."""
    if X.shape[0] > sample:
        X = X[on_device_of(X, np.sort(random.permutation(X.shape[0])[:sample])), :]
    chosen = np.asarray(to_numpy(X), np.float64)
    norms = (chosen**2).sum(axis=1)
    squared = np.maximum(norms[:, None] + norms - 2 * chosen @ chosen.T, 0)
    place = min(neighbours, len(chosen) - 1)
    sigma = float(np.sqrt(np.partition(squared, place, axis=1)[:, place]).mean())
    return 2.0 / sigma**2 if sigma > 0 else 1.0
