"""Labelled ordered trees over words, and Penn bracket notation: ``(S (NP (Det the) (N dog)) (VP (V barks)))``.

A bracket of a tree is (label, start, end): the label of a node and its words [start, end).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mercer._state.values import Codec, register

__all__ = ["Bracket", "Tree", "Word", "read_trees"]

Bracket = tuple[str, int, int]

_TOKEN = re.compile(r"\(|\)|[^\s()]+")
_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}
_UNESCAPES = {"-LRB-": "(", "-RRB-": ")"}


@dataclass(frozen=True, slots=True)
class Word:
    """A terminal in a rule, which distinguishes the word ``"."`` from the label ``"."``.

    Examples
    --------
    >>> Word("dog")
    'dog'
    """

    text: str

    def __repr__(self) -> str:
        return repr(self.text)


class Tree:
    """A node with a label and children; a child is a tree or a word (a string).

    Parameters
    ----------
    label : str
    children : list of Tree or str
        At least one.

    Examples
    --------
    >>> from mercer.parsing import Tree
    >>> tree = Tree.parse("(S (NP (Det the) (N dog)) (VP (V barks)))")
    >>> tree.leaves()
    ['the', 'dog', 'barks']
    >>> tree.spans(preterminals=False)
    [('S', 0, 3), ('NP', 0, 2), ('VP', 2, 3)]
    >>> tree == Tree("S", [Tree("NP", [Tree("Det", ["the"]), Tree("N", ["dog"])]), Tree("VP", [Tree("V", ["barks"])])])
    True
    """

    __slots__ = ("children", "label")

    def __init__(self, label: str, children: Iterable[Tree | str]) -> None:
        if not isinstance(label, str):
            raise TypeError(f"the label of a tree is a string, got {label!r}")
        if isinstance(children, (str, Tree)):
            raise TypeError(f"children of a tree are a list of trees and words, got {children!r}")
        self.label = label
        self.children: tuple[Tree | str, ...] = tuple(children)
        if not self.children:
            raise ValueError(f"the node {label!r} has no children: a tree ends in words")
        for child in self.children:
            if not isinstance(child, (Tree, str)):
                raise TypeError(f"a child of the node {label!r} is {child!r}, neither a tree nor a word")

    # ------------------------------------------------------------------ text

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Parse one tree in bracket notation; outer brackets without a label are dropped, as in the Penn Treebank.

        ``-LRB-`` and ``-RRB-`` are read as the words ``(`` and ``)``.
        """
        trees = read_trees(text)
        if len(trees) != 1:
            raise ValueError(f"expected one tree, found {len(trees)} in {_shortened(text)!r}")
        return trees[0]

    def __str__(self) -> str:
        parts: list[str] = []
        todo: list[Tree | str | None] = [self]
        while todo:
            item = todo.pop()
            if item is None:
                parts.append(")")
            elif isinstance(item, str):
                parts.append(" " + _ESCAPES.get(item, item))
            else:
                parts.append((" " if parts else "") + "(" + item.label)
                todo.append(None)
                todo.extend(reversed(item.children))
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Tree.parse({str(self)!r})"

    # ------------------------------------------------------------------ comparison

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        todo: list[tuple[Tree | str, Tree | str]] = [(self, other)]
        while todo:
            a, b = todo.pop()
            if isinstance(a, str) or isinstance(b, str):
                if not (isinstance(a, str) and isinstance(b, str) and a == b):
                    return False
                continue
            if a.label != b.label or len(a.children) != len(b.children):
                return False
            todo.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(str(self))

    # ------------------------------------------------------------------ copies

    def __reduce__(self) -> tuple[Any, ...]:
        return _tree_from_lists, (type(self), *self._lists())

    def _lists(self) -> tuple[list[str], list[int]]:
        """The labels and words in the order of :meth:`nodes`, and the number of children of each (−1: a word).

        Flat lists, since pickle follows children by recursion and ends at a depth of some hundred.
        """
        names: list[str] = []
        counts: list[int] = []
        todo: list[Tree | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                names.append(item)
                counts.append(-1)
            else:
                names.append(item.label)
                counts.append(len(item.children))
                todo.extend(reversed(item.children))
        return names, counts

    # ------------------------------------------------------------------ parts

    def nodes(self) -> Iterator[Tree]:
        """Return all nodes, parents before children, from left to right."""
        todo: list[Tree] = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(child for child in reversed(node.children) if isinstance(child, Tree))

    def leaves(self) -> list[str]:
        """Return the words, from left to right."""
        words = []
        todo: list[Tree | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                words.append(item)
            else:
                todo.extend(reversed(item.children))
        return words

    def rules(self) -> list[tuple[str, tuple[str | Word, ...]]]:
        """Return the rule (label, children) of every node, in the order of :meth:`nodes`: the leftmost derivation."""
        return [
            (node.label, tuple(Word(c) if isinstance(c, str) else c.label for c in node.children))
            for node in self.nodes()
        ]

    def spans(self, preterminals: bool = True) -> list[Bracket]:
        """Return the brackets (label, start, end), in the order of :meth:`nodes`.

        Parameters
        ----------
        preterminals : bool, default=True
            Whether a node directly above a single word counts. PARSEVAL excludes these if they are parts of speech.
        """
        brackets: list[Bracket | None] = []
        position = 0
        todo: list[tuple[Tree | str, int, int]] = [(self, -1, 0)]  # node, place in found (−1: not yet open), start
        while todo:
            item, place, start = todo.pop()
            if isinstance(item, str):
                position += 1
            elif place >= 0:
                brackets[place] = (item.label, start, position)
            else:
                lone = len(item.children) == 1 and isinstance(item.children[0], str)
                if preterminals or not lone:
                    todo.append((item, len(brackets), position))
                    brackets.append(None)
                todo.extend((child, -1, 0) for child in reversed(item.children))
        return [bracket for bracket in brackets if bracket is not None]


def _tree_from_lists(cls: type[Tree], names: list[str], counts: list[int]) -> Tree:
    """The inverse of ``Tree._lists``."""
    if len(names) != len(counts):
        raise ValueError(f"a tree of {len(names)} names needs as many counts of children, found {len(counts)}")
    made: list[Tree | str] = []  # from right to left, so that the children of a node are the last ones
    for name, count in zip(reversed(names), reversed(counts), strict=True):
        if count < 0:
            made.append(name)
            continue
        if count > len(made):
            raise ValueError(f"the node {name!r} needs {count} children, found {len(made)}")
        children = made[len(made) - count :]
        del made[len(made) - count :]
        made.append(cls(name, reversed(children)))
    if len(made) != 1 or isinstance(made[0], str):
        raise ValueError("the lists do not hold one tree")
    return made[0]


def read_trees(text: str) -> list[Tree]:
    """Return all trees in a text in bracket notation.

    Parameters
    ----------
    text : str

    Returns
    -------
    trees : list of Tree

    Examples
    --------
    >>> from mercer.parsing import read_trees
    >>> [tree.label for tree in read_trees("(S (NP dogs) (VP bark))\\n( (NP (N cats)) )")]
    ['S', 'NP']
    """
    trees: list[Tree] = []
    stack: list[tuple[str | None, list[Tree | str]]] = []
    expect_label = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "(":
            stack.append((None, []))
            expect_label = True
            continue
        if token == ")":
            if not stack:
                raise ValueError(f"{_place(text, match.start())}: a closing bracket without an opening one")
            label, children = stack.pop()
            _close(label, children, stack, trees, _place(text, match.start()))
        elif expect_label:
            stack[-1] = (token, stack[-1][1])
        elif not stack:
            raise ValueError(f"{_place(text, match.start())}: the word {token!r} stands outside every tree")
        else:
            stack[-1][1].append(_UNESCAPES.get(token, token))
        expect_label = False
    if stack:
        raise ValueError(f"the text ends inside a tree: {len(stack)} closing brackets are missing")
    return trees


def _close(
    label: str | None,
    children: list[Tree | str],
    stack: list[tuple[str | None, list[Tree | str]]],
    trees: list[Tree],
    at: str,
) -> None:
    if label is None:  # the Penn Treebank's outer brackets
        if stack or len(children) != 1 or isinstance(children[0], str):
            raise ValueError(f"{at}: a node without a label")
        trees.append(children[0])
        return
    if not children:
        raise ValueError(f"{at}: the node {label!r} has no children")
    tree = Tree(label, children)
    if stack:
        stack[-1][1].append(tree)
    else:
        trees.append(tree)


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - (text.rfind(chr(10), 0, position) + 1) + 1}"


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


# ---------------------------------------------------------------------------------------------------- model files


def _brackets(tree: Tree) -> str:
    text = str(tree)
    if Tree.parse(text) != tree:
        raise TypeError(f"the tree {text!r} cannot be written to a model file: a name in it holds spaces or brackets")
    return text


register(
    Tree,
    Codec("tree", lambda tree, out: {"text": _brackets(tree)}, lambda node, source: Tree.parse(node["text"])),
    Codec(
        "trees",
        lambda trees, out: {"text": out.node([_brackets(tree) for tree in trees], "text")},
        lambda node, source: [Tree.parse(text) for text in source.value(node["text"])],
    ),
)
