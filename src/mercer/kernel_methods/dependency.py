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
from mercer._state.saved import Fields, Floats, Nested, Objects, Saved
from mercer._validation import check_count, check_positive, used_examples
from mercer.kernel_methods._collections import count, objects, same_count, taken
from mercer.kernel_methods._coordinates import Coordinates
from mercer.kernel_methods.preimage import PreImage
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite

__all__ = ["KernelDependencyEstimation"]


class KernelDependencyEstimation(Saved, Estimator):
    """Learn from pairs (x, y) to predict y, where both may be strings, sets, vectors or anything with a kernel.

    Parameters
    ----------
    input_kernel, output_kernel : Kernel
        Of x and of y.
    n_components : int, optional
        Principal components of the outputs that are predicted; by default all.
    alpha : float, default=1e-3
        Ridge α of the regression, relative to the mean of k_x(x, x): the same value serves kernels of any scale.
    pre_image : PreImage, str or callable, default="candidates"
        How outputs are found: a `PreImage` or its ``method``.
    n_jobs : int, optional
        Threads for the Gram matrices.

    Attributes
    ----------
    coef_ : ndarray of shape (n_objects, n_components)
        A: coordinates are k_x(x, X) A.
    inputs_ : collection
        The training inputs X.
    pre_image_ : PreImage
        Fitted to the training outputs.

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
    """

    saved = Fields(
        coef_=Floats(lambda model: count(model.inputs_), "outputs_.values"),
        inputs_=Objects(),
        outputs_=Nested(Coordinates),
        pre_image_=Nested(PreImage),
        _shares=Floats(lambda model: count(model.inputs_), low=0.0, high=1.0),
    )

    def __init__(
        self,
        input_kernel: Kernel,
        output_kernel: Kernel,
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
        """Learn from inputs and outputs that belong together, one by one.

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
        require_positive_definite(check_kernel("input_kernel", self.input_kernel), "KernelDependencyEstimation")
        check_kernel("output_kernel", self.output_kernel)
        ridge = check_positive("alpha", self.alpha)
        components = None if self.n_components is None else check_count("n_components", self.n_components)
        X, Y = objects("X", X, 2), objects("Y", Y, 2)
        n = same_count(("X", "Y"), X, Y)
        used, given = used_examples(sample_weight, n)
        if used is not None:
            X, Y, n = objects("X", taken(X, used), 2), objects("Y", taken(Y, used), 2), len(used)
        weights = np.ones(n) if given is None else given
        self.pre_image_ = self._decoder().fit(Y)
        self.outputs_ = Coordinates(self.output_kernel, "KernelDependencyEstimation", n_components=components)
        Z = self.outputs_.fit("Y", Y, weights) / np.sqrt(weights)[:, None]
        K = self.input_kernel(X, n_jobs=self.n_jobs)
        if not np.isfinite(K).all():
            raise ValueError(f"the Gram matrix of {self.input_kernel!r} is not finite")
        K[np.diag_indices(n)] += ridge * max(float(np.average(np.diagonal(K), weights=weights)), 1e-300) / weights
        self.coef_ = cho_solve(cho_factor(K, overwrite_a=True), Z)
        self.inputs_, self._shares = X, weights / weights.sum()
        return self

    def _decoder(self) -> PreImage:
        if isinstance(self.pre_image, PreImage):
            if repr(self.pre_image.kernel) != repr(self.output_kernel):
                raise ValueError("pre_image must have the output kernel")
            return PreImage(**self.pre_image.get_params(deep=False))
        return PreImage(self.output_kernel, self.pre_image)

    def predict_coordinates(self, X: Any) -> np.ndarray:
        """Predicted coordinates of the outputs in their principal components, shape (n_objects, n_components)."""
        check_is_fitted(self)
        return self.input_kernel(X, self.inputs_, n_jobs=self.n_jobs) @ self.coef_

    def predict(self, X: Any, candidates: Any = None) -> Any:
        """The outputs for inputs X.

        Parameters
        ----------
        X : collection of inputs
        candidates : collection, optional
            Outputs to choose among; by default ``pre_image`` decides.
        """
        check_is_fitted(self)
        return self.pre_image_.decode(self._coefficients(X), candidates)

    def _coefficients(self, X: Any) -> np.ndarray:
        """γ of the predictions Σ_i γ_i φ(y_i): along the principal components, from the mean of the outputs on."""
        return self.predict_coordinates(X) @ self.outputs_.axes.T + self._shares

    def _check_state(self) -> None:
        require_positive_definite(check_kernel("input_kernel", self.input_kernel), "KernelDependencyEstimation")
        same_count(("inputs_", "points_"), self.inputs_, self.pre_image_.points_)
