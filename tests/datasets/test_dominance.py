"""Generators of labels that no answer gets right most of the time."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_mixed_dominance, make_nondominant


@pytest.mark.parametrize("k", range(3, 11))
def test_nondominant_labels_come_in_exact_proportion(k: int) -> None:
    X, y = make_nondominant(k)
    counts = np.bincount(y, minlength=k)
    assert X.shape == (100, 1)
    assert (X == 1.2).all()
    assert counts[0] == 46
    assert counts[1:].sum() == 54
    assert np.ptp(counts[1:]) <= 1


def test_nondominant_inputs_spread_with_sigma() -> None:
    X, _ = make_nondominant(3, n=5000, sigma=0.2)
    assert abs(X.mean() - 1.2) < 0.02
    assert abs(X.std() - 0.2) < 0.02


def test_labels_without_dominance_sit_at_one_point_and_the_others_on_a_line() -> None:
    X, y = make_mixed_dominance(0.4, 5000, fixed=np.full(100, -1.0))
    still = (X == -1.0).all(axis=1)
    assert still.sum() == 2000
    np.testing.assert_allclose(np.bincount(y[still]) / still.sum(), [0.4, 0.15, 0.15, 0.15, 0.15], atol=0.03)
    np.testing.assert_allclose(np.bincount(y[~still]) / (~still).sum(), 0.2, atol=0.03)
    for j in range(5):
        rows = X[~still & (y == j)]
        np.testing.assert_allclose(rows.mean(), 1 + j, atol=0.01)
        np.testing.assert_allclose(rows.std(), 0.6, atol=0.01)


@pytest.mark.parametrize(("rho", "n_still"), [(0.0, 0), (1.0, 50)])
def test_all_or_none_may_lack_a_dominant_label(rho: float, n_still: int) -> None:
    X, y = make_mixed_dominance(rho, 50, n_features=3)
    assert (X == [1.0, -1.0, 1.0]).all(axis=1).sum() == n_still
    assert set(y) <= set(range(5))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: make_nondominant(4, sigma=0.1, random_state=seed),
        lambda seed: make_mixed_dominance(0.5, 40, random_state=seed),
    ],
)
def test_the_same_seed_gives_the_same_examples(make) -> None:
    (X, y), (X_again, y_again), (_, y_other) = (make(seed) for seed in (1, 1, 2))
    assert np.array_equal(X, X_again)
    assert np.array_equal(y, y_again)
    assert not np.array_equal(y, y_other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1}, "k must be an integer of at least 2, got 1"),
        ({"k": 5, "n": 4}, "n must be an integer of at least 5, got 4"),
        ({"k": 3, "p_top": 0.0}, "p_top must be a positive finite number"),
        ({"k": 3, "p_top": 0.001}, "p_top must leave at least one of 100 examples to each of 3 labels"),
        ({"k": 3, "p_top": 0.99}, "p_top must leave at least one of 100 examples to each of 3 labels"),
        ({"k": 3, "sigma": -1.0}, "sigma must be a finite number of at least 0"),
        ({"k": 3, "mu": np.nan}, "mu must be a finite number"),
    ],
)
def test_impossible_nondominant_tasks_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_nondominant(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rho": 1.1, "m": 10}, "rho must lie between 0 and 1, got 1.1"),
        ({"rho": np.nan, "m": 10}, "rho must lie between 0 and 1"),
        ({"rho": 0.5, "m": 0}, "m must be an integer of at least 1, got 0"),
        ({"rho": 0.5, "m": 10, "n_features": 0}, "n_features must be an integer of at least 1"),
        ({"rho": 0.5, "m": 10, "sigma": 0.0}, "sigma must be a positive finite number"),
        ({"rho": 0.5, "m": 10, "n_features": 2, "fixed": [0.0, np.inf]}, "fixed must be 2 finite numbers"),
        (
            {"rho": 0.5, "m": 10, "fixed": [0.0, 1.0]},
            r"fixed must be 100 finite numbers, one per feature, got shape \(2,\)",
        ),
    ],
)
def test_impossible_mixtures_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_mixed_dominance(**arguments)
