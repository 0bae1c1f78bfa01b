"""Limits of exact inference: bytes of tables and operations on them, estimated before any allocation."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

__all__ = ["Limits"]

MEMORY_SHARE = 4
"""Tables may take this fraction of the memory of the machine: a quarter."""
MAX_OPERATIONS = 5e10
"""Entries of tables that may be read or written: about a minute or two of one core."""


@dataclass(frozen=True)
class Limits:
    """Bytes and operations that an exact method may use.

    Parameters
    ----------
    max_bytes : float, optional
        Memory for tables; default a quarter of the memory of the machine (or of the control group that the process
        runs in). It does not depend on the currently free memory, so equal calls choose equal methods.
    max_operations : float, optional
        Entries of tables that may be read or written; default 5e10, about a minute or two of one core.

    Examples
    --------
    >>> from mercer.inference import Limits
    >>> limits = Limits(max_bytes=1e6)
    >>> limits.allow(5e5, 1e6), limits.allow(2e6, 1e6)
    (True, False)
    """

    max_bytes: float
    max_operations: float

    def __init__(self, max_bytes: float | None = None, max_operations: float | None = None) -> None:
        for name, given, default in (
            ("max_bytes", max_bytes, _machine_bytes() / MEMORY_SHARE),
            ("max_operations", max_operations, MAX_OPERATIONS),
        ):
            value: Any = default if given is None else given
            if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0:
                raise ValueError(f"{name} must be a number above 0, or None, got {given!r}")
            object.__setattr__(self, name, float(value))

    def allow(self, n_bytes: float, operations: float) -> bool:
        """Return whether a cost is within the limits."""
        return n_bytes <= self.max_bytes and operations <= self.max_operations


@dataclass(frozen=True)
class Cost:
    """The cost of an exact method."""

    bytes: float
    operations: float
    variables: int
    """Of the largest table."""
    complete: bool
    """Whether the cost is complete, or a lower bound from an aborted search for an order."""


@cache
def _machine_bytes() -> float:
    """Memory of the machine, or of the control group where that has less."""
    sizes = []
    if hasattr(os, "sysconf"):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, ValueError):  # there is none, or it is "max"
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return float(min((size for size in sizes if size > 0), default=4 << 30))


def readable(n_bytes: float) -> str:
    """Return a number of bytes in readable form.

    Examples
    --------
    >>> from mercer.inference.limits import readable
    >>> readable(512), readable(3.2e9)
    ('512 bytes', '3.2 GB')
    """
    if n_bytes < 1e3:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        n_bytes /= 1e3
        if n_bytes < 999.5 or unit == "TB":
            return f"{n_bytes:.3g} {unit}"
    raise AssertionError
