"""Penalties on the weights: r ‖w‖₁ + (1 − r) ½ ‖w‖², with r = 0 (l2), 1 (l1) or between (elastic net)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """``l1 · ‖w‖₁ + ½ · l2 · ‖w‖²``, excluding the last ``free`` weights.

    Examples
    --------
    >>> import numpy as np
    >>> Penalty.named("elasticnet", l1_ratio=0.5).value(np.array([1.0, -2.0]))
    2.75
    """

    l1: float = 0.0
    l2: float = 1.0
    free: int = 0

    @classmethod
    def named(cls, name: str | None, l1_ratio: float = 0.5) -> Penalty:
        """Return ``"l2"``, ``"l1"``, ``"elasticnet"`` or None."""
        if name is None:
            return cls(0.0, 0.0)
        if name == "l2":
            return cls(0.0, 1.0)
        if name == "l1":
            return cls(1.0, 0.0)
        if name == "elasticnet":
            if not 0 <= l1_ratio <= 1:
                raise ValueError(f"l1_ratio must lie between 0 and 1, got {l1_ratio!r}")
            return cls(float(l1_ratio), 1.0 - float(l1_ratio))
        raise ValueError(f"unknown penalty {name!r}; known are 'l2', 'l1', 'elasticnet' and None")

    def value(self, w: np.ndarray) -> float:
        """Return the penalty of a weight vector."""
        w = self.charged(w)
        total = 0.5 * self.l2 * float(w @ w) if self.l2 else 0.0
        return total + (self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0)

    def charged(self, w: np.ndarray) -> np.ndarray:
        """Return the penalised weights, as a view."""
        return w[: len(w) - self.free]
