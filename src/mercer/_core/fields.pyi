# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Sweeps of random fields."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

def half_sweep(
    x: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    beta: float,
    key: int,
    first_row: int,
    fields: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")] | None,
    probabilities: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")] | None,
    states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")] | None,
    threads: int,
) -> None:
    """
    Fields beta · x w + bias of rows of bits, their probabilities and draws, as far as there are arrays for them.
    """

def sample_fields(
    fields: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    scale: float,
    key: int,
    first_row: int,
    probabilities: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")] | None,
    states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")] | None,
    threads: int,
) -> None:
    """Draws of units with the log odds scale · fields."""

def outer(
    x: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    dense: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    scale: float,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None:
    """out += scale · xᵀ dense for rows x of bits."""

def softplus_sums(
    a: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    b: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)] | None,
    beta: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None:
    """Row sums of log(1 + e^f) for f = beta · a, or a + beta · (b − a)."""

def transpose(
    matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...
def spin_sweep(
    states: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu")],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    neighbours: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    bias: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    lo: float,
    gain: float,
    beta: float,
    backward: bool,
    key: int,
    first_row: int,
    threads: int,
) -> None:
    """One Gibbs sweep of chains of units with two states."""

def label_sweep(
    states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu")],
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    beta: float,
    backward: bool,
    key: int,
    threads: int,
) -> None:
    """One Gibbs sweep of chains of labels on a graph."""

def label_scores(
    states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)],
    node_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edge_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def label_counts(
    states: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    node_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edge_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
) -> None: ...
def topic_sweeps(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    topics: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    n_words: int,
    alpha: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    beta: float,
    key: int,
    sweeps: int,
) -> None: ...
def part_sweeps(
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    words: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    parts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    n_words: int,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    beta: float,
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    neighbours: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    prior_variance: float,
    variance: float,
    use_words: bool,
    use_neighbours: bool,
    use_positions: bool,
    predictive: bool,
    key: int,
    sweeps: int,
) -> None: ...
