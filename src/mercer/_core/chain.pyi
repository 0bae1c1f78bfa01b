# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Chains of labels: every verb, and online learning."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray

import mercer._core.linear

@overload
def marginals(
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
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
) -> int: ...
@overload
def marginals(
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
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)]
    | None = None,
) -> int: ...
@overload
def viterbi(
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
def viterbi(
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
def k_best(
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
def k_best(
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
def sample(
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
def sample(
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
def decode(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
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
def decode(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
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
def log_loss(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
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
def log_loss(
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
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
def score(
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
def score(
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
def add(
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
def add(
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
    rows: mercer._core.linear.Rows,
    pattern: mercer._core.linear.Pattern,
    edge_rows: mercer._core.linear.Rows | None,
    edge_pattern: mercer._core.linear.Pattern | None,
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
