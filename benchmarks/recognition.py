"""Sparse codes and recognition of faces: speed beside scikit-learn and SPAMS, and the source's four tables.

    python benchmarks/recognition.py [--tasks speed printed budget codes rejection defaults] [--sets yale-b orl lfw]
        [--splits 10] [--dims 50 100 200 300] [--repeats 5]

SPAMS is under the GPL and no part of the environment that ``make bench`` makes: where it is installed, it is measured.
One thread, processor time, medians of interleaved runs.

Tables 3.1 and 3.2 of Shi (2010): HASH, RANDOM and EIGEN projections with matching pursuit (30 atoms) and ℓ1 (residual
0.05), EIGEN and FISHER features with 1-NN and a linear SVM; random splits of 32 / 15 / 15 images a person (Yale B),
5 / 2 / 3 (ORL), 12 / 4 / 4 (LFW); the number of hashes is chosen on the validation images, the test images are used
once. The source has images of 192 × 168 pixels, ours are crops of 32 × 32; its AR faces are not public.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _timing import from_data, interleaved, parse, peer, record, sized, spread
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Lasso, orthogonal_mp_gram
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, minmax_scale
from sklearn.svm import LinearSVC

from mercer.datasets import load_faces, make_faces
from mercer.learning.sparse_codes import Dictionary, sparse_codes
from mercer.learning.weighted_machines import fit_machines
from mercer.maps import RandomProjection, SignedHashProjection
from mercer.recognition import SparseRepresentationClassifier

SPLITS = {"yale-b": (32, 15, 15), "orl": (5, 2, 3), "lfw": (12, 4, 4)}
SOLVERS: dict[str, dict[str, Any]] = {"OMP": {"solver": "omp", "n_nonzero": 30}, "l1": {"solver": "l1", "tol": 0.05}}
SHARES = {"OMP": (0.05, 0.1, 0.2, 0.5, 1.0), "l1": (0.02, 0.05, 0.1, 0.2, 0.4)}  # hashes a dimension, to choose from
STRENGTHS = (0.1, 1.0, 10.0)  # C of machines on codes, to choose from
PRINTED = {  # accuracy on Extended Yale B at 50, 100, 200, 300 dimensions
    "HASH-OMP": (0.806, 0.856, 0.939, 0.964),
    "RANDOM-OMP": (0.821, 0.908, 0.945, 0.944),
    "EIGEN-OMP": (0.289, 0.669, 0.882, 0.911),
    "HASH-l1": (0.899, 0.951, 0.977, 0.982),
    "RANDOM-l1": (0.928, 0.966, 0.980, 0.979),
    "EIGEN-l1": (0.822, 0.911, 0.936, 0.945),
    "EIGEN-KNN": (0.589, 0.662, 0.702, 0.714),
    "FISHER-KNN": (0.891, 0.920, 0.948, 0.954),
    "EIGEN-SVM": (0.890, 0.919, 0.940, 0.953),
    "FISHER-SVM": (0.880, 0.913, 0.939, 0.948),
}
PRINTED_MS = {
    "HASH-OMP": (10.05, 67.4, 61.45, 138.05),
    "RANDOM-OMP": (10.75, 74.3, 944.25, 2944.45),
    "EIGEN-OMP": (10.8, 75.0, 190.65, 291.35),
    "HASH-l1": (724.45, 1713.3, 5191.9, 9536.8),
    "RANDOM-l1": (823.25, 2401.0, 8655.6, 21887.8),
    "EIGEN-l1": (742.55, 2006.6, 4621.65, 8444.65),
}
PRINTED_CODES = {"raw": (0.865, 0.876, 0.875, 0.835), "min-max": (0.853, 0.877, 0.878, 0.849)}  # on the AR faces
PRINTED_DIMS = (50, 100, 200, 300)


def faces_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pixels and labels; with --smoke drawn faces in their place."""
    images, names = sized(lambda: load_faces(name), lambda: make_faces(6, 62 if name == "yale-b" else 20))()
    return images.reshape(len(images), -1), np.unique(names, return_inverse=True)[1]


def split_of(name: str, y: np.ndarray, seed: int) -> list[np.ndarray]:
    """Train, validation and test rows: so many of each person."""
    parts: list[list[int]] = [[], [], []]
    random = np.random.default_rng(seed)
    counts = SPLITS[name]
    for person in np.unique(y):
        order = random.permutation(np.flatnonzero(y == person))
        cuts = np.cumsum(counts)
        for part, chosen in zip(parts, np.split(order[: cuts[-1]], cuts[:-1]), strict=True):
            part.extend(chosen)
    return [np.array(part) for part in parts]


def printed_beside(name: str, method: str, d: int, values: dict[str, tuple[float, ...]]) -> float | None:
    if name != "yale-b" or method not in values or d not in PRINTED_DIMS:
        return None
    return values[method][PRINTED_DIMS.index(d)]


# ------------------------------------------------------------------------------------------------------------- speed


def line(measure: str, ours: float, theirs: float, of: str, unit: str = "ms") -> None:
    print(f"{measure}: ours {ours:.4g} {unit}, {of} {theirs:.4g} {unit}: {theirs / ours:.2f}x", flush=True)
    record("speed", measure, ours=ours, theirs=theirs, peer=of, unit=unit)


def speed(repeats: int) -> None:
    """Milliseconds a signal."""
    spams = peer("spams")
    random = np.random.default_rng(0)
    atoms, signals = (random.normal(size=(n, 300)) for n in (sized(1216, 60), sized(1000, 20)))
    dictionary = Dictionary(atoms)
    ours, theirs = interleaved(
        repeats,
        lambda: sparse_codes(signals, dictionary, n_nonzero=30),
        lambda: orthogonal_mp_gram(dictionary.gram, dictionary.atoms @ signals.T, n_nonzero_coefs=30),
    )
    per = 1e3 / len(signals)
    line("OMP, 1,000 signals, 1,216 atoms of 300, 30 atoms", per * ours, per * theirs, "scikit-learn")
    with from_data("yale-b"):
        queries(spams, repeats)
    X = random.normal(size=(sized(256, 8), sized(32_256, 500)))
    for dtype in (np.float64, np.float32):
        rows = X.astype(dtype)
        hashed = SignedHashProjection(300, n_hashes=20, random_state=0).fit(rows)
        dense = RandomProjection(300, random_state=0, dtype=dtype).fit(rows)
        for n in (len(rows), 1):
            ours, theirs = interleaved(repeats, partial(hashed.transform, rows[:n]), partial(dense.transform, rows[:n]))
            measure = f"projection 32,256 to 300, 20 hashes, {np.dtype(dtype).name}, {n} at a time"
            line(measure, 1e3 / n * ours, 1e3 / n * theirs, "a dense Gaussian matrix")


def queries(spams: Any, repeats: int) -> None:
    X, y = faces_of("yale-b")
    train, _, test = split_of("yale-b", y, 0)
    project = SignedHashProjection(sized(300, 20), n_hashes=20, random_state=0).fit(X)
    dictionary = Dictionary(project.transform(X[train]))
    signals = Normalizer().fit_transform(project.transform(X[test][:200]))
    columns, atoms = np.asfortranarray(signals.T), np.asfortranarray(dictionary.atoms.T)
    k = sized(30, 10)
    calls: dict[str, tuple[Any, str, Any]] = {
        "OMP, a query": (
            lambda: sparse_codes(signals, dictionary, n_nonzero=k),
            "scikit-learn",
            lambda: orthogonal_mp_gram(dictionary.gram, dictionary.atoms @ signals.T, n_nonzero_coefs=k),
        ),
        "lasso, a query, beside scikit-learn": (
            lambda: sparse_codes(signals[:20], dictionary, "lasso", alpha=0.01),
            "scikit-learn",
            lambda: [
                Lasso(0.01 / atoms.shape[0], fit_intercept=False, tol=1e-6, max_iter=10_000, precompute=dictionary.gram)
                .fit(atoms, x)
                .coef_
                for x in signals[:20]
            ],
        ),
    }
    if spams is not None:
        calls |= {
            "order-recursive, a query": (
                lambda: sparse_codes(signals, dictionary, "order-recursive", n_nonzero=k),
                "spams",
                lambda: spams.omp(columns, atoms, L=k, eps=0.0, numThreads=1),
            ),
            "lasso, a query": (
                lambda: sparse_codes(signals, dictionary, "lasso", alpha=0.01),
                "spams",
                lambda: spams.lasso(columns, atoms, lambda1=0.01, mode=2, numThreads=1),
            ),
            "l1 to a residual of 0.05, a query": (
                lambda: sparse_codes(signals[:40], dictionary, "l1", tol=0.05),
                "spams",
                lambda: spams.lasso(np.asfortranarray(columns[:, :40]), atoms, lambda1=0.05**2, mode=1, numThreads=1),
            ),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for measure, (ours, of, theirs) in calls.items():
            n = 20 if "scikit" in measure else 40 if "residual" in measure else len(signals)
            mine, others = (1e3 * taken / n for taken in interleaved(repeats, ours, theirs))
            line(f"Yale B, 300 dimensions, {measure}", mine, others, of)


# ------------------------------------------------------------------------------------------- the tables of the source


def features_of(kind: str, d: int, n: int, seed: int, n_hashes: int = 1) -> Any:
    if kind == "HASH":
        return SignedHashProjection(d, n_hashes=n_hashes, random_state=seed)
    if kind == "RANDOM":
        return RandomProjection(d, random_state=seed)
    return PCA(min(d, n - 1), svd_solver="randomized", random_state=seed)


def timed_score(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Accuracy, and milliseconds a query."""
    start = time.process_time()
    labels = model.predict(X)
    return float((labels == y).mean()), 1e3 * (time.process_time() - start) / len(X)


def tables(name: str, dims: list[int], splits: int) -> None:
    """Tables 3.1 and 3.2."""
    X, y = faces_of(name)
    for d in dims:
        scores: dict[str, list[tuple[float, float]]] = {}
        chosen: dict[str, list[int]] = {}
        for seed in range(splits):
            train, validation, test = split_of(name, y, seed)
            trial = validation[np.random.default_rng(seed).permutation(len(validation))[:120]]
            for solver, stop in SOLVERS.items():
                for kind in ("HASH", "RANDOM", "EIGEN"):
                    S = 1
                    if kind == "HASH":
                        candidates = sorted({max(1, int(np.ceil(share * d))) for share in SHARES[solver]})
                        S = max(
                            candidates,
                            key=lambda S: (
                                SparseRepresentationClassifier(features_of("HASH", d, 0, seed, S), **stop)
                                .fit(X[train], y[train])
                                .score(X[trial], y[trial])
                            ),
                        )
                        chosen.setdefault(f"{kind}-{solver}", []).append(S)
                    model = SparseRepresentationClassifier(features_of(kind, d, len(train), seed, S), **stop)
                    found = timed_score(model.fit(X[train], y[train]), X[test], y[test])
                    scores.setdefault(f"{kind}-{solver}", []).append(found)
            for kind in ("EIGEN", "FISHER"):
                steps = [features_of("EIGEN", d, len(train), seed)]
                if kind == "FISHER":
                    steps.append(LinearDiscriminantAnalysis(solver="svd"))
                for rule in (KNeighborsClassifier(1), make_pipeline(Normalizer(), LinearSVC(C=10.0, random_state=0))):
                    title = f"{kind}-{'KNN' if isinstance(rule, KNeighborsClassifier) else 'SVM'}"
                    model = make_pipeline(*steps, rule).fit(X[train], y[train])
                    scores.setdefault(title, []).append(timed_score(model, X[test], y[test]))
        for method, found in scores.items():
            rates, times = np.array(found).T
            beside, beside_ms = (printed_beside(name, method, d, values) for values in (PRINTED, PRINTED_MS))
            note = "" if beside is None else f"; printed {beside:.3f}"
            note += "" if beside_ms is None else f", {beside_ms:g} ms"
            hashes = f", hashes {np.median(chosen[method]):.0f}" if method in chosen else ""
            print(
                f"{name} {method} {d}: {rates.mean():.3f} ± {rates.std():.3f}, {np.median(times):.2f} ms{hashes}{note}",
                flush=True,
            )
            values: dict[str, Any] = {"accuracy": spread(rates), "ms": float(np.median(times))}
            if beside is not None:
                values["printed"] = beside
            if method in chosen:
                values["hashes"] = int(np.median(chosen[method]))
            record("printed", f"{name}, {method}, {d}", values=values, sizes=f"{splits} splits")


def budget(dims: list[int], splits: int) -> None:
    """Table 3.3: hashing with matching pursuit beside random maps with ℓ1, at equal times (Yale B in place of AR)."""
    X, y = faces_of("yale-b")
    for kind, solver, sizes in (("HASH", "OMP", (50, 85, 180, *dims[-1:], 1000)), ("RANDOM", "l1", (5, 10, 25, 50))):
        for d in sizes:
            found = []
            for seed in range(splits):
                train, _, test = split_of("yale-b", y, seed)
                maps = features_of(kind, d, 0, seed, max(1, d // 10))
                model = SparseRepresentationClassifier(maps, **SOLVERS[solver])
                found.append(timed_score(model.fit(X[train], y[train]), X[test], y[test]))
            rates, times = np.array(found).T
            print(f"equal time: {kind}-{solver} {d}: {rates.mean():.3f} ± {rates.std():.3f}, {np.median(times):.2f} ms")
            values = {"accuracy": spread(rates), "ms": float(np.median(times))}
            record("budget", f"{kind}-{solver}, {d}", values=values, sizes=f"{splits} splits")


def codes(dims: list[int]) -> None:
    """Table 3.4: a linear SVM on the codes of the validation and test images, beside the residual rule.

    Ten folds as in the source: eight to learn from, one to choose C, one to test.
    """
    X, y = faces_of("yale-b")
    train, validation, test = split_of("yale-b", y, 0)
    rest = np.concatenate([validation, test])
    for d in dims:
        model = SparseRepresentationClassifier(features_of("HASH", d, 0, 0, max(1, d // 10)), **SOLVERS["l1"])
        model.fit(X[train], y[train])
        found = model.code(X[rest]).codes
        rule = float((model.predict(X[rest]) == y[rest]).mean())
        for title, features in (("raw", found), ("min-max", minmax_scale(found.toarray()))):
            rates = fold_rates(features, y[rest])
            beside = PRINTED_CODES[title][PRINTED_DIMS.index(d)] if d in PRINTED_DIMS else float("nan")
            print(
                f"codes {title} {d}: SVM {np.mean(rates):.3f} ± {np.std(rates):.3f}, residual rule {rule:.3f}; "
                f"printed (AR) {beside:.3f}",
                flush=True,
            )
            record("codes", f"{title}, {d}", values={"SVM": spread(rates), "residuals": rule, "printed": beside})


def fold_rates(features: Any, y: np.ndarray) -> list[float]:
    """Accuracies on ten folds of a linear SVM for each person, with the C that is best on the next fold."""
    parts = [held for _, held in StratifiedKFold(10, shuffle=True, random_state=0).split(features, y)]
    people = np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0)
    rates = []
    for i, held in enumerate(parts):
        choosing = parts[(i + 1) % 10]
        learning = np.setdiff1d(np.arange(len(y)), np.concatenate([held, choosing]))
        machines = [fit_machines(features[learning], people[learning], C=C) for C in sized(STRENGTHS, (1.0,))]
        right = [
            [float(((features[rows] @ m.coef.T + m.intercept).argmax(axis=1) == y[rows]).mean()) for m in machines]
            for rows in (choosing, held)
        ]
        rates.append(right[1][int(np.argmax(right[0]))])
    return rates


def rejection(names: list[str], splits: int) -> None:
    """People who are not in the gallery: half of them, drawn anew for each split, are left out of it."""
    for name in names:
        X, y = faces_of(name)
        found: dict[str, list[float]] = {}
        for seed in range(splits):
            train, _, test = split_of(name, y, seed)
            people = np.random.default_rng(seed).permutation(y.max() + 1)
            known = np.isin(np.arange(y.max() + 1), people[: len(people) // 2])
            gallery = train[known[y[train]]]
            model = SparseRepresentationClassifier(SignedHashProjection(sized(300, 40), random_state=seed))
            concentration = model.fit(X[gallery], y[gallery]).concentration(X[test])
            inside = known[y[test]]
            found.setdefault("ROC area", []).append(float(roc_auc_score(inside, concentration)))
            for share in (0.01, 0.05, 0.1, 0.2):
                limit = np.quantile(concentration[~inside], 1 - share)
                found.setdefault(f"at {share:g}", []).append(float((concentration[inside] > limit).mean()))
        shown = ", ".join(f"{title} {np.mean(values):.3f}" for title, values in found.items())
        print(f"rejection {name}: {shown}: known people accepted where such a share of unknown ones is", flush=True)
        values = {title: spread(values) for title, values in found.items()}
        record("rejection", name, values=values, sizes=f"{splits} splits")


def defaults(names: list[str]) -> None:
    """Untuned, beside the nearest neighbour and a linear SVM on all pixels."""
    for name in names:
        X, y = faces_of(name)
        rates: dict[str, list[float]] = {}
        for seed in range(sized(3, 1)):
            train, _, test = split_of(name, y, seed)
            models = {
                "hash 300, defaults": SparseRepresentationClassifier(SignedHashProjection(300, random_state=seed)),
                "pixels, defaults": SparseRepresentationClassifier(),
                "1-NN": KNeighborsClassifier(1),
                "linear SVM": make_pipeline(Normalizer(), LinearSVC(C=10.0, random_state=0)),
            }
            for title, model in models.items():
                rates.setdefault(title, []).append(model.fit(X[train], y[train]).score(X[test], y[test]))
        shown = ", ".join(f"{title} {np.mean(found):.3f}" for title, found in rates.items())
        print(f"defaults {name}: {shown}", flush=True)
        record("defaults", name, values={title: spread(found) for title, found in rates.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["speed", "printed", "budget", "codes", "rejection", "defaults"]
    parser.add_argument("--tasks", nargs="+", choices=every, default=every)
    parser.add_argument("--sets", nargs="+", choices=list(SPLITS), default=list(SPLITS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--dims", nargs="+", type=int, default=[50, 100, 200, 300])
    parser.add_argument("--repeats", type=int, default=5)
    options = parse(parser, sets=["orl"], splits=1, dims=[20], repeats=1)
    warnings.simplefilter("ignore")
    if "speed" in options.tasks:
        speed(options.repeats)
    if "printed" in options.tasks:
        for name in options.sets:
            with from_data(name):
                tables(name, options.dims, options.splits)
    for task, call in (
        ("budget", partial(budget, options.dims, options.splits)),
        ("codes", partial(codes, options.dims)),
    ):
        if task in options.tasks:
            with from_data("yale-b"):
                call()
    for task, act in (("rejection", partial(rejection, splits=options.splits)), ("defaults", defaults)):
        if task in options.tasks:
            with from_data(task):
                act(options.sets)


if __name__ == "__main__":
    main()
