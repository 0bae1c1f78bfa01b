# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Online learning over hashed features."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

import mercer._core.examples

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
    def learn(self, examples: mercer._core.examples.Examples, begin: int = 0, end: int | None = None) -> dict: ...
    def scores(
        self, examples: mercer._core.examples.Examples, begin: int = 0, end: int | None = None, threads: int = 1
    ) -> Any: ...
    def top_k(self, examples: mercer._core.examples.Examples, k: int, threads: int = 1) -> tuple: ...
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
