# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Dual ascent for single labels."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

import mercer._core.linear

class MulticlassDual:
    """Dual ascent for the multiclass (squared) hinge with costs."""

    def __init__(
        self,
        rows: mercer._core.linear.Rows,
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        squared: bool,
        seed: int,
        shards: int,
        block: int,
        strips: int = 1,
    ) -> None: ...
    def epoch(self, threads: int) -> float:
        """Visits every active example once; the sum of their gaps on the way."""

    def check(self, tol: float, threads: int) -> tuple[float, float]:
        """(primal, dual) over all examples; renews the active ones."""

    def weights(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]) -> None:
        """Copies W, label by label within a feature, to out."""

    def dual_variables(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")]
    ) -> None:
        """Copies α of the wrong labels to out."""

    def state(self) -> dict:
        """
        All that the next epoch depends on, as arrays by name; to be taken after a check.
        """

    def restore(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        average: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        old_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        reach: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Goes on from a state."""

    @property
    def strips(self) -> int:
        """Number of strips in use; 1: the rows are not cut."""

    @property
    def active(self) -> int: ...
