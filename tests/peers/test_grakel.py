"""Kernels of graphs beside GraKeL's."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import Graphs
from mercer.kernels import RandomWalk, ShortestPath, WeisfeilerLehman

kernels = pytest.importorskip("grakel.kernels", reason="grakel: not installed")


def random_graphs(seed: int, count: int = 12) -> Graphs:
    random = np.random.default_rng(seed)
    sizes = random.integers(4, 12, size=count)
    # The path through all nodes: GraKeL, which is given edges, would not know of a node without one.
    edges = [np.argwhere(np.triu(random.random((n, n)) < 1.5 / n, 1) | np.eye(n, k=1, dtype=bool)) for n in sizes]
    return Graphs.from_edges(edges, sizes, node_labels=[random.integers(3, size=n) for n in sizes])


def for_grakel(graphs: Graphs) -> list:
    """[edges, node labels, edge labels], as GraKeL takes them."""
    made = []
    for graph in graphs:
        rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr)).tolist()
        edges = {edge: 1.0 for edge in zip(rows, graph.indices.tolist(), strict=True)}
        made.append([edges, dict(enumerate(graph.node_labels.tolist())), dict.fromkeys(edges, 0)])
    return made


def unlabelled(graphs: Graphs) -> Graphs:
    return Graphs(graphs.offsets, graphs.indptr, graphs.indices, node_labels=np.zeros(graphs.n_nodes, np.int64))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("labels", [False, True])
def test_shortest_paths(seed, labels):
    graphs = random_graphs(seed)
    expected = kernels.ShortestPath(with_labels=labels).fit_transform(for_grakel(graphs))
    np.testing.assert_allclose(ShortestPath(labels=labels)(graphs), expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [1, 4])
def test_refined_labels(seed, rounds):
    graphs = random_graphs(seed)
    theirs = kernels.WeisfeilerLehman(n_iter=rounds, base_graph_kernel=kernels.VertexHistogram)
    np.testing.assert_allclose(WeisfeilerLehman(rounds)(graphs), theirs.fit_transform(for_grakel(graphs)), rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_geometric_walks(seed):
    graphs = unlabelled(random_graphs(seed))
    expected = kernels.RandomWalk(lamda=0.01, method_type="baseline").fit_transform(for_grakel(graphs))
    np.testing.assert_allclose(RandomWalk(decay=0.01, labels=False)(graphs), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_geometric_walks_between_equal_labels(seed):
    graphs = random_graphs(seed)
    theirs = kernels.RandomWalkLabeled(lamda=0.01, method_type="baseline")
    # GraKeL begins walks in all pairs of nodes, also in those with different labels, where they end at once.
    unmatched = np.multiply.outer(graphs.sizes, graphs.sizes) - WeisfeilerLehman(0, labels=True)(graphs)
    ours = RandomWalk(decay=0.01, labels=True)(graphs) + unmatched
    np.testing.assert_allclose(ours, theirs.fit_transform(for_grakel(graphs)), rtol=1e-6)
