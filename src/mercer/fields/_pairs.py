"""The energy model of units with two states and pairs of them: θ·φ(x) = Σ_(i,j) w_ij x_i x_j + Σ_i b_i x_i.

Parameters are [w of each edge | b of each unit]. States are kept as 0 and 1, whatever values they stand for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from mercer import _core
from mercer.learning.learners import MOST_STATES, EnergyModel, Keys, Path, log_odds

__all__ = ["PairField"]

_BLOCK = 1 << 14  # states of a block of an exact sum


class PairField(EnergyModel):
    """Units with the values lo and hi on a graph.

    Parameters
    ----------
    n_units : int
    edges : array (n_edges, 2)
        Pairs of different units, each once.
    lo, hi : float
    threads : int
    """

    def __init__(self, n_units: int, edges: np.ndarray, lo: float, hi: float, threads: int = 1) -> None:
        self.n_units, self.edges, self.lo, self.hi, self.threads = n_units, edges, lo, hi, threads
        self.n_couplings = len(edges)
        self.n_weights = len(edges) + n_units
        ends = np.concatenate([edges, edges[:, ::-1]]) if len(edges) else np.zeros((0, 2), np.int64)
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        self._starts = np.searchsorted(ends[order, 0], np.arange(n_units + 1)).astype(np.int64)
        self._neighbours = np.ascontiguousarray(ends[order, 1], np.int32)
        self._edge_of = order % max(len(edges), 1)

    def values(self, states: np.ndarray) -> np.ndarray:
        """Return the values that states stand for."""
        return self.lo + (self.hi - self.lo) * states.astype(np.float64)

    def _couplings(self, theta: np.ndarray) -> np.ndarray:
        matrix = np.zeros((self.n_units, self.n_units))
        matrix[self.edges[:, 0], self.edges[:, 1]] = theta[: len(self.edges)]
        return matrix

    def uniform(self, n: int, keys: Keys) -> np.ndarray:
        """Draw n states of independent fair units."""
        return (keys.uniforms(n, self.n_units) < 0.5).astype(np.int8)

    def sweep(
        self, states: np.ndarray, theta: np.ndarray, keys: Keys, beta: float = 1.0, backward: bool = False
    ) -> np.ndarray:
        """Return the states after all units were drawn in their order, or in the opposite one."""
        moved = np.ascontiguousarray(states).copy()
        weights = np.asarray(theta[: len(self.edges)], np.float32)
        _core.fields.spin_sweep(
            moved,
            self._starts,
            self._neighbours,
            np.ascontiguousarray(weights[self._edge_of] if len(weights) else weights),
            np.asarray(theta[len(self.edges) :], np.float32)[None, :],
            self.lo,
            self.hi - self.lo,
            beta,
            backward,
            keys.next(),
            0,
            self.threads,
        )
        return moved

    def _scores(self, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        if len(self.edges) > 4 * self.n_units:
            pairs = np.einsum("si,si->s", x @ self._couplings(theta), x)
        else:
            pairs = (x[:, self.edges[:, 0]] * x[:, self.edges[:, 1]]) @ theta[: len(self.edges)]
        return pairs + x @ theta[len(self.edges) :]

    def path(self, states: np.ndarray, start: Any, end: Any) -> Path:
        """Return log densities along the straight line between two parameters."""
        x = self.values(states)
        first = np.zeros(len(x)) if start is None else self._scores(x, start)
        last = self._scores(x, end)
        return Path(self, states, start, end, lambda beta: (first + beta * (last - first))[:, None])

    def statistics(self, states: np.ndarray, theta: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the means of x_i x_j and of x_i."""
        x = self.values(states)
        share = np.full(len(x), 1.0 / len(x)) if weights is None else weights[:, 0]
        pairs = (x * share[:, None]).T @ x
        return np.concatenate([pairs[self.edges[:, 0], self.edges[:, 1]], share @ x])

    def is_small(self, states: int = 1 << 14) -> bool:
        """Whether a sum over all states has at most so many."""
        return self.n_units <= np.log2(states)

    def check_exact(self) -> None:
        """Raise unless a sum over all states is possible."""
        if self.n_units > np.log2(MOST_STATES):
            raise ValueError(
                f"an exact sum over {self.n_units} units has 2^{self.n_units} states, more than"
                f" 2^{int(np.log2(MOST_STATES))}: use a learner or a method that samples"
            )

    def all_states(self) -> list[np.ndarray]:
        """Return all states, in blocks."""
        self.check_exact()
        total = 1 << self.n_units
        numbers = (np.arange(a, min(a + _BLOCK, total)) for a in range(0, total, _BLOCK))
        return [((block[:, None] >> np.arange(self.n_units)) & 1).astype(np.int8) for block in numbers]

    def exact(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log Z and the expected statistics."""
        totals, means = [], []
        for states in self.all_states():
            scores = self._scores(self.values(states), theta)
            total = logsumexp(scores)
            totals.append(total)
            means.append(self.statistics(states, theta, np.exp(scores - total)[:, None]))
        log_z = logsumexp(totals)
        return float(log_z), np.exp(np.array(totals) - log_z) @ np.array(means)

    def pseudo_gradient(self, data: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean of Σ_i log p(x_i | others) and its gradient."""
        x, gain = self.values(data), self.hi - self.lo
        couplings = self._couplings(theta)
        fields = x @ (couplings + couplings.T) + theta[len(self.edges) :]
        p = expit(gain * fields)
        up = data > 0
        value = float(np.log(np.maximum(np.where(up, p, 1.0 - p), 1e-300)).sum(axis=1).mean())
        residual = (gain * (up - p)) / len(x)
        outer = residual.T @ x
        pairs = (outer + outer.T)[self.edges[:, 0], self.edges[:, 1]]
        return value, np.concatenate([pairs, residual.sum(axis=0)])

    def base(self, data: np.ndarray | None, theta: np.ndarray) -> np.ndarray:
        """Return parameters without pairs: independent units, as frequent as in the data."""
        start = np.zeros(self.n_weights)
        if data is not None:
            start[len(self.edges) :] = log_odds(data.mean(axis=0), 0.02) / (self.hi - self.lo)
        return start

    def base_log_z(self, start: np.ndarray) -> float:
        """Return log Z of independent units."""
        bias = start[len(self.edges) :]
        return float(np.logaddexp(self.lo * bias, self.hi * bias).sum())

    def base_draws(self, n: int, start: np.ndarray, keys: Keys) -> np.ndarray:
        """Draw states of independent units."""
        share = expit((self.hi - self.lo) * start[len(self.edges) :])
        return (keys.uniforms(n, self.n_units) < share).astype(np.int8)

    def exact_draws(self, n: int, theta: np.ndarray, keys: Keys) -> np.ndarray:
        """Draw states of the field itself."""
        states = np.concatenate(self.all_states())
        scores = self._scores(self.values(states), theta)
        sums = np.cumsum(np.exp(scores - scores.max()))
        return states[np.minimum(np.searchsorted(sums, keys.uniforms(n) * sums[-1]), len(states) - 1)]
