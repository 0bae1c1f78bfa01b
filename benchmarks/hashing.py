"""Hashing maps: text, strings and records to sparse rows, beside scikit-learn, one thread each, in one run.

    python benchmarks/hashing.py [--parts words chars bits records] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable


def interleaved(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, run in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for kept, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


# ------------------------------------------------------------------------------------------------ text


# ------------------------------------------------------------------------------------------------ records


PARTS: dict[str, Callable[[int], None]] = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part](arguments.repeats)


if __name__ == "__main__":
    main()
