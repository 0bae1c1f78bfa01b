"""Bounds on instance errors from the class proportions of bags.

h̄ and ȳ are the predicted and true share of a bag of r instances, er the mean of their distance, β = P(h ≠ y)::

    uniform        er ≤ training er + ε with probability 1 − δ, from M ≥ (64/ε²)(2 d ln(12 r/ε) + ln(4/δ)) bags
                   ε(M) = √((32/M)(d ln(2 e M r/d) + ln(4/δ)))         d the VC dimension of the classifiers
    tolerance      er ≤ ε δ   ⇒   P(|h̄ − ȳ| ≤ ε) ≥ 1 − δ
    instances      P(|h̄ − ȳ| ≤ ε) = Σ_i C(r, i) (β/2)^i (1 − β/2)^{r−i} [Q(i + e) − Q(i − e − 1)],   e = ⌊ε r⌋
                   Q the distribution function of Binomial(r − i, β/(2 − β)); needs P(h = 1) = P(y = 1)
    pure bags      at least r (1 − 2η − ε) right in a bag with a share of at most η or at least 1 − η
    populations    |ȳ(B) − p| ≤ ε   with probability 1 − δ from  r ≥ ln(2/δ)/(2ε²)

The first bound is above 1 for practical sizes.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mercer._validation import check_count
from mercer.theory.hashing import _check_probability

__all__ = [
    "adversarial_pure_bag",
    "bag_accuracy",
    "bags_needed",
    "instance_error",
    "markov_tolerance",
    "min_bag_size",
    "monotone_from",
    "proportion_gap",
    "pure_bag_bound",
]

_ROUND = 1e-9  # 0.1 · 20 must count as 2
_GRID = 4001


# ------------------------------------------------------------------------------------------------ bags


def bags_needed(vc: int, r: float, eps: float, delta: float) -> int:
    """Return the number of bags for an error at most ``eps`` above the training error, with probability 1 − ``delta``.

    (64/ε²)(2 d ln(12 r/ε) + ln(4/δ)), for all classifiers of a class at once.

    Parameters
    ----------
    vc : int
        VC dimension d of the classifiers.
    r : float
        Instances in a bag; the mean if bags differ in size.
    eps, delta : float in (0, 1)

    Examples
    --------
    >>> from mercer.theory.proportions import bags_needed
    >>> bags_needed(vc=10, r=10, eps=0.1, delta=0.05)
    935575
    """
    d, size = check_count("vc", vc), _check_bag("r", r)
    eps, delta = _check_probability("eps", eps), _check_probability("delta", delta)
    return math.ceil(64.0 / eps**2 * (2.0 * d * math.log(12.0 * size / eps) + math.log(4.0 / delta)))


def proportion_gap(vc: int, n_bags: int, r: float, delta: float) -> float:
    """Bound the excess of the error on bags over the training error, with probability 1 − ``delta``.

    √((32/M)(d ln(2 e M r/d) + ln(4/δ))) for M bags of r instances. With fewer than d instances in 2 M
    bags, the logarithm of the number of labellings is 2 M r ln 2.

    Parameters
    ----------
    vc : int
        VC dimension d of the classifiers.
    n_bags : int
    r : float
        Instances in a bag; the mean if bags differ in size.
    delta : float in (0, 1)

    References
    ----------
    .. [Yu2014b] F. X. Yu, K. Choromanski, S. Kumar, T. Jebara and S.-F. Chang. On learning from label proportions.
       arXiv:1402.5902, 2014.

    Examples
    --------
    >>> from mercer.theory.proportions import proportion_gap
    >>> round(proportion_gap(vc=10, n_bags=1_000_000, r=10, delta=0.05), 4)
    0.0714
    """
    d, m, size = check_count("vc", vc), check_count("n_bags", n_bags), _check_bag("r", r)
    delta = _check_probability("delta", delta)
    n = 2.0 * m * size
    labellings = d * math.log(math.e * n / d) if n >= d else n * math.log(2.0)
    return math.sqrt(32.0 / m * (labellings + math.log(4.0 / delta)))


def markov_tolerance(error: float, delta: float) -> float:
    """Bound the distance from the true share with probability 1 − ``delta``, given a mean distance of ``error``.

    error/δ, by Markov's inequality.

    Examples
    --------
    >>> from mercer.theory.proportions import markov_tolerance
    >>> markov_tolerance(0.02, 0.25)
    0.08
    """
    return _check_share("error", error) / _check_probability("delta", delta)


# ------------------------------------------------------------------------------------------------ instances


def bag_accuracy(beta: Any, r: int, eps: float) -> Any:
    """Return the probability that a classifier with instance error ``beta`` predicts a bag's share up to ``eps``.

    For bags of ``r`` independent instances and a classifier whose share of positives equals the true share:
    Σ_i C(r, i) (β/2)^i (1 − β/2)^{r−i} [Q(i + e) − Q(i − e − 1)] with e = ⌊ε r⌋ and Q the distribution function of
    Binomial(r − i, β/(2 − β)). The prior does not matter.

    Parameters
    ----------
    beta : float or array, in [0, 1]
    r : int
        Instances in a bag.
    eps : float in [0, 1]

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> from mercer.theory.proportions import bag_accuracy
    >>> [round(bag_accuracy(beta, r=10, eps=0.0), 3) for beta in (0.0, 0.1, 0.5)]
    [1.0, 0.45, 0.176]
    """
    from scipy.stats import binom

    values = np.asarray(beta, np.float64)
    if values.dtype.kind != "f" or not np.isfinite(values).all() or (values < 0).any() or (values > 1).any():
        raise ValueError(f"beta must be in [0, 1], got {beta!r}")
    size, e = check_count("r", r), _tolerated(r, eps)
    i = np.arange(size + 1)
    half = values[..., None] / 2.0
    other = half / (1.0 - half)
    within = binom.cdf(i + e, size - i, other) - binom.cdf(i - e - 1, size - i, other)
    accuracy = np.clip((binom.pmf(i, size, half) * within).sum(axis=-1), 0.0, 1.0)
    return float(accuracy) if accuracy.ndim == 0 else accuracy


def monotone_from(r: int, eps: float) -> float:
    """Return the bag accuracy u(r, ε) above which the instance error is determined.

    `bag_accuracy` falls as the error grows, but may rise again near an error of 1: an even number of wrong instances is
    often balanced. u is the largest value of `bag_accuracy` after it stops falling.

    Examples
    --------
    >>> from mercer.theory.proportions import monotone_from
    >>> round(monotone_from(10, 0.0), 3)
    0.246
    """
    accuracy = _curve(check_count("r", r), eps)[1]
    return float(accuracy[_lowest(accuracy) :].max())


def instance_error(p: Any, r: int, eps: float) -> Any:
    """Return the instance error at which shares of ``r`` rows are correct up to ``eps`` with probability ``p``.

    The inverse of `bag_accuracy` for ``p`` of at least `monotone_from`. For smaller ``p``, several errors have the same
    accuracy.

    Parameters
    ----------
    p : float or array
        Probability that the share of a bag is correct.
    r : int
        Instances in a bag.
    eps : float in [0, 1)

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> from mercer.theory.proportions import bag_accuracy, instance_error
    >>> round(instance_error(bag_accuracy(0.2, r=10, eps=0.1), r=10, eps=0.1), 6)
    0.2
    """
    from scipy.optimize import brentq

    size = check_count("r", r)
    if _tolerated(size, eps) >= size:
        raise ValueError("eps must be below 1: every classifier predicts every share up to 1")
    values = np.asarray(p, np.float64)
    beta, accuracy = _curve(size, eps)
    end = _lowest(accuracy)
    least = float(accuracy[end:].max())
    if not np.isfinite(values).all() or (values > 1).any() or (values < least - _ROUND).any():
        raise ValueError(
            f"p must be in [{least:.6g}, 1]: for smaller p, several errors have the same accuracy; got {p!r}"
        )

    def solved(target: float) -> float:
        if target >= 1.0:
            return 0.0
        if target <= accuracy[end]:
            return float(beta[end])
        return float(brentq(lambda b: bag_accuracy(b, size, eps) - target, 0.0, beta[end], xtol=1e-13))

    error = np.vectorize(solved, otypes=[np.float64])(values)
    return float(error) if error.ndim == 0 else error


def _curve(r: int, eps: float) -> tuple[np.ndarray, np.ndarray]:
    beta = np.linspace(0.0, 1.0, _GRID if r <= 200 else 501)
    return beta, bag_accuracy(beta, r, eps)


def _lowest(accuracy: np.ndarray) -> int:
    """Return where a curve stops falling for the first time; rounding errors are ignored."""
    rising = np.flatnonzero(np.diff(accuracy) > 1e-12)
    return int(rising[0]) if len(rising) else len(accuracy) - 1


# ------------------------------------------------------------------------------------------------ pure bags


def pure_bag_bound(eta: Any, eps: Any, r: int = 1) -> Any:
    """Bound the correctly classified instances in a pure bag of ``r`` whose share is predicted up to ``eps``.

    r (1 − 2η − ε), or 0: the bag has at most a share η of one of the classes. If bags are that pure with probability 1
    − ρ, and their share is predicted with probability 1 − δ, the bound holds for a bag with probability 1 − δ − ρ. The
    bound is tight: see `adversarial_pure_bag`.

    Parameters
    ----------
    eta : float or array, in [0, 1/2]
    eps : float or array, in [0, 1]
    r : int, default=1
        Instances in a bag; 1 bounds the share instead of the number.

    References
    ----------
    .. [Yu2014b] F. X. Yu, K. Choromanski, S. Kumar, T. Jebara and S.-F. Chang. On learning from label proportions.
       arXiv:1402.5902, 2014.

    Examples
    --------
    >>> from mercer.theory.proportions import pure_bag_bound
    >>> round(pure_bag_bound(eta=0.1, eps=0.05, r=100), 6)
    75.0
    """
    eta, eps = np.asarray(eta, np.float64), np.asarray(eps, np.float64)
    if not ((eta >= 0) & (eta <= 0.5)).all():
        raise ValueError(f"eta must be in [0, 1/2], got {eta.tolist()!r}")
    if not ((eps >= 0) & (eps <= 1)).all():
        raise ValueError(f"eps must be in [0, 1], got {eps.tolist()!r}")
    bound = check_count("r", r) * np.maximum(1.0 - 2.0 * eta - eps, 0.0)
    return float(bound) if np.ndim(bound) == 0 else bound


def adversarial_pure_bag(r: int, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a bag whose share is predicted exactly although a share 2η of its instances is wrong.

    The first η r instances are positive; the prediction is flipped on the first 2 η r. At η = 1/2 every instance is
    wrong: shares near one half carry the least information about single instances.

    Parameters
    ----------
    r : int
        Instances; η r must be an integer.
    eta : float in [0, 1/2]

    Returns
    -------
    y, predicted : ndarray of 0 and 1, shape (r,)

    Examples
    --------
    >>> from mercer.theory.proportions import adversarial_pure_bag
    >>> y, predicted = adversarial_pure_bag(10, 0.2)
    >>> y.tolist(), predicted.tolist()
    ([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0, 0, 0])
    """
    size, share = check_count("r", r), _check_share("eta", eta)
    positive = round(share * size)
    if share > 0.5 or abs(share * size - positive) > _ROUND * size:
        raise ValueError(f"eta must be in [0, 1/2] with eta · r an integer, got {eta!r} for r={size}")
    place = np.arange(size)
    y = (place < positive).astype(np.int64)
    return y, np.where(place < 2 * positive, 1 - y, y)


def min_bag_size(eps: float, delta: float) -> int:
    """Return the bag size for a share within ``eps`` of the population share, with probability 1 − ``delta``.

    ⌈ln(2/δ)/(2ε²)⌉, by Hoeffding's inequality, when a bag is a random sample of its population.

    Examples
    --------
    >>> from mercer.theory.proportions import min_bag_size
    >>> min_bag_size(0.05, 0.05)
    738
    """
    eps, delta = _check_probability("eps", eps), _check_probability("delta", delta)
    return math.ceil(math.log(2.0 / delta) / (2.0 * eps**2))


# ------------------------------------------------------------------------------------------------ checks


def _check_bag(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 1:
        raise ValueError(f"{name} must be a finite number of at least 1, got {value!r}")
    return float(value)


def _check_share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def _tolerated(r: int, eps: float) -> int:
    """Return ⌊ε r⌋, protected against rounding errors."""
    return math.floor(_check_share("eps", eps) * r + _ROUND)
