"""The rows that a pass over weighted data visits.

Used by learners that take single rows or batches: random fields, online classifiers of label sets, learnt cosine
features. Integer weights are repeats: a pass visits each row that many times. Other weights give the average number of
visits, in passes as long as the data. Rows are then chosen by systematic sampling: at equal distances along the
cumulative weights, from a random start, so that no row is visited much more or less often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["visits"]

_LONGEST = 8  # repeats of a row on average, beyond which whole weights are frequencies as well


def visits(weights: np.ndarray | None, n: int, random: Any, last: np.ndarray | None = None) -> np.ndarray:
    """Return the row indices of one pass, in the order of the data.

    Parameters
    ----------
    weights : array of n positive numbers, or None
    n : int
    random : Generator or RandomState
        Not used with integer weights.
    last : array of int, optional
        The rows of the previous pass, in any order; returned if all passes visit the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.learning.visits import visits
    >>> visits(np.array([1.0, 3.0]), 2, None).tolist()
    [0, 1, 1, 1]
    >>> len(visits(np.array([0.5, 1.5, 0.5, 1.5]), 4, np.random.default_rng(0)))
    4
    """
    if weights is None or ((weights == np.round(weights)).all() and weights.sum() <= _LONGEST * n):
        if last is not None:
            return last
        return np.arange(n) if weights is None else np.repeat(np.arange(n), weights.astype(np.int64))
    line = np.cumsum(weights)
    at = (np.arange(n) + random.random()) * (line[-1] / n)
    return np.minimum(np.searchsorted(line, at, side="right"), n - 1)
