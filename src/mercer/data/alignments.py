"""Alignments: pairs (i, j) of positions in two sequences that ascend in both.

Symbols without a partner are in gaps. Between two neighbouring pairs, unpaired symbols of the first sequence are shown
before those of the second. The pairs define the alignment: two alignments are equal if their pairs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

GAP = "-"


class Alignment:
    """An alignment of two sequences.

    Parameters
    ----------
    s, t : str or sequence of tokens
        The two sequences.
    pairs : array-like of shape (n_pairs, 2)
        Positions (i, j), from 0, of symbols ``s[i]`` and ``t[j]`` that are aligned; both must ascend.
    score : float or None
        Its score under the model.
    local : bool, default=False
        Whether symbols before the first and after the last pair are left out rather than in gaps.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2), read-only

    Examples
    --------
    >>> from mercer.alignment import Alignment
    >>> y = Alignment("GATTACA", "GCATACA", [(0, 0), (1, 2), (3, 3), (4, 4), (5, 5), (6, 6)])
    >>> print(y)
    G-ATTACA
    | | ||||
    GCA-TACA
    >>> y.cigar, round(y.identity, 2)
    ('1=1I1=1D4=', 0.75)
    """

    def __init__(
        self,
        s: Sequence[Any],
        t: Sequence[Any],
        pairs: Any,
        score: float | None = None,
        local: bool = False,
    ) -> None:
        self.s, self.t = s, t
        self.pairs = check_pairs(pairs, len(s), len(t))
        self.score = None if score is None else float(score)
        self.local = bool(local)

    @classmethod
    def from_rows(
        cls, top: Sequence[Any], bottom: Sequence[Any], gap: Any = GAP, score: float | None = None, local: bool = False
    ) -> Alignment:
        """Return the alignment of two gapped rows of equal length.

        Parameters
        ----------
        top, bottom : str or sequence of tokens
            The rows; ``gap`` stands for the missing symbol.
        gap : symbol, default="-"
        score, local
            As in the constructor.

        Examples
        --------
        >>> Alignment.from_rows("AC-G", "A-TG").pairs.tolist()
        [[0, 0], [2, 2]]
        """
        s, t, pairs = read_rows(top, bottom, gap)
        return cls(s, t, pairs, score, local)

    # ------------------------------------------------------------------ what it consists of

    @property
    def operations(self) -> str:
        """Return one letter per column: ``=`` equal, ``X`` unequal symbols, ``D`` only in s, ``I`` only in t."""
        letters = []
        for i, j in self._columns():
            if i is None:
                letters.append("I")
            elif j is None:
                letters.append("D")
            else:
                letters.append("=" if self.s[i] == self.t[j] else "X")
        return "".join(letters)

    @property
    def cigar(self) -> str:
        """Return the operations with their run lengths, such as ``3=1X2D``."""
        return "".join(f"{len(list(run))}{letter}" for letter, run in groupby(self.operations))

    @property
    def identity(self) -> float:
        """Return the share of columns with equal symbols; 0 without columns."""
        operations = self.operations
        return operations.count("=") / len(operations) if operations else 0.0

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the parts of s and t that the alignment covers, as (begin, end)."""
        if not self.local:
            return (0, len(self.s)), (0, len(self.t))
        if not len(self.pairs):
            return (0, 0), (0, 0)
        (a, b), (c, d) = self.pairs[0].tolist(), self.pairs[-1].tolist()
        return (a, c + 1), (b, d + 1)

    def rows(self, gap: Any = GAP) -> tuple[Any, Any]:
        """Return the two gapped rows: strings for strings, otherwise lists of tokens.

        The rows of a local alignment cover only its aligned part.
        """
        columns = list(self._columns())
        top = [gap if i is None else self.s[i] for i, _ in columns]
        bottom = [gap if j is None else self.t[j] for _, j in columns]
        if isinstance(self.s, str) and isinstance(self.t, str):
            return "".join(top), "".join(bottom)
        return top, bottom

    def format(self, width: int | None = 80) -> str:
        """Return the two rows with markers between: ``|`` under equal symbols, ``.`` under unequal ones.

        Parameters
        ----------
        width : int or None, default=80
            Maximum row length; longer rows are split into blocks. None: no limit.
        """
        if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
            raise ValueError(f"width must be a positive integer or None, got {width!r}")
        top, bottom = self.rows()
        if not top:
            return "(nothing aligned)"
        marks = {"=": "|", "X": ".", "D": " ", "I": " "}
        middle = [marks[letter] for letter in self.operations]
        cells = list(zip(map(str, top), middle, map(str, bottom), strict=True))
        between = "" if all(len(a) == len(b) == 1 for a, _, b in cells) else " "
        blocks = []
        for block in _blocks(cells, between, width):
            widths = [max(len(a), len(b)) for a, _, b in block]
            lines = [between.join(cell[k].ljust(n) for cell, n in zip(block, widths, strict=True)) for k in range(3)]
            blocks.append("\n".join(line.rstrip() for line in lines))
        return "\n\n".join(blocks)

    def _columns(self) -> Iterator[tuple[int | None, int | None]]:
        (i, s_end), (j, t_end) = self.spans
        for a, b in [*self.pairs.tolist(), (s_end, t_end)]:
            yield from ((k, None) for k in range(i, a))
            yield from ((None, k) for k in range(j, b))
            if a < s_end and b < t_end:
                yield a, b
            i, j = a + 1, b + 1

    # ------------------------------------------------------------------ Python's own

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        score = "" if self.score is None else f", score={self.score:.4g}"
        return f"Alignment({len(self.pairs)} pairs, {self.cigar or 'nothing aligned'}{score})"

    def __len__(self) -> int:
        return len(self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alignment):
            return NotImplemented
        same = list(self.s) == list(other.s) and list(self.t) == list(other.t)
        return same and np.array_equal(self.pairs, other.pairs)

    def __hash__(self) -> int:
        return hash((len(self.s), len(self.t), self.pairs.tobytes()))


def check_pairs(pairs: Any, n: int, m: int, where: str = "pairs") -> np.ndarray:
    """Return pairs as a read-only int32 array of shape (n_pairs, 2), in range and ascending."""
    try:
        array = np.asarray(pairs)
    except ValueError as err:
        raise ValueError(f"{where} must be index pairs (i, j): {err}") from err
    if array.size == 0:
        array = np.empty((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{where} must be index pairs (i, j), an array of shape (n, 2), got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{where} must hold integers, got {array.dtype}")
    outside = (array < 0) | (array >= np.array([n, m]))
    if outside.any():
        i, j = array[outside.any(axis=1)][0].tolist()
        raise ValueError(f"{where} must lie within sequences of {n} and {m} symbols, found ({i}, {j})")
    if len(array) > 1:
        steps = np.diff(array.astype(np.int64), axis=0)
        bad = np.flatnonzero((steps <= 0).any(axis=1))
        if len(bad):
            first, second = array[bad[0]].tolist(), array[bad[0] + 1].tolist()
            raise ValueError(f"{where} must ascend in both sequences, found {tuple(first)} before {tuple(second)}")
    array = np.array(array, dtype=np.int32)
    array.flags.writeable = False
    return array


def read_rows(top: Sequence[Any], bottom: Sequence[Any], gap: Any = GAP) -> tuple[Any, Any, np.ndarray]:
    """Return the two sequences of gapped rows, and their pairs."""
    if len(top) != len(bottom):
        raise ValueError(f"gapped rows must have one length, got {len(top)} and {len(bottom)}")
    here = np.array([[a != gap, b != gap] for a, b in zip(top, bottom, strict=True)], dtype=bool).reshape(-1, 2)
    empty = np.flatnonzero(~here.any(axis=1))
    if len(empty):
        raise ValueError(f"gapped rows must not both have a gap in one column, as in column {int(empty[0])}")
    places = np.cumsum(here, axis=0) - 1
    pairs = places[here.all(axis=1)]
    s, t = [x for x in top if x != gap], [x for x in bottom if x != gap]
    if isinstance(top, str) and isinstance(bottom, str):
        return "".join(s), "".join(t), pairs
    return s, t, pairs


def _blocks(cells: list[tuple[str, str, str]], between: str, width: int | None) -> Iterator[list[tuple[str, str, str]]]:
    block: list[tuple[str, str, str]] = []
    used = 0
    for cell in cells:
        needs = max(len(cell[0]), len(cell[2])) + (len(between) if block else 0)
        if block and width is not None and used + needs > width:
            yield block
            block, used, needs = [], 0, needs - len(between)
        block.append(cell)
        used += needs
    if block:
        yield block
