"""Scores of bags, and parameter search by them, without labels of single rows.

The risk of predicted shares h̄ against known ones ȳ, with bag weights c_k::

    Σ_k c_k L(h̄_k, ȳ_k) / Σ_k c_k        absolute: L = ½ Σ_c |h̄_kc − ȳ_kc|        squared: L = ½ Σ_c (h̄_kc − ȳ_kc)²

which for two classes is |h̄ − ȳ| and (h̄ − ȳ)² of either class. With bounds on a share, the nearest point is used.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._progress import say
from mercer._state.saved import Count, Fields, Ints, LabelValues, Saved
from mercer._threads import each
from mercer._validation import check_choice, check_count, check_sparse, thread_count
from mercer._warnings import warn_caller
from mercer.data.bags import Bags, missing_values, plain_values
from mercer.exceptions import ConstantAnswerWarning
from mercer.kernel_methods.collections import count, taken

__all__ = ["BagCV", "ConstantAnswerWarning", "MajorityBag", "bag_score", "proportion_risk"]

LOSSES = ("absolute", "squared")


def proportion_risk(predicted: Any, bags: Any, proportions: Any = None, *, loss: str = "absolute") -> float:
    """Return the mean loss of predicted shares of bags.

    Parameters
    ----------
    predicted : array of shape (n_bags,) or (n_bags, n_classes)
        Shares as returned by ``predict_proportions``: of the second class, or of all. Bags are sorted by name.
    bags : Bags, or what `Bags` takes
        Bags, with their weights.
    proportions : optional
        The known shares, as for `Bags`; not needed if ``bags`` has them.
    loss : {"absolute", "squared"}, default="absolute"

    Returns
    -------
    float

    Examples
    --------
    >>> from mercer.proportions import proportion_risk
    >>> proportion_risk([0.5, 1.0], ["a", "a", "b"], {"a": 0.25, "b": 1.0})
    0.125
    """
    check_choice("loss", loss, LOSSES)
    known = _known(bags, proportions)
    assert known.lower is not None
    assert known.upper is not None
    shares = np.asarray(predicted, np.float64)
    shares = np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares
    if shares.shape != known.lower.shape:
        raise ValueError(f"predicted must hold shares of {len(known)} bags and {known.lower.shape[1]} classes")
    if not np.isfinite(shares).all():
        raise ValueError("predicted must be finite")
    apart = np.maximum(np.maximum(known.lower - shares, shares - known.upper), 0.0)
    each = 0.5 * (apart if loss == "absolute" else apart**2).sum(axis=1)
    return float(known.bag_weight @ each / known.bag_weight.sum())


def bag_score(estimator: Any, X: Any, bags: Any, proportions: Any = None) -> float:
    """Return minus the mean absolute error of the predicted shares. Larger is better, 0 is perfect.

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict_proportions(X, bags)``, or with ``predict`` and ``classes_``.
    X : rows, as the estimator takes them
    bags : array of n values, pairs (row, bag), or Bags
    proportions : optional
        The known shares, as for `Bags`; not needed if ``bags`` has them.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import MeanMap, bag_score, make_bags
    >>> y = np.arange(200) % 2
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 4 * y[:, None]
    >>> bags = make_bags(y, 5, random_state=0)
    >>> bag_score(MeanMap().fit(X, bags=bags), X, bags) > -0.05
    True
    """
    return _bag_score(estimator, X, _known(bags, proportions, count(X)), "absolute")


# ---------------------------------------------------------------------------------------------------- constants


def constant_shares(bags: Bags) -> np.ndarray:
    """Return the constant class shares with the least absolute error, among means, medians and single classes."""
    weight = bags.bag_weight if bags.bag_weight.any() else np.ones(len(bags))
    mean = np.average(bags.shares, axis=0, weights=weight)
    order = np.argsort(bags.shares, axis=0, kind="stable")
    reached = np.cumsum(weight[order], axis=0) >= weight.sum() / 2
    median = np.take_along_axis(bags.shares, order, axis=0)[reached.argmax(axis=0), np.arange(len(mean))]
    if len(mean) == 2:
        median[0] = 1 - median[1]
    candidates = [mean, *([median / median.sum()] if median.sum() > 0 else []), *np.eye(len(mean))]
    return min(candidates, key=lambda shares: proportion_risk(np.tile(shares, (len(bags), 1)), bags))


def majority_shares(bags: Bags) -> np.ndarray:
    """Return the shares of bags if all rows get the overall most frequent class."""
    return np.eye(bags.shares.shape[1])[int((bags.sizes @ bags.shares).argmax())]


def warn_if_no_better(error: float, constant: float, where: str) -> None:
    """Warn if the error of a model is not below that of a constant share. Equal shares cannot be beaten."""
    if error >= constant > 1e-9:
        message = (
            f"the shares of {where} are met no better ({error:.3f}) than by one share for all bags ({constant:.3f}):"
            " nothing shows that the model tells rows apart"
        )
        warn_caller(message, ConstantAnswerWarning)


def _known(bags: Any, proportions: Any, n_rows: int | None = None) -> Bags:
    if n_rows is not None and isinstance(bags, Bags) and bags.n_rows != n_rows:
        raise ValueError(f"bags has {bags.n_rows} rows, but X has {n_rows}")
    made = Bags(bags, proportions, n_rows=None if isinstance(bags, Bags) else n_rows)
    if made.lower is None:
        raise ValueError("bags without proportions cannot be compared with: pass proportions")
    return made


def _bag_score(estimator: Any, X: Any, bags: Bags, loss: str) -> float:
    if not hasattr(estimator, "classes_"):
        raise NotFittedError(f"this {type(estimator).__name__} has no classes_: it is not a fitted classifier")
    classes = np.asarray(estimator.classes_)
    if hasattr(estimator, "predict_proportions"):
        shares = np.asarray(estimator.predict_proportions(X, bags))
        shares = np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares
    else:
        labels = np.asarray(estimator.predict(X))
        shares = bags.mean((labels[bags.members][:, None] == classes).astype(np.float64))
    assert bags.classes is not None
    default = np.array_equal(bags.classes, np.arange(len(bags.classes)))
    if not default and not np.array_equal(classes, bags.classes):
        place = {label: at for at, label in enumerate(classes.tolist())}
        lacking = [label for label in bags.classes.tolist() if label not in place]
        if lacking:
            raise ValueError(
                f"the estimator knows the classes {classes.tolist()}, but bags have the class {lacking[0]!r}"
            )
        shares = shares[:, [place[label] for label in bags.classes.tolist()]]
    return -proportion_risk(shares, bags, loss=loss)


# ---------------------------------------------------------------------------------------------------- search


def _best_has(name: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return check


class BagCV(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """Search for parameters by cross-validation over whole bags.

    Every combination is fitted to some bags and scored by its predicted shares of the others. Labels of single rows, if
    any, are used only for fitting.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y, bags=, …)``, such as `MeanMap` or `InverseCalibration`; or a pipeline that ends in one.
    param_grid : dict of lists, or a list of such dicts
        Combinations to try.
    cv : int or iterable of (training bags, held-out bags), default=5
        Number of folds, or indices of bags (positions in ``Bags.names``).
    scoring : {"absolute", "squared"} or callable, default="absolute"
        Minus this `proportion_risk`, or a function (estimator, X, bags) with larger values for better models.
    refit : bool, default=True
        Fit the best combination to all bags, for prediction.
    n_jobs : int or None
        Number of parallel fits. The result does not depend on it. None: 1, or the setting of
        ``joblib.parallel_config``, which may be a cluster.
    random_state : int, RandomState or None
        Seed of the folds. If given, an estimator with ``random_state`` None gets a seed from it for each fold, the same
        for all combinations.
    verbose : int, default=0
        1 prints the number of fits and the best combination, 2 every combination.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in scikit-learn's ``GridSearchCV``; ``pandas.DataFrame(search.cv_results_)`` shows it as a table. Means over
        folds weight every bag by its weight.
    best_index_, best_params_, best_score_
        Values of the first of the best combinations.
    constant_score_, majority_score_ : float
        The scores, on the same held-out bags, of one share for all bags, and of the most frequent class for all rows,
        both learned from the training bags. If ``best_score_`` is not above the first, a `ConstantAnswerWarning` is
        raised. Not with a callable ``scoring``.
    best_estimator_
        The estimator fitted to all bags, with ``refit``.
    n_splits_ : int
    refit_time_ : float

    Notes
    -----
    Labelled rows without a bag are in all training folds. With overlapping bags, a row may be on both sides of a split;
    held-out errors are then too small, and a warning is raised.

    To store the result, `mercer.save` its ``best_estimator_``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import BagCV, MeanMap, make_bags
    >>> y = np.arange(200) % 2
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 3 * y[:, None]
    >>> search = BagCV(MeanMap(), {"alpha": [0.001, 0.1, 10.0]}, random_state=0)
    >>> search = search.fit(X, bags=make_bags(y, 5, random_state=0))
    >>> search.best_params_["alpha"] < 10 and search.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        cv: Any = 5,
        scoring: Any = "absolute",
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, bags: Any, proportions: Any = None, bag_weight: Any = None) -> BagCV:
        """Try all combinations.

        Parameters
        ----------
        X : rows, as the estimator takes them
        y : array of n labels, optional
            Labels of some rows, None or NaN elsewhere. They stay with their rows, and are used only for fitting.
        bags, proportions, bag_weight
            As in the estimator's ``fit``.

        Returns
        -------
        self
        """
        if not callable(self.scoring):
            check_choice("scoring", self.scoring, LOSSES)
        candidates = list(ParameterGrid(self.param_grid))
        thread_count(self.n_jobs)
        if not candidates:
            raise ValueError("param_grid holds no combination of parameters")
        X = check_sparse("X", X).tocsr() if sp.issparse(X) else X
        made, y = _with_weights(_known(bags, proportions, count(X)), bag_weight), _labels(y, count(X))
        made = _named(made, y)
        lost = made.alone if y is None else made.alone[missing_values(y[made.alone])]
        if len(lost):
            raise ValueError(f"row {lost[0]} has no bag and no label: leave it out, or give one of the two")
        if get_tags(self.estimator).input_tags.pairwise and not sp.issparse(X):
            X = np.asarray(X)
        random = check_random_state(self.random_state)
        splits = list(self._splits(made, random))
        seeds = random.randint(0, 2**31 - 1, len(splits) + 1)
        fold_seeds = [None if self.random_state is None else int(seed) for seed in seeds]
        if self.verbose:
            say(f"BagCV: {len(candidates)} combinations, {len(splits)} folds of {len(made)} bags")
        tasks = [(params, split, fold_seeds[f]) for params in candidates for f, split in enumerate(splits)]
        figures = self._run(X, y, made, tasks)
        self._keep_results(candidates, splits, made, np.array(figures).reshape(len(candidates), len(splits), 3))
        self._compare_with_constants(splits, made)
        if self.refit:
            begin = time.perf_counter()
            self.best_estimator_ = self._clone(self.best_params_, fold_seeds[-1])
            with warnings.catch_warnings():  # held-out bags have said more
                warnings.simplefilter("ignore", ConstantAnswerWarning)
                _fit(self.best_estimator_, X, y, made)
            self.refit_time_ = time.perf_counter() - begin
        return self

    def _splits(self, bags: Bags, random: np.random.RandomState) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        n = len(bags)
        if isinstance(self.cv, (int, np.integer)) or not isinstance(self.cv, Iterable):
            folds = check_count("cv", self.cv, 2)
            if n < folds:
                raise ValueError(f"cv={folds} folds need at least as many bags, but there are {n}: use a smaller cv")
            parts = np.array_split(random.permutation(n), folds)
            splits = [(np.setdiff1d(np.arange(n), part), np.sort(part)) for part in parts]
        else:
            try:
                splits = [(np.unique(train), np.unique(test)) for train, test in self.cv]
            except (TypeError, ValueError) as error:
                raise ValueError("cv must be a number of folds, or pairs (training bags, held-out bags)") from error
            for part in (part for split in splits for part in split):
                if not len(part) or part.dtype.kind not in "iu" or part[0] < 0 or part[-1] >= n:
                    raise ValueError(f"cv must hold pairs of numbers of bags in 0 … {n - 1}, none of them empty")
            if not splits:
                raise ValueError("cv holds no split")
        if not all(bags.bag_weight[train].any() for train, _ in splits):
            raise ValueError("cv leaves only bags of weight 0 to learn from: use other folds, or leave these bags out")
        if bags.overlapping and any(_shared(bags, *split) for split in splits):
            message = "bags overlap: some held-out bags share rows with training bags, and errors come out too small"
            warn_caller(message)
        return splits

    def _clone(self, params: dict[str, Any], seed: int | None) -> Any:
        model = clone(self.estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})
        if seed is not None and model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=seed)
        return model

    def _run(self, X: Any, y: Any, bags: Bags, tasks: list[Any]) -> list[tuple[float, float, float]]:
        judged = each(partial(self._watched, X, y, bags), tasks, self.n_jobs, processes=True)
        for category, message in dict.fromkeys(warning for _, told in judged for warning in told):
            warn_caller(message, category)
        return [judged_figures for judged_figures, _ in judged]

    def _watched(
        self, X: Any, y: Any, bags: Bags, task: Any
    ) -> tuple[tuple[float, float, float], list[tuple[type[Warning], str]]]:
        """What `_judge` finds, and its warnings: other processes would print them, and once for every fit."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ConstantAnswerWarning)  # on training bags; held-out ones say more
            figures = self._judge(X, y, bags, *task)
        return figures, [(warning.category, str(warning.message)) for warning in caught]

    def _judge(
        self, X: Any, y: Any, bags: Bags, params: dict[str, Any], split: Any, seed: int | None
    ) -> tuple[float, float, float]:
        """Score, and seconds for fitting and scoring."""
        train, test = split
        model = self._clone(params, seed)
        pairwise = get_tags(model).input_tags.pairwise
        part, rows = _with_alone(*bags.select(train), bags.alone)
        begin = time.perf_counter()
        _fit(model, X[np.ix_(rows, rows)] if pairwise else taken(X, rows), None if y is None else y[rows], part)
        middle = time.perf_counter()
        held, held_rows = bags.select(test)
        if not held.bag_weight.any():  # the mean over folds leaves this one out
            held.bag_weight = np.ones(len(held))
        Z = X[np.ix_(held_rows, rows)] if pairwise else taken(X, held_rows)
        score = self.scoring(model, Z, held) if callable(self.scoring) else _bag_score(model, Z, held, self.scoring)
        if not np.isfinite(score):
            raise ValueError(f"the score of {params} is {score}")
        if self.verbose > 1:
            say(f"BagCV: {params}: {score:.4f}")
        return float(score), middle - begin, time.perf_counter() - middle

    def _keep_results(self, candidates: list[Any], splits: list[Any], bags: Bags, figures: np.ndarray) -> None:
        scores, fitting, scoring = figures[..., 0], figures[..., 1], figures[..., 2]
        weight = np.array([bags.bag_weight[test].sum() for _, test in splits])
        weight = weight if weight.sum() > 0 else np.ones(len(splits))
        mean = scores @ weight / weight.sum()
        results: dict[str, Any] = {"mean_fit_time": fitting.mean(axis=1), "std_fit_time": fitting.std(axis=1)}
        results.update(mean_score_time=scoring.mean(axis=1), std_score_time=scoring.std(axis=1))
        for name in sorted({name for params in candidates for name in params}):
            column = np.ma.MaskedArray(np.empty(len(candidates), object), mask=True)
            for at, params in enumerate(candidates):
                if name in params:
                    column[at] = params[name]
            results[f"param_{name}"] = column
        results["params"] = candidates
        results.update({f"split{f}_test_score": scores[:, f] for f in range(len(splits))})
        spread = np.sqrt((scores - mean[:, None]) ** 2 @ weight / weight.sum())
        rank = 1 + (mean[None, :] > mean[:, None]).sum(axis=1)
        results.update(mean_test_score=mean, std_test_score=spread, rank_test_score=rank.astype(np.int32))
        self.cv_results_, self.n_splits_ = results, len(splits)
        self.best_index_ = int(np.argmax(mean))
        self.best_params_, self.best_score_ = candidates[self.best_index_], float(mean[self.best_index_])
        if self.verbose:
            say(f"BagCV: best is {self.best_params_} with {self.best_score_:.4f}")

    def _compare_with_constants(self, splits: list[Any], bags: Bags) -> None:
        """Set the scores of constants on held-out bags, and warn where the best combination is no better."""
        for name in ("constant_score_", "majority_score_"):
            if hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        if callable(self.scoring):
            return
        totals, weights = np.zeros(2), 0.0
        for train, test in splits:
            kept, held = bags.select(train)[0], bags.select(test)[0]
            weight = float(held.bag_weight.sum())
            if weight > 0:
                answers = (constant_shares(kept), majority_shares(kept))
                risks = [proportion_risk(np.tile(s, (len(held), 1)), held, loss=self.scoring) for s in answers]
                totals, weights = totals + weight * np.array(risks), weights + weight
        if weights > 0:
            self.constant_score_, self.majority_score_ = (-totals / weights).tolist()
            warn_if_no_better(-self.best_score_, -self.constant_score_, "held-out bags")

    # ------------------------------------------------------------------ the best estimator

    def _best(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("there is no best_estimator_: the search was made with refit=False")
        return self.best_estimator_

    @property
    def classes_(self) -> np.ndarray:
        """Return the classes of the best estimator."""
        return np.asarray(self._best().classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row, by the best estimator."""
        return np.asarray(self._best().predict(X))

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the best estimator."""
        return np.asarray(self._best().decision_function(X))

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the best estimator."""
        return np.asarray(self._best().predict_proba(X))

    @available_if(_best_has("predict_proportions"))
    def predict_proportions(self, X: Any, bags: Any) -> np.ndarray:
        """Return the shares of bags predicted by the best estimator."""
        return np.asarray(self._best().predict_proportions(X, bags))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the best estimator on labelled rows."""
        return float(super().score(X, y, sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = copy.copy(get_tags(self.estimator).input_tags)
        tags.target_tags.required = False
        return tags


def _fit(model: Any, X: Any, y: Any, bags: Bags) -> None:
    if isinstance(model, Pipeline):
        model.fit(X, y, **{f"{model.steps[-1][0]}__bags": bags})
    else:
        model.fit(X, y, bags=bags)


def _labels(y: Any, n: int) -> np.ndarray | None:
    if y is None:
        return None
    labels = plain_values(y, "y")
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} rows, got shape {labels.shape}")
    return labels


def _with_weights(bags: Bags, bag_weight: Any) -> Bags:
    return bags if bag_weight is None else Bags(bags, bag_weight=bag_weight)


def _named(bags: Bags, y: np.ndarray | None) -> Bags:
    """Bags whose classes are the labels, where shares came without names: a fold may not have labels of all classes."""
    if y is None or bags.classes is None:
        return bags
    seen = np.unique(np.array(y[~missing_values(y)].tolist()))
    default = np.array_equal(bags.classes, np.arange(len(bags.classes)))
    if default and len(seen) == len(bags.classes) and not np.isin(seen, bags.classes).all():
        return Bags(bags, classes=seen)
    return bags


def _with_alone(part: Bags, rows: np.ndarray, alone: np.ndarray) -> tuple[Bags, np.ndarray]:
    """Labelled rows without a bag behind the rows of some bags."""
    if len(alone):
        part.alone = len(rows) + np.arange(len(alone))
        part.n_rows = len(rows) + len(alone)
    return part, np.concatenate([rows, alone])


def _shared(bags: Bags, train: np.ndarray, test: np.ndarray) -> bool:
    inside = np.isin(bags.number, train)
    return bool(np.isin(bags.members[np.isin(bags.number, test)], bags.members[inside]).any())


# ---------------------------------------------------------------------------------------------------- majorities


class MajorityBag(Saved, ClassifierMixin, Estimator):
    """The baseline that uses only groups: every row gets the majority of its group.

    Attributes
    ----------
    classes_ : ndarray
    names_ : ndarray
        Groups, sorted.
    majority_ : ndarray of int64
        The number of the most frequent class of each group; ties go to the first.
    overall_ : int
        The most frequent class of all rows, for unseen groups.

    Examples
    --------
    >>> from mercer.proportions import MajorityBag
    >>> model = MajorityBag().fit(["a", "a", "b"], {"a": 0.25, "b": 1.0})
    >>> model.predict(["b", "a", "c"]).tolist()
    [1, 0, 0]
    """

    saved = Fields(
        classes_=LabelValues(2),
        names_=LabelValues(),
        majority_=Ints("names_", below="classes_"),
        overall_=Count(most=lambda model: len(model.classes_) - 1),
    )

    def fit(self, X: Any, proportions: Any = None) -> MajorityBag:
        """Learn the majorities.

        Parameters
        ----------
        X : array of n values, or Bags
            The group of every row.
        proportions : as for `Bags`
            Not needed if X has them.

        Returns
        -------
        self
        """
        bags = _known(X, proportions)
        assert bags.classes is not None
        self.classes_, self.names_ = bags.classes, bags.names
        self.majority_ = bags.shares.argmax(axis=1)
        self.overall_ = int((bags.sizes @ bags.shares).argmax())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the majority of the group of every row.

        Parameters
        ----------
        X : array of n values
            Groups.

        Returns
        -------
        ndarray of n labels
        """
        check_is_fitted(self)
        groups = np.asarray(X if hasattr(X, "__array__") else list(X))
        if groups.ndim != 1:
            raise ValueError(f"X must be the group of every row, got shape {groups.shape}")
        table = dict(zip(self.names_.tolist(), self.majority_.tolist(), strict=True))
        return self.classes_[np.array([table.get(group, self.overall_) for group in groups.tolist()], np.int64)]
