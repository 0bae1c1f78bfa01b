"""Readers of rows with label sets: Mulan's ARFF, svmlight with several labels, csv with a column of labels.

svmlight    sky,sea 1:0.5 7:2        labels before the features, with commas between them; features count from 1
csv         a header; one column of label sets (["sea", "sky"], or sea;sky, or sea|sky), the others are numbers
JSON lines  a field of label sets, a list or as in csv, the others are numbers; so Parquet and Arrow
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.data.readers.arff import MultilabelTable, read_mulan
from mercer.data.readers.lines import FilePath, read_lines
from mercer.data.readers.sniff import sniff
from mercer.data.readers.source import Source
from mercer.data.readers.table import read_records, row_gaps
from mercer.exceptions import DataFileError

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["read_multilabel"]

_CSV = {".csv": ",", ".tsv": "\t"}
_MOST_FEATURES = 1 << 23
_PAIRS = re.compile(r"(^|\s)\d+:[+-]?[\d.]", re.ASCII)


def read_multilabel(
    path: FilePath, labels: str | os.PathLike[str] | None = None, *, n_features: int | None = None
) -> MultilabelTable:
    """Read rows with label sets from a file, plain or compressed; its content determines the format.

    Parameters
    ----------
    path : path
        ARFF of Mulan or MEKA; a table with a header (csv of any separator, JSON lines, Parquet, Arrow); svmlight:
        ``a,b 1:0.5 7:2``.
    labels : str or path, optional
        For ARFF, the XML file that names the labels; by default the file of the same name next to it, without
        ``-train`` or ``-test``, else the relation (MEKA's ``-C``). For a table, the column of label sets; by default
        ``labels``.
    n_features : int, optional
        Number of features of an svmlight file; by default the highest in the file.

    Returns
    -------
    table : MultilabelTable
        X, Y (a CSR matrix of 0 and 1), feature_names and label_names.

    Raises
    ------
    DataFileError
        If the file is malformed: names the file and the line.

    Examples
    --------
    >>> from mercer.data import read_multilabel
    >>> table = read_multilabel("photos.csv", labels="tags")  # doctest: +SKIP
    """
    name = os.fspath(path)
    source = Source(name)
    format, separator = _format_of(source)
    if format == "arff":
        return read_mulan(path, _xml_of(name) if labels is None else labels)
    column = "labels" if labels is None else os.fspath(labels)
    if format == "csv":
        return _read_csv(name, column, separator)
    if format == "jsonl":
        return _read_records(name, column)
    return _read_svmlight(name, n_features)


def gaps(path: FilePath, header: str) -> list[tuple[int, str]]:
    """Lines of a csv, of JSON lines or svmlight that hold no row, each with the number of rows before it: ``header``
    for the names of columns, blank lines and comments as they are. ARFF has none."""
    name = os.fspath(path)
    format, separator = _format_of(Source(name))
    if format in ("csv", "jsonl"):
        return row_gaps(path, header, separator=separator if format == "csv" else None)
    lines: list[tuple[int, str]] = []
    n = 0
    for line in read_lines(name) if format == "svmlight" else ():
        if line.split("#", 1)[0].strip():
            n += 1
        else:
            lines.append((n, line))
    return lines


def _format_of(source: Source) -> tuple[str, str]:
    """What the file is, by its content, and the separator of a csv."""
    if source.suffix == ".arff":
        return "arff", ""
    layout = source.magic_layout() if source.again else None
    if layout is not None:
        return "jsonl", ""
    if source.again:
        try:
            head = source.head()[0].decode("utf-8", "replace")
        except DataFileError:
            head = ""
        first = (line.strip().lower() for line in head.splitlines())
        if next((line for line in first if line and not line.startswith("%")), "").startswith("@relation"):
            return "arff", ""
        sniffed = sniff(source)
        if sniffed.format == "jsonl":
            return "jsonl", ""
        if sniffed.format == "csv" and (source.suffix in _CSV or not _PAIRS.search(head)):
            return "csv", sniffed.separator or ","
    return ("csv", _CSV[source.suffix]) if source.suffix in _CSV else ("svmlight", "")


def _xml_of(name: str) -> str | None:
    """Mulan's list of labels beside the file; None where there is none, and the file itself must say (MEKA)."""
    stem = name.removesuffix(".gz").removesuffix(".arff")
    short = stem.removesuffix("-sparse").removesuffix("-train").removesuffix("-test")
    for candidate in (f"{stem}.xml", f"{short}.xml"):
        if os.path.isfile(candidate):
            return candidate
    return None


def _table(
    name: str, X: np.ndarray | sp.csr_matrix, sets: list[list[str]], feature_names: list[str]
) -> MultilabelTable:
    import scipy.sparse as sp

    if not sets:
        raise DataFileError(name, 1, "the file has no rows")
    known = sorted({label for row in sets for label in row}, key=lambda label: (not label.isdigit(), len(label), label))
    place = {label: i for i, label in enumerate(known)}
    indices = [sorted({place[label] for label in row}) for row in sets]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in indices])])
    flat = np.array([i for row in indices for i in row], np.int64)
    # 64 bits: scikit-learn's LabelBinarizer overflows with columns of eight bits beyond 127 labels.
    Y = sp.csr_matrix((np.ones(len(flat), np.int64), flat, starts), shape=(len(sets), len(known)))
    return MultilabelTable(X, Y, feature_names, known)


# ---------------------------------------------------------------------------------------------------- svmlight


def _read_svmlight(name: str, n_features: int | None) -> MultilabelTable:
    import scipy.sparse as sp

    sets: list[list[str]] = []
    indices: list[int] = []
    values: list[float] = []
    starts, largest = [0], 0
    for number, line in enumerate(read_lines(name), 1):
        line = line.split("#", 1)[0].rstrip()
        if not line.strip():
            continue
        parts = line.split()
        first = not line[0].isspace() and ":" not in parts[0]
        sets.append([label for label in parts[0].split(",") if label] if first else [])
        before = 0
        for part in parts[1:] if first else parts:
            place, value = _pair(name, number, part)
            if place <= before:
                raise DataFileError(name, number, f"feature {place} after feature {before}: they must ascend from 1")
            before = place
            indices.append(place - 1)
            values.append(value)
        largest = max(largest, before)
        if n_features is not None and largest > n_features:
            raise DataFileError(name, number, f"feature {largest}, but there are {n_features}")
        starts.append(len(indices))
    width = largest if n_features is None else n_features
    data = np.array(values, np.float64), np.array(indices, np.int64), np.array(starts, np.int64)
    X = sp.csr_matrix(data, shape=(len(sets), width))
    return _table(name, X, sets, [str(j + 1) for j in range(width)])


def _pair(name: str, number: int, part: str) -> tuple[int, float]:
    place, colon, text = part.partition(":")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not colon or not place.isascii() or not place.isdigit() or not np.isfinite(value):
        raise DataFileError(name, number, f"expected FEATURE:VALUE, found {part[:40]!r}")
    if len(place) > 9 or int(place) > _MOST_FEATURES:  # every feature up to the largest has a name
        raise DataFileError(name, number, f"feature {place[:40]} is out of range: at most {_MOST_FEATURES:,}")
    return int(place), value


# ---------------------------------------------------------------------------------------------------- csv


def _read_csv(name: str, column: str, delimiter: str) -> MultilabelTable:
    rows = _csv_rows(name, delimiter)
    number, header = next(rows, (1, []))
    if not header:
        raise DataFileError(name, 1, "the file is empty")
    if header.count(column) != 1:
        shown = ", ".join(repr(field) for field in header[:8])
        raise DataFileError(name, number, f"expected one column {column!r} of label sets, found {shown}")
    at = header.index(column)
    features = [field for i, field in enumerate(header) if i != at]
    sets: list[list[str]] = []
    numbers: list[list[float]] = []
    for number, row in rows:
        if len(row) != len(header):
            raise DataFileError(name, number, f"expected {len(header)} columns as in the header, found {len(row)}")
        sets.append(_set_of(name, number, row[at]))
        numbers.append([_number(name, number, field, row[i]) for i, field in enumerate(header) if i != at])
    X = np.array(numbers, np.float64).reshape(len(sets), len(features))
    return _table(name, X, sets, features)


def _read_records(name: str, column: str) -> MultilabelTable:
    """Records of JSON, Parquet or Arrow: a field of label sets, all others numbers."""
    records = read_records(name)
    fields = list(dict.fromkeys(field for record in records for field in record))
    if column not in fields:
        shown = ", ".join(repr(field) for field in fields[:8])
        raise DataFileError(name, 1, f"expected a field {column!r} of label sets, found {shown}")
    features = [field for field in fields if field != column]
    sets: list[list[str]] = []
    numbers: list[list[float]] = []
    for number, record in enumerate(records, 1):
        cell: Any = record.get(column)
        if isinstance(cell, list | tuple | np.ndarray):
            sets.append([str(label) for label in cell])
        else:
            sets.append(_set_of(name, number, "" if cell is None else str(cell)))
        numbers.append([_number(name, number, field, str(record.get(field, ""))) for field in features])
    return _table(name, np.array(numbers, np.float64).reshape(len(sets), len(features)), sets, features)


def _csv_rows(name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(read_lines(name), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise DataFileError(name, reader.line_num, f"no valid csv: {error}") from error


def _set_of(name: str, number: int, text: str) -> list[str]:
    text = text.strip()
    if text.startswith("["):
        try:
            labels = json.loads(text.replace("'", '"') if '"' not in text else text)
        except (ValueError, RecursionError):
            labels = None
        if not isinstance(labels, list) or not all(isinstance(label, (str, int)) for label in labels):
            raise DataFileError(name, number, f"expected a list of labels, found {text[:40]!r}")
        return [str(label) for label in labels]
    separator = next((s for s in ";|," if s in text), None)
    parts = text.split(separator) if separator else [text]
    return [part.strip() for part in parts if part.strip()]


def _number(name: str, number: int, field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise DataFileError(
            name, number, f"{text[:40]!r} in column {field!r} is no finite number; features must be numbers"
        )
    return value
