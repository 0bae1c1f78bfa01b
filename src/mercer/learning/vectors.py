"""Allocation of the temporary vectors of solvers."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

_LARGE = 1 << 18  # bytes
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def zeros(n: int, dtype: Any = np.float64) -> np.ndarray:
    """Return a vector of zeros.

    A large vector has its own memory pages. They are allocated on first write and returned to the system with the
    vector, whereas an allocator would keep them.
    """
    size = n * np.dtype(dtype).itemsize
    if size < _LARGE:
        return np.zeros(n, dtype)
    try:
        return np.frombuffer(mmap.mmap(-1, size, **_PRIVATE), dtype)
    except OSError as error:
        raise MemoryError(f"no room for a vector of {size:,} bytes") from error
