"""Code shared by learners from proportions: input checks, binary problems, prediction, model files.

A learner of two classes gets a `Problem` (bags, shares of the positive class, labels where known) and a `Space`
(features, or a kernel matrix, of the instances), and returns a `Solution`, f(x) = ⟨w, φ(x)⟩ + b. Several classes are
one problem for each class against the rest; the largest output wins. An instance is a membership, in the order of the
bags; labelled rows without a bag come last.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, solve_triangular
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mercer._explain import ScoreModel, ScoreRows
from mercer._linalg import pivoted_cholesky_of
from mercer._state.saved import Fields, Floats, Ints, LabelValues, Number, Optional, outputs
from mercer._validation import check_sparse, thread_count
from mercer._warnings import warn_caller
from mercer.data.bags import Bags, missing_values, plain_values
from mercer.exceptions import IllPosedWarning, PartError
from mercer.kernel_methods.base import KernelMethod, one_object
from mercer.kernel_methods.collections import count
from mercer.learning.partitioned import RowsInParts, n_examples, out_of_memory
from mercer.proportions.selection import constant_shares, majority_shares, proportion_risk, warn_if_no_better

__all__ = ["IllPosedWarning", "Problem", "ProportionEstimator", "Solution", "Space", "warn_of_one_class"]

_NEVER = -1e300  # the output for a class that no bag and no label allows
_EQUAL = 1e-10  # of the largest output of a row: those that differ by less are the same
_BAG_ERRORS = ("bag_error_", "constant_bag_error_", "majority_bag_error_")
_NULL = 1e-10  # of the largest eigenvalue: directions that the instances do not span


@dataclass(frozen=True)
class Problem:
    """Bags of instances of two classes.

    Attributes
    ----------
    offsets : int64, shape (n_bags + 1,)
        The instances of bag k are offsets[k] … offsets[k + 1] − 1; instances after the last bag have labels and no bag.
    target, low, high : shape (n_bags,)
        The share of positive instances (by ``row_weight``), and bounds on it.
    bag_weight : shape (n_bags,)
    row_weight : shape (n,)
    known : int8, shape (n,)
        +1 or −1 if the label is known, else 0.
    rows : shape (n,)
        The training row of each instance.
    positive : int
        The number of the positive class.
    """

    offsets: np.ndarray
    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bag_weight: np.ndarray
    row_weight: np.ndarray
    known: np.ndarray
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    positive: int = 1

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.known)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.offsets) - 1

    @property
    def n_inside(self) -> int:
        """Number of instances that are in bags."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> np.ndarray:
        """Instances in each bag."""
        return np.diff(self.offsets)

    def means(self, values: Any) -> np.ndarray:
        """Return means over the instances of each bag, by ``row_weight``; values has one entry per instance."""
        if self.n_bags == 0:
            return np.zeros((0, *values.shape[1:]))
        v = self.row_weight[: self.n_inside]
        total = np.add.reduceat(v, self.offsets[:-1])
        if values.ndim == 1:
            return np.asarray(np.add.reduceat(values[: self.n_inside] * v, self.offsets[:-1]) / total)
        rows = np.repeat(np.arange(self.n_bags), self.sizes)
        average = sp.csr_matrix((v / total[rows], (rows, np.arange(self.n_inside))), shape=(self.n_bags, self.n))
        averages = average @ values
        return np.asarray(averages.toarray() if sp.issparse(averages) else averages)

    def shares(self, positive: np.ndarray) -> np.ndarray:
        """Return the share of each bag, given the positive instances."""
        return self.means(np.asarray(positive, np.float64))

    @property
    def only_class(self) -> int:
        """Return −1 or 1 if shares and labels allow only this class, else 0."""
        if self.n_bags and (self.high <= 0).all() and not (self.known > 0).any():
            return -1
        if self.n_bags and (self.low >= 1).all() and not (self.known < 0).any():
            return 1
        return 0

    @property
    def reversible(self) -> bool:
        """Return whether shares and labels stay the same if the classes are exchanged."""
        return not self.known.any() and bool(np.allclose(self.low + self.high, 1.0, rtol=0, atol=1e-9))

    def single_bags(self) -> Problem:
        """Return the same problem with every labelled instance without a bag as a bag of one."""
        extra = self.n - self.n_inside
        if not extra:
            return self
        label = (self.known[self.n_inside :] > 0).astype(np.float64)
        return replace(
            self,
            offsets=np.concatenate([self.offsets, self.n_inside + 1 + np.arange(extra)]),
            target=np.concatenate([self.target, label]),
            low=np.concatenate([self.low, label]),
            high=np.concatenate([self.high, label]),
            bag_weight=np.concatenate([self.bag_weight, np.ones(extra)]),
        )


def warn_of_one_class(problem: Problem) -> int:
    """Return `Problem.only_class`, with a warning if it is not 0."""
    only = problem.only_class
    if only:
        which = "positive" if only > 0 else "negative"
        message = f"all bags hold {which} rows only: nothing tells the classes apart, and the classifier is constant"
        warn_caller(message, IllPosedWarning)
    return only


class Space:
    """Instances as features (linear), or by their kernel matrix."""

    def __init__(self, features: Any = None, gram: np.ndarray | None = None) -> None:
        self.features, self.gram = features, gram
        self._axes: np.ndarray | None = None
        self._factor: tuple[np.ndarray, np.ndarray] | None = None  # of pivots, and which they are
        self._coordinates: np.ndarray | None = None

    @property
    def linear(self) -> bool:
        """Return whether there are features."""
        return self.gram is None

    def coordinates(self) -> np.ndarray:
        """Return dense vectors (n, r) with the inner products of the space: features, or Z with K = ZZᵀ."""
        if self._coordinates is None:
            if self.gram is None:
                self._coordinates = self.features.toarray() if sp.issparse(self.features) else self.features
            else:
                self._coordinates = self._by_pivots()
                if self._coordinates is None:
                    self._coordinates = self._by_axes()
        return self._coordinates

    def _by_pivots(self) -> np.ndarray | None:
        """Z by Cholesky's method with pivots, a tenth of the work of eigenvectors; None where K has negative ones."""
        assert self.gram is not None
        K, largest = self.gram, float(self.gram.diagonal().max(initial=0.0))
        if not largest > 0:
            return None
        Z, pivots = pivoted_cholesky_of(K, _NULL * largest)
        if len(pivots) == 0:
            return None
        probe = np.cos(np.arange(len(K), dtype=np.float64))  # any vector sees what is missing
        if np.abs(K @ probe - Z @ (Z.T @ probe)).max() > 1e-7 * largest * len(K):
            return None
        self._factor = np.ascontiguousarray(Z[pivots]), pivots
        return Z

    def _by_axes(self) -> np.ndarray:
        """Z by eigenvectors with positive eigenvalues."""
        values, vectors = eigh(self.gram, driver="evd")
        kept = values > _NULL * max(float(values[-1]), 1e-300)
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
        self._axes = vectors / np.sqrt(values)
        return np.ascontiguousarray(vectors * np.sqrt(values))

    def weights_of(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of a `Solution` for ``w`` in `coordinates`: ``w``, or coefficients over instances."""
        if self.gram is None:
            return w
        self.coordinates()
        if self._factor is None:
            assert self._axes is not None
            return np.asarray(self._axes @ w)
        L, pivots = self._factor
        coefficients = np.zeros(len(self.gram))
        coefficients[pivots] = solve_triangular(L, w, trans=1, lower=True)
        return coefficients

    def scores(self, weights: np.ndarray, intercept: float = 0.0) -> np.ndarray:
        """Return f of every instance for the weights of a `Solution`."""
        return np.asarray((self.features if self.gram is None else self.gram) @ weights).ravel() + intercept


@dataclass(frozen=True)
class Solution:
    """f(x) = ⟨weights, x⟩ + intercept with features, Σ_i weights_i k(x_i, x) + intercept over instances with a kernel.

    ``info`` holds the fitted attributes of the estimator: key ``history`` becomes ``history_``, a list with several
    classes.
    """

    weights: np.ndarray
    intercept: float
    info: dict[str, Any] = field(default_factory=dict)


class _RowsOfBags:
    """The instances of a part, bag by bag, as rows of features."""

    def __init__(self, model: Any, width: int) -> None:
        self.model, self.width = model, width

    def __call__(self, part: Any, number: int) -> Any:
        if n_examples(part.X) == 0:
            return np.zeros((0, self.width))
        return self.model._inputs(part.X, reset=False)[part.y.members]


def _look_at_bags(part: Any, number: int, model: Any) -> dict[str, Any] | None:
    """What must be known of a part before its rows are multiplied; None where it is empty."""
    if n_examples(part.X) == 0:
        return None
    try:
        if not isinstance(part.y, Bags):
            raise TypeError(f"y must be Bags with proportions, got {type(part.y).__name__}")
        model = copy.copy(model)
        F = model._inputs(part.X, reset=True)
        bags = model._bags(count(part.X), None, part.y, None, None)
        if len(bags.alone):
            raise ValueError(f"row {bags.alone[0]} is in no bag: leave it out, or put it into one")
    except (TypeError, ValueError) as error:
        raise PartError(number, str(error)) from error
    except MemoryError as error:
        raise out_of_memory(number) from error
    columns = getattr(model, "feature_names_in_", None)
    return {
        "bags": bags, "width": int(F.shape[1]), "map": getattr(model, "map_", None),
        "columns": None if columns is None else columns.tolist(),
        "n_features_in": getattr(model, "n_features_in_", int(F.shape[1])),
    }  # fmt: skip


class ProportionEstimator(ClassifierMixin, KernelMethod):
    """A classifier that learns from the shares of classes in bags. Subclasses define `_check_parameters` and
    `_solve`.

    After training on bags, it has the mean absolute errors of shares on them: ``bag_error_`` of its predictions,
    ``constant_bag_error_`` of the best constant share, ``majority_bag_error_`` of the most frequent class for all rows.
    """

    _parts_reason = "the shares of all bags are met together, from the rows of all of them in memory"

    map: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    _warns_of_constants = True  # not where shares are bounds that nobody expects to be met
    saved = KernelMethod.saved | Fields(
        classes_=LabelValues(2),
        intercept_=Optional(Floats(outputs)),
        coef_=Optional(Floats(outputs, None)),
        support_=Optional(Ints(None)),
        dual_coef_=Optional(Floats(outputs, "support_")),
        **{name: Optional(Number()) for name in _BAG_ERRORS},
    )

    # ------------------------------------------------------------------ for subclasses

    def _check_parameters(self) -> None:
        """Raises ValueError for parameters out of range."""
        raise NotImplementedError

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        """Learn two classes."""
        raise NotImplementedError

    def _depends_on_units(self) -> bool:
        return self.kernel is None and self.map is None

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, *, bags: Any = None, proportions: Any = None, bag_weight: Any = None) -> Any:
        """Learn from rows, their bags and the shares of classes in the bags.

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
        return self._solved(X, made, codes, rows, self._space(X, rows))

    def _solved(self, X: Any, made: Bags | None, codes: np.ndarray, rows: np.ndarray, space: Space) -> Any:
        """Learn from instances in their space; X is needed with a kernel alone."""
        random = check_random_state(self.random_state)
        which = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        problems = [replace(self._problem(made, codes, c), rows=rows, positive=c) for c in which]
        solutions = [self._solve(space, problem, random) for problem in problems]
        if len(problems) > 1:  # outputs of different problems are compared: a class that is nowhere must not win
            for at, problem in enumerate(problems):
                if problem.only_class < 0:
                    weights = np.zeros_like(solutions[at].weights)
                    solutions[at] = replace(solutions[at], weights=weights, intercept=_NEVER)
        self._keep_solutions(X, rows, solutions)
        outputs = np.column_stack([space.scores(solution.weights, solution.intercept) for solution in solutions])
        self._compare_with_constants(self._winners(outputs), made)
        return self

    def _compare_with_constants(self, codes: np.ndarray, bags: Bags | None) -> None:
        """Set the errors of shares on the training bags; ``codes`` are the predicted classes of the instances."""
        for name in _BAG_ERRORS:
            if hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        if bags is None or not bags.bag_weight.any():
            return
        inside = codes[: len(bags.members), None] == np.arange(len(self.classes_))
        self.bag_error_ = proportion_risk(bags.mean(inside.astype(np.float64)), bags)
        self.constant_bag_error_ = proportion_risk(np.tile(constant_shares(bags), (len(bags), 1)), bags)
        self.majority_bag_error_ = proportion_risk(np.tile(majority_shares(bags), (len(bags), 1)), bags)
        if self._warns_of_constants:
            warn_if_no_better(self.bag_error_, self.constant_bag_error_, "training bags")

    def _winners(self, scores: np.ndarray) -> np.ndarray:
        """Numbers of the classes with the largest outputs, of shape (n, 1) for two classes."""
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(np.intp)
        # Rows of other classes are often at one output exactly: rounding must not choose among these.
        largest = scores.max(axis=1, keepdims=True)
        size = np.where(scores > _NEVER / 2, np.abs(scores), 0.0).max(axis=1, keepdims=True)
        return np.asarray((scores >= largest - _EQUAL * size).argmax(axis=1))

    def _prepared(
        self, X: Any, y: Any, bags: Any, proportions: Any, bag_weight: Any
    ) -> tuple[Any, Bags | None, np.ndarray, np.ndarray]:
        """Checked inputs: rows as features or objects, the bags, and the class and the row of every instance."""
        self._check_parameters()
        thread_count(self.n_jobs)
        X = self._inputs(X, reset=True)
        made = self._bags(count(X), y, bags, proportions, bag_weight)
        codes = self._label_codes(y, count(X), made)
        if made is None:
            return X, None, codes, np.arange(count(X))
        self._check_labels(made, codes)
        rows = np.concatenate([made.members, made.alone])
        return X, made, codes[rows], rows

    def _inputs(self, X: Any, reset: bool) -> Any:
        """Features as numbers, or a collection for the kernel; both through the map where there is one."""
        X = self._mapped(X, reset)
        if self.kernel is not None:
            return self._collected(X, reset)
        if self.map is None:
            return validate_data(self, check_sparse("X", X), reset=reset, accept_sparse="csr", dtype=np.float64)
        return X

    def _mapped(self, X: Any, reset: bool) -> Any:
        """What the map makes of X; X itself without one."""
        if self.map is None:
            return X
        if reset:
            self.map_ = clone(self.map).fit(X)
            if self.kernel is None and hasattr(self.map_, "n_features_in_"):
                self.n_features_in_ = self.map_.n_features_in_
        F = check_sparse("the features of the map", self.map_.transform(X))
        F = F.tocsr().astype(np.float64) if sp.issparse(F) else np.asarray(F, np.float64)
        if F.ndim != 2:
            raise ValueError(f"the map gave an array of shape {F.shape}, not a row of features for each row")
        if not np.isfinite(F.data if sp.issparse(F) else F).all():
            raise ValueError("the map gave features that are NaN or infinite")
        return F

    def _bags(self, n: int, y: Any, bags: Any, proportions: Any, bag_weight: Any) -> Bags | None:
        name = type(self).__name__
        if bags is None:
            if proportions is not None or bag_weight is not None:
                raise ValueError("proportions are of no use without bags: pass bags=, the bag of every row")
            if y is None:
                raise ValueError(f"{name} requires y to be passed, but the target y is None, and there are no bags")
            return None
        made = Bags(bags, proportions, bag_weight=bag_weight, n_rows=None if isinstance(bags, Bags) else n)
        if made.n_rows != n:
            raise ValueError(f"bags has {made.n_rows} rows, but X has {n}")
        if made.lower is None:
            raise ValueError(f"{name} requires proportions: one share, or a row of shares, for each bag")
        return made

    def _label_codes(self, y: Any, n: int, bags: Bags | None) -> np.ndarray:
        """The class of every row, −1 where unknown; sets `classes_`."""
        if y is None:
            assert bags is not None
            assert bags.classes is not None
            self.classes_ = bags.classes
            return np.full(n, -1)
        labels = plain_values(y, "y")  # with None, or NaN among text, an array of objects
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        if labels.shape != (n,):
            raise ValueError(f"y must hold one label for each of the {n} rows, got shape {labels.shape}")
        unknown = missing_values(labels)
        seen = np.unique(np.array(labels[~unknown].tolist()))
        if len(seen):
            assert_all_finite(seen, input_name="y")
            check_classification_targets(seen)
        if bags is None or bags.classes is None:
            if unknown.any():
                first = np.flatnonzero(unknown)[0]
                raise ValueError(f"without bags y must be known everywhere, but y[{first}] is missing")
            if len(seen) < 2:
                raise ValueError(f"{type(self).__name__} needs at least 2 classes, y has {len(seen)} class(es)")
            self.classes_ = seen
        else:
            n_classes = len(bags.classes)
            default = np.array_equal(bags.classes, np.arange(n_classes))
            inside = np.isin(seen, bags.classes)
            if not inside.all() and default and len(seen) == n_classes:
                self.classes_ = seen  # shares came without names: the labels give them, in their order
            elif not inside.all():
                label_seen, allowed = seen[~inside].tolist()[0], bags.classes.tolist()
                raise ValueError(f"y holds {label_seen!r}, which is not among the classes {allowed}")
            else:
                self.classes_ = bags.classes
        codes = np.full(n, -1)
        for code, name in enumerate(self.classes_.tolist()):
            codes[~unknown] = np.where([label == name for label in labels[~unknown].tolist()], code, codes[~unknown])
        return codes

    @staticmethod
    def _check_labels(bags: Bags, codes: np.ndarray) -> None:
        lost = bags.alone[codes[bags.alone] < 0]
        if len(lost):
            raise ValueError(f"row {lost[0]} has no bag and no label: leave it out, or give one of the two")
        left = np.setdiff1d(np.arange(bags.n_rows), np.concatenate([bags.members, bags.alone]))
        if len(left):
            raise ValueError(f"row {left[0]} is in no bag: leave it out, or put it into one")

    def _space(self, X: Any, rows: np.ndarray) -> Space:
        same = len(rows) == count(X) and bool((rows == np.arange(len(rows))).all())
        if self.kernel is None:
            F = X if same else X[rows]
            return Space(features=F if sp.issparse(F) else np.ascontiguousarray(F))
        K = self._gram(X)
        return Space(gram=K if same else K.take(rows, axis=0).take(rows, axis=1))

    @staticmethod
    def _problem(bags: Bags | None, codes: np.ndarray, c: int) -> Problem:
        """Class ``c`` against the rest."""
        known = np.where(codes < 0, 0, np.where(codes == c, 1, -1)).astype(np.int8)
        if bags is None:
            none = np.zeros(0)
            return Problem(np.zeros(1, np.int64), none, none, none, none, np.ones(len(codes)), known)
        assert bags.lower is not None
        assert bags.upper is not None
        return Problem(
            bags.offsets,
            bags.shares[:, c],
            bags.lower[:, c],
            bags.upper[:, c],
            bags.bag_weight,
            np.concatenate([bags.row_weight, np.ones(len(bags.alone))]),
            known,
        )

    def _keep_solutions(self, X: Any, rows: np.ndarray, solutions: list[Solution]) -> None:
        for name in ("coef_", "dual_coef_", "support_", "support_objects_", "class_means_"):
            if hasattr(self, name):  # of an earlier fit, with or without a kernel
                delattr(self, name)
        weights = np.array([solution.weights for solution in solutions])
        self.intercept_ = np.array([solution.intercept for solution in solutions])
        if self.kernel is None:
            self.coef_ = weights
        else:
            dense = np.zeros((len(solutions), count(X)))
            np.add.at(dense.T, rows, weights.T)  # a row in two bags is two instances
            self._keep(X, np.flatnonzero(dense.any(axis=0)))
            self.dual_coef_ = np.ascontiguousarray(dense[:, self.support_])
        for key in solutions[0].info:
            values = [solution.info[key] for solution in solutions]
            setattr(self, f"{key}_", values[0] if len(values) == 1 else values)

    # ------------------------------------------------------------------ bags in parts

    def _reason_against_parts(self) -> str | None:
        if self._parts_how != "bags":
            return self._parts_reason
        if self.kernel is not None:
            return "a kernel compares the rows of all bags: take a map of its features, or no kernel"
        if self.map is not None and getattr(self.map, "_parts_how", "no") != "first":
            return f"its map, {type(self.map).__name__}, learns from all rows at once"
        return None

    def _fit_parts(self, place: Any, **more: Any) -> Any:
        """Learn from rows in parts, each with `Bags` of its own as y: what is learnt needs products with rows only."""
        if any(value is not None for value in more.values()):
            raise TypeError("each partition holds its own bags: y of a partition must be Bags with proportions")
        self._check_parameters()
        thread_count(self.n_jobs)
        for name in ("n_features_in_", "feature_names_in_", "map_"):
            self.__dict__.pop(name, None)
        looked = place.each(_look_at_bags, clone(self))
        filled = [i for i, one in enumerate(looked) if one is not None]
        if not filled:
            raise ValueError("nothing to learn from: all partitions are empty")
        first = looked[filled[0]]
        for i in filled:
            if looked[i]["width"] != first["width"]:
                message = f"{looked[i]['width']} features, where partition {filled[0]} has {first['width']}"
                raise PartError(i, message)
            if looked[i]["columns"] != first["columns"]:
                raise PartError(i, f"other columns than partition {filled[0]}")
        try:
            made = Bags.joined([None if one is None else one["bags"] for one in looked])
        except ValueError as error:
            raise ValueError(str(error).replace("parts", "partitions", 1)) from None
        if self.map is not None:
            self.map_ = first["map"]
        self.n_features_in_ = first["n_features_in"]
        if first["columns"] is not None:
            self.feature_names_in_ = np.array(first["columns"], dtype=object)
        codes = self._label_codes(None, made.n_rows, made)[made.members]
        sizes = [0 if one is None else len(one["bags"].members) for one in looked]
        rows = RowsInParts(place, _RowsOfBags(copy.copy(self), first["width"]), sizes, first["width"])
        return self._solved(None, made, codes, np.arange(len(codes)), Space(features=rows))

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the output f of every row, or one for each row and class.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,) for two classes, positive for ``classes_[1]``; or (n, n_classes)
        """
        self._check_fitted()
        if self.kernel is None:
            scores = np.asarray(self._inputs(X, reset=False) @ self.coef_.T) + self.intercept_
        elif len(self.support_):
            scores = self._expanded(self._mapped(X, reset=False), self.dual_coef_.T) + self.intercept_
        else:
            scores = self._nothing(self._mapped(X, reset=False), len(self.intercept_)) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row; ties go to the first class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of n_samples labels
        """
        scores = self.decision_function(X)
        return self.classes_[self._winners(scores[:, None] if scores.ndim == 1 else scores)]

    def predict_proportions(self, X: Any, bags: Any) -> np.ndarray:
        """Return the predicted share of each class in each bag.

        Parameters
        ----------
        X : as in `fit`
        bags : array of n values, pairs (row, bag), or Bags

        Returns
        -------
        ndarray of shape (n_bags,) with two classes, the share of ``classes_[1]``; or (n_bags, n_classes)
            Bags are sorted by name.
        """
        labels = self.predict(X)
        bags = bags if isinstance(bags, Bags) else Bags(bags, n_rows=len(labels))
        if bags.n_rows != len(labels):
            raise ValueError(f"bags has {bags.n_rows} rows, but X has {len(labels)}")
        shares = bags.mean((labels[bags.members][:, None] == self.classes_).astype(np.float64))
        return shares[:, 1] if len(self.classes_) == 2 else shares

    # ------------------------------------------------------------------ looking inside

    def _score_rows(self) -> ScoreRows:
        self._check_fitted()
        return super()._score_rows() if self.kernel is not None else ScoreModel._score_rows(self)

    def _activations(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.kernel is None:
            return ScoreModel._activations(self, x)
        return super()._activations(self._mapped(one_object(x), reset=False))

    def _one_row(self, X: Any) -> Any:
        return self._inputs(X, reset=False)

    def _feature_name(self, column: int) -> str:
        if self.kernel is not None:
            return super()._feature_name(column)
        if self.map is not None:
            names = getattr(self.map_, "get_feature_names_out", None)
            return f"feature {column}" if names is None else str(names()[column])
        return ScoreModel._feature_name(self, column)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "intercept_")

    def _saved_params(self) -> dict[str, Any]:
        # Maps are written as they were fitted; `fit` makes a clone.
        return {**super()._saved_params(), "map": None if self.map is None else self.map_}

    def _check_state(self) -> None:
        if self.map is not None:
            if not callable(getattr(self.map, "transform", None)):
                raise ValueError("map must have a transform, or be None")
            self.map_ = self.map
        if self.kernel is not None:
            super()._check_state()
        if not hasattr(self, "intercept_") or not hasattr(self, "coef_" if self.kernel is None else "dual_coef_"):
            raise ValueError("the coefficients are missing")
