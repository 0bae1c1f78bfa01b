"""Estimate the share α_i of each example for the adaptive hybrid loss.

    1. split the data into folds; fit the log loss on all but one of them
    2. estimate the two largest probabilities p_1, p_2 of each example of that fold
    3. α_i = rule(p_1, p_2)

Folds are needed because a model is overconfident on its training examples. They are interleaved blocks of examples, so
that sorted data are spread over the folds and batches stay long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.learning.losses import AdaptiveHybrid, Log, check_known
from mercer.learning.penalties import Penalty
from mercer.learning.risk import BATCH_POSITIONS, AdaptiveRisk, Risk, WeightedRisk
from mercer.learning.solvers import resolve_solver
from mercer.learning.training import train

__all__ = ["Dominance", "adapted", "dominance_of", "fold_numbers", "log_start"]

_BLOCKS = 10  # of each fold
_LEVELS = 16  # of α, where a batch holds examples of one α only
_CHOICES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Dominance:
    """The two largest probabilities of each example, estimated by a model not trained on it."""

    first: np.ndarray
    second: np.ndarray


def adapted(risk: Risk, penalty: Penalty, C: float, random_state: Any = None) -> AdaptiveRisk:
    """Return the risk with shares α_i, estimated from its data.

    Parameters
    ----------
    risk : Risk
        With the loss :class:`AdaptiveHybrid`.
    penalty, C
        Settings of the models with the log loss. Their constants have no penalty, even if the solver of the risk
        penalises them.
    random_state : int, Generator or None
        Seed of their solver.

    Raises
    ------
    ValueError
        If there is only one example.
    """
    loss = risk.loss
    assert isinstance(loss, AdaptiveHybrid)
    check_known(risk.structure, risk.y, loss.name)
    if risk.n_examples < 2:
        raise ValueError(f"the adaptive hybrid loss needs at least 2 examples, got {risk.n_examples}")
    folds = min(loss.folds, risk.n_examples)
    estimated = dominance_of(risk, penalty, C, folds, random_state)
    if loss.rule == "held-out":
        low, high = _held_out(risk, penalty, C, estimated, folds)
        alphas = np.where(estimated.first > 0.5, low, high)
    else:
        alphas = loss.alphas(estimated.first, estimated.second)
    return _risk_with(risk, alphas)


def log_start(risk: Risk, penalty: Penalty, C: float, random_state: Any = None) -> np.ndarray:
    """Return the weights that minimise the log loss on the data of a risk, as a start for nonconvex losses.

    At weights of 0 the gradient of the circle loss is of order 1/|Y|, almost 0 for sequences.
    """
    return _trained(WeightedRisk(risk.structure, Log(), risk.X, risk.y, _weights(risk)), penalty, C, random_state)


def fold_numbers(n: int, folds: int) -> np.ndarray:
    """Return the fold of each of n examples: interleaved blocks."""
    blocks = min(n, _BLOCKS * folds)
    return (np.arange(n) * blocks // max(1, n)) % folds


def dominance_of(risk: Risk, penalty: Penalty, C: float, folds: int, random_state: Any = None) -> Dominance:
    """Estimate the two largest probabilities of each example by models of the other folds."""
    first, second = np.zeros(risk.n_examples), np.zeros(risk.n_examples)
    fold = fold_numbers(risk.n_examples, folds)
    weights = _weights(risk)
    for k in range(folds):
        pilot = WeightedRisk(risk.structure, Log(), risk.X, risk.y, np.where(fold == k, 0.0, weights))
        w = _trained(pilot, penalty, C * folds / (folds - 1), random_state)
        for batch in risk.structure.batches(risk.X, BATCH_POSITIONS):
            if not (fold[batch] == k).any():
                continue
            theta = risk.structure.scores(w, risk.X[batch])
            scores = risk.structure.k_best(theta, 2)[1]
            p = np.exp(scores - risk.structure.log_partition(theta)[:, None])
            here = fold[batch] == k
            first[batch] = np.where(here, np.minimum(p[:, 0], 1.0), first[batch])
            second[batch] = np.where(here, np.minimum(p[:, 1], p[:, 0]), second[batch])
    return Dominance(first, second)


def _held_out(risk: Risk, penalty: Penalty, C: float, estimated: Dominance, folds: int) -> tuple[float, float]:
    """The shares of dominant and other examples with the lowest cost on one fold, learned from the others."""
    dominant = estimated.first > 0.5
    fold = fold_numbers(risk.n_examples, folds)
    held, weights = fold == 0, _weights(risk)
    best, least = (1.0, 1.0), np.inf
    # Ties go to the larger shares: the log loss is consistent.
    for low in reversed(_CHOICES):
        for high in reversed([choice for choice in _CHOICES if choice >= low]):
            trial = _risk_with(risk, np.where(dominant, low, high), np.where(held, 0.0, weights))
            cost = _mean_cost(risk, _trained(trial, penalty, C * folds / (folds - 1), None), held)
            if cost < least - 1e-12:
                best, least = (low, high), cost
    return best


def _mean_cost(risk: Risk, w: np.ndarray, chosen: np.ndarray) -> float:
    """The mean cost Δ of the best outputs of some examples."""
    structure, total = risk.structure, 0.0
    for batch in structure.batches(risk.X, BATCH_POSITIONS):
        if chosen[batch].any():
            theta, y = structure.scores(w, risk.X[batch]), risk.y[batch]
            delta = structure.most_violating(theta, y, None, 0.0)[2]  # of the best output: no cost is added
            total += float(delta[chosen[batch]].sum())
    return total / max(1, int(chosen.sum()))


def _trained(risk: Any, penalty: Penalty, C: float, random_state: Any) -> np.ndarray:
    solver = resolve_solver("auto", risk.loss, penalty)
    if not solver.frees_constants:
        penalty = replace(penalty, free=0)
    result, _ = train(risk, solver=solver, C=C, penalty=penalty, random_state=random_state, warn=False)
    if result.interrupted:
        raise KeyboardInterrupt
    return result.w


def _weights(risk: Risk) -> np.ndarray:
    return getattr(risk, "weights", np.ones(risk.n_examples))


def _risk_with(risk: Risk, alphas: np.ndarray, weights: np.ndarray | None = None) -> AdaptiveRisk:
    if not risk.structure.weighs_examples:
        alphas = np.minimum(1.0, np.ceil(alphas * _LEVELS - 1e-9) / _LEVELS)
    given = _weights(risk) if weights is None else weights
    return AdaptiveRisk(risk.structure, risk.loss, risk.X, risk.y, alphas, given)  # type: ignore[arg-type]
