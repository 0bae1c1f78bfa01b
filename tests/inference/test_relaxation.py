"""Relaxations bound the best score from above, and are tight on trees and attractive graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.inference import FactorGraph, ZeroProbabilityError, grid_edges, infer, lp_inference, relaxed_marginals


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


def test_fractional_solutions_say_so_and_whole_ones_do():
    differ, agree = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[2.0, 1.0], [1.0, 2.0]])
    circle = [(0, 1), (1, 2), (0, 2)]
    torn = lp_inference(np.zeros((3, 2)), np.stack([differ] * 3), circle)
    assert not torn.integral
    assert torn.value == pytest.approx(6.0)
    whole = lp_inference(np.array([[0.0, 0.5], [0.0, 0.0], [0.0, 0.0]]), np.stack([agree] * 3), circle)
    assert whole.integral
    assert (whole.labels.tolist(), whole.value) == ([1, 1, 1], pytest.approx(6.5))
    assert whole.edges.shape == (3, 2, 2)
    alone = lp_inference(np.array([[1.0, 0.0]]), np.zeros((0, 2, 2)), [])
    assert (alone.labels.tolist(), alone.value, alone.integral) == ([0], 1.0, True)
    for table, converged, share in ((differ, False, 1.0), (agree, True, 0.0)):
        graph = FactorGraph([2, 2, 2], unary=np.array([[0.0, 0.1]] * 3), edges=circle, pairwise=table, log=True)
        result = infer(graph, "lp", task="map")
        assert (result.converged, result.extra["fractional"]) == (converged, share)
        assert result.map_bound == pytest.approx(6.15 if share else 6.3)


@pytest.mark.parametrize(
    ("nodes", "pairs", "edges", "message"),
    [
        (np.zeros(2), np.zeros((0, 2, 2)), [], "node_scores must have shape"),
        (np.zeros((0, 2)), np.zeros((0, 2, 2)), [], "node_scores must have shape"),
        (np.zeros((2, 2)), np.zeros((2, 2, 2)), [(0, 1)], r"edge_scores must have shape \(1, 2, 2\)"),
        (np.zeros((2, 2)), np.zeros((1, 2, 3)), [(0, 1)], r"edge_scores must have shape \(1, 2, 2\)"),
        (np.array([[np.nan, 0.0]] * 2), np.zeros((1, 2, 2)), [(0, 1)], "scores must be finite"),
        (np.zeros((2, 2)), np.full((1, 2, 2), np.inf), [(0, 1)], "scores must be finite"),
        (np.zeros((2, 2)), np.zeros((1, 2, 2)), [(-1, 1)], "between 0 and 1"),
        (np.zeros((2, 2)), np.zeros((1, 2, 2)), [(0, 2)], "between 0 and 1"),
        (np.zeros((2, 2)), np.zeros((1, 2, 2)), [(1, 1)], "two different nodes"),
    ],
)  # fmt: skip
def test_wrong_scores_of_a_pairwise_model_are_named(nodes, pairs, edges, message):
    with pytest.raises(ValueError, match=message):
        lp_inference(nodes, pairs, edges)


def test_the_limit_on_unknowns_is_the_largest_program_that_is_solved(monkeypatch):
    graph = FactorGraph([2, 3], edges=[[0, 1]], pairwise=[[1.0, 2.0, 3.0], [3.0, 2.0, 1.5]])
    monkeypatch.setattr("mercer.inference.relaxation.MAX_VARIABLES", 11)  # 2 + 3 states, 6 of the pair
    assert infer(graph, "lp", task="map").map_bound == pytest.approx(np.log(3.0))
    monkeypatch.setattr("mercer.inference.relaxation.MAX_VARIABLES", 10)
    with pytest.raises(ValueError, match="would have 11 unknowns, more than 10"):
        infer(graph, "lp", task="map")


def test_a_graph_without_variables_has_its_constant_as_the_bound():
    result = infer(FactorGraph([]), "lp", task="map")
    assert (result.map.tolist(), result.map_bound) == ([], 0.0)


@pytest.mark.parametrize(
    ("method", "task"), [("dual", "map"), ("mean-field", "marginals"), ("chain-mean-field", "marginals")]
)
def test_a_tolerance_of_zero_is_allowed_and_less_is_not(method, task):
    graph = FactorGraph([2, 2], unary=np.array([[1.0, 2.0], [3.0, 1.0]]), edges=[[0, 1]], pairwise=[[2.0, 1], [1, 2]])
    assert infer(graph, method, task=task, tol=0, max_iter=2000).residual is not None
    for tol in (-1e-300, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"tol must be a finite number of at least 0, got"):
            infer(graph, method, task=task, tol=tol)


def test_the_residual_of_dual_ascent_is_its_gap():
    random = np.random.default_rng(1)
    pairs = random.normal(size=(12, 3, 3))
    graph = FactorGraph([3] * 9, unary=random.normal(size=(9, 3)), edges=grid_edges((3, 3)), pairwise=pairs, log=True)
    with pytest.warns(RuntimeWarning, match="still falls"):
        result = infer(graph, "dual", task="map", max_iter=1)
    assert result.residual == pytest.approx(result.history["bound"][-1] - result.history["value"][-1])
    assert result.residual > 0
