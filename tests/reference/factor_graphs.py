"""Factor graphs by enumeration: slow and obviously right."""

from __future__ import annotations

from itertools import product

import numpy as np

from mercer.inference import Factor, FactorGraph


def joint(graph: FactorGraph) -> np.ndarray:
    """Unnormalised probabilities of all assignments, with an axis for each variable."""
    table = np.ones(tuple(graph.cardinalities))
    factors = [([graph.number(v) for v in factor.variables], factor.table) for factor in graph.factors]
    for x in product(*(range(c) for c in graph.cardinalities)):
        for scope, values in factors:
            table[x] *= values[tuple(x[v] for v in scope)]
    return table


def observed_joint(graph: FactorGraph, evidence: dict[int, int]) -> np.ndarray:
    """The same, 0 where an assignment contradicts the evidence."""
    table = joint(graph)
    for variable, state in evidence.items():
        keep = np.zeros(table.shape[variable])
        keep[state] = 1.0
        table = table * keep.reshape([-1 if axis == variable else 1 for axis in range(table.ndim)])
    return table


def marginal(table: np.ndarray, variables: list[int]) -> np.ndarray:
    """Probabilities of some variables, in their order."""
    others = tuple(axis for axis in range(table.ndim) if axis not in variables)
    summed = table.sum(axis=others) / table.sum()
    return summed.transpose(np.argsort(np.argsort(variables)))


def k_best(table: np.ndarray, k: int) -> list[float]:
    """The k largest probabilities, logarithms of them, without impossible ones."""
    values = np.sort(table.reshape(-1))[::-1]
    return np.log(values[values > 0][:k]).tolist()


def random_graph(
    rng: np.random.Generator,
    n: int | None = None,
    *,
    zeros: float = 0.0,
    largest: int = 3,
    tree: bool = False,
    scale: float = 1.0,
) -> FactorGraph:
    """A small graph with 1 to 7 variables of 1 to 3 states and factors of up to ``largest`` variables."""
    n = int(rng.integers(1, 8)) if n is None else n
    cards = rng.integers(1, 4, n)
    graph = FactorGraph(cards)
    count = n - 1 if tree else int(rng.integers(0, 2 * n))
    for number in range(count):
        if tree:
            scope = [number + 1, int(rng.integers(0, number + 1))]
            rng.shuffle(scope)
        else:
            scope = rng.permutation(n)[: rng.integers(1, min(n, largest) + 1)].tolist()
        graph.add(Factor(scope, _table(rng, cards[scope], zeros, scale)))
    for variable in range(n):
        if rng.random() < 0.6:
            graph.add(Factor([variable], _table(rng, cards[[variable]], 0.0, scale)))
    return graph


def _table(rng: np.random.Generator, shape: np.ndarray, zeros: float, scale: float) -> np.ndarray:
    table = np.exp(scale * rng.normal(size=tuple(shape)))
    return np.where(rng.random(table.shape) < zeros, 0.0, table)


def ising(rng: np.random.Generator, shape: tuple[int, int], coupling: float, field: float) -> FactorGraph:
    """A grid of ±1 spins: exp(Σ J x_i x_j + Σ h x_i), J = ±coupling, h of standard deviation ``field``."""
    from mercer.inference import grid_edges

    edges = grid_edges(shape)
    J = coupling * rng.choice([-1.0, 1.0], len(edges))
    h = field * rng.normal(size=shape[0] * shape[1])
    spins = np.array([-1.0, 1.0])
    return FactorGraph(
        np.full(len(h), 2),
        unary=h[:, None] * spins,
        edges=edges,
        pairwise=J[:, None, None] * np.outer(spins, spins),
        log=True,
    )
