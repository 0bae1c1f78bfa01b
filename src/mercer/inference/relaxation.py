"""Best assignments with a bound: linear programs over pseudo-marginals, and dual ascent.

    max ⟨θ, μ⟩   over μ ≥ 0 with Σ_k μ_i(k) = 1 and Σ_{x_f \\ i} μ_f(x_f) = μ_i(x_i)      (the local polytope)

Its value is an upper bound on the best score, and equal to it if μ is 0/1 (always on trees, and for two attractive
states). Dual ascent lowers the same kind of bound factor by factor, for graphs that are too large for a linear program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer import _core
from mercer._validation import check_count
from mercer._warnings import warn_caller
from mercer.exceptions import ZeroProbabilityError
from mercer.inference.graph import CompiledGraph, FactorGraph
from mercer.inference.registry import _factor_graph, best_states, register, run_method
from mercer.inference.result import Outcome, _Whole

__all__ = ["LPSolution", "lp_inference", "relaxed_marginals"]

MAX_VARIABLES = 2_000_000  # of a linear program
WHOLE = 1e-6  # how near to 0 or 1 pseudo-marginals count as whole


def relaxed_marginals(model: Any, *, evidence: Any = None) -> np.ndarray:
    """Return pseudo-marginals of single variables at the optimum of the linear program: 0/1 if it is tight.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
    evidence : mapping or array, optional
        As for `infer`.

    Returns
    -------
    ndarray
        One value for each state of each unobserved variable, concatenated.

    Examples
    --------
    Three variables in a cycle that prefer to differ: no assignment satisfies all, and the relaxation gives one half.

    >>> from mercer.inference import FactorGraph, relaxed_marginals
    >>> graph = FactorGraph([2, 2, 2], edges=[[0, 1], [1, 2], [0, 2]], pairwise=[[1, 2], [2, 1]])
    >>> relaxed_marginals(graph)
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    return local_polytope(_Whole.of(_factor_graph(model), evidence).compiled)[0]


def local_polytope(graph: CompiledGraph) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the optimum of the linear program: pseudo-marginals of variables and of factors, and the value.

    They are concatenated as in ``graph.unary`` and ``graph.belief_starts``.
    """
    import scipy.sparse as sp  # heavy
    from scipy.optimize import linprog

    n_states, n_joint = int(graph.state_starts[-1]), int(graph.belief_starts[-1])
    if n_states + n_joint > MAX_VARIABLES:
        raise ValueError(
            f"the linear program would have {n_states + n_joint} unknowns, more than {MAX_VARIABLES}: use "
            "method='dual' (a bound of the same kind), 'trw' or 'expansion'"
        )
    rows, columns, values, right, count = [], [], [], [], 0
    owners = np.repeat(np.arange(graph.n_variables), graph.cardinalities)
    rows.append(owners)
    columns.append(np.arange(n_states))
    values.append(np.ones(n_states))
    right.append(np.ones(graph.n_variables))
    count += graph.n_variables
    for group in graph.groups:
        starts = n_states + graph.belief_starts[group.first : group.stop]
        places = np.stack(np.unravel_index(np.arange(group.size), group.shape), axis=1)
        for axis, card in enumerate(group.shape):
            m = group.stop - group.first
            equation = count + np.arange(m)[:, None] * card
            rows.append((equation + places[:, axis]).ravel())
            columns.append((starts[:, None] + np.arange(group.size)).ravel())
            values.append(np.ones(m * group.size))
            rows.append((equation + np.arange(card)).ravel())
            columns.append((graph.state_starts[group.scopes[:, axis]][:, None] + np.arange(card)).ravel())
            values.append(-np.ones(m * card))
            right.append(np.zeros(m * card))
            count += m * card
    A = sp.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(count, n_states + n_joint)
    )
    joint = [graph.stacked(group).reshape(-1) for group in graph.groups]
    scores = np.concatenate([graph.unary, *joint])
    forbidden = np.isneginf(scores)
    upper = np.where(forbidden, 0.0, np.inf)
    program = linprog(
        -np.where(forbidden, 0.0, scores), A_eq=A, b_eq=np.concatenate(right),
        bounds=np.stack([np.zeros(len(upper)), upper], axis=1), method="highs",
    )  # fmt: skip
    if program.status == 2:
        raise ZeroProbabilityError
    if program.status != 0:
        raise RuntimeError(f"the linear program was not solved: {program.message}")
    whole = np.clip(program.x, 0.0, 1.0)
    return whole[:n_states], whole[n_states:], float(graph.constant - program.fun)


class LPSolution(NamedTuple):
    """The solution of the linear program.

    Attributes
    ----------
    value : float
        An upper bound on the best score; the best score if ``integral``.
    labels : int array of shape (n_nodes,)
        The label with the most weight at each node.
    nodes : array of shape (n_nodes, n_labels)
    edges : array of shape (n_edges, n_labels, n_labels)
    integral : bool
        Whether all weights are 0 or 1.
    """

    value: float
    labels: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray
    integral: bool


def lp_inference(node_scores: np.ndarray, edge_scores: np.ndarray, edges: Sequence[tuple[int, int]]) -> LPSolution:
    """Decode a pairwise model on any graph by linear programming.

    Parameters
    ----------
    node_scores : array of shape (n_nodes, n_labels)
    edge_scores : array of shape (n_edges, n_labels, n_labels)
        Scores of (label of the first node, label of the second).
    edges : sequence of (a, b)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import lp_inference
    >>> solution = lp_inference(np.array([[1.0, 0.0], [0.0, 0.2]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), [(0, 1)])
    >>> solution.labels, round(solution.value, 6), solution.integral
    (array([0, 0]), 2.0, True)
    """
    nodes, pairs = np.asarray(node_scores, dtype=float), np.asarray(edge_scores, dtype=float)
    if nodes.ndim != 2 or not nodes.size:
        raise ValueError(f"node_scores must have shape (n_nodes, n_labels), got {nodes.shape}")
    n, K = nodes.shape
    ends = np.asarray(edges, dtype=int).reshape(-1, 2)
    if pairs.shape != (len(ends), K, K):
        raise ValueError(f"edge_scores must have shape ({len(ends)}, {K}, {K}), got {pairs.shape}")
    if not np.isfinite(nodes).all() or not np.isfinite(pairs).all():
        raise ValueError("scores must be finite")
    if len(ends) and (ends.min() < 0 or ends.max() >= n or (ends[:, 0] == ends[:, 1]).any()):
        raise ValueError(f"an edge must join two different nodes between 0 and {n - 1}")
    graph = FactorGraph(np.full(n, K), unary=nodes, log=True)
    if len(ends):
        graph.add_factors(ends, pairs, log=True)
    mu, mu_pairs, value = local_polytope(graph.compiled)
    integral = bool((np.minimum(mu, 1 - mu) < 1e-6).all() and (np.minimum(mu_pairs, 1 - mu_pairs) < 1e-6).all())
    mu = mu.reshape(n, K)
    return LPSolution(value, mu.argmax(axis=1), mu, mu_pairs.reshape(-1, K, K), integral)


def _lp(graph: CompiledGraph, task: str) -> Outcome:
    """The linear program; its states rounded where they are not whole."""
    if not graph.n_variables:
        return Outcome(states=np.zeros(0, np.int32), value=float(graph.constant), map_bound=float(graph.constant))
    marginals, _, bound = local_polytope(graph)
    states = best_states(graph, marginals)
    value = float(graph.score(states))
    whole = np.minimum(marginals, 1.0 - marginals).max() < WHOLE
    if not whole:  # rounding may be far off: a few conditional modes from there
        other = run_method(graph, "icm", task="map", start=states)
        if other.states is not None and other.value is not None and other.value > value:
            states, value = other.states, other.value
    extra = {"pseudo_marginals": marginals, "fractional": float((np.minimum(marginals, 1 - marginals) > WHOLE).mean())}
    return Outcome(states=states, value=value, map_bound=max(bound, value), converged=bool(whole), extra=extra)


def _dual(graph: CompiledGraph, task: str, *, max_iter: int = 1000, tol: float = 1e-7) -> Outcome:
    """Dual ascent: a bound that falls with every pass, and the best states read off on the way."""
    check_count("max_iter", max_iter)
    if not np.isfinite(tol) or tol < 0:
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}")
    states, bounds, values, converged = _core.inference.dual_ascent(graph.core, max_iter, float(tol))
    bound, value = float(bounds[-1]), float(values[-1])
    if np.isneginf(bound):
        raise ZeroProbabilityError
    if not converged:
        warn_caller(
            f"dual ascent still falls after max_iter={max_iter} passes, gap {bound - value:.3g}: raise max_iter or tol",
            RuntimeWarning,
        )
    return Outcome(
        states=states,
        value=value,
        map_bound=max(bound, value),
        converged=converged,
        n_iter=len(bounds),
        residual=bound - value,
        history={"bound": bounds.tolist(), "value": values.tolist()},
    )


register("lp", _lp, tasks=("map",))
register("dual", _dual, tasks=("map",))
