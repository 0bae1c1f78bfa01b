"""Multiclass linear classification: single labels as the structure, any loss, any cost, any suitable solver.

    minimise  penalty(W) + C Σ_i weight_i loss(θ_i, y_i),   θ_i = W x_i (+ b),   predict  argmax_c θ_ic

With the hinge and 0/1 cost this is the multiclass support vector machine of Crammer and Singer [Crammer2001]. With two
classes only v = w_1 − w_0 matters; at the optimum w_1 = −w_0 = v / 2, so that

    ½‖w_0‖² + ½‖w_1‖² + C Σ max(0, 1 − s_i ⟨v, x_i⟩) = ½ (½‖v‖² + 2 C Σ max(0, 1 − s_i ⟨v, x_i⟩)),   s_i = ±1:

the binary support vector machine with 2 C in place of C.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from mercer._estimator import rollback_on_error
from mercer._explain import ScoreModel, ScoreRows
from mercer._state.saved import Fields, Floats, LabelValues, outputs
from mercer._validation import check_sparse, check_weights, thread_count
from mercer.data.sequences import Rows, Sequences
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import Run, StructuredEstimator
from mercer.learning.losses import Hinge, Log, Loss, RelativeMargin, resolve_loss
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk, WeightedRisk
from mercer.learning.solvers import SOLVERS, Dual, Newton, Solver, best_solver
from mercer.structures.costs import Cost, resolve_cost
from mercer.structures.labels import Labels

_SMALL = 1024  # with so few dual variables the hinge is solved to rounding unless a tolerance is given


def _has_probabilities(model: LinearClassifier) -> bool:
    if not isinstance(resolve_loss(model.loss), Log):
        raise AttributeError("predict_proba needs loss='log'")
    return True


def _is_online(model: LinearClassifier) -> bool:
    solver = model.solver if isinstance(model.solver, Solver) else SOLVERS.get(model.solver)
    if solver is None or not solver.online:
        raise AttributeError(
            "partial_fit needs an online solver ('sgd', 'averaged-perceptron' or 'passive-aggressive'), "
            f"the solver is {model.solver!r}"
        )
    return True


class LinearClassifier(ClassifierMixin, ScoreModel, StructuredEstimator):
    """A linear classifier with any of the library's losses and costs.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"hybrid"``, ``"adaptive-hybrid"``,
        ``"relative-margin"``, ``"circle"`` or ``"log"``; see :mod:`mercer.learning`. Hinge with 0/1 cost is the
        multiclass support vector machine of Crammer and Singer.
    solver : str or Solver, default="auto"
        ``"auto"``: ``"dual"`` (compiled dual ascent with a certified gap) for the hinge and its square, ``"newton"``
        for log, ``"lbfgs"`` for softmax-margin (``"owlqn"`` for both with an ℓ1 penalty), ``"bcfw"`` for slack,
        ``"cutting-plane"`` for relative margin and ``"bmrm"`` for hybrid.
    C : float, default=1.0
        Weight of the summed loss: ``penalty(W) + C · Σ loss``. With two classes and the hinge, ``C`` corresponds to
        ``2 C`` of a binary support vector machine.
    cost : str, dict, array, function or Cost, default="zero-one"
        Δ(y, z), the cost of answering z where y is true: ``"zero-one"``; weights of the true label (a dict or a vector
        over ``classes_``); a matrix over ``classes_``, rows being true labels; a function of two labels; or a
        :class:`~mercer.structures.Cost` such as :class:`~mercer.structures.Taxonomy`. Used by the margin losses.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖W‖², ‖W‖₁, or ``l1_ratio · ‖W‖₁ + (1 − l1_ratio) · ½‖W‖²``. The margin solvers need ``"l2"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    fit_intercept : bool, default=True
        Add a constant feature of 1. Its weights have no penalty with the solvers ``"newton"``, ``"lbfgs"`` and
        ``"owlqn"``; with the others they are penalised like the rest, as in scikit-learn's LinearSVC.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the examples of a class.
    max_iter, tol : int and float or None
        None: the defaults of the solver. For ``"dual"`` these are 10,000 epochs (over the active examples) and a
        relative gap of 1e-4. With ``solver="auto"``, problems of a thousand dual variables are solved to rounding
        error.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit. New labels are allowed, new features are not. ``"dual"`` starts from
        dual variables and ignores these weights.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that visit examples at random.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    classes_ : array of labels, sorted
    coef_ : array of shape (n_classes, n_features); with two classes (1, n_features), the difference w_1 − w_0
    intercept_ : array of shape (n_classes,), or (1,)
    n_features_in_ : int
    history_ : dict of lists: objective, seconds, and primal, dual, gap where the solver has them
    solver_ : str, the solver that ran
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int
        Iterations of the solver, in the unit of ``max_iter``: epochs for ``"dual"``.

    References
    ----------
    .. [Crammer2001] K. Crammer and Y. Singer. On the algorithmic implementation of multiclass kernel-based vector
       machines. Journal of Machine Learning Research 2, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.classification import LinearClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearClassifier(C=10.0, random_state=0).fit(X, y)
    >>> model.coef_.shape, model.score(X, y) > 0.95
    ((3, 4), True)
    >>> model.history_["gap"][-1] <= 1e-4
    True
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray

    saved = StructuredEstimator.saved | Fields(
        classes_=LabelValues(2), coef_=Floats(outputs, "n_features_in_"), intercept_=Floats(outputs)
    )

    def __init__(
        self,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        cost: Any = "zero-one",
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.C = C
        self.cost = cost
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ training

    def _depends_on_units(self) -> bool:
        return True

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> LinearClassifier:
        """Train on examples and their labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Or a :class:`~mercer.data.Store` or :class:`~mercer.data.Partitions`, which hold y too, or a Dask array or
            dataframe with one for y.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best accuracy on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    @available_if(_is_online)
    @rollback_on_error
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> LinearClassifier:
        """Make one pass of an online solver over more data; labels may be new.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        classes : array of labels, optional
            All labels, if known in advance.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, classes=classes)

    def _cost(self) -> Cost:
        return resolve_cost(self.cost)

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any, classes: Any = None) -> Risk:
        X, y = validate_data(
            self,
            check_sparse("X", X),
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
            reset=last is None or self.warm_start,
        )
        if y.dtype.kind not in "biuSU":  # whose values are classes whatever they are
            check_classification_targets(y)
        label_values = np.unique(y)
        if classes is not None:
            unknown = np.setdiff1d(label_values, classes)
            if len(unknown):
                raise ValueError(f"y holds the label {unknown.tolist()[0]!r}, which is not in classes")
            label_values = np.unique(classes)
        if last is not None:
            label_values = np.union1d(label_values, last.classes_)
        if len(label_values) < 2:
            raise ValueError(f"need at least two classes to learn from, found one class: {label_values.tolist()[0]!r}")
        self.classes_ = label_values
        inputs = self._with_constant(X)
        labels = np.searchsorted(label_values, y).astype(np.int32)
        return Risk(self._structure(), loss.for_labels(label_values.tolist()), inputs, labels)

    # ------------------------------------------------------------------ examples in parts

    _surveys = True

    def _survey(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        if y is None:
            raise ValueError("y is missing")
        X, y = validate_data(
            self, check_sparse("X", X), y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=True
        )
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        names = getattr(self, "feature_names_in_", None)
        return {
            "classes": classes,
            "counts": np.bincount(labels, weights, len(classes)),
            "n_features": X.shape[1],
            "names": None if names is None else list(names),
            "dtype": X.dtype.name,
        }

    def _join(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        for name in ("n_features", "names", "dtype"):
            if left[name] != right[name]:
                what = {"names": "columns", "n_features": "numbers of features"}.get(name, "types of numbers")
                raise ValueError(f"partitions have different {what}: {left[name]} and {right[name]}")
        classes = np.union1d(left["classes"], right["classes"])
        counts = np.zeros(len(classes))
        for one in (left, right):
            counts[np.searchsorted(classes, one["classes"])] += one["counts"]
        return {**left, "classes": classes, "counts": counts}

    def _settle(self, survey: dict[str, Any], last: Any) -> None:
        classes_seen = survey["classes"]
        if last is not None:
            classes_seen = np.union1d(classes_seen, last.classes_)
        if len(classes_seen) < 2:
            raise ValueError(f"need at least two classes to learn from, found one class: {classes_seen.tolist()[0]!r}")
        self.classes_, self.n_features_in_ = classes_seen, survey["n_features"]
        if survey["names"] is not None:
            self.feature_names_in_ = np.array(survey["names"], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._class_factors = None
        if self.class_weight is not None:
            counts = np.zeros(len(classes_seen))
            counts[np.searchsorted(classes_seen, survey["classes"])] = survey["counts"]
            self._class_factors = compute_class_weight(
                self.class_weight, classes=classes_seen, y=classes_seen, sample_weight=counts
            )

    def _local(self, X: Any, y: Any, loss: Loss) -> Risk:
        labels = np.searchsorted(self.classes_, column_or_1d(y)).astype(np.int32)
        return Risk(self._structure(), loss, self._inputs(X), labels)

    def _score_units(self, y: Any) -> int:
        return len(y)

    # ------------------------------------------------------------------ structure

    _observations = "rows"
    _may_be_infeasible = False

    def _structure(self) -> Labels:
        n_columns = self.n_features_in_ + bool(self.fit_intercept)
        return Labels(len(self.classes_), n_columns, threads=thread_count(self.n_jobs))

    def _with_constant(self, X: Any) -> Sequences:
        """X, which is checked, as sequences of one position each, with a column of ones for the intercept."""
        offsets = np.arange(X.shape[0] + 1)
        if not self.fit_intercept:
            return Sequences(X, offsets)
        if issparse(X):
            return Sequences(_with_ones(X), offsets)
        wider = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
        wider[:, :-1], wider[:, -1] = X, 1.0
        return Sequences(Rows(dense=wider), offsets)

    def _weigh(self, risk: Risk, sample_weight: Any) -> Risk:
        """The risk with the weight of each example, if not all are 1."""
        if sample_weight is None and self.class_weight is None:
            return risk
        labels, classes = risk.y, self.classes_
        weights = _check_sample_weight(sample_weight, labels, dtype=np.float64, ensure_non_negative=True, copy=True)
        if len(weights):
            check_weights(weights, len(weights))  # scikit-learn 1.7 lets weights of zero pass
        if self.class_weight is not None:
            factors = getattr(self, "_class_factors", None)  # of all parts, where these are examples of one
            if factors is None:
                factors = compute_class_weight(
                    self.class_weight, classes=classes, y=classes[labels], sample_weight=weights
                )
            if (factors < 0).any():
                raise ValueError("class_weight must not be negative")
            weights *= factors[labels]
        return WeightedRisk(risk.structure, risk.loss, risk.X, labels, weights)

    def _auto(self, loss: Loss, penalty: Penalty, risk: Risk) -> Solver:
        return _solver(loss, penalty, risk, self.tol)

    def _inputs(self, X: Any) -> Sequences:
        return self._with_constant(self._rows(X))

    def _rows(self, X: Any) -> Any:
        if not hasattr(self, "n_features_in_"):
            check_is_fitted(self, "coef_")
        return validate_data(
            self, check_sparse("X", X), accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def _read(self, X: Any, y: Any) -> tuple[Sequences, np.ndarray]:
        inputs, labels = self._read_to_compare(X, y)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown.tolist()[0]!r}, which the model does not know")
        return inputs, labels

    def _read_to_compare(self, X: Any, y: Any) -> tuple[Sequences, np.ndarray]:
        inputs, y = self._inputs(X), column_or_1d(y)
        if len(inputs) != len(y):
            raise ValueError(f"X has {len(inputs)} rows and y {len(y)} labels")
        known = np.isin(y, self.classes_)
        return inputs, np.where(known, np.searchsorted(self.classes_, y), -1).astype(np.int32)

    def _quality(self, w: np.ndarray, X: Sequences, y: np.ndarray) -> float:
        structure = self._structure()
        return float((structure.argmax(structure.scores(w, X))[0] == y).mean())

    def _arrays(self, X: Sequences, y: np.ndarray) -> Iterable[np.ndarray | None]:
        return [*X.rows.arrays, y]

    def _settings(self, risk: Risk) -> Any:
        return self.classes_.tolist(), risk.X.rows.shape

    def _flat(self, model: Any) -> np.ndarray:
        W = model.coef_
        if model.fit_intercept:
            W = np.hstack([W, model.intercept_[:, None]])
        if len(W) == 1:  # only the difference matters; at the optimum w_1 = −w_0
            W = np.vstack([-W / 2, W / 2])
        return W.T.ravel()

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        W, carried = w.reshape(-1, len(last.classes_)), np.zeros((risk.X.n_features, len(self.classes_)))
        if len(W) != len(carried):
            raise ValueError(
                f"the model to continue from has weights for {len(W)} columns, this data has {len(carried)}"
            )
        carried[:, np.searchsorted(self.classes_, last.classes_)] = W
        return carried.ravel()

    def _constants(self, risk: Risk) -> int:
        return len(self.classes_) if self.fit_intercept else 0

    def _keep(self, w: np.ndarray) -> None:
        n_features = self.n_features_in_
        W = w.reshape(n_features + bool(self.fit_intercept), len(self.classes_)).T
        if len(W) == 2:
            W = W[1:] - W[:1]
        self.coef_ = np.ascontiguousarray(W[:, :n_features])
        self.intercept_ = W[:, n_features].copy() if self.fit_intercept else np.zeros(len(W))

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        self.n_iter_ = max(1, self.n_iter_)
        self.__dict__.pop("_class_factors", None)

    def _decode(self, outputs: np.ndarray, inputs: Sequences) -> Sequence[Any]:
        return self.classes_[outputs].tolist()

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores (n_samples, n_classes), or (n_samples,) with two classes, above 0 for ``classes_[1]``."""
        check_is_fitted(self, "coef_")
        scores = np.asarray(self._rows(X) @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the highest score.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples labels
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p(c | x) ∝ exp θ_c, for the log loss only: other losses give no probabilities."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def _score_rows(self) -> ScoreRows:
        check_is_fitted(self, "coef_")
        return super()._score_rows()


def _with_ones(X: Any) -> Rows:
    """A CSR matrix of finite numbers with a column of ones behind its own."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    n, d = X.shape
    if d >= np.iinfo(np.int32).max:
        raise ValueError("a sparse matrix may have at most 2^31 - 2 columns")
    indptr = X.indptr.astype(np.int64)
    n_entries = int(indptr[-1])
    indptr += np.arange(n + 1)
    is_old = np.ones(n_entries + n, bool)
    is_old[indptr[1:] - 1] = False
    indices = np.full(n_entries + n, d, np.int32)
    indices[is_old] = X.indices[:n_entries]
    values = None
    if not (X.data[:n_entries] == 1).all():
        values = np.ones(n_entries + n, X.dtype)
        values[is_old] = X.data[:n_entries]
    return Rows(indptr=indptr, indices=indices, values=values, n_columns=d + 1, dtype=X.dtype)


def _solver(loss: Loss, penalty: Penalty, risk: Risk, tol: float | None) -> Solver:
    """What ``solver="auto"`` stands for."""
    if type(loss) is Log and not penalty.l1:
        return Newton()
    if not isinstance(loss, Hinge) or isinstance(loss, RelativeMargin):
        return best_solver(loss, penalty)
    structure = risk.structure
    assert isinstance(structure, Labels)
    return Dual(polish=tol is None and risk.n_examples * structure.n_labels <= _SMALL)
