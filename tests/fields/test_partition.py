"""Partition functions: annealing brackets exact sums, errors cover them, and too few chains give no value."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.fields import RBM, BoltzmannMachine, UnreliableEstimateError, log_partition
from mercer.fields._units import HiddenUnits
from mercer.fields.partition import estimate
from mercer.learning.learners import Keys


def fitted(hidden, seed=0):
    random = np.random.default_rng(seed)
    X = (random.random((300, 20)) < random.random(20)).astype(int)
    X[:, 10:] = X[:, :10]
    return RBM(hidden, max_iter=20, learning_rate=0.1, random_state=seed).fit(X)


@pytest.mark.parametrize("hidden", [3, 12, pytest.param(20, marks=pytest.mark.slow)])
def test_annealing_from_both_sides_brackets_the_exact_sum(hidden):
    model = fitted(hidden)
    exact = float(log_partition(model, "exact"))
    found = log_partition(model, "reverse-ais", n_temperatures=300, random_state=1)
    assert found.exact_start
    assert found.lower < exact + 4 * found.error + 0.02
    assert found.upper > exact - 4 * found.error - 0.02
    assert found.value == pytest.approx(exact, rel=0.01)
    smc = log_partition(model, "smc", n_chains=400, random_state=1)
    assert smc.value == pytest.approx(exact, abs=5 * smc.error + 0.05)


def test_standard_errors_cover_the_exact_value():
    model = fitted(6)
    exact = float(log_partition(model, "exact"))
    found = [log_partition(model, "ais", n_temperatures=100, random_state=seed) for seed in range(40)]
    assert all(result.ess > 50 for result in found)
    covered = np.mean([abs(result.value - exact) < 1.96 * result.error for result in found])
    assert covered > 0.85


def test_boltzmann_machines_are_summed_and_annealed():
    X = np.random.default_rng(0).integers(0, 2, (200, 8)) * 2 - 1
    model = BoltzmannMachine(max_iter=20, random_state=0).fit(X)
    rows = 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1) - 1
    exact = float(log_partition(model, "exact"))
    assert exact == pytest.approx(np.logaddexp.reduce(-model.free_energy(rows)), abs=1e-9)
    found = log_partition(model, "reverse-ais", n_temperatures=100, random_state=0)
    assert found.value == pytest.approx(exact, abs=5 * found.error + 0.01)


def test_gaussian_units_are_summed_and_annealed():
    random = np.random.default_rng(0)
    field = HiddenUnits(5, 4, gaussian=True)
    theta = (0.5 * random.normal(size=field.n_weights)).astype(np.float32)
    exact = estimate(field, theta, "exact", 1, 2, Keys(0)).value
    found = estimate(field, theta, "ais", 400, 200, Keys(0))
    assert found.value == pytest.approx(exact, abs=5 * found.error + 0.01)


@pytest.mark.parametrize(("visible", "hidden"), [(3, 5), (5, 3)])
def test_sums_over_either_layer_equal_enumeration_of_both(visible, hidden):
    field = HiddenUnits(visible, hidden)
    theta = np.random.default_rng(0).normal(size=field.n_weights).astype(np.float32)
    W, b, c = (part.astype(float) for part in field.parts(theta))
    v, h = (((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float) for n in (visible, hidden))
    scores = v @ W @ h.T + h @ b + (v @ c)[:, None]
    log_z, statistics = field.exact(theta)
    assert log_z == pytest.approx(np.logaddexp.reduce(scores, axis=None), abs=1e-10)
    p = np.exp(scores - log_z)
    expected = [(v.T @ p @ h).ravel(), p.sum(axis=0) @ h, p.sum(axis=1) @ v]
    np.testing.assert_allclose(statistics, np.concatenate(expected), rtol=1e-5)


def test_too_few_chains_that_count_give_no_value():
    field = HiddenUnits(30, 30)
    theta = (3.0 * np.random.default_rng(0).normal(size=field.n_weights)).astype(np.float32)
    found = estimate(field, theta, "ais", 3, 100, Keys(0))
    assert found.ess < 10
    with pytest.raises(UnreliableEstimateError, match="effective sample size"):
        float(found)
    assert np.isfinite(found.lower)


def test_arguments_are_checked():
    model = fitted(3)
    with pytest.raises(ValueError, match="method"):
        log_partition(model, "guess")
    with pytest.raises(TypeError, match="RBM or a BoltzmannMachine, got int"):
        log_partition(3)
    with pytest.raises(ValueError, match="n_chains"):
        log_partition(model, n_chains=1)
    with pytest.raises(ValueError, match="2\\^20"):
        log_partition(RBM(40, max_iter=0).fit(np.eye(40, dtype=int)), "exact")
