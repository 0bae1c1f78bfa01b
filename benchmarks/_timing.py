"""What benchmarks share: options, sizes and missing peers; calls in turn, medians, growth; rows of results.

Every script takes ``--smoke``: the smallest size of everything, to see that it runs. `parse` adds the option and the
defaults that go with it, `sized` chooses between the two sizes of anything else. A peer that is not installed is named
in a line of its own (`missing`), and no ratio to it is printed.

What a script prints for people it also gives to `record`, a row for each measure: ``python -m benchmarks`` collects
these and fills the tables of the documentation from them. `table` prints rows and records them.

Seconds are of the processor unless another clock is given, and without the collector of cycles, as timeit's.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Clock = Callable[[], float]
T = TypeVar("T")

SMOKE = "--smoke" in sys.argv
NOT_INSTALLED = "not installed"
_SAID: set[str] = set()


# ------------------------------------------------------------------------------------- options, sizes, peers, data


def sized(full: T, smallest: T) -> T:
    """The size to run at: the second one with ``--smoke``."""
    return smallest if SMOKE else full


def parse(parser: argparse.ArgumentParser, **smallest: Any) -> argparse.Namespace:
    """Parse the command line, with the option ``--smoke`` and the defaults that options have with it."""
    parser.add_argument("--smoke", action="store_true", help="the smallest size of everything, to see that it runs")
    known = {action.dest for action in parser._actions}
    if unknown := set(smallest) - known:
        raise TypeError(f"no such option of {parser.prog}: {', '.join(sorted(unknown))}")
    if SMOKE:
        parser.set_defaults(**smallest)
    return parser.parse_args()


def missing(*modules: str) -> list[str]:
    """Say which of these peers are not installed, once and a line for each, and return them."""
    absent = [module for module in modules if find_spec(module) is None]
    for module in absent:
        if module not in _SAID:
            print(f"{module}: {NOT_INSTALLED}", flush=True)
    _SAID.update(absent)
    return absent


def peer(module: str) -> Any:
    """Import a peer; None, after a line that says so, where it is not installed."""
    return None if missing(module.split(".")[0]) else import_module(module)


def required(module: str) -> Any:
    """Import what a whole script is about; where it is not installed the script says so and ends with status 0."""
    if missing(module.split(".")[0]):
        print("left out: there is nothing to measure without it")
        raise SystemExit(0)
    return import_module(module)


@contextmanager
def from_data(what: str) -> Iterator[None]:
    """Leave out, with a line that says why, what reads a public data set that is not there."""
    try:
        yield
    except OSError as error:  # no folder, no file, no network
        print(f"{what}: left out: {error}", flush=True)


# ---------------------------------------------------------------------------------------------------------- times


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
    return float(np.polyfit(np.log(list(sizes)), np.log(np.maximum(list(times), 1e-9)), 1)[0])


# --------------------------------------------------------------------------------------------------------- results

ROWS = "MERCER_BENCHMARK_ROWS"  # names the file to which rows are added, a line of JSON each; set by the runner

# The distribution whose version is that of a peer, where it has another name.
DISTRIBUTIONS = {
    "crfsuite": "python-crfsuite",
    "dlib": "dlib-bin",
    "faiss": "faiss-cpu",
    "liblinear": "liblinear-official",
    "sklearn": "scikit-learn",
    "vw": "vowpalwabbit",
    "vowpal": "vowpalwabbit",
}


def version_of(peer: str) -> str:
    """The installed version of a peer, named as in tables ("GraKeL", "hyppo, scaled up"); "" if there is none."""
    name = peer.split(",")[0].strip().lower()
    for candidate in (name, name.split(" ")[0]):
        try:
            return metadata.version(DISTRIBUTIONS.get(candidate, candidate))
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return ""


def plain(value: Any) -> Any:
    """A figure with four digits, as JSON has it; None for what is not finite."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    return float(f"{float(value):.4g}") if math.isfinite(value) else None


def spread(values: Any, digits: int = 3) -> dict[str, float]:
    """Mean and deviation of figures, as a value of a row; of one figure there is no deviation."""
    mean = {"value": round(float(np.mean(values)), digits)}
    return mean | ({"deviation": round(float(np.std(values)), digits)} if np.size(values) > 1 else {})


def record(
    table: str,
    measure: str,
    *,
    ours: float | None = None,
    theirs: float | None = None,
    peer: str = "",
    unit: str = "s",
    values: dict[str, Any] | None = None,
    sizes: str = "",
    note: str = "",
    script: str = "",
) -> None:
    """Add a row of results: ours beside a peer's in one unit, or several values by the names of their columns.

    A ratio above 1 means that ours is better: faster, smaller or, for rates, more. A value may be a number, a pair of
    them, a dict with ``value`` and ``deviation``, ``seconds`` or ``printed``, or a word. ``script`` names the
    script that a row belongs to where it is not the one that runs.
    """
    if not os.environ.get(ROWS):
        return
    ratio = None
    if ours and theirs and math.isfinite(ours) and math.isfinite(theirs):
        ratio = ours / theirs if unit.endswith("/s") else None if unit == "%" else theirs / ours
    row = {
        "script": script or Path(sys.argv[0]).stem,
        "table": table,
        "measure": measure,
        "peer": peer,
        "peer_version": version_of(peer) if peer and theirs is not None else "",
        "theirs": plain(theirs),
        "ours": plain(ours),
        "ratio": plain(ratio),
        "unit": unit if values is None else "",
        "values": plain(values) if values is not None else None,
        "sizes": sizes,
        "note": note,
    }
    with Path(os.environ[ROWS]).open("a") as file:
        file.write(json.dumps({key: value for key, value in row.items() if value not in ("", None)}) + "\n")


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
            f"{ratio:.3g}x" if compared else NOT_INSTALLED if self.peer else "",
            self.aim,
            f"{answer}{', ' if answer and self.note else ''}{self.note}",
        ]


TITLES = ["measure", "peer", "peer s", "ours s", "ratio", "aim", "reached"]


def table(rows: Iterable[Row], name: str = "speed") -> list[Row]:
    """Print rows as they come, as a table in Markdown, and record them; returns them."""
    print("| " + " | ".join(TITLES) + " |\n|" + "---|" * len(TITLES), flush=True)
    shown = []
    for row in rows:
        print("| " + " | ".join(row.cells()) + " |", flush=True)
        record(name, row.measure, peer=row.peer, theirs=row.theirs, ours=row.ours, note=row.note)
        shown.append(row)
    return shown
