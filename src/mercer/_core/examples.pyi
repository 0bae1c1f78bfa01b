# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Blocks of hashed examples and readers of files."""

from collections.abc import Sequence
from typing import Any, Annotated, overload

import numpy
from numpy.typing import NDArray

import mercer._core.text

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
    strings: mercer._core.text.StringSettings | None = None,
    copies: int = 1,
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
    strings: mercer._core.text.StringSettings | None = None,
    copies: int = 1,
) -> Examples: ...
def document_examples(
    documents: Sequence,
    order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    analyzer: str,
    min_n: int,
    max_n: int,
    lowercase: bool,
    seed: int,
    strings: mercer._core.text.StringSettings | None = None,
    copies: int = 1,
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
        ignored: list = [],
        numbers: list = [],
        dates: list = [],
        known_columns: int = -1,
        gather: bool = False,
        known: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        keep_lines: bool = False,
        width: int = 0,
        strings: mercer._core.text.StringSettings | None = None,
        copies: int = 1,
    ) -> None: ...
    def take_label_sets(self) -> None:
        """Labels of svmlight lines may be several."""

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
    def n_unseen_columns(self) -> int: ...
    @property
    def n_unseen_categories(self) -> int: ...
    @property
    def unseen_categories(self) -> list: ...
    @property
    def categories(self) -> Any: ...
    @property
    def gaps(self) -> list: ...
    @property
    def done(self) -> bool: ...
    @property
    def fields(self) -> Any: ...
