"""Inputs of the hashing maps: columns of records and keys of streams, from NumPy, pandas, Arrow or its C interface.

String buffers are passed to the core without a copy. Dictionaries and categoricals are hashed once for each category.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer import _core

__all__ = ["add_column", "as_rows", "columns_of", "hash_keys", "row_count"]


def _is_from(thing: Any, library: str) -> bool:
    return type(thing).__module__.partition(".")[0] == library


# ------------------------------------------------------------------------------------------------ tables


def columns_of(X: Any) -> list[tuple[str, Any]] | None:
    """Return the columns of a table with their names; None if X consists of rows.

    Tables are pandas data frames, Arrow tables and record batches, data frames with an Arrow interface (Polars), dicts
    of columns and structured arrays.
    """
    columns: list[tuple[Any, Any]]
    if isinstance(X, np.ndarray):
        if X.dtype.names is None:
            if X.dtype == object and X.ndim == 1:
                return None  # an array of dicts
            raise TypeError(
                f"expected records (dicts, pairs) or named columns, found an array of {X.dtype} and shape {X.shape}; "
                "numbers without names need no hashing of names: use the array as it is"
            )
        if X.ndim != 1:
            raise ValueError(f"a structured array of records must have one dimension, found shape {X.shape}")
        columns = [(name, X[name]) for name in X.dtype.names]
    elif _is_from(X, "pandas"):
        if not hasattr(X, "columns"):
            raise TypeError(f"expected a data frame, found {type(X).__name__}")
        columns = [(name, X.iloc[:, i]) for i, name in enumerate(X.columns)]
    elif _is_from(X, "pyarrow"):
        if not hasattr(X, "column_names"):
            raise TypeError(f"expected an Arrow table or record batch, found {type(X).__name__}")
        columns = list(zip(X.column_names, X.columns, strict=True))
    elif hasattr(X, "__arrow_c_stream__"):
        import pyarrow as pa

        table = pa.table(X)
        columns = list(zip(table.column_names, table.columns, strict=True))
    elif isinstance(X, Mapping):
        columns = list(X.items())
    else:
        return None
    if not columns and len(X) > 0:
        raise ValueError(f"the table has {len(X)} rows and no columns")
    return _checked(columns)


def _checked(columns: list[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    seen = set()
    for name, column in columns:
        if not isinstance(name, str):
            raise TypeError(f"names of columns must be strings, found {name!r}")
        if name in seen:
            raise ValueError(f"two columns are called {name!r}")
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
            raise TypeError(
                f"field {name!r}: expected a column (an array or a list), found {type(column).__name__}; "
                "a single record goes in a list: [record]"
            )
        seen.add(name)
    return columns


def row_count(columns: list[tuple[str, Any]]) -> int:
    """Return the number of rows, which all columns must share."""
    if not columns:
        return 0
    first, rows = columns[0][0], len(columns[0][1])
    for name, column in columns:
        if len(column) != rows:
            raise ValueError(f"field {name!r} has {len(column)} rows, field {first!r} has {rows}")
    return rows


def as_rows(columns: list[tuple[str, Any]], begin: int, end: int) -> list[list[tuple[str, Any]]]:
    """Return rows begin .. end as lists of (name, value) pairs, for code that reads only rows."""
    names = [name for name, _ in columns]
    values = [_as_list(column[begin:end]) for _, column in columns]
    return [list(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _as_list(column: Any) -> list[Any]:
    if _is_from(column, "pandas"):
        column = _series(column)
        text = _category_text if column.dtype.name == "category" else _same
        known = column.notna().tolist()
        return [text(item) if good else None for item, good in zip(column.tolist(), known, strict=True)]
    if _is_from(column, "pyarrow"):
        import pyarrow as pa

        text = _category_text if pa.types.is_dictionary(column.type) else _same
        return [None if item is None else text(item) for item in column.to_pylist()]
    if hasattr(column, "tolist"):
        return column.tolist()
    return column.to_list() if hasattr(column, "to_list") else list(column)


def _same(item: Any) -> Any:
    return item


def _category_text(item: Any) -> Any:
    return item if isinstance(item, (str, bytes)) else _core.hashing.number_text(item)


# ------------------------------------------------------------------------------------------------ one column


def add_column(core: Any, name: str, column: Any, seed: int, *, categories: bool, single: bool) -> None:
    """Add a column to `_core.hashing.RecordColumns`."""
    if _is_from(column, "pandas"):
        _add_pandas(core, name, column, seed, categories, single)
    elif _is_from(column, "pyarrow") or hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__"):
        _add_arrow(core, name, column, seed, categories)
    elif isinstance(column, np.ndarray):
        _add_numpy(core, name, column, None, categories, single)
    else:
        core.add_objects(name, column if isinstance(column, (list, tuple)) else list(column), single)


def _add_numpy(
    core: Any, name: str, column: np.ndarray, valid: np.ndarray | None, categories: bool, single: bool
) -> None:
    if column.ndim != 1:
        raise ValueError(f"field {name!r}: expected a column of one dimension, found shape {column.shape}")
    kind = column.dtype.kind
    masked = isinstance(column, np.ma.MaskedArray)  # its list has None where it is masked
    if kind in "US" and not masked:
        core.add_fixed(name, _cells(column))
    elif kind == "O" and not masked:
        core.add_objects(name, np.ascontiguousarray(column), single)
    elif kind == "T" or masked:
        core.add_objects(name, column.tolist(), single)
    elif kind in "iub" and categories:
        wide = np.uint64 if column.dtype == np.uint64 else np.int64
        core.add_integers(name, np.ascontiguousarray(column, dtype=wide), valid)
    elif kind in "iubf":
        core.add_numbers(name, np.ascontiguousarray(column, dtype=np.float64), valid)
    else:
        raise TypeError(
            f"field {name!r}: cannot read a column of dtype {column.dtype}; expected strings, numbers, bools or objects"
        )


def _cells(column: np.ndarray) -> np.ndarray:
    """Strings of fixed length as an array of code points or bytes."""
    unit = np.uint32 if column.dtype.kind == "U" else np.uint8
    width = column.dtype.itemsize // np.dtype(unit).itemsize
    if not width or not len(column):
        return np.zeros((len(column), width), unit)
    native = np.ascontiguousarray(column.astype(column.dtype.newbyteorder("="), copy=False))
    return native.view(unit).reshape(len(column), width)


def _series(column: Any) -> Any:
    """A series from what pandas has: series, indexes, arrays of its own."""
    import pandas as pd

    return column if isinstance(column, pd.Series) else pd.Series(column)


def _add_pandas(core: Any, name: str, column: Any, seed: int, categories: bool, single: bool) -> None:
    column = _series(column)
    dtype = column.dtype
    plain = isinstance(dtype, np.dtype)
    if dtype.name == "category":
        codes = np.ascontiguousarray(column.cat.codes.to_numpy(), dtype=np.int32)
        core.add_codes(name, codes, _core.hashing.hash_categories(column.cat.categories.tolist(), seed, name))
    elif plain and dtype.kind != "O":
        _add_numpy(core, name, column.to_numpy(), None, categories, single)
    elif hasattr(dtype, "pyarrow_dtype"):
        _add_arrow(core, name, column.array.__arrow_array__(), seed, categories)
    elif not plain and dtype.kind in "iubf":  # the extension types of numbers, with missing values
        valid = column.notna().to_numpy()
        filled = column.to_numpy(dtype={"u": np.uint64, "f": np.float64}.get(dtype.kind, np.int64), na_value=0)
        _add_numpy(core, name, filled, None if valid.all() else valid, categories, single)
    elif not plain and hasattr(column.array, "__arrow_array__") and _has_arrow():
        _add_arrow(core, name, column.array.__arrow_array__(), seed, categories)
    else:
        known = column.notna().tolist()
        values = [value if good else None for value, good in zip(column.tolist(), known, strict=True)]
        core.add_objects(name, values, single)


def _has_arrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _one_array(column: Any) -> Any:
    """An Arrow array from an array, a chunked array or what speaks Arrow; strings of any layout with their offsets."""
    import pyarrow as pa

    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
    kind = str(column.type)
    if kind in ("string_view", "binary_view") or (_is_short_text(column.type) and column.nbytes >= 2**31 - 1):
        column = column.cast(pa.large_binary() if kind.startswith("binary") else pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column


def _is_short_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_binary(kind)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return _is_short_text(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _valid(array: Any) -> np.ndarray | None:
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _text_buffers(array: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and offsets of an Arrow array of strings, where they are."""
    import pyarrow as pa

    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    bounds = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), bounds


def _add_arrow(core: Any, name: str, column: Any, seed: int, categories: bool) -> None:
    import pyarrow as pa

    if pa.types.is_dictionary(getattr(column, "type", pa.null())):
        _add_dictionary(core, name, column, seed)
        return
    array = _one_array(column)
    kind = array.type
    if _is_text(kind):
        core.add_text(name, *_text_buffers(array), _valid(array))
    elif pa.types.is_dictionary(kind):
        _add_dictionary(core, name, array, seed)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _add_arrow_lists(core, name, array, seed)
    elif pa.types.is_null(kind):
        core.add_codes(name, np.full(len(array), -1, np.int32), np.zeros(0, np.uint64))
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        valid = _valid(array)
        filled = array.fill_null(False if pa.types.is_boolean(kind) else 0) if array.null_count else array
        _add_numpy(core, name, filled.to_numpy(zero_copy_only=False), valid, categories, False)
    else:
        raise TypeError(f"field {name!r}: cannot read an Arrow column of {kind}; expected strings, numbers or bools")


def _add_dictionary(core: Any, name: str, column: Any, seed: int) -> None:
    """Categories and codes; every chunk has a dictionary of its own."""
    codes, hashes, before = [], [], 0
    for chunk in column.chunks if hasattr(column, "chunks") else [column]:
        numbers = chunk.indices.fill_null(-1) if chunk.indices.null_count else chunk.indices
        wide = numbers.to_numpy().astype(np.int32, copy=False)
        codes.append(np.where(wide >= 0, wide + np.int32(before), wide) if before else wide)
        hashes.append(_category_hashes(chunk.dictionary, seed, name))
        before += len(chunk.dictionary)
    if not codes:
        codes, hashes = [np.zeros(0, np.int32)], [np.zeros(0, np.uint64)]
    core.add_codes(name, *(parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in (codes, hashes)))


def _category_hashes(dictionary: Any, seed: int, name: str) -> np.ndarray:
    dictionary = _one_array(dictionary)
    if _is_text(dictionary.type) and not dictionary.null_count:
        return _core.hashing.hash_utf8(*_text_buffers(dictionary), seed)
    return _core.hashing.hash_categories(dictionary.to_pylist(), seed, name)


def _add_arrow_lists(core: Any, name: str, array: Any, seed: int) -> None:
    if not _is_text(array.type.value_type):
        raise TypeError(f"field {name!r}: expected lists of strings, found an Arrow column of {array.type}")
    lengths = array.value_lengths().fill_null(0).to_numpy()
    strings = _one_array(array.flatten())
    if strings.null_count:
        raise ValueError(f"field {name!r}: a list holds a null string")
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    core.add_lists(name, starts, _core.hashing.hash_utf8(*_text_buffers(strings), seed))


# ------------------------------------------------------------------------------------------------ keys


def hash_keys(keys: Any, seed: int) -> tuple[np.ndarray, bool]:
    """Return the hashes of one or many keys, and whether it was one: text by its bytes, integers by value."""
    if isinstance(keys, (str, bytes, int, np.integer)):
        return _core.hashing.hash_keys([keys], seed), True
    if isinstance(keys, np.ndarray):
        return _hash_key_array(keys, seed), False
    if _is_from(keys, "pandas"):
        keys = _series(keys)
        array = keys.array
        if isinstance(keys.dtype, np.dtype):
            return _hash_key_array(keys.to_numpy(), seed), False
        if keys.isna().any():
            raise ValueError("keys must not hold missing values")
        keys = array.__arrow_array__() if hasattr(array, "__arrow_array__") and _has_arrow() else keys.tolist()
    if _is_from(keys, "pyarrow") or hasattr(keys, "__arrow_c_stream__") or hasattr(keys, "__arrow_c_array__"):
        return _hash_arrow_keys(keys, seed), False
    return _core.hashing.hash_keys(keys if isinstance(keys, (list, tuple)) else list(keys), seed), False


def _hash_key_array(keys: np.ndarray, seed: int) -> np.ndarray:
    if keys.ndim != 1:
        raise ValueError(f"keys must have one dimension, found shape {keys.shape}")
    if keys.dtype.kind in "US":
        return _core.hashing.hash_fixed(_cells(keys), seed)
    if keys.dtype.kind in "iu":
        wide = keys.astype(np.uint64 if keys.dtype.kind == "u" else np.int64, copy=False)
        return _core.hashing.hash_numbers(np.ascontiguousarray(wide).view(np.uint64), seed)
    if keys.dtype.kind in "OT":
        return _core.hashing.hash_keys(keys.tolist(), seed)
    raise TypeError(f"keys must be strings, bytes or integers, found an array of dtype {keys.dtype}")


def _hash_arrow_keys(keys: Any, seed: int) -> np.ndarray:
    import pyarrow as pa

    array = _one_array(keys)
    if array.null_count:
        raise ValueError("keys must not hold missing values")
    if pa.types.is_dictionary(array.type):
        return _hash_arrow_keys(array.dictionary, seed)[array.indices.to_numpy()]
    if _is_text(array.type):
        return _core.hashing.hash_utf8(*_text_buffers(array), seed)
    if pa.types.is_integer(array.type):
        return _hash_key_array(array.to_numpy(), seed)
    raise TypeError(f"keys must be strings, bytes or integers, found an Arrow column of {array.type}")
