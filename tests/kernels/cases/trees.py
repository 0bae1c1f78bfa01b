"""Kernels of trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.cases import Case
from mercer.data.trees import Tree
from mercer.kernels import PartialTree, SubsetTree, SubTree
from reference.tree_kernels import brackets, partial_tree, random_trees, subset_tree, subtree

FORMS: dict[str, Any] = {
    "brackets": lambda random, x: brackets(x),
    "lists": lambda random, x: [x[0], *x[1:]],
    "a Tree": lambda random, x: Tree.parse(brackets(x)),
    "line breaks": lambda random, x: brackets(x).replace(" ", "\n\t "),
    "outer brackets": lambda random, x: f"( {brackets(x)} )",
}


def words_changed(random: np.random.Generator, x: Any) -> Any:
    if isinstance(x, str):
        return f"w{random.integers(9)}"
    return (x[0], *(words_changed(random, child) for child in x[1:]))


CASES = [
    Case("subset tree", SubsetTree(), random_trees, lambda x, z: subset_tree(x, z, 0.4), FORMS),
    Case("subset tree, decay 1", SubsetTree(1.0), random_trees, lambda x, z: subset_tree(x, z, 1.0)),
    Case(
        "subset tree without words", SubsetTree(0.7, leaves=False), random_trees,
        lambda x, z: subset_tree(x, z, 0.7, False), {"words": words_changed},
    ),
    Case("subset tree, normalized", SubsetTree().normalized(), random_trees),
    Case("subtree", SubTree(), random_trees, lambda x, z: subtree(x, z, 1.0), FORMS),
    Case("subtree, decay", SubTree(0.3), random_trees, lambda x, z: subtree(x, z, 0.3)),
    Case(
        "subtree without words", SubTree(0.5, leaves=False), random_trees, lambda x, z: subtree(x, z, 0.5, False),
        {"words": words_changed},
    ),
    Case("partial tree", PartialTree(), random_trees, lambda x, z: partial_tree(x, z, 0.4, 0.4), FORMS),
    Case("partial tree, decay 1", PartialTree(1.0, 1.0), random_trees, lambda x, z: partial_tree(x, z, 1.0, 1.0)),
    Case(
        "partial tree without words", PartialTree(0.6, 0.9, leaves=False), random_trees,
        lambda x, z: partial_tree(x, z, 0.6, 0.9, False), {"words": words_changed},
    ),
]  # fmt: skip
