"""The base classes of all estimators that minimise a regularised risk.

    minimise  penalty(w) + C · risk(w),   risk(w) = Σ_i weight_i loss(x_i, y_i; w)

:class:`RiskEstimator` checks parameters, resolves the loss and the solver, trains, and stores the result; a subclass
converts data to a risk. :class:`StructuredEstimator` adds methods for p(y | x).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

import mercer.metrics.scorers  # noqa: F401 (scoring="span_f1" and the others work wherever an estimator is)
from mercer._estimator import Estimator
from mercer._explain import Terms
from mercer._state.saved import Count, Fields, Flag, History, Saved, Text, Transient
from mercer._validation import check_count, check_positive, check_weights, is_partitioned, thread_count
from mercer.learning.adaptive import adapted, log_start
from mercer.learning.checkpoint import Checkpoint, fingerprint
from mercer.learning.losses import AdaptiveHybrid, Loss, resolve_loss
from mercer.learning.partitioned import PartitionedRisk, prepare, solver_for_parts
from mercer.learning.penalties import Penalty
from mercer.learning.risk import WeightedRisk
from mercer.learning.solvers import SOLVERS, Result, Solver, best_solver, resolve_solver
from mercer.learning.training import one_pass, train
from mercer.structures.base import check_random_seed
from mercer.structures.costs import Cost, resolve_cost

__all__ = ["NeighbouringLabels", "RiskEstimator", "StructuredEstimator"]

_PLAIN = (str, int, float, bool, type(None))


@dataclass
class Run:
    """One training run: its objective, its solver and its result."""

    risk: Any
    penalty: Penalty
    solver: Solver
    result: Result
    history: dict[str, list[float]]
    held_out: tuple[Any, Any] | None = None


class RiskEstimator(Saved, Estimator):
    """Weights that minimise ``penalty(w) + C · risk(w)``.

    A subclass implements ``__init__``, the signature of ``fit``, and the hooks that raise NotImplementedError here.
    """

    loss: Any
    solver: str | Solver
    C: Any
    penalty: str | None
    l1_ratio: float
    max_iter: int | None
    tol: float | None
    patience: int
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    verbose: int

    coef_: Any
    history_: dict[str, list[float]]
    converged_: bool
    interrupted_: bool
    solver_: str
    n_iter_: int
    _online_state: dict[str, Any]

    lacks: ClassVar[dict[str, str]] = {}
    """What the estimator cannot do, and why: names of verbs and of arguments of ``fit``."""

    elsewhere: ClassVar[dict[str, str]] = {}
    """Names of scikit-learn that have another name here, and which: no subclass takes them away."""

    may_change: ClassVar[frozenset[str]] = frozenset(
        {"n_jobs", "verbose", "max_iter", "tol", "patience", "random_state", "warm_start"}
    )
    """Parameters that a resumed training may change (or that its fingerprint holds in another form)."""

    saved: ClassVar[Fields] = Fields(
        history_=History(),
        converged_=Flag(),
        solver_=Text(),
        n_iter_=Count(),
        interrupted_=Transient(False),
        _online_state=Transient(dict),
    )

    _dev_sizes: ClassVar[tuple[int, ...]] = (2,)

    _observations: ClassVar[str | None] = None
    """How inputs hold observations that scores are linear in: "rows", "sequences" of rows, or None."""

    # ------------------------------------------------------------------ what a subclass writes

    def _check(self) -> None:
        """Check the parameters that no other estimator has."""

    def _learn(self, X: Any, y: Any, loss: Any, last: Any, *args: Any, **more: Any) -> Any:
        """Read training data, learn indices, labels and structure, and return the risk.

        ``last`` holds the attributes of the fitted model to go on from, None to begin anew.
        """
        raise NotImplementedError

    def _read(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return inputs and outputs as the fitted model sees them."""
        raise NotImplementedError

    def _quality(self, w: np.ndarray, X: Any, y: Any) -> float:
        """Return the score of weights on what :meth:`_read_to_compare` gave, higher is better."""
        raise NotImplementedError

    def _check_comparable(self, y: Any) -> None:
        """Raise ValueError where :meth:`_quality` has nothing to compare with."""

    def _arrays(self, X: Any, y: Any) -> Iterable[np.ndarray | None]:
        """Return the arrays that tell data apart, for the fingerprint of a run."""
        raise NotImplementedError

    # ------------------------------------------------------------------ examples in parts

    _parts_how = "sums"
    _surveys: ClassVar[bool] = False
    """Whether parts are looked at side by side (``_survey``, ``_join``, ``_settle``); else one after the other, each
    with what was learnt from those before."""

    def _survey(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return what one part says about labels, features and columns, as plain data."""
        raise NotImplementedError

    def _join(self, left: Any, right: Any) -> Any:
        """Return two surveys as one; associative."""
        raise NotImplementedError

    def _settle(self, survey: Any, last: Any) -> None:
        """Learn indices, labels and structure from the joined surveys of all parts."""
        raise NotImplementedError

    def _loss_for_parts(self, loss: Any) -> Any:
        """Return the loss for the labels of all parts."""
        classes = getattr(self, "classes_", None)
        return loss if classes is None or not hasattr(loss, "for_labels") else loss.for_labels(classes.tolist())

    def _local(self, X: Any, y: Any, loss: Any) -> Any:
        """Return the risk of one part in the layout of the model, which has learnt from all of them."""
        return copy.copy(self)._learn(X, y, loss, SimpleNamespace(**vars(self)))

    # ------------------------------------------------------------------ what it may replace

    def _read_to_compare(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return inputs and outputs to score predictions with: labels unseen in training are allowed, and never met."""
        return self._read(X, y)

    def _cost(self) -> Cost | None:
        """Return the cost of the margin losses; None: that of the structure."""
        return None

    def _loss(self) -> Any:
        """Return the loss with its cost."""
        return resolve_loss(self.loss, self._cost())

    def _auto(self, loss: Any, penalty: Penalty, risk: Any) -> Solver:
        """Return the solver that ``"auto"`` stands for."""
        return best_solver(loss, penalty)

    def _check_strength(self) -> None:
        """Check C."""
        check_positive("C", self.C)

    def _strength(self, risk: Any) -> float:
        """Return C as a number."""
        return float(self.C)

    def _flat(self, model: Any) -> np.ndarray:
        """Return the weights of a fitted model in the layout of the solver."""
        return model.coef_

    def _carry(self, w: np.ndarray, last: Any, risk: Any) -> np.ndarray:
        """Return a vector in the layout of the last fit in the layout of this one."""
        if len(w) != risk.n_weights:
            raise ValueError(
                f"the model to continue from has {len(w)} weights, this data needs {risk.n_weights}: it has other "
                "features or labels"
            )
        return w

    def _constants(self, risk: Any) -> int:
        """Return how many weights, the last ones, are constants, which have no penalty where the solver can do so."""
        return 0

    def _keep(self, w: np.ndarray) -> None:
        """Store the weights in the form that users see."""
        self.coef_ = w

    def _weigh(self, risk: Any, sample_weight: Any) -> Any:
        """Return the risk with a weight for each example."""
        weights = check_weights(sample_weight, risk.n_examples)
        return risk if weights is None else WeightedRisk(risk.structure, risk.loss, risk.X, risk.y, weights)

    def _while_training(self) -> AbstractContextManager[Any]:
        """Return what surrounds the run of the solver."""
        return nullcontext()

    def _settings(self, risk: Any) -> Any:
        """Return what else tells two runs apart, as data whose ``repr`` says it all."""
        return None

    # ------------------------------------------------------------------ training

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        dev: tuple[Any, ...] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        sample_weight: Any = None,
        **more: Any,
    ) -> Self:
        """Check, read, train and keep; to be called by ``fit`` alone."""
        loss, penalty = self._resolve()
        last = self._snapshot() if self.warm_start else None
        with ExitStack() as until_done:
            if is_partitioned(X):
                if more:
                    raise TypeError(f"{next(iter(more))} is not for examples in partitions")
                risk: Any = until_done.enter_context(prepare(self, X, y, sample_weight, loss, last))
            else:
                risk = self._weigh(self._learn(X, y, loss, last, **more), sample_weight)
            self._minimize(risk, loss, penalty, last, dev, checkpoint)
        return self

    def _minimize(
        self, risk: Any, loss: Any, penalty: Penalty, last: Any, dev: tuple[Any, ...] | None, checkpoint: Any
    ) -> None:
        """Train on a risk and keep what comes out."""
        loss = getattr(risk, "loss", loss)
        solver = self._auto(loss, penalty, risk) if _is_auto(self.solver) else resolve_solver(self.solver)
        if isinstance(risk, PartitionedRisk):
            solver = solver_for_parts(solver, loss, penalty)
        if solver.frees_constants:
            penalty = replace(penalty, free=self._constants(risk))
        held_out = None if dev is None else self._read_to_compare(*_pair(dev, self._dev_sizes))
        if held_out is not None:
            self._check_comparable(held_out[1])
        strength = self._strength(risk)
        if isinstance(loss, AdaptiveHybrid):
            solver.check(risk, penalty)  # before other models are fitted
            free = replace(penalty, free=self._constants(risk))  # of models with the log loss, whatever the solver here
            risk = adapted(risk, free, strength, self.random_state)
        w0 = None if last is None else self._carry(self._flat(last), last, risk)
        if w0 is None and not getattr(loss, "convex", True):
            solver.check(risk, penalty)
            w0 = log_start(risk, penalty, strength, self.random_state)
        with self._while_training():
            result, history = train(
                risk,
                solver=solver,
                C=strength,
                penalty=penalty,
                w0=w0,
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=self.random_state,
                verbose=self.verbose,
                evaluate=None if held_out is None else lambda w: self._quality(w, *held_out),
                patience=self.patience,
                checkpoint=checkpoint,
                fingerprint=lambda: self._fingerprint(risk, strength, held_out),
            )
        self._finish(Run(risk, penalty, solver, result, history, held_out))

    def _partial_fit(self, X: Any, y: Any, **more: Any) -> Self:
        """Make one pass of an online solver over more data; to be called by ``partial_fit`` alone."""
        loss, penalty = self._resolve()
        solver = resolve_solver(self.solver, loss, penalty)
        if not solver.online:
            raise ValueError(
                f"partial_fit needs an online solver ('sgd', 'averaged-perceptron' or 'passive-aggressive'), "
                f"the solver is {solver.name!r}"
            )
        last = self._snapshot()
        risk = self._learn(X, y, loss, last, **more)
        w0, state = None, {}
        if last is not None:
            w0 = self._carry(self._flat(last), last, risk)
            state = {
                name: self._carry(value, last, risk) if isinstance(value, np.ndarray) and value.size else value
                for name, value in last._online_state.items()
            }
        goes_on = last is not None and isinstance(self.C, str)  # with the C that was found for the first data
        strength = float(last.C_) if goes_on else self._strength(risk)
        result, history = one_pass(risk, solver, penalty, strength, w0, self.random_state, state)
        if result.interrupted:  # the caller's loop over the data must stop too; the model is that of the last call
            raise KeyboardInterrupt
        if last is not None:
            history = {name: [*last.history_.get(name, ()), *values] for name, values in history.items()}
        result.converged = False
        self._finish(Run(risk, Penalty(), solver, result, history))  # weights may still leave 0: none is dropped
        return self

    def _resolve(self) -> tuple[Any, Penalty]:
        """Check the parameters; return loss and penalty."""
        self._check_strength()
        penalty = Penalty.named(self.penalty, self.l1_ratio)
        check_count("patience", self.patience)
        self._check()
        if not _is_auto(self.solver):
            resolve_solver(self.solver)  # an unknown name shows before the data is read
        return self._loss(), penalty

    def _snapshot(self) -> Any:
        """Return the attributes of the fitted model; None where nothing is fitted."""
        return SimpleNamespace(**vars(self)) if hasattr(self, "coef_") else None

    def _finish(self, run: Run) -> None:
        """Store what training left."""
        self._keep(run.result.w)
        self.history_, self.solver_ = run.history, run.solver.name
        self.converged_, self.interrupted_ = run.result.converged, run.result.interrupted
        recorded = len(run.history.get("seconds", ()))
        self.n_iter_ = recorded if run.result.n_iter is None else run.result.n_iter
        self._online_state = run.result.state

    def _keep_given(self, w: np.ndarray, source: str) -> None:
        """Store weights that were not trained, and where they come from in the place of the solver."""
        self._keep(w)
        self.history_, self.solver_, self.n_iter_ = {}, source, 0
        self.converged_, self.interrupted_, self._online_state = True, False, {}

    def _fingerprint(self, risk: Any, strength: float, held_out: tuple[Any, Any] | None) -> str:
        """Return a digest of settings and data: equal runs have equal ones. ``train`` adds those of the solver."""
        parameters = {
            name: value
            for name, value in sorted(self.get_params(deep=False).items())
            if name not in self.may_change and name not in ("solver", "loss", "cost", "C")
        }
        loss = risk.loss.to_json() if hasattr(risk, "loss") else self.loss
        said = (type(self).__name__, _plain(parameters), loss, strength, self._settings(risk), held_out is None)
        parts = risk.digest() if isinstance(risk, PartitionedRisk) else None
        arrays = [] if parts is not None else [*self._arrays(risk.X, risk.y), getattr(risk, "weights", None)]
        if held_out is not None:
            arrays += self._arrays(*held_out)
        return fingerprint(said if parts is None else (said, parts), arrays)

    # ------------------------------------------------------------------ fitted models

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError with the reason why the method is missing, if one is known."""
        reason = type(self).lacks.get(name, type(self).elsewhere.get(name))
        why = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(why if reason is None else f"{type(self).__name__} has no {name}: {reason}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")  # a training that failed leaves its history

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    # ------------------------------------------------------------------ model files

    def _check_complete(self) -> None:
        self._check_is_fitted()

    def _saved_params(self) -> dict[str, Any]:
        """A solver by its name, "auto" for one of the user's own; costs as they are for the labels of the model."""
        params = super()._saved_params()
        if not isinstance(self.solver, str):
            known = SOLVERS.get(self.solver.name) is type(self.solver)
            params["solver"] = self.solver.name if known else "auto"
        if hasattr(self, "classes_"):
            classes = self.classes_.tolist()
            if isinstance(self.loss, Loss):
                params["loss"] = self.loss.for_labels(classes)
            if not isinstance(params.get("cost", ""), str):
                params["cost"] = resolve_cost(self.cost).bind(classes)
        return params

    def _check_state(self) -> None:
        self._resolve()  # parameters from a file are no better than a person's


def where_structure_has(verb: str) -> Callable[[Callable[..., Any]], Any]:
    """Provide a method only if the class does not lack it; otherwise access raises the reason."""

    def has(model: RiskEstimator) -> bool:
        if verb in model.lacks:
            raise AttributeError(f"{type(model).__name__} has no {verb}: {model.lacks[verb]}")
        return True

    return available_if(has)


class StructuredEstimator(RiskEstimator):
    """A :class:`RiskEstimator` over a structure, with the inference methods of the structure.

    A subclass also implements the hooks ``_inputs`` and ``_decode``.
    """

    structure_: Any

    elsewhere: ClassVar[dict[str, str]] = {
        "predict_proba": "it is one distribution a sample, and an output has many parts; predict_marginals gives the "
        "distribution of each part, k_best whole outputs with their probabilities"
    }
    _batch_positions: ClassVar[int] = 8192
    """Positions whose scores are held at once in prediction."""
    _may_be_infeasible: ClassVar[bool] = True
    """Whether constraints can leave an example without an output, so that verbs must look."""

    # ------------------------------------------------------------------ what a subclass writes

    def _inputs(self, X: Any) -> Any:
        """Return new inputs as the structure of the fitted model takes them."""
        raise NotImplementedError

    def _decode(self, outputs: Any, inputs: Any) -> Sequence[Any]:
        """Return outputs of the structure in the form that users write, one for each of the inputs."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what it may replace

    def _structure(self) -> Any:
        """Return the structure with the verbs on batches."""
        self.structure_.threads = thread_count(self.n_jobs)
        return self.structure_

    def _scores(self, inputs: Any) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the inputs and their part scores θ, batch by batch."""
        structure, w = self._structure(), self._flat(self)
        for batch in structure.batches(inputs, self._batch_positions):
            yield batch, structure.scores(w, inputs[batch])

    def _check_feasible(self, scores: np.ndarray, inputs: Any) -> None:
        """Raise ValueError where an example has no allowed output."""
        if np.isneginf(scores).any():
            raise ValueError("the constraints leave no output of an example")

    # ------------------------------------------------------------------ verbs

    @where_structure_has("k_best")
    def k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the k best outputs of each example (or all, if fewer) with log-probabilities, best first."""
        check_count("k", k)
        self._check_is_fitted()
        inputs = self._inputs(X)
        return self._k_best(inputs, self._scores(inputs), k)

    def _k_best(self, inputs: Any, scored: Iterable[tuple[slice, Any]], k: int) -> list[list[tuple[Any, float]]]:
        structure = self._structure()
        out: list[list[tuple[Any, float]]] = []
        for batch, theta in scored:
            outputs, scores = structure.k_best(theta, k)
            self._check_feasible(scores[:, 0], inputs)
            scores = scores - structure.log_partition(theta)[:, None]
            ranks = [self._decode(one, inputs[batch]) for one in outputs]
            for i in range(len(theta)):
                out.append([(ranks[r][i], float(scores[i, r])) for r in range(k) if scores[i, r] > -np.inf])
        return out

    @where_structure_has("sample")
    def sample(self, X: Any, n_samples: int = 1) -> list[list[Any]]:
        """Return ``n_samples`` outputs for each example, drawn from p(y | x)."""
        check_count("n_samples", n_samples)
        self._check_is_fitted()
        inputs = self._inputs(X)
        return self._sample(inputs, self._scores(inputs), n_samples)

    def _sample(self, inputs: Any, scored: Iterable[tuple[slice, Any]], n_samples: int) -> list[list[Any]]:
        structure = self._structure()
        random = np.random.default_rng(check_random_seed(self.random_state))
        out: list[list[Any]] = []
        for batch, theta in scored:
            if self._may_be_infeasible:
                self._check_feasible(structure.log_partition(theta), inputs)
            draws = [self._decode(one, inputs[batch]) for one in structure.sample(theta, n_samples, random)]
            out.extend([draw[i] for draw in draws] for i in range(len(theta)))
        return out

    @where_structure_has("log_likelihood")
    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log p(y | x) of each example; if y is partly known, of all outputs that agree with the known part."""
        self._check_is_fitted()
        inputs, truth = self._read(X, y)
        structure, out = self._structure(), np.empty(len(inputs))
        for batch, theta in self._scores(inputs):
            log_z, known = structure.log_partition(theta), truth[batch]
            self._check_feasible(log_z, inputs)
            if structure.is_partial(known):
                value = structure.log_partition(structure.restrict(theta, known))
            else:
                value = structure.score(theta, known)
            out[batch] = value - log_z
        return out

    @where_structure_has("entropy")
    def entropy(self, X: Any) -> np.ndarray:
        """Return the entropy of p(y | x) of each example in nats, a measure of uncertainty."""
        self._check_is_fitted()
        inputs, structure, out = self._inputs(X), self._structure(), [np.zeros(0)]
        for _, theta in self._scores(inputs):
            if self._may_be_infeasible:
                self._check_feasible(structure.log_partition(theta), inputs)
            out.append(structure.entropy(theta))
        return np.concatenate(out)

    # ------------------------------------------------------------------ looking inside

    _weighs_features = True
    _explains_decisions = True

    def _weight_name(self, k: int) -> str:
        """Return what the weight with number k in the layout of the solver stands for."""
        return f"w[{k}]"

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        self._check_is_fitted()
        return self._flat(self), self._weight_name

    def _ranked(self, x: Any) -> list[Any]:
        """Return the two best outputs of an input, or one where there is no other, as users write them."""
        return [item[0] for item in self.k_best([x], 2)[0]]

    def _encoded_outputs(self, x: Any, outputs: list[Any]) -> tuple[Any, Any]:
        """Return an input, once for each output, and the outputs as the structure takes them."""
        return self._read([x] * len(outputs), outputs)

    def _constant_between(self, y: Any, z: Any) -> float:
        """Return what scores differ by beside ⟨w, Φ(x, y) − Φ(x, z)⟩."""
        return 0.0

    def _terms(self, x: Any, output: Any, against: Any) -> Terms:
        self._check_is_fitted()
        ranked = [] if output is not None and against is not None else self._ranked(x)
        if output is None and not ranked:
            raise ValueError("this input has no output to explain")
        outputs = [ranked[0] if output is None else output, *(ranked if against is None else [against])]
        inputs, encoded = self._encoded_outputs(x, outputs)
        structure, w = self._structure(), self._flat(self)
        y = encoded[:1]
        others = [j for j in range(1, len(outputs)) if not structure.equal(y, encoded[j : j + 1])[0]]
        if not others:
            problem = (
                "there is no other output to compare with" if against is None else "output and against are the same"
            )
            raise ValueError(f"{problem}: name another one as against=")
        z = encoded[others[0] : others[0] + 1]
        row = structure.difference(inputs[:1], y, z)
        return Terms(
            outputs[0], outputs[others[0]], row.indices, row.data, w[row.indices] * row.data,
            self._weight_name, self._constant_between(y, z),
        )  # fmt: skip

    def score(self, X: Any, y: Any) -> float:
        """Return the score of predictions; higher is better."""
        self._check_is_fitted()
        inputs, truth = self._read_to_compare(X, y)
        self._check_comparable(truth)
        return self._quality(self._flat(self), inputs, truth)


def _is_auto(solver: Any) -> bool:
    return isinstance(solver, str) and solver == "auto"


def _pair(dev: Any, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    if not isinstance(dev, (tuple, list)) or len(dev) not in sizes:
        raise ValueError("dev must be a tuple (X, y) of held-out data")
    return tuple(dev)


def _plain(value: Any) -> Any:
    """Parameters as data whose ``repr`` is the same in every process; others show in the data they make."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return [(_plain(name), _plain(item)) for name, item in value.items()]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.shape, fingerprint(None, [value])
    return value.to_json() if hasattr(value, "to_json") else type(value).__name__


class NeighbouringLabels:
    """Transition weights, for estimators whose structure has them."""

    structure_: Any
    coef_: Any
    _check_is_fitted: Any

    @property
    def transitions_(self) -> np.ndarray:
        """Return the transition weights, from row to column; −inf if forbidden."""
        self._check_is_fitted()
        return np.asarray(self.structure_.shared_scores(self.coef_)[0])

    @property
    def start_(self) -> np.ndarray:
        """Return the weights of the first label."""
        self._check_is_fitted()
        return np.asarray(self.structure_.shared_scores(self.coef_)[1])

    @property
    def end_(self) -> np.ndarray:
        """Return the weights of the last label."""
        self._check_is_fitted()
        return np.asarray(self.structure_.shared_scores(self.coef_)[2])
