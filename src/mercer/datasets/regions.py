"""Region graphs to label: images whose regions are ambiguous alone and informative in context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import check_count

__all__ = ["RegionTask", "make_regions"]

LABELS = ("bear", "ground", "hippo", "sky", "snow", "vegetation", "water")
# How readily two labels are neighbours: scenes of the savanna, of the arctic, and what lies above both.
_SCENES = ((("hippo", "water"), ("hippo", "ground"), ("hippo", "vegetation"), ("water", "vegetation"),
            ("ground", "vegetation"), ("bear", "snow"), ("bear", "water"), ("snow", "sky"),
            ("vegetation", "sky"), ("snow", "water")))  # fmt: skip


@dataclass(frozen=True)
class RegionTask:
    """Graphs of regions, the labels of their nodes, and the interaction of labels.

    Examples
    --------
    >>> from mercer.datasets import make_regions
    >>> task = make_regions(3, random_state=0)
    >>> len(task.X), task.coupling.shape
    (3, (7, 7))
    """

    X: list[tuple[np.ndarray, np.ndarray]]
    """(node features, edges) of each graph."""
    y: list[list[str]]
    """Labels of the nodes of each graph."""
    positions: list[np.ndarray]
    """Positions of the regions of each graph, for plots."""
    coupling: np.ndarray
    """Log-potentials of neighbouring labels in the generating model."""


def make_regions(
    n_graphs: int = 76,
    n_regions: tuple[int, int] = (6, 14),
    difficulty: float = 0.7,
    coupling: float = 2.0,
    n_features: int = 10,
    random_state: Any = 0,
) -> RegionTask:
    """Generate images as graphs of regions with seven labels, modelled on joint image categorisation.

    Regions are random points, and the edges are those of a Delaunay triangulation. Labels are drawn by Gibbs sampling
    from a Markov random field in which some labels are likely neighbours (a hippo and water) and others are not.
    Features are a prototype of the label plus noise.

    Parameters
    ----------
    n_graphs : int, default=76
    n_regions : (low, high), default=(6, 14)
        Regions per image, uniform from ``low`` (at least 4) to ``high``, both included.
    difficulty : float, default=0.7
        Standard deviation of the noise, in units in which the distance between prototypes is about 1.4.
    coupling : float, default=2.0
        Log-potential of a likely pair of neighbours; unlikely pairs have its negative. 0: regions are independent.
    n_features : int, default=10
        At least 7.
    random_state : int, Generator or None, default=0

    Returns
    -------
    RegionTask

    Examples
    --------
    >>> from mercer.datasets import make_regions
    >>> task = make_regions(2, random_state=1)
    >>> features, edges = task.X[0]
    >>> features.shape[1], edges.shape[1], len(task.y[0]) == len(features)
    (10, 2, True)
    """
    check_count("n_graphs", n_graphs, 0)
    check_count("n_features", n_features, len(LABELS))
    low, high = (check_count("n_regions", n, 4) for n in n_regions)
    if low > high:
        raise ValueError(f"n_regions must be (low, high) with low at most high, got {n_regions!r}")
    for name, value in (("difficulty", difficulty), ("coupling", coupling)):
        if not np.isfinite(value) or value < 0:
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    random = np.random.default_rng(random_state)
    number = {label: i for i, label in enumerate(LABELS)}
    table = np.full((len(LABELS), len(LABELS)), -float(coupling))
    for a, b in _SCENES:
        table[number[a], number[b]] = table[number[b], number[a]] = float(coupling)
    X, y, positions = [], [], []
    for _ in range(n_graphs):
        n = int(random.integers(low, high + 1))
        positions.append(random.random((n, 2)))
        edges = _triangulated(positions[-1])
        labels = _drawn(n, edges, table, random)
        prototypes = np.eye(len(LABELS), n_features)
        X.append((prototypes[labels] + difficulty * random.normal(size=(n, n_features)), edges))
        y.append([LABELS[label] for label in labels])
    return RegionTask(X, y, positions, table)


def _triangulated(points: np.ndarray) -> np.ndarray:
    from scipy.spatial import Delaunay

    corners = Delaunay(points).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    return np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)


def _drawn(n: int, edges: np.ndarray, table: np.ndarray, random: np.random.Generator, sweeps: int = 30) -> np.ndarray:
    neighbours = [np.concatenate([edges[edges[:, 0] == v, 1], edges[edges[:, 1] == v, 0]]) for v in range(n)]
    labels = random.integers(len(table), size=n)
    for _ in range(sweeps):
        for v in range(n):
            scores = table[:, labels[neighbours[v]]].sum(axis=1)
            labels[v] = int(np.argmax(scores + random.gumbel(size=len(table))))
    return labels
