# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Support vector machines."""

from typing import Any, Annotated, overload

import numpy
from numpy.typing import NDArray

import mercer._core.linear

class KernelMachine:
    """
    A support vector machine over a kernel matrix that starts where it ended.
    """

    def __init__(
        self, K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None: ...
    def solve(
        self,
        labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        (intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).
        """

    def solve_box(
        self,
        members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        split: int,
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        max slope's - 1/2 s'Ks over low <= s <= high with the sums of start before and from the split-th member, to a violation of tol: (s, Ks, intercept, intercept of the second group, s'Ks, loss, gap, steps, converged).
        """

    def solve_tube(
        self,
        members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: float,
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        max target's - width |s| - 1/2 s'Ks over |s| <= upper with the sum 0; gives what solve_box does.
        """

    def scores(self) -> Any:
        """f of every instance."""

    def weights(self) -> Any:
        """beta: f(x) = sum_i beta_i k(x_i, x) + b."""

class LinearMachine:
    """A linear support vector machine that starts where it ended."""

    def __init__(self, rows: mercer._core.linear.Rows) -> None: ...
    def solve(
        self,
        labels: Annotated[NDArray[numpy.int8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
    ) -> tuple:
        """
        (intercept, |w|^2, sum of weighted losses, duality gap, steps, converged).
        """

    def scores(self) -> Any:
        """f of every instance."""

    def weights(self) -> Any:
        """w."""

class BoxBlocks:
    """The program of KernelMachine.solve_box with rows of K on demand."""

    def __init__(
        self,
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        split: int,
        tol: float,
        max_iter: int,
        room: int,
        threads: int = 1,
    ) -> None: ...
    def wanted(self) -> Any:
        """
        The places of the rows that are needed next, after all that can be done without.
        """

    def give(
        self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None:
        """The rows that were asked for."""

    def result(self) -> tuple:
        """What KernelMachine.solve_box gives."""

class TubeBlocks:
    """The program of KernelMachine.solve_tube with rows of K on demand."""

    def __init__(
        self,
        target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        width: float,
        upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tol: float,
        max_iter: int,
        room: int,
        threads: int = 1,
    ) -> None: ...
    def wanted(self) -> Any:
        """
        The places of the rows that are needed next, after all that can be done without.
        """

    def give(
        self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    ) -> None:
        """The rows that were asked for."""

    def result(self) -> tuple:
        """What KernelMachine.solve_box gives."""

class RelativeMarginDual:
    """The dual of a binary relative margin machine."""

    @overload
    def __init__(
        self,
        K: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        B: float,
    ) -> None: ...
    @overload
    def __init__(
        self,
        rows: mercer._core.linear.Rows,
        kernel: str,
        degree: int,
        gamma: float,
        coef0: float,
        y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        B: float,
        cache_rows: int,
        threads: int = 1,
    ) -> None: ...
    def start(
        self,
        s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> bool:
        """
        Goes on from s, with g = K s, if it is feasible and better; says whether it was.
        """

    def run(self, max_steps: int, tol: float) -> int:
        """
        Makes up to max_steps steps, fewer if the violation falls to tol; returns how many.
        """

    def figures(self) -> tuple[float, float, float, float, float]:
        """
        (primal, dual, violation, scale, intercept): the primal point is f shrunk by scale into [-B, B].
        """

    def coefficients(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]
    ) -> None:
        """The s of f = K s + b, before scaling."""
