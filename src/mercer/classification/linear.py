"""Multiclass linear classification: single labels as the structure, any loss, any cost, any suitable solver.

    minimise  penalty(W) + C Σ_i weight_i loss(θ_i, y_i),   θ_i = W x_i (+ b),   predict  argmax_c θ_ic

With the hinge and 0/1 cost this is the multiclass machine of Crammer and Singer. With two classes only
v = w_1 − w_0 matters; at the optimum w_1 = −w_0 = v / 2, so that

    ½‖w_0‖² + ½‖w_1‖² + C Σ max(0, 1 − s_i ⟨v, x_i⟩) = ½ (½‖v‖² + 2 C Σ max(0, 1 − s_i ⟨v, x_i⟩)),   s_i = ±1:

the binary machine with twice the C (its factor 2).
"""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mercer._estimator import Estimator
from mercer._validation import check_count, check_positive, check_sparse, thread_count
from mercer.data.sequences import Sequences
from mercer.learning.checkpoint import Checkpoint, arrays_of, fingerprint
from mercer.learning.losses import (
    Hinge,
    Log,
    Loss,
    PlaneLoss,
    RelativeMargin,
    loss_from_json,
    resolve_loss,
)
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers import Dual, Solver, best_solver
from mercer.learning.training import history_from_json, history_to_json, train
from mercer.structures.costs import Cost, CostMatrix, resolve_cost
from mercer.structures.labels import Labels

_SMALL = 1024  # with so few dual variables the hinge is solved to rounding unless a tolerance is given


def _has_probabilities(model: LinearClassifier) -> bool:
    if not isinstance(resolve_loss(model.loss), Log):
        raise AttributeError("predict_proba needs probabilities: they come with loss='log'")
    return True


class LinearClassifier(ClassifierMixin, Estimator):
    """A linear classifier with any of the library's losses and costs.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``"hinge"``, ``"squared-hinge"``, ``"slack"``, ``"softmax-margin"``, ``"hybrid"``, ``"relative-margin"`` or
        ``"log"``; see :mod:`mercer.learning`. Hinge with 0/1 cost is the multiclass machine of Crammer and Singer.
    solver : str or Solver, default="auto"
        ``"auto"``: ``"dual"`` (compiled dual ascent with a certified gap) for the hinge and its square, ``"lbfgs"`` for
        log and softmax-margin (``"owlqn"`` with an ℓ1 penalty), ``"bcfw"`` for slack, ``"cutting-plane"``
        for relative margin and ``"bmrm"`` for hybrid.
    C : float, default=1.0
        Weight of the summed loss: ``penalty(W) + C · Σ loss``. With two classes and the hinge, ``C`` corresponds to
        ``2 C`` of a binary support vector machine.
    cost : str, dict, array, function or Cost, default="zero-one"
        Δ(y, z), the cost of answering z where y is true: ``"zero-one"``; weights of the true label (a dict or a vector
        over ``classes_``); a matrix over ``classes_``, rows being true labels; a function of two labels; or a
        :class:`~mercer.structures.Cost` such as :class:`~mercer.structures.Taxonomy`. Used by the margin losses.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖W‖², ‖W‖₁, or half of each. The margin solvers need ``"l2"``.
    fit_intercept : bool, default=True
        Add a constant feature of 1; its weights are penalised like the others.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the examples of a class.
    max_iter, tol : int and float or None
        None: the solver's own; for ``"dual"`` 10,000 epochs (of the examples that still have work to do) and a relative
        gap of 1e-4 (with ``solver="auto"``, problems of a thousand dual variables are solved to rounding).
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
    converged_ : bool
    interrupted_ : bool, whether Ctrl-C ended the training
    n_iter_ : int
        Iterations of the solver, in the unit of ``max_iter``: epochs for ``"dual"``.

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
    history_: dict[str, list[float]]

    def __init__(
        self,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        C: float = 1.0,
        *,
        cost: Any = "zero-one",
        penalty: str | None = "l2",
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.C = C
        self.cost = cost
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    # ------------------------------------------------------------------ training

    def _depends_on_units(self) -> bool:
        return True

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> LinearClassifier:
        """Trains on examples and their labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Factors of C, not negative.
        checkpoint : path or Checkpoint, optional
            Training is saved there every few seconds; a fit that was killed goes on from there when it is called again.

        Returns
        -------
        self
        """
        C, penalty = check_positive("C", self.C), Penalty.named(self.penalty)
        resolve_loss(self.loss)  # a wrong name shows before the data is read
        threads = thread_count(self.n_jobs)
        X, y = validate_data(
            self,
            check_sparse("X", X),
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"need at least two classes to learn from, found one class: {classes[0]!r}")
        weights = self._weights(X, labels, classes, sample_weight)
        loss = resolve_loss(self.loss, resolve_cost(self.cost).bind(classes.tolist()))
        if isinstance(own := getattr(loss, "cost", None), Cost):
            loss = copy.copy(loss)
            loss.cost = own.bind(classes.tolist())  # type: ignore[attr-defined]
        rows = _with_constant(X) if self.fit_intercept else X
        structure = Labels(len(classes), rows.shape[1], threads=threads)
        inputs = Sequences(rows, np.arange(rows.shape[0] + 1))
        risk: Risk
        if weights is None:
            risk = Risk(structure, loss, inputs, labels.astype(np.int32))
        else:
            risk = WeightedRisk(structure, loss, inputs, labels.astype(np.int32), weights)
        solver = _solver(loss, penalty, risk, self.tol) if self.solver == "auto" else self.solver
        solver_name = solver if isinstance(solver, str) else solver.name
        said = solver_name, loss.to_json(), self.penalty, C, bool(self.fit_intercept), classes.tolist()
        result, history = train(
            risk,
            solver=solver,
            C=C,
            penalty=penalty,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            checkpoint=checkpoint,
            fingerprint=lambda: fingerprint(said, [*arrays_of(X), labels, weights]),
        )
        W = result.w.reshape(rows.shape[1], len(classes)).T
        if len(classes) == 2:
            W = W[1:] - W[:1]
        n_features = X.shape[1]
        self.classes_, self.coef_ = classes, np.ascontiguousarray(W[:, :n_features])
        self.intercept_ = W[:, n_features].copy() if self.fit_intercept else np.zeros(len(W))
        recorded = len(history.get("seconds", ()))
        self.history_, self.n_iter_ = history, max(1, recorded if result.n_iter is None else result.n_iter)
        self.converged_, self.interrupted_ = result.converged, result.interrupted
        return self

    def _weights(self, X: Any, labels: np.ndarray, classes: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """The weight of each example, None if all are 1."""
        if sample_weight is None and self.class_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True)
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes[labels], sample_weight=weights)
            if (factors < 0).any():
                raise ValueError("class_weight must not be negative")
            weights *= factors[labels]
        return weights

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n_samples, n_classes), or (n_samples,) with two classes, above 0 for ``classes_[1]``."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.coef_) == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The label with the highest score."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """p(c | x) ∝ exp θ_c; for the log loss, which is what gives the scores this meaning."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    # ------------------------------------------------------------------ model files

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything a model file needs. See :func:`mercer.save`."""
        check_is_fitted(self, "coef_")
        params = self.get_params(deep=False)
        if not isinstance(self.random_state, (int, type(None))):
            params["random_state"] = None
        arrays = {"coef": self.coef_, "intercept": self.intercept_}
        if not isinstance(self.loss, str):
            params["loss"] = self.loss.for_labels(self.classes_.tolist()).to_json()
        params["solver"] = self.solver if isinstance(self.solver, str) else self.solver.name
        if not isinstance(self.cost, str):  # in the order of the labels, whatever form it was given in
            arrays["cost"] = (
                resolve_cost(self.cost)
                .bind(self.classes_.tolist())
                .table(np.arange(len(self.classes_)), len(self.classes_))
            )
            params["cost"] = None
        if isinstance(self.class_weight, dict):
            factors = [self.class_weight.get(c, 1.0) for c in self.classes_.tolist()]
            arrays["class_weight"] = np.array(factors, dtype=float)
            params["class_weight"] = None
        history = history_to_json(self.history_)
        meta: dict[str, Any] = {"params": params, "history": history, "converged": self.converged_}
        meta["n_iter"] = self.n_iter_
        if self.classes_.dtype.kind in "biuf":
            arrays["classes"] = self.classes_
        elif all(isinstance(c, str) for c in self.classes_.tolist()):
            meta["classes"] = [str(c) for c in self.classes_]
        else:
            raise ValueError("only models whose labels are numbers or strings can be saved")
        if hasattr(self, "feature_names_in_"):
            meta["feature_names"] = [str(name) for name in self.feature_names_in_]
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> LinearClassifier:
        """The inverse of :meth:`to_state`."""
        params = dict(meta["params"])
        params["loss"] = loss_from_json(params["loss"])
        classes = arrays["classes"] if "classes" in arrays else np.array([str(c) for c in meta["classes"]])
        if classes.ndim != 1 or len(classes) < 2 or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
            raise ValueError("the model must have at least two labels")
        if "cost" in arrays:
            params["cost"] = CostMatrix(arrays["cost"]).bind(classes.tolist())
        if "class_weight" in arrays:
            factors = arrays["class_weight"].tolist()
            params["class_weight"] = dict(zip(classes.tolist(), factors, strict=True))
        model = cls(**params)
        coef, intercept = np.array(arrays["coef"], float), np.array(arrays["intercept"], float)
        height = 1 if len(classes) == 2 else len(classes)
        if coef.ndim != 2 or len(coef) != height or intercept.shape != (height,):
            raise ValueError(f"expected weights of {height} rows, found shapes {coef.shape} and {intercept.shape}")
        if not np.isfinite(coef).all() or not np.isfinite(intercept).all():
            raise ValueError("the weights must be finite")
        model.classes_, model.coef_, model.intercept_ = classes, coef, intercept
        model.n_features_in_ = coef.shape[1]
        if "feature_names" in meta:
            names = np.array([str(name) for name in meta["feature_names"]], dtype=object)
            if len(names) != coef.shape[1]:
                raise ValueError(f"{len(names)} feature names for {coef.shape[1]} features")
            model.feature_names_in_ = names
        model.history_ = history_from_json(meta["history"])
        model.converged_, model.interrupted_ = bool(meta["converged"]), False
        recorded = max(1, len(model.history_.get("objective", ())))  # files of earlier versions have no n_iter
        model.n_iter_ = check_count("n_iter", meta.get("n_iter", recorded))
        return model


class WeightedRisk(Risk):
    """A risk whose examples count differently: Σ_i weight_i loss_i.

    Where the loss is a maximum of planes, the planes of an example are scaled, which scales its loss.

    Parameters
    ----------
    structure, loss, X, y : see :class:`~mercer.learning.Risk`
    weights : array of shape (n_examples,), not negative
    """

    def __init__(self, structure: Labels, loss: Loss, X: Sequences, y: np.ndarray, weights: np.ndarray) -> None:
        super().__init__(structure, loss, X, y)
        self.weights = weights

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The weighted sum of losses and its gradient."""
        gradient = np.zeros(self.n_weights) if out is None else out
        gradient[:] = 0.0
        total = 0.0
        for batch in self._batches:
            X, y, weights = self.X[batch], self.y[batch], self.weights[batch]
            theta = self.structure.scores(w, X)
            values, slope = self.loss.value_and_gradient(self.structure, theta, y)
            total += float(weights @ values)
            slope.probabilities *= weights[:, None].astype(slope.probabilities.dtype)
            self.structure.backward(X, slope, gradient)
        return total, gradient

    def value(self, w: np.ndarray) -> float:
        """The weighted sum of losses."""
        total = 0.0
        for batch in self._batches:
            theta = self.structure.scores(w, self.X[batch])
            values, _ = self.loss.value_and_gradient(self.structure, theta, self.y[batch])
            total += float(self.weights[batch] @ values)
        return total

    def oracle(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array, np.ndarray]:
        """The highest plane of each example, scaled."""
        assert isinstance(self.loss, PlaneLoss)
        values, slopes, offsets = super().oracle(w, examples)
        scale = self.weights[slice(None) if examples is None else examples] ** (1.0 / self.loss.power)
        scaled = slopes.data * np.repeat(scale, np.diff(slopes.indptr))
        return values * scale, csr_array((scaled, slopes.indices, slopes.indptr), shape=slopes.shape), offsets * scale


def _solver(loss: Loss, penalty: Penalty, risk: Risk, tol: float | None) -> Solver:
    """What ``solver="auto"`` stands for."""
    if not isinstance(loss, Hinge) or isinstance(loss, RelativeMargin):
        return best_solver(loss, penalty)
    structure = risk.structure
    assert isinstance(structure, Labels)
    return Dual(polish=tol is None and risk.n_examples * structure.n_labels <= _SMALL)


def _with_constant(X: Any) -> Any:
    """X and a column of ones."""
    ones = np.ones((X.shape[0], 1), X.dtype)
    return csr_array(hstack([X, csr_array(ones)], format="csr")) if issparse(X) else np.hstack([X, ones])
