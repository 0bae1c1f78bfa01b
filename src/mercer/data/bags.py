"""Rows in bags, with the known share of each class in every bag.

    ȳ_kc = Σ_{i ∈ B_k} v_i [y_i = c] / Σ_{i ∈ B_k} v_i              v_i = 1 unless rows have weights

A membership is a row in a bag. A row in two bags has two memberships, and learners treat them as two instances. The
memberships of bag k are ``members[offsets[k]:offsets[k + 1]]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer._display import Displayed
from mercer._validation import check_choice, check_count

__all__ = ["Bags", "bag_proportions", "make_bags", "sample_mixture_bags"]

SCHEMES = ("random", "iid", "hierarchical", "groups")
_SUM = 1e-6  # how far the shares of a bag may be from summing to 1


class Bags(Displayed):
    """The assignment of rows to bags, and the share of each class in every bag.

    Parameters
    ----------
    bags : array of n values, array of (row, bag) pairs, or Bags
        The bag of every row: integers, strings or any sortable values. Rows without a bag have None or NaN; learners
        accept such rows only with a label. Pairs (row, bag), shape (n_memberships, 2), put rows into several bags; bags
        are then numbered 0, 1, …, or named by strings.
    proportions : array of shape (n_bags,) or (n_bags, n_classes), dict, Series or DataFrame; or a pair of these
        One number for each bag is the share of the second class; a row of numbers holds the shares of all classes.
        Arrays follow `names` (the bags in sorted order); a dict, a Series or a frame is looked up by name. A frame has
        the names in its only text column, in a column that contains all of them, or in its index. A tuple (low, high)
        of two of these gives bounds. None: no proportions (for prediction).
    classes : sequence of n_classes labels, optional
        Default: columns of a frame, else 0, 1, ….
    bag_weight : array of shape (n_bags,), optional
        Weight of each bag.
    row_weight : array with a number for every row (or pair), optional
        Weight of each row within its bag.
    n_rows : int, optional
        Number of rows, with pairs. Default: the largest row number plus 1.

    Attributes
    ----------
    names : ndarray of shape (n_bags,)
        Names of bags, sorted.
    offsets : ndarray of int64, shape (n_bags + 1,)
    members : ndarray of int64
        Rows, bag by bag.
    lower, upper : ndarray of shape (n_bags, n_classes), or None
        Bounds on the shares; equal if shares are known exactly.
    classes : ndarray or None
    bag_weight : ndarray of shape (n_bags,)
    row_weight : ndarray, one for each member
    alone : ndarray of int64
        Rows without a bag.

    Examples
    --------
    >>> from mercer.proportions import Bags
    >>> bags = Bags(["north", "south", "north", "north"], {"north": 0.25, "south": 1.0})
    >>> bags
    Bags(4 rows in 2 bags of 1 to 3, 2 classes)
    >>> bags.names.tolist(), bags.proportions.tolist()
    (['north', 'south'], [0.25, 1.0])
    """

    names: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    alone: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    classes: np.ndarray | None

    def __init__(
        self,
        bags: Any,
        proportions: Any = None,
        *,
        classes: Any = None,
        bag_weight: Any = None,
        row_weight: Any = None,
        n_rows: int | None = None,
    ) -> None:
        if isinstance(bags, Bags):
            self._copy(bags)
            if row_weight is not None:
                raise ValueError("row_weight must be given when Bags are made, not when they are passed on")
        else:
            self._group(bags, row_weight, n_rows)
        self.classes = None if classes is None else _class_names(classes)
        if proportions is not None:
            self._set_proportions(proportions, bags.classes if isinstance(bags, Bags) else None)
        elif isinstance(bags, Bags):
            if bags.lower is not None and classes is not None and len(bags.lower[0]) != len(classes):
                columns = bags.lower.shape[1]
                raise ValueError(f"classes has {len(classes)} labels, but proportions has {columns} columns")
            self.lower, self.upper = bags.lower, bags.upper
            self.classes = bags.classes if classes is None else self.classes
        else:
            self.lower = self.upper = None
        if bag_weight is not None or not isinstance(bags, Bags):
            self.bag_weight = self._weights(bag_weight)

    # ------------------------------------------------------------------ making

    @classmethod
    def joined(cls, parts: Sequence[Bags | None]) -> Bags:
        """Concatenate the bags of several partitions.

        Parameters
        ----------
        parts : sequence of Bags, or None for a part without rows
            All with the same classes, and all or none with bounds. No bag may be in two parts.

        Returns
        -------
        Bags
            Bags in the order of the parts, not sorted by name.

        Examples
        --------
        >>> from mercer.proportions import Bags
        >>> both = Bags.joined([Bags(["n", "n"], {"n": 0.5}), Bags(["a"], {"a": 1.0})])
        >>> both.names.tolist(), both.offsets.tolist(), both.members.tolist()
        (['n', 'a'], [0, 2, 3], [0, 1, 2])
        """
        numbers = [i for i, part in enumerate(parts) if part is not None]
        filled = [part for part in parts if part is not None]
        if not filled:
            raise ValueError("all parts are empty")
        first, places = filled[0], dict[Any, int]()
        for i, part in zip(numbers, filled, strict=True):
            for name in part.names.tolist():
                if name in places:
                    raise ValueError(f"bag {name!r} is in parts {places[name]} and {i}: keep bags whole")
                places[name] = i
            if (part.lower is None) != (first.lower is None):
                raise ValueError(f"parts {numbers[0]} and {i} differ: one of them has no proportions")
            names = [] if part.classes is None else part.classes.tolist()
            columns = [0 if one.lower is None else one.lower.shape[1] for one in (first, part)]
            if names != ([] if first.classes is None else first.classes.tolist()) or columns[0] != columns[1]:
                raise ValueError(f"parts {numbers[0]} and {i} have other classes")
        made = object.__new__(cls)
        rows = np.concatenate([[0], np.cumsum([part.n_rows for part in filled])])
        ends = np.concatenate([[0], np.cumsum([len(part.members) for part in filled])])
        made.names = np.array(list(places), dtype=np.result_type(*[part.names.dtype for part in filled]))
        made.offsets = np.concatenate([[0], *(part.offsets[1:] + end for part, end in zip(filled, ends, strict=False))])
        made.members = np.concatenate([part.members + row for part, row in zip(filled, rows, strict=False)])
        made.alone = np.concatenate([part.alone + row for part, row in zip(filled, rows, strict=False)])
        made.classes, made.n_rows = first.classes, int(rows[-1])
        for name in ("lower", "upper", "bag_weight", "row_weight"):
            value = getattr(first, name)
            setattr(made, name, None if value is None else np.concatenate([getattr(part, name) for part in filled]))
        return made

    @classmethod
    def from_frame(
        cls, frame: Any, group: str, proportions: Any = None, *, weight: str | None = None, **options: Any
    ) -> Bags:
        """Return bags from a column of a data frame.

        Parameters
        ----------
        frame : pandas or polars DataFrame
            One row for each instance.
        group : str
            The column that names the bag of each row.
        proportions : DataFrame, Series, dict or str, optional
            Shares by name of bag. A frame has the names in a column called ``group`` or in its index, and the other
            columns are classes (one column: the share of the second class). A string names a column of ``frame`` that
            is constant within each bag.
        weight : str, optional
            Column with the weight of each row in its bag.
        **options
            Passed to `Bags`.

        Returns
        -------
        Bags

        Examples
        --------
        >>> import pandas as pd
        >>> from mercer.proportions import Bags
        >>> people = pd.DataFrame({"region": ["a", "b", "a"], "age": [30, 41, 52]})
        >>> table = pd.DataFrame({"region": ["b", "a"], "share": [1.0, 0.5]})
        >>> Bags.from_frame(people, "region", table).proportions.tolist()
        [0.5, 1.0]
        """
        columns = list(getattr(frame, "columns", []))
        for name in [group, weight]:
            if name is not None and name not in columns:
                raise ValueError(f"the frame has no column {name!r}; it has {', '.join(map(repr, columns))}")
        ids = np.asarray(frame[group])
        if isinstance(proportions, str):
            if proportions not in columns:
                raise ValueError(f"the frame has no column {proportions!r}; it has {', '.join(map(repr, columns))}")
            proportions = _constant_within(ids, np.asarray(frame[proportions], np.float64), proportions)
        elif isinstance(proportions, tuple):
            proportions = tuple(_keyed(part, group) for part in proportions)
        else:
            proportions = _keyed(proportions, group)
        weights = None if weight is None else np.asarray(frame[weight])
        return cls(ids, proportions, row_weight=weights, **options)

    def _copy(self, other: Bags) -> None:
        for name in ("names", "offsets", "members", "alone", "row_weight", "bag_weight", "n_rows"):
            setattr(self, name, getattr(other, name))

    def _group(self, bags: Any, row_weight: Any, n_rows: int | None) -> None:
        ids = plain_values(bags)
        if ids.ndim == 2 and ids.shape[1] == 2:
            rows, ids = self._pairs(ids, n_rows)
        elif ids.ndim == 1:
            rows = np.arange(len(ids))
            self.n_rows = len(ids)
            if n_rows is not None and n_rows != len(ids):
                raise ValueError(f"bags must hold one value for each of the {n_rows} rows, got {len(ids)}")
        else:
            raise ValueError(f"bags must be one value for each row, or pairs (row, bag), got shape {ids.shape}")
        weight = _checked_weights("row_weight", row_weight, len(rows))
        missing = missing_values(ids)
        self.alone = rows[missing].astype(np.int64)
        rows, ids, weight = rows[~missing], ids[~missing], weight[~missing]
        if not len(ids):
            raise ValueError("bags is empty: no row has a bag")
        try:
            self.names, number = np.unique(ids, return_inverse=True)
        except TypeError as error:
            message = "bags must be values of one kind that can be sorted, such as integers or strings"
            raise ValueError(message) from error
        order = np.argsort(number, kind="stable")
        self.members, self.row_weight = rows[order].astype(np.int64), weight[order]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(number))]).astype(np.int64)
        total = np.add.reduceat(self.row_weight, self.offsets[:-1])
        if not (total > 0).all():
            raise ValueError(f"row_weight is zero for all rows of bag {_shown(self.names[total <= 0][0])}")

    def _pairs(self, pairs: np.ndarray, n_rows: int | None) -> tuple[np.ndarray, np.ndarray]:
        if pairs.dtype.kind == "O" and all(isinstance(value, Integral) for value in pairs.flat):
            pairs = pairs.astype(np.int64)
        rows, ids = pairs[:, 0], pairs[:, 1]
        named = pairs.dtype.kind in "UO"  # a list of (0, "north"), … is an array of strings
        if named:
            if not all(isinstance(name, str) for name in ids):
                raise ValueError("pairs (row, bag) must have integers or strings for bags")
            try:
                rows, ids = np.array([int(row) for row in rows], np.int64), ids.astype(str)
            except (TypeError, ValueError) as error:
                raise ValueError("pairs (row, bag) must have integers for rows") from error
        elif pairs.dtype.kind not in "iu":
            raise ValueError(f"pairs (row, bag) must be integers, or have strings for bags, got {pairs.dtype}")
        self.n_rows = int(rows.max(initial=-1)) + 1 if n_rows is None else check_count("n_rows", n_rows)
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_rows or (not named and ids.min() < 0)):
            raise ValueError(f"pairs (row, bag) must have rows in 0 … {self.n_rows - 1} and bags of at least 0")
        if named:
            return rows, ids
        seen = np.unique(ids)
        if seen.size and seen[-1] != len(seen) - 1:
            raise ValueError(f"bag {np.setdiff1d(np.arange(seen[-1]), seen)[0]} has no rows")
        return rows, ids

    def _set_proportions(self, given: Any, classes: np.ndarray | None) -> None:
        """``classes`` are those that the bags had before."""
        if isinstance(given, tuple):
            if len(given) != 2:
                raise ValueError(f"proportions given as a tuple must be (low, high), got {len(given)} parts")
            if all(isinstance(part, Real) for part in given):
                raise ValueError("a tuple of proportions is (low, high): give the shares of two bags as a list")
            (low, names), (high, other) = (self._shares(part) for part in given)
            if names is not None and other is not None and names != other:
                if sorted(map(str, names)) != sorted(map(str, other)):
                    raise ValueError(f"the bounds (low, high) have different columns: {names} and {other}")
                high = high[:, [other.index(name) for name in names]]
            if low.shape != high.shape:
                raise ValueError("the bounds (low, high) of proportions must have the same shape")
            if low.ndim == 1:
                low, high = np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
            bad = (low > high + _SUM).any(axis=1) | (low.sum(axis=1) > 1 + _SUM) | (high.sum(axis=1) < 1 - _SUM)
            if bad.any():
                raise ValueError(f"no shares lie between the bounds of bag {_shown(self.names[bad][0])}")
            self.lower, self.upper = low, high
        else:
            values, names = self._shares(given)
            values = np.column_stack([1.0 - values, values]) if values.ndim == 1 else values
            off = np.abs(values.sum(axis=1) - 1) > _SUM
            if off.any():
                name, total = _shown(self.names[off][0]), values[off][0].sum()
                raise ValueError(f"proportions must sum to 1, but those of bag {name} sum to {total:.6g}")
            self.lower = self.upper = values / values.sum(axis=1, keepdims=True)
        n_classes = self.lower.shape[1]
        if self.classes is None and classes is not None and len(classes) == n_classes:
            self.classes = classes if names is None or set(names) == set(classes.tolist()) else None
        if self.classes is not None and names is not None and set(names) == set(self.classes.tolist()):
            order = [list(names).index(name) for name in self.classes.tolist()]  # columns go by their names
            same = self.lower is self.upper
            self.lower = self.lower[:, order]
            self.upper = self.lower if same else self.upper[:, order]
        if self.classes is None:
            self.classes = _class_names(range(n_classes) if names is None else names)
        if len(self.classes) != n_classes:
            raise ValueError(f"classes has {len(self.classes)} labels, but proportions has {n_classes} columns")

    def _shares(self, given: Any) -> tuple[np.ndarray, Any]:
        """Checked numbers in [0, 1], one or a row for each bag, and the names of classes where columns have names."""
        values, classes = self._looked_up(given)
        if values.ndim == 2 and values.shape[1] == 1:
            values, classes = values[:, 0], None
        if values.ndim not in (1, 2) or len(values) != len(self) or (values.ndim == 2 and values.shape[1] < 2):
            empty = self._without_rows(len(values) if values.ndim else 0)
            if empty is not None:
                raise ValueError(f"bag {empty} has no rows, but proportions has a value for it")
            shape = values.shape
            raise ValueError(f"proportions must have one entry for each of the {len(self)} bags, got shape {shape}")
        flat = values.reshape(len(values), -1)
        if not np.isfinite(flat).all():
            name = self.names[~np.isfinite(flat).all(axis=1)][0]
            raise ValueError(f"proportions of bag {_shown(name)} are NaN or infinite")
        outside = ((flat < 0) | (flat > 1)).any(axis=1)
        if outside.any():
            name, share = self.names[outside][0], flat[outside][0].tolist()
            raise ValueError(f"proportions must lie in [0, 1], but bag {_shown(name)} has {share}")
        return values, classes

    def _looked_up(self, given: Any, what: str = "proportions") -> tuple[np.ndarray, Any]:
        """Proportions in the order of `names`; what has names of its own is looked up by them."""
        if hasattr(given, "columns") and not isinstance(given, _Keyed):
            given = _keyed(given, self._key_column(given))
        columns = list(given.columns) if hasattr(given, "columns") else None
        if isinstance(given, Mapping):
            table = dict(given)
        elif isinstance(given, _Keyed):
            table = dict(zip(given.names, given.rows, strict=True))
            if len(table) != len(given.names):
                raise ValueError(f"{what} names a bag twice")
        elif hasattr(given, "index") and not callable(given.index):  # pandas
            table = dict(zip(given.index.tolist(), given.to_numpy(), strict=True))
            if len(table) != len(given):
                raise ValueError(f"{what} names a bag twice")
        else:
            try:
                return np.asarray(given, np.float64), columns
            except (TypeError, ValueError) as error:
                raise ValueError(f"{what} must be numbers") from error
        names = self.names.tolist()
        unknown = [name for name in table if name not in set(names)]
        if unknown:
            known = _listed(names)
            raise ValueError(f"{what} names bag {_shown(unknown[0])}, which has no rows; bags are {known}")
        lacking = [name for name in names if name not in table]
        if lacking:
            raise ValueError(f"{what} has no entry for bag {_shown(lacking[0])}")
        try:
            return np.array([table[name] for name in names], np.float64), columns
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} must be numbers, equally many for each bag") from error

    def _key_column(self, table: Any) -> str | None:
        """The column of a frame that holds the names of bags; None where it is the index, or there is none."""
        if len(table.columns) < 2:
            return None
        columns = {name: np.asarray(table[name]) for name in table.columns}
        text = [name for name, values in columns.items() if values.dtype.kind not in "iufb" and not _numeric(values)]
        if len(text) == 1:
            return text[0]
        names = set(self.names.tolist())
        same = [n for n, values in columns.items() if values.dtype.kind != "f" and set(values.tolist()) == names]
        return same[0] if len(same) == 1 else None

    def _without_rows(self, length: int) -> Any:
        """The first of the bags 0 … length − 1 that has no rows, where names are such integers."""
        if self.names.dtype.kind not in "iu" or length <= len(self) or self.names[-1] >= length or self.names[0] < 0:
            return None
        return int(np.setdiff1d(np.arange(length), self.names)[0])

    def _weights(self, given: Any) -> np.ndarray:
        if isinstance(given, Mapping) or hasattr(given, "index"):
            given, _ = self._looked_up(given, "bag_weight")
        return _checked_weights("bag_weight", given, len(self))

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        sizes = self.sizes
        classes = "" if self.lower is None else f", {self.lower.shape[1]} classes"
        return f"Bags({self.n_rows} rows in {len(self)} bags of {sizes.min()} to {sizes.max()}{classes})"

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each bag."""
        return np.diff(self.offsets)

    @property
    def number(self) -> np.ndarray:
        """Return the bag number of each member: 0, 0, …, 1, 1, …."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def overlapping(self) -> bool:
        """Return whether some row is in more than one bag."""
        return len(np.unique(self.members)) < len(self.members)

    @property
    def shares(self) -> np.ndarray:
        """Return the share of each class in each bag, (n_bags, n_classes); midpoints of bounds, scaled to sum to 1."""
        if self.lower is None or self.upper is None:
            raise ValueError("these bags have no proportions")
        if self.lower is self.upper:
            return self.lower
        room, missing = self.upper - self.lower, 1.0 - self.lower.sum(axis=1, keepdims=True)
        total = room.sum(axis=1, keepdims=True)
        return self.lower + room * np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)

    @property
    def proportions(self) -> np.ndarray:
        """Return the share of the second of two classes, shape (n_bags,); with more classes, `shares`."""
        return self.shares[:, 1] if self.shares.shape[1] == 2 else self.shares

    def select(self, chosen: Any) -> tuple[Bags, np.ndarray]:
        """Return some bags with renumbered rows, and the numbers of these rows.

        Parameters
        ----------
        chosen : array of integers
            Numbers of bags (indices into `names`).

        Returns
        -------
        bags : Bags
            Its row i is the row ``rows[i]`` of these bags.
        rows : ndarray of int64
            The rows of the chosen bags, ascending.

        Examples
        --------
        >>> from mercer.proportions import Bags
        >>> bags, rows = Bags(["a", "b", "a"], [0.5, 1.0]).select([0])
        >>> bags.names.tolist(), rows.tolist()
        (['a'], [0, 2])
        """
        chosen = np.unique(chosen)
        if chosen.size and chosen.dtype.kind not in "iu":
            raise ValueError(f"chosen must be integers, the numbers of bags, got {chosen.dtype}")
        if not len(chosen) or chosen[0] < 0 or chosen[-1] >= len(self):
            raise ValueError(f"chosen must be numbers of bags in 0 … {len(self) - 1}, at least one")
        inside = np.isin(self.number, chosen)
        rows, members = np.unique(self.members[inside], return_inverse=True)
        made = object.__new__(Bags)
        made.names, made.members, made.n_rows = self.names[chosen], members.astype(np.int64), len(rows)
        made.offsets = np.concatenate([[0], np.cumsum(self.sizes[chosen])]).astype(np.int64)
        made.row_weight, made.bag_weight = self.row_weight[inside], self.bag_weight[chosen]
        made.alone, made.classes = np.zeros(0, np.int64), self.classes
        made.lower = None if self.lower is None else self.lower[chosen]
        made.upper = made.lower if self.upper is self.lower else None if self.upper is None else self.upper[chosen]
        return made, rows.astype(np.int64)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return means over the members of each bag, weighted by `row_weight`.

        Parameters
        ----------
        values : array of shape (n_members,) or (n_members, n), dense
            One entry for each member, in their order.

        Returns
        -------
        ndarray of shape (n_bags,) or (n_bags, n)
        """
        weight = self.row_weight.reshape(-1, *[1] * (values.ndim - 1))
        total = np.add.reduceat(self.row_weight, self.offsets[:-1])
        summed = np.add.reduceat(values * weight, self.offsets[:-1], axis=0)
        return np.asarray(summed / total.reshape(-1, *[1] * (values.ndim - 1)))


def bag_proportions(y: Any, bags: Any, classes: Any = None) -> np.ndarray:
    """Return the share of each class in each bag, from labels.

    Parameters
    ----------
    y : array of n labels
    bags : array of n values, pairs (row, bag), or Bags
    classes : sequence of labels, optional
        Default: the labels in ``y``, sorted.

    Returns
    -------
    ndarray of shape (n_bags,) or (n_bags, n_classes)
        With two classes, the share of the second; with more, a row for each bag. Bags are sorted by name.

    Examples
    --------
    >>> from mercer.proportions import bag_proportions
    >>> bag_proportions([0, 1, 1, 1], ["a", "a", "b", "b"])
    array([0.5, 1. ])
    """
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one label for each row, got shape {y.shape}")
    bags = bags if isinstance(bags, Bags) else Bags(bags, n_rows=len(y))
    if len(y) != bags.n_rows:
        raise ValueError(f"y has {len(y)} labels, but bags has {bags.n_rows} rows")
    if missing_values(y[bags.members]).any():
        raise ValueError("y must hold a label for each row in a bag, but some are None or NaN")
    names = np.unique(y[~missing_values(y)]) if classes is None else _class_names(classes)
    held = y[bags.members][:, None] == names
    if not held.any(axis=1).all():
        raise ValueError(f"y holds {_shown(y[bags.members][~held.any(axis=1)][0])}, which is not among the classes")
    if len(names) == 1:
        raise ValueError(f"y holds one class only, {_shown(names[0])}: name both with classes=")
    shares = bags.mean(held.astype(np.float64))
    return shares[:, 1] if len(names) == 2 else shares


def make_bags(
    y: Any,
    size: int | None = None,
    *,
    scheme: str = "random",
    groups: Any = None,
    n_bags: int | None = None,
    random_state: Any = None,
) -> Bags:
    """Group labelled rows into bags, for experiments with proportions.

    Parameters
    ----------
    y : array of n labels
    size : int
        Rows in a bag. With ``"random"`` the last bag holds the remaining rows. Not used by ``"groups"``.
    scheme : {"random", "iid", "hierarchical", "groups"}, default="random"
        ``"random"`` splits a permutation of the rows. ``"iid"`` draws ``n_bags`` bags of rows with replacement.
        ``"hierarchical"`` draws a group uniformly for each bag, then rows of this group with replacement. ``"groups"``
        makes every group a bag. A row drawn twice into a bag counts twice there.
    groups : array of n values, optional
        Groups, for ``"hierarchical"`` and ``"groups"``.
    n_bags : int, optional
        For ``"iid"`` and ``"hierarchical"``. Default: n // size.
    random_state : int, RandomState or None

    Returns
    -------
    Bags
        Bags with the proportions of ``y`` and its labels as classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import make_bags
    >>> make_bags(np.arange(100) % 2, 8, random_state=0)
    Bags(100 rows in 13 bags of 4 to 8, 2 classes)
    """
    from sklearn.utils import check_random_state

    y = np.asarray(y)
    if y.ndim != 1 or not len(y):
        raise ValueError(f"y must be one label for each row, got shape {y.shape}")
    check_choice("scheme", scheme, SCHEMES)
    if (groups is None) == (scheme in ("hierarchical", "groups")):
        needed = "needs" if groups is None else "takes no"
        raise ValueError(f"scheme={scheme!r} {needed} groups")
    rng, n = check_random_state(random_state), len(y)
    pairs: Any
    if scheme == "groups":
        pairs = groups
    else:
        if size is None:
            raise ValueError(f"scheme={scheme!r} needs a size")
        size = check_count("size", size)
        if scheme == "random":
            if n_bags is not None:
                raise ValueError("scheme='random' takes no n_bags: all rows are put into bags")
            pairs = np.empty(n, np.int64)
            pairs[rng.permutation(n)] = np.arange(n) // size
        else:
            count = max(1, n // size) if n_bags is None else check_count("n_bags", n_bags)
            if groups is None:
                rows = [rng.randint(0, n, size) for _ in range(count)]
            else:
                rows = _drawn(groups, n, count, size, rng)
            pairs = np.column_stack([np.concatenate(rows), np.repeat(np.arange(count), size)])
    bags = Bags(pairs, n_rows=n)
    if missing_values(y).any():
        raise ValueError(f"y must hold a label for each row, but that of row {missing_values(y).argmax()} is missing")
    classes = np.unique(y)
    return Bags(bags, bag_proportions(y, bags, classes), classes=classes)


def sample_mixture_bags(
    components: Any, size: int, n_bags: int, *, weights: Any = None, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, Bags]:
    """Return bags from a mixture: each bag draws a component, then independent rows from it.

    Parameters
    ----------
    components : sequence
        Each a pair (X, y), from which rows are drawn with replacement; or a function (random, n) that returns n rows
        and their labels, ``random`` being a RandomState.
    size : int
        Rows in a bag.
    n_bags : int
    weights : array of numbers of at least 0, optional
        Probabilities of the components. Default: uniform.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of n_bags · size rows
    y : ndarray of labels
    bags : Bags
        Bags with the proportions of ``y``, numbered in the order of drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import sample_mixture_bags
    >>> def around(centre, share):
    ...     def draw(random, n):
    ...         y = (random.rand(n) < share).astype(int)
    ...         return centre + random.randn(n, 2) + 3 * y[:, None], y
    ...     return draw
    >>> X, y, bags = sample_mixture_bags([around(0, 0.2), around(5, 0.7)], size=10, n_bags=6, random_state=0)
    >>> X.shape, bags
    ((60, 2), Bags(60 rows in 6 bags of 10 to 10, 2 classes))
    """
    from sklearn.utils import check_random_state

    components = list(components)
    if not components:
        raise ValueError("components is empty: there is nothing to draw from")
    size, n_bags = check_count("size", size), check_count("n_bags", n_bags)
    weight = _checked_weights("weights", weights, len(components))
    rng = check_random_state(random_state)
    rows, labels = [], []
    for at in rng.choice(len(components), n_bags, p=weight / weight.sum()):
        source = components[at]
        if callable(source):
            X, y = (np.asarray(part) for part in source(rng, size))
        else:
            X, y = (np.asarray(part) for part in source)
            if len(X) != len(y) or not len(y):
                raise ValueError(f"component {at} has {len(X)} rows and {len(y)} labels")
            drawn = rng.randint(0, len(y), size)
            X, y = X[drawn], y[drawn]
        if len(X) != size or y.shape != (size,):
            raise ValueError(f"component {at} gave {len(X)} rows and labels of shape {y.shape}, expected {size}")
        rows.append(X)
        labels.append(y)
    y = np.concatenate(labels)
    bags, classes = Bags(np.repeat(np.arange(n_bags), size)), np.unique(y)
    return np.concatenate(rows), y, Bags(bags, bag_proportions(y, bags, classes), classes=classes)


def _drawn(groups: Any, n: int, count: int, size: int, rng: Any) -> list[np.ndarray]:
    """Rows of ``count`` bags, each from one group."""
    source = Bags(groups, n_rows=n)
    drawn = []
    for k in rng.randint(0, len(source), count):
        inside = source.members[source.offsets[k] : source.offsets[k + 1]]
        drawn.append(inside[rng.randint(0, len(inside), size)])
    return drawn


# ---------------------------------------------------------------------------------------------------- helpers


def plain_values(bags: Any, name: str = "bags") -> np.ndarray:
    """Return an array of names; text becomes Python strings if some are missing."""
    if isinstance(bags, Bags):
        raise ValueError(f"{name} must be one value for each row, got Bags: pass them as bags=")
    if isinstance(bags, (str, bytes)) or not any(hasattr(bags, kind) for kind in ("__len__", "__iter__", "__array__")):
        raise ValueError(f"{name} must be one value for each row, got {type(bags).__name__}")
    if not hasattr(bags, "__array__"):
        bags = list(bags)
        text = any(isinstance(value, str) for value in bags)
        if any(value is None or (text and isinstance(value, float) and value != value) for value in bags):
            made = np.empty(len(bags), object)
            made[:] = bags
            return made
    return np.asarray(bags)


def missing_values(ids: np.ndarray) -> np.ndarray:
    """Return which names are missing: None, NaN, pandas' NA and NaT."""
    if ids.dtype.kind == "f":
        return np.isnan(ids)
    if ids.dtype.kind in "mM":
        return np.isnat(ids)
    if ids.dtype.kind != "O":
        return np.zeros(len(ids), bool)
    missing = [value is None or type(value).__name__ in ("NAType", "NaTType") or value != value for value in ids]
    return np.array(missing, bool)


def _checked_weights(name: str, given: Any, n: int) -> np.ndarray:
    if given is None:
        return np.ones(n)
    try:
        weights = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers") from error
    if weights.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(f"{name} must be finite numbers of at least 0, not all of them 0")
    return weights


def _class_names(classes: Any) -> np.ndarray:
    names = np.asarray(list(classes))
    if names.ndim != 1 or len(names) < 2 or len(np.unique(names)) != len(names):
        raise ValueError(f"classes must be at least two different labels, got {list(classes)!r}")
    return names


def _constant_within(ids: np.ndarray, values: np.ndarray, name: str) -> dict[Any, float]:
    """The value of each bag from a column that repeats it."""
    table: dict[Any, float] = {}
    for bag, value in zip(ids.tolist(), values.tolist(), strict=True):
        if bag is not None and bag == bag and table.setdefault(bag, value) != value:
            raise ValueError(f"column {name!r} is not constant within bag {_shown(bag)}: {table[bag]} and {value}")
    return table


def _numeric(values: np.ndarray) -> bool:
    """Whether objects are all numbers."""
    return all(isinstance(value, Real) or value is None for value in values.tolist())


@dataclass(frozen=True)
class _Keyed:
    """A frame, whichever library it is of, with the names of bags apart."""

    names: list[Any]
    rows: list[list[Any]]
    columns: list[Any]


def _keyed(table: Any, group: Any) -> Any:
    """A frame by the names in the column ``group``; anything else, and a frame without such a column, as it is."""
    if group is None or not hasattr(table, "columns") or group not in list(table.columns):
        return table
    rest = [name for name in table.columns if name != group]
    rows = [list(row) for row in zip(*(table[name].to_list() for name in rest), strict=True)]
    return _Keyed(table[group].to_list(), rows, rest)


def _shown(name: Any) -> str:
    return repr(name.item() if isinstance(name, np.generic) else name)


def _listed(names: list[Any], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")
