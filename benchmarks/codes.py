"""Binary codes: time against full and bilinear projections and against d, recall of the embeddings.

    [MERCER_DATA=...] python benchmarks/codes.py [--parts long growth recall large time classes] [--repeats 3]
                                                 [--largest 24]
                                                 [--sets digits MNIST Fashion CIFAR SIFT GloVe text]

long     codes of 25,600 bits of vectors of 25,600 entries, float32: circulant, bilinear, full projection. The full one
         is measured on 2,560 of its 25,600 directions (262 MB instead of 2.6 GB), in batches of 64, and scaled by ten.
growth   circulant codes with d = k = 2^10 … 2^24, and the exponent fitted to the times; beside table 3.2 of the source
recall   recall@10, @50 and @100 of dense (LSH), bilinear and circulant codes, random and learned, and of the baselines
         iterative quantization (ITQ), spectral hashing and shift-invariant kernels (SKLSH) where d ≤ 3,100, at equal
         bits; 10 true neighbours by angle, 300 queries, learning from 2,000 other rows, all centred and of length 1;
         "as printed" is the rule B = 0 of the source for outputs beyond the bits
large    the same among 149,500 patches (12 × 12 pixels of 3 colours, 25 of each image of the part of CIFAR-10; those of
         20 images are queries) and 89,500 images (MNIST and 20,000 of Fashion-MNIST), learning from 10,000 rows, 500
         queries: the protocol of the source, whose images of 25,600 features are not public; seconds of learning and
         microseconds a code beside it
time     the same where all embeddings have the time of d circulant bits: the others get as many bits as fit into it
classes  a linear support vector machine on codes, tested on codes (symmetric) and on real projections (asymmetric); 100
         training, 50 validation (for C) and 50 test rows of each class; in the shape of table 3.3 of the source

Sets: digits of scikit-learn; MNIST, Fashion-MNIST, a part of CIFAR-10 (pixels), SIFT, GloVe and 20 newsgroups, hashed
to 16,384 columns, of MERCER_DATA.

Times are processor milliseconds a vector on one thread, packing included.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tarfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import exponent, parse, record, sized, spread
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from mercer.maps import TextHasher
from mercer.retrieval import (
    BilinearEmbedding,
    CirculantEmbedding,
    HammingIndex,
    IterativeQuantization,
    ShiftInvariantHashing,
    SignProjection,
    SpectralHashing,
    recall_at,
)

SETS = ("digits", "MNIST", "Fashion", "CIFAR", "SIFT", "GloVe", "text")
NAMES = {"Fashion": "Fashion-MNIST", "CIFAR": "CIFAR-10, pixels", "text": "text, hashed"}  # on the page of results
TITLES = {"LSH": "dense (LSH)", "as printed": "rule B = 0"}
LABELLED = ("digits", "MNIST", "Fashion", "CIFAR", "text")
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
    d, share, n = sized((25_600, 10, 256), (320, 10, 64))
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
        if not name.startswith("circulant"):
            record("long", f"{d:,} bits, beside {name}", peer=f"{name} projection", theirs=value, ours=best, unit="ms")
        print(f"long     {d:,} bits: {name:26} {value:9.4f} ms/vector, {ratio}", flush=True)


def growth(largest: int, repeats: int) -> None:
    """Time against d."""
    sizes, times = [], []
    for log in range(sized(10, 4), largest + 1, 2):
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
        record("growth", f"d = 2^{log}", ours=value, unit="ms")
        print(f"growth   d = 2^{log}: {value:10.4f} ms/vector{beside}", flush=True)
    print(f"growth   time ~ d^{exponent(sizes, times):.3f}", flush=True)


def bytes_of(path: Path, offset: int, width: int, most: int = 6000) -> np.ndarray:
    """Rows of a file of bytes."""
    with gzip.open(path) as file:
        found = np.frombuffer(file.read(offset + width * most), np.uint8, offset=offset)
    return found.reshape(-1, width)


def posts(path: Path, most: int, columns: int = 14) -> tuple[np.ndarray, np.ndarray]:
    """Hashed posts of the ten first newsgroups, and their groups."""
    texts, groups = [], []
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                texts.append(archive.extractfile(member).read().decode("latin-1"))  # type: ignore[union-attr]
                groups.append(member.name.split("/")[-2])
    names = sorted(set(groups))[:10]
    chosen = [i for i in np.random.default_rng(0).permutation(len(texts)) if groups[i] in names][:most]
    hasher = TextHasher(n_bits=columns, weighting="tfidf", norm="l2", dtype=np.float32)
    X = hasher.fit_transform([texts[i] for i in chosen])
    return X.toarray(), np.array([names.index(groups[i]) for i in chosen])


def collection(name: str) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Rows, as many as a quick run can use, and labels where there are any."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[: sized(None, 600)], y[: sized(None, 600)]
    home = os.environ.get("MERCER_DATA")
    if not home:
        print(f"{name}: MERCER_DATA is not set; skipped")
        return None
    root = Path(home)
    if name in ("MNIST", "Fashion"):
        folder = root / ("mnist" if name == "MNIST" else "fashion-mnist")
        images, labels = (min(folder.glob(f"train-{what}*")) for what in ("images", "labels"))
        return bytes_of(images, 16, 784), bytes_of(labels, 8, 1)[:, 0]
    if name == "CIFAR":
        rows = bytes_of(root / "cifar10-subset" / "train_batch_500perclass.bin.gz", 0, 3073)
        return rows[:, 1:], rows[:, 0]
    if name == "SIFT":
        return np.loadtxt(root / "sift5k" / "sift-dataset-5k.tsv.gz", usecols=range(128)), None
    if name == "GloVe":
        path = root / "glove" / "glove.6B.100d.first20000.txt.gz"
        return np.loadtxt(path, usecols=range(1, 101), max_rows=6000, comments=None), None
    return posts(root / "20newsgroups" / "20news-bydate-train.tar.gz", 2500)


def on_the_sphere(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Centred rows of length 1."""
    X = X.astype(np.float32) - mean.astype(np.float32)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def shuffled(X: np.ndarray) -> np.ndarray:
    """Rows in a random order, centred and of length 1."""
    return on_the_sphere(X[np.random.default_rng(0).permutation(len(X))], X.mean(axis=0, dtype=np.float64))


def embeddings(bits: int, d: int) -> dict[str, Any]:
    """All that are compared."""
    found = {
        "LSH": SignProjection(bits),
        "bilinear": BilinearEmbedding(bits),
        "bilinear, learned": BilinearEmbedding(bits, "learned"),
        "circulant": CirculantEmbedding(bits),
        "circulant, learned": CirculantEmbedding(bits, "learned"),
    }
    if d <= 3100:
        if bits <= min(d, 1000):  # of fewer rows than bits it cannot learn
            found["ITQ"] = IterativeQuantization(bits)
        found["spectral hashing"] = SpectralHashing(bits)
        found["SKLSH"] = ShiftInvariantHashing(bits)
    if bits < d:
        found["as printed"] = CirculantEmbedding(bits, "learned", rest="zero")
    return found


def rates(embedding: Any, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, repeats: int) -> tuple[float, str]:
    """Mean recall@10 over seeds, and a line with that at 10, 50 and 100."""
    found = []
    for seed in range(repeats):
        model = seeded(embedding, seed).fit(base[:2000])
        index = HammingIndex(model.transform(base), n_bits=model.n_bits)
        found.append(list(recall_at(index.search(model.transform(queries), k=100)[1], truth, (10, 50, 100)).values()))
    mean, deviation = np.mean(found, axis=0), np.std(found, axis=0)
    shown = f"@10 {mean[0]:.3f} ± {deviation[0]:.3f}  @50 {mean[1]:.3f}  @100 {mean[2]:.3f}"
    return round(float(mean[0]), 3), shown


def neighbours(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to search in, queries, and their ten nearest."""
    X = shuffled(X)
    return X[300:], X[:300], np.argsort(-(X[:300] @ X[300:].T), axis=1)[:, :10]


def recall(sets: list[str], repeats: int) -> None:
    """Recall of the embeddings at equal bits."""
    for name in sets:
        found = collection(name)
        if found is None:
            continue
        base, queries, truth = neighbours(found[0])
        d = base.shape[1]
        for bits in sorted({d // 2 if d <= 256 else 256, d if d < 5000 else 2048}):
            columns = {}
            for label, embedding in embeddings(bits, d).items():
                what = f"{name:7} {len(base):6,} × {d:5}, {bits:5} bits, {label:19}"
                columns[TITLES.get(label, label)], shown = rates(embedding, base, queries, truth, repeats)
                print(f"recall   {what} {shown}", flush=True)
            record("recall", f"{NAMES.get(name, name)}, {d:,} columns, {bits:,} bits", values=columns)


def seeded(embedding: Any, seed: int) -> Any:
    """A copy with a seed, where it draws anything."""
    copy = clone(embedding)
    return copy.set_params(random_state=seed) if "random_state" in copy.get_params() else copy


def images(root: Path) -> np.ndarray:
    """All images of MNIST and the part of Fashion-MNIST, in a random order."""
    files = [path for name in ("mnist", "fashion-mnist") for path in sorted((root / name).glob("*images*"))]
    X = np.concatenate([bytes_of(path, 16, 784, sized(60_000, 500)) for path in files])
    return X[np.random.default_rng(0).permutation(len(X))]


def patches(root: Path) -> np.ndarray:
    """Patches of the images of CIFAR-10 at 5 × 5 places: first those of 20 images, the others in a random order."""
    files = sorted((root / "cifar10-subset").glob("*.bin.gz"))
    rows = np.concatenate([bytes_of(path, 0, 3073, sized(6000, 100)) for path in files])[:, 1:]
    rng = np.random.default_rng(0)
    pictures = rows[rng.permutation(len(rows))].reshape(-1, 3, 32, 32)
    cut = [pictures[:, :, i : i + 12, j : j + 12] for i in range(0, 21, 5) for j in range(0, 21, 5)]
    X = np.stack(cut, axis=1).reshape(25 * len(rows), -1)
    return np.r_[X[:500], X[500:][rng.permutation(len(X) - 500)]]


def large(repeats: int) -> None:
    """Recall among many rows, by the protocol of the source."""
    home = os.environ.get("MERCER_DATA")
    if not home:
        print("large: MERCER_DATA is not set; skipped")
        return
    for name, read in (("patches", patches), ("images", images)):
        search_among(name, read(Path(home)), repeats)


def search_among(name: str, X: np.ndarray, repeats: int) -> None:
    """Recall of all embeddings: the first rows are queries, the next ones are learned from."""
    n_queries, n_learned = 500, sized(10_000, 300)
    X = on_the_sphere(X, X[n_queries : n_queries + n_learned].mean(axis=0))
    queries, base = X[:n_queries], X[n_queries:]
    truth = np.stack([np.argpartition(-(base @ q), 10)[:10] for q in queries])
    for bits in sized((64, 256, X.shape[1]), (64,)):
        for label, embedding in embeddings(bits, base.shape[1]).items():
            found, learning, coding = [], [], []
            for seed in range(repeats):
                model = seeded(embedding, seed)
                learning.append(timed(partial(model.fit, base[:n_learned])))
                start = time.process_time()
                codes = model.transform(base)
                coding.append(1e6 * (time.process_time() - start) / len(base))
                ids = HammingIndex(codes, n_bits=bits).search(model.transform(queries), k=100)[1]
                found.append(list(recall_at(ids, truth, (10, 50, 100)).values()))
            mean, deviation = np.mean(found, axis=0), np.std(found, axis=0)
            columns = {
                f"recall@{k}": spread(part, 3) for k, part in zip((10, 50, 100), np.transpose(found), strict=True)
            }
            columns |= {"learning, s": round(min(learning), 2), "a code, µs": round(min(coding), 2)}
            record("large", f"{len(base):,} {name}, {bits} bits, {label}", values=columns)
            rate = f"@10 {mean[0]:.3f} ± {deviation[0]:.3f}  @50 {mean[1]:.3f}  @100 {mean[2]:.3f} ± {deviation[2]:.3f}"
            times = f"learned in {min(learning):6.2f} s, {min(coding):6.2f} µs a code"
            print(
                f"large    {name} {len(base):,} × {base.shape[1]}, {bits:4} bits, {label:19} {rate}  {times}",
                flush=True,
            )


def encoding_time(embedding: Any, X: np.ndarray) -> float:
    """Processor microseconds a vector, in the best of some runs."""
    model = seeded(embedding, 0)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=1)
    model.fit(X)
    model.transform(X[:2])
    return 1e6 * min(timed(lambda: model.transform(X)) for _ in range(9)) / len(X)


def equal_time(sets: list[str], repeats: int) -> None:
    """Recall where all have the time of d circulant bits."""
    for name in sets:
        found = collection(name)
        if found is None:
            continue
        base, queries, truth = neighbours(found[0])
        d, some = base.shape[1], base[:1000]
        limit = encoding_time(CirculantEmbedding(d), some)
        columns = {}
        for label, embedding in embeddings(d, d).items():
            bits, taken = d, limit
            if not label.startswith("circulant"):
                kind = type(embedding)
                bits = 2048 if d > 5000 and kind is SignProjection else d  # a matrix of d × d would be a gigabyte
                while (taken := encoding_time(kind(bits), some)) > limit and bits > 1:
                    bits = max(1, min(int(bits * limit / taken) + 1, bits - 1))
                embedding.set_params(n_bits=bits)
            what = f"{name:7} {len(base):6,} × {d:5}, {taken:7.1f} µs, {bits:5} bits, {label:19}"
            value, shown = rates(embedding, base, queries, truth, repeats)
            columns[TITLES.get(label, label)] = f"{value:.3f} ({bits:,} bits)"
            print(f"time     {what} {shown}", flush=True)
        record("equal time", f"{NAMES.get(name, name)}, {limit:.2g} µs", values=columns)


def accuracy(train: np.ndarray, y: np.ndarray, tests: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """Accuracy on the second of each pair of tests by the C that does best on the first."""
    models = {C: LinearSVC(C=C, tol=1e-2, max_iter=300, random_state=0).fit(train, y) for C in (0.3, 3.0, 30.0)}
    half = len(tests[0][0]) // 2
    answers = []
    for rows, labels in tests:
        best = max(models, key=lambda C: models[C].score(rows[:half], labels[:half]))
        answers.append(100 * models[best].score(rows[half:], labels[half:]))
    return answers


def of_each_class(y: np.ndarray, counts: tuple[int, int], seed: int) -> list[np.ndarray]:
    """Rows of every class, in a random order within parts of the counts."""
    order = np.random.default_rng(seed).permutation(len(y))
    ends = np.cumsum((0, *counts))
    places = [order[y[order] == c] for c in np.unique(y)]
    parts = [np.concatenate([p[a:b] for p in places]) for a, b in pairwise(ends)]
    return [np.random.default_rng(seed).permutation(part) for part in parts]


def classes(sets: list[str], repeats: int) -> None:
    """Classification on codes, symmetric and asymmetric."""
    print("classes  printed (ImageNet-25600, 25,600 bits, asymmetric): original 25.59 ± 0.33, LSH 23.49 ± 0.24, "
          "bilinear learned 24.02 ± 0.35, circulant learned 24.55 ± 0.30")  # fmt: skip
    for name in sets:
        found = collection(name) if name in LABELLED else None
        if found is None or found[1] is None:
            continue
        X, y = found
        bits = min(X.shape[1], 4096)
        results: dict[str, list[list[float]]] = {}
        for seed in range(repeats):
            train, rest = of_each_class(y, sized((100, 70 if name == "digits" else 100), (20, 20)), seed)
            rows, held = (on_the_sphere(X[part], X[train].mean(axis=0)) for part in (train, rest))
            plain = accuracy(rows, y[train], [(held, y[rest])])
            results.setdefault("original", []).append([plain[0], plain[0]])
            for label, embedding in embeddings(bits, bits).items():
                model = seeded(embedding, seed).fit(rows)
                codes, near = (model.transform(part, packed=False) / np.sqrt(bits) for part in (rows, held))
                real = model.project(held)
                real /= np.linalg.norm(real, axis=1, keepdims=True)
                tests = [(near, y[rest]), (real, y[rest])]
                results.setdefault(label, []).append(accuracy(codes, y[train], tests))
        rows: dict[str, dict[str, Any]] = {"asymmetric": {}, "symmetric": {}}
        for label, values in results.items():
            mean, deviation = np.mean(values, axis=0), np.std(values, axis=0)
            for kind, part in zip(("symmetric", "asymmetric"), np.transpose(values), strict=True):
                if (label, kind) != ("original", "symmetric"):
                    rows[kind][label] = spread(part, 2)
            shown = f"symmetric {mean[0]:5.2f} ± {deviation[0]:4.2f}  asymmetric {mean[1]:5.2f} ± {deviation[1]:4.2f}"
            print(f"classes  {name:7} d = {X.shape[1]:6,}, {bits:5,} bits, {label:19} {shown}", flush=True)
        for kind, columns in rows.items():
            record("classes", f"{NAMES.get(name, name)}, {bits:,} bits, {kind}", values=columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["long", "growth", "recall", "large", "time", "classes"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=24, help="log2 of the largest d of growth")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parse(parser, repeats=1, largest=8, sets=["digits"])
    if "long" in options.parts:
        long_codes(options.repeats)
    if "growth" in options.parts:
        growth(options.largest, options.repeats)
    if "recall" in options.parts:
        recall(options.sets, options.repeats)
    if "large" in options.parts:
        large(options.repeats)
    if "time" in options.parts:
        equal_time(options.sets, options.repeats)
    if "classes" in options.parts:
        classes(options.sets, options.repeats)


if __name__ == "__main__":
    main()
