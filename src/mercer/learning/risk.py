"""Empirical risk: data × structure × loss, as a sum over examples.

    value(w) = Σ_i loss(θ_i(w), y_i),   gradient(w) = Σ_i backward(x_i, ∂loss/∂θ_i)

Batches are processed in a fixed order, and each compiled step gives the same result for any number of threads. So the
sums are reproducible to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from mercer.exceptions import InfeasibleError
from mercer.learning.losses import AdaptiveHybrid, Log, Loss, PlaneLoss, check_known
from mercer.structures.base import Structure

# Part scores of one batch stay in the processor's second-level cache.
BATCH_POSITIONS = 4096
# A structure with the log loss in one call makes its own batches; Python looks for Ctrl-C between calls of this size.
CALL_POSITIONS = 64 * BATCH_POSITIONS


class Risk:
    """The summed loss of a structure on data.

    Parameters
    ----------
    structure : Structure
    loss : Loss
    X, y : batches of inputs and outputs, both sliceable over examples
    """

    at_hand = True  # whether X and y hold the examples, or only sums over them can be had

    def __init__(self, structure: Structure, loss: Loss, X: Any, y: Any) -> None:
        if len(X) != len(y):
            raise ValueError(f"{len(X)} inputs and {len(y)} outputs")
        self.structure, self.loss, self.X, self.y = structure, loss, X, y
        has_log_loss = getattr(structure, "has_log_loss", lambda X, y: False)
        self._at_once = type(loss) is Log and has_log_loss(X, y)
        self._batches = list(self._slices(CALL_POSITIONS if self._at_once else BATCH_POSITIONS))

    def _slices(self, positions: int) -> Iterable[slice]:
        """Batches of about this size; single examples where the loss needs their marginals one by one."""
        if self.loss.by_example and not self.structure.weighs_examples:
            return (slice(i, i + 1) for i in range(len(self.X)))
        return self.structure.batches(self.X, positions)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.X)

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.structure.n_weights

    def check_known(self) -> None:
        """Raise ValueError where an output is only partly known."""
        check_known(self.structure, self.y, self.loss.name)

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """Return the summed loss and its gradient (written to ``out`` if given).

        Raises
        ------
        InfeasibleError
            If the constraints allow no labelling of an example, or forbid its true one.
        """
        gradient = np.zeros(self.n_weights) if out is None else out
        if out is not None:
            gradient[:] = 0.0
        total = 0.0
        for batch in self._batches:
            X, y = self.X[batch], self.y[batch]
            if self._at_once:
                values = self.structure.log_loss(w, X, y, gradient)  # type: ignore[attr-defined]
            else:
                theta = self.structure.scores(w, X)
                values, slope = self.loss.value_and_gradient(self.structure, theta, y)
            total += float(_feasible(values, batch).sum())
            if not self._at_once:
                self.structure.backward(X, slope, gradient)
        return total, gradient

    def curvature(self, w: np.ndarray, out: np.ndarray) -> bool:
        """Write an estimate of the diagonal of the Hessian at w to ``out``; False where the structure has none."""
        if type(self.loss) is not Log or not self.structure.has_curvature(self.X):
            return False
        out[:] = 0.0
        for batch in self._slices(BATCH_POSITIONS):
            X = self.X[batch]
            self.structure.curvature(X, self.structure.scores(w, X), out)
        return True

    def value(self, w: np.ndarray) -> float:
        """Return the summed loss."""
        total = 0.0
        for batch in self._slices(BATCH_POSITIONS):
            theta = self.structure.scores(w, self.X[batch])
            values, _ = self.loss.value_and_gradient(self.structure, theta, self.y[batch])
            total += float(_feasible(values, batch).sum())
        return total

    def oracle(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array, np.ndarray]:
        """Return the highest plane of each example at w, for losses that are maxima of planes.

        Returns
        -------
        values : array
            max_z of offset − ⟨w, slope⟩, before any square.
        slopes : sparse matrix, one row per example
        offsets : array
        """
        assert isinstance(self.loss, PlaneLoss)
        values, slopes, offsets = [], [], []
        for batch in self._batches if examples is None else [examples]:
            X, y = self.X[batch], self.y[batch]
            check_known(self.structure, y, self.loss.name)
            theta = self.structure.scores(w, X)
            z, value, delta = self.loss.worst(self.structure, theta, y)
            _feasible(value, batch)
            slope, offset = self.loss.planes(self.structure, X, y, z, delta)
            values.append(value)
            slopes.append(slope)
            offsets.append(offset)
        stacked = slopes[0] if len(slopes) == 1 else csr_array(vstack(slopes, format="csr"))
        return np.concatenate(values), stacked, np.concatenate(offsets)

    def lowest(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array]:
        """Return the largest margin of each true output, for a relative margin, and its slope Φ(x, y) − Φ(x, z)."""
        leads, slopes = [], []
        for batch in self._batches if examples is None else [examples]:
            X, y = self.X[batch], self.y[batch]
            theta = self.structure.scores(w, X)
            z, lead = self.loss.lowest(self.structure, theta, y)  # type: ignore[attr-defined]
            leads.append(lead)
            slopes.append(self.structure.difference(X, y, z))
        return np.concatenate(leads), csr_array(vstack(slopes, format="csr"))


class WeightedRisk(Risk):
    """A risk with example weights: Σ_i weight_i loss_i.

    If the loss is a maximum of planes, the planes of an example are scaled, which scales its loss. Marginals are summed
    within a batch, so a batch holds examples of one weight only. Runs of equal weights are faster.

    Parameters
    ----------
    structure, loss, X, y : see :class:`Risk`
    weights : array of shape (n_examples,), not negative
    """

    def __init__(self, structure: Structure, loss: Loss, X: Any, y: Any, weights: np.ndarray) -> None:
        super().__init__(structure, loss, X, y)
        self.weights = weights
        self._at_once = False
        self._batches = list(self._slices(BATCH_POSITIONS))
        if not structure.weighs_examples:
            self._batches = [part for batch in self._batches for part in _runs(weights, batch)]

    def _losses(self, batch: slice, theta: Any) -> tuple[np.ndarray, Any]:
        """The losses of a batch, and their gradient."""
        return self.loss.value_and_gradient(self.structure, theta, self.y[batch])

    def value_and_gradient(self, w: np.ndarray, out: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """Return the weighted sum of losses and its gradient."""
        gradient = np.zeros(self.n_weights) if out is None else out
        gradient[:] = 0.0
        total = 0.0
        for batch in self._batches:
            X, weights = self.X[batch], self.weights[batch]
            if not weights.any():
                continue
            theta = self.structure.scores(w, X)
            values, slope = self._losses(batch, theta)
            total += float(weights @ _feasible(values, batch))
            slope.scale(weights if self.structure.weighs_examples else float(weights[0]))
            self.structure.backward(X, slope, gradient)
        return total, gradient

    def value(self, w: np.ndarray) -> float:
        """Return the weighted sum of losses."""
        total = 0.0
        for batch in self._batches:
            if not self.weights[batch].any():
                continue
            theta = self.structure.scores(w, self.X[batch])
            values, _ = self._losses(batch, theta)
            total += float(self.weights[batch] @ _feasible(values, batch))
        return total

    def curvature(self, w: np.ndarray, out: np.ndarray) -> bool:
        """Estimate the diagonal, as if all examples had the mean weight."""
        known = super().curvature(w, out)
        if known:
            out *= self.weights.mean()
        return known

    def oracle(self, w: np.ndarray, examples: slice | None = None) -> tuple[np.ndarray, csr_array, np.ndarray]:
        """Return the highest plane of each example, scaled."""
        assert isinstance(self.loss, PlaneLoss)
        values, slopes, offsets = super().oracle(w, examples)
        scale = self.weights[slice(None) if examples is None else examples] ** (1.0 / self.loss.power)
        scaled = slopes.data * np.repeat(scale, np.diff(slopes.indptr))
        return values * scale, csr_array((scaled, slopes.indices, slopes.indptr), shape=slopes.shape), offsets * scale


class AdaptiveRisk(WeightedRisk):
    """A risk with the hybrid loss and a share α_i of the log loss for each example.

    Batches are runs of equal weights and shares, unless the structure weighs examples.

    Parameters
    ----------
    structure, loss, X, y : see :class:`Risk`
    alphas : array of shape (n_examples,), from 0 to 1
    weights : array of shape (n_examples,), optional
    """

    loss: AdaptiveHybrid

    def __init__(
        self,
        structure: Structure,
        loss: AdaptiveHybrid,
        X: Any,
        y: Any,
        alphas: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> None:
        super().__init__(structure, loss, X, y, np.ones(len(X)) if weights is None else weights)
        self.alphas = alphas
        if not structure.weighs_examples:
            self._batches = [part for batch in self._batches for part in _runs(alphas, batch)]

    def _losses(self, batch: slice, theta: Any) -> tuple[np.ndarray, Any]:
        alphas = self.alphas[batch]
        alpha = alphas if self.structure.weighs_examples else float(alphas[0])
        return self.loss.blend(self.structure, theta, self.y[batch], alpha)


def _runs(weights: np.ndarray, batch: slice) -> list[slice]:
    """A batch cut where the weight changes."""
    cuts = batch.start + 1 + np.flatnonzero(np.diff(weights[batch]) != 0)
    bounds = [batch.start, *cuts.tolist(), batch.stop]
    return [slice(a, b) for a, b in pairwise(bounds)]


def _feasible(values: np.ndarray, batch: slice) -> np.ndarray:
    """The losses of a batch, if all are finite."""
    if not np.isfinite(values).all():
        raise InfeasibleError(batch.start + int(np.flatnonzero(~np.isfinite(values))[0]))
    return values
