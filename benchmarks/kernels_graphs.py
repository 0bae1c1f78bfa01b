"""Graph kernels: speed beside GraKeL's, values beside GraKeL's, and graph classification in the folds of graphlets.py.

    python -m benchmarks kernels_graphs [--parts speed accuracy attributes] [--repeats 2] [--sets MUTAG PTC_MR …]

speed     Gram matrices of MUTAG and PROTEINS, in one process on one thread (CPU seconds, calls in turn, medians); where
          GraKeL needs minutes, both get the first graphs of the set only, and the line says how many. "values" is
          the largest difference of the two matrices, relative to the largest entry.
accuracy  MUTAG, PTC_MR and ENZYMES: ``--repeats`` × 10-fold cross-validation of a support vector machine on the
          normalised Gram matrix, times one number so that squared distances in feature space are 2 on average; folds
          and the choice of C are those of benchmarks/graphlets.py.

attributes  ENZYMES and PROTEINS with node attributes, scaled to variance 1, in the same folds: kernels on attributes,
          beside a Gaussian of the mean attributes of a graph, and the kernels of labels.

Without MERCER_DATA, `speed` runs on generated graphs and `accuracy` does nothing. Without GraKeL `speed` has our times.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _timing import SMOKE, Row, from_data, interleaved, missing, parse, record, sized
from graphlets import Scores, for_grakel, precomputed, random_graphs, unlabelled
from sklearn.exceptions import ConvergenceWarning

from mercer.data import Graphs
from mercer.datasets import load_tu
from mercer.kernels import (
    AttributedPaths,
    AttributedWalks,
    Gaussian,
    Graphlet,
    HashedAttributes,
    Kernel,
    RandomWalk,
    ShortestPath,
    WeisfeilerLehman,
)

ACCURACY_SETS = ["MUTAG", "PTC_MR", "ENZYMES"]
WALK_DECAY = {"MUTAG": 0.05, "PROTEINS": 0.005}  # below 1 / ρ² of the set


# ------------------------------------------------------------------------------------------------ speed


def graph_sets() -> dict[str, Graphs]:
    """Two real sets, or generated graphs where they are not at hand."""
    if os.environ.get("MERCER_DATA") and not SMOKE:
        return {name: load_tu(name)[0] for name in ("MUTAG", "PROTEINS")}
    return {"generated": random_graphs(sized(200, 10))}


def speed(arguments: argparse.Namespace) -> None:
    print("Gram matrices: CPU seconds, one thread")
    print(f"{'':10s} {'kernel':28s} {'graphs':>7s} {'GraKeL':>9s} {'ours':>9s} {'ratio':>8s} {'values':>9s}")
    for name, graphs in graph_sets().items():
        for title, ours, theirs, most, labelled in compared(WALK_DECAY.get(name, 0.005)):
            part = graphs[: most if name == "PROTEINS" else len(graphs)]
            part = part if labelled else unlabelled(part)
            slow, fast, difference = compare(title, part, ours, theirs, arguments.repeats)
            figures = f"{slow:9.3f} {fast:9.4f} {slow / fast:7.0f}x {difference:9.1e}"
            if theirs is None:
                figures = f"{'':9s} {fast:9.4f}"
            print(f"{name:10s} {title:28s} {len(part):7d} {figures}", flush=True)
            took = None if theirs is None else slow
            record("gram", f"{title}, {len(part)} x {name}", peer="GraKeL", theirs=took, ours=fast)


Theirs = Callable[..., Any] | None


def compared(decay: float) -> list[tuple[str, Kernel, Theirs, int, bool]]:
    """Title, our kernel, GraKeL's, how many graphs of a large set it can do in seconds, whether labels are used."""
    plain, marked = {"labels": False}, {"labels": True}
    theirs: list[Theirs] = [None] * 5 if missing("grakel") else grakels(decay)
    return [
        ("shortest path", ShortestPath(**plain), theirs[0], 400, False),
        ("shortest path, labelled", ShortestPath(**marked), theirs[1], 400, True),
        ("refined labels, h = 4", WeisfeilerLehman(4), theirs[2], 1113, True),
        ("geometric walks", RandomWalk(decay=decay, **plain), theirs[3], 120, False),
        ("geometric walks, labelled", RandomWalk(decay=decay, **marked), theirs[4], 60, True),
    ]


def grakels(decay: float) -> list[Theirs]:
    """The same kernels of GraKeL."""
    from grakel import kernels

    def refined() -> Any:
        return kernels.WeisfeilerLehman(n_iter=4, base_graph_kernel=kernels.VertexHistogram)

    def labelled_walks(method: str = "fast") -> Any:
        return kernels.RandomWalkLabeled(lamda=decay, method_type=method)

    return [
        lambda: kernels.ShortestPath(with_labels=False),
        lambda: kernels.ShortestPath(with_labels=True),
        refined,
        lambda: kernels.RandomWalk(lamda=decay),
        labelled_walks,
    ]


def compare(title: str, graphs: Graphs, ours: Kernel, theirs: Theirs, repeats: int) -> tuple[float, float, float]:
    """Seconds of GraKeL and of ours, and the largest difference of the matrices relative to the largest entry."""
    if theirs is None:
        return np.nan, interleaved(repeats, lambda: ours(graphs))[0], np.nan
    inputs = for_grakel(graphs)
    made: dict[str, np.ndarray] = {}

    def peer() -> None:
        made["theirs"] = theirs().fit_transform(inputs)

    def own() -> None:
        made["ours"] = ours(graphs)

    slow, fast = interleaved(repeats, peer, own)
    K, expected = made["ours"], made["theirs"]
    if title == "geometric walks, labelled":  # by GraKeL's exact method: the fast one stops early
        some = graphs[np.argsort(graphs.sizes)[:20]]
        K, expected = ours(some) + unmatched(some), theirs("baseline").fit_transform(for_grakel(some))
    return slow, fast, float(np.abs(K - expected).max() / np.abs(K).max())


def unmatched(graphs: Graphs) -> np.ndarray:
    """GraKeL begins walks in all pairs of nodes, also in those with different labels, where they end at once."""
    return np.multiply.outer(graphs.sizes, graphs.sizes) - WeisfeilerLehman(0, labels=True)(graphs)


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    """The lines of benchmarks/kernels.py."""
    for name, graphs in graph_sets().items():
        for title, ours, theirs, most, labelled in compared(WALK_DECAY.get(name, 0.005)):
            if quick and name == "PROTEINS" and title == "geometric walks, labelled":
                continue  # minutes of GraKeL
            if quick:
                most = 1113 if most == 1113 else most // 3
            part = graphs[: most if name == "PROTEINS" else len(graphs)]
            part = part if labelled else unlabelled(part)
            slow, fast, difference = compare(title, part, ours, theirs, repeats)
            least = 3.0 if title.startswith("refined") else 10.0
            note = "" if theirs is None else f"values within {difference:.0e}"
            yield Row(f"{title}, {len(part)} x {name}", "GraKeL", slow, fast, f"≥ {least:.0f}x", least, note=note)


# ------------------------------------------------------------------------------------------------ accuracy


def kernels() -> list[tuple[str, Kernel]]:
    return [
        ("shortest path", ShortestPath(labels=False)),
        ("shortest path lab.", ShortestPath(labels=True)),
        ("refined labels, none", WeisfeilerLehman(4, labels=False)),
        ("refined labels", WeisfeilerLehman(4)),
        ("refined labels, edges", WeisfeilerLehman(4, base="edge")),
        ("refined labels, paths", WeisfeilerLehman(2, base="shortest_path")),
        ("graphlets 3-5", Graphlet((3, 4, 5))),
        ("graphlets 3-5 lab.", Graphlet((3, 4, 5), labels=True)),
        ("geometric walks", RandomWalk(decay=0.5, scaled=True, labels=False)),
        ("geometric walks lab.", RandomWalk(decay=0.5, scaled=True)),
        ("random walks lab.", RandomWalk("marginalized", stop_probability=0.1)),
    ]


def accuracy(arguments: argparse.Namespace) -> None:
    print(f"{arguments.repeats} x 10-fold cross-validation: accuracy in %, deviation over repetitions; C chosen inside")
    for name in arguments.sets:
        with from_data(name):
            one_set(name, arguments.repeats)


def one_set(name: str, repeats: int) -> None:
    graphs, y = load_tu(name)
    graphs, y = graphs[: sized(None, 50)], y[: sized(None, 50)]
    print(f"\n{name}: {len(graphs)} graphs, {len(np.unique(y))} classes", flush=True)
    scored = Scores([name], y, repeats)
    for title, kernel in kernels()[: sized(None, 4)]:
        start = time.process_time()
        K = kernel.normalized()(graphs)
        K /= 1.0 - K.mean()  # many of these matrices are close to 1 everywhere, out of reach for any C
        scored(title, precomputed(K, y), time.process_time() - start, None)
    scored.record()


# ------------------------------------------------------------------------------------------------ attributes


def attributes(arguments: argparse.Namespace) -> None:
    for name in sized(("ENZYMES", "PROTEINS"), ("ENZYMES",)):
        with from_data(name):
            with_attributes(name, arguments.repeats)


def with_attributes(name: str, repeats: int) -> None:
    graphs, y = load_tu(name)
    some = slice(None, None, sized(1, max(1, len(graphs) // 30)))  # files list the graphs class by class
    graphs, y = graphs[some], y[some]
    values = graphs.node_attributes
    scaled = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    graphs = Graphs(
        graphs.offsets, graphs.indptr, graphs.indices, node_labels=graphs.node_labels, node_attributes=scaled
    )
    gamma = 1.0 / scaled.shape[1]
    means = np.array([graph.node_attributes.mean(axis=0) for graph in graphs])
    tried: list[tuple[str, Callable[[], np.ndarray]]] = [
        ("mean attributes", lambda: Gaussian(1.0 / (means.shape[1] * means.var()))(means)),
        ("refined labels", lambda: WeisfeilerLehman(4).normalized()(graphs)),
        ("shortest path lab.", lambda: ShortestPath(labels=True).normalized()(graphs)),
        ("hashed attributes", lambda: HashedAttributes(n_hashes=sized(50, 2)).normalized()(graphs)),
        ("paths, attributes", lambda: AttributedPaths(Gaussian(gamma), max_length=3).normalized()(graphs)),
        ("walks, attributes", lambda: AttributedWalks(Gaussian(gamma), decay=0.2, max_length=3).normalized()(graphs)),
    ]
    print(f"\n{name} with {scaled.shape[1]} attributes: {len(graphs)} graphs", flush=True)
    scored = Scores([f"{name}, attributes"], y, repeats)
    for title, make in tried:
        start = time.process_time()
        K = make()
        K = K / (1.0 - K.mean())
        scored(title, precomputed(K, y), time.process_time() - start, None)
    scored.record()


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed,
    "accuracy": accuracy,
    "attributes": attributes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=ACCURACY_SETS, default=ACCURACY_SETS)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parse(parser, sets=["MUTAG"], repeats=1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
