"""Results of inference: `Outcome` holds the arrays of a method, `InferenceResult` the same by name for users."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._display import Displayed
from mercer.exceptions import ApproximateInferenceWarning, ZeroProbabilityError
from mercer.inference.accuracy import map_gap, marginal_error
from mercer.inference.graph import CompiledGraph, FactorGraph, ObservedGraph

__all__ = [
    "ApproximateInferenceWarning",
    "ErrorEstimate",
    "FactorMarginals",
    "InferenceResult",
    "LogPartition",
    "Marginals",
    "Outcome",
    "ZeroProbabilityError",
]

KINDS = ("exact", "lower", "upper", "estimate")
ERROR_KINDS = ("exact", "bound", "estimate")


class LogPartition(float):
    """log Z, or log p(evidence) of a normalised model, with its kind (exact, bound or estimate).

    Attributes
    ----------
    kind : {"exact", "lower", "upper", "estimate"}
        Exact, a lower bound, an upper bound, or neither.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> value = infer(FactorGraph([2], unary=[[1.0, 2.0]])).log_partition
    >>> round(value, 4), value.kind
    (1.0986, 'exact')
    """

    kind: str

    def __new__(cls, value: float, kind: str) -> LogPartition:
        """Make the number with its kind."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        made = super().__new__(cls, value)
        made.kind = kind
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.kind


class ErrorEstimate(float):
    """The error of a result: exact, a bound or an estimate.

    Attributes
    ----------
    kind : {"exact", "bound", "estimate"}
        Exact (the number is 0), a guaranteed bound, or an estimate.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> error = infer(FactorGraph([2], unary=[[1.0, 2.0]])).error
    >>> error, error.kind
    (0.0, 'exact')
    """

    kind: str

    def __new__(cls, value: float, kind: str) -> ErrorEstimate:
        """Make the number with its kind."""
        if kind not in ERROR_KINDS:
            raise ValueError(f"kind must be one of {ERROR_KINDS}, got {kind!r}")
        made = super().__new__(cls, value)
        made.kind = kind
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.kind


@dataclass
class Outcome:
    """The result of a method of inference for a `CompiledGraph`; other fields stay None.

    A registered method (see `register`) fills in its results; `infer` adds evidence and names.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import Outcome
    >>> Outcome(states=np.array([0, 1]), value=-1.5).converged
    True
    """

    marginals: np.ndarray | None = None
    """Probabilities of all states, in the order of ``graph.unary``."""
    factor_beliefs: Callable[[], np.ndarray] | None = None
    """Gives the joint probabilities of the variables of each factor, in the order of ``graph.belief_starts``."""
    log_partition: float | None = None
    """log Z, a bound of it or an estimate."""
    kind: str = "exact"
    """What ``log_partition`` is: "exact", "lower", "upper" or "estimate"."""
    states: np.ndarray | None = None
    """The best assignment found."""
    value: float | None = None
    """Its score: the sum of its log-potentials."""
    map_bound: float | None = None
    """An upper bound on the best score, if the method has one; equal to ``value`` at the optimum."""
    best: tuple[np.ndarray, np.ndarray] | None = None
    """The k best assignments (k × variables) and their scores."""
    exact: bool = False
    """Whether marginals and log Z, or the best assignment, are exact for this graph; `run_method` sets it for methods
    that always are."""
    error: float | None = None
    """Of marginals that are not exact, the largest error of a probability, where the method knows it: a bound, or an
    estimate such as a Monte Carlo standard error. None: `infer` computes one on first access."""
    error_kind: str = "estimate"
    """What ``error`` is: "bound" or "estimate"."""
    samples: np.ndarray | None = None
    """Assignments drawn (samples × variables, or chains × samples × variables)."""
    method: str = ""
    """The method that ran; filled in by `run_method`."""
    reason: str = ""
    """Why it was picked; filled in by `run_method`."""
    converged: bool = True
    n_iter: int = 1
    residual: float = 0.0
    """Largest change in the last iteration."""
    history: dict[str, list[float]] = field(default_factory=dict)
    """Values of each iteration, by name."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further facts that a method reports, by name."""


class Marginals(Mapping[Hashable, np.ndarray]):
    """Probabilities of the states of each variable, by name: a mapping in the order of the variables.

    Variables without names are numbered; if there are names, indices are also accepted as keys. ``np.asarray`` makes a
    matrix (variables × states) if all variables have the same number of states.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> marginals = infer(FactorGraph({"a": 2, "b": 3}, unary={"a": [1, 3]})).marginals
    >>> marginals["a"], len(marginals)
    (array([0.25, 0.75]), 2)
    >>> list(marginals), "c" in marginals
    (['a', 'b'], False)
    """

    def __init__(self, graph: FactorGraph, flat: np.ndarray) -> None:
        self._graph = graph
        self._starts = np.concatenate([[0], np.cumsum(graph.cardinalities, dtype=np.int64)])
        flat.flags.writeable = False
        self.flat: np.ndarray = flat

    def __len__(self) -> int:
        return self._graph.n_variables

    def __getitem__(self, variable: Hashable) -> np.ndarray:
        i = self._graph.number(variable)
        return self.flat[self._starts[i] : self._starts[i + 1]]

    def __contains__(self, variable: object) -> bool:
        try:
            self._graph.number(variable)
        except ValueError:
            return False
        return True

    def __iter__(self) -> Iterator[Hashable]:
        return map(self._graph.name, range(len(self)))

    __eq__ = object.__eq__  # arrays make no truth value
    __hash__ = object.__hash__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        cards = self._graph.cardinalities
        if len(cards) and (cards != cards[0]).any():
            raise ValueError("variables with different numbers of states make no matrix: use .flat, or one by one")
        made = self.flat.reshape(len(cards), -1) if len(cards) else np.zeros((0, 0))
        return np.array(made, dtype=dtype) if copy else np.asarray(made, dtype=dtype)

    def __repr__(self) -> str:
        if len(self) > 8:
            return f"Marginals({len(self)} variables)"
        return f"Marginals({{{', '.join(f'{name!r}: {row.round(4).tolist()}' for name, row in self.items())}}})"


class FactorMarginals(Sequence[np.ndarray]):
    """Joint probabilities of the variables of each factor, in the order in which factors were added.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> graph = FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[2.0, 1.0], [1.0, 4.0]])
    >>> infer(graph).factor_marginals[0]
    array([[0.25 , 0.125],
           [0.125, 0.5  ]])
    """

    def __init__(self, blocks: list[np.ndarray]) -> None:
        self._blocks = blocks
        self._starts = np.concatenate([[0], np.cumsum([len(block) for block in blocks], dtype=np.int64)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]
        b = int(np.searchsorted(self._starts, i, side="right")) - 1
        return self._blocks[b][i - self._starts[b]]

    @property
    def blocks(self) -> list[np.ndarray]:
        """Arrays (factors × states …) of factors that were added together, as in ``FactorGraph.blocks``."""
        return self._blocks


@dataclass
class _Whole:
    """The graph that was asked about, and what is left of it at the evidence."""

    graph: FactorGraph
    left: ObservedGraph

    @classmethod
    def of(cls, graph: FactorGraph, evidence: Any) -> _Whole:
        return cls(graph, ObservedGraph(graph.compiled, graph.evidence(evidence)))

    @property
    def compiled(self) -> CompiledGraph:
        return self.left.compiled

    def name(self, variable: int) -> Hashable:
        """Name of a variable that is left."""
        return self.graph.name(int(self.left.kept[variable]))

    def marginals(self, flat: np.ndarray) -> Marginals:
        return Marginals(self.graph, self.left.marginals(flat))

    def states(self, states: np.ndarray) -> np.ndarray:
        return self.left.states(states)

    def factor_marginals(self, flat: np.ndarray, beliefs: np.ndarray) -> FactorMarginals:
        return FactorMarginals(_pieces(self.graph, self.left.marginals(flat), self.left.joint(beliefs, flat)))


def _pieces(graph: FactorGraph, flat: np.ndarray, beliefs: np.ndarray) -> list[np.ndarray]:
    """Joint probabilities of each block of a graph, from those of its variables and of its compiled factors."""
    compiled = graph.compiled
    place = np.full(graph.n_factors, -1, np.int64)
    place[compiled.numbers] = np.arange(compiled.n_factors)
    pieces, first = [], 0
    for scopes, tables in graph.blocks:
        shape, m = tables.shape[1:], len(scopes)
        size = int(np.prod(shape))
        if scopes.shape[1] == 0:
            piece = np.ones(m)
        elif scopes.shape[1] == 1:
            piece = flat[compiled.state_starts[scopes] + np.arange(size)]
        else:
            piece = beliefs[compiled.belief_starts[place[first : first + m]][:, None] + np.arange(size)]
        pieces.append(piece.reshape(m, *shape))
        first += m
    return pieces


class InferenceResult(Displayed):
    """The result of `infer`.

    The requested task is computed immediately. The other of marginals and best assignment is computed on first access:
    by the same method, or from the best states of the marginals if the method has no search.

    Examples
    --------
    >>> from mercer.inference import FactorGraph, infer
    >>> result = infer(FactorGraph({"a": ["no", "yes"]}, unary={"a": [1, 3]}))
    >>> result.map, round(result.map_value, 3), result.method
    ({'a': 'yes'}, 1.099, 'tree')
    >>> result.probabilities("a")
    {'no': 0.25, 'yes': 0.75}
    """

    def __init__(self, whole: _Whole, task: str, run: Callable[[str], Outcome]) -> None:
        self._whole = whole
        self._task = task
        self._run = run
        self._error: ErrorEstimate | None = None
        self._done: dict[str, Outcome] = {}
        self._marginals: Marginals | None = None
        self._factor_marginals: FactorMarginals | None = None
        self._first = self._done[task] = run(task)

    def __repr__(self) -> str:
        return f"InferenceResult({self.method}, exact={self.exact}, converged={self.converged}, n_iter={self.n_iter})"

    def _outcome(self, task: str) -> Outcome:
        if task not in self._done:
            self._done[task] = self._run(task)
        return self._done[task]

    # ------------------------------------------------------------------ sums

    @property
    def marginals(self) -> Marginals:
        """Return the probabilities of the states of each variable, by name or number."""
        if self._marginals is None:
            flat = self._first.marginals
            if flat is None:
                flat = self._outcome("marginals").marginals
            if flat is None:
                raise AttributeError(f"{self.method} gives no marginals: use method='bp' or an exact method")
            self._marginals = self._whole.marginals(flat)
        return self._marginals

    @property
    def factor_marginals(self) -> FactorMarginals:
        """Return the joint probabilities of the variables of each factor."""
        if self._factor_marginals is None:
            outcome = self._first if self._first.factor_beliefs is not None else self._outcome("marginals")
            if outcome.factor_beliefs is None or outcome.marginals is None:
                raise AttributeError(f"{self.method} gives no marginals of factors: use method='bp' or an exact method")
            self._factor_marginals = self._whole.factor_marginals(outcome.marginals, outcome.factor_beliefs())
        return self._factor_marginals

    @property
    def log_partition(self) -> LogPartition:
        """Return log Z with the evidence, for a Bayesian network log p(evidence), with its ``kind``."""
        outcome = self._first if self._first.log_partition is not None else self._outcome("marginals")
        if outcome.log_partition is None:
            raise AttributeError(f"{self.method} gives no log_partition")
        return LogPartition(outcome.log_partition, outcome.kind)

    def probabilities(self, variable: Hashable) -> dict[Hashable, float]:
        """Return the probabilities of the states of one variable, by the names of its states."""
        graph = self._whole.graph
        names = range(len(self.marginals[variable])) if graph.states is None else graph.states[graph.number(variable)]
        return dict(zip(names, self.marginals[variable].tolist(), strict=True))

    # ------------------------------------------------------------------ maxima

    def _best(self) -> tuple[np.ndarray, float]:
        outcome = self._first if self._first.states is not None else self._outcome("map")
        if outcome.states is None or outcome.value is None:
            raise AttributeError(f"{self.method} gives no assignment")
        return outcome.states, outcome.value

    def _named(self, states: np.ndarray) -> Any:
        graph = self._whole.graph
        if graph.names is None and graph.states is None:
            return states
        return {
            graph.name(i): int(s) if graph.states is None else graph.states[i][s] for i, s in enumerate(states.tolist())
        }

    @property
    def map(self) -> Any:
        """Return the most probable assignment, or the best one found: {name: state}, or an array without names."""
        return self._named(self.map_states)

    @property
    def map_states(self) -> np.ndarray:
        """Return the same as state numbers, one for each variable."""
        return self._whole.states(self._best()[0])

    @property
    def map_value(self) -> float:
        """Return the sum of the log-potentials of `map`: log p(map) + log Z."""
        return float(self._best()[1])

    @property
    def map_bound(self) -> float | None:
        """Return an upper bound on the best `map_value`, if the method has one."""
        outcome = self._first if self._first.states is not None else self._outcome("map")
        return outcome.map_bound

    @property
    def k_best(self) -> list[tuple[Any, float]]:
        """Return the k best assignments with their values, best first; requested by the option ``k``."""
        outcome = self._outcome("map")
        if outcome.best is None:
            states, value = self._best()
            return [(self._named(self._whole.states(states)), float(value))]
        return [
            (self._named(self._whole.states(states)), float(value)) for states, value in zip(*outcome.best, strict=True)
        ]

    # ------------------------------------------------------------------ how it went

    @property
    def method(self) -> str:
        """Return the method that was used."""
        return self._first.method

    @property
    def reason(self) -> str:
        """Return the reason for the choice of the method."""
        return self._first.reason

    @property
    def exact(self) -> bool:
        """Return whether the result of ``task`` is exact: marginals and log Z, or the best assignment."""
        return self._first.exact

    @property
    def error(self) -> ErrorEstimate:
        """Return the error of the result: 0 if it is exact.

        For marginals, it is the largest error of a probability; for a best assignment, the possible increase of
        `map_value`. Its ``kind`` is a bound or an estimate. It is computed on first access, which may take as long as
        the inference itself.
        """
        if self._error is None:
            if self._first.exact:
                self._error = ErrorEstimate(0.0, "exact")
            elif self._task == "map" or self._first.marginals is None:
                self._error = ErrorEstimate(map_gap(self._whole.compiled, self._first), "bound")
            elif self._first.error is not None:
                self._error = ErrorEstimate(self._first.error, self._first.error_kind)
            else:
                self._error = ErrorEstimate(*marginal_error(self._whole.compiled, self._first.marginals))
        return self._error

    @property
    def samples(self) -> np.ndarray | None:
        """Return the drawn assignments, as state numbers; None for methods that draw none."""
        return None if self._first.samples is None else self._whole.states(self._first.samples)

    @property
    def converged(self) -> bool:
        """Return whether the method converged."""
        return self._first.converged

    @property
    def n_iter(self) -> int:
        """Return the number of iterations (sweeps)."""
        return self._first.n_iter

    @property
    def residual(self) -> float:
        """Return the largest change in the last iteration."""
        return self._first.residual

    @property
    def history(self) -> dict[str, list[float]]:
        """Return the values of each iteration, by name."""
        return self._first.history

    @property
    def extra(self) -> dict[str, Any]:
        """Return further values that the method reports."""
        return self._first.extra
