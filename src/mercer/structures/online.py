"""Online rules by the inference methods of a structure, for structures without a compiled loop.

    0  gradient descent     w −= η_t (λ w + ∇ log loss),   η_t = η_0 / (1 + η_0 decay t)
    1  perceptron           w += Φ(x, y) − Φ(x, ŷ)
    2  passive-aggressive   w += τ d,  d = Φ(x, y) − Φ(x, ŷ),  τ = min(C, (score(ŷ) − score(y) + √errors) / ‖d‖²)

The state is that of the compiled loop for chains: the weights are ``state.scale · w``; ``extra`` holds the ℓ1 penalty
applied to each weight, or Σ step · update, from which the mean of all weights is w − extra / (steps + 1).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mercer.structures.base import Structure

__all__ = ["online_by_verbs"]

_SMALLEST_SCALE = 1e-6  # of the weights, before it is multiplied into them


def online_by_verbs(
    structure: Structure,
    rule: int,
    X: Any,
    y: Any,
    order: np.ndarray,
    w: np.ndarray,
    extra: np.ndarray,
    state: Any,
    *,
    rate: float = 0.0,
    decay: float = 0.0,
    l2: float = 0.0,
    l1: float = 0.0,
    aggressiveness: float = 0.0,
) -> tuple[float, int]:
    """Take one step for each example in the given order; return (summed loss, wrong labels)."""
    total, mistakes = 0.0, 0
    lengths = X.lengths
    for i in order.tolist():
        if not lengths[i]:
            continue
        x, truth = X[i : i + 1], y[i : i + 1]
        theta = structure.scores(w * state.scale, x)
        if rule == 0:
            eta = rate / (1.0 + rate * decay * state.step)
            total += _log_step(structure, x, truth, theta, w, state, eta, l2)
            if l1 > 0:
                _pay(w, extra, state, eta * l1)
        else:
            bound = aggressiveness if rule == 2 else None
            loss, wrong = _mistake_step(structure, x, truth, theta, w, extra, state, bound)
            total, mistakes = total + loss, mistakes + wrong
    return total, mistakes


def _log_step(
    structure: Structure, x: Any, y: Any, theta: Any, w: np.ndarray, state: Any, eta: float, l2: float
) -> float:
    """A step against the gradient of log Z(θ) − log Z(θ restricted to y); returns that loss."""
    if structure.is_partial(y):
        known = copy.deepcopy(structure.marginals(structure.restrict(theta, y)))
        mu = structure.marginals(theta)
        loss = float(mu.log_partition[0] - known.log_partition[0])
        mu.subtract(known)
    else:
        mu = structure.marginals(theta)
        loss = float(mu.log_partition[0] - structure.score(theta, y)[0])
        structure.subtract_truth(mu, y)
    slope = np.zeros(len(w))
    structure.backward(x, mu, slope)
    state.scale *= max(1e-12, 1.0 - eta * l2)
    state.step += 1.0
    w -= (eta / state.scale) * slope
    if state.scale < _SMALLEST_SCALE:
        w *= state.scale
        state.scale = 1.0
    return loss


def _pay(w: np.ndarray, paid: np.ndarray, state: Any, owed: float) -> None:
    """The ℓ1 penalty of a step, on all weights: none crosses 0 (cumulative penalty)."""
    state.l1_total += owed
    before = state.scale * w
    down, up = np.maximum(0.0, before - (state.l1_total + paid)), np.minimum(0.0, before + (state.l1_total - paid))
    after = np.where(before > 0, down, np.where(before < 0, up, 0.0))
    paid += after - before
    w[:] = after / state.scale


def _mistake_step(
    structure: Structure,
    x: Any,
    y: Any,
    theta: Any,
    w: np.ndarray,
    extra: np.ndarray,
    state: Any,
    aggressiveness: float | None,
) -> tuple[float, int]:
    """A step towards the truth where the best output is another one; returns (loss, wrong labels)."""
    if structure.is_partial(y):  # the truth is the best output that agrees with what is known
        labels, _ = structure.argmax(structure.restrict(theta, y))
        y = type(y)(labels, y.offsets, partial=False)
    z, value, delta = structure.most_violating(theta, y, None, 0.0)  # without a cost: the best output
    state.step += 1.0
    if not delta[0] > 0:
        return 0.0, 0
    errors = max(1, round(float(delta[0])))
    update = structure.difference(x, y, z)
    loss, tau = float(value[0] - structure.score(theta, y)[0]), 1.0
    if aggressiveness is not None:
        loss += float(np.sqrt(errors))
        norm = float(update.data @ update.data)
        tau = min(aggressiveness, loss / norm) if norm > 0 else 0.0
    np.add.at(w, update.indices, tau * update.data)
    np.add.at(extra, update.indices, state.step * tau * update.data)
    return loss, errors
