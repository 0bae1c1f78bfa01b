"""One linear support vector machine for each label, all trained together.

    min over (w_t, b_t)   ½‖w_t‖² + C Σ_i max(0, 1 − y_it (⟨w_t, x_i⟩ + b_t))²        for every label t

This is binary relevance: labels are independent. With sparse rows, the classifiers of eight labels take their Newton
steps together (`mercer._core.joint.newton_machines`); with dense rows, each step is a matrix product for all labels.
Scores of held-out rows come from folds, whose classifiers start from those of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._explain import ScoreModel, ScoreRows
from mercer._state.saved import Choice, Count, Fields, Floats, LabelValues, Nested, Number, Optional, Saved
from mercer._validation import check_choice, check_count, check_positive, check_sparse, thread_count, used_examples
from mercer._warnings import warn_caller
from mercer.learning.solvers import ConvergenceWarning
from mercer.learning.weighted_machines import fit_machines
from mercer.multilabel._decisions import MEASURES, Decisions, check_threshold
from mercer.multilabel.joint import LabelSetClassifier
from mercer.multilabel.label_forms import FORMS, fit_labels

__all__ = ["SeparateSVM"]

_CELLS = 1 << 22  # targets at a time
_FOLDS = 3
_TRIED = (1.0, 0.1, 10.0)  # c of C = c / mean ‖x‖²; the first of equals is taken


def _calibrated(model: SeparateSVM) -> bool:
    if model.threshold is None:
        raise AttributeError("threshold=None calibrates no probabilities; use decision_function")
    return True


class SeparateSVM(LabelSetClassifier, Saved, ScoreModel, Estimator):
    """Train one linear support vector machine for each label, all at once.

    It is the baseline for every model of label sets, and fast with many labels and sparse rows. Labels that no row or
    every row has are constant.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the errors; smaller values regularise more. ``"auto"``: c / mean ‖x‖², where c is 0.1, 1 or 10,
        whichever has the best ``measure`` on held-out rows; 1 with ``threshold=None``. It is stored in ``C_``.
    decode : {"auto", "direct", "seen"}, default="auto"
        ``"direct"``: each label by its own probability. ``"seen"``: the training label set that is most likely by the
        probabilities of its labels. ``"auto"``: the better one by ``measure`` on held-out rows.
    threshold, measure
        As in `JointSVM`, on scores of held-out rows in three folds. ``threshold=None``: labels with a positive score,
        without folds and probabilities, which is several times as fast.
    tol : float, default=1e-4
        Relative optimality gap at which the training of a classifier stops.
    max_iter : int, default=100
        Maximum number of Newton steps.
    n_jobs : int or None
        Threads for sparse rows.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array of shape (n_labels, n_features)
    intercept_ : array of shape (n_labels,)
    C_ : float
    n_iter_ : int
        Newton steps of the slowest classifier.

    See Also
    --------
    JointSVM : One support vector machine with a kernel for all labels.
    HashedLabelSets : Thousands of labels in fixed memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.multilabel import SeparateSVM
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> Y = (X > 0.5).astype(int)
    >>> bool(SeparateSVM().fit(X[:200], Y[:200]).score(X[200:], Y[200:]) > 0.9)
    True

    References
    ----------
    .. [Keerthi2005] S. S. Keerthi and D. DeCoste. A modified finite Newton method for fast solution of large scale
       linear SVMs. JMLR 6, 2005.
    """

    saved = Fields(
        classes_=LabelValues(1),
        label_form_=Choice(*FORMS),
        coef_=Floats("classes_", "n_features_in_"),
        intercept_=Floats("classes_"),
        C_=Number(),
        n_iter_=Count(0),
        decisions_=Optional(Nested(Decisions)),
    )

    def __init__(
        self,
        C: Any = "auto",
        *,
        decode: str = "auto",
        threshold: Any = "auto",
        measure: str = "micro-f1",
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.decode = decode
        self.threshold = threshold
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> SeparateSVM:
        """Learn from rows and their label sets.

        Parameters
        ----------
        X : array or sparse matrix of n rows
        Y : array or sparse matrix of 0 and 1 with n rows, or list of n label sets
        sample_weight : array of n numbers of at least 0, optional
            Factors of C; a row of weight 0 is left out.

        Returns
        -------
        self : SeparateSVM
        """
        self._check_parameters()
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        used, weights = used_examples(sample_weight, X.shape[0])
        labels, classes, form = fit_labels(Y, X.shape[0], used)
        X = X if used is None else X[used]
        self.classes_, self.label_form_, self.decisions_ = classes, form, None
        first = self._choose(X, labels, weights)
        self.coef_, self.intercept_, self.n_iter_, gap = self._machines(X, labels, weights, self.C_, first)
        if gap > self.tol:
            warn_caller(
                f"some machines stopped after {self.max_iter} Newton steps, with a relative gap of up to {gap:.2g};"
                " raise max_iter or scale X",
                ConvergenceWarning,
            )
        return self

    def _choose(self, X: Any, labels: sp.csr_matrix, weights: np.ndarray | None) -> Any:
        """Find C and the decisions on held-out rows, and weights and offsets to start from."""
        tried = [float(self.C)] if self.C != "auto" else [c / _mean_square(X, weights) for c in _TRIED]
        if self.threshold is None:
            self.C_ = tried[0]
            return None
        n, best, truth = X.shape[0], -np.inf, labels.toarray() > 0
        fold = np.random.default_rng(0).permutation(n) % min(_FOLDS, n)
        machines: list[Any] = [None] * (int(fold.max()) + 1)
        start = None
        for C in tried:
            scores = np.zeros(labels.shape)
            for k, last in enumerate(machines):
                own, other = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
                part = None if weights is None else weights[other]
                machines[k] = self._machines(X[other], labels[other], part, C, last)[:2]
                scores[own] = np.asarray(X[own] @ machines[k][0].T) + machines[k][1]
            sets = None if self.decode == "auto" else self.decode == "seen"
            decisions = Decisions().fit(scores, labels, self.threshold, self.measure, sets, weights)
            given = None if len(tried) == 1 else decisions.label_sets(decisions.probabilities(scores)).toarray() > 0
            value = 0.0 if given is None else MEASURES[self.measure](truth, given, weights)
            if value > best:
                best, self.C_, self.decisions_ = value, C, decisions
                start = tuple(np.mean(parts, axis=0) for parts in zip(*machines, strict=True))
        return start

    def _check_parameters(self) -> None:
        if self.C != "auto":
            check_positive("C", self.C)
        check_choice("decode", self.decode, ("auto", "direct", "seen"))
        check_threshold(self.threshold, self.measure)
        if self.threshold is None and self.decode == "seen":
            raise ValueError("decode='seen' needs probabilities: threshold=None goes with 'direct' and 'auto'")
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        thread_count(self.n_jobs)

    def _machines(
        self, X: Any, labels: sp.csr_matrix, weights: np.ndarray | None, C: float, start: Any = None
    ) -> tuple[np.ndarray, np.ndarray, int, float]:
        """Weights, offsets, Newton steps, and the largest gap of a machine that did not converge."""
        (n, T), columns = labels.shape, labels.tocsc()
        coef, intercept, steps, gap = np.zeros((T, X.shape[1])), np.zeros(T), 0, 0.0
        step = max(8, _CELLS // max(n, 1) // 8 * 8)
        for at in range(0, T, step):
            part = slice(at, min(at + step, T))
            block = fit_machines(
                X, 2.0 * columns[:, part].toarray() - 1.0, weights=weights, C=C, tol=self.tol,
                max_iter=self.max_iter, warn=False, threads=thread_count(self.n_jobs),
                start=None if start is None else (start[0][part], start[1][part]),
            )  # fmt: skip
            coef[part], intercept[part] = block.coef, block.intercept
            steps = max(steps, block.n_iter)
            gap = max(gap, float(block.gap[~block.converged].max(initial=0.0)))
        return coef, intercept, steps, gap

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each label: the signed distance to its hyperplane, times the length of its weights.

        Parameters
        ----------
        X : array or sparse matrix

        Returns
        -------
        scores : array of shape (n_rows, n_labels)
        """
        return np.asarray(self._rows(X) @ self.coef_.T) + self.intercept_

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        return validate_data(self, check_sparse("X", X), reset=False, accept_sparse="csr", dtype=np.float64)

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label, calibrated on held-out scores.

        Parameters
        ----------
        X : array or sparse matrix

        Returns
        -------
        probabilities : array of shape (n_rows, n_labels)
        """
        return self._probabilities(X)

    def _probabilities(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        return scores if self.decisions_ is None else self.decisions_.probabilities(scores)

    def _predicted(self, X: Any) -> sp.csr_matrix:
        P = self._probabilities(X)
        if self.decisions_ is None:
            return sp.csr_matrix((P > 0).astype(np.float64))
        return self.decisions_.label_sets(P)

    def _score_rows(self) -> ScoreRows:
        check_is_fitted(self, "coef_")
        labels = self.classes_.tolist() if len(self.classes_) > 1 else None
        return ScoreRows(self.coef_, self.intercept_, labels)

    def _label_products(self) -> np.ndarray:
        check_is_fitted(self, "coef_")
        return np.asarray(self.coef_ @ self.coef_.T)

    def _depends_on_units(self) -> bool:
        return True

    def _check_state(self) -> None:
        self._check_parameters()
        if (self.decisions_ is None) != (self.threshold is None):
            raise ValueError("decisions_ must be there exactly where labels have thresholds")
        if self.decisions_ is not None and len(self.decisions_.slopes_) != len(self.classes_):
            raise ValueError(f"the decisions must be of {len(self.classes_)} labels")


def _mean_square(X: Any, weights: np.ndarray | None) -> float:
    """Mean ‖x‖², 1 for rows of zeros."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(np.average(np.asarray(squares).ravel(), weights=weights)) or 1.0
