"""Names of hashed features: a bounded table that maps weights back to words and fields.

A hashed model stores only hashes. Training keeps a sample of its inputs at little cost. When names are requested, or
the model is saved, the sample is converted to names, the names with the largest weights are kept, and the sample is
dropped. The weight of a name is read from the model on demand.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.values import pack_strings, unpack_strings
from mercer.data import TextBuffer
from mercer.data.readers.sniff import csv_rows
from mercer.data.readers.source import Source
from mercer.maps import StringHasher
from mercer.online.formats import ResolvedFormat
from mercer.online.inputs import text_features

__all__ = ["NAMED_BYTES", "NameTable", "Naming", "Unnamed", "field_sample", "frame_sample", "names_of"]

NAMED_BYTES = 1 << 20
"""Bytes of documents whose names are noted, spread evenly over all: tens of milliseconds when they are asked for."""
_NAMED_RECORDS = 2000
Naming = Callable[[], tuple[list[str], np.ndarray]]
_LONGEST = 200
"""Characters of a name that is worth keeping."""


def names_of(texts: Any, hasher: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the distinct features of documents: names, 64-bit hashes and counts."""
    buffer, hasher = TextBuffer(texts), text_features(hasher)
    if isinstance(hasher, StringHasher):
        found = _core.text.string_names(buffer.data, buffer.offsets, **hasher._settings(buffer.binary))
    else:
        found = _core.text.text_names(buffer.data, buffer.offsets, **hasher._settings())
    names, hashes, counts = found
    return list(names), np.asarray(hashes, np.uint64), np.asarray(counts)


def document_sample(texts: Sequence[Any], stride: int = 1) -> list[Any]:
    """Return evenly spaced documents of a collection, with `NAMED_BYTES` in total."""
    n = len(texts)
    probe = [len(texts[i]) for i in range(0, n, max(1, n // 64))]
    wanted = int(NAMED_BYTES / max(1.0, float(np.mean(probe)))) if probe else 0
    return [texts[i] for i in range(0, n, max(stride, -(-n // max(1, wanted))))]


@dataclass(frozen=True)
class Unnamed:
    """Training inputs without names yet: a sample of documents, and functions that name the features of files.

    Every stride-th document of a stream is kept; when there are too many, every second one is dropped.
    """

    hasher: Any = None
    texts: tuple[Any, ...] = ()
    stride: int = 1
    others: tuple[Naming, ...] = ()

    def with_texts(self, texts: Sequence[Any], hasher: Any) -> Unnamed:
        """Add a sample of more documents, which the hasher reads."""
        kept, stride = (*self.texts, *document_sample(texts, self.stride)), self.stride
        while sum(map(len, kept)) > 2 * NAMED_BYTES and len(kept) > 1:
            kept, stride = kept[::2], 2 * stride
        return replace(self, hasher=text_features(hasher), texts=kept, stride=stride)

    def with_others(self, names: Naming) -> Unnamed:
        """Add the names that such a function will return."""
        return replace(self, others=(*self.others, names))

    def names(self) -> tuple[list[str], np.ndarray]:
        """Return all names, and their hashes."""
        kinds = [[text for text in self.texts if isinstance(text, bytes) == binary] for binary in (False, True)]
        name_lists = [names_of(texts, self.hasher)[:2] for texts in kinds if texts]
        name_lists += [names() for names in self.others]
        hashes = [np.zeros(0, np.uint64), *(some for _, some in name_lists)]
        return [name for names, _ in name_lists for name in names], np.concatenate(hashes)


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
        """Return the memory of the table: names, string overhead, hashes."""
        return sum(49 + len(name.encode("utf-8", "surrogatepass")) for name in self.names) + 16 * len(self.names)

    def with_names(self, names: Sequence[str], hashes: np.ndarray) -> NameTable:
        """Return the table with more names, without repeats; names longer than 200 characters are dropped."""
        place = dict(zip(self.hashes.tolist(), self.names, strict=True))
        for name, value in zip(names, hashes.tolist(), strict=True):
            if len(name) <= _LONGEST:
                place.setdefault(value, name)
        return NameTable(list(place.values()), np.fromiter(place, np.uint64, len(place)))

    def strongest(self, strength: np.ndarray, n: int) -> NameTable:
        """Return the n names of the largest strength, in the order of the table."""
        if len(self.names) <= n:
            return self
        kept = np.sort(np.argsort(-strength, kind="stable")[:n])
        return NameTable([self.names[k] for k in kept], self.hashes[kept])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for a model file."""
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


# ------------------------------------------------------------------------------------------------------------- files


def feature_hashes(names: Sequence[str], seed: int) -> np.ndarray:
    """Return 64-bit hashes of names, as in the readers of files (``cpp/hashing/feature_hash.hpp``)."""
    packed = pack_strings(list(names))
    return np.asarray(_core.hashing.hash_utf8(packed["bytes"], packed["offsets"], seed), np.uint64)


def combined(first: int, second: np.ndarray) -> np.ndarray:
    """Return the hashes of pairs: of a field and its value, or of a namespace and a name."""
    first = int(first)
    turned = ((first << 29) | (first >> 35)) & (1 << 64) - 1
    start = np.uint64(turned * 0x9E3779B185EBCA87 & (1 << 64) - 1)
    with np.errstate(over="ignore"):
        return _mixed(start + second.astype(np.uint64))


def _mixed(x: np.ndarray) -> np.ndarray:
    factor, half = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> half)) * factor
        x = (x ^ (x >> half)) * factor
    return x ^ (x >> half)


def field_sample(hasher: Any, source: Source, form: ResolvedFormat) -> Naming:
    """Return a function that names the features in the first bytes of a training file.

    Words, ``column=category``, ``column`` for a number, and ``column≈value`` for the knots of its code.
    """
    if form.layout is not None:
        return frame_sample(hasher, source.records(form.layout), form)
    data, whole = source.head()
    data, whole = data[:NAMED_BYTES], whole and len(data) <= NAMED_BYTES
    hasher = text_features(hasher)
    return lambda: _line_names(hasher, _lines(data, whole), form)


def frame_sample(hasher: Any, rows: Iterable[dict[str, Any]], form: ResolvedFormat) -> Naming:
    """Do the same as `field_sample` for rows of a data frame."""
    some, hasher = list(itertools.islice(rows, _NAMED_RECORDS)), text_features(hasher)

    def names() -> tuple[list[str], np.ndarray]:
        name_reader = _Names(hasher)
        name_reader.fields(some, form)
        return name_reader.result()

    return names


def _line_names(hasher: Any, lines: list[str], form: ResolvedFormat) -> tuple[list[str], np.ndarray]:
    names = _Names(hasher)
    if form.format == "text":
        last, cut = form.label == "last", form.separator or "\t"
        parts = [line.rpartition(cut) if last else line.partition(cut) for line in lines]
        names.texts([part[0] if last else part[2] for part in parts], "")
    elif form.format == "vw":
        names.vw(lines)
    elif form.format == "csv" and lines:
        rows = csv_rows("\n".join(lines), form.separator or ",", len(lines)) or [[]]
        header = [str(j) for j in range(len(rows[0]))] if form.header is False else rows.pop(0)
        names.fields([dict(zip(header, row, strict=False)) for row in rows], form)
    elif form.format == "jsonl":
        names.fields([flat for line in lines if (flat := _flat_json(line)) is not None], form)
    return names.result()


class _Names:
    """Names on the way from a file to their hashes."""

    def __init__(self, hasher: Any) -> None:
        self.hasher = text_features(hasher)
        self.seed = int(self.hasher.seed)
        self.names: list[str] = []
        self.hashes: list[np.ndarray] = []

    def add(self, names: Sequence[str], hashes: np.ndarray) -> None:
        self.names += names
        self.hashes.append(hashes)

    def texts(self, texts: Sequence[str], field: str) -> None:
        readable = [text for text in texts if text.isprintable() or text == text.encode("utf-8", "ignore").decode()]
        names, hashes, _ = names_of(readable, self.hasher)  # bytes that are no UTF-8 have no name
        if field:  # one of several texts
            names, hashes = [f"{field}: {name}" for name in names], combined(self._hash(field), hashes)
        self.add(names, hashes)

    def fields(self, rows: list[dict[str, Any]], form: ResolvedFormat) -> None:
        """Fields of rows: texts by their words, numbers by their field, the rest by field and value."""
        texts = [str(name) for name in form.text or ()]
        columns = None if form.columns in (None, "rest") else {str(name) for name in form.columns}
        categorical = {str(name) for name in form.categorical}
        for name in texts:
            self.texts([str(row[name]) for row in rows if name in row], name if len(texts) > 1 else "")
        left = {*texts, *form.ignored, str(form.label)}
        values: dict[str, dict[str, None]] = {}
        numbers: dict[str, None] = {}
        for row in rows:
            for name, value in row.items():
                if name in left or (columns is not None and name not in columns) or value in (None, ""):
                    continue
                if isinstance(value, list):
                    values.setdefault(name, {}).update(dict.fromkeys(map(str, value)))
                    continue
                if name not in categorical and _is_number(value):
                    numbers[name] = None
                else:
                    values.setdefault(name, {})[str(value)] = None
        self.add(list(numbers), feature_hashes(list(numbers), self.seed))
        for name, _, _, knots in form.numbers:
            places = feature_hashes([f"\x01knot {j}" for j in range(len(knots))], self.seed)
            self.add([f"{name}≈{knot:g}" for knot in knots], combined(self._hash(name), places))
        for name, seen in values.items():
            hashes = combined(self._hash(name), feature_hashes(list(seen), self.seed))
            self.add([f"{name}={value}" for value in seen], hashes)

    def vw(self, lines: list[str]) -> None:
        spaces: dict[str, dict[str, None]] = {}
        for line in lines:
            for part in line.split("|")[1:]:
                words = part.split()
                named = bool(part) and not part[0].isspace()
                space = words[0].partition(":")[0] if named and words else ""
                for word in words[1 if named else 0 :]:
                    spaces.setdefault(space, {})[word.partition(":")[0]] = None
        for space, seen in spaces.items():
            hashes = feature_hashes(list(seen), self.seed)
            prefix = f"{space}: " if space else ""
            self.add([prefix + name for name in seen], combined(self._hash(space), hashes) if space else hashes)

    def _hash(self, name: str) -> int:
        return int(feature_hashes([name], self.seed)[0])

    def result(self) -> tuple[list[str], np.ndarray]:
        return self.names, np.concatenate([np.zeros(0, np.uint64), *self.hashes])


def _lines(data: bytes, whole: bool) -> list[str]:
    """Lines of the first bytes of a file; the last may be cut unless they are the whole file."""
    lines = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines()
    return [line for line in (lines if whole else lines[:-1]) if line.strip()]


def _flat_json(line: str) -> dict[str, Any] | None:
    """The fields of an object by their paths, as a.b."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    flat: dict[str, Any] = {}

    def visit(prefix: str, item: Any) -> None:
        if isinstance(item, dict):
            for name, inner in item.items():
                visit(f"{prefix}.{name}" if prefix else name, inner)
        elif isinstance(item, bool):
            flat[prefix] = "true" if item else "false"
        elif isinstance(item, (str, int, float)):
            flat[prefix] = item

    visit("", value)
    return flat


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False
