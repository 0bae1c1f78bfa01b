# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Documents and strings to hashed rows."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

class StringSettings:
    """Which substrings are features of a document."""

    def __init__(
        self, kernel: str, length: int, mismatches: int, gap: int, shift: int, binary: bool, seed: int, alphabet: list
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
def pack_documents(documents: object) -> tuple: ...
def split_lines(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")]) -> Any: ...
def pack_ucs4(
    rows: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
) -> tuple: ...
def pack_bytes(
    rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
) -> tuple: ...
