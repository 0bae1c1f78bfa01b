"""Principal components in feature space.

    K̃ = K − 1K − K1 + 1K1 = V Λ Vᵀ,   v_j = Σ_i a_ij Φ̃(x_i),   a_j = V_j / √λ_j (so that ‖v_j‖ = 1),
    ⟨Φ̃(x), v_j⟩ = k̃(x, ·) a_j

With centring, the components reconstruct K̃, not K. Some texts omit the scale of a_j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer._state.saved import Fields, Floats
from mercer._validation import check_count
from mercer.kernel_methods.base import KernelMethod, weights_of

__all__ = ["KernelPCA"]

_SPENT = 1e-12  # eigenvalues below this part of the largest one are rounding


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelMethod):
    """Principal components of objects of any kind, in the feature space of a kernel.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel, with ``center=True`` also a conditionally positive definite one; None is the linear
        one. With ``"precomputed"`` X is the kernel matrix.
    n_components : int or None
        Maximum number of components; None for all with positive variance.
    center : bool, default=True
        Take the mean of the training objects as the origin of feature space.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the (centred) kernel matrix, descending: n times the variances.
    dual_coef_ : array of shape (n_objects, n_components)
        Coefficients of the unit vectors v_j.
    intercept_ : array of shape (n_components,)
        Constant of the expansion due to centring.
    support_ : array of int
        Indices of the training objects: all of them.
    support_objects_ : collection
        The training objects; None with ``kernel="precomputed"``.

    Notes
    -----
    The sign of a component is chosen so that its largest coefficient (the first, if there is a tie) is positive.

    References
    ----------
    .. [Scholkopf1998] B. Schölkopf, A. Smola and K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue
       problem. Neural Computation 10, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelPCA
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    >>> KernelPCA(n_components=1).fit(X).transform(X + [0.0, 5.0]).round(6)
    array([[ 2.],
           [ 0.],
           [-2.]])
    """

    _weighs_features = _explains_decisions = False  # it makes features, and decides nothing
    saved = KernelMethod.saved | Fields(
        eigenvalues_=Floats(None), dual_coef_=Floats("support_", "eigenvalues_"), intercept_=Floats("eigenvalues_")
    )

    def __init__(
        self,
        kernel: Any = None,
        n_components: int | None = None,
        center: bool = True,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.center = center
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _takes_conditional(self) -> bool:
        return bool(self.center)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the components of objects.

        Parameters
        ----------
        X : collection of objects, or their kernel matrix
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : KernelPCA
        """
        self._decompose(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> np.ndarray:
        """Fit, and return the coordinates of the training objects: V √Λ."""
        coordinates = self._decompose(X, sample_weight)
        return coordinates if sample_weight is None else self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of objects on the components.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        coordinates : array of shape (n_objects, n_components)
        """
        self._check_fitted()
        return self._expanded(X, self.dual_coef_) + self.intercept_

    def _decompose(self, X: Any, sample_weight: Any = None) -> np.ndarray:
        """Coordinates of the objects with a weight; n weights w make √w K √w of the matrix of n objects."""
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        X = self._collected(X, reset=True)
        weights = weights_of(X, sample_weight)
        used = np.flatnonzero(weights)
        K, roots = self._gram(X), np.sqrt(weights[used])
        if len(used) < len(K):
            K = K[np.ix_(used, used)]
        n, total = len(K), float(roots @ roots)
        means = K.mean(axis=0) if sample_weight is None else (weights[used] @ K) / total
        if self.center:
            K = K - means[:, None] - means[None, :] + (means @ weights[used]) / total
        if sample_weight is not None:
            K = roots[:, None] * K * roots
        wanted = n if self.n_components is None else min(n, self.n_components)
        values, vectors = eigh(K, subset_by_index=(n - wanted, n - 1))
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > _SPENT * max(float(values.max(initial=0.0)), 1e-300)
        if not kept.any():
            raise ValueError(
                f"the objects of X (n_samples={n}) do not differ in feature space: there are no components"
            )
        values, vectors = values[kept], vectors[:, kept]
        sizes = np.abs(vectors / roots[:, None])
        largest = (sizes >= (1.0 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(len(values))])
        if self.center:
            # 0 but for rounding: then a shift of k(x, ·) has no effect at all
            vectors = vectors - roots[:, None] * (roots @ vectors / total)
        self._keep(X, used)
        self.eigenvalues_ = values.copy()
        self.dual_coef_ = np.ascontiguousarray(roots[:, None] * vectors / np.sqrt(values))  # as a model file gives it
        self.intercept_ = -(means @ self.dual_coef_) if self.center else np.zeros(len(values))
        return vectors / roots[:, None] * np.sqrt(values)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def as_function(self) -> Any:
        """Return the unit vectors v_j as `mercer.kernels.RKHSFunction`, in the space of the uncentred kernel."""
        self._check_fitted()
        return self._as_function(self.dual_coef_)
