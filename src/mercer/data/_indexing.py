"""Index keys of containers: an int, a slice, a list of ints or a boolean mask."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["chosen_items"]


def chosen_items(key: Any, n: int, what: str) -> int | slice | np.ndarray:
    """Return the item, the slice (with start, stop and step 1) or the array of items that a key selects.

    Parameters
    ----------
    key : object
        The index; ``key, ...`` is treated as ``key``, as scikit-learn writes it.
    n : int
        Number of items.
    what : str
        Name of the items in messages.

    Examples
    --------
    >>> chosen_items(-1, 3, "sequences"), chosen_items([True, False, True], 3, "sequences")
    (2, array([0, 2]))
    """
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]
    if isinstance(key, (int, np.integer)):
        return range(n)[int(key)]
    if isinstance(key, slice):
        start, stop, step = key.indices(n)
        if step == 1:
            return slice(start, max(start, stop), 1)
        key = np.arange(start, stop, step)
    chosen = np.asarray(key)
    if chosen.dtype == bool:
        if chosen.shape != (n,):
            raise IndexError(f"a mask needs {n} values, found shape {chosen.shape}")
        chosen = np.flatnonzero(chosen)
    if chosen.size == 0:
        chosen = chosen.astype(np.int64)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise IndexError("index with an int, a slice, a list of ints or a mask")
    if len(chosen) and (chosen.max() >= n or chosen.min() < -n):
        raise IndexError(f"index out of range for {n} {what}")
    return np.where(chosen < 0, chosen + n, chosen)
