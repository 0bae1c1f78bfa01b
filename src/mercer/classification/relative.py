"""The relative margin machine: a support vector machine with outputs bounded to a band.

    min ½‖w‖² + C Σ ξ_i,   y_i f(x_i) ≥ 1 − ξ_i,   −B ≤ f(x_i) ≤ B,   f(x) = ⟨w, φ(x)⟩ + b

The band bounds the spread of the outputs, and the margin is relative to it. B = ∞ gives the ordinary support vector
machine. The dual is solved in compiled code, two variables at a time (``cpp/solvers/relative_margin.cpp``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from mercer import _core
from mercer._estimator import Estimator
from mercer._explain import ScoreModel, ScoreRows, chosen_labels, votes_of_pairs
from mercer._linalg import asymmetry, low_rank_factor
from mercer._progress import say
from mercer._state.saved import Fields, Flag, Floats, History, Ints, LabelValues, Number, Objects, Saved
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_positive, check_sparse, check_weights, thread_count
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.learning.qp.interior_point import fit_relative_margin

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6

    def validate_data(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """The method of old that became this function."""
        return estimator._validate_data(*args, **kwargs)


KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
_PREDICT_VALUES = 4_000_000  # kernel values held at a time
_PATIENCE = 20  # steps an example before an interior point method is asked
_SPENT = 1e-11  # of the largest value on a diagonal: where a kernel matrix has no more rank
_MAX_RANK = 512  # and the largest rank of a kernel matrix at which it is
_MAX_FEATURES = 1024  # the same for features of a linear kernel, whose matrix is too large to hold


class _Machine(NamedTuple):
    """One binary problem and what came of it."""

    members: np.ndarray  # rows of X
    coefficients: np.ndarray  # s, one for each member
    intercept: float
    steps: int
    converged: bool
    history: dict[str, list[float]]


def _n_machines(model: Any) -> int:
    k = len(model.classes_)
    return k * (k - 1) // 2 if model.multiclass == "one-vs-one" or k == 2 else k


class RelativeMarginSVC(Saved, ClassifierMixin, ScoreModel, Estimator):
    """A kernel support vector machine with bounded outputs: the relative margin machine.

    The binary machine minimises ``½‖w‖² + C Σ max(0, 1 − y_i f(x_i))`` under ``−B ≤ f(x_i) ≤ B`` on all training
    points. Without these bounds (``B=np.inf``) it is the same problem as :class:`sklearn.svm.SVC`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and gives the matrix of kernel values. With ``"precomputed"``, X is that
        matrix: of training rows with themselves in :meth:`fit`, of new rows with the training rows afterwards. The
        kernel must be positive semi-definite (``"sigmoid"`` is so only for some parameters).
    C : float, default=1.0
        Weight of the summed slack.
    B : float, default=2.0
        Bound of the outputs, at least 1 (a smaller one would force slack on every point); ``np.inf`` for none.
        Choose it by cross-validation, together with C.
    degree : int, default=3
        Of ``"poly"``: ``(gamma ⟨x, z⟩ + coef0)^degree``.
    gamma : {"scale", "auto"} or float, default="scale"
        Of ``"rbf"`` (``exp(−gamma ‖x − z‖²)``), ``"poly"`` and ``"sigmoid"``. ``"scale"`` is
        ``1 / (n_features · variance of X)``, ``"auto"`` is ``1 / n_features``.
    coef0 : float, default=0.0
        Of ``"poly"`` and ``"sigmoid"``.
    multiclass : {"one-vs-one", "one-vs-rest"}, default="one-vs-one"
        With more than two classes: a classifier for each pair of classes, with majority vote (ties go to the larger sum
        of outputs), or one for each class against all others.
    tol : float, default=1e-3
        Training stops when the optimality conditions are violated by at most this much, measured in outputs f.
    max_iter : int or None
        Maximum number of steps of each binary problem; None for no limit.
    cache_size : float, default=200.0
        Megabytes of kernel cache for each binary problem. If the whole matrix fits, it is computed at once; otherwise
        rows are computed on demand and the most recently used rows are kept.
    class_weight : dict, "balanced" or None
        Factors of C for the rows of each class.
    n_jobs : int or None
        Threads: over binary problems if there are several, over kernel values otherwise. The result does not depend on
        it.
    verbose : int, default=0
        1 prints a line for each binary problem, 2 a line for each record of the history.

    Attributes
    ----------
    classes_ : array of labels, sorted
    support_ : array of int
        Training rows with a nonzero coefficient in some binary problem.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        Those rows; empty with ``kernel="precomputed"``.
    n_support_ : array of int
        Support vectors of each class.
    dual_coef_ : array of shape (n_machines, n_support)
        Coefficients of the kernel values. With two classes there is one row, and outputs are positive for
        ``classes_[1]``. With ``"one-vs-one"`` the rows are the pairs of classes (0, 1), (0, 2), …, (1, 2), …, positive
        for the second class. With ``"one-vs-rest"`` there is one row for each class.
    intercept_ : array of shape (n_machines,)
    coef_ : array of shape (n_machines, n_features)
        Weights of the features; ``kernel="linear"`` only.
    history_ : dict of lists
        ``primal`` (of a point that keeps the bounds exactly), ``dual``, ``gap`` (their difference divided by the primal
        value: a certificate), ``violation``, ``steps``, ``seconds``, and the number of the ``machine``.
    n_iter_ : array of int
        Steps of each machine.
    converged_ : bool
    n_features_in_ : int

    Notes
    -----
    The model is the feasible primal point of the last ``primal`` value. So the bounds hold on all training points, for
    any tolerance.

    References
    ----------
    .. [Shivaswamy2010] P. Shivaswamy and T. Jebara. Maximum relative margin and data-dependent regularization. Journal
       of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer.classification import RelativeMarginSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = RelativeMarginSVC(C=1.0, B=1.5).fit(X[:400], y[:400])
    >>> bool(np.abs(model.decision_function(X[:400])).max() <= 1.5 + 1e-9)
    True
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    """

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        C: float = 1.0,
        B: float = 2.0,
        *,
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        multiclass: str = "one-vs-one",
        tol: float = 1e-3,
        max_iter: int | None = None,
        cache_size: float = 200.0,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.B = B
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multiclass = multiclass
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RelativeMarginSVC:
        """Learn from the rows of X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or the kernel matrix
        y : array of shape (n_samples,)
        sample_weight : array of n_samples numbers of at least 0, optional
            Factors of C; a row of weight 0 is left out, including its bounds.

        Returns
        -------
        self : RelativeMarginSVC
        """
        self._check_parameters()
        X, y = validate_data(self, check_sparse("X", X), y, accept_sparse="csr", dtype=np.float64, order="C")
        check_classification_targets(y)
        weights = check_weights(sample_weight, X.shape[0])
        weights = np.ones(X.shape[0]) if weights is None else weights
        used = np.flatnonzero(weights)
        classes, codes = np.unique(y, return_inverse=True)
        if len(np.unique(codes[used])) < len(classes):
            raise ValueError("each class needs an object of positive weight")
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes, found the one class {classes.tolist()[0]!r}")
        if self.class_weight is not None:
            own = compute_class_weight(self.class_weight, classes=classes, y=y, sample_weight=weights)
            weights = weights * own[codes]
            used = np.flatnonzero(weights)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"with kernel='precomputed', X must be a square matrix in fit, got shape {X.shape}")
        if self.kernel == "precomputed" and sp.issparse(X):
            X = X.toarray()
        self._gamma = self._gamma_of(X, weights)
        machines = self._train(X, codes, len(classes), used, weights)
        self.classes_ = classes
        self._keep(X, codes, machines)
        return self

    def _check_parameters(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_positive("C", self.C)
        if isinstance(self.B, bool) or not isinstance(self.B, Real) or not self.B >= 1:
            raise ValueError(
                f"B must be a number of at least 1 (np.inf for no bound), got {self.B!r}: with a smaller B no training"
                " point could reach the margin"
            )
        check_count("degree", self.degree, least=0)
        check_choice("multiclass", self.multiclass, ("one-vs-one", "one-vs-rest"))
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if isinstance(self.coef0, bool) or not isinstance(self.coef0, Real) or not math.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}")
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        elif isinstance(self.gamma, bool) or not isinstance(self.gamma, Real) or not 0 <= self.gamma < math.inf:
            raise ValueError(f"gamma must be 'scale', 'auto' or a finite number of at least 0, got {self.gamma!r}")
        thread_count(self.n_jobs)

    def _gamma_of(self, X: Any, weights: np.ndarray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or self.kernel == "precomputed":
            return 1.0 / X.shape[1]
        # The variance over all entries, the zeros of a sparse matrix included.
        shares = weights / weights.sum() / X.shape[1]
        mean = float(shares @ np.asarray(X.sum(axis=1)).ravel())
        if sp.issparse(X):
            variance = float(shares @ np.asarray(X.multiply(X).sum(axis=1)).ravel()) - mean**2
        else:
            variance = float(shares @ ((X - mean) ** 2).sum(axis=1))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _train(
        self, X: Any, codes: np.ndarray, n_classes: int, used: np.ndarray, weights: np.ndarray
    ) -> list[_Machine]:
        """All binary problems over the rows with a weight, in the order of ``dual_coef_``."""
        problems: list[tuple[np.ndarray, np.ndarray]] = []
        if n_classes == 2 or self.multiclass == "one-vs-one":
            for first, second in combinations(range(n_classes), 2):
                members = used[(codes[used] == first) | (codes[used] == second)]
                problems.append((members, np.where(codes[members] == second, 1.0, -1.0)))
        else:
            problems = [(used, np.where(codes[used] == c, 1.0, -1.0)) for c in range(n_classes)]
        bounds = float(self.C) * weights
        threads = thread_count(self.n_jobs)
        if len(problems) == 1:
            members, signs = problems[0]
            return [self._train_machine(X, 0, members, signs, bounds[members], threads)]
        return each(
            lambda k: self._train_machine(X, k, problems[k][0], problems[k][1], bounds[problems[k][0]], 1),
            range(len(problems)),
            threads,
        )

    def _train_machine(
        self, X: Any, number: int, members: np.ndarray, signs: np.ndarray, C: np.ndarray, threads: int
    ) -> _Machine:
        dual, source, matrix = self._dual(X, members, signs, C, threads)
        keys = ("primal", "dual", "gap", "violation", "steps", "seconds", "machine")
        history: dict[str, list[float]] = {key: [] for key in keys}
        begin, n = time.perf_counter(), len(members)
        limit = math.inf if self.max_iter is None else self.max_iter
        steps, converged, asked, why = 0, False, not matrix, f"reached max_iter={self.max_iter} steps"
        try:
            if not matrix:  # rows of kernel values are dear here, so a start is sought at once
                self._start_inside(dual, source, matrix, signs, C)
            while not converged and steps < limit:
                chunk = int(min(max(n, 100), 1000, limit - steps))
                made = dual.run(chunk, float(self.tol))
                steps, converged = steps + made, made < chunk
                if not converged and not asked and steps >= _PATIENCE * n:
                    asked = True
                    self._start_inside(dual, source, matrix, signs, C)
                self._record(history, dual.figures(), float(C.sum()), steps, time.perf_counter() - begin, number)
        except KeyboardInterrupt:  # the point at hand is feasible, so it is a model
            why = "was interrupted"
            self._record(history, dual.figures(), float(C.sum()), steps, time.perf_counter() - begin, number)
        if not converged:
            warn_caller(
                f"training {why} at a relative gap of {history['gap'][-1]:.1e}: raise max_iter or tol,"
                " or scale the features",
                ConvergenceWarning,
            )
        if self.verbose == 1:
            seconds, gap = history["seconds"][-1], history["gap"][-1]
            say(f"machine {number}: {steps} steps, gap {gap:.2e}, {seconds:.2f} s")
        coefficients = np.empty(n)
        dual.coefficients(coefficients)
        _, _, _, scale, intercept = dual.figures()
        return _Machine(members, scale * coefficients, intercept, steps, converged, history)

    def _record(
        self, history: dict[str, list[float]], figures: Any, most: float, steps: int, seconds: float, number: int
    ) -> None:
        primal, dual, violation = figures[:3]
        # f = 0 has the primal value Σ C_i: by weak duality the dual of a positive semi-definite kernel stays below it.
        # That of an indefinite one grows without bound, unless the box of the plain SVM stops it; there we do as SVC.
        grows = dual > most * (1 + 1e-9) and math.isfinite(self.B)
        if grows or not all(map(math.isfinite, figures)):
            raise ValueError(
                "the kernel is not positive semi-definite on the training points, so the problem has no solution:"
                " choose another kernel or other parameters of it"
            )
        gap = (primal - dual) / max(abs(primal), 1e-300)
        row = (primal, dual, gap, violation, steps, seconds, number)
        for key, value in zip(history, row, strict=True):
            history[key].append(float(value))
        if self.verbose >= 2:
            values = f"primal {primal:.6g}  dual {dual:.6g}  gap {gap:.2e}"
            say(f"machine {number}  steps {steps}  {values}")

    def _start_inside(
        self, dual: _core.machines.RelativeMarginDual, source: Any, matrix: bool, signs: np.ndarray, C: np.ndarray
    ) -> None:
        """Where the kernel matrix has a low rank, go on from what an interior point method finds."""
        n = len(signs)
        V: Any
        if matrix:
            enough = _SPENT * float(np.diag(source).max())
            V = low_rank_factor(source, min(_MAX_RANK, n // 2), lambda largest, total: largest <= enough)
        else:
            few = self.kernel == "linear" and source.shape[1] <= min(_MAX_FEATURES, n // 2)
            V = source if few else None
        if V is None:
            return
        dense: np.ndarray = V.toarray() if sp.issparse(V) else V
        s = fit_relative_margin(dense, signs, C, float(self.B))
        g = source @ s if matrix else dense @ (dense.T @ s)
        if np.isfinite(s).all() and np.isfinite(g).all():
            dual.start(s, np.ascontiguousarray(g))

    def _dual(
        self, X: Any, members: np.ndarray, signs: np.ndarray, C: np.ndarray, threads: int
    ) -> tuple[_core.machines.RelativeMarginDual, Any, bool]:
        """The compiled problem, and what it is over: the matrix of kernel values where that fits, else feature rows."""
        n, B = len(members), float(self.B)
        available = self.cache_size * 1e6 / 8
        if self.kernel == "precomputed":
            K = self._symmetric(X if n == X.shape[0] else X[np.ix_(members, members)])
            return _core.machines.RelativeMarginDual(K, signs, C, B), K, True
        own = X if n == X.shape[0] else X[members]
        if callable(self.kernel) or n * n <= available:
            K = self._symmetric(self._values(own, own))
            return _core.machines.RelativeMarginDual(K, signs, C, B), K, True
        if sp.issparse(own):
            own = own.sorted_indices()
            indptr, indices = own.indptr.astype(np.int64), own.indices.astype(np.int32)
            rows = _core.linear.Rows(indptr, indices, own.data.astype(np.float64, copy=False), own.shape[1], False)
        else:
            rows = _core.linear.Rows(np.ascontiguousarray(own))
        kept = max(2, int(available / n))
        settings = (self.kernel, int(self.degree), self._gamma, float(self.coef0))
        return _core.machines.RelativeMarginDual(rows, *settings, signs, C, B, kept, threads), own, False

    @staticmethod
    def _symmetric(K: np.ndarray) -> np.ndarray:
        K = np.ascontiguousarray(K, dtype=float)
        if not np.isfinite(K).all():
            raise ValueError("the kernel matrix must be finite, but a value is NaN or infinite")
        if asymmetry(K)[0] > 1e-8 * float(np.abs(K).max(initial=0.0)):
            raise ValueError("the kernel matrix must be symmetric")
        return K

    def _keep(self, X: Any, codes: np.ndarray, machines: list[_Machine]) -> None:
        dense = np.zeros((len(machines), len(codes)))
        for row, machine in zip(dense, machines, strict=True):
            row[machine.members] = machine.coefficients
        self.support_ = np.flatnonzero(dense.any(axis=0))
        self.dual_coef_ = np.ascontiguousarray(dense[:, self.support_])
        self.intercept_ = np.array([machine.intercept for machine in machines])
        self.support_vectors_: Any = np.empty((0, 0)) if self.kernel == "precomputed" else X[self.support_]
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.n_iter_ = np.array([machine.steps for machine in machines])
        self.converged_ = all(machine.converged for machine in machines)
        keys = machines[0].history
        self.history_ = {key: [v for machine in machines for v in machine.history[key]] for key in keys}

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the output f of each row, or one value for each row and class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or kernel values with the training rows

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_classes)
            With two classes f, positive for ``classes_[1]``. With more, the outputs of the machines against the rest,
            or the number of votes plus the summed outputs squeezed into (−⅓, ⅓).
        """
        outputs = self._outputs(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return outputs[:, 0]
        if self.multiclass == "one-vs-rest":
            return outputs
        return votes_of_pairs(outputs, n_classes)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or kernel values with the training rows

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return chosen_labels(self.decision_function(X), self.classes_)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row per binary problem; only with ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is available only with kernel='linear'")
        if not hasattr(self, "dual_coef_"):
            raise AttributeError("this RelativeMarginSVC is not fitted yet")
        product = self.dual_coef_ @ self.support_vectors_
        return np.asarray(product)

    def _score_rows(self) -> ScoreRows:
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError("this RelativeMarginSVC is not fitted yet: call fit first")
        pairs = len(self.classes_) > 2 and self.multiclass != "one-vs-rest"
        weights = self.coef_ if self.kernel == "linear" else self.dual_coef_
        return ScoreRows(weights, self.intercept_, self.classes_.tolist(), pairs)

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.kernel == "linear":
            return super()._activations(x)
        row: Any = self._one_row(x if sp.issparse(x) else np.atleast_2d(np.asarray(x)))
        given = self.kernel == "precomputed"
        values: Any = row[:, self.support_] if given else self._values(row, self.support_vectors_)
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        return np.arange(values.shape[1]), values[0].astype(float)

    def _one_row(self, X: Any) -> Any:
        return validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, order="C", reset=False)

    def _feature_name(self, column: int) -> str:
        return super()._feature_name(column) if self.kernel == "linear" else f"row {self.support_[column]}"

    def _outputs(self, X: Any) -> np.ndarray:
        """f of each row and machine, some rows at a time."""
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError("this RelativeMarginSVC is not fitted yet: call fit first")
        X = validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        outputs = np.empty((X.shape[0], len(self.intercept_)))
        rows = max(1, _PREDICT_VALUES // max(1, len(self.support_)))
        for start in range(0, X.shape[0], rows):
            part = X[start : start + rows]
            if self.kernel == "precomputed":
                values = part[:, self.support_]
            else:
                values = self._values(part, self.support_vectors_)
            outputs[start : start + rows] = values @ self.dual_coef_.T + self.intercept_
        return outputs

    def _values(self, A: Any, B: Any) -> np.ndarray:
        """Kernel values of the rows of A with those of B."""
        if callable(self.kernel):
            values = np.asarray(self.kernel(A, B), dtype=float)
            if values.shape != (A.shape[0], B.shape[0]):
                expected = (A.shape[0], B.shape[0])
                raise ValueError(f"the callable kernel must give an array of shape {expected}, it gave {values.shape}")
            return values
        if self.kernel == "linear":
            return pairwise.linear_kernel(A, B)
        if self.kernel == "rbf":
            return pairwise.rbf_kernel(A, B, gamma=self._gamma)
        if self.kernel == "sigmoid":
            return pairwise.sigmoid_kernel(A, B, gamma=self._gamma, coef0=self.coef0)
        return pairwise.polynomial_kernel(A, B, degree=self.degree, gamma=self._gamma, coef0=self.coef0)

    # ------------------------------------------------------------------ scikit-learn's tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {"pairwise": self.kernel == "precomputed"}

    # ------------------------------------------------------------------ model files

    saved = Fields(
        classes_=LabelValues(2),
        support_=Ints(None),
        support_vectors_=Objects(),
        n_support_=Ints("classes_"),
        dual_coef_=Floats(_n_machines, "support_"),
        intercept_=Floats(_n_machines),
        n_iter_=Ints(_n_machines),
        converged_=Flag(),
        history_=History(),
        _gamma=Number(0),
    )

    def _saved_params(self) -> dict[str, Any]:
        if callable(self.kernel):
            raise TypeError("a model with a callable kernel cannot be saved: use kernel='precomputed' with its values")
        return super()._saved_params()

    def _check_state(self) -> None:
        self._check_parameters()
        vectors, precomputed = self.support_vectors_, self.kernel == "precomputed"
        expected = (0, 0) if precomputed else (len(self.support_), self.n_features_in_)
        if np.shape(vectors) != expected:
            raise ValueError(f"support_vectors_ must have the shape {expected}, found {np.shape(vectors)}")
        values = vectors.data if sp.issparse(vectors) else vectors
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError("a support vector is not finite")
        if precomputed and len(self.support_) and self.support_.max() >= self.n_features_in_:
            raise ValueError("support_ names a training row that is not there")
