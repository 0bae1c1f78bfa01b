"""Clouds prepared for registration: search tree, spacing, normals, and a thinned copy without stray points."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.data.clouds import check_points

__all__ = ["Cloud", "check_pair", "estimate_normals", "umeyama"]

_core_registration = _core.registration
LARGEST = 1e60
"""Of a coordinate: fourth powers, summed over all points, are finite."""


class Cloud:
    """A cloud with lazily computed, cached properties."""

    def __init__(self, points: np.ndarray, normals: np.ndarray | None = None, threads: int = 1, k: int = 12) -> None:
        self.points, self._given, self.threads, self.k = points, normals, threads, k

    def __len__(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        return self.points.shape[1]

    @cached_property
    def tree(self) -> Any:
        return _core_registration.CloudTree(self.points)

    @cached_property
    def radius(self) -> float:
        """Return the root mean squared distance from the centroid."""
        return math.sqrt(float(((self.points - self.points.mean(axis=0)) ** 2).sum(axis=1).mean()))

    @cached_property
    def spacing(self) -> float:
        """Return the median distance to the nearest neighbour; in the plane, half the distance to the fourth neighbour.

        Gaps between random points of a curve vary widely, and the nearest neighbour measures only the smallest gap.
        """
        if len(self) < 2:
            return 0.0
        k, share = (4, 0.5) if self.dimension == 2 and len(self) > 10 else (1, 1.0)
        sample = self.points if len(self) <= 2000 else self.points[:: len(self) // 1000]
        squared = self.tree.k_nearest(np.ascontiguousarray(sample), k + 1, self.threads)[0][:, k]
        return share * math.sqrt(float(np.median(squared)))

    @cached_property
    def thickness(self) -> float:
        """Return the median squared ratio of the two smallest variances of neighbourhoods: 0 on a smooth, dense
        surface.

        It grows with noise and with curvature between neighbours: larger values mean less reliable local planes.
        """
        k = max(self.k, self.dimension + 1)
        if len(self) <= k:
            return 0.0
        some = self.points[:: max(1, len(self) // 500)]
        neighbours = self.points[self.tree.k_nearest(np.ascontiguousarray(some), k, self.threads)[1]]
        variances = np.linalg.eigvalsh(_covariances(neighbours))
        wide = variances[:, 1] > 1e-12 * variances[:, -1]  # not on a line
        ratios = np.maximum(variances[wide, 0], 0.0) / variances[wide, 1]
        return float(np.median(ratios)) ** 2 if len(ratios) else 0.0

    @cached_property
    def normals(self) -> np.ndarray:
        if self._given is not None:
            return np.ascontiguousarray(self._given)
        return _normals(self.tree, self.points, min(self.k, len(self)), self.threads)

    def normals_at(self, points: np.ndarray, k: int) -> np.ndarray:
        """Return normals at other positions, from the k nearest points of this cloud."""
        if self.dimension in (2, 3):
            return self.tree.normals(max(k, self.dimension), np.ascontiguousarray(points), self.threads)[0]
        return _eigen_normals(self.points[self.tree.k_nearest(points, max(k, self.dimension + 1), self.threads)[1]])

    def nearest(self, queries: np.ndarray, limit: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
        """Return the squared distances and positions of the nearest points; inf and −1 beyond the limit."""
        return self.tree.nearest(np.ascontiguousarray(queries), limit * limit, self.threads)

    def surface(self, rounds: int = 3) -> np.ndarray:
        """Return the positions of points that are no strays: their neighbours are as near as in the densest part.

        On a surface the distance to the k-th neighbour is about the same everywhere. Stray points in space have a
        larger distance, even if there are several for each surface point. Each round removes stray points, and the
        remaining stray points lose neighbours.
        """
        k, factor = (16, 3.0) if self.dimension == 2 else (8, 1.6)
        kept = np.arange(len(self))
        for _ in range(rounds):
            if len(kept) <= 10 * k:
                break
            points = np.ascontiguousarray(self.points[kept])
            reach = _core_registration.CloudTree(points).k_nearest(points, k + 1, self.threads)[0][:, k]
            inside = reach <= factor**2 * np.quantile(reach, 0.2)
            kept = kept[inside]
            if inside.mean() > 0.9:
                break
        return kept

    def thinned(self, size: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of the points in each cell of a grid, and the counts."""
        if size <= 0:
            return self.points, np.ones(len(self))
        cell = np.floor((self.points - self.points.min(axis=0)) / size).astype(np.int64)
        width = cell.max(axis=0) + 1
        if float(np.prod(width.astype(float))) > 2**62:
            return self.points, np.ones(len(self))
        key = cell[:, 0]
        for axis in range(1, self.dimension):
            key = key * width[axis] + cell[:, axis]
        _, number, counts = np.unique(key, return_inverse=True, return_counts=True)
        sums = [np.bincount(number, column, len(counts)) for column in self.points.T]
        return np.ascontiguousarray(np.stack(sums, axis=1) / counts[:, None]), counts.astype(float)

    def thinned_to(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for a grid that leaves about ``count`` points (at most 1.3 times as many)."""
        if len(self) <= count:
            return self.points, np.ones(len(self))
        extent = float(np.ptp(self.points, axis=0).max())
        size = extent / max(2.0, count ** (1 / min(2, self.dimension)))
        best = self.points, np.ones(len(self))
        for _ in range(8):
            best = self.thinned(size)
            n = len(best[0])
            if 0.75 * count <= n <= 1.3 * count:
                break
            size *= min(2.0, max(0.5, math.sqrt(n / count)))
        return best


def _normals(tree: Any, points: np.ndarray, k: int, threads: int) -> np.ndarray:
    n, d = points.shape
    if n <= d:
        raise ValueError(f"normals need more than {d} points, got {n}")
    if d in (2, 3):
        return tree.normals(max(k, d), None, threads)[0]
    return _eigen_normals(points[tree.k_nearest(points, max(k, d + 1), threads)[1]])


def _covariances(neighbours: np.ndarray) -> np.ndarray:
    centred = neighbours - neighbours.mean(axis=1, keepdims=True)
    return np.einsum("nki,nkj->nij", centred, centred)


def _eigen_normals(neighbours: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(_covariances(neighbours))[1][:, :, 0]


def estimate_normals(points: Any, k: int = 12, *, n_jobs: int | None = None) -> np.ndarray:
    """Return a normal for each point: the direction of least variance of its nearest neighbours.

    Parameters
    ----------
    points : array of shape (n, d) or PointCloud
    k : int, default=12
        Number of neighbours, including the point itself.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    normals : ndarray of shape (n, d)
        Unit normals that point to the side towards which the neighbours curve.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.registration import estimate_normals
    >>> plane = np.random.default_rng(0).random((50, 3)) * [1, 1, 0]
    >>> np.abs(estimate_normals(plane))[0]
    array([0., 0., 1.])
    """
    from mercer._validation import check_count, thread_count

    array = check_points("points", points)
    check_count("k", k, array.shape[1])
    return _normals(_core_registration.CloudTree(array), array, min(k, len(array)), thread_count(n_jobs))


def check_pair(source: Any, target: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return both clouds and the weights of the source, or raise a ValueError that describes the error."""
    x, y = check_points("source", source), check_points("target", target)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"source has {x.shape[1]} coordinates and target {y.shape[1]}: they must have the same number")
    d = x.shape[1]
    for name, cloud in (("source", x), ("target", y)):
        if len(cloud) < d + 1:
            raise ValueError(f"{name} must have at least {d + 1} points in {d} dimensions, got {len(cloud)}")
        if (largest := np.abs(cloud).max()) > LARGEST:
            raise ValueError(
                f"{name} has a coordinate of size {largest:.3g}; use a unit in which all are below {LARGEST:g}"
            )
        centred = cloud - cloud.mean(axis=0)
        spread = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred)[::-1], 0))
        size = max(spread[0], np.abs(cloud).max() * 1e-9)
        if spread[0] <= 1e-12 * np.abs(cloud).max() * math.sqrt(len(cloud)) or spread[0] == 0:
            raise ValueError(f"all points of {name} are equal: the rotation is not determined")
        if d > 2 and spread[d - 2] <= 1e-7 * size:
            raise ValueError(
                f"the points of {name} lie on a {'line' if d == 3 else 'subspace of lower dimension'}: the rotation"
                " about it is not determined, so the pose is not unique"
            )
    if weights is None:
        return x, y, None
    w = np.ascontiguousarray(np.asarray(weights, dtype=np.float64))
    if w.shape != (len(x),) or not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise ValueError(f"weights must be {len(x)} numbers of at least 0, not all of them 0")
    return x, y, w


def umeyama(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, *, scale: bool = False, reflection: bool = False
) -> np.ndarray:
    """Return the motion that maps the rows of x to those of y with the least squared error.

    References
    ----------
    .. [Umeyama1991] S. Umeyama. Least-squares estimation of transformation parameters between two point patterns. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 13, 1991.
    """
    w = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
    mx, my = w @ x, w @ y
    u, s, vt = np.linalg.svd((y - my).T @ (w[:, None] * (x - mx)))
    signs = np.ones(len(s))
    if not reflection and np.linalg.det(u) * np.linalg.det(vt) < 0:
        signs[-1] = -1
    rotation = (u * signs) @ vt
    factor = float((s * signs).sum() / (w @ ((x - mx) ** 2).sum(axis=1))) if scale else 1.0
    transform = np.eye(x.shape[1] + 1)
    transform[:-1, :-1], transform[:-1, -1] = factor * rotation, my - factor * rotation @ mx
    return transform
