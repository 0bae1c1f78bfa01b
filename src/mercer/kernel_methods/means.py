"""Class means and Parzen windows in feature space.

c = (1/n) Σ Φ(x_i),   ⟨Φ(x), c⟩ = (1/n) Σ k(x, x_i)              Parzen's estimate where k(·, x_i) is a density
f(x) = ⟨Φ(x), c₊⟩ − ⟨Φ(x), c₋⟩ + b,   b = ½ (‖c₋‖² − ‖c₊‖²)      positive where c₊ is the nearer mean
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from mercer._explain import chosen_labels
from mercer._state.saved import Fields, Floats, LabelValues, outputs
from mercer.kernel_methods.base import KernelMethod, class_codes, weights_of
from mercer.kernel_methods.collections import count, taken

__all__ = ["KernelMeanClassifier", "ParzenWindow"]

_LOOKED_AT = 300  # objects whose kernel values are checked in training; all are when they are used


class KernelMeanClassifier(ClassifierMixin, KernelMethod):
    """Classify by the nearest class mean in feature space, for objects of any kind.

    The kernel is the only parameter to tune. With two classes the function is ``f(x) = mean₊ k(x, x_i) − mean₋ k(x,
    x_i) + b``.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel; None is the linear one. With ``"precomputed"``
        X is the kernel matrix.
    n_jobs : int or None
        Threads for kernel values.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Indices of the training objects with a positive weight.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (1, n_support) or (n_classes, n_support)
        Coefficients of w = c₊ − c₋ with two classes; of the class means with more.
    intercept_ : array of shape (1,) or (n_classes,)
        b; or −½‖c‖² of each class.

    References
    ----------
    .. [Bakir2007] G. Bakır, T. Hofmann, B. Schölkopf, A. Smola, B. Taskar and S. V. N. Vishwanathan (editors).
       Predicting structured data. MIT Press, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelMeanClassifier
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
    >>> model = KernelMeanClassifier().fit(X, [-1, -1, 1, 1])
    >>> model.decision_function([[2.0, 7.0], [3.0, 0.0]])  # ⟨x − (2, 1), (4, 0)⟩
    array([0., 4.])
    """

    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(2), dual_coef_=Floats(outputs, "support_"), intercept_=Floats(outputs)
    )

    def __init__(self, kernel: Any = None, *, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.n_jobs = n_jobs

    def _takes_conditional(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMeanClassifier:
        """Compute the means of the classes.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n labels
        sample_weight : array of n numbers of at least 0, optional
            Weights in the means.

        Returns
        -------
        self : KernelMeanClassifier
        """
        X = self._collected(X, reset=True)
        classes, codes = class_codes(self, X, y)
        weights = weights_of(X, sample_weight)
        shares = np.zeros((len(classes), len(codes)))
        shares[codes, np.arange(len(codes))] = weights
        totals = shares.sum(axis=1, keepdims=True)
        if not totals.all():
            raise ValueError(
                f"the class {classes[totals[:, 0] == 0].tolist()[0]!r} has no objects with a positive weight"
            )
        shares /= totals
        K = self._gram(X)
        offsets = -0.5 * np.einsum("ci,ci->c", shares @ K, shares)
        self.classes_ = classes
        self._keep(X, np.flatnonzero(weights > 0))
        if len(classes) == 2:
            shares, offsets = shares[1:] - shares[:1], offsets[1:] - offsets[:1]
        self.dual_coef_, self.intercept_ = np.ascontiguousarray(shares[:, self.support_]), offsets
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x), positive for ``classes_[1]``; for more than two classes ½‖Φ(x)‖² − ½‖Φ(x) − c‖² of each."""
        self._check_fitted()
        values = self._expanded(X, self.dual_coef_.T) + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the nearest mean.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        labels : array of shape (n_objects,)
        """
        return chosen_labels(self.decision_function(X), self.classes_)

    def as_function(self) -> Any:
        """Return c₊ − c₋, or the list of the class means, as `mercer.kernels.RKHSFunction`."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)


class ParzenWindow(KernelMethod):
    """Parzen windows: the mean of kernel values with given objects, a density if the kernel is one.

    If k(·, x) is a density for every x, so is ``p(x) = (1/n) Σ_i k(x, x_i)``. A Gaussian kernel is a density up to a
    constant, which is omitted. Kernels with negative values, such as the linear one, raise ValueError.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A kernel with nonnegative values; it may be indefinite. None is ``Gaussian(gamma_)`` on rows of numbers, with γ
        = 1 / (n_features · variance of X). With ``"precomputed"`` X is the kernel matrix.
    n_jobs : int or None
        Threads for kernel values.

    Attributes
    ----------
    support_ : array of int
        Indices of the training objects with a positive weight.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (1, n_support)
        Shares of the objects in the mean.
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.

    See Also
    --------
    KernelMeanClassifier : the difference of two Parzen windows, if b = 0.

    Examples
    --------
    >>> from mercer.kernel_methods import ParzenWindow
    >>> from mercer.kernels import Gaussian
    >>> ParzenWindow(Gaussian(0.5)).fit([[1.0], [3.0]]).score_samples([[1.0], [2.0], [10.0]]).round(2)
    array([0.57, 0.61, 0.  ])
    """

    saved = KernelMethod.saved | Fields(dual_coef_=Floats(1, "support_"))
    _gaussian = True

    def __init__(self, kernel: Any = None, *, n_jobs: int | None = None) -> None:
        self.kernel = kernel
        self.n_jobs = n_jobs

    def _takes_any(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ParzenWindow:
        """Store the objects.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            Weights in the mean.

        Returns
        -------
        self : ParzenWindow
        """
        X = self._collected(X, reset=True)
        if count(X) == 0:
            raise ValueError("X is empty: there is nothing to average")
        weights = weights_of(X, sample_weight)
        kept = np.flatnonzero(weights > 0)
        self._check_some(X, weights, kept)
        self._keep(X, kept, weights)
        self.dual_coef_ = (weights[self.support_] / weights.sum())[None, :]
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the mean kernel value of every object: p(x) itself, not its logarithm.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,)
        """
        self._check_fitted()
        return self._expanded(X, self.dual_coef_[0], self._check_values)

    def _check_some(self, X: Any, weights: np.ndarray, kept: np.ndarray) -> None:
        """Raises ValueError where the kernel is negative among the first objects, before anything is kept."""
        if self._precomputed:
            self._check_values(X[np.ix_(kept, kept)])
        else:
            kernel = self._training_kernel(X, weights)
            self._check_values(kernel(taken(X, kept[:_LOOKED_AT]), n_jobs=self.n_jobs))

    def _check_values(self, K: np.ndarray) -> None:
        least = float(K.min(initial=0.0))
        if least < -1e-12 * float(np.abs(K).max(initial=0.0)):
            raise ValueError(
                f"ParzenWindow needs a kernel whose values are not negative, such as mercer.kernels.Gaussian():"
                f" {self.kernel!r} gave {least:.6g}, and the mean of such values is no density"
            )

    def as_function(self) -> Any:
        """Return the mean in feature space as a `mercer.kernels.RKHSFunction`."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)
