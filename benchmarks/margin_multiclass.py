"""Multiclass margins: time to a relative primal-dual gap of 1e-4, beside liblinear's Crammer-Singer solver (-s 4).

    min_W  ½‖W‖² + C Σ_i max_c [1[c ≠ y_i] + ⟨w_c − w_{y_i}, x_i⟩]        no bias on either side

Run in an environment with mercer and the peer:

    pip install . liblinear-official
    python benchmarks/margin_multiclass.py --data DIR [--repeats 3] [--only news20,mnist]

DIR holds news20/news20.bz2 (LIBSVM format) and mnist/train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz. Rows of news20
are scaled to length 1 (as word counts both solvers need minutes), pixels to [0, 1].

The gap of a solver's weights is measured from outside, in NumPy: (P(W) − D) / P(W) with the best dual bound D known, that of a run
of ours to 1e-6. liblinear stops on the violation of its optimality conditions, so -e is lowered from 1 by factors of 0.7 until its weights
have the gap; the largest -e that gives it is then timed. Ours stops on its own certified gap. Repeats are interleaved; medians.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import statistics
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

from mercer.classification import LinearClassifier

GAP = 1e-4


def news20(folder: Path) -> tuple[csr_matrix, np.ndarray]:
    X, y = load_svmlight_file(str(folder / "news20" / "news20.bz2"))
    return normalize(X), np.unique(y, return_inverse=True)[1]


def mnist(folder: Path) -> tuple[csr_matrix, np.ndarray]:
    def read(pattern: str, offset: int) -> np.ndarray:
        [path] = (folder / "mnist").glob(pattern)
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=offset)

    pixels = read("train-images*", 16).reshape(-1, 784) / 255.0
    return csr_matrix(pixels), read("train-labels*", 8).astype(int)


def primal(W: np.ndarray, X: csr_matrix, y: np.ndarray, C: float) -> float:
    """The objective at W of shape (labels, features)."""
    scores = X @ W.T
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores += 1.0
    scores[rows, y] -= 1.0
    return 0.5 * float((W * W).sum()) + C * float((scores.max(axis=1) - own).sum())


def ours(X: csr_matrix, y: np.ndarray, C: float, threads: int, tol: float = GAP) -> tuple[float, LinearClassifier]:
    model = LinearClassifier(C=C, fit_intercept=False, n_jobs=threads, random_state=0, tol=tol, max_iter=10**6)
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin, model


class Liblinear:
    """The peer, its problem built once; training alone is timed."""

    def __init__(self, X: csr_matrix, y: np.ndarray, C: float) -> None:
        from liblinear.liblinear import parameter, problem
        from liblinear.liblinearutil import train

        self.problem, self.shape, self.C = problem(y.astype(float), X), (X.shape[1], int(y.max()) + 1), C
        self._train, self._parameter = train, parameter

    def __call__(self, e: float) -> tuple[float, np.ndarray]:
        settings = self._parameter(f"-s 4 -c {self.C} -e {e} -q")
        begin = time.perf_counter()
        model = self._train(self.problem, settings)
        seconds = time.perf_counter() - begin
        found = np.ctypeslib.as_array(model.w, (self.shape[0] * self.shape[1],)).reshape(self.shape).T
        W = np.empty_like(found)
        W[model.get_labels()] = found
        return seconds, W


def measure(name: str, X: csr_matrix, y: np.ndarray, C: float, repeats: int) -> None:
    _, exact = ours(X, y, C, 2, 1e-6)
    bound = max(exact.history_["dual"])
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {len(set(y))} classes, C = {C:g}; dual bound {bound:.8g}", flush=True)
    peer, e = Liblinear(X, y, C), 1.0
    while True:
        seconds, W = peer(e)
        value = primal(W, X, y, C)
        print(f"  liblinear -e {e:<8.3g} {seconds:8.2f} s   gap {(value - bound) / value:.2e}", flush=True)
        if value - bound <= GAP * value:
            break
        e *= 0.7
    times: dict[str, list[float]] = {"liblinear -s 4, 1 thread": [], "mercer, 1 thread": [], "mercer, 2 threads": []}
    weights = []
    for _ in range(repeats):
        times["liblinear -s 4, 1 thread"].append(peer(e)[0])
        for threads in (1, 2):
            seconds, model = ours(X, y, C, threads)
            times[f"mercer, {threads} thread" + "s" * (threads > 1)].append(seconds)
            weights.append(model)
    value = primal(weights[0].coef_, X, y, C)
    same = all(np.array_equal(weights[0].coef_, model.coef_) for model in weights)
    print(f"  mercer: certified gap {weights[0].history_['gap'][-1]:.2e}, measured {(value - bound) / value:.2e}; "
          f"the same weights for 1 and 2 threads: {same}")
    base = statistics.median(times["liblinear -s 4, 1 thread"])
    one = statistics.median(times["mercer, 1 thread"])
    print(f"  {'':28}{'median s':>10}{'times liblinear':>18}{'times 1 thread':>16}")
    for row, values in times.items():
        middle = statistics.median(values)
        own = f"{one / middle:15.2f}x" if row.startswith("mercer") else ""
        print(f"  {row:28}{middle:10.2f}{base / middle:17.2f}x{own}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="news20,mnist")
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    # C of about the best accuracy on held-out data; rows of MNIST have a squared length of about 100.
    for name, load, C in (("news20", news20, 1.0), ("mnist", mnist, 0.01)):
        if name in arguments.only.split(","):
            measure(name, *load(arguments.data), C, arguments.repeats)


if __name__ == "__main__":
    main()
