"""Margin learning: passes, certified gaps, dlib beside us, and cuts against the number of examples.

    pass    one pass of block-coordinate Frank-Wolfe over the synthetic chain task (2,000 × 25 tokens, 20 labels, 5,000
            features): seconds and memory
    gap     seconds to a certified relative gap of 1e-3, all solvers, on that task and on CoNLL-2000 (needs MERCER_DATA)
    dlib    the same on a size that dlib's solve_structural_svm_problem can take, with the same Python oracle on both
            sides, and with our compiled chain
    cuts    rounds and seconds of n-slack, 1-slack and 1-slack without cache as n doubles, for multiclass,
            chains and grammars; --plot FILE writes the picture
    qp      the small programs of the bundle: our active-set solver beside Clarabel

Multiclass machines against liblinear: benchmarks/margin_multiclass.py.

    python benchmarks/margin.py [--parts pass gap dlib cuts qp] [--plot cuts.svg]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _timing import SMOKE, from_data, missing, parse, peer, record, sized
from scipy import sparse

from mercer.data import Template
from mercer.datasets import load_conll2000, make_chain_task
from mercer.learning import ConvergenceWarning, Hinge, Risk
from mercer.learning.qp.simplex import simplex_qp
from mercer.learning.solvers import BCFW, BMRM, CuttingPlane, Solver, Subgradient
from mercer.learning.training import train
from mercer.structured import CustomStructure, StructuredPredictor
from mercer.structures import Labels
from mercer.tagging import Tagger

warnings.simplefilter("ignore", ConvergenceWarning)

SOLVERS: dict[str, Any] = {
    "bcfw": BCFW,
    "cutting-plane, 1-slack, cache": CuttingPlane,
    "cutting-plane, 1-slack": lambda: CuttingPlane(cache=False),
    "cutting-plane, n-slack": lambda: CuttingPlane(slack="n"),
    "bmrm": BMRM,
    "subgradient": Subgradient,
}
GAP = sized(1e-3, 0.1)  # of 'cuts'
CHAINS = sized((2000, 500, 20, 5000), (10, 2, 4, 50))  # training and test sequences, labels, features


def fitted(X: Any, y: Any, C: float, solver: Solver, tol: float = 1e-3, **options: Any) -> tuple[float, Tagger]:
    """Seconds of the solver alone (features were made before the clock starts) and the model."""
    tagger = Tagger(loss="hinge", solver=solver, C=C, tol=tol, random_state=0, **options).fit(X, y)
    return tagger.history_["seconds"][-1], tagger


def chain_task() -> Any:
    """The synthetic task of chains."""
    n_train, n_test, n_labels, n_features = CHAINS
    return make_chain_task(n_train=n_train, n_test=n_test, n_labels=n_labels, n_features=n_features)


# ---------------------------------------------------------------------------------------------- one pass


def one_pass() -> None:
    task = chain_task()
    print("\n## One pass of bcfw, {0:,} × 25 tokens, {2} labels, {3:,} features, all weights".format(*CHAINS))
    times = []
    for _ in range(sized(5, 1)):
        seconds, _ = fitted(task.X_train, task.y_train, 0.01, BCFW(check_every=10**9), max_iter=2, weights="all")
        times.append(seconds)
    print(f"one pass (second of two, with 3 passes over known planes): median {np.median(times) / 2:.3f} s")
    record("pass", "one pass of bcfw", ours=float(np.median(times)) / 2, sizes="{0:,} x 25, {2} labels".format(*CHAINS))
    if SMOKE:  # imports would take longest
        with contextlib.redirect_stdout(io.StringIO()) as said:
            memory()
        out = said.getvalue()
    else:
        command = [sys.executable, __file__, "--memory"]
        out = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
    print(out.strip())
    record("pass", "memory of training", ours=float(out.split()[-2]), unit="MiB")


def memory() -> None:
    """Peak memory of a pass, beside the data: drawn as arrays, so that nothing else has lifted the peak before."""
    from mercer.data import Sequences

    rng = np.random.default_rng(0)
    n = sized(2000, 20)
    columns = np.sort(rng.integers(0, 5000, (25 * n, 15), dtype=np.int32), axis=1)
    columns += np.arange(15, dtype=np.int32)  # ascending; at most 14 columns beyond
    from scipy.sparse import csr_matrix

    rows = csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 15)), (25 * n, 5014))
    X = Sequences(rows, np.arange(0, 25 * n + 1, 25))
    y = [[f"L{k:02d}" for k in row] for row in rng.integers(0, 20, (n, 25))]
    tagger = Tagger(loss="hinge", solver=BCFW(check_every=10**9), C=0.01, max_iter=1, weights="all", random_state=0)
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * resource.getpagesize() / 2**20
    tagger.fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process {after:.0f} MiB (aim: under 200 MB), of which training {after - before:.0f} MiB")


# ---------------------------------------------------------------------------------------------- time to a gap


def gap_table(limit: float) -> None:
    tasks: dict[str, tuple[Any, Any, float]] = {}
    chain = chain_task()
    tasks["synthetic, C = 0.01"] = (chain.X_train, chain.y_train, 0.01)
    tasks["synthetic, C = 0.1"] = (chain.X_train, chain.y_train, 0.1)
    with from_data("CoNLL-2000"):
        template = Template.load("words+pos")
        sentences = load_conll2000("train")[: sized(None, 20)]
        X = [template.expand(s)[0] for s in sentences]
        tasks["CoNLL-2000, C = 0.1"] = (X, [[token[-1] for token in s] for s in sentences], 0.1)
    reached: dict[str, dict[str, Any]] = {solver: {} for solver in SOLVERS}
    for name, (X, y, C) in tasks.items():
        print(f"\n## Seconds to a certified relative gap of 1e-3: {name}")
        print(f"{'solver':32s} {'seconds':>9s} {'rounds':>7s} {'passes':>7s} {'gap':>9s} {'objective':>12s}")
        for solver, make in SOLVERS.items():
            method = make()
            seconds, tagger = fitted(X, y, C, _limited(method, limit))
            history = tagger.history_
            note = "" if history["gap"][-1] <= 1e-3 else "  (not reached)"
            reached[solver][name] = f"({history['gap'][-1]:.1e})" if note else round(seconds, 1)
            print(
                f"{solver:32s} {seconds:9.2f} {len(history['gap']):7d} {history['passes'][-1]:7.0f} "
                f"{history['gap'][-1]:9.1e} {history['primal'][-1]:12.3f}{note}",
                flush=True,
            )
    for solver, values in reached.items():
        record("gap", solver, values=values)


def _limited(solver: Solver, limit: float) -> Solver:
    """The solver, interrupted after so many seconds (its own Ctrl-C path)."""
    minimize = solver.minimize

    def run(*args: Any, monitor: Any, **options: Any) -> Any:
        record = monitor.record

        def watched(*a: Any, **figures: float) -> bool:
            stop = record(*a, **figures)
            if monitor.seconds > limit:
                raise KeyboardInterrupt
            return stop

        monitor.record = watched
        return minimize(*args, monitor=monitor, **options)

    solver.minimize = run  # type: ignore[method-assign]
    return solver


# ---------------------------------------------------------------------------------------------- dlib


class PythonChain(CustomStructure):
    """The chain as a user would write it in NumPy: dense nodes, Viterbi, Hamming cost."""

    def __init__(self, n_labels: int, n_features: int) -> None:
        self.C, self.F = n_labels, n_features

    def features(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        nodes, edges = np.zeros((self.C, self.F)), np.zeros((self.C, self.C))
        np.add.at(nodes, y, x)
        np.add.at(edges, (y[:-1], y[1:]), 1.0)
        return np.concatenate([nodes.ravel(), edges.ravel()])

    def cost(self, y_true: np.ndarray, y: np.ndarray) -> float:
        return float((y_true != y).sum())

    def argmax(self, w: np.ndarray, x: np.ndarray, cost_to: np.ndarray | None = None) -> np.ndarray:
        split = self.C * self.F
        theta, edges = x @ w[:split].reshape(self.C, self.F).T, w[split:].reshape(self.C, self.C)
        if cost_to is not None:
            theta = theta + 1.0
            theta[np.arange(len(x)), cost_to] -= 1.0
        best, back = theta[0], np.zeros((len(x), self.C), int)
        for t in range(1, len(x)):
            scores = best[:, None] + edges
            back[t] = scores.argmax(0)
            best = scores.max(0) + theta[t]
        y = np.empty(len(x), int)
        y[-1] = best.argmax()
        for t in range(len(x) - 1, 0, -1):
            y[t - 1] = back[t, y[t]]
        return y


def dlib_fit(structure: PythonChain, X: list, Y: list, C: float, epsilon: float) -> tuple[float, np.ndarray]:
    """dlib minimises ½‖w‖² + C_dlib · mean loss: C_dlib = n C."""
    import dlib

    size = structure.C * structure.F + structure.C**2

    class Problem:
        def __init__(self) -> None:
            self.C, self.num_samples, self.num_dimensions = C * len(X), len(X), size
            self.epsilon, self.max_cache_size, self.be_verbose = epsilon, 5, False

        def get_truth_joint_feature_vector(self, i: int) -> Any:
            return dlib.vector(structure.features(X[i], Y[i]).tolist())

        def separation_oracle(self, i: int, solution: Any) -> tuple[float, Any]:
            z = structure.argmax(np.array(solution), X[i], cost_to=Y[i])
            return structure.cost(Y[i], z), dlib.vector(structure.features(X[i], z).tolist())

    begin = time.perf_counter()
    w = dlib.solve_structural_svm_problem(Problem())
    return time.perf_counter() - begin, np.array(w)


def against_dlib() -> None:
    alone = bool(missing("dlib"))
    rng = np.random.default_rng(0)
    n, T, C_labels, F, C = sized(100, 6), sized(10, 4), sized(5, 3), sized(20, 6), 0.1
    planted = rng.normal(size=(C_labels, F))
    X = [rng.normal(size=(T, F)) for _ in range(n)]
    Y = [(x @ planted.T + 2.0 * rng.normal(size=(T, C_labels))).argmax(1) for x in X]
    print(f"\n## {n} chains of {T} positions, {C_labels} labels, {F} dense features, C = {C}: time to a gap of 1e-3")
    structure = PythonChain(C_labels, F)
    exact = StructuredPredictor(structure, C=C, tol=sized(1e-4, 1e-3), random_state=0, max_iter=5000).fit(X, Y)
    bound = exact.history_["dual"][-1]

    def objective(w: np.ndarray) -> float:
        losses = []
        for x, y in zip(X, Y, strict=True):
            z = structure.argmax(w, x, cost_to=y)
            losses.append(structure.cost(y, z) + w @ (structure.features(x, z) - structure.features(x, y)))
        return 0.5 * float(w @ w) + C * sum(losses)

    rows = []
    for epsilon in () if alone else (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        seconds, w = dlib_fit(structure, X, Y, C, epsilon)
        gap = (objective(w) - bound) / bound
        rows.append((f"dlib, Python oracle, epsilon {epsilon:g}", seconds, gap))
        if gap <= 1e-3:
            break
    slowest = None if alone else rows[-1][1]
    for name in ("bcfw", "cutting-plane", "bmrm"):
        model = StructuredPredictor(structure, solver=name, C=C, tol=1e-3, random_state=0, max_iter=5000).fit(X, Y)
        rows.append((f"ours, the same Python oracle, {name}", model.history_["seconds"][-1], model.history_["gap"][-1]))
    # The compiled chain has start and end weights, which this task's features lack: constant 0 by their own penalty is
    # near enough for time, and its gap is certified for itself.
    labels = [[str(k) for k in y] for y in Y]
    for name in ("bcfw", "bmrm"):
        seconds = np.median([fitted(X, labels, C, SOLVERS[name]())[0] for _ in range(sized(5, 1))])
        rows.append((f"ours, compiled chain, {name}", float(seconds), 1e-3))
    print(f"{'':42s} {'seconds':>9s} {'gap':>9s}" + ("" if slowest is None else f" {'dlib / ours':>12s}"))
    for name, seconds, gap in rows:
        ratio = "" if slowest is None else f" {slowest / seconds:11.1f}x"
        print(f"{name:42s} {seconds:9.3f} {gap:9.1e}{ratio}")
        if not name.startswith("dlib"):
            record("dlib", name, peer="dlib", theirs=slowest, ours=seconds, sizes=f"{n} chains of {T}")


# ---------------------------------------------------------------------------------------------- cuts against n


def cuts(plot: str | None) -> None:
    print(f"\n## Rounds and seconds against n, gap {GAP:g}, C n held constant")
    methods = {"n-slack": lambda: CuttingPlane(slack="n"), "1-slack": lambda: CuttingPlane(cache=False),
               "1-slack, cache": CuttingPlane}  # fmt: skip
    results: dict[str, dict[str, list[tuple[int, int, float, float]]]] = {}
    for family, (sizes, make) in {"multiclass": _multiclass(), "chains": _chains(), "grammars": _grammars()}.items():
        print(f"\n{family}\n{'method':16s} {'n':>7s} {'rounds':>7s} {'searches':>9s} {'seconds':>9s}")
        results[family] = {}
        for method, solver in methods.items():
            for n in sizes:
                history = make(n, solver())
                seconds = history["seconds"][-1]
                row = (n, len(history["gap"]), history["passes"][-1], seconds)
                results[family].setdefault(method, []).append(row)
                print(f"{method:16s} {n:7d} {row[1]:7d} {row[2]:9.0f} {seconds:9.2f}", flush=True)
                record("cuts", f"{family}, {method}, n = {n}", values={"rounds": row[1], "seconds": round(seconds, 2)})
    if plot:
        _draw(results, plot)


def _multiclass() -> tuple[list[int], Any]:
    from mercer.data import Sequences

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 50))
    sizes = sized([2000, 4000, 8000, 16_000, 32_000], [10])
    y_all = rng.integers(0, 10, sizes[-1])
    X_all = centres[y_all] + 2.0 * rng.normal(size=(sizes[-1], 50))

    def make(n: int, solver: Solver) -> dict[str, list[float]]:
        X = Sequences(X_all[:n], np.arange(n + 1))
        risk = Risk(Labels(10, 50), Hinge(), X, y_all[:n].astype(np.int32))
        return train(risk, solver=solver, C=100.0 / n, tol=GAP, max_iter=3000)[1]

    return sizes, make


def _chains() -> tuple[list[int], Any]:
    sizes = sized([250, 500, 1000, 2000, 4000], [5])
    task = make_chain_task(n_train=sizes[-1], n_test=1, n_labels=10, n_features=500)

    def make(n: int, solver: Solver) -> dict[str, list[float]]:
        X, y = task.X_train[:n], task.y_train[:n]
        return fitted(X, y, 4.0 / n, solver, GAP, weights="all", max_iter=3000)[1].history_

    return sizes, make


def _grammars() -> tuple[list[int], Any]:
    from mercer.datasets import make_treebank
    from mercer.parsing import Parser

    sizes = sized([50, 100, 200, 400, 800], [5])
    bank = make_treebank(sizes[-1], random_state=0)
    trees = getattr(bank, "trees", bank)

    def make(n: int, solver: Solver) -> dict[str, list[float]]:
        return Parser(solver=solver, C=10.0 / n, tol=GAP, max_iter=3000).fit(None, trees[:n]).history_

    return sizes, make


def _draw(results: dict[str, Any], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(results), figsize=(4 * len(results), 6), squeeze=False)
    for column, (family, methods) in enumerate(results.items()):
        for method, rows in methods.items():
            n, rounds, _, seconds = zip(*rows, strict=True)
            axes[0][column].plot(n, rounds, marker="o", label=method)
            axes[1][column].loglog(n, seconds, marker="o", label=method)
        axes[0][column].set_title(family)
        axes[0][column].set_ylabel("rounds")
        axes[1][column].set_ylabel("seconds")
        axes[1][column].set_xlabel("examples")
        axes[0][column].set_xscale("log")
        axes[0][column].set_ylim(bottom=0)
        for row in axes:  # a label at each size, and none between
            row[column].set_xticks(n, [f"{size:,}" for size in n])
            row[column].minorticks_off()
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)
    print(f"\n{path}")


# ---------------------------------------------------------------------------------------------- small programs


def small_programs() -> None:
    clarabel = peer("clarabel")
    print("\n## The bundle's quadratic program: one more plane, from the last solution")
    beside = f" {'Clarabel, ms':>13s} {'ratio':>7s} {'difference of values':>21s}"
    print(f"{'planes':>7s} {'ours, ms':>9s}" + (beside if clarabel else ""))
    rng = np.random.default_rng(0)
    for m in sized((10, 30, 100, 300), (10,)):
        A = rng.normal(size=(m, 500)) * np.exp(rng.normal(size=(m, 1)))
        G, b = A @ A.T, rng.normal(size=m) * 10
        start = simplex_qp(G[:-1, :-1], b[:-1])
        ours, theirs = [], []
        for _ in range(9):
            begin = time.perf_counter()
            a = simplex_qp(G, b, 1.0, start)
            ours.append(time.perf_counter() - begin)
            if clarabel is not None:
                begin = time.perf_counter()
                z = by_clarabel(clarabel, G, b)
                theirs.append(time.perf_counter() - begin)
        one = 1e3 * np.median(ours)
        if clarabel is None:
            print(f"{m:7d} {one:9.2f}")
            record("qp", f"{m} planes", ours=one, unit="ms")
            continue
        value = [float(b @ v - 0.5 * v @ G @ v) for v in (a, z)]
        two = 1e3 * np.median(theirs)
        record("qp", f"{m} planes", peer="Clarabel", theirs=two, ours=one, unit="ms")
        print(f"{m:7d} {one:9.2f} {two:13.2f} {two / one:6.1f}x {value[0] - value[1]:21.1e}")


def by_clarabel(clarabel: Any, G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """argmax ⟨b, a⟩ − ½ a'Ga over the simplex."""
    m = len(b)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    rows = sparse.csc_matrix(np.vstack([np.ones((1, m)), -np.eye(m)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)]
    right = np.concatenate([[1.0], np.zeros(m)])
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(G)), -b, rows, right, cones, settings)
    return np.array(solver.solve().x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["pass", "gap", "dlib", "cuts", "qp"]
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    parser.add_argument("--limit", type=float, default=60.0, help="most seconds of one solver in 'gap'")
    parser.add_argument("--plot", help="picture of 'cuts'")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parse(parser, limit=0.02)
    if options.memory:
        return memory()
    for part in options.parts:
        {"pass": one_pass, "gap": lambda: gap_table(options.limit), "dlib": against_dlib,
         "cuts": lambda: cuts(options.plot), "qp": small_programs}[part]()  # fmt: skip


if __name__ == "__main__":
    main()
