"""Detection of a file's format, separator and header from its first bytes; its name only breaks ties.

svmlight    label index:value …                      json      an array of objects, or an object
vw          label | name name:value …                jsonl     an object per line
columns     a token per line, blank lines between     csv       cells between commas, tabs, semicolons or bars
text        label, tab, text (or: label, space, text, where few words begin all lines)
prose       none of these
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mercer.data.readers.source import Source
from mercer.exceptions import DataFileError

__all__ = ["FORMATS", "LAYOUTS", "SUFFIXES", "Sniffed", "are_numbers", "csv_rows", "has_header", "is_number", "sniff"]

FORMATS = ("text", "vw", "svmlight", "csv", "jsonl")
"""What the compiled readers of examples know."""

LAYOUTS = ("json", "parquet", "arrow", "folder")
"""What becomes JSON lines on the way to them."""

SUFFIXES = {
    ".txt": "text", ".vw": "vw", ".dat": "vw", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".conll": "columns", ".conllu": "columns",
    ".bio": "columns", ".iob": "columns",
}  # fmt: skip

# Only one way to match a number: the cells of a column are matched together, and two ways each would all be combined.
_DECIMAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(_DECIMAL, re.ASCII)
_NUMBERS = re.compile(rf"(?:{_DECIMAL}\0)+", re.ASCII)
_SVMLIGHT = re.compile(r"\S+(\s+qid:\d+)?(\s+\d+:[^\s:]+)*\s*(#.*)?", re.ASCII)
_PAIR = re.compile(r"\s\d+:[+-]?[\d.]", re.ASCII)
_VW = re.compile(r"[^|]*\|(\S*\s|\s*\S+:[+-]?[\d.])", re.ASCII)
_VW_LABEL = re.compile(r"\s*([^\s|]+(\s+[\d.eE+-]+)?)?\s*('?[^\s|]*)?", re.ASCII)
_LABEL_WORD = re.compile(r"__label__\S+\s")
_NAME = re.compile(r"[^\W\d][\w .:/()%#-]*")
_SEPARATORS = (",", "\t", ";", "|")
_COLUMN_NAMES = frozenset(
    ("label", "labels", "class", "target", "text", "category", "message", "sentence", "review", "document", "title")
)
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\v\f\r\x1a\x1b\x1c\x1d\x1e\x1f"))
_LINES = 400
_SPACES = " \t\v\f\x1c\x1d\x1e\x1f"  # what strip takes off, of ASCII, but ends of lines
_MOST_LABELS = 100


@dataclass(frozen=True)
class Sniffed:
    """The detected format of a file.

    Attributes
    ----------
    format : str
        One of the formats of examples, ``"columns"`` or ``"prose"``.
    layout : str or None
        ``"json"``, ``"parquet"``, ``"arrow"`` or ``"folder"``, if the input is converted to JSON lines.
    separator : str or None
        For csv, between cells; for text, between label and text.
    label : str or None
        For text, ``"first"`` or ``"last"``.
    why : str
        The evidence, unless the name is sufficient.
    """

    format: str
    layout: str | None = None
    separator: str | None = None
    label: str | None = None
    why: str = ""


def is_number(cell: str) -> bool:
    """Return whether a cell is a decimal number."""
    return _NUMBER.fullmatch(cell) is not None


def are_numbers(cells: Sequence[str]) -> bool:
    """Return whether there are cells, and all are decimal numbers."""
    together = "\0".join([*cells, ""])  # a cell with a zero byte is no number
    return together.count("\0") == len(cells) and _NUMBERS.fullmatch(together) is not None


def sniff(source: Source, head: bytes | None = None, whole: bool = True, only: str | None = None) -> Sniffed:
    """Detect the format of a file.

    Parameters
    ----------
    source : Source
    head : bytes, optional
        Its first bytes, if already read.
    whole : bool, default=True
        Whether ``head`` is the whole file.
    only : {"csv", "text"}, optional
        The format, if known; then only its details are detected.

    Returns
    -------
    Sniffed
    """
    layout = source.magic_layout()
    if layout is not None:
        return Sniffed("jsonl", layout, why="a folder for each class" if layout == "folder" else "its first bytes")
    if head is None:
        head, whole = source.head()
    _check_text(head, source.name)
    named = only or SUFFIXES.get(source.suffix)
    candidates = _candidates(_lines(head, whole), head, source, only)
    if not candidates:
        if head.strip():
            fallback = named if named in FORMATS else "prose"
            return Sniffed(fallback, separator=_default_separator(fallback, source))
        return Sniffed(named if named in FORMATS else "text", separator=_default_separator(named or "text", source))
    for candidate in candidates:
        if named in (candidate.format, candidate.layout):
            return candidate
    return candidates[0]


def _check_text(head: bytes, name: str) -> None:
    """Raise DataFileError for bytes that are no text: control characters that no text has."""
    strange = len(head) - len(head.translate(None, _CONTROLS))
    if strange > len(head) // 20:
        what = "expected text, found other bytes: an image, a program, or an unknown compression"
        raise DataFileError(name, 1, what, "gz, bz2, xz, zst, Parquet, Arrow and text files are read")


def _default_separator(format: str, source: Source) -> str | None:
    if format == "csv":
        return "\t" if source.suffix in (".tsv", ".tab") else ","
    return "\t" if format == "text" else None


def _lines(head: bytes, whole: bool) -> list[str]:
    """The first lines that are complete, without their ends."""
    text = head.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if not whole and "\n" in text:
        text = text[: text.rfind("\n")]
    return [line.rstrip("\r") for line in text.split("\n", _LINES)[:_LINES]]


def _candidates(lines: Sequence[str], head: bytes, source: Source, only: str | None = None) -> list[Sniffed]:
    """All formats that the lines fit, the likeliest first."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return []
    if only is not None:
        return _tables(lines, source) if only == "csv" else _labelled_text(filled, source.suffix == ".txt")
    start = filled[0].lstrip()
    if start[:1] == "[" and _is_json_array(start, head):
        return [Sniffed("jsonl", "json", why="it begins with a JSON array")]
    if start[:1] == "{":
        if _is_object(filled[0]) and not (len(filled) == 1 and _holds_rows(filled[0])):
            return [Sniffed("jsonl", why="a JSON object a line")]
        return [Sniffed("jsonl", "json", why="it begins with a JSON object")]
    candidates: list[Sniffed] = []
    if _is_svmlight(filled):
        candidates.append(Sniffed("svmlight", why="lines of index:value"))
    if _is_vw(filled):
        candidates.append(Sniffed("vw", why="a bar before the features of every line"))
    texts = _labelled_text(filled, source.suffix == ".txt")
    tables = _tables(lines, source)
    if texts and not _quotes_end(lines, "\t"):  # quotes are part of the texts
        tables = [table for table in tables if table.separator not in ("\t", " ")]
    by_space = [table for table in tables if table.separator == " "]
    candidates += [text for text in texts if text.separator == "\t"]
    candidates += [table for table in tables if table not in by_space]
    spaced = [table for table in tables if table.separator in (" ", "\t")]
    if _is_columns(lines):
        columns = Sniffed("columns", why="a token a line, blank lines between sentences")
        candidates = [columns, *candidates] if not tables or tables[0] in spaced else [*candidates, columns]
    return candidates + [text for text in texts if text.separator != "\t"] + by_space


def _is_json_array(start: str, head: bytes) -> bool:
    rest = start[1:].lstrip() or head.split(b"[", 1)[1].lstrip()[:1].decode("utf-8", "replace")
    return rest[:1] in ("{", "]", "")


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _holds_rows(line: str) -> bool:
    """Whether one object holds a table: columns of equal length, or a list of objects."""
    lists = [value for value in json.loads(line).values() if isinstance(value, list)]
    objects = len(lists) == 1 and bool(lists[0]) and all(isinstance(item, dict) for item in lists[0])
    return objects or (len(lists) > 1 and len(lists) == len(json.loads(line)) and len(set(map(len, lists))) == 1)


def _is_svmlight(lines: Sequence[str]) -> bool:
    data = [line for line in lines if not line.lstrip().startswith("#")]
    fit = [line for line in data if _SVMLIGHT.fullmatch(line.strip())]
    # A few malformed lines do not make it another format: the reader names them.
    return len(fit) >= max(1, 0.9 * len(data)) and sum(1 for line in fit if _PAIR.search(line)) > len(fit) / 2


def _is_vw(lines: Sequence[str]) -> bool:
    fit = [
        line for line in lines if _VW.match(line) and _VW_LABEL.fullmatch(line.partition("|")[0])
    ]  # fmt: skip
    if len(fit) < max(1, 0.9 * len(lines)):
        return False
    # Cells between bars: every line has the same number of bars, and no feature has a value.
    bars = {line.count("|") for line in fit}
    valued = (line for line in fit if ":" in line)
    return any(re.search(r"[|\s][^\s|:]+:[+-]?[\d.]", line) for line in valued) or bars == {1} or len(bars) > 1


def _labelled_text(lines: Sequence[str], named: bool) -> list[Sniffed]:
    """Lines of a label and a text, split by a tab; or by a space, where few words begin or all are marked as labels.

    ``named``: the name of the file says so, and little evidence will do.
    """
    n = len(lines)
    tabs = [line for line in lines if "\t" in line]
    if len(tabs) >= max(1, 0.95 * n) or (named and 2 * len(tabs) >= n):
        parts = [line.split("\t") for line in tabs]
        first, last = Counter(part[0] for part in parts), Counter(part[-1] for part in parts)
        words = [0, 0] if named else [sum(len(part[i].split()) for part in parts) for i in (0, -1)]
        end = not named and len(last) < len(first) and words[1] < words[0]
        labels = last if end else first
        if _is_name_row(parts, labels):
            return []
        two = sum(1 for part in parts if len(part) == 2) >= 0.9 * len(parts)
        few = len(labels) <= max(3, min(_MOST_LABELS, n // 3))
        if named or (two and few and max(words) >= 3 * len(parts)):
            what = "a text, a tab and a label" if end else "a label, a tab and a text"
            label = "last" if end else "first"
            return [Sniffed("text", separator="\t", label=label, why=f"{what} a line: {_some(labels)}")]
        return []
    if sum(1 for line in lines if _LABEL_WORD.match(line)) >= 0.95 * n:
        return [Sniffed("text", separator=" ", label="first", why="__label__ before every text")]
    pairs = [line.split(" ", 1) for line in lines]
    if n >= 50 and all(len(pair) == 2 for pair in pairs):
        labels = Counter(pair[0] for pair in pairs)
        few = len(labels) <= min(_MOST_LABELS, n // 4) and sum(len(pair[1].split()) for pair in pairs) >= 3 * n
        if few and min(labels.values()) >= 1 and all(not is_number(label) for label in labels):
            return [Sniffed("text", separator=" ", label="first", why=f"few words begin all lines: {_some(labels)}")]
    return []


def _is_name_row(parts: Sequence[Sequence[str]], labels: Counter[str]) -> bool:
    """Whether the first row names the columns: with a name that columns have, or where no other label stands alone."""
    row = [cell.strip().lower() for cell in parts[0]]
    if any(cell in _COLUMN_NAMES for cell in row):
        return True
    label = next((cell for cell in parts[0] if cell in labels), None)
    lonely = [name for name, times in labels.items() if times == 1]
    return len(parts) > 20 and lonely == [label] and all(_NAME.fullmatch(cell) for cell in parts[0])


def _some(labels: Any) -> str:
    names = sorted(labels)
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")


def _is_columns(lines: Sequence[str]) -> bool:
    """Whether lines are tokens: as many words in each, at least two, and blank lines between groups of them."""
    body = lines[:-1] if lines and not lines[-1].strip() else lines
    filled = [line for line in body if line.strip()]
    if not 0 < len(body) - len(filled) <= len(body) / 3:
        return False
    width = len(filled[0].split())
    return width >= 2 and all(len(line.split()) == width for line in filled)


def csv_rows(text: str, separator: str, most: int) -> list[list[str]] | None:
    """Return the first rows with stripped cells; None if quotes are inconsistent. Empty lines are skipped."""
    if '"' in text or "\r" in text or separator == " ":
        rows = _raw_rows(text, separator, most)
    else:  # then the reader splits nowhere else
        lines = [line for line in text.split("\n", 2 * most)[: 2 * most] if separator in line or line.strip()][:most]
        long = max(map(len, lines), default=0) >= csv.field_size_limit()
        rows = (
            _raw_rows(text, separator, most) if long or len(lines) < most else [line.split(separator) for line in lines]
        )
    if rows is None or (text.isascii() and not any(space in text for space in _SPACES)):
        return rows
    return [[cell.strip() for cell in row] for row in rows]


def _raw_rows(text: str, separator: str, most: int) -> list[list[str]] | None:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        return list(islice((row for row in reader if row and (len(row) > 1 or row[0].strip())), most))
    except csv.Error:
        return None


def _quotes_end(lines: Sequence[str], separator: str) -> bool:
    """Whether a cell that begins with a quote ends with one; the last cell may go on beyond the lines."""
    if not any('"' in line for line in lines):
        return True
    try:
        for _ in csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True):
            pass
    except csv.Error as error:
        return "end of data" in str(error)
    return True


def _widths(lines: Sequence[str], text: str, separator: str) -> list[int] | None:
    """The number of cells of each row; None where quotes make no sense."""
    plain = '"' not in text and "\r" not in text and not (separator == " " and any(line[:1] == " " for line in lines))
    if plain and max(map(len, lines)) < csv.field_size_limit():  # then the reader splits nowhere else
        return [line.count(separator) + 1 for line in lines if separator in line or line.strip()]
    rows = _raw_rows(text, separator, _LINES)
    return None if rows is None else list(map(len, rows))


def _tables(lines: Sequence[str], source: Source) -> list[Sniffed]:
    """The separators that give rows of equal length, the likeliest first."""
    text = "\n".join(lines)
    tables: list[tuple[float, int, str]] = []
    for separator in (*_SEPARATORS, " "):
        if separator not in text or (separator == " " and any("  " in line for line in lines)):
            continue
        rows = _widths(lines, text, separator)
        alone = rows is not None and len(rows) == 1 and source.suffix not in (".csv", ".tsv", ".tab")
        if not rows or alone:
            continue
        width, times = Counter(rows).most_common(1)[0]
        # Commas in prose come at random; a table has as many in every line, but for one or two damaged ones.
        even = times / len(rows)
        least = {" ": 3}.get(separator, 2)
        if width >= least and (even >= 0.9 or (len(rows) <= 12 and times >= len(rows) - 1)):
            tables.append((even - (0.2 if separator == " " else 0), width, separator))
    if not tables:
        return []
    preferred = "\t" if source.suffix in (".tsv", ".tab") else None
    # Tabs and semicolons are rare inside cells, commas are not: 3,5;4,5 is two cells.
    order = {"\t": 2, ";": 2, "|": 1, ",": 1, " ": 0}
    tables.sort(key=lambda f: (f[2] == preferred, round(f[0], 2), order[f[2]], f[1]), reverse=True)
    names = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}
    return [
        Sniffed("csv", separator=separator, why=f"{width} cells between {names[separator]} in every line")
        for _, width, separator in tables
    ]


def has_header(rows: Sequence[Sequence[str]], missing: frozenset[str]) -> bool:
    """Return whether the first row names the columns.

    It does not if one of its cells is a number in a column of numbers, or occurs again in its column. It does if it has
    only distinct names above values of another kind.
    """
    if not rows:
        return True
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(set(first)) != len(first) and any(first.count(cell) > 1 for cell in first if cell.lower() not in missing):
        return False
    if not rest:
        return not any(map(is_number, first))
    for i, cell in enumerate(first):
        column = [row[i] for row in rest]
        values = [value for value in column if value.lower() not in missing]
        numbers = bool(values) and all(map(is_number, values))
        if numbers and (is_number(cell) or cell.lower() in missing) and cell:
            return False
        if cell and cell in set(column) and not is_number(cell):
            return False
    for i, cell in enumerate(first):
        values = [row[i] for row in rest if row[i].lower() not in missing]
        if cell and values and all(map(is_number, values)) and not is_number(cell):
            return True
    # No column of numbers gives it away: names are short, and not missing.
    return all(
        (not cell or len(cell.split()) <= 4) and not is_number(cell) and cell.lower() not in missing - {""}
        for cell in first
    )


def fail_unknown(source: Source) -> None:
    """Raise an error for a file without examples."""
    what = "expected examples with labels; found text without labels, columns or fields"
    hint = "see the guide on files; format= (--format) says what a line is"
    raise DataFileError(source.name, 1, what, hint)
