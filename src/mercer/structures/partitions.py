"""Partitions of a set as outputs: score(x, y) = Σ_{i<j in one cluster of y} A_ij with A_ij = ⟨w, φ(x_i, x_j)⟩ + b.

Φ(x, y) sums the features of the pairs that y keeps together. The search for the best output is correlation clustering
with A. The cost Δ is also a sum over pairs, and is added to A in the loss-augmented search.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.structures import correlation
from mercer.structures.custom import CustomStructure

__all__ = ["Partitions"]


class Partitions(CustomStructure):
    """Partitions of a set, for learning: x holds the features of all pairs, y the pairs in one cluster.

    Outputs are condensed vectors with a number for each pair (i, j), i < j. Partitions have 0 and 1; the relaxed search
    (``decode="lp"``) may also answer with fractions, which makes the hinge loss an upper bound of the true one.

    Parameters
    ----------
    decode : {"greedy", "lp", "exact"}
    cost : {"pairs", "rand"}
        Wrong pairs, or their share.
    """

    def __init__(self, decode: str, cost: str) -> None:
        self.decode, self.pair_cost = decode, cost

    def features(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the summed pair features, and the number of pairs in one cluster."""
        return np.append(y @ x, y.sum())

    def affinities(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return A, condensed."""
        return x @ w[:-1] + w[-1]

    def cost(self, y_true: np.ndarray, y: np.ndarray) -> float:
        """Return Δ, linear in y."""
        return self._unit(y) * float((y_true * (1 - y) + (1 - y_true) * y).sum())

    def _unit(self, y: np.ndarray) -> float:
        return 1.0 / max(1, len(y)) if self.pair_cost == "rand" else 1.0

    def argmax(self, w: np.ndarray, x: np.ndarray, cost_to: np.ndarray | None = None) -> np.ndarray:
        """Return the best partition by correlation clustering, with costs added to the affinities."""
        a = self.affinities(w, x)
        if cost_to is not None:
            a = a + self._unit(a) * (1.0 - 2.0 * cost_to)
        return self._search(a, cost_to)

    def argmin(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the partition with the lowest score."""
        return self._search(-self.affinities(w, x), None)

    def lead(self, w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """Return score(y) − max_{z≠y} score(z) by exact searches: every z ≠ y differs from y in some pair."""
        a = self.affinities(w, x)
        n, force = correlation.n_items(len(a)), 2.0 * float(np.abs(a).sum()) + 1.0
        others = -math.inf
        for pair, is_together in enumerate(y > 0.5):
            forced = a.copy()
            forced[pair] += -force if is_together else force
            z = correlation.together(correlation.best_partition(forced, n))
            others = max(others, float(a @ z))
        return float(a @ y) - others

    def log_cardinality(self, x: np.ndarray) -> float:
        """Return the logarithm of the Bell number of the items, by Aitken's triangle in exact integers."""
        row = [1]
        for _ in range(correlation.n_items(len(x))):
            above, row = row, [row[-1]]
            for number in above:
                row.append(row[-1] + number)
        return math.log(row[0])

    def _search(self, a: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        n = correlation.n_items(len(a))
        if self.decode == "lp":
            return correlation.relaxed_partition(a, n)[0]
        if self.decode == "exact":
            return correlation.together(correlation.best_partition(a, n))
        # A search from the true partition, too: its answer is then never worse than the truth.
        labels = None if start is None else correlation.components(start > 0.5, n)
        return correlation.together(correlation.greedy_partition(a, n, labels))
