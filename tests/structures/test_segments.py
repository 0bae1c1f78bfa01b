"""Every verb of segmentations equals brute force over all of them; bounds and forbidden parts are exact."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

from mercer import _core
from mercer.data import Segmentations, Sequences, SpanSequences
from mercer.data.labels import TagSequences
from mercer.exceptions import InfeasibleError
from mercer.learning import Risk
from mercer.learning.losses import resolve_loss
from mercer.structures import Chain, ChainScores, Segments, SegmentScores, length_basis
from reference.chains import log_sum_exp
from reference.once import once
from reference.segments import Enumeration, score_of, segmentations

SETS = _core.instruction_sets()
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=SETS)
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


def make(lengths, C, K, *, seed=0, parts=(), forbid=0.0, scale=1.0, first=0, d=2, shortest=1) -> SegmentScores:
    """Random scores of the named parts; ``forbid`` is the share at −inf of those that may be."""
    rng = np.random.default_rng(seed)

    def draw(*shape, may_forbid=True):
        x = scale * rng.normal(size=shape)
        if may_forbid:
            x[rng.random(shape) < forbid] = -np.inf
        return x

    T = sum(lengths)
    offsets = first + np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    theta = SegmentScores(draw(K, C), draw(C, C), draw(C), draw(C), offsets)
    theta.lengths[: shortest - 1] = -np.inf
    shapes = {"frames": (T, C), "starts": (T, C), "edges": (T, C, C), "spans": (T, K, C)}
    finite = {"means": (T, C), "pair_means": (T, C, C), "variances": (d, C), "pair_variances": (d, C, C)}
    finite["pair_span_scores"] = d, C, C
    for name in parts:
        setattr(theta, name, draw(*shapes[name]) if name in shapes else draw(*finite[name], may_forbid=False))
        if "variances" in name:
            theta.features = rng.normal(size=(T, d)) + 3.0
        if name == "pair_span_scores":
            theta.pair_spans = rng.normal(size=(T, K, K, d))
    return theta


@once
def one_by_one(theta):
    bounds = (theta.offsets - theta.offsets[0]).tolist()
    return [Enumeration(theta, a, b - a) for a, b in itertools.pairwise(bounds)]


def triples(y, i):
    return tuple(y[i : i + 1].segments(range(99))[0])


def check_all_verbs(theta, threads=1, k=5):
    C = theta.n_labels
    segments = Segments(C, 0, max_length=theta.max_length, threads=threads)
    log_z, entropy = segments.log_partition(theta), segments.entropy(theta)
    best, best_score = segments.argmax(theta)
    worst, worst_score = segments.argmin(theta)
    ranked, ranked_score = segments.k_best(theta, k)
    mu = segments.marginals(theta, edges=True, spans=True)
    sums = [np.zeros_like(part) for part in (mu.lengths, mu.transitions, mu.start, mu.end)]
    shared = mu.variances, mu.pair_variances, mu.pair_span_scores
    variances, pairs, joint = (np.zeros_like(v) if v is not None else None for v in shared)
    for i, oracle in enumerate(one_by_one(theta)):
        at = slice(oracle.begin, oracle.begin + oracle.length)
        assert np.isclose(log_z[i], oracle.log_partition, **CLOSE)
        assert mu.log_partition[i] == log_z[i]
        assert np.isclose(entropy[i], oracle.entropy(), **CLOSE)
        spans, edges = oracle.spans, oracle.edges
        np.testing.assert_allclose(mu.spans[at], spans, **CLOSE)
        assert (mu.spans[at][spans == 0] == 0).all()
        np.testing.assert_allclose(mu.edges[at], edges, **CLOSE)
        np.testing.assert_allclose(mu.starts[at], spans.sum(axis=1), **CLOSE)
        sums[0] += spans.sum(axis=0)
        sums[1] += edges.sum(axis=0)
        for s, l, c in zip(*np.nonzero(spans), strict=True):
            sums[2][c] += spans[s, l, c] * (s == 0)
            sums[3][c] += spans[s, l, c] * (s + l + 1 == oracle.length)
        check_statistics(mu, oracle, at, variances, pairs, joint)
        assert np.isclose(best_score[i], oracle.scores.max(), **CLOSE)
        assert np.isclose(worst_score[i], oracle.worst(), **CLOSE)
        np.testing.assert_allclose(ranked_score[i], oracle.k_best_scores(k), **CLOSE)
        if np.isfinite(oracle.log_partition):
            for y, score in ((best, best_score[i]), (worst, worst_score[i])):
                assert np.isclose(score_of(triples(y, i), theta, oracle.begin), score, **CLOSE)
            found = [triples(ranked[r], i) for r in np.flatnonzero(np.isfinite(ranked_score[i]))]
            assert len(set(found)) == len(found)
            for r, y in enumerate(found):
                assert np.isclose(score_of(y, theta, oracle.begin), ranked_score[i, r], **CLOSE)
    for found, wanted in zip((mu.lengths, mu.transitions, mu.start, mu.end), sums, strict=True):
        np.testing.assert_allclose(found, wanted, **CLOSE)
    for found, wanted in zip(shared, (variances, pairs, joint), strict=True):
        if found is not None:
            np.testing.assert_allclose(found, wanted, **CLOSE)


def check_statistics(mu, oracle, at, variances, pairs, joint):
    """Expectations of everything that is not p(segment) itself, from the outputs one by one."""
    shape = mu.frames[at].shape
    frames, means, pair_means = np.zeros(shape), np.zeros(shape), np.zeros((*shape, shape[1]))
    for y, p in zip(oracle.outputs, oracle.probabilities, strict=True):
        for k, (s, e, c) in enumerate(y):
            frames[s:e, c] += p
            means[s:e, c] += p / (e - s)
            v = None
            if oracle.theta.features is not None:
                v = oracle.theta.features[oracle.begin + s : oracle.begin + e].var(axis=0)
            if variances is not None:
                variances[:, c] += p * v
            if k + 1 < len(y):
                pair_means[s:e, c, y[k + 1][2]] += p / (e - s)
                if pairs is not None:
                    pairs[:, c, y[k + 1][2]] += p * v
                if joint is not None and p > 0:
                    features = oracle.theta.pair_spans[oracle.begin + e, e - s - 1, y[k + 1][1] - e - 1]
                    joint[:, c, y[k + 1][2]] += p * features
    np.testing.assert_allclose(mu.frames[at], frames, **CLOSE)
    assert (mu.frames[at][frames == 0] == 0).all()
    if mu.means is not None:
        np.testing.assert_allclose(mu.means[at], means, **CLOSE)
    if mu.pair_means is not None:
        np.testing.assert_allclose(mu.pair_means[at], pair_means, **CLOSE)


PARTS = {
    "lengths alone": (),
    "sums": ("frames",),
    "sums and boundaries": ("frames", "starts"),
    "means": ("means", "starts"),
    "variances": ("frames", "variances"),
    "written out": ("frames", "spans"),
    "edges": ("frames", "starts", "edges"),
    "pairs": ("frames", "pair_means"),
    "everything": ("frames", "means", "starts", "edges", "spans", "variances", "pair_means", "pair_variances"),
    "whole neighbours": ("frames", "pair_span_scores"),
    "more than everything": (
        *("frames", "means", "starts", "edges", "spans"),
        *("variances", "pair_means", "pair_variances", "pair_span_scores"),
    ),
}
LENGTHS = [3, 0, 1, 4, 0, 2]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("forbid", [0.0, 0.2])
@pytest.mark.parametrize(("C", "K"), [(1, 3), (2, 2), (3, 4)])
def test_verbs_equal_brute_force(C, K, forbid, parts, instruction_set):
    check_all_verbs(make(LENGTHS, C, K, seed=C, parts=PARTS[parts], forbid=forbid))


@pytest.mark.parametrize("parts", ["sums and boundaries", "means", "everything", "whole neighbours"])
@pytest.mark.parametrize(("K", "shortest"), [(1, 1), (3, 1), (4, 2), (12, 1), (12, 3)])
def test_unlabelled_verbs_equal_brute_force_up_to_12_positions(K, shortest, parts):
    check_all_verbs(make([12, 11], 1, K, parts=PARTS[parts], shortest=shortest))


@pytest.mark.parametrize("parts", ["sums", "edges", "everything", "whole neighbours"])
@pytest.mark.parametrize(("K", "shortest"), [(1, 1), (3, 2), (7, 1)])
def test_labelled_verbs_equal_brute_force_for_7_positions_and_3_labels(K, shortest, parts):
    theta = make([7], 3, K, parts=PARTS[parts], shortest=shortest)
    (oracle,) = one_by_one(theta)
    segments = Segments(3, 0, max_length=K)
    assert np.isclose(segments.log_partition(theta)[0], oracle.log_partition)
    assert np.isclose(segments.argmax(theta)[1][0], oracle.scores.max())
    np.testing.assert_allclose(segments.k_best(theta, 40)[1][0], oracle.k_best_scores(40))
    np.testing.assert_allclose(segments.marginals(theta, spans=True).spans, oracle.spans, **CLOSE)


@pytest.mark.parametrize("C", [5, 8, 9, 17])
def test_verbs_equal_brute_force_for_many_labels(C, instruction_set):
    check_all_verbs(make([2, 1], C, 2, seed=C, parts=PARTS["everything"], forbid=0.1))


@pytest.mark.parametrize("threads", [1, 3])
def test_offsets_need_not_begin_at_zero(threads):
    check_all_verbs(make(LENGTHS, 2, 3, first=1000, parts=PARTS["everything"]), threads)


def test_bounds_for_each_label_equal_brute_force():
    segments = Segments(3, 0, max_length=[1, 3, 4], min_length=[1, 2, 3], lengths=None)
    theta = make([7], 3, 4, parts=("frames", "starts"))
    theta.lengths = segments.length_scores(np.zeros(segments.n_weights))
    check_all_verbs(theta)
    for y in segments.sample(theta, 50, 0):
        assert (y.lengths <= np.array([1, 3, 4])[y.labels]).all()
        assert (y.lengths >= np.array([1, 2, 3])[y.labels]).all()


def test_an_empty_batch_gives_empty_results():
    theta, segments = make([], 3, 2, parts=("frames",)), Segments(3, 0, max_length=2)
    assert segments.log_partition(theta).shape == (0,)
    assert len(segments.argmax(theta)[0]) == 0
    assert segments.k_best(theta, 2)[1].shape == (0, 2)
    assert [len(y) for y in segments.sample(theta, 4, 0)] == [0] * 4


# ------------------------------------------------------------------------------------ chains


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_segments_of_length_one_are_a_chain(edges, dtype):
    rng = np.random.default_rng(0)
    F, B, C = 4, 3 if edges else 0, 3
    X = Sequences(
        rng.normal(size=(12, F)).astype(dtype), [0, 5, 5, 6, 12], edges=rng.normal(size=(12, 3)).astype(dtype)
    )
    chain = Chain(C, F, n_edge_features=B)
    segments = Segments(
        C, F, B, max_length=1, lengths=None, boundaries=False, neighbours=("boundary",) if edges else ()
    )
    assert segments.n_weights == chain.n_weights
    w = rng.normal(size=chain.n_weights)
    theta, phi = segments.scores(w, X), chain.scores(w, X)
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype is np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(theta.frames, phi.nodes, **close)
    np.testing.assert_allclose(segments.log_partition(theta), chain.log_partition(phi), **close)
    np.testing.assert_allclose(segments.entropy(theta), chain.entropy(phi), **close)
    mu, nu = segments.marginals(theta), chain.marginals(phi)
    np.testing.assert_allclose(mu.frames, nu.nodes, **close)
    np.testing.assert_allclose(mu.starts, nu.nodes, **close)
    for part in ("transitions", "start", "end"):
        np.testing.assert_allclose(getattr(mu, part), getattr(nu, part), **close)
    gradient, slope = np.zeros(len(w)), np.zeros(len(w))
    segments.backward(X, mu, gradient)
    chain.backward(X, nu, slope)
    np.testing.assert_allclose(gradient, slope, **close)
    y, score = segments.argmax(theta)
    labels, wanted = chain.argmax(phi)
    np.testing.assert_array_equal(y.frames(), labels)
    np.testing.assert_allclose(score, wanted, **close)
    tags = TagSequences(labels, X.offsets)
    z = Segmentations(np.ones(12), rng.integers(0, C, 12), X.offsets, X.offsets)
    np.testing.assert_allclose(
        segments.difference(X, y, z).toarray(),
        chain.difference(X, tags, TagSequences(z.labels, X.offsets)).toarray(),
        **close,
    )


def test_a_chain_that_pays_for_changes_is_a_segmentation_with_any_length():
    """Scores of frames and of changes of label alone do not care whether runs or frames are the parts."""
    T, C = 8, 3
    rng = np.random.default_rng(1)
    nodes, transitions = rng.normal(size=(T, C)), rng.normal(size=(C, C))
    np.fill_diagonal(transitions, 0.0)
    zero = np.zeros(C)
    phi = ChainScores(nodes, transitions, zero, zero, np.array([0, T]))
    runs = transitions.copy()
    np.fill_diagonal(runs, -np.inf)
    theta = SegmentScores(np.zeros((T, C)), runs, zero, zero, np.array([0, T]), frames=nodes)
    chain, segments = Chain(C, 1), Segments(C, 0, max_length=T)
    np.testing.assert_allclose(segments.log_partition(theta), chain.log_partition(phi))
    np.testing.assert_allclose(segments.marginals(theta).frames, chain.marginals(phi).nodes)
    np.testing.assert_array_equal(segments.argmax(theta)[0].frames(), chain.argmax(phi)[0])


# ------------------------------------------------------------------------------------ forbidden, extreme


def test_a_sequence_without_an_allowed_segmentation_has_no_mass():
    theta = make([3, 4, 2], 2, 3, parts=("frames", "starts"))
    theta.frames[4] = -np.inf
    segments = Segments(2, 0, max_length=3)
    assert np.isneginf(segments.log_partition(theta)).tolist() == [False, True, False]
    y, score = segments.argmax(theta)
    assert np.isneginf(score).tolist() == [False, True, False]
    assert np.diff(y.firsts)[1] == 0
    assert (y.frames()[3:7] == -1).all()
    assert np.isposinf(segments.argmin(theta)[1]).tolist() == [False, True, False]
    assert segments.entropy(theta)[1] == 0
    mu = segments.marginals(theta, spans=True)
    assert not mu.frames[3:7].any()
    assert not mu.spans[3:7].any()
    assert np.isclose(mu.start.sum(), 2)
    assert all(np.diff(draw.firsts).tolist()[1] == 0 for draw in segments.sample(theta, 3, 0))
    assert np.isneginf(segments.k_best(theta, 2)[1][1]).all()


@pytest.mark.parametrize("parts", [("frames",), ("frames", "starts", "edges")])
def test_segments_begin_where_they_must(parts):
    """As if all longer segments over the cut had −inf."""
    theta = make([6, 1, 4], 2, 4, seed=5, parts=parts)
    cuts = np.zeros(11, bool)
    cuts[[0, 2, 3, 9]] = True
    spans = np.zeros((11, 4, 2))
    for i in range(3):
        for s in range(theta.offsets[i], theta.offsets[i + 1]):
            for length in range(1, 5):
                if cuts[s + 1 : min(s + length, theta.offsets[i + 1])].any():
                    spans[s, length - 1] = -np.inf
    structure = Segments(2, 0, max_length=4)
    cut, forbidden = replace(theta, cuts=cuts), replace(theta, spans=spans)
    np.testing.assert_allclose(structure.log_partition(cut), structure.log_partition(forbidden))
    assert (structure.log_partition(cut) < structure.log_partition(theta))[[0, 2]].all()
    found, expected = structure.marginals(cut), structure.marginals(forbidden)
    for name in ("frames", "lengths", "transitions"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    assert [triples(structure.argmax(cut)[0], i) for i in range(3)] == [
        triples(structure.argmax(forbidden)[0], i) for i in range(3)
    ]
    with pytest.raises(ValueError, match="cuts"):
        structure.log_partition(replace(theta, cuts=cuts[:5]))


def test_frames_that_forbid_labels_forbid_every_segment_around_them():
    theta = make([7], 2, 4, parts=("frames",))
    theta.frames[[2, 5], [0, 1]] = -np.inf
    check_all_verbs(theta)
    mu = Segments(2, 0, max_length=4).marginals(theta)
    assert mu.frames[2, 0] == 0
    assert mu.frames[5, 1] == 0


@pytest.mark.parametrize("parts", ["sums and boundaries", "edges", "everything", "more than everything"])
@pytest.mark.parametrize("scale", [30.0, 300.0, 1e4])
def test_wide_spreads_lose_nothing(scale, parts, instruction_set):
    for seed in range(3):
        theta = make([5, 1, 4], 3, 3, seed=seed, parts=PARTS[parts], scale=scale)
        segments = Segments(3, 0, max_length=3)
        mu = segments.marginals(theta, spans=True)
        for i, oracle in enumerate(one_by_one(theta)):
            at = slice(oracle.begin, oracle.begin + oracle.length)
            assert np.isclose(mu.log_partition[i], oracle.log_partition, rtol=1e-11)
            np.testing.assert_allclose(mu.spans[at], oracle.spans, atol=1e-7)
        assert np.isclose(mu.transitions.sum(), mu.lengths.sum() - 3)


@pytest.mark.parametrize("shortest", [1, 3])
@pytest.mark.parametrize("factor", [30.0, 300.0, 3000.0])
def test_convolutions_follow_scores_that_run_away(factor, shortest, instruction_set):
    """Lengths differ little, frames by far more than the range of a double: references must move, sums may be lost."""
    for seed in range(3):
        theta = make([9, 5, 6], 2, 4, seed=seed, parts=("frames", "starts"), shortest=shortest)
        theta.frames *= factor
        theta.starts *= factor
        segments = Segments(2, 0, max_length=4)
        mu = segments.marginals(theta, spans=True)
        written = replace(theta, frames=np.zeros_like(theta.frames), spans=np.zeros((20, 4, 2)))
        segments_of(theta, written.spans)
        wanted = segments.marginals(written)  # the same scores, segment by segment, in the log domain
        np.testing.assert_allclose(mu.log_partition, wanted.log_partition, rtol=1e-12)
        for part in ("frames", "starts", "spans", "lengths", "transitions", "start", "end"):
            np.testing.assert_allclose(getattr(mu, part), getattr(wanted, part), atol=1e-8)
        for i, oracle in enumerate(one_by_one(theta)):
            assert np.isclose(mu.log_partition[i], oracle.log_partition, rtol=1e-12)


def segments_of(theta, out):
    """Sums of frames of all segments."""
    for a, b in itertools.pairwise(theta.offsets):
        for s, size in itertools.product(range(a, b), range(1, theta.max_length + 1)):
            if s + size <= b:
                out[s, size - 1] = theta.frames[s : s + size].sum(axis=0)


def test_a_transition_that_underflows_is_not_lost():
    """The only way on has a probability below the smallest double relative to the best one at its own position."""
    theta = make([3], 2, 1)
    for part in (theta.lengths, theta.start, theta.end):
        part[...] = 0.0
    theta.transitions = np.array([[0.0, -900.0], [-np.inf, 0.0]])
    theta.frames = np.array([[0.0, -np.inf], [0.0, 0.0], [-np.inf, 0.0]])
    check_all_verbs(theta)
    theta.transitions[0, 0] = -np.inf
    check_all_verbs(theta)


@once
def log_domain_partition(theta, begin, length):
    """Recursion over positions and labels with logarithms only, cell by cell."""
    C, K = theta.n_labels, theta.max_length
    A = np.full((length + 1, C), -np.inf)
    for e in range(1, length + 1):
        for c in range(C):
            terms = []
            for size in range(1, min(K, e) + 1):
                s = e - size
                before = theta.start[c] if s == 0 else log_sum_exp(A[s] + theta.transitions[:, c])
                inside = theta.frames[begin + s : begin + e, c].sum() + theta.means[begin + s : begin + e, c].mean()
                terms.append(before + theta.starts[begin + s, c] + theta.lengths[size - 1, c] + inside)
            A[e, c] = log_sum_exp(terms)
    return log_sum_exp(A[length] + theta.end)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_long_sequences_agree_with_a_plain_recursion(scale, instruction_set):
    theta = make([150, 60], 3, 7, parts=("frames", "means", "starts"), scale=scale, seed=2)
    segments = Segments(3, 0, max_length=7)
    wanted = [log_domain_partition(theta, 0, 150), log_domain_partition(theta, 150, 60)]
    mu = segments.marginals(theta)
    np.testing.assert_allclose(mu.log_partition, wanted, rtol=1e-12)
    np.testing.assert_allclose(mu.frames.sum(axis=1), 1.0, rtol=1e-10)


@pytest.mark.parametrize("parts", [("frames",), ("frames", "starts"), ("starts", "edges"), ()])
@pytest.mark.parametrize(("T", "K", "C", "shortest"), [(2048, 3, 2, 1), (2511, 40, 3, 3), (2100, 3000, 1, 1)])
def test_sweeps_from_both_ends_meet(T, K, C, shortest, parts, instruction_set):
    """A long sequence is counted in two halves; means of 0 take the recursions that keep all rows of one sweep."""
    theta = make([T, 5], C, K, parts=parts, shortest=shortest, seed=T + len(parts))
    found = {n: Segments(C, 0, max_length=K, threads=n).marginals(theta, edges=True, spans=K < 100) for n in (1, 2)}
    plain = Segments(C, 0, max_length=K)
    slow = replace(theta, means=np.zeros((T + 5, C))) if K < 100 else None
    if slow is not None:
        expected = plain.marginals(slow, edges=True, spans=True)
        for name in ("frames", "starts", "lengths", "transitions", "start", "end", "edges", "spans", "log_partition"):
            np.testing.assert_allclose(getattr(found[1], name), getattr(expected, name), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(plain.entropy(theta), plain.entropy(slow), rtol=1e-7)
        np.testing.assert_allclose(plain.argmax(theta)[1], plain.argmax(slow)[1], rtol=1e-12)
    np.testing.assert_allclose(found[1].frames.sum(axis=1), 1.0, atol=1e-8)
    np.testing.assert_allclose((found[1].lengths * np.arange(1, K + 1)[:, None]).sum(), T + 5, rtol=1e-9)
    np.testing.assert_array_equal(plain.log_partition(theta), found[1].log_partition)
    for one, two in zip(found[1]._all(), found[2]._all(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_results_do_not_depend_on_the_number_of_threads():
    lengths = np.random.default_rng(0).integers(0, 60, 60)
    theta = make(lengths, 3, 5, parts=PARTS["everything"])
    found = []
    for threads in (1, 2, 3, 8):
        segments = Segments(3, 0, max_length=5, threads=threads)
        mu = segments.marginals(theta)
        y, score = segments.argmax(theta)
        draws = segments.sample(theta, 2, 0)
        sums = [mu.log_partition, mu.frames, mu.lengths, mu.transitions, mu.variances, mu.pair_means]
        found.append([*sums, y.lengths, score, *(d.lengths for d in draws), *(d.labels for d in draws)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


PEAK = """
import numpy as np
from mercer.structures import Segments, SegmentScores

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

T, C, K = 30_000, 10, 60
shared = np.zeros((K, C)), np.zeros((C, C)), np.zeros(C), np.zeros(C), np.array([0, T])
theta = SegmentScores(*shared, frames=np.zeros((T, C)), means=np.zeros((T, C)))
segments = Segments(C, 0, max_length=K)
before = peak()
segments.marginals(theta)
segments.argmax(theta)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of the memory is read from /proc")
def test_a_long_sequence_takes_memory_for_positions_times_labels_only():
    """30,000 positions × 60 lengths × 10 labels would be 144 MB; a dozen arrays of positions × 16 numbers are 45."""
    found = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 60_000  # kilobytes


# ------------------------------------------------------------------------------------ samples


@pytest.mark.parametrize("parts", ["sums and boundaries", "everything", "more than everything"])
def test_samples_follow_the_distribution(parts):
    theta = make([3, 4], 2, 3, seed=3, parts=PARTS[parts], forbid=0.05)
    n = 3_000
    draws = Segments(2, 0, max_length=3).sample(theta, n, random_state=0)
    for i, oracle in enumerate(one_by_one(theta)):
        counts = dict.fromkeys(oracle.outputs, 0)
        for draw in draws:
            counts[triples(draw, i)] += 1
        observed = np.array(list(counts.values()))
        assert (observed[oracle.probabilities == 0] == 0).all()
        likely = oracle.probabilities * n >= 5
        observed = np.append(observed[likely], observed[~likely].sum())
        wanted = np.append(oracle.probabilities[likely], oracle.probabilities[~likely].sum()) * n
        assert chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue > 1e-4


def test_the_same_seed_gives_the_same_samples():
    theta, segments = make([9, 4], 2, 3, parts=("frames",)), Segments(2, 0, max_length=3)
    a, b, c = (segments.sample(theta, 6, seed) for seed in (1, 1, 2))
    a, b, c = ([y.segments("ab") for y in draws] for draws in (a, b, c))
    assert a == b
    assert a != c


# ------------------------------------------------------------------------------------ statistics, lengths


def test_scores_of_statistics_equal_numpy_on_random_segments():
    rng = np.random.default_rng(0)
    T, F, C = 60, 4, 2
    x = rng.normal(size=(T, F)) * [1.0, 5.0, 0.1, 1.0] + [0.0, 100.0, -3.0, 1e4]
    X = Sequences(x)
    statistics = {"sum": np.sum, "mean": np.mean, "variance": np.var}
    for name, function in statistics.items():
        segments = Segments(C, F, max_length=T, statistics=(name,), lengths=None)
        w = np.zeros(segments.n_weights)
        w[segments.slices[name]] = rng.normal(size=F * C)
        theta = segments.scores(w, X)
        for _ in range(50):
            bounds = np.sort(rng.choice(np.arange(1, T), rng.integers(0, 6), replace=False))
            lengths = np.diff([0, *bounds, T])
            labels = rng.integers(0, C, len(lengths))
            y = Segmentations(lengths, labels, [0, len(lengths)], [0, T])
            wanted = sum(
                function(x[s : s + size], axis=0) @ w[segments.slices[name]].reshape(F, C)[:, c]
                for s, size, c in zip(y.starts, lengths, labels, strict=True)
            )
            assert np.isclose(segments.score(theta, y)[0], wanted, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("model", ["table", "poisson", "log-normal", "constant", None])
def test_scores_of_lengths_are_linear_in_the_basis(model):
    segments = Segments(2, 0, max_length=5, min_length=2, lengths=model)
    rng = np.random.default_rng(0)
    w = rng.normal(size=segments.n_weights)
    scores = segments.length_scores(w)
    assert np.isneginf(scores[0]).all()
    basis = length_basis(model, 5)
    used = w[: basis.shape[1] * 2].reshape(-1, 2)
    np.testing.assert_allclose(scores[1:], (basis @ used)[1:])


def test_poisson_and_log_normal_lengths_have_their_densities():
    from scipy.stats import lognorm, poisson

    l = np.arange(1, 30)
    rate = 6.5
    np.testing.assert_allclose(length_basis("poisson", 29) @ [-rate, np.log(rate), 1.0], poisson(rate).logpmf(l))
    m, s = 1.3, 0.6
    weights = [-0.5 * np.log(2 * np.pi) - np.log(s) - m**2 / (2 * s**2), m / s**2 - 1.0, -1 / (2 * s**2)]
    np.testing.assert_allclose(length_basis("log-normal", 29) @ weights, lognorm(s, scale=np.exp(m)).logpdf(l))


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length must be an integer of at least 1"),
        ({"max_length": 2, "min_length": 3}, "min_length=3 is greater than max_length=2"),
        ({"max_length": [3, 1], "min_length": 2}, r"min_length=2 is greater than max_length=1 \(label 1\)"),
        ({"max_length": [3, 1, 2]}, "one number or one a label"),
        ({"max_length": 2.5}, "max_length must be an integer"),
        ({"max_length": 2, "statistics": ("median",)}, "statistics must be one of"),
        ({"max_length": 2, "neighbours": ("sum",)}, "neighbours must be one of"),
        ({"max_length": 2, "lengths": "gamma"}, "lengths must be one of"),
        ({"max_length": 2, "lengths": np.ones((3, 1))}, r"lengths must be of shape \(2, n\)"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Segments(2, 1, **options)


@pytest.mark.parametrize("part", ["frames", "means", "starts", "edges", "spans", "lengths", "transitions", "start"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(part, value):
    theta = make([3], 2, 2, parts=("frames", "means", "starts", "edges", "spans"))
    getattr(theta, part)[(0,) * getattr(theta, part).ndim] = value
    segments = Segments(2, 0, max_length=2)
    for verb in (segments.log_partition, segments.argmax, segments.marginals):
        with pytest.raises(ValueError, match="NaN or \\+inf"):
            verb(theta)


@pytest.mark.parametrize("part", ["frames", "means", "starts", "edges", "spans", "transitions", "end"])
def test_scores_of_the_wrong_shape_are_refused(part):
    theta = make([3], 2, 2, parts=("frames", "means", "starts", "edges", "spans"))
    setattr(theta, part, np.concatenate([getattr(theta, part)] * 2))
    with pytest.raises(ValueError):
        Segments(2, 0, max_length=2).log_partition(theta)


def test_sequences_that_cannot_be_cut_are_named():
    segments = Segments(2, 1, max_length=3, min_length=2)
    X = Sequences(np.zeros((6, 1)), [0, 5, 6])
    with pytest.raises(ValueError, match="sequence 1 with 1 positions cannot be cut into segments of 2 to 3"):
        segments.check(X)
    segments.check(X[:1])


def test_true_segments_out_of_bounds_are_named_with_the_longest():
    segments = Segments(2, 1, max_length=3)
    X = Sequences(np.zeros((9, 1)), [0, 4, 9])
    y = Segmentations.from_segments([[(0, 4, 0)], [(0, 5, 1)]], [4, 5], [0, 1])
    with pytest.raises(ValueError, match=r"sequence 1: the true segment \[0, 5\) .* 5 positions, max_length is 3"):
        segments.check(X, y)
    short = Segments(2, 1, max_length=5, min_length=2)
    y = Segmentations.from_segments([[(0, 4, 0)], [(0, 1, 1), (1, 5, 1)]], [4, 5], [0, 1])
    with pytest.raises(ValueError, match=r"\[0, 1\) of label 1 has 1 positions, min_length is 2"):
        short.check(X, y)


@pytest.mark.parametrize("loss", ["log", "hinge", "slack", "softmax-margin", "hybrid"])
def test_a_truth_beyond_the_bounds_is_named_by_every_loss(loss):
    X = Sequences(np.random.default_rng(0).normal(size=(9, 1)), [0, 4, 9])
    y = Segmentations.from_segments([[(0, 3, 0), (3, 4, 1)], [(0, 5, 1)]], [4, 5], [0, 1])
    risk = Risk(Segments(2, 1, max_length=3), resolve_loss(loss), X, y)
    with pytest.raises(InfeasibleError, match="example 1"):
        risk.value_and_gradient(np.zeros(risk.n_weights))


@pytest.mark.parametrize("observed", [False, True])
def test_scores_of_sums_and_boundaries_with_one_walk_over_the_features(observed):
    rng = np.random.default_rng(0)
    F, C, T = 6, 3, 40
    X = Sequences(csr_array(rng.normal(size=(T, F)) * (rng.random((T, F)) < 0.4)), [0, 15, T])
    X.edges = X.rows
    kept = (np.cumsum([0, *rng.integers(0, C + 1, F)]), None)
    kept = (kept[0], np.concatenate([np.sort(rng.permutation(C)[:n]) for n in np.diff(kept[0])]).astype(np.uint16))
    segments = Segments(C, F, F, max_length=3, boundary_pattern=kept if observed else None)
    w = rng.normal(size=segments.n_weights)
    joint = segments.joint_weights(w, X)
    both, apart = segments.scores(w, X[1:], joint), segments.scores(w, X[1:])
    for name in ("frames", "starts", "lengths", "transitions"):
        np.testing.assert_allclose(getattr(both, name), getattr(apart, name), rtol=1e-12, atol=1e-12)
    assert segments.joint_weights(w, X[:0]) is None  # not worth it
    X.edges = Sequences(X.rows.matrix(0, T), X.offsets).rows
    assert segments.joint_weights(w, X) is None  # other features


def test_a_structure_can_be_copied():
    segments = Segments(2, 3, 1, max_length=[3, 4], min_length=2, neighbours=("boundary",), lengths="poisson")
    again = pickle.loads(pickle.dumps(segments))
    assert again.slices == segments.slices
    w = np.random.default_rng(0).normal(size=segments.n_weights)
    np.testing.assert_array_equal(again.length_scores(w), segments.length_scores(w))


def test_inputs_that_do_not_fit_are_refused():
    segments = Segments(2, 3, 2, 1, max_length=2)
    w = np.zeros(segments.n_weights)
    with pytest.raises(ValueError, match="X has 2 features, the model has 3"):
        segments.scores(w, Sequences(np.zeros((4, 2))))
    with pytest.raises(ValueError, match="0 features of boundaries"):
        segments.scores(w, Sequences(np.zeros((4, 3))))
    X = Sequences(np.zeros((4, 3)), edges=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="SpanSequences"):
        segments.scores(w, X)
    segments.scores(w, SpanSequences.from_function(X, lambda x, s, e: [1.0], 2))
    with pytest.raises(ValueError, match="NaN"):
        SpanSequences.from_function(X, lambda x, s, e: [np.nan], 2)


def test_variances_of_sparse_features_are_refused():
    from scipy.sparse import csr_matrix

    segments = Segments(2, 3, max_length=2, statistics=("variance",))
    with pytest.raises(ValueError, match="dense"):
        segments.scores(np.zeros(segments.n_weights), Sequences(csr_matrix(np.eye(3))))


def test_every_segmentation_is_met_once_by_the_oracle():
    assert len(segmentations(4, 1)) == 8
    assert len({y for y in segmentations(4, 3)}) == 3 * 4**3


def test_batches_are_whole_sequences_of_about_as_many_positions_as_asked():
    X = Sequences(np.zeros((10, 0)), np.array([0, 6, 7, 9, 10]))
    slices = list(Segments(3, 0, max_length=2).batches(X, 3))
    assert [(part.start, part.stop) for part in slices] == [(0, 1), (1, 3), (3, 4)]


def test_iterating_gives_one_sequence_at_a_time():
    y = Segmentations.from_segments([[(0, 4, 0)], [(0, 1, 1), (1, 5, 1)]], [4, 5], [0, 1])
    assert [(len(one), one.lengths.tolist()) for one in y] == [(1, [4]), (1, [1, 4])]


# ---------------------------------------------------------------------------------- two whole neighbouring segments


def pair_problem(C=2, K=3):
    """Sequences with features of segments and of pairs of them, a structure that weighs all, and true outputs."""
    rng = np.random.default_rng(3)
    X = Sequences(rng.normal(size=(12, 2)), [0, 5, 7, 12])
    X = SpanSequences.from_function(
        X,
        lambda x, s, e: [x[s:e].max()],
        K,
        pairs=lambda x, s, t, e: [x[s:t].sum() * x[t:e].sum(), float(t - s > e - t)],
    )
    segments = Segments(C, 2, 0, 1, max_length=K, statistics=("sum", "variance"), n_pair_features=2)
    y = Segmentations.from_segments(
        [[(0, 2, 0), (2, 5, C - 1)], [(0, 2, 0)], [(0, 3, 0), (3, 4, C - 1), (4, 5, 0)]], [5, 2, 5], range(C)
    )
    return X, segments, y


def test_pair_features_enter_scores_where_they_belong():
    X, segments, y = pair_problem()
    rng = np.random.default_rng(0)
    w = np.zeros(segments.n_weights)
    v = w[segments.slices["pair span"]] = rng.normal(size=8)
    v = v.reshape(2, 2, 2)
    wanted = []
    for i, one in enumerate(y.segments(range(2))):
        x = X[i]
        wanted.append(
            sum(
                np.array([x[s:t].sum() * x[t:e].sum(), float(t - s > e - t)]) @ v[:, a, b]
                for (s, t, a), (_, e, b) in itertools.pairwise(one)
            )
        )
    np.testing.assert_allclose(segments.score(segments.scores(w, X), y), wanted)


@pytest.mark.parametrize("loss", ["log", "hinge", "squared-hinge", "slack", "softmax-margin", "hybrid", "circle"])
@pytest.mark.parametrize("C", [1, 2])
def test_gradients_with_pair_features_equal_finite_differences(loss, C):
    X, segments, y = pair_problem(C)
    w = np.random.default_rng(1).normal(size=segments.n_weights)
    risk = Risk(segments, resolve_loss(loss), X, y)
    _, gradient = risk.value_and_gradient(w)
    steps = 1e-6 * np.eye(len(w))
    differences = [(risk.value(w + e) - risk.value(w - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(gradient, differences, atol=1e-5)
    z = segments.argmax(segments.scores(w, X))[0]
    rows = segments.difference(X, y, z).toarray()
    theta = segments.scores(w, X)
    np.testing.assert_allclose(rows @ w, segments.score(theta, y) - segments.score(theta, z), atol=1e-9)


def test_pair_features_that_do_not_fit_are_refused():
    X, segments, _ = pair_problem()
    w = np.zeros(segments.n_weights)
    with pytest.raises(ValueError, match="features of neighbouring segments of shape \\(0, 0, 0\\)"):
        segments.scores(w, SpanSequences(X.rows, X.offsets, spans=X.spans))
    with pytest.raises(ValueError, match="pair_spans must be of shape"):
        SpanSequences(X.rows, X.offsets, pair_spans=X.spans)
    with pytest.raises(ValueError, match="the same lengths"):
        SpanSequences(X.rows, X.offsets, spans=X.spans, pair_spans=X.pair_spans[:, :2])
    with pytest.raises(ValueError, match="pair_spans hold NaN"):
        SpanSequences(X.rows, X.offsets, spans=X.spans, pair_spans=np.where(X.pair_spans > 0, np.nan, X.pair_spans))
    theta = segments.scores(w, X)
    for wrong in (
        {"pair_span_scores": None},
        {"pair_span_scores": theta.pair_span_scores[:1]},
        {"pair_spans": theta.pair_spans[1:]},
    ):
        for verb in (segments.log_partition, segments.argmax, segments.marginals):
            with pytest.raises(ValueError, match="pair_span"):
                verb(replace(theta, **wrong))
    with pytest.raises(ValueError, match="n_pair_features"):
        Segments(2, 1, max_length=2, n_pair_features=-1)


def test_sequences_keep_their_pair_features_when_chosen_and_joined():
    X, _, _ = pair_problem()
    again = SpanSequences.concatenate([X[:1], X[1:]])
    assert again == X
    assert X[[2, 0]][1:] == X[:1]
    assert SpanSequences(X.rows, X.offsets, spans=X.spans) != X
    with pytest.raises(ValueError, match="some of the parts"):
        SpanSequences.concatenate([X[:1], SpanSequences(X.rows, X.offsets, spans=X.spans)])
