"""Tables in Weka's ARFF format, dense and sparse, and multi-label sets in Mulan's variant of it.

A header names the attributes (``@attribute NAME numeric`` or ``@attribute NAME {value, value}``), and a row after
``@data`` has a value for each of them, or only the values that differ from 0 and from the first nominal value: ``{3 1,
17 2.5}``. Mulan adds an XML file that lists which attributes are labels.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from mercer.data.readers.lines import FilePath, read_lines
from mercer.exceptions import DataFileError

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["ArffAttribute", "ArffTable", "MultilabelTable", "read_arff", "read_mulan"]

_NUMERIC = ("numeric", "real", "integer")
_YES = ("1", "yes", "true", "on", "t", "y")
_COUNTED = re.compile(r"-C\s+(-?\d{1,9})\b")  # labels, in the name of MEKA's relations
_NAME = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{'"][^\s{]*)\s*(.*)""", re.IGNORECASE)
_TOKEN = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,'"]*?)\s*(?:,|$)""")


class ArffAttribute(NamedTuple):
    """A column of an ARFF file: its name, and its values if it is nominal (None for numbers)."""

    name: str
    values: tuple[str, ...] | None


class ArffTable(NamedTuple):
    """The content of an ARFF file: the name of the relation, the attributes, and the rows.

    A nominal value is the index of its name among the values of its attribute; a missing value (``?``) is NaN.
    """

    relation: str
    attributes: list[ArffAttribute]
    data: np.ndarray | sp.csr_matrix


class MultilabelTable(NamedTuple):
    """Rows of features and of labels, with their names."""

    X: np.ndarray | sp.csr_matrix
    Y: sp.csr_matrix
    feature_names: list[str]
    label_names: list[str]

    def label_sets(self) -> list[list[str]]:
        """Return the labels of each row by name."""
        Y = self.Y.sorted_indices()
        starts = Y.indptr.tolist()
        flat = [self.label_names[i] for i in Y.indices.tolist()]
        return [flat[a:b] for a, b in pairwise(starts)]


def read_arff(path: FilePath) -> ArffTable:
    """Read a table in Weka's ARFF format, dense or sparse.

    Parameters
    ----------
    path : path
        The file, plain or compressed (``.gz``). Attributes are numeric or nominal; strings and dates raise an error.

    Returns
    -------
    table : ArffTable

    Raises
    ------
    DataFileError
        If the file is malformed: names the file and the line.

    Examples
    --------
    >>> from mercer.data import read_arff
    >>> table = read_arff("emotions-train.arff")  # doctest: +SKIP
    """
    import scipy.sparse as sp

    name = os.fspath(path)
    lines = enumerate(read_lines(path), 1)
    relation, attributes, number = _read_header(name, lines)
    codes = [None if a.values is None else {value: float(i) for i, value in enumerate(a.values)} for a in attributes]
    rows: list[np.ndarray] = []
    indices: list[list[int]] = []
    values: list[list[float]] = []
    for number, line in lines:
        line = line.strip()
        if not line or line[0] == "%":
            continue
        if line[0] == "{":
            if rows:
                raise DataFileError(name, number, "a sparse row among dense ones")
            places, numbers = _read_sparse_row(name, number, line, codes, attributes)
            indices.append(places)
            values.append(numbers)
        else:
            if indices:
                raise DataFileError(name, number, "a dense row among sparse ones")
            rows.append(_read_dense_row(name, number, line, codes, attributes))
    if not rows and not indices:
        raise DataFileError(name, number, "no rows after @data")
    if rows:
        return ArffTable(relation, attributes, np.vstack(rows))
    starts = np.concatenate([[0], np.cumsum([len(row) for row in indices])])
    flat = np.array([i for row in indices for i in row], np.int64)
    data = np.array([v for row in values for v in row], np.float64)
    return ArffTable(relation, attributes, sp.csr_matrix((data, flat, starts), shape=(len(indices), len(attributes))))


def read_mulan(
    path: FilePath,
    labels: FilePath | Iterable[str] | None = None,
    *,
    ignore: Iterable[str] = (),
    sparse: bool | None = None,
) -> MultilabelTable:
    """Read a multi-label data set in Mulan's or MEKA's format: an ARFF file, and the names of its labels.

    Nominal features with two values become one column of 0 and 1; with more values, one column per value
    (``name=value``).

    Parameters
    ----------
    path : path
        The ARFF file, plain or compressed.
    labels : path or list of str, optional
        Mulan's XML file, or the names of the attributes that are labels. None: the relation gives the number of label
        attributes, as in MEKA (``@relation 'name: -C 6'``): the first ones, or for a negative number the last ones.
    ignore : list of str
        Attributes to ignore, such as row identifiers.
    sparse : bool, optional
        Whether X is a CSR matrix; by default as in the file.

    Returns
    -------
    table : MultilabelTable
        X, Y (a CSR matrix of 0 and 1), feature_names and label_names.

    Raises
    ------
    DataFileError
        If a file is malformed, or a label is not an attribute with two values.

    Examples
    --------
    >>> from mercer.data import read_mulan
    >>> train = read_mulan("scene-train.arff", "scene.xml")  # doctest: +SKIP
    >>> train.X.shape, train.label_names[:2]  # doctest: +SKIP
    ((1211, 294), ['Beach', 'Sunset'])
    """
    import scipy.sparse as sp

    name = os.fspath(path)
    names = _label_names(labels) if isinstance(labels, (str, os.PathLike)) else [str(label) for label in labels or ()]
    table = read_arff(path)
    if labels is None:
        names = _counted_labels(name, table)
    place = {attribute.name: i for i, attribute in enumerate(table.attributes)}
    for label in names:
        if label not in place:
            raise DataFileError(name, 1, f"the label {label!r} is no attribute of the file")
    if not names:
        raise DataFileError(name, 1, "no attribute is a label")
    left_out = {*names, *ignore}
    columns = sp.csc_matrix(table.data) if sp.issparse(table.data) else table.data
    made = [_feature_columns(columns, i, a) for i, a in enumerate(table.attributes) if a.name not in left_out]
    feature_names = [column for part, _ in made for column in part]
    as_sparse = sp.issparse(table.data) if sparse is None else sparse
    blocks: list[Any] = [block for _, block in made]
    if as_sparse:
        X = sp.hstack(blocks, format="csr") if blocks else sp.csr_matrix((table.data.shape[0], 0))
        X.sum_duplicates()
    else:
        dense = [block.toarray() if sp.issparse(block) else block for block in blocks]
        X = np.hstack(dense) if dense else np.zeros((table.data.shape[0], 0))
    Y = sp.hstack([_label_column(name, columns, place[label], table) for label in names], format="csr")
    Y.eliminate_zeros()
    return MultilabelTable(X, Y.astype(np.int64), feature_names, names)


def _counted_labels(name: str, table: ArffTable) -> list[str]:
    """MEKA's labels: so many of the first attributes, or of the last ones where the number is negative."""
    match = _COUNTED.search(table.relation)
    if match is None:
        raise DataFileError(name, 1, "needs a list of labels: give labels, or a relation with -C NUMBER")
    count, attributes = int(match[1]), [attribute.name for attribute in table.attributes]
    if not 0 < abs(count) <= len(attributes):
        raise DataFileError(name, 1, f"-C {count} of the relation does not fit {len(attributes)} attributes")
    return attributes[:count] if count > 0 else attributes[count:]


# ---------------------------------------------------------------------------------------------------- the header


def _read_header(name: str, lines: Iterator[tuple[int, str]]) -> tuple[str, list[ArffAttribute], int]:
    relation, attributes, seen, number = "", [], set(), 0
    for number, line in lines:
        line = line.strip()
        if not line or line[0] == "%":
            continue
        word = line.split(None, 1)[0].lower()
        if word == "@relation":
            relation = _unquoted(line[len(word) :].strip())
        elif word == "@attribute":
            attribute = _read_attribute(name, number, line)
            if attribute.name in seen:
                raise DataFileError(name, number, f"a second attribute {attribute.name!r}")
            seen.add(attribute.name)
            attributes.append(attribute)
        elif word == "@data":
            if not attributes:
                raise DataFileError(name, number, "@data before any @attribute")
            return relation, attributes, number
        else:
            raise DataFileError(name, number, f"expected @relation, @attribute or @data, found {line[:40]!r}")
    raise DataFileError(name, number or 1, "the file ends before @data" if number else "the file is empty")


def _read_attribute(name: str, number: int, line: str) -> ArffAttribute:
    match = _NAME.fullmatch(line)
    if match is None:
        raise DataFileError(name, number, f"expected '@attribute NAME TYPE', found {line[:60]!r}")
    label, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise DataFileError(name, number, f"the values of {label!r} do not end with a brace")
        values = _tokens(kind[1:-1])
        if values is None or not values or "" in values:
            raise DataFileError(name, number, f"the values of {label!r} are malformed: {kind[:60]!r}")
        if len(set(values)) < len(values):
            raise DataFileError(name, number, f"{label!r} lists a value twice")
        return ArffAttribute(label, tuple(values))
    if kind.lower() not in _NUMERIC:
        raise DataFileError(name, number, f"{label!r} is of the type {kind!r}; numbers and nominal values are read")
    return ArffAttribute(label, None)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _tokens(text: str) -> list[str] | None:
    """Values between commas, which quotes may hold; None where quotes do not end."""
    if "'" not in text and '"' not in text:
        return [part.strip() for part in text.split(",")]
    tokens, at = [], 0
    while at <= len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(_unquoted(match[1]))
        if match.end() == len(text) and not text.endswith(","):
            return tokens
        at = match.end()
        if at == len(text):
            tokens.append("")
            return tokens
    return tokens


# ---------------------------------------------------------------------------------------------------- rows


def _read_dense_row(
    name: str, number: int, line: str, codes: list[dict[str, float] | None], attributes: list[ArffAttribute]
) -> np.ndarray:
    tokens = _tokens(line)
    if tokens is None:
        raise DataFileError(name, number, "a quote is not closed")
    if len(tokens) != len(codes):
        raise DataFileError(name, number, f"expected {len(codes)} values, found {len(tokens)}")
    try:
        row = [float(t) if c is None else c[t] for t, c in zip(tokens, codes, strict=True)]
    except (ValueError, KeyError):
        row = [_value(name, number, t, c, a) for t, c, a in zip(tokens, codes, attributes, strict=True)]
    return _finite(name, number, np.array(row), tokens, attributes)


def _read_sparse_row(
    name: str, number: int, line: str, codes: list[dict[str, float] | None], attributes: list[ArffAttribute]
) -> tuple[list[int], list[float]]:
    if not line.endswith("}"):
        raise DataFileError(name, number, "a sparse row must end with a brace")
    inside = line[1:-1].strip()
    places: list[int] = []
    values: list[float] = []
    before = -1
    for part in _sparse_parts(inside):
        index, _, text = part.strip().partition(" ")
        if not index.isascii() or not index.isdigit() or int(index) >= len(codes):
            raise DataFileError(
                name, number, f"expected an attribute 0 .. {len(codes) - 1} and a value, found {part!r}"
            )
        place = int(index)
        if place <= before:
            raise DataFileError(name, number, f"attribute {place} after attribute {before}: they must ascend")
        before = place
        value = _value(name, number, _unquoted(text.strip()), codes[place], attributes[place])
        if value != 0:
            places.append(place)
            values.append(value)
    return places, values


def _sparse_parts(inside: str) -> list[str]:
    if not inside:
        return []
    if "'" not in inside and '"' not in inside:
        return inside.split(",")
    return re.findall(r"""(?:[^,'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")+""", inside)


def _value(name: str, number: int, text: str, codes: dict[str, float] | None, attribute: ArffAttribute) -> float:
    if text == "?":
        return float("nan")
    if codes is not None:
        if text not in codes:
            raise DataFileError(name, number, f"{text!r} is no value of the attribute {attribute.name!r}")
        return codes[text]
    try:
        value = float(text)
    except ValueError:
        raise DataFileError(name, number, f"{text!r} of {attribute.name!r} is no number") from None
    if not np.isfinite(value):
        raise DataFileError(name, number, f"{text!r} of {attribute.name!r} is not finite; ? is a missing value")
    return value


def _finite(name: str, number: int, row: np.ndarray, tokens: list[str], attributes: list[ArffAttribute]) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(row))
    for at in bad:
        if tokens[at] != "?":
            raise DataFileError(
                name, number, f"{tokens[at]!r} of {attributes[at].name!r} is not finite; ? is a missing value"
            )
    return row


# ---------------------------------------------------------------------------------------------------- Mulan


def _label_names(path: FilePath) -> list[str]:
    name = os.fspath(path)
    text = "\n".join(read_lines(path))
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataFileError(name, 1, "a list of labels must not declare a document type or entities")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise DataFileError(name, error.position[0], f"no valid XML: {error}") from error
    names = [node.get("name") for node in root.iter() if node.tag.rsplit("}", 1)[-1] == "label"]
    if not names or None in names:
        raise DataFileError(name, 1, 'expected elements <label name="…">, one for each label')
    if len(set(names)) < len(names):
        raise DataFileError(name, 1, "a label is listed twice")
    return [str(label) for label in names]


def _feature_columns(data: np.ndarray | sp.csc_matrix, i: int, attribute: ArffAttribute) -> tuple[list[str], object]:
    """Names of the columns that an attribute becomes, and their values."""
    import scipy.sparse as sp

    column: Any = data[:, [i]]
    if attribute.values is None:
        return [attribute.name], column
    if len(attribute.values) <= 2:
        on = next((k for k, value in enumerate(attribute.values) if value.lower() in _YES), len(attribute.values) - 1)
        if on == 1:
            return [attribute.name], column
        flipped = 1.0 - (column.toarray() if sp.issparse(column) else column)
        return [attribute.name], flipped
    codes = column.toarray() if sp.issparse(column) else column
    block = (codes == np.arange(len(attribute.values))).astype(np.float64)
    block[np.isnan(codes[:, 0])] = np.nan
    return [f"{attribute.name}={value}" for value in attribute.values], block


def _label_column(name: str, data: np.ndarray | sp.csc_matrix, i: int, table: ArffTable) -> sp.csr_matrix:
    import scipy.sparse as sp

    attribute = table.attributes[i]
    column = data[:, [i]]
    values = column.data if sp.issparse(column) else column
    if np.isnan(values).any():
        raise DataFileError(name, 1, f"the label {attribute.name!r} has missing values")
    if attribute.values is None:
        if not np.isin(values, (0.0, 1.0)).all():
            raise DataFileError(name, 1, f"the label {attribute.name!r} has values other than 0 and 1")
        return sp.csr_matrix(column)
    if len(attribute.values) > 2:
        raise DataFileError(name, 1, f"the label {attribute.name!r} has {len(attribute.values)} values, not two")
    _, block = _feature_columns(data, i, attribute)
    return sp.csr_matrix(block)
