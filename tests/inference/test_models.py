"""Factors, factor graphs, Bayesian and Markov networks, junction trees, files; and what they refuse."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.inference import (
    METHODS,
    BayesianNetwork,
    Factor,
    FactorGraph,
    JunctionTree,
    MarkovNetwork,
    Outcome,
    TreewidthError,
    ZeroProbabilityError,
    grid_edges,
    has_running_intersection,
    infer,
    maximum_spanning_tree,
    read_uai,
    read_uai_evidence,
    register,
    triangulate,
    variable_elimination,
    write_uai,
    write_uai_evidence,
)
from reference.factor_graphs import joint, marginal, observed_joint, random_graph

networkx = pytest.importorskip("networkx")

COIN = [0.5, 0.5]
SEEDS = st.integers(0, 2**32 - 1)


def random_network(rng: np.random.Generator, n: int | None = None) -> BayesianNetwork:
    n = int(rng.integers(1, 8)) if n is None else n
    cards = {f"v{i}": int(rng.integers(2, 4)) for i in range(n)}
    parents = {f"v{i}": [f"v{j}" for j in rng.permutation(i)[: rng.integers(0, 3)]] for i in range(n)}
    tables = {}
    for name in cards:
        shape = [cards[v] for v in (*parents[name], name)]
        raw = rng.random(shape) * (rng.random(shape) > 0.15) + 1e-3 * (rng.random(shape) > 0.5)
        raw[..., 0] += 1e-3
        tables[name] = raw / raw.sum(axis=-1, keepdims=True)
    return BayesianNetwork(cards, parents, tables)


def flu() -> BayesianNetwork:
    """Flu, fever, sinus infection, temperature, sinus swelling, headache."""
    rng = np.random.default_rng(0)
    parents = {1: [], 2: [1], 3: [1], 4: [2], 5: [3], 6: [2, 5]}
    tables = {v: (p := rng.random([2] * len(given) + [1])) * [1, 0] + (1 - p) * [0, 1] for v, given in parents.items()}
    return BayesianNetwork(dict.fromkeys(parents, 2), parents, tables)


def wet_grass() -> BayesianNetwork:
    """With a cloud whose tables leave P(rain) = .2."""
    return BayesianNetwork(
        {"C": 2, "R": 2, "S": 2, "J": 2, "T": 2},
        {"R": ["C"], "J": ["R"], "T": ["R", "S"]},
        {
            "C": [0.5, 0.5], "R": [[0.9, 0.1], [0.7, 0.3]], "S": [0.9, 0.1], "J": [[0.8, 0.2], [0.0, 1.0]],
            "T": [[[1.0, 0.0], [0.1, 0.9]], [[0.0, 1.0], [0.0, 1.0]]],
        },
    )  # fmt: skip


# ------------------------------------------------------------------ factors


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_products_and_sums_of_factors_equal_einsum(seed):
    rng = np.random.default_rng(seed)
    cards = dict(zip("abcd", rng.integers(1, 4, 4), strict=True))
    scopes = ["".join(rng.permutation(list("abcd"))[: rng.integers(0, 5)]) for _ in range(2)]
    tables = [rng.random([cards[v] for v in scope]) for scope in scopes]
    first, second = (Factor(list(scope), table) for scope, table in zip(scopes, tables, strict=True))
    product = first * second
    names = "".join(product.variables)
    np.testing.assert_allclose(product.table, np.einsum(f"{scopes[0]},{scopes[1]}->{names}", *tables))
    for keep in itertools.chain.from_iterable(itertools.combinations(names, r) for r in range(len(names) + 1)):
        gone = [v for v in names if v not in keep]
        left = "".join(v for v in names if v in keep)
        expected = np.einsum(f"{scopes[0]},{scopes[1]}->{left}", *tables)
        np.testing.assert_allclose(product.sum_out(gone).table, expected)
        axes = tuple(names.index(v) for v in gone)
        np.testing.assert_allclose(product.max_out(gone).table, product.table.max(axis=axes) if axes else product.table)
    np.testing.assert_allclose((product / second).table, np.broadcast_to(*_both(first, product)))


def _both(first: Factor, product: Factor):
    spread = first * Factor(product.variables, np.ones(product.shape))
    return spread.transposed(product.variables).table, product.shape


def test_zero_over_zero_is_zero_and_zeros_stay_exact():
    a = Factor(["x"], [0.0, 2.0])
    assert (a / Factor(["x"], [0.0, 4.0])).table.tolist() == [0.0, 0.5]
    assert (a * a).log_table[0] == -np.inf
    assert a.sum_out(["x"]).table == pytest.approx(2.0)
    with pytest.raises(ValueError, match="division of a positive potential by 0"):
        a / Factor(["x"], [1.0, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Factor(["a"], [[1.0]]), "one axis for each of the 1 variables"),
        (lambda: Factor(["a", "a"], [[1.0]]), "different"),
        (lambda: Factor(["a"], [-1.0, 1.0]), "at least 0"),
        (lambda: Factor(["a"], [np.nan, 1.0]), "NaN"),
        (lambda: Factor(["a"], [np.inf, 1.0]), "finite"),
        (lambda: Factor(["a"], [np.inf, 1.0], log=True), r"below \+inf"),
        (lambda: Factor(["a"], []), "at least one state"),
        (lambda: Factor(["a"], ["x"]), "numbers"),
        (lambda: Factor("ab", [[1.0]]), "string"),
        (lambda: Factor(["a"], [1, 2]) * Factor(["a"], [1, 2, 3]), "2 states in one factor and 3"),
        (lambda: Factor(["a"], [1, 2]).sum_out(["b"]), "no variables"),
        (lambda: Factor(["a"], [1, 2]).reduce({"a": 2}), "from 0 to 1"),
        (lambda: Factor(["a"], [0, 0]).normalized(), "all potentials are 0"),
        (lambda: Factor(["a"], [1, 2]) / Factor(["b"], [1, 2]), "has not"),
    ],
)
def test_a_bad_factor_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ------------------------------------------------------------------ factor graphs


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_a_graph_in_bulk_equals_the_graph_factor_by_factor(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    edges = np.array(list(itertools.combinations(range(n), 2)))[rng.permutation(n * (n - 1) // 2)][: n + 2]
    shared = rng.random((3, 3))
    single = rng.random((n, 3))
    tables = rng.random((len(edges), 3, 3))
    bulk = FactorGraph(np.full(n, 3), unary=single, edges=edges, pairwise=tables).add_factors(edges[::-1], shared)
    slow = FactorGraph(np.full(n, 3))
    for i in range(n):
        slow.add(Factor([i], single[i]))
    for edge, table in zip(edges, tables, strict=True):
        slow.add(Factor(edge.tolist(), table))
    for edge in edges[::-1]:
        slow.add(Factor(edge.tolist(), shared))
    table = joint(slow)
    np.testing.assert_allclose(joint(bulk), table)
    states = rng.integers(0, 3, (5, n))
    np.testing.assert_allclose(bulk.compiled.score(states), [np.log(table[tuple(x)]) for x in states])
    assert infer(bulk).log_partition == pytest.approx(np.log(table.sum()))


def test_factors_of_one_shape_are_neighbours_and_shared_tables_are_kept_once():
    graph = FactorGraph([2, 2, 3, 2], edges=[[0, 1], [1, 3]], pairwise=np.ones((2, 2)))
    graph.add_factors([[2, 0]], np.ones((3, 2))).add_factors([[0, 3]], np.full((1, 2, 2), 2.0))
    compiled = graph.compiled
    assert [group.shape for group in compiled.groups] == [(2, 2), (3, 2)]
    assert compiled.numbers.tolist() == [3, 0, 1, 2]
    assert compiled.table_starts.tolist() == [0, 4, 4, 8]
    assert len(compiled.tables) == 4 + 4 + 6
    assert compiled.stacked(compiled.groups[0])[0] == pytest.approx(np.log(2.0))
    with pytest.raises(ValueError, match="read-only"):
        compiled.tables[0] = 1.0


def test_other_potentials_on_the_same_structure():
    graph = random_graph(np.random.default_rng(4), n=5).compiled
    other = graph.with_potentials(graph.unary + 1.0, constant=2.0)
    x = np.zeros(5, int)
    assert other.score(x) == pytest.approx(graph.score(x) + 5.0 + 2.0)
    with pytest.raises(ValueError, match="every state"):
        graph.with_potentials(np.zeros(3))


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_a_reduced_graph_is_the_slice_at_the_evidence(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n=5, zeros=0.1, largest=4)
    evidence = {1: int(rng.integers(graph.cardinalities[1])), 3: int(rng.integers(graph.cardinalities[3]))}
    reduced, kept = graph.reduced(evidence)
    assert kept.tolist() == [0, 2, 4]
    assert reduced.n_factors == graph.n_factors
    np.testing.assert_allclose(joint(reduced), joint(graph)[:, evidence[1], :, evidence[3], :])


def test_integers_that_are_names_are_not_taken_for_numbers():
    graph = FactorGraph({1: [1, 2], 2: [5, 6]}, edges=[[1, 2]], pairwise=[[1.0, 2.0], [3.0, 4.0]])
    assert infer(graph, evidence={1: 2}).marginals[2].tolist() == pytest.approx([3 / 7, 4 / 7])
    with pytest.raises(ValueError, match="no variable 0"):
        infer(graph, evidence={0: 1})
    with pytest.raises(ValueError, match="variable 2 has no state 0"):
        infer(graph, evidence={2: 0})


def test_models_are_pickled_and_copied():
    graph = random_graph(np.random.default_rng(4), n=4)
    value = infer(graph).log_partition
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert infer(again).log_partition == value
    net = wet_grass()
    infer(net)
    assert infer(pickle.loads(pickle.dumps(net)), evidence={"T": 1}).log_partition < 0
    kept = pickle.loads(pickle.dumps(value))
    assert (kept, kept.kind) == (value, "exact")


def test_names_states_and_numbers():
    graph = FactorGraph({"rain": ["no", "yes"], "wind": 3}, unary={"rain": [1, 3], 1: [1, 1, 2]})
    assert graph.names == ("rain", "wind")
    result = infer(graph, evidence={"wind": 2})
    assert result.map == {"rain": "yes", "wind": 2}
    assert result.marginals["wind"].tolist() == [0, 0, 1]
    assert result.marginals[0].tolist() == [0.25, 0.75]
    assert dict(result.marginals.items())["rain"].tolist() == [0.25, 0.75]
    assert infer(graph, evidence=[-1, 2]).map == result.map
    with pytest.raises(ValueError, match="no matrix"):
        np.asarray(result.marginals)
    assert np.asarray(infer(FactorGraph([2, 2])).marginals).shape == (2, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorGraph([2, 0]), "at least one state"),
        (lambda: FactorGraph([2.5]), "integers"),
        (lambda: FactorGraph([[2]]), "integers"),
        (lambda: FactorGraph([2, 2], edges=[[0, 2]], pairwise=np.ones((2, 2))), "does not exist"),
        (lambda: FactorGraph([2, 2], edges=[[0, 0]], pairwise=np.ones((2, 2))), "twice"),
        (lambda: FactorGraph([2, 3], edges=[[0, 1]], pairwise=np.ones((2, 2))), r"shape \(2, 3\), got \(2, 2\)"),
        (lambda: FactorGraph([2, 2], edges=[[0, 1]]), "come together"),
        (lambda: FactorGraph([2, 2], edges=[[0, 1]], pairwise=np.ones((3, 2, 2))), "tables must be of shape"),
        (lambda: FactorGraph([2, 2], edges=[[0, 1]], pairwise=-np.ones((2, 2))), "at least 0"),
        (lambda: FactorGraph([2, 2], edges=[0, 1], pairwise=np.ones((2, 2))), "table of variables"),
        (lambda: FactorGraph([2, 2], unary=[[1, 1]]), "each of the 2 variables"),
        (lambda: FactorGraph([2], unary=[[1, np.nan]]), "NaN"),
        (lambda: FactorGraph([2], names=["a", "b"]), "as many"),
        (lambda: FactorGraph([2, 2], names=["a", "a"]), "twice"),
        (lambda: FactorGraph([2], states=[["x"]]), "names 1"),
        (lambda: FactorGraph([2], states=[["x", "x"]]), "different"),
        (lambda: FactorGraph({"a": "xy"}), "number of states or a list"),
        (lambda: FactorGraph([2]).add(Factor(["b"], [1, 1])), "no variable 'b'"),
        (lambda: FactorGraph([2]).add(Factor([0], [1, 1, 1])), "needs a table of shape"),
        (lambda: FactorGraph([2]).evidence({0: 2}), "no state 2"),
        (lambda: FactorGraph([2]).evidence({1: 0}), "no variable 1"),
        (lambda: FactorGraph([2]).evidence([0, 1]), "integer for each of the 1"),
        (lambda: FactorGraph([2]).evidence([2]), "no state 2"),
        (lambda: FactorGraph([2, 2]).log_score({0: 1}), "no state for 1"),
        (lambda: grid_edges((0, 2)), "at least 1"),
        (lambda: grid_edges((2, 2), 6), "4 or 8"),
    ],
)
def test_a_bad_graph_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method must be 'auto' or one of"),
        ({"task": "mode"}, "task must be one of"),
        ({"method": "bp", "damping": 1.0}, "damping"),
        ({"method": "bp", "tol": -1.0}, "tol"),
        ({"method": "bp", "max_iter": 0}, "max_iter"),
        ({"method": "bp", "schedule": "slow"}, "schedule"),
        ({"method": "bp", "temperature": 0.0}, "temperature"),
        ({"method": "junction-tree", "heuristic": "luck"}, "heuristic"),
        ({"method": "junction-tree", "k": 0}, "k must be"),
        ({"method": "tree"}, "has cycles"),
        ({"method": "trw", "appearance": [0.5]}, "appearance"),
        ({"method": "icm", "start": [0, 0]}, "each of the 3"),
        ({"method": "icm", "start": [0, 0, 5]}, "states of the variables"),
        ({"method": "mean-field", "init": "warm"}, "init"),
        ({"method": "chain-mean-field", "chains": [[0, 0]]}, "at most once"),
        ({"method": "chain-mean-field", "chains": [[0, 1, 2]]}, "not neighbours"),
    ],
)
def test_bad_options_are_refused(options, message):
    graph = FactorGraph([2, 2, 2], edges=[[0, 1], [1, 2], [0, 2]], pairwise=[[2.0, 1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match=message):
        infer(graph, **options)
    with pytest.raises(TypeError, match="no option 'speed': its options are"):
        infer(graph, "bp", speed=1)
    with pytest.raises(TypeError, match="graph must be"):
        infer([1, 2])


def test_mean_field_refuses_zeros_and_names_the_factor():
    graph = FactorGraph([2, 2], unary=[[1, 1], [1, 1]], edges=[[0, 1]], pairwise=[[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="factor 2 holds a 0"):
        infer(graph, "mean-field")


def test_marginals_of_factors_are_in_the_order_of_the_graph_also_behind_the_first_block():
    tables = np.array([[[2.0, 1.0], [1.0, 4.0]], [[1.0, 3.0], [5.0, 1.0]]])
    graph = FactorGraph([2, 2, 2], unary=[[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]], edges=[[0, 1], [1, 2]], pairwise=tables)
    joint = np.einsum("a,b,ab,bc->abc", [1.0, 2.0], [3.0, 1.0], *tables)
    joint /= joint.sum()
    found = infer(graph).factor_marginals
    expected = [*(joint.sum(axis=tuple({0, 1, 2} - {v})) for v in range(3)), joint.sum(axis=2), joint.sum(axis=0)]
    assert len(found) == len(expected)
    for i, table in enumerate(expected):
        np.testing.assert_allclose(found[i], table)
    np.testing.assert_allclose(found[-1], expected[-1])


def test_methods_without_marginals_say_so():
    result = infer(FactorGraph([2], unary=[[1, 2]]), "icm", task="map")
    with pytest.raises(AttributeError, match="icm gives no marginals"):
        result.marginals  # noqa: B018
    assert result.map.tolist() == [1]


def test_impossible_evidence_is_named():
    net = wet_grass()
    with pytest.raises(ZeroProbabilityError, match=r"evidence has probability 0: \{'R': 1, 'J': 0\}"):
        infer(net, evidence={"R": 1, "J": 0})
    for method in ("tree", "bp", "trw", "junction-tree", "elimination"):
        pair = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[1.0, 0.0], [0.0, 1.0]])
        with pytest.raises(ZeroProbabilityError, match=r"\{0: 0, 1: 1\}"):
            infer(pair, method, evidence={0: 0, 1: 1})


@pytest.mark.parametrize("method", sorted(METHODS))
def test_impossible_evidence_is_named_by_every_method(method):
    graph = FactorGraph({"a": ["x", "y"], "b": ["u", "v"]}, edges=[["a", "b"]], pairwise=[[1, 0], [0, 1]])
    with pytest.raises(ZeroProbabilityError, match=re.escape("probability 0: {'a': 'x', 'b': 'v'}")):
        _ = infer(graph, method, evidence={"a": "x", "b": "v"}, task=METHODS[method].tasks[0]).map


@pytest.mark.filterwarnings("ignore:the chains do not agree")
@pytest.mark.parametrize("method", ["icm", "gibbs", "metropolis", "annealing"])
def test_a_search_that_meets_nothing_possible_warns(method):
    never = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[0.0, 0.0], [0.0, 0.0]])
    with pytest.warns(RuntimeWarning, match=f"{method} found no assignment of positive probability"):
        infer(never, method, task=METHODS[method].tasks[0])


def test_wide_graphs_are_refused_with_their_size_and_other_methods():
    graph = FactorGraph(np.full(900, 2), edges=grid_edges((30, 30)), pairwise=[[2, 1], [1, 2]])
    with pytest.raises(TreewidthError, match=r"needs .*GB.*over \d\d variables.*operations.*max_bytes=.*'bp'"):
        infer(graph, "junction-tree")
    with pytest.raises(TreewidthError, match="variable elimination needs"):
        infer(graph, "elimination", max_bytes=8000)
    with pytest.raises(TreewidthError):
        JunctionTree(graph)


def test_empty_and_disconnected_graphs_work():
    nothing = FactorGraph([])
    for method in ("auto", "tree", "junction-tree", "elimination", "bp", "trw", "mean-field", "chain-mean-field"):
        result = infer(nothing, method)
        assert result.log_partition == 0.0
        assert len(result.marginals) == 0
    for method in ("auto", "tree", "junction-tree", "elimination", "max-product", "icm"):
        assert infer(nothing, method, task="map").map.tolist() == []
    for name, entry in METHODS.items():
        assert infer(nothing, name, task=entry.tasks[0]).map_value == 0.0
    apart = FactorGraph([2, 2, 2, 3], edges=[[0, 1]], pairwise=[[3.0, 1.0], [1.0, 2.0]], unary={3: [1, 2, 3]})
    for name in sorted(METHODS.keys() - {"cuts"}):  # cuts take two states
        assert infer(apart, name, task=METHODS[name].tasks[0]).map_value <= np.log(9) + 1e-9
    for method in ("tree", "junction-tree", "elimination", "bp"):
        result = infer(apart, method)
        assert result.log_partition == pytest.approx(np.log(7 * 2 * 6))
        np.testing.assert_allclose(result.marginals[3], [1 / 6, 2 / 6, 3 / 6])
    assert infer(apart, evidence={0: 0, 1: 0, 2: 0, 3: 2}).log_partition == pytest.approx(np.log(9))


def test_a_graph_from_networkx():
    graph = networkx.Graph()
    graph.add_node("b", potential=[1.0, 2.0, 3.0])
    graph.add_node("a", potential=[1.0, 1.0])
    graph.add_edge("a", "b", potential=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # rows: b, which comes first
    made = FactorGraph.from_networkx(graph)
    np.testing.assert_allclose(joint(made), np.array([[1, 2], [6, 8], [15, 18]]))
    assert set(made.to_networkx().edges) == {("b", "a")}
    graph.add_edge("b", "c")
    with pytest.raises(ValueError, match="node 'c' has no attribute"):
        FactorGraph.from_networkx(graph)
    with pytest.raises(ValueError, match="undirected"):
        FactorGraph.from_networkx(networkx.DiGraph())


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="already"):
        register("bp", lambda graph, task: Outcome())
    with pytest.raises(ValueError, match="tasks"):
        register("new", lambda graph, task: Outcome(), tasks=("sum",))


# ------------------------------------------------------------------ Bayesian and Markov networks


def test_the_flu_network_sums_to_one_over_26_entries():
    net = flu()
    assert joint(net.factor_graph).sum() == pytest.approx(1.0)
    assert sum(table.size for table in net.tables.values()) == 26
    moral = net.moralised()
    assert (2, 5) in moral.edges
    assert len(moral.edges) == 7
    graph = moral.factor_graph.to_networkx()
    for heuristic in ("min-fill", "min-degree"):
        chords, cliques = triangulate(moral.edges, heuristic=heuristic)
        assert len(chords) == 1
        assert set(chords[0]) in ({1, 5}, {2, 3})
        chordal = graph.copy()
        chordal.add_edges_from(chords)
        assert networkx.is_chordal(chordal)
        assert max(map(len, cliques)) == 3
        assert {frozenset(c) for c in cliques} == {frozenset(c) for c in networkx.find_cliques(chordal)}


def test_explaining_away_in_the_wet_grass():
    net = wet_grass()
    assert infer(net).marginals["R"][1] == pytest.approx(0.2)
    for method in ("junction-tree", "elimination", "auto"):
        assert infer(net, method, evidence={"T": 1}).marginals["S"][1] == pytest.approx(0.3382, abs=5e-5)
        assert infer(net, method, evidence={"T": 1, "J": 1}).marginals["S"][1] == pytest.approx(0.1604, abs=5e-5)


def test_the_six_independences_and_the_moral_graph_of_the_wet_grass():
    net = wet_grass()
    for a, b, given_ in ("JTR", "JCR", "JSR", "TCR", "RSC"):
        assert net.d_separated([a], [b], [given_]), (a, b)
    assert net.d_separated(["C"], ["S"])
    assert not net.d_separated(["R"], ["S"], ["T"])
    assert not net.d_separated(["J"], ["T"])
    moral = net.moralised()
    assert {frozenset(e) for e in moral.edges} == {frozenset(e) for e in ("JR", "RC", "RT", "ST", "RS")}
    assert moral.log_partition() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(joint(moral.factor_graph), joint(net.factor_graph), atol=1e-12)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_d_separation_is_independence_in_almost_all_tables(seed):
    """6 nodes; strictly positive random tables make only the separated sets independent."""
    rng = np.random.default_rng(seed)
    names = "abcdef"
    parents = {v: [u for u in names[:i] if rng.random() < 0.4] for i, v in enumerate(names)}
    tables = {}
    for v in names:
        raw = 0.2 + rng.random([2] * (len(parents[v]) + 1)) ** 2
        tables[v] = raw / raw.sum(axis=-1, keepdims=True)
    net = BayesianNetwork(dict.fromkeys(names, 2), parents, tables)
    order = rng.permutation(6)
    a, b, seen = int(order[0]), int(order[1]), sorted(order[2 : 2 + rng.integers(0, 4)].tolist())
    p = joint(net.factor_graph)
    both = marginal(p, [*seen, a, b])
    given_ = marginal(p, seen) if seen else np.array(1.0)
    product = marginal(p, [*seen, a])[..., :, None] * marginal(p, [*seen, b])[..., None, :]
    independent = np.abs(both * given_[..., None, None] - product).max() < 1e-9
    assert net.d_separated([names[a]], [names[b]], [names[i] for i in seen]) == independent


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_queries_of_random_networks_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 6)
    graph = net.factor_graph
    x = net.sample(1, random_state=seed)[0]
    evidence = {int(i): int(x[i]) for i in rng.permutation(6)[:2]}
    named = {f"v{i}": s for i, s in evidence.items()}
    table = observed_joint(graph, evidence)
    free = [i for i in range(6) if i not in evidence]
    query = rng.permutation(free)[: rng.integers(1, 4)].tolist()
    found = variable_elimination(net, [f"v{i}" for i in query], evidence=named)
    np.testing.assert_allclose(found.table, marginal(table, query), atol=1e-10)
    tree = JunctionTree(net, evidence=named)
    np.testing.assert_allclose(tree.marginal([f"v{i}" for i in query]).table, marginal(table, query), atol=1e-10)
    assert tree.log_partition == pytest.approx(np.log(table.sum()), abs=1e-10)
    assert tree.map()[1] == pytest.approx(np.log(table.max()), abs=1e-10)


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_junction_trees_have_the_running_intersection_and_the_largest_separators(seed):
    """A tree of cliques has the property iff its separators are largest in sum."""
    graph = random_graph(np.random.default_rng(seed), n=7, largest=3)
    tree = JunctionTree(graph)
    assert has_running_intersection(tree.cliques, tree.edges)
    kruskal = maximum_spanning_tree(tree.cliques)
    shared = lambda i, j: len(set(tree.cliques[i]) & set(tree.cliques[j]))  # noqa: E731
    assert sum(map(len, tree.separators)) == sum(shared(i, j) for i, j in kruskal)
    assert has_running_intersection(tree.cliques, kruskal)
    assert not any(set(a) < set(b) for a in tree.cliques for b in tree.cliques)
    assert all(
        set(s) == set(tree.cliques[i]) & set(tree.cliques[j])
        for s, (i, j) in zip(tree.separators, tree.edges, strict=True)
    )


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_calibrated_cliques_agree_and_multiply_to_the_joint(seed):
    """P(x) = Π p(x_C) / Π p(x_S), and neighbours agree on separators."""
    graph = random_graph(np.random.default_rng(seed), n=6, zeros=0.1)
    table = joint(graph)
    if table.sum() == 0:
        return
    tree = JunctionTree(graph)
    cliques = tree.clique_marginals
    product = Factor([], 1.0)
    for clique in cliques:
        product = product * clique
    for (i, j), separator in zip(tree.edges, tree.separators, strict=True):
        sides = [
            c.sum_out([v for v in c.variables if v not in separator]).transposed(separator)
            for c in (cliques[i], cliques[j])
        ]
        np.testing.assert_allclose(sides[0].table, sides[1].table, atol=1e-12)
        zero = sides[1].table < 1e-300
        product = product / Factor(separator, np.where(zero, 1.0, sides[1].table))
    np.testing.assert_allclose(product.transposed(range(6)).table, table / table.sum(), atol=1e-10)


def test_every_message_leaves_the_joint_unchanged_and_the_last_leaves_marginals():
    """By factors: leaves keep ψ when evidence is collected, the root when it is distributed."""
    for seed in range(20):
        graph = random_graph(np.random.default_rng(seed), n=6, largest=3)
        truth = joint(graph)
        tree = JunctionTree(graph)
        psi = [Factor(c, np.ones([int(graph.cardinalities[v]) for v in c])) for c in tree.cliques]
        for factor in graph.factors:
            home = next(i for i, c in enumerate(tree.cliques) if set(factor.variables) <= set(c))
            psi[home] = psi[home] * factor
        phi = [Factor(s, np.ones([int(graph.cardinalities[v]) for v in s])) for s in tree.separators]
        first = list(psi)

        def send(edge: int, source: int, target: int, psi: list = psi, phi: list = phi, tree: Any = tree) -> None:
            over = tree.separators[edge]
            new = psi[source].sum_out([v for v in tree.cliques[source] if v not in over]).transposed(over)
            psi[target] = psi[target] * (new / phi[edge])
            phi[edge] = new

        def product(psi: list = psi, phi: list = phi, graph: FactorGraph = graph) -> np.ndarray:
            whole = Factor([], np.exp(graph.compiled.constant))
            for one in psi:
                whole = whole * one
            for one in phi:
                whole = whole / one
            return whole.transposed(range(6)).table

        np.testing.assert_allclose(product(), truth, rtol=1e-9)
        order = list(range(len(tree.edges)))  # parents come before their children
        depth = {c: 0 for c in range(len(psi))}
        for _ in psi:
            for parent, child in tree.edges:
                depth[child] = depth[parent] + 1
        order.sort(key=lambda e: -depth[tree.edges[e][1]])
        for e in order:
            send(e, tree.edges[e][1], tree.edges[e][0])
            np.testing.assert_allclose(product(), truth, rtol=1e-9)
        inner = {parent for parent, _ in tree.edges}
        assert all(psi[c] is first[c] for c in range(len(psi)) if c not in inner)
        roots = [c for c in range(len(psi)) if depth[c] == 0]
        collected = [psi[c] for c in roots]
        for e in reversed(order):
            send(e, *tree.edges[e])
            np.testing.assert_allclose(product(), truth, rtol=1e-9)
        assert all(psi[c] is kept for c, kept in zip(roots, collected, strict=True))
        for one, clique in zip(psi, tree.clique_marginals, strict=True):
            np.testing.assert_allclose(one.table / one.table.sum(), clique.transposed(one.variables).table, atol=1e-10)
    ab, cb = np.array([[0.1, 0.3], [0.4, 0.2]]), np.array([[0.7, 0.3], [0.2, 0.8]])
    message = Factor(["A", "B"], ab).sum_out(["A"])
    np.testing.assert_allclose((Factor(["B", "C"], cb) * message).table, ab.sum(axis=0)[:, None] * cb)


def test_kruskals_example():
    """Exactly these five links, total 11; a lighter tree is no junction tree."""
    cliques = ["ACD", "BDE", "CDF", "DEH", "DFGH", "FGHI"]
    tree = maximum_spanning_tree(cliques)
    named = {frozenset((cliques[i], cliques[j])) for i, j in tree}
    assert named == {
        frozenset(p) for p in (("ACD", "CDF"), ("BDE", "DEH"), ("CDF", "DFGH"), ("DEH", "DFGH"), ("DFGH", "FGHI"))
    }  # fmt: skip
    assert sum(len(set(cliques[i]) & set(cliques[j])) for i, j in tree) == 11
    assert has_running_intersection(cliques, tree)
    lighter = [(4, 5), (0, 2), (1, 3), (2, 4), (0, 3)]
    assert not has_running_intersection(cliques, lighter)


def test_ancestral_samples_follow_the_network():
    net = random_network(np.random.default_rng(3), 4)
    drawn = net.sample(40_000, random_state=0)
    truth = joint(net.factor_graph)
    counts = np.zeros(truth.shape)
    np.add.at(counts, tuple(drawn.T), 1)
    assert np.abs(counts / 40_000 - truth).sum() / 2 < 0.02
    assert counts[truth == 0].sum() == 0
    assert (drawn[:10] == net.sample(40_000, random_state=0)[:10]).all()
    assert net.sample(0).shape == (0, 4)


def test_tables_from_complete_data_approach_the_truth():
    net = random_network(np.random.default_rng(5), 4)
    data = net.sample(50_000, random_state=0)
    fitted = BayesianNetwork.fit(net.states, net.parents, data, pseudo_count=0.5)
    np.testing.assert_allclose(joint(fitted.factor_graph), joint(net.factor_graph), atol=0.01)
    columns = {name: [net.states[name][k] for k in data[:100, i]] for i, name in enumerate(net.names)}
    named = BayesianNetwork.fit(net.states, net.parents, columns)
    numbered = BayesianNetwork.fit(net.states, net.parents, data[:100])
    assert all((named.tables[v] == numbered.tables[v]).all() for v in net.names)
    for bad, message in [(data[:, :2], "shape"), (data + 5, "numbers of states"), ({"v0": [0]}, "no column")]:
        with pytest.raises(ValueError, match=message):
            BayesianNetwork.fit(net.states, net.parents, bad)
    with pytest.raises(ValueError, match="pseudo_count"):
        BayesianNetwork.fit(net.states, net.parents, data, pseudo_count=-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"a": 2}, {}, {"a": [0.5, 0.6]}), "sum to 1, they sum to 1.1"),
        (({"a": 2, "b": 2}, {"b": ["a"]}, {"a": COIN, "b": [COIN, [0.2, 0.2]]}), "'b' given a=1 must sum to 1"),
        (({"a": 2, "b": 2}, {"b": ["a"]}, {"a": COIN, "b": COIN}), r"shape \(2, 2\), for a, b"),
        (({"a": 2}, {}, {}), "no table"),
        (({"a": 2}, {}, {"a": COIN, "b": COIN}), "no states"),
        (({"a": 2}, {"a": ["b"]}, {"a": COIN}), "no variables"),
        (({"a": 2}, {"a": ["a"]}, {"a": COIN}), "different"),
        (({"a": 2}, {"a": "a"}, {"a": COIN}), "string"),
        (({"a": 2, "b": 2}, {"a": ["b"], "b": ["a"]}, {"a": [COIN] * 2, "b": [COIN] * 2}), "cycle among 'a', 'b'"),
        (({"a": 2}, {}, {"a": [1.5, -0.5]}), "probabilities"),
        (({"a": 2}, {}, {"a": [np.nan, 1.0]}), "probabilities"),
    ],
)
def test_a_bad_network_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(*arguments)


def test_markov_networks_convert_both_ways():
    rng = np.random.default_rng(6)
    for _ in range(10):
        graph = random_graph(rng, n=5, largest=3)
        markov = MarkovNetwork.from_factor_graph(graph)
        np.testing.assert_allclose(joint(markov.factor_graph), joint(graph))
        directed = BayesianNetwork.from_markov(markov)
        np.testing.assert_allclose(joint(directed.factor_graph), joint(graph) / joint(graph).sum(), atol=1e-10)


def test_separation_in_a_markov_network_is_independence():
    rng = np.random.default_rng(8)
    pairs = ["ab", "bc", "cd", "be"]
    net = MarkovNetwork([Factor(list(pair), rng.random((2, 2)) + 0.1) for pair in pairs])
    assert net.names == tuple("abcde")
    assert net.markov_blanket("b") == set("ace")
    assert net.separated(["a"], ["c", "d", "e"], ["b"])
    assert not net.separated(["a"], ["d"])
    p = joint(net.factor_graph)
    both, given_ = marginal(p, [1, 0, 3]), marginal(p, [1])
    np.testing.assert_allclose(
        both * given_[:, None, None], marginal(p, [1, 0])[:, :, None] * marginal(p, [1, 3])[:, None, :]
    )
    with pytest.raises(ValueError, match="in common"):
        net.separated(["a"], ["a"])
    with pytest.raises(ValueError, match="not in the network"):
        net.separated(["a"], ["z"])
    with pytest.raises(ValueError, match="no variable 'z'"):
        net.markov_blanket("z")
    with pytest.raises(ValueError, match="2 states, and 3"):
        MarkovNetwork([Factor(["a"], [1, 1]), Factor(["a"], [1, 1, 1])])


# ------------------------------------------------------------------ files


def test_uai_files_round_trip(tmp_path):
    rng = np.random.default_rng(1)
    for _ in range(10):
        graph = random_graph(rng, n=5, zeros=0.2, largest=4)
        write_uai(graph, tmp_path / "m.uai")
        np.testing.assert_allclose(joint(read_uai(tmp_path / "m.uai")), joint(graph))
        assert FactorGraph.read_uai(tmp_path / "m.uai").n_factors == graph.n_factors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.uai"]
    write_uai_evidence({3: 1, 0: 0}, tmp_path / "m.evid")
    assert read_uai_evidence(tmp_path / "m.evid") == {3: 1, 0: 0}
    (tmp_path / "m.evid").write_text("1\n2 3 1 0 0\n")
    assert read_uai_evidence(tmp_path / "m.evid") == {3: 1, 0: 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the file ends where MARKOV or BAYES"),
        ("TREE\n", ":1: a UAI file begins with MARKOV or BAYES, found 'TREE'"),
        ("MARKOV\n2\n2 x\n", ":3: the number of states of variable 1 should be an integer"),
        ("MARKOV\n1\n0\n", ":3: the number of states of variable 0 should be from 1"),
        ("MARKOV\n2\n2 2\n1\n2 0 5\n", ":5: a variable of factor 0 should be from 0 to 1, found 5"),
        ("MARKOV\n2\n2 2\n1\n2 0 0\n", ":5: factor 0 has a variable twice"),
        ("MARKOV\n1\n2\n1\n1 0\n3\n1 1 1\n", ":6: factor 0 over [0] has 2 entries, the file says 3"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1\n", ":6: factor 0 has 2 entries, but only 1 words follow"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 -1\n", ":7: an entry of factor 0 should be finite and at least 0"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 1\n9\n", ":8: nothing should follow"),
        ("MARKOV\n2\n2 2\n1\n1 0\n", ":5: the file ends where the number of entries of factor 0"),
    ],
)
def test_a_malformed_uai_file_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "bad.uai"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        read_uai(path)
    assert f"{path}{message}" in str(error.value)


def test_factors_can_be_added_to_a_graph_from_a_file(tmp_path):
    (tmp_path / "m.uai").write_text("\ufeffbayes 2\r\n2 3\r3 1 0 0 2 1 0\n2 .25 +75e-2 1 2 6 1 2 3 4 5 6")
    graph = read_uai(tmp_path / "m.uai")
    table = np.array([[1.0, 2], [3, 4], [5, 6]])
    expected = 2 * np.array([0.25, 0.75])[:, None] * table.T
    np.testing.assert_allclose(joint(graph), expected)
    assert graph.n_factors == 3
    assert [scopes.tolist() for scopes, _ in graph.blocks] == [[[0]], [[]], [[1, 0]]]
    graph.add_factors([[1]], [1.0, 0.0, 2.0])
    np.testing.assert_allclose(joint(graph), expected * [1, 0, 2])
    assert graph.n_factors == 4


def test_joint_probabilities_with_evidence_equal_enumeration():
    rng = np.random.default_rng(5)
    for _ in range(12):
        graph = random_graph(rng, n=5, largest=4)
        shared = rng.random((2, 2)) + 0.1
        twos = np.flatnonzero(graph.cardinalities == 2)
        if len(twos) > 2:
            graph.add_factors(np.stack([twos[:-1], twos[1:]], axis=1), shared)
        known = rng.permutation(5)[:2]
        evidence = {int(v): int(rng.integers(graph.cardinalities[v])) for v in known}
        weights = joint(graph)
        place = tuple(evidence.get(v, slice(None)) for v in range(5))
        masked = np.zeros_like(weights)
        masked[place] = weights[place]
        result = infer(graph, evidence=evidence)
        np.testing.assert_allclose(result.log_partition, np.log(masked.sum()))
        masked /= masked.sum()
        for factor, found in zip(graph.factors, result.factor_marginals, strict=True):
            np.testing.assert_allclose(found, marginal(masked, list(factor.variables)), atol=1e-12)


def test_malformed_evidence_is_refused(tmp_path):
    for text, message in [
        ("2 0 1", "need 4 numbers"),
        ("3 1 0 0", "one set"),
        ("2 0 1 0 1", "twice"),
        ("1 0 x", "integer"),
    ]:
        (tmp_path / "e").write_text(text)
        with pytest.raises(ValueError, match=f"e:1: .*{message}"):
            read_uai_evidence(tmp_path / "e")
    (tmp_path / "e").write_text("")
    assert read_uai_evidence(tmp_path / "e") == {}


GOOD = """network test { property author = me ; }
// a comment
variable a { type discrete [ 2 ] { yes, no }; }
variable b { type discrete [ 3 ] { lo, mid, hi }; /* another
comment */ }
probability ( a ) { table 0.2, 0.8; }
probability ( b | a ) {
  (yes) 0.1, 0.2, 0.7;
  default 0.5, 0.25, 0.25;
}
"""


def test_bif_files_are_read_and_written(tmp_path):
    path = tmp_path / "net.bif"
    path.write_text(GOOD)
    net = BayesianNetwork.read(path)
    assert net.states == {"a": ("yes", "no"), "b": ("lo", "mid", "hi")}
    assert net.tables["b"].tolist() == [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    path.write_text(
        GOOD.replace("  (yes) 0.1, 0.2, 0.7;\n  default 0.5, 0.25, 0.25;", "table 0.1 0.5 0.2 0.25 0.7 0.25;")
    )
    assert (BayesianNetwork.read(path).tables["b"] == net.tables["b"]).all()
    for seed in range(5):
        made = random_network(np.random.default_rng(seed), 5)
        made.write(path)
        again = BayesianNetwork.read(path)
        np.testing.assert_allclose(joint(again.factor_graph), joint(made.factor_graph), atol=1e-15)
    with pytest.raises(ValueError, match="cannot hold the name"):
        BayesianNetwork({"a b": 2}, {}, {"a b": COIN}).write(path)


def test_a_bif_file_may_name_children_first_and_rows_in_any_order(tmp_path):
    path = tmp_path / "net.bif"
    path.write_bytes(
        b'\xef\xbb\xbfnetwork "x y" { property a "b; c" ; }\r\n'
        b'variable c { type discrete[3] { "s 0" s1, s2 }; property p; }\r'
        b"variable a { type discrete [ 2 ] { t, f }; } variable b { type discrete [ 10 ] { 0,1,2,3,4,5,6,7,8,9 }; }\n"
        b"probability ( c | b, a ) { (9, f) .5 +0.25, 25e-2; default 0, 0, 1.; (0, t) 1 0 0; (9, f) 0, 1, 0; }\n"
        b"probability ( a | b ) { default 0.5, 0.5; }probability(b){table 1 0 0 0 0 0 0 0 0 0;// end\n}"
    )
    net = BayesianNetwork.read(path)
    assert net.names == ("c", "a", "b")
    assert net.parents == {"c": ("b", "a"), "a": ("b",), "b": ()}
    assert net.states["c"] == ("s 0", "s1", "s2")
    expected = np.tile([0.0, 0.0, 1.0], (10, 2, 1))
    expected[9, 1], expected[0, 0] = [0, 1, 0], [1, 0, 0]  # the last row of a combination counts
    assert (net.tables["c"] == expected).all()
    assert not net.tables["c"].flags.writeable
    again = pickle.loads(pickle.dumps(net))
    assert (again.tables["c"] == expected).all()
    assert infer(again, evidence={"a": "f"}).log_partition == pytest.approx(np.log(0.5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"network x {\r\n}\rvariable a { /* open", ":3: a comment that begins here does not end"),
        (b'network x {\n}\nvariable "a { }', ":3: a quotation mark that begins here does not end on its line"),
        (b"variable a { type discrete [0] { }; }", ":1: variable 'a' needs at least one state"),
        (b"variable a { type discrete [2] { x, x }; }", ":1: variable 'a' has a state twice: 'x'"),
        (b"variable \xff { type discrete [1] { \xfe, \xfd }; }", "has [ 1 ] states, but 2 are named"),
        (b"variable \xff { type discrete [2] { \xfe, \xfd }; }", "has a state twice"),
        (GOOD.replace("( b | a )", "( b | b )").encode(), ":7: the parents of 'b' must be different"),
        (GOOD.replace("( a ) { table 0.2, 0.8; }", "( a | b ) { default .5 .5; }").encode(), "cycle among 'a', 'b'"),
        (GOOD.replace("default", "(no)").replace("(yes) 0.1, 0.2, 0.7;", "(no) 1 0 0;").encode(), "no row for a=yes"),
        (
            GOOD.replace("default 0.5, 0.25, 0.25", "table 1 2").encode(),
            ":9: the table of 'b' needs 6 entries, found 2",
        ),
        (GOOD.replace("default", "table 1 1 0 0 0 0; (no)").encode(), ":9: the table of 'b' was given whole"),
        (GOOD.replace("0.1, 0.2, 0.7", "0.1, nan, 0.7").encode(), ":8: expected a probability, found 'nan'"),
        (GOOD.replace("0.1, 0.2, 0.7", "0.1, 1e999, 0.7").encode(), ":8: a probability must be finite"),
    ],
)
def test_further_malformed_bif_files_are_refused(tmp_path, text, message):
    (tmp_path / "bad.bif").write_bytes(text)
    with pytest.raises(ValueError, match=r"bad\.bif:") as error:
        BayesianNetwork.read(tmp_path / "bad.bif")
    assert message in str(error.value)


def test_a_small_file_does_not_ask_for_a_large_table(tmp_path):
    names = [f"v{i}" for i in range(60)]
    lines = [f"variable {v} {{ type discrete [ 2 ] {{ a, b }}; }}" for v in names]
    lines.append(f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}")
    (tmp_path / "large.bif").write_text("\n".join(lines))
    with pytest.raises(
        ValueError, match=r"large\.bif:61: the table of 'v0' has 1.15292e.18 entries, more than can be read"
    ):
        BayesianNetwork.read(tmp_path / "large.bif")
    (tmp_path / "large.uai").write_text(f"MARKOV 60 {'2 ' * 60} 1 60 {' '.join(map(str, range(60)))} {1 << 56} 1 2")
    with pytest.raises(ValueError, match=r"large.uai:1: factor 0 over .* has 1.15292e.18 entries, the file says"):
        read_uai(tmp_path / "large.uai")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("network test", "web test", ":1: expected network, variable or probability, found 'web'"),
        ("[ 2 ]", "[ 3 ]", ":3: variable 'a' has [ 3 ] states, but 2 are named"),
        ("type discrete [ 3 ]", "type real [ 3 ]", ":4: expected 'discrete', found 'real'"),
        ("( b | a )", "( b | c )", ":7: there is no variable 'c'"),
        ("(yes)", "(maybe)", ":8: variable 'a' has no state 'maybe'"),
        ("(yes)", "(yes, yes)", ":8: 'b' has 1 parents, but the row names 2 states"),
        ("0.1, 0.2, 0.7", "0.1, 0.9", ":8: 'b' has 3 states, but the row has 2 probabilities"),
        ("0.1, 0.2, 0.7", "0.1, 0.2, 0.8", ":8: the probabilities of 'b' must sum to 1, they sum to 1.1"),
        ("0.1, 0.2, 0.7", "0.1, x, 0.7", ":8: expected a probability, found 'x'"),
        ("0.1, 0.2, 0.7", "-0.1, 0.4, 0.7", ":8: a probability must be finite and at least 0"),
        ("  default 0.5, 0.25, 0.25;\n", "", ":9: the table of 'b' has no row for a=no"),
        ("table 0.2, 0.8", "table 0.2", ":6: the table of 'a' needs 2 entries, found 1"),
        ("probability ( a ) { table 0.2, 0.8; }", "", "variable 'a' has no table"),
        ("variable b", "variable a", ":4: variable 'a' appears twice"),
        ("0.25, 0.25;\n}", "0.25, 0.25;", ":9: the file ends where"),
    ],
)
def test_a_malformed_bif_file_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in GOOD
    path = tmp_path / "bad.bif"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        BayesianNetwork.read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def refused_or_read(read, path, text: bytes) -> bool:
    """Whether a file is read; where it is not, the error is a ValueError that names the file."""
    path.write_bytes(text)
    try:
        read(path)
        return True
    except ValueError as error:
        message = str(error)
    assert str(path) in message
    return False


def test_files_cut_off_anywhere_are_refused_or_whole(tmp_path):
    write_uai(random_graph(np.random.default_rng(3), n=4, zeros=0.2, largest=3), tmp_path / "m.uai")
    whole = (tmp_path / "m.uai").read_bytes()
    read = [refused_or_read(read_uai, tmp_path / "cut.uai", whole[:end]) for end in range(len(whole) + 1)]
    assert read[-1]
    assert not any(read[: len(whole.rstrip()) // 2])
    text = GOOD.encode()
    read = [refused_or_read(BayesianNetwork.read, tmp_path / "cut.bif", text[:end]) for end in range(len(text) + 1)]
    assert read[-1]
    assert not any(read[: len(text.rstrip())])
    evidence = b"3 1 0 5 1 2 0"
    for end in range(len(evidence) + 1):
        refused_or_read(read_uai_evidence, tmp_path / "cut.evid", evidence[:end])


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_files_with_wrong_bytes_are_refused_or_read(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    uai = b"MARKOV\n3\n2 3 2\n2\n2 0 1\n1 2\n\n6\n1 2 3 4 5 6\n2\n0.5 1\n"
    for name, text, read in (("x.uai", uai, read_uai), ("x.bif", GOOD.encode(), BayesianNetwork.read)):
        broken = bytearray(text)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(broken) - 1))
            broken[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        refused_or_read(read, folder / name, bytes(broken))
