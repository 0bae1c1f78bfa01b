"""Alignments with the interface of all structures, in batches: compiled search on threads, vectorised features.

The results equal those of :class:`mercer.structures.Joint` over an :class:`AlignmentStructure`, which processes one
example at a time. Methods without a batched form (a cost scaled differently for each example, the 0/1 softmax margin)
fall back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer import _core
from mercer.structures.alignment import AlignmentStructure
from mercer.structures.alignment_batch import Anchors, Found, Scores, compile_batch, expect, k_best
from mercer.structures.costs import Cost
from mercer.structures.joint import Examples, FeatureSum, Joint, JointScores

_CELLS = 1 << 26  # cells of a batch: a second or so, so that an interrupt is seen soon
_COUNTS = 1 << 23  # expected counts that are held at once


class AlignmentJoint(Joint):
    """The alignments of batches of encoded pairs."""

    structure: AlignmentStructure

    def __init__(self, structure: AlignmentStructure, threads: int = 1) -> None:
        super().__init__(structure, structure.n_weights)
        self.threads = threads

    def batches(self, X: Examples, positions: int) -> Iterator[slice]:
        """Up to 256 pairs and a bounded number of cells."""
        start = cells = 0
        for i, (s, t) in enumerate(X):
            more = len(s) * len(t)
            if i > start and (i - start == 256 or cells + more > _CELLS):
                yield slice(start, i)
                start, cells = i, 0
            cells += more
        if start < len(X):
            yield slice(start, len(X))

    # ------------------------------------------------------------------ verbs

    def argmax(self, theta: JointScores) -> tuple[list[Any], np.ndarray]:
        """The best alignments, with costs if θ has them."""
        y = theta.cost_to
        if y is None:
            return _split([alignments[0] for alignments in self._best(theta, 1)])
        if np.ndim(theta.scale):
            return super().argmax(theta)
        scale = float(theta.scale)
        if self.structure.cost_name == "zero-one":
            chosen = []
            for truth, alignments in zip(y, self._best(theta, 2), strict=True):
                first = alignments[0]
                if not np.array_equal(first.pairs, truth):
                    first = first._replace(score=first.score + scale)
                elif len(alignments) > 1 and alignments[1].score + scale > first.score:
                    first = alignments[1]._replace(score=alignments[1].score + scale)
                chosen.append(first)
            return _split(chosen)
        batch = self._augmented(theta, scale)
        outputs, values = _split([alignments[0] for alignments in k_best(batch, 1, self.threads)])
        return outputs, values + scale * np.array([len(truth) for truth in y])

    def argmin(self, theta: JointScores) -> tuple[list[Any], np.ndarray]:
        """The worst alignments."""
        batch = compile_batch(theta.X, self._scores(theta).negated(), self.structure.local)
        outputs, values = _split([alignments[0] for alignments in k_best(batch, 1, self.threads)])
        return outputs, -values

    def k_best(self, theta: JointScores, k: int) -> tuple[list[list[Any]], np.ndarray]:
        """The k best alignments (None where there are fewer) and their scores (n, k)."""
        scores = np.full((len(theta), k), -np.inf)
        outputs: list[list[Any]] = [[] for _ in range(k)]
        for i, alignments in enumerate(self._best(theta, k)):
            for rank in range(k):
                outputs[rank].append(alignments[rank].pairs if rank < len(alignments) else None)
            scores[i, : len(alignments)] = [one.score for one in alignments]
        return outputs, scores

    def marginals(self, theta: JointScores) -> FeatureSum:
        """Expected features and log Z."""
        if theta.cost_to is not None and self.structure.cost_name == "zero-one":
            return super().marginals(theta)
        n_symbols = self.structure.n_symbols
        step = max(1, _COUNTS // n_symbols**2)
        total, values = np.zeros(n_symbols**2 + 2), np.empty(len(theta))
        for start in range(0, len(theta), step):
            part = slice(start, min(start + step, len(theta)))
            truth = None if theta.cost_to is None else theta.cost_to[part]
            some = JointScores(theta.w, theta.X[part], truth)
            if truth is None:
                batch = compile_batch(some.X, self._scores(some), self.structure.local)
            else:
                batch = self._augmented(some, 1.0)
            values[part], counts = expect(batch, len(some), n_symbols, self.threads)
            total += counts.sum(axis=0)
            if truth is not None:
                values[part] += [len(y) for y in truth]
        return FeatureSum(self.structure.fold(total), values, theta.X)

    def score(self, theta: JointScores, y: Sequence[Any]) -> np.ndarray:
        """⟨w, Φ(x, y)⟩."""
        return np.asarray(self._matrix(theta.X, [(y, 1)]) @ theta.w)

    # ------------------------------------------------------------------ truth, costs and margins

    def add_output(self, mu: FeatureSum, y: Sequence[Any], weights: np.ndarray) -> None:
        """``μ += weights · 1_y``."""
        mu.total += self._matrix(mu.X, [(y, 1)]).T @ weights

    def cost_between(self, y: Sequence[Any], z: Sequence[Any], cost: Cost | None = None) -> np.ndarray:
        """Δ(y, z)."""
        if self.structure.cost_name == "zero-one":
            return (~self.equal(y, z)).astype(float)
        missed = [len(a) + len(b) for a, b in zip(y, z, strict=True)]
        row_y, pairs_y = _stacked(y)
        row_z, pairs_z = _stacked(z)
        # Every (example, i) has a place, with its partner in y.
        lengths = np.zeros(len(missed), np.int64)
        for row, pairs in ((row_y, pairs_y), (row_z, pairs_z)):
            np.maximum.at(lengths, row, pairs[:, 0] + 1)
        first = np.cumsum(lengths) - lengths
        partner = np.full(int(lengths.sum()), -1, np.int64)
        partner[first[row_y] + pairs_y[:, 0]] = pairs_y[:, 1]
        shared = row_z[partner[first[row_z] + pairs_z[:, 0]] == pairs_z[:, 1]]
        return np.array(missed, float) - 2.0 * np.bincount(shared, minlength=len(missed))

    def equal(self, y: Sequence[Any], z: Sequence[Any]) -> np.ndarray:
        """Whether alignments have the same pairs."""
        return np.array([b is not None and np.array_equal(a, b) for a, b in zip(y, z, strict=True)], dtype=bool)

    def difference(self, X: Examples, y: Sequence[Any], z: Sequence[Any]) -> csr_array:
        """Φ(x, y) − Φ(x, z)."""
        return self._matrix(X, [(y, 1), (z, -1)])

    # ------------------------------------------------------------------ parts

    def _scores(self, theta: JointScores) -> Scores:
        return self.structure.scores_of(theta.w)

    def _best(self, theta: JointScores, k: int) -> list[list[Found]]:
        return k_best(compile_batch(theta.X, self._scores(theta), self.structure.local), k, self.threads)

    def _augmented(self, theta: JointScores, scale: float) -> _core.alignment.AlignmentBatch:
        """Scores + scale · Δ, less its constant scale · |y|."""
        assert theta.cost_to is not None
        anchors = []
        for (s, _), truth in zip(theta.X, theta.cost_to, strict=True):
            column = np.full(len(s), -1, np.int32)
            column[truth[:, 0]] = truth[:, 1]
            anchors.append(Anchors(column, np.full(len(s), -2.0 * scale)))
        scores = self._scores(theta)
        raised = scores._replace(substitution=scores.substitution + scale)
        return compile_batch(theta.X, raised, self.structure.local, anchors)

    def _matrix(self, X: Examples, signed: Sequence[tuple[Sequence[Any], int]]) -> csr_array:
        """Σ sign · Φ(x, y), one row an example, without zeros."""
        n, d = len(X), self.n_weights
        lengths = np.array([(len(s), len(t)) for s, t in X], np.int64).reshape(n, 2)
        begins = np.cumsum(lengths, axis=0) - lengths
        s, t = (np.concatenate([x[side] for x in X]) if n else np.empty(0, np.int32) for side in (0, 1))
        keys, values = [], []
        for outputs, sign in signed:
            row, pairs = _stacked(outputs)
            places = self.structure.place[s[begins[row, 0] + pairs[:, 0]], t[begins[row, 1] + pairs[:, 1]]]
            opened, extended = self._gaps(row, pairs, lengths)
            keys += [row * d + places, np.arange(n) * d + d - 2, np.arange(n) * d + d - 1]
            values += [np.full(len(row), sign), sign * opened, sign * extended]
        columns, which = np.unique(np.concatenate(keys), return_inverse=True)
        data = np.bincount(which, weights=np.concatenate(values), minlength=len(columns))
        columns, data = columns[data != 0], data[data != 0]
        indptr = np.searchsorted(columns, np.arange(n + 1) * d)
        return csr_array((data, columns % d, indptr), shape=(n, d))

    def _gaps(self, row: np.ndarray, pairs: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gap openings and extensions of each example."""
        n = len(lengths)
        if not self.structure.local:  # ends are pairs too: before the first and after the last symbols
            row = np.concatenate([np.arange(n), row, np.arange(n)])
            pairs = np.concatenate([np.full((n, 2), -1), pairs, lengths])
            order = np.lexsort((pairs[:, 0], pairs[:, 1], row)) if n > 1 else np.arange(len(row))
            row, pairs = row[order], pairs[order]
        steps = (np.diff(pairs, axis=0) - 1)[np.diff(row) == 0]
        at = row[1:][np.diff(row) == 0]
        opened = np.bincount(at, weights=np.count_nonzero(steps, axis=1), minlength=n)
        return opened, np.bincount(at, weights=steps.sum(axis=1), minlength=n) - opened


def _split(alignments: Sequence[Found]) -> tuple[list[Any], np.ndarray]:
    return [one.pairs for one in alignments], np.array([one.score for one in alignments])


def _stacked(outputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the examples and pairs, end to end."""
    row = np.repeat(np.arange(len(outputs)), [len(y) for y in outputs])
    pairs = np.concatenate(outputs) if len(outputs) else np.empty((0, 2))
    return row, pairs.astype(np.int64)
