# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Feature rows, patterns of weights, part scores and their adjoint."""

from typing import Any, Annotated, overload

import numpy
from numpy.typing import NDArray

class Rows:
    """Checked feature rows: CSR (values None = all ones) or a dense matrix."""

    @overload
    def __init__(
        self,
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: object | None,
        n_columns: int,
        single: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        dense: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @overload
    def __init__(
        self,
        dense: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @property
    def single(self) -> bool: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...

class Pattern:
    """Which (feature, column) pairs have weights: all, or those listed."""

    @overload
    def __init__(self, n_features: int, width: int) -> None: ...
    @overload
    def __init__(
        self,
        starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: int,
    ) -> None: ...
    @overload
    def __init__(
        self,
        starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: int,
    ) -> None: ...
    @overload
    def __init__(
        self,
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: int,
    ) -> None: ...
    @overload
    def __init__(
        self,
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: int,
    ) -> None: ...
    @property
    def n_weights(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def width(self) -> int: ...

@overload
def scores(
    rows: Rows,
    row: int,
    count: int,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def scores(
    rows: Rows,
    row: int,
    count: int,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def backward(
    rows: Rows,
    row: int,
    count: int,
    pattern: Pattern,
    mu: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def backward(
    rows: Rows,
    row: int,
    count: int,
    pattern: Pattern,
    mu: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def normal_product(
    rows: Rows,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None:
    """scores = X v and out = X' (weights * scores), in one pass."""

def logistic_slopes(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weight: float,
    probabilities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    slopes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> float:
    """
    The summed logistic loss of two labels, p of label 1 and the slopes in the scores.
    """

def observed_pattern(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_features: int,
    n_columns: int,
    fill: float,
) -> tuple[Any, Any]:
    """
    The pairs that occur together: (starts, columns) or (None, None) for all.
    """
