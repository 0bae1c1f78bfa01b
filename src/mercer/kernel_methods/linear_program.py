"""Support vector machines with an ℓ1 norm: a linear program (spec 002 F2).

    min ‖a‖₁ + C Σ_i w_i ξ_i,   y_i (Σ_j a_j k(x_i, x_j) + b) ≥ 1 − ξ_i,   ξ ≥ 0

The norm is that of the coefficients and not of a function, so that most of them are exactly 0 and the kernel need not
be positive definite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin

from mercer.kernel_methods._base import KernelMethod, check_limit, class_codes, weights_of

__all__ = ["LinearProgramSVC"]


class LinearProgramSVC(ClassifierMixin, KernelMethod):
    """A sparse kernel classifier by linear programming, for objects of any kind.

    Minimises ``‖a‖₁ + C Σ_i max(0, 1 − y_i (Σ_j a_j k(x_i, x_j) + b))``, with HiGHS. With more than two classes there
    is one function for each class against all others.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        Any kernel, an indefinite one too; None is the linear one. With ``"precomputed"`` X is the kernel matrix.
    C : float, default=1.0
        Weight of the summed slack. ``np.inf`` allows none: data that no expansion separates raise ValueError.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows how far a long Gram matrix is.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Places of the training objects with a coefficient in some function.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_functions, n_support)
        Coefficients: one row, or with more than two classes one for each.
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
    """

    _fitted = ("classes_", "support_", "support_objects_", "dual_coef_", "intercept_", "objective_")

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        *,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
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
            They multiply the weight of an object's slack.

        Returns
        -------
        self : LinearProgramSVC
        """
        check_limit("C", self.C)
        X = self._collected(X, reset=True)
        classes, codes = class_codes(self, X, y)
        weights = weights_of(X, sample_weight, classes, codes, self.class_weight)
        K, names = self._gram(X), classes.tolist()
        used = np.flatnonzero(weights > 0)
        wanted = [1] if len(classes) == 2 else range(len(classes))
        solved = [self._program(K[np.ix_(used, used)], codes[used] == c, weights[used], names[c]) for c in wanted]
        a = np.array([part[0] for part in solved])
        kept = np.flatnonzero(a.any(axis=0))
        self.classes_ = classes
        self._keep(X, used[kept])
        self.dual_coef_ = np.ascontiguousarray(a[:, kept])
        self.intercept_ = np.array([part[1] for part in solved])
        self.objective_ = np.array([part[2] for part in solved])
        return self

    def _program(self, K: np.ndarray, positive: np.ndarray, weights: np.ndarray, name: Any) -> tuple[Any, float, float]:
        """Coefficients, offset and optimum; variables are a₊, a₋, b and, with a finite C, ξ."""
        n = len(K)
        size = max(float(np.abs(K).max(initial=0.0)), 1e-300)  # HiGHS likes entries near 1
        signs = np.where(positive, 1.0, -1.0)
        rows = signs[:, None] * K / size
        soft = math.isfinite(self.C)
        left = np.hstack([rows, -rows, signs[:, None]])
        A: Any = sp.hstack([sp.csr_array(left), sp.eye_array(n)], format="csr") if soft else left
        cost = np.concatenate([np.full(2 * n, 1.0 / size), [0.0], self.C * weights if soft else []])
        bounds = [(0, None)] * (2 * n) + [(None, None)] + [(0, None)] * (n if soft else 0)
        found = linprog(cost, A_ub=-A, b_ub=-np.ones(n), bounds=bounds, method="highs")
        if found.status == 2:
            raise ValueError(
                f"no expansion in the kernel separates the class {name!r} from the rest, so that C=inf has no solution:"
                " use a finite C or another kernel"
            )
        if found.status != 0:
            raise RuntimeError(f"the linear program was not solved: {found.message}")
        return (found.x[:n] - found.x[n : 2 * n]) / size, float(found.x[2 * n]), float(found.fun)

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) + b: positive for ``classes_[1]``, or with more than two classes a value for each.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,) or (n_objects, n_classes)
        """
        self._check_fitted()
        some, outputs = len(self.support_), len(self.intercept_)
        values = self._expanded(X, self.dual_coef_.T) if some else self._nothing(X, outputs)
        values = values + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The label of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        labels : array of shape (n_objects,)
        """
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def _check_state(self) -> None:
        super()._check_state()
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        self._check_shapes(dual_coef=(rows, len(self.support_)), intercept=(rows,))
