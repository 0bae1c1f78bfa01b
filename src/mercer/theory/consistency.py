"""Fisher consistency: whether minimising a loss finds the most probable label.

If y has the distribution D at an input, the optimal scores minimise the conditional risk

    R(f) = Σ_y D_y ℓ(f, y)   over scores f.

A loss is *aligned* with D (conditionally Fisher consistent) if the labels of highest score are labels of highest
probability, and consistent if it is aligned with every D. The log loss is consistent. The multiclass hinge loss is not:
if no label has a probability above 1/2, its minimiser has equal scores. The hybrid loss α · log + (1 − α) · hinge is
aligned for every α above a threshold that depends on D.

Every minimum has a lower bound on R, the value of a dual problem, and therefore a certified gap::

    log                  H(D)                                                           at f = log D
    hinge                min(1, 2 (1 − D_1)); its square 4 p (1 − p), p = max(D_1, 1/2)
    hybrid(α)            max_p α H(p) + (1 − α)(1 − max(0, max_y D_y + r_y − 1)),  r = (D − α p) / (1 − α) ≥ 0
    circle               the geometric median of the corners of the simplex, by the Frank-Wolfe gap
    any convex loss      a bundle of planes: R(f') ≥ R(f) + ⟨g, f' − f⟩ − e within a radius

The printed condition for the hybrid loss, D_1 − D_2 > (1 − α)(1 − 2 D_1), is necessary but not sufficient: for
D = (0.4, 0.15, 0.15, 0.15, 0.15) it accepts every α, although the loss needs α > 1/2. Do not use it as a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_positive
from mercer.learning import dominance
from mercer.learning.losses import (
    AdaptiveHybrid,
    Circle,
    Hinge,
    Hybrid,
    Log,
    Loss,
    RelativeMargin,
    Slack,
    SquaredHinge,
    resolve_loss,
)
from mercer.learning.qp.simplex import simplex_qp
from mercer.structures.costs import Hamming, ZeroOne
from mercer.structures.labels import Labels
from mercer.theory._simplex import grid, triangle

__all__ = [
    "ConditionalMinimum",
    "SimplexMap",
    "conditional_risk",
    "hybrid_threshold",
    "is_aligned",
    "is_consistent",
    "map",
    "minimize_risk",
]

ScoreLoss = Callable[[np.ndarray, int], tuple[float, Any]]

_TIE = 1e-9  # of minimisers in closed form
_LOOSE_TIE = 1e-3  # of those that were searched for


@dataclass(frozen=True)
class ConditionalMinimum:
    """A minimiser of the conditional risk, with its certified gap.

    Attributes
    ----------
    scores : array of shape (n_labels,)
        Scores, with maximum 0 unless the loss is a function; −inf if the minimum is at infinity.
    probabilities : array of shape (n_labels,)
        Their softmax.
    value : float
        The conditional risk at the scores.
    bound : float
        A lower bound on the risk of any scores; NaN if none is known.
    gap : float
        value − bound: an upper bound on the excess risk of the scores.
    method : str
        The method: "closed form", "dual", "median" or "bundle".
    """

    scores: np.ndarray
    probabilities: np.ndarray
    value: float
    bound: float
    gap: float
    method: str


def conditional_risk(loss: str | Loss | ScoreLoss, scores: Any, D: Any) -> float:
    """Return Σ_y D_y ℓ(f, y), the expected loss of scores f under the label distribution D.

    Parameters
    ----------
    loss : str, Loss or callable
        A name of :data:`mercer.learning.LOSSES`, a loss, or a function (scores, label) → (value, subgradient).
    scores : array of shape (n_labels,)
    D : array of shape (n_labels,)
        Probabilities of the labels.

    Examples
    --------
    >>> from mercer.theory.consistency import conditional_risk
    >>> conditional_risk("hinge", [1.0, 0.0, 0.0], [0.6, 0.2, 0.2])
    0.8
    """
    D = dominance.check_distribution("D", D)
    f = np.asarray(scores, float)
    if f.shape != D.shape:
        raise ValueError(f"scores must have the {len(D)} labels of D, got shape {f.shape}")
    return _Conditional(_resolved(loss, D), D)(f)[0]


def minimize_risk(
    loss: str | Loss | ScoreLoss, D: Any, *, tol: float = 1e-8, radius: float = 20.0, max_iter: int = 500
) -> ConditionalMinimum:
    """Minimise the conditional risk of a loss under label probabilities D, with a certificate.

    With the 0/1 cost, all registered losses except the softmax margin have a closed form or an exact dual. A bundle
    method minimises the softmax margin, other costs and functions.

    Parameters
    ----------
    loss : str, Loss or callable
        A name of :data:`mercer.learning.LOSSES`, a loss, or a function (scores, label) → (value, subgradient), convex
        in the scores.
    D : array of shape (n_labels,)
        Probabilities of at least two labels.
    tol : float, default=1e-8
        The bundle method stops at this gap.
    radius : float, default=20.0
        The bound of the bundle method holds for scores between −radius and radius.
    max_iter : int, default=500
        Maximal number of steps of the bundle method.

    Returns
    -------
    minimum : ConditionalMinimum

    Notes
    -----
    The circle loss is not convex in scores. It is convex in probabilities, and its bound holds over probabilities.

    Examples
    --------
    >>> from mercer.theory.consistency import minimize_risk
    >>> found = minimize_risk("log", [0.5, 0.3, 0.2])
    >>> found.probabilities.round(3).tolist(), found.gap < 1e-12
    ([0.5, 0.3, 0.2], True)
    >>> minimize_risk("hinge", [0.4, 0.3, 0.3]).scores.tolist()  # no label dominates: all scores tie
    [0.0, 0.0, 0.0]
    """
    D = dominance.check_distribution("D", D)
    tol, radius = check_positive("tol", tol), check_positive("radius", radius)
    check_count("max_iter", max_iter)
    resolved = _resolved(loss, D)
    risk = _Conditional(resolved, D)
    plain = isinstance(resolved, Loss) and _is_zero_one(getattr(resolved, "cost", None))
    if isinstance(resolved, Log):
        with np.errstate(divide="ignore"):
            return _found(risk, np.log(D), _entropy(D), "closed form")
    if plain and isinstance(resolved, Hybrid):
        return _hybrid(risk, resolved.alpha, D)
    if plain and isinstance(resolved, (Hinge, Slack)):
        return _hinge(risk, resolved, D)
    if isinstance(resolved, Circle):
        return _median(risk, D)
    return _bundle(risk, len(D), tol, radius, max_iter)


def is_aligned(scores: Any, D: Any, tie: float = _TIE) -> bool:
    """Return whether the labels of highest score are labels of highest probability.

    Scores that differ from the highest by at most ``tie`` count as highest.

    Examples
    --------
    >>> from mercer.theory.consistency import is_aligned
    >>> is_aligned([1.0, 0.0, 0.5], [0.4, 0.3, 0.3]), is_aligned([0.0, 0.0, 0.0], [0.4, 0.3, 0.3])
    (True, False)
    """
    D = dominance.check_distribution("D", D)
    f = np.asarray(scores, float)
    if f.shape != D.shape or np.isnan(f).any():
        raise ValueError(f"scores must be numbers for the {len(D)} labels of D, got shape {f.shape}")
    highest = f >= f.max() - tie
    return bool((D[highest] >= D.max() - 1e-12).all())


def is_consistent(loss: str | Loss | ScoreLoss, D: Any, **options: Any) -> bool:
    """Return whether minimising a loss under label probabilities D finds a most probable label.

    If the minimiser is not unique and some minimisers tie at the top, the result is False. An example is the hinge loss
    with a label of probability exactly 1/2.

    Parameters
    ----------
    loss, D : see :func:`minimize_risk`
    **options
        Further arguments of :func:`minimize_risk`.

    Examples
    --------
    >>> from mercer.learning import Hybrid
    >>> from mercer.theory.consistency import is_consistent
    >>> D = [0.4, 0.15, 0.15, 0.15, 0.15]
    >>> is_consistent("log", D), is_consistent("hinge", D)
    (True, False)
    >>> is_consistent(Hybrid(alpha=0.49), D), is_consistent(Hybrid(alpha=0.51), D)
    (False, True)
    """
    minimum = minimize_risk(loss, D, **options)
    return is_aligned(minimum.scores, D, _LOOSE_TIE if minimum.method == "bundle" else _TIE)


def hybrid_threshold(D: Any, rule: str = "exact") -> float:
    """Return the share α of the log loss above which the hybrid loss is aligned with D.

    The threshold is 0 if a label dominates: every α, including the hinge loss, is then aligned.

    Parameters
    ----------
    D : array of shape (n_labels,)
        Probabilities of the labels.
    rule : {"exact", "numeric", "printed"}, default="exact"
        "exact": the smallest α with a(α) < 2 D_1 − 1 + α (1 − D_1), Σ_y min(a, D_y) = α. "numeric": bisection on α with
        minimisers from the bundle method, independent of the exact formula and accurate to about 0.01. "printed":
        1 − (D_1 − D_2) / (1 − 2 D_1), the formula of [Shi2015]_. **It is unsafe**: with three or more labels it accepts
        values at which scores tie.

    Notes ----- The exact rule is our own derivation. The dual of the conditional risk maximises an entropy under two
    linear constraints, and its solution ties at the top exactly if the inequality fails. The proof of the printed
    formula compares two tied labels; if more labels tie, raising the first gains less.

    References
    ----------
    .. [Shi2015] Q. Shi, M. Reid, T. Caetano, A. van den Hengel and Z. Wang. A hybrid loss for multiclass and structured
       prediction. IEEE Transactions on Pattern Analysis and Machine Intelligence 37, 2015.

    Examples
    --------
    >>> from mercer.theory.consistency import hybrid_threshold
    >>> D = [0.4, 0.15, 0.15, 0.15, 0.15]
    >>> round(hybrid_threshold(D), 6), round(hybrid_threshold(D, "printed"), 6)
    (0.5, -0.25)
    """
    D = dominance.check_distribution("D", D)
    check_choice("rule", rule, ("exact", "numeric", "printed"))
    first, second = np.sort(D)[::-1][:2]
    if first > 0.5 + _TIE:
        return 0.0
    if rule == "exact":
        return dominance.threshold(D)
    if rule == "printed":
        return -math.inf if first >= 0.5 else float(1.0 - (first - second) / (1.0 - 2.0 * first))
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        minimum = _bundle(_Conditional(Hybrid(middle), D), len(D), 1e-8, 5.0, 200)
        low, high = (low, middle) if is_aligned(minimum.scores, D, 0.1 * _LOOSE_TIE) else (middle, high)
    return 0.5 * (low + high)


# ------------------------------------------------------------------------------------------------ over the simplex


@dataclass(frozen=True)
class SimplexMap:
    """Distributions of a grid at which a loss is aligned.

    Attributes
    ----------
    points : array of shape (n_points, n_labels)
        Distributions.
    aligned : bool array of shape (n_points,)
    lead : array of shape (n_points,)
        Lead of the score of the most probable label over any other at the minimum.
    name : str
        The loss.
    """

    points: np.ndarray
    aligned: np.ndarray
    lead: np.ndarray
    name: str

    @property
    def share(self) -> float:
        """The share of the points at which the loss is aligned."""
        return float(self.aligned.mean())

    def plot(self, ax: Any = None) -> Any:
        """Draw the triangle of the distributions over three labels: blue where the loss is aligned, red where not.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        ax : matplotlib axes
        """
        if self.points.shape[1] != 3:
            raise ValueError(f"a triangle plot needs three labels, but this map has {self.points.shape[1]}")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(4.2, 4.0))
        x, y = triangle(self.points)
        for aligned, color in ((True, "#3b75af"), (False, "#d1495b")):
            chosen = self.aligned == aligned
            ax.scatter(x[chosen], y[chosen], s=7, color=color, label="aligned" if aligned else "not aligned")
        corners = triangle(np.eye(3))
        ax.plot([*corners[0], corners[0][0]], [*corners[1], corners[1][0]], color="0.3", lw=1)
        for k, (a, b) in enumerate(zip(*corners, strict=True)):
            ax.annotate(f"$D_{k + 1} = 1$", (a, b), ha="center", va="bottom" if k == 2 else "top", fontsize=9)
        ax.set_title(f"{self.name}: {self.share:.0%} of the simplex", pad=16)
        ax.set_aspect("equal")
        ax.axis("off")
        return ax


def map(loss: str | Loss | ScoreLoss, n_labels: int = 3, resolution: int = 60, **options: Any) -> SimplexMap:
    """Find the distributions with multiples of 1/resolution at which a loss is aligned.

    Distributions with ties for the most probable label are omitted: all of their predictions are correct.

    Parameters
    ----------
    loss : see :func:`minimize_risk`
    n_labels : int, default=3
        At least 2. There are (resolution + n_labels − 1 over n_labels − 1) points.
    resolution : int, default=60
    **options
        Further arguments of :func:`minimize_risk`.

    Returns
    -------
    map : SimplexMap
        With three labels its ``plot`` draws a triangle.

    Examples
    --------
    >>> from mercer.theory import consistency
    >>> consistency.map("log", resolution=20).share
    1.0
    >>> hinge = consistency.map("hinge", resolution=20)
    >>> bool((hinge.aligned == (hinge.points.max(axis=1) > 0.5)).all())
    True
    """
    check_count("n_labels", n_labels, 2)
    points = grid(n_labels, check_count("resolution", resolution, 2))
    ordered = np.sort(points, axis=1)
    points = points[ordered[:, -1] - ordered[:, -2] > 1e-9]
    aligned, lead = np.empty(len(points), bool), np.empty(len(points))
    for i, D in enumerate(points):
        minimum = minimize_risk(loss, D, **options)
        tie = _LOOSE_TIE if minimum.method == "bundle" else _TIE
        top = int(np.argmax(D))
        lead[i] = minimum.scores[top] - np.delete(minimum.scores, top).max()
        aligned[i] = lead[i] > tie
    name = loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", "loss"))
    return SimplexMap(points, aligned, lead, str(name))


# ------------------------------------------------------------------------------------------------ parts


class _Conditional:
    """R(f) and a subgradient, for a loss of single labels or a function."""

    def __init__(self, loss: Loss | ScoreLoss, D: np.ndarray) -> None:
        self.loss, self.D = loss, D
        self.seen = np.flatnonzero(D > 0).astype(np.int32)
        self._labels = Labels(len(D), 0)

    def __call__(self, f: np.ndarray) -> tuple[float, np.ndarray]:
        weights = self.D[self.seen]
        if isinstance(self.loss, Loss):
            theta = np.repeat(f[None], len(self.seen), axis=0)
            values, slope = self.loss.value_and_gradient(self._labels, theta, self.seen)
            return float(weights @ values), weights @ slope.probabilities
        value, gradient = 0.0, np.zeros(len(f))
        for y, weight in zip(self.seen.tolist(), weights.tolist(), strict=True):
            one, slope = _answer(self.loss, f, y)
            value, gradient = value + weight * one, gradient + weight * slope
        return value, gradient


def _answer(loss: ScoreLoss, f: np.ndarray, y: int) -> tuple[float, np.ndarray]:
    try:
        value, gradient = loss(f, y)
        value, slope = float(value), np.asarray(gradient, float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss must return (value, subgradient) for (scores, label): {error}") from error
    if slope.shape != f.shape or not np.isfinite(slope).all() or not math.isfinite(value):
        raise ValueError(
            f"loss must return a finite value and a subgradient of length {len(f)}, got {value!r}, shape {slope.shape}"
        )
    return value, slope


def _resolved(loss: Any, D: np.ndarray) -> Loss | ScoreLoss:
    if isinstance(loss, (str, Loss)):
        resolved = resolve_loss(loss)
        if isinstance(resolved, AdaptiveHybrid):  # which knows D here
            first, second = np.sort(D)[::-1][:2]
            return resolved.at(float(resolved.alphas(np.array([first]), np.array([second]))[0]))
        return resolved.for_labels(range(len(D)))
    if callable(loss):
        return loss
    raise ValueError(f"loss must be a name, a Loss or a function (scores, label) → (value, subgradient), got {loss!r}")


def _is_zero_one(cost: Any) -> bool:
    return cost is None or isinstance(cost, ZeroOne) or (type(cost) is Hamming and cost.weights is None)


def _entropy(p: np.ndarray) -> float:
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def _found(risk: _Conditional, f: np.ndarray, bound: float, method: str) -> ConditionalMinimum:
    if isinstance(risk.loss, Loss):  # a function need not be the same for shifted scores
        f = f - f.max()
    p = np.exp(f - f.max())
    value = risk(f)[0]
    return ConditionalMinimum(f, p / p.sum(), value, bound, value - bound, method)


def _hinge(risk: _Conditional, loss: Hinge | Slack, D: np.ndarray) -> ConditionalMinimum:
    """The hinge, its square and its relative: equal scores, or the dominant label ahead of equal others.

    If j leads by t, R ≥ D_j ψ(1 − t) + (1 − D_j) ψ(1 + t), which is least at t = 0 unless D_j > 1/2.
    """
    first = float(D.max())
    lead = 0.0
    if first > 0.5 + _TIE:
        lead = 2.0 * first - 1.0 if isinstance(loss, SquaredHinge) else 1.0
        if isinstance(loss, RelativeMargin):
            lead = min(lead, loss.B)
    power = 2 if isinstance(loss, SquaredHinge) else 1
    bound = first * (1.0 - lead) ** power + (1.0 - first) * (1.0 + lead) ** power
    f = np.where(np.arange(len(D)) == int(np.argmax(D)), lead, 0.0)
    return _found(risk, f, bound, "closed form")


def _hybrid(risk: _Conditional, alpha: float, D: np.ndarray) -> ConditionalMinimum:
    """By the dual: the entropy of p is largest under D − (1 − α) r = α p, with a price on r_y + D_y − 1."""
    if alpha == 0.0:
        return _hinge(risk, Hinge(), D)
    p = D if alpha == 1.0 else _dual_solution(alpha, D)
    bound = alpha * _entropy(p)
    if alpha < 1.0:
        r = (D - alpha * p) / (1.0 - alpha)
        bound += (1.0 - alpha) * (1.0 - max(0.0, float((D + r).max()) - 1.0))
    with np.errstate(divide="ignore"):
        return _found(risk, np.log(p), bound, "dual")


def _dual_solution(alpha: float, D: np.ndarray) -> np.ndarray:
    """p = min(c, D/α), but for the first label: e · c where its hinge is at the kink, or its lower bound."""
    upper = D / alpha
    top = int(np.argmax(D))
    others = np.delete(upper, top)

    def with_first(first: float) -> np.ndarray:
        return np.insert(np.minimum(_level(others, 0.0, 1.0 - first), others), top, first)

    c = _level(others, math.e, 1.0)
    first = 1.0 - float(np.minimum(c, others).sum())
    if D[top] - alpha * first >= (1.0 - alpha) * (1.0 - D[top]):  # the price is positive: the margin is 1, or more
        return with_first(first)
    first = (2.0 * D[top] - 1.0 + alpha * (1.0 - D[top])) / alpha  # the hinge of the first label is above 0
    c = _level(upper, 0.0, 1.0)
    return with_first(first) if first > c else np.minimum(c, upper)


def _level(upper: np.ndarray, slope: float, total: float) -> float:
    """The c with slope · c + Σ min(c, upper) = total (the largest of upper where the sum cannot reach it)."""
    u = np.sort(upper)
    below = np.concatenate([[0.0], np.cumsum(u)])  # of those under c
    for i in range(len(u)):
        c = (total - below[i]) / (slope + len(u) - i)
        if c <= u[i]:
            return float(c)
    return float((total - below[-1]) / slope) if slope else float(u[-1])


def _median(risk: _Conditional, D: np.ndarray) -> ConditionalMinimum:
    """Σ D_y ‖p − e_y‖ over p: Weiszfeld's steps, unless a corner is the median."""
    k = len(D)
    top = int(np.argmax(D))
    rest = np.delete(D, top)
    if math.sqrt(((1.0 - D[top]) ** 2 + float(rest @ rest)) / 2.0) <= D[top]:
        f = np.full(k, -np.inf)
        f[top] = 0.0
        value = math.sqrt(2.0) * (1.0 - float(D[top]))
        return ConditionalMinimum(f, np.exp(f), value, value, 0.0, "median")
    p = D.copy()
    for _ in range(100_000):
        distance = np.sqrt(np.maximum(1.0 - 2.0 * p + p @ p, 1e-300))
        pull = D / distance
        value = float(D @ distance)
        slope = pull.sum() * p - pull
        gap = float(slope @ p - slope.min())
        if gap <= 1e-11:
            break
        p = pull / pull.sum()
    with np.errstate(divide="ignore"):
        f = np.log(p)
    return ConditionalMinimum(f - f.max(), p, value, value - gap, gap, "median")


def _bundle(risk: _Conditional, k: int, tol: float, radius: float, max_iter: int) -> ConditionalMinimum:
    """A proximal bundle method: planes below R, and steps to the minimum of their maximum plus ‖f − f̂‖² / 2t.

    The multipliers of that problem mix the planes to one, R(f') ≥ R(f̂) + ⟨g, f' − f̂⟩ − e: the bound.
    """
    from scipy.optimize import minimize

    start = minimize(lambda f: risk(f), np.zeros(k), jac=True, method="BFGS", options={"gtol": 1e-11}).x
    if not np.isfinite(start).all() or np.abs(start).max() > radius:
        start = np.zeros(k)
    centre = start
    value, slope = risk(centre)
    slopes, offsets = [slope], [value - float(slope @ centre)]
    step, weights, bound = 1.0, np.ones(1), -math.inf
    for _ in range(max_iter):
        G = np.array(slopes)
        errors = value - (np.array(offsets) + G @ centre)
        if errors.min() < -1e-7 * max(1.0, abs(value)):
            raise ValueError("the loss is not convex in the scores, so it has no bound")
        errors = np.maximum(errors, 0.0)
        weights = simplex_qp(step * (G @ G.T), -errors, start=weights)
        mixed, error = weights @ G, float(weights @ errors)
        bound = max(bound, value - error - float(mixed @ centre) - radius * float(np.abs(mixed).sum()))
        expected = error + step * float(mixed @ mixed)
        if value - bound <= tol or expected <= 1e-13 * max(1.0, abs(value)):
            break
        trial = centre - step * mixed
        new, slope = risk(trial)
        if len(slopes) > 6 * k:
            kept = weights > 0
            slopes = [g for g, keep in zip(slopes, kept, strict=True) if keep]
            offsets = [b for b, keep in zip(offsets, kept, strict=True) if keep]
            weights = weights[kept]
        slopes.append(slope)
        offsets.append(new - float(slope @ trial))
        if value - new >= 0.1 * expected:
            if np.abs(trial).max() > radius:
                break  # the minimum lies at infinity
            centre, value, step = trial, new, min(2.0 * step, 1e6)
        else:
            step = max(0.8 * step, 1e-3)
    for probe in np.random.default_rng(0).normal(scale=radius / 4.0, size=(4 * k, k)):
        if np.abs(probe).max() <= radius and risk(probe)[0] < bound - 1e-7 * max(1.0, abs(bound)):
            raise ValueError("the loss is not convex in the scores, so it has no bound")
    return _found(risk, centre, bound, "bundle")
