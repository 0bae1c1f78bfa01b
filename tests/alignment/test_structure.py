"""What losses and solvers ask of alignments, for every cost and mode, against all alignments written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mercer.alignment import AlignmentStructure
from mercer.structures import alignment as structure_module
from mercer.structures.alignment import Scores, shared_pairs
from reference.alignments import all_alignments, counts_of

N = 3
MODES = ["global", "local"]
COSTS = ["pairs", "zero-one"]


class Case:
    """A short pair with weights, a true alignment, and scores and costs of all alignments."""

    def __init__(self, seed: int, mode: str, cost: str = "pairs", symmetric: bool = True, scale: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 5, size=2)
        self.x = tuple(rng.integers(0, N, size).astype(np.int32) for size in (n, m))
        self.structure = AlignmentStructure(N, mode, symmetric, cost)
        self.w = rng.normal(size=self.structure.n_weights) * scale
        self.alignments = [np.array(y, np.int32).reshape(-1, 2) for y in all_alignments(n, m)]
        self.truth = self.alignments[rng.integers(len(self.alignments))]
        scores = self.structure.scores_of(self.w)
        vector = np.concatenate([scores.substitution.ravel(), [scores.gap_open, scores.gap_extend]])
        local = mode == "local"
        self.scores = np.array([counts_of(y.tolist(), *self.x, N, local) @ vector for y in self.alignments])
        self.costs = np.array([self.cost(y) for y in self.alignments])

    def cost(self, y) -> float:
        true, other = set(map(tuple, self.truth.tolist())), set(map(tuple, y.tolist()))
        if self.structure.cost_name == "zero-one":
            return float(true != other)
        return float(len(true ^ other))

    def place(self, y) -> int:
        return next(k for k, z in enumerate(self.alignments) if np.array_equal(y, z))


def cases(**fixed):
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(Case(seed, mode, cost, scale=scale, **fixed), id=f"{seed}-{mode}-{cost}-{scale}")
            for seed in range(6)
            for mode in MODES
            for cost in COSTS
            for scale in (0.3, 2.0)
        ],
    )


@cases()
def test_features_are_what_the_score_is_linear_in(case):
    for y, score in zip(case.alignments, case.scores, strict=True):
        assert case.structure.features(case.x, y) @ case.w == pytest.approx(score)


@cases()
def test_cost_is_that_of_sets_of_pairs(case):
    assert [case.structure.cost(case.truth, y) for y in case.alignments] == case.costs.tolist()
    assert case.structure.cost(case.truth, case.truth) == 0


@cases()
def test_loss_augmented_argmax_equals_brute_force(case):
    found = case.place(case.structure.argmax(case.w, case.x, case.truth))
    total = case.scores + case.costs
    assert total[found] == pytest.approx(total.max())


@cases()
def test_argmax_and_argmin_equal_brute_force(case):
    structure = case.structure
    assert case.scores[case.place(structure.argmax(case.w, case.x))] == pytest.approx(case.scores.max())
    assert case.scores[case.place(structure.argmin(case.w, case.x))] == pytest.approx(case.scores.min())


@cases()
def test_k_best_equals_brute_force(case):
    found = case.structure.k_best(case.w, case.x, 4)
    assert np.allclose([score for _, score in found], np.sort(case.scores)[::-1][:4])
    assert np.allclose([case.scores[case.place(y)] for y, _ in found], [score for _, score in found])


@pytest.mark.parametrize("augmented", [False, True])
@cases()
def test_log_partition_equals_brute_force(case, augmented):
    total = case.scores + (case.costs if augmented else 0)
    value, expected = case.structure.log_partition(case.w, case.x, case.truth if augmented else None)
    log_z = np.logaddexp.reduce(total)
    features = np.array([case.structure.features(case.x, y) for y in case.alignments])
    assert value == pytest.approx(log_z)
    assert np.allclose(expected, np.exp(total - log_z) @ features)


@pytest.mark.parametrize("mode", MODES)
def test_zero_one_softmax_margin_is_finite_where_the_truth_has_all_the_weight(mode):
    structure = AlignmentStructure(1, mode, cost="zero-one")
    x = np.zeros(3, np.int32), np.zeros(3, np.int32)
    truth = np.array([[0, 0], [1, 1], [2, 2]], np.int32)
    value, expected = structure.log_partition(np.array([500.0, -500.0, -500.0]), x, truth)
    assert value == pytest.approx(1500.0)
    assert np.allclose(expected, [3, 0, 0])


@pytest.mark.parametrize("symmetric", [False, True])
def test_weights_and_scores_are_inverse(symmetric):
    structure = AlignmentStructure(4, symmetric=symmetric)
    w = np.arange(float(structure.n_weights))
    scores = structure.scores_of(w)
    assert structure.n_weights == (12 if symmetric else 18)
    assert np.array_equal(structure.weights_of(scores), w)
    assert symmetric == np.array_equal(scores.substitution, scores.substitution.T)


def test_features_of_large_alphabets_are_sparse_rows_with_the_same_values(monkeypatch):
    case = Case(1, "global")
    dense = [case.structure.features(case.x, y) for y in case.alignments]
    monkeypatch.setattr(structure_module, "_DENSE", 0)
    for y, row in zip(case.alignments, dense, strict=True):
        found = case.structure.features(case.x, y)
        assert sparse.issparse(found)
        assert found.shape == (1, case.structure.n_weights)
        assert np.array_equal(found.toarray()[0], row)


def test_global_scores_are_free_up_to_a_constant_of_each_symbol():
    # S + 2c, open + c, extend + c raise every alignment of a pair by c (n + m).
    case, c = Case(5, "global"), 0.7
    shift = np.full(case.structure.n_weights, 2 * c)
    shift[-2:] = c
    n, m = map(len, case.x)
    for y, score in zip(case.alignments, case.scores, strict=True):
        assert case.structure.features(case.x, y) @ (case.w + shift) == pytest.approx(score + c * (n + m))


@pytest.mark.parametrize(
    ("y", "z", "count"),
    [([], [], 0), ([(0, 0)], [], 0), ([(0, 0), (1, 2)], [(0, 0), (1, 1)], 1), ([(2, 2)], [(0, 0), (1, 1), (2, 2)], 1)],
)
def test_shared_pairs(y, z, count):
    y, z = (np.array(a, np.int32).reshape(-1, 2) for a in (y, z))
    assert shared_pairs(y, z) == shared_pairs(z, y) == count


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"n_symbols": 0}, "n_symbols"), ({"mode": "glocal"}, "mode"), ({"cost": "hamming"}, "cost")],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=name):
        AlignmentStructure(**{"n_symbols": 2, **arguments})
    with pytest.raises(ValueError, match="w must have the shape"):
        AlignmentStructure(2).scores_of(np.zeros(3))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_augmented_argmax_against_the_best_alignment_takes_the_second_where_it_is_near(mode, scale):
    kept = 0
    for seed in range(12):
        case = Case(seed, mode, "zero-one", scale=scale)
        best = case.structure.argmax(case.w, case.x)
        case.truth = best
        total = case.scores + np.array([case.cost(y) for y in case.alignments])
        found = case.place(case.structure.argmax(case.w, case.x, best))
        assert total[found] == pytest.approx(total.max())
        kept += found == case.place(best)
    assert kept < 12 if scale < 10 else kept > 0


def test_a_second_alignment_that_is_as_good_with_its_cost_does_not_replace_the_truth():
    structure = AlignmentStructure(1, cost="zero-one")
    x, best = (np.zeros(1, np.int32), np.zeros(1, np.int32)), np.array([[0, 0]], np.int32)
    for match, found in ((0.75, []), (1.0, [[0, 0]]), (1.5, [[0, 0]]), (2.5, [[0, 0]])):
        w = structure.weights_of(Scores(np.array([[match]]), 0.0, 0.0))
        assert structure.argmax(w, x, best).tolist() == found


def test_the_only_alignment_is_the_best_even_against_itself():
    structure = AlignmentStructure(2, cost="zero-one")
    x, only = (np.zeros(0, np.int32), np.array([0, 1], np.int32)), np.zeros((0, 2), np.int32)
    assert structure.argmax(np.ones(structure.n_weights), x, only).shape == (0, 2)
