"""Lines of text files, plain or compressed: reading, decoding, and atomic writing."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
from collections.abc import Iterator
from typing import IO, BinaryIO, TypeAlias, cast

from mercer._state import container
from mercer._warnings import warn_caller
from mercer.data.readers.source import DAMAGED, Source
from mercer.exceptions import DataFileError

FilePath: TypeAlias = str | os.PathLike[str]
_ENCODING_HINT = "the text must be UTF-8; convert it first, for instance with iconv -f latin1 -t utf8"
_GZIP_HINT = "the file is damaged or truncated; copy or download it again"


def open_source(source: FilePath | IO[str] | IO[bytes], stack: contextlib.ExitStack) -> tuple[IO[str] | IO[bytes], str]:
    """Return the stream to read and its name in messages; the stack closes it only if opened here."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            return getattr(sys.stdin, "buffer", sys.stdin), "<stdin>"
        return _open_path(path, stack), path
    return source, str(getattr(source, "name", "<file>"))


def _open_path(path: str, stack: contextlib.ExitStack) -> IO[bytes]:
    """A file, unpacked and in UTF-8; another encoding is told by its mark, or said aloud."""
    source = Source(path)
    if source.again and not source.is_folder:
        try:
            source.head()
        except DataFileError as error:
            if error.__cause__ is None:  # no text at all; damage is named where it is
                raise
        if source.guessed:
            warn_caller(f"{path}: not UTF-8, read as Latin-1", UserWarning)
    stream = stack.enter_context(source.open())
    # What unpacks finds its lines in Python; a BufferedReader around it does so in C.
    return io.BufferedReader(stream, 1 << 18)


def decoded_lines(stream: IO[str] | IO[bytes], name: str) -> Iterator[str]:
    """Yield decoded lines without line ends; damage in the file raises a DataFileError that names the line."""
    number = 0
    try:
        for line in stream:
            text = line if isinstance(line, str) else line.decode("utf-8")
            if not number:
                text = text.removeprefix("\ufeff")
            yield text.rstrip("\r\n")
            number += 1
    except UnicodeDecodeError as error:
        # A text stream decodes a block at a time: the bad byte may lie lines after the one asked for.
        line_at = number + 1 + error.object[: error.start].count(b"\n")
        what = f"invalid {error.encoding.upper()}: byte 0x{error.object[error.start]:02x}"
        raise DataFileError(name, line_at, what, _ENCODING_HINT) from error
    except EOFError as error:
        raise DataFileError(name, number + 1, "the compressed data end too early", _GZIP_HINT) from error
    except DAMAGED as error:
        raise DataFileError(name, number + 1, f"not valid packed data ({error})", _GZIP_HINT) from error
    except OSError as error:  # bz2 has no error of its own
        if error.errno is not None:
            raise
        raise DataFileError(name, number + 1, f"not valid packed data ({error})", _GZIP_HINT) from error


def read_lines(source: FilePath | IO[str] | IO[bytes]) -> Iterator[str]:
    """Yield lines of a text file (also .gz; - is standard input) without line ends; errors name the line."""
    with contextlib.ExitStack() as stack:
        yield from decoded_lines(*open_source(source, stack))


def write_blocks(stream: IO[str] | IO[bytes], blocks: Iterator[str]) -> None:
    if hasattr(stream, "encoding"):
        cast(IO[str], stream).writelines(blocks)
    else:
        cast(IO[bytes], stream).writelines(block.encode("utf-8") for block in blocks)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block succeeds, and is removed when it fails."""
    with container.replacing(path) as raw:
        if path.endswith(".gz"):
            # no time stamp and no file name, so that the same sentences give the same bytes
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield raw


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
