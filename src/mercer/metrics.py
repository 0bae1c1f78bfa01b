"""How good predicted label sequences are: by token, by whole sequence, and by labelled span.

A span (a chunk, an entity) counts as correct only if its start, its end and its type are all right:

    precision = correct / predicted,   recall = correct / true,   F1 = 2 · correct / (predicted + true),

and 0 where the denominator is 0. Spans are read off the labels by the rules of CoNLL's scorer, conlleval.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer import _core
from mercer._validation import check_count, decreases, group_order

__all__ = [
    "BoundaryScore",
    "ClassSizeError",
    "ClusterScore",
    "SpanReport",
    "SpanScore",
    "b_cubed_score",
    "boundary_cost",
    "boundary_f1",
    "boundary_score",
    "bracket_f1",
    "error_by_class_size",
    "hamming_loss",
    "is_span_labelling",
    "muc_score",
    "pairwise_error",
    "pairwise_score",
    "pk",
    "segment_confusion",
    "segment_f1",
    "sequence_accuracy",
    "span_f1",
    "span_report",
    "spans",
    "token_accuracy",
    "window_diff",
    "zero_one_loss",
]

Labels: TypeAlias = Sequence[Any]
Span: TypeAlias = tuple[int, int, str]

_PREFIXES = frozenset("BILUES")
_ALWAYS_OPEN = frozenset("BSU")  # these begin a span, whatever stands before
_ALWAYS_CLOSE = frozenset("ELSU")  # these end their span, whatever follows


def token_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """The share of tokens with the right label.

    Parameters
    ----------
    y_true, y_pred : list of label sequences

    Returns
    -------
    accuracy : float

    Examples
    --------
    >>> from mercer.metrics import token_accuracy
    >>> token_accuracy([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.75
    """
    right = total = 0
    for true, predicted in _pairs(y_true, y_pred):
        right += sum(1 for a, b in zip(true, predicted, strict=True) if a == b)
        total += len(true)
    if not total:
        raise ValueError("y_true holds no tokens, so there is no accuracy to compute")
    return right / total


def sequence_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """The share of sequences with every label right.

    Parameters
    ----------
    y_true, y_pred : list of label sequences

    Returns
    -------
    accuracy : float

    Examples
    --------
    >>> from mercer.metrics import sequence_accuracy
    >>> sequence_accuracy([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.5
    """
    pairs = _pairs(y_true, y_pred)
    if not pairs:
        raise ValueError("y_true holds no sequences, so there is no accuracy to compute")
    return sum(all(a == b for a, b in zip(*pair, strict=True)) for pair in pairs) / len(pairs)


def spans(labels: Sequence[str]) -> list[Span]:
    """The spans that the labels of one sequence spell out.

    Understands IOB2 (``B-`` begins every span), IOB1 (``B-`` only between touching spans of one type), BIOES
    and BILOU (``E-`` or ``L-`` ends a span, ``S-`` or ``U-`` is a span of one token), and the same letters
    without a type. Labels that break their scheme are read as conlleval reads them: a span begins wherever
    the type changes or none was open.

    Parameters
    ----------
    labels : sequence of str

    Returns
    -------
    spans : list of (start, end, type)
        ``end`` is the first token after the span.

    Examples
    --------
    >>> from mercer.metrics import spans
    >>> spans(["B-NP", "I-NP", "O", "B-VP", "B-NP"])
    [(0, 2, 'NP'), (3, 4, 'VP'), (4, 5, 'NP')]
    """
    found: list[Span] = []
    start, open_type = 0, ""
    is_open = False
    for t, label in enumerate(labels):
        prefix, kind = _split(label)
        begins = prefix != "O" and (not is_open or prefix in _ALWAYS_OPEN or kind != open_type)
        if is_open and (begins or prefix == "O"):
            found.append((start, t, open_type))
            is_open = False
        if begins:
            start, open_type, is_open = t, kind, True
        if is_open and prefix in _ALWAYS_CLOSE:
            found.append((start, t + 1, open_type))
            is_open = False
    if is_open:
        found.append((start, len(labels), open_type))
    return found


def is_span_labelling(labels: Iterable[Any]) -> bool:
    """Whether these labels spell out spans, so that a span score says something.

    Parameters
    ----------
    labels : iterable of str, or of label sequences
        A set of labels, one sequence of them, or a list of sequences.

    Returns
    -------
    answer : bool
        True if every label reads as one of :func:`spans` and they are more than ``O``. Labels without a type
        (``B``, ``I``, ``O``) count only together with ``O``: a lone ``I`` may as well be a letter.

    Examples
    --------
    >>> from mercer.metrics import is_span_labelling
    >>> is_span_labelling(["B-NP", "I-NP", "O"])
    True
    >>> is_span_labelling(["NN", "VB", "DT"])
    False
    """
    distinct: set[Any] = set()
    for item in labels:
        distinct.update([item] if isinstance(item, str) or not isinstance(item, Iterable) else item)
    if not all(isinstance(label, str) and _is_span_label(label) for label in distinct):
        return False
    typed = any("-" in label for label in distinct)
    return typed or ("O" in distinct and not distinct.isdisjoint("BI"))


@dataclass(frozen=True)
class SpanScore:
    """Precision, recall and F1 of spans, with the counts behind them.

    Attributes
    ----------
    precision, recall, f1 : float
    support : int
        True spans.
    predicted : int
        Predicted spans.
    correct : int
        Predicted spans that are true.
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int

    @classmethod
    def from_counts(cls, support: int, predicted: int, correct: int) -> SpanScore:
        """The score that belongs to these counts.

        Examples
        --------
        >>> from mercer.metrics import SpanScore
        >>> SpanScore.from_counts(support=4, predicted=2, correct=1).precision
        0.5
        """
        return cls(
            precision=correct / predicted if predicted else 0.0,
            recall=correct / support if support else 0.0,
            f1=2 * correct / (predicted + support) if predicted + support else 0.0,
            support=support,
            predicted=predicted,
            correct=correct,
        )


@dataclass(frozen=True)
class SpanReport:
    """Span scores over all types and for each; ``print`` it for a table.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the spans of all types together (micro average, as conlleval reports it).
    accuracy : float
        Share of tokens with the right label.
    support, predicted, correct : int
        Numbers of true, predicted and correctly predicted spans.
    by_label : dict of str to SpanScore
        The score of each type, in alphabetical order.
    """

    precision: float
    recall: float
    f1: float
    accuracy: float
    support: int
    predicted: int
    correct: int
    by_label: dict[str, SpanScore]

    def __str__(self) -> str:
        rows: list[tuple[str, SpanScore | SpanReport]] = [
            (label or "(no type)", score) for label, score in self.by_label.items()
        ]
        rows.append(("all spans", self))
        width = max(len(name) for name, _ in rows)
        lines = [f"{'':{width}}  precision   recall       f1  support  predicted"]
        for name, s in rows:
            shares = f"{s.precision:9.4f}  {s.recall:7.4f}  {s.f1:7.4f}"
            lines.append(f"{name:{width}}  {shares}  {s.support:7d}  {s.predicted:9d}")
        lines.insert(-1, "")
        lines.append(f"{'token accuracy':{width}}  {self.accuracy:.4f}")
        return "\n".join(lines)


def span_report(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> SpanReport:
    """Compare the spans of predicted label sequences with the true ones.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        In any scheme that :func:`spans` reads.

    Returns
    -------
    report : SpanReport

    Examples
    --------
    >>> from mercer.metrics import span_report
    >>> report = span_report([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "O", "O", "B-VP"]])
    >>> print(report)
               precision   recall       f1  support  predicted
    NP            0.0000   0.0000   0.0000        1          1
    VP            1.0000   1.0000   1.0000        1          1
    <BLANKLINE>
    all spans     0.5000   0.5000   0.5000        2          2
    token accuracy  0.7500
    """
    accuracy = token_accuracy(y_true, y_pred)
    support: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for labels, guesses in zip(y_true, y_pred, strict=True):
        truth, guess = spans(labels), spans(guesses)
        support.update(kind for _, _, kind in truth)
        predicted.update(kind for _, _, kind in guess)
        correct.update(kind for _, _, kind in set(truth).intersection(guess))
    kinds = sorted(support.keys() | predicted.keys())
    by_label = {kind: SpanScore.from_counts(support[kind], predicted[kind], correct[kind]) for kind in kinds}
    total = SpanScore.from_counts(support.total(), predicted.total(), correct.total())
    return SpanReport(
        precision=total.precision,
        recall=total.recall,
        f1=total.f1,
        accuracy=accuracy,
        support=total.support,
        predicted=total.predicted,
        correct=total.correct,
        by_label=by_label,
    )


def span_f1(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """F1 over the spans of all types: ``span_report(y_true, y_pred).f1``.

    Parameters
    ----------
    y_true, y_pred : list of label sequences

    Returns
    -------
    f1 : float

    Examples
    --------
    >>> from mercer.metrics import span_f1
    >>> span_f1([["B-NP", "I-NP", "B-NP"]], [["B-NP", "I-NP", "O"]])
    0.6666666666666666
    """
    return span_report(y_true, y_pred).f1


def _pairs(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> list[tuple[Labels, Labels]]:
    """The sequences side by side, after checking that they fit."""
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, but y_pred has {len(y_pred)}")
    pairs = list(zip(y_true, y_pred, strict=True))
    for number, (true, predicted) in enumerate(pairs, 1):
        for name, labels in (("y_true", true), ("y_pred", predicted)):
            if isinstance(labels, str) or not hasattr(labels, "__len__"):
                raise ValueError(f"{name} must be a list of label sequences, found {labels!r} where one should be")
        if len(true) != len(predicted):
            raise ValueError(f"sequence {number} has {len(true)} labels in y_true, but {len(predicted)} in y_pred")
    return pairs


def _is_span_label(label: str) -> bool:
    return label == "O" or (label[:1] in _PREFIXES and label[1:2] in ("", "-"))


@lru_cache(maxsize=4096)
def _split(label: str) -> tuple[str, str]:
    """``"B-NP"`` as ``("B", "NP")``."""
    if not isinstance(label, str) or not _is_span_label(label):
        raise ValueError(f"{label!r} is no span label: expected O, or B, I, E, L, S or U with a type as in 'B-NP'")
    return label[0], label[2:]


# ------------------------------------------------------------------------------------------------ structured losses


def hamming_loss(y_true: Sequence[Labels], y_pred: Sequence[Labels], *, normalize: bool = True) -> float:
    """The share of wrong labels over sequences of any lengths, or the mean number of them in a sequence.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
    normalize : bool, default=True
        True: wrong labels divided by all labels, 1 − :func:`token_accuracy`. False: the Hamming cost Δ of the margin
        losses, averaged over sequences.

    Returns
    -------
    loss : float

    Examples
    --------
    >>> from mercer.metrics import hamming_loss
    >>> hamming_loss([["a", "b"], ["a", "a", "c"]], [["a", "c"], ["b", "a", "c"]])
    0.4
    >>> hamming_loss([["a", "b"], ["a", "a", "c"]], [["a", "c"], ["b", "a", "c"]], normalize=False)
    1.0
    """
    pairs = _pairs(y_true, y_pred)
    wrong = sum(a != b for pair in pairs for a, b in zip(*pair, strict=True))
    total = sum(len(true) for true, _ in pairs) if normalize else len(pairs)
    if not total:
        raise ValueError(f"y_true holds no {'labels' if normalize else 'sequences'}, so there is no loss to compute")
    return wrong / total


def zero_one_loss(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of outputs that are not right as a whole.

    Parameters
    ----------
    y_true, y_pred : list of outputs
        Label sequences, arrays, trees, alignments: anything that can be compared with ``==``. Sequences of different
        lengths are different.

    Returns
    -------
    loss : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import zero_one_loss
    >>> zero_one_loss([["a", "b"], np.array([1, 2])], [["a", "b"], np.array([1, 3])])
    0.5
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} outputs, but y_pred has {len(y_pred)}")
    if not len(y_true):
        raise ValueError("y_true holds no outputs, so there is no loss to compute")
    return sum(not _same(a, b) for a, b in zip(y_true, y_pred, strict=True)) / len(y_true)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    if hasattr(a, "__len__") and hasattr(b, "__len__") and hasattr(a, "__iter__") and not isinstance(a, dict | set):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def boundary_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels], *, tolerance: int = 0) -> float:
    """F1 of the places where the label changes, each allowed to be some positions off.

    A boundary is a position t ≥ 1 with another label than position t − 1. A predicted boundary and a true one of the
    same sequence fit if they are at most ``tolerance`` positions apart; as many as possible are paired, each with at
    most one other, and

        F1 = 2 · paired / (predicted + true),

    over all sequences together; 1 where there are no boundaries at all.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
    tolerance : int, default=0

    Returns
    -------
    f1 : float

    Examples
    --------
    >>> from mercer.metrics import boundary_f1
    >>> boundary_f1(["aaabbbcc"], ["aabbbbcc"])
    Traceback (most recent call last):
    ...
    ValueError: y_true must be a list of label sequences, found 'aaabbbcc' where one should be
    >>> true, predicted = [list("aaabbbcc")], [list("aabbbbcc")]
    >>> boundary_f1(true, predicted), boundary_f1(true, predicted, tolerance=1)
    (0.5, 1.0)
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int) or tolerance < 0:
        raise ValueError(f"tolerance must be an integer of at least 0, found {tolerance!r}")
    paired = total = 0
    for true, predicted in _pairs(y_true, y_pred):
        a, b = _boundaries(true), _boundaries(predicted)
        total += len(a) + len(b)
        paired += _paired(a, b, tolerance)
    return 2 * paired / total if total else 1.0


def _boundaries(labels: Labels) -> list[int]:
    return [t for t in range(1, len(labels)) if labels[t] != labels[t - 1]]


def _paired(a: list[int], b: list[int], tolerance: int) -> int:
    """The largest number of pairs; on a line, pairing the earliest two that fit is best."""
    count = i = j = 0
    while i < len(a) and j < len(b):
        if abs(a[i] - b[j]) <= tolerance:
            count, i, j = count + 1, i + 1, j + 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return count


# ------------------------------------------------------------------------------------------------------ segmentations
#
# A segmentation of n positions is given by the positions where its segments start, b_0 = 0 < b_1 < … < b_{L−1} < n.
# The first start is no decision, so scores of boundaries are over the positions 1 .. n − 1.


@dataclass(frozen=True)
class BoundaryScore:
    """How well predicted segment starts agree with the true ones, over the positions where one may or may not start.

    Attributes
    ----------
    accuracy : float
        Share of positions with the right answer to "does a segment start here?".
    precision, recall, f1 : float
        0 where the denominator is 0.
    support, predicted, correct : int
        True starts, predicted ones, and those that are both.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int


def boundary_score(y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray) -> BoundaryScore:
    """Accuracy, precision, recall and F1 of segment starts, over all sequences together.

    The first position of a sequence starts a segment in any case and is left out.

    Parameters
    ----------
    y_true, y_pred : list of arrays of int
        The starts of each sequence, rising, the first of them 0.
    lengths : list of int
        The number of positions of each sequence.

    Returns
    -------
    score : BoundaryScore

    Examples
    --------
    >>> from mercer.metrics import boundary_score
    >>> score = boundary_score([[0, 3, 6]], [[0, 3, 5]], [8])
    >>> score.recall, score.precision, round(score.accuracy, 3)
    (0.5, 0.5, 0.714)
    """
    support = predicted = correct = positions = 0
    for true, guess, n in _segmentations(y_true, y_pred, lengths):
        positions += max(n - 1, 0)
        support += max(len(true) - 1, 0)
        predicted += max(len(guess) - 1, 0)
        correct += max(len(np.intersect1d(true, guess, assume_unique=True)) - 1, 0)
    if not positions:
        raise ValueError("no sequence has a second position, so there is no boundary to decide on")
    span = SpanScore.from_counts(support, predicted, correct)
    accuracy = 1 - (support + predicted - 2 * correct) / positions
    return BoundaryScore(accuracy, span.precision, span.recall, span.f1, support, predicted, correct)


def boundary_cost(
    y_true: Sequence[int], y_pred: Sequence[int], labels: tuple[Sequence[Any], Sequence[Any]] | None = None
) -> int:
    """The number of boundaries that only one of two segmentations has.

        Δ(y, z) = n(y) + n(z) − 2 n(y ∩ z),

    n counting boundaries. It may exceed the number of true ones.

    Parameters
    ----------
    y_true, y_pred : array of int
        Segment starts of one sequence, rising, the first of them 0.
    labels : (sequence, sequence), optional
        The labels of the true and of the predicted segments: two boundaries are then the same only if their labels are.

    Returns
    -------
    cost : int

    Examples
    --------
    >>> from mercer.metrics import boundary_cost
    >>> boundary_cost([0, 3], [0, 2, 5, 7])
    4
    >>> boundary_cost([0, 3], [0, 3], labels=(["a", "b"], ["a", "c"]))
    2
    """
    starts = [check_starts(name, y, None).tolist() for name, y in (("y_true", y_true), ("y_pred", y_pred))]
    marked = [list(zip(y, [None] * len(y), strict=True)) for y in starts]
    if labels is not None:
        for k, (name, y) in enumerate(zip(("y_true", "y_pred"), starts, strict=True)):
            if len(labels[k]) != len(y):
                raise ValueError(f"labels[{k}] holds {len(labels[k])} labels for the {len(y)} segments of {name}")
            marked[k] = list(zip(y, labels[k], strict=True))
    return len(set(marked[0]) ^ set(marked[1]))


def segment_f1(y_true: Sequence[Any], y_pred: Sequence[Any], *, labelled: bool = True) -> SpanScore:
    """Whole segments: precision, recall and F1, a segment being right if its start, its end and its label are.

    Parameters
    ----------
    y_true, y_pred : list of label sequences, or list of lists of (start, end, label)
        Of a label sequence the segments are its runs of equal labels; triples can tell neighbours of one label apart.
    labelled : bool, default=True
        False: start and end are enough.

    Returns
    -------
    score : SpanScore
        Over all sequences together.

    Examples
    --------
    >>> from mercer.metrics import segment_f1
    >>> true, predicted = [list("aaabbcc")], [list("aaabbbb")]
    >>> segment_f1(true, predicted).f1
    0.4
    >>> segment_f1([[(0, 3, "a"), (3, 5, "a")]], [[(0, 3, "a"), (3, 5, "b")]], labelled=False).f1
    1.0
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, but y_pred has {len(y_pred)}")
    support = predicted = correct = 0
    for number, (true, guess) in enumerate(zip(y_true, y_pred, strict=True), 1):
        wanted, found = (
            _segments(f"{name}, sequence {number}", y, labelled) for name, y in (("y_true", true), ("y_pred", guess))
        )
        if max((s[1] for s in wanted), default=0) != max((s[1] for s in found), default=0):
            raise ValueError(f"sequence {number} ends at another position in y_true than in y_pred")
        support += len(wanted)
        predicted += len(found)
        correct += len(wanted & found)
    return SpanScore.from_counts(support, predicted, correct)


def segment_confusion(
    y_true: Sequence[Any], y_pred: Sequence[Any], labels: Sequence[Any] | None = None
) -> tuple[list[Any], np.ndarray]:
    """Which labels the positions of true segments get, each segment counting as one.

    Entry (a, b) is the mean, over the true segments of label a, of the share of their positions that are predicted as
    b: rows sum to 1, and a short segment weighs as much as a long one.

    Parameters
    ----------
    y_true, y_pred : list of label sequences, or list of lists of (start, end, label)
        As for :func:`segment_f1`.
    labels : sequence, optional
        Rows and columns, in this order. Default: all that occur, sorted.

    Returns
    -------
    labels : list
    confusion : array of shape (n_labels, n_labels)
        NaN in rows of labels that no true segment has.

    Examples
    --------
    >>> from mercer.metrics import segment_confusion
    >>> labels, confusion = segment_confusion([list("aaaabb")], [list("aaabbb")])
    >>> labels, confusion
    (['a', 'b'], array([[0.75, 0.25],
           [0.  , 1.  ]]))
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences, but y_pred has {len(y_pred)}")
    shares: list[tuple[Any, Counter[Any], int]] = []
    for number, (true, guess) in enumerate(zip(y_true, y_pred, strict=True), 1):
        wanted, found = (
            sorted(_segments(f"{name}, sequence {number}", y, True), key=lambda segment: segment[0])
            for name, y in (("y_true", true), ("y_pred", guess))
        )
        predicted = [label for a, b, label in found for _ in range(b - a)]
        if len(predicted) != max((b for _, b, _ in wanted), default=0):
            raise ValueError(f"sequence {number} ends at another position in y_true than in y_pred")
        shares += [(label, Counter(predicted[a:b]), b - a) for a, b, label in wanted]
    seen = {each for label, counts, _ in shares for each in (label, *counts)}
    names = label_order(seen) if labels is None else list(labels)
    unknown = sorted(map(repr, seen - set(names)))
    if unknown:
        raise ValueError(f"labels lacks {', '.join(unknown)}, which occur in the segmentations")
    place = {label: k for k, label in enumerate(names)}
    confusion, n_segments = np.zeros((len(names), len(names))), np.zeros(len(names))
    for label, counts, size in shares:
        n_segments[place[label]] += 1
        for other, count in counts.items():
            confusion[place[label], place[other]] += count / size
    with np.errstate(invalid="ignore"):
        return names, confusion / n_segments[:, None]


def label_order(labels: Iterable[Any]) -> list[Any]:
    """Labels sorted; where they cannot be compared, by how they are written."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    try:
        return sorted(plain)
    except TypeError:
        return sorted(plain, key=lambda label: (type(label).__name__, str(label)))


def window_diff(
    y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray, *, window: int | None = None
) -> float:
    """WindowDiff: the share of windows in which the numbers of boundaries differ; 0 is best.

        Σ_i 1[b(y; i, i + k) ≠ b(z; i, i + k)] / Σ (n − k),   i = 0 .. n − k − 1,

    with b(y; i, j) the number of starts t of y with i < t ≤ j, and sums over all sequences (Pevzner and Hearst, 2002).

    Parameters
    ----------
    y_true, y_pred : list of arrays of int
        The segment starts of each sequence, rising, the first of them 0.
    lengths : list of int
        The number of positions of each sequence.
    window : int, optional
        k. Default: half the mean length of the true segments, rounded, at least 1. Sequences of k or fewer positions
        have no window.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from mercer.metrics import window_diff
    >>> window_diff([[0, 4, 8]], [[0, 5, 8]], [12], window=2)
    0.2
    """
    return _windowed(y_true, y_pred, lengths, window, lambda count: count)


def pk(
    y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray, *, window: int | None = None
) -> float:
    """Pk: how often two positions k apart are wrongly told to be in one segment or in two; 0 is best.

    As :func:`window_diff`, but only whether there is a boundary in a window counts, not how many (Beeferman, Berger and
    Lafferty, 1999).

    Parameters
    ----------
    y_true, y_pred : list of arrays of int
        The segment starts of each sequence, rising, the first of them 0.
    lengths : list of int
        The number of positions of each sequence.
    window : int, optional
        k. Default: half the mean length of the true segments, rounded, at least 1.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from mercer.metrics import pk
    >>> pk([[0, 4, 8]], [[0, 4, 5, 8]], [12], window=2)
    0.1
    """
    return _windowed(y_true, y_pred, lengths, window, lambda count: count > 0)


def _windowed(
    y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray, window: int | None, seen: Any
) -> float:
    cases = _segmentations(y_true, y_pred, lengths)
    if window is None:
        window = max(1, round(sum(n for _, _, n in cases) / max(2 * sum(len(true) for true, _, _ in cases), 1)))
    elif isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise ValueError(f"window must be an integer of at least 1, found {window!r}")
    wrong = total = 0
    for true, guess, n in cases:
        counts = []
        for starts in (true, guess):
            upto = np.zeros(n, np.int64)
            upto[starts] = 1
            upto = np.cumsum(upto)
            counts.append(seen(upto[window:] - upto[:-window]))
        wrong += int((counts[0] != counts[1]).sum())
        total += len(counts[0])
    if not total:
        raise ValueError(f"no sequence is longer than the window of {window}, so there is nothing to compare")
    return wrong / total


def _segmentations(
    y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    if not len(y_true) == len(y_pred) == len(lengths):
        raise ValueError(
            f"y_true has {len(y_true)} sequences, y_pred {len(y_pred)} and lengths {len(lengths)}; they must be as many"
        )
    return [
        (check_starts(f"y_true[{i}]", true, int(n)), check_starts(f"y_pred[{i}]", guess, int(n)), int(n))
        for i, (true, guess, n) in enumerate(zip(y_true, y_pred, lengths, strict=True))
    ]


def check_starts(name: str, starts: Any, n: int | None) -> np.ndarray:
    """Segment starts as int64: rising, the first 0, all below ``n`` (where it is known); none if ``n`` is 0."""
    given = np.asarray(starts)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of integers, the positions where segments start, got {starts!r}")
    checked = given.astype(np.int64)
    if n == 0 or (n is None and not checked.size):
        if checked.size:
            raise ValueError(f"{name} has segment starts, but its sequence is empty")
        return checked
    if not checked.size or checked[0] != 0:
        raise ValueError(f"{name} must begin with 0, where the first segment starts, got {starts!r}")
    if decreases(checked, strictly=False):
        raise ValueError(f"{name} must rise from start to start, got {starts!r}")
    if n is not None and checked[-1] >= n:
        raise ValueError(f"{name} has a segment that starts at {checked[-1]}, but its sequence has {n} positions")
    return checked


def _segments(name: str, y: Any, labelled: bool) -> set[tuple[int, int, Any]]:
    """The segments of a sequence given as labels or as triples."""
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise ValueError(f"{name} must be a list of labels or of (start, end, label), found {y!r}")
    triples = [tuple(item) for item in y] if len(y) and isinstance(y[0], tuple) and len(y[0]) == 3 else None
    if triples is None:
        cuts = [0, *_boundaries(y), len(y)] if len(y) else []
        triples = [(a, b, y[a]) for a, b in itertools.pairwise(cuts)]
    end = 0
    for start, stop, _ in triples:
        if start != end or stop <= start:
            raise ValueError(
                f"{name}: segments must follow each other without gap or overlap, found one from {start} to {stop}"
            )
        end = stop
    return {(int(a), int(b), label if labelled else None) for a, b, label in triples}


# ------------------------------------------------------------------------------------------------------- clusterings


@dataclass(frozen=True)
class ClusterScore:
    """Precision, recall and F1 of a clustering.

    Attributes
    ----------
    precision, recall, f1 : float
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def from_shares(cls, precision: float, recall: float) -> ClusterScore:
        """The score with F1 the harmonic mean of the two.

        Examples
        --------
        >>> from mercer.metrics import ClusterScore
        >>> ClusterScore.from_shares(1.0, 0.5).f1
        0.6666666666666666
        """
        total = precision + recall
        return cls(precision, recall, 2 * precision * recall / total if total else 0.0)


def pairwise_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """Are two items together where they should be? Counted over the pairs of each set.

    precision = pairs together in both / pairs together in the prediction, recall = the same / pairs together in truth;
    a share of no pairs at all is 1, since nothing was wrong.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence a set of items: the cluster of each. The names of the clusters do not matter.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import pairwise_score
    >>> pairwise_score([[0, 0, 0, 1]], [["x", "x", "y", "y"]])
    ClusterScore(precision=0.5, recall=0.3333333333333333, f1=0.4)
    """
    both = predicted = true = 0
    for a, b in _pairs(y_true, y_pred):
        both += _n_pairs(Counter(zip(a, b, strict=True)))
        true += _n_pairs(Counter(a))
        predicted += _n_pairs(Counter(b))
    return ClusterScore.from_shares(both / predicted if predicted else 1.0, both / true if true else 1.0)


def muc_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """MUC: how many links hold the clusters of one clustering together within those of the other.

    A cluster S of n(S) items needs n(S) − 1 links; the other clustering, which cuts it into p(S) parts, has n(S) − p(S)
    of them: recall is Σ_S (n(S) − p(S)) / Σ_S (n(S) − 1)
    over the true clusters S, and precision likewise over the predicted ones. Clusters of one item have no links, so the
    score does not see them; a share of no links at all is 1.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence a set of items (a document): the cluster of each.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import muc_score
    >>> muc_score([[0, 0, 0, 0]], [[0, 0, 1, 1]])
    ClusterScore(precision=1.0, recall=0.6666666666666666, f1=0.8)
    """
    kept = true = predicted = 0
    for a, b in _pairs(y_true, y_pred):
        kept += len(a) - len(set(zip(a, b, strict=True)))  # the parts are the same, whichever clustering cuts the other
        true += len(a) - len(set(a))
        predicted += len(a) - len(set(b))
    return ClusterScore.from_shares(kept / predicted if predicted else 1.0, kept / true if true else 1.0)


def b_cubed_score(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> ClusterScore:
    """B³: for each item, how much of its cluster is right; averaged over the items of all sets.

    With the true cluster S and the predicted cluster T of an item, its precision is the share of T that is in S, its
    recall the share of S that is in T.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        One sequence a set of items (a document): the cluster of each.

    Returns
    -------
    score : ClusterScore

    Examples
    --------
    >>> from mercer.metrics import b_cubed_score
    >>> b_cubed_score([[0, 0, 0, 0]], [[0, 0, 1, 1]])
    ClusterScore(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """
    precision = recall = 0.0
    n = 0
    for a, b in _pairs(y_true, y_pred):
        true, predicted = Counter(a), Counter(b)
        for (s, t), count in Counter(zip(a, b, strict=True)).items():
            precision += count * count / predicted[t]
            recall += count * count / true[s]
        n += len(a)
    if not n:
        raise ValueError("y_true holds no items, so there is no score to compute")
    return ClusterScore.from_shares(precision / n, recall / n)


def _n_pairs(sizes: Counter[Any]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


def pairwise_error(y_true: Any, y_score: Any, groups: Any = None) -> float:
    """The share of pairs of different grades that the scores put in the wrong order; a tie counts half.

    For two grades it is 1 − the area under the ROC curve. Takes O(n log n).

    Parameters
    ----------
    y_true : array of n numbers
        Grades of relevance, higher is better.
    y_score : array of n numbers
    groups : array of n values, optional
        Queries or users: only pairs within a group count. None: all examples are one group.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from mercer.metrics import pairwise_error
    >>> pairwise_error([2, 1, 0], [0.3, 0.9, 0.1])
    0.3333333333333333
    """
    y, scores = _numbers("y_true", y_true), _numbers("y_score", y_score)
    if len(y) != len(scores):
        raise ValueError(f"y_true holds {len(y)} grades and y_score {len(scores)} scores")
    order, offsets = group_order(groups, len(y))
    swapped, pairs = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.int64)
    _core.swapped_pairs(scores[order], y[order], offsets, swapped, pairs)
    if not pairs.sum():
        raise ValueError("y_true has no two different grades in a group, so there is no pair to compare")
    return float(swapped.sum() / 2 / pairs.sum())


def _numbers(name: str, values: Any) -> np.ndarray:
    """A finite vector of float64."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers") from error
    if numbers.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must not hold NaN or infinite values")
    return numbers


def bracket_f1(y_true: Sequence[Any], y_pred: Sequence[Any], *, preterminals: bool = True) -> SpanScore:
    """Labelled brackets of trees: precision, recall and F1 over all sentences together.

    Parameters
    ----------
    y_true, y_pred : list of trees
        Objects with a method ``spans(preterminals=…)`` that gives (label, start, end), such as
        :class:`mercer.parsing.Tree`. None in ``y_pred`` is a sentence without a parse: no brackets.
    preterminals : bool, default=True
        Whether a node right above a single word is a bracket. With words as leaves these are parts of speech, which
        PARSEVAL leaves out.

    Returns
    -------
    score : SpanScore
        ``precision``, ``recall``, ``f1`` and the counts. A bracket that occurs twice in a tree counts twice.

    Examples
    --------
    >>> from mercer.metrics import bracket_f1
    >>> from mercer.parsing import Tree
    >>> true = Tree.parse("(S (NP dogs) (VP chase (NP cats)))")
    >>> found = Tree.parse("(S (NP dogs) (VP chase) (NP cats))")
    >>> score = bracket_f1([true], [found])
    >>> score.precision, score.recall, score.f1
    (0.75, 0.75, 0.75)
    """
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} trees and y_pred {len(y_pred)}; they must be as many")
    correct = predicted = true = 0
    for one, other in zip(y_true, y_pred, strict=True):
        wanted = Counter(one.spans(preterminals=preterminals))
        found = Counter(() if other is None else other.spans(preterminals=preterminals))
        correct += (wanted & found).total()
        predicted += found.total()
        true += wanted.total()
    return SpanScore.from_counts(support=true, predicted=predicted, correct=correct)


@dataclass(frozen=True)
class ClassSizeError:
    """The error of the classes of one range of sizes; see :func:`error_by_class_size`."""

    smallest: int
    """Training examples of the smallest class of the range."""
    largest: int
    """Training examples of the largest."""
    n_classes: int
    """Classes of the range that have test examples."""
    n_examples: int
    """Test examples of these classes."""
    error: float
    """Share of them that were classified wrongly."""


def error_by_class_size(
    y_train: Sequence[Any] | np.ndarray,
    y_true: Sequence[Any] | np.ndarray,
    y_pred: Sequence[Any] | np.ndarray,
    n_groups: int = 5,
) -> list[ClassSizeError]:
    """Where a classifier of many classes errs: on rare classes, on frequent ones, or on all alike.

    Test examples are put in order of the number of training examples of their class and divided into groups of about
    equal size; a class is never divided.

    Parameters
    ----------
    y_train : sequence of labels
        The labels of the training examples, which give the sizes of classes.
    y_true, y_pred : sequence of labels
        True and predicted labels of the test examples.
    n_groups : int, default=5
        The most groups. Large classes may leave fewer.

    Returns
    -------
    groups : list of ClassSizeError
        From rare classes to frequent ones.

    Examples
    --------
    >>> from mercer.metrics import error_by_class_size
    >>> y_train = ["a"] * 10 + ["b"]
    >>> for group in error_by_class_size(y_train, ["a", "a", "a", "b"], ["a", "a", "b", "a"], n_groups=2):
    ...     print(group.smallest, group.largest, group.n_examples, round(group.error, 2))
    1 1 1 1.0
    10 10 3 0.33
    """
    check_count("n_groups", n_groups)
    train, true, predicted = (np.asarray(labels) for labels in (y_train, y_true, y_pred))
    if train.ndim != 1 or true.ndim != 1 or true.shape != predicted.shape:
        raise ValueError(
            "y_train, y_true and y_pred must be one-dimensional and the last two equally long, "
            f"got shapes {train.shape}, {true.shape} and {predicted.shape}"
        )
    if not len(true):
        raise ValueError("y_true holds no examples, so there is no error to compute")
    classes, number = np.unique(np.concatenate([train, true]), return_inverse=True)
    size = np.bincount(number[: len(train)], minlength=len(classes))
    own = number[len(train) :]
    tested = np.bincount(own, minlength=len(classes))
    wrong = np.bincount(own, weights=true != predicted, minlength=len(classes))
    order = np.argsort(size, kind="stable")
    order = order[tested[order] > 0]
    middle = np.cumsum(tested[order]) - tested[order] / 2  # of a class, in the row of all test examples
    group = np.minimum((middle * n_groups / len(true)).astype(np.intp), n_groups - 1)
    return [
        ClassSizeError(
            smallest=int(size[members].min()),
            largest=int(size[members].max()),
            n_classes=len(members),
            n_examples=int(tested[members].sum()),
            error=float(wrong[members].sum() / tested[members].sum()),
        )
        for members in (order[group == k] for k in range(n_groups))
        if len(members)
    ]
