"""Scores of predicted label sequences: by token, by whole sequence, and by labelled span.

A span (a chunk, an entity) counts as correct only if its start, its end and its type are all correct:

    precision = correct / predicted,   recall = correct / true,   F1 = 2 · correct / (predicted + true),

and 0 if the denominator is 0. Spans are decoded from the labels by the rules of the CoNLL scorer, conlleval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

Labels: TypeAlias = Sequence[Any]
Span: TypeAlias = tuple[int, int, str]

_PREFIXES = frozenset("BILUES")
_ALWAYS_OPEN = frozenset("BSU")  # these begin a span, whatever stands before
_ALWAYS_CLOSE = frozenset("ELSU")  # these end their span, whatever follows


def token_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Return the share of correctly labelled tokens.

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
    for true, predicted in paired_sequences(y_true, y_pred):
        right += sum(1 for a, b in zip(true, predicted, strict=True) if a == b)
        total += len(true)
    if not total:
        raise ValueError("y_true holds no tokens, so there is no accuracy to compute")
    return right / total


def sequence_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Return the share of sequences whose labels are all correct.

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
    pairs = paired_sequences(y_true, y_pred)
    if not pairs:
        raise ValueError("y_true holds no sequences, so there is no accuracy to compute")
    return sum(all(a == b for a, b in zip(*pair, strict=True)) for pair in pairs) / len(pairs)


def spans(labels: Sequence[str]) -> list[Span]:
    """Return the spans encoded by the labels of one sequence.

    Supports IOB2 (``B-`` begins every span), IOB1 (``B-`` only between touching spans of one type), BIOES and BILOU
    (``E-`` or ``L-`` ends a span, ``S-`` or ``U-`` is a span of one token), and the same letters without a type. Labels
    that violate their scheme are read as in conlleval: a span begins wherever the type changes or no span is open.

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
    segments: list[Span] = []
    start, open_type = 0, ""
    is_open = False
    for t, label in enumerate(labels):
        prefix, kind = _split(label)
        begins = prefix != "O" and (not is_open or prefix in _ALWAYS_OPEN or kind != open_type)
        if is_open and (begins or prefix == "O"):
            segments.append((start, t, open_type))
            is_open = False
        if begins:
            start, open_type, is_open = t, kind, True
        if is_open and prefix in _ALWAYS_CLOSE:
            segments.append((start, t + 1, open_type))
            is_open = False
    if is_open:
        segments.append((start, len(labels), open_type))
    return segments


def is_span_labelling(labels: Iterable[Any]) -> bool:
    """Return whether these labels encode spans, so that a span score is meaningful.

    Parameters
    ----------
    labels : iterable of str, or of label sequences
        A set of labels, one sequence of them, or a list of sequences.

    Returns
    -------
    answer : bool
        True if every label is a span label of :func:`spans` and not all are ``O``. Labels without a type (``B``, ``I``,
        ``O``) count only together with ``O``: a lone ``I`` may also be a letter.

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
    """Precision, recall and F1 of spans, with their counts.

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
        """Return the score for these counts.

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
        Share of correctly labelled tokens.
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
        In any scheme of :func:`spans`.

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
    """Return the F1 over the spans of all types: ``span_report(y_true, y_pred).f1``.

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


def paired_sequences(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> list[tuple[Labels, Labels]]:
    """Yield pairs of sequences, after checking their lengths."""
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
