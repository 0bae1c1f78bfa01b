"""Map scores to probabilities by a sigmoid with slope and offset, for many labels at once.

    P(label t | s) = 1 / (1 + exp(−(a_t s_t + b_t)))

They maximise the likelihood of smoothed labels (one extra example each of 0 and 1 [Platt1999]), with a weak penalty on
slopes. There are two unknowns per label. The Newton steps of all labels together take a few sums over the rows. Each
label has its own step size, so `mercer.learning.newton` does not apply.

Users: decisions of ``multilabel``, attributes of ``attributes.ZeroShotClassifier``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_CELLS = 400  # of scores, where there are many rows
_PENALTY = 1e-3  # on squared slopes, of scores relative to their spread


def fit_sigmoids(
    scores: np.ndarray, on: np.ndarray, weights: np.ndarray | None = None, *, rising: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and offsets for all columns of ``scores``, with the labels in the columns of ``on``.

    With many rows, the scores are binned into a few hundred cells. A column with a single score or a single label gets
    the slope 0; with ``rising``, so does a column whose slope would be negative.
    """
    n = len(scores) if weights is None else float(weights.sum())
    count = np.asarray(on.sum(axis=0) if weights is None else weights @ on, np.float64)
    center, spread = scores.mean(axis=0), scores.std(axis=0)
    flat = (spread <= 1e-12 * np.maximum(np.abs(center), 1e-300)) | (count == 0) | (count == n)
    spread = np.where(flat, 1.0, spread)
    prior = np.log((count + 0.5) / (n - count + 0.5))
    prior = np.where(count == 0, -20.0, np.where(count == n, 20.0, prior))
    F = (scores - center) / spread
    F[:, flat] = 0.0
    M, share = np.ones((1, 1)) if weights is None else weights[:, None], on
    if len(F) > 2 * _CELLS:
        F, M, share = _in_cells(F, on, weights)
    target = share * ((count + 1) / (count + 2)) + (1 - share) / (n - count + 2)
    a, b = _newton(F, M, target, prior, n)
    useless = flat | (a <= 0) if rising else flat
    a, b = np.where(useless, 0.0, a), np.where(useless, prior, b)
    return a / spread, b - a * center / spread


def _newton(
    F: np.ndarray, M: np.ndarray, target: np.ndarray, prior: np.ndarray, n: float
) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps from no slope; a label whose step does not help takes a shorter one next time."""
    a, b, rate = np.zeros(F.shape[1]), prior.copy(), np.ones(F.shape[1])
    value = _deviance(F, M, target, a, b)
    for _ in range(30):
        P = expit(F * a + b)
        R, W = M * (P - target), M * (P * (1 - P) + 1e-12)
        ga, gb = (F * R).sum(axis=0) + _PENALTY * a, R.sum(axis=0)
        WF = W * F
        haa, hab, hbb = (WF * F).sum(axis=0) + _PENALTY, WF.sum(axis=0), W.sum(axis=0)
        det = np.maximum(haa * hbb - hab**2, 1e-300)
        da, db = (hbb * ga - hab * gb) / det, (haa * gb - hab * ga) / det
        new_a, new_b = a - rate * da, b - rate * db
        now = _deviance(F, M, target, new_a, new_b)
        better = now <= value
        a, b, value = np.where(better, new_a, a), np.where(better, new_b, b), np.where(better, now, value)
        rate = np.where(better, np.minimum(1.0, 2 * rate), rate / 4)
        if (np.abs(ga * da + gb * db) < 1e-8 * n).all():
            break
    return a, b


def _deviance(F: np.ndarray, M: np.ndarray, target: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    Z = F * a + b
    softplus = np.maximum(Z, 0.0) + np.log1p(np.exp(-np.abs(Z)))
    return (M * (softplus - target * Z)).sum(axis=0) + _PENALTY / 2 * a**2


def _in_cells(F: np.ndarray, on: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean scores, counts and shares of rows with the label, for cells of equal width, label by label."""
    T = F.shape[1]
    low, high = F.min(axis=0), F.max(axis=0)
    width = np.maximum(high - low, 1e-300)
    cell = np.minimum(((F - low) * (_CELLS / width)).astype(np.int64), _CELLS - 1) + np.arange(T) * _CELLS
    size = T * _CELLS
    w = None if weights is None else np.repeat(weights, T)
    counts = np.bincount(cell.ravel(), w, minlength=size).reshape(T, _CELLS).T
    sums = np.bincount(cell.ravel(), F.ravel() if w is None else w * F.ravel(), minlength=size).reshape(T, _CELLS).T
    right = np.bincount(cell[on], None if w is None else w[on.ravel()], minlength=size).reshape(T, _CELLS).T
    least = np.maximum(counts, 1) if w is None else np.where(counts > 0, counts, 1.0)
    return sums / least, counts.astype(np.float64), right / least
