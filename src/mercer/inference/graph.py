"""Factor graphs: discrete variables and tables over some of them, p(x) = 1/Z Π_f φ_f(x_f).

Factors are added in blocks: many scopes of one shape, with a table each or one shared table. `FactorGraph.compiled`
joins the blocks once into flat arrays, on which all methods of inference work (see `CompiledGraph`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from mercer import _core
from mercer._display import Displayed
from mercer.inference.factor import Factor, log_potentials

__all__ = ["CompiledGraph", "FactorGraph", "Group", "grid_edges"]

_MOST_ENTRIES = 1 << 40


@dataclass(frozen=True)
class Group:
    """Factors of one shape in a `CompiledGraph`: those numbered ``first`` to ``stop`` − 1.

    Examples
    --------
    >>> from mercer.inference import FactorGraph
    >>> graph = FactorGraph([2, 2, 2], edges=[[0, 1], [1, 2]], pairwise=[[2.0, 1.0], [1.0, 2.0]])
    >>> group = graph.compiled.groups[0]
    >>> group.shape, group.scopes.tolist()
    ((2, 2), [[0, 1], [1, 2]])
    """

    shape: tuple[int, ...]
    """Numbers of states of the variables."""
    first: int
    """Number of the first factor."""
    stop: int
    """Number after that of the last factor."""
    scopes: np.ndarray
    """Variables of each factor (factors × variables)."""
    table_starts: np.ndarray
    """Where the table of each factor begins in ``tables``; equal ones share a table."""

    @property
    def size(self) -> int:
        """Entries of a table."""
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class CompiledGraph:
    """A factor graph as flat arrays of log-potentials, the input of the methods of inference.

    Factors over one variable are summed into ``unary`` and factors over none into ``constant``; all others are sorted
    by shape, so that factors of one shape are neighbours. log p(x) + log Z = constant + Σ_i unary_i(x_i) + Σ_f
    table_f(x_f).

    Examples
    --------
    >>> from mercer.inference import FactorGraph
    >>> graph = FactorGraph([2, 3], edges=[[0, 1]], pairwise=[[1, 2, 3], [4, 5, 6]]).compiled
    >>> graph.state_starts.tolist(), graph.scopes, graph.tables.round(2)
    ([0, 2, 5], array([0, 1], dtype=int32), array([0.  , 0.69, 1.1 , 1.39, 1.61, 1.79]))
    """

    cardinalities: np.ndarray
    """int32: number of states of each variable."""
    state_starts: np.ndarray
    """int64, one more than variables: variable i has ``state_starts[i]`` to ``state_starts[i + 1]`` in ``unary``
    and in vectors of marginals."""
    unary: np.ndarray
    """float64: log-potentials of single variables, one after another; 0 where there is no factor."""
    constant: float
    """Sum of the log-potentials of factors over no variable."""
    scope_starts: np.ndarray
    """int64, one more than factors: the variables of factor f are ``scopes[scope_starts[f]:scope_starts[f + 1]]``."""
    scopes: np.ndarray
    """int32: variables of the factors, one factor after another; the last one changes fastest in the table."""
    table_starts: np.ndarray
    """int64: where the table of each factor begins in ``tables``."""
    tables: np.ndarray
    """float64: log-potentials of all different tables, in C order."""
    numbers: np.ndarray
    """int64: the number that each factor has in the `FactorGraph`."""
    core: Any = field(repr=False, compare=False)
    """The same for compiled loops."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Cache of the methods for properties of the structure; shared by graphs with different potentials."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @property
    def n_factors(self) -> int:
        """Number of factors over two variables or more."""
        return len(self.table_starts)

    @property
    def is_forest(self) -> bool:
        """Whether variables and factors form no cycle: then two passes of messages are exact."""
        return bool(self.core.is_forest)

    @property
    def is_pairwise(self) -> bool:
        """Whether no factor has more than two variables."""
        return len(self.scopes) == 2 * self.n_factors  # none has fewer

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Factors of one shape, neighbour after neighbour."""
        if not self.n_factors:
            return ()
        arities, shapes = np.diff(self.scope_starts), self.cardinalities[self.scopes]
        same = arities[1:] == arities[:-1]  # as many variables as the factor before, then as many states of each
        for axis in range(int(arities.max())):
            first, second = self.scope_starts[:-2] + axis, self.scope_starts[1:-1] + axis
            both = np.flatnonzero(same & (arities[1:] > axis))
            same[both] = shapes[first[both]] == shapes[second[both]]
        bounds = [0, *(np.flatnonzero(~same) + 1).tolist(), self.n_factors]
        groups = []
        for a, b in pairwise(bounds):
            stretch = slice(int(self.scope_starts[a]), int(self.scope_starts[b]))
            scopes = self.scopes[stretch].reshape(b - a, -1)
            groups.append(Group(tuple(self.cardinalities[scopes[0]].tolist()), a, b, scopes, self.table_starts[a:b]))
        return tuple(groups)

    @cached_property
    def table_sizes(self) -> np.ndarray:
        """int64: entries of the table of each factor."""
        if not self.n_factors:
            return np.zeros(0, np.int64)
        return np.multiply.reduceat(self.cardinalities[self.scopes].astype(np.int64), self.scope_starts[:-1])

    @cached_property
    def belief_starts(self) -> np.ndarray:
        """int64, one more than factors: where each factor's entries begin in a vector that repeats shared tables."""
        return np.concatenate([[0], np.cumsum(self.table_sizes)]).astype(np.int64)

    def table(self, factor: int) -> np.ndarray:
        """Return the log-potentials of one factor, with an axis for each of its variables."""
        shape = self.cardinalities[self.scopes[self.scope_starts[factor] : self.scope_starts[factor + 1]]]
        start = int(self.table_starts[factor])
        return self.tables[start : start + int(self.table_sizes[factor])].reshape(shape)

    def stacked(self, group: Group) -> np.ndarray:
        """Return the log-potentials of a group (factors × shape); shared tables are repeated."""
        places = group.table_starts[:, None] + np.arange(group.size)
        return self.tables[places].reshape(-1, *group.shape)

    def score(self, states: Any) -> np.ndarray:
        """Return Σ log-potentials of assignments (… × variables), without −log Z."""
        x = np.asarray(states)
        if x.shape[-1:] != (self.n_variables,) or x.dtype.kind not in "iu":
            raise ValueError(f"states must hold an integer for each of the {self.n_variables} variables")
        if self.n_variables and ((x < 0) | (x >= self.cardinalities)).any():
            raise ValueError("states must be from 0 to the number of states of the variable minus 1")
        total = self.constant + self.unary[self.state_starts[:-1] + x].sum(axis=-1)
        for group in self.groups:
            places = group.table_starts + (x[..., group.scopes] * _strides(group.shape)).sum(axis=-1)
            total = total + self.tables[places].sum(axis=-1)
        return total

    @cached_property
    def possible(self) -> PossibleGraph | None:
        """Return the graph over the states that zeros leave possible; None if that is this graph.

        A state is removed if some factor has no positive entry for it with the remaining states of the other variables.
        This repeats until nothing changes (generalised arc consistency).
        """
        if not (np.isneginf(self.tables).any() or np.isneginf(self.unary).any()):
            return None
        parts = _core.inference.without_impossible_states(self.core)
        return None if parts is None else PossibleGraph(self, parts)

    def with_potentials(
        self, unary: np.ndarray | None = None, tables: np.ndarray | None = None, constant: float | None = None
    ) -> CompiledGraph:
        """Return the same graph with different log-potentials, without checking and sorting its structure again."""
        new_unary = self.unary if unary is None else np.ascontiguousarray(unary, np.float64)
        new_tables = self.tables if tables is None else np.ascontiguousarray(tables, np.float64)
        new_constant = self.constant if constant is None else float(constant)
        core = self.core.with_potentials(new_unary, new_tables, new_constant)
        return CompiledGraph(
            self.cardinalities, self.state_starts, new_unary, new_constant, self.scope_starts, self.scopes,
            self.table_starts, new_tables, self.numbers, core, self.cache,
        )  # fmt: skip


class ObservedGraph:
    """A compiled graph over the unobserved variables, with the mapping of its results to the whole graph.

    ``observed`` holds a state for each variable, or −1. Factors with one remaining variable are in ``compiled.unary``,
    factors with none in ``compiled.constant``; ``compiled.numbers`` are factor numbers of the whole graph.
    """

    def __init__(self, whole: CompiledGraph, observed: np.ndarray) -> None:
        self._whole = whole
        self.observed = observed
        self.kept = np.flatnonzero(observed < 0)
        """Numbers of the variables that are left."""
        self.compiled = whole
        if len(self.kept) < len(observed):
            self.compiled = _joined(
                whole.cardinalities, whole.unary, whole.constant, whole.scope_starts, whole.scopes,
                whole.table_starts, whole.tables, observed,
            )  # fmt: skip

    def marginals(self, flat: np.ndarray) -> np.ndarray:
        """Marginals of the whole graph from those of the smaller one."""
        if self.compiled is self._whole:
            return flat
        whole = np.zeros(len(self._whole.unary))
        whole[np.repeat(self.observed < 0, self._whole.cardinalities)] = flat
        known = np.flatnonzero(self.observed >= 0)
        whole[self._whole.state_starts[known] + self.observed[known]] = 1.0
        return whole

    def states(self, states: np.ndarray) -> np.ndarray:
        """Assignments of the whole graph from those of the smaller one."""
        whole = np.empty((*states.shape[:-1], len(self.observed)), np.int32)
        whole[...] = self.observed
        whole[..., self.kept] = states
        return whole

    def joint(self, beliefs: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """Joint probabilities of the factors of the whole graph, from those of the smaller one and its marginals."""
        if self.compiled is self._whole:
            return beliefs
        whole = self.marginals(flat)
        return _core.inference.widened_beliefs(self._whole.core, self.observed, self.compiled.numbers, beliefs, whole)


class PossibleGraph:
    """A compiled graph without impossible states, with the mapping of its results to the whole graph."""

    def __init__(self, whole: CompiledGraph, parts: Any) -> None:
        self._whole = whole
        self.compiled: CompiledGraph | None = None
        """None where a variable has no possible state."""
        if parts is False:
            return
        self._states, cards, unary, constant, scope_starts, scopes, starts, tables, numbers, *joint = parts
        self._entries, self._sources = joint
        self.compiled = _made(cards, unary, constant, scope_starts, scopes, starts, tables, numbers)

    def marginals(self, flat: np.ndarray) -> np.ndarray:
        """Marginals of the whole graph from those of the smaller one."""
        whole = np.zeros(len(self._whole.unary))
        whole[self._states] = flat
        return whole

    def states(self, states: np.ndarray) -> np.ndarray:
        """Assignments of the whole graph from those of the smaller one."""
        assert self.compiled is not None
        places = self.compiled.state_starts[:-1] + states
        return (self._states[places] - self._whole.state_starts[:-1]).astype(np.int32)

    def joint(self, beliefs: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """Joint probabilities of the factors of the whole graph, from those of the smaller one and its marginals."""
        whole = np.zeros(int(self._whole.belief_starts[-1]))
        whole[self._entries] = np.concatenate([beliefs, flat, [1.0]])[self._sources]
        return whole


def _strides(shape: tuple[int, ...]) -> np.ndarray:
    return np.cumprod((1, *shape[:0:-1]), dtype=np.int64)[::-1]


@dataclass(frozen=True)
class _Block:
    """Factors that were added together."""

    scopes: np.ndarray  # m × r
    tables: np.ndarray  # m or 1 × shape, log-potentials

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tables.shape[1:]

    def __len__(self) -> int:
        return len(self.scopes)


class FactorGraph(Displayed):
    """Discrete variables and factors over them: p(x) = 1/Z Π_f φ_f(x_f).

    Parameters
    ----------
    cardinalities : array-like of int, or mapping
        Number of states of each variable. A mapping also gives names: ``{name: number of states or list of states}``.
    unary : array-like, mapping or None
        Potentials of single variables: an array (variables × states) if all have equally many states, a list of arrays,
        or ``{variable: potentials}``.
    edges : array-like of shape (m, 2), optional
        Pairs of variables (numbers, or names where there are any).
    pairwise : array-like of shape (m, a, b) or (a, b), optional
        Tables of the edges, or one table for all of them.
    factors : iterable of `Factor`
        Further factors; their variables are numbers or names of this graph.
    names : sequence of hashable, optional
        Names of the variables, if ``cardinalities`` is an array.
    states : sequence of sequences, optional
        Names of the states of each variable.
    log : bool, default=False
        Whether ``unary`` and ``pairwise`` hold log-potentials.

    Attributes
    ----------
    cardinalities : ndarray
        Number of states of each variable.
    names : tuple or None
        Names of the variables.
    states : tuple of tuples, or None
        Names of the states.

    Examples
    --------
    Three variables in a row that like to be equal:

    >>> from mercer.inference import FactorGraph, infer
    >>> graph = FactorGraph([2, 2, 2], unary=[[3, 1], [1, 1], [1, 2]], edges=[[0, 1], [1, 2]],
    ...                     pairwise=[[2.0, 1.0], [1.0, 2.0]])
    >>> graph
    FactorGraph(3 variables, 5 factors)
    >>> infer(graph).marginals[1].round(3)
    array([0.528, 0.472])
    """

    def __init__(
        self,
        cardinalities: Any,
        *,
        unary: Any = None,
        edges: Any = None,
        pairwise: Any = None,
        factors: Iterable[Factor] = (),
        names: Sequence[Hashable] | None = None,
        states: Sequence[Sequence[Hashable]] | None = None,
        log: bool = False,
    ) -> None:
        if isinstance(cardinalities, Mapping):
            if names is not None or states is not None:
                raise ValueError("names and states are given by the mapping: leave them out")
            names, cardinalities, states = _of_mapping(cardinalities)
        self.cardinalities = _check_cardinalities(cardinalities)
        self.names = _check_names(names, len(self.cardinalities))
        self.states = _check_states(states, self.cardinalities)
        self._index = {name: i for i, name in enumerate(self.names)} if self.names is not None else None
        self._integer_names = self.names is not None and _some_integers(self.names)
        self._state_index: dict[int, dict[Hashable, int]] = {}
        self._listed: list[_Block] | None = []
        self._compiled: CompiledGraph | None = None
        self._merged_blocks: list[_Merged] | None = None
        if unary is not None:
            self._add_unary(unary, log)
        if (edges is None) != (pairwise is None):
            raise ValueError("edges and pairwise come together")
        if edges is not None:
            self.add_factors(edges, pairwise, log=log)
        for factor in factors:
            self.add(factor)

    # Scopes, tables and where each of them begins (scope_starts, scopes, table_starts, tables of log-potentials), of a
    # graph that was made of them at once: its blocks are made of them when they are asked for.
    _arrays: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None

    @classmethod
    def _of_arrays(
        cls,
        cardinalities: np.ndarray,
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        names: tuple[Hashable, ...] | None = None,
        states: tuple[tuple[Hashable, ...], ...] | None = None,
    ) -> FactorGraph:
        """A graph of what was checked already."""
        made = cls.__new__(cls)
        made.cardinalities, made.names, made.states = cardinalities, names, states
        made._index = None if names is None else dict(zip(names, range(len(names)), strict=True))
        made._integer_names = names is not None and _some_integers(names)
        made._state_index = {}
        made._arrays, made._listed, made._compiled, made._merged_blocks = arrays, None, None, None
        return made

    @property
    def _blocks(self) -> list[_Block]:
        if self._listed is None:
            assert self._arrays is not None
            scope_starts, scopes, table_starts, tables = self._arrays
            self._listed = []
            for f, (a, b) in enumerate(pairwise(scope_starts.tolist())):
                shape = self.cardinalities[scopes[a:b]].tolist()
                start = int(table_starts[f])
                table = tables[start : start + int(np.prod(shape, dtype=np.int64))].reshape(1, *shape)
                self._listed.append(_Block(scopes[a:b].reshape(1, -1), table))
        return self._listed

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_compiled": None, "_merged_blocks": None}

    # ------------------------------------------------------------------ adding factors

    def add_factors(self, scopes: Any, tables: Any, *, log: bool = False) -> FactorGraph:
        """Add factors of one shape: as many tables as scopes, or one table for all.

        Parameters
        ----------
        scopes : array-like of shape (m, r)
            The r distinct variables of each factor: an array of numbers, or lists of names if the graph has names.
        tables : array-like of shape (m, states…) or (states…)
            Potentials. The i-th axis belongs to the i-th variable of the scope.
        log : bool, default=False
            ``tables`` holds log-potentials.
        """
        places = self._scopes(scopes)
        values = log_potentials("tables", tables, log)
        m, r = places.shape
        if values.ndim == r:
            values = values[None]
        if values.ndim != r + 1 or len(values) not in (1, m):
            raise ValueError(
                f"tables must be of shape (states of each of the {r} variables) or ({m}, states …), got "
                f"{np.shape(tables)}"
            )
        if m:
            self._check_shapes(places, values.shape[1:])
            self._append(_Block(places, np.ascontiguousarray(values)))
        return self

    def add(self, factor: Factor) -> FactorGraph:
        """Add one `Factor`, whose variables are numbers or names of this graph."""
        if not isinstance(factor, Factor):
            raise TypeError(f"factors must be of class Factor, got {type(factor).__name__}")
        scope = np.array([[self.number(v) for v in factor.variables]], np.int32).reshape(1, -1)
        self._check_shapes(scope, factor.shape)
        self._append(_Block(scope, np.ascontiguousarray(factor.log_table[None])))
        return self

    def _append(self, block: _Block) -> None:
        self._blocks.append(block)
        self._arrays = self._compiled = self._merged_blocks = None

    def _merged(self) -> list[_Merged]:
        if self._merged_blocks is None:
            self._merged_blocks = _merge(self._blocks)
        return self._merged_blocks

    def _add_unary(self, unary: Any, log: bool) -> None:
        if isinstance(unary, Mapping):
            for variable, values in unary.items():
                self.add_factors([[variable]], values, log=log)
            return
        if len(unary) != self.n_variables:
            raise ValueError(
                f"unary must hold potentials for each of the {self.n_variables} variables, got {len(unary)}"
            )
        if isinstance(unary, np.ndarray) or len({np.size(row) for row in unary}) == 1:
            self.add_factors(np.arange(self.n_variables)[:, None], np.asarray(unary), log=log)
            return
        for variable, values in enumerate(unary):
            self.add_factors(np.array([[variable]]), values, log=log)

    def _scopes(self, scopes: Any) -> np.ndarray:
        if isinstance(scopes, np.ndarray) and scopes.dtype.kind in "iu":
            places = scopes
        elif self._index is not None:
            rows = [[self.number(v) for v in row] for row in scopes]
            places = np.array(rows, np.int64).reshape(len(rows), -1)
        else:
            places = np.asarray(scopes)
            if places.size == 0:
                places = places.reshape(len(places), -1 if len(places) else 1).astype(np.int64)
        if places.ndim != 2 or places.dtype.kind not in "iu":
            raise ValueError("scopes (edges) must be a table of variables: one row a factor, one column a place")
        wrong = (places < 0) | (places >= self.n_variables)
        if wrong.any():
            row = int(np.flatnonzero(wrong.any(axis=1))[0])
            raise ValueError(
                f"factor {row} has a variable that does not exist: {places[row].tolist()} with "
                f"{self.n_variables} variables"
            )
        if places.shape[1] == 2:
            twice = places[:, 0] == places[:, 1]
        else:
            ordered = np.sort(places, axis=1)
            twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            row = int(np.flatnonzero(twice)[0])
            raise ValueError(f"factor {row} has a variable twice: {places[row].tolist()}")
        return np.ascontiguousarray(places, np.int32)

    def _check_shapes(self, places: np.ndarray, shape: tuple[int, ...]) -> None:
        cards = self.cardinalities[places]
        wrong = (cards != np.array(shape, np.int64)).any(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"factor {row} over the variables {[self.name(i) for i in places[row]]} needs a table of shape "
                f"{tuple(cards[row].tolist())}, got {tuple(shape)}"
            )

    # ------------------------------------------------------------------ variables and states

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return sum(map(len, self._blocks)) if self._arrays is None else len(self._arrays[2])

    def __repr__(self) -> str:
        return f"FactorGraph({self.n_variables} variables, {self.n_factors} factors)"

    def name(self, variable: int) -> Hashable:
        """Return the name of a variable, or its number without names."""
        return int(variable) if self.names is None else self.names[variable]

    def number(self, variable: Hashable) -> int:
        """Return the index of a variable, given by its name, or by its index unless integers are names."""
        if self._index is not None and variable in self._index:
            return self._index[variable]
        if not self._integer_names and _is_number(variable, self.n_variables):
            return int(variable)  # type: ignore[call-overload]
        known = f"variables are 0 to {self.n_variables - 1}" if self.names is None else f"names are {_some(self.names)}"
        raise ValueError(f"there is no variable {variable!r}: {known}")

    def state(self, variable: int, state: Hashable) -> int:
        """Return the index of a state, given by its name, or by its index unless integers are names."""
        named = False
        if self.states is not None:
            index = self._state_index.get(variable)
            if index is None:
                index = self._state_index[variable] = {s: i for i, s in enumerate(self.states[variable])}
            if state in index:
                return index[state]
            named = _some_integers(index)
        card = int(self.cardinalities[variable])
        if not named and _is_number(state, card):
            return int(state)  # type: ignore[call-overload]
        known = f"states are 0 to {card - 1}" if self.states is None else f"states are {_some(self.states[variable])}"
        raise ValueError(f"variable {self.name(variable)!r} has no state {state!r}: {known}")

    def evidence(self, evidence: Any) -> np.ndarray:
        """Return observed states as numbers, −1 where a variable is not observed.

        Parameters
        ----------
        evidence : mapping, array-like or None
            ``{variable: state}``, or one number for each variable with −1 for those that are not observed.
        """
        observed = np.full(self.n_variables, -1, np.int32)
        if evidence is None:
            return observed
        if isinstance(evidence, Mapping):
            for variable, state in evidence.items():
                number = self.number(variable)
                if observed[number] >= 0:
                    raise ValueError(f"evidence names variable {self.name(number)!r} twice")
                observed[number] = self.state(number, state)
            return observed
        given = np.asarray(evidence)
        if given.shape != observed.shape or given.dtype.kind not in "iu":
            raise ValueError(
                f"evidence must be a mapping, or an integer for each of the {self.n_variables} variables (−1: "
                "not observed)"
            )
        wrong = (given < -1) | (given >= self.cardinalities)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"variable {self.name(i)!r} has no state {given[i]}: it has {self.cardinalities[i]} states"
            )
        return given.astype(np.int32)

    # ------------------------------------------------------------------ factors

    @property
    def factors(self) -> list[Factor]:
        """Return all factors, as objects."""
        return [
            Factor([self.name(i) for i in scope], block.tables[min(k, len(block.tables) - 1)], log=True)
            for block in self._blocks
            for k, scope in enumerate(block.scopes)
        ]

    @property
    def blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return scopes and log-potentials of the factors as added; shared tables appear once."""
        return [(block.scopes, block.tables) for block in self._blocks]

    def log_score(self, assignment: Any) -> float:
        """Return Σ log-potentials of one assignment: a mapping, or an array with a state for every variable."""
        states = self.evidence(assignment)
        if (states < 0).any():
            missing = [self.name(int(i)) for i in np.flatnonzero(states < 0)]
            raise ValueError(f"the assignment has no state for {_some(missing)}")
        return float(self.compiled.score(states))

    @property
    def compiled(self) -> CompiledGraph:
        """Return the graph as flat arrays; built on first access and cached until a factor is added."""
        if self._compiled is None and self._arrays is not None:
            self._compiled = _joined(self.cardinalities, None, 0.0, *self._arrays, None)
        elif self._compiled is None:
            self._compiled = _compile(self.cardinalities, self._merged())
        return self._compiled

    def reduced(self, evidence: Any) -> tuple[FactorGraph, np.ndarray]:
        """Return the graph over the unobserved variables, with tables sliced at the evidence.

        Returns
        -------
        graph : FactorGraph
            The same factors, sorted by shape; factors that lose all variables stay as constants.
        kept : ndarray
            Numbers of its variables in this graph.
        """
        observed = self.evidence(evidence)
        kept = np.flatnonzero(observed < 0)
        place = np.full(self.n_variables, -1, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        smaller = FactorGraph(
            self.cardinalities[kept],
            names=None if self.names is None else [self.names[i] for i in kept],
            states=None if self.states is None else [self.states[i] for i in kept],
        )
        for part in self._merged():
            for cut in _cut(part.block, observed):
                smaller._append(_Block(place[cut.scopes], cut.tables))
        return smaller, kept

    # ------------------------------------------------------------------ other forms

    @classmethod
    def from_factors(
        cls, factors: Iterable[Factor], *, states: Mapping[Hashable, Sequence[Hashable]] | None = None
    ) -> FactorGraph:
        """Return a graph over all variables of some factors, in the order in which they appear.

        Examples
        --------
        >>> from mercer.inference import Factor, FactorGraph
        >>> FactorGraph.from_factors([Factor(["a", "b"], [[1, 2], [3, 4]]), Factor(["b"], [1, 0])]).names
        ('a', 'b')
        """
        listed = list(factors)
        cards: dict[Hashable, int] = {}
        for factor in listed:
            for variable, card in zip(factor.variables, factor.shape, strict=True):
                if cards.setdefault(variable, card) != card:
                    raise ValueError(f"{variable!r} has {cards[variable]} states in one factor and {card} in another")
        named: dict[Hashable, Any] = dict(cards)
        for variable, names in (states or {}).items():
            if variable not in cards:
                raise ValueError(f"states names a variable that no factor has: {variable!r}")
            if len(names) != cards[variable]:
                raise ValueError(f"{variable!r} has {cards[variable]} states in its factors, states gives {len(names)}")
            named[variable] = list(names)
        return cls(named, factors=listed)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, node: str = "potential", edge: str = "potential", log: bool = False
    ) -> FactorGraph:
        """Return a pairwise graph from an undirected networkx graph.

        Parameters
        ----------
        graph : networkx.Graph
            Every node has the attribute ``node``: potentials of its states. Every edge has the attribute ``edge``: a
            table whose rows belong to the node that comes first in ``graph.nodes``.
        node, edge : str, default="potential"
            Names of the attributes.
        log : bool, default=False
            The attributes hold log-potentials.
        """
        if graph.is_directed():
            raise ValueError("graph must be undirected; a directed one with tables is a BayesianNetwork")
        place = {name: i for i, name in enumerate(graph.nodes)}
        unary = []
        for name, attributes in graph.nodes(data=True):
            if node not in attributes:
                raise ValueError(f"node {name!r} has no attribute {node!r}")
            unary.append(log_potentials(f"{node!r} of node {name!r}", attributes[node], log).reshape(-1))
        made = cls([len(row) for row in unary], names=list(graph.nodes), unary=dict(enumerate(unary)), log=True)
        by_shape: dict[tuple[int, ...], tuple[list[Any], list[np.ndarray]]] = {}
        for u, v, attributes in graph.edges(data=True):
            if edge not in attributes:
                raise ValueError(f"edge {u!r} - {v!r} has no attribute {edge!r}")
            table = log_potentials(f"{edge!r} of edge {u!r} - {v!r}", attributes[edge], log)
            scope = sorted((place[u], place[v]))
            made._check_shapes(np.array([scope]), table.shape)
            scopes, tables = by_shape.setdefault(table.shape, ([], []))
            scopes.append(scope)
            tables.append(table)
        for scopes, tables in by_shape.values():
            made.add_factors(np.array(scopes), np.array(tables), log=True)
        return made

    def to_networkx(self) -> Any:
        """Return the networkx graph whose edges join variables that share a factor."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.name(i) for i in range(self.n_variables))
        for block in self._blocks:
            for a in range(block.scopes.shape[1]):
                for b in range(a + 1, block.scopes.shape[1]):
                    graph.add_edges_from((self.name(u), self.name(v)) for u, v in block.scopes[:, [a, b]])
        return graph

    @classmethod
    def read_uai(cls, path: str | Path) -> FactorGraph:
        """Read a model in the UAI format (``MARKOV`` or ``BAYES``); an error names the line."""
        from mercer.inference.uai import read_uai

        return read_uai(path)

    def write_uai(self, path: str | Path) -> None:
        """Write the model in the UAI format, as a Markov network."""
        from mercer.inference.uai import write_uai

        write_uai(self, path)


# ---------------------------------------------------------------------------------------------- checks of arguments


def _of_mapping(given: Mapping[Any, Any]) -> tuple[list[Hashable], list[int], list[list[Hashable]] | None]:
    names: list[Hashable] = list(given)
    cards: list[int] = []
    states: list[list[Hashable]] = []
    named = False
    for name, value in given.items():
        if isinstance(value, Integral) and not isinstance(value, bool):
            cards.append(int(value))
            states.append(list(range(int(value))))
        elif isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"variable {name!r} needs a number of states or a list of them, got {value!r}")
        else:
            states.append(list(value))
            cards.append(len(states[-1]))
            named = True
    return names, cards, states if named else None


def _check_cardinalities(given: Any) -> np.ndarray:
    cards = np.asarray(given)
    if cards.size == 0:
        cards = cards.reshape(-1).astype(np.int32)
    if cards.ndim != 1 or cards.dtype.kind not in "iu":
        raise ValueError("cardinalities must be integers: the number of states of each variable")
    if cards.size and cards.min() < 1:
        i = int(np.flatnonzero(cards < 1)[0])
        raise ValueError(f"every variable needs at least one state: variable {i} has {cards[i]}")
    if len(cards) >= 1 << 31 or (cards.size and cards.max() >= 1 << 31):
        raise ValueError("variables and states must be fewer than 2**31")
    return cards.astype(np.int32)


def _check_names(names: Sequence[Hashable] | None, n: int) -> tuple[Hashable, ...] | None:
    if names is None:
        return None
    listed = tuple(names)
    if len(listed) != n:
        raise ValueError(f"names must be as many as variables, {n}, got {len(listed)}")
    if len(set(listed)) != n:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"names must be different: {twice!r} appears twice")
    return listed


def _check_states(states: Any, cards: np.ndarray) -> tuple[tuple[Hashable, ...], ...] | None:
    if states is None:
        return None
    listed = tuple(tuple(row) for row in states)
    if len(listed) != len(cards):
        raise ValueError(f"states must be given for each of the {len(cards)} variables, got {len(listed)}")
    for i, row in enumerate(listed):
        if len(row) != cards[i]:
            raise ValueError(f"variable {i} has {cards[i]} states, states names {len(row)}")
        if len(set(row)) != len(row):
            raise ValueError(f"the states of variable {i} must be different, got {list(row)}")
    return listed


def _some_integers(names: Iterable[Hashable]) -> bool:
    return any(type(name) is not str and isinstance(name, Integral) for name in names)


def _is_number(thing: Any, below: int) -> bool:
    return isinstance(thing, Integral) and not isinstance(thing, bool) and 0 <= int(thing) < below


def _some(things: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(map(repr, things[:most]))
    return shown if len(things) <= most else f"{shown}, … ({len(things)} in all)"


# ---------------------------------------------------------------------------------------------- compiling and cutting


@dataclass(frozen=True)
class _Merged:
    """Blocks of one shape as one: those with tables of their own together, one with a shared table by itself."""

    block: _Block
    members: list[int]  # numbers of the blocks
    numbers: np.ndarray  # of the factors


def _merge(blocks: list[_Block]) -> list[_Merged]:
    firsts = np.concatenate([[0], np.cumsum([len(block) for block in blocks], dtype=np.int64)])
    keys: dict[Any, list[int]] = {}
    for b, block in enumerate(blocks):
        shared = len(block) > len(block.tables)
        keys.setdefault((len(block.shape), block.shape, b if shared else -1), []).append(b)
    merged = []
    for _, members in sorted(keys.items()):
        whole = blocks[members[0]]
        if len(members) > 1:
            whole = _Block(
                np.concatenate([blocks[b].scopes for b in members]), np.concatenate([blocks[b].tables for b in members])
            )
        numbers = np.concatenate([np.arange(firsts[b], firsts[b + 1]) for b in members])
        merged.append(_Merged(whole, members, numbers))
    return merged


def _compile(cards: np.ndarray, merged: list[_Merged]) -> CompiledGraph:
    state_starts = np.concatenate([[0], np.cumsum(cards, dtype=np.int64)]).astype(np.int64)
    if state_starts[-1] > _MOST_ENTRIES:
        raise ValueError("the variables have too many states together")
    unary, constant = np.zeros(int(state_starts[-1])), 0.0
    by_shape: dict[tuple[int, ...], list[_Merged]] = {}
    for part in merged:
        block = part.block
        if len(block.shape) == 0:
            constant += float(block.tables.sum()) * (len(block) // len(block.tables))
        elif len(block.shape) == 1:
            places = state_starts[block.scopes] + np.arange(block.shape[0])
            if (np.diff(block.scopes[:, 0]) > 0).all():  # each variable once
                unary[places] += block.tables
            else:
                np.add.at(unary, places, block.tables)
        else:
            by_shape.setdefault(block.shape, []).append(part)
    parts = [part for same in by_shape.values() for part in same]
    tables, starts, filled = [], [], 0
    for part in parts:
        block, size = part.block, int(np.prod(part.block.shape))
        steps = np.zeros(len(block), np.int64) if len(block) > len(block.tables) else np.arange(len(block))
        starts.append(filled + size * steps)
        tables.append(block.tables.reshape(-1))
        filled += len(block.tables) * size
    none = [np.zeros(0, np.int64)]
    arities = np.concatenate([np.full(len(part.block), len(part.block.shape)) for part in parts] or none)
    return _made(
        cards,
        unary,
        constant,
        np.concatenate([[0], np.cumsum(arities)]).astype(np.int64),
        np.concatenate([part.block.scopes.reshape(-1) for part in parts] or none).astype(np.int32),
        np.concatenate(starts or none).astype(np.int64),
        np.concatenate(tables or [np.zeros(0)]),
        np.concatenate([part.numbers for part in parts] or none),
    )


def _made(
    cards: np.ndarray,
    unary: np.ndarray,
    constant: float,
    scope_starts: np.ndarray,
    scopes: np.ndarray,
    table_starts: np.ndarray,
    tables: np.ndarray,
    numbers: np.ndarray,
) -> CompiledGraph:
    core = _core.inference.FlatGraph(cards, unary, constant, scope_starts, scopes, table_starts, tables)
    for array in (unary, tables, scopes, scope_starts, table_starts, numbers):
        array.flags.writeable = False
    return CompiledGraph(
        cards, core.state_starts, unary, constant, scope_starts, scopes, table_starts, tables, numbers, core
    )  # fmt: skip


def _joined(cards: np.ndarray, *arrays: Any) -> CompiledGraph:
    """The graph of factors over any number of variables, at what is observed; `_core.inference.gathered` says how."""
    return _made(*_core.inference.gathered(cards, *arrays))


def _cut(block: _Block, observed: np.ndarray) -> Iterable[_Block]:
    """The block at the evidence: factors with the same observed places stay together."""
    seen = observed[block.scopes]
    known = seen >= 0
    if not known.any():
        yield block
        return
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which == number)
        left = np.flatnonzero(~pattern)
        tables = block.tables[rows] if len(block.tables) > 1 else block.tables
        if pattern.any():
            source = rows * 0 if len(block.tables) == 1 else np.arange(len(rows))
            moved = np.moveaxis(tables, 1 + np.flatnonzero(pattern), range(1, 1 + int(pattern.sum())))
            tables = moved[(source, *seen[rows][:, pattern].T)]
        yield _Block(np.ascontiguousarray(block.scopes[rows][:, left]), np.ascontiguousarray(tables))


def grid_edges(shape: tuple[int, int], connectivity: int = 4) -> np.ndarray:
    """Return neighbouring pixels of a grid, as pairs of numbers in C order.

    Parameters
    ----------
    shape : (rows, columns)
    connectivity : {4, 8}, default=4
        8 also joins diagonal neighbours.

    Returns
    -------
    ndarray of shape (m, 2)
        Horizontal pairs first, then vertical ones, then the two diagonals; the lower number first.

    Examples
    --------
    >>> from mercer.inference import grid_edges
    >>> grid_edges((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    if len(shape) != 2 or any(isinstance(s, bool) or not isinstance(s, Integral) or s < 1 for s in shape):
        raise ValueError(f"shape must be two integers of at least 1: rows and columns, got {shape!r}")
    if connectivity not in (4, 8):
        raise ValueError(f"connectivity must be 4 or 8, got {connectivity!r}")
    pixel = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [(pixel[:, :-1], pixel[:, 1:]), (pixel[:-1], pixel[1:])]
    if connectivity == 8:
        pairs += [(pixel[:-1, :-1], pixel[1:, 1:]), (pixel[:-1, 1:], pixel[1:, :-1])]
    return np.concatenate([np.stack([a.reshape(-1), b.reshape(-1)], axis=1) for a, b in pairs])
