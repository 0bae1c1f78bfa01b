"""Every sampler reaches every assignment it can, and says so where it cannot."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import _core
from mercer.inference import Factor, FactorGraph, infer, metropolis_hastings
from mercer.inference.diagnostics import ChainMarginals, r_hat
from mercer.inference.sampling import _spread_starts


def flip_one(x, random):
    y = x.copy()
    y[random.integers(len(y))] ^= 1
    return y, 0.0


SAMPLERS = {
    "gibbs, colours": ("gibbs", {}),
    "gibbs, sequential": ("gibbs", {"schedule": "sequential"}),
    "gibbs, blocks": ("gibbs", {"blocks": [[0, 1]]}),
    "metropolis": ("metropolis", {}),
    "metropolis, thinned": ("metropolis", {"thin": 2}),
}


def exact_marginals(graph: FactorGraph) -> np.ndarray:
    """Probabilities of all states of all variables, one after the other, by enumeration."""
    X = np.array(list(itertools.product(*[range(c) for c in graph.cardinalities])), np.int32)
    scores = graph.compiled.score(X)
    p = np.exp(scores - scores.max())
    p /= p.sum()
    return np.concatenate([[p[X[:, i] == k].sum() for k in range(c)] for i, c in enumerate(graph.cardinalities)])


def random_graph(seed: int, cards: list[int], coupling: float) -> FactorGraph:
    random = np.random.default_rng(seed)
    graph = FactorGraph(cards, unary={i: random.random(c) + 0.1 for i, c in enumerate(cards)})
    for a, b in itertools.pairwise(range(len(cards))):
        graph.add(Factor([a, b], coupling * random.normal(size=(cards[a], cards[b])), log=True))
    return graph.add(Factor([0, len(cards) - 1], coupling * random.normal(size=(cards[0], cards[-1])), log=True))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("n", [5, 6])  # an odd and an even number of flips a sweep
def test_a_flat_target_is_visited_everywhere(name, n):
    method, options = SAMPLERS[name]
    result = infer(FactorGraph([2] * n, unary=np.ones((n, 2))), method, n_samples=3000, random_state=0, **options)
    for chain in result.samples:
        visits = np.unique(chain, axis=0, return_counts=True)[1]
        assert len(visits) == 2**n
        assert visits.max() < 3 * 3000 / 2**n
    np.testing.assert_allclose(np.asarray(result.marginals), 0.5, atol=0.03)
    assert result.converged
    assert result.extra["r_hat"] < 1.05


@pytest.mark.parametrize("cards", [[3, 3, 3], [2, 3, 4]], ids=str)
def test_metropolis_visits_flat_targets_of_more_states(cards):
    result = infer(FactorGraph(cards), "metropolis", n_samples=4000, random_state=1)
    for chain in result.samples:
        assert len(np.unique(chain, axis=0)) == np.prod(cards)
    np.testing.assert_allclose(result.marginals.flat, exact_marginals(FactorGraph(cards)), atol=0.03)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SAMPLERS)
def test_marginals_are_within_their_standard_errors_of_enumeration(name, seed):
    method, options = SAMPLERS[name]
    cards = [2, 2, 2, 2] if name == "gibbs, colours" or seed % 2 else [2, 3, 2, 4]
    graph = random_graph(seed, cards, 0.7)
    result = infer(graph, method, n_samples=2000, random_state=seed, **options)
    error = np.abs(result.marginals.flat - exact_marginals(graph))
    mcse = result.extra["mcse"]
    assert mcse.shape == error.shape
    assert result.converged
    assert (error < 5 * mcse + 1e-6).all()
    assert mcse.max() < 0.05  # a bound that is not empty


def test_standard_errors_are_calibrated():
    """Over many runs, errors are as large as the standard errors say: not much smaller, not larger."""
    graph = random_graph(7, [2, 2, 2], 1.0)
    exact = exact_marginals(graph)
    for method in ("gibbs", "metropolis"):
        runs = [infer(graph, method, n_samples=400, random_state=s) for s in range(60)]
        errors = np.array([run.marginals.flat - exact for run in runs])
        stated = np.array([run.extra["mcse"] for run in runs])
        ratio = np.sqrt((errors**2).mean() / (stated**2).mean())
        assert 0.5 < ratio < 1.1


def test_slow_chains_have_large_standard_errors():
    """Batches shorter than the autocorrelation would claim too much: half-chains and chains are compared as well."""
    graph = FactorGraph([2] * 6, edges=[[i, i + 1] for i in range(5)], pairwise=[[2.5, -2.5], [-2.5, 2.5]], log=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs = [infer(graph, "gibbs", n_samples=300, random_state=s) for s in range(30)]
    errors = np.array([np.abs(run.marginals.flat - 0.5).max() for run in runs])
    stated = np.array([run.extra["mcse"].max() for run in runs])
    assert errors.max() > 0.1
    assert (errors < 4 * stated).mean() > 0.9


LOCKED = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
def test_chains_frozen_in_different_states_disagree(method):
    seen = []
    for seed in range(8):
        with pytest.warns(ConvergenceWarning):
            result = infer(LOCKED, method, n_samples=100, random_state=seed)
        assert not result.converged
        first = result.samples[:, -1, 0]
        different = len(set(first.tolist())) > 1
        seen.append(different)
        if different:
            assert result.extra["r_hat"] == np.inf
        assert np.isinf(result.extra["mcse"]).all()
        assert result.extra["n_unmoved"] == 2
    assert any(seen)


@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
def test_chains_frozen_in_one_state_are_no_evidence(method):
    with pytest.warns(ConvergenceWarning, match="2 of 2 variables never changed"):
        result = infer(LOCKED, method, start=[1, 1], n_samples=100, random_state=0)
    assert not result.converged
    assert np.isnan(result.extra["r_hat"])
    assert np.isinf(result.extra["mcse"]).all()


def test_soft_potentials_that_freeze_all_chains_from_one_start_are_no_evidence():
    pairs = [[0, 1], [1, 2], [0, 2]]
    graph = FactorGraph([2] * 3, edges=pairs, pairwise=[[30.0, -30.0], [-30.0, 30.0]], log=True)
    for method, options in (("gibbs", {}), ("gibbs", {"schedule": "sequential"}), ("metropolis", {})):
        with pytest.warns(ConvergenceWarning, match="3 of 3 variables never changed"):
            result = infer(graph, method, start=[1, 1, 1], n_samples=200, random_state=0, **options)
        assert not result.converged
        with pytest.warns(ConvergenceWarning, match="do not agree"):  # different starts show it
            result = infer(graph, method, n_samples=200, random_state=0, **options)
        assert not result.converged


def test_a_block_sets_frozen_variables_free():
    result = infer(LOCKED, "gibbs", blocks=[[0, 1]], random_state=0)
    assert result.converged
    np.testing.assert_allclose(np.asarray(result.marginals), 0.5, atol=0.05)


@pytest.mark.parametrize("method", ["gibbs", "metropolis"])
def test_confident_variables_that_all_chains_find_are_evidence(method):
    """No chain changes them after a while, but all came there from different states."""
    graph = FactorGraph([2] * 8, unary=np.tile([0.0, 20.0], (8, 1)), log=True)
    result = infer(graph, method, n_samples=300, random_state=0)
    assert result.converged
    assert result.extra["n_unmoved"] == 0
    assert result.extra["mcse"].max() < 1e-3


def test_variables_with_one_possible_state_need_no_evidence():
    graph = FactorGraph([2, 2, 1], unary={0: [0.0, 1.0], 1: [1.0, 2.0]})
    for method, options in SAMPLERS.values():
        result = infer(graph, method, n_samples=500, random_state=0, **options)
        assert result.converged
        assert result.marginals[0].tolist() == [0.0, 1.0]
    alone = infer(FactorGraph([2], unary=[[0.0, 1.0]]), "gibbs", random_state=0)
    assert alone.converged
    assert alone.extra["mcse"].tolist() == [0.0, 0.0]


def test_random_starts_differ_as_far_as_there_are_states():
    graph = FactorGraph([2, 3, 4], unary={2: [1.0, 0.0, 1.0, 0.0]})
    for seed in range(5):
        states = _spread_starts(graph.compiled, 4, np.random.default_rng(seed))
        assert sorted(states[:, 0].tolist()) == [0, 0, 1, 1]
        assert len(set(states[:, 1].tolist())) == 3
        assert sorted(states[:, 2].tolist()) == [0, 0, 2, 2]


def test_too_few_samples_are_no_evidence():
    with pytest.warns(ConvergenceWarning, match="1 of 1 variables never changed"):
        result = infer(FactorGraph([2], unary=[[1.0, 2.0]]), "gibbs", n_samples=1, n_chains=1, random_state=0)
    assert not result.converged
    assert np.isinf(result.extra["mcse"]).all()
    assert not infer(FactorGraph([2], unary=[[1.0, 2.0]]), "gibbs", n_samples=3, random_state=0).converged


def test_what_is_impossible_is_never_drawn():
    """Sixty million draws in single precision of states with probability 0."""
    n, random = 20_000, np.random.default_rng(0)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    unary = np.tile([1.0, 0.0], (n, 1))
    graph = FactorGraph([2] * n, unary=unary, edges=edges, pairwise=random.random((n - 1, 2, 2)) + 0.5)
    sampler = _core.inference.Sampler(graph.compiled.core, np.zeros((1, n), np.int32), 0, "colours", [])
    trace = np.empty((1, 3000))
    sampler.run(np.ones(3000), 1, None, trace, False, 1)
    assert np.isfinite(trace).all()


def test_metropolis_hastings_of_a_flat_target_visits_everything():
    drawn = metropolis_hastings(FactorGraph([2] * 4), flip_one, n_samples=4000, random_state=0)
    assert len(np.unique(drawn["samples"], axis=0)) == 16
    assert np.isnan(drawn["effective_sample_size"])  # of a score that never changes


@pytest.mark.parametrize("move", ["metropolis", "gibbs"])
def test_annealing_of_a_target_with_two_far_modes_finds_the_better(move):
    graph = FactorGraph(
        [2] * 8, edges=[[i, (i + 1) % 8] for i in range(8)], pairwise=[[2.0, 0.0], [0.0, 2.1]], log=True
    )
    result = infer(graph, "annealing", task="map", move=move, random_state=0)
    assert result.map.tolist() == [1] * 8
    assert result.n_iter == 1000  # sweeps, by default


def test_marginals_in_batches_give_the_r_hat_of_indicators():
    random = np.random.default_rng(0)
    paths = np.cumsum(random.normal(size=(3, 400)), axis=1) > 0
    indicators = np.stack([~paths, paths], axis=2).astype(float)
    collected = ChainMarginals(4)
    for end in (100, 200, 300, 400):
        collected.add(indicators[:, :end].sum(axis=1), np.full(3, end))
    np.testing.assert_allclose(collected.r_hat(), r_hat(paths.astype(float)))
    np.testing.assert_allclose(collected.chains[:, 1], paths.mean(axis=1))
    halves = np.concatenate([paths[:, :200].mean(axis=1), paths[:, 200:].mean(axis=1)])
    batches = paths.reshape(3, 4, 100).mean(axis=2).ravel()
    expected = max(np.std(a, ddof=1) / np.sqrt(len(a)) for a in (paths.mean(axis=1), halves, batches))
    np.testing.assert_allclose(collected.standard_errors(), expected)
