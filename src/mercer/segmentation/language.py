"""A small n-gram model of words or characters, for entropies of sentences.

Interpolated Witten-Bell smoothing down to the uniform distribution over the V symbols known (the unknown symbol is one
of them):

    p_0(w) = 1 / V,   p_k(w | h) = (c(h, w) + T(h) p_{k−1}(w | h')) / (c(h) + T(h)),

with c the counts of training, T(h) the number of different symbols seen after h (the last k − 1 symbols), h' = h
without its first symbol, and p_k = p_{k−1} where h was never seen. Sums over w are 1. The entropy of a sentence is
−(1/n) Σ_i log p(w_i | w_{<i}), in nats; under the uniform model (order 0) it is log V (12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, Ints, ListOf, Saved, Strings
from mercer._validation import check_choice, check_count, decreases, used_examples
from mercer.data.prose import words

__all__ = ["NgramModel"]

_UNKNOWN, _START = 0, 1


class NgramModel(Saved, Estimator):
    """A smoothed n-gram model of words or characters.

    Parameters
    ----------
    order : int, default=2
        Longest n-gram: 2 looks one symbol back; 0 is the uniform distribution over the symbols of training.
    unit : {"word", "character"}, default="word"
        Symbols. Words are in lower case, without punctuation.
    min_count : int, default=1
        Symbols that are rarer in training count as unknown.

    Attributes
    ----------
    symbols_ : list of str
        The symbols known, sorted.
    n_symbols_ : int
        V: these and the unknown one.

    Examples
    --------
    >>> from mercer.segmentation import NgramModel
    >>> model = NgramModel(order=2).fit(["the cat sat", "the cat ran", "a dog ran"])
    >>> round(model.entropy("the cat sat"), 3), round(model.entropy("sat the dog"), 3)
    (0.74, 2.617)
    """

    symbols_: list[str]

    saved = Fields(
        symbols_=Strings(),
        _contexts=ListOf(Ints(None)),
        _grams=ListOf(Ints(None), "order"),
        _counts=ListOf(Floats(None, low=0.0), "order"),
    )

    def __init__(self, order: int = 2, *, unit: str = "word", min_count: int = 1) -> None:
        self.order = order
        self.unit = unit
        self.min_count = min_count

    def fit(self, sentences: Iterable[str], y: Any = None, sample_weight: Any = None) -> NgramModel:
        """Count the n-grams of sentences.

        Parameters
        ----------
        sentences : list of str
        y : ignored
        sample_weight : array of a number for each sentence, optional
            At least 0: a sentence of weight 2 counts as two, one of weight 0 is left out.

        Returns
        -------
        self : NgramModel
        """
        if isinstance(sentences, str):
            raise ValueError("sentences must be a list of strings, got one string")
        return self.fit_tokens([self.tokens(sentence) for sentence in sentences], sample_weight)

    def tokens(self, sentence: str) -> list[str]:
        """Return the symbols of a sentence."""
        if not isinstance(sentence, str):
            raise ValueError(f"sentences must be strings, got {type(sentence).__name__}")
        return words(sentence) if self.unit == "word" else list(sentence)

    def fit_tokens(self, streams: Sequence[Sequence[str]], sample_weight: Any = None) -> NgramModel:
        """Fit from lists of symbols, each a separate stream."""
        order = check_count("order", self.order, 0)
        check_choice("unit", self.unit, ("word", "character"))
        least = check_count("min_count", self.min_count)
        used, weights = used_examples(sample_weight, len(streams))
        if used is None or weights is None:
            counts: Any = Counter(chain.from_iterable(streams))
            weights = np.ones(len(streams))
        else:
            streams, counts = [streams[i] for i in used.tolist()], Counter()
            for stream, weight in zip(streams, weights.tolist(), strict=True):
                for symbol in stream:
                    counts[symbol] += weight
        self.symbols_ = sorted(symbol for symbol, count in counts.items() if count >= least)
        self._number()
        ids, place = self._encode(streams)
        real = np.flatnonzero(place >= self._pads)
        of_real = np.repeat(weights, [len(stream) for stream in streams])
        window = np.zeros(len(ids), np.int64)  # id of the last k − 1 symbols up to each position
        self._contexts: list[np.ndarray] = []
        self._grams: list[np.ndarray] = []
        self._counts: list[np.ndarray] = []
        for k in range(1, order + 1):
            context = window[real - 1] if k > 1 else np.zeros(len(real), np.int64)
            keys, gram = np.unique(context * self._base + ids[real], return_inverse=True)
            self._grams.append(keys)
            self._counts.append(np.bincount(gram.ravel(), of_real, minlength=len(keys)))
            if k < order:
                longer = np.concatenate([[-1], window[:-1]]) if k > 1 else window
                longer = longer * self._base + ids
                whole = place >= k - 1
                self._contexts.append(np.unique(longer[whole]))
                window = np.where(whole, _find(self._contexts[-1], longer), -1)
        self._sum_contexts()
        return self

    @property
    def n_symbols_(self) -> int:
        """Size of the distribution: known symbols and the unknown one."""
        return len(self.symbols_) + 1

    def surprisals(self, streams: Sequence[Sequence[str]]) -> np.ndarray:
        """Return −log p of every symbol given those before it in its stream, one stream after the other, in nats."""
        check_is_fitted(self, "symbols_")
        ids, place = self._encode(streams)
        real = np.flatnonzero(place >= self._pads)
        p = np.full(len(real), 1.0 / self.n_symbols_)
        window = np.zeros(len(ids), np.int64)
        for k in range(1, self.order + 1):
            context = window[real - 1] if k > 1 else np.zeros(len(real), np.int64)
            seen = np.where(context >= 0, self._totals[k - 1][context], 0)
            kinds = np.where(context >= 0, self._types[k - 1][context], 0)
            at = np.where(context >= 0, _find(self._grams[k - 1], context * self._base + ids[real]), -1)
            count = np.where(at >= 0, self._counts[k - 1][at], 0) if len(self._counts[k - 1]) else np.zeros(len(real))
            p = np.divide(count + kinds * p, seen + kinds, out=p, where=seen > 0)
            if k < self.order:
                shorter = np.concatenate([[-1], window[:-1]]) if k > 1 else window
                keys = shorter * self._base + ids
                window = np.where((place >= k - 1) & (shorter >= 0), _find(self._contexts[k - 1], keys), -1)
        return -np.log(p)

    def entropy(self, sentence: str) -> float:
        """Return the mean surprisal of the symbols of a sentence, in nats; 0 for a sentence without any."""
        values = self.surprisals([self.tokens(sentence)])
        return float(values.mean()) if len(values) else 0.0

    # ------------------------------------------------------------------ inside

    @property
    def _pads(self) -> int:
        return max(self.order - 1, 0)

    def _number(self) -> None:
        self._ids = {symbol: i + 2 for i, symbol in enumerate(self.symbols_)}
        self._base = len(self.symbols_) + 2

    def _encode(self, streams: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the symbols, each stream with ``_pads`` start symbols before it; and the place in its stream."""
        sizes = np.array([len(stream) + self._pads for stream in streams], np.int64)
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        place = np.arange(total) - np.repeat(ends - sizes, sizes)
        ids = np.full(total, _START, np.int64)
        known = self._ids
        ids[place >= self._pads] = [known.get(symbol, _UNKNOWN) for stream in streams for symbol in stream]
        return ids, place

    def _sum_contexts(self) -> None:
        """c(h) and T(h) of every context of every order."""
        self._totals, self._types = [], []
        for k, (keys, counts) in enumerate(zip(self._grams, self._counts, strict=True)):
            n_contexts = len(self._contexts[k - 1]) if k else 1
            context = keys // self._base
            self._totals.append(np.bincount(context, counts, minlength=n_contexts + 1).astype(float))
            self._types.append(np.bincount(context, minlength=n_contexts + 1).astype(float))

    # ------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        check_count("order", self.order, 0)
        check_choice("unit", self.unit, ("word", "character"))
        self._number()
        if len(self._contexts) != max(self.order - 1, 0):
            raise ValueError(f"expected contexts of {max(self.order - 1, 0)} lengths, found {len(self._contexts)}")
        for keys in (*self._contexts, *self._grams):
            if decreases(keys, strictly=False):
                raise ValueError("n-grams and their contexts must be rising numbers")
        for k, (keys, counts) in enumerate(zip(self._grams, self._counts, strict=True)):
            n_contexts = len(self._contexts[k - 1]) if k else 1
            if len(keys) != len(counts) or (len(keys) and keys[-1] >= n_contexts * self._base):
                raise ValueError(f"counts of {k + 1}-grams do not fit their n-grams")
        self._sum_contexts()


def _find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The places of ``wanted`` in the sorted ``keys``, −1 where absent."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)
