"""Kernels of graphs and nodes: known values, solvers that agree, large graphs, networkx, odd and wrong inputs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from kernels.cases.graphs import graphs, relabelled
from mercer import _core
from mercer.data import Graphs
from mercer.datasets import make_motif_graphs
from mercer.kernels import (
    Diffusion,
    Gaussian,
    Graphlet,
    Linear,
    NegativeDistance,
    RandomWalk,
    RegularizedLaplacian,
    ShortestPath,
    WeisfeilerLehman,
    neighbor_graph,
)
from mercer.maps import GraphletHasher
from reference.graph_kernels import all_paths_kernel, distances, geometric_kernel, simple_paths, walk_kernel

PATH5 = [(0, 1), (1, 2), (2, 3), (3, 4)]
SQUARE_WITH_TAIL = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]
GRAPH_KERNELS = [
    ShortestPath(), WeisfeilerLehman(2), WeisfeilerLehman(1, base="edge"), Graphlet((2, 3)), RandomWalk(decay=0.02),
    RandomWalk("marginalized"), RandomWalk(max_length=4, labels=False),
]  # fmt: skip


def motifs(n: int = 12, n_labels: int = 3) -> Graphs:
    return make_motif_graphs(n, n_nodes=(8, 14), n_motifs=2, n_labels=n_labels, random_state=1)[0]


# ------------------------------------------------------------------------------------------------ between nodes


def test_diffusion_on_a_path_has_the_values_of_the_specification():
    K = Diffusion(PATH5, beta=0.5).matrix()
    assert round(K[0, 0], 3) == 0.674
    assert round(K[0, 1], 3) == 0.258
    np.testing.assert_allclose(K.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
def test_diffusion_is_the_limit_of_many_small_steps(normalized):
    A = np.zeros((5, 5))
    for u, v in SQUARE_WITH_TAIL:
        A[u, v] = A[v, u] = 1.0
    root = np.diag(A.sum(axis=1) ** (-0.5 if normalized else 0.0))
    L = root @ (np.diag(A.sum(axis=1)) - A) @ root
    K = Diffusion(SQUARE_WITH_TAIL, 0.8, normalized_laplacian=normalized).matrix()
    np.testing.assert_allclose(K, expm(-0.8 * L), rtol=1e-10)
    n = 1 << 20
    np.testing.assert_allclose(K, np.linalg.matrix_power(np.eye(5) - 0.8 * L / n, n), rtol=1e-4)


@pytest.mark.parametrize("kind", [Diffusion, RegularizedLaplacian])
@pytest.mark.parametrize("normalized", [False, True])
def test_columns_of_large_graphs_equal_those_of_the_decomposition(kind, normalized, monkeypatch):
    random = np.random.default_rng(0)
    A = np.triu(random.random((90, 90)) < 0.05, 1) * random.random((90, 90))
    kernel = kind(A + A.T, 1.5, normalized_laplacian=normalized)
    X, Z = random.integers(90, size=7), random.integers(90, size=75)
    expected, diagonal, square = kernel(X, Z), kernel.diag(Z), kernel(X)
    monkeypatch.setitem(Diffusion.matrix.__globals__, "DENSE_NODES", 10)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(kernel(Z, X), expected.T, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(kernel.diag(Z), diagonal, rtol=1e-8)
    np.testing.assert_allclose(kernel(X), square, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(kernel(X), kernel(X).T)
    assert not kernel.has_features


def test_nodes_have_names():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c", weight=1.0)
    A = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    K = Diffusion(np.array(A, float)).matrix()
    k = Diffusion(graph)
    np.testing.assert_array_equal(k(["c", "a"], ["b"]), K[[2, 0]][:, [1]])
    np.testing.assert_array_equal(k([2, 0], [1]), K[[2, 0]][:, [1]])
    with pytest.raises(ValueError, match="no node 'd'"):
        k(["d"])
    numbered = Diffusion(networkx.Graph([(10, 20)]))
    assert numbered.pair(10, 20) == pytest.approx(Diffusion([(0, 1)]).pair(0, 1))
    with pytest.raises(ValueError, match="no node 0"):
        numbered(np.array([0, 10]))


def test_beta_of_a_kernel_can_be_set_after_use():
    k = Diffusion(PATH5, beta=0.5)
    before = k.matrix()
    np.testing.assert_allclose(k.set_params(beta=1.0).matrix(), before @ before, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diffusion(PATH5, beta=0.0)([0]), "beta must be a positive"),
        (lambda: Diffusion(PATH5)([5]), "nodes from 0 to 4, got 5"),
        (lambda: Diffusion(PATH5)(np.array([-1])), "nodes from 0 to 4, got -1"),
        (lambda: Diffusion(PATH5)([0.5]), "nodes must be numbers"),
        (lambda: Diffusion(-np.ones((2, 2)) + np.eye(2))([0]), "edge weights of at least 0"),
        (lambda: Diffusion(Graphs.from_edges([PATH5, PATH5]))([0]), "one graph, got Graphs with 2"),
        (lambda: Diffusion(3)([0]), "graph must be a Graph"),
        (lambda: Diffusion(np.ones((2, 3)))([0]), "square"),
    ],
)
def test_wrong_node_kernels_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def edit_distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(
        edit_distance(a[1:], b[1:]) + (a[0] != b[0]), edit_distance(a[1:], b) + 1, edit_distance(a, b[1:]) + 1
    )  # fmt: skip


@pytest.mark.parametrize("threshold", [0, 1, 2, 3.5, 100])
def test_neighbours_of_words_are_a_few_edits_apart(threshold):
    random = np.random.default_rng(0)
    words = ["", "é", *("".join(random.choice(list("abcé"), size=random.integers(1, 7))) for _ in range(25))]
    expected = [
        [i, j] for i in range(len(words)) for j in range(i + 1, len(words))
        if edit_distance(words[i], words[j]) <= threshold
    ]  # fmt: skip
    graph = neighbor_graph(words, threshold=threshold, n_jobs=2)
    assert graph.edges.tolist() == expected
    assert neighbor_graph(words, edit_distance, threshold).edges.tolist() == expected
    assert graph.node_labels.tolist() == words


def test_neighbour_graphs_of_anything():
    graph = neighbor_graph([1.0, 1.5, 4.0], lambda a, b: abs(a - b), 1.0)
    assert graph.edges.tolist() == [[0, 1]]
    assert neighbor_graph([], threshold=2).n_nodes == 0
    for arguments, message in (
        (([1, 2],), "items must be strings"),
        ((["a"], "hamming"), "distance must be one of"),
        ((["a"], 3), "distance must be 'edit' or a function"),
        ((["a"], "edit", -1), "threshold"),
        (([1, 2], lambda a, b: float("nan")), "distance must give numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            neighbor_graph(*arguments)


# ------------------------------------------------------------------------------------------------ between graphs


def test_shortest_paths_of_four_nodes_by_hand():
    """A path of 4 nodes has 6, 4, 2 ordered pairs at distances 1, 2, 3; a star 6 at 1 and 6 at 2."""
    K = ShortestPath()([[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]])
    np.testing.assert_array_equal(K, [[36 + 16 + 4, 36 + 24], [60, 36 + 36]])


def test_walks_of_all_lengths_are_the_limit_of_the_truncated_series():
    X = graphs(np.random.default_rng(3), 6)
    limit = RandomWalk(decay=0.04, edge_labels=True)(X)
    short = RandomWalk(decay=0.04, edge_labels=True, max_length=2)(X)
    assert short[2, 3] == pytest.approx(walk_kernel(X[2], X[3], 0.04, 2, labels=True, edge_labels=True))
    for length, error in ((2, 0.5), (40, 1e-10)):
        K = RandomWalk(decay=0.04, edge_labels=True, max_length=length)(X)
        assert np.all(limit * (1 + 1e-12) >= K)
        np.testing.assert_allclose(K, limit, rtol=error)


def test_walks_count_more_than_paths_and_paths_more_than_shortest_ones():
    """On graphs of up to 5 nodes: a path is a walk of at most 4 edges."""
    X = graphs(np.random.default_rng(5), 8)
    walks = RandomWalk(decay=1.0, max_length=4)(X)
    for i, x in enumerate(X):
        for j, z in enumerate(X):
            assert all_paths_kernel(x, z, labels=True) <= walks[i, j]
        d = distances(x, False)
        assert len(list(simple_paths(x))) >= np.isfinite(d).sum()


@pytest.mark.parametrize("kind", ["geometric", "marginalized"])
@pytest.mark.parametrize("labels", [True, False])
def test_all_solvers_agree(kind, labels):
    X = motifs()
    settings = {"kind": kind, "decay": 0.03, "labels": labels}
    solvers = ["direct", "cg", "fixed_point"] + ([] if labels else ["spectral"])
    expected, *others = [RandomWalk(solver=solver, **settings)(X) for solver in solvers]
    for K in others:
        np.testing.assert_allclose(K, expected, rtol=2e-10)


def test_solvers_agree_close_to_the_largest_decay():
    X = motifs(4, n_labels=0)
    largest = max(np.linalg.eigvalsh(graph.adjacency().toarray())[-1] for graph in X)
    decay = 0.999 / largest**2
    expected = RandomWalk(decay=decay, solver="direct")(X)
    for solver in ("spectral", "cg", "fixed_point"):
        np.testing.assert_allclose(RandomWalk(decay=decay, solver=solver)(X), expected, rtol=1e-9)


def test_random_walks_agree_with_simulated_ones():
    """Within 3 standard errors: the share of pairs of simulated walks that look the same."""
    X = motifs(2)
    exact = RandomWalk("marginalized", stop_probability=0.4)(X)
    random = np.random.default_rng(0)

    def walk(graph):
        v = random.integers(graph.n_nodes)
        seen = [graph.node_labels[v]]
        while len(graph.neighbours(v)) and random.random() >= 0.4:
            v = random.choice(graph.neighbours(v))
            seen.append(graph.node_labels[v])
        return tuple(seen)

    n = 20_000
    left, right = ([walk(graph) for _ in range(n)] for graph in X)
    share = np.mean([a == b for a, b in zip(left, right, strict=True)])
    assert abs(share - exact[0, 1]) < 3 * np.sqrt(exact[0, 1] * (1 - exact[0, 1]) / n)


def test_random_walks_have_probabilities_that_sum_to_one():
    """Without labels, and with a stop probability of 1, all walks are alike."""
    X = motifs(5, n_labels=0)
    np.testing.assert_allclose(RandomWalk("marginalized", stop_probability=1.0)(X), 1.0, rtol=1e-12)


def test_scaled_walks_are_walks_on_adjacencies_divided_by_their_largest_eigenvalue():
    X = motifs(5)
    K = RandomWalk(decay=0.8, scaled=True)(X)
    parts = []
    for graph in X:
        A = graph.adjacency().toarray()
        parts.append(A / np.linalg.eigvalsh(A)[-1])
    weighted = Graphs.from_scipy(parts, weighted=True, node_labels=[graph.node_labels for graph in X])
    np.testing.assert_allclose(K, RandomWalk(decay=0.8, weighted=True)(weighted), rtol=1e-9)


def test_decay_that_is_too_large_names_the_largest_possible():
    triangle = Graphs.from_edges([[(0, 1), (1, 2), (2, 0)]])
    for labels in (False, "auto"):
        with pytest.raises(ValueError, match=r"decay must be below 0\.25 for these graphs .* got 0\.25"):
            RandomWalk(decay=0.25, labels=labels)(triangle)
    assert RandomWalk(decay=0.2499)(triangle)[0, 0] == pytest.approx(9 / (1 - 4 * 0.2499))
    # What counts is both collections together.
    edge = [[(0, 1)]]
    for pair in ((edge, triangle), (triangle, edge)):
        assert RandomWalk(decay=0.4)(*pair)[0, 0] == pytest.approx(6 / (1 - 0.4 * 2))
    with pytest.raises(ValueError, match=r"decay must be below 0\.5"):
        RandomWalk(decay=0.5)(edge, triangle)


def test_graphlet_kernel_has_the_counts_of_the_hasher():
    X = motifs()
    for labels in (False, True):
        counts = GraphletHasher((3, 4), labels=labels, n_bits=22).transform(X)
        K = Graphlet((3, 4), labels=labels, normalize=False)(X)
        np.testing.assert_array_equal(K, (counts @ counts.T).toarray())
    shares = Graphlet(4).features(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_sampled_graphlets_converge_and_depend_on_the_seed():
    X = motifs(6)
    exact = Graphlet(4)(X)
    rough, fine = (Graphlet(4, n_samples=n)(X) for n in (20, 400))
    assert np.abs(fine - exact).max() < np.abs(rough - exact).max()
    np.testing.assert_array_equal(Graphlet(4, n_samples=20)(X[2:4]), rough[2:4, 2:4])
    assert (Graphlet(4, n_samples=20, random_state=1)(X) != rough).any()


def test_refined_labels_tell_graphs_apart_only_as_far_as_refinement_does():
    """Two triangles and a hexagon look alike to refinement; a path and a star do not."""
    hexagon = [(i, (i + 1) % 6) for i in range(6)]
    triangles = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    K = WeisfeilerLehman(5)([hexagon, triangles])
    assert len(np.unique(K)) == 1
    assert (WeisfeilerLehman(1, base="shortest_path")([hexagon, triangles])[0] != K[0]).any()
    normalized = WeisfeilerLehman(2).normalized()([[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]])
    assert normalized[0, 1] < 1


@pytest.mark.parametrize("kernel", GRAPH_KERNELS, ids=str)
def test_networkx_graphs_are_read_with_their_labels(kernel):
    pytest.importorskip("networkx")
    X = motifs(6)
    np.testing.assert_array_equal(kernel(X.to_networkx()), kernel(X))
    np.testing.assert_array_equal(kernel(list(X)), kernel(X))


def test_networkx_graphs_are_read_with_edge_labels_and_weights():
    pytest.importorskip("networkx")
    X = graphs(np.random.default_rng(0), 8)
    for kernel in (ShortestPath(weighted=True), WeisfeilerLehman(2, edge_labels=True), RandomWalk(edge_labels=True)):
        np.testing.assert_array_equal(kernel(X.to_networkx()), kernel(X))


@pytest.mark.parametrize("kernel", GRAPH_KERNELS, ids=str)
def test_order_of_the_nodes_does_not_matter_on_larger_graphs(kernel):
    random = np.random.default_rng(0)
    X = graphs(random, 4)
    Z = Graphs.from_edges([np.argwhere(np.triu(random.random((n, n)) < 0.2, 1)) for n in (30, 17)], [30, 17],
                          node_labels=[random.integers(3, size=30), random.integers(3, size=17)])  # fmt: skip
    full = Graphs.from_edges(
        [g.edges for g in Z], [30, 17], node_labels=[g.node_labels for g in Z],
        edge_labels=[np.zeros(g.n_edges, int) for g in Z], edge_weights=[np.ones(g.n_edges) for g in Z],
    )  # fmt: skip
    changed = [relabelled(random, g) for g in full]
    kernel = kernel if not isinstance(kernel, RandomWalk) else type(kernel)(**kernel.get_params() | {"decay": 0.005})
    np.testing.assert_allclose(kernel(changed, X), kernel(full, X), rtol=1e-9)


@pytest.mark.parametrize("kernel", GRAPH_KERNELS, ids=str)
def test_empty_graphs_and_empty_collections(kernel):
    X = Graphs.from_edges([[], [], [(0, 1), (1, 2)]], [0, 3, 3])
    K = kernel(X)
    assert (K[0] == 0).all()  # no nodes: nothing in common with any graph
    assert np.isfinite(K).all()
    if isinstance(kernel, RandomWalk) and kernel.kind == "geometric":
        assert K[1, 1] == 9  # walks of no edges
    assert kernel(X[:0]).shape == (0, 0)
    assert kernel([], X).shape == (0, 3)


@pytest.mark.parametrize("kernel", GRAPH_KERNELS[:-1], ids=str)
def test_graphs_with_and_without_labels_are_not_mixed(kernel):
    kernel = kernel if not isinstance(kernel, Graphlet) else Graphlet((2, 3), labels="auto")
    labelled = Graphs.from_edges([[(0, 1)]], node_labels=[[0, 1]])
    named = Graphs.from_edges([[(0, 1)]], node_labels=[["C", "O"]])
    plain = Graphs.from_edges([[(0, 1)]])
    for other, message in ((plain, "graphs without node labels"), (named, "with string node labels")):
        with pytest.raises(ValueError, match=message):
            kernel(labelled, other)
        with pytest.raises(ValueError, match=r"some of the parts have node_labels|different kinds of node_labels"):
            kernel([labelled[0], other[0]])
    with pytest.raises(ValueError, match="labels=True needs graphs with node labels"):
        type(kernel)(labels=True)(plain)
    assert type(kernel)(labels=False)(labelled, plain).shape == (1, 1)
    networkx = pytest.importorskip("networkx")
    mixed = networkx.Graph([(0, 1)])
    mixed.nodes[0]["label"] = 1
    with pytest.raises(ValueError, match="some nodes have the attribute 'label'"):
        kernel([mixed])


@pytest.mark.parametrize("kernel", [WeisfeilerLehman(1, edge_labels=True), RandomWalk(edge_labels=True)], ids=str)
def test_edge_labels_of_different_kinds_are_not_mixed(kernel):
    numbers = Graphs.from_edges([[(0, 1)]], edge_labels=[[1]])
    names = Graphs.from_edges([[(0, 1)]], edge_labels=[["double"]])
    with pytest.raises(ValueError, match="with integer edge labels cannot be compared with graphs with string edge"):
        kernel(numbers, names)
    assert kernel(numbers, Graphs.from_edges([[]], [2])).shape == (1, 1)  # no edges: nothing to compare


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: WeisfeilerLehman(-1)(X), "h must be an integer"),
        (lambda X: WeisfeilerLehman(2, base="trees")(X), "base must be one of"),
        (lambda X: WeisfeilerLehman(2, labels="yes")(X), "labels must be one of"),
        (lambda X: WeisfeilerLehman(2, edge_labels=True)(X), "edge_labels=True needs"),
        (lambda X: ShortestPath(length_kernel="gaussian")(X), "length_kernel must be one of"),
        (lambda X: ShortestPath(length_kernel=3)(X), "length_kernel must be a Kernel"),
        (lambda X: ShortestPath(weighted=True)(X), "weighted=True needs graphs with edge weights"),
        (lambda X: ShortestPath(weighted=True)([np.eye(2)[::-1] * -1.0]), "edge weights of at least 0"),
        (lambda X: Graphlet(12)(X), "sizes must be"),
        (lambda X: Graphlet((3, 3))(X), "sizes must be"),
        (lambda X: Graphlet(3, n_samples=0)(X), "n_samples"),
        (lambda X: Graphlet(3, random_state=None)(X), "random_state"),
        (lambda X: RandomWalk("lazy")(X), "kind must be one of"),
        (lambda X: RandomWalk(decay=0.0)(X), "decay must be a positive"),
        (lambda X: RandomWalk(decay=1.0, scaled=True)(X), "decay must be below 1"),
        (lambda X: RandomWalk("marginalized", stop_probability=1.5)(X), "stop_probability must be at most 1"),
        (lambda X: RandomWalk(max_length=-1)(X), "max_length"),
        (lambda X: RandomWalk(solver="lu")(X), "solver must be one of"),
        (lambda X: RandomWalk(solver="spectral", labels=True)(X), "solver='spectral' is for walks without labels"),
        (lambda X: RandomWalk(solver="spectral")(motifs(2)), "solver='spectral' is for walks without labels"),
        (lambda X: RandomWalk(tol=0)(X), "tol must be a positive"),
        (lambda X: RandomWalk(decay=1e-9, solver="direct")([np.ones((80, 80)) - np.eye(80)]), "solver='direct'"),
        (lambda X: ShortestPath()([3, 4]), "expected Graphs, or a list"),
        (lambda X: ShortestPath()(X[0].adjacency()), "expected a list of graphs, got one"),
        (lambda X: ShortestPath()([[(0, 0)]]), "self-loop"),
    ],
)
def test_wrong_parameters_and_objects_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]]))


def test_lengths_of_weighted_paths_do_not_depend_on_the_order_of_summation():
    weights = [0.1, 0.2, 0.3, 0.7, 1e-3]
    there = Graphs.from_edges([[(i, i + 1) for i in range(5)]], edge_weights=[weights])
    back = Graphs.from_edges([[(i, i + 1) for i in range(5)]], edge_weights=[weights[::-1]])
    K = ShortestPath(weighted=True)(there + back)
    assert len(np.unique(K)) == 1


def test_many_labels_and_weights_of_one_give_the_same_paths():
    """Tables of counts are for few labels; a dictionary takes over for many."""
    random = np.random.default_rng(0)
    edges = np.argwhere(np.triu(random.random((70, 70)) < 0.03, 1))
    for labels in (np.arange(70), random.integers(3, size=70)):
        X = Graphs.from_edges([edges], [70], node_labels=[labels], edge_weights=[np.ones(len(edges))])
        F, G = (ShortestPath(weighted=weighted)._prepare(X).rows for weighted in (False, True))
        np.testing.assert_array_equal(F.keys, G.keys)
        np.testing.assert_array_equal(F.values, G.values)
        assert F.values.sum() == np.isfinite(distances(X[0], False)).sum() - 70


def test_kernel_of_lengths_that_is_not_positive_definite_says_so():
    assert ShortestPath(length_kernel=Linear()).definiteness == "pd"
    assert not ShortestPath(length_kernel=Linear()).has_features


def test_large_sparse_graphs_are_not_decomposed(monkeypatch):
    X = motifs(4, n_labels=0)
    expected = RandomWalk(decay=0.02)(X)
    monkeypatch.setitem(RandomWalk._solver.__globals__, "DENSE_NODES", 5)
    np.testing.assert_allclose(RandomWalk(decay=0.02)(X), expected, rtol=1e-9)
    assert RandomWalk(decay=0.02)._solver(RandomWalk()._prepare(X)) == "cg"


def test_compiled_loops_check_their_arrays():
    offsets, indptr, indices = np.array([0, 2]), np.array([0, 1, 2]), np.array([1, 0], np.int32)
    good = (offsets, indptr, indices)
    for arrays, message in (
        ((np.array([0, 3]), indptr, indices), "offsets must end"),
        ((offsets, np.array([0, 2, 1]), indices), "indptr"),
        ((offsets, indptr, np.array([1, 2], np.int32)), "neighbour is out of range"),
        ((offsets, indptr, np.array([1, -1], np.int32)), "neighbour is out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.kernels.shortest_path_rows(*arrays, None, None, 1)
    with pytest.raises(ValueError, match="one value a node"):
        _core.kernels.weisfeiler_lehman_rows(*good, np.zeros(3, np.uint64), None, 1, "subtree", 1)
    with pytest.raises(ValueError, match="at least 0"):
        _core.kernels.shortest_path_rows(*good, None, np.array([1.0, np.nan]), 1)
    with pytest.raises(ValueError, match="diverges"):
        _core.kernels.spectral_gram(*[np.array([0, 1]), np.ones(1), np.ones(1)] * 2, False, np.zeros((1, 1)), 1)
    ones, zeros = np.ones(2), np.zeros(2, np.uint64)
    codes = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="edge code"):
        _core.kernels.WalkGraphs(*good, ones, codes + 1, zeros, ones, ones, np.zeros(1), 1)
    with pytest.raises(ValueError, match="keys must ascend"):
        _core.kernels.WalkGraphs(*good, ones, codes, np.array([1, 0], np.uint64), ones, ones, np.zeros(1), 1)
    walks = _core.kernels.WalkGraphs(*good, ones, codes, zeros, ones, ones, np.ones(1), 1)
    with pytest.raises(ValueError, match="diverges"):
        _core.kernels.walk_gram(walks, None, "cg", -1, 1e-9, np.zeros((1, 1)), 1)
    with pytest.raises(ValueError, match="out must have"):
        _core.kernels.walk_gram(walks, None, "cg", -1, 1e-9, np.zeros((2, 1)), 1)
    with pytest.raises(ValueError, match="limit"):
        _core.kernels.edit_pairs(np.array([0, 1]), np.zeros(1, np.int32), -1, 1)


@pytest.mark.skipif(not os.environ.get("MERCER_DATA"), reason="needs the public sets: set MERCER_DATA")
def test_labelled_walks_of_molecules_equal_the_definition():
    from mercer.datasets import load_tu

    X = load_tu("MUTAG")[0][:4]
    K = RandomWalk(decay=0.05)(X)
    assert K[1, 3] == pytest.approx(geometric_kernel(X[1], X[3], 0.05, labels=True), rel=1e-9)


def test_a_conditional_kernel_of_lengths_makes_no_conditional_kernel_of_graphs() -> None:
    """Counts of lengths of graphs do not sum to 0, so that negative distances of lengths are not enough."""
    k = ShortestPath(length_kernel=NegativeDistance())
    assert k.definiteness == "indefinite"
    K = k([[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3)], [(0, 1), (2, 3)]])
    H = np.eye(len(K)) - 1.0 / len(K)
    assert np.linalg.eigvalsh(H @ K @ H)[0] < -1e-6
    assert ShortestPath(length_kernel=Gaussian()).definiteness == "pd"


@pytest.mark.parametrize("make", [lambda g: ShortestPath()([g]), lambda g: Diffusion(g).matrix()])
def test_a_graph_that_must_be_simplified_says_by_what(make: Any) -> None:
    with pytest.raises(ValueError, match=r"mercer\.data\.Graphs with simplify=True"):
        make([(0, 0), (0, 1)])


@pytest.mark.parametrize("graph", ["abc", np.ones((2, 3)), 7])
def test_the_repr_of_a_kernel_without_a_proper_graph_is_no_error(graph: Any) -> None:
    assert "Diffusion(" in repr(Diffusion(graph))
    with pytest.raises(ValueError, match="graph"):
        Diffusion(graph).matrix()


@pytest.mark.parametrize("steps", [1, 400, 2000])
@pytest.mark.parametrize("labels", [True, False])
def test_walks_of_large_graphs_are_solved_a_few_pairs_a_call(steps: int, labels: bool, monkeypatch: Any) -> None:
    """A compiled call cannot be interrupted: what is one call for small graphs must be several for large ones."""
    kernel = RandomWalk("marginalized", labels=labels, solver="cg")
    X = graphs(np.random.default_rng(3), 6)
    whole, cross = kernel(X), kernel(X[:2], X)
    calls = []
    plain = _core.kernels.walk_gram
    monkeypatch.setattr(_core.kernels, "walk_gram", lambda *args: (calls.append(1), plain(*args))[1])
    monkeypatch.setattr("mercer.kernels.walks.STEPS_A_CALL", steps)
    K = kernel(X)
    np.testing.assert_allclose(K, whole, rtol=1e-9)
    np.testing.assert_array_equal(K, K.T)
    assert len(calls) >= (15 if steps == 1 else 1)  # of the 21 pairs some have an empty graph
    np.testing.assert_allclose(kernel(X[:2], X), cross, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        ShortestPath(),
        ShortestPath(weighted=True),
        ShortestPath(length_kernel=Gaussian()),
        WeisfeilerLehman(2, base="shortest_path"),
    ],
)
def test_paths_of_large_graphs_are_counted_a_few_graphs_a_call(kernel: Any, monkeypatch: Any) -> None:
    X = graphs(np.random.default_rng(3), 9)
    whole, calls = kernel(X), []
    for name in ("shortest_path_rows", "weisfeiler_lehman_rows"):
        plain = getattr(_core.kernels, name)
        monkeypatch.setattr(_core.kernels, name, lambda *args, plain=plain: (calls.append(1), plain(*args))[1])
    monkeypatch.setattr("mercer.kernels.graphs.STEPS_A_CALL", 20)
    np.testing.assert_array_equal(kernel(X), whole)
    assert len(calls) > 3
    assert kernel(X[:0]).shape == (0, 0)
