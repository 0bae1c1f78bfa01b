"""Generated documents: a topic tree of thousands of classes, and a corpus with the word statistics of news.

A class of the tree is a leaf. Its documents mix words of the topics on the path to that leaf with words of the
language:

    p(word | class) = s_1 p(word | top) + s_2 p(word | middle) + s_3 p(word | leaf) + (1 − Σ s) p(word | language)

Words of a language are Zipfian, p(r) ∝ 1/r; a topic has a pool of words, Zipfian too, and a word may belong to several
pools and to the language. A topic from which n words are drawn has a pool of 2 n^0.6 words (Heaps' law), so large
classes have larger vocabularies. Some documents could equally belong to another class. Errors are therefore spread over
classes of all sizes, as in the Open Directory.

The k-th largest class has a share ∝ k^−zipf of the documents: with the default, the largest of 575 or 7,100 classes
has 14 or 11 %, compared with 15 and 13 % in the Open Directory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._validation import check_count, check_positive
from mercer.datasets.texts import TextData

__all__ = ["TopicTree", "make_topic_tree", "make_zipf_corpus", "path_features"]

Ints = NDArray[np.int64]

_TOPS = (
    "World", "Arts", "Business", "Computers", "Games", "Health", "Home", "News", "Recreation", "Reference", "Regional",
    "Science", "Shopping", "Society", "Sports",
)  # fmt: skip
_MIDDLE = 12.3  # leaves to a topic of the second level; 7,100 and 575 in the Open Directory
_SHALLOW = 0.2  # share of the topics of the second level that are leaves
_LANGUAGE = 5000  # words of a language
_PER_CLASS = 40  # words that a class adds to the vocabulary
_SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class TopicTree:
    """Short documents from the leaves of a tree of topics; see :func:`make_topic_tree`."""

    texts: list[str]
    """The documents, in random order."""
    y: Ints
    """The class of each document: a position in ``paths``."""
    paths: list[str]
    """The path of each class, such as ``"Top/Arts/Bagu/Temo"``, sorted."""
    n_words: int
    """Size of the vocabulary."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def labels(self) -> NDArray[np.str_]:
        """Return the path of each document."""
        return np.array(self.paths)[self.y]


def make_topic_tree(
    n_classes: int = 1000,
    n_documents: int = 20_000,
    *,
    depth: int = 3,
    length: int | tuple[int, int] = (10, 30),
    signal: tuple[float, ...] | None = None,
    zipf: float = 1.0,
    ambiguity: float = 0.2,
    random_state: int | np.random.Generator | None = 0,
) -> TopicTree:
    """Draw short documents from a topic tree modelled on the Open Directory.

    The root ``Top`` has up to 15 topics, and each of these has topics of the second level. Most topics of the second
    level have one to twelve leaves; a fifth are leaves themselves. Below ``World``, topics of the second level are
    languages with their own words, so their documents are easy to classify.

    Parameters
    ----------
    n_classes : int, default=1000
        Number of leaves of the tree.
    n_documents : int, default=20000
        Number of documents; each class has at least one.
    depth : {2, 3}, default=3
        Levels below the root. With 2, all leaves are topics of the second level.
    length : int or (low, high), default=(10, 30)
        Words per document; for a pair, uniform from ``low`` to ``high``, both included.
    signal : tuple of floats, optional
        Share of the words from the topic of each level; the remaining words come from the language. By default
        ``(0.1, 0.2, 0.3)``, or ``(0.2, 0.4)`` with two levels.
    zipf : float, default=1.0
        The k-th largest class has a share ∝ k^−zipf of the documents; 0 makes all classes equally large.
    ambiguity : float from 0 to 1, default=0.2
        Share of ambiguous documents. These exchange their words with each other, below the same topic of the first
        level.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same documents.

    Returns
    -------
    tree : TopicTree
        ``texts``, their classes ``y``, and the ``paths`` of the classes.

    Examples
    --------
    >>> from mercer.datasets import make_topic_tree
    >>> tree = make_topic_tree(n_classes=50, n_documents=400)
    >>> len(tree.texts), len(tree.paths)
    (400, 50)
    >>> tree.paths[0].split("/")[:2]
    ['Top', 'Arts']
    """
    check_count("n_classes", n_classes, 2)
    check_count("n_documents", n_documents, n_classes)
    if depth not in (2, 3):
        raise ValueError(f"depth must be 2 or 3, got {depth!r}")
    low, high = _length(length)
    shares = ((0.2, 0.4) if depth == 2 else (0.1, 0.2, 0.3)) if signal is None else tuple(signal)
    if len(shares) != depth or min(shares) < 0 or not sum(shares) <= 1:
        raise ValueError(f"signal must be {depth} shares of at least 0 that sum to at most 1, got {signal!r}")
    if not np.isfinite(zipf) or zipf < 0:
        raise ValueError(f"zipf must be a number of at least 0, got {zipf!r}")
    if not 0 <= ambiguity <= 1:
        raise ValueError(f"ambiguity must be a number from 0 to 1, got {ambiguity!r}")

    rng = np.random.default_rng(random_state)
    paths, nodes, languages = _tree(n_classes, depth, rng)
    y = _class_of_documents(n_classes, n_documents, zipf, rng)
    source = _exchanged(y, ambiguity, nodes[:, 0], rng)
    lengths = rng.integers(low, high + 1, size=n_documents)
    n_language = _LANGUAGE * (int(languages.max()) + 1)
    n_words = n_language + _PER_CLASS * n_classes
    words = _draw_words(np.repeat(source, lengths), nodes, languages, shares, n_words, rng)
    return TopicTree(_texts(words, lengths, n_words), y, paths, n_words)


def _length(length: int | tuple[int, int]) -> tuple[int, int]:
    low, high = (length, length) if isinstance(length, (int, np.integer)) else length
    check_count("length", low)
    check_count("length", high)
    if low > high:
        raise ValueError(f"length must be a pair (low, high) with low <= high, got {(low, high)}")
    return int(low), int(high)


def _tree(n_classes: int, depth: int, rng: np.random.Generator) -> tuple[list[str], Ints, Ints]:
    """Return the sorted paths of the leaves; their nodes (n_classes, depth), −1 for higher leaves; their languages."""
    n_middle = n_classes if depth == 2 else max(2, min(n_classes, round(n_classes / _MIDDLE)))
    n_top = min(len(_TOPS), max(2, n_middle // 2))
    top = _children(n_middle, n_top, rng)
    if depth == 2:
        middle, has_leaf = np.arange(n_classes), np.zeros(n_classes, dtype=bool)
    else:
        shallow = min(int(_SHALLOW * n_middle), n_middle - 1)
        parents = _children(n_classes - shallow, n_middle - shallow, rng)
        order = rng.permutation(n_middle)
        middle = order[np.concatenate([np.arange(shallow), shallow + parents])]
        has_leaf = np.arange(n_classes) >= shallow
    names = _names(n_middle, rng)
    leaves = _names(n_classes, rng)
    paths = [
        "/".join(["Top", _TOPS[top[m]], names[m]] + ([leaf] if deep else []))
        for m, leaf, deep in zip(middle.tolist(), leaves, has_leaf.tolist(), strict=True)
    ]
    nodes = np.stack(
        [top[middle], n_top + middle, np.where(has_leaf, n_top + n_middle + np.arange(n_classes), -1)][:depth], axis=1
    )
    foreign = np.cumsum(top == 0) * (top == 0)  # language 0 is that of all topics but World's
    order = np.array(sorted(range(n_classes), key=paths.__getitem__))
    return [paths[k] for k in order], nodes[order].astype(np.int64), foreign[middle][order].astype(np.int64)


def _children(n: int, n_parents: int, rng: np.random.Generator) -> Ints:
    """Draw a parent for each of n children; every parent gets one child, the others follow unequal shares."""
    shares = rng.dirichlet(np.full(n_parents, 2.0))
    return np.concatenate([np.arange(n_parents), rng.choice(n_parents, size=n - n_parents, p=shares)])


def _names(n: int, rng: np.random.Generator) -> list[str]:
    """Return distinct capitalised names in random order."""
    return [_word(k).capitalize() for k in rng.permutation(n).tolist()]


def _word(k: int) -> str:
    """Return the k-th word: the digits of k as syllables, at least two."""
    base = len(_SYLLABLES)
    k += base
    syllables = []
    while k:
        k, digit = divmod(k, base)
        syllables.append(_SYLLABLES[digit])
    return "".join(reversed(syllables))


def _class_of_documents(n_classes: int, n_documents: int, zipf: float, rng: np.random.Generator) -> Ints:
    """Draw classes in random order: every class once, the others by rank^−zipf with random ranks."""
    share = np.arange(1, n_classes + 1) ** -float(zipf)
    more = rng.choice(n_classes, size=n_documents - n_classes, p=share / share.sum())
    y = rng.permutation(n_classes)[np.concatenate([np.arange(n_classes), more])]
    return rng.permutation(y).astype(np.int64)


def _exchanged(y: Ints, share: float, top: Ints, rng: np.random.Generator) -> Ints:
    """Return the classes of the words; a share of the documents permute theirs below the same top topic.

    An exchange preserves the number of documents with the words of each class, so large classes do not swamp small
    ones.
    """
    source = y.copy()
    chosen = np.flatnonzero(rng.random(len(y)) < share)
    in_order = chosen[np.argsort(top[y[chosen]], kind="stable")]
    shuffled = chosen[np.lexsort((rng.random(len(chosen)), top[y[chosen]]))]
    source[in_order] = y[shuffled]
    return source


def _draw_words(
    y: Ints, nodes: Ints, languages: Ints, shares: tuple[float, ...], n_words: int, rng: np.random.Generator
) -> Ints:
    """Draw a word for each token, given the class of its document."""
    level = np.searchsorted(np.cumsum(shares), rng.random(len(y)), side="right")  # len(shares): the language
    words = languages[y] * _LANGUAGE + _zipf_ranks(np.full(len(y), _LANGUAGE), rng)
    for depth in range(len(shares)):
        node = nodes[:, depth]
        here = np.flatnonzero((level == depth) & (node[y] >= 0))
        topic = node[y[here]]
        sizes = np.ceil(2.0 * np.bincount(topic) ** 0.6).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        pools = rng.integers(n_words, size=int(sizes.sum()))
        words[here] = pools[starts[topic] + _zipf_ranks(sizes[topic], rng)]
    return words


def _zipf_ranks(n: Ints, rng: np.random.Generator) -> Ints:
    """Draw ranks 0 … n − 1 with p(r) = log((r + 2) / (r + 1)) / log(n + 1), an integrated form of Zipf's law."""
    ranks = np.exp(rng.random(len(n)) * np.log1p(n)) - 1.0
    return np.minimum(ranks.astype(np.int64), n - 1)


def _texts(words: Ints, lengths: Ints, n_words: int) -> list[str]:
    """Return documents as one string each."""
    vocabulary = np.array([_word(k) for k in range(n_words)], dtype=object)
    ends = np.cumsum(lengths).tolist()
    tokens = vocabulary[words].tolist()
    return [" ".join(tokens[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]


def path_features(label_path: str, separator: str = "/") -> list[str]:
    """Return the features of a path: the full path of each topic from the root to the leaf.

    With features of words i and features p of paths, joint features (i, p) let classes share weights along the tree:
    the score of a class is a sum over the topics on its path. A learner for flat labels gives the same sum if it is
    trained once per level, on labels truncated at that level; see the guide on topics.

    Parameters
    ----------
    label_path : str
        Topics separated by ``separator``; empty topics are ignored.
    separator : str, default="/"

    Returns
    -------
    features : list of str
        From the root to the leaf.

    Examples
    --------
    >>> from mercer.datasets import path_features
    >>> path_features("Top/Arts/Music")
    ['Top', 'Top/Arts', 'Top/Arts/Music']
    """
    if not isinstance(label_path, str):
        raise TypeError(f"label_path must be a string such as 'Top/Arts/Music', got {type(label_path).__name__}")
    if not separator:
        raise ValueError("separator must not be empty")
    parts = [part for part in label_path.split(separator) if part]
    return [separator.join(parts[: k + 1]) for k in range(len(parts))]


def make_zipf_corpus(
    n_documents: int = 3000,
    n_words: int = 20_000,
    n_classes: int = 2,
    *,
    length: int | tuple[int, int] = (30, 120),
    separation: float = 1.0,
    mixing: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> TextData:
    """Draw documents with the word statistics of news: Zipfian words whose frequencies differ between classes.

    In class c a word w has log-frequency log(1/rank) + separation · n(w, c) with normal n. A document draws each word
    from its own class with probability a and from any class otherwise, where a is drawn for each document, uniform from
    1 − mixing to 1. So some documents are hard to classify, as in Reuters.

    Parameters
    ----------
    n_documents : int, default=3000
    n_words : int, default=20000
        Size of the vocabulary.
    n_classes : int, default=2
        Classes, equally frequent.
    length : int or (low, high), default=(30, 120)
        Words per document; for a pair, uniform from ``low`` to ``high``, both included.
    separation : float, default=1.0
        Difference between the classes.
    mixing : float from 0 to 1, default=0.5
        Variation of a document around its class.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same documents.

    Returns
    -------
    data : TextData
        The labels are 0, 1, ...; there is no split.

    Examples
    --------
    >>> from mercer.datasets import make_zipf_corpus
    >>> data = make_zipf_corpus(n_documents=100, n_words=500)
    >>> len(data), data.classes
    (100, [0, 1])
    """
    check_count("n_documents", n_documents, 0)
    check_count("n_words", n_words, 2)
    check_count("n_classes", n_classes)
    low, high = _length(length)
    check_positive("separation", separation)
    if not 0 <= mixing <= 1:
        raise ValueError(f"mixing must be a number from 0 to 1, got {mixing!r}")
    rng = np.random.default_rng(random_state)
    y = rng.integers(n_classes, size=n_documents)
    lengths = rng.integers(low, high + 1, size=n_documents)
    own = np.repeat(1.0 - mixing * rng.random(n_documents), lengths)
    source = np.repeat(y, lengths)
    source = np.where(rng.random(len(source)) < own, source, rng.integers(n_classes, size=len(source)))
    words = np.empty(len(source), dtype=np.int64)
    for c in range(n_classes):
        weight = np.exp(separation * rng.normal(size=n_words)) / np.arange(1, n_words + 1)
        cumulative = np.cumsum(weight)
        here = np.flatnonzero(source == c)
        drawn = np.searchsorted(cumulative, rng.random(len(here)) * cumulative[-1], side="right")
        words[here] = np.minimum(drawn, n_words - 1)
    return TextData(_texts(words, lengths, n_words), y)
