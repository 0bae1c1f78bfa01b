"""Column files (CoNLL format).

A column file holds one token per line, with columns separated by spaces or tabs, and a blank line after each sentence.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import IO, Any, TypeAlias

from mercer.data.readers.lines import FilePath, counted, decoded_lines, open_source, replacing, write_blocks
from mercer.exceptions import DataFileError

Sentence: TypeAlias = list[tuple[str, ...]]
_COLUMNS_HINT = "sentences are separated by blank lines; columns by spaces or tabs"


def read_conll(source: FilePath | IO[str] | IO[bytes]) -> list[Sentence]:
    r"""Read a whole column file.

    Parameters
    ----------
    source : path, "-", or open file
        A path (``.gz`` is decompressed), ``"-"`` for standard input, or an open text or binary file.
        Bytes are read as UTF-8; a byte order mark at the very start is skipped.

    Returns
    -------
    sentences : list of list of tuple of str
        One list per sentence, one tuple of columns per token; an empty file gives ``[]``.

    Raises
    ------
    DataFileError
        If a line differs from the first in its number of columns, is not UTF-8, or the ``.gz`` is damaged.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import io
    >>> from mercer.data.readers.conll import read_conll
    >>> read_conll(io.StringIO("the DT\ndog NN\n\nsleep VB\n"))
    [[('the', 'DT'), ('dog', 'NN')], [('sleep', 'VB')]]
    """
    return list(iter_conll(source))


def iter_conll(source: FilePath | IO[str] | IO[bytes]) -> Iterator[Sentence]:
    r"""Read a column file sentence by sentence, with the checks of :func:`read_conll`.

    The file is opened when the first sentence is requested.

    Parameters
    ----------
    source : path, "-", or open file
        As for :func:`read_conll`.

    Yields
    ------
    sentence : list of tuple of str

    Examples
    --------
    >>> import io
    >>> from mercer.data.readers.conll import iter_conll
    >>> for sentence in iter_conll(io.BytesIO(b"a\nb\n\nc\n")):
    ...     print(len(sentence))
    2
    1
    """
    with contextlib.ExitStack() as stack:
        stream, name = open_source(source, stack)
        sentence: Sentence = []
        width = first = 0
        for number, text in enumerate(decoded_lines(stream, name), 1):
            # str.split() would also split at no-break spaces, which live inside tokens ("10\u00a0000")
            row = tuple((text.replace("\t", " ") if "\t" in text else text).split(" "))
            if "" in row:
                row = tuple(filter(None, row))
            if len(row) == width and width:
                sentence.append(row)
            elif not row:
                if sentence:
                    yield sentence
                    sentence = []
            elif not width:
                width, first = len(row), number
                sentence.append(row)
            else:
                what = f"expected {counted(width, 'column')} as in line {first}, found {len(row)}"
                raise DataFileError(name, number, what, _COLUMNS_HINT)
        if sentence:
            yield sentence


def write_conll(
    destination: FilePath | IO[str] | IO[bytes],
    sentences: Iterable[Sequence[Sequence[str]]],
    *columns: Iterable[Sequence[str]],
) -> None:
    """Write sentences as a column file, with further columns (such as predicted labels) appended.

    :func:`read_conll` reads the file back. Writing to a path is atomic.

    Parameters
    ----------
    destination : path, "-", or open file
        A path (``.gz`` is compressed), ``"-"`` for standard output, or an open text or binary file.
    sentences : iterable of sentences
        Each a sequence of tokens, each token a sequence of columns.
    *columns : iterable of sequences of str
        Each holds one sequence per sentence, with one value per token.

    Raises
    ------
    ValueError
        If lengths do not match, a sentence is empty, tokens differ in their number of columns, or a value
        is empty or contains white space that would split it. The message names the sentence, from 1.

    Examples
    --------
    >>> from mercer.data.readers.conll import write_conll
    >>> write_conll("-", [[("the", "DT"), ("dog", "NN")]], [["B-NP", "I-NP"]])
    the DT B-NP
    dog NN I-NP
    <BLANKLINE>
    """
    blocks = _blocks(sentences, columns)
    if not isinstance(destination, str | os.PathLike):
        write_blocks(destination, blocks)
    elif os.fspath(destination) == "-":
        sys.stdout.flush()
        # bytes where possible: the encoding of the terminal must not decide what a pipe receives
        write_blocks(getattr(sys.stdout, "buffer", sys.stdout), blocks)
        sys.stdout.flush()
    else:
        with replacing(os.fspath(destination)) as file:
            write_blocks(file, blocks)


_MISSING: Any = object()
_ILLEGAL = re.compile(r"[ \t\r\n]")


def _blocks(
    sentences: Iterable[Sequence[Sequence[str]]], columns: tuple[Iterable[Sequence[str]], ...]
) -> Iterator[str]:
    """The text of one sentence after another, checked."""
    width = 0
    for number, (sentence, *extra) in enumerate(zip_longest(sentences, *columns, fillvalue=_MISSING), 1):
        if sentence is _MISSING:
            raise ValueError(f"there are {number - 1} sentences, but a label column goes on to sentence {number}")
        if len(sentence) == 0:
            raise ValueError(f"sentence {number} is empty, which a column file cannot express")
        for k, column in enumerate(extra, 1):
            if column is _MISSING:
                raise ValueError(f"sentence {number} has no labels in label column {k}, which ends before it")
            if len(column) != len(sentence):
                raise ValueError(
                    f"sentence {number} has {counted(len(sentence), 'token')}, "
                    f"but {counted(len(column), 'label')} in label column {k}"
                )
        lines = []
        for token, *labels in zip(sentence, *extra, strict=True):
            if isinstance(token, str):
                raise ValueError(f"sentence {number}: a token is a tuple of columns, found the string {token!r}")
            row = (*token, *labels)
            width = width or len(row)
            if len(row) != width:
                raise ValueError(
                    f"sentence {number} has a token of {counted(len(row), 'column')}; the first has {width}"
                )
            if not all(row) or _ILLEGAL.search("".join(row)):
                bad = next(value for value in row if not value or _ILLEGAL.search(value))
                raise ValueError(f"sentence {number}: {bad!r} is empty or has white space in it, so it is no column")
            lines.append(" ".join(row))
        yield "\n".join(lines) + "\n\n"
