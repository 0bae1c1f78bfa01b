"""Joint segmentation and labelling: a semi-Markov structure, any loss, any solver.

    minimise  penalty(w) + C Σ_i loss(x_i, y_i; w),   score(x, y) = Σ_segments Φ1 + Φ2 + Σ_neighbours Φ3

y divides a sequence into labelled segments. A segment is scored as a whole: by statistics of its positions, by its
length, by features of its start, and with the label of the preceding segment; see :class:`mercer.structures.Segments`.
After training every segment may get an extra score, the offset:

    score(x, y) + offset · n(y),   n(y) the number of segments

to find more or fewer boundaries.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._estimator import Outputs
from mercer._state.saved import Choice, DictOf, Fields, Flag, Floats, Nested, Number, Optional, Strings
from mercer._validation import check_choice, check_count, check_number, thread_count
from mercer.data.features import FeatureIndex, as_sequences
from mercer.data.labels import LabelIndex
from mercer.data.segments import (
    Segment,
    Segmentations,
    SpanSequences,
    as_segments,
    form_of,
    segments_to_bio,
    segments_to_boundaries,
)
from mercer.data.sequences import Sequences
from mercer.data.templates import Template
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.estimator import NeighbouringLabels, Run, StructuredEstimator
from mercer.learning.losses import LOSSES, Loss, RelativeMargin, resolve_loss
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk
from mercer.learning.solvers import BMRM, Solver, best_solver
from mercer.learning.strength import check_strength, resolve_strength
from mercer.metrics import boundary_score
from mercer.segmentation._packs import FeaturePack, SegmentFeatures
from mercer.segmentation.baselines import OffsetCurve, tune_offset
from mercer.segmentation.features import ParagraphFeatures, SegmentStatistics
from mercer.structures import patterns
from mercer.structures.constraints import Constraints
from mercer.structures.costs import Cost, resolve_cost
from mercer.structures.segment_parts import SegmentMarginals, SegmentScores
from mercer.structures.segments import Segments

__all__ = ["Segmenter"]

_MARGIN_SOLVERS = ("bmrm", "cutting-plane", "bcfw", "subgradient")
_FORMS = ("auto", "triples", "bio", "boundaries", "frames")
_OFFSETS = 20  # tried on either side of 0, the nearer the denser
_PARTS = ("sum", "mean", "variance", "boundary", "span")  # of features, for one label each


class Segmenter(NeighbouringLabels, StructuredEstimator):
    """Split sequences into labelled segments.

    Parameters
    ----------
    max_length : int, mapping label → int, or None
        Maximum length of a segment; time grows with it. None: the longest of the training data. 1: every position
        is a segment, and the model is that of :class:`mercer.tagging.Tagger`.
    min_length : int or mapping label → int, default=1
        Minimum length of a segment.
    loss : {"auto", "log", "hinge", "squared-hinge", "slack", "softmax-margin", "hybrid", "adaptive-hybrid", \
"relative-margin", "circle"} or Loss, default="auto"
        ``"log"`` is a semi-Markov conditional random field, ``"hinge"`` a structured support vector machine; see
        :mod:`mercer.learning`. ``"auto"``: hinge for dense features and for a feature pack, log for names and other
        sparse features; hinge as well where ``cost`` or a margin solver is given, log with an ℓ1 penalty or a solver
        of smooth losses. The choice is stored in ``loss_``.
    solver : {"auto", "bmrm", "bcfw", "cutting-plane", "subgradient", "marginal-dual", "lbfgs", "owlqn", "sgd", \
"averaged-perceptron", "passive-aggressive"} or Solver, default="auto"
        ``"auto"``: bmrm for margins with dense features and for the hybrid, bcfw with sparse features, lbfgs for smooth
        losses (owlqn with an ℓ1 penalty), cutting-plane for relative-margin.
    C : float or "auto", default="auto"
        Weight of the summed loss against the penalty: ``penalty(w) + C · Σ loss``. Smaller values regularise more.
        ``"auto"``: 1 for losses with a likelihood (log, softmax-margin, hybrid); for margin losses 2 / mean ‖x‖² over
        the positions, so that the unit of the features does not matter (see
        :mod:`mercer.learning.strength`). The number is stored in ``C_``.
    cost : {"auto", "hamming", "boundary", "segment", "zero-one"} or Cost, default="auto"
        Δ(y, z) of the margin losses: wrong positions (or weights by label, or a matrix, as for a tagger), boundaries in
        only one of the two, segments in only one of the two, or 1 for any error. ``"auto"``: wrong positions, or
        boundaries if there is only one label.
    features : FeaturePack or None
        Computes features of raw sequences, such as :class:`SegmentStatistics` for frames or
        :class:`ParagraphFeatures` for sentences; refitted by :meth:`fit`. None: X holds the features of positions.
    length_model : {"table", "poisson", "log-normal", "constant"}, array of shape (max_length, n) or None, \
default="table"
        Score of a segment's length: a number for every length, a curve, the same for all lengths, or none; see
        :func:`mercer.structures.length_basis`. Only used if the statistics of a pack name ``"length"``.
    statistics : sequence of {"sum", "mean", "variance"}, optional
        Statistics of the features of the positions of a segment. None: those of the pack, ``("sum",)`` without one.
    boundaries : bool, default=True
        Weights for features of the position where a segment starts: those of the pack, the ``edges`` of X, or, without
        either, the features of that position.
    neighbours : sequence of {"boundary", "mean", "variance"}, default=()
        Features with weights for pairs of labels of neighbouring segments: the features of the boundary between them,
        mean and variance of the first one (which multiply the time by the number of labels).
    weights : {"observed", "all"}, default="observed"
        With sparse features: weights for the (feature, label) pairs of the training data, or for all pairs.
    repeats : {"auto", True, False}, default="auto"
        Whether neighbouring segments may have the same label. ``"auto"``: if this occurs in the training data (and
        always with one label, or ``max_length=1``).
    constraints : Constraints or None
        Forbidden neighbours, first and last labels.
    form : {"auto", "frames", "boundaries", "triples", "bio"}, default="auto"
        Format of segmentations; see :func:`mercer.data.as_segments` for its detection.
    n_bits : int, default=0
        Named features (dicts, strings) get a column for each name of the training data; otherwise they are hashed to
        ``2**n_bits`` columns.
    template : Template or None
        If given, X holds sentences of column tuples and the template makes the features.
    offset : float, default=0.0
        Extra score of every segment in predictions, until :meth:`tune_offset` sets another.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ½‖w‖², ‖w‖₁, or a weighted sum of both. ℓ1 needs ``"owlqn"`` or ``"sgd"``.
    l1_ratio : float, default=0.5
        Share of ℓ1 in ``"elasticnet"``.
    max_iter, tol : int and float or None
        None: the solver's own.
    patience : int, default=10
        With ``fit(..., dev=…)``: iterations without a better held-out score before training stops.
    warm_start : bool, default=False
        Start from the weights of the last fit; new named features, labels and lengths are allowed. A feature pack is
        not refitted.
    n_jobs : int or None
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of solvers that draw at random, and of :meth:`sample`.
    verbose : int, default=0
        1 shows progress on standard error, 2 prints a line for each iteration.

    Attributes
    ----------
    classes_ : array of labels, sorted; ``[0]`` where segments have none
    form_ : str, format of segmentations in training
    max_length_ : int, the maximum length of a segment
    offset_ : float
    curve_ : OffsetCurve, the result of :meth:`tune_offset`
    features_ : the fitted pack, or None
    n_features_in_ : int, features of a position
    structure_ : Segments, with the layout of ``coef_``
    coef_ : array, the weight vector
    history_ : dict of lists, one value per iteration
    loss_, solver_ : str, the loss and the solver that ran
    C_ : float, the weight of the loss that was used
    converged_, interrupted_ : bool
    n_iter_ : int

    References
    ----------
    .. [Sarawagi2004] S. Sarawagi and W. Cohen. Semi-Markov conditional random fields for information extraction. NIPS,
       2004.
    .. [Shi2007] Q. Shi, Y. Altun, A. Smola and S. V. N. Vishwanathan. Semi-Markov models for sequence segmentation.
       EMNLP-CoNLL, 2007.
    .. [Shi2011b] Q. Shi, L. Cheng, L. Wang and A. Smola. Human action segmentation and recognition using discriminative
       semi-Markov models. International Journal of Computer Vision 93, 2011.

    Examples
    --------
    >>> from mercer.datasets import make_actions
    >>> from mercer.segmentation import Segmenter, SegmentStatistics
    >>> task = make_actions(n_actions=3, random_state=1)
    >>> model = Segmenter(features=SegmentStatistics(sum=True), length_model="poisson").fit(task.X[:6], task.y[:6])
    >>> model.score(task.X[6:], task.y[6:]) > 0.95
    True
    >>> model.predict_segments(task.X[6:7])[0][-2:] == task.segments[6][-2:]
    True
    """

    coef_: np.ndarray
    classes_: np.ndarray
    structure_: Segments
    features_: FeaturePack | None
    index_: FeatureIndex | None
    edge_index_: FeatureIndex | None
    C_: float
    curve_: OffsetCurve

    saved = StructuredEstimator.saved | Fields(
        _labels=Nested(LabelIndex),
        features_=Optional(Nested(SegmentStatistics, ParagraphFeatures)),
        index_=Optional(Nested(FeatureIndex)),
        edge_index_=Optional(Nested(FeatureIndex)),
        form_=Choice(*_FORMS[1:]),
        offset_=Number(),
        _starts_are_rows=Flag(),
        _labels_may_repeat=Flag(),
        _names=DictOf(Strings()),
        structure_=Nested(Segments),
        coef_=Floats("structure_.n_weights"),
        C_=Number(0),
        loss_=Choice(*LOSSES),
    )

    def __init__(
        self,
        max_length: int | Mapping[Any, int] | None = None,
        min_length: int | Mapping[Any, int] = 1,
        loss: str | Loss = "auto",
        solver: str | Solver = "auto",
        C: float | str = "auto",
        cost: Any = "auto",
        features: FeaturePack | None = None,
        length_model: Any = "table",
        *,
        statistics: Sequence[str] | None = None,
        boundaries: bool = True,
        neighbours: Sequence[str] = (),
        weights: str = "observed",
        repeats: str | bool = "auto",
        constraints: Constraints | None = None,
        form: str = "auto",
        n_bits: int = 0,
        template: Template | None = None,
        offset: float = 0.0,
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
        self.max_length = max_length
        self.min_length = min_length
        self.loss = loss
        self.solver = solver
        self.C = C
        self.cost = cost
        self.features = features
        self.length_model = length_model
        self.statistics = statistics
        self.boundaries = boundaries
        self.neighbours = neighbours
        self.weights = weights
        self.repeats = repeats
        self.constraints = constraints
        self.form = form
        self.n_bits = n_bits
        self.template = template
        self.offset = offset
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
    ) -> Segmenter:
        """Train on sequences and their segments.

        Parameters
        ----------
        X : list of sequences, Sequences or SegmentFeatures
            Each sequence a 2-D array or sparse matrix (positions × features), or a list of dicts or strings; with
            ``features`` what the pack takes, with ``template`` sentences of column tuples.
        y : list, one item per sequence
            Labels of positions, positions where segments start, (start, end, label) triples or BIO tags; see ``form``.
        sample_weight : array of a number for each sequence, optional
            Factors of C, not negative.
        dev : (X, y), optional
            Held-out data: the weights with the best :meth:`score` on it are kept, and training stops when it no longer
            rises.
        checkpoint : path or Checkpoint, optional
            Training saves its state there every few seconds. A killed fit resumes from it when it is called again.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight, dev=dev, checkpoint=checkpoint)

    def partial_fit(self, X: Any, y: Sequence[Any]) -> Segmenter:
        """Make one pass of an online solver over more sequences; new named features, labels and lengths are allowed.

        Parameters
        ----------
        X, y
            As in :meth:`fit`; a feature pack stays as the first call fitted it.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y)

    def _check_strength(self) -> None:
        check_strength(self.C)

    def _check(self) -> None:
        check_choice("form", self.form, _FORMS)
        check_choice("repeats", self.repeats, ("auto", True, False))
        check_choice("weights", self.weights, ("observed", "all"))
        check_count("n_bits", self.n_bits, 0)
        for name, kind in (("features", FeaturePack), ("template", Template), ("constraints", Constraints)):
            given = getattr(self, name)
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, got {type(given).__name__}")
        if self.features is not None and self.template is not None:
            raise ValueError("give features or template, not both: each makes the features from what X holds")
        check_number("offset", self.offset)

    def _loss(self) -> Loss:
        return resolve_loss("hinge" if self._loss_is_auto() else self.loss, self._cost())

    def _auto(self, loss: Loss, penalty: Penalty, risk: Risk) -> Solver:
        planes = not loss.smooth and not isinstance(loss, RelativeMargin)
        # bmrm keeps all weights of a plane, and is as fast where these are few.
        return BMRM() if planes and risk.X.rows.dense is not None else best_solver(loss, penalty)

    def _strength(self, risk: Risk) -> float:
        self.C_ = resolve_strength(self.C, risk.loss, risk.X.rows)
        return self.C_

    def _carry(self, w: np.ndarray, last: Any, risk: Risk) -> np.ndarray:
        return self.structure_.carry_over(w, last.structure_, self._label_places(last))

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        self.loss_ = run.risk.loss.name

    def _read(self, X: Any, y: Any) -> tuple[Sequences, Segmentations]:
        sequences = self._inputs(X)
        return sequences, self._encoded(y, sequences)

    def _read_to_compare(self, X: Any, y: Any) -> tuple[Sequences, Segmentations]:
        sequences = self._inputs(X)
        triples = self._triples(y, sequences.lengths)
        labels = self._labels.with_unseen([[label for *_, label in one] for one in triples])
        return sequences, Segmentations.from_segments(triples, sequences.lengths, labels)

    def _quality(self, w: np.ndarray, X: Sequences, y: Segmentations) -> float:
        return self._agreement(y, self._argmax(self._theta(X, w), X))

    def _arrays(self, X: Sequences, y: Segmentations) -> Iterable[np.ndarray | None]:
        edges = [] if X.edges is None else X.edges.arrays
        return [
            *X.rows.arrays,
            *edges,
            getattr(X, "spans", None),
            getattr(X, "pair_spans", None),
            X.offsets,
            y.lengths,
            y.labels,
        ]

    def _settings(self, risk: Risk) -> Any:
        return self._labels.classes

    def _decode(self, outputs: Segmentations, inputs: Sequences) -> Sequence[Any]:
        return outputs.segments(self._labels)

    def _scores(self, inputs: Sequences) -> Iterator[tuple[slice, SegmentScores]]:
        done = 0
        for theta in self._theta(inputs):
            yield slice(done, done + len(theta)), theta
            done += len(theta)

    def _loss_is_auto(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _chosen_loss(self, X: Sequences) -> str | Loss:
        """Return the loss; for ``"auto"`` the one that is good and fast for such features."""
        if not self._loss_is_auto():
            return self.loss
        if self.penalty != "l2":
            return "log"
        if self._cost() is not None:
            return "hinge"
        solver = self.solver if isinstance(self.solver, str) else self.solver.name
        if solver != "auto":
            return "hinge" if solver in _MARGIN_SOLVERS else "log"
        return "hinge" if self._names or X.rows.dense is not None else "log"  # names: those of a pack

    def _cost(self) -> Cost | None:
        """None: the structure's own, by the number of labels."""
        return None if isinstance(self.cost, str) and self.cost == "auto" else resolve_cost(self.cost)

    def _learn(self, X: Any, y: Any, loss: Loss, last: Any) -> Risk:
        if last is None:
            self.features_ = None if self.features is None else clone(self.features)
            self.index_, self.edge_index_ = FeatureIndex(self.n_bits), FeatureIndex(self.n_bits)
        else:
            self.index_, self.edge_index_ = copy.copy(last.index_), copy.copy(last.edge_index_)
        sequences = self._transform(X, learn=True, last=last)
        if not len(sequences):
            raise ValueError("no sequences to learn from: X is empty")
        if not sequences.n_positions:
            raise ValueError("nothing to learn from: all sequences are empty")
        triples = self._triples(y, sequences.lengths, learn=True)
        labels = LabelIndex.from_sequences([[label for _, _, label in one] for one in triples])
        self._labels = labels if last is None else LabelIndex(sorted({*labels.classes, *last._labels.classes}))
        self.classes_ = self._labels.array
        truth = Segmentations.from_segments(triples, sequences.lengths, self._labels)
        shortest, longest = self._bounds(truth, last)
        self.max_length_ = int(longest.max())
        self.n_features_in_ = sequences.n_features
        # Where every position is a segment, the features of a start are those of the position.
        own = sequences.edges is not None or bool(self._names)
        self._starts_are_rows = bool(self.boundaries and not own and self.max_length_ > 1)
        sequences = self._completed(sequences)
        self._labels_may_repeat = self._repeats(truth) or (last is not None and last._labels_may_repeat)
        self.structure_ = self._make_structure(sequences, truth, shortest, longest, last)
        self.structure_.check(sequences, truth, self._labels.classes)
        self.offset_ = float(self.offset)
        if self._loss_is_auto():
            loss = resolve_loss(self._chosen_loss(sequences), self._cost())
        return Risk(self.structure_, loss.for_labels(self._labels.classes), sequences, truth)

    def _reason_against_parts(self) -> str | None:
        if self.features is not None:
            return "features= learns from all sequences at once; transform them first, and give the sequences"
        return None

    def _transform(self, X: Any, learn: bool = False, last: Any = None) -> Sequences:
        """X as sequences; :meth:`_completed` adds what depends on the model."""
        if self.features_ is not None:
            X = self.features_.fit_transform(X) if learn and last is None else self.features_.transform(X)
        if isinstance(X, SegmentFeatures):
            if learn:
                self.index_ = self.edge_index_ = None
                names = ("frame", X.frame_names), ("boundary", X.boundary_names), ("span", X.segment_names)
                self._names = {kind: list(some) for kind, some in names}
                self._found_statistics = X.statistics
            sequences = _joined(X)
        else:
            sequences = as_sequences(X, self.index_, template=self.template, edge_index=self.edge_index_, learn=learn)
            if learn:
                self.index_, self.edge_index_ = sequences.index, sequences.edge_index
                self._names, self._found_statistics = {}, ("sum", "length")
        if learn and last is not None:
            self._check_goes_on(sequences, last)
        return sequences

    def _check_goes_on(self, X: Sequences, last: Any) -> None:
        """Columns must mean what they meant before; only names may be new."""
        same = self._names == last._names and (self.index_ is None) == (last.index_ is None)
        if not same or (self.index_ is None and X.n_features != last.n_features_in_):
            raise ValueError(
                f"X has {X.n_features} features, other ones than the model to go on from, which has "
                f"{last.n_features_in_}"
            )

    def _label_places(self, last: Any) -> np.ndarray:
        """Where the labels of the last fit are among those of this one."""
        return np.array([self._labels.classes.index(label) for label in last._labels.classes])

    def _completed(self, X: Sequences) -> Sequences:
        """With features of starts where they are those of positions, and those of segments for all lengths."""
        if self._starts_are_rows and X.edges is None:
            X = X[:]
            X.edges, X.edge_index = X.rows, X.index
        if isinstance(X, SpanSequences) and X.spans.shape[1] != self.max_length_:
            pairs = None if X.pair_spans is None else _for_lengths(X.pair_spans, self.max_length_, 2)
            X = SpanSequences._of(X, _for_lengths(X.spans, self.max_length_, 1), pairs)
        return X

    def _triples(self, y: Sequence[Any], lengths: np.ndarray, learn: bool = False) -> list[list[Segment]]:
        """Segmentations in the form of the training data, or as triples."""
        form = self.form
        if form == "auto" and hasattr(y, "__len__") and len(y) == len(lengths):
            form = form_of(y, lengths)
        if learn:
            self.form_ = form
        elif "triples" not in (form, self.form_):
            form = self.form_
        if form == "frames" and self.max_length == 1:  # every position is a segment: nothing is joined to runs
            form = "triples"
            y = [[(t, t + 1, label) for t, label in enumerate(one)] for one in y]
        return as_segments(y, lengths, form)

    def _bounds(self, y: Segmentations, last: Any) -> tuple[np.ndarray, np.ndarray]:
        """Shortest and longest length of each label."""
        bounds_of, seen = [], int(y.lengths.max())
        if last is not None:
            seen = max(seen, last.max_length_)
        for name, given, default in (
            ("min_length", self.min_length, 1),
            ("max_length", self.max_length, seen),
        ):
            bounds = np.full(len(self._labels), default, np.int64)
            if isinstance(given, Mapping):
                for label, bound in given.items():
                    if label not in self._labels.classes:
                        raise ValueError(f"{name} names the label {label!r}, which does not occur in training")
                    bounds[self._labels.classes.index(label)] = check_count(name, bound)
            elif given is not None:
                bounds[:] = check_count(name, given)
            bounds_of.append(bounds)
        wrong = np.flatnonzero(bounds_of[0] > bounds_of[1])
        if len(wrong):
            c = int(wrong[0])
            said = " (the longest segment of the training data)" if self.max_length is None else ""
            raise ValueError(f"min_length={bounds_of[0][c]} is greater than max_length={bounds_of[1][c]}{said}")
        return bounds_of[0], bounds_of[1]

    def _repeats(self, y: Segmentations) -> bool:
        if len(self._labels) == 1 or self.max_length_ == 1:
            return True
        if self.repeats != "auto":
            return bool(self.repeats)
        return bool(((y.labels[1:] == y.labels[:-1]) & (y.sequence[1:] == y.sequence[:-1])).any())

    def _make_structure(
        self, X: Sequences, y: Segmentations, shortest: np.ndarray, longest: np.ndarray, last: Any
    ) -> Segments:
        C, n_rows, begin = len(self._labels), X.rows.shape[0], int(X.offsets[0])
        # The label of every row, of the segment that starts there, and with the one before it; −2: none.
        frames, starts, pairs = (np.full(n_rows, -2, np.int32) for _ in range(3))
        frames[begin : begin + X.n_positions] = y.frames()
        starts[begin + y.starts] = y.labels
        inner = np.flatnonzero(y.sequence[1:] == y.sequence[:-1]) + 1
        pairs[begin + y.starts[inner]] = y.labels[inner - 1] * C + y.labels[inner]
        statistics = self._found_statistics if self.statistics is None else self.statistics
        has_lengths = "length" in self._found_statistics and self.max_length_ > 1
        pattern = boundary_pattern = edge_pattern = None
        if self.weights == "observed":
            pattern = patterns.observed(X.rows, frames, C)
            if X.edges is not None:
                boundary_pattern = patterns.observed(X.edges, starts, C)
                edge_pattern = patterns.observed(X.edges, pairs, C * C) if "boundary" in self.neighbours else None
        if last is not None:
            old, place = last.structure_, self._label_places(last)
            both = (place[:, None] * C + place).ravel()
            pattern = _joined_pattern(pattern, old, "sum", place, X.n_features, C)
            boundary_pattern = _joined_pattern(boundary_pattern, old, "boundary", place, X.n_edge_features, C)
            edge_pattern = _joined_pattern(edge_pattern, old, "edges", both, X.n_edge_features, C * C)
        return Segments(
            C,
            X.n_features,
            X.n_edge_features,
            X.n_span_features if isinstance(X, SpanSequences) else 0,
            max_length=longest.tolist(),
            min_length=shortest.tolist(),
            statistics=[name for name in statistics if name != "length"],
            boundaries=self.boundaries,
            neighbours=self.neighbours,
            lengths=self.length_model if has_lengths else None,
            n_pair_features=X.n_pair_features if isinstance(X, SpanSequences) else 0,
            masks=self._masks(),
            pattern=pattern,
            boundary_pattern=boundary_pattern,
            edge_pattern=edge_pattern,
            threads=thread_count(self.n_jobs),
        )

    def _masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        if self.constraints is None and self._labels_may_repeat:
            return None
        masks = (self.constraints or Constraints()).masks(self._labels.classes)
        if not self._labels_may_repeat:
            np.fill_diagonal(masks[0], True)
        return masks

    # ------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> list[Any]:
        """Return the best segmentation of each sequence, in the format of training (``form_``).

        Parameters
        ----------
        X : sequences
            As in :meth:`fit`.

        Returns
        -------
        list of segmentations
        """
        sequences = self._inputs(X)
        answer = self._argmax(self._theta(sequences), sequences)
        if self.form_ == "frames":
            return self._labels.decode(answer.frames(), answer.positions)
        triples = answer.segments(self._labels)
        if self.form_ == "triples":
            return triples
        write: Callable[[list[Segment]], Any] = segments_to_bio if self.form_ == "bio" else segments_to_boundaries
        return [write(one) for one in triples]

    @property
    def _output_form(self) -> Outputs:  # type: ignore[override]
        if getattr(self, "form_", "frames") in ("frames", "bio"):
            return Outputs("labels", ("segment_f1", "span_f1", "token_accuracy"))
        return Outputs("segments", ("segment_f1", "boundary_f1"))

    def predict_segments(self, X: Any) -> list[list[Segment]]:
        """Return the best segmentation of each sequence as (start, end, label) triples."""
        sequences = self._inputs(X)
        return self._argmax(self._theta(sequences), sequences).segments(self._labels)

    def predict_marginals(self, X: Any) -> list[np.ndarray]:
        """Return p(label of the position | x): arrays (positions, labels), columns as in ``classes_``."""
        return self._marginals(X, lambda mu: mu.frames)

    def boundary_marginals(self, X: Any) -> list[np.ndarray]:
        """Return p(a segment starts at the position | x): an array for each sequence, 1 at its first position."""
        return self._marginals(X, lambda mu: mu.starts.sum(axis=1))

    def segment_marginals(self, X: Any) -> list[np.ndarray]:
        """Return p(segment | x): arrays (positions, max_length, labels), by start, length − 1 and label."""
        return self._marginals(X, lambda mu: mu.spans, spans=True)

    def _marginals(self, X: Any, part: Callable[[SegmentMarginals], Any], spans: bool = False) -> list[np.ndarray]:
        sequences = self._inputs(X)
        out: list[np.ndarray] = []
        for theta in self._theta(sequences):
            mu = self.structure_.marginals(theta, spans=spans)
            self._check_feasible(mu.log_partition, sequences)
            marginals, bounds = part(mu), (theta.offsets - theta.offsets[0]).tolist()
            out.extend(marginals[a:b] for a, b in pairwise(bounds))
        return out

    def k_best(self, X: Any, k: int) -> list[list[tuple[list[Segment], float]]]:
        """Return the k best segmentations of each sequence (or all) with their log-probabilities, best first."""
        return super().k_best(X, k)

    def sample(self, X: Any, n_samples: int = 1) -> list[list[list[Segment]]]:
        """Return segmentations drawn from p(y | x): ``n_samples`` for each sequence."""
        return super().sample(X, n_samples)

    def log_likelihood(self, X: Any, y: Sequence[Any]) -> np.ndarray:
        """Return log p(y | x) of each sequence; −inf where bounds or constraints forbid y."""
        return super().log_likelihood(X, y)

    def score(self, X: Any, y: Sequence[Any]) -> float:
        """Return the accuracy over positions; with one label, the F1 of the boundaries.

        See :func:`mercer.metrics.boundary_score` and :func:`mercer.metrics.segment_f1` for more.
        """
        return super().score(X, y)

    def _agreement(self, truth: Segmentations, answer: Segmentations) -> float:
        if not truth.n_positions:
            raise ValueError("nothing to compare with: all sequences are empty")
        if len(self._labels) > 1:
            return float((truth.frames() == answer.frames()).mean())
        return boundary_score(_starts(truth), _starts(answer), np.diff(truth.positions)).f1

    def tune_offset(
        self,
        X: Any,
        y: Sequence[Any],
        offsets: Sequence[float] | np.ndarray | None = None,
        *,
        metric: str = "f1",
        min_recall: float = 0.0,
        min_precision: float = 0.0,
    ) -> Segmenter:
        """Set ``offset_``, the extra score of every segment, to the best for the boundaries of held-out sequences.

        Parameters
        ----------
        X, y
            As for :meth:`fit`, but not the training data.
        offsets : array of float, optional
            Offsets to try. None: forty on both sides of 0, over the whole range of changes.
        metric : {"f1", "accuracy", "recall", "precision"}, default="f1"
        min_recall, min_precision : float, default=0.0
            Only offsets that reach these are considered; see :func:`mercer.segmentation.tune_offset`.

        Returns
        -------
        self
        """
        sequences = self._inputs(X)
        truth = self._encoded(y, sequences)
        thetas = list(self._theta(sequences, offset=0.0))

        def predict(offset: float) -> list[np.ndarray]:
            moved = (replace(theta, lengths=theta.lengths + offset) for theta in thetas)
            return _starts(self._argmax(moved, sequences))

        if offsets is None:
            offsets = _spread(lambda offset: sum(map(len, predict(offset))))
        self.curve_ = tune_offset(
            predict,
            _starts(truth),
            sequences.lengths,
            offsets,
            metric=metric,
            min_recall=min_recall,
            min_precision=min_precision,
        )
        self.offset_ = self.curve_.best
        return self

    # ------------------------------------------------------------------ looking inside

    @property
    def lengths_(self) -> np.ndarray:
        """Scores (max_length, labels) of lengths, −inf outside the bounds; row l − 1 is length l."""
        self._check_is_fitted()
        return self.structure_.length_scores(self.coef_)

    def _weight_labels(self) -> list[Any]:
        self._check_is_fitted()
        return list(self._labels.classes)

    def _label_weights(self, label: Any) -> tuple[np.ndarray, Callable[[int], str]]:
        """Weights of a label; their names are ``part:name``.

        Parts are ``sum``, ``mean`` and ``variance`` (of positions), ``boundary`` and ``span`` (of whole segments).
        """
        s, C, c = self.structure_, len(self._labels), self._labels.classes.index(label)
        places: list[tuple[str, int]] = []
        weights = [np.zeros(0)]
        for part in _PARTS:
            if part in s.slices:
                keys = s.keys(part)
                chosen = np.flatnonzero(keys % C == c)
                places += [(part, int(column)) for column in keys[chosen] // C]
                weights.append(self.coef_[s.slices[part]][chosen])
        return np.concatenate(weights), lambda k: f"{places[k][0]}:{self._name(*places[k])}"

    def _weight_name(self, k: int) -> str:
        s, labels = self.structure_, [str(label) for label in self._labels.classes]
        part = next(name for name, span in s.slices.items() if span.start <= k < span.stop)
        at, C = k - s.slices[part].start, len(labels)
        if part in ("start", "end"):
            return f"start → {labels[at]}" if part == "start" else f"{labels[at]} → end"
        if part == "transitions":
            return f"{labels[at // C]} → {labels[at % C]}"
        if part == "length":
            return f"length, basis {at // C}: {labels[at % C]}"
        key = int(s.keys(part)[at])
        if part in _PARTS:
            return f"{part}:{self._name(part, key // C)}: {labels[key % C]}"
        column, pair = divmod(key, C * C)
        name = self._name("boundary" if part == "edges" else "mean", column)
        return f"{part}:{name}: {labels[pair // C]} → {labels[pair % C]}"

    def _constant_between(self, y: Segmentations, z: Segmentations) -> float:
        return float(self.offset_) * (len(y.labels) - len(z.labels))

    def _name(self, part: str, column: int) -> str:
        if self._names:
            return self._names[part if part in self._names else "frame"][column]
        index = self.edge_index_ if part == "boundary" and not self._starts_are_rows else self.index_
        if index is None or part == "span":
            return f"x{column}"
        name = index.name(column)
        return name if self.template is None else self.template.describe(name)

    # ------------------------------------------------------------------ model files

    def _saved_params(self) -> dict[str, Any]:
        return {**super()._saved_params(), "features": None}  # the fitted pack says it all

    def _check_state(self) -> None:
        super()._check_state()
        structure, self.classes_ = self.structure_, self._labels.array
        if (structure.n_labels, structure.n_features) != (len(self._labels), self.n_features_in_):
            raise ValueError("structure_ is for other labels or features than those of the model")
        self.features = None if self.features_ is None else clone(self.features_)
        self.max_length_ = structure.K
        structure.masks = self._masks()
        if self.index_ is not None and len(self.index_) != self.n_features_in_:
            raise ValueError(f"expected {self.n_features_in_} feature names, found {len(self.index_)}")

    # ------------------------------------------------------------------ parts

    def _inputs(self, X: Any) -> Sequences:
        """X with all features that the fitted structure asks for."""
        if not hasattr(self, "structure_"):
            self._check_is_fitted()
        sequences = self._transform(X)
        if sequences.n_features != self.n_features_in_ and len(sequences):
            raise ValueError(f"X has {sequences.n_features} features, the model has {self.n_features_in_}")
        if None not in (sequences.index, self.index_) and sequences.index != self.index_:
            raise ValueError("X was made with another feature index: its columns mean other features than the model's")
        return self._completed(sequences)

    def _encoded(self, y: Sequence[Any], X: Sequences) -> Segmentations:
        return Segmentations.from_segments(self._triples(y, X.lengths), X.lengths, self._labels)

    def _theta(self, X: Sequences, w: np.ndarray | None = None, offset: float | None = None) -> Iterator[SegmentScores]:
        """Part scores batch by batch, with the offset."""
        structure = self._structure()
        offset = self.offset_ if offset is None else offset
        w = self.coef_ if w is None else w
        joint = structure.joint_weights(w, X)
        for batch in structure.batches(X, self._batch_positions):
            theta = structure.scores(w, X[batch], joint)
            yield replace(theta, lengths=theta.lengths + offset) if offset else theta

    def _argmax(self, thetas: Iterator[SegmentScores], X: Sequences) -> Segmentations:
        """The best segmentations of all batches together."""
        length, label = (np.zeros(X.n_positions, np.int32) for _ in range(2))
        begin = int(X.offsets[0])
        for theta in thetas:
            rows = slice(int(theta.offsets[0]) - begin, int(theta.offsets[-1]) - begin)
            length[rows], label[rows], scores = self.structure_.best_marks(theta)
            self._check_feasible(scores, X)
        return Segmentations.from_marks(length, label, X.offsets)

    def _check_feasible(self, scores: np.ndarray, X: Sequences) -> None:
        """An error that names the sequence where bounds and constraints leave no segmentation."""
        if np.isneginf(scores).any():
            self.structure_.check(X)


def _joined_pattern(
    pattern: patterns.Pattern, old: Segments, part: str, place: np.ndarray, n: int, width: int
) -> patterns.Pattern:
    """A pattern with the pairs of features and columns that another structure has weights for."""
    if pattern is None or part not in old.slices:
        return pattern
    moved = patterns.moved(old.keys(part), place, width)
    return patterns.from_keys(np.union1d(patterns.keys(pattern, n, width), moved), n, width)


def _for_lengths(table: np.ndarray, K: int, n_axes: int) -> np.ndarray:
    """Features of segments for the lengths 1 … K: cut off, or 0 for those that the table does not have."""
    shape = (table.shape[0], *[K] * n_axes, table.shape[-1])
    out, kept = np.zeros(shape), tuple(slice(0, min(a, b)) for a, b in zip(table.shape, shape, strict=True))
    out[kept] = table[kept]
    return out


def _joined(features: SegmentFeatures) -> Sequences:
    """What a pack gives, as the structure reads it."""
    rows, edges = _whole(features.frames), _whole(features.boundaries)
    offsets = features.frames.offsets - features.frames.offsets[0]
    edges = edges if edges.shape[1] else None
    if features.segments is None:
        return Sequences(rows, offsets, edges=edges)
    k = len(features.segment_names)
    longest = max((table.shape[1] for table in features.segments), default=0)
    spans = np.concatenate([np.zeros((0, longest, k)), *features.segments])
    pairs = None
    if features.pairs is not None:
        pairs = np.concatenate([np.zeros((0, longest, longest, len(features.pair_names))), *features.pairs])
    return SpanSequences(rows, offsets, edges=edges, spans=spans, pair_spans=pairs)


def _whole(X: Sequences) -> Any:
    """The rows of the sequences alone, which may be a part of what lies in memory."""
    if X.n_positions == X.rows.shape[0]:
        return X.rows
    return X.rows.take(np.arange(int(X.offsets[0]), int(X.offsets[-1])))


def _starts(y: Segmentations) -> list[np.ndarray]:
    """Where segments start, counted from the beginning of their sequence."""
    begins = np.repeat(y.positions[:-1] - y.positions[0], np.diff(y.firsts))
    return np.split(y.starts - begins, y.firsts[1:-1])


def _spread(count: Callable[[float], int]) -> np.ndarray:
    """Offsets on both sides of 0, up to where the number of segments no longer changes."""
    offsets = []
    for sign in (1.0, -1.0):
        end, last = sign, count(sign)
        for _ in range(40):
            following = count(2 * end)
            if following == last:
                break
            end, last = 2 * end, following
        offsets.append(end * (np.arange(1, _OFFSETS + 1) / _OFFSETS) ** 2)
    return np.concatenate(offsets)


def _to_json(value: Any) -> Any:
    """A parameter as plain data; a mapping as pairs, since its keys may be numbers."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return {"": [[_to_json(k), _to_json(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == [""]:
        return {k: v for k, v in value[""]}
    return value


def _loss_of(meta: dict[str, Any], loss: str | Loss) -> str:
    """The loss that a model file says was used; older files have the parameter alone."""
    return check_choice("loss", meta.get("loss", loss if isinstance(loss, str) else loss.name), tuple(LOSSES))


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _of(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The inverse of :func:`_under`."""
    return {n.removeprefix(f"{prefix}."): array for n, array in arrays.items() if n.startswith(f"{prefix}.")}


def _index_of(name: str, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> FeatureIndex | None:
    bits = meta[f"{name}_bits"]
    if bits is None or bits:
        return None if bits is None else FeatureIndex(bits)
    return FeatureIndex.from_arrays(_of(arrays, name))
