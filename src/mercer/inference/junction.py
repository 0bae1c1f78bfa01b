"""Junction trees: exact inference over cliques of a triangulated graph (spec 003 B4-B12).

    p(x) = Π_C p(x_C) / Π_S p(x_S)

Five steps: moralise (a factor's variables are neighbours), put evidence in, triangulate, link the maximal cliques to a
tree in which those that share a variable are connected, send messages to the root and back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count
from mercer.inference.elimination import MAX_SIZE, too_large, variable_elimination
from mercer.inference.factor import Factor
from mercer.inference.graph import CompiledGraph, FactorGraph
from mercer.inference.registry import _factor_graph, _impossible, register
from mercer.inference.result import Outcome, ZeroProbabilityError, _Whole

__all__ = ["JunctionTree", "has_running_intersection", "maximum_spanning_tree", "triangulate"]

HEURISTICS = ("auto", "min_fill", "min_degree")
AUTO_SIZE = 1 << 22  # entries that ``method="auto"`` regards as small


def _tree_of(
    graph: CompiledGraph,
    heuristic: str,
    max_size: int,
    stop_early: bool = False,
    what: str = "the junction tree",
) -> Any:
    """The tree of a graph, kept for the next call. ``stop_early`` gives up at ``max_size`` and raises nothing."""
    check_choice("heuristic", heuristic, HEURISTICS)
    check_count("max_size", max_size)
    if heuristic == "auto":
        heuristic = "min_fill" if graph.n_variables <= 2000 else "min_degree"
    kept = graph.cache.get(("cliques", heuristic))
    if kept is not None and kept.size <= max_size:
        return kept
    # Beyond this many variables the whole triangulation would take long only to say how large it is.
    tree = _core.CliqueTree(graph.core, heuristic, float(max_size), stop_early or graph.n_variables > 20_000)
    if not tree.fits and not stop_early:
        more = "" if tree.complete else ", and more (the search stopped there)"
        raise too_large(what, tree.size, tree.most_variables, max_size, more)
    if tree.fits:
        graph.cache["cliques", heuristic] = tree
    return tree


class JunctionTree:
    """A tree of cliques for a model: marginals, log Z, the k best assignments, exact samples.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
    evidence : mapping or array, optional
        As for `infer`; observed variables are not in the tree.
    heuristic : {"auto", "min_fill", "min_degree"}, default="auto"
        Which variable is eliminated next: the one whose neighbours miss the fewest edges, or the one with the fewest
        neighbours, which takes less time; "auto" takes the first for graphs of up to 2,000 variables.
    max_size : int, default=2**26
        Entries that all tables together may have. A model that needs more is refused with `TreewidthError`, which says
        how many.

    Attributes
    ----------
    cliques : list of tuples
        Variables of each clique.
    edges : list of (int, int)
        Pairs of cliques that are linked: a spanning tree (for each part of the graph) of greatest total separator size.
    separators : list of tuples
        Variables that the two cliques of each edge share.
    width : int
        Variables of the largest clique minus 1.
    size : int
        Entries of all tables.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import FactorGraph, JunctionTree
    >>> square = FactorGraph({v: 2 for v in "abcd"}, edges=["ab", "bc", "cd", "ad"], pairwise=[[2, 1], [1, 2]])
    >>> tree = JunctionTree(square)
    >>> [sorted(clique) for clique in tree.cliques], tree.width
    ([['a', 'b', 'd'], ['b', 'c', 'd']], 2)
    >>> round(float(np.exp(tree.log_partition)), 6)
    82.0
    >>> tree.marginal(["a", "c"]).table.round(3)
    array([[0.305, 0.195],
           [0.195, 0.305]])
    """

    def __init__(self, model: Any, *, evidence: Any = None, heuristic: str = "auto", max_size: int = MAX_SIZE) -> None:
        graph = _factor_graph(model)
        observed = graph.evidence(evidence)
        reduced, kept = graph.reduced(observed) if (observed >= 0).any() else (graph, np.arange(graph.n_variables))
        self._model, self._whole = model, _Whole(graph, observed, reduced, kept)
        self._graph = reduced.compiled
        self._tree = _tree_of(self._graph, heuristic, max_size)
        starts, variables, separators, parents = self._tree.cliques()
        self._members = [variables[a:b].tolist() for a, b in pairwise(starts)]
        self.cliques: list[tuple[Hashable, ...]] = [tuple(map(reduced.name, members)) for members in self._members]
        linked = [c for c, parent in enumerate(parents) if parent >= 0 and separators[c] > 0]
        self.edges: list[tuple[int, int]] = [(int(parents[c]), c) for c in linked]
        self.separators: list[tuple[Hashable, ...]] = [self.cliques[c][: separators[c]] for c in linked]
        self.width: int = max(map(len, self.cliques), default=0) - 1
        self.size: int = int(self._tree.size)
        self._starts = np.concatenate([[0], np.cumsum([self._shape(m).prod() for m in self._members])]).astype(np.int64)

    def _shape(self, members: list[int]) -> np.ndarray:
        return self._graph.cardinalities[members].astype(np.int64)

    def __repr__(self) -> str:
        return f"JunctionTree({len(self.cliques)} cliques, width {self.width}, {self.size} entries)"

    # ------------------------------------------------------------------ sums

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray, float]:
        beliefs, marginals, total = self._tree.sum(self._graph.core)
        if np.isneginf(total):
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.observed))
        return beliefs, marginals, float(total)

    @property
    def log_partition(self) -> float:
        """log Z with the evidence: of a Bayesian network, log p(evidence)."""
        return self._sums[2]

    @property
    def clique_marginals(self) -> list[Factor]:
        """p(x_C | evidence) of every clique."""
        return [self._clique_marginal(c) for c in range(len(self.cliques))]

    def marginal(self, variables: Iterable[Hashable]) -> Factor:
        """p(variables | evidence); by variable elimination if no clique holds them all."""
        if isinstance(variables, str):
            raise ValueError(f"variables must be a collection of names, got the string {variables!r}")
        names = list(variables)
        whole = self._whole.graph
        numbers = {whole.number(v) for v in names}
        named = [whole.name(whole.number(v)) for v in names]
        for c, members in enumerate(self._members):
            if numbers <= {int(self._whole.kept[i]) for i in members}:
                joint = self._clique_marginal(c)
                return joint.sum_out([v for v in joint.variables if v not in named]).transposed(named)
        return variable_elimination(self._model, names, evidence=self._whole.observed)

    def _clique_marginal(self, c: int) -> Factor:
        table = self._sums[0][self._starts[c] : self._starts[c + 1]].reshape(self._shape(self._members[c]))
        return Factor(self.cliques[c], table)

    # ------------------------------------------------------------------ maxima and samples

    def k_best(self, k: int = 1) -> list[tuple[Any, float]]:
        """The k most probable assignments with the sums of their log-potentials, best first.

        There are fewer if the model has not so many. Each is {name: state}, or an array where there are no names.
        """
        check_count("k", k)
        from mercer.inference.result import InferenceResult

        result = InferenceResult(self._whole, "map", lambda task: self._best(k))
        return result.k_best

    def map(self) -> tuple[Any, float]:
        """The most probable assignment and the sum of its log-potentials."""
        return self.k_best(1)[0]

    def _best(self, k: int) -> Outcome:
        outcome = _maxima(self._graph, self._tree, k)
        if outcome is None:
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.observed))
        return outcome

    def sample(self, n_samples: int, *, random_state: Any = None) -> np.ndarray:
        """Independent assignments from p(x | evidence): numbers of states (n_samples × variables of the model)."""
        check_count("n_samples", n_samples, 0)
        seed = int(np.random.default_rng(random_state).integers(1 << 63))
        drawn, total = self._tree.sample(self._graph.core, n_samples, seed)
        if np.isneginf(total):
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.observed))
        return self._whole.states(drawn.reshape(n_samples, -1))

    @property
    def elimination(self) -> list[tuple[Hashable, tuple[Hashable, ...]]]:
        """Variables in the order in which they are eliminated, each with its neighbours at that moment."""
        order, starts, later = self._tree.elimination()
        name = self._whole.reduced.name
        return [(name(v), tuple(name(u) for u in later[starts[t] : starts[t + 1]])) for t, v in enumerate(order)]


def _maxima(graph: CompiledGraph, tree: Any, k: int) -> Outcome | None:
    states, _ = tree.max(graph.core, k)
    if not graph.n_variables:
        return Outcome(states=np.zeros(0, np.int32), value=graph.constant, map_bound=graph.constant)
    if not len(states):
        return None
    states = states.reshape(-1, graph.n_variables)
    values = graph.score(states)
    return Outcome(states=states[0], value=float(values[0]), map_bound=float(values[0]), best=(states, values))


def _run(graph: CompiledGraph, task: str, *, heuristic: str = "auto", max_size: int = MAX_SIZE, k: int = 1) -> Outcome:
    check_count("k", k)
    what = "the junction tree" if k == 1 else f"the junction tree, without which there are no {k} best assignments,"
    tree = _tree_of(graph, heuristic, max_size, what=what)
    extra = {"size": int(tree.size), "width": max(0, int(tree.most_variables) - 1)}
    if task == "map":
        outcome = _maxima(graph, tree, k)
        if outcome is None:
            raise ZeroProbabilityError
        outcome.extra.update(extra)
        return outcome
    beliefs, marginals, total = tree.sum(graph.core)
    if np.isneginf(total):
        raise ZeroProbabilityError
    return Outcome(
        marginals=marginals,
        factor_beliefs=lambda: tree.factor_beliefs(beliefs),
        log_partition=float(total),
        extra=extra,
    )


def _suits(graph: CompiledGraph, task: str) -> str | None:
    if graph.cache.get("too wide"):
        return None
    tree = _tree_of(graph, "auto", AUTO_SIZE, stop_early=True)
    graph.cache["too wide"] = not tree.fits
    return f"its junction tree has only {int(tree.size)} entries" if tree.fits else None


register("junction_tree", _run, exact=True, rank=30, suits=_suits)


# ---------------------------------------------------------------------------------------------- parts of the algorithm


def triangulate(
    edges: Iterable[Sequence[Hashable]],
    *,
    nodes: Iterable[Hashable] = (),
    cardinalities: Mapping[Any, int] | None = None,
    heuristic: str = "min_fill",
) -> tuple[list[tuple[Hashable, Hashable]], list[tuple[Hashable, ...]]]:
    """Adds edges until no cycle of four nodes or more is without a chord.

    Parameters
    ----------
    edges : iterable of pairs
    nodes : iterable of hashable
        Nodes that may have no edges.
    cardinalities : mapping, optional
        Numbers of states of the nodes, which break ties; default 2 for all.
    heuristic : {"min_fill", "min_degree"}, default="min_fill"
        Which node is eliminated next: the one whose neighbours miss the fewest edges, or with the fewest neighbours.

    Returns
    -------
    chords : list of pairs
        The edges that were added.
    cliques : list of tuples
        Maximal cliques of the graph with them.

    Examples
    --------
    >>> from mercer.inference import triangulate
    >>> chords, cliques = triangulate(["ab", "bc", "cd", "da"])
    >>> len(chords), sorted("".join(sorted(clique)) for clique in cliques)
    (1, ['abd', 'bcd'])
    """
    listed = [tuple(edge) for edge in edges]
    if any(len(edge) != 2 or edge[0] == edge[1] for edge in listed):
        raise ValueError("edges must be pairs of different nodes")
    names = list(dict.fromkeys([*nodes, *(v for edge in listed for v in edge)]))
    cards = {name: 2 if cardinalities is None else cardinalities.get(name, 2) for name in names}
    graph = FactorGraph(cards)
    for edge in listed:
        graph.add(Factor(edge, np.zeros((cards[edge[0]], cards[edge[1]])), log=True))
    tree = _core.CliqueTree(graph.compiled.core, check_choice("heuristic", heuristic, HEURISTICS[1:]), 0.0, False)
    starts, variables, _, _ = tree.cliques()
    cliques = [tuple(graph.name(i) for i in sorted(variables[a:b])) for a, b in pairwise(starts)]
    have = {frozenset(edge) for edge in listed}
    chords: dict[tuple[Hashable, Hashable], None] = {}
    for clique in cliques:
        for i, a in enumerate(clique):
            chords.update(((a, b), None) for b in clique[i + 1 :] if frozenset((a, b)) not in have)
    return list(chords), cliques


def maximum_spanning_tree(cliques: Sequence[Iterable[Hashable]]) -> list[tuple[int, int]]:
    """Links cliques to a tree by Kruskal's rule: always the pair with the largest separator that closes no loop.

    Pairs that share nothing are linked last, so the tree is one even if the graph is not connected.

    Examples
    --------
    >>> from mercer.inference import maximum_spanning_tree
    >>> maximum_spanning_tree(["ACD", "BDE", "CDF", "DEH", "DFGH", "FGHI"])
    [(4, 5), (0, 2), (1, 3), (2, 4), (3, 4)]
    """
    sets = [frozenset(clique) for clique in cliques]
    pairs = [(-len(a & sets[j]), i, j) for i, a in enumerate(sets) for j in range(i + 1, len(sets))]
    parent = list(range(len(sets)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    tree = []
    for _, i, j in sorted(pairs):
        if root(i) != root(j):
            parent[root(i)] = root(j)
            tree.append((i, j))
    return tree


def has_running_intersection(cliques: Sequence[Iterable[Hashable]], edges: Iterable[tuple[int, int]]) -> bool:
    """Whether the cliques that hold a variable are connected, for every variable: what makes a tree a junction tree.

    Examples
    --------
    >>> from mercer.inference import has_running_intersection
    >>> has_running_intersection(["ab", "bc", "cd"], [(0, 1), (1, 2)])
    True
    >>> has_running_intersection(["ab", "cd", "bc"], [(0, 1), (1, 2)])
    False
    """
    sets = [frozenset(clique) for clique in cliques]
    linked = [(i, j, sets[i] & sets[j]) for i, j in edges]
    # In a forest the cliques with a variable are connected if their links are one fewer than they are.
    holders: dict[Hashable, int] = {}
    links: dict[Hashable, int] = {}
    for members in sets:
        for v in members:
            holders[v] = holders.get(v, 0) + 1
    for _, _, shared in linked:
        for v in shared:
            links[v] = links.get(v, 0) + 1
    return all(links.get(v, 0) == count - 1 for v, count in holders.items())
