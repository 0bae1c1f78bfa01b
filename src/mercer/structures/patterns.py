"""Patterns: the set of (feature, column) pairs that have a weight.

A pattern is None (all pairs) or ``(starts, columns)`` in CSR form: feature f owns the weights ``starts[f] .. starts[f
+ 1]``, for the ascending columns listed there, in 16-bit integers if these can hold all columns. Starts are 32-bit
integers, which the compiled loops use directly, or 64-bit integers. As a set of pairs it is a sorted array of keys
``feature · n_columns + column``.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.data.sequences import Rows

Pattern = tuple[np.ndarray, np.ndarray] | None

# A feature seen with this share of the columns gets all of them: its weights are then used as a dense row, which is
# faster.
FILL = 0.5


def observed(rows: Rows, columns: np.ndarray, n_columns: int) -> Pattern:
    """Return the pairs that occur together; ``columns[t]`` is the column of row t, −1 for any, −2 to skip the row."""
    if rows.dense is not None:
        return None
    assert rows.indptr is not None
    assert rows.indices is not None
    starts, kept = _core.linear.observed_pattern(rows.indptr, rows.indices, columns, rows.shape[1], n_columns, FILL)
    if starts is None or kept is None:
        return None
    for array in (starts, kept):  # compiled patterns check them once, and read them where they lie
        array.setflags(write=False)
    return starts, kept


def from_keys(keys_seen: np.ndarray, n_features: int, n_columns: int) -> Pattern:
    """Return the pattern of the given sorted keys, with rows filled up (see FILL)."""
    counts = np.bincount(keys_seen // n_columns, minlength=n_features)
    full = counts >= max(1.0, FILL * n_columns)
    if full.all():
        return None
    starts = np.concatenate([[0], np.cumsum(np.where(full, n_columns, counts))]).astype(np.int64)
    columns = np.empty(int(starts[-1]), np.uint16 if n_columns <= 1 << 16 else np.int32)
    dense = (starts[:-1][full][:, None] + np.arange(n_columns)).ravel()
    columns[dense] = np.tile(np.arange(n_columns), int(full.sum()))
    rest = np.ones(len(columns), bool)
    rest[dense] = False
    columns[rest] = keys_seen[~full[keys_seen // n_columns]] % n_columns
    return starts, columns


def keys(pattern: Pattern, n_features: int, n_columns: int) -> np.ndarray:
    """Return the pairs of a pattern as sorted keys, one for each weight."""
    if pattern is None:
        return np.arange(n_features * n_columns)
    starts, columns = pattern
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * n_columns + columns


def moved(keys_seen: np.ndarray, place: np.ndarray, n_columns: int) -> np.ndarray:
    """Return keys with column c mapped to ``place[c]`` of n_columns, in the same order, not sorted."""
    return (keys_seen // len(place)) * n_columns + place[keys_seen % len(place)]


def spread(weights: np.ndarray, at: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return weights of the keys ``at`` in the layout of the sorted keys ``target``; other keys are dropped."""
    out = np.zeros(len(target))
    if len(target):
        position = np.minimum(np.searchsorted(target, at), len(target) - 1)
        present = target[position] == at
        out[position[present]] = weights[present]
    return out


def from_file(value: object) -> Pattern:
    """Return a pattern from a model file: two arrays, which the compiled pattern checks."""
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != 2 or not all(isinstance(part, np.ndarray) for part in value):
        raise ValueError("a pattern of weights must be two arrays")
    return value


# What parts of the examples say about a pattern: sorted keys of pairs that were seen, and sorted numbers of features
# that were seen where the column is not known, which have a weight for every column.
Seen = tuple[np.ndarray, np.ndarray]


def seen(rows: Rows, columns: np.ndarray, n_columns: int) -> Seen | None:
    """Return the pairs that occur together in a partition; None for dense rows, which have all pairs."""
    if rows.dense is not None:
        return None
    assert rows.indptr is not None
    assert rows.indices is not None
    n_features, known = rows.shape[1], np.where(columns == -1, -2, columns).astype(np.int32)
    keys_seen = np.zeros(0, np.int64)
    if n_columns:
        never = 2.0  # no feature has all columns, whatever it was seen with
        starts, kept = _core.linear.observed_pattern(rows.indptr, rows.indices, known, n_features, n_columns, never)
        keys_seen = keys(None if starts is None or kept is None else (starts, kept), n_features, n_columns)
    anywhere = np.zeros(0, np.int64)
    if (columns == -1).any():
        of_row = np.repeat(columns == -1, np.diff(rows.indptr))
        anywhere = np.unique(rows.indices[of_row]).astype(np.int64)
    return keys_seen.astype(np.int64), anywhere


def placed(columns_seen: Seen, features: np.ndarray, columns: np.ndarray, n_columns: int) -> Seen:
    """Return the same with feature f mapped to ``features[f]``, and column c to ``columns[c]`` of n_columns."""
    pairs, anywhere = columns_seen
    features = features.astype(np.int64)
    if len(pairs):
        pairs = features[pairs // len(columns)] * n_columns + columns[pairs % len(columns)]
    return np.sort(pairs), np.sort(features[anywhere])


def joined(one: Seen, other: Seen) -> Seen:
    """Merge the pairs of two partitions."""
    return np.union1d(one[0], other[0]), np.union1d(one[1], other[1])


def from_seen(columns_seen: Seen, n_features: int, n_columns: int) -> Pattern:
    """Return the pattern of the merged pairs, with rows filled up (see FILL)."""
    pairs, anywhere = columns_seen
    if len(anywhere):
        pairs = np.union1d(pairs, (anywhere[:, None] * n_columns + np.arange(n_columns)).ravel())
    return from_keys(pairs, n_features, n_columns)
