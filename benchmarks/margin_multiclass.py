"""Multiclass margins: time to a relative primal-dual gap of 1e-4, beside liblinear's Crammer-Singer solver (-s 4).

    min_W  ½‖W‖² + C Σ_i max_c [1[c ≠ y_i] + ⟨w_c − w_{y_i}, x_i⟩]        no bias on either side

Run in an environment with mercer and the peer:

    pip install . liblinear-official
    python benchmarks/margin_multiclass.py [--data DIR] [--repeats 3] [--only news20,mnist,digits] [--smoke]

DIR (or MERCER_DATA) holds news20/news20.bz2 (LIBSVM format) and mnist/train-images-idx3-ubyte.gz and
train-labels-idx1-ubyte.gz. Rows of news20 are scaled to length 1 (as word counts neither solver is near the gap after
100 s), pixels to [0, 1].

The gap of a solver's weights is measured from outside, in NumPy: (P(W) − D) / P(W) with the best dual bound D known,
that of a run of ours to 1e-6. liblinear stops on the violation of its optimality conditions, so -e is lowered from 1
by factors of 0.7 until its weights have the gap; that -e, the largest of the series that gives it, is then timed. Ours
stops on its own certified gap. Repeats are interleaved. Given are medians of wall-clock seconds, and of processor
seconds, which a busy machine disturbs less. Without liblinear, our own times; digits are scikit-learn's.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import time
from pathlib import Path

import numpy as np
from _timing import from_data, missing, parse, record
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.preprocessing import normalize

from mercer.classification import LinearClassifier

GAP = 1e-4


def news20(folder: Path) -> tuple[csr_matrix, np.ndarray]:
    X, y = load_svmlight_file(str(folder / "news20" / "news20.bz2"))
    return normalize(X), np.unique(y, return_inverse=True)[1]


def mnist(folder: Path) -> tuple[csr_matrix, np.ndarray]:
    def read(pattern: str, offset: int) -> np.ndarray:
        path = next((folder / "mnist").glob(pattern), folder / "mnist" / pattern)
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=offset)

    pixels = read("train-images*", 16).reshape(-1, 784) / 255.0
    return csr_matrix(pixels), read("train-labels*", 8).astype(int)


def digits(folder: Path) -> tuple[csr_matrix, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return csr_matrix(X[:200] / 16.0), y[:200]


def primal(W: np.ndarray, X: csr_matrix, y: np.ndarray, C: float) -> float:
    """The objective at W of shape (labels, features)."""
    scores = X @ W.T
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores += 1.0
    scores[rows, y] -= 1.0
    return 0.5 * float((W * W).sum()) + C * float((scores.max(axis=1) - own).sum())


def clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def ours(X: csr_matrix, y: np.ndarray, C: float, threads: int, tol: float = GAP) -> tuple[np.ndarray, LinearClassifier]:
    model = LinearClassifier(C=C, fit_intercept=False, n_jobs=threads, random_state=0, tol=tol, max_iter=10**6)
    begin = clocks()
    model.fit(X, y)
    return clocks() - begin, model


class Liblinear:
    """The peer, its problem built once; training alone is timed."""

    def __init__(self, X: csr_matrix, y: np.ndarray, C: float) -> None:
        from liblinear.liblinear import parameter, problem
        from liblinear.liblinearutil import train

        self.problem, self.shape, self.C = problem(y.astype(float), X), (X.shape[1], int(y.max()) + 1), C
        self._train, self._parameter = train, parameter

    def __call__(self, e: float) -> tuple[np.ndarray, np.ndarray]:
        settings = self._parameter(f"-s 4 -c {self.C} -e {e} -q")
        begin = clocks()
        model = self._train(self.problem, settings)
        seconds = clocks() - begin
        found = np.ctypeslib.as_array(model.w, (self.shape[0] * self.shape[1],)).reshape(self.shape).T
        W = np.empty_like(found)
        W[model.get_labels()] = found
        return seconds, W


def measure(name: str, X: csr_matrix, y: np.ndarray, C: float, repeats: int) -> None:
    _, exact = ours(X, y, C, 2, 1e-6)
    bound, size = max(exact.history_["dual"]), f"{X.shape[0]:,} x {X.shape[1]:,}, C = {C:g}"
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {len(set(y))} classes, C = {C:g}; dual bound {bound:.8g}", flush=True)
    peer, e = None if missing("liblinear") else Liblinear(X, y, C), 1.0
    while peer is not None:
        seconds, W = peer(e)
        value = primal(W, X, y, C)
        print(f"  liblinear -e {e:<8.3g} {seconds[0]:8.2f} s   gap {(value - bound) / value:.2e}", flush=True)
        if value - bound <= GAP * value:
            break
        e *= 0.7
    rows = ("liblinear -s 4, 1 thread", "mercer, 1 thread", "mercer, 2 threads")
    times: dict[str, list[np.ndarray]] = {row: [] for row in (rows if peer is not None else rows[1:])}
    models = []
    for _ in range(repeats):
        if peer is not None:
            times[rows[0]].append(peer(e)[0])
        for threads, row in enumerate(rows[1:], 1):
            seconds, model = ours(X, y, C, threads)
            times[row].append(seconds)
            models.append(model)
    value = primal(models[0].coef_, X, y, C)
    same = all(np.array_equal(models[0].coef_, model.coef_) for model in models)
    print(f"  mercer: certified gap {models[0].history_['gap'][-1]:.2e}, measured {(value - bound) / value:.2e}")
    print(f"  the same weights for 1 and 2 threads: {same}")
    middle = {row: np.median(values, axis=0) for row, values in times.items()}
    one = middle[rows[1]]
    if peer is None:
        for row, (wall, cpu) in middle.items():
            print(f"  {row:26}{wall:9.2f} s, processor {cpu:.2f} s", flush=True)
            record("liblinear", f"{name}, {row}", ours=wall)
        return
    base = middle[rows[0]]
    heads = ("seconds", "liblinear / it", "1 thread / it", "processor s", "liblinear / it")
    print(" " * 28 + "".join(f"{head:>{width}}" for head, width in zip(heads, (9, 16, 15, 13, 16), strict=True)))
    for row, (wall, cpu) in middle.items():
        own = f"{one[0] / wall:14.2f}x" if row.startswith("mercer") else " " * 15
        if row.startswith("mercer"):
            record("liblinear", f"{name}, {row}", peer="liblinear -s 4", theirs=base[0], ours=wall, sizes=size)
        print(f"  {row:26}{wall:9.2f}{base[0] / wall:15.2f}x{own}{cpu:13.2f}{base[1] / cpu:15.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCER_DATA"), help="default: MERCER_DATA")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="news20,mnist")
    arguments = parse(parser, repeats=1, only="digits")
    folder = Path(arguments.data or "(MERCER_DATA is not set)")
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    # Rows of MNIST have a squared length of about 100; with C = 1 both solvers are far from the gap after a minute.
    for name, load, C in (("news20", news20, 1.0), ("mnist", mnist, 0.01), ("digits", digits, 0.1)):
        if name in arguments.only.split(","):
            with from_data(name):
                measure(name, *load(folder), C, arguments.repeats)


if __name__ == "__main__":
    main()
