"""Checks and conversions of segment starts: b_0 = 0 < b_1 < … < b_{L−1} < n."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mercer.metrics.segments import check_starts

__all__ = ["check_all_starts", "check_starts", "starts_mask"]


def check_all_starts(name: str, starts: Iterable[Any], lengths: Sequence[int] | np.ndarray) -> list[np.ndarray]:
    """Return the starts of each sequence as checked arrays."""
    given = list(starts)
    if len(given) != len(lengths):
        raise ValueError(f"{name} holds the starts of {len(given)} sequences, but there are {len(lengths)}")
    return [check_starts(f"{name}[{i}]", one, int(n)) for i, (one, n) in enumerate(zip(given, lengths, strict=True))]


def starts_mask(starts: np.ndarray, n: int) -> np.ndarray:
    """Return a boolean array of length ``n``, True where a segment starts."""
    mask = np.zeros(n, bool)
    mask[starts] = True
    return mask
