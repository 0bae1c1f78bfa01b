"""Geometric margins of weights and probabilistic margins of distributions.

The *geometric margin* of an example is the score difference between its true output and the best other one, divided by
‖w‖::

    M_w(x, y) / ‖w‖,   M_w(x, y) = min_{z≠y} ⟨w, Φ(x, y) − Φ(x, z)⟩

A *probabilistic margin* measures by a function μ(p, y) how strongly a distribution p favours a label y. The sets
{p : μ(p, y) > γ} are convex and shrink towards the corner p(y) = 1 as γ grows::

    svm      μ = ln p(y) − max_{z≠y} ln p(z)       γ any number       wedges between bisectors
    lcrf     μ = ln p(y)                           γ up to 0          triangles parallel to the opposite side
    circle   μ = 1 − ‖p − e_y‖                     γ up to 1          disks around the corner

Each of them defines a loss, [γ_0 − μ]_+: the hinge loss (svm, γ_0 = 1), the log loss (lcrf, γ_0 = 0) and the circle
loss (circle, γ_0 = 1). In the published table of these losses, the row of the log loss has both signs flipped. The row
of the squared hinge has no truncation: its μ = m − m²/2 falls again beyond m = 1, so its sets exclude the corner and
are not convex. It is not a probabilistic margin, as :func:`check_margin` reports. With [1 − m]_+²/2 it would be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count
from mercer.learning.dominance import check_distribution
from mercer.theory._models import linear_view
from mercer.theory._simplex import grid, triangle

__all__ = ["ProbabilisticMargin", "as_margin", "check_margin", "geometric", "probabilistic"]

MARGINS = ("svm", "lcrf", "circle")
_CONTOURS = {
    "svm": (0.5, 1.0, 1.5),
    "lcrf": (math.log(0.6), math.log(0.7), math.log(0.8)),
    "circle": (0.5, 0.65, 0.8),
}
_TOP = {"svm": math.inf, "lcrf": 0.0, "circle": 1.0}


def geometric(model: Any, X: Any, y: Any) -> np.ndarray:
    """Return the geometric margin of each example: the margin of the true output, divided by ‖w‖.

    The margin is negative for misclassified examples. The smallest margin is the margin of the model on the data; for
    the hard-margin machine it is 1/‖w‖.

    Parameters
    ----------
    model : fitted linear structured model or kernel machine
        See :func:`mercer.theory.pac_bayes.bound`.
    X, y : data in the form that the model takes

    Returns
    -------
    margins : array of shape (n_examples,)
        inf for an input with a single output.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearClassifier
    >>> from mercer.theory import margins
    >>> X, y = np.array([[2.0], [-2.0]]), ["up", "down"]
    >>> model = LinearClassifier(C=1e4, fit_intercept=False).fit(X, y)
    >>> margins.geometric(model, X, y).round(3)  # the difference of features is 2 √2 long
    array([2.828, 2.828])
    """
    view = linear_view(model)
    leads = view.leads(view.read(X, y))
    if view.norm == 0.0:
        raise ValueError("all weights of the model are 0, so geometric margins are undefined")
    return leads / view.norm


class ProbabilisticMargin:
    """A function μ(p, y) whose sets {p : μ(p, y) > γ} are convex and nested; see :func:`probabilistic`.

    Attributes
    ----------
    name : str
    contours : tuple of float
        Values of γ to draw.
    largest : float
        Above this γ the sets are empty.
    """

    def __init__(self, name: str) -> None:
        self.name = check_choice("name", name, MARGINS)
        self.contours, self.largest = _CONTOURS[name], _TOP[name]

    def __repr__(self) -> str:
        return f"probabilistic({self.name!r})"

    def mu(self, p: Any, y: int) -> float:
        """Return μ(p, y) of a distribution."""
        p, y = self._checked(p, y)
        return float(self._mu(p[None], y)[0])

    def _mu(self, p: np.ndarray, y: int) -> np.ndarray:
        """Return μ of many distributions."""
        if self.name == "circle":
            return 1.0 - np.linalg.norm(p - np.eye(p.shape[1])[y], axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(p)
        if self.name == "lcrf":
            return logs[:, y]
        others = np.delete(logs, y, axis=1).max(axis=1)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(logs[:, y]), -np.inf, logs[:, y] - others)

    def contains(self, p: Any, y: int, gamma: float) -> bool:
        """Return whether μ(p, y) > γ."""
        return self.mu(p, y) > _number("gamma", gamma)

    def project(self, p: Any, y: int, gamma: float) -> np.ndarray:
        """Return the distribution nearest to p, in Euclidean distance, with μ ≥ γ: the closure of the set.

        Parameters
        ----------
        p : array of shape (n_labels,)
            A distribution.
        y : int
            The label.
        gamma : float
            At most ``largest``: above it the set is empty.
        """
        p, y = self._checked(p, y)
        gamma = _number("gamma", gamma)
        if gamma > self.largest:
            raise ValueError(f"no distribution has μ above {self.largest:g} for {self.name!r}, got gamma={gamma!r}")
        if self._mu(p[None], y)[0] >= gamma:
            return p
        if self.name == "circle":  # towards the corner: the ball around it is cut by nothing else
            away = p - np.eye(len(p))[y]
            return np.eye(len(p))[y] + away * ((1.0 - gamma) / np.linalg.norm(away))
        if self.name == "lcrf":
            top = math.exp(gamma)
            return np.insert(_simplex(np.delete(p, y), 1.0 - top), y, top)
        return _wedge(p, y, math.exp(-gamma))

    def loss(self, scores: Any, y: int) -> float:
        """Return [γ_0 − μ]_+ of scores: the hinge, log or circle loss."""
        f = np.asarray(scores, float)
        p = np.exp(f - f.max())
        gamma = {"svm": 1.0, "lcrf": 0.0, "circle": 1.0}[self.name]
        return max(0.0, gamma - self.mu(p / p.sum(), y))

    def plot(self, y: int = 0, ax: Any = None, resolution: int = 200) -> Any:
        """Draw the contours of μ for a label over the triangle of distributions over three labels.

        Parameters
        ----------
        y : int, default=0
            The label.
        ax : matplotlib axes, optional
        resolution : int, default=200
            Points of the grid along a side.

        Returns
        -------
        ax : matplotlib axes
        """
        check_count("resolution", resolution, 3)
        if y not in (0, 1, 2):
            raise ValueError(f"y must be one of three labels, 0, 1 or 2, got {y!r}")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(4.2, 4.0))
        points = grid(3, resolution)
        values = np.maximum(self._mu(points, y), -20.0)
        finite = np.isfinite(values)
        values = np.where(finite, values, 20.0)
        a, b = triangle(points)
        ax.tricontourf(a, b, values, levels=[*self.contours, max(20.0, values.max() + 1)], cmap="Blues", alpha=0.6)
        lines = ax.tricontour(
            a, b, values, levels=list(self.contours), colors="#1f4e79", linewidths=1.2, linestyles="solid"
        )
        ax.clabel(lines, fmt=lambda value: f"γ = {value:.2f}", fontsize=7)
        corners = triangle(np.eye(3))
        ax.plot([*corners[0], corners[0][0]], [*corners[1], corners[1][0]], color="0.3", lw=1)
        for k, (u, v) in enumerate(zip(*corners, strict=True)):
            ax.annotate(f"$p_{k + 1} = 1$", (u, v), ha="center", va="bottom" if k == 2 else "top", fontsize=9)
        ax.set_title(self.name, pad=16)
        ax.set_aspect("equal")
        ax.axis("off")
        return ax

    def _checked(self, p: Any, y: Any) -> tuple[np.ndarray, int]:
        p = check_distribution("p", p)
        if isinstance(y, bool) or not isinstance(y, (int, np.integer)) or not 0 <= y < len(p):
            raise ValueError(f"y must be a label from 0 to {len(p) - 1}, got {y!r}")
        return p, int(y)


def probabilistic(name: str) -> ProbabilisticMargin:
    """Return a probabilistic margin by its name.

    Parameters
    ----------
    name : {"svm", "lcrf", "circle"}

    Examples
    --------
    >>> from mercer.theory import margins
    >>> circle = margins.probabilistic("circle")
    >>> round(circle.mu([0.8, 0.2], 0), 4), circle.contains([0.8, 0.2], 0, 0.7)
    (0.7172, True)
    >>> circle.project([0.5, 0.5], 0, 0.8).round(3)
    array([0.859, 0.141])
    """
    return ProbabilisticMargin(name)


_AS_MARGIN = {"hinge": ("svm", 1.0), "log": ("lcrf", 0.0), "circle": ("circle", 1.0)}


def as_margin(loss: str) -> tuple[ProbabilisticMargin, float]:
    """Return the probabilistic margin μ and the γ_0 of which a loss is [γ_0 − μ]_+.

    Parameters
    ----------
    loss : {"hinge", "log", "circle"}

    Examples
    --------
    >>> from mercer.theory import margins
    >>> margins.as_margin("hinge")
    (probabilistic('svm'), 1.0)
    """
    if loss == "squared-hinge":
        raise ValueError("the squared hinge is not a probabilistic margin: without truncation its sets are not convex")
    name, gamma = _AS_MARGIN[check_choice("loss", loss, tuple(_AS_MARGIN))]
    return ProbabilisticMargin(name), gamma


def check_margin(
    mu: Callable[[np.ndarray, int], float] | ProbabilisticMargin,
    n_labels: int = 3,
    n_points: int = 10_000,
    random_state: Any = 0,
) -> list[str]:
    """Check at random distributions whether a function is a probabilistic margin.

    The sets must be convex: the midpoint of two points has a μ of at least the smaller of the two values. The sets must
    shrink to the corner p(y) = 1: no distribution has a larger μ than the corner, and μ does not fall on the way there.

    Parameters
    ----------
    mu : callable (p, y) → float, or ProbabilisticMargin
    n_labels : int, default=3
    n_points : int, default=10_000
        Number of pairs of distributions.
    random_state : int, Generator or None, default=0

    Returns
    -------
    problems : list of str
        Empty if no violation was found.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import margins
    >>> margins.check_margin(margins.probabilistic("svm"))
    []
    >>> def squared_hinge(p, y):
    ...     m = np.log(p[y]) - np.log(np.delete(p, y).max())
    ...     return m - m * m / 2
    >>> len(margins.check_margin(squared_hinge)) > 0
    True
    """
    check_count("n_labels", n_labels, 2)
    check_count("n_points", n_points)
    rng = np.random.default_rng(random_state)
    a, b = rng.dirichlet(np.full(n_labels, 0.7), size=(2, n_points)) * (1.0 - 1e-9) + 1e-9 / n_labels
    corner = np.eye(n_labels)[0] * (1.0 - 1e-6) + 1e-6 / n_labels

    def values(p: np.ndarray) -> np.ndarray:
        return mu._mu(p, 0) if isinstance(mu, ProbabilisticMargin) else np.array([float(mu(one, 0)) for one in p])

    at_a, at_b, middle, nearer = values(a), values(b), values((a + b) / 2), values((a + corner) / 2)
    top = float(values(corner[None])[0])
    problems = []
    for count, what in (
        (np.sum(middle < np.minimum(at_a, at_b) - 1e-9), "midpoints of two points lie outside their set: not convex"),
        (np.sum(at_a > top + 1e-9), "points with a larger margin than the corner"),
        (np.sum(nearer < np.minimum(at_a, top) - 1e-9), "points leave a set on the way to the corner"),
    ):
        if count:
            problems.append(f"{int(count)} of {n_points}: {what}")
    return problems


# ------------------------------------------------------------------------------------------------ projections


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def _simplex(v: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest point with entries of at least 0 that sum to ``total``."""
    if total <= 0.0:
        return np.zeros_like(v)
    u = np.sort(v)[::-1]
    shift = (np.cumsum(u) - total) / np.arange(1, len(u) + 1)
    return np.maximum(0.0, v - shift[np.flatnonzero(u > shift)[-1]])


def _wedge(p: np.ndarray, y: int, kappa: float) -> np.ndarray:
    """Return the nearest distribution with q_z ≤ κ q_y for all z.

    Its conditions are q_z = min(max(p_z − ν, 0), κ q_y) and q_y = p_y − ν + κ Σ_z [p_z − ν − κ q_y]_+, which j labels
    above κ q_y make linear; ν is the root of Σ q = 1.
    """
    others = np.delete(p, y)
    counts = np.arange(len(p))

    def of(nu: float) -> tuple[float, np.ndarray]:
        v = np.sort(others - nu)[::-1]
        first = (p[y] - nu + kappa * np.concatenate([[0.0], np.cumsum(v)])) / (1.0 + counts * kappa**2)
        # With j labels above: the largest such q is the root, as adding a label that is not above lowers it.
        q = max(0.0, float(first.max()))
        return q, np.minimum(np.maximum(others - nu, 0.0), kappa * q)

    low, high = -1.0, 1.0
    for _ in range(80):
        nu = 0.5 * (low + high)
        first, rest = of(nu)
        low, high = (nu, high) if first + float(rest.sum()) > 1.0 else (low, nu)
    first, rest = of(0.5 * (low + high))
    q = np.insert(rest, y, first)
    return q / q.sum()
