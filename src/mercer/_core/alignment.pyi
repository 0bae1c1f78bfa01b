# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Pairwise alignment."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

class AlignmentBatch:
    def __init__(
        self,
        s: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        s_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        t: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        t_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        substitution: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        gap_open: float,
        gap_extend: float,
        local: bool,
        anchor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        bonus: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...

def k_best(batch: AlignmentBatch, k: int, threads: int = 1) -> tuple: ...
def scores(batch: AlignmentBatch, threads: int = 1) -> Any: ...
def log_partition(batch: AlignmentBatch, threads: int = 1) -> Any: ...
def expect(
    batch: AlignmentBatch,
    counts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    matches: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
    threads: int = 1,
) -> Any: ...
