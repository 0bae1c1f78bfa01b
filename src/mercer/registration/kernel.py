"""Registration by aligning kernel principal components: any rotation, no initial guess.

A cloud is a Gaussian in the feature space of the kernel k(x, y) = exp(−‖x − y‖²/2σ²): mean μ, and principal components
u_k = Σ_j β_kj φ(x_j) from kernel PCA. The motion P of the points that best aligns the components of the source with
those of the target maximises the objective [Xiong2013]

    O(P) = Σ_t w_t [ Σ_k s_k ⟨u_k, φ(x_t) − μ⟩ f_k(P x_t) + μ'(P x_t) ],    f_k(y) = ⟨u'_k, φ(y)⟩ = Σ_j β'_kj k(y_j, y)

where a prime marks the target, w_t are weights of the points and s_k = ±1, as eigenvectors have no sign. The weights of
k(P x_t, y_j) in this sum, ρ_tj = Σ_k s_k ⟨u_k, φ(x_t) − μ⟩ β'_kj + w'_j, do not depend on P: a soft correspondence,
computed once. Every sign pattern gives a start (the motion of x_t to the y_j with the largest ρ_tj) and an ascent from
there. The printed equation (10) of the paper squares the kernel matrix entry by entry; the eigenproblem is lλKα = K²α.

Clouds of more than ``n_points`` points are replaced by the means of grid cells, weighted by their counts. The final ICP
uses all points. With ``features="nystrom"``, components are computed from all points: they come from the mean and
covariance of the features z(x) = K_LL^(−1/2) k(L, x). The landmarks L are the means of grid cells, so that k(x, y) ≈
⟨z(x), z(y)⟩. The ascent needs few points in both cases, since O lives in the span of D components and a mean. Random
Fourier features are unsuitable: with a few hundred frequencies, their error depends on the pose.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
from scipy.linalg import eigh

from mercer import _core
from mercer._validation import check_choice, check_count, check_flag, check_positive
from mercer.manifolds import SE, minimize
from mercer.registration._evidence import Judge
from mercer.registration._search import Found, best_pose, challenged, verdict
from mercer.registration.base import Registration
from mercer.registration.icp import closest_points, settled
from mercer.registration.prepared import Cloud, umeyama
from mercer.registration.result import move

__all__ = ["KernelAlignment", "KernelRegistration", "kernel_components"]


def _gaussian(x: np.ndarray, y: np.ndarray, sigma: float) -> np.ndarray:
    """exp(−‖x − y‖²/2σ²) of all pairs of rows, by the compiled loop under :class:`mercer.kernels.Gaussian`."""
    K = np.empty((len(x), len(y)))
    squares = (x * x).sum(axis=1), (y * y).sum(axis=1)
    rule = _core.kernels.PairRule("product", "gaussian", 1 / (2 * sigma**2))
    _core.kernels.pairwise(np.ascontiguousarray(x), np.ascontiguousarray(y), rule, *squares, K, 0, False, 1)
    return K


def kernel_components(
    points: np.ndarray, weights: np.ndarray, sigma: float, n_components: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading principal components of weighted points in the feature space of a Gaussian kernel.

    Parameters
    ----------
    points : array of shape (n, d)
    weights : array of shape (n,)
        Weights that sum to 1.
    sigma : float
        Width of the kernel.
    n_components : int

    Returns
    -------
    eigenvalues : ndarray of shape (n_components,)
        Eigenvalues of the covariance in feature space, largest first.
    beta : ndarray of shape (n, n_components)
        u_k = Σ_j β_jk φ(x_j), of length 1.
    scores : ndarray of shape (n, n_components)
        ⟨u_k, φ(x_t) − μ⟩.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.registration.kernel import kernel_components
    >>> line = np.c_[np.linspace(-1, 1, 20), np.zeros(20)]
    >>> values, beta, scores = kernel_components(line, np.full(20, 1 / 20), 1.0, 2)
    >>> bool(values[0] > 5 * values[1])
    True
    """
    K = _gaussian(points, points, sigma)
    mean = K @ weights
    centred = K - mean[:, None] - mean[None, :] + weights @ mean
    root = np.sqrt(weights)
    n = len(points)
    values, vectors = eigh(root[:, None] * centred * root, subset_by_index=[n - n_components, n - 1])
    values, vectors = np.maximum(values[::-1], 1e-300), vectors[:, ::-1]
    alpha = root[:, None] * vectors / np.sqrt(values)
    beta = alpha - weights[:, None] * alpha.sum(axis=0)
    return values, beta, (K - mean[:, None]).T @ beta


class KernelAlignment:
    """The objective O(P) for one sign pattern, with its gradient with respect to the entries of P.

    Parameters
    ----------
    points, weights : arrays of shape (n, d) and (n,)
        Points of the source and their weights.
    target : array of shape (m, d)
    rho : array of shape (n, m)
        The soft correspondence.
    sigma : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SE, check_gradient
    >>> from mercer.registration import KernelAlignment
    >>> rng = np.random.default_rng(0)
    >>> x, y, rho = rng.standard_normal((6, 3)), rng.standard_normal((5, 3)), rng.standard_normal((6, 5))
    >>> objective = KernelAlignment(x, np.full(6, 1 / 6), y, rho, 1.0)
    >>> check_gradient(objective.value, objective.gradient, SE(3)) < 1e-6
    True
    """

    def __init__(self, points: np.ndarray, weights: np.ndarray, target: np.ndarray, rho: np.ndarray, sigma: float):
        self.points, self.target, self.sigma = points, target, sigma
        self.rho = weights[:, None] * rho
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def _terms(self, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = pose.tobytes()
        if self._last is None or self._last[0] != key:
            moved = move(pose, self.points)
            self._last = key, moved, self.rho * _gaussian(moved, self.target, self.sigma)
        return self._last[1:]

    def value(self, pose: np.ndarray) -> float:
        """Return −O(P), which is minimised."""
        return -float(self._terms(pose)[1].sum())

    def gradient(self, pose: np.ndarray) -> np.ndarray:
        """Return the derivatives of −O(P) with respect to the entries of P."""
        moved, terms = self._terms(pose)
        force = (terms.sum(axis=1)[:, None] * moved - terms @ self.target) / self.sigma**2
        out = np.zeros_like(pose)
        out[:-1, :-1], out[:-1, -1] = force.T @ self.points, force.sum(axis=0)
        return out


class _NystromFeatures:
    """Features z(x) = K_LL^(−1/2) k(L, x) for landmarks L, and the components of a cloud in them."""

    def __init__(self, points: np.ndarray, sigma: float, count: int) -> None:
        self.sigma = sigma
        self.landmarks = Cloud(np.ascontiguousarray(points)).thinned_to(count)[0]
        values, vectors = np.linalg.eigh(_gaussian(self.landmarks, self.landmarks, sigma))
        kept = values > 1e-10 * values[-1]
        self.root = vectors[:, kept] / np.sqrt(values[kept])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _gaussian(x, self.landmarks, self.sigma) @ self.root

    def components(self, x: np.ndarray, w: np.ndarray, D: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of weighted points and D leading eigenvectors of their covariance, computed in blocks."""
        mean: Any = 0.0
        second: Any = 0.0
        for first in range(0, len(x), 4096):
            rows = slice(first, first + 4096)
            z = self(x[rows])
            mean = mean + w[rows] @ z
            second = second + z.T @ (w[rows, None] * z)
        vectors = np.linalg.eigh(second - np.outer(mean, mean))[1]
        return mean, vectors[:, ::-1][:, :D]


class KernelRegistration(Registration):
    """Align whole clouds from any rotation, without an initial guess, by their kernel principal components.

    The components describe the whole shape. They differ if the clouds overlap only in part; use
    :class:`FeatureMatching` for such clouds.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the Gaussian kernel, in units of the root mean squared radius of the target.
    n_components : int, default=3
        Number D of principal components. The search starts one ascent from each of the 2^D sign patterns.
    n_points : int, default=100
        Number of points that represent each cloud in the kernel matrices: means of grid cells, weighted by their
        counts.
    features : {"grid", "nystrom"}, default="grid"
        Compute the components from the ``n_points`` means only, or from all points by Nyström features of the kernel.
        The cost grows linearly with the number of points in both cases.
    n_features : int, default=200
        Number of landmarks for ``features="nystrom"``.
    polish : {True, False}, default=True
        Finish with ICP on all points. If False, the pose is the maximum of the kernel objective.
    scale : bool, default=False
        Also estimate a scale factor, from the ratio of the radii.
    max_iter : int, default=20
        Iterations of each ascent.
    n_jobs : int, optional
        Number of threads of the final ICP.

    Attributes
    ----------
    transform_ : ndarray of shape (d + 1, d + 1)
        The estimated transform.
    fitness_, rmse_, radius_ : float
        Share of the source points within ``radius_`` of the target, and their root mean squared distance.
    result_ : RegistrationResult
        Contains ``certified`` and the other poses that fit as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SO
    >>> from mercer.registration import KernelRegistration
    >>> rng = np.random.default_rng(0)
    >>> source = np.vstack([rng.random((200, 3)) * [3, 1, 1], rng.random((150, 3)) * [1, 2, 0.5]])
    >>> target = source @ SO(3).Exp([2.0, -1.5, 1.0]).T + 7
    >>> aligned = KernelRegistration().fit_transform(source, target)
    >>> bool(np.abs(aligned - target).max() < 1e-3)
    True

    References
    ----------
    .. [Xiong2013] H. Xiong, S. Szedmak and J. Piater. Efficient, general point cloud registration with kernel feature
       maps. CRV, 2013.
    """

    def __init__(
        self,
        sigma: float = 1.0,
        n_components: int = 3,
        *,
        n_points: int = 100,
        features: str = "grid",
        n_features: int = 200,
        polish: bool = True,
        scale: bool = False,
        max_iter: int = 20,
        n_jobs: int | None = None,
    ) -> None:
        self.sigma = sigma
        self.n_components = n_components
        self.n_points = n_points
        self.features = features
        self.n_features = n_features
        self.polish = polish
        self.scale = scale
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _align(self, source: Cloud, target: Cloud, weights: np.ndarray | None) -> tuple[np.ndarray, dict[str, Any]]:
        polish, scale = check_flag("polish", self.polish), check_flag("scale", self.scale)
        poses, values = self.candidates(source, target, weights)
        facts: dict[str, Any] = {"method": "kernel"}
        if not polish:
            judge = Judge(source, target)
            rough = judge.rough(poses, 3 * judge.r) if source.dimension <= 3 and not scale else values
            return poses[int(np.argmax(rough))], facts
        return polished(source, target, weights, poses, facts, scale)

    def candidates(
        self, source: Cloud, target: Cloud, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the maxima found from the sign patterns, and their objective values."""
        sigma = check_positive("sigma", self.sigma)
        count, D = check_count("n_points", self.n_points, 8), check_count("n_components", self.n_components)
        max_iter = check_count("max_iter", self.max_iter)
        (x, w), (y, v) = _representatives(source, weights, count), _representatives(target, None, count)
        D = min(D, len(x) - 1, len(y) - 1)
        mx, my = w @ x, v @ y
        rx, ry = (math.sqrt(float(q @ ((p - m) ** 2).sum(axis=1))) for p, m, q in ((x, mx, w), (y, my, v)))
        factor = ry / rx if check_flag("scale", self.scale) else 1.0
        x, y = (x - mx) * factor / ry, (y - my) / ry
        objective_of = self._objectives(
            x, w, y, v, sigma, D,
            lambda: (((source.points - mx) * factor / ry, weights), ((target.points - my) / ry, None)),
        )  # fmt: skip
        space = SE(x.shape[1])
        poses, values = [], []
        for signs in itertools.product((1.0, -1.0), repeat=D):
            objective, partner = objective_of(np.array(signs))
            start = umeyama(x, y[partner], w)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a rough maximum will do: the polish follows
                best = minimize(
                    objective.value,
                    objective.gradient,
                    space,
                    start,
                    method="conjugate-gradient",
                    tol=1e-2,
                    max_iter=max_iter,
                )
            poses.append(best.x)
            values.append(-best.value)
        moved = np.array(poses)
        moved[:, :-1, -1] = ry * moved[:, :-1, -1] + my - factor * (moved[:, :-1, :-1] @ mx)
        moved[:, :-1, :-1] *= factor
        return np.ascontiguousarray(moved), np.array(values)

    def _objectives(
        self, x: np.ndarray, w: np.ndarray, y: np.ndarray, v: np.ndarray, sigma: float, D: int, whole: Any
    ) -> Any:
        """Return a function from signs to the objective and to the most likely match in y of each point of x."""
        if check_choice("features", self.features, ("grid", "nystrom")) == "grid":
            _, _, scores = kernel_components(x, w, sigma, D)
            _, beta, _ = kernel_components(y, v, sigma, D)

            def of(signs: np.ndarray) -> tuple[Any, np.ndarray]:
                rho = (scores * signs) @ beta.T + v
                return KernelAlignment(x, w, y, rho, sigma), np.argmax(rho / v, axis=1)

            return of
        count = check_count("n_features", self.n_features, 8)
        z: list[Any] = []
        mean: list[Any] = []
        vectors: list[Any] = []
        for points, weights in whole():
            features = _NystromFeatures(points, sigma, count)
            shares = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
            middle, leading = features.components(points, shares, D)
            for items, item in ((z, features), (mean, middle), (vectors, leading)):
                items.append(item)
        scores, near = (z[0](x) - mean[0]) @ vectors[0], z[1](y)

        def of_features(signs: np.ndarray) -> tuple[Any, np.ndarray]:
            psi = (scores * signs) @ vectors[1].T + mean[1]
            rho = psi @ z[1].root.T
            return KernelAlignment(x, w, z[1].landmarks, rho, sigma), np.argmax(psi @ near.T, axis=1)

        return of_features


def _representatives(cloud: Cloud, weights: np.ndarray | None, count: int) -> tuple[np.ndarray, np.ndarray]:
    if weights is None:
        points, counts = cloud.thinned_to(count)
        return points, counts / counts.sum()
    if len(cloud) <= 1.3 * count:
        kept = weights > 0
        return cloud.points[kept], weights[kept] / weights[kept].sum()
    # thinning of weighted points: draw by weight, which keeps every moment in expectation
    rng = np.random.default_rng(0)
    chosen, counts = np.unique(rng.choice(len(cloud), 4 * count, p=weights / weights.sum()), return_counts=True)
    chosen = chosen[np.argsort(-counts, kind="stable")][: 2 * count]
    return cloud.points[chosen], np.full(len(chosen), 1 / len(chosen))


def polished(
    source: Cloud,
    target: Cloud,
    weights: np.ndarray | None,
    poses: np.ndarray,
    facts: dict[str, Any],
    scale: bool = False,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Choose among rough poses, refine the best on all points, and compute its evidence."""
    if scale or source.dimension > 3:
        return _nearest_distances(source, target, weights, poses, facts, scale)
    judge = Judge(source, target)
    ranking = challenged(judge, best_pose(judge, poses, reach=8 * judge.r, most=4))
    if ranking is None:
        raise ValueError("no pose was found")
    return finished(source, target, weights, judge, ranking, facts)


def finished(
    source: Cloud, target: Cloud, weights: np.ndarray | None, judge: Judge, ranking: Found, facts: dict[str, Any]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Refine the best pose on all points."""
    limit = max(3 * max(source.spacing, target.spacing), 1.5 * judge.r)
    pose, n_iter, converged = settled(source, target, weights, ranking.pose, limit, 50, 1e-6)
    if np.isfinite(pose).all() and judge.evidence(pose).score >= 0.97 * ranking.evidence.score:
        facts["n_iter"], facts["converged"] = n_iter, converged
    else:  # the fine stage drifted off: keep what was found
        pose = ranking.pose
    certified, reason, figures = verdict(ranking)
    alike = [other for other, evidence in ranking.others if evidence.score >= 0.9 * ranking.evidence.score]
    facts |= {"certified": certified, "reason": reason, "evidence": figures, "alternatives": alike}
    facts["method"] += " + generalized icp"
    return pose, facts


def _nearest_distances(
    source: Cloud, target: Cloud, weights: np.ndarray | None, poses: np.ndarray, facts: dict[str, Any], scale: bool
) -> tuple[np.ndarray, dict[str, Any]]:
    """Run ICP from each pose and keep the smallest mean nearest distance; any dimension, also with scaling."""
    best, least = poses[0], math.inf
    for pose in poses:
        after, n_iter, converged = closest_points(source, target, weights, pose, math.inf, 1.0, 50, 1e-5, scale)
        moved = move(after, source.points)
        mean = float(np.sqrt(target.nearest(moved)[0]).mean())
        if scale:  # a cloud that shrinks to a point lies on the target, but not the target on it
            back = np.sqrt(Cloud(np.ascontiguousarray(moved)).nearest(target.points)[0])
            mean += float(back.mean())
        if mean < least:
            best, least = after, mean
            facts["n_iter"], facts["converged"] = n_iter, converged
    facts["method"] += " + point icp"
    facts["reason"] = "certificates need rigid motions in 2 or 3 dimensions"
    return best, facts
