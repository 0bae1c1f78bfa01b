"""Cuts are minimum cuts; binary submodular graphs get their best assignment, moves never lower the score."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.inference import FactorGraph, grid_edges, infer, is_submodular, minimum_cut


def best_score(graph: FactorGraph) -> float:
    every = np.array(list(itertools.product(*[range(c) for c in graph.cardinalities])), np.int32)
    return float(graph.compiled.score(every).max())


def random_edges(random: np.random.Generator, n: int, m: int) -> np.ndarray:
    edges = random.integers(0, n, size=(m, 2))
    return edges[edges[:, 0] != edges[:, 1]]


def cut_cost(x, source, sink, edges, forward, backward) -> float:
    u, v = edges.T
    between = (forward * (1 - x[u]) * x[v] + backward * x[u] * (1 - x[v])).sum()
    return float((source * x + sink * (1 - x)).sum() + between)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8), m=st.integers(0, 20), whole=st.booleans())
def test_no_cut_is_cheaper(seed, n, m, whole):
    random = np.random.default_rng(seed)
    edges = random_edges(random, n, m)
    draw = (lambda k: random.integers(0, 5, k).astype(float)) if whole else (lambda k: random.exponential(size=k))
    arrays = draw(n), draw(n), edges, draw(len(edges)), draw(len(edges))
    capacity, side = minimum_cut(*arrays)
    least = min(cut_cost(np.array(x), *arrays) for x in itertools.product((0, 1), repeat=n))
    assert np.isclose(capacity, least)
    assert np.isclose(cut_cost(side.astype(int), *arrays), least)


def test_the_cut_of_a_large_grid_equals_the_flow():
    random = np.random.default_rng(0)
    edges = grid_edges((60, 70))
    single = random.normal(size=4200)
    source, sink = np.maximum(single, 0), np.maximum(-single, 0)
    capacity, side = minimum_cut(source, sink, edges, 0.7)
    assert np.isclose(capacity, cut_cost(side.astype(int), source, sink, edges, 0.7, 0.7))
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    scaled = np.rint(np.concatenate([source, sink, np.full(2 * len(edges), 0.7)]) * 10**5).astype(np.int32)
    n = 4200
    rows = np.concatenate([np.full(n, n), np.arange(n), edges[:, 0], edges[:, 1]])
    columns = np.concatenate([np.arange(n), np.full(n, n + 1), edges[:, 1], edges[:, 0]])
    matrix = coo_matrix((scaled, (rows, columns)), shape=(n + 2, n + 2)).tocsr()
    assert np.isclose(maximum_flow(matrix, n, n + 1).flow_value / 1e5, capacity, rtol=1e-4)


def attractive(random: np.random.Generator, n: int, m: int, states: int = 2, forbid: bool = False) -> FactorGraph:
    """A graph with tables of a metric, or (for two states) any submodular ones."""
    edges = random_edges(random, n, m)
    unary = random.normal(size=(n, states))
    if forbid and n:
        unary[random.integers(n), random.integers(states)] = -np.inf
    if states == 2:
        tables = random.normal(size=(len(edges), 2, 2))
        gap = tables[:, 0, 1] + tables[:, 1, 0] - tables[:, 0, 0] - tables[:, 1, 1]
        tables[:, 0, 0] += np.maximum(gap, 0)
    else:
        strength = random.exponential(size=len(edges))
        place = np.arange(states)
        tables = -strength[:, None, None] * np.minimum(np.abs(place[:, None] - place), 2.0)
    return FactorGraph(np.full(n, states), unary=unary, edges=edges, pairwise=tables, log=True)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), m=st.integers(0, 16), forbid=st.booleans())
def test_submodular_graphs_get_their_best_assignment(seed, n, m, forbid):
    graph = attractive(np.random.default_rng(seed), n, m, forbid=forbid)
    assert is_submodular(graph)
    result = infer(graph, "cuts", task="map")
    assert np.isclose(result.map_value, best_score(graph))
    assert np.isclose(graph.compiled.score(result.map), result.map_value)


@pytest.mark.parametrize("method", ["expansion", "swap"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), m=st.integers(0, 10))
def test_moves_end_where_no_move_helps(method, seed, n, m):
    graph = attractive(np.random.default_rng(seed), n, m, states=4)
    result = infer(graph, method, task="map")
    best = best_score(graph)
    assert result.converged
    assert result.map_value <= best + 1e-9
    values = result.history["value"]
    assert (np.diff(values) > 0).all()
    states = result.map
    for a in range(4):  # no single variable is better off elsewhere: a special case of both moves
        for i in range(n):
            other = states.copy()
            other[i] = a
            if method == "expansion":
                assert graph.compiled.score(other) <= result.map_value + 1e-9


def test_expansion_is_within_its_bound_and_near_the_optimum():
    random = np.random.default_rng(1)
    gaps = []
    for _ in range(30):
        graph = attractive(random, 6, 10, states=3)
        energies = -best_score(graph), -infer(graph, "expansion", task="map").map_value
        gaps.append(energies[1] - energies[0])
    assert min(gaps) >= -1e-9
    assert np.mean(np.array(gaps) < 1e-9) > 0.8


def test_variables_may_have_different_numbers_of_states():
    graph = FactorGraph(
        [2, 3], unary=[[1.0, 2.0], [1.0, 5.0, 1.0]], edges=[[0, 1]], pairwise=[[3.0, 1.0, 1.0], [1.0, 3.0, 1.0]]
    )
    for method in ("expansion", "swap"):
        assert infer(graph, method, task="map").map.tolist() == [1, 1]


def test_a_given_start_is_used():
    graph = attractive(np.random.default_rng(0), 6, 9, states=3)
    best = infer(graph, "expansion", task="map")
    assert infer(graph, "expansion", task="map", start=best.map).n_iter == 1


def test_auto_picks_cuts_for_a_grid_too_wide_for_exact_sums():
    random = np.random.default_rng(0)
    graph = FactorGraph(
        np.full(1600, 2), unary=random.random((1600, 2)), edges=grid_edges((40, 40)), pairwise=[[2.0, 1.0], [1.0, 2.0]]
    )
    result = infer(graph, task="map")
    assert result.method == "cuts"
    assert "submodular" in result.reason


def test_what_cuts_cannot_take_is_refused():
    repulsive = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"not submodular: the factor over the variables 0 and 1 .* 1\.39"):
        infer(repulsive, "cuts", task="map")
    with pytest.raises(ValueError, match="variable 0 has 3 states: method='expansion'"):
        infer(FactorGraph([3], unary=[[1.0, 2.0, 3.0]]), "cuts", task="map")
    triple = FactorGraph([2, 2, 2]).add_factors([[0, 1, 2]], np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="more than two variables"):
        infer(triple, "cuts", task="map")
    with pytest.raises(ValueError, match="larger ones"):
        infer(triple, "swap", task="map")
    no_metric = FactorGraph(
        [3, 3],
        unary=[[100.0, 1.0, 1.0], [1.0, 100.0, 1.0]],
        edges=[[0, 1]],
        pairwise=[[1.0, 0.1, 1.0], [0.1, 1.0, 1.0], [1.0, 1.0, 1.0]],
    )
    with pytest.raises(ValueError, match="triangle inequality"):
        infer(no_metric, "expansion", task="map", start=[0, 1])
    with pytest.raises(ValueError, match="max_iter"):
        infer(no_metric, "swap", task="map", max_iter=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": [[1.0]]}, "source must hold"),
        ({"sink": [1.0]}, "sink must hold"),
        ({"edges": [[0, 2]]}, "edges name nodes from 0 to 1"),
        ({"edges": [[0.5, 1.0]]}, "pairs of nodes"),
        ({"edges": [[0, 0]]}, "two nodes"),
        ({"forward": [1.0, 2.0]}, "one for each of the 1 edges"),
        ({"forward": [-1.0]}, "negative"),
        ({"source": [np.nan, 1.0]}, "finite"),
    ],
)
def test_bad_capacities_are_refused(changes, message):
    arguments = {"source": [1.0, 2.0], "sink": [0.0, 1.0], "edges": [[0, 1]], "forward": [1.0]}
    with pytest.raises(ValueError, match=message):
        minimum_cut(**{**arguments, **changes})


def test_compiled_cut_checks_its_arrays():
    ones, edges = np.ones(2), np.array([[0, 1]], np.int32)
    with pytest.raises(ValueError, match="side"):
        _core.inference.min_cut(ones, ones, edges, np.ones(1), np.ones(1), np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="not there"):
        _core.inference.min_cut(ones, ones, np.array([[0, 7]], np.int32), np.ones(1), np.ones(1), np.zeros(2, np.uint8))
    with pytest.raises(TypeError):
        _core.inference.min_cut(ones, ones, edges.astype(np.int64), np.ones(1), np.ones(1), np.zeros(2, np.uint8))


def test_graphs_without_edges_or_nodes():
    capacity, side = minimum_cut([1.0, 0.0], [0.0, 3.0], [], [])
    assert (capacity, side.tolist()) == (0.0, [False, True])
    assert minimum_cut([], [], [], [])[0] == 0.0
