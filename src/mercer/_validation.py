"""Checks of arguments that many estimators share."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of the choices."""
    if isinstance(value, np.ndarray):  # which compares element by element
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got an array")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def hyphenated(name: Any) -> Any:
    """The name of a choice as it is listed, with hyphens: "mean_field" is "mean-field". Other objects stay."""
    return name.replace("_", "-") if isinstance(name, str) else name


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's ``n_jobs``: None is 1, −1 all cores, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    if n_jobs > 0:
        return int(n_jobs)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available + 1 + int(n_jobs))


def group_order(groups: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows sorted by group, and where each group begins: group k is ``order[offsets[k]:offsets[k + 1]]``.

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
