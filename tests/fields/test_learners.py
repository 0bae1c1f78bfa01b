"""Learners: transitions leave their fields invariant, temperatures are chosen as asked, gradients equal enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from mercer.fields import BoltzmannMachine, learners
from mercer.fields._pairs import PairField
from mercer.fields._units import HiddenUnits
from mercer.learning.learners import Chains, Keys, effective_size, next_beta, resample, resolve_learner


def pair_field(d=4, scale=1.0, lo=-1.0, seed=0):
    edges = np.stack(np.triu_indices(d, 1), axis=1)
    field = PairField(d, edges, lo, 1.0)
    return field, scale * np.random.default_rng(seed).normal(size=field.n_weights)


def hidden_field(v=4, h=3, scale=1.5, seed=0):
    field = HiddenUnits(v, h)
    return field, (scale * np.random.default_rng(seed).normal(size=field.n_weights)).astype(np.float32)


FIELDS = {"±1": pair_field, "0/1": lambda: pair_field(5, 1.5, 0.0), "hidden": hidden_field}


def visible_states(field):
    n = field.n_units if isinstance(field, PairField) else field.n_visible
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    return bits.astype(np.int8 if isinstance(field, PairField) else np.uint8)


def probabilities(field, theta, beta=1.0):
    """Of all visible states, by enumeration."""
    scores = field.path(visible_states(field), None, theta)(beta)[:, 0]
    p = np.exp(scores - scores.max())
    return p / p.sum()


def draws(field, p, n, seed=1):
    return visible_states(field)[np.random.default_rng(seed).choice(len(p), n, p=p)]


def assert_distributed(states, p, tail=1e-4):
    numbers = states.astype(np.int64) @ (1 << np.arange(states.shape[1]))
    expected = p * len(states)
    often = expected > 5
    observed = np.bincount(numbers, minlength=len(p))
    rest = [observed[~often].sum()], [max(expected[~often].sum(), 1e-9)]
    observed, expected = np.append(observed[often], rest[0]), np.append(expected[often], rest[1])
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(observed) - 1) > tail


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("beta", [1.0, 0.4])
@pytest.mark.parametrize("kind", FIELDS)
def test_sweep_leaves_the_field_invariant(kind, beta, backward):
    field, theta = FIELDS[kind]()
    p = probabilities(field, theta, beta)
    assert_distributed(field.sweep(draws(field, p, 20_000), theta, Keys(3), beta, backward), p)


@pytest.mark.parametrize("kind", FIELDS)
def test_sweep_from_one_state_has_the_probabilities_of_the_product_of_conditionals(kind):
    field, theta = FIELDS[kind]()
    states = visible_states(field)
    start = np.repeat(states[:1], 40_000, axis=0)
    scores = field.path(states, None, theta)(1.0)[:, 0]
    if kind == "hidden":
        W, b, c = (np.asarray(part, float) for part in field.parts(theta))
        h = (np.arange(8)[:, None] >> np.arange(3)) & 1
        of_h = np.exp(h @ (states[0] @ W + b))
        of_v = np.exp(h @ W.T @ states.T + c @ states.T)
        transition = (of_h / of_h.sum()) @ (of_v / of_v.sum(axis=1, keepdims=True))
    else:
        d = states.shape[1]
        transition = np.eye(len(states))
        for i in range(d):
            step = np.zeros_like(transition)
            for s in range(len(states)):
                pair = [s & ~(1 << i), s | 1 << i]
                step[s, pair] = np.exp(scores[pair] - np.logaddexp.reduce(scores[pair]))
            transition = transition @ step
        p = np.exp(scores - np.logaddexp.reduce(scores))
        assert np.abs(p @ transition - p).max() < 1e-12
        transition = transition[0]
    assert_distributed(field.sweep(start, theta, Keys(5)), transition)


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize(
    "name", ["pcd", "tempered", "parallel-tempering", "psmc", "smc", "cd", "mcmcml", "particle-filter"]
)
def test_particles_stay_distributed_by_the_field(kind, name):
    field, theta = FIELDS[kind]()
    p = probabilities(field, theta)
    settings = {"refresh": 0.3} if name == "psmc" else {}
    learner = resolve_learner(name, **settings)
    if name == "tempered":
        learner = learners.TemperedTransitions(5, lowest=0.3)
    n = 20_000
    chains = Chains(field, Keys(7), n)
    learner.start(chains, theta)
    if name == "parallel-tempering":
        betas = np.linspace(1.0, 0.0, 10)
        chains.particles = [draws(field, probabilities(field, theta, b), n, i) for i, b in enumerate(betas)]
    else:
        chains.particles = [draws(field, p, n)]
    chains.theta = theta
    mean = learner.negative(chains, theta, draws(field, p, n))
    # Fresh particles are only as good as their sweeps: the statistics must agree, within sampling error.
    _, expected = field.exact(theta)
    assert np.abs(mean - expected).max() < 0.05
    if name not in ("smc", "psmc", "cd"):
        assert_distributed(chains.particles[0], p)


@pytest.mark.parametrize("kind", FIELDS)
def test_paths_are_straight_lines_of_parameters(kind):
    field, theta = FIELDS[kind]()
    other = theta[::-1].copy()
    states = visible_states(field)
    for beta in (0.0, 0.3, 1.0):
        mixed = ((1 - beta) * theta + beta * other).astype(theta.dtype)
        np.testing.assert_allclose(
            field.path(states, theta, other)(beta), field.log_density(states, mixed), rtol=1e-5, atol=1e-4
        )


@pytest.mark.parametrize("kind", FIELDS)
def test_exact_sum_equals_enumeration(kind):
    field, theta = FIELDS[kind]()
    scores = field.log_density(visible_states(field), theta)[:, 0]
    log_z, mean = field.exact(theta)
    assert log_z == pytest.approx(np.logaddexp.reduce(scores), abs=1e-4)
    weighted = field.statistics(visible_states(field), theta, np.exp(scores - log_z)[:, None])
    np.testing.assert_allclose(mean, weighted, atol=1e-4)


@pytest.mark.parametrize("kind", FIELDS)
def test_exact_and_pseudo_gradients_equal_finite_differences(kind):
    field, theta = FIELDS[kind]()
    data = draws(field, np.full(len(visible_states(field)), 1 / len(visible_states(field))), 30)

    def likelihood(t):
        return float(field.log_density(data, t).mean()) - field.exact(t)[0]

    def pseudo(t):
        return field.pseudo_gradient(data, t)[0]

    chains = Chains(field, Keys(0), 10)
    single = theta.dtype == np.float32
    step = 1e-2 if single else 1e-5
    for function, learner in ((likelihood, learners.Exact()), (pseudo, learners.PseudoLikelihood())):
        gradient = learner.gradient(chains, theta, data)
        for i in range(0, len(theta), 3):
            up, down = theta.copy(), theta.copy()
            up[i] += step
            down[i] -= step
            slope = (function(up) - function(down)) / float(up[i] - down[i])
            assert gradient[i] == pytest.approx(slope, abs=2e-3 if single else 1e-6)


def test_next_beta_is_the_longest_step_that_keeps_the_effective_size():
    random = np.random.default_rng(0)
    for scale in (0.5, 5.0, 500.0):
        energies = scale * random.normal(size=(200, 1))
        beta = 0.2
        stop = next_beta(lambda b, e=energies: -b * e, beta, 0.9)

        def size(step, e=energies, beta=beta):
            return effective_size(-(beta + step) * e + beta * e)

        assert size(stop - beta) >= 0.9
        if stop < 1.0:
            assert size(1.01 * (stop - beta)) < 0.9
            grid = np.linspace(0, 1 - beta, 100_001)[1:]
            first = grid[np.argmax([size(step) < 0.9 for step in grid[::50]]) * 50]
            assert stop - beta <= first + 1e-9


def test_resampling_is_systematic_in_every_group():
    random = np.random.default_rng(1)
    log_weights = random.normal(size=(50, 3))
    index = resample(log_weights, random.random(3))
    weights = np.exp(log_weights) / np.exp(log_weights).sum(axis=0)
    for g in range(3):
        counts = np.bincount(index[:, g], minlength=50)
        assert (np.abs(counts - 50 * weights[:, g]) < 1 + 1e-9).all()


def test_swapping_modes_are_followed_by_sequential_learners():
    """A ferromagnet of ten units whose field turns round in 29 steps: weights of its two modes change places."""
    d = 10
    edges = np.stack(np.triu_indices(d, 1), axis=1)
    field = PairField(d, edges, -1.0, 1.0)
    errors = {}
    for name in ("pcd", "smc", "psmc"):
        total = []
        for seed in range(2):
            learner = resolve_learner(name)
            chains = Chains(field, Keys(seed), 200)
            path = [np.concatenate([np.full(45, 0.25), np.full(d, h)]) for h in np.linspace(0.3, -0.3, 29)]
            learner.start(chains, path[0])
            if name != "smc":
                chains.particles = [field.exact_draws(200, path[0], chains.keys)]
            for theta in path:
                mean = learner.negative(chains, theta, None)
            total.append(np.abs(mean - field.exact(path[-1])[1])[45:].mean())
        errors[name] = np.mean(total)
    assert errors["pcd"] > 0.5
    assert errors["smc"] < 0.1
    assert errors["psmc"] < 0.1


def test_parallel_tempering_finds_the_mass_of_modes_where_gibbs_does_not():
    d = 8
    field = PairField(d, np.stack(np.triu_indices(d, 1), axis=1), -1.0, 1.0)
    theta = np.concatenate([np.full(28, 0.9), np.full(d, -0.04)])
    p = probabilities(field, theta)
    up = visible_states(field).sum(axis=1) > d / 2
    true = p[up].sum()
    found = {}
    for name, learner in (("pt", learners.ParallelTempering()), ("gibbs", learners.PCD())):
        chains = Chains(field, Keys(2), 300)
        learner.start(chains, theta)
        chains.particles = [np.ones((300, d), np.int8) for _ in chains.particles]
        for _ in range(200):
            learner.negative(chains, theta, None)
        found[name] = (chains.particles[0].sum(axis=1) > d / 2).mean()
    assert abs(found["pt"] - true) < 0.08
    assert found["gibbs"] > 0.9 > true


@pytest.mark.parametrize("name", list(learners.LEARNERS))
def test_every_learner_comes_close_to_exact_maximum_likelihood(name):
    random = np.random.default_rng(4)
    d = 6
    field = PairField(d, np.stack(np.triu_indices(d, 1), axis=1), -1.0, 1.0)
    truth = 0.5 * random.normal(size=field.n_weights)
    X = 2 * field.exact_draws(300, truth, Keys(1)) - 1

    def likelihood(learner):
        model = BoltzmannMachine(
            learner=learner, max_iter=60, learning_rate=(0.1, 0.05), batch_size=300, n_particles=300, random_state=0
        )
        return model.fit(X).score(X)

    allowed = 0.1 if name in ("cd", "pseudo-likelihood") else 0.02
    assert likelihood(name) > likelihood("exact") - allowed


def test_psmc_stays_with_exact_learning_on_the_published_machine():
    """Ten units with weights N(0, 1), 200 draws, the largest published steps: as good, with some ten temperatures."""
    random = np.random.default_rng(0)
    field = PairField(10, np.stack(np.triu_indices(10, 1), axis=1), -1.0, 1.0)
    X = 2 * field.exact_draws(200, random.normal(size=field.n_weights), Keys(0)) - 1
    settings = {"max_iter": 40, "learning_rate": (0.1, 0.01), "batch_size": 200, "random_state": 0}
    exact, sampled = (BoltzmannMachine(learner=name, **settings).fit(X) for name in ("exact", "psmc"))
    assert sampled.score(X) == pytest.approx(exact.score(X), abs=0.02)
    assert 7 < np.mean(sampled.history_["n_temperatures"]) < 13


def test_learner_arguments_are_checked():
    with pytest.raises(ValueError, match="learner must be"):
        resolve_learner("gibbs")
    with pytest.raises(ValueError, match="ess must be"):
        learners.PSMC(ess=1.5)
    with pytest.raises(ValueError, match="steps must be"):
        learners.CD(0)
    with pytest.raises(ValueError, match="n_temperatures must be"):
        learners.ParallelTempering(1)
    assert learners.PCD(3) == learners.PCD(3) != learners.PCD(2)
