# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Feature names to columns."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

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
