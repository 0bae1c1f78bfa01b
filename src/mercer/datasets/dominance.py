"""Data without a dominant label, for which the log and hinge losses lead to different predictions.

A label *dominates* at x if its probability is above 1/2. If no label dominates, equal scores minimise the hinge loss,
so the prediction of a support vector machine is arbitrary. The log loss and the hybrid loss still rank the labels by
their probabilities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._validation import check_count, check_positive

__all__ = ["make_mixed_dominance", "make_nondominant"]

_SHARES = (0.4, 0.15, 0.15, 0.15, 0.15)  # of the five labels where none dominates


def make_nondominant(
    k: int,
    p_top: float = 0.46,
    n: int = 100,
    mu: float = 1.2,
    sigma: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Generate inputs without information about their label; the most frequent label has a share below one half.

    Labels have exact proportions: ``p_top · n`` examples of label 0, and the others are as equal as integers allow. The
    best prediction is label 0 everywhere, with an error of ``1 − p_top``.

    Parameters
    ----------
    k : int
        Number of labels, at least 2.
    p_top : float, default=0.46
        Share of label 0.
    n : int, default=100
        Number of examples, at least k.
    mu, sigma : float, default=1.2 and 0.0
        Mean and standard deviation of the single, normal feature; with 0 all inputs are the same.
    random_state : int, Generator or None, default=0
        Seed of the inputs and of the order of the labels.

    Returns
    -------
    X : array of shape (n, 1)
    y : int array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import make_nondominant
    >>> X, y = make_nondominant(k=10)
    >>> np.bincount(y).tolist()
    [46, 6, 6, 6, 6, 6, 6, 6, 6, 6]
    """
    check_count("k", k, 2)
    check_count("n", n, k)
    if not np.isfinite(mu):
        raise ValueError(f"mu must be a finite number, got {mu!r}")
    if not np.isfinite(sigma) or sigma < 0:
        raise ValueError(f"sigma must be a finite number of at least 0, got {sigma!r}")
    top = round(check_positive("p_top", p_top) * n)
    if not 0 < top <= n - (k - 1):
        raise ValueError(f"p_top must leave at least one of {n} examples to each of {k} labels, got {p_top!r}")
    rng = np.random.default_rng(random_state)
    # Not all of 54 / (k − 1) are whole numbers: the first of the other labels get one more.
    others = np.arange(n - top) % (k - 1) + 1
    y = rng.permutation(np.concatenate([np.zeros(top, np.intp), others]))
    return rng.normal(mu, sigma, size=(n, 1)), y


def make_mixed_dominance(
    rho: float,
    m: int,
    n_features: int = 100,
    sigma: float = 0.6,
    fixed: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Generate examples of five labels, a share of them at one point where no label dominates.

    An example of the share ``rho`` has the features ``fixed`` and the label 0, …, 4 with probability 0.4, 0.15, 0.15,
    0.15, 0.15. Any other example has a uniformly drawn label j and features from a normal distribution with mean 1 + j,
    so these labels are almost perfectly separable. The Bayes error is at least ``0.6 · rho``.

    The means of the classes lie on one line, so a linear model needs a constant feature to separate five classes; the
    data has no such feature. The source does not specify the fixed point. The default is off that line: on the line,
    the scores of a linear model at the point would depend on the scores of the classes.

    Parameters
    ----------
    rho : float
        Share of examples without a dominant label, 0 to 1; rounded to a whole number of examples.
    m : int
        Number of examples.
    n_features : int, default=100
    sigma : float, default=0.6
        Standard deviation of each feature of the other examples.
    fixed : array of shape (n_features,), optional
        Features of the examples without a dominant label; by default 1, −1, 1, −1, …
    random_state : int, Generator or None, default=0

    Returns
    -------
    X : array of shape (m, n_features)
    y : int array of shape (m,)

    Examples
    --------
    >>> from mercer.datasets import make_mixed_dominance
    >>> X, y = make_mixed_dominance(rho=0.3, m=1000)
    >>> X.shape, int((X[:, :2] == [1.0, -1.0]).all(axis=1).sum())
    ((1000, 100), 300)
    """
    check_count("m", m)
    check_count("n_features", n_features)
    check_positive("sigma", sigma)
    if not np.isfinite(rho) or not 0 <= rho <= 1:
        raise ValueError(f"rho must lie between 0 and 1, got {rho!r}")
    point = np.where(np.arange(n_features) % 2, -1.0, 1.0) if fixed is None else np.asarray(fixed, dtype=float)
    if point.shape != (n_features,) or not np.isfinite(point).all():
        raise ValueError(f"fixed must be {n_features} finite numbers, one per feature, got shape {point.shape}")
    rng = np.random.default_rng(random_state)
    dominant = rng.permutation(m) >= round(rho * m)
    y = np.where(dominant, rng.integers(len(_SHARES), size=m), rng.choice(len(_SHARES), size=m, p=_SHARES))
    X = np.tile(point, (m, 1))
    X[dominant] = rng.normal(1.0 + y[dominant, None], sigma, size=(int(dominant.sum()), n_features))
    return X, y
