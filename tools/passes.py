"""Twelve tasks from a file to a prediction, and the files of the package that each of them passes.

    python tools/passes.py [task …]

A task is run twice: first to import what it needs, then with a profiler, which notes the file of every function of the
package that is called. Stations are the files that do a step of the task, in the order in which the data come to them;
aids are the others (checks, threads, progress, the container of model files), which all tasks share.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mercer

SOURCE = Path(mercer.__file__).parent
AIDS = ("_", "exceptions", "learning/monitor", "learning/checkpoint", "learning/strength", "data/labels", "__init__")


def rows(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and labels of a csv."""
    table = np.loadtxt(folder / "rows.csv", delimiter=",", dtype=str)
    return table[:, 1:].astype(float), table[:, 0]


def kept(model: Any, folder: Path) -> Any:
    """The model after a way through its file."""
    mercer.save(model, folder / "model")
    return mercer.load(folder / "model")


def tagging(folder: Path) -> Any:
    from mercer.data import Template, read_columns
    from mercer.tagging import Tagger

    sentences = list(read_columns(folder / "words.txt"))
    words, tags = [[row[:1] for row in s] for s in sentences], [[row[1] for row in s] for s in sentences]
    return kept(Tagger(template=Template.load("words"), max_iter=5).fit(words, tags), folder).predict(words)


def main() -> int:
    return 0


if __name__ == "__main__":
    sys.exit(main())
