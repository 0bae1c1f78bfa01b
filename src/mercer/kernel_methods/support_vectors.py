"""Support vector machines on objects of any kind: scikit-learn's solver, any kernel.

    C-SVC        min ½‖w‖² + C Σ ξ_i             y_i (⟨w, Φ(x_i)⟩ + b) ≥ 1 − ξ_i,   ξ ≥ 0;    C = ∞: hard margin
    ν-SVC        min ½‖w‖² + Σ ξ_i − n ν ρ       y_i (⟨w, Φ(x_i)⟩ + b) ≥ ρ − ξ_i,   ξ ≥ 0
    one class    min ½‖w‖² + Σ ξ_i − n ν ρ       ⟨w, Φ(x_i)⟩ ≥ ρ − ξ_i,             ξ ≥ 0
    regression   min ½‖w‖² + C Σ (|y_i − ⟨w, Φ(x_i)⟩ − b| − ε)₊

The Gram matrix is computed once, and only the objects with a coefficient are kept. The first, second and last have an
offset, so that a shift of feature space changes nothing: they take conditionally positive definite kernels, and their
Gram matrices are centred and scaled before they reach the solver, which holds kernel values in single precision.
"""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from mercer._state.saved import Count, Fields, Floats, Ints, LabelValues, Number
from mercer._validation import check_choice, check_count, check_positive
from mercer.kernel_methods._base import (
    KernelMethod,
    check_limit,
    check_rate,
    class_codes,
    real_targets,
    weights_of,
)
from mercer.kernel_methods.cholesky import cholesky_of_matrix
from mercer.learning.solvers import ConvergenceWarning

__all__ = ["KernelNuSVC", "KernelOneClass", "KernelSVC", "KernelSVR"]

_RANK = 1e-10  # of the residual, relative to the diagonal: where a Gram matrix counts as spent
_NO_MARGIN = "nu={nu} gives the classes {names} a margin of 0, so that the function means nothing: use a larger nu"
_FLAT = 1e-9  # a separation, relative to the size of the features, that counts as none
_SCALED_C = 3.0  # times the mean squared distance from the mean: chosen on sets of vectors, strings and graphs


class _Machine(NamedTuple):
    """One problem of two classes and its solution."""

    members: np.ndarray  # places of its objects
    coefficients: np.ndarray  # a_i y_i, one for each member
    intercept: float
    steps: int
    gap: float
    rho: float


class _Pairs(ClassifierMixin, KernelMethod):
    """Classification by machines for pairs of classes, whose votes are counted."""

    class_weight: Any
    tol: float
    max_iter: int | None
    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(2),
        n_support_=Ints("classes_"),
        dual_coef_=Floats("_n_machines", "support_"),
        intercept_=Floats("_n_machines"),
        duality_gap_=Floats("_n_machines"),
        n_iter_=Ints("_n_machines"),
    )

    def _takes_conditional(self) -> bool:
        return True

    _gaussian = True

    def _slack_weight(self, K: np.ndarray, weights: np.ndarray) -> float:
        """C of the machines, where they have one."""
        return math.nan

    def _machine(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, names: str
    ) -> tuple[Any, float]:
        """The fitted scikit-learn estimator of one problem, and ρ."""
        raise NotImplementedError

    def _gap(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, s: np.ndarray, b: float, rho: float
    ) -> float:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from objects and their labels.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n labels
        sample_weight : array of n numbers of at least 0, optional
            They multiply the weight of an object's slack.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._collected(X, reset=True)
        classes, codes = class_codes(self, X, y)
        weights = weights_of(X, sample_weight, classes, codes, self.class_weight)
        there = np.bincount(codes[weights > 0], minlength=len(classes)) > 0
        if not there.all():
            raise ValueError(f"the class {classes[~there][0]!r} has no objects with a positive weight")
        K, names = self._gram(X, weights), classes.tolist()
        C = self._slack_weight(K, weights)
        machines = [self._trained(K, C, names, codes, weights, pair) for pair in combinations(range(len(names)), 2)]
        self.classes_ = classes
        self._keep_machines(X, codes, weights, machines, C)
        return self

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)

    def _trained(
        self, K: np.ndarray, C: float, classes: list[Any], codes: np.ndarray, weights: np.ndarray, pair: Any
    ) -> _Machine:
        first, second = pair
        members = np.flatnonzero(((codes == first) | (codes == second)) & (weights > 0))
        signs, w = np.where(codes[members] == second, 1.0, -1.0), weights[members]
        own = _Scaled(K if len(members) == len(K) else K[np.ix_(members, members)], w)
        model, rho = self._machine(own.K, C * own.size, signs, w, f"{classes[first]!r} and {classes[second]!r}")
        s = np.zeros(len(members))
        s[model.support_] = model.dual_coef_[0]
        b = float(model.intercept_[0])
        gap = self._gap(own.K, C * own.size, signs, w, s, b, rho)
        s, b = own.back(s, b)
        return _Machine(members, s, b, int(np.max(model.n_iter_)), gap, rho * own.size)

    def _keep_machines(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, machines: list[_Machine], C: float
    ) -> None:
        dense = np.zeros((len(machines), len(codes)))
        for row, machine in zip(dense, machines, strict=True):
            row[machine.members] = machine.coefficients
        self._keep(X, np.flatnonzero(dense.any(axis=0)), weights)
        self.dual_coef_ = np.ascontiguousarray(dense[:, self.support_])
        self.intercept_ = np.array([machine.intercept for machine in machines])
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.duality_gap_ = np.array([machine.gap for machine in machines])
        self.n_iter_ = np.array([machine.steps for machine in machines])

    def decision_function(self, X: Any) -> np.ndarray:
        """The output f of every object, or a value for every object and class.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,) or (n_objects, n_classes)
            With two classes f, positive for ``classes_[1]``. With more, the number of votes plus the summed outputs
            squeezed into (−⅓, ⅓).
        """
        self._check_fitted()
        outputs = self._expanded(X, self.dual_coef_.T) + self.intercept_
        k = len(self.classes_)
        if k == 2:
            return outputs[:, 0]
        votes, sums = np.zeros((len(outputs), k)), np.zeros((len(outputs), k))
        for f, (first, second) in zip(outputs.T, combinations(range(k), 2), strict=True):
            votes[:, first] += f <= 0
            votes[:, second] += f > 0
            sums[:, first] -= f
            sums[:, second] += f
        return votes + sums / (3 * (np.abs(sums) + 1))

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

    def as_function(self) -> Any:
        """The expansion Σ_j coef_j k(·, x_j), without the offset, as a `mercer.kernels.RKHSFunction`.

        With more than two classes a list, one for each machine.
        """
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)

    @property
    def _n_machines(self) -> int:
        return len(self.classes_) * (len(self.classes_) - 1) // 2


class KernelSVC(_Pairs):
    """A support vector machine for objects of any kind.

    The binary machine minimises ``½‖f‖² + C Σ_i w_i max(0, 1 − y_i (f(x_i) + b))``; with more than two classes there is
    one for each pair of them, and their votes are counted. `sklearn.svm.SVC` does the work on the Gram matrix.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel. None is ``Gaussian(gamma_)`` of rows of numbers,
        with γ = 1 / (n_features · variance of X) as in `sklearn.svm.SVC`. With ``"precomputed"`` X is the kernel
        matrix: of the training objects in :meth:`fit`, of new objects × training objects afterwards.
    C : float or "scale", default="scale"
        Weight of the summed slack. "scale" is 3 / v with v the mean squared distance of the training objects from
        their mean in feature space, so that a factor of the kernel changes nothing. ``np.inf`` is the hard margin: data
        that no function of the kernel's space separates raise ValueError.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Limit on the steps of a machine, with a warning; None for a million, or 100 an object if that is more.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows how far a long Gram matrix is.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Places of the training objects with a coefficient in some machine.
    support_objects_ : collection
        These objects: all that is kept for prediction. None with ``kernel="precomputed"``.
    n_support_ : array of int
        Support objects of each class.
    dual_coef_ : array of shape (n_machines, n_support)
        Coefficients. Pairs of classes follow in the order (0, 1), (0, 2), …, (1, 2), …, positive for the second one.
    intercept_ : array of shape (n_machines,)
    duality_gap_ : array of shape (n_machines,)
        (primal − dual) / primal: how far from the optimum a machine can be at most.
    n_iter_ : array of int
        Steps of each machine.
    C_ : float
        The C in use.
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.

    See Also
    --------
    mercer.classification.RelativeMarginSVC : outputs within a band.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from mercer.kernel_methods import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVC().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    >>> from mercer.kernels import Kernel
    >>> class CommonLetters(Kernel):
    ...     def _prepare(self, X):
    ...         return np.array([[x.count(c) for c in "abc"] for x in X], float)
    ...     def _gram(self, A, B, work):
    ...         return A @ (A if B is None else B).T
    >>> model = KernelSVC(CommonLetters()).fit(["aab", "abaa", "cc", "ccb"], ["a", "a", "c", "c"])
    >>> model.predict(["aaaa", "cbc"])
    array(['a', 'c'], dtype='<U1')
    """

    saved = _Pairs.saved | Fields(C_=Number(0.0, finite=False))

    def __init__(
        self,
        kernel: Any = None,
        C: float | str = "scale",
        *,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.C, str):
            check_choice("C", self.C, ("scale",))
        else:
            check_limit("C", self.C)

    def _slack_weight(self, K: np.ndarray, weights: np.ndarray) -> float:
        if not isinstance(self.C, str):
            return float(self.C)
        share = weights / weights.sum()
        spread = float(share @ np.diag(K) - share @ K @ share)
        # On objects that the kernel does not tell apart no C is better than another.
        return _SCALED_C / spread if spread > _FLAT * float(np.abs(K).max()) else 1.0

    def _machine(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, names: str
    ) -> tuple[Any, float]:
        if math.isfinite(C):
            return self._at(C, K, signs, weights), 1.0
        if not _separable(K, signs):
            raise ValueError(
                f"no function of the kernel's space separates the classes {names}, so that C=inf (a hard margin) has no"
                " solution: use a finite C or another kernel"
            )
        # A soft machine none of whose coefficients reaches C has the optimality conditions of the hard one.
        C = 10.0
        for _ in range(15):
            model = self._at(C, K, signs, np.ones(len(signs)))
            if np.abs(model.dual_coef_).max() < 0.999 * C:
                return model, 1.0
            C *= 10.0
        raise ValueError(f"the margin between the classes {names} is too small for C=inf: use a finite C")

    def _at(self, C: float, K: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> SVC:
        model = SVC(kernel="precomputed", C=C, tol=self.tol, max_iter=_limit(self.max_iter, len(K)))
        return model.fit(K, signs, sample_weight=weights)

    def _gap(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, s: np.ndarray, b: float, rho: float
    ) -> float:
        f = K @ s
        norm, total = float(s @ f), float(np.abs(s).sum())
        dual = total - 0.5 * norm
        if math.isinf(C):
            # Scaled until every margin is at least 1, the function is feasible: its norm is a primal value.
            least = max(float((signs * (f + b)).min()), 1e-300)
            primal = 0.5 * norm / min(1.0, least) ** 2
        else:
            primal = 0.5 * norm + C * float(weights @ np.maximum(0.0, 1.0 - signs * (f + b)))
        return (primal - dual) / max(abs(primal), 1e-300)

    def _keep_machines(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, machines: list[_Machine], C: float
    ) -> None:
        super()._keep_machines(X, codes, weights, machines, C)
        self.C_ = C


class KernelNuSVC(_Pairs):
    """A support vector machine whose parameter is a fraction of the data, for objects of any kind.

    Minimises ``½‖f‖² + Σ_i ξ_i − n ν ρ`` subject to ``y_i (f(x_i) + b) ≥ ρ − ξ_i``. At most the fraction ν of the
    objects are margin errors, and at least the fraction ν are support objects. The solution is divided by ρ, as in
    `sklearn.svm.NuSVC`, which does the work: it is that of `KernelSVC` at C = 1/ρ.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel; None is the Gaussian one of `KernelSVC`. With
        ``"precomputed"`` X is the kernel matrix.
    nu : float, default=0.5
        In (0, 1], and at most 2 min(n₊, n₋) / n for every pair of classes; a larger one raises ValueError.
    class_weight : dict, "balanced" or None
        Factors of the bounds on coefficients by class.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Limit on the steps of a machine, with a warning; None for a million, or 100 an object if that is more.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows how far a long Gram matrix is.

    Attributes
    ----------
    classes_, support_, support_objects_, n_support_, dual_coef_, intercept_, duality_gap_, n_iter_
        As in `KernelSVC`; the gap is that of the machine with C = 1/ρ.
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.
    rho_ : array of shape (n_machines,)
        ρ of each machine.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelNuSVC
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [3.0]])
    >>> KernelNuSVC(nu=0.9).fit(X, [0, 0, 1, 1, 1])
    Traceback (most recent call last):
        ...
    ValueError: nu=0.9 is infeasible for the classes 0 and 1: their sizes allow at most 0.8
    >>> KernelNuSVC(nu=0.5).fit(X, [0, 0, 1, 1, 1]).predict([[-3.0], [1.5]])
    array([0, 1])
    """

    saved = _Pairs.saved | Fields(rho_=Floats("_n_machines"))

    def __init__(
        self,
        kernel: Any = None,
        nu: float = 0.5,
        *,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_rate("nu", self.nu)

    def _machine(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, names: str
    ) -> tuple[Any, float]:
        sizes = weights[signs < 0].sum(), weights[signs > 0].sum()
        most = 2.0 * min(sizes) / sum(sizes)
        if self.nu > most * (1 + 1e-12):
            raise ValueError(
                f"nu={self.nu} is infeasible for the classes {names}: their sizes allow at most {most:.4g}"
            )
        # At the very limit rounding must not make the solver refuse.
        nu = min(float(self.nu), most * (1 - 1e-15))
        model = NuSVC(kernel="precomputed", nu=nu, tol=self.tol, max_iter=_limit(self.max_iter, len(K)))
        try:
            model.fit(K, signs, sample_weight=weights)
        except ValueError as error:
            if "not finite" not in str(error):
                raise
            raise ValueError(_NO_MARGIN.format(nu=self.nu, names=names)) from error
        s = model.dual_coef_[0]
        rho = float(self.nu) * float(weights.sum()) / float(np.abs(s).sum())
        norm = s @ K[np.ix_(model.support_, model.support_)] @ s
        # In the units of the problem ‖w‖² = ρ² sᵀKs is below rounding: what is left of the function is noise.
        if rho**2 * norm <= 1e-10 * weights @ np.abs(np.diag(K)):
            warnings.warn(_NO_MARGIN.format(nu=self.nu, names=names), ConvergenceWarning, stacklevel=4)
        return model, rho

    def _gap(
        self, K: np.ndarray, C: float, signs: np.ndarray, weights: np.ndarray, s: np.ndarray, b: float, rho: float
    ) -> float:
        f = K @ s
        norm = float(s @ f)
        primal = 0.5 * norm + float((weights / rho) @ np.maximum(0.0, 1.0 - signs * (f + b)))
        return (primal - (float(np.abs(s).sum()) - 0.5 * norm)) / max(abs(primal), 1e-300)

    def _keep_machines(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, machines: list[_Machine], C: float
    ) -> None:
        super()._keep_machines(X, codes, weights, machines, C)
        self.rho_ = np.array([machine.rho for machine in machines])


class _Single(KernelMethod):
    """One expansion with an offset."""

    tol: float
    max_iter: int | None
    saved = KernelMethod.saved | Fields(dual_coef_=Floats(1, "support_"), intercept_=Floats(1), n_iter_=Count())
    _gaussian = True

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)

    def _keep_model(
        self, X: Any, weights: np.ndarray, support: np.ndarray, coef: np.ndarray, intercept: float, steps: int
    ) -> None:
        self._keep(X, support, weights)
        self.dual_coef_ = np.array(coef, dtype=np.float64).reshape(1, -1)
        self.intercept_, self.n_iter_ = np.array([intercept]), steps

    def _outputs(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return self._expanded(X, self.dual_coef_[0])

    def as_function(self) -> Any:
        """The expansion Σ_j coef_j k(·, x_j), without the offset, as a `mercer.kernels.RKHSFunction`."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)


class KernelSVR(RegressorMixin, _Single):
    """Support vector regression for objects of any kind.

    Minimises ``½‖f‖² + C Σ_i w_i max(0, |y_i − f(x_i) − b| − epsilon)``; `sklearn.svm.SVR` does the work on the Gram
    matrix.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel; None is the Gaussian one of `KernelSVC`. With
        ``"precomputed"`` X is the kernel matrix.
    C : float, default=1.0
        Weight of the summed errors, in the units of y.
    epsilon : float, default=0.1
        Errors up to this size are free.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Limit on the steps, with a warning; None for a million, or 100 an object if that is more.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows how far a long Gram matrix is.

    Attributes
    ----------
    support_ : array of int
        Places of the training objects with a coefficient.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (1, n_support)
    intercept_ : array of shape (1,)
    n_iter_ : int
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelSVR
    >>> from mercer.kernels import Linear
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = KernelSVR(Linear(), C=100.0, epsilon=0.01).fit(X, 2.0 * X[:, 0] + 1.0)
    >>> bool(abs(model.predict([[0.5]])[0] - 2.0) < 0.02)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _takes_conditional(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelSVR:
        """Learn from objects and their numbers.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n numbers
        sample_weight : array of n numbers of at least 0, optional
            They multiply C.

        Returns
        -------
        self : KernelSVR
        """
        self._check_parameters()
        check_positive("C", self.C)
        if isinstance(self.epsilon, bool) or not 0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0, got {self.epsilon!r}")
        X = self._collected(X, reset=True)
        y = real_targets(self, X, y)
        weights = weights_of(X, sample_weight)
        used, K = np.flatnonzero(weights > 0), self._gram(X, weights)
        own = _Scaled(K if len(used) == len(K) else K[np.ix_(used, used)], weights[used])
        limit = _limit(self.max_iter, len(used))
        model = SVR(kernel="precomputed", C=self.C * own.size, epsilon=self.epsilon, tol=self.tol, max_iter=limit)
        model.fit(own.K, y[used], sample_weight=weights[used])
        coef, intercept = own.back(model.dual_coef_[0], float(model.intercept_[0]), model.support_)
        self._keep_model(X, weights, used[model.support_], coef, intercept, int(np.max(model.n_iter_)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The number of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,)
        """
        return self._outputs(X) + self.intercept_[0]


class KernelOneClass(OutlierMixin, _Single):
    """The region where objects of any kind are to be expected: a support vector machine with one class.

    Minimises ``½‖f‖² + Σ_i ξ_i − n ν ρ`` subject to ``f(x_i) ≥ ρ − ξ_i``. At most the fraction ν of the training
    objects lie outside the region ``f ≥ ρ``, and at least the fraction ν are support objects; those on the boundary are
    inside. At ν = 1, f is a `ParzenWindow`. `sklearn.svm.OneClassSVM` does the work on the Gram matrix.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel; None is the Gaussian one of `KernelSVC`. A conditionally positive definite one has
        no origin to separate the objects from, and is refused. With ``"precomputed"`` X is the kernel matrix.
    nu : float, default=0.5
        In (0, 1].
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Limit on the steps, with a warning; None for a million, or 100 an object if that is more.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows how far a long Gram matrix is.

    Attributes
    ----------
    support_ : array of int
        Places of the training objects with a coefficient.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (1, n_support)
        Between 0 and 1; they sum to ν n.
    offset_ : float
        ρ.
    intercept_ : array of shape (1,)
        −ρ.
    n_iter_ : int
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import KernelOneClass
    >>> from mercer.kernels import Linear
    >>> angles = np.random.default_rng(0).normal(0.8, 0.2, size=200)
    >>> X = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> model = KernelOneClass(Linear().normalized(), nu=0.1).fit(X)
    >>> model.predict([[0.7, 0.7], [-1.0, 0.0]])
    array([ 1, -1])
    >>> bool(abs(model.level_set_mass(X) - 0.9) < 0.02)
    True
    """

    saved = _Single.saved | Fields(offset_=Number())

    def __init__(
        self,
        kernel: Any = None,
        nu: float = 0.5,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelOneClass:
        """Learn the region of objects.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : ignored
        sample_weight : array of n numbers of at least 0, optional
            They multiply the bounds on coefficients.

        Returns
        -------
        self : KernelOneClass
        """
        self._check_parameters()
        check_rate("nu", self.nu)
        X = self._collected(X, reset=True)
        weights = weights_of(X, sample_weight)
        used, K = np.flatnonzero(weights > 0), self._gram(X, weights)
        K = K if len(used) == len(K) else K[np.ix_(used, used)]
        bounds = weights[used]
        if self.nu == 1:  # all coefficients at their bound; ρ is any number that f does not exceed
            self._keep_model(X, weights, used, bounds, -float((K @ bounds).max()), 1)
        else:
            # Coefficients do not depend on a factor of the kernel, but the solver's tolerance does.
            size = float(np.abs(np.diag(K)).mean()) or 1.0
            limit = _limit(self.max_iter, len(K))
            model = OneClassSVM(kernel="precomputed", nu=self.nu, tol=self.tol, max_iter=limit)
            model.fit(K / size, sample_weight=bounds)
            coef = np.zeros(len(used))
            coef[model.support_] = model.dual_coef_[0]
            rho = self._boundary(K @ coef / size, -float(model.intercept_[0]), coef < bounds * (1 - 1e-9)) * size
            self._keep_model(X, weights, used[model.support_], model.dual_coef_[0], -rho, int(np.max(model.n_iter_)))
        self.offset_ = -float(self.intercept_[0])
        return self

    def _boundary(self, f: np.ndarray, rho: float, inside: np.ndarray) -> float:
        """ρ, lowered by no more than the solver's tolerance so that no object whose slack is 0 lies outside.

        At the optimum only objects whose coefficient is at its bound have slack. The solver's ρ is the mean of f over
        the objects on the boundary, half of which are below it.
        """
        least = float(f[inside].min(initial=rho))
        least -= 1e-9 * abs(least)  # kernel values of the same objects may be rounded otherwise when predicting
        return min(rho, least) if least >= rho - 2 * self.tol - 1e-6 * abs(rho) else rho

    def score_samples(self, X: Any) -> np.ndarray:
        """f of every object: the higher, the more to be expected."""
        return self._outputs(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """f − ρ of every object: negative outside the region."""
        return self._outputs(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for objects inside the region, −1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def level_set_mass(self, X: Any) -> float:
        """The fraction of objects inside the region: near 1 − ν for objects from where the training objects came.

        This is the mass of the level set {f ≥ ρ} that the machine estimates.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        mass : float
        """
        values = self.decision_function(X)
        if len(values) == 0:
            raise ValueError("X is empty: there is no mass to measure")
        return float(np.mean(values >= 0))


def _limit(max_iter: int | None, n: int) -> int:
    """Steps of scikit-learn's solver: where rounding keeps it from its tolerance it would go on for ever."""
    return max(1_000_000, 100 * n) if max_iter is None else max_iter


class _Scaled:
    """A Gram matrix centred and divided by the mean of its diagonal; what is learned on it goes back to the original.

    Coefficients of machines with an offset sum to 0, so that centring moves the offset alone. Means are weighted: a
    weight of 2 gives the values that an object twice gives, to the last digit.
    """

    def __init__(self, K: np.ndarray, weights: np.ndarray) -> None:
        share = weights / weights.sum()
        self.means = K @ share
        self.K = K - self.means[:, None]
        self.K -= self.means
        self.K += self.means @ share
        self.size = float(np.diag(self.K) @ share)
        if not self.size > 1e-14 * max(float(K.max()), -float(K.min())):
            self.size = 1.0  # a constant kernel, or one without positive definite values
        self.K /= self.size

    def back(self, coef: np.ndarray, offset: float, places: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Coefficients and offset for the original kernel; the coefficients belong to all objects or to some places."""
        coef = coef / self.size
        return coef, offset - float(coef @ (self.means if places is None else self.means[places]))


# ---------------------------------------------------------------------------------------------------- hard margins


def _separable(K: np.ndarray, signs: np.ndarray) -> bool:
    """Whether some f of the kernel's space and some b have y_i (f(x_i) + b) > 0 for all i.

    With V Vᵀ = K, a centred matrix, this is a linear program with as many variables as V has columns:
    max s subject to y_i (V_i w + b) ≥ s, |w_j| ≤ 1.
    """
    V = cholesky_of_matrix(K, _RANK)
    n, r = V.shape
    if r >= n - 1:
        return True  # any outputs can be had
    size = float(np.abs(V).max(initial=0.0))
    if size == 0.0:
        return False
    A = np.hstack([-signs[:, None] * V / size, -signs[:, None], np.ones((n, 1))])
    cost = np.zeros(r + 2)
    cost[-1] = -1.0
    bounds = [(-1.0, 1.0)] * r + [(-float(r), float(r)), (0.0, 1.0)]
    found = linprog(cost, A_ub=A, b_ub=np.zeros(n), bounds=bounds, method="highs")
    return bool(found.status == 0 and -found.fun > _FLAT)
