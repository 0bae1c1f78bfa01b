"""Sparse feature rows under 64-bit keys: what kernels of strings, trees, graphs and sets have in common.

A row is a list of (key, value) with ascending keys. Keys are numbers of features that need no dictionary (a coded
n-gram, or a 64-bit hash of something longer: two features meet in one key with probability 2⁻⁶⁴), so rows made
apart can be compared:

    ⟨row i, row j⟩ = Σ_{keys of both} value_i(key) value_j(key)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.base import Work

__all__ = ["KeyedRows"]

DENSE_WORK = 16  # a dense product does so many multiplications in the time of one step of a sparse one


class KeyedRows:
    """Rows of (key, value), stacked; a prepared collection in the sense of `Kernel._prepare`.

    Row i is ``keys[offsets[i]:offsets[i + 1]]``: ascending, without repeats; values are finite float64.
    """

    def __init__(self, offsets: np.ndarray, keys: np.ndarray, values: np.ndarray) -> None:
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        self.keys = np.ascontiguousarray(keys, np.uint64)
        self.values = np.ascontiguousarray(values, np.float64)

    @classmethod
    def from_counts(cls, counts: list[dict[int, float]]) -> KeyedRows:
        """From dicts of key to value."""
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
        return KeyedRows(self.offsets[start : stop + 1] - low, self.keys[low:high], self.values[low:high])

    def diag(self) -> np.ndarray:
        """Σ value² of every row."""
        total = np.concatenate([[0.0], np.cumsum(self.values**2)])
        exact = np.all(self.values == np.rint(self.values))
        if exact and total[-1] < 2**53:
            return total[self.offsets[1:]] - total[self.offsets[:-1]]
        return np.array([float(v @ v) for v in np.split(self.values, self.offsets[1:-1])]) if len(self) else np.zeros(0)

    def gram(self, other: KeyedRows | None, work: Work) -> np.ndarray:
        """Inner products of the rows with those of another stack (None: this one)."""
        left, *rest = matrices([self] if other is None else [self, other])
        right = rest[0] if rest else left
        if left.shape[1] == 0:
            return np.zeros((left.shape[0], right.shape[0]), work.dtype)
        if left.shape[1] * right.shape[0] <= DENSE_WORK * max(1, right.nnz):
            dense = left.toarray().astype(work.dtype)
            return dense @ (dense if other is None else right.toarray().astype(work.dtype)).T
        return np.asarray((left @ right.T).todense(), work.dtype)


def matrices(stacks: list[KeyedRows]) -> list[Any]:
    """The rows as CSR matrices with one column for each key of any of them, in ascending order of keys."""
    every, columns = np.unique(np.concatenate([stack.keys for stack in stacks]), return_inverse=True)
    made, start = [], 0
    for stack in stacks:
        stop = start + len(stack.keys)
        made.append(
            sp.csr_matrix((stack.values, columns[start:stop], stack.offsets), shape=(len(stack), max(1, len(every))))
        )
        start = stop
    return made
