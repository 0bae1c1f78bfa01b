"""Which rows a pass over weighted data visits.

Used by learners that take rows one by one or in batches: random fields, online machines of label sets, learnt cosine
features. Whole weights are repeats: a pass over them is a pass over the data with these repeats. Other weights say how
often a row is visited on average, in passes that are as long as the data; positions along the line of summed weights
are at equal distances from a random start (systematic sampling), so that no row is visited much more or less often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["visits"]

_LONGEST = 8  # repeats of a row on average, beyond which whole weights are frequencies as well


def visits(weights: np.ndarray | None, n: int, random: Any, last: np.ndarray | None = None) -> np.ndarray:
    """Return the places of the rows of one pass, in the order of the data.

    Parameters
    ----------
    weights : array of n positive numbers, or None
    n : int
    random : Generator or RandomState
        Not used where weights are whole.
    last : array of int, optional
        The rows of the pass before, in any order: what is given back where all passes visit the same rows.

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
