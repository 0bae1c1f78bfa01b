"""Segmentations: sequences split into labelled segments [start, end), and their common notations.

Four forms are read and written, one sequence at a time, with ``(start, end, label)`` triples as the common form:

| form | example for 5 positions | adjacent segments of one label |
|---|---|---|
| triples | ``[(0, 2, "a"), (2, 3, "a"), (3, 5, "b")]`` | kept apart |
| BIO tags | ``["B-a", "I-a", "B-a", "B-b", "I-b"]`` | kept apart |
| boundaries | ``[0, 2, 3]`` (where segments start; no labels, or labels beside them) | kept apart |
| frames | ``["a", "a", "a", "b", "b"]`` | **one segment**: a label a position cannot tell them apart |

:class:`Segmentations` holds many of them as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_offsets
from mercer.data.labels import LabelIndex
from mercer.data.sequences import Sequences

Segment = tuple[int, int, Any]

_MOST_POSITIONS = 1 << 40  # of all sequences together: sums of lengths cannot wrap
_FORMS = ("auto", "triples", "bio", "boundaries", "frames")


# ---------------------------------------------------------------------------------------- ways of writing one


def segments_from_frames(labels: Sequence[Any]) -> list[Segment]:
    """Return runs of one label as segments.

    A label per position cannot represent two neighbouring segments with one label: they are merged.

    Examples
    --------
    >>> segments_from_frames(["a", "a", "b"])
    [(0, 2, 'a'), (2, 3, 'b')]
    """
    items = _plain(labels)
    changes = [t for t in range(1, len(items)) if items[t] != items[t - 1]]
    return [(a, b, items[a]) for a, b in pairwise([0, *changes, len(items)])] if items else []


def segments_to_frames(segments: Sequence[Segment]) -> list[Any]:
    """Return the label of every position.

    Examples
    --------
    >>> segments_to_frames([(0, 2, "a"), (2, 3, "b")])
    ['a', 'a', 'b']
    """
    return [label for start, end, label in segments for _ in range(end - start)]


def segments_from_boundaries(
    boundaries: Sequence[int], length: int, labels: Sequence[Any] | None = None
) -> list[Segment]:
    """Return segments that start at the given positions.

    Parameters
    ----------
    boundaries : sequence of int
        Start positions of segments, ascending. The first segment starts at 0, which may be omitted without labels.
    length : int
        Number of positions of the sequence.
    labels : sequence, optional
        One label per boundary. By default every label is 0.

    Examples
    --------
    >>> segments_from_boundaries([2, 5], 6)
    [(0, 2, 0), (2, 5, 0), (5, 6, 0)]
    """
    indices = np.asarray(boundaries)
    if indices.size and (indices.ndim != 1 or indices.dtype.kind not in "iu"):
        raise ValueError("boundaries must be a list of integers")
    starts = [int(b) for b in indices]
    for a, b in pairwise(starts):
        if b <= a:
            raise ValueError(f"boundaries must ascend: {b} comes after {a}")
    if starts and (starts[0] < 0 or starts[-1] >= length):
        wrong = starts[0] if starts[0] < 0 else starts[-1]
        raise ValueError(f"boundary {wrong} lies outside the sequence, which has {length} positions")
    if labels is not None and len(labels) != len(starts):
        raise ValueError(f"{len(starts)} boundaries and {len(labels)} labels")
    if length and (not starts or starts[0] != 0):
        if labels is not None:
            raise ValueError("with labels the first boundary must be 0: the first segment needs a label, too")
        starts = [0, *starts]
    names = [0] * len(starts) if labels is None else _plain(labels)
    return [(a, b, name) for (a, b), name in zip(pairwise([*starts, length]), names, strict=True)]


def segments_to_boundaries(segments: Sequence[Segment]) -> list[int]:
    """Return the start positions of segments, including 0.

    Examples
    --------
    >>> segments_to_boundaries([(0, 2, "a"), (2, 3, "b")])
    [0, 2]
    """
    return [start for start, _, _ in segments]


def segments_from_bio(tags: Sequence[str], outside: str = "O") -> list[Segment]:
    """Return segments of BIO tags (IOB2): ``B-x`` begins a segment ``x``, ``I-x`` continues it.

    Every outside position becomes a segment of length 1 with the label ``outside``, so that long stretches of them do
    not need a large ``max_length``.

    Examples
    --------
    >>> segments_from_bio(["O", "B-PER", "I-PER", "B-PER"])
    [(0, 1, 'O'), (1, 3, 'PER'), (3, 4, 'PER')]
    """
    segments: list[Segment] = []
    for t, tag in enumerate(tags):
        prefix, _, name = tag.partition("-") if isinstance(tag, str) else ("", "", "")
        if tag == outside:
            segments.append((t, t + 1, outside))
        elif prefix == "B" and name and name != outside:
            segments.append((t, t + 1, name))
        elif prefix == "I" and name:
            if not segments or segments[-1][2] != name or name == outside:
                raise ValueError(f"position {t}: {tag!r} does not follow 'B-{name}' or 'I-{name}'")
            segments[-1] = (segments[-1][0], t + 1, name)
        else:
            raise ValueError(f"position {t}: expected {outside!r}, 'B-NAME' or 'I-NAME', found {tag!r}")
    return segments


def segments_to_bio(segments: Sequence[Segment], outside: str = "O") -> list[str]:
    """Return BIO tags of segments; segments labelled ``outside`` keep this tag.

    Examples
    --------
    >>> segments_to_bio([(0, 1, "O"), (1, 3, "PER"), (3, 4, "PER")])
    ['O', 'B-PER', 'I-PER', 'B-PER']
    """
    tags: list[str] = []
    for start, end, label in segments:
        size = end - start
        tags += [outside] * size if label == outside else [f"B-{label}", *[f"I-{label}"] * (size - 1)]
    return tags


def check_segments(segments: Sequence[Segment], length: int) -> list[Segment]:
    """Return the triples as tuples; raise ValueError unless they cover the sequence without gap or overlap.

    Examples
    --------
    >>> check_segments([[0, 2, "a"], [2, 3, "b"]], 3)
    [(0, 2, 'a'), (2, 3, 'b')]
    """
    checked: list[Segment] = []
    at = 0
    for k, item in enumerate(segments):
        if not isinstance(item, (tuple, list, np.ndarray)) or len(item) != 3:
            raise ValueError(f"segment {k}: expected (start, end, label), found {item!r}")
        try:
            start, end = (int(v) for v in item[:2])
        except (TypeError, ValueError):
            raise ValueError(f"segment {k}: start and end must be integers, found {item!r}") from None
        if end <= start:
            raise ValueError(f"segment {k}: [{start}, {end}) is empty or reversed")
        if start < at:
            raise ValueError(f"segment {k}: [{start}, {end}) overlaps the one before it, which ends at {at}")
        if start > at:
            raise ValueError(f"segment {k}: the positions {at} to {start - 1} before it belong to no segment")
        checked.append((start, end, _item(item[2])))
        at = end
    if at != length:
        what = "go beyond it" if at > length else "leave the rest out"
        raise ValueError(f"the segments end at {at}, the sequence at {length}: they {what}")
    return checked


def as_segments(y: Sequence[Any], lengths: Sequence[int] | np.ndarray, form: str = "auto") -> list[list[Segment]]:
    """Return segmentations of many sequences, in any of the four forms, as lists of triples.

    Parameters
    ----------
    y : list, one item per sequence
    lengths : numbers of positions of the sequences
    form : {"auto", "triples", "bio", "boundaries", "frames"}, default="auto"
        Notation. ``"auto"`` examines all sequences: items of length three are triples; strings that are all ``O``,
        ``B-…`` or ``I-…`` are BIO tags; one item per position in every sequence means frames; everything else is
        boundaries.

    Examples
    --------
    >>> as_segments([["a", "a", "b"]], [3])
    [[(0, 2, 'a'), (2, 3, 'b')]]
    >>> as_segments([[0, 2]], [3])
    [[(0, 2, 0), (2, 3, 0)]]
    """
    check_choice("form", form, _FORMS)
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise TypeError(f"expected a list of segmentations, found {type(y).__name__}")
    if len(y) != len(lengths):
        raise ValueError(f"{len(lengths)} sequences in X, {len(y)} in y")
    if form == "auto":
        form = form_of(y, lengths)
    outputs = []
    for i, (one, length) in enumerate(zip(y, lengths, strict=True)):
        try:
            outputs.append(_READERS[form](one, int(length)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"sequence {i}: {error}") from None
    return outputs


def _sized(labels: Sequence[Any], length: int) -> Sequence[Any]:
    if len(labels) != length:
        raise ValueError(f"{length} positions in X and {len(labels)} labels in y")
    return labels


_READERS: dict[str, Callable[[Any, int], list[Segment]]] = {
    "triples": check_segments,
    "bio": lambda one, length: segments_from_bio(_plain(_sized(one, length))),
    "boundaries": lambda one, length: segments_from_boundaries(one, length),
    "frames": lambda one, length: segments_from_frames(_sized(one, length)),
}


def form_of(y: Sequence[Any], lengths: Sequence[int] | np.ndarray) -> str:
    """Return the notation of segmentations, from all of them; see :func:`as_segments`."""
    for i, one in enumerate(y):
        if isinstance(one, (str, bytes)) or not hasattr(one, "__len__"):
            kind = type(one).__name__
            raise TypeError(f"sequence {i}: expected a list of labels, boundaries or segments, found {kind}")
    items = [item for one in y for item in one]
    if items and all(isinstance(item, (tuple, list, np.ndarray)) for item in items):
        return "triples"
    if items and all(isinstance(item, str) and (item == "O" or item[:2] in ("B-", "I-")) for item in items):
        return "bio"
    if all(len(one) == length for one, length in zip(y, lengths, strict=True)):
        return "frames"
    if all(isinstance(item, (int, np.integer)) for item in items):
        return "boundaries"
    for i, (one, length) in enumerate(zip(y, lengths, strict=True)):
        if len(one) != length:
            raise ValueError(f"sequence {i} has {length} positions in X and {len(one)} labels in y")
    raise AssertionError("not reached")


def _item(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _plain(labels: Sequence[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else [_item(label) for label in labels]


# ---------------------------------------------------------------------------------------------- many of them


class Segmentations:
    """Stacked segmentations as numbers.

    Segment k of sequence i is number ``firsts[i] + k``; segments follow each other without gap, so their lengths
    determine their positions. A sequence with positions but without segments has no segmentation (none was allowed).

    Parameters
    ----------
    lengths : int array of shape (n_segments,)
    labels : int array of shape (n_segments,)
    firsts : int array of shape (n_sequences + 1,)
        Offsets of the segments of each sequence.
    positions : int array of shape (n_sequences + 1,)
        Offsets of the positions of each sequence, as :attr:`Sequences.offsets`.

    Examples
    --------
    >>> y = Segmentations.from_segments([[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b")]], [3, 1], ["a", "b"])
    >>> y.lengths, y.labels, y.starts
    (array([2, 1, 1]), array([0, 1, 1], dtype=int32), array([0, 2, 3]))
    >>> y.frames()
    array([0, 0, 1, 1], dtype=int32)
    >>> y[1:].segments(["a", "b"])
    [[(0, 1, 'b')]]
    """

    __slots__ = ("firsts", "labels", "lengths", "positions")

    def __init__(self, lengths: Any, labels: Any, firsts: Any, positions: Any) -> None:
        self.lengths = np.ascontiguousarray(lengths, dtype=np.int64)
        self.labels = np.ascontiguousarray(labels, dtype=np.int32)
        self.firsts = np.ascontiguousarray(firsts, dtype=np.int64)
        self.positions = np.ascontiguousarray(positions, dtype=np.int64)
        if self.lengths.ndim != 1 or self.lengths.shape != self.labels.shape:
            raise ValueError(f"{self.lengths.shape} lengths and {self.labels.shape} labels: they must be equally many")
        if self.firsts.shape != self.positions.shape or self.firsts.ndim != 1 or not len(self.firsts):
            raise ValueError("firsts and positions must both hold the number of sequences + 1 values")
        check_offsets("firsts", self.firsts, len(self.lengths))
        check_offsets("positions", self.positions, _MOST_POSITIONS, part=True)
        if (self.lengths < 1).any() or (self.lengths > _MOST_POSITIONS).any() or (self.labels < 0).any():
            raise ValueError("a segment needs a length of at least 1 and a label of at least 0")
        sizes, covered = np.diff(self.positions), self._sums(self.lengths)
        wrong = (covered != sizes) & (np.diff(self.firsts) > 0)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"sequence {i}: the segments cover {covered[i]} positions of {sizes[i]}")

    # ------------------------------------------------------------------ ways in and out

    @classmethod
    def from_segments(
        cls, y: Sequence[Sequence[Segment]], lengths: Sequence[int] | np.ndarray, classes: Sequence[Any] | LabelIndex
    ) -> Segmentations:
        """Build from lists of triples that cover their sequences; labels are numbered in the order of ``classes``."""
        if len(y) != len(lengths):
            raise ValueError(f"{len(lengths)} sequences in X, {len(y)} in y")
        names = list(classes.classes if isinstance(classes, LabelIndex) else classes)
        numbers = {name: c for c, name in enumerate(names)}
        sizes, labels, firsts = [], [], [0]
        for i, (one, length) in enumerate(zip(y, lengths, strict=True)):
            try:
                checked = check_segments(one, int(length))
            except ValueError as error:
                raise ValueError(f"sequence {i}: {error}") from None
            for start, end, label in checked:
                if label not in numbers:
                    known = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
                    raise ValueError(
                        f"sequence {i}, segment [{start}, {end}): unknown label {label!r}; known are {known}"
                    )
                sizes.append(end - start)
                labels.append(numbers[label])
            firsts.append(len(sizes))
        return cls(sizes, labels, firsts, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def from_marks(cls, length: np.ndarray, label: np.ndarray, positions: np.ndarray) -> Segmentations:
        """Build from the length and label of the segment that starts at each position; length 0 if none starts."""
        starts = np.flatnonzero(length)
        firsts = np.searchsorted(starts, np.asarray(positions) - positions[0])
        return cls(length[starts], label[starts], firsts, positions)

    @classmethod
    def from_frames(cls, labels: np.ndarray, positions: np.ndarray) -> Segmentations:
        """Return runs of equal labels, given one label index per position."""
        labels, positions = np.asarray(labels), np.asarray(positions, dtype=np.int64)
        begins = positions[:-1] - positions[0]
        new = np.ones(len(labels), bool)
        new[1:] = labels[1:] != labels[:-1]
        new[begins[begins < len(labels)]] = True
        starts = np.flatnonzero(new)
        lengths = np.diff(np.append(starts, len(labels)))
        return cls(lengths, labels[starts], np.searchsorted(starts, positions - positions[0]), positions)

    def marks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return length and label of the segment that starts at each position (int32 arrays); 0 if none starts."""
        length, label = (np.zeros(self.n_positions, np.int32) for _ in range(2))
        length[self.starts], label[self.starts] = self.lengths, self.labels
        return length, label

    def frames(self) -> np.ndarray:
        """Return the label of every position; −1 in a sequence that has no segmentation."""
        if self.complete:
            return np.repeat(self.labels, self.lengths)
        out = np.full(self.n_positions, -1, np.int32)
        for start, size, label in zip(self.starts, self.lengths, self.labels, strict=True):
            out[start : start + size] = label
        return out

    def segments(self, classes: Sequence[Any] | LabelIndex) -> list[list[Segment]]:
        """Return lists of (start, end, label) with names of labels."""
        names = list(classes.classes if isinstance(classes, LabelIndex) else classes)
        begins = np.repeat(self.positions[:-1] - self.positions[0], np.diff(self.firsts))
        starts = self.starts - begins
        ends, labels = (starts + self.lengths).tolist(), map(names.__getitem__, self.labels.tolist())
        rows = list(zip(starts.tolist(), ends, labels, strict=True))
        return [rows[a:b] for a, b in pairwise(self.firsts.tolist())]

    # ------------------------------------------------------------------ what it is

    @property
    def n_positions(self) -> int:
        """Number of positions in all sequences together."""
        return int(self.positions[-1] - self.positions[0])

    @property
    def complete(self) -> bool:
        """Return whether every sequence has a segmentation."""
        return int(self.lengths.sum()) == self.n_positions

    @property
    def starts(self) -> np.ndarray:
        """Return the start of each segment, counted from the first position of the first sequence."""
        inside = np.concatenate([[0], np.cumsum(self.lengths)])[:-1]
        counts = np.diff(self.firsts)
        filled = np.flatnonzero(counts)
        shift = np.zeros(len(counts), np.int64)
        shift[filled] = (self.positions[:-1] - self.positions[0])[filled] - inside[self.firsts[:-1][filled]]
        return inside + np.repeat(shift, counts)

    @property
    def sequence(self) -> np.ndarray:
        """The number of the sequence of each segment."""
        return np.repeat(np.arange(len(self)), np.diff(self.firsts))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the segments of each sequence."""
        totals = np.concatenate([[0], np.cumsum(values)])
        return totals[self.firsts[1:]] - totals[self.firsts[:-1]]

    def __len__(self) -> int:
        return len(self.firsts) - 1

    def __iter__(self) -> Iterator[Segmentations]:
        return (self[i : i + 1] for i in range(len(self)))

    def __getitem__(self, key: slice) -> Segmentations:
        start, stop, step = key.indices(len(self))
        if step != 1:
            raise IndexError("segmentations take slices without step")
        stop = max(start, stop)
        part = object.__new__(Segmentations)
        firsts = self.firsts[start : stop + 1]
        rows = slice(int(firsts[0]), int(firsts[-1]))
        part.lengths, part.labels = self.lengths[rows], self.labels[rows]
        part.firsts, part.positions = firsts - firsts[0], self.positions[start : stop + 1]
        return part

    def __repr__(self) -> str:
        return f"Segmentations({len(self)} sequences, {self.n_positions} positions, {len(self.lengths)} segments)"


class SpanSequences(Sequences):
    """Sequences with explicit features of all segments, and of pairs of neighbouring segments.

    Use them for features that are not sums, means or variances of position features, which
    :class:`~mercer.structures.Segments` computes itself. They take positions × max_length × features numbers, and
    features of neighbours max_length times as many. So keep ``max_length`` short.

    Parameters
    ----------
    matrix, offsets, edges, index, edge_index
        See :class:`Sequences`; ``edges`` holds the features of a boundary before each position.
    spans : array of shape (n_positions, max_length, n_span_features), optional
        ``spans[t, l - 1]``: features of the segment of length l that starts at row t. Values of segments beyond the end
        of their sequence are ignored.
    pair_spans : array of shape (n_positions, max_length, max_length, n_pair_features), optional
        ``pair_spans[t, l - 1, m - 1]``: features of the segments [t − l, t) and [t, t + m) together. Values of segments
        beyond their sequence are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> X = SpanSequences.from_function(Sequences(np.eye(3)), lambda x, s, e: [e - s, x[s:e].max()], 2)
    >>> X.spans.shape, X.spans[0]
    ((3, 2, 2), array([[1., 1.],
           [2., 1.]]))
    >>> X = SpanSequences.from_function(X, max_length=2, pairs=lambda x, s, t, e: [(t - s) / (e - t)])
    >>> X.pair_spans[1, 0].ravel()  # [0, 1) and what follows it: lengths 1 and 2
    array([1. , 0.5])
    """

    def __init__(
        self, matrix: Any, offsets: Any = None, *, spans: Any = None, pair_spans: Any = None, **options: Any
    ) -> None:
        super().__init__(matrix, offsets, **options)
        n = self.rows.shape[0]
        if spans is None:
            spans = np.zeros((n, 0 if pair_spans is None else np.shape(pair_spans)[1], 0))
        self.spans = _features_of_segments("spans", spans, n, "(positions, lengths, features)")
        self.pair_spans: np.ndarray | None = None
        if pair_spans is not None:
            shape = "(positions, lengths, lengths, features)"
            self.pair_spans = _features_of_segments("pair_spans", pair_spans, n, shape)
            if not self.spans.shape[1] == self.pair_spans.shape[1] == self.pair_spans.shape[2]:
                raise ValueError(
                    f"spans and pair_spans must have the same lengths, found {self.spans.shape[1]} and "
                    f"{self.pair_spans.shape[1:3]}"
                )

    @classmethod
    def from_function(
        cls,
        X: Sequences,
        function: Callable[[Any, int, int], Any] | None = None,
        max_length: int = 1,
        inputs: Sequence[Any] | None = None,
        *,
        pairs: Callable[[Any, int, int, int], Any] | None = None,
    ) -> SpanSequences:
        """Return features ``function(x, start, end)`` of all segments up to ``max_length``.

        x is the matrix of the sequence, or ``inputs[i]`` if given. ``pairs(x, start, boundary, end)`` returns the
        features of the neighbouring segments [start, boundary) and [boundary, end).
        """
        max_length = check_count("max_length", max_length)
        if inputs is not None and len(inputs) != len(X):
            raise ValueError(f"{len(X)} sequences in X, {len(inputs)} inputs")
        spans, pair_spans = _Table(X, 1, max_length), _Table(X, 2, max_length)
        for i in range(len(X)):
            x = X[i] if inputs is None else inputs[i]
            n = int(X.offsets[i + 1] - X.offsets[i])
            for t in range(n):
                for length in range(1, min(max_length, n - t) + 1):
                    if function is not None:
                        spans.enter(i, t, (length,), function(x, t, t + length))
                    if pairs is None:
                        continue
                    for before in range(1, min(max_length, t) + 1):
                        pair_spans.enter(i, t, (before, length), pairs(x, t - before, t, t + length))
        return cls(
            X.rows,
            X.offsets,
            spans=spans.values(),
            pair_spans=None if pairs is None else pair_spans.values(),
            edges=X.edges,
            index=X.index,
            edge_index=X.edge_index,
        )

    @property
    def n_span_features(self) -> int:
        """Number of features of a segment."""
        return self.spans.shape[2]

    @property
    def n_pair_features(self) -> int:
        """Number of features of two neighbouring segments."""
        return 0 if self.pair_spans is None else self.pair_spans.shape[3]

    @classmethod
    def concatenate(cls, parts: Sequence[Sequences]) -> SpanSequences:
        """Concatenate several collections."""
        held = [p for p in parts if isinstance(p, SpanSequences)]
        if len(held) < len(parts) or len({p.pair_spans is None for p in held}) > 1:
            raise ValueError("some of the parts have features of segments and some do not")
        whole, tables = Sequences.concatenate(parts), list(zip(*(p._own_tables() for p in held), strict=True))
        if any(len({t.shape[1:] for t in table if t is not None}) > 1 for table in tables):
            raise ValueError("the parts have different lengths or numbers of features of segments")
        spans, pairs = (None if t[0] is None else np.concatenate(t) for t in tables)
        assert spans is not None
        return cls._of(whole, spans, pairs)

    @classmethod
    def _of(cls, X: Sequences, spans: np.ndarray, pair_spans: np.ndarray | None = None) -> SpanSequences:
        part = object.__new__(cls)
        part.__dict__.update(X.__dict__)
        part.spans, part.pair_spans = spans, pair_spans
        return part

    def _own_tables(self) -> tuple[Any, Any]:
        rows = slice(int(self.offsets[0]), int(self.offsets[-1]))
        return self.spans[rows], None if self.pair_spans is None else self.pair_spans[rows]

    def _view(self, start: int, stop: int) -> SpanSequences:
        return self._of(super()._view(start, stop), self.spans, self.pair_spans)

    def _gather(self, chosen: np.ndarray) -> SpanSequences:
        rows = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in chosen]
        at = np.concatenate([np.zeros(0, np.int64), *rows])
        pair_spans = None if self.pair_spans is None else self.pair_spans[at]
        return self._of(super()._gather(chosen), self.spans[at], pair_spans)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpanSequences):
            return NotImplemented
        if not super().__eq__(other) or (self.pair_spans is None) != (other.pair_spans is None):
            return False
        both = zip(self._own_tables(), other._own_tables(), strict=True)
        return all(mine is None or np.array_equal(mine, theirs) for mine, theirs in both)

    __hash__ = None


class _Table:
    """Features of segments of all sequences, made when the first ones say how many there are."""

    def __init__(self, X: Sequences, n_lengths: int, max_length: int) -> None:
        self.X, self.shape = X, (X.rows.shape[0], *[max_length] * n_lengths)
        self.table: np.ndarray | None = None

    def enter(self, i: int, t: int, lengths: tuple[int, ...], numbers: Any) -> None:
        values = np.asarray(numbers, dtype=float)
        if self.table is None:
            self.table = np.zeros((*self.shape, values.size))
        if values.shape != self.table.shape[-1:]:
            first, last = (t, t + lengths[0]) if len(lengths) == 1 else (t - lengths[0], t + lengths[1])
            raise ValueError(
                f"sequence {i}, segment [{first}, {last}): the function gave shape {values.shape}, "
                f"expected {self.table.shape[-1:]}"
            )
        self.table[(int(self.X.offsets[i]) + t, *(l - 1 for l in lengths))] = values

    def values(self) -> np.ndarray:
        return np.zeros((*self.shape, 0)) if self.table is None else self.table


def _features_of_segments(name: str, given: Any, n_positions: int, shape: str) -> np.ndarray:
    table = np.ascontiguousarray(given, dtype=np.float64)
    if table.ndim != shape.count(",") + 1 or table.shape[0] != n_positions:
        raise ValueError(f"{name} must be of shape {shape} with {n_positions} positions, found {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"features must be finite: {name} hold NaN or infinity")
    table.flags.writeable = False
    return table
