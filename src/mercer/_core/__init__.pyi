# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Compiled loops of mercer: plain arrays in, plain arrays out."""

from collections.abc import Sequence
from typing import Any, Annotated, overload

import numpy
from numpy.typing import NDArray

from mercer._core import fields as fields

def instruction_set() -> str:
    """The instruction set in use."""

def instruction_sets() -> list[str]:
    """The instruction sets that this machine can run."""

def use_instruction_set(name: str) -> None:
    """Chooses an instruction set (the best one is in use by default)."""

def hash_bytes(text: bytes, seed: int = 0) -> int:
    """A 64-bit hash, the same on all platforms."""

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
def dot(
    x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def dot(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def dot(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def dot(
    x: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def dot(
    x: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def dot(
    x: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> float: ...
@overload
def axpy(
    alpha: float,
    x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def axpy(
    alpha: float,
    x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def axpy(
    alpha: float,
    x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def axpy(
    alpha: float,
    x: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def axpy(
    alpha: float,
    x: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
def to_bfloat16(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
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
@overload
def chain_marginals(
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out_nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
    out_transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
    out_start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    out_end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    out_edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None,
    log_partition: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    threads: int = 1,
) -> int: ...
@overload
def chain_marginals(
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out_nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")] | None,
    out_transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
    out_start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    out_end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    out_edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu")] | None,
    log_partition: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    threads: int = 1,
) -> int: ...
@overload
def chain_viterbi(
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_viterbi(
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_k_best(
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_k_best(
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_sample(
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_sample(
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_decode(
    rows: Rows,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_decode(
    rows: Rows,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_log_loss(
    rows: Rows,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    loss: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    out_nodes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    out_shared: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_log_loss(
    rows: Rows,
    pattern: Pattern,
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    loss: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    out_nodes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    out_shared: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def chain_score(
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def chain_score(
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)]
    | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
@overload
def chain_add(
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None,
) -> None: ...
@overload
def chain_add(
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    nodes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu")] | None,
) -> None: ...
def hidden_marginals(
    table: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    counts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    out_transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    out_start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    log_partition: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def label_lists(
    classes: list,
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> list:
    """The labels of each sequence as a list of objects; None for -1."""

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

class OnlineState:
    """What an online learner carries from call to call."""

    def __init__(self) -> None: ...
    @property
    def scale(self) -> float: ...
    @scale.setter
    def scale(self, arg: float, /) -> None: ...
    @property
    def step(self) -> float: ...
    @step.setter
    def step(self, arg: float, /) -> None: ...
    @property
    def l1_total(self) -> float: ...
    @l1_total.setter
    def l1_total(self, arg: float, /) -> None: ...

def online(
    rows: Rows,
    pattern: Pattern,
    edge_rows: Rows | None,
    edge_pattern: Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)] | None,
    rule: int,
    rate: float,
    decay: float,
    l2: float,
    l1: float,
    aggressiveness: float,
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    extra: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    state: OnlineState,
) -> tuple[float, int]:
    """
    Runs an online rule over the sequences in the given order; returns (summed loss, wrong labels).
    """

class Vocabulary:
    """Feature names to columns, by a table or by hashing."""

    def __init__(self, n_bits: int = 0) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_bits(self) -> int: ...
    def name(self, column: int) -> str: ...
    def find(self, name: str) -> int: ...
    def encode_tokens(self, sequences: object, grow: bool) -> tuple: ...
    def encode_columns(
        self, sentences: object, patterns: Sequence[Sequence[str | tuple[int, int]]], grow: bool
    ) -> tuple: ...
    def encode_utf8(
        self,
        bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        string_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        token_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        grow: bool,
    ) -> tuple: ...
    def sort(
        self,
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None,
    ) -> None: ...
    def state(self) -> tuple:
        """The names as (bytes, offsets)."""

    def add_names(
        self,
        bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...

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

def align_k_best(batch: AlignmentBatch, k: int, threads: int = 1) -> tuple: ...
def align_scores(batch: AlignmentBatch, threads: int = 1) -> Any: ...
def align_log_partition(batch: AlignmentBatch, threads: int = 1) -> Any: ...
def align_expect(
    batch: AlignmentBatch,
    counts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    matches: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
    threads: int = 1,
) -> Any: ...

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
    rows: Rows,
    pattern: Pattern,
    edge_rows: Rows | None,
    edge_pattern: Pattern | None,
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
    rows: Rows,
    pattern: Pattern,
    edge_rows: Rows | None,
    edge_pattern: Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    mass: float,
    state: OnlineState,
) -> tuple[float, float]:
    """
    One Pegasos step for each named sequence; returns (summed loss, summed offsets).
    """

def chain_difference(
    rows: Rows,
    pattern: Pattern,
    edge_rows: Rows | None,
    edge_pattern: Pattern | None,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    z: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shared_mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> tuple:
    """Features of y less those of z, as (indptr, indices, values)."""

class MulticlassDual:
    """Dual ascent for the multiclass (squared) hinge with costs."""

    def __init__(
        self,
        rows: Rows,
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        squared: bool,
        seed: int,
        shards: int,
        block: int,
        strips: int = 1,
    ) -> None: ...
    def epoch(self, threads: int) -> float:
        """Visits every active example once; the sum of their gaps on the way."""

    def check(self, tol: float, threads: int) -> tuple[float, float]:
        """(primal, dual) over all examples; renews the active ones."""

    def weights(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]) -> None:
        """Copies W, label by label within a feature, to out."""

    def dual_variables(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")]
    ) -> None:
        """Copies α of the wrong labels to out."""

    def state(self) -> dict:
        """
        All that the next epoch depends on, as arrays by name; to be taken after a check.
        """

    def restore(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        average: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        reach: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Goes on from a state."""

    @property
    def strips(self) -> int:
        """Number of strips in use; 1: the rows are not cut."""

    @property
    def active(self) -> int: ...

class ChartGrammar:
    """A grammar of binary, unary and lexical rules, ready for charts."""

    def __init__(
        self,
        n_terminals: int,
        n_labels: int,
        n_weights: int,
        start: int,
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        binary: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        unary: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        lexical: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def best(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple: ...
    def k_best(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        k: int,
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple: ...
    def log_partition(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
        count_lexical: bool,
        counts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
        brackets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
        threads: int = 1,
    ) -> Any: ...
    def f1_best(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        truth: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        n_true: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
        count_lexical: bool,
        threads: int = 1,
    ) -> tuple: ...

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

class RelativeMarginDual:
    """The dual of a binary relative margin machine."""

    @overload
    def __init__(
        self,
        K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        B: float,
    ) -> None: ...
    @overload
    def __init__(
        self,
        rows: Rows,
        kernel: str,
        degree: int,
        gamma: float,
        coef0: float,
        y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        B: float,
        cache_rows: int,
        threads: int = 1,
    ) -> None: ...
    def start(
        self,
        s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> bool:
        """
        Goes on from s, with g = K s, if it is feasible and better; says whether it was.
        """

    def run(self, max_steps: int, tol: float) -> int:
        """
        Makes up to max_steps steps, fewer if the violation falls to tol; returns how many.
        """

    def figures(self) -> tuple[float, float, float, float, float]:
        """
        (primal, dual, violation, scale, intercept): the primal point is f shrunk by scale into [-B, B].
        """

    def coefficients(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
    ) -> None:
        """The s of f = K s + b, before scaling."""

class Examples:
    def __init__(
        self,
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        hashes: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        label_names: list = [],
        documents: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def documents(self) -> bool: ...
    @property
    def indptr(self) -> Any: ...
    @property
    def hashes(self) -> Any: ...
    @property
    def values(self) -> Any: ...
    @property
    def weights(self) -> Any: ...
    @property
    def targets(self) -> Any: ...
    @property
    def labels(self) -> Any: ...
    @property
    def label_names(self) -> list: ...

def graphlet_rows(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sizes: Sequence[int],
    method: str,
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    beta: Sequence[Sequence[float]],
    normalize: bool,
    seed: int,
    n_bits: int,
    signed: bool,
    threads: int,
) -> Any: ...
def graphlet_keys(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sizes: Sequence[int],
    method: str,
    connected: bool,
    n_samples: int,
    normalize: bool,
    seed: int,
    threads: int,
) -> Any: ...
def graphlet_forms(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sizes: Sequence[int],
    method: str,
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    beta: Sequence[Sequence[float]],
    seed: int,
    n_bits: int,
) -> list: ...
def label_key(label: str) -> int: ...
def canonical_graph(
    adjacency: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> bytes: ...
def canonical_order(
    adjacency: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> Any: ...
def graphlet_transitions(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    k: int,
    beta: Sequence[float],
    connected: bool,
) -> Any: ...
def graphlet_walk(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    k: int,
    beta: Sequence[float],
    connected: bool,
    n_samples: int,
    burn_in: int,
    thin: int,
    seed: int,
) -> Any: ...

class HashedModel:
    def __init__(
        self,
        *,
        task: str,
        loss: str,
        n_bits: int = 22,
        label_hashing: str = "joint",
        optimizer: str = "adagrad",
        rate: float = 0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        alpha: float = 0.5,
        quantile: float = 0.5,
        epsilon: float = 1.0,
        intercept: bool = True,
        scaled: bool = False,
        damped: bool = True,
    ) -> None: ...
    def learn(self, examples: Examples, begin: int = 0, end: int | None = None) -> dict: ...
    def scores(self, examples: Examples, begin: int = 0, end: int | None = None, threads: int = 1) -> Any: ...
    def top_k(self, examples: Examples, k: int, threads: int = 1) -> tuple: ...
    def labels(self) -> list: ...
    def set_labels(self, labels: list) -> None: ...
    def settings(self) -> dict: ...
    def state(self) -> dict: ...
    def set_state(
        self,
        table: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        intercepts: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        counters: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def table_bytes(self) -> int: ...

@overload
def row_examples(
    indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    n_bits: int,
    seed: int,
) -> Examples: ...
@overload
def row_examples(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    n_bits: int,
    seed: int,
) -> Examples: ...
@overload
def row_examples(
    indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    n_bits: int,
    seed: int,
) -> Examples: ...
@overload
def row_examples(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    n_bits: int,
    seed: int,
) -> Examples: ...
@overload
def buffer_examples(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
) -> Examples: ...
@overload
def buffer_examples(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
) -> Examples: ...
def document_examples(
    documents: Sequence,
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
) -> Examples: ...
def set_outputs(
    examples: Examples,
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None = None,
    label_names: list = [],
    targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
    weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
) -> None: ...
def plain_blocks(plain: bool) -> None: ...

class ExampleReader:
    def __init__(
        self,
        format: str,
        *,
        numeric: bool = False,
        label_required: bool = True,
        skip: bool = False,
        limit: int = -1,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        seed: int = 0,
        label_place: str = "first",
        separator: str = "\t",
        header: bool = True,
        zero_based: bool = False,
        n_bits: int = 0,
        label: object | None = None,
        texts: list | None = None,
        columns: list | None = None,
        rest: bool = False,
        categorical: list = [],
    ) -> None: ...
    def feed(self, chunk: object, last: bool) -> Examples: ...
    @property
    def error(self) -> Any: ...
    @property
    def skipped(self) -> list: ...
    @property
    def n_skipped(self) -> int: ...
    @property
    def n_examples(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_lines(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def fields(self) -> Any: ...

def hash_records(
    rows: object,
    n_bits: int,
    seed: int,
    signed: bool,
    categories: bool,
    crosses: Sequence[Sequence[str]],
    pairs: bool,
    single: bool,
) -> Any:
    """Records (dicts, lists of pairs) to (indptr, indices, values)."""

def name_records(
    rows: object, first_row: int, seed: int, categories: bool, crosses: Sequence[Sequence[str]], pairs: bool
) -> tuple:
    """Names and hashes of the features of records."""

class RecordColumns:
    """Fields of records as columns."""

    def __init__(self, rows: int, seed: int, categories: bool) -> None: ...
    @overload
    def add_text(
        self,
        name: str,
        bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    @overload
    def add_text(
        self,
        name: str,
        bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    @overload
    def add_fixed(
        self,
        name: str,
        cells: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @overload
    def add_fixed(
        self,
        name: str,
        cells: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def add_codes(
        self,
        name: str,
        codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        categories: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @overload
    def add_integers(
        self,
        name: str,
        numbers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    @overload
    def add_integers(
        self,
        name: str,
        numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    def add_numbers(
        self,
        name: str,
        numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    def add_lists(
        self,
        name: str,
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        categories: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def add_objects(self, name: str, values: object, single: bool) -> None: ...
    def transform(self, n_bits: int, signed: bool, crosses: Sequence[Sequence[int]], single: bool, threads: int) -> Any:
        """(indptr, indices, values)."""

@overload
def hash_utf8(
    bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
) -> Any:
    """Hashes of strings that lie in one stretch of bytes."""

@overload
def hash_utf8(
    bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
) -> Any: ...
@overload
def hash_fixed(
    cells: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    seed: int,
) -> Any:
    """Hashes of strings of fixed length."""

@overload
def hash_fixed(
    cells: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)], seed: int
) -> Any: ...
def hash_numbers(
    numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)], seed: int
) -> Any:
    """Hashes of 64-bit numbers."""

def hash_keys(keys: object, seed: int) -> Any:
    """Hashes of keys: str, bytes, integers."""

def hash_categories(values: object, seed: int, field: str) -> Any:
    """Hashes of categories: text, or numbers as text."""

def number_text(number: object) -> str:
    """A number as the name of a category."""

def weigh(
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    mass_whole: int,
    mass_fraction: int,
) -> tuple:
    """
    The sum of all weights in fixed point, and whether a weight has a fraction.
    """

def add_weights(
    whole: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    fraction: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")] | None,
    hashes: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    signed: bool,
) -> None:
    """Add weights to the buckets of hashes."""

def round_sums(
    whole: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    fraction: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    single: bool,
) -> Any:
    """Sums in fixed point as floating-point numbers."""

def update_sketch(
    table: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seed: int,
    hashes: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    conservative: bool,
) -> None:
    """Count keys in a count-min sketch."""

def query_sketch(
    table: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    seed: int,
    hashes: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> Any:
    """Estimated counts of keys."""

class SegmentParts:
    """Part scores of segmentations, checked."""

    def __init__(
        self,
        lengths: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        transitions: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        frames: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        means: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        starts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        edges: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        pair_means: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        spans: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        variances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        pair_variances: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        mark_length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        mark_label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        mark_score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...
    @property
    def n_sums(self) -> int: ...
    def marginals(
        self,
        log_partition: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
        frames: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        means: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        starts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None = None,
        edges: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None = None,
        pair_means: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")]
        | None = None,
        spans: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")] | None = None,
        entropy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")] | None = None,
        threads: int = 1,
    ) -> None: ...
    def best(
        self,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def k_best(
        self,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        score: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def sample(
        self,
        seed: int,
        length: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        label: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def spans(
        self,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...
    def score(
        self,
        lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        firsts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int = 1,
    ) -> None: ...

UNICODE_VERSION: str = "14.0.0"

def text_rows(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: object,
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
    n_bits: int,
    with_signs: bool,
    copies: int,
    single: bool,
    threads: int,
) -> tuple: ...
def text_names(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: object,
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
) -> tuple: ...
def string_rows(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: object,
    kernel: str,
    length: int,
    mismatches: int,
    gap: int,
    shift: int,
    binary: bool,
    seed: int,
    alphabet: list,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_bits: int,
    with_signs: bool,
    single: bool,
    threads: int,
) -> tuple: ...
def string_names(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: object,
    kernel: str,
    length: int,
    mismatches: int,
    gap: int,
    shift: int,
    binary: bool,
    seed: int,
    alphabet: list,
) -> tuple: ...
def string_characters(
    data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: object,
    binary: bool,
) -> list: ...
def feature_hash(name: bytes, seed: int = 0) -> int: ...
def combine_hashes(
    first: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)], second: int
) -> Any: ...
def pack_documents(documents: object) -> tuple: ...
def split_lines(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")]) -> Any: ...
def pack_ucs4(
    rows: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
) -> tuple: ...
def pack_bytes(
    rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
) -> tuple: ...
def key_columns(
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> tuple:
    """Columns for keys, in ascending order of keys, and how many there are."""

@overload
def keyed_products(
    left_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    right_columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    right_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None,
    dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def keyed_products(
    left_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    right_columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    right_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None,
    dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def keyed_dense(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...
@overload
def keyed_dense(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    dense: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...

class PairRule:
    def __init__(
        self, term: str, finish: str = "none", gamma: float = 1.0, coef: float = 0.0, degree: int = 1
    ) -> None: ...
    def set_subsets(self, degree: int, gamma: float) -> None: ...
    def set_groups(
        self,
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        degree: int,
    ) -> None: ...
    def set_splines(
        self,
        pieces: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        width: float,
    ) -> None: ...

@overload
def pairwise(
    A: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    B: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    rule: PairRule,
    a_norms: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    b_norms: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu")],
    row0: int = 0,
    mirror: bool = False,
    threads: int = 1,
) -> None: ...
@overload
def pairwise(
    A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    B: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    rule: PairRule,
    a_norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    b_norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
    row0: int = 0,
    mirror: bool = False,
    threads: int = 1,
) -> None:
    """A function of all pairs of rows, into out."""

@overload
def sparse_pairwise(
    a_indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a_data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    term: str,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu")],
    threads: int = 1,
) -> None: ...
@overload
def sparse_pairwise(
    a_indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a_data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    b_data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_columns: int,
    term: str,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
    threads: int = 1,
) -> None:
    """Sums over coordinates for all pairs of sparse rows, into out."""

@overload
def transpose_into(
    matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu")],
) -> None: ...
@overload
def transpose_into(
    matrix: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu")],
) -> None:
    """Copies the transposed matrix."""

def kmer_rows(
    codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    hashes: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    alphabet: int,
    mode: str,
    shortest: int,
    longest: int,
    extra: int,
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    letters: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    presence: bool,
    threads: int,
) -> tuple: ...
def all_substrings_gram(
    codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    other_codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    other_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sigma: int,
    cumulative: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    start: int,
    stop: int,
    K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def weighted_degree_gram(
    codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    other_codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    other_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sigma: int,
    shift: int,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    start: int,
    stop: int,
    K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def subsequence_gram(
    codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    other_codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    other_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sigma: int,
    shortest: int,
    length: int,
    decay: float,
    start: int,
    stop: int,
    K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def edit_distance_gram(
    codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    other_codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    other_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    sigma: int,
    indel: float,
    substitution: float,
    start: int,
    stop: int,
    K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...

class KeyTable:
    def __init__(
        self,
        keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def scores(
        self,
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Any: ...

class SubstringModel:
    def __init__(
        self,
        codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        sigma: int,
        coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        cumulative: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def scores(
        self,
        codes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> Any: ...

def token_hash(name: bytes, seed: int) -> int: ...

class Machine:
    """A weighted transducer whose arcs all read or write a symbol."""

    def __init__(
        self,
        n_states: int,
        n_symbols: int,
        sources: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        inputs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        outputs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        targets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        initial: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        final: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tropical: bool,
    ) -> None: ...

def transducer_weights(
    machine: Machine,
    left_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_symbols: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_symbols: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def transducer_outputs(
    machine: Machine,
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    symbols: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    limit: int,
) -> Any: ...

class Forest:
    """Trees, their nodes sorted into groups of one production or label."""

    def __init__(self, objects: list, leaves: bool, productions: bool) -> None: ...
    def __len__(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...
    def cut(self, start: int, stop: int) -> Forest: ...

def subset_tree_gram(
    left: Forest,
    right: Forest | None,
    decay: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def subset_tree_diagonal(forest: Forest, decay: float, threads: int = 1) -> Any: ...
def partial_tree_gram(
    left: Forest,
    right: Forest | None,
    decay: float,
    decay_depth: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...
def partial_tree_diagonal(forest: Forest, decay: float, decay_depth: float, threads: int = 1) -> Any: ...
def subtree_rows(objects: list, leaves: bool, decay: float) -> tuple: ...
def shortest_path_rows(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    threads: int,
) -> Any: ...
def weisfeiler_lehman_rows(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    edge_keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    rounds: int,
    base: str,
    threads: int,
) -> Any: ...

class WalkGraphs:
    def __init__(
        self,
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        edge_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        stop: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        radius: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        n_edge_codes: int,
    ) -> None: ...
    def __len__(self) -> int: ...

def walk_gram(
    left: WalkGraphs,
    right: WalkGraphs | None,
    solver: str,
    max_length: int,
    tol: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def spectral_gram(
    left_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    left_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    right_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    symmetric: bool,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def edit_pairs(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    limit: int,
    threads: int,
) -> Any: ...
def permuted_products(
    K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    L: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    permutations: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...

class CliqueTree:
    def __init__(
        self, graph: FlatGraph, heuristic: str, max_size: float, stop_early: bool, effort: float = 0.25
    ) -> None: ...
    @property
    def fits(self) -> bool: ...
    @property
    def complete(self) -> bool: ...
    @property
    def size(self) -> float: ...
    @property
    def bytes(self) -> float: ...
    @property
    def operations(self) -> float: ...
    @property
    def most_variables(self) -> int: ...
    def cliques(self) -> tuple: ...
    def elimination(self) -> tuple: ...
    def sum(self, graph: FlatGraph) -> tuple: ...
    def max(self, graph: FlatGraph, k: int) -> tuple: ...
    def factor_beliefs(
        self, beliefs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    ) -> Any: ...
    def sample(self, graph: FlatGraph, count: int, seed: int) -> tuple: ...

def without_impossible_states(graph: FlatGraph) -> Any: ...

class FlatGraph:
    def __init__(
        self,
        cards: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        constant: float,
        scope_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        scopes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        table_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tables: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    def with_potentials(
        self,
        unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tables: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        constant: float,
    ) -> FlatGraph: ...
    @property
    def is_forest(self) -> bool: ...

def tree_messages(graph: FlatGraph, maximise: bool) -> Any: ...
def loopy_messages(
    graph: FlatGraph,
    maximise: bool,
    schedule: str,
    max_iter: int,
    tol: float,
    damping: float,
    seed: int,
    rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
) -> Any: ...
def joint_beliefs(
    graph: FlatGraph,
    messages: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
) -> Any: ...
def forest_weights(graph: FlatGraph, least: int, seed: int) -> Any: ...
def mean_field(
    graph: FlatGraph,
    q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
    tol: float,
) -> Any: ...
def chain_mean_field(
    graph: FlatGraph,
    q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    variables: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
    tol: float,
) -> Any: ...
def icm(
    graph: FlatGraph,
    start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    max_iter: int,
) -> tuple: ...
def can_colour(graph: FlatGraph) -> bool: ...

class Sampler:
    """Chains of samples of a factor graph."""

    def __init__(
        self,
        graph: FlatGraph,
        start: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        seed: int,
        kind: str,
        blocks: Sequence[Sequence[int]],
    ) -> None: ...
    def run(
        self,
        betas: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keep: int,
        samples: Annotated[NDArray[numpy.int32], dict(shape=(None, None, None), order="C", device="cpu")] | None,
        trace: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")] | None,
        collect: bool,
        threads: int = 1,
    ) -> None: ...
    def states(self) -> Any: ...
    def totals(self) -> tuple: ...
    def mobility(self) -> tuple: ...
    def best(self) -> tuple: ...
    def acceptance(self) -> float: ...

def min_cut(
    source: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    sink: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    forward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    backward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    side: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")],
) -> float:
    """
    Fills the side of each node (0: the source's) in a minimum cut; returns its capacity.
    """

def dual_ascent(graph: FlatGraph, max_iter: int, tol: float) -> tuple:
    """
    (best states, bounds, values, converged) of dual ascent on a factor graph.
    """

def assign_labels(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    bag_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    current: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ratio: float,
    loss: str,
    proportion_loss: str,
    threads: int,
) -> tuple:
    """
    (labels, sums of instance losses of each bag and of instances without one, losses of the shares).
    """

class KernelMachine:
    """
    A support vector machine over a kernel matrix that starts where it ended.
    """

    def __init__(
        self, K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None: ...
    def solve(
        self,
        labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        (intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).
        """

    def solve_box(
        self,
        members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        split: int,
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        max slope's - 1/2 s'Ks over low <= s <= high with the sums of start before and from the split-th member, to a violation of tol: (s, Ks, intercept, intercept of the second group, s'Ks, loss, gap, steps, converged).
        """

    def solve_tube(
        self,
        members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: float,
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        max target's - width |s| - 1/2 s'Ks over |s| <= upper with the sum 0; gives what solve_box does.
        """

    def scores(self) -> Any:
        """f of every instance."""

    def weights(self) -> Any:
        """beta: f(x) = sum_i beta_i k(x_i, x) + b."""

class LinearMachine:
    """A linear support vector machine that starts where it ended."""

    def __init__(self, rows: Rows) -> None: ...
    def solve(
        self,
        labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        (intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).
        """

    def scores(self) -> Any:
        """f of every instance."""

    def weights(self) -> Any:
        """w."""

def label_bags(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    least: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    most: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...

class LabelledPrograms:
    """Programs over one kernel matrix, for mixtures of labellings."""

    def __init__(
        self, K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None: ...
    def ascend(
        self,
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        tol: float,
        max_sweeps: int,
    ) -> float: ...
    def raise_labellings(
        self,
        scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu")],
        weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        least: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        most: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        max_steps: int,
        threads: int = 1,
    ) -> None: ...
    def block(
        self,
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...

def mix_rows(
    payoff: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    mix: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
def bound_program(
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    tol: float = 1e-06,
) -> float:
    """What no value of a program is above, for tests."""

def ascend_rows(
    U: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    tol: float,
    max_sweeps: int,
) -> float: ...
def circulant_length(n: int) -> bool:
    """Whether vectors of this length have a compiled convolution."""

class Circulant32:
    def __init__(
        self,
        r: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        signs: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    def project(
        self,
        X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def codes(
        self,
        X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        n_bits: int,
        out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...

class Circulant64:
    def __init__(
        self,
        r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        signs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ) -> None: ...
    def project(
        self,
        X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def codes(
        self,
        X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        n_bits: int,
        out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...

def hamming_search(
    blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    n: int,
    queries: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    k: int,
    radius: int,
    allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    threads: int,
) -> tuple:
    """
    (offsets, distances, positions) of the k nearest (k = 0: of all) within a radius.
    """

class MultiIndex:
    def search(
        self,
        blocks: Annotated[
            NDArray[numpy.uint64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        queries: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        k: int,
        radius: int,
        allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
        threads: int,
    ) -> tuple: ...

def multi_index(
    blocks: Annotated[NDArray[numpy.uint64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    n: int,
    n_bits: int,
    m: int,
    threads: int,
) -> MultiIndex: ...
@overload
def pack_signs(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...
@overload
def pack_signs(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...
@overload
def waves(
    angles: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    phases: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    paired: int,
    amplitude: float,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def waves(
    angles: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    phases: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    paired: int,
    amplitude: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def structured_waves(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    signs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    phases: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    paired: int,
    amplitude: float,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def structured_waves(
    x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    signs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    scales: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    phases: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    paired: int,
    amplitude: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def count_sketch(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    signs: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def count_sketch(
    x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    signs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
