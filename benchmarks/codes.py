"""Binary codes: time against full and bilinear projections and against d, recall of the four embeddings.

    [MERCER_DATA=...] python benchmarks/codes.py [--parts long growth recall] [--repeats 3] [--largest 24]

long     codes of 25,600 bits of vectors of 25,600 entries, float32: circulant, bilinear, full projection. The full one
         is measured on 2,560 of its 25,600 directions (262 MB instead of 2.6 GB), in batches of 64, and scaled by ten.
growth   circulant codes with d = k = 2^10 … 2^24, and the exponent fitted to the times; beside table 3.2 of the source
recall   recall@10 and @50 of dense (LSH), bilinear and circulant codes, random and learned, at equal bits; 10
         true neighbours by angle, rows centred and of length 1: digits of scikit-learn; MNIST, SIFT and GloVe of
         MERCER_DATA

Times are processor milliseconds a vector on one thread, packing included.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from mercer.retrieval import BilinearEmbedding, CirculantEmbedding, HammingIndex, SignProjection, recall_at

PRINTED = {  # table 3.2: log2 d → (full, bilinear, circulant), ms a vector on one core of 2.9 GHz
    15: (544.0, 2.85, 1.11), 17: (None, 19.1, 4.23), 20: (None, 376.0, 37.7), 24: (None, 12_200.0, 810.0),
}  # fmt: skip


def timed(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def long_codes(repeats: int) -> None:
    """25,600 bits of 25,600 entries."""
    d, share, n = 25_600, 10, 256
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    circulant = CirculantEmbedding(d, random_state=0).fit(X[:1])
    bilinear = BilinearEmbedding(d, random_state=0).fit(X[:1])
    full = SignProjection(d // share, random_state=0).fit(X[:1])
    circulant.transform(X[:2])
    calls: dict[str, tuple[Callable[[], Any], float]] = {
        "circulant": (lambda: circulant.transform(X), n),
        "circulant, one at a time": (lambda: [circulant.transform(X[i : i + 1]) for i in range(32)], 32),
        "bilinear": (lambda: bilinear.transform(X[:64]), 64),
        "full": (lambda: full.transform(X[:64]), 64 / share),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, (call, vectors) in calls.items():
            times[name].append(1e3 * timed(call) / vectors)
    best = float(np.median(times["circulant"]))
    for name, found in times.items():
        value = float(np.median(found))
        ratio = f"{value / best:7.1f} times that of circulant"
        print(f"long     25,600 bits: {name:26} {value:9.4f} ms/vector, {ratio}", flush=True)


def growth(largest: int, repeats: int) -> None:
    """Time against d."""
    sizes, times = [], []
    for log in range(10, largest + 1, 2):
        d = 1 << log
        rows = max(2, min(256, (1 << 23) >> log))
        X = np.random.default_rng(0).standard_normal((rows, d), dtype=np.float32)
        model = CirculantEmbedding(d, random_state=0).fit(X[:1])
        model.transform(X)
        value = 1e3 * float(np.median([timed(lambda m=model, X=X: m.transform(X)) for _ in range(repeats)])) / rows
        sizes.append(d)
        times.append(value)
        printed = PRINTED.get(log)
        beside = f"; printed: bilinear {printed[1]:,}, circulant {printed[2]:,}" if printed else ""
        print(f"growth   d = 2^{log}: {value:10.4f} ms/vector{beside}", flush=True)
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"growth   time ~ d^{slope:.3f}", flush=True)


def collections() -> dict[str, np.ndarray]:
    """Rows, as many as a quick run can use."""
    from sklearn.datasets import load_digits

    found: dict[str, np.ndarray] = {"digits": load_digits().data}
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("recall   MERCER_DATA is not set: digits only")
        return found
    root = Path(home)
    mnist = sorted((root / "mnist").glob("train-images*"))
    if mnist:
        with gzip.open(mnist[0]) as file:
            pixels = np.frombuffer(file.read(16 + 784 * 6000), np.uint8, offset=16)
        found["MNIST"] = pixels.reshape(-1, 784).astype(float)
    for name, path, columns in (
        ("SIFT", root / "sift5k" / "sift-dataset-5k.tsv.gz", range(128)),
        ("GloVe", root / "glove" / "glove.6B.100d.first20000.txt.gz", range(1, 101)),
    ):
        if path.exists():
            found[name] = np.loadtxt(path, usecols=columns, max_rows=6000, comments=None)
    return found


def recall(repeats: int) -> None:
    """Recall of the embeddings on each collection."""
    for name, X in collections().items():
        X = X[np.random.default_rng(0).permutation(len(X))]
        X = X - X.mean(axis=0)
        X = (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)).astype(np.float32)
        queries, base = X[:300], X[300:]
        truth = np.argsort(-(queries @ base.T), axis=1)[:, :10]
        bits = min(256, X.shape[1])
        embeddings = {
            "LSH": SignProjection(bits),
            "bilinear": BilinearEmbedding(bits),
            "bilinear, learned": BilinearEmbedding(bits, "learned"),
            "circulant": CirculantEmbedding(bits),
            "circulant, learned": CirculantEmbedding(bits, "learned"),
        }
        for label, embedding in embeddings.items():
            rates = []
            for seed in range(repeats):
                model = embedding.set_params(random_state=seed).fit(base[:2000])
                ids = HammingIndex(model.transform(base), n_bits=bits).search(model.transform(queries), k=50)[1]
                rates.append(list(recall_at(ids, truth, (10, 50)).values()))
            at10, at50 = np.mean(rates, axis=0)
            what = f"{name:7} {len(base):6,} × {X.shape[1]:4}, {bits} bits, {label:19}"
            print(f"recall   {what} @10 {at10:.3f}  @50 {at50:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["long", "growth", "recall"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=24, help="log2 of the largest d of growth")
    options = parser.parse_args()
    if "long" in options.parts:
        long_codes(options.repeats)
    if "growth" in options.parts:
        growth(options.largest, options.repeats)
    if "recall" in options.parts:
        recall(options.repeats)


if __name__ == "__main__":
    main()
