# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Label sets: joint machines, linear machines, trees of labels."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray

import mercer._core.examples
import mercer._core.linear

@overload
def joint_dual(
    G: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    C: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    tol: float,
    max_iter: int,
) -> tuple: ...
@overload
def joint_dual(
    G: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    C: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    tol: float,
    max_iter: int,
) -> tuple:
    """
    max sum(a) - 1/2 a'Ga over 0 <= a_i <= C_i from a start, to slopes of tol: (slopes, steps, converged).
    """

def joint_pass(
    rows: mercer._core.linear.Rows,
    codes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    own: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    step: float,
    margin: float,
    squared_norm: float,
    seen: int,
) -> tuple:
    """One pass of the joint machine: (updates, |W|^2, rows seen)."""

def joint_kernel_pass(
    G: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    step: float,
    margin: float,
    gradient: bool,
) -> int:
    """One pass over a product of kernel matrices; the number of updates."""

def newton_machines(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    C: float,
    intercept: bool,
    tol: float,
    max_iter: int,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    shifts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    objective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    gap: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    converged: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> int:
    """
    Train a linear machine with the squared hinge for each column of targets, from a start: Newton steps taken.
    """

def learn_label_sets(
    examples: mercer._core.examples.Examples,
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    squares: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    n_labels: int,
    depth: int,
    rate: float,
) -> float:
    """
    Learns from the label sets of a block; the sum of the losses before each example.
    """

def likely_labels(
    examples: mercer._core.examples.Examples,
    weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_labels: int,
    depth: int,
    least: float,
    most: int,
    threads: int,
) -> tuple:
    """
    (starts, labels, probabilities) of each example, the most likely first.
    """
