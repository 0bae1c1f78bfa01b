"""The small program of bundle methods: feasible always, and the best of all faces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.learning.qp.simplex import simplex_qp
from reference.margin import best_of_faces


def value(G, b, a):
    return float(b @ a - 0.5 * a @ G @ a)


def check(G, b, total, start=None, tol=1e-9):
    a = simplex_qp(G, b, total, start)
    assert a.shape == b.shape
    assert (a >= 0).all()
    assert np.isclose(a.sum(), total, rtol=1e-10)
    wanted = best_of_faces(G, b, total, exact=True)[1]
    assert value(G, b, a) >= wanted - tol * max(1.0, abs(wanted), total * np.abs(b).max())
    return a


@pytest.mark.parametrize("total", [1.0, 0.01, 50.0])
@pytest.mark.parametrize("m", [1, 2, 4, 6])
@pytest.mark.parametrize("rank", [0, 1, 3, 8])
def test_it_equals_the_best_of_all_faces(m, rank, total):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        S = rng.normal(size=(m, rank))
        check(S @ S.T, rng.normal(size=m), total)


@pytest.mark.parametrize("copies", [2, 3])
def test_planes_that_stand_twice_do_no_harm(copies):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        S, b = rng.normal(size=(2, 3)), rng.normal(size=2)
        S, b = np.repeat(S, copies, axis=0), np.repeat(b, copies)
        check(S @ S.T, b, 1.0)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e4, 1e8])
def test_the_scale_of_the_slopes_does_not_matter(scale):
    rng = np.random.default_rng(0)
    S, b = scale * rng.normal(size=(5, 4)), rng.normal(size=5)
    check(S @ S.T, b, 1.0)


def test_the_kkt_conditions_hold_on_larger_programs():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        m, rank = 60, 25
        S, b = rng.normal(size=(m, rank)), rng.uniform(size=m)
        a = simplex_qp(S @ S.T, b, 1.0)
        gradient = b - S @ (S.T @ a)
        price = gradient[a > 0]
        assert np.ptp(price) < 1e-8
        assert (gradient <= price.max() + 1e-8).all()


def test_a_start_changes_the_way_and_not_the_end():
    rng = np.random.default_rng(1)
    S, b = rng.normal(size=(6, 8)), rng.normal(size=6)
    G = S @ S.T
    wanted = simplex_qp(G, b, 2.0)
    for start in (wanted, wanted[:3], np.zeros(6), np.eye(6)[5], np.ones(4), np.array([])):
        np.testing.assert_allclose(check(G, b, 2.0, start), wanted, atol=1e-9)


def test_growing_programs_from_the_last_solution_never_get_worse():
    rng = np.random.default_rng(0)
    S, b, a, last = np.zeros((1, 10)), np.zeros(1), None, -np.inf
    for _ in range(40):
        S, b = np.vstack([S, rng.normal(size=10)]), np.append(b, rng.normal())
        a = simplex_qp(S @ S.T, b, 1.0, a)
        assert value(S @ S.T, b, a) >= last - 1e-10
        last = value(S @ S.T, b, a)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_small_whole_numbers_make_ties_and_singular_faces(data):
    """Slopes and offsets from −2 … 2: many equal planes, many equal values."""
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    whole = st.integers(-2, 2)
    S = np.array(data.draw(st.lists(st.lists(whole, min_size=n, max_size=n), min_size=m, max_size=m)), float)
    b = np.array(data.draw(st.lists(whole, min_size=m, max_size=m)), float)
    check(S @ S.T, b, 1.0, tol=1e-8)
