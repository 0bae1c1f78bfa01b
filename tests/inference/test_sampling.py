"""Chains have the model as their stationary distribution; one sweep is what its definition says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import _core
from mercer.inference import (
    Factor,
    FactorGraph,
    effective_sample_size,
    grid_edges,
    infer,
    metropolis_hastings,
    r_hat,
)


def assignments(graph: FactorGraph) -> np.ndarray:
    return np.array(list(itertools.product(*[range(c) for c in graph.cardinalities])), np.int32)


def distribution(graph: FactorGraph) -> np.ndarray:
    scores = graph.compiled.score(assignments(graph))
    p = np.exp(scores - scores.max())
    return p / p.sum()


def binary(seed: int = 0) -> FactorGraph:
    random = np.random.default_rng(seed)
    return FactorGraph(
        [2, 2, 2], unary=random.normal(size=(3, 2)), edges=[[0, 1], [1, 2], [0, 1]],
        pairwise=random.normal(size=(3, 2, 2)), log=True,
    )  # fmt: skip


def mixed(seed: int = 0) -> FactorGraph:
    """Variables with two and three states, a factor over three of them, a few zeros."""
    random = np.random.default_rng(seed)
    graph = FactorGraph([2, 3, 2], unary={1: [1.0, 2.0, 0.5]})
    graph.add_factors([[0, 1, 2]], random.random((2, 3, 2)) + 0.1)
    return graph.add(Factor([0, 2], [[1.0, 0.0], [2.0, 3.0]]))


def equal(seed: int = 0) -> FactorGraph:
    """Two states, and one weight for all pairs: spins in bytes, with thresholds by counts."""
    random = np.random.default_rng(seed)
    table = [[0.4, -0.4], [-0.4, 0.4]]
    return FactorGraph([2, 2, 2], unary=random.normal(size=(3, 2)), edges=[[0, 1], [1, 2]], pairwise=table, log=True)


def conditional(graph: FactorGraph, block: list[int]) -> np.ndarray:
    """The exact transition matrix of drawing a block from its conditional distribution."""
    X, p = assignments(graph), distribution(graph)
    others = [i for i in range(X.shape[1]) if i not in block]
    same = (X[:, None, others] == X[None, :, others]).all(axis=2)
    weights = same * p[None, :]
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), np.eye(len(X)))


def metropolis(graph: FactorGraph, i: int) -> np.ndarray:
    """The exact transition matrix of offering variable i one of its other states, three times out of four."""
    X, p = assignments(graph), distribution(graph)
    others = [k for k in range(X.shape[1]) if k != i]
    T = np.zeros((len(X), len(X)))
    for a in range(len(X)):
        for b in range(len(X)):
            if a != b and (X[a, others] == X[b, others]).all():
                taken = 0.0 if p[b] == 0 else 1.0 if p[a] == 0 else min(1.0, p[b] / p[a])
                T[a, b] = 0.75 * taken / (graph.cardinalities[i] - 1)
        T[a, a] = 1.0 - T[a].sum()
    return T


KERNELS = {
    "gibbs, two states": (binary(), "gibbs", [], [[0], [1], [2]]),
    "colours": (binary(), "colours", [], [[0], [1], [2]]),
    "gibbs, mixed": (mixed(), "gibbs", [], [[0], [1], [2]]),
    "blocks": (mixed(), "gibbs", [[2, 0]], [[2, 0], [1]]),
    "metropolis": (mixed(), "metropolis", [], None),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_in_detailed_balance_and_a_sweep_is_their_product(name):
    graph, kind, blocks, order = KERNELS[name]
    p = distribution(graph)
    steps = [metropolis(graph, i) for i in range(3)] if order is None else [conditional(graph, b) for b in order]
    possible = p > 0
    for T in steps:
        flow = p[:, None] * T
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
        np.testing.assert_allclose(T.sum(axis=1), 1.0)
    if kind == "colours":  # greedy colours: 0 and 2 share no factor
        steps = [steps[0] @ steps[2], steps[1]]
    sweep = np.linalg.multi_dot(steps) if len(steps) > 1 else steps[0]
    X, n = assignments(graph), 20_000
    for at in np.flatnonzero(possible)[[0, 3, -1]]:
        start = np.ascontiguousarray(np.tile(X[at], (n, 1)))
        sampler = _core.inference.Sampler(graph.compiled.core, start, 1, kind, blocks)
        sampler.run(np.ones(1), 0, None, None, False, 2)
        reached = sampler.states().reshape(n, -1)
        share = np.array([(reached == x).all(axis=1).mean() for x in X])
        np.testing.assert_allclose(share, sweep[at], atol=4.5 * np.sqrt(0.25 / n))


def at_temperature(graph: FactorGraph, temperature: float) -> FactorGraph:
    """p(x)^(1 / T) as a graph of its own."""
    scores = graph.compiled.score(assignments(graph)).reshape(graph.cardinalities) / temperature
    return FactorGraph(graph.cardinalities).add(Factor(list(range(graph.n_variables)), scores, log=True))


def assert_transitions(path: np.ndarray, T: np.ndarray, p: np.ndarray) -> None:
    """Steps along paths (chains × time) are as frequent as the matrix says, and none leads to the impossible."""
    met = np.zeros_like(T)
    np.add.at(met, (path[:, :-1].ravel(), path[:, 1:].ravel()), 1.0)
    assert not met[:, p == 0].any()
    rows = met.sum(axis=1, keepdims=True)
    assert (np.abs(met - rows * T) <= 5 * np.sqrt(rows * T * (1 - T)) + 5).all()


FIXED = {
    "gibbs": (mixed(), "gibbs", [], [[0], [1], [2]]),
    "blocks": (mixed(), "gibbs", [[2, 0]], [[2, 0], [1]]),
    "metropolis": (mixed(), "metropolis", [], None),
    "colours": (binary(), "colours", [], [[0], [2], [1]]),
    "colours, equal weights": (equal(), "colours", [], [[0], [2], [1]]),
    "colours, equal weights that repel": (
        FactorGraph([2] * 4, unary=[[1, 2]] * 4, edges=[[0, 1], [0, 2], [0, 3]], pairwise=[[1, 3], [3, 1]]),
        "colours", [], [[0], [1], [2], [3]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("temperature", [0.6, 2.5])
@pytest.mark.parametrize("name", FIXED)
def test_sweeps_at_a_fixed_temperature_have_their_transition_matrix(name, temperature):
    """What annealing does while the temperature stands still; every kernel, from every state, over many sweeps."""
    graph, kind, blocks, order = FIXED[name]
    there = at_temperature(graph, temperature)
    p, X = distribution(there), assignments(graph)
    n = graph.n_variables
    steps = [metropolis(there, i) for i in range(n)] if order is None else [conditional(there, b) for b in order]
    for T in steps:
        flow = p[:, None] * T
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
    sweep = np.linalg.multi_dot(steps)
    chains, sweeps = 1000, 16
    start = np.ascontiguousarray(np.tile(X[p > 0], (chains, 1)))
    sampler = _core.inference.Sampler(graph.compiled.core, start, 3, kind, blocks)
    samples = np.empty((len(start), sweeps, n), np.int32)
    sampler.run(np.full(sweeps, 1 / temperature), 1, samples, np.empty((len(start), sweeps)), False, 2)
    path = np.concatenate([start[:, None], samples], axis=1)
    assert_transitions(np.ravel_multi_index(np.moveaxis(path, -1, 0), graph.cardinalities), sweep, p)


def test_spins_with_equal_weights_collect_the_conditional_probabilities():
    """Marginals from counts of neighbours, flushed more than once, are means over what was seen."""
    grid = FactorGraph(np.full(9, 2), unary=np.random.default_rng(0).normal(size=(9, 2)), edges=grid_edges((3, 3)),
                       pairwise=[[0.3, -0.3], [-0.3, 0.3]], log=True)  # fmt: skip
    sweeps = 1000
    sampler = _core.inference.Sampler(grid.compiled.core, np.zeros((1, 9), np.int32), 0, "colours", [])
    samples = np.empty((1, sweeps, 9), np.int32)
    sampler.run(np.ones(sweeps), 1, samples, np.empty((1, sweeps)), True, 1)
    totals, swept = sampler.totals()
    assert swept.tolist() == [sweeps]
    # The second colour is drawn given the first of the same sweep: its conditionals can be computed from the samples.
    x = samples[0]
    for i in (1, 3, 5, 7):
        both = np.stack([np.where(np.arange(9) == i, k, x) for k in (0, 1)])
        scores = np.stack([grid.compiled.score(np.ascontiguousarray(b, np.int32)) for b in both])
        expected = 1 / (1 + np.exp(scores[0] - scores[1]))
        np.testing.assert_allclose(totals.reshape(9, 2)[i], [sweeps - expected.sum(), expected.sum()], rtol=1e-9)


def test_forced_spins_stay_where_they_are():
    unary = np.zeros((100, 2))
    unary[::3, 0], unary[1::3, 1] = -np.inf, -np.inf
    grid = FactorGraph(
        np.full(100, 2), unary=np.exp(unary), edges=grid_edges((10, 10)), pairwise=[[1.0, 5.0], [5.0, 1.0]]
    )
    samples = infer(grid, "gibbs", schedule="chromatic", n_samples=3000, random_state=0).samples
    assert (samples[..., ::3] == 1).all()
    assert (samples[..., 1::3] == 0).all()
    assert 0 < samples[..., 2::3].mean() < 1


def test_total_variation_of_six_variables_after_a_hundred_thousand_samples():
    """A Gibbs draw is never rejected."""
    random = np.random.default_rng(4)
    graph = FactorGraph([2] * 6, unary=random.normal(size=(6, 2)), edges=grid_edges((2, 3)),
                        pairwise=random.normal(size=(7, 2, 2)) * 0.5, log=True)  # fmt: skip
    p, X = distribution(graph), assignments(graph)
    for method, options in (("gibbs", {}), ("gibbs", {"schedule": "sequential"}), ("metropolis", {})):
        result = infer(graph, method, n_samples=25_000, thin=2, random_state=2, **options)
        number = np.ravel_multi_index(np.moveaxis(result.samples.reshape(-1, 6), -1, 0), graph.cardinalities)
        share = np.bincount(number, minlength=len(X)) / len(number)
        assert 0.5 * np.abs(share - p).sum() < 0.02
        assert result.extra["acceptance"] == 1.0 if method == "gibbs" else 0 < result.extra["acceptance"] < 1


def test_metropolis_hastings_has_its_transition_matrix():
    """With Hastings' correction a proposal that is not symmetric is in detailed balance; its matrix is what runs."""
    graph = mixed(2)
    X, p = assignments(graph), distribution(graph)
    q = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]])  # of the middle variable; the others flip
    numbers = {tuple(x): k for k, x in enumerate(X.tolist())}
    Q = np.zeros((len(X), len(X)))
    for a, x in enumerate(X.tolist()):
        for i in range(3):
            for k in range(3 if i == 1 else 2):
                y = [*x[:i], k, *x[i + 1 :]]
                Q[a, numbers[tuple(y)]] += (q[x[1], k] if i == 1 else 0.5) / 3
    taken = np.zeros_like(Q)
    offered = (Q > 0) & (p[:, None] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        taken[offered] = np.minimum(1.0, (p[None, :] * Q.T / (p[:, None] * Q))[offered])
    T = Q * taken
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, 1.0 - T.sum(axis=1))
    flow = p[:, None] * T
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)

    def propose(x, random):
        y, i = x.copy(), random.integers(3)
        y[i] = random.choice(3, p=q[x[1]]) if i == 1 else random.integers(2)
        ratio = np.log(q[y[1], x[1]] / q[x[1], y[1]]) if i == 1 else 0.0
        return y, float(ratio)

    drawn = metropolis_hastings(graph, propose, n_samples=8_000, start=[1, 0, 0], random_state=0)["samples"]
    assert_transitions(np.ravel_multi_index(drawn.T, graph.cardinalities)[None], T, p)


@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
@pytest.mark.parametrize("make", [binary, mixed, equal])
def test_marginals_come_near_the_exact_ones(method, make):
    graph = make(3)
    result = infer(graph, method, n_samples=20_000, random_state=0)
    X, p = assignments(graph), distribution(graph)
    for i in range(3):
        exact = [p[X[:, i] == k].sum() for k in range(graph.cardinalities[i])]
        np.testing.assert_allclose(result.marginals[i], exact, atol=0.02)
        np.testing.assert_allclose(
            (result.samples[..., i].reshape(-1, 1) == np.arange(len(exact))).mean(axis=0), exact, atol=0.03
        )
    assert result.converged
    assert result.extra["r_hat"] < 1.02
    assert result.extra["effective_sample_size"] > 2000
    assert np.isclose(result.map_value, graph.compiled.score(X).max())


def test_a_grid_of_spins_agrees_with_exact_marginals():
    random = np.random.default_rng(0)
    graph = FactorGraph(
        np.full(36, 2), unary=random.normal(size=(36, 2)) * 0.5, edges=grid_edges((6, 6)),
        pairwise=[[0.3, -0.3], [-0.3, 0.3]], log=True,
    )  # fmt: skip
    exact = np.asarray(infer(graph, "elimination").marginals)
    for schedule in ("chromatic", "sequential"):
        result = infer(graph, "gibbs", schedule=schedule, n_samples=8_000, random_state=1)
        np.testing.assert_allclose(np.asarray(result.marginals), exact, atol=0.025)


def test_colours_on_a_graph_without_order():
    """Neighbours that do not lie side by side are read place by place."""
    random = np.random.default_rng(0)
    edges = np.array([[a, b] for a in range(40) for b in range(a + 1, 40) if random.random() < 0.15])
    graph = FactorGraph(
        np.full(40, 2), unary=random.normal(size=(40, 2)), edges=edges,
        pairwise=random.normal(size=(len(edges), 2, 2)) * 0.3, log=True,
    )  # fmt: skip
    both = [
        np.asarray(infer(graph, "gibbs", schedule=s, n_samples=8_000, random_state=1).marginals)
        for s in ("chromatic", "sequential")
    ]
    np.testing.assert_allclose(both[0], both[1], atol=0.035)


def test_the_same_seed_gives_the_same_samples_for_any_number_of_threads():
    grid = FactorGraph(np.full(40_000, 2), edges=grid_edges((200, 200)), pairwise=[[2.0, 1.0], [1.0, 2.0]])
    for graph, options in ((binary(), {}), (mixed(), {}), (grid, {"n_chains": 1, "n_samples": 3, "burn_in": 2})):
        runs = [infer(graph, "gibbs", random_state=5, n_jobs=n, **options).samples for n in (1, 2, 3)]
        np.testing.assert_array_equal(runs[0], runs[1])
        np.testing.assert_array_equal(runs[0], runs[2])
    assert (infer(binary(), "gibbs", random_state=5).samples != infer(binary(), "gibbs", random_state=6).samples).any()


def test_annealing_finds_the_best_assignment():
    random = np.random.default_rng(0)
    for seed in range(3):
        graph = FactorGraph(
            np.full(12, 3), unary=random.normal(size=(12, 3)), edges=grid_edges((3, 4)),
            pairwise=random.normal(size=(17, 3, 3)), log=True,
        )  # fmt: skip
        best = infer(graph, "elimination", task="map").map_value
        for move in ("metropolis", "gibbs"):
            result = infer(graph, "annealing", task="map", move=move, random_state=seed)
            assert np.isclose(result.map_value, best)
            assert (np.diff(result.history["value"]) >= 0).all()


def test_evidence_and_hard_constraints_hold_in_every_sample():
    graph = mixed()
    result = infer(graph, "gibbs", evidence={1: 2}, n_samples=200, random_state=0)
    assert (result.samples[..., 1] == 2).all()
    assert not ((result.samples[..., 0] == 0) & (result.samples[..., 2] == 1)).any()


def test_your_own_proposal_reaches_the_model():
    graph = mixed(1)
    X, p = assignments(graph), distribution(graph)

    def jump(x, random):  # from a distribution that prefers state 0: not symmetric
        y = x.copy()
        i = random.integers(3)
        q = np.array([0.6, 0.4] if i != 1 else [0.6, 0.2, 0.2])
        y[i] = random.choice(len(q), p=q)
        return y, float(np.log(q[x[i]]) - np.log(q[y[i]]))

    drawn = metropolis_hastings(graph, jump, n_samples=8_000, burn_in=100, start=[1, 0, 0], random_state=0)
    share = np.array([(drawn["samples"] == x).all(axis=1).mean() for x in X])
    np.testing.assert_allclose(share, p, atol=0.03)
    assert 0.2 < drawn["acceptance"] < 0.95
    np.testing.assert_allclose(drawn["scores"][:5], graph.compiled.score(drawn["samples"][:5]))


def test_diagnostics_tell_good_chains_from_bad_ones():
    random = np.random.default_rng(0)
    good = random.normal(size=(4, 2000))
    assert abs(r_hat(good) - 1) < 0.01
    assert 0.8 * 8000 < effective_sample_size(good) < 1.3 * 8000
    walk = np.cumsum(random.normal(size=(4, 2000)), axis=1)
    assert r_hat(walk) > 1.5
    assert effective_sample_size(walk) < 60
    assert np.isnan(r_hat(np.ones((2, 100))))  # what never changes is no evidence
    assert np.isnan(effective_sample_size(np.ones((2, 100))))
    assert np.isnan(r_hat(np.ones((2, 3))))
    assert r_hat([[0.0] * 10, [1.0] * 10]) == np.inf
    with pytest.raises(ValueError, match="NaN"):
        r_hat([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="chains, samples"):
        effective_sample_size(np.zeros((2, 2, 2)))


def test_chains_that_do_not_agree_warn_with_r_hat_and_advice():
    stuck = FactorGraph(np.full(100, 2), edges=grid_edges((10, 10)), pairwise=[[3.0, -3.0], [-3.0, 3.0]], log=True)
    with pytest.warns(ConvergenceWarning, match=r"R-hat is [0-9.e+]+, above 1.1.*Raise burn_in and n_samples"):
        result = infer(stuck, "gibbs", n_samples=50, random_state=0)
    assert not result.converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"thin": 0}, "thin"),
        ({"burn_in": -1}, "burn_in"),
        ({"n_chains": 0}, "n_chains"),
        ({"schedule": "random"}, "schedule"),
        ({"schedule": "chromatic"}, "two states"),
        ({"schedule": "chromatic", "blocks": [[0]]}, "one after another"),
        ({"blocks": [[0, 0]]}, "twice"),
        ({"blocks": [[7]]}, "not there"),
        ({"blocks": [[]]}, "at least one"),
        ({"start": "zeros"}, "start"),
        ({"start": [0, 9, 0]}, "states"),
        ({"keep_samples": "no"}, "keep_samples"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        infer(mixed(), "gibbs", **options)


def test_bad_annealing_and_proposals_are_refused():
    with pytest.raises(ValueError, match="hottest must not be below"):
        infer(mixed(), "annealing", task="map", hottest=0.1, coldest=1.0)
    with pytest.raises(ValueError, match="propose must be callable"):
        metropolis_hastings(mixed(), None)
    with pytest.raises(ValueError, match="probability 0"):
        metropolis_hastings(mixed(), lambda x, r: (x, 0.0), start=[0, 0, 1])
    with pytest.raises(ValueError, match="NaN"):
        metropolis_hastings(mixed(), lambda x, r: (x, np.nan), start=[1, 0, 0])


def test_compiled_sampler_checks_its_arrays():
    core = binary().compiled.core
    start = np.zeros((1, 3), np.int32)
    sampler = _core.inference.Sampler(core, start, 0, "gibbs", [])
    with pytest.raises(ValueError, match="keep"):
        sampler.run(np.ones(2), 0, np.zeros((1, 2, 3), np.int32), None, False, 1)
    with pytest.raises(ValueError, match="shape"):
        sampler.run(np.ones(2), 1, np.zeros((1, 1, 3), np.int32), None, False, 1)
    with pytest.raises(ValueError, match="negative"):
        sampler.run(-np.ones(2), 0, None, None, False, 1)
    with pytest.raises(ValueError, match="kind"):
        _core.inference.Sampler(core, start, 0, "slice", [])
    with pytest.raises(ValueError, match="start"):
        _core.inference.Sampler(core, start + 5, 0, "gibbs", [])
    with pytest.raises(ValueError, match="at least one chain"):
        _core.inference.Sampler(core, start[:0], 0, "gibbs", [])
