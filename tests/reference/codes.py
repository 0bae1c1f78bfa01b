"""Binary codes the slow way: dense circulants, bits one by one, distances by counting."""

from __future__ import annotations

import numpy as np


def dense_circulant(r: np.ndarray) -> np.ndarray:
    """R[i, j] = r[(i − j) mod d]."""
    return np.stack([np.roll(r, j) for j in range(len(r))], axis=1)


def packed(bits: np.ndarray) -> np.ndarray:
    """Bit j in byte j // 8, the first bit of a byte the highest."""
    out = np.zeros((len(bits), -(-bits.shape[1] // 8)), np.uint8)
    for i, row in enumerate(bits):
        for j, bit in enumerate(row):
            out[i, j // 8] |= int(bit) << (7 - j % 8)
    return out


def nearest(bits: np.ndarray, query: np.ndarray, k: int, allowed: np.ndarray | None = None) -> list[tuple[int, int]]:
    """(distance, position) of the k nearest, by distance, then position."""
    pairs = [(int((row != query).sum()), p) for p, row in enumerate(bits) if allowed is None or allowed[p]]
    return sorted(pairs)[:k]
