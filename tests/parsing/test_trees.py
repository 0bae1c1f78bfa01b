"""Trees and bracket notation; grammars: reading, counting, binary form, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.datasets import make_treebank
from mercer.metrics import bracket_f1
from mercer.parsing import Grammar, ParseError, Rule, Tree, Word, read_trees

words = st.sampled_from(["a", "b", "(", ")", ".", "NP"])
labels = st.sampled_from(["S", "NP", "VP", ".", "X-1"])
trees = st.recursive(
    words, lambda inner: st.builds(Tree, labels, st.lists(inner, min_size=1, max_size=4)), max_leaves=12
).filter(lambda tree: isinstance(tree, Tree))


@given(trees)
@settings(max_examples=25, deadline=None)
def test_a_tree_survives_bracket_notation(tree):
    assert Tree.parse(str(tree)) == tree
    assert hash(Tree.parse(str(tree))) == hash(tree)
    assert len(tree.spans()) == sum(1 for _ in tree.nodes())
    assert tree.spans()[0] == (tree.label, 0, len(tree.leaves()))


def repeats(tree):
    """Whether a label occurs twice in a chain of unary rules: such trees are none of the grammar's."""
    brackets = tree.spans()
    return len(set(brackets)) < len(brackets)


@given(st.lists(trees, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_trees_of_any_arity_survive_the_binary_form(listed):
    listed = [Tree("TOP", [tree]) for tree in listed]
    grammar = Grammar.from_trees(listed, cycles="once")
    for tree in listed:
        if repeats(tree):
            with pytest.raises(ValueError, match="twice in a chain"):
                grammar.derivation(tree)
            continue
        assert grammar.tree(grammar.derivation(tree)) == tree
        best = grammar.parse(tree.leaves())
        assert grammar.score(best) >= grammar.score(tree) - 1e-9


def test_spans_know_preterminals():
    tree = Tree.parse("(S (NP (Det the) (N dog)) (VP barks))")
    assert tree.spans() == [("S", 0, 3), ("NP", 0, 2), ("Det", 0, 1), ("N", 1, 2), ("VP", 2, 3)]
    assert tree.spans(preterminals=False) == [("S", 0, 3), ("NP", 0, 2)]


def test_penn_files_are_read():
    text = "( (S (NP (NNP Ms.) (NNP Haag)) (VP (VBZ plays)) (-LRB- -LRB-) (. .)) )\n(NP dogs)"
    first, second = read_trees(text)
    assert first.leaves() == ["Ms.", "Haag", "plays", "(", "."]
    assert second == Tree("NP", ["dogs"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP dogs)", "1 closing brackets are missing"),
        ("(S dogs))", "line 1, column 9: a closing bracket"),
        ("\ndogs", "line 2, column 1: the word 'dogs' stands outside"),
        ("(S (NP))", "the node 'NP' has no children"),
        ("(S ((NP dogs)))", "a node without a label"),
        ("", "expected one tree, found 0"),
        ("(S a) (S b)", "expected one tree, found 2"),
    ],
)
def test_malformed_brackets_are_refused(text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Tree.parse(text)


@pytest.mark.parametrize(("label", "children"), [("S", []), ("S", "dogs"), (3, ["a"]), ("S", [3])])
def test_malformed_trees_are_refused(label, children):
    with pytest.raises((TypeError, ValueError)):
        Tree(label, children)


# ---------------------------------------------------------------------------------------------- grammars


def test_counting_gives_relative_frequencies():
    grammar = Grammar.from_trees(read_trees("(S (A a) (A b)) (S (A a) (A a)) (S (A a))"))
    p = {str(rule): math.exp(weight) for rule, weight in zip(grammar.rules, grammar.weights, strict=True)}
    assert p == pytest.approx({"S -> A A": 2 / 3, "S -> A": 1 / 3, "A -> 'a'": 4 / 5, "A -> 'b'": 1 / 5})
    smooth = Grammar.from_trees(read_trees("(S (A a) (A b)) (S (A a) (A a)) (S (A a))"), smoothing=1.0)
    assert math.exp(smooth.weights[smooth.index("A", ["b"])]) == pytest.approx(2 / 7)


def test_a_counted_grammar_is_a_distribution():
    grammar = Grammar.from_trees(read_trees("(S (A a) (A b)) (S (A a))"))
    total = sum(math.exp(grammar.log_partition(x)) for x in (["a"], ["b"], *([u, v] for u in "ab" for v in "ab")))
    assert total == pytest.approx(1.0)


def test_text_round_trip():
    text = "S -> NP VP [0.5]\nNP -> 'the' N [-1]\nN -> 'dog' [0]\nVP -> 'barks' [2]"
    assert str(Grammar.from_text(text)) == text
    same = Grammar.from_text("S -> NP VP [.5]  # a comment\nNP -> the N [-1]\n\nN -> dog\nVP -> barks [2]")
    assert str(same) == text
    assert same.rules[1] == Rule("NP", (Word("the"), "N"))


def test_a_word_and_a_label_of_one_spelling_stay_apart():
    grammar = Grammar.from_trees([Tree.parse("(S (A a) (. .))")])
    assert str(grammar.parse(["a", "."])) == "(S (A a) (. .))"


def test_unknown_words_stand_for_the_unknown_word():
    grammar = Grammar.from_text("S -> A B\nA -> a | UNK\nB -> b", unknown="UNK")
    assert str(grammar.parse(["zebra", "b"])) == "(S (A zebra) (B b))"
    tree = Tree.parse("(S (A zebra) (B b))")
    assert grammar.tree(grammar.derivation(tree), tree.leaves()) == tree


def test_each_label_once_in_a_chain():
    grammar = Grammar.from_text("S -> A [1] | a\nA -> S [1] | a", cycles="once")
    assert [(str(tree), score) for tree, score in grammar.k_best(["a"], 9)] == [("(S (A a))", 1.0), ("(S a)", 0.0)]
    with pytest.raises(ValueError, match="twice in a chain"):
        grammar.derivation(Tree.parse("(S (A (S a)))"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> A | a\nA -> S", "form a cycle, A -> S -> A"),
        ("S -> S | a", "form a cycle, S -> S"),
        ("S -> a\nB -> b", "cannot be reached from the start symbol 'S': B"),
        ("S -> A | a\nA -> A A", "derive no sentence.*: A"),
        ("S -> a\nS -> a", "the rule S -> 'a' is given twice"),
        ("S ->", "line 1: expected"),
        ("S -> a |", "line 1: an alternative without symbols"),
        ("S -> a [x]", r"line 1: the weight \[x\] is not a number"),
        ("S -> a [1] b", "line 1: a weight stands at the end"),
        ("S -> a [nan]", "weights must be finite"),
        ("'S' -> a", "line 1: expected"),
        ("S -> a ]", "line 1: cannot read"),
        ("", "at least one rule"),
    ],
)
def test_wrong_grammars_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Grammar.from_text(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grammar([("S", ())]), "empty right-hand side"),
        (lambda: Grammar([("S", ["a"])], [1.0, 2.0]), r"weights must have shape \(1,\)"),
        (lambda: Grammar([("S", ["a"])], start="T"), "no rule expands the start symbol 'T'"),
        (lambda: Grammar([("S", ["a"])], cycles="never"), "cycles must be one of"),
        (lambda: Grammar([("S", ["a"])], unknown="b"), "is not a word"),
        (lambda: Grammar.from_trees([]), "trees is empty"),
        (lambda: Grammar.from_trees(read_trees("(S a) (T a)")), "root labels S, T"),
        (lambda: Grammar.from_trees(read_trees("(S a)"), smoothing=-1), "smoothing must be"),
        (lambda: Grammar([("S", ["a"])]).derivation(Tree.parse("(S b)")), "no rule S -> 'b'"),
        (lambda: Grammar([("S", ["a"])]).derivation(Tree.parse("(T a)")), "root is 'T'"),
        (lambda: Grammar([("S", ["a"])]).parse([]), "sentence 0 is empty"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grammar("S -> a"),
        lambda: Grammar([("S", "ab")]),
        lambda: Grammar([("S", [3])]),
        lambda: Grammar(["S"]),
        lambda: Grammar.from_trees(["(S a)"]),
        lambda: Grammar([("S", ["a"])]).parse("a"),
        lambda: Grammar([("S", ["a"])]).parse([1]),
    ],
)
def test_arguments_of_wrong_kinds_are_refused(make):
    with pytest.raises(TypeError):
        make()


def test_a_sentence_that_cannot_be_derived_is_named():
    grammar = Grammar.from_text("S -> A A\nA -> a")
    with pytest.raises(
        ParseError, match="sentence 0 cannot be parsed: the grammar does not know the word 'b'"
    ) as caught:
        grammar.parse(["a", "b"])
    assert caught.value.word == "b"
    with pytest.raises(ParseError, match="derives no tree"):
        grammar.parse(["a"])


# ---------------------------------------------------------------------------------------------- metric and data


def test_bracket_f1_counts_brackets_of_all_trees_together():
    true = read_trees("(S (A a) (B b)) (S (A a))")
    score = bracket_f1(true, [Tree.parse("(S (A a) (C b))"), None])
    assert (score.support, score.predicted, score.correct) == (5, 3, 2)
    assert score.f1 == pytest.approx(4 / 8)
    assert bracket_f1(true, true, preterminals=False).support == 2
    with pytest.raises(ValueError, match="as many"):
        bracket_f1(true, true[:1])


def test_brackets_that_occur_twice_count_twice():
    doubled, single = Tree.parse("(S (S a))"), Tree.parse("(S a)")
    assert bracket_f1([doubled], [single]).recall == 0.5


def test_a_treebank_repeats_with_its_seed():
    one, two, other = make_treebank(30), make_treebank(30), make_treebank(30, random_state=1)
    assert one == two
    assert one != other
    assert all(4 <= len(sentence) <= 10 for sentence in one.sentences)
    assert len(Grammar.from_trees(make_treebank(600).trees).rules) > 150


def test_a_treebank_with_words():
    bank = make_treebank(50, n_words=2000, n_labels=8, random_state=3)
    assert all(word.startswith("w") for sentence in bank.sentences for word in sentence)
    leaves_above = {node.label for tree in bank.trees for node in tree.nodes() if isinstance(node.children[0], str)}
    assert leaves_above.isdisjoint({"S", "NP", "VP"})


@pytest.mark.parametrize(
    "wrong",
    [{"n": 0}, {"n_labels": 27}, {"n_tags": 46}, {"min_length": 9, "max_length": 8}, {"mismatch": -1}, {"n_words": 3}],
)
def test_wrong_treebanks_are_refused(wrong):
    with pytest.raises(ValueError):
        make_treebank(**wrong)


def test_deep_trees_need_no_recursion():
    tree = Tree("A", ["a"])
    for _ in range(5000):
        tree = Tree("B", ["b", tree])
    assert Tree.parse(str(tree)) == tree
    assert len(tree.leaves()) == 5001
    assert np.isfinite(len(tree.spans()))
