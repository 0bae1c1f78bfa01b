"""Label sets of nearest neighbours: a baseline for learners of label sets.

    f_t(x) = share of the k nearest training rows that have label t

Leave-one-out scores of the training rows calibrate the probabilities. They replace the counts of ML-kNN [Zhang2007]:
how often a label occurs if c of k neighbours have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Choice, Count, Csr, Fields, LabelValues, Nested, Objects, Saved
from mercer._validation import check_choice, check_count, check_sparse
from mercer.multilabel._decisions import MEASURES, Decisions, check_threshold
from mercer.multilabel.joint import LabelSetClassifier
from mercer.multilabel.label_forms import FORMS, fit_labels

__all__ = ["NeighborLabels"]

_BLOCK = 1 << 22  # distances at a time
_TRIED = (10, 5, 20)  # the first of equals is taken


class NeighborLabels(LabelSetClassifier, Saved, Estimator):
    """Give rows the labels of their nearest neighbours.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        ``"auto"``: 5, 10 or 20, whichever has the best ``measure`` on the training rows, each left out of its own
        neighbours. The number is stored in ``n_neighbors_``.
    decode : {"auto", "direct", "seen"}, default="auto"
    threshold, measure
        As in `JointSVM`.
    n_jobs : int or None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of labels
    n_neighbors_ : int
        Number of neighbours that vote.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import NeighborLabels
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> Y = (X > 0).astype(int)
    >>> bool(NeighborLabels().fit(X[:200], Y[:200]).score(X[200:], Y[200:]) > 0.9)
    True

    References
    ----------
    .. [Zhang2007] M.-L. Zhang and Z.-H. Zhou. ML-KNN: a lazy learning approach to multi-label learning. Pattern
       Recognition 40, 2007.
    """

    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        rows_=Objects(),
        labels_=Csr(None, "classes_"),
        n_neighbors_=Count(1),
        decisions_=Nested(Decisions),
    )

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        decode: str = "auto",
        threshold: Any = "auto",
        measure: str = "micro-f1",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.decode = decode
        self.threshold = threshold
        self.measure = measure
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> NeighborLabels:
        """Store rows and their label sets, and calibrate.

        Parameters
        ----------
        X : array or sparse matrix of n rows
        Y : array or sparse matrix of 0 and 1 with n rows, or list of n label sets

        Returns
        -------
        self : NeighborLabels
        """
        self._check_parameters()
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        labels, self.classes_, self.label_form_ = fit_labels(Y, X.shape[0])
        self.rows_, self.labels_ = X, labels
        sets = None if self.decode == "auto" else self.decode == "seen"
        tried = _TRIED if self.n_neighbors == "auto" else (int(self.n_neighbors),)
        truth, best = labels.toarray() > 0, -np.inf
        for k, scores in zip(tried, self._shares(X, tried, leave_out=True), strict=True):
            decisions = Decisions().fit(scores, labels, self.threshold, self.measure, sets)
            given = None if len(tried) == 1 else decisions.label_sets(decisions.probabilities(scores)).toarray() > 0
            value = 0.0 if given is None else MEASURES[self.measure](truth, given)
            if value > best:
                best, self.n_neighbors_, self.decisions_ = value, k, decisions
        return self

    def _check_parameters(self) -> None:
        if self.n_neighbors != "auto":
            check_count("n_neighbors", self.n_neighbors)
        check_choice("decode", self.decode, ("auto", "direct", "seen"))
        check_threshold(self.threshold, self.measure)

    def _shares(self, X: Any, tried: tuple[int, ...], leave_out: bool = False) -> list[np.ndarray]:
        """For each number of neighbours, the share of them that has each label."""
        n = self.rows_.shape[0]
        sizes = [min(k, n - int(leave_out)) for k in tried]
        most = max(sizes)
        squares = _squares(self.rows_)
        step = max(1, _BLOCK // n)
        parts: list[list[np.ndarray]] = [[np.zeros((0, len(self.classes_)))] for _ in sizes]
        for at in range(0, X.shape[0], step):
            products = X[at : at + step] @ self.rows_.T
            D = squares - 2 * (products.toarray() if sp.issparse(products) else np.asarray(products))
            if leave_out:
                D[np.arange(len(D)), np.arange(at, at + len(D))] = np.inf
            nearest = np.argpartition(D, most - 1, axis=1)[:, :most]
            if len(sizes) > 1:  # nearest first
                order = np.argsort(np.take_along_axis(D, nearest, axis=1), axis=1, kind="stable")
                nearest = np.take_along_axis(nearest, order, axis=1)
            m = len(D)
            for blocks_of_k, k in zip(parts, sizes, strict=True):
                ends = np.arange(0, m * k + 1, k)
                mix = sp.csr_matrix((np.full(m * k, 1.0 / k), nearest[:, :k].ravel(), ends), shape=(m, n))
                blocks_of_k.append((mix @ self.labels_).toarray())
        return [np.vstack(blocks_of_k) for blocks_of_k in parts]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return for each label the share of the neighbours that have it.

        Parameters
        ----------
        X : array or sparse matrix

        Returns
        -------
        shares : array of shape (n_rows, n_labels)
        """
        check_is_fitted(self, "rows_")
        X = validate_data(self, check_sparse("X", X), reset=False, accept_sparse="csr", dtype=np.float64)
        return self._shares(X, (self.n_neighbors_,))[0]

    def _label_products(self) -> np.ndarray:
        check_is_fitted(self, "rows_")
        Y = self.labels_.toarray()
        Y = Y - Y.mean(axis=0)
        return np.asarray(Y.T @ Y)

    def _check_state(self) -> None:
        self._check_parameters()
        rows = self.rows_
        if not (sp.issparse(rows) or isinstance(rows, np.ndarray)) or len(rows.shape) != 2 or rows.dtype != np.float64:
            raise ValueError("rows_ must be a matrix of numbers")
        if rows.shape != (self.labels_.shape[0], self.n_features_in_) or rows.shape[0] < 2:
            raise ValueError(f"rows_ must have the shape ({self.labels_.shape[0]}, {self.n_features_in_})")
        values = rows.data if sp.issparse(rows) else rows
        if not np.isfinite(values).all() or not np.isin(self.labels_.data, (0.0, 1.0)).all():
            raise ValueError("rows_ must be finite, and labels_ hold 0 and 1")
        if len(self.decisions_.slopes_) != len(self.classes_):
            raise ValueError(f"the decisions must be of {len(self.classes_)} labels")


def _squares(X: Any) -> np.ndarray:
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
