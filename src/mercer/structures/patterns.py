"""Which (feature, column) pairs have a weight.

A pattern is None (all pairs) or ``(starts, columns)`` in CSR form: feature f owns the weights ``starts[f] .. starts[f + 1]``, for the
ascending columns listed there. As a set of pairs it is a sorted array of keys ``feature · n_columns + column``.
"""

from __future__ import annotations

import numpy as np

from mercer.data.sequences import Rows

Pattern = tuple[np.ndarray, np.ndarray] | None

# A feature seen with this share of the columns gets all of them: its weights are then used as a dense row, which is faster.
FILL = 0.5


def observed(rows: Rows, columns: np.ndarray, n_columns: int) -> Pattern:
    """The pairs that occur together; ``columns[t]`` is the column of row t, −1 for any, −2 for a row to leave out."""
    if rows.dense is not None:
        return None
    assert rows.indptr is not None and rows.indices is not None
    repeated = np.repeat(columns, np.diff(rows.indptr))
    known = repeated >= 0
    features = rows.indices
    found = _distinct(features[known].astype(np.int64) * n_columns + repeated[known], rows.shape[1] * n_columns)
    everywhere = np.zeros(rows.shape[1], bool)
    everywhere[features[repeated == -1]] = True
    return from_keys(found, rows.shape[1], n_columns, everywhere)


def from_keys(found: np.ndarray, n_features: int, n_columns: int, everywhere: np.ndarray | None = None) -> Pattern:
    """A pattern of the given sorted keys, of the features that go with every column, and of rows filled up (see FILL)."""
    counts = np.bincount(found // n_columns, minlength=n_features)
    full = counts >= max(1.0, FILL * n_columns)
    if everywhere is not None:
        full |= everywhere
    if full.all():
        return None
    starts = np.concatenate([[0], np.cumsum(np.where(full, n_columns, counts))]).astype(np.int64)
    columns = np.empty(int(starts[-1]), np.int32)
    dense = (starts[:-1][full][:, None] + np.arange(n_columns)).ravel()
    columns[dense] = np.tile(np.arange(n_columns, dtype=np.int32), int(full.sum()))
    rest = np.ones(len(columns), bool)
    rest[dense] = False
    columns[rest] = found[~full[found // n_columns]] % n_columns
    return starts, columns


def keys(pattern: Pattern, n_features: int, n_columns: int) -> np.ndarray:
    """The pairs of a pattern as sorted keys, one for each weight."""
    if pattern is None:
        return np.arange(n_features * n_columns)
    starts, columns = pattern
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * n_columns + columns


def moved(found: np.ndarray, place: np.ndarray, n_columns: int) -> np.ndarray:
    """Keys after column c has become column ``place[c]`` of n_columns; the order of the keys is kept, not sorted."""
    return (found // len(place)) * n_columns + place[found % len(place)]


def spread(weights: np.ndarray, at: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights of the keys ``at`` in the layout of the sorted keys ``target``; keys not in the target are left out."""
    out = np.zeros(len(target))
    if len(target):
        position = np.minimum(np.searchsorted(target, at), len(target) - 1)
        found = target[position] == at
        out[position[found]] = weights[found]
    return out


def _distinct(found: np.ndarray, limit: int) -> np.ndarray:
    """Sorted distinct keys in [0, limit)."""
    if limit <= 1 << 28:  # a byte map is faster than sorting while it is small
        seen = np.zeros(limit, bool)
        seen[found] = True
        return np.flatnonzero(seen)
    return np.unique(found)
