"""Messages from the two halves of a bipartite graph in turn: where synchronous sweeps end, in fewer of them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core
from mercer.inference.graph import FactorGraph, grid_edges
from mercer.inference.messages import appearance_probabilities


def grid(connectivity: int, n: int = 9):
    """Random potentials on a grid whose edges point either way."""
    rng = np.random.default_rng(connectivity)
    edges = grid_edges((n, n), connectivity)
    edges = np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])
    graph = FactorGraph(
        np.full(n * n, 2, np.int32), edges=edges, pairwise=rng.normal(size=(len(edges), 2, 2)), log=True
    )
    core = graph.compiled.core
    core = core.with_potentials(rng.normal(size=2 * n * n), rng.normal(size=4 * len(edges)), 0.0)
    return core, appearance_probabilities(graph.compiled, random_state=0)


def settled(core, rho, schedule, start=None, maximise=False):
    return _core.inference.loopy_messages(core, maximise, schedule, 5000, 1e-10, 0.1, 0, rho, start)


def test_alternating_messages_settle_where_synchronous_ones_do_in_fewer_sweeps():
    core, rho = grid(4)
    one, other = (settled(core, rho, schedule) for schedule in ("synchronous", "alternating"))
    assert one[3]
    assert other[3]
    np.testing.assert_allclose(other[0], one[0], atol=1e-8)
    np.testing.assert_allclose(other[5], one[5], atol=1e-7)
    assert other[1] == pytest.approx(one[1], abs=1e-8)
    assert len(other[4]) < 0.8 * len(one[4])
    again = settled(core, rho, "alternating", np.minimum(other[5], 0.0))
    assert len(again[4]) == 1


def test_graphs_that_do_not_fall_into_halves_maxima_and_unweighted_messages_are_synchronous():
    (wide, of_wide), (core, rho) = grid(8), grid(4)
    for graph, weights, maximise in ((wide, of_wide, False), (core, rho, True), (core, None, False)):
        found = [
            _core.inference.loopy_messages(graph, maximise, schedule, 20, 1e-10, 0.1, 0, weights, None)[5]
            for schedule in ("synchronous", "alternating")
        ]
        np.testing.assert_array_equal(*found)
