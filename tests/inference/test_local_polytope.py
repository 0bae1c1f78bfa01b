"""The linear program over the local polytope against brute force."""

from itertools import product

import numpy as np
import pytest

from mercer.inference import lp_inference
from mercer.structures import Chain, ChainScores


def brute_force(nodes, pairs, edges):
    n, K = nodes.shape
    scores = {
        y: sum(nodes[a, y[a]] for a in range(n)) + sum(p[y[a], y[b]] for p, (a, b) in zip(pairs, edges, strict=True))
        for y in product(range(K), repeat=n)
    }
    best = max(scores, key=scores.get)
    return np.array(best), scores[best]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)], [(1, 0), (2, 1), (1, 3)], []])
def test_on_trees_it_is_integral_and_the_best_labelling(edges, seed):
    rng = np.random.default_rng(seed)
    nodes, pairs = rng.normal(size=(4, 3)), rng.normal(size=(len(edges), 3, 3))
    found = lp_inference(nodes, pairs, edges)
    labels, score = brute_force(nodes, pairs, edges)
    assert found.integral
    np.testing.assert_array_equal(found.labels, labels)
    assert found.value == pytest.approx(score)


def test_on_a_chain_it_equals_viterbi():
    rng = np.random.default_rng(0)
    nodes, transitions = rng.normal(size=(6, 4)), rng.normal(size=(4, 4))
    theta = ChainScores(nodes, transitions, np.zeros(4), np.zeros(4), np.array([0, 6]))
    labels, score = Chain(4, 1).argmax(theta)
    found = lp_inference(nodes, np.repeat(transitions[None], 5, 0), [(t, t + 1) for t in range(5)])
    np.testing.assert_array_equal(found.labels, labels)
    assert found.value == pytest.approx(score[0])


def test_on_a_frustrated_cycle_it_is_fractional_and_bounds_the_best_score():
    nodes, pairs = np.zeros((3, 2)), np.repeat([[[0.0, 1.0], [1.0, 0.0]]], 3, 0)
    edges = [(0, 1), (1, 2), (2, 0)]
    found = lp_inference(nodes, pairs, edges)
    assert not found.integral
    assert found.value == pytest.approx(3.0)
    assert brute_force(nodes, pairs, edges)[1] == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_scores": np.zeros(3)}, "node_scores must have shape"),
        ({"edge_scores": np.zeros((1, 2, 3))}, "edge_scores must have shape"),
        ({"node_scores": np.full((2, 2), np.nan)}, "finite"),
        ({"edges": [(0, 2)]}, "two different nodes"),
        ({"edges": [(1, 1)]}, "two different nodes"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"node_scores": np.zeros((2, 2)), "edge_scores": np.zeros((1, 2, 2)), "edges": [(0, 1)], **change}
    with pytest.raises(ValueError, match=message):
        lp_inference(**given)
