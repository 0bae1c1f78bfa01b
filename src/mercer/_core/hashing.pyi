# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Hashes of features, records and streams."""

from collections.abc import Sequence
from typing import Any, Annotated, overload

import numpy
from numpy.typing import NDArray

def hash_bytes(text: bytes, seed: int = 0) -> int:
    """A 64-bit hash, the same on all platforms."""

def feature_hash(name: bytes, seed: int = 0) -> int: ...
def combine_hashes(
    first: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)], second: int
) -> Any: ...
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
