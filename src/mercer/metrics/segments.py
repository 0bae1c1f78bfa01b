"""Scores of segmentations: boundaries, segments and labels.

A segmentation of n positions is given by the positions where its segments start, b_0 = 0 < b_1 < … < b_{L−1} < n. The
first start is fixed, so boundary scores are over the positions 1 .. n − 1.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import decreases
from mercer.metrics.sequences import Labels, SpanScore, paired_sequences


def boundary_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels], *, tolerance: int = 0) -> float:
    """Return the F1 of label changes, with a tolerance of some positions.

    A boundary is a position t ≥ 1 whose label differs from that of position t − 1. A predicted and a true boundary of
    the same sequence match if they are at most ``tolerance`` positions apart. A maximum one-to-one matching gives

        F1 = 2 · paired / (predicted + true),

    over all sequences together; 1 if there are no boundaries.

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
    for true, predicted in paired_sequences(y_true, y_pred):
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


@dataclass(frozen=True)
class BoundaryScore:
    """Agreement of predicted and true segment starts, over the positions where a segment may start.

    Attributes
    ----------
    accuracy : float
        Accuracy of the decision whether a segment starts at a position.
    precision, recall, f1 : float
        0 where the denominator is 0.
    support, predicted, correct : int
        Numbers of true starts, predicted starts, and correctly predicted starts.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int


def boundary_score(y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray) -> BoundaryScore:
    """Return the accuracy, precision, recall and F1 of segment starts, over all sequences together.

    The first position of a sequence always starts a segment and is left out.

    Parameters
    ----------
    y_true, y_pred : list of arrays of int
        The starts of each sequence, ascending; the first is 0.
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
    """Return the number of boundaries that only one of two segmentations has.

        Δ(y, z) = n(y) + n(z) − 2 n(y ∩ z),

    where n counts boundaries. It may exceed the number of true boundaries.

    Parameters
    ----------
    y_true, y_pred : array of int
        Segment starts of one sequence, ascending; the first is 0.
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
    """Return precision, recall and F1 of whole segments: start, end and label must be correct.

    Parameters
    ----------
    y_true, y_pred : list of label sequences, or list of lists of (start, end, label)
        The segments of a label sequence are its runs of equal labels; triples can distinguish neighbours with the same
        label.
    labelled : bool, default=True
        False: only start and end must match.

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
        wanted, predicted_segments = (
            _segments(f"{name}, sequence {number}", y, labelled) for name, y in (("y_true", true), ("y_pred", guess))
        )
        if max((s[1] for s in wanted), default=0) != max((s[1] for s in predicted_segments), default=0):
            raise ValueError(f"sequence {number} ends at another position in y_true than in y_pred")
        support += len(wanted)
        predicted += len(predicted_segments)
        correct += len(wanted & predicted_segments)
    return SpanScore.from_counts(support, predicted, correct)


def segment_confusion(
    y_true: Sequence[Any], y_pred: Sequence[Any], labels: Sequence[Any] | None = None
) -> tuple[list[Any], np.ndarray]:
    """Return the confusion of labels over the positions of true segments, where each segment counts as one.

    Entry (a, b) is the mean, over the true segments of label a, of the share of their positions that are predicted as
    b: rows sum to 1, and short and long segments have the same weight.

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
        NaN in rows of labels without true segments.

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
        wanted, predicted_segments = (
            sorted(_segments(f"{name}, sequence {number}", y, True), key=lambda segment: segment[0])
            for name, y in (("y_true", true), ("y_pred", guess))
        )
        predicted = [label for a, b, label in predicted_segments for _ in range(b - a)]
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
    """Return sorted labels; labels that cannot be compared are sorted by their text."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    try:
        return sorted(plain)
    except TypeError:
        return sorted(plain, key=lambda label: (type(label).__name__, str(label)))


def window_diff(
    y_true: Sequence[Any], y_pred: Sequence[Any], lengths: Sequence[int] | np.ndarray, *, window: int | None = None
) -> float:
    """Return WindowDiff: the share of windows in which the numbers of boundaries differ; 0 is best.

        Σ_i 1[b(y; i, i + k) ≠ b(z; i, i + k)] / Σ (n − k),   i = 0 .. n − k − 1,

    with b(y; i, j) the number of starts t of y with i < t ≤ j, and sums over all sequences [Pevzner2002]_.

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

    References
    ----------
    .. [Pevzner2002] L. Pevzner and M. Hearst. A critique and improvement of an evaluation metric for text segmentation.
       Computational Linguistics 28, 2002.

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
    """Return Pk: the share of position pairs at distance k that are wrongly joined or separated; 0 is best.

    As :func:`window_diff`, but only the presence of a boundary in a window counts, not the number [Beeferman1999]_.

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

    References
    ----------
    .. [Beeferman1999] D. Beeferman, A. Berger and J. Lafferty. Statistical models for text segmentation. Machine
       Learning 34, 1999.

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
    """Return segment starts as int64: ascending, the first 0, all below ``n`` (if known); none if ``n`` is 0."""
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
