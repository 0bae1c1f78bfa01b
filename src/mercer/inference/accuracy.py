"""Errors of approximate results: guaranteed bounds, and estimates from exact inference in local regions.

A marginal is a mean of conditional probabilities given the states z of the neighbours,

    p(x_i) = Σ_z p(z) p(x_i | z)    ⇒    min_z p(x_i | z) ≤ p(x_i) ≤ max_z p(x_i | z)

and the extremes are bounded factor by factor (a first step of [Mooij2008]). If these bounds are loose, the marginals of
some variables are computed exactly within a region around each, with the approximate marginals at its border.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer import _core
from mercer.inference.graph import CompiledGraph, FactorGraph

if TYPE_CHECKING:
    from mercer.inference.result import Outcome

__all__ = ["map_gap", "marginal_bounds", "marginal_error"]

SHARP = 0.05  # a bound below this says enough: no estimate is made
CENTRES = 24  # variables whose neighbourhoods are looked at; all of them in small graphs
REGION = 60  # variables of a region
REGION_ENTRIES = float(1 << 16)  # of the tables of a region
DUAL_PASSES = 200


def marginal_bounds(graph: CompiledGraph) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of all marginals, in the order of ``graph.unary``.

    The bounds are guaranteed, take one pass over the tables, and are sharp if factors are weak.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer, marginal_bounds
    >>> graph = FactorGraph([2, 2], unary=[[1, 2], [1, 1]], edges=[[0, 1]], pairwise=[[1.2, 1.0], [1.0, 1.2]])
    >>> lower, upper = marginal_bounds(graph.compiled)
    >>> lower.round(3), infer(graph).marginals.flat.round(3), upper.round(3)
    (array([0.294, 0.625, 0.455, 0.455]), array([0.333, 0.667, 0.485, 0.515]), array([0.375, 0.706, 0.545, 0.545]))
    """
    lower, upper = np.zeros(len(graph.unary)), np.ones(len(graph.unary))
    cards = graph.cardinalities
    for card in np.unique(cards):
        variables = np.flatnonzero(cards == card)
        states = graph.state_starts[variables][:, None] + np.arange(card)
        odds = _differences(graph.unary[states])  # of log-potentials: [variable, b, a], at most
        place = np.full(graph.n_variables, -1)
        place[variables] = np.arange(len(variables))
        for group in graph.groups:
            starts, which = np.unique(group.table_starts, return_inverse=True)
            for axis in np.flatnonzero(np.array(group.shape) == card):
                tables = graph.tables[starts[:, None] + np.arange(group.size)].reshape(-1, *group.shape)
                most = _differences(np.moveaxis(tables, 1 + axis, 1).reshape(len(starts), card, -1))
                with np.errstate(invalid="ignore"):  # ∞ − ∞: one factor forbids a, another one b
                    np.add.at(odds, place[group.scopes[:, axis]], most[which])
        odds[np.isnan(odds)] = np.inf
        odds[:, np.arange(card), np.arange(card)] = 0.0
        with np.errstate(over="ignore", divide="ignore"):
            lower[states] = 1.0 / np.exp(odds).sum(axis=1)
            upper[states] = 1.0 / np.exp(-odds).sum(axis=2)
    return lower, np.minimum(upper, 1.0)


def _differences(tables: np.ndarray) -> np.ndarray:
    """max_z table[b, z] − table[a, z] for all pairs of states: (tables, b, a). z is left out where both are −∞."""
    flat = tables.reshape(*tables.shape[:2], -1)
    most = np.empty((len(flat), flat.shape[1], flat.shape[1]))
    with np.errstate(invalid="ignore"):
        for a in range(flat.shape[1]):
            gap = flat - flat[:, a : a + 1]
            most[:, :, a] = np.where(np.isnan(gap), -np.inf, gap).max(axis=2, initial=-np.inf)
    return most


def marginal_error(graph: CompiledGraph, marginals: np.ndarray | None) -> tuple[float, str]:
    """Return the largest error of approximate marginals: a bound if that is sharp, else an estimate."""
    if marginals is None or not graph.n_variables:
        return 0.0, "bound"
    lower, upper = marginal_bounds(graph)
    bound = float(np.maximum(upper - marginals, marginals - lower).max())
    if bound <= SHARP:
        return max(bound, 0.0), "bound"
    estimate = _local_error(graph, marginals)
    return (bound, "bound") if estimate > bound else (estimate, "estimate")


def map_gap(graph: CompiledGraph, outcome: Outcome) -> float:
    """Return an upper bound on the difference between the best score and that of an assignment."""
    if outcome.value is None or np.isneginf(outcome.value):
        return np.inf
    bound = outcome.map_bound
    if bound is None:
        bound = float(_core.inference.dual_ascent(graph.core, DUAL_PASSES, 1e-7)[1][-1])
    return max(0.0, bound - outcome.value)


# ---------------------------------------------------------------------------------------------- regions


def _local_error(graph: CompiledGraph, marginals: np.ndarray) -> float:
    """The largest difference between approximate marginals and exact ones within regions."""
    n = graph.n_variables
    factor_of = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_starts))
    by_variable = np.argsort(graph.scopes, kind="stable")
    starts = np.searchsorted(graph.scopes[by_variable], np.arange(n + 1))
    incident = factor_of[by_variable]
    random = np.random.default_rng(0)  # the same variables for equal graphs
    centres = np.arange(n) if n <= CENTRES else np.sort(random.choice(n, CENTRES, replace=False))
    worst = 0.0
    for centre in centres.tolist():
        region = _region(graph, centre, incident, starts)
        here = slice(*graph.state_starts[centre : centre + 2].tolist())
        while len(region) > 1:
            exact = _region_marginal(graph, region, marginals, incident, starts)
            if exact is not None:
                worst = max(worst, float(np.abs(exact - marginals[here]).max()))
                break
            region = region[: len(region) // 2]  # its tables are too large
    return worst


def _region(graph: CompiledGraph, centre: int, incident: np.ndarray, starts: np.ndarray) -> list[int]:
    """The variables nearest to one, itself first."""
    region = {centre: None}
    waiting = [centre]
    for v in waiting:
        for f in incident[starts[v] : starts[v + 1]].tolist():
            for u in graph.scopes[graph.scope_starts[f] : graph.scope_starts[f + 1]].tolist():
                if u not in region:
                    if len(region) == REGION:
                        return list(region)
                    region[u] = None
                    waiting.append(u)
    return list(region)


def _region_marginal(
    graph: CompiledGraph, region: list[int], marginals: np.ndarray, incident: np.ndarray, starts: np.ndarray
) -> np.ndarray | None:
    """Exact probabilities of the first variable of a region, or None if its tables are too large."""
    place = {v: i for i, v in enumerate(region)}
    small = FactorGraph(graph.cardinalities[region])
    for i, v in enumerate(region):
        unary = graph.unary[graph.state_starts[v] : graph.state_starts[v + 1]]
        small.add_factors([[i]], unary[None], log=True)
    for f in sorted({f for v in region for f in incident[starts[v] : starts[v + 1]].tolist()}):
        scope = graph.scopes[graph.scope_starts[f] : graph.scope_starts[f + 1]].tolist()
        table = graph.table(f)
        for axis in reversed(range(len(scope))):
            if scope[axis] not in place:
                weights = marginals[graph.state_starts[scope[axis]] : graph.state_starts[scope[axis] + 1]]
                top = table.max()
                with np.errstate(divide="ignore", invalid="ignore"):
                    table = np.log(np.tensordot(np.exp(table - top), weights, ([axis], [0]))) + top
        if np.isnan(table).any():
            return None
        small.add_factors([[place[v] for v in scope if v in place]], table[None], log=True)
    tree = _core.inference.CliqueTree(small.compiled.core, "auto", REGION_ENTRIES, True)
    if not tree.fits:
        return None
    _, exact, total = tree.sum(small.compiled.core)
    return None if np.isneginf(total) else exact[: graph.cardinalities[region[0]]]
