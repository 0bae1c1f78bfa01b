"""Losses: map part scores θ and the true output y to a value and its gradient in θ.

| loss | value | gradient in θ |
|---|---|---|
| log | log_partition(θ) − score(θ, y) | marginals(θ) − 1_y |
| hinge (margin rescaling) | h = max_z [Δ(y, z) + score(θ, z)] − score(θ, y) | 1_ẑ − 1_y |
| squared-hinge | h² | 2 h (1_ẑ − 1_y) |
| slack (slack rescaling) | max_z Δ(y, z) (1 + score(θ, z) − score(θ, y)) | Δ(y, ẑ) (1_ẑ − 1_y) |
| softmax-margin | log_partition(θ + Δ) − score(θ, y) | marginals(θ + Δ) − 1_y |
| tempered(β) | log_partition(β (θ + Δ)) / β − score(θ, y) | marginals(β (θ + Δ)) − 1_y |
| hybrid(α) | α · log + (1 − α) · [1 + max_{z≠y} score(θ, z) − score(θ, y)]₊ | the same blend |
| adaptive-hybrid | hybrid(α_i), α_i from the estimated dominance of the best output of example i | the same blend |
| relative-margin(B) | hinge, subject to score(θ, y) − score(θ, z) ≤ B for all z | as hinge |
| circle | d = √(1 − 2 p_y + s), s = Σ_z p_z² = exp(log Z(2θ) − 2 log Z(θ)) | ((p_y − s) μ(θ) + s μ(2θ) − p_y 1_y) / d |

A loss calls only methods of a structure, so it works on every structure that implements them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer._state.values import Codec, Reader, Writer, register
from mercer._validation import check_choice, check_count, check_positive
from mercer.learning.dominance import threshold_of_two
from mercer.structures.base import Structure
from mercer.structures.costs import Cost, cost_from_json, resolve_cost


class Loss(ABC):
    """A value and a gradient in part scores for a batch of examples."""

    name: str
    smooth = True
    takes_partial = False  # whether outputs may be only partly known
    convex = True
    by_example = False  # whether the gradient needs the marginals of each example by themselves
    exact = True  # False: the worst output may be missed, so that planes met before can lie higher than the newest

    @abstractmethod
    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return the loss of each example and the gradient of their sum, in the form of the structure's marginals."""

    def bind(self, cost: Cost | None) -> Loss:
        """Return the loss with this cost, unless it already has one or takes none."""
        return self

    def for_labels(self, classes: Sequence[Any]) -> Loss:
        """Return the loss with its cost for these labels; raise ValueError if the cost does not fit them."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return name and parameters as plain data."""
        return {"name": self.name}


class Log(Loss):
    """Negative log-likelihood: log Z(θ) − score(θ, y).

    If y is only partly known, it is the likelihood of all outputs that agree with the known part: log Z(θ) − log Z(θ
    restricted to y), with gradient marginals(θ) − marginals(θ restricted).

    References
    ----------
    .. [Lafferty2001] J. Lafferty, A. McCallum and F. Pereira. Conditional random fields: probabilistic models for
       segmenting and labeling sequence data. ICML, 2001.
    """

    name = "log"
    takes_partial = True

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return log Z − score and μ − 1_y."""
        if structure.is_partial(y):
            known = structure.marginals(structure.restrict(theta, y))
            known = _copied(known)
            mu = structure.marginals(theta)
            mu.subtract(known)
            return mu.log_partition - known.log_partition, mu
        mu = structure.marginals(theta)
        value = mu.log_partition - structure.score(theta, y)
        structure.subtract_truth(mu, y)
        return value, mu


class CostLoss(Loss):
    """A loss with a cost Δ.

    Parameters
    ----------
    cost : str, mapping, array, callable or Cost, optional
        None: the cost of the estimator, else the default of the structure (Hamming for tag sequences, 0/1 for single
        labels).
    """

    def __init__(self, cost: Any = None) -> None:
        self.cost: Cost | None = None if cost is None else resolve_cost(cost)

    def bind(self, cost: Cost | None) -> Loss:
        """Return a copy with this cost, unless the loss already has one."""
        if self.cost is not None or cost is None:
            return self
        return self._with(cost)

    def for_labels(self, classes: Sequence[Any]) -> Loss:
        """Return a copy whose cost is for these labels."""
        return self if self.cost is None else self._with(self.cost.bind(list(classes)))

    def to_json(self) -> dict[str, Any]:
        """Return name, parameters and cost as plain data."""
        node: dict[str, Any] = {"name": self.name}
        for name, value in vars(self).items():
            node[name] = value.to_json() if isinstance(value, Cost) else value
        return node

    def _with(self, cost: Cost) -> Loss:
        bound = copy.copy(self)
        bound.cost = cost
        return bound


class PlaneLoss(CostLoss):
    """A loss that is a maximum of planes in w, one per output: max_z offset(z) − ⟨w, slope(z)⟩.

    Cutting-plane and block-coordinate solvers work on these planes.
    """

    smooth = False
    power = 1  # of the maximum; 2 for the squared hinge

    @abstractmethod
    def worst(self, structure: Structure, theta: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the output ẑ of the highest plane, the value of that plane, and Δ(y, ẑ)."""

    def planes(self, structure: Structure, X: Any, y: Any, z: Any, delta: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return slopes (a sparse matrix, one row per example) and offsets of the planes of outputs z."""
        return structure.difference(X, y, z), delta

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return the highest plane and its slope."""
        check_known(structure, y, self.name)
        z, value, _ = self.worst(structure, theta, y)
        return value, _pulled(structure, theta, y, z, np.ones(len(value)))


class Hinge(PlaneLoss):
    """Margin rescaling: max_z [Δ(y, z) + score(z)] − score(y).

    It is at least the cost of the predicted output.

    References
    ----------
    .. [Taskar2003] B. Taskar, C. Guestrin and D. Koller. Max-margin Markov networks. NIPS, 2003.
    .. [Tsochantaridis2005] I. Tsochantaridis, T. Joachims, T. Hofmann and Y. Altun. Large margin methods for structured
       and interdependent output variables. Journal of Machine Learning Research 6, 2005.
    """

    name = "hinge"

    def worst(self, structure: Structure, theta: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the loss-augmented argmax."""
        z, value, delta = structure.most_violating(theta, y, self.cost)
        return z, _above_zero(value - structure.score(theta, y)), delta


class SquaredHinge(Hinge):
    """The square of :class:`Hinge`."""

    name = "squared-hinge"
    power = 2

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return h² and 2 h (1_ẑ − 1_y)."""
        check_known(structure, y, self.name)
        z, h, _ = self.worst(structure, theta, y)
        return h * h, _pulled(structure, theta, y, z, 2.0 * h)


class Slack(PlaneLoss):
    """Slack rescaling: max_z Δ(y, z) (1 + score(z) − score(y)).

    The maximum is exact for single labels and enumerated outputs (all products are compared), and for chains with
    integer costs (Hamming, integer weights or matrices; the best score at each cost level). Otherwise it is found by a
    search over λ of margin-rescaled outputs argmax_z λ Δ(y, z) + score(z). The search visits the corners of the convex
    hull of all points (Δ, 1 + score(z) − score(y)), so it can miss an output inside the hull. The value is then a lower
    bound, and the gap of a solver is an estimate.

    Parameters
    ----------
    cost : see :class:`CostLoss`
    search : int, default=12
        Maximum number of search steps.

    References
    ----------
    .. [Tsochantaridis2005] I. Tsochantaridis, T. Joachims, T. Hofmann and Y. Altun. Large margin methods for structured
       and interdependent output variables. Journal of Machine Learning Research 6, 2005.
    """

    name = "slack"
    exact = False

    def __init__(self, cost: Any = None, search: int = 12) -> None:
        super().__init__(cost)
        self.search = search

    def worst(self, structure: Structure, theta: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the best product of cost and violation."""
        truth = structure.score(theta, y)
        if np.isneginf(truth).any():  # the constraints forbid a true output
            return y, np.where(np.isneginf(truth), np.inf, 0.0), np.zeros(len(truth))
        exact = self._table(structure, theta, y, truth)
        if exact is None:
            exact = structure.best_product(theta, y, self.cost)
        return self._search(structure, theta, y, truth) if exact is None else exact

    def _search(
        self, structure: Structure, theta: Any, y: Any, truth: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """The best corner of the hull."""
        n = len(truth)
        best, value, cost = y, np.zeros(n), np.zeros(n)

        def visit(scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            nonlocal best, value, cost
            z, _, delta = structure.most_violating(theta, y, self.cost, scale)
            margin = 1.0 + structure.score(theta, z) - truth
            better = delta * margin > value
            best = structure.select(better, z, best)
            value, cost = np.where(better, delta * margin, value), np.where(better, delta, cost)
            return delta, margin

        # λ → ∞ maximises Δ, λ → 0 the violation; between two corners the next λ is the slope of their segment.
        spread = np.maximum(1.0, np.abs(truth))
        low, high = visit(1e-6 * spread), visit(1e3 * spread)
        for _ in range(self.search):
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = (low[1] - high[1]) / (high[0] - low[0])
            open_ = np.isfinite(slope) & (slope > 0)
            if not open_.any():
                break
            scale = np.where(open_, slope, 1.0)
            new = visit(scale)
            # A new corner lies above the segment; keep the half where the product can still be larger.
            gain = scale * new[0] + new[1] - np.maximum(scale * low[0] + low[1], scale * high[0] + high[1])
            open_ &= gain > 1e-9 * np.maximum(1.0, np.abs(new[1]))
            rising = new[1] - scale * new[0] > 0  # the product grows with Δ at the corner
            low = _where(open_ & rising, new, low)
            high = _where(open_ & ~rising, new, high)
            low = _where(open_, low, high)
        return best, value, cost

    def _table(self, structure: Structure, theta: Any, y: Any, truth: np.ndarray) -> Any:
        """All outputs at once, where θ lists them."""
        if not isinstance(theta, np.ndarray):
            return None
        costs = structure.augment(np.zeros_like(theta), y, self.cost)
        allowed = ~np.isneginf(theta)
        products = np.where(allowed, costs * (1.0 + np.where(allowed, theta, 0.0) - truth[:, None]), -np.inf)
        z = products.argmax(axis=1).astype(np.int32)
        value = np.take_along_axis(products, z[:, None], 1)[:, 0]
        z = np.where(value > 0, z, y).astype(np.int32)
        return z, np.maximum(value, 0.0), np.take_along_axis(costs, z[:, None], 1)[:, 0].astype(float)

    def planes(self, structure: Structure, X: Any, y: Any, z: Any, delta: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return slopes and offsets times the cost."""
        slopes = structure.difference(X, y, z)
        slopes.data *= np.repeat(delta, np.diff(slopes.indptr))
        return slopes, delta

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return the product and Δ (1_ẑ − 1_y)."""
        check_known(structure, y, self.name)
        z, value, delta = self.worst(structure, theta, y)
        return value, _pulled(structure, theta, y, z, delta)


class SoftmaxMargin(CostLoss):
    """log Z(θ + Δ) − score(θ, y): the log loss with the costs added to the scores.

    It exceeds the hinge by −log max_z p̄(z), at most the logarithm of the number of outputs. The cost must decompose.

    References
    ----------
    .. [Gimpel2010] K. Gimpel and N. Smith. Softmax-margin CRFs: training log-linear models with cost functions. NAACL,
       2010.
    """

    name = "softmax-margin"

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return log Z(θ + Δ) − score and marginals(θ + Δ) − 1_y."""
        check_known(structure, y, self.name)
        _check_decomposes(self, theta)
        truth = structure.score(theta, y)
        mu = structure.marginals(structure.augment(theta, y, self.cost))
        structure.subtract_truth(mu, y)
        return mu.log_partition - truth, mu


class Tempered(CostLoss):
    """(1/β) log Σ_z exp β (score(z) + Δ(y, z)) − score(y): the family between the log loss and the hinge.

    β = 1 is :class:`SoftmaxMargin`, and the log loss without a cost; β → ∞ is :class:`Hinge` (without a cost the
    structured perceptron's loss). The loss decreases with β and exceeds the hinge by at most log(number of outputs) /
    β. So a large β gives a smooth loss close to the hinge. The cost must decompose.

    Parameters
    ----------
    beta : float, default=1.0
        Inverse temperature, above 0.
    margin : bool, default=True
        Whether costs are added to the scores.
    cost : see :class:`CostLoss`

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning import Tempered
    >>> from mercer.structures import Labels
    >>> theta, y = np.array([[1.0, 0.5, -1.0]]), np.array([0])
    >>> [round(float(Tempered(beta).value_and_gradient(Labels(3, 0), theta, y)[0][0]), 3) for beta in (1, 10, 100)]
    [1.104, 0.501, 0.5]

    References
    ----------
    .. [Pletscher2010] P. Pletscher, C. S. Ong and J. M. Buhmann. Entropy and margin maximization for structured output
       learning. ECML, 2010.
    .. [Hazan2010] T. Hazan and R. Urtasun. A primal-dual message-passing algorithm for approximated large scale
       structured prediction. NIPS, 2010.
    """

    name = "tempered"

    def __init__(self, beta: float = 1.0, margin: bool = True, cost: Any = None) -> None:
        super().__init__(cost)
        self.beta, self.margin = check_positive("beta", beta), bool(margin)

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return log Z(β (θ + Δ)) / β − score and marginals(β (θ + Δ)) − 1_y."""
        check_known(structure, y, self.name)
        truth = structure.score(theta, y)
        if self.margin:
            _check_decomposes(self, theta)
            theta = structure.augment(theta, y, self.cost)
        mu = structure.marginals(structure.scaled(theta, self.beta))
        structure.subtract_truth(mu, y)
        return mu.log_partition / self.beta - truth, mu


class Hybrid(CostLoss):
    """α · log + (1 − α) · hinge.

    As in the published definition, the hinge compares the true output with the best *other* one, at a margin of 1
    (2-best decoding). With ``margin="cost"`` it is the margin-rescaled :class:`Hinge` instead.

    Parameters
    ----------
    alpha : float, default=0.5
        Between 0 (hinge) and 1 (log).
    margin : {"unit", "cost"}, default="unit"
    cost : see :class:`CostLoss`
        With ``margin="cost"``.
    """

    name = "hybrid"
    smooth = False

    def __init__(self, alpha: float = 0.5, margin: str = "unit", cost: Any = None) -> None:
        super().__init__(cost)
        if not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
            raise ValueError(f"alpha must lie between 0 (hinge) and 1 (log), got {alpha!r}")
        self.alpha, self.margin = float(alpha), check_choice("margin", margin, ("unit", "cost"))

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return the weighted sum of both values and both gradients."""
        return self.blend(structure, theta, y, self.alpha)

    def blend(self, structure: Structure, theta: Any, y: Any, alpha: Any) -> tuple[np.ndarray, Any]:
        """Return the loss with this α: one number, or one for each example if the structure weighs examples."""
        check_known(structure, y, self.name)
        truth = structure.score(theta, y)
        if self.margin == "unit":
            z, score = structure.runner_up(theta, y)
            hinge = 1.0 + score - truth
        else:
            z, value, _ = structure.most_violating(theta, y, self.cost)
            hinge = value - truth
        active = hinge > 0
        value = (1.0 - alpha) * np.where(active, hinge, 0.0)
        if np.any(alpha > 0):
            mu = structure.marginals(theta)
            value = value + alpha * (mu.log_partition - truth)
            structure.subtract_truth(mu, y)
            mu.scale(alpha)
        else:
            mu = structure.zeros(theta)
        pull = (1.0 - alpha) * active
        structure.add_output(mu, z, pull)
        structure.add_output(mu, y, -pull)
        return value, mu


class AdaptiveHybrid(Hybrid):
    """The hybrid loss with a separate share α for each example.

    An output *dominates* if it is more probable than all others together. Then the hinge loss is consistent. If no
    output dominates, the scores of the hinge loss tie, and the hybrid loss needs an α above a threshold to find the
    most probable output. Estimators first fit models with the log loss on folds of the training data. These models
    estimate the two largest probabilities p_1 ≥ p_2 of held-out examples. Estimators then minimise the hybrid loss with
    the resulting α_i, which are fixed, so the objective is convex. Without these models, the loss is the log loss.

    Parameters
    ----------
    rule : {"threshold", "held-out", "function"} or callable, default="threshold"
        "threshold": ``floor`` if p_1 > 1/2, else the α above which the hybrid loss is consistent for any other
        probabilities, plus ``slack``. "held-out": two values out of 0, 1/2 and 1, one for dominant outputs and one for
        others, with the lowest cost on held-out training data. Or a function of arrays (p_1, p_2) → α. "function"
        stands for such a function in model files; it cannot be fitted.
    floor : float, default=0.5
        α if an output seems to dominate, and the minimum α. With 0 these examples have only the hinge loss, which is
        most harmful if the estimate is wrong.
    slack : float, default=0.1
        Added to the threshold, because p_1 and p_2 are estimates.
    ceiling : float, default=1.0
        The maximum α. With few training examples, the estimates of p_1 and p_2 lead to a larger share of the log loss
        than is useful: choose ``ceiling`` by validation, together with ``floor``. If both are equal, all examples have
        the same α.
    folds : int, default=5
        Number of folds of the training data. The probabilities of a fold come from a model of the other folds, so
        training fits this number of additional models with the log loss.
    margin : {"unit", "cost"}, default="unit"
        See :class:`Hybrid`. The thresholds are those of a margin of 1.
    cost : see :class:`CostLoss`
        With ``margin="cost"``.

    References
    ----------
    .. [Shi2015] Q. Shi, M. Reid, T. Caetano, A. van den Hengel and Z. Wang. A hybrid loss for multiclass and structured
       prediction. IEEE Transactions on Pattern Analysis and Machine Intelligence 37, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning import AdaptiveHybrid
    >>> AdaptiveHybrid().alphas(np.array([0.9, 0.46, 0.4]), np.array([0.05, 0.27, 0.15])).round(3)
    array([0.5, 0.5, 0.6])
    """

    name = "adaptive-hybrid"

    def __init__(
        self,
        rule: Any = "threshold",
        floor: float = 0.5,
        slack: float = 0.1,
        ceiling: float = 1.0,
        folds: int = 5,
        margin: str = "unit",
        cost: Any = None,
    ) -> None:
        super().__init__(1.0, margin, cost)
        if not callable(rule):
            check_choice("rule", rule, ("threshold", "held-out", "function"))
        self.rule = rule
        for name, value in (("floor", floor), ("slack", slack), ("ceiling", ceiling)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
        if floor > ceiling:
            raise ValueError(f"floor must not be above ceiling, got {floor!r} and {ceiling!r}")
        self.floor, self.slack, self.ceiling = float(floor), float(slack), float(ceiling)
        self.folds = check_count("folds", folds, 2)

    def alphas(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return α of examples with the estimated two largest probabilities ``first`` and ``second``."""
        if self.rule == "function":
            raise ValueError("the rule of this loss was a function, which model files do not hold: give it again")
        if callable(self.rule):
            alphas = np.asarray(self.rule(first, second), dtype=float)
            if alphas.shape != first.shape or not ((alphas >= 0) & (alphas <= 1)).all():
                raise ValueError(f"rule must give a number from 0 to 1 for each of {len(first)} examples")
            return alphas
        needed = np.clip(threshold_of_two(first, second) + self.slack, self.floor, self.ceiling)
        return np.where(first > 0.5 + 1e-9, self.floor, needed)

    def at(self, alpha: float) -> Hybrid:
        """Return the hybrid loss with this α."""
        return Hybrid(alpha, self.margin, self.cost)

    def to_json(self) -> dict[str, Any]:
        """Return name and parameters; a user's rule becomes "function"."""
        plain = {name: value for name, value in super().to_json().items() if name != "alpha"}
        return {**plain, "rule": "function" if callable(self.rule) else self.rule}


class Circle(Loss):
    """‖p − 1_y‖: the distance of p(y) ∝ exp score(y) from the distribution that is certain of the true output.

    It is at most √2, so an outlier costs little more than an error. It is **not convex** in the weights: solvers find a
    local minimum, and no optimality gap is reported. Its gradient is of order p_y, almost 0 for sequences before
    training. Estimators therefore start from the weights that minimise the log loss.

    The norm is over all outputs. Its square is 1 − 2 p_y + Σ_z p_z², and Σ_z p_z² = Z(2θ) / Z(θ)², two sums of the
    structure. Marginals are weighted for each example, so sequences and graphs are processed one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning import Circle
    >>> from mercer.structures import Labels
    >>> value, _ = Circle().value_and_gradient(Labels(2, 0), np.log([[0.9, 0.1]]), np.array([0]))
    >>> value.round(4)  # the distance of (0.9, 0.1) from (1, 0)
    array([0.1414])
    """

    name = "circle"
    convex = False
    by_example = True

    def value_and_gradient(self, structure: Structure, theta: Any, y: Any) -> tuple[np.ndarray, Any]:
        """Return the distance d, and ((p_y − s) μ(θ) + s μ(2θ) − p_y 1_y) / d with s = Σ_z p_z²."""
        check_known(structure, y, self.name)
        log_p = structure.score(theta, y)
        mu = _detached(structure.marginals(theta))
        log_p = np.minimum(log_p - mu.log_partition, 0.0)
        doubled = structure.marginals(structure.scaled(theta, 2.0))
        log_s = np.minimum(doubled.log_partition - 2.0 * mu.log_partition, 0.0)
        p, s = np.exp(log_p), np.exp(log_s)
        # (1 − p)² + Σ_{z≠y} p_z², without the cancellation of 1 − 2 p + s where p is almost 1.
        others = -s * np.expm1(np.minimum(2.0 * log_p - log_s, 0.0))
        distance = np.sqrt(np.expm1(log_p) ** 2 + others)
        over = 1.0 / np.maximum(distance, 1e-150)
        _scale(mu, (p - s) * over)
        _scale(doubled, -s * over)
        mu.subtract(doubled)
        structure.add_output(mu, y, -p * over)
        return np.where(np.isneginf(log_p), np.inf, distance), mu


class RelativeMargin(Hinge):
    """The hinge with a bound: the true output leads by at most B.

        min ½‖w‖² + C Σ ξ_i,   B ≥ score(y_i) − score(z) ≥ Δ(y_i, z) − ξ_i for all z ≠ y_i

    The bound has no slack. Needs argmin; solved by ``"cutting-plane"`` and ``"bcfw"``.

    Parameters
    ----------
    B : float or None, default=10.0
        Maximum margin of the true output over any other output. A value below the largest cost forces slack. None or
        np.inf: no bound.
    cost : see :class:`CostLoss`

    References
    ----------
    .. [Shivaswamy2010] P. Shivaswamy and T. Jebara. Maximum relative margin and data-dependent regularization. Journal
       of Machine Learning Research 11, 2010.
    """

    name = "relative-margin"

    def __init__(self, B: float | None = 10.0, cost: Any = None) -> None:
        super().__init__(cost)
        if B is None or (isinstance(B, (int, float)) and np.isposinf(B)):
            self.B = np.inf
        else:
            try:
                self.B = check_positive("B", B)
            except ValueError:
                raise ValueError(f"B must be positive (np.inf: no bound), got {B!r}") from None

    def to_json(self) -> dict[str, Any]:
        """Return plain data; B is None without a bound, because JSON has no infinity."""
        return {**super().to_json(), "B": self.B if np.isfinite(self.B) else None}

    def lowest(self, structure: Structure, theta: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return the output with the largest margin to the true one, and this margin."""
        z, score = structure.argmin(theta)
        if hasattr(y, "offsets"):
            z = type(y)(z, y.offsets, partial=False)
        return z, structure.score(theta, y) - score


def _where(
    chosen: np.ndarray, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return np.where(chosen, a[0], b[0]), np.where(chosen, a[1], b[1])


def check_known(structure: Structure, y: Any, name: str) -> None:
    """Raise ValueError if an output is only partly known."""
    if structure.is_partial(y):
        raise ValueError(f"the loss {name!r} needs fully known outputs; use the log loss where labels are missing")


def _check_decomposes(loss: CostLoss, theta: Any) -> None:
    """Raises ValueError where costs cannot be added to the scores of parts."""
    if loss.cost is not None and not loss.cost.decomposes and not isinstance(theta, np.ndarray):
        raise ValueError(f"{loss.name} needs a cost that is a sum over positions: 0/1 is none, use 'hamming'")


def _above_zero(value: np.ndarray) -> np.ndarray:
    """Rounding can take a maximum over all outputs a hair below the score of one of them."""
    return np.where(value < 0, 0.0, value)


def _pulled(structure: Structure, theta: Any, y: Any, z: Any, weights: np.ndarray) -> Any:
    """Σ weights (1_z − 1_y), in the form of marginals."""
    mu = structure.zeros(theta)
    structure.add_output(mu, z, weights)
    structure.add_output(mu, y, -weights)
    return mu


def _detached(mu: Any) -> Any:
    """Marginals in memory of their own; what they refer to besides arrays is shared."""
    own = copy.copy(mu)
    for name, value in vars(mu).items():
        if isinstance(value, np.ndarray):
            setattr(own, name, value.copy())
    return own


def _scale(mu: Any, factors: np.ndarray) -> None:
    """``mu *= factors``: marginals that sum over examples hold one example only, and one factor."""
    mu.scale(float(factors[0]) if len(factors) == 1 else factors)


def _copied(mu: Any) -> Any:
    """Marginals may live in scratch memory that the next call uses again."""
    return copy.deepcopy(mu)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        *(Log, Hinge, SquaredHinge, Slack, SoftmaxMargin),
        *(Tempered, Hybrid, AdaptiveHybrid, RelativeMargin, Circle),
    )
}


def loss_from_json(data: str | dict[str, Any]) -> str | Loss:
    """Return a loss from :meth:`Loss.to_json`; a bare name stays a name."""
    name = data if isinstance(data, str) else data["name"]
    if name not in LOSSES:
        raise ValueError(f"not a loss that this version knows: {name!r}")
    if isinstance(data, str):
        return data
    parameters = {k: v for k, v in data.items() if k != "name"}
    if isinstance(parameters.get("cost"), dict):
        parameters["cost"] = cost_from_json(parameters["cost"])
    return LOSSES[name](**parameters)


def resolve_loss(loss: str | Loss, cost: Cost | None = None) -> Loss:
    """Return a loss by its name, or the object itself, with the cost unless it has one."""
    if isinstance(loss, Loss):
        return loss.bind(cost)
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]().bind(cost)
    raise ValueError(f"unknown loss {loss!r}; known are {', '.join(map(repr, sorted(LOSSES)))}")


def _write(loss: Loss, out: Writer) -> dict[str, Any]:
    plain = {name: value for name, value in loss.to_json().items() if name != "cost"}
    return {"of": plain, "cost": out.node(getattr(loss, "cost", None), "cost")}


def _read(node: dict[str, Any], source: Reader) -> str | Loss:
    cost = source.value(node["cost"])
    if cost is not None and not isinstance(cost, Cost):
        raise ValueError(f"a {type(cost).__name__} is not the cost of a loss")
    return loss_from_json({**node["of"], **({} if cost is None else {"cost": cost})})


register(Loss, Codec("loss", _write, _read))
