"""Maps that approximate a kernel: Nyström's, on landmarks drawn from the data.

Φ̂(x) = K_LL^{-1/2} k(L, x),   ⟨Φ̂(x), Φ̂(z)⟩ = k(x, L) K_LL⁻¹ k(L, z):   exact for x or z among the landmarks L
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._validation import check_count
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite

__all__ = ["NystroemMap"]


class NystroemMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors for objects of any kind, whose inner products approximate a kernel.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.
    n_components : int, default=100
        Landmarks drawn, without repeats; at most as many as there are objects.
    random_state : int, RandomState or None, default=None
        Of the draw.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    landmarks_ : list
        The objects drawn.
    normalization_ : ndarray of shape (n_landmarks, n_landmarks)
        K_LL^{-1/2}.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> F = Linear().approximate(10, random_state=0).fit_transform(X)
    >>> F.shape, bool(np.allclose(F @ F.T, X @ X.T))  # a kernel of rank 3 is met exactly
    ((50, 10), True)
    """

    def __init__(
        self, kernel: Kernel, n_components: int = 100, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> NystroemMap:
        """Draw the landmarks from X."""
        require_positive_definite(check_kernel("kernel", self.kernel), "NystroemMap")
        n = check_count("n_components", self.n_components)
        X = X if hasattr(X, "__len__") else list(X)
        if len(X) == 0:
            raise ValueError("X is empty: there are no landmarks to draw")
        chosen = np.sort(check_random_state(self.random_state).permutation(len(X))[:n])
        self.landmarks_ = chosen_objects(X, chosen)
        values, vectors = np.linalg.eigh(self.kernel(self.landmarks_, n_jobs=self.n_jobs))
        kept = values > 1e-12 * max(values.max(), 1e-300)
        scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        self.normalization_ = (vectors * scale) @ vectors.T
        self._n_features_out = len(chosen)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The vectors of objects."""
        check_is_fitted(self)
        return self.kernel(X, self.landmarks_, n_jobs=self.n_jobs) @ self.normalization_


def chosen_objects(X: Any, chosen: np.ndarray) -> Any:
    """Some objects of a collection of any kind."""
    if hasattr(X, "iloc"):
        return X.iloc[chosen]
    if isinstance(X, dict):
        return {name: [column[i] for i in chosen] for name, column in X.items()}
    if isinstance(X, (list, tuple)):
        return [X[i] for i in chosen]
    return X[chosen]
