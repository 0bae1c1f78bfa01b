"""Convergence diagnostics of Markov chains: effective sample size, agreement of chains (R-hat), errors of marginals.

R̂² = ((n − 1)/n W + B/n) / W,    W the mean variance within half-chains, B/n the variance of their means
ESS = m n / (1 + 2 Σ_t ρ_t),     autocorrelations ρ_t summed in pairs while a pair is positive (Geyer)

A quantity that never changes gives no evidence of convergence: its R-hat and effective sample size are NaN.

For a marginal, the quantity is the indicator of a state. Its mean over a part of a chain is the marginal p of that part
and its variance p (1 − p), so only the marginals of parts of chains are needed (:class:`ChainMarginals`). The Monte
Carlo standard error is the largest of three estimates: by the spread of batch means, of half-chains, and of chains. The
first has most terms, but is too small if batches are shorter than the autocorrelation time.
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
    """Return the split R-hat of a quantity: near 1 if all halves of all chains agree, larger if they do not.

    It is infinite for chains that are constant at different values, and NaN if the quantity never changes, which is no
    evidence of convergence.

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
        return float("nan") if between == 0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(values: Any) -> float:
    """Return the number of independent samples that would estimate the mean equally well.

    It is NaN for a quantity that never changes.

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
        return float("nan")
    correlations = 1.0 - (within - covariances * n / (n - 1)) / total
    pairs = correlations[0 : 2 * (n // 2) : 2] + correlations[1 : 2 * (n // 2) : 2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(1.0 / np.log10(max(10.0, m * n)), 2.0 * float(pairs.sum()) - 1.0)
    return float(m * n / time)


class ChainMarginals:
    """Marginals of several chains over batches of sweeps: mean, R-hat and Monte Carlo standard error.

    Parameters
    ----------
    n_batches : int
        Number of batches; R-hat needs an even number.
    """

    def __init__(self, n_batches: int) -> None:
        self._n_batches = n_batches
        self._added = 0
        self._totals = np.zeros((0, 0))
        self._half: np.ndarray | None = None

    def add(self, totals: np.ndarray, swept: np.ndarray) -> None:
        """Add the sums over all sweeps so far (chains × states), and the number of sweeps of each chain."""
        if not self._added:
            self._totals, self._swept = np.zeros_like(totals), np.zeros(len(totals))
            self._sum, self._squares = np.zeros(totals.shape[1]), np.zeros(totals.shape[1])
        batch = (totals - self._totals) / np.maximum(swept - self._swept, 1)[:, None]
        self._sum += batch.sum(axis=0)
        self._squares += (batch**2).sum(axis=0)
        self._totals, self._swept = totals, swept.astype(float)
        self._added += 1
        if 2 * self._added == self._n_batches:
            self._half, self._half_swept = self._totals, self._swept

    @property
    def chains(self) -> np.ndarray:
        """Return the marginals of each chain."""
        return self._totals / np.maximum(self._swept, 1)[:, None]

    @property
    def halves(self) -> np.ndarray | None:
        """Return the marginals of the half-chains, or None with an odd number of batches."""
        if self._half is None:
            return None
        first = self._half / np.maximum(self._half_swept, 1)[:, None]
        rest = np.maximum(self._swept - self._half_swept, 1)[:, None]
        return np.concatenate([first, (self._totals - self._half) / rest])

    def r_hat(self) -> np.ndarray:
        """Return the split R-hat of the indicator of each state; NaN if it never changes."""
        halves = self.halves
        if halves is None:
            return np.full(self._totals.shape[1], np.nan)
        n = max(2.0, float(self._half_swept.min()))
        within = np.maximum(halves * (1.0 - halves), 0.0).mean(axis=0) * n / (n - 1)
        between = halves.var(axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt((n - 1) / n + between / within)

    def standard_errors(self) -> np.ndarray:
        """Return Monte Carlo standard errors of the means over all chains; infinite if nothing can be compared."""
        m, n = len(self._totals), self._n_batches
        means = [part for part in (self.chains if m > 1 else None, self.halves) if part is not None]
        variances = [part.var(axis=0, ddof=1) / len(part) for part in means]
        if n > 2:
            spread = np.maximum(self._squares - self._sum**2 / (m * n), 0.0) / (m * n - 1)
            variances.append(spread / (m * n))
        if not variances:
            return np.full(self._totals.shape[1], np.inf)
        return np.sqrt(np.max(variances, axis=0))
