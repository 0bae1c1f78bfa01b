"""Base class of the registration estimators: fit estimates the transform from source to target, transform applies
it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Flag, Floats, Number, Saved
from mercer._validation import thread_count
from mercer._warnings import warn_caller
from mercer.data.clouds import PointCloud
from mercer.exceptions import ConvergenceWarning
from mercer.registration.prepared import Cloud, check_pair
from mercer.registration.result import RegistrationResult, move

__all__ = ["Registration", "check_start", "pair_radius", "summary"]


def pair_radius(source: Cloud, target: Cloud) -> float:
    """Return the distance up to which points of two clouds count as a pair: three times the coarser spacing."""
    return max(3 * max(source.spacing, target.spacing), 1e-12 * target.radius)


def check_start(start: Any, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the initial pose: the given matrix, or the shift between the centroids for "centroid"."""
    d = source.shape[1]
    pose = np.eye(d + 1)
    if isinstance(start, str):
        if start not in ("centroid", "identity"):
            raise ValueError(f"start must be 'centroid', 'identity' or a matrix, got {start!r}")
        if start == "centroid":
            pose[:-1, -1] = target.mean(axis=0) - source.mean(axis=0)
        return pose
    pose = np.ascontiguousarray(np.asarray(start, dtype=np.float64))
    if pose.shape != (d + 1, d + 1) or not np.isfinite(pose).all():
        raise ValueError(f"start must be a finite matrix of shape {(d + 1, d + 1)}, got shape {pose.shape}")
    if abs(np.linalg.det(pose[:-1, :-1])) < 1e-12 or np.abs(pose[-1] - np.eye(d + 1)[-1]).max() > 1e-9:
        raise ValueError("start must be an invertible motion with the last row 0 … 0 1")
    return pose


def summary(source: Cloud, target: Cloud, transform: np.ndarray, radius: float, **facts: Any) -> RegistrationResult:
    """Return the result of a transform: pairs within a radius, their share and their error."""
    squared, partner = target.nearest(move(transform, source.points), radius)
    paired = partner >= 0
    pairs = np.stack([np.flatnonzero(paired), partner[paired]], axis=1)
    rmse = math.sqrt(float(squared[paired].mean())) if paired.any() else math.inf
    return RegistrationResult(transform, float(paired.mean()), rmse, radius, pairs, **facts)


class Registration(Saved, Estimator):
    """Base class of registration estimators; subclasses implement ``_align``.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The transform from the source to the target.
    fitness_ : float
        Share of the source points with a target point within ``radius_``.
    rmse_ : float
        Root mean squared distance of these pairs.
    radius_ : float
    converged_ : bool
    n_iter_ : int
    result_ : RegistrationResult
        All of these values and the pairs; not stored in model files.
    """

    saved = Fields(
        n_features_in_=Count(2, most=64),
        transform_=Floats(lambda model: model.n_features_in_ + 1, lambda model: model.n_features_in_ + 1),
        fitness_=Number(0.0),
        rmse_=Number(0.0),
        radius_=Number(0.0),
        converged_=Flag(),
        n_iter_=Count(),
    )
    n_jobs: int | None = None

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the transform and the fields of :class:`RegistrationResult` that describe it."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Registration:
        """Estimate the transform from a source to a target.

        Parameters
        ----------
        X : array of shape (n, d) or PointCloud
            The source, which moves.
        y : array of shape (m, d) or PointCloud
            The target, which stays.
        sample_weight : array of shape (n,), optional
            Weights of the source points.

        Returns
        -------
        self
        """
        source, target, weights = check_pair(X, y, sample_weight)
        threads = thread_count(self.n_jobs)
        clouds = [
            Cloud(points, cloud.normals if isinstance(cloud, PointCloud) else None, threads)
            for points, cloud in ((source, X), (target, y))
        ]
        transform, facts = self._align(clouds[0], clouds[1], weights)
        if not np.isfinite(transform).all():
            raise ValueError("the motion is not finite: the clouds may be degenerate, or their values too large")
        result = summary(clouds[0], clouds[1], transform, pair_radius(*clouds), **facts)
        self.n_features_in_ = source.shape[1]
        self.transform_, self.result_ = transform, result
        self.fitness_, self.radius_ = result.fitness, result.radius
        self.rmse_ = result.rmse if math.isfinite(result.rmse) else 0.0
        self.converged_, self.n_iter_ = result.converged, result.n_iter
        if not result.converged:
            message = f"{type(self).__name__} stopped after {result.n_iter} iterations before it converged"
            warn_caller(f"{message}; raise max_iter", ConvergenceWarning)
        if result.fitness < 0.05:
            warn_caller(
                f"only {result.fitness:.1%} of the source points come near the target: the pose is probably wrong, or"
                " the clouds do not overlap",
                UserWarning,
            )
        return self

    def transform(self, X: Any) -> Any:
        """Apply the fitted transform to points.

        Parameters
        ----------
        X : array of shape (n, d) or PointCloud

        Returns
        -------
        array or PointCloud
        """
        check_is_fitted(self, "transform_")
        empty = np.zeros((0, 2), np.int64)
        return RegistrationResult(self.transform_, 0.0, 0.0, 0.0, empty, "").apply(X)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the transform and return the transformed source.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        array or PointCloud
        """
        return self.fit(X, y, sample_weight).transform(X)
