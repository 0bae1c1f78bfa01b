"""Slicing and joining of collections of objects of any kind."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.kernels.approximations import chosen_objects
from mercer.kernels.base import Kernel, with_length

__all__: list[str] = []


def objects(name: str, X: Any, least: int = 1) -> Any:
    """Return a collection with a length, of at least ``least`` objects."""
    X = with_length(name, X)
    if count(X) < least:
        raise ValueError(f"{name} must hold at least {least} objects, got {count(X)}")
    return X


def same_count(names: tuple[str, str], X: Any, Y: Any) -> int:
    """Return the number of objects of two paired collections."""
    n, m = count(X), count(Y)
    if n != m:
        raise ValueError(f"{names[0]} and {names[1]} must hold equally many objects, got {n} and {m}")
    return n


def cut(X: Any, start: int, stop: int) -> Any:
    """Return the objects start .. stop."""
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    if isinstance(X, dict):
        return {name: column[start:stop] for name, column in X.items()}
    return X[start:stop]


def sample(X: Any, size: int, rng: np.random.Generator) -> Any:
    """Return at most ``size`` objects, drawn at random."""
    n = count(X)
    return X if n <= size else taken(X, np.sort(rng.permutation(n)[:size]))


def pooled_sample(X: Any, Y: Any, size: int, rng: np.random.Generator) -> Any:
    """Return at most ``size`` objects drawn from the union of X and Y."""
    n = count(X)
    chosen = np.sort(rng.permutation(n + count(Y))[:size])
    return joined([taken(X, chosen[chosen < n]), taken(Y, chosen[chosen >= n] - n)])


def count(X: Any) -> int:
    """Return the number of objects of a collection of any kind.

    Examples
    --------
    >>> from mercer.kernel_methods.collections import count
    >>> count({"title": ["one", "two"], "price": [1.0, 2.0]})
    2
    """
    if isinstance(X, dict):
        return len(next(iter(X.values()))) if X else 0
    return int(X.shape[0]) if getattr(X, "shape", ()) else len(X)


def taken(X: Any, rows: np.ndarray) -> Any:
    """Return some objects of a collection of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods.collections import taken
    >>> taken(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(X, "take") and hasattr(X, "column_names"):  # an Arrow table
        return X.take(rows)
    return chosen_objects(X, rows)


def joined(parts: list[Any]) -> Any:
    """Concatenate collections of one kind.

    Examples
    --------
    >>> from mercer.kernel_methods.collections import joined
    >>> joined([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if sp.issparse(first):
        return sp.vstack(parts, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate([np.asarray(part) for part in parts])
    if isinstance(first, dict):
        return {name: [x for part in parts for x in part[name]] for name in first}
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if hasattr(first, "vstack") and hasattr(first, "schema"):  # a frame of polars
        import polars as pl

        return pl.concat(parts)
    if hasattr(type(first), "concatenate"):  # Graphs
        return type(first).concatenate(parts)
    return [x for part in parts for x in part]


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator for scikit-learn's ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    from sklearn.utils import check_random_state

    return np.random.default_rng(check_random_state(random_state).randint(0, 2**31 - 1, size=4))


def seed_of(rng: np.random.Generator) -> int:
    """Return an integer seed for a component that takes scikit-learn's ``random_state``."""
    return int(rng.integers(0, 2**31 - 1))


def default_kernel(X: Any) -> Kernel:
    """Return the default kernel of tests: a Gaussian whose width is the median distance of the objects."""
    kernels: Any = import_module("mercer.kernels")
    # At most 1000 objects are looked at, the same ones whenever it is called.
    kernel: Kernel = kernels.Gaussian(gamma=kernels.median_heuristic(X, random_state=0))
    return kernel
