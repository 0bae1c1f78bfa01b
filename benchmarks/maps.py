"""Fast maps against scikit-learn's, one thread, in one run.

    python benchmarks/maps.py [--parts gaussian polynomial error scaling] [--repeats 3] [--rows 5000]

gaussian     RBFSampler and our variants, 784 → 4096, float32 and float64: processor's time a row and Gram error
polynomial   PolynomialCountSketch of degree 2, 784 → 4096, float32 and float64
error        mean squared error of the Gram matrix for 64 … 1024 features, all variants
scaling      circulant and structured maps, d = 2^10 … 2^16, against d; the exponent

Each time is the median of the processor's seconds over the repeats, both sides in turn; "ratio" is theirs / ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import exponent, parse, record, sized
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

from mercer.maps import CirculantProjection, FourierFeatures, PolynomialSketch

VARIANTS = ("iid", "orthogonal", "structured", "circulant")
D, FEATURES = sized((784, 4096), (16, 64))  # numbers of a row, and features
GAMMA = 1.0 / (2 * D)


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def rows_of(n: int, d: int, dtype: Any) -> np.ndarray:
    """Rows with a spread of distances: mixtures of a few directions, as in images."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) / 20**0.5 + 0.3 * rng.normal(size=(n, d))).astype(dtype)


def gram_error(Z: np.ndarray, K: np.ndarray) -> float:
    Z = Z[: len(K)].astype(np.float64)
    return float(np.sqrt(((Z @ Z.T - K) ** 2).mean()))


def gaussian(rows: int, repeats: int) -> None:
    X64 = rows_of(rows, D, np.float64)
    few = X64[:300]
    K = np.exp(-GAMMA * np.maximum(((few**2).sum(1)[:, None] + (few**2).sum(1) - 2 * few @ few.T), 0))
    for dtype in (np.float32, np.float64):
        X = X64.astype(dtype)
        peer = RBFSampler(gamma=GAMMA, n_components=FEATURES, random_state=0).fit(X)
        maps = {v: FourierFeatures(FEATURES, gamma=GAMMA, variant=v, random_state=0).fit(X) for v in VARIANTS}
        for map_ in (peer, *maps.values()):
            map_.transform(X[:64])
        times: dict[str, list[float]] = {name: [] for name in ("peer", *VARIANTS)}
        for _ in range(repeats):
            times["peer"].append(seconds(lambda: peer.transform(X)))  # noqa: B023
            for name, map_ in maps.items():
                times[name].append(seconds(lambda: map_.transform(X)))  # noqa: B023
        base = statistics.median(times["peer"]) / rows * 1e6
        error = gram_error(peer.transform(X[:300]), K)
        name = np.dtype(dtype).name
        print(f"gaussian {D} -> {FEATURES} {name:<8} RBFSampler    {base:7.1f} us/row   Gram error {error:.5f}")
        for name, map_ in maps.items():
            took = statistics.median(times[name]) / rows * 1e6
            error = gram_error(map_.transform(X[:300]), K)
            line = f"{took:7.1f} us/row   Gram error {error:.5f}   ratio {base / took:6.2f}"
            print(f"{'':<29} {name:<13} {line}", flush=True)
            measure = f"Gaussian, {name}, {np.dtype(dtype).name}"
            sizes, note = f"{D} → {FEATURES}", f"error of the Gram matrix {error:.5f}"
            record("speed", measure, peer="scikit-learn", theirs=base, ours=took, unit="µs", sizes=sizes, note=note)


def polynomial(rows: int, repeats: int) -> None:
    for dtype in (np.float32, np.float64):
        X = rows_of(rows, D, dtype)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        peer = PolynomialCountSketch(degree=2, n_components=FEATURES, random_state=0).fit(X)
        ours = PolynomialSketch(FEATURES, 2, random_state=0).fit(X)
        ours.transform(X[:64])
        pairs = [
            (seconds(lambda: ours.transform(X)), seconds(lambda: peer.transform(X)))  # noqa: B023
            for _ in range(repeats)
        ]
        mine, theirs = (statistics.median(side) / rows * 1e6 for side in zip(*pairs, strict=True))
        K = (X[:300].astype(np.float64) @ X[:300].T.astype(np.float64)) ** 2
        kept = ours.transform(X[:300])
        measure = f"polynomial sketch of degree 2, {np.dtype(dtype).name}"
        sizes = f"{D} → {FEATURES}"
        record("speed", measure, peer="scikit-learn", theirs=theirs, ours=mine, unit="µs", sizes=sizes)
        print(
            f"polynomial {D} -> {FEATURES} {np.dtype(dtype).name:<8} mercer {mine:7.1f} us/row ({kept.dtype})   "
            f"PolynomialCountSketch {theirs:7.1f} us/row ({peer.transform(X[:2]).dtype})   "
            f"ratio {theirs / mine:6.2f}   "
            f"Gram error {gram_error(kept, K):.5f} and {gram_error(peer.transform(X[:300]), K):.5f}",
            flush=True,
        )


def error(rows: int, repeats: int) -> None:
    X = rows_of(300, D, np.float64)
    norms = (X**2).sum(axis=1)
    K = np.exp(-GAMMA * np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0))
    print("mean squared error of the Gram matrix, mean of 5 draws")
    print(f"{'features':>9}" + "".join(f"{name:>13}" for name in VARIANTS))
    for n in sized((64, 128, 256, 512, 1024), (64,)):
        found = []
        for variant in VARIANTS:
            draws = [
                gram_error(FourierFeatures(n, gamma=GAMMA, variant=variant, random_state=s).fit_transform(X), K) ** 2
                for s in range(5)
            ]
            found.append(float(np.mean(draws)))
        print(f"{n:>9}" + "".join(f"{value:>13.6f}" for value in found), flush=True)
        record("error", f"{n} features", values=dict(zip(VARIANTS, found, strict=True)))


def scaling(rows: int, repeats: int) -> None:
    sizes = [2**p for p in sized(range(10, 17), range(4, 7))]
    for name in ("circulant", "structured"):
        took = []
        for d in sizes:
            X = np.random.default_rng(0).normal(size=(max(4, sized(2**19, 2**8) // d), d)).astype(np.float32)
            made: Any
            if name == "circulant":
                made = CirculantProjection(random_state=0).fit(X)
            else:
                made = FourierFeatures(d, gamma=1 / d, random_state=0).fit(X)
            made.transform(X[:2])
            best = statistics.median(seconds(lambda: made.transform(X)) for _ in range(repeats))  # noqa: B023
            took.append(best / len(X) * 1e6)
        shown = ", ".join(f"2^{int(np.log2(d))}: {t:.0f}" for d, t in zip(sizes, took, strict=True))
        print(f"{name} map d -> d float32, us/row: {shown}; exponent {exponent(sizes, took):.2f}", flush=True)


def main() -> None:
    parts = {"gaussian": gaussian, "polynomial": polynomial, "error": error, "scaling": scaling}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000)
    args = parse(parser, repeats=1, rows=320)
    for part in args.parts:
        parts[part](args.rows, args.repeats)


if __name__ == "__main__":
    main()
