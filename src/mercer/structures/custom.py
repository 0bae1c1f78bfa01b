"""The base class of user-defined structures, to predict outputs of a new kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class CustomStructure(ABC):
    """A space of outputs: features of a pair, cost of an error, and the search for the best output.

    Inputs x and outputs y are objects of any kind. :meth:`features` and :meth:`argmax` must be implemented; the others
    have a default or are needed only by some losses:

    =================================  ==============================================
    loss                               methods
    =================================  ==============================================
    hinge, squared-hinge, slack        features, cost, argmax
    relative-margin                    the same and argmin
    hybrid                             k_best and log_partition
    log, softmax-margin                log_partition
    adaptive-hybrid, circle            k_best and log_partition
    =================================  ==============================================

    Examples
    --------
    Choosing the larger of two numbers, weighing both:

    >>> import numpy as np
    >>> class Choice(CustomStructure):
    ...     def features(self, x, y):
    ...         return np.array([x[y], float(y)])
    ...     def argmax(self, w, x, cost_to=None):
    ...         score = [w @ self.features(x, y) + (y != cost_to if cost_to is not None else 0) for y in (0, 1)]
    ...         return int(np.argmax(score))
    >>> Choice().argmax(np.array([1.0, 0.0]), (3.0, 5.0))
    1
    """

    @abstractmethod
    def features(self, x: Any, y: Any) -> Any:
        """Return Φ(x, y): a vector of fixed length, as a 1-D array or a SciPy sparse row."""

    @abstractmethod
    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> Any:
        """Return the output with the highest ⟨w, Φ(x, y)⟩, plus ``cost(cost_to, y)`` if ``cost_to`` is given."""

    def cost(self, y_true: Any, y: Any) -> float:
        """Return Δ(y_true, y): at least 0, and 0 for the true output. Default: 1 for every other output."""
        return 0.0 if self.equal(y_true, y) else 1.0

    def equal(self, y: Any, z: Any) -> bool:
        """Return whether two outputs are the same."""
        if isinstance(y, np.ndarray) or isinstance(z, np.ndarray):
            return bool(np.array_equal(y, z))
        return bool(y == z)

    def argmin(self, w: np.ndarray, x: Any) -> Any:
        """Return the output with the lowest ⟨w, Φ(x, y)⟩."""
        raise NotImplementedError(f"{type(self).__name__} has no argmin: the relative margin needs it")

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[Any, float]]:
        """Return the k best outputs and their scores, best first; fewer if there are fewer."""
        raise NotImplementedError(f"{type(self).__name__} has no k_best: the hybrid loss needs it")

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, Any]:
        """Return (log Σ_y exp(⟨w, Φ(x, y)⟩ + cost), the expectation of Φ(x, y) under that distribution)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_partition: the log loss needs it")

    def log_cardinality(self, x: Any) -> float:
        """Return the logarithm of the number of outputs of x. Default: log_partition with weights of 0."""
        raise NotImplementedError(f"{type(self).__name__} has no log_cardinality: generalisation bounds need it")
