"""Learning to label the nodes of graphs: conditional random fields, margins and their blends on any graph.

    minimise  penalty(w) + C Σ_i loss(x_i, y_i; w),   score(x, y) = Σ_v ⟨w_{y_v}, x_v⟩ + Σ_uv ⟨w_{y_u y_v}, x_uv⟩

If inference is not exact, the loss is that of the approximation, and the model raises a warning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from mercer._estimator import Outputs
from mercer._state.saved import Count, Fields, Flag, Floats, Nested, Number, Text
from mercer._validation import check_choice, hyphenated, thread_count
from mercer._warnings import warn_caller
from mercer.data.labels import LabelIndex, TagSequences
from mercer.exceptions import ApproximateInferenceWarning
from mercer.inference.batched import INFERENCE
from mercer.labeling.baselines import Piecewise, PseudoLikelihood
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import Run, StructuredEstimator
from mercer.learning.losses import Loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Sampled, Solver
from mercer.learning.solvers.sampled import SAMPLED
from mercer.learning.strength import check_strength, resolve_strength
from mercer.structures.costs import Cost, resolve_cost
from mercer.structures.graph_inputs import GraphInputs
from mercer.structures.graph_labels import EDGE_WEIGHTS, GraphLabels, GraphScores

__all__ = ["ApproximateInferenceWarning", "GraphLabeler"]

TRAINING = ("joint", "pseudo-likelihood", "piecewise")
_PREDICT_NODES = 1 << 16


class GraphLabeler(StructuredEstimator):
    """Label the nodes of graphs; neighbours depend on each other.

    Parameters
    ----------
    loss : {"log", "hinge", "squared-hinge", "slack", "softmax-margin", "hybrid", "adaptive-hybrid", \
"relative-margin", "circle"} or Loss, default="log"
        ``"log"`` is a conditional random field, ``"hinge"`` a max-margin Markov network (structured support vector
        machine), ``"hybrid"`` a blend; see :mod:`mercer.learning`.
    inference : {"auto", "exact", "bp", "trw", "mean-field", "cuts", "expansion", "swap", "lp", "dual", "icm"}, \
default="auto"
        See :class:`mercer.structures.GraphLabels`. ``inference_`` holds the choice of "auto".
    solver : str or Solver, default="auto"
        lbfgs for smooth losses (owlqn with an ℓ1 penalty), bcfw for margins, bmrm for the hybrid. For ``loss="log"``
        with infeasible sums also ``"pcd"``, ``"psmc"``, ``"cd"``, ``"smc"``, ``"tempered"``,
        ``"parallel-tempering"``, ``"mcmcml"`` and ``"particle-filter"``: learners that sample
        (:class:`mercer.learning.solvers.Sampled`).
    C : float or "auto", default="auto"
        Weight of the summed loss against the penalty; smaller values regularise more. ``"auto"``: 1 for losses with a
        likelihood (log, softmax-margin, hybrid); for margin losses 2 / mean ‖x‖² over the nodes, times the mean cost of
        a wrong label (see :mod:`mercer.learning.strength`). The number is stored in ``C_``.
    edge_weights : {"symmetric", "directed", "potts", "attractive", "none"}, default="symmetric"
        Weights of pairs of neighbouring labels; see :class:`mercer.structures.GraphLabels`. ``"none"``: a classifier of
        single nodes.
    training : {"joint", "pseudo-likelihood", "piecewise"}, default="joint"
        "pseudo-likelihood" and "piecewise" are baselines that train without inference; they need ``loss="log"``.
    cost : {"hamming", "zero-one"}, mapping, array, callable or Cost, default="hamming"
        Δ(y, z) of the margin losses.
    bias : bool, default=True
        Adds a constant to the features of nodes.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"`` or ``"sgd"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(…, dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; new labels and edge types are allowed, new features are not.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, Generator or None
        Seed of solvers that draw at random, and of :meth:`sample`.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    classes_ : array of labels, sorted
    coef_ : array, the weight vector; ``node_weights_`` and ``pair_weights_`` show its parts
    inference_ : str, the methods for sums and best labellings in training, and the reason
    exact_ : bool, whether all inference that training used was exact
    n_features_in_, n_edge_features_ : int
    history_ : dict of lists, one value per iteration
    solver_ : str
    C_ : float, the weight of the loss that was used
    converged_, interrupted_ : bool
    n_iter_ : int

    Examples
    --------
    Image regions that are more informative together than alone:

    >>> from mercer.datasets import make_regions
    >>> from mercer.labeling import GraphLabeler
    >>> task = make_regions(32)
    >>> X, y = task.X, task.y
    >>> alone = GraphLabeler(edge_weights="none", C=0.1).fit(X[:24], y[:24])
    >>> together = GraphLabeler("hinge", C=0.1).fit(X[:24], y[:24])
    >>> together.score(X[24:], y[24:]) > alone.score(X[24:], y[24:]) + 0.1
    True
    >>> together.inference_
    'sums: junction-tree (exact), best: junction-tree (exact): the cliques are small'
    """

    _output_form = Outputs("labels", ("token_accuracy", "sequence_accuracy"))

    coef_: np.ndarray
    structure_: GraphLabels
    C_: float

    _batch_positions = _PREDICT_NODES
    _may_be_infeasible = False

    saved = StructuredEstimator.saved | Fields(
        _labels=Nested(LabelIndex),
        n_edge_features_=Count(),
        structure_=Nested(GraphLabels),
        coef_=Floats("structure_.n_weights"),
        inference_=Text(),
        exact_=Flag(),
        C_=Number(0),
    )

    def __init__(
        self,
        loss: str | Loss = "log",
        inference: str = "auto",
        solver: str | Solver = "auto",
        C: float | str = "auto",
        *,
        edge_weights: str = "symmetric",
        training: str = "joint",
        cost: Any = "hamming",
        bias: bool = True,
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.inference = inference
        self.solver = solver
        self.C = C
        self.edge_weights = edge_weights
        self.training = training
        self.cost = cost
        self.bias = bias
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Sequence[Any],
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Sequence[Any]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> GraphLabeler:
        """Train on graphs and the labels of their nodes.

        Parameters
        ----------
        X : list of graphs, GraphInputs, or mercer.data.Graphs with node attributes
            Each graph (node features, edges), (…, edge features) or (…, edge features, edge types); edges are pairs of
            node numbers of the graph, features matrices with a row for each node or edge.
        y : list of lists of labels
            ``None`` for an unknown label, a set if it is one of several.
        sample_weight : array of a number for each graph, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best accuracy on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Sequence[Any]) -> GraphLabeler:
        """Make one pass of an online solver over more graphs; new labels and edge types are allowed.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y)

    def _check_strength(self) -> None:
        check_strength(self.C)

    def _check(self) -> None:
        check_choice("inference", hyphenated(self.inference), INFERENCE)
        check_choice("edge_weights", self.edge_weights, EDGE_WEIGHTS)
        check_choice("training", self.training, TRAINING)

    def _cost(self) -> Cost:
        return resolve_cost(self.cost)

    def _loss(self) -> Loss:
        loss = super()._loss()
        if self.training == "joint":
            return loss
        if loss.name != "log":
            raise ValueError(f"training={self.training!r} is a likelihood: it goes with loss='log', not {loss.name!r}")
        return PseudoLikelihood() if self.training == "pseudo-likelihood" else Piecewise()

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any) -> Risk:
        inputs = self._learn_inputs(X, last)
        if not len(inputs) or not inputs.nodes.shape[0]:
            raise ValueError("nothing to learn from: there are no graphs, or none has a node")
        self._labels, tags = self._learn_labels(y, inputs, [] if last is None else last._labels.classes)
        self.classes_ = self._labels.array
        self.n_edge_features_ = inputs.n_edge_features
        self.structure_ = self._make_structure(max(inputs.n_types, 1 if last is None else last.structure_.n_types))
        risk = Risk(self.structure_, loss.for_labels(self._labels.classes), inputs, tags)
        self._say_what_is_approximate(inputs, risk.loss)
        return risk

    def _strength(self, risk: Risk) -> float:
        self.C_ = resolve_strength(self.C, risk.loss, risk.X.nodes, risk.y, len(self._labels))
        return self.C_

    def _while_training(self) -> AbstractContextManager[Any]:
        return self.structure_.remembering()

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        place = np.array([self._labels.classes.index(c) for c in last._labels.classes])
        try:
            return self.structure_.carry_over(w, last.structure_, place)
        except ValueError as error:
            raise ValueError(f"warm_start: {error}") from None

    def _keep(self, w: np.ndarray) -> None:
        self.coef_ = self.structure_.feasible(w)

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        if not run.result.interrupted:
            self._compare(run.risk.X, run.risk.y, run.held_out)
        self._warn_unconverged("training")

    def _read(self, X: Any, y: Any) -> tuple[GraphInputs, TagSequences]:
        inputs = self._inputs(X)
        return inputs, self._encode(self._labels, y, inputs)

    def _read_to_compare(self, X: Any, y: Any) -> tuple[GraphInputs, TagSequences]:
        inputs = self._inputs(X)
        return inputs, self._encode(self._with_unseen(y), y, inputs)

    def _check_comparable(self, y: TagSequences) -> None:
        if not (y.labels >= 0).any():
            raise ValueError("no known label to compare with")

    def _quality(self, w: np.ndarray, X: GraphInputs, y: TagSequences) -> float:
        known = y.labels >= 0
        return float((self._argmax(w, X)[known] == y.labels[known]).mean())

    def _arrays(self, X: GraphInputs, y: TagSequences) -> Iterable[np.ndarray | None]:
        nodes = [X.nodes.data, X.nodes.indices, X.nodes.indptr] if issparse(X.nodes) else [X.nodes]
        return [*nodes, X.offsets, X.edges, X.edge_features, X.edge_types, y.labels, y.allowed]

    def _settings(self, risk: Risk) -> Any:
        return self._labels.classes

    def _decode(self, outputs: np.ndarray, inputs: GraphInputs) -> Sequence[Any]:
        return self._labels.decode(outputs, inputs.offsets)

    def _compare(
        self, inputs: GraphInputs, tags: TagSequences, held_out: tuple[GraphInputs, TagSequences] | None
    ) -> None:
        """Compare the new model with a simpler one."""

    def _warn_unconverged(self, when: str) -> None:
        """Warns of runs of inference without an end since the last call."""
        structure = self.structure_
        missed, change = structure.unconverged, structure.residual
        structure.unconverged, structure.residual = 0, 0.0
        if missed:
            advice = (
                "inference='trw' settles more readily"
                if structure.inference == "bp"
                else "a lower C makes neighbours depend less on each other, which settles sooner"
            )
            warn_caller(
                f"{missed} {'run' if missed == 1 else 'runs'} of inference did not settle in {when}: beliefs still "
                f"changed by up to {change:.2g} ({self.inference_}); {advice}",
                ApproximateInferenceWarning,
            )

    def _make_structure(self, n_types: int) -> GraphLabels:
        return GraphLabels(
            len(self._labels),
            self.n_features_in_ + bool(self.bias),
            n_edge_features=self.n_edge_features_,
            n_types=n_types,
            edge_weights=self.edge_weights,
            inference=self.inference,
            threads=thread_count(self.n_jobs),
        )

    def _learn_labels(self, y: Any, inputs: GraphInputs, more: Sequence[Any]) -> tuple[LabelIndex, TagSequences]:
        labels = LabelIndex.from_sequences(y)
        if more:
            try:
                labels = LabelIndex(sorted({*labels.classes, *more}))
            except TypeError:
                message = "warm_start: labels must be all strings or all numbers, as in the last fit"
                raise TypeError(message) from None
        if len(labels) < 2:
            raise ValueError(
                f"need at least two different labels to learn from, found {len(labels)}"
                + (f": {labels.classes[0]!r}" if len(labels) else " (all are None)")
            )
        return labels, labels.encode(y, inputs.lengths)

    def _say_what_is_approximate(self, inputs: GraphInputs, loss: Loss) -> None:
        plan = self.structure_.plan(inputs)
        self.inference_ = str(plan)
        exact = {
            "log": plan.exact_sums, "softmax-margin": plan.exact_sums, "hybrid": plan.exact_sums and plan.exact_maxima,
            "adaptive-hybrid": plan.exact_sums and plan.exact_maxima, "circle": plan.exact_sums,
            "pseudo-likelihood": True, "piecewise": True,
        }  # fmt: skip
        self.exact_ = exact.get(loss.name, plan.exact_maxima)
        if self.solver in SAMPLED or isinstance(self.solver, Sampled):
            self.exact_ = False
            return
        if not self.exact_:
            warn_caller(
                f"the loss {loss.name!r} is minimised with approximate inference ({self.inference_})",
                ApproximateInferenceWarning,
            )

    # ------------------------------------------------------------------ examples in parts

    _surveys = True

    def _survey(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        inputs = GraphInputs.from_list(X)
        return {
            "classes": LabelIndex.from_sequences(y).classes,
            "n_features": inputs.n_features,
            "n_edge_features": inputs.n_edge_features,
            "n_types": inputs.n_types,
            "sample": (inputs[:1], y[:1]),
        }

    def _join(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        for name in ("n_features", "n_edge_features"):
            if left[name] != right[name]:
                what = name.removeprefix("n_").replace("_", " ")
                raise ValueError(f"partitions have different numbers of {what}: {left[name]} and {right[name]}")
        classes = LabelIndex(sorted({*left["classes"], *right["classes"]})).classes
        return {**left, "classes": classes, "n_types": max(left["n_types"], right["n_types"])}

    def _settle(self, survey: dict[str, Any], last: Any) -> None:
        if last is not None:
            raise ValueError("warm_start is not for examples in partitions")
        if len(survey["classes"]) < 2:
            classes = survey["classes"]
            raise ValueError(f"need at least two different labels to learn from, found {len(classes)}")
        self._labels = LabelIndex(survey["classes"])
        self.classes_ = self._labels.array
        self.n_features_in_, self.n_edge_features_ = survey["n_features"], survey["n_edge_features"]
        self.structure_ = self._make_structure(max(survey["n_types"], 1))
        self._say_what_is_approximate(self._with_bias(survey["sample"][0]), self._loss())

    def _local(self, X: Any, y: Any, loss: Loss) -> Risk:
        return Risk(self.structure_, loss, *self._read(X, y))

    def _score_units(self, y: Any) -> int:
        """Nodes whose label is known."""
        return sum(label is not None and not isinstance(label, (set, frozenset)) for one in y for label in one)

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[list[Any]]:
        """Return the best labelling of each graph found by inference.

        Parameters
        ----------
        X : graphs
            As in :meth:`fit`.

        Returns
        -------
        list of lists of labels, one for each node
        """
        inputs = self._fitted(X)
        return self._labels.decode(self._argmax(self.coef_, inputs), inputs.offsets)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """Return p(label of a node | x): an array (nodes, labels) for each graph, columns as in ``classes_``."""
        inputs = self._fitted(X)
        parts = [self.structure_.marginals(theta).nodes for theta in self._theta(self.coef_, inputs)]
        self._warn_unconverged("prediction")
        return _split(np.concatenate(parts) if parts else np.zeros((0, len(self._labels))), inputs)

    def k_best(self, X: Any, k: int) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings that inference finds for each graph, with their log-probabilities, best first.

        They are exact if best labellings and sums are (see ``inference_``).
        """
        outputs = super().k_best(X, k)
        self._warn_unconverged("k_best")
        return outputs

    def sample(self, X: Any, n_samples: int = 1) -> list[list[list[Any]]]:
        """Return labellings drawn from p(y | x): ``n_samples`` for each graph."""
        return super().sample(X, n_samples)

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log p(y | x) of each graph (with the plan's log Z); unknown labels are summed over."""
        values = super().log_likelihood(X, y)
        self._warn_unconverged("log_likelihood")
        return values

    def entropy(self, X: Any) -> np.ndarray:
        """Return the entropy of p(y | x) of each graph in nats, computed by inference."""
        entropies = super().entropy(X)
        self._warn_unconverged("entropy")
        return entropies

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy over nodes with a known label."""
        return super().score(X, y)

    # ------------------------------------------------------------------ looking inside

    @property
    def node_weights_(self) -> np.ndarray:
        """Weights of node features (features × labels); the bias is the last row."""
        self._check_is_fitted()
        return self.structure_.split(self.coef_)[0]

    @property
    def pair_weights_(self) -> np.ndarray:
        """Weights of pairs of neighbouring labels (types × edge features × labels × labels)."""
        self._check_is_fitted()
        return self.structure_.pair_weights(self.coef_)

    def _weight_labels(self) -> list[Any]:
        self._check_is_fitted()
        return list(self._labels.classes)

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        return self.node_weights_[:, self._labels.classes.index(label)], self._column_name

    def _column_name(self, column: int) -> str:
        return "bias" if column == self.n_features_in_ else f"x{column}"

    def _weight_name(self, k: int) -> str:
        s, labels = self.structure_, [str(label) for label in self._labels.classes]
        if k < s.slices["edges"].start:
            return f"{self._column_name(k // len(labels))}: {labels[k % len(labels)]}"
        shape = s.n_types, s.n_edge_features, -1
        place = np.arange(s.n_weights - s.slices["edges"].start).reshape(shape)
        kind, feature, pair = (int(i[0]) for i in np.nonzero(place == k - s.slices["edges"].start))
        pairs = [divmod(int(p), len(labels)) for p in np.flatnonzero(s.kinds_of_pairs[:, pair])]
        first, second = pairs[0]
        shared = len(pairs) == len(labels) and all(a == b for a, b in pairs)
        named = "equal labels" if shared else f"{labels[first]} – {labels[second]}"
        prefix = f"type {kind}, " if s.n_types > 1 else ""
        return f"{prefix}edge {self._edge_name(feature)}: {named}"

    def _edge_name(self, feature: int) -> str:
        return f"e{feature}"

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        super()._check_state()
        structure, self.classes_ = self.structure_, self._labels.array
        n_features = self.n_features_in_ + bool(self.bias)
        sizes = structure.n_labels, structure.n_features, structure.n_edge_features
        if sizes != (len(self._labels), n_features, self.n_edge_features_):
            raise ValueError("structure_ is for other labels or features than those of the model")

    # ------------------------------------------------------------------ parts

    def _learn_inputs(self, X: Any, last: Any) -> GraphInputs:
        inputs = GraphInputs.from_list(X)
        self.n_features_in_ = inputs.n_features
        return self._with_bias(inputs)

    def _inputs(self, X: Any) -> GraphInputs:
        inputs = GraphInputs.from_list(X)
        if len(inputs) and inputs.n_features != self.n_features_in_:
            raise ValueError(f"X has {inputs.n_features} node features, the model has {self.n_features_in_}")
        return self._with_bias(inputs)

    def _with_bias(self, inputs: GraphInputs) -> GraphInputs:
        if not self.bias:
            return inputs
        ones = np.ones((inputs.nodes.shape[0], 1))
        if issparse(inputs.nodes):
            return inputs.with_features(csr_array(hstack([inputs.nodes, ones], format="csr")))
        return inputs.with_features(np.hstack([inputs.nodes, ones]))

    def _encode(self, labels: LabelIndex, y: Any, inputs: GraphInputs) -> TagSequences:
        return labels.encode(y, inputs.lengths)

    def _with_unseen(self, y: Any) -> LabelIndex:
        return self._labels.with_unseen(y)

    def _fitted(self, X: Any) -> GraphInputs:
        self._check_is_fitted()
        self.structure_.threads = thread_count(self.n_jobs)
        return self._inputs(X)

    def _theta(self, w: np.ndarray, inputs: GraphInputs) -> Iterator[GraphScores]:
        for batch in self.structure_.batches(inputs, _PREDICT_NODES):
            yield self.structure_.scores(w, inputs[batch])

    def _argmax(self, w: np.ndarray, inputs: GraphInputs) -> np.ndarray:
        parts = [self.structure_.argmax(theta)[0] for theta in self._theta(w, inputs)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _split(stacked: np.ndarray, inputs: GraphInputs) -> list[np.ndarray]:
    return [stacked[a:b] for a, b in pairwise((inputs.offsets - inputs.offsets[0]).tolist())]
