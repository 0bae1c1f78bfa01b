"""Kernels of sets, bags and models beside what scikit-learn and SciPy offer for the same values.

    python benchmarks/kernels_sets.py [--parts words jaccard bags rank] [--repeats 3]

words    Gram matrix of bags of words: Intersection("product") against CountVectorizer and a sparse product.
jaccard  Jaccard() of sets against SciPy's distance of dense rows, encoding included in both.
bags     SetMean of a cubic kernel against a mean for each pair of bags.
rank     pivoted_cholesky to 1e-8 against the whole Gram matrix and LAPACK's pivoted Cholesky.

Both sides run in turn in one process, on one thread; seconds are of the processor, medians of the repeats. Results are
compared before times are printed.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import Row, measured, parse, sized, table
from scipy.linalg.lapack import dpstrf
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import polynomial_kernel

from mercer.kernels import Intersection, Jaccard, Linear, SetMean, pivoted_cholesky

CUBIC = (Linear() + 1.0) ** 3


def race(name: str, ours: Callable[[], Any], peer_name: str, peer: Callable[[], Any], repeats: int, check: Any) -> Row:
    """Runs both in turn and compares the results."""
    (fast, mine), (slow, theirs) = measured(repeats, {"ours": ours, "peer": peer}).values()
    check(mine, theirs)
    return Row(name, peer_name, slow, fast)


def close(mine: Any, theirs: Any) -> None:
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


def documents(n: int, length: int = 100, vocabulary: int = 20_000) -> list[list[str]]:
    """Words with Zipf's frequencies."""
    random = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, vocabulary + 1)
    return [[f"word{i}" for i in random.choice(vocabulary, length, p=shares / shares.sum())] for _ in range(n)]


def words(repeats: int) -> Iterator[Row]:
    texts = documents(sized(2000, 30))

    def peer() -> np.ndarray:
        counts = CountVectorizer(analyzer=list, dtype=np.float64).fit_transform(texts)
        return (counts @ counts.T).toarray()

    title = f"words, {len(texts)} texts of 100"
    yield race(title, lambda: Intersection("product")(texts), "CountVectorizer", peer, repeats, close)


def jaccard(repeats: int) -> Iterator[Row]:
    texts = documents(sized(300, 30))

    def peer() -> np.ndarray:
        rows = CountVectorizer(analyzer=list, binary=True).fit_transform(texts).toarray().astype(bool)
        return 1.0 - cdist(rows, rows, "jaccard")

    yield race(f"jaccard, {len(texts)} sets", lambda: Jaccard()(texts), "cdist, dense rows", peer, repeats, close)


def bags(repeats: int) -> Iterator[Row]:
    random = np.random.default_rng(1)
    data = [random.normal(size=(30, 10)) for _ in range(sized(150, 10))]

    def peer() -> np.ndarray:
        return np.array([[polynomial_kernel(x, z, degree=3, gamma=1.0, coef0=1.0).mean() for z in data] for x in data])

    title = f"bags, {len(data)} of 30 vectors"
    yield race(title, lambda: SetMean(CUBIC)(data), "polynomial_kernel, pairs", peer, repeats, close)


def rank(repeats: int) -> Iterator[Row]:
    X = np.random.default_rng(3).normal(size=(sized(3000, 200), 6))

    def peer() -> np.ndarray:
        K = CUBIC(X)
        factor, order, r, _ = dpstrf(K, tol=1e-9 * np.trace(K), lower=1)
        L = np.tril(factor)[:, :r]
        return L[np.argsort(order - 1)]

    yield race(
        f"rank, {len(X)} vectors, rank 84", lambda: pivoted_cholesky(CUBIC, X, tol=1e-8)[0], "Gram and dpstrf", peer,
        repeats, lambda a, b: close(a @ a.T, b @ b.T),
    )  # fmt: skip


PARTS = {part.__name__: part for part in (words, jaccard, bags, rank)}


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py."""
    for part in PARTS.values():
        yield from part(repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kernels of sets, bags and models, beside other libraries.")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, repeats=1)
    warnings.simplefilter("ignore")
    table(row for name in options.parts for row in PARTS[name](options.repeats))


if __name__ == "__main__":
    main()
