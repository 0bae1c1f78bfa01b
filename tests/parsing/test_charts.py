"""Charts equal enumeration of all trees, on random grammars with rules of any length."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.reference.trees import all_trees, random_grammar, random_sentence

from mercer import _core
from mercer.parsing import Grammar, ParseError
from mercer.structures.grammar import stack_offsets

CASES = [(seed, length, cycles) for seed in range(10) for length in (1, 3, 5, 6) for cycles in ("error", "once")]


@functools.cache
def listed(seed, length, cycles):
    grammar, words = random_grammar(seed, cycles), random_sentence(seed, length)
    return grammar, words, all_trees(grammar, words)


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return listed(*request.param)


def test_the_cases_are_worth_testing():
    numbers = [len(listed(*case)[2]) for case in CASES]
    assert sum(n > 5 for n in numbers) > 25
    assert sum(n == 0 for n in numbers) > 2
    assert any(listed(*case)[0]._chart_rules.circular for case in CASES)


def test_best_tree_equals_enumeration(case):
    grammar, words, trees = case
    if not trees:
        with pytest.raises(ParseError):
            grammar.parse(words)
        return
    best = grammar.parse(words)
    assert best in trees
    assert grammar.score(best) == pytest.approx(max(map(grammar.score, trees)), abs=1e-12)


def test_k_best_trees_equal_enumeration(case):
    grammar, words, trees = case
    if not trees:
        return
    expected = sorted((grammar.score(tree) for tree in trees), reverse=True)
    found = grammar.k_best(words, 30)
    assert len(found) == min(30, len(trees))
    assert len({tree for tree, _ in found}) == len(found)
    assert {tree for tree, _ in found} <= set(trees)
    np.testing.assert_allclose([score for _, score in found], expected[:30], atol=1e-12)
    np.testing.assert_allclose([grammar.score(tree) for tree, _ in found], expected[:30], atol=1e-12)


@pytest.mark.parametrize("count_lexical", [True, False])
def test_log_partition_and_expectations_equal_enumeration(case, count_lexical):
    grammar, words, trees = case
    try:
        x = grammar.encode(words)
    except ParseError:
        assert not trees
        return
    n, n_labels = len(words), len(grammar.labels)
    sigma = np.random.default_rng(n).normal(size=(n * (n + 1) // 2, n_labels))
    counts, brackets = np.zeros((1, len(grammar))), np.zeros_like(sigma)
    (value,) = grammar.chart.log_partition(
        grammar.weights, x, stack_offsets([x]), sigma, count_lexical, counts, brackets
    )
    if not trees:
        assert value == -np.inf
        return
    place = {(i, j): i * n - i * (i - 1) // 2 + (j - i - 1) for i in range(n) for j in range(i + 1, n + 1)}
    uses = np.zeros((len(trees), *sigma.shape))
    for use, tree in zip(uses, trees, strict=True):
        for label, i, j in tree.spans(preterminals=count_lexical):
            use[place[i, j], grammar.labels.index(label)] += 1
    rules = np.array([grammar.counts(tree) for tree in trees])
    scores = rules @ grammar.weights + np.tensordot(uses, sigma, 2)
    assert value == pytest.approx(np.logaddexp.reduce(scores), abs=1e-10)
    p = np.exp(scores - value)
    np.testing.assert_allclose(counts[0], p @ rules, atol=1e-10)
    np.testing.assert_allclose(brackets, np.tensordot(p, uses, 1), atol=1e-10)
    found, _, (score,) = grammar.chart.best(grammar.weights, x, stack_offsets([x]), sigma, count_lexical)
    assert score == pytest.approx(scores.max(), abs=1e-12)
    best = scores[trees.index(grammar.tree(found, words))]
    assert best == pytest.approx(scores.max(), abs=1e-12)


def test_a_batch_gives_the_same_for_any_number_of_threads():
    grammar = random_grammar(3)
    encoded = []
    for seed in range(40):
        try:
            encoded.append(grammar.encode(random_sentence(seed, 1 + seed % 7)))
        except ParseError:
            continue
    words, offsets = np.concatenate(encoded), stack_offsets(encoded)
    results = []
    for threads in (1, 2, 3):
        counts = np.zeros((len(encoded), len(grammar)))
        z = grammar.chart.log_partition(grammar.weights, words, offsets, None, True, counts, None, threads)
        best = grammar.chart.best(grammar.weights, words, offsets, None, True, threads)
        many = grammar.chart.k_best(grammar.weights, words, offsets, 5, None, True, threads)
        results.append([z, counts, *best, *many])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_forbidden_rule_is_in_no_tree():
    grammar = Grammar.from_text("S -> A A [5] | S S | a a\nA -> a | b")
    weights = grammar.weights.copy()
    weights[grammar.index("S", ("A", "A"))] = -np.inf
    grammar = grammar.with_weights(weights)
    assert str(grammar.parse(["a", "a"])) == "(S a a)"
    with pytest.raises(ParseError, match="derives no tree"):
        grammar.parse(["a", "b"])
    assert grammar.log_partition(["a", "b"]) == -np.inf


def test_a_long_sentence_and_a_deep_tree():
    grammar = Grammar.from_text("S -> a S [1] | a")
    tree = grammar.parse(["a"] * 300)
    assert len(tree.leaves()) == 300
    assert len(tree.spans()) == 300
    assert str(tree).count("(") == 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros(2)}, "one weight for each rule"),
        ({"w": np.array([0.0, np.nan, 0.0])}, "below infinity"),
        ({"w": np.array([0.0, np.inf, 0.0])}, "below infinity"),
        ({"words": np.array([0, 5], np.int32)}, "a word is out of range"),
        ({"words": np.array([0, -1], np.int32)}, "a word is out of range"),
        ({"offsets": np.array([0, 1])}, "number of words"),
        ({"offsets": np.array([0, 3, 2])}, "must not decrease"),
        ({"offsets": np.zeros(0, np.int64)}, "hold at least one"),
        ({"spans": np.zeros((2, 2))}, "a row for each cell"),
        ({"spans": np.full((3, 2), np.nan)}, "must be finite"),
        ({"threads": 0}, "threads"),
    ],
)
def test_wrong_arrays_are_refused(change, message):
    grammar = Grammar.from_text("S -> A A\nA -> a | b")
    given = {
        "w": np.zeros(3),
        "words": np.array([0, 1], np.int32),
        "offsets": np.array([0, 2]),
        "spans": None,
        "count_lexical": True,
        "threads": 1,
    }
    grammar.chart.best(**given)
    with pytest.raises(ValueError, match=message):
        grammar.chart.best(**{**given, **change})


def test_wrong_chart_grammars_are_refused():
    none2, none3 = np.zeros((0, 3), np.int32), np.zeros((0, 4), np.int32)
    labels = np.zeros(2, np.int32)

    def make(**change):
        given = {"n_terminals": 1, "n_labels": 1, "n_weights": 2, "start": 0, "labels": labels}
        given |= {"binary": none3, "unary": none2, "lexical": none2}
        return _core.parsing.ChartGrammar(**{**given, **change})

    make()
    with pytest.raises(ValueError, match="start"):
        make(start=2)
    with pytest.raises(ValueError, match="label"):
        make(labels=np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="symbol that is out of range"):
        make(binary=np.array([[0, 1, 2, 0]], np.int32))
    with pytest.raises(ValueError, match="weight that is out of range"):
        make(lexical=np.array([[0, 0, 2]], np.int32))
    with pytest.raises(ValueError, match="column"):
        make(binary=none2)
    with pytest.raises(ValueError, match="cycle"):
        make(unary=np.array([[0, 1, 0], [1, 0, 1]], np.int32))


def test_rules_may_be_longer_than_recursion_is_deep():
    words = [f"w{i}" for i in range(2000)]
    grammar = Grammar.from_text("S -> " + " ".join(f"'{word}'" for word in words))
    assert len(grammar.rules[0].children) == len(words)
