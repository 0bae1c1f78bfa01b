"""log_cardinality of every structure is the logarithm of a count by enumeration."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

from mercer.alignment import AlignmentStructure
from mercer.data import Sequences
from mercer.parsing import Grammar, TreeStructure
from mercer.structured import CustomStructure
from mercer.structures import (
    Chain,
    Enumerated,
    GraphInputs,
    GraphLabels,
    Joint,
    Labels,
    LabelSets,
    OracleError,
    Segments,
)
from mercer.structures.alignment_batch import Coded
from mercer.structures.alignment_joint import AlignmentJoint
from mercer.structures.joint import Examples
from mercer.structures.partitions import Partitions
from mercer.structures.trees import TreeBatches
from reference.alignments import all_alignments
from reference.partitions import partitions
from reference.segments import segmentations
from reference.trees import all_trees, random_grammar, random_sentence

LENGTHS = [3, 0, 1, 5, 2, 3]


def rows_of(lengths, dtype=np.float64) -> Sequences:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences(np.ones((int(offsets[-1]), 2), dtype), offsets)


def random_masks(C: int, seed: int, share: float = 0.3):
    rng = np.random.default_rng(seed)
    return rng.random((C, C)) < share, rng.random(C) < share, rng.random(C) < share


def allowed(labels, masks) -> bool:
    transitions, start, end = masks
    if not len(labels):
        return True
    return not (start[labels[0]] or end[labels[-1]] or any(transitions[a, b] for a, b in pairwise(labels)))


def logs(counts) -> np.ndarray:
    return np.array([math.log(count) if count else -np.inf for count in counts])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(6))
def test_chains_count_the_labellings_their_masks_allow(seed, dtype):
    C, masks = 3, random_masks(3, seed)
    chain = Chain(C, 2, masks=masks)
    wanted = [sum(allowed(y, masks) for y in product(range(C), repeat=T)) for T in LENGTHS]
    np.testing.assert_allclose(chain.log_cardinality(rows_of(LENGTHS, dtype)), logs(wanted), rtol=1e-13)


def test_long_chains_do_not_overflow():
    assert Chain(5, 2).log_cardinality(rows_of([1000])) == pytest.approx(1000 * math.log(5), rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_segmentations_obey_bounds_and_masks(seed):
    C, masks = 2, random_masks(2, seed, 0.2)
    shortest, longest = [1, 2], [3, 4]
    segments = Segments(C, 2, max_length=longest, min_length=shortest, masks=masks)

    def fits(y) -> bool:
        sizes = all(shortest[c] <= e - s <= longest[c] for s, e, c in y)
        return sizes and allowed([c for _, _, c in y], masks)

    wanted = [sum(fits(y) for y in segmentations(T, C)) for T in LENGTHS]
    np.testing.assert_allclose(segments.log_cardinality(rows_of(LENGTHS)), logs(wanted), rtol=1e-12)


@pytest.mark.parametrize("cycles", ["error", "once"])
@pytest.mark.parametrize("batched", [False, True])
def test_trees_over_a_grammar(batched, cycles):
    seen = 0
    for seed in range(12):
        grammar = random_grammar(seed, cycles) if cycles == "once" else random_grammar(seed)
        structure = TreeStructure(grammar)
        joint = TreeBatches(structure) if batched else Joint(structure, structure.n_weights)
        for length in (1, 3, 4):
            words = random_sentence(seed, length)
            count = len(all_trees(grammar, words))
            if not count:
                continue
            x = grammar.encode(words) if batched else words
            assert joint.log_cardinality(Examples([x])) == pytest.approx(math.log(count), abs=1e-12)
            seen += 1
    assert seen > 10


def test_a_binary_grammar_has_catalan_many_trees():
    grammar = Grammar.from_text("S -> S S | a")
    joint = Joint(TreeStructure(grammar), len(grammar.rules))
    n = 40
    wanted = math.log(math.comb(2 * n - 2, n - 1) // n)
    assert joint.log_cardinality(Examples([["a"] * n])) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("batched", [False, True])
def test_global_alignments(batched):
    structure = AlignmentStructure(2)
    joint = AlignmentJoint(structure) if batched else Joint(structure, structure.n_weights)
    pairs = [Coded(np.zeros(n, np.int32), np.ones(m, np.int32)) for n, m in [(1, 1), (2, 3), (4, 3), (0, 2)]]
    wanted = [len(all_alignments(len(s), len(t))) for s, t in pairs]
    np.testing.assert_allclose(joint.log_cardinality(Examples(pairs)), logs(wanted), atol=1e-12)


def test_local_alignments_count_what_the_search_can_answer():
    structure = AlignmentStructure(2, mode="local")
    x = Coded(np.zeros(3, np.int32), np.ones(2, np.int32))
    answers = structure.k_best(np.zeros(structure.n_weights), x, 1000)
    different = {tuple(map(tuple, pairs)) for pairs, _ in answers}
    count = AlignmentJoint(structure).log_cardinality(Examples([x]))
    assert count == pytest.approx(math.log(len(different)), abs=1e-12)


def test_labels_sets_graphs_and_outputs_written_out():
    assert Labels(7, 2).log_cardinality(rows_of([1, 1])) == pytest.approx(2 * [math.log(7)])
    assert LabelSets(5, 2).log_cardinality(rows_of([1])) == pytest.approx(math.log(2**5))
    graphs = GraphInputs.from_list([(np.ones((4, 1)), [(0, 1), (1, 2), (2, 3), (3, 0)]), (np.ones((2, 1)), [(0, 1)])])
    for inference in ("auto", "bp", "mean-field"):  # the count is exact where sums are not
        assert GraphLabels(3, 1, inference=inference).log_cardinality(graphs) == pytest.approx(logs([3**4, 3**2]))
    outputs = Enumerated(lambda x: list(range(x)), lambda x, y: np.array([float(y)]), 1)
    assert outputs.log_cardinality([1, 5]) == pytest.approx(logs([1, 5]))


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_partitions_have_bell_numbers(n):
    joint = Joint(Partitions("greedy", "pairs"), 3)
    x = np.zeros((n * (n - 1) // 2, 2))
    assert joint.log_cardinality(Examples([x])) == pytest.approx(math.log(len(list(partitions(n)))))


class Ordering(CustomStructure):
    """Rankings of x items, counted by the user."""

    def __init__(self, answer=None):
        self.answer = answer

    def features(self, x, y):
        return np.array([float(y[0])])

    def argmax(self, w, x, cost_to=None):
        return tuple(range(x))

    def log_cardinality(self, x):
        return math.lgamma(x + 1) if self.answer is None else self.answer


def test_a_structure_of_your_own_counts_or_sums():
    assert Joint(Ordering(), 1).log_cardinality(Examples([3, 5])) == pytest.approx(logs([6, 120]))

    class Pair(CustomStructure):
        def features(self, x, y):
            return np.array([float(y)])

        def argmax(self, w, x, cost_to=None):
            return 0

        def log_partition(self, w, x, cost_to=None):
            return float(np.logaddexp(0.0, w[0])), np.array([1 / (1 + np.exp(-w[0]))])

    assert Joint(Pair(), 1).log_cardinality(Examples([None])) == pytest.approx(math.log(2))


@pytest.mark.parametrize("answer", [np.nan, np.inf, -0.5, "many"])
def test_an_impossible_count_names_the_example(answer):
    with pytest.raises(OracleError, match="example 0: log_cardinality"):
        Joint(Ordering(answer), 1).log_cardinality(Examples([3]))


def test_a_structure_without_sums_says_what_to_write():
    class Bare(CustomStructure):
        def features(self, x, y):
            return np.array([1.0])

        def argmax(self, w, x, cost_to=None):
            return 0

    with pytest.raises(NotImplementedError, match="Bare has neither log_cardinality nor log_partition"):
        Joint(Bare(), 1).log_cardinality(Examples([0]))
