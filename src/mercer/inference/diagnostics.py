"""How far chains of samples can be trusted: effective sample size, and whether the chains agree (R-hat).

R̂² = ((n − 1)/n W + B/n) / W,    W the mean variance within half-chains, B/n the variance of their means
ESS = m n / (1 + 2 Σ_t ρ_t),     autocorrelations ρ_t summed in pairs while a pair is positive (Geyer)
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["effective_sample_size", "r_hat"]


def _chains(name: str, values: Any) -> np.ndarray:
    chains = np.asarray(values, np.float64)
    if chains.ndim == 1:
        chains = chains[None]
    if chains.ndim != 2 or chains.shape[1] < 1:
        raise ValueError(f"{name} must be of shape (chains, samples), got {chains.shape}")
    if np.isnan(chains).any():
        raise ValueError(f"{name} must not hold NaN")
    return chains


def _halves(chains: np.ndarray) -> np.ndarray:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def r_hat(values: Any) -> float:
    """Split R-hat of a quantity: near 1 where all halves of all chains look alike, larger where they do not.

    Parameters
    ----------
    values : array of shape (chains, samples)
        The quantity in each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import r_hat
    >>> random = np.random.default_rng(0)
    >>> round(r_hat(random.normal(size=(4, 1000))), 2)
    1.0
    >>> round(r_hat(random.normal(size=(4, 1000)) + [[0], [0], [0], [5]]), 1)
    2.5
    """
    chains = _chains("values", values)
    if chains.shape[1] < 4:
        return float("nan")
    halves = _halves(chains)
    n = halves.shape[1]
    if not np.isfinite(halves).all():
        return float("inf")
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(values: Any) -> float:
    """How many independent samples would tell as much about the mean of a quantity.

    Parameters
    ----------
    values : array of shape (chains, samples)
        The quantity in each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inference import effective_sample_size
    >>> random = np.random.default_rng(0)
    >>> walk = np.zeros(20000)
    >>> for t in range(1, 20000):
    ...     walk[t] = 0.9 * walk[t - 1] + random.normal()
    >>> bool(800 < effective_sample_size(walk) < 1300)  # (1 − 0.9) / (1 + 0.9) of 20,000 is 1,053
    True
    """
    chains = _chains("values", values)
    m, n = chains.shape
    if n < 4 or not np.isfinite(chains).all():
        return float("nan") if n < 4 else 0.0
    halves = _halves(chains)
    m, n = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariances = np.fft.irfft(spectrum * spectrum.conj(), axis=1)[:, :n].mean(axis=0) / n
    within = covariances[0] * n / (n - 1)
    total = covariances[0] + halves.mean(axis=1).var(ddof=1)
    if total == 0:
        return float(m * n)
    correlations = 1.0 - (within - covariances * n / (n - 1)) / total
    pairs = correlations[0 : 2 * (n // 2) : 2] + correlations[1 : 2 * (n // 2) : 2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(1.0 / np.log10(max(10.0, m * n)), 2.0 * float(pairs.sum()) - 1.0)
    return float(m * n / time)
