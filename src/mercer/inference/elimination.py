"""Variable elimination: sums (or maxima) over one variable after another, Σ_x Π_f φ_f = Σ_{x_1} ….

Each step multiplies the factors that hold a variable and sums it out. The next variable is the one with the smallest
table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from mercer.exceptions import TreewidthError, ZeroProbabilityError
from mercer.inference.factor import Factor
from mercer.inference.graph import CompiledGraph, FactorGraph, _some
from mercer.inference.limits import Cost, Limits, readable
from mercer.inference.registry import _factor_graph, _impossible, register, run_method
from mercer.inference.result import Outcome, _Whole

__all__ = ["TreewidthError", "eliminate", "variable_elimination"]


def too_large(what: str, cost: Cost, limits: Limits) -> TreewidthError:
    """Return the error, with the required size and alternatives."""
    more = "" if cost.complete else " or more (the search for an order stopped there)"
    return TreewidthError(
        f"{what} needs {readable(cost.bytes)} of tables (the largest over {cost.variables} variables) and "
        f"{cost.operations:.2g} operations{more}, above max_bytes={limits.max_bytes:.3g} or "
        f"max_operations={limits.max_operations:.3g}: use method='bp', 'trw' or 'mean-field' for marginals, "
        "'max-product', 'trw' or 'icm' for the best assignment, fix more evidence, or allow more"
    )


def eliminate(
    factors: list[Factor], keep: Iterable[Hashable] = (), *, maximise: bool = False, limits: Limits | None = None
) -> tuple[Factor, list[tuple[Hashable, Factor]]]:
    """Remove all variables but those to keep, and return the product of what is left.

    Also return the product from which each variable was removed, in order; a search for the best assignment backtracks
    through these.

    Examples
    --------
    >>> from mercer.inference import Factor
    >>> from mercer.inference.elimination import eliminate
    >>> a, b = Factor(["x"], [0.4, 0.6]), Factor(["x", "y"], [[0.9, 0.1], [0.2, 0.8]])
    >>> eliminate([a, b], ["y"])[0].table.round(2)
    array([0.48, 0.52])
    """
    limits = Limits() if limits is None else limits
    kept = set(keep)
    holders: dict[Hashable, dict[int, Factor]] = {}
    cards: dict[Hashable, int] = {}
    for number, factor in enumerate(factors):
        for variable, card in zip(factor.variables, factor.shape, strict=True):
            holders.setdefault(variable, {})[number] = factor
            cards[variable] = card
    left = dict(enumerate(factors))
    sizes = {v: _step_size(holders[v], cards) for v in holders if v not in kept}
    removed = []
    while sizes:
        variable = min(sizes, key=sizes.__getitem__)
        if not limits.allow(8 * sizes[variable], sizes[variable]):
            scope = {v for factor in holders[variable].values() for v in factor.variables}
            raise too_large(
                "variable elimination", Cost(8 * sizes[variable], sizes[variable], len(scope), False), limits
            )
        del sizes[variable]
        product = Factor([], 0.0, log=True)
        for number, factor in holders.pop(variable).items():
            product = product * factor
            del left[number]
            for other in factor.variables:
                if other != variable:
                    del holders[other][number]
        removed.append((variable, product))
        rest = product.max_out([variable]) if maximise else product.sum_out([variable])
        number = len(factors) + len(removed)
        left[number] = rest
        for other in rest.variables:
            holders[other][number] = rest
        for other in rest.variables:
            if other not in kept:
                sizes[other] = _step_size(holders[other], cards)
    product = Factor([], 0.0, log=True)
    for factor in left.values():
        product = product * factor
    return product, removed


def max_marginals(
    model: Any, evidence: Any = None, *, max_bytes: float | None = None, max_operations: float | None = None
) -> dict[Hashable, np.ndarray]:
    """Return the log-score of the best assignment with each state of each variable.

    The maximum of a row is the score of the best assignment. A variable with a unique maximum has that state in every
    best assignment. The result is exact and takes one elimination per variable.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
    evidence : mapping of variables to states, optional
    max_bytes, max_operations : float, optional
        Limits of one elimination; see :func:`infer`.

    Returns
    -------
    maxima : dict of variable to array of a number for each of its states; −inf where none is possible

    Examples
    --------
    >>> from mercer.inference import FactorGraph, max_marginals
    >>> graph = FactorGraph([2, 2], unary=[[1, 3], [1, 1]], edges=[[0, 1]], pairwise=[[4, 1], [1, 4]])
    >>> {v: np.exp(row).round(6).tolist() for v, row in max_marginals(graph).items()}
    {0: [4.0, 12.0], 1: [4.0, 12.0]}
    """
    whole = _Whole.of(_factor_graph(model), evidence)
    limits, compiled = Limits(max_bytes, max_operations), whole.compiled
    factors = _numbered(compiled)
    maxima = {}
    for i in range(compiled.n_variables):
        table = eliminate(factors, [i], maximise=True, limits=limits)[0].log_table + compiled.constant
        maxima[whole.name(i)] = np.asarray(table, dtype=float)
    return maxima


def _step_size(held: dict[int, Factor], cards: dict[Hashable, int]) -> float:
    scope = {v for factor in held.values() for v in factor.variables}
    return float(np.prod([float(cards[v]) for v in scope]))


def variable_elimination(
    model: Any,
    query: Iterable[Hashable],
    *,
    evidence: Any = None,
    max_bytes: float | None = None,
    max_operations: float | None = None,
) -> Factor:
    """Compute the joint distribution p(query | evidence) of some variables.

    Evidence is applied first, and barren nodes of a Bayesian network (neither queried, nor observed, nor ancestors of
    such variables) are removed. The rest is summed out over a junction tree with a clique that contains the query.

    Parameters
    ----------
    model : FactorGraph, BayesianNetwork or MarkovNetwork
    query : iterable of variables
        Names or numbers of unobserved variables.
    evidence : mapping or array, optional
        As for `infer`.
    max_bytes, max_operations : float, optional
        As for `infer`.

    Returns
    -------
    Factor
        Normalised, over the variables of the query in their order.

    Examples
    --------
    >>> from mercer.inference import BayesianNetwork, variable_elimination
    >>> net = BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]}, {"wet": ["rain"]},
    ...                       {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]]})
    >>> variable_elimination(net, ["rain"], evidence={"wet": "yes"}).table.round(3)
    array([0.333, 0.667])
    """
    limits = Limits(max_bytes, max_operations)
    if isinstance(query, str):
        raise ValueError(f"query must be a collection of variables, got the string {query!r}")
    graph = _factor_graph(model)
    observed = graph.evidence(evidence)
    numbers = [graph.number(v) for v in query]
    if len(set(numbers)) != len(numbers):
        raise ValueError("query names a variable twice")
    known = [graph.name(i) for i in numbers if observed[i] >= 0]
    if known:
        raise ValueError(f"query names variables that are observed: {_some(known)}")
    factors = _pruned(model, numbers, observed)
    if factors is None:
        factors = graph.reduced(observed)[0].factors
    names = [graph.name(i) for i in numbers]
    wanted = Factor(names, np.zeros(graph.cardinalities[numbers]), log=True)
    small = FactorGraph.from_factors([wanted, *factors])
    try:
        outcome = run_method(
            small.compiled, "junction-tree", max_bytes=limits.max_bytes, max_operations=limits.max_operations
        )
    except ZeroProbabilityError:
        raise ZeroProbabilityError(_impossible(graph, observed)) from None
    assert outcome.marginals is not None
    assert outcome.factor_beliefs is not None
    if len(names) > 1:
        place = int(np.flatnonzero(small.compiled.numbers == 0)[0])
        joint = outcome.factor_beliefs()[slice(*small.compiled.belief_starts[place : place + 2].tolist())]
    else:
        joint = outcome.marginals[: wanted.table.size] if names else np.ones(1)
    return Factor(names, joint.reshape(wanted.shape)).normalized()


def _pruned(model: Any, query: list[int], observed: np.ndarray) -> list[Factor] | None:
    """Of a Bayesian network: only the tables of ancestors of query and evidence; the others sum to 1."""
    relevant = getattr(model, "_ancestral_factors", None)
    if relevant is None:
        return None
    evidence = {model.names[i]: int(observed[i]) for i in np.flatnonzero(observed >= 0)}
    return [factor.reduce(evidence) for factor in relevant({model.names[i] for i in query} | set(evidence))]


def _numbered(graph: CompiledGraph) -> list[Factor]:
    """Factors of a compiled graph, with numbers for names."""
    starts = graph.state_starts
    factors = [Factor([i], graph.unary[starts[i] : starts[i + 1]], log=True) for i in range(graph.n_variables)]
    for f in range(graph.n_factors):
        scope = graph.scopes[graph.scope_starts[f] : graph.scope_starts[f + 1]].tolist()
        factors.append(Factor(scope, graph.table(f), log=True))
    return factors


def _run(
    graph: CompiledGraph, task: str, *, max_bytes: float | None = None, max_operations: float | None = None
) -> Outcome:
    """All marginals, each by an elimination of its own; or the best assignment, by going back through one."""
    limits = Limits(max_bytes, max_operations)
    factors = _numbered(graph)
    total, removed = eliminate(factors, maximise=task == "map", limits=limits)
    value = float(total.log_table) + graph.constant
    if np.isneginf(value):
        raise ZeroProbabilityError
    if task == "map":
        states: dict[Hashable, int] = {}
        for variable, product in reversed(removed):
            states[variable] = int(product.reduce({v: s for v, s in states.items()}).log_table.argmax())
        best_or_joint = np.array([states[i] for i in range(graph.n_variables)], np.int32)
        return Outcome(states=best_or_joint, value=float(graph.score(best_or_joint)), map_bound=value)
    rows = [eliminate(factors, [i], limits=limits)[0].normalized().table for i in range(graph.n_variables)]

    def beliefs() -> np.ndarray:
        joint = []
        for f in range(graph.n_factors):
            scope = graph.scopes[graph.scope_starts[f] : graph.scope_starts[f + 1]].tolist()
            best_or_joint = eliminate(factors, scope, limits=limits)[0].normalized().transposed(scope)
            joint.append(best_or_joint.table.reshape(-1))
        return np.concatenate(joint) if joint else np.zeros(0)

    return Outcome(marginals=np.concatenate(rows) if rows else np.zeros(0), factor_beliefs=beliefs, log_partition=value)


register("elimination", _run, exact=True)
