"""Bayesian networks: p(x) = Π_i p(x_i | pa_i) over a directed graph without cycles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mercer._display import Displayed
from mercer._validation import check_count
from mercer.inference.factor import Factor
from mercer.inference.graph import FactorGraph, _check_cardinalities, _check_states, _of_mapping, _some
from mercer.inference.markov import MarkovNetwork

__all__ = ["BayesianNetwork"]

_ROW_TOLERANCE = 1e-6


class BayesianNetwork(Displayed):
    """Conditional tables p(x_i | parents) over a directed graph without cycles.

    Parameters
    ----------
    states : mapping
        ``{variable: number of states, or list of their names}``.
    parents : mapping
        ``{variable: list of its parents}``; variables without parents may be omitted.
    tables : mapping
        ``{variable: array}`` of shape (states of each parent …, states of the variable): the last axis sums to 1.

    Attributes
    ----------
    names : tuple
        The variables.
    states : dict
        Names of the states of each variable.
    parents : dict
        Parents of each variable.
    tables : dict
        Conditional tables.

    Examples
    --------
    Grass is wet after rain, and Tracey's also after the sprinkler ran:

    >>> from mercer.inference import BayesianNetwork, infer
    >>> net = BayesianNetwork(
    ...     {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "tracey": ["dry", "wet"], "jack": ["dry", "wet"]},
    ...     {"tracey": ["rain", "sprinkler"], "jack": ["rain"]},
    ...     {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "jack": [[0.8, 0.2], [0.0, 1.0]],
    ...      "tracey": [[[1.0, 0.0], [0.1, 0.9]], [[0.0, 1.0], [0.0, 1.0]]]})
    >>> round(infer(net, evidence={"tracey": "wet"}).probabilities("sprinkler")["on"], 4)
    0.3382
    >>> round(infer(net, evidence={"tracey": "wet", "jack": "wet"}).probabilities("sprinkler")["on"], 4)
    0.1604
    """

    def __init__(
        self, states: Mapping[Any, Any], parents: Mapping[Any, Sequence[Hashable]], tables: Mapping[Any, Any]
    ) -> None:
        names, cards, listed = _of_mapping(states)
        cardinalities = _check_cardinalities(cards)
        checked = _check_states([range(n) for n in cards] if listed is None else listed, cardinalities)
        assert checked is not None
        self.names: tuple[Hashable, ...] = tuple(names)
        self.states: dict[Hashable, tuple[Hashable, ...]] = dict(zip(names, checked, strict=True))
        self.parents = self._check_parents(parents)
        self._order = _topological(self.parents)
        self._lay_out(*self._check_tables(tables, cardinalities))

    @classmethod
    def _of_arrays(
        cls,
        names: list[Hashable],
        states: list[tuple[Hashable, ...]],
        parents: list[tuple[Hashable, ...]],
        flat: np.ndarray,
        starts: np.ndarray,
    ) -> BayesianNetwork:
        """A network of what was checked already: all tables end to end, and where each begins."""
        made = cls.__new__(cls)
        made.names = tuple(names)
        made.states = dict(zip(names, states, strict=True))
        made.parents = dict(zip(names, parents, strict=True))
        made._lay_out(flat, starts)
        return made

    def _lay_out(self, flat: np.ndarray, starts: np.ndarray) -> None:
        """Make the tables, which are read-only and lie end to end."""
        flat.flags.writeable = False
        sizes = {name: len(states) for name, states in self.states.items()}
        self.tables: dict[Hashable, np.ndarray] = {}
        for (name, parents), start in zip(self.parents.items(), starts.tolist(), strict=True):
            shape = [sizes[v] for v in parents]
            shape.append(sizes[name])
            self.tables[name] = flat[start : start + prod(shape)].reshape(shape)
        self._flat = flat, starts

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_flat"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        starts = [0, *accumulate(table.size for table in self.tables.values())]
        self._lay_out(
            np.concatenate([np.zeros(0), *map(np.ravel, self.tables.values())]), np.array(starts[:-1], np.int64)
        )

    @cached_property
    def _order(self) -> list[Hashable]:
        return _topological(self.parents)

    def _check_parents(self, parents: Mapping[Any, Sequence[Hashable]]) -> dict[Hashable, tuple[Hashable, ...]]:
        unknown = [v for v in parents if v not in self.states]
        if unknown:
            raise ValueError(f"parents names variables that have no states: {_some(unknown)}")
        checked = {}
        for name in self.names:
            given = parents.get(name, ())
            if isinstance(given, str):
                raise ValueError(f"the parents of {name!r} must be a list of variables, got the string {given!r}")
            listed = tuple(given)
            wrong = [v for v in listed if v not in self.states]
            if wrong:
                raise ValueError(f"{name!r} has parents that are no variables: {_some(wrong)}")
            if len(set(listed)) != len(listed) or name in listed:
                raise ValueError(
                    f"the parents of {name!r} must be different from each other and from it, got {list(listed)}"
                )
            checked[name] = listed
        return checked

    def _check_tables(self, tables: Mapping[Any, Any], cardinalities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All tables end to end, and where each begins."""
        unknown = [v for v in tables if v not in self.states]
        if unknown:
            raise ValueError(f"tables names variables that have no states: {_some(unknown)}")
        arrays, sizes = [], []
        for name in self.names:
            if name not in tables:
                raise ValueError(f"{name!r} has no table")
            table = np.asarray(tables[name], np.float64)
            shape = self._shape(name)
            if table.shape != shape:
                family = ", ".join(map(str, (*self.parents[name], name)))
                raise ValueError(f"the table of {name!r} must be of shape {shape}, for {family}, got {table.shape}")
            arrays.append(table.reshape(-1))
            sizes.append(table.size)
        starts = np.array([0, *accumulate(sizes)][:-1], np.int64)
        if not arrays:
            return np.zeros(0), starts
        flat = np.concatenate(arrays)
        lengths = np.repeat(cardinalities, np.array(sizes) // cardinalities)
        sums = np.add.reduceat(flat, lengths.cumsum() - lengths)
        if not (flat.min() >= 0 and (abs(sums - 1) <= _ROW_TOLERANCE).all()):  # false for what is not finite, too
            raise self._wrong_table(arrays)
        flat /= np.repeat(sums, lengths)
        return flat, starts

    def _shape(self, name: Hashable) -> tuple[int, ...]:
        return tuple([len(self.states[v]) for v in (*self.parents[name], name)])

    def _wrong_table(self, arrays: list[np.ndarray]) -> ValueError:
        """The error for the first table whose rows are not probabilities."""
        for name, values in zip(self.names, arrays, strict=True):
            if not np.isfinite(values).all() or (values < 0).any():
                return ValueError(f"the table of {name!r} must hold probabilities: finite and at least 0")
            sums = values.reshape(self._shape(name)).sum(axis=-1)
            if (abs(sums - 1) > _ROW_TOLERANCE).any():
                place = np.unravel_index(int(abs(sums - 1).argmax()), sums.shape)
                at = ", ".join(f"{v}={self.states[v][k]}" for v, k in zip(self.parents[name], place, strict=True))
                return ValueError(
                    f"the probabilities of {name!r}{f' given {at}' if at else ''} must sum to 1, they sum to "
                    f"{sums[place]:g}"
                )
        return ValueError("the rows of the tables must sum to 1")  # by another order of summing

    def __repr__(self) -> str:
        arcs = sum(map(len, self.parents.values()))
        return f"BayesianNetwork({len(self.names)} variables, {arcs} arcs)"

    # ------------------------------------------------------------------ probabilities

    @cached_property
    def factors(self) -> list[Factor]:
        """Return the conditional tables as factors."""
        return [Factor((*self.parents[name], name), self.tables[name]) for name in self.names]

    @cached_property
    def factor_graph(self) -> FactorGraph:
        """Return the network as a `FactorGraph`: log Z is 0, or with evidence log p(evidence)."""
        place = dict(zip(self.names, range(len(self.names)), strict=True))
        scopes: list[int] = []
        scope_starts = [0]
        for i, name in enumerate(self.names):
            scopes += [place[v] for v in self.parents[name]]
            scopes.append(i)
            scope_starts.append(len(scopes))
        flat, starts = self._flat
        with np.errstate(divide="ignore"):
            logs = np.log(flat)
        return FactorGraph._of_arrays(
            np.array([len(states) for states in self.states.values()], np.int32),
            (np.array(scope_starts, np.int64), np.array(scopes, np.int32), starts, logs),
            self.names,
            tuple(self.states.values()),
        )

    def log_probability(self, assignment: Any) -> float:
        """Return log p(x) of one complete assignment."""
        return self.factor_graph.log_score(assignment)

    def _ancestral_factors(self, variables: set[Hashable]) -> list[Factor]:
        kept = self._ancestors(variables)
        return [factor for factor in self.factors if factor.variables[-1] in kept]

    def _ancestors(self, variables: Iterable[Hashable]) -> set[Hashable]:
        """The variables with all their ancestors."""
        ancestors: set[Hashable] = set()
        waiting = list(variables)
        while waiting:
            name = waiting.pop()
            if name not in ancestors:
                ancestors.add(name)
                waiting.extend(self.parents[name])
        return ancestors

    # ------------------------------------------------------------------ the graph

    def moralised(self) -> MarkovNetwork:
        """Return the Markov network with the same distribution: parents of a common child are joined, arrows dropped.

        Examples
        --------
        >>> from mercer.inference import BayesianNetwork
        >>> net = BayesianNetwork({"a": 2, "b": 2, "c": 2}, {"c": ["a", "b"]},
        ...                       {"a": [.5, .5], "b": [.5, .5], "c": [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]})
        >>> net.moralised().edges
        [('a', 'b'), ('a', 'c'), ('b', 'c')]
        """
        return MarkovNetwork(self.factors, states=self.states)

    def d_separated(self, a: Iterable[Hashable], b: Iterable[Hashable], given: Iterable[Hashable] = ()) -> bool:
        """Return whether the graph makes the variables ``a`` and ``b`` independent given others.

        Every path between them is blocked: at a non-collider in ``given``, or at a collider that neither is in
        ``given`` nor has a descendant in it. Equivalently, ``given`` separates them in the moral graph of all
        ancestors.

        Examples
        --------
        >>> from mercer.inference import BayesianNetwork
        >>> coin = [0.5, 0.5]
        >>> net = BayesianNetwork({"a": 2, "b": 2, "c": 2}, {"c": ["a", "b"]},
        ...                       {"a": coin, "b": coin, "c": [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]})
        >>> net.d_separated(["a"], ["b"]), net.d_separated(["a"], ["b"], given=["c"])
        (True, False)
        """
        sets = [self._check_set(name, given_set) for name, given_set in (("a", a), ("b", b), ("given", given))]
        if sets[0] & sets[1] or sets[0] & sets[2] or sets[1] & sets[2]:
            raise ValueError("a, b and given must have no variable in common")
        ancestors = self._ancestors(sets[0] | sets[1] | sets[2])
        neighbours: dict[Hashable, set[Hashable]] = {v: set() for v in ancestors}
        for child in ancestors:
            family = (child, *self.parents[child])
            for v in family:
                neighbours[v].update(w for w in family if w != v)
        reached, waiting = set(sets[0]), list(sets[0])
        while waiting:
            for v in neighbours[waiting.pop()] - reached - sets[2]:
                reached.add(v)
                waiting.append(v)
        return not reached & sets[1]

    def _check_set(self, name: str, given: Iterable[Hashable]) -> set[Hashable]:
        if isinstance(given, str):
            raise ValueError(f"{name} must be a collection of variables, got the string {given!r}")
        listed = set(given)
        unknown = [v for v in listed if v not in self.states]
        if unknown:
            raise ValueError(f"{name} has variables that are not in the network: {_some(unknown)}")
        return listed

    def to_networkx(self) -> Any:
        """Return the graph as a networkx DiGraph, with arcs from parents to children."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((parent, name) for name in self.names for parent in self.parents[name])
        return graph

    # ------------------------------------------------------------------ samples and data

    def sample(self, n_samples: int, *, random_state: Any = None) -> np.ndarray:
        """Draw assignments, parents before children.

        Parameters
        ----------
        n_samples : int
        random_state : int, Generator or None

        Returns
        -------
        ndarray of shape (n_samples, variables)
            State numbers, columns in the order of ``names``.
        """
        check_count("n_samples", n_samples, 0)
        rng = np.random.default_rng(random_state)
        column = {name: i for i, name in enumerate(self.names)}
        drawn = np.zeros((n_samples, len(self.names)), np.int32)
        for name in self._order:
            rows = self.tables[name][tuple(drawn[:, column[v]] for v in self.parents[name])]
            below = np.broadcast_to(rows.cumsum(axis=-1), (n_samples, len(self.states[name])))
            states = (rng.random(n_samples)[:, None] >= below).sum(axis=1)
            last = np.broadcast_to((rows > 0).cumsum(axis=-1).argmax(axis=-1), n_samples)
            drawn[:, column[name]] = np.minimum(states, last)  # rounding never makes an impossible state
        return drawn

    @classmethod
    def fit(
        cls,
        states: Mapping[Any, Any],
        parents: Mapping[Any, Sequence[Hashable]],
        data: Any,
        *,
        pseudo_count: float = 0.0,
    ) -> BayesianNetwork:
        """Return tables from complete data: counts, divided by their sum for each combination of parents.

        Parameters
        ----------
        states, parents : mapping
            As for the class.
        data : array-like of shape (n, variables), or mapping
            State numbers, columns in the order of ``states``; or ``{variable: column}`` with state names or numbers.
        pseudo_count : float, default=0
            Added to every count. With 0, a combination of parents that does not occur in the data gets equal
            probabilities.

        Examples
        --------
        >>> from mercer.inference import BayesianNetwork
        >>> BayesianNetwork.fit({"a": 2, "b": 2}, {"b": ["a"]}, [[0, 0], [0, 1], [1, 1]]).tables["b"]
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        if not np.isfinite(pseudo_count) or pseudo_count < 0:
            raise ValueError(f"pseudo_count must be a finite number of at least 0, got {pseudo_count!r}")
        graph = FactorGraph(dict(states))
        assert graph.names is not None
        columns = _columns(graph, data)
        tables = {}
        for i, name in enumerate(graph.names):
            given = tuple(parents.get(name, ()))
            family = [*(graph.number(v) for v in given), i]
            shape = tuple(int(graph.cardinalities[v]) for v in family)
            counts = np.full(shape, float(pseudo_count))
            np.add.at(counts, tuple(columns[:, v] for v in family), 1.0)
            total = counts.sum(axis=-1, keepdims=True)
            tables[name] = np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / shape[-1])
        return cls(states, parents, tables)

    # ------------------------------------------------------------------ other forms

    @classmethod
    def from_markov(cls, network: MarkovNetwork) -> BayesianNetwork:
        """Return a Bayesian network with the same distribution, along the elimination order of a triangulated graph.

        The parents of a variable are its neighbours when it is eliminated, so exact inference must be affordable.
        """
        from mercer.inference.junction import JunctionTree

        tree = JunctionTree(network)
        parents, tables = {}, {}
        for name, later in tree.elimination:
            parents[name] = later
            joint = tree.marginal([*later, name]).table
            total = joint.sum(axis=-1, keepdims=True)
            tables[name] = np.where(total > 0, joint / np.where(total > 0, total, 1.0), 1.0 / joint.shape[-1])
        return cls(network.states, parents, tables)

    @classmethod
    def read(cls, path: str | Path) -> BayesianNetwork:
        """Read a network in the BIF format; an error names the line."""
        from mercer.inference.bif import read_bif

        return read_bif(path)

    def write(self, path: str | Path) -> None:
        """Write the network in the BIF format."""
        from mercer.inference.bif import write_bif

        write_bif(self, path)


def _topological(parents: Mapping[Hashable, tuple[Hashable, ...]]) -> list[Hashable]:
    waiting = {name: len(given) for name, given in parents.items()}
    children: dict[Hashable, list[Hashable]] = {name: [] for name in parents}
    for name, given in parents.items():
        for parent in given:
            children[parent].append(name)
    ready = [name for name, count in waiting.items() if not count]
    for name in ready:
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(ready) < len(parents):
        raise ValueError(f"the arcs form a cycle among {_some([v for v, count in waiting.items() if count])}")
    return ready


def _columns(graph: FactorGraph, data: Any) -> np.ndarray:
    """Complete data as numbers of states, one column a variable."""
    assert graph.names is not None
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        missing = [name for name in graph.names if name not in data]
        if missing:
            raise ValueError(f"data has no column for {_some(missing)}")
        rows = [[graph.state(i, s) for s in data[name]] for i, name in enumerate(graph.names)]
        if len({len(row) for row in rows}) > 1:
            raise ValueError("the columns of data must be equally long")
        return np.array(rows, np.int64).reshape(len(rows), -1).T
    columns = np.asarray(data)
    if columns.ndim != 2 or columns.shape[1] != graph.n_variables or columns.dtype.kind not in "iu":
        raise ValueError(
            f"data must hold integers of shape (n, {graph.n_variables}), got {columns.dtype} of shape {columns.shape}"
        )
    if columns.size and ((columns < 0) | (columns >= graph.cardinalities)).any():
        raise ValueError("data must hold numbers of states: from 0 to the number of states minus 1")
    return columns
