"""Learning from label proportions: speed of the alternating machine, its growth, and the tables of accuracies.

    MERCER_DATA=... python benchmarks/proportions.py [--parts speed scaling small-bags assignment tables] [--jobs N] ...

speed       RBF on vote, bags of 32, C = 10, C* = 1, gamma = 0.1, 10 annealed random starts, 5 folds: ours, the convex
            machine, and llp-learn 1.6.0's alterSVMRBF in a process of its own (--llp-python names an interpreter with
            it: pip install --no-deps llp-learn==1.6.0 beside NumPy and scikit-learn). Its annealing begins at 10^-4 C*,
            so ours does here too. Same bags, same folds, in turns; seconds are of the processor, the median of
            --repeats fits of ours. llp-learn takes its time, so it runs once, on the first --peer-folds folds only, and
            the ratio is over those.
scaling     linear, 2^14 to 271,000 generated rows of 8 features shaped like cod-rna, bags of 2^11 to 2^13.
small-bags  3,000 rows of 57 features in bags of 4: the convex machine, and the alternating one.
assignment  labels of bags alone: million rows a second against the number of rows and the size of bags.
tables      tables 8.3 and 8.4: accuracy by bag size, 5 runs of 5 folds, beside the printed figures.

The protocol of the tables: attributes are scaled to [-1, 1]; each run permutes the rows and
cuts them into 5 folds; the rows of the four training folds are put into random bags of the size, and their shares are
all that methods see. Parameters are chosen by the error of predicted shares, sum over bags of |p_k - y_k|, on bags left
out in 3 inner folds of whole bags (2 where there are two bags; a single bag leaves nothing out, and the first point of
the grid is taken): no label of a row is used. Grids: mean-map alpha {.1, 1, 10}; inverse-calibration C {.1, 1, 10} x
epsilon {0, .01, .1}; alter C* {.1, 1, 10} x C {1, 10, 100}; conv C {.1, 1, 10} x epsilon {0, .01, .1}; RBF gamma {.01,
.1, 1}. The literature writes the mean map with a mean of losses or with their sum, and the source says nothing of it:
with RBF, whose feature vectors have norm 1 so that a penalty of .1 on a mean leaves little, alpha {.1, 1, 10} / N are
in the grid too; and its threshold is put where the shares of the training bags are met best. Within selection alter has
2 random starts, the fit with the chosen parameters 10 (the smallest objective is taken).
"best start" is alter whose start is chosen by the same error too: random and annealed, or at the labels of
inverse-calibration or of mean-map, not annealed. One line for each fold goes to a JSON-lines file (--out); what is
there already is not run again, and what alter chose there is taken over.

Sets are those of `mercer.datasets.load_proportion_set`. colic is not at hand; ionosphere stands in, with no printed
figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import exponent, from_data, parse, record, seconds
from proportions_printed import PRINTED, SIZES
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from mercer.datasets import load_proportion_set
from mercer.kernels import Gaussian
from mercer.proportions import (
    AlternatingProportionSVM,
    Bags,
    ConvexProportionSVM,
    InverseCalibration,
    MeanMap,
    make_bags,
)
from mercer.proportions._base import Problem
from mercer.proportions.assignment import assigned

SETS = ("heart", "ionosphere", "vote", "australian", "breast-w", "dna-1", "dna-2", "dna-3", "satimage-2")
loaded = lru_cache(maxsize=2)(load_proportion_set)


# ------------------------------------------------------------------------------------------------ tables

GAMMAS = (0.01, 0.1, 1.0)
GRIDS: dict[str, list[dict[str, Any]]] = {
    "mean-map": [{"alpha": a} for a in (0.1, 1.0, 10.0)],
    "inverse-calibration": [{"C": c, "epsilon": e} for c, e in product((0.1, 1.0, 10.0), (0.0, 0.01, 0.1))],
    "alter": [{"C_instance": s, "C": c} for s, c in product((0.1, 1.0, 10.0), (1.0, 10.0, 100.0))],
    "conv": [{"C": c, "epsilon": e} for c, e in product((0.1, 1.0, 10.0), (0.0, 0.01, 0.1))],
}
STARTING = {"inverse-calibration": InverseCalibration, "mean-map": MeanMap}
STARTS = ("random", *STARTING)
GRIDS["best start"] = [{**point, "init": init} for init in STARTS for point in GRIDS["alter"]]
METHODS = ("mean-map", "inverse-calibration", "alter", "conv", "best start")


def learner(method: str, point: dict[str, Any], kernel: str, selecting: bool, seed: int, start: Any = None) -> Any:
    """An estimator; ``start`` are the labels that ``init`` names, if they are at hand."""
    common = {**point, "kernel": "precomputed" if kernel == "rbf" else None}
    if method == "mean-map":
        return MeanMap(**{"threshold": "shares", **common})
    if method == "inverse-calibration":
        return InverseCalibration(**common)
    if method == "conv":
        return ConvexProportionSVM(**common, random_state=seed)
    # Labels of another learner are kept by going on from them; annealing is for those that know nothing.
    common = {"init": "random", **common}
    common["annealing"] = isinstance(common["init"], str) and common["init"] == "random"
    if start is not None:
        common["init"] = start
    return AlternatingProportionSVM(**common, n_init=2 if selecting else 10, max_swaps=0, random_state=seed)


class Inputs:
    """Rows for a learner: features, or parts of one kernel matrix."""

    def __init__(self, X: np.ndarray, kernel: str, gamma: float) -> None:
        self.values = rbf_kernel(X, gamma=gamma) if kernel == "rbf" else X
        self.square = kernel == "rbf"
        self._parts: dict[tuple[bytes, bytes], np.ndarray] = {}  # the same ones for every point of a grid
        self._starts: dict[tuple[str, bytes], np.ndarray] = {}

    def train(self, rows: np.ndarray) -> np.ndarray:
        return self.test(rows, rows)

    def start(self, init: str, rows: np.ndarray, bags: Bags) -> np.ndarray | None:
        """The labels that `AlternatingProportionSVM` starts with where ``init`` names a learner; None otherwise."""
        if init not in STARTING:
            return None
        key = init, rows.tobytes()
        if key not in self._starts:
            X = self.train(rows)
            model = STARTING[init](kernel="precomputed" if self.square else None).fit(X, bags=bags)
            scores = model.decision_function(X)
            shares, one, n = bags.proportions, np.ones(len(bags)), len(bags.members)
            problem = Problem(bags.offsets, shares, shares, shares, one, np.ones(n), np.zeros(n, np.int8))
            labels = np.zeros(len(X), np.int64)
            labels[bags.members] = assigned(scores[bags.members], problem, 1e9, "absolute")[0] > 0
            self._starts[key] = labels
        return self._starts[key]

    def test(self, rows: np.ndarray, train: np.ndarray) -> np.ndarray:
        key = rows.tobytes(), train.tobytes()
        if key not in self._parts:
            part = self.values.take(rows, axis=0)
            self._parts[key] = part.take(train, axis=1) if self.square else part
        return self._parts[key]


def bag_error(method: str, point: dict[str, Any], kernel: str, inputs: Inputs, rows: np.ndarray, bags: Bags) -> float:
    """Σ_k |p_k − ȳ_k| on bags left out; infinite where the method fails."""
    n_folds, total = min(3, len(bags)), 0.0
    fold = np.random.RandomState(0).permutation(len(bags)) % n_folds
    if n_folds == 1:
        return 0.0
    for k in range(n_folds):
        kept, inside = bags.select(np.flatnonzero(fold != k))
        held, outside = bags.select(np.flatnonzero(fold == k))
        try:
            start = inputs.start(point.get("init", ""), rows[inside], kept)
            model = learner(method, point, kernel, True, k, start).fit(inputs.train(rows[inside]), bags=kept)
        except (ValueError, np.linalg.LinAlgError):
            return np.inf
        predicted = model.predict_proportions(inputs.test(rows[outside], rows[inside]), held)
        total += float(np.abs(predicted - held.proportions).sum())
    return total


def distinct(method: str, kernel: str, bags: Bags) -> list[dict[str, Any]]:
    """The points of a grid without those that are another one here: conv counts the positives of a bag."""
    if (method, kernel) == ("mean-map", "rbf"):
        return GRIDS[method] + [{"alpha": point["alpha"] / bags.n_rows} for point in GRIDS[method]]
    if method != "conv":
        return GRIDS[method]
    kept = {}
    for point in GRIDS[method]:
        room = np.floor(bags.sizes * point["epsilon"] + 1e-9)  # shares of the bags are counts already
        kept.setdefault((point["C"], room.tobytes()), point)
    return list(kept.values())


def one_fold(
    name: str, size: int, kernel: str, method: str, run: int, fold: int, alter: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A line of results; ``alter`` is what alter chose here, if that is known."""
    start = time.process_time()
    accuracy, chosen = judged(*loaded(name), size, kernel, method, run, fold, alter=alter)
    return {
        "set": name, "size": size, "kernel": kernel, "method": method, "run": run, "fold": fold, "accuracy": accuracy,
        "chosen": chosen, "seconds": time.process_time() - start,
    }  # fmt: skip


def judged(
    X: np.ndarray,
    y: np.ndarray,
    size: int,
    kernel: str,
    method: str,
    run: int,
    fold: int,
    grid: list[dict[str, Any]] | None = None,
    alter: dict[str, Any] | None = None,
) -> tuple[float, dict[str, Any]]:
    """Parameters by bags, then accuracy on the rows left out; and the parameters."""
    warnings.simplefilter("ignore")
    order = np.random.RandomState(run).permutation(len(y))
    test = order[fold::5]
    train = np.setdiff1d(order, test)
    bags = make_bags(y[train], size, random_state=100 * run + fold)
    best: tuple[float, dict[str, Any], float] = (np.inf, {}, 0.0)
    for gamma in GAMMAS if kernel == "rbf" else (0.0,):
        inputs = Inputs(X, kernel, gamma)
        for point in distinct(method, kernel, bags) if grid is None else grid:
            # Of the points with random starts, which are alter's, only the best can be the best of all.
            if alter is not None and point["init"] == "random" and {**point, "gamma": gamma} != alter:
                continue
            error = bag_error(method, point, kernel, inputs, train, bags)
            if error < best[0]:
                best = (error, point, gamma)
    _, point, gamma = best
    inputs = Inputs(X, kernel, gamma or 1.0)
    try:
        model = learner(method, point or GRIDS[method][0], kernel, False, run).fit(inputs.train(train), bags=bags)
        accuracy = 100 * float(np.mean(model.predict(inputs.test(test, train)) == y[test]))
    except (ValueError, np.linalg.LinAlgError) as error:
        accuracy = 100 * max(float(np.mean(y[test])), 1 - float(np.mean(y[test])))
        point = {"failed": str(error)}
    return accuracy, {**point, "gamma": gamma}


KEYS = ("set", "size", "kernel", "method", "run", "fold")


def tables(options: argparse.Namespace) -> None:
    """Run what the file lacks, then print ours beside the printed figures."""
    methods = options.methods
    path = Path(options.out)
    results = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(result[key] for key in KEYS) for result in results}
    wanted = product(options.sets, options.sizes, options.kernels, methods, range(options.runs), range(options.folds))
    jobs = [job for job in wanted if job not in done]
    jobs.sort(key=lambda job: (job[4], job[5]))  # whole tables of few folds first
    print(f"{len(jobs)} folds to run, {len(done)} in {path}", flush=True)
    chosen = {tuple(r[key] for key in KEYS): r["chosen"] for r in results if "failed" not in r["chosen"]}

    def of_alter(job: tuple[Any, ...]) -> dict[str, Any] | None:
        found = chosen.get((*job[:3], "alter", *job[4:])) if job[3] == "best start" else None
        return {**found, "init": "random"} if found else None

    with ProcessPoolExecutor(options.jobs) as pool, path.open("a") as out:
        pending = [pool.submit(one_fold, *job, of_alter(job)) for job in jobs]
        for number, future in enumerate(as_completed(pending), 1):
            results.append(future.result())
            out.write(json.dumps(results[-1]) + "\n")
            out.flush()
            if number % 100 == 0:
                print(f"  {number} of {len(jobs)}", file=sys.stderr, flush=True)
    show(results, options)


def show(results: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Mean ± deviation over runs (of means over folds), and the printed ones below."""
    for kernel in options.kernels:
        print(f"\nTable {'8.3, linear' if kernel == 'linear' else '8.4, RBF'}: accuracy in % by bag size")
        print("| set | method | " + " | ".join(str(size) for size in options.sizes) + " |")
        print("|---|---|" + "---|" * len(options.sizes))
        for name, method in product(options.sets, options.methods):
            cells = [_cell(results, name, size, kernel, method) for size in options.sizes]
            if any(cells):
                print(f"| {name} | {method} | " + " | ".join(cells) + " |")
            printed = PRINTED[kernel].get(name, {}).get(method)
            if printed and any(cells):
                figures = [printed[SIZES.index(size)] if size in SIZES else None for size in options.sizes]
                print(f"| | printed | {' | '.join(f'{f[0]:.2f}±{f[1]:.2f}' if f else '' for f in figures)} |")
    total = sum(result["seconds"] for result in results)
    print(f"\n{total:.0f} processor seconds in all")


def _cell(results: list[dict[str, Any]], name: str, size: int, kernel: str, method: str) -> str:
    runs: dict[int, list[float]] = {}
    for result in results:
        if (result["set"], result["size"], result["kernel"], result["method"]) == (name, size, kernel, method):
            runs.setdefault(result["run"], []).append(result["accuracy"])
    means = [float(np.mean(values)) for values in runs.values()]
    return f"{np.mean(means):.2f}±{np.std(means):.2f}" if means else ""


# ------------------------------------------------------------------------------------------------ speed

PEER = """
import sys, time, json, io, contextlib
import numpy as np
from llp_learn.alter import alterSVMRBF
data = np.load(sys.argv[1])
model = alterSVMRBF(C=1.0, C_p=10.0, gamma=0.1, num_exec=10, random_state=0)
start = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    model.fit(data["X"], data["bags"], data["shares"])
took = time.process_time() - start
print(json.dumps([took, float(np.mean((model.predict(data["X_test"]) > 0) == data["y_test"]))]))
"""


def folds_of_vote(size: int = 32) -> Iterator[tuple[np.ndarray, Bags, np.ndarray, np.ndarray]]:
    X, y = loaded("vote")
    order = np.random.RandomState(0).permutation(len(y))
    for k in range(5):
        test = order[k::5]
        train = np.setdiff1d(order, test)
        yield X[train], make_bags(y[train], size, random_state=k), X[test], y[test]


def _theirs(python: str, X: np.ndarray, bags: Bags, X_test: np.ndarray, y_test: np.ndarray) -> tuple[float, float]:
    number = np.empty(bags.n_rows, np.int64)
    number[bags.members] = bags.number
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, X=X, bags=number, shares=bags.proportions, X_test=X_test, y_test=y_test)
        file.flush()
        done = subprocess.run([python, "-c", PEER, file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    took, accuracy = json.loads(done.stdout)
    return took, accuracy


def random_starts(**options: Any) -> AlternatingProportionSVM:
    """The machine as the source has it: annealed random starts, and nothing after."""
    return AlternatingProportionSVM(**options, init="random", annealing=True, max_swaps=0, random_state=0)


def speed(options: argparse.Namespace) -> None:
    """Ten annealed starts on vote, five folds, in turns."""
    calls: dict[str, Callable[[], Any]] = {
        "alter, start 1e-4": lambda: random_starts(C=10.0, kernel=Gaussian(0.1), start=1e-4),
        "alter, start 1e-5": lambda: random_starts(C=10.0, kernel=Gaussian(0.1)),
        "convex": lambda: ConvexProportionSVM(kernel=Gaussian(0.1), random_state=0),
    }
    taken: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    peer = 0
    for number, (X, bags, X_test, y_test) in enumerate(folds_of_vote()):
        repeats: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(options.repeats):
            for name, make in calls.items():
                took, model = seconds(lambda make=make, X=X, bags=bags: make().fit(X, bags=bags))
                repeats[name].append(took)
                if turn == 0:
                    scores.setdefault(name, []).append(model.score(X_test, y_test))
        for name in calls:
            taken.setdefault(name, []).append(float(np.median(repeats[name])))
        if peer == number < options.peer_folds:
            try:
                took, score = _theirs(options.llp_python, X, bags, X_test, y_test)
                taken.setdefault("llp-learn 1.6.0", []).append(took)
                scores.setdefault("llp-learn 1.6.0", []).append(score)
                peer += 1
            except (RuntimeError, OSError) as error:
                print(f"llp-learn: not installed ({error})")
    print("\nvote, RBF, bags of 32 (printed, 5 folds: alter 15.0 s, convex 4.3 s, another machine)")
    for name, values in taken.items():
        accuracy = 100 * np.mean(scores[name])
        columns = {"s": round(sum(values), 3), "folds": len(values), "right, %": round(float(accuracy), 1)}
        record("speed", name, values=columns, sizes="vote, RBF, bags of 32")
        print(f"  {name:18} {sum(values):8.3f} s for {len(values)} folds   accuracy {accuracy:.1f} %")
    if peer:
        ratio = sum(taken["llp-learn 1.6.0"]) / sum(taken["alter, start 1e-4"][:peer])
        print(f"  {ratio:.0f}x llp-learn (aim: 10x)")


# ------------------------------------------------------------------------------------------------ growth


def like_cod_rna(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 8 correlated features, a third positive, about 94 % of them linearly separable."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 1 / 3).astype(int)
    mixing = np.eye(8) + 0.15 * rng.standard_normal((8, 8))
    return (rng.standard_normal((n, 8)) + 0.55 * (2 * y - 1)[:, None]) @ mixing, y


def scaling(options: argparse.Namespace) -> None:
    """Linear machine against the number of rows, for one start and for ten."""
    sizes = [2**14, 2**15, 2**16] if options.quick else [2**14, 2**15, 2**16, 2**17, 271_000]
    print("\nlinear alter, 8 features, C = (rows of a bag) / 100, C* = 1, one annealed start")
    for bag in (2**11, 2**12, 2**13):
        taken = []
        for n in sizes if bag == 2**12 else sizes[-1:]:
            X, y = like_cod_rna(n)
            bags = make_bags(y, bag, random_state=0)
            model = random_starts(C=bag / 100, n_init=1)
            took, model = seconds(lambda model=model, X=X, bags=bags: model.fit(X, bags=bags))
            taken.append(took)
            line = f"  bags of {bag:5}, {n:7,} rows: {took:6.2f} s   accuracy {100 * model.score(X, y):.1f} %"
            print(line, flush=True)
            record("growth", f"{n:,} rows, bags of {bag:,}", ours=took)
        if len(taken) > 1:
            print(f"  exponent {exponent(sizes, taken):.2f}")
    if not options.quick:
        X, y = like_cod_rna(271_000)
        bags = make_bags(y, 2**12, random_state=0)
        model = random_starts(C=41.0, n_jobs=options.jobs)
        wall = time.perf_counter()
        took, model = seconds(lambda: model.fit(X, bags=bags))
        wall = time.perf_counter() - wall
        print(f"  ten starts, {options.jobs} threads: {took:.1f} s of the processor, {wall:.1f} s by the clock")
        record("growth", f"271,000 rows, bags of 4,096, ten starts, {options.jobs} threads", ours=wall)


def small_bags(options: argparse.Namespace) -> None:
    """The convex machine on many small bags, beside the alternating one."""
    n = 300 if options.quick else 3000
    X, y = make_classification(n, 57, n_informative=20, random_state=0)
    bags = make_bags(y, 4, random_state=0)
    for name, model in (
        ("convex", ConvexProportionSVM(random_state=0)), ("alternating", AlternatingProportionSVM(random_state=0))
    ):  # fmt: skip
        took = float(np.median([seconds(lambda m=model: m.fit(X, bags=bags))[0] for _ in range(options.repeats)]))
        print(f"  {name}, {n:,} x 57, bags of 4: {took:.2f} s of the processor, {100 * model.score(X, y):.1f} % right")
        note = f"{100 * model.score(X, y):.1f} % right"
        record("small bags", f"{name}, {n:,} × 57, bags of 4", ours=took, note=note)


def assignment(options: argparse.Namespace) -> None:
    """Throughput of exact labels."""
    print("\nlabels of bags: million rows a second, one thread")
    shapes = [(2**n, 2**6) for n in (14, 16, 18, 20)] + [(2**18, 2**j) for j in (2, 10, 14, 18)]
    for n, bag in shapes:
        rng = np.random.default_rng(0)
        f, shares, one = rng.standard_normal(n), rng.random(n // bag), np.ones(n // bag)
        offsets, known = np.arange(0, n + 1, bag), np.zeros(n, np.int8)
        problem = Problem(offsets, shares, shares, shares, one, np.ones(n), known)
        took = min(seconds(lambda f=f, problem=problem: assigned(f, problem, 1e3, "absolute"))[0] for _ in range(5))
        print(f"  {n:9,} rows, bags of {bag:9,}: {n / took / 1e6:6.1f}")
        record("assignment", f"{n:,} rows, bags of {bag:,}", ours=n / took / 1e6, unit="M rows/s")


PARTS = {
    "speed": speed, "scaling": scaling, "small-bags": small_bags, "assignment": assignment, "tables": tables
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["speed", "scaling", "assignment"])
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the tables, threads of the ten starts")
    parser.add_argument("--llp-python", default=sys.executable, help="interpreter that has llp-learn")
    parser.add_argument("--repeats", type=int, default=5, help="fits of ours in each fold of the speed")
    parser.add_argument("--peer-folds", type=int, default=1, help="folds on which llp-learn is run")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--kernels", nargs="+", choices=["linear", "rbf"], default=["linear", "rbf"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--out", default="proportions.jsonl", help="results of the tables, one line for each fold")
    options = parse(parser, parts=["speed", "assignment"], quick=True, repeats=1)
    for part in options.parts:
        with from_data(part):
            PARTS[part](options)


if __name__ == "__main__":
    main()
