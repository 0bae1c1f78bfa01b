"""Constraints on labellings: forbidden transitions, first labels and last labels.

A forbidden part scores exactly −inf, so it always has probability 0. The same object is used in decoding (only allowed
labellings are predicted) and in training (the partition function sums over allowed labellings only).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer._state.values import Codec, register


class Constraints:
    """Forbidden transitions, first labels and last labels.

    Parameters
    ----------
    forbidden : iterable of (label, label)
        Forbidden transitions.
    forbidden_start, forbidden_end : iterable of labels
        Labels that may not begin or end a sequence.

    Notes
    -----
    Labels that the model does not have are ignored: a constraint can only remove labellings.

    Attributes
    ----------
    labels : tuple or None
        The labels passed to :meth:`allowing`, :meth:`bio` or :meth:`bilou`, in that order. Model files do not store
        them.

    Examples
    --------
    >>> c = Constraints.bio(["B-NP", "I-NP", "B-VP", "I-VP", "O"])
    >>> c.allows(["B-NP", "I-NP", "O"]), c.allows(["O", "I-NP"]), c.allows(["B-VP", "I-NP"])
    (True, False, False)
    """

    def __init__(
        self,
        forbidden: Iterable[tuple[Any, Any]] = (),
        *,
        forbidden_start: Iterable[Any] = (),
        forbidden_end: Iterable[Any] = (),
    ) -> None:
        self.forbidden = frozenset((a, b) for a, b in forbidden)
        self.forbidden_start = frozenset(forbidden_start)
        self.forbidden_end = frozenset(forbidden_end)
        self.labels: tuple[Any, ...] | None = None

    @classmethod
    def allowing(
        cls,
        labels: Sequence[Any],
        transitions: Iterable[tuple[Any, Any]],
        *,
        start: Iterable[Any] | None = None,
        end: Iterable[Any] | None = None,
    ) -> Constraints:
        """Allow only the given transitions (and first and last labels).

        Examples
        --------
        >>> Constraints.allowing("AB", [("A", "B"), ("B", "A")]).allows("AA")
        False
        """
        allowed = set(transitions)
        unknown = {label for pair in allowed for label in pair} - set(labels)
        if unknown:
            raise ValueError(f"a transition names {sorted(map(str, unknown))[0]!r}, which is not among the labels")
        first = set(labels) if start is None else set(start)
        last = set(labels) if end is None else set(end)
        made = cls(
            [(a, b) for a in labels for b in labels if (a, b) not in allowed],
            forbidden_start=[a for a in labels if a not in first],
            forbidden_end=[a for a in labels if a not in last],
        )
        made.labels = tuple(labels)
        return made

    @classmethod
    def bio(cls, labels: Iterable[str]) -> Constraints:
        """Return the rules of BIO tags (IOB2): ``I-X`` only after ``B-X`` or ``I-X``."""
        parts = [(label, *_split(label, "BIO")) for label in labels]
        made = cls(
            [(a, b) for a, pa, xa in parts for b, pb, xb in parts if pb == "I" and not (pa in "BI" and xa == xb)],
            forbidden_start=[a for a, pa, _ in parts if pa == "I"],
        )
        made.labels = tuple(label for label, _, _ in parts)
        return made

    @classmethod
    def bilou(cls, labels: Iterable[str]) -> Constraints:
        """Return the rules of BILOU tags (also BIOES): a begun span continues to its last position."""
        parts = [(label, *_split(label, "BILOUES")) for label in labels]
        parts = [(label, {"E": "L", "S": "U"}.get(p, p), x) for label, p, x in parts]

        def fits(pa: str, xa: str, pb: str, xb: str) -> bool:
            if pa in "BI":
                return pb in "IL" and xa == xb
            return pb in "BOU"

        made = cls(
            [(a, b) for a, pa, xa in parts for b, pb, xb in parts if not fits(pa, xa, pb, xb)],
            forbidden_start=[a for a, pa, _ in parts if pa in "IL"],
            forbidden_end=[a for a, pa, _ in parts if pa in "BI"],
        )
        made.labels = tuple(label for label, _, _ in parts)
        return made

    def allows(self, labels: Sequence[Any]) -> bool:
        """Return whether a labelling satisfies all rules."""
        if len(labels) == 0:
            return True
        if labels[0] in self.forbidden_start or labels[-1] in self.forbidden_end:
            return False
        return all((a, b) not in self.forbidden for a, b in pairwise(labels))

    def masks(self, classes: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Boolean arrays, True where forbidden: (labels × labels, labels, labels)."""
        pairs = np.array([[(a, b) in self.forbidden for b in classes] for a in classes], dtype=bool)
        start = np.array([a in self.forbidden_start for a in classes], dtype=bool)
        end = np.array([a in self.forbidden_end for a in classes], dtype=bool)
        if start.all() or end.all():
            raise ValueError("the constraints forbid every label at the beginning or at the end of a sequence")
        return pairs.reshape(len(classes), len(classes)), start, end

    def to_json(self) -> dict[str, list[Any]]:
        """Return a description for a model file."""
        return {
            "forbidden": sorted([list(pair) for pair in self.forbidden], key=repr),
            "forbidden_start": sorted(self.forbidden_start, key=repr),
            "forbidden_end": sorted(self.forbidden_end, key=repr),
        }

    @classmethod
    def from_json(cls, state: dict[str, list[Any]]) -> Constraints:
        """Return the inverse of :meth:`to_json`."""
        return cls(
            [(a, b) for a, b in state["forbidden"]],
            forbidden_start=state["forbidden_start"],
            forbidden_end=state["forbidden_end"],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraints) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.forbidden, self.forbidden_start, self.forbidden_end))

    def __repr__(self) -> str:
        return (
            f"Constraints({len(self.forbidden)} forbidden transitions, {len(self.forbidden_start)} forbidden starts, "
            f"{len(self.forbidden_end)} forbidden ends)"
        )


class SharedScores:
    """The scores that all positions share, of structures whose weights hold them: of labels that follow each other, of
    the first and of the last one."""

    slices: dict[str, slice]
    n_labels: int
    masks: tuple[np.ndarray, np.ndarray, np.ndarray] | None

    def shared_scores(self, w: np.ndarray, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return transition, start and end scores with −inf where forbidden."""
        transitions = w[self.slices["transitions"]].reshape(self.n_labels, self.n_labels).astype(dtype)
        start, end = w[self.slices["start"]].astype(dtype), w[self.slices["end"]].astype(dtype)
        if self.masks is not None:
            for scores, mask in zip((transitions, start, end), self.masks, strict=True):
                scores[mask] = -np.inf
        return transitions, start, end


def _split(label: str, prefixes: str) -> tuple[str, str]:
    if not isinstance(label, str) or not label or label[0] not in prefixes or (len(label) > 1 and label[1] not in "-_"):
        raise ValueError(f"{label!r} is not a label of the form O or PREFIX-TYPE with a prefix of {prefixes}")
    return label[0], label[2:]


register(
    Constraints,
    Codec(
        "constraints",
        lambda constraints, out: {"of": constraints.to_json()},
        lambda node, source: Constraints.from_json(node["of"]),
    ),
)
