"""Kernel dependency estimation: learn a map between objects of any two kinds.

1. coordinates z of the outputs: kernel PCA with k_y;
2. kernel ridge regression of the coordinates on the inputs: A = (K_x + α I)⁻¹ Z;
3. the output whose features are nearest to the prediction: a pre-image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Nested, Objects, Optional, Saved
from mercer._validation import check_count, check_positive, used_examples
from mercer.kernel_methods._coordinates import Coordinates
from mercer.kernel_methods._precomputed import check_gram, check_rows, is_precomputed
from mercer.kernel_methods.collections import count, objects, same_count, taken
from mercer.kernel_methods.preimage import PreImage
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite

__all__ = ["KernelDependencyEstimation"]


class KernelDependencyEstimation(Saved, Estimator):
    """Predict y from x, where both may be strings, sets, vectors or other objects with a kernel.

    Parameters
    ----------
    input_kernel, output_kernel : Kernel or "precomputed"
        Kernels of x and of y. With ``"precomputed"``, X or Y of `fit` is the kernel matrix of all pairs of training
        objects. In `predict`, X then holds the values of new inputs (rows) with the training inputs (columns). With a
        precomputed output kernel, predictions are indices of training outputs.
    n_components : int, optional
        Number of principal components of the outputs to predict; by default all.
    alpha : float, default=1e-3
        Ridge α of the regression, relative to the mean of k_x(x, x), so that it does not depend on the scale of the
        kernel.
    pre_image : PreImage, str or callable, default="candidates"
        The decoder of outputs: a `PreImage` or its ``method``.
    n_jobs : int, optional
        Threads for the Gram matrices.

    Attributes
    ----------
    coef_ : ndarray of shape (n_objects, n_components)
        A: coordinates are k_x(x, X) A.
    inputs_ : collection
        The training inputs X; None with a precomputed input kernel.
    pre_image_ : PreImage
        Fitted to the training outputs; None with a precomputed output kernel.

    References
    ----------
    .. [Weston2002] J. Weston, O. Chapelle, A. Elisseeff, B. Schölkopf and V. Vapnik. Kernel dependency estimation.
       NIPS, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import KernelDependencyEstimation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, size=(30, 4)).astype(float)
    >>> Y = X[:, ::-1]
    >>> model = KernelDependencyEstimation(Linear() + 1.0, Linear(), alpha=1e-6).fit(X, Y)
    >>> model.predict([[1.0, 1.0, 0.0, 0.0]], candidates=[[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    [[0.0, 0.0, 1.0, 1.0]]
    >>> given = KernelDependencyEstimation("precomputed", "precomputed", alpha=1e-6)
    >>> places = given.fit(X @ X.T + 1.0, Y @ Y.T).predict(X[:5] @ X.T + 1.0)
    >>> bool((Y[places] == Y[:5]).all())
    True
    """

    saved = Fields(
        coef_=Floats(None, "outputs_.values"),
        inputs_=Optional(Objects()),
        outputs_=Nested(Coordinates),
        pre_image_=Optional(Nested(PreImage)),
        _shares=Floats("coef_", low=0.0, high=1.0),
        _output_gram=Optional(Floats("coef_", "coef_")),
    )

    def __init__(
        self,
        input_kernel: Kernel | str,
        output_kernel: Kernel | str,
        n_components: int | None = None,
        alpha: float = 1e-3,
        pre_image: Any = "candidates",
        n_jobs: int | None = None,
    ) -> None:
        self.input_kernel = input_kernel
        self.output_kernel = output_kernel
        self.n_components = n_components
        self.alpha = alpha
        self.pre_image = pre_image
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> KernelDependencyEstimation:
        """Learn from paired inputs and outputs.

        Parameters
        ----------
        X : collection of n inputs
        Y : collection of n outputs
        sample_weight : array of n numbers of at least 0, optional
            A pair of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : KernelDependencyEstimation
        """
        self._check_kernels()
        ridge = check_positive("alpha", self.alpha)
        components = None if self.n_components is None else check_count("n_components", self.n_components)
        inputs_given, outputs_given = is_precomputed(self.input_kernel), is_precomputed(self.output_kernel)
        X = check_gram("input_kernel", "X", X) if inputs_given else objects("X", X, 2)
        Y = check_gram("output_kernel", "Y", Y, conditional=True) if outputs_given else objects("Y", Y, 2)
        n = same_count(("X", "Y"), X, Y)
        used, given = used_examples(sample_weight, n)
        # New inputs, and places among the outputs, are about all pairs: of matrices, nothing is left out but at work.
        keep = inputs_given or outputs_given
        if used is not None and not keep:
            X, Y, n, used = objects("X", taken(X, used), 2), objects("Y", taken(Y, used), 2), len(used), None
        weights = np.ones(n) if given is None else np.bincount(used, given, n) if used is not None else given
        self.pre_image_ = None if outputs_given else self._decoder().fit(Y)
        self._output_gram = Y.copy() if outputs_given else None
        self.outputs_ = Coordinates(self.output_kernel, "KernelDependencyEstimation", n_components=components)
        Z = self.outputs_.fit("Y", Y, weights) / np.sqrt(np.where(weights > 0, weights, 1.0))[:, None]
        K = X.copy() if inputs_given else self.input_kernel(X, n_jobs=self.n_jobs)  # type: ignore[operator]
        if not np.isfinite(K).all():
            raise ValueError(f"the Gram matrix of {self.input_kernel!r} is not finite")
        at = np.flatnonzero(weights)
        K, Z, w = (K, Z, weights) if len(at) == n else (K[np.ix_(at, at)], Z[at], weights[at])
        K[np.diag_indices(len(at))] += ridge * max(float(np.average(np.diagonal(K), weights=w)), 1e-300) / w
        self.coef_ = np.zeros((n, Z.shape[1]))
        self.coef_[at] = cho_solve(cho_factor(K, overwrite_a=True), Z)
        self.inputs_, self._shares = None if inputs_given else X, weights / weights.sum()
        return self

    def _check_kernels(self) -> None:
        if not is_precomputed(self.input_kernel):
            require_positive_definite(check_kernel("input_kernel", self.input_kernel), "KernelDependencyEstimation")
        if not is_precomputed(self.output_kernel):
            check_kernel("output_kernel", self.output_kernel)
        elif self.pre_image != "candidates":
            raise ValueError(
                f"with output_kernel='precomputed', pre_image must be 'candidates', got {self.pre_image!r}: outputs are"
                " known by their kernel values alone"
            )

    def _decoder(self) -> PreImage:
        if isinstance(self.pre_image, PreImage):
            if repr(self.pre_image.kernel) != repr(self.output_kernel):
                raise ValueError("pre_image must have the output kernel")
            return PreImage(**self.pre_image.get_params(deep=False))
        return PreImage(check_kernel("output_kernel", self.output_kernel), self.pre_image)

    def predict_coordinates(self, X: Any) -> np.ndarray:
        """Predict the coordinates of the outputs in their principal components, shape (n_objects, n_components)."""
        check_is_fitted(self)
        if is_precomputed(self.input_kernel):
            return check_rows("input_kernel", "X", X, len(self.coef_)) @ self.coef_
        return self.input_kernel(X, self.inputs_, n_jobs=self.n_jobs) @ self.coef_  # type: ignore[operator]

    def predict(self, X: Any, candidates: Any = None) -> Any:
        """Return the outputs for inputs X.

        Parameters
        ----------
        X : collection of inputs
        candidates : collection, optional
            Outputs to choose among; by default ``pre_image`` decides. With ``output_kernel="precomputed"``, indices of
            training outputs; by default all with positive weight.

        Returns
        -------
        array or list of outputs, one for each input
        """
        check_is_fitted(self)
        if self._output_gram is not None:
            return self._nearest_place(self._coefficients(X), self._output_gram, candidates)
        return self.pre_image_.decode(self._coefficients(X), candidates)  # type: ignore[union-attr]

    def _coefficients(self, X: Any) -> np.ndarray:
        """γ of the predictions Σ_i γ_i φ(y_i): along the principal components, from the mean of the outputs on."""
        return self.predict_coordinates(X) @ self.outputs_.axes.T + self._shares

    def _nearest_place(self, coef: np.ndarray, K: np.ndarray, candidates: Any) -> np.ndarray:
        if candidates is None:
            places = np.flatnonzero(self._shares)
        else:
            places = np.asarray(candidates)
            if places.ndim != 1 or places.dtype.kind not in "iu" or not len(places):
                raise ValueError(
                    "candidates must be places among the training outputs: with output_kernel='precomputed'"
                )
            if places.min() < 0 or places.max() >= len(K):
                raise ValueError(f"candidates must be places from 0 to {len(K) - 1}, the training outputs")
        crossed = coef @ K[:, places]
        return places[(np.diagonal(K)[places] - 2.0 * crossed).argmin(axis=1)]

    def _check_state(self) -> None:
        self._check_kernels()
        sizes = {"coef_": len(self.coef_)}
        if not is_precomputed(self.input_kernel):
            sizes["inputs_"] = count(self.inputs_)
        if not is_precomputed(self.output_kernel):
            sizes["points_"] = count(self.pre_image_.points_)  # type: ignore[union-attr]
        elif self._output_gram is None:
            raise ValueError("output_kernel is 'precomputed', but there is no matrix of the outputs")
        if len(set(sizes.values())) > 1:
            raise ValueError(f"expected equally many objects, found {sizes}")
