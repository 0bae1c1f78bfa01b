"""Kernels that compare objects for equality."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.base import Kernel, Work

__all__ = ["Delta"]


class Delta(Kernel):
    """1 for equal objects, 0 for others. Use it for categories, symbols, or the parts in a `Convolution`.

    Objects are anything hashable; equality is Python's ``==``.

    Examples
    --------
    >>> from mercer.kernels import Convolution, Delta
    >>> Delta()(["red", "blue", "red"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])

    Sets, compared by what they share:

    >>> Convolution(list, Delta()).pair({1, 2, 3}, {2, 3, 4})
    2.0
    """

    has_features = True

    def _prepare(self, X: Any) -> list[Any]:
        objects = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 1 else list(X)
        for i, value in enumerate(objects):
            try:
                hash(value)
            except TypeError as error:
                raise ValueError(f"object {i} cannot be hashed: a {type(value).__name__}; use a tuple") from error
            if value != value:
                raise ValueError(f"object {i} is {value!r}, which is not equal to itself")
        return objects

    def _gram(self, A: list[Any], B: list[Any] | None, work: Work) -> np.ndarray:
        rows, columns = _numbers([A, A if B is None else B])[0]
        return (rows[:, None] == columns[None, :]).astype(work.dtype)

    def _diag(self, A: list[Any], work: Work) -> np.ndarray:
        return np.ones(len(A))

    def _features(self, parts: list[list[Any]]) -> list[Any]:
        numbers, width = _numbers(parts)
        return [
            sp.csr_matrix((np.ones(len(row)), row, np.arange(len(row) + 1)), shape=(len(row), max(1, width)))
            for row in numbers
        ]


def _numbers(parts: list[list[Any]]) -> tuple[list[np.ndarray], int]:
    """Equal objects by equal numbers, in the order of first use, and how many there are."""
    seen: dict[Any, int] = {}
    numbers = [np.array([seen.setdefault(value, len(seen)) for value in part], np.int64) for part in parts]
    return numbers, len(seen)
