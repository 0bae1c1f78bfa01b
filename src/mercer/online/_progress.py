"""Progressive validation: every example is scored before it is learnt, so the running loss is that of unseen data.

progressive loss = Σ_i weight_i loss(score before example i, y_i) / Σ_i weight_i
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from mercer._progress import say
from mercer.learning.training import history_from_json, history_to_json

__all__ = ["Progress", "ProgressTable", "count_examples"]

FIGURES = ("examples", "loss", "loss_since_last", "error", "seconds")


@dataclass
class Progress:
    """Running sums of the values of ``HashedModel.learn``, and a history at doubling numbers of examples."""

    examples: int = 0
    weight: float = 0.0
    loss: float = 0.0
    errors: float = 0.0
    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in FIGURES})
    _last: tuple[int, float, float] = (0, 0.0, 0.0)
    _before: float = 0.0
    _begun: float | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds of learning so far, over all calls."""
        return self._before + (0.0 if self._begun is None else time.perf_counter() - self._begun)

    def start(self, at: float | None = None) -> None:
        """Start the clock now, or at an earlier reading of ``time.perf_counter``."""
        self._begun = time.perf_counter() if at is None else at

    def stop(self) -> None:
        """Stop the clock until the next start."""
        self._before, self._begun = self.seconds, None

    @property
    def until_next(self) -> int:
        """Return the number of examples until the next line of the history."""
        return max(1, 2 * self._last[0] - self.examples)

    def add(self, figures: dict[str, Any], verbose: int = 0, stream: TextIO | None = None) -> None:
        """Add the values of a block; add a line to the history when the number of examples has doubled."""
        self.examples += figures["labelled"]
        self.weight += figures["weight"]
        self.loss += figures["loss"]
        self.errors += figures["errors"]
        if self.examples >= 2 * self._last[0] and self.examples:
            self.record(verbose, stream)

    def record(self, verbose: int = 0, stream: TextIO | None = None) -> None:
        """Add a line to the history, unless nothing has changed since the last one."""
        _, weight, loss = self._last
        if self.weight <= weight:
            return
        since = (self.loss - loss) / (self.weight - weight)
        line = (float(self.examples), self.average_loss, since, self.average_error, self.seconds)
        for values, value in zip(self.history.values(), line, strict=True):
            values.append(value)
        self._last = (self.examples, self.weight, self.loss)
        if verbose:
            say(
                f"{self.examples:>12,} examples   loss {self.average_loss:.6f}   since last {since:.6f}"
                f"   error {self.average_error:.4f}",
                stream,
            )

    @property
    def average_loss(self) -> float:
        """Return the progressive loss so far; NaN before the first example."""
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def average_error(self) -> float:
        """Return the progressive error rate so far (0 for regression); NaN before the first example."""
        return self.errors / self.weight if self.weight else float("nan")

    def to_json(self) -> dict[str, Any]:
        """Return plain data for model files, without elapsed seconds, so that equal trainings give equal files."""
        sums = {"examples": self.examples, "weight": self.weight, "loss": self.loss, "errors": self.errors}
        return {**sums, "last": list(self._last), "history": history_to_json(self.history)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Progress:
        """The inverse of :meth:`to_json`."""
        told = history_from_json(data["history"])
        lengths = {len(told[name]) for name in FIGURES[:-1]}
        if len(lengths) != 1:
            raise ValueError("the lists of the history must be of one length")
        history = {name: told.get(name, []) for name in FIGURES}
        last = (int(data["last"][0]), float(data["last"][1]), float(data["last"][2]))
        sums = (float(data["weight"]), float(data["loss"]), float(data["errors"]))
        return cls(int(data["examples"]), *sums, history, last)


def count_examples(model: Any) -> str:
    """``1 example``, ``2,000 examples``."""
    n = model.progress_.examples
    return f"{n:,} example{'' if n == 1 else 's'}"


class ProgressTable:
    """Progressive validation in the columns of Vowpal Wabbit, on standard error."""

    def __init__(self) -> None:
        self.begun = False

    def line(self, model: Any, figures: dict[str, Any], block: Any, end: int) -> None:
        """Print a line about the example before `end`."""
        if not self.begun:
            self.begun = True
            self._print("average    since            example        example       current       current  current")
            self._print("loss       last             counter         weight         label       predict features")
        history, progress = model.history_, model.progress_
        features = int(np.diff(block.indptr[end - 1 : end + 1])[0])
        self._print(
            f"{history['loss'][-1]:<10.6f} {history['loss_since_last'][-1]:<10.6f} {progress.examples:>13,}"
            f" {progress.weight:>14,.1f} {self._shown(model, figures['last_target'])}"
            f" {self._shown(model, figures['last_prediction'])} {features:>8,}"
        )

    def end(self, model: Any) -> None:
        """Print a last line with the totals."""
        progress, skipped = model.progress_, model.skipped_.n_skipped
        more = f", {skipped:,} malformed lines skipped" if skipped else ""
        error = "" if model._numeric_targets else f", error {progress.average_error:.4f}"
        self._print(f"{count_examples(model)}, average loss {progress.average_loss:.6f}{error}{more}")

    @staticmethod
    def _shown(model: Any, value: float) -> str:
        if model._numeric_targets:
            return f"{value:>13.4f}"
        labels = model.model_.labels()
        name = labels[int(value)] if int(value) < len(labels) else ""
        return f"{name if len(name) <= 13 else name[:12] + '…':>13}"

    @staticmethod
    def _print(line: str) -> None:
        say(line.encode("utf-8", "replace").decode())
