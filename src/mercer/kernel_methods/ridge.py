"""Kernel ridge regression on objects of any kind.

min alpha ‖f‖² + Σ_i w_i (y_i − f(x_i))²,   f = Σ_j a_j k(·, x_j),   (K + alpha W⁻¹) a = y
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.kernel_ridge import KernelRidge as _Ridge

from mercer._explain import ScoreRows
from mercer._state.saved import Fields, Floats
from mercer._validation import check_not_negative
from mercer.kernel_methods.base import KernelMethod, real_targets, weights_of

__all__ = ["KernelRidge"]


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelMethod):
    """Ridge regression for objects of any kind.

    Minimises ``alpha ‖f‖² + Σ_i (y_i − f(x_i))²``; `sklearn.kernel_ridge.KernelRidge` solves it on the Gram matrix.
    There is no offset: add a constant to the kernel (``kernel + 1.0``) or centre y.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel; None is the linear one. With ``"precomputed"`` X is the kernel matrix.
    alpha : float, default=1.0
        Weight of the penalty. `RepresenterEstimator` with the squared loss, C = 1 / (2 alpha) and no offset is
        equivalent.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    support_ : array of int
        Indices of the training objects with a positive weight.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_support,) or (n_support, n_targets)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelRidge
    >>> from mercer.kernels import Linear
    >>> X = np.linspace(-1.0, 1.0, 21)[:, None]
    >>> model = KernelRidge((Linear() + 1.0) ** 2, alpha=1e-6).fit(X, X[:, 0] ** 2)
    >>> np.round(model.predict([[0.5], [2.0]]), 3)
    array([0.25, 4.  ])
    """

    saved = KernelMethod.saved | Fields(dual_coef_=Floats())

    def __init__(self, kernel: Any = None, alpha: float = 1.0, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn from objects and their numbers.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n numbers, or of n rows of them
        sample_weight : array of n numbers of at least 0, optional
            Weights of the errors.

        Returns
        -------
        self : KernelRidge
        """
        check_not_negative("alpha", self.alpha)
        X = self._collected(X, reset=True)
        y = real_targets(self, X, y, columns=True)
        weights = weights_of(X, sample_weight)
        used, K = np.flatnonzero(weights > 0), self._gram(X)
        K = K if len(used) == len(K) else K[np.ix_(used, used)]
        given = None if sample_weight is None else weights[used]
        # A copy: scikit-learn adds alpha to the diagonal in place, and a precomputed matrix is the caller's.
        model = _Ridge(kernel="precomputed", alpha=self.alpha).fit(K.copy(), y[used], sample_weight=given)
        self._keep(X, used)
        self.dual_coef_ = np.ascontiguousarray(model.dual_coef_)
        return self

    def _score_rows(self) -> ScoreRows:
        coef = np.atleast_2d(self.dual_coef_.T)
        return ScoreRows(coef, np.zeros(len(coef)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the number, or the row of numbers, of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,) or (n_objects, n_targets)
        """
        self._check_fitted()
        return self._expanded(X, self.dual_coef_)

    def as_function(self) -> Any:
        """Return f as a `mercer.kernels.RKHSFunction`; with several targets a list."""
        self._check_fitted()
        return self._as_function(self.dual_coef_)

    def _check_state(self) -> None:
        super()._check_state()
        if self.dual_coef_.ndim not in (1, 2) or len(self.dual_coef_) != len(self.support_):
            raise ValueError(f"dual_coef_ must have {len(self.support_)} rows, found shape {self.dual_coef_.shape}")
