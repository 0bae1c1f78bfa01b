"""Loaders for public tagging corpora: lists of sentences, each a list of tuples of columns, the tag last."""

from __future__ import annotations

import os

from mercer.data.readers.conll import Sentence, read_conll
from mercer.datasets._home import data_file

__all__ = ["load_basenp", "load_conll2000", "load_conll2002"]


def load_conll2000(subset: str = "train", data_home: str | os.PathLike[str] | None = None) -> list[Sentence]:
    """Load chunking data of CoNLL 2000: word, part of speech, chunk tag (``B-NP``, ``I-NP``, ...).

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        8,936 training or 2,012 test sentences of the Wall Street Journal.
    data_home : path, optional
        Folder that contains ``conll2000/train.txt`` and ``test.txt`` (or ``.gz``); by default the environment
        variable ``MERCER_DATA``.

    Returns
    -------
    sentences : list of list of (word, pos, tag)

    Examples
    --------
    >>> from mercer.datasets import load_conll2000
    >>> sentences = load_conll2000("test")  # doctest: +SKIP
    >>> sentences[0][0]  # doctest: +SKIP
    ('Rockwell', 'NNP', 'B-NP')
    """
    _check("subset", subset, ("train", "test"))
    return read_conll(data_file("conll2000", f"{subset}.txt", data_home))


def load_conll2002(
    language: str = "esp", subset: str = "train", data_home: str | os.PathLike[str] | None = None
) -> list[Sentence]:
    """Load named entities of CoNLL 2002: word, part of speech, entity tag (PER, ORG, LOC, MISC in IOB2).

    The Dutch files put a ``-DOCSTART-`` token in front of the first sentence of an article; the loader removes it.

    Parameters
    ----------
    language : {"esp", "ned"}, default="esp"
        Spanish or Dutch.
    subset : {"train", "testa", "testb"}, default="train"
        ``"testa"`` is for development, ``"testb"`` for the final test.
    data_home : path, optional
        Folder that contains ``conll2002/esp.train`` and so on (or ``.gz``); by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    sentences : list of list of (word, pos, tag)

    Examples
    --------
    >>> from mercer.datasets import load_conll2002
    >>> sentences = load_conll2002("ned", "testa")  # doctest: +SKIP
    """
    _check("language", language, ("esp", "ned"))
    _check("subset", subset, ("train", "testa", "testb"))
    sentences = read_conll(data_file("conll2002", f"{language}.{subset}", data_home))
    without = ([token for token in sentence if token[0] != "-DOCSTART-"] for sentence in sentences)
    return [sentence for sentence in without if sentence]


def load_basenp(subset: str = "train", data_home: str | os.PathLike[str] | None = None) -> list[Sentence]:
    """Load base noun phrases, the small sample distributed with CRF++: word, part of speech, ``B``, ``I`` or ``O``.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        77 sentences for training or 823 for testing.
    data_home : path, optional
        Folder that contains ``basenp-crfpp/train.data`` and ``test.data`` (or ``.gz``); by default the
        environment variable ``MERCER_DATA``.

    Returns
    -------
    sentences : list of list of (word, pos, tag)

    Examples
    --------
    >>> from mercer.datasets import load_basenp
    >>> len(load_basenp("train"))  # doctest: +SKIP
    77
    """
    _check("subset", subset, ("train", "test"))
    return read_conll(data_file("basenp-crfpp", f"{subset}.data", data_home))


def _check(argument: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{argument} must be one of {', '.join(map(repr, allowed))}, found {value!r}")
