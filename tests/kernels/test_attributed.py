"""Kernels of node attributes beyond their definitions: agreement with counts, refusals, hashes."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data import Graphs
from mercer.kernels import (
    AttributedPaths,
    AttributedWalks,
    Delta,
    Gaussian,
    HashedAttributes,
    Linear,
    NegativeDistance,
    RandomWalk,
    ShortestPath,
    WeisfeilerLehman,
)

RNG = np.random.default_rng(0)
EDGES = [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 3)], [(0, 1)]]
SIZES = [3, 4, 3]
SAME = Graphs.from_edges(EDGES, SIZES, node_attributes=[np.zeros((n, 2)) for n in SIZES])
GRAPHS = Graphs.from_edges(EDGES, SIZES, node_attributes=[RNG.normal(size=(n, 2)) for n in SIZES])


def test_equal_attributes_give_the_kernels_of_counts():
    np.testing.assert_allclose(AttributedPaths()(SAME), ShortestPath()(SAME))
    np.testing.assert_allclose(AttributedWalks(decay=0.05)(SAME), RandomWalk(decay=0.05)(SAME), rtol=1e-8)
    walks = AttributedWalks(kind="marginalized", stop_probability=0.5)(SAME)
    np.testing.assert_allclose(walks, RandomWalk("marginalized", stop_probability=0.5)(SAME), rtol=1e-8)
    np.testing.assert_allclose(HashedAttributes(WeisfeilerLehman(2), 5)(SAME), WeisfeilerLehman(2)(SAME))


def test_hashes_meet_more_often_for_near_attributes():
    shifts = [Graphs.from_edges(EDGES[:1], node_attributes=[GRAPHS[0].node_attributes + s]) for s in (0, 0.05, 0.5, 9)]
    K = HashedAttributes(n_hashes=300).normalized()(shifts[0] + shifts[1] + shifts[2] + shifts[3])[0]
    assert K[0] == pytest.approx(1.0)
    assert K[0] > K[1] > K[2] > K[3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AttributedPaths()([EDGES[0]]), "node attributes"),
        (lambda: HashedAttributes()([EDGES[0]]), "node attributes"),
        (lambda: AttributedPaths(max_length=0)(GRAPHS), "max_length"),
        (lambda: AttributedPaths("near")(GRAPHS), "node_kernel"),
        (lambda: AttributedPaths(length_kernel="near")(GRAPHS), "length_kernel"),
        (lambda: AttributedWalks(edge_kernel=Gaussian())(GRAPHS), "edge weights"),
        (lambda: AttributedWalks(edge_kernel=Delta(), edge_values="labels")(GRAPHS), "edge labels"),
        (lambda: AttributedWalks(edge_values="colours")(GRAPHS), "edge_values"),
        (lambda: AttributedWalks(kind="long")(GRAPHS), "kind"),
        (lambda: AttributedWalks(stop_probability=2.0)(GRAPHS), "stop_probability"),
        (lambda: AttributedWalks(Linear() + 5.0, decay=0.9)(GRAPHS), "does not converge"),
        (lambda: HashedAttributes(ShortestPath())(GRAPHS), "base must be WeisfeilerLehman"),
        (lambda: HashedAttributes(WeisfeilerLehman(1, labels=False))(GRAPHS), "labels='auto'"),
        (lambda: HashedAttributes(width=0.0)(GRAPHS), "width"),
        (lambda: AttributedPaths()(GRAPHS, Graphs.from_edges([[(0, 1)]], node_attributes=[[[0.0], [1.0]]])), "2 node"),
        (lambda: Graphs.from_edges(EDGES, node_attributes=[[[0.0]]]), "a table for each of the 3 graphs"),
        (lambda: Graphs.from_edges(EDGES, SIZES, node_attributes=[[[0.0]]] * 3), "graph 0: node_attributes must have"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_many_edge_values_and_string_labels_are_refused():
    n = 90
    path = [[(i, i + 1) for i in range(n - 1)]]
    weights = Graphs.from_edges(path, node_attributes=[np.zeros((n, 1))], edge_weights=[np.arange(1.0, n)])
    with pytest.raises(ValueError, match="89 different values"):
        AttributedWalks(edge_kernel=Gaussian(), max_length=1)(weights)
    named = Graphs.from_edges([[(0, 1)]], node_attributes=[np.zeros((2, 1))], edge_labels=[["single"]])
    with pytest.raises(ValueError, match="labels of edges are strings"):
        AttributedWalks(edge_kernel=Gaussian(), edge_values="labels")(named)


def test_indefinite_parts_make_an_indefinite_kernel():
    assert AttributedPaths(NegativeDistance()).definiteness == "indefinite"
    assert AttributedWalks(Gaussian()).definiteness == AttributedPaths(length_kernel=Linear()).definiteness
