"""Costs of segmentations equal differences of sets, and augmented searches equal brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data import Segmentations
from mercer.structures import (
    BoundaryDifference,
    Chain,
    ChainScores,
    Cost,
    CostMatrix,
    Hamming,
    SegmentDifference,
    Segments,
    resolve_cost,
)
from mercer.structures.costs import COSTS, cost_from_json
from reference.margin import frames_of, segments
from reference.segments import segmentations

LABELLED = BoundaryDifference(labelled=True)
SETS = {
    "boundary": (BoundaryDifference(), lambda y: {s for s, _, _ in y}),
    "labelled boundary": (LABELLED, lambda y: {(s, c) for s, _, c in y}),
    "segment": (SegmentDifference(), lambda y: set(y)),
}


def random_segmentation(rng, T, C):
    bounds = [0, *np.flatnonzero(rng.random(T - 1) < 0.4) + 1, T]
    return [(int(a), int(b), int(rng.integers(C))) for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize("name", SETS)
def test_costs_equal_set_differences_on_1000_random_pairs(name):
    cost, elements = SETS[name]
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 12, 1000)
    pairs = [[random_segmentation(rng, T, 3) for T in sizes] for _ in range(2)]
    y, z = (Segmentations.from_segments(p, sizes, range(3)) for p in pairs)
    wanted = [len(elements(a) ^ elements(b)) for a, b in zip(*pairs, strict=True)]
    np.testing.assert_array_equal(cost.distance(y, z), wanted)
    np.testing.assert_array_equal(cost.distance(z, y), wanted)  # symmetric
    assert not cost.distance(y, y).any()
    same = np.array([elements(a) == elements(b) for a, b in zip(*pairs, strict=True)])
    np.testing.assert_array_equal(cost.distance(y, z) == 0, same)  # zero only if equal


def test_the_boundary_cost_can_exceed_the_size_of_the_truth():
    y, z = (Segmentations(lengths, [0] * len(lengths), [0, len(lengths)], [0, 6]) for lengths in ([6], [1] * 6))
    assert BoundaryDifference().distance(y, z)[0] == 5 > len(y.lengths)


ALL = {**SETS, "hamming": (Hamming(), None)}


@pytest.mark.parametrize("options", [{}, {"n_bounds": 1}, {"statistics": ("mean",), "neighbours": ("mean",)}])
@pytest.mark.parametrize("name", ALL)
def test_augmented_scores_are_scores_plus_cost_for_every_output(name, options):
    problem, (cost, elements) = segments(**options), ALL[name]
    w = np.random.default_rng(1).normal(size=problem.n_weights)
    theta = problem.structure.scores(w, problem.X)
    scale = np.linspace(0.3, 2.0, len(problem))
    augmented = problem.structure.augment(theta, problem.y, cost, scale)
    most = max(map(len, problem.outputs))
    for k in range(most):
        chosen = [outputs[min(k, len(outputs) - 1)] for outputs in problem.outputs]
        z, truth = problem.pack(chosen), [o[t] for o, t in zip(problem.outputs, problem.truth, strict=True)]
        pairs = list(zip(truth, chosen, strict=True))
        if elements is None:
            delta = [sum(np.array(frames_of(y)) != np.array(frames_of(c))) for y, c in pairs]
        else:
            delta = [len(elements(y) ^ elements(c)) for y, c in pairs]
        found = problem.structure.score(augmented, z) - problem.structure.score(theta, z)
        np.testing.assert_allclose(found, scale * delta, atol=1e-10)
        np.testing.assert_allclose(problem.structure.cost_between(problem.y, z, cost), delta)


@pytest.mark.parametrize("name", SETS)
def test_the_most_violating_segmentation_equals_brute_force(name):
    cost, elements = SETS[name]
    problem = segments(n_bounds=2, max_length=3)
    problem.costs = problem.costs_of(lambda y, z: float(len(elements(y) ^ elements(z))))
    for seed in range(4):
        w = np.random.default_rng(seed).normal(scale=0.3 + seed, size=problem.n_weights)
        theta = problem.structure.scores(w, problem.X)
        z, value, delta = problem.structure.most_violating(theta, problem.y, cost)
        totals = [d + s for d, s in zip(problem.costs, problem.scores(w), strict=True)]
        np.testing.assert_allclose(value, [t.max() for t in totals])
        np.testing.assert_allclose(delta, [d[t.argmax()] for d, t in zip(problem.costs, totals, strict=True)])
        np.testing.assert_allclose(problem.structure.score(theta, z) + delta, value)


@pytest.mark.parametrize("name", SETS)
def test_slack_rescaling_is_exact_for_costs_of_segments(name):
    cost, elements = SETS[name]
    problem = segments(n_bounds=2, max_length=3)
    problem.costs = problem.costs_of(lambda y, z: float(len(elements(y) ^ elements(z))))
    for seed in range(4):
        w = np.random.default_rng(seed).normal(size=problem.n_weights)
        theta = problem.structure.scores(w, problem.X)
        z, value, delta = problem.structure.best_product(theta, problem.y, cost)
        np.testing.assert_allclose(value, problem.losses(w, "slack"), atol=1e-10)
        lead = 1.0 + problem.structure.score(theta, z) - problem.structure.score(theta, problem.y)
        np.testing.assert_allclose(delta * lead, value, atol=1e-10)
        np.testing.assert_allclose(problem.structure.cost_between(problem.y, z, cost), delta)


def test_exact_slack_rescaling_gives_way_where_it_is_too_much_work():
    problem = segments(neighbours=("mean",))
    theta = problem.structure.scores(np.zeros(problem.n_weights), problem.X)
    assert problem.structure.best_product(theta, problem.y) is None
    plain = segments()
    theta = plain.structure.scores(np.zeros(plain.n_weights), plain.X)
    assert plain.structure.best_product(theta, plain.y, Hamming([np.pi, 1.0, np.e])) is None


@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_the_costs_are_metrics(T, random):
    every = segmentations(T, 2) if T < 5 else segmentations(T, 1)
    x, y, z = (Segmentations.from_segments([random.choice(every)], [T], range(2)) for _ in range(3))
    for cost, _ in SETS.values():
        assert cost.distance(x, z)[0] <= cost.distance(x, y)[0] + cost.distance(y, z)[0]


def test_costs_of_segments_are_found_by_name_and_come_back_from_json():
    for name, kind in (("boundary", BoundaryDifference), ("segment", SegmentDifference)):
        assert isinstance(resolve_cost(name), kind)
        assert COSTS[name] is kind
    for cost in (BoundaryDifference(), LABELLED, SegmentDifference()):
        back = cost_from_json(cost.to_json())
        assert isinstance(back, Cost)
        assert back.to_json() == cost.to_json()


def test_a_cost_of_segments_is_not_for_chains():
    theta = ChainScores(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.array([0, 2]))
    from mercer.data.labels import TagSequences

    y = TagSequences(np.zeros(2, np.int32), np.array([0, 2]))
    with pytest.raises(ValueError, match="BoundaryDifference compares segmentations"):
        Chain(2, 1).most_violating(theta, y, BoundaryDifference())


def test_a_cost_of_frames_is_not_for_one_label():
    problem = segments((4, 3), C=1, max_length=3)
    theta = problem.structure.scores(np.zeros(problem.n_weights), problem.X)
    with pytest.raises(ValueError, match="use cost='boundary'"):
        problem.structure.augment(theta, problem.y, Hamming())
    assert isinstance(problem.structure.own_cost(), BoundaryDifference)
    assert isinstance(Segments(2, 1, max_length=2).own_cost(), Hamming)


def test_work_up_to_the_limit_is_done_and_more_is_not(monkeypatch):
    problem = segments(sizes=(2, 3, 2), max_length=2)
    theta = problem.structure.scores(np.random.default_rng(0).normal(size=problem.n_weights), problem.X)
    # 3 positions x 2 lengths x 3 labels, at 0 to 3 wrong frames
    monkeypatch.setattr("mercer.structures.segments.MAX_WORK", 72)
    _, value, _ = problem.structure.best_product(theta, problem.y)
    assert value.shape == (3,)
    monkeypatch.setattr("mercer.structures.segments.MAX_WORK", 71)
    assert problem.structure.best_product(theta, problem.y) is None


def test_slack_rescaling_finds_leads_of_less_than_one_and_of_later_sequences():
    problem = segments(sizes=(2, 3, 2), max_length=2)
    problem.costs = problem.costs_of(
        lambda y, z: 0.1 * sum(a != b for a, b in zip(frames_of(y), frames_of(z), strict=True))
    )
    cost = CostMatrix(0.1 * (1 - np.eye(3)))
    for seed in range(3):
        w = np.random.default_rng(seed).normal(scale=0.2, size=problem.n_weights)
        part = problem.structure.scores(w, problem.X[1:])
        _, value, _ = problem.structure.best_product(part, problem.y[1:], cost)
        wanted = problem.losses(w, "slack")[1:]
        assert wanted.max() < 1.0
        np.testing.assert_allclose(value, wanted, atol=1e-10)
