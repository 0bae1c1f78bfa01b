"""Graphlets: speed beside GraKeL's sampler, and graph classification beside GraKeL's kernels and the thesis' table 2.8.

    python benchmarks/graphlets.py [--parts speed accuracy] [--sets MUTAG PTC_MR …] [--repeats 10] [--sizes 4 5 6]

`speed` needs nothing but grakel; the sets are read from the folder MERCER_DATA. Times are those of one process on one
thread (CPU seconds), calls of both tools in turn, medians. `accuracy` is `--repeats` × 10-fold cross-validation;
scaling, selection and the choice of C happen inside the training folds, which are the same for all methods. Sizes and
numbers of samples are those of the thesis unless given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import interleaved
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
    sets = {"200 random graphs": random_graphs()}
    if os.environ.get("MERCER_DATA"):
        sets["MUTAG"] = load_tu("MUTAG")[0]
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
    from grakel.kernels import GraphletSampling

    theirs, samples = for_grakel(graphs), 50 * len(graphs)

    def peer() -> object:
        return GraphletSampling(k=4, sampling={"n_samples": 50}, random_state=0).fit_transform(theirs)

    def ours(method: str) -> Callable[[], object]:
        def call() -> object:
            X = GraphletHasher(4, method, n_samples=50, burn_in=0).transform(graphs)
            return (X @ X.T).toarray()

        return call

    seconds = interleaved(3, peer, ours("sample"), ours("mcmc"))
    grakel, sample, mcmc = (1e6 * s / samples for s in seconds)
    print(f"{name:20s} {grakel:9.1f} {sample:9.3f} {grakel / sample:7.0f}x {mcmc:9.3f} {grakel / mcmc:7.0f}x")


def own_rates(name: str, graphs: Graphs) -> None:
    for k in (3, 4, 5):
        cells = []
        for labels in (False, True):
            hasher = GraphletHasher(k, labels=labels)
            count = hasher.transform(graphs).sum()
            (seconds,) = interleaved(5, lambda hasher=hasher: hasher.transform(graphs))
            cells.append(f"{1e9 * seconds / count:8.1f} ({count / 1e3:4.0f})")
        # A graph with no more graphlets than samples would be counted, not sampled: ask for fewer.
        fewest = int(GraphletHasher(k).transform(graphs).sum(axis=1).min())
        n = max(1, min(50, fewest - 1))
        for method, labels, samples in (("sample", False, n), ("sample", True, n), ("mcmc", False, 2000)):
            hasher = GraphletHasher(k, method, n_samples=samples, labels=labels, burn_in=0)
            (seconds,) = interleaved(5, lambda hasher=hasher: hasher.transform(graphs))
            cells.append(f"{1e9 * seconds / samples / len(graphs):8.0f}")
        print(f"{name:20s} {k:2d} {cells[0]:>16s} {cells[1]:>16s} {' '.join(cells[2:])}")


# ------------------------------------------------------------------------------------------------ accuracy


def accuracy(arguments: argparse.Namespace) -> None:
    if not os.environ.get("MERCER_DATA"):
        print("accuracy: set MERCER_DATA to the folder of public data sets")
        return
    print(f"{arguments.repeats} x 10-fold cross-validation: accuracy in %, deviation over repetitions; C chosen inside")
    print(f"graphlets of {arguments.sizes} nodes, {arguments.n_samples} samples a size where a graph has more")
    print("the thesis' third set, DD, is not at hand and was not run")
    for name in arguments.sets:
        one_set(name, arguments)


def one_set(name: str, arguments: argparse.Namespace) -> None:
    graphs, y = load_tu(name)
    scored = Scores(name, y, arguments)
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
    if arguments.no_peers:
        return
    for title, kernel, labelled in peers():
        start = time.process_time()
        if len(graphs) > 1500 and title.startswith("SP"):  # GraKeL would take about an hour; the kernel is the same
            title = title.replace("GraKeL", "mercer")
            K = ShortestPath(labels=labelled).normalized()(graphs)
        else:
            K = np.nan_to_num(kernel().fit_transform(for_grakel(graphs if labelled else unlabelled(graphs))))
        scored(title, precomputed(K, y), time.process_time() - start, None)


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


Fold = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear(X: Any, y: np.ndarray, steps: list[Any]) -> Fold:
    svm = LinearSVC(tol=1e-3, max_iter=2000)
    pipeline = make_pipeline(MaxAbsScaler(), *steps, svm)
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    return lambda train, test: search.fit(X[train], y[train]).predict(X[test])


def precomputed(K: np.ndarray, y: np.ndarray) -> Fold:
    search = GridSearchCV(SVC(kernel="precomputed", max_iter=200_000), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3)
    return lambda train, test: search.fit(K[np.ix_(train, train)], y[train]).predict(K[np.ix_(test, train)])


class Scores:
    """Accuracy of each repetition of 10-fold cross-validation; with a file of them, what it has is not run again."""

    def __init__(self, name: str, y: np.ndarray, arguments: argparse.Namespace) -> None:
        self.y, self.repeats, self.path = y, arguments.repeats, arguments.out
        self.key = [name, arguments.sizes, arguments.n_samples]
        self.known: dict[str, tuple[float, float]] = {}
        if self.path and os.path.exists(self.path):
            with open(self.path) as lines:
                self.known = {json.dumps(key): (value, cpu) for key, value, cpu in map(json.loads, lines)}

    def __call__(self, title: str, fold: Fold, made: float, width: int | None) -> None:
        results = np.array([self.one(title, fold, repeat) for repeat in range(self.repeats)])
        values, cpu = results[:, 0], results[:, 1].sum()
        features = f"{made:6.2f} s features" if made else f"{'':17s}"
        columns = f"   {width} columns" if width else ""
        score = f"{100 * values.mean():5.1f} ± {100 * values.std():3.1f}"
        print(f"  {title:22s} {score}   {features} {cpu:6.1f} s folds{columns}", flush=True)

    def one(self, title: str, fold: Fold, repeat: int) -> tuple[float, float]:
        key = [*self.key, title, repeat]
        if (found := self.known.get(json.dumps(key))) is not None:
            return found
        start, y = time.process_time(), self.y
        folds = StratifiedKFold(10, shuffle=True, random_state=repeat).split(y, y)
        value = float(np.mean([(fold(train, test) == y[test]).mean() for train, test in folds]))
        result = (value, time.process_time() - start)
        if self.path:
            with open(self.path, "a") as lines:
                lines.write(json.dumps([key, *result]) + "\n")
        return result


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"speed": speed, "accuracy": accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=ALL_SETS[:5])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--sizes", nargs="+", type=int, default=[4, 5, 6, 7, 8, 9])
    parser.add_argument("--n-samples", type=int, default=10_000)
    parser.add_argument("--out", help="file of scores, a line for each repetition: what is there is not run again")
    parser.add_argument("--no-peers", action="store_true", help="leave out GraKeL's kernels in the accuracy part")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
