"""Kernels of trees: depth without limits, what is refused, and where it stands."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from mercer.data.trees import Tree
from mercer.datasets import make_treebank
from mercer.kernels import PartialTree, SubsetTree, SubTree
from reference.tree_kernels import recursive_subset_tree

KERNELS = [SubsetTree(), SubTree(), PartialTree()]


def by_name(kernel):
    return type(kernel).__name__


def chain(depth: int, labels: str = "L{}") -> str:
    return "".join(f"({labels.format(i)} " for i in range(depth)) + "w" + ")" * depth


def test_subset_tree_equals_the_printed_recursion_on_a_treebank():
    trees = make_treebank(25, n_words=60, max_length=20, random_state=3).trees
    K = SubsetTree(0.5)(trees)
    np.testing.assert_allclose(K, [[recursive_subset_tree(x, z, 0.5) for z in trees] for x in trees], rtol=1e-12)


def test_hundred_thousand_levels_overflow_no_stack():
    depth = 100_000
    text = chain(depth)
    nested: object = "w"
    tree: Tree | str = "w"
    for i in range(depth - 1, -1, -1):
        nested = (f"L{i}", nested)
        tree = Tree(f"L{i}", [tree])
    K = SubTree()([text, nested, tree])
    np.testing.assert_array_equal(K, np.full((3, 3), float(depth)))
    # C of the lowest node is λ, and of one with n beneath it λ (1 + C): their sum by the same recursion.
    lowest, total = 0.0, 0.0
    for _ in range(depth):
        lowest = 0.5 * (1.0 + lowest)
        total += lowest
    np.testing.assert_allclose(SubsetTree(0.5)([text, nested]), total)
    partial, total = 0.2 * 0.25, 0.2 * 0.25
    for _ in range(depth):
        partial = 0.2 * (0.25 + 0.25 * partial)
        total += partial
    np.testing.assert_allclose(PartialTree(0.5, 0.2)([text, tree]), total)


def test_equal_subtrees_in_a_deep_chain_of_one_label_are_counted_in_linear_time():
    depth = 50_000
    assert SubTree().pair(chain(depth, "L"), chain(depth, "L")) == depth
    assert SubTree().pair(chain(depth, "L"), chain(100, "L")) == 100


def test_rows_of_large_trees_are_sorted_and_without_repeats():
    bank = make_treebank(1500, random_state=2).trees
    F = SubTree().features([Tree("TOP", bank), Tree("TOP", bank[:3])])
    keys = SubTree()._prepare([Tree("TOP", bank)]).keys
    subtrees = Counter(str(node) for tree in bank for node in tree.nodes())
    assert len(keys) == len(subtrees) + 1
    assert sum(subtrees.values()) > 4096
    assert (keys[1:] > keys[:-1]).all()
    assert (F.toarray()[0] ** 2).sum() == sum(count**2 for count in subtrees.values()) + 1


def test_number_of_threads_does_not_change_a_bit():
    trees = make_treebank(60, max_length=20, random_state=1).trees
    for kernel in KERNELS:
        np.testing.assert_array_equal(kernel(trees, n_jobs=2), kernel(trees))
        np.testing.assert_array_equal(kernel.diag(trees), np.diag(kernel(trees)))


def test_pieces_give_the_same_matrix(monkeypatch):
    trees = make_treebank(12, max_length=20, random_state=1).trees
    for kernel in (SubsetTree(), PartialTree()):
        K = kernel(trees)
        with monkeypatch.context() as patched:
            patched.setattr("mercer.kernels.trees.NODE_PAIRS_AT_ONCE", 1000)
            np.testing.assert_array_equal(kernel(trees), kernel(trees).T)
            np.testing.assert_allclose(kernel(trees), K, rtol=1e-12)
            np.testing.assert_allclose(kernel(trees[:5], trees), K[:5], rtol=1e-12)


def test_words_and_labels_of_one_name_are_different_things():
    assert SubsetTree(1.0).pair("(S (A a) x)", "(S A x)") == 0.0
    assert SubTree().pair("(S (A a))", "(S A a)") == 0.0
    assert PartialTree(1.0, 1.0).pair("(S A)", "(S (A b))") == 1.0


def test_escaped_brackets_are_words():
    assert SubTree().pair("(S -LRB-)", ("S", "(")) == 1.0
    assert SubTree().pair("(S -LRB-)", Tree("S", ["("])) == 1.0


def test_spaces_of_unicode_separate_words_as_in_the_parser_of_trees():
    text = "(S\u00a0grün\u2003blau)"
    assert SubTree().pair(text, Tree.parse(text)) == 1.0


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (N a)", "tree 1: line 1, column 9: the text ends inside a tree"),
        ("(S a))", "tree 1: line 1, column 6: a closing bracket without"),
        ("(S\n (N))", "tree 1: line 2, column 4: the node 'N' has no children"),
        ("(S (ä é) ((N b)))", "tree 1: line 1, column 16: a node without a label"),
        ("()", "tree 1: line 1, column 2: a node without a label"),
        ("word", "tree 1: line 1, column 1: the word 'word' stands outside"),
        ("(S a) (S b)", "tree 1: line 1, column 7: a second tree"),
        ("(S a) b", "tree 1: line 1, column 7: the word 'b' stands outside"),
        ("", "tree 1: line 1, column 1: there is no tree"),
        (("S", ("N", "a"), ("N",)), "tree 1, child 1 of the root: the node 'N' has no children"),
        (("S", ("N", ("A", "a", 3))), "tree 1, child 1 of 0 of 0 of the root: expected a tree"),
        ((("S", "a"), "b"), "tree 1: a node is .label, child"),
        ((), "tree 1: a node is .label, child"),
        (3.0, "tree 1: expected a tree in brackets, a tuple"),
        (None, "tree 1: expected a tree in brackets, a tuple"),
        (("S", "\ud800"), "tree 1: text must be strings without lone surrogates"),
    ],
)
def test_malformed_tree_is_named_with_its_place(kernel, text, message):
    with pytest.raises(ValueError, match=message):
        kernel(["(S a)", text])


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
@pytest.mark.parametrize("decay", [0.0, -1.0, 1.5, np.nan, np.inf, "0.4", True, None])
def test_decay_outside_of_its_range_is_refused(kernel, decay):
    with pytest.raises(ValueError, match="decay must be above 0 and at most 1"):
        type(kernel)(decay=decay)(["(S a)"])
    if isinstance(kernel, PartialTree):
        with pytest.raises(ValueError, match="decay_depth must be above 0"):
            PartialTree(decay_depth=decay)(["(S a)"])


def test_leaves_must_be_a_truth_value():
    with pytest.raises(ValueError, match="leaves must be True or False"):
        SubsetTree(leaves="yes")(["(S a)"])


def test_values_beyond_floating_point_are_refused_with_a_way_out():
    text = "(S w)"
    for _ in range(12):
        text = f"(S {text} {text})"
    with pytest.raises(OverflowError, match="use a smaller decay"):
        SubsetTree(1.0)([text])
    assert np.isfinite(SubsetTree(0.4)([text])).all()


def test_no_trees_give_an_empty_matrix():
    for kernel in KERNELS:
        assert kernel([]).shape == (0, 0)
        assert kernel(["(S a)"], []).shape == (1, 0)


@pytest.mark.parametrize("kernel", [SubsetTree(0.5), PartialTree()])
def test_the_diagonal_does_not_depend_on_how_many_trees_are_taken_at_once(kernel: Any, monkeypatch: Any) -> None:
    trees = ["(S (A a) (B b))", "(S (S (A a) (B b)) (B b))", "(A a)", "(S (A a))"]
    whole = kernel.diag(trees)
    monkeypatch.setattr("mercer.kernels.trees.NODE_PAIRS_AT_ONCE", 1)
    np.testing.assert_array_equal(kernel.diag(trees), whole)
    np.testing.assert_allclose(kernel(trees).diagonal(), whole)
