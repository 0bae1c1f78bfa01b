"""Incomplete Cholesky factors of Gram matrices: features on a few objects, chosen one by one.

K ≈ L Lᵀ: the next pivot is the object with the largest residual K_ii − Σ_c L_ic², and its column

    L_ic = (k(x_i, x_p) − Σ_{d<c} L_id L_pd) / √residual_p

is Gram-Schmidt in feature space. A matrix of rank r is exact after r pivots, from n r kernel values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer._linalg import pivoted_cholesky
from mercer._state.saved import Fields, Floats
from mercer._validation import check_count, check_not_negative, thread_count
from mercer.kernel_methods.base import KernelMethod
from mercer.kernels.base import Work

__all__ = ["IncompleteCholesky", "cholesky_of_matrix"]


def cholesky_of_matrix(K: np.ndarray, tol: float) -> np.ndarray:
    """Return L with L Lᵀ = K up to ``tol`` of its diagonal, by pivoted Cholesky."""
    return _to_tolerance(np.diag(K), lambda p: K[:, p], len(K), tol)[0]


def _to_tolerance(
    diagonal: np.ndarray, column: Callable[[int], np.ndarray], rank: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Until no residual is above ``tol`` times the largest value of the diagonal."""
    least = tol * float(diagonal.max(initial=0.0))
    return pivoted_cholesky(diagonal, column, rank, lambda largest, total: largest <= least)


class IncompleteCholesky(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelMethod):
    """Pivoted Cholesky: low-rank features of objects of any kind whose inner products approximate a kernel.

    Unlike `mercer.kernels.NystroemMap`, which draws its landmarks at random, each step takes the object with the
    largest error. On the pivots the kernel is exact.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel; None is the linear one. With ``"precomputed"`` X is the kernel matrix.
    rank : int, default=100
        Maximum number of pivots.
    tol : float, default=1e-6
        Stop when no object has a residual above ``tol`` times the largest k(x, x).
    n_jobs : int or None
        Threads for kernel values.

    Attributes
    ----------
    support_ : array of int
        The pivots: indices of training objects, in the order of choice.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    factor_ : array of shape (n_pivots, n_pivots)
        L on the pivots, lower triangular.
    residuals_ : array of shape (n_pivots + 1,)
        Sum of the residuals (the trace of K − L Lᵀ) before each pivot and after the last.

    References
    ----------
    .. [Fine2001] S. Fine and K. Scheinberg. Efficient SVM training using low-rank kernel representations. Journal of
       Machine Learning Research 2, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import IncompleteCholesky
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> L = IncompleteCholesky().fit_transform(X)
    >>> L.shape, bool(np.allclose(L @ L.T, X @ X.T))  # a kernel of rank 3
    ((50, 3), True)
    """

    _weighs_features = _explains_decisions = False  # it makes features, and decides nothing
    saved = KernelMethod.saved | Fields(factor_=Floats("support_", "support_"), residuals_=Floats(None))

    def __init__(self, kernel: Any = None, rank: int = 100, tol: float = 1e-6, *, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.rank = rank
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> IncompleteCholesky:
        """Choose the pivots among the objects of X.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : ignored

        Returns
        -------
        self : IncompleteCholesky
        """
        self._factor(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Fit, and return the rows of L of the training objects."""
        return self._factor(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return vectors of objects: L_PP⁻¹ k(P, x) on the pivots P.

        Parameters
        ----------
        X : collection of n objects
            With ``kernel="precomputed"`` kernel values with the training objects.

        Returns
        -------
        array of shape (n, n_pivots)
        """
        self._check_fitted()
        values = self._expanded(X, np.eye(len(self.support_)))
        return np.ascontiguousarray(solve_triangular(self.factor_, values.T, lower=True).T)

    def _factor(self, X: Any) -> np.ndarray:
        rank = check_count("rank", self.rank)
        if check_not_negative("tol", self.tol) >= 1:
            raise ValueError(f"tol must be a number in [0, 1), got {self.tol!r}")
        X = self._collected(X, reset=True)
        if self._precomputed:
            L, pivots, left = _to_tolerance(np.diag(X), lambda p: X[:, p], rank, self.tol)
        else:
            kernel, work = self._checked_kernel(), Work(thread_count(self.n_jobs))
            A = kernel._prepared("X", X)
            if len(A) == 0:
                raise ValueError("X is empty: there are no pivots to choose")
            one = lambda p: kernel._whole(A, A[p : p + 1], work)[:, 0]  # noqa: E731
            L, pivots, left = _to_tolerance(kernel._diag(A, work), one, rank, self.tol)
        if not len(pivots):
            raise ValueError("k(x, x) is 0 for all objects of X: there are no pivots to choose")
        self._keep(X, pivots)
        self.factor_, self.residuals_ = np.ascontiguousarray(L[pivots]), left
        return L

    @property
    def _n_features_out(self) -> int:
        return len(self.support_)

    def _check_state(self) -> None:
        super()._check_state()
        r = len(self.support_)
        if r == 0 or len(self.residuals_) != r + 1 or not np.all(np.diag(self.factor_) > 0):
            raise ValueError("factor_ must have a positive diagonal, and residuals_ one entry more")
