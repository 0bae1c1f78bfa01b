"""Sums over feature vectors in blocks: means, covariances and the moments of the null distributions.

Let b = φ(x) − p for a point p near the mean, and u = (b, 1, ‖b‖²). Once the mean is known, a matrix maps u to (φ(x) −
mean, ‖φ(x) − mean‖²). So it is enough to keep Σ u uᵀ, and Σ u vᵀ of two views.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.kernel_methods.collections import count, cut

__all__: list[str] = []


def feature_blocks(feature_map: Any, X: Any, width: int) -> Iterator[np.ndarray]:
    """Yield the features of X in float32, a few thousand rows at a time."""
    step = max(256, (1 << 21) // width)
    n = count(X)
    for start in range(0, n, step):
        F = feature_map.transform(cut(X, start, min(n, start + step)))
        F = np.asarray(F.toarray() if hasattr(F, "toarray") else F, np.float32)
        if not np.isfinite(F).all():
            raise ValueError(f"features of the objects {start} to {min(n, start + step)} are not finite")
        yield F


class FeatureSums:
    """Σ u uᵀ of one view; with `cross_sums` Σ u vᵀ of two."""

    def __init__(self) -> None:
        self.n = 0
        self.origin: np.ndarray | None = None
        self.squares: np.ndarray | None = None

    def augmented(self, F: np.ndarray) -> np.ndarray:
        """Return u of a block."""
        if self.origin is None:
            self.origin = F.mean(axis=0)
        U = np.empty((len(F), F.shape[1] + 2), np.float32)
        np.subtract(F, self.origin, out=U[:, :-2])
        U[:, -2] = 1.0
        U[:, -1] = np.einsum("ij,ij->i", U[:, :-2], U[:, :-2])
        return U

    def add(self, F: np.ndarray) -> np.ndarray:
        """Add a block; return its u."""
        U = self.augmented(F)
        S = (U.T @ U).astype(np.float64)
        self.squares = S if self.squares is None else self.squares + S
        self.n += len(F)
        return U

    @property
    def to_centered(self) -> np.ndarray:
        """Return the matrix M with u M = (φ − mean, ‖φ − mean‖²)."""
        assert self.squares is not None
        shift = self.squares[-2, :-2] / self.n
        D = len(shift)
        M = np.zeros((D + 2, D + 1))
        M[:D, :D] = np.eye(D)
        M[D, :D] = -shift
        M[:D, D] = -2.0 * shift
        M[D, D] = shift @ shift
        M[D + 1, D] = 1.0
        return M

    @property
    def mean(self) -> np.ndarray:
        """Return the mean feature vector."""
        assert self.origin is not None
        assert self.squares is not None
        return self.origin + self.squares[-2, :-2] / self.n

    def centered_sums(self) -> tuple[float, float, float]:
        """Return Σ K_ii, Σ K_ij², Σ K_ii² of the centred Gram matrix of the features."""
        assert self.squares is not None
        S = self.to_centered.T @ self.squares @ self.to_centered
        covariance = S[:-1, :-1]
        return float(np.trace(covariance)), float(np.vdot(covariance, covariance)), float(S[-1, -1])


def cross_sums(
    maps: tuple[Any, Any], X: Any, Y: Any, widths: tuple[int, int]
) -> tuple[FeatureSums, FeatureSums, np.ndarray]:
    """Return the sums of both views, and Σ (φ̃, ‖φ̃‖²) (ψ̃, ‖ψ̃‖²)ᵀ of the centred features."""
    left, right = FeatureSums(), FeatureSums()
    width = max(widths)
    crossed: Any = 0.0
    for F, G in zip(feature_blocks(maps[0], X, width), feature_blocks(maps[1], Y, width), strict=True):
        U, V = left.add(F), right.add(G)
        crossed = crossed + (U.T @ V).astype(np.float64)
    return left, right, left.to_centered.T @ crossed @ right.to_centered
