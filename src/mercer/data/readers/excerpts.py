"""Readable one-line excerpts of the examples of a file, for pages that show some of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

from mercer.data.readers.lines import decoded_lines
from mercer.data.readers.source import Source
from mercer.exceptions import DataFileError

__all__ = ["excerpts"]

_LONGEST = 400  # characters of an example
_MOST = 1 << 26  # characters of all of them


def excerpts(source: Source, form: Any, n: int) -> Callable[[int], str] | None:
    """Return a function from i to the excerpt of example i; None if lines and examples do not match.

    Parameters
    ----------
    source : Source
    form : FileFormat
        How the file is read: ``format``, ``layout``, ``separator`` and ``header``.
    n : int
        Number of examples read from the file.

    Returns
    -------
    function or None
        Takes the number of an example, from 0.
    """
    if not source.again or n * 40 > _MOST:
        return None
    texts: list[str] = []
    size = 0
    try:
        for text in _examples(source, form):
            texts.append(text[:_LONGEST])
            size += len(texts[-1])
            if len(texts) > n or size > _MOST:
                return None
    except (DataFileError, csv.Error):
        return None
    return texts.__getitem__ if len(texts) == n else None


def _examples(source: Source, form: Any) -> Iterator[str]:
    if form.layout is not None:
        for record in source.records(form.layout):
            yield _record(record)
        return
    with source.open() as stream:
        buffered = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream
        lines = decoded_lines(buffered, source.name)
        if form.format == "csv":
            yield from _rows(lines, form.separator or ",", form.header is not False)
        else:
            comments = form.format in ("svmlight", "vw")
            yield from (line for line in lines if line.strip() and not (comments and line.lstrip().startswith("#")))


def _rows(lines: Iterator[str], separator: str, header: bool) -> Iterator[str]:
    names: list[str] | None = None
    for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator):
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if header and names is None:
            names = [cell.strip() for cell in row]
            continue
        cells = [cell.strip() for cell in row]
        yield _record(dict(zip(names, cells, strict=False))) if names else f"{separator} ".join(cells)


def _record(record: dict[str, Any]) -> str:
    """The fields of a record; a text that is alone with its label without its name."""
    shown = {name: value for name, value in record.items() if value not in (None, "")}
    if set(shown) == {"text", "label"}:
        return str(shown["text"])
    return ", ".join(f"{name}={value}" for name, value in shown.items())
