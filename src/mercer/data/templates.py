"""Feature templates: the cells around a token that make a feature.

A template selects, for every token, the cells of a column file that make a feature: ``U05:%x[-1,0]/%x[0,0]`` joins
column 0 of the previous token and of this one. ``%shape[0,0]`` and similar macros describe the spelling of a cell.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

from mercer._state.values import Codec, register
from mercer.data.readers.lines import FilePath, counted, decoded_lines
from mercer.exceptions import DataFileError

Cell: TypeAlias = tuple[int, int] | tuple[int, int, str]
Piece: TypeAlias = str | Cell
Pattern: TypeAlias = tuple[Piece, ...]
_TEMPLATE_HINT = (
    "a line is U or B, a name, and macros %x[row,column], as in U05:%x[-1,0]/%x[0,0]; in the place of x also lower, "
    "shape, prefix1 to prefix9 and suffix1 to suffix9"
)
_MACRO = re.compile(r"%(x|lower|shape|prefix[1-9]|suffix[1-9])\[(-?[0-9]{1,6}),(-?[0-9]{1,6})\]")
_SPELLING = """\
# how the token is spelled: lower case, prefixes and suffixes, shape (Aa for Paris, A.A. for U.S., 0-0 for 12-30)
U30:%lower[-1,0]
U31:%lower[0,0]
U32:%lower[1,0]
U33:%prefix1[0,0]
U34:%prefix2[0,0]
U35:%prefix3[0,0]
U36:%prefix4[0,0]
U37:%suffix1[0,0]
U38:%suffix2[0,0]
U39:%suffix3[0,0]
U40:%suffix4[0,0]
U41:%shape[-2,0]
U42:%shape[-1,0]
U43:%shape[0,0]
U44:%shape[1,0]
U45:%shape[2,0]
U46:%shape[-1,0]/%shape[0,0]
U47:%shape[0,0]/%shape[1,0]
U48:%shape[-1,0]/%shape[0,0]/%shape[1,0]

"""
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
for _name in tuple(_BUILT_IN):
    _BUILT_IN[f"{_name}+spelling"] = _BUILT_IN[_name].replace("# label pairs", f"{_SPELLING}# label pairs")
_WITH_POS = tuple(text for name, text in _BUILT_IN.items() if "pos" in name)


@dataclass(frozen=True, repr=False)
class Template:
    """Feature templates in the notation of CRF++; make one with :meth:`parse` or :meth:`load`.

    A line that begins with ``U`` describes features of a label, one that begins with ``B`` features of a
    pair of neighbouring labels. ``%x[row,column]`` stands for a cell, ``row`` counted from the current token. Beyond
    CRF++, ``%lower[row,column]`` is the cell in lower case, ``%prefix3[row,column]`` and ``%suffix3[row,column]`` its
    first and last characters (1 to 9 of them; shorter cells are unchanged). ``%shape[row,column]`` maps its letters to
    ``A`` and ``a`` and its digits to ``0``, and collapses repeats: ``Aa`` for ``Paris``. The rest of the line is kept,
    so the name before the colon distinguishes templates. Beyond the ends of the sentence a cell reads ``_B-1``,
    ``_B-2``, ... and ``_B+1``, ``_B+2``, ...

    Attributes
    ----------
    text : str
        The source; ``Template.parse(template.text)`` equals the template.
    unigrams, bigrams : tuple of patterns
        A pattern is a tuple of pieces: a literal ``str``, a cell as ``(row, column)``, or its spelling as
        ``(row, column, "shape")``. The line ``B`` alone gives the pattern ``("B",)``: plain transitions.

    Examples
    --------
    >>> from mercer.data.templates import Template
    >>> template = Template.parse("U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,0]\\nB")
    >>> template
    <Template: 2 unigram and 1 bigram patterns over 1 column>
    >>> template.unigrams[1]
    ('U1:', (-1, 0), '/', (0, 0))
    >>> template.expand([("the",), ("dog",)])[0]
    [['U0:the', 'U1:_B-1/the'], ['U0:dog', 'U1:the/dog']]
    >>> Template.parse("U0:%shape[0,0]\\nU1:%suffix2[0,0]").expand([("Paris",), ("2024-11",)])[0]
    [['U0:Aa', 'U1:is'], ['U0:0-0', 'U1:11']]
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
            One template per line; blank lines and lines that begin with ``#`` are skipped.
        name : str, default="<template>"
            The name of the file in error messages.

        Raises
        ------
        DataFileError
            If a line is not a template, or there are no templates.

        Examples
        --------
        >>> from mercer.data.templates import Template
        >>> Template.parse("U0:%x[0]")
        Traceback (most recent call last):
            ...
        mercer.exceptions.DataFileError: <template>:1: malformed macro '%x[0]', expected %x[row,column]
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
        """Return a built-in template by its name, or one from a file.

        Parameters
        ----------
        name_or_path : str or path
            ``"words"`` (column 0: words in a window of two, pairs of words), ``"words+pos"`` (the usual
            window for chunking: also parts of speech in column 1, alone, in pairs and in threes), either with
            ``"+spelling"`` (also lower case, prefixes, suffixes and shapes, useful for names), or a path.

        Examples
        --------
        >>> from mercer.data.templates import Template
        >>> Template.load("words+pos")
        <Template: 19 unigram and 1 bigram patterns over 2 columns>
        """
        path = os.fspath(name_or_path)
        if path in _BUILT_IN:
            return cls.parse(_BUILT_IN[path], path)
        if not os.path.exists(path):
            *names, last = map(repr, _BUILT_IN)
            built_in = f"{', '.join(names)} or {last}"
            raise FileNotFoundError(errno.ENOENT, f"no such template file (and not the built-in {built_in})", path)
        with open(path, "rb") as file:
            return cls.parse("\n".join(decoded_lines(file, path)), path)

    @property
    def edge_patterns(self) -> tuple[Pattern, ...]:
        """Return the bigram patterns that depend on the sentence; the others are the same at every token."""
        return tuple(p for p in self.bigrams if any(isinstance(piece, tuple) for piece in p))

    @property
    def n_columns(self) -> int:
        """Return the number of columns that a token must have: one more than the highest column used."""
        cells = (piece for pattern in self.unigrams + self.bigrams for piece in pattern)
        return max((piece[1] + 1 for piece in cells if isinstance(piece, tuple)), default=0)

    def expand(self, sentence: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
        """Return all features of a sentence as strings.

        Parameters
        ----------
        sentence : sequence of sequences of str
            One item per token, with its columns.

        Returns
        -------
        unigrams, edges : list of list of str
            The features of each token from ``unigrams`` and from ``edge_patterns``. An edge feature of token
            t belongs to the pair of labels at t - 1 and t.

        Examples
        --------
        >>> from mercer.data.templates import Template
        >>> Template.parse("U:%x[1,0]\\nB:%x[0,0]").expand([("a",), ("b",)])
        ([['U:b'], ['U:_B+1']], [['B:a'], ['B:b']])
        """
        needed = self.n_columns
        for t, token in enumerate(sentence, 1):
            if isinstance(token, str):
                raise ValueError(f"token {t}: expected a tuple of columns, found the string {token!r}")
            if len(token) < needed:
                shortage = f"token {t} has {len(token)}"
                raise ValueError(f"the template needs {counted(needed, 'column')}, but {shortage}")
        edge_patterns = self.edge_patterns
        unigrams = [[_fill(p, sentence, t) for p in self.unigrams] for t in range(len(sentence))]
        edges = [[_fill(p, sentence, t) for p in edge_patterns] for t in range(len(sentence))]
        return unigrams, edges

    def describe(self, feature: str) -> str:
        """Return a readable form of a feature: ``word[-1]=New`` for a feature of ``U01:%x[-1,0]``.

        Column 0 is called word, column 1 of the built-in ``words+pos`` pos, others by their number. A feature of no
        pattern of the template is returned unchanged.

        Parameters
        ----------
        feature : str
            As in :meth:`expand`.

        Examples
        --------
        >>> from mercer.data.templates import Template
        >>> template = Template.parse("U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,1]")
        >>> template.describe("U0:dog"), template.describe("U1:New/NNP"), template.describe("U1:_B-1/NNP")
        ('word=dog', 'word[-1]=New column1=NNP', 'word[-1]=<start> column1=NNP')
        """
        for pattern in self.unigrams + self.bigrams:
            cells = [piece for piece in pattern if isinstance(piece, tuple)]
            literal = pattern[0] if isinstance(pattern[0], str) else ""
            if not cells or not feature.startswith(literal):
                continue
            shape = "".join(re.escape(piece) if isinstance(piece, str) else "(.*?)" for piece in pattern)
            values = re.fullmatch(shape, feature, re.DOTALL)
            if values is not None:
                named = zip(cells, values.groups(), strict=True)
                return " ".join(f"{self._cell_name(cell)}={_shown(value)}" for cell, value in named)
        return feature

    def _cell_name(self, cell: Cell) -> str:
        row, column, *spelling = cell
        known = ("word", "pos") if self.text in _WITH_POS else ("word",)
        name = known[column] if column < len(known) else f"column{column}"
        if spelling:
            name = spelling[0] if column == 0 else f"{spelling[0]}({name})"
        return f"{name}{_offset(row)}"

    def __repr__(self) -> str:
        patterns = f"{len(self.unigrams)} unigram and {len(self.bigrams)} bigram patterns"
        return f"<Template: {patterns} over {counted(self.n_columns, 'column')}>"


def default_template(n_columns: int) -> Template:
    """Return the built-in template for tokens with this number of columns; a second column is the part of speech."""
    return Template.load("words+spelling" if n_columns == 1 else "words+pos+spelling")


def reader_columns(template: Template, patterns: tuple[Pattern, ...], X: Any) -> tuple[Any, list[list[Any]]]:
    """Return sentences and patterns for the compiled reader; spelling macros become further columns.

    X is unchanged if no pattern uses spellings, or if a token is malformed (the reader reports it).
    """
    cells = [piece for pattern in patterns for piece in pattern if not isinstance(piece, str)]
    spelled = list(dict.fromkeys((cell[1], cell[2]) for cell in cells if len(cell) == 3))
    width = template.n_columns
    wide = _with_spellings(X, width, spelled) if spelled else None
    if wide is None:
        return X, [[piece if isinstance(piece, str) else piece[:2] for piece in pattern] for pattern in patterns]
    place = {key: width + i for i, key in enumerate(spelled)}

    def moved(piece: Piece) -> Any:
        return piece if isinstance(piece, str) or len(piece) == 2 else (piece[0], place[piece[1], piece[2]])

    return wide, [list(map(moved, pattern)) for pattern in patterns]


def _with_spellings(X: Any, width: int, spelled: list[tuple[int, str]]) -> list[Any] | None:
    """The first columns of all tokens, then their spellings; None where a token is malformed."""
    spellers: list[tuple[int, Callable[[str], str], dict[str, str]]]
    spellers = [(column, _speller(name), {}) for column, name in spelled]  # a word is spelled once
    wide = []
    try:
        for sentence in X:
            rows = []
            for token in sentence:
                if not isinstance(token, (tuple, list)) or not width <= len(token) == len(sentence[0]):
                    return None
                row = [*token[:width]]
                for column, spell, known in spellers:
                    cell = token[column]
                    if cell not in known:
                        if not isinstance(cell, str):
                            return None
                        known[cell] = spell(cell)
                    row.append(known[cell])
                rows.append(row)
            wide.append(rows)
    except TypeError:  # no list of sentences, or a cell that is no key
        return None
    return wide


def _parse_pattern(line: str, name: str, number: int) -> Pattern:
    """Cut a template line into literals and cells."""
    pieces: list[Piece] = []
    end = 0
    while (start := line.find("%", end)) >= 0:
        macro = _MACRO.match(line, start)
        if macro is None:
            malformed = re.match(r"%[^%/\]]*\]?", line[start:])
            what = f"malformed macro {malformed.group() if malformed else '%'!r}, expected %x[row,column]"
            raise DataFileError(name, number, what, _TEMPLATE_HINT)
        row, column = int(macro[2]), int(macro[3])
        if column < 0:
            what = f"column {column} in {macro[0]!r} is negative; columns count from 0"
            raise DataFileError(name, number, what, _TEMPLATE_HINT)
        if start > end:
            pieces.append(line[end:start])
        pieces.append((row, column) if macro[1] == "x" else (row, column, macro[1]))
        end = macro.end()
    if end < len(line):
        pieces.append(line[end:])
    return tuple(pieces)


def _offset(row: int) -> str:
    return f"[{row:+d}]" if row else ""


def _shown(value: str) -> str:
    """A cell as a reader knows it: those beyond the ends of a sentence have names of their own."""
    if re.fullmatch(r"_B[-+][0-9]+", value):
        return "<start>" if value[2] == "-" else "<end>"
    return value


def _fill(pattern: Pattern, sentence: Sequence[Sequence[str]], t: int) -> str:
    """The feature string of a pattern at token t."""
    return "".join(piece if isinstance(piece, str) else _cell(sentence, t + piece[0], *piece[1:]) for piece in pattern)


def _cell(sentence: Sequence[Sequence[str]], t: int, column: int, spelling: str = "x") -> str:
    if t < 0:
        return f"_B{t}"
    if t >= len(sentence):
        return f"_B+{t - len(sentence) + 1}"
    return _speller(spelling)(sentence[t][column])


def _speller(name: str) -> Callable[[str], str]:
    """What a macro makes of a cell."""
    if name in _SPELLERS:
        return _SPELLERS[name]
    size = int(name[-1])
    return (lambda text: text[:size]) if name.startswith("prefix") else (lambda text: text[-size:])


def _shape(text: str) -> str:
    """Upper case as A, lower case as a, digits as 0, repeats once."""
    signs = ("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in text)
    return "".join(sign for sign, _ in groupby(signs))


_SPELLERS: dict[str, Callable[[str], str]] = {"x": str, "lower": str.lower, "shape": _shape}


register(
    Template,
    Codec("template", lambda template, out: {"text": template.text}, lambda node, source: Template.parse(node["text"])),
)
