"""Sequences of feature vectors: one stacked matrix, sparse or dense, with the offset of each sequence.

Sequence i holds the rows ``offsets[i] .. offsets[i + 1]``. Nothing is padded, and a contiguous slice shares the
memory of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import _core
from mercer._validation import check_offsets, check_sparse
from mercer.data._indexing import chosen_items

if TYPE_CHECKING:
    from mercer.data.features import FeatureIndex


class Rows:
    """A stacked feature matrix, checked once and shared with the compiled core.

    Read-only CSR with ``values`` (``None`` if all are 1), or a read-only dense matrix.
    """

    __slots__ = ("core", "dense", "indices", "indptr", "values")

    def __init__(
        self,
        *,
        indptr: np.ndarray | None = None,
        indices: np.ndarray | None = None,
        values: np.ndarray | None = None,
        n_columns: int | None = None,
        dense: np.ndarray | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.dense = dense
        self.indptr, self.indices, self.values = indptr, indices, values
        if dense is not None:
            self.core = _core.linear.Rows(dense)
        elif indptr is None or indices is None or n_columns is None:
            raise ValueError("rows need indptr, indices and n_columns, or a dense matrix")
        else:
            self.core = _core.linear.Rows(indptr, indices, values, n_columns, np.dtype(dtype) == np.float32)
        for array in (dense, indptr, indices, values):
            if array is not None:
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _rows, (self.indptr, self.indices, self.values, self.shape[1], self.dense, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32 if self.core.single else np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return self.core.n_rows, self.core.n_columns

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rows:
        """Build from a 2-D array or any SciPy sparse matrix."""
        if hasattr(matrix, "tocsr"):
            csr = check_sparse("the feature matrix", matrix).tocsr()
            _check_numbers(csr.dtype)
            dtype = _floating(csr.dtype)
            if not csr.has_canonical_format:
                csr = csr.copy()
                csr.sum_duplicates()
            values = np.array(csr.data, dtype=dtype)
            if not np.isfinite(values).all():
                raise ValueError("features must be finite: the matrix holds NaN or infinity")
            if csr.shape[1] > np.iinfo(np.int32).max:
                raise ValueError("a sparse matrix may have at most 2^31 - 1 columns")
            return cls(
                indptr=csr.indptr.astype(np.int64),
                indices=csr.indices.astype(np.int32),
                values=None if (values == 1).all() else values,
                n_columns=int(csr.shape[1]),
                dtype=dtype,
            )
        array = np.asarray(matrix)
        if array.ndim != 2:
            raise ValueError(f"expected a 2-D feature matrix, found {array.ndim} dimensions")
        _check_numbers(array.dtype)
        dense = np.array(array, dtype=_floating(array.dtype), order="C")
        if not np.isfinite(dense).all():
            raise ValueError("features must be finite: the matrix holds NaN or infinity")
        return cls(dense=dense)

    def take(self, rows: np.ndarray) -> Rows:
        """Return a copy of the given rows."""
        if self.dense is not None:
            return Rows(dense=np.ascontiguousarray(self.dense[rows]))
        assert self.indptr is not None
        assert self.indices is not None
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        picked = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        values = None if self.values is None else self.values[picked]
        return Rows(
            indptr=indptr, indices=self.indices[picked], values=values, n_columns=self.shape[1], dtype=self.dtype
        )

    def renumbered(self, places: np.ndarray, n_columns: int) -> Rows:
        """Return the same rows with column c moved to ``places[c]``, or dropped if that is −1."""
        assert self.indptr is not None
        assert self.indices is not None
        indptr, values = self.indptr, self.values
        if len(places) == n_columns and bool((places == np.arange(n_columns, dtype=places.dtype)).all()):
            indices = self.indices
        else:
            indices = places[self.indices]
            if len(places) and places.min() < 0:
                keep = indices >= 0
                indptr = np.concatenate([[0], np.cumsum(keep)])[indptr].astype(np.int64)
                indices, values = indices[keep], None if values is None else values[keep]
                places = places[places >= 0]
            if (places[1:] < places[:-1]).any():  # an order of its own: each row must ascend
                order = np.lexsort((indices, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))))
                indices, values = indices[order], None if values is None else values[order]
        return Rows(indptr=indptr, indices=indices, values=values, n_columns=n_columns, dtype=self.dtype)

    def matrix(self, begin: int, end: int) -> Any:
        """Rows begin .. end as a NumPy array or a SciPy CSR matrix."""
        if self.dense is not None:
            return self.dense[begin:end]
        from scipy.sparse import csr_matrix

        assert self.indptr is not None
        assert self.indices is not None
        first, last = int(self.indptr[begin]), int(self.indptr[end])
        values = np.ones(last - first, self.dtype) if self.values is None else self.values[first:last]
        indptr = self.indptr[begin : end + 1] - first
        return csr_matrix((values, self.indices[first:last], indptr), shape=(end - begin, self.shape[1]))

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays)

    @property
    def arrays(self) -> list[np.ndarray]:
        """Return all arrays, for checksums."""
        return [a for a in (self.indptr, self.indices, self.values, self.dense) if a is not None]


def _rows(indptr: Any, indices: Any, values: Any, n_columns: int, dense: Any, dtype: Any) -> Rows:
    return Rows(indptr=indptr, indices=indices, values=values, n_columns=n_columns, dense=dense, dtype=dtype)


def _floating(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _check_numbers(dtype: np.dtype) -> None:
    if dtype.kind not in "fiub":
        raise ValueError(f"features must be numbers, found dtype {dtype}")


class Sequences:
    """A list of sequences of feature vectors in one stacked matrix.

    Parameters
    ----------
    matrix : array of shape (n_positions, n_features), sparse matrix, or Rows
        The feature vectors of all sequences, one below the other. float32 stays float32; everything else becomes
        float64.
    offsets : array of int of shape (n_sequences + 1,), optional
        Sequence i holds the rows ``offsets[i]:offsets[i + 1]``; may repeat (an empty sequence). Default: one sequence.
    edges : array, sparse matrix or Rows, optional
        Features of the transition into each position, with as many rows.
    index : FeatureIndex, optional
        The names of the columns.
    edge_index : FeatureIndex, optional
        The names of the columns of ``edges``.

    Examples
    --------
    >>> X = Sequences([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], offsets=[0, 2, 3])
    >>> len(X), X.n_positions, X.n_features
    (2, 3, 2)
    >>> X[0]
    array([[1., 0.],
           [0., 1.]])
    >>> X[1:] == Sequences([[1.0, 1.0]])
    True
    """

    def __init__(
        self,
        matrix: Any,
        offsets: Any = None,
        *,
        edges: Any = None,
        index: FeatureIndex | None = None,
        edge_index: FeatureIndex | None = None,
    ) -> None:
        self.rows = matrix if isinstance(matrix, Rows) else Rows.from_matrix(matrix)
        n_rows = self.rows.shape[0]
        self.offsets = check_offsets("offsets", [0, n_rows] if offsets is None else offsets, n_rows, part=True)
        self.offsets.flags.writeable = False
        self.edges: Rows | None = None
        if edges is not None:
            self.edges = edges if isinstance(edges, Rows) else Rows.from_matrix(edges)
            if self.edges.shape[0] != n_rows:
                raise ValueError(f"edges has {self.edges.shape[0]} rows, the matrix {n_rows}")
        self.index = index
        self.edge_index = edge_index

    # ------------------------------------------------------------------ ways in

    @classmethod
    def from_matrices(cls, matrices: Iterable[Any], dtype: Any = None) -> Sequences:
        """Build from a list of 2-D arrays or sparse matrices, one for each sequence.

        Examples
        --------
        >>> len(Sequences.from_matrices([[[1.0, 2.0]], [[0.0, 1.0], [3.0, 0.0]]]))
        2
        """
        items = list(matrices)
        sparse = [hasattr(m, "tocsr") for m in items]
        if any(sparse) and not all(sparse):
            raise ValueError("expected all sequences to be sparse or all dense, found both")
        if not items:
            raise ValueError("no sequences: give at least one, or a matrix with its offsets")
        items = [
            check_sparse(f"sequence {i}", m).tocsr() if any(sparse) else np.asarray(m) for i, m in enumerate(items)
        ]
        for i, m in enumerate(items):
            if m.ndim != 2:
                raise ValueError(
                    f"sequence {i}: expected a 2-D array (positions x features), found {m.ndim} dimensions"
                )
            if m.shape[1] != items[0].shape[1]:
                raise ValueError(f"sequence {i} has {m.shape[1]} features, sequence 0 has {items[0].shape[1]}")
            if not np.isfinite(m.data if sparse[i] else m).all():
                raise ValueError(f"sequence {i}: features must be finite, found NaN or infinity")
        offsets = np.concatenate([[0], np.cumsum([m.shape[0] for m in items])])
        if any(sparse):
            from scipy.sparse import vstack

            stacked = vstack(items, format="csr")
        else:
            stacked = np.concatenate(items)
        return cls(stacked if dtype is None else stacked.astype(dtype), offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Sequences]) -> Sequences:
        """Concatenate several collections.

        Examples
        --------
        >>> X = Sequences([[1.0], [2.0]])
        >>> len(Sequences.concatenate([X, X, X]))
        3
        """
        if not parts:
            raise ValueError("nothing to concatenate")
        if len({p.n_features for p in parts}) > 1:
            raise ValueError("the parts have different numbers of features")
        if len({p.edges is None for p in parts}) > 1:
            raise ValueError("some of the parts have edge features and some do not")
        first = parts[0]
        if any(p.index != first.index or p.edge_index != first.edge_index for p in parts):
            raise ValueError("the parts have different feature indices: their columns mean different features")
        lengths = np.concatenate([p.lengths for p in parts])
        edges = None
        if first.edges is not None:
            edges = _stack([(p.edges, p.offsets[0], p.offsets[-1]) for p in parts if p.edges is not None])
        return cls(
            _stack([(p.rows, p.offsets[0], p.offsets[-1]) for p in parts]),
            np.concatenate([[0], np.cumsum(lengths)]),
            edges=edges,
            index=first.index,
            edge_index=first.edge_index,
        )

    # ------------------------------------------------------------------ what it is

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.rows.shape[1]

    @property
    def n_edge_features(self) -> int:
        """Number of columns of the edge features; 0 without them."""
        return 0 if self.edges is None else self.edges.shape[1]

    @property
    def n_positions(self) -> int:
        """Number of positions in all sequences together."""
        return int(self.offsets[-1] - self.offsets[0])

    @property
    def lengths(self) -> np.ndarray:
        """Number of positions of each sequence."""
        return np.diff(self.offsets)

    @property
    def shape(self) -> tuple[int]:
        """Return (number of sequences,), for scikit-learn's splitters."""
        return (len(self),)

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64: the type in which scores are computed."""
        return self.rows.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stacked arrays."""
        return self.rows.nbytes + self.offsets.nbytes + (0 if self.edges is None else self.edges.nbytes)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        kind = "dense" if self.rows.dense is not None else "sparse"
        edges = f", {self.n_edge_features} edge features" if self.edges is not None else ""
        return (
            f"Sequences({len(self)} sequences, {self.n_positions} positions, {self.n_features} features{edges}, "
            f"{kind} {self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequences):
            return NotImplemented
        if not np.array_equal(self.lengths, other.lengths) or self.n_features != other.n_features:
            return False
        if (self.edges is None) != (other.edges is None):
            return False

        def same(a: Any, b: Any) -> bool:
            if hasattr(a, "tocsr") != hasattr(b, "tocsr"):
                a, b = (m.toarray() if hasattr(m, "tocsr") else m for m in (a, b))
            return bool((a != b).nnz == 0) if hasattr(a, "tocsr") else np.array_equal(a, b)

        if not same(self.matrix(), other.matrix()):
            return False
        if self.edges is None or other.edges is None:
            return True
        return same(
            self.edges.matrix(self.offsets[0], self.offsets[-1]),
            other.edges.matrix(other.offsets[0], other.offsets[-1]),
        )

    __hash__ = None  # type: ignore[assignment]

    def matrix(self) -> Any:
        """Return the stacked feature vectors as a NumPy array or a SciPy CSR matrix."""
        return self.rows.matrix(int(self.offsets[0]), int(self.offsets[-1]))

    # ------------------------------------------------------------------ parts of it

    def __getitem__(self, key: Any) -> Any:
        """Return a sequence's matrix for an int; Sequences for a slice (no copy), a list of ints or a boolean mask."""
        items = chosen_items(key, len(self), "sequences")
        if isinstance(items, int):
            return self.rows.matrix(int(self.offsets[items]), int(self.offsets[items + 1]))
        if isinstance(items, slice):
            return self._view(items.start, items.stop)
        return self._gather(items)

    def _view(self, start: int, stop: int) -> Sequences:
        part = object.__new__(Sequences)
        part.rows, part.edges, part.index, part.edge_index = self.rows, self.edges, self.index, self.edge_index
        part.offsets = self.offsets[start : stop + 1]
        return part

    def _gather(self, chosen: np.ndarray) -> Sequences:
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        edges = None if self.edges is None else self.edges.take(rows)
        return Sequences(self.rows.take(rows), offsets, edges=edges, index=self.index, edge_index=self.edge_index)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.offsets.flags.writeable = False

    def __add__(self, other: Sequences) -> Sequences:
        return Sequences.concatenate([self, other])


def _stack(parts: list[tuple[Rows, int, int]]) -> Any:
    """Rows begin .. end of several matrices, one below the other."""
    matrices = [rows.matrix(int(begin), int(end)) for rows, begin, end in parts]
    if all(isinstance(m, np.ndarray) for m in matrices):
        return np.concatenate(matrices)
    from scipy.sparse import vstack

    return vstack(matrices, format="csr", dtype=np.result_type(*(m.dtype for m in matrices)))
