"""Integer sequences as discrete data: one integer per position is a symbol, several columns are counts."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from mercer.data.sequences import Sequences

__all__ = ["IntegerSequences"]


class IntegerSequences:
    """Sequences of integers: arrays of shape (positions,) for symbols, or (positions, columns) for counts.

    Examples
    --------
    >>> X = IntegerSequences.read([[7, 3, 3], [], [7]], "auto")
    >>> X.is_symbols, X.symbols()
    (True, array([3, 7]))
    >>> X.one_hot(X.symbols())[0].toarray()
    array([[0., 1.],
           [1., 0.],
           [1., 0.]])
    """

    def __init__(self, arrays: list[np.ndarray], is_symbols: bool) -> None:
        self.is_symbols = is_symbols
        self._lengths = [len(array) for array in arrays]
        self._stacked = np.concatenate([array for array in arrays if len(array)])

    @classmethod
    def read(cls, X: Any, emission: str) -> IntegerSequences | None:
        """Return X as integers if its positions are integers, else None, which other readers handle.

        Parameters
        ----------
        X : list of sequences
        emission : str
            "gaussian" and "mixture" treat numbers as vectors. "categorical" treats a column of integer-valued floats as
            symbols.
        """
        if emission in ("gaussian", "mixture") or isinstance(X, (str, bytes, dict, Sequences)):
            return None
        if type(X).__module__.startswith("pyarrow"):
            X = _arrow_lists(X)
        if X is None or not hasattr(X, "__len__") or not len(X):
            return None
        first = next((x for x in X if not _is_empty(x)), None)
        if first is None or _integers(first, emission) is None:
            return None
        arrays = [np.zeros(0, np.int64) if _is_empty(x) else _integers(x, emission) for x in X]
        for i, array in enumerate(arrays):
            if array is None:
                raise ValueError(f"sequence {i}: expected integers, as in the sequences before")
        full = [array for array in arrays if array is not None and array.size]
        shapes = {array.shape[1:] for array in full}
        if len(shapes) > 1:
            raise ValueError("all sequences must be lists of integers, or arrays with the same number of columns")
        return cls([array for array in arrays if array is not None], shapes == {()})

    def symbols(self) -> np.ndarray:
        """Return the distinct integers in ascending order."""
        return np.unique(self._stacked)

    def one_hot(self, symbols: np.ndarray) -> Sequences:
        """Return sequences with one column per symbol; an unknown integer has no feature."""
        at = np.minimum(np.searchsorted(symbols, self._stacked), len(symbols) - 1)
        known = symbols[at] == self._stacked
        starts = np.concatenate([[0], np.cumsum(known)])
        matrix = csr_matrix((np.ones(int(starts[-1])), at[known], starts), shape=(len(at), len(symbols)))
        return Sequences(matrix, self._offsets())

    def counts(self) -> Sequences:
        """Return sequences of the unchanged columns."""
        return Sequences(self._stacked, self._offsets())

    def _offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)


def _is_empty(sequence: Any) -> bool:
    size = sequence.shape[0] if hasattr(sequence, "shape") and sequence.shape else getattr(sequence, "__len__", int)()
    return size == 0


def _integers(sequence: Any, emission: str) -> np.ndarray | None:
    """Return positions as integers, of shape (n,) for symbols and (n, d) for counts; None if they are not integers."""
    if isinstance(sequence, (list, tuple)):
        inner = sequence[0]
        if isinstance(inner, (list, tuple, np.ndarray)) and len(inner) and isinstance(inner[0], Integral):
            try:
                sequence = np.array(sequence)
            except ValueError:  # rows of different lengths: another reader says so
                return None
        elif all(issubclass(kind, Integral) for kind in set(map(type, sequence))):
            try:
                sequence = np.array(sequence, dtype=np.int64)
            except OverflowError as error:
                raise ValueError("integer symbols must fit into 64 bits") from error
    if not isinstance(sequence, np.ndarray) or sequence.ndim not in (1, 2):
        return None
    array = sequence[:, 0] if sequence.ndim == 2 and sequence.shape[1] == 1 else sequence
    whole = emission == "categorical" and array.ndim == 1 and array.dtype.kind == "f"
    if whole and np.isfinite(array).all() and (array == np.round(array)).all():
        return array.astype(np.int64)
    if array.dtype.kind not in "iub" or (emission == "categorical" and array.ndim == 2):
        return None
    return array.astype(np.int64)


def _arrow_lists(X: Any) -> list[Any] | None:
    """Return an Arrow column of integer lists as lists; None for other types."""
    import pyarrow as pa

    kind = X.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_integer(kind.value_type):
        return None
    return X.to_pylist()
