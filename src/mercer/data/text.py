"""Text as one UTF-8 buffer with offsets, the layout of Arrow: document i is ``data[offsets[i]:offsets[i + 1]]``.

All document inputs are converted to this layout on entry, in compiled code and without a copy where possible. So the
hashing maps never process Python objects.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, overload

import numpy as np

from mercer import _core
from mercer._validation import check_offsets

__all__ = ["TextBuffer"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CHUNK = 1 << 16
"""Bytes of room beyond what a file is said to hold."""


class TextBuffer:
    """Documents in one UTF-8 buffer.

    Parameters
    ----------
    X : documents
        - a list, tuple, generator or other iterable of str, or of bytes;
        - a NumPy array of strings (``U``, ``S``, ``StringDType`` or objects);
        - an Arrow array or chunked array (string, binary, also dictionary-encoded), without a copy where it is in one
          piece;
        - a pandas or Polars series;
        - a path (`pathlib.Path`) or an open file, text or binary: one document per line, ``.gz`` is decompressed. A
          line ends with ``\\n``, ``\\r\\n`` or ``\\r``; a line end at the end of the file begins no further document;
        - a `TextBuffer`, whose memory is shared.

        bytes need not be UTF-8: invalid bytes belong to no word. Missing documents raise an error.

    Attributes
    ----------
    data : ndarray of uint8
        The bytes of all documents.
    offsets : ndarray of int32 or int64
        Start of each document, and the end of the last.
    binary : bool
        Whether the documents are bytes, not text.

    Examples
    --------
    >>> from mercer.data import TextBuffer
    >>> buffer = TextBuffer(["a cat", "naïve", ""])
    >>> len(buffer), buffer[1], buffer.offsets.tolist()
    (3, 'naïve', [0, 5, 11, 11])
    >>> buffer[1:]
    TextBuffer(2 documents, 6 bytes)
    """

    __slots__ = ("binary", "data", "offsets")

    data: np.ndarray
    offsets: np.ndarray
    binary: bool

    def __init__(self, X: Any) -> None:
        self.data, self.offsets, self.binary = _packed(X)

    @classmethod
    def from_arrays(cls, data: np.ndarray, offsets: np.ndarray, binary: bool = False) -> TextBuffer:
        """Return a buffer over existing arrays, without a copy.

        Parameters
        ----------
        data : ndarray of uint8
            The bytes of all documents.
        offsets : ndarray of int32 or int64
            Start of each document, and the end of the last.
        binary : bool, default=False
            Whether the documents are bytes, not text.

        Returns
        -------
        TextBuffer
            The documents.
        """
        data, offsets = np.ascontiguousarray(data), np.ascontiguousarray(offsets)
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ValueError(f"data must be an array of uint8 of one dimension, got {data.dtype} of shape {data.shape}")
        if offsets.dtype not in (np.int32, np.int64) or offsets.ndim != 1 or not len(offsets):
            raise ValueError("offsets must be a non-empty array of int32 or int64 of one dimension")
        check_offsets("offsets", offsets, len(data), part=True)
        buffer = cls.__new__(cls)
        buffer.data, buffer.offsets, buffer.binary = data, offsets, bool(binary)
        return buffer

    @property
    def n_bytes(self) -> int:
        """Bytes of all documents together."""
        return int(self.offsets[-1] - self.offsets[0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"TextBuffer({len(self):,} documents, {self.n_bytes:,} bytes{', binary' if self.binary else ''})"

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: slice) -> TextBuffer: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """Return a document as str (bytes if binary; invalid UTF-8 in a str is escaped), or a slice of documents."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"a slice of a TextBuffer must have step 1, got {step}")
            return TextBuffer.from_arrays(self.data, self.offsets[start : max(start, stop) + 1], self.binary)
        i = range(len(self))[index]
        text = self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()
        return text if self.binary else text.decode(errors="surrogateescape")


Packed = tuple[np.ndarray, np.ndarray, bool]


def _packed(X: Any) -> Packed:
    if isinstance(X, TextBuffer):
        return X.data, X.offsets, X.binary
    if isinstance(X, list | tuple):
        return _core.text.pack_documents(X)
    if isinstance(X, str | bytes | bytearray | memoryview):
        raise TypeError(
            f"expected a list of documents, found a single {type(X).__name__}: for one document give [document]; "
            "for a file with a document a line give pathlib.Path(name) or an open file"
        )
    if isinstance(X, os.PathLike):
        return _from_path(Path(X))
    if isinstance(X, np.ndarray):
        return _from_numpy(X)
    if hasattr(X, "read"):
        return _from_file(X)
    origin = type(X).__module__.partition(".")[0]
    if origin == "pyarrow":
        return _from_arrow(X)
    if origin in ("pandas", "polars"):
        return _from_series(X)
    if isinstance(X, Mapping | Set) or not isinstance(X, Iterable):
        raise TypeError(
            "expected documents: a list of str or bytes, an array or column of strings, a path or an open file; "
            f"found {type(X).__name__}"
        )
    return _core.text.pack_documents(list(X))


def _from_numpy(X: np.ndarray) -> Packed:
    if X.ndim != 1:
        raise ValueError(f"expected one column of documents, found an array of shape {X.shape}")
    if X.dtype.kind in "US" and X.dtype.itemsize:
        native = np.ascontiguousarray(X.astype(X.dtype.newbyteorder("="), copy=False))
        if X.dtype.kind == "U":
            return _core.text.pack_ucs4(native.view(np.uint32).reshape(len(X), X.dtype.itemsize // 4))
        return _core.text.pack_bytes(native.view(np.uint8).reshape(len(X), X.dtype.itemsize))
    if X.dtype.kind not in "USTO":
        raise TypeError(f"expected an array of strings, found one of {X.dtype}")
    return _core.text.pack_documents(X.tolist())


def _from_arrow(column: Any) -> Packed:
    import pyarrow as pa

    if isinstance(column, pa.Scalar) or not hasattr(column, "null_count"):
        raise TypeError(f"expected an Arrow array of strings, found {type(column).__name__}: choose one column")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if column.null_count:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        missing = np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in chunks])
        raise ValueError(f"document {int(np.argmax(missing))} is missing: leave it out, or give an empty string")
    binary = any(test(kind) for name in _ARROW_BINARY if (test := getattr(pa.types, name, None)))
    if not binary and not any(test(kind) for name in _ARROW_TEXT if (test := getattr(pa.types, name, None))):
        raise TypeError(f"expected an Arrow array of strings, found one of {kind}")
    narrow = kind in (pa.string(), pa.binary())
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        column = column.chunk(0)
    if isinstance(column, pa.ChunkedArray) or not (narrow or kind in (pa.large_string(), pa.large_binary())):
        # In one piece, the text may be longer than 32-bit offsets reach.
        column, narrow = column.cast(pa.large_binary() if binary else pa.large_string()), False
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    _, places, text = column.buffers()
    offsets: np.ndarray = np.zeros(1, np.int64)
    if len(column):
        offsets = np.frombuffer(places, np.int32 if narrow else np.int64)[column.offset :][: len(column) + 1]
    return np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8), offsets, binary


_ARROW_TEXT = ("is_string", "is_large_string", "is_string_view")
_ARROW_BINARY = ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary")


def _from_series(X: Any) -> Packed:
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "dtype"):
        raise TypeError(f"expected one column of documents, found {type(X).__name__}: choose a column")
    if str(X.dtype).lower() == "object":
        return _core.text.pack_documents(X.to_list())
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return _core.text.pack_documents(X.to_list())
    if type(X).__module__.startswith("polars"):
        return _from_arrow(X.to_arrow())
    try:
        return _from_arrow(pa.array(X, from_pandas=True))
    except UnicodeEncodeError:  # lone surrogates, which Arrow has no place for
        return _core.text.pack_documents(X.to_list())


def _from_path(path: Path) -> Packed:
    if path.suffix == ".gz":
        return _from_lines(np.frombuffer(bytearray(gzip.decompress(path.read_bytes())), np.uint8))
    with path.open("rb", buffering=0) as file:
        return _from_lines(_read_all(file))


def _from_file(file: Any) -> Packed:
    if isinstance(file, io.RawIOBase | io.BufferedIOBase):
        return _from_lines(_read_all(file))
    data = file.read()
    if isinstance(data, str):
        data = data.removeprefix("\ufeff").encode(errors="surrogateescape")
    elif not isinstance(data, bytes):
        raise TypeError(f"expected an open file that gives str or bytes, found {type(data).__name__}")
    return _from_lines(np.frombuffer(bytearray(data), np.uint8))


def _read_all(file: io.RawIOBase | io.BufferedIOBase) -> np.ndarray:
    """What is left of a binary file, in one writable array, read straight into it."""
    try:
        expected = os.fstat(file.fileno()).st_size - file.tell()
    except OSError:  # no file of the system, or one without places: a pipe
        expected = 0
    data = np.empty(max(expected, 0) + CHUNK, np.uint8)
    size = 0
    while got := file.readinto(data[size:].data):
        size += got
        if size == len(data):
            data = np.concatenate([data, np.empty(len(data), np.uint8)])
    return data[:size]


def _from_lines(text: np.ndarray) -> Packed:
    """One document a line of a text, which is overwritten: its lines are moved together, without their ends."""
    if text[: len(BYTE_ORDER_MARK)].tobytes() == BYTE_ORDER_MARK:
        text = text[len(BYTE_ORDER_MARK) :]
    offsets = _core.text.split_lines(text)
    return text[: offsets[-1]], offsets, False
