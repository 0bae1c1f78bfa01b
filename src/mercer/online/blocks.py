"""Blocks of hashed examples from a file: one thread reads and hashes them while another thread learns.

    bytes → blocks of hashed examples (``ExampleReader``) → scored, then learnt (``HashedModel`` of the core)

A block holds about a megabyte of the file, and at most two blocks wait, so memory does not grow with the file.
Overlapping reading and learning does not change the result, because blocks keep the order of the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, thread_count
from mercer.data.readers.sniff import csv_rows
from mercer.data.readers.source import FilePath, Source, fill
from mercer.exceptions import DataFileError
from mercer.online.formats import FileFormat, ResolvedFormat, resolved_format
from mercer.online.inputs import feature_settings

__all__ = ["ReadReport", "blocks_of", "check_kind", "labelled_blocks", "make_reader", "outputs_of"]

CHUNK = 1 << 20
INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def read_blocks(
    source: Source,
    reader: _core.examples.ExampleReader,
    chunk: int,
    stop: threading.Event,
    digests: deque[str] | None = None,
    layout: str | None = None,
    empty: bool = False,
) -> Iterator[_core.examples.Examples]:
    """Yield the examples of a file in blocks; raise DataFileError after the last valid one. Stop early on request.

    With ``digests``, a digest of all bytes so far is added for each block.
    """
    view = memoryview(bytearray(chunk))
    digest = hashlib.blake2b(digest_size=16)
    with source.open(layout) as stream:
        while not reader.done:
            n, damage = fill(stream, view)
            if stop.is_set():
                return
            block = reader.feed(view[:n], n < chunk and damage is None)
            if digests is not None:
                digest.update(view[:n])
            if len(block) or (empty and reader.gaps):
                if digests is not None:
                    digests.append(digest.hexdigest())
                yield block
            if damage is not None and reader.error is None:
                what = f"the compressed data are damaged or truncated ({damage})"
                raise DataFileError(source.name, reader.n_lines + 1, what, "copy or download the file again")
    if reader.error is not None:
        line, what = reader.error
        raise DataFileError(source.name, line, what, _hint(what))


def _hint(what: str) -> str:
    about_fields = ("the columns are", "the fields are", "beside the label", "among the features", "two parts to play")
    if any(phrase in what for phrase in about_fields):
        return "label= names the label, columns= the features, and roles= says what fields are"
    if "after '\"'" in what or "a quoted cell" in what:
        return "where quotes are part of texts and a line is a label, a tab and a text, say format='text'"
    if "zero_based" in what:
        return "zero_based=True is for files that count columns from 0"
    return "on_error='skip' skips malformed lines and counts them"


def read_ahead(
    blocks: Iterator[_core.examples.Examples], stop: threading.Event, silent: bool
) -> Iterator[_core.examples.Examples]:
    """Yield the same blocks, read in another thread while the caller works on the previous one.

    ``silent``: the source may block a reader forever.
    """
    ready: queue.Queue[Any] = queue.Queue(maxsize=2)

    def put(item: Any) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                return ready.put(item, timeout=0.1)

    def work() -> None:
        try:
            for block in blocks:
                put((block, None))
                if stop.is_set():
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))

    # A daemon: a read that waits for a silent pipe must not keep the process alive after Ctrl-C.
    thread = threading.Thread(target=work, name="mercer-reader", daemon=True)
    thread.start()
    try:
        while True:
            block, error = ready.get()
            if error is not None:
                raise error
            if block is None:
                return
            yield block
    finally:
        stop.set()
        thread.join(timeout=1.0 if silent else None)


@dataclass
class ReadReport:
    """Report of reading a file: examples, skipped lines, and unknown labels, columns and categories."""

    examples: int = 0
    lines: int = 0
    n_skipped: int = 0
    skipped: Sequence[tuple[int, str]] = ()
    n_unseen_columns: int = 0
    n_unseen_categories: int = 0
    unseen_categories: Sequence[str] = ()
    gaps: Sequence[tuple[int, str]] = field(default=(), repr=False)

    def note(self, reader: _core.examples.ExampleReader) -> None:
        """Copy the counts of a reader."""
        self.examples, self.lines = reader.n_examples, reader.n_lines
        self.n_skipped, self.skipped = reader.n_skipped, reader.skipped
        self.n_unseen_columns, self.n_unseen_categories = reader.n_unseen_columns, reader.n_unseen_categories
        self.unseen_categories = [name.replace("\x01", "") for name in reader.unseen_categories]

    def unseen(self) -> str:
        """Return a sentence about unseen columns and categories; empty if there are none."""
        parts = []
        if self.n_unseen_columns:
            parts.append(f"{self.n_unseen_columns:,} values in columns that training did not have are ignored")
        if self.n_unseen_categories:
            some = ", ".join(self.unseen_categories[:3])
            parts.append(f"{self.n_unseen_categories:,} categories that training did not have, such as {some}")
        return "; ".join(parts)


# ------------------------------------------------------------------------------------------------- labels


def as_classes(names: set[str]) -> np.ndarray:
    """Return the sorted labels of a file: integers if all are, otherwise str."""
    if all(INTEGER.fullmatch(name) for name in names):
        return np.array(sorted(map(int, names)), dtype=np.int64)
    return np.array(sorted(names))


def core_name(classes: np.ndarray) -> Callable[[str], str]:
    """Map the name of a label in a file to its name in the compiled model: 1 may be 1.0 there."""
    if classes.dtype.kind != "f":
        return lambda name: name
    known = {float(c): str(c) for c in classes.tolist()}

    def name_of(name: str) -> str:
        with contextlib.suppress(ValueError):
            return known.get(float(name), name)
        return name

    return name_of


def is_float(name: str) -> bool:
    """Return whether a label is a finite number."""
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------------- readers


def make_reader(
    model: Any,
    form: ResolvedFormat,
    source: Source | None,
    on_error: str,
    limit: int | None,
    required: bool,
    **more: Any,
) -> _core.examples.ExampleReader:
    """Return a reader with the features of the model."""
    check_choice("on_error", on_error, ("raise", "skip"))
    if limit is not None:
        check_count("limit", limit, least=0)
    if form.format == "csv" and form.header is False and source is not None:
        more["width"] = _usual_width(source, form)
    text = feature_settings(model.hasher)
    array = form.format == "svmlight"
    return _core.examples.ExampleReader(
        form.format,
        numeric=model._numeric_targets,
        label_required=required and form.label is not False,
        skip=on_error == "skip",
        limit=-1 if limit is None else limit,
        analyzer=text["analyzer"],
        ngrams=(text["min_n"], text["max_n"]),
        lowercase=text["lowercase"],
        seed=0 if array else text["seed"],
        strings=text.get("strings"),
        copies=text.get("copies", 1),
        n_bits=model.n_bits if array else 0,
        **{"gather": form.format in ("csv", "jsonl"), **more},
        **form.options(),
    )


def check_kind(model: Any, form: ResolvedFormat, source: Source) -> None:
    """Check that a model of columns gets columns, and a model of hashed names gets hashed names."""
    if (form.format == "svmlight") != (model.input_ == "array"):
        seen = "columns of arrays or svmlight files" if model.input_ == "array" else "documents or files with names"
        raise ValueError(
            f"{source.name}: this model has learnt from {seen}, and this file has the format {form.format!r}"
        )


def labelled_blocks(
    model: Any,
    path: FilePath,
    said: FileFormat,
    on_error: str = "raise",
    limit: int | None = None,
    *,
    required: bool = True,
    report: ReadReport | None = None,
    keep_lines: bool = False,
) -> Iterator[_core.examples.Examples]:
    """Yield blocks of a file for a trained model; unspecified parts of the format are those of the training file."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "model_")
    source = Source(path, said.encoding)
    form = resolved_format(source, getattr(model, "file_format_", None), said)
    check_kind(model, form, source)
    if form.format == "csv" and form.header is None:
        form = replace(form, header=_names_columns(source, form))
    more: dict[str, Any] = {"gather": False, "keep_lines": keep_lines}
    if form.format == "svmlight":
        more["known_columns"] = model.n_features_in_
    elif form.format in ("csv", "jsonl"):
        more["known"] = getattr(model, "_categories", None)
    reader = make_reader(model, form, source, on_error, limit, required and form.format != "vw", **more)
    # Scores of a block of short lines and thousands of classes must fit into memory with ease.
    chunk = max(1 << 14, min(CHUNK, (CHUNK << 6) // max(1, model.model_.n_outputs)))
    # Lines without an example are those of the block at hand: with a reader that is ahead they would be of another.
    ahead = model.n_jobs != 1 and not keep_lines
    try:
        for block in blocks_of(model, source, reader, form, chunk, ahead=ahead, empty=keep_lines):
            if report is not None and keep_lines:
                report.gaps = reader.gaps
            yield block
    finally:
        if report is not None:
            report.note(reader)


def _usual_width(source: Source, form: ResolvedFormat) -> int:
    """Cells of most of the first lines: one that differs is malformed, even if it is the first."""
    head, _ = source.head()
    rows = csv_rows(head[: 1 << 16].decode("utf-8", "replace").removeprefix("\ufeff"), form.separator or ",", 200) or []
    return Counter(map(len, rows[:-1] or rows)).most_common(1)[0][0] if rows else 0


def _names_columns(source: Source, form: ResolvedFormat) -> bool:
    """Whether the first line of a csv has the names that the model knows."""
    head, _ = source.head()
    rows = csv_rows(head[: 1 << 16].decode("utf-8", "replace").removeprefix("\ufeff"), form.separator or ",", 1) or [[]]
    known = {*(form.text or ()), *(form.columns if isinstance(form.columns, tuple) else ()), form.label}
    known |= {name for name, *_ in form.numbers}
    return not known or any(cell in known for cell in rows[0])


def blocks_of(
    model: Any,
    source: Source,
    reader: _core.examples.ExampleReader,
    form: ResolvedFormat,
    chunk: int | None = None,
    digests: deque[str] | None = None,
    ahead: bool | None = None,
    empty: bool = False,
) -> Iterator[_core.examples.Examples]:
    """Yield the blocks of a file, read in another thread unless the model has ``n_jobs=1``."""
    thread_count(model.n_jobs)  # checks it
    stop = threading.Event()
    blocks = read_blocks(source, reader, chunk or CHUNK, stop, digests, form.layout, empty)
    if ahead is None:
        ahead = model.n_jobs != 1
    return read_ahead(blocks, stop, not source.again) if ahead else blocks


def outputs_of(model: Any, block: _core.examples.Examples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels (as the model's classes, or as in the file) or targets, weights, and the labelled examples."""
    weights = block.weights.astype(np.float64) if len(block.weights) else np.ones(len(block))
    if model._numeric_targets:
        return block.targets, weights, ~np.isnan(block.targets)
    classes = model.classes_
    name_of = core_name(classes)
    places = {str(c): c for c in classes.tolist()}
    names = [places.get(name_of(name), name) for name in block.label_names]
    numbers = block.labels
    table = np.empty(len(names) + 1, dtype=object)
    table[:-1] = names
    return table[numbers], weights, numbers >= 0
