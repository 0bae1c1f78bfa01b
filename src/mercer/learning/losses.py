"""Losses: from part scores θ and the true output y to a value and its gradient in θ. Nothing else.

| loss | value | gradient in θ |
|---|---|---|
| log | log_partition(θ) − score(θ, y) | marginals(θ) − 1_y |

A loss uses only the verbs of a structure, so it works on every structure that has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mercer.structures.base import Structure


class Loss(ABC):
    """A value and a gradient in part scores for a batch of examples."""

    name: str

    @abstractmethod
    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """The loss of each example and the gradient of their sum, in the form of the structure's marginals."""


class Log(Loss):
    """Negative log-likelihood: log Z(θ) − score(θ, y).

    Where y is only partly known it is the likelihood of everything that agrees with what is known:
    log Z(θ) − log Z(θ restricted to y), with gradient marginals(θ) − marginals(θ restricted).
    """

    name = "log"

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """log Z − score and μ − 1_y."""
        if structure.is_partial(y):
            known = structure.marginals(structure.restrict(theta, y))
            known = _copied(known)
            mu = structure.marginals(theta)
            mu.subtract(known)
            return mu.log_partition - known.log_partition, mu
        mu = structure.marginals(theta)
        value = mu.log_partition - structure.score(theta, y)
        structure.subtract_truth(mu, y)
        return value, mu


def _copied(mu: Any) -> Any:
    """Marginals may live in scratch memory that the next call uses again."""
    import copy

    return copy.deepcopy(mu)


LOSSES: dict[str, type[Loss]] = {Log.name: Log}


def resolve_loss(loss: str | Loss) -> Loss:
    """A loss by its name, or the object itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise ValueError(f"unknown loss {loss!r}; known are {', '.join(map(repr, sorted(LOSSES)))}")
