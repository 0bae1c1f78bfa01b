# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Graphlets and canonical forms of graphs."""

from collections.abc import Sequence
from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

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
    sample_seed: int | None = None,
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
    sample_seed: int | None = None,
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
