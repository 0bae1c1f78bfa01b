"""Point clouds: points of any dimension, with normals, faces or neither; sampling of meshes and thinning by a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._validation import check_count, check_positive

__all__ = ["PointCloud", "check_points"]


def check_points(name: str, points: Any, *, least: int = 1) -> np.ndarray:
    """Return points as a float64 array of shape (n, d), or raise a ValueError that names the argument.

    Parameters
    ----------
    name : str
        Name of the points in error messages.
    points : array of shape (n, d) or PointCloud
    least : int, default=1
        Minimum number of points.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mercer.data.clouds import check_points
    >>> check_points("source", [[0, 1], [2, 3]]).shape
    (2, 2)
    """
    if isinstance(points, PointCloud):
        points = points.points
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, one point a row") from error
    if array.ndim != 2:
        raise ValueError(f"{name} must have one point a row, got an array of shape {array.shape}")
    if array.shape[1] < 2:
        raise ValueError(f"{name} must have at least 2 coordinates a point, got {array.shape[1]}")
    if len(array) < least:
        raise ValueError(f"{name} must have at least {least} points, got {len(array)}")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise ValueError(f"{name} must not hold NaN or infinite values, but point {row} does")
    return array


class PointCloud:
    """Points, with optional normals and faces.

    Parameters
    ----------
    points : array of shape (n, d)
    normals : array of shape (n, d), optional
        Normal of each point; scaled to length 1.
    faces : array of int of shape (m, 3), optional
        Triangles: three indices into ``points`` each.

    Examples
    --------
    >>> from mercer.data import PointCloud
    >>> square = PointCloud([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], faces=[[0, 1, 2], [0, 2, 3]])
    >>> square
    PointCloud(4 points, 3-D, 2 faces)
    >>> square.area
    1.0
    >>> square.sample(1000, random_state=0).points.mean(axis=0).round(1)
    array([0.5, 0.5, 0. ])
    """

    def __init__(self, points: Any, normals: Any = None, faces: Any = None) -> None:
        self.points = check_points("points", points, least=0)
        self.normals = None if normals is None else self._check_normals(normals)
        self.faces = None if faces is None else self._check_faces(faces)

    def _check_normals(self, normals: Any) -> np.ndarray:
        array = check_points("normals", normals, least=0)
        if array.shape != self.points.shape:
            raise ValueError(f"normals must have the shape of points, {self.points.shape}, got {array.shape}")
        lengths = np.linalg.norm(array, axis=1, keepdims=True)
        return array / np.where(lengths > 0, lengths, 1.0)

    def _check_faces(self, faces: Any) -> np.ndarray:
        array = np.asarray(faces)
        if array.size == 0:
            return np.zeros((0, 3), np.int64)
        if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
            raise ValueError(f"faces must be integers of shape (m, 3), got {array.dtype} of shape {array.shape}")
        if array.min() < 0 or array.max() >= len(self.points):
            raise ValueError(
                f"faces must hold positions from 0 to {len(self.points) - 1}, got {array.min()} … {array.max()}"
            )
        return np.ascontiguousarray(array, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        parts = [f"{len(self.points)} points", f"{self.dimension}-D"]
        if self.normals is not None:
            parts.append("normals")
        if self.faces is not None:
            parts.append(f"{len(self.faces)} faces")
        return f"PointCloud({', '.join(parts)})"

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return self.points.shape[1]

    @property
    def area(self) -> float:
        """Return the total area of the faces; 0 without faces."""
        return float(self._areas().sum())

    def _areas(self) -> np.ndarray:
        if self.faces is None or not len(self.faces):
            return np.zeros(0)
        a, b, c = (self.points[self.faces[:, k]] for k in range(3))
        u, v = b - a, c - a
        # half of √(|u|²|v|² − (u·v)²), which holds in any dimension
        gram = (u * u).sum(axis=1) * (v * v).sum(axis=1) - (u * v).sum(axis=1) ** 2
        return 0.5 * np.sqrt(np.maximum(gram, 0))

    def sample(self, n: int, random_state: Any = None) -> PointCloud:
        """Draw points uniformly from the faces: a face in proportion to its area, then a point in it.

        Parameters
        ----------
        n : int
            Number of points.
        random_state : int, Generator or None

        Returns
        -------
        PointCloud
            With the normals of the faces in three dimensions.
        """
        check_count("n", n)
        areas = self._areas()
        if self.faces is None or not areas.sum() > 0:
            raise ValueError("only a mesh can be sampled: this cloud has no faces with an area")
        rng = np.random.default_rng(random_state)
        faces = self.faces[rng.choice(len(areas), size=n, p=areas / areas.sum())]
        a, b, c = (self.points[faces[:, k]] for k in range(3))
        r, s = rng.random((2, n, 1))
        over = r + s > 1  # fold the parallelogram onto the triangle
        r, s = np.where(over, 1 - r, r), np.where(over, 1 - s, s)
        normals = np.cross(b - a, c - a) if self.dimension == 3 else None
        return PointCloud(a + r * (b - a) + s * (c - a), normals)

    def thin(self, size: float) -> PointCloud:
        """Replace the points in each cell of a grid by their mean.

        Parameters
        ----------
        size : float
            Length of a side of a cell.

        Returns
        -------
        PointCloud
            A cloud without faces; cells are sorted by their coordinates.

        Examples
        --------
        >>> from mercer.data import PointCloud
        >>> PointCloud([[0.1, 0.2], [0.3, 0.4], [5.0, 5.0]]).thin(1.0).points
        array([[0.2, 0.3],
               [5. , 5. ]])
        """
        cell = np.floor((self.points - self.points.min(axis=0)) / check_positive("size", size)) if len(self) else None
        if cell is None:
            return PointCloud(self.points, self.normals)
        if cell.max() >= 2**62:
            raise ValueError(f"size {size:g} is too small for points this far apart")
        _, number, counts = np.unique(cell.astype(np.int64), axis=0, return_inverse=True, return_counts=True)
        number = number.ravel()
        sums = [
            np.stack([np.bincount(number, column, len(counts)) for column in values.T], axis=1)
            for values in (self.points, self.normals)
            if values is not None
        ]
        return PointCloud(sums[0] / counts[:, None], sums[1] if self.normals is not None else None)

    def transform(self, matrix: Any) -> PointCloud:
        """Return the cloud moved by a matrix of shape (d + 1, d + 1).

        Parameters
        ----------
        matrix : array of shape (d + 1, d + 1)
            [[A, b], [0, 1]]: point x goes to A x + b.

        Returns
        -------
        PointCloud
        """
        motion = np.asarray(matrix, dtype=float)
        d = self.dimension
        if motion.shape != (d + 1, d + 1):
            raise ValueError(f"matrix must have shape {(d + 1, d + 1)}, got {motion.shape}")
        linear = motion[:d, :d]
        normals = None if self.normals is None else self.normals @ np.linalg.inv(linear)
        return PointCloud(self.points @ linear.T + motion[:d, d], normals, self.faces)
