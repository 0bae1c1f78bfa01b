"""Graph kernels: speed beside GraKeL's, values beside GraKeL's, and graph classification in the folds of graphlets.py.

    MERCER_DATA=... python benchmarks/kernels_graphs.py [--parts speed accuracy] [--repeats 2] [--sets MUTAG PTC_MR …]

speed     Gram matrices of MUTAG and PROTEINS, in one process on one thread (CPU seconds, calls in turn, medians); where
          GraKeL needs minutes, both get the first graphs of the set only, and the line says how many. "values" is
          the largest difference of the two matrices, relative to the largest entry.
accuracy  MUTAG, PTC_MR and ENZYMES: ``--repeats`` × 10-fold cross-validation of a support vector machine on the
          normalised Gram matrix, times one number so that squared distances in feature space are 2 on average; folds
          and the choice of C are those of benchmarks/graphlets.py.

Without MERCER_DATA, `speed` runs on generated graphs and `accuracy` does nothing.
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
from _timing import Row, interleaved
from graphlets import for_grakel, kernel_scores, random_graphs, report, unlabelled
from sklearn.exceptions import ConvergenceWarning

from mercer.data import Graphs
from mercer.datasets import load_tu
from mercer.kernels import Graphlet, Kernel, RandomWalk, ShortestPath, WeisfeilerLehman

ACCURACY_SETS = ["MUTAG", "PTC_MR", "ENZYMES"]
WALK_DECAY = {"MUTAG": 0.05, "PROTEINS": 0.005}  # below 1 / ρ² of the set


# ------------------------------------------------------------------------------------------------ speed


def speed(arguments: argparse.Namespace) -> None:
    if os.environ.get("MERCER_DATA"):
        sets = {name: load_tu(name)[0] for name in ("MUTAG", "PROTEINS")}
    else:
        sets = {"generated": random_graphs()}
    print("Gram matrices: CPU seconds, one thread")
    print(f"{'':10s} {'kernel':28s} {'graphs':>7s} {'GraKeL':>9s} {'ours':>9s} {'ratio':>8s} {'values':>9s}")
    for name, graphs in sets.items():
        for title, ours, theirs, most, labelled in compared(WALK_DECAY.get(name, 0.005)):
            part = graphs[: most if name == "PROTEINS" else len(graphs)]
            part = part if labelled else unlabelled(part)
            slow, fast, difference = compare(title, part, ours, theirs, arguments.repeats)
            figures = f"{slow:9.3f} {fast:9.4f} {slow / fast:7.0f}x {difference:9.1e}"
            print(f"{name:10s} {title:28s} {len(part):7d} {figures}", flush=True)


def compared(decay: float) -> list[tuple[str, Kernel, Callable[..., Any], int, bool]]:
    """Title, our kernel, GraKeL's, how many graphs of a large set it can do in seconds, whether labels are used."""
    from grakel.kernels import RandomWalk as Walk
    from grakel.kernels import RandomWalkLabeled, VertexHistogram
    from grakel.kernels import ShortestPath as Path
    from grakel.kernels import WeisfeilerLehman as Refined

    def refined() -> Any:
        return Refined(n_iter=4, base_graph_kernel=VertexHistogram)

    def labelled_walks(method: str = "fast") -> Any:
        return RandomWalkLabeled(lamda=decay, method_type=method)

    plain, marked = {"labels": False}, {"labels": True}
    return [
        ("shortest path", ShortestPath(**plain), lambda: Path(with_labels=False), 400, False),
        ("shortest path, labelled", ShortestPath(**marked), lambda: Path(with_labels=True), 400, True),
        ("refined labels, h = 4", WeisfeilerLehman(4), refined, 1113, True),
        ("geometric walks", RandomWalk(decay=decay, **plain), lambda: Walk(lamda=decay), 120, False),
        ("geometric walks, labelled", RandomWalk(decay=decay, **marked), labelled_walks, 60, True),
    ]  # fmt: skip


def compare(
    title: str, graphs: Graphs, ours: Kernel, theirs: Callable[..., Any], repeats: int
) -> tuple[float, float, float]:
    """Seconds of GraKeL and of ours, and the largest difference of the matrices relative to the largest entry."""
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
    if os.environ.get("MERCER_DATA"):
        sets = {name: load_tu(name)[0] for name in ("MUTAG", "PROTEINS")}
    else:
        sets = {"generated": random_graphs()}
    for name, graphs in sets.items():
        for title, ours, theirs, most, labelled in compared(WALK_DECAY.get(name, 0.005)):
            if quick and name == "PROTEINS" and title == "geometric walks, labelled":
                continue  # minutes of GraKeL
            if quick:
                most = 1113 if most == 1113 else most // 3
            part = graphs[: most if name == "PROTEINS" else len(graphs)]
            part = part if labelled else unlabelled(part)
            slow, fast, difference = compare(title, part, ours, theirs, repeats)
            least = 3.0 if title.startswith("refined") else 10.0
            note = f"values within {difference:.0e}"
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
    if not os.environ.get("MERCER_DATA"):
        print("accuracy: set MERCER_DATA to the folder of public data sets")
        return
    print(f"{arguments.repeats} x 10-fold cross-validation: accuracy in %, deviation over repetitions; C chosen inside")
    for name in arguments.sets:
        graphs, y = load_tu(name)
        print(f"\n{name}: {len(graphs)} graphs, {len(np.unique(y))} classes", flush=True)
        for title, kernel in kernels():
            start = time.process_time()
            K = kernel.normalized()(graphs)
            K /= 1.0 - K.mean()  # many of these matrices are close to 1 everywhere, out of reach for any C
            made = time.process_time() - start
            report(title, kernel_scores(K, y, arguments.repeats), made, None)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"speed": speed, "accuracy": accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=ACCURACY_SETS, default=ACCURACY_SETS)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
