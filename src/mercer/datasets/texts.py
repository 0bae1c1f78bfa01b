"""Loaders for public collections of texts: news, posts, messages, reviews, questions; and two sparse matrices of words.

A collection is returned as :class:`TextData`: documents, their labels, and the published test set if there is one. Each
loader lists its files; files may be compressed (``.gz``).
"""

from __future__ import annotations

import bz2
import gzip
import html
import os
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer._validation import check_choice, check_count
from mercer.datasets._home import data_file

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "SparseData",
    "TextData",
    "load_20newsgroups",
    "load_ag_news",
    "load_movie_reviews",
    "load_news20",
    "load_r8",
    "load_rcv1_small",
    "load_reuters21578",
    "load_sms_spam",
    "load_trec_questions",
    "load_webkb",
]

Home = str | os.PathLike[str] | None


@dataclass(frozen=True)
class TextData:
    """Documents with labels, and the published split into training and test documents if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import TextData
    >>> data = TextData(["to be", "or not", "to be"], np.array(["a", "b", "a"]), np.array([False, False, True]))
    >>> data.classes
    ['a', 'b']
    >>> X_train, X_test, y_train, y_test = data.split()
    >>> X_test, y_test.tolist()
    (['to be'], ['a'])
    """

    texts: list[str]
    """The documents."""
    labels: NDArray[Any]
    """The label of each document; a tuple of labels if a document may have several."""
    is_test: NDArray[np.bool_] | None = None
    """Whether a document is in the test set; None if the collection has no published split."""

    def __post_init__(self) -> None:
        for name, values in (("labels", self.labels), ("is_test", self.is_test)):
            if values is not None and len(values) != len(self.texts):
                raise ValueError(f"{name} must have a value for each of the {len(self.texts)} texts, got {len(values)}")

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> list[Any]:
        """Return the labels that occur, sorted."""
        several = self.labels.dtype == object and any(isinstance(label, tuple) for label in self.labels)
        if several:
            return sorted({one for label in self.labels for one in label})
        return np.unique(self.labels).tolist()

    def split(
        self, test_size: float = 0.25, random_state: int | None = 0
    ) -> tuple[list[str], list[str], NDArray[Any], NDArray[Any]]:
        """Return training and test documents, then their labels, in the order of scikit-learn's ``train_test_split``.

        Parameters
        ----------
        test_size : float, default=0.25
            The share of test documents for a collection without a published split; the split is stratified by class. It
            has no effect otherwise.
        random_state : int or None, default=0
            Seed of this split.

        Returns
        -------
        X_train, X_test : list of str
        y_train, y_test : array of labels
        """
        held = self.is_test
        if held is None:
            from sklearn.model_selection import train_test_split

            _, rows = train_test_split(
                np.arange(len(self.texts)), test_size=test_size, stratify=self.labels, random_state=random_state
            )
            held = np.zeros(len(self.texts), dtype=bool)
            held[rows] = True
        train = [text for text, later in zip(self.texts, held, strict=True) if not later]
        test = [text for text, later in zip(self.texts, held, strict=True) if later]
        return train, test, self.labels[~held], self.labels[held]


@dataclass(frozen=True)
class SparseData:
    """Rows of features with labels, and the path of their file.

    Examples
    --------
    >>> from mercer.datasets import load_rcv1_small
    >>> data = load_rcv1_small()  # doctest: +SKIP
    >>> data.X.shape, data.path.name  # doctest: +SKIP
    ((1000, 47118), 'rcv1_small.dat.gz')
    """

    X: csr_array
    """The features; column j is feature j of the file."""
    y: NDArray[np.int64]
    """The labels."""
    path: Path
    """The file, for learners that read files themselves."""


# ---------------------------------------------------------------------------------------------- Reuters


def load_reuters21578(
    category: str | None = None,
    *,
    single_label: bool = False,
    n_categories: int | None = None,
    data_home: Home = None,
) -> TextData:
    """Load news wires of 1987, Reuters-21578, in the ModApte split: 9,603 training and 3,299 test documents.

    A document is its title, its dateline and its body; it has any number of topics, including none.

    Parameters
    ----------
    category : str, optional
        Labels state whether the document has this topic (``"earn"`` and ``"acq"`` are the most frequent). By default,
        labels are tuples of topics.
    single_label : bool, default=False
        Keep only documents with exactly one topic, which is the label. With ``n_categories=10`` this is the collection
        R8: two of the ten topics never occur alone.
    n_categories : int, optional
        Number of topics to keep, the most frequent in the training documents; other topics are ignored. By default all.
    data_home : path, optional
        Folder that contains ``reuters21578/reut2-000.sgm`` to ``reut2-021.sgm`` (or ``.gz``); by default the
        environment variable ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_reuters21578
    >>> data = load_reuters21578("earn")  # doctest: +SKIP
    >>> X_train, X_test, y_train, y_test = data.split()  # doctest: +SKIP
    >>> len(X_train), int(y_train.sum())  # doctest: +SKIP
    (9603, 2877)
    """
    if n_categories is not None:
        check_count("n_categories", n_categories)
    if category is not None and single_label:
        raise ValueError("category and single_label cannot be combined: each defines the labels")
    texts, topics, is_test = [], [], []
    for document in _reuters_documents(data_home):
        if document.attributes.get("TOPICS") == "YES" and document.attributes.get("LEWISSPLIT") in ("TRAIN", "TEST"):
            texts.append(document.text)
            topics.append(document.topics)
            is_test.append(document.attributes["LEWISSPLIT"] == "TEST")
    held = np.array(is_test, dtype=bool)
    counts = Counter(topic for own, later in zip(topics, held, strict=True) if not later for topic in own)
    if n_categories is not None:
        frequent = {topic for topic, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n_categories]}
        if not single_label:
            topics = [tuple(topic for topic in own if topic in frequent) for own in topics]
    if category is not None:
        if category not in counts:
            raise ValueError(f"category must be a topic of the training documents, such as 'earn', got {category!r}")
        return TextData(texts, np.array([category in own for own in topics]), held)
    if not single_label:
        return TextData(texts, _tuples(topics), held)
    keep = [len(own) == 1 and (n_categories is None or own[0] in frequent) for own in topics]
    chosen = np.flatnonzero(keep)
    return TextData([texts[k] for k in chosen], np.array([topics[k][0] for k in chosen]), held[chosen])


@dataclass(frozen=True)
class _Wire:
    """A document of the Reuters files."""

    attributes: dict[str, str]
    topics: tuple[str, ...]
    text: str


_WIRE = re.compile(r"<REUTERS\b([^>]*)>(.*?)(?:</REUTERS>|(?=<REUTERS\b)|\Z)", re.S)
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
_LISTED = re.compile(r"<D>(.*?)</D>", re.S)
_TAG = re.compile(r"</?(?:TITLE|AUTHOR|DATELINE|BODY|TEXT)\b[^>]*>")
_CONTROL = re.compile(r"&#(?:[0-9]|1[1-9]|2[0-9]|3[01]|127);")  # marks of the wire service, not of the text


def _reuters_documents(home: Home) -> Iterator[_Wire]:
    """Return the documents of the 22 files in order."""
    files = [data_file("reuters21578", f"reut2-{k:03d}.sgm", home) for k in range(22)]
    for path in files:
        yield from _parse_reuters(_read(path, "latin-1"), path)


def _parse_reuters(text: str, path: Path) -> Iterator[_Wire]:
    """Parse one SGML file; a missing element counts as empty, an unclosed element extends to the next one."""
    n_documents = 0
    for match in _WIRE.finditer(text):
        n_documents += 1
        head, content = match.groups()
        start = content.find("<TEXT")
        body = content[start:] if start >= 0 else ""
        body = re.sub(r"<AUTHOR>.*?</AUTHOR>", " ", body, flags=re.S)
        body = html.unescape(_CONTROL.sub(" ", _TAG.sub("\n", body)))
        listed = re.search(r"<TOPICS>(.*?)</TOPICS>", content, re.S)
        topics = tuple(html.unescape(one.strip()) for one in _LISTED.findall(listed[1])) if listed else ()
        yield _Wire(dict(_ATTRIBUTE.findall(head)), topics, body.strip())
    if not n_documents:
        raise ValueError(f"{path}: expected documents in <REUTERS ...> ... </REUTERS>, found none")


def _tuples(values: Sequence[tuple[str, ...]]) -> NDArray[Any]:
    """Return tuples as an object array; numpy would make a matrix of tuples of equal length."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# ---------------------------------------------------------------------------------------------- archives


def load_20newsgroups(headers: bool = True, data_home: Home = None) -> TextData:
    """Load posts to twenty newsgroups, split by date: 11,314 training and 7,532 test posts.

    Parameters
    ----------
    headers : bool, default=True
        Keep the header (subject, sender, organisation, ...). The header reveals much about the group; without it the
        task is harder and more realistic.
    data_home : path, optional
        Folder that contains ``20newsgroups/20news-bydate-train.tar.gz`` and ``20news-bydate-test.tar.gz``; by default
        the environment variable ``MERCER_DATA``.

    Returns
    -------
    data : TextData
        The labels are names of newsgroups.

    Examples
    --------
    >>> from mercer.datasets import load_20newsgroups
    >>> data = load_20newsgroups(headers=False)  # doctest: +SKIP
    >>> data.classes[0]  # doctest: +SKIP
    'alt.atheism'
    """
    texts, labels, is_test = [], [], []
    for subset in ("train", "test"):
        path = data_file("20newsgroups", f"20news-bydate-{subset}.tar.gz", data_home)
        for name, content in _members(path):
            text = content.decode("latin-1")
            texts.append(text if headers else _without_header(text))
            labels.append(_folder(name, path))
            is_test.append(subset == "test")
    return TextData(texts, np.array(labels), np.array(is_test, dtype=bool))


def load_movie_reviews(data_home: Home = None) -> TextData:
    """Load film reviews, 1,000 negative (``"neg"``) and 1,000 positive (``"pos"``), without a published split.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``movie-reviews/movie_reviews.tar.gz``; by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_movie_reviews
    >>> X_train, X_test, y_train, y_test = load_movie_reviews().split()  # doctest: +SKIP
    """
    path = data_file("movie-reviews", "movie_reviews.tar.gz", data_home)
    reviews = [(name, content) for name, content in _members(path) if name.endswith(".txt")]
    if not reviews:
        raise ValueError(f"{path}: expected reviews neg/*.txt and pos/*.txt, found none")
    labels = np.array([_folder(name, path) for name, _ in reviews])
    return TextData([content.decode("latin-1") for _, content in reviews], labels)


def _members(path: Path) -> list[tuple[str, bytes]]:
    """Return names and contents of the files in an archive, sorted by name."""
    try:
        with tarfile.open(path) as archive:
            members = [(m.name, archive.extractfile(m).read()) for m in archive if m.isfile()]  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValueError(f"{path}: not a complete tar archive: {error}") from error
    return sorted(members)


def _folder(name: str, path: Path) -> str:
    """Return the folder of a file in an archive, which is its class."""
    parts = name.split("/")
    if len(parts) < 2:
        raise ValueError(f"{path}: expected one folder per class, found {name!r} outside of any folder")
    return parts[-2]


_LINES_FIELD = re.compile(r"\bLines: *\d+")


def _without_header(text: str) -> str:
    """Return the text after the blank line that ends the header; the whole text if there is no blank line.

    Some copies of the collection have tabs or spaces in place of line ends. In these, the header ends at a doubled tab
    or space. A doubled space must follow the field ``Lines`` if there is one, since fields may contain doubled spaces.
    """
    text = text.replace("\r\n", "\n")
    for end in ("\n\n", "\t\t"):
        _, blank, rest = text.partition(end)
        if blank:
            return rest
    field = _LINES_FIELD.search(text, 0, 2000)
    start = text.find("  ", field.end() if field else 0)
    return text[start + 2 :] if start >= 0 else text


# ---------------------------------------------------------------------------------------------- lines


def load_sms_spam(data_home: Home = None) -> TextData:
    """Load text messages (SMS), 4,827 wanted (``"ham"``) and 747 unwanted (``"spam"``), without a published split.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``sms-spam/SMSSpamCollection``; by default the environment variable ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_sms_spam
    >>> data = load_sms_spam()  # doctest: +SKIP
    >>> len(data), data.classes  # doctest: +SKIP
    (5574, ['ham', 'spam'])
    """
    path = data_file("sms-spam", "SMSSpamCollection", data_home)
    rows = [_fields(line, 2, "\t", path, number) for number, line in enumerate(_lines(path), 1)]
    for number, (label, _) in enumerate(rows, 1):
        if label not in ("ham", "spam"):
            raise ValueError(f"{path}:{number}: expected 'ham' or 'spam' before the tab, found {label!r}")
    return TextData([text for _, text in rows], np.array([label for label, _ in rows]))


def load_ag_news(data_home: Home = None) -> TextData:
    """Load news of four kinds, World, Sports, Business and Sci/Tech: the 7,600 test documents of AG's corpus.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``ag-news-test/test_texts.txt`` (or ``.gz``) and ``test_labels.txt``; by default the
        environment variable ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_ag_news
    >>> load_ag_news().classes  # doctest: +SKIP
    ['Business', 'Sci/Tech', 'Sports', 'World']
    """
    texts = _lines(path := data_file("ag-news-test", "test_texts.txt", data_home))
    labels = _lines(data_file("ag-news-test", "test_labels.txt", data_home))
    if len(texts) != len(labels):
        raise ValueError(f"{path}: expected a line for each of the {len(labels)} labels, found {len(texts)} lines")
    return TextData(texts, np.array(labels))


def load_trec_questions(fine: bool = False, data_home: Home = None) -> TextData:
    """Load questions labelled by answer type (a person, a number, a place, ...): 5,452 training and 500 test questions.

    Parameters
    ----------
    fine : bool, default=False
        Use 50 fine labels (``"NUM:dist"``) instead of 6 coarse ones (``"NUM"``).
    data_home : path, optional
        Folder that contains ``trec-qc/train.txt`` and ``test.txt``; by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_trec_questions
    >>> load_trec_questions().classes  # doctest: +SKIP
    ['ABBR', 'DESC', 'ENTY', 'HUM', 'LOC', 'NUM']
    """
    texts, labels, is_test = [], [], []
    for subset in ("train", "test"):
        path = data_file("trec-qc", f"{subset}.txt", data_home)
        for number, line in enumerate(_lines(path, "latin-1"), 1):
            label, text = _fields(line, 2, " ", path, number)
            if ":" not in label:
                raise ValueError(f"{path}:{number}: expected a label such as 'NUM:dist' first, found {label!r}")
            texts.append(text)
            labels.append(label if fine else label.partition(":")[0])
            is_test.append(subset == "test")
    return TextData(texts, np.array(labels), np.array(is_test, dtype=bool))


def load_r8(data_home: Home = None) -> TextData:
    """Load Reuters documents of eight topics, cleaned of punctuation, digits and stop words.

    There are 5,485 training and 2,189 test documents. The raw documents of the same split are
    ``load_reuters21578(single_label=True, n_categories=10)``.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``text-r8/R8.txt`` and ``R8.clean.txt`` (or ``.gz``); by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_r8
    >>> len(load_r8().classes)  # doctest: +SKIP
    8
    """
    return _index_and_lines("text-r8", "R8", data_home)


def load_webkb(data_home: Home = None) -> TextData:
    """Load stemmed web pages of students, faculty, courses and projects: 2,803 training and 1,396 test documents.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``text-webkb/WebKB.txt`` and ``WebKB.clean.txt`` (or ``.gz``); by default the environment
        variable ``MERCER_DATA``.

    Returns
    -------
    data : TextData

    Examples
    --------
    >>> from mercer.datasets import load_webkb
    >>> load_webkb().classes  # doctest: +SKIP
    ['course', 'faculty', 'project', 'student']
    """
    return _index_and_lines("text-webkb", "WebKB", data_home)


def _index_and_lines(dataset: str, stem: str, home: Home) -> TextData:
    """Read an index (number, train or test, label) and a file with one document per line."""
    index = data_file(dataset, f"{stem}.txt", home)
    path = data_file(dataset, f"{stem}.clean.txt", home)
    texts = _lines(path)
    labels, is_test = [], []
    for number, line in enumerate(_lines(index), 1):
        _, subset, label = _fields(line, 3, "\t", index, number)
        if subset not in ("train", "test"):
            raise ValueError(f"{index}:{number}: expected 'train' or 'test' in the second column, found {subset!r}")
        labels.append(label)
        is_test.append(subset == "test")
    if len(texts) != len(labels):
        raise ValueError(f"{path}: expected a line for each of the {len(labels)} labels, found {len(texts)} lines")
    return TextData(texts, np.array(labels), np.array(is_test, dtype=bool))


# ---------------------------------------------------------------------------------------------- matrices


def load_news20(data_home: Home = None) -> SparseData:
    """Load word counts of 15,935 posts to twenty newsgroups, 62,061 words, without a published split.

    Parameters
    ----------
    data_home : path, optional
        Folder that contains ``news20/news20.bz2`` in the format of LIBSVM; by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    data : SparseData
        Labels 1 to 20. Column 0 is empty, since indices in the file start at 1.

    Examples
    --------
    >>> from mercer.datasets import load_news20
    >>> load_news20().X.shape  # doctest: +SKIP
    (15935, 62062)
    """
    from sklearn.datasets import load_svmlight_file

    path = data_file("news20", "news20.bz2", data_home)
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: expected lines 'label index:value ...' compressed by bzip2: {error}") from error
    return SparseData(_narrow(X.data, X.indices, X.indptr, X.shape), y.astype(np.int64), path)


def load_rcv1_small(labels: str = "binary", data_home: Home = None) -> SparseData:
    """Load a thousand documents of RCV1 as tf-idf values, in the format of Vowpal Wabbit.

    Parameters
    ----------
    labels : {"binary", "multiclass"}, default="binary"
        Labels −1 and 1 (``rcv1_small.dat``), or the same as 2 and 1 (``rcv1_multiclass.dat``).
    data_home : path, optional
        Folder that contains ``rcv1-vw/rcv1_small.dat`` and ``rcv1_multiclass.dat`` (or ``.gz``); by default the
        environment variable ``MERCER_DATA``.

    Returns
    -------
    data : SparseData

    Examples
    --------
    >>> from mercer.datasets import load_rcv1_small
    >>> load_rcv1_small().X.shape  # doctest: +SKIP
    (1000, 47118)
    """
    check_choice("labels", labels, ("binary", "multiclass"))
    name = "rcv1_small.dat" if labels == "binary" else "rcv1_multiclass.dat"
    path = data_file("rcv1-vw", name, data_home)
    y: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    ends = [0]
    for number, line in enumerate(_lines(path), 1):
        label, _, rest = line.partition("|")
        fields = rest.split()[1:] if rest[:1].strip() else rest.split()  # "|f 3:0.5": f names the features
        try:
            y.append(int(label))
            pairs = [field.split(":") for field in fields]
            indices.extend(int(index) for index, _ in pairs)
            values.extend(float(value) for _, value in pairs)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: expected 'label |f index:value ...': {error}") from error
        ends.append(len(indices))
    if indices and min(indices) < 0:
        raise ValueError(f"{path}: expected indices of at least 0, found {min(indices)}")
    shape = (len(y), max(indices, default=-1) + 1)
    return SparseData(_narrow(values, indices, ends, shape), np.array(y, dtype=np.int64), path)


def _narrow(values: Any, indices: Any, ends: Any, shape: tuple[int, int]) -> csr_array:
    """Return a CSR array with 32-bit indices, which some estimators of scikit-learn require."""
    parts = np.asarray(values, np.float64), np.asarray(indices, np.int32), np.asarray(ends, np.int32)
    from scipy.sparse import csr_array

    X = csr_array(parts, shape=shape)
    X.sort_indices()
    return X


# ---------------------------------------------------------------------------------------------- files


def _read(path: Path, encoding: str = "utf-8") -> str:
    """Read a text file, compressed or not. Bytes that are invalid in this encoding become U+FFFD."""
    opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    try:
        with opener(path, "rb") as file:  # type: ignore[operator]
            return file.read().decode(encoding, errors="replace")
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be decompressed: {error}") from error


def _lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a file; only line feeds (after a carriage return or not) end a line."""
    lines = _read(path, encoding).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError(f"{path}: the file is empty")
    return [line.removesuffix("\r") for line in lines]


def _fields(line: str, n: int, separator: str, path: Path, number: int) -> list[str]:
    """Split a line into exactly ``n`` fields; the last may contain further separators."""
    fields = line.split(separator, n - 1)
    if len(fields) != n:
        shown = {"\t": "a tab", " ": "a space"}[separator]
        raise ValueError(f"{path}:{number}: expected {n} fields separated by {shown}, found {len(fields)}")
    return fields
