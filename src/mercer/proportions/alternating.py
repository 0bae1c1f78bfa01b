"""Support vector machines with hidden labels: alternate between classifier and labels, from many starts (alter-∝SVM).

    min over y ∈ {−1, +1}ⁿ, w, b   ½ ‖w‖² + C' Σ_i max(0, 1 − y_i (⟨w, φ(x_i)⟩ + b)) + C Σ_k c_k L(p_k(y), ȳ_k)

p_k(y) is the share of positive instances of bag k, L the distance to the known share (to the interval, if bounds are
known) or its square, and known labels are fixed. For given labels this is a support vector machine. For a given
classifier the best labels are found exactly, bag by bag (see `assign_labels`). Alternation lowers the objective until
it converges. The problem is not convex: C' grows from almost 0 to its value, so that the shares decide first, and the
best of several starts is kept. At the end, single labels are changed and pairs exchanged as long as the objective
decreases.
"""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._progress import say
from mercer._state.saved import Fields, Objects
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning, IllPosedWarning
from mercer.kernel_methods.base import check_rate
from mercer.proportions._base import Problem, ProportionEstimator, Solution, Space, warn_of_one_class
from mercer.proportions._starts import NAMED_STARTS, named_solution
from mercer.proportions.assignment import PROPORTION_LOSSES, assigned, neighbours

__all__ = ["AlternatingProportionSVM"]

_FIRM = 1e9  # ratio at which labels follow the shares, whatever the scores
_STEPS = 1_000_000  # of the machine, in one call
_RISING = 1e-9  # Σ_k c_k (ȳ_k − ȳ) p_k above which predicted shares rise with known ones
STARTS = ("random", *NAMED_STARTS)
INFORMED = ("inverse-calibration", "mean-map")


class AlternatingProportionSVM(ProportionEstimator):
    """A support vector machine that learns from class shares of bags by alternating optimisation (alter-∝SVM).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of proportions, per bag.
    C_instance : float, default=1.0
        Weight of the hinge loss of every instance once annealing has ended (C* in the literature).
    kernel : Kernel or "precomputed", optional
        Default: linear, on the features themselves, at linear cost.
    map : transformer, optional
        A feature map, such as those of `mercer.maps`, instead of a kernel.
    loss : {"absolute", "squared"}, default="absolute"
        Loss of a bag: the distance of its share of positive labels to the known share (or interval), or its square.
    annealing : bool, "auto" or "mixed", default="auto"
        Increase the weight of instances from ``start`` · ``C_instance`` by the factor 1 + ``step`` at a time. Without
        annealing, the weight is always ``C_instance``, and the result stays near the start. "auto": only for random
        starts. "mixed": for every second random start. Annealing fits the shares first, so it misses optima that
        violate them. "mixed" finds these, which may be worse classifiers: with a small ``C`` the optimum can be one
        class for all rows.
    step : float, default=0.5
    start : float, default=1e-5
    n_init : int, default=10
        Number of random starts, if there are any.
    init : {"auto", "random", "inverse-calibration", "mean-map", "convex"}, array, or list, default="auto"
        Initial labels. "random" is ``n_init`` starts; another name is one start, at the labels of `InverseCalibration`,
        `MeanMap` or `ConvexProportionSVM` with default parameters. An array has a label for each row, or a score
        (positive for the second class; with several classes a column of scores for each). Every entry of a list is
        tried. "auto" is inverse calibration and the mean map, each only if its predicted shares rise with the known
        shares of the training bags. If neither does (equal shares, misleading bag means), it is "random".
    tol : float, default=1e-4
        Alternation stops when the objective falls by less than this share. Support vector machines are solved to a
        duality gap of this share of ½ ‖w‖² (ten times as much during annealing).
    max_iter : int, default=100
        Maximum number of alternations at each weight.
    max_swaps : int, default=100
        Maximum number of neighbouring labellings of the best start to try, with one label changed or two labels of a
        bag exchanged. Labellings with the lowest cost under the current function come first. 0 for none.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; starts run in parallel. Results do not depend on it.
    verbose : int, default=0
        Print the objective of each start.

    Attributes
    ----------
    bag_error_, constant_bag_error_, majority_bag_error_ : float
        Mean absolute errors of shares on the training bags: of the predictions, of the best constant share for all
        bags, and of the most frequent class for all rows. A `ConstantAnswerWarning` is raised if the first is not below
        the second.
    classes_ : ndarray
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Without a kernel.
    intercept_ : ndarray of shape (1 or n_classes,)
    dual_coef_, support_, support_objects_ :
        With a kernel: coefficients, the rows that have them, and these objects.
    labels_ : ndarray of shape (n_rows,), or of bool and shape (n_rows, n_classes)
        The hidden labels of the training rows in the best solution. With several classes: the positive rows of each
        class against the rest. A row in several bags has the label of most of its memberships.
    objective_ : float
        Objective of the best start.
    objectives_ : ndarray of shape (n_starts,)
    history_ : ndarray of shape (n_alternations, 3)
        Number of the start, weight of instances and objective of every alternation.
    n_iter_ : int
        Number of alternations of the best start.

    With several classes the last four are lists, with one entry for each class against the rest.

    Notes
    -----
    The smallest objective is not the best classifier when bags are large: with shares of large bags many separations
    fit almost equally well, and random starts find the wrong ones. So random starts are not the default, although they
    reach lower objectives. Compare starts and parameters by the error on held-out bags (`BagCV`).

    Only the bounds of shares exclude equal labels for all rows, which have objective 0 if allowed: with bounds like
    (0.3, 0.7) for one bag of all rows this is maximum-margin clustering.

    References
    ----------
    .. [Yu2013] F. X. Yu, D. Liu, S. Kumar, T. Jebara and S.-F. Chang. ∝SVM for learning with label proportions. ICML,
       2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import AlternatingProportionSVM, make_bags
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 2)) + 3.0 * y[:, None]
    >>> bags = make_bags(y, 10, random_state=0)  # 20 bags with the share of ones in each
    >>> model = AlternatingProportionSVM(C=10.0, n_init=3, random_state=0).fit(X, bags=bags)
    >>> model.score(X, y) > 0.95
    True
    """

    saved = ProportionEstimator.saved | Fields(
        labels_=Objects(), objective_=Objects(), objectives_=Objects(), history_=Objects(), n_iter_=Objects()
    )

    def __init__(
        self,
        C: float = 1.0,
        C_instance: float = 1.0,
        *,
        kernel: Any = None,
        map: Any = None,
        loss: str = "absolute",
        annealing: bool | str = "auto",
        step: float = 0.5,
        start: float = 1e-5,
        n_init: int = 10,
        init: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        max_swaps: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.C_instance = C_instance
        self.kernel = kernel
        self.map = map
        self.loss = loss
        self.annealing = annealing
        self.step = step
        self.start = start
        self.n_init = n_init
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.max_swaps = max_swaps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_positive("C_instance", self.C_instance)
        check_choice("loss", self.loss, PROPORTION_LOSSES)
        check_choice("annealing", self.annealing, ("auto", "mixed", True, False))
        check_positive("step", self.step)
        check_rate("start", self.start)
        check_count("n_init", self.n_init)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_count("max_swaps", self.max_swaps, 0)
        entries = _entries(self.init)
        if not entries:
            raise ValueError("init must not be an empty list")
        for entry in entries:
            if isinstance(entry, str):
                check_choice("init", entry, ("auto", *STARTS) if len(entries) == 1 else STARTS)

    # ------------------------------------------------------------------ learning

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        only = warn_of_one_class(problem)
        if only:
            return self._constant(space, problem, only)
        if problem.reversible and all(isinstance(entry, str) for entry in _entries(self.init)):
            message = "the shares are the same with the classes exchanged: which is which is a guess"
            warn_caller(message, IllPosedWarning)
        starts = self._starts(space, problem, random)
        space = _cheaper(space)
        threads = thread_count(self.n_jobs)
        stop = threading.Event()
        inner = threads if len(starts) == 1 else 1
        runs = each(
            lambda k: self._run(space, problem, starts[k], k, inner, stop), range(len(starts)), threads, stop=stop
        )
        best = runs[int(np.argmin([run.objective for run in runs]))]  # the first of equal ones
        self._swap(machine_of(space), problem, best, threads, stop)
        if not best.converged:
            message = f"the best start still improved after max_iter={self.max_iter} alternations; increase max_iter"
            warn_caller(message, ConvergenceWarning)
        info = {
            "labels": best.labels,
            "objective": best.objective,
            "objectives": np.array([run.objective for run in runs]),
            "history": np.array([(k, *entry) for k, run in enumerate(runs) for entry in run.history]),
            "n_iter": len(best.history),
        }
        return Solution(best.weights, best.intercept, info)

    @staticmethod
    def _constant(space: Space, problem: Problem, label: int) -> Solution:
        width = problem.n if space.gram is not None else space.features.shape[1]
        info = {
            "labels": np.full(problem.n, label, np.int8), "objective": 0.0, "objectives": np.zeros(1),
            "history": np.zeros((0, 3)), "n_iter": 0,
        }  # fmt: skip
        return Solution(np.zeros(width), float(label), info)

    # ------------------------------------------------------------------ starts

    def _starts(self, space: Space, problem: Problem, random: np.random.RandomState) -> list[_Start]:
        """Labels to start with, known ones in place, and whether to anneal from there."""
        if problem.known.all():
            return [_Start(problem.known, False)]
        entries = _entries(self.init)
        if len(entries) == 1 and isinstance(entries[0], str) and entries[0] == "auto":
            starts = self._informed(space, problem, random)
            if starts:
                return starts
            entries = ["random"]
        starts = []
        for entry in entries:
            if isinstance(entry, str) and entry == "random":
                draws = [2 * random.randint(0, 2, problem.n) - 1 for _ in range(self.n_init)]
                labels = [np.where(problem.known != 0, problem.known, draw).astype(np.int8) for draw in draws]
                period = 2 if self.annealing == "mixed" else 1  # of those that are annealed
                starts += [_Start(y, bool(self.annealing) and at % period == 0) for at, y in enumerate(labels)]
            else:
                named = isinstance(entry, str)
                scores = _named(entry, space, problem, random) if named else self._given(entry, problem)
                chosen = assigned(scores, problem, _FIRM, self.loss)[0] if named else _labels(scores, problem)
                starts.append(_Start(chosen, self.annealing is True))
        return starts

    def _informed(self, space: Space, problem: Problem, random: np.random.RandomState) -> list[_Start]:
        """Starts at the labels of learners from means of bags, where the shares they predict rise with the known ones.

        Equal shares tell them nothing, and bags whose means mislead have them predict small shares where large ones are
        known: then there is no such start.
        """
        starts = []
        away = problem.bag_weight * (problem.target - np.average(problem.target, weights=problem.bag_weight))
        for name in INFORMED:
            with warnings.catch_warnings():  # that shares say too little for this learner is seen by what it predicts
                warnings.simplefilter("ignore", IllPosedWarning)
                scores = _named(name, space, problem, random)
            if float(away @ problem.shares(scores > 0)) > _RISING:
                starts.append(_Start(assigned(scores, problem, _FIRM, self.loss)[0], self.annealing is True))
        return starts

    def _given(self, entry: Any, problem: Problem) -> np.ndarray:
        """Scores of instances from an array over rows."""
        values = np.asarray(entry)
        n, classes = int(problem.rows.max()) + 1, len(self.classes_)
        wide = (n, classes) if classes > 2 else (n,)
        if values.ndim == 1 and len(values) == n and np.isin(values, self.classes_).all():
            return np.where(values == self.classes_[problem.positive], 1.0, -1.0)[problem.rows]
        if values.shape != wide or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"init must hold a label, or finite scores of shape {wide}, for every row")
        return np.asarray(values if values.ndim == 1 else values[:, problem.positive], np.float64)[problem.rows]

    # ------------------------------------------------------------------ one start

    def _weights(self) -> list[float]:
        """Weights of instances while annealing, ascending, the last one C_instance."""
        steps = max(1, math.ceil(round(-math.log(self.start) / math.log1p(self.step), 9)))
        grown = [self.start * (1 + self.step) ** k * self.C_instance for k in range(1, steps)]
        return [*grown, self.C_instance]

    def _run(
        self, space: Space, problem: Problem, start: _Start, number: int, threads: int, stop: threading.Event
    ) -> _Run:
        machine, run = machine_of(space), _Run(start.labels)
        weights = self._weights() if start.annealed else [self.C_instance]
        for weight in weights:
            tol = self.tol if weight is weights[-1] else 10 * self.tol
            run.objective = math.inf
            self._alternate(machine, problem, run, run.labels, weight, tol, threads, stop)
        if self.verbose:
            say(f"start {number}: objective {run.objective:.6g} after {len(run.history)} alternations")
        return run

    def _alternate(
        self,
        machine: Any,
        problem: Problem,
        run: _Run,
        labels: np.ndarray,
        weight: float,
        tol: float,
        threads: int,
        stop: threading.Event,
    ) -> bool:
        """Machine and labels in turn from ``labels`` at one weight; whether that lowered the objective of the run."""
        before, upper = run.objective, np.full(problem.n, weight)
        run.converged = False
        for _ in range(self.max_iter):
            if stop.is_set():
                break
            intercept, square, *_ = machine.solve(labels, upper, tol, _STEPS)
            scores = machine.scores()
            best, cost, _ = assigned(scores, problem, self.C / weight, self.loss, labels, threads=threads)
            objective = 0.5 * square + weight * cost
            run.converged = (
                objective >= run.objective * (1 - self.tol) or objective == 0 or np.array_equal(best, labels)
            )
            if objective < run.objective:  # machines are solved to a tolerance: what they lose is not taken
                labels = run.labels = best
                run.objective, run.weights, run.intercept = objective, machine.weights(), intercept
                run.scores = scores
                run.history.append((weight, objective))
            if run.converged:
                break
        return run.objective < before

    def _swap(self, machine: Any, problem: Problem, run: _Run, threads: int, stop: threading.Event) -> None:
        """Try labellings next to that of the run, those of least cost to its machine first."""
        left = self.max_swaps
        improved = True
        while improved and left > 0:
            improved = False
            settled, ratio = run.converged, self.C / self.C_instance
            for labels in neighbours(run.scores, run.labels, problem, ratio, self.loss, left):
                left -= 1
                improved = self._alternate(machine, problem, run, labels, self.C_instance, self.tol, threads, stop)
                if improved or stop.is_set():
                    break
            else:
                run.converged = settled  # of what is kept, not of the last trial

    # ------------------------------------------------------------------ results

    def _keep_solutions(self, X: Any, rows: np.ndarray, solutions: list[Solution]) -> None:
        super()._keep_solutions(X, rows, solutions)
        votes = np.zeros((int(rows.max()) + 1, len(solutions)))
        np.add.at(votes, rows, np.array([solution.info["labels"] for solution in solutions]).T)
        self.labels_ = votes > 0
        if len(solutions) == 1:
            self.labels_ = self.classes_[self.labels_[:, 0].astype(np.intp)]


@dataclass(frozen=True)
class _Start:
    """Labels to start with, and whether to anneal from there."""

    labels: np.ndarray
    annealed: bool


@dataclass
class _Run:
    """Where a start has got to."""

    labels: np.ndarray
    objective: float = math.inf
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    converged: bool = False
    history: list[tuple[float, float]] = field(default_factory=list)


def _entries(init: Any) -> list[Any]:
    """The starts of ``init``: a list holds several where its entries are names or arrays."""
    several = isinstance(init, (list, tuple)) and all(isinstance(e, str) or np.ndim(e) > 0 for e in init)
    if several and (not init or any(np.ndim(e) > 0 or e in STARTS for e in init)):
        return list(init)
    return [init]


def _named(name: str, space: Space, problem: Problem, random: np.random.RandomState) -> np.ndarray:
    """Scores of another learner."""
    solution = named_solution(name, space, problem, random)
    return space.scores(solution.weights, solution.intercept)


def _labels(scores: np.ndarray, problem: Problem) -> np.ndarray:
    return np.where(problem.known != 0, problem.known, np.where(scores > 0, 1, -1)).astype(np.int8)


def _cheaper(space: Space) -> Space:
    """Few instances with many features are solved over their kernel matrix; the space then has both."""
    if space.gram is not None:
        return Space(gram=np.ascontiguousarray(space.gram, np.float64))
    n, d = space.features.shape
    if n > 3000 or d <= 100:
        return space
    K = space.features @ space.features.T
    return Space(space.features, np.ascontiguousarray(K.toarray() if sp.issparse(K) else K))


def machine_of(space: Space) -> Any:
    """Return the classifier for a space with features, a kernel matrix, or both."""
    X, K = space.features, space.gram
    if X is None:
        assert K is not None
        return _core.machines.KernelMachine(K)
    if not sp.issparse(X):
        rows = _core.linear.Rows(np.ascontiguousarray(X))
    else:
        X = X if X.has_sorted_indices and X.has_canonical_format else X.copy()
        X.sum_duplicates()
        rows = _core.linear.Rows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1], False)
    return _core.machines.LinearMachine(rows) if K is None else _TwoWays(X, rows, K)


class _TwoWays:
    """A linear machine solved by pairs of instances as long as that takes few steps, and then by Newton's method."""

    _FEW = 10_000

    def __init__(self, X: Any, rows: Any, K: np.ndarray) -> None:
        self.X, self.rows = X, rows
        self.machine: Any = _core.machines.KernelMachine(K)
        self.by_pairs = True

    def solve(self, labels: np.ndarray, upper: np.ndarray, tol: float, max_iter: int) -> tuple[Any, ...]:
        """See the machines."""
        if self.by_pairs:
            solved = self.machine.solve(labels, upper, tol, min(max_iter, self._FEW))
            if solved[-1]:
                return tuple(solved)
            self.machine, self.by_pairs = _core.machines.LinearMachine(self.rows), False
        return tuple(self.machine.solve(labels, upper, tol, max_iter))

    def scores(self) -> np.ndarray:
        """f of every instance."""
        return np.asarray(self.machine.scores())

    def weights(self) -> np.ndarray:
        """w."""
        multipliers = self.machine.weights()
        return np.asarray(self.X.T @ multipliers).ravel() if self.by_pairs else np.asarray(multipliers)
