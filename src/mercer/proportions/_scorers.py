"""Scorers with weights, scores and gradients, which `ProportionClassifier` trains.

    scores(w, X)          F, shape (n, n_outputs)
    gradient(w, X, G)     ∂ Σ_io G_io F_io / ∂ w

A user-defined scorer is an object with the four methods of `Linear`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

__all__ = ["Linear", "Network", "Scorer", "resolve_scorer"]


class Scorer(Protocol):
    """The interface of a scorer. All weights are one vector w of float64."""

    def start(self, n_features: int, n_outputs: int, scale: float, random: np.random.RandomState) -> np.ndarray:
        """Return random initial weights; scores have size ``scale`` for features of size 1."""

    def decay(self, n_features: int, n_outputs: int) -> np.ndarray:
        """Return 1 for every penalised weight, 0 for others, such as intercepts."""

    def scores(self, w: np.ndarray, X: Any, n_outputs: int) -> np.ndarray:
        """Return F of shape (n, n_outputs); X is an array or a CSR matrix."""

    def gradient(self, w: np.ndarray, X: Any, G: np.ndarray) -> np.ndarray:
        """Return the gradient of Σ G ∘ F in w."""


class Linear:
    """F = XW + b; w holds W row by row, then b."""

    def start(self, n_features: int, n_outputs: int, scale: float, random: np.random.RandomState) -> np.ndarray:
        return np.concatenate([scale * random.normal(size=n_features * n_outputs), np.zeros(n_outputs)])

    def decay(self, n_features: int, n_outputs: int) -> np.ndarray:
        return np.concatenate([np.ones(n_features * n_outputs), np.zeros(n_outputs)])

    def scores(self, w: np.ndarray, X: Any, n_outputs: int) -> np.ndarray:
        W = w[:-n_outputs].reshape(-1, n_outputs)
        return np.asarray(X @ W) + w[-n_outputs:]

    def gradient(self, w: np.ndarray, X: Any, G: np.ndarray) -> np.ndarray:
        return np.concatenate([np.asarray(X.T @ G).ravel(), G.sum(axis=0)])


class Network:
    """F = tanh(XU + a) V + b, one layer of ``hidden`` units; w holds U, a, V, b."""

    def __init__(self, hidden: int = 32) -> None:
        self.hidden = hidden

    def start(self, n_features: int, n_outputs: int, scale: float, random: np.random.RandomState) -> np.ndarray:
        h = self.hidden
        inner = random.normal(size=n_features * h)  # units that differ, whatever the scale
        outer = scale * random.normal(size=h * n_outputs) / np.sqrt(h)
        return np.concatenate([inner, random.normal(size=h), outer, np.zeros(n_outputs)])

    def decay(self, n_features: int, n_outputs: int) -> np.ndarray:
        h = self.hidden
        return np.concatenate([np.ones(n_features * h), np.zeros(h), np.ones(h * n_outputs), np.zeros(n_outputs)])

    def _parts(self, w: np.ndarray, d: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        h = self.hidden
        ends = np.cumsum([d * h, h, h * n_outputs])
        U, a, V, b = np.split(w, ends)
        return U.reshape(d, h), a, V.reshape(h, n_outputs), b

    def scores(self, w: np.ndarray, X: Any, n_outputs: int) -> np.ndarray:
        U, a, V, b = self._parts(w, X.shape[1], n_outputs)
        return np.tanh(np.asarray(X @ U) + a) @ V + b

    def gradient(self, w: np.ndarray, X: Any, G: np.ndarray) -> np.ndarray:
        U, a, V, _ = self._parts(w, X.shape[1], G.shape[1])
        H = np.tanh(np.asarray(X @ U) + a)
        inner = (G @ V.T) * (1 - H**2)
        return np.concatenate([np.asarray(X.T @ inner).ravel(), inner.sum(axis=0), (H.T @ G).ravel(), G.sum(axis=0)])


_METHODS = ("start", "decay", "scores", "gradient")


def resolve_scorer(scorer: Any) -> Any:
    """Return a scorer by its name, or an object with these methods; raise ValueError for anything else."""
    if scorer is None or (isinstance(scorer, str) and scorer == "linear"):
        return Linear()
    if isinstance(scorer, str) and scorer == "mlp":
        return Network()
    lacking = [name for name in _METHODS if not callable(getattr(scorer, name, None))]
    if not isinstance(scorer, (str, type)) and not lacking:
        return scorer
    raise ValueError(
        f"scorer must be None, 'linear', 'mlp', a torch.nn.Module or an object with the methods {', '.join(_METHODS)},"
        f" got {scorer!r}"
    )


def is_module(scorer: Any) -> bool:
    """Return whether it is a torch module, without importing torch."""
    kinds = [kind.__module__.split(".")[0] == "torch" and kind.__name__ == "Module" for kind in type(scorer).__mro__]
    return any(kinds)


def size_of(X: Any) -> float:
    """Return the root mean square length of the rows, slightly above 0 at least."""
    squares = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
    return float(max(np.sqrt(squares / max(X.shape[0], 1)), 1e-12))
