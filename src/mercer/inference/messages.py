"""Belief propagation: messages between factors and variables.

    m_{f→i}(x_i) = ⊕_{x_f \\ x_i} φ_f(x_f) Π_{j≠i} Π_{g∋j, g≠f} m_{g→j}(x_j),     ⊕ = Σ or max

On a graph without cycles two passes are exact. On other graphs messages are updated until they converge, and log Z is
estimated by the Bethe free energy. Tree-reweighted messages weight each factor by its probability ρ to be in a random
spanning forest; their free energy is an upper bound on log Z. Maxima also come with an upper bound on the best score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ZeroProbabilityError
from mercer.inference.graph import CompiledGraph
from mercer.inference.limits import Limits
from mercer.inference.registry import register
from mercer.inference.result import Outcome

__all__ = ["appearance_probabilities"]

SCHEDULES = ("synchronous", "residual", "random")


def _tree(graph: CompiledGraph, task: str) -> Outcome:
    if not graph.is_forest:
        raise ValueError("the graph has cycles: use method='junction-tree' (exact), or 'bp'")
    return _outcome(graph, _core.inference.tree_messages(graph.core, task == "map"), task, "exact")


def _bp(
    graph: CompiledGraph,
    task: str,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    damping: float = 0.0,
    schedule: str = "synchronous",
    temperature: float = 1.0,
    random_state: Any = None,
) -> Outcome:
    """Sums; the model may be made flatter or sharper, p^(1/T), by a temperature."""
    if check_positive("temperature", temperature) != 1.0:
        graph = graph.with_potentials(
            graph.unary / temperature, graph.tables / temperature, graph.constant / temperature
        )
    run = _loopy(graph, False, max_iter, tol, damping, schedule, random_state)
    return _outcome(graph, run, task, _kind(graph, run, "estimate"), "bp")


def _max_product(
    graph: CompiledGraph,
    task: str,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    damping: float = 0.0,
    schedule: str = "synchronous",
    random_state: Any = None,
) -> Outcome:
    run = _loopy(graph, True, max_iter, tol, damping, schedule, random_state)
    outcome = _outcome(graph, run, task, "estimate", "max-product")
    if graph.is_forest:  # its best score costs two passes, and certifies the assignment
        best = float(graph.score(_core.inference.tree_messages(graph.core, True)[2]))
        outcome.map_bound = best if outcome.value is None else max(best, outcome.value)
    return outcome


def _trw(
    graph: CompiledGraph,
    task: str,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    damping: float = 0.3,
    schedule: str = "synchronous",
    appearance: Any = None,
    bound_iter: int = 200,
    random_state: Any = None,
) -> Outcome:
    """Sums, or maxima with an upper bound from ``bound_iter`` passes of dual ascent."""
    check_count("bound_iter", bound_iter, 0)
    if appearance is None:
        rho = appearance_probabilities(graph, random_state=random_state)
    else:
        rho = np.ascontiguousarray(appearance, np.float64)
        if rho.shape != (graph.n_factors,) or not ((rho > 0) & (rho <= 1)).all():
            raise ValueError(
                f"appearance must hold a probability above 0 for each of the {graph.n_factors} compiled factors"
            )
    run = _loopy(graph, task == "map", max_iter, tol, damping, schedule, random_state, rho)
    # The free energy is a bound at the fixed point, where beliefs agree; before that it may be anything.
    kind = "upper" if run is not None and run[3] else "estimate"
    if task != "map":
        kind = _kind(graph, run, kind)
    outcome = _outcome(graph, run, task, kind, "trw", rho)
    if task == "map" and bound_iter:
        _add_bound(graph, outcome, bound_iter)
    return outcome


def _add_bound(graph: CompiledGraph, outcome: Outcome, passes: int) -> None:
    """An upper bound of the best score, by the dual of the program that tree-reweighted maxima solve.

    It holds whether or not the messages have settled. The states that belong to it are taken where they are better.
    """
    states, bounds, values, _ = _core.inference.dual_ascent(graph.core, passes, 1e-7)
    if np.isneginf(bounds[-1]):
        raise ZeroProbabilityError
    if outcome.value is None or values[-1] > outcome.value:
        outcome.states, outcome.value = states, float(values[-1])
    outcome.map_bound = max(float(bounds[-1]), float(outcome.value))


def appearance_probabilities(
    graph: CompiledGraph, *, n_forests: int | None = None, random_state: Any = None
) -> np.ndarray:
    """Return the probability of each factor to be in a random spanning forest: weights of tree-reweighted messages.

    A forest grows from factors in random order: a factor is added if it joins variables that are not yet connected.
    Each of the first forests begins with a factor that is in no forest so far, until every factor is in one.

    Parameters
    ----------
    graph : CompiledGraph
    n_forests : int, optional
        Minimum number of forests; default 50, or fewer for large graphs. All factors are always covered.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of shape (n_factors,)
        Above 0; 1 for all factors of a graph without cycles.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, appearance_probabilities
    >>> triangle = FactorGraph([2, 2, 2], edges=[[0, 1], [1, 2], [0, 2]], pairwise=[[2, 1], [1, 2]])
    >>> float(appearance_probabilities(triangle.compiled, random_state=0).sum().round(6))
    2.0
    """
    if graph.is_forest:
        return np.ones(graph.n_factors)
    least = (
        max(4, min(50, 2_000_000 // max(1, graph.n_factors)))
        if n_forests is None
        else check_count("n_forests", n_forests)
    )
    rng = np.random.default_rng(random_state)
    return _core.inference.forest_weights(graph.core, least, int(rng.integers(1 << 63)))


def _loopy(
    graph: CompiledGraph,
    maximise: bool,
    max_iter: Any,
    tol: Any,
    damping: Any,
    schedule: Any,
    seed: Any,
    rho: Any = None,
) -> Any:
    check_count("max_iter", max_iter)
    check_choice("schedule", schedule, SCHEDULES)
    if not (isinstance(tol, (int, float)) and 0 <= tol < np.inf):
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}")
    if not (isinstance(damping, (int, float)) and 0 <= damping < 1):
        raise ValueError(f"damping must be at least 0 and below 1, got {damping!r}")
    number = int(np.random.default_rng(seed).integers(1 << 63)) if schedule == "random" else 0
    return _core.inference.loopy_messages(
        graph.core, maximise, schedule, max_iter, float(tol), float(damping), number, rho
    )


def _kind(graph: CompiledGraph, run: Any, otherwise: str) -> str:
    """What log Z is: exact where messages have settled on a graph without cycles."""
    return "exact" if graph.is_forest and run is not None and run[3] else otherwise


def _outcome(
    graph: CompiledGraph, run: Any, task: str, kind: str, method: str | None = None, rho: np.ndarray | None = None
) -> Outcome:
    if run is None:
        raise ZeroProbabilityError
    marginals, total, states, converged, residuals, messages = run
    n_iter = max(1, len(residuals))
    residual = float(residuals[-1]) if len(residuals) else 0.0
    if method is not None and not converged:
        other = "take method='mean-field'" if method == "trw" else "use method='trw' or 'mean-field', which converge"
        from mercer.exceptions import ConvergenceWarning  # scikit-learn is heavy

        warn_caller(
            f"{method} did not converge in {n_iter} sweeps: messages still change by {residual:.2g}. "
            f"Raise damping (0.5, 0.9), use schedule='residual', allow a larger max_iter, or {other}",
            ConvergenceWarning,
        )
    made = Outcome(
        exact=kind == "exact", converged=converged, n_iter=n_iter, residual=residual,
        history={"residual": residuals.tolist()},
    )  # fmt: skip
    if len(states) or (task == "map" and not graph.n_variables):
        made.states, made.value = states, float(graph.score(states))
        made.map_bound = made.value if kind == "exact" else None
    else:
        beliefs: Callable[[], np.ndarray] = lambda: _core.inference.joint_beliefs(graph.core, messages, rho)  # noqa: E731
        made.marginals, made.factor_beliefs, made.log_partition, made.kind = marginals, beliefs, float(total), kind
    return made


def _tree_suits(graph: CompiledGraph, task: str, limits: Limits) -> str | None:
    return "the graph has no cycles" if graph.is_forest else None


register("tree", _tree, exact=True, rank=10, suits=_tree_suits)
register(
    "bp", _bp, tasks=("marginals",), rank=90,
    suits=lambda graph, task, limits: "exact inference would exceed the limits",
)  # fmt: skip
register(
    "max-product", _max_product, tasks=("map",), rank=90,
    suits=lambda graph, task, limits: "exact inference would exceed the limits",
)  # fmt: skip
register("trw", _trw)
