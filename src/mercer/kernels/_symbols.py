"""Collections of strings as arrays: characters of str, bytes, or tokens of any other sequences."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer import _core

__all__ = ["Alphabet", "Symbols", "joined", "read_symbols", "same_kind"]

TEXT, BYTES, TOKENS = "str", "bytes", "tokens"
UNKNOWN = 0xFFFFFFFF
"""Code of a symbol that is not of the alphabet: no substring holds it."""
ANY = 0xFFFFFFFE
"""Code that stands for a replaced symbol where there is no alphabet."""


class Symbols:
    """Strings, stacked: string i is ``codes[offsets[i]:offsets[i + 1]]``; a prepared collection of a kernel.

    Codes are code points, bytes, or token numbers; a table holds the hashes of the tokens.
    """

    def __init__(self, kind: str | None, offsets: np.ndarray, codes: np.ndarray, hashes: np.ndarray | None) -> None:
        self.kind = kind
        self.offsets = offsets
        self.codes = codes
        self.hashes = hashes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> Symbols:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("strings are cut with a step of 1")
        stop = max(start, stop)
        low, high = self.offsets[start], self.offsets[stop]
        return Symbols(self.kind, self.offsets[start : stop + 1] - low, self.codes[low:high], self.hashes)

    @property
    def lengths(self) -> np.ndarray:
        """Return the lengths of the strings."""
        return np.diff(self.offsets)

    def place(self, symbol: int) -> tuple[int, int]:
        """Return the string and position of a symbol, given its index in the stack."""
        string = int(np.searchsorted(self.offsets, symbol, side="right")) - 1
        return string, symbol - int(self.offsets[string])


def read_symbols(X: Any, unit: str = "char") -> Symbols:
    """Strings of one kind. ``unit="word"`` splits str and bytes at white space."""
    strings = _listed(X)
    kind = _kind(strings)
    if unit == "word" and kind in (TEXT, BYTES):
        strings = [x.split() for x in strings]
        kind = TOKENS
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if kind == TEXT:
        points = "".join(strings).encode("utf-32-le", "surrogatepass")
        return Symbols(kind, offsets, np.frombuffer(points, np.uint32), None)
    if kind == BYTES:
        return Symbols(kind, offsets, np.frombuffer(b"".join(strings), np.uint8).astype(np.uint32), None)
    codes, tokens = _numbered(strings)
    return Symbols(kind, offsets, codes, np.array([token_hash(token) for token in tokens], np.uint64))


def _listed(X: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow, polars, pandas and NumPy
        if hasattr(X, method):
            X = getattr(X, method)()
            break
    return X if isinstance(X, list) else list(X)


def _kind(strings: list[Any]) -> str | None:
    """Of all strings; an error names the first one that is of another kind."""
    types = set(map(type, strings))
    if types == {str}:
        return TEXT
    kind = None
    for i, x in enumerate(strings):
        own = _kind_of(x)
        if own is None:
            raise ValueError(f"string {i} must be a str, bytes or a sequence of tokens, got {type(x).__name__}")
        if kind is not None and own != kind:
            first = type(strings[0]).__name__
            raise ValueError(f"strings must be of one kind: string {i} is a {type(x).__name__}, string 0 a {first}")
        kind = own
    return kind


def _kind_of(x: Any) -> str | None:
    if isinstance(x, str):
        return TEXT
    if isinstance(x, (bytes, bytearray)):
        return BYTES
    if isinstance(x, np.ndarray):
        return TOKENS if x.ndim == 1 else None
    return TOKENS if hasattr(x, "__getitem__") and hasattr(x, "__len__") and not hasattr(x, "keys") else None


def _numbered(strings: list[Any]) -> tuple[np.ndarray, list[Any]]:
    """Numbers of the tokens in order of appearance, and the tokens."""
    numbers: dict[Any, int] = {}
    codes: list[int] = []
    for i, x in enumerate(strings):
        tokens = x.tolist() if isinstance(x, np.ndarray) else x
        try:
            codes.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
        except TypeError as error:
            raise ValueError(f"the tokens of string {i} must be hashable: {error}") from None
    for token in numbers:
        if isinstance(token, Real) and math.isnan(token):
            raise ValueError("tokens must not be NaN, which is equal to nothing")
    return np.array(codes, np.uint32), list(numbers)


def token_hash(token: Any) -> int:
    """Return a 64-bit hash of a token; equal tokens have equal hashes, even across collections."""
    if isinstance(token, str):
        return _core.kernels.token_hash(token.encode("utf-8", "surrogatepass"), 1)
    if isinstance(token, bytes):
        return _core.kernels.token_hash(token, 2)
    if isinstance(token, Real) and not isinstance(token, Integral) and float(token).is_integer():
        token = int(float(token))  # 1.0 == 1
    if isinstance(token, Integral):
        return _core.kernels.token_hash(str(int(token)).encode(), 3)
    if isinstance(token, Real):
        return _core.kernels.token_hash(struct.pack("<d", float(token)), 4)
    if isinstance(token, tuple):  # the hashes of (-1,) and (-2,) are equal in Python
        return _core.kernels.token_hash(b"".join(struct.pack("<Q", token_hash(part)) for part in token), 5)
    return _core.kernels.token_hash(struct.pack("<q", hash(token)), 6)


def same_kind(A: Any, B: Any) -> None:
    """Raises ValueError for two collections of strings that cannot be compared."""
    if B is not None and A.kind is not None and B.kind is not None and A.kind != B.kind:
        raise ValueError(f"strings must be of one kind: X holds {_named(A.kind)}, Z {_named(B.kind)}")


def _named(kind: str) -> str:
    return "sequences of tokens" if kind == TOKENS else kind


def joined(A: Symbols, B: Symbols | None) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the codes of two collections, renumbered jointly from 0, and the number of different codes."""
    same_kind(A, B)
    if A.kind == TOKENS or (B is not None and B.kind == TOKENS):
        none = np.zeros(0, np.uint64)
        tables = [none if part is None or part.hashes is None else part.hashes for part in (A, B)]
        every, numbers = np.unique(np.concatenate(tables), return_inverse=True)
        numbers = numbers.astype(np.uint32)
        left, right = numbers[: len(tables[0])], numbers[len(tables[0]) :]
        return _looked_up(left, A.codes), None if B is None else _looked_up(right, B.codes), len(every)
    parts = [part.codes for part in (A, B) if part is not None and len(part.codes)]
    present = np.zeros(1 + max((int(codes.max()) for codes in parts), default=-1), bool)
    for codes in parts:
        present[codes] = True
    table = (np.cumsum(present) - 1).astype(np.uint32)
    return _looked_up(table, A.codes), None if B is None else _looked_up(table, B.codes), int(present.sum())


def _looked_up(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return table[codes] if len(codes) else np.zeros(0, np.uint32)


class Alphabet:
    """Given letters: their numbers for the symbols of a collection."""

    def __init__(self, letters: Any) -> None:
        if isinstance(letters, (str, bytes)):
            items: list[Any] = [letters[i : i + 1] for i in range(len(letters))]
        elif isinstance(letters, Iterable):
            items = list(letters)
        else:
            raise ValueError(f"alphabet must be a str, bytes or a sequence of letters, got {letters!r}")
        if not items:
            raise ValueError("alphabet must have at least one letter")
        try:
            distinct = len(set(items)) == len(items)
        except TypeError as error:
            raise ValueError(f"the letters of the alphabet must be hashable: {error}") from None
        if not distinct:
            raise ValueError(f"the letters of the alphabet must differ, got {letters!r}")
        self.letters = items

    def __len__(self) -> int:
        return len(self.letters)

    def codes(self, kind: str | None) -> np.ndarray:
        """Of the letters: code points, bytes or hashes."""
        if kind == TOKENS:
            return np.array([token_hash(letter) for letter in self.letters], np.uint64)
        made = []
        for letter in self.letters:
            if isinstance(letter, (str, bytes)) and len(letter) == 1:
                made.append(ord(letter))
            elif kind == BYTES and isinstance(letter, Integral) and 0 <= int(letter) < 256:
                made.append(int(letter))
            else:
                raise ValueError(f"the letters of the alphabet must be single characters, got {letter!r}")
        return np.array(made, np.uint64)

    def numbers(self, symbols: Symbols, exact: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return codes of the strings and of the letters, and the table of hashes; other symbols have the code UNKNOWN.

        ``exact``: the codes are numbers of letters; otherwise they are characters or tokens as before.
        """
        letters = self.codes(symbols.kind)
        if symbols.kind == TOKENS:
            assert symbols.hashes is not None
            own: np.ndarray = symbols.hashes
        else:
            own = np.arange(1 + int(symbols.codes.max(initial=0)), dtype=np.uint64)
        order = np.argsort(letters, kind="stable")
        at = np.minimum(np.searchsorted(letters[order], own), len(letters) - 1)
        known = letters[order][at] == own
        number = order[at]
        if exact:
            codes = _looked_up(np.where(known, number, UNKNOWN).astype(np.uint32), symbols.codes)
            return codes, np.arange(len(letters), dtype=np.uint32), None
        if symbols.kind == TOKENS:
            codes = _looked_up(np.where(known, number, UNKNOWN).astype(np.uint32), symbols.codes)
            return codes, np.arange(len(letters), dtype=np.uint32), letters
        codes = _looked_up(np.where(known, np.arange(len(own)), UNKNOWN).astype(np.uint32), symbols.codes)
        return codes, letters.astype(np.uint32), None
