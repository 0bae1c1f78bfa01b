"""Sources of bytes: a path, a folder, standard input or an open file, decompressed and in UTF-8.

    stored bytes → decompressed (gz, bz2, xz, zst) → UTF-8 → lines of a format that the compiled readers know

Compression and encoding are detected from the first bytes, not from the name. Sources without lines (JSON arrays,
Parquet, Arrow, a folder of class folders) are converted to JSON lines, one record or batch at a time.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import json
import lzma
import math
import os
import random
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, BinaryIO, TypeAlias

from mercer.exceptions import DataFileError

__all__ = ["DAMAGED", "PACKERS", "SAMPLE_BYTES", "FilePath", "Source", "fill", "read_some"]

FilePath: TypeAlias = str | os.PathLike[str] | IO[bytes]

SAMPLE_BYTES = 1 << 20
"""What is looked at to say what a file is."""

PEEKED_LINES, PEEKED_BYTES = 200, 1 << 16
"""What is awaited of a stream that can be read once before it is looked at: lines, or bytes."""

_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_NOT_DATA = {
    b"PK\x03\x04": "a zip archive (or a spreadsheet): unpack it, or export it as csv",
    b"\x7fELF": "a program",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document: export it as csv",
    b"SQLite format 3": "a database: export a table as csv",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array: use it from Python",
}
_TABLES = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_MOST_JSON = 1 << 30
"""Bytes of a JSON array: it is read as a whole."""

try:  # Python 3.14
    from compression.zstd import ZstdError as _ZstdError  # type: ignore[import-not-found]
except ImportError:

    class _ZstdError(Exception):  # type: ignore[no-redef]
        """Damaged zst data, where the standard library has none."""


DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, _ZstdError)


# ------------------------------------------------------------------------------------------------- compression


def _open_zst(path: Any, mode: str) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found]

        return zstd.open(path, mode)
    except ImportError:
        pass
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("zst files need Python 3.14 or pyarrow: pip install 'mercer[data]'") from None
    if "w" in mode:
        return pa.CompressedOutputStream(pa.PythonFile(open(path, "wb"), "w"), "zstd")
    file = path if hasattr(path, "read") else open(path, "rb")  # noqa: SIM115
    return _Arrow(pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"), file)


class _Arrow(io.RawIOBase):
    """A stream of Arrow's whose errors about damaged data are those of the other packers."""

    def __init__(self, stream: Any, file: Any) -> None:
        self.stream, self.file = stream, file

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        """One read."""
        try:
            data = self.stream.read(len(view))
        except OSError as error:
            if error.errno is not None:
                raise
            raise _ZstdError(str(error)) from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close both."""
        if not self.closed:
            with contextlib.suppress(Exception):  # closing damaged data complains again
                self.stream.close()
            self.file.close()
        super().close()


PACKERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zst,
}  # fmt: skip
"""How files are packed, by suffix: for what is written. What is read says itself how it is packed."""


# ------------------------------------------------------------------------------------------------- streams


def read_some(stream: Any, view: memoryview) -> int:
    """Read once whatever is available; return 0 at the end."""
    read_into = getattr(stream, "readinto1", None) or getattr(stream, "readinto", None)
    if read_into is not None:
        return read_into(view) or 0
    data = stream.read(len(view))
    view[: len(data)] = data
    return len(data)


def fill(stream: Any, view: memoryview) -> tuple[int, Exception | None]:
    """Read until the view is full or the file ends; return the error if compressed data are damaged."""
    n = 0
    # One read of the file below at a time where there is the choice: what was unpacked before damaged data is not lost.
    while n < len(view):
        try:
            count = read_some(stream, view[n:])
        except DAMAGED as error:
            return n, error
        except OSError as error:  # bz2 has no error of its own
            if error.errno is None:
                return n, error
            raise
        if not count:
            break
        n += count
    return n, None


class _Replayed(io.RawIOBase):
    """Bytes that were read already, and then the rest of a stream."""

    def __init__(self, data: bytes, stream: Any) -> None:
        self.data, self.stream = data, stream

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        """One read."""
        if self.data:
            n = min(len(view), len(self.data))
            view[:n], self.data = self.data[:n], self.data[n:]
            return n
        return read_some(self.stream, memoryview(view))


class _Converted(io.RawIOBase):
    """Bytes of another encoding as UTF-8, or pieces of bytes one after the other."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        """One read; 0 at the end only."""
        while not len(self.left):
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.left = memoryview(piece)
        n = min(len(view), len(self.left))
        view[:n], self.left = self.left[:n], self.left[n:]
        return n


def _recoded(stream: Any, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    view = memoryview(bytearray(1 << 18))
    while True:
        n = read_some(stream, view)
        yield decoder.decode(bytes(view[:n]), final=not n).encode("utf-8", "replace")
        if not n:
            return


# ------------------------------------------------------------------------------------------------- the source


class Source:
    """A path, a folder, standard input or an open file, with its name in messages and its bytes.

    Parameters
    ----------
    path : path, "-" or binary file
    encoding : str, optional
        Character encoding. Default: UTF-8; UTF-16 or UTF-32 if the file begins with their byte order mark; Latin-1 if
        its first bytes are not valid UTF-8.
    """

    def __init__(self, path: FilePath, encoding: str | None = None) -> None:
        self.file: BinaryIO | None = None
        self.start: int | None = None
        self.peeked: tuple[Any, bytes] | None = None
        self.encoding = encoding
        self.guessed = False
        self._head: tuple[bytes, bool] | None = None
        if encoding is not None:
            try:
                self.encoding = codecs.lookup(encoding).name
            except LookupError:
                raise ValueError(f"encoding must be one that Python knows, such as latin-1, got {encoding!r}") from None
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
        """Return whether the source can be read more than once."""
        if self.file is not None:
            return self.start is not None
        return self.path != "-" and (self.is_folder or stat.S_ISREG(os.stat(self.path).st_mode))

    @property
    def is_folder(self) -> bool:
        """Return whether the source is a folder with class folders."""
        return self.file is None and self.path != "-" and os.path.isdir(self.path)

    @property
    def suffix(self) -> str:
        """Return the suffix without that of compression: ``.csv`` for ``x.csv.gz``."""
        base, suffix = os.path.splitext(self.path)
        return os.path.splitext(base)[1].lower() if suffix.lower() in PACKED_SUFFIXES else suffix.lower()

    @contextlib.contextmanager
    def _stored(self) -> Iterator[Any]:
        """The bytes as they are stored. Only what was opened here is closed."""
        if self.file is not None:
            if self.start is not None:
                self.file.seek(self.start)
            yield self.file
        elif self.path == "-":
            # The raw file where there is one: a thread that waits in it for ever holds no lock that the end of the
            # process needs.
            buffered = getattr(sys.stdin, "buffer", sys.stdin)
            yield getattr(buffered, "raw", buffered)
        else:
            with open(self.path, "rb", buffering=0) as stream:
                yield stream

    @contextlib.contextmanager
    def _unpacked(self) -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            stored = stack.enter_context(self._stored())
            if self.file is not None and self.start is None:
                yield stored  # a stream of the caller's is taken as it is
                return
            first = memoryview(bytearray(16))
            n = fill(stored, first)[0] if self.again else read_some(stored, first)
            head = bytes(first[:n])
            kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
            _check_data(self.name, head)
            if self.again:
                stored.seek(self.start or 0)
                whole = stored
            else:
                whole = _Replayed(head, stored)
            if kind is None:
                yield whole
                return
            if isinstance(whole, _Replayed):
                whole = io.BufferedReader(whole)
            # An object that was opened here goes by its path: Arrow reads that without Python's help.
            yield stack.enter_context(PACKERS[f".{kind}"](whole, "rb"))

    @contextlib.contextmanager
    def open(self, layout: str | None = None) -> Iterator[Any]:
        """Return the bytes in UTF-8 from the start; a ``layout`` without lines is read as JSON lines."""
        if layout is not None:
            yield _Converted(_batched(self.records(layout)))
            return
        if self.peeked is not None:
            stack, data = self.peeked
            self.peeked = None
            with stack:
                yield self._as_utf8(_Replayed(data, self.stream))
            return
        with self._unpacked() as stream:
            yield self._as_utf8(stream)

    def _as_utf8(self, stream: Any) -> Any:
        if self.encoding in (None, "utf-8", "ascii"):
            return stream
        assert self.encoding is not None
        return _Converted(_recoded(stream, self.encoding))

    def head(self) -> tuple[bytes, bool]:
        """Return the first bytes in UTF-8, and whether they are the whole source; set ``encoding``."""
        if self._head is not None:
            return self._head
        data, whole = self._first_bytes()
        if self.encoding is None:
            self.encoding = _encoding_of(data, whole, self.name)
            self.guessed = self.encoding == "latin-1"
        if self.encoding not in ("utf-8", "ascii"):
            decoder = codecs.getincrementaldecoder(self.encoding)("replace")
            data = decoder.decode(data, final=whole).encode("utf-8", "replace")
        self._head = data, whole
        return self._head

    def _first_bytes(self) -> tuple[bytes, bool]:
        if self.again:
            with self._unpacked() as stream:
                space = bytearray(SAMPLE_BYTES)
                n, damage = fill(stream, memoryview(space))
                if damage is not None and not n:
                    self._fail_damaged(damage)
                return bytes(space[:n]), n < SAMPLE_BYTES
        stack = contextlib.ExitStack()
        data, more = bytearray(), True
        stream = stack.enter_context(self._unpacked())
        while more and len(data) < PEEKED_BYTES and data.count(b"\n") < PEEKED_LINES:
            part = bytearray(PEEKED_BYTES)
            try:
                n = read_some(stream, memoryview(part))
            except DAMAGED as error:
                self._fail_damaged(error)
            data += part[:n]
            more = n > 0
        self.peeked = stack.pop_all(), bytes(data)
        self.stream = stream
        return bytes(data), not more

    def _fail_damaged(self, error: Exception) -> None:
        what = f"the compressed data are damaged or truncated ({error})"
        raise DataFileError(self.name, 1, what, "copy or download the file again") from error

    # ------------------------------------------------------------------------------------------- records

    def magic_layout(self) -> str | None:
        """Return ``"parquet"`` or ``"arrow"`` by the first bytes, or ``"folder"`` for a folder."""
        if self.is_folder:
            return "folder"
        if not self.again:
            return None
        with self._stored() as stored:
            first = memoryview(bytearray(8))
            n = fill(stored, first)[0]
        head = bytes(first[:n])
        return next((layout for magic, layout in _TABLES.items() if head.startswith(magic)), None)

    def records(self, layout: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a JSON array, a Parquet or Arrow file, or a folder of class folders."""
        if layout == "folder":
            return _folder_records(self.path)
        if layout == "json":
            return self._json_records()
        return self._arrow_records(layout)

    def _json_records(self) -> Iterator[dict[str, Any]]:
        parts, size = [], 0
        with self.open() as stream:
            view = memoryview(bytearray(1 << 20))
            while True:
                n, damage = fill(stream, view)
                if damage is not None:
                    self._fail_damaged(damage)
                parts.append(bytes(view[:n]))
                size += n
                if size > _MOST_JSON:
                    what = f"a JSON array of more than {_MOST_JSON >> 20:,} MiB: write one object a line instead"
                    raise DataFileError(self.name, 1, what)
                if n < len(view):
                    break
        yield from json_records(b"".join(parts), self.name)

    def _arrow_records(self, layout: str) -> Iterator[dict[str, Any]]:
        for batch in arrow_batches(self.path if self.file is None else self.file, layout, self.name):
            yield from batch.to_pylist()


def _check_data(name: str, head: bytes) -> None:
    """Raise for what is no data, such as a model or an archive."""
    for magic, what in _NOT_DATA.items():
        if head.startswith(magic):
            raise DataFileError(name, 1, f"expected data, this is {what}")
    if head[8:16] == b'{"__meta' and int.from_bytes(head[:8], "little") < 1 << 40:
        raise DataFileError(name, 1, "expected data, this is a model file", "mercer inspect shows what is in a model")


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


def _encoding_of(data: bytes, whole: bool, name: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    even, odd = data[:4096:2].count(0), data[1:4096:2].count(0)
    if even or odd:
        if max(even, odd) > len(data[:4096]) // 5 and min(even, odd) < max(even, odd) // 4:
            what = "expected text, found a NUL byte: UTF-16 without its mark, or no text at all"
            raise DataFileError(name, 1, what, "encoding='utf-16-le' (--encoding utf-16-le) reads the former")
        return "utf-8"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        # One broken byte is damage, which the reader passes on; many that fit nothing else are another encoding.
        text = data.decode("utf-8", "replace")
        broken = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        right = sum(1 for c in text if ord(c) > 127) - text.count("\ufffd")
        return "latin-1" if broken > right and not _is_control(data, error.start) else "utf-8"
    return "utf-8"


def _is_control(data: bytes, at: int) -> bool:
    """Whether the byte stands for no letter in Latin-1."""
    return 0x80 <= data[at] < 0xA0


def _batched(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    lines, size = [], 0
    for record in records:
        line = json.dumps(record, ensure_ascii=False, default=_plain).encode("utf-8", "surrogateescape")
        lines.append(line)
        size += len(line)
        if size >= 1 << 19:
            yield b"\n".join(lines) + b"\n"
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines) + b"\n"


def _plain(value: Any) -> Any:
    """What JSON lacks: dates and times as ISO text, decimals as numbers, bytes as text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if hasattr(value, "tolist"):
        return value.tolist()
    try:
        number = float(value)
        return number if math.isfinite(number) else None
    except (TypeError, ValueError):
        return str(value)


def json_records(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON array, of the only array in an object, or of an object of columns."""
    try:
        held = json.loads(data.decode("utf-8-sig", "surrogateescape"))
    except json.JSONDecodeError as error:
        raise DataFileError(name, error.lineno, f"no valid JSON: {error.msg} in column {error.colno}") from error
    except RecursionError:
        raise DataFileError(name, 1, "JSON nested too deeply") from None
    if isinstance(held, dict):
        lists = {key: value for key, value in held.items() if isinstance(value, list)}
        if len(lists) == 1 and all(isinstance(item, dict) for item in next(iter(lists.values()))):
            held = next(iter(lists.values()))
        elif lists and len(lists) == len(held) and len(set(map(len, lists.values()))) == 1:
            held = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        else:
            held = [held]
    if not isinstance(held, list) or not all(isinstance(item, dict) for item in held):
        raise DataFileError(name, 1, "expected an array of JSON objects, or an object of columns of equal length")
    yield from ({key: _finite(value) for key, value in item.items()} for item in held)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def arrow_batches(path: Any, layout: str, name: str) -> Iterator[Any]:
    """Yield batches of rows of a Parquet or Arrow file, as Arrow tables."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"{name}: Parquet and Arrow files need pyarrow: pip install 'mercer[data]'") from None
    try:
        if layout == "parquet":
            yield from pq.ParquetFile(path).iter_batches(batch_size=1 << 14)
            return
        with pa.OSFile(path) if isinstance(path, str) else contextlib.nullcontext(path) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = f"no valid {layout.capitalize()} data: {str(error).splitlines()[0]}"
        raise DataFileError(name, 1, what, "the file is damaged or truncated; copy or download it again") from error


def class_folders(folder: str) -> dict[str, list[str]]:
    """Return the files in the subfolders of a folder, by subfolder name; hidden files are skipped."""
    out: dict[str, list[str]] = {}
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        if entry.is_dir() and not entry.name.startswith("."):
            files = [
                os.path.join(root, name)
                for root, _, names in sorted(os.walk(entry.path))
                for name in sorted(names)
                if not name.startswith(".")
            ]
            if files:
                out[entry.name] = files
    return out


def _folder_records(folder: str) -> Iterator[dict[str, Any]]:
    """A text and the name of its folder each, in a random order that is always the same: a learner of streams
    must not see one class after the other."""
    classes = class_folders(folder)
    if len(classes) < 2:
        what = f"expected a folder for each class, with a file for each text; found {len(classes)} folders with files"
        raise DataFileError(folder, 1, what)
    files = [(label, path) for label, paths in classes.items() for path in paths]
    random.Random(0).shuffle(files)
    for label, path in files:
        source = Source(path)
        data, whole = source.head()
        if not whole:
            with source.open() as stream:
                data = b"".join(iter(lambda: _piece(stream), b""))
        yield {"label": label, "text": data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")}


def _piece(stream: Any) -> bytes:
    view = memoryview(bytearray(1 << 20))
    return bytes(view[: read_some(stream, view)])
