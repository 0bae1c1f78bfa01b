"""Point clouds of a solid without symmetry: a mug with a handle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer._validation import check_count, check_not_negative

__all__ = ["make_mug"]


def make_mug(n_points: int = 1000, *, noise: float = 0.0, random_state: Any = 0) -> np.ndarray:
    """Generate points on the surface of a mug: a wall, a bottom, a handle, and a spout that breaks the mirror symmetry.

    Parameters
    ----------
    n_points : int, default=1000
    noise : float, default=0.0
        Standard deviation of normal noise on every coordinate; the mug is about 2 units high.
    random_state : int, Generator or None, default=0

    Returns
    -------
    points : ndarray of shape (n_points, 3)
        Points spread about evenly over the surface.

    Examples
    --------
    >>> from mercer.datasets import make_mug
    >>> make_mug(500).shape
    (500, 3)
    """
    check_count("n_points", n_points)
    check_not_negative("noise", noise)
    rng = np.random.default_rng(random_state)
    wall, bottom, handle, spout = 2 * math.pi * 0.7 * 2, math.pi * 0.7**2, 2 * math.pi * 0.12 * math.pi * 0.5, 0.35
    shares = np.array([wall, bottom, handle, spout])
    part = rng.choice(4, size=n_points, p=shares / shares.sum())
    angle, u, v = 2 * math.pi * rng.random(n_points), rng.random(n_points), rng.random(n_points)
    around = np.c_[np.cos(angle), np.sin(angle)]
    points = np.empty((n_points, 3))
    on = part == 0
    points[on] = np.c_[0.7 * around[on], 2 * u[on] - 1]
    on = part == 1
    points[on] = np.c_[0.7 * np.sqrt(u[on])[:, None] * around[on], np.full(on.sum(), -1.0)]
    on = part == 2  # half a torus, from the upper wall to the middle
    bend = math.pi * u[on] - math.pi / 2
    radius = 0.5 + 0.12 * around[on, 0]
    points[on] = np.c_[0.7 + radius * np.cos(bend), 0.12 * around[on, 1], 0.2 + radius * np.sin(bend)]
    on = part == 3  # a flat tongue on the rim, to one side
    points[on] = np.c_[-0.2 + 0.5 * v[on], 0.7 + 0.5 * u[on], 1.0 - 0.2 * u[on]]
    return points + noise * rng.standard_normal(points.shape)
