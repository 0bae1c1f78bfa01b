"""Every verb of every structure equals brute force; forbidden is exact; extreme scores lose nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from mercer import _core
from mercer.data.labels import TagSequences
from mercer.structures import Chain, ChainScores, Enumerated, Labels
from reference import chains
from reference.chains import score_of
from reference.once import once

SETS = _core.instruction_sets()
TOLERANCE = {np.float64: 1e-9, np.float32: 1e-4}
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
Enumeration, best_path, log_domain = once(chains.Enumeration), once(chains.best_path), once(chains.log_domain)
with_edges = pytest.mark.parametrize("edges", [False, True])


@pytest.fixture(params=SETS)
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


def make(lengths, C, *, seed=0, dtype=np.float64, edges=False, forbid=0.0, scale=1.0, first=0) -> ChainScores:
    """Random scores; ``forbid`` is the share of parts at −inf, ``first`` the value of offsets[0]."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        x = (scale * rng.normal(size=shape)).astype(dtype)
        x[rng.random(shape) < forbid] = -np.inf
        return x

    T = sum(lengths)
    offsets = first + np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return ChainScores(draw(T, C), draw(C, C), draw(C), draw(C), offsets, draw(T, C, C) if edges else None)


def one_by_one(theta: ChainScores):
    """(positions, arguments of the oracle) of each sequence."""
    bounds = theta.offsets - theta.offsets[0]
    for a, b in itertools.pairwise(bounds):
        edges = None if theta.edges is None else theta.edges[a:b]
        yield slice(int(a), int(b)), (theta.nodes[a:b], theta.transitions, theta.start, theta.end, edges)


def check_all_verbs(theta: ChainScores, threads: int = 1) -> None:
    C, dtype = theta.n_labels, theta.nodes.dtype.type
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    chain = Chain(C, 1, threads=threads)
    log_z, entropy = chain.log_partition(theta), chain.entropy(theta)
    best, best_score = chain.argmax(theta)
    worst, worst_score = chain.argmin(theta)
    k = 5
    ranked, ranked_score = chain.k_best(theta, k)
    mu = chain.marginals(theta, edges=True)
    sums = [np.zeros((C, C)), np.zeros(C), np.zeros(C)]
    for i, (at, arguments) in enumerate(one_by_one(theta)):
        oracle = Enumeration(*arguments)
        assert np.isclose(log_z[i], oracle.log_partition, **close)
        assert mu.log_partition[i] == log_z[i]
        assert np.isclose(entropy[i], oracle.entropy(), **close)
        nodes, edges = oracle.node_marginals(), oracle.edge_marginals()
        np.testing.assert_allclose(mu.nodes[at], nodes, **close)
        np.testing.assert_allclose(mu.edges[at], edges, **close)
        assert (mu.nodes[at][nodes == 0] == 0).all()
        assert (mu.edges[at][edges == 0] == 0).all()
        sums[0] += edges.sum(axis=0)
        if len(nodes):
            sums[1] += nodes[0]
            sums[2] += nodes[-1]
        assert np.isclose(best_score[i], oracle.best()[1], **close)
        assert np.isclose(worst_score[i], oracle.worst()[1], **close)
        np.testing.assert_allclose(ranked_score[i], oracle.k_best_scores(k), **close)
        if np.isfinite(oracle.log_partition):
            for labels, score in ((best[at], best_score[i]), (worst[at], worst_score[i])):
                assert np.isclose(score_of(labels, *arguments), score, **close)
            for r in np.flatnonzero(np.isfinite(ranked_score[i])):
                assert np.isclose(score_of(ranked[r, at], *arguments), ranked_score[i, r], **close)
        assert (ranked[np.isneginf(ranked_score[i])][:, at] == -1).all()
    for found, wanted in zip((mu.transitions, mu.start, mu.end), sums, strict=True):
        np.testing.assert_allclose(found, wanted, **close)


LENGTHS = [3, 0, 1, 5, 0, 2]


@dtypes
@with_edges
@pytest.mark.parametrize("forbid", [0.0, 0.3])
@pytest.mark.parametrize("C", [1, 2, 3, 4])
def test_verbs_equal_brute_force(C, forbid, edges, dtype, instruction_set):
    check_all_verbs(make(LENGTHS, C, seed=C, dtype=dtype, edges=edges, forbid=forbid))


@dtypes
@with_edges
@pytest.mark.parametrize("C", [5, 8, 9, 16, 17, 19, 33])
def test_verbs_equal_brute_force_for_many_labels(C, edges, dtype, instruction_set):
    check_all_verbs(make([2, 1], C, seed=C, dtype=dtype, edges=edges, forbid=0.1))


@pytest.mark.parametrize("threads", [1, 3])
def test_offsets_need_not_begin_at_zero(threads):
    theta = make(LENGTHS, 3, first=1000, edges=True)
    check_all_verbs(theta, threads)


def test_an_empty_batch_gives_empty_results():
    theta, chain = make([], 3), Chain(3, 1)
    assert chain.log_partition(theta).shape == (0,)
    assert chain.argmax(theta)[0].shape == (0,)
    assert chain.k_best(theta, 2)[1].shape == (0, 2)
    assert chain.sample(theta, 4, 0).shape == (4, 0)
    assert not chain.marginals(theta).transitions.any()


# ---------------------------------------------------------------------------------- against Enumerated


@with_edges
def test_chain_and_labels_agree_with_the_enumerated_structure(edges):
    T, C = 4, 3
    theta = make([T], C, edges=edges, forbid=0.1, seed=5)
    ((_, arguments),) = one_by_one(theta)
    oracle = Enumeration(*arguments)
    every = Enumerated(list(range(C**T)), lambda x, k: np.eye(C**T)[k], C**T)
    flat = np.array([oracle.scores])
    chain = Chain(C, 1)
    assert np.isclose(chain.log_partition(theta), every.log_partition(flat))
    assert np.isclose(chain.entropy(theta), every.entropy(flat))
    assert tuple(chain.argmax(theta)[0]) == tuple(oracle.labellings[every.argmax(flat)[0][0]])
    assert tuple(chain.argmin(theta)[0]) == tuple(oracle.labellings[every.argmin(flat)[0][0]])
    assert np.isclose(chain.argmin(theta)[1], every.argmin(flat)[1])
    np.testing.assert_allclose(chain.k_best(theta, 90)[1], every.k_best(flat, 90)[1])
    p = every.marginals(flat).probabilities[0]
    nodes = np.stack([p @ (oracle.labellings == c) for c in range(C)], axis=1)
    np.testing.assert_allclose(chain.marginals(theta).nodes, nodes, atol=1e-12)


@dtypes
def test_labels_are_chains_of_length_one(dtype):
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(6, 4)).astype(dtype)
    nodes[rng.random(nodes.shape) < 0.2] = -np.inf
    theta = ChainScores(nodes, np.zeros((4, 4), dtype), np.zeros(4, dtype), np.zeros(4, dtype), np.arange(7))
    chain, labels = Chain(4, 1), Labels(4, 1)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for verb in ("log_partition", "entropy"):
        np.testing.assert_allclose(getattr(chain, verb)(theta), getattr(labels, verb)(nodes), **close)
    for verb, arguments in (("argmax", ()), ("argmin", ()), ("k_best", (3,)), ("k_best", (9,))):
        for a, b in zip(getattr(chain, verb)(theta, *arguments), getattr(labels, verb)(nodes, *arguments), strict=True):
            np.testing.assert_allclose(a, b, **close)
    np.testing.assert_allclose(chain.marginals(theta).nodes, labels.marginals(nodes).probabilities, **close)
    y = nodes.argmax(axis=1).astype(np.int32)
    np.testing.assert_allclose(chain.score(theta, TagSequences(y, theta.offsets)), labels.score(nodes, y), **close)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
@dtypes
def test_label_probabilities_do_not_depend_on_a_common_shift(dtype, shift):
    theta = (np.array([[1.0, 1.0, 2.0]]) + shift).astype(dtype)
    wanted = np.exp([1.0, 1.0, 2.0]) / np.exp([1.0, 1.0, 2.0]).sum()
    np.testing.assert_allclose(Labels(3, 1).marginals(theta).probabilities[0], wanted, rtol=1e-4)


def test_labels_all_forbidden_have_no_mass():
    labels, theta = Labels(3, 1), np.full((2, 3), -np.inf)
    assert (labels.log_partition(theta) == -np.inf).all()
    assert (labels.marginals(theta).probabilities == 0).all()
    assert (labels.argmax(theta)[1] == -np.inf).all()
    assert (labels.argmin(theta)[1] == np.inf).all()
    assert (labels.k_best(theta, 2)[0] == -1).all()
    assert (labels.sample(theta, 3, 0) == -1).all()


# ------------------------------------------------------------------------------------------- forbidden


def infeasible(dtype=np.float64, edges=False) -> ChainScores:
    """Sequence 1 of 3 has no allowed labelling."""
    theta = make([3, 4, 2], 3, dtype=dtype, edges=edges)
    theta.nodes[5] = -np.inf
    return theta


@dtypes
@with_edges
def test_a_sequence_without_an_allowed_labelling_has_no_mass(edges, dtype, instruction_set):
    theta, chain = infeasible(dtype, edges), Chain(3, 1)
    assert np.isneginf(chain.log_partition(theta)).tolist() == [False, True, False]
    assert np.isneginf(chain.argmax(theta)[1]).tolist() == [False, True, False]
    assert np.isposinf(chain.argmin(theta)[1]).tolist() == [False, True, False]
    assert chain.entropy(theta)[1] == 0
    mu = chain.marginals(theta, edges=True)
    assert not mu.nodes[3:7].any()
    assert not mu.edges[3:7].any()
    assert np.isclose(mu.start.sum(), 2)
    assert np.isclose(mu.end.sum(), 2)
    labels, scores = chain.k_best(theta, 2)
    assert (labels[:, 3:7] == -1).all()
    assert np.isneginf(scores[1]).all()
    draws = chain.sample(theta, 3, 0)
    assert (draws[:, 3:7] == -1).all()
    assert (np.delete(draws, slice(3, 7), axis=1) >= 0).all()


@pytest.mark.parametrize("part", ["transitions", "start", "end", "edges"])
def test_any_part_can_forbid_everything(part):
    theta = make([3, 1], 2, edges=True)
    getattr(theta, part)[...] = -np.inf
    feasible = [False, part in ("transitions", "edges")]  # one position has no transition
    chain = Chain(2, 1)
    assert np.isfinite(chain.log_partition(theta)).tolist() == feasible
    assert np.isfinite(chain.argmax(theta)[1]).tolist() == feasible
    assert (chain.sample(theta, 1, 0)[0, [0, 3]] >= 0).tolist() == feasible


def test_edge_scores_into_a_first_position_are_not_used():
    theta = make([3, 2], 3, edges=True)
    chain = Chain(3, 1)
    before = chain.log_partition(theta), chain.argmax(theta)[1], chain.sample(theta, 5, 0)
    theta.edges[[0, 3]] = np.nan
    after = chain.log_partition(theta), chain.argmax(theta)[1], chain.sample(theta, 5, 0)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not chain.marginals(theta).edges[[0, 3]].any()


# -------------------------------------------------------------------------------------- extreme scores


def check_against_log_domain(theta: ChainScores) -> None:
    C, dtype = theta.n_labels, theta.nodes.dtype.type
    tol = TOLERANCE[dtype]
    chain = Chain(C, 1)
    log_z, entropy = chain.log_partition(theta), chain.entropy(theta)
    labels, best = chain.argmax(theta)
    mu = chain.marginals(theta, edges=True)
    sums = np.zeros((C, C))
    for i, (at, arguments) in enumerate(one_by_one(theta)):
        oracle = log_domain(*arguments)
        scale = max(1.0, float(np.abs(theta.nodes[at][np.isfinite(theta.nodes[at])]).max()))
        assert np.isclose(log_z[i], oracle.log_partition, rtol=tol)
        np.testing.assert_allclose(mu.nodes[at], oracle.nodes, atol=tol, rtol=tol)
        np.testing.assert_allclose(mu.edges[at], oracle.edges, atol=tol, rtol=tol)
        assert np.isclose(entropy[i], oracle.entropy, rtol=tol, atol=tol * len(oracle.nodes) * scale)
        exact = best_path(*(x if x is None else np.asarray(x, dtype=float) for x in arguments))[1]
        assert np.isclose(best[i], exact, rtol=tol)
        assert np.isclose(score_of(labels[at], *arguments), exact, rtol=tol)
        sums += oracle.edges.sum(axis=0)
    np.testing.assert_allclose(mu.transitions, sums, rtol=tol, atol=tol)


@dtypes
@with_edges
@pytest.mark.parametrize("scale", [30.0, 300.0, 700.0, 1e4])
def test_wide_spreads_agree_with_the_log_domain(scale, edges, dtype, instruction_set):
    for seed in range(4):
        check_against_log_domain(make([7, 1, 30, 2], 3, seed=seed, dtype=dtype, edges=edges, scale=scale))


@dtypes
@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_a_common_shift_of_all_scores_changes_nothing_else(shift, dtype, instruction_set):
    theta = make([6, 3], 4, dtype=dtype)
    theta.nodes += dtype(shift)
    theta.transitions += dtype(shift)
    check_against_log_domain(theta)


@dtypes
@pytest.mark.parametrize("scale", [1.0, 20.0, 1000.0])
def test_long_sequences_agree_with_the_log_domain(scale, dtype, instruction_set):
    check_against_log_domain(make([3000], 4, seed=1, dtype=dtype, scale=scale))


@dtypes
def test_a_path_that_underflows_at_first_and_wins_in_the_end_is_not_lost(dtype, instruction_set):
    """State 1 is entered through a transition that underflows to 0 next to one that is almost as bad."""
    unit = 1.0 if dtype is np.float64 else 87.0 / 708.0
    far = -np.inf
    nodes = (np.array([[0.0, far], [-690.0, 0.0], [-200.0, 0.0]]) * unit).astype(dtype)
    transitions = (np.array([[0.0, -750.0], [far, 0.0]]) * unit).astype(dtype)
    zero = np.zeros(2, dtype)
    theta = ChainScores(nodes, transitions, zero, zero, np.array([0, 3]))
    check_against_log_domain(theta)
    np.testing.assert_allclose(Chain(2, 1).marginals(theta).nodes[:, 1], [0, 1, 1], atol=1e-4)


@pytest.mark.parametrize("jump", [100.0, 250.0, 400.0, 460.0, 600.0, 700.0])
def test_many_small_scales_in_a_row_agree_with_the_log_domain(jump, instruction_set):
    """Every position prefers the state that the transitions make it hard to be in."""
    T = 40
    nodes = np.zeros((T, 2))
    nodes[np.arange(T), np.arange(T) % 2] = 0.0
    nodes[np.arange(T), (np.arange(T) + 1) % 2] = -jump
    transitions = np.array([[0.0, -jump], [-jump, 0.0]])
    check_against_log_domain(ChainScores(nodes, transitions, np.zeros(2), np.zeros(2), np.array([0, T])))


@dtypes
def test_the_log_domain_is_used_only_where_it_is_needed(dtype):
    def fallbacks(theta):
        return _core.chain.marginals(*theta._arguments(), None, None, None, None, None, np.empty(len(theta)), None, 1)

    assert fallbacks(make([50] * 20, 5, dtype=dtype)) == 0
    assert fallbacks(make([50] * 20, 5, dtype=dtype, scale=1e4)) > 0


# -------------------------------------------------------------------------------- accuracy of the sums


@with_edges
def test_float64_marginals_are_accurate_to_many_digits(edges, instruction_set):
    theta = make([200], 6, edges=edges, scale=2.0)
    oracle = log_domain(*next(one_by_one(theta))[1])
    mu = Chain(6, 1).marginals(theta, edges=True)
    np.testing.assert_allclose(mu.nodes, oracle.nodes, rtol=1e-11)
    np.testing.assert_allclose(mu.edges[1:], oracle.edges[1:], rtol=1e-11)
    np.testing.assert_allclose(mu.nodes.sum(axis=1), 1.0, rtol=1e-13)


# --------------------------------------------------------------------------------------------- samples


@with_edges
def test_samples_follow_the_distribution(edges):
    theta = make([3, 2], 3, seed=3, edges=edges, forbid=0.1)
    n = 20_000
    draws = Chain(3, 1).sample(theta, n, random_state=0)
    for at, arguments in one_by_one(theta):
        oracle = Enumeration(*arguments)
        length = at.stop - at.start
        codes = draws[:, at] @ 3 ** np.arange(length)[::-1]
        counts = np.bincount(codes, minlength=3**length)
        likely = oracle.probabilities * n >= 5
        assert counts[oracle.probabilities == 0].sum() == 0
        expected = oracle.probabilities[likely] * n
        observed = counts[likely]
        rest = n - observed.sum(), n - expected.sum()
        if rest[1] > 1e-6:
            observed, expected = np.append(observed, rest[0]), np.append(expected, rest[1])
        assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


@with_edges
def test_samples_of_scores_beyond_the_range_of_exp_follow_the_distribution(edges):
    # The only way on leads through labels whose probability is exp(-2000) until then; label 3 leads nowhere.
    nodes = np.array([[0.0, -2000.0, -2001.0, 0.0], [0.0, -900.0, -899.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    transitions = np.full((4, 4), -np.inf)
    transitions[[0, 1, 2, 1, 2], [0, 1, 1, 2, 2]] = 0.0, -800.0, -799.0, -800.0, -800.0
    end = np.array([-np.inf, 0.0, 0.0, 0.0])
    extra = np.zeros((3, 4, 4)) if edges else None
    theta = ChainScores(nodes, transitions, np.zeros(4), end, np.array([0, 3]), extra)
    mu = Chain(4, 1).marginals(theta)
    draws = Chain(4, 1).sample(theta, 4000, random_state=0)
    for position in range(3):
        shares = np.bincount(draws[:, position], minlength=4) / 4000
        np.testing.assert_allclose(shares, mu.nodes[position], atol=0.03)


def test_label_samples_follow_the_distribution():
    theta = np.array([[0.0, 1.0, -np.inf, 2.0]])
    p = Labels(4, 1).marginals(theta).probabilities[0]
    counts = np.bincount(Labels(4, 1).sample(theta, 20_000, 0)[:, 0], minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]], p[[0, 1, 3]] * 20_000).pvalue > 1e-3


def test_the_same_seed_gives_the_same_samples_and_another_gives_others():
    theta, chain = make([9] * 40, 4), Chain(4, 1)
    first = chain.sample(theta, 3, 1)
    np.testing.assert_array_equal(first, chain.sample(theta, 3, 1))
    assert (first != chain.sample(theta, 3, 2)).any()
    assert (first[0] != first[1]).any()
    generator = np.random.default_rng(0)
    assert (chain.sample(theta, 3, generator) != chain.sample(theta, 3, generator)).any()
    one, other = (chain.sample(theta, 3, np.random.RandomState(4)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", ["zero", 1.5, True])
def test_a_random_state_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match="random_state"):
        Chain(2, 1).sample(make([2], 2), 1, seed)


# ---------------------------------------------------------------------------------------------- k best


@with_edges
def test_k_best_are_sorted_distinct_and_complete(edges):
    theta = make([4, 1, 0], 3, edges=edges, forbid=0.15, seed=2)
    k = 3**4 + 5
    labels, scores = Chain(3, 1).k_best(theta, k)
    for i, (at, arguments) in enumerate(one_by_one(theta)):
        oracle = Enumeration(*arguments)
        n = int(np.isfinite(oracle.scores).sum())
        assert (np.diff(scores[i, :n]) <= 0).all()
        assert np.isneginf(scores[i, n:]).all()
        assert len({tuple(row) for row in labels[:n, at]}) == n
        assert (labels[n:, at] == -1).all()
        np.testing.assert_allclose(scores[i], oracle.k_best_scores(k))


def test_ties_go_to_the_lowest_labels():
    theta = ChainScores(np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3), np.zeros(3), np.array([0, 3]))
    chain = Chain(3, 1)
    assert chain.argmax(theta)[0].tolist() == [0, 0, 0]
    assert chain.argmin(theta)[0].tolist() == [0, 0, 0]
    labels, scores = chain.k_best(theta, 27)
    assert labels[0].tolist() == [0, 0, 0]
    assert len({tuple(row) for row in labels}) == 27
    assert not scores.any()


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("structure", [Chain(2, 1), Labels(2, 1)])
def test_k_must_be_positive(structure, k):
    theta = make([2], 2) if isinstance(structure, Chain) else np.zeros((1, 2))
    with pytest.raises(ValueError, match="k must be at least 1"):
        structure.k_best(theta, k)


# --------------------------------------------------------------------------------------------- threads


@dtypes
@with_edges
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_results_are_the_same_to_the_last_bit_for_any_number_of_threads(scale, edges, dtype):
    rng = np.random.default_rng(0)
    theta = make(rng.integers(0, 60, size=150), 5, dtype=dtype, edges=edges, forbid=0.02, scale=scale)
    theta.start[0] = theta.end[0] = 0.0
    outcomes = []
    for threads in (1, 2, 5):
        chain = Chain(5, 1, threads=threads)
        mu = chain.marginals(theta, edges=True)
        outcomes.append(
            [
                *chain.argmax(theta),
                *chain.argmin(theta),
                *chain.k_best(theta, 3),
                chain.entropy(theta),
                chain.sample(theta, 2, 7),
                *(x.copy() for x in (mu.nodes, mu.edges, mu.transitions, mu.start, mu.end, mu.log_partition)),
            ]
        )
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


# ----------------------------------------------------------------------------------------------- truth


def tags(labels, offsets, allowed=None) -> TagSequences:
    return TagSequences(np.array(labels, np.int32), np.asarray(offsets), allowed)


@with_edges
def test_score_of_known_labels_equals_the_sum_of_its_parts(edges):
    theta = make(LENGTHS, 3, edges=edges)
    y = np.random.default_rng(1).integers(0, 3, sum(LENGTHS)).astype(np.int32)
    wanted = [score_of(y[at], *arguments) for at, arguments in one_by_one(theta)]
    np.testing.assert_allclose(Chain(3, 1).score(theta, tags(y, theta.offsets)), wanted, rtol=1e-13)


@with_edges
def test_subtracting_the_truth_counts_every_part_once(edges):
    theta, chain = make(LENGTHS, 3, edges=edges), Chain(3, 1)
    y = np.random.default_rng(1).integers(0, 3, sum(LENGTHS)).astype(np.int32)
    mu = chain.marginals(theta, edges=edges)
    parts = [x.copy() for x in (mu.nodes, mu.transitions, mu.start, mu.end)]
    own = mu.edges.copy() if edges else None
    chain.subtract_truth(mu, tags(y, theta.offsets))
    for at, _ in one_by_one(theta):
        for t in range(at.start, at.stop):
            parts[0][t, y[t]] -= 1
            if t > at.start:
                parts[1][y[t - 1], y[t]] -= 1
                if edges:
                    own[t, y[t - 1], y[t]] -= 1
        if at.stop > at.start:
            parts[2][y[at.start]] -= 1
            parts[3][y[at.stop - 1]] -= 1
    for found, wanted in zip((mu.nodes, mu.transitions, mu.start, mu.end), parts, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    if edges:
        np.testing.assert_allclose(mu.edges, own, atol=1e-12)


@dtypes
def test_restricted_scores_allow_what_agrees_with_the_known_labels(dtype):
    theta = make([3], 3, dtype=dtype)
    allowed = np.ones((3, 3), np.uint8)
    allowed[2] = [1, 0, 1]
    chain = Chain(3, 1)
    narrowed = chain.restrict(theta, tags([-1, 1, -1], [0, 3], allowed))
    assert narrowed.nodes.dtype == dtype
    oracle = Enumeration(*next(one_by_one(theta))[1])
    agree = (oracle.labellings[:, 1] == 1) & (oracle.labellings[:, 2] != 1)
    wanted = np.log(np.exp(oracle.scores[agree]).sum())
    assert np.isclose(chain.log_partition(narrowed)[0], wanted, rtol=TOLERANCE[dtype])
    assert np.isfinite(theta.nodes).all(), "the scores given are left as they were"


def test_partial_labels_are_noticed():
    chain, labels = Chain(2, 1), Labels(2, 1)
    assert chain.is_partial(tags([0, -1], [0, 2]))
    assert not chain.is_partial(tags([0, 1], [0, 2]))
    assert labels.is_partial(np.array([0, -1]))
    narrowed = labels.restrict(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, -1]))
    np.testing.assert_array_equal(narrowed, [[1.0, -np.inf], [3.0, 4.0]])


# ------------------------------------------------------------------------------------------ bad scores


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["nodes", "transitions", "start", "end", "edges"])
@pytest.mark.parametrize("verb", ["argmax", "k_best", "log_partition", "marginals", "sample", "entropy"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_scores_that_are_nan_or_infinite_are_refused(verb, part, value, threads, scale):
    lengths = [4] * 300
    theta = make(lengths, 3, edges=True, scale=scale)
    array = getattr(theta, part)
    array[(801 if len(array) > 3 else 1,) + (0,) * (array.ndim - 1)] = value
    arguments = {"k_best": (2,), "sample": (1, 0)}.get(verb, ())
    with pytest.raises(ValueError, match="finite or -inf"):
        getattr(Chain(3, 1, threads=threads), verb)(theta, *arguments)
