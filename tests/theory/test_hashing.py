"""The bounds of hashing have their printed values, and hold when simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mercer.maps import HashAccumulator, RandomFeatures, expected_collision_rate
from mercer.theory.hashing import (
    exact_mixing_coefficient,
    expected_kernel,
    hoeffding_constants,
    information_loss_bound,
    inner_product_lift,
    kernel_deviation_bound,
    mcmc_mean_bound,
    optimal_copies,
    required_bits,
    required_buckets,
)

# ------------------------------------------------------------------------------------------------ Theorem 2


def test_the_printed_loss_bounds_are_reproduced():
    assert information_loss_bound(10**5, 10**8, 1) == 1.0  # says nothing
    assert information_loss_bound(10**5, 10**8, 2) == pytest.approx(0.404, abs=5e-4)
    assert information_loss_bound(10**5, 10**8, 3) == pytest.approx(0.0117, abs=5e-5)
    assert information_loss_bound(10**5, 10**8, 4) == pytest.approx(0.0160, abs=5e-5)
    assert optimal_copies(10**5, 10**8) == 3


def test_the_optimal_number_of_copies_is_found():
    for l, n in itertools.product([1, 10, 1000], [2, 50, 10**4, 10**7]):
        bounds = []
        for c in range(1, 60):
            own = 1 - (1 - c / n) ** c if c < n else math.inf
            bounds.append(own + (l * c / n) ** c)
        best = optimal_copies(l, n)
        assert bounds[best - 1] == pytest.approx(min(bounds), rel=1e-6)


def test_tiny_bounds_keep_their_digits():
    # (1 − (1 − c/n)^c) is c²/n here, far below the spacing of floating-point numbers near 1.
    assert information_loss_bound(1, 10**18, 2) == pytest.approx(4e-18, rel=1e-9)


def loses_a_feature(l: int, n: int, c: int, random: np.random.Generator) -> bool:
    """Whether all copies of some feature share their buckets, with copies of any feature."""
    buckets = random.integers(0, n, (l, c))
    _, inverse, counts = np.unique(buckets, return_inverse=True, return_counts=True)
    return bool((counts[inverse.reshape(l, c)] > 1).all(axis=1).any())


@pytest.mark.parametrize(
    ("l", "n", "c"),
    [(100, 10**5, 1), (50, 10**4, 1), (50, 2000, 2), (50, 2000, 3), (20, 500, 2), (200, 10**5, 2), (200, 10**5, 3)],
)
def test_simulated_losses_stay_below_the_bound(l, n, c):
    random = np.random.default_rng(0)
    trials = 2000
    frequency = np.mean([loses_a_feature(l, n, c, random) for _ in range(trials)])
    assert information_loss_bound(l, n, c) < 1  # says something
    assert frequency <= information_loss_bound(l, n, c)


# ------------------------------------------------------------------------------------------------ collisions


@pytest.mark.parametrize(
    ("n_bits", "unique"), [(24, 285_614), (22, 278_238), (20, 251_910), (18, 174_776), (16, 64_758), (14, 16_383)]
)
def test_the_printed_collision_table_is_reproduced(n_bits, unique):
    tokens = 287_970
    expected = tokens * (1 - expected_collision_rate(tokens, 2**n_bits))
    assert expected == pytest.approx(unique, rel=0.003)
    hashed = HashAccumulator(n_bits).update(np.arange(tokens)).to_csr().nnz
    assert hashed == pytest.approx(unique, rel=0.003)


def test_collision_rates_at_the_ends():
    assert expected_collision_rate(0, 5) == 0.0
    assert expected_collision_rate(1, 5) == pytest.approx(0.0)
    assert expected_collision_rate(10, 1) == 0.9
    assert expected_collision_rate(2, 10**15) == pytest.approx(5e-16, abs=1e-15)


def test_the_expected_kernel_is_the_mean_over_all_hash_functions():
    x, z, n = np.array([1.0, 2.0, 0.5]), np.array([2.0, -1.0, 3.0]), 3
    plain, signed = [], []
    for buckets in itertools.product(range(n), repeat=3):
        for signs in itertools.product([1, -1], repeat=3):
            H = np.zeros((n, 3))
            H[buckets, range(3)] = 1
            plain.append((H @ x) @ (H @ z))
            signed.append((H @ (signs * x)) @ (H @ (signs * z)))
    assert np.mean(plain) == pytest.approx(expected_kernel(x @ z, x.sum(), z.sum(), n))
    assert np.mean(signed) == pytest.approx(expected_kernel(x @ z, x.sum(), z.sum(), n, signed=True))


# ------------------------------------------------------------------------------------------------ Theorem 3


def test_the_deviation_bound_rises_by_its_logarithms():
    def logarithms(m=10, M=5, delta=0.1, c=2.0, n=100, c_prime=0.5) -> float:
        return kernel_deviation_bound(m, M, n, delta, c, c_prime) ** 2 * n * c_prime

    base = logarithms()
    assert logarithms(m=21) - base == pytest.approx(2 * math.log(2))
    assert logarithms(M=11) - base == pytest.approx(2 * math.log(2))
    assert logarithms(delta=0.01) - base == pytest.approx(math.log(10))
    assert logarithms(c=6.0) - base == pytest.approx(math.log(3))
    assert logarithms(n=400, c_prime=3.0) == pytest.approx(base)
    assert base == pytest.approx(2 * math.log(11) + 2 * math.log(6) - math.log(0.1) + math.log(2) - 2 * math.log(2))


def test_the_required_size_is_the_least_that_will_do():
    arguments = (50, 3, 0.05, *hoeffding_constants(4.0))
    for eps in (0.5, 0.1, 0.013):
        n = required_buckets(eps, *arguments)
        m, M, delta, c, c_prime = arguments
        assert kernel_deviation_bound(m, M, n, delta, c, c_prime) <= eps
        assert kernel_deviation_bound(m, M, n - 1, delta, c, c_prime) > eps
        bits = required_bits(eps, *arguments)
        assert 2 ** (bits - 1) < n <= 2**bits


def test_deviations_of_a_kernel_matrix_stay_below_the_bound():
    X = np.random.default_rng(0).standard_normal((50, 5))
    kernel, n, delta = rbf_kernel(X, gamma=0.5), 512, 0.1

    def waves(n, random):
        return random.standard_normal((5, n)), random.uniform(0, 2 * np.pi, n)

    def cosines(X, draws):
        return np.sqrt(2) * np.cos(X @ draws[0] + draws[1])  # products lie in [−2, 2]

    bound = kernel_deviation_bound(50, 1, n, delta, *hoeffding_constants(4.0))
    worst = []
    for seed in range(100):
        Z = RandomFeatures(cosines, waves, n, random_state=seed).fit_transform(X)
        worst.append(np.abs(Z @ Z.T - kernel).max())
    assert np.mean(np.array(worst) > bound) <= delta
    assert max(worst) > bound / 10  # and the bound is not idle


# ------------------------------------------------------------------------------------------------ Theorem 7


def gibbs_chain(k: int, weight) -> tuple[np.ndarray, list[tuple[int, ...]], np.ndarray]:
    """The sampler of k-subsets of a graph of 7 nodes as a matrix, its states and their distribution."""
    random = np.random.default_rng(5)
    adjacency = np.triu(random.random((7, 7)) < 0.5, 1)
    adjacency = adjacency | adjacency.T
    states = list(itertools.combinations(range(7), k))
    place = {state: i for i, state in enumerate(states)}

    def strength(nodes) -> float:
        return weight(int(adjacency[np.ix_(nodes, nodes)].sum()) // 2)

    T = np.zeros((len(states), len(states)))
    for state in states:
        for gone in state:
            rest = [node for node in state if node != gone]
            options = [tuple(sorted([*rest, node])) for node in range(7) if node not in rest]
            weights = np.array([strength(list(option)) for option in options])
            for option, share in zip(options, weights / weights.sum(), strict=True):
                T[place[state], place[option]] += share / k
    target = np.array([strength(list(state)) for state in states])
    return T, states, target / target.sum()


def test_mixing_coefficients_of_the_graphlet_sampler_decrease():
    T, _, target = gibbs_chain(3, lambda edges: [1.0, 2.0, 3.0, 0.5][edges])
    np.testing.assert_allclose(target @ T, target, atol=1e-12)
    betas = [exact_mixing_coefficient(T, n) for n in range(1, 30)]
    assert all(b < a for a, b in itertools.pairwise(betas))
    assert betas[-1] < 1e-3
    # By the definition, from the joint distribution of two states n steps apart.
    for n in (1, 4):
        joint = target[:, None] * np.linalg.matrix_power(T, n)
        assert betas[n - 1] == pytest.approx(np.abs(joint - np.outer(target, target)).sum() / 2)


def test_means_of_samples_stay_within_the_bound():
    T, states, target = gibbs_chain(3, lambda edges: 1.0 + edges)
    n, l, delta = 25, 400, 0.05
    bound = mcmc_mean_bound(l, n, lambda gap: exact_mixing_coefficient(T, gap), delta)
    assert bound < 0.5  # says something
    steps = np.linalg.matrix_power(T, n).cumsum(axis=1)  # a row for each state: to the next sample
    random = np.random.default_rng(0)
    state = random.choice(len(states), size=200, p=target)
    counts = np.zeros((200, len(states)))
    for _ in range(l):
        drawn = (steps[state] < random.random((200, 1)) * steps[state][:, -1:]).sum(axis=1)
        state = np.minimum(drawn, len(states) - 1)
        counts[np.arange(200), state] += 1
    errors = np.linalg.norm(counts / l - target, axis=1)  # features: the indicators of states
    assert np.mean(errors <= bound) >= 0.95


def test_an_independent_chain_does_not_remember():
    T = np.tile([0.2, 0.3, 0.5], (3, 1))
    assert exact_mixing_coefficient(T, 1) == pytest.approx(0.0, abs=1e-15)
    assert exact_mixing_coefficient([[0.0, 1.0], [1.0, 0.0]], 7) == pytest.approx(0.5)  # a clock never forgets


def test_errors_of_vectors_bound_errors_of_inner_products():
    random = np.random.default_rng(0)
    for _ in range(200):
        x, y, dx, dy = random.standard_normal((4, 3))
        lift = inner_product_lift(*(float(np.linalg.norm(v)) for v in (dx, dy, x, y)))
        assert abs(x @ y - (x + dx) @ (y + dy)) <= lift + 1e-12
    assert inner_product_lift(0.5, 0.5, 1.0, 1.0) == 1.25  # reached where all point the same way


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: information_loss_bound(0, 10, 1), "n_features"),
        (lambda: information_loss_bound(5, 0, 1), "n_buckets"),
        (lambda: information_loss_bound(5, 10, 1.5), "copies"),
        (lambda: optimal_copies(-1, 10), "n_features"),
        (lambda: expected_collision_rate(-1, 10), "n_names"),
        (lambda: expected_kernel(1.0, 1.0, 1.0, 0), "n_buckets"),
        (lambda: hoeffding_constants(0.0), "width"),
        (lambda: kernel_deviation_bound(0, 1, 10, 0.1, 2.0, 1.0), "m must"),
        (lambda: kernel_deviation_bound(1, 0, 10, 0.1, 2.0, 1.0), "M must"),
        (lambda: kernel_deviation_bound(1, 1, 0, 0.1, 2.0, 1.0), "n must"),
        (lambda: kernel_deviation_bound(1, 1, 10, 1.0, 2.0, 1.0), "delta"),
        (lambda: kernel_deviation_bound(1, 1, 10, 0.1, -2.0, 1.0), "c must"),
        (lambda: kernel_deviation_bound(1, 1, 10, 0.1, 2.0, float("nan")), "c_prime"),
        (lambda: required_buckets(0.0, 1, 1, 0.1, 2.0, 1.0), "eps"),
        (lambda: mcmc_mean_bound(0, 1, 0.1, 0.1), "l must"),
        (lambda: mcmc_mean_bound(5, 1, -0.1, 0.1), "beta"),
        (lambda: mcmc_mean_bound(5, 1, lambda n: 2.0, 0.1), "beta must be at most 1"),
        (lambda: mcmc_mean_bound(5, 1, 0.1, 0.0), "delta"),
        (lambda: inner_product_lift(-1.0, 0.0, 0.0, 0.0), "dx"),
        (lambda: exact_mixing_coefficient([[0.5, 0.5]], 1), "square"),
        (lambda: exact_mixing_coefficient([[0.5, 0.6], [0.5, 0.5]], 1), "sum to 1"),
        (lambda: exact_mixing_coefficient([[1.5, -0.5], [0.5, 0.5]], 1), "probabilities"),
        (lambda: exact_mixing_coefficient([[np.nan, 1.0], [0.5, 0.5]], 1), "probabilities"),
        (lambda: exact_mixing_coefficient(np.eye(2), 1), "more than one stationary distribution"),
        (lambda: exact_mixing_coefficient([[0.5, 0.5], [0.5, 0.5]], 0), "n must"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
