"""Sets of rows as results of queries of several attributes.

    score(Q, y) = Σ_{i in y} s_Q(x_i),      s_Q(x) = Σ_{q in Q} Σ_{j in Z_Q} w_qj z_j(x)

Z holds weak attributes of all rows, Q some of the query attributes, and Z_Q the weak attributes used for Q. The score
is a sum over rows, so the best set has the rows with s_Q > 0. With the Hamming cost (number of wrong rows) and the
balanced cost (mean of the miss rate and the false-positive rate), the most violating set is found row by row in O(n).
The F_β cost depends on the numbers a of right and b of wrong rows in the set: for each pair the rows with the highest
scores are taken, in O(n²) at most. The precision cost considers sets of the size of the true one, in O(n log n). All
costs are scaled to the range 0 to n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer._validation import check_choice, check_positive
from mercer.structures.costs import Cost
from mercer.structures.label_sets import LabelSetMarginals, LabelSets, LabelSetScores

__all__ = ["COSTS", "Queries", "RowSets"]

COSTS = ("balanced", "hamming", "f-beta", "precision")
_CELLS = 1 << 21


class Queries:
    """A batch of queries: their attributes (k, A), and the weak attributes they use (k, m), or all."""

    def __init__(self, members: np.ndarray, mask: np.ndarray | None = None) -> None:
        self.members, self.mask = members, mask

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, part: slice) -> Queries:
        return Queries(self.members[part], None if self.mask is None else self.mask[part])

    def masked(self, values: np.ndarray) -> np.ndarray:
        """Return values (k, m), 0 for unused weak attributes."""
        return values if self.mask is None else values * self.mask


class RowSets(LabelSets):
    """Sets of rows, to learn retrieval.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_weak)
        Weak attributes of the rows.
    n_attributes : int
        Number of query attributes. Each pair of a query attribute and a weak attribute has a weight.
    cost : {"balanced", "hamming", "f-beta", "precision"}, default="hamming"
    beta : float, default=1.0
        β of F_β: above 1 missed rows cost more, below 1 wrong ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.structures.row_sets import Queries, RowSets
    >>> structure = RowSets(np.array([[1.0], [-1.0], [2.0]]), n_attributes=1)
    >>> structure.argmax(structure.scores(np.array([0.5]), Queries(np.ones((1, 1)))))
    (array([[1, 0, 1]], dtype=int8), array([1.5]))
    """

    def __init__(self, Z: np.ndarray, n_attributes: int, cost: str = "hamming", beta: float = 1.0) -> None:
        self.Z = np.ascontiguousarray(Z, np.float64)
        self.n_labels, self.n_weak = self.Z.shape
        self.n_attributes = n_attributes
        self.kind, self.beta = check_choice("cost", cost, COSTS), check_positive("beta", beta)
        self.pairs = np.zeros((0, 2), np.int64)
        self.n_weights = n_attributes * self.n_weak
        self._keep_nothing()

    def batches(self, X: Queries, positions: int) -> Iterator[slice]:
        """Return small batches of queries, because each holds the scores of all rows."""
        step = max(1, _CELLS // self.n_labels)
        for start in range(0, len(X), step):
            yield slice(start, min(start + step, len(X)))

    def scores(self, w: np.ndarray, X: Queries) -> LabelSetScores:  # type: ignore[override]
        """Return s_Q of all rows."""
        weights = X.masked(X.members @ w.reshape(self.n_attributes, self.n_weak))
        return LabelSetScores(weights @ self.Z.T, np.zeros(0), np.zeros(len(X)))

    def backward(self, X: Queries, mu: LabelSetMarginals, out: np.ndarray) -> None:  # type: ignore[override]
        """``out += `` the sums of weak attributes, for every attribute of a query."""
        out += (X.members.T @ X.masked(mu.labels @ self.Z)).ravel()

    def difference(self, X: Queries, y: np.ndarray, z: np.ndarray) -> csr_array:  # type: ignore[override]
        """Φ(Q, y) − Φ(Q, z)."""
        sums = X.masked((np.asarray(y, float) - np.asarray(z, float)) @ self.Z)
        indices, values, starts = [], [], [0]
        for members, row in zip(X.members, sums, strict=True):
            used, named = np.flatnonzero(row), np.flatnonzero(members)
            indices.append((named[:, None] * self.n_weak + used).ravel())
            values.append(np.outer(members[named], row[used]).ravel())
            starts.append(starts[-1] + len(indices[-1]))
        return csr_array(
            (np.concatenate(values), np.concatenate(indices), np.array(starts)), shape=(len(X), self.n_weights)
        )

    # ------------------------------------------------------------------ costs

    def _cost_of(self, right: Any, wrong: Any, truth: int) -> Any:
        """n (1 − F_β) of a set with so many right and wrong rows; of an empty truth n for any row."""
        total = right + wrong + self.beta**2 * truth
        with np.errstate(invalid="ignore", divide="ignore"):
            f = np.where(total > 0, (1.0 + self.beta**2) * right / total, 1.0)
        return self.n_labels * (1.0 - f)

    def _prices(self, y: np.ndarray) -> np.ndarray:
        """What a wrong row costs, for rows of each truth."""
        y = np.asarray(y, float)
        if self.kind == "hamming":
            return np.ones_like(y)
        on = y.sum(axis=1, keepdims=True)
        off = self.n_labels - on
        return self.n_labels * np.where(y > 0, 0.5 / np.maximum(on, 1.0), 0.5 / np.maximum(off, 1.0))

    def augment(
        self, theta: LabelSetScores, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> LabelSetScores:
        """θ + scale · Δ(y, ·), for costs that are sums over rows."""
        price = np.broadcast_to(np.asarray(scale, float), (len(theta),))[:, None] * self._prices(y)
        y = np.asarray(y, float)
        constant = theta.constant + (price * y).sum(axis=1)
        return LabelSetScores(theta.labels + price * (1.0 - 2.0 * y), theta.pairs, constant)

    def cost_between(self, y: np.ndarray, z: np.ndarray, cost: Cost | None = None) -> np.ndarray:
        """Δ(y, z), from 0 to the number of rows."""
        if self.kind in ("balanced", "hamming"):
            return ((np.asarray(y) != np.asarray(z)) * self._prices(y)).sum(axis=1)
        y, z = np.asarray(y, bool), np.asarray(z, bool)
        right, truth, size = (y & z).sum(axis=1), y.sum(axis=1), z.sum(axis=1)
        if self.kind == "precision":
            return self.n_labels * (1.0 - np.where(truth > 0, right / np.maximum(truth, 1), 1.0))
        return np.array([self._cost_of(*each) for each in zip(right, size - right, truth, strict=True)], float)

    def most_violating(
        self, theta: LabelSetScores, y: np.ndarray, cost: Cost | None = None, scale: float | np.ndarray = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """z = argmax scale · Δ(y, z) + score(z); of precision over sets of the size of y."""
        if self.kind in ("balanced", "hamming"):
            return super().most_violating(theta, y, cost, scale)
        factors = np.broadcast_to(np.asarray(scale, float), (len(theta),))
        y = np.asarray(y, bool)
        z = np.zeros(y.shape, np.int8)
        value, delta = np.empty(len(z)), np.empty(len(z))
        for i, (scores, truth, factor) in enumerate(zip(theta.labels, y, factors, strict=True)):
            value[i], delta[i] = self._worst(scores, truth, float(factor), z[i])
        return z, value + theta.constant, delta

    def _worst(self, scores: np.ndarray, truth: np.ndarray, scale: float, out: np.ndarray) -> tuple[float, float]:
        """The worst set for one query; its numbers of right and wrong rows are looked at together."""
        right, wrong = np.flatnonzero(truth), np.flatnonzero(~truth)
        right = right[np.argsort(-scores[right], kind="stable")]
        wrong = wrong[np.argsort(-scores[wrong], kind="stable")]
        best_right = np.concatenate([[0.0], np.cumsum(scores[right])])
        best_wrong = np.concatenate([[0.0], np.cumsum(scores[wrong])])
        P, N = len(right), len(wrong)
        if self.kind == "precision":
            b = np.arange(min(P, N) + 1)
            costs = self.n_labels * b / max(P, 1)
            values = scale * costs + best_right[P - b] + best_wrong[b]
            k = int(values.argmax())
            a_best, b_best, value, delta = P - k, k, float(values[k]), float(costs[k])
        else:
            value, a_best, b_best = -np.inf, 0, 0
            b = np.arange(N + 1)
            step = max(1, _CELLS // (N + 1))
            for start in range(0, P + 1, step):
                a = np.arange(start, min(start + step, P + 1))
                table = scale * self._cost_of(a[:, None], b, P) + best_right[a, None] + best_wrong
                k = int(table.argmax())
                if table.flat[k] > value:
                    value, a_best, b_best = float(table.flat[k]), start + k // (N + 1), k % (N + 1)
            delta = float(self._cost_of(a_best, b_best, P))
        out[right[:a_best]] = 1
        out[wrong[:b_best]] = 1
        return value, delta
