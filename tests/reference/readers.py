"""Formats of example files read slowly: Python's own splitting, csv, json and float, one record after the other.

Each function gives a list of ``(label, weight, [(feature, value), …])`` where a feature is a nested tuple that
`hash_of` turns into the 64-bit hash of the compiled reader. Malformed records raise ValueError.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np

MASK = (1 << 64) - 1


# ------------------------------------------------------------------------------------------- hashes of features


def mix64(x: int) -> int:
    for _ in range(2):
        x = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) & MASK
    return x ^ (x >> 32)


def fast_hash(data: bytes) -> int:
    k1, k2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F

    def mix(a: int, b: int) -> int:
        product = a * b
        return (product & MASK) ^ (product >> 64)

    n, p = len(data), 0
    h, a, b = (n * k1) & MASK, 0, 0
    while n > 16:
        first, second = (int.from_bytes(data[p + i : p + i + 8], "little") for i in (0, 8))
        h = mix(first ^ k1 ^ h, second ^ k2)
        p, n = p + 16, n - 16
    rest = data[p:]
    if n >= 8:
        a, b = int.from_bytes(rest[:8], "little"), int.from_bytes(rest[-8:], "little")
    elif n >= 4:
        a, b = int.from_bytes(rest[:4], "little"), int.from_bytes(rest[-4:], "little")
    elif n > 0:
        a = rest[0] << 16 | rest[n // 2] << 8 | rest[-1]
    h = mix(a ^ k1 ^ h, b ^ k2)
    return mix(h ^ k2, k1)


def feature_hash(name: bytes | int, seed: int) -> int:
    if isinstance(name, int):
        return mix64(mix64((name + 0x9E3779B97F4A7C15) & MASK) ^ mix64(seed))
    return mix64(fast_hash(name) ^ mix64(seed))


def combine(first: int, second: int) -> int:
    turned = ((first << 29) | (first >> 35)) & MASK
    return mix64((turned * 0x9E3779B185EBCA87 + second) & MASK)


def hash_of(feature: Any, seed: int) -> int:
    """bytes and numbers are hashed; a pair is combined."""
    if isinstance(feature, tuple):
        return combine(hash_of(feature[0], seed), hash_of(feature[1], seed))
    return feature_hash(feature, seed)


# ------------------------------------------------------------------------------------------- records


def words(text: bytes) -> list[tuple[Any, float]]:
    """Words of two or more ASCII letters, digits or underscores, in lower case."""
    return [(word.lower(), 1.0) for word in re.findall(rb"[A-Za-z0-9_]{2,}", text)]


def lines(data: bytes) -> list[bytes]:
    """Lines that end with \\n, \\r\\n or \\r, without a byte order mark."""
    found = re.split(rb"\r\n|\n|\r", data)
    found[0] = found[0].removeprefix(b"\xef\xbb\xbf")
    return found[:-1] if found[-1] == b"" else found


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(text: bytes) -> float:
    shown = text.decode("latin1")
    if not _NUMBER.fullmatch(shown):
        raise ValueError(f"expected a number, found {shown!r}")
    return float(shown)


def number_label(text: bytes) -> bytes:
    try:
        value = number(text)
    except ValueError:
        return text
    if value == int(value) and abs(value) < 2**53:
        return str(int(value)).encode()
    return repr(value).encode()


def read_text(data: bytes, separator: bytes = b"\t") -> list[Any]:
    out = []
    for line in lines(data):
        if line:
            label, found, text = line.partition(separator)
            if not found or not label:
                raise ValueError("no label")
            out.append((label, 1.0, words(text)))
    return out


def read_svmlight(data: bytes, zero_based: bool = False) -> list[Any]:
    out = []
    for line in lines(data):
        parts = re.split(rb"[ \t]+", line.partition(b"#")[0].strip(b" \t"))
        if parts == [b""]:
            continue
        features: list[tuple[Any, float]] = []
        for part in parts[1:]:
            name, _, value = part.partition(b":")
            if name != b"qid":
                features.append((int(name) - (not zero_based), number(value)))
        out.append((number_label(parts[0]), 1.0, features))
    return out


def read_vw(data: bytes) -> list[Any]:
    out = []
    for line in lines(data):
        if not line.strip(b" \t"):
            continue
        head, bar, rest = line.partition(b"|")
        if not bar:
            raise ValueError("no bar")
        before = re.split(rb"[ \t]+", head.strip(b" \t")) if head.strip(b" \t") else []
        if before and (head[-1:] not in (b" ", b"\t") or before[-1].startswith(b"'")):
            before.pop()
        weight = number(before[1]) if len(before) > 1 else 1.0
        features: list[tuple[Any, float]] = []
        for space in rest.split(b"|"):
            name, scale = re.match(rb"([^ \t:]*)(?::([^ \t]*))?", space).groups()  # type: ignore[union-attr]
            factor = number(scale) if scale is not None else 1.0
            nameless = 0
            body = space[len(name) + (len(scale) + 1 if scale is not None else 0) :]
            for token in re.split(rb"[ \t]+", body.strip(b" \t")):
                if not token:
                    continue
                feature, colon, value = token.partition(b":")
                key: Any = feature
                if not feature:
                    key, nameless = nameless, nameless + 1
                x = factor * (number(value) if colon else 1.0)
                features.append(((name, key) if name else key, x))
        out.append((number_label(before[0]) if before else None, weight, features))
    return out


def _record(name: bytes, value: Any) -> list[tuple[Any, float]]:
    if value is None:
        return []
    if isinstance(value, float):
        return [(name, value)]
    return [((name, value), 1.0)]


def read_csv(data: bytes, label: str, text: str | None, delimiter: str = ",") -> list[Any]:
    """With header; all columns but label are records, or the text alone is analysed."""
    stream = io.StringIO(data.decode("latin1"), newline="")
    out = []
    for row in csv.DictReader(stream, delimiter=delimiter, strict=True):
        features: list[tuple[Any, float]] = []
        for name, value in row.items():
            if value is None or name is None:
                raise ValueError("a wrong number of columns")
            if name == text:
                features += words(value.encode("latin1"))
            elif name != label and text is None and value:
                number_like = _NUMBER.fullmatch(value)
                features += _record(name.encode("latin1"), float(value) if number_like else value.encode("latin1"))
        out.append((row[label].encode("latin1"), 1.0, features))
    return out


def read_jsonl(data: bytes, label: str, text: str | None) -> list[Any]:
    out = []
    for line in lines(data):
        if not line.strip(b" \t"):
            continue
        row = json.loads(line)
        features: list[tuple[Any, float]] = []
        for name, value in row.items():
            if name == text:
                features += words(value.encode())
            elif name != label and text is None and isinstance(value, list):
                items = [item for item in value if isinstance(item, str | int | float) and not isinstance(item, bool)]
                for item in items:  # categories, numbers too
                    features += _record(name.encode(), (item if isinstance(item, str) else json.dumps(item)).encode())
            elif name != label and text is None and not isinstance(value, dict):
                plain: Any = value
                if isinstance(value, int | float):
                    plain = float(value)  # False is 0
                elif isinstance(value, str):
                    plain = value.encode()
                features += _record(name.encode(), plain)
        y = row[label]
        out.append((number_label(str(y).encode()) if isinstance(y, int | float) else y.encode(), 1.0, features))
    return out


def as_examples(records: list[Any], seed: int = 0) -> dict[str, Any]:
    """The same as the attributes of _core.examples.Examples, in the plainest form."""
    return {
        "labels": [None if label is None else label.decode("utf-8", "surrogateescape") for label, _, _ in records],
        "weights": [float(np.float32(weight)) for _, weight, _ in records],
        "features": [
            [
                (hash_of(feature, seed), float(np.float32(value)))
                for feature, value in features
                if np.float32(value) != 0  # says nothing
            ]
            for _, _, features in records
        ],
    }
