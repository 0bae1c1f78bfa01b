"""Pairwise alignment by enumeration: every set of pairs that ascends in both sequences, scored term by term."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np


def all_alignments(n: int, m: int) -> list[tuple[tuple[int, int], ...]]:
    """Every alignment of sequences of n and m symbols; there are binomial(n + m, n)."""

    def extend(i: int, j: int) -> Iterator[tuple[tuple[int, int], ...]]:
        yield ()
        for a in range(i, n):
            for b in range(j, m):
                for rest in extend(a + 1, b + 1):
                    yield ((a, b), *rest)

    return list(extend(0, 0))


def gap_lengths(pairs, n: int, m: int, local: bool) -> list[int]:
    """Lengths of the gaps: runs of unpaired symbols between neighbouring pairs, and globally at both ends."""
    bounds = [*pairs] if local else [(-1, -1), *pairs, (n, m)]
    lengths = []
    for (a, b), (c, d) in pairwise(bounds):
        lengths += [length for length in (c - a - 1, d - b - 1) if length]
    return lengths


def counts_of(pairs, s, t, n_symbols: int, local: bool) -> np.ndarray:
    """Numbers of substitutions (all pairs of symbols), openings, extensions."""
    out = np.zeros(n_symbols**2 + 2)
    for i, j in pairs:
        out[s[i] * n_symbols + t[j]] += 1
    for length in gap_lengths(pairs, len(s), len(t), local):
        out[-2] += 1
        out[-1] += length - 1
    return out


class Enumeration:
    """One pair of sequences, all of its alignments written out, with optional extra scores of cells."""

    def __init__(self, s, t, substitution, gap_open, gap_extend, local, cells=None) -> None:
        self.alignments = all_alignments(len(s), len(t))
        n_symbols = len(substitution)
        self.counts = np.array([counts_of(y, s, t, n_symbols, local) for y in self.alignments])
        weights = np.concatenate([np.ravel(substitution), [gap_open, gap_extend]])
        self.scores = self.counts @ weights
        if cells is not None:
            self.scores = self.scores + np.array([sum(cells[i, j] for i, j in y) for y in self.alignments])
        top = self.scores.max()
        self.log_partition = float(top + np.log(np.exp(self.scores - top).sum()))
        self.probabilities = np.exp(self.scores - self.log_partition)
        self.shape = (len(s), len(t))

    def expected_counts(self) -> np.ndarray:
        return self.probabilities @ self.counts

    def pair_probabilities(self) -> np.ndarray:
        out = np.zeros(self.shape)
        for y, p in zip(self.alignments, self.probabilities, strict=True):
            for i, j in y:
                out[i, j] += p
        return out


def log_partition(s, t, substitution, gap_open, gap_extend, local) -> float:
    """The log-partition of pairs that are too long to enumerate: the recursion over states, cell by cell."""
    n, m = len(s), len(t)
    M, D, I = (np.full((n + 1, m + 1), -np.inf) for _ in range(3))
    if not local:
        M[0, 0] = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            if i and j:
                ways = [M[i - 1, j - 1], D[i - 1, j - 1], I[i - 1, j - 1], 0.0 if local else -np.inf]
                M[i, j] = substitution[s[i - 1]][t[j - 1]] + np.logaddexp.reduce(ways)
            if i:
                D[i, j] = np.logaddexp(M[i - 1, j] + gap_open, D[i - 1, j] + gap_extend)
            if j:
                opened = np.logaddexp(M[i, j - 1], D[i, j - 1]) + gap_open
                I[i, j] = np.logaddexp(opened, I[i, j - 1] + gap_extend)
    if local:
        return float(np.logaddexp(0.0, np.logaddexp.reduce(M, axis=None)))
    return float(np.logaddexp.reduce([M[n, m], D[n, m], I[n, m]]))
