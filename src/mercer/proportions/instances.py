"""Labels of bags instead of proportions: a positive bag has at least one positive row, a negative bag none.

With f(x) = ⟨w, φ(x)⟩ + b, both methods minimise ½‖w‖² + C Σ hinge(y_i f(x_i)),

    mi   over all rows: y_i = −1 in negative bags, y_i free in positive bags, with at least one +1 in each of these
    MI   over all rows of negative bags and one row of each positive bag, the witness: the row with the largest f

in alternation: the classifier for fixed labels (or witnesses), then the best labels (or witnesses) for the classifier.
Neither step raises the objective, so the alternation ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from mercer._progress import say
from mercer._state.saved import Fields, Objects, Optional
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.data.bags import Bags, missing_values, plain_values
from mercer.exceptions import ConvergenceWarning
from mercer.proportions._base import Problem, ProportionEstimator, Solution, Space
from mercer.proportions.alternating import machine_of

__all__ = ["MultipleInstanceSVM"]

MODES = ("mi", "MI")
_STEPS = 100_000  # most steps of a machine


class MultipleInstanceSVM(ProportionEstimator):
    """mi-SVM and MI-SVM: rows in bags, one label for each bag.

    Parameters
    ----------
    mode : {"mi", "MI"}, default="mi"
        ``"mi"`` infers the label of every row of positive bags, ``"MI"`` one witness in each positive bag.
    C : float, default=1.0
        Weight of the hinge loss of a row. Rows of a bag of weight v get C · v.
    kernel : Kernel, "precomputed" or None
        Default: linear.
    map : transformer, optional
        Makes features of rows; with a kernel, the objects that it compares.
    class_weight : dict, "balanced" or None
        Factors on C by class; if a class is learned against several others, their factors are averaged. ``"balanced"``
        counts the rows in use, in every alternation.
    max_iter : int, default=50
        Maximum number of alternations.
    tol : float, default=1e-3
        Tolerance of a support vector machine.
    n_jobs : int, optional
        Threads of the kernel.
    verbose : int, default=0
        Print the objective of every alternation.

    Attributes
    ----------
    classes_, coef_, intercept_, dual_coef_, support_, support_objects_
        The function, by features or over training objects; positive for ``classes_[1]``.
    history_ : ndarray
        The objective after each alternation. Without ``class_weight`` it does not rise, up to ``tol``.
    n_iter_ : int
        Number of alternations.
    witnesses_ : ndarray of int64
        The member (row and bag, in the order of `Bags`) with the largest output in each positive bag.

    Notes
    -----
    ``"mi"`` converges to a local minimum. It has two starts: all rows of positive bags as positive [Andrews2002]_, and
    the signs of a classifier of the means of positive bags. The smaller objective is kept.

    All rows of a negative bag are negative. If labels of bags are noisy, or positive bags have many positive rows,
    learn from proportions (`AlternatingProportionSVM`).

    References
    ----------
    .. [Andrews2002] S. Andrews, I. Tsochantaridis and T. Hofmann. Support vector machines for multiple-instance
       learning. NIPS, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import MultipleInstanceSVM
    >>> rng = np.random.default_rng(0)
    >>> X, bags = rng.normal(size=(120, 2)), np.repeat(np.arange(20), 6)
    >>> X[:60:6] += 6.0                                        # one positive row in each of the first ten bags
    >>> labels = ["with"] * 10 + ["without"] * 10
    >>> model = MultipleInstanceSVM().fit(X, bags=bags, labels=[label == "with" for label in labels])
    >>> int(model.predict(X).sum()), model.predict_bags(X, bags).tolist() == [True] * 10 + [False] * 10
    (10, True)
    """

    saved = ProportionEstimator.saved | Fields(history_=Objects(), n_iter_=Objects(), witnesses_=Optional(Objects()))

    def __init__(
        self,
        mode: str = "mi",
        C: float = 1.0,
        *,
        kernel: Any = None,
        map: Any = None,
        class_weight: Any = None,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.mode = mode
        self.C = C
        self.kernel = kernel
        self.map = map
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("mode", self.mode, MODES)
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)

    # ------------------------------------------------------------------ learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        bags: Any = None,
        labels: Any = None,
        proportions: Any = None,
        bag_weight: Any = None,
    ) -> MultipleInstanceSVM:
        """Learn from rows, their bags and a label for each bag.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d); with a kernel any collection of n objects
        y : array of n labels, optional
            Fixed labels of some rows; None or NaN if unknown. Without bags every row needs a label, and the result is
            an ordinary support vector machine.
        bags : array of n values, array of (row, bag) pairs, or Bags
            See `Bags`.
        labels : array of n_bags labels, dict or Series
            The label of each bag: arrays in the sorted order of bags, others by name. With two labels, the second in
            sorted order is positive; with more, each class is learned against the rest.
        proportions : as in `Bags`
            Alternative to labels: a bag is positive if its share is above 0.
        bag_weight : array of shape (n_bags,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        if labels is not None:
            if proportions is not None:
                raise ValueError("give labels of bags or proportions, not both")
            if bags is None:
                raise ValueError("labels are of bags: pass bags=, the bag of every row")
            bags = _labelled(bags, labels)
        return super().fit(X, y, bags=bags, proportions=proportions, bag_weight=bag_weight)

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        problem = problem.single_bags()
        positive = problem.target > 0
        if positive.all() or not positive.any():
            sign = "positive" if positive.all() else "negative"
            raise ValueError(f"{type(self).__name__} needs at least 2 classes: all {problem.n_bags} bags are {sign}")
        turns = _Turns(self, space, problem, positive)
        return turns.run()

    # ------------------------------------------------------------------ bags

    def bag_scores(self, X: Any, bags: Any) -> np.ndarray:
        """Return the largest output in each bag.

        Parameters
        ----------
        X : as in `fit`
        bags : array of n values, pairs (row, bag), or Bags

        Returns
        -------
        ndarray of shape (n_bags,) for two classes; or (n_bags, n_classes)
            Bags are sorted by name.
        """
        scores = self.decision_function(X)
        made = bags if isinstance(bags, Bags) else Bags(bags, n_rows=len(scores))
        if made.n_rows != len(scores):
            raise ValueError(f"bags has {made.n_rows} rows, but X has {len(scores)}")
        return np.asarray(np.maximum.reduceat(scores[made.members], made.offsets[:-1], axis=0))

    def predict_bags(self, X: Any, bags: Any) -> np.ndarray:
        """Return the label of each bag: positive if any of its rows is.

        Parameters
        ----------
        X : as in `fit`
        bags : array of n values, pairs (row, bag), or Bags

        Returns
        -------
        ndarray of shape (n_bags,)
            Bags are sorted by name.
        """
        scores = self.bag_scores(X, bags)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


class _Turns:
    """The turns of one problem of two classes."""

    def __init__(self, model: MultipleInstanceSVM, space: Space, problem: Problem, positive: np.ndarray) -> None:
        self.model, self.space, self.problem = model, space, problem
        self.weight = np.repeat(problem.bag_weight, problem.sizes)
        self.bag = np.repeat(np.arange(problem.n_bags), problem.sizes)
        self.positive = positive
        self.inside = positive[self.bag]  # instances of positive bags
        self.machine = machine_of(space)
        self.best: tuple[float, np.ndarray, float] | None = None  # objective, weights, intercept
        self.history: list[float] = []

    def run(self) -> Solution:
        """Turns until labels (or witnesses) repeat; for mi from two starts, of which the smaller objective is kept."""
        starts = [self._from(self._witnesses(self._from_means()))] if self.model.mode == "MI" else self._row_labels()
        _, weights, intercept, history, repeated = min(starts, key=lambda start: start[0])
        if not repeated:
            warn_caller(f"labels still changed after max_iter={self.model.max_iter} turns", ConvergenceWarning)
        info = {
            "history": np.array(history),
            "n_iter": len(history),
            "witnesses": self._largest(self.space.scores(weights, intercept)),
        }
        return Solution(weights, intercept, info)

    def _row_labels(self) -> list[tuple[float, np.ndarray, float, list[float], bool]]:
        """What mi comes to from all rows of positive bags as positive, and from the signs of the machine of means.

        The turns end at the next local minimum, and by which start it is lower nobody can say before. Under weights
        that follow the labels objectives do not compare: then there is the first alone.
        """
        y = np.where(self.problem.known != 0, self.problem.known, np.where(self.inside, 1, -1))
        starts = [self._from((np.arange(self.problem.n), y))]
        if self.model.class_weight is None and (self.problem.known == 0).any():
            starts.append(self._from(self._relabelled(self._from_means())))
        return starts

    def _from(self, state: tuple[np.ndarray, np.ndarray]) -> tuple[float, np.ndarray, float, list[float], bool]:
        """Turns from labels: objective, weights, intercept, objectives of all turns, and whether they ended."""
        model, repeated = self.model, False
        self.best, self.history = None, []
        used, y = state
        scores = self._machine(used, y)
        seen = {(used.tobytes(), y.tobytes())}
        for turn in range(1, model.max_iter + 1):
            used, y = self._relabelled(scores) if model.mode == "mi" else self._witnesses(scores)
            key = (used.tobytes(), y.tobytes())
            repeated = key in seen
            if repeated or turn == model.max_iter:
                break
            seen.add(key)
            scores = self._machine(used, y)
        assert self.best is not None
        return (*self.best, self.history, repeated)

    def _largest(self, scores: np.ndarray) -> np.ndarray:
        """The instance with the largest output in each positive bag; not one that is known to be negative."""
        scores = np.where(self.problem.known < 0, -np.inf, scores)
        order = np.lexsort((-scores, self.bag))
        return np.asarray(order[self.problem.offsets[:-1]][self.positive])

    def _relabelled(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best labels for a machine: signs, and one positive at least in each positive bag."""
        y = np.where(self.inside & (scores > 0), 1, -1)
        y = np.where(self.problem.known != 0, self.problem.known, y)
        starts = self.problem.offsets[:-1]
        lacking = np.maximum.reduceat(y, starts)[self.positive] < 0
        forced = self._largest(scores)[lacking]
        y[forced[self.problem.known[forced] == 0]] = 1
        return np.arange(self.problem.n), y

    def _witnesses(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of negative bags and the witnesses of positive ones; rows with labels always."""
        y = np.where(self.problem.known != 0, self.problem.known, np.where(self.inside, 0, -1))
        witnesses = self._largest(scores)
        y[witnesses[self.problem.known[witnesses] == 0]] = 1
        used = np.flatnonzero(y)
        return used, y[used]

    def _factors(self, y: np.ndarray) -> np.ndarray:
        """Factors of the classes −1 and +1, for each of y."""
        given = self.model.class_weight
        if isinstance(given, Mapping):
            names = self.model.classes_.tolist()
            unknown = [name for name in given if name not in names]
            if unknown:
                raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes {names}")
            factors = [given.get(name, 1.0) for name in names]
            own = factors.pop(self.problem.positive)
            given = {-1: float(np.mean(factors)), 1: own}
        return np.asarray(compute_class_weight(given, classes=np.array([-1, 1]), y=y)[(y > 0).astype(int)])

    def _machine(self, used: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Learn from some instances, keep the machine if it is the best, and return its output on all."""
        counted = self.weight[used] > 0  # the solver leaves the others out, and numbers what is left
        used, y = used[counted], y[counted]
        if len(np.unique(y)) < 2:
            which = "positive" if (y > 0).any() else "negative"
            raise ValueError(f"all rows that count are {which}: bag_weight or the labels in y leave one class only")
        upper, signs = np.zeros(self.problem.n), np.ones(self.problem.n, np.int8)
        upper[used], signs[used] = self.model.C * self.weight[used] * self._factors(y), y
        intercept, norm = self._solved(self.machine, signs, upper)
        weights, scores = np.asarray(self.machine.weights()), np.asarray(self.machine.scores())
        objective = norm / 2 + float(upper @ np.maximum(0.0, 1 - signs * scores))
        self.history.append(objective)
        if self.model.verbose:
            say(f"turn {len(self.history)}: objective {objective:.6g}, {(y > 0).sum()} positive")
        # With class weights that follow the labels, objectives of turns do not compare: the last machine is kept.
        if self.best is None or self.model.class_weight is not None or objective <= self.best[0]:
            self.best = (objective, weights, intercept)
        return scores

    def _solved(self, machine: Any, signs: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
        """Intercept and ‖w‖² of a machine, which begins where it ended last."""
        intercept, square, *_ = machine.solve(signs, upper, 0.1 * self.model.tol, _STEPS)
        return float(intercept), float(square)

    def _from_means(self) -> np.ndarray:
        """Output of the machine with the means of positive bags in place of witnesses, where MI begins."""
        problem = self.problem
        negative = np.flatnonzero(~self.inside)
        average = sp.csr_matrix(
            ((1.0 / problem.sizes)[self.bag], (self.bag, np.arange(problem.n))), shape=(problem.n_bags, problem.n)
        )[np.flatnonzero(self.positive)]
        take = sp.vstack([average, sp.eye(problem.n, format="csr")[negative]]).tocsr()
        y = np.repeat([1, -1], [average.shape[0], len(negative)])
        weight = np.concatenate([problem.bag_weight[self.positive], self.weight[negative]])
        # Few means against many rows: with equal weights the machine would call everything negative.
        counted = weight > 0
        take, y, weight = take[counted], y[counted], weight[counted]
        if len(np.unique(y)) < 2:
            raise ValueError("bag_weight is 0 for all positive bags, or for all negative ones")
        upper = self.model.C * weight * compute_class_weight("balanced", classes=np.array([-1, 1]), y=y)[(y > 0) * 1]
        if self.space.linear:
            machine = machine_of(Space(take @ self.space.features))
        else:
            machine = machine_of(Space(gram=np.ascontiguousarray(take @ self.space.gram @ take.T)))
        intercept, _ = self._solved(machine, y.astype(np.int8), upper)
        weights = np.asarray(machine.weights())
        return self.space.scores(weights if self.space.linear else take.T @ weights, intercept)


# ---------------------------------------------------------------------------------------------------- labels of bags


def _labelled(bags: Any, labels: Any) -> Bags:
    """Bags with shares 0 and 1 that stand for labels."""
    made = bags if isinstance(bags, Bags) else Bags(bags)
    names = made.names.tolist()
    if not isinstance(labels, Mapping) and hasattr(labels, "index") and not isinstance(labels, (list, tuple)):
        labels = dict(zip(labels.index.tolist(), np.asarray(labels).tolist(), strict=True))  # pandas
    if isinstance(labels, Mapping):
        unknown = [name for name in labels if name not in set(names)]
        lacking = [name for name in names if name not in labels]
        if unknown:
            raise ValueError(f"labels names bag {unknown[0]!r}, which has no rows")
        if lacking:
            raise ValueError(f"labels has no entry for bag {lacking[0]!r}")
        labels = [labels[name] for name in names]
    values = plain_values(labels, "labels")
    if values.shape != (len(names),):
        raise ValueError(f"labels must hold one label for each of the {len(names)} bags, got shape {values.shape}")
    if missing_values(values).any():
        raise ValueError(f"the label of bag {names[int(missing_values(values).argmax())]!r} is missing")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"MultipleInstanceSVM needs at least 2 classes, labels has {len(classes)} class(es)")
    shares = np.eye(len(classes))[codes]
    return Bags(made, shares, classes=classes)
