"""Every compiled question about a pair has the answer that writing out all of its alignments has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import _core
from mercer.structures.alignment_batch import Anchors, Coded, Scores, compile_batch, expect, k_best, match_probabilities
from reference.alignments import Enumeration, log_partition

N_SYMBOLS = 3


def random_problem(seed: int, scale: float = 1.0, whole: bool = False, anchored: bool = False):
    """A short pair with scores (whole numbers make ties) and perhaps extra scores of cells."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 6, size=2) if seed % 3 else rng.integers(1, 5, size=2)
    pair = Coded(*(rng.integers(0, N_SYMBOLS, size).astype(np.int32) for size in (n, m)))
    substitution = rng.normal(size=(N_SYMBOLS, N_SYMBOLS)) * scale
    gaps = (rng.normal(size=2) - 0.5) * scale
    if whole:
        substitution, gaps = substitution.round(), gaps.round()
    scores = Scores(substitution, float(gaps[0]), float(gaps[1]))
    if not anchored:
        return pair, scores, None, None
    column = rng.integers(-1, m, n).astype(np.int32) if m else np.full(n, -1, np.int32)
    bonus = rng.normal(size=n) * scale
    cells = np.zeros((n, m))
    cells[np.flatnonzero(column >= 0), column[column >= 0]] = bonus[column >= 0]
    return pair, scores, [Anchors(column, bonus)], cells


def enumeration_and_batch(problem, local):
    pair, scores, anchors, cells = problem
    reference = Enumeration(pair.s, pair.t, *scores, local, cells)
    return reference, compile_batch([pair], scores, local, anchors)


problems = pytest.mark.parametrize(
    "problem",
    [
        pytest.param(random_problem(seed, scale, whole, anchored), id=f"{seed}-{scale}-{whole}-{anchored}")
        for seed in range(8)
        for scale, whole in ((1.0, False), (2.0, True), (30.0, False))
        for anchored in (False, True)
    ],
)
modes = pytest.mark.parametrize("local", [False, True], ids=["global", "local"])


@modes
@problems
def test_best_score_equals_enumeration(problem, local):
    reference, batch = enumeration_and_batch(problem, local)
    assert _core.alignment.scores(batch)[0] == pytest.approx(reference.scores.max())


@modes
@pytest.mark.parametrize("k", [1, 2, 5, 2000])
@problems
def test_k_best_are_the_k_highest_of_all_alignments(problem, local, k):
    reference, batch = enumeration_and_batch(problem, local)
    (found,) = k_best(batch, k)
    assert np.allclose([one.score for one in found], np.sort(reference.scores)[::-1][:k])
    alignments = [tuple(map(tuple, one.pairs.tolist())) for one in found]
    assert len(set(alignments)) == len(alignments)
    score_of = dict(zip(reference.alignments, reference.scores, strict=True))
    assert np.allclose([score_of[y] for y in alignments], [one.score for one in found])


@modes
@problems
def test_log_partition_and_expectations_equal_enumeration(problem, local):
    reference, batch = enumeration_and_batch(problem, local)
    pair = problem[0]
    assert _core.alignment.log_partition(batch)[0] == pytest.approx(reference.log_partition)
    log_z, counts = expect(batch, 1, N_SYMBOLS)
    assert log_z[0] == pytest.approx(reference.log_partition)
    assert np.allclose(counts[0], reference.expected_counts())
    (probabilities,) = match_probabilities(batch, [pair], N_SYMBOLS)
    assert np.allclose(probabilities, reference.pair_probabilities())


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 2), max_size=5),
    st.lists(st.integers(0, 2), max_size=5),
    st.lists(st.integers(-3, 3), min_size=11, max_size=11),
    st.booleans(),
)
def test_two_best_equal_enumeration_with_ties(s, t, weights, local):
    pair = Coded(np.array(s, np.int32), np.array(t, np.int32))
    scores = Scores(np.array(weights[:9], float).reshape(3, 3), float(weights[9]), float(weights[10]))
    reference = Enumeration(pair.s, pair.t, *scores, local)
    (found,) = k_best(compile_batch([pair], scores, local), 2)
    assert [one.score for one in found] == np.sort(reference.scores)[::-1][:2].tolist()


# ---------------------------------------------------------------------------------------------- longer pairs


def long_problem(n, m, scale=1.0, n_symbols=4, seed=0):
    rng = np.random.default_rng(seed)
    pair = Coded(*(rng.integers(0, n_symbols, size).astype(np.int32) for size in (n, m)))
    return pair, Scores(rng.normal(size=(n_symbols, n_symbols)) * scale, -1.5 * scale, -0.3 * scale)


@modes
@pytest.mark.parametrize("scale", [0.1, 5.0, 20.0, 300.0])
def test_log_partition_of_longer_pairs_neither_under_nor_overflows(local, scale):
    pair, scores = long_problem(70, 50, scale)
    batch = compile_batch([pair], scores, local)
    expected = log_partition(pair.s, pair.t, *scores, local)
    assert _core.alignment.log_partition(batch)[0] == pytest.approx(expected, rel=1e-10)
    log_z, counts = expect(batch, 1, 4)
    assert log_z[0] == pytest.approx(expected, rel=1e-10)
    if not local:  # every symbol is in a pair or in a gap
        assert 2 * counts[0, :-2].sum() + counts[0, -2:].sum() == pytest.approx(120)
    else:
        assert (counts >= 0).all()


@modes
def test_expected_counts_are_the_gradient_of_log_partition(local):
    pair, scores = long_problem(12, 9)
    _, counts = expect(compile_batch([pair], scores, local), 1, 4)
    vector = np.concatenate([scores.substitution.ravel(), [scores.gap_open, scores.gap_extend]])
    for k in range(len(vector)):
        values = []
        for step in (-1e-5, 1e-5):
            moved = vector.copy()
            moved[k] += step
            shifted = Scores(moved[:-2].reshape(4, 4), moved[-2], moved[-1])
            values.append(_core.alignment.log_partition(compile_batch([pair], shifted, local))[0])
        assert counts[0, k] == pytest.approx((values[1] - values[0]) / 2e-5, abs=1e-6)


@modes
def test_pairs_too_long_for_a_whole_traceback_have_the_same_answers(local):
    # 8,300 × 8,240 cells are above the limit for a traceback in one piece.
    rng = np.random.default_rng(0)
    core = rng.integers(0, 4, 8300).astype(np.int32)
    s, t = core, np.delete(core, rng.choice(8300, 60, replace=False))
    scores = Scores(np.where(np.eye(4), 2.0, -3.0), -5.0, -1.0)
    batch = compile_batch([Coded(s, t)], scores, local)
    (found,) = k_best(batch, 1)
    pairs = found[0].pairs
    assert found[0].score == _core.alignment.scores(batch)[0]
    gaps = np.diff(pairs if local else np.concatenate([[[-1, -1]], pairs, [[len(s), len(t)]]]), axis=0) - 1
    opened = np.count_nonzero(gaps)
    score = scores.substitution[s[pairs[:, 0]], t[pairs[:, 1]]].sum() - 5.0 * opened - (gaps.sum() - opened)
    assert score == found[0].score


@modes
def test_expectations_of_pairs_too_long_to_keep_every_row_add_up(local):
    # Above 2.1 million cells forward rows are computed again, block by block.
    rng = np.random.default_rng(1)
    s = rng.integers(0, 4, 1500).astype(np.int32)
    t = np.concatenate([s[:700], s[720:], rng.integers(0, 4, 50).astype(np.int32)])
    scores = Scores(np.where(np.eye(4), 2.0, -2.0), -4.0, -1.0)
    batch = compile_batch([Coded(s, t)], scores, local)
    log_z, counts = expect(batch, 1, 4)
    assert log_z[0] == pytest.approx(_core.alignment.log_partition(batch)[0], rel=1e-12)
    if not local:
        assert 2 * counts[0, :-2].sum() + counts[0, -2:].sum() == pytest.approx(len(s) + len(t))
    # The same through the log-domain recursions: a bonus beyond their range that no alignment can earn.
    wide = Scores(np.block([[scores.substitution, np.full((4, 1), -1e3)], [np.full((1, 5), -1e3)]]), -4.0, -1.0)
    log_z_wide, counts_wide = expect(compile_batch([Coded(s, t)], wide, local), 1, 5)
    assert log_z_wide[0] == pytest.approx(log_z[0], rel=1e-10)
    assert np.allclose(counts_wide[0, :-2].reshape(5, 5)[:4, :4].ravel(), counts[0, :-2], atol=1e-6)
    assert np.allclose(counts_wide[0, -2:], counts[0, -2:], atol=1e-6)


def test_a_pair_beyond_memory_is_an_error_with_its_size():
    pair = Coded(np.zeros(30_000, np.int32), np.zeros(30_000, np.int32))
    batch = compile_batch([pair], Scores(np.ones((1, 1)), -1.0, -1.0), False)
    with pytest.raises(ValueError, match="a pair of 30000 and 30000 symbols is too long for that many alignments"):
        k_best(batch, 5)


# ---------------------------------------------------------------------------------------------- batches and threads


@modes
def test_results_do_not_depend_on_threads_or_on_the_rest_of_the_batch(local):
    rng = np.random.default_rng(3)
    pairs = [Coded(*(rng.integers(0, 4, rng.integers(0, 30)).astype(np.int32) for _ in "st")) for _ in range(40)]
    scores = long_problem(1, 1)[1]
    batch = compile_batch(pairs, scores, local)
    for ask in (
        lambda b, threads: _core.alignment.scores(b, threads),
        lambda b, threads: _core.alignment.log_partition(b, threads),
        lambda b, threads: np.concatenate([one.pairs.ravel() for best in k_best(b, 3, threads) for one in best]),
    ):
        one, many = ask(batch, 1), ask(batch, 4)
        assert np.array_equal(one, many)
    _, one = expect(batch, 40, 4, 1)
    _, many = expect(batch, 40, 4, 3)
    alone = np.stack([expect(compile_batch([pair], scores, local), 1, 4)[1][0] for pair in pairs])
    assert np.array_equal(one, many)
    assert np.array_equal(one, alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"substitution": np.full((2, 2), np.nan)}, "substitution scores must be finite"),
        ({"substitution": np.zeros((2, 3))}, "square"),
        ({"gap_open": np.inf}, "gap scores must be finite"),
        ({"s": np.array([0, 2], np.int32)}, "a symbol of s has no row"),
        ({"t": np.array([-1, 0, 0], np.int32)}, "a symbol of t has no row"),
        ({"s_offsets": np.array([0, 3])}, "s_offsets must run from 0"),
        ({"t_offsets": np.array([0, 2, 3])}, "the same number of sequences"),
        ({"anchor": np.array([0, 0], np.int32)}, "go together"),
        ({"anchor": np.array([0, 3], np.int32), "bonus": np.zeros(2)}, "an anchor is out of range"),
        ({"anchor": np.array([0], np.int32), "bonus": np.zeros(1)}, "as long as s"),
        ({"anchor": np.array([0, 1], np.int32), "bonus": np.array([0, np.nan])}, "bonus must be finite"),
    ],
)
def test_bad_arrays_are_refused(change, message):
    good = {
        "s": np.array([0, 1], np.int32), "s_offsets": np.array([0, 2]), "t": np.array([0, 1, 1], np.int32),
        "t_offsets": np.array([0, 3]), "substitution": np.eye(2), "gap_open": -1.0, "gap_extend": -1.0, "local": False,
    }  # fmt: skip
    _core.alignment.AlignmentBatch(**good)
    with pytest.raises(ValueError, match=message):
        _core.alignment.AlignmentBatch(**{**good, **change})


def test_bad_outputs_and_counts_are_refused():
    batch = compile_batch([Coded(np.zeros(2, np.int32), np.zeros(3, np.int32))], Scores(np.eye(1), -1.0, -1.0), False)
    with pytest.raises(ValueError, match="k must lie between"):
        _core.alignment.k_best(batch, 0)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        _core.alignment.scores(batch, 0)
    with pytest.raises(ValueError, match="counts has the wrong shape"):
        _core.alignment.expect(batch, np.empty((1, 2)))
    with pytest.raises(ValueError, match="matches has the wrong length"):
        _core.alignment.expect(batch, np.empty((1, 3)), np.empty(5))
