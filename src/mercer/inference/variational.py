"""Mean field: the best approximation by a distribution of a simple form.

    log Z ≥ E_q[Σ_f log φ_f] + H(q),     q = Π_i q_i  or a product of chains

Parts are updated in turn, each to its optimum given the others, so the bound never decreases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count
from mercer._warnings import warn_caller
from mercer.exceptions import ZeroProbabilityError
from mercer.inference.graph import CompiledGraph
from mercer.inference.registry import register
from mercer.inference.result import Outcome

__all__ = ["find_chains"]


def _mean_field(
    graph: CompiledGraph,
    task: str,
    *,
    max_iter: int = 1000,
    tol: float = 1e-8,
    init: str = "unary",
    random_state: Any = None,
) -> Outcome:
    q = _start(graph, init, random_state)
    _check(graph, max_iter, tol)
    return _outcome(graph, _core.inference.mean_field(graph.core, q, max_iter, float(tol)), "mean-field")


def _chain_mean_field(
    graph: CompiledGraph,
    task: str,
    *,
    chains: Sequence[Sequence[int]] | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    init: str = "unary",
    random_state: Any = None,
) -> Outcome:
    q = _start(graph, init, random_state)
    _check(graph, max_iter, tol)
    listed = find_chains(graph) if chains is None else _completed(graph, chains)
    starts = np.concatenate([[0], np.cumsum([len(chain) for chain in listed])]).astype(np.int64)
    variables = np.array([v for chain in listed for v in chain], np.int32)
    run = _core.inference.chain_mean_field(graph.core, q, starts, variables, max_iter, float(tol))
    made = _outcome(graph, run, "chain-mean-field")
    made.extra["chains"] = listed
    return made


def _check(graph: CompiledGraph, max_iter: Any, tol: Any) -> None:
    check_count("max_iter", max_iter)
    if not (isinstance(tol, (int, float)) and 0 <= tol < np.inf):
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}")
    if not np.isfinite(graph.tables).all():
        start = int(np.flatnonzero(~np.isfinite(graph.tables))[0])
        factor = int(
            np.flatnonzero((graph.table_starts <= start) & (start < graph.table_starts + graph.table_sizes))[0]
        )
        raise ValueError(
            f"mean field needs positive potentials in factors of two variables or more: factor "
            f"{graph.numbers[factor]} holds a 0. "
            "Use an exact method or 'bp'"
        )


def _start(graph: CompiledGraph, init: str, random_state: Any) -> np.ndarray:
    """Where q begins: potentials of single variables alone, or random (which breaks symmetries)."""
    check_choice("init", init, ("unary", "random"))
    values = graph.unary
    if init == "random":
        drawn = np.random.default_rng(random_state).gumbel(size=len(values))
        values = np.where(np.isneginf(values), -np.inf, drawn)
    sizes = graph.cardinalities
    if not len(sizes):
        return np.zeros(0)
    top = np.maximum.reduceat(values, graph.state_starts[:-1])
    if np.isneginf(top).any():
        raise ZeroProbabilityError
    q = np.exp(values - np.repeat(top, sizes))
    return q / np.repeat(np.add.reduceat(q, graph.state_starts[:-1]), sizes)


def _outcome(graph: CompiledGraph, run: Any, method: str) -> Outcome:
    if run is None:
        raise ZeroProbabilityError
    q, bounds, residuals, converged = run
    if not converged:
        from mercer.exceptions import ConvergenceWarning  # scikit-learn is heavy

        warn_caller(
            f"{method} did not converge in {len(bounds)} sweeps: probabilities still change by "
            f"{residuals[-1]:.2g}. Its bound still holds; raise max_iter or tol for a better one",
            ConvergenceWarning,
        )

    def beliefs() -> np.ndarray:
        joint = []
        for group in graph.groups:
            product = np.ones((group.stop - group.first, 1))
            for place, card in enumerate(group.shape):
                rows = q[graph.state_starts[group.scopes[:, place]][:, None] + np.arange(card)]
                product = (product[:, :, None] * rows[:, None, :]).reshape(len(product), -1)
            joint.append(product.reshape(-1))
        return np.concatenate(joint) if joint else np.zeros(0)

    return Outcome(
        marginals=q, factor_beliefs=beliefs, log_partition=float(bounds[-1]), kind="lower", converged=converged,
        n_iter=len(bounds), residual=float(residuals[-1]),
        history={"log_partition": bounds.tolist(), "residual": residuals.tolist()},
    )  # fmt: skip


def _completed(graph: CompiledGraph, chains: Iterable[Sequence[int]]) -> list[list[int]]:
    """The given chains, and every variable that is in none as a chain by itself."""
    listed = [[int(v) for v in chain] for chain in chains if len(chain)]
    named = [v for chain in listed for v in chain]
    if len(set(named)) != len(named) or any(not 0 <= v < graph.n_variables for v in named):
        raise ValueError(f"chains must name variables from 0 to {graph.n_variables - 1}, each at most once")
    rest = sorted(set(range(graph.n_variables)) - set(named))
    return listed + [[v] for v in rest]


def find_chains(graph: CompiledGraph) -> list[list[int]]:
    """Return disjoint chains of variables, such that factors join only neighbours within a chain.

    Each starts at the first remaining variable and extends to both sides by the first allowed neighbour.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, find_chains, grid_edges
    >>> grid = FactorGraph([2] * 9, edges=grid_edges((3, 3)), pairwise=[[2, 1], [1, 2]])
    >>> find_chains(grid.compiled)
    [[0, 1, 2, 5, 8, 7, 6], [3, 4]]
    """
    n = graph.n_variables
    paired: list[dict[int, None]] = [
        {} for _ in range(n)
    ]  # joined by a factor over two variables, in the factors' order
    together: list[set[int]] = [set() for _ in range(n)]  # by any factor
    apart: list[set[int]] = [set() for _ in range(n)]  # by a larger factor: never in one chain
    for group in graph.groups:
        for scope in group.scopes.tolist():
            for v in scope:
                others = [u for u in scope if u != v]
                together[v].update(others)
                if len(scope) == 2:
                    paired[v].update(dict.fromkeys(others))
                else:
                    apart[v].update(others)
    free = [True] * n
    chains = []
    for first in range(n):
        if not free[first]:
            continue
        free[first] = False
        chain, members = [first], {first}
        for side in (1, 0):
            end = first
            while True:
                free_chain = next(
                    (u for u in paired[end] if free[u] and not apart[u] & members and together[u] & members == {end}),
                    None,
                )
                if free_chain is None:
                    break
                free[free_chain] = False
                members.add(free_chain)
                chain.insert(len(chain) * side, free_chain)
                end = free_chain
        chains.append(chain)
    return chains


register("mean-field", _mean_field, tasks=("marginals",))
register("chain-mean-field", _chain_mean_field, tasks=("marginals",))
