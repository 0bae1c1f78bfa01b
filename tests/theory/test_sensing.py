"""What is said about recovery holds where it is measured, and fails where it must."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_faces
from mercer.maps import RandomProjection, SignedHashProjection
from mercer.recognition import SparseRepresentationClassifier
from mercer.theory.sensing import (
    coherence,
    guaranteed_sparsity,
    recognition_rate_bound,
    recovery_rate,
    required_dimension,
    restricted_isometry,
)


def gaussian(n: int = 200, m: int = 500, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, m))


def test_coherence_is_the_largest_cosine():
    atoms = gaussian(40, 12)
    unit = atoms / np.linalg.norm(atoms, axis=1)[:, None]
    assert coherence(atoms) == pytest.approx(np.abs(unit @ unit.T - np.eye(40)).max())
    assert coherence(np.eye(4)) == 0
    assert guaranteed_sparsity(np.eye(4)) == 4


def test_every_code_below_the_guaranteed_sparsity_is_recovered():
    # Spikes and waves: the coherence of d + d atoms is √(2/d) or less.
    d = 128
    t, k = np.meshgrid(np.arange(d), np.arange(d), indexing="ij")
    waves = np.cos(np.pi * (t + 0.5) * k / d).T
    atoms = np.vstack([np.eye(d), waves])
    k = guaranteed_sparsity(atoms)
    assert k >= 4
    assert recovery_rate(atoms, k, random_state=0) == 1.0
    assert recovery_rate(atoms, k, solver="l1", random_state=0) == 1.0


def test_isometry_constants_grow_with_the_sparsity_and_bound_samples():
    atoms = gaussian()
    constants = [restricted_isometry(atoms, k, 200, random_state=0) for k in (1, 2, 5, 10)]
    assert constants[0] == pytest.approx(0, abs=1e-12)
    assert constants == sorted(constants)
    assert restricted_isometry(np.vstack([atoms[:1]] * 2), 2, 1, random_state=0) == pytest.approx(1.0)


@pytest.mark.parametrize("projection", [SignedHashProjection, RandomProjection])
def test_recovery_rises_sharply_with_the_dimension(projection):
    rates = [recovery_rate(gaussian(), 5, projection(d), n_trials=60, random_state=0) for d in (10, 25, 100)]
    assert rates == sorted(rates)
    assert rates[0] < 0.3
    assert 0.6 < rates[1] < 0.97
    assert rates[2] >= 0.99


def test_the_theorem_asks_for_more_than_is_needed():
    assert [required_dimension(k, 1216, 0.1) for k in (1, 2, 5, 10)] == [151, 602, 3763, 15050]
    assert recovery_rate(gaussian(), 2, SignedHashProjection(60), random_state=0) >= 0.9


def test_two_equal_atoms_contradict_recovery_for_any_dictionary():
    atoms = np.repeat(gaussian(20), 2, axis=0)
    assert recovery_rate(atoms, 2, SignedHashProjection(400), random_state=0) < 0.6
    assert coherence(atoms) == pytest.approx(1.0)
    assert guaranteed_sparsity(atoms) == 0


def test_recognition_is_at_least_the_rate_of_recovery_times_that_with_exact_codes():
    images, names = make_faces(10, 12, random_state=0)
    train = np.arange(len(names)) % 12 < 8
    A, X = images[train].reshape(80, -1), images[~train]
    exact = SparseRepresentationClassifier().fit(A, names[train]).score(X, names[~train])
    hashed = SparseRepresentationClassifier(SignedHashProjection(150, random_state=0)).fit(A, names[train])
    recovered = recovery_rate(A, 3, SignedHashProjection(150), n_trials=40, random_state=0)
    assert hashed.score(X, names[~train]) >= recognition_rate_bound(exact, 1 - recovered)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coherence(np.ones((1, 3))), "two rows"),
        (lambda: coherence(np.zeros((3, 3))), "no row may be 0"),
        (lambda: coherence(np.full((3, 3), np.nan)), "NaN"),
        (lambda: restricted_isometry(np.eye(3), 4), "sparsity"),
        (lambda: restricted_isometry(np.eye(3), 2, 0), "n_trials"),
        (lambda: recovery_rate(np.eye(3), 2, solver="lasso"), "solver"),
        (lambda: required_dimension(3, 2, 0.1), "sparsity"),
        (lambda: required_dimension(1, 2, 0.0), "delta"),
        (lambda: recognition_rate_bound(1.2, 0.1), "rate"),
        (lambda: recognition_rate_bound(0.9, -0.1), "delta"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
