"""Factors: nonnegative tables over a few discrete variables, and their algebra.

    (φ ψ)(x ∪ y) = φ(x) ψ(y),   (Σ_v φ)(x \\ v) = Σ_v φ(x),   (max_v φ)(x \\ v) = max_v φ(x)

Factors take potentials and store logarithms, so products of many factors neither overflow nor underflow. A potential of
0 is an exact −inf.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["Factor", "log_potentials", "log_sum_exp"]


def log_potentials(name: str, table: Any, log: bool) -> np.ndarray:
    """Return a checked float64 array of log-potentials: ``table`` itself, or its logarithm."""
    try:
        values = np.array(table, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers") from error
    if np.isnan(values).any():
        raise ValueError(f"{name} must not hold NaN")
    if log:
        if (values == np.inf).any():
            raise ValueError(f"{name} holds log-potentials, which must be below +inf")
        return values
    if (values < 0).any():
        raise ValueError(
            f"{name} must hold potentials of at least 0, got {values.min():g} (log=True for log-potentials)"
        )
    if (values == np.inf).any():
        raise ValueError(f"{name} must be finite")
    with np.errstate(divide="ignore"):
        return np.log(values, out=values)


def log_sum_exp(values: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """Return ``log Σ exp`` over the axes; −inf if all terms are."""
    if not axis:
        return values
    top = values.max(axis=axis, keepdims=True)
    base = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - base).sum(axis=axis))
    return total + base.reshape(total.shape)


class Factor:
    """A table of potentials over variables: φ(x₁, …, x_r) ≥ 0.

    Parameters
    ----------
    variables : sequence of hashable
        Distinct names of the variables, one for each axis of the table.
    table : array-like
        Potentials; the length of an axis is the number of states of its variable. At most 64 axes (NumPy's limit).
    log : bool, default=False
        The table holds log-potentials, where −inf is a potential of 0.

    Attributes
    ----------
    variables : tuple
        Names of the variables.
    log_table : ndarray
        The logarithms of the potentials.

    Examples
    --------
    >>> from mercer.inference import Factor
    >>> a = Factor(["x", "y"], [[0.1, 0.2], [0.05, 0.3]])
    >>> b = Factor(["y"], [2.0, 1.0])
    >>> (a * b).sum_out(["y"]).table.round(3)
    array([0.4, 0.4])
    >>> a.reduce({"x": 1}).table.round(3)
    array([0.05, 0.3 ])
    """

    def __init__(self, variables: Sequence[Hashable], table: Any, *, log: bool = False) -> None:
        if isinstance(variables, str):
            raise ValueError(f"variables must be a sequence of names, got the string {variables!r}")
        self.variables: tuple[Hashable, ...] = tuple(variables)
        self.log_table = log_potentials("table", table, log)
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"variables must be different from each other, got {list(self.variables)}")
        if self.log_table.ndim != len(self.variables):
            raise ValueError(
                f"table must have one axis for each of the {len(self.variables)} variables, "
                f"got an array of shape {self.log_table.shape}"
            )
        if 0 in self.log_table.shape:
            raise ValueError(f"every variable needs at least one state, got a table of shape {self.log_table.shape}")

    @property
    def table(self) -> np.ndarray:
        """Return the potentials."""
        return np.exp(self.log_table)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the numbers of states of the variables."""
        return self.log_table.shape

    def __repr__(self) -> str:
        inside = ", ".join(f"{v!r}: {c}" for v, c in zip(self.variables, self.shape, strict=True))
        return f"Factor({{{inside}}})"

    # ------------------------------------------------------------------ products

    def product(self, other: Factor) -> Factor:
        """Return φ ψ, over the variables of both; ``*`` does the same."""
        mine, theirs, names = _aligned(self, other)
        return Factor(names, mine + theirs, log=True)

    def divide(self, other: Factor) -> Factor:
        """Return φ / ψ with 0 / 0 = 0; ``/`` does the same. ψ must be over variables of φ."""
        unknown = [v for v in other.variables if v not in self.variables]
        if unknown:
            raise ValueError(f"the divisor has variables that the factor has not: {unknown}")
        mine, theirs, names = _aligned(self, other)
        if (np.isneginf(theirs) & ~np.isneginf(mine)).any():
            raise ValueError("division of a positive potential by 0")
        zero = np.isneginf(mine)
        return Factor(names, np.where(zero, -np.inf, mine - np.where(np.isneginf(theirs), 0.0, theirs)), log=True)

    __mul__ = product
    __truediv__ = divide

    # ------------------------------------------------------------------ fewer variables

    def sum_out(self, variables: Iterable[Hashable]) -> Factor:
        """Return Σ over all states of these variables."""
        axes, left = self._split(variables)
        return Factor(left, log_sum_exp(self.log_table, axes), log=True)

    def max_out(self, variables: Iterable[Hashable]) -> Factor:
        """Return the maximum over all states of these variables."""
        axes, left = self._split(variables)
        return Factor(left, self.log_table.max(axis=axes) if axes else self.log_table, log=True)

    def reduce(self, evidence: Mapping[Hashable, int]) -> Factor:
        """Return the slice at the given states (numbers); variables not in the factor are ignored."""
        place: list[Any] = [slice(None)] * len(self.variables)
        for axis, variable in enumerate(self.variables):
            if variable in evidence:
                state = evidence[variable]
                if isinstance(state, bool) or not isinstance(state, Integral) or not 0 <= state < self.shape[axis]:
                    raise ValueError(
                        f"the state of {variable!r} must be an integer from 0 to {self.shape[axis] - 1}, got {state!r}"
                    )
                place[axis] = int(state)
        return Factor([v for v in self.variables if v not in evidence], self.log_table[tuple(place)], log=True)

    def normalized(self) -> Factor:
        """Return the factor divided by the sum of its potentials."""
        total = log_sum_exp(self.log_table, tuple(range(self.log_table.ndim)))
        if np.isneginf(total):
            raise ValueError("all potentials are 0: there is nothing to normalise")
        return Factor(self.variables, self.log_table - total, log=True)

    def transposed(self, variables: Sequence[Hashable]) -> Factor:
        """Return the factor with its variables in a different order."""
        if sorted(map(repr, variables)) != sorted(map(repr, self.variables)):
            raise ValueError(f"variables must be those of the factor, {list(self.variables)}, got {list(variables)}")
        return Factor(variables, self.log_table.transpose([self.variables.index(v) for v in variables]), log=True)

    def _split(self, variables: Iterable[Hashable]) -> tuple[tuple[int, ...], list[Hashable]]:
        if isinstance(variables, str):
            raise ValueError(f"variables must be a collection of names, got the string {variables!r}")
        gone = set(variables)
        unknown = gone - set(self.variables)
        if unknown:
            raise ValueError(f"the factor has no variables {sorted(map(repr, unknown))}, only {list(self.variables)}")
        axes = tuple(axis for axis, v in enumerate(self.variables) if v in gone)
        return axes, [v for v in self.variables if v not in gone]


def _aligned(a: Factor, b: Factor) -> tuple[np.ndarray, np.ndarray, tuple[Hashable, ...]]:
    """Both tables, ready to be broadcast over the variables of a and then the new ones of b."""
    cards = dict(zip(a.variables, a.shape, strict=True))
    for variable, card in zip(b.variables, b.shape, strict=True):
        if cards.setdefault(variable, card) != card:
            raise ValueError(f"{variable!r} has {cards[variable]} states in one factor and {card} in the other")
    names = tuple(cards)
    mine = a.log_table.reshape(a.shape + (1,) * (len(names) - len(a.variables)))
    order = sorted(range(len(b.variables)), key=lambda axis: names.index(b.variables[axis]))
    theirs = b.log_table.transpose(order).reshape([cards[v] if v in b.variables else 1 for v in names])
    return mine, theirs, names
