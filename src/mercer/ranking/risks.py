"""The summed loss of rankings as a function of the weights, s = Xw:

    pairs              Σ over groups, Σ over pairs with y_i > y_j of max(0, 1 − (s_i − s_j)), or its square
    roc-area           Σ over groups of max_r Δ(r) + score(r) − score(y),  Δ: share of the pairs in the wrong order
    average-precision  the same with Δ = 1 − average precision
    f1                 the same with Δ = 1 − F1

One group is one example, its output r is the whole ranking (for f1: its labelling), and the loss uses margin rescaling.
A ranking's score is the mean over pairs of ±½ (s_i − s_j). The roc-area loss is the mean of the pairs' hinges: swapping
all pairs that increase the loss gives a ranking, that of the scores with 1 subtracted from those of the relevant
examples. A labelling's score is Σ_i ±½ s_i over twice the number P of positives: one wrong label costs about 1/(2P) of
F1, so the required margin is about 1, as for the plain hinge.

The losses are compiled (cpp/solvers/ranking_losses.cpp); this module computes the products with X.

Label ranking, with f(x, u) = ⟨w_u, x⟩ and A(y) the parts of the preference graph y:

    Σ_i |A(y_i)|⁻¹ Σ_{G in A(y_i)} max(0, max over (u, v) in G of 1 − f(x_i, u) + f(x_i, v)), or its square
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from mercer import _core
from mercer._threads import each
from mercer._validation import group_order

MEASURES = ("pairs", "roc-area", "average-precision", "f1")


class Products:
    """X W and Xᵀ G. A large sparse X is divided into blocks of rows for the threads.

    The blocks depend only on the data, and their parts of Xᵀ G are added in order, so the number of threads does not
    change the result.
    """

    def __init__(self, X: Any, width: int, threads: int) -> None:
        self.X, self.threads, self.blocks = X, threads, [X]
        if not issparse(X):
            return  # BLAS has threads of its own
        # At most eight, each with enough entries that adding up its part of Xᵀ G costs little beside making it.
        n = int(np.clip(X.nnz // max(2**18, 4 * X.shape[1] * width), 1, 8))
        cuts = np.linspace(0, X.shape[0], n + 1).astype(int)
        self.blocks = [_rows(X, a, b) for a, b in pairwise(cuts)] if n > 1 else [X]
        self.cuts = cuts

    def scores(self, W: np.ndarray) -> np.ndarray:
        """X W."""
        parts = self._each([(block, W) for block in self.blocks])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def adjoint(self, G: np.ndarray) -> np.ndarray:
        """Xᵀ G."""
        if len(self.blocks) == 1:
            return np.asarray(self.X.T @ G)
        parts = self._each([(block.T, G[a:b]) for block, (a, b) in zip(self.blocks, pairwise(self.cuts), strict=True)])
        return np.sum(parts, axis=0)

    def _each(self, products: list[tuple[Any, np.ndarray]]) -> list[np.ndarray]:
        return each(lambda pair: np.asarray(pair[0] @ pair[1]), products, self.threads)


def _rows(X: csr_matrix, a: int, b: int) -> csr_matrix:
    """Rows a to b, sharing the entries."""
    first, last = X.indptr[a], X.indptr[b]
    entries = (X.data[first:last], X.indices[first:last], X.indptr[a : b + 1] - first)
    return csr_matrix(entries, shape=(b - a, X.shape[1]), copy=False)


class RankingRisk:
    """Σ over groups of a ranking loss, with the gradient in the weights.

    Parameters
    ----------
    X : array or CSR matrix of float64
    y : array
        Grades; for all measures but "pairs" 0 and 1.
    groups : array or None
    measure : str
    squared : bool
        The squared hinge; for "pairs" only.
    intercept : bool
        Whether the last weight is added to all scores (only relevant for "f1").
    threads : int
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        groups: Any = None,
        *,
        measure: str = "pairs",
        squared: bool = False,
        intercept: bool = False,
        threads: int = 1,
    ) -> None:
        self.products = Products(X, 1, threads)
        self.X = X
        self.measure, self.squared, self.intercept, self.threads = measure, squared, intercept, threads
        self.order, self.offsets = group_order(groups, X.shape[0])
        self.grades = _ranks(y[self.order], self.offsets) if measure == "pairs" else y[self.order].astype(np.int32)
        self.n_examples = len(self.offsets) - 1
        self.n_weights = X.shape[1] + int(intercept)
        self.n_pairs = _count_pairs(self.grades, self.offsets)
        self.y = y, self.order, self.offsets
        self.weights: np.ndarray | None = None

    def weigh(self, weights: np.ndarray | None) -> None:
        """Multiply the loss of each group by the common weight of its rows."""
        if weights is None:
            return
        in_order = weights[self.order]
        first = in_order[np.minimum(self.offsets[:-1], len(in_order) - 1)]
        differing = np.flatnonzero(in_order != np.repeat(first, np.diff(self.offsets)))
        if len(differing):
            row = int(self.order[differing[0]])
            raise ValueError(
                f"sample_weight must be the same for all rows of a group, which is one example here: row {row} has"
                f" {weights[row]:g}, the first row of its group another"
            )
        self.weights = first

    def scores(self, w: np.ndarray) -> np.ndarray:
        """s = Xw, with the intercept if there is one."""
        if self.intercept:
            return self.products.scores(w[:-1]) + w[-1]
        return self.products.scores(w)

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The summed loss and a subgradient (written to ``out`` if given)."""
        values, slope = self.losses(self.scores(w))
        gradient = np.empty(self.n_weights) if out is None else out
        gradient[: self.n_weights - self.intercept] = self.products.adjoint(slope)
        if self.intercept:
            gradient[-1] = slope.sum()
        return float(values.sum()), gradient

    def value(self, w: np.ndarray) -> float:
        """The summed loss."""
        return float(self.losses(self.scores(w))[0].sum())

    def losses(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each group and a subgradient of their sum in the scores."""
        s = np.ascontiguousarray(scores[self.order], dtype=float)
        slope, values = np.empty(len(s)), np.empty(self.n_examples)
        batch = (s, self.grades, self.offsets)
        if self.measure == "average-precision":
            _core.ranking.average_precision_losses(*batch, slope, values, self.threads)
        elif self.measure == "f1":
            _core.ranking.f1_losses(*batch, slope, values, self.threads)
        else:
            _core.ranking.pair_losses(*batch, self.squared, slope, values, self.threads)
        if self.measure == "roc-area":
            weight = 1.0 / np.maximum(self.n_pairs, 1.0)
            values *= weight
            slope *= np.repeat(weight, np.diff(self.offsets))
        if self.weights is not None:
            values *= self.weights
            slope *= np.repeat(self.weights, np.diff(self.offsets))
        gradient = np.empty(len(s))
        gradient[self.order] = slope
        return values, gradient


class LabelRankingRisk:
    """Σ_i |A(y_i)|⁻¹ Σ_G ξ_iG, with the gradient in the weights.

    Parameters
    ----------
    X : array or CSR matrix of float64
    parts : list of lists of lists of edges
        For each example its parts G, each a list of edges (u, v) of label numbers, u preferred.
    n_labels : int
    squared : bool
    intercept : bool
        Whether each label has an additional constant weight.
    threads : int
    """

    def __init__(
        self,
        X: Any,
        parts: list[list[list[tuple[int, int]]]],
        n_labels: int,
        *,
        squared: bool = False,
        intercept: bool = False,
        threads: int = 1,
    ) -> None:
        self.products = Products(X, n_labels, threads)
        self.X = X
        self.squared, self.intercept = squared, intercept
        self.n_examples = X.shape[0]
        self.shape = n_labels, X.shape[1] + int(intercept)
        self.n_weights = n_labels * self.shape[1]
        edges = [(i, u, v) for i, graphs in enumerate(parts) for graph in graphs for u, v in graph]
        example, better, worse = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        self._better, self._worse = example * n_labels + better, example * n_labels + worse  # places in F
        self._sizes = np.array([len(graph) for graphs in parts for graph in graphs], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])[:-1]
        self._part = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._n_parts = np.array([len(graphs) for graphs in parts], dtype=np.int64)
        self._weight = np.repeat([1.0 / max(1, len(graphs)) for graphs in parts], self._n_parts)
        self.y = self._better, self._worse, self._sizes

    def weigh(self, weights: np.ndarray | None) -> None:
        """Multiply the loss of each example by its weight."""
        self.weights = weights
        if weights is not None:
            self._weight = self._weight * np.repeat(weights, self._n_parts)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """f(x_i, u) as a matrix (n_examples, n_labels)."""
        W = w.reshape(self.shape)
        if self.intercept:
            return self.products.scores(W[:, :-1].T) + W[:, -1]
        return self.products.scores(W.T)

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The summed loss and a subgradient (written to ``out`` if given)."""
        value, slope = self.loss_of(self.scores(w))
        gradient = np.empty(self.n_weights) if out is None else out
        G = gradient.reshape(self.shape)
        G[:, : self.shape[1] - self.intercept] = self.products.adjoint(slope).T
        if self.intercept:
            G[:, -1] = slope.sum(axis=0)
        return value, gradient

    def value(self, w: np.ndarray) -> float:
        """The summed loss."""
        return self.loss_of(self.scores(w))[0]

    def loss_of(self, F: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the summed loss and a subgradient in the scores of the labels."""
        flat = F.ravel()
        short = 1.0 - flat[self._better] + flat[self._worse]
        xi = np.maximum(np.maximum.reduceat(short, self._starts), 0.0)
        # Each part pulls at its worst edge (the first of them); where all edges hold, none has short = ξ > 0.
        at = np.flatnonzero((short == xi[self._part]) & (short > 0))
        at = at[np.diff(self._part[at], prepend=-1) != 0]
        part = self._part[at]
        pull = self._weight[part] * (2.0 * xi[part] if self.squared else 1.0)
        slope = np.bincount(self._worse[at], pull, minlength=F.size)
        slope -= np.bincount(self._better[at], pull, minlength=F.size)
        return float(self._weight @ (xi**2 if self.squared else xi)), slope.reshape(F.shape)


def _ranks(grades: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The rank of each grade among the different grades of its group, from 0."""
    number = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((grades, number))
    steps = np.cumsum(np.diff(grades[order].astype(float), prepend=0.0) != 0)
    steps -= np.repeat(steps[offsets[:-1]], np.diff(offsets))  # from 0 in each group
    ranks = np.empty(len(grades), np.int32)
    ranks[order] = steps
    return ranks


def _count_pairs(ranks: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Number of pairs of different grades in each group."""
    sizes = np.diff(offsets)
    number = np.repeat(np.arange(len(sizes)), sizes)
    width = int(ranks.max(initial=0)) + 1
    keys, counts = np.unique(number * width + ranks, return_counts=True)
    same = np.bincount(keys // width, weights=counts.astype(float) ** 2, minlength=len(sizes))
    return (sizes.astype(float) ** 2 - same) / 2
