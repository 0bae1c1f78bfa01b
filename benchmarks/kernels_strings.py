"""Kernels of strings: speed against other packages, growth with the length, and accuracy on DNA and questions.

    MERCER_DATA=... python benchmarks/kernels_strings.py [--parts speed linear accuracy] [--repeats 3] [--smoke]

speed      Gram matrices of splice sites (60 bases) and promoters (57 bases), beside strkernel 0.2 and strkernels
           0.2.15, which run in a process apart on as many strings as they can take. "equal" compares the matrices.
linear     one pair of strings from 10^3 to 10^6 symbols: time a symbol, and the exponent of the growth of the time (the
           call itself takes 0.1 to 0.2 ms, which is what short strings show: hence also the exponent from 10^4 on).
accuracy   support vector machines with kernels of strings: 10-fold cross-validation on splice sites and promoters, the
           given split of the TREC questions; the kernel's parameters and C are chosen within the training data. Beside
           it a linear support vector machine on one-hot positions, or on words.

Seconds are of the processor, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import SMOKE, Row, exponent, from_data, missing, parse, seconds, sized
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

from mercer.kernels import (
    AllSubstrings,
    EditDistance,
    Gappy,
    Kernel,
    Mismatch,
    NGram,
    Spectrum,
    Subsequence,
    WeightedDegree,
)

PEER = r"""
import json, sys, time
import numpy as np
request = json.load(sys.stdin)
strings, name, options = request["strings"], request["name"], request["options"]
if request["package"] == "strkernels":
    import strkernels
    kernel = getattr(strkernels, name)(**options)
    array = np.array(strings)
    kernel(array[:2], array[:2])
    start = time.process_time()
    K = kernel(array, array)
elif name == "mismatch":
    from strkernel.mismatch_kernel import MismatchKernel
    codes = [["ACGT".index(c) for c in s] for s in strings]
    start = time.process_time()
    K = MismatchKernel(l=4, **options).get_kernel(codes, normalize=False).kernel
else:
    from strkernel.gappy_kernel import gappypair_kernel
    start = time.process_time()
    F = gappypair_kernel(strings, **options)
    K = (F @ F.T).toarray()
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "K": np.asarray(K, float)[:20, :20].tolist()}))
"""

Compared = tuple[str, Kernel, str, str, dict[str, Any], int]

SPEED: list[Compared] = [  # what, ours, the peer's package and name, its options, how many strings it can take
    ("spectrum k = 3", Spectrum(3), "strkernel", "spectrum", {"k": 3, "g": 0}, 3190),
    ("spectrum 1 to 3", Spectrum(3, shortest=1).normalized(), "strkernels", "SpectrumStringKernel", {"order": 3}, 500),
    ("spectrum 1 to 5", Spectrum(5, shortest=1).normalized(), "strkernels", "SpectrumStringKernel", {"order": 5}, 106),
    ("mismatch k = 4, m = 1", Mismatch(4, 1, alphabet="ACGT"), "strkernel", "mismatch", {"k": 4, "m": 1}, 250),
    ("gappy k = 2, gap 2", Gappy(2, gap=2), "strkernel", "gappy", {"k": 1, "g": 2, "gapDifferent": False}, 3190),
    (
        "subsequences 1 to 3", Subsequence(3, 0.5, shortest=1).normalized(),
        "strkernels", "SubsequenceStringKernel", {"maxlen": 3, "ssk_lambda": 0.5}, 500,
    ),
    (
        "weighted degree 5", WeightedDegree(5).normalized(),
        "strkernels", "WeightedDegreeStringKernel", {"degree": 5}, 1000,
    ),
]  # fmt: skip
ALONE: list[tuple[str, Kernel]] = [
    ("all substrings", AllSubstrings()),
    ("mismatch k = 6, m = 2", Mismatch(6, 2, alphabet="ACGT")),
    ("weighted degree 20, shift 3", WeightedDegree(20, shift=3)),
    ("edit distance", EditDistance()),
]


def data(*parts: str) -> Path:
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        raise FileNotFoundError("MERCER_DATA is not set to the folder of data sets")
    return Path(folder, *parts)


def load_splice() -> tuple[list[str], np.ndarray]:
    rows = [line.split(", ") for line in data("splice", "keel-splice.dat").read_text().splitlines() if "," in line]
    rows = [row for row in rows if len(row) == 61]
    return ["".join(row[:-1]).upper() for row in rows], np.array([row[-1].strip() for row in rows])


def load_promoters() -> tuple[list[str], np.ndarray]:
    rows = [line.split(",") for line in data("promoters", "promoters.data").read_text().splitlines() if line.strip()]
    return [row[2].strip().upper() for row in rows], np.array([row[0].strip() for row in rows])


def load_questions(name: str) -> tuple[list[str], np.ndarray]:
    lines = data("trec-qc", name).read_text(encoding="latin-1").splitlines()
    pairs = [line.split(" ", 1) for line in lines if ":" in line]
    return [text for _, text in pairs], np.array([label.split(":")[0] for label, _ in pairs])


# ---------------------------------------------------------------------------------------------------- speed


def peer(package: str, name: str, options: dict[str, Any], strings: list[str]) -> tuple[float, np.ndarray] | None:
    """Seconds and the first entries of the matrix, from a process apart; None where the package is missing."""
    request = json.dumps({"package": package, "name": name, "options": options, "strings": strings})
    if missing(package):
        return None
    done = subprocess.run([sys.executable, "-c", PEER], input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{package} failed: {done.stderr.strip().splitlines()[-1]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], np.array(answer["K"])


def beside(
    kernel: Kernel, package: str, name: str, options: dict[str, Any], strings: list[str], repeats: int
) -> tuple[float, float, str]:
    """Median seconds of the peer (NaN where it is missing) and of ours, taken in turn, and whether values agree."""
    theirs, ours, equal = [], [], "?"
    for _ in range(repeats):
        answer = peer(package, name, options, strings)
        runs = [seconds(lambda: kernel(strings)) for _ in range(3)]
        ours += [run[0] for run in runs]
        if answer is not None:
            theirs.append(answer[0])
            equal = "yes" if np.allclose(answer[1], runs[0][1][:20, :20], rtol=1e-6) else "no"
    return float(np.median(theirs)) if theirs else np.nan, float(np.median(ours)), equal


def speed(repeats: int) -> None:
    splice = [x for x in load_splice()[0] if set(x) <= set("ACGT")][: sized(None, 40)]
    print("| kernel | data | strings | peer | peer s | ours s | ratio | equal |\n|---|---|---|---|---|---|---|---|")
    for what, kernel, package, name, options, most in SPEED:
        for data_name, strings in (("splice", splice[:most]), ("promoters", load_promoters()[0][: sized(None, 20)])):
            rounds = repeats if data_name == "promoters" or most > 500 else 1
            other, own, equal = beside(kernel, package, name, options, strings, rounds)
            figures = f"{other:.3f} | {own:.4f} | {other / own:.0f}" if equal != "?" else f"| {own:.4f} |"
            print(f"| {what} | {data_name} | {len(strings)} | {package} | {figures} | {equal} |", flush=True)
    print(f"\n| kernel | seconds, {len(splice)} splice sites |\n|---|---|")
    for what, kernel in [*((row[0], row[1]) for row in SPEED), *ALONE]:
        print(f"| {what} {kernel!r} | {seconds(lambda: kernel(splice))[0]:.3f} |", flush=True)  # noqa: B023


# ---------------------------------------------------------------------------------------------------- linear


def random_dna(random: np.random.Generator, n: int) -> str:
    return bytes(np.frombuffer(b"ACGT", np.uint8)[random.integers(0, 4, n)]).decode()


def random_text(random: np.random.Generator, n: int) -> str:
    words = [
        "".join(chr(97 + c) for c in random.integers(0, 26, random.integers(2, 9))) for _ in range(sized(2000, 100))
    ]
    chosen = random.zipf(1.3, n // 3) % len(words)
    return " ".join(words[c] for c in chosen)[:n].ljust(n)


def growth(kernel: Kernel, make: Callable[..., str], lengths: list[int], repeats: int) -> list[float]:
    """Median seconds of one pair of strings of each length."""
    times = []
    for n in lengths:
        random = np.random.default_rng(n)
        x, z = make(random, n), make(random, n)
        taken = [seconds(lambda: kernel.pair(x, z))[0] for _ in range(max(repeats, sized(30_000, 1) // n))]  # noqa: B023
        times.append(float(np.median(taken)))
    return times


def linear(repeats: int) -> None:
    lengths = sized([1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000], [100, 300, 1000])
    strings = {
        "DNA": random_dna,
        "text": random_text,
        "one letter": lambda random, n: "a" * n,
    }
    kernels = [AllSubstrings(), AllSubstrings(0.7), NGram(12, method="suffix"), NGram(12)]
    print(
        "| kernel | strings | ns a symbol at "
        + ", ".join(f"{n:.0e}" for n in lengths)
        + " | exponent | from 1e4 on |\n|---|---|---|---|---|"
    )
    for kernel in kernels:
        for name, make in strings.items():
            times = growth(kernel, make, lengths, repeats)
            slope, later = (exponent(lengths[i:], times[i:]) for i in (0, 2))
            each = ", ".join(f"{1e9 * t / (2 * n):.0f}" for t, n in zip(times, lengths, strict=True))
            print(f"| {kernel!r} | {name} | {each} | {slope:.3f} | {later:.3f} |", flush=True)


# ---------------------------------------------------------------------------------------------------- accuracy


def matrix_svc(
    kernels: list[Kernel], X: list[str], y: np.ndarray, train: np.ndarray, matrices: dict[int, np.ndarray]
) -> tuple[Kernel, np.ndarray, SVC]:
    """Kernel and C chosen on a quarter of the training strings, then fitted to all. Matrices are computed once."""
    for k, kernel in enumerate(kernels):
        if k not in matrices:
            matrices[k] = kernel(X)
    fitted, held_out = train_test_split(train, test_size=0.25, stratify=y[train], random_state=0)
    best = (-1.0, 0, 0.0)
    for k in range(len(kernels)):
        for C in sized((1.0, 10.0), (1.0,)):
            model = SVC(C=C, kernel="precomputed").fit(matrices[k][np.ix_(fitted, fitted)], y[fitted])
            score = model.score(matrices[k][np.ix_(held_out, fitted)], y[held_out])
            best = max(best, (score, -k, C))
    k = -best[1]
    return (
        kernels[k],
        matrices[k],
        SVC(C=best[2], kernel="precomputed").fit(matrices[k][np.ix_(train, train)], y[train]),
    )


def folds_accuracy(kernels: list[Kernel], X: list[str], y: np.ndarray, folds: StratifiedKFold) -> float:
    matrices: dict[int, np.ndarray] = {}
    scores = []
    for train, test in folds.split(X, y):
        _, K, model = matrix_svc(kernels, X, y, train, matrices)
        scores.append(model.score(K[np.ix_(test, train)], y[test]))
    return float(np.mean(scores))


def linear_svm(first: Any) -> GridSearchCV:
    grid = {"linearsvc__C": sized([0.01, 0.1, 1.0], [0.1])}
    return GridSearchCV(make_pipeline(first, LinearSVC()), grid, cv=StratifiedKFold(3, shuffle=True, random_state=0))


def accuracy(repeats: int) -> None:
    del repeats  # the folds are fixed
    print("| data | model | accuracy | s |\n|---|---|---|---|")
    folds = StratifiedKFold(sized(10, 2), shuffle=True, random_state=0)
    dna: dict[str, list[Kernel]] = {
        "blended spectrum": [Spectrum(k, shortest=1).normalized() for k in (3, 6)],
        "mismatch": [Mismatch(k, 1, alphabet="ACGT", unknown="skip").normalized() for k in (4, 6)],
        "weighted degree": [WeightedDegree(d, shift=s).normalized() for d, s in ((5, 0), (10, 1))],
    }
    for name, load in sized((("promoters", load_promoters), ("splice", load_splice)), (("promoters", load_promoters),)):
        X, y = load()
        letters = np.array([list(x) for x in X])
        baseline = linear_svm(OneHotEncoder(handle_unknown="ignore"))
        took, scores = seconds(lambda: cross_val_score(baseline, letters, y, cv=folds))  # noqa: B023
        print(f"| {name} | linear SVM, one-hot positions | {scores.mean():.3f} | {took:.1f} |", flush=True)
        for what, kernels in dna.items():
            took, score = seconds(lambda: folds_accuracy(kernels, X, y, folds))  # noqa: B023
            print(f"| {name} | SVM, {what} | {score:.3f} | {took:.1f} |", flush=True)
    questions()


def questions() -> None:
    (X, y), (Z, labels) = (load_questions(f"{part}.txt") for part in ("train", "test"))
    X, y, Z, labels = (part[: sized(None, 120)] for part in (X, y, Z, labels))
    words = linear_svm(CountVectorizer(token_pattern=r"\S+"))
    took, score = seconds(lambda: words.fit(X, y).score(Z, labels))
    print(f"| TREC questions | linear SVM, words | {score:.3f} | {took:.1f} |", flush=True)
    families: dict[str, list[Kernel]] = {
        "n-grams of words": [Spectrum(n, shortest=1, unit="word").normalized() for n in (1, 2)],
        "n-grams of characters": [Spectrum(n, shortest=2).normalized() for n in (4, 5)],
    }
    for what, kernels in families.items():
        start = time.process_time()
        kernel, _, model = matrix_svc(kernels, X, y, np.arange(len(X)), {})
        score = model.score(kernel(Z, X), labels)
        print(
            f"| TREC questions | SVM, {what}: {kernel!r} | {score:.3f} | {time.process_time() - start:.1f} |",
            flush=True,
        )


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py; random strings where there are no data sets."""
    random = np.random.default_rng(0)
    if os.environ.get("MERCER_DATA") and not SMOKE:
        sets = {"splice": [x for x in load_splice()[0] if set(x) <= set("ACGT")], "promoters": load_promoters()[0]}
    else:
        sets = {"random DNA": [random_dna(random, 60) for _ in range(sized(3190, 30))]}
    for what, kernel, package, name, options, most in SPEED:
        least = 20.0 if package == "strkernel" else 10.0
        for title, strings in sets.items():
            some = strings[: min(most, 100) if quick and most < 3190 else most]
            theirs, ours, equal = beside(kernel, package, name, options, some, repeats if most > 500 else 1)
            note = {"yes": "values agree", "no": "values differ", "?": f"{package} is not installed"}[equal]
            measure = f"{what}, {len(some)} x {title}"
            yield Row(measure, package, theirs, ours, f"≥ {least:.0f}x", least, note=note)
    lengths = sized([10_000, 31_623, 100_000, 316_228, 1_000_000], [100, 1000])
    times = growth(AllSubstrings(), random_dna, lengths, 3)
    slope = exponent(lengths, times)
    yield Row(
        f"all substrings, {lengths[0]:.0e} to {lengths[-1]:.0e} symbols", "", np.nan, times[-1], "exponent 1 ± 0.1",
        reached=abs(slope - 1.0) <= 0.1, note=f"exponent {slope:.3f}",
    )  # fmt: skip


PARTS = {"speed": speed, "linear": linear, "accuracy": accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description="kernels of strings: speed, growth, accuracy")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, repeats=1)
    for part in options.parts:
        print(f"\n## {part}\n", flush=True)
        with from_data(part):
            PARTS[part](options.repeats)


if __name__ == "__main__":
    main()
