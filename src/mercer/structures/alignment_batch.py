"""Pairs of sequences as arrays, with compiled inference (cpp/structures/alignment.cpp).

Inference on a batch gives the best alignments, their scores, log Z = log Σ_y exp score(y), and expected counts under
p(y) ∝ exp score(y).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mercer import _core


class Coded(NamedTuple):
    """One pair of sequences as symbol numbers."""

    s: np.ndarray
    t: np.ndarray


class Scores(NamedTuple):
    """Scores of substitutions and gaps: a gap of length l scores ``gap_open + (l − 1) · gap_extend``."""

    substitution: np.ndarray
    gap_open: float
    gap_extend: float

    def negated(self) -> Scores:
        """Return the negated scores: their best alignment is the worst one."""
        return Scores(-self.substitution, -self.gap_open, -self.gap_extend)


class Found(NamedTuple):
    """One alignment that was found."""

    pairs: np.ndarray
    score: float


class Anchors(NamedTuple):
    """Extra scores of cells: ``bonus[i]`` for pairing position i of s with position ``column[i]`` of t (−1: none)."""

    column: np.ndarray
    bonus: np.ndarray


class Encoder:
    """Map symbols to numbers, and back."""

    def __init__(self, alphabet: Iterable[Any]) -> None:
        self.symbols = list(alphabet)
        try:
            self.index = {symbol: number for number, symbol in enumerate(self.symbols)}
        except TypeError as err:
            raise TypeError(f"alphabet must hold hashable symbols: {err}") from err
        if not self.symbols:
            raise ValueError("alphabet must hold at least one symbol")
        if len(self.index) < len(self.symbols):
            seen: set[Any] = set()
            twice = next(x for x in self.symbols if x in seen or seen.add(x))  # type: ignore[func-returns-value]
            raise ValueError(f"alphabet must not hold a symbol twice, found {twice!r} again")

    def encode(self, sequence: Sequence[Any], where: str) -> np.ndarray:
        """Return the symbol numbers of one sequence."""
        try:
            return np.fromiter(map(self.index.__getitem__, sequence), dtype=np.int32, count=len(sequence))
        except (KeyError, TypeError):
            for position, symbol in enumerate(sequence):
                if not _hashable(symbol) or symbol not in self.index:
                    what = f"symbol {symbol!r} at position {position}"
                    raise ValueError(f"{where}: {what} is not in the alphabet") from None
            raise


def check_sequences(pairs: Any) -> list[tuple[Sequence[Any], Sequence[Any]]]:
    """Return a list of (s, t), each a string or a sequence of tokens."""
    if isinstance(pairs, (str, bytes)):
        raise ValueError("X must be a list of (s, t), got one string")
    out = []
    for number, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"X[{number}] must be two sequences (s, t), got {pair!r:.60}")
        for name, sequence in zip("st", pair, strict=True):
            if isinstance(sequence, bytes) or not hasattr(sequence, "__len__") or not hasattr(sequence, "__getitem__"):
                raise ValueError(
                    f"X[{number}]: {name} must be a string or a list of tokens, got {type(sequence).__name__}"
                )
        out.append((pair[0], pair[1]))
    return out


def compile_batch(
    coded: Sequence[Coded], scores: Scores, local: bool, anchors: Sequence[Anchors] | None = None
) -> _core.alignment.AlignmentBatch:
    """Return the compiled form of pairs and scores."""
    s, s_offsets = _stack([pair.s for pair in coded])
    t, t_offsets = _stack([pair.t for pair in coded])
    columns = bonus = None
    if anchors is not None:
        columns, _ = _stack([a.column for a in anchors])
        bonus = np.concatenate([a.bonus for a in anchors]) if anchors else np.empty(0)
    return _core.alignment.AlignmentBatch(
        s, s_offsets, t, t_offsets,
        np.ascontiguousarray(scores.substitution, dtype=float), float(scores.gap_open), float(scores.gap_extend),
        local, columns, bonus,
    )  # fmt: skip


def k_best(batch: _core.alignment.AlignmentBatch, k: int, threads: int = 1) -> list[list[Found]]:
    """Return the k best alignments of every pair, best first; fewer if fewer exist."""
    stacked, pair_offsets, scores, offsets = _core.alignment.k_best(batch, k, threads)
    stacked = stacked.reshape(-1, 2)
    stacked.flags.writeable = False
    ends = pair_offsets.tolist()
    alignments = [Found(stacked[a:b], c) for (a, b), c in zip(pairwise(ends), scores.tolist(), strict=True)]
    return [alignments[a:b] for a, b in pairwise(offsets.tolist())]


def expect(
    batch: _core.alignment.AlignmentBatch, n_pairs: int, n_symbols: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return log Z and expected counts (n_pairs, n_symbols² + 2): substitutions, gap openings, extensions."""
    counts = np.empty((n_pairs, n_symbols**2 + 2))
    return _core.alignment.expect(batch, counts, None, threads), counts


def match_probabilities(
    batch: _core.alignment.AlignmentBatch, coded: Sequence[Coded], n_symbols: int, threads: int = 1
) -> list[np.ndarray]:
    """Return p(i and j are aligned) of every pair, as arrays (len(s), len(t))."""
    shapes = [(len(pair.s), len(pair.t)) for pair in coded]
    ends = np.concatenate([[0], np.cumsum([n * m for n, m in shapes], dtype=np.int64)])
    stacked = np.empty(int(ends[-1]))
    _core.alignment.expect(batch, np.empty((len(coded), n_symbols**2 + 2)), stacked, threads)
    return [stacked[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends.tolist()), shapes, strict=True)]


def _stack(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum([len(a) for a in arrays], out=offsets[1:])
    stacked = np.concatenate(arrays) if arrays else np.empty(0, np.int32)
    return np.ascontiguousarray(stacked, dtype=np.int32), offsets


def _hashable(symbol: Any) -> bool:
    try:
        hash(symbol)
    except TypeError:
        return False
    return True
