"""Rational kernels."""

from __future__ import annotations

from math import comb

import numpy as np

from kernels.cases import Case
from mercer.kernels import Rational, Transducer
from reference.transducers import dot, gappy_outputs, levenshtein, mismatch_outputs, ngram_outputs


def strings(random: np.random.Generator, n: int) -> list[str]:
    """Strings over a and b, the first one empty and the last one equal to another one."""
    found = ["".join(random.choice(["a", "b"], size=random.integers(0, 8))) for _ in range(n)]
    found[0] = ""
    found[-1] = found[n // 2]
    return found


def short_strings(random: np.random.Generator, n: int) -> list[str]:
    return [x[:4] for x in strings(random, n)]


def decreasing(cost: np.ndarray) -> np.ndarray:
    return np.exp(-cost)


def inserting() -> Transducer:
    """Writes an a for each symbol, half as gladly for b, and further ones anywhere: infinitely many outputs."""
    T = Transducer().set_initial(0).set_final(0)
    return T.add_arc(0, "a", "a", 1.0, 0).add_arc(0, "b", "a", 0.5, 0).add_arc(0, None, "a", 0.3, 0)


def inserted(x: str, z: str) -> float:
    def output(s: str, k: int) -> float:
        return 0.5 ** s.count("b") * comb(k, len(s)) * 0.3 ** (k - len(s)) if k >= len(s) else 0.0

    return sum(output(x, k) * output(z, k) for k in range(80))


CASES = [
    *(
        Case(
            f"rational n-grams, {method}", Rational(Transducer.ngram(2, "ab"), method=method), strings,
            lambda x, z: dot(ngram_outputs(x, 2), ngram_outputs(z, 2)),
        )
        for method in ("auto", "features", "pairs")
    ),
    *(
        Case(
            f"rational gappy, {method}", Rational(Transducer.gappy(3, "ab", 0.6), method=method), strings,
            lambda x, z: dot(gappy_outputs(x, 3, 0.6), gappy_outputs(z, 3, 0.6)),
        )
        for method in ("features", "pairs")
    ),
    *(
        Case(
            f"rational mismatch, {method}", Rational(Transducer.mismatch(3, 1, "ab"), method=method), strings,
            lambda x, z: dot(mismatch_outputs(x, 3, 1, "ab"), mismatch_outputs(z, 3, 1, "ab")),
        )
        for method in ("features", "pairs")
    ),
    Case(
        "rational n-grams, psi", Rational(Transducer.ngram(2, "ab"), psi=np.expm1), short_strings,
        lambda x, z: np.expm1(dot(ngram_outputs(x, 2), ngram_outputs(z, 2))),
    ),
    Case("rational with infinitely many outputs", Rational(inserting()), strings, inserted),
    Case(
        "rational edit distance", Rational(Transducer.edit(1.0, "ab"), psi=decreasing, make_pd=False), short_strings,
        lambda x, z: np.exp(-levenshtein(x, z)),
    ),
]  # fmt: skip
