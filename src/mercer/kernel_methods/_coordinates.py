"""Coordinates of objects whose inner products are a centred kernel: kernel methods are linear methods on them.

K̃ = H K H = U Λ Uᵀ,   F = U Λ^{1/2},   f(x) = Λ^{-1/2} Uᵀ (k(X, x) − mean_i k(X, x_i))       all of it, or the largest
f(x) = map(x) − mean                                                                          by a kernel's map
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from mercer._state.saved import Fields, Floats, Objects, Optional, Saved
from mercer.kernel_methods._precomputed import check_gram, check_rows, is_precomputed
from mercer.kernel_methods.base import warn_of_degenerate
from mercer.kernel_methods.collections import count, objects
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite

__all__: list[str] = []

NULL = 1e-10  # of the largest eigenvalue: directions that the objects do not span


class Coordinates(Saved):
    """Centred coordinates of the objects of a view, exact (kernel PCA with all its components) or by features."""

    saved = Fields(
        values=Floats(None),
        axes=Floats(None, "values"),
        points=Optional(Objects()),
        column_means=Optional(Floats("axes")),
        map=Optional(Objects()),
        mean=Optional(Floats("axes")),
    )

    def __init__(
        self,
        kernel: Kernel | str,
        where: str,
        n_features: int | None = None,
        n_components: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel: Any = kernel
        if is_precomputed(kernel):
            if n_features is not None:
                raise ValueError(f"{where} cannot take maps of kernels that are precomputed: it needs the kernels")
        else:
            require_positive_definite(check_kernel("kernel", kernel), where, conditional=n_features is None)
        self.where = where
        self.n_features = n_features
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, name: str, X: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Learn the coordinates; return those of X, one row per object, times the root of its weight."""
        X = check_gram("kernel", name, X, conditional=True) if self.precomputed else objects(name, X, 2)
        w = np.ones(count(X)) if weights is None else weights
        F = self._fit_exact(X, w) if self.n_features is None else self._fit_map(X, self.n_features, w)
        if F.shape[1] == 0:
            raise ValueError(f"the kernel {self.kernel!r} is constant on {name}: there is nothing to learn from")
        return F

    @property
    def precomputed(self) -> bool:
        """Return whether the view is a kernel matrix."""
        return is_precomputed(self.kernel)

    def _fit_exact(self, X: Any, weights: np.ndarray) -> np.ndarray:
        K = X if self.precomputed else self.kernel(X, n_jobs=self.n_jobs)
        if not np.isfinite(K).all():
            raise ValueError(f"the Gram matrix of {self.kernel!r} is not finite")
        warn_of_degenerate(K, self.kernel)
        self.points = None if self.precomputed else X
        roots, total = np.sqrt(weights), weights.sum()
        self.column_means = weights @ K / total
        K = K - self.column_means[None, :] - self.column_means[:, None] + weights @ self.column_means / total
        K *= roots[:, None]
        K *= roots
        scale = float(np.abs(np.diagonal(K)).max(initial=0.0))
        n = len(K)
        few = self.n_components is not None and self.n_components < n // 4
        subset = (n - self.n_components, n - 1) if few and self.n_components is not None else None
        values, vectors = eigh(K, subset_by_index=subset)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > NULL * max(float(values[0]), 1e-300) if scale > 1e-300 else np.zeros(len(values), bool)
        if self.n_components is not None:
            kept[self.n_components :] = False
        self.values = values[kept]
        self.axes = np.ascontiguousarray(roots[:, None] * vectors[:, kept] / np.sqrt(values[kept]))  # as files give it
        return vectors[:, kept] * np.sqrt(values[kept])

    def _fit_map(self, X: Any, n_features: int, weights: np.ndarray) -> np.ndarray:
        self.map = self.kernel.approximate(n_features, random_state=self.random_state).fit(X)
        F = np.asarray(self.map.transform(X), np.float64)
        self.mean = weights @ F / weights.sum()
        F = (F - self.mean) * np.sqrt(weights)[:, None]
        # Rotated to principal axes, so that directions which the objects do not span can be left out.
        values, vectors = np.linalg.eigh(F.T @ F)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > NULL * max(float(values[0]), 1e-300)
        if self.n_components is not None:
            kept[self.n_components :] = False
        self.values, self.axes = values[kept], vectors[:, kept]
        return F @ self.axes

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of objects."""
        if self.n_features is not None:
            return (np.asarray(self.map.transform(X), np.float64) - self.mean) @ self.axes
        # The axes sum to 0 over the training objects, so that the terms of the centring that do not depend on the
        # column vanish.
        if self.precomputed:
            values = check_rows("kernel", "X", X, len(self.column_means))
        else:
            values = self.kernel(X, self.points, n_jobs=self.n_jobs)
        return (values - self.column_means) @ self.axes

    def _saved_params(self) -> dict[str, Any]:
        return {**super()._saved_params(), "random_state": None}  # the owner has the seed

    def _check_state(self) -> None:
        if self.precomputed:
            size = len(self.axes)
        else:
            size = count(self.points) if self.n_features is None else self.map._n_features_out
        means = self.column_means if self.n_features is None else self.mean
        if means.shape != (size,):
            raise ValueError(f"expected the means of {size} columns, found shape {means.shape}")
