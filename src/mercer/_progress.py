"""Progress of long computations: lines on standard error, so that standard output holds results alone."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Pace", "say"]


def say(line: str, stream: TextIO | None = None) -> None:
    """Write one line to standard error, or to another stream, at once."""
    print(line, file=stream or sys.stderr, flush=True)


class Pace:
    """A limit on the rate of progress lines: at most one every so many seconds.

    Examples
    --------
    >>> pace = Pace(60.0)
    >>> pace.due(), pace.due()
    (False, False)
    """

    def __init__(self, seconds: float = 0.5) -> None:
        self.seconds = seconds
        self.begun = self._last = time.perf_counter()

    def due(self) -> bool:
        """Return whether the last line was long enough ago; if so, restart the clock."""
        now = time.perf_counter()
        if now - self._last < self.seconds:
            return False
        self._last = now
        return True

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.begun
