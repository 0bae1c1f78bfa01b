"""Predictions as lines: a label for each example, with other lines of the file unchanged."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from mercer import _core
from mercer._state.container import replacing
from mercer.data.readers.source import PACKERS

__all__ = ["HEADER", "LineWriter", "label_text", "prediction_lines", "with_gaps"]


HEADER = "\x01header"
"""What the compiled reader calls the line of a csv that names its columns."""


def label_text(label: Any) -> str:
    """Return a label for a line of output, as a JSON string if it would break the line."""
    text = str(label)
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in "\t\r\n") else text


def prediction_lines(model: Any, block: _core.examples.Examples, proba: bool, top: int | None) -> Iterator[str]:
    """Return one line for each example, without line ends."""
    if model._numeric_targets:
        if proba or top is not None:
            raise ValueError("proba and top are for classifiers: this is a regressor")
        return (repr(value) for value in model.predict(block).tolist())
    if not proba and top is None:
        return (label_text(label) for label in model.predict(block).tolist())
    k = 1 if top is None else min(top, len(model.classes_))
    if proba:
        p = model.predict_proba(block)
        number = np.argsort(-p, axis=1, kind="stable")[:, :k]
        labels, scores = model.classes_[number], np.take_along_axis(p, number, axis=1)
    else:
        labels, scores = model.top_k(block, k)
    return (
        "\t".join(f"{label_text(label)}\t{score:.6f}" for label, score in zip(names, values, strict=True))
        for names, values in zip(labels.tolist(), scores.tolist(), strict=True)
    )


def with_gaps(lines: Iterable[str], gaps: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Return the lines of predictions with gap lines between them; a gap is (predictions before it, its line)."""
    number, rest = 0, iter(lines)
    for before, line in gaps:
        while number < before:
            yield next(rest)
            number += 1
        yield line
    yield from rest


class LineWriter:
    """Write lines to a path (atomically; compressed by its suffix), or to standard output."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __enter__(self) -> Callable[[Iterable[str]], None]:
        self.stack = ExitStack()
        if self.path == "-":
            self.stream: Any = getattr(sys.stdout, "buffer", None) or sys.stdout
        else:
            self.stream = self.stack.enter_context(replacing(self.path))
            pack = PACKERS.get(os.path.splitext(self.path)[1].lower())
            if pack is not None:
                self.stream = self.stack.enter_context(pack(self.stream, "wb"))
        return self._write

    def _write(self, lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if self.path == "-" and isinstance(self.stream, io.TextIOBase):
            self.stream.write(text)
        else:
            self.stream.write(text.encode("utf-8", "surrogateescape"))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.path == "-":
            self.stream.flush()
        self.stack.__exit__(kind, error, trace)
