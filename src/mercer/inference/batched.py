"""Batched inference for many graphs with the same states at all nodes: choice of method, and its runs.

Training runs inference on the same graphs thousands of times with different potentials. So structures that depend only
on the edges (compiled factor graphs, junction trees, weights of spanning forests) are built once for each slice of a
batch and cached. The choice of a method (:func:`make_plan`) holds for all potentials, whereas
:func:`~mercer.inference.choose` uses the potentials of one graph. The methods are those of
:func:`~mercer.inference.infer`.

All graphs of a batch form one factor graph for methods that separate them again (messages, cuts, moves). Junction trees
process one graph at a time, because each graph needs its log Z.

For messages on trees, loopy and reweighted messages and mean field, log Z of each graph comes from its beliefs,

    log Z ≈ Σ ⟨θ, μ⟩ + Σ_v (1 − Σ_{e∋v} ρ_e) H(μ_v) + Σ_e ρ_e H(μ_e)

with ρ = 1 (exact on trees, Bethe's estimate elsewhere; mean field, whose μ_e are products) or the weights of spanning
forests (an upper bound).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer._threads import each
from mercer.exceptions import TreewidthError
from mercer.inference.cuts import is_submodular
from mercer.inference.graph import CompiledGraph, FactorGraph
from mercer.inference.messages import appearance_probabilities
from mercer.inference.registry import METHODS

INFERENCE = ("auto", "exact", "bp", "trw", "mean-field", "cuts", "expansion", "swap", "lp", "dual", "icm")
# Sums and maxima of each; "trw" stands in for sums where a method only maximises.
_PAIRS = {
    "bp": ("bp", "max-product"), "trw": ("trw", "trw"), "mean-field": ("mean-field", "mean-field"),
    "cuts": ("trw", "cuts"), "expansion": ("trw", "expansion"), "swap": ("trw", "swap"), "lp": ("trw", "lp"),
    "dual": ("trw", "dual"), "icm": ("trw", "icm"),
}  # fmt: skip
AUTO_ENTRIES = float(1 << 19)  # of the tables of one graph, for "auto" to take trees of cliques
AUTO_TOTAL = float(1 << 25)  # of all graphs
MESSAGE_TOL = 1e-5  # change of messages that counts as settled,
TRAINING_TOL = 1e-4  # and in training, whose objective is level at settled messages: an error of their square
MESSAGE_SWEEPS, MESSAGE_DAMPING = 300, 0.1
EXACT_ENTRIES = float(1 << 26)  # of one graph, when "exact" was asked for


class GraphBatch:
    """The nodes and edges of a slice of graphs with the same labels for all nodes, ready for inference."""

    def __init__(
        self,
        n_labels: int,
        offsets: np.ndarray,
        edges: np.ndarray,
        edge_offsets: np.ndarray,
        root: BatchRoot,
        first: int,
    ) -> None:
        self.n_labels, self.root, self.first = n_labels, root, first
        self.offsets, self.edge_offsets = offsets - offsets[0], edge_offsets - edge_offsets[0]
        self.edges = edges - offsets[0]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Return the number of nodes of all graphs."""
        return int(self.offsets[-1])

    @cached_property
    def compiled(self) -> CompiledGraph:
        """Return all graphs as one factor graph without potentials."""
        n, L, m = self.n_nodes, self.n_labels, len(self.edges)
        if not m:
            return FactorGraph(np.full(n, L, np.int32)).compiled
        return FactorGraph(np.full(n, L, np.int32), edges=self.edges, pairwise=np.zeros((m, L, L)), log=True).compiled

    @cached_property
    def forest_weights(self) -> np.ndarray:
        """Return ρ of tree-reweighted messages; it is fixed, so that the bound is a convex function of the weights."""
        return appearance_probabilities(self.compiled, random_state=0)

    @cached_property
    def graph_of_node(self) -> np.ndarray:
        """Return the graph number of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def graph_of_edge(self) -> np.ndarray:
        """Return the graph number of each edge."""
        return np.repeat(np.arange(len(self)), np.diff(self.edge_offsets))

    def part(self, i: int) -> GraphBatch:
        """Return one of the graphs."""
        return self if len(self) == 1 else self.root.batch(self.n_labels, self.first + i, self.first + i + 1)

    def clique_tree(self, limit: float) -> Any | None:
        """Return the junction tree of a single graph, or None if its tables exceed the limit."""
        tree = self.__dict__.get("_tree")
        if tree is None:
            tree = self.__dict__["_tree"] = _core.inference.CliqueTree(self.compiled.core, "auto", float(limit), True)
        return tree if tree.fits and tree.size <= limit else None


class BatchRoot:
    """All graphs, the cached batches of slices, and the plan for all of them."""

    def __init__(self, offsets: np.ndarray, edges: np.ndarray, edge_offsets: np.ndarray) -> None:
        self.offsets, self.edges, self.edge_offsets = offsets, edges, edge_offsets
        self.plans: dict[Any, Any] = {}
        self._made: dict[tuple[int, int, int], GraphBatch] = {}
        self._alone: BatchRoot | None = None

    def batch(self, n_labels: int, start: int, stop: int) -> GraphBatch:
        """Return the batch of the graphs from ``start`` to ``stop`` − 1."""
        key = (n_labels, start, stop)
        if key not in self._made:
            edges = self.edges[self.edge_offsets[start] : self.edge_offsets[stop]]
            self._made[key] = GraphBatch(
                n_labels, self.offsets[start : stop + 1], edges, self.edge_offsets[start : stop + 1], self, start
            )
        return self._made[key]

    @property
    def alone(self) -> BatchRoot:
        """Return the same nodes without edges."""
        if self._alone is None:
            self._alone = BatchRoot(self.offsets, np.zeros((0, 2), np.int64), np.zeros_like(self.offsets))
        return self._alone

    def __deepcopy__(self, memo: Any) -> BatchRoot:
        return self  # what is kept here does not change

    def __reduce__(self) -> Any:
        return BatchRoot, (self.offsets, self.edges, self.edge_offsets)


@dataclass(frozen=True)
class Plan:
    """Methods for sums and for maxima, whether they are exact, and why they were chosen."""

    sums: str
    maxima: str
    exact_sums: bool
    exact_maxima: bool
    reason: str
    limit: float = EXACT_ENTRIES

    def __str__(self) -> str:
        def named(method: str, exact: bool) -> str:
            return f"{method} ({'exact' if exact else 'approximate'})"

        return (
            f"sums: {named(self.sums, self.exact_sums)}, best: {named(self.maxima, self.exact_maxima)}: {self.reason}"
        )


def make_plan(whole: GraphBatch, inference: str, attractive: bool) -> Plan:
    """Return the methods of inference for these graphs, for any weights."""
    L = whole.n_labels
    if inference in _PAIRS:
        sums, maxima = _PAIRS[inference]
        return Plan(sums, maxima, False, inference == "cuts", f"inference={inference!r} was requested")
    if whole.compiled.is_forest:
        return Plan("tree", "tree", True, True, "the graphs have no cycles")
    if inference == "exact":
        _check_widths(whole)
        return Plan("junction-tree", "junction-tree", True, True, "inference='exact' was requested")
    narrow = _narrow(whole)
    if L == 2 and attractive:
        reason = "two labels that attract: minimum cuts are exact"
        if narrow:
            return Plan("junction-tree", "cuts", True, True, reason, AUTO_ENTRIES)
        return Plan("trw", "cuts", False, True, reason + "; cliques are too large for exact sums")
    if narrow:
        return Plan("junction-tree", "junction-tree", True, True, "the cliques are small", AUTO_ENTRIES)
    if L == 2:
        return Plan("trw", "cuts or dual", False, False, "the graphs have cycles and large cliques; two labels")
    maxima = "expansion" if attractive else "dual"
    return Plan("trw", maxima, False, False, "the graphs have cycles and large cliques")


def _narrow(whole: GraphBatch) -> bool:
    total = 0.0
    for i in range(len(whole)):
        tree = whole.part(i).clique_tree(AUTO_ENTRIES)
        if tree is None:
            return False
        total += tree.size
        if total > AUTO_TOTAL:
            return False
    return True


def _check_widths(whole: GraphBatch) -> None:
    for i in range(len(whole)):
        if whole.part(i).clique_tree(EXACT_ENTRIES) is None:
            raise TreewidthError(
                f"graph {i}: exact inference needs tables of more than {EXACT_ENTRIES:.2g} entries; use "
                "inference='auto', 'trw' or 'bp'"
            )


# ---------------------------------------------------------------------------------------------- runs


def sums(
    batch: GraphBatch,
    plan: Plan,
    nodes: np.ndarray,
    edges: np.ndarray,
    threads: int,
    memory: dict[GraphBatch, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return μ of nodes and edges, log Z of each graph, and the last change of the messages (0: converged).

    ``memory`` stores the final messages as the start of the next run on the same graphs.
    """
    if plan.sums == "junction-tree":
        return *_clique_sums(batch, plan, nodes, edges, threads), 0.0
    rho, change = None, 0.0
    graph = batch.compiled
    if plan.sums == "mean-field":
        outcome = _quiet("mean-field", graph.with_potentials(nodes.ravel(), edges.ravel()), "marginals")
        mu, joint = outcome.marginals, outcome.factor_beliefs()
        change = 0.0 if outcome.converged else outcome.residual
    else:
        core = graph.core.with_potentials(nodes.ravel(), edges.ravel(), 0.0)
        if plan.sums == "tree":
            messages = _core.inference.tree_messages(core, False)
        else:
            rho = batch.forest_weights if plan.sums == "trw" else None
            messages = _settled(core, rho, batch, memory)
        _check_possible(messages)
        mu, joint = messages[0], _core.inference.joint_beliefs(core, messages[5], rho)
        change = 0.0 if messages[3] else float(messages[4][-1])
    mu, joint = mu.reshape(nodes.shape), joint.reshape(edges.shape)
    return mu, joint, free_energy(batch, nodes, edges, mu, joint, rho), change


def _settled(core: Any, rho: np.ndarray | None, batch: GraphBatch, memory: dict[GraphBatch, np.ndarray] | None) -> Any:
    """Loopy or reweighted messages, from those of the last run if it left some."""
    start, tol = (None, MESSAGE_TOL) if memory is None else (memory.get(batch), TRAINING_TOL)
    messages = _core.inference.loopy_messages(
        core, False, "alternating", MESSAGE_SWEEPS, tol, MESSAGE_DAMPING, 0, rho, start
    )
    if memory is not None and messages is not None and np.isfinite(messages[5]).all():
        memory[batch] = np.minimum(messages[5], 0.0)
    return messages


def free_energy(
    batch: GraphBatch, nodes: np.ndarray, edges: np.ndarray, mu: np.ndarray, joint: np.ndarray, rho: np.ndarray | None
) -> np.ndarray:
    """Return log Z of each graph from its beliefs (see the module docstring)."""
    rho = np.ones(len(edges)) if rho is None else rho
    covered = np.bincount(batch.edges.ravel(), np.repeat(rho, 2), len(nodes))
    node = expected(mu, nodes).sum(axis=1) + (1.0 - covered) * _entropies(mu).sum(axis=1)
    edge = expected(joint, edges).sum(axis=(1, 2)) + rho * _entropies(joint).sum(axis=(1, 2))
    return per_graph(batch, node, edge)


def per_graph(batch: GraphBatch, node: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """Return sums of node and edge values for each graph."""
    g = len(batch)
    return np.bincount(batch.graph_of_node, node, g) + np.bincount(batch.graph_of_edge, edge, g)


def expected(mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # 0 · −inf: a part that never occurs
        return np.where(mu > 0, mu * theta, 0.0)


def _entropies(mu: np.ndarray) -> np.ndarray:
    return -mu * np.log(np.where(mu > 0, mu, 1.0))


def _clique_sums(
    batch: GraphBatch, plan: Plan, nodes: np.ndarray, edges: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mu, joint, totals = np.empty_like(nodes), np.empty_like(edges), np.zeros(len(batch))

    def one(i: int) -> None:
        core, tree, v, e = _single(batch, plan, nodes, edges, i)
        if core is None:
            return
        beliefs, flat, totals[i] = tree.sum(core)
        if np.isneginf(totals[i]):
            _check_possible(None)
        mu[v] = flat.reshape(-1, nodes.shape[1])
        joint[e] = tree.factor_beliefs(beliefs).reshape(-1, *edges.shape[1:])

    each(one, range(len(batch)), threads)
    return mu, joint, totals


def _single(
    batch: GraphBatch, plan: Plan, nodes: np.ndarray, edges: np.ndarray, i: int
) -> tuple[Any, Any, slice, slice]:
    """Potentials and clique tree of one graph, and where its nodes and edges are; None if it has no nodes."""
    v, e = slice(*batch.offsets[i : i + 2].tolist()), slice(*batch.edge_offsets[i : i + 2].tolist())
    if v.start == v.stop:
        return None, None, v, e
    part = batch.part(i)
    tree = part.clique_tree(plan.limit)
    if tree is None:
        raise TreewidthError(
            f"graph {i} of the batch is too wide for exact inference; use inference='auto', 'trw' or 'bp'"
        )
    core = part.compiled.core.with_potentials(
        np.ascontiguousarray(nodes[v]).ravel(), np.ascontiguousarray(edges[e]).ravel(), 0.0
    )
    return core, tree, v, e


def maxima(
    batch: GraphBatch, plan: Plan, nodes: np.ndarray, edges: np.ndarray, threads: int, worst: bool = False
) -> np.ndarray:
    """Return the best labels found, of all nodes. ``worst``: scores are negated, so labels no longer attract."""
    method = plan.maxima
    if worst and method in ("cuts", "expansion", "swap", "cuts or dual"):
        method = "junction-tree" if plan.sums == "junction-tree" else "dual"
    if method == "junction-tree":
        return best_of_cliques(batch, plan, nodes, edges, 1, threads)[0][0]
    if method == "lp":
        return _by_graph(batch, nodes, edges, threads, lambda graph: _quiet("lp", graph, "map").states)
    graph = batch.compiled.with_potentials(nodes.ravel(), edges.ravel())
    if method == "tree":
        messages = _core.inference.tree_messages(graph.core, True)
        _check_possible(messages)
        return messages[2]
    if method == "cuts or dual":
        method = "cuts" if is_submodular(graph) else "dual"
    options: dict[str, Any] = {}
    if method == "trw":
        options["appearance"] = batch.forest_weights
    elif method == "dual":
        options.update(max_iter=200, tol=1e-5)
    if method in ("cuts", "expansion", "swap"):
        try:
            return _quiet(method, graph, "map").states
        except ValueError as error:
            why = str(error).split("; use ")[0]
            raise ValueError(
                f"{why}. With edge_weights='attractive' cuts (two labels), expansion and swap moves take all weights; "
                "else let inference be 'auto', 'dual' or 'trw'"
            ) from None
    outcome = _quiet(method, graph, "map", **options)
    states = outcome.states
    if states is None:  # mean field: each node's most probable label
        states = outcome.marginals.reshape(nodes.shape).argmax(axis=1).astype(np.int32)
    return _polished(graph, states)


def _polished(graph: CompiledGraph, states: np.ndarray) -> np.ndarray:
    """Conditional modes from what was found: never worse, and rid of ties that were read off node by node."""
    states_of_icm, scores, _ = _core.inference.icm(graph.core, np.ascontiguousarray(states, np.int32), 100)
    return states_of_icm if scores[-1] >= graph.score(states) else states


def _by_graph(
    batch: GraphBatch, nodes: np.ndarray, edges: np.ndarray, threads: int, run: Callable[[CompiledGraph], Any]
) -> np.ndarray:
    out = np.empty(len(nodes), np.int32)

    def one(i: int) -> None:
        v, e = slice(*batch.offsets[i : i + 2].tolist()), slice(*batch.edge_offsets[i : i + 2].tolist())
        if v.start < v.stop:
            out[v] = run(batch.part(i).compiled.with_potentials(nodes[v].ravel(), edges[e].ravel()))

    each(one, range(len(batch)), threads)
    return out


def best_of_cliques(
    batch: GraphBatch, plan: Plan, nodes: np.ndarray, edges: np.ndarray, k: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each graph, (k, nodes), −1 if there are fewer, and which exist (graphs, k)."""
    labels, there = np.full((k, len(nodes)), -1, np.int32), np.zeros((len(batch), k), bool)

    def one(i: int) -> None:
        core, tree, v, _ = _single(batch, plan, nodes, edges, i)
        if core is None:
            there[i, 0] = True
            return
        states = tree.max(core, k)[0].reshape(-1, v.stop - v.start)
        if not len(states):
            _check_possible(None)
        labels[: len(states), v], there[i, : len(states)] = states, True

    each(one, range(len(batch)), threads)
    return labels, there


def samples(batch: GraphBatch, plan: Plan, nodes: np.ndarray, edges: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return labels drawn from p(y): exact if cliques are small, else by Gibbs sampling."""
    seeds = np.random.SeedSequence(seed).generate_state(len(batch) + 1, np.uint64) >> np.uint64(1)
    out = np.empty((size, len(nodes)), np.int32)
    if plan.exact_sums:
        for i in range(len(batch)):
            core, tree, v, _ = _single(batch, plan, nodes, edges, i)
            if core is not None:
                drawn, total = tree.sample(core, size, int(seeds[i]))
                if np.isneginf(total):
                    _check_possible(None)
                out[:, v] = drawn.reshape(size, -1)
        return out
    if not len(nodes):
        return out
    graph = batch.compiled.with_potentials(nodes.ravel(), edges.ravel())
    outcome = _quiet(
        "gibbs", graph, "marginals", n_samples=size, burn_in=500, thin=20, n_chains=1, start="unary",
        keep_samples=True, random_state=int(seeds[-1]),
    )  # fmt: skip
    return outcome.samples.reshape(size, -1)


def _quiet(method: str, graph: CompiledGraph, task: str, **options: Any) -> Any:
    """A run whose warnings are counted by the caller instead of shown at every step of a training."""
    entry = METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return entry.run(graph, task if task in entry.tasks else entry.tasks[0], **options)


def _check_possible(messages: Any) -> None:
    if messages is None:
        raise ValueError("the allowed labels leave no labelling of a graph")
