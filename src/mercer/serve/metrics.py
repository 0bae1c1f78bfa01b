"""Counters shared by the processes of a server, and their Prometheus text format.

Every process has a row of a table in shared memory: it writes its own row and reads all rows. A process that replaces
another continues its row, so counters never fall. The layout is fixed when the server starts.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Metrics", "memory_bytes"]

STATUSES = (200, 400, 401, 403, 404, 405, 406, 408, 413, 415, 421, 422, 431, 500, 503, 504)
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
_OWN = ("ready", "started", "memory", "connections")


class Metrics:
    """The counters of a server.

    Parameters
    ----------
    models : sequence of str
        Names of the models.
    workers : int
        Number of rows of the table.
    worker : int
        The row of this process.
    handle : int, optional
        An open file that contains the table, for several processes; by default memory of this process.

    Examples
    --------
    >>> metrics = Metrics(["tagger"])
    >>> metrics.request("tagger", 200, 0.003, 1)
    >>> 'mercer_requests_total{model="tagger",status="200"} 1' in metrics.text()
    True
    """

    def __init__(self, models: Sequence[str], workers: int = 1, worker: int = 0, handle: int | None = None) -> None:
        self.models = list(models)
        self._places: dict[tuple[str, ...], int] = {}
        for name in _OWN:
            self._add(name)
        for status in STATUSES:
            self._add("other", str(status))
        for model in self.models:
            for status in STATUSES:
                self._add("requests", model, str(status))
            for name in ("instances", "queue", "seconds_sum", "batch_sum", "loads", "failed loads", "loaded"):
                self._add(name, model)
            for bound in (*SECONDS, "+Inf"):
                self._add("seconds", model, str(bound))
            for size in (*BATCHES, "+Inf"):
                self._add("batch", model, str(size))
        width = len(self._places)
        if handle is None:
            self.table = np.zeros((workers, width))
        else:
            memory = mmap.mmap(handle, workers * width * 8)
            self.table = np.frombuffer(memory, np.float64).reshape(workers, width)
        self.row = self.table[worker]
        self._numbers: Any = memoryview(self.row)  # quicker than an array, number by number
        self._of = {model: self._places_of(model) for model in self.models}
        self.row[[self._places[(name,)] for name in _OWN]] = 0.0
        for model in self.models:
            self.row[self._places["queue", model]] = 0.0
        self.row[self._places[("started",)]] = time.time()

    @staticmethod
    def bytes_of(models: Sequence[str], workers: int) -> int:
        """Return the size in bytes of the table for a number of processes."""
        return Metrics(models, workers).table.nbytes

    def _add(self, *key: str) -> None:
        self._places[key] = len(self._places)

    def _places_of(self, model: str) -> dict[int | str, int]:
        """Return the positions of the counters of a request; for a histogram, the position of its first bound."""
        of: dict[int | str, int] = {status: self._places["requests", model, str(status)] for status in STATUSES}
        of |= {name: self._places[name, model] for name in ("instances", "seconds_sum", "batch_sum")}
        of |= {"seconds": self._places["seconds", model, str(SECONDS[0])]}
        return of | {"batch": self._places["batch", model, str(BATCHES[0])]}

    def set(self, value: float, *key: str) -> None:
        """Set a value of this process."""
        self.row[self._places[key]] = value

    def add(self, value: float, *key: str) -> None:
        """Add to a value of this process."""
        self.row[self._places[key]] += value

    def total(self, *key: str) -> float:
        """Return a value summed over the processes."""
        return float(self.table[:, self._places[key]].sum())

    def request(self, model: str | None, status: int, seconds: float, instances: int, batch: int = 0) -> None:
        """Count one request."""
        if status not in STATUSES:
            status = 500
        if model is None:
            self.add(1, "other", str(status))
            return
        numbers, of = self._numbers, self._of[model]
        numbers[of[status]] += 1
        if status == 200:
            numbers[of["instances"]] += instances
            numbers[of["seconds_sum"]] += seconds
            numbers[of["seconds"] + bisect_left(SECONDS, seconds)] += 1
        if batch:
            numbers[of["batch_sum"]] += batch
            numbers[of["batch"] + bisect_left(BATCHES, batch)] += 1

    def text(self) -> str:
        """Return all metrics in the Prometheus text format."""
        self.set(memory_bytes(), "memory")
        sums = self.table.sum(axis=0)
        lines: list[str] = []

        def family(name: str, kind: str, what: str) -> None:
            lines.extend((f"# HELP {name} {what}", f"# TYPE {name} {kind}"))

        def line(name: str, value: float, **labels: str) -> None:
            said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"{name}{'{' + said + '}' if said else ''} {value:.12g}")

        def of(*key: str) -> float:
            return float(sums[self._places[key]])

        family("mercer_requests_total", "counter", "Requests to models, by status.")
        for model in self.models:
            for status in STATUSES:
                value = of("requests", model, str(status))
                if value or status == 200:
                    line("mercer_requests_total", value, model=model, status=str(status))
        family("mercer_other_requests_total", "counter", "Requests without a model, by status.")
        for status in STATUSES:
            if of("other", str(status)):
                line("mercer_other_requests_total", of("other", str(status)), status=str(status))
        simple: list[tuple[str, str, str, str]] = [
            ("mercer_instances_total", "counter", "instances", "Predicted instances."),
            ("mercer_queue_requests", "gauge", "queue", "Waiting and running requests."),
            ("mercer_model_loads_total", "counter", "loads", "Loaded model files."),
            ("mercer_model_failed_loads_total", "counter", "failed loads", "Rejected model files."),
        ]
        for name, kind, key, what in simple:
            family(name, kind, what)
            for model in self.models:
                line(name, of(key, model), model=model)
        for name, key, bounds, what in (
            ("mercer_request_seconds", "seconds", SECONDS, "Duration of answered requests in seconds."),
            ("mercer_batch_requests", "batch", BATCHES, "Requests per batch."),
        ):
            family(name, "histogram", what)
            for model in self.models:
                so_far = 0.0
                for bound in (*bounds, "+Inf"):
                    so_far += of(key, model, str(bound))
                    line(f"{name}_bucket", so_far, model=model, le=str(bound))
                line(f"{name}_sum", of(f"{key}_sum", model), model=model)
                line(f"{name}_count", so_far, model=model)
        family("mercer_worker_memory_bytes", "gauge", "Resident memory of a process at its last scrape.")
        for worker, row in enumerate(self.table):
            line("mercer_worker_memory_bytes", row[self._places[("memory",)]], worker=str(worker))
        family("mercer_worker_ready", "gauge", "1 if a process has loaded all models.")
        for worker, row in enumerate(self.table):
            line("mercer_worker_ready", row[self._places[("ready",)]], worker=str(worker))
        family("mercer_connections", "gauge", "Open connections.")
        line("mercer_connections", of("connections"))
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def memory_bytes() -> int:
    """Return the resident memory of this process."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(used if sys.platform == "darwin" else used * 1024)
