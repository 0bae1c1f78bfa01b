"""Images on entry: arrays of three or four dimensions become rows of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_pixel_rows", "check_images", "image_shape"]


def as_pixel_rows(X: Any, n_pixels: int | None = None) -> Any:
    """Return images of shape (n, height, width) or (n, height, width, channels) as rows, and anything else unchanged.

    An array of two or three dimensions with exactly ``n_pixels`` numbers is one image.
    """
    shape = getattr(X, "shape", None)
    if isinstance(X, np.ndarray) and X.ndim in (2, 3) and X.size == n_pixels:
        return X.reshape(1, -1)
    if shape is None and isinstance(X, (list, tuple)) and X and getattr(X[0], "ndim", 0) in (2, 3):
        shapes = {getattr(image, "shape", None) for image in X}
        if len(shapes) > 1:
            raise ValueError(f"images in X must have one shape, got {sorted(map(str, shapes))}")
        X = np.asarray(X)
        shape = X.shape
    if shape is None or len(shape) not in (3, 4) or not hasattr(X, "reshape"):
        return X
    return X.reshape(shape[0], -1)


def image_shape(X: Any) -> np.ndarray | None:
    """Return height, width and channels of images, or None for rows of pixels."""
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, (list, tuple)) and X and getattr(X[0], "ndim", 0) in (2, 3):
        shape = (len(X), *X[0].shape)
    return None if shape is None or len(shape) not in (3, 4) else np.array(shape[1:], np.int64)


def check_images(X: Any, fitted: np.ndarray | None) -> None:
    """Raise an error for images of another shape than in training, even with the same number of pixels."""
    shape = image_shape(X)
    if fitted is None or shape is None or len(shape) != len(fitted):
        return
    if (shape != fitted).any():
        found, known = (" × ".join(map(str, sides)) for sides in (shape, fitted))
        raise ValueError(f"images of X have {found} pixels, those of training {known}")
