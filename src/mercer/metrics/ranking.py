"""Pairwise scores of rankings, and errors of classifiers by class size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer._validation import check_count, group_order


def pairwise_error(y_true: Any, y_score: Any, groups: Any = None) -> float:
    """Return the share of pairs of different grades that the scores order wrongly; a tie counts half.

    For two grades it is 1 − the area under the ROC curve. The time is O(n log n).

    Parameters
    ----------
    y_true : array of n numbers
        Grades of relevance, higher is better.
    y_score : array of n numbers
    groups : array of n values, optional
        Queries or users: only pairs within a group count. None: all examples are one group.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from mercer.metrics import pairwise_error
    >>> pairwise_error([2, 1, 0], [0.3, 0.9, 0.1])
    0.3333333333333333
    """
    y, scores = _numbers("y_true", y_true), _numbers("y_score", y_score)
    if len(y) != len(scores):
        raise ValueError(f"y_true holds {len(y)} grades and y_score {len(scores)} scores")
    order, offsets = group_order(groups, len(y))
    swapped, pairs = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.int64)
    _core.ranking.swapped_pairs(scores[order], y[order], offsets, swapped, pairs)
    if not pairs.sum():
        raise ValueError("y_true has no two different grades in a group, so there is no pair to compare")
    return float(swapped.sum() / 2 / pairs.sum())


def _numbers(name: str, values: Any) -> np.ndarray:
    """A finite vector of float64."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers") from error
    if numbers.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must not hold NaN or infinite values")
    return numbers


@dataclass(frozen=True)
class ClassSizeError:
    """The error of the classes of one range of sizes; see :func:`error_by_class_size`."""

    smallest: int
    """Training examples of the smallest class of the range."""
    largest: int
    """Training examples of the largest."""
    n_classes: int
    """Classes of the range that have test examples."""
    n_examples: int
    """Test examples of these classes."""
    error: float
    """Share of them that were classified wrongly."""


def error_by_class_size(
    y_train: Sequence[Any] | np.ndarray,
    y_true: Sequence[Any] | np.ndarray,
    y_pred: Sequence[Any] | np.ndarray,
    n_groups: int = 5,
) -> list[ClassSizeError]:
    """Return the errors of a classifier by class size, from rare to frequent classes.

    Test examples are sorted by the number of training examples of their class and divided into groups of about equal
    size; a class is never divided.

    Parameters
    ----------
    y_train : sequence of labels
        The labels of the training examples, which define the class sizes.
    y_true, y_pred : sequence of labels
        True and predicted labels of the test examples.
    n_groups : int, default=5
        Maximum number of groups; large classes may lead to fewer.

    Returns
    -------
    groups : list of ClassSizeError
        From rare classes to frequent ones.

    Examples
    --------
    >>> from mercer.metrics import error_by_class_size
    >>> y_train = ["a"] * 10 + ["b"]
    >>> for group in error_by_class_size(y_train, ["a", "a", "a", "b"], ["a", "a", "b", "a"], n_groups=2):
    ...     print(group.smallest, group.largest, group.n_examples, round(group.error, 2))
    1 1 1 1.0
    10 10 3 0.33
    """
    check_count("n_groups", n_groups)
    train, true, predicted = (np.asarray(labels) for labels in (y_train, y_true, y_pred))
    if train.ndim != 1 or true.ndim != 1 or true.shape != predicted.shape:
        raise ValueError(
            "y_train, y_true and y_pred must be one-dimensional and the last two equally long, "
            f"got shapes {train.shape}, {true.shape} and {predicted.shape}"
        )
    if not len(true):
        raise ValueError("y_true holds no examples, so there is no error to compute")
    classes, number = np.unique(np.concatenate([train, true]), return_inverse=True)
    size = np.bincount(number[: len(train)], minlength=len(classes))
    own = number[len(train) :]
    tested = np.bincount(own, minlength=len(classes))
    wrong = np.bincount(own, weights=true != predicted, minlength=len(classes))
    order = np.argsort(size, kind="stable")
    order = order[tested[order] > 0]
    middle = np.cumsum(tested[order]) - tested[order] / 2  # of a class, in the row of all test examples
    group = np.minimum((middle * n_groups / len(true)).astype(np.intp), n_groups - 1)
    return [
        ClassSizeError(
            smallest=int(size[members].min()),
            largest=int(size[members].max()),
            n_classes=len(members),
            n_examples=int(tested[members].sum()),
            error=float(wrong[members].sum() / tested[members].sum()),
        )
        for members in (order[group == k] for k in range(n_groups))
        if len(members)
    ]
