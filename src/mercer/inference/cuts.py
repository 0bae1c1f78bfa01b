"""Best assignments by minimum cuts: exact for two attractive states, moves for more states.

With energies E = −log-potentials of two states, a table over (i, j) is a sum of single terms and a cost of cutting,

    E(x_i, x_j) = E00 + (E10 − E00) x_i + (E11 − E10) x_j + (E01 + E10 − E00 − E11) (1 − x_i) x_j

and the cost is nonnegative if and only if E00 + E11 ≤ E01 + E10 (submodular). An expansion move lets every variable
keep its state or take one state α. A swap move lets the variables in two states choose between the two. Each move is
one cut, and none raises the energy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count
from mercer.exceptions import ZeroProbabilityError
from mercer.inference.graph import CompiledGraph, FactorGraph
from mercer.inference.limits import Limits
from mercer.inference.registry import best_states, register
from mercer.inference.result import Outcome

__all__ = ["is_submodular", "minimum_cut"]

TOLERANCE = 1e-9  # by which a table may miss submodularity, relative to its largest entry


def minimum_cut(source: Any, sink: Any, edges: Any, forward: Any, backward: Any = None) -> tuple[float, np.ndarray]:
    """Return the cheapest way to cut all paths from a source to a sink.

    Parameters
    ----------
    source, sink : arrays of float of shape (n,)
        Capacities from the source to each node, and from each node to the sink.
    edges : array of int of shape (m, 2)
        Pairs of nodes.
    forward, backward : arrays of float of shape (m,), or a number for all
        Capacities of each edge in its direction and in the opposite one; ``backward`` defaults to ``forward``.

    Returns
    -------
    capacity : float
        Capacity of the cut, equal to the maximum flow.
    side : ndarray of bool of shape (n,)
        True for nodes on the side of the sink.

    Examples
    --------
    >>> from mercer.inference import minimum_cut
    >>> capacity, side = minimum_cut([5, 0, 1], [0, 1, 6], [[0, 1], [1, 2]], [2, 3])
    >>> capacity, side.tolist()
    (3.0, [False, True, True])
    """
    source = np.ascontiguousarray(source, np.float64)
    if source.ndim != 1:
        raise ValueError(f"source must hold one capacity for each node, got an array of shape {source.shape}")
    ends = np.asarray(edges)
    if ends.size == 0:
        ends = ends.reshape(0, 2).astype(np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise ValueError("edges must be pairs of nodes: integers of shape (m, 2)")
    if ends.size and (ends.min() < 0 or ends.max() >= len(source)):
        raise ValueError(f"edges name nodes from 0 to {len(source) - 1}, got {ends.min()} to {ends.max()}")
    there = _capacities("forward", forward, len(ends))
    back = there if backward is None else _capacities("backward", backward, len(ends))
    sink = np.ascontiguousarray(sink, np.float64)
    if sink.shape != source.shape:
        raise ValueError(f"sink must hold one capacity for each of the {len(source)} nodes, got {sink.shape}")
    side = np.zeros(len(source), np.uint8)
    capacity = _core.inference.min_cut(source, sink, np.ascontiguousarray(ends, np.int32), there, back, side)
    return float(capacity), side.astype(bool)


def _capacities(name: str, values: Any, m: int) -> np.ndarray:
    given = np.asarray(values, np.float64)
    if given.shape not in ((), (m,)):
        raise ValueError(f"{name} must be a number, or hold one for each of the {m} edges, got shape {given.shape}")
    return np.ascontiguousarray(np.broadcast_to(given, (m,)))


# ---------------------------------------------------------------------------------------------------- energies


def is_submodular(graph: FactorGraph | CompiledGraph) -> bool:
    """Return whether cuts are exact: two states each, and factors of at most two variables that attract each other.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, is_submodular
    >>> edges = [[0, 1]]
    >>> is_submodular(FactorGraph([2, 2], edges=edges, pairwise=[[2, 1], [1, 2]]))
    True
    >>> is_submodular(FactorGraph([2, 2], edges=edges, pairwise=[[1, 2], [2, 1]]))
    False
    """
    compiled = graph.compiled if isinstance(graph, FactorGraph) else graph
    return _obstacle(compiled) is None


def _obstacle(graph: CompiledGraph) -> str | None:
    """Why a graph has no exact cut; None if it has one."""
    if (graph.cardinalities > 2).any():
        at = int(np.flatnonzero(graph.cardinalities > 2)[0])
        return f"variable {at} has {graph.cardinalities[at]} states: method='expansion' or 'swap' takes more than two"
    if not graph.is_pairwise:
        return "a factor has more than two variables"
    for group in graph.groups:
        if group.shape != (2, 2):
            continue
        tables = -graph.stacked(group)
        excess = _excess(tables)
        if (excess > 0).any():
            at = int(np.argmax(excess))
            u, v = group.scopes[at].tolist()
            return (
                f"the energy is not submodular: the factor over the variables {u} and {v} favours different states by "
                f"{excess[at]:.3g}; use method='trw', 'max-product' or 'icm'"
            )
    return None


def _excess(energies: np.ndarray) -> np.ndarray:
    """By how much tables (m × 2 × 2) of energies miss submodularity; −inf or 0 where they do not."""
    diagonal = energies[:, 0, 0] + energies[:, 1, 1]
    other = energies[:, 0, 1] + energies[:, 1, 0]
    finite = np.where(np.isfinite(energies), np.abs(energies), 0.0).max(axis=(1, 2))
    both = np.isposinf(diagonal) & np.isposinf(other)
    with np.errstate(invalid="ignore"):
        missing = np.where(both, np.inf, diagonal - other)
    return np.where(missing > TOLERANCE * np.maximum(finite, 1.0), missing, 0.0)


def solve_binary(unary: np.ndarray, edges: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Return the states (0 or 1) of least energy: ``unary`` (n × 2), submodular ``tables`` (m × 2 × 2). +inf forbids.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference.cuts import solve_binary
    >>> unary = np.array([[0.0, 3.0], [1.0, 0.5], [2.0, 0.0]])
    >>> solve_binary(unary, np.array([[0, 1], [1, 2]]), np.array([[[0.0, 1.0], [1.0, 0.0]]] * 2))
    array([0, 1, 1], dtype=int32)
    """
    limit = _finite_bound(unary, tables)
    unary, tables = np.minimum(unary, limit), np.minimum(tables, limit)
    single = unary[:, 1] - unary[:, 0]
    a, b, c, d = (tables[:, i, j] for i in (0, 1) for j in (0, 1))
    single = single + np.bincount(edges[:, 0], c - a, len(unary)) + np.bincount(edges[:, 1], d - c, len(unary))
    cost = np.maximum(b + c - a - d, 0.0)  # below 0 only by rounding
    _, side = minimum_cut(np.maximum(single, 0.0), np.maximum(-single, 0.0), edges, cost, np.zeros(len(edges)))
    return side.astype(np.int32)


def _finite_bound(unary: np.ndarray, tables: np.ndarray) -> float:
    """More than any assignment without forbidden states can cost: stands for infinity in a cut."""
    finite = sum(float(np.abs(array[np.isfinite(array)]).sum()) for array in (unary, tables))
    return 2.0 * finite + 1.0


def _cuts(graph: CompiledGraph, task: str) -> Outcome:
    """The best assignment of a submodular binary graph."""
    obstacle = _obstacle(graph)
    if obstacle is not None:
        raise ValueError(f"method 'cuts' cannot take this graph: {obstacle}")
    return _answer(graph, _binary_move(graph, np.zeros(graph.n_variables, np.int32), graph.cardinalities - 1), True)


def _answer(graph: CompiledGraph, states: np.ndarray, exact: bool, **facts: Any) -> Outcome:
    value = float(graph.score(states))
    if np.isneginf(value) and exact:
        raise ZeroProbabilityError
    return Outcome(states=states, value=value, map_bound=value if exact else None, **facts)


def _binary_move(graph: CompiledGraph, stay: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The best assignment in which each variable has its state in ``stay`` or that in ``move``."""
    starts = graph.state_starts[:-1]
    unary = -np.stack([graph.unary[starts + stay], graph.unary[starts + move]], axis=1)
    edges, tables = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2, 2))]
    for group in graph.groups:
        u, v = group.scopes.T
        width = group.shape[1]
        at = [group.table_starts + x[u].astype(np.int64) * width + y[v] for x in (stay, move) for y in (stay, move)]
        edges.append(group.scopes.astype(np.int64))
        tables.append(-np.stack([graph.tables[places] for places in at], axis=1).reshape(-1, 2, 2))
    ends, pairs = np.concatenate(edges), np.concatenate(tables)
    # Beside a variable that has no choice a factor is one of a single variable.
    first, second = (stay == move)[ends].T
    np.add.at(unary, ends[first, 1], pairs[first, 0])
    np.add.at(unary, ends[~first & second, 0], pairs[~first & second, :, 0])
    ends, pairs = ends[~(first | second)], pairs[~(first | second)]
    excess = _excess(pairs)
    if (excess > 0).any():
        at_most = int(np.argmax(excess))
        raise ValueError(
            f"this move has no exact cut: the factor over the variables {ends[at_most].tolist()} breaks the triangle "
            "inequality E(a, c) ≤ E(a, b) + E(b, c); use method='trw', 'dual' or 'max-product'"
        )
    taken = solve_binary(unary, ends, pairs)
    return np.where(taken == 1, move, stay).astype(np.int32)


def _begin(graph: CompiledGraph, start: Any) -> np.ndarray:
    if isinstance(start, str):
        check_choice("start", start, ("unary",))
        return best_states(graph, graph.unary)
    states = np.asarray(start)
    graph.score(states)  # checks
    return states.astype(np.int32)


def _moves(graph: CompiledGraph, kind: str, start: Any, max_iter: int) -> Outcome:
    check_count("max_iter", max_iter)
    if not graph.is_pairwise:
        raise ValueError(f"method {kind!r} takes factors of one or two variables; this graph has larger ones")
    states = _begin(graph, start)
    most = int(graph.cardinalities.max(initial=1))
    pairs = (
        [(a, b) for a in range(most) for b in range(a + 1, most)] if kind == "swap" else [(a, a) for a in range(most)]
    )
    history = [float(graph.score(states))]
    converged = False
    for _ in range(max_iter):
        before = history[-1]
        for a, b in pairs:
            if kind == "expansion":
                proposed = _binary_move(graph, states, np.where(a < graph.cardinalities, a, states))
            else:
                inside = ((states == a) | (states == b)) & (b < graph.cardinalities)
                proposed = _binary_move(graph, np.where(inside, a, states), np.where(inside, b, states))
            value = float(graph.score(proposed))
            if value > history[-1]:
                states = proposed
                history.append(value)
        if not history[-1] > before:
            converged = True
            break
    return _answer(graph, states, False, converged=converged, n_iter=len(history), history={"value": history})


def _expansion(graph: CompiledGraph, task: str, *, start: Any = "unary", max_iter: int = 100) -> Outcome:
    """α-expansion: at most twice the least energy for a metric, usually much nearer."""
    return _moves(graph, "expansion", start, max_iter)


def _swap(graph: CompiledGraph, task: str, *, start: Any = "unary", max_iter: int = 100) -> Outcome:
    """α-β-swap: for energies that are no metric."""
    return _moves(graph, "swap", start, max_iter)


def _suits_cuts(graph: CompiledGraph, task: str, limits: Limits) -> str | None:
    return "two states, and all factors are submodular: a minimum cut is exact" if _obstacle(graph) is None else None


register("cuts", _cuts, tasks=("map",), exact=True, rank=20, suits=_suits_cuts)
register("expansion", _expansion, tasks=("map",))
register("swap", _swap, tasks=("map",))
