"""Few learnt features against many random ones: accuracy by number of features, and errors of the kernel.

    python benchmarks/compact_maps.py [--parts strokes usps letter circulant kernel] [--seeds 2] [--sizes 8 32 128]

strokes     generated pen strokes, 16 numbers, 10 classes (like pendigits)
usps        USPS digits, 7,291 / 2,007 rows, 256 pixels (needs MERCER_DATA)
letter      letter recognition, 16,000 / 4,000 rows, 16 numbers, 26 classes (needs MERCER_DATA)
circulant   USPS, d and 2d features: random Fourier features, random and learnt circulant ones (spec 004, table 5.2)
kernel      mean squared error of the Gaussian kernel, random and learnt frequencies, on training and other rows

"random" is FourierFeatures with a linear SVM (the best of C = 1, 10, 100); "learnt" is CompactClassifier with its
defaults. Accuracy in percent on the test rows, mean over the seeds.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from mercer.classification import CompactClassifier
from mercer.maps import CompactNonlinearMap, FourierFeatures

Task = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def strokes(seed: int = 0) -> Task:
    """Eight points on each of twenty curves, two for a class, turned, stretched and shaken."""
    shapes = np.random.default_rng(12345).normal(size=(10, 2, 3, 2))
    rng = np.random.default_rng(seed)
    n = 9000
    y = rng.integers(0, 10, n)
    t = np.linspace(0, np.pi, 8)[None, :, None] * rng.uniform(0.8, 1.2, (n, 1, 1))
    c = shapes[y, rng.integers(0, 2, n)] + 0.2 * rng.normal(size=(n, 3, 2))
    points = c[:, None, 0] * np.cos(t) + c[:, None, 1] * np.sin(t) + c[:, None, 2] * np.cos(2 * t)
    X = (points.reshape(n, 16) + 0.1 * rng.normal(size=(n, 16))).astype(np.float32)
    return X[:6000], y[:6000], X[6000:], y[6000:]


def usps() -> Task | None:
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("usps: MERCER_DATA is not set; skipped")
        return None
    table = loadmat(Path(home) / "usps" / "usps_all.mat")["usps_all"]
    X, y = (table[:, :256] / 255.0).astype(np.float32), table[:, 256].astype(int)
    return X[:7291], y[:7291], X[7291:], y[7291:]


def letter() -> Task | None:
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("letter: MERCER_DATA is not set; skipped")
        return None
    with gzip.open(Path(home) / "uci" / "LetterRecognition.csv.gz", "rt") as file:
        lines = [line.strip().split(",") for line in file][1:]
    y = np.array([line[0] for line in lines])
    X = np.array([line[1:] for line in lines], dtype=np.float32)
    X = (X - X[:16000].mean(axis=0)) / X[:16000].std(axis=0)
    return X[:16000], y[:16000], X[16000:], y[16000:]


def linear_score(Z: np.ndarray, y: np.ndarray, held: np.ndarray, truth: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return max(LinearSVC(C=C, dual=False, tol=1e-2).fit(Z, y).score(held, truth) for C in (1, 10, 100))


def compare(name: str, task: Task | None, sizes: list[int], seeds: int) -> None:
    if task is None:
        return
    X, y, held, truth = task
    plain = linear_score(X, y, held, truth)
    print(f"{name}: {len(X)} rows, d = {X.shape[1]}, {len(np.unique(y))} classes; linear SVM {100 * plain:.1f}")
    print(f"{'features':>9}{'random':>9}{'learnt':>9}{'gain':>8}{'s':>8}")
    for k in sizes:
        random, learnt, took = [], [], 0.0
        for seed in range(seeds):
            map_ = FourierFeatures(k, gamma="neighbours", pairs=False, variant="iid", random_state=seed).fit(X)
            random.append(linear_score(map_.transform(X), y, map_.transform(held), truth))
            start = time.process_time()
            learnt.append(CompactClassifier(k, random_state=seed).fit(X, y).score(held, truth))
            took += time.process_time() - start
        a, b = 100 * np.mean(random), 100 * np.mean(learnt)
        print(f"{k:>9}{a:>9.1f}{b:>9.1f}{b - a:>+8.1f}{took / seeds:>8.1f}", flush=True)


def circulant(task: Task | None, seeds: int) -> None:
    if task is None:
        return
    X, y, held, truth = task
    d = X.shape[1]
    print(f"{'usps':>9}{'fourier':>9}{'random':>9}{'learnt':>9}   (random, learnt: circulant)")
    for k in (d, 2 * d):
        found: list[list[float]] = []
        for seed in range(seeds):
            row = []
            for variant in ("iid", "circulant"):
                map_ = FourierFeatures(k, gamma="neighbours", pairs=False, variant=variant, random_state=seed).fit(X)
                row.append(linear_score(map_.transform(X), y, map_.transform(held), truth))
            row.append(CompactClassifier(k, circulant=True, random_state=seed).fit(X, y).score(held, truth))
            found.append(row)
        shown = "".join(f"{100 * value:>9.2f}" for value in np.mean(found, axis=0))
        print(f"{f'k = {k // d}d':>9}{shown}", flush=True)


def kernel(task: Task, sizes: list[int], seeds: int) -> None:
    X, _, held, _ = task
    X, held = X[:2000], held[:1000]
    print("mean squared error of the kernel, strokes")
    print(f"{'features':>9}{'random':>10}{'learnt':>10}{'random':>10}{'learnt':>10}   (training rows, other rows)")
    for k in sizes:
        rows = []
        for seed in range(seeds):
            row = []
            for points in (X, held):
                for rate in (0.0, 0.02):
                    options = {"max_iter": 15 if rate else 1, "random_state": seed}
                    map_ = CompactNonlinearMap(k, "kernel", learning_rate=rate, **options).fit(X)
                    norms = (points**2).sum(axis=1)
                    squared = np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0)
                    row.append(np.mean((map_.gram(points) - np.exp(-map_.gamma_ * squared)) ** 2))
            rows.append(row)
        print(f"{k:>9}" + "".join(f"{value:>10.5f}" for value in np.mean(rows, axis=0)), flush=True)


def main() -> None:
    parts = ("strokes", "usps", "letter", "circulant", "kernel")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 32, 128])
    args = parser.parse_args()
    for part in args.parts:
        if part == "strokes":
            compare("strokes", strokes(), args.sizes, args.seeds)
        elif part == "usps":
            compare("usps", usps(), args.sizes, args.seeds)
        elif part == "letter":
            compare("letter", letter(), args.sizes, args.seeds)
        elif part == "circulant":
            circulant(usps(), args.seeds)
        else:
            kernel(strokes(), [k for k in args.sizes if k <= 64], args.seeds)


if __name__ == "__main__":
    main()
