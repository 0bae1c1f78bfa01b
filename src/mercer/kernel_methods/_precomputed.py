"""Kernel matrices in place of objects: ``kernel="precomputed"``.

Training takes the matrix K of all pairs of training objects. Later, new objects are rows of kernel values with the
training objects. The error message states which property fails: square, finite, symmetric or positive definite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from mercer._linalg import asymmetry
from mercer.kernel_methods._permutations import centered

__all__: list[str] = []

PRECOMPUTED = "precomputed"
_ROUNDING = 1e-8  # of the trace: what rounding may take from an eigenvalue


def is_precomputed(kernel: Any) -> bool:
    """Return whether a parameter is "precomputed"."""
    return isinstance(kernel, str) and kernel == PRECOMPUTED


def check_symmetric(where: str, name: str, K: np.ndarray) -> np.ndarray:
    """Return the matrix if it is square and symmetric up to rounding, else raise ValueError."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"with {where}='precomputed', {name} must be a square matrix in fit, got shape {K.shape}")
    apart, i, j = asymmetry(K)
    if apart > 0 and apart > 1e-8 * max(float(K.max()), -float(K.min())):
        raise ValueError(
            f"with {where}='precomputed', {name} must be symmetric in fit, but {name}[{i}, {j}] = {K[i, j]:.6g} and"
            f" {name}[{j}, {i}] = {K[j, i]:.6g}"
        )
    return K


def check_gram(where: str, name: str, K: Any, least: int = 2, conditional: bool = False) -> np.ndarray:
    """Return a kernel matrix of all pairs; raise ValueError if it is not square, finite, symmetric and definite.

    ``where`` is the parameter that says "precomputed", ``name`` the argument that holds the matrix. ``conditional``:
    the method centres the matrix, so it must be positive definite only after centring.
    """
    K = _numbers(where, name, K)
    check_symmetric(where, name, K)
    if len(K) < least:
        raise ValueError(f"{name} must hold at least {least} objects, got {len(K)}")
    looked_at = centered(K) if conditional else K.copy()
    trace = float(np.trace(looked_at))
    try:
        looked_at[np.diag_indices(len(K))] += _ROUNDING * trace + 1e-300
        cholesky(looked_at, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        lowest = float(eigvalsh(centered(K) if conditional else K, subset_by_index=(0, 0))[0])
        if lowest >= -_ROUNDING * max(trace, 0.0):  # a zero matrix
            return K
        kind = "positive definite after centring" if conditional else "positive definite"
        raise ValueError(
            f"with {where}='precomputed', {name} must be {kind}, but its smallest eigenvalue is {lowest:.6g}: a matrix"
            " of similarities that come from no kernel has to be corrected first"
        ) from None
    return K


def check_rows(where: str, name: str, K: Any, n: int) -> np.ndarray:
    """Return kernel values of new objects (rows) with all ``n`` training objects (columns)."""
    K = _numbers(where, name, K)
    if K.ndim != 2 or K.shape[1] != n:
        raise ValueError(
            f"with {where}='precomputed', {name} must have a row for each object and {n} columns, the values with the"
            f" training objects, got shape {K.shape}"
        )
    return K


def _numbers(where: str, name: str, K: Any) -> np.ndarray:
    K = K.toarray() if sp.issparse(K) else K
    try:
        K = np.asarray(K, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"with {where}='precomputed', {name} must be a matrix of kernel values") from None
    if not np.isfinite(K).all():
        raise ValueError(f"with {where}='precomputed', {name} must be finite")
    return K
