"""Discriminative sequence labelling: a chain structure, any loss, any solver.

    minimise  penalty(w) + C Σ_i loss(x_i, y_i; w),   p(y | x) = exp score(x, y) / Z(x)

With the log loss this is a conditional random field. CRFsuite's c2 corresponds to C = 1 / (2 c2), its c1 to
penalty="l1" with C = 1 / c1; Wapiti's rho2 to C = 1 / rho2.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer._estimator import Outputs
from mercer._state.saved import Count, Fields, Floats, Nested, Number, Optional
from mercer._validation import check_choice, check_count, thread_count
from mercer.data.features import FeatureIndex, NamedSequences, as_sequences
from mercer.data.labels import LabelIndex, TagSequences
from mercer.data.sequences import Sequences
from mercer.data.templates import Template
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import NeighbouringLabels, Run, StructuredEstimator
from mercer.learning.losses import Loss
from mercer.learning.risk import Risk
from mercer.learning.solvers import Solver
from mercer.learning.strength import check_strength, resolve_strength
from mercer.structures import patterns
from mercer.structures.chain import Chain, ChainScores
from mercer.structures.constraints import Constraints
from mercer.structures.costs import Cost, resolve_cost

_DECODED = 64  # times as many positions: decoding keeps no scores; Python looks for Ctrl-C between calls


class Tagger(NeighbouringLabels, StructuredEstimator):
    """Label the positions of sequences.

    Parameters
    ----------
    loss : {"log", "hinge", "squared-hinge", "slack", "softmax-margin", "hybrid", "adaptive-hybrid", \
"relative-margin", "circle"} or Loss, default="log"
        ``"log"`` is a conditional random field, ``"hinge"`` a structured support vector machine. Pass an object for a
        configured loss: ``Hybrid(alpha=0.3)``, ``RelativeMargin(B=5.0)``; see :mod:`mercer.learning`.
    solver : {"auto", "lbfgs", "owlqn", "sgd", "averaged-perceptron", "passive-aggressive", "bmrm", "cutting-plane", \
"bcfw", "subgradient", "marginal-dual"} or Solver, default="auto"
        ``"auto"``: lbfgs for smooth losses (owlqn with an ℓ1 penalty), bcfw for hinge, squared-hinge and slack,
        cutting-plane for relative-margin, bmrm for hybrid. The perceptron and passive-aggressive have their own update
        rule and ignore loss and penalty (passive-aggressive bounds its steps by C).
    C : float or "auto", default="auto"
        Weight of the summed loss against the penalty: ``penalty(w) + C · Σ loss``. Smaller values regularise more.
        ``"auto"``: 1 for losses with a likelihood (log, softmax-margin, hybrid); for margin losses 2 / mean ‖x‖² over
        the positions, times the mean cost of a wrong label, so that units of features and costs do not matter (see
        :mod:`mercer.learning.strength`). The number is stored in ``C_``.
    cost : {"hamming", "zero-one"}, mapping, array, callable or Cost, default="hamming"
        Δ(y, z) of the margin losses: number of wrong labels, 1 for any error, weights by label, a matrix
        (true × predicted), a function of two labels, or an object such as :class:`mercer.structures.Taxonomy`.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or ``l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖²``. ℓ1 needs ``"owlqn"`` or ``"sgd"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``, 0 to 1.
    features : {"vocabulary", "hashing"}, default="vocabulary"
        How named features (dicts, strings) get columns: those of the training data, sorted, or hashed to ``2**n_bits``.
    n_bits : int, default=20
        With ``features="hashing"``: the logarithm of the number of columns, 1 to 30.
    template : Template or None
        If given, X holds sentences of column tuples (see :func:`mercer.data.read_conll`) and the template makes the
        features.
    transitions : {"dense", "observed", "features"}, default="dense"
        Weights for all pairs of neighbouring labels, for those seen in training only, or for all pairs and
        additionally for (feature, pair): observation-dependent transitions, from the edge features of X if it has
        some and from all features otherwise.
    weights : {"observed", "all"}, default="observed"
        With sparse features: weights for the (feature, label) pairs that occur in training (a feature that occurs with
        half of the labels gets all labels), or for all pairs.
    constraints : Constraints or None
        Forbidden labellings, in training and prediction.
    max_iter, tol : int and float or None
        None: the solver's own: 500 iterations and 1e-4 for lbfgs and owlqn, 50 epochs for sgd, 20 for the perceptron
        and passive-aggressive. bmrm, cutting-plane, bcfw and subgradient stop when the certified relative gap between
        objective and dual bound is at most ``tol`` (1e-3). lbfgs and owlqn stop when the gradient's norm is at most
        ``tol`` of that at w = 0 and five iterations have lowered the objective by a relative amount of at most ``tol``.
    patience : int, default=10
        With ``fit(..., dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; new features and labels are allowed.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw at random, and of :meth:`sample`.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    classes_ : array of labels, sorted
    n_features_in_ : int
    n_columns_ : int or None
        With ``template``: columns of a token in the training data.
    coef_ : array, the weight vector; see :attr:`structure_` for its layout
    transitions_ : array of shape (n_labels, n_labels), transition weights, −inf where forbidden
    start_, end_ : arrays of shape (n_labels,)
    history_ : dict of lists: objective, gradient_norm, passes, seconds, …, one value per iteration; margin solvers add
        primal, dual and gap. After a first fit that failed: the record until then
    solver_ : str, the solver that ran
    C_ : float, the weight of the loss that was used
    converged_ : bool, whether training ended regularly (converged, stopped early or completed all epochs)
    interrupted_ : bool, whether Ctrl-C ended it
    n_iter_ : int

    References
    ----------
    .. [Lafferty2001] J. Lafferty, A. McCallum and F. Pereira. Conditional random fields: probabilistic models for
       segmenting and labeling sequence data. ICML, 2001.

    Examples
    --------
    >>> from mercer.tagging import Tagger
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = Tagger(C=10.0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    [['DET', 'NOUN']]
    >>> tagger.top_features(1, label="DET")[0][0]
    'word=a'
    """

    _output_form = Outputs("labels", ("token_accuracy", "sequence_accuracy", "span_f1"))

    coef_: np.ndarray
    structure_: Chain
    C_: float

    _observations = "sequences"
    saved = StructuredEstimator.saved | Fields(
        _labels=Nested(LabelIndex),
        index_=Optional(Nested(FeatureIndex)),
        edge_index_=Optional(Nested(FeatureIndex)),
        n_columns_=Optional(Count()),
        structure_=Nested(Chain),
        coef_=Floats("structure_.n_weights"),
        C_=Number(0),
    )

    def __init__(
        self,
        loss: str | Loss = "log",
        solver: str | Solver = "auto",
        C: float | str = "auto",
        *,
        cost: Any = "hamming",
        penalty: str | None = "l2",
        l1_ratio: float = 0.5,
        features: str = "vocabulary",
        n_bits: int = 20,
        template: Template | None = None,
        transitions: str = "dense",
        weights: str = "observed",
        constraints: Constraints | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.C = C
        self.cost = cost
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.features = features
        self.n_bits = n_bits
        self.template = template
        self.transitions = transitions
        self.weights = weights
        self.constraints = constraints
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
        y: Sequence[Sequence[Any]] | None = None,
        sample_weight: Any = None,
        *,
        dev: tuple[Any, Sequence[Sequence[Any]]] | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Tagger:
        """Train on sequences and their labels.

        Parameters
        ----------
        X : list of sequences, or Sequences
            Each a list of dicts, of lists of strings or of strings, a 2-D array or a sparse matrix; or an Arrow
            column; with ``template`` sentences of column tuples. A :class:`~mercer.data.Store` or
            :class:`~mercer.data.Partitions`, which hold y too, or a Dask bag with one for y.
        y : list of lists of labels
            ``None`` for an unknown label, a set if it is one of several.
        sample_weight : array of a number for each sequence, optional
            Factors of C, not negative; not for the online solvers.
        dev : (X, y), optional
            Held-out data: the weights with the best accuracy on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again (with
            the same data, held-out data, settings and starting weights).

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Sequence[Sequence[Any]], classes: Sequence[Any] | None = None) -> Tagger:
        """Make one pass of an online solver over more data; new features and labels are allowed.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        classes : list of labels, optional
            All labels, if known in advance: the model then need not be rebuilt when a new label appears.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, classes=classes)

    def _check_strength(self) -> None:
        check_strength(self.C)

    def _check(self) -> None:
        check_choice("features", self.features, ("vocabulary", "hashing"))
        check_choice("transitions", self.transitions, ("dense", "observed", "features"))
        check_choice("weights", self.weights, ("observed", "all"))
        check_count("n_bits", self.n_bits)
        if self.n_bits > 30:
            raise ValueError(f"n_bits must be at most 30, got {self.n_bits}")
        if self.constraints is not None and not isinstance(self.constraints, Constraints):
            raise TypeError(f"constraints must be a Constraints object or None, got {type(self.constraints).__name__}")
        if self.template is not None and not isinstance(self.template, Template):
            raise TypeError(f"template must be a Template or None, got {type(self.template).__name__}")
        if self.template is not None and self.template.edge_patterns and self.transitions != "features":
            raise ValueError("the template has bigram features (B…%x[…]): they need transitions='features'")

    def _cost(self) -> Cost:
        return resolve_cost(self.cost)

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any, classes: Sequence[Any] | None = None) -> Risk:
        """X and y as arrays, the label and feature indices, and the structure that fits them."""
        n_bits = self.n_bits if self.features == "hashing" else 0
        if last is not None and last.index_ is not None:
            index, edge_index = copy.copy(last.index_), copy.copy(last.edge_index_ or FeatureIndex())
        else:
            index, edge_index = FeatureIndex(n_bits), FeatureIndex(n_bits)
        sequences = as_sequences(X, index, template=self.template, edge_index=edge_index, learn=True)
        if last is not None and (
            (sequences.index is None) != (last.index_ is None) or (isinstance(X, Sequences) and X.index != last.index_)
        ):
            raise ValueError("X has other features than the model to go on from (names for numbers, or other names)")
        if not len(sequences):
            raise ValueError("no sequences to learn from: X is empty")
        if not sequences.n_positions:
            raise ValueError("nothing to learn from: all sequences are empty")
        if last is not None and sequences.index is None and sequences.n_features != last.n_features_in_:
            raise ValueError(f"X has {sequences.n_features} features, the model has {last.n_features_in_}")
        tags_seen = LabelIndex.from_sequences(y).classes
        if last is not None:
            tags_seen = sorted({*tags_seen, *last._labels.classes})
        if classes is not None:
            unknown = set(tags_seen) - set(classes)
            if unknown:
                raise ValueError(f"y holds the label {sorted(unknown)[0]!r}, which is not in classes")
            tags_seen = sorted(classes)
        if len(tags_seen) < 2:
            raise ValueError(
                f"need at least two different labels to learn from, found {len(tags_seen)}"
                + (f": {tags_seen[0]!r}" if tags_seen else " (all are None)")
            )
        labels = LabelIndex(tags_seen)
        tags = labels.encode(y, sequences.lengths)
        if sequences.offsets[0] != 0:
            tags = TagSequences(tags.labels, sequences.offsets, tags.allowed, tags.partial)
        sequences = self._with_edges(sequences)
        self._labels, self.index_, self.edge_index_ = labels, sequences.index, sequences.edge_index
        self.classes_ = labels.array
        self.n_features_in_ = sequences.n_features
        self.n_columns_ = None if self.template is None else _n_columns(X)
        self.structure_ = self._make_structure(sequences, tags, last)
        return Risk(self.structure_, loss.for_labels(labels.classes), sequences, tags)

    # ------------------------------------------------------------------ examples in parts

    _surveys = True

    def _survey(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        n_bits = self.n_bits if self.features == "hashing" else 0
        if isinstance(X, NamedSequences) and n_bits:
            raise ValueError("the features have names: write the store with n_bits for features='hashing'")
        index, edge_index = FeatureIndex(n_bits), FeatureIndex(n_bits)
        sequences = self._with_edges(as_sequences(X, index, template=self.template, edge_index=edge_index, learn=True))
        labels = LabelIndex.from_sequences(y)
        tags = labels.encode(y, sequences.lengths)
        C = len(labels)
        pairs = _label_pairs(tags.labels, sequences, C)
        nodes = None if self.weights == "all" else patterns.seen(sequences.rows, tags.labels, C)
        edges = None if sequences.edges is None else patterns.seen(sequences.edges, pairs, C * C)
        trained = np.flatnonzero(np.bincount(pairs[pairs >= 0], minlength=C * C)) if C else np.zeros(0, np.int64)
        return {
            "classes": labels.classes,
            "names": [_names(sequences.index), _names(sequences.edge_index if sequences.edges is not None else None)],
            "widths": [sequences.n_features, sequences.n_edge_features],
            "hashed": sequences.index is not None and sequences.index.n_bits > 0,
            "n_columns": None if self.template is None else _n_columns(X),
            "seen": [nodes, edges],
            "trained": trained,
            "positions": sequences.n_positions,
        }

    def _join(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        classes = LabelIndex(sorted({*left["classes"], *right["classes"]})).classes
        labels = [np.searchsorted(classes, one["classes"]) for one in (left, right)]
        pairs = [(place[:, None] * len(classes) + place).ravel() for place in labels]
        out = {**left, "classes": classes, "positions": left["positions"] + right["positions"]}
        out["n_columns"] = left["n_columns"] if left["n_columns"] is not None else right["n_columns"]
        out["trained"] = np.union1d(pairs[0][left["trained"]], pairs[1][right["trained"]])
        out["names"], out["widths"], out["seen"] = list(left["names"]), list(left["widths"]), list(left["seen"])
        for part, (places, n) in enumerate(((labels, len(classes)), (pairs, len(classes) ** 2))):
            a, b = left["names"][part], right["names"][part]
            if (a is None) != (b is None) or (a is None and left["widths"][part] != right["widths"][part]):
                widths = [one["widths"][part] if one["names"][part] is None else "named" for one in (left, right)]
                raise ValueError(f"partitions have different features: {widths[0]} and {widths[1]}")
            columns = [np.arange(one["widths"][part]) for one in (left, right)]
            if a is not None:
                out["names"][part], columns = _merged(a, b)
                out["widths"][part] = len(out["names"][part][1]) - 1
            one, other = left["seen"][part], right["seen"][part]
            if one is None or other is None:
                out["seen"][part] = None
            else:
                out["seen"][part] = patterns.joined(
                    patterns.placed(one, columns[0], places[0], n), patterns.placed(other, columns[1], places[1], n)
                )
        return out

    def _settle(self, survey: dict[str, Any], last: Any) -> None:
        if last is not None:
            raise ValueError("warm_start is not for examples in partitions")
        tags_seen = survey["classes"]
        if not survey["positions"]:
            raise ValueError("nothing to learn from: all sequences are empty")
        if len(tags_seen) < 2:
            raise ValueError(
                f"need at least two different labels to learn from, found {len(tags_seen)}"
                + (f": {tags_seen[0]!r}" if tags_seen else " (all are None)")
            )
        self._labels, C = LabelIndex(tags_seen), len(tags_seen)
        self.classes_ = self._labels.array
        indices = [None if names is None else _index(names) for names in survey["names"]]
        if survey["hashed"]:
            indices = [FeatureIndex(self.n_bits)] * 2
        same = self.transitions == "features" and (self.template is None or not self.template.edge_patterns)
        self.index_, self.edge_index_ = indices[0], indices[0] if same else indices[1]
        (self.n_features_in_, n_edge), self.n_columns_ = survey["widths"], survey["n_columns"]
        made = []
        for seen, n, width in zip(survey["seen"], (self.n_features_in_, n_edge), (C, C * C), strict=True):
            made.append(None if seen is None else patterns.from_seen(seen, n, width))
        trained = None
        if self.transitions == "observed":
            trained = np.isin(np.arange(C * C), survey["trained"]).reshape(C, C)
        masks = None if self.constraints is None else self.constraints.masks(tags_seen)
        self.structure_ = Chain(
            C, self.n_features_in_, n_edge_features=n_edge, pattern=made[0], edge_pattern=made[1], masks=masks,
            trained_transitions=trained, threads=thread_count(self.n_jobs),
        )  # fmt: skip

    def _local(self, X: Any, y: Any, loss: Loss) -> Risk:
        sequences = self._with_edges(as_sequences(X, self.index_, template=self.template, edge_index=self.edge_index_))
        if sequences.n_features != self.n_features_in_:
            raise ValueError(f"X has {sequences.n_features} features, other parts have {self.n_features_in_}")
        tags = self._labels.encode(y, sequences.lengths)
        return Risk(self.structure_, loss, sequences, tags)

    def _with_edges(self, X: Sequences) -> Sequences:
        """X with the features of transitions that the model has."""
        if self.transitions == "features" and X.edges is None:
            X = X[:]
            X.edges, X.edge_index = X.rows, X.index
        elif self.transitions != "features" and X.edges is not None:
            X = X[:]
            X.edges = None
        return X

    def _score_units(self, y: Any) -> int:
        """Positions whose label is known."""
        return sum(label is not None and not isinstance(label, (set, frozenset)) for one in y for label in one)

    # ------------------------------------------------------------------ structure

    def _make_structure(self, X: Sequences, y: TagSequences, last: Any) -> Chain:
        C = len(self._labels)
        labels = y.labels  # −1 where it is not known
        if len(labels) < X.rows.shape[0]:
            labels = np.full(X.rows.shape[0], -2, np.int32)  # −2 for a row outside of X
            labels[int(X.offsets[0]) : int(X.offsets[-1])] = y.labels
        pairs = _label_pairs(labels, X, C) if X.edges is not None or self.transitions == "observed" else None
        old: Chain | None = None if last is None else last.structure_
        place = np.arange(C) if last is None else _label_map(last._labels, self._labels)
        pattern = edge_pattern = trained = None
        if self.weights == "observed":
            pattern = patterns.observed(X.rows, labels, C)
            if pattern is not None and old is not None:
                keys_moved = patterns.moved(old.keys("nodes"), place, C)
                n = X.n_features
                pattern = patterns.from_keys(np.union1d(patterns.keys(pattern, n, C), keys_moved), n, C)
        if X.edges is not None and pairs is not None:
            n, width = X.n_edge_features, C * C
            edge_pattern = patterns.observed(X.edges, pairs, width)
            if edge_pattern is not None and old is not None:
                keys_moved = patterns.moved(old.keys("edges"), (place[:, None] * C + place).ravel(), width)
                edge_pattern = patterns.from_keys(
                    np.union1d(patterns.keys(edge_pattern, n, width), keys_moved), n, width
                )
        if self.transitions == "observed" and pairs is not None:
            trained = (np.bincount(pairs[pairs >= 0], minlength=C * C) > 0).reshape(C, C)
            if old is not None and old.trained_transitions is not None:
                trained[np.ix_(place, place)] |= old.trained_transitions
        masks = None if self.constraints is None else self.constraints.masks(self._labels.classes)
        return Chain(
            C,
            X.n_features,
            n_edge_features=X.n_edge_features,
            pattern=pattern,
            edge_pattern=edge_pattern,
            masks=masks,
            trained_transitions=trained,
            threads=thread_count(self.n_jobs),
        )

    def _strength(self, risk: Risk) -> float:
        self.C_ = resolve_strength(self.C, risk.loss, risk.X.rows, risk.y, len(self._labels))
        return self.C_

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        return self.structure_.carry_over(w, last.structure_, _label_map(last._labels, self._labels))

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        if run.penalty.l1 and not run.result.interrupted:
            self._drop_zeros()

    def _read(self, X: Any, y: Any) -> tuple[Sequences, TagSequences]:
        sequences = self._inputs(X)
        return sequences, self._labels.encode(y, sequences.lengths)

    def _read_to_compare(self, X: Any, y: Any) -> tuple[Sequences, TagSequences]:
        sequences = self._inputs(X)
        return sequences, self._labels.with_unseen(y).encode(y, sequences.lengths)

    def _check_comparable(self, y: TagSequences) -> None:
        if not (y.labels >= 0).any():
            raise ValueError("no known label to compare with")

    def _quality(self, w: np.ndarray, X: Sequences, y: TagSequences) -> float:
        known = y.labels >= 0
        return float((self._argmax(w, X)[known] == y.labels[known]).mean())

    def _arrays(self, X: Sequences, y: TagSequences) -> Iterable[np.ndarray | None]:
        edges = [] if X.edges is None else X.edges.arrays
        return [*X.rows.arrays, *edges, X.offsets, y.labels, y.allowed]

    def _settings(self, risk: Risk) -> Any:
        return self._labels.classes

    def _decode(self, outputs: np.ndarray, inputs: Sequences) -> Sequence[Any]:
        return self._labels.decode(outputs, inputs.offsets)

    def _drop_zeros(self) -> None:
        """After an ℓ1 fit: only the pairs with a weight stay in the model."""
        old = self.structure_
        smaller: list[patterns.Pattern] = []
        for part, n, width in (
            ("nodes", old.n_features, old.n_labels),
            ("edges", old.n_edge_features, old.n_labels**2),
        ):
            kept = old.keys(part)[self.coef_[old.slices[part]] != 0]
            smaller.append(patterns.from_keys(kept, n, width) if n else None)
        self.structure_ = old.resized(*smaller)
        self.coef_ = self.structure_.carry_over(self.coef_, old, np.arange(old.n_labels))
        self._online_state = {}

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any, allowed: Any = None) -> list[list[Any]]:
        """Return the best labelling of each sequence.

        Parameters
        ----------
        X : as in :meth:`fit`
        allowed : list of lists, optional
            Forced decoding: for each position None (any label), a label, or a set of labels.

        Returns
        -------
        list of lists of labels
        """
        sequences = self._fitted(X)
        labels = self._argmax(self.coef_, sequences, self._allowed(allowed, sequences))
        return self._labels.decode(labels, sequences.offsets)

    def predict_marginals(self, X: Any, allowed: Any = None) -> list[np.ndarray]:
        """Return p(label at position | x): arrays (positions, labels), columns as in ``classes_``."""
        sequences = self._fitted(X)
        out = np.empty((sequences.n_positions, len(self._labels)))
        for batch, theta in self._scores(sequences, self._allowed(allowed, sequences)):
            mu = self.structure_.marginals(theta)
            self._check_feasible(mu.log_partition, sequences)
            out[_rows(sequences, batch)] = mu.nodes
        return _split(out, sequences)

    def k_best(self, X: Any, k: int, allowed: Any = None) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of each sequence (or all, if fewer) with their log-probabilities, best first."""
        check_count("k", k)
        sequences = self._fitted(X)
        return self._k_best(sequences, self._scores(sequences, self._allowed(allowed, sequences)), k)

    def sample(self, X: Any, n_samples: int = 1, allowed: Any = None) -> list[list[list[Any]]]:
        """Return labellings drawn from p(y | x): ``n_samples`` for each sequence."""
        check_count("n_samples", n_samples)
        sequences = self._fitted(X)
        return self._sample(sequences, self._scores(sequences, self._allowed(allowed, sequences)), n_samples)

    def log_likelihood(self, X: Any, y: Sequence[Sequence[Any]]) -> np.ndarray:
        """Return log p(y | x) of each sequence; where labels are None, of all labellings that agree with the rest."""
        return super().log_likelihood(X, y)

    def score(self, X: Any, y: Sequence[Sequence[Any]]) -> float:
        """Return the accuracy over positions with a known label.

        For other scores in scikit-learn's searches, see :func:`sequence_scorer`.
        """
        return super().score(X, y)

    # ------------------------------------------------------------------ looking inside

    def feature_weights(self, label: Any) -> np.ndarray:
        """Return the weight of every feature for a label (0 where the pair has none)."""
        self._check_is_fitted()
        if label not in self._labels.classes:
            raise ValueError(f"unknown label {label!r}; known are {', '.join(map(repr, self._labels.classes))}")
        c, C, s = self._labels.classes.index(label), len(self._labels), self.structure_
        weights = self.coef_[s.slices["nodes"]]
        if s.pattern is None:
            return weights.reshape(-1, C)[:, c]
        keys = s.keys("nodes")
        chosen = keys % C == c
        out = np.zeros(s.n_features)
        out[keys[chosen] // C] = weights[chosen]
        return out

    def feature_name(self, column: int) -> str:
        """Return the name of a feature's column; template features are readable, as ``word[-1]=New``."""
        return self._name_in(self.index_, column)

    def _name_in(self, index: FeatureIndex | None, column: int) -> str:
        if index is None:
            return f"x{column}"
        name = index.name(column)
        return name if self.template is None else self.template.describe(name)

    def _weight_labels(self) -> list[Any]:
        self._check_is_fitted()
        return list(self._labels.classes)

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        return self.feature_weights(label), self.feature_name

    def _weight_name(self, k: int) -> str:
        s, labels = self.structure_, [str(label) for label in self._labels.classes]
        part = next(name for name, span in s.slices.items() if span.start <= k < span.stop)
        at = k - s.slices[part].start
        if part in ("nodes", "edges"):
            key = int(s.keys(part)[at])
            if part == "nodes":
                return f"{self.feature_name(key // len(labels))}: {labels[key % len(labels)]}"
            column, pair = divmod(key, len(labels) ** 2)
            index = self.index_ if self._edges_are_features else self.edge_index_
            return f"{self._name_in(index, column)}: {_arrow(labels, pair)}"
        ends = {"start": f"start → {labels[at % len(labels)]}", "end": f"{labels[at % len(labels)]} → end"}
        return ends.get(part) or _arrow(labels, at)

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        super()._check_state()
        structure, self.classes_ = self.structure_, self._labels.array
        if (structure.n_labels, structure.n_features) != (len(self._labels), self.n_features_in_):
            raise ValueError("structure_ is for other labels or features than those of the model")
        if self.constraints is not None:
            structure.masks = self.constraints.masks(self._labels.classes)
        if self.index_ is not None and len(self.index_) != self.n_features_in_:
            raise ValueError(f"expected {self.n_features_in_} feature names, found {len(self.index_)}")

    # ------------------------------------------------------------------ parts

    @property
    def _edges_are_features(self) -> bool:
        """Observation-dependent transitions from the features of the positions themselves."""
        own = self.template is not None and self.template.edge_patterns
        same = self.edge_index_ is self.index_
        return bool(self.structure_.n_edge_features and same and not own)

    def _inputs(self, X: Any) -> Sequences:
        sequences = as_sequences(X, self.index_, template=self.template, edge_index=self.edge_index_)
        if sequences.n_features != self.n_features_in_:
            if not len(sequences):
                return sequences
            raise ValueError(f"X has {sequences.n_features} features, the model has {self.n_features_in_}")
        if None not in (sequences.index, self.index_) and sequences.index != self.index_:
            raise ValueError("X was made with another feature index: its columns mean other features than the model's")
        if self.structure_.n_edge_features and sequences.edges is None:
            sequences = sequences[:]
            sequences.edges = sequences.rows
        return sequences

    def _fitted(self, X: Any) -> Sequences:
        self._check_is_fitted()
        return self._inputs(X)

    def _allowed(self, allowed: Any, X: Sequences) -> TagSequences | None:
        return None if allowed is None else self._labels.encode(allowed, X.lengths)

    def _scores(
        self, inputs: Sequences, allowed: TagSequences | None = None, w: np.ndarray | None = None
    ) -> Iterator[tuple[slice, ChainScores]]:
        structure = self._structure()
        for batch in structure.batches(inputs, self._batch_positions):
            theta = structure.scores(self.coef_ if w is None else w, inputs[batch])
            yield batch, theta if allowed is None else structure.restrict(theta, allowed[batch])

    def _argmax(self, w: np.ndarray, X: Sequences, allowed: TagSequences | None = None) -> np.ndarray:
        out, structure = np.empty(X.n_positions, np.int32), self._structure()
        if allowed is not None:
            for batch, theta in self._scores(X, allowed, w):
                out[_rows(X, batch)], scores = structure.argmax(theta)
                self._check_feasible(scores, X)
            return out
        positions = self._batch_positions * (1 if structure.n_edge_features else _DECODED)
        for batch in structure.batches(X, positions):
            out[_rows(X, batch)], scores = structure.decode(w, X[batch])
            self._check_feasible(scores, X)
        return out

    def _check_feasible(self, scores: np.ndarray, inputs: Sequences) -> None:
        if np.isneginf(scores).any():
            raise ValueError("the constraints and allowed labels leave no labelling of a sequence")


def _rows(X: Sequences, batch: slice) -> slice:
    """The positions of a batch of sequences, counted from the first of all."""
    return slice(int(X.offsets[batch.start] - X.offsets[0]), int(X.offsets[batch.stop] - X.offsets[0]))


def _arrow(labels: Sequence[str], pair: int) -> str:
    return f"{labels[pair // len(labels)]} → {labels[pair % len(labels)]}"


def _label_map(old: LabelIndex, new: LabelIndex) -> np.ndarray:
    return np.array([new.classes.index(c) for c in old.classes])


def _label_pairs(labels: np.ndarray, X: Sequences, C: int) -> np.ndarray:
    """The pair of labels that leads into every row; −1 where it is not known, −2 where there is none."""
    pairs = np.full(len(labels), -2, np.int32)
    pairs[1:] = np.where((labels[:-1] < 0) | (labels[1:] < 0), -1, labels[:-1] * C + labels[1:])
    pairs[labels == -2] = -2
    pairs[X.offsets[:-1][X.lengths > 0]] = -2  # nothing leads into a first position
    return pairs


def _names(index: FeatureIndex | None) -> tuple[np.ndarray, np.ndarray] | None:
    return None if index is None or index.n_bits else index._core.state()


def _index(names: tuple[np.ndarray, np.ndarray]) -> FeatureIndex:
    return FeatureIndex.from_arrays({"bytes": names[0], "offsets": names[1]})


def _merged(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], list[np.ndarray]]:
    """The sorted union of two sorted vocabularies, and where the names of each are in it."""
    both = _index(a)
    none = np.zeros(0, np.int32)
    data, offsets = (np.ascontiguousarray(part) for part in b)
    both._core.encode_utf8(data, offsets, np.arange(len(offsets), dtype=np.int64), True)
    both._core.sort(np.zeros(1, np.int64), none, None)
    return both._core.state(), [both.places(a), both.places(b)]


def _n_columns(X: Any) -> int | None:
    if isinstance(X, Sequences):
        return None
    return next((len(token) for sentence in X for token in sentence), None)


def _split(stacked: np.ndarray, X: Sequences) -> list[np.ndarray]:
    bounds = (X.offsets - X.offsets[0]).tolist()
    return [stacked[a:b] for a, b in pairwise(bounds)]
