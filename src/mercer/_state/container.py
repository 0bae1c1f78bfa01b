"""Model files: arrays in safetensors layout, and a JSON description under the metadata key ``mercer``.

A file is ``length (8 bytes, little endian) | header (JSON) | payload (the arrays, end to end)``. The
description holds the format version, the version of mercer, the kind of model, its ``meta`` and a checksum:

    checksum = blake2b(the whole file, with the 64 characters of the checksum itself read as "0")

The checksum detects every changed byte, in the header (names, dtypes, shapes, meta) and in the payload. The checksum
stands first in the header, at a fixed place. Any safetensors reader opens these files; we read and write the layout
ourselves because arrays then stream through one file handle (no second copy of a large model) and a full disk stays an
`OSError` with its number. A file can also be mapped instead of read, if nobody changes it in place. Processes then
share its pages.

`limits.py` limits the memory that a file may make the reader allocate. `registry.py` holds the kinds of models.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.metadata
import json
import math
import mmap
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

from mercer._state.limits import DIMENSIONS, HEADER_BYTES, NESTING, reserve
from mercer.exceptions import ModelFileError

__all__ = [
    "FORMAT_VERSION",
    "MappedFile",
    "ModelFile",
    "checksum_of",
    "map_file",
    "read_file",
    "replacing",
    "write_atomically",
    "write_file",
]

FORMAT_VERSION = 2
"""Of what a description holds; files of another one are refused by name. 1: every kind of model had its own layout; 2:
parameters and attributes are declared (`saved.py`)."""

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_CHECKSUM_START = b'{"__metadata__":{"mercer":"{\\"checksum\\":\\"'
_NO_CHECKSUM = "0" * 64
_MAPPED_BYTES = 2**20  # from here on a file is mapped by `map_file`

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class ModelFile:
    """The content of a model file: the kind of model, its JSON description and its arrays."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


# --------------------------------------------------------------------------------------------------- writing


def write_file(path: Path, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Write one model file, atomically; return its checksum.

    Parameters
    ----------
    path : str or path-like
        The file to write or to replace.
    kind : str
        The kind of model.
    meta : mapping
        JSON values: dicts with string keys, lists, strings, finite numbers, booleans, None. Tuples are read back as
        lists.
    arrays : mapping of str to ndarray
        Arrays of float32/64, int8/16/32/64, uint8/16/32/64 or bool. They are read back C-contiguous.

    Raises
    ------
    TypeError, ValueError
        If `meta` or `arrays` hold other values. No file is written then.
    OSError
        If the file cannot be written. An existing file stays unchanged.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.mercer"
    >>> checksum = write_file(path, "Weights", {"C": 0.1}, {"w": np.arange(3.0)})
    >>> read_file(path)
    ModelFile(kind='Weights', meta={'C': 0.1}, arrays={'w': array([0., 1., 2.])})
    """
    if not isinstance(kind, str) or not kind:
        raise TypeError(f"kind must be a non-empty string, not {kind!r}")
    if not isinstance(meta, Mapping):
        raise TypeError(f"meta must be a dict, not a {type(meta).__name__}")
    plain_meta = _as_json_value(meta, "meta", 0)
    ordered = _checked_arrays(arrays)
    header = _header(kind, plain_meta, ordered)
    payload = [_raw_bytes(array) for array in ordered.values()]
    checksum = _blake2b([len(header).to_bytes(8, "little"), header, *payload])
    start = len(_CHECKSUM_START)
    header = header[:start] + checksum.encode() + header[start + len(checksum) :]
    write_atomically(path, [len(header).to_bytes(8, "little"), header, *payload])
    return checksum


def write_atomically(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically: `path` always holds either the whole new content or the old content.

    The bytes go to a temporary file in the same directory, which is flushed to the disk and then renamed.

    Parameters
    ----------
    path : str or path-like
        The file to write or to replace. A symbolic link is followed.
    chunks : iterable of bytes-like
        The contents, written in order.

    Raises
    ------
    OSError
        With its errno; the message names `path` and states that the old file is intact.
    """
    with _new_contents(path) as file:
        for chunk in chunks:
            file.write(chunk)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block succeeds, and is removed when it fails.

    A killed writer leaves a temporary file. The next writer to `path` removes it. Special files (``/dev/null``, a pipe)
    are written to directly.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        with open(target, "wb") as device:
            yield device
        return
    with _new_contents(path) as file:
        yield file


@contextlib.contextmanager
def _new_contents(path: Path) -> Iterator[BinaryIO]:
    shown = os.fspath(path)
    target = os.path.realpath(shown)
    existed = os.path.lexists(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "cannot write a file here, it is a directory", shown)
    if existed and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "cannot replace this, it is not a regular file", shown)
    _remove_stale(target)
    temporary = f"{target}.{secrets.token_hex(6)}.tmp"
    try:
        try:
            with _new_file(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if existed:
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
                os.replace(temporary, target)
        finally:  # after the rename there is nothing left to remove; before it, Ctrl-C comes here too
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    except OSError as err:
        if err.filename is not None and os.fspath(err.filename) != temporary:
            raise  # of what the caller did meanwhile, such as reading another file
        outcome = "the old file is intact" if existed else "no file was written"
        raise OSError(err.errno, f"could not write: {err.strerror or err}; {outcome}", shown) from err
    _sync_directory(os.path.dirname(target), shown)


def _new_file(temporary: str) -> BinaryIO:
    """A new file, locked as long as it is open: so a writer that was killed can be told from one that writes."""
    # Not tempfile: its files are private (0600), these follow the umask as any other file does.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another writer took it for a stale one before it was locked


def _remove_stale(target: str) -> None:
    """Remove temporary files that writers of `target` left when they were killed."""
    if fcntl is None:
        return
    directory, name = os.path.split(target)
    pattern = re.compile(re.escape(name) + r"\.[0-9a-f]{12}\.tmp")
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for path in [entry.path for entry in entries if pattern.fullmatch(entry.name)]:
            with contextlib.suppress(OSError), open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a writer has it
                os.unlink(path)


def _sync_directory(directory: str, shown: str) -> None:
    """Make the rename itself durable. The new file is whole and in place whatever happens here."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return  # a directory we may write but not read: nothing to sync through
    try:
        os.fsync(handle)
    except OSError as err:
        if err.errno in (errno.EINVAL, errno.ENOTSUP, errno.EROFS, errno.EBADF):
            return  # file systems that cannot sync a directory
        raise OSError(
            err.errno,
            f"the new file is in place, but its directory is not flushed to the disk: {err.strerror or err}",
            shown,
        ) from err
    finally:
        os.close(handle)


def _as_json_value(value: Any, where: str, depth: int) -> Any:
    """Return `value` as plain JSON types, or raise with the place that is not JSON."""
    if depth > NESTING:
        raise ValueError(f"{where} is nested more than {NESTING} levels deep, or contains itself")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if abs(value) >= 2**64:
            raise ValueError(f"{where} is an integer of more than 64 bits; a model file cannot hold it")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)}; a model file describes models in finite numbers")
        return float(value)
    if isinstance(value, list | tuple):
        return [_as_json_value(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys in a model file are strings")
        return {str(key): _as_json_value(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    raise TypeError(f"{where} is a {type(value).__name__}; a model file holds JSON values and arrays only")


def _checked_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays little-endian and C-contiguous, widest items first so that all stay aligned."""
    result = {}
    for name, array in arrays.items():
        if not isinstance(name, str) or not name or name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of an array in a model file")
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array {name!r} is a {type(array).__name__}, not a numpy array")
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _DTYPE_NAMES:
            allowed = ", ".join(sorted(d.name for d in _DTYPE_NAMES))
            raise TypeError(f"array {name!r} is of dtype {array.dtype}; a model file holds {allowed}")
        if array.ndim > DIMENSIONS:
            raise ValueError(f"array {name!r} has more than {DIMENSIONS} dimensions")
        # Not ascontiguousarray, which turns a scalar array into one of one dimension.
        result[name] = np.asarray(array, dtype=dtype, order="C")
    return dict(sorted(result.items(), key=lambda item: (-item[1].itemsize, item[0])))


def _header(kind: str, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the header with its checksum still all "0"."""
    description = {
        "checksum": _NO_CHECKSUM,
        "format": FORMAT_VERSION,
        "mercer": _mercer_version(),
        "kind": kind,
        "meta": meta,
    }
    compact = (",", ":")
    text = json.dumps(description, separators=compact, allow_nan=False)
    table: dict[str, Any] = {"__metadata__": {"mercer": text}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        table[name] = {
            "dtype": _DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    try:
        header = json.dumps(table, separators=compact, ensure_ascii=False).encode()
    except UnicodeEncodeError as err:
        raise ValueError("the names of the arrays in a model file must be valid Unicode") from err
    header += b" " * (-len(header) % 8)
    if len(header) > HEADER_BYTES:
        raise ValueError(
            f"the description of this model takes {len(header)} bytes, the limit is {HEADER_BYTES};"
            " put long lists in arrays (pack_strings for strings)"
        )
    return header


def _mercer_version() -> str:
    try:
        return importlib.metadata.version("mercer")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "unknown"


def _raw_bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _blake2b(chunks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------- reading


def read_file(path: Path, kind: str | None = None, *, mapped: bool = False) -> ModelFile:
    """Read one model file and check all of it.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    kind : str, optional
        The expected kind of model; by default any kind.
    mapped : bool, default=False
        Map the arrays instead of reading them: processes that map the same file share its memory. The file must not be
        changed in place while the arrays live; replacing it by another is fine.

    Returns
    -------
    ModelFile
        The kind, the description and the arrays.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or incomplete, needs a newer mercer or is of another kind.
    OSError
        If the file is missing or cannot be opened.
    """
    with _opened(path) as file:
        return _Reader(file, os.fspath(path), mapped).read(kind)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    _check_regular(os.stat(path), os.fspath(path))
    # Not blocking: a pipe that was put here since then is refused, not waited for.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        yield file


def checksum_of(path: Path) -> str:
    """Return the checksum in the header of a model file, or "" if there is none. The file is not verified."""
    name = os.fspath(path)
    _check_regular(os.stat(path), name)
    with open(path, "rb") as file:
        start = file.read(8 + len(_CHECKSUM_START) + len(_NO_CHECKSUM))[8:]
    said = start[len(_CHECKSUM_START) :]
    return said.decode("ascii", "replace") if start.startswith(_CHECKSUM_START) else ""


class MappedFile:
    """A memory-mapped file in this layout: pages are read from disk on access and can be dropped again.

    Attributes
    ----------
    meta : dict
        The description.
    arrays : dict of ndarray
        Read-only views of the mapped file.
    checksum : str
        The checksum in the header; `map_file` has compared it with the contents if ``verify`` was set.
    """

    def __init__(
        self, meta: dict[str, Any], arrays: dict[str, np.ndarray], checksum: str, mapped: mmap.mmap | None
    ) -> None:
        self.meta, self.arrays, self.checksum, self._mapped = meta, arrays, checksum, mapped

    def drop_pages(self) -> None:
        """Release the memory of the pages read so far; they are read again on the next access."""
        if self._mapped is not None:
            _drop_pages(self._mapped)


def map_file(path: Path, kind: str, *, verify: bool = True) -> MappedFile:
    """Map a file of `write_file` into memory. A short file is read instead, because every map keeps a file open.

    Parameters
    ----------
    path : str or path-like
        A file that nobody changes in place while it is mapped. Replace it by renaming another file over it.
    kind : str
        The expected kind.
    verify : bool, default=True
        Read the whole file once and compare the checksum. The layout is always checked.

    Raises
    ------
    ModelFileError
        As `read_file`.
    OSError
        If the file is missing or cannot be opened.
    """
    with _opened(path) as file:
        return _Reader(file, os.fspath(path)).map(kind, verify)


def _drop_pages(mapped: mmap.mmap) -> None:
    if hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _check_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "this is a directory, not a model file", name)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{name} is not a regular file, but a pipe, a socket or a device")


class _Reader:
    """Reads one open file; every failure names the file."""

    def __init__(self, file: BinaryIO, path: str, mapped: bool = False) -> None:
        self.file = file
        self.path = path
        self.mapped = mapped

    def read(self, kind: str | None) -> ModelFile:
        header = self._read_header()
        table = self._json_object(header, "its header")
        description = self._description(table)
        arrays = self._allocate(table)
        raw = [_raw_bytes(array) for array in arrays.values()]
        if not self.mapped:
            for buffer in raw:
                self._fill(buffer)
        self._check_checksum(header, raw)
        # A byte other than 0 and 1 in a bool array is undefined behaviour for whoever uses it.
        for name, array in arrays.items():
            if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
                self._fail(f"is damaged: array {name!r} holds bytes that are not booleans")
        if kind is not None and description["kind"] != kind:
            self._fail(f"holds a {description['kind']!r}, not a {kind!r}")
        return ModelFile(description["kind"], description["meta"], dict(sorted(arrays.items())))

    def map(self, kind: str, verify: bool) -> MappedFile:
        header = self._read_header()
        table = self._json_object(header, "its header")
        description = self._description(table)
        layout = self._layout(table)
        mapped = None
        if self.size >= _MAPPED_BYTES:
            mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
            begin, view = 8 + len(header), memoryview(mapped)
        else:
            begin, view = 0, memoryview(self.file.read())
        if verify:
            self._check_checksum(header, self._chunks(view[begin:], mapped))
        if description["kind"] != kind:
            self._fail(f"holds a {description['kind']!r}, not a {kind!r}")
        arrays = {}
        for name, dtype, shape, start, end in layout:
            part = view[begin + start : begin + end]
            arrays[name] = np.frombuffer(part, dtype).reshape(shape) if len(part) else np.empty(shape, dtype)
            if dtype == np.bool_ and arrays[name].size and arrays[name].view(np.uint8).max() > 1:
                self._fail(f"is damaged: array {name!r} holds bytes that are not booleans")
        return MappedFile(description["meta"], arrays, str(description.get("checksum")), mapped)

    @staticmethod
    def _chunks(data: memoryview, mapped: mmap.mmap | None) -> Iterator[memoryview]:
        """The bytes in their order, each part forgotten when the next one is asked for."""
        size = 8 * 2**20
        for start in range(0, len(data), size):
            yield data[start : start + size]
            if mapped is not None:
                _drop_pages(mapped)

    def _fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        raise ModelFileError(f"{self.path} {what}") from cause

    def _read_header(self) -> bytes:
        status = os.fstat(self.file.fileno())
        _check_regular(status, self.path)
        if status.st_size == 0:
            self._fail("is empty")
        self.size = status.st_size
        prefix = self.file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8:
            self._fail(f"is not a model file, or is truncated: it has only {self.size} bytes")
        if length > HEADER_BYTES:
            self._fail(f"is not a model file: its header would take {length} bytes (limit {HEADER_BYTES})")
        if length > self.size - 8:
            self._fail(
                f"is not a model file, or is truncated: its header would take {length} bytes,"
                f" the whole file has {self.size}"
            )
        header = self.file.read(length)
        if len(header) < length:
            self._fail("is truncated: it ends inside its header")
        return header

    def _json_object(self, text: str | bytes, what: str) -> dict[str, Any]:
        try:
            text = text.decode() if isinstance(text, bytes) else text
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as err:
            self._fail(f"is not a model file, or is damaged: {what} is not JSON ({err})", err)
        if not isinstance(value, dict):
            self._fail(f"is not a model file, or is damaged: {what} is not a JSON object")
        return value

    def _description(self, table: dict[str, Any]) -> dict[str, Any]:
        metadata = table.pop("__metadata__", None)
        if not isinstance(metadata, dict) or not isinstance(metadata.get("mercer"), str):
            self._fail("was not written by mercer: it is a safetensors file without mercer's description")
        description = self._json_object(metadata["mercer"], "its description")
        version = description.get("format")
        if type(version) is not int or version < 1:
            self._fail("is damaged: its description has no valid format version")
        if version > FORMAT_VERSION:
            self._fail(
                f"was written by a newer version of mercer (format {version};"
                f" this version reads format {FORMAT_VERSION})"
            )
        if version < FORMAT_VERSION:
            self._fail(
                f"was written by an older version of mercer (format {version}; this version reads format"
                f" {FORMAT_VERSION}): train the model again, or read it with the version that wrote it"
            )
        if not isinstance(description.get("kind"), str) or not isinstance(description.get("meta"), dict):
            self._fail("is damaged: its description has no kind or no meta")
        return description

    def _layout(self, table: dict[str, Any]) -> list[tuple[str, np.dtype[Any], list[int], int, int]]:
        """Return names, types, shapes and places in file order, once it is certain that the file has as many bytes."""
        entries = [self._entry(name, entry) for name, entry in table.items()]
        layout = sorted(entries, key=lambda item: item[3:])
        position = 0
        for name, _, _, start, end in layout:
            if start != position:
                self._fail(f"is damaged: array {name!r} does not follow the one before it")
            position = end
        payload = self.size - self.file.tell()
        if position > payload:
            self._fail(f"is truncated: {payload} bytes of arrays where its header promises {position}")
        if position < payload:
            self._fail(f"is damaged: {payload - position} bytes too many at its end")
        return layout

    def _allocate(self, table: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return empty arrays in file order."""
        layout = self._layout(table)
        try:
            reserve(layout[-1][4] if layout else 0, "its arrays")
        except ValueError as err:
            self._fail(f"is too large: {err}", err)
        try:
            if self.mapped and layout:
                # Private: what a model changes of its arrays stays its own, and is copied page by page.
                pages = mmap.mmap(self.file.fileno(), self.size, access=mmap.ACCESS_COPY)
                first = self.file.tell()
                return {name: np.ndarray(shape, dtype, pages, first + start) for name, dtype, shape, start, _ in layout}
            return {name: np.empty(shape, dtype) for name, dtype, shape, _, _ in layout}
        except (ValueError, OverflowError) as err:  # no items, but dimensions beyond what numpy counts
            self._fail(f"is damaged: impossible shape of an array ({err})", err)

    def _entry(self, name: str, entry: Any) -> tuple[str, np.dtype[Any], list[int], int, int]:
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            self._fail(f"is damaged: array {name!r} is not described as an array")
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(code, str) or code not in _DTYPES:
            self._fail(f"is damaged: array {name!r} is of dtype {code!r}, which mercer does not write")
        if not _are_sizes(shape) or len(shape) > DIMENSIONS:
            self._fail(f"is damaged: array {name!r} has no valid shape")
        if not _are_sizes(offsets) or len(offsets) != 2:
            self._fail(f"is damaged: array {name!r} has no valid place in the file")
        start, end = offsets
        if end - start != math.prod(shape) * _DTYPES[code].itemsize:
            self._fail(f"is damaged: the place of array {name!r} is not of the size that its shape needs")
        return name, _DTYPES[code], shape, start, end

    def _fill(self, buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            count = self.file.readinto(buffer[done:])  # type: ignore[attr-defined]
            if not count:
                self._fail("is truncated: it ends inside its arrays")
            done += count

    def _check_checksum(self, header: bytes, raw: Iterable[memoryview]) -> None:
        start, end = len(_CHECKSUM_START), len(_CHECKSUM_START) + len(_NO_CHECKSUM)
        blank = header[:start] + _NO_CHECKSUM.encode() + header[end:]
        checksum = _blake2b([len(header).to_bytes(8, "little"), blank, *raw])
        if not header.startswith(_CHECKSUM_START) or header[start:end] != checksum.encode():
            self._fail("is damaged, or was changed after mercer wrote it: its checksum does not match")


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
