# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Planes of margin losses and ascent on their dual."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

import mercer._core.chain
import mercer._core.linear

class Planes:
    """Planes of margin losses, block by block, and ascent on their dual."""

    def __init__(
        self,
        n_blocks: int,
        n_weights: int,
        mass: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        power: int = 1,
    ) -> None: ...
    @property
    def n_blocks(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def linear(self) -> float:
        """Σ a_p offset_p."""

    @property
    def quadratic(self) -> float:
        """The term of squared losses."""

    def add(
        self,
        blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bound: bool,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> int:
        """Adds one plane to each named block; returns how many were new."""

    def solve(
        self,
        blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        max_idle: int = 0,
    ) -> None:
        """
        Maximises the dual over each block in turn; w follows. Planes idle for max_idle visits are dropped (0: never).
        """

    def state(self) -> dict:
        """All planes and their multipliers as arrays by name."""

    def restore(
        self,
        blocks: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        multipliers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bounds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        idle: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        gaps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Goes on from a state."""

    def trim(self, most: int) -> None:
        """Drops the oldest planes without weight of blocks with more than this."""

    def highest(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[float, float]:
        """
        The highest plane of each block at w: values; adds mass-weighted slopes; returns summed (value, offset).
        """

    def residual(
        self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> float:
        """The gap of the dual over the planes that are known."""

    def gaps(self) -> Any:
        """The gap of each block when it last got a plane."""

def chain_ascent(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
    edge_rows: mercer._core.linear.Rows | None,
    edge_pattern: mercer._core.linear.Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    planes: Planes,
    max_idle: int = 0,
) -> float:
    """
    One visit to each named sequence: its most violating labelling becomes a plane and its block is solved.
    """

def chain_subgradient(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
    edge_rows: mercer._core.linear.Rows | None,
    edge_pattern: mercer._core.linear.Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    mass: float,
    state: mercer._core.chain.OnlineState,
) -> tuple[float, float]:
    """
    One Pegasos step for each named sequence; returns (summed loss, summed offsets).
    """

def chain_difference(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
    edge_rows: mercer._core.linear.Rows | None,
    edge_pattern: mercer._core.linear.Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    z: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> tuple:
    """Features of y less those of z, as (indptr, indices, values)."""
