"""The compiled graphlets: canonical forms, the chain of Lemma 4, and what the binding refuses."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import _core
from mercer.data import Graphs
from mercer.maps import canonical_form
from reference.forked import popen
from reference.graphlets import gibbs_transitions

nx = pytest.importorskip("networkx")

ATLAS = nx.graph_atlas_g()


def random_graph(n: int, p: float, seed: int) -> nx.Graph:
    return nx.gnp_random_graph(n, p, seed=seed)


def matrix(graph: nx.Graph) -> np.ndarray:
    return nx.to_numpy_array(graph, nodelist=sorted(graph.nodes), dtype=np.uint8)


# ---------------------------------------------------------------------------------------------- canonical forms


@pytest.mark.parametrize(
    ("k", "all_types", "connected_types"), [(3, 4, 2), (4, 11, 6), (5, 34, 21), (6, 156, 112), (7, 1044, 853)]
)
def test_forms_are_distinct_for_all_graphs_of_a_size(k, all_types, connected_types):
    graphs = [graph for graph in ATLAS if len(graph) == k]
    assert len(graphs) == all_types
    assert len({canonical_form(matrix(graph)) for graph in graphs}) == all_types
    connected = [graph for graph in graphs if nx.is_connected(graph)]
    assert len({canonical_form(matrix(graph)) for graph in connected}) == connected_types


@pytest.mark.parametrize("k", [2, 5, 6, 7, 8, 9, 10, 12])
@pytest.mark.parametrize("labelled", [False, True])
def test_form_is_the_same_for_any_relabelling(k, labelled):
    rng = np.random.default_rng(k)
    for p in (0.2, 0.35, 0.5, 0.8):
        A = matrix(random_graph(k, p, seed=k))
        labels = rng.integers(3, size=k) if labelled else None
        forms = set()
        for _ in range(80):
            order = rng.permutation(k)
            forms.add(canonical_form(A[np.ix_(order, order)], None if labels is None else labels[order]))
        assert len(forms) == 1


REGULAR = [
    nx.cycle_graph(9), nx.complete_graph(9), nx.empty_graph(9), nx.star_graph(8), nx.circulant_graph(9, [1, 2]),
    nx.complete_multipartite_graph(3, 3, 3), nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(3)),
    nx.hypercube_graph(3),
    nx.disjoint_union_all([nx.complete_graph(3)] * 3), nx.complement(nx.cycle_graph(9)), nx.wheel_graph(9),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(REGULAR)))
def test_forms_of_symmetric_graphs_are_invariant_and_distinct(place):
    graph = nx.convert_node_labels_to_integers(REGULAR[place])
    A, rng = matrix(graph), np.random.default_rng(0)
    orders = [rng.permutation(len(A)) for _ in range(50)]
    forms = {canonical_form(A[np.ix_(order, order)]) for order in orders}
    assert len(forms) == 1
    others = [
        canonical_form(matrix(nx.convert_node_labels_to_integers(g))) for i, g in enumerate(REGULAR) if i != place
    ]
    assert forms.isdisjoint(others)


@given(st.integers(7, 9), st.floats(0.1, 0.9), st.integers(0, 10_000), st.integers(0, 10_000))
def test_forms_agree_with_isomorphism(k, p, first, second):
    a, b = random_graph(k, p, first), random_graph(k, p, second)
    assert (canonical_form(matrix(a)) == canonical_form(matrix(b))) == nx.is_isomorphic(a, b)


@given(st.integers(2, 7), st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 3))
def test_labelled_forms_agree_with_isomorphism_that_keeps_labels(k, first, second, n_labels):
    found = []
    for seed in (first, second):
        graph = random_graph(k, 0.5, seed % 40)
        labels = np.random.default_rng(seed).integers(n_labels, size=k)
        nx.set_node_attributes(graph, dict(enumerate(labels.tolist())), "label")
        found.append((graph, canonical_form(matrix(graph), labels)))
    (a, form_a), (b, form_b) = found
    same = nx.is_isomorphic(a, b, node_match=lambda u, v: u["label"] == v["label"])
    assert (form_a == form_b) == same


def test_forms_are_pinned():
    # These bytes are hashed into columns: a change would change the meaning of every saved model.
    assert canonical_form(matrix(nx.path_graph(4))).hex() == "040000000d"
    assert (
        canonical_form(matrix(nx.complete_graph(3)), [8, 6, 6]).hex()
        == "0300000007" + "06" + "00" * 7 + "06" + "00" * 7 + "08" + "00" * 7
    )
    assert canonical_form(matrix(nx.path_graph(2)), ["C", "O"]).hex().startswith("0200000001")


@pytest.mark.parametrize("k", [2, 4, 6, 7, 9])
def test_string_labels_work_like_numbers(k):
    A = matrix(nx.cycle_graph(k))
    names = ["C", "N"] * (k // 2) + ["C"] * (k % 2)
    turned = np.roll(np.arange(k), 2)
    assert canonical_form(A, names) == canonical_form(A[np.ix_(turned, turned)], np.array(names)[turned])
    assert canonical_form(A, names) != canonical_form(A, ["C"] * k)


# Beyond 9 nodes orders come from a search tree with automorphisms.


def paley(q):
    squares = {x * x % q for x in range(1, q)}
    return nx.Graph([(a, b) for a in range(q) for b in range(a) if (a - b) % q in squares])


def shrikhande():
    steps = {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}
    places = [(i, j) for i in range(4) for j in range(4)]
    return nx.Graph([(a, b) for a in places for b in places if ((a[0] - b[0]) % 4, (a[1] - b[1]) % 4) in steps])


LARGE = [
    nx.petersen_graph(), nx.empty_graph(300), nx.complete_graph(100), nx.star_graph(150), nx.path_graph(201),
    nx.cycle_graph(120), nx.hypercube_graph(6), nx.grid_2d_graph(12, 12), nx.grid_2d_graph(8, 8, periodic=True),
    nx.random_regular_graph(3, 200, seed=1), nx.gnp_random_graph(150, 0.5, seed=1), paley(29), shrikhande(),
    nx.line_graph(nx.complete_bipartite_graph(4, 4)), nx.disjoint_union_all([nx.petersen_graph()] * 6),
    nx.disjoint_union_all([nx.cycle_graph(5)] * 12), nx.kneser_graph(6, 2), nx.dodecahedral_graph(),
    nx.desargues_graph(), nx.full_rary_tree(3, 121), nx.complete_bipartite_graph(20, 30), nx.circular_ladder_graph(30),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(LARGE)))
def test_large_forms_do_not_depend_on_the_order_of_nodes(place):
    A, rng = matrix(nx.convert_node_labels_to_integers(LARGE[place])), np.random.default_rng(place)
    plain, labelled = set(), set()
    labels = rng.integers(3, size=len(A))
    for _ in range(6):
        order = rng.permutation(len(A))
        plain.add(canonical_form(A[np.ix_(order, order)]))
        labelled.add(canonical_form(A[np.ix_(order, order)], labels[order]))
    assert len(plain) == len(labelled) == 1


def test_large_forms_are_distinct_and_are_their_graphs():
    forms = []
    for graph in LARGE:
        A = matrix(nx.convert_node_labels_to_integers(graph))
        forms.append(canonical_form(A))
        n = int.from_bytes(forms[-1][:4], "little")
        bits = np.unpackbits(np.frombuffer(forms[-1][4:], np.uint8), bitorder="little", count=n * (n - 1) // 2)
        form = np.zeros((n, n), int)
        form[np.tril_indices(n, -1)] = bits
        assert sorted((form + form.T).sum(axis=0)) == sorted(A.sum(axis=0))
        assert nx.faster_could_be_isomorphic(nx.from_numpy_array(form + form.T), graph)
    assert len(set(forms)) == len(LARGE)


def test_as_many_large_forms_as_types():
    assert len({canonical_form(matrix(tree)) for tree in nx.nonisomorphic_trees(11)}) == 235
    cubic = [nx.random_regular_graph(3, 10, seed=seed) for seed in range(400)]
    matrices = [nx.to_numpy_array(graph, nodelist=range(10)) for graph in cubic]
    kinds: list[tuple[nx.Graph, np.ndarray, bytes]] = []
    for graph, A in zip(cubic, matrices, strict=True):
        form, spectrum = canonical_form(A), np.linalg.eigvalsh(A)
        # Graphs of one type have equal spectra: only then the slow search is asked.
        near = [kind for kind in kinds if np.allclose(kind[1], spectrum, atol=1e-8)]
        same = [known for other, _, known in near if nx.is_isomorphic(graph, other)]
        assert same == [form] or (not same and form not in {known for _, _, known in kinds})
        if not same:
            kinds.append((graph, spectrum, form))
    assert len(kinds) > 15  # of 21


@given(st.integers(10, 14), st.sampled_from([3, 4]), st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 2))
def test_large_labelled_forms_agree_with_isomorphism(n, degree, first, second, n_labels):
    found = []
    for seed in (first, second):
        graph = nx.random_regular_graph(degree, n + n % 2, seed=seed % 30)
        labels = np.random.default_rng(seed).integers(n_labels, size=n + n % 2)
        nx.set_node_attributes(graph, dict(enumerate(labels.tolist())), "label")
        found.append((graph, canonical_form(nx.to_numpy_array(graph, nodelist=range(n + n % 2)), labels)))
    (a, form_a), (b, form_b) = found
    same = nx.is_isomorphic(a, b, node_match=lambda u, v: u["label"] == v["label"])
    assert (form_a == form_b) == same


def test_large_forms_are_pinned():
    assert canonical_form(np.zeros((0, 0))) == bytes(4)
    assert canonical_form(matrix(nx.cycle_graph(10))).hex() == "0a000000132108040418"
    labels = [7] * 6 + [5] * 6
    form = canonical_form(matrix(nx.path_graph(12)), labels)
    assert form[-96:] == np.repeat([5, 7], 6).astype("<u8").tobytes()


@pytest.mark.parametrize(
    ("adjacency", "labels", "message"),
    [
        (np.ones((2, 3)), None, "square"),
        ([[0, 1], [0, 0]], None, "symmetric"),
        ([[1, 0], [0, 0]], None, "diagonal"),
        ([["a"]], None, "numbers"),
        (np.zeros((2, 2)), [1], "labels must be a 1-D array of 2"),
        (np.zeros((2, 2)), [0.5, 1.0], "integers or all strings"),
    ],
)
def test_canonical_form_refuses(adjacency, labels, message):
    with pytest.raises(ValueError, match=message):
        canonical_form(adjacency, labels)


# ---------------------------------------------------------------------------------------------- the chain of Lemma 4


def transitions(graph: nx.Graph, k: int, beta: list[float], connected: bool) -> tuple[np.ndarray, np.ndarray]:
    stack = Graphs.from_networkx([graph])
    states, T = _core.graphs.graphlet_transitions(stack.indptr, stack.indices, k, beta, connected)
    states = states.reshape(-1, k)
    return states, T.reshape(len(states), len(states))


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_gibbs_moves_are_those_of_the_lemma_and_keep_the_target(k, connected, seed):
    graph = random_graph(7, 0.5, seed)
    beta = np.random.default_rng(seed).uniform(0.1, 3, size=7).tolist()[: k * (k - 1) // 2 + 1]
    expected_states, expected_T, pi = gibbs_transitions(graph, k, beta, connected)
    states, T = transitions(graph, k, beta, connected)
    assert [tuple(state) for state in states] == expected_states
    np.testing.assert_allclose(T, expected_T, atol=1e-15)
    np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(pi @ T, pi, atol=1e-12)
    balance = pi[:, None] * T
    np.testing.assert_allclose(balance, balance.T, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_connected_chain_is_irreducible_on_a_connected_graph(seed):
    tree = nx.random_labeled_tree(9, seed=seed)
    for k in (2, 3, 5):
        _, T = transitions(tree, k, [1.0] * (k * (k - 1) // 2 + 1), True)
        assert (np.linalg.matrix_power(T, 60) > 0).all()


TWO_PARTS = nx.disjoint_union(nx.lollipop_graph(4, 1), nx.cycle_graph(4))
ZEROS = [0.0, 0.0, 1.0, 0.0]  # two edges: paths of three nodes only
ISLANDS = nx.disjoint_union(nx.path_graph(3), nx.path_graph(3))


@pytest.mark.parametrize(
    ("graph", "beta", "connected"),
    [
        (random_graph(7, 0.5, 1), [0.7, 2.0, 1.3, 0.4], False),
        (random_graph(7, 0.5, 1), [0.7, 2.0, 1.3, 0.4], True),
        (TWO_PARTS, [1.0, 1.0, 1.0, 3.0], True),
        (ISLANDS, ZEROS, False),
        (ISLANDS, ZEROS, True),
        (random_graph(7, 0.6, 3), ZEROS, True),
    ],
    ids=["all", "connected", "two components", "zeros", "zeros, connected, two components", "zeros, connected"],
)
def test_visits_follow_the_target(graph, beta, connected):
    states, _, pi = gibbs_transitions(graph, 3, beta, connected)
    stack = Graphs.from_networkx([graph])
    visited = _core.graphs.graphlet_walk(stack.indptr, stack.indices, 3, beta, connected, 200_000, 100, 2, 0).reshape(
        -1, 3
    )
    code = np.array([100, 10, 1])  # of three nodes in order
    codes, counts = np.unique(np.sort(visited, axis=1) @ code, return_counts=True)
    count = dict(zip(codes.tolist(), counts.tolist(), strict=True))
    seen = np.array([count.get(int(np.sort(state) @ code), 0) for state in states])
    assert seen.sum() == len(visited)
    assert 0.5 * np.abs(seen / seen.sum() - pi).sum() < 0.02


def test_mixing_coefficient_falls_and_theorem_7_holds():
    """‖E[Φ] − mean Φ‖ ≤ l β(n) + (2 + sqrt(ln(2/δ))) / sqrt(l) in at least 95 % of the runs."""
    graph, beta, thin, l = random_graph(7, 0.5, 2), [1.0, 2.0, 1.0, 0.5], 40, 100
    _, T, pi = gibbs_transitions(graph, 3, beta)

    def mixing(n: int) -> float:  # β(n) of a stationary chain: E over the state of the total variation after n steps
        return float(0.5 * (pi @ np.abs(np.linalg.matrix_power(T, n) - pi).sum(axis=1)))

    values = [mixing(n) for n in (1, 2, 5, 10, 20, thin)]
    assert values == sorted(values, reverse=True)
    bound = l * mixing(thin) + (2 + np.sqrt(np.log(2 / 0.05))) / np.sqrt(l)
    assert bound < 0.5
    # Features are the edge count of a state, one-hot: inner products lie in [0, 1].
    states, _, _ = gibbs_transitions(graph, 3, beta)
    count = {tuple(sorted(state)): graph.subgraph(state).number_of_edges() for state in states}
    edges = np.array([count[tuple(sorted(state))] for state in states])
    mean = np.bincount(edges, weights=pi, minlength=4)
    stack = Graphs.from_networkx([graph])
    held = 0
    for seed in range(200):
        visited = _core.graphs.graphlet_walk(stack.indptr, stack.indices, 3, beta, False, l, 200, thin, seed).reshape(
            -1, 3
        )
        found = np.bincount([count[tuple(sorted(v))] for v in visited.tolist()], minlength=4) / l
        held += np.linalg.norm(found - mean) <= bound
    assert held >= 190


# ---------------------------------------------------------------------------------------------- bad input

ROWS = {
    "offsets": np.array([0, 2]), "indptr": np.array([0, 1, 2]), "indices": np.array([1, 0], np.int32), "codes": None,
    "keys": None, "sizes": [2], "method": "exact", "connected": True, "n_samples": 1, "burn_in": 0, "thin": 1,
    "beta": [], "normalize": False, "seed": 0, "n_bits": 4, "signed": False, "threads": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 3])}, "offsets must end"),
        ({"offsets": np.array([], np.int64)}, "at least one"),
        ({"indptr": np.array([0, 2, 1])}, "indptr must"),
        ({"indices": np.array([1, 2], np.int32)}, "out of range"),
        ({"indices": np.array([-1, 0], np.int32)}, "out of range"),
        ({"indices": np.array([0, 0], np.int32)}, "own neighbour"),
        ({"codes": np.array([0, 1], np.int32)}, "come together"),
        ({"codes": np.array([0, 1], np.int32), "keys": np.array([7], np.uint64)}, "out of range"),
        ({"codes": np.array([0], np.int32), "keys": np.array([7], np.uint64)}, "one value a node"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [10]}, "between 1 and 9"),
        ({"sizes": [3, 2]}, "ascend"),
        ({"method": "guess"}, "method"),
        ({"method": "sample", "n_samples": 0}, "n_samples"),
        ({"method": "mcmc"}, "beta"),
        ({"method": "mcmc", "beta": [[1.0]]}, "beta"),
        ({"method": "mcmc", "beta": [[1.0, -1.0]]}, "negative"),
        ({"method": "mcmc", "beta": [[1.0, np.nan]]}, "finite"),
        ({"thin": 0}, "thin"),
        ({"n_bits": 31}, "n_bits"),
        ({"threads": 0}, "threads"),
    ],
)
def test_binding_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        _core.graphs.graphlet_rows(**(ROWS | change))


def test_one_sided_entries_do_no_harm():
    # Graphs never has them; the core must still end, in every method.
    indptr, indices = np.array([0, 1, 1, 2]), np.array([1, 0], np.int32)
    for method in ("exact", "sample", "mcmc"):
        beta = [[1.0, 1.0, 1.0, 1.0]] if method == "mcmc" else []
        changed = {
            "offsets": np.array([0, 3]),
            "indptr": indptr,
            "indices": indices,
            "method": method,
            "sizes": [3],
            "beta": beta,
        }
        assert len(_core.graphs.graphlet_rows(**(ROWS | changed))) == 3


def test_growth_orders_of_a_clique_are_all_permutations():
    # A sampled clique has weight n · (n−1) ⋯ (n−k+1) / k!: the estimate of its count has no variance at all.
    stack = Graphs.from_networkx([nx.complete_graph(12)])
    values = _core.graphs.graphlet_rows(
        **(
            ROWS
            | {
                "offsets": stack.offsets,
                "indptr": stack.indptr,
                "indices": stack.indices,
                "sizes": [4],
                "method": "sample",
            }
        )
    )[2]
    np.testing.assert_allclose(values, [factorial(12) / factorial(8) / factorial(4)])


@pytest.mark.parametrize(
    ("graph", "call"),
    [
        ("nx.complete_graph(60)", "GraphletHasher(9, n_jobs=2).transform([graph] * 4)"),  # 10^10 subsets of 9 nodes
        ("nx.disjoint_union_all([nx.complete_graph(3)] * 1500)", "canonical_form(matrix)"),
    ],
    ids=["graphlets", "form"],
)
def test_ctrl_c_ends_long_work(graph, call):
    """Nobody waits for these."""
    import signal
    import time

    code = f"""
import signal, networkx as nx
from mercer.maps import GraphletHasher, canonical_form
signal.signal(signal.SIGINT, signal.default_int_handler)
graph = {graph}
matrix = nx.to_scipy_sparse_array(graph)
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("stopped")
"""
    process = popen(code, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "stopped\n"
