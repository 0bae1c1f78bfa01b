"""Documents of every kind become the same buffer."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.data import TextBuffer

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

DOCUMENTS = ["a cat", "", "naïve 日本 \U0001f389", "x\x00y", "Ünï"]
CHUNKED = pa.chunked_array([DOCUMENTS[:2], [], DOCUMENTS[2:]])

SOURCES = {
    "list": DOCUMENTS,
    "tuple": tuple(DOCUMENTS),
    "generator": lambda: (d for d in DOCUMENTS),
    "subclass of str": [type("Text", (str,), {})(d) for d in DOCUMENTS],
    "numpy U": np.array(DOCUMENTS),
    "numpy U, big endian": np.array(DOCUMENTS).astype(">U12"),
    "numpy U, strided": np.repeat(np.array(DOCUMENTS), 2)[::2],
    "numpy object": np.array(DOCUMENTS, dtype=object),
    "numpy StringDType": np.array(DOCUMENTS, dtype=np.dtypes.StringDType()),
    "arrow string": pa.array(DOCUMENTS),
    "arrow large string": pa.array(DOCUMENTS, pa.large_string()),
    "arrow string view": pa.array(DOCUMENTS).cast(pa.string_view()),
    "arrow slice": pa.array(["before", *DOCUMENTS, "after"])[1:-1],
    "arrow dictionary": pa.array(DOCUMENTS).dictionary_encode(),
    "arrow chunked": CHUNKED,
    "arrow chunked large": CHUNKED.cast(pa.large_string()),
    "arrow one chunk": pa.chunked_array([DOCUMENTS]),
    "arrow chunked dictionary": CHUNKED.dictionary_encode(),
    "pandas object": pd.Series(DOCUMENTS, dtype=object),
    "pandas string": pd.Series(DOCUMENTS, dtype="string"),
    "pandas arrow": pd.Series(DOCUMENTS, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": pd.Series(DOCUMENTS, dtype="category"),
    "polars": pl.Series(DOCUMENTS),
    "polars categorical": pl.Series(DOCUMENTS, dtype=pl.Categorical),
    "buffer": TextBuffer(DOCUMENTS),
    "text file": lambda: io.StringIO("\n".join(DOCUMENTS)),
    "binary file": lambda: io.BytesIO("\n".join(DOCUMENTS).encode()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_documents(kind):
    source = SOURCES[kind]
    buffer = TextBuffer(source() if callable(source) else source)
    assert list(buffer) == DOCUMENTS
    assert len(buffer) == len(DOCUMENTS)
    assert not buffer.binary
    assert buffer.n_bytes == sum(len(d.encode()) for d in DOCUMENTS)


BYTES = [b"ab", b"\xff\xfe", b"", b"a\x00b"]


@pytest.mark.parametrize(
    "source",
    [BYTES, np.array(BYTES, dtype=object), pa.array(BYTES), pa.array(BYTES, pa.large_binary()), pd.Series(BYTES),
     pl.Series(BYTES), np.array(BYTES)],
    ids=["list", "object", "arrow", "large arrow", "pandas", "polars", "numpy S"],
)  # fmt: skip
def test_bytes_stay_bytes(source):
    buffer = TextBuffer(source)
    assert list(buffer) == BYTES
    assert buffer.binary


@pytest.mark.parametrize("source", [[], (), np.array([], "U1"), np.array([], object), pa.array([], pa.string()),
                                    pa.chunked_array([], pa.string()), pd.Series([], dtype=object), io.StringIO("")],
                         ids=lambda source: type(source).__name__)  # fmt: skip
def test_no_documents_at_all(source):
    assert list(TextBuffer(source)) == []


def test_arrow_columns_are_not_copied():
    column = pa.array(DOCUMENTS)
    buffer = TextBuffer(column)
    assert buffer.data.ctypes.data == column.buffers()[2].address
    assert TextBuffer(pl.Series(DOCUMENTS).to_arrow().cast(pa.large_string())).offsets.dtype == np.int64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\rc\nd\r", ["a", "b", "c", "d"]),
        (b"\n\n", ["", ""]),
        (b"\r\r\n\n", ["", "", ""]),
        (b"a\r\r\nb", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),  # a byte order mark
        ("x\u2028y\x0bz\n".encode(), ["x\u2028y\x0bz"]),  # no ends of lines
        (b"\x00\n\x00", ["\x00", "\x00"]),
    ],
)
@pytest.mark.parametrize("kind", ["path", "gz", "raw", "buffered", "text", "memory", "pipe", "reader"])
def test_a_file_has_one_document_a_line(text, expected, kind, tmp_path):
    path = tmp_path / ("file.txt.gz" if kind == "gz" else "file.txt")
    path.write_bytes(gzip.compress(text) if kind == "gz" else text)
    if kind in ("path", "gz"):
        assert list(TextBuffer(path)) == expected
        return
    with open_as(kind, path) as file:
        assert list(TextBuffer(file)) == expected


def open_as(kind, path):
    if kind == "text":
        return open(path, encoding="utf-8", newline="")
    if kind == "memory":
        return io.BytesIO(path.read_bytes())
    if kind == "reader":  # has read() and no more
        return contextlib.nullcontext(SimpleNamespace(read=path.read_bytes))
    if kind == "pipe":
        read, write = os.pipe()
        with open(write, "wb") as file:
            file.write(path.read_bytes())
        return open(read, "rb")
    return open(path, "rb", buffering=0 if kind == "raw" else -1)


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 1, 300_000])
def test_an_open_file_is_read_from_where_it_stands(size, tmp_path):
    """Sizes around the room for what cannot be foreseen."""
    line = b"0123456789\r\n"
    text = line * (size // len(line)) + b"x" * (size % len(line))
    path = tmp_path / "file.txt"
    path.write_bytes(text)
    for kind in ("raw", "buffered", "memory"):
        with open_as(kind, path) as file:
            file.read(len(line))
            buffer = TextBuffer(file)
        assert buffer.data.tobytes() == text[len(line) :].replace(b"\r\n", b"")
        assert len(buffer) == size // len(line) - 1 + (size % len(line) > 0)


def test_a_text_file_that_is_not_utf8_comes_through(tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9\nx")
    with open(tmp_path / "latin", encoding="utf-8", errors="surrogateescape") as file:
        assert TextBuffer(file).data.tobytes() == b"caf\xe9x"


def test_one_very_long_line(tmp_path):
    (tmp_path / "long").write_bytes(b"ab " * 35_000_000)
    buffer = TextBuffer(tmp_path / "long")
    assert len(buffer) == 1
    assert buffer.n_bytes == 105_000_000


def test_slices_share_memory_and_items_count_from_the_end():
    buffer = TextBuffer(DOCUMENTS)
    assert list(buffer[1:3]) == DOCUMENTS[1:3]
    assert list(buffer[3:1]) == []
    assert np.shares_memory(buffer[1:3].data, buffer.data)
    assert buffer[-1] == DOCUMENTS[-1]
    with pytest.raises(IndexError):
        buffer[5]
    with pytest.raises(ValueError, match="step 1"):
        buffer[::2]


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ("a document", TypeError, r"a single str: for one document give \[document\].*pathlib.Path"),
        (b"a document", TypeError, "a single bytes"),
        (["a", None, "b"], ValueError, "document 1 is missing"),
        (["a", float("nan")], ValueError, "document 1 is missing"),
        (["a", pd.NA], ValueError, "document 1 is missing"),
        (["a", 3], TypeError, "document 1: expected str, as before, found int"),
        (["a", b"b"], TypeError, "document 1: expected str, as before, found bytes"),
        ([b"a", "b"], TypeError, "document 1: expected bytes, as before, found str"),
        ([["a", "b"]], TypeError, "document 0: expected str or bytes, found list"),
        (["a", "\ud800"], ValueError, "document 1 holds half a surrogate pair"),
        (np.array([1.0]), TypeError, "array of strings, found one of float64"),
        (np.array([["a"]]), ValueError, r"array of shape \(1, 1\)"),
        (np.array("a"), ValueError, r"shape \(\)"),
        (np.array(["a", None], object), ValueError, "document 1 is missing"),
        (np.array(["a", "\ud800"]), ValueError, "document 1 holds half a surrogate pair"),
        (pa.array(["a", None]), ValueError, "document 1 is missing"),
        (pa.chunked_array([["a"], [None]]), ValueError, "document 1 is missing"),
        (pa.array([1]), TypeError, "Arrow array of strings, found one of int64"),
        (pa.table({"x": ["a"]}), TypeError, "choose one column"),
        (pd.Series(["a", None]), ValueError, "document 1 is missing"),
        (pd.Series(["a", None], dtype="string"), ValueError, "document 1 is missing"),
        (pd.DataFrame({"x": ["a"]}), TypeError, "choose a column"),
        (pl.Series(["a", None]), ValueError, "document 1 is missing"),
        (pl.DataFrame({"x": ["a"]}), TypeError, "choose a column"),
        (pl.Series([1, 2]), TypeError, "found one of int64"),
        ({"a": 1}, TypeError, "found dict"),
        (7, TypeError, "found int"),
        (None, TypeError, "found NoneType"),
        (pathlib.Path("/there/is/no/such/file"), FileNotFoundError, "no/such/file"),
    ],
    ids=str,
)
def test_what_is_no_list_of_documents_is_refused(source, error, match):
    with pytest.raises(error, match=match):
        TextBuffer(source)


@pytest.mark.parametrize(
    ("data", "offsets", "match"),
    [
        (np.zeros(3), np.array([0, 1]), "uint8"),
        (np.zeros(3, np.uint8), np.array([0.0]), "int32 or int64"),
        (np.zeros(3, np.uint8), np.array([], np.int64), "non-empty"),
        (np.zeros(3, np.uint8), np.array([0, 4]), "must lie in 0 .. 3"),
        (np.zeros(3, np.uint8), np.array([2, 1]), "must not decrease"),
        (np.zeros(3, np.uint8), np.array([-1, 1]), "must lie in"),
    ],
)
def test_wrong_arrays_are_refused(data, offsets, match):
    with pytest.raises(ValueError, match=match):
        TextBuffer.from_arrays(data, offsets)
