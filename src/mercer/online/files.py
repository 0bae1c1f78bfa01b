"""Learning from files that are larger than memory: read and hashed in one thread while another one learns.

    bytes → blocks of hashed examples (``ExampleReader``) → judged, then learnt (``HashedModel`` of the core)

A block holds about a megabyte of the file, and two wait at most: memory does not grow with the file. Whether reading
and learning overlap changes nothing in the result, since blocks come in the order of the file.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import queue
import re
import stat
import sys
import threading
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, BinaryIO, NoReturn, TypeAlias

import numpy as np

from mercer import _core
from mercer._state.container import ModelFileError
from mercer._validation import check_choice, check_count, thread_count
from mercer.exceptions import DataFileError
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.checkpoint import fingerprint as fingerprint_of
from mercer.online._columns import LABEL_NAMES, SAMPLE_BYTES, Table, guess_label, read_sample
from mercer.online._inputs import Documents, Rows, text_features
from mercer.online._names import names_in_file

__all__ = ["FORMATS", "ColumnGuessWarning", "FileLearning", "LineWriter", "ReadReport"]

FilePath: TypeAlias = str | os.PathLike[str] | IO[bytes]
FieldName: TypeAlias = str | int

FORMATS = ("text", "vw", "svmlight", "csv", "jsonl")
SUFFIXES = {
    ".txt": "text", ".vw": "vw", ".dat": "vw", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
_PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)

_CHUNK = 1 << 20
_AHEAD = 4
"""Blocks that are looked at before learning begins: they say which classes there are."""

_PEEKED_LINES, _PEEKED_BYTES = 200, 1 << 16
"""What is awaited of a stream before its columns are looked at: lines, or bytes."""


class ColumnGuessWarning(UserWarning):
    """The part that a column of a file plays was guessed from what it holds."""


_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


# ------------------------------------------------------------------------------------------------- where bytes come
# from


class Source:
    """A path, standard input, or an open file: its name in messages, and its bytes, once or several times."""

    def __init__(self, path: FilePath) -> None:
        self.file: BinaryIO | None = None
        self.start: int | None = None
        self.peeked: tuple[Any, bytes] | None = None
        if isinstance(path, (str, os.PathLike)):
            self.path = os.fspath(path)
            if not isinstance(self.path, str):
                raise TypeError("path must be a str or a path of str, not of bytes")
            self.name = "<stdin>" if self.path == "-" else self.path
        else:
            if not hasattr(path, "read") or isinstance(path, io.TextIOBase):
                raise TypeError(f"path must be a path, '-' or a file opened in binary mode, got {type(path).__name__}")
            self.path = str(getattr(path, "name", ""))
            self.name = self.path or "<file>"
            self.file = path  # type: ignore[assignment]
            if getattr(path, "seekable", lambda: False)():
                self.start = path.tell()

    @property
    def again(self) -> bool:
        """Whether it can be read more than once."""
        if self.file is not None:
            return self.start is not None
        return self.path != "-" and stat.S_ISREG(os.stat(self.path).st_mode)

    @property
    def format(self) -> str | None:
        """The format that the name promises."""
        return SUFFIXES.get(os.path.splitext(self._unpacked_name())[1].lower())

    @property
    def tabs(self) -> bool:
        """Whether the name promises columns split by tabs."""
        return self._unpacked_name().lower().endswith(".tsv")

    def _unpacked_name(self) -> str:
        base, suffix = os.path.splitext(self.path)
        return base if suffix.lower() in _PACKED else self.path

    def head(self) -> tuple[bytes, bool]:
        """The first bytes, and whether they are all; what can be read only once is kept for `open`."""
        if self.again:
            with self.open() as stream:
                data = bytearray(SAMPLE_BYTES)
                n, _ = _fill(stream, memoryview(data))
                return bytes(data[:n]), n < SAMPLE_BYTES
        stack = contextlib.ExitStack()
        stream, data, more = stack.enter_context(self.open()), bytearray(), True
        while more and len(data) < _PEEKED_BYTES and data.count(b"\n") < _PEEKED_LINES:
            part = bytearray(_PEEKED_BYTES)
            n = _read_some(stream, memoryview(part))
            data += part[:n]
            more = n > 0
        self.peeked = stack.pop_all(), bytes(data)
        self.stream = stream
        return bytes(data), not more

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """The unpacked bytes from the start. Only what was opened here is closed."""
        if self.peeked is not None:
            stack, data = self.peeked
            self.peeked = None
            with stack:
                yield _Replayed(data, self.stream)
        elif self.file is not None:
            if self.start is not None:
                self.file.seek(self.start)
            yield self.file
        elif self.path == "-":
            # The raw file where there is one: a thread that waits in it for ever holds no lock that the end of the
            # process needs.
            buffered = getattr(sys.stdin, "buffer", sys.stdin)
            yield getattr(buffered, "raw", buffered)
        else:
            unpack = _PACKED.get(os.path.splitext(self.path)[1].lower())
            stream = unpack(self.path, "rb") if unpack else open(self.path, "rb", buffering=0)  # noqa: SIM115
            with stream:
                yield stream


class _Replayed:
    """Bytes that were read already, and then the rest of a stream."""

    def __init__(self, data: bytes, stream: Any) -> None:
        self.data, self.stream = data, stream

    def readinto(self, view: memoryview) -> int:
        """One read."""
        if self.data:
            n = min(len(view), len(self.data))
            view[:n], self.data = self.data[:n], self.data[n:]
            return n
        return _read_some(self.stream, view)


def _read_some(stream: Any, view: memoryview) -> int:
    """One read, of what there is; 0 at the end."""
    read_into = getattr(stream, "readinto1", None) or getattr(stream, "readinto", None)
    if read_into is not None:
        return read_into(view) or 0
    data = stream.read(len(view))
    view[: len(data)] = data
    return len(data)


def _fill(stream: Any, view: memoryview) -> tuple[int, Exception | None]:
    """Reads until the view is full or the file ends, and says what stopped it if the packed data are damaged."""
    n = 0
    # One read of the file below at a time where there is the choice: what was unpacked before damaged data is not lost.
    while n < len(view):
        try:
            count = _read_some(stream, view[n:])
        except _DAMAGED as error:
            return n, error
        except OSError as error:  # bz2 has no error of its own
            if error.errno is None:
                return n, error
            raise
        if not count:
            break
        n += count
    return n, None


def read_blocks(
    source: Source,
    reader: _core.examples.ExampleReader,
    chunk: int,
    stop: threading.Event,
    digests: deque[str] | None = None,
) -> Iterator[_core.examples.Examples]:
    """The examples of a file in blocks; raises DataFileError behind the last good one. Ends early if told to stop.

    With ``digests``, a digest of all bytes so far goes there for each block.
    """
    view = memoryview(bytearray(chunk))
    digest = hashlib.blake2b(digest_size=16)
    with source.open() as stream:
        while not reader.done:
            n, damage = _fill(stream, view)
            if stop.is_set():
                return
            block = reader.feed(view[:n], n < chunk and damage is None)
            if digests is not None:
                digest.update(view[:n])
            if len(block):
                if digests is not None:
                    digests.append(digest.hexdigest())
                yield block
            if damage is not None and reader.error is None:
                what = f"the packed data are damaged or cut short ({damage})"
                raise DataFileError(source.name, reader.n_lines + 1, what, "copy or download the file again")
    if reader.error is not None:
        line, what = reader.error
        raise DataFileError(source.name, line, what, _hint(what))


def _hint(what: str) -> str:
    about_fields = ("the columns are", "the fields are", "beside the label", "among the features", "two parts to play")
    if any(phrase in what for phrase in about_fields):
        return "label=, text=, columns= and categorical= (--label, --text, …) say which fields are what"
    if "zero_based" in what:
        return "zero_based=True (--zero-based) is for files that count columns from 0"
    return "on_error='skip' (--on-error skip) passes over malformed lines and counts them"


def read_ahead(
    blocks: Iterator[_core.examples.Examples], stop: threading.Event, silent: bool
) -> Iterator[_core.examples.Examples]:
    """The same blocks, made in another thread while the caller works on the one before.

    ``silent``: the source is one that may keep a reader waiting for ever.
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


# ------------------------------------------------------------------------------------------------- how a file is read


@dataclass(frozen=True)
class FileFormat:
    """What there is to know to read files like the one a model was trained on. JSON data only."""

    format: str
    label: FieldName | bool | None = None
    text: tuple[FieldName, ...] | None = None
    columns: tuple[FieldName, ...] | str | None = None
    categorical: tuple[FieldName, ...] = ()
    separator: str | None = None
    header: bool = True
    zero_based: bool = False

    def options(self, source: Source) -> dict[str, Any]:
        """Arguments of ``_core.examples.ExampleReader``."""
        out: dict[str, Any] = {}
        if self.label is False:
            out["label_place"] = "none"
        if self.format == "text":
            if self.label not in (None, False):
                out["label_place"] = check_choice("label", self.label, ("first", "last"))
            out["separator"] = self.separator or "\t"
        elif self.format == "svmlight":
            out["zero_based"] = self.zero_based
        elif self.format in ("csv", "jsonl"):
            out["label"] = None if self.label is False else self.label
            out["texts"] = None if self.text is None else list(self.text)
            out["rest"] = self.columns == "rest"
            out["columns"] = None if self.columns in (None, "rest") else list(self.columns or ())
            out["categorical"] = list(self.categorical)
        if self.format == "csv":
            out["separator"] = self.separator or ("\t" if source.tabs else ",")
            out["header"] = self.header
        return out

    def resolved(self, fields: dict[str, Any] | None, separator: str | None) -> FileFormat:
        """The same with the names that the rule found, for files that come later."""
        if fields is None:
            return self
        columns = "rest" if fields["rest"] else tuple(fields["columns"])
        return FileFormat(
            self.format, fields["label"], tuple(fields["texts"]), columns, self.categorical, separator, self.header
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {
            "format": self.format, "label": self.label, "text": None if self.text is None else list(self.text),
            "columns": list(self.columns) if isinstance(self.columns, tuple) else self.columns,
            "categorical": list(self.categorical), "separator": self.separator, "header": self.header,
            "zero_based": self.zero_based,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileFormat:
        """The inverse of :meth:`to_json`."""
        check_choice("format", data["format"], FORMATS)
        return cls(
            data["format"], data["label"], None if data["text"] is None else _names("text", data["text"]),
            data["columns"] if data["columns"] in (None, "rest") else _names("columns", data["columns"]),
            _names("categorical", data["categorical"]), data["separator"], bool(data["header"]),
            bool(data["zero_based"]),
        )  # fmt: skip


def _names(argument: str, value: Any) -> tuple[FieldName, ...]:
    """One name or number, or several."""
    found = (value,) if isinstance(value, (str, int)) else tuple(value)
    for name in found:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise TypeError(f"{argument} must hold names or numbers of columns, got {name!r}")
    return found


def _file_format(source: Source, known: FileFormat | None, arguments: dict[str, Any]) -> FileFormat:
    """The format asked for; what is left out is as in the files before, or the default."""
    format = arguments.pop("format")
    given = {name: value for name, value in arguments.items() if value is not None}
    if format is None:
        format = source.format or (known.format if known else None)
    if format is None:
        suffixes = ", ".join(SUFFIXES)
        raise ValueError(
            f"{source.name}: format must be one of {', '.join(FORMATS)}: the name has none of the suffixes {suffixes}"
        )
    check_choice("format", format, FORMATS)
    allowed = {
        "text": {"label", "separator"}, "vw": set(), "svmlight": {"zero_based"},
        "jsonl": {"label", "text", "columns", "categorical"},
        "csv": {"label", "text", "columns", "categorical", "separator", "header"},
    }[format]  # fmt: skip
    for name in given:
        if name not in allowed and not (name == "label" and given["label"] is False):
            raise ValueError(f"{name} means nothing for files of the format {format!r}")
    for name in ("text", "categorical"):
        if name in given:
            given[name] = _names(name, given[name])
    if "columns" in given and given["columns"] != "rest":
        given["columns"] = _names("columns", given["columns"])
    base = known if known is not None and known.format == format else FileFormat(format)
    return FileFormat(**{**{name: getattr(base, name) for name in FileFormat.__dataclass_fields__}, **given})


def _with_guesses(form: FileFormat, source: Source, numeric: bool) -> tuple[FileFormat, list[str], list[str]]:
    """The format of a csv with what was left out guessed from its first rows: what is surprising, and all that is.

    Whoever says which columns are what is believed; a text that is taken as a category is mentioned.
    """
    if form.format != "csv":
        return form, [], []
    separator = form.options(source)["separator"]
    if len(separator) != 1 or not separator.isascii():
        return form, [], []
    table = read_sample(*source.head(), separator, form.header)
    if table is None:
        return form, [], []
    surprises: list[str] = []
    if table.header_of_numbers:
        surprises.append(
            f"{source.name}: the first line is taken as the names of the columns, but holds numbers; header=False "
            "(--no-header) reads it as data"
        )
    label = form.label
    if label is None:
        found = guess_label(table, numeric)
        if found is None:
            known = f"{', '.join(LABEL_NAMES[:-1])} or {LABEL_NAMES[-1]}"
            what = f"no column is named {known}; which one is the label? the columns are {_listed(table.names)}"
            raise DataFileError(source.name, 1, what, "label= (--label NAME) names the label")
        label, why = found
        if why:
            surprises.append(
                f"{source.name}: the column {_quoted(label)} is taken as the label ({why}); label= (--label NAME) "
                "names another"
            )
    form = replace(form, label=label)
    form, said = _with_text(form, source, table)
    return form, surprises + said, _roles(form, source, table)


def _with_text(form: FileFormat, source: Source, table: Table) -> tuple[FileFormat, list[str]]:
    """The format with columns of text found, if nothing is said about columns, and what to say about it."""
    label = _name_of(form.label, table)
    texts = [column for column in table.columns if column.role == "text" and column.name != label]
    if form.text is not None:
        return form, []
    if form.columns is not None:
        listed = table.names if form.columns == "rest" else [_name_of(ref, table) for ref in form.columns]
        categories = [column for column in texts if column.name in listed]
        return form, [
            f"{source.name}: the column {_quoted(column.name)} looks like text ({_evidence(column)}), and each of its "
            f"values is one category; text={column.name!r} (--text) takes its words"
            for column in categories
        ]
    if "text" in table.names and label != "text":
        others = [name for name in table.names if name not in ("text", label)]
        if not others:
            return form, []
        return form, [
            f"{source.name}: only the column 'text' is learnt from, not {_listed(others)}; columns='rest' "
            "(--columns rest) takes all"
        ]
    if not texts:
        return form, []
    names = tuple(column.name for column in texts)
    rest = [name for name in table.names if name not in names and name != label]
    form = replace(form, text=names, columns="rest" if rest else None)
    return form, [
        f"{source.name}: the column {_quoted(column.name)} is read as text ({_evidence(column)}); columns="
        f"{column.name!r} (--columns) takes each of its values as one category"
        for column in texts
    ]


def _roles(form: FileFormat, source: Source, table: Table) -> list[str]:
    """All columns and their parts, on a line."""
    label, texts = _name_of(form.label, table), [_name_of(ref, table) for ref in form.text or ()]
    parts = [] if label is None else [f"label {_quoted(label)}"]
    if texts or "text" in table.names:
        parts.append(f"text {_listed(texts or ['text'])}")
    if form.columns is not None or not (texts or "text" in table.names):
        used = set(table.names) if form.columns in (None, "rest") else {_name_of(ref, table) for ref in form.columns}
        named = {_name_of(ref, table) for ref in form.categorical}
        for role, noun in (("number", "numbers"), ("category", "categories")):
            names = [
                column.name
                for column in table.columns
                if column.name in used - {label, *texts}
                and ("category" if column.name in named or column.role == "text" else column.role) == role
            ]
            if names:
                parts.append(f"{noun} {_listed(names)}")
    return [f"{source.name}: {'; '.join(parts)} (--label, --text, --columns and --categorical change this)"]


def _name_of(ref: FieldName | bool | None, table: Table) -> str | None:
    if isinstance(ref, bool) or ref is None:
        return None
    if isinstance(ref, str):
        return ref
    return table.names[ref] if -len(table.names) <= ref < len(table.names) else None


def _evidence(column: Any) -> str:
    return f"{column.n_different:,} different values in {column.n_values:,} rows, {column.n_words:.0f} words each"


def _quoted(name: Any) -> str:
    return repr(str(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(_quoted(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


@dataclass
class ReadReport:
    """What came of reading a file: examples, and lines that were passed over."""

    examples: int = 0
    lines: int = 0
    n_skipped: int = 0
    skipped: Sequence[tuple[int, str]] = ()

    def note(self, reader: _core.examples.ExampleReader) -> None:
        """Takes over the figures of a reader."""
        self.examples, self.lines = reader.n_examples, reader.n_lines
        self.n_skipped, self.skipped = reader.n_skipped, reader.skipped


# ------------------------------------------------------------------------------------------------- labels


def _as_classes(names: set[str]) -> np.ndarray:
    """Labels of a file, sorted: integers if all of them are, otherwise str."""
    if all(_INTEGER.fullmatch(name) for name in names):
        return np.array(sorted(map(int, names)), dtype=np.int64)
    return np.array(sorted(names))


def _core_name(classes: np.ndarray) -> Callable[[str], str]:
    """From the name of a label in a file to its name in the compiled model: 1 may be 1.0 there."""
    if classes.dtype.kind != "f":
        return lambda name: name
    known = {float(c): str(c) for c in classes.tolist()}

    def name_of(name: str) -> str:
        with contextlib.suppress(ValueError):
            return known.get(float(name), name)
        return name

    return name_of


# ------------------------------------------------------------------------------------------------- the methods


_OF_NO_ACCOUNT = ("n_jobs", "verbose", "random_state")  # for what is learnt from a file

READING = ("format", "label", "text", "columns", "categorical", "separator", "header", "zero_based")


def _reading(given: dict[str, Any]) -> dict[str, Any]:
    """Of the arguments of a method, those that say how a file is read."""
    return {name: given[name] for name in READING}


class FileLearning:
    """The methods of hashed learners that read files: mixed into `HashedClassifier` and `HashedRegressor`."""

    file_format_: FileFormat

    def fit_file(
        self,
        path: FilePath,
        format: str | None = None,
        *,
        label: FieldName | None = None,
        text: FieldName | Sequence[FieldName] | None = None,
        columns: FieldName | Sequence[FieldName] | None = None,
        categorical: FieldName | Sequence[FieldName] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        zero_based: bool | None = None,
        classes: Any = None,
        on_error: str = "raise",
        limit: int | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Any:
        r"""Learns afresh from a file, block by block, in memory that does not grow with it.

        The file is taken in its order (nothing is shuffled), ``passes`` times. Reading, hashing and learning overlap
        unless ``n_jobs=1``; the result is the same. ``verbose=1`` prints the progressive loss at powers of two, as
        Vowpal Wabbit does. Ctrl-C ends the reading and keeps what was learnt (``interrupted_``); so does a malformed
        line, after its error.

        Parameters
        ----------
        path : str, path, "-" or binary file
            Names that end in ``.gz``, ``.bz2`` or ``.xz`` are unpacked on the way; ``"-"`` is standard input.
        format : {"text", "vw", "svmlight", "csv", "jsonl"}, optional
            By default what the suffix says: ``.txt``, ``.vw`` or ``.dat``, ``.svm``, ``.svmlight`` or ``.libsvm``,
            ``.csv`` or ``.tsv``, ``.jsonl`` or ``.ndjson``. See the guide on files for what a line looks like in
            each.
        label : str or int, optional
            csv and jsonl: the name (``"a.b"`` for a field inside a field) or number of the label. Default:
            ``"label"``; in a csv also ``"target"``, ``"class"`` or ``"y"`` in upper or lower case, or else the first
            or the last column if only one of them has few different values, with a `ColumnGuessWarning`. text:
            ``"first"`` (default) or ``"last"``.
        text : str, int or several, optional
            csv and jsonl: fields that hold text. Default: ``"text"``, if it is there; in a csv without it, columns
            whose values mostly differ and have three words or more, with a `ColumnGuessWarning`.
        columns : str, int or several, or "rest", optional
            csv and jsonl: fields that are features themselves, numbers or categories; ``"rest"``: all that have no
            other part. Default: the rest if there is no text, otherwise none.
        categorical : str, int or several, optional
            Those of the columns whose numbers are names (such as postcodes).
        separator : str, optional
            csv: between columns; default a comma, a tab in files named ``.tsv``. text: between label and text;
            default a tab.
        header : bool, optional
            csv: whether the first line names the columns; default True. Without, their names are ``"0"``, ``"1"``, …
        zero_based : bool, optional
            svmlight: whether columns are counted from 0; default False.
        classes : array, optional
            Labels there will be (classifiers). Needed only where a stream that cannot be read again has two labels in
            its first megabytes and further ones later.
        on_error : {"raise", "skip"}, default="raise"
            What to do with malformed lines. Skipped ones are counted in ``skipped_``, the first few with line and
            reason.
        limit : int, optional
            Read only so many examples.
        checkpoint : path or Checkpoint, optional
            Training is saved there every few seconds; one that was killed goes on from there when it is called again,
            to the same model. The part of the file that was learnt is read again, but not learnt again.

        Returns
        -------
        self

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from mercer.online import HashedClassifier
        >>> path = Path(tempfile.mkdtemp()) / "mail.txt"
        >>> lines = "spam\tcheap pills now\nham\tmeeting at noon\nspam\tcheap watches\nham\tnotes of the meeting\n"
        >>> _ = path.write_text(lines * 5)
        >>> model = HashedClassifier(n_bits=16).fit_file(path)
        >>> model.predict(["cheap meeting pills now", "meeting notes"])
        array(['spam', 'ham'], dtype='<U4')
        >>> model.score_file(path)
        1.0
        """
        arguments = _reading(locals())
        run = _Training(self, Source(path), arguments, on_error, limit, afresh=True)
        if checkpoint is not None:
            run.checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        run.fit(classes)
        note_file_names(self, path)
        return self

    def partial_fit_file(
        self,
        path: FilePath,
        format: str | None = None,
        *,
        label: FieldName | None = None,
        text: FieldName | Sequence[FieldName] | None = None,
        columns: FieldName | Sequence[FieldName] | None = None,
        categorical: FieldName | Sequence[FieldName] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        zero_based: bool | None = None,
        classes: Any = None,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> Any:
        """Learns from a further file, in one pass.

        Parameters
        ----------
        path, format, label, text, columns, categorical, separator, header, zero_based, on_error, limit : as in
        `fit_file`
            What is left out is as in the file before.
        classes : array, optional
            In the first call: labels there will be.

        Returns
        -------
        self
        """
        arguments = _reading(locals())
        run = _Training(self, Source(path), arguments, on_error, limit, afresh=not hasattr(self, "model_"))
        run.partial_fit(classes)
        note_file_names(self, path)
        return self

    def predict_file(
        self,
        path: FilePath,
        output: str | os.PathLike[str] | None = None,
        *,
        proba: bool = False,
        top: int | None = None,
        format: str | None = None,
        label: FieldName | bool | None = None,
        text: FieldName | Sequence[FieldName] | None = None,
        columns: FieldName | Sequence[FieldName] | None = None,
        categorical: FieldName | Sequence[FieldName] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        zero_based: bool | None = None,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> np.ndarray | int:
        """Predicts for every example of a file, with or without labels in it.

        Parameters
        ----------
        path, text, columns, categorical, separator, header, zero_based, limit : as in `fit_file`
            What is left out is as in the file the model was trained on.
        output : str, path or "-", optional
            Write a line for each example here (``"-"``: standard output) instead of returning them.
        proba : bool, default=False
            Return probabilities of all classes; write that of the predicted label behind it, after a tab.
        top : int, optional
            Write the so many best labels of each example with their scores (with ``proba``: probabilities). Needs
            ``output``.
        format : str, optional
            By default what the suffix says, or as in training.
        label : str, int or False, optional
            Where the label is, so that it is not taken for a feature. False: there is none; needed only for the
            format text where documents hold tabs.
        on_error : {"raise", "skip"}, default="raise"
            With ``"skip"`` malformed lines have no prediction, and the lines of `output` no longer match those of
            `path`.

        Returns
        -------
        array of predictions, or with `output` the number of examples
        """
        arguments = _reading(locals())
        if top is not None and output is None:
            raise ValueError("top needs an output; for arrays see top_k")
        blocks = labelled_blocks(self, path, arguments, on_error, limit, required=False)
        if output is None:
            wanted = self.predict_proba if proba else self.predict  # type: ignore[attr-defined]
            parts = [wanted(block) for block in blocks]
            return (
                np.concatenate(parts)
                if parts
                else wanted(_core.examples.Examples(np.zeros(1, np.int64), np.empty(0, np.uint64)))
            )
        n = 0
        with LineWriter(output) as write:
            for block in blocks:
                write(prediction_lines(self, block, proba, top))
                n += len(block)
        return n

    def score_file(
        self,
        path: FilePath,
        format: str | None = None,
        *,
        label: FieldName | None = None,
        text: FieldName | Sequence[FieldName] | None = None,
        columns: FieldName | Sequence[FieldName] | None = None,
        categorical: FieldName | Sequence[FieldName] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        zero_based: bool | None = None,
        on_error: str = "raise",
        limit: int | None = None,
    ) -> float:
        """The accuracy (of a regressor: R²) over the labelled examples of a file, weighted by their importance.

        Parameters
        ----------
        path, format, label, text, columns, categorical, separator, header, zero_based, on_error, limit : as in
        `fit_file`
            What is left out is as in the file the model was trained on.

        Returns
        -------
        float
            Labels that the model does not know count as errors.
        """
        arguments = _reading(locals())
        sums = np.zeros(4)  # weight; right or Σ (y - ŷ)²; Σ y; Σ y²
        for block in labelled_blocks(self, path, arguments, on_error, limit):
            truth, weights, known = outputs_of(self, block)
            predicted = np.asarray(self.predict(block))[known]  # type: ignore[attr-defined]
            truth, weights = truth[known], weights[known]
            if self._numeric_targets:  # type: ignore[attr-defined]
                sums += [weights.sum(), weights @ (truth - predicted) ** 2, weights @ truth, weights @ truth**2]
            else:
                sums[:2] += [weights.sum(), weights @ (truth == predicted)]
        if not sums[0]:
            raise ValueError(f"{Source(path).name}: no labelled examples in this file")
        if not self._numeric_targets:  # type: ignore[attr-defined]
            return float(sums[1] / sums[0])
        spread = sums[3] - sums[2] ** 2 / sums[0]
        return float(1 - sums[1] / spread) if spread > 0 else float("nan")

    def _file_state(self) -> dict[str, Any]:
        """What a model file keeps of the files read, if any were."""
        return {"file_format": self.file_format_.to_json()} if hasattr(self, "file_format_") else {}

    def _restore_file_state(self, meta: dict[str, Any]) -> None:
        if meta.get("file_format") is not None:
            self.file_format_ = FileFormat.from_json(meta["file_format"])


def make_reader(
    model: Any, form: FileFormat, source: Source, on_error: str, limit: int | None, required: bool
) -> _core.examples.ExampleReader:
    """A reader whose features are those of the model."""
    check_choice("on_error", on_error, ("raise", "skip"))
    if limit is not None:
        check_count("limit", limit, least=0)
    text = text_features(model.hasher)._settings()
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
        n_bits=model.n_bits if array else 0,
        **form.options(source),
    )


def _check_kind(model: Any, form: FileFormat, source: Source) -> None:
    """A model of columns goes on with columns, one of hashed names with hashed names."""
    if (form.format == "svmlight") != (model.input_ == "array"):
        seen = "columns of arrays or svmlight files" if model.input_ == "array" else "documents or files with names"
        raise ValueError(
            f"{source.name}: this model has learnt from {seen}, and this file has the format {form.format!r}"
        )


def labelled_blocks(
    model: Any,
    path: FilePath,
    arguments: dict[str, Any],
    on_error: str = "raise",
    limit: int | None = None,
    *,
    required: bool = True,
    report: ReadReport | None = None,
) -> Iterator[_core.examples.Examples]:
    """Blocks of a file for a model that has learnt already; what `arguments` leave out is as in its own file."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "model_")
    source = Source(path)
    form = _file_format(source, getattr(model, "file_format_", None), arguments)
    _check_kind(model, form, source)
    reader = make_reader(model, form, source, on_error, limit, required and form.format != "vw")
    # Scores of a block of short lines and thousands of classes must fit into memory with ease.
    chunk = max(1 << 14, min(_CHUNK, (_CHUNK << 6) // max(1, model.model_.n_outputs)))
    try:
        for block in _blocks(model, source, reader, chunk):
            if form.format == "svmlight" and reader.n_columns > model.n_features_in_:
                raise ValueError(
                    f"{source.name}: the model has {model.n_features_in_} columns, this file has column "
                    f"{reader.n_columns - 1} (counted from 0)"
                )
            yield block
    finally:
        if report is not None:
            report.note(reader)


def _announce(model: Any, surprises: list[str], roles: list[str]) -> None:
    """Says what was guessed about a file, before anything is learnt: to the command line, or as warnings."""
    say = getattr(model, "_say", None)
    for message in surprises:
        if say is not None:
            say("warning", message)
        else:
            warnings.warn(message, ColumnGuessWarning, stacklevel=4)
    if say is not None:
        for message in roles:
            say("note", message)


def _blocks(
    model: Any,
    source: Source,
    reader: _core.examples.ExampleReader,
    chunk: int | None = None,
    digests: deque[str] | None = None,
) -> Iterator[_core.examples.Examples]:
    thread_count(model.n_jobs)  # checks it
    stop = threading.Event()
    blocks = read_blocks(source, reader, chunk or _CHUNK, stop, digests)
    return blocks if model.n_jobs == 1 else read_ahead(blocks, stop, not source.again)


def outputs_of(model: Any, block: _core.examples.Examples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels (as the model's classes, or the file's own names) or targets, weights, and which examples have one."""
    weights = block.weights.astype(np.float64) if len(block.weights) else np.ones(len(block))
    if model._numeric_targets:
        return block.targets, weights, ~np.isnan(block.targets)
    classes = model.classes_
    core_name = _core_name(classes)
    places = {str(c): c for c in classes.tolist()}
    names = [places.get(core_name(name), name) for name in block.label_names]
    numbers = block.labels
    table = np.empty(len(names) + 1, dtype=object)
    table[:-1] = names
    return table[numbers], weights, numbers >= 0


# ------------------------------------------------------------------------------------------------- training


def note_file_names(model: Any, path: FilePath) -> None:
    """Keep names of the features in a file, where it can be read again."""
    if model.inverse_size and model.input_ != "array" and isinstance(path, str | os.PathLike) and path != "-":
        model._note_names(*names_in_file(path, model.file_format_, model.hasher))


class _ThirdClass(Exception):
    """More than two classes in a file that seemed to have two."""

    def __init__(self, names: set[str]) -> None:
        self.names = names


class _Training:
    """One call of `fit_file` or `partial_fit_file`."""

    def __init__(
        self, model: Any, source: Source, arguments: dict[str, Any], on_error: str, limit: int | None, *, afresh: bool
    ) -> None:
        self.model, self.source, self.on_error, self.limit, self.afresh = model, source, on_error, limit, afresh
        self.settings = model._check_parameters()
        self.begun = time.perf_counter()
        known = None if afresh else getattr(model, "file_format_", None)
        self.form = _file_format(source, known, arguments)
        if afresh:
            self.form, surprises, roles = _with_guesses(self.form, source, model._numeric_targets)
            _announce(model, surprises, roles)
        else:
            _check_kind(model, self.form, source)
        if getattr(model, "class_weight", None) == "balanced":
            raise ValueError("class_weight='balanced' needs all examples at once: give the weights as a dict")
        self.table = ProgressTable() if model.verbose else None
        self.started = not afresh
        self.names: set[str] = set()
        self.reader = make_reader(model, self.form, source, on_error, limit, self.form.format != "vw")

    checkpoint: Checkpoint | None = None
    """Where the run is saved, if anywhere."""

    first_pass, n_done = 0, 0  # of a run that goes on: the pass it was in, and blocks done in it
    digest = ""

    def fit(self, classes: Any) -> None:
        """All passes, afresh."""
        model = self.model
        passes = model._passes()
        if passes > 1 and not self.source.again:
            raise ValueError(f"{self.source.name} can be read only once: passes must be 1, got {passes}")
        self._set_names(classes)
        self._resume()
        with self._ending():
            try:
                self._pass(0)
            except _ThirdClass as found:
                # Learnt for two classes so far: begin again, for as many as there are.
                self.names, self.started, self.n_done = found.names, False, 0
                self._pass(0)
            for number in range(1, passes):
                self._pass(number)
        if not model._numeric_targets and len(model.classes_) < 2 and not model.interrupted_:
            raise ValueError(
                f"{self.source.name}: need at least two classes to learn from, found one class: "
                f"{model.classes_.tolist()[0]!r}{self._passed_over()}"
            )

    def partial_fit(self, classes: Any) -> None:
        """One pass, from where the model is."""
        model = self.model
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
                error.add_note(f"the model has learnt what comes before this line: {_examples(model)}")
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
        separator = self.form.options(self.source).get("separator")
        model.file_format_ = self.form.resolved(self.reader.fields, separator)
        model.progress_.record()
        model.progress_.stop()
        if self.table is not None:
            self.table.end(model)

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
        except (LookupError, TypeError, ValueError, AttributeError) as error:
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
        params = {**self.model.get_params(deep=False), "hasher": text_features(self.model.hasher).to_json()}
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
        if number or self.reader.n_lines:
            self.reader = make_reader(
                self.model, self.form, self.source, self.on_error, self.limit, self.form.format != "vw"
            )
        digests: deque[str] | None = None if self.checkpoint is None else deque()
        blocks = _blocks(self.model, self.source, self.reader, digests=digests)
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
                if len(first) == _AHEAD:
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
            classes = _as_classes(self.names) if self.names else np.array([], dtype=str)
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
            model.classes_ = _as_classes(set(new)) if len(new) == 1 else np.array(new)
        elif kind in "iu" and all(_INTEGER.fullmatch(name) for name in new):
            model.classes_ = np.concatenate([model.classes_, np.array(list(map(int, new)), dtype=np.int64)])
        elif kind == "f" and all(_is_float(name) for name in new):
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
        core_name = _core_name(model.classes_)
        renamed = [core_name(name) for name in names]
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


def _examples(model: Any) -> str:
    n = model.progress_.examples
    return f"{n:,} example{'' if n == 1 else 's'}"


def _is_float(name: str) -> bool:
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------------- what is printed


class ProgressTable:
    """Progressive validation in the columns of Vowpal Wabbit, on standard error."""

    def __init__(self) -> None:
        self.begun = False

    def line(self, model: Any, figures: dict[str, Any], block: _core.examples.Examples, end: int) -> None:
        """A line about the example before `end`."""
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
        """A last line, about the whole."""
        progress, skipped = model.progress_, model.skipped_.n_skipped
        more = f", {skipped:,} malformed lines skipped" if skipped else ""
        error = "" if model._numeric_targets else f", error {progress.average_error:.4f}"
        self._print(f"{_examples(model)}, average loss {progress.average_loss:.6f}{error}{more}")

    @staticmethod
    def _shown(model: Any, value: float) -> str:
        if model._numeric_targets:
            return f"{value:>13.4f}"
        labels = model.model_.labels()
        name = labels[int(value)] if int(value) < len(labels) else ""
        return f"{name if len(name) <= 13 else name[:12] + '…':>13}"

    @staticmethod
    def _print(line: str) -> None:
        print(line.encode("utf-8", "replace").decode(), file=sys.stderr)


def label_text(label: Any) -> str:
    """A label on a line of output: as it is, or as a JSON string if it would break the line."""
    text = str(label)
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in "\t\r\n") else text


def prediction_lines(model: Any, block: _core.examples.Examples, proba: bool, top: int | None) -> Iterator[str]:
    """One line for each example, without line ends."""
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


class LineWriter:
    """Writes lines to a path (whole or not at all; packed by its suffix), or to standard output."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __enter__(self) -> Callable[[Iterator[str]], None]:
        if self.path == "-":
            self.stream: Any = getattr(sys.stdout, "buffer", None) or sys.stdout
        else:
            self.device = os.path.exists(self.path) and not os.path.isfile(self.path)
            self.target = self.path if self.device else f"{os.path.realpath(self.path)}.{os.getpid()}.tmp"
            pack = _PACKED.get(os.path.splitext(self.path)[1].lower())
            self.stream = pack(self.target, "wb") if pack else open(self.target, "wb")
        return self._write

    def _write(self, lines: Iterator[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if self.path == "-" and isinstance(self.stream, io.TextIOBase):
            self.stream.write(text)
        else:
            self.stream.write(text.encode("utf-8", "surrogateescape"))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.path == "-":
            self.stream.flush()
            return
        self.stream.close()
        if self.device:
            return
        if kind is None:
            os.replace(self.target, self.path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(self.target)
