"""Support vector machines with an ℓ1 norm: a linear program.

    min ‖a‖₁ + C Σ_i ξ_i,   y_i (Σ_j a_j k(x_i, x_j) + b) ≥ 1 − ξ_i,   ξ ≥ 0
    min ‖w‖₁ + C Σ_i ξ_i,   y_i (⟨w, x_i⟩ + b) ≥ 1 − ξ_i,   ξ ≥ 0                        of vectors

The first norm is that of the coefficients, not of a function. So most coefficients are exactly 0, and the kernel need
not be positive definite.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array

from mercer._explain import ScoreModel, ScoreRows, chosen_labels
from mercer._state.saved import Fields, Floats, LabelValues, Optional, outputs
from mercer._validation import check_choice, check_sparse
from mercer.kernel_methods.base import KernelMethod, check_limit, class_codes, weights_of
from mercer.kernels import Linear

__all__ = ["LinearProgramSVC"]


class LinearProgramSVC(ClassifierMixin, KernelMethod):
    """A sparse kernel classifier by linear programming, for objects of any kind.

    It minimises ``‖a‖₁ + C Σ_i max(0, 1 − y_i (Σ_j a_j k(x_i, x_j) + b))`` with HiGHS. Few objects have nonzero
    coefficients. With vectors and ``penalty="w"`` it minimises ``‖w‖₁ + C Σ_i max(0, 1 − y_i (⟨w, x_i⟩ + b))``: a
    linear classifier that uses few columns and maximises the margin in the ℓ∞ distance. With more than two classes
    there is one function for each class against all others.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        Any kernel, even an indefinite one; None is the linear kernel. With ``"precomputed"`` X is the kernel matrix.
    C : float, default=1.0
        Weight of the summed slack. ``np.inf`` allows no slack and raises ValueError for data that no expansion
        separates.
    penalty : {"a", "w"}, default="a"
        The ℓ1 norm of the coefficients of objects (``"a"``) or of the weights of columns (``"w"``). The latter is for
        arrays and sparse matrices with the linear kernel.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Indices of the training objects with a nonzero coefficient in some function.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_functions, n_support)
        Coefficients: one row, or with more than two classes one row for each.
    coef_ : array of shape (n_functions, n_features)
        Weights of columns; only with ``penalty="w"``, where no objects have coefficients.
    intercept_ : array of shape (n_functions,)
    objective_ : array of shape (n_functions,)
        The optimum of each linear program.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import LinearProgramSVC
    >>> X = np.vstack([np.random.default_rng(0).normal(c, 1.0, size=(50, 2)) for c in (-2, 2)])
    >>> model = LinearProgramSVC().fit(X, np.repeat([0, 1], 50))
    >>> len(model.support_) <= 3, bool(model.score(X, np.repeat([0, 1], 50)) > 0.95)
    (True, True)
    >>> noisy = np.hstack([X, np.random.default_rng(1).normal(size=(100, 8))])
    >>> model = LinearProgramSVC(C=0.05, penalty="w").fit(noisy, np.repeat([0, 1], 50))
    >>> np.flatnonzero(model.coef_[0])
    array([0, 1])
    """

    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(2),
        dual_coef_=Floats(outputs, "support_"),
        intercept_=Floats(outputs),
        objective_=Floats(outputs),
        coef_=Optional(Floats(outputs, None)),
    )

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        *,
        penalty: str = "a",
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.penalty = penalty
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _takes_any(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearProgramSVC:
        """Learn from objects and their labels.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n labels
        sample_weight : array of n numbers of at least 0, optional
            Factors of the weight of an object's slack.

        Returns
        -------
        self : LinearProgramSVC
        """
        check_limit("C", self.C)
        X = self._collected(X, reset=True)
        classes, codes = class_codes(self, X, y)
        weights = weights_of(X, sample_weight, classes, codes, self.class_weight)
        names, used = classes.tolist(), np.flatnonzero(weights > 0)
        columns = self._columns(X)
        M = self._gram(X)[np.ix_(used, used)] if columns is None else columns[used]
        wanted = [1] if len(classes) == 2 else range(len(classes))
        solved = [self._program(M, codes[used] == c, weights[used], names[c]) for c in wanted]
        a = np.array([part[0] for part in solved])
        kept = np.flatnonzero(a.any(axis=0)) if columns is None else np.zeros(0, np.int64)
        self.classes_ = classes
        self._keep(X, used[kept])
        self.dual_coef_ = np.ascontiguousarray(a[:, kept])
        if columns is not None:
            self.coef_ = a
        elif hasattr(self, "coef_"):  # of an earlier fit
            del self.coef_
        self.intercept_ = np.array([part[1] for part in solved])
        self.objective_ = np.array([part[2] for part in solved])
        return self

    def _columns(self, X: Any) -> Any:
        """X as a matrix whose columns have weights, or None where objects have coefficients."""
        check_choice("penalty", self.penalty, ("a", "w"))
        if self.penalty == "a":
            return None
        if self._precomputed or type(self._checked_kernel()) is not Linear:
            raise ValueError(f"penalty='w' needs the linear kernel and vectors, got kernel={self.kernel!r}")
        return check_array(check_sparse("X", X), accept_sparse="csr", dtype=np.float64, estimator=self)

    def _program(self, M: Any, positive: np.ndarray, weights: np.ndarray, name: Any) -> tuple[Any, float, float]:
        """Coefficients, offset and optimum; variables are a₊, a₋, b and, with a finite C, ξ."""
        n, d = M.shape
        values = M.data if sp.issparse(M) else M
        size = max(float(np.abs(values).max(initial=0.0)), 1e-300)  # HiGHS likes entries near 1
        signs = np.where(positive, 1.0, -1.0)
        rows = sp.diags_array(signs / size) @ sp.csr_array(M)
        soft = math.isfinite(self.C)
        parts = [rows, -rows, sp.csr_array(signs[:, None])]
        A = sp.hstack([*parts, sp.eye_array(n)] if soft else parts, format="csr")
        cost = np.concatenate([np.full(2 * d, 1.0 / size), [0.0], self.C * weights if soft else []])
        bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (n if soft else 0)
        program = linprog(cost, A_ub=-A, b_ub=-np.ones(n), bounds=bounds, method="highs")
        if program.status == 2:
            raise ValueError(
                f"no expansion in the kernel separates the class {name!r} from the rest, so that C=inf has no solution:"
                " use a finite C or another kernel"
            )
        if program.status != 0:
            raise RuntimeError(f"the linear program was not solved: {program.message}")
        return (program.x[:d] - program.x[d : 2 * d]) / size, float(program.x[2 * d]), float(program.fun)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b: positive for ``classes_[1]``, or with more than two classes a value for each.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,) or (n_objects, n_classes)
        """
        self._check_fitted()
        if hasattr(self, "coef_"):
            X = check_array(self._collected(X, reset=False), accept_sparse="csr", dtype=np.float64)
            columns = self.coef_.shape[1]
            if X.shape[1] != columns:
                raise ValueError(f"X has {X.shape[1]} columns, {type(self).__name__} was fitted to {columns}")
            values = X @ self.coef_.T
        elif len(self.support_):
            values = self._expanded(X, self.dual_coef_.T)
        else:
            values = self._nothing(X, len(self.intercept_))
        values = values + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def _score_rows(self) -> ScoreRows:
        rows = super()._score_rows()
        return replace(rows, weights=self.coef_) if hasattr(self, "coef_") else rows

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(self, "coef_"):
            return super()._activations(x)
        row = np.asarray(x.toarray() if sp.issparse(x) else x, float).ravel()
        return np.arange(len(row)), row

    def _feature_name(self, column: int) -> str:
        return ScoreModel._feature_name(self, column) if hasattr(self, "coef_") else super()._feature_name(column)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        labels : array of shape (n_objects,)
        """
        return chosen_labels(self.decision_function(X), self.classes_)

    def _check_state(self) -> None:
        super()._check_state()
        if (self.penalty == "w") != hasattr(self, "coef_"):
            raise ValueError("coef_ belongs to penalty='w'")
        if self.penalty == "w" and getattr(self, "n_features_in_", self.coef_.shape[1]) != self.coef_.shape[1]:
            raise ValueError(f"coef_ must have {self.n_features_in_} columns, found {self.coef_.shape[1]}")
