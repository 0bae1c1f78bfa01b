"""Thousands of labels over hashed features, from memory or from files of any size: a tree of labels in one table.

Labels are the leaves of a tree with 16 children per node. An example trains only the nodes above its own labels. So its
cost grows with its number of labels and with the depth of the tree, log₁₆ of the number of all labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import _core
from mercer._estimator import Estimator
from mercer._state.limits import reserve
from mercer._state.saved import Choice, Count, Fields, Floats, LabelValues, Number, Saved
from mercer._validation import check_choice, check_count, check_positive, check_sparse, thread_count, used_examples
from mercer.data.readers.source import Source
from mercer.learning.visits import visits
from mercer.multilabel._decisions import MEASURES
from mercer.multilabel.joint import LabelSetClassifier
from mercer.multilabel.label_forms import FORMS, encode, fit_labels, give
from mercer.online.blocks import make_reader, read_blocks
from mercer.online.formats import FileFormat, resolved_format
from mercer.online.inputs import Documents, Rows, is_documents

__all__ = ["HashedLabelSets"]

DEPTH = 5  # of the tree: up to 16⁵ labels
_BLOCK = 2048  # examples at a time
_JUDGED = 64  # examples of a block that choose the threshold
_BINS = 200


class HashedLabelSets(LabelSetClassifier, Saved, Estimator):
    """Learn label sets of texts or sparse rows, thousands of labels in fixed memory.

    Parameters
    ----------
    n_bits : int, default=22
        The table has 2^n_bits weights.
    max_iter : int, default=3
        Passes over the examples.
    learning_rate : float, default=0.5
        Step size.
    hasher : TextHasher, optional
        Features of documents; by default words in lower case.
    threshold : "auto" or float
        Probability threshold of a label. ``"auto"``: the threshold with the best micro-F1 on examples of the last pass,
        before they were learned again.
    random_state : int, RandomState or None
        Seed of the order of examples in memory. Files are read in their order.
    n_jobs : int or None
        Threads for prediction.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Labels in the order of their first occurrence.
    threshold_ : float
    n_examples_ : int
        Number of examples learned, over all passes.
    n_iter_ : int
        Passes.

    Examples
    --------
    >>> from mercer.multilabel import HashedLabelSets
    >>> texts = ["blue sky over the sea", "the sea at night", "a clear sky", "rain in town"] * 10
    >>> labels = [["sea", "sky"], ["sea"], ["sky"], []] * 10
    >>> HashedLabelSets(n_bits=16, max_iter=5).fit(texts, labels).predict(["sky and sea", "rain in town"])
    [['sea', 'sky'], []]

    References
    ----------
    .. [Jasinska2016] K. Jasinska, K. Dembczyński, R. Busa-Fekete, K. Pfannschmidt, T. Klerx and E. Hüllermeier. Extreme
       F-measure maximization using sparse probability estimates. ICML, 2016.
    """

    measure = "micro-f1"
    _numeric_targets = False
    saved = Fields(
        classes_=LabelValues(0),
        label_form_=Choice(*FORMS),
        input_=Choice("array", "documents"),
        weights_=Floats(None, single=True),
        squares_=Floats("weights_", low=0.0, single=True),
        threshold_=Number(0.0, 1.0),
        n_examples_=Count(0),
        n_iter_=Count(),
    )
    version = 2  # n_epochs and rate are max_iter and learning_rate

    input_: str

    def __init__(
        self,
        n_bits: int = 22,
        max_iter: int = 3,
        *,
        learning_rate: float = 0.5,
        hasher: Any = None,
        threshold: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.hasher = hasher
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> HashedLabelSets:
        """Learn from documents or rows and their label sets.

        Parameters
        ----------
        X : list of texts, array or sparse matrix
        Y : array or sparse matrix of 0 and 1, or list of label sets
        sample_weight : array of a number for each example, optional
            How often a pass visits an example: integer weights are repeats, others averages.

        Returns
        -------
        self : HashedLabelSets
        """
        self._check_parameters()
        inputs = self._inputs(X, reset=True)
        used, weights = used_examples(sample_weight, len(inputs))
        labels, self.classes_, self.label_form_ = fit_labels(Y, len(inputs), used)
        random = check_random_state(self.random_state)
        self._start()
        order = None
        for epoch in range(self.max_iter):
            order = visits(weights, labels.shape[0], random, order)
            random.shuffle(order)
            for at in range(0, len(order), _BLOCK):
                rows = order[at : at + _BLOCK]
                block = inputs.examples(rows if used is None else used[rows])
                self._learn(block, labels[rows], epoch == self.max_iter - 1)
        self._choose()
        return self

    def fit_file(
        self,
        path: Any,
        format: FileFormat | str | None = None,
        *,
        label_separator: str = ",",
        limit: int | None = None,
    ) -> HashedLabelSets:
        """Learn from a file that does not have to fit into memory.

        Parameters
        ----------
        path : path
            Text (``labels<tab>text``), svmlight, Vowpal Wabbit, csv or JSON lines, plain or compressed.
        format : FileFormat or str, optional
            As in `HashedClassifier.fit_file`.
        label_separator : str, default=","
            Separator of the labels of an example.
        limit : int, optional
            Maximum number of examples to read.

        Returns
        -------
        self : HashedLabelSets
        """
        self._check_parameters()
        if not isinstance(label_separator, str) or not label_separator:
            raise ValueError(f"label_separator must be a string, got {label_separator!r}")
        self.classes_, self.label_form_ = np.zeros(0, dtype=object), "sets"
        self._start()
        self._numbers: dict[str, int] = {}
        for epoch in range(self.max_iter):
            for block in self._file_blocks(path, limit, FileFormat.of(format)):
                self._learn(block, self._sets_of(block, label_separator, grow=True), epoch == self.max_iter - 1)
        if not self.n_examples_:
            raise ValueError(f"{path}: the file has no examples")
        self.classes_ = np.array(list(self._numbers)) if self._numbers else np.zeros(0, dtype="U1")
        del self._numbers
        self._separator = label_separator
        self._choose()
        return self

    def _check_parameters(self) -> None:
        if check_count("n_bits", self.n_bits, 5) > 32:
            raise ValueError(f"n_bits must be at most 32, got {self.n_bits}")
        check_count("max_iter", self.max_iter)
        check_positive("learning_rate", self.learning_rate)
        thread_count(self.n_jobs)
        if isinstance(self.threshold, str):
            check_choice("threshold", self.threshold, ("auto",))
        elif not 0 < check_positive("threshold", self.threshold) < 1:
            raise ValueError(f"threshold is a probability, got {self.threshold!r}")

    def _start(self) -> None:
        self.weights_ = np.zeros(1 << self.n_bits, np.float32)
        self.squares_ = np.zeros(1 << self.n_bits, np.float32)
        self.n_examples_, self.n_iter_ = 0, self.max_iter
        self._counts = np.zeros((2, _BINS))
        self._true = 0.0

    def _inputs(self, X: Any, reset: bool) -> Any:
        if is_documents(X, not reset and self.input_ == "documents"):
            if not reset and self.input_ != "documents":
                raise ValueError("this model has learnt from arrays, and X holds documents")
            self.input_ = "documents"
            return Documents.of(X, self.hasher)
        if not reset and self.input_ != "array":
            raise ValueError("this model has learnt from documents, and X is an array")
        X = validate_data(self, check_sparse("X", X), reset=reset, accept_sparse="csr", dtype=np.float64)
        self.input_ = "array"
        return Rows.of(X, self.n_bits)

    def _file_blocks(self, path: Any, limit: int | None, said: FileFormat) -> Iterator[Any]:
        import threading

        source = Source(path, said.encoding)
        form = resolved_format(source, None, said)
        self.input_ = "array" if form.format == "svmlight" else "documents"
        reader = make_reader(self, form, source, "raise", limit, False, gather=False)
        reader.take_label_sets()
        yield from read_blocks(source, reader, 1 << 20, threading.Event(), layout=form.layout)
        if form.format == "svmlight":
            self.n_features_in_ = max(int(reader.n_columns), 1)

    def _sets_of(self, block: Any, separator: str, grow: bool) -> sp.csr_matrix:
        """The label sets of a block, whose labels are names joined by a separator."""
        parts = [[p.strip() for p in name.split(separator) if p.strip()] for name in block.label_names]
        if grow:
            for part in parts:
                for name in part:
                    self._numbers.setdefault(name, len(self._numbers))
        numbers = [sorted({self._numbers[name] for name in part if name in self._numbers}) for part in parts]
        rows = [numbers[i] if i >= 0 else [] for i in block.labels.tolist()] or [[] for _ in range(len(block))]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        flat = np.array([i for row in rows for i in row], np.int64)
        return sp.csr_matrix((np.ones(len(flat)), flat, starts), shape=(len(rows), max(len(self._numbers), 1)))

    def _learn(self, block: Any, labels: sp.csr_matrix, last: bool) -> None:
        T = labels.shape[1]
        if T > 16**DEPTH:
            raise ValueError(f"there are {T} labels, the tree has room for {16**DEPTH}")
        labels = labels.sorted_indices()
        starts, flat = labels.indptr.astype(np.int64), labels.indices.astype(np.int32)
        if last and self.threshold == "auto":
            self._judge(block, labels, T)
        _core.joint.learn_label_sets(block, starts, flat, self.weights_, self.squares_, T, DEPTH, self.learning_rate)
        self.n_examples_ += len(block)

    def _judge(self, block: Any, labels: sp.csr_matrix, T: int) -> None:
        """Count what thresholds would give and get right, for the first examples of a block."""
        n = min(_JUDGED, len(block))
        starts, likely, p = _core.joint.likely_labels(block, self.weights_, T, DEPTH, 0.02, 1000, 1)
        end = int(starts[n])
        cell = np.minimum((p[:end] * _BINS).astype(np.int64), _BINS - 1)
        rows = np.repeat(np.arange(n), np.diff(starts[: n + 1]))
        right = np.asarray(labels[rows, likely[:end]]).ravel() > 0 if end else np.zeros(0, bool)
        self._counts[0] += np.bincount(cell, minlength=_BINS)
        self._counts[1] += np.bincount(cell[right], minlength=_BINS)
        self._true += float(labels[:n].sum())

    def _choose(self) -> None:
        if self.threshold != "auto":
            self.threshold_ = float(self.threshold)
        else:
            given, right = (np.cumsum(row[::-1])[::-1] for row in self._counts)
            f1 = 2 * right / np.maximum(given + self._true, 1)
            self.threshold_ = float(max(int(f1.argmax()), 4) / _BINS)
        del self._counts, self._true

    # ------------------------------------------------------------------ prediction

    def _blocks(self, X: Any) -> Iterator[Any]:
        check_is_fitted(self, "weights_")
        inputs = self._inputs(X, reset=False)
        for at in range(0, len(inputs), _BLOCK):
            yield inputs.examples(np.arange(at, min(at + _BLOCK, len(inputs))))

    def _likely(self, blocks: Iterable[Any], least: float, most: int) -> sp.csr_matrix:
        T = max(len(self.classes_), 1)
        parts = [sp.csr_matrix((0, T))]
        for block in blocks:
            starts, labels, p = _core.joint.likely_labels(
                block, self.weights_, len(self.classes_), DEPTH, least, most, thread_count(self.n_jobs)
            )
            parts.append(sp.csr_matrix((p.astype(np.float64), labels, starts), shape=(len(block), T)))
        return sp.csr_matrix(sp.vstack(parts, format="csr"))

    def predict(self, X: Any, n_labels: int | None = None) -> Any:
        """Return the label sets of documents or rows, in the form that the training labels came in.

        Parameters
        ----------
        X : list of texts, array or sparse matrix
        n_labels : int, optional
            Predict this number of labels per example, those with the highest probabilities.

        Returns
        -------
        Y : array or sparse matrix of shape (n_rows, n_labels), or list of lists of labels
        """
        check_is_fitted(self, "weights_")
        return self._given(self._blocks(X), n_labels)

    def predict_file(self, path: Any, format: FileFormat | str | None = None, *, n_labels: int | None = None) -> Any:
        """Return the label sets of the examples of a file; labels in the file are ignored.

        Parameters
        ----------
        path, format
            As in `fit_file`.
        n_labels : int, optional
            As in `predict`.

        Returns
        -------
        Y : list of lists of labels
        """
        check_is_fitted(self, "weights_")
        kind = self.input_
        blocks = list(self._file_blocks(path, None, FileFormat.of(format)))
        if self.input_ != kind:
            self.input_ = kind
            raise ValueError(f"{path}: this model has learnt from {kind}, and the file is of another kind")
        return self._given(blocks, n_labels)

    def _labelled_file(self, path: Any) -> tuple[sp.csr_matrix, np.ndarray, list[str]]:
        """True labels and probabilities of the examples of a file, and its labels that the model does not know."""
        check_is_fitted(self, "weights_")
        blocks = list(self._file_blocks(path, None, FileFormat()))
        separator = getattr(self, "_separator", ",")
        self._numbers = {str(name): i for i, name in enumerate(self.classes_.tolist())}
        truth = [self._sets_of(block, separator, grow=False) for block in blocks]
        names = {p.strip() for block in blocks for name in block.label_names for p in name.split(separator)}
        strange = sorted(names - set(self._numbers) - {""})
        del self._numbers
        if not blocks:
            raise ValueError(f"{path}: the file has no examples")
        return sp.csr_matrix(sp.vstack(truth)), self._likely(blocks, 0.0, 1 << 20).toarray(), strange

    def _given(self, blocks: Iterable[Any], n_labels: int | None) -> Any:
        if n_labels is None:
            likely = self._likely(blocks, self.threshold_, 1 << 20)
        else:
            if check_count("n_labels", n_labels) > len(self.classes_):
                raise ValueError(f"n_labels is {n_labels}, but there are {len(self.classes_)} labels")
            likely = self._likely(blocks, 0.0, n_labels)
        likely.data[:] = 1.0
        return give(likely, self.classes_, self.label_form_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every label; use it with few labels, because it evaluates all of them.

        Parameters
        ----------
        X : list of texts, array or sparse matrix

        Returns
        -------
        probabilities : array of shape (n_rows, n_labels)
        """
        check_is_fitted(self, "weights_")
        return self._likely(self._blocks(X), 0.0, 1 << 20).toarray()

    def score(self, X: Any, Y: Any) -> float:
        """Return the micro-F1 on these rows.

        Parameters
        ----------
        X : list of texts, array or sparse matrix
        Y : label sets, as in `fit`

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "weights_")
        likely = self._likely(self._blocks(X), self.threshold_, 1 << 20)
        known = encode(self, Y)
        if known.shape[0] != likely.shape[0]:
            raise ValueError(f"X has {likely.shape[0]} rows and Y {known.shape[0]}: they must be of one length")
        return MEASURES["micro-f1"](known.toarray() > 0, likely.toarray() > 0)

    def _check_state(self) -> None:
        self._check_parameters()
        reserve(8 << self.n_bits, f"a table of 2^{self.n_bits} weights")
        if len(self.weights_) != 1 << self.n_bits or self.weights_.dtype != np.float32:
            raise ValueError(f"weights_ must hold 2^{self.n_bits} numbers of single precision")
        if self.squares_.dtype != np.float32:
            raise ValueError("squares_ must hold numbers of single precision")
        if len(self.classes_) > 16**DEPTH:
            raise ValueError(f"there are {len(self.classes_)} labels, the tree has room for {16**DEPTH}")
