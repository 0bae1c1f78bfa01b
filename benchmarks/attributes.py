"""Attributes: speed of design, machines and ranking; zero-shot accuracy on animals; retrieval by several attributes.

    python benchmarks/attributes.py [--tasks design machines ranking table zero_shot novel retrieval] [--splits 6]
        [--features phog rgsift surf sift chi2] [--repeats 3] [--rows 1000000]

One thread, processor time, medians of interleaved runs. Real sets are read from MERCER_DATA: Animals with Attributes
(PHOG, rgSIFT and SURF of 100 images a class), SUN09 presence, Corel5k. Everything is chosen on training classes or
training rows: C and λ on classes that play new ones, C of retrievers on a third of the training rows. Histograms are
square roots of shares, centred and projected onto 200 principal axes, all of training rows. People named similar
classes for the standard ten new classes only; for the other splits similarities come from the table of attributes.
"fused" are graded similarities, the mean of ten people or weights by the table; without the word five classes count
equally.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import from_data, interleaved, parse, record, sized, spread
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from mercer.attributes import (
    AttributeRetriever,
    CategoryAttributes,
    WeakAttributes,
    ZeroShotClassifier,
    attribute_report,
    attribute_similarity,
    attribute_table,
    design_attributes,
    visual_proximity,
)
from mercer.attributes.design import proximity_of_distances
from mercer.datasets import load_multilabel
from mercer.kernels import ChiSquared
from mercer.learning.weighted_machines import fit_machines

TASKS = ("design", "machines", "ranking", "table", "zero_shot", "novel", "retrieval")
FEATURES = ("phog", "rgsift", "surf", "sift", "all", "chi2")
PRINTED_TABLE = {"designed": (1.37, 1.42, 0.55), "manual": (0.57, 1.16, 2.93), "random": (1.15, 1.41, 0.73)}
PRINTED = {  # ten new classes, 10,940 features, χ² kernel
    "designed 10": 40.5, "designed 85": 42.3, "designed 200": 42.8, "fused 200": 46.9, "adaptive 200": 45.2,
    "fused adaptive 200": 48.3, "DAP": 40.5,
}  # fmt: skip


def folder(name: str) -> Path:
    home = os.environ.get("MERCER_DATA")
    if not home:
        raise FileNotFoundError("MERCER_DATA does not name a folder")
    return Path(home) / name


# ------------------------------------------------------------------------------------------------------------- animals


def animals(kinds: list[str]) -> dict[str, Any]:
    """Histograms, classes, tables and what people said; with --smoke generated classes."""
    if sized(False, True):
        rng = np.random.default_rng(0)
        hidden = rng.random((50, 85)) < 0.4
        y = np.repeat(np.arange(50), 8)
        X = np.abs(hidden[y] @ rng.normal(size=(85, 40)) + rng.normal(size=(400, 40)))
        frame = np.zeros((10, 40))
        frame[np.arange(10)[:, None], rng.integers(0, 40, (10, 5))] = 1.0
        return {"X": [X], "y": y, "table": hidden * 50.0, "new": np.arange(40, 50), "people": frame}
    home = folder("awa")
    X = []
    for kind in kinds:
        with gzip.open(home / f"{kind}_first100perclass.npy.gz") as file:
            X.append(np.load(file).astype(np.float64))
    names = [line.split()[1] for line in (home / "classes.txt").read_text().splitlines()]
    lines = [line.split(",") for line in (home / "similarity_averaged.csv").read_text().splitlines()]
    new = np.array([names.index(line[0]) for line in lines[1:]])
    known = [names.index(name) for name in lines[0][1:]]
    people = np.array([[float(value) for value in line[1:]] for line in lines[1:]])
    order = np.argsort(known)
    return {
        "X": X,
        "y": np.loadtxt(home / "phog_first100perclass_labels.txt", dtype=int) - 1,
        "table": np.maximum(np.loadtxt(home / "predicate-matrix-continuous.txt"), 0.0),
        "new": new,
        "people": people[:, order],
    }


def projected(parts: list[np.ndarray], train: np.ndarray, axes: int = 200) -> np.ndarray:
    """Square roots of shares on principal axes of the training rows, of mean square length 1 there."""
    X = np.hstack([np.sqrt(part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12)) for part in parts])
    axes_of = PCA(min(axes, X.shape[1]), svd_solver="randomized", random_state=0).fit(X[train])
    X = axes_of.transform(X)
    return X / np.sqrt((X[train] ** 2).sum(axis=1).mean())


class ChiSquaredFeatures:
    """Nyström features of the exponential χ² kernel of several histograms, landmarks and axes of training rows."""

    def __init__(self, parts: list[np.ndarray]) -> None:
        shares = [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in parts]
        self.distances = [-np.log(np.maximum(ChiSquared(1.0)(X), 1e-300)).astype(np.float32) for X in shares]

    def __call__(self, train: np.ndarray, bandwidth: float, landmarks: int = 1500, axes: int = 400) -> np.ndarray:
        """Bandwidth in units of the median distance, the mean over the histograms; 400 axes."""
        marks = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(train))[:landmarks])
        exponent: Any = 0.0
        for D in self.distances:
            some = D[np.ix_(marks[::5], marks[::5])]
            median = float(np.median(some[np.triu_indices(len(some), 1)]))
            exponent = exponent + D[:, marks] / (median * bandwidth * len(self.distances))
        values, vectors = np.linalg.eigh(np.exp(-exponent[marks]).astype(float))
        values, vectors = values[-axes:], vectors[:, -axes:]
        F = np.exp(-exponent) @ (vectors / np.sqrt(np.maximum(values, 1e-8)))
        F = F - F[train].mean(axis=0)
        return F / np.sqrt((F[train] ** 2).sum(axis=1).mean())


def splits_of(data: dict[str, Any], count: int) -> list[np.ndarray]:
    """The standard new classes, then others, drawn once."""
    rng = np.random.default_rng(0)
    return [data["new"], *[np.sort(rng.permutation(50)[:10]) for _ in range(count - 1)]]


def accuracy(X: np.ndarray, y: np.ndarray, new: np.ndarray, **options: Any) -> float:
    known = ~np.isin(y, new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(ZeroShotClassifier(novel=new, **options).fit(X[known], y[known]).score(X[~known], y[~known]))


def chosen(
    X: np.ndarray, y: np.ndarray, table: np.ndarray, grid: list[dict[str, Any]], **options: Any
) -> tuple[dict[str, Any], float]:
    """The settings that are best for known classes that play new ones, and how good they are there."""
    classes = np.unique(y)
    draws = [np.random.default_rng(seed).permutation(classes)[: len(classes) // 4] for seed in range(3)]
    scores = []
    for settings in grid:
        found = []
        for out in draws:
            kept = np.setdiff1d(classes, out)
            found.append(accuracy(X, y, out, attributes=table[np.r_[kept, out]], **settings, **options))
        scores.append(np.mean(found))
    return grid[int(np.argmax(scores))], float(max(scores))


def zero_shot(arguments: argparse.Namespace) -> None:
    """Table 13.5: new classes by designed attributes, DAP and ESZSL, on the same features."""
    sets = {kind: [kind] for kind in ("phog", "rgsift", "surf")}
    sets |= {"sift": ["rgsift", "surf"], "all": ["phog", "rgsift", "surf"], "chi2": ["rgsift", "surf"]}
    standard: dict[str, dict[str, float]] = {}
    for name in arguments.features:
        with from_data("zero-shot"):
            data = animals(sets[name])
            chi2 = ChiSquaredFeatures(data["X"]) if name == "chi2" else None
            rows: dict[str, list[float | None]] = {}
            for number, new in enumerate(splits_of(data, arguments.splits)):
                found = zero_shot_split(data, chi2, new, number == 0)
                for method, value in found.items():
                    rows.setdefault(method, []).append(100 * value)
                shown = ", ".join(f"{m} {100 * v:.1f}" for m, v in found.items())
                print(f"{name}, split {number}: {shown}", flush=True)
            print(f"\nzero-shot, {name}, % of the rows of ten new classes", flush=True)
            eszsl = np.array(rows["ESZSL"], float)
            for method, own in rows.items():
                values = np.array(own, float)
                standard.setdefault(method, {})[name] = float(values[0])
                gains = values[1:] - eszsl[1:] if len(values) == len(eszsl) else np.zeros(0)
                several = len(values) > 1
                cells = {
                    "standard": values[0],
                    "less ESZSL": values[0] - eszsl[0] if method != "ESZSL" else None,
                    "other splits": float(values[1:].mean()) if several else None,
                    "deviation": float(values[1:].std()) if several else None,
                    "others less ESZSL": float(gains.mean()) if several and method != "ESZSL" else None,
                    "better in": f"{int((gains > 0).sum())} of {len(gains)}" if several and method != "ESZSL" else None,
                    "printed": PRINTED.get(method),
                }
                texts = [value if isinstance(value, str) else "" if value is None else f"{value:.1f}"
                         for value in cells.values()]  # fmt: skip
                if method == "designed 10":
                    print("| method | " + " | ".join(cells) + " |\n" + "|---" * (len(cells) + 1) + "|")
                print(f"| {method} | " + " | ".join(texts) + " |", flush=True)
                record(f"attributes zero-shot {name}", method, unit="%", values=cells)
    over_features(standard)


def over_features(standard: dict[str, dict[str, float]]) -> None:
    """Means and deviations over the single kinds of features on the standard split."""
    for method, found in standard.items():
        by_name = {name: value for name, value in found.items() if name in FEATURES[:3]}
        values = list(by_name.values())
        if len(values) < 2:
            continue
        shown = ", ".join(f"{name} {value:.1f}" for name, value in by_name.items())
        print(f"| {method} | {shown} | {np.mean(values):.1f} ± {np.std(values):.1f} |", flush=True)
        mean = {"mean": spread(values, 1), "printed": PRINTED.get(method)}
        record("attributes zero-shot features", method, unit="%", values=by_name | mean)


def zero_shot_split(data: dict[str, Any], chi2: Any, new: np.ndarray, standard: bool) -> dict[str, float]:
    """Accuracies on ten new classes; everything is chosen on the known ones, of which some play new ones."""
    y, table = data["y"], data["table"]
    train = ~np.isin(y, new)
    known = np.unique(y[train])
    tables = table[np.r_[known, new]]
    grid = [
        {"C": c, "table_penalty": p}
        for c in sized((0.01, 0.1, 1.0, 10.0), (1.0,))
        for p in sized((0.1, 1.0, 10.0), (1.0,))
    ]
    tried = []  # of χ² features two bandwidths, the same one for all methods
    for width in sized((0.2, 1.0), (1.0,)) if chi2 is not None else (1.0,):
        X = projected(data["X"], train) if chi2 is None else chi2(train, width)
        tried.append((X, *chosen(X[train], y[train], table, grid, method="eszsl")))
    X, eszsl, _ = max(tried, key=lambda one: one[2])
    strengths = [{"C": C} for C in sized((0.1, 1.0, 10.0), (1.0,))]
    C = chosen(X[train], y[train], table, strengths, n_attributes=85)[0]
    combined = attribute_similarity(table[new], table[known])
    people = data["people"] if standard else combined
    several = people if standard else attribute_similarity(table[new], table[known], 5)
    five = (several > 0) & (several >= np.sort(several, axis=1)[:, -5:-4])
    own = {"similarity": five + 0.0, **C}
    found = {f"designed {n}": accuracy(X, y, new, n_attributes=n, **own) for n in sized((10, 85, 200), (10, 85))}
    found["fused 200"] = accuracy(X, y, new, similarity=people, **C)
    found["adaptive 200"] = accuracy(X, y, new, adaptive=True, **own)
    found["fused adaptive 200"] = accuracy(X, y, new, similarity=people, adaptive=True, **C)
    if standard:  # what people say and what the table says, in equal parts
        both = sum(part / part.sum(axis=1, keepdims=True) for part in (people, combined))
        found["fused with the table 200"] = accuracy(X, y, new, similarity=both, **C)
    dap = chosen(X[train], y[train], table, strengths, method="dap")[0]
    found["DAP"] = accuracy(X, y, new, attributes=tables, method="dap", **dap)
    found["ESZSL"] = accuracy(X, y, new, attributes=tables, method="eszsl", **eszsl)
    return found


def novel(arguments: argparse.Namespace) -> None:
    """Figure 13.7: attributes of 40 classes as features of the ten others, by the rows a new class has for training."""
    with from_data("novel"):
        data = animals(["rgsift", "surf"])
        y, new = data["y"], data["new"]
        train = ~np.isin(y, new)
        X = projected(data["X"], train)
        features = {"low-level features": X}
        tables = {"one-vs-all, 40 (classemes)": ("one-vs-all", None)} | {
            f"{kind}, {count}": (kind, count)
            for kind, counts in (("random", (85,)), ("designed", (40, 85, 200)))
            for count in sized(counts, (10,))
        }
        for name, (kind, count) in tables.items():
            options = {"random_state": 0} if kind == "random" else {}
            model = CategoryAttributes(kind, count, **options).fit(X[train], y[train])
            features[name] = model.transform(X)
        features["low-level and designed, 200"] = np.hstack([X, unit_size(features[list(features)[-1]], train)])
        sizes = sized((1, 2, 5, 10, 25, 50), (2, 4))
        found: dict[str, dict[int, list[float]]] = {name: {n: [] for n in sizes} for name in features}
        for draw in range(sized(5, 1)):
            rng = np.random.default_rng(draw)
            rows = [rng.permutation(np.flatnonzero(y == k)) for k in new]
            half = sized(50, 4)
            test = np.concatenate([own[half:] for own in rows])
            for n in sizes:
                few = np.concatenate([own[:n] for own in rows])
                for name, F in features.items():
                    F = unit_size(F, train)
                    found[name][n].append(few_rows(F[few], y[few], n).score(F[test], y[test]))
        print("\nten new animals, accuracy in % by rows a class\n| features | " + " | ".join(map(str, sizes)) + " |")
        print("|---|" + "---|" * len(sizes))
        for name, by_size in found.items():
            means = [100 * float(np.mean(values)) for values in by_size.values()]
            print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |", flush=True)
            record("attributes novel", name, unit="%", values=dict(zip(map(str, sizes), means, strict=True)))


def unit_size(F: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Columns centred on the training rows, of mean square length 1 there."""
    F = F - F[train].mean(axis=0)
    return F / np.sqrt((F[train] ** 2).sum(axis=1).mean())


def few_rows(F: np.ndarray, y: np.ndarray, n: int) -> Any:
    """A linear machine, C by folds of the few rows; of one row a class, C = 1."""
    if n == 1:
        return LinearSVC(C=1.0, max_iter=5000).fit(F, y)
    return GridSearchCV(LinearSVC(max_iter=5000), {"C": sized((0.1, 1.0, 10.0), (1.0,))}, cv=min(3, n)).fit(F, y)


def table(arguments: argparse.Namespace) -> None:
    """Table 13.2: properties of designed, manual and random tables; accuracy for classes that are known."""
    with from_data("table"):
        data = animals(["rgsift", "surf"])
        y, new = data["y"], data["new"]
        train = ~np.isin(y, new)
        X = projected(data["X"], train)
        known, half = np.unique(y[train]), np.arange(len(y)) % 2 == 0
        manual = data["table"][known]
        S = visual_proximity(X[train & half], y[train & half])
        tables = {
            "designed": design_attributes(S, 85),
            "manual": 2.0 * (manual > manual.mean()) - 1.0,
            "manual, 0 and 1": (manual > manual.mean()) + 0.0,
            "random": attribute_table("random", len(known), 85, 0),
        }
        print(
            "\ntable 13.2, rows of unit length\n"
            "| table | ρ | average | r | printed | accuracy |\n|---|---|---|---|---|---|"
        )
        for name, A in tables.items():
            report = attribute_report(A, normalize="rows")
            score = (
                CategoryAttributes(A).fit(X[train & half], y[train & half]).score(X[train & ~half], y[train & ~half])
            )
            values = report.separation, report.average_separation, report.redundancy
            shown = " | ".join(f"{value:.2f}" for value in values)
            printed = PRINTED_TABLE.get(name.split(",")[0])
            print(f"| {name} | {shown} | {' / '.join(map(str, printed or ()))} | {100 * score:.1f} |", flush=True)
            record("attributes table", name, unit="", values={"separation": values[0], "average": values[1],
                   "redundancy": values[2], "accuracy %": 100 * score})  # fmt: skip
        for name, options in {"one-vs-all": {}, "ecoc": {"n_attributes": 85, "random_state": 0}}.items():
            model = CategoryAttributes(name, **options).fit(X[train & half], y[train & half])
            score = 100 * model.score(X[train & ~half], y[train & ~half])
            print(f"| {name} | | | | | {score:.1f} |", flush=True)
            record("attributes table", name, unit="", values={"accuracy %": score})


# --------------------------------------------------------------------------------------------------------------- speed


def design(arguments: argparse.Namespace) -> None:
    """85 and 2,000 attributes."""
    for M, count, k in sized(((40, 85, 10), (950, 2000, 30)), ((12, 20, 5), (30, 40, 8))):
        points = np.random.default_rng(0).normal(size=(M, 30))
        S = proximity_of_distances(np.linalg.norm(points[:, None] - points, axis=2), k, 0.5)
        taken = interleaved(arguments.repeats if M < 100 else 1, partial(design_attributes, S, count))[0]
        print(f"design: {count:,} attributes of {M} classes in {taken:.3f} s", flush=True)
        record("attributes speed", f"design of {count:,} attributes for {M} classes", ours=taken,
               note="the source: 42 to 60 minutes for 2,000 of 950" if M == 950 else "")  # fmt: skip


def machines(arguments: argparse.Namespace) -> None:
    """200 weighted machines over PHOG features, beside LinearSVC one after the other."""
    with from_data("machines"):
        data = animals(["phog"])
        keep = ~np.isin(data["y"], data["new"])
        X, labels = np.sqrt(data["X"][0][keep]), np.unique(data["y"][keep], return_inverse=True)[1]
        X = X / np.linalg.norm(X, axis=1).mean()
        count, sample = sized((200, 10), (8, 2))
        A = (
            design_attributes(visual_proximity(X, labels), count)
            if count > 100
            else attribute_table("random", 40, count, 0)
        )
        together: dict[str, Any] = {}

        def ours() -> None:
            together["found"] = fit_machines(X, A, labels, fit_intercept=False)

        def theirs() -> None:
            for j in range(sample):
                t = A[labels, j]
                used = t != 0
                svc = LinearSVC(fit_intercept=False).fit(X[used], np.sign(t[used]), sample_weight=np.abs(t[used]))
                together[j] = svc.coef_[0]

        a, b = interleaved(arguments.repeats, ours, theirs)
        b *= count / sample

        def objective(w: np.ndarray, t: np.ndarray) -> float:
            return float(0.5 * w @ w + (np.abs(t) * np.maximum(0.0, 1.0 - np.sign(t) * (X @ w)) ** 2).sum())

        values = [
            objective(together["found"].coef[j], A[labels, j]) / objective(together[j], A[labels, j])
            for j in range(sample)
        ]
        print(f"machines: {count} on {X.shape[0]:,} × {X.shape[1]}: {a:.2f} s, LinearSVC {b:.2f} s ({b / a:.1f}x); "
              f"objectives ours / theirs {min(values):.5f} to {max(values):.5f}", flush=True)  # fmt: skip
        record("attributes speed", f"{count} weighted machines", ours=a, theirs=b, peer="scikit-learn",
               note=f"LinearSVC measured on {sample} of them")  # fmt: skip


def ranking(arguments: argparse.Namespace) -> None:
    """The best hundred of a million rows for three attributes, from a memory-mapped file, beside NumPy."""
    n, m, used = arguments.rows, 400, 40
    rng = np.random.default_rng(0)
    model = AttributeRetriever("structured", n_weak=used, max_queries=8)
    Y = (rng.random((200, 5)) < 0.5).astype(int)
    model.fit(np.hstack([Y @ rng.normal(size=(5, m // 2)), np.zeros((200, m - m // 2))]) + rng.normal(size=(200, m)), Y)
    weights, _ = model.weights_of([0, 1, 2])
    chosen_columns = np.flatnonzero(weights)
    with tempfile.TemporaryDirectory() as home:
        for order in "FC":
            path = Path(home) / order
            Z = np.memmap(path, np.float32, "w+", shape=(n, m), order=order)
            for j in range(0, m if order == "F" else n, 20 if order == "F" else 50_000):
                if order == "F":
                    Z[:, j : j + 20] = rng.standard_normal((20, n), np.float32).T
                else:
                    part = Z[j : j + 50_000]
                    part[:] = rng.standard_normal(part.shape, np.float32)
            Z = np.memmap(path, np.float32, "r", shape=(n, m), order=order)
            own = weights.astype(np.float32)
            few = own[chosen_columns]
            calls = {
                "ours": lambda Z=Z: model.rank(Z, [0, 1, 2], k=100),
                "NumPy, the product alone": lambda Z=Z, own=own: Z @ own,
                "NumPy, every byte read once": lambda Z=Z: Z.view(np.int32).max(),
                "NumPy, all columns": lambda Z=Z, own=own: np.argsort(-(Z @ own))[:100],
                "NumPy, columns that count": lambda Z=Z, few=few: np.argsort(-(Z[:, chosen_columns] @ few))[:100],
            }
            taken = dict(zip(calls, interleaved(arguments.repeats, *calls.values()), strict=True))
            same = set(calls["ours"]().rows) == set(calls["NumPy, all columns"]())
            layout = "columns" if order == "F" else "rows"
            for name in list(calls)[1:]:
                ratio = taken[name] / taken["ours"]
                print(f"ranking by {layout}: {n:,} rows × {m}: {taken['ours']:.3f} s, {name} {taken[name]:.3f} s "
                      f"({ratio:.1f}x), same rows: {same}", flush=True)  # fmt: skip
                record("attributes speed", f"triple query over {n:,} × {m} by {layout}, {name}", ours=taken["ours"],
                       theirs=taken[name], peer="NumPy", note=f"{used} columns count; best 100 rows")  # fmt: skip
            path.unlink()


# ----------------------------------------------------------------------------------------------------------- retrieval


def sun() -> tuple[np.ndarray, ...]:
    """Objects that are asked for, and the presence of all others as weak attributes."""
    home = folder("sun09-presence")
    parts = [np.loadtxt(home / f"SUN09{part}_presence.csv", delimiter=",") for part in ("train", "test")]
    order = np.argsort(-parts[0].mean(axis=0))
    asked, weak = order[5:32], np.setdiff1d(order, order[5:32])
    (train, test) = parts
    return train[:, weak], train[:, asked], test[:, weak], test[:, asked], None, None


def corel() -> tuple[np.ndarray, ...]:
    """The 25 most frequent words are asked for; weak attributes from the next hundred."""
    train, test = load_multilabel("corel5k"), load_multilabel("corel5k", "test")
    Y = [part.Y.toarray() for part in (train, test)]
    X = [np.asarray(part.X.toarray() if hasattr(part.X, "toarray") else part.X, float) for part in (train, test)]
    order = np.argsort(-Y[0].sum(axis=0), kind="stable")
    weak = WeakAttributes(n_splits=50, n_references=50, C=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Z = weak.fit_transform(X[0], Y[0][:, order[25:125]])
    return Z, Y[0][:, order[:25]], weak.transform(X[1]), Y[1][:, order[:25]], X[0], X[1]


def generated() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    Y = (rng.random((240, 5)) < 0.4).astype(float)
    Z = Y @ rng.normal(size=(5, 20)) + rng.normal(size=(240, 20))
    return Z[:120], Y[:120], Z[120:], Y[120:], Z[:120, :10], Z[120:, :10]


def retrieval(arguments: argparse.Namespace) -> None:
    """Mean area under the curve for one, two and three attributes; few labelled rows, C chosen on a third of them."""
    sets = sized({"sun09": sun, "corel5k": corel}, {"generated": generated})
    for name, read in sets.items():
        if arguments.sets and name not in arguments.sets:
            continue
        with from_data(name):
            Z, Y, Z_test, Y_test, X, X_test = read()
            rng = np.random.default_rng(0)
            labelled = rng.permutation(len(Z))[: arguments.labelled]
            rest = np.setdiff1d(np.arange(len(Z)), labelled)
            third = labelled[: len(labelled) // 3]
            fitted = labelled[len(labelled) // 3 :]
            theta = max(5, Z.shape[1] // 4)
            weak, plain = (Z, Z_test), ((Z, Z_test) if X is None else (X, X_test))
            source = "weak attributes" if X is None else "features"
            methods: dict[str, tuple[dict[str, Any], Any]] = {
                "structured, all": ({}, weak),
                f"structured, {theta} chosen": ({"n_weak": theta}, weak),
                f"structured, {theta} by trees": ({"n_weak": theta, "information": "semi-supervised"}, weak),
                f"structured, {theta} by latent trees": ({"n_weak": theta, "information": "latent"}, weak),
                "structured, pairs and triples in training": ({"max_size": 3}, weak),
                f"MARR, {source}": ({"method": "marr"}, plain),
                f"sum, {source}": ({"method": "sum"}, plain),
            }
            if X is not None:
                methods["sum, weak attributes"] = ({"method": "sum"}, weak)
            print(
                f"\nretrieval, {name}: {len(labelled)} labelled rows, {Z.shape[1]} weak attributes, {Y.shape[1]} asked"
            )
            print("| method | C | one | two | three |\n|---|---|---|---|---|")
            C = 1.0
            for method, (options, (rows, test)) in methods.items():
                if arguments.methods and not method.startswith(tuple(arguments.methods)):
                    continue
                more = {"unlabelled": rows[rest]} if "information" in options else {}

                def fit(part: np.ndarray, C: float, options=options, rows=rows, more=more, Y=Y) -> AttributeRetriever:
                    return AttributeRetriever(C=C, max_queries=sized(100, 20), **options).fit(
                        rows[part], Y[part], **more
                    )

                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    grid = sized((0.01, 0.1, 1.0), (1.0,))
                    if options.get("information") == "latent":  # that of the other trees: these take minutes to learn
                        grid = (C,)
                    if len(grid) > 1:
                        judged = [
                            np.nanmean(list(fit(fitted, c).auc(rows[third], Y[third], max_queries=60).values()))
                            for c in grid
                        ]
                        C = grid[int(np.argmax(judged))]
                    else:
                        C = grid[0]
                    areas = fit(labelled, C).auc(test, Y_test, max_queries=sized(200, 20))
                print(f"| {method} | {C:g} | " + " | ".join(f"{areas[k]:.3f}" for k in (1, 2, 3)) + " |", flush=True)
                record(f"attributes retrieval {name}", method, unit="AUC",
                       values={"one": areas[1], "two": areas[2], "three": areas[3], "C": C})  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=["phog", "rgsift", "surf", "sift", "chi2"])
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labelled", type=int, default=600)
    parser.add_argument("--sets", nargs="+", help="of retrieval: sun09, corel5k; default: both")
    parser.add_argument("--methods", nargs="+", help="of retrieval: those whose names begin so; default: all")
    arguments = parse(parser, splits=1, repeats=1, rows=500, features=["phog", "chi2"], labelled=60)
    for task in arguments.tasks:
        globals()[task](arguments)


if __name__ == "__main__":
    main()
