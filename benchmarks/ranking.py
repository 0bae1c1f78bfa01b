"""Ranking: time of the pairwise ranker against explicit pairs, and measures trained directly against the hinge.

Part ``time``: the objective ½‖w‖² + C Σ over pairs of the hinge, five grades, C = 100 / number of pairs. Mercer never
writes the pairs down; the peer is scikit-learn's LinearSVC (liblinear) on the differences of all pairs, up to the size
at which they fit in memory. Both stop at their default tolerances; the objectives are printed beside the times, which
are medians over interleaved repeats.

Part ``rare``: 2 % positives. Linear models trained for ROC area, average precision, F1 and with the plain hinge (also
with balanced class weights) are compared by all three measures on test data (by F1 only those that have a threshold).
Every C is chosen on validation data by the measure of the column. Mean and standard deviation over seeds, and in how
many of them the model trained for the measure beats the plain hinge.

    python benchmarks/ranking.py [--parts time rare] [--repeats 3] [--seeds 10]
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import sklearn
from _timing import parse, record, sized, spread
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.svm import LinearSVC

from mercer.ranking import Ranker
from mercer.ranking.risks import RankingRisk

warnings.simplefilter("ignore")


# ---------------------------------------------------------------------------------------------- time


def graded(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    X = random.normal(size=(n, d))
    hidden = X @ random.normal(size=d) + 3.0 * random.normal(size=n)
    return X, np.digitize(hidden, np.quantile(hidden, [0.2, 0.4, 0.6, 0.8]))


def explicit_pairs(X: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    i, j = np.nonzero(y[:, None] > y[None, :])
    sign = np.where(np.arange(len(i)) % 2, 1, -1)
    differences = (X[i] - X[j]) * sign[:, None]
    return LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=10**5).fit(differences, sign).coef_[0]


def seconds(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.perf_counter()
    w = run()
    return time.perf_counter() - begin, w


def time_part(repeats: int) -> None:
    print("\npairs, 50 dense features, five grades, C = 100 / pairs")
    heads = [("n", 8), ("pairs", 14), ("mercer s", 9), ("steps", 6), ("objective", 10)]
    heads += [("liblinear s", 12), ("objective", 10), ("ratio", 8)]
    print(" ".join(f"{head:>{width}}" for head, width in heads))
    for n in sized((300, 1000, 3000, 10_000, 30_000, 100_000), (30,)):
        X, y = graded(n)
        risk = RankingRisk(X, y)
        pairs = float(risk.n_pairs.sum())
        C = 100.0 / pairs
        ranker = Ranker(C=C)
        ours: list[float] = []
        theirs: list[float] = []
        peer = n <= 1000
        for _ in range(repeats):
            t, w = seconds(lambda: ranker.fit(X, y).coef_)  # noqa: B023
            ours.append(t)
            if peer:
                t, v = seconds(lambda: explicit_pairs(X, y, C))  # noqa: B023
                theirs.append(t)
        row = (
            f"{n:8d} {pairs:14,.0f} {np.median(ours):9.3f} {ranker.n_iter_:6d} {0.5 * w @ w + C * risk.value(w):10.4f}"
        )
        if peer:
            found = 0.5 * v @ v + C * risk.value(v)
            row += f" {np.median(theirs):12.3f} {found:10.4f} {np.median(theirs) / np.median(ours):8.1f}"
        record(
            "pairs",
            f"{n:,} examples, {pairs:,.0f} pairs",
            peer="liblinear on pairs written out" if peer else "",
            theirs=float(np.median(theirs)) if peer else None,
            ours=float(np.median(ours)),
        )
        print(row, flush=True)


# ---------------------------------------------------------------------------------------------- rare positives

EXAMPLES = sized(3000, 200)


def rare(seed: int, task: str, n: int = EXAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """2 % positives with a lead in half of the features; in ``spread`` the examples differ in scale."""
    random = np.random.default_rng(seed)
    y = (np.arange(n) < 0.02 * n).astype(int)
    scale, lead = (random.gamma(1.0, 1.0, size=(n, 1)), 0.5) if task == "spread" else (1.0, 0.8)
    return random.normal(size=(n, 20)) * scale + lead * y[:, None] * (np.arange(20) < 10), y


MEASURES = {
    "roc-area": lambda y, s: roc_auc_score(y, s),
    "average-precision": lambda y, s: average_precision_score(y, s),
    "f1": lambda y, s: f1_score(y, s > 0),
}
HINGE_GRID = sized((0.01, 0.1, 1.0, 10.0), (0.1,))
GRIDS = {"roc-area": (1.0, 10.0, 100.0), "average-precision": (1.0, 10.0, 100.0), "f1": (10.0, 100.0, 1000.0)}


def models() -> dict[str, list]:
    hinge = {"loss": "hinge", "max_iter": 20_000, "random_state": 0}
    return {
        "hinge": [LinearSVC(C=C, **hinge) for C in HINGE_GRID],
        "hinge, balanced": [LinearSVC(C=C, class_weight="balanced", **hinge) for C in HINGE_GRID],
        **{f"mercer {name}": [Ranker(name, C=C) for C in grid[: sized(None, 1)]] for name, grid in GRIDS.items()},
    }


def rare_part(seeds: int) -> None:
    for task in ("spread", "normal"):
        found: dict[tuple[str, str], list[float]] = {}
        for seed in range(seeds):
            train, valid, test = (rare(1000 * k + seed, task) for k in range(3))
            for name, candidates in models().items():
                scores = [model.fit(*train).decision_function for model in candidates]
                for measure, value in MEASURES.items():
                    best = max(scores, key=lambda score: value(valid[1], score(valid[0])))
                    found.setdefault((name, measure), []).append(value(test[1], best(test[0])))
        size = f"{EXAMPLES:,} × 20, {seeds} seeds"
        print(f"\n2 % positives, task {task!r}: {size}, mean ± standard deviation on test data")
        print(f"{'trained for':26}" + "".join(f"{measure:>20}" for measure in MEASURES))
        for name in models():
            row = ""
            for measure in MEASURES:
                cell = np.array(found[name, measure])
                ranks_only = measure == "f1" and name in ("mercer roc-area", "mercer average-precision")
                row += f"{'':19}-" if ranks_only else f"{cell.mean():12.3f} ± {cell.std(ddof=1):.3f}"
            print(f"{name:26}{row}")
            record(f"rare, {task}", name, values={measure: spread(found[name, measure]) for measure in MEASURES})
        wins = {m: int(np.sum(np.array(found[f"mercer {m}", m]) > found["hinge", m])) for m in MEASURES}
        print("better than the hinge: " + ", ".join(f"{m} in {k} of {seeds}" for m, k in wins.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["time", "rare"], choices=["time", "rare"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parse(parser, repeats=1, seeds=2)
    print(f"{platform.machine()}, 1 thread, numpy {np.__version__}, scikit-learn {sklearn.__version__}")
    if "time" in arguments.parts:
        time_part(arguments.repeats)
    if "rare" in arguments.parts:
        rare_part(arguments.seeds)


if __name__ == "__main__":
    main()
