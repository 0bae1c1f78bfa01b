"""Attributes of images, learned from the attribute shares of their categories.

A category is a bag, and a matrix holds the share of its images with each attribute:

    P_ka = share of the images of category k that have attribute a

Every attribute is a binary problem with proportions. Sources of shares are human estimates, relatedness of words
(`proportions_from_similarity`), or another set of categories (`transfer_proportions`). Common practice rounds each
share to 0 or 1 and trains on that (`BinarizedAttributes`), which loses intermediate values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mercer._estimator import Estimator
from mercer._progress import say
from mercer._state.saved import Fields, LabelValues, ListOf, Objects, Optional, Saved
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_positive, check_sparse
from mercer.data.bags import Bags
from mercer.kernel_methods.collections import count, taken
from mercer.kernels import Kernel
from mercer.kernels.base import require_positive_definite
from mercer.proportions._base import ProportionEstimator
from mercer.proportions._clones import default_learner, seeded_clone
from mercer.proportions.instances import MultipleInstanceSVM
from mercer.proportions.mean_map import MeanMap

__all__ = [
    "AttributeModeler",
    "BinarizedAttributes",
    "average_precision_at",
    "discretize_proportions",
    "proportions_from_similarity",
    "transfer_proportions",
]

NORMS = ("minmax", "max", "rows")
KINDS = ("score", "label", "probability")


# ---------------------------------------------------------------------------------------------------- both estimators


class _Attributes(Saved, Estimator):
    """What the two estimators share: categories and the matrix checked, one model for each attribute, prediction."""

    n_jobs: int | None
    verbose: int

    def _read(self, category: Any, matrix: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The number of the category of each row, and the shares of the categories; sets names."""
        names = np.asarray(category)
        if names.shape != (n,):
            raise ValueError(f"category must hold one value for each of the {n} rows, got shape {names.shape}")
        if names.dtype.kind == "f" and not np.isfinite(names).all():
            raise ValueError("category must not hold NaN or infinite values")
        try:
            self.categories_, codes = np.unique(names, return_inverse=True)
        except TypeError as error:
            raise ValueError("category must be values of one kind that can be sorted") from error
        P, columns = _looked_up(matrix, self.categories_.tolist())
        if P.ndim == 1:
            P = P[:, None]
        if P.ndim != 2 or len(P) != len(self.categories_) or not P.shape[1]:
            wanted = f"({len(self.categories_)} categories, n_attributes)"
            raise ValueError(f"proportion_matrix must have shape {wanted}, got {P.shape}")
        if ((P < 0) | (P > 1)).any():  # NaN is neither
            k, a = np.argwhere((P < 0) | (P > 1))[0]
            wrong = f"category {self.categories_[k]!s} has {P[k, a]:g} in column {a}"
            raise ValueError(f"proportion_matrix must lie in [0, 1], but {wrong}")
        if np.isinf(P).any() or np.isnan(P).all(axis=0).any():
            raise ValueError("proportion_matrix must have a known share of every attribute for some category")
        self.attribute_names_ = np.array([f"attribute{a}" for a in range(P.shape[1])] if columns is None else columns)
        if len(set(self.attribute_names_.tolist())) < P.shape[1]:
            raise ValueError("proportion_matrix names an attribute twice")
        return codes, P

    def _learn(self, learn: Callable[[int], Any], n: int) -> None:
        """One model for each attribute, on threads."""

        def one(a: int) -> Any:
            model = learn(a)
            if self.verbose:
                say(f"attribute {a + 1} of {n}: {self.attribute_names_[a]}")
            return model

        self.estimators_ = each(one, range(n), self.n_jobs)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def _features(self, X: Any) -> Any:
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of every attribute for every row; positive where it is more likely there than not.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, n_attributes)
        """
        self._check_fitted()
        features = self._features(X)
        return np.column_stack([model.decision_function(features) for model in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the attributes of each row as 0 and 1, shape (n, n_attributes).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of int, shape (n_samples, n_attributes)
        """
        return (self.decision_function(X) > 0).astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each attribute, shape (n, n_attributes), where the learner gives probabilities.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, n_attributes)
        """
        self._check_fitted()
        if not all(hasattr(model, "predict_proba") for model in self.estimators_):
            raise AttributeError(f"{type(self.estimators_[0]).__name__} gives no probabilities: use decision_function")
        features = self._features(X)
        return np.column_stack([model.predict_proba(features)[:, 1] for model in self.estimators_])

    def predict_attributes(self, X: Any, kind: str = "score") -> dict[str, np.ndarray]:
        """Return the attributes by name.

        Parameters
        ----------
        X : as in `fit`
        kind : {"score", "label", "probability"}, default="score"
            As `decision_function`, `predict` and `predict_proba`.

        Returns
        -------
        dict
            Name of the attribute → array of length n, as for a data frame.
        """
        check_choice("kind", kind, KINDS)
        use = {"score": self.decision_function, "label": self.predict, "probability": self.predict_proba}[kind]
        return dict(zip(self.attribute_names_.tolist() if self.__sklearn_is_fitted__() else [], use(X).T, strict=True))

    def score(self, X: Any, A: Any) -> float:
        """Return the mean over attributes of the average precision of their rankings of rows.

        Parameters
        ----------
        X : as in `fit`
        A : array of 0 and 1, shape (n, n_attributes)
            Attributes that no row has are left out.

        Returns
        -------
        float
        """
        scores, truth = self.decision_function(X), np.asarray(A)
        if truth.shape != scores.shape or not np.isin(truth, (0, 1)).all():
            raise ValueError(f"A must hold 0 and 1 with shape {scores.shape}, got shape {truth.shape}")
        precisions = [average_precision_score(t, s) for t, s in zip(truth.T, scores.T, strict=True) if t.any()]
        if not precisions:
            raise ValueError("A has no row with an attribute: average precision is not defined")
        return float(np.mean(precisions))


def _looked_up(matrix: Any, names: list[Any]) -> tuple[np.ndarray, Any]:
    """The matrix in the order of the categories; a frame or a dict is looked up by their names."""
    columns = list(matrix.columns) if hasattr(matrix, "columns") else None
    if isinstance(matrix, Mapping):
        table = dict(matrix)
    elif hasattr(matrix, "index") and not isinstance(matrix, (list, tuple)):
        table = dict(zip(matrix.index.tolist(), matrix.to_numpy(), strict=True))
        if len(table) != len(matrix):
            raise ValueError("proportion_matrix names a category twice")
    else:
        return _numbers(matrix), columns
    lacking = [name for name in names if name not in table]
    if lacking:
        raise ValueError(f"proportion_matrix has no entry for category {lacking[0]!r}")
    # Categories without images are of no use here, but do no harm: a matrix may be larger than the data.
    return _numbers([table[name] for name in names]), columns


def _numbers(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("proportion_matrix must be numbers, equally many for each category") from error


def _spread(X: Any) -> float:
    """The mean squared distance of rows from their mean; 1 where they are all equal."""
    total = X.multiply(X).sum() if sp.issparse(X) else np.square(X).sum()
    variance = float(total) / X.shape[0] - float(np.square(np.asarray(X.mean(axis=0))).sum())
    return variance if variance > 1e-12 * float(total) / X.shape[0] else 1.0


# ---------------------------------------------------------------------------------------------------- with proportions


class AttributeModeler(_Attributes):
    """Learn attributes of rows from their shares in each category.

    Parameters
    ----------
    estimator : ProportionEstimator, optional
        The learner of one attribute. Default: `AlternatingProportionSVM`, linear, with weight ``C`` for the share of
        each category and weight 1 for its rows together, both divided by the mean squared distance of rows from their
        mean, so that they suit features of any scale. It starts from the labels of `InverseCalibration`. A map or
        kernel of the learner is computed once for all attributes.
    C : float, default=10.0
        Weight of the shares in the default learner.
    random_state : int, RandomState or None, default=None
        Used if the learner has none.
    n_jobs : int or None, default=None
        Threads over attributes.
    verbose : int, default=0
        Print a line for each attribute.

    Attributes
    ----------
    categories_ : ndarray
        Names of categories, sorted.
    attribute_names_ : ndarray
    estimators_ : list of ProportionEstimator
        One for each attribute.

    See Also
    --------
    BinarizedAttributes : the usual baseline.

    Notes
    -----
    The default learner has a large margin, and separates rows of one category if the features allow it, even with few
    categories. If features are weak for single rows, `ProportionClassifier` and `MeanMap` are safer, because they only
    fit the shares. Choose `C` and the learner on held-out categories (``benchmarks/attributes_awa.py --parts choose``,
    which set the default).

    References
    ----------
    .. [Yu2014c] F. X. Yu, L. Cao, M. Merler, N. Codella, T. Chen, J. R. Smith and S.-F. Chang. Modeling attributes from
       category-attribute proportions. ACM Multimedia, 2014.

    Examples
    --------
    >>> from mercer.datasets import make_attribute_categories
    >>> from mercer.proportions import AttributeModeler, ProportionClassifier
    >>> task = make_attribute_categories(n_categories=60)
    >>> model = AttributeModeler(ProportionClassifier(random_state=0)).fit(task.X, task.category, task.proportions)
    >>> model.score(task.X, task.attributes) > 0.85
    True
    >>> sorted(model.predict_attributes(task.X[:3], kind="label"))
    ['attribute0', 'attribute1', 'attribute2', 'attribute3']
    """

    saved = Fields(
        categories_=LabelValues(),
        attribute_names_=LabelValues(),
        estimators_=ListOf(Objects(), "attribute_names_"),
        objects_=Optional(Objects()),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: float = 10.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, category: Any, proportion_matrix: Any) -> AttributeModeler:
        """Learn every attribute.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d); with a kernel any collection of n objects
        category : array of n values
            The category of every row.
        proportion_matrix : array of shape (n_categories, n_attributes), DataFrame, or dict
            The share of the rows of each category that have each attribute. An array follows the sorted categories; a
            frame has categories as index and attributes as columns; a dict has a row of shares for each category. NaN
            marks an unknown share.

        Returns
        -------
        self
        """
        check_positive("C", self.C)
        self._check_estimator()
        shared = self._shared(X)
        codes, P = self._read(category, proportion_matrix, shared.shape[0])
        bags = Bags(codes)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=P.shape[1])
        per_category = len(codes) / len(bags)
        plain = {"map": None, "kernel": None if self._kernel is None else "precomputed"}
        default: dict[str, Any] = {}
        if self.estimator is None:  # without annealing the machine stays near its start, better than at random
            default = {"scale": 1.0 / _spread(shared), "init": "inverse-calibration", "max_swaps": 0}

        def learn(a: int) -> Any:
            if self.estimator is None:
                model = default_learner(self.C, per_category, int(seeds[a]), **default)
            else:
                model = seeded_clone(self.estimator, int(seeds[a]), **plain)
            unknown = np.isnan(P[:, a])
            share: Any = P[:, a]
            weight = None
            if unknown.any():  # any share will do
                share = (np.where(unknown, 0.0, share), np.where(unknown, 1.0, share))
                if isinstance(model, (MeanMap, MultipleInstanceSVM)):  # these do not use bounds
                    weight = (~unknown).astype(np.float64)
            model._warns_of_constants = False  # of single attributes out of many
            return model.fit(shared, bags=bags, proportions=share, bag_weight=weight)

        self._learn(learn, P.shape[1])
        return self

    @property
    def _kernel(self) -> Any:
        return None if self.estimator is None else self.estimator.kernel

    @property
    def _map(self) -> Any:
        return None if self.estimator is None else self.estimator.map

    def _check_estimator(self) -> None:
        if self.estimator is not None and not isinstance(self.estimator, ProportionEstimator):
            kind = type(self.estimator).__name__
            raise ValueError(f"estimator must be a learner from proportions of mercer.proportions, got {kind}")
        if self._map is not None and self._kernel is not None:
            raise ValueError("give the estimator a kernel or a map, not both")

    def _shared(self, X: Any) -> Any:
        """Features that all attributes share, or their kernel matrix."""
        self.objects_: Any = None
        if isinstance(self._kernel, Kernel):
            require_positive_definite(self._kernel, type(self.estimator).__name__)
            self.objects_ = X if hasattr(X, "__len__") or sp.issparse(X) else list(X)
            return self._kernel(self.objects_, n_jobs=self.n_jobs)
        if self._map is not None:
            self.map_ = clone(self._map).fit(X)
            return self.map_.transform(X)
        sparse = False if self._kernel is not None else "csr"
        return validate_data(self, check_sparse("X", X), accept_sparse=sparse, dtype=np.float64)

    def _features(self, X: Any) -> Any:
        if isinstance(self._kernel, Kernel):
            return self._kernel(X, self.objects_, n_jobs=self.n_jobs)
        if self._map is not None:
            return self.map_.transform(X)
        sparse = False if self._kernel is not None else "csr"
        return validate_data(self, check_sparse("X", X), reset=False, accept_sparse=sparse, dtype=np.float64)

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if self.estimator is not None:
            # As it was fitted, and the kernel or the map that was computed for all; `fit` makes clones.
            own = self.estimator
            params["estimator"] = self.estimators_[0], own.kernel, None if own.map is None else self.map_
        return params

    @classmethod
    def _make(cls, params: dict[str, Any]) -> AttributeModeler:
        if params.get("estimator") is not None:
            model, kernel, map = params["estimator"]
            params["estimator"] = clone(model).set_params(kernel=kernel, map=map)
        return cls(**params)

    def _check_state(self) -> None:
        self._check_estimator()
        if self._map is not None:
            self.map_ = self._map
        if not all(isinstance(model, ProportionEstimator) for model in self.estimators_):
            raise ValueError("estimators_ must be learners from proportions")
        if isinstance(self._kernel, Kernel):
            n = count(self.objects_)
            if any(model.n_features_in_ != n for model in self.estimators_):
                raise ValueError(f"the learners do not belong to {n} objects")


# ---------------------------------------------------------------------------------------------------- the baseline


class _Constant:
    """The score of an attribute that all categories have, or none."""

    def __init__(self, value: float) -> None:
        self.value = value

    def decision_function(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.value)


class BinarizedAttributes(_Attributes):
    """A baseline: ordinary classifiers, with the binary attributes of its category for every row.

    Parameters
    ----------
    threshold : float or "mean", default=0.5
        Shares above it are 1. ``"mean"`` is the mean of the whole matrix, as in Animals with Attributes.
    estimator : classifier with decision_function, optional
        Default: ``sklearn.svm.LinearSVC``.
    n_jobs : int or None, default=None
        Threads over attributes.
    verbose : int, default=0
        Print a line for each attribute.

    Attributes
    ----------
    categories_, attribute_names_ : ndarray
    matrix_ : ndarray of 0 and 1, shape (n_categories, n_attributes)
    estimators_ : list
        One for each attribute.

    Examples
    --------
    >>> from mercer.datasets import make_attribute_categories
    >>> from mercer.proportions import BinarizedAttributes
    >>> task = make_attribute_categories()
    >>> baseline = BinarizedAttributes().fit(task.X, task.category, task.proportions)
    >>> baseline.matrix_[:2], baseline.score(task.X, task.attributes) > 0.6
    (array([[1, 0, 0, 0],
           [1, 1, 1, 1]]), True)
    """

    def __init__(
        self,
        threshold: Any = 0.5,
        estimator: Any = None,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.threshold = threshold
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, category: Any, proportion_matrix: Any) -> BinarizedAttributes:
        """Learn every attribute.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        category : array of n values
        proportion_matrix : as in `AttributeModeler.fit`
            Rows of categories with an unknown share are left out.

        Returns
        -------
        self
        """
        t = self.threshold
        if not (isinstance(t, str) and t == "mean") and (
            isinstance(t, bool) or not isinstance(t, (int, float, np.number)) or not 0 <= t <= 1
        ):
            raise ValueError(f"threshold must be a number from 0 to 1, or 'mean', got {t!r}")
        features = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64)
        codes, P = self._read(category, proportion_matrix, features.shape[0])
        limit = float(np.nanmean(P)) if isinstance(t, str) else float(t)
        self.matrix_ = (limit < P).astype(np.int64)

        def learn(a: int) -> Any:
            rows = np.flatnonzero(~np.isnan(P[codes, a]))
            y = self.matrix_[codes[rows], a]
            if len(np.unique(y)) == 1:
                return _Constant(2.0 * float(y[0]) - 1.0)
            model = LinearSVC() if self.estimator is None else clone(self.estimator)
            return model.fit(taken(features, rows), y)

        self._learn(learn, P.shape[1])
        return self

    def _features(self, X: Any) -> Any:
        return validate_data(self, check_sparse("X", X), reset=False, accept_sparse="csr", dtype=np.float64)

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Raise an error: scikit-learn's classifiers cannot be saved."""
        raise TypeError("a BinarizedAttributes cannot be written to a model file: its classifiers are scikit-learn's")


# ---------------------------------------------------------------------------------------------------- helpers


def proportions_from_similarity(S: Any, norm: str = "minmax") -> np.ndarray:
    """Return shares of attributes from similarities of categories to attributes, such as the relatedness of words.

    Parameters
    ----------
    S : array of shape (n_categories, n_attributes)
        Finite numbers; NaN (unknown) is kept.
    norm : {"minmax", "max", "rows"}, default="minmax"
        ``"minmax"`` moves each attribute to the range from 0 to 1 over categories; ``"max"`` divides each attribute by
        its largest value, and ``"rows"`` each category by its sum. The last two need similarities of at least 0.

    Returns
    -------
    ndarray of shape (n_categories, n_attributes)
        In [0, 1]. An attribute that is equally similar to all categories has share 0.5 with ``"minmax"``.

    Examples
    --------
    >>> from mercer.proportions import proportions_from_similarity
    >>> proportions_from_similarity([[0.1, 2.0], [0.3, 1.0], [0.2, 0.0]])
    array([[0. , 1. ],
           [1. , 0.5],
           [0.5, 0. ]])
    """
    check_choice("norm", norm, NORMS)
    values = np.asarray(S, np.float64)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"S must have shape (n_categories, n_attributes), got {values.shape}")
    if np.isinf(values).any():
        raise ValueError("S must not hold infinite values")
    if norm == "minmax":
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        spread = high - low
        return np.where(spread > 0, (values - low) / np.where(spread > 0, spread, 1.0), values * 0 + 0.5)
    if (values < 0).any():
        raise ValueError(f"norm={norm!r} needs similarities of at least 0")
    size = np.nanmax(values, axis=0) if norm == "max" else np.nansum(values, axis=1, keepdims=True)
    return values / np.where(size > 0, size, 1.0)


def transfer_proportions(similarity: Any, matrix: Any) -> np.ndarray:
    """Return shares for new categories from those of similar ones: means weighted by similarity.

    Parameters
    ----------
    similarity : array of shape (n_new, n_categories)
        At least 0; each row must have a positive value.
    matrix : array of shape (n_categories, n_attributes)
        Shares in [0, 1]; NaN (unknown) is left out of the mean.

    Returns
    -------
    ndarray of shape (n_new, n_attributes)
        NaN if all similar categories have NaN.

    Examples
    --------
    >>> from mercer.proportions import transfer_proportions
    >>> transfer_proportions([[3, 1, 0]], [[1.0, 0.2], [0.0, 0.6], [0.5, 0.5]])
    array([[0.75, 0.3 ]])
    """
    S, P = np.asarray(similarity, np.float64), np.asarray(matrix, np.float64)
    if S.ndim != 2 or P.ndim != 2 or S.shape[1] != len(P):
        raise ValueError(f"similarity must have a column for each row of matrix, got {S.shape} and {P.shape}")
    if not np.isfinite(S).all() or (S < 0).any() or not (S.sum(axis=1) > 0).all():
        raise ValueError("similarity must be finite and at least 0, with a positive value in every row")
    if ((P < 0) | (P > 1)).any() or np.isinf(P).any():
        raise ValueError("matrix must lie in [0, 1]")
    known = ~np.isnan(P)
    total = S @ known
    summed = S @ np.where(known, P, 0.0)
    return np.divide(summed, total, out=np.full(summed.shape, np.nan), where=total > 0)


def discretize_proportions(matrix: Any, levels: int = 4) -> np.ndarray:
    """Round shares to a few levels, like human estimates: 0, 1/3, 2/3, 1 for four levels.

    Parameters
    ----------
    matrix : array
        Shares in [0, 1]; NaN is kept.
    levels : int, default=4
        At least 2.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mercer.proportions import discretize_proportions
    >>> discretize_proportions([0.1, 0.3, 0.55, 0.9], levels=3)
    array([0. , 0.5, 0.5, 1. ])
    """
    check_count("levels", levels, 2)
    P = np.asarray(matrix, np.float64)
    if ((P < 0) | (P > 1)).any() or np.isinf(P).any():
        raise ValueError("matrix must lie in [0, 1]")
    return np.floor(P * (levels - 1) + 0.5) / (levels - 1)


def average_precision_at(y_true: Any, scores: Any, k: int) -> float:
    """Return the average precision of the first k positions of a ranking.

    The mean of the precision at the positions of relevant rows among the first k, over min(k, number of relevant rows).

    Parameters
    ----------
    y_true : array of 0 and 1
    scores : array of numbers
        Higher scores rank first; ties in input order.
    k : int

    Returns
    -------
    float

    Examples
    --------
    >>> from mercer.proportions import average_precision_at
    >>> average_precision_at([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], 2)
    0.5
    """
    check_count("k", k)
    truth, values = np.asarray(y_true), np.asarray(scores, np.float64)
    if truth.ndim != 1 or truth.shape != values.shape or not np.isin(truth, (0, 1)).all():
        raise ValueError(f"y_true must be 0 and 1, one for each score, got shapes {truth.shape} and {values.shape}")
    if not truth.any():
        raise ValueError("y_true has no relevant row: average precision is not defined")
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite")
    first = truth[np.argsort(-values, kind="stable")[:k]].astype(bool)
    places = np.flatnonzero(first) + 1
    return float((np.arange(1, len(places) + 1) / places).sum() / min(k, int(truth.sum())))
