"""What benchmarks share: calls in turn, medians, the exponent of a growth, and a table of measures against peers.

Seconds are of the processor unless another clock is given, and without the collector of cycles, as timeit's.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Clock = Callable[[], float]


def seconds(call: Callable[[], Any], clock: Clock = time.process_time) -> tuple[float, Any]:
    """Seconds of one call, and what it gave."""
    start = clock()
    result = call()
    return clock() - start, result


def interleaved(repeats: int, *calls: Callable[[], object], clock: Clock = time.process_time) -> list[float]:
    """Median seconds of each call, all calls once in every round."""
    taken: list[list[float]] = [[] for _ in calls]
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for kept, call in zip(taken, calls, strict=True):
                kept.append(seconds(call, clock)[0])
    finally:
        gc.enable()
    return [statistics.median(kept) for kept in taken]


def measured(repeats: int, calls: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, Any]]:
    """The same for named calls: the median seconds of each, and its last result."""
    results: dict[str, Any] = {}

    def kept(name: str) -> Callable[[], None]:
        def run() -> None:
            results[name] = calls[name]()

        return run

    medians = interleaved(repeats, *map(kept, calls))
    return {name: (median, results[name]) for name, median in zip(calls, medians, strict=True)}


def exponent(sizes: Iterable[float], times: Iterable[float]) -> float:
    """b in times ≈ a · sizes^b."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(times)), 1)[0])


@dataclass(frozen=True)
class Row:
    """A measure beside a peer. ``least`` is the ratio aimed at; ``reached`` overrides it where the aim is no ratio."""

    measure: str
    peer: str
    theirs: float
    ours: float
    aim: str = ""
    least: float | None = None
    reached: bool | None = None
    note: str = ""

    def cells(self) -> list[str]:
        compared = not math.isnan(self.theirs)
        ratio = self.theirs / self.ours
        reached = self.reached
        if reached is None and self.least is not None and compared:
            reached = ratio >= self.least
        answer = "" if reached is None else "yes" if reached else "no"
        return [
            self.measure,
            self.peer,
            f"{self.theirs:.4g}" if compared else "",
            "" if math.isnan(self.ours) else f"{self.ours:.4g}",
            f"{ratio:.3g}x" if compared else "",
            self.aim,
            f"{answer}{', ' if answer and self.note else ''}{self.note}",
        ]


TITLES = ["measure", "peer", "peer s", "ours s", "ratio", "aim", "reached"]


def table(rows: Iterable[Row]) -> list[Row]:
    """Print rows as they come, as a table in Markdown; returns them."""
    print("| " + " | ".join(TITLES) + " |\n|" + "---|" * len(TITLES), flush=True)
    shown = []
    for row in rows:
        print("| " + " | ".join(row.cells()) + " |", flush=True)
        shown.append(row)
    return shown
