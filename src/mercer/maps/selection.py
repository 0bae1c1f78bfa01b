"""Selection of features by their correlation with the target.

keep feature j  if  |corr(x_j, y)| > median over the features that vary of |corr(x, y)|
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Flags, Floats, Number, Saved
from mercer._validation import check_sparse, used_examples

__all__ = ["CorrelationSelector"]


class CorrelationSelector(Saved, SelectorMixin, Estimator):
    """Keep the features whose correlation with the target is above the median.

    A feature's score is the absolute value of its correlation with y; for several classes, the largest correlation of
    one class against the rest. Features are kept if their score is strictly above the median score of the varying
    features: half of them. A constant feature has score 0 and is dropped. The median ignores constant features, because
    hashed maps have many such columns.

    In a pipeline, it uses only the training part of each fold. Selection on all data before cross-validation would leak
    the labels of the test parts.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Absolute correlation of each feature with the target.
    threshold_ : float
        The median score.
    n_features_in_ : int
        Number of features seen in `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import CorrelationSelector
    >>> X = np.array([[0.0, 1.0, 5.0, 1.0], [1.0, 0.0, 5.0, 2.0], [0.0, 0.0, 5.0, 1.0], [1.0, 1.0, 5.0, 3.0]])
    >>> selector = CorrelationSelector().fit(X, [0, 1, 0, 1])
    >>> selector.get_support().tolist()
    [True, False, False, False]
    """

    saved = Fields(
        n_features_in_=Count(),
        scores_=Floats("n_features_in_", single=True),
        threshold_=Number(),
        _varies=Flags("n_features_in_"),
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CorrelationSelector:
        """Score the features.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Sparse matrices stay sparse.
        y : array of shape (n_samples,)
            Classes (integers, strings, booleans), or numbers with a fractional part for regression.
        sample_weight : array of n_samples numbers of at least 0, optional
            A row of weight 2 counts as two.

        Returns
        -------
        self : CorrelationSelector
        """
        X, y = validate_data(
            self,
            check_sparse("X", X),
            y,
            accept_sparse=["csr", "csc"],
            dtype=(np.float64, np.float32),
            y_numeric=False,
        )
        kind = type_of_target(y, input_name="y")
        if kind not in ("binary", "multiclass", "continuous"):
            raise ValueError(f"Unknown label type: y must be classes or numbers, one for each row of X, found {kind}")
        if kind == "continuous":
            targets = y.astype(np.float64)[:, None]
        else:
            classes, number = np.unique(y, return_inverse=True)
            targets = (number[:, None] == np.arange(len(classes))).astype(np.float64)
        used, weights = used_examples(sample_weight, X.shape[0])
        if used is not None:
            X, targets = X[used], targets[used]
        w = np.ones(X.shape[0]) if weights is None else weights
        correlation, varies = _correlation(X, targets - np.average(targets, axis=0, weights=w), w)
        self.scores_ = np.abs(correlation).max(axis=1, initial=0.0)
        self.threshold_ = float(np.median(self.scores_[varies])) if varies.any() else 0.0
        self._varies = varies
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "scores_")
        return (self.scores_ > self.threshold_) & self._varies

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _correlation(X: Any, targets: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correlations of the columns with centred targets, and which columns vary."""
    n = weights.sum()
    if hasattr(X, "tocsr"):
        # The targets are centred, so the columns need not be: Xᵀ t is n times the covariance, and zeros stay zeros.
        mean = np.asarray(weights @ X, np.float64).ravel() / n
        csc = X.tocsc()
        own = weights[csc.indices]
        column = np.repeat(np.arange(X.shape[1]), np.diff(csc.indptr))
        squares = np.bincount(column, weights=own * (csc.data - mean[column]) ** 2, minlength=X.shape[1])
        squares += (n - np.bincount(column, weights=own, minlength=X.shape[1])) * mean**2
        products = np.asarray(X.T @ (weights[:, None] * targets))
    else:
        mean = np.average(np.asarray(X, np.float64), axis=0, weights=weights)
        centred = X - mean
        squares = weights @ centred**2
        products = centred.T @ (weights[:, None] * targets)
    # What is left of a constant column is rounding.
    varies = squares > n * (1e-12 * np.abs(mean)) ** 2 * 1e4
    varies &= squares > 0
    scale = np.sqrt(np.outer(squares, weights @ targets**2))
    correlation = np.divide(products, scale, out=np.zeros_like(scale), where=varies[:, None] & (scale > 0))
    return np.clip(correlation, -1.0, 1.0), varies
