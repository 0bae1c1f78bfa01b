"""Bounds on the errors of hashing: lost features, kernel deviations, sampled means.

Theorem 2    P[a feature is lost] ≤ l (1 − (1 − c/n)^c + (l c / n)^c)
Theorem 3    max abs(k̄ − E k̄) ≤ √((2 ln(m+1) + 2 ln(M+1) − ln δ + ln c − 2 ln 2) / (n c′))
Theorem 7    ‖E Φ − (1/l) Σ_i Φ(x_{in})‖ ≤ l β(n) + (2 + √ln(2/δ)) / √l
hash kernel  E k̄ = (1 − 1/n) k + s s′ / n

Theorem numbers refer to [Shi2011].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from mercer._validation import check_count, check_positive

__all__ = [
    "exact_mixing_coefficient",
    "expected_kernel",
    "hoeffding_constants",
    "information_loss_bound",
    "inner_product_lift",
    "kernel_deviation_bound",
    "mcmc_mean_bound",
    "optimal_copies",
    "required_bits",
    "required_buckets",
]


def _check_probability(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
    return float(value)


def _check_size(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def _loss_bound(n_features: int, n_buckets: int, copies: int) -> float:
    """Theorem 2's sum, which may be above 1."""
    if copies >= n_buckets:
        return math.inf
    own = -math.expm1(copies * math.log1p(-copies / n_buckets))  # a feature's copies meet each other
    exponent = copies * math.log(n_features * copies / n_buckets)  # all of them meet copies of other features
    return n_features * (own + math.exp(exponent)) if exponent < 700 else math.inf


def information_loss_bound(n_features: int, n_buckets: int, copies: int = 1) -> float:
    """Bound the probability that hashing loses a feature, if each feature has ``copies`` copies.

    l (1 − (1 − c/n)^c + (l c / n)^c), at most 1, for l features with c copies each in n buckets: a feature is lost only
    if all its copies collide with other features.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercer.theory.hashing import information_loss_bound
    >>> [round(information_loss_bound(10**5, 10**8, copies), 4) for copies in (1, 2, 3, 4)]
    [1.0, 0.404, 0.0117, 0.016]
    """
    l, n = check_count("n_features", n_features), check_count("n_buckets", n_buckets)
    return min(1.0, _loss_bound(l, n, check_count("copies", copies)))


def optimal_copies(n_features: int, n_buckets: int) -> int:
    """Return the number of copies with the smallest bound; more copies do not always lower the bound.

    Examples
    --------
    >>> from mercer.theory.hashing import optimal_copies
    >>> optimal_copies(10**5, 10**8)
    3
    """
    l, n = check_count("n_features", n_features), check_count("n_buckets", n_buckets)
    # Both terms are convex in the number of copies: the first rise is the last fall.
    best = 1
    while _loss_bound(l, n, best + 1) < _loss_bound(l, n, best):
        best += 1
    return best


# ------------------------------------------------------------------------------------------------ kernels


def expected_kernel(k: Any, s: Any, s_prime: Any, n_buckets: int, *, signed: bool = False) -> Any:
    """Return the mean of a hashed inner product over all hash functions.

    (1 − 1/n) k + s s′ / n without signs, where k = ⟨Φ(x), Φ(x′)⟩ and s, s′ are the sums of the entries of Φ(x) and
    Φ(x′); k itself with signs. The arguments are numbers or arrays.

    Examples
    --------
    >>> from mercer.theory.hashing import expected_kernel
    >>> expected_kernel(3.0, 10.0, 20.0, n_buckets=100)
    4.97
    >>> expected_kernel(3.0, 10.0, 20.0, n_buckets=100, signed=True)
    3.0
    """
    n = check_count("n_buckets", n_buckets)
    return k if signed else (1.0 - 1.0 / n) * k + s * s_prime / n


def hoeffding_constants(width: float) -> tuple[float, float]:
    """Return (c, c′) of `kernel_deviation_bound` for means of n independent terms from an interval of length ``width``.

    Hoeffding: ``P(|k̄ − E k̄| > ε) ≤ 2 exp(−2 n ε² / width²)``. This holds for random features; for hashed
    features the constants depend on the data.

    Examples
    --------
    >>> from mercer.theory.hashing import hoeffding_constants
    >>> hoeffding_constants(4.0)
    (2.0, 0.125)
    """
    width = check_positive("width", width)
    return 2.0, 2.0 / width / width


def _log_union(m: int, M: int, delta: float, c: float) -> float:
    m, M = check_count("m", m), check_count("M", M)
    delta, c = _check_probability("delta", delta), check_positive("c", c)
    return 2 * math.log(m + 1) + 2 * math.log(M + 1) - math.log(delta) + math.log(c) - 2 * math.log(2)


def kernel_deviation_bound(m: int, M: int, n: int, delta: float, c: float, c_prime: float) -> float:
    """Bound the deviation of all entries of a kernel matrix from their means, with probability 1 − delta.

    √((2 ln(m+1) + 2 ln(M+1) − ln δ + ln c − 2 ln 2) / (n c′)) for m observations, M classes and n buckets or random
    features, where each entry obeys ``P(|k̄ − E k̄| > ε) ≤ c exp(−c′ ε² n)``.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercer.theory.hashing import hoeffding_constants, kernel_deviation_bound
    >>> round(kernel_deviation_bound(50, 1, 4096, 0.05, *hoeffding_constants(4.0)), 4)
    0.1502
    """
    n = check_count("n", n)
    return math.sqrt(max(0.0, _log_union(m, M, delta, c)) / (n * check_positive("c_prime", c_prime)))


def required_buckets(eps: float, m: int, M: int, delta: float, c: float, c_prime: float) -> int:
    """Return the least n for which `kernel_deviation_bound` is at most ``eps``.

    Examples
    --------
    >>> from mercer.theory.hashing import hoeffding_constants, required_buckets
    >>> required_buckets(0.1, 50, 1, 0.05, *hoeffding_constants(4.0))
    9243
    """
    needed = _log_union(m, M, delta, c) / (check_positive("c_prime", c_prime) * check_positive("eps", eps) ** 2)
    return max(1, math.ceil(needed))


def required_bits(eps: float, m: int, M: int, delta: float, c: float, c_prime: float) -> int:
    """Return the least number of bits whose 2^bits buckets are enough for `required_buckets`.

    Examples
    --------
    >>> from mercer.theory.hashing import hoeffding_constants, required_bits
    >>> required_bits(0.1, 50, 1, 0.05, *hoeffding_constants(4.0))
    14
    """
    return (required_buckets(eps, m, M, delta, c, c_prime) - 1).bit_length()


# ------------------------------------------------------------------------------------------------ sampled means


def mcmc_mean_bound(l: int, n: int, beta: float | Callable[[int], float], delta: float) -> float:
    """Bound the error of the mean feature vector of samples from a Markov chain.

    l β(n) + (2 + √ln(2/δ)) / √l for l samples, taken every n steps, with probability 1 − δ. Features must have inner
    products in [0, 1], and the chain must be stationary.

    Parameters
    ----------
    l : int
        Samples.
    n : int
        Steps from one sample to the next.
    beta : float or callable
        The mixing coefficient β(n), or the function n ↦ β(n), such as `exact_mixing_coefficient` of a small chain.
    delta : float
        The probability that the bound fails.

    References
    ----------
    .. [Shi2011] Q. Shi. Hash kernels and structured learning. PhD thesis, Australian National University, 2011.

    Examples
    --------
    >>> from mercer.theory.hashing import mcmc_mean_bound
    >>> round(mcmc_mean_bound(10_000, 50, 1e-9, delta=0.05), 4)
    0.0392
    """
    l, n = check_count("l", l), check_count("n", n)
    coefficient = _check_size("beta", beta(n) if callable(beta) else beta)
    if coefficient > 1:
        raise ValueError(f"beta must be at most 1, got {coefficient!r}")
    return l * coefficient + (2.0 + math.sqrt(math.log(2.0 / _check_probability("delta", delta)))) / math.sqrt(l)


def inner_product_lift(dx: float, dy: float, norm_x: float, norm_y: float) -> float:
    """Bound the error of an inner product by the errors of the vectors: dx ‖y‖ + dy ‖x‖ + dx dy.

    A bound on ``|⟨x, y⟩ − ⟨x′, y′⟩|`` where ‖x − x′‖ ≤ dx and ‖y − y′‖ ≤ dy.

    Examples
    --------
    >>> from mercer.theory.hashing import inner_product_lift
    >>> round(inner_product_lift(0.1, 0.2, 1.0, 2.0), 2)
    0.42
    """
    dx, dy = _check_size("dx", dx), _check_size("dy", dy)
    return dx * _check_size("norm_y", norm_y) + dy * _check_size("norm_x", norm_x) + dx * dy


def exact_mixing_coefficient(transition_matrix: Any, n: int) -> float:
    """Return the β-mixing coefficient of a stationary Markov chain over a gap of n steps.

    ``β(n) = Σ_x π(x) ½ Σ_y |Tⁿ(x, y) − π(y)|``: the dependence between the states at times 0 and n, where π is the
    stationary distribution (Definition 5; for a Markov chain the supremum over all events of past and future is this
    sum).

    Parameters
    ----------
    transition_matrix : array of shape (states, states)
        Rows are distributions; the stationary distribution must be unique.
    n : int
        Steps.

    Examples
    --------
    >>> from mercer.theory.hashing import exact_mixing_coefficient
    >>> T = [[0.9, 0.1], [0.1, 0.9]]
    >>> [round(exact_mixing_coefficient(T, n), 4) for n in (1, 2, 10)]
    [0.4, 0.32, 0.0537]
    """
    T = np.asarray(transition_matrix, dtype=np.float64)
    n = check_count("n", n)
    if T.ndim != 2 or T.shape[0] != T.shape[1] or not T.size:
        raise ValueError(f"transition_matrix must be square, got shape {T.shape}")
    if not np.isfinite(T).all() or (T < 0).any() or abs(T.sum(axis=1) - 1.0).max() > 1e-9:
        raise ValueError("the rows of transition_matrix must be probabilities that sum to 1")
    stationary = _stationary(T)
    return float(stationary @ np.abs(np.linalg.matrix_power(T, n) - stationary).sum(axis=1) / 2.0)


def _stationary(T: np.ndarray) -> np.ndarray:
    """The distribution π with π T = π, Σ π = 1."""
    states = len(T)
    system = np.vstack([T.T - np.eye(states), np.ones(states)])
    right = np.append(np.zeros(states), 1.0)
    solution, _, rank, _ = np.linalg.lstsq(system, right, rcond=1e-12)
    if rank < states:
        raise ValueError("transition_matrix has more than one stationary distribution: the chain is reducible")
    return np.maximum(solution, 0.0) / np.maximum(solution, 0.0).sum()
