"""Map feature names to columns, by a vocabulary (sorted training names) or by hashing into 2**n_bits buckets.

The index reads dicts, strings, columns with a template or Arrow arrays, and returns :class:`~mercer.data.Sequences`.
Unknown features are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer._state.saved import Fields, Optional, PackedStrings, Saved
from mercer.data.sequences import Rows, Sequences
from mercer.data.templates import Template, reader_columns


class FeatureIndex(Saved):
    """Columns of named features.

    Parameters
    ----------
    n_bits : int, default=0
        0 stores a vocabulary. Otherwise names are hashed into ``2**n_bits`` columns and not stored; the hash is the
        same on all platforms and in all versions.

    Examples
    --------
    >>> index = FeatureIndex()
    >>> X = index.learn([[{"word": "the", "len": 3.0}, {"word": "dog"}], [["bias", "word=a"]]])
    >>> index.names()
    ['bias', 'len', 'word=a', 'word=dog', 'word=the']
    >>> index.encode([[{"word": "dog", "unknown": True}]])[0].toarray()
    array([[0., 0., 0., 1., 0.]])
    """

    saved = Fields(_names=Optional(PackedStrings()))

    def __init__(self, n_bits: int = 0) -> None:
        if not isinstance(n_bits, (int, np.integer)) or not 0 <= n_bits <= 30:
            raise ValueError(f"n_bits must be an integer from 0 (a vocabulary) to 30, got {n_bits!r}")
        self._core = _core.vocabulary.Vocabulary(int(n_bits))

    @property
    def n_bits(self) -> int:
        """0 for a vocabulary, otherwise the logarithm of the number of buckets."""
        return self._core.n_bits

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        if self.n_bits:
            return f"FeatureIndex(n_bits={self.n_bits})"
        return f"FeatureIndex({len(self)} features)"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FeatureIndex) or self.n_bits != other.n_bits or len(self) != len(other):
            return False
        mine, theirs = self._core.state(), other._core.state()
        return all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]

    def find(self, name: str) -> int:
        """Return the column of a name, -1 if it has none."""
        return self._core.find(name)

    def name(self, column: int) -> str:
        """Return the name of a column; a hashed one is called ``hash[column]``."""
        return f"hash[{column}]" if self.n_bits else self._core.name(int(column))

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return [self.name(column) for column in range(len(self))]

    # ------------------------------------------------------------------ reading

    def learn(self, X: Any, template: Template | None = None, dtype: Any = np.float64) -> Sequences:
        """Read X and add its features to the vocabulary, which is then sorted if it was empty before.

        Existing columns keep their index: later calls append.
        """
        return self._read(X, template, grow=True, dtype=dtype)

    def encode(self, X: Any, template: Template | None = None, dtype: Any = np.float64) -> Sequences:
        """Read X with the known features and ignore others."""
        return self._read(X, template, grow=False, dtype=dtype)

    def _read(self, X: Any, template: Template | None, grow: bool, dtype: Any) -> Sequences:
        fresh = len(self) == 0
        if template is not None:
            offsets, indptr, indices, values = self._core.encode_columns(
                *reader_columns(template, template.unigrams, X), grow
            )
        elif _is_arrow(X):
            offsets, indptr, indices, values = self._read_arrow(X, grow)
        else:
            offsets, indptr, indices, values = self._core.encode_tokens(X, grow)
        rows = self._rows(indptr, indices, values, sort=grow and fresh, dtype=dtype)
        return Sequences(rows, offsets, index=self)

    def edge_rows(self, X: Any, template: Template, grow: bool, dtype: Any = np.float64) -> Rows:
        """Return the rows of a template's bigram features (features of the transition into each position)."""
        fresh = len(self) == 0
        _, indptr, indices, values = self._core.encode_columns(
            *reader_columns(template, template.edge_patterns, X), grow
        )
        return self._rows(indptr, indices, values, sort=grow and fresh, dtype=dtype)

    def _rows(self, indptr: Any, indices: Any, values: Any, *, sort: bool, dtype: Any) -> Rows:
        if sort and not self.n_bits:
            self._core.sort(indptr, indices, values)
        if values is not None:
            values = values.astype(dtype)
        return Rows(indptr=indptr, indices=indices, values=values, n_columns=len(self), dtype=dtype)

    def _read_arrow(self, X: Any, grow: bool) -> tuple[Any, Any, Any, Any]:
        """list<list<string>> (features of each token) or list<string> (one feature a token), without Python objects."""
        import pyarrow as pa

        outer = _one_chunk(X)
        if outer.null_count:
            raise ValueError("the Arrow column holds null sequences")
        offsets = np.asarray(outer.offsets, dtype=np.int64)
        tokens = outer.values
        tokens = tokens.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        if pa.types.is_string(tokens.type) or pa.types.is_large_string(tokens.type):
            strings, token_offsets = tokens, np.arange(len(tokens) + 1, dtype=np.int64)
        elif _is_list(tokens.type) and (
            pa.types.is_string(tokens.type.value_type) or pa.types.is_large_string(tokens.type.value_type)
        ):
            if tokens.null_count:
                raise ValueError("the Arrow column holds null tokens")
            token_offsets = np.asarray(tokens.offsets, dtype=np.int64)
            strings = tokens.values.slice(int(token_offsets[0]), int(token_offsets[-1] - token_offsets[0]))
            token_offsets = token_offsets - token_offsets[0]
        else:
            raise TypeError(f"expected an Arrow column of list<string> or list<list<string>>, found {outer.type}")
        if strings.null_count:
            raise ValueError("the Arrow column holds null strings")
        strings = strings.cast(pa.large_string())
        _, string_offsets, data = strings.buffers()
        bounds = np.frombuffer(string_offsets, dtype=np.int64)[strings.offset : strings.offset + len(strings) + 1]
        text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
        _, indptr, indices, values = self._core.encode_utf8(text, bounds.copy(), token_offsets.copy(), grow)
        return offsets - offsets[0], indptr, indices, values

    def places(self, names: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the columns of names in Arrow's layout (bytes, offsets), -1 for unknown names."""
        data, offsets = (np.ascontiguousarray(part) for part in names)
        alone = np.arange(len(offsets), dtype=np.int64)
        _, indptr, indices, _ = self._core.encode_utf8(data, offsets, alone, False)
        out = np.full(len(offsets) - 1, -1, np.int32)
        out[np.flatnonzero(np.diff(indptr))] = indices
        return out

    # ------------------------------------------------------------------ keeping

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the names as bytes and offsets, for a model file."""
        return dict(zip(("bytes", "offsets"), self._core.state(), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_bits: int = 0) -> FeatureIndex:
        """Return the inverse of :meth:`to_arrays`."""
        index = cls(n_bits)
        index._names = None if n_bits else arrays
        return index

    @property
    def _names(self) -> dict[str, np.ndarray] | None:
        """The names of a vocabulary as bytes and offsets."""
        return None if self.n_bits else self.to_arrays()

    @_names.setter
    def _names(self, names: dict[str, np.ndarray] | None) -> None:
        if names is not None:
            self._core.add_names(np.array(names["bytes"], np.uint8), np.array(names["offsets"], np.int64))

    def __getstate__(self) -> dict[str, Any]:
        return {"n_bits": self.n_bits, "names": self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_bits"])  # type: ignore[misc]
        self._names = state["names"]


class NamedSequences(Sequences):
    """Sequences with their own sorted feature names, as a store holds them; any index can adopt them.

    Unlike other :class:`Sequences` with an index, their columns need not be those of a model. :func:`as_sequences` maps
    them to the columns of the model's index and drops unknown features.

    Parameters
    ----------
    rows : Rows
    offsets : array of int
    names : pair of arrays (bytes, offsets)
        The names of the columns in Arrow's layout.
    edges, edge_names : Rows and pair of arrays, optional
    places : dict, optional
        Cache of the column mapping of the last index, kept between reads of a piece.
    """

    def __init__(
        self,
        rows: Rows,
        offsets: Any,
        names: tuple[np.ndarray, np.ndarray],
        *,
        edges: Rows | None = None,
        edge_names: tuple[np.ndarray, np.ndarray] | None = None,
        places: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(rows, offsets, edges=edges)
        self.names, self.edge_names = names, edge_names
        self._places = {} if places is None else places

    def _view(self, start: int, stop: int) -> NamedSequences:
        return NamedSequences(
            self.rows, self.offsets[start : stop + 1], self.names, edges=self.edges, edge_names=self.edge_names
        )

    def _gather(self, chosen: np.ndarray) -> NamedSequences:
        chosen_rows = super()._gather(chosen)
        return NamedSequences(
            chosen_rows.rows, chosen_rows.offsets, self.names, edges=chosen_rows.edges, edge_names=self.edge_names
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_places": {}}

    def under(self, index: FeatureIndex, edge_index: FeatureIndex | None, learn: bool) -> Sequences:
        """Return the same sequences with the columns of an index, which first adopts the names if ``learn`` is set."""
        rows = self._moved("nodes", self.rows, self.names, index, learn)
        edges = None
        if self.edges is not None and self.edge_names is not None and edge_index is not None:
            edges = self._moved("edges", self.edges, self.edge_names, edge_index, learn)
        return Sequences(rows, self.offsets, edges=edges, index=index, edge_index=None if edges is None else edge_index)

    def _moved(
        self, part: str, rows: Rows, names: tuple[np.ndarray, np.ndarray], index: FeatureIndex, learn: bool
    ) -> Rows:
        if index.n_bits:
            raise ValueError(
                "the features of this store have names: write it with n_bits for a model with features='hashing'"
            )
        known = self._places.get(part)
        if learn or known is None or known[0] is not index:
            if learn:
                index._core.encode_utf8(names[0], names[1], np.arange(len(names[1]), dtype=np.int64), True)
            known = index, index.places(names), len(index)
            if not learn:  # an index that learns one piece and is done would stay as long as the store
                self._places[part] = known
        return rows.renumbered(known[1], known[2])


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.startswith("pyarrow")


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _one_chunk(X: Any) -> Any:
    import pyarrow as pa

    if isinstance(X, pa.ChunkedArray):
        X = X.combine_chunks()
        if isinstance(X, pa.ChunkedArray):
            X = X.chunk(0) if X.num_chunks else pa.array([], X.type)
    if not isinstance(X, pa.Array) or not _is_list(X.type):
        raise TypeError(f"expected an Arrow column of lists, found {getattr(X, 'type', type(X).__name__)}")
    return X


def as_sequences(
    X: Any,
    index: FeatureIndex | None = None,
    *,
    template: Template | None = None,
    edge_index: FeatureIndex | None = None,
    learn: bool = False,
) -> Sequences:
    """Convert any supported input to :class:`Sequences`.

    Numbers (2-D arrays, sparse matrices, Arrow lists of lists of numbers) need no index; names (dicts, strings,
    columns with a template) need one.
    """
    if isinstance(X, NamedSequences):
        if index is None:
            raise TypeError("the model was trained on numeric features, and those of X have names")
        return X.under(index, edge_index, learn)
    if isinstance(X, Sequences):
        return X
    if _is_arrow(X):
        numbers = _arrow_numbers(X)
        if numbers is not None:
            return numbers
    elif template is None:
        if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__len__"):
            raise TypeError(f"expected a list of sequences, found {type(X).__name__}")
        if len(X) and _is_numeric(_first_with_positions(X)):
            return Sequences.from_matrices(X)
    if len(X) == 0:
        empty = Rows(
            indptr=np.zeros(1, np.int64), indices=np.zeros(0, np.int32), n_columns=0 if index is None else len(index)
        )
        return Sequences(empty, [0], index=index)
    if index is None:
        raise TypeError(
            "the model was trained on numeric features: give a list of 2-D arrays, sparse matrices or Sequences"
        )
    out = index.learn(X, template) if learn else index.encode(X, template)
    if template is not None and template.edge_patterns:
        if edge_index is None:
            raise ValueError("the template has bigram features; an index for them is needed")
        out.edges = edge_index.edge_rows(X, template, grow=learn)
        out.edge_index = edge_index
    return out


def _first_with_positions(X: Any) -> Any:
    """The first sequence that is not empty (an empty one does not show what its positions would be)."""
    for sequence in X:
        size = sequence.shape[0] if hasattr(sequence, "shape") else getattr(sequence, "__len__", lambda: 1)()
        if size:
            return sequence
    return X[0]


def _is_numeric(sequence: Any) -> bool:
    if isinstance(sequence, np.ndarray):
        return sequence.dtype.kind in "fiub"
    if hasattr(sequence, "tocsr"):
        return True
    # A nested list of numbers: [[0.1, 0.2], [0.3, 0.4]]
    while isinstance(sequence, (list, tuple)) and sequence:
        sequence = sequence[0]
    return isinstance(sequence, (int, float, np.number))


def _arrow_numbers(X: Any) -> Sequences | None:
    """Arrow list<list<number>> or list<fixed_size_list<number>> as dense sequences; None for other types."""
    import pyarrow as pa

    outer = _one_chunk(X)
    tokens = outer.values
    kind = tokens.type
    if not (_is_list(kind) or pa.types.is_fixed_size_list(kind)):
        return None
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return None
    offsets = np.asarray(outer.offsets, dtype=np.int64)
    tokens = tokens.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    if outer.null_count or tokens.null_count:
        raise ValueError("the Arrow column holds null sequences or positions")
    flat = tokens.flatten()
    if flat.null_count:
        raise ValueError("the Arrow column holds null numbers")
    values = flat.to_numpy(zero_copy_only=False)
    widths = np.diff(np.asarray(tokens.offsets)) if _is_list(kind) else np.full(len(tokens), kind.list_size)
    if (widths != widths[:1]).any():
        raise ValueError("all positions must have the same number of features")
    width = int(widths[0]) if len(widths) else getattr(kind, "list_size", 0)
    return Sequences(values.reshape(len(tokens), width), offsets - offsets[0])
