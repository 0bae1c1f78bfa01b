"""Segmentations by enumeration: every way to cut a short sequence, scored term by term."""

from __future__ import annotations

import functools
import itertools
from itertools import pairwise

import numpy as np

from reference.chains import log_sum_exp


def cuts(length: int) -> list[tuple[tuple[int, int], ...]]:
    """Every way to cut positions 0 .. length into segments; there are 2^(length − 1)."""
    if length == 0:
        return [()]
    found = []
    for inner in itertools.product([False, True], repeat=length - 1):
        bounds = [0, *(t + 1 for t, cut in enumerate(inner) if cut), length]
        found.append(tuple(pairwise(bounds)))
    return found


@functools.cache
def segmentations(length: int, n_labels: int) -> list[tuple[tuple[int, int, int], ...]]:
    """Every labelled segmentation as triples (start, end, label)."""
    return [
        tuple((s, e, c) for (s, e), c in zip(cut, labels, strict=True))
        for cut in cuts(length)
        for labels in itertools.product(range(n_labels), repeat=len(cut))
    ]


def segment_score(theta, begin: int, s: int, e: int, c: int) -> float:
    """The score of a segment of the sequence that starts at row ``begin``, term by term."""
    size, frames = e - s, slice(begin + s, begin + e)
    if size > len(theta.lengths):
        return -np.inf
    total = float(theta.lengths[size - 1, c])
    if theta.frames is not None:
        total += theta.frames[frames, c].sum()
    if theta.means is not None:
        total += theta.means[frames, c].mean()
    if theta.starts is not None:
        total += theta.starts[begin + s, c]
    if theta.spans is not None:
        total += theta.spans[begin + s, size - 1, c]
    if theta.variances is not None:
        total += theta.features[frames].var(axis=0) @ theta.variances[:, c]
    if theta.marks is not None:
        length, label, bonus = (m[begin + s] for m in theta.marks)
        total += bonus if (length, label) == (size, c) else 0.0
    return float(total)


def neighbour_score(theta, begin: int, s: int, e: int, c: int, after: int, end: int) -> float:
    """What a segment and the one after it, [e, end) labelled ``after``, score together."""
    frames = slice(begin + s, begin + e)
    total = float(theta.transitions[c, after])
    if theta.edges is not None:
        total += theta.edges[begin + e, c, after]
    if theta.pair_means is not None:
        total += theta.pair_means[frames, c, after].mean()
    if theta.pair_variances is not None:
        total += theta.features[frames].var(axis=0) @ theta.pair_variances[:, c, after]
    if theta.pair_spans is not None and max(e - s, end - e) <= len(theta.lengths):
        total += theta.pair_spans[begin + e, e - s - 1, end - e - 1] @ theta.pair_span_scores[:, c, after]
    return float(total)


def score_of(y, theta, begin: int = 0, segment=segment_score, neighbours=neighbour_score) -> float:
    """The score of one segmentation under θ, whose sequence starts at row ``begin``; the empty one scores 0."""
    if not y:
        return 0.0
    total = float(theta.start[y[0][2]] + theta.end[y[-1][2]])
    total += sum(segment(theta, begin, *one) for one in y)
    return total + sum(neighbours(theta, begin, *one, after[2], after[1]) for one, after in pairwise(y))


def remembered(function):
    """The same function, which computes a value only once."""
    known: dict = {}

    def call(theta, *key):
        if key not in known:
            known[key] = function(theta, *key)
        return known[key]

    return call


class Enumeration:
    """One sequence, all of its segmentations written out."""

    def __init__(self, theta, begin: int, length: int) -> None:
        self.theta, self.begin, self.length = theta, begin, length
        self.outputs = segmentations(length, theta.n_labels)
        parts = remembered(segment_score), remembered(neighbour_score)
        self.scores = np.array([score_of(y, theta, begin, *parts) for y in self.outputs])
        self.log_partition = log_sum_exp(self.scores)
        feasible = np.isfinite(self.log_partition)
        self.probabilities = np.exp(self.scores - self.log_partition) if feasible else np.zeros(len(self.scores))

    @functools.cached_property
    def spans(self) -> np.ndarray:
        """p(segment) by start, length and label."""
        out = np.zeros((self.length, *self.theta.lengths.shape))
        for y, p in zip(self.outputs, self.probabilities, strict=True):
            for s, e, c in y:
                if p > 0:
                    out[s, e - s - 1, c] += p
        return out

    @functools.cached_property
    def edges(self) -> np.ndarray:
        """p(boundary before t between labels a and b)."""
        out = np.zeros((self.length, self.theta.n_labels, self.theta.n_labels))
        for y, p in zip(self.outputs, self.probabilities, strict=True):
            for (_, e, a), (_, _, b) in pairwise(y):
                out[e, a, b] += p
        return out

    def entropy(self) -> float:
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    def worst(self) -> float:
        return float(np.where(np.isneginf(self.scores), np.inf, self.scores).min())

    def k_best_scores(self, k: int) -> np.ndarray:
        found = np.sort(self.scores[~np.isneginf(self.scores)])[::-1][:k]
        return np.concatenate([found, np.full(k - len(found), -np.inf)])
