"""Kernels of trees by listing all fragments: slow, and obviously right. Trees are nested tuples (label, child, …)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

Node = Any  # a tuple (label, child, …) or a word


def nodes(tree: Node) -> Iterator[Node]:
    """All nodes of a tree, words too."""
    yield tree
    if not isinstance(tree, str):
        for child in tree[1:]:
            yield from nodes(child)


def without_words(tree: Node) -> Node:
    return (tree[0], *(without_words(child) for child in tree[1:] if not isinstance(child, str)))


def brackets(tree: Node) -> str:
    return tree if isinstance(tree, str) else f"({' '.join([tree[0], *map(brackets, tree[1:])])})"


def subset_fragments(node: Node) -> list[tuple[Any, int]]:
    """Fragments with this root, each with its number of productions; a child that ends a fragment is ("…", label)."""
    choices = []
    for child in node[1:]:
        if isinstance(child, str):
            choices.append([(child, 0)])
        else:
            choices.append([(("…", child[0]), 0), *subset_fragments(child)])
    return [((node[0], *(f for f, _ in chosen)), 1 + sum(size for _, size in chosen)) for chosen in product(*choices)]


def partial_fragments(node: Node, decay: float, depth: float) -> list[tuple[Any, float]]:
    """Embeddings of fragments with this root, each with its weight."""
    if isinstance(node, str):
        return [(node, decay * depth**0.5)]
    found = [((node[0],), decay * depth**0.5)]
    children = node[1:]
    beneath = [partial_fragments(child, decay, depth) for child in children]
    for length in range(1, len(children) + 1):
        for kept in combinations(range(len(children)), length):
            span = kept[-1] - kept[0] + 1
            for chosen in product(*(beneath[k] for k in kept)):
                weight = depth**0.5 * decay**span * float(np.prod([w for _, w in chosen]))
                found.append(((node[0], *(f for f, _ in chosen)), weight))
    return found


def shared(x: Node, z: Node, weighted: Callable[[Node], list[tuple[Any, float]]]) -> float:
    """Σ_f of the products of the weights with which f occurs in x and in z."""
    totals = []
    for tree in (x, z):
        total: dict[Any, float] = defaultdict(float)
        for node in nodes(tree):
            for fragment, weight in weighted(node):
                total[fragment] += weight
        totals.append(total)
    return sum(weight * totals[1].get(fragment, 0.0) for fragment, weight in totals[0].items())


def subset_tree(x: Node, z: Node, decay: float, leaves: bool = True) -> float:
    if not leaves:
        x, z = without_words(x), without_words(z)
    return shared(x, z, lambda n: [] if isinstance(n, str) else [(f, decay ** (s / 2)) for f, s in subset_fragments(n)])


def partial_tree(x: Node, z: Node, decay: float, depth: float, leaves: bool = True) -> float:
    if not leaves:
        x, z = without_words(x), without_words(z)
    return shared(x, z, lambda n: partial_fragments(n, decay, depth))


def subtree(x: Node, z: Node, decay: float, leaves: bool = True) -> float:
    """All pairs of nodes whose complete subtrees are equal."""
    if not leaves:
        x, z = without_words(x), without_words(z)
    return sum(
        decay ** sum(not isinstance(n, str) for n in nodes(a))
        for a in nodes(x)
        for b in nodes(z)
        if not isinstance(a, str) and a == b
    )


def random_tree(random: np.random.Generator, depth: int = 3) -> Node:
    """Few labels and words, so that trees have much in common; a word may be called as a label is."""
    children = [
        str(random.choice(["a", "b", "S"])) if depth <= 1 or random.random() < 0.35 else random_tree(random, depth - 1)
        for _ in range(int(random.integers(1, 4)))
    ]
    return (str(random.choice(["S", "N"])), *children)


def random_trees(random: np.random.Generator, n: int) -> list[Node]:
    """Trees of all small sizes; the last one is equal to another one."""
    trees = [random_tree(random, 1 + i % 3) for i in range(n)]
    trees[-1] = trees[n // 2]
    return trees


def recursive_subset_tree(x: Any, z: Any, decay: float) -> float:
    """C(a, b) over all pairs of nodes of two `Tree`, by the recursion as it is printed, each pair once."""
    known: dict[tuple[int, int], float] = {}

    def production(a: Any) -> tuple[Any, ...]:
        return (a.label, *((c,) if isinstance(c, str) else c.label for c in a.children))

    def common(a: Any, b: Any) -> float:
        key = (id(a), id(b))
        if key not in known:
            value = 0.0
            if production(a) == production(b):
                value = decay
                for s, t in zip(a.children, b.children, strict=True):
                    if not isinstance(s, str):
                        value *= 1.0 + common(s, t)
            known[key] = value
        return known[key]

    return sum(common(a, b) for a in x.nodes() for b in z.nodes())
