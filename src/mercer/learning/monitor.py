"""Monitoring of solvers between iterations: history, progress, checkpoints, early stopping, Ctrl-C."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer._progress import say
from mercer.exceptions import ModelFileError
from mercer.learning.checkpoint import Checkpoint, array_of, count_of, number_of


class Monitor:
    """Monitor a solver.

    Parameters
    ----------
    verbose : int
        1 shows a progress line on standard error (on a terminal it is rewritten in place), 2 prints a line for each
        iteration.
    max_iter : int
        For the progress line.
    evaluate : callable w → float, optional
        Score on held-out data after each iteration, higher is better. The best weights are kept, and training stops
        after ``patience`` iterations in a row without improvement.
    patience : int
    checkpoint : Checkpoint, optional
    """

    def __init__(
        self,
        *,
        verbose: int = 0,
        max_iter: int = 0,
        evaluate: Callable[[np.ndarray], float] | None = None,
        patience: int = 10,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.verbose, self.max_iter = verbose, max_iter
        self.evaluate, self.patience, self.checkpoint = evaluate, patience, checkpoint
        self.history: dict[str, list[float]] = {}
        self.best_score, self._stale = -np.inf, 0
        self.best_w: np.ndarray | None = None
        self.stopped_early = False
        self._before = 0.0
        self._begin = time.perf_counter()
        self._progress: Any = None

    def __enter__(self) -> Monitor:
        self._begin = time.perf_counter()
        if self.verbose == 1:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TextColumn("{task.fields[figures]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._progress.start()
            self._task = self._progress.add_task("", total=self.max_iter, figures="")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._progress is not None:
            self._progress.stop()

    @property
    def seconds(self) -> float:
        """Return the seconds of training so far, including earlier runs of a resumed training."""
        return self._before + time.perf_counter() - self._begin

    @property
    def iterations(self) -> int:
        """Return the number of recorded iterations."""
        return len(self.history.get("seconds", ()))

    def record(self, weights: Callable[[], np.ndarray], **figures: float) -> bool:
        """Record the values of an iteration; return True if training should stop (early stopping)."""
        row = {**figures, "seconds": self.seconds}
        stop = False
        if self.evaluate is not None:
            w = weights()
            row["dev_score"] = score = float(self.evaluate(w))
            if score > self.best_score:
                self.best_score, self.best_w, self._stale = score, w.copy(), 0
            else:
                self._stale += 1
                stop = self.stopped_early = self._stale >= self.patience
        for name, value in row.items():
            self.history.setdefault(name, []).append(float(value))
        self._show(row)
        return stop

    def save(self, state: dict[str, Any], arrays: Callable[[], dict[str, np.ndarray]]) -> None:
        """Write a checkpoint when one is due."""
        if self.checkpoint is None or not self.checkpoint.due():
            return
        everything = {
            "solver": state,
            "history": {name: [_plain(x) for x in values] for name, values in self.history.items()},
            "seconds": self.seconds,
            "best_score": self.best_score if np.isfinite(self.best_score) else None,
            "stale": self._stale,
        }
        data = {f"solver.{name}": array for name, array in arrays().items()}
        if self.best_w is not None:
            data["best_w"] = self.best_w
        self.checkpoint.write(everything, data)

    def resume(self, fingerprint: str, n_weights: int) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the solver's state of an unfinished run, if there is one."""
        if self.checkpoint is None:
            return None
        resumed = self.checkpoint.open(fingerprint)
        if resumed is None:
            return None
        with self.restoring():
            state, arrays = resumed
            self.history = {name: [float(x) for x in values] for name, values in state["history"].items()}
            self._before = number_of(state, "seconds")
            self._stale = count_of(state, "stale")
            if state["best_score"] is not None:
                self.best_score = number_of(state, "best_score")
                self.best_w = array_of(arrays, "best_w", (n_weights,))
            solver = dict(state["solver"])
        return solver, {k.removeprefix("solver."): v for k, v in arrays.items() if k.startswith("solver.")}

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Turn errors while a state is restored into errors that name the checkpoint file."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = f"there is no {error} in it" if isinstance(error, KeyError) else str(error)
            raise ModelFileError(f"{self.source}: the checkpoint does not fit this training: {why}") from error

    @property
    def source(self) -> str:
        """Return the name of the checkpoint, for messages."""
        return "checkpoint" if self.checkpoint is None else str(self.checkpoint.path)

    def _show(self, row: dict[str, float]) -> None:
        if not self.verbose:
            return
        figures = "  ".join(f"{name} {value:.6g}" for name, value in row.items() if name != "seconds")
        if self._progress is not None:
            self._progress.update(self._task, completed=self.iterations, figures=figures)
        else:
            say(f"{self.iterations:5d}  {figures}  {row['seconds']:.2f} s")


def _plain(x: float) -> float | str:
    """A number as JSON has it; a bound that is not known yet is infinite, which JSON has not."""
    return x if np.isfinite(x) else str(x)
