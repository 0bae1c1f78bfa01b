"""Support vector machines on objects of any kind, with any kernel.

    C-SVC        min ½‖w‖² + C Σ ξ_i             y_i (⟨w, Φ(x_i)⟩ + b) ≥ 1 − ξ_i,   ξ ≥ 0;    C = ∞: hard margin
    ν-SVC        min ½‖w‖² + Σ ξ_i − n ν ρ       y_i (⟨w, Φ(x_i)⟩ + b) ≥ ρ − ξ_i,   ξ ≥ 0
    one class    min ½‖w‖² + Σ ξ_i − n ν ρ       ⟨w, Φ(x_i)⟩ ≥ ρ − ξ_i,             ξ ≥ 0
    regression   min ½‖w‖² + C Σ (|y_i − ⟨w, Φ(x_i)⟩ − b| − ε)₊

Only support objects are stored. The first, second and last problem have an offset, so a shift of feature space changes
nothing: they take conditionally positive definite kernels. One ascent over pairs of objects solves all problems, and
stops at a given violation of the optimality conditions. It uses the Gram matrix
(`mercer._core.machines.KernelMachine`), or, if that is too large, small blocks of objects with rows computed on demand
(`RowsOnDemand`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin

from mercer import _core
from mercer._explain import ScoreRows, chosen_labels, votes_of_pairs
from mercer._state.saved import Count, Fields, Floats, Ints, LabelValues, Number
from mercer._validation import check_choice, check_count, check_not_negative, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernel_methods.base import (
    KernelMethod,
    check_limit,
    check_rate,
    class_codes,
    real_targets,
    weights_of,
)
from mercer.kernel_methods.cholesky import cholesky_of_matrix

__all__ = ["KernelNuSVC", "KernelOneClass", "KernelSVC", "KernelSVR"]

_RANK = 1e-10  # of the residual, relative to the diagonal: where a Gram matrix counts as spent
_NO_MARGIN = "nu={nu} gives the classes {names} a margin of 0, so the function is undefined: use a larger nu"
_FLAT = 1e-9  # a separation, relative to the size of the features, that counts as none
_SAMPLE = 2000  # objects by which C="scale" measures the spread of those whose matrix is not made
_SCALED_C = 3.0  # times the mean squared distance from the mean: chosen on sets of vectors, strings and graphs


class _Problem(NamedTuple):
    """One problem of two classes: those of its objects that count, the second class first."""

    engine: Any  # solves box programs over some of the objects
    K: np.ndarray | None  # of all objects, where it was made
    members: np.ndarray  # places of its objects
    signs: np.ndarray  # 1 for the second class, −1 for the first
    weights: np.ndarray
    names: str
    limit: int

    def within(self, values: np.ndarray) -> np.ndarray:
        """0 where a value is of the other sign than its object's."""
        return np.where(self.signs > 0, np.maximum(values, 0.0), np.minimum(values, 0.0))


class _Machine(NamedTuple):
    """The solution of a problem."""

    members: np.ndarray
    coefficients: np.ndarray  # a_i y_i, one for each member
    intercept: float
    steps: int
    gap: float
    rho: float
    nu: float = math.nan


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
    _split = False
    """Whether the coefficients of each class have a sum of their own."""

    def _forms_matrix(self, X: Any) -> bool:
        """Whether the Gram matrix is made, and not only the rows that are needed."""
        return True

    def _slack_weight(self, X: Any, K: np.ndarray | None, weights: np.ndarray) -> float:
        """C of the machines, where they have one."""
        return math.nan

    def _machine(self, problem: _Problem, C: float) -> _Machine:
        """The solution of one problem."""
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
            raise ValueError(f"the class {classes[~there].tolist()[0]!r} has no objects with a positive weight")
        K: np.ndarray | None = None
        if self._forms_matrix(X):
            K = np.ascontiguousarray(self._gram(X, weights))
            engine: Any = _core.machines.KernelMachine(K)
        else:
            engine = self._rows_on_demand(X, weights)
        C = self._slack_weight(X, K, weights)
        pairs = combinations(range(len(classes)), 2)
        machines = [self._machine(self._problem(engine, K, classes.tolist(), codes, weights, *p), C) for p in pairs]
        self.classes_ = classes
        self._keep_machines(X, codes, weights, machines, C)
        return self

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)

    def _problem(
        self,
        engine: Any,
        K: np.ndarray | None,
        classes: list[Any],
        codes: np.ndarray,
        weights: np.ndarray,
        first: int,
        second: int,
    ) -> _Problem:
        above, below = (np.flatnonzero((codes == code) & (weights > 0)) for code in (second, first))
        members = np.concatenate([above, below])
        if len(classes) == 2 and not self._split:
            members.sort()  # rows of the matrix are read as they are
        signs = np.where(codes[members] == second, 1.0, -1.0)
        names = f"{classes[first]!r} and {classes[second]!r}"
        return _Problem(engine, K, members, signs, weights[members], names, _limit(self.max_iter, len(members)))

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
        """Return the output f of every object, or a value for every object and class.

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
        return votes_of_pairs(outputs, k)

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

    def as_function(self) -> Any:
        """Return the expansion Σ_j coef_j k(·, x_j), without the offset, as a `mercer.kernels.RKHSFunction`.

        With more than two classes a list, one for each machine.
        """
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)

    def _score_rows(self) -> ScoreRows:
        return replace(super()._score_rows(), pairs=len(self.classes_) > 2)

    @property
    def _n_machines(self) -> int:
        return len(self.classes_) * (len(self.classes_) - 1) // 2


class KernelSVC(_Pairs):
    """A support vector machine for objects of any kind.

    The binary classifier minimises ``½‖f‖² + C Σ_i w_i max(0, 1 − y_i (f(x_i) + b))``. With more than two classes there
    is one classifier for each pair of classes, with majority vote.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel. None is ``Gaussian(gamma_)`` of rows of numbers,
        with γ = 1 / (n_features · variance of X) as in `sklearn.svm.SVC`. With ``"precomputed"`` X is the kernel
        matrix: of the training objects in :meth:`fit`, of new objects × training objects afterwards.
    C : float or "scale", default="scale"
        Weight of the summed slack. "scale" is 3 / v with v the mean squared distance of the training objects from their
        mean in feature space, so that scaling the kernel changes nothing. If the Gram matrix does not fit into
        ``cache_size``, v is computed from 2,000 evenly spaced objects. ``np.inf`` is the hard margin; it raises
        ValueError for data that no function of the space separates.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Maximum number of steps of each binary problem, with a warning; None for the larger of a million and 100 per
        object.
    cache_size : float, default=150.0
        Megabytes of kernel cache. A Gram matrix that fits (4,330 objects in 150) is computed once. For a larger one,
        rows are computed on demand and the most recently used ones are cached. The hard margin needs the whole matrix.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix, or how many rows have been computed.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Indices of the training objects with a nonzero coefficient in some binary problem.
    support_objects_ : collection
        These objects, the only ones needed for prediction. None with ``kernel="precomputed"``.
    n_support_ : array of int
        Support objects of each class.
    dual_coef_ : array of shape (n_machines, n_support)
        Coefficients. The rows are the pairs of classes (0, 1), (0, 2), …, (1, 2), …, positive for the second class.
    intercept_ : array of shape (n_machines,)
    duality_gap_ : array of shape (n_machines,)
        (primal − dual) / primal: an upper bound on the relative distance from the optimum.
    n_iter_ : array of int
        Steps of each binary problem.
    C_ : float
        The C in use.
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.

    See Also
    --------
    mercer.classification.RelativeMarginSVC : outputs bounded to a band.

    References
    ----------
    .. [Cortes1995] C. Cortes and V. Vapnik. Support-vector networks. Machine Learning 20, 1995.
    .. [Fan2005] R.-E. Fan, P.-H. Chen and C.-J. Lin. Working set selection using second order information for training
       support vector machines. Journal of Machine Learning Research 6, 2005.

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
        cache_size: float = 150.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("cache_size", self.cache_size)
        if isinstance(self.C, str):
            check_choice("C", self.C, ("scale",))
        else:
            check_limit("C", self.C)

    def _forms_matrix(self, X: Any) -> bool:
        return self._fits(X) or (not isinstance(self.C, str) and math.isinf(self.C))

    def _slack_weight(self, X: Any, K: np.ndarray | None, weights: np.ndarray) -> float:
        if not isinstance(self.C, str):
            return float(self.C)
        if K is None:
            K, weights = self._sampled_gram(X, weights, _SAMPLE)
        share = weights / weights.sum()
        spread = float(share @ np.diag(K) - share @ K @ share)
        # On objects that the kernel does not tell apart no C is better than another.
        return _SCALED_C / spread if spread > _FLAT * float(np.abs(K).max()) else 1.0

    def _machine(self, problem: _Problem, C: float) -> _Machine:
        if math.isfinite(C):
            return self._at(C * problem.weights, problem, np.zeros(len(problem.signs)))
        signs, names = problem.signs, problem.names
        assert problem.K is not None
        K, size = _centred(problem.K[np.ix_(problem.members, problem.members)])
        if not _separable(K, signs):
            raise ValueError(
                f"no function of the kernel's space separates the classes {names}, so that C=inf (a hard margin) has no"
                " solution: use a finite C or another kernel"
            )
        # A soft machine none of whose coefficients reaches C has the optimality conditions of the hard one.
        C, coefficients = 10.0 / size, np.zeros(len(signs))
        for _ in range(15):
            machine = self._at(np.full(len(signs), C), problem, coefficients)
            coefficients = machine.coefficients
            if np.abs(coefficients).max() < 0.999 * C:
                return machine._replace(gap=_hard_gap(K * size, signs, coefficients))
            C *= 10.0
        raise ValueError(f"the margin between the classes {names} is too small for C=inf: use a finite C")

    def _at(self, upper: np.ndarray, problem: _Problem, start: np.ndarray) -> _Machine:
        low, high = problem.within(-upper), problem.within(upper)
        settings = (problem.signs, low, high, start, 0, float(self.tol), problem.limit)
        s, _, b, _, norm, loss, gap, steps, converged = problem.engine.solve_box(problem.members, *settings)
        _warn_of_early_stop(converged, steps)
        return _Machine(problem.members, s, b, steps, gap / max(norm / 2 + loss, 1e-300), 1.0)

    def _keep_machines(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, machines: list[_Machine], C: float
    ) -> None:
        super()._keep_machines(X, codes, weights, machines, C)
        self.C_ = C


class KernelNuSVC(_Pairs):
    """A ν support vector machine for objects of any kind: its parameter is a fraction of the data.

    Minimises ``½‖f‖² + Σ_i ξ_i − n ν ρ`` subject to ``y_i (f(x_i) + b) ≥ ρ − ξ_i``. At most the fraction ν of the
    objects are margin errors, and at least the fraction ν are support objects. The solution is divided by ρ, as in
    `sklearn.svm.NuSVC`: it equals that of `KernelSVC` with C = 1/ρ.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel; None is the Gaussian one of `KernelSVC`. With
        ``"precomputed"`` X is the kernel matrix.
    nu : float or "auto", default="auto"
        In (0, 1], and at most 2 min(n₊, n₋) / n for every pair of classes; a larger one raises ValueError. ``"auto"``:
        for each pair of classes, twice the share of objects whose nearest neighbour is of the other class, clipped to
        0.05 … 0.5 and to the largest feasible value. Noisy classes need wide margins, clear ones do not. The values are
        stored in ``nu_``.
    class_weight : dict, "balanced" or None
        Factors of the bounds on coefficients by class.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Maximum number of steps of each binary problem, with a warning; None for the larger of a million and 100 per
        object.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    classes_, support_, support_objects_, n_support_, dual_coef_, intercept_, duality_gap_, n_iter_
        As in `KernelSVC`; the gap is that of the problem with C = 1/ρ.
    gamma_ : float
        γ of the default kernel; only with ``kernel=None``.
    rho_ : array of shape (n_machines,)
        ρ of each binary problem.
    nu_ : array of shape (n_machines,)
        ν of each binary problem.

    References
    ----------
    .. [Cover1967] T. Cover and P. Hart. Nearest neighbor pattern classification. IEEE Transactions on Information
       Theory 13, 1967.
    .. [Scholkopf2000] B. Schölkopf, A. Smola, R. Williamson and P. Bartlett. New support vector algorithms. Neural
       Computation 12, 2000.

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

    saved = _Pairs.saved | Fields(rho_=Floats("_n_machines"), nu_=Floats("_n_machines", low=0.0, high=1.0))
    _split = True

    def __init__(
        self,
        kernel: Any = None,
        nu: float | str = "auto",
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
        if not (isinstance(self.nu, str) and self.nu == "auto"):
            check_rate("nu", self.nu)

    def _machine(self, problem: _Problem, C: float) -> _Machine:
        signs, weights, members = problem.signs, problem.weights, problem.members
        assert problem.K is not None
        split = int((signs > 0).sum())
        sizes = weights[:split].sum(), weights[split:].sum()
        most = 2.0 * min(sizes) / sum(sizes)
        nu = self._fraction(problem, most)
        if nu > most * (1 + 1e-12):
            raise ValueError(
                f"nu={self.nu} is infeasible for the classes {problem.names}: their sizes allow at most {most:.4g}"
            )
        total = min(nu, most) * sum(sizes) / 2
        start = np.concatenate([_filled(weights[:split], total), -_filled(weights[split:], total)])
        low, high = problem.within(-weights), problem.within(weights)
        # Outputs are in units of the kernel, and so is what they violate.
        tol = float(self.tol) * _spread(problem.K, members, weights)
        settings = (np.zeros(len(signs)), low, high, start, split, tol, problem.limit)
        s, g, above, below, norm, _, _, steps, converged = problem.engine.solve_box(members, *settings)
        _warn_of_early_stop(converged, steps)
        b, rho = (below + above) / 2, (below - above) / 2
        if rho == 0:
            raise ValueError(_NO_MARGIN.format(nu=f"{nu:.4g}", names=problem.names))
        # ‖w‖² is below rounding, or ρ below what is tolerated: what is left of the function is noise.
        if norm <= 1e-10 * weights @ np.abs(np.diag(problem.K)[members]) or rho < 0:
            warn_caller(_NO_MARGIN.format(nu=f"{nu:.4g}", names=problem.names), ConvergenceWarning)
            rho = abs(rho)
        s, b, norm = s / rho, b / rho, norm / rho**2
        primal = 0.5 * norm + float((weights / rho) @ np.maximum(0.0, 1.0 - signs * (g / rho + b)))
        gap = (primal - (float(np.abs(s).sum()) - 0.5 * norm)) / max(abs(primal), 1e-300)
        return _Machine(members, s, b, steps, gap, rho, min(nu, most))

    def _fraction(self, problem: _Problem, most: float) -> float:
        """ν of a machine, of which its objects can keep at most so much."""
        if not isinstance(self.nu, str):
            return float(self.nu)
        members = problem.members
        assert problem.K is not None
        K = problem.K[np.ix_(members, members)].astype(np.float64)
        sizes = np.diag(K)
        distances = sizes[:, None] + sizes - 2.0 * K
        distances[distances <= 1e-10 * np.abs(sizes).max()] = np.inf  # itself, and what cannot be told from it
        other = problem.signs[distances.argmin(axis=1)] != problem.signs
        return min(max(2.0 * float(problem.weights @ other / problem.weights.sum()), 0.05), 0.5, most)

    def _keep_machines(
        self, X: Any, codes: np.ndarray, weights: np.ndarray, machines: list[_Machine], C: float
    ) -> None:
        super()._keep_machines(X, codes, weights, machines, C)
        self.rho_ = np.array([machine.rho for machine in machines])
        self.nu_ = np.array([machine.nu for machine in machines])


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
        """Return the expansion Σ_j coef_j k(·, x_j), without the offset, as a `mercer.kernels.RKHSFunction`."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)


class KernelSVR(RegressorMixin, _Single):
    """Support vector regression for objects of any kind.

    Minimises ``½‖f‖² + C Σ_i w_i max(0, |y_i − f(x_i) − b| − epsilon)``.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite or conditionally positive definite kernel; None is the Gaussian one of `KernelSVC`. With
        ``"precomputed"`` X is the kernel matrix.
    C : float, default=1.0
        Weight of the summed errors, in the units of y.
    epsilon : float, default=0.1
        Errors up to this size cost nothing.
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Maximum number of steps, with a warning; None for the larger of a million and 100 per object.
    cache_size : float, default=150.0
        Megabytes for kernel values, as in `KernelSVC`.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix, or how many rows have been computed.

    Attributes
    ----------
    support_ : array of int
        Indices of the training objects with a nonzero coefficient.
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
        cache_size: float = 150.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
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
            Factors of C.

        Returns
        -------
        self : KernelSVR
        """
        self._check_parameters()
        check_positive("C", self.C)
        check_positive("cache_size", self.cache_size)
        check_not_negative("epsilon", self.epsilon)
        X = self._collected(X, reset=True)
        y = real_targets(self, X, y)
        weights = weights_of(X, sample_weight)
        used = np.flatnonzero(weights > 0)
        if self._fits(X):
            engine: Any = _core.machines.KernelMachine(np.ascontiguousarray(self._gram(X, weights)))
        else:
            engine = self._rows_on_demand(X, weights)
        settings = (float(self.epsilon), self.C * weights[used], float(self.tol), _limit(self.max_iter, len(used)))
        s, _, b, *_, steps, converged = engine.solve_tube(used, y[used], *settings)
        _warn_of_early_stop(converged, steps)
        support = np.flatnonzero(s)
        self._keep_model(X, weights, used[support], s[support], b, steps)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the number of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,)
        """
        return self._outputs(X) + self.intercept_[0]


class KernelOneClass(OutlierMixin, _Single):
    """One-class support vector machine: the region that contains most objects of any kind.

    Minimises ``½‖f‖² + Σ_i ξ_i − n ν ρ`` subject to ``f(x_i) ≥ ρ − ξ_i``. At most the fraction ν of the training
    objects lie outside the region ``f ≥ ρ``, and at least the fraction ν are support objects. Objects on the boundary
    count as inside. At ν = 1, f is a `ParzenWindow`.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel; None is the Gaussian one of `KernelSVC`. A conditionally positive definite kernel
        has no origin to separate the objects from, and raises an error. With ``"precomputed"`` X is the kernel matrix.
    nu : float, default=0.5
        In (0, 1].
    tol : float, default=1e-3
        Violation of the optimality conditions at which training stops.
    max_iter : int or None
        Maximum number of steps, with a warning; None for the larger of a million and 100 per object.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    support_ : array of int
        Indices of the training objects with a nonzero coefficient.
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

    References
    ----------
    .. [Scholkopf2001] B. Schölkopf, J. Platt, J. Shawe-Taylor, A. Smola and R. Williamson. Estimating the support of a
       high-dimensional distribution. Neural Computation 13, 2001.

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
            Factors of the bounds on coefficients.

        Returns
        -------
        self : KernelOneClass
        """
        self._check_parameters()
        check_rate("nu", self.nu)
        X = self._collected(X, reset=True)
        weights = weights_of(X, sample_weight)
        used, K = np.flatnonzero(weights > 0), np.ascontiguousarray(self._gram(X, weights))
        bounds = weights[used]
        if self.nu == 1:  # all coefficients at their bound; ρ is any number that f does not exceed
            self._keep_model(X, weights, used, bounds, -float((K[np.ix_(used, used)] @ bounds).max()), 1)
        else:
            # Coefficients do not depend on a factor of the kernel, but outputs do, and what they violate.
            size = float(np.abs(np.diag(K)[used]).mean()) or 1.0
            nothing, start = np.zeros(len(used)), _filled(bounds, float(self.nu) * float(bounds.sum()))
            settings = (nothing, nothing, bounds, start, 0, self.tol * size, _limit(self.max_iter, len(used)))
            s, f, b, *_, steps, converged = _core.machines.KernelMachine(K).solve_box(used, *settings)
            _warn_of_early_stop(converged, steps)
            support, inside = np.flatnonzero(s), s < bounds * (1 - 1e-9)
            rho = self._boundary(f / size, -b / size, inside) * size
            self._keep_model(X, weights, used[support], s[support], -rho, steps)
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
        """Return f of every object: higher values are more typical."""
        return self._outputs(X)

    def _score_rows(self) -> ScoreRows:
        return replace(super()._score_rows(), constants=np.array([-float(self.offset_)]))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f − ρ of every object: negative outside the region."""
        return self._outputs(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return 1 for objects inside the region, −1 for those outside.

        Parameters
        ----------
        X : collection of n objects
            With ``kernel="precomputed"`` kernel values with the training objects.

        Returns
        -------
        array of n numbers 1 or −1
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def level_set_mass(self, X: Any) -> float:
        """Return the fraction of objects inside the region: near 1 − ν for the distribution of the training objects.

        This is the mass of the estimated level set {f ≥ ρ}.

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
    """Most steps of a machine: where rounding keeps it from its tolerance it would go on for ever."""
    return max(1_000_000, 100 * n) if max_iter is None else max_iter


def _warn_of_early_stop(converged: bool, steps: int) -> None:
    if not converged:
        message = (
            f"training stopped after {steps} steps without reaching tol: raise max_iter or tol, or scale the kernel"
        )
        warn_caller(message, ConvergenceWarning)


def _filled(bounds: np.ndarray, total: float) -> np.ndarray:
    """Coefficients with a sum of ``total``: the first ones at their bounds."""
    before = np.cumsum(bounds) - bounds
    return np.clip(total - before, 0.0, bounds)


def _spread(K: np.ndarray, members: np.ndarray, weights: np.ndarray, most: int = 256) -> float:
    """The mean squared distance of objects from their mean, of some of them where there are many; 1 where it is 0."""
    chosen = np.linspace(0, len(members) - 1, min(most, len(members))).astype(int)
    some, share = K[np.ix_(members[chosen], members[chosen])], weights[chosen] / weights[chosen].sum()
    spread = float(np.diag(some) @ share - share @ some @ share)
    return spread if spread > 1e-14 * float(np.abs(some).max()) else 1.0


# ---------------------------------------------------------------------------------------------------- hard margins


def _centred(K: np.ndarray) -> tuple[np.ndarray, float]:
    """K with the mean as the origin, divided by the mean of its diagonal; and this mean."""
    means = K.mean(axis=0)
    centred = K - means[:, None] - means + means.mean()
    size = float(np.diag(centred).mean())
    if not size > 1e-14 * float(np.abs(K).max()):
        size = 1.0  # a constant kernel, or one without positive definite values
    return centred / size, size


def _hard_gap(K: np.ndarray, signs: np.ndarray, s: np.ndarray) -> float:
    """(primal − dual) / primal: scaled until every margin is at least 1, the function is feasible."""
    f = K @ s
    norm, margins = float(s @ f), signs * f
    # The offset between the two classes.
    least = (margins[signs > 0].min() + margins[signs < 0].min()) / 2
    primal = 0.5 * norm / min(1.0, max(float(least), 1e-300)) ** 2
    return (primal - (float(np.abs(s).sum()) - 0.5 * norm)) / max(abs(primal), 1e-300)


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
    program = linprog(cost, A_ub=A, b_ub=np.zeros(n), bounds=bounds, method="highs")
    return bool(program.status == 0 and -program.fun > _FLAT)
