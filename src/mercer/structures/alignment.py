"""Alignments as a structure, with all methods that losses and solvers need.

    Φ(x, y) = (number of each substitution, number of gap openings, number of gap extensions)
    Δ(y*, y) = |y* \\ y| + |y \\ y*|, the missed pairs and the wrong pairs

Δ adds over the pairs of y, Δ(y*, y) = |y*| + Σ_{(i,j) ∈ y} (1 − 2 [(i, j) ∈ y*]), so the search for the best alignment
also finds the best one after Δ is added. The 0/1 cost needs the two best alignments instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core
from mercer._state.limits import reserve
from mercer._state.saved import Saved
from mercer._validation import check_choice, check_count
from mercer.structures.alignment_batch import Anchors, Coded, Scores, compile_batch, expect, k_best
from mercer.structures.custom import CustomStructure

_DENSE = 4096  # features as a dense vector up to this length, as a sparse row beyond


class AlignmentStructure(Saved, CustomStructure):
    """The alignments of a pair of encoded sequences.

    An input x is a pair (s, t) of int32 arrays of symbol numbers, an output y an int32 array of shape (n_pairs, 2).
    :class:`Aligner` encodes the sequences; use the structure directly with
    :class:`~mercer.structured.StructuredPredictor`.

    The weights are the scores of substitutions (row by row; with ``symmetric`` those of a ≤ b), of opening and of
    extending a gap: a gap of length l scores ``gap_open + (l − 1) · gap_extend``.

    Parameters
    ----------
    n_symbols : int
        Size of the alphabet.
    mode : {"global", "local"}, default="global"
    symmetric : bool, default=True
        Whether the substitutions (a, b) and (b, a) share a weight.
    cost : {"pairs", "zero-one"}, default="pairs"

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.alignment import AlignmentStructure
    >>> structure = AlignmentStructure(2)
    >>> x = np.array([0, 1, 1], np.int32), np.array([0, 1], np.int32)
    >>> w = np.array([1.0, -1.0, 1.0, -2.0, -0.5])  # 00, 01, 11, open, extend
    >>> structure.argmax(w, x).tolist()
    [[0, 0], [2, 1]]
    """

    def __init__(self, n_symbols: int, mode: str = "global", symmetric: bool = True, cost: str = "pairs") -> None:
        self.n_symbols = check_count("n_symbols", n_symbols)
        self.mode = check_choice("mode", mode, ("global", "local"))
        self.symmetric = bool(symmetric)
        self.cost_name = check_choice("cost", cost, ("pairs", "zero-one"))
        self.local = mode == "local"
        a, b = np.indices((n_symbols, n_symbols))
        if symmetric:
            a, b = np.minimum(a, b), np.maximum(a, b)
            self.place = a * n_symbols - a * (a - 1) // 2 + (b - a)
        else:
            self.place = a * n_symbols + b
        self.n_weights = int(self.place.max()) + 3

    def _saved_params(self) -> dict[str, Any]:
        return {"n_symbols": self.n_symbols, "mode": self.mode, "symmetric": self.symmetric, "cost": self.cost_name}

    @classmethod
    def _make(cls, params: dict[str, Any]) -> AlignmentStructure:
        reserve(24 * check_count("n_symbols", params["n_symbols"]) ** 2, "the places of the weights")
        return cls(**params)

    # ------------------------------------------------------------------ weights and scores

    def scores_of(self, w: np.ndarray) -> Scores:
        """Return the weight vector as substitution matrix and gap scores."""
        w = np.asarray(w, dtype=float)
        if w.shape != (self.n_weights,):
            raise ValueError(f"w must have the shape ({self.n_weights},), got {w.shape}")
        return Scores(w[self.place], float(w[-2]), float(w[-1]))

    def weights_of(self, scores: Scores) -> np.ndarray:
        """Return the inverse of :meth:`scores_of`."""
        w = np.empty(self.n_weights)
        w[self.place] = scores.substitution
        w[-2:] = scores.gap_open, scores.gap_extend
        return w

    def fold(self, counts: np.ndarray) -> np.ndarray:
        """Return counts of all pairs of symbols as counts of weights."""
        out = np.bincount(self.place.ravel(), weights=counts[:-2], minlength=self.n_weights)
        out[-2:] = counts[-2:]
        return out

    # ------------------------------------------------------------------ the contract

    def features(self, x: Any, y: Any) -> Any:
        """Return Φ(x, y): counts of substitutions, gap openings and gap extensions."""
        s, t = x
        places = self.place[s[y[:, 0]], t[y[:, 1]]]
        ends = y if self.local else np.concatenate([[[-1, -1]], y, [[len(s), len(t)]]])
        gaps = np.diff(ends, axis=0) - 1
        opened = np.count_nonzero(gaps)
        tail = np.array([opened, gaps.sum() - opened], dtype=float)
        if self.n_weights <= _DENSE:
            out = np.bincount(places, minlength=self.n_weights).astype(float)
            out[-2:] = tail
            return out
        columns, counts = np.unique(places, return_counts=True)
        columns = np.concatenate([columns, [self.n_weights - 2, self.n_weights - 1]])
        row = np.zeros(len(columns), int), columns
        return sparse.csr_matrix((np.concatenate([counts, tail]), row), shape=(1, self.n_weights))

    def cost(self, y_true: Any, y: Any) -> float:
        """Return Δ: missed pairs plus wrong pairs, or 1 for every other alignment."""
        if self.cost_name == "zero-one":
            return 0.0 if self.equal(y_true, y) else 1.0
        return float(len(y_true) + len(y) - 2 * shared_pairs(y_true, y))

    def argmax(self, w: np.ndarray, x: Any, cost_to: Any = None) -> np.ndarray:
        """Return the alignment of highest score; with ``cost_to`` of highest score plus cost."""
        scores = self.scores_of(w)
        if cost_to is not None and self.cost_name == "zero-one":
            best_two = k_best(self._batch(x, scores), 2)[0]
            first = best_two[0]
            if len(best_two) > 1 and self.equal(first.pairs, cost_to) and best_two[1].score + 1.0 > first.score:
                first = best_two[1]
            return first.pairs
        return k_best(self._batch(x, scores, cost_to), 1)[0][0].pairs

    def argmin(self, w: np.ndarray, x: Any) -> np.ndarray:
        """Return the alignment of lowest score."""
        return k_best(self._batch(x, self.scores_of(w).negated()), 1)[0][0].pairs

    def k_best(self, w: np.ndarray, x: Any, k: int) -> list[tuple[np.ndarray, float]]:
        """Return the k best alignments and their scores, best first."""
        return [(aligned.pairs, aligned.score) for aligned in k_best(self._batch(x, self.scores_of(w)), k)[0]]

    def log_partition(self, w: np.ndarray, x: Any, cost_to: Any = None) -> tuple[float, np.ndarray]:
        """Return log Σ_y exp(score(y) + Δ) and the expected features under that distribution."""
        scores = self.scores_of(w)
        zero_one = cost_to is not None and self.cost_name == "zero-one"
        log_z, counts = expect(self._batch(x, scores, None if zero_one else cost_to), 1, self.n_symbols)
        value, expected = float(log_z[0]), self.fold(counts[0])
        if zero_one:
            # Σ_{y ≠ y*} e^{s(y) + 1} + e^{s(y*)} = e Z (1 − (1 − 1/e) p(y*))
            truth = self.features(x, cost_to)
            truth = truth.toarray()[0] if sparse.issparse(truth) else truth
            share = -np.expm1(-1.0) * min(1.0, float(np.exp(truth @ w - value)))
            return value + 1.0 + float(np.log1p(-share)), (expected - share * truth) / (1.0 - share)
        return value + (0.0 if cost_to is None else len(cost_to)), expected

    def equal(self, y: Any, z: Any) -> bool:
        """Return whether the two alignments have the same pairs."""
        return np.array_equal(y, z)

    # ------------------------------------------------------------------ parts

    def _batch(self, x: Any, scores: Scores, cost_to: Any = None) -> _core.alignment.AlignmentBatch:
        coded = Coded(*x)
        if cost_to is None:
            return compile_batch([coded], scores, self.local)
        column = np.full(len(coded.s), -1, np.int32)
        column[cost_to[:, 0]] = cost_to[:, 1]
        anchors = Anchors(column, np.full(len(coded.s), -2.0))
        return compile_batch([coded], scores._replace(substitution=scores.substitution + 1.0), self.local, [anchors])


def shared_pairs(y: np.ndarray, z: np.ndarray) -> int:
    """Return the number of pairs common to two alignments."""
    if not len(y) or not len(z):
        return 0
    # Both ascend in i, so a partner is found by bisection.
    at = np.minimum(np.searchsorted(z[:, 0], y[:, 0]), len(z) - 1)
    return int(np.count_nonzero((z[at] == y).all(axis=1)))
