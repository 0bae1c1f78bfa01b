"""Limits of model files: the size of a description, its nesting depth, and the memory that a file may allocate.

A file of two kilobytes can describe a table of two gigabytes. So `mercer.load` opens a `budget`. Code that builds an
object whose size comes from a file first calls `reserve` with the number of bytes. The sum must stay within the budget.
Outside of `mercer.load` there is no budget, and `reserve` does nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from mercer.exceptions import TooLargeError

__all__ = ["budget", "default_budget", "reserve"]

HEADER_BYTES = 8 * 2**20
"""JSON of this size makes some hundreds of MB of Python objects at worst; what is large belongs in arrays."""

NESTING = 50
"""Levels of lists and objects in a description."""

VALUE_NESTING = 40
"""Levels of values within values, such as a kernel made of kernels."""

DIMENSIONS = 32
"""Dimensions of an array."""

OUTPUT_ROWS = 64
"""Rows whose output must fit into the budget, where the width of the output is a number in the file and not that of an
array."""

LEAST_BUDGET = 256 * 2**20
FILE_FACTOR = 16


@dataclass
class _Budget:
    most: int
    used: int = 0


_current: ContextVar[_Budget | None] = ContextVar("mercer_budget", default=None)


def default_budget(file_bytes: int) -> int:
    """Return the default memory limit of a model in bytes: the larger of 256 MiB and 16 times its file."""
    return max(LEAST_BUDGET, FILE_FACTOR * file_bytes)


@contextlib.contextmanager
def budget(most: int) -> Iterator[None]:
    """Within this block, `reserve` raises once more than ``most`` bytes are asked for."""
    token = _current.set(_Budget(most))
    try:
        yield
    finally:
        _current.reset(token)


def reserve(n_bytes: int, what: str) -> None:
    """Announce an allocation of ``n_bytes`` for ``what``, before it is made.

    Raises
    ------
    TooLargeError
        If the budget of the model file that is being read does not allow it.
    """
    current = _current.get()
    if current is None:
        return
    current.used += n_bytes
    if current.used > current.most:
        raise TooLargeError(
            f"{what} would take {_size(n_bytes)}, and the model {_size(current.used)} in all, more than the limit of "
            f"{_size(current.most)}; if you trust the file, raise the limit: max_bytes={current.used} "
            "(mercer --max-bytes …) or more"
        )


def _size(n_bytes: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:,.1f} {name}"
    return f"{n_bytes} bytes"
