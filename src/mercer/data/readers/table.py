"""Tables in memory as columns of text: csv, JSON lines, JSON, Parquet or Arrow, detected by content."""

from __future__ import annotations

import csv
import io
from typing import Any

from mercer.data.readers.lines import decoded_lines
from mercer.data.readers.roles import records_of_lines
from mercer.data.readers.sniff import sniff
from mercer.data.readers.source import FilePath, Source, read_some
from mercer.exceptions import DataFileError

__all__ = ["read_columns", "read_records"]


def read_records(path: FilePath, *, encoding: str | None = None) -> list[dict[str, Any]]:
    """Read the records of JSON lines, a JSON array, Parquet, Arrow, csv or a folder, with unchanged values.

    List fields stay lists: a multi-label estimator takes ``[record["tags"] for record in read_records(path)]`` as y.

    Parameters
    ----------
    path : path, "-" or binary file
    encoding : str, optional
        Character encoding; see `mercer.online.FileFormat`.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> import io
    >>> from mercer.data import read_records
    >>> read_records(io.BytesIO(b'{"text": "a b", "tags": ["x", "y"]}\\n{"text": "c", "tags": []}\\n'))
    [{'text': 'a b', 'tags': ['x', 'y']}, {'text': 'c', 'tags': []}]
    """
    source = Source(path, encoding)
    sniffed = sniff(source)
    if sniffed.layout is not None:
        return list(source.records(sniffed.layout))
    if sniffed.format == "jsonl":
        data = _whole(source)
        records = records_of_lines(data, True, most=None, name=source.name)
        return records
    columns = _columns(source, None)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_columns(path: FilePath, *, separator: str | None = None, encoding: str | None = None) -> dict[str, list[str]]:
    """Read a table with named columns as lists of text; cells are stripped, missing ones are empty.

    Parameters
    ----------
    path : path, "-" or binary file
        csv with a header, JSON lines, a JSON array, Parquet or Arrow; plain or compressed.
    separator : str, optional
        Separator of csv cells; by default the one that splits all lines consistently.
    encoding : str, optional
        Of the characters; see `mercer.online.FileFormat`.

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> import io
    >>> from mercer.data import read_columns
    >>> read_columns(io.BytesIO(b"age; city\\n30; Rome\\n50; Oslo\\n"))
    {'age': ['30', '50'], 'city': ['Rome', 'Oslo']}
    """
    return _columns(Source(path, encoding), separator)


def _columns(source: Source, separator: str | None) -> dict[str, list[str]]:
    sniffed = sniff(source)
    if separator is None and (sniffed.layout is not None or sniffed.format == "jsonl"):
        records = (
            list(source.records(sniffed.layout))
            if sniffed.layout
            else records_of_lines(_whole(source), True, None, source.name)
        )
        names = list(dict.fromkeys(name for record in records for name in record))
        if not names:
            raise DataFileError(source.name, 1, "no rows in this file")
        return {name: [_text(record.get(name)) for record in records] for name in names}
    if separator is None:
        named = "\t" if source.suffix in (".tsv", ".tab") else ","
        separator = sniffed.separator if sniffed.format == "csv" else named
    return _csv_columns(source, separator or ",")


def _csv_columns(source: Source, separator: str) -> dict[str, list[str]]:
    with source.open() as stream:
        buffered = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
        lines = (f"{line}\n" for line in decoded_lines(buffered, source.name))
        reader = csv.reader(lines, delimiter=separator, strict=True)
        try:
            header = [cell.strip() for cell in next(reader, [])]
            if not header or len(set(header)) != len(header) or "" in header:
                raise DataFileError(source.name, 1, "expected a header of different names in the first line")
            columns: dict[str, list[str]] = {column: [] for column in header}
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    what = f"expected {len(header)} columns as in the header, found {len(row)}"
                    raise DataFileError(source.name, reader.line_num, what)
                for column, cell in zip(header, row, strict=True):
                    columns[column].append(cell.strip())
        except csv.Error as error:
            raise DataFileError(source.name, reader.line_num, str(error)) from error
    if not columns[header[0]]:
        raise DataFileError(source.name, 1, "no rows after the header")
    return columns


def row_gaps(path: FilePath, header: str, *, separator: str | None = None) -> list[tuple[int, str]]:
    """Lines of a csv or of JSON lines that hold no row, each with the number of rows before it: ``header`` for the
    names of the columns, blank lines as they are. What can be read only once, and what has no lines, has none."""
    source = Source(path)
    if not source.again:
        return []
    sniffed = sniff(source)
    if sniffed.layout is not None:
        return []
    gaps: list[tuple[int, str]] = []
    n = 0
    with source.open() as stream:
        buffered = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
        lines = decoded_lines(buffered, source.name)
        if sniffed.format == "jsonl" and separator is None:
            for line in lines:
                if line.strip():
                    n += 1
                else:
                    gaps.append((n, line))
            return gaps
        named = False
        for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator or sniffed.separator or ","):
            if not row:
                gaps.append((n, ""))
            elif not named:
                named = True
                gaps.append((n, header))
            else:
                n += 1
    return gaps


def _whole(source: Source) -> bytes:
    parts = []
    with source.open() as stream:
        view = memoryview(bytearray(1 << 20))
        while n := read_some(stream, view):
            parts.append(bytes(view[:n]))
    return b"".join(parts)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return value.strip() if isinstance(value, str) else str(value)
