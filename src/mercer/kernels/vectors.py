"""Kernels of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from mercer.kernels.base import Kernel, Work

__all__ = ["Linear"]


class Linear(Kernel):
    """⟨x, z⟩.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

    has_features = True
    _block_entries = None

    def _prepare(self, X: Any) -> Any:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        K = A @ (A if B is None else B).T
        return np.asarray(K.toarray() if hasattr(K, "toarray") else K, work.dtype)

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return np.asarray(A.multiply(A).sum(axis=1)).ravel() if hasattr(A, "multiply") else np.einsum("ij,ij->i", A, A)

    def _features(self, parts: list[Any]) -> list[Any]:
        return list(parts)
