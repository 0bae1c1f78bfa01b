"""Roles of table columns (label, text, number, date, category or id), guessed from the first rows with the evidence.

The label is the column named label, target, class or y (or a relative of these). Without such a name, it is the first
or the last column, if one of them has few distinct values and the other has many, or numbers instead of names.

    number      all values are numbers (some may be missing)
    date        nine in ten are dates or times: 2024-03-01, 2024-03-01T12:30, 1.3.2024, 3/1/2024
    text        most values differ and have three words or more, or are one long word
    id          one value per row: numbered in order, or a unique name; not a feature
    list        lists of names (JSON lines, Parquet): several labels, or several categories
    category    all others
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mercer.data.readers.sniff import are_numbers, csv_rows, has_header
from mercer.exceptions import DataFileError

__all__ = ["LABEL_NAMES", "MISSING", "ROLES", "Column", "Table", "guess_label", "table_of_csv", "table_of_records"]

ROLES = ("number", "category", "text", "date", "id", "label", "ignore")
LABEL_NAMES = ("label", "target", "class", "y", "labels", "classes", "outcome", "response")
MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none", "-"))
SAMPLE_ROWS = 5000
MOST_CLASSES = 100
_MANY_ROWS = 20
"""Minimum number of rows for a column of distinct values to be informative."""

_LONG_WORD = 40
_LEAST_TEXT = 3.0
_ID_NAME = re.compile(r"(.*[\W_])?(id|uuid|guid|key|index|rownames?|row_?number|unnamed: 0)|.*(?<=[a-z])(ID|Id)", re.I)
DATES = {
    "ymd": re.compile(
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?"
    ),
    "dmy": re.compile(r"(0?[1-9]|[12]\d|3[01])[-/.](0?[1-9]|1[0-2])[-/.]\d{4}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?)?"),
    "mdy": re.compile(r"(0?[1-9]|1[0-2])[-/.](0?[1-9]|[12]\d|3[01])[-/.]\d{4}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?)?"),
}
"""Orders of year, month and day. If day and month are ambiguous, the day comes first with dots as separators."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its guessed content, and the evidence."""

    name: str
    role: str
    n_values: int
    n_different: int
    n_words: float
    n_missing: int = 0
    order: str | None = None
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, cells: Sequence[Any], stripped: bool = False) -> Column:
        """Guess from the cells of a column: texts, possibly stripped, or JSON values."""
        if not stripped and any(issubclass(kind, (list, dict)) for kind in set(map(type, cells))):
            lists = [cell for cell in cells if isinstance(cell, list)]
            role = "list" if len(lists) > len(cells) / 2 else "ignore"
            return cls(name, role, len(lists), len({str(cell) for cell in lists}), 0.0, len(cells) - len(lists))
        texts = list(cells) if stripped else [_as_text(cell) for cell in cells]
        times = Counter(texts)
        missing = {cell for cell in times if cell.lower() in MISSING}
        values = [cell for cell in texts if cell not in missing] if missing else texts
        numeric = are_numbers(values)
        if not numeric or times.keys() == {"-", "+"} or len(times.keys() - missing) < 2:
            missing -= {"-"}
            values = [cell for cell in texts if cell not in missing] if missing else texts  # a name among names
            numeric = are_numbers(values)
        different, order = len(times.keys() - missing), None
        n_words = 0 if numeric else sum(len(cell.split()) * n for cell, n in times.items() if cell not in missing)
        words = 1.0 if numeric else n_words / max(1, len(values))
        if not values:
            role = "empty"
        elif numeric:
            role = "id" if _is_numbering(name, values) else "number"
        else:
            order = _date_order(values)
            if order is not None:
                role = "date"
            elif words >= _LEAST_TEXT and 2 * different > len(values):
                role = "text"
            else:
                role = _name_role(name, values, different, words)
        return cls(name, role, len(values), different, words, len(texts) - len(values), order, tuple(values))

    @property
    def could_be_label(self) -> bool:
        """Return whether the column has few distinct values."""
        if self.role in ("list", "ignore"):
            return False
        return 2 <= self.n_different <= min(MOST_CLASSES, max(2, self.n_values // 4))

    @property
    def constant(self) -> bool:
        """Return whether all rows have the same value."""
        return self.n_different == 1 and not self.n_missing and self.n_values >= _MANY_ROWS

    def classes(self) -> list[tuple[str, int]]:
        """Return values with their counts, the most frequent first."""
        return Counter(self.values).most_common()


def _as_text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "1" if cell else "0"
    return repr(cell) if isinstance(cell, (int, float)) else str(cell)


def _is_numbering(name: str, values: Sequence[str]) -> bool:
    """Whether numbers only number the rows: one more each time, or named as an id and all different."""
    if len(values) < _MANY_ROWS or not all(value.isdecimal() for value in values):
        return False
    numbers = [int(value[:18]) for value in values]
    in_order = all(b - a == 1 for a, b in pairwise(numbers))
    return in_order or (_ID_NAME.fullmatch(name) is not None and len(set(values)) > 0.9 * len(values))


def _name_role(name: str, values: Sequence[str], different: int, words: float) -> str:
    """A name for every row is an id, or text if it is long (a sequence of letters)."""
    n = len(values)
    if n < _MANY_ROWS or different < 0.95 * n:
        return "category"
    if words < 1.5 and sum(map(len, values)) >= _LONG_WORD * n:
        return "text"
    if different == n or _ID_NAME.fullmatch(name) is not None:
        return "id"
    return "category"


def _date_order(values: Sequence[str]) -> str | None:
    some = values[:200]
    if not any("-" in value or "/" in value or "." in value for value in some[:3]):
        return None
    fit = {
        order: sum(1 for value in some if pattern.fullmatch(value)) for order, pattern in DATES.items()
    }  # fmt: skip
    best = max(fit.values())
    if best < 0.9 * len(some) or not best:
        return None
    orders = [order for order, count in fit.items() if count == best]
    if "mdy" in orders and "dmy" in orders:
        return "dmy" if "." in some[0] else "mdy"
    return orders[0]


@dataclass(frozen=True)
class Table:
    """The columns of a sample of rows."""

    columns: tuple[Column, ...]
    n_rows: int
    header: bool = True

    @property
    def names(self) -> list[str]:
        """Return the names in the order of the file."""
        return [column.name for column in self.columns]

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def with_roles(self, roles: dict[str, str], where: str) -> Table:
        """Return the same table with the roles that the user gave."""
        for name, role in roles.items():
            if name not in self.names:
                raise DataFileError(where, 1, f"roles name a column {name!r}; the columns are {', '.join(self.names)}")
            if role not in ROLES:
                raise ValueError(f"a role must be one of {', '.join(ROLES)}, got {role!r} for {name!r}")
        made = (
            replace(column, role=roles.get(column.name, column.role), order=column.order or "ymd")
            if column.name in roles
            else column
            for column in self.columns
        )
        return replace(self, columns=tuple(made))


def table_of_csv(data: bytes, whole: bool, separator: str, header: bool | None) -> Table | None:
    """Return the columns of the first rows of a csv; None if they are not a table (the reader reports why).

    If the header is not specified, the rows determine whether there is one.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if not whole and "\n" in text:
        text = text[: text.rfind("\n") + 1]
    rows = csv_rows(text, separator, SAMPLE_ROWS + 1)
    if not rows:
        return None
    if header is None:
        usual = Counter(map(len, rows[:500])).most_common(1)[0][0]
        header = (
            has_header([row for row in rows[:500] if len(row) == usual], MISSING) if len(rows[0]) == usual else False
        )
    width = Counter(map(len, rows)).most_common(1)[0][0]
    names = rows.pop(0) if header else [str(i) for i in range(width)]
    rows = [row for row in rows if len(row) == len(names)]
    if not rows or len(set(names)) != len(names):
        return None
    columns = tuple(Column.of(name, cells, True) for name, cells in zip(names, zip(*rows, strict=True), strict=True))
    return Table(columns, len(rows), header)


def table_of_records(records: Iterable[dict[str, Any]]) -> Table | None:
    """Return the columns of the first records; absent fields are missing values."""
    some: list[dict[str, Any]] = []
    for record in records:
        some.append(record)
        if len(some) >= SAMPLE_ROWS:
            break
    names = _merged_names(some)
    if not names:
        return None
    columns = tuple(Column.of(name, [record.get(name) for record in some]) for name in names)
    return Table(columns, len(some))


def _merged_names(records: Sequence[dict[str, Any]]) -> list[str]:
    """The fields of all records; one that the first records lack stands where later ones have it."""
    names: list[str] = []
    known: set[str] = set()
    for record in records:
        if known.issuperset(record):
            continue
        before = -1
        for name in record:
            if name not in known:
                known.add(name)
                names.insert(before + 1, name)
            before = names.index(name)
    return names


def records_of_lines(data: bytes, whole: bool, most: int | None = SAMPLE_ROWS, name: str = "") -> list[dict[str, Any]]:
    """Return the objects of the first lines; malformed lines are skipped, because the reader reports them.

    With a ``name`` of the file they raise DataFileError.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if not whole and "\n" in text:
        text = text[: text.rfind("\n")]
    records = []
    for number, line in enumerate(text.split("\n")[:most], 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            records.append(record)
        elif name and line.strip():
            raise DataFileError(name, number, "expected a JSON object")
    return records


def guess_label(table: Table, numeric: bool) -> tuple[str, str] | None:
    """Return the name of the label column and the reason (empty if the name is clear); None if undecidable."""
    for wanted in LABEL_NAMES:
        for name in table.names:
            if name.lower() == wanted:
                return name, ""
    if numeric or len(table.columns) < 2:
        return None
    ends = {"first": table.columns[0], "last": table.columns[-1]}
    candidates = {place: column for place, column in ends.items() if column.could_be_label}
    if len(candidates) > 1:
        named = {place: column for place, column in candidates.items() if column.role != "number"}
        if named:
            candidates = named
        else:
            few = min(column.n_different for column in ends.values())
            candidates = {place: column for place, column in candidates.items() if column.n_different < 4 * few}
    if len(candidates) == 2 and not table.header:  # where nothing is named, the class comes last
        candidates.pop("first")
    if len(candidates) != 1:
        return None
    place, chosen = candidates.popitem()
    return chosen.name, f"the {place} column, {chosen.n_different} different values"
