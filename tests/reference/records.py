"""Hashed records the slow way: the hashes in plain integers, rows as dicts of exact fractions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

MASK = 2**64 - 1
K1, K2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F


def mix64(x: int) -> int:
    for _ in range(2):
        x = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) & MASK
    return x ^ (x >> 32)


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product ^ (product >> 64)) & MASK


def fast_hash(text: bytes) -> int:
    def read(at: int, size: int) -> int:
        return int.from_bytes(text[at : at + size], "little")

    n, at = len(text), 0
    h = (n * K1) & MASK
    while n - at > 16:
        h = _fold(read(at, 8) ^ K1 ^ h, read(at + 8, 8) ^ K2)
        at += 16
    rest = n - at
    a = b = 0
    if rest >= 8:
        a, b = read(at, 8), read(n - 8, 8)
    elif rest >= 4:
        a, b = read(at, 4), read(n - 4, 4)
    elif rest:
        a = text[at] << 16 | text[at + rest // 2] << 8 | text[n - 1]
    h = _fold(a ^ K1 ^ h, b ^ K2)
    return _fold(h ^ K2, K1)


def name_hash(text: str | bytes, seed: int = 0) -> int:
    data = text.encode() if isinstance(text, str) else text
    return mix64(fast_hash(data) ^ mix64(seed))


def number_hash(number: int, seed: int = 0) -> int:
    return mix64(mix64((number + 0x9E3779B97F4A7C15) & MASK) ^ mix64(seed))


def combine(first: int, second: int) -> int:
    rotated = (first << 29 | first >> 35) & MASK
    return mix64((rotated * K1 + second) & MASK)


def category(value: Any) -> str | bytes:
    if isinstance(value, (str, bytes)):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def features(record: Any, seed: int = 0, numeric: str = "value", crosses: Any = ()) -> list[tuple[int, float]]:
    """(hash, value) of all features of a record: a dict or a list of pairs."""
    pairs = list(record.items()) if isinstance(record, dict) else list(record)
    fields: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for name, value in pairs:
        if value is None:
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, (str, bytes)) or numeric == "category":
                fields[name].append((combine(name_hash(name, seed), name_hash(category(item), seed)), 1.0))
            elif item != 0:
                fields[name].append((name_hash(name, seed), float(item)))
    found = [entry for entries in fields.values() for entry in entries]
    if crosses == "pairs":
        crosses = list(itertools.combinations(sorted(fields, key=str.encode), 2))
    for names in crosses:
        for chosen in itertools.product(*(fields.get(name, []) for name in names)):
            hash_, value = chosen[0]
            for h, v in chosen[1:]:
                hash_, value = combine(hash_, h), value * v
            found.append((hash_, value))
    return found


def row(found: list[tuple[int, float]], n_bits: int, signed: bool) -> dict[int, float]:
    """Bucket → value, without zeros."""
    sums: dict[int, float] = defaultdict(float)
    for hash_, value in sorted(found):
        sums[hash_ & ((1 << n_bits) - 1)] += -value if signed and hash_ >> 63 else value
    return {bucket: value for bucket, value in sums.items() if value != 0}
