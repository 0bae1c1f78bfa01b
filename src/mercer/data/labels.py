"""Map label names to numbers, for label sequences that may be partly unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.saved import Saved


class TagSequences:
    """Stacked label sequences as numbers.

    Attributes
    ----------
    labels : int32 array of shape (n_positions,)
        The label, -1 if unknown.
    offsets : int64 array of shape (n_sequences + 1,)
        Offset of each sequence.
    allowed : uint8 array of shape (n_positions, n_labels), or None
        The possible labels where a label is -1. None: all labels.
    """

    __slots__ = ("allowed", "labels", "offsets", "partial")

    def __init__(
        self, labels: np.ndarray, offsets: np.ndarray, allowed: np.ndarray | None = None, partial: bool | None = None
    ) -> None:
        self.labels, self.offsets, self.allowed = labels, offsets, allowed
        self.partial = bool((labels < 0).any()) if partial is None else partial

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: slice) -> TagSequences:
        start, stop, _ = key.indices(len(self))
        offsets = self.offsets[start : stop + 1]
        rows = slice(int(offsets[0] - self.offsets[0]), int(offsets[-1] - self.offsets[0]))
        allowed = None if self.allowed is None else self.allowed[rows]
        partial = None if self.partial else False
        return TagSequences(self.labels[rows], offsets, allowed, partial)

    def where(self, chosen: np.ndarray, other: TagSequences) -> TagSequences:
        """Return these sequences where ``chosen``, else the others; all labels must be known."""
        labels = np.where(np.repeat(chosen, np.diff(self.offsets)), self.labels, other.labels)
        return TagSequences(labels, self.offsets, partial=False)


class LabelLists(Sequence[list[Any]]):
    """Label sequences stored as numbers that read like a list of lists, as in a store.

    Parameters
    ----------
    tags : TagSequences
        Numbers of labels in ``classes``.
    classes : list of labels, sorted
    unsaid : array of bool, optional
        Positions with the label None, for which ``tags.allowed`` lists only the labels in ``classes``. Default:
        positions where all of these are allowed.

    Examples
    --------
    >>> index = LabelIndex(["DET", "NOUN"])
    >>> y = LabelLists(index.encode([["DET", "NOUN"], ["NOUN", {"DET", "NOUN"}]]), index.classes)
    >>> len(y), y[0]
    (2, ['DET', 'NOUN'])
    >>> LabelIndex(["ADJ", "DET", "NOUN"]).encode(y).labels
    array([ 1,  2,  2, -1], dtype=int32)
    """

    def __init__(self, tags: TagSequences, classes: list[Any], unsaid: np.ndarray | None = None) -> None:
        self.tags, self.classes, self.unsaid = tags, classes, unsaid
        if unsaid is None and tags.allowed is not None:
            self.unsaid = (tags.labels < 0) & (tags.allowed.min(axis=1, initial=1) == 1)

    @classmethod
    def of(cls, y: Any) -> LabelLists:
        """Return label sequences in any form, with the labels that occur in them."""
        if isinstance(y, LabelLists):
            return y
        index = LabelIndex.from_sequences(y)
        tags = index.encode(y)
        unsaid = None
        if tags.allowed is not None:  # a set of all labels that occur here says more than None where there are others
            unsaid = np.fromiter((tag is None for one in y for tag in one), bool, len(tags.labels))
        return cls(tags, index.classes, unsaid)

    def __len__(self) -> int:
        return len(self.tags)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            tags, unsaid = self.tags[key], self.unsaid
            if unsaid is not None:
                first, last = (int(tags.offsets[at] - self.tags.offsets[0]) for at in (0, -1))
                unsaid = unsaid[first:last]
            return LabelLists(tags, self.classes, unsaid)
        at = range(len(self))[key]
        return next(iter(self[at : at + 1]))

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._lists())

    def _lists(self) -> list[list[Any]]:
        tags = self.tags
        offsets = tags.offsets - tags.offsets[0]
        lists = LabelIndex(self.classes).decode(tags.labels, offsets)
        if tags.allowed is not None and self.unsaid is not None:
            flat = [(i, t) for i, one in enumerate(lists) for t in range(len(one))]
            for k in np.flatnonzero((tags.labels < 0) & ~self.unsaid):
                i, t = flat[k]
                lists[i][t] = {self.classes[c] for c in np.flatnonzero(tags.allowed[k])}
        return lists

    def under(self, index: LabelIndex) -> TagSequences:
        """Return the numbers of the same labels in an index that contains all of them."""
        missing = [label for label in self.classes if label not in index._lookup]
        if missing:
            known = ", ".join(map(repr, index.classes[:8])) + (", …" if len(index) > 8 else "")
            raise ValueError(f"unknown label {missing[0]!r}; known are {known}")
        if self.classes == index.classes:
            return self.tags
        place = np.array([index._lookup[label] for label in self.classes], np.int32)
        tags, allowed = self.tags, None
        labels = np.where(tags.labels >= 0, place[tags.labels], np.int32(-1)) if len(place) else tags.labels
        if tags.allowed is not None and self.unsaid is not None:
            allowed = np.zeros((len(labels), len(index)), np.uint8)
            allowed[:, place] = tags.allowed
            allowed[(labels >= 0) | self.unsaid] = 1
        return TagSequences(labels, tags.offsets, allowed, tags.partial)


def _check_list(y: Any) -> None:
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise TypeError(f"expected a list of label sequences, found {type(y).__name__}")


class LabelIndex(Saved):
    """A fixed, sorted set of labels.

    Parameters
    ----------
    classes : iterable of labels
        Strings or numbers, not both.

    Examples
    --------
    >>> index = LabelIndex.from_sequences([["DET", "NOUN"], ["NOUN", None]])
    >>> index.classes
    ['DET', 'NOUN']
    >>> index.encode([["NOUN", None]]).labels
    array([ 1, -1], dtype=int32)
    """

    def __init__(self, classes: Iterable[Any]) -> None:
        self.classes: list[Any] = [c.item() if isinstance(c, np.generic) else c for c in classes]
        kinds = {isinstance(c, str) for c in self.classes}
        if len(kinds) > 1:
            raise TypeError("labels must be all strings or all numbers, found both")
        self._lookup = {c: i for i, c in enumerate(self.classes)}
        if len(self._lookup) != len(self.classes):
            raise ValueError("a label stands twice")

    def __len__(self) -> int:
        return len(self.classes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelIndex) and self.classes == other.classes

    __hash__ = None  # type: ignore[assignment]

    @property
    def array(self) -> np.ndarray:
        """The labels as an array."""
        return np.array(self.classes)

    @classmethod
    def from_sequences(cls, y: Sequence[Sequence[Any]]) -> LabelIndex:
        """Return all labels that occur, sorted. ``None`` and sets of labels are partly known labels."""
        if isinstance(y, LabelLists):
            return cls(y.classes)
        _check_list(y)
        names: set[Any] = set()
        for i, tags in enumerate(y):
            if isinstance(tags, (str, bytes)) or not hasattr(tags, "__iter__"):
                raise TypeError(f"sequence {i}: expected a list of labels, found {type(tags).__name__}")
            try:
                names.update(tags.tolist() if isinstance(tags, np.ndarray) else tags)
            except TypeError:  # sets of possible labels are not hashable
                for t, tag in enumerate(tags):
                    if isinstance(tag, (list, dict, np.ndarray)):
                        kind = type(tag).__name__
                        raise TypeError(
                            f"sequence {i}, position {t}: a label must be a string or a number, found {kind}"
                        ) from None
                    names.update(tag if isinstance(tag, (set, frozenset)) else [tag])
        names.discard(None)
        for item in [t for t in names if isinstance(t, frozenset)]:
            names.discard(item)
            names.update(item)
        names = {t.item() if isinstance(t, np.generic) else t for t in names}
        for item in names:
            if not isinstance(item, (str, int, float, bool)):
                raise TypeError(f"a label must be a string or a number, found {type(item).__name__}")
            if item != item:
                raise ValueError("a label is NaN: use None where a label is not known")
        if len({isinstance(t, str) for t in names}) > 1:
            raise TypeError("labels must be all strings or all numbers, found both")
        return cls(sorted(names))

    def with_unseen(self, y: Sequence[Sequence[Any]]) -> LabelIndex:
        """Return the same labels with the same numbers, followed by the new labels of ``y``."""
        unseen = [label for label in LabelIndex.from_sequences(y).classes if label not in self._lookup]
        return LabelIndex([*self.classes, *unseen]) if unseen else self

    def encode(self, y: Sequence[Sequence[Any]], lengths: np.ndarray | None = None) -> TagSequences:
        """Return label sequences as numbers; ``None`` or a set of labels stands for an unknown label.

        Raise an error that names the sequence for unknown labels and for lengths that do not fit the inputs.
        """
        _check_list(y)
        if lengths is not None and len(y) != len(lengths):
            raise ValueError(f"{len(lengths)} sequences in X, {len(y)} in y")
        if isinstance(y, LabelLists):
            known = y.under(self)
            if lengths is not None and (wrong := np.flatnonzero(np.diff(known.offsets) != lengths)).size:
                i, n = int(wrong[0]), int(np.diff(known.offsets)[wrong[0]])
                raise ValueError(f"sequence {i} has {lengths[i]} positions in X and {n} labels in y")
            return known
        sizes = []
        for i, tags in enumerate(y):
            if isinstance(tags, (str, bytes)) or not hasattr(tags, "__len__"):
                raise TypeError(f"sequence {i}: expected a list of labels, found {type(tags).__name__}")
            if lengths is not None and len(tags) != lengths[i]:
                raise ValueError(f"sequence {i} has {lengths[i]} positions in X and {len(tags)} labels in y")
            sizes.append(len(tags))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        lookup = self._lookup
        try:
            codes = map(lookup.__getitem__, chain.from_iterable(y))
            return TagSequences(np.fromiter(codes, np.int32, int(offsets[-1])), offsets, partial=False)
        except (KeyError, TypeError):
            return self._encode_partial(y, offsets)

    def _encode_partial(self, y: Sequence[Sequence[Any]], offsets: np.ndarray) -> TagSequences:
        labels = np.full(int(offsets[-1]), -1, dtype=np.int32)
        allowed: np.ndarray | None = None
        for i, tags in enumerate(y):
            for t, tag in enumerate(tags):
                position = int(offsets[i]) + t
                if tag is None:
                    continue
                if isinstance(tag, (set, frozenset)):
                    if not tag:
                        raise ValueError(f"sequence {i}, position {t}: the set of possible labels is empty")
                    if allowed is None:
                        allowed = np.ones((int(offsets[-1]), len(self)), dtype=np.uint8)
                    allowed[position] = 0
                    for one in tag:
                        allowed[position, self._number(one, i, t)] = 1
                else:
                    labels[position] = self._number(tag, i, t)
        return TagSequences(labels, offsets, allowed)

    def _number(self, tag: Any, i: int, t: int) -> int:
        try:
            return self._lookup[tag]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.classes[:8])) + (", …" if len(self) > 8 else "")
            raise ValueError(f"sequence {i}, position {t}: unknown label {tag!r}; known are {known}") from None

    def decode(self, labels: np.ndarray, offsets: np.ndarray) -> list[list[Any]]:
        """Convert stacked indices to lists of labels, one list for each sequence; None for −1."""
        bounds = np.ascontiguousarray(offsets, np.int64)
        return _core.chain.label_lists(self.classes, np.ascontiguousarray(labels, np.int32), bounds)
