"""A classifier with few features: learnt cosine features and a linear support vector machine, trained jointly.

f_c(x) = ⟨w_c, Z(x)⟩ + w_c0,   Z(x) = √(2/k) cos(Θᵀx + b).
`mercer.maps.compact` implements the training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._explain import ScoreModel
from mercer._state.saved import Count, Fields, Nested, Saved
from mercer._validation import check_weights
from mercer.maps import CompactNonlinearMap

__all__ = ["CompactClassifier"]


class CompactClassifier(Saved, ClassifierMixin, ScoreModel, Estimator):
    """Classify with a few learnt cosine features: nearly as accurate as a kernel machine at the cost of a linear one.

    A model has (d + n_classes + 1) · n_components numbers, or about (n_classes + 2) · n_components if circulant.

    Parameters
    ----------
    n_components : int, default=128
        Features.
    circulant, gamma, alpha, learning_rate, frequency_penalty, frequency_alpha, max_iter, steps, batch_size
        As in `mercer.maps.CompactNonlinearMap`, but for ``alpha=1e-3``.
    early_stopping, patience, verbose, random_state
        As in `mercer.maps.CompactNonlinearMap`.
    class_weight : dict, "balanced" or None
        Factors of the weights of rows in `fit`.

    Attributes
    ----------
    map_ : CompactNonlinearMap
        The features, with the weights over them.
    classes_ : ndarray
        The labels.
    coef_, intercept_ : ndarray
        Weights over the features of `map_`.

    References
    ----------
    .. [Yu2015b] F. X. Yu, S. Kumar, H. Rowley and S.-F. Chang. Compact nonlinear maps and circulant extensions.
       arXiv:1503.03893, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.classification import CompactClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(1000, 2))
    >>> y = np.where(np.hypot(*X.T) < 2, "inside", "outside")
    >>> model = CompactClassifier(8, random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.0], [2.5, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    version = 2  # lambda_ is alpha, and what was alpha frequency_alpha
    saved = Fields(n_features_in_=Count(1), map_=Nested(CompactNonlinearMap))

    def __init__(
        self,
        n_components: int = 128,
        *,
        circulant: bool = False,
        gamma: float | str = "neighbours",
        alpha: float = 1e-3,
        learning_rate: float = 0.02,
        frequency_penalty: str | None = None,
        frequency_alpha: float = 1e-4,
        max_iter: int = 60,
        steps: int = 50,
        batch_size: int = 500,
        early_stopping: bool = True,
        patience: int = 10,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.circulant = circulant
        self.gamma = gamma
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.frequency_penalty = frequency_penalty
        self.frequency_alpha = frequency_alpha
        self.max_iter = max_iter
        self.steps = steps
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.patience = patience
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CompactClassifier:
        """Learn the features and the classifiers over them.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of n_rows numbers of at least 0, optional
            Frequency of a row in batches; a row of weight 0 is left out.

        Returns
        -------
        CompactClassifier
            This model.
        """
        if y is None:
            raise ValueError("CompactClassifier requires y to be passed, but the target y is None")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        weights = check_weights(sample_weight, len(X))
        if self.class_weight is not None:
            own = np.ones(len(X)) if weights is None else weights
            weights = own * compute_sample_weight(self.class_weight, y)
        self.map_ = self._map().fit(X, y, weights)
        self.classes_, self.n_iter_ = self.map_.classes_, self.map_.n_iter_
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> CompactClassifier:
        """Learn from one more batch of rows; ``classes`` names all labels in the first call.

        See `mercer.maps.CompactNonlinearMap.partial_fit`.
        """
        first = not hasattr(self, "map_")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=first)
        map_ = self._map() if first else self.map_
        self.map_ = map_.partial_fit(X, y, classes)
        self.classes_, self.n_iter_ = self.map_.classes_, self.map_.n_iter_
        return self

    def _map(self) -> CompactNonlinearMap:
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "class_weight"}
        return CompactNonlinearMap(task="classification", **options)

    @property
    def coef_(self) -> np.ndarray:
        return self.map_.coef_

    @property
    def intercept_(self) -> np.ndarray:
        return self.map_.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores: a column for each class, or one vector for two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        scores = self.map_.transform(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples labels
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        rows = validate_data(self, x if hasattr(x, "iloc") else np.atleast_2d(x), dtype=np.float64, reset=False)
        values = np.asarray(self.map_.transform(rows)[0], float)
        return np.arange(len(values)), values

    def _feature_name(self, column: int) -> str:
        return f"feature {column} of the map"

    def _check_state(self) -> None:
        if self.map_.task != "classification" or self.map_.n_features_in_ != self.n_features_in_:
            raise ValueError(f"expected features of {self.n_features_in_} columns that were learnt for classification")
        self.classes_, self.n_iter_ = self.map_.classes_, self.map_.n_iter_
