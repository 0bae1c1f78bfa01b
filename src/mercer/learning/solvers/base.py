"""The interface of solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.risk import Risk

# What an unfinished run left: plain data and arrays; None if there is no such run.
Resumed: TypeAlias = tuple[dict[str, Any], dict[str, np.ndarray]] | None


@dataclass
class Result:
    """The result of a solver.

    Attributes
    ----------
    w : array
        The weights (with held-out data, the best ones on it).
    converged : bool
    message : str
        Why it stopped and, if it stopped too early, what to change.
    interrupted : bool
        Whether Ctrl-C stopped it: ``w`` is the best so far.
    state : dict
        The state that the method needs to continue (averages, step counts).
    n_iter : int or None
        Iterations in the unit of ``max_iter``; None if the monitor recorded them.
    """

    w: np.ndarray
    converged: bool
    message: str
    interrupted: bool = False
    state: dict[str, Any] = field(default_factory=dict)
    n_iter: int | None = None

    @classmethod
    def by_gradient(cls, w: np.ndarray, converged: bool, share: float, tol: float, max_iter: int) -> Result:
        """Return the result of a solver that stops at a small gradient, relative to its first norm."""
        if converged:
            return cls(w, True, "converged")
        return cls(
            w,
            False,
            f"stopped after max_iter={max_iter} iterations with a gradient of {share:.1e} of its first norm "
            f"(tol={tol:g}): raise max_iter or tol, or lower C",
        )


class Solver(ABC):
    """Minimise ``penalty(w) + C · risk(w)``, or run an online rule over the examples."""

    name: str
    default_max_iter: int
    default_tol: float
    online: bool = False  # one example a step, so that it can go on with more data
    reads_examples: bool = False  # visits inputs and outputs, where others ask for values, gradients and planes
    frees_constants: bool = False  # can leave the last weights without a penalty (``Penalty.free``)

    @abstractmethod
    def minimize(
        self,
        risk: Risk,
        penalty: Penalty,
        C: float,
        w0: np.ndarray | None,
        *,
        max_iter: int,
        tol: float,
        monitor: Monitor,
        random_state: Any = None,
        resumed: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> Result:
        """Run from w0 (None: from 0), or from the saved state of a resumed run.

        ``state`` is the result of an earlier call, for ``partial_fit``.
        """

    @abstractmethod
    def check(self, risk: Risk, penalty: Penalty) -> None:
        """Raise ValueError if the method cannot take this loss or penalty."""
