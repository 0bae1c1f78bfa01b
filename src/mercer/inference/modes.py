"""Iterated conditional modes: each variable in turn takes its best state given all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_count
from mercer.inference.graph import CompiledGraph
from mercer.inference.registry import best_states, register
from mercer.inference.result import Outcome


def _icm(
    graph: CompiledGraph,
    task: str,
    *,
    start: Any = None,
    restarts: int = 1,
    max_iter: int = 1000,
    random_state: Any = None,
) -> Outcome:
    """The best of several climbs: from ``start`` (default: each variable's best state), then from random states."""
    check_count("restarts", restarts)
    check_count("max_iter", max_iter)
    rng = np.random.default_rng(random_state)
    given = best_states(graph, graph.unary) if start is None else np.asarray(start)
    if given.shape != (graph.n_variables,) or given.dtype.kind not in "iu":
        raise ValueError(f"start must hold an integer for each of the {graph.n_variables} variables")
    if ((given < 0) | (given >= graph.cardinalities)).any():
        raise ValueError("start must hold states of the variables: from 0 to their number minus 1")
    best: Outcome | None = None
    for climb in range(restarts):
        x0 = given if climb == 0 else rng.integers(graph.cardinalities)
        states, scores, converged = _core.inference.icm(graph.core, np.ascontiguousarray(x0, np.int32), max_iter)
        if best is None or scores[-1] > best.value:
            best = Outcome(
                states=states,
                value=float(scores[-1]),
                converged=converged,
                n_iter=len(scores),
                history={"score": scores.tolist()},
            )
    assert best is not None
    return best


register("icm", _icm, tasks=("map",))
