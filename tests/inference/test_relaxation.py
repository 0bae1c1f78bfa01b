"""Relaxations bound the best score from above, and are tight on trees and attractive graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.inference import FactorGraph, ZeroProbabilityError, grid_edges, infer, relaxed_marginals


def best_score(graph: FactorGraph) -> float:
    every = np.array(list(itertools.product(*[range(c) for c in graph.cardinalities])), np.int32)
    return float(graph.compiled.score(every).max())


def random_graph(seed: int, n: int, m: int) -> FactorGraph:
    random = np.random.default_rng(seed)
    cards = random.integers(1, 4, size=n)
    graph = FactorGraph(cards, unary=[np.exp(random.normal(size=c)) for c in cards])
    for _ in range(m):
        scope = random.choice(n, size=min(n, random.integers(2, 4)), replace=False)
        table = np.exp(random.normal(size=tuple(cards[scope])))
        if random.random() < 0.2:
            table.flat[random.integers(table.size)] = 0.0
        graph.add_factors([scope.tolist()], table)
    return graph


@pytest.mark.parametrize("method", ["lp", "dual"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 5), m=st.integers(0, 6))
def test_bound_is_above_and_value_below_the_best_score(method, seed, n, m):
    graph = random_graph(seed, n, m)
    best = best_score(graph)
    if np.isneginf(best):
        return
    result = infer(graph, method, task="map")
    assert result.map_bound >= best - 1e-6
    assert result.map_value <= best + 1e-9
    assert np.isclose(graph.compiled.score(result.map), result.map_value)


@pytest.mark.parametrize("method", ["lp", "dual"])
@pytest.mark.parametrize("seed", range(4))
def test_tight_on_trees(method, seed):
    random = np.random.default_rng(seed)
    n = 12
    edges = [[int(random.integers(i)), i] for i in range(1, n)]
    graph = FactorGraph(
        np.full(n, 3),
        unary=random.normal(size=(n, 3)),
        edges=edges,
        pairwise=random.normal(size=(n - 1, 3, 3)),
        log=True,
    )
    result = infer(graph, method, task="map")
    best = infer(graph, "elimination", task="map").map_value
    assert np.isclose(result.map_value, best)
    assert np.isclose(result.map_bound, best, rtol=1e-5)
    if method == "lp":
        whole = relaxed_marginals(graph)
        np.testing.assert_allclose(np.minimum(whole, 1 - whole), 0.0, atol=1e-6)


@pytest.mark.parametrize("method", ["lp", "dual"])
def test_tight_on_attractive_grids(method):
    random = np.random.default_rng(0)
    graph = FactorGraph(
        np.full(64, 2), unary=random.normal(size=(64, 2)), edges=grid_edges((8, 8)),
        pairwise=[[0.4, -0.4], [-0.4, 0.4]], log=True,
    )  # fmt: skip
    best = infer(graph, "cuts", task="map").map_value
    result = infer(graph, method, task="map")
    assert result.map_bound >= best - 1e-6
    assert np.isclose(result.map_bound, best, rtol=1e-3)
    if method == "lp":
        assert np.isclose(result.map_value, best)


def test_the_bound_of_dual_ascent_never_rises_and_is_that_of_the_program_or_above():
    random = np.random.default_rng(1)
    for _ in range(5):
        graph = FactorGraph(
            np.full(9, 3), unary=random.normal(size=(9, 3)), edges=grid_edges((3, 3)),
            pairwise=random.normal(size=(12, 3, 3)), log=True,
        )  # fmt: skip
        dual, program = infer(graph, "dual", task="map"), infer(graph, "lp", task="map")
        bounds = np.array(dual.history["bound"])
        assert (np.diff(bounds) <= 1e-9).all()
        assert dual.map_bound >= program.map_bound - 1e-6
        assert dual.map_bound <= program.map_bound + 0.5


def test_frustrated_circle_has_a_gap():
    graph = FactorGraph([2, 2, 2], edges=[[0, 1], [1, 2], [0, 2]], pairwise=[[1.0, np.e], [np.e, 1.0]])
    for method in ("lp", "dual"):
        result = infer(graph, method, task="map")
        assert np.isclose(result.map_bound, 3.0, atol=1e-4)
        assert np.isclose(result.map_value, 2.0)
    assert not infer(graph, "lp", task="map").converged


def test_impossible_models_and_huge_programs_are_refused(monkeypatch):
    graph = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[0.0, 0.0], [0.0, 0.0]])
    for method in ("lp", "dual"):
        with pytest.raises(ZeroProbabilityError):
            infer(graph, method, task="map")
    from mercer.inference import relaxation

    monkeypatch.setattr(relaxation, "MAX_VARIABLES", 5)
    with pytest.raises(ValueError, match="unknowns, more than 5: use method='dual'"):
        infer(FactorGraph([3, 3], unary=np.ones((2, 3))), "lp", task="map")


def test_bad_options_are_refused_and_early_stops_warned_of():
    random = np.random.default_rng(0)
    graph = FactorGraph(
        np.full(25, 3), unary=random.normal(size=(25, 3)), edges=grid_edges((5, 5)),
        pairwise=random.normal(size=(40, 3, 3)), log=True,
    )  # fmt: skip
    with pytest.raises(ValueError, match="max_iter"):
        infer(graph, "dual", task="map", max_iter=0)
    with pytest.raises(ValueError, match="tol"):
        infer(graph, "dual", task="map", tol=-1.0)
    with pytest.warns(RuntimeWarning, match="still falls after max_iter=1"):
        infer(graph, "dual", task="map", max_iter=1)
    with pytest.raises(ValueError, match="max_iter"):
        _core.inference.dual_ascent(graph.compiled.core, 0, 1e-6)
