"""Generalisation bounds: bound the risk of a classifier by its training error.

In the margin ξ = y f(x), the 0/1 loss χ(ξ) = 1{ξ ≤ 0}, a loss ψ that bounds it, and η = P(y = 1 given x)::

    majorisation   χ(ξ) ≤ ψ(ξ), so that risk ≤ ψ-risk                                                          I1
    McDiarmid      P{E g − g > ε} ≤ exp(−2 ε² / (n c²))                                                        I2
    uniform        sup (E f − E_n f) ≤ E sup (…) + B √(ln(1/δ) / 2n)   for f in [0, B]                         I2
    Rademacher     E sup (E f − E_n f) ≤ 2 R_n,   R_n = E sup (1/n) Σ σ_i f(x_i) ≤ (L/√n)(W r + B √(2 ln 2))   I3
    surrogate      E χ(f) − E χ(f*) ≤ c (E ψ(f) − E ψ(f*))^s                                                   I4
    margin         E χ ≤ E_n ψ + 2 R_n[ψ ∘ F] + (1 + γ(W R + B)) √(ln(1/δ) / 2n),   ψ = max(0, 1 − γ ξ)        I5
    noise          P{|η − 1/2| ≤ t} ≤ β t^γ:   α = γ/(1 + γ),   rate n^(−1/(2 − α))                            I6
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mercer._validation import check_choice, check_count, check_positive
from mercer.theory.hashing import _check_probability, _check_size

__all__ = [
    "excess_risk_bound",
    "margin_bound",
    "mcdiarmid_bound",
    "noise_exponent",
    "noise_rate",
    "rademacher_bound",
    "rademacher_linear",
    "surrogate_loss",
    "uniform_deviation",
    "zero_one_loss",
]

SURROGATES = ("hinge", "squared_hinge", "logistic", "exponential", "squared")


# ------------------------------------------------------------------------------------------------ surrogates


def zero_one_loss(margin: Any) -> Any:
    """Return χ(ξ): 1 where the margin ξ = y f(x) is at most 0, else 0.

    A margin of 0 counts as an error; the printed (1 − sgn ξ)/2 would count half an error.

    Examples
    --------
    >>> from mercer.theory.risk import zero_one_loss
    >>> zero_one_loss([-2.0, 0.0, 0.5]).tolist()
    [1.0, 1.0, 0.0]
    """
    return (_check_values("margin", margin) <= 0).astype(np.float64)


def surrogate_loss(margin: Any, loss: str = "hinge") -> Any:
    """Return ψ(ξ) of a margin ξ = y f(x), scaled to be an upper bound of the 0/1 loss.

    Parameters
    ----------
    margin : array
        Values of y f(x).
    loss : {"hinge", "squared_hinge", "logistic", "exponential", "squared"}, default="hinge"
        max(0, 1 − ξ), its square, log₂(1 + e^{−ξ}), e^{−ξ}, (1 − ξ)². The logistic loss is to base 2: with natural
        logarithms it is 0.69 at margin 0, below the 0/1 loss.

    Examples
    --------
    >>> from mercer.theory.risk import surrogate_loss
    >>> [float(surrogate_loss(0.0, loss)) for loss in ("hinge", "logistic", "exponential")]
    [1.0, 1.0, 1.0]
    """
    check_choice("loss", loss, SURROGATES)
    xi = _check_values("margin", margin)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - xi)
    if loss == "squared_hinge":
        return np.square(np.maximum(0.0, 1.0 - xi))
    if loss == "logistic":
        return np.logaddexp(0.0, -xi) / math.log(2.0)
    if loss == "exponential":
        return np.exp(-xi)
    return np.square(1.0 - xi)


# ------------------------------------------------------------------------------------------------ deviations


def mcdiarmid_bound(eps: float, n: int, c: float) -> float:
    """Bound P{E g − g > ε} for a function g of n independent values, each of which changes g by at most ``c``.

    exp(−2 ε² / (n c²)), McDiarmid's inequality. The mean of n values in [0, B] has c = B/n.

    Examples
    --------
    >>> from mercer.theory.risk import mcdiarmid_bound
    >>> round(mcdiarmid_bound(0.1, 100, 1 / 100), 4)
    0.1353
    """
    eps, n, c = _check_size("eps", eps), check_count("n", n), check_positive("c", c)
    return math.exp(-2.0 * (eps / c) ** 2 / n)


def uniform_deviation(B: float, n: int, delta: float) -> float:
    """Bound sup_f (E f − mean f) minus its expectation, with probability 1 − δ, for functions with values in [0, B].

    B √(ln(1/δ) / 2n).

    Examples
    --------
    >>> from mercer.theory.risk import uniform_deviation
    >>> round(uniform_deviation(1.0, 1000, 0.05), 4)
    0.0387
    """
    B, n, delta = check_positive("B", B), check_count("n", n), _check_probability("delta", delta)
    return B * math.sqrt(-math.log(delta) / (2.0 * n))


def rademacher_linear(K: Any, n_draws: int = 1000, random_state: Any = None) -> tuple[float, float]:
    """Return the Rademacher average of the unit ball of a kernel's functions on a sample, by Monte Carlo.

    E_σ sup_{‖f‖ ≤ 1} (1/n) Σ_i σ_i f(x_i) = E_σ √(σᵀ K σ) / n for random signs σ. It is at most √(tr K) / n and at
    least √(tr K / 2) / n.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix of the sample.
    n_draws : int, default=1000
        Number of sign vectors.
    random_state : int, RandomState or None, default=None
        Seed of the signs.

    Returns
    -------
    average, error : float
        The mean, and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory.risk import rademacher_linear
    >>> average, error = rademacher_linear(np.eye(100), random_state=0)
    >>> round(average, 6), error < 1e-12  # orthogonal points: exactly 1/√n
    (0.1, True)
    """
    from sklearn.utils import check_random_state

    K = np.asarray(K, np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"K must be a square matrix, got shape {K.shape}")
    if not np.isfinite(K).all() or not np.allclose(K, K.T, rtol=1e-8, atol=1e-8 * np.abs(K).max()):
        raise ValueError("K must be finite and symmetric")
    n_draws, n = check_count("n_draws", n_draws, 2), len(K)
    rng = check_random_state(random_state)
    values = np.empty(n_draws)
    for start in range(0, n_draws, 256):
        signs = 2.0 * rng.randint(0, 2, size=(min(256, n_draws - start), n)) - 1.0
        squares = np.einsum("bi,bi->b", signs @ K, signs)
        values[start : start + len(signs)] = np.sqrt(np.maximum(squares, 0.0)) / n
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n_draws))


def rademacher_bound(L: float, W: float, r: float, B: float, n: int) -> float:
    """Bound the Rademacher average of ψ(⟨w, Φ(x)⟩ + b) for ‖w‖ ≤ W and abs(b) ≤ B.

    (L/√n)(W r + B √(2 ln 2)).

    Parameters
    ----------
    L : float
        Lipschitz constant of ψ.
    W, B : float
        Largest norm of the weights, and largest absolute intercept.
    r : float
        √(E k(x, x)); its square is the trace of the kernel's integral operator.
    n : int
        Objects.

    Examples
    --------
    >>> from mercer.theory.risk import rademacher_bound
    >>> rademacher_bound(L=1.0, W=1.0, r=1.0, B=0.0, n=100)
    0.1
    """
    L, W, r, B = (_check_size(name, value) for name, value in (("L", L), ("W", W), ("r", r), ("B", B)))
    return L / math.sqrt(check_count("n", n)) * (W * r + B * math.sqrt(2.0 * math.log(2.0)))


# ------------------------------------------------------------------------------------------------ risks


def excess_risk_bound(psi_excess: Any, loss: str = "hinge") -> Any:
    """Bound the excess 0/1 risk by the excess of a surrogate risk.

    c · excess^s: 4 · excess for the hinge loss, √(8 · excess) for the logistic (natural logarithm) and exponential
    losses. The constants are those of the source and not the smallest; for the hinge loss, 1 suffices.

    Examples
    --------
    >>> from mercer.theory.risk import excess_risk_bound
    >>> float(excess_risk_bound(0.02, "hinge")), float(excess_risk_bound(0.02, "logistic"))
    (0.08, 0.4)
    """
    check_choice("loss", loss, ("hinge", "logistic", "exponential"))
    excess = _check_values("psi_excess", psi_excess)
    if (excess < 0).any():
        raise ValueError("psi_excess must be at least 0")
    return np.minimum(1.0, 4.0 * excess if loss == "hinge" else np.sqrt(8.0 * excess))


def margin_bound(
    empirical_risk: float,
    n: int,
    *,
    W: float,
    R: float,
    gamma: float,
    delta: float,
    r: float | None = None,
    B: float = 0.0,
) -> float:
    """Bound the error of ⟨w, Φ(x)⟩ + b by its training risk, for any dimension, with probability 1 − δ.

    mean ψ + 2 (γ/√n)(W r + B √(2 ln 2)) + (1 + γ(W R + B)) √(ln(1/δ)/2n) for the loss ψ = max(0, 1 − γ y f(x)), which
    is positive where y f(x) < 1/γ. The bound combines I1 to I3. The printed bound (2.28) has a different factor at r/R
    and omits the 1 in the range of the loss.

    Parameters
    ----------
    empirical_risk : float
        The mean of ψ over the training objects.
    n : int
        Training objects.
    W : float
        Largest allowed norm of w.
    R : float
        Largest norm of Φ(x), √(max k(x, x)).
    gamma : float
        The inverse of the required margin.
    delta : float
        Allowed probability that the bound fails.
    r : float, optional
        √(E k(x, x)); by default R.
    B : float, default=0.0
        Largest abs(b).

    Examples
    --------
    >>> from mercer.theory.risk import margin_bound
    >>> round(margin_bound(0.05, 100_000, W=3.0, R=1.0, gamma=1.0, delta=0.05), 3)
    0.084
    """
    risk, W, R, B = (
        _check_size(name, value) for name, value in (("empirical_risk", empirical_risk), ("W", W), ("R", R), ("B", B))
    )
    gamma, delta, n = check_positive("gamma", gamma), _check_probability("delta", delta), check_count("n", n)
    r = R if r is None else _check_size("r", r)
    if r > R * (1 + 1e-12):
        raise ValueError(f"r is a root mean square of norms whose maximum is R: r must be at most {R!r}, got {r!r}")
    deviation = uniform_deviation(1.0 + gamma * (W * R + B), n, delta)
    return min(1.0, risk + 2.0 * rademacher_bound(gamma, W, r, B, n) + deviation)


def noise_exponent(gamma: float) -> float:
    """Return α = γ/(1 + γ) of Tsybakov's noise condition P{abs(P(y=1 | x) − 1/2) ≤ t} ≤ β t^γ.

    γ = ∞ (Massart: label probabilities bounded away from 1/2) gives 1; γ = 0 (no condition) gives 0.

    Examples
    --------
    >>> from mercer.theory.risk import noise_exponent
    >>> noise_exponent(1.0), noise_exponent(float("inf"))
    (0.5, 1.0)
    """
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or math.isnan(gamma) or gamma < 0:
        raise ValueError(f"gamma must be a number of at least 0, got {gamma!r}")
    return 1.0 if math.isinf(gamma) else float(gamma) / (1.0 + float(gamma))


def noise_rate(gamma: float) -> float:
    """Return the exponent p of the rate n^(−p) of the excess risk of a finite class under a noise condition.

    p = 1/(2 − α) with α of `noise_exponent`: 1/2 without a condition, 1 under Massart's condition.

    Examples
    --------
    >>> from mercer.theory.risk import noise_rate
    >>> noise_rate(0.0), noise_rate(float("inf"))
    (0.5, 1.0)
    """
    return 1.0 / (2.0 - noise_exponent(gamma))


def _check_values(name: str, value: Any) -> np.ndarray:
    values = np.asarray(value, np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite")
    return values
