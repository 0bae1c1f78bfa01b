"""The result of a kernel test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

__all__ = ["KernelTestResult"]


@dataclass(frozen=True)
class KernelTestResult:
    """The result of a kernel test: the statistic, its p-value, and the null distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import MMD
    >>> rng = np.random.default_rng(0)
    >>> result = MMD(Linear()).test(rng.normal(size=(40, 1)), rng.normal(2, 1, size=(40, 1)), 99, random_state=0)
    >>> result.p_value, result.rejected, len(result.null)
    (0.01, True, 99)
    """

    statistic: float
    """Of the data."""
    p_value: float
    """(1 + number of permutations with a statistic as large) / (1 + permutations), or the tail of the approximation."""
    threshold: float
    """Threshold of the statistic for rejection at ``alpha``; infinite with too few permutations for that level."""
    alpha: float
    """The level of the threshold."""
    null_mean: float
    """Mean of the statistic without an effect: over the permutations, or of the approximation."""
    null_std: float
    """Its standard deviation."""
    method: str
    """Source of the null distribution, such as ``"permutation"`` or ``"gamma"``."""
    null: np.ndarray | None = field(default=None, repr=False)
    """The statistics of the permutations, in the order drawn."""

    @property
    def rejected(self) -> bool:
        """Return whether p_value ≤ alpha."""
        return self.p_value <= self.alpha


def permutation_result(observed: float, null: np.ndarray, alpha: float, rounding: float = 1e-8) -> KernelTestResult:
    """Return the exact test: under the null, all values are equally likely to be the largest."""
    # Equal statistics of different permutations (discrete data) may differ by rounding: they count as equal, which can
    # only raise the p-value.
    slack = rounding * max(abs(observed), float(np.abs(null).max(initial=0.0)))
    p_value = (1 + int(np.sum(null >= observed - slack))) / (1 + len(null))
    allowed = int(np.floor(alpha * (1 + len(null)) + 1e-12))
    threshold = float(np.sort(null)[-allowed]) if 1 <= allowed <= len(null) else np.inf
    mean, std = (float(null.mean()), float(null.std())) if len(null) else (np.nan, np.nan)
    return KernelTestResult(float(observed), p_value, threshold, alpha, mean, std, "permutation", null)


def gamma_result(
    T: float, mean: float, variance: float, alpha: float, value: Callable[[float], float], slope: float
) -> KernelTestResult:
    """Return the test by a gamma distribution with the moments of T; ``value`` and ``slope`` map T to the statistic."""
    if mean <= 0 or variance <= 0:  # one of the kernels is constant on the data: nothing can depend on it
        return KernelTestResult(value(T), 1.0, np.inf, alpha, value(mean), 0.0, "gamma")
    distribution = stats.gamma(mean**2 / variance, scale=variance / mean)
    threshold = value(float(distribution.isf(alpha)))
    return KernelTestResult(
        value(T), float(distribution.sf(T)), threshold, alpha, value(mean), slope * float(np.sqrt(variance)), "gamma"
    )


def normal_result(observed: float, std: float, alpha: float, method: str) -> KernelTestResult:
    """Return the test by a normal distribution with mean 0."""
    if std <= 0:
        p_value = 0.0 if observed > 0 else 1.0
        return KernelTestResult(observed, p_value, 0.0, alpha, 0.0, 0.0, method)
    p_value, threshold = float(stats.norm.sf(observed / std)), float(stats.norm.isf(alpha) * std)
    return KernelTestResult(observed, p_value, threshold, alpha, 0.0, std, method)
