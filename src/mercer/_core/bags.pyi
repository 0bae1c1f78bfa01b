# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Labels of instances from shares of bags."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

def assign_labels(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    bag_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    current: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    ratio: float,
    loss: str,
    proportion_loss: str,
    threads: int,
) -> tuple:
    """
    (labels, sums of instance losses of each bag and of instances without one, losses of the shares).
    """

def label_bags(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    least: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    most: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu")],
    threads: int = 1,
) -> None: ...

class LabelledPrograms:
    """Programs over one kernel matrix, for mixtures of labellings."""

    def __init__(
        self, K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None: ...
    def ascend(
        self,
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        tol: float,
        max_sweeps: int,
    ) -> float: ...
    def raise_labellings(
        self,
        scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu")],
        weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        least: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        most: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        known: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        max_steps: int,
        threads: int = 1,
    ) -> None: ...
    def block(
        self,
        labelings: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...

def mix_rows(
    payoff: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    mix: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> None: ...
def bound_program(
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    tol: float = 1e-06,
) -> float:
    """What no value of a program is above, for tests."""

def ascend_rows(
    U: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    tol: float,
    max_sweeps: int,
) -> float: ...
