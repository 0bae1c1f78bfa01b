"""Sequences with known segments: synthetic actions, synthetic paragraphs, and paragraphs written by people.

**Actions**. A sequence is a run of segments; the action c of a segment differs from the previous action (except for the
share ``stay``). Its duration is 1 + Poisson(λ − 1), where λ depends on action and person. Its frames are drawn around
the mean μ of action and person. Difficulty moves all means towards the first: μ_c ← μ_1 + s (μ_c − μ_1), s = 1, 0.8, …
0.2.

**Paragraphs**. A paragraph has a topic, and each of its words comes from the topic with probability ``topic_share``,
otherwise from words shared by all topics. Neighbouring paragraphs have different topics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_positive
from mercer.data.prose import split_sentences

__all__ = ["ActionTask", "ParagraphTask", "load_topics_prose", "make_actions", "make_paragraphs"]


@dataclass(frozen=True)
class ActionTask:
    """Sequences of frames with the action of each frame; see :func:`make_actions`.

    Attributes
    ----------
    X : list of arrays of shape (n_frames, n_features)
    y : list of int arrays of length n_frames
        The action of each frame, from 0.
    segments : list of lists of (start, end, action)
        The segments also separate neighbouring segments of the same action.
    persons : int array
        The person of each sequence.
    """

    X: list[np.ndarray]
    y: list[np.ndarray]
    segments: list[list[tuple[int, int, int]]]
    persons: np.ndarray

    @property
    def starts(self) -> list[np.ndarray]:
        """Return the start positions of the segments of each sequence."""
        return [np.array([start for start, _, _ in one], np.int64) for one in self.segments]


def make_actions(
    n_sequences: int = 5,
    n_frames: int = 150,
    n_actions: int = 2,
    n_persons: int = 2,
    *,
    difficulty: int = 1,
    emissions: str = "gaussian",
    n_features: int | None = None,
    duration: float | tuple[float, float] = (8.0, 20.0),
    stay: float = 0.0,
    drift: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
) -> ActionTask:
    """Draw sequences of actions with typical durations, a semi-Markov task with five levels of difficulty.

    Parameters
    ----------
    n_sequences : int, default=5
        Sequences per person.
    n_frames : int, default=150
        Frames per sequence; the last segment is truncated.
    n_actions, n_persons : int, default=2
        Every person has individual means, spreads and durations around those of the actions.
    difficulty : {1, 2, 3, 4, 5}, default=1
        Distance of the means of all actions to the first mean: the drawn distance at 1, a fifth of this distance at 5.
    emissions : {"gaussian", "histogram"}, default="gaussian"
        Frames are normally distributed around a mean, or histograms of 30 points over ``n_features`` visual words.
    n_features : int, optional
        Default: 4 for ``"gaussian"``, 50 for ``"histogram"``.
    duration : float or (low, high), default=(8.0, 20.0)
        Mean length of a segment; for a pair, the actions are evenly spaced from ``low`` to ``high``.
    stay : float, default=0.0
        Probability that the next segment has the same action, as in gait cycles.
    drift : float, default=0.0
        Drift of the mean within a segment, in units of the distance of means, along a direction of the action. It
        resets at the next segment, so with ``stay=1`` only the drift reveals the boundaries.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same task. The actions, persons and labels are the same at every difficulty.

    Returns
    -------
    task : ActionTask

    Examples
    --------
    >>> from mercer.datasets import make_actions
    >>> task = make_actions(difficulty=3)
    >>> len(task.X), task.X[0].shape, task.persons[:6]
    (10, (150, 4), array([0, 0, 0, 0, 0, 1]))
    >>> histograms = make_actions(n_actions=6, emissions="histogram")
    >>> histograms.X[0].shape, round(float(histograms.X[0][0].sum()), 6)
    ((150, 50), 1.0)
    """
    check_count("n_sequences", n_sequences, 0)
    check_count("n_frames", n_frames)
    check_count("n_actions", n_actions)
    check_count("n_persons", n_persons)
    check_choice("difficulty", difficulty, (1, 2, 3, 4, 5))
    check_choice("emissions", emissions, ("gaussian", "histogram"))
    d = check_count("n_features", (4 if emissions == "gaussian" else 50) if n_features is None else n_features)
    low, high = duration if isinstance(duration, tuple) else (duration, duration)
    if check_positive("duration", low) < 1 or check_positive("duration", high) < low:
        raise ValueError(f"duration must be a mean length of at least 1, or a pair low <= high, got {duration!r}")
    _check_share("stay", stay)
    if n_actions == 1 and stay < 1:
        raise ValueError("n_actions=1 needs stay=1: there is no other action to change to")
    if isinstance(drift, bool) or not isinstance(drift, Real) or not 0 <= drift < np.inf:
        raise ValueError(f"drift must be a number of at least 0, got {drift!r}")

    rng = np.random.default_rng(random_state)
    rates = np.linspace(low, high, n_actions) * rng.uniform(0.9, 1.1, (n_persons, n_actions))
    persons = np.repeat(np.arange(n_persons), n_sequences)
    segments = [_segments(n_frames, rates[p], stay, rng) for p in persons]
    frames = _Gaussian if emissions == "gaussian" else _Histogram
    source = frames(n_persons, n_actions, d, 1.2 - 0.2 * difficulty, float(drift), rng)
    X, y = [], []
    for person, one in zip(persons, segments, strict=True):
        labels = np.repeat([c for _, _, c in one], [b - a for a, b, _ in one])
        place = np.concatenate([(np.arange(b - a) + 0.5) / (b - a) - 0.5 for a, b, _ in one])
        X.append(source.draw(int(person), labels, place, rng))
        y.append(labels.astype(np.int64))
    return ActionTask(X, y, segments, persons)


def _segments(n: int, rates: np.ndarray, stay: float, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Draw segments that fill ``n`` frames."""
    segments: list[tuple[int, int, int]] = []
    start, action = 0, int(rng.integers(len(rates)))
    while start < n:
        end = min(n, start + 1 + int(rng.poisson(max(rates[action] - 1, 0.0))))
        segments.append((start, end, action))
        if len(rates) > 1 and rng.random() >= stay:
            action = (action + 1 + int(rng.integers(len(rates) - 1))) % len(rates)
        start = end
    return segments


class _Gaussian:
    """Normal frames; the means differ by about 3 standard deviations between actions and 0.6 between persons."""

    def __init__(self, n_persons: int, n_actions: int, d: int, scale: float, drift: float, rng: Any) -> None:
        directions = rng.normal(size=(n_actions, d))
        directions *= 3.0 / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
        means = directions + 0.6 / np.sqrt(d) * rng.normal(size=(n_persons, n_actions, d))
        self.means = means[:, :1] + scale * (means - means[:, :1])
        self.spread = rng.uniform(0.7, 1.3, size=(n_persons, n_actions, 1))
        trend = rng.normal(size=(n_actions, d))
        self.trend = 3.0 * drift * trend / np.maximum(np.linalg.norm(trend, axis=1, keepdims=True), 1e-12)

    def draw(self, person: int, labels: np.ndarray, place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        means = self.means[person, labels] + place[:, None] * self.trend[labels]
        return means + self.spread[person, labels] * rng.normal(size=means.shape)


class _Histogram:
    """Frames as shares of visual words: 30 points, drawn from shared words and words of the action and person."""

    _POINTS = 30

    def __init__(self, n_persons: int, n_actions: int, d: int, scale: float, drift: float, rng: Any) -> None:
        actions = rng.dirichlet(np.full(d, 0.3), size=n_actions)
        persons = rng.dirichlet(np.full(d, 0.3), size=(n_persons, n_actions))
        mixed = 0.5 * rng.dirichlet(np.full(d, 0.3)) + 0.35 * actions + 0.15 * persons
        self.means = mixed[:, :1] + scale * (mixed - mixed[:, :1])
        self.trend = rng.dirichlet(np.full(d, 0.3), size=n_actions)
        self.drift = min(drift, 1.0)

    def draw(self, person: int, labels: np.ndarray, place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        share = self.drift * (place[:, None] + 0.5)
        p = (1 - share) * self.means[person, labels] + share * self.trend[labels]
        return rng.multinomial(self._POINTS, p / p.sum(axis=1, keepdims=True)) / self._POINTS


# ------------------------------------------------------------------------------------------------------- paragraphs


@dataclass(frozen=True)
class ParagraphTask:
    """Documents as sentences, with the start positions of paragraphs; see :func:`make_paragraphs`.

    Attributes
    ----------
    documents : list of lists of str
        The sentences of each document.
    starts : list of int arrays
        The sentences that start a paragraph, the first of them 0.
    names : list of str
        Names of the documents.
    topics : list of int arrays, optional
        The topic of each sentence, if known.
    """

    documents: list[list[str]]
    starts: list[np.ndarray]
    names: list[str]
    topics: list[np.ndarray] | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of sentences of each document."""
        return np.array([len(document) for document in self.documents], np.int64)

    def __len__(self) -> int:
        return len(self.documents)


def make_paragraphs(
    n_documents: int = 20,
    n_paragraphs: int | tuple[int, int] = (6, 10),
    n_sentences: int | tuple[int, int] = (3, 6),
    n_words: int | tuple[int, int] = (6, 12),
    *,
    n_topics: int = 8,
    topic_share: float = 0.5,
    cue_share: float = 0.0,
    vocabulary: int = 400,
    random_state: int | np.random.Generator | None = 0,
) -> ParagraphTask:
    """Draw documents whose paragraphs change from topic to topic.

    A single sentence carries little information about its position: with a small ``topic_share``, two neighbours may
    share no topic word. The cues are properties of whole paragraphs, which have one topic and similar lengths.
    ``cue_share`` adds cues for a classifier of single sentences: first sentences that begin with a special word.

    Parameters
    ----------
    n_documents : int, default=20
    n_paragraphs, n_sentences, n_words : int or (low, high)
        Paragraphs per document, sentences per paragraph, words per sentence; for a pair uniform, both ends included.
    n_topics : int, default=8
        Number of topics; each has 30 words of its own.
    topic_share : float, default=0.5
        Probability that a word belongs to the topic.
    cue_share : float, default=0.0
        Probability that the first sentence of a paragraph begins with one of three words that begin no other sentence.
    vocabulary : int, default=400
        Number of words shared by all topics, with frequencies by Zipf's law.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same documents.

    Returns
    -------
    task : ParagraphTask

    Examples
    --------
    >>> from mercer.datasets import make_paragraphs
    >>> task = make_paragraphs(n_documents=3, n_paragraphs=4, n_sentences=5)
    >>> task.starts[0]
    array([ 0,  5, 10, 15])
    >>> task.documents[0][0][0].isupper(), task.documents[0][0][-1]
    (True, '.')
    """
    check_count("n_documents", n_documents, 0)
    paragraphs = _range("n_paragraphs", n_paragraphs)
    sentences = _range("n_sentences", n_sentences)
    sizes = _range("n_words", n_words)
    if check_count("n_topics", n_topics) == 1 and paragraphs[1] > 1:
        raise ValueError("n_topics must be at least 2: neighbouring paragraphs differ in topic")
    _check_share("topic_share", topic_share)
    _check_share("cue_share", cue_share)
    check_count("vocabulary", vocabulary)

    rng = np.random.default_rng(random_state)
    lexicon = _lexicon(vocabulary + n_topics * _TOPIC_WORDS + len(_OPENERS), rng)
    shared, own = lexicon[:vocabulary], lexicon[vocabulary : vocabulary + n_topics * _TOPIC_WORDS]
    openers = lexicon[len(lexicon) - len(_OPENERS) :]
    zipf = 1.0 / np.arange(1, vocabulary + 1)
    zipf /= zipf.sum()
    documents, starts, topics = [], [], []
    for _ in range(n_documents):
        plan, topic = [], int(rng.integers(n_topics))
        for _ in range(int(rng.integers(paragraphs[0], paragraphs[1] + 1))):
            plan += [(topic, i == 0) for i in range(int(rng.integers(sentences[0], sentences[1] + 1)))]
            topic = (topic + 1 + int(rng.integers(max(n_topics - 1, 1)))) % n_topics
        document = []
        for topic, first in plan:
            size = int(rng.integers(sizes[0], sizes[1] + 1))
            of_topic = own[topic * _TOPIC_WORDS + rng.integers(_TOPIC_WORDS, size=size)]
            chosen = np.where(rng.random(size) < topic_share, of_topic, rng.choice(shared, size=size, p=zipf))
            if rng.random() < cue_share and first:
                chosen[0] = openers[int(rng.integers(len(_OPENERS)))]
            document.append(" ".join(chosen).capitalize() + ".")
        documents.append(document)
        starts.append(np.flatnonzero([first for _, first in plan]).astype(np.int64))
        topics.append(np.array([topic for topic, _ in plan], np.int64))
    return ParagraphTask(documents, starts, [f"document {i}" for i in range(n_documents)], topics)


_TOPIC_WORDS = 30
_OPENERS = range(3)


def _lexicon(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``n`` different pronounceable words."""
    onsets, vowels = [*"bdfgklmnprstvz", "br", "st", "tr", "pl", "sh"], [*"aeiou", "ai", "ou"]
    words: dict[str, None] = {}
    while len(words) < n:
        k = int(rng.integers(2, 4))
        words["".join(a + b for a, b in zip(rng.choice(onsets, k), rng.choice(vowels, k), strict=True))] = None
    return np.array(list(words), dtype=object)


def _range(name: str, value: Any) -> tuple[int, int]:
    low, high = value if isinstance(value, tuple) else (value, value)
    if check_count(name, low) > check_count(name, high):
        raise ValueError(f"{name} must be a number, or a pair low <= high, got {value!r}")
    return int(low), int(high)


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")


# ------------------------------------------------------------------------------------------------------- real prose

_RULE = re.compile(r"([*=\-~^\"'#+])\1{2,}\s*$")
_ITEM = re.compile(r"(?:[*•-]|\d+[.)]|\(?[a-z][.)]|\[\d+\]|\.\.)\s")
_NOTE = re.compile(r"(?:New|Changed|Deprecated|Removed|Added)\s(?:in|since)\sversion", re.IGNORECASE)
_BEGINS = re.compile(r"[\"'“‘(*]*[A-Z]|[\"‘“*]+\w")
_ENDS = re.compile(r"[.?!:][\"'”’)*]*$")
_PROSE = re.compile(r"[\w\s,.;:'’‘“”\"()*?!—–-]")


def load_topics_prose(min_sentences: int = 8) -> ParagraphTask:
    """Load English prose distributed with Python: the texts of ``pydoc_data.topics``, with their paragraphs.

    Blank lines separate paragraphs. The loader keeps paragraphs of prose: at least eight words, beginning with a
    capital or a quotation mark and ending with a full stop, question mark, exclamation mark or colon, with few symbols
    and with whole words of letters. This excludes headings, code, grammars, tables, list items, footnotes and version
    notes. Indented descriptions are treated like other paragraphs. A paragraph shared by several topics is kept only in
    the longest topic, so no paragraph occurs twice.

    The texts differ slightly between versions of Python.

    Parameters
    ----------
    min_sentences : int, default=8
        Topics with fewer sentences are excluded.

    Returns
    -------
    task : ParagraphTask
        Sentences by :func:`mercer.segmentation.split_sentences`.

    Examples
    --------
    >>> from mercer.datasets import load_topics_prose
    >>> prose = load_topics_prose()
    >>> len(prose) > 20, all(starts[0] == 0 for starts in prose.starts)
    (True, True)
    """
    from pydoc_data.topics import topics

    check_count("min_sentences", min_sentences)
    seen: set[str] = set()
    documents, starts, names = [], [], []
    for name, text in sorted(topics.items(), key=lambda item: (-len(item[1]), item[0])):
        paragraphs = [p for p in _prose_paragraphs(text) if p not in seen]
        seen.update(paragraphs)
        split = [split_sentences(paragraph) for paragraph in dict.fromkeys(paragraphs)]
        if sum(map(len, split)) < min_sentences:
            continue
        ends = np.cumsum([len(sentences) for sentences in split])
        documents.append([sentence for sentences in split for sentence in sentences])
        starts.append(np.concatenate([[0], ends[:-1]]).astype(np.int64))
        names.append(name)
    order = np.argsort(names)
    return ParagraphTask([documents[i] for i in order], [starts[i] for i in order], [names[i] for i in order])


def _prose_paragraphs(text: str) -> list[str]:
    """Return the prose blocks of a text, each on one line."""
    paragraphs = []
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.strip("\n").split("\n")
        if any(_RULE.match(line.strip()) or line.lstrip().startswith(("|", "+", ">")) for line in lines):
            continue  # a heading, a table, an example
        # Lines broken at a hyphen are joined without a space: "post-" + "mortem".
        joined = re.sub(r"(?<=\w-)\n\s*(?=\w)", "", block.strip())
        joined = re.sub(r"\s*\[\d+\]", "", " ".join(joined.split()))  # references to footnotes
        if _is_prose(joined) and _same_indent(lines):
            paragraphs.append(joined)
    return paragraphs


def _same_indent(lines: list[str]) -> bool:
    return len({len(line) - len(line.lstrip()) for line in lines}) == 1


def _is_prose(text: str) -> bool:
    if _ITEM.match(text) or _NOTE.match(text.lstrip("*")) or not _BEGINS.match(text) or not _ENDS.search(text):
        return False
    tokens = text.split()
    spelled = sum(re.fullmatch(r"[A-Za-z]+(?:['’-][A-Za-z]+)*[.,;:?!]?", token) is not None for token in tokens)
    return len(tokens) >= 8 and spelled >= 0.6 * len(tokens) and len(_PROSE.findall(text)) >= 0.93 * len(text)
