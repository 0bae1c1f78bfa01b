# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Joint machines of label sets, online."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

import mercer._core.linear

def joint_pass(
    rows: mercer._core.linear.Rows,
    codes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
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
