"""Convert between text and documents (sentences with the positions where paragraphs start).

A document of N sentences with L paragraphs is the list of its sentences and starts b_0 = 0 < b_1 < … < b_{L−1} < N:
paragraph i contains the sentences b_i .. b_{i+1} − 1. The rules of sentence splitting are in :mod:`mercer.data.prose`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mercer._validation import check_choice
from mercer.data.prose import paragraph_spans, sentence_spans, split_sentences
from mercer.segmentation._starts import check_starts

__all__ = ["Document", "join_paragraphs", "read_paragraphs", "sentence_spans", "split_sentences"]


class Document(NamedTuple):
    """A text as sentences and the indices of those that start a paragraph; see :func:`read_paragraphs`."""

    sentences: list[str]
    starts: np.ndarray


def read_paragraphs(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, sentences: str = "split"
) -> list[Document]:
    """Read texts as lists of sentences with the positions where paragraphs start.

    Blank lines separate paragraphs.

    Parameters
    ----------
    source : str, path, or an iterable of these
        A ``str`` is a text; a ``pathlib.Path`` (or other path object) is a file in UTF-8. Each gives one document.
    sentences : {"split", "lines"}, default="split"
        How to split a paragraph: by the rules of :func:`split_sentences`, or one sentence per line.

    Returns
    -------
    documents : list of Document
        Pairs (``sentences``, ``starts``). A text without words has no sentences and no starts.

    Examples
    --------
    >>> from mercer.segmentation import read_paragraphs
    >>> [document] = read_paragraphs("It rained. We stayed.\\n\\nThen the sun came out.")
    >>> document.sentences
    ['It rained.', 'We stayed.', 'Then the sun came out.']
    >>> document.starts
    array([0, 2])
    """
    check_choice("sentences", sentences, ("split", "lines"))
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    return [_document(_text(item), sentences) for item in sources]


def join_paragraphs(sentences: Sequence[str], starts: Sequence[int] | np.ndarray, *, lines: bool = False) -> str:
    """Return the text of a document: sentences joined by spaces, paragraphs by blank lines.

    Parameters
    ----------
    sentences : list of str
    starts : array of int
        The sentences that start a paragraph, in ascending order, starting with 0.
    lines : bool, default=False
        Put each sentence on a separate line. ``read_paragraphs(text, sentences="lines")`` then returns the same
        document, for any sentences.

    Returns
    -------
    text : str
        The text; it ends with a line break unless it is empty.

    Examples
    --------
    >>> from mercer.segmentation import join_paragraphs
    >>> print(join_paragraphs(["It rained.", "We stayed.", "Then the sun came out."], [0, 2]))
    It rained. We stayed.
    <BLANKLINE>
    Then the sun came out.
    <BLANKLINE>
    """
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of strings, got one string")
    cleaned = [" ".join(sentence.split()) for sentence in sentences]
    for number, sentence in enumerate(cleaned):
        if not sentence:
            raise ValueError(f"sentence {number} is blank: a blank line would start a paragraph")
    checked = check_starts("starts", starts, len(cleaned))
    joint = "\n" if lines else " "
    paragraphs = [joint.join(cleaned[a:b]) for a, b in pairwise([*checked.tolist(), len(cleaned)])]
    return "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def _text(source: str | os.PathLike[str]) -> str:
    if isinstance(source, str):
        return source
    if not isinstance(source, os.PathLike):
        raise TypeError(f"source must contain texts or paths, got {type(source).__name__}")
    try:
        return Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(source)} is not text in UTF-8: {error.reason} at byte {error.start}") from error


def _document(text: str, mode: str) -> Document:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    sentences: list[str] = []
    starts: list[int] = []
    for a, b in paragraph_spans(text):
        starts.append(len(sentences))
        if mode == "split":
            sentences += split_sentences(text[a:b])
        else:
            sentences += [" ".join(line.split()) for line in text[a:b].split("\n")]
    return Document(sentences, np.array(starts, np.int64))
