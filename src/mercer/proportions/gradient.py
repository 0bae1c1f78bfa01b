"""Empirical proportion risk minimisation by gradients: any differentiable scorer, several classes.

    minimise  α/2 ‖w‖² + 1/n ( Σ_k u_k L(p̄_k, ȳ_k) − Σ_{i known} v_i log p_i,y_i ),      n = Σ_k u_k + Σ_{i known} v_i
    p_i = softmax f(x_i; w),     p̄_k = Σ_{i ∈ B_k} v_i p_i / Σ_{i ∈ B_k} v_i

    log         L = Σ_c ȳ_c log(ȳ_c / p̄_c)           cross-entropy minus its minimum over p̄
    squared     L = ½ Σ_c (p̄_c − ȳ_c)²               two classes: the square of the difference of shares
    absolute    L = ½ Σ_c |p̄_c − ȳ_c|                two classes: the difference of shares

With bounds low ≤ ȳ ≤ high, the loss is 0 if p̄ satisfies them, and otherwise the loss to the nearest shares within
them. u are the weights of bags, v those of rows. The problem is not convex: it is solved from several starts, and the
best solution is kept.
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils import check_random_state

from mercer._progress import say
from mercer._state.saved import Count, Fields, Floats, Number, Objects, Optional, outputs
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer._warnings import warn_caller
from mercer.data.bags import Bags
from mercer.exceptions import ConvergenceWarning, IllPosedWarning
from mercer.learning.training import check_tol
from mercer.proportions._base import ProportionEstimator, Solution, Space
from mercer.proportions._scorers import Linear, is_module, resolve_scorer, size_of
from mercer.proportions._starts import NAMED_STARTS, named_solution

__all__ = ["ProportionClassifier"]

LOSSES = ("log", "squared", "absolute")
INITS = ("random", *NAMED_STARTS)
_LEAST = 1e-300  # shares in a logarithm
_CORNER = 1e-3  # where the absolute loss is rounded off


# ---------------------------------------------------------------------------------------------------- losses of shares


def nearest_by_divergence(q: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Within the bounds, the shares t with the least Σ t log(t / q): clip(λ q, low, high), with λ such that they sum
    to 1 (found by bisection; the sum grows with λ)."""
    a, b = np.zeros((len(q), 1)), np.ones((len(q), 1))
    grows = np.clip(b * q, low, high).sum(axis=1, keepdims=True) < 1
    for _ in range(60):  # 2⁶⁰ is above any ratio of a bound to a share that matters
        if not grows.any():
            break
        b = np.where(grows, 2 * b, b)
        grows = np.clip(b * q, low, high).sum(axis=1, keepdims=True) < 1 - 1e-12
    for _ in range(60):
        middle = 0.5 * (a + b)
        above = np.clip(middle * q, low, high).sum(axis=1, keepdims=True) > 1
        a, b = np.where(above, a, middle), np.where(above, middle, b)
    t = np.clip(0.5 * (a + b) * q, low, high)
    return np.asarray(t / t.sum(axis=1, keepdims=True))


def share_loss(kind: str, q: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of predicted shares q, shape (m, n_classes), for each bag, and its derivative in q."""
    if kind == "log":
        exact = low is high
        t = low if exact else nearest_by_divergence(q, low, high)
        safe = np.maximum(q, _LEAST)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(t > 0, t * (np.log(np.where(t > 0, t, 1.0)) - np.log(safe)), 0.0)
        # Inside its bounds t is q, and a change of q along the simplex changes nothing: −t/q = −1 for all classes.
        return np.maximum(terms.sum(axis=1), 0.0), -t / safe
    off = q - np.clip(q, low, high)
    if kind == "squared":
        return 0.5 * (off**2).sum(axis=1), off
    size = np.abs(off)
    inside = size < _CORNER
    value = np.where(inside, 0.5 * size**2 / _CORNER, size - 0.5 * _CORNER)
    return 0.5 * value.sum(axis=1), 0.5 * np.where(inside, off / _CORNER, np.sign(off))


# ---------------------------------------------------------------------------------------------------- the objective


@dataclass(frozen=True)
class Shares:
    """The given information: bounds on the shares of bags, labels of instances. Instances without a bag come last."""

    n_classes: int
    offsets: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bag_weight: np.ndarray
    row_weight: np.ndarray
    codes: np.ndarray  # −1 where unknown

    @property
    def n_outputs(self) -> int:
        """Scores of an instance: one for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.offsets) - 1

    @property
    def n_items(self) -> int:
        """Bags, and labelled instances without a bag."""
        return self.n_bags + len(self.codes) - int(self.offsets[-1])

    def select(self, items: np.ndarray) -> tuple[Shares, np.ndarray]:
        """Return some of the items (bags first, then instances without one), and their instances."""
        bags, alone = items[items < self.n_bags], items[items >= self.n_bags] - self.n_bags + self.offsets[-1]
        parts = [np.arange(self.offsets[k], self.offsets[k + 1]) for k in bags]
        rows = np.concatenate([*parts, alone]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        low = self.low[bags]
        high = low if self.high is self.low else self.high[bags]
        chosen = Shares(
            self.n_classes, offsets, low, high, self.bag_weight[bags], self.row_weight[rows], self.codes[rows]
        )
        return chosen, rows


def probabilities(F: np.ndarray) -> np.ndarray:
    """Softmax of the scores of all classes, or of 0 and the one score of the second of two; shape (n, n_classes)."""
    if F.shape[1] == 1:
        positive = expit(F[:, 0])
        return np.column_stack([expit(-F[:, 0]), positive])
    P = np.exp(F - F.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))


class Objective:
    """The risk (without the penalty) as a function of the scores of all instances."""

    def __init__(self, shares: Shares, loss: str) -> None:
        self.shares, self.loss = shares, loss
        sizes = np.diff(shares.offsets)
        inside, number = int(shares.offsets[-1]), np.repeat(np.arange(shares.n_bags), sizes)
        v = shares.row_weight[:inside]
        total = np.bincount(number, v, minlength=shares.n_bags)
        entries = (v / total[number], (number, np.arange(inside)))
        self.average = sp.csr_matrix(entries, shape=(shares.n_bags, len(shares.codes)))
        self.spread = self.average.T.tocsr()
        self.labelled = np.flatnonzero(shares.codes >= 0)
        self.label_weight = shares.row_weight[self.labelled]
        self.n = float(shares.bag_weight.sum() + self.label_weight.sum())

    def __call__(self, F: np.ndarray) -> tuple[float, np.ndarray]:
        """The risk and its gradient in the scores F."""
        P = probabilities(F)
        q = np.asarray(self.average @ P)
        values, slopes = share_loss(self.loss, q, self.shares.low, self.shares.high)
        value = float(self.shares.bag_weight @ values)
        at = self.labelled
        label, weight = self.shares.codes[at], self.label_weight
        value -= float(weight @ _log_probability(F[at], label))
        S = np.asarray(self.spread @ (slopes * self.shares.bag_weight[:, None]))
        if F.shape[1] == 1:
            G = ((S[:, 1] - S[:, 0]) * P[:, 0] * P[:, 1])[:, None]
            G[at, 0] += weight * (P[at, 1] - label)
        else:
            G = P * (S - np.einsum("ij,ij->i", S, P)[:, None])
            G[at] += weight[:, None] * P[at]
            G[at, label] -= weight
        return value / self.n, G / self.n


def _log_probability(F: np.ndarray, label: np.ndarray) -> np.ndarray:
    if F.shape[1] == 1:
        return -np.logaddexp(0.0, np.where(label == 1, -F[:, 0], F[:, 0]))
    shifted = F - F.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(shifted[np.arange(len(F)), label] - np.log(np.exp(shifted).sum(axis=1)))


# ---------------------------------------------------------------------------------------------------- one start


@dataclass
class Run:
    """The result of one start: weights (or a module), and its objectives."""

    w: Any = None
    objective: float = np.inf
    score: float = np.inf
    history: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    waited: int = 0

    def keep(self, w: Any, objective: float, held: float | None, enough: float) -> None:
        """Record an iteration; keep the weights if they are the best, by held-out bags if there are any."""
        self.n_iter += 1
        self.history.append(objective)
        if held is not None:
            self.held_out.append(held)
        score = objective if held is None else held
        self.waited = 0 if score < self.score - enough else self.waited + 1
        if score < self.score or self.w is None:
            self.w, self.objective, self.score = w, objective, score


@dataclass(frozen=True)
class Task:
    """A scorer to train on features, and held-out items."""

    scorer: Any
    X: Any
    risk: Objective
    alpha: float
    held_X: Any = None
    held: Objective | None = None

    @property
    def n_outputs(self) -> int:
        """Scores of an instance."""
        return self.risk.shares.n_outputs

    def decay(self) -> np.ndarray:
        """The penalty of each weight."""
        return self.alpha * np.asarray(self.scorer.decay(self.X.shape[1], self.n_outputs), np.float64)

    def value_and_gradient(self, w: np.ndarray, decay: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient."""
        value, G = self.risk(self.scorer.scores(w, self.X, self.n_outputs))
        slope = np.asarray(self.scorer.gradient(w, self.X, G), np.float64)
        return value + 0.5 * float(decay @ w**2), slope + decay * w

    def held_out(self, w: np.ndarray) -> float | None:
        """The risk on held-out items."""
        return None if self.held is None else self.held(self.scorer.scores(w, self.held_X, self.n_outputs))[0]


def descend(
    task: Task, w: np.ndarray, max_iter: int, tol: float, patience: int, stop: threading.Event, shown: Any
) -> Run:
    """Run L-BFGS from w; an interrupt ends it and sets ``stop``."""
    run, decay = Run(), task.decay()

    def after(intermediate_result: Any) -> None:
        w = intermediate_result.x.copy()
        run.keep(w, float(intermediate_result.fun), task.held_out(w), tol)
        shown(run)
        if stop.is_set() or (task.held is not None and run.waited >= patience):
            raise StopIteration

    try:
        options = {"maxiter": max_iter, "maxfun": 10 * max_iter + 20, "gtol": tol, "ftol": 1e-3 * tol}
        solved = minimize(
            task.value_and_gradient, w, (decay,), jac=True, method="L-BFGS-B", callback=after, options=options
        )
        run.converged = solved.status != 1  # 1: out of iterations
        if run.w is None:  # the start is an optimum
            run.keep(solved.x, float(solved.fun), task.held_out(solved.x), tol)
    except KeyboardInterrupt:
        stop.set()
        if run.w is None:
            run.keep(w, task.value_and_gradient(w, decay)[0], task.held_out(w), tol)
    return run


def all_starts(train: Callable[[int], Run], n_init: int, n_jobs: int, stop: threading.Event) -> list[Run]:
    """Run from every start, in parallel threads; an interrupt ends all runs with their current results."""
    runs: dict[int, Run] = {}

    def one(number: int) -> None:
        if not stop.is_set():
            runs[number] = train(number)

    try:
        each(one, range(n_init), n_jobs, stop=stop)
    except KeyboardInterrupt:
        if not runs:
            raise
    return [runs[number] for number in sorted(runs)]


# ---------------------------------------------------------------------------------------------------- the estimator


class ProportionClassifier(ProportionEstimator):
    """Learn from class proportions by gradient: a model whose mean probabilities fit the shares of the bags.

    The predicted share of a bag is the (weighted) mean of softmax probabilities of its rows. Several classes are learnt
    jointly. The objective is not convex; it is solved from ``n_init`` starts.

    Parameters
    ----------
    loss : {"log", "squared", "absolute"}, default="log"
        Loss between predicted and given shares. Rows with labels always have the log loss.
    scorer : None, "linear", "mlp", torch.nn.Module or object, default=None
        The function of features. None is linear; ``"mlp"`` has a layer of 32 tanh units. A torch module takes rows and
        returns ``n_classes`` outputs (or one for two classes); the first start uses its weights, others call
        ``reset_parameters`` of its layers, and it needs ``pip install mercer[torch]``. Any other object has the methods
        ``start(n_features, n_outputs, scale, random)`` (an initial vector w), ``decay(n_features, n_outputs)`` (1 for
        each weight that is penalised, 0 for others), ``scores(w, X, n_outputs)`` and ``gradient(w, X, G)``, the
        gradient of Σ G ∘ scores.
    alpha : float, default=1e-3
        Weight of the penalty ‖w‖²/2; the loss is a mean over bags (and labelled rows), so alpha need not grow with
        their number.
    max_iter : int, default=200
        Steps of L-BFGS; passes over the bags for a module.
    tol : float, default=1e-6
        L-BFGS ends when the gradient is smaller; training of a module ends when ``patience`` passes gain less.
    batch : int, default=32
        Bags per step of a module.
    learning_rate : float, default=1e-3
        Learning rate of Adam, for a module.
    n_init : int, default=3
        Number of starts.
    init : {"random", "inverse-calibration", "mean-map", "convex"}, default="random"
        The first start of a linear scorer: small random weights, or the solution of `InverseCalibration`, `MeanMap` or
        `ConvexProportionSVM`. The other starts are random.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of the bags, stop when their loss has not fallen for ``patience`` iterations,
        and keep the weights with the lowest loss.
    validation_fraction : float, default=0.1
    patience : int, default=10
    kernel : Kernel, "precomputed" or None, default=None
        For a linear scorer in the space of a kernel.
    map : transformer, optional
        A map of `mercer.maps`, for linear cost with features of a kernel.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads for the starts; the result does not depend on them.
    verbose : int or bool, default=False
        Print the objective: 1 once for each start, 2 after each iteration.

    Attributes
    ----------
    bag_error_, constant_bag_error_, majority_bag_error_ : float
        Mean absolute errors of shares on the training bags: of the predictions, of the best constant share for all
        bags, and of the most frequent class for all rows. A `ConstantAnswerWarning` is raised if the first is not below
        the second.
    classes_ : ndarray of shape (n_classes,)
    coef_, intercept_ : ndarray
        For a linear scorer of features: shapes (1, d) and (1,) for two classes, else (n_classes, d) and (n_classes,).
    weights_ : ndarray
        Weights of any other scorer.
    scorer_ : object
        The scorer, or the trained module.
    objective_ : float
        Of the best start.
    best_start_ : int
    history_ : list of lists of float
        The objective after each iteration, for each start.
    held_out_history_ : list of lists of float
        The loss on held-out bags, likewise.
    n_iter_ : int
        Iterations of the best start.

    See Also
    --------
    AlternatingProportionSVM, ConvexProportionSVM : with a large margin.

    Notes
    -----
    Probabilities that equal the share of their bag have no loss. So with equal shares in all bags a constant is
    optimal, and an `IllPosedWarning` is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import ProportionClassifier, make_bags
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> X = np.eye(3)[y] * 3 + rng.normal(size=(600, 3))
    >>> bags = make_bags(y, 6, random_state=0)
    >>> model = ProportionClassifier(random_state=0).fit(X, bags=bags)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    saved = ProportionEstimator.saved | Fields(
        weights_=Optional(Floats(None)),
        objective_=Number(),
        best_start_=Count(),
        history_=Objects(),
        held_out_history_=Objects(),
        n_iter_=Count(),
    )

    def __init__(
        self,
        loss: str = "log",
        scorer: Any = None,
        *,
        alpha: float = 1e-3,
        max_iter: int = 200,
        tol: float = 1e-6,
        batch: int = 32,
        learning_rate: float = 1e-3,
        n_init: int = 3,
        init: str = "random",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        kernel: Any = None,
        map: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.scorer = scorer
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.batch = batch
        self.learning_rate = learning_rate
        self.n_init = n_init
        self.init = init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.kernel = kernel
        self.map = map
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        alpha = self.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0 <= alpha < np.inf:
            raise ValueError(f"alpha must be a number of at least 0, got {alpha!r}")
        for name in ("max_iter", "batch", "n_init", "patience"):
            check_count(name, getattr(self, name))
        check_tol(self.tol)
        check_positive("learning_rate", self.learning_rate)
        check_choice("init", self.init, INITS)
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise ValueError(f"early_stopping must be True or False, got {self.early_stopping!r}")
        share = self.validation_fraction
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise ValueError(f"validation_fraction must be a number between 0 and 1, got {share!r}")
        if is_module(self.scorer):
            linear = False
        else:
            linear = isinstance(resolve_scorer(self.scorer), Linear)
        if not linear and self.kernel is not None:
            raise ValueError("a kernel needs a linear scorer: leave scorer or kernel out")
        if not linear and self.init != "random":
            raise ValueError(f"init={self.init!r} is for a linear scorer")

    # ------------------------------------------------------------------ learning

    def fit(
        self, X: Any, y: Any = None, *, bags: Any = None, proportions: Any = None, bag_weight: Any = None
    ) -> ProportionClassifier:
        """Learn from rows, their bags and the shares of classes in the bags.

        Ctrl-C ends the training early: the model keeps the best weights so far, with a warning.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d); with a kernel any collection of n objects
        y : array of n labels, optional
            Labels of some rows; None or NaN if unknown. Without bags every row needs a label.
        bags : array of n values, array of (row, bag) pairs, or Bags
            See `Bags`. Rows without a bag must have a label.
        proportions : array of shape (n_bags,) or (n_bags, n_classes), dict, Series, DataFrame, or a pair (low, high)
            See `Bags`. Not needed where ``bags`` has them.
        bag_weight : array of shape (n_bags,), optional

        Returns
        -------
        self
        """
        X, made, codes, rows = self._prepared(X, y, bags, proportions, bag_weight)
        n_jobs = thread_count(self.n_jobs)
        space, random = self._space(X, rows), check_random_state(self.random_state)
        shares = self._shares(made, codes)
        self._warn_if_constant(shares)
        kept, held = self._split(shares, random)
        stop = threading.Event()
        if is_module(self.scorer):
            runs = self._train_module(space.features, shares, kept, held, random, n_jobs, stop)
        else:
            runs = self._train(space, shares, made, kept, held, random, n_jobs, stop)
        self._keep_best(X, rows, space, runs, stop)
        self._compare_with_constants(self._winners(self._outputs(space, runs[self.best_start_].w)), made)
        return self

    def _solve(self, space: Space, problem: Any, random: np.random.RandomState) -> Solution:
        """Two classes, with a linear scorer: as a start for other learners."""
        low = np.column_stack([1 - problem.high, problem.low])
        high = low if np.array_equal(problem.low, problem.high) else np.column_stack([1 - problem.low, problem.high])
        codes = np.where(problem.known == 0, -1, (problem.known > 0).astype(np.int64))
        shares = Shares(2, problem.offsets, low, high, problem.bag_weight, problem.row_weight, codes)
        stop = threading.Event()
        everything = np.arange(shares.n_items)
        runs = self._train(space, shares, None, everything, None, random, thread_count(self.n_jobs), stop)
        best = min(runs, key=lambda run: run.score)
        return Solution(space.weights_of(best.w[:-1]), float(best.w[-1]), {"objective": best.objective})

    def _shares(self, bags: Bags | None, codes: np.ndarray) -> Shares:
        k = len(self.classes_)
        if bags is None:
            none = np.zeros((0, k))
            return Shares(k, np.zeros(1, np.int64), none, none, np.zeros(0), np.ones(len(codes)), codes)
        assert bags.lower is not None
        assert bags.upper is not None
        weight = np.concatenate([bags.row_weight, np.ones(len(bags.alone))])
        return Shares(k, bags.offsets, bags.lower, bags.upper, bags.bag_weight, weight, codes)

    def _warn_if_constant(self, shares: Shares) -> None:
        if not shares.n_bags or (shares.codes >= 0).any() or (np.diff(shares.offsets) == 1).all():
            return
        # Shares that suit every bag: then a constant has no loss.
        if (shares.low.max(axis=0) <= shares.high.min(axis=0) + 1e-12).all():
            warn_caller(
                "the same shares suit all bags, so that predicting them for every row has no loss: the bags do not tell"
                " classes apart",
                IllPosedWarning,
            )

    def _split(self, shares: Shares, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray | None]:
        """The items to learn from, and those held out."""
        items = np.arange(shares.n_items)
        if not self.early_stopping:
            return items, None
        n = max(1, int(np.ceil(self.validation_fraction * len(items))))
        if n >= len(items):
            raise ValueError(f"early_stopping needs at least 2 bags, one to hold out, got {len(items)}")
        order = random.permutation(len(items))
        kept, held = np.sort(order[n:]), np.sort(order[:n])
        weight = np.concatenate([shares.bag_weight, np.ones(len(items) - shares.n_bags)])
        if not weight[kept].any() or not weight[held].any():
            raise ValueError("early_stopping: all bags held out, or all others, have weight 0; leave these bags out")
        return kept, held

    def _train(
        self,
        space: Space,
        shares: Shares,
        bags: Bags | None,
        kept: np.ndarray,
        held: np.ndarray | None,
        random: np.random.RandomState,
        n_jobs: int,
        stop: threading.Event,
    ) -> list[Run]:
        scorer = resolve_scorer(self.scorer)
        X = space.features if space.linear else space.coordinates()
        if held is None:
            task = Task(scorer, X, Objective(shares, self.loss), float(self.alpha))
        else:
            (own, rows), (other, out) = shares.select(kept), shares.select(held)
            task = Task(
                scorer, X[rows], Objective(own, self.loss), float(self.alpha), X[out], Objective(other, self.loss)
            )
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_init)
        size = size_of(X)
        first = self._first(space, shares, bags, random) if self.init != "random" else None

        def train(number: int) -> Run:
            if number == 0 and first is not None:
                w = first
            else:  # the first start is near 0, where the penalty is least; others look elsewhere
                scale = (0.01 if number == 0 else 2.0) / size
                w = scorer.start(X.shape[1], shares.n_outputs, scale, np.random.RandomState(seeds[number]))
                w = np.array(w, np.float64).ravel()
            run = descend(task, w, self.max_iter, float(self.tol), self.patience, stop, self._shown(number, 2))
            self._shown(number, 1)(run)
            return run

        return all_starts(train, self.n_init, n_jobs, stop)

    def _shown(self, number: int, level: int) -> Callable[[Run], None]:
        """What prints the state of a run, where ``verbose`` asks for it."""
        if int(self.verbose) < level:
            return lambda run: None

        def show(run: Run) -> None:
            at = run.history[-1] if level == 2 else run.objective
            rest = f", held out {run.held_out[-1] if level == 2 else run.score:.6g}" if run.held_out else ""
            say(f"start {number + 1} of {self.n_init}: iteration {run.n_iter}, objective {at:.6g}{rest}")

        return show

    def _first(self, space: Space, shares: Shares, bags: Bags | None, random: np.random.RandomState) -> np.ndarray:
        """Weights from another learner, one problem for each class."""
        which = [1] if shares.n_classes == 2 else range(shares.n_classes)
        W, b = [], []
        with warnings.catch_warnings():  # that bags do not suit the other learner is no matter here
            warnings.simplefilter("ignore")
            for c in which:
                solution = named_solution(self.init, space, self._problem(bags, shares.codes, c), random)
                W.append(solution.weights if space.linear else space.coordinates().T @ solution.weights)
                b.append(solution.intercept)
        return np.concatenate([np.array(W).T.ravel(), np.array(b, np.float64)])

    def _train_module(
        self,
        X: Any,
        shares: Shares,
        kept: np.ndarray,
        held: np.ndarray | None,
        random: np.random.RandomState,
        n_jobs: int,
        stop: threading.Event,
    ) -> list[Run]:
        from mercer.proportions._torch import Settings, train_module

        settings = Settings(
            self.loss, float(self.alpha), self.max_iter, float(self.tol), self.batch, self.learning_rate, self.patience
        )
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_init)
        runs: list[Run] = []
        for number in range(self.n_init):  # torch has threads of its own
            module = copy.deepcopy(self.scorer)
            run = train_module(
                module, X, shares, kept, held, int(seeds[number]), number > 0, settings, stop, self._shown(number, 2)
            )
            self._shown(number, 1)(run)
            runs.append(run)
            if stop.is_set():
                break
        return runs

    def _keep_best(self, X: Any, rows: np.ndarray, space: Space, runs: list[Run], stop: threading.Event) -> None:
        self.best_start_ = int(np.argmin([run.score for run in runs]))
        best = runs[self.best_start_]
        if not np.isfinite(best.objective):
            raise ValueError("the objective is not finite from any start: scale the features, or use a larger alpha")
        for name in ("coef_", "intercept_", "dual_coef_", "support_", "support_objects_", "weights_", "scorer_"):
            if hasattr(self, name):
                delattr(self, name)
        self.objective_, self.n_iter_ = best.objective, best.n_iter
        self.history_ = [run.history for run in runs]
        self.held_out_history_ = [run.held_out for run in runs]
        if is_module(self.scorer):
            self.scorer_ = best.w
        elif isinstance(resolve_scorer(self.scorer), Linear):
            outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
            W, b = best.w[:-outputs].reshape(-1, outputs), best.w[-outputs:]
            self._keep_solutions(X, rows, [Solution(space.weights_of(W[:, o]), float(b[o])) for o in range(outputs)])
        else:
            self.weights_ = best.w
        if stop.is_set():
            message = "training was interrupted: these are the best weights so far"
        elif not best.converged:
            message = f"training ended after max_iter={self.max_iter} iterations before it converged: raise max_iter"
        else:
            return
        warn_caller(message, ConvergenceWarning)

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of every row, or one for each row and class; `predict_proba` is their softmax.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,) for two classes, positive for ``classes_[1]``; or (n, n_classes)
        """
        if hasattr(self, "intercept_"):
            return super().decision_function(X)
        self._check_fitted()
        scores = self._scores(self._inputs(X, reset=False))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _outputs(self, space: Space, w: Any) -> np.ndarray:
        """Scores of the instances for the weights of a run, shape (n, n_outputs)."""
        if not hasattr(self, "intercept_"):
            return self._scores(space.features)
        W, b = w[: -len(self.intercept_)].reshape(-1, len(self.intercept_)), self.intercept_
        return np.column_stack([space.scores(space.weights_of(W[:, o]), float(b[o])) for o in range(len(b))])

    def _scores(self, F: Any) -> np.ndarray:
        """What the scorer, if it is not linear, makes of features, shape (n, n_outputs)."""
        if hasattr(self, "scorer_"):
            from mercer.proportions._torch import module_scores

            scores = module_scores(self.scorer_, F, len(self.classes_))
        else:
            outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
            scorer = resolve_scorer(self.scorer)
            if len(scorer.decay(F.shape[1], outputs)) != len(self.weights_):  # only maps of varying width get here
                raise ValueError(f"the map gave {F.shape[1]} features, which the scorer has no weights for")
            scores = scorer.scores(self.weights_, F, outputs)
        return np.asarray(scores)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for every row.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        scores = self.decision_function(X)
        return probabilities(scores[:, None] if scores.ndim == 1 else scores)

    def predict_proportions(self, X: Any, bags: Any, soft: bool = False) -> np.ndarray:
        """Return the predicted share of each class in each bag.

        Parameters
        ----------
        X : as in `fit`
        bags : array of n values, pairs (row, bag), or Bags
        soft : bool, default=False
            Return the mean of probabilities, the trained quantity, instead of the share of predicted labels, as all
            learners do.

        Returns
        -------
        ndarray of shape (n_bags,) with two classes, the share of ``classes_[1]``; or (n_bags, n_classes)
            Bags are sorted by name.
        """
        if not soft:
            return super().predict_proportions(X, bags)
        P = self.predict_proba(X)
        bags = bags if isinstance(bags, Bags) else Bags(bags, n_rows=len(P))
        if bags.n_rows != len(P):
            raise ValueError(f"bags has {bags.n_rows} rows, but X has {len(P)}")
        shares = bags.mean(P[bags.members])
        return shares[:, 1] if len(self.classes_) == 2 else shares

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objective_")

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        if not (self.scorer is None or isinstance(self.scorer, str)):
            name = type(self.scorer).__name__
            raise TypeError(f"a {name} as scorer cannot be written to a model file: reading would run its code")
        return super()._saved_params()

    def _check_state(self) -> None:
        self._check_parameters()
        if hasattr(self, "weights_"):
            if self.map is not None:
                self.map_ = self.map  # its width is not known here; the product with it is checked in use
            else:
                size = len(resolve_scorer(self.scorer).decay(self.n_features_in_, outputs(self)))
                if len(self.weights_) != size:
                    raise ValueError(f"expected {size} weights, found {len(self.weights_)}")
        else:
            super()._check_state()
