"""Scores of labelled images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def mean_iou(truth: Sequence[Any], predicted: Sequence[Any], label: Any = None) -> float:
    """Return the intersection over union of label maps, for one label or averaged over all labels that occur.

    Pixels of all maps are counted together.

    Parameters
    ----------
    truth, predicted : lists of arrays of shape (H, W)
    label : optional
        Default: the mean over the labels that occur in either.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import mean_iou
    >>> mean_iou([np.array([[0, 1, 1, 0]])], [np.array([[0, 1, 0, 0]])], label=1)
    0.5
    """
    true, predicted_maps = check_label_maps(truth), check_label_maps(predicted)
    if len(true) != len(predicted_maps) or any(a.shape != b.shape for a, b in zip(true, predicted_maps, strict=True)):
        raise ValueError("truth and predicted must hold maps of the same shapes")
    if not true:
        raise ValueError("there are no label maps to compare")
    a, b = np.concatenate([x.ravel() for x in true]), np.concatenate([x.ravel() for x in predicted_maps])
    labels = np.unique(np.concatenate([a, b])) if label is None else [label]
    shares = []
    for one in labels:
        union = int(((a == one) | (b == one)).sum())
        shares.append(int(((a == one) & (b == one)).sum()) / union if union else 1.0)
    return float(np.mean(shares))


def check_label_maps(y: Any) -> list[np.ndarray]:
    """Return label maps as arrays of two dimensions."""
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list of label maps, got {type(y).__name__}")
    maps = [np.asarray(truth) for truth in y]
    for i, truth in enumerate(maps):
        if truth.ndim != 2:
            raise ValueError(f"label map {i} must have shape (H, W), got {truth.shape}")
    return maps
