# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Sparse codes of signals over a dictionary."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

class CodeDictionary:
    """Checked atoms and, where they were computed, their inner products."""

    def __init__(
        self,
        atoms: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
    ) -> None: ...

def greedy_codes(
    dictionary: CodeDictionary,
    signals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    correlations: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    tolerances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    barred: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    n_nonzero: int,
    order_recursive: bool,
    positive: bool,
    threads: int,
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]: ...
def l1_codes(
    dictionary: CodeDictionary,
    signals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    correlations: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    barred: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    to_residual: bool,
    positive: bool,
    max_steps: int,
    threads: int,
) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]: ...
