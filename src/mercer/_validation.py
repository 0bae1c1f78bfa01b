"""Checks of arguments that many estimators share."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` if it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def check_not_negative(name: str, value: Any) -> float:
    """A finite number of at least zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
    return float(value)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def check_seed(seed: Any) -> int:
    """A seed of a hash: an integer from 0 to 2^64 − 1."""
    if check_count("seed", seed, 0) >= 1 << 64:
        raise ValueError(f"seed must be below 2^64, got {seed!r}")
    return int(seed)


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of the choices."""
    if isinstance(value, np.ndarray):  # which compares element by element
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got an array")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def hyphenated(name: Any) -> Any:
    """Return the name of a choice with hyphens: "mean_field" becomes "mean-field". Other objects do not change."""
    return name.replace("_", "-") if isinstance(name, str) else name


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's ``n_jobs``: None is 1, −1 all cores, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    if n_jobs > 0:
        return int(n_jobs)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available + 1 + int(n_jobs))


def group_order(groups: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows sorted by group, and the start of each group: group k is ``order[offsets[k]:offsets[k + 1]]``.

    None puts all ``n`` rows into one group. Within a group rows keep their order.
    """
    if groups is None:
        return np.arange(n), np.array([0, n], np.int64)
    names = np.asarray(groups)
    if names.ndim != 1 or len(names) != n:
        raise ValueError(f"groups must hold one value for each of the {n} rows, got an array of shape {names.shape}")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("groups must not hold NaN or infinite values")
    try:
        _, number, sizes = np.unique(names, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise ValueError("groups must be values of one kind that can be sorted, such as integers or strings") from error
    return np.argsort(number, kind="stable"), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def decreases(values: np.ndarray, *, strictly: bool = True) -> bool:
    """Return whether some value is below its predecessor (or equal to it, unless ``strictly``).

    Neighbours are compared, not subtracted: a difference of integers can wrap.

    Examples
    --------
    >>> decreases(np.array([1, 1, -(2**63)])), decreases(np.array([1, 1]), strictly=False)
    (True, True)
    """
    before, after = values[:-1], values[1:]
    return bool((after < before).any() if strictly else (after <= before).any())


def check_offsets(name: str, values: Any, end: int | None = None, *, part: bool = False) -> np.ndarray:
    """Return the offsets of stacked items as an int64 array: item i is ``offsets[i] .. offsets[i + 1]``.

    Parameters
    ----------
    name : str
        Name of the values in error messages.
    values : array of int
        Must start with 0, must not decrease, and must end with ``end``.
    end : int, optional
        Total size of the stack. By default the last value is not checked.
    part : bool, default=False
        Whether the offsets may cover a part of the stack: start above 0 and end below ``end``.

    Examples
    --------
    >>> check_offsets("offsets", [0, 2, 2], 2)
    array([0, 2, 2])
    """
    given = np.asarray(values)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a 1-D array of integers with at least one value")
    least, most = int(given.min()), int(given.max())
    bound = np.iinfo(np.int64).max if end is None else end
    fits = least >= 0 and most <= bound if part else given[0] == 0 and (end is None or given[-1] == end)
    if not fits or most > bound or decreases(given):
        span = f"lie in 0 .. {bound}" if part else "begin with 0" + ("" if end is None else f", end with {end}")
        raise ValueError(f"{name} must {span} and must not decrease")
    return given.astype(np.int64)


def check_sparse(name: str, matrix: Any) -> Any:
    """Check the index arrays of a sparse matrix and return it; return any other object unchanged.

    SciPy and compiled loops trust ``indptr`` and ``indices``: wrong ones make them read and write outside the arrays.

    Parameters
    ----------
    name : str
        Name of the matrix in error messages.
    matrix : object
        The input of an estimator.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X = csr_matrix([[1.0, 0.0], [0.0, 2.0]])
    >>> X.indptr[1] = 100
    >>> check_sparse("X", X)
    Traceback (most recent call last):
    ...
    ValueError: X is not a valid sparse matrix: indptr must begin with 0, end with 2 and must not decrease
    """
    kind = getattr(matrix, "format", None)
    if kind not in ("csr", "csc", "bsr", "coo") or not hasattr(matrix, "tocsr"):
        return matrix
    try:
        if kind == "coo":
            places = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
            for axis, (indices, size) in enumerate(zip(places, matrix.shape, strict=True)):
                _check_sparse_indices(f"the indices of axis {axis}", indices, len(matrix.data), size)
            return matrix
        rows, columns = matrix.shape[-2:] if len(matrix.shape) > 1 else (1, *matrix.shape)
        if kind == "bsr":
            height, width = matrix.data.shape[1:]
            rows, columns = rows // max(height, 1), columns // max(width, 1)
        elif kind == "csc":
            rows, columns = columns, rows
        offsets = check_offsets("indptr", matrix.indptr, len(matrix.indices))
        if len(offsets) != rows + 1:
            raise ValueError(f"indptr must hold {rows + 1} values, found {len(offsets)}")
        _check_sparse_indices("indices", matrix.indices, len(matrix.data), columns)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error
    return matrix


def _check_sparse_indices(name: str, indices: np.ndarray, count: int, size: int) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) != count:
        raise ValueError(f"{name} must be a 1-D array of {count} integers, one for each value")
    if count and (indices.min() < 0 or indices.max() >= size):
        raise ValueError(f"{name} must lie between 0 and {size - 1}")


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Return the weights of n examples as float64, or None if there are none.

    Raises
    ------
    ValueError
        If they are not n finite numbers of at least 0, or if all are 0.
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold a number for each of the {n} examples, got shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must hold finite numbers of at least 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for all examples: there is nothing to learn from")
    return weights


def used_examples(sample_weight: Any, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the indices of examples with positive weight, and these weights; None and None without weights.

    An example of weight 0 is removed before training, as if it were not in the data.
    """
    weights = check_weights(sample_weight, n)
    if weights is None:
        return None, None
    used = np.flatnonzero(weights)
    return used, weights[used]


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection or a list of delayed parts, without importing Dask."""
    if isinstance(X, list):
        return bool(X) and not isinstance(X[0], list) and is_dask(X[0])
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr", "distributed")


def is_partitioned(X: Any) -> bool:
    """Return whether X is partitioned: a Store, Partitions, a Dask collection, or a list of delayed parts."""
    return getattr(type(X), "__mercer_partitions__", False) or is_dask(X)
