"""Which column of a csv is what: label, texts, numbers or categories, guessed from its first rows, with the evidence.

The label is the column named label, target, class or y (in this order, upper or lower case). Without one, it is the
first or the last column, if exactly one of the two holds few different values, or names where the other holds numbers.
A column is text if most of its values differ and have three words or more on average; its words are features then. A
column of numbers may lack some.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Column", "Table", "guess_label", "read_sample"]

LABEL_NAMES = ("label", "target", "class", "y")
SAMPLE_BYTES = 1 << 20
SAMPLE_ROWS = 5000
_MOST_CLASSES = 100
_MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none", "-"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column by its name, what it seems to hold, and why."""

    name: str
    role: str
    n_values: int
    n_different: int
    n_words: float

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> Column:
        """Look at the cells of a column."""
        values = [cell for cell in cells if cell.lower() not in _MISSING]
        different, words = len(set(values)), sum(len(cell.split()) for cell in values) / max(1, len(values))
        if not values:
            role = "empty"
        elif all(map(_NUMBER.fullmatch, values)):
            role = "number"
        else:
            role = "text" if words >= 3 and 2 * different > len(values) else "category"
        return cls(name, role, len(values), different, words)

    @property
    def could_be_label(self) -> bool:
        """Whether it holds few different values."""
        return 2 <= self.n_different <= min(_MOST_CLASSES, max(2, self.n_values // 4))


@dataclass(frozen=True)
class Table:
    """The columns of a sample of rows."""

    columns: tuple[Column, ...]
    n_rows: int
    header_of_numbers: bool

    @property
    def names(self) -> list[str]:
        """In the order of the file."""
        return [column.name for column in self.columns]


def read_sample(data: bytes, whole: bool, separator: str, header: bool) -> Table | None:
    """The columns of the first rows of a csv; None where they make no table (the reader will say why)."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if not whole:
        text = text[: text.rfind("\n") + 1]
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True):
            if row:
                rows.append([cell.strip() for cell in row])
            if len(rows) > SAMPLE_ROWS:
                break
    except csv.Error:
        return None
    if not rows:
        return None
    names = rows.pop(0) if header else [str(i) for i in range(len(rows[0]))]
    rows = [row for row in rows if len(row) == len(names)]
    if not rows or len(set(names)) != len(names):
        return None
    columns = tuple(Column.of(name, cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True))
    numbers = header and any(_NUMBER.fullmatch(name) for name in names)
    return Table(columns, len(rows), numbers)


def guess_label(table: Table, numeric: bool) -> tuple[str, str] | None:
    """The name of the label and why it is the label; the reason is empty if its name says so. None: nobody can know."""
    for wanted in LABEL_NAMES:
        for name in table.names:
            if name.lower() == wanted:
                return name, ""
    if numeric or len(table.columns) < 2:
        return None
    ends = {"first": table.columns[0], "last": table.columns[-1]}
    candidates = {place: column for place, column in ends.items() if column.could_be_label}
    if len(candidates) > 1:
        candidates = {place: column for place, column in candidates.items() if column.role != "number"}
    if len(candidates) != 1:
        return None
    place, chosen = candidates.popitem()
    return chosen.name, f"the {place} column, {chosen.n_different} different values"
