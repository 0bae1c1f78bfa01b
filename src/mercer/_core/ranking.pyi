# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Losses over pairs and rankings."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

def pair_losses(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    grades: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    squared: bool,
    gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """
    Σ over pairs of each group of the (squared) hinge, and its gradient in the scores.
    """

def average_precision_losses(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    grades: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """max (1 - AP + score) of each group, and its gradient in the scores."""

def f1_losses(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    grades: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """max (1 - F1 + score) of each group, and its gradient in the scores."""

def swapped_pairs(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    grades: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    pairs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
) -> None:
    """
    2 · (pairs in the wrong order) + (pairs of equal score), and the pairs of different grades, of each group.
    """
