"""Kernels keep their targets invariant; Gaussian models equal dense formulas; maxima and counts equal enumeration."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_normal

from mercer.inference import (
    ChainState,
    Cycle,
    FactorGraph,
    GaussianNetwork,
    Metropolis,
    MixedKernel,
    TransitionKernel,
    infer,
    max_marginals,
    run_chain,
)

GRAPH = FactorGraph(
    [2, 3, 2],
    unary=None,
    names=["a", "b", "c"],
)
GRAPH.add_factors([["a", "b"]], np.array([[1.0, 2.0, 0.5], [3.0, 0.0, 1.0]])[None])
GRAPH.add_factors([["b", "c"]], np.array([[1.0, 2.0], [1.0, 1.0], [4.0, 0.5]])[None])


def enumerated():
    states = np.array(list(itertools.product(range(2), range(3), range(2))))
    with np.errstate(divide="ignore"):
        scores = np.array([float(GRAPH.compiled.score(x.astype(np.int32))) for x in states])
    return states, scores


def transition_matrix(kernel, states, n, random):
    """Shares of steps from each state to each other one."""
    index = {s: i for i, s in enumerate(states)}
    T = np.zeros((len(states), len(states)))
    for i, s in enumerate(states):
        begin = kernel.init(s)
        for _ in range(n):
            T[i, index[kernel.step(begin, random).x]] += 1.0 / n
    return T


P = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("asymmetric", [False, True])
def test_metropolis_has_detailed_balance(asymmetric):
    def propose(x, random):
        if not asymmetric:
            return int((x + random.choice([-1, 1])) % 4)
        up = random.random() < 0.8  # up four times as often as down
        return int((x + (1 if up else -1)) % 4), float(np.log(0.2 / 0.8) if up else np.log(0.8 / 0.2))

    kernel = Metropolis(lambda x: float(np.log(P[x])), propose)
    T = transition_matrix(kernel, range(4), 2500, np.random.default_rng(0))
    flow = P[:, None] * T
    np.testing.assert_allclose(flow, flow.T, atol=0.015)
    np.testing.assert_allclose(P @ T, P, atol=0.015)


@pytest.mark.parametrize("combine", [Cycle, MixedKernel])
def test_combined_kernels_sample_the_target(combine):
    up = Metropolis(lambda x: float(np.log(P[x])), lambda x, random: int((x + random.choice([-1, 1])) % 4))
    far = Metropolis(lambda x: float(np.log(P[x])), lambda x, random: int(random.integers(4)))
    chain = run_chain(combine([up, far]), 0, 1500, burn_in=20, thin=2, random_state=0)
    assert chisquare(np.bincount(chain.samples, minlength=4), 1500 * P).pvalue > 1e-4
    assert 0 < chain.acceptance < 1
    assert chain.log_density[-1] == chain.state.log_density


def test_continuous_targets_have_their_moments():
    model = GaussianNetwork([[2.0, 0.8], [0.8, 1.0]], [1.0, -1.0])
    chain = run_chain(Metropolis(model.log_density, scale=1.5), np.zeros(2), 4000, burn_in=100, thin=1, random_state=0)
    np.testing.assert_allclose(chain.samples.mean(axis=0), model.mean, atol=0.3)
    np.testing.assert_allclose(np.cov(chain.samples.T), model.covariance, atol=0.5)
    np.testing.assert_array_equal(
        run_chain(Metropolis(model.log_density), np.zeros(2), 5, random_state=3).samples,
        run_chain(Metropolis(model.log_density), np.zeros(2), 5, random_state=3).samples,
    )


def test_targets_and_arguments_that_are_wrong_are_named():
    for value, message in (
        (np.nan, "the target gave nan"),
        (np.inf, "the target gave inf"),
        (-np.inf, "probability 0"),
    ):
        with pytest.raises(ValueError, match=message):
            run_chain(Metropolis(lambda x, value=value: value), np.zeros(1))
    late = Metropolis(lambda x: 0.0 if x == 0 else float("nan"), lambda x, random: 1)
    with pytest.raises(ValueError, match="the target gave nan"):
        run_chain(late, 0)
    island = Metropolis(lambda x: 0.0 if x == 0 else -np.inf, lambda x, random: 1)
    assert run_chain(island, 0, 10, random_state=0).acceptance == 0.0
    with pytest.raises(ValueError, match="log_ratio = NaN"):
        run_chain(Metropolis(lambda x: 0.0, lambda x, random: (1, np.nan)), 0)
    for make, error in (
        (lambda: Metropolis("density"), TypeError),
        (lambda: Metropolis(abs, "propose"), TypeError),
        (lambda: Metropolis(abs, scale=0.0), ValueError),
        (lambda: Cycle([]), ValueError),
        (lambda: MixedKernel([1]), TypeError),
        (lambda: MixedKernel([island, island], [0.5, 0.6]), ValueError),
        (lambda: run_chain(abs, 0), TypeError),
        (lambda: run_chain(island, 0, 0), ValueError),
    ):
        with pytest.raises(error):
            make()


def test_states_may_be_anything():
    class Words(TransitionKernel):
        def target(self, x):
            return -float(len(x))

        def step(self, state, random):
            y = state.x + "a" if random.random() < 0.5 else state.x[:-1]
            return ChainState(y, self.target(y))

    chain = run_chain(Words(), "", 20, random_state=0)
    assert isinstance(chain.samples, list)
    assert np.isnan(chain.acceptance)


# ------------------------------------------------------------------------------------------------------ Gaussian models


def random_model(n=5):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5)
    return GaussianNetwork(A @ A.T + np.eye(n), rng.normal(size=n))


def test_densities_marginals_and_conditionals_equal_scipy():
    model = random_model()
    S, m = np.linalg.inv(model.precision), np.linalg.inv(model.precision) @ model.potential
    x = np.random.default_rng(1).normal(size=(4, 5))
    np.testing.assert_allclose(model.log_density(x), multivariate_normal(m, S).logpdf(x))
    np.testing.assert_allclose(model.log_density(x[0]), multivariate_normal(m, S).logpdf(x[0]))
    np.testing.assert_allclose(model.covariance, S)
    part = model.marginal([3, 1])
    np.testing.assert_allclose(part.mean, m[[3, 1]])
    np.testing.assert_allclose(part.covariance, S[np.ix_([3, 1], [3, 1])])
    seen, rest = [1, 4], [0, 2, 3]
    values = np.array([0.3, -1.0])
    gain = S[np.ix_(rest, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
    given = model.given({1: 0.3, 4: -1.0})
    np.testing.assert_allclose(given.mean, m[rest] + gain @ (values - m[seen]))
    np.testing.assert_allclose(given.covariance, S[np.ix_(rest, rest)] - gain @ S[np.ix_(seen, rest)])


def test_the_partition_function_is_the_integral():
    from scipy.integrate import dblquad

    model = GaussianNetwork([[2.0, 0.5], [0.5, 1.0]], [0.3, -0.2])

    def value(y, x):
        v = np.array([x, y])
        return np.exp(-0.5 * v @ model.precision @ v + model.potential @ v)

    assert np.log(dblquad(value, -8, 8, -9, 9)[0]) == pytest.approx(model.log_partition, abs=1e-6)


@pytest.mark.parametrize("kind", ["exact", "systematic", "random"])
def test_samples_have_the_moments_of_the_model(kind):
    model = random_model(3)
    if kind == "exact":
        x = model.sample(4000, random_state=0)
    else:
        x = run_chain(model.gibbs(kind), np.zeros(3), 4000, burn_in=50, random_state=0).samples
    error = 6 * np.sqrt(np.diagonal(model.covariance) / (4000 if kind == "exact" else 800))
    assert (np.abs(x.mean(axis=0) - model.mean) < error).all()
    np.testing.assert_allclose(np.cov(x.T), model.covariance, atol=0.12 * np.diagonal(model.covariance).max())


def test_graphs_are_the_zeros_of_the_precision():
    model = GaussianNetwork.from_edges([2.0, 2.0, 2.0], [[0, 1], [2, 1]], [-0.5, 0.3])
    assert model.edges.tolist() == [[0, 1], [1, 2]]
    again = GaussianNetwork.from_moments(model.mean, model.covariance)
    assert again.edges.tolist() == model.edges.tolist()
    assert "2 edges" in repr(model)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNetwork(np.ones((2, 3))), "square"),
        (lambda: GaussianNetwork([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: GaussianNetwork([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: GaussianNetwork([[np.nan]]), "finite"),
        (lambda: GaussianNetwork(np.eye(2), [1.0]), "potential must hold 2"),
        (lambda: GaussianNetwork.from_moments([0.0], [[-1.0]]), "covariance must be positive definite"),
        (lambda: GaussianNetwork.from_moments([0.0, 1.0], [[1.0]]), "mean must hold 1"),
        (lambda: GaussianNetwork.from_edges([1.0, 1.0], [[0, 2]], [0.1]), "pairs of different variables"),
        (lambda: GaussianNetwork.from_edges([1.0, 1.0], [[0, 1]], [0.1, 0.2]), "a weight for each"),
        (lambda: random_model().given({7: 0.0}), "variables must be different"),
        (lambda: random_model().given({0: np.inf}), "evidence must be finite"),
        (lambda: GaussianNetwork([[1.0]]).given({0: 0.0}), "nothing is left"),
        (lambda: random_model().log_density([1.0]), "x must hold 5 numbers"),
        (lambda: random_model().gibbs("spiral"), "scan must be one of"),
        (lambda: random_model().log_density([0.0, 0.0, np.nan, 0.0, 0.0]), "x must be finite"),
        (lambda: random_model().marginal([0.7, 1.2]), "variables must be integers"),
        (lambda: random_model().given({0.7: 1.0}), "variables must be integers"),
        (lambda: random_model().marginal(["x"]), "variables must be integers"),
        (lambda: GaussianNetwork(np.eye(2) + 0j), "real numbers, found complex128"),
        (lambda: GaussianNetwork([["a"]]), "real numbers"),
        (lambda: GaussianNetwork(1e-300 * np.eye(1), [1e10]), "beyond the largest number"),
        (lambda: GaussianNetwork.from_moments([0.0], [[np.inf]]), "covariance must be finite"),
        (lambda: GaussianNetwork.from_moments([np.nan], [[1.0]]), "mean must hold 1 finite"),
        (lambda: GaussianNetwork.from_moments([0, 0], [[1e-9, 5e-10], [-5e-10, 1e-9]]), "symmetric"),
        (lambda: GaussianNetwork.from_edges(2.0, [], []), "diagonal must hold"),
    ],
)
def test_wrong_models_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -------------------------------------------------------------------------------------------------- discrete models


def test_max_marginals_equal_enumeration():
    states, scores = enumerated()
    found = max_marginals(GRAPH)
    for i, name in enumerate("abc"):
        wanted = [scores[states[:, i] == k].max() for k in range([2, 3, 2][i])]
        np.testing.assert_allclose(found[name], wanted)
    given = max_marginals(GRAPH, {"b": 2})
    assert sorted(given) == ["a", "c"]
    chosen = states[:, 1] == 2
    np.testing.assert_allclose(given["a"], [scores[chosen & (states[:, 0] == k)].max() for k in range(2)])


@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_scans_and_counts_of_factors_equal_enumeration(scan):
    states, scores = enumerated()
    p = np.exp(scores - np.logaddexp.reduce(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = infer(GRAPH, "gibbs", n_samples=4000, n_chains=4, scan=scan, random_state=0)
    for i, name in enumerate("abc"):
        wanted = [p[states[:, i] == k].sum() for k in range([2, 3, 2][i])]
        np.testing.assert_allclose(drawn.marginals[name], wanted, atol=0.02)
    for f, (i, j) in enumerate([(0, 1), (1, 2)]):
        joint = np.zeros(([2, 3, 2][i], [2, 3, 2][j]))
        np.add.at(joint, (states[:, i], states[:, j]), p)
        np.testing.assert_allclose(drawn.factor_marginals[f], joint, atol=0.02)
    assert drawn.factor_marginals[0][1, 1] == 0.0


def test_random_scan_takes_no_blocks():
    with pytest.raises(ValueError, match="scan='random' draws single variables"):
        infer(GRAPH, "gibbs", scan="random", blocks=[[0, 1]])
    with pytest.raises(ValueError, match="scan must be one of"):
        infer(GRAPH, "gibbs", scan="spiral")
