"""The convex ∝SVM: a large margin over all labellings that agree with the bags.

With labels y among Y = {y : every bag has a share of positives that its proportion allows} and no bias, the problem is

    min_{y ∈ Y} max_{0 ≤ α ≤ C}  Σ_i α_i − ½ Σ_ij α_i α_j y_i y_j k(x_i, x_j)

which is convex in yyᵀ. Its convex hull makes it a multiple-kernel problem, with one kernel for each labelling:

    min_μ max_α  Σ_i α_i − ½ Σ_t μ_t q_t(α),      q_t(α) = ‖Σ_i α_i y_ti φ(x_i)‖²,  μ ≥ 0, Σ_t μ_t = 1

Labellings enter one at a time: the next one is the y ∈ Y with the largest q_y(α) found by a search. Any (μ, α) bounds
the value over the active labellings: S(μ) = max_α … from above, Σα − ½ max_t q_t(α) from below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from mercer import _core
from mercer._progress import say
from mercer._state.saved import Fields, Objects
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer._warnings import warn_caller
from mercer.exceptions import IllPosedWarning
from mercer.kernel_methods.base import check_rate
from mercer.learning.qp.simplex import simplex_qp
from mercer.proportions._base import Problem, ProportionEstimator, Solution, Space, warn_of_one_class
from mercer.proportions._shares import labelled_alone, share_error, share_threshold

__all__ = ["ConvexProportionSVM"]

INTERCEPTS = ("constant", "center")
_SLACK = 1e-9  # of a count: shares such as 0.3 of 10 rows are not exact
_MATRIX = 2000  # instances: up to here the matrix of a program is formed where there are features, too
_STARTS = 8  # directions that the search follows
_ASCENTS = 20  # most steps from each
_LEVEL = 0.3  # where the level is between the bounds
_LEVELS = 100  # most steps on the weights of labellings
_GAP = 3e-3  # relative, of the weights of labellings
_NEWTON = 20  # most steps by second derivatives
_FREE = 1000  # coefficients between their bounds, up to which there are such steps
_FIRST = 0.3  # weight of the second labelling, to begin with
_EARLY = 2  # evaluations of S(μ) in a round, before the last one
_PART = 0.05  # of the relative gap: how exact an α is
_CUTS = 40  # that are kept for the next labelling
_SWEEPS = 2000  # most sweeps of a program
_TILT = 1e-4  # of an axis toward the keys of instances, which tells equal coordinates apart
_SAME = 1e-9  # relative difference of squares that are the same


class ConvexProportionSVM(ProportionEstimator):
    """Learn from shares by the convex form of ∝SVM: no restarts, no annealing.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the hinge loss of a row. Rows of a bag of weight v get C · v.
    epsilon : float, default=0.0
        Maximum deviation of the share of a bag from its proportion, in [0, 1]. If no count of rows is that near, the
        nearest count is used, with a warning, and the bag is listed in ``adjusted_bags_``.
    kernel : Kernel, "precomputed" or None
        Default: linear.
    map : transformer, optional
        Makes features of rows; with a kernel, the objects that it compares.
    intercept : {"constant", "center"}, default="constant"
        The convex form has no bias: the instances are centred, and with ``"constant"`` also get a constant feature 1.
    variance : float, default=0.9
        With a kernel, or more columns than rows: labellings are searched along the principal axes that hold this share
        of the variance.
    max_iter : int, default=10
        Maximum number of labellings.
    tol : float, default=1e-2
        Stop when a labelling lowers the objective by less than this share.
    random_state : ignored
        Nothing is drawn.
    n_jobs : int, optional
        Threads of the kernel and of the search.
    verbose : int, default=0
        Print the objective of every round.

    Attributes
    ----------
    bag_error_, constant_bag_error_, majority_bag_error_ : float
        Mean absolute errors of shares on the training bags: of the predictions, of the best constant share for all
        bags, and of the most frequent class for all rows. A `ConstantAnswerWarning` is raised if the first is not below
        the second.
    classes_, coef_, intercept_, dual_coef_, support_, support_objects_
        The function, by features or over training objects.
    active_labelings_ : ndarray of int8, shape (n_labelings, n)
        The active labellings; one column for each row and bag, in the order of `Bags`, then labelled rows without a
        bag.
    mu_ : ndarray of shape (n_labelings,)
    objective_history_ : ndarray
        The objective after each round; never rises.
    gap_ : float
        Bound on the distance of the last objective from the optimum over the active labellings.
    converged_ : bool
        Whether the rounds ended by ``tol``.
    n_iter_ : int
        Rounds.
    adjusted_bags_ : ndarray of int64
        Indices of the bags whose share is not a whole number of rows.

    With several classes the last seven are lists, one for each class against the rest.

    Notes
    -----
    The last step is the threshold: the value nearest to 0 with the least error of proportions on the training bags.
    Rows with a known label are bags of one in this step, with weight 1, even if they are in a bag. The convex form has
    no bias, which costs accuracy if classes differ in size.

    More rounds lower the objective, not always the error: with large bags, few labellings (``max_iter`` of 1 to 3)
    can give a better classifier. `BagCV` chooses without labels.

    Rows of different weight in one bag raise an error. With equal weights, the best labelling of a bag along a
    direction labels its highest rows positive. With different weights this is a knapsack problem, and if no subset of
    the weights sums to the share, no labelling exists. `AlternatingProportionSVM`, which fits shares by a loss and not
    exactly, and `InverseCalibration` take such weights.

    References
    ----------
    .. [Yu2013] F. X. Yu, D. Liu, S. Kumar, T. Jebara and S.-F. Chang. ∝SVM for learning with label proportions. ICML,
       2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import ConvexProportionSVM, make_bags
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 80)
    >>> X = rng.normal(size=(80, 2)) + 4 * y[:, None]
    >>> model = ConvexProportionSVM().fit(X, bags=make_bags(y, 8, random_state=0))
    >>> float(model.score(X, y)) > 0.95
    True
    """

    version = 2  # max_rounds is max_iter
    saved = ProportionEstimator.saved | Fields(
        active_labelings_=Objects(),
        mu_=Objects(),
        objective_history_=Objects(),
        gap_=Objects(),
        converged_=Objects(),
        n_iter_=Objects(),
        adjusted_bags_=Objects(),
    )

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.0,
        *,
        kernel: Any = None,
        map: Any = None,
        intercept: str = "constant",
        variance: float = 0.9,
        max_iter: int = 10,
        tol: float = 1e-2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.map = map
        self.intercept = intercept
        self.variance = variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, Real) or not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must be a number in [0, 1], got {self.epsilon!r}")
        check_choice("intercept", self.intercept, INTERCEPTS)
        check_rate("variance", self.variance)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        warn_of_one_class(problem)
        given, problem = problem, problem.single_bags()
        choices = _Choices.of(problem, self.epsilon, thread_count(self.n_jobs))
        adjusted = np.flatnonzero(choices.adjusted)
        if len(adjusted):
            warn_caller(
                f"{len(adjusted)} of {given.n_bags} bags have proportions that no count of their rows meets within"
                f" epsilon={self.epsilon:g}: the nearest counts are used (see adjusted_bags_)",
                UserWarning,
            )
        vectors = _Vectors(space, self.intercept)
        key, order = vectors.arrange(problem)
        choices = replace(choices, known=problem.known[order], key=key)
        upper = self.C * np.repeat(problem.bag_weight, problem.sizes)
        hull = self._hull(vectors, choices, upper)
        coefficients = hull.alpha * _rank_one(hull.labelings, hull.mu)
        labelings = np.empty_like(hull.labelings)
        scores, labelings[:, order] = np.empty(len(order)), hull.labelings
        scores[order] = vectors.inner(coefficients[None])[0]
        sign, shift = _oriented(scores, given, float(scores[order] @ key))
        weights, intercept = vectors.function(sign * coefficients)
        info = {
            "active_labelings": labelings,
            "mu": hull.mu,
            "objective_history": np.array(hull.history),
            "gap": hull.gap,
            "converged": hull.converged,
            "n_iter": len(hull.history),
            "adjusted_bags": adjusted,
        }
        return Solution(weights, intercept + shift, info)

    def _hull(self, vectors: _Vectors, choices: _Choices, upper: np.ndarray) -> _Hull:
        """Labellings enter until one changes little, or none would."""
        directions = vectors.directions(self.variance)
        # All weights equal, as in the source (1 / N; the scale does not matter to the search).
        hull = _Hull(vectors, upper, choices.searched(vectors, directions, (upper > 0).astype(np.float64))[0], _GAP)
        refined = 0  # the round whose weights are as good as they get
        while True:
            entered = len(hull.history)
            labelings, square = choices.searched(vectors, directions, hull.alpha)
            small = self.tol * hull.value
            known = bool((hull.labelings == labelings).all(axis=1).any())
            fell = entered == 1 or hull.history[-2] - hull.value > small
            hull.converged = known or not fell or hull.promise(square) <= small
            last = hull.converged or entered == self.max_iter
            if last and refined != entered and not hull.solved:  # nearly the best weights do for the search only
                refined = entered
                hull.improve()
                continue
            if self.verbose:
                say(f"round {entered}: objective {hull.value:.6g}, {(hull.mu > 0).sum()} labelings")
            if last:
                return hull
            hull.enter(labelings, square, _EARLY)


# ---------------------------------------------------------------------------------------------------- instances


class _Vectors:
    """Instances for a machine without a bias, by features F or their kernel matrix K; `intercept` as above."""

    def __init__(self, space: Space, intercept: str) -> None:
        self.space, self.constant = space, intercept == "constant"
        self.F: np.ndarray | None = None
        self._programs: Any = None
        self.mean: np.ndarray | None = None
        features = space.features
        narrow = space.linear and features.shape[1] <= features.shape[0]
        if narrow or (space.linear and not sp.issparse(features)):
            F = features.toarray() if sp.issparse(features) else features
            self.mean = F.mean(axis=0)
            self.centred = F - self.mean  # before any product, of which large means would take the digits
        if narrow:
            if self.constant:
                self.centred = np.column_stack([self.centred, np.ones(len(self.centred))])
            self.F, self._K = self.centred, None
            return
        if self.mean is not None:  # more columns than rows
            K = self.centred @ self.centred.T
        elif space.linear:
            K = (features @ features.T).toarray()
        else:
            assert space.gram is not None
            K = space.gram
        middle = K.mean(axis=0)
        self._K = np.ascontiguousarray(K - middle)
        self._K -= (middle - (middle.mean() + float(self.constant)))[:, None]

    def arrange(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Put the instances of every bag into an order that does not depend on that of the rows.

        Returns the keys they are sorted by, ascending in each bag, and the order. A key is a function of the instance
        and of all bags: how much it resembles those of bags with large shares, and how much all of them. Labellings of
        equal value are told apart by it, too, so that neither the order of rows nor rounding chooses among them.
        """
        share = np.repeat(problem.target - problem.target.mean(), problem.sizes)
        if self.F is not None:
            F = self.F / (np.abs(self.F).max() or 1.0)
            toward, among = F @ (share @ F), ((F @ (F.T @ F)) * F).sum(axis=1)
        else:
            K = self.K / (np.abs(self.K).max() or 1.0)
            toward, among = share @ K, np.square(K).sum(axis=1)
        key = 2 * toward / (np.abs(toward).max() or 1.0) + among / (among.max() or 1.0)
        key /= np.abs(key).max() or 1.0
        bag = np.repeat(np.arange(problem.n_bags), problem.sizes)
        self.order = np.lexsort((key, bag))
        if self.F is not None:
            self.F = np.ascontiguousarray(self.F[self.order])
        else:
            self._K = self.K.take(self.order, axis=0).take(self.order, axis=1)
        return key[self.order], self.order

    @property
    def K(self) -> np.ndarray:
        """The kernel matrix."""
        if self._K is None:
            assert self.F is not None
            self._K = self.F @ self.F.T
        return self._K

    def inner(self, V: np.ndarray) -> np.ndarray:
        """Σ_i V_ti k(x_i, ·) at all instances."""
        return V @ self._K if self.F is None else (V @ self.F) @ self.F.T

    def squares(self, V: np.ndarray) -> np.ndarray:
        """‖Σ_i V_ti φ(x_i)‖²."""
        if self.F is None:
            return np.asarray(np.einsum("tn,tn->t", V, V @ self._K))
        return np.asarray(np.square(V @ self.F).sum(axis=1))

    @property
    def has_matrix(self) -> bool:
        """Whether programs are over the kernel matrix."""
        return self.F is None or len(self.F) <= _MATRIX

    @property
    def programs(self) -> Any:
        """Programs over the kernel matrix."""
        if self._programs is None:
            self._programs = _core.bags.LabelledPrograms(self.K)
        return self._programs

    def block(self, Y: np.ndarray, mu: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The matrix of a program, of some instances."""
        if not self.has_matrix:
            assert self.F is not None
            return np.asarray(((Y[:, rows].T * mu) @ Y[:, rows]) * (self.F[rows] @ self.F[rows].T))
        Q = np.empty((len(rows), len(rows)))
        self.programs.block(Y, mu, rows, Q)
        return Q

    def directions(self, variance: float) -> np.ndarray:
        """Coordinates of instances along axes, shape (n_axes, n)."""
        if self.F is not None:
            return np.ascontiguousarray(self.F.T)
        values, axes = eigh(self.K, driver="evd", check_finite=False)
        values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
        values[values < len(values) * np.finfo(np.float64).eps * values[0]] = 0.0
        kept = 1 + int(np.searchsorted(np.cumsum(values), variance * values.sum() * (1 - 1e-12)))
        return np.ascontiguousarray((axes[:, :kept] * np.sqrt(values[:kept])).T)

    def machine(
        self, Y: np.ndarray, mu: np.ndarray, upper: np.ndarray, alpha: np.ndarray, tol: float
    ) -> tuple[np.ndarray, float]:
        """argmax_α for labellings Y with weights μ, from a first α; and a value not below the maximum."""
        alpha, slope = np.minimum(alpha, upper), np.empty(len(upper))
        used = mu > 0
        Y, mu = Y[used], mu[used]
        if self.has_matrix:
            return alpha, self.programs.ascend(Y, mu, upper, alpha, slope, tol, _SWEEPS)
        assert self.F is not None
        U = np.concatenate([(np.sqrt(m) * y)[:, None] * self.F for m, y in zip(mu, Y, strict=True)], axis=1)
        return alpha, _core.bags.ascend_rows(U, upper, alpha, slope, tol, _SWEEPS)

    def function(self, coefficients: np.ndarray) -> tuple[np.ndarray, float]:
        """Σ_i c_i ⟨φ(x_i), φ(x)⟩ as weights and an intercept over what the space holds, instances in its order."""
        constant = float(coefficients.sum()) if self.constant else 0.0
        arranged, coefficients = coefficients, np.empty_like(coefficients)
        coefficients[self.order] = arranged
        if self.mean is not None:
            w = (coefficients @ self.centred)[: len(self.mean)]
            return w, constant - float(w @ self.mean)
        weights = coefficients - coefficients.mean()  # Σ_i c_i (φ(x_i) − m), m the mean
        weights = np.asarray(self.space.features.T @ weights) if self.space.linear else weights
        return weights, constant - float(self.space.scores(weights).mean())


# ---------------------------------------------------------------------------------------------------- labellings


@dataclass(frozen=True)
class _Choices:
    """The set Y: how many of the instances of each bag that have no label may be positive."""

    offsets: np.ndarray
    least: np.ndarray
    most: np.ndarray
    known: np.ndarray
    adjusted: np.ndarray
    key: np.ndarray  # of instances, see `_Vectors.arrange`
    threads: int = 1

    @classmethod
    def of(cls, problem: Problem, epsilon: float, threads: int = 1) -> _Choices:
        """Counts within epsilon of the shares; the nearest to them where there is none."""
        starts, v = problem.offsets[:-1], problem.row_weight[: problem.n_inside]
        if (np.minimum.reduceat(v, starts) != np.maximum.reduceat(v, starts)).any():
            raise ValueError(
                "ConvexProportionSVM counts rows: those of one bag must have equal row_weight"
                " (AlternatingProportionSVM and InverseCalibration take any)"
            )
        sizes = problem.sizes
        fewest = np.add.reduceat((problem.known > 0).astype(np.int64), starts)
        greatest = sizes - np.add.reduceat((problem.known < 0).astype(np.int64), starts)
        least = np.maximum(np.ceil(sizes * (problem.low - epsilon) - _SLACK), fewest)
        most = np.minimum(np.floor(sizes * (problem.high + epsilon) + _SLACK), greatest)
        adjusted = least > most
        low, high = sizes * problem.low, sizes * problem.high
        below, above = (np.clip(m, fewest, greatest) for m in (np.floor(low), np.ceil(high)))
        off_below, off_above = (np.maximum(np.maximum(low - m, m - high), 0.0) for m in (below, above))
        least = np.where(adjusted, np.where(off_below <= off_above + _SLACK, below, above), least)
        most = np.where(adjusted, np.where(off_above <= off_below + _SLACK, above, below), most)
        free = (least - fewest).astype(np.int64), (most - fewest).astype(np.int64)
        return cls(problem.offsets, *free, problem.known, adjusted, np.zeros(problem.n), threads)

    def best(self, scores: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """For each row of scores the y ∈ Y with the largest Σ_i α_i s_i y_i, bag by bag."""
        Y = np.empty(scores.shape, np.int8)
        scores = np.ascontiguousarray(scores)
        _core.bags.label_bags(scores, alpha, self.offsets, self.least, self.most, self.known, Y, self.threads)
        return Y

    def searched(self, vectors: _Vectors, directions: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, float]:
        """A labelling with large ‖Σ_i α_i y_i φ(x_i)‖², and that.

        ‖·‖_∞ in place of ‖·‖₂ makes it exact, axis by axis. From the best axes ascent goes on with ‖·‖₂²: a convex
        function is at least as large at the maximiser of its tangent.
        """
        Y = self._along_axes(directions, alpha)
        if vectors.has_matrix:
            scores, squares = vectors.inner(Y * alpha), np.empty(len(Y))
            bags = self.offsets, self.least, self.most, self.known
            vectors.programs.raise_labellings(scores, Y, alpha, *bags, squares, _ASCENTS, self.threads)
            return self._largest(Y, squares)
        for _ in range(_ASCENTS):
            risen = self.best(vectors.inner(Y * alpha), alpha)
            if np.array_equal(risen, Y):
                break
            first = {row.tobytes(): at for at, row in enumerate(risen)}  # several starts may end in one labelling
            Y = risen[sorted(first.values())]
        return self._largest(Y, vectors.squares(Y * alpha))

    def _largest(self, Y: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, float]:
        """The labelling of the largest square; of equal ones, as −y often is, that with the largest Σ_i y_i key_i."""
        equal = np.flatnonzero(squares >= squares.max() - _SAME * abs(squares.max()))
        chosen = equal[(Y[equal] @ self.key).argmax()]
        return Y[chosen], float(squares[chosen])

    def _along_axes(self, directions: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """The labellings with the largest Σ_i α_i s_i y_i among the best ones of all axes s, in both directions."""
        most = np.abs(directions) @ alpha  # of any labelling, whatever the bags
        order = np.argsort(-most, kind="stable")
        Y, along = np.zeros((0, len(alpha)), np.int8), np.zeros(0)
        for start in range(0, len(order), _STARTS):
            if len(along) and most[order[start]] < along[-1]:
                break
            axes = directions[order[start : start + _STARTS]]
            both = np.concatenate([axes, -axes])
            # Columns with few values would leave it to the order of the rows which of equal ones are positive.
            labelings = self.best(both + _TILT * np.abs(both).max(axis=1, keepdims=True) * self.key, alpha)
            Y, along = (
                np.concatenate([Y, labelings]),
                np.concatenate([along, np.einsum("tn,tn->t", labelings * alpha, both)]),
            )
            largest = np.argsort(-along, kind="stable")[:_STARTS]
            Y, along = Y[largest], along[largest]
        return Y


# ---------------------------------------------------------------------------------------------------- weights


class _Hull:
    """Active labellings, the best weights μ for them, and an α that is best for these.

    Newton's method on S(μ), whose slopes are −½ q_t(α) for the best α. Where α_F are strictly between their bounds, its
    second derivatives are H_tF Q_FF⁻¹ H_sFᵀ with H_t = Q_t α, rows of what Q_t = y_t y_tᵀ ∘ K and Q = Σ_t μ_t Q_t hold.

    Where that stops (S has kinks if K is singular), the level method goes on: each α that was best for some μ gives a
    cut, S(μ) ≥ Σα − ½ Σ_t μ_t q_t(α), which holds for all μ. The least value of all cuts together is a linear program,
    and its dual variables mix the α into one that is best for the best μ. The next μ is the nearest to the best so far
    at which no cut is above a level between the two bounds.
    """

    def __init__(self, vectors: _Vectors, upper: np.ndarray, first: np.ndarray, tol: float) -> None:
        self.vectors, self.upper, self.tol = vectors, upper, tol
        self.labelings, self.mu = first[None], np.ones(1)
        self.alphas: list[np.ndarray] = []  # that were best for some μ
        self.value, self.bound = np.inf, 0.0  # of the optimum, from above, S(μ), and from below
        self.alpha = self.best = np.zeros(len(upper))  # the α of the bound from below; and that of μ
        self.squares = np.zeros(1)  # q_t of the first of them
        self.H = np.zeros((1, len(upper)))  # Q_t α for that, a row for each t
        self.history: list[float] = []
        self.converged = False
        self._evaluate(self.mu, self.alpha)
        self.history.append(self.value)

    def enter(self, labeling: np.ndarray, square: float, evaluations: int = _LEVELS) -> None:
        """One more labelling, with its q(α); those of no weight go. After few evaluations weights can be better."""
        kept = self.mu > 0
        share = _FIRST if len(self.mu) == 1 else max(0.7 * self.mu[-1], 0.002)  # about the weight that the last one got
        self.labelings = np.concatenate([self.labelings[kept], labeling[None]])
        self.mu = np.append(self.mu[kept], 0.0)
        self.squares = np.append(self.squares[kept], square)
        self.H = np.concatenate([self.H[kept], self.vectors.inner((self.best * labeling)[None]) * labeling])
        self.bound = float(self.alpha.sum() - self.squares.max() / 2)
        self.history.append(self.value)
        before, mu, alpha = self.value, self.mu, self.best
        while self.value >= before and share > 1e-4:  # at 0 the slope of S is steep, and its second derivative no guide
            self._evaluate(_on_simplex((1 - share) * mu + share * (np.arange(len(mu)) == len(mu) - 1)), alpha, False)
            share, evaluations = share / 5, evaluations - 1
        self.improve(evaluations)

    @property
    def gap(self) -> float:
        """How far the value may be above the optimum."""
        return max(0.0, self.value - self.bound)

    @property
    def solved(self) -> bool:
        """Whether the weights are the best, within the tolerance."""
        return self.gap <= self.tol * self.value

    def promise(self, square: float) -> float:
        """How much the objective can fall at most, if no labelling has a larger q(α) than this."""
        return self.value - float(self.alpha.sum() - square / 2)

    def improve(self, evaluations: int = _LEVELS) -> None:
        """Better weights, until the bounds meet."""
        if not self.solved:
            self._by_newton(evaluations)
        if not self.solved and evaluations > _EARLY:
            self._by_levels()
        self.alphas = self.alphas[-_CUTS:]
        self.history[-1] = self.value

    def _evaluate(self, mu: np.ndarray, start: np.ndarray, exact: bool = True) -> None:
        """The best α and S(μ); both are kept if they are the best so far, and the α as a cut."""
        # If not exact, then to a part of the gap of the weights, which is all that an evaluation can close.
        tol = self.tol / 4 if exact else float(np.clip(_PART * self.gap / max(self.value, 1e-300), self.tol / 4, 0.01))
        alpha, value = self.vectors.machine(self.labelings, mu, self.upper, start, tol)
        H = self.vectors.inner(alpha * self.labelings) * self.labelings
        self.alphas.append(alpha)
        if value < self.value:
            self.value, self.mu, self.best, self.H = value, mu, alpha, H
        self._bound_below(alpha, H @ alpha)

    def _bound_below(self, alpha: np.ndarray, squares: np.ndarray) -> None:
        """Keep the best multiple of α if it gives a larger bound; ``squares`` are its q_t."""
        used = alpha > 0
        if not used.any():
            return
        total, largest = float(alpha.sum()), float(squares.max())
        room = float((self.upper[used] / alpha[used]).min())
        scale = min(room, total / largest) if largest > 0 else room
        bound = scale * total - scale * scale * largest / 2
        if bound > self.bound:
            self.alpha, self.squares, self.bound = scale * alpha, scale * scale * squares, bound

    def _by_newton(self, evaluations: int) -> None:
        """Steps on the weights while they lower S(μ)."""
        for _ in range(min(evaluations, _NEWTON)):
            step = self._newton_step()
            if step is None:
                return
            mu, change, alpha, moved, t = step
            before = self.value
            while True:
                self._evaluate(_on_simplex(mu + t * change), np.clip(alpha + t * moved, 0.0, self.upper), False)
                evaluations -= 1
                if self.solved or evaluations <= 0:
                    return
                if self.value < before:
                    break
                t = 1.0 if t > 1 else 0.3 * t
                if t < 0.02:
                    return

    def _newton_step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float] | None:
        """μ and its change, α and its change to first order, and how far to go; None where there is no such step."""
        alpha, mu = self.best, self.mu
        free = np.flatnonzero((alpha > 0) & (alpha < self.upper))
        if not 0 < len(free) <= _FREE:
            return None
        H, q = self.H, self.H @ alpha
        Q = self.vectors.block(self.labelings, mu, free)
        Q.flat[:: len(Q) + 1] += 1e-6 * Q.diagonal().mean() + 1e-300
        crossing = H[:, free]
        _, Z, failed = dposv(Q, crossing.T, lower=1)
        if failed:
            return None
        change = _simplex_program(crossing @ Z, q / 2, mu) - mu
        if not np.isfinite(change).all() or float(q @ change) <= 0 or float(mu @ q) <= 0:
            return None
        moved = np.zeros(len(alpha))
        moved[free] = -(Z @ change)
        # A labelling of small weight has q ~ (c + μ)⁻², which is 0 for a tangent long before it is small enough.
        ratio = max(float(q.max() / (mu @ q)), 1 + 1e-9)
        falling = change < 0
        most = 0.9 * float((mu[falling] / -change[falling]).min())
        return mu, change, alpha, moved, max(1.0, min(2 * (np.sqrt(ratio) - 1) / (1 - 1 / ratio), most))

    def _by_levels(self) -> None:
        """Cuts until the bounds meet."""
        squares = np.zeros((0, len(self.mu)))  # q_t(α_s), a row for each α
        for step in range(_LEVELS + 1):
            new = [self.vectors.squares(alpha * self.labelings) for alpha in self.alphas[len(squares) :]]
            squares, alphas = np.concatenate([squares, new]), np.array(self.alphas)
            sums = alphas.sum(axis=1)
            mixed = np.clip(_best_mix(sums, squares) @ alphas, 0.0, self.upper)
            self._bound_below(mixed, self.vectors.squares(mixed * self.labelings))
            if len(self.mu) == 1 or self.solved or step == _LEVELS:
                return
            level = self.bound + _LEVEL * self.gap
            self._evaluate(_nearest_below(level, sums, squares, self.mu), self.alphas[-1])


def _on_simplex(mu: np.ndarray) -> np.ndarray:
    """μ without what is below rounding."""
    mu = np.where(mu > 1e-9, mu, 0.0)
    return np.asarray(mu / mu.sum())


def _simplex_program(H: np.ndarray, slope: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The ν of the simplex with the least ½ (ν − μ)ᵀH(ν − μ) − slopeᵀ(ν − μ)."""
    H = H + (1e-10 * np.trace(H) / len(mu) + 1e-300) * np.eye(len(mu))
    return _on_simplex(simplex_qp(H, slope + H @ mu, 1.0, mu))


def _best_mix(sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """λ ≥ 0 with sum 1 and the largest min_t Σ_s λ_s (Σα_s − ½ q_t(α_s)): the dual of the program over cuts."""
    mix = np.empty(len(sums))
    _core.bags.mix_rows(sums[:, None] - squares / 2, mix)
    return mix


def _nearest_below(level: float, sums: np.ndarray, squares: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The point of the simplex next to μ at which no cut is above the level.

    A least-distance program: min ‖z‖ with Gz ≥ h has z = −r_z / r_h, r the residual of min_{u ≥ 0} ‖[G h]ᵀu − (0, 1)‖.
    """
    T = len(mu)
    size = np.linalg.norm(squares / 2, axis=1) + 1e-300
    G = np.concatenate([np.eye(T), squares / 2 / size[:, None], np.ones((1, T)), -np.ones((1, T))])
    h = np.concatenate([-mu, (sums - level - squares @ mu / 2) / size, [0.0, 0.0]])
    E, f = np.column_stack([G, h]).T, np.append(np.zeros(T), 1.0)
    r = E @ nnls(E, f)[0] - f
    return _on_simplex(mu - r[:T] / r[T] if r[T] != 0 else mu)


# ---------------------------------------------------------------------------------------------------- decoding


def _rank_one(labelings: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Real labels y with yyᵀ next to Σ_t μ_t y_t y_tᵀ."""
    scaled = np.sqrt(mu)[:, None] * labelings
    _, vectors = np.linalg.eigh(scaled @ scaled.T)
    return np.asarray(vectors[:, -1] @ scaled)


def _oriented(scores: np.ndarray, problem: Problem, guess: float = 1.0) -> tuple[float, float]:
    """The sign of f, and what to add to it.

    The sign is that with the lower error of proportions at the threshold 0. Thresholds of their own would make both
    signs fit where all bags have equal shares; they only settle ties. Where nothing does, it is the sign of ``guess``.
    """
    scores, problem = labelled_alone(scores, problem)
    at_zero = [share_error(problem, problem.shares(sign * scores > 0)) for sign in (1.0, -1.0)]
    best, shifts = zip(*[share_threshold(sign * scores, problem) for sign in (1.0, -1.0)], strict=True)
    errors = best if abs(at_zero[0] - at_zero[1]) <= 1e-9 else at_zero
    if abs(errors[0] - errors[1]) <= 1e-9:
        warn_caller(
            "both orientations of the classes agree equally well with the proportions: which is which is a guess",
            IllPosedWarning,
        )
        errors = (0.0, 1.0) if guess >= 0 else (1.0, 0.0)
    return (1.0, shifts[0]) if errors[0] <= errors[1] else (-1.0, shifts[1])
