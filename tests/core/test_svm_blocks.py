"""Ascent by blocks: the answers of the ascent over the whole matrix, from rows that are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core

LIMIT = 200_000
SIZE = 150


def problem(seed: int, rank: int = SIZE) -> tuple[np.random.Generator, np.ndarray]:
    """A Gram matrix of any scale, singular where the rank is small."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(SIZE, rank)) * 10.0 ** rng.uniform(-3, 3)
    return rng, np.ascontiguousarray(A @ A.T)


def solved(machine, K):
    """The result, and the most rows that were asked for at a time."""
    most = 0
    while len(places := machine.wanted()):
        assert len(np.unique(places)) == len(places)
        np.testing.assert_array_equal(machine.wanted(), places)  # asking again changes nothing
        most = max(most, len(places))
        machine.give(np.ascontiguousarray(K[places]))
    return machine.result(), most


def box(K, slope, low, high, start, split=0, tol=1e-9, room=40, threads=1, limit=LIMIT):
    return _core.machines.BoxBlocks(slope, low, high, start, np.diag(K).copy(), split, tol, limit, room, threads)


def box_gap(K, slope, low, high, s, b):
    """P − D = Σ_i max_{t in [low_i, high_i]} (t − s_i) (slope_i − f_i), f = Ks + b."""
    d = slope - K @ s - b
    return float(np.where(d > 0, (high - s) * d, (low - s) * d).sum())


@pytest.mark.parametrize("room", [1, 40, 10_000])
@pytest.mark.parametrize(("seed", "rank"), [(0, 3), (1, SIZE), (2, SIZE)])
def test_box_programs_are_solved_with_room_for_few_rows(seed, rank, room):
    rng, K = problem(seed, rank)
    scale = float(np.diag(K).mean())
    low, high = -rng.uniform(0, 1, SIZE) / scale, rng.uniform(0, 1, SIZE) / scale
    low[:5] = high[:5] = 0.0
    slope = rng.normal(size=SIZE)
    (s, g, b, _, norm, _, gap, steps, converged), most = solved(box(K, slope, low, high, np.zeros(SIZE), room=room), K)
    assert converged
    assert 0 < steps < LIMIT
    assert most <= max(2, min(room / 9, 256))
    assert (low <= s).all()
    assert (s <= high).all()
    assert abs(s.sum()) < 1e-12 * np.abs(s).sum()
    np.testing.assert_allclose(g, K @ s, atol=1e-10 * np.abs(g).max())
    assert norm == pytest.approx(s @ K @ s, rel=1e-8)
    value = slope @ s - norm / 2
    certified = box_gap(K, slope, low, high, s, b)
    assert -1e-12 * value <= certified < 1e-6 * value
    assert gap == pytest.approx(certified, abs=1e-9 * value)
    whole = _core.machines.KernelMachine(K).solve_box(np.arange(SIZE), slope, low, high, np.zeros(SIZE), 0, 1e-9, LIMIT)
    assert value == pytest.approx(slope @ whole[0] - whole[4] / 2, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_two_groups_keep_their_sums_from_any_start(seed):
    rng, K = problem(seed)
    split, upper = 60, rng.uniform(0.5, 1, SIZE)
    low, high = np.r_[np.zeros(split), -upper[split:]], np.r_[upper[:split], np.zeros(SIZE - split)]
    start = np.r_[0.3 * upper[:split], -0.2 * upper[split:]]
    scale = float(np.diag(K).mean())
    machine = box(K, np.zeros(SIZE), low, high, start, split, 1e-9 * scale)
    (s, _, first, second, norm, _, _, _, converged), _ = solved(machine, K)
    assert converged
    assert s[:split].sum() == pytest.approx(start[:split].sum(), rel=1e-12)
    assert s[split:].sum() == pytest.approx(start[split:].sum(), rel=1e-12)
    offsets = np.r_[np.full(split, first), np.full(SIZE - split, second)]
    assert 0 <= box_gap(K, np.zeros(SIZE), low, high, s, offsets) < 1e-6 * norm
    assert norm < start @ K @ start


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_tubes_are_those_of_the_whole_matrix(width):
    rng, K = problem(5, rank=8)
    target, upper = rng.normal(size=SIZE), rng.uniform(0, 5, SIZE) / float(np.diag(K).mean())
    machine = _core.machines.TubeBlocks(target, width, upper, np.diag(K).copy(), 1e-9, LIMIT, 40)
    (s, _, _, _, norm, _, _, _, converged), _ = solved(machine, K)
    whole = _core.machines.KernelMachine(K).solve_tube(np.arange(SIZE), target, width, upper, 1e-9, LIMIT)
    assert converged
    values = [target @ t - width * np.abs(t).sum() - n / 2 for t, n in ((s, norm), (whole[0], whole[4]))]
    assert values[0] == pytest.approx(values[1], rel=1e-7)


def test_threads_change_no_bit():
    rng, K = problem(3)
    y = np.sign(rng.normal(size=SIZE))
    bounds = np.minimum(0.0, y), np.maximum(0.0, y)
    found = [solved(box(K, y, *bounds, np.zeros(SIZE), tol=1e-3, threads=threads), K)[0] for threads in (1, 3)]
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert found[0][2] == found[1][2]


def test_steps_are_limited_and_said():
    rng, K = problem(3)
    y = np.sign(rng.normal(size=SIZE))
    (*_, steps, converged), _ = solved(
        box(K, y, np.minimum(0.0, y), np.maximum(0.0, y), np.zeros(SIZE), tol=1e-12, limit=7), K
    )
    assert steps == 7
    assert not converged


def test_nothing_to_move_is_an_answer_without_rows():
    K, zero = np.eye(SIZE), np.zeros(SIZE)
    machine = box(K, zero, zero, zero, zero)
    assert len(machine.wanted()) == 0
    assert machine.result()[-1]


def test_rows_are_checked_before_they_are_used():
    rng, K = problem(1)
    y = np.sign(rng.normal(size=SIZE))
    machine = box(K, y, np.minimum(0.0, y), np.maximum(0.0, y), np.zeros(SIZE))
    with pytest.raises(ValueError, match="no rows were asked for"):
        machine.give(K[:2].copy())
    places = machine.wanted()
    with pytest.raises(ValueError, match="not at its end"):
        machine.result()
    with pytest.raises(ValueError, match="rows must be those"):
        machine.give(K[places][:, :-1].copy())
    with pytest.raises(ValueError, match="K must be finite"):
        machine.give(np.full((len(places), SIZE), np.nan))
    machine.give(K[places].copy())  # nothing had changed
    assert solved(machine, K)[0][-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": np.ones(SIZE)}, "start must lie between"),
        ({"low": np.full(SIZE, np.nan)}, "low needs a finite value"),
        ({"high": np.ones(3)}, "high needs a finite value for each"),
        ({"split": SIZE + 1}, "split must be a number"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"room": 0}, "room for a row"),
        ({"limit": 0}, "max_iter must be at least 1"),
    ],
)
def test_wrong_programs_are_refused(change, message):
    zero = np.zeros(SIZE)
    settings = {"slope": zero, "low": zero, "high": zero, "start": zero} | change
    with pytest.raises(ValueError, match=message):
        box(np.eye(SIZE), **settings)
