"""Data frames for hashed learners: columns get roles as in files, and the same reader hashes them.

A frame, a csv and a Parquet file with the same rows give the same features.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.data.readers.roles import SAMPLE_ROWS, Column, Table
from mercer.online.blocks import make_reader
from mercer.online.formats import ResolvedFormat, announce, table_roles
from mercer.online.inputs import Records, table_columns

__all__ = ["frame_format", "frame_records", "frame_rows", "split_label"]

_ROWS = 4096
"""Number of rows converted to bytes at a time."""


def split_label(X: Any, y: Any) -> tuple[Any, Any]:
    """Return table and labels if ``y`` is the name of a column; otherwise return both unchanged."""
    if not isinstance(y, str):
        return X, y
    columns = table_columns(X)
    if y not in columns:
        raise ValueError(f"y names the column {y!r}; the columns of X are {', '.join(map(repr, columns))}")
    labels = columns.pop(y)
    lacking = sum(label is None for label in labels)
    if lacking:
        raise ValueError(f"the column {y!r} lacks {lacking} of its values")
    if not columns:
        raise ValueError(f"X has no column beside {y!r}")
    return columns, np.array(labels)


def frame_format(model: Any, columns: dict[str, list[Any]]) -> ResolvedFormat:
    """Return the roles of the columns of a frame."""
    n = len(next(iter(columns.values()), ()))
    step = max(1, n // SAMPLE_ROWS)  # from all over: a frame is in memory
    table = Table(tuple(Column.of(name, cells[::step]) for name, cells in columns.items()), n)
    form, surprises, _ = table_roles(ResolvedFormat("jsonl", label=False), table, "X", model._numeric_targets)
    announce(model, None, surprises, [])
    return form


def frame_rows(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Return the rows of a frame, each by the names of its columns."""
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def frame_records(model: Any, columns: dict[str, list[Any]], form: ResolvedFormat, keep: bool) -> Records:
    """Return the rows of a frame as hashed examples; with ``keep``, the model stores format and categories."""
    lacking = [name for name in getattr(model, "feature_names_in_", ()) if name not in columns] if not keep else []
    lacking = [name for name in lacking if name not in form.ignored]
    if lacking:
        raise ValueError(f"X has no column {lacking[0]!r}, which was there in training")
    known = None if keep else getattr(model, "_categories", None)
    form = replace(form, format="jsonl", label=False)
    reader = make_reader(model, form, None, "raise", None, False, gather=keep, known=known)
    # The first object says which fields there are: one with all of them goes before, and is left out again.
    blocks = [_fed(reader, [_line(dict.fromkeys(columns, None))], False)]
    lines: list[bytes] = []
    for row in frame_rows(columns):
        lines.append(_line(row))
        if len(lines) == _ROWS:
            blocks.append(_fed(reader, lines, False))
            lines = []
    blocks.append(_fed(reader, lines, True))
    records = Records.of([block for block in blocks if len(block)])
    if keep:
        model._categories = reader.categories
        model.file_format_ = replace(form.resolved(reader.fields), label=False)
    return records.part(np.arange(1, len(records)))


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _fed(reader: Any, lines: list[bytes], last: bool) -> Any:
    block = reader.feed(b"".join(line + b"\n" for line in lines), last)
    if reader.error is not None:
        line, what = reader.error
        raise ValueError(f"row {line - 2} of X: {what}")
    return block
