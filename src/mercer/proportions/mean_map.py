"""The mean map: means of the classes from means of bags, then a conditional exponential model.

With m_k the mean of φ over bag k, p_k its share of the positive class and ω_k the weight of the bag::

    class means        min Σ_k ω_k ‖m_k − p_k μ₊ − (1 − p_k) μ₋‖²     over μ₊, μ₋
    mean of y φ(x)     μ = p μ₊ − (1 − p) μ₋                          p the share over all rows
    model              min (1/N) Σ_i log(e^{f_i} + e^{−f_i}) − ⟨w, μ⟩ − b (2p − 1) + α ‖w‖²,   f_i = ⟨w, φ(x_i)⟩ + b

The first step assumes that the rows of a class have the same distribution in all bags. The Laplacian variant gives
every bag its own class means, which are close if bags are similar (``similarity`` s_kl, strength γ)::

    min Σ_k ω_k ‖m_k − p_k μ₊ₖ − (1 − p_k) μ₋ₖ‖² + (γ/2) Σ_kl s_kl (‖μ₊ₖ − μ₊ₗ‖² + ‖μ₋ₖ − μ₋ₗ‖²)
    μ = Σ_k q_k (p_k μ₊ₖ − (1 − p_k) μ₋ₖ)                             q_k the bag's share of all rows

As γ grows, it approaches the first form. Everything is linear in the means of bags, so it also works with kernels.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from mercer._linalg import conjugate_gradients
from mercer._state.saved import Fields, Objects, Optional
from mercer._validation import check_choice, check_count, check_positive
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning, IllPosedWarning
from mercer.learning.newton import minimize_by_newton
from mercer.proportions._base import Problem, ProportionEstimator, Solution, Space
from mercer.proportions._means import BagMeans, bag_means
from mercer.proportions._shares import labelled_alone, share_threshold

__all__ = ["MeanMap"]

_EQUAL = 1e-9  # spread of shares that counts as none
_ARMIJO = 1e-4


class MeanMap(ProportionEstimator):
    """A conditional exponential model from estimated class means.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of ‖w‖² (λ in the literature).
    weighted : bool, default=True
        Weight bags by their number of rows in the estimate of class means, because the mean of a large bag is more
        accurate. With False all bags have the same weight. Both are multiplied by ``bag_weight``.
    laplacian : float or None, default=None
        γ: class means that vary smoothly over similar bags. None: the same class means in all bags.
    similarity : float, array of shape (n_bags, n_bags) or None, default=None
        Similarity of bags, for ``laplacian``: the width s of exp(−‖m_k − m_l‖ / s), None for the median distance; or a
        symmetric nonnegative matrix. Labelled rows are bags of one here. Their rows and columns of the matrix follow
        those of the bags: first rows without a bag, then rows within bags, each in order.
    fit_intercept : bool or "auto", default="auto"
        Whether to fit an unpenalised offset. "auto": with features, not with a kernel. The feature vectors of most
        kernels have norm 1, so with common values of ``alpha`` the offset would dominate and all rows would get the
        same class.
    threshold : {"model", "shares"}, default="model"
        Decision threshold: 0, or the threshold that best fits the shares of the training bags (of all with the least
        absolute error, by ``bag_weight``, the one nearest to 0), which is added to the offset. ``"shares"`` is usually
        better with a strong penalty, which noise in the class means requires and which distorts the offset.
    kernel : Kernel, "precomputed" or None
        None is linear.
    map : transformer, optional
        A map of `mercer.maps`; the model is linear in its features.
    tol : float, default=1e-8
        Norm of the gradient, relative to that at w = 0 (or to 1, if that is larger), at which training stops.
    max_iter : int, default=200
        Maximum number of Newton steps.
    n_jobs : int or None
        Threads for kernel values.
    verbose : int, default=0
        Show the progress of a large kernel matrix.

    Attributes
    ----------
    bag_error_, constant_bag_error_, majority_bag_error_ : float
        Mean absolute errors of shares on the training bags: of the predictions, of the best constant share for all
        bags, and of the most frequent class for all rows. A `ConstantAnswerWarning` is raised if the first is not below
        the second.
    classes_ : ndarray
    coef_ : ndarray of shape (1, d) or (n_classes, d)
        Without a kernel.
    intercept_ : ndarray
    class_means_ : ndarray of shape (2, d), or a list of these
        Estimated means of the rest and of the class: with two classes in the order of ``classes_``; with more, one
        array for each class against the rest. Not with a kernel. With ``laplacian``, averages over bags.
    gradient_norm_ : float, or one for each class
        Final norm of the gradient. The objective is within gradient_norm_² / (4 α) of its minimum for the current
        offset.
    n_iter_ : int, or one for each class

    Notes
    -----
    Bounds on a share are replaced by their midpoint. Labelled rows count as bags of one, even if they are in a bag.
    With equal shares in all bags the class means are not determined: both are set to the mean of all rows, with an
    `IllPosedWarning`. With labels for all rows and no bags this is logistic regression. An overall share of 0 or 1 is
    moved inwards by 1 / (2 N + 2), because the offset would be infinite.

    References
    ----------
    .. [Quadrianto2009] N. Quadrianto, A. Smola, T. Caetano and Q. Le. Estimating labels from label proportions. Journal
       of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.proportions import MeanMap, make_bags
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 2)) + 3 * y[:, None]
    >>> model = MeanMap().fit(X, bags=make_bags(y, 8, random_state=0))
    >>> model.score(X, y) > 0.95
    True
    >>> bool(np.abs(model.class_means_ - [[0, 0], [3, 3]]).max() < 0.5)
    True
    """

    _parts_how = "bags"
    saved = ProportionEstimator.saved | Fields(
        class_means_=Optional(Objects()), gradient_norm_=Objects(), n_iter_=Objects()
    )

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        weighted: bool = True,
        laplacian: float | None = None,
        similarity: Any = None,
        fit_intercept: bool | str = "auto",
        threshold: str = "model",
        kernel: Any = None,
        map: Any = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.weighted = weighted
        self.laplacian = laplacian
        self.similarity = similarity
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.kernel = kernel
        self.map = map
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_positive("alpha", self.alpha)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.weighted, (bool, np.bool_)):
            raise ValueError(f"weighted must be True or False, got {self.weighted!r}")
        if self.fit_intercept != "auto" and not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ValueError(f"fit_intercept must be True, False or 'auto', got {self.fit_intercept!r}")
        check_choice("threshold", self.threshold, ("model", "shares"))
        if self.laplacian is not None:
            check_positive("laplacian", self.laplacian)
        elif self.similarity is not None:
            raise ValueError("similarity is of no use without laplacian")

    def _solve(self, space: Space, problem: Problem, random: np.random.RandomState) -> Solution:
        means = bag_means(problem)
        part = _parts(problem)
        least = 0.5 / (problem.n + 1)
        share = float(np.clip(means.target[: means.inside] @ part, least, 1 - least))
        over, over_class = self._operators(space, means, part, share)
        # The rows count as their bags do: by the weight of the bag, and of the row within it.
        u = np.asarray(means.average[: means.inside].T @ part).ravel()
        X = space.features if space.linear else space.coordinates()
        mu = np.asarray(X.T @ (means.average.T @ over)).ravel()
        offset = space.features is not None if self.fit_intercept == "auto" else bool(self.fit_intercept)
        w, b, norm, steps = self._model(X, u, mu, share, float(offset))
        info: dict[str, Any] = {"gradient_norm": norm, "n_iter": steps}
        if space.linear:
            averages = over_class @ means.features(space)
            info["class_means"] = np.asarray(averages.toarray() if hasattr(averages, "toarray") else averages)
        weights = space.weights_of(w)
        if self.threshold == "shares":
            scores = np.asarray(space.scores(weights)) + b
            b += share_threshold(*labelled_alone(scores, problem))[1]
        return Solution(weights, b, info)

    def _check_state(self) -> None:
        super()._check_state()
        means = getattr(self, "class_means_", None)
        if means is not None:
            parts = means if isinstance(means, list) else [means]
            if any(np.shape(part) != (2, self.coef_.shape[1]) or not np.isfinite(part).all() for part in parts):
                raise ValueError(f"class_means_ must be finite, of shape (2, {self.coef_.shape[1]})")

    # ------------------------------------------------------------------ class means

    def _operators(
        self, space: Space, means: BagMeans, part: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients over the means of bags: of μ, shape (n_means,); of the class means, (2, n_means)."""
        weight = means.bag_weight * (means.size if self.weighted else 1.0)
        p, counted = means.target, means.bag_weight > 0
        if np.ptp(p[counted]) <= _EQUAL:
            message = "the shares of all bags are equal, so that they do not determine the means of the classes"
            warn_caller(message, IllPosedWarning)
            whole = np.append(part, np.zeros(len(p) - means.inside))
            return (2.0 * share - 1.0) * whole, np.array([whole, whole])
        if self.laplacian is not None:
            return self._smooth(space, means, weight, part)
        design = np.column_stack([1.0 - p, p])
        scale = np.sqrt(weight / weight.max())
        classes = np.linalg.pinv(design * scale[:, None], rcond=1e-14) * scale
        return share * classes[1] - (1.0 - share) * classes[0], classes

    def _smooth(
        self, space: Space, means: BagMeans, weight: np.ndarray, part: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The Laplacian variant: class means of every bag, from one linear system of twice as many equations."""
        n, p = len(weight), means.target
        S = self._similarities(space, means)
        L = np.diag(S.sum(axis=1)) - S
        weight = weight / weight.sum()
        gamma = float(self.laplacian)  # type: ignore[arg-type]
        cross = np.diag(weight * p * (1.0 - p))
        system = np.block(
            [[np.diag(weight * (1.0 - p) ** 2) + gamma * L, cross], [cross, np.diag(weight * p**2) + gamma * L]]
        )
        right = np.vstack([np.diag(weight * (1.0 - p)), np.diag(weight * p)])
        # Where a component of the graph of bags has one share only, some directions are free: the least norm.
        solved = scipy.linalg.lstsq(system, right, cond=1e-13)[0]
        part = np.append(part, np.zeros(n - means.inside))
        negative, positive = solved[:n], solved[n:]
        over = (part * p) @ positive - (part * (1.0 - p)) @ negative
        share = float(part @ p)
        averages = (
            (part * (1.0 - p)) @ negative / max(1.0 - share, 1e-300),
            (part * p) @ positive / max(share, 1e-300),
        )
        return over, np.array(averages)

    def _similarities(self, space: Space, means: BagMeans) -> np.ndarray:
        n, given = len(means.target), self.similarity
        if given is not None and not isinstance(given, Real):
            S = np.asarray(given, np.float64)
            if S.shape != (n, n):
                bags = n - means.labelled
                rows = f"{bags} bags" + (f" and {means.labelled} labelled rows" if means.labelled else "")
                raise ValueError(f"similarity must have shape ({n}, {n}), one row for each of {rows}, got {S.shape}")
            if not np.isfinite(S).all() or (S < 0).any() or np.abs(S - S.T).max() > 1e-9 * max(S.max(), 1e-300):
                raise ValueError("similarity must be a symmetric matrix of finite numbers of at least 0")
            return S
        if space.linear:
            m = means.features(space)
            m = m.toarray() if hasattr(m, "toarray") else m
            distance = cdist(m, m)
        else:
            G = means.gram(space)
            distance = np.sqrt(np.maximum(np.diag(G)[:, None] + np.diag(G) - 2.0 * G, 0.0))
        width = (
            float(np.median(distance[~np.eye(n, dtype=bool)])) if given is None else check_positive("similarity", given)
        )
        return np.exp(-distance / max(width, 1e-300))

    # ------------------------------------------------------------------ the convex problem

    def _model(
        self, X: Any, u: np.ndarray, mu: np.ndarray, share: float, one: float
    ) -> tuple[np.ndarray, float, float, int]:
        """Weights, offset, norm of the gradient and steps of Newton's method with conjugate gradients.

        The offset is the weight, without a penalty, of a feature that is ``one`` everywhere: 1, or 0 for no offset.
        """
        problem = _MeanProblem(X, u, np.append(mu, one * (2.0 * share - 1.0)), float(self.alpha), one)
        enough = self.tol * max(problem.first, 1.0)
        v, steps, norm, _ = minimize_by_newton(problem, np.zeros(problem.d + 1), enough, self.max_iter)
        if norm > enough:
            message = f"stopped after {steps} steps at a gradient of {norm:.2g}: scale the features, or raise tol"
            warn_caller(message, ConvergenceWarning)
        return v[:-1], float(v[-1]), norm, steps


class _MeanProblem:
    """Σ_i u_i log(2 cosh f_i) − ⟨v, towards⟩ + α ‖w‖² with f = X w + one · b and v = (w, b), from v = 0 on."""

    def __init__(self, X: Any, u: np.ndarray, towards: np.ndarray, alpha: float, one: float) -> None:
        self.X, self.u, self.towards, self.alpha, self.one = X, u, towards, alpha, one
        self.d = X.shape[1]
        self.f, self.tanh = np.zeros(X.shape[0]), np.zeros(X.shape[0])  # follow v
        self.norm = self.first = float(np.linalg.norm(self.gradient(np.zeros(self.d + 1))))

    def outputs(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ v[: self.d]).ravel() + self.one * v[self.d]

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        return np.append(np.asarray(self.X.T @ values).ravel(), self.one * values.sum())

    def value(self, v: np.ndarray, f: np.ndarray) -> float:
        w = v[: self.d]
        return float(self.u @ np.logaddexp(f, -f) - v @ self.towards + self.alpha * (w @ w))

    def gradient(self, v: np.ndarray) -> np.ndarray:
        self.tanh = np.tanh(self.f)
        gradient = self.adjoint(self.u * self.tanh) - self.towards
        gradient[: self.d] += 2.0 * self.alpha * v[: self.d]
        self.norm = float(np.linalg.norm(gradient))
        return gradient

    def direction(self, v: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        curvature = self.u * (1.0 - self.tanh**2)

        def product(z: np.ndarray) -> np.ndarray:
            image = self.adjoint(curvature * self.outputs(z))
            image[: self.d] += 2.0 * self.alpha * z[: self.d]
            return image

        step = conjugate_gradients(product, -gradient, min(0.1, np.sqrt(self.norm / max(self.first, 1.0))))
        return step if step.any() else -gradient

    def length(self, v: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> float:
        moved = self.outputs(direction)
        now, slope, length = self.value(v, self.f), float(gradient @ direction), 1.0
        while self.value(v + length * direction, self.f + length * moved) > (
            now + _ARMIJO * length * slope + 1e-14 * abs(now)
        ):
            length *= 0.5
            if length <= 1e-12:
                return 0.0
        self.f = self.f + length * moved
        return length


def _parts(problem: Problem) -> np.ndarray:
    """The part of all rows that each bag is, and each labelled row without one."""
    single = problem.single_bags()
    total = single.bag_weight * np.add.reduceat(single.row_weight, single.offsets[:-1])
    return total / total.sum()
