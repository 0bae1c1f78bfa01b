"""Sparse feature rows with 64-bit keys, shared by the kernels of strings, trees, graphs and sets.

A row is a list of (key, value) with ascending keys. Keys identify features without a dictionary: a coded n-gram, or a
64-bit hash of a longer feature (two features collide with probability 2⁻⁶⁴). So rows from separate calls can be
compared:

    ⟨row i, row j⟩ = Σ_{keys of both} value_i(key) value_j(key)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer.kernels.base import Work

__all__ = ["KeyedRows"]

DENSE_GAIN = 10  # a dense product does so many multiplications in the time of one step through a list of rows
DENSE_BYTES = 1 << 28  # at most so much memory for the dense columns


class KeyedRows:
    """Rows of (key, value), stacked; a prepared collection in the sense of `Kernel._prepare`.

    Row i is ``keys[offsets[i]:offsets[i + 1]]``: ascending, without repeats; values are finite float64.
    """

    def __init__(self, offsets: np.ndarray, keys: np.ndarray, values: np.ndarray) -> None:
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        self.keys = np.ascontiguousarray(keys, np.uint64)
        self.values = np.ascontiguousarray(values, np.float64)
        self._source: KeyedRows | None = None  # the stack that this one is cut from, and where
        self._low = 0
        self._own: Any = None  # columns of the keys
        self._joint: tuple[Any, Any] = (None, None)  # columns of the keys together with those of another stack

    @classmethod
    def from_counts(cls, counts: list[dict[int, float]]) -> KeyedRows:
        """Build rows from dicts of key to value."""
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in counts], dtype=np.int64)]).astype(np.int64)
        ordered = [sorted(row.items()) for row in counts]
        keys = np.array([key for row in ordered for key, _ in row], np.uint64)
        return cls(offsets, keys, np.array([value for row in ordered for _, value in row], np.float64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> KeyedRows:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows are cut with a step of 1")
        stop = max(start, stop)
        low, high = self.offsets[start], self.offsets[stop]
        part = KeyedRows(self.offsets[start : stop + 1] - low, self.keys[low:high], self.values[low:high])
        part._source, part._low = self._root(), self._low + int(low)
        return part

    def _root(self) -> KeyedRows:
        return self if self._source is None else self._source

    def __getstate__(self) -> dict[str, Any]:
        return {"offsets": self.offsets, "keys": self.keys, "values": self.values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def diag(self) -> np.ndarray:
        """Return Σ value² of every row."""
        squares = np.append(self.values**2, 0.0)
        sums = np.add.reduceat(squares, self.offsets[:-1]) if len(self) else np.zeros(0)
        return np.where(np.diff(self.offsets) > 0, sums, 0.0)

    def gram(self, other: KeyedRows | None, work: Work) -> np.ndarray:
        """Return the inner products of the rows with those of another stack (None: this one)."""
        right = self if other is None else other
        columns, right_columns, n_columns = self._columns(right)
        shape = (len(self), len(right))
        dense = self._dense_columns(columns, right_columns, n_columns, right)
        K = np.zeros(shape, work.dtype)
        if n_columns == 0 or 0 in shape:
            return K
        if (width := int(dense.max()) + 1) > 0:
            F = np.zeros((shape[0], width), work.dtype)
            _core.kernels.keyed_dense(self.offsets, columns, self.values, dense, F)
            G = F
            if other is not None:
                G = np.zeros((shape[1], width), work.dtype)
                _core.kernels.keyed_dense(right.offsets, right_columns, right.values, dense, G)
            np.matmul(F, G.T, out=K)
        if width < n_columns:
            offsets, others, values = (
                (None, None, None) if other is None else (right.offsets, right_columns, right.values)
            )
            _core.kernels.keyed_products(
                self.offsets, columns, self.values, offsets, others, values, dense, K, work.threads
            )
        return K

    def _columns(self, other: KeyedRows) -> tuple[np.ndarray, np.ndarray, int]:
        """The columns of the keys of both, and how many there are. Those of whole stacks are kept: blocks ask again."""
        left, right = self._root(), other._root()
        if left is right:
            if left._own is None:
                columns, n_columns = _core.kernels.key_columns(left.keys)
                left._own = columns, columns, n_columns
            mine, others, n_columns = left._own
        else:
            if left._joint[0] is not right:
                columns, n_columns = _core.kernels.key_columns(np.concatenate([left.keys, right.keys]))
                left._joint = right, (columns[: len(left.keys)], columns[len(left.keys) :], n_columns)
            mine, others, n_columns = left._joint[1]
        return (
            mine[self._low : self._low + len(self.keys)],
            others[other._low : other._low + len(other.keys)],
            n_columns,
        )

    def _dense_columns(self, columns: np.ndarray, others: np.ndarray, n_columns: int, right: KeyedRows) -> np.ndarray:
        """Where each column stands in the dense product; −1 for those that few rows hold."""
        place = np.full(n_columns, -1, np.int32)
        pairs = np.bincount(columns, minlength=n_columns) * np.bincount(others, minlength=n_columns)
        often = np.flatnonzero(pairs * DENSE_GAIN > len(self) * len(right))
        most = max(1, DENSE_BYTES // (8 * max(1, len(self) + len(right))))
        if len(often) > most:
            often = np.sort(often[np.argsort(-pairs[often], kind="stable")[:most]])
        place[often] = np.arange(len(often), dtype=np.int32)
        return place


def matrices(stacks: list[KeyedRows]) -> list[Any]:
    """Return the rows as CSR matrices with one column for each key that occurs, in ascending order of keys."""
    columns, n_columns = _core.kernels.key_columns(np.concatenate([stack.keys for stack in stacks]))
    made, start = [], 0
    for stack in stacks:
        stop = start + len(stack.keys)
        made.append(
            sp.csr_matrix((stack.values, columns[start:stop], stack.offsets), shape=(len(stack), max(1, n_columns)))
        )
        start = stop
    return made
