"""Baselines for many classes: nearest neighbours in a sample, and clusters that vote.

    SampledKNN       predict the most frequent label among the k nearest of a random share of the training rows
    KMeansMajority   cluster a random share into M' clusters, predict the most frequent label of the nearest cluster;
                     M' is the smallest number of classes that hold a given share of the rows

For baselines that use only labels (the most frequent label, or a random one), use scikit-learn's
``DummyClassifier(strategy="most_frequent")`` and ``"uniform"``.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Floats, Ints, LabelValues, Objects, Saved
from mercer._validation import check_choice, check_count, check_positive, check_sparse, check_weights

__all__ = ["KMeansMajority", "SampledKNN"]

_LEAST = 5000  # rows that neighbours are searched among, whatever their share


class _SampledBaseline(Saved, ClassifierMixin, Estimator):
    """What both share: checks, and the sample of the training rows."""

    classes_: NDArray[Any]
    sample_indices_: NDArray[np.intp]
    random_state: Any

    saved: ClassVar[Fields] = Fields(classes_=LabelValues(), sample_indices_=Ints(None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _sample(
        self, X: Any, y: Any, fraction: Any, sample_weight: Any = None
    ) -> tuple[Any, NDArray[np.intp], NDArray[np.intp], Any, np.ndarray]:
        """Checked rows, all labels as numbers, which rows are in the sample, the source of randomness, weights.

        Rows of weight 0 are never in the sample.
        """
        share = None if fraction == "auto" else _check_share("fraction", fraction)
        X, y = validate_data(self, check_sparse("X", X), y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        random = check_random_state(self.random_state)
        given = check_weights(sample_weight, X.shape[0])
        weights = np.ones(X.shape[0]) if given is None else given
        used = np.flatnonzero(weights)
        size = (
            min(len(used), max(_LEAST, round(0.03 * len(used)))) if share is None else max(1, round(share * len(used)))
        )
        rows = used if size == len(used) else np.sort(random.permutation(used)[:size])
        self.sample_indices_ = rows
        return X, labels, rows, random, weights

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        X = check_sparse("X", X)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)


class SampledKNN(_SampledBaseline):
    """Nearest neighbours among a random share of the training rows.

    A search in n training rows costs O(n) for each row to classify. A sample of a few percent cuts this cost, and
    reduces accuracy.

    Parameters
    ----------
    fraction : float in (0, 1] or "auto", default="auto"
        Share of the training rows to search. ``"auto"``: 3 %, but at least 5,000 rows (or all, if there are fewer).
    n_neighbors : int, default=5
        Number of neighbours that vote; all rows of the sample if it has fewer. Ties go to the label of the nearest of
        them.
    metric : {"euclidean", "cosine", "manhattan"}, default="euclidean"
        Distance of rows. For texts, ``"cosine"``.
    n_jobs : int or None
        Threads of the search.
    random_state : int, RandomState or None
        Seed of the sample.

    Attributes
    ----------
    classes_ : array of labels, sorted
        All labels of the training rows, including those not in the sample.
    sample_indices_ : array of int
        The training rows that are searched.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.classification import SampledKNN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SampledKNN(fraction=0.2, random_state=0).fit(X, y)
    >>> len(model.sample_indices_), model.score(X, y) > 0.9
    (30, True)
    """

    def __init__(
        self,
        fraction: float | str = "auto",
        n_neighbors: int = 5,
        *,
        metric: str = "euclidean",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.fraction = fraction
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SampledKNN:
        """Draw the sample.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        check_count("n_neighbors", self.n_neighbors)
        check_choice("metric", self.metric, ("euclidean", "cosine", "manhattan"))
        X, labels, rows, *_ = self._sample(X, y, self.fraction)
        self._keep(X[rows], labels[rows])
        return self

    def _keep(self, rows: Any, labels: NDArray[np.intp]) -> None:
        self._labels = labels
        self._rows = rows
        self._index = NearestNeighbors(
            n_neighbors=min(int(self.n_neighbors), len(labels)), metric=self.metric, n_jobs=self.n_jobs
        ).fit(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most frequent label among the nearest rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples labels
        """
        rows = self._check_rows(X)
        votes = self._labels[self._index.kneighbors(rows, return_distance=False)]  # the nearest first
        count = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
        winner = count.argmax(axis=1)  # the first of equals: the nearest
        return self.classes_[votes[np.arange(len(votes)), winner]]

    # ------------------------------------------------------------------ model files

    saved = _SampledBaseline.saved | Fields(_labels=Ints(None, below="classes_"), _rows=Objects())

    def _check_state(self) -> None:
        rows = self._rows
        values = rows.data if issparse(rows) else rows
        if np.shape(rows) != (len(self._labels), self.n_features_in_) or not len(self._labels):
            raise ValueError(f"expected a row for each of {len(self._labels)} labels, found shape {np.shape(rows)}")
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError("the rows must be finite")
        self._keep(rows, self._labels)


class KMeansMajority(_SampledBaseline):
    """Clusters that predict the most frequent label of their members.

    The number of clusters is the smallest number of classes that together hold a share ``coverage`` of the training
    rows. Rare classes get no cluster.

    Parameters
    ----------
    coverage : float in (0, 1], default=0.9
        Share of the training rows that the frequent classes must hold.
    fraction : float in (0, 1], default=1.0
        Share of the training rows to cluster.
    max_iter : int, default=30
        Maximum number of k-means iterations.
    random_state : int, RandomState or None
        Seed of the sample and of the first centres.

    Attributes
    ----------
    classes_ : array of labels, sorted
    n_clusters_ : int
        The number of frequent classes, or of rows in the sample if that is smaller.
    cluster_centers_ : array of shape (n_clusters, n_features)
    cluster_labels_ : array of shape (n_clusters,)
        The label that a cluster predicts.
    sample_indices_ : array of int
        The training rows that were clustered.
    n_iter_ : int
        Iterations of k-means.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.classification import KMeansMajority
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KMeansMajority(random_state=0).fit(X, y)
    >>> model.n_clusters_, model.score(X, y) > 0.8
    (3, True)
    """

    def __init__(
        self, coverage: float = 0.9, fraction: float = 1.0, *, max_iter: int = 30, random_state: Any = None
    ) -> None:
        self.coverage = coverage
        self.fraction = fraction
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KMeansMajority:
        """Cluster the sample and let the members of each cluster vote.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of n_samples numbers of at least 0, optional
            Weights of rows in the means and in the votes; a row of weight 0 is left out.

        Returns
        -------
        self
        """
        coverage = _check_share("coverage", self.coverage)
        max_iter = check_count("max_iter", self.max_iter)
        X, labels, rows, random, weights = self._sample(X, y, self.fraction, sample_weight)
        sizes = np.sort(np.bincount(labels, weights))[::-1]
        needed = coverage * sizes.sum() * (1 - 1e-12)  # against rounding where the share is met exactly
        self.n_clusters_ = min(int(np.searchsorted(np.cumsum(sizes), needed)) + 1, len(sizes), len(rows))
        with warnings.catch_warnings():  # fewer distinct rows than clusters: some clusters stay empty, no harm
            warnings.simplefilter("ignore", ConvergenceWarning)
            means = KMeans(self.n_clusters_, n_init=1, max_iter=max_iter, random_state=random).fit(
                X[rows], sample_weight=weights[rows]
            )
        self.cluster_centers_, self.n_iter_ = means.cluster_centers_, int(means.n_iter_)
        self.cluster_labels_ = self.classes_[_majorities(means.labels_, labels[rows], self.n_clusters_, weights[rows])]
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest cluster.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples labels
        """
        rows = self._check_rows(X)
        return self.cluster_labels_[pairwise_distances_argmin(rows, self.cluster_centers_)]

    # ------------------------------------------------------------------ model files

    saved = _SampledBaseline.saved | Fields(
        n_clusters_=Count(1),
        cluster_centers_=Floats("n_clusters_", "n_features_in_", single=True),
        cluster_labels_=LabelValues(),
        n_iter_=Count(1),
    )

    def _check_state(self) -> None:
        if len(self.cluster_labels_) != self.n_clusters_ or len(np.setdiff1d(self.cluster_labels_, self.classes_)):
            raise ValueError(f"cluster_labels_ must be a class for each of the {self.n_clusters_} clusters")


def _check_share(name: str, value: Any) -> float:
    """A number above 0 and at most 1."""
    if check_positive(name, value) > 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")
    return float(value)


def _majorities(
    groups: NDArray[np.intp], labels: NDArray[np.intp], n_groups: int, weights: np.ndarray
) -> NDArray[np.intp]:
    """The most frequent label of each group, the least of equals; of all rows for a group without rows."""
    winners = np.full(n_groups, np.bincount(labels, weights).argmax(), dtype=np.intp)
    pairs, place = np.unique(np.stack([groups, labels], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), weights, minlength=len(pairs))
    order = np.lexsort((-pairs[:, 1], counts))  # ascending: what is written last, wins
    winners[pairs[order, 0]] = pairs[order, 1]
    return winners
