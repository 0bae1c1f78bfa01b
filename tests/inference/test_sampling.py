"""Chains have the model as their stationary distribution; one sweep is what its definition says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

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


def conditional(graph: FactorGraph, block: list[int]) -> np.ndarray:
    """The exact transition matrix of drawing a block from its conditional distribution."""
    X, p = assignments(graph), distribution(graph)
    others = [i for i in range(X.shape[1]) if i not in block]
    same = (X[:, None, others] == X[None, :, others]).all(axis=2)
    weights = same * p[None, :]
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), np.eye(len(X)))


def metropolis(graph: FactorGraph, i: int) -> np.ndarray:
    """The exact transition matrix of offering variable i one of its other states."""
    X, p = assignments(graph), distribution(graph)
    others = [k for k in range(X.shape[1]) if k != i]
    T = np.zeros((len(X), len(X)))
    for a in range(len(X)):
        for b in range(len(X)):
            if a != b and (X[a, others] == X[b, others]).all():
                taken = 0.0 if p[b] == 0 else 1.0 if p[a] == 0 else min(1.0, p[b] / p[a])
                T[a, b] = taken / (graph.cardinalities[i] - 1)
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
        sampler = _core.Sampler(graph.compiled.core, start, 1, kind, blocks)
        sampler.run(np.ones(1), 0, None, None, False, 2)
        reached = sampler.states().reshape(n, -1)
        share = np.array([(reached == x).all(axis=1).mean() for x in X])
        np.testing.assert_allclose(share, sweep[at], atol=4.5 * np.sqrt(0.25 / n))


@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
@pytest.mark.parametrize("make", [binary, mixed])
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
        result = infer(graph, "gibbs", schedule=schedule, n_samples=20_000, random_state=1)
        np.testing.assert_allclose(np.asarray(result.marginals), exact, atol=0.015)


def test_colours_on_a_graph_without_order():
    """Neighbours that do not lie side by side are read place by place."""
    random = np.random.default_rng(0)
    edges = np.array([[a, b] for a in range(40) for b in range(a + 1, 40) if random.random() < 0.15])
    graph = FactorGraph(
        np.full(40, 2), unary=random.normal(size=(40, 2)), edges=edges,
        pairwise=random.normal(size=(len(edges), 2, 2)) * 0.3, log=True,
    )  # fmt: skip
    both = [
        np.asarray(infer(graph, "gibbs", schedule=s, n_samples=20_000, random_state=1).marginals)
        for s in ("chromatic", "sequential")
    ]
    np.testing.assert_allclose(both[0], both[1], atol=0.02)


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

    drawn = metropolis_hastings(graph, jump, n_samples=20_000, burn_in=100, start=[1, 0, 0], random_state=0)
    share = np.array([(drawn["samples"] == x).all(axis=1).mean() for x in X])
    np.testing.assert_allclose(share, p, atol=0.02)
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
    assert r_hat(np.ones((2, 100))) == 1.0
    assert np.isnan(r_hat(np.ones((2, 3))))
    assert r_hat([[0.0] * 10, [1.0] * 10]) == np.inf
    with pytest.raises(ValueError, match="NaN"):
        r_hat([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="chains, samples"):
        effective_sample_size(np.zeros((2, 2, 2)))


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
    sampler = _core.Sampler(core, start, 0, "gibbs", [])
    with pytest.raises(ValueError, match="keep"):
        sampler.run(np.ones(2), 0, np.zeros((1, 2, 3), np.int32), None, False, 1)
    with pytest.raises(ValueError, match="shape"):
        sampler.run(np.ones(2), 1, np.zeros((1, 1, 3), np.int32), None, False, 1)
    with pytest.raises(ValueError, match="negative"):
        sampler.run(-np.ones(2), 0, None, None, False, 1)
    with pytest.raises(ValueError, match="kind"):
        _core.Sampler(core, start, 0, "slice", [])
    with pytest.raises(ValueError, match="start"):
        _core.Sampler(core, start + 5, 0, "gibbs", [])
    with pytest.raises(ValueError, match="at least one chain"):
        _core.Sampler(core, start[:0], 0, "gibbs", [])
