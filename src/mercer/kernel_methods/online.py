"""Online learning in the space of a kernel: perceptrons and stochastic gradients.

    J(f) = (1/m) Σ_i l(x_i, y_i, f) + (λ/2) ‖f‖²,   f_{t+1} = f_t − η_t (∂_f l(x_t, y_t, f_t) + λ f_t)

With ∂_f l = c_t k(x_t, ·) a step is: a_i ← (1 − η_t λ) a_i for all stored objects, and a_t ← a_t − η_t c_t. The first
part updates one scale s: coefficients are stored as s · a_i. Kernel values are computed in blocks: a batch of the
stream with the stored objects and with itself. The perceptron is the step for the loss max(0, −y f) with λ = 0 and
constant η.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from mercer._explain import ScoreRows, chosen_labels
from mercer._state.saved import Count, Fields, Flag, Floats, Ints, LabelValues, Optional
from mercer._validation import check_choice, check_count, check_not_negative, check_positive
from mercer.kernel_methods.base import KernelMethod, class_codes, weights_of
from mercer.kernel_methods.collections import count, joined, taken
from mercer.kernel_methods.losses import LOSSES, WITH_CLASSES, ScoreLoss

__all__ = ["OnlineKernelClassifier"]

_VALUES = 1 << 20  # kernel values of a stretch
_STRETCH = (16, 512)  # its least and largest length
_TINY = 1e-100  # the common factor below which it is multiplied into the coefficients


class OnlineKernelClassifier(ClassifierMixin, KernelMethod):
    """Online kernel classifiers (perceptron and NORMA): one object at a time, any kernel, bounded memory.

    Parameters
    ----------
    kernel : Kernel, "precomputed" or None
        A positive definite kernel; None is the linear one. There is no offset: add a constant (``kernel + 1.0``). With
        ``"precomputed"``, X is the kernel matrix, and :meth:`partial_fit` is not available.
    algorithm : {"perceptron", "norma"}, default="perceptron"
        ``"perceptron"`` takes a step of size ``learning_rate`` at each mistake and ignores ``loss``, ``alpha`` and
        ``schedule``. On data with margin γ and radius R it makes at most (R/γ)² mistakes, for any ``learning_rate``.
        ``"norma"`` is stochastic gradient descent on the regularised risk (1/m) Σ loss + (alpha/2) ‖f‖².
    loss : {"hinge", "logistic", "exponential", "perceptron", "novelty"} or ScoreLoss, default="hinge"
        With more than two classes the names select the multiclass losses. ``"novelty"`` takes no labels: its
        predictions are 1 where f reaches ρ, and −1 elsewhere. `TaxonomyLoss` takes a graph of labels.
    alpha : float, default=0.01
        Factor of the penalty of ``"norma"``, at least 0.
    learning_rate : float, default=1.0
        Step size; ``learning_rate * alpha`` must be below 1.
    schedule : {"constant", "sqrt"}, default="sqrt"
        Step size in step t: ``learning_rate``, or ``learning_rate`` / √t.
    budget : int or None
        Maximum number of stored objects; None for no limit.
    budget_policy : {"oldest", "smallest"}, default="oldest"
        Which object is dropped when the budget is exceeded: the least recently updated one, or the one with the
        smallest coefficient.
    max_iter : int, default=10
        Passes of :meth:`fit` over the objects; a perceptron stops after a pass without mistakes.
    average : bool, default=False
        Predict with the mean of the functions of all steps. A dropped object is also removed from the mean.
    shuffle : bool, default=True
        Visit the objects in a random order in each pass of :meth:`fit`.
    class_weight : dict, "balanced" or None
        Factors of the steps of :meth:`fit` for the objects of each class; not with the novelty loss.
    random_state : int, RandomState or None
        Seed of the order.
    n_jobs : int or None
        Threads for kernel values.

    Attributes
    ----------
    classes_ : array of labels, sorted
        [−1, 1] with the novelty loss.
    support_ : array of int
        Stored objects: indices in X after :meth:`fit`, positions in the stream after :meth:`partial_fit`.
    support_objects_ : collection
        These objects; None with ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_outputs, n_support)
        Coefficients: one row with two classes, one for each class with more.
    n_mistakes_ : int
        Number of mistakes: steps at which the true label did not score strictly highest.
    n_updates_ : int
        Number of steps that changed a coefficient.
    t_ : int
        Number of steps.
    n_iter_ : int
        Passes of :meth:`fit`.
    converged_ : bool
        Whether a pass of :meth:`fit` had no mistake.

    References
    ----------
    .. [Kivinen2004] J. Kivinen, A. Smola and R. Williamson. Online learning with kernels. IEEE Transactions on Signal
       Processing 52, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import OnlineKernelClassifier
    >>> from mercer.kernels import Linear
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # exclusive or
    >>> model = OnlineKernelClassifier((Linear() + 1.0) ** 2, max_iter=100, random_state=0).fit(X, [0, 0, 1, 1])
    >>> model.converged_, model.predict(X)
    (True, array([0, 0, 1, 1]))
    """

    version = 3  # lam and eta are alpha and learning_rate
    saved = KernelMethod.saved | Fields(
        classes_=Optional(LabelValues(2)),
        dual_coef_=Floats("_n_outputs", "support_"),
        n_mistakes_=Count(),
        n_updates_=Count(),
        t_=Count(),
        n_iter_=Count(),
        converged_=Flag(),
        _coef=Floats("support_", "_n_outputs"),
        _sums=Floats("support_", "_n_outputs"),
        _ages=Ints("support_"),
    )

    def __init__(
        self,
        kernel: Any = None,
        algorithm: str = "perceptron",
        *,
        loss: Any = "hinge",
        alpha: float = 0.01,
        learning_rate: float = 1.0,
        schedule: str = "sqrt",
        budget: int | None = None,
        budget_policy: str = "oldest",
        max_iter: int = 10,
        average: bool = False,
        shuffle: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.algorithm = algorithm
        self.loss = loss
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.budget = budget
        self.budget_policy = budget_policy
        self.max_iter = max_iter
        self.average = average
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineKernelClassifier:
        """Learn from objects and their labels, in ``max_iter`` passes.

        Parameters
        ----------
        X : collection of n objects, or their kernel matrix
        y : array of n labels; ignored with the novelty loss
        sample_weight : array of n numbers of at least 0, optional
            Factors of the step sizes; an object of weight 0 is never visited.

        Returns
        -------
        self : OnlineKernelClassifier
        """
        self._check_parameters()
        X = self._collected(X, reset=True)
        self._check_objects(X)
        codes = self._begin(X, y, None)
        draw = check_random_state(self.random_state)
        balanced = self.class_weight if not self._novelty else None
        weights = weights_of(X, sample_weight, self.classes_, codes, balanced)
        used = np.flatnonzero(weights)
        for epoch in range(1, self.max_iter + 1):
            self.n_iter_, before = epoch, self.n_mistakes_
            order = used[draw.permutation(len(used))] if self.shuffle else used
            self._walk(X, codes, order, order, weights)
            self.converged_ = self.n_mistakes_ == before
            if self.converged_ and self.algorithm == "perceptron":
                break
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> OnlineKernelClassifier:
        """Learn from more objects, once, in their order.

        Parameters
        ----------
        X : collection of n objects
        y : array of n labels; ignored with the novelty loss
        classes : array of labels, optional
            All labels that can occur; only in the first call. By default the labels of the first call.

        Returns
        -------
        self : OnlineKernelClassifier
        """
        self._check_parameters()
        if self._precomputed:
            raise ValueError("partial_fit needs a kernel: with kernel='precomputed' new objects have no values")
        first = not self.__sklearn_is_fitted__()
        X = self._collected(X, reset=first)
        self._check_objects(X)
        codes = self._begin(X, y, classes) if first else self._known_codes(X, y, classes)
        self._walk(X, codes, np.arange(len(codes)), self.t_ + np.arange(len(codes)))
        return self

    def _check_parameters(self) -> None:
        check_choice("algorithm", self.algorithm, ("perceptron", "norma"))
        check_choice("schedule", self.schedule, ("constant", "sqrt"))
        check_choice("budget_policy", self.budget_policy, ("oldest", "smallest"))
        check_positive("learning_rate", self.learning_rate)
        check_count("max_iter", self.max_iter)
        if self.budget is not None:
            check_count("budget", self.budget)
        check_not_negative("alpha", self.alpha)
        if self.algorithm == "norma" and self.learning_rate * self.alpha >= 1:
            product = self.learning_rate * self.alpha
            raise ValueError(
                f"learning_rate * alpha must be below 1, got {product:g}: the first step would erase the function"
            )
        if not isinstance(self.loss, ScoreLoss):
            names = [name for name, loss in LOSSES.items() if loss.task != "real"]
            check_choice("loss", self.loss, tuple(names))
        elif self.loss.task == "real":
            raise ValueError(f"loss must be a loss of labels, got {self.loss!r}")

    def _check_objects(self, X: Any) -> None:
        """Raises what the kernel has to say about the objects before anything is learnt."""
        if count(X) == 0:
            raise ValueError("Found array with 0 sample(s): X is empty, there is nothing to learn from")
        if not self._precomputed:
            self._checked_kernel()._prepared("X", X)

    def _begin(self, X: Any, y: Any, classes: Any) -> np.ndarray:
        """Empty memory, and the numbers of the labels."""
        if self._novelty:
            self.classes_, codes = np.array([-1, 1]), np.ones(count(X), np.int64)
        elif classes is None:
            self.classes_, codes = class_codes(self, X, y)
        else:
            self.classes_ = np.unique(classes)
            codes = self._known_codes(X, y, None)
        if len(self.classes_) < 2:
            raise ValueError(f"classes must hold at least two classes, got {classes!r}")
        outputs = self._rule()[1]
        self.support_ = np.zeros(0, np.int64)
        self.support_objects_ = None
        self._coef, self._sums = np.zeros((0, outputs)), np.zeros((0, outputs))
        self._ages = np.zeros(0, np.int64)
        self.n_mistakes_ = self.n_updates_ = self.t_ = self.n_iter_ = 0
        self.converged_ = False
        return codes

    @property
    def _novelty(self) -> bool:
        if self.algorithm != "norma":
            return False
        return self.loss.task == "novelty" if isinstance(self.loss, ScoreLoss) else self.loss == "novelty"

    def _known_codes(self, X: Any, y: Any, classes: Any) -> np.ndarray:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}")
        if self._novelty:
            return np.ones(count(X), np.int64)
        classes_seen, codes = class_codes(self, X, y, least=1)
        places = np.searchsorted(self.classes_, classes_seen).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[places], classes_seen):
            unknown = classes_seen[self.classes_[places] != classes_seen].tolist()[0]
            raise ValueError(f"y holds the label {unknown!r}, which is not one of the classes {self.classes_.tolist()}")
        return places[codes]

    def _rule(self) -> tuple[ScoreLoss, int]:
        """The loss and the number of functions."""
        k = len(self.classes_)
        if self.algorithm == "perceptron":
            return (LOSSES if k == 2 else WITH_CLASSES)["perceptron"], 1 if k == 2 else k
        loss = self.loss
        if not isinstance(loss, ScoreLoss):
            loss = LOSSES[loss] if k == 2 else WITH_CLASSES.get(loss, LOSSES[loss])
        if loss.task == "binary" and k > 2:
            raise ValueError(f"the loss {self.loss!r} is for two classes, but there are {k}: use 'hinge' or 'logistic'")
        return loss.for_classes(self.classes_.tolist()), k if loss.task == "multiclass" else 1

    def _walk(
        self, X: Any, codes: np.ndarray, order: np.ndarray, ids: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """One pass: object ``order[i]`` is the i-th, and goes into memory under the number ``ids[i]``."""
        loss, outputs = self._rule()
        at = 0
        while at < len(order):
            room = _VALUES // max(1, len(self.support_) + _STRETCH[0])
            stop = min(len(order), at + int(np.clip(room, *_STRETCH)))
            rows = order[at:stop]
            own = np.ones(len(rows)) if weights is None else weights[rows]
            self._stretch(X, codes[rows], rows, ids[at:stop], loss, outputs, own)
            at = stop
        T = max(1, self.t_)
        self.dual_coef_ = np.ascontiguousarray((self._sums / T if self.average else self._coef).T)

    def _stretch(
        self,
        X: Any,
        codes: np.ndarray,
        rows: np.ndarray,
        ids: np.ndarray,
        loss: ScoreLoss,
        outputs: int,
        weights: np.ndarray,
    ) -> None:
        """Steps along a stretch of the stream whose kernel values are computed at once."""
        m, c = len(self.support_), len(rows)
        objects, K = self._values(X, rows)
        known = {int(number): place for place, number in enumerate(self.support_)}
        columns = np.array([known.get(int(number), m + j) for j, number in enumerate(ids)])
        steps = _Steps(self, m, c, outputs)
        novelty = self._novelty
        for j in range(c):
            f = steps.scores(K[j])
            if outputs == 1:
                y = 1.0 if codes[j] == 1 else -1.0
                gradient = loss.gradient(f, np.array([y]))
                wrong = gradient[0] != 0 if novelty else y * f[0] <= 0
            else:
                gradient = loss.gradient(f[None, :], codes[j : j + 1])[0]
                own, f[codes[j]] = f[codes[j]], -np.inf
                wrong = f.max() >= own
            self.n_mistakes_ += bool(wrong)
            steps.take(int(columns[j]), weights[j] * gradient)
        steps.finish(ids, objects)

    def _values(self, X: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The objects of a stretch, and their kernel values with the memory and with themselves."""
        if self._precomputed:
            return None, X[np.ix_(rows, np.concatenate([self.support_, rows]))]
        objects = taken(X, rows)
        everything = objects if not len(self.support_) else joined([self.support_objects_, objects])
        K = self._checked_kernel()(objects, everything, n_jobs=self.n_jobs)
        if not np.isfinite(K).all():
            raise ValueError(f"the kernel {self.kernel!r} gave a value that is NaN or infinite")
        return objects, K

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f of every object (with the novelty loss f − ρ), or f of every object and class.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        values : array of shape (n_objects,) or (n_objects, n_classes)
        """
        self._check_fitted()
        loss, outputs = self._rule()
        values = self._expanded(X, self.dual_coef_.T) if len(self.support_) else self._nothing(X, outputs)
        if outputs == 1:
            return values[:, 0] - (loss.rho if loss.task == "novelty" else 0.0)  # type: ignore[attr-defined]
        return values[:, 1] - values[:, 0] if outputs == 2 else values

    def _score_rows(self) -> ScoreRows:
        rows, loss = super()._score_rows(), self._rule()[0]
        if not self._novelty:
            return replace(rows, constants=np.zeros(len(self.dual_coef_)))
        return ScoreRows(rows.weights, np.array([-loss.rho]))  # type: ignore[attr-defined]

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every object; with the novelty loss, 1 for known and −1 for novel objects.

        Parameters
        ----------
        X : collection of objects, or their kernel values with the training objects

        Returns
        -------
        labels : array of shape (n_objects,)
        """
        values = self.decision_function(X)
        if self._novelty:
            return np.where(values >= 0, 1, -1)
        return chosen_labels(values, self.classes_)

    def as_function(self) -> Any:
        """Return f as a `mercer.kernels.RKHSFunction`; with more than two classes a list."""
        self._check_fitted()
        return self._as_function(self.dual_coef_.T)

    # ------------------------------------------------------------------ model files

    @property
    def _n_outputs(self) -> int:
        self._check_parameters()
        if not self._novelty and not hasattr(self, "classes_"):
            raise ValueError("classes_ must be an array of at least two labels")
        return self._rule()[1]

    def _check_state(self) -> None:
        if not self._precomputed:
            self._checked_kernel()
        if self.support_objects_ is not None or len(self.support_):
            super()._check_state()


class _Steps:
    """The coefficients of the objects kept and of a stretch, while steps are taken.

    Row i of ``a`` stands for s · a_i. The sum of f over the steps, for the mean, is kept as ``sums + S a − lag``: a
    step of δ at a time when the factors so far sum to S adds S δ to the lag.
    """

    def __init__(self, model: OnlineKernelClassifier, m: int, c: int, outputs: int) -> None:
        self.model = model
        self.m = m
        self.a = np.vstack([model._coef, np.zeros((c, outputs))])
        self.sums = np.vstack([model._sums, np.zeros((c, outputs))])
        self.ages = np.concatenate([model._ages, np.zeros(c, np.int64)])
        self.lag = np.zeros_like(self.a)
        self.alive = np.concatenate([np.ones(m, bool), np.zeros(c, bool)])
        self.kept = m
        self.s, self.S = 1.0, 0.0
        self.norma = model.algorithm == "norma"
        self.shrinks = model.alpha if self.norma else 0.0
        self.falls = self.norma and model.schedule == "sqrt"

    def scores(self, row: np.ndarray) -> np.ndarray:
        """f of an object from its kernel values."""
        return self.s * (row @ self.a)

    def take(self, column: int, gradient: np.ndarray) -> None:
        """One step: shrink all, then move the object's own coefficient."""
        model = self.model
        model.t_ += 1
        rate = model.learning_rate / math.sqrt(model.t_) if self.falls else model.learning_rate
        if self.shrinks:
            self.s *= 1.0 - rate * self.shrinks
            if self.s < _TINY:
                self._fold()
        if gradient.any():
            model.n_updates_ += 1
            change = -(rate / self.s) * gradient
            self.a[column] += change
            self.lag[column] += self.S * change
            self.ages[column] = model.t_
            if not self.alive[column]:
                self.alive[column] = True
                self.kept += 1
                if model.budget is not None and self.kept > model.budget:
                    self._drop(column)
        self.S += self.s

    def _drop(self, newest: int) -> None:
        """Forget one object other than the newest."""
        places = np.flatnonzero(self.alive)
        if len(places) > 1:
            places = places[places != newest]
        if self.model.budget_policy == "oldest":
            gone = places[self.ages[places].argmin()]
        else:
            gone = places[np.abs(self.a[places]).max(axis=1).argmin()]
        self.a[gone] = self.lag[gone] = self.sums[gone] = 0.0
        self.alive[gone] = False
        self.kept -= 1

    def _fold(self) -> None:
        """Multiply the common factor into the coefficients."""
        self.sums += self.S * self.a - self.lag
        self.lag[:] = 0.0
        self.a *= self.s
        self.s, self.S = 1.0, 0.0

    def finish(self, ids: np.ndarray, objects: Any) -> None:
        """Put what has a coefficient back into the model."""
        self._fold()
        model, places = self.model, np.flatnonzero(self.alive)
        old, new = places[places < self.m], places[places >= self.m] - self.m
        if not model._precomputed:
            parts = [] if not len(old) else [taken(model.support_objects_, old)]
            parts += [] if not len(new) else [taken(objects, new)]
            model.support_objects_ = joined(parts) if parts else None
        model.support_ = np.concatenate([model.support_[old], ids[new]]).astype(np.int64)
        model._coef, model._sums, model._ages = self.a[places], self.sums[places], self.ages[places]
