"""Kernels of labelled ordered trees, by their common fragments.

SubsetTree    Σ_f λ^{size f} n_f(x) n_f(z)      f: fragments that keep or drop the children of a node as a whole
SubTree       Σ_t λ^{size t} n_t(x) n_t(z)      t: complete subtrees: a node with all its descendants
PartialTree   Σ over fragments that keep any of the children of a node, in their order, weighted by depth and by spans

n_f(x) is how often f occurs in x. All three run in compiled code without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer import _core
from mercer.data.trees import Tree
from mercer.kernels._keyed import KeyedRows, matrices
from mercer.kernels.base import Kernel, Work, mirrored

__all__ = ["PartialTree", "SubTree", "SubsetTree"]

NODE_PAIRS_AT_ONCE = 1 << 29


class _Forest:
    """Trees in compiled form: a prepared collection in the sense of `Kernel._prepare`."""

    def __init__(self, nodes: Any) -> None:
        self.nodes = nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, rows: slice) -> _Forest:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("trees are cut with a step of 1")
        return _Forest(self.nodes.cut(start, max(start, stop)))


class _TreeKernel(Kernel):
    """What the kernels of trees share: reading trees, and checks."""

    decay: float
    leaves: bool

    def _check_params(self) -> None:
        _check_decay("decay", self.decay)
        if not isinstance(self.leaves, (bool, np.bool_)):
            raise ValueError(f"leaves must be True or False, got {self.leaves!r}")


class SubsetTree(_TreeKernel):
    """Count common tree fragments that keep all children of a node or none (Collins and Duffy).

    k(x, z) = Σ_{nodes a of x, b of z} C(a, b), where C is 0 for nodes with different productions (label and labels or
    words of the children), and else

        C(a, b) = λ Π_j (1 + C(a_j, b_j))   over the children that are not words.

    The time is proportional to the number of pairs of nodes with the same production, not to all pairs.

    Parameters
    ----------
    decay : float, default=0.4
        λ in (0, 1]: a fragment with s productions counts λˢ. With 1 large fragments dominate, and values grow
        exponentially with the size of trees.
    leaves : bool, default=True
        Whether words count. With False, words are removed from the trees.

    Notes
    -----
    A tree is a string in bracket notation, nested tuples or a `mercer.parsing.Tree`. Large trees have large values with
    all trees: use ``SubsetTree().normalized()``.

    References
    ----------
    .. [Collins2001] M. Collins and N. Duffy. Convolution kernels for natural language. NIPS, 2001.

    Examples
    --------
    >>> from mercer.kernels import SubsetTree
    >>> k = SubsetTree(decay=1.0)
    >>> k(["(NP (D the) (N dog))", "(NP (D the) (N cat))", ("NP", ("D", "a"), ("N", "dog"))])
    array([[6., 3., 3.],
           [3., 6., 1.],
           [3., 1., 6.]])
    >>> SubsetTree(decay=1.0, leaves=False).pair("(NP (D the) (N dog))", "(NP (D a) (N cat))")
    6.0
    """

    _block_entries = 1 << 16

    def __init__(self, decay: float = 0.4, leaves: bool = True) -> None:
        self.decay = decay
        self.leaves = leaves

    def _prepare(self, X: Any) -> _Forest:
        return _Forest(_core.kernels.Forest(_readable(X), bool(self.leaves), True))

    def _gram(self, A: _Forest, B: _Forest | None, work: Work) -> np.ndarray:
        decay = float(self.decay)
        K = _in_pieces(A, B, lambda a, b, out: _core.kernels.subset_tree_gram(a, b, decay, out, work.threads))
        return _in_range(K, work)

    def _diag(self, A: _Forest, work: Work) -> np.ndarray:
        decay = float(self.decay)
        return _in_range(_own_values(A, lambda a: _core.kernels.subset_tree_diagonal(a, decay, work.threads)), work)


class PartialTree(_TreeKernel):
    """Count common tree fragments that keep any ordered subset of the children of a node (Moschitti).

    k(x, z) = Σ_{nodes a of x, b of z} Δ(a, b), where Δ is 0 for nodes with different labels, and else

        Δ(a, b) = μ (λ² + Σ_{I, J} λ^{span I + span J} Π_k Δ(a_{I_k}, b_{J_k}))

    over equally long subsequences I and J of the children of a and of b; the span of a subsequence is its last index
    minus its first, plus 1. Words are ordinary nodes. The kernel is more flexible than `SubsetTree`, as dependency
    trees need, and slower.

    Parameters
    ----------
    decay : float, default=0.4
        λ in (0, 1]: for the children of a fragment and the gaps between them.
    decay_depth : float, default=0.4
        μ in (0, 1]: for the nodes of a fragment.
    leaves : bool, default=True
        Whether words count. With False, words are removed from the trees.

    References
    ----------
    .. [Moschitti2006] A. Moschitti. Efficient convolution kernels for dependency and constituent syntactic trees. ECML,
       2006.

    Examples
    --------
    >>> from mercer.kernels import PartialTree
    >>> k = PartialTree(decay=1.0, decay_depth=1.0)
    >>> k.pair("(NP the dog)", "(NP the big dog)")  # the, dog, NP, NP-the, NP-dog, NP-the-dog
    6.0
    """

    _block_entries = 1 << 14

    def __init__(self, decay: float = 0.4, decay_depth: float = 0.4, leaves: bool = True) -> None:
        self.decay = decay
        self.decay_depth = decay_depth
        self.leaves = leaves

    def _check_params(self) -> None:
        super()._check_params()
        _check_decay("decay_depth", self.decay_depth)

    def _prepare(self, X: Any) -> _Forest:
        return _Forest(_core.kernels.Forest(_readable(X), bool(self.leaves), False))

    def _gram(self, A: _Forest, B: _Forest | None, work: Work) -> np.ndarray:
        decay, depth = float(self.decay), float(self.decay_depth)
        K = _in_pieces(A, B, lambda a, b, out: _core.kernels.partial_tree_gram(a, b, decay, depth, out, work.threads))
        return _in_range(K, work)

    def _diag(self, A: _Forest, work: Work) -> np.ndarray:
        decay, depth = float(self.decay), float(self.decay_depth)
        return _in_range(
            _own_values(A, lambda a: _core.kernels.partial_tree_diagonal(a, decay, depth, work.threads)), work
        )


class SubTree(_TreeKernel):
    """Count common complete subtrees: a node with all its descendants.

    k(x, z) = Σ_t λ^{size t} n_t(x) n_t(z). Every subtree has a 64-bit hash, computed from the hashes of its children.
    So reading a tree takes linear time, and features are explicit: ``SubTree().features(trees)``.

    Parameters
    ----------
    decay : float, default=1.0
        λ in (0, 1]: a subtree with s labels counts λˢ.
    leaves : bool, default=True
        Whether words count. With False, words are removed from the trees.

    Examples
    --------
    >>> from mercer.kernels import SubTree
    >>> k = SubTree()
    >>> trees = ["(NP (D the) (N dog))", "(NP (D the) (N cat))"]
    >>> k(trees)
    array([[3., 1.],
           [1., 3.]])
    >>> k.features(trees).toarray().sum(axis=1)
    array([3., 3.])
    """

    has_features = True

    def __init__(self, decay: float = 1.0, leaves: bool = True) -> None:
        self.decay = decay
        self.leaves = leaves

    def _prepare(self, X: Any) -> KeyedRows:
        return KeyedRows(*_core.kernels.subtree_rows(_readable(X), bool(self.leaves), float(self.decay)))

    def _gram(self, A: KeyedRows, B: KeyedRows | None, work: Work) -> np.ndarray:
        return A.gram(B, work)

    def _diag(self, A: KeyedRows, work: Work) -> np.ndarray:
        return A.diag()

    def _features(self, parts: list[KeyedRows]) -> list[Any]:
        return matrices(parts)


# ---------------------------------------------------------------------------------------------------- shared


def _check_decay(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}")


def _in_pieces(A: _Forest, B: _Forest | None, fill: Callable[[Any, Any, np.ndarray], None]) -> np.ndarray:
    """The matrix, for large trees some rows at a time: a call into compiled code cannot be interrupted."""
    other = A if B is None else B
    K = np.empty((len(A), len(other)))
    step = int(max(1, NODE_PAIRS_AT_ONCE * len(A) // max(1, A.nodes.n_nodes * other.nodes.n_nodes)))
    if step >= len(A):
        fill(A.nodes, None if B is None else B.nodes, K)
        return K
    for start in range(0, len(A), step):
        rows = A[start : start + step]
        columns = other[: start + len(rows)] if B is None else other  # the rest is a copy
        block = np.empty((len(rows), len(columns)))
        fill(rows.nodes, columns.nodes, block)
        K[start : start + len(rows), : len(columns)] = block
    return mirrored(K) if B is None else K


def _own_values(A: _Forest, values: Callable[[Any], np.ndarray]) -> np.ndarray:
    """The values of trees with themselves, large trees some at a time, for the same reason."""
    step = int(max(1, NODE_PAIRS_AT_ONCE * len(A) ** 2 // max(1, A.nodes.n_nodes**2)))
    parts = [values(A[start : start + step].nodes) for start in range(0, len(A), step)]
    return np.concatenate([np.zeros(0), *parts])


def _in_range(K: np.ndarray, work: Work) -> np.ndarray:
    """Values that fit the type of the result: fragments are exponentially many."""
    if len(K) and not np.abs(K).max() <= np.finfo(work.dtype).max:
        raise OverflowError(f"values of the kernel are too large for {np.dtype(work.dtype).name}: use a smaller decay")
    return K


def _readable(X: Any) -> list[Any]:
    """Trees as the compiled reader takes them: strings, and other forms flattened."""
    return [str(x) if isinstance(x, str) else _flat(x, i) for i, x in enumerate(X)]


def _flat(tree: Any, number: int) -> tuple[list[str], list[int], list[bool]]:
    """Names, parents and which nodes are words; a node before its children, from left to right."""
    names: list[str] = []
    parents: list[int] = []
    words: list[bool] = []
    places: list[int] = []  # which child of its parent a node is
    todo: list[tuple[Any, int, int]] = [(tree, -1, 0)]
    while todo:
        item, parent, place = todo.pop()
        parents.append(parent)
        places.append(place)
        words.append(isinstance(item, str))
        if isinstance(item, str):
            names.append(item)
            continue
        at = len(names)
        label, children = _node(item, number, parents, places)
        names.append(label)
        todo.extend((children[k], at, k) for k in range(len(children) - 1, -1, -1))
    return names, parents, words


def _node(item: Any, number: int, parents: list[int], places: list[int]) -> tuple[str, Sequence[Any]]:
    """Label and children of a node; the last entries of ``parents`` and ``places`` say where it stands."""
    if isinstance(item, Tree):
        return item.label, item.children
    if not isinstance(item, (tuple, list)):
        raise ValueError(
            f"tree {number}{_path(parents, places)}: expected a tree in brackets, a tuple (label, child, …) or a Tree, "
            f"got {type(item).__name__}"
        )
    if not item or not isinstance(item[0], str):
        raise ValueError(f"tree {number}{_path(parents, places)}: a node is (label, child, …), and the label a string")
    if len(item) == 1:
        raise ValueError(
            f"tree {number}{_path(parents, places)}: the node {item[0]!r} has no children: a tree ends in words"
        )
    return item[0], item[1:]


def _path(parents: list[int], places: list[int]) -> str:
    """Where the last node stands: the numbers of the children that lead to it."""
    steps: list[int] = []
    at = len(parents) - 1
    while parents[at] >= 0:
        steps.append(places[at])
        at = parents[at]
    if not steps:
        return ""
    shown = [str(step) for step in reversed(steps)]
    if len(shown) > 10:
        shown = [*shown[:5], "…", *shown[-4:]]
    return ", child " + " of ".join(reversed(shown)) + " of the root"
