# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Random features, circulant and hashed projections, codes."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray

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

class HashPlan:
    """The hashed places of features, by buckets."""

    def __init__(self, n_features: int, seed: int, n_hashes: int, n_buckets: int) -> None: ...

def hash_plan_serves(n_features: int, n_hashes: int, n_buckets: int) -> bool:
    """Whether a plan is small enough, and sums long enough."""

@overload
def planned_hash_rows(
    plan: HashPlan,
    x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def planned_hash_rows(
    plan: HashPlan,
    x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def signed_hash_rows(
    x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    seed: int,
    n_hashes: int,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def signed_hash_rows(
    x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    seed: int,
    n_hashes: int,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def signed_hash_sparse(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
    n_hashes: int,
    out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
@overload
def signed_hash_sparse(
    indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    seed: int,
    n_hashes: int,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
