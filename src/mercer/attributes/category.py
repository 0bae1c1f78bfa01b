"""Classes described by attributes: predict the attributes of a row, then the class with the nearest description.

    encode   f(x) = [f_1(x) … f_l(x)],   f_j a linear classifier with the labels sign(A_{y_i j}) and weights |A_{y_i j}|
    decode   argmin_k ‖A_k − f(x)‖,  argmax_k cos(A_k, f(x)),  or argmin_k of the signs that differ

A = 2I − 1 is one-versus-all, a random A a random code, a table of signs an error-correcting output code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._explain import ScoreRows
from mercer._state.saved import Count, Fields, Floats, LabelValues, Optional, Saved
from mercer._validation import check_choice, check_count, check_sparse
from mercer._warnings import warn_caller
from mercer.attributes._checks import check_classes, check_table, used_rows
from mercer.attributes.design import _designed, visual_proximity
from mercer.learning.weighted_machines import LOSSES, fit_machines

__all__ = ["CategoryAttributes", "attribute_table"]

TABLES = ("designed", "one-vs-all", "random", "ecoc")
DECODINGS = ("cosine", "euclidean", "hamming")


def attribute_table(kind: str, n_classes: int, n_attributes: int | None = None, random_state: Any = None) -> np.ndarray:
    """Return a table of attributes that does not depend on data.

    Parameters
    ----------
    kind : {"one-vs-all", "random", "ecoc"}
        1 for one class and −1 for the others; uniform numbers from −1 to 1; random signs, the best separated of 20
        draws.
    n_classes : int
        Rows.
    n_attributes : int, optional
        Columns; twice the number of classes by default. One-versus-all has one for each class.
    random_state : int, Generator or None
        Seed of the draws.

    Returns
    -------
    ndarray of shape (n_classes, n_attributes)
        The table.

    Examples
    --------
    >>> from mercer.attributes import attribute_table
    >>> attribute_table("one-vs-all", 3)
    array([[ 1., -1., -1.],
           [-1.,  1., -1.],
           [-1., -1.,  1.]])
    """
    check_choice("kind", kind, TABLES[1:])
    n_classes = check_count("n_classes", n_classes, 2)
    if kind == "one-vs-all":
        if n_attributes is not None and n_attributes != n_classes:
            raise ValueError(f"one-vs-all has an attribute for each of the {n_classes} classes, not {n_attributes}")
        return 2.0 * np.eye(n_classes) - 1.0
    count = 2 * n_classes if n_attributes is None else check_count("n_attributes", n_attributes)
    random = _generator(random_state)
    if kind == "random":
        return random.uniform(-1.0, 1.0, (n_classes, count))
    best, separation = None, -1.0
    for _ in range(20):
        signs = np.where(random.random((n_classes, count)) < 0.5, -1.0, 1.0)
        mixed = (signs != signs[0]).any(axis=0)
        signs[0, ~mixed] *= -1.0  # a column of one sign tells nothing
        differing = (count - signs @ signs.T) / 2.0 + np.diag(np.full(n_classes, np.inf))
        if differing.min() > separation:
            best, separation = signs, float(differing.min())
    assert best is not None
    if separation < 1:
        raise ValueError(f"{count} signs are too few to tell {n_classes} classes apart: raise n_attributes")
    return best


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    return np.random.default_rng(random_state)


class Encoder(Saved, Estimator):
    """Linear classifiers for the attributes of a table: the base class of all estimators with such classifiers."""

    C: float
    loss: str
    tol: float
    max_iter: int
    coef_: np.ndarray
    intercept_: np.ndarray

    def _fit_machines(self, X: Any, table: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> None:
        machines = fit_machines(
            X, table, labels, weights=weights, C=self.C, loss=self.loss, tol=self.tol, max_iter=self.max_iter
        )
        self.coef_, self.intercept_ = machines.coef, machines.intercept
        self.n_iter_ = int(machines.n_iter)

    def _rows(self, X: Any, reset: bool = False) -> Any:
        return validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, reset=reset)

    def _encoded(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self._rows(X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _depends_on_units(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def decoded(F: np.ndarray, A: np.ndarray, how: str) -> np.ndarray:
    """Scores (n_rows, n_classes) of rows by their attributes; the higher the nearer."""
    if how == "hamming":
        return (
            -(np.sign(F)[:, None, :] != np.sign(A)).sum(axis=2).astype(float)
            if F.size * len(A) < 1 << 22
            else ((np.sign(F) @ np.sign(A).T - F.shape[1]) / 2.0)
        )
    if how == "cosine":
        return _unit(F) @ _unit(A).T
    squares = np.maximum((F * F).sum(axis=1)[:, None] + (A * A).sum(axis=1) - 2.0 * F @ A.T, 0.0)
    return -np.sqrt(squares)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


class CategoryAttributes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Encoder):
    """Describe classes by attributes, predict the attributes of rows, and classify by them.

    `transform` returns the scores of the attributes. They serve as features for classes that were not in training: a
    few rows of a new class are then enough.

    Parameters
    ----------
    A : {"designed", "one-vs-all", "random", "ecoc"} or array of shape (n_classes, n_attributes), default="designed"
        The table of attributes, rows in the sorted order of the classes (or of ``classes``; the index of a data frame
        also names them). "designed": by `design_attributes` from the `visual_proximity` of the classes. The others are
        made by `attribute_table`. A given table of 0 and 1 is converted to −1 and 1.
    n_attributes : int, optional
        Number of attributes, if the table is made here. By default twice the number of classes, or the number of
        different attributes if that is smaller.
    classes : sequence of labels, optional
        Classes of the rows of a given table. Each of them must occur in y.
    C : float, default=1.0
        Weight of the losses; smaller values regularise more.
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        Loss of the classifiers.
    decode : {"cosine", "euclidean", "hamming"}, default="cosine"
        How scores and descriptions are compared. Scores of classifiers and entries of a table differ in scale, so the
        angle is more informative than the distance.
    proximity_weight, redundancy_weight, sparsify : float
        See `design_attributes`.
    n_neighbors : int, default=10
        See `visual_proximity`.
    tol : float, default=1e-4
        Relative optimality gap at which the training of a classifier stops.
    max_iter : int, default=100
        Maximum number of Newton steps.
    random_state : int, Generator or None
        Seed of the tables "random" and "ecoc".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    attributes_ : ndarray of shape (n_classes, n_attributes)
        The table.
    proximity_ : ndarray of shape (n_classes, n_classes) or None
        Proximity of the classes, where attributes were designed.
    coef_, intercept_ : ndarrays of shape (n_attributes, n_features) and (n_attributes,)
        The classifiers.
    n_iter_ : int
        Newton steps.

    See Also
    --------
    ZeroShotClassifier : Classes without a single training row.
    attribute_report : Separation of the classes by a table, and accuracy of the predicted attributes.

    References
    ----------
    .. [Yu2013b] F. X. Yu, L. Cao, R. S. Feris, J. R. Smith and S.-F. Chang. Designing category-level attributes for
       discriminative visual recognition. CVPR, 2013.
    .. [Dietterich1995] T. G. Dietterich and G. Bakiri. Solving multiclass learning problems via error-correcting output
       codes. Journal of Artificial Intelligence Research 2, 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer.attributes import CategoryAttributes
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CategoryAttributes(n_attributes=30).fit(X[:1200] / 16, y[:1200])
    >>> model.score(X[1200:] / 16, y[1200:]) > 0.85
    True
    >>> model.transform(X[:2] / 16).shape
    (2, 30)
    """

    version = 2  # lam and eta are weights
    saved = Fields(
        classes_=LabelValues(2),
        attributes_=Floats("classes_", None),
        proximity_=Optional(Floats("classes_", "classes_", low=0.0)),
        coef_=Floats(None, "n_features_in_"),
        intercept_=Floats("coef_"),
        n_iter_=Count(0),
    )

    def __init__(
        self,
        A: Any = "designed",
        n_attributes: int | None = None,
        *,
        classes: Any = None,
        C: float = 1.0,
        loss: str = "squared-hinge",
        decode: str = "cosine",
        proximity_weight: float = 3.0,
        redundancy_weight: float = 15.0,
        sparsify: float = 0.1,
        n_neighbors: int = 10,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.A = A
        self.n_attributes = n_attributes
        self.classes = classes
        self.C = C
        self.loss = loss
        self.decode = decode
        self.proximity_weight = proximity_weight
        self.redundancy_weight = redundancy_weight
        self.sparsify = sparsify
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CategoryAttributes:
        """Make the table of attributes and train a classifier for each attribute.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : array of shape (n_rows,)
            Their classes.
        sample_weight : array of n_rows numbers of at least 0, optional
            A row of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        CategoryAttributes
            This model.
        """
        check_choice("decode", self.decode, DECODINGS)
        check_choice("loss", self.loss, LOSSES)
        X = self._rows(X, reset=True)
        X, y, weights = used_rows(X, y, sample_weight)
        classes, labels = check_classes(y, X.shape[0])
        table, proximity = self._table(X, classes, labels, weights)
        self._fit_machines(X, table, labels, weights)
        self.classes_, self.attributes_, self.proximity_ = classes, table, proximity
        return self

    def _table(
        self, X: Any, classes: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The table for these classes, and their proximity where it was needed."""
        if not isinstance(self.A, str):
            return given_table(self.A, self.classes, classes), None
        check_choice("A", self.A, TABLES)
        if self.classes is not None:
            raise ValueError("classes names the rows of a given table A, but this table is made from the data")
        if self.A != "designed":
            return attribute_table(self.A, len(classes), self.n_attributes, self.random_state), None
        S = visual_proximity(X, classes[labels], n_neighbors=self.n_neighbors, sample_weight=weights)
        count = 2 * len(classes) if self.n_attributes is None else self.n_attributes
        strict = self.n_attributes is not None
        table = _designed(S, count, self.proximity_weight, self.redundancy_weight, self.sparsify, None, strict)
        return table, S

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of the attributes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_attributes)
            f(x).
        """
        return self._encoded(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the similarity of rows to the description of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows,) for two classes
            Cosines, or negative distances; for two classes the value of the second minus that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores(self, X: Any) -> np.ndarray:
        return decoded(self._encoded(X), self.attributes_, self.decode)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class whose description is nearest.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    @property
    def _n_features_out(self) -> int:
        return len(self.coef_)

    def _score_rows(self) -> ScoreRows:
        return ScoreRows(self.coef_, self.intercept_, [f"attribute {j}" for j in range(len(self.coef_))])

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if isinstance(self.A, str):
            return params
        return {**params, "A": self.attributes_, "classes": None}

    def _check_state(self) -> None:
        check_choice("decode", self.decode, DECODINGS)
        if self.attributes_.shape[1] != len(self.coef_):
            raise ValueError(f"{self.attributes_.shape[1]} attributes and {len(self.coef_)} machines do not fit")


def given_table(A: Any, names: Any, classes: np.ndarray) -> np.ndarray:
    """Return a user's table in the order of the classes of y; 0 and 1 become −1 and 1."""
    if names is None and hasattr(A, "index") and hasattr(A, "to_numpy"):
        index = A.index.to_numpy()
        names = index if set(index.tolist()) & set(classes.tolist()) else None
    if names is not None:
        names = list(np.asarray(names).tolist())
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"classes names {twice!r} twice")
        table = check_table("A", A, len(names))
        known = set(classes.tolist())
        without = [name for name in names if name not in known]
        if without:
            raise ValueError(f"class {without[0]!r} of the table has no row in y; leave it out of A and classes")
        place = {name: i for i, name in enumerate(names)}
        unnamed = [name for name in classes.tolist() if name not in place]
        if unnamed:
            raise ValueError(f"class {unnamed[0]!r} of y is not among the classes of the table")
        table = table[[place[name] for name in classes.tolist()]]
    else:
        table = check_table("A", A, len(classes), classes)
    table = signed(table)
    warn_of_idle(table)
    same = np.unique(table, axis=0, return_index=True)[1]
    if len(same) < len(table):
        second = next(i for i in range(len(table)) if (table[:i] == table[i]).all(axis=1).any())
        first = int(np.flatnonzero((table[:second] == table[second]).all(axis=1))[0])
        a, b = classes.tolist()[first], classes.tolist()[second]
        message = f"classes {a!r} and {b!r} have the same attributes: the first is predicted"
        warn_caller(message, UserWarning)
    return table


def signed(table: np.ndarray) -> np.ndarray:
    """Return a table of 0 and 1 as one of −1 and 1, and any other table unchanged."""
    return 2.0 * table - 1.0 if np.isin(table, (0.0, 1.0)).all() else table


def warn_of_idle(table: np.ndarray) -> None:
    """Warn of attributes with the same sign for all classes: they cannot be learnt."""
    idle = ((table >= 0).all(axis=0)) | ((table <= 0).all(axis=0))
    if idle.any():
        j = int(np.flatnonzero(idle)[0])
        count = f" (and {int(idle.sum()) - 1} more)" if idle.sum() > 1 else ""
        warn_caller(
            f"attribute {j}{count} has the same sign for all classes in training: its score is constant;"
            " a table of degrees must be centred",
            UserWarning,
        )
