"""Kernels of strings: on DNA, text beyond ASCII, bytes, and sequences of words and integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.kernels import (
    AllSubstrings,
    EditDistance,
    Gappy,
    Mismatch,
    NGram,
    Spectrum,
    Subsequence,
    WeightedDegree,
)
from reference import string_kernels as definition

WORDS = ["to", "be", "or", "not", "", "für", -1, -2, (1, "x")]


def drawn(random: np.random.Generator, n: int, make: Callable[[np.ndarray], Any], letters: int) -> list[Any]:
    """Random strings, an empty one and two equal ones among them."""
    lengths = random.integers(0, 10, size=n)
    lengths[0] = 0
    strings = [make(random.integers(0, letters, size=length)) for length in lengths]
    strings[-1] = strings[n // 2]
    return strings


def dna(random: np.random.Generator, n: int) -> list[str]:
    return drawn(random, n, lambda codes: "".join("ACGT"[c] for c in codes), 4)


def binary(random: np.random.Generator, n: int) -> list[str]:
    return drawn(random, n, lambda codes: "".join("ab"[c] for c in codes), 2)


def text(random: np.random.Generator, n: int) -> list[str]:
    return drawn(random, n, lambda codes: "".join("aNAé語😀"[c] for c in codes), 6)


def sentences(random: np.random.Generator, n: int) -> list[str]:
    return drawn(random, n, lambda codes: " ".join(["to", "be", "für", "not"][c] for c in codes), 4)


def octets(random: np.random.Generator, n: int) -> list[bytes]:
    return drawn(random, n, lambda codes: bytes([65, 0, 255][c] for c in codes), 3)


def tokens(random: np.random.Generator, n: int) -> list[list[Any]]:
    return drawn(random, n, lambda codes: [WORDS[c] for c in codes], len(WORDS))


def integers(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return drawn(random, n, lambda codes: codes - 2, 4)


def one(_: int) -> float:
    return 1.0


def quadratic(length: int) -> float:
    return 1.0 / length**2


def ngram(n: int) -> Callable[[Any, Any], float]:
    return lambda x, z: definition.spectrum(x, z, [n], one)


def mismatch(k: int, m: int, alphabet: Any) -> Callable[[Any, Any], float]:
    return lambda x, z: definition.dot(
        definition.mismatch_features(x, k, m, alphabet), definition.mismatch_features(z, k, m, alphabet)
    )


def wildcard(k: int, m: int) -> Callable[[Any, Any], float]:
    return lambda x, z: definition.dot(definition.wildcard_features(x, k, m), definition.wildcard_features(z, k, m))


def gappy(k: int, gap: int | None, decay: float) -> Callable[[Any, Any], float]:
    return lambda x, z: definition.dot(
        definition.gappy_features(x, k, gap, decay), definition.gappy_features(z, k, gap, decay)
    )


def degree(D: int, shift: int, weight: Callable[[int], float] | None = None) -> Callable[[Any, Any], float]:
    default = lambda d: 2.0 * (D - d + 1) / (D * (D + 1))  # noqa: E731
    return lambda x, z: definition.weighted_degree(x, z, D, shift, weight or default)


def known_pairs(x: str) -> dict[Any, float]:
    return {u: count for u, count in definition.substrings(x, 2).items() if set(u) <= set("ANé")}


def bigram_words(x: str, z: str) -> float:
    return definition.spectrum(x.split(), z.split(), [2], one)


CASES = [
    Case("3-grams of DNA", NGram(3), dna, ngram(3)),
    Case("1-grams of text", NGram(1), text, ngram(1)),
    Case("2-grams of bytes", NGram(2), octets, ngram(2)),
    Case("2-grams of tokens", NGram(2), tokens, ngram(2)),
    Case("2-grams of words", NGram(2, unit="word"), sentences, bigram_words,
         {"white space": lambda random, x: "  " + x.replace(" ", "\n ")}),
    Case("3-grams by suffixes", NGram(3, method="suffix"), binary, ngram(3)),
    Case("2-grams of tokens by suffixes", NGram(2, method="suffix"), tokens, ngram(2)),
    Case("spectrum", Spectrum(2), text, ngram(2)),
    Case("blended spectrum", Spectrum(4, shortest=1, weights=0.5), dna,
         lambda x, z: definition.spectrum(x, z, [1, 2, 3, 4], lambda n: 0.5**n)),
    Case("spectrum of presence", Spectrum(3, shortest=2, weights=[9.0, 1.0, 2.0], presence=True), binary,
         lambda x, z: definition.spectrum(x, z, [2, 3], lambda n: float(n - 1), presence=True)),
    Case("spectrum with an alphabet", Spectrum(2, shortest=1, alphabet="TGCA", weights=quadratic), dna,
         lambda x, z: definition.spectrum(x, z, [1, 2], quadratic)),
    Case("spectrum of one letter", Spectrum(3, shortest=1, alphabet=b"A\x00\xff"), octets,
         lambda x, z: definition.spectrum(x, z, [1, 2, 3], one)),
    Case("spectrum without unknown letters", Spectrum(2, alphabet="ANé", unknown="skip"), text,
         lambda x, z: definition.dot(known_pairs(x), known_pairs(z))),
    Case("mismatch", Mismatch(3, 1, alphabet="ACGT"), dna, mismatch(3, 1, "ACGT")),
    Case("two mismatches", Mismatch(4, 2, alphabet="ab"), binary, mismatch(4, 2, "ab")),
    Case("mismatch everywhere", Mismatch(2, 5, alphabet="ACGT"), dna, mismatch(2, 2, "ACGT")),
    Case("mismatch of bytes", Mismatch(2, 1, alphabet=b"A\x00\xff"), octets, mismatch(2, 1, b"A\x00\xff")),
    Case("mismatch of tokens", Mismatch(2, 1, alphabet=WORDS), tokens, mismatch(2, 1, WORDS)),
    Case("wildcards", Mismatch(3, 2), text, wildcard(3, 2)),
    Case("wildcards of tokens", Mismatch(2, 1), tokens, wildcard(2, 1)),
    Case("gappy", Gappy(3, gap=2), dna, gappy(3, 2, 1.0)),
    Case("gappy with decay", Gappy(2, gap=3, decay=0.7), text, gappy(2, 3, 0.7)),
    Case("gappy with an alphabet", Gappy(2, gap=1, decay=0.5, alphabet="ACGT"), dna, gappy(2, 1, 0.5)),
    Case("gappy without a gap", Gappy(2, gap=0, decay=0.5), tokens, gappy(2, 0, 0.5)),
    Case("weighted degree", WeightedDegree(3), dna, degree(3, 0)),
    Case("weighted degree with shifts", WeightedDegree(3, shift=2), text, degree(3, 2)),
    Case("weighted degree of tokens", WeightedDegree(2, shift=1, weights=0.5), tokens, degree(2, 1, lambda d: 0.5**d)),
    Case("all substrings", AllSubstrings(), binary, lambda x, z: definition.all_substrings(x, z, one)),
    Case("all substrings with decay", AllSubstrings(0.5), text,
         lambda x, z: definition.all_substrings(x, z, lambda n: 0.5**n)),
    Case("all substrings of a range", AllSubstrings(quadratic, shortest=2, longest=4), integers,
         lambda x, z: definition.spectrum(x, z, [2, 3, 4], quadratic)),
    Case("all substrings with listed weights", AllSubstrings([0.5, 0.0, 2.0]), octets,
         lambda x, z: definition.spectrum(x, z, [1, 3], lambda n: {1: 0.5, 3: 2.0}[n])),
    Case("subsequences", Subsequence(2, 0.5), text, gappy(2, None, 0.5)),
    Case("long subsequences", Subsequence(4, 0.9), dna, gappy(4, None, 0.9)),
    Case("subsequences of all lengths", Subsequence(3, 0.6, shortest=1), octets,
         lambda x, z: sum(gappy(n, None, 0.6)(x, z) for n in (1, 2, 3))),
    Case("subsequences of one token", Subsequence(1, 0.3), tokens, gappy(1, None, 0.3)),
    Case("edit distance", EditDistance(), text, lambda x, z: -definition.edit_distance(x, z)),
    Case("edit distance with costs", EditDistance(0.3, indel=1.0, substitution=1.5), tokens,
         lambda x, z: math.exp(-0.3 * definition.edit_distance(x, z, 1.0, 1.5))),
    Case("edit distance in a scale", EditDistance(1.0, indel=0.25, substitution=0.25), octets,
         lambda x, z: math.exp(-0.25 * definition.edit_distance(x, z))),
    Case("edit distance, corrected", EditDistance(0.5).corrected(["ACG", "CGT", "GTA", "A", "TTTT"]), dna),
]  # fmt: skip
