"""PAC-Bayes bounds on the error of fitted models, and the Gibbs classifiers that they apply to.

With a prior P = N(0, I) over weights and a posterior Q = N(μ, I), KL(Q‖P) = ‖μ‖²/2. For a loss in [0, 1], m independent
examples and all Q at once, with probability 1 − δ::

    McAllester    R(Q) ≤ R_S(Q) + √((KL + ln((m + 1)/δ)) / 2m)
    Seeger        kl(R_S(Q) ‖ R(Q)) ≤ (KL + ln((m + 1)/δ)) / m,  solved for R(Q)

R(Q) is the error of the *Gibbs classifier*, which draws weights for each prediction. The model itself is the mean of Q
and errs at most twice as often: where it errs, a draw errs with probability at least 1/2. The same inequality gives a
bound for one classifier w with margins M_w(x, y) = min_{z≠y} ⟨w, Φ(x, y) − Φ(x, z)⟩, with ‖Φ(x, y) − Φ(x, z)‖ ≤ B::

    margin        e ≤ P_S(M_w ≤ γ) + 2/m + √((4 B² ‖w‖² ln(2 m |Y|)/γ² + ln((m + 1)/δ)) / 2m)

The margin bound holds for all γ at once: its proof compares draws with the threshold B √(2 ln(2 m ``|Y|``)), which
depends neither on γ nor on w. So γ may be chosen on the data without a union bound over a grid.

An error is a wrong *output*; for a tagger, a sentence with at least one wrong tag. All bounds hold for the training
sample, and assume that examples are drawn independently from one distribution. For real taggers the bounds are usually
above 1, that is vacuous. They become useful with many examples, large margins and few features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._validation import check_count, check_positive
from mercer.theory._models import LinearModel, linear_view
from mercer.theory.hashing import _check_probability, _check_size

__all__ = [
    "Bounds",
    "GibbsClassifier",
    "GibbsRisk",
    "bound",
    "effective_labels",
    "gibbs_bound",
    "gibbs_classifier",
    "held_out_bound",
    "kl_inverse",
    "margin_bound",
    "seeger_bound",
]


# ------------------------------------------------------------------------------------------------ inequalities


def gibbs_bound(empirical_risk: float, kl: float, m: int, delta: float = 0.05) -> float:
    """Return McAllester's bound on the risk of a Gibbs classifier.

    Parameters
    ----------
    empirical_risk : float
        R_S(Q), from 0 to 1.
    kl : float
        KL(Q‖P).
    m : int
        Examples.
    delta : float, default=0.05
        Allowed probability that the bound fails.

    References
    ----------
    .. [McAllester1999] D. McAllester. Some PAC-Bayesian theorems. Machine Learning 37, 1999.

    Examples
    --------
    >>> from mercer.theory.pac_bayes import gibbs_bound
    >>> round(gibbs_bound(0.1, kl=5.0, m=1000), 3)
    0.186
    """
    risk, kl, m, delta = _checked(empirical_risk, kl, m, delta)
    return min(1.0, risk + math.sqrt((kl + math.log((m + 1) / delta)) / (2.0 * m)))


def seeger_bound(empirical_risk: float, kl: float, m: int, delta: float = 0.05) -> float:
    """Return Seeger's bound on the risk of a Gibbs classifier; it is never above McAllester's bound.

    Parameters
    ----------
    empirical_risk, kl, m, delta : see :func:`gibbs_bound`

    References
    ----------
    .. [Seeger2002] M. Seeger. PAC-Bayesian generalisation error bounds for Gaussian process classification. Journal of
       Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from mercer.theory.pac_bayes import seeger_bound
    >>> round(seeger_bound(0.1, kl=5.0, m=1000), 3)
    0.16
    """
    risk, kl, m, delta = _checked(empirical_risk, kl, m, delta)
    return kl_inverse(risk, (kl + math.log((m + 1) / delta)) / m)


def kl_inverse(q: float, c: float) -> float:
    """Return the largest p with kl(q‖p) ≤ c, where kl is the divergence between Bernoulli distributions.

    Examples
    --------
    >>> from mercer.theory.pac_bayes import kl_inverse
    >>> round(kl_inverse(0.0, 0.1), 4)  # 1 − exp(−c)
    0.0952
    """
    q, c = _check_share("q", q), _check_size("c", c)
    low, high = q, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _kl(q, middle) <= c else (low, middle)
    return high


def held_out_bound(error: float, m: int, delta: float = 0.05) -> float:
    """Return a bound on the error of any model from held-out examples.

    Chernoff's bound, kl(error ‖ bound) = ln(1/δ)/m. It needs no norm and no margin, and is far tighter than the others.
    It requires data that was not used for fitting or model selection.

    Parameters
    ----------
    error : float
        Share of wrong outputs.
    m : int
        Examples.
    delta : float, default=0.05
        Allowed probability that the bound fails.

    Examples
    --------
    >>> from mercer.theory.pac_bayes import held_out_bound
    >>> round(held_out_bound(0.1, 1000), 3)
    0.125
    """
    return kl_inverse(
        _check_share("error", error), math.log(1.0 / _check_probability("delta", delta)) / check_count("m", m)
    )


def margin_bound(
    error: float, w_norm: float, log_cardinality: float, B: float, m: int, delta: float = 0.05, gamma: float = 1.0
) -> float:
    """Return the PAC-Bayes margin bound on the error of one classifier of structured outputs.

    Parameters
    ----------
    error : float
        Share of the examples with a margin of at most γ.
    w_norm : float
        ‖w‖.
    log_cardinality : float
        ln ``|Y|``, the logarithm of the number of outputs of an input.
    B : float
        Largest ‖Φ(x, y) − Φ(x, z)‖ over all inputs.
    m : int
        Examples.
    delta : float, default=0.05
        Allowed probability that the bound fails.
    gamma : float, default=1.0
        The margin γ. The bound holds for all γ at once.

    References
    ----------
    .. [Shi2011] Q. Shi. Hash kernels and structured learning. PhD thesis, Australian National University, 2011.

    Examples
    --------
    >>> import math
    >>> from mercer.theory.pac_bayes import margin_bound
    >>> [round(margin_bound(0.0, 1.0, math.log(5), 1.0, m, 0.05, 0.3), 3) for m in (1000, 10_000, 100_000)]
    [0.46, 0.162, 0.056]
    """
    error, w_norm = _check_share("error", error), _check_size("w_norm", w_norm)
    log_cardinality, B = _check_size("log_cardinality", log_cardinality), check_positive("B", B)
    m, delta, gamma = check_count("m", m), _check_probability("delta", delta), check_positive("gamma", gamma)
    complexity = 4.0 * (B * w_norm / gamma) ** 2 * (math.log(2.0 * m) + log_cardinality)
    return min(1.0, error + 2.0 / m + math.sqrt((complexity + math.log((m + 1) / delta)) / (2.0 * m)))


# ------------------------------------------------------------------------------------------------ fitted models


@dataclass(frozen=True)
class GibbsRisk:
    """An estimate of the risk of a Gibbs classifier on given data.

    Attributes
    ----------
    value : float
        Share of wrong outputs.
    error : float
        Its standard error, over the draws of weights.
    upper : float
        Upper confidence limit of the risk.
    n_draws : int
        Number of draws of weights.
    """

    value: float
    error: float
    upper: float
    n_draws: int


class GibbsClassifier:
    """A classifier that draws weights from N(scale · w/‖w‖, I) for each prediction; see :func:`gibbs_classifier`."""

    def __init__(self, view: LinearModel, scale: float, random_state: Any) -> None:
        self._view, self.scale, self.random_state = view, scale, random_state

    @property
    def kl(self) -> float:
        """Return KL(Q‖P) = scale²/2 for the prior N(0, I)."""
        return 0.5 * self.scale**2

    def predict(self, X: Any) -> list[Any]:
        """Return an output for each input; each uses its own draw of weights."""
        return self._view.noisy_predictions(X, self.scale, self.random_state)

    def risk(self, X: Any, y: Any, n_draws: int = 200, delta: float = 0.05) -> GibbsRisk:
        """Estimate the share of wrong outputs.

        Parameters
        ----------
        X, y : data in the form that the model takes
        n_draws : int, default=200
            Number of draws of weights; each is used for an equal part of the examples.
        delta : float, default=0.05
            Allowed probability that ``upper`` fails.
        """
        check_count("n_draws", n_draws, 2)
        return self._risk(self._view.read(X, y), n_draws, _check_probability("delta", delta))

    def _risk(self, data: Any, n_draws: int, delta: float) -> GibbsRisk:
        groups = self._view.noisy_errors(data, self.scale, n_draws, self.random_state)
        if isinstance(groups, np.ndarray):  # groups of equal size
            wrong, sizes = groups.sum(axis=1).astype(float), np.full(len(groups), float(groups.shape[1]))
        else:
            wrong = np.array([group.sum() for group in groups], float)
            sizes = np.array([len(group) for group in groups], float)
        n, value = len(groups), float(wrong.sum() / sizes.sum())
        deviation = float(np.sqrt(np.sum((wrong - value * sizes) ** 2)) / sizes.sum())
        # Groups are independent: Chernoff's bound for the mean of wrong / largest size, numbers in [0, 1].
        ratio = float(sizes.mean() / sizes.max())
        upper = min(1.0, kl_inverse(value * ratio, math.log(1.0 / delta) / n) / ratio)
        return GibbsRisk(value, deviation, upper, n)


def gibbs_classifier(model: Any, scale: float | None = None, random_state: Any = None) -> GibbsClassifier:
    """Return the Gibbs classifier of a fitted model.

    Parameters
    ----------
    model : fitted linear structured model or kernel machine
    scale : float, optional
        Norm of the mean of Q; None: ‖w‖, so that Q = N(w, I). Larger scales lower the error and add scale²/2 to the KL
        term of the bounds.
    random_state : int, Generator or None, default=None

    Returns
    -------
    classifier : GibbsClassifier
        With ``predict``, ``risk`` and ``kl``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearClassifier
    >>> from mercer.theory import pac_bayes
    >>> X, y = np.repeat(np.eye(3), 100, axis=0), np.repeat([0, 1, 2], 100)
    >>> model = LinearClassifier(C=10.0).fit(X, y)
    >>> gibbs = pac_bayes.gibbs_classifier(model, scale=10.0, random_state=0)
    >>> gibbs.kl, gibbs.risk(X, y).value < 0.01
    (50.0, True)
    """
    view = linear_view(model)
    return GibbsClassifier(view, view.norm if scale is None else _check_size("scale", scale), random_state)


@dataclass(frozen=True)
class Bounds:
    """Bounds on the share of wrong outputs of a model; each holds separately with probability 1 − delta.

    Attributes
    ----------
    m : int
        Examples.
    delta : float
    error : float
        Share of wrong outputs among them.
    w_norm, B, log_cardinality : float
        ‖w‖; the largest ‖Φ(x, y) − Φ(x, z)‖; the largest ln ``|Y(x)|`` of the examples.
    margin : float
        The margin bound for the model; 1 if it is vacuous.
    gamma, margin_error : float
        The margin γ of this bound, and the share of examples with a margin of at most γ.
    scale, gibbs_risk : float
        Norm of the mean of the posterior, and the upper confidence limit of its risk on the examples.
    mcallester, seeger : float
        Bounds for the Gibbs classifier.
    average : float
        Twice Seeger's bound: a bound for the model itself.
    """

    m: int
    delta: float
    error: float
    w_norm: float
    B: float
    log_cardinality: float
    margin: float
    gamma: float
    margin_error: float
    scale: float
    gibbs_risk: float
    mcallester: float
    seeger: float
    average: float

    @property
    def vacuous(self) -> bool:
        """Return whether no bound on the model itself is below 1."""
        return min(self.margin, self.average) >= 1.0

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values, for tables."""
        return [
            ("examples", f"{self.m:,}"),
            ("wrong outputs", f"{self.error:.4f}"),
            ("margin bound", f"{self.margin:.4f} (γ = {self.gamma:.4g}, {self.margin_error:.4f} below it)"),
            ("Gibbs classifier", f"{self.gibbs_risk:.4f} on the examples (scale {self.scale:.4g})"),
            ("  McAllester", f"{self.mcallester:.4f}"),
            ("  Seeger", f"{self.seeger:.4f}"),
            ("twice Seeger", f"{self.average:.4f}"),
            ("‖w‖, B, ln |Y|", f"{self.w_norm:.4g}, {self.B:.4g}, {self.log_cardinality:.4g}"),
            ("holds with probability", f"{1.0 - self.delta:g} each"),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:{width}s}  {value}" for name, value in self.rows()]
        return "\n".join(
            lines + (["no bound is below 1: all bounds are vacuous for this model"] if self.vacuous else [])
        )


def bound(
    model: Any,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    B: float | str | None = None,
    n_draws: int = 200,
    random_state: Any = 0,
) -> Bounds:
    """Bound the error of a fitted model from its training examples or other examples of the same distribution.

    Parameters
    ----------
    model : fitted linear structured model or kernel machine
        Tagger, Segmenter, LinearClassifier, GraphLabeler (with exact inference), Parser, Aligner, StructuredPredictor;
        or a kernel machine with one function (two classes) or one per class, by the norm of its functions.
    X, y : data in the form that the model takes
        Independent examples; the training set is allowed.
    delta : float, default=0.05
        Allowed probability that a bound fails.
    B : float or "data"
        Largest ‖Φ(x, y) − Φ(x, z)‖ that any input can have. "data": the largest over these inputs; this assumes that no
        other input has a larger one.
    n_draws : int, default=200
        Draws of weights for the risk of the Gibbs classifier on the examples.
    random_state : int, Generator or None, default=0
        Seed of the draws.

    Returns
    -------
    bounds : Bounds

    Notes ----- The scale of the posterior is chosen from √m/2^j, j = 0 … 7. δ is divided among these scales, and
    between the bound and the estimate of the risk on the examples. The number of outputs is the largest over the
    examples.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearClassifier
    >>> from mercer.theory import pac_bayes
    >>> X, y = np.repeat(np.eye(3), 4000, axis=0), np.repeat([0, 1, 2], 4000)
    >>> model = LinearClassifier(C=10.0, fit_intercept=False).fit(X, y)
    >>> bounds = pac_bayes.bound(model, X, y, B=np.sqrt(2))
    >>> bounds.error, round(bounds.margin, 2)
    (0.0, 0.09)
    """
    delta = _check_probability("delta", delta)
    check_count("n_draws", n_draws, 2)
    view = linear_view(model)
    if B is None:
        raise ValueError(
            "B must be given: the largest ‖Φ(x, y) − Φ(x, z)‖ that any input can have, or B='data' for the largest of "
            "these inputs (which assumes that no other input has a larger one)"
        )
    if isinstance(B, str) and B != "data":
        raise ValueError(f"B must be a number or 'data', got {B!r}")
    data = view.read(X, y)
    radius = view.radius(data) if isinstance(B, str) else check_positive("B", B)
    leads = view.leads(data)
    m = len(leads)
    largest = float(view.log_cardinality(data).max())
    gamma, margin = _best_gamma(leads, view.norm, largest, max(radius, 1e-300), m, delta)
    scale, risk, mcallester, seeger = _best_scale(view, data, m, delta, n_draws, random_state)
    return Bounds(
        m, delta, float(np.mean(leads <= 0)), view.norm, radius, largest, margin, gamma, float(np.mean(leads <= gamma)),
        scale, risk, mcallester, seeger, min(1.0, 2.0 * seeger),
    )  # fmt: skip


def _best_gamma(
    leads: np.ndarray, norm: float, log_cardinality: float, B: float, m: int, delta: float
) -> tuple[float, float]:
    """Return the margin with the smallest bound: just below one of the margins, or beyond all of them."""
    finite = np.sort(leads[(leads > 0) & np.isfinite(leads)])
    if not len(finite) or norm == 0.0:
        return 0.0, 1.0
    errors = np.searchsorted(np.sort(leads), finite, side="left") / m
    complexity = 4.0 * (B * norm / finite) ** 2 * (math.log(2.0 * m) + log_cardinality)
    values = errors + 2.0 / m + np.sqrt((complexity + math.log((m + 1) / delta)) / (2.0 * m))
    best = int(np.argmin(values))
    return float(np.nextafter(finite[best], 0.0)), min(1.0, float(values[best]))


_SCALES = 8


def _best_scale(
    view: LinearModel, data: Any, m: int, delta: float, n_draws: int, random_state: Any
) -> tuple[float, float, float, float]:
    """Return the posterior with the smallest Seeger bound; δ is divided among scales, bound and estimate."""
    share = delta / (2 * _SCALES)
    bounds_at = []
    for j in range(_SCALES):
        gibbs = GibbsClassifier(view, math.sqrt(m) / 2.0**j, random_state)
        risk = gibbs._risk(data, n_draws, share).upper
        bounds = (gibbs_bound(risk, gibbs.kl, m, share), seeger_bound(risk, gibbs.kl, m, share))
        bounds_at.append((gibbs.scale, risk, *bounds))
    return min(bounds_at, key=lambda one: one[3])


def effective_labels(model: Any, X: Any = None, *, mass: float | None = None) -> Any:
    """Return the effective number of outputs, a heuristic without a proven bound.

    Parameters
    ----------
    model : fitted structured model, or array of shape (n_labels,) or (n_examples, n_labels)
        A model with a partition function, or distributions.
    X : inputs of the model
    mass : float, optional
        None: exp(entropy). Otherwise the smallest number of outputs with this total probability; for arrays only.

    Returns
    -------
    counts : float or array
        Between 1 (certain) and the number of outputs (uniform).

    Notes ----- The margin bound grows with ln ``|Y|``. Most of these outputs have a negligible probability, which
    suggests the effective number in place of ``|Y|``. No proof justifies this replacement.

    Examples
    --------
    >>> from mercer.theory.pac_bayes import effective_labels
    >>> effective_labels([0.25, 0.25, 0.25, 0.25]), effective_labels([1.0, 0.0])
    (4.0, 1.0)
    >>> effective_labels([0.9, 0.09, 0.01], mass=0.95)
    2
    """
    if hasattr(model, "predict"):
        if not hasattr(model, "entropy"):
            raise TypeError(f"{type(model).__name__} has no distribution over outputs, so its entropy is undefined")
        if mass is not None:
            raise ValueError("mass needs arrays of probabilities: a model has too many outputs to sort")
        return np.exp(model.entropy(X))
    p = np.asarray(model, float)
    if p.ndim not in (1, 2) or not p.size or not np.isfinite(p).all() or (p < 0).any():
        raise ValueError("probabilities must be a row or a table of finite, non-negative numbers")
    if np.abs(p.sum(axis=-1) - 1.0).max() > 1e-6:
        raise ValueError("probabilities must sum to 1")
    if mass is None:
        counts = np.exp(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=-1))
    else:
        covered = np.cumsum(-np.sort(-p, axis=-1), axis=-1) >= _check_probability("mass", mass) - 1e-12
        counts = covered.argmax(axis=-1) + 1
    return counts.item() if p.ndim == 1 else counts


# ------------------------------------------------------------------------------------------------ parts


def _kl(q: float, p: float) -> float:
    total = 0.0
    for a, b in ((q, p), (1.0 - q, 1.0 - p)):
        if a > 0:
            if b <= 0:
                return math.inf
            total += a * math.log(a / b)
    return total


def _check_share(name: str, value: Any) -> float:
    value = _check_size(name, value)
    if value > 1:
        raise ValueError(f"{name} must be a share, from 0 to 1, got {value!r}")
    return value


def _checked(risk: float, kl: float, m: int, delta: float) -> tuple[float, float, int, float]:
    return (
        _check_share("empirical_risk", risk), _check_size("kl", kl), check_count("m", m),
        _check_probability("delta", delta),
    )  # fmt: skip
