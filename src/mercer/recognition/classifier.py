"""Classification by sparse representation: a query is a combination of a few training rows, which decide its class.

    a = sparse code of P x over the projected training rows P x_j, all of unit length
    r_k = ‖P x − Σ_{j of class k} a_j P x_j‖,                   ŷ = argmin_k r_k
    concentration = (K max_k ‖a^k‖₁ / ‖a‖₁ − 1) / (K − 1)       1: one class has the whole code; 0: all have the same

`CodeClassifier` gives the code to a linear classifier instead.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._arrays import row_blocks
from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Ints, LabelValues, Objects, Optional, Saved, Transient
from mercer._validation import check_choice, check_flag, used_examples
from mercer._warnings import warn_caller
from mercer.learning.sparse_codes import Dictionary, SparseCodes
from mercer.recognition._images import as_pixel_rows, check_images, image_shape
from mercer.recognition.coder import Coding

__all__ = ["CodeClassifier", "SparseRepresentationClassifier"]

# Rows that a fit codes over the others, and the median concentration below which it warns: faces in a laboratory,
# drawn ones and digits have 0.58 to 0.71, faces from the web 0.17.
HINT_ROWS, HINT_CONCENTRATION = 100, 0.3


def _rescaled(rows: np.ndarray, codes: sp.csr_matrix) -> tuple[np.ndarray, sp.csr_matrix]:
    """Rows and their codes divided by a power of two each, so that squares of large numbers do not overflow."""
    exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    data = np.ldexp(codes.data, -np.repeat(exponents, np.diff(codes.indptr)))
    return np.ldexp(rows, -exponents[:, None]), sp.csr_matrix((data, codes.indices, codes.indptr), codes.shape)


class _Gallery(Coding, Saved, ClassifierMixin, Estimator):
    """Training rows, projected, as the atoms of codes."""

    projection: Any
    classes_: np.ndarray
    atoms_: np.ndarray
    _image_shape: np.ndarray | None
    _prepared: Dictionary | None

    saved = Fields(
        classes_=LabelValues(2),
        atoms_=Floats(None, None),
        labels_=Ints("atoms_", below="classes_"),
        projection_=Optional(Objects()),
        _image_shape=Optional(Ints(None, low=1)),
        _prepared=Transient(),
    )

    def _fit_gallery(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray | None:
        """Project the rows with a weight above 0; returns their weights."""
        self._check_search()
        self._image_shape = image_shape(X)
        X, y = validate_data(self, as_pixel_rows(X), y, dtype=[np.float64, np.float32])
        used, weights = used_examples(sample_weight, X.shape[0])
        if used is not None:
            X, y = X[used], y[used]
        check_classification_targets(y)
        self.classes_, self.labels_ = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_.tolist()[0]!r}")
        self.projection_ = None
        if self.projection is not None:
            self.projection_ = clone(self.projection).fit(X, y)
        self.atoms_ = np.array(self._project(X), np.float64)
        norms = np.linalg.norm(self.atoms_, axis=1)
        if not norms.any():
            raise ValueError("all rows of X are 0 (after the projection): there is nothing to build codes from")
        if not norms.all():
            row = int(norms.argmin())
            warn_caller(f"row {row} of X is 0 (after the projection): no code uses it", UserWarning)
        self._prepared = Dictionary(self._dictionary())
        return weights

    def _dictionary(self) -> np.ndarray:
        return self.atoms_

    def _project(self, X: np.ndarray) -> np.ndarray:
        Z: Any = X if self.projection_ is None else self.projection_.transform(X)
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        if Z.ndim != 2 or len(Z) != len(X) or not np.isfinite(Z).all():
            raise ValueError(f"projection must give finite rows, one for each row of X, got shape {Z.shape}")
        return Z

    def _queries(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        check_images(X, getattr(self, "_image_shape", None))
        X = validate_data(self, as_pixel_rows(X, self.n_features_in_), dtype=[np.float64, np.float32], reset=False)
        return np.asarray(self._project(X), np.float64)

    def code(self, X: Any) -> SparseCodes:
        """Return the sparse codes of queries over the projected training rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        mercer.learning.sparse_codes.SparseCodes
            Codes, residuals and gaps; a column of the codes for each training row.
        """
        return self._code(self._queries(X))

    def _code(self, queries: np.ndarray, barred: np.ndarray | None = None) -> SparseCodes:
        if self._prepared is None:  # after a file was read
            self._prepared = Dictionary(self._dictionary())
        return self._search(queries, self._prepared, barred)

    def _check_state(self) -> None:
        self._check_search()
        if self.atoms_.shape[1] < 1 or (self.projection_ is None and self.atoms_.shape[1] != self.n_features_in_):
            raise ValueError(f"the atoms have shape {self.atoms_.shape}, which does not match the projection")
        if self.projection_ is not None:
            fits = getattr(self.projection_, "n_features_in_", None) == self.n_features_in_
            if not fits or getattr(self.projection_, "_n_features_out", self.atoms_.shape[1]) != self.atoms_.shape[1]:
                raise ValueError("the projection does not fit the features or the atoms")


class SparseRepresentationClassifier(_Gallery):
    """Classify by the class whose training rows explain a query best in its sparse code.

    Parameters
    ----------
    projection : transformer, optional
        Applied to all rows first, such as ``SignedHashProjection(300)``, `RandomProjection`, `CirculantProjection` or
        scikit-learn's ``PCA``; it is cloned and fitted. By default none.
    solver : {"omp", "order-recursive", "l1", "lasso"}, default="lasso"
        How codes are found; see `SparseCoder`.
    n_nonzero : int, optional
        Maximum number of atoms in a code, for "omp" and "order-recursive".
    tol : float, optional
        Residual to stop at, as a share of the query's norm, for all but "lasso"; 0.05 where neither this nor
        ``n_nonzero`` is given.
    alpha : float, optional
        λ of "lasso" for rows of unit length; 0.01 where it is not given.
    positive : bool, default=False
        Codes without negative entries; not for "order-recursive".
    occlusion : bool, default=False
        Model corrupted pixels: the dictionary is [A, I], and the part of I is subtracted from the query before classes
        are compared. Needs ``projection=None``: a projection mixes pixels.
    min_concentration : float, default=0.0
        Queries whose code is less concentrated on one class (see `concentration`) get the label ``unknown``.
    unknown : label, optional
        Label of rejected queries, of the type of the other labels.
    n_jobs : int, optional
        Threads; results do not depend on them.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    atoms_ : ndarray of shape (n_rows, n_components)
        The projected training rows.
    labels_ : ndarray of int of shape (n_rows,)
        Their classes, as indices in ``classes_``.
    projection_ : transformer or None
        The fitted projection.

    References
    ----------
    .. [Wright2009] J. Wright, A. Y. Yang, A. Ganesh, S. S. Sastry and Y. Ma. Robust face recognition via sparse
       representation. IEEE Transactions on Pattern Analysis and Machine Intelligence 31, 2009.
    .. [Shi2010] Q. Shi, H. Li and C. Shen. Rapid face recognition using hashing. CVPR, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer.maps import SignedHashProjection
    >>> from mercer.recognition import SparseRepresentationClassifier
    >>> images, y = load_digits(return_X_y=True)
    >>> model = SparseRepresentationClassifier(SignedHashProjection(40, random_state=0))
    >>> model.fit(images[:600], y[:600]).score(images[600:900], y[600:900]) > 0.9
    True
    """

    def __init__(
        self,
        projection: Any = None,
        solver: str = "lasso",
        *,
        n_nonzero: int | None = None,
        tol: float | None = None,
        alpha: float | None = None,
        positive: bool = False,
        occlusion: bool = False,
        min_concentration: float = 0.0,
        unknown: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.projection = projection
        self.solver = solver
        self.n_nonzero = n_nonzero
        self.tol = tol
        self.alpha = alpha
        self.positive = positive
        self.occlusion = occlusion
        self.min_concentration = min_concentration
        self.unknown = unknown
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> SparseRepresentationClassifier:
        """Fit the projection and store the projected rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features) or images of shape (n_rows, height, width)
            Training rows.
        y : array of shape (n_rows,)
            Their labels.

        Returns
        -------
        SparseRepresentationClassifier
            This model.
        """
        self._check_own()
        self._fit_gallery(X, y)
        self._check_unknown()
        self._warn_of_spread_codes()
        return self

    def _warn_of_spread_codes(self) -> None:
        """Code some training rows over the others: where the codes are spread, the gallery does not span its people."""
        n, K = len(self.atoms_), len(self.classes_)
        counts = np.bincount(self.labels_, minlength=K)
        if n < HINT_ROWS or K < 5 or self._prepared is None or self._prepared.gram is None:
            return
        rows = np.flatnonzero((counts[self.labels_] > 1) & (np.linalg.norm(self.atoms_, axis=1) > 0))
        rows = rows[np.linspace(0, len(rows) - 1, HINT_ROWS).astype(int)] if len(rows) >= HINT_ROWS else rows[:0]
        if not len(rows):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            codes = self._code(self.atoms_[rows], rows).codes
        spread = float(np.median(self._concentration(codes)))
        if spread < HINT_CONCENTRATION:
            warn_caller(
                f"codes of training rows over the other rows are spread over the classes (median concentration "
                f"{spread:.2f}, below {HINT_CONCENTRATION}): the rows of a class do not span each other, and a linear "
                "classifier on the same rows may well do better",
                UserWarning,
            )

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the smallest residual, or ``unknown`` if the code is not concentrated enough.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        queries = self._queries(X)
        codes = self._code(queries).codes
        labels = self.classes_[self._class_residuals(queries, codes).argmin(axis=1)]
        if self.min_concentration > 0:
            rejected = self._concentration(codes) < self.min_concentration
            labels = labels.astype(np.result_type(labels, np.asarray([self.unknown])))
            labels[rejected] = self.unknown
        return labels

    def residuals(self, X: Any) -> np.ndarray:
        """Return the residual of each query for the part of the code of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            r_k / ‖x‖; 1 for classes that have no part in the code.
        """
        queries = self._queries(X)
        return self._class_residuals(queries, self._code(queries).codes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return negative residuals of classes; for two classes the difference of the residuals.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            Scores: the largest is the prediction, or positive ones mean ``classes_[1]``.
        """
        residuals = self.residuals(X)
        return residuals[:, 0] - residuals[:, 1] if len(self.classes_) == 2 else -residuals

    def concentration(self, X: Any) -> np.ndarray:
        """Return the concentration of the codes of queries on one class, from 0 to 1.

        People who are not in the gallery have codes that are spread over many classes.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows,)
            Concentrations; 0 where the code is 0.
        """
        return self._concentration(self.code(X).codes)

    def _concentration(self, codes: sp.csr_matrix) -> np.ndarray:
        K, n = len(self.classes_), len(self.atoms_)
        membership = sp.csr_matrix((np.ones(n), (np.arange(n), self.labels_)), (n, K))
        sizes = abs(codes[:, :n]).multiply(np.linalg.norm(self.atoms_, axis=1)[None, :])
        shares = np.asarray((sp.csr_matrix(sizes) @ membership).todense())
        total = shares.sum(axis=1)
        top = np.divide(shares.max(axis=1), total, out=np.full(len(total), 1.0 / K), where=total > 0)
        return np.clip((K * top - 1) / (K - 1), 0.0, 1.0)

    def _class_residuals(self, queries: np.ndarray, codes: sp.csr_matrix) -> np.ndarray:
        n = len(self.atoms_)
        queries, codes = _rescaled(queries, codes)
        norms = np.linalg.norm(queries, axis=1)
        norms[norms == 0] = 1.0
        parts = codes[:, :n].tocsc()
        members = [np.flatnonzero(self.labels_ == k) for k in range(len(self.classes_))]
        out = np.empty((len(queries), len(members)))
        for rows in row_blocks(len(queries), 4 * queries.shape[1]):
            explained = queries[rows]
            if self.occlusion:
                explained = explained - codes[rows, n:].toarray()
            for k, atoms in enumerate(members):
                rest = explained - parts[rows, atoms] @ self.atoms_[atoms]
                out[rows, k] = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        return out / norms[:, None]

    def _dictionary(self) -> np.ndarray:
        if not self.occlusion:
            return self.atoms_
        return np.vstack([self.atoms_, np.eye(self.atoms_.shape[1])])

    def _check_own(self) -> None:
        if check_flag("occlusion", self.occlusion) and self.projection is not None:
            raise ValueError("occlusion=True needs projection=None: a projection spreads a pixel over all components")
        share = self.min_concentration
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 <= share <= 1:
            raise ValueError(f"min_concentration must be a number from 0 to 1, got {share!r}")

    def _check_unknown(self) -> None:
        if self.min_concentration == 0:
            return
        if np.asarray([self.unknown]).dtype.kind not in {"U": "U", "O": "OU"}.get(self.classes_.dtype.kind, "iuf"):
            raise ValueError(
                "unknown must be a label of the type of the others for queries below min_concentration, such as "
                f"{self.classes_.tolist()[0]!r}, got {self.unknown!r}"
            )

    def _check_state(self) -> None:
        self._check_own()
        super()._check_state()
        self._check_unknown()


class CodeClassifier(_Gallery):
    """Classify sparse codes over the training rows with a linear classifier.

    The codes of training rows are computed without their own atom; the code of a query may use all atoms.

    Parameters
    ----------
    projection : transformer, optional
        Applied to all rows first; it is cloned and fitted. By default none.
    solver : {"omp", "order-recursive", "l1", "lasso"}, default="lasso"
        How codes are found; see `SparseCoder`.
    classifier : classifier, optional
        Fitted to the codes; by default ``mercer.classification.LinearClassifier(C=10)``.
    n_nonzero : int, optional
        Maximum number of atoms in a code, for "omp" and "order-recursive".
    tol : float, optional
        Residual to stop at, as a share of the row's norm, for all but "lasso"; 0.05 where neither this nor
        ``n_nonzero`` is given.
    alpha : float, optional
        λ of "lasso" for rows of unit length; 0.01 where it is not given.
    positive : bool, default=False
        Codes without negative entries; not for "order-recursive".
    scale : {None, "minmax"}, default=None
        "minmax" brings each column of the codes to [0, 1], after which they are dense.
    n_jobs : int, optional
        Threads; results do not depend on them.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    classifier_ : classifier
        The fitted classifier.
    atoms_ : ndarray of shape (n_rows, n_components)
        The projected training rows.
    labels_ : ndarray of int of shape (n_rows,)
        Their classes, as indices in ``classes_``.
    projection_ : transformer or None
        The fitted projection.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer.recognition import CodeClassifier
    >>> images, y = load_digits(return_X_y=True)
    >>> model = CodeClassifier(alpha=0.05).fit(images[:500], y[:500])
    >>> model.score(images[500:700], y[500:700]) > 0.8
    True
    """

    saved = _Gallery.saved | Fields(
        classifier_=Objects(), low_=Optional(Floats("atoms_")), span_=Optional(Floats("atoms_", low=0.0))
    )

    def __init__(
        self,
        projection: Any = None,
        solver: str = "lasso",
        classifier: Any = None,
        *,
        n_nonzero: int | None = None,
        tol: float | None = None,
        alpha: float | None = None,
        positive: bool = False,
        scale: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.projection = projection
        self.solver = solver
        self.classifier = classifier
        self.n_nonzero = n_nonzero
        self.tol = tol
        self.alpha = alpha
        self.positive = positive
        self.scale = scale
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CodeClassifier:
        """Code each row over the others, and fit the classifier to the codes.

        Parameters
        ----------
        X : array of shape (n_rows, n_features) or images of shape (n_rows, height, width)
            Training rows.
        y : array of shape (n_rows,)
            Their labels.
        sample_weight : array of n_rows numbers of at least 0, optional
            Weights for the classifier; a row of weight 0 is not used as an atom.

        Returns
        -------
        CodeClassifier
            This model.
        """
        check_choice("scale", self.scale, (None, "minmax"))
        weights = self._fit_gallery(X, y, sample_weight)
        n = len(self.atoms_)
        features = self._unit_codes(self.atoms_, barred=np.arange(n))
        self.low_ = self.span_ = None
        if self.scale == "minmax":
            dense = features.toarray()
            self.low_, self.span_ = dense.min(axis=0), np.ptp(dense, axis=0)
            features = self._scaled(features)
        classifier = self.classifier
        if classifier is None:
            from mercer.classification import LinearClassifier

            classifier = LinearClassifier(C=10.0, random_state=0)
        more = {} if weights is None else {"sample_weight": weights}
        self.classifier_ = clone(classifier).fit(features, self.classes_[self.labels_], **more)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the label that the classifier gives to the code of each query.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        features = self._features(X)
        return self.classifier_.predict(features)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores that the classifier gives to the code of each query.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), images of shape (n_rows, height, width), or one image
            Queries.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            Scores.
        """
        features = self._features(X)
        return self.classifier_.decision_function(features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # with few features, codes of a few atoms say little
        return tags

    def _features(self, X: Any) -> Any:
        return self._scaled(self._unit_codes(self._queries(X)))

    def _unit_codes(self, rows: np.ndarray, barred: np.ndarray | None = None) -> sp.csr_matrix:
        """Codes of rows and atoms of unit length: sizes of pixels do not matter to the classifier."""
        rows, codes = _rescaled(rows, self._code(rows, barred).codes)
        norms = np.linalg.norm(rows, axis=1)
        norms[norms == 0] = 1.0
        return sp.csr_matrix(sp.diags(1 / norms) @ codes @ sp.diags(np.linalg.norm(self.atoms_, axis=1)))

    def _scaled(self, features: sp.csr_matrix) -> Any:
        if self.low_ is None or self.span_ is None:
            return features
        return (features.toarray() - self.low_) / np.where(self.span_ > 0, self.span_, 1.0)

    def _check_state(self) -> None:
        check_choice("scale", self.scale, (None, "minmax"))
        super()._check_state()
        if (self.scale is None) != (self.low_ is None) or (self.scale is None) != (self.span_ is None):
            raise ValueError("low_ and span_ must be present if and only if scale='minmax'")
        if not hasattr(self.classifier_, "predict"):
            raise ValueError("classifier_ must be a classifier")
