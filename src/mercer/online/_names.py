"""Names of hashed features: a bounded table, so that a model can say which words and fields its weights belong to.

A hashed model knows hashes alone. Names are noted for a sample of the training data, and those with the largest
weights are kept; what a kept name weighs is read from the model when it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.values import pack_strings, unpack_strings
from mercer.data import TextBuffer
from mercer.data.readers.roles import Table
from mercer.data.readers.source import Source
from mercer.online._format import FileFormat, read_table
from mercer.online._inputs import text_features

__all__ = ["NAMED_BYTES", "NameTable", "document_sample", "field_names", "names_of"]

NAMED_BYTES = 1 << 20
"""Bytes of documents whose names are noted in a fit, spread evenly over all: some tens of milliseconds."""
_LONGEST = 200
"""Characters of a name that is worth keeping."""


def names_of(texts: Any, hasher: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The different features of documents: names, 64-bit hashes and counts."""
    buffer = TextBuffer(texts)
    names, hashes, counts = _core.text.text_names(buffer.data, buffer.offsets, **text_features(hasher)._settings())
    return list(names), np.asarray(hashes, np.uint64), np.asarray(counts)


def document_sample(texts: Sequence[Any]) -> list[Any]:
    """Documents from all over a collection, of `NAMED_BYTES` together."""
    n = len(texts)
    probe = [len(texts[i]) for i in range(0, n, max(1, n // 64))]
    wanted = int(NAMED_BYTES / max(1.0, float(np.mean(probe)))) if probe else 0
    return [texts[i] for i in range(0, n, max(1, -(-n // max(1, wanted))))]


_MOST_VALUES = 300
"""Categories of a column that are named, the most frequent ones."""


def field_names(model: Any, source: Source, form: FileFormat) -> tuple[list[str], np.ndarray]:
    """Names and hashes of the features in the first bytes of a file: words, ``column=category``, ``column≈knot``."""
    if form.format == "text":
        data, whole = source.head()
        lines = data[:NAMED_BYTES].decode("utf-8", "replace").split("\n")
        place = -1 if form.label == "last" else 0
        cut = form.separator or "\t"
        texts = [
            line if form.label is False else (line.rpartition(cut)[0] if place else line.partition(cut)[2])
            for line in (lines if whole else lines[:-1])
        ]
        names, hashes, _ = names_of(document_sample(texts), model.hasher)
        return names, hashes
    if form.format not in ("csv", "jsonl"):
        return [], np.zeros(0, np.uint64)
    table = read_table(form, source)
    return ([], np.zeros(0, np.uint64)) if table is None else table_names(model, form, table)


def table_names(model: Any, form: FileFormat, table: Table) -> tuple[list[str], np.ndarray]:
    """As `field_names`, of a table that was read."""
    texts = [str(name) for name in form.text or ()]
    used = [c for c in table.columns if c.name not in (form.label, *texts, *form.ignored)]
    if form.columns != "rest":
        used = [c for c in used if c.name in (form.columns or ())]
    knots = {name: values for name, _, _, values in form.numbers}
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    for column in used:
        if column.name in knots:
            some: list[tuple[str, Any]] = [(f"{column.name}≈{value:g}", value) for value in knots[column.name]]
        elif column.role == "list":
            continue
        elif column.role == "number" and column.name not in form.categorical:
            some = [(column.name, 1.0)]
        else:
            some = [(f"{column.name}={value}", value) for value, _ in column.classes()[:_MOST_VALUES]]
        names += [name for name, _ in some]
        rows += [{column.name: value} for _, value in some]
    hashes = np.zeros(len(rows), np.uint64)
    if rows:
        # One feature a row, hashed by the reader itself; of a number at a knot the last one is the knot's.
        options = {**form.options(), "texts": [], "columns": None, "rest": True, "label": None, "label_place": "none"}
        options = {name: value for name, value in options.items() if name not in ("separator", "header")}
        options["categorical"] = []
        settings = text_features(model.hasher)._settings()
        reader = _core.examples.ExampleReader("jsonl", label_required=False, seed=settings["seed"], **options)
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        block = reader.feed(b'{"": null}\n' + lines, True)
        indptr, all_hashes = block.indptr[1:], block.hashes
        kept = [i for i in range(len(rows)) if indptr[i + 1] > indptr[i]]
        names = [names[i] for i in kept]
        hashes = np.array([all_hashes[indptr[i + 1] - 1] for i in kept], np.uint64)
    if len(texts) == 1 and texts[0] in table.names and table[texts[0]].values:
        words, word_hashes, _ = names_of(document_sample(table[texts[0]].values), model.hasher)
        names, hashes = names + words, np.concatenate([hashes, word_hashes])
    return names, hashes


@dataclass(frozen=True)
class NameTable:
    """Names of features and their hashes."""

    names: list[str]
    hashes: np.ndarray

    @classmethod
    def empty(cls) -> NameTable:
        """No names."""
        return cls([], np.zeros(0, np.uint64))

    @property
    def n_bytes(self) -> int:
        """Memory of the table: names, their strings' overhead, hashes."""
        return sum(49 + len(name.encode("utf-8", "surrogatepass")) for name in self.names) + 16 * len(self.names)

    def with_names(self, names: Sequence[str], hashes: np.ndarray) -> NameTable:
        """The table with more names, each once; names that are longer than 200 characters are left out."""
        place = dict(zip(self.hashes.tolist(), self.names, strict=True))
        for name, value in zip(names, hashes.tolist(), strict=True):
            if len(name) <= _LONGEST:
                place.setdefault(value, name)
        return NameTable(list(place.values()), np.fromiter(place, np.uint64, len(place)))

    def strongest(self, strength: np.ndarray, n: int) -> NameTable:
        """The n names of the largest strength, in the order of the table."""
        if len(self.names) <= n:
            return self
        kept = np.sort(np.argsort(-strength, kind="stable")[:n])
        return NameTable([self.names[k] for k in kept], self.hashes[kept])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a model file keeps."""
        packed = pack_strings(self.names)
        return {"names.bytes": packed["bytes"], "names.offsets": packed["offsets"], "names.hashes": self.hashes}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> NameTable:
        """The inverse of `to_arrays`."""
        names = unpack_strings({"bytes": arrays["names.bytes"], "offsets": arrays["names.offsets"]})
        hashes = arrays["names.hashes"]
        if hashes.dtype != np.uint64 or hashes.shape != (len(names),):
            raise ValueError(f"expected the hashes of {len(names)} names, found an array of shape {hashes.shape}")
        return cls(names, hashes)
