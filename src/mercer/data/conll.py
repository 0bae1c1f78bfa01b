"""Column files (CoNLL format) and the feature templates that turn their columns into features.

A column file holds one token a line, its columns split by spaces or tabs, and a blank line after each
sentence. A template says, once for all tokens, which cells around a token make a feature:
``U05:%x[-1,0]/%x[0,0]`` joins column 0 of the previous token and of this one.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import IO, Any, BinaryIO, TypeAlias, cast

from mercer._state.values import Codec, register

__all__ = ["DataFileError", "Sentence", "Template", "iter_conll", "read_conll", "write_conll"]

Sentence: TypeAlias = list[tuple[str, ...]]
FilePath: TypeAlias = str | os.PathLike[str]
Piece: TypeAlias = str | tuple[int, int]
Pattern: TypeAlias = tuple[Piece, ...]

_COLUMNS_HINT = "sentences are separated by blank lines; columns by spaces or tabs"
_ENCODING_HINT = "the text must be UTF-8; convert it first, for instance with iconv -f latin1 -t utf8"
_GZIP_HINT = "the file is damaged or cut short; copy or download it again"
_TEMPLATE_HINT = "a line is U or B, a name, and macros %x[row,column], as in U05:%x[-1,0]/%x[0,0]"


class DataFileError(ValueError):
    """A file that is not what it should be: says which file, which line, and what is wrong there.

    Parameters
    ----------
    file : str
        Name of the file, as the person gave it.
    line : int
        Line number, counted from 1.
    what : str
        What was expected and what was found.
    hint : str, default=""
        A second sentence that helps to repair the file.

    Examples
    --------
    >>> from mercer.data.conll import DataFileError
    >>> raise DataFileError("broken.conll", 1203, "expected 3 columns as in line 1, found 2")
    Traceback (most recent call last):
        ...
    mercer.data.conll.DataFileError: broken.conll:1203: expected 3 columns as in line 1, found 2
    """

    def __init__(self, file: str, line: int, what: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {what}")
        self.file = file
        self.line = line
        self.what = what
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:  # so that a worker process can hand the error back
        return type(self), (self.file, self.line, self.what, self.hint)


# ---------------------------------------------------------------------------------------------- reading


def read_conll(source: FilePath | IO[str] | IO[bytes]) -> list[Sentence]:
    r"""Read a whole column file.

    Parameters
    ----------
    source : path, "-", or open file
        A path (``.gz`` is unpacked on the way), ``"-"`` for standard input, or an open text or binary file.
        Bytes are read as UTF-8; a byte order mark at the very start is skipped.

    Returns
    -------
    sentences : list of list of tuple of str
        One list a sentence, one tuple of columns a token; an empty file gives ``[]``.

    Raises
    ------
    DataFileError
        If a line has another number of columns than the first, is not UTF-8, or the ``.gz`` is damaged.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import io
    >>> from mercer.data.conll import read_conll
    >>> read_conll(io.StringIO("the DT\ndog NN\n\nsleep VB\n"))
    [[('the', 'DT'), ('dog', 'NN')], [('sleep', 'VB')]]
    """
    return list(iter_conll(source))


def iter_conll(source: FilePath | IO[str] | IO[bytes]) -> Iterator[Sentence]:
    r"""Read a column file sentence by sentence, with the checks of :func:`read_conll`.

    Nothing is opened before the first sentence is asked for.

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
    >>> from mercer.data.conll import iter_conll
    >>> for sentence in iter_conll(io.BytesIO(b"a\nb\n\nc\n")):
    ...     print(len(sentence))
    2
    1
    """
    with contextlib.ExitStack() as stack:
        stream, name = _open_source(source, stack)
        sentence: Sentence = []
        width = first = 0
        for number, text in enumerate(_lines(stream, name), 1):
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
                what = f"expected {_count(width, 'column')} as in line {first}, found {len(row)}"
                raise DataFileError(name, number, what, _COLUMNS_HINT)
        if sentence:
            yield sentence


def _open_source(
    source: FilePath | IO[str] | IO[bytes], stack: contextlib.ExitStack
) -> tuple[IO[str] | IO[bytes], str]:
    """The stream to read and its name in messages; closed by the stack only if opened here."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            return getattr(sys.stdin, "buffer", sys.stdin), "<stdin>"
        file: IO[bytes] = stack.enter_context(open(path, "rb"))  # noqa: SIM115 (the stack closes it)
        if path.endswith(".gz"):
            # GzipFile finds its lines in Python; a BufferedReader around it does so in C
            unzipped = stack.enter_context(gzip.GzipFile(fileobj=file, mode="rb"))
            file = stack.enter_context(io.BufferedReader(cast(io.RawIOBase, unzipped), 1 << 18))
        return file, path
    return source, str(getattr(source, "name", "<file>"))


def _lines(stream: IO[str] | IO[bytes], name: str) -> Iterator[str]:
    """Decoded lines without their ends; damage in the file becomes a DataFileError that names the line."""
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
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(name, number + 1, f"not valid gzip data ({error})", _GZIP_HINT) from error


def read_lines(source: FilePath | IO[str] | IO[bytes]) -> Iterator[str]:
    """Lines of a text file (also .gz; - is standard input) without their ends; damage is named with its line."""
    with contextlib.ExitStack() as stack:
        yield from _lines(*_open_source(source, stack))


# ---------------------------------------------------------------------------------------------- writing


def write_conll(
    destination: FilePath | IO[str] | IO[bytes],
    sentences: Iterable[Sequence[Sequence[str]]],
    *columns: Iterable[Sequence[str]],
) -> None:
    """Write sentences as a column file, with further columns (such as predicted labels) appended.

    Whatever is written can be read back by :func:`read_conll`. A path is written whole or not at all.

    Parameters
    ----------
    destination : path, "-", or open file
        A path (``.gz`` is packed), ``"-"`` for standard output, or an open text or binary file.
    sentences : iterable of sentences
        Each a sequence of tokens, each token a sequence of columns.
    *columns : iterable of sequences of str
        Each holds one sequence a sentence, with one value a token.

    Raises
    ------
    ValueError
        If lengths do not match, a sentence is empty, tokens differ in their number of columns, or a value
        is empty or contains white space that would split it. The message names the sentence, from 1.

    Examples
    --------
    >>> from mercer.data.conll import write_conll
    >>> write_conll("-", [[("the", "DT"), ("dog", "NN")]], [["B-NP", "I-NP"]])
    the DT B-NP
    dog NN I-NP
    <BLANKLINE>
    """
    blocks = _blocks(sentences, columns)
    if not isinstance(destination, str | os.PathLike):
        _write_blocks(destination, blocks)
    elif os.fspath(destination) == "-":
        sys.stdout.flush()
        # bytes where possible: the encoding of the terminal must not decide what a pipe receives
        _write_blocks(getattr(sys.stdout, "buffer", sys.stdout), blocks)
        sys.stdout.flush()
    else:
        with _replacing(os.fspath(destination)) as file:
            _write_blocks(file, blocks)


def _write_blocks(stream: IO[str] | IO[bytes], blocks: Iterator[str]) -> None:
    if hasattr(stream, "encoding"):
        cast(IO[str], stream).writelines(blocks)
    else:
        cast(IO[bytes], stream).writelines(block.encode("utf-8") for block in blocks)


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
                    f"sentence {number} has {_count(len(sentence), 'token')}, "
                    f"but {_count(len(column), 'label')} in label column {k}"
                )
        lines = []
        for token, *labels in zip(sentence, *extra, strict=True):
            if isinstance(token, str):
                raise ValueError(f"sentence {number}: a token is a tuple of columns, found the string {token!r}")
            row = (*token, *labels)
            width = width or len(row)
            if len(row) != width:
                raise ValueError(
                    f"sentence {number} has a token of {_count(len(row), 'column')}; the first has {width}"
                )
            if not all(row) or _ILLEGAL.search("".join(row)):
                bad = next(value for value in row if not value or _ILLEGAL.search(value))
                raise ValueError(f"sentence {number}: {bad!r} is empty or has white space in it, so it is no column")
            lines.append(" ".join(row))
        yield "\n".join(lines) + "\n\n"


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when the block ends well, and vanishes when it does not."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe: nothing to replace
        with open(path, "wb") as device:
            yield device
        return
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as raw:
            if path.endswith(".gz"):
                # no time stamp and no file name, so that the same sentences give the same bytes
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


# -------------------------------------------------------------------------------------------- templates

_MACRO = re.compile(r"%x\[(-?[0-9]{1,6}),(-?[0-9]{1,6})\]")

_BUILT_IN = {
    "words": """\
# words in a window of two, and the two word pairs around the token
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

# label pairs
B
""",
    "words+pos": """\
# words (column 0) in a window of two, and the two word pairs around the token
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

# parts of speech (column 1): one, two and three in a row
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# label pairs
B
""",
}


@dataclass(frozen=True, repr=False)
class Template:
    """Feature templates in the notation of CRF++; make one with :meth:`parse` or :meth:`load`.

    A line that begins with ``U`` describes features of a label, one that begins with ``B`` features of a
    pair of neighbouring labels. ``%x[row,column]`` stands for a cell, ``row`` counted from the current token.
    The rest of the line is kept as it is, so that the name before the colon keeps templates apart. Beyond the
    ends of the sentence a cell reads ``_B-1``, ``_B-2``, ... and ``_B+1``, ``_B+2``, ...

    Attributes
    ----------
    text : str
        The source; ``Template.parse(template.text)`` equals the template.
    unigrams, bigrams : tuple of patterns
        A pattern is a tuple of pieces: a literal ``str``, or a cell as ``(row, column)``. The line ``B``
        alone gives the pattern ``("B",)``: plain transitions.

    Examples
    --------
    >>> from mercer.data.conll import Template
    >>> template = Template.parse("U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,0]\\nB")
    >>> template
    <Template: 2 unigram and 1 bigram patterns over 1 column>
    >>> template.unigrams[1]
    ('U1:', (-1, 0), '/', (0, 0))
    >>> template.expand([("the",), ("dog",)])[0]
    [['U0:the', 'U1:_B-1/the'], ['U0:dog', 'U1:the/dog']]
    """

    text: str = field(compare=False)
    unigrams: tuple[Pattern, ...]
    bigrams: tuple[Pattern, ...]

    @classmethod
    def parse(cls, text: str, name: str = "<template>") -> Template:
        """Read templates from text.

        Parameters
        ----------
        text : str
            One template a line; blank lines and lines that begin with ``#`` are skipped.
        name : str, default="<template>"
            The name of the file in error messages.

        Raises
        ------
        DataFileError
            If a line is no template, or there is none at all.

        Examples
        --------
        >>> from mercer.data.conll import Template
        >>> Template.parse("U0:%x[0]")
        Traceback (most recent call last):
            ...
        mercer.data.conll.DataFileError: <template>:1: malformed macro '%x[0]', expected %x[row,column]
        """
        unigrams: list[Pattern] = []
        bigrams: list[Pattern] = []
        for number, line in enumerate(text.split("\n"), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line[0] not in "UB":
                what = f"expected a line that begins with U or B, found {line!r}"
                raise DataFileError(name, number, what, _TEMPLATE_HINT)
            (unigrams if line[0] == "U" else bigrams).append(_parse_pattern(line, name, number))
        if not unigrams and not bigrams:
            raise DataFileError(name, 1, "expected feature templates, found none", _TEMPLATE_HINT)
        return cls(text, tuple(unigrams), tuple(bigrams))

    @classmethod
    def load(cls, name_or_path: FilePath) -> Template:
        """A built-in template by its name, or one from a file.

        Parameters
        ----------
        name_or_path : str or path
            ``"words"`` (column 0: words in a window of two, pairs of words), ``"words+pos"`` (the usual
            window for chunking: also parts of speech in column 1, alone, in pairs and in threes), or a path.

        Examples
        --------
        >>> from mercer.data.conll import Template
        >>> Template.load("words+pos")
        <Template: 19 unigram and 1 bigram patterns over 2 columns>
        """
        path = os.fspath(name_or_path)
        if path in _BUILT_IN:
            return cls.parse(_BUILT_IN[path], path)
        if not os.path.exists(path):
            names = " or ".join(repr(name) for name in _BUILT_IN)
            raise FileNotFoundError(errno.ENOENT, f"no such template file (and not the built-in {names})", path)
        with open(path, "rb") as file:
            return cls.parse("\n".join(_lines(file, path)), path)

    @property
    def edge_patterns(self) -> tuple[Pattern, ...]:
        """The bigram patterns that look at the sentence; the others are the same at every token."""
        return tuple(p for p in self.bigrams if any(isinstance(piece, tuple) for piece in p))

    @property
    def n_columns(self) -> int:
        """How many columns a token must have: one more than the highest column used."""
        cells = (piece for pattern in self.unigrams + self.bigrams for piece in pattern)
        return max((piece[1] + 1 for piece in cells if isinstance(piece, tuple)), default=0)

    def expand(self, sentence: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
        """All features of a sentence as strings, spelled out.

        Parameters
        ----------
        sentence : sequence of sequences of str
            One token an item, its columns inside.

        Returns
        -------
        unigrams, edges : list of list of str
            The features of each token from ``unigrams`` and from ``edge_patterns``. An edge feature of token
            t belongs to the pair of labels at t - 1 and t.

        Examples
        --------
        >>> from mercer.data.conll import Template
        >>> Template.parse("U:%x[1,0]\\nB:%x[0,0]").expand([("a",), ("b",)])
        ([['U:b'], ['U:_B+1']], [['B:a'], ['B:b']])
        """
        needed = self.n_columns
        for t, token in enumerate(sentence, 1):
            if isinstance(token, str):
                raise ValueError(f"token {t}: expected a tuple of columns, found the string {token!r}")
            if len(token) < needed:
                found = f"token {t} has {len(token)}"
                raise ValueError(f"the template needs {_count(needed, 'column')}, but {found}")
        edge_patterns = self.edge_patterns
        unigrams = [[_fill(p, sentence, t) for p in self.unigrams] for t in range(len(sentence))]
        edges = [[_fill(p, sentence, t) for p in edge_patterns] for t in range(len(sentence))]
        return unigrams, edges

    def __repr__(self) -> str:
        patterns = f"{len(self.unigrams)} unigram and {len(self.bigrams)} bigram patterns"
        return f"<Template: {patterns} over {_count(self.n_columns, 'column')}>"


def _parse_pattern(line: str, name: str, number: int) -> Pattern:
    """Cut a template line into literals and cells."""
    pieces: list[Piece] = []
    end = 0
    while (start := line.find("%", end)) >= 0:
        macro = _MACRO.match(line, start)
        if macro is None:
            found = re.match(r"%[^%/\]]*\]?", line[start:])
            what = f"malformed macro {found.group() if found else '%'!r}, expected %x[row,column]"
            raise DataFileError(name, number, what, _TEMPLATE_HINT)
        row, column = int(macro[1]), int(macro[2])
        if column < 0:
            what = f"column {column} in {macro[0]!r} is negative; columns count from 0"
            raise DataFileError(name, number, what, _TEMPLATE_HINT)
        if start > end:
            pieces.append(line[end:start])
        pieces.append((row, column))
        end = macro.end()
    if end < len(line):
        pieces.append(line[end:])
    return tuple(pieces)


def _fill(pattern: Pattern, sentence: Sequence[Sequence[str]], t: int) -> str:
    """The feature string of a pattern at token t."""
    return "".join(piece if isinstance(piece, str) else _cell(sentence, t + piece[0], piece[1]) for piece in pattern)


def _cell(sentence: Sequence[Sequence[str]], t: int, column: int) -> str:
    if t < 0:
        return f"_B{t}"
    if t >= len(sentence):
        return f"_B+{t - len(sentence) + 1}"
    return sentence[t][column]


register(
    Template,
    Codec("template", lambda template, out: {"text": template.text}, lambda node, source: Template.parse(node["text"])),
)
