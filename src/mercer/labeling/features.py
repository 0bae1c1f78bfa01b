"""Features of image blocks: appearance, position, and contrast with neighbours.

A picture of H × W pixels has ⌈H / b⌉ × ⌈W / b⌉ blocks of b × b pixels; those at the right and lower
edge may be smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._validation import check_count

__all__ = ["block_contrasts", "block_features", "block_labels"]

N_ORIENTATIONS = 8


def as_image(image: Any, name: str = "image") -> np.ndarray:
    """Return (H, W, channels) as floats; integers are divided by 255."""
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.dtype.kind not in "uifb" or 0 in pixels.shape:
        raise ValueError(
            f"{name} must be an array of numbers of shape (H, W) or (H, W, channels), got {np.shape(image)}"
        )
    scaled = pixels / 255.0 if pixels.dtype.kind in "ui" else pixels.astype(float)
    if not np.isfinite(scaled).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return scaled


def block_sums(values: np.ndarray, block: int) -> np.ndarray:
    """Return sums over blocks of the first two axes."""
    rows = np.add.reduceat(values, np.arange(0, values.shape[0], block), axis=0)
    return np.add.reduceat(rows, np.arange(0, values.shape[1], block), axis=1)


def block_features(image: Any, block: int = 8) -> np.ndarray:
    """Return features of the blocks of an image.

    For each block: mean and standard deviation of each channel; mean strength of the gradient; a histogram of gradient
    orientations (shares of 8 directions without sign) and how peaked it is; the mean and standard deviation of the
    3 × 3 blocks around it; its position (two coordinates from −1 to 1, their squares and their product).

    Parameters
    ----------
    image : array of shape (H, W) or (H, W, channels)
        Integers have the range 0 to 255.
    block : int, default=8
        Side length of a block in pixels.

    Returns
    -------
    ndarray of shape (⌈H / block⌉, ⌈W / block⌉, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import block_features
    >>> image = np.zeros((8, 12))
    >>> image[:, 6:] = 1.0
    >>> features = block_features(image, block=4)
    >>> features.shape
    (2, 3, 19)
    >>> features[0, :, 0]  # means
    array([0. , 0.5, 1. ])
    """
    check_count("block", block)
    pixels = as_image(image)
    H, W, _ = pixels.shape
    size = block_sums(np.ones((H, W, 1)), block)
    mean = block_sums(pixels, block) / size
    spread = np.sqrt(np.maximum(block_sums(pixels**2, block) / size - mean**2, 0.0))
    grey = pixels.mean(axis=2)
    dy = np.gradient(grey, axis=0) if H > 1 else np.zeros_like(grey)
    dx = np.gradient(grey, axis=1) if W > 1 else np.zeros_like(grey)
    strength = np.hypot(dx, dy)
    direction = np.mod(np.arctan2(dy, dx), np.pi) / np.pi * N_ORIENTATIONS
    bins = np.minimum(direction.astype(int), N_ORIENTATIONS - 1)
    votes = block_sums(strength[:, :, None] * (bins[:, :, None] == np.arange(N_ORIENTATIONS)), block)
    total = votes.sum(axis=2, keepdims=True)
    shares = votes / (total + 0.01 * size)
    around = _around(np.concatenate([mean.mean(axis=2, keepdims=True), total / size], axis=2))
    return np.concatenate(
        [mean, spread, total / size, shares, shares.max(axis=2, keepdims=True), around, _places(mean.shape[:2])], axis=2
    )


def _around(values: np.ndarray) -> np.ndarray:
    """Mean over the 3 × 3 blocks around each block, those inside the image."""
    h, w, d = values.shape
    padded = np.zeros((h + 2, w + 2, d + 1))
    padded[1:-1, 1:-1, :d], padded[1:-1, 1:-1, d] = values, 1.0
    total = np.zeros((h, w, d + 1))
    for i in range(3):
        for j in range(3):
            total += padded[i : i + h, j : j + w]
    return total[:, :, :d] / total[:, :, d:]


def _places(shape: tuple[int, ...]) -> np.ndarray:
    y, x = (np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1) for n in shape)
    y, x = np.meshgrid(y, x, indexing="ij")
    return np.stack([y, x, y * y, x * x, x * y], axis=2)


def block_contrasts(image: Any, edges: Any, block: int = 8) -> np.ndarray:
    """Return features of neighbouring blocks: a constant 1, and their similarity.

    The second is exp(−d / mean d) of the squared distance d of their mean colours: near 1
    for similar blocks and near 0 across a strong border.

    Parameters
    ----------
    image : array of shape (H, W) or (H, W, channels)
    edges : array of int of shape (m, 2)
        Pairs of blocks, numbered row by row; see :func:`mercer.inference.grid_edges`.
    block : int, default=8

    Returns
    -------
    ndarray of shape (m, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import block_contrasts
    >>> image = np.zeros((4, 12))
    >>> image[:, 8:] = 1.0
    >>> block_contrasts(image, [[0, 1], [1, 2]], block=4).round(3)
    array([[1.   , 1.   ],
           [1.   , 0.135]])
    """
    check_count("block", block)
    pixels = as_image(image)
    mean = block_sums(pixels, block) / block_sums(np.ones((*pixels.shape[:2], 1)), block)
    colours = mean.reshape(-1, mean.shape[2])
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    distance = ((colours[pairs[:, 0]] - colours[pairs[:, 1]]) ** 2).sum(axis=1)
    scale = distance.mean() if len(distance) else 0.0
    similar = np.exp(-distance / scale) if scale > 0 else np.ones(len(distance))
    return np.stack([np.ones(len(distance)), similar], axis=1)


def block_labels(labels: Any, n_labels: int, block: int = 8) -> np.ndarray:
    """Return the most frequent label of each block, −1 if no pixel has one.

    Parameters
    ----------
    labels : array of int of shape (H, W)
        Numbers from 0; −1 for unknown labels.
    n_labels : int
    block : int, default=8

    Returns
    -------
    ndarray of int of shape (⌈H / block⌉, ⌈W / block⌉)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.labeling import block_labels
    >>> block_labels(np.array([[0, 0, 1, -1], [0, 1, -1, -1]]), 2, block=2)
    array([[0, 1]], dtype=int32)
    """
    check_count("block", block)
    given = np.asarray(labels)
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers of shape (H, W), got {given.shape}")
    votes = block_sums((given[:, :, None] == np.arange(n_labels)).astype(np.int64), block)
    return np.where(votes.sum(axis=2) > 0, votes.argmax(axis=2), -1).astype(np.int32)
