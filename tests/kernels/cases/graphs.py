"""Kernels between graphs of up to 5 nodes, and between the nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import expm

from kernels.cases import Case
from mercer.data import Graph, Graphs
from mercer.kernels import (
    AttributedPaths,
    AttributedWalks,
    Diffusion,
    Gaussian,
    Graphlet,
    HashedAttributes,
    Linear,
    RandomWalk,
    RegularizedLaplacian,
    ShortestPath,
    WeisfeilerLehman,
)
from reference.graph_kernels import (
    attributed_paths_kernel,
    attributed_walks_kernel,
    geometric_kernel,
    graphlet_kernel,
    marginalized_kernel,
    shortest_path_kernel,
    walk_kernel,
    weisfeiler_lehman_kernel,
)


def graphs(random: np.random.Generator, n: int, strings: bool = False) -> Graphs:
    """Labelled and weighted graphs of 0 to 5 nodes: an empty one, one without edges, disconnected ones, equal ones."""
    sizes = random.integers(1, 6, size=n)
    sizes[0] = 0
    edges = [np.argwhere(np.triu(random.random((k, k)) < 0.6, 1)) for k in sizes]
    edges[1] = np.zeros((0, 2), np.int64)
    labels: list[Any] = [random.integers(2, size=k) for k in sizes]
    if strings:
        labels = [np.array(["C", "O"])[part] if len(part) else part for part in labels]
    made = Graphs.from_edges(
        edges,
        sizes,
        node_labels=labels,
        edge_labels=[random.integers(2, size=len(part)) for part in edges],
        edge_weights=[random.integers(1, 8, size=len(part)) / 4.0 for part in edges],
        node_attributes=[random.normal(size=(k, 2)).round(1) for k in sizes],
    )
    return made[[*range(n - 1), n // 2]]


def named_graphs(random: np.random.Generator, n: int) -> Graphs:
    return graphs(random, n, strings=True)


def relabelled(random: np.random.Generator, graph: Graph) -> Graph:
    """An isomorphic graph: the nodes in another order."""
    if not graph.n_nodes:
        return graph
    order = random.permutation(graph.n_nodes)
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    upper = rows < graph.indices
    labels, attributes = np.empty_like(graph.node_labels), np.empty_like(graph.node_attributes)
    labels[order], attributes[order] = graph.node_labels, graph.node_attributes
    return Graphs.from_edges(
        [np.stack([order[rows[upper]], order[graph.indices[upper]]], axis=1)],
        [graph.n_nodes],
        node_labels=[labels],
        edge_labels=[graph.edge_labels[upper]],
        edge_weights=[graph.edge_weights[upper]],
        node_attributes=[attributes],
    )[0]


def product(a: float, b: float) -> float:
    return (a * b) ** 2 + 1.0


def near(a: Any, b: Any, gamma: float = 0.7) -> float:
    return float(np.exp(-gamma * np.sum((np.asarray(a) - np.asarray(b)) ** 2)))


ISOMORPHISM = {"the order of the nodes": relabelled}


def graph_case(name: str, kernel: Any, reference: Any, objects: Any = graphs, rtol: float = 1e-9) -> Case:
    return Case(name, kernel, objects, reference, ISOMORPHISM, rtol)


NODES = np.array([[0, 2, 0, 0, 0, 0], [2, 0, 1, 0.5, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0.5, 1, 0, 0, 0], [0] * 6, [0] * 6])
DEGREES = NODES.sum(axis=1)
LAPLACIAN = np.diag(DEGREES) - NODES
ROOTS = np.where(DEGREES > 0, 1 / np.sqrt(np.maximum(DEGREES, 0.1)), 0)
NORMALIZED = np.diag((DEGREES > 0) * 1.0) - ROOTS[:, None] * NODES * ROOTS


def nodes(random: np.random.Generator, n: int) -> np.ndarray:
    return random.integers(len(NODES), size=n)


def between_nodes(K: np.ndarray) -> Any:
    return lambda u, v: K[u, v]


CASES = [
    graph_case("shortest path", ShortestPath(), lambda x, z: shortest_path_kernel(x, z, labels=True)),
    graph_case(
        "shortest path, named labels", ShortestPath(labels=True),
        lambda x, z: shortest_path_kernel(x, z, labels=True), named_graphs,
    ),
    graph_case("shortest path, unlabelled", ShortestPath(labels=False), shortest_path_kernel),
    graph_case(
        "shortest path, weighted", ShortestPath(weighted=True),
        lambda x, z: shortest_path_kernel(x, z, labels=True, weighted=True),
    ),
    graph_case(
        "shortest path, lengths by a kernel", ShortestPath(length_kernel=Linear() ** 2 + 1.0, weighted=True),
        lambda x, z: shortest_path_kernel(x, z, labels=True, weighted=True, length_kernel=product),
    ),
    graph_case("refined labels", WeisfeilerLehman(3), lambda x, z: weisfeiler_lehman_kernel(x, z, 3, labels=True)),
    graph_case(
        "refined labels, none given", WeisfeilerLehman(2, labels=False), lambda x, z: weisfeiler_lehman_kernel(x, z, 2)
    ),
    graph_case(
        "refined labels, edge labels", WeisfeilerLehman(2, edge_labels=True),
        lambda x, z: weisfeiler_lehman_kernel(x, z, 2, labels=True, edge_labels=True),
    ),
    graph_case(
        "refined labels, edges", WeisfeilerLehman(2, base="edge", edge_labels=True),
        lambda x, z: weisfeiler_lehman_kernel(x, z, 2, "edge", labels=True, edge_labels=True),
    ),
    graph_case(
        "refined labels, paths", WeisfeilerLehman(2, base="shortest_path"),
        lambda x, z: weisfeiler_lehman_kernel(x, z, 2, "shortest_path", labels=True), named_graphs,
    ),
    graph_case("graphlets", Graphlet((3, 4)), lambda x, z: graphlet_kernel(x, z, (3, 4))),
    graph_case(
        "graphlets, labelled", Graphlet((2, 3), labels=True, normalize=False),
        lambda x, z: graphlet_kernel(x, z, (2, 3), labels=True, normalize=False),
    ),
    graph_case(
        "graphlets, all", Graphlet((2, 4), connected=False),
        lambda x, z: graphlet_kernel(x, z, (2, 4), connected=False),
    ),
    Case("graphlets, sampled", Graphlet((3, 4), n_samples=2), graphs),
    *(
        graph_case(
            f"geometric walks, {solver}", RandomWalk(decay=0.04, labels=False, solver=solver, tol=1e-12),
            lambda x, z: geometric_kernel(x, z, 0.04),
        )
        for solver in ("auto", "spectral", "cg", "fixed_point", "direct")
    ),
    *(
        graph_case(
            f"geometric walks, labelled, {solver}", RandomWalk(decay=0.05, edge_labels=True, solver=solver, tol=1e-12),
            lambda x, z: geometric_kernel(x, z, 0.05, labels=True, edge_labels=True),
        )
        for solver in ("cg", "fixed_point", "direct")
    ),
    graph_case(
        "geometric walks, weighted", RandomWalk(decay=0.015, weighted=True),
        lambda x, z: geometric_kernel(x, z, 0.015, labels=True, weighted=True),
    ),
    graph_case("geometric walks, scaled", RandomWalk(decay=0.9, scaled=True), None),
    graph_case(
        "walks of bounded length", RandomWalk(decay=0.7, max_length=3, edge_labels=True),
        lambda x, z: walk_kernel(x, z, 0.7, 3, labels=True, edge_labels=True), named_graphs,
    ),
    graph_case(
        "walks of bounded length, unlabelled", RandomWalk(decay=0.7, max_length=3, labels=False, weighted=True),
        lambda x, z: walk_kernel(x, z, 0.7, 3, weighted=True),
    ),
    *(
        graph_case(
            f"random walks, {solver}", RandomWalk("marginalized", stop_probability=0.9, solver=solver, tol=1e-12),
            lambda x, z: marginalized_kernel(x, z, 0.9, 4, labels=True), rtol=1e-8,
        )
        for solver in ("cg", "fixed_point", "direct")
    ),
    graph_case(
        "random walks, unlabelled", RandomWalk("marginalized", stop_probability=0.9, labels=False, weighted=True),
        lambda x, z: marginalized_kernel(x, z, 0.9, 4, weighted=True), rtol=1e-8,
    ),
    graph_case(
        "random walks of bounded length",
        RandomWalk("marginalized", stop_probability=0.3, max_length=4, edge_labels=True),
        lambda x, z: marginalized_kernel(x, z, 0.3, 4, labels=True, edge_labels=True),
    ),
    graph_case(
        "paths with attributes", AttributedPaths(Gaussian(0.7)),
        lambda x, z: attributed_paths_kernel(x, z, near, labels=True),
    ),
    graph_case(
        "paths with attributes, lengths by a kernel", AttributedPaths(Linear() + 2.0, Linear() ** 2 + 1.0, 2, False),
        lambda x, z: attributed_paths_kernel(x, z, lambda a, b: a @ b + 2.0, product, 2),
    ),
    graph_case(
        "walks with attributes", AttributedWalks(Gaussian(0.7), decay=0.6, max_length=3, labels=False),
        lambda x, z: attributed_walks_kernel(x, z, near, 0.6, 3),
    ),
    graph_case(
        "walks with attributes and edges", AttributedWalks(Gaussian(0.7), Gaussian(2.0), decay=0.6, max_length=3),
        lambda x, z: attributed_walks_kernel(x, z, near, 0.6, 3, labels=True, edge=lambda a, b: near(a, b, 2.0)),
        named_graphs,
    ),
    graph_case(
        "random walks with attributes", AttributedWalks(Gaussian(0.7), kind="marginalized", stop_probability=0.9),
        lambda x, z: attributed_walks_kernel(x, z, near, None, 4, labels=True, stop=0.9), rtol=1e-4,
    ),
    graph_case("hashed attributes", HashedAttributes(WeisfeilerLehman(1), 3), None),
    Case("diffusion", Diffusion(NODES, 0.5), nodes, between_nodes(expm(-0.5 * LAPLACIAN))),
    Case(
        "diffusion, normalised", Diffusion(NODES, 2.0, normalized_laplacian=True), nodes,
        between_nodes(expm(-2.0 * NORMALIZED)),
    ),
    Case(
        "regularised Laplacian", RegularizedLaplacian(NODES, 0.7), nodes,
        between_nodes(np.linalg.inv(np.eye(6) + 0.7 * LAPLACIAN)),
    ),
    Case(
        "regularised Laplacian, normalised", RegularizedLaplacian(NODES, 0.7, normalized_laplacian=True), nodes,
        between_nodes(np.linalg.inv(np.eye(6) + 0.7 * NORMALIZED)),
    ),
]  # fmt: skip
