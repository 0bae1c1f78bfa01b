# Made from the compiled module by "make stubs" (nanobind 3.1.0); not to be edited.
"""Point clouds: neighbours, alignment, matching."""

from typing import Any, Annotated

import numpy
from numpy.typing import NDArray

class CloudTree:
    """A k-d tree of points."""

    def __init__(
        self,
        points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @property
    def dim(self) -> int: ...
    @property
    def size(self) -> int: ...
    def nearest(
        self,
        queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        limit: float,
        threads: int,
    ) -> tuple:
        """
        (squared distances, positions) of the nearest points; inf and -1 where none is within the squared limit.
        """

    def k_nearest(
        self,
        queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        k: int,
        threads: int,
    ) -> tuple:
        """(squared distances, positions) of the k nearest points, nearest first."""

    def count(
        self,
        queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        radius: float,
        threads: int,
    ) -> Any:
        """How many points lie within the radius of each query."""

    def normals(
        self,
        k: int,
        queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None,
        threads: int,
    ) -> tuple:
        """
        (normals, shares of the spread along them) at the queries, or at the points of the tree, by the k nearest.
        """

    def descriptors(
        self,
        normals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        radius: float,
        threads: int,
    ) -> Any:
        """Fast point feature histograms of the points of the tree."""

    def fit(
        self,
        points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        poses: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu", writable=False)
        ],
        radius: float,
        threads: int,
    ) -> tuple:
        """
        (scores, counts within the radius) of points moved by each of the poses.
        """

def icp(
    target: CloudTree,
    target_normals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    | None,
    source: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    source_normals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    | None,
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)] | None,
    start: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    kind: int,
    max_distance: float,
    keep: float,
    epsilon: float,
    max_iter: int,
    angle: float,
    shift: float,
    threads: int,
) -> tuple:
    """
    (pose, iterations, converged, mean squared distance, pairs, objective).
    """

def consistent_poses(
    a: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    normals_a: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    | None,
    normals_b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)]
    | None,
    tolerance: float,
    shortest: float,
    bend: float,
    seeds: int,
    most: int,
    wanted: int,
    threads: int,
) -> tuple:
    """
    (poses, numbers of matches that agree with them), best first and different from each other.
    """
