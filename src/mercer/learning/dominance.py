"""Dominance: the share α of the log loss that the hybrid loss needs if no label has probability 1/2.

Let y have the distribution D with largest probability D_1. The conditional risk of the hybrid loss with share α has the
minimiser f = log p, with α p + (1 − α) r = D for a distribution r (the dual of the hinge). The highest scores tie
unless

    2 D_1 − 1 + (1 − D_1) S(a) > a,   S(a) = Σ_y min(a, D_y),   S(a) = α

The left side minus a is piecewise linear in a, so the smallest such α, the threshold, is exact. It is 0 if a label
dominates. The published condition D_1 − D_2 > (1 − α)(1 − 2 D_1) is necessary but not sufficient: it considers only two
tied labels, whereas S(a) counts all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["DominanceReport", "check_distribution", "dominance_report", "threshold", "threshold_of_two"]


@dataclass(frozen=True)
class DominanceReport:
    """The result of :func:`dominance_report`.

    Attributes
    ----------
    probabilities : array of shape (n_examples,)
        Probability of the most probable output of each example.
    n_examples : int
    n_dominated : int
        Number of examples without a dominant output: the most probable output has probability below 1/2.
    share : float
        Share of these examples; NaN without examples.
    """

    probabilities: np.ndarray

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.probabilities)

    @property
    def n_dominated(self) -> int:
        """Return the number of examples without a dominant output."""
        return int((self.probabilities < 0.5).sum())

    @property
    def share(self) -> float:
        """Return the share of the examples without a dominant output."""
        return self.n_dominated / self.n_examples if self.n_examples else float("nan")

    def __str__(self) -> str:
        return f"{self.n_dominated} of {self.n_examples} examples have no output of probability 1/2 or more"


def dominance_report(model: Any, X: Any) -> DominanceReport:
    """Return the probabilities of the best outputs, and how often the best one is below 1/2.

    If an output dominates, the hinge loss is consistent. If none does, its scores tie, and losses with a likelihood are
    the better choice.

    Parameters
    ----------
    model : fitted estimator
        With ``k_best`` (``Tagger``, ``Segmenter``, ``Parser``, …) or ``predict_proba``; trained with the log loss or
        another loss whose scores are log-probabilities.
    X : inputs

    Returns
    -------
    report : DominanceReport

    Examples
    --------
    >>> from mercer import Tagger
    >>> from mercer.learning import dominance_report
    >>> X, y = [[["a"], ["b"]], [["c"], ["c"]], [["c"], ["c"]]], [["x", "y"], ["x", "y"], ["y", "x"]]
    >>> tagger = Tagger(C=10.0).fit(X, y)
    >>> print(dominance_report(tagger, [[["a"], ["b"]], [["c"], ["c"], ["c"], ["c"]]]))
    1 of 2 examples have no output of probability 1/2 or more
    """
    if hasattr(model, "k_best"):
        best = [ranked[0][1] if ranked else -np.inf for ranked in model.k_best(X, 1)]
        return DominanceReport(np.exp(np.array(best, dtype=float)))
    if hasattr(model, "predict_proba"):
        return DominanceReport(np.asarray(model.predict_proba(X), dtype=float).max(axis=1))
    raise TypeError(f"model must have k_best or predict_proba, and {type(model).__name__} has neither")


def check_distribution(name: str, D: Any) -> np.ndarray:
    """Return the probabilities of at least two labels as an array; raise ValueError unless they sum to 1."""
    try:
        values = np.asarray(D, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, the probabilities of the labels") from None
    if values.ndim != 1:
        raise ValueError(f"{name} must be one distribution, an array of one dimension, got shape {values.shape}")
    if len(values) < 2:
        raise ValueError(f"{name} must have at least two labels, got {len(values)}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{name} must hold probabilities: finite numbers of at least 0")
    total = float(values.sum())
    if abs(total - 1.0) > 1e-6:
        raise ValueError(f"{name} must sum to 1, got {total:.6g}")
    return values / total


def threshold(D: np.ndarray) -> float:
    """Return the largest α at which the hybrid loss is not aligned with D; 0 if a label dominates.

    Parameters
    ----------
    D : array of shape (n_labels,)
        A distribution, in any order.
    """
    D = np.sort(D)[::-1]
    first = D[0]
    rest = D[first - D > _TIE]  # the labels that must not reach the top
    if first >= 0.5 or not len(rest):
        return 0.0

    def gain(a: float) -> float:
        return 2.0 * first - 1.0 + (1.0 - first) * float(np.minimum(a, D).sum()) - a

    # Beyond the second largest probability the scores of the first label lead by themselves.
    low = 0.0
    for high in np.unique(rest):
        if gain(high) > 0:
            below, above = gain(low), gain(high)
            return float(np.minimum(low + (high - low) * -below / (above - below), D).sum())
        low = float(high)
    return float(np.minimum(low, D).sum())


def threshold_of_two(first: Any, second: Any) -> np.ndarray:
    """Return the threshold from the two largest probabilities, for the least favourable other probabilities.

    All other labels have probability at most D_2. S is smallest, and the threshold largest, if all of them have D_2.

    Parameters
    ----------
    first, second : arrays
        D_1 ≥ D_2 of each example.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    others = 1.0 - first
    with np.errstate(divide="ignore", invalid="ignore"):
        labels = 1.0 + others / second  # S(a) / a up to D_2
        slope = others * labels - 1.0
        crossing = (1.0 - 2.0 * first) / slope
        inside = (slope > 0) & (crossing < second)
        alpha = np.where(inside, labels * crossing, second + others)
    return np.where(first >= 0.5, 0.0, np.clip(alpha, 0.0, 1.0))


_TIE = 1e-12
