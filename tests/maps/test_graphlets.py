"""Graphlet counts equal closed forms and brute force; samples converge to them; motifs tell graphs apart."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

import mercer
from mercer.data import Graphs
from mercer.datasets import make_motif_graphs
from mercer.maps import GraphletHasher, canonical_form, graphlet_name
from mercer.maps.graphlets import label_keys
from reference.graphlets import graph_type, graphlet_counts

nx = pytest.importorskip("networkx")


def counts_by_name(graphs, *, labels=False, **parameters) -> list[dict[str, float]]:
    """Counts of each graph by the name of the graphlet; the columns are so many that no two names share one."""
    graphs = graphs if isinstance(graphs, list) else [graphs]
    hasher = GraphletHasher(n_bits=30, inverse_size=10_000, labels=labels, **parameters).fit(graphs)
    X = hasher.transform(graphs)
    assert hasher.collision_report().rate == 0
    found = []
    for row in X:
        found.append({hasher.inverse(j)[0]: v for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)})
    return found


def random_graphs(count: int, n: int = 11, seed: int = 0) -> list[nx.Graph]:
    return [nx.gnp_random_graph(n, 0.15 + 0.7 * i / count, seed=seed + i) for i in range(count)]


def labelled(graph: nx.Graph, n_labels: int, seed: int) -> nx.Graph:
    labels = np.random.default_rng(seed).integers(n_labels, size=len(graph)).tolist()
    nx.set_node_attributes(graph, dict(zip(graph.nodes, labels, strict=True)), "label")
    return graph


# ---------------------------------------------------------------------------------------------- exact counts

CLOSED_FORMS = [
    (nx.complete_graph(9), {k: {name: comb(9, k)} for k, name in ((3, "triangle"), (4, "clique-4"), (5, "clique-5"))}),
    (nx.cycle_graph(9), {3: {"path-3": 9}, 4: {"path-4": 9}, 5: {"path-5": 9}}),
    (nx.path_graph(9), {2: {"edge": 8}, 3: {"path-3": 7}, 4: {"path-4": 6}, 5: {"path-5": 5}}),
    (nx.star_graph(7), {3: {"path-3": comb(7, 2)}, 4: {"star-4": comb(7, 3)}, 5: {"star-5": comb(7, 4)}}),
    (nx.cycle_graph(4), {4: {"cycle-4": 1}}),
    (nx.cycle_graph(5), {5: {"cycle-5": 1}}),
    (nx.complete_bipartite_graph(3, 4), {4: {"star-4": 3 * comb(4, 3) + 4, "cycle-4": comb(3, 2) * comb(4, 2)}}),
    # Petersen: 3-regular, girth 5, 12 five-cycles; a path of 4 nodes is a middle edge and an end on either side.
    (
        nx.petersen_graph(),
        {3: {"path-3": 30}, 4: {"path-4": 60, "star-4": 10}, 5: {"path-5": 60, "fork": 60, "cycle-5": 12}},
    ),
]


@pytest.mark.parametrize(("graph", "expected"), CLOSED_FORMS)
def test_counts_equal_closed_forms(graph, expected):
    for k, counts in expected.items():
        assert counts_by_name(graph, sizes=k) == [counts]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_counts_over_all_types_sum_to_the_number_of_subsets(k):
    graphs = [
        *random_graphs(8),
        nx.petersen_graph(),
        nx.empty_graph(12),
        nx.complete_graph(10),
        nx.random_labeled_tree(30, seed=1),
    ]
    X = GraphletHasher(k, connected=False).transform(graphs)
    assert X.sum(axis=1).ravel().tolist() == [[comb(len(g), k) for g in graphs]]


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_counts_equal_brute_force(k, connected):
    for graph in [
        *(random_graphs(5, 9) if k < 6 else random_graphs(2, 8)),
        nx.disjoint_union(nx.cycle_graph(5), nx.star_graph(3)),
    ]:
        expected = graphlet_counts(graph, k, connected)
        (found,) = counts_by_name(graph, sizes=k, connected=connected)
        assert found == {names_by_type(k)[t]: count for t, count in expected.items()}


@cache
def names_by_type(k: int) -> dict[str, str]:
    return {graph_type(graph): name_of(graph) for graph in nx.graph_atlas_g() if len(graph) == k}


def name_of(graph: nx.Graph) -> str:
    return graphlet_name(canonical_form(nx.to_numpy_array(graph)))


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_labelled_counts_equal_brute_force(k, connected):
    for seed in range(3):
        graph = labelled(nx.gnp_random_graph(9, 0.4, seed=seed), 3, seed)
        expected = graphlet_counts(graph, k, connected, "label")
        (found,) = counts_by_name(graph, sizes=k, connected=connected, labels=True)
        assert len(found) == len(expected)
        assert sorted(found.values()) == sorted(expected.values())


@pytest.mark.parametrize("k", [7, 8])
def test_larger_connected_graphlets_equal_brute_force(k):
    graph = nx.gnp_random_graph(10, 0.3, seed=4)
    hasher = GraphletHasher(k, n_bits=30)
    expected = {}
    for nodes in combinations(graph, k):
        induced = graph.subgraph(nodes)
        if nx.is_connected(induced):
            form = canonical_form(nx.to_numpy_array(induced))
            expected[form] = expected.get(form, 0) + 1
    assert sorted(hasher.transform([graph]).data) == sorted(expected.values())


@settings(deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["exact", "exact-all", "labels"]))
def test_counts_do_not_depend_on_the_numbers_of_nodes(seed, kind):
    graph = labelled(nx.gnp_random_graph(10, 0.35, seed=seed), 2, seed)
    order = np.random.default_rng(seed).permutation(10).tolist()
    turned = nx.Graph()
    turned.add_nodes_from((v, graph.nodes[v]) for v in order)
    turned.add_edges_from(graph.edges)
    hasher = GraphletHasher((3, 4, 5, 6), labels=kind == "labels", connected=kind != "exact-all")
    a, b = hasher.transform([graph]), hasher.transform([turned])
    assert (a != b).nnz == 0


def test_several_sizes_are_the_sum_of_each():
    graphs = random_graphs(6)
    together = GraphletHasher((5, 3, 4, 6), n_bits=20).transform(graphs)
    alone = sum(GraphletHasher(k, n_bits=20).transform(graphs) for k in (3, 4, 5, 6))
    assert (together != alone).nnz == 0


def test_large_sparse_graphs_have_exact_disconnected_counts():
    # 2,000 nodes have 2.7e14 subsets of five: only the derivation from connected counts can do this.
    graph = nx.empty_graph(2000)
    graph.add_edges_from([(0, 1), (2, 3)])
    (found,) = counts_by_name(graph, sizes=5, connected=False)
    one_edge, both_edges = 2 * (comb(1998, 3) - 1996), 1996
    assert sorted(found.values()) == [both_edges, one_edge, comb(2000, 5) - one_edge - both_edges]
    assert found["5: no edges"] == comb(2000, 5) - one_edge - both_edges


# ---------------------------------------------------------------------------------------------- samples


DENSE, SPARSE = nx.gnp_random_graph(40, 0.35, seed=5), nx.gnp_random_graph(22, 0.3, seed=5)
CONVERGENCE = [
    (DENSE, 3, 2000, 0.04), (DENSE, 4, 20_000, 0.04), (DENSE, 5, 20_000, 0.04), (SPARSE, 6, 15_000, 0.07),
    (SPARSE, 7, 30_000, 0.1),
]  # fmt: skip


@pytest.mark.parametrize("method", ["sample", "mcmc"])
@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize(("graph", "k", "n_samples", "close"), CONVERGENCE)
def test_sampled_frequencies_converge_to_exact_ones(graph, k, n_samples, close, method, connected):
    counts = GraphletHasher(k, connected=connected, n_bits=20).transform([graph])
    assert counts.sum() > n_samples  # else the sampler would count
    exact = counts / counts.sum()
    errors = []
    for n in (n_samples // 50, n_samples):
        hasher = GraphletHasher(k, method, n, n_bits=20, connected=connected, normalize=True, thin=5)
        sampled = hasher.transform([graph])
        np.testing.assert_allclose(sampled.sum(), 1)
        errors.append(0.5 * abs(sampled - exact).sum())
    assert errors[1] < close
    assert errors[1] < errors[0]


@pytest.mark.parametrize("method", ["sample", "mcmc"])
@pytest.mark.parametrize(("k", "connected"), [(3, True), (4, True), (4, False)])
def test_labelled_samples_converge_to_exact_frequencies(k, connected, method):
    graph = labelled(DENSE.copy(), 2, 0)
    shared = {"labels": True, "connected": connected, "n_bits": 20}
    counts = GraphletHasher(k, **shared).transform([graph])
    n_samples = 2000 if k == 3 else 20_000
    assert counts.sum() > n_samples
    sampled = GraphletHasher(k, method, n_samples, normalize=True, thin=5, **shared).transform([graph])
    assert 0.5 * abs(sampled - counts / counts.sum()).sum() < 0.07


def test_sampled_counts_are_unbiased():
    graph = nx.gnp_random_graph(20, 0.25, seed=0)
    (exact,) = counts_by_name(graph, sizes=4)
    runs = [counts_by_name(graph, sizes=4, method="sample", n_samples=200, seed=seed)[0] for seed in range(200)]
    for name, count in exact.items():
        estimates = np.array([run.get(name, 0.0) for run in runs])
        assert abs(estimates.mean() - count) < 4 * estimates.std() / np.sqrt(len(runs)) + 1e-9


def test_small_graphs_are_counted_instead_of_sampled():
    graphs = [nx.cycle_graph(8), nx.petersen_graph(), nx.path_graph(30)]
    for connected in (True, False):
        exact = GraphletHasher((3, 4), connected=connected).transform(graphs[:2])
        sampled = GraphletHasher((3, 4), "sample", connected=connected, n_samples=300).transform(graphs[:2])
        assert (exact != sampled).nnz == 0


def test_samples_of_connected_subsets_reach_every_component():
    graph = nx.disjoint_union_all([nx.complete_graph(8), nx.cycle_graph(30), nx.path_graph(2), nx.star_graph(12)])
    (exact,) = counts_by_name(graph, sizes=3, normalize=True)
    for method in ("sample", "mcmc"):
        (found,) = counts_by_name(
            graph, sizes=3, method=method, n_samples=130 if method == "sample" else 100_000, normalize=True
        )
        for name, share in exact.items():
            assert abs(found[name] - share) < (0.12 if method == "sample" else 0.02)


def test_edge_weighting_shifts_the_samples():
    graph = nx.gnp_random_graph(14, 0.3, seed=3)
    (exact,) = counts_by_name(graph, sizes=3, connected=False)
    number = {"3: no edges": 0, "3: 0-1": 1, "path-3": 2, "triangle": 3}
    beta = [1.0, 0.5, 2.0, 20.0]
    weighted = {name: count * beta[number[name]] for name, count in exact.items()}
    total = sum(weighted.values())
    for given_as in (beta, lambda e: beta[e], np.array([*beta, 99.0])):
        (found,) = counts_by_name(
            graph, sizes=3, connected=False, method="mcmc", edge_weighting=given_as, n_samples=50_000, normalize=True
        )
        for name, weight in weighted.items():
            assert abs(found[name] - weight / total) < 0.02


def test_edge_weighting_without_a_chance_gives_an_empty_row():
    hasher = GraphletHasher(3, "mcmc", n_samples=50, edge_weighting=[0, 0, 0, 1])
    assert hasher.transform([nx.path_graph(9)]).nnz == 0
    assert hasher.transform([nx.complete_graph(9)]).sum() == 50


@pytest.mark.parametrize("method", ["exact", "sample", "mcmc"])
@pytest.mark.parametrize("labels", [False, True])
def test_results_depend_neither_on_threads_nor_on_the_other_graphs(method, labels):
    graphs = Graphs.from_networkx([labelled(g, 3, i) for i, g in enumerate(random_graphs(20, 12))], node_label="label")
    hasher = GraphletHasher((3, 5, 7), method, n_samples=100, labels=labels, burn_in=20)
    one = hasher.transform(graphs)
    two = clone(hasher).set_params(n_jobs=2).transform(graphs)
    assert (one != two).nnz == 0
    backwards = hasher.transform(graphs[::-1])
    assert (one != backwards[::-1]).nnz == 0
    assert (one[7] != hasher.transform(graphs[7:8])).nnz == 0


def test_seed_changes_samples_and_columns():
    graph = nx.gnp_random_graph(30, 0.2, seed=0)
    a, b = (GraphletHasher(4, "sample", n_samples=100, seed=seed).transform([graph]) for seed in (0, 1))
    assert set(a.indices) != set(b.indices)
    assert sorted(a.data) != sorted(b.data)


# ---------------------------------------------------------------------------------------------- hashing and names


def test_columns_are_pinned():
    X = GraphletHasher(3, n_bits=20).transform([nx.complete_graph(3), nx.path_graph(3)])
    assert X.indices.tolist() == [532986, 276054]


def test_signs_come_from_the_hash_and_keep_the_size():
    graphs = random_graphs(5)
    plain = GraphletHasher((3, 4, 5), n_bits=24).transform(graphs)
    signed = GraphletHasher((3, 4, 5), n_bits=24, signed=True).transform(graphs)
    assert (abs(signed) != plain).nnz == 0
    assert (signed.data < 0).any()
    assert (signed.data > 0).any()


def test_crowded_columns_hold_the_sum():
    graphs = random_graphs(5)
    many, few = (GraphletHasher((3, 4, 5), n_bits=bits).transform(graphs) for bits in (24, 2))
    np.testing.assert_allclose(many.sum(axis=1), few.sum(axis=1))
    assert few.shape == (5, 4)
    report = GraphletHasher((3, 4, 5), n_bits=2, inverse_size=100).fit(graphs).collision_report()
    assert report.rate > 0.5


def test_names_tell_labels():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "C", 1: "O", 2: "C"}, "label")
    (found,) = counts_by_name(graph, sizes=(1, 2, 3), labels=True)
    split = [(name.split(" | "), count) for name, count in found.items()]
    assert sorted((form[0], "".join(sorted(labels.split())), count) for (form, labels), count in split) == [
        ("1", "C", 2), ("1", "O", 1), ("2", "CO", 2), ("3", "CCO", 1),
    ]  # fmt: skip
    hasher = GraphletHasher(3, labels=True, inverse_size=10, n_bits=4).fit([graph])
    assert sum("C" in name for name in hasher.get_feature_names_out()) == 1


def test_labels_mean_the_same_in_every_call():
    # Labels are hashed by themselves, not by their number among those of a call.
    a = Graphs.from_edges([[(0, 1), (1, 2)]], node_labels=[[5, 7, 7]])
    b = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1), (1, 2)]], node_labels=[[5, 7, 7], [-3, 1, 9]])
    hasher = GraphletHasher(3, labels=True)
    assert (hasher.transform(a) != hasher.transform(b)[0]).nnz == 0
    assert label_keys(np.array([-1])).tolist() == [2**64 - 1]


def test_every_connected_graphlet_of_up_to_five_nodes_has_a_name_of_its_own():
    atlas = [g for g in nx.graph_atlas_g() if 1 <= len(g) <= 5 and nx.is_connected(g)]
    names = [name_of(g) for g in atlas]
    assert len(set(names)) == len(atlas) == 31
    assert sum(":" not in name for name in names) == 26
    with pytest.raises(ValueError, match="canonical_form"):
        graphlet_name(b"\x05\x00\x00\x00")


def test_dtype_and_normalization():
    graphs = random_graphs(4)[1:]
    X = GraphletHasher((3, 4), normalize=True, dtype=np.float32).transform(graphs)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X.sum(axis=1), 2, rtol=1e-6)


# ---------------------------------------------------------------------------------------------- inputs


def test_all_kinds_of_input_agree():
    graphs = random_graphs(4, 9)
    hasher = GraphletHasher((3, 4))
    expected = hasher.transform(Graphs.from_networkx(graphs))
    for X in (
        graphs,
        [nx.to_numpy_array(g) for g in graphs],
        [nx.to_scipy_sparse_array(g) for g in graphs],
        [list(g.edges) for g in graphs],
        list(Graphs.from_networkx(graphs)),
    ):
        assert (hasher.transform(X) != expected).nnz == 0


@pytest.mark.parametrize("method", ["exact", "sample", "mcmc"])
@pytest.mark.parametrize("connected", [True, False])
def test_graphs_with_too_few_nodes_or_no_edges_give_zero_rows(method, connected):
    graphs = [nx.empty_graph(0), nx.path_graph(2), nx.empty_graph(6), nx.path_graph(4)]
    X = GraphletHasher((3, 4), method, n_samples=10, connected=connected).transform(graphs)
    totals = np.asarray(X.sum(axis=1)).ravel()
    assert totals[0] == totals[1] == 0
    assert (totals[2] == 0) == connected
    assert totals[3] > 0
    assert GraphletHasher(3, method, n_samples=10).transform([]).shape == (0, 2**16)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sizes": (3, 10)}, "sizes must be different integers from 1 to 9"),
        ({"sizes": 0}, "sizes"),
        ({"sizes": ()}, "sizes"),
        ({"sizes": (3, 3)}, "sizes"),
        ({"sizes": (2.5,)}, "sizes"),
        ({"method": "magic"}, "method must be one of"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_bits": 31}, "n_bits"),
        ({"seed": -1}, "seed"),
        ({"thin": 0}, "thin"),
        ({"burn_in": -1}, "burn_in"),
        ({"dtype": np.int64}, "dtype"),
        ({"labels": "yes"}, "labels"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"edge_weighting": [1.0]}, "method='mcmc'"),
        ({"method": "mcmc", "edge_weighting": [1.0, 2.0]}, "from 0 to 3"),
        ({"method": "mcmc", "edge_weighting": lambda e: -1.0}, "at least 0"),
        ({"method": "mcmc", "edge_weighting": lambda e: np.inf}, "finite"),
        ({"labels": True}, "node labels"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphletHasher(**({"sizes": 3} | parameters)).transform([[(0, 1)]])


def test_too_many_subsets_are_refused():
    with pytest.raises(ValueError, match="graph 1 has 9000 nodes"):
        GraphletHasher(6, connected=False).transform([nx.path_graph(3), nx.empty_graph(9000)])


@pytest.mark.parametrize("X", ["abc", 3, nx.path_graph(3), [3], [nx.path_graph(3), [(0, 1)]]])
def test_things_that_are_no_graphs_are_refused(X):
    with pytest.raises(TypeError, match="expected"):
        GraphletHasher(3).transform(X)


def test_self_loops_and_repeated_edges_are_refused_by_graph():
    with pytest.raises(ValueError, match="graph 1: the edge 1-1 is a self-loop"):
        GraphletHasher(3).transform([[(0, 1)], [(0, 1), (1, 1)]])
    with pytest.raises(ValueError, match="graph 0: the edge 0-1 is given more than once"):
        GraphletHasher(3).transform([[(0, 1), (0, 1)]])


# ---------------------------------------------------------------------------------------------- as an estimator


@pytest.mark.parametrize("method", ["exact", "sample", "mcmc"])
def test_planted_motifs_are_told_apart(method):
    graphs, y = make_motif_graphs(200, random_state=1)
    X = GraphletHasher((3, 4), method, n_samples=2000, connected=True).fit_transform(graphs)  # learns nothing
    model = make_pipeline(MaxAbsScaler(), LinearSVC(C=10.0, max_iter=20_000))
    assert cross_val_score(model, X, y, cv=5).mean() >= 0.95
    sizes = np.stack([graphs.sizes, graphs.edge_counts], axis=1)
    assert cross_val_score(LinearSVC(max_iter=20_000), sizes / sizes.max(axis=0), y, cv=5).mean() < 0.65


def test_a_model_file_keeps_parameters_and_names(tmp_path):
    graphs = random_graphs(3)
    hasher = GraphletHasher((3, 4), "mcmc", edge_weighting=[1.0] * 7, n_samples=100, n_bits=10, inverse_size=50).fit(
        graphs
    )
    mercer.save(hasher, tmp_path / "hasher.mercer")
    found = mercer.load(tmp_path / "hasher.mercer")
    assert (found.transform(graphs) != hasher.transform(graphs)).nnz == 0
    assert found.get_feature_names_out().tolist() == hasher.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="function"):
        GraphletHasher(method="mcmc", edge_weighting=lambda e: 1.0).to_state()


def test_draws_with_other_sample_seeds_have_the_same_columns_and_can_be_averaged():
    graphs = Graphs.from_edges([[(i, (i + 1) % 30) for i in range(30)] + [(0, 15), (3, 20), (7, 9)]])
    exact = GraphletHasher(4, n_bits=10, seed=3).transform(graphs)
    hasher = GraphletHasher(4, "sample", 20, n_bits=10, seed=3)
    draws = [hasher.set_params(sample_seed=s).transform(graphs) for s in (5, 6, 7)]
    assert all(set(draw.indices) <= set(exact.indices) for draw in draws)
    assert (draws[0] != draws[1]).nnz
    hasher.set_params(sample_seed=5)
    mean, variance = hasher.estimate(graphs, n_draws=3)
    stacked = np.stack([draw.toarray()[0] for draw in draws])
    np.testing.assert_allclose(mean.toarray()[0], stacked.mean(axis=0))
    np.testing.assert_allclose(variance.toarray()[0], stacked.var(axis=0, ddof=1) / 3, atol=1e-6 * stacked.max() ** 2)
    plain = GraphletHasher(4, "sample", 20, n_bits=10, seed=3)
    assert (plain.transform(graphs) != hasher.set_params(sample_seed=3).transform(graphs)).nnz == 0
    mean, variance = plain.estimate(graphs, n_draws=40)
    at = exact.indices
    error = np.abs(mean.toarray()[0, at] - exact.toarray()[0, at])
    assert (error <= 4 * np.sqrt(variance.toarray()[0, at]) + 1e-9).all()
    assert not GraphletHasher(4, n_bits=10).estimate(graphs, 2)[1].toarray().any()
    for wrong in ({"sample_seed": -1}, {"sample_seed": 1.5}):
        with pytest.raises(ValueError, match="seed"):
            GraphletHasher(4, **wrong).transform(graphs)
    with pytest.raises(ValueError, match="n_draws"):
        plain.estimate(graphs, 1)
