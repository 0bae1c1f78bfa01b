"""Weak attributes: many cheap scores of rows, some of which help any query.

classifiers   linear classifiers for the training labels, or your own models
splits        linear classifiers for random splits: one to three labels against one to three others
references    distances to training rows drawn at random
latent        hidden variables of a tree over all of these, cut at their medians; posterior from −1 to 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._state.saved import Count, Fields, Floats, Nested, Objects, Optional
from mercer._validation import check_choice, check_count, check_flag, used_examples
from mercer.attributes.category import Encoder
from mercer.inference import LatentTree
from mercer.learning.weighted_machines import LOSSES, fit_machines
from mercer.multilabel.label_forms import fit_labels

__all__ = ["WeakAttributes"]


class WeakAttributes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Encoder):
    """Compute many weak attributes of rows.

    Parameters
    ----------
    classifiers : bool or list of fitted models, default=True
        Scores of a linear classifier for each training label. Your own models add their ``decision_function``,
        ``predict_proba`` or ``transform``.
    n_splits : int, default=100
        Classifiers for random splits of labels, one to three of them against one to three others.
    n_references : int, default=100
        Number of training rows to which distances are computed.
    latent : bool, default=False
        Add the hidden variables of a `LatentTree` over the others.
    C : float, default=1.0
        Weight of the losses; smaller values regularise more.
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        Loss of the classifiers.
    folds : int, default=5
        `fit_transform` scores the rows in this number of folds, each by classifiers trained on the other folds, so
        the scores of training rows are not too optimistic; 1 scores all rows by classifiers trained on all rows.
    tol, max_iter
        Of the classifiers.
    random_state : int, Generator or None
        Seed of splits, references and folds.

    Attributes
    ----------
    classes_ : ndarray
        Labels of training.
    coef_, intercept_ : ndarrays of shape (n_machines, n_features) and (n_machines,)
        Classifiers of labels, then of splits.
    references_ : ndarray of shape (n_references, n_features)
        The rows to which distances are measured.
    mean_, scale_ : ndarrays
        Mean and standard deviation of the attributes in training; attributes are centred and scaled by them.
    tree_ : LatentTree or None
        The tree with the hidden variables.

    References
    ----------
    .. [Yu2012] F. X. Yu, R. Ji, M.-H. Tsai, G. Ye and S.-F. Chang. Weak attributes for large-scale image retrieval.
       CVPR, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.attributes import WeakAttributes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(60, 3)) > 0).astype(int)
    >>> Z = WeakAttributes(n_splits=5, n_references=10, random_state=0).fit_transform(X, Y)
    >>> Z.shape  # three labels, five splits, ten references
    (60, 18)
    """

    saved = Fields(
        classes_=Objects(),
        coef_=Floats(None, "n_features_in_"),
        intercept_=Floats("coef_"),
        references_=Floats(None, "n_features_in_"),
        mean_=Floats(None),
        scale_=Floats("mean_", low=0.0),
        medians_=Optional(Floats(None)),
        tree_=Optional(Nested(LatentTree)),
        n_iter_=Count(0),
    )

    def __init__(
        self,
        classifiers: Any = True,
        n_splits: int = 100,
        n_references: int = 100,
        *,
        latent: bool = False,
        C: float = 1.0,
        loss: str = "squared-hinge",
        folds: int = 5,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.classifiers = classifiers
        self.n_splits = n_splits
        self.n_references = n_references
        self.latent = latent
        self.C = C
        self.loss = loss
        self.folds = folds
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> WeakAttributes:
        """Draw splits and references, and train the classifiers.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        Y : array of shape (n_rows,), matrix of 0 and 1 of shape (n_rows, n_labels), or list of label sets
            One label for each row, or several.
        sample_weight : array of n_rows numbers of at least 0, optional
            Weights of rows in the classifiers and in the means. A row of weight 0 is never a reference.

        Returns
        -------
        WeakAttributes
            This transformer.
        """
        self._learn(X, Y, sample_weight)
        return self

    def fit_transform(self, X: Any, Y: Any, sample_weight: Any = None) -> np.ndarray:
        """Train, and return the weak attributes of the training rows, scored by classifiers that did not see them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        Y : labels, see `fit`
        sample_weight : weights, see `fit`
            Rows of weight 0 are scored by classifiers trained on all other rows.

        Returns
        -------
        ndarray of shape (n_rows, n_weak)
            Weak attributes.
        """
        before = dict(self.__dict__)
        try:
            rows, scores = self._learn(X, Y, sample_weight)
            if rows.shape[0] < (X.shape[0] if hasattr(X, "shape") else len(X)):
                return self.transform(X)
            return self._finished(rows, scores)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, X: Any, Y: Any, sample_weight: Any = None) -> tuple[Any, np.ndarray]:
        """Train everything; the rows with a weight and their scores, out of folds."""
        self._check_parameters()
        X = self._rows(X, reset=True)
        labels, self.classes_ = _labels(Y, X.shape[0])
        used, weights = used_examples(sample_weight, X.shape[0])
        if used is not None:
            X, labels = X[used], labels[used]
        random = np.random.default_rng(self.random_state)
        targets = self._targets(labels, random)
        drawn = random.permutation(X.shape[0])[: self.n_references]
        self.references_ = np.asarray(X[drawn].toarray() if sp.issparse(X) else X[drawn], np.float64).reshape(
            len(drawn), X.shape[1]
        )
        if not targets.shape[1] and not len(drawn) and not self._models():
            raise ValueError("there is no weak attribute: turn classifiers on, or raise n_splits or n_references")
        self.coef_, self.intercept_, self.n_iter_ = self._machines(X, targets, weights)
        folds = min(check_count("folds", self.folds), X.shape[0])
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        if folds > 1 and targets.shape[1]:
            turn = random.permutation(X.shape[0]) % folds
            for part in range(folds):
                inside = turn != part
                own = None if weights is None else weights[inside]
                coef, intercept, _ = self._machines(X[inside], targets[inside], own)
                scores[turn == part] = np.asarray(X[turn == part] @ coef.T + intercept)
        raw = self._raw(X, scores)
        self.mean_ = np.average(raw, axis=0, weights=weights)
        spread = np.sqrt(np.average((raw - self.mean_) ** 2, axis=0, weights=weights))
        self.scale_ = np.where(spread > 1e-12 * np.maximum(np.abs(self.mean_), 1e-300), spread, 1.0)
        self.medians_ = self.tree_ = None
        if self.latent:
            self.medians_ = np.median(raw, axis=0)
            self.tree_ = LatentTree().fit((raw > self.medians_).astype(float), None, weights)
        return X, scores

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_count("n_splits", self.n_splits, 0)
        check_count("n_references", self.n_references, 0)
        check_flag("latent", self.latent)
        self._models()

    def _models(self) -> list[Any]:
        if isinstance(self.classifiers, bool):
            return []
        if not isinstance(self.classifiers, (list, tuple)):
            raise ValueError(f"classifiers must be true, false or a list of fitted models, got {self.classifiers!r}")
        for model in self.classifiers:
            if not any(hasattr(model, verb) for verb in ("decision_function", "predict_proba", "transform")):
                raise ValueError(f"classifiers: a {type(model).__name__} gives no scores")
        return list(self.classifiers)

    def _targets(self, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Signs of the rows in each machine, 0 where a row takes no part."""
        T = labels.shape[1]
        columns = [np.where(labels > 0, 1.0, -1.0)] if self.classifiers is not False else []
        if self.n_splits:
            if T < 2:
                raise ValueError("n_splits needs two labels or more")
            splits = np.zeros((len(labels), self.n_splits))
            for k in range(self.n_splits):
                order = random.permutation(T)
                a = int(random.integers(1, min(3, T - 1) + 1))
                b = int(random.integers(1, min(3, T - a) + 1))
                first, second = labels[:, order[:a]].any(axis=1), labels[:, order[a : a + b]].any(axis=1)
                splits[:, k] = first.astype(float) - second
            columns.append(splits)
        return np.hstack(columns) if columns else np.zeros((len(labels), 0))

    def _machines(self, X: Any, targets: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
        if not targets.shape[1]:
            return np.zeros((0, X.shape[1])), np.zeros(0), 0
        machines = fit_machines(
            X, targets, weights=weights, C=self.C, loss=self.loss, tol=self.tol, max_iter=self.max_iter
        )
        return machines.coef, machines.intercept, int(machines.n_iter)

    def _raw(self, X: Any, scores: np.ndarray) -> np.ndarray:
        """All attributes but the hidden ones, before scaling."""
        parts = [scores, *[_given_scores(model, X) for model in self._models()]]
        if len(self.references_):
            squares = np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X * X).sum(axis=1)).reshape(-1, 1)
            own = (self.references_**2).sum(axis=1)
            parts.append(np.sqrt(np.maximum(squares + own - 2.0 * np.asarray(X @ self.references_.T), 0.0)))
        return np.hstack(parts)

    def _finished(self, X: Any, scores: np.ndarray) -> np.ndarray:
        raw = self._raw(X, scores)
        Z = (raw - self.mean_) / self.scale_
        if self.tree_ is None:
            return Z
        return np.hstack([Z, self.tree_.transform((raw > self.medians_).astype(float))])

    def transform(self, X: Any) -> np.ndarray:
        """Return the weak attributes of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_weak)
            Weak attributes.
        """
        check_is_fitted(self)
        X = self._rows(X)
        return self._finished(X, np.asarray(X @ self.coef_.T + self.intercept_))

    @property
    def _n_features_out(self) -> int:
        return len(self.mean_) + (0 if self.tree_ is None else self.tree_.n_hidden_)

    def _check_state(self) -> None:
        if len(self.mean_) < len(self.coef_) + len(self.references_) or (self.scale_ <= 0).any():
            raise ValueError("the numbers of machines, references and means do not fit, or a scale is 0")
        if (self.tree_ is None) != (self.medians_ is None):
            raise ValueError("a tree of hidden variables and medians are there together")
        sizes = {len(self.mean_)}
        if self.tree_ is not None and self.medians_ is not None:
            sizes |= {self.tree_.n_features_in_, len(self.medians_)}
        if len(sizes) > 1:
            raise ValueError("the tree of hidden variables does not fit the attributes")


def _labels(Y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels as a matrix of 0 and 1, and their names; one label a row becomes one column a class."""
    array = None if sp.issparse(Y) or hasattr(Y, "columns") else np.asarray(Y, dtype=object if _ragged(Y) else None)
    if array is not None and array.ndim == 1 and not any(isinstance(v, (list, tuple, set, frozenset)) for v in array):
        if len(array) != n:
            raise ValueError(f"X has {n} rows and Y {len(array)}: they must be of one length")
        classes, places = np.unique(array, return_inverse=True)
        return (places[:, None] == np.arange(len(classes))).astype(float), classes
    matrix, classes, _ = fit_labels(Y, n)
    return matrix.toarray(), classes


def _ragged(Y: Any) -> bool:
    return isinstance(Y, (list, tuple)) and any(isinstance(row, (list, tuple, set, frozenset)) for row in Y)


def _given_scores(model: Any, X: Any) -> np.ndarray:
    for verb in ("decision_function", "predict_proba", "transform"):
        if hasattr(model, verb):
            scores = getattr(model, verb)(X)
            scores = np.asarray(scores.toarray() if sp.issparse(scores) else scores, np.float64)
            scores = scores.reshape(len(scores), -1)
            if len(scores) != X.shape[0] or not np.isfinite(scores).all():
                raise ValueError(f"{verb} of a {type(model).__name__} must give a finite score for each row")
            return scores
    raise ValueError(f"a {type(model).__name__} gives no scores")
