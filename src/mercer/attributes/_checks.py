"""Checks of tables and similarities of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from mercer._validation import check_sparse, used_examples

__all__ = ["check_classes", "check_proximity", "check_similarity", "check_table", "feature_rows", "used_rows"]


def feature_rows(X: Any) -> Any:
    """X as a finite dense or CSR matrix of float64."""
    return check_array(check_sparse("X", X), accept_sparse="csr", dtype=np.float64, input_name="X")


def check_classes(y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of y, sorted, and the place of each row among them; there must be two or more."""
    y = column_or_1d(y)
    if len(y) != n:
        raise ValueError(f"X has {n} rows and y {len(y)}: they must be of one length")
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {classes.tolist()[0]!r}")
    return classes, labels


def used_rows(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray | None]:
    """Rows with a weight above 0, their classes and these weights."""
    used, weights = used_examples(sample_weight, X.shape[0])
    if used is None:
        return X, y, None
    y = column_or_1d(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y {len(y)}: they must be of one length")
    return X[used], y[used], weights


def check_proximity(S: Any) -> np.ndarray:
    """Return S as a symmetric nonnegative matrix with a diagonal of 0."""
    S = _matrix_of("S", S)
    if S.shape[0] != S.shape[1]:
        raise ValueError(f"S must be square, a row and a column for each class, got shape {S.shape}")
    if (S < 0).any():
        i, j = np.argwhere(S < 0)[0]
        raise ValueError(f"S must not be negative, found {S[i, j]:g} between classes {i} and {j}")
    uneven = np.abs(S - S.T) > 1e-8 * max(float(S.max(initial=0.0)), 1e-300)
    if uneven.any():
        i, j = np.argwhere(uneven)[0]
        raise ValueError(
            f"S must be symmetric: S[{i}, {j}] = {S[i, j]:g} and S[{j}, {i}] = {S[j, i]:g}; (S + S.T) / 2 is"
        )
    S = (S + S.T) / 2.0
    np.fill_diagonal(S, 0.0)
    return S


def check_similarity(name: str, similarity: Any, n_known: int, novel: np.ndarray | None = None) -> np.ndarray:
    """Return similarities (n_new, n_known) of new classes to known ones; those of several people (3-D) are averaged."""
    array = np.asarray(similarity, dtype=np.float64) if not hasattr(similarity, "to_numpy") else similarity.to_numpy()
    array = np.asarray(array, np.float64)
    if array.ndim == 3:
        if not len(array):
            raise ValueError(f"{name} must be of at least one person")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity")
        array = array.mean(axis=0)
    array = _matrix_of(name, array)
    if array.shape[1] != n_known:
        raise ValueError(f"{name} must have a column for each of the {n_known} known classes, got {array.shape[1]}")
    if novel is not None and len(array) != len(novel):
        raise ValueError(f"{name} must have a row for each of the {len(novel)} new classes, got {len(array)}")
    if (array < 0).any():
        i, j = np.argwhere(array < 0)[0]
        raise ValueError(f"{name} must not be negative, found {array[i, j]:g} in row {i}, column {j}")
    if not array.any(axis=1).all():
        i = int(np.flatnonzero(~array.any(axis=1))[0])
        label = f"new class {novel.tolist()[i]!r}" if novel is not None else f"new class {i}"
        raise ValueError(f"{name}: {label} is similar to no known class: give it at least one positive similarity")
    return array


def check_table(name: str, table: Any, n_classes: int, classes: np.ndarray | None = None) -> np.ndarray:
    """A table (n_classes, n_attributes) of finite numbers."""
    table = _matrix_of(name, table.to_numpy() if hasattr(table, "to_numpy") else table)
    if len(table) != n_classes:
        listed = "" if classes is None else f" ({', '.join(map(str, classes[:5]))}{', …' if n_classes > 5 else ''})"
        raise ValueError(f"{name} must have a row for each of the {n_classes} classes{listed}, got {len(table)}")
    return table


def _matrix_of(name: str, values: Any) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a matrix of numbers") from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must be a matrix with at least one row and column, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array
