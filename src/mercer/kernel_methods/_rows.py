"""Rows of a kernel matrix that is too large for memory, computed on demand."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer._progress import Pace, say
from mercer._validation import thread_count
from mercer.kernel_methods.collections import taken
from mercer.kernels.base import Kernel, Work
from mercer.kernels.vectors import VectorRows

__all__: list[str] = []

_ENTRIES = 1 << 22  # of one call of a kernel


class RowsOnDemand:
    """The solvers of `mercer._core.machines.KernelMachine` without a matrix: rows in batches, with a cache.

    Parameters
    ----------
    kernel : Kernel
    X : collection of objects
    megabytes : float
        Size of the row cache, in 10⁶ bytes.
    """

    def __init__(self, kernel: Kernel, X: Any, megabytes: float, n_jobs: int | None, verbose: int = 0) -> None:
        self.kernel, self.X, self.megabytes, self.verbose = kernel, X, megabytes, verbose
        self.work = Work(thread_count(n_jobs))

    def solve_box(
        self,
        members: np.ndarray,
        slope: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        start: np.ndarray,
        split: int,
        tol: float,
        max_iter: int,
    ) -> tuple[Any, ...]:
        """See `KernelMachine.solve_box`."""
        objects = _Objects(self, members)
        settings = (objects.diagonal, split, tol, max_iter, self._room(len(members)), self.work.threads)
        return self._run(_core.machines.BoxBlocks(slope, low, high, start, *settings), objects)

    def solve_tube(
        self, members: np.ndarray, target: np.ndarray, width: float, upper: np.ndarray, tol: float, max_iter: int
    ) -> tuple[Any, ...]:
        """See `KernelMachine.solve_tube`."""
        objects = _Objects(self, members)
        settings = (objects.diagonal, tol, max_iter, self._room(len(members)), self.work.threads)
        return self._run(_core.machines.TubeBlocks(target, width, upper, *settings), objects)

    def _room(self, n: int) -> int:
        return max(1, int(self.megabytes * 1e6 / (8 * n)))

    def _run(self, machine: Any, objects: _Objects) -> tuple[Any, ...]:
        pace, computed = Pace(0.5), 0
        while len(places := machine.wanted()):
            rows = objects.rows(places)
            try:
                machine.give(rows)
            except ValueError:  # values are looked at there, in the pass that copies them
                objects.check(rows)
                raise
            computed += len(places)
            if self.verbose and pace.due():
                say(f"{type(self.kernel).__name__}: {computed:,} rows of kernel values, {pace.elapsed():.1f} s")
        return tuple(machine.result())


class _Objects:
    """The objects of one program."""

    def __init__(self, engine: RowsOnDemand, members: np.ndarray) -> None:
        self.kernel, self.work = engine.kernel, engine.work
        self.X = taken(engine.X, members)
        self.columns = self.kernel._prepared("X", self.X)
        self.diagonal = np.ascontiguousarray(self.kernel._diag(self.columns, self.work), np.float64)
        self.check(self.diagonal)
        self._buffer = np.empty((0, len(self.columns)))  # used again and again: new pages would take as long as values

    def rows(self, places: np.ndarray) -> np.ndarray:
        """The kernel values of these objects with all, until the next call."""
        if isinstance(self.columns, VectorRows):
            some = self.columns.chosen(places)
        else:
            some = self.kernel._prepared("X", taken(self.X, places))
        if len(self._buffer) < len(places):
            self._buffer = np.empty((len(places), len(self.columns)))
        K = self._buffer[: len(places)]
        if self.kernel._block_entries is None:  # its objects are not cut
            K[:] = self.kernel._gram(some, self.columns, self.work)
        else:
            step = max(1, _ENTRIES // len(self.columns))
            for start in range(0, len(places), step):
                self.kernel._fill(K, start, min(start + step, len(places)), some, self.columns, self.work)
        K[np.arange(len(places)), places] = self.diagonal[places]
        return K

    def check(self, values: np.ndarray) -> None:
        """Raises ValueError, which names the kernel, for values that are not finite."""
        if not np.isfinite(values).all():
            raise ValueError(f"the kernel {self.kernel!r} gave a value that is NaN or infinite")
