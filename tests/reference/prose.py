"""Slow and obvious: scores of segmentations, n-gram probabilities and features of paragraphs, word by word."""

from __future__ import annotations

import math
from collections import Counter


def segment_of(starts, n):
    """The number of the segment of each position."""
    number, found = -1, []
    for t in range(n):
        number += t in set(starts)
        found.append(number)
    return found


def window_diff(true, predicted, n, k):
    a, b = segment_of(true, n), segment_of(predicted, n)
    return [(a[i + k] - a[i]) != (b[i + k] - b[i]) for i in range(n - k)]


def pk(true, predicted, n, k):
    a, b = segment_of(true, n), segment_of(predicted, n)
    return [(a[i + k] == a[i]) != (b[i + k] == b[i]) for i in range(n - k)]


def witten_bell(streams, order, symbols, word, history):
    """p(word | history), by the formula; ``history`` is a list of at least order − 1 symbols."""
    if order == 0:
        return 1 / (len(symbols) + 1)
    below = witten_bell(streams, order - 1, symbols, word, history)
    context = tuple(history[len(history) - (order - 1) :])
    followers = Counter()
    for stream in streams:
        padded = ["<s>"] * (order - 1) + list(stream)
        for i in range(order - 1, len(padded)):
            if tuple(padded[i - order + 1 : i]) == context:
                followers[padded[i]] += 1
    total, kinds = followers.total(), len(followers)
    if not total:
        return below
    return (followers[word] + kinds * below) / (total + kinds)


def cosine(a: Counter, b: Counter) -> float:
    below = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[w] * b[w] for w in a) / below if below else 0.0


def paragraph_cosines(bags, start, end):
    """Cosine of the words of sentences start .. end − 1 with those of the sentence before and of the one after."""
    paragraph = sum(bags[start:end], Counter())
    before = cosine(paragraph, bags[start - 1]) if start else 0.0
    after = cosine(paragraph, bags[end]) if end < len(bags) else 0.0
    return before, after
