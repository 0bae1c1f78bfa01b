"""The result of a registration: the transform, the quality of the fit, and whether the pose is certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.data.clouds import PointCloud, check_points

__all__ = ["RegistrationResult", "move"]


def move(transform: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return points moved by a matrix [[A, b], [0, 1]]."""
    return points @ transform[:-1, :-1].T + transform[:-1, -1]


@dataclass
class RegistrationResult:
    """The transform that aligns the source with the target, and the evidence for it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.registration import register
    >>> rng = np.random.default_rng(0)
    >>> target = rng.standard_normal((500, 3)) * [3, 2, 1]
    >>> source = target @ np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + [5, 0, 0]
    >>> result = register(source, target)
    >>> result.rotation.round(3) + 0.0
    array([[ 0.,  1.,  0.],
           [-1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    >>> bool(np.abs(result.apply(source) - target).max() < 1e-6), result.fitness
    (True, 1.0)
    """

    transform: np.ndarray
    """(d + 1) × (d + 1): [[s R, b], [0, 1]]."""
    fitness: float
    """Share of the source points that have a target point within ``radius`` after the transform."""
    rmse: float
    """Root mean squared distance of these pairs."""
    radius: float
    """The distance up to which points count as a pair."""
    correspondences: np.ndarray
    """(pairs, 2): positions in the source and in the target, of points within ``radius`` of each other."""
    method: str
    """Method that found the transform, such as ``"kernel + generalized icp"``."""
    certified: bool = False
    """Whether the evidence rules out that the pose fits by chance. False means that the pose may be wrong."""
    reason: str = ""
    """Reason why the pose is or is not certified."""
    evidence: dict[str, float] = field(default_factory=dict)
    """The statistics behind ``certified``: contact, agreement of normals, overlap, ratio to the next best pose."""
    alternatives: list[np.ndarray] = field(default_factory=list)
    """Other transforms that fit nearly as well (at least 0.9 times the score), best first, as for symmetric shapes."""
    n_iter: int = 0
    """Number of iterations of the final refinement."""
    converged: bool = True

    @property
    def dimension(self) -> int:
        return len(self.transform) - 1

    @property
    def scale(self) -> float:
        """The scale factor s; 1 for rigid motions."""
        determinant = abs(float(np.linalg.det(self.transform[:-1, :-1])))
        return float(determinant ** (1 / self.dimension))

    @property
    def rotation(self) -> np.ndarray:
        """The rotation R; with ``reflection=True`` it may include a reflection and then has the determinant −1."""
        return self.transform[:-1, :-1] / self.scale

    @property
    def translation(self) -> np.ndarray:
        """The translation b."""
        return self.transform[:-1, -1]

    def apply(self, points: Any) -> Any:
        """Return points moved onto the target.

        Parameters
        ----------
        points : array of shape (n, d) or PointCloud

        Returns
        -------
        array or PointCloud
        """
        if isinstance(points, PointCloud):
            return points.transform(self.transform)
        array = check_points("points", points, least=0)
        if array.shape[1] != self.dimension:
            raise ValueError(f"points must have {self.dimension} coordinates, got {array.shape[1]}")
        return move(self.transform, array)
