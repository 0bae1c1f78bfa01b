"""Markov networks: p(x) = 1/Z Π_c φ_c(x_c) over an undirected graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from mercer._display import Displayed
from mercer.inference.factor import Factor
from mercer.inference.graph import FactorGraph, _some

__all__ = ["MarkovNetwork"]


class MarkovNetwork(Displayed):
    """Potentials over sets of named variables; variables that share a factor are neighbours.

    Parameters
    ----------
    factors : iterable of `Factor`
        Their scopes may be any sets of variables, not only maximal cliques.
    states : mapping, optional
        ``{variable: names of its states}``.

    Attributes
    ----------
    factors : list of Factor
    names : tuple
        The variables, in the order in which they appear (those of ``states`` first).
    states : dict
        Names of the states of each variable.

    Examples
    --------
    >>> from mercer.inference import Factor, MarkovNetwork, infer
    >>> equal = [[3.0, 1.0], [1.0, 3.0]]
    >>> net = MarkovNetwork([Factor(["a", "b"], equal), Factor(["b", "c"], equal)])
    >>> net.markov_blanket("a"), net.separated(["a"], ["c"], given=["b"])
    ({'b'}, True)
    >>> infer(net, evidence={"a": 0}).marginals["c"]
    array([0.625, 0.375])
    """

    def __init__(self, factors: Iterable[Factor], *, states: Mapping[Any, Sequence[Hashable]] | None = None) -> None:
        self.factors = list(factors)
        wrong = [f for f in self.factors if not isinstance(f, Factor)]
        if wrong:
            raise TypeError(f"factors must be of class Factor, got {type(wrong[0]).__name__}")
        cards: dict[Hashable, int] = {v: len(row) for v, row in (states or {}).items()}
        for factor in self.factors:
            for variable, card in zip(factor.variables, factor.shape, strict=True):
                if cards.setdefault(variable, card) != card:
                    raise ValueError(f"{variable!r} has {cards[variable]} states, and {card} in {factor!r}")
        self.names: tuple[Hashable, ...] = tuple(cards)
        self.states: dict[Hashable, tuple[Hashable, ...]] = {
            v: tuple(states[v]) if states is not None and v in states else tuple(range(card))
            for v, card in cards.items()
        }

    def __repr__(self) -> str:
        return f"MarkovNetwork({len(self.names)} variables, {len(self.factors)} factors)"

    @cached_property
    def factor_graph(self) -> FactorGraph:
        """Return the network as a `FactorGraph`."""
        return FactorGraph({name: list(states) for name, states in self.states.items()}, factors=self.factors)

    @classmethod
    def from_factor_graph(cls, graph: FactorGraph) -> MarkovNetwork:
        """Return the network of a factor graph; without names, variables are named by their numbers."""
        states = {
            graph.name(i): tuple(range(int(card))) if graph.states is None else graph.states[i]
            for i, card in enumerate(graph.cardinalities)
        }
        return cls(graph.factors, states=states)

    @cached_property
    def neighbours(self) -> dict[Hashable, set[Hashable]]:
        """Return the neighbours of each variable: those that share a factor with it."""
        adjacent: dict[Hashable, set[Hashable]] = {name: set() for name in self.names}
        for factor in self.factors:
            for a, b in combinations(factor.variables, 2):
                adjacent[a].add(b)
                adjacent[b].add(a)
        return adjacent

    @property
    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """Return pairs of neighbours, in the order of ``names``."""
        place = {name: i for i, name in enumerate(self.names)}
        pairs = {(place[a], place[b]) for a in self.names for b in self.neighbours[a] if place[a] < place[b]}
        return [(self.names[a], self.names[b]) for a, b in sorted(pairs)]

    def markov_blanket(self, variable: Hashable) -> set[Hashable]:
        """Return the Markov blanket of a variable: its neighbours."""
        if variable not in self.neighbours:
            raise ValueError(f"there is no variable {variable!r}: names are {_some(self.names)}")
        return set(self.neighbours[variable])

    def separated(self, a: Iterable[Hashable], b: Iterable[Hashable], given: Iterable[Hashable] = ()) -> bool:
        """Return whether ``given`` separates ``a`` and ``b``; they are then independent given it."""
        sets = []
        for name, values in (("a", a), ("b", b), ("given", given)):
            if isinstance(values, str):
                raise ValueError(f"{name} must be a collection of variables, got the string {values!r}")
            sets.append(set(values))
            unknown = [v for v in sets[-1] if v not in self.neighbours]
            if unknown:
                raise ValueError(f"{name} has variables that are not in the network: {_some(unknown)}")
        if sets[0] & sets[1] or sets[0] & sets[2] or sets[1] & sets[2]:
            raise ValueError("a, b and given must have no variable in common")
        reached, waiting = set(sets[0]), list(sets[0])
        while waiting:
            for v in self.neighbours[waiting.pop()] - reached - sets[2]:
                reached.add(v)
                waiting.append(v)
        return not reached & sets[1]

    def log_score(self, assignment: Any) -> float:
        """Return Σ log-potentials of one complete assignment."""
        return self.factor_graph.log_score(assignment)

    def log_partition(self) -> float:
        """Return log Z, exactly."""
        from mercer.inference.registry import infer

        return float(infer(self, "junction-tree").log_partition)
