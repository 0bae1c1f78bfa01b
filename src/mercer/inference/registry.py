"""`infer`, the interface to all methods of inference, and the registry of methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._display import Displayed
from mercer._validation import check_choice, hyphenated
from mercer._warnings import warn_caller
from mercer.exceptions import ApproximateInferenceWarning, ZeroProbabilityError
from mercer.inference.graph import CompiledGraph, FactorGraph
from mercer.inference.limits import Limits
from mercer.inference.result import InferenceResult, Outcome, _Whole

__all__ = ["METHODS", "Inference", "Method", "choose", "infer", "register", "run_method"]

TASKS = ("marginals", "map")
LIMITS = ("max_bytes", "max_operations")
ASKED_FOR = "asked for"


@dataclass(frozen=True)
class Method:
    """An entry in the table of methods; see `register`.

    Examples
    --------
    >>> from mercer.inference import METHODS
    >>> METHODS["tree"].exact
    True
    """

    name: str
    run: Callable[..., Outcome]
    tasks: tuple[str, ...]
    exact: bool
    rank: int
    suits: Callable[[CompiledGraph, str, Limits], str | None] | None


METHODS: dict[str, Method] = {}
"""All methods, by name."""


def register(
    name: str,
    run: Callable[..., Outcome],
    *,
    tasks: tuple[str, ...] = TASKS,
    exact: bool = False,
    rank: int = 100,
    suits: Callable[[CompiledGraph, str, Limits], str | None] | None = None,
) -> None:
    """Register a method of inference, so that ``infer(graph, method=name)`` runs it.

    Parameters
    ----------
    name : str
        A new name.
    run : callable
        ``run(graph, task, **options)`` → `Outcome`, where ``graph`` is a `CompiledGraph` with the evidence applied
        and ``task`` is one of ``tasks``. The options are its keyword arguments; `infer` raises an error for others. If
        all assignments are impossible, it must raise `ZeroProbabilityError`.
    tasks : tuple of {"marginals", "map"}
        The supported tasks.
    exact : bool, default=False
        Whether its results are always exact. A method that is exact for some graphs sets ``Outcome.exact``.
    rank : int, default=100
        ``method="auto"`` tries methods in ascending order.
    suits : callable, optional
        ``suits(graph, task, limits)`` → a reason to pick this method for this graph, as a clause, or None; exact
        methods compare their cost with the `Limits`. ``method="auto"`` never picks a method without it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import METHODS, FactorGraph, Outcome, infer, register
    >>> def unary_only(graph, task, *, scale=1.0):
    ...     starts = graph.state_starts
    ...     states = np.array([graph.unary[a:b].argmax() for a, b in zip(starts, starts[1:])])
    ...     return Outcome(states=states, value=float(graph.score(states)))
    >>> register("unary_only", unary_only, tasks=("map",))
    >>> infer(FactorGraph([3], unary=[[1, 5, 2]]), "unary_only", task="map").map
    array([1], dtype=int32)
    >>> del METHODS["unary_only"]
    """
    if _known(name) is not None or name == "auto":
        raise ValueError(f"there is a method {name!r} already")
    if not tasks or any(task not in TASKS for task in tasks):
        raise ValueError(f"tasks must be some of {TASKS}, got {tasks!r}")
    METHODS[name] = Method(name, run, tuple(tasks), exact, rank, suits)


def choose(graph: CompiledGraph, task: str, limits: Limits | None = None) -> tuple[Method, str]:
    """Return the method that ``method="auto"`` picks for a graph, and why.

    The choice depends only on the graph and the limits, not on earlier computations.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, choose
    >>> method, reason = choose(FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[2, 1], [1, 2]]).compiled, "marginals")
    >>> method.name, reason
    ('tree', 'the graph has no cycles')
    """
    limits = Limits() if limits is None else limits
    able = [method for method in METHODS.values() if method.suits is not None and task in method.tasks]
    for method in sorted(able, key=lambda m: (m.rank, m.name)):
        assert method.suits is not None
        reason = method.suits(graph, task, limits)
        if reason is not None:
            return method, reason
    raise ValueError(f"no method suits this graph for task={task!r}")


def infer(
    graph: Any,
    method: str = "auto",
    *,
    evidence: Any = None,
    task: str = "marginals",
    max_bytes: float | None = None,
    max_operations: float | None = None,
    **options: Any,
) -> InferenceResult:
    """Compute marginals, log Z and the most probable assignment of a graphical model.

    Parameters
    ----------
    graph : FactorGraph, BayesianNetwork or MarkovNetwork
        The model.
    method : str, default="auto"
        One of the methods below (underscores are also accepted), or "auto": an exact method unless its estimated cost
        exceeds the limits below; then messages, with an `ApproximateInferenceWarning`. The result holds the method and
        the reason (``method``, ``reason``), whether it is exact (``exact``), and its error (``error``).
    evidence : mapping or array, optional
        Observed states, ``{variable: state}``, or a number for each variable, −1 if unobserved.
    task : {"marginals", "map"}, default="marginals"
        What to compute immediately: sums (marginals and log Z), or the best assignment. The other is computed on first
        access.
    max_bytes : float, optional
        Memory that the tables of an exact method may take; default a quarter of the memory of the machine. If a
        junction tree needs more, it conditions on variables until it fits, if ``max_operations`` allows that.
    max_operations : float, optional
        Entries of tables that an exact method may read or write; default 5e10, about a minute or two of one core.
    **options
        Options of the method. With ``k``, "auto" is "junction-tree", and the k best assignments are in ``k_best``.

    Returns
    -------
    InferenceResult

    Raises
    ------
    ZeroProbabilityError
        The evidence (or every assignment of the model) has probability 0.
    TreewidthError
        The requested exact method would exceed the limits.

    Warns
    -----
    ApproximateInferenceWarning
        With "auto", if the result is not exact.

    Notes
    -----
    =================== =================================================================== ======================
    method              what it is                                                          log_partition
    =================== =================================================================== ======================
    tree                two passes of messages over a graph without cycles                  exact
    junction-tree       messages over cliques of a triangulated graph                       exact
    elimination         one variable after another                                          exact
    bp                  loopy belief propagation (sum), Bethe's free energy                 estimate
    max-product         loopy belief propagation (max)
    trw                 tree-reweighted belief propagation (sum, max), with a bound         upper bound
    mean-field          independent variables that fit best                                 lower bound
    chain-mean-field    independent chains that fit best                                    lower bound
    icm                 iterated conditional modes
    cuts                minimum cut: two states that attract each other (exact)
    expansion, swap     moves by cuts, for more states
    lp                  linear program over the local polytope, with a bound
    dual                dual ascent, with a bound
    gibbs, metropolis   chains of samples
    annealing           samples at falling temperatures
    =================== =================================================================== ======================

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> graph = FactorGraph({"rain": ["no", "yes"], "wet": ["no", "yes"]}, unary={"rain": [0.8, 0.2]},
    ...                     edges=[["rain", "wet"]], pairwise=[[0.9, 0.1], [0.2, 0.8]])
    >>> infer(graph, evidence={"wet": "yes"}).probabilities("rain")["yes"]
    0.6666666666666666
    """
    check_choice("task", task, TASKS)
    options = _with_limits(options, max_bytes, max_operations)
    whole = _Whole.of(_factor_graph(graph), evidence)
    done: dict[tuple[str, str], Outcome] = {}

    def run(task: str) -> Outcome:
        entry, reason = _entry(whole.compiled, method, task, options)
        asked = task if task in entry.tasks else entry.tasks[0]
        if (entry.name, asked) not in done:
            try:
                done[entry.name, asked] = _run(entry, reason, whole.compiled, asked, options)
            except ZeroProbabilityError:
                raise ZeroProbabilityError(_impossible(whole.graph, whole.left.observed)) from None
        return done[entry.name, asked]

    return InferenceResult(whole, task, run)


class Inference(Displayed):
    """A method with its options, for many models: `infer` as a class.

    Parameters
    ----------
    method : str, default="auto"
        As for `infer`.
    **options
        Options of the method. An invalid one raises an error immediately, or with "auto", once the method is chosen.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, Inference
    >>> damped = Inference("bp", damping=0.2)
    >>> damped
    Inference('bp', damping=0.2)
    >>> graph = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[2.0, 1.0], [1.0, 4.0]])
    >>> damped.infer(graph).marginals[0].round(4), damped.infer(graph, evidence={1: 1}).marginals[0]
    (array([0.375, 0.625]), array([0.2, 0.8]))
    """

    def __init__(self, method: str = "auto", **options: Any) -> None:
        if method != "auto":
            _check_options(_named(method), options)
        self.method = method
        self.options = options

    def infer(self, graph: Any, *, evidence: Any = None, task: str = "marginals") -> InferenceResult:
        """Compute marginals, log Z and the best assignment of a model, as `infer` does."""
        return infer(graph, self.method, evidence=evidence, task=task, **self.options)

    def __repr__(self) -> str:
        return f"Inference({', '.join([repr(self.method), *(f'{k}={v!r}' for k, v in self.options.items())])})"


def run_method(graph: CompiledGraph, method: str = "auto", *, task: str = "marginals", **options: Any) -> Outcome:
    """Run a method on a compiled graph: `infer` without evidence and names, arrays in and arrays out.

    For repeated calls: graphs of one structure share cached properties (``with_potentials``).

    Parameters
    ----------
    graph : CompiledGraph
    method, task, **options
        As for `infer`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import FactorGraph, run_method
    >>> graph = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[2.0, 1.0], [1.0, 4.0]]).compiled
    >>> run_method(graph).marginals
    array([0.375, 0.625, 0.375, 0.625])
    >>> run_method(graph.with_potentials(np.log([1.0, 2.0, 1.0, 1.0]))).marginals.round(3)
    array([0.231, 0.769, 0.308, 0.692])
    """
    check_choice("task", task, TASKS)
    entry, reason = _entry(graph, method, task, options)
    return _run(entry, reason, graph, task if task in entry.tasks else entry.tasks[0], options)


def _with_limits(options: dict[str, Any], max_bytes: float | None, max_operations: float | None) -> dict[str, Any]:
    given = {"max_bytes": max_bytes, "max_operations": max_operations}
    return options | {name: value for name, value in given.items() if value is not None}


def _entry(graph: CompiledGraph, method: str, task: str, options: dict[str, Any]) -> tuple[Method, str]:
    if method == "auto":
        if "k" in options:
            return METHODS["junction-tree"], "the method that gives the k best assignments"
        return choose(graph, task, Limits(**{name: options[name] for name in LIMITS if name in options}))
    return _named(method), ASKED_FOR


def _known(method: Any) -> Method | None:
    """The entry of a method, whose name may be spelled with hyphens or underscores."""
    if not isinstance(method, str):
        return None
    return next((METHODS[m] for m in (method, hyphenated(method), method.replace("-", "_")) if m in METHODS), None)


def _named(method: str) -> Method:
    entry = _known(method)
    if entry is None:
        names = ", ".join(map(repr, sorted(METHODS)))
        raise ValueError(f"method must be 'auto' or one of {names}, got {method!r}")
    return entry


def _run(entry: Method, reason: str, graph: CompiledGraph, task: str, options: dict[str, Any]) -> Outcome:
    """One run of a method. A method that has no search of its own answers with the best states of its marginals."""
    if reason != ASKED_FOR:  # limits steer the choice; the method that was chosen need not know them
        options = {name: value for name, value in options.items() if name not in LIMITS or name in _options(entry)}
    _check_options(entry, options)
    if np.isneginf(graph.constant):
        raise ZeroProbabilityError
    outcome = entry.run(graph, task, **options)
    outcome.method, outcome.reason = entry.name, reason
    searched = outcome.states is not None
    if not searched and outcome.marginals is not None and "map" not in entry.tasks:
        outcome.states = best_states(graph, outcome.marginals)
        outcome.value = float(graph.score(outcome.states))
    outcome.exact = outcome.exact or entry.exact or (task == "map" and searched and _certified(outcome))
    if outcome.log_partition is not None and outcome.exact and np.isneginf(outcome.log_partition):
        raise ZeroProbabilityError
    if searched and outcome.value is not None and np.isneginf(outcome.value):
        if entry.exact:
            raise ZeroProbabilityError
        warn_caller(
            f"{entry.name} found no assignment of positive probability, so its results are meaningless. Give a "
            f"possible start, or use an exact method",
            RuntimeWarning,
        )
    if reason != ASKED_FOR and not outcome.exact:
        warn_caller(
            f"the {'best assignment' if task == 'map' else 'marginals'} by {entry.name!r} may be far off: {reason}. "
            "Allow more by max_bytes and max_operations, fix evidence, or name a method to silence this",
            ApproximateInferenceWarning,
        )
    return outcome


def _certified(outcome: Outcome) -> bool:
    """Whether the bound proves that the assignment is a best one."""
    if outcome.map_bound is None or outcome.value is None or np.isneginf(outcome.value):
        return False
    return outcome.map_bound - outcome.value <= 1e-9 * max(1.0, abs(outcome.value))


def best_states(graph: CompiledGraph, marginals: np.ndarray) -> np.ndarray:
    """Return the most probable state of each variable on its own."""
    cards = graph.cardinalities
    if len(cards) and (cards == cards[0]).all():
        return marginals.reshape(len(cards), -1).argmax(axis=1).astype(np.int32)
    rows = np.split(marginals, graph.state_starts[1:-1]) if len(cards) else []
    return np.array([row.argmax() for row in rows], np.int32)


def _options(entry: Method) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(entry.run).parameters.items())[2:])


def _check_options(entry: Method, options: dict[str, Any]) -> None:
    """Raise an error for options that the method does not take."""
    if not options:
        return
    known = _options(entry)
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return
    wrong = [name for name in options if name not in known]
    if wrong:
        listed = f"its options are {', '.join(known)}" if known else "it has no options"
        if wrong[0] == "k":
            listed += "; the k best assignments are found by method='junction-tree'"
        raise TypeError(f"method {entry.name!r} has no option {wrong[0]!r}: {listed}")


def _impossible(graph: FactorGraph, observed: np.ndarray) -> str:
    known = np.flatnonzero(observed >= 0)
    if not len(known):
        return "every assignment has probability 0: the factors contradict each other"
    named = {
        graph.name(i): int(observed[i]) if graph.states is None else graph.states[i][observed[i]] for i in known[:12]
    }
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    return f"the evidence has probability 0: {named}{more}"


def _factor_graph(model: Any) -> FactorGraph:
    if isinstance(model, FactorGraph):
        return model
    made = getattr(model, "factor_graph", None)
    if isinstance(made, FactorGraph):
        return made
    raise TypeError(f"graph must be a FactorGraph, BayesianNetwork or MarkovNetwork, got {type(model).__name__}")
