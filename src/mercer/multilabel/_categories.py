"""Tables of categories as integer codes: from data frames, dicts of columns, arrays of numbers or of objects.

None, NaN and negative integers are missing values. Numbers are categories here: 3 and 3.0 are the same category.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["columns_of_table", "encode_column", "factorize", "place_of_column"]


def columns_of_table(table: Any) -> tuple[list[str] | None, list[Any]]:
    """Return the names (None if the table has none) and the columns of a table."""
    if isinstance(table, Mapping):
        names, columns = [str(name) for name in table], list(table.values())
    elif hasattr(table, "columns") and hasattr(table, "shape"):  # pandas, polars
        names = [str(name) for name in table.columns]
        columns = [table[name] for name in table.columns]
    else:
        array = np.asarray(table, dtype=None if isinstance(table, np.ndarray) else object)
        if array.ndim != 2:
            raise ValueError(f"the table must have two dimensions, rows and columns, got {array.ndim}")
        names, columns = None, list(array.T)
    if not columns:
        raise ValueError("the table has no columns")
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of the table have different lengths: {sorted(lengths)}")
    if lengths == {0}:
        raise ValueError("the table has no rows")
    return names, columns


def factorize(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (−1 for missing values) and the sorted categories."""
    values = _plain(column)
    if isinstance(values, tuple):  # codes and categories of a data frame
        codes, categories = values
        used = np.bincount(codes[codes >= 0], minlength=len(categories)) > 0
        if not used.all():
            place = np.where(used, np.cumsum(used) - 1, -1)
            codes, categories = np.where(codes >= 0, place[codes], -1), categories[used]
        return codes.astype(np.int32), categories
    if values.dtype.kind in "iu":
        return _factorize_integers(values)
    lookup: dict[Any, int] = {}
    codes = np.fromiter(
        (-1 if v is None or v != v else lookup.setdefault(v, len(lookup)) for v in values.tolist()),
        np.int32,
        len(values),
    )
    categories = _category_array(list(lookup))
    try:
        order = np.argsort(categories, kind="stable")
    except TypeError:
        order = np.argsort([str(c) for c in lookup], kind="stable")
    place = np.empty(len(order) + 1, np.int32)
    place[order] = np.arange(len(order))
    place[-1] = -1
    return place[codes], categories[order]


def encode_column(column: Any, categories: np.ndarray, name: str, unknown: str) -> np.ndarray:
    """Return the codes of a column by known categories; an unknown category is missing, or raises ValueError."""
    codes, own = factorize(column)
    lookup = {value: i for i, value in enumerate(categories.tolist())}
    place = np.array([lookup.get(value, -1) for value in own.tolist()] + [-1], np.int32)
    if unknown == "error" and (place[:-1] < 0).any():
        new = own.tolist()[int(np.flatnonzero(place[:-1] < 0)[0])]
        raise ValueError(
            f"column {name!r} has the category {new!r}, which training did not have; handle_unknown='missing' takes"
            " it as missing"
        )
    return place[codes]


def place_of_column(column: Any, names: list[str], what: str) -> int:
    """Return the number of a column given by name or number."""
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if not 0 <= column < len(names):
            raise ValueError(f"{what} names column {column}, but there are {len(names)} columns")
        return int(column)
    if column not in names:
        raise ValueError(f"{what} names {column!r}, which is no column of the table")
    return names.index(column)


def _plain(column: Any) -> Any:
    """A column as an array, or its codes and categories where a data frame knows them."""
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # categories of pandas
        return np.asarray(column.cat.codes), _category_array(list(column.cat.categories))
    if hasattr(column, "to_numpy"):
        if hasattr(column, "factorize"):  # pandas: hashes in C
            codes, values = column.factorize(sort=False)
            values = list(values)
            numbers = all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values)
            if numbers and any(v < 0 for v in values):
                return np.asarray(column.to_numpy())
            order = sorted(range(len(values)), key=lambda i: values[i] if numbers else str(values[i]))
            place = np.empty(len(order) + 1, np.int64)
            place[np.array(order, np.int64)] = np.arange(len(order))
            place[-1] = -1
            return place[codes], _category_array([values[i] for i in order])
        column = column.to_numpy()
    array = np.asarray(column)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        finite = array[np.isfinite(array)]
        if len(finite) == len(array) and (array == np.floor(array)).all() and np.abs(array).max() < 2**31:
            return array.astype(np.int64)
    return array.astype(object) if array.dtype.kind in "USf" else array


def _factorize_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    present = values[values >= 0]
    most = int(present.max(initial=-1))
    if most >= max(1 << 16, 4 * len(values)):
        categories, inverse = np.unique(values, return_inverse=True)
        missing = int((categories < 0).sum())
        return np.where(inverse < missing, -1, inverse - missing).astype(np.int32), categories[missing:]
    used = np.bincount(present, minlength=most + 1) > 0
    place = np.concatenate([np.where(used, np.cumsum(used) - 1, -1), [-1]]).astype(np.int32)
    return place[np.where(values >= 0, values, -1)], np.flatnonzero(used)


def _category_array(values: list[Any]) -> np.ndarray:
    """An array of categories: integers where all are whole numbers, else strings or objects' strings."""
    plain = [v.item() if isinstance(v, np.generic) else v for v in values]
    if plain and all(isinstance(v, (int, float)) for v in plain):
        if all(float(v).is_integer() for v in plain):
            return np.array([int(v) for v in plain], np.int64)
        return np.array([float(v) for v in plain])
    return np.array([str(v) for v in plain]) if plain else np.zeros(0, np.int64)
