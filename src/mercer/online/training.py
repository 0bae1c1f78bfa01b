"""One call of `fit_file` or `partial_fit_file`: passes over blocks of examples, late classes, checkpoints.

A file that ends within the first blocks is learnt like an array: in a random order, in several passes. A longer file is
learnt in its own order, block by block, and each block is discarded.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from mercer import _core
from mercer._validation import check_count
from mercer.data.readers.source import Source
from mercer.exceptions import DataFileError, ModelFileError
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.checkpoint import fingerprint as fingerprint_of
from mercer.online._names import field_sample
from mercer.online._progress import ProgressTable, count_examples
from mercer.online.blocks import (
    INTEGER,
    ReadReport,
    as_classes,
    blocks_of,
    check_kind,
    core_name,
    is_float,
    make_reader,
)
from mercer.online.formats import FileFormat, announce, resolved_format, with_roles
from mercer.online.inputs import Documents, Records, Rows, hasher_params, text_features

__all__ = ["Training"]

AHEAD = 4
"""Number of blocks read before learning begins, to collect the classes."""

_OF_NO_ACCOUNT = ("n_jobs", "verbose", "random_state")  # for what is learnt from a file


class _ThirdClass(Exception):
    """More than two classes in a file that seemed to have two."""

    def __init__(self, names: set[str]) -> None:
        self.names = names


def _raising(error: Exception) -> Iterator[_core.examples.Examples]:
    raise error
    yield


class _Size:
    """Stands for so many inputs."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n


def _weights(blocks: list[_core.examples.Examples]) -> np.ndarray | None:
    """Importance of all examples; None if all are 1."""
    parts = [block.weights for block in blocks]
    if not any(len(part) for part in parts):
        return None
    return np.concatenate([w if len(w) else np.ones(len(b), np.float32) for b, w in zip(blocks, parts, strict=True)])


class Training:
    """One call of `fit_file` or `partial_fit_file`."""

    def __init__(
        self, model: Any, source: Source, said: FileFormat, on_error: str, limit: int | None, *, afresh: bool
    ) -> None:
        self.model, self.source, self.on_error, self.limit, self.afresh = model, source, on_error, limit, afresh
        self.settings = model._check_parameters()
        self.begun = time.perf_counter()
        known = None if afresh else getattr(model, "file_format_", None)
        self.form = resolved_format(source, known, said)
        if afresh:
            self.form, surprises, told = with_roles(self.form, source, model._numeric_targets, said.roles)
            announce(model, source, surprises, told)
        else:
            check_kind(model, self.form, source)
        self.categories = None if afresh else getattr(model, "_categories", None)
        self.table = ProgressTable() if model.verbose else None
        self.started = not afresh
        self.names: set[str] = set()
        self.reader = make_reader(model, self.form, source, on_error, limit, self.form.format != "vw")

    checkpoint: Checkpoint | None = None
    """Where the run is saved, if anywhere."""

    first_pass, n_done = 0, 0  # of a run that goes on: the pass it was in, and blocks done in it
    digest = ""

    def fit(self, classes: Any) -> None:
        """Make all passes, from scratch."""
        model = self.model
        passes = model._passes()
        if passes > 1 and not self.source.again:
            raise ValueError(f"{self.source.name} can be read only once: max_iter must be 1, got {passes}")
        self._set_names(classes)
        self._resume()
        with self._ending():
            if not self._learn_in_memory():
                self._stream(passes)
        if not model._numeric_targets and len(model.classes_) < 2 and not model.interrupted_:
            raise ValueError(
                f"{self.source.name}: need at least two classes to learn from, found one class: "
                f"{model.classes_.tolist()[0]!r}{self._passed_over()}"
            )

    def _stream(self, passes: int) -> None:
        """All passes in the order of the file."""
        model = self.model
        if getattr(model, "class_weight", None) == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all examples at once, and this file is longer than what is kept in "
                "memory: give the weights as a dict"
            )
        model.n_iter_ = passes
        try:
            self._pass(0)
        except _ThirdClass as late:
            # Learnt for two classes so far: begin again, for as many as there are.
            self.names, self.started, self.n_done = late.names, False, 0
            self._pass(0)
        try:
            for number in range(1, passes):
                self._pass(number)
        except _ThirdClass as late:
            found = ", ".join(map(repr, sorted(late.names)))
            raise ValueError(
                f"{self.source.name}: the first pass had two labels, a later one has {found}: did the file change?"
            ) from None

    first: list[_core.examples.Examples] | None = None
    """The blocks of a file that is kept in memory."""

    def _learn_in_memory(self) -> bool:
        """Learn a file that ends within the first blocks as rows are learnt; False where it does not end there."""
        model = self.model
        if not isinstance(model.max_iter, str) or not model.shuffle or self.checkpoint is not None:
            return False
        if not self.load(AHEAD):
            return False
        if self.first:
            self._learn_rows()
        return True

    def load(self, most: int) -> bool:
        """Read the whole file if it has at most this number of blocks; else, or on an error, return False."""
        blocks = blocks_of(self.model, self.source, self.reader, self.form)
        first: list[_core.examples.Examples] = []
        try:
            for block in blocks:
                first.append(block)
                if len(first) > most:
                    self.held = first, blocks
                    return False
        except DataFileError as error:  # what comes before the malformed line is learnt in order
            self.held = first, _raising(error)
            return False
        except BaseException:
            if hasattr(blocks, "close"):
                blocks.close()
            raise
        self.first = first
        return True

    def examples(self) -> tuple[Records, np.ndarray]:
        """Return the labelled examples of a loaded file, with their labels as in the file, or targets."""
        assert self.first is not None
        records = Records.of(self.first)
        if self.model._numeric_targets:
            y, _, known = self._targets(self.first)
        else:
            y = np.concatenate([np.array([*b.label_names, ""], dtype=object)[b.labels] for b in self.first])
            known = np.concatenate([b.labels for b in self.first]) >= 0
        return records.part(np.flatnonzero(known)), y[known]

    def labelled(self) -> np.ndarray:
        """Return the numbers of the labelled examples of a loaded file."""
        assert self.first is not None
        if self.model._numeric_targets:
            return np.flatnonzero(self._targets(self.first)[2])
        return np.flatnonzero(np.concatenate([block.labels for block in self.first]) >= 0)

    def report(self) -> ReadReport:
        """Return the report of reading so far."""
        report = ReadReport()
        report.note(self.reader)
        return report

    def fit_rows(self, rows: np.ndarray) -> None:
        """Learn from these labelled examples of a loaded file, from scratch."""
        self.begun = time.perf_counter()
        self.started = False
        with self._ending():
            self._learn_rows(rows)

    def with_model(self, model: Any) -> Training:
        """Return the same file for another model with the same features."""
        other = copy.copy(self)
        other.model, other.settings, other.names = model, model._check_parameters(), set(self.names)
        other.table = ProgressTable() if model.verbose else None
        return other

    def _learn_rows(self, rows: np.ndarray | None = None) -> None:
        model = self.model
        assert self.first is not None
        inputs = Records.of(self.first)
        self._start(self.first)
        y, weights, known = self._targets(self.first) if model._numeric_targets else self._labels(self.first)
        if not known.any():
            return
        if rows is not None or not known.all():
            kept = np.flatnonzero(known)
            kept = kept if rows is None else kept[rows]
            inputs, y = inputs.part(kept), y[kept]
            weights = None if weights is None else weights[kept]
        model.n_iter_ = model._passes(inputs)
        model._learn(inputs, model._outputs(y, weights), model.n_iter_, model.shuffle)
        if model.interrupted_:
            raise KeyboardInterrupt

    def _labels(self, blocks: list[_core.examples.Examples]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Labels as the model's classes, weights, and which examples have a label."""
        model = self.model
        name_of = core_name(model.classes_)
        places = {str(c): i for i, c in enumerate(model.classes_.tolist())}
        numbers = np.concatenate(
            [np.array([*(places[name_of(name)] for name in b.label_names), -1])[b.labels] for b in blocks]
        )
        known = numbers >= 0
        if not known.any():
            return numbers, None, known
        y = model.classes_[np.where(known, numbers, 0)]
        weights = _weights(blocks)
        if model.class_weight is not None and known.any():
            kept = None if weights is None else weights[known]
            factors = np.zeros(len(y), np.float32)
            factors[known] = model._weights(_Size(int(known.sum())), y[known], np.unique(y[known]), kept)
            weights = factors
        return y, weights, known

    def _targets(self, blocks: list[_core.examples.Examples]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        targets = np.concatenate([block.targets for block in blocks])
        if self.model.loss == "poisson" and (targets < 0).any():
            raise ValueError(f"{self.source.name}: loss='poisson' needs targets of at least 0")
        return targets, _weights(blocks), ~np.isnan(targets)

    def partial_fit(self, classes: Any) -> None:
        """Make one pass, from the current model."""
        model = self.model
        if getattr(model, "class_weight", None) == "balanced":
            raise ValueError("class_weight='balanced' needs all examples at once: give the weights as a dict")
        if not self.started:
            self._set_names(classes)
        elif not model._numeric_targets:
            self.names = {str(c) for c in model.classes_.tolist()}
        if self.started:
            model.progress_.start(self.begun)
        with self._ending():
            self._pass(0)

    def _set_names(self, classes: Any) -> None:
        if classes is None:
            return
        if self.model._numeric_targets:
            raise ValueError("classes means nothing for a regressor")
        self.names = {str(c) for c in np.asarray(classes).tolist()}

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """However the reading ends, the model says how far it came."""
        model = self.model
        interrupted = False
        try:
            yield
        except KeyboardInterrupt:
            if not self.started:
                raise
            interrupted = True
        except DataFileError as error:
            if self.started and model.progress_.examples:
                error.add_note(f"the model has learnt what comes before this line: {count_examples(model)}")
            raise
        finally:
            if self.started:
                self._finish(interrupted)
            if self.checkpoint is not None:
                self.checkpoint.release()
        if self.checkpoint is not None and not interrupted:
            self.checkpoint.close()
        if not self.started:
            raise ValueError(f"{self.source.name}: no examples in this file{self._passed_over()}")
        if not interrupted and not model.progress_.examples:
            raise ValueError(
                f"{self.source.name}: no labelled examples in this file (a label is followed by a space before '|')"
            )

    def _passed_over(self) -> str:
        """What messages add about malformed lines."""
        if not self.reader.n_skipped:
            return ""
        line, what = self.reader.skipped[0]
        return f"; {self.reader.n_skipped:,} malformed and skipped, the first: line {line}: {what}"

    def _finish(self, interrupted: bool) -> None:
        model = self.model
        model.interrupted_ = interrupted
        model.skipped_ = ReadReport()
        model.skipped_.note(self.reader)
        if not model._numeric_targets:
            self._sync_classes()
        if self.form.format == "svmlight":
            model.n_features_in_ = max(self.reader.n_columns, getattr(model, "n_features_in_", 0), 1)
        model.file_format_ = self.form.resolved(self.reader.fields)
        self._keep_categories()
        if model.inverse_size and model.input_ == "hashed" and model.progress_.examples:
            model._name_later(field_sample(model.hasher, self.source, model.file_format_))
        model.progress_.record()
        model.progress_.stop()
        if self.table is not None:
            self.table.end(model)

    def _keep_categories(self) -> None:
        """Hashes of the categories seen, so that later files can be told what is new; none if there are too many."""
        seen = self.reader.categories
        if seen is None or (self.categories is None and not self.afresh):
            self.model.__dict__.pop("_categories", None)
            return
        self.model._categories = seen if self.categories is None else np.union1d(self.categories, seen)

    def _resume(self) -> None:
        """Goes on from where a run with the same settings was killed."""
        if self.checkpoint is None:
            return
        model = self.model
        held = self.checkpoint.open(self._fingerprint())
        if held is None:
            return
        try:
            state, arrays = held
            other = type(model).from_state(state["model"], arrays)
            self.first_pass, self.n_done = check_count("pass", state["pass"], 0), check_count("blocks", state["blocks"])
            self.digest, self.names = str(state["digest"]), {str(name) for name in state["names"]}
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self.checkpoint.release()
            what = f"the checkpoint does not fit this training: {error}"
            raise ModelFileError(f"{self.checkpoint.path}: {what}") from error
        for name in ("model_", "progress_", "input_", *(() if model._numeric_targets else ("classes_",))):
            setattr(model, name, getattr(other, name))
        for name in ("n_features_in_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        model.progress_.start(self.begun)
        self.started = True

    def _fingerprint(self) -> str:
        """Settings and the way of reading; the bytes themselves are compared when they are read again."""
        params = {**self.model.get_params(deep=False), "hasher": hasher_params(self.model.hasher)}
        params = {name: value for name, value in params.items() if name not in _OF_NO_ACCOUNT}
        return fingerprint_of((params, self.form, self.on_error, self.limit, sorted(self.names)), [])

    def _save(self, number: int, n_done: int, digest: str) -> None:
        """Writes a checkpoint when one is due."""
        if self.checkpoint is None or not self.checkpoint.due():
            return
        model = self.model
        if not model._numeric_targets:
            self._sync_classes()
        kept = {name: model.__dict__[name] for name in ("interrupted_", "n_features_in_") if name in model.__dict__}
        model.interrupted_ = False
        model.n_features_in_ = 1  # known at the end
        try:
            meta, arrays = model.to_state()
        finally:
            for name in ("interrupted_", "n_features_in_"):
                del model.__dict__[name]
            model.__dict__.update(kept)
        state = {"model": meta, "pass": number, "blocks": n_done, "digest": digest, "names": sorted(self.names)}
        self.checkpoint.write(state, arrays)

    def _pass(self, number: int) -> None:
        if number < self.first_pass:
            return
        if (number or self.reader.n_lines) and self.held is None:
            self.reader = make_reader(
                self.model, self.form, self.source, self.on_error, self.limit, self.form.format != "vw"
            )
        digests: deque[str] | None = None if self.checkpoint is None else deque()
        blocks = self._held_blocks() or blocks_of(self.model, self.source, self.reader, self.form, digests=digests)
        n_skipped, self.n_done = self.n_done, 0
        n_done, digest = 0, ""
        try:
            if not self.started:
                blocks = self._look_ahead(blocks)
            for n_done, block in enumerate(blocks, 1):
                if digests is not None:
                    digest = digests.popleft()
                if n_done > n_skipped:
                    self._learn(block, number)
                    self._save(number, n_done, digest)
                elif n_done == n_skipped and digest != self.digest:
                    self._fail_changed()
            if n_skipped and n_done < n_skipped:
                self._fail_changed()
        finally:
            if hasattr(blocks, "close"):
                blocks.close()

    held: tuple[list[_core.examples.Examples], Any] | None = None
    """Of a stream that is read once: the blocks that were looked at, and those to come."""

    def _held_blocks(self) -> Any:
        if self.held is None:
            return None
        (first, rest), self.held = self.held, None
        return itertools.chain(first, rest)

    def _fail_changed(self) -> NoReturn:
        assert self.checkpoint is not None
        raise ModelFileError(
            f"{self.checkpoint.path}: the checkpoint belongs to a training run with other data: {self.source.name} "
            "does not begin as it did then; remove it or give another path"
        )

    def _look_ahead(self, blocks: Iterator[_core.examples.Examples]) -> Iterator[_core.examples.Examples]:
        """Starts the model with the labels of the first blocks, and gives all blocks back."""
        first: list[_core.examples.Examples] = []
        error: BaseException | None = None
        try:
            for block in blocks:
                first.append(block)
                if len(first) == AHEAD:
                    break
        except DataFileError as found:
            error = found
        if first:
            self._start(first)
            while first:
                yield first.pop(0)
        if error is not None:
            raise error
        yield from blocks

    def _start(self, first: list[_core.examples.Examples]) -> None:
        model = self.model
        array = self.form.format == "svmlight"
        inputs: Any = Rows(None, model.n_bits) if array else Documents([], text_features(model.hasher))
        for name in ("n_features_in_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        if model._numeric_targets:
            model._start(self.settings, inputs)
        else:
            for block in first:
                self.names.update(block.label_names)
            classes = as_classes(self.names) if self.names else np.array([], dtype=str)
            model._start(dict(self.settings), inputs, classes)
        model.progress_.start(self.begun)
        self.started = True

    def _sync_classes(self) -> None:
        """``classes_`` as the compiled model has them: those that came later are at the end."""
        model = self.model
        names = model.model_.labels()
        if len(names) <= len(model.classes_):
            return
        new = names[len(model.classes_) :]
        kind = model.classes_.dtype.kind
        if not len(model.classes_):
            model.classes_ = as_classes(set(new)) if len(new) == 1 else np.array(new)
        elif kind in "iu" and all(INTEGER.fullmatch(name) for name in new):
            model.classes_ = np.concatenate([model.classes_, np.array(list(map(int, new)), dtype=np.int64)])
        elif kind == "f" and all(is_float(name) for name in new):
            model.classes_ = np.concatenate([model.classes_, np.array(list(map(float, new)))])
        else:
            model.classes_ = np.array(names)

    def _learn(self, block: _core.examples.Examples, number: int) -> None:
        model = self.model
        if model._numeric_targets:
            if model.loss == "poisson" and (block.targets < 0).any():
                raise ValueError(f"{self.source.name}: loss='poisson' needs targets of at least 0")
        else:
            block = self._with_labels(block)
        if number:
            model.model_.learn(block)
            return
        begin, n, progress = 0, len(block), model.progress_
        while begin < n:
            # Up to the next power of two, so that the history does not depend on where blocks end.
            mark = 1 << progress.examples.bit_length()
            end = min(n, begin + mark - progress.examples)
            figures = model.model_.learn(block, begin, end)
            progress.add(figures)
            if self.table is not None and progress.examples == mark:
                self.table.line(model, figures, block, end)
            begin = end

    def _with_labels(self, block: _core.examples.Examples) -> _core.examples.Examples:
        """The block with the names that the compiled model has for its labels, and weighted by class."""
        model, names = self.model, block.label_names
        name_of = core_name(model.classes_)
        renamed = [name_of(name) for name in names]
        if model.model_.settings()["task"] == "binary":
            self.names.update(renamed)
            if len(self.names) > 2:
                if self.afresh and self.source.again:
                    raise _ThirdClass(set(self.names) | set(model.model_.labels()))
                new = sorted(set(renamed) - set(model.model_.labels()))[0]
                raise ValueError(
                    f"{self.source.name}: a third label, {new!r}, came to a model of two: "
                    "name all labels in classes= at the start"
                )
        weights = block.weights if len(block.weights) else None
        if isinstance(model.class_weight, dict):
            factors = {str(label): float(factor) for label, factor in model.class_weight.items()}
            table = np.array([*(factors.get(name, 1.0) for name in renamed), 1.0])
            if not (np.isfinite(table) & (table >= 0)).all():
                raise ValueError("class_weight must hold finite numbers of at least 0")
            by_label = table[block.labels]
            weights = (by_label if weights is None else by_label * weights).astype(np.float32)
        elif renamed == names:
            return block
        _core.examples.set_outputs(block, labels=block.labels, label_names=renamed, weights=weights)
        return block
