"""Regularised risk in the space of a kernel, for any loss.

    min_f ½‖f‖² + C Σ_i w_i loss(y_i, f(x_i) + b):   by the representer theorem f = Σ_j a_j k(·, x_j) and ‖f‖² = aᵀ K a

With K = V Λ Vᵀ and a = V Λ^{-1/2} β the penalty is ½‖β‖² and f(x_i) = (V Λ^{1/2} β)_i. This is a well-scaled problem
with rank(K) variables. With an offset K is centred first. At the optimum the coefficients sum to 0, so centring changes
nothing, and a conditionally positive definite kernel is enough. Losses with kinks are smoothed over a width that
shrinks to almost 0; each problem starts from the previous solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if

from mercer._state.saved import Count, Fields, Flag, Floats, LabelValues, Optional, outputs
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernel_methods.base import KernelMethod, class_codes, real_targets, weights_of
from mercer.kernel_methods.losses import LOSSES, LogisticLoss, ScoreLoss, _sigmoid
from mercer.learning.newton import minimize_by_newton

__all__ = ["RepresenterEstimator"]

_SPENT = 1e-12  # eigenvalues below this part of the largest one are rounding
_WIDTHS = np.logspace(0, -6, 7)  # of rounded kinks, relative to the scale of the targets


class _Solution(NamedTuple):
    beta: np.ndarray
    offset: float
    objective: float
    steps: int
    converged: bool


class RepresenterEstimator(KernelMethod):
    """The minimiser of ``½‖f‖² + C Σ_i loss(y_i, f(x_i) + b)`` over the space of a kernel, for any loss.

    A loss of numbers makes it a regressor, a loss of labels a classifier. With more than two classes there is one
    function for each class against all others.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel, with an offset also a conditionally positive definite one; None is the linear one.
        With ``"precomputed"`` X is the kernel matrix.
    loss : str, ScoreLoss or callable, default="squared"
        ``"squared"``, ``"huber"``, ``"pinball"`` (numbers), ``"logistic"``, ``"hinge"``, ``"exponential"`` (labels), or
        an object such as ``PinballLoss(0.9)``. A callable takes the arrays f and y and returns two arrays: the values
        and the derivatives in f; y are numbers. For a loss that is not convex, training finds a local minimum.
    C : float, default=1.0
        Weight of the summed loss.
    offset : bool, default=True
        Whether to add an offset b, which is not penalised.
    solver : {"auto", "newton", "lbfgs"}, default="auto"
        Newton's method needs a second derivative, which all built-in losses have after smoothing; L-BFGS does not.
        ``"auto"`` uses Newton's method where possible.
    tol : float, default=1e-8
        Norm of the gradient, relative to that at f = 0, at which training stops.
    max_iter : int, default=200
        Maximum number of steps (for a loss with kinks: of each smoothed problem).
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        1 shows the progress of a large Gram matrix.

    Attributes
    ----------
    classes_ : array of labels, sorted
        Only with a loss of labels.
    support_ : array of int
        Indices of the training objects with a positive weight.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_functions, n_support)
        Coefficients: one row, or with more than two classes one for each.
    intercept_ : array of shape (n_functions,)
        b; 0 without an offset.
    objective_ : array of shape (n_functions,)
        ½‖f‖² + C Σ loss, with the unsmoothed loss.
    n_iter_ : int
        Number of steps, the maximum over all functions.
    converged_ : bool

    References
    ----------
    .. [Bakir2007] G. Bakır, T. Hofmann, B. Schölkopf, A. Smola, B. Taskar and S. V. N. Vishwanathan (editors).
       Predicting structured data. MIT Press, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import PinballLoss, RepresenterEstimator
    >>> X = np.zeros((9, 1))
    >>> model = RepresenterEstimator(loss=PinballLoss(0.5)).fit(X, np.array([1, 2, 3, 4, 5, 60, 70, 80, 90.0]))
    >>> model.predict(X[:1]).round(3)  # the median
    array([5.])
    >>> y = np.array(["a", "b", "b"])
    >>> RepresenterEstimator(loss="logistic", C=10.0).fit([[-1.0], [0.5], [1.0]], y).predict([[-2.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    saved = KernelMethod.saved | Fields(
        classes_=Optional(LabelValues(2)),
        dual_coef_=Floats("_n_outputs", "support_"),
        intercept_=Floats("_n_outputs"),
        objective_=Floats("_n_outputs"),
        n_iter_=Count(),
        converged_=Flag(),
    )

    def __init__(
        self,
        kernel: Any = None,
        loss: Any = "squared",
        C: float = 1.0,
        *,
        offset: bool = True,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 200,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.offset = offset
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _takes_conditional(self) -> bool:
        return bool(self.offset)

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RepresenterEstimator:
        """Learn from objects and their labels or numbers.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n labels or numbers
        sample_weight : array of n numbers of at least 0, optional
            Weights of the losses.

        Returns
        -------
        self : RepresenterEstimator
        """
        loss = self._check_parameters()
        X = self._collected(X, reset=True)
        targets = self._targets_of(X, y, loss)
        weights = weights_of(X, sample_weight)
        used, K = np.flatnonzero(weights > 0), self._gram(X)
        K = K if len(used) == len(K) else K[np.ix_(used, used)]
        basis, lifted = _whitened(K, bool(self.offset))
        problems = [_Problem(basis, t[used], self.C * weights[used], loss, bool(self.offset)) for t in targets]
        solutions = [self._solve(problem, loss) for problem in problems]
        self._keep(X, used)
        self.dual_coef_ = np.array([lifted @ s.beta for s in solutions]).reshape(len(solutions), len(used))
        shifts = (self.dual_coef_ @ K).mean(axis=1) if self.offset else np.zeros(len(solutions))
        self.intercept_ = np.array([s.offset for s in solutions]) - shifts
        self.objective_ = np.array([s.objective for s in solutions])
        self.n_iter_ = max(1, *(s.steps for s in solutions)) if len(solutions) > 1 else max(1, solutions[0].steps)
        self.converged_ = all(s.converged for s in solutions)
        if not self.converged_:
            warn_caller(
                f"training stopped before the gradient was small: raise max_iter={self.max_iter} or tol={self.tol}",
                ConvergenceWarning,
            )
        return self

    def _check_parameters(self) -> ScoreLoss:
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_choice("solver", self.solver, ("auto", "newton", "lbfgs"))
        return _resolved(self.loss)

    def _targets_of(self, X: Any, y: Any, loss: ScoreLoss) -> list[np.ndarray]:
        """One vector of targets for each function."""
        if loss.task == "real":
            self.__dict__.pop("classes_", None)  # of an earlier fit with labels
            return [real_targets(self, X, y)]
        classes, codes = class_codes(self, X, y)
        self.classes_ = classes
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(codes == c, 1.0, -1.0) for c in wanted]

    def _solve(self, problem: _Problem, loss: ScoreLoss) -> _Solution:
        has_curvature = type(loss.smoothed(1.0)).curvature is not ScoreLoss.curvature
        if self.solver == "newton" and not has_curvature:
            raise ValueError(f"solver='newton' needs a second derivative, which {self.loss!r} has not: use 'lbfgs'")
        newton = has_curvature and self.solver != "lbfgs"
        u, steps, converged = problem.start(), 0, True
        for rounded in _sequence(loss, problem.scale()):
            problem.loss = rounded
            u, made, converged = (_newton if newton else _lbfgs)(problem, u, self.tol, self.max_iter)
            steps += made
        problem.loss = loss
        beta, b = problem.split(u)
        return _Solution(beta, b, problem.value(u), steps, converged)

    # ------------------------------------------------------------------ prediction

    def _outputs(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return self._expanded(X, self.dual_coef_.T) + self.intercept_

    @available_if(lambda self: _resolved(self.loss).task != "real")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b: positive for ``classes_[1]``, or with more than two classes a value for each.

        Only for losses of labels.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @available_if(lambda self: isinstance(_resolved(self.loss), LogisticLoss))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities; only for the logistic loss.

        With more than two classes these are the probabilities against all others, scaled to sum to 1.
        """
        p = _sigmoid(self._outputs(X))
        return np.hstack([1.0 - p, p]) if p.shape[1] == 1 else p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label or the number of every object.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        answers : array of shape (n_objects,)
        """
        outputs = self._outputs(X)
        if _resolved(self.loss).task == "real":
            return outputs[:, 0]
        chosen = (outputs[:, 0] > 0).astype(int) if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        return self.classes_[chosen]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy with a loss of labels, R² with a loss of numbers."""
        measure = r2_score if _resolved(self.loss).task == "real" else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def as_function(self) -> Any:
        """Return f, without the offset, as a `mercer.kernels.RKHSFunction`; with more than two classes a list."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        try:
            real = _resolved(self.loss).task == "real"
        except ValueError:
            return tags
        tags.estimator_type = "regressor" if real else "classifier"
        tags.regressor_tags, tags.classifier_tags = (RegressorTags(), None) if real else (None, ClassifierTags())
        return tags

    @property
    def _estimator_type(self) -> str:  # scikit-learn before 1.6
        return "regressor" if _resolved(self.loss).task == "real" else "classifier"

    # ------------------------------------------------------------------ model files

    @property
    def _n_outputs(self) -> int:
        return 1 if self._check_parameters().task == "real" else outputs(self)


# ---------------------------------------------------------------------------------------------------- losses


class _Callable(ScoreLoss):
    """A function of f and y as a loss."""

    task: ClassVar[str] = "real"

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]) -> None:
        object.__setattr__(self, "function", function)

    def value(self, f: Any, y: Any) -> np.ndarray:
        return self._both(f, y)[0]

    def gradient(self, f: Any, y: Any) -> np.ndarray:
        return self._both(f, y)[1]

    def _both(self, f: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = (np.asarray(part, dtype=np.float64) for part in self.function(f, y))  # type: ignore[attr-defined]
        if values.shape != np.shape(f) or slopes.shape != np.shape(f):
            raise ValueError(
                f"loss must give values and derivatives of shape {np.shape(f)}, gave {values.shape} and {slopes.shape}"
            )
        return values, slopes


_TAKEN = ("squared", "huber", "pinball", "logistic", "hinge", "exponential")


def _resolved(loss: Any) -> ScoreLoss:
    if isinstance(loss, ScoreLoss):
        if loss.task in ("multiclass", "novelty") or loss == LOSSES["perceptron"]:
            raise ValueError(f"loss must be a loss of two labels or of numbers, got {loss!r}")
        return loss
    if callable(loss):
        return _Callable(loss)
    return LOSSES[check_choice("loss", loss, _TAKEN)]


def _sequence(loss: ScoreLoss, scale: float) -> list[ScoreLoss]:
    """The loss itself; or, with kinks, roundings of it that come ever nearer."""
    if loss.smoothed(1.0) is loss:
        return [loss]
    return [loss.smoothed(float(width) * scale) for width in _WIDTHS]


# ---------------------------------------------------------------------------------------------------- the problem


def _whitened(K: np.ndarray, centered: bool) -> tuple[np.ndarray, np.ndarray]:
    """U = V Λ^{1/2} and V Λ^{-1/2} of the (centred) matrix."""
    if centered:
        means = K.mean(axis=0)
        K = K - means[:, None] - means[None, :] + means.mean()
    values, vectors = eigh(K, driver="evd")
    kept = values > _SPENT * max(float(values.max(initial=0.0)), 1e-300)
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    if centered:
        vectors = vectors - vectors.mean(axis=0)  # 0 but for rounding
    return vectors * roots, vectors / roots


class _Problem:
    """½‖β‖² + Σ_i c_i loss(y_i, (U β)_i + b) in the variables u = (β, b), or β alone."""

    def __init__(self, U: np.ndarray, y: np.ndarray, c: np.ndarray, loss: ScoreLoss, offset: bool) -> None:
        self.U = np.hstack([U, np.ones((len(U), 1))]) if offset else U
        self.y = y
        self.c = c
        self.loss = loss
        self.rank = U.shape[1]

    def start(self) -> np.ndarray:
        return np.zeros(self.U.shape[1])

    def scale(self) -> float:
        """The size of the targets, for the widths of rounded kinks."""
        return 1.0 if self.loss.task == "binary" else max(float(np.std(self.y)), 1e-12)

    def split(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        return u[: self.rank], float(u[self.rank]) if len(u) > self.rank else 0.0

    def value(self, u: np.ndarray) -> float:
        beta = u[: self.rank]
        return 0.5 * float(beta @ beta) + float(self.c @ self.loss.value(self.U @ u, self.y))

    def gradient(self, u: np.ndarray) -> np.ndarray:
        g = self.U.T @ (self.c * self.loss.gradient(self.U @ u, self.y))
        g[: self.rank] += u[: self.rank]
        return g

    def direction(self, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Newton's step. An offset without curvature gets a little, so that the system has a solution."""
        d = self.c * self.loss.curvature(self.U @ u, self.y)
        H = (self.U * d[:, None]).T @ self.U
        H[np.diag_indices(self.rank)] += 1.0
        if H.shape[0] > self.rank:
            H[-1, -1] += 1e-10 * (1.0 + float(self.c.sum()))
        for _ in range(12):
            try:
                return -cho_solve(cho_factor(H), g)
            except LinAlgError:  # a curvature below 0, or rounding
                H[np.diag_indices(len(H))] += 1e-12 + abs(float(np.trace(H))) / len(H)
        return -g

    def length(self, u: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> float:
        """Where along a direction of descent the derivative of the risk is 0, by halving.

        Derivatives show a gain where values are equal but for rounding. Where a loss has kinks, rounded off or not, the
        step of a quadratic model can be far too long, since it sees no curvature behind them.
        """
        f, df = self.U @ u, self.U @ direction
        beta, d = u[: self.rank], direction[: self.rank]
        fixed, growing = float(beta @ d), float(d @ d)

        def slope(t: float) -> float:
            return fixed + t * growing + float(self.c @ (self.loss.gradient(f + t * df, self.y) * df))

        at_one = slope(1.0)
        if 0 <= at_one <= 1e-3 * abs(slope(0.0)):
            return 1.0
        low, high = (0.0, 1.0) if at_one > 0 else (1.0, 2.0)
        while slope(high) < 0 and high < 1e6:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
            if high - low <= 1e-12 * high:
                break
        return 0.5 * (low + high)


def _newton(problem: _Problem, u: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, int, bool]:
    enough = tol * max(1.0, float(np.linalg.norm(problem.gradient(problem.start()))))
    u, steps, norm, gain = minimize_by_newton(problem, u, enough, max_iter)
    return u, steps, norm <= enough or (gain > 0 and gain <= 1e-9 * max(1.0, problem.value(u)))


def _lbfgs(problem: _Problem, u: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, int, bool]:
    enough = tol * max(1.0, float(np.linalg.norm(problem.gradient(problem.start()))))
    limits = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20}
    options = {**limits, "gtol": enough / np.sqrt(len(u) or 1), "ftol": 1e-15}
    solved = minimize(problem.value, u, jac=problem.gradient, method="L-BFGS-B", options=options)
    return solved.x, int(solved.nit), bool(solved.success)
