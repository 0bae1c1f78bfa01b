"""Fisher's discriminant in feature space, for objects of any kind.

In centred coordinates F of the objects (F Fᵀ = K̃), with class means μ_c and shares π_c,

    max over W of tr (Wᵀ B W),   Wᵀ (S + κ I) W = I
    B = Σ_c π_c μ_c μ_cᵀ,   S = (1/n) Σ_i (f_i − μ_{y_i})(f_i − μ_{y_i})ᵀ

A new object is assigned to the class with the largest log π_c − ½ ‖Wᵀ(f − μ_c)‖².
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._explain import ScoreModel, ScoreRows
from mercer._state.saved import Fields, Floats, LabelValues, Nested, Saved
from mercer._validation import check_choice, check_count, check_positive
from mercer.kernel_methods._coordinates import Coordinates
from mercer.kernel_methods.base import one_object, weights_of
from mercer.kernel_methods.collections import count, generator, objects, seed_of
from mercer.kernels.base import Kernel

__all__ = ["KernelFisher"]


class KernelFisher(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, ScoreModel, Estimator):
    """Fisher's discriminant with a kernel: a few directions that separate classes, and a classifier on them.

    With a linear kernel and a small regularization it is linear discriminant analysis.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the objects.
    alpha : float, default=0.1
        κ, added to the covariance within classes, relative to its mean eigenvalue over all objects (its trace divided
        by their number), so that it does not depend on the scale of the kernel.
    n_components : int, optional
        Number of directions of `transform`; by default, and at most, the number of classes minus 1.
    method : {"exact", "features"}, default="exact"
        ``"exact"``: the Gram matrix, n³ operations. ``"features"``: the kernel's map (`Kernel.approximate`).
    n_features : int, default=200
        Features of the map.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the map.
    n_jobs : int, optional
        Threads for the Gram matrix.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    priors_ : ndarray
        Class shares.
    weights_ : ndarray of shape (n_coordinates, n_classes − 1 at most)
        The directions, in the coordinates of the objects.
    means_ : ndarray of shape (n_classes, n_directions)
        Class means on the directions.
    explained_variance_ratio_ : ndarray
        Share of the variance between classes, by direction.

    References
    ----------
    .. [Mika1999] S. Mika, G. Rätsch, J. Weston, B. Schölkopf and K.-R. Müller. Fisher discriminant analysis with
       kernels. Neural Networks for Signal Processing, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import KernelFisher
    >>> rng = np.random.default_rng(0)
    >>> angle, radius = rng.uniform(0, 6.28, 120), np.repeat([1.0, 2.0], 60)
    >>> X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]  # two rings
    >>> rings = KernelFisher((1.0 + Linear()) ** 2).fit(X, radius)
    >>> rings.score(X, radius), rings.transform(X).shape
    (1.0, (120, 1))
    """

    version = 2  # regularization is alpha
    saved = Fields(
        classes_=LabelValues(2),
        priors_=Floats("classes_"),
        weights_=Floats("coordinates_.values", "explained_variance_ratio_"),
        means_=Floats("classes_", "explained_variance_ratio_"),
        explained_variance_ratio_=Floats(None),
        coordinates_=Nested(Coordinates),
    )

    def __init__(
        self,
        kernel: Kernel,
        alpha: float = 0.1,
        n_components: int | None = None,
        method: str = "exact",
        n_features: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_components = n_components
        self.method = method
        self.n_features = n_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelFisher:
        """Learn from objects and their labels.

        Parameters
        ----------
        X : collection of n objects
        y : array of n labels
        sample_weight : array of n numbers of at least 0, optional
            Weights in the means and scatters.

        Returns
        -------
        self
        """
        check_choice("method", self.method, ("exact", "features"))
        ridge = check_positive("alpha", self.alpha)
        X = objects("X", X, 2)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != count(X):
            raise ValueError(f"y must hold one label for each of the {count(X)} objects, got shape {labels.shape}")
        self.classes_, number = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y must hold at least two classes")
        if self.n_components is not None:
            most = len(self.classes_) - 1
            if check_count("n_components", self.n_components) > most:
                raise ValueError(f"n_components must be at most {most}, the classes less one, got {self.n_components}")
        width = None if self.method == "exact" else check_count("n_features", self.n_features)
        seed = seed_of(generator(self.random_state))
        self.coordinates_ = Coordinates(self.kernel, "KernelFisher", width, random_state=seed, n_jobs=self.n_jobs)
        weights = weights_of(X, sample_weight)
        present = np.bincount(number, weights, minlength=len(self.classes_)) > 0
        if not present.all():
            raise ValueError(f"the class {self.classes_[~present].tolist()[0]!r} has no objects with a positive weight")
        self._solve(self.coordinates_.fit("X", X), number, ridge, weights)
        return self

    def _solve(self, F: np.ndarray, number: np.ndarray, ridge: float, weights: np.ndarray) -> None:
        n, C = float(weights.sum()), len(self.classes_)
        sizes = np.bincount(number, weights, minlength=C)
        self.priors_ = sizes / n
        means = np.zeros((C, F.shape[1]))
        np.add.at(means, number, weights[:, None] * F)
        means /= sizes[:, None]
        within = F - means[number]
        S = within.T @ (weights[:, None] * within) / n
        spread = float((weights @ np.square(F - weights @ F / n)).sum())
        S[np.diag_indices(len(S))] += ridge * max(spread / n**2, 1e-300)
        # B has rank below C: the problem in the span of (S + κI)⁻¹ times the weighted means is of the size of C.
        M = np.sqrt(self.priors_)[:, None] * (means - self.priors_ @ means)
        solved = cho_solve(cho_factor(S), M.T)
        values, vectors = np.linalg.eigh(M @ solved)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = (values > 1e-12 * max(float(values[0]), 1e-300)) & (np.arange(C) < C - 1)
        self.weights_ = np.ascontiguousarray(solved @ (vectors[:, kept] / np.sqrt(values[kept])))
        self.means_ = means @ self.weights_
        self.explained_variance_ratio_ = values[kept] / values[kept].sum()

    def transform(self, X: Any) -> np.ndarray:
        """Project objects onto the directions, where the within-class covariance is about I.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes

        Returns
        -------
        array of shape (n, n_components)
        """
        return self._directions(X)[:, : self.n_components]

    @property
    def _n_features_out(self) -> int:
        return int(self.weights_[:, : self.n_components].shape[1])

    def _directions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.coordinates_.transform(X) @ self.weights_

    def _log_posteriors(self, X: Any) -> np.ndarray:
        Z = self._directions(X)
        squares = np.square(Z[:, None, :] - self.means_[None, :, :]).sum(axis=2)
        return np.log(self.priors_)[None, :] - 0.5 * squares

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log π_c − ½ ‖Wᵀ(f − μ_c)‖² of every class; for two classes the second minus the first."""
        scores = self._log_posteriors(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each object.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes

        Returns
        -------
        array of n labels
        """
        check_is_fitted(self)
        return self.classes_[self._log_posteriors(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, for normal classes with one covariance in feature space."""
        return softmax(self._log_posteriors(X), axis=1)

    def _score_rows(self) -> ScoreRows:
        """Scores of classes as sums over directions: ‖z‖² is the same for all of them, and left out."""
        check_is_fitted(self)
        constants = np.log(self.priors_) - 0.5 * np.square(self.means_).sum(axis=1)
        return ScoreRows(self.means_, constants, self.classes_.tolist())

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        directions = self._directions(one_object(x))[0]
        return np.arange(len(directions)), directions

    def _feature_name(self, column: int) -> str:
        return f"direction {column}"

    def _check_state(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        if not (self.priors_ > 0).all():
            raise ValueError("priors_ must be the positive shares of at least two classes")
