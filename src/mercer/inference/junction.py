"""Junction trees: exact inference over cliques of a triangulated graph.

    p(x) = Π_C p(x_C) / Π_S p(x_S)

Five steps: moralise (a factor's variables become neighbours), insert evidence, triangulate, link the maximal cliques to
a tree with the running intersection property, send messages to the root and back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, hyphenated
from mercer.exceptions import ZeroProbabilityError
from mercer.inference.elimination import too_large, variable_elimination
from mercer.inference.factor import Factor
from mercer.inference.graph import CompiledGraph, FactorGraph, ObservedGraph, PossibleGraph
from mercer.inference.limits import Cost, Limits, readable
from mercer.inference.registry import _factor_graph, _impossible, register
from mercer.inference.result import Outcome, _Whole

__all__ = ["JunctionTree", "has_running_intersection", "maximum_spanning_tree", "triangulate"]

HEURISTICS = ("auto", "min-fill", "min-degree", "min-weight", "weighted-min-fill")
MOST_CONDITIONED = 40  # variables
CASE_OPERATIONS = 4e6  # of putting one assignment of a cutset in, before any table is made
KEPT_BYTES = 1 << 26  # beliefs of cliques that a result keeps for marginals of factors; larger ones are computed again


@dataclass(frozen=True)
class Plan:
    """The plan of a junction tree: the tree, and the variables to condition on so that it fits into memory."""

    tree: Any
    cost: Cost
    fits: bool
    cutset: tuple[int, ...] = ()


def _tree_of(graph: CompiledGraph, heuristic: str, limits: Limits) -> Any:
    """The tree of a graph, kept for the next call with the same limits."""
    heuristic = check_choice("heuristic", hyphenated(heuristic), HEURISTICS)
    key = "cliques", heuristic, limits
    tree = graph.cache.get(key)
    if tree is None:
        # Tables with more entries than there may be operations are out of reach whatever is conditioned on.
        most = limits.max_operations
        tree = graph.cache[key] = _core.inference.CliqueTree(graph.core, heuristic, most, True)
    return tree


def _cost(tree: Any) -> Cost:
    return Cost(float(tree.bytes), float(tree.operations), int(tree.most_variables), bool(tree.complete))


def make_plan(graph: CompiledGraph, limits: Limits, heuristic: str = "auto", conditioning: bool = True) -> Plan:
    """Return the plan of a junction tree, and whether it is within the limits, without allocating tables.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, Limits, grid_edges
    >>> from mercer.inference.junction import make_plan
    >>> grid = FactorGraph([2] * 100, edges=grid_edges((10, 10)), pairwise=[[2, 1], [1, 2]]).compiled
    >>> make_plan(grid, Limits()).cutset, len(make_plan(grid, Limits(max_bytes=40_000)).cutset) > 0
    ((), True)
    """
    tree = _tree_of(graph, heuristic, limits)
    cost = _cost(tree)
    if not tree.fits or limits.allow(cost.bytes, cost.operations) or not conditioning:
        return Plan(tree, cost, bool(tree.fits) and limits.allow(cost.bytes, cost.operations))
    if cost.operations > limits.max_operations:
        return Plan(tree, cost, False)
    key = "cutset", hyphenated(heuristic), limits
    if key not in graph.cache:
        graph.cache[key] = _find_cutset(graph, tree, limits, heuristic)
    cutset, inner = graph.cache[key]
    runs = float(np.prod(graph.cardinalities[list(cutset)], dtype=np.float64))
    cost = Cost(inner.bytes, runs * (CASE_OPERATIONS + inner.operations), inner.variables, inner.complete)
    return Plan(tree, cost, limits.allow(cost.bytes, cost.operations), cutset)


def _find_cutset(graph: CompiledGraph, tree: Any, limits: Limits, heuristic: str) -> tuple[tuple[int, ...], Cost]:
    """Variables that shrink the tables the most for each run that they add, until the tables fit."""
    chosen: list[int] = []
    names, cost = np.arange(graph.n_variables), _cost(tree)
    runs = 1.0
    while cost.bytes > limits.max_bytes and len(chosen) < MOST_CONDITIONED and len(names):
        starts, variables, _, _ = tree.cliques()
        cards = graph.cardinalities[names].astype(float)
        entries = np.exp(np.add.reduceat(np.log(cards)[variables], starts[:-1]))
        saved = np.bincount(variables, np.repeat(entries, np.diff(starts)), len(names)) * (1.0 - 1.0 / cards)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(cards > 1, -np.log1p(-saved / entries.sum()) / np.log(cards), -1.0)
        chosen.append(int(names[int(gain.argmax())]))
        runs *= float(graph.cardinalities[chosen[-1]])
        if runs * CASE_OPERATIONS > limits.max_operations:
            break
        observed = np.full(graph.n_variables, -1, np.int32)
        observed[chosen] = 0
        left = ObservedGraph(graph, observed)
        names = left.kept
        tree = _tree_of(left.compiled, heuristic, limits)
        cost = _cost(tree)
    return tuple(chosen), cost


class JunctionTree:
    """A tree of cliques for a model: marginals, log Z, the k best assignments, exact samples.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
    evidence : mapping or array, optional
        As for `infer`; observed variables are not in the tree.
    heuristic : {"auto", "min-fill", "min-degree", "min-weight", "weighted-min-fill"}, default="auto"
        Rule for the next variable to eliminate: fewest missing edges between its neighbours, fewest neighbours,
        smallest table, or smallest weight of the missing edges (product of the numbers of states at their ends). "auto"
        tries all four, then some with noise, and keeps the order with the smallest tables; the search takes longer for
        larger tables.
    max_bytes, max_operations : float, optional
        Limits as for `infer`. A model that needs more raises `TreewidthError` with the required amount.

    Attributes
    ----------
    cliques : list of tuples
        Variables of each clique.
    edges : list of (int, int)
        Linked pairs of cliques: a spanning tree (for each component of the graph) of maximum total separator size.
    separators : list of tuples
        Variables that the two cliques of each edge share.
    width : int
        Number of variables of the largest clique minus 1.
    size : int
        Number of entries of all tables.

    References
    ----------
    .. [Lauritzen1988] S. Lauritzen and D. Spiegelhalter. Local computations with probabilities on graphical structures
       and their application to expert systems. Journal of the Royal Statistical Society B 50, 1988.

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

    def __init__(
        self,
        model: Any,
        *,
        evidence: Any = None,
        heuristic: str = "auto",
        max_bytes: float | None = None,
        max_operations: float | None = None,
    ) -> None:
        self._model, self._whole = model, _Whole.of(_factor_graph(model), evidence)
        self._graph = self._whole.compiled
        limits = Limits(max_bytes, max_operations)
        plan = make_plan(self._graph, limits, heuristic, conditioning=False)
        if not plan.fits:
            raise too_large("the junction tree", plan.cost, limits)
        self._tree = plan.tree
        starts, variables, separators, parents = self._tree.cliques()
        self._members = [variables[a:b].tolist() for a, b in pairwise(starts)]
        self.cliques: list[tuple[Hashable, ...]] = [tuple(map(self._whole.name, members)) for members in self._members]
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
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.left.observed))
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
        """Return p(variables | evidence); by variable elimination if no clique holds them all."""
        if isinstance(variables, str):
            raise ValueError(f"variables must be a collection of names, got the string {variables!r}")
        names = list(variables)
        whole = self._whole.graph
        numbers = {whole.number(v) for v in names}
        named = [whole.name(whole.number(v)) for v in names]
        for c, members in enumerate(self._members):
            if numbers <= {int(self._whole.left.kept[i]) for i in members}:
                joint = self._clique_marginal(c)
                return joint.sum_out([v for v in joint.variables if v not in named]).transposed(named)
        return variable_elimination(self._model, names, evidence=self._whole.left.observed)

    def _clique_marginal(self, c: int) -> Factor:
        table = self._sums[0][self._starts[c] : self._starts[c + 1]].reshape(self._shape(self._members[c]))
        return Factor(self.cliques[c], table)

    # ------------------------------------------------------------------ maxima and samples

    def k_best(self, k: int = 1) -> list[tuple[Any, float]]:
        """Return the k most probable assignments with the sums of their log-potentials, best first.

        There are fewer if the model has fewer. Each is {name: state}, or an array without names.
        """
        check_count("k", k)
        from mercer.inference.result import InferenceResult

        result = InferenceResult(self._whole, "map", lambda task: self._best(k))
        return result.k_best

    def map(self) -> tuple[Any, float]:
        """Return the most probable assignment and the sum of its log-potentials."""
        return self.k_best(1)[0]

    def _best(self, k: int) -> Outcome:
        outcome = _maxima(self._graph, self._tree, k)
        if outcome is None:
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.left.observed))
        return outcome

    def sample(self, n_samples: int, *, random_state: Any = None) -> np.ndarray:
        """Draw independent assignments from p(x | evidence): indices of states (n_samples × variables)."""
        check_count("n_samples", n_samples, 0)
        seed = int(np.random.default_rng(random_state).integers(1 << 63))
        drawn, total = self._tree.sample(self._graph.core, n_samples, seed)
        if np.isneginf(total):
            raise ZeroProbabilityError(_impossible(self._whole.graph, self._whole.left.observed))
        return self._whole.states(drawn.reshape(n_samples, -1))

    @property
    def elimination(self) -> list[tuple[Hashable, tuple[Hashable, ...]]]:
        """Return the variables in elimination order, each with its neighbours at that step."""
        order, starts, later = self._tree.elimination()
        name = self._whole.name
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


def _run(
    graph: CompiledGraph,
    task: str,
    *,
    heuristic: str = "auto",
    max_bytes: float | None = None,
    max_operations: float | None = None,
    k: int = 1,
) -> Outcome:
    check_count("k", k)
    limits = Limits(max_bytes, max_operations)
    possible = graph.possible
    if possible is None:
        return _answer(graph, task, heuristic, limits, k)
    if possible.compiled is None:
        raise ZeroProbabilityError
    return _widened(possible, _answer(possible.compiled, task, heuristic, limits, k))


def _widened(possible: PossibleGraph, outcome: Outcome) -> Outcome:
    """The outcome for the whole graph from that for its possible states."""
    flat, beliefs = outcome.marginals, outcome.factor_beliefs
    if flat is not None and beliefs is not None:
        outcome.marginals = possible.marginals(flat)
        outcome.factor_beliefs = lambda: possible.joint(beliefs(), flat)
    if outcome.states is not None:
        outcome.states = possible.states(outcome.states)
    if outcome.best is not None:
        outcome.best = possible.states(outcome.best[0]), outcome.best[1]
    return outcome


def _answer(graph: CompiledGraph, task: str, heuristic: str, limits: Limits, k: int) -> Outcome:
    plan = make_plan(graph, limits, heuristic)
    if not plan.fits:
        what = "the junction tree" if k == 1 else f"the junction tree, without which there are no {k} best assignments,"
        raise too_large(what, plan.cost, limits)
    if plan.cutset:
        outcome = _conditioned(graph, plan, task, k, heuristic, limits)
    else:
        outcome = _maxima(graph, plan.tree, k) if task == "map" else _sums(graph, plan)
    if outcome is None:
        raise ZeroProbabilityError
    outcome.extra.update(
        size=int(plan.tree.size), width=max(0, int(plan.tree.most_variables) - 1), bytes=int(plan.cost.bytes),
        operations=plan.cost.operations, conditioned=plan.cutset,
    )  # fmt: skip
    return outcome


def _sums(graph: CompiledGraph, plan: Plan) -> Outcome | None:
    beliefs, marginals, total = plan.tree.sum(graph.core)
    if np.isneginf(total):
        return None
    kept = beliefs if beliefs.nbytes <= KEPT_BYTES else None

    def joint() -> np.ndarray:
        return plan.tree.factor_beliefs(plan.tree.sum(graph.core)[0] if kept is None else kept)

    return Outcome(marginals=marginals, factor_beliefs=joint, log_partition=float(total))


# ---------------------------------------------------------------------------------------------- conditioning


def _cases(
    graph: CompiledGraph, plan: Plan, heuristic: str, limits: Limits
) -> Iterator[tuple[ObservedGraph, CompiledGraph, Any]]:
    """The graph with each assignment of the cutset put in, and the tree that all of them share."""
    first: CompiledGraph | None = None
    observed = np.full(graph.n_variables, -1, np.int32)
    for states in product(*(range(graph.cardinalities[v]) for v in plan.cutset)):
        observed[list(plan.cutset)] = states
        left = ObservedGraph(graph, observed.copy())
        made = left.compiled
        if first is None:
            first = made
        case = first.with_potentials(made.unary, made.tables, made.constant)
        if not np.isneginf(case.constant):
            yield left, case, _tree_of(first, heuristic, limits)


def _conditioned(graph: CompiledGraph, plan: Plan, task: str, k: int, heuristic: str, limits: Limits) -> Outcome | None:
    """Marginals p(x) = Σ_z p(z) p(x | z) over the states z of the cutset, or the best over all z."""

    def cases() -> Iterator[tuple[ObservedGraph, CompiledGraph, Any]]:
        return _cases(graph, plan, heuristic, limits)

    if task == "map":
        solutions = [_case_best(*case, k) for case in cases()]
        states = np.concatenate([np.zeros((0, graph.n_variables), np.int32), *solutions])
        if not len(states):
            return None
        values = graph.score(states)
        order = np.argsort(-values, kind="stable")[:k]
        best = states[order], values[order]
        return Outcome(states=best[0][0], value=float(best[1][0]), map_bound=float(best[1][0]), best=best)
    size = len(graph.unary)
    marginals, total = _mixture(cases(), size, lambda left, tree, beliefs, flat: left.marginals(flat))
    if marginals is None:
        return None

    def joint() -> np.ndarray:
        mixed, _ = _mixture(cases(), int(graph.belief_starts[-1]), _case_joint)
        assert mixed is not None
        return mixed

    return Outcome(marginals=marginals, factor_beliefs=joint, log_partition=total)


def _case_best(left: ObservedGraph, graph: CompiledGraph, tree: Any, k: int) -> np.ndarray:
    states, _ = tree.max(graph.core, k)
    if not graph.n_variables:
        return left.states(np.zeros((1, 0), np.int32))
    return left.states(states.reshape(-1, graph.n_variables))


def _case_joint(left: ObservedGraph, tree: Any, beliefs: np.ndarray, flat: np.ndarray) -> np.ndarray:
    return left.joint(tree.factor_beliefs(beliefs), flat)


def _mixture(
    cases: Iterator[tuple[ObservedGraph, CompiledGraph, Any]], size: int, vector: Callable[..., np.ndarray]
) -> tuple[np.ndarray | None, float]:
    """Σ_z p(z) vector(z) and log Z, where p(z) is in proportion to the sum of each case."""
    mixed, log_weight = np.zeros(size), -np.inf
    for left, graph, tree in cases:
        beliefs, flat, total = tree.sum(graph.core)
        if np.isneginf(total):
            continue
        both = np.logaddexp(log_weight, total)
        mixed = mixed * np.exp(log_weight - both) + vector(left, tree, beliefs, flat) * np.exp(total - both)
        log_weight = both
    return (None if np.isneginf(log_weight) else mixed), float(log_weight)


def _suits(graph: CompiledGraph, task: str, limits: Limits) -> str | None:
    possible = graph.possible
    if possible is not None and possible.compiled is None:
        return "no assignment is possible"
    plan = make_plan(graph if possible is None or possible.compiled is None else possible.compiled, limits)
    if not plan.fits:
        return None
    runs = f", conditioned on {len(plan.cutset)} variables" if plan.cutset else ""
    return f"the tables of its junction tree{runs} take {readable(plan.cost.bytes)}"


register("junction-tree", _run, exact=True, rank=30, suits=_suits)


# ---------------------------------------------------------------------------------------------- parts of the algorithm


def triangulate(
    edges: Iterable[Sequence[Hashable]],
    *,
    nodes: Iterable[Hashable] = (),
    cardinalities: Mapping[Any, int] | None = None,
    heuristic: str = "min-fill",
) -> tuple[list[tuple[Hashable, Hashable]], list[tuple[Hashable, ...]]]:
    """Add edges until every cycle of four or more nodes has a chord.

    Parameters
    ----------
    edges : iterable of pairs
    nodes : iterable of hashable
        Nodes, including isolated ones.
    cardinalities : mapping, optional
        Numbers of states of the nodes, which break ties; default 2 for all.
    heuristic : {"auto", "min-fill", "min-degree", "min-weight", "weighted-min-fill"}, default="min-fill"
        Rule for the next node to eliminate, as for `JunctionTree`.

    Returns
    -------
    chords : list of pairs
        The edges that were added.
    cliques : list of tuples
        Maximal cliques of the triangulated graph.

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
    rule = check_choice("heuristic", hyphenated(heuristic), HEURISTICS)
    tree = _core.inference.CliqueTree(graph.compiled.core, rule, 0.0, False)
    starts, variables, _, _ = tree.cliques()
    cliques = [tuple(graph.name(i) for i in sorted(variables[a:b])) for a, b in pairwise(starts)]
    have = {frozenset(edge) for edge in listed}
    chords: dict[tuple[Hashable, Hashable], None] = {}
    for clique in cliques:
        for i, a in enumerate(clique):
            chords.update(((a, b), None) for b in clique[i + 1 :] if frozenset((a, b)) not in have)
    return list(chords), cliques


def maximum_spanning_tree(cliques: Sequence[Iterable[Hashable]]) -> list[tuple[int, int]]:
    """Link cliques to a tree by Kruskal's algorithm, with the largest separators first.

    Pairs with empty separators are linked last, so the result is a single tree even if the graph is not connected.

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
    """Return whether the cliques of every variable are connected (the running intersection property).

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
