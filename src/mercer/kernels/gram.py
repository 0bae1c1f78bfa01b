"""Gram matrices as a step of scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Objects, Saved
from mercer.kernels.algebra import _count
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite

__all__ = ["Gram"]


class Gram(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Map objects to rows of the Gram matrix with the training objects, for estimators with ``kernel="precomputed"``.

    Parameters
    ----------
    kernel : Kernel
        Any kernel; its parameters can be searched as ``gram__kernel__…``.
    center : bool, default=False
        Take the mean of the training objects as the origin of feature space, like scikit-learn's ``KernelCenterer``.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the matrices.
    n_jobs : int, optional
        Threads.
    verbose : int, default=0
        1 shows the progress of a long computation.

    Attributes
    ----------
    objects_ : collection
        The training objects.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from mercer.kernels import Gram, Linear
    >>> X = np.vstack([np.random.default_rng(0).normal(c, 1.0, size=(30, 2)) for c in (-2, 2)])
    >>> y = np.repeat([0, 1], 30)
    >>> scores = cross_val_score(make_pipeline(Gram(Linear() + 1.0), SVC(kernel="precomputed")), X, y)
    >>> bool(scores.mean() > 0.95)
    True
    """

    saved = Fields(objects_=Objects())

    def __init__(
        self,
        kernel: Kernel,
        center: bool = False,
        dtype: Any = np.float64,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.center = center
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Gram:
        """Store the training objects, after the kernel has checked each of them.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes
        y : ignored

        Returns
        -------
        self : Gram
        """
        self._start(X).diag(self.objects_)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Return the Gram matrix of the training objects."""
        return self._start(X)(self.objects_, dtype=self.dtype, n_jobs=self.n_jobs, verbose=self.verbose)

    def transform(self, X: Any) -> np.ndarray:
        """Return the matrix of objects with the training objects, one row per object.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes

        Returns
        -------
        array of shape (n, n_training_objects)
        """
        check_is_fitted(self)
        return self._kernel(X, self.objects_, dtype=self.dtype, n_jobs=self.n_jobs, verbose=self.verbose)

    @property
    def _n_features_out(self) -> int:
        return _count(self.objects_)

    def _start(self, X: Any) -> Kernel:
        kernel = check_kernel("kernel", self.kernel)
        kernel._check_params()
        if self.center:
            require_positive_definite(kernel, "Gram(center=True)", conditional=True)
        self.objects_ = X if hasattr(X, "__len__") else list(X)
        if _count(self.objects_) == 0:
            raise ValueError("X is empty")
        self._kernel = kernel.centered(self.objects_) if self.center else kernel
        return self._kernel

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objects_")

    def _check_state(self) -> None:
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}")
        self._start(self.objects_)
