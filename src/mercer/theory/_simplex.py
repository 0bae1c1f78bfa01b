"""Grids over the simplex of distributions, and its plot for three labels."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

__all__ = ["grid", "triangle"]

MOST_POINTS = 2_000_000


def grid(n_labels: int, resolution: int) -> np.ndarray:
    """Return all distributions with multiples of 1/resolution, one per row."""
    places = resolution + n_labels - 1
    fewer = min(resolution, n_labels - 1)  # from 12 on there are more points than that already: no need to count them
    if max(n_labels, resolution) > MOST_POINTS or fewer >= 12 or math.comb(places, n_labels - 1) > MOST_POINTS:
        raise ValueError(
            f"a grid of multiples of 1/{resolution} over {n_labels} labels has more than {MOST_POINTS:,} points: "
            "use a coarser grid or fewer labels"
        )
    bars = np.array(list(combinations(range(places), n_labels - 1)), dtype=np.int64)
    edges = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), places)])
    return (np.diff(edges, axis=1) - 1) / resolution


def triangle(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of distributions over three labels in an equilateral triangle."""
    return p[:, 1] + 0.5 * p[:, 2], np.sqrt(0.75) * p[:, 2]
