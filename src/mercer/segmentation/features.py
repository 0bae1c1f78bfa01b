"""Feature packs: frames with statistics of their segments, and sentences with the features of paragraphs.

:class:`SegmentStatistics` takes feature vectors as they are. :class:`ParagraphFeatures` takes sentences. Boundary
features describe the first position of a segment. Frame features enter through the sum, mean or variance over a
segment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils.validation import check_is_fitted

from mercer import _core
from mercer._state.saved import Fields, Floats, Nested, Optional, Strings
from mercer._validation import check_choice, check_count
from mercer.data.features import FeatureIndex
from mercer.data.prose import words
from mercer.data.sequences import Sequences
from mercer.segmentation._packs import (
    STATISTICS,
    FeaturePack,
    MinMaxRescaler,
    SegmentFeatures,
    bow_rescale,
    check_statistics,
    segment_statistics,
)
from mercer.segmentation.language import NgramModel

__all__ = [
    "STATISTICS",
    "FeaturePack",
    "MinMaxRescaler",
    "ParagraphFeatures",
    "SegmentFeatures",
    "SegmentStatistics",
    "bow_rescale",
    "segment_statistics",
]


# ------------------------------------------------------------------------------------------------------------- frames


class SegmentStatistics(FeaturePack):
    """Features of frames: statistics of whole segments, and features around their starts.

    Frames h_t are used unchanged. The boundary features of a start at t are the concatenation of

    - ``start``: the constant 1;
    - ``frame[o]``: h_{t+o} for the offsets o of a window centred on t, with the nearest frame beyond the ends;
    - ``step``: the mean of h_t .. h_{t+c−1} minus the mean of h_{t−c} .. h_{t−1}, its absolute values, and
      ``step_norm``, its Euclidean norm; 0 at the first position.

    Parameters
    ----------
    mean, variance, length : bool, default=True
        Statistics of the frames of a segment.
    sum : bool, default=False
        The sum of the frames; a model with only the sum is a chain of frames.
    window : int, default=3
        Width of the window of frames, odd; 1 uses only the frame at the start, 0 none.
    contrast : int, default=5
        c: number of frames on either side that ``step`` compares; 0 disables it.

    Attributes
    ----------
    n_features_in_ : int
        Features of a frame.

    References
    ----------
    .. [Shi2011b] Q. Shi, L. Cheng, L. Wang and A. Smola. Human action segmentation and recognition using discriminative
       semi-Markov models. International Journal of Computer Vision 93, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.segmentation import SegmentStatistics
    >>> frames = np.array([[0.0], [0.0], [3.0], [3.0]])
    >>> features = SegmentStatistics(window=1, contrast=2).fit_transform([frames])
    >>> features.statistics
    ('mean', 'variance', 'length')
    >>> features.boundary_names
    ('start', 'frame[0]:0', 'step:0', '|step|:0', 'step_norm')
    >>> features.boundaries[0][:, -1]
    array([0. , 1.5, 3. , 1.5])
    """

    def __init__(
        self,
        mean: bool = True,
        variance: bool = True,
        length: bool = True,
        *,
        sum: bool = False,
        window: int = 3,
        contrast: int = 5,
    ) -> None:
        self.mean = mean
        self.variance = variance
        self.length = length
        self.sum = sum
        self.window = window
        self.contrast = contrast

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the statistics chosen."""
        return tuple(name for name in STATISTICS if getattr(self, name))

    def _fit(self, X: Any) -> SegmentFeatures:
        if check_count("window", self.window, 0) and self.window % 2 == 0:
            raise ValueError(f"window must be odd, so that it has a centre, or 0, got {self.window!r}")
        check_count("contrast", self.contrast, 0)
        frames = _as_sequences(X)
        self.n_features_in_ = frames.n_features
        return self._features(frames)

    def transform(self, X: Any) -> SegmentFeatures:
        """Return the frames and boundary features of sequences.

        Parameters
        ----------
        X : list of arrays of shape (T, d), list of sparse matrices, or Sequences

        Returns
        -------
        features : SegmentFeatures
        """
        check_is_fitted(self)
        frames = _as_sequences(X)
        if frames.n_features != self.n_features_in_:
            raise ValueError(f"X has {frames.n_features} features, but the pack was fitted to {self.n_features_in_}")
        return self._features(frames)

    def _features(self, frames: Sequences) -> SegmentFeatures:
        h = frames.matrix()
        h = h if isinstance(h, np.ndarray) else csr_array(h)
        begin, end = _bounds(frames.offsets - frames.offsets[0])
        here = np.arange(len(begin))
        names = [str(j) for j in range(frames.n_features)] if frames.index is None else frames.index.names()
        blocks: list[Any] = [np.ones((len(here), 1))]
        columns = ["start"]
        half = self.window // 2
        for o in range(-half, half + 1) if self.window else ():
            blocks.append(h[np.clip(here + o, begin, end - 1)])
            columns += [f"frame[{o:+d}]:{name}" if o else f"frame[0]:{name}" for name in names]
        if self.contrast:
            first = here == begin
            after = _window_means(here, np.minimum(here + self.contrast, end))
            before = _window_means(np.where(first, here, np.maximum(here - self.contrast, begin)), here + first)
            step = _keep(~first) @ (after @ h - before @ h)
            norm = np.sqrt(np.asarray((step * step).sum(axis=1), dtype=float)).reshape(-1, 1)
            blocks += [step, abs(step), norm]
            columns += [f"step:{name}" for name in names] + [f"|step|:{name}" for name in names] + ["step_norm"]
        stacked = _beside(blocks, sparse=not isinstance(h, np.ndarray))
        offsets = frames.offsets - frames.offsets[0]
        return SegmentFeatures(frames, Sequences(stacked, offsets), self.statistics, tuple(names), tuple(columns))


def _as_sequences(X: Any) -> Sequences:
    return X if isinstance(X, Sequences) else Sequences.from_matrices(X)


def _bounds(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each stacked position the first one of its sequence, and the one after its last."""
    lengths = np.diff(offsets)
    return np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)


def _window_means(start: np.ndarray, end: np.ndarray) -> csr_array:
    """A matrix whose product with stacked rows has the means of the rows start[t] .. end[t] − 1."""
    sizes = end - start
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - start, sizes)
    return csr_array((np.repeat(1.0 / sizes, sizes), indices, indptr), shape=(len(start), len(start)))


def _keep(mask: np.ndarray) -> csr_array:
    """A matrix whose product with stacked rows has zeros where the mask is False."""
    n = len(mask)
    return csr_array((mask.astype(float), np.arange(n), np.arange(n + 1)), shape=(n, n))


def _beside(blocks: list[Any], sparse: bool) -> Any:
    return hstack([csr_array(block) for block in blocks], format="csr") if sparse else np.hstack(blocks)


# ---------------------------------------------------------------------------------------------------------- sentences

_MARKS = {
    ".": "stop",
    "?": "question",
    "!": "exclamation",
    ":": "colon",
    ";": "semicolon",
    ",": "comma",
    "…": "ellipsis",
}
_CLOSING = "\"'”’»›)]}*_ "
_QUOTE_OPEN, _QUOTE_CLOSE, _QUOTE_EITHER = "“„«", "”»", '"'
_QUOTE = re.compile(f"[{_QUOTE_OPEN}{_QUOTE_CLOSE}{_QUOTE_EITHER}]")
_CAPITALISED = re.compile(r"(?<![\w'’-])[^\W\d_]\w*")

_CUES = {
    "addition": "also moreover furthermore additionally besides likewise similarly again|in addition|as well",
    "contrast": "but however yet nevertheless still instead although though|on the other hand|in contrast|even so",
    "cause": "therefore thus hence so consequently accordingly because since|as a result|for this reason",
    "time": "now then later meanwhile soon finally suddenly next once when after before|at last|one day|in the end",
    "example": "see note consider|for example|for instance|in particular|in fact|that is",
    "reference": "it this that these those such he she they his her their its him them",
}
"""Words and phrases that open a sentence and say how it goes on from what stood before."""

_CUE_PATTERNS = {
    name: re.compile(rf"\W*(?:{'|'.join([*single.split(), *phrases])})(?![\w'’-])", re.IGNORECASE)
    for name, text in _CUES.items()
    for single, *phrases in [text.split("|")]
}

_NUMERIC = (
    "length",
    "position",
    "capitals",
    "overlap_next",
    "overlap_previous",
    "pair_product",
    "cosine_previous",
    "cosine_windows",
    "entropy",
    "quotes_previous",
    "quotes",
    "quotation_open",
)
_ONE_OF = tuple(
    f"{which}={mark}" for which in ("final", "final_previous") for mark in (*_MARKS.values(), "none")
) + tuple(f"cue={name}" for name in _CUES)
_FRAMES = ("length", "cosine_previous", "entropy", "surprisal")
_SEGMENTS = ("length", "cosine_previous", "cosine_next", "entropy")
_PAIRS = ("cosine", "cosine_weighted", "length_ratio", "entropy_step")
_KINDS = ("first", "word", "word_before", "word_after")


class ParagraphFeatures(FeaturePack):
    """Features of sentences for finding paragraphs.

    With B_t the bag of words of sentence t, counted in lower case, the **boundary features** of a paragraph that
    starts at sentence t of N are

    - ``start``: the constant 1;
    - ``length``: words; ``position``: t / N; ``capitals``: words that begin with a capital;
    - ``overlap_next``, ``overlap_previous``: 2 n(W_t ∩ W_u) / (n(W_t) + n(W_u)), n the sizes of the sets W of
      words, u = t + 1 or t − 1;
    - ``pair_product``: ⟨B_{t−1} + B_t, B_t + B_{t+1}⟩; ``cosine_previous``: cos(B_{t−1}, B_t); ``cosine_windows``: the
      cosine of the words of the ``window`` sentences before t with those of the ``window`` sentences from t on,
      weighted by rarity: log((1 + n) / (1 + n_w)) for a word that n_w of the n sentences of training hold;
    - ``entropy``: mean surprisal of the words under an n-gram model (:class:`NgramModel`), in nats;
    - ``quotes_previous``, ``quotes``: half the number of double quotation marks of the sentences t − 1 and t;
      ``quotation_open``: whether t begins inside a quotation;
    - ``final=…``, ``final_previous=…``: the punctuation mark that ends the sentences t and t − 1; ``cue=…``: whether t
      opens with a word or phrase that contrasts, adds, gives a cause, a time, an example, or refers back;
    - with ``words``: the first word, and the bags B_t (``word=…``), B_{t−1} + B_t (``word_before=…``) and B_t + B_{t+1}
      (``word_after=…``), each divided by ⟨B, B⟩ (or ‖B‖: ``bow_power=1``).

    The **frame features**, whose statistics over a paragraph are used, are ``length``, ``cosine_previous``,
    ``entropy``, ``surprisal`` (the sum of surprisals in running text) and ``topic0`` …: the bag of words weighted by
    rarity, scaled to norm 1 and hashed with signs into ``n_topics`` columns. Their variances, summed, are 1 − ‖mean‖²
    but for collisions: the dissimilarity of the sentences of a paragraph.

    With ``max_length`` there are also **features of whole segments** [s, e) (``SegmentFeatures.segments``):
    ``length``; ``cosine_previous`` and ``cosine_next``, of the paragraph's bag of words with the sentences s − 1 and
    e; ``entropy``, the mean surprisal of its words, read on over sentence ends. They take O(max_length) for each
    sentence, by prefix sums.

    With ``pairs`` there are **features of two whole neighbouring segments** as well (``SegmentFeatures.pairs``):
    ``cosine`` of their bags of words, ``cosine_weighted`` of those weighted by rarity, ``length_ratio``, the shorter
    length over the longer one, and ``entropy_step``, the absolute difference of their entropies. They take
    O(max_length²) for each sentence, and so does the search over segmentations.

    Counts, cosines and entropies are rescaled to [0, 1] by the ranges of training (:class:`MinMaxRescaler`); before
    that, a feature that needs a sentence beyond the document is 0.

    Parameters
    ----------
    words : bool, default=True
        Features of single words. Without them there are some 30 dense columns.
    n_bits : int, default=0
        0: a column for each word of the training documents; else words are hashed into ``2**n_bits`` columns.
    min_count : int, default=2
        Words that are rarer in training have no column; of no effect with ``n_bits``.
    bow_power : {1, 2}, default=2
        Power of the norm that bags of words are divided by.
    order : int, default=2
        Order of the n-gram model.
    unit : {"word", "character"}, default="word"
        Symbols of the n-gram model.
    window : int, default=3
        Sentences on either side for ``cosine_windows``.
    n_topics : int, default=16
        Columns of the hashed bag of words among the frame features; 0 leaves it out.
    max_length : int, optional
        Maximum length of segments with features of whole segments. None: no such features.
    pairs : bool, default=False
        Features of two neighbouring segments; needs ``max_length``.
    statistics : tuple of str, default=("mean", "variance", "length")
        Statistics of the frame features.
    cv : int, default=5
        The surprisals of training sentences come from models of the other documents, in this number of folds: a model
        has lower surprisal on its training text. ``fit(X).transform(X)`` therefore differs from ``fit_transform(X)``;
        train on the latter.

    Attributes
    ----------
    language_ : NgramModel
        The model of all training documents.
    words_ : list of str
        The words of the training documents.
    weights_ : array
        Their weights by rarity.

    References
    ----------
    .. [Shi2007] Q. Shi, Y. Altun, A. Smola and S. V. N. Vishwanathan. Semi-Markov models for sequence segmentation.
       EMNLP-CoNLL, 2007.

    Examples
    --------
    >>> from mercer.segmentation import ParagraphFeatures
    >>> documents = [["The cat sat.", "The cat slept.", "But dogs bark."], ["Dogs bark.", "Cats do not."]]
    >>> pack = ParagraphFeatures(words=False, n_topics=0)
    >>> features = pack.fit_transform(documents)
    >>> features.frame_names
    ('length', 'cosine_previous', 'entropy', 'surprisal')
    >>> features.boundaries[0][:, features.boundary_names.index("cue=contrast")]
    array([0., 0., 1.])
    """

    language_: NgramModel
    index_: FeatureIndex
    words_: list[str]
    weights_: np.ndarray

    def __init__(
        self,
        *,
        words: bool = True,
        n_bits: int = 0,
        min_count: int = 2,
        bow_power: int = 2,
        order: int = 2,
        unit: str = "word",
        window: int = 3,
        n_topics: int = 16,
        max_length: int | None = None,
        pairs: bool = False,
        statistics: tuple[str, ...] = ("mean", "variance", "length"),
        cv: int = 5,
    ) -> None:
        self.words = words
        self.n_bits = n_bits
        self.min_count = min_count
        self.bow_power = bow_power
        self.order = order
        self.unit = unit
        self.window = window
        self.n_topics = n_topics
        self.max_length = max_length
        self.pairs = pairs
        self.statistics = statistics
        self.cv = cv

    def _fit(self, X: Any) -> SegmentFeatures:
        self._check()
        corpus = _Corpus(X)
        if not corpus.n:
            raise ValueError("X has no sentence to learn from")
        self._learn_words(corpus)
        corpus.weigh(self.words_, self.weights_)
        tokens = corpus.symbols(self.unit)
        self.language_ = NgramModel(self.order, unit=self.unit).fit_tokens(tokens)
        surprisal = self._held_out_surprisals(corpus, tokens)
        self.numeric_ = MinMaxRescaler().fit(_numeric(corpus, surprisal, self.window))
        self.frames_ = MinMaxRescaler().fit(_frames(corpus, surprisal))
        if self.max_length is not None:
            tables = _segment_tables(corpus, surprisal, self.max_length)
            self.segments_ = MinMaxRescaler().fit(np.concatenate([t[_inside(t)] for t in tables]))
            if self.pairs:
                pairs = [t[_both_inside(t)] for t in _pair_tables(corpus, tables)]
                if not sum(map(len, pairs)):
                    raise ValueError("pairs=True needs a document of two sentences or more")
                self.pairs_ = MinMaxRescaler().fit(np.concatenate(pairs))
        return self._features(corpus, surprisal)

    def transform(self, X: Any) -> SegmentFeatures:
        """Return the features of documents.

        Parameters
        ----------
        X : list of lists of sentences, or of :class:`Document`

        Returns
        -------
        features : SegmentFeatures
        """
        check_is_fitted(self)
        corpus = _Corpus(X)
        corpus.weigh(self.words_, self.weights_)
        return self._features(corpus, _Surprisal.of(self.language_, corpus, corpus.symbols(self.unit)))

    def _check(self) -> None:
        check_count("min_count", self.min_count)
        check_choice("bow_power", self.bow_power, (1, 2))
        check_count("order", self.order, 0)
        check_choice("unit", self.unit, ("word", "character"))
        check_count("window", self.window)
        check_count("n_topics", self.n_topics, 0)
        if self.max_length is not None:
            check_count("max_length", self.max_length)
        elif self.pairs:
            raise ValueError("pairs=True needs max_length: the longest segment with features of its own")
        check_statistics("statistics", self.statistics)
        check_count("cv", self.cv, 2)

    def _learn_words(self, corpus: _Corpus) -> None:
        times = np.bincount(corpus.bags.indices, minlength=len(corpus.vocabulary))  # sentences that hold a word
        self.words_ = corpus.vocabulary
        self.weights_ = np.log((1 + corpus.n) / (1 + times))
        self.index_ = FeatureIndex(self.n_bits)
        if not self.words or self.n_bits:
            return
        counts = Counter(chain.from_iterable(corpus.tokens))
        firsts = Counter(tokens[0] for tokens in corpus.tokens if tokens)
        names = [f"first={word}" for word, count in firsts.items() if count >= self.min_count]
        kept = [word for word, count in counts.items() if count >= self.min_count]
        names += [f"{kind}={word}" for kind in _KINDS[1:] for word in kept]
        if names:
            self.index_.learn([[names]])

    def _held_out_surprisals(self, corpus: _Corpus, tokens: list[list[str]]) -> _Surprisal:
        """Surprisals of each sentence by a model that has not seen its document (its part, if there is only one)."""
        n_groups = len(corpus.offsets) - 1
        if n_groups > 1:
            group = np.repeat(np.arange(n_groups), np.diff(corpus.offsets))
        else:
            n_groups = min(self.cv, corpus.n)
            group = np.arange(corpus.n) * n_groups // corpus.n
        folds = min(self.cv, n_groups)
        if folds < 2:
            return _Surprisal.of(self.language_, corpus, tokens)
        surprisals = _Surprisal(*np.zeros((3, corpus.n)))
        for fold in range(folds):
            inside = group % folds == fold
            others = [sentence for sentence, held in zip(tokens, inside, strict=True) if not held]
            model = NgramModel(self.order, unit=self.unit).fit_tokens(others)
            part = _Surprisal.of(model, corpus, tokens)
            for whole, piece in zip(surprisals, part, strict=True):
                whole[inside] = piece[inside]
        return surprisals

    def _features(self, corpus: _Corpus, surprisal: _Surprisal) -> SegmentFeatures:
        blocks: list[Any] = [
            np.ones((corpus.n, 1)),
            self.numeric_.transform(_numeric(corpus, surprisal, self.window)),
            _one_of(corpus),
        ]
        names = ["start", *_NUMERIC, *_ONE_OF]
        if self.words:
            blocks.append(self._word_columns(corpus))
            names += self.index_.names()
        frames = np.hstack([self.frames_.transform(_frames(corpus, surprisal)), corpus.topics(self.n_topics)])
        tables = pairs = None
        if self.max_length is not None:
            raw = _segment_tables(corpus, surprisal, self.max_length)
            tables = tuple(_scaled(self.segments_, t, _inside(t)) for t in raw)
            if self.pairs:
                pairs = tuple(_scaled(self.pairs_, t, _both_inside(t)) for t in _pair_tables(corpus, raw))
        return SegmentFeatures(
            Sequences(frames, corpus.offsets),
            Sequences(_beside(blocks, sparse=self.words), corpus.offsets),
            tuple(self.statistics),
            (*_FRAMES, *(f"topic{k}" for k in range(self.n_topics))),
            tuple(names),
            tables,
            _SEGMENTS if tables is not None else (),
            pairs,
            _PAIRS if pairs is not None else (),
        )

    def _word_columns(self, corpus: _Corpus) -> csr_array:
        """First words and the three bags of words, in the columns of the index."""
        B = corpus.bags
        bags = {
            "first": corpus.firsts,
            "word": B,
            "word_before": B + corpus.previous @ B,
            "word_after": B + corpus.next @ B,
        }
        total = csr_array((corpus.n, len(self.index_)))
        for kind in _KINDS:
            columns = np.array([self.index_.find(f"{kind}={word}") for word in corpus.vocabulary], np.int64)
            rows = np.flatnonzero(columns >= 0)
            choose = csr_array((np.ones(len(rows)), (rows, columns[rows])), shape=(len(columns), len(self.index_)))
            total = total + bow_rescale(bags[kind] @ choose, self.bow_power)
        return total

    # ------------------------------------------------------------------ model files

    saved = Fields(
        language_=Nested(NgramModel),
        index_=Nested(FeatureIndex),
        words_=Strings(),
        weights_=Floats("words_"),
        numeric_=Nested(MinMaxRescaler),
        frames_=Nested(MinMaxRescaler),
        segments_=Optional(Nested(MinMaxRescaler)),
        pairs_=Optional(Nested(MinMaxRescaler)),
    )

    def _check_state(self) -> None:
        self._check()
        for name, n in self._rescalers().items():
            if getattr(self, f"{name}_").n_features_in_ != n:
                raise ValueError(f"{name}_ must have {n} ranges")

    def _rescalers(self) -> dict[str, int]:
        sizes = {"numeric": len(_NUMERIC), "frames": len(_FRAMES)}
        if self.max_length is not None:
            sizes["segments"] = len(_SEGMENTS)
        return sizes | {"pairs": len(_PAIRS)} if self.pairs else sizes


class _Corpus:
    """Stacked sentences of documents, with their words counted in a vocabulary of their own."""

    def __init__(self, documents: Iterable[Any]) -> None:
        parts = [_sentences(i, document) for i, document in enumerate(documents)]
        self.sentences: list[str] = list(chain.from_iterable(parts))
        self.n = len(self.sentences)
        self.offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        self.tokens = [words(sentence) for sentence in self.sentences]
        self.lengths = np.array([len(tokens) for tokens in self.tokens], np.int64)
        ids: dict[str, int] = {}
        stacked = np.array([ids.setdefault(w, len(ids)) for tokens in self.tokens for w in tokens], np.int64)
        self.vocabulary = list(ids)
        rows = np.repeat(np.arange(self.n), self.lengths)
        shape = (self.n, len(ids))
        self.bags = csr_array((np.ones(len(stacked)), (rows, stacked)), shape=shape)  # equal entries are summed
        self.bags.sum_duplicates()
        filled = np.flatnonzero(self.lengths)
        first = (np.cumsum(self.lengths) - self.lengths)[filled]
        self.firsts = csr_array((np.ones(len(filled)), (filled, stacked[first])), shape=shape)
        self.begin, self.end = _bounds(self.offsets)
        here = np.arange(self.n)
        self.has_previous, self.has_next = here > self.begin, here < self.end - 1
        self.previous = self._shift(-1, self.has_previous)
        self.next = self._shift(1, self.has_next)

    def weigh(self, known: list[str], weights: np.ndarray) -> None:
        """Bags of words weighted by rarity; a word that training has not seen is as rare as can be."""
        table = dict(zip(known, weights.tolist(), strict=True))
        rarest = max(table.values(), default=1.0)
        factors = np.array([table.get(word, rarest) for word in self.vocabulary], dtype=float)
        self.weighted = self.bags.copy()
        self.weighted.data *= factors[self.weighted.indices]

    def _shift(self, by: int, mask: np.ndarray) -> csr_array:
        rows = np.flatnonzero(mask)
        return csr_array((np.ones(len(rows)), (rows, rows + by)), shape=(self.n, self.n))

    def symbols(self, unit: str) -> list[list[str]]:
        """The symbols of each sentence for a language model."""
        return self.tokens if unit == "word" else [list(sentence) for sentence in self.sentences]

    def topics(self, n: int) -> np.ndarray:
        """Weighted bags of words of norm 1, hashed with signs into ``n`` columns."""
        if not n:
            return np.zeros((self.n, 0))
        hashes = np.array([_core.hashing.hash_bytes(word.encode()) for word in self.vocabulary], np.uint64)
        signs = np.where(hashes >> np.uint64(63), -1.0, 1.0)
        columns = (hashes % np.uint64(n)).astype(np.int64)
        projection = csr_array((signs, (np.arange(len(hashes)), columns)), shape=(len(hashes), n))
        return (bow_rescale(self.weighted, 1) @ projection).toarray()


class _Surprisal(NamedTuple):
    """Sums of surprisals of each sentence, read alone and in the running text of its document; sizes in symbols."""

    alone: np.ndarray
    running: np.ndarray
    sizes: np.ndarray

    @property
    def entropy(self) -> np.ndarray:
        return _ratio(self.alone, self.sizes)

    @classmethod
    def of(cls, model: NgramModel, corpus: _Corpus, tokens: Sequence[list[str]]) -> _Surprisal:
        sizes = np.array([len(sentence) for sentence in tokens], np.int64)
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        documents = [list(chain.from_iterable(tokens[a:b])) for a, b in pairwise(corpus.offsets.tolist())]
        alone, running = (
            np.bincount(sentence, model.surprisals(streams), minlength=len(sizes)) for streams in (tokens, documents)
        )
        return cls(alone, running, sizes.astype(float))


def _sentences(i: int, document: Any) -> list[str]:
    sentences = getattr(document, "sentences", document)
    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise ValueError(
            f"document {i} must be a list of sentences, got {type(document).__name__}: split text with read_paragraphs"
        )
    listed = list(sentences)
    for sentence in listed:
        if not isinstance(sentence, str):
            raise ValueError(f"document {i} must hold sentences as strings, got {type(sentence).__name__}")
    return listed


def _dots(A: csr_array, B: csr_array) -> np.ndarray:
    """Inner products row by row."""
    return np.asarray(A.multiply(B).sum(axis=1), dtype=float).ravel()


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros_like(above, dtype=float), where=below > 0)


def _cosines(A: csr_array, B: csr_array) -> np.ndarray:
    return _ratio(_dots(A, B), np.sqrt(_dots(A, A) * _dots(B, B)))


def _numeric(corpus: _Corpus, surprisal: _Surprisal, window: int) -> np.ndarray:
    """The features named in ``_NUMERIC``, before rescaling."""
    B = corpus.bags
    before, after = corpus.previous @ B, corpus.next @ B
    sets = B.copy()
    sets.data[:] = 1.0
    kinds = np.asarray(sets.sum(axis=1), dtype=float).ravel()
    shared_before, shared_after = _dots(sets, corpus.previous @ sets), _dots(sets, corpus.next @ sets)
    here = np.arange(corpus.n)
    first = here == corpus.begin
    left = _window_means(
        np.where(first, here, np.maximum(here - window, corpus.begin)), here + first
    )  # at the first sentence a stand-in, put to 0 below
    right = _window_means(here, np.minimum(here + window, corpus.end))
    quotes, is_open = _quotations(corpus)
    columns = {
        "length": corpus.lengths,
        "position": (here - corpus.begin) / np.maximum(corpus.end - corpus.begin, 1),
        "capitals": [sum(w[0].isupper() for w in _CAPITALISED.findall(s)) for s in corpus.sentences],
        "overlap_next": _ratio(2 * shared_after, kinds + corpus.next @ kinds),
        "overlap_previous": _ratio(2 * shared_before, kinds + corpus.previous @ kinds),
        "pair_product": _dots(before + B, B + after),
        "cosine_previous": _cosines(before, B),
        "cosine_windows": np.where(first, 0.0, _cosines(left @ corpus.weighted, right @ corpus.weighted)),
        "entropy": surprisal.entropy,
        "quotes_previous": corpus.previous @ quotes,
        "quotes": quotes,
        "quotation_open": is_open,
    }
    return np.column_stack([np.asarray(columns[name], dtype=float) for name in _NUMERIC])


def _quotations(corpus: _Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of double quotation marks of each sentence, and whether it begins inside a quotation."""
    pairs, is_open = np.zeros(corpus.n), np.zeros(corpus.n)
    state = False
    for t, sentence in enumerate(corpus.sentences):
        state = state and t != corpus.begin[t]
        is_open[t] = state
        marks = _QUOTE.findall(sentence)
        pairs[t] = 0.5 * len(marks)
        for mark in marks:
            state = mark in _QUOTE_OPEN or (mark in _QUOTE_EITHER and not state)
    return pairs, is_open


def _one_of(corpus: _Corpus) -> np.ndarray:
    """The features named in ``_ONE_OF``: final marks and cues."""
    kinds = [*_MARKS.values(), "none"]
    final = np.zeros((corpus.n, len(kinds)))
    for t, sentence in enumerate(corpus.sentences):
        last = sentence.rstrip(_CLOSING)[-1:]
        final[t, kinds.index(_MARKS.get(last, "none"))] = 1.0
    cues = np.array([[p.match(s) is not None for p in _CUE_PATTERNS.values()] for s in corpus.sentences], float)
    return np.hstack([final, corpus.previous @ final, cues.reshape(corpus.n, len(_CUE_PATTERNS))])


def _frames(corpus: _Corpus, surprisal: _Surprisal) -> np.ndarray:
    """The features named in ``_FRAMES``, before rescaling."""
    cosines = _cosines(corpus.previous @ corpus.bags, corpus.bags)
    return np.column_stack([corpus.lengths.astype(float), cosines, surprisal.entropy, surprisal.running])


def _segment_tables(corpus: _Corpus, surprisal: _Surprisal, max_length: int) -> list[np.ndarray]:
    """The features named in ``_SEGMENTS`` of all segments of up to ``max_length`` sentences."""
    return [
        _segment_table(corpus.bags[a:b], surprisal.alone[a:b], surprisal.running[a:b], surprisal.sizes[a:b], max_length)
        for a, b in pairwise(corpus.offsets.tolist())
    ]


def _segment_table(
    B: csr_array, alone: np.ndarray, running: np.ndarray, sizes: np.ndarray, max_length: int
) -> np.ndarray:
    """Table [s, l − 1] of one document, by sums of inner products of sentences up to ``max_length`` apart.

    With S the bag of words of [s, s + l): ‖S‖² grows by ‖B_t‖² + 2 ⟨S, B_t⟩ when sentence t joins, and ⟨S, B_t⟩ is a
    sum of l inner products ⟨B_{t−k}, B_t⟩, k = 1 .. l.
    """
    n = B.shape[0]
    table = np.zeros((n, max_length, len(_SEGMENTS)))
    squares = _dots(B, B)
    words_upto = np.concatenate([[0.0], np.cumsum(sizes)])
    running_upto = np.concatenate([[0.0], np.cumsum(running)])
    backward, forward = np.zeros(n), np.zeros(n)  # ⟨B_t, B_{t−1} + … + B_{t−l}⟩ and ⟨B_t, B_{t+1} + … + B_{t+l}⟩
    norms = np.zeros(n)
    for l in range(1, min(max_length, n) + 1):
        s = np.arange(n - l + 1)
        last, after = s + l - 1, s + l
        norms = norms[: len(s)] + squares[last] + 2 * backward[last]  # backward still covers l − 1 sentences
        apart = _dots(B[: n - l], B[l:])
        backward[l:] += apart
        forward[: n - l] += apart
        table[s, l - 1, 0] = l
        table[s[1:], l - 1, 1] = _ratio(forward[s[1:] - 1], np.sqrt(norms[1:] * squares[s[1:] - 1]))
        table[s[:-1], l - 1, 2] = _ratio(backward[after[:-1]], np.sqrt(norms[:-1] * squares[after[:-1]]))
        surprise = alone[s] + running_upto[after] - running_upto[s + 1]
        table[s, l - 1, 3] = _ratio(surprise, words_upto[after] - words_upto[s])
    return table


def _pair_tables(corpus: _Corpus, tables: list[np.ndarray]) -> list[np.ndarray]:
    """The features named in ``_PAIRS`` of all pairs of neighbouring segments; ``tables`` are those of single ones."""
    bounds = pairwise(corpus.offsets.tolist())
    return [_pair_table(corpus.bags[a:b], corpus.weighted[a:b], t) for (a, b), t in zip(bounds, tables, strict=True)]


def _pair_table(B: csr_array, weighted: csr_array, segments: np.ndarray) -> np.ndarray:
    """Table [t, l − 1, m − 1] of one document.

    Inner products of the bags of [t − l, t) and [t, t + m) are sums of inner products of sentences up to 2 K apart:
    of a K × K table of them at t, summed along both axes.
    """
    n, K, _ = segments.shape
    table = np.zeros((n, K, K, len(_PAIRS)))
    here, sizes = np.arange(n)[:, None], np.arange(1, K + 1)
    before, after = np.maximum(here - sizes, 0), np.broadcast_to(here, (n, K))
    for column, rows in enumerate((B, weighted)):
        gram = _band_products(rows, 2 * K)
        i, j = here - sizes, here + sizes - 1  # sentences t − l and t + m − 1
        known = (i >= 0)[:, :, None] & (j < n)[:, None, :]
        apart = np.where(known, j[:, None, :] - i[:, :, None], 0)
        products = np.where(known, gram[np.maximum(i, 0)[:, :, None], apart], 0.0).cumsum(axis=1).cumsum(axis=2)
        norms = _segment_norms(gram, K)
        length = sizes - 1
        scale = np.sqrt(norms[before, length][:, :, None] * norms[after, length][:, None, :])
        table[..., column] = _ratio(products, scale)
    table[..., 2] = np.minimum.outer(sizes, sizes) / np.maximum.outer(sizes, sizes)
    entropy = segments[..., _SEGMENTS.index("entropy")]
    table[..., 3] = abs(entropy[before, sizes - 1][:, :, None] - entropy[after, sizes - 1][:, None, :])
    table[~_both_inside(table)] = 0.0
    return table


def _band_products(rows: csr_array, width: int) -> np.ndarray:
    """⟨row i, row i + k⟩ for k = 0 … width − 1, one row of the result for each i; 0 beyond the last row."""
    n = rows.shape[0]
    out = np.zeros((n, width))
    for k in range(min(width, n)):
        out[: n - k, k] = _dots(rows[: n - k], rows[k:])
    return out


def _segment_norms(gram: np.ndarray, K: int) -> np.ndarray:
    """‖sum of the rows s … s + l − 1‖², by start s and length l, from products of rows that lie near each other."""
    n = len(gram)
    out, grown = np.zeros((n, K)), np.zeros(n)
    for l in range(1, min(K, n) + 1):
        s = np.arange(n - l + 1)
        joins = sum((gram[s + k, l - 1 - k] for k in range(l - 1)), np.zeros(len(s)))
        grown = grown[: len(s)] + gram[s + l - 1, 0] + 2 * joins
        out[s, l - 1] = grown
    return out


def _both_inside(table: np.ndarray) -> np.ndarray:
    """Which pairs of neighbouring segments lie within the document."""
    n, K = table.shape[:2]
    here, sizes = np.arange(n)[:, None], np.arange(1, K + 1)
    return (here - sizes >= 0)[:, :, None] & (here + sizes <= n)[:, None, :]


def _scaled(rescaler: MinMaxRescaler, table: np.ndarray, inside: np.ndarray) -> np.ndarray:
    out = np.zeros_like(table)
    out[inside] = rescaler.transform(table[inside])
    return out


def _inside(table: np.ndarray) -> np.ndarray:
    """Which segments of a table end within the document."""
    n, max_length, _ = table.shape
    return np.arange(n)[:, None] + np.arange(1, max_length + 1) <= n
