"""Graphlets: speed beside GraKeL's sampler, and graph classification beside GraKeL's kernels and the thesis' table 2.8.

    python benchmarks/graphlets.py [--parts speed accuracy optimistic] [--sets MUTAG PTC_MR …] [--repeats 10]
                                   [--sizes 4 5 6]

`speed` compares with grakel where it is installed; the sets are read from the folder MERCER_DATA. Times are of one
process on one thread (CPU seconds), calls of both tools in turn, medians. `accuracy` is `--repeats` × 10-fold
cross-validation; scaling, selection and the choice of C happen inside the training folds, which are the same for all
methods; `optimistic` chooses C by the test folds themselves, as some sources seem to. Sizes and numbers of samples are
those of the thesis unless given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _timing import from_data, interleaved, missing, parse, record, sized, spread
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC, LinearSVC

from mercer.data import Graphs
from mercer.datasets import load_tu
from mercer.kernels import ShortestPath
from mercer.maps import CorrelationSelector, GraphletHasher

ALL_SETS = ["MUTAG", "PTC_FM", "PTC_FR", "PTC_MM", "PTC_MR", "ENZYMES", "PROTEINS", "Mutagenicity"]
THESIS = {
    "MUTAG": "RW .719  SP .813  GKS .819  GK .822  HK .855  HKF .865",
    "PTC": "RW .554  SP .554  GKS .594  GK .597  HK .606  HKF .635",
}


def random_graphs(count: int = 200, seed: int = 0) -> Graphs:
    """Graphs of 20 to 39 nodes, mean degree about 4, 5 labels."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 40, size=count)
    edges = [np.argwhere(np.triu(rng.random((n, n)) < 4 / (n - 1), 1)) for n in sizes]
    return Graphs.from_edges(edges, sizes, node_labels=[rng.integers(5, size=n) for n in sizes])


def for_grakel(graphs: Graphs) -> list[Any]:
    """[edges, node labels, edge labels], as GraKeL takes them."""
    made = []
    for graph in graphs:
        rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr)).tolist()
        edges = {edge: 1.0 for edge in zip(rows, graph.indices.tolist(), strict=True)}
        made.append([edges, dict(enumerate(graph.node_labels.tolist())), dict.fromkeys(edges, 0)])
    return made


# ------------------------------------------------------------------------------------------------ speed


def speed(arguments: argparse.Namespace) -> None:
    count = sized(200, 10)
    sets = {f"{count} random graphs": random_graphs(count)}
    with from_data("MUTAG"):
        sets["MUTAG"] = load_tu("MUTAG")[0][: sized(None, 10)]
    print("sampled graphlets, k = 4, 50 a graph, to a kernel matrix: CPU µs a graphlet")
    print("(graphs with at most 50 graphlets are counted by 'sample'; 'mcmc' always walks)")
    print(f"{'':20s} {'GraKeL':>9s} {'sample':>9s} {'ratio':>8s} {'mcmc':>9s} {'ratio':>8s}")
    for name, graphs in sets.items():
        compare_samplers(name, graphs)
    print("\nour own rates, to sparse rows: CPU ns a graphlet (thousands of graphlets)")
    print(f"{'':20s} {'k':>2s} {'exact':>16s} {'labelled':>16s} {'sample':>8s} {'labelled':>8s} {'mcmc':>8s}")
    for name, graphs in sets.items():
        own_rates(name, graphs)


def compare_samplers(name: str, graphs: Graphs) -> None:
    samples = 50 * len(graphs)
    theirs = for_grakel(graphs)

    def peer() -> object:
        from grakel.kernels import GraphletSampling

        return GraphletSampling(k=4, sampling={"n_samples": 50}, random_state=0).fit_transform(theirs)

    def ours(method: str) -> Callable[[], object]:
        def call() -> object:
            X = GraphletHasher(4, method, n_samples=50, burn_in=0).transform(graphs)
            return (X @ X.T).toarray()

        return call

    if missing("grakel"):
        sample, mcmc = (1e6 * s / samples for s in interleaved(sized(3, 1), ours("sample"), ours("mcmc")))
        print(f"{name:20s} {'':9s} {sample:9.3f} {'':8s} {mcmc:9.3f}")
        record("speed", f"{name}, sampled", ours=sample, unit="µs")
        return
    seconds = interleaved(sized(3, 1), peer, ours("sample"), ours("mcmc"))
    grakel, sample, mcmc = (1e6 * s / samples for s in seconds)
    for how, mine in (("sampled", sample), ("by a Markov chain", mcmc)):
        record("speed", f"{name}, {how}", peer="GraKeL", theirs=grakel, ours=mine, unit="µs")
    print(f"{name:20s} {grakel:9.1f} {sample:9.3f} {grakel / sample:7.0f}x {mcmc:9.3f} {grakel / mcmc:7.0f}x")


def own_rates(name: str, graphs: Graphs) -> None:
    for k in sized((3, 4, 5), (3, 5)):
        cells = []
        for labels in (False, True):
            hasher = GraphletHasher(k, labels=labels)
            count = hasher.transform(graphs).sum()
            (seconds,) = interleaved(sized(5, 1), lambda hasher=hasher: hasher.transform(graphs))
            cells.append(f"{1e9 * seconds / count:8.1f} ({count / 1e3:4.0f})")
        # A graph with no more graphlets than samples would be counted, not sampled: ask for fewer.
        fewest = int(GraphletHasher(k).transform(graphs).sum(axis=1).min())
        n = max(1, min(50, fewest - 1))
        for method, labels, samples in (("sample", False, n), ("sample", True, n), ("mcmc", False, 2000)):
            hasher = GraphletHasher(k, method, n_samples=samples, labels=labels, burn_in=0)
            (seconds,) = interleaved(sized(5, 1), lambda hasher=hasher: hasher.transform(graphs))
            cells.append(f"{1e9 * seconds / samples / len(graphs):8.0f}")
        print(f"{name:20s} {k:2d} {cells[0]:>16s} {cells[1]:>16s} {' '.join(cells[2:])}")


# ------------------------------------------------------------------------------------------------ accuracy


def accuracy(arguments: argparse.Namespace) -> None:
    print(
        f"{arguments.repeats} x {FOLDS}-fold cross-validation: accuracy in %, deviation over repetitions; "
        "C chosen inside"
    )
    print(f"graphlets of {arguments.sizes} nodes, {arguments.n_samples} samples a size where a graph has more")
    print("the thesis' third set, DD, is not at hand and was not run")
    for name in arguments.sets:
        with from_data(name):
            one_set(name, arguments).record()


def one_set(name: str, arguments: argparse.Namespace) -> Scores:
    graphs, y = load_tu(name)
    graphs, y = graphs[: sized(None, 60)], y[: sized(None, 60)]
    scored = Scores([name, arguments.sizes, arguments.n_samples], y, arguments.repeats, arguments.out)
    shown = THESIS.get(name.split("_")[0], "")
    print(f"\n{name}: {len(graphs)} graphs, {len(np.unique(y))} classes", flush=True)
    if shown:
        print(f"  thesis, table 2.8 (unlabelled): {shown}")
    for labels in (False, True):
        start = time.process_time()
        hasher = GraphletHasher(arguments.sizes, "sample", arguments.n_samples, labels, n_bits=20, connected=True)
        X = hasher.transform(graphs)
        X = X[:, np.unique(X.indices)]
        made = time.process_time() - start
        for title, steps in (("HK", []), ("HKF", [CorrelationSelector()])):
            scored(f"{title}{' labelled' if labels else ''}", linear(X, y, steps), made, X.shape[1])
            made = 0.0
    if arguments.no_peers or missing("grakel"):
        return scored
    for title, kernel, labelled in peers():
        start = time.process_time()
        if len(graphs) > 1500 and title.startswith("SP"):  # GraKeL would take about an hour; the kernel is the same
            title = title.replace("GraKeL", "mercer")
            K = ShortestPath(labels=labelled).normalized()(graphs)
        else:
            K = np.nan_to_num(kernel().fit_transform(for_grakel(graphs if labelled else unlabelled(graphs))))
        scored(title, precomputed(K, y), time.process_time() - start, None)
    return scored


def optimistic(arguments: argparse.Namespace) -> None:
    """The hash kernel with C chosen by the folds that are counted: what such a protocol would print."""
    print(f"{arguments.repeats} x {FOLDS} folds, C with the most right graphs of the test folds of a repetition")
    for name in arguments.sets:
        with from_data(name):
            graphs, y = load_tu(name)
            graphs, y = graphs[: sized(None, 60)], y[: sized(None, 60)]
            X = GraphletHasher(
                arguments.sizes, "sample", arguments.n_samples, False, n_bits=20, connected=True
            ).transform(graphs)
            X = X[:, np.unique(X.indices)]
            row = {}
            for title, steps in (("HK", []), ("HKF", [CorrelationSelector()])):
                predicted = machines(X, y, steps)
                best = []
                for repeat in range(arguments.repeats):
                    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(y, y)
                    right = [[(z == y[b]).mean() for z in predicted(a, b, PENALTIES)] for a, b in folds]
                    best.append(100 * float(np.mean(right, axis=0).max()))
                row[title] = spread(best, 1)
                print(f"  {name:12s} {title:4s} {np.mean(best):5.1f} ± {np.std(best):3.1f}", flush=True)
            record("C by test folds", name, values=row, sizes=f"{len(y)} graphs, {arguments.repeats} x {FOLDS} folds")


def unlabelled(graphs: Graphs) -> Graphs:
    return Graphs(graphs.offsets, graphs.indptr, graphs.indices, node_labels=np.zeros(graphs.n_nodes, np.int64))


def peers() -> list[tuple[str, Callable[[], Any], bool]]:
    from grakel.kernels import GraphletSampling, ShortestPath, VertexHistogram, WeisfeilerLehman

    def graphlets() -> Any:
        return GraphletSampling(k=4, sampling={"n_samples": 100}, random_state=0, normalize=True)

    def subtrees() -> Any:
        return WeisfeilerLehman(n_iter=4, base_graph_kernel=VertexHistogram, normalize=True)

    return [
        ("SP (GraKeL)", lambda: ShortestPath(with_labels=False, normalize=True), False),
        ("GKS k=4 (GraKeL)", graphlets, False),
        ("WL h=4 (GraKeL)", subtrees, False),
        ("SP labelled (GraKeL)", lambda: ShortestPath(with_labels=True, normalize=True), True),
        ("WL labelled (GraKeL)", subtrees, True),
    ]


PENALTIES = sized((0.01, 0.1, 1.0, 10.0), (0.1, 1.0))
FOLDS = sized(10, 2)
Fold = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear(X: Any, y: np.ndarray, steps: list[Any]) -> Fold:
    """Linear machines of scaled columns; C chosen in three folds of the training part."""
    if X.shape[1] < 10 * len(y):
        pipeline = make_pipeline(MaxAbsScaler(), *steps, LinearSVC(tol=1e-3, max_iter=2000))
        search = GridSearchCV(pipeline, {"linearsvc__C": PENALTIES}, cv=sized(3, 2))
        return lambda train, test: search.fit(X[train], y[train]).predict(X[test])
    return over_products(X, y, steps)


Predictions = Callable[[np.ndarray, np.ndarray, Sequence[float]], list[np.ndarray]]


def machines(X: Any, y: np.ndarray, steps: list[Any]) -> Predictions:
    """The same machines over products of rows: with many columns, coordinates converge slowly."""
    names, codes = np.unique(y, return_inverse=True)
    signs = 2.0 * (codes == np.arange(len(names))[:, None]) - 1.0
    signs = signs[1:] if len(names) == 2 else signs

    def predicted(train: np.ndarray, test: np.ndarray, penalties: Sequence[float]) -> list[np.ndarray]:
        prepared = make_pipeline(MaxAbsScaler(), *steps)
        A = prepared.fit_transform(X[train], y[train])
        K, L = products(A, prepared.transform(X[test]))
        betas, found = np.zeros((len(signs), len(train))), []
        for C in penalties:
            betas = np.array([squared_hinge(K, s[train], C, beta) for s, beta in zip(signs, betas, strict=True)])
            scores = betas @ L.T
            found.append(names[scores.argmax(axis=0) if len(scores) > 1 else (scores[0] > 0).astype(int)])
        return found

    return predicted


def over_products(X: Any, y: np.ndarray, steps: list[Any]) -> Fold:
    """C chosen in three folds of the training part."""
    predicted = machines(X, y, steps)

    def fold(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        parts = StratifiedKFold(3).split(train, y[train])
        right = [[(z == y[train[b]]).mean() for z in predicted(train[a], train[b], PENALTIES)] for a, b in parts]
        return predicted(train, test, [PENALTIES[int(np.mean(right, axis=0).argmax())]])[0]

    return fold


def products(A: Any, B: Any) -> tuple[np.ndarray, np.ndarray]:
    """1 + A Aᵀ and 1 + B Aᵀ; columns with many entries are multiplied as dense ones."""
    full = np.bincount(A.indices, minlength=A.shape[1]) > A.shape[0] / 10
    D, rest = A[:, full].toarray(), A[:, ~full]
    K = np.tril(dsyrk(1.0, D, lower=True))
    K += np.tril(K, -1).T + (rest @ rest.T).toarray() + 1
    return K, 1 + B[:, full].toarray() @ D.T + (B[:, ~full] @ rest.T).toarray()


def squared_hinge(K: np.ndarray, signs: np.ndarray, C: float, beta: np.ndarray) -> np.ndarray:
    """argmin ½ β'Kβ + C Σ max(0, 1 − s f)², f = Kβ: LinearSVC's machine, by Newton steps from a first β."""
    f = K @ beta
    while True:
        active = np.flatnonzero(signs * f < 1)
        goal = np.zeros_like(beta)
        inner = K[np.ix_(active, active)]
        inner.flat[:: len(active) + 1] += 0.5 / C
        goal[active] = cho_solve(cho_factor(inner, overwrite_a=True, check_finite=False), signs[active])
        step = goal - beta
        change = K @ step
        shares = 0.5 ** np.arange(30)
        margins = [1 - signs * (f + t * change) for t in (0.0, *shares)]
        lengths = [0.5 * (beta + t * step) @ (f + t * change) for t in (0.0, *shares)]
        values = [a + C * np.square(np.maximum(0, m)).sum() for a, m in zip(lengths, margins, strict=True)]
        t = shares[int(np.argmin(values[1:]))]
        if min(values[1:]) >= values[0] * (1 - 1e-9):
            return beta
        beta, f = beta + t * step, f + t * change


def precomputed(K: np.ndarray, y: np.ndarray) -> Fold:
    search = GridSearchCV(SVC(kernel="precomputed", max_iter=200_000), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3)
    return lambda train, test: search.fit(K[np.ix_(train, train)], y[train]).predict(K[np.ix_(test, train)])


class Scores:
    """Accuracy of each repetition of 10-fold cross-validation; with a file of them, what it has is not run again."""

    def __init__(self, key: list[Any], y: np.ndarray, repeats: int, path: str | None = None) -> None:
        self.key, self.y, self.repeats, self.path = key, y, repeats, path
        self.known: dict[str, tuple[float, float]] = {}
        self.row: dict[str, Any] = {}
        if self.path and os.path.exists(self.path):
            with open(self.path, "a+") as lines:
                lines.seek(0)
                text = lines.read()
                lines.write("\n" if text and not text.endswith("\n") else "")  # a killed run may have cut the last line
            whole = [json.loads(line) for line in text.splitlines() if line.endswith("]")]
            self.known = {json.dumps(key): (value, cpu) for key, value, cpu in whole}

    def __call__(self, title: str, fold: Fold, made: float, width: int | None) -> None:
        results = np.array([self.one(title, fold, repeat) for repeat in range(self.repeats)])
        values, cpu = results[:, 0], results[:, 1].sum()
        features = f"{made:6.2f} s features" if made else f"{'':17s}"
        columns = f"   {width} columns" if width else ""
        score = f"{100 * values.mean():5.1f} ± {100 * values.std():3.1f}"
        self.row[title] = spread(100 * values, 1)
        print(f"  {title:22s} {score}   {features} {cpu:6.1f} s folds{columns}", flush=True)

    def record(self) -> None:
        """Add the accuracies of the set to the results."""
        record("accuracy", self.key[0], values=self.row, sizes=f"{len(self.y)} graphs, {self.repeats} x {FOLDS} folds")

    def one(self, title: str, fold: Fold, repeat: int) -> tuple[float, float]:
        key = [*self.key, title, repeat]
        if (found := self.known.get(json.dumps(key))) is not None:
            return found
        start, y = time.process_time(), self.y
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(y, y)
        value = float(np.mean([(fold(train, test) == y[test]).mean() for train, test in folds]))
        result = (value, time.process_time() - start)
        if self.path:
            with open(self.path, "a") as lines:
                lines.write(json.dumps([key, *result]) + "\n")
        return result


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed, "accuracy": accuracy, "optimistic": optimistic,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=ALL_SETS[:5])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--sizes", nargs="+", type=int, default=[4, 5, 6, 7, 8, 9])
    parser.add_argument("--n-samples", type=int, default=10_000)
    parser.add_argument("--out", help="file of scores, a line for each repetition: what is there is not run again")
    parser.add_argument("--no-peers", action="store_true", help="leave out GraKeL's kernels in the accuracy part")
    arguments = parse(parser, sets=["MUTAG"], repeats=1, sizes=[4, 5], n_samples=50)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
