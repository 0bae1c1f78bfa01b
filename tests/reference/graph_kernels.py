"""Kernels of graphs by enumeration: walks, paths, shortest paths, refined labels and subgraphs, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from mercer.data import Graph


def neighbours(graph: Graph, v: int) -> list[tuple[int, Any, float]]:
    """(neighbour, edge label, edge weight)."""
    at = range(graph.indptr[v], graph.indptr[v + 1])
    label = (lambda e: None) if graph.edge_labels is None else (lambda e: graph.edge_labels[e])
    weight = (lambda e: 1.0) if graph.edge_weights is None else (lambda e: float(graph.edge_weights[e]))
    return [(int(graph.indices[e]), label(e), weight(e)) for e in at]


def node_label(graph: Graph, v: int, labels: bool) -> Any:
    return graph.node_labels[v] if labels and graph.node_labels is not None else None


def walks(graph: Graph, length: int) -> Iterator[tuple[list[int], list[Any], float]]:
    """All walks of some edges: nodes, edge labels, product of the weights."""
    if length == 0:
        yield from (([v], [], 1.0) for v in range(graph.n_nodes))
        return
    for nodes, edges, weight in walks(graph, length - 1):
        for u, label, w in neighbours(graph, nodes[-1]):
            yield [*nodes, u], [*edges, label], weight * w


def word(graph: Graph, nodes: list[int], edges: list[Any], labels: bool, edge_labels: bool) -> tuple[Any, ...]:
    """What a walk looks like: the labels along it."""
    return (*(node_label(graph, v, labels) for v in nodes), *(edges if edge_labels else [None] * len(edges)))


def walk_words(graph: Graph, length: int, labels: bool, edge_labels: bool, weighted: bool) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for nodes, edges, weight in walks(graph, length):
        found[word(graph, nodes, edges, labels, edge_labels)] += weight if weighted else 1.0  # type: ignore[assignment]
    return found


def inner(left: Counter[Any], right: Counter[Any]) -> float:
    return float(sum(count * right[key] for key, count in left.items() if key in right))


def walk_kernel(
    x: Graph, z: Graph, decay: float, max_length: int, labels: bool = False, edge_labels: bool = False,
    weighted: bool = False,
) -> float:  # fmt: skip
    """Σ_l λ^l Σ over pairs of walks of l edges with the same labels."""
    parts = ((walk_words(g, n, labels, edge_labels, weighted) for g in (x, z)) for n in range(max_length + 1))
    return sum(decay**n * inner(*pair) for n, pair in enumerate(parts))


def geometric_kernel(
    x: Graph, z: Graph, decay: float, labels: bool = False, edge_labels: bool = False, weighted: bool = False
) -> float:
    """1ᵀ (I − λ W×)⁻¹ 1, with the product graph made pair by pair."""
    pairs, W = product_graph(x, z, labels, edge_labels, weighted)
    return float(np.linalg.solve(np.eye(len(pairs)) - decay * W, np.ones(len(pairs))).sum()) if pairs else 0.0


def product_graph(
    x: Graph, z: Graph, labels: bool, edge_labels: bool, weighted: bool
) -> tuple[list[tuple[int, int]], np.ndarray]:
    pairs = [
        (u, v) for u in range(x.n_nodes) for v in range(z.n_nodes)
        if node_label(x, u, labels) == node_label(z, v, labels)
    ]  # fmt: skip
    place = {pair: i for i, pair in enumerate(pairs)}
    W = np.zeros((len(pairs), len(pairs)))
    for (u, v), i in place.items():
        for a, first, w in neighbours(x, u):
            for b, second, w2 in neighbours(z, v):
                if (a, b) in place and (not edge_labels or first == second):
                    W[i, place[a, b]] = w * w2 if weighted else 1.0
    return pairs, W


def walk_probabilities(
    graph: Graph, length: int, stop: float, labels: bool, edge_labels: bool, weighted: bool
) -> Counter[tuple[Any, ...]]:
    """p(h | G) of all walks of some edges, summed by what they look like."""
    found: Counter[tuple[Any, ...]] = Counter()
    for nodes, edges, _ in walks(graph, length):
        p = 1.0 / graph.n_nodes
        for u, v in pairwise(nodes):
            around = {a: (w if weighted else 1.0) for a, _, w in neighbours(graph, u)}
            p *= (1.0 - stop) * around[v] / sum(around.values())
        p *= stop if neighbours(graph, nodes[-1]) else 1.0
        found[word(graph, nodes, edges, labels, edge_labels)] += p  # type: ignore[assignment]
    return found


def marginalized_kernel(
    x: Graph, z: Graph, stop: float, max_length: int, labels: bool = False, edge_labels: bool = False,
    weighted: bool = False,
) -> float:  # fmt: skip
    """Σ over pairs of walks of at most max_length edges, with their probabilities."""
    total = 0.0
    for n in range(max_length + 1):
        total += inner(*(walk_probabilities(g, n, stop, labels, edge_labels, weighted) for g in (x, z)))
    return total


def simple_paths(graph: Graph) -> Iterator[list[int]]:
    """All paths that visit no node twice, single nodes included."""
    for n in range(1, graph.n_nodes + 1):
        for nodes in permutations(range(graph.n_nodes), n):
            if all(v in graph.neighbours(u) for u, v in pairwise(nodes)):
                yield list(nodes)


def all_paths_kernel(x: Graph, z: Graph, labels: bool = False) -> float:
    """Pairs of paths with the same labels: only for tiny graphs."""
    assert max(x.n_nodes, z.n_nodes) <= 7, "the number of paths grows faster than exponentially"
    found = [Counter(tuple(node_label(g, v, labels) for v in path) for path in simple_paths(g)) for g in (x, z)]
    return inner(*found)


def distances(graph: Graph, weighted: bool) -> np.ndarray:
    """Floyd and Warshall's distances of all pairs."""
    d = np.full((graph.n_nodes, graph.n_nodes), np.inf)
    np.fill_diagonal(d, 0.0)
    for v in range(graph.n_nodes):
        for u, _, w in neighbours(graph, v):
            d[v, u] = w if weighted else 1.0
    for k in range(graph.n_nodes):
        d = np.minimum(d, d[:, [k]] + d[[k], :])
    return d


def shortest_path_kernel(
    x: Graph, z: Graph, labels: bool = False, weighted: bool = False, length_kernel: Any = None
) -> float:
    """Over all pairs of pairs of nodes."""
    compare = length_kernel or (lambda a, b: float(abs(a - b) < 1e-9 * max(a, b, 1.0)))
    dx, dz = distances(x, weighted), distances(z, weighted)
    total = 0.0
    for u, v in permutations(range(x.n_nodes), 2):
        for a, b in permutations(range(z.n_nodes), 2):
            ends = [node_label(g, w, labels) for g, w in ((x, u), (x, v), (z, a), (z, b))]
            if ends[:2] == ends[2:] and np.isfinite(dx[u, v]) and np.isfinite(dz[a, b]):
                total += compare(dx[u, v], dz[a, b])
    return total


def refined_labels(graph: Graph, rounds: int, labels: bool, edge_labels: bool) -> list[list[Any]]:
    """Labels of all rounds, as nested tuples: no hashing."""
    colours: list[list[Any]] = [[repr(node_label(graph, v, labels)) for v in range(graph.n_nodes)]]
    for _ in range(rounds):
        last = colours[-1]
        around = [
            sorted((repr(e) if edge_labels else "", last[u]) for u, e, _ in neighbours(graph, v))
            for v in range(graph.n_nodes)
        ]
        colours.append([repr((last[v], around[v])) for v in range(graph.n_nodes)])
    return colours


def weisfeiler_lehman_kernel(
    x: Graph, z: Graph, rounds: int, base: str = "subtree", labels: bool = False, edge_labels: bool = False
) -> float:
    total = 0.0
    colours = [refined_labels(g, rounds, labels, edge_labels) for g in (x, z)]
    for one, other in zip(*colours, strict=True):
        total += inner(*(_base_counts(g, c, base, edge_labels) for g, c in ((x, one), (z, other))))
    return total


def _base_counts(graph: Graph, colours: list[Any], base: str, edge_labels: bool) -> Counter[Any]:
    if base == "subtree":
        return Counter(colours)
    if base == "edge":
        return Counter(
            (*sorted((colours[u], colours[v])), repr(label) if edge_labels else "")
            for u in range(graph.n_nodes) for v, label, _ in neighbours(graph, u) if u < v
        )  # fmt: skip
    d = distances(graph, False)
    pairs = permutations(range(graph.n_nodes), 2)
    return Counter((colours[u], colours[v], d[u, v]) for u, v in pairs if np.isfinite(d[u, v]))


def subgraph_counts(graph: Graph, k: int, labels: bool, connected: bool) -> Counter[Any]:
    """Induced subgraphs of k nodes by the least of all their descriptions."""
    A = graph.adjacency().toarray() != 0
    found: Counter[Any] = Counter()
    for nodes in combinations(range(graph.n_nodes), k):
        if connected and not _is_connected(A[np.ix_(nodes, nodes)]):
            continue
        described = (
            (tuple(repr(node_label(graph, v, labels)) for v in order), A[np.ix_(order, order)].tobytes())
            for order in permutations(nodes)
        )
        found[(k, min(described))] += 1
    return found


def _is_connected(A: np.ndarray) -> bool:
    reached = np.linalg.matrix_power(A.astype(float) + np.eye(len(A)), max(1, len(A)))
    return bool((reached > 0).all())


def graphlet_kernel(
    x: Graph, z: Graph, sizes: tuple[int, ...], labels: bool = False, connected: bool = True, normalize: bool = True
) -> float:
    total = 0.0
    for k in sizes:
        found = [subgraph_counts(g, k, labels, connected) for g in (x, z)]
        scale = np.prod([float(sum(counts.values())) or 1.0 for counts in found]) if normalize else 1.0
        total += inner(*found) / float(scale)
    return total


def of_nodes(x: Graph, u: int, z: Graph, v: int, node: Any, labels: bool) -> float:
    """A kernel of attributes, 0 where labels differ."""
    if node_label(x, u, labels) != node_label(z, v, labels):
        return 0.0
    return float(node(x.node_attributes[u], z.node_attributes[v]))


def attributed_paths_kernel(
    x: Graph, z: Graph, node: Any, length: Any = None, max_length: float = np.inf, labels: bool = False
) -> float:
    """Σ over ordered pairs of nodes of both of k(u, u') k(v, v') k(d, d')."""
    parts = [
        [
            (u, v, d[u, v])
            for u, v in permutations(range(g.n_nodes), 2)
            if np.isfinite(d[u, v]) and d[u, v] <= max_length
        ]
        for g in (x, z)
        for d in [distances(g, False)]
    ]
    alike = (lambda d, e: float(d == e)) if length is None else length
    return sum(
        of_nodes(x, u, z, s, node, labels) * of_nodes(x, v, z, t, node, labels) * alike(d, e)
        for u, v, d in parts[0]
        for s, t, e in parts[1]
    )


def attributed_walks_kernel(
    x: Graph, z: Graph, node: Any, decay: float | None, max_length: int, labels: bool = False, edge: Any = None,
    stop: float = 0.0,
) -> float:  # fmt: skip
    """Σ over pairs of walks of one length; without a decay their probabilities, with this stop probability."""
    total = 0.0
    for n in range(max_length + 1):
        for nodes, others in product_of_walks(x, z, n):
            value = decay**n if decay is not None else chance(x, nodes, stop) * chance(z, others, stop)
            for u, v in zip(nodes, others, strict=True):
                value *= of_nodes(x, u, z, v, node, labels)
            if edge is not None:
                for a, b in zip(pairwise(nodes), pairwise(others), strict=True):
                    value *= edge(weight_between(x, *a), weight_between(z, *b))
            total += value
    return total


def product_of_walks(x: Graph, z: Graph, n: int) -> Iterator[tuple[list[int], list[int]]]:
    """All pairs of walks of n edges."""
    second = [nodes for nodes, _, _ in walks(z, n)]
    yield from ((nodes, other) for nodes, _, _ in walks(x, n) for other in second)


def weight_between(graph: Graph, u: int, v: int) -> float:
    """The weight of an edge."""
    return next(weight for w, _, weight in neighbours(graph, u) if w == v)


def chance(graph: Graph, nodes: list[int], stop: float) -> float:
    """The probability of a random walk."""
    p = 1.0 / graph.n_nodes
    for u in nodes[:-1]:
        p *= (1.0 - stop) / len(neighbours(graph, u))
    return p * (stop if neighbours(graph, nodes[-1]) else 1.0)
