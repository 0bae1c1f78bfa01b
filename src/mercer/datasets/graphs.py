"""Graphs to classify: a loader for sets in the TU Dortmund format, and random graphs with planted motifs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from mercer._validation import check_count
from mercer.data.graphs import Graphs
from mercer.data.readers.tu import read_tu
from mercer.datasets._home import data_folder
from mercer.datasets._home import data_home as folder_of_data
from mercer.datasets.origins import ORIGINS

__all__ = ["load_tu", "make_motif_graphs"]

SQUARE = ((0, 1), (1, 2), (2, 3), (3, 0))
PAW = ((0, 1), (1, 2), (2, 0), (2, 3))


def load_tu(name: str, data_home: str | os.PathLike[str] | None = None) -> tuple[Graphs, np.ndarray]:
    """Load a set of labelled graphs in the TU Dortmund text format: MUTAG, PTC_MR, ENZYMES, PROTEINS, Mutagenicity, ...

    Parameters
    ----------
    name : str
        Name of the set.
    data_home : path, optional
        Folder that contains ``graphs/NAME/NAME_A.txt`` and so on (or ``.gz``); by default the environment variable
        ``MERCER_DATA``.

    Returns
    -------
    graphs : Graphs
    y : array of int
        The class of each graph.

    Examples
    --------
    >>> from mercer.datasets import load_tu
    >>> graphs, y = load_tu("MUTAG")  # doctest: +SKIP
    >>> graphs  # doctest: +SKIP
    Graphs(188 graphs, 3371 nodes, 3721 edges, node labels, edge labels)
    """
    if data_home is None and f"graphs/{name}" in ORIGINS:
        home = data_folder(f"graphs/{name}").parent
    else:
        home = folder_of_data(data_home) / "graphs"
    if not name or os.sep in name or name.startswith(".") or not (home / name).is_dir():
        there = sorted(path.name for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
        listed = f"; available are {', '.join(there)}" if there else ""
        raise FileNotFoundError(f"the data set {name!r} needs the folder {home / name}, which does not exist{listed}")
    graphs, y = read_tu(home / name / name)
    if y is None:
        raise FileNotFoundError(f"data set {name!r} needs the file {name}_graph_labels.txt in the folder {home / name}")
    return graphs, y


def make_motif_graphs(
    n_graphs: int = 200,
    n_nodes: tuple[int, int] = (20, 40),
    mean_degree: float = 1.0,
    n_motifs: int = 8,
    motifs: tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]] = (SQUARE, PAW),
    n_labels: int = 0,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Graphs, np.ndarray]:
    """Generate two families of random graphs with different planted motifs.

    A graph has random edges, and ``n_motifs`` copies of its family's motif on random nodes. The default motifs, a
    square and a triangle with a tail, have the same numbers of nodes and edges, so graph sizes carry no information.

    Parameters
    ----------
    n_graphs : int, default=200
        Number of graphs; every second graph belongs to the second family.
    n_nodes : (low, high), default=(20, 40)
        Number of nodes, uniform from ``low`` to ``high``, both included.
    mean_degree : float, default=1.0
        Mean degree of the random edges, before the motifs are planted.
    n_motifs : int, default=8
        Number of copies of the motif per graph; copies may overlap.
    motifs : pair of lists of edges
        The motif of each family, its nodes numbered from 0.
    n_labels : int, default=0
        Give every node a random label from 0 to ``n_labels`` − 1 (independent of the family).
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same graphs.

    Returns
    -------
    graphs : Graphs
    y : array of int
        The family of each graph, 0 or 1.

    Examples
    --------
    >>> from mercer.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(n_graphs=4)
    >>> len(graphs), y.tolist()
    (4, [0, 1, 0, 1])
    """
    check_count("n_graphs", n_graphs, 0)
    check_count("n_motifs", n_motifs, 0)
    check_count("n_labels", n_labels, 0)
    low, high = n_nodes
    planted = [np.asarray(motif, dtype=np.int64).reshape(-1, 2) for motif in motifs]
    if len(planted) != 2:
        raise ValueError(f"motifs must be two lists of edges, got {len(planted)}")
    least = max(2, *(int(motif.max(initial=0)) + 1 for motif in planted))
    if not least <= low <= high:
        raise ValueError(f"n_nodes must be a pair (low, high) with {least} <= low <= high, got {n_nodes!r}")
    if not 0 <= mean_degree <= low - 1:
        raise ValueError(f"mean_degree must lie between 0 and {low - 1}, got {mean_degree!r}")
    rng = np.random.default_rng(random_state)
    y = np.arange(n_graphs) % 2
    sizes = rng.integers(low, high + 1, size=n_graphs)
    edges = [_planted(int(n), mean_degree, planted[family], n_motifs, rng) for n, family in zip(sizes, y, strict=True)]
    labels = [rng.integers(n_labels, size=n) for n in sizes] if n_labels else None
    return Graphs.from_edges(edges, sizes, node_labels=labels, simplify=True), y


def _planted(n: int, mean_degree: float, motif: np.ndarray, n_motifs: int, rng: np.random.Generator) -> np.ndarray:
    rows, columns = np.triu_indices(n, 1)
    chosen = rng.choice(len(rows), size=min(round(n * mean_degree / 2), len(rows)), replace=False)
    parts = [np.stack([rows[chosen], columns[chosen]], axis=1)]
    size = int(motif.max(initial=-1)) + 1
    parts += [rng.choice(n, size=size, replace=False)[motif] for _ in range(n_motifs)]
    return np.concatenate(parts)
