"""Planes and block-coordinate ascent in the compiled core: exact steps on the dual, and no trust in arguments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from mercer import _core
from mercer.learning import Hinge
from mercer.learning.solvers.cutting_plane import WorkingSets
from reference.margin import CHAINS, COSTS, RULES, best_of_faces, chain

I64, I32 = np.int64, np.int32
REFUSED = (TypeError, ValueError)


def ints(*values, dtype=I64):
    return np.array(values, dtype)


def add(planes, blocks, slopes, offsets, bound=False, w=None):
    """Adds dense slopes, one a block."""
    rows = csr_matrix(np.atleast_2d(np.asarray(slopes, float)))
    w = np.zeros(rows.shape[1]) if w is None else w
    return planes.add(
        np.asarray(blocks, I64),
        rows.indptr.astype(I64),
        rows.indices.astype(I64),
        rows.data,
        np.ascontiguousarray(offsets, float),
        bound,
        w,
    )


def dual(planes, w):
    return planes.linear - planes.quadratic - 0.5 * float(w @ w)


def one_block(slopes, offsets, mass, power=1, bounds=(), B=1.0, visits=500):
    """All planes in one block, solved; the dual value and w."""
    slopes = np.asarray(slopes, float)
    planes, w = _core.planes.Planes(1, slopes.shape[1], np.array([mass]), power), np.zeros(slopes.shape[1])
    for slope, offset in zip(slopes, offsets, strict=True):
        add(planes, [0], slope, [offset])
    for slope in bounds:
        add(planes, [0], -np.asarray(slope, float), [-B], True)
    for _ in range(visits):
        planes.solve(ints(0), w)
    return dual(planes, w), w


def reference(slopes, offsets, mass, power=1, bounds=(), B=1.0):
    S = np.vstack([np.asarray(slopes, float), *[-np.asarray(s, float)[None] for s in bounds]])
    b = np.concatenate([offsets, np.full(len(bounds), -B)])
    limited = np.arange(len(b)) < len(offsets)
    G = S @ S.T
    if power == 2:
        G = G + np.outer(limited, limited) / (2.0 * mass)
        return best_of_faces(G, b)[1]
    return best_of_faces(G, b, mass, limited)[1]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("mass", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("n_bounds", [0, 2])
def test_steps_on_one_block_end_at_its_maximum(power, mass, n_bounds):
    for seed in range(8):
        problem = random_block(seed, n_bounds)
        found, _ = one_block(*problem[:2], mass, power, problem[2], 0.3)
        wanted = reference(*problem[:2], mass, power, problem[2], 0.3)
        assert np.isclose(found, wanted, rtol=1e-6, atol=1e-9)


def random_block(seed, n_bounds):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    slopes = rng.normal(size=(int(rng.integers(1, 5)), n))
    return slopes, rng.uniform(0, 2, len(slopes)), rng.normal(size=(n_bounds, n))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_ties_and_singular_blocks_are_solved_exactly(data):
    m, n, power = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2]))
    whole = st.integers(-2, 2)
    S = np.array(data.draw(st.lists(st.lists(whole, min_size=n, max_size=n), min_size=m, max_size=m)), float)
    b = np.array(data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)), float)
    mass = data.draw(st.sampled_from([0.1, 1.0, 5.0]))
    found, _ = one_block(S, b, mass, power)
    assert np.isclose(found, reference(S, b, mass, power), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("power", [1, 2])
def test_the_dual_never_falls_and_its_multipliers_stay_feasible(power):
    """With independent slopes the multipliers can be read off the weights."""
    rng = np.random.default_rng(0)
    n_blocks, per, n = 5, 3, 20
    mass = rng.uniform(0.2, 2.0, n_blocks)
    planes, w = _core.planes.Planes(n_blocks, n, mass, power), np.zeros(n)
    slopes = rng.normal(size=(per, n_blocks, n))
    offsets = rng.uniform(0.1, 2.0, (per, n_blocks))
    last = 0.0
    for k in range(per):
        assert add(planes, np.arange(n_blocks), slopes[k], offsets[k], w=w) == n_blocks
        for _ in range(4):
            planes.solve(rng.permutation(n_blocks).astype(I64), w)
            value = dual(planes, w)
            assert value >= last - 1e-12
            last = value
            S = slopes[: k + 1].reshape(-1, n)
            a = np.linalg.lstsq(S.T, w, rcond=None)[0]
            np.testing.assert_allclose(S.T @ a, w, atol=1e-10)
            assert (a >= -1e-10).all()
            sums = a.reshape(k + 1, n_blocks).sum(axis=0)
            if power == 1:
                assert (sums <= mass + 1e-10).all()
            assert np.isclose(planes.linear, a @ offsets[: k + 1].ravel())
            assert np.isclose(planes.quadratic, 0 if power == 1 else (sums**2 / (4 * mass)).sum())
    for _ in range(200):
        planes.solve(np.arange(n_blocks), w)
    assert planes.residual(w) < 1e-8
    assert planes.count == n_blocks * per
    assert planes.nbytes > 0
    assert planes.n_blocks == n_blocks


def test_multipliers_of_bounds_are_not_limited_by_the_mass():
    """max −a + ½ a over … : a large step against one bound, whatever the mass."""
    value, w = one_block([[10.0]], [100.0], 10.0, 1, bounds=[[1.0]], B=2.0)
    assert np.isclose(w[0], 2.0)  # the bound holds exactly
    assert np.isclose(value, reference([[10.0]], [100.0], 10.0, 1, [[1.0]], 2.0))


def test_a_plane_is_added_once():
    planes, w = _core.planes.Planes(2, 3, np.ones(2)), np.zeros(3)
    assert add(planes, [0, 1], [[1, 0, 2], [1, 0, 2]], [1.0, 1.0]) == 2
    assert add(planes, [0], [1, 0, 2], [1.0]) == 0
    assert add(planes, [0], [1, 0, 2], [1.0], w=np.ones(3)) == 0
    assert add(planes, [0], [1, 0, 2], [2.0]) == 1  # another offset
    assert add(planes, [0], [0, 1, 2], [1.0]) == 1  # another slope
    assert add(planes, [0], [1, 0, 2], [1.0], bound=True) == 1  # another kind
    assert add(planes, [1], [0, 0, 0], [0.0]) == 0  # the true output itself
    assert planes.count == 5
    planes.solve(ints(0, 1, 0), w)
    assert planes.count == 5


def test_idle_planes_are_dropped_and_weighted_ones_stay():
    planes, w = _core.planes.Planes(1, 2, np.ones(1)), np.zeros(2)
    add(planes, [0], [1.0, 0.0], [1.0])
    add(planes, [0], [0.0, 5.0], [-1.0])  # never worth a weight
    for _ in range(3):
        planes.solve(ints(0), w, 5)
    assert planes.count == 2
    for _ in range(5):
        planes.solve(ints(0), w, 5)
    assert planes.count == 1
    value = dual(planes, w)
    planes.solve(ints(0), w)
    assert np.isclose(dual(planes, w), value)
    assert np.isclose(w[0], 1.0)
    assert add(planes, [0], [0.0, 5.0], [-1.0]) == 1


def test_the_highest_planes_are_those_of_numpy():
    rng = np.random.default_rng(0)
    mass = np.array([1.0, 0.5, 2.0])
    planes = _core.planes.Planes(3, 4, mass)
    slopes, offsets = rng.normal(size=(3, 2, 4)), rng.uniform(size=(3, 2))
    for k in range(2):
        add(planes, [0, 1], slopes[:2, k], offsets[:2, k])
    add(planes, [0], [100.0, 0, 0, 0], [50.0], bound=True)  # bounds are no losses
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=4)
        values, slope = np.empty(3), np.full(4, 7.0)
        total, offset = planes.highest(w, values, slope)
        heights = offsets[:2] - slopes[:2] @ w
        np.testing.assert_allclose(values, [*np.maximum(0, heights.max(axis=1)), 0.0])
        assert np.isclose(total, mass @ values)
        best = [(i, heights[i].argmax()) for i in range(2) if heights[i].max() > 0]
        assert np.isclose(offset, sum(mass[i] * offsets[i, k] for i, k in best))
        np.testing.assert_allclose(slope - 7.0, sum((mass[i] * slopes[i, k] for i, k in best), np.zeros(4)))


@pytest.mark.parametrize("power", [1, 2])
def test_gaps_are_what_a_block_still_lacks(power):
    """mass h^power − Σ a (offset − ⟨w, slope⟩) (+ the conjugate) of each block: 0 once it is optimal."""
    rng = np.random.default_rng(3)
    slopes, offsets, mass = rng.normal(size=(4, 6)), rng.uniform(0.5, 1, 4), np.full(4, 0.7)
    planes, w = _core.planes.Planes(4, 6, mass, power), np.zeros(6)
    add(planes, range(4), slopes, offsets, w=w)
    np.testing.assert_allclose(planes.gaps(), mass * offsets**power)
    for _ in range(500):
        planes.solve(np.arange(4), w)
    heights = np.maximum(0, offsets - slopes @ w)
    add(planes, range(4), slopes, offsets, w=w)
    np.testing.assert_allclose(planes.gaps(), 0.0, atol=1e-8)
    primal = 0.5 * w @ w + mass @ heights**power
    assert np.isclose(primal, dual(planes, w))


# ----------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("cost", ["hamming", "weighted", "matrix", "taxonomy", "callable"])
def test_a_compiled_visit_is_a_search_and_a_step(kind, cost):
    """chain_ascent over an order equals the general path, one example at a time."""
    found = []
    for compiled in (True, False):
        problem = chain(**CHAINS[kind])
        risk = problem.risk(Hinge(COSTS[cost][0]))
        sets = WorkingSets(risk, 0.7)
        order = [4, 1, 5, 3, 0, 2]
        if compiled:
            total = problem.structure.ascent(risk.loss, risk.X, risk.y, ints(*order), sets.w, sets.planes, 10)
            assert np.isfinite(total)
        else:
            for i in order:
                sets.search(sets.w, slice(i, i + 1))
                sets.solve(ints(i), 10)
        found.append((sets.w, sets.dual, sets.planes.count))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-10)
    assert np.isclose(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]


@pytest.mark.parametrize("kind", CHAINS)
def test_a_compiled_pegasos_epoch_is_a_walk_over_planes(kind):
    problem = chain((3, 1, 2, 3), **CHAINS[kind])
    risk = problem.risk(Hinge(COSTS["matrix"][0]))
    total, state, mass = np.zeros(problem.n_weights), _core.chain.OnlineState(), 2.5
    loss, offsets = problem.structure.subgradient(risk.loss, risk.X, risk.y, ints(2, 0, 3, 1), total, mass, state)
    wanted, offset, losses = np.zeros(problem.n_weights), 0.0, 0.0
    for step, i in enumerate((2, 0, 3, 1)):
        w = wanted / step if step else wanted
        value, slope, off = risk.oracle(w, slice(i, i + 1))
        wanted, offset, losses = wanted + mass * slope.toarray()[0], offset + mass * off[0], losses + value[0]
    np.testing.assert_allclose(total, wanted, atol=1e-10)
    assert np.isclose(offsets, offset)
    assert np.isclose(loss, losses)
    assert (state.step, state.scale) == (4.0, 0.25)


# --------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "arguments",
    [
        (2, 3, np.ones(3)),
        (3, 3, np.ones(2)),
        (-1, 3, np.ones(0)),
        (2, -1, np.ones(2)),
        (2, 2**31, np.ones(2)),
        (2, 3, np.array([1.0, 0.0])),
        (2, 3, np.array([1.0, -1.0])),
        (2, 3, np.array([1.0, np.nan])),
        (2, 3, np.array([1.0, np.inf])),
        (2, 3, np.ones(2, np.float32)),
        (2, 3, np.ones((2, 1))),
        (2, 3, [1.0, 1.0]),
        (2, 3, None),
        (2, 3, np.ones(2), 0),
        (2, 3, np.ones(2), 3),
        (2, 3, np.ones(2), 1.5),
        (2.5, 3, np.ones(2)),
    ],
)
def test_bad_blocks_are_refused(arguments):
    with pytest.raises(REFUSED):
        _core.planes.Planes(*arguments)


GOOD = {
    "blocks": ints(0, 1),
    "indptr": ints(0, 2, 3),
    "indices": ints(0, 2, 1),
    "values": np.array([1.0, 2.0, 3.0]),
    "offsets": np.array([1.0, 1.0]),
    "bound": False,
    "w": np.zeros(3),
}


def test_good_planes_are_taken():
    assert _core.planes.Planes(2, 3, np.ones(2)).add(*GOOD.values()) == 2
    assert _core.planes.Planes(0, 0, np.ones(0)).count == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": ints(0, 2)},
        {"blocks": ints(-1, 0)},
        {"blocks": ints(0)},
        {"blocks": ints(0, 1, dtype=I32)},
        {"blocks": [0, 1]},
        {"indptr": ints(0, 2)},
        {"indptr": ints(1, 2, 3)},
        {"indptr": ints(0, 3, 2)},
        {"indptr": ints(0, 4, 3)},
        {"indptr": ints(0, 2, 4)},
        {"indptr": ints(0, -1, 3)},
        {"indptr": ints()},
        {"indptr": ints(0, 2, 3, dtype=I32)},
        {"indices": ints(2, 0, 1)},
        {"indices": ints(0, 0, 1)},
        {"indices": ints(0, 3, 1)},
        {"indices": ints(-1, 2, 1)},
        {"indices": ints(0, 2)},
        {"indices": ints(0, 2, 1, dtype=I32)},
        {"values": np.array([1.0, np.nan, 3.0])},
        {"values": np.array([1.0, np.inf, 3.0])},
        {"values": np.ones(2)},
        {"values": np.ones(3, np.float32)},
        {"offsets": np.array([1.0, np.nan])},
        {"offsets": np.array([-np.inf, 1.0])},
        {"offsets": np.ones(3)},
        {"w": np.zeros(2)},
        {"w": np.zeros(4)},
        {"w": np.zeros(3, np.float32)},
        {"w": None},
    ],
)
def test_bad_planes_are_refused_and_nothing_is_added(changes):
    planes = _core.planes.Planes(2, 3, np.ones(2))
    with pytest.raises(REFUSED):
        planes.add(*{**GOOD, **changes}.values())
    assert planes.count == 0


@pytest.mark.parametrize("call", ["solve", "highest", "residual"])
def test_bad_weights_and_blocks_are_refused(call):
    planes = _core.planes.Planes(2, 3, np.ones(2))
    planes.add(*GOOD.values())
    bad = {
        "solve": [
            (ints(2), np.zeros(3)),
            (ints(-1), np.zeros(3)),
            (ints(0), np.zeros(2)),
            (ints(0), np.zeros(3, np.float32)),
            (ints(0, dtype=I32), np.zeros(3)),
            (ints(0), None),
        ],
        "highest": [
            (np.zeros(2), np.zeros(2), np.zeros(3)),
            (np.zeros(3), np.zeros(3), np.zeros(3)),
            (np.zeros(3), np.zeros(2), np.zeros(2)),
            (np.zeros(3), np.zeros(2, np.float32), np.zeros(3)),
        ],
        "residual": [(np.zeros(2),), (np.zeros(3, np.float32),), (None,)],
    }
    for arguments in bad[call]:
        with pytest.raises(REFUSED):
            getattr(planes, call)(*arguments)


def compiled_arguments(**changes):
    """Arguments of chain_ascent on two sequences of two and one positions, two labels, three features."""
    given = {
        "rows": _core.linear.Rows(np.ones((3, 3))),
        "pattern": _core.linear.Pattern(3, 2),
        "edge_rows": None,
        "edge_pattern": None,
        "offsets": ints(0, 2, 3),
        "labels": ints(0, 1, 1, dtype=I32),
        "shared_mask": None,
        "cost": 1.0 - np.eye(2),
        "order": ints(0, 1),
        "w": np.zeros(14),
        **changes,
    }
    return given.values()


BAD_CHAINS = [
    {"offsets": ints(0, 2, 4)},
    {"offsets": ints(0, 3, 2)},
    {"offsets": ints(-1, 2, 3)},
    {"offsets": ints()},
    {"labels": ints(0, 1, dtype=I32)},
    {"labels": ints(0, 2, 1, dtype=I32)},
    {"labels": ints(0, -1, 1, dtype=I32)},
    {"labels": ints(0, 1, 1)},
    {"shared_mask": np.zeros(7, np.uint8)},
    {"cost": 1.0 - np.eye(3)},
    {"cost": np.ones((2, 3))},
    {"cost": np.full((2, 2), np.nan)},
    {"cost": np.full((2, 2), np.inf)},
    {"cost": None},
    {"order": ints(0, 2)},
    {"order": ints(-1)},
    {"order": ints(0, dtype=I32)},
    {"w": np.zeros(13)},
    {"w": np.full(14, np.nan)},
    {"w": np.zeros(14, np.float32)},
    {"pattern": _core.linear.Pattern(2, 2)},
    {"edge_rows": _core.linear.Rows(np.ones((3, 1)))},
    {"edge_pattern": _core.linear.Pattern(1, 4)},
    {"edge_rows": _core.linear.Rows(np.ones((3, 1))), "edge_pattern": _core.linear.Pattern(1, 3), "w": np.zeros(17)},
    {"edge_rows": _core.linear.Rows(np.ones((2, 1))), "edge_pattern": _core.linear.Pattern(1, 4), "w": np.zeros(18)},
]


def test_good_chains_are_taken():
    assert _core.planes.chain_ascent(*compiled_arguments(), _core.planes.Planes(2, 14, np.ones(2)), 0) > 0
    assert _core.planes.chain_subgradient(*compiled_arguments(), 1.0, _core.chain.OnlineState())[0] > 0


@pytest.mark.parametrize("changes", BAD_CHAINS)
def test_bad_chains_are_refused(changes):
    with pytest.raises(REFUSED):
        _core.planes.chain_ascent(*compiled_arguments(**changes), _core.planes.Planes(2, 14, np.ones(2)), 0)
    with pytest.raises(REFUSED):
        _core.planes.chain_subgradient(*compiled_arguments(**changes), 1.0, _core.chain.OnlineState())


def test_planes_must_be_for_the_same_sequences_and_weights():
    for planes in (_core.planes.Planes(1, 14, np.ones(1)), _core.planes.Planes(2, 13, np.ones(2)), None):
        with pytest.raises(REFUSED):
            _core.planes.chain_ascent(*compiled_arguments(), planes, 0)
    for mass in (0.0, -1.0, np.nan, np.inf, None):
        with pytest.raises(REFUSED):
            _core.planes.chain_subgradient(*compiled_arguments(), mass, _core.chain.OnlineState())


@pytest.mark.parametrize(
    "changes",
    [
        {k: v for k, v in bad.items() if k not in ("cost", "order", "w")}
        for bad in BAD_CHAINS
        if set(bad) - {"cost", "order", "w"}
    ],
)
def test_bad_differences_are_refused(changes):
    def call(**more):
        names = ("rows", "pattern", "edge_rows", "edge_pattern", "offsets", "y")
        given = dict(zip(names, compiled_arguments(**more), strict=False))
        given["z"] = ints(1, 1, 0, dtype=I32)
        return _core.planes.chain_difference(*given.values(), more.get("shared_mask"))

    assert len(call()) == 3
    with pytest.raises(REFUSED):
        call(**changes)


def test_forbidden_truths_are_reported_and_not_crashed_on():
    problem = chain((2, 2), constraints=RULES)
    problem.y.labels[:] = [1, 0, 1, 0]  # may not start with 1
    risk = problem.risk(Hinge())
    sets = WorkingSets(risk, 1.0)
    total = problem.structure.ascent(risk.loss, risk.X, risk.y, ints(0, 1), sets.w, sets.planes, 10)
    assert not np.isfinite(total)


def test_trimming_drops_the_oldest_planes_without_weight():
    planes, w = _core.planes.Planes(1, 2, np.array([1.0]), 1), np.zeros(2)
    for k in range(4):
        add(planes, [0], [[1.0 + k, 0.0]], [1.0], w=w)
    planes.solve(ints(0), w, 0)
    linear = planes.linear
    planes.trim(2)
    assert planes.count == 2
    planes.solve(ints(0), w, 0)
    assert planes.linear >= linear - 1e-12  # those with weight are still there
    with pytest.raises(REFUSED):
        planes.trim(-1)
