"""Point clouds as documents: a grid over their bounding box, whose cells are words; neighbours and normals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.data.clouds import PointCloud, check_points
from mercer.data.readers.meshes import read_cloud

__all__ = ["Grid", "as_clouds", "links", "normals_of", "stacked"]

_MESH_POINTS = 2000  # drawn from a mesh in a file
_MOST_PAIRS = 10  # other clouds in which a point looks for its counterpart
_MOST_CELLS = 1 << 24


def as_clouds(name: str, clouds: Any, dimension: int | None = None) -> list[PointCloud]:
    """Return clouds of one dimension, each with at least one point, from arrays, clouds or files.

    A file that holds a mesh is sampled evenly by area.
    """
    if isinstance(clouds, (str, bytes, os.PathLike, PointCloud)) or not isinstance(clouds, (Sequence, np.ndarray)):
        raise ValueError(f"{name} must be a list of clouds (arrays with a point a row), got {type(clouds).__name__}")
    if not len(clouds):
        raise ValueError(f"{name} holds no cloud")
    point_clouds: list[PointCloud] = []
    for i, cloud in enumerate(clouds):
        if isinstance(cloud, (str, os.PathLike)):
            read = read_cloud(cloud)
            cloud = read.sample(_MESH_POINTS, random_state=0) if read.faces is not None and read.area > 0 else read
        if not isinstance(cloud, PointCloud):
            cloud = PointCloud(check_points(f"{name}[{i}]", cloud))
        check_points(f"{name}[{i}]", cloud.points)
        expected = point_clouds[0].dimension if point_clouds else dimension
        if expected is not None and cloud.dimension != expected:
            raise ValueError(f"{name}[{i}] has {cloud.dimension} coordinates a point, expected {expected}")
        point_clouds.append(cloud)
    return point_clouds


def stacked(clouds: list[PointCloud]) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all clouds, and where each cloud begins."""
    offsets = np.concatenate([[0], np.cumsum([len(cloud) for cloud in clouds])]).astype(np.int64)
    return np.concatenate([cloud.points for cloud in clouds]), offsets


class Grid:
    """Equal cells over a box; one more word represents everything outside.

    Parameters
    ----------
    low : array (d,)
        Corner of the box.
    size : float
        Side of a cell.
    shape : array of int (d,)
        Cells along each axis.
    """

    def __init__(self, low: np.ndarray, size: float, shape: np.ndarray) -> None:
        self.low, self.size, self.shape = low, size, shape

    @classmethod
    def around(cls, points: np.ndarray, resolution: int) -> Grid:
        """Return a grid around points with so many cells along the longest side."""
        low, extent = points.min(axis=0), np.ptp(points, axis=0)
        longest = float(extent.max())
        size = longest / resolution if longest > 0 else 1.0
        shape = np.maximum(1, np.ceil(extent / size - 1e-9)).astype(np.int64)
        if shape.astype(float).prod() > _MOST_CELLS:
            raise ValueError(f"a grid of {' × '.join(map(str, shape.tolist()))} cells is too large: lower grid")
        return cls(low, size, shape)

    @property
    def n_words(self) -> int:
        """Cells, and the word for what lies outside."""
        return int(self.shape.prod()) + 1

    def words(self, points: np.ndarray) -> np.ndarray:
        """Return the cell of each point; the last word where it lies outside."""
        with np.errstate(over="ignore", invalid="ignore"):
            place = (points - self.low) / self.size
            inside = ((place >= -1e-9) & (place <= self.shape + 1e-9)).all(axis=1)
        cell = np.clip(np.where(inside[:, None], place, 0.0).astype(np.int64), 0, self.shape - 1)
        words = np.ravel_multi_index(tuple(cell.T), tuple(self.shape.tolist()))
        return np.where(inside, words, self.n_words - 1).astype(np.int32)

    def centres(self, words: np.ndarray) -> np.ndarray:
        """Return the middle of cells."""
        cell = np.stack(np.unravel_index(words, tuple(self.shape.tolist())), axis=1)
        return self.low + self.size * (cell + 0.5)


def normals_of(cloud: PointCloud, k: int) -> np.ndarray:
    """Return the normals that a cloud has, or the directions in which neighbours of each point spread least."""
    if cloud.normals is not None:
        return cloud.normals
    from scipy.spatial import cKDTree

    points = cloud.points
    k = min(max(k, points.shape[1]) + 1, len(points))
    _, near = cKDTree(points).query(points, k=k)
    near = near.reshape(len(points), k)
    spread = points[near] - points[near].mean(axis=1, keepdims=True)
    _, directions = np.linalg.eigh(np.einsum("nki,nkj->nij", spread, spread))
    return directions[:, :, 0]


def links(clouds: list[PointCloud], offsets: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return neighbours of each point, as (starts, neighbours, weights exp |⟨o_i, o_j⟩|) with every pair twice.

    Neighbours are the k nearest points of the same cloud, and the points of other clouds that are each other's nearest.
    """
    from scipy.spatial import cKDTree

    trees = [cKDTree(cloud.points) for cloud in clouds]
    normals = np.concatenate([normals_of(cloud, k) for cloud in clouds])
    pairs = []
    for i, cloud in enumerate(clouds):
        count = min(k + 1, len(cloud))
        near = trees[i].query(cloud.points, k=count)[1].reshape(len(cloud), count)[:, 1:]
        pairs.append(np.stack([np.repeat(np.arange(len(cloud)), count - 1), near.ravel()], axis=1) + offsets[i])
        for j in range(i + 1, min(len(clouds), i + 1 + _MOST_PAIRS)):
            forth = trees[j].query(cloud.points)[1]
            back = trees[i].query(clouds[j].points)[1]
            mutual = np.flatnonzero(back[forth] == np.arange(len(cloud)))
            pairs.append(np.stack([mutual + offsets[i], forth[mutual] + offsets[j]], axis=1))
    edges = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)
    edges = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
    edges = np.unique(edges, axis=0) if len(edges) else edges
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    weights = np.exp(np.abs(np.einsum("ij,ij->i", normals[both[:, 0]], normals[both[:, 1]])))
    starts = np.searchsorted(both[:, 0], np.arange(offsets[-1] + 1)).astype(np.int64)
    return starts, np.ascontiguousarray(both[:, 1], np.int32), weights
