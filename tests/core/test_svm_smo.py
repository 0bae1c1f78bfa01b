"""Ascent by pairs: every answer is feasible and certified by weak duality, computed here from the matrix alone."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core

LIMIT = 200_000


def problem(seed: int, n: int = 60, rank: int = 60) -> tuple[np.random.Generator, np.ndarray]:
    """A Gram matrix of any scale, singular where the rank is small."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-3, 3)
    return rng, np.ascontiguousarray(A @ A.T)


def box_gap(K, slope, low, high, s, b):
    """P − D = Σ_i max_{t in [low_i, high_i]} (t − s_i) (slope_i − f_i), f = Ks + b."""
    d = slope - K @ s - b
    return float(np.where(d > 0, (high - s) * d, (low - s) * d).sum())


@pytest.mark.parametrize("rank", [3, 60])
@pytest.mark.parametrize("seed", range(5))
def test_box_programs_on_some_rows_are_solved(seed, rank):
    rng, K = problem(seed, rank=rank)
    members = rng.permutation(60)[:40]
    own, scale = K[np.ix_(members, members)], float(np.diag(K).mean())
    low, high = -rng.uniform(0, 1, 40) / scale, rng.uniform(0, 1, 40) / scale
    low[:5] = high[:5] = 0.0
    slope, start = rng.normal(size=40), np.zeros(40)
    s, g, b, _, norm, _, gap, steps, converged = _core.machines.KernelMachine(K).solve_box(
        members, slope, low, high, start, 0, 1e-9, LIMIT
    )
    assert converged
    assert 0 < steps < LIMIT
    assert (low <= s).all()
    assert (s <= high).all()
    assert abs(s.sum()) < 1e-13 * np.abs(s).sum()
    np.testing.assert_allclose(g, own @ s, atol=1e-10 * np.abs(g).max())
    assert norm == pytest.approx(s @ own @ s, rel=1e-8)
    value = slope @ s - norm / 2
    certified = box_gap(own, slope, low, high, s, b)
    assert -1e-12 * value <= certified < 1e-7 * value
    assert gap == pytest.approx(certified, abs=1e-9 * value)


@pytest.mark.parametrize("seed", range(5))
def test_two_groups_keep_their_sums(seed):
    rng, K = problem(seed)
    split, upper = 25, rng.uniform(0.5, 1, 60)
    members = rng.permutation(60)
    own = K[np.ix_(members, members)]
    low, high = np.r_[np.zeros(25), -upper[25:]], np.r_[upper[:25], np.zeros(35)]
    start = np.r_[0.3 * upper[:25], -0.2 * upper[25:]]
    scale = float(np.diag(K).mean())
    s, _, first, second, norm, _, _, _, converged = _core.machines.KernelMachine(K).solve_box(
        members, np.zeros(60), low, high, start, split, 1e-9 * scale, LIMIT
    )
    assert converged
    assert s[:25].sum() == pytest.approx(start[:25].sum(), rel=1e-12)
    assert s[25:].sum() == pytest.approx(start[25:].sum(), rel=1e-12)
    offsets = np.r_[np.full(25, first), np.full(35, second)]
    assert 0 <= box_gap(own, np.zeros(60), low, high, s, offsets) < 1e-7 * norm
    assert norm < start @ own @ start


@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_tubes_are_solved_over_their_corners(seed, width):
    rng, K = problem(seed, rank=8)
    target, upper = rng.normal(size=60), rng.uniform(0, 5, 60) / float(np.diag(K).mean())
    members = np.arange(60)
    s, _, b, _, norm, loss, gap, _, converged = _core.machines.KernelMachine(K).solve_tube(
        members, target, width, upper, 1e-9, LIMIT
    )
    assert converged
    assert (np.abs(s) <= upper).all()
    assert abs(s.sum()) < 1e-12 * np.abs(s).sum()
    primal = s @ K @ s / 2 + upper @ np.maximum(0.0, np.abs(target - K @ s - b) - width)
    dual = target @ s - width * np.abs(s).sum() - s @ K @ s / 2
    assert primal - dual < 1e-6 * primal
    assert norm / 2 + loss == pytest.approx(primal, rel=1e-8)
    assert gap == pytest.approx(primal - dual, abs=1e-8 * primal)


def test_a_start_is_gone_on_from():
    rng, K = problem(1)
    y = rng.choice([-1.0, 1.0], 60)
    upper = 1.0 / float(np.diag(K).mean())
    low, high = np.minimum(y, 0) * upper, np.maximum(y, 0) * upper
    machine, members = _core.machines.KernelMachine(K), np.arange(60)
    s, *_, steps, _ = machine.solve_box(members, y, low, high, np.zeros(60), 0, 1e-6, LIMIT)
    again, *_, more, converged = machine.solve_box(members, y, low, high, s, 0, 1e-6, LIMIT)
    assert steps > 20
    assert more < 3
    assert converged
    np.testing.assert_allclose(again, s, atol=1e-5 * upper)


def test_too_few_steps_are_said():
    rng, K = problem(2)
    *_, steps, converged = _core.machines.KernelMachine(K).solve_tube(
        np.arange(60), rng.normal(size=60), 0.0, np.ones(60), 1e-9, 3
    )
    assert steps == 3
    assert not converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": np.array([0, 0, 1])}, "each of them once"),
        ({"members": np.array([0, 1, 4])}, "rows of K"),
        ({"members": np.array([], np.int64)}, "at least one"),
        ({"slope": np.ones(2)}, "slope needs a finite value"),
        ({"low": np.full(3, np.nan)}, "low needs a finite value"),
        ({"start": np.full(3, 2.0)}, "start must lie between"),
        ({"split": 4}, "split must be"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    given = {
        "members": np.arange(3), "slope": np.ones(3), "low": -np.ones(3), "high": np.ones(3), "start": np.zeros(3),
        "split": 0, "tol": 1e-3, "max_iter": 10,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        _core.machines.KernelMachine(np.eye(4)).solve_box(**(given | change))
