"""Graphlets by definition: all subsets, all permutations; the chain of Lemma 4 as a matrix."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

nx = pytest.importorskip("networkx")


def graphlet_counts(graph: nx.Graph, k: int, connected: bool = True, label: str | None = None) -> Counter[Any]:
    """Number of k-subsets by the type of their induced subgraph (least labelled bit string over all permutations)."""
    counts: Counter[Any] = Counter()
    for nodes in combinations(graph.nodes, k):
        induced = graph.subgraph(nodes)
        if not connected or nx.is_connected(induced):
            counts[graph_type(induced, label)] += 1
    return counts


def graph_type(graph: nx.Graph, label: str | None = None) -> Any:
    joined = nx.to_numpy_array(graph, weight=None).tolist()
    labels = [data[label] if label else 0 for _, data in graph.nodes(data=True)]

    def form(order: tuple[int, ...]) -> Any:
        return [labels[v] for v in order], [joined[u][v] for u, v in combinations(order, 2)]

    return repr(min(map(form, permutations(range(len(graph))))))


def gibbs_transitions(
    graph: nx.Graph, k: int, beta: Any, connected: bool = False
) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray]:
    """States, transition matrix and stationary distribution, from the text of Lemma 4."""

    def weight(nodes: Any) -> float:
        induced = graph.subgraph(nodes)
        return 0.0 if connected and not nx.is_connected(induced) else float(beta[induced.number_of_edges()])

    states = [s for s in combinations(sorted(graph.nodes), k) if not connected or nx.is_connected(graph.subgraph(s))]
    number = {state: i for i, state in enumerate(states)}
    T = np.zeros((len(states), len(states)))
    for state in states:
        for out in state:
            rest = set(state) - {out}
            others = [j for j in graph.nodes if j not in rest]
            weights = np.array([weight(rest | {j}) for j in others])
            for j, w in zip(others, weights, strict=True):
                if w > 0:
                    T[number[state], number[tuple(sorted(rest | {j}))]] += w / weights.sum() / k
    pi = np.array([weight(state) for state in states])
    return states, T, pi / pi.sum()
