"""Gram matrices of vectors against scikit-learn's pairwise kernels, one thread, in one run.

    python benchmarks/kernels_vectors.py [--parts gaussian laplacian chi2 accuracy] [--repeats 3] [--rows 10000]

gaussian   rbf_kernel, rows × rows, d = 10, 100, 784, float32 and float64
laplacian  laplacian_kernel, on a fifth of the rows (it is far slower)
chi2       chi2_kernel and additive_chi2_kernel, on a fifth of the rows
accuracy   the largest error of float32 matrices against float64 by differences

Each figure is the median of the processor's seconds over the repeats, both sides in turn; "ratio" is theirs / ours.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import Row, interleaved, parse, record, sized
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel, laplacian_kernel, rbf_kernel

from mercer.kernels import ChiSquared, Gaussian, Laplacian

PARTS = ("gaussian", "laplacian", "chi2", "accuracy")


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> None:
    """One line: medians of both, taken in turn."""
    mine, peer = interleaved(repeats, ours, theirs)
    record("speed", name, peer="scikit-learn", theirs=peer, ours=mine)
    print(f"{name:<38} mercer {mine:7.3f} s   scikit-learn {peer:7.3f} s   ratio {peer / mine:6.2f}", flush=True)


def gaussian(rows: int, repeats: int) -> None:
    for d in (10, 100, 784):
        X = np.random.default_rng(d).normal(size=(rows, d))
        for dtype in (np.float32, np.float64):
            Y, g = X.astype(dtype), 1.0 / (2 * d)
            name = f"gaussian {rows} x {rows}, d = {d}, {np.dtype(dtype).name}"
            compare(name, lambda: Gaussian(g)(Y, dtype=dtype), lambda: rbf_kernel(Y, gamma=g), repeats)  # noqa: B023


def laplacian(rows: int, repeats: int) -> None:
    rows = max(2, rows // 5)
    for d in (10, 100):
        X = np.random.default_rng(d).normal(size=(rows, d))
        for dtype in (np.float32, np.float64):
            Y, g = X.astype(dtype), 1.0 / d
            name = f"laplacian {rows} x {rows}, d = {d}, {np.dtype(dtype).name}"
            compare(name, lambda: Laplacian(g)(Y, dtype=dtype), lambda: laplacian_kernel(Y, gamma=g), repeats)  # noqa: B023


def chi2(rows: int, repeats: int) -> None:
    rows, d = max(2, rows // 5), 100
    X = np.random.default_rng(0).dirichlet(np.full(d, 0.3), size=rows)
    for dtype in (np.float32, np.float64):
        Y = X.astype(dtype)
        name = f"{rows} x {rows}, d = {d}, {np.dtype(dtype).name}"
        compare(f"chi2 {name}", lambda: ChiSquared(1.0)(Y, dtype=dtype), lambda: chi2_kernel(Y), repeats)  # noqa: B023
        compare(
            f"additive chi2 {name}",
            lambda: ChiSquared(None)(Y, dtype=dtype),  # noqa: B023
            lambda: additive_chi2_kernel(Y),  # noqa: B023
            repeats,
        )


def accuracy(rows: int, repeats: int) -> None:
    rows = max(2, rows // 10)
    for d in (10, 100, 784):
        for shift in (0.0, 100.0):
            X = (np.random.default_rng(d).normal(size=(rows, d)) + shift).astype(np.float32)
            exact = X.astype(np.float64)
            g = 1.0 / (2 * d)
            squared = np.vstack([((exact - x) ** 2).sum(axis=1) for x in exact])
            truth = np.exp(-g * squared)
            mine = np.abs(Gaussian(g)(X, dtype=np.float32) - truth).max()
            theirs = np.abs(rbf_kernel(X, gamma=g) - truth).max()
            print(f"largest error, float32, d = {d}, mean {shift:g}: mercer {mine:.1e}, scikit-learn {theirs:.1e}")


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py."""
    n, d = sized(3000 if quick else 10_000, 100), 100
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    ours, theirs = interleaved(
        repeats, lambda: Gaussian(0.5 / d)(X, dtype=np.float32), lambda: rbf_kernel(X, gamma=0.5 / d)
    )
    yield Row(f"Gaussian Gram, {n} x {n}, d = {d}, float32", "sklearn rbf_kernel", theirs, ours, "≥ 1x", 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    args = parse(parser, repeats=1, rows=100)
    run = {"gaussian": gaussian, "laplacian": laplacian, "chi2": chi2, "accuracy": accuracy}
    for part in args.parts:
        run[part](args.rows, args.repeats)


if __name__ == "__main__":
    main()
