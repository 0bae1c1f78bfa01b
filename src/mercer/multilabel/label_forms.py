"""Conversion of label sets to a CSR matrix of 0 and 1, with a column for each label, and back.

Accepted formats are an indicator matrix (array, sparse matrix or data frame), a list of label sets, and a column of
lists of a data frame. Predictions have the format of the training labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._validation import check_count, check_sparse

__all__ = ["FORMS", "distinct", "encode", "fit_labels", "give", "indicator", "top_labels"]

_PACKED = 1 << 26  # cells of a matrix of labels that may be held as bits
FORMS = ("dense", "sparse", "sets", "lists")


def fit_labels(Y: Any, n: int | None = None, used: np.ndarray | None = None) -> tuple[sp.csr_matrix, np.ndarray, str]:
    """Return the indicator matrix of training labels, the labels and their format, from the rows ``used`` only.

    Raise ValueError for a matrix with other numbers than 0 and 1, a wrong number of rows, or no labels.
    """
    form = _form_of(Y)
    if form in ("sets", "lists"):
        sets = _sets(Y)
        if used is not None and len(sets) == n:
            sets, n = [sets[i] for i in used.tolist()], len(used)
        classes = _classes(sets)
        matrix = indicator_rows(sets, {label: i for i, label in enumerate(classes.tolist())}, len(classes), strict=True)
    else:
        names = getattr(Y, "columns", None)
        matrix = indicator("Y", Y)
        if used is not None and matrix.shape[0] == n:
            matrix, n = matrix[used], len(used)
        classes = np.arange(matrix.shape[1]) if names is None else np.array([str(name) for name in names])
    if n is not None and matrix.shape[0] != n:
        raise ValueError(f"X has {n} rows and Y {matrix.shape[0]}: they must be of one length")
    if n == 0:
        raise ValueError("X is empty: there is nothing to learn from")
    if matrix.shape[1] == 0:
        raise ValueError("Y has no label: at least one row must have one, or the matrix a column")
    return matrix, classes, form


def encode(model: Any, Y: Any, name: str = "Y") -> sp.csr_matrix:
    """Return the indicator matrix of true labels for a fitted model; raise ValueError for unknown labels."""
    classes = model.classes_
    if _form_of(Y) in ("sets", "lists"):
        return indicator_rows(
            _sets(Y), {label: i for i, label in enumerate(classes.tolist())}, len(classes), strict=True
        )
    matrix = indicator(name, Y)
    if matrix.shape[1] != len(classes):
        raise ValueError(f"{name} has {matrix.shape[1]} columns, but the model has {len(classes)} labels")
    return matrix


def indicator(name: str, Y: Any) -> sp.csr_matrix:
    """Return a float64 CSR matrix of 0 and 1 from an array, a frame or a sparse matrix."""
    if sp.issparse(Y):
        matrix = sp.csr_matrix(check_sparse(name, Y)).astype(np.float64)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        values = matrix.data
    else:
        array = np.asarray(Y)
        if array.ndim != 2:
            raise ValueError(f"{name} must be a matrix with a column for each label, got {array.ndim} dimensions")
        if array.dtype.kind not in "biuf":
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"{name} must be a matrix of 0 and 1, or a list of label sets") from None
        values = array
        matrix = None
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"{name} holds NaN: a label is there (1) or not (0)")
    if not ((values == 0) | (values == 1)).all():
        bad = values[(values != 0) & (values != 1)].ravel()[0]
        raise ValueError(f"{name} must hold 0 and 1 only, found {bad}")
    return sp.csr_matrix(array, dtype=np.float64) if matrix is None else matrix


def give(matrix: sp.csr_matrix, classes: np.ndarray, form: str) -> Any:
    """Return label sets in one of the `FORMS`."""
    if form == "sparse":
        return matrix.astype(np.int64)
    if form == "dense":
        return matrix.toarray().astype(np.int64)
    matrix = matrix.sorted_indices()
    labels = classes.tolist()
    starts = matrix.indptr.tolist()
    flat = [labels[i] for i in matrix.indices.tolist()]
    rows = (flat[a:b] for a, b in pairwise(starts))
    return [set(row) for row in rows] if form == "sets" else list(rows)


def top_labels(scores: np.ndarray, k: int) -> sp.csr_matrix:
    """Return the k labels of each row with the largest scores; ties go to the first."""
    n, T = scores.shape
    k = check_count("n_labels", k)
    if k > T:
        raise ValueError(f"n_labels is {k}, but there are {T} labels")
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    indices = np.sort(order, axis=1).ravel()
    return sp.csr_matrix((np.ones(n * k), indices, np.arange(0, n * k + 1, k)), shape=(n, T))


def distinct(labels: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the distinct rows of a 0/1 matrix, in order of first occurrence, and the index of each row among them."""
    n, T = labels.shape
    if n * T <= _PACKED:
        packed = np.packbits(labels.toarray() > 0, axis=1)
        keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return labels[first[order]].sorted_indices(), rank[kind.ravel()]
    labels = labels.sorted_indices()
    starts, flat = labels.indptr.tolist(), labels.indices
    seen: dict[bytes, int] = {}
    kind = np.fromiter((seen.setdefault(flat[a:b].tobytes(), len(seen)) for a, b in pairwise(starts)), np.int64, n)
    return labels[np.unique(kind, return_index=True)[1]], kind


# ---------------------------------------------------------------------------------------------------- sets


def _form_of(Y: Any) -> str:
    if sp.issparse(Y):
        return "sparse"
    if hasattr(Y, "columns"):
        return "dense"
    if isinstance(Y, (str, bytes, dict)) or not isinstance(Y, Iterable):
        raise ValueError(f"Y must be a matrix of 0 and 1, or a list of label sets, got {type(Y).__name__}")
    if isinstance(Y, np.ndarray) and Y.dtype.kind != "O":
        return "dense"
    if isinstance(Y, np.ndarray) and Y.ndim == 2:
        return "dense"
    rows = list(Y) if not isinstance(Y, Sequence) else Y
    first = next((row for row in rows if row is not None), None)
    if isinstance(first, (list, tuple, np.ndarray)) and len(first) > 1:
        flat = [value for row in rows if isinstance(row, (list, tuple, np.ndarray)) for value in row]
        same = len({len(row) for row in rows if hasattr(row, "__len__")}) == 1
        if same and all(isinstance(v, (int, float, np.number, np.bool_)) and v in (0, 1) for v in flat):
            return "dense"  # rows of 0 and 1 of one length
    return "sets" if isinstance(first, (set, frozenset)) else "lists"


def _sets(Y: Any) -> list[list[Any]]:
    sets = []
    for i, row in enumerate(Y):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise ValueError(f"row {i} of Y must be a collection of labels, got {row!r}")
        labels = [label.item() if isinstance(label, np.generic) else label for label in row]
        for label in labels:
            if isinstance(label, bool) or not isinstance(label, (str, int)):
                raise ValueError(f"labels must be strings or integers, found {label!r} in row {i} of Y")
        sets.append(labels)
    return sets


def _classes(sets: list[list[Any]]) -> np.ndarray:
    labels = {label for row in sets for label in row}
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise ValueError("labels must be all strings or all integers")
    return np.array(sorted(labels)) if labels else np.zeros(0, np.int64)


def indicator_rows(sets: list[list[Any]], place: dict[Any, int], T: int, strict: bool) -> sp.csr_matrix:
    indices, starts = [], [0]
    for i, row in enumerate(sets):
        for label in row:
            if label not in place:
                raise ValueError(f"row {i} of Y has the label {label!r}, which the model does not know")
        indices.extend(sorted({place[label] for label in row}))
        starts.append(len(indices))
    return sp.csr_matrix((np.ones(len(indices)), np.array(indices, np.int64), starts), shape=(len(sets), T))
