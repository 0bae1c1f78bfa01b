"""What ``method="auto"`` takes: exact inference unless that is out of reach, and results that say how good they are."""

from __future__ import annotations

import signal
import warnings
from collections import deque

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer.inference import (
    METHODS,
    ApproximateInferenceWarning,
    BayesianNetwork,
    FactorGraph,
    JunctionTree,
    Limits,
    TreewidthError,
    ZeroProbabilityError,
    grid_edges,
    infer,
    marginal_bounds,
    triangulate,
    variable_elimination,
)
from mercer.inference.junction import make_plan
from reference.factor_graphs import ising, joint, k_best, marginal, random_graph

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def quietly(graph, method="auto", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return infer(graph, method, **options)


def coupled_chains(length: int, states: int = 12) -> tuple[FactorGraph, np.ndarray]:
    """Three chains that agree in pairs at every step, a dynamic Bayesian network; and its marginals.

    The marginals come from forward and backward sums over the joint state of the three chains.
    """
    rng = np.random.default_rng(0)
    steps = rng.dirichlet(np.full(states, 0.1), size=(3, states))
    pairs = np.exp(2.0 * rng.normal(size=(3, states, states)))
    number = np.arange(3 * length).reshape(length, 3)
    graph = FactorGraph(np.full(3 * length, states))
    for chain in range(3):
        scopes = np.stack([number[:-1, chain], number[1:, chain]], axis=1)
        graph.add_factors(scopes, steps[chain])
    for k, (a, b) in enumerate([(0, 1), (1, 2), (0, 2)]):
        graph.add_factors(number[:, [a, b]], pairs[k])
    within = np.einsum("ab,bc,ac->abc", *pairs)
    forward, backward = [within / within.sum()], [np.ones(within.shape)]
    for _ in range(length - 1):
        moved = np.einsum("abc,ax,by,cz->xyz", forward[-1], *steps, optimize=True) * within
        forward.append(moved / moved.sum())
        moved = np.einsum("xyz,ax,by,cz->abc", backward[-1] * within, *steps, optimize=True)
        backward.append(moved / moved.sum())
    truth = []
    for f, b in zip(forward, backward[::-1], strict=True):
        p = f * b / (f * b).sum()
        truth += [p.sum(axis=(1, 2)), p.sum(axis=(0, 2)), p.sum(axis=(0, 1))]
    return graph, np.array(truth)


def sparse_network(rng: np.random.Generator, n: int, states: int = 3) -> BayesianNetwork:
    """Children that are functions of their parents, but for a few with noise."""
    names = [f"v{i}" for i in range(n)]
    parents, tables = {}, {}
    for i, name in enumerate(names):
        given = [names[j] for j in sorted(rng.permutation(i)[: rng.integers(0, 3)].tolist())]
        parents[name] = given
        shape = (states,) * len(given)
        if given and rng.random() < 0.7:
            tables[name] = np.eye(states)[rng.integers(0, states, shape)]
        else:
            tables[name] = rng.dirichlet(np.ones(states), size=shape)
    return BayesianNetwork(dict.fromkeys(names, states), parents, tables)


# ---------------------------------------------------------------------------------------------- the choice


def test_auto_is_exact_where_messages_are_wrong():
    graph, truth = coupled_chains(90)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximateInferenceWarning)
        result = infer(graph)
    assert result.exact
    assert result.error == 0.0
    assert result.log_partition.kind == "exact"
    np.testing.assert_allclose(np.asarray(result.marginals), truth, atol=1e-9)
    messages = quietly(graph, "bp", max_iter=50)
    assert not messages.exact
    assert abs(np.asarray(messages.marginals) - truth).max() > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_networks_of_functions_are_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    network = sparse_network(rng, 9)
    drawn = network.sample(1, random_state=seed)[0]
    evidence = {f"v{i}": int(drawn[i]) for i in rng.permutation(9)[: seed % 4]}
    table = joint(network.factor_graph)
    for name, state in evidence.items():
        table = table * (np.arange(3) == state).reshape([-1 if f"v{i}" == name else 1 for i in range(9)])
    result = infer(network, evidence=evidence)
    assert result.exact
    assert result.log_partition == pytest.approx(np.log(table.sum()), abs=1e-9)
    for i in range(9):
        np.testing.assert_allclose(result.marginals[f"v{i}"], marginal(table, [i]), atol=1e-9)


def test_earlier_calls_change_nothing():
    def fresh():
        return ising(np.random.default_rng(3), (7, 7), 1.0, 0.2)

    limits = {"max_bytes": 1000, "max_operations": 20_000}
    for options in ({}, limits):
        alone = quietly(fresh(), **options)
        graph = fresh()
        infer(graph, "junction-tree")
        JunctionTree(graph, heuristic="min-degree")
        quietly(graph, max_bytes=500, max_operations=500)
        quietly(graph, "auto", max_operations=1e9)
        infer(graph, task="map")
        after = quietly(graph, **options)
        assert (after.method, after.reason, after.exact) == (alone.method, alone.reason, alone.exact)
        np.testing.assert_array_equal(after.marginals.flat, alone.marginals.flat)
    assert alone.method == "bp"


def test_results_beyond_the_limits_are_approximate_with_a_warning():
    graph = ising(np.random.default_rng(0), (8, 8), 0.3, 0.5)
    limits = {"max_bytes": 2000, "max_operations": 20_000}
    with pytest.warns(ApproximateInferenceWarning, match="marginals by 'bp' may be far off.*max_bytes"):
        result = infer(graph, **limits)
    assert result.method == "bp"
    assert not result.exact
    with pytest.warns(ApproximateInferenceWarning, match="best assignment by 'max-product'"):
        best = infer(graph, task="map", **limits)
    assert best.error == pytest.approx(0.0, abs=1e-6) or not best.exact
    assert best.map_value + best.error >= infer(graph, task="map").map_value - 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximateInferenceWarning)
        infer(graph, "bp")  # by name, nothing is said


def test_an_exact_method_beyond_the_limits_is_refused_with_its_cost():
    graph = ising(np.random.default_rng(0), (8, 8), 0.3, 0.5)
    for method in ("junction-tree", "elimination"):
        with pytest.raises(TreewidthError, match=r"needs .* of tables .* operations.*max_bytes=1e\+03"):
            infer(graph, method, max_bytes=1000, max_operations=2000)
    with pytest.raises(TreewidthError, match="max_bytes=1e"):
        JunctionTree(graph, max_bytes=1000)
    with pytest.raises(TreewidthError, match="max_bytes=1e"):
        variable_elimination(graph, [0, 63], max_bytes=1000, max_operations=2000)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), True, "1 GB"])
@pytest.mark.parametrize("name", ["max_bytes", "max_operations"])
def test_limits_are_numbers_above_0(name, value):
    graph = ising(np.random.default_rng(0), (3, 3), 0.3, 0.5)
    for method in ("auto", "junction-tree"):
        with pytest.raises(ValueError, match=f"{name} must be a number above 0"):
            infer(graph, method, **{name: value})


def test_limits_are_no_options_of_methods_without_tables():
    graph = ising(np.random.default_rng(0), (3, 3), 0.3, 0.5)
    with pytest.raises(TypeError, match="method 'bp' has no option 'max_bytes'"):
        infer(graph, "bp", max_bytes=1e6)


def test_the_default_limit_is_a_share_of_the_memory_of_the_machine(monkeypatch):
    monkeypatch.setattr("mercer.inference.limits._machine_bytes", lambda: 40_000.0)
    assert Limits().max_bytes == 10_000.0
    graph = ising(np.random.default_rng(0), (8, 8), 0.3, 0.5)
    assert infer(graph).extra["bytes"] <= 10_000


# ---------------------------------------------------------------------------------------------- conditioning


@pytest.mark.parametrize("zeros", [0.0, 0.25])
@few
@given(seed=SEEDS)
def test_conditioning_gives_what_enumeration_gives(zeros, seed):
    graph = random_graph(np.random.default_rng(seed), zeros=zeros)
    table = joint(graph)
    options = {"max_bytes": 90}
    if table.sum() == 0:
        with pytest.raises(ZeroProbabilityError):
            infer(graph, "junction-tree", **options)
        return
    result = infer(graph, "junction-tree", **options)
    assert result.extra["bytes"] <= 90
    assert result.log_partition == pytest.approx(np.log(table.sum()), abs=1e-9)
    for i in range(graph.n_variables):
        np.testing.assert_allclose(result.marginals[i], marginal(table, [i]), atol=1e-9)
    for factor, found in zip(graph.factors, result.factor_marginals, strict=True):
        np.testing.assert_allclose(found, marginal(table, [graph.number(v) for v in factor.variables]), atol=1e-9)
    best = infer(graph, "junction-tree", task="map", k=4, **options)
    np.testing.assert_allclose([value for _, value in best.k_best], k_best(table, 4), atol=1e-9)


def test_auto_conditions_where_memory_is_short():
    graph = ising(np.random.default_rng(1), (8, 8), 1.0, 0.3)
    whole = infer(graph)
    short = infer(graph, max_bytes=whole.extra["bytes"] / 6)
    assert whole.extra["conditioned"] == ()
    assert len(short.extra["conditioned"]) >= 2
    assert "conditioned on" in short.reason
    assert short.exact
    assert short.extra["bytes"] <= whole.extra["bytes"] / 6
    np.testing.assert_allclose(short.marginals.flat, whole.marginals.flat, atol=1e-10)
    assert short.log_partition == pytest.approx(whole.log_partition, abs=1e-9)


def test_costs_are_what_the_tables_take():
    graph = ising(np.random.default_rng(1), (6, 6), 1.0, 0.3).compiled
    plan = make_plan(graph, Limits())
    beliefs, _, _ = plan.tree.sum(graph.core)
    assert beliefs.nbytes <= plan.cost.bytes <= 2 * beliefs.nbytes
    assert plan.cost.operations >= beliefs.size


def test_ctrl_c_ends_a_long_sum():
    graph = ising(np.random.default_rng(1), (16, 16), 1.0, 0.3)  # 14 million entries
    tree = make_plan(graph.compiled, Limits()).tree

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    waiting = iter([graph.compiled.core] * 8)
    try:
        with pytest.raises(KeyboardInterrupt):
            deque(map(tree.sum, waiting), maxlen=0)  # one after another, and the interpreter looks for no signal
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert list(waiting)


# ---------------------------------------------------------------------------------------------- ranges of potentials


@pytest.mark.parametrize("scale", [1.0, 100.0, 400.0])
@pytest.mark.parametrize("seed", range(5))
def test_potentials_of_any_range_give_what_enumeration_of_logarithms_gives(scale, seed):
    rng = np.random.default_rng(seed)
    edges = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 3], [3, 4], [4, 5]]
    tables = scale * rng.normal(size=(len(edges), 3, 3))
    tables[rng.random(tables.shape) < 0.1] = -np.inf
    unary = scale * rng.normal(size=(6, 3))
    graph = FactorGraph([3] * 6, unary=unary, edges=edges, pairwise=tables, log=True)
    states = np.array(np.unravel_index(np.arange(3**6), (3,) * 6)).T
    scores = graph.compiled.score(states)
    total = np.logaddexp.reduce(scores)
    result = infer(graph, "junction-tree")
    assert result.log_partition == pytest.approx(total, rel=1e-12)
    weights = np.exp(scores - total)
    for i in range(6):
        np.testing.assert_allclose(result.marginals[i], np.bincount(states[:, i], weights, 3), atol=1e-10)


def test_a_state_that_is_rare_in_one_clique_may_decide_in_another():
    # Each factor of the chain makes state 1 exp(-300) as likely; the last one forbids state 0.
    n = 8
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    tables = np.zeros((n - 1, 2, 2))
    tables[:, 0, 1] = tables[:, 1, 0] = -np.inf
    tables[:, 1, 1] = -300.0
    tables[-1, 0, 0] = -np.inf
    tables = np.concatenate([tables, np.zeros((1, 2, 2))])
    ends = FactorGraph([2] * n, edges=[*edges, [0, 2]], pairwise=tables, log=True)
    soft = ends.compiled.with_potentials(tables=np.maximum(ends.compiled.tables, -5000.0))
    for graph in (ends.compiled, soft):
        plan = make_plan(graph, Limits())
        _, marginals, total = plan.tree.sum(graph.core)
        assert total == pytest.approx(-300.0 * (n - 1), rel=1e-12)
        np.testing.assert_allclose(marginals.reshape(n, 2)[:, 1], 1.0)


# ---------------------------------------------------------------------------------------------- impossible states


@few
@given(seed=SEEDS)
def test_states_that_zeros_rule_out_are_left_out(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, zeros=0.6)
    table = joint(graph)
    possible = graph.compiled.possible
    if table.sum() == 0:
        with pytest.raises(ZeroProbabilityError):
            infer(graph, "junction-tree")
        return
    truth = np.concatenate([marginal(table, [i]) for i in range(graph.n_variables)])
    result = infer(graph, "junction-tree", task="map", k=3)
    np.testing.assert_allclose(result.marginals.flat, truth, atol=1e-9)
    np.testing.assert_allclose([value for _, value in result.k_best], k_best(table, 3), atol=1e-9)
    assert table[tuple(result.map_states)] == pytest.approx(table.max())
    for factor, found in zip(graph.factors, result.factor_marginals, strict=True):
        np.testing.assert_allclose(found, marginal(table, [graph.number(v) for v in factor.variables]), atol=1e-9)
    if possible is not None and possible.compiled is not None:
        kept = possible.marginals(np.ones(len(possible.compiled.unary)))
        assert (truth[kept == 0] == 0).all()
        assert len(possible.compiled.unary) < len(truth)


def test_evidence_shrinks_the_domains_of_deterministic_networks():
    # Sums of two digits: a sum of 0 leaves one state of each digit, and everything below it falls into place.
    digits, n = 10, 12
    names = [f"d{i}" for i in range(n)] + [f"s{i}" for i in range(n)]
    sums = np.zeros((digits, digits, digits))
    a, b = np.meshgrid(range(digits), range(digits), indexing="ij")
    sums[a, b, np.minimum(a + b, digits - 1)] = 1.0
    parents = {f"s{i}": [f"d{i}", f"s{i - 1}" if i else f"d{n - 1}"] for i in range(n)}
    tables = {f"d{i}": np.full(digits, 1 / digits) for i in range(n)} | {f"s{i}": sums for i in range(n)}
    network = BayesianNetwork(dict.fromkeys(names, digits), parents, tables)
    before, after = infer(network), infer(network, evidence={f"s{n - 1}": 0})
    assert after.extra["size"] * 20 < before.extra["size"]
    assert after.probabilities("d3")[0] == 1.0
    assert after.log_partition == pytest.approx(-n * np.log(10))


# ---------------------------------------------------------------------------------------------- exact and error


@few
@given(seed=SEEDS, tree=st.booleans())
def test_messages_are_exact_on_trees_alone(seed, tree):
    graph = random_graph(np.random.default_rng(seed), tree=tree)
    forest = graph.compiled.is_forest
    for method in ("bp", "trw"):
        result = quietly(graph, method, tol=1e-12, max_iter=2000)
        assert result.exact == (forest and result.converged)
        if result.exact:
            assert result.error.kind == "exact"
            np.testing.assert_allclose(result.marginals.flat, infer(graph).marginals.flat, atol=1e-9)
    best = quietly(graph, "max-product", task="map")
    if forest and best.exact:
        assert best.map_value == pytest.approx(np.log(joint(graph).max()), abs=1e-9)


def test_messages_that_have_not_settled_on_a_tree_are_not_exact():
    chain = FactorGraph([2] * 30, edges=np.stack([np.arange(29), np.arange(1, 30)], 1), pairwise=[[3, 1], [1, 2]])
    assert not quietly(chain, "bp", max_iter=2).exact
    assert quietly(chain, "bp").exact


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("task", ["marginals", "map"])
def test_every_result_says_how_good_it_is(method, task):
    graph = ising(np.random.default_rng(5), (3, 3), 0.8, 0.4)
    if method == "tree":
        graph = random_graph(np.random.default_rng(5), tree=True)
    if method in ("cuts", "expansion", "swap"):
        unary = np.random.default_rng(0).random((9, 2))
        graph = FactorGraph([2] * 9, unary=unary, edges=grid_edges((3, 3)), pairwise=[[2.0, 1.0], [1.0, 2.0]])
    options = {"random_state": 0} if method in ("gibbs", "metropolis", "annealing") else {}
    result = quietly(graph, method, task=task, **options)
    truth = infer(graph, "junction-tree")
    assert isinstance(result.exact, bool)
    assert result.exact == (result.error.kind == "exact")
    assert result.error >= 0.0
    gave_marginals = task == "marginals" and "marginals" in METHODS[method].tasks
    if result.exact and gave_marginals:
        np.testing.assert_allclose(result.marginals.flat, truth.marginals.flat, atol=1e-9)
    if gave_marginals and result.error.kind == "bound":
        assert abs(result.marginals.flat - truth.marginals.flat).max() <= result.error + 1e-9
    if not gave_marginals:
        assert result.map_value <= truth.map_value + 1e-9 <= result.map_value + result.error + 2e-9


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@few
@given(seed=SEEDS, scale=st.sampled_from([0.02, 0.3, 2.0]))
def test_bounds_of_marginals_hold(zeros, seed, scale):
    graph = random_graph(np.random.default_rng(seed), zeros=zeros, scale=scale)
    table = joint(graph)
    if table.sum() == 0:
        return
    truth = np.concatenate([marginal(table, [i]) for i in range(graph.n_variables)])
    lower, upper = marginal_bounds(graph.compiled)
    assert (lower <= truth + 1e-12).all()
    assert (truth <= upper + 1e-12).all()
    assert (lower >= 0).all()
    assert (upper <= 1).all()


def test_weak_couplings_have_a_sharp_bound_and_strong_ones_an_estimate():
    weak = quietly(ising(np.random.default_rng(0), (4, 4), 0.01, 0.5), "mean-field")
    assert weak.error.kind == "bound"
    assert weak.error < 0.05
    strong = ising(np.random.default_rng(0), (4, 4), 1.0, 0.5)
    messages = quietly(strong, "bp")
    assert messages.error.kind == "estimate"
    # The region around each variable is the whole graph here: the estimate is the error itself.
    assert messages.error == pytest.approx(abs(messages.marginals.flat - infer(strong).marginals.flat).max(), abs=1e-9)


def test_estimates_see_errors_of_large_graphs():
    graph = ising(np.random.default_rng(2), (12, 12), 1.0, 0.3)
    messages = quietly(graph, "mean-field")
    truth = abs(messages.marginals.flat - infer(graph).marginals.flat).max()
    assert 0.1 * truth <= messages.error <= 3.0 * truth


def test_methods_without_marginals_of_factors_say_so():
    graph = ising(np.random.default_rng(0), (3, 3), 0.3, 0.5)
    drawn = quietly(graph, "gibbs", n_samples=20, random_state=0)
    assert len(drawn.marginals) == 9
    assert drawn.factor_marginals is not None  # shares of the samples
    with pytest.raises(AttributeError, match="icm gives no marginals of factors: use method='bp' or an exact method"):
        infer(graph, "icm", task="map").factor_marginals  # noqa: B018
    forgotten = quietly(graph, "gibbs", n_samples=20, random_state=0, keep_samples=False)
    np.testing.assert_array_equal(forgotten.marginals.flat, drawn.marginals.flat)
    with pytest.raises(AttributeError, match="gibbs gives no marginals of factors"):
        forgotten.factor_marginals  # noqa: B018


# ---------------------------------------------------------------------------------------------- orders and queries


@pytest.mark.parametrize("side", [5, 9])
def test_the_search_for_an_order_beats_single_rules(side):
    graph = ising(np.random.default_rng(0), (side, side), 1.0, 0.3)
    rules = ("min-fill", "min-degree", "min-weight", "weighted-min-fill")
    sizes = [JunctionTree(graph, heuristic=rule).size for rule in rules]
    assert JunctionTree(graph).size <= min(sizes)


def test_weighted_rules_avoid_variables_with_many_states():
    # A cycle of four: the chord joins the two variables with few states.
    cards = {"a": 50, "b": 2, "c": 50, "d": 2}
    for heuristic in ("auto", "min-weight", "weighted_min_fill"):
        chords, _ = triangulate(["ab", "bc", "cd", "da"], cardinalities=cards, heuristic=heuristic)
        assert chords in ([("b", "d")], [("d", "b")])


def test_the_search_ends_for_variables_without_factors():
    graph = FactorGraph([1000, 1000, 2])
    assert JunctionTree(graph).size == 2002


def test_equal_graphs_get_equal_orders():
    first, second = (JunctionTree(ising(np.random.default_rng(0), (9, 9), 1.0, 0.3)) for _ in range(2))
    assert first.cliques == second.cliques


def test_barren_nodes_are_left_out_of_queries():
    side = 12  # a grid whose nodes depend on those above and to the left: no tree of cliques fits the limit
    names = np.array([[f"{r},{c}" for c in range(side)] for r in range(side)])
    parents = {
        names[r, c]: [names[q] for q in ((r - 1, c), (r, c - 1)) if min(q) >= 0]
        for r in range(side)
        for c in range(side)
    }
    rng = np.random.default_rng(0)
    tables = {v: rng.dirichlet([1, 1], size=(2,) * len(given)) for v, given in parents.items()}
    network = BayesianNetwork(dict.fromkeys(parents, 2), parents, tables)
    with pytest.raises(TreewidthError):
        infer(network, "junction-tree", max_bytes=4000, max_operations=10_000)
    found = variable_elimination(network, ["0,0", "1,1"], max_bytes=4000, max_operations=10_000).table
    small = {v: parents[v] for v in ("0,0", "0,1", "1,0", "1,1")}
    table = joint(BayesianNetwork(dict.fromkeys(small, 2), small, {v: tables[v] for v in small}).factor_graph)
    np.testing.assert_allclose(found, marginal(table, [0, 3]), atol=1e-12)


# ---------------------------------------------------------------------------------------------- names


def test_methods_and_heuristics_are_spelled_with_hyphens_or_underscores():
    graph = ising(np.random.default_rng(0), (3, 3), 0.3, 0.5)
    for name in ("junction_tree", "junction-tree", "mean_field", "mean-field", "chain_mean_field", "max_product"):
        assert quietly(graph, name, task=METHODS[name.replace("_", "-")].tasks[0]).method == name.replace("_", "-")
    assert not [name for name in METHODS if "_" in name]
    infer(graph, "junction_tree", heuristic="min_fill")
    with pytest.raises(ValueError, match=r"one of 'annealing'.*'junction-tree'"):
        infer(graph, "junction tree")


def test_marginals_are_a_mapping_by_name():
    graph = FactorGraph({"a": 2, "b": 3}, unary={"a": [1, 3]})
    marginals = infer(graph).marginals
    assert list(marginals) == ["a", "b"]
    assert list(marginals.keys()) == ["a", "b"]
    for row, expected in zip(marginals.values(), ([0.25, 0.75], [1 / 3, 1 / 3, 1 / 3]), strict=True):
        np.testing.assert_allclose(row, expected, rtol=1e-14)
    assert dict(marginals)["a"].tolist() == marginals["a"].tolist()
    assert {name: len(row) for name, row in marginals.items()} == {"a": 2, "b": 3}
    assert "a" in marginals
    assert "c" not in marginals
    assert marginals == marginals
    numbered = infer(FactorGraph([2, 2])).marginals
    assert list(numbered) == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_of_an_assignment_that_may_not_be_the_best_is_a_bound(seed):
    """Finite, and no less than what enumeration finds above it."""
    graph = ising(np.random.default_rng(seed), (3, 3), 1.0, 0.5)
    result = infer(graph, "icm", task="map")
    assert not result.exact
    best = infer(graph, "junction-tree", task="map").map_value
    assert result.error.kind == "bound"
    assert best - result.map_value - 1e-9 <= result.error < np.inf
