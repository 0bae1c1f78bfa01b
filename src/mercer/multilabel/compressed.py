"""Label sets compressed by signed hashes: regression on a short code, decoded by sparse recovery [Hsu2009].

    z_i = H y_i,   min_B ‖X B − Z‖² + alpha ‖B‖²,   ŷ = the few labels whose hashed columns explain x'B

H is a signed hash matrix of d rows. A row of n labels with k positive ones can be recovered from d = O(k log n)
numbers, so d regressions replace n. Columns of H are the dictionary of the recovery, by matching pursuit or by ℓ1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Choice, Count, Fields, Floats, LabelValues, Nested, Saved
from mercer._validation import check_choice, check_count, check_flag, check_positive, check_sparse, used_examples
from mercer.learning.sparse_codes import Dictionary, sparse_codes
from mercer.maps import SignedHashProjection
from mercer.multilabel._decisions import Decisions, check_threshold
from mercer.multilabel.joint import LabelSetClassifier
from mercer.multilabel.label_forms import FORMS, fit_labels

__all__ = ["CompressedLabels"]


class CompressedLabels(LabelSetClassifier, Saved, Estimator):
    """Learn many rare labels by regression on a short code of the label sets.

    Parameters
    ----------
    n_components : int, optional
        d, length of the code of a label set; by default 4 k log(n_labels), with k the mean number of labels plus 2, at
        most the number of labels.
    n_hashes : int, default=8
        Number of hash positions of a label.
    alpha : float, default=1.0
        Penalty of the ridge regression, relative to the mean square of a feature.
    solver : {"omp", "l1"}, default="omp"
        Method of sparse recovery.
    n_nonzero : int, optional
        Maximum number of recovered labels; by default twice the mean number of labels plus 2.
    fit_intercept : bool, default=True
    threshold, measure
        As in `JointSVM`, on predictions of the regression that leave the row out.
    random_state : int, RandomState or None
        Seed of the hash functions.
    n_jobs : int or None
    verbose : int, default=0

    Attributes
    ----------
    projection_ : SignedHashProjection
    coef_ : array of shape (n_features, n_components)
    intercept_ : array of shape (n_components,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import CompressedLabels
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((400, 60)) < 0.05).astype(int)
    >>> X = Y @ rng.normal(size=(60, 80)) + 0.1 * rng.normal(size=(400, 80))
    >>> model = CompressedLabels(40, alpha=0.01, random_state=0).fit(X[:300], Y[:300])
    >>> bool(model.score(X[300:], Y[300:]) > 0.9)
    True

    References
    ----------
    .. [Hsu2009] D. Hsu, S. Kakade, J. Langford and T. Zhang. Multi-label prediction via compressed sensing. NIPS, 2009.
    """

    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        projection_=Nested(SignedHashProjection),
        coef_=Floats("n_features_in_", None),
        intercept_=Floats(None),
        n_labels_=Count(1),
        decisions_=Nested(Decisions),
    )

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_hashes: int = 8,
        alpha: float = 1.0,
        solver: str = "omp",
        n_nonzero: int | None = None,
        fit_intercept: bool = True,
        threshold: Any = "auto",
        measure: str = "micro-f1",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_hashes = n_hashes
        self.alpha = alpha
        self.solver = solver
        self.n_nonzero = n_nonzero
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.measure = measure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> CompressedLabels:
        """Learn from rows and their label sets.

        Parameters
        ----------
        X : array or sparse matrix of n rows
        Y : array or sparse matrix of 0 and 1 with n rows, or list of n label sets
        sample_weight : array of n numbers of at least 0, optional
            A row of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : CompressedLabels
        """
        self._check_parameters()
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64)
        used, given = used_examples(sample_weight, X.shape[0])
        labels, classes, form = fit_labels(Y, X.shape[0], used)
        X = X if used is None else X[used]
        weights = np.ones(X.shape[0]) if given is None else given
        mean = float(np.average(np.asarray(labels.sum(axis=1)).ravel(), weights=weights))
        T = len(classes)
        d = self.n_components or min(T, math.ceil(4 * (mean + 2) * math.log(T + 1)))
        self.n_labels_ = int(self.n_nonzero or min(T, math.ceil(2 * mean) + 2))
        self.projection_ = SignedHashProjection(
            d, n_hashes=min(self.n_hashes, d), random_state=self.random_state, n_jobs=self.n_jobs
        ).fit(labels)
        Z = self.projection_.transform(labels)
        self.coef_, self.intercept_, left_out = _ridge(X, Z, self.alpha, self.fit_intercept, weights)
        self.classes_, self.label_form_ = classes, form
        self._prepare()
        scores = self._decoded(left_out)
        self.decisions_ = Decisions().fit(scores, labels, self.threshold, self.measure, False, given)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_nonzero"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_count("n_hashes", self.n_hashes)
        check_positive("alpha", self.alpha)
        check_choice("solver", self.solver, ("omp", "l1"))
        check_flag("fit_intercept", self.fit_intercept)
        check_threshold(self.threshold, self.measure)

    def _depends_on_units(self) -> bool:
        return True

    def _prepare(self) -> None:
        self._dictionary = Dictionary(np.ascontiguousarray(self.projection_.to_matrix().T.toarray()))

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        """Scores of labels: the coefficients of their hashed columns."""
        if self.solver == "omp":
            most = min(self.n_labels_, codes.shape[1])
            sparse = sparse_codes(codes, self._dictionary, "omp", n_nonzero=most, positive=True, n_jobs=self.n_jobs)
        else:
            sparse = sparse_codes(codes, self._dictionary, "lasso", alpha=0.05, positive=True, n_jobs=self.n_jobs)
        return sparse.codes.toarray()

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each label: its coefficient in the recovery of the code, 0 for most.

        Parameters
        ----------
        X : array or sparse matrix

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, check_sparse("X", X), reset=False, accept_sparse="csr", dtype=np.float64)
        return self._decoded(np.asarray(X @ self.coef_) + self.intercept_)

    def recover(self, codes: Any) -> np.ndarray:
        """Return the scores of labels recovered from codes, such as those of ``projection_``.

        Parameters
        ----------
        codes : array of shape (n_rows, n_components)

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
        """
        check_is_fitted(self, "coef_")
        codes = np.asarray(codes, np.float64)
        if codes.ndim != 2 or codes.shape[1] != len(self.intercept_) or not np.isfinite(codes).all():
            raise ValueError(f"codes must be finite, with {len(self.intercept_)} columns, got shape {codes.shape}")
        return self._decoded(codes)

    def _check_state(self) -> None:
        self._check_parameters()
        T, d = len(self.classes_), self.projection_.n_components
        fits = self.projection_.n_features_in_ == T and self.coef_.shape[1] == d == len(self.intercept_)
        if not fits or len(self.decisions_.slopes_) != T:
            raise ValueError(f"the projection, the coefficients and the decisions must be of {T} labels")
        self._prepare()


def _ridge(
    X: Any, Z: np.ndarray, alpha: float, intercept: bool, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, offsets, and predictions of each row from the others."""
    n, d = X.shape
    weights = np.ones(n) if weights is None else weights
    total = float(weights.sum())
    x_mean = np.asarray(weights @ X).ravel() / total if intercept else np.zeros(d)
    z_mean = weights @ Z / total if intercept else np.zeros(Z.shape[1])
    squares = np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else (X**2).sum(axis=1)).ravel()
    penalty = alpha * max(float(weights @ squares) / total, 1e-300)
    if d <= n:
        weighted = sp.diags(weights) @ X if sp.issparse(X) else X * weights[:, None]
        gram = X.T @ weighted
        gram = (gram.toarray() if sp.issparse(gram) else gram) - total * np.outer(x_mean, x_mean)
        gram[np.diag_indices(d)] += penalty
        factor = cho_factor(gram, lower=True)
        B = cho_solve(factor, np.asarray(weighted.T @ (Z - z_mean)))
        half = cho_solve(factor, np.eye(d))
        XA = np.asarray(X @ half) - x_mean @ half
        crossed = X.multiply(XA).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, XA)
        own = weights * (np.asarray(crossed).ravel() - XA @ x_mean)
    else:
        K = X @ X.T
        K = K.toarray() if sp.issparse(K) else K
        cross = np.asarray(X @ x_mean)
        K = K - cross[:, None] - cross + x_mean @ x_mean
        K[np.diag_indices(n)] += penalty / weights
        factor = cho_factor(K, lower=True)
        dual = cho_solve(factor, Z - z_mean)
        B = np.asarray(X.T @ dual) - np.outer(x_mean, dual.sum(axis=0))
        own = 1.0 - penalty / weights * np.diag(cho_solve(factor, np.eye(n)))
    fitted = np.asarray(X @ B) + (z_mean - x_mean @ B)
    own = np.minimum(own + (weights / total if intercept else 0.0), 1.0 - 1e-6)[:, None]
    return B, z_mean - x_mean @ B, (fitted - own * Z) / (1.0 - own)
