"""Registration with soft correspondences: annealed assignment, mixtures of Gaussians, coherent point drift.

All minimise Σ_ij w_ij ‖s R x_i + b − y_j‖², with weights w_ij between 0 and 1 in place of nearest neighbours:

    SoftAssign           Σ_i w_ij = Σ_j w_ij = 1 up to points without a partner, by Sinkhorn's iteration at a falling
                         temperature T: w_ij ∝ exp(−‖…‖²/2T) [Gold1998]
    MixtureRegistration  max Σ_ij exp(−‖R x_i + b − y_j‖²/4σ²), the L2 distance between mixtures of Gaussians, at
                         falling σ [Jian2011]
    CoherentPointDrift   EM for points y_j drawn from Gaussians around the moved x_i and a share ω of uniform outliers
                         [Myronenko2010]

They need an initial pose within about 60 degrees. An iteration costs O(n m).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from mercer._state.saved import Fields, Number
from mercer._validation import check_choice, check_count, check_flag, check_positive
from mercer.manifolds import SE, minimize
from mercer.registration.base import Registration, check_start
from mercer.registration.kernel import KernelAlignment
from mercer.registration.prepared import Cloud, umeyama
from mercer.registration.result import move

__all__ = ["CoherentPointDrift", "MixtureRegistration", "SoftAssign"]


def _unit(source: Cloud, target: Cloud, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return both clouds thinned, in units of the target's radius around its centroid; counts; the inverse map."""
    (x, v), (y, w) = source.thinned_to(most), target.thinned_to(most)
    centre, unit = target.points.mean(axis=0), target.radius
    outward = np.eye(len(centre) + 1)
    outward[:-1, :-1] *= unit
    outward[:-1, -1] = centre
    return (x - centre) / unit, v, (y - centre) / unit, w, outward


def _squared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    product = x @ y.T
    product *= -2
    product += (x * x).sum(axis=1)[:, None]
    product += (y * y).sum(axis=1)
    return np.maximum(product, 0, out=product)


class SoftAssign(Registration):
    """Align clouds by annealed soft assignment.

    Parameters
    ----------
    scale : bool, default=False
        Also estimate a scale factor.
    outliers : float, default=0.1
        Expected share of points without a match. They are assigned to a slack row or column.
    temperature : float, default=0.1
        Initial temperature, in units of the target's squared radius.
    cooling : float, default=0.9
        Factor by which the temperature falls in each round.
    start : {"centroid", "identity"} or matrix, default="centroid"
    max_points : int, default=1000
        Larger clouds are downsampled by a grid.
    n_jobs : int, optional
        Number of threads of the final search for pairs.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import SoftAssign
    >>> target = np.random.default_rng(0).standard_normal((100, 2)) * [3, 1]
    >>> source = target @ SO(2).Exp([0.4])
    >>> bool(np.abs(SoftAssign().fit_transform(source, target) - target).max() < 0.05)
    True

    References
    ----------
    .. [Gold1998] S. Gold, A. Rangarajan, C.-P. Lu, S. Pappu and E. Mjolsness. New algorithms for 2D and 3D point
       matching: pose estimation and correspondence. Pattern Recognition 31, 1998.
    """

    def __init__(
        self,
        *,
        scale: bool = False,
        outliers: float = 0.1,
        temperature: float = 0.1,
        cooling: float = 0.9,
        start: Any = "centroid",
        max_points: int = 1000,
        n_jobs: int | None = None,
    ) -> None:
        self.scale = scale
        self.outliers = outliers
        self.temperature = temperature
        self.cooling = cooling
        self.start = start
        self.max_points = max_points
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        scale, T = check_flag("scale", self.scale), check_positive("temperature", self.temperature)
        cooling, share = check_positive("cooling", self.cooling), check_positive("outliers", self.outliers)
        if cooling >= 1 or share >= 1:
            raise ValueError(f"cooling and outliers must be below 1, got {self.cooling!r} and {self.outliers!r}")
        x, _, y, _, outward = _unit(source, target, check_count("max_points", self.max_points, 4))
        pose = np.linalg.inv(outward) @ check_start(self.start, source.points, target.points) @ outward
        own = weights if weights is not None and len(x) == len(source) else np.ones(len(x))
        last = max(1e-6, 0.25 * max(source.spacing, target.spacing) ** 2 / target.radius**2)
        rounds = 0
        while last < T:
            rounds += 1
            for _ in range(3):
                W = _sinkhorn(_squared(move(pose, x), y), T, share)
                mass = W.sum(axis=1)  # of each source point, less what the slack takes
                if mass.sum() < 1e-9:
                    break
                pose = umeyama(x, W @ y / np.maximum(mass, 1e-12)[:, None], own * mass + 1e-15, scale=scale)
            T *= cooling
        return outward @ pose @ np.linalg.inv(outward), {"method": "softassign", "n_iter": rounds}


def _sinkhorn(squared: np.ndarray, T: float, share: float, rounds: int = 10) -> np.ndarray:
    """Return weights with row and column sums of 1; a slack row and column take points beyond about 3 √T."""
    n, m = squared.shape
    inside = np.exp(-squared / (2 * T))
    slack = math.exp(-4.5) * share / (1 - share) * 9
    a, b = np.ones(n), np.ones(m)
    for _ in range(rounds):
        a = 1 / (inside @ b + slack)
        b = 1 / (a @ inside + slack)
    inside *= a[:, None]
    inside *= b
    return inside


class MixtureRegistration(Registration):
    """Align clouds by the L2 distance between mixtures of Gaussians around their points.

    Parameters
    ----------
    sigma : float, default=0.3
        Initial width, in units of the target's radius; it is halved until it reaches the spacing.
    start : {"centroid", "identity"} or matrix, default="centroid"
    max_points : int, default=1000
        Larger clouds are downsampled by a grid, with weights.
    max_iter : int, default=100
        Maximal iterations of the ascent for each width.
    n_jobs : int, optional
        Number of threads of the final search for pairs.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import MixtureRegistration
    >>> target = np.random.default_rng(0).standard_normal((100, 2)) * [3, 1]
    >>> source = target @ SO(2).Exp([0.4])
    >>> bool(np.abs(MixtureRegistration().fit_transform(source, target) - target).max() < 0.05)
    True

    References
    ----------
    .. [Jian2011] B. Jian and B. Vemuri. Robust point set registration using Gaussian mixture models. IEEE Transactions
       on Pattern Analysis and Machine Intelligence 33, 2011.
    """

    def __init__(
        self,
        sigma: float = 0.3,
        *,
        start: Any = "centroid",
        max_points: int = 1000,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.sigma = sigma
        self.start = start
        self.max_points = max_points
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        sigma, max_iter = check_positive("sigma", self.sigma), check_count("max_iter", self.max_iter)
        x, v, y, w, outward = _unit(source, target, check_count("max_points", self.max_points, 4))
        if weights is not None and len(x) == len(source):
            v = weights
        pose = np.linalg.inv(outward) @ check_start(self.start, source.points, target.points) @ outward
        pose = SE(x.shape[1]).nearest(pose)
        last = max(1e-3, 0.5 * max(source.spacing, target.spacing) / target.radius)
        rounds = 0
        while True:
            # two Gaussians of width σ overlap like one of width σ √2
            objective = KernelAlignment(x, v / v.sum(), y, np.tile(w / w.sum(), (len(x), 1)), math.sqrt(2) * sigma)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the next width goes on
                best = minimize(
                    objective.value, objective.gradient, SE(x.shape[1]), pose, method="conjugate-gradient", tol=1e-4,
                    max_iter=max_iter,
                )  # fmt: skip
            pose, rounds = best.x, rounds + best.n_iter
            if sigma <= last:
                break
            sigma = max(last, 0.5 * sigma)
        return outward @ pose @ np.linalg.inv(outward), {"method": "mixture", "n_iter": rounds}


class CoherentPointDrift(Registration):
    """Align clouds by expectation maximisation with a share of outliers, for rigid, similarity or affine transforms.

    Parameters
    ----------
    kind : {"rigid", "similarity", "affine"}, default="rigid"
    outliers : float, default=0.1
        Share ω of target points that belong to no source point.
    start : {"centroid", "identity"} or matrix, default="centroid"
    max_points : int, default=1000
        Larger clouds are downsampled by a grid.
    max_iter : int, default=150
    tol : float, default=1e-5
        Stop when the relative change of the variance is below this value.
    n_jobs : int, optional
        Number of threads of the final search for pairs.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    variance_ : float
        Mean squared distance per coordinate of matched points at the end.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.registration import CoherentPointDrift
    >>> target = np.random.default_rng(0).standard_normal((100, 2)) * [3, 1]
    >>> source = target @ np.array([[1.2, 0.3], [-0.1, 0.8]])
    >>> affine = CoherentPointDrift(kind="affine").fit(source, target)
    >>> bool(np.abs(affine.transform(source) - target).max() < 0.05)
    True

    References
    ----------
    .. [Myronenko2010] A. Myronenko and X. Song. Point set registration: coherent point drift. IEEE Transactions on
       Pattern Analysis and Machine Intelligence 32, 2010.
    """

    saved = Registration.saved | Fields(variance_=Number(0.0))

    def __init__(
        self,
        kind: str = "rigid",
        *,
        outliers: float = 0.1,
        start: Any = "centroid",
        max_points: int = 1000,
        max_iter: int = 150,
        tol: float = 1e-5,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.outliers = outliers
        self.start = start
        self.max_points = max_points
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        kind = check_choice("kind", self.kind, ("rigid", "similarity", "affine"))
        share, tol = check_positive("outliers", self.outliers), check_positive("tol", self.tol)
        if share >= 1:
            raise ValueError(f"outliers must be below 1, got {self.outliers!r}")
        x, _, y, _, outward = _unit(source, target, check_count("max_points", self.max_points, 4))
        own = weights if weights is not None and len(x) == len(source) else np.ones(len(x))
        pose = np.linalg.inv(outward) @ check_start(self.start, source.points, target.points) @ outward
        d, n, m = x.shape[1], len(x), len(y)
        variance = float(_squared(move(pose, x), y).mean()) / d
        least = 1e-8 + 0.01 * (max(source.spacing, target.spacing) / target.radius) ** 2
        converged, k = False, 0
        for k in range(1, check_count("max_iter", self.max_iter) + 1):  # noqa: B007
            P = np.exp(-_squared(move(pose, x), y) / (2 * variance)) * own[:, None]
            noise = (2 * math.pi * variance) ** (d / 2) * share / (1 - share) * n / m
            P /= P.sum(axis=0) + noise
            rows = P.sum(axis=1)
            if rows.sum() < 1e-9:
                break
            partner = P @ y / np.maximum(rows, 1e-12)[:, None]
            if kind == "affine":
                pose = _affine(x, partner, rows)
            else:
                pose = umeyama(x, partner, rows + 1e-15, scale=kind == "similarity")
            before = variance
            moved = move(pose, x)
            total = rows @ (moved * moved).sum(axis=1) - 2 * (rows @ (moved * partner).sum(axis=1))
            total += P.sum(axis=0) @ (y * y).sum(axis=1)
            variance = max(least, float(total) / (float(rows.sum()) * d))
            if abs(before - variance) <= tol * before:
                converged = True
                break
        self.variance_ = variance * target.radius**2
        facts = {"method": f"{kind} drift", "n_iter": k, "converged": converged}
        return outward @ pose @ np.linalg.inv(outward), facts


def _affine(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Solve weighted least squares for y ≈ A x + b."""
    w = w / w.sum()
    mx, my = w @ x, w @ y
    centred = x - mx
    spread = centred.T @ (w[:, None] * centred)
    ridge = 1e-12 * np.trace(spread) * np.eye(len(mx))
    linear = np.linalg.solve(spread + ridge, centred.T @ (w[:, None] * (y - my))).T
    transform = np.eye(len(mx) + 1)
    transform[:-1, :-1], transform[:-1, -1] = linear, my - linear @ mx
    return transform
