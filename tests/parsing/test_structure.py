"""Φ, Δ and the searches of TreeStructure equal enumeration, for each cost and each set of features."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.reference.trees import all_trees, random_grammar, random_sentence

from mercer.parsing import Grammar, ParseError, Tree, TreeStructure

SLIDE = """
    S -> NP VP | NP
    NP -> Det N
    VP -> V NP
    Det -> dog | the
    N -> dog | cat
    V -> chased
"""


@functools.cache
def listed(seed, length):
    grammar, words = random_grammar(seed, "once"), random_sentence(seed, length)
    return grammar, words, all_trees(grammar, words)


CASES = [(seed, length) for seed in range(7) for length in (3, 5) if 1 < len(listed(seed, length)[2]) < 400]


def vector(row):
    return row if isinstance(row, np.ndarray) else row.toarray().ravel()


def plain_features(structure, words, tree):
    """Φ by its definition."""
    grammar = structure.grammar
    phi = np.zeros(structure.n_weights)
    phi[: len(grammar.rules)] = grammar.counts(tree)
    if structure.features_name == "rules":
        return phi
    n_words = len(grammar.words)
    table = phi[len(grammar.rules) :].reshape(4, n_words + 1, len(grammar.labels))
    numbers = [*(grammar.words.index(word) for word in words), n_words]
    for label, i, j in tree.spans(preterminals=structure.preterminals):
        for kind, at in enumerate((i, j - 1, i - 1, j)):
            table[kind, numbers[at], grammar.labels.index(label)] += 1
    return phi


def plain_cost(name, true, tree, preterminals):
    """Δ by its definition."""
    if name == "zero-one":
        return float(true != tree)
    a, b = set(true.spans(preterminals)), set(tree.spans(preterminals))
    if name == "bracket":
        return float(len(a ^ b))
    return 1 - 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def test_the_slide_sentence_has_the_listed_rule_counts():
    grammar = Grammar.from_text(SLIDE)
    tree = grammar.parse(["the", "dog", "chased", "the", "cat"])
    structure = TreeStructure(grammar)
    counts = dict(zip(map(str, grammar.rules), structure.features(tree.leaves(), tree).tolist(), strict=True))
    assert counts == {
        "S -> NP VP": 1, "S -> NP": 0, "NP -> Det N": 2, "VP -> V NP": 1, "Det -> 'dog'": 0, "Det -> 'the'": 2,
        "N -> 'dog'": 1, "V -> 'chased'": 1, "N -> 'cat'": 1,
    }  # fmt: skip


def test_there_are_cases():
    assert len(CASES) >= 8


@pytest.mark.parametrize("features", ["rules", "rules+boundaries"])
@pytest.mark.parametrize("preterminals", [True, False])
@pytest.mark.parametrize("cost", ["bracket", "zero-one", "f1"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_searches_equal_enumeration(case, cost, preterminals, features):
    grammar, words, trees = listed(*case)
    structure = TreeStructure(grammar, cost, features=features, preterminals=preterminals)
    random = np.random.default_rng(case)
    phi = np.array([plain_features(structure, words, tree) for tree in trees])
    np.testing.assert_array_equal(phi, [vector(structure.features(words, tree)) for tree in trees])
    for scale in (0.0, 1.0):
        w = scale * random.normal(size=structure.n_weights)
        true = trees[random.integers(len(trees))]
        delta = np.array([plain_cost(cost, true, tree, preterminals) for tree in trees])
        assert [structure.cost(true, tree) for tree in trees] == pytest.approx(delta, abs=1e-12)
        scores = phi @ w
        of = {tree: n for n, tree in enumerate(trees)}
        assert scores[of[structure.argmax(w, words)]] == pytest.approx(scores.max(), abs=1e-9)
        assert scores[of[structure.argmin(w, words)]] == pytest.approx(scores.min(), abs=1e-9)
        worst = of[structure.argmax(w, words, cost_to=true)]
        assert scores[worst] + delta[worst] == pytest.approx((scores + delta).max(), abs=1e-9)
        best = structure.k_best(w, words, 4)
        assert [score for _, score in best] == pytest.approx(sorted(scores)[::-1][:4], abs=1e-9)
        assert [scores[of[tree]] for tree, _ in best] == pytest.approx([score for _, score in best], abs=1e-9)
        check_partition(structure, w, words, None, scores, phi)
        if cost == "f1":
            with pytest.raises(ValueError, match="not a sum over brackets"):
                structure.log_partition(w, words, true)
        else:
            check_partition(structure, w, words, true, scores + delta, phi)


def check_partition(structure, w, words, true, scores, phi):
    value, expected = structure.log_partition(w, words, true)
    assert value == pytest.approx(np.logaddexp.reduce(scores), abs=1e-9)
    np.testing.assert_allclose(vector(expected), np.exp(scores - value) @ phi, atol=1e-9)


@pytest.mark.parametrize("cost", ["bracket", "zero-one", "f1"])
def test_a_sentence_without_a_tree_raises_for_every_cost(cost):
    """No derivation spans the whole of the second sentence; the first one has a tree."""
    grammar = Grammar.from_text(SLIDE)
    structure = TreeStructure(grammar, cost)
    whole, broken = "the dog chased the cat".split(), "the dog chased the the".split()  # noqa: SIM905
    tree = grammar.parse(whole)
    w = np.zeros(structure.n_weights)
    assert structure.argmax(w, whole, cost_to=tree).leaves() == whole
    with pytest.raises(ParseError):
        structure.argmax(w, broken, cost_to=tree)
    X, y = [grammar.encode(words) for words in (whole, broken)], grammar.derivation(tree)
    with pytest.raises(ParseError) as refused:
        structure.search(w, X, [(y, structure.brackets(y))] * 2)
    assert refused.value.sentence == 1


def test_numbers_and_words_give_the_same_answers():
    grammar, words, trees = listed(*CASES[-1])
    structure = TreeStructure(grammar)
    w = np.random.default_rng(0).normal(size=structure.n_weights)
    x, y = grammar.encode(words), grammar.derivation(trees[0])
    assert grammar.tree(structure.argmax(w, x, y)) == structure.argmax(w, words, trees[0])
    np.testing.assert_array_equal(structure.features(x, y), structure.features(words, trees[0]))
    assert structure.equal(trees[0], y)


def test_long_feature_vectors_are_sparse_rows():
    rules = [("S", ["A", "A"])] + [("A", [f"w{n}"]) for n in range(5000)]
    structure = TreeStructure(Grammar(rules))
    row = structure.features(["w7", "w7"], Tree.parse("(S (A w7) (A w7))"))
    assert row.shape == (1, 5001)
    assert row.nnz == 2
    assert row.sum() == 3


def test_a_sentence_without_a_tree_is_an_error():
    structure = TreeStructure(Grammar.from_text("S -> A A\nA -> a"))
    w = np.zeros(2)
    for verb in (
        lambda x: structure.argmax(w, x),
        lambda x: structure.k_best(w, x, 2),
        lambda x: structure.log_partition(w, x),
    ):
        with pytest.raises(ParseError, match="derives no tree"):
            verb(["a"])
        with pytest.raises(ParseError, match="does not know the word 'b'"):
            verb(["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"cost": "hamming"}, ValueError, "cost must be one of"),
        ({"features": "words"}, ValueError, "features must be one of"),
        ({"grammar": "S -> a"}, TypeError, "grammar must be a Grammar"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        TreeStructure(**{"grammar": Grammar.from_text("S -> a"), **arguments})
