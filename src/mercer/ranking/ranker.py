"""Ranking of examples by linear scores s = ⟨w, x⟩.

    minimise  ½‖w‖² + C Σ over groups of loss(scores of the group, grades of the group)

The losses are those of :mod:`mercer.ranking.risks`: all pairs of different grades (RankSVM, ordinal regression,
conjoint analysis), or a bound on ROC area, average precision or F1 of the whole group.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.utils.validation import column_or_1d

from mercer._state.saved import Fields, Floats, LabelValues, Number, Optional
from mercer._validation import check_choice, check_weights, group_order, thread_count
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import Run
from mercer.learning.solvers import Solver
from mercer.metrics import pairwise_error
from mercer.ranking._linear import LinearRanker
from mercer.ranking.risks import MEASURES, RankingRisk

# Thresholds between grades take O(n) for each grade; with more grades than this y is a number, not an ordinal scale.
_MOST_GRADES = 256


class Ranker(LinearRanker):
    """Learn to rank examples.

    Parameters
    ----------
    measure : {"pairs", "roc-area", "average-precision", "f1"}, default="pairs"
        Training objective. ``"pairs"``: every pair of examples of one group with different grades should be in the
        correct order with a margin, the RankSVM; grades may be any numbers. The others need two classes and bound 1 −
        measure of each group as a whole: a group is one training example.
    loss : {"hinge", "squared-hinge"}, default="hinge"
        Loss of a pair. The other measures support only the hinge (margin rescaling).
    solver : {"auto", "bmrm", "lbfgs", "owlqn"} or Solver, default="auto"
        ``"bmrm"`` stops at a certified gap; ``"lbfgs"``, for the squared hinge, is faster but has no certificate.
        ``"auto"``: ``"lbfgs"`` for the squared hinge (``"owlqn"`` with an ℓ1 penalty), else ``"bmrm"``.
    C : float, default=1.0
        Weight of the loss in ``½‖w‖² + C · loss``. The loss is a **sum over pairs** for ``"pairs"``, and a sum over
        groups of means otherwise, so good values are small for ``"pairs"`` (1 / number of pairs and upwards) and large
        for the others (1 to the number of examples).
    fit_intercept : bool, default=True
        For ``"f1"``: learn the score above which an example is labelled positive. It is the weight of a constant
        feature 1, so it is penalised with the others. Rankings do not depend on it, so other measures have no
        intercept.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"``, so a smooth loss.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Begin from the weights of the last fit; the number of features must be the same.
    n_jobs : int or None
        Threads, over groups; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw at random.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
        0 for all measures but ``"f1"``.
    classes_ : array
        The different grades, sorted.
    thresholds_ : array of shape (n_grades − 1,) or None
        For ``"pairs"``: the score thresholds between grades for :meth:`predict_grades`; None for more than 256 grades.
    history_ : dict of lists, one value per iteration
    solver_ : str, the solver that ran
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int
    n_features_in_ : int

    References
    ----------
    .. [Joachims2002] T. Joachims. Optimizing search engines using clickthrough data. KDD, 2002.
    .. [Joachims2005] T. Joachims. A support vector method for multivariate performance measures. ICML, 2005.
    .. [Yue2007] Y. Yue, T. Finley, F. Radlinski and T. Joachims. A support vector method for optimizing average
       precision. SIGIR, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.ranking import Ranker
    >>> X = np.array([[1.0, 0.2], [0.6, 0.9], [0.1, 0.5], [0.9, 0.4], [0.2, 0.1]])
    >>> grades = [2, 1, 0, 1, 0]
    >>> queries = ["a", "a", "a", "b", "b"]
    >>> ranker = Ranker(C=10.0).fit(X, grades, groups=queries)
    >>> ranker.score(X, grades, groups=queries)
    1.0
    >>> ranker.predict_grades(X).tolist()
    [2, 1, 0, 1, 0]
    """

    coef_: np.ndarray
    intercept_: float
    classes_: np.ndarray
    thresholds_: np.ndarray | None

    _labels_have_scores = False
    saved = LinearRanker.saved | Fields(
        classes_=LabelValues(2),
        coef_=Floats("n_features_in_"),
        intercept_=Number(),
        thresholds_=Optional(Floats(lambda model: len(model.classes_) - 1)),
    )
    _dev_sizes = (2, 3)

    def __init__(
        self,
        measure: str = "pairs",
        loss: str = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.measure = measure
        self.loss = loss
        self.solver = solver
        self.C = C
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        dev: tuple[Any, ...] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Ranker:
        """Learn from graded examples.

        Parameters
        ----------
        X : array or sparse matrix (n, n_features)
        y : array of n numbers
            Grades of relevance, higher is better; two classes (0 and 1, −1 and 1, or False and True) for all measures
            but ``"pairs"``.
        groups : array of n values, optional
            The query or the user of each example: only examples of the same group are compared. None: all are one
            group.
        sample_weight : array of n numbers of at least 0, optional
            Weights of groups as factors of C; all rows of a group must have the same weight.
        dev : (X, y) or (X, y, groups), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, groups=groups, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def _weigh(self, risk: RankingRisk, sample_weight: Any) -> RankingRisk:
        risk.weigh(check_weights(sample_weight, risk.X.shape[0]))
        return risk

    def _check(self) -> None:
        super()._check()
        check_choice("measure", self.measure, MEASURES)
        if self.measure != "pairs" and self.loss != "hinge":
            raise ValueError(
                f"loss {self.loss!r} is for measure='pairs'; measure={self.measure!r} has loss='hinge' only"
            )

    def _reason_against_parts(self) -> str | None:
        return "its loss compares the rows of a group with each other, and no partition is known to hold whole groups"

    def _learn(self, X: Any, y: Any, loss: Any, last: Any, groups: Any = None) -> RankingRisk:
        X = self._rows(X, fitting=True)
        grades = _read_grades(y, X.shape[0])
        classes = np.unique(grades)
        if self.measure != "pairs":
            _check_binary(classes, self.measure)
        risk = RankingRisk(
            X,
            grades if self.measure == "pairs" else grades == classes[-1],
            groups,
            measure=self.measure,
            squared=self.loss == "squared-hinge",
            intercept=self.measure == "f1" and bool(self.fit_intercept),
            threads=thread_count(self.n_jobs),
        )
        if len(classes) < 2:
            raise ValueError(f"y has only one grade (one class), {classes[0]}: there is nothing to rank")
        if self.measure != "f1" and not risk.n_pairs.any():
            raise ValueError("y has only one grade in each of the groups: there is no pair to learn from")
        self.n_features_in_, self.classes_ = X.shape[1], classes
        self._has_intercept = risk.intercept
        return risk

    def _read(self, X: Any, y: Any, groups: Any = None) -> tuple[Any, Any]:
        X = self._rows(X)
        grades = _read_grades(y, X.shape[0])
        if self.measure != "pairs" and len(unknown := np.setdiff1d(grades, self.classes_)):
            low, high = self.classes_.tolist()
            raise ValueError(f"y holds {unknown.tolist()[0]!r}; the model knows {low!r} and {high!r}")
        order, offsets = group_order(groups, X.shape[0])
        group = np.empty(len(order), np.int64)
        group[order] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return X, (grades, group)

    def _quality(self, w: np.ndarray, X: Any, y: tuple[np.ndarray, np.ndarray]) -> float:
        grades, group = y
        coef, intercept = (w[:-1], w[-1]) if self._has_intercept else (w, 0.0)
        scores = np.asarray(X @ coef) + intercept
        if self.measure == "pairs":
            return 1.0 - pairwise_error(grades, scores, group)
        positive = grades == self.classes_[1]
        order, offsets = group_order(group, len(scores))
        parts = [(positive[i], scores[i]) for i in np.split(order, offsets[1:-1])]
        if self.measure == "f1":
            values = [f1_score(truth, s > 0, zero_division=1.0) for truth, s in parts]
        elif self.measure == "roc-area":
            values = [roc_auc_score(truth, s) for truth, s in parts if truth.any() and not truth.all()]
        else:
            values = [average_precision_score(truth, s) for truth, s in parts if truth.any()]
        if not values:
            raise ValueError(f"y has no group in which {self.measure} is defined: both classes are needed")
        return float(np.mean(values))

    def _flat(self, model: Any) -> np.ndarray:
        return np.append(model.coef_, model.intercept_) if model._has_intercept else model.coef_

    def _keep(self, w: np.ndarray) -> None:
        self.coef_, self.intercept_ = (w[:-1].copy(), float(w[-1])) if self._has_intercept else (w, 0.0)

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        self.thresholds_ = None
        if self.measure == "pairs" and len(self.classes_) <= _MOST_GRADES:
            X, (grades, *_) = run.risk.X, run.risk.y
            ranks = np.searchsorted(self.classes_, grades)
            self.thresholds_ = fit_thresholds(np.asarray(X @ self.coef_), ranks, len(self.classes_))

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores ⟨w, x⟩ + intercept, higher is better."""
        X = self._rows(X)
        return np.asarray(X @ self.coef_) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Return the scores; for measure "f1" the labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples scores or labels
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)] if self.measure == "f1" else scores

    def predict_grades(self, X: Any) -> np.ndarray:
        """Return the grades, for ``measure="pairs"``: ordinal regression.

        The thresholds between grades are fitted to the training examples' scores: each threshold minimises the number
        of examples on its wrong side. Together they minimise the sum of distances between true and predicted grades, in
        grades, for the given scores.
        """
        scores = self.decision_function(X)
        if self.measure != "pairs":
            raise ValueError(f"predict_grades is for measure='pairs', this model has measure={self.measure!r}")
        if self.thresholds_ is None:
            raise ValueError(
                f"y had {len(self.classes_)} different grades; predict_grades is for at most {_MOST_GRADES}"
            )
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="right")]

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Return the value of the measure.

        For "pairs" the share of pairs in the right order (ties count half), see
        :func:`mercer.metrics.pairwise_error`; otherwise the mean over groups of ROC area, average precision or F1.
        Groups where the measure is undefined are left out: groups of one class for the ROC area, groups without
        positives for the average precision. F1 without positives is 1 if none is predicted.
        """
        return self._quality(self._flat(self), *self._read(X, y, groups))

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        super()._check_state()
        if self.classes_.dtype.kind not in "biuf":
            raise ValueError("classes_ must hold numbers")
        self._has_intercept = self.measure == "f1" and bool(self.fit_intercept)
        if self.thresholds_ is not None and not (np.diff(self.thresholds_) >= 0).all():
            raise ValueError("thresholds_ must not descend")


def fit_thresholds(scores: np.ndarray, ranks: np.ndarray, n_grades: int) -> np.ndarray:
    """Return thresholds of the sorted scores with the least Σ |rank − predicted rank|.

    |r − q| = Σ_k [r ≥ k] ≠ [q ≥ k], so each cut k can be chosen alone: the first place at which the fewest examples
    are on the wrong side. As k grows, these places can only move up.
    """
    order = np.argsort(scores, kind="stable")
    s, r = scores[order], ranks[order]
    allowed = np.concatenate([[True], s[1:] != s[:-1], [True]])  # equal scores get one grade
    thresholds = np.empty(n_grades - 1)
    for k in range(1, n_grades):
        high = np.concatenate([[0], np.cumsum(r >= k)])
        wrong = high + (len(s) - np.arange(len(s) + 1)) - (high[-1] - high)
        place = int(np.argmin(np.where(allowed, wrong, len(s) + 1)))
        thresholds[k - 1] = _between(s, place)
    return thresholds


def _between(s: np.ndarray, place: int) -> float:
    """A number that is at most s[place] and above s[place − 1]."""
    if place == 0:
        return -np.inf
    if place == len(s):
        return np.inf
    middle = s[place - 1] + (s[place] - s[place - 1]) / 2
    return float(middle if middle > s[place - 1] else s[place])


def _read_grades(y: Any, n: int) -> np.ndarray:
    """y as a vector of finite numbers, one for each row of X."""
    if y is None:
        raise ValueError("Ranker requires y to be passed, but the target y is None")
    grades = column_or_1d(y, warn=True)
    if grades.dtype.kind == "O":
        try:
            grades = grades.astype(float)
        except (TypeError, ValueError) as error:
            raise ValueError("y must hold numbers, the grades of relevance") from error
    if grades.dtype.kind not in "biuf":
        raise ValueError(f"y must hold numbers, the grades of relevance, got values of type {grades.dtype}")
    if len(grades) != n:
        raise ValueError(f"X has {n} rows and y {len(grades)} grades")
    if grades.dtype.kind == "f" and not np.isfinite(grades).all():
        raise ValueError("y must not hold NaN or infinite values")
    return grades


def _check_binary(classes: np.ndarray, measure: str) -> None:
    """Two classes, as 0 and 1, −1 and 1, or False and True."""
    values = classes.astype(float).tolist()
    if not (set(values) <= {0.0, 1.0} or set(values) <= {-1.0, 1.0}):
        wrong = next((value for value in values if value not in (0.0, 1.0)), values[0])
        raise ValueError(
            f"measure {measure!r} needs two classes (0 and 1, −1 and 1, or False and True), but y holds {wrong:g}; "
            "graded relevance is for measure='pairs'"
        )
