"""Partitioned examples: a partition is the unit of reading, transfer and computation.

A partition holds inputs, outputs and optional weights of examples. Partitions may be in memory (:class:`Partitions`),
in a folder (:class:`~mercer.data.Store`) or on the workers of a cluster. Sums over all examples are sums over
partitions in order. So a model depends on the partitioning of the examples, not on the location of the partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Partition", "Partitions"]


class Partition(NamedTuple):
    """A part of the examples: inputs, outputs, and optional example weights."""

    X: Any
    y: Any = None
    sample_weight: Any = None


class Partitions(Sequence[Partition]):
    """Partitioned examples in memory.

    Parameters
    ----------
    parts : list of tuples
        ``(X, y)``, ``(X, y, sample_weight)`` or ``(X,)``, each as the estimator takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.classification import LinearClassifier
    >>> X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 1])
    >>> parts = Partitions.split(X, y, n=2)
    >>> [len(part.X) for part in parts]
    [3, 3]
    >>> LinearClassifier("log").fit(parts).predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    __mercer_partitions__ = True

    def __init__(self, parts: Iterable[Any]) -> None:
        self._parts = []
        for i, part in enumerate(parts):
            if not isinstance(part, tuple) or not 1 <= len(part) <= 3:
                raise TypeError(f"partition {i} must be a tuple (X, y) or (X, y, sample_weight)")
            self._parts.append(Partition(*part))

    @classmethod
    def split(cls, X: Any, y: Any = None, sample_weight: Any = None, *, n: int) -> Partitions:
        """Split examples into ``n`` contiguous partitions of about equal length."""
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not n >= 1:
            raise ValueError(f"n must be a positive integer, got {n!r}")
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and (length := len(values)) != rows:
                raise ValueError(f"X has {rows} examples and {name} {length}")
        bounds = [rows * i // n for i in range(n + 1)]
        runs = [slice(a, b) for a, b in pairwise(bounds)]
        cut = [[None if part is None else _rows(part, run) for part in (X, y, sample_weight)] for run in runs]
        return cls(tuple(part) for part in cut)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, key: Any) -> Any:
        return Partitions(self._parts[key]) if isinstance(key, slice) else self._parts[key]

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._parts)

    def __repr__(self) -> str:
        return f"Partitions({len(self)} parts)"


def _rows(values: Any, run: slice) -> Any:
    return values.iloc[run] if hasattr(values, "iloc") else values[run]
