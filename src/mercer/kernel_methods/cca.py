"""Canonical correlations of two or more views, of vectors or of objects with a kernel.

In centred coordinates F_v of each view (features; F_v F_vᵀ = K_v), weights W_v of p components and a ridge κ,

    max Σ_{u ≠ v} tr(W_uᵀ F_uᵀ F_v W_v)   subject to   W_vᵀ (F_vᵀ F_v + κ I) W_v = n I   for every view v

Every view has its own constraint; without κ, the projections of each view are uncorrelated and have variance 1. Two
views give the eigenproblem [[0, K₁K₂], [K₂K₁, 0]] α = λ diag(K_v² + κ K_v) α in α_v, w_v = F_vᵀ α_v [Hardoon2004].
Without κ and with invertible K every correlation is 1 for any data: learning needs κ > 0.

With G_v = F_v T_v, T_vᵀ (F_vᵀ F_v + κ I) T_v = I, the weights are T_v B_v with B_vᵀ B_v = I. Two views: singular
vectors of G₁ᵀ G₂ [Bjorck1973]. More views: B_v ← the polar factor of Σ_{u≠v} G_vᵀ G_u B_u, one view at a time, which
never lowers the sum [Horst1961], [Kettenring1971]. G_v comes from a QR decomposition of columns scaled to length 1, so
the correlations of vectors do not depend on the units of their columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Floats, ListOf, Nested, Saved
from mercer._validation import check_choice, check_count, used_examples
from mercer._warnings import warn_caller
from mercer.exceptions import ConvergenceWarning
from mercer.kernel_methods._coordinates import Coordinates
from mercer.kernel_methods._precomputed import is_precomputed
from mercer.kernel_methods.collections import count, generator, objects, seed_of, taken
from mercer.kernels.approximations import chosen_objects
from mercer.kernels.base import Kernel

__all__ = ["CCA", "KernelCCA", "MultiSetCCA", "choose_regularization"]


def _check_ridge(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(f"alpha must be a finite number of at least 0, got {value!r}")
    return float(value)


def _same_counts(views: Sequence[Any]) -> int:
    counts = [count(view) for view in views]
    if len(set(counts)) != 1:
        raise ValueError(f"all views must hold equally many objects, got {counts}")
    return counts[0]


class _Whitened(NamedTuple):
    """A view in coordinates in which its constraint is that of orthonormal columns."""

    G: np.ndarray  # coordinates of the objects
    T: np.ndarray  # from weights of these coordinates to weights of the features
    lengths: np.ndarray  # of the features' columns: what a weight is compared by


def _column_means(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Means to the last digit: a sum over rows alone is off by as many digits as the number of rows has."""
    means = np.average(X, axis=0, weights=weights)
    return means + np.average(X - means, axis=0, weights=weights)


def _column_lengths(F: np.ndarray) -> np.ndarray:
    """Euclidean lengths of columns of any size, without overflow."""
    largest = np.abs(F).max(axis=0, initial=0.0)
    return largest * np.linalg.norm(F / np.where(largest > 0, largest, 1.0), axis=0)


def _whitened(F: np.ndarray, ridge: float, rounding: np.ndarray | float = 0.0) -> _Whitened:
    """Coordinates G = F T with Tᵀ(FᵀF + κI)T = I on the directions that F has.

    ``rounding`` is the length that rounding alone can give a column: a shorter one is constant.
    """
    lengths = _column_lengths(F)
    varying = np.flatnonzero(lengths > rounding)
    scale, T = lengths[varying], np.zeros((F.shape[1], 0))
    if not len(varying):
        return _Whitened(np.zeros((len(F), 0)), T, lengths)
    Q, R = np.linalg.qr(F[:, varying] / scale)
    U, values, Vt = np.linalg.svd(R)
    noise = np.linalg.norm(np.broadcast_to(rounding, lengths.shape)[varying] / scale)
    rank = int((values > values[0] * max(F.shape) * np.finfo(np.float64).eps + noise).sum())
    directions = np.zeros((F.shape[1], rank))
    directions[varying] = Vt[:rank].T / (values[:rank] * scale[:, None])
    if ridge == 0.0:
        return _Whitened(Q @ U[:, :rank], directions, lengths)
    # κ ‖w‖² is measured in the units of the features: rows for the ridge below those of the objects, and QR of both.
    if rank == F.shape[1]:
        basis = np.eye(rank)
    else:
        row_space = np.zeros((F.shape[1], rank))
        row_space[varying] = scale[:, None] * Vt[:rank].T
        basis = np.linalg.qr(row_space)[0]
    reduced = F @ basis
    both = np.vstack([reduced, math.sqrt(ridge) * np.eye(rank)])
    size = _column_lengths(both)
    Q, R = np.linalg.qr(both / size)
    T = basis @ (solve_triangular(R, np.eye(rank)) / size[:, None])
    return _Whitened(Q[: len(F)], T, lengths)


def canonical_weights(
    features: list[np.ndarray],
    ridge: float,
    n_components: int,
    rounding: Sequence[np.ndarray | float] | None = None,
    total: float | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the weights of each view's centred features, and the correlations, largest first.

    ``total`` is the sum of the row weights; features are already multiplied by the roots of these weights. Without κ,
    the correlation of a component is the mean over the pairs of views, and all projections have variance 1.
    """
    n = len(features[0]) if total is None else total
    rounding = [0.0] * len(features) if rounding is None else rounding
    views = [_whitened(F, ridge, least) for F, least in zip(features, rounding, strict=True)]
    most = min(view.G.shape[1] for view in views)
    if n_components > most:
        raise ValueError(f"n_components must be at most {most}, the rank of the smallest view, got {n_components}")
    G = [view.G for view in views]
    blocks, correlations = _two_views(G[0], G[1], n_components) if len(G) == 2 else _more_views(G, n_components)
    weights = [np.sqrt(n) * view.T @ block for view, block in zip(views, blocks, strict=True)]
    # The sign that makes the weight with the largest share in the first view's projection positive.
    shares = weights[0] * views[0].lengths[:, None]
    peaks = shares[np.abs(shares).argmax(axis=0), np.arange(n_components)]
    return [w * np.where(peaks < 0, -1.0, 1.0) for w in weights], correlations


def _two_views(G: np.ndarray, H: np.ndarray, n_components: int) -> tuple[list[np.ndarray], np.ndarray]:
    left, correlations, right = np.linalg.svd(G.T @ H, full_matrices=False)
    return [left[:, :n_components], right[:n_components].T], correlations[:n_components]


_ROUNDS = 2000  # of Horst's iteration: it ends when the sum stays the same
_STILL = 1e-13


def _more_views(G: list[np.ndarray], n_components: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Orthonormal blocks that maximise the summed agreement of all pairs, and the mean correlations.

    The sum has local maxima. The starts are the solution under the weaker constraint that only the sum of the variances
    is fixed, and for each view the directions that the other views together predict best.
    """
    J = len(G)
    ends = np.cumsum([0, *(g.shape[1] for g in G)])
    joined = np.hstack(G)
    M = joined.T @ joined
    for start, stop in pairwise(ends):
        M[start:stop, start:stop] = 0.0
    parts = [slice(start, stop) for start, stop in pairwise(ends)]
    top = eigh(M, subset_by_index=(len(M) - n_components, len(M) - 1))[1]
    starts = [np.vstack([_polar(top[part]) for part in parts])]
    for part in parts:
        own = np.linalg.svd(M[part], full_matrices=False)[0][:, :n_components]
        start = M[:, part] @ own
        starts.append(np.vstack([own if other is part else _polar(start[other]) for other in parts]))
    runs = [_horst(M, parts, start) for start in starts]
    _, B, converged = max(runs, key=lambda run: run[0])
    if not converged:
        warn_caller(f"the projections of {J} views still changed after {_ROUNDS} rounds", ConvergenceWarning)
    # The sum does not change when all views turn together: components are its principal axes.
    values, turn = np.linalg.eigh(B.T @ M @ B)
    B = B @ turn[:, ::-1]
    return [B[part] for part in parts], values[::-1] / (J * (J - 1))


def _horst(M: np.ndarray, parts: list[slice], B: np.ndarray) -> tuple[float, np.ndarray, bool]:
    """The summed agreement tr(BᵀMB), the blocks, and whether the rounds came to rest."""
    value = float((B * (M @ B)).sum())
    for _ in range(_ROUNDS):
        B = B.copy()
        for part in parts:
            B[part] = _polar(M[part] @ B)
        before, value = value, float((B * (M @ B)).sum())
        if value - before <= _STILL * max(abs(value), 1e-300):
            return value, B, True
    return value, B, False


def _polar(A: np.ndarray) -> np.ndarray:
    """The matrix with orthonormal columns that has the largest inner product with A."""
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    return U @ Vt


def pairwise_correlations(projections: list[np.ndarray]) -> np.ndarray:
    """Return for each component the mean correlation over pairs of views; 0 where a projection is constant."""
    columns = []
    for P in projections:
        P = P - P.mean(axis=0)
        norm = np.sqrt(np.square(P).sum(axis=0))
        columns.append(P / np.where(norm > 0, norm, 1.0))
    pairs = [(columns[u] * columns[v]).sum(axis=0) for v in range(len(columns)) for u in range(v)]
    return np.mean(pairs, axis=0)


class _Views(Saved, Estimator):
    """What the three estimators share: fitted weights to projections and scores."""

    def _project(self, views: Sequence[Any]) -> list[np.ndarray]:
        raise NotImplementedError

    def _solve(
        self,
        features: list[np.ndarray],
        rounding: Sequence[np.ndarray] | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        ridge, n_components = _check_ridge(self.alpha), check_count("n_components", self.n_components)
        weights, self.correlations_ = canonical_weights(
            features, ridge, n_components, rounding, None if sample_weight is None else float(sample_weight.sum())
        )
        self.weights_ = [np.ascontiguousarray(W) for W in weights]  # as a model file gives them back

    def _check_state(self) -> None:
        """Of the weights; the lengths of the views are for the estimators."""
        check_count("n_components", self.n_components)
        _check_ridge(self.alpha)
        if len(self.weights_) < 2:
            raise ValueError("weights_ must be a list of one array for each view")

    def _held_out(self, views: Sequence[Any]) -> np.ndarray:
        projections = self._project(views)
        if len(projections[0]) < 2:
            raise ValueError("correlations need at least 2 objects")
        return pairwise_correlations(projections)


class MultiSetCCA(_Views):
    """Canonical correlation analysis of two or more sets of variables.

    Find weights of each view so that the projections of all views agree: min Σ_{u,v} ‖X_u W_u − X_v W_v‖² where the
    projections of each view are uncorrelated and have variance 1. All components are learned jointly. They are rotated
    so that the correlations of different components, summed over the pairs of views, are 0. Two views are solved
    exactly. With J > 2 views, the solution is the best of J + 1 local maxima of Horst's iteration.

    Parameters
    ----------
    n_components : int, default=1
        Projections of each view.
    alpha : float, default=0.0
        κ, added to the diagonals of X_vᵀ X_v (sums over the objects, not means). At 0 the correlations do not depend
        on the units of the variables; a larger κ is measured in these units.

    Attributes
    ----------
    weights_ : list of ndarray of shape (n_variables, n_components)
        Weights of the centred variables of each view.
    means_ : list of ndarray
        Means of the variables of each view.
    correlations_ : ndarray of shape (n_components,)
        Without regularization the mean correlation over the pairs of views, largest first; with two views these are
        the canonical correlations.

    References
    ----------
    .. [Horst1961] P. Horst. Relations among m sets of measures. Psychometrika 26, 1961.
    .. [Kettenring1971] J. Kettenring. Canonical analysis of several sets of variables. Biometrika 58, 1971.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import MultiSetCCA
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(300, 1))
    >>> views = [np.hstack([z + 0.1 * rng.normal(size=z.shape), rng.normal(size=(300, 2))]) for _ in range(3)]
    >>> cca = MultiSetCCA().fit(views)
    >>> bool(cca.correlations_[0] > 0.98), len(cca.transform(views))
    (True, 3)
    """

    version = 2  # regularization is alpha
    saved = Fields(
        weights_=ListOf(Floats(None, "n_components")),
        means_=ListOf(Floats(None), "weights_"),
        correlations_=Floats("n_components"),
    )

    def __init__(self, n_components: int = 1, alpha: float = 0.0) -> None:
        self.n_components = n_components
        self.alpha = alpha

    def fit(self, views: Sequence[Any], y: Any = None, sample_weight: Any = None) -> MultiSetCCA:
        """Fit to views of objects.

        Parameters
        ----------
        views : list of arrays of shape (n_objects, n_variables of the view)
        y : ignored
        sample_weight : array of n_objects numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : MultiSetCCA
        """
        arrays = self._arrays(views)
        used, weights = used_examples(sample_weight, _same_counts(arrays))
        if used is not None:
            arrays = [X[used] for X in arrays]
        if len(arrays[0]) < 2:
            raise ValueError("views must hold at least 2 objects")
        means = [_column_means(X, weights) for X in arrays]
        # A column far from 0 has few digits left after its mean is taken away.
        eps = np.finfo(np.float64).eps
        rounding = [4 * eps * np.sqrt(len(X)) * np.abs(X).max(axis=0) for X in arrays]
        roots = 1.0 if weights is None else np.sqrt(weights)[:, None]
        self._solve([(X - mean) * roots for X, mean in zip(arrays, means, strict=True)], rounding, weights)
        self.means_ = means
        return self

    def transform(self, views: Sequence[Any]) -> list[np.ndarray]:
        """Return the projections of each view, shape (n_objects, n_components).

        Parameters
        ----------
        views : sequence of arrays of shape (n_objects, n_features of the view)

        Returns
        -------
        list of arrays of shape (n_objects, n_components)
        """
        return self._project(views)

    def score(self, views: Sequence[Any], y: Any = None) -> float:
        """Return the mean correlation of the projections of these objects, over components and pairs of views."""
        return float(self._held_out(views).mean())

    def _arrays(self, views: Any) -> list[np.ndarray]:
        if isinstance(views, np.ndarray) or not hasattr(views, "__len__") or len(views) < 2:
            raise ValueError("views must be a list of at least two arrays")
        return [check_array(X, dtype=np.float64, input_name=f"views[{v}]") for v, X in enumerate(views)]

    def _project(self, views: Sequence[Any]) -> list[np.ndarray]:
        check_is_fitted(self)
        arrays = self._arrays(views)
        if len(arrays) != len(self.weights_):
            raise ValueError(f"views must be a list of {len(self.weights_)} arrays, got {len(arrays)}")
        for v, (X, mean) in enumerate(zip(arrays, self.means_, strict=True)):
            if X.shape[1] != len(mean):
                raise ValueError(f"views[{v}] must have {len(mean)} variables, got {X.shape[1]}")
        _same_counts(arrays)
        return [(X - mean) @ W for X, mean, W in zip(arrays, self.means_, self.weights_, strict=True)]

    def _check_state(self) -> None:
        super()._check_state()
        _same_lengths(self.weights_, self.means_)


class CCA(MultiSetCCA):
    """Canonical correlation analysis of two sets of variables.

    max w₁ᵀ C₁₂ w₂ subject to w_vᵀ C_vv w_v = 1; further pairs are uncorrelated with earlier ones. Time and memory are
    linear in the number of objects.

    Parameters
    ----------
    n_components : int, default=1
        Number of pairs of projections.
    alpha : float, default=0.0
        κ, added to the diagonals of X_vᵀ X_v (sums over the objects, not means). At 0 the correlations do not depend
        on the units of the variables; a larger κ is measured in these units.

    Attributes
    ----------
    weights_ : list of two ndarrays of shape (n_variables, n_components)
        Weights of the centred variables.
    means_ : list of two ndarrays
        Means of the variables.
    correlations_ : ndarray of shape (n_components,)
        The canonical correlations, largest first.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mercer.kernel_methods import CCA
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> CCA(n_components=3).fit(X, Y).correlations_.round(3)
    array([0.796, 0.201, 0.073])
    """

    def _check_state(self) -> None:
        super()._check_state()
        if len(self.weights_) != 2:
            raise ValueError(f"weights_ must be of two views, found {len(self.weights_)}")

    def fit(self, X: Any, Y: Any = None, sample_weight: Any = None) -> CCA:
        """Fit to two arrays with one row per object.

        Parameters
        ----------
        X, Y : arrays of shape (n_objects, n_variables of the view)
        sample_weight : array of n_objects numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : CCA
        """
        if Y is None:
            raise ValueError("CCA needs two views: fit(X, Y)")
        super().fit([X, Y], None, sample_weight)
        return self

    def transform(self, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        """Return the projections of both views, shape (n_objects, n_components) each.

        Parameters
        ----------
        X : array of shape (n_objects, n_x)
        Y : array of shape (n_objects, n_y)

        Returns
        -------
        pair of arrays of shape (n_objects, n_components)
        """
        left, right = self._project([X, Y])
        return left, right

    def score(self, X: Any, Y: Any = None) -> float:
        """Return the mean correlation of the projections of these objects, over the components."""
        return float(self._held_out([X, Y]).mean())


class KernelCCA(_Views):
    """Canonical correlations between two or more views of objects of any kind.

    Parameters
    ----------
    kernels : Kernel, "precomputed", or list of these
        One kernel for all views, or one for each. A view with ``"precomputed"`` is a kernel matrix: of all pairs of
        training objects in `fit`, later of new objects (rows) with the training objects (columns).
    n_components : int, default=1
        Projections of each view.
    alpha : float, default=1.0
        κ of K² + κ K. Its scale is that of the eigenvalues of the Gram matrices, which grow with the number of objects:
        see `choose_regularization`. With κ = 0 and kernels of full rank every correlation would be 1.
    method : {"exact", "features"}, default="exact"
        ``"exact"``: the Gram matrices, n³ operations. ``"features"``: the kernels' maps (`Kernel.approximate`),
        linear in the number of objects; for more than a few thousand.
    n_features : int, default=200
        Features of each map.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the maps.
    n_jobs : int, optional
        Threads for the Gram matrices.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        Mean over the pairs of views, largest first, as in `MultiSetCCA`. These are regularised correlations of the
        training objects: use `score` on held-out objects to evaluate the model.
    weights_ : list of ndarray
        Weights of the coordinates of each view.

    References
    ----------
    .. [Hardoon2004] D. Hardoon, S. Szedmak and J. Shawe-Taylor. Canonical correlation analysis: an overview with
       application to learning methods. Neural Computation 16, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(200, 1))
    >>> views = [x[:100], x[:100] ** 2]
    >>> plain, square = Linear(), (1.0 + Linear()) ** 2
    >>> others = [x[100:], x[100:] ** 2]
    >>> bool(KernelCCA(plain).fit(views).score(others) < 0.3)
    True
    >>> bool(KernelCCA([square, plain]).fit(views).score(others) > 0.99)
    True
    >>> cca = KernelCCA(["precomputed", plain]).fit([square(views[0]), views[1]])
    >>> bool(cca.score([square(others[0], views[0]), others[1]]) > 0.99)
    True
    """

    version = 2  # regularization is alpha
    saved = Fields(
        weights_=ListOf(Floats(None, "n_components")),
        correlations_=Floats("n_components"),
        coordinates_=ListOf(Nested(Coordinates), "weights_"),
    )

    def __init__(
        self,
        kernels: Kernel | str | Sequence[Kernel | str],
        n_components: int = 1,
        alpha: float = 1.0,
        method: str = "exact",
        n_features: int = 200,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.n_components = n_components
        self.alpha = alpha
        self.method = method
        self.n_features = n_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, views: Sequence[Any], y: Any = None, sample_weight: Any = None) -> KernelCCA:
        """Fit to views of objects.

        Parameters
        ----------
        views : list of collections of objects
            The i-th objects of all views belong together.
        y : ignored
        sample_weight : array of n_objects numbers of at least 0, optional
            An object of weight 2 counts as two; one of weight 0 is left out.

        Returns
        -------
        self : KernelCCA
        """
        check_choice("method", self.method, ("exact", "features"))
        views = self._collections(views)
        used, weights = used_examples(sample_weight, _same_counts(views))
        kernels = self._kernels_of(len(views))
        if used is not None and weights is not None:
            if any(is_precomputed(kernel) for kernel in kernels):
                # New objects come with values of all training objects: what has no weight stays, with no weight.
                weights = np.bincount(used, weights, count(views[0]))
            else:
                views = [taken(view, used) for view in views]
        width = None if self.method == "exact" else check_count("n_features", self.n_features)
        rng = generator(self.random_state)
        coordinates = [
            Coordinates(kernel, "KernelCCA", width, random_state=seed_of(rng), n_jobs=self.n_jobs) for kernel in kernels
        ]
        features = [
            part.fit(f"views[{v}]", X, weights) for v, (part, X) in enumerate(zip(coordinates, views, strict=True))
        ]
        self._solve(features, sample_weight=weights)
        self.coordinates_ = coordinates
        return self

    def transform(self, views: Sequence[Any]) -> list[np.ndarray]:
        """Return the projections of each view, shape (n_objects, n_components).

        Parameters
        ----------
        views : sequence of collections
            The objects in each view.

        Returns
        -------
        list of arrays of shape (n_objects, n_components)
        """
        return self._project(views)

    def score(self, views: Sequence[Any], y: Any = None) -> float:
        """Return the mean correlation of the projections of these objects, over components and pairs of views."""
        return float(self._held_out(views).mean())

    def _collections(self, views: Any) -> list[Any]:
        if isinstance(views, (np.ndarray, str)) or not hasattr(views, "__len__") or len(views) < 2:
            raise ValueError("views must be a list of at least two collections of objects")
        return [objects(f"views[{v}]", view) for v, view in enumerate(views)]

    def _kernels_of(self, J: int) -> list[Any]:
        if isinstance(self.kernels, (Kernel, str)):
            return [self.kernels] * J
        kernels = list(self.kernels)
        if len(kernels) != J:
            raise ValueError(f"kernels must be one Kernel or one for each of the {J} views, got {len(kernels)}")
        return kernels

    def _cut(self, views: Sequence[Any], rows: np.ndarray, training: np.ndarray) -> list[Any]:
        """Some objects of each view, for a model of others; of matrices the columns of these."""
        kernels = self._kernels_of(len(views))
        return [
            np.asarray(view, np.float64)[np.ix_(rows, training)] if is_precomputed(kernel) else taken(view, rows)
            for kernel, view in zip(kernels, views, strict=True)
        ]

    def _project(self, views: Sequence[Any]) -> list[np.ndarray]:
        check_is_fitted(self)
        views = self._collections(views)
        if len(views) != len(self.weights_):
            raise ValueError(f"views must be a list of {len(self.weights_)} collections, got {len(views)}")
        _same_counts(views)
        return [part.transform(view) @ W for part, view, W in zip(self.coordinates_, views, self.weights_, strict=True)]

    def _check_state(self) -> None:
        super()._check_state()
        self._kernels_of(len(self.weights_))
        _same_lengths(self.weights_, [part.values for part in self.coordinates_])


def _same_lengths(weights: list[np.ndarray], others: list[np.ndarray]) -> None:
    for v, (W, other) in enumerate(zip(weights, others, strict=True)):
        if len(W) != len(other):
            raise ValueError(f"weights_[{v}] must have {len(other)} rows, found {len(W)}")


def choose_regularization(
    model: KernelCCA | MultiSetCCA,
    views: Sequence[Any],
    values: Sequence[float],
    *,
    cv: int = 5,
    random_state: Any = None,
) -> tuple[float, np.ndarray]:
    """Return the κ with the largest held-out correlation, and the mean score of each value.

    Parameters
    ----------
    model : KernelCCA, MultiSetCCA or CCA
        The model is not changed; its other parameters are used as they are.
    views : list of collections
        As for ``fit`` (for `CCA` a pair of arrays).
    values : sequence of float
        Values to try; a tie goes to the largest.
    cv : int, default=5
        Number of folds.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the folds.

    Returns
    -------
    best : float
        The best value.
    scores : ndarray of shape (len(values),)
        Mean held-out ``score`` of each.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernel_methods import CCA, choose_regularization
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(40, 15)), rng.normal(size=(40, 15))
    >>> X[:, 0] += 2.0 * Y[:, 0]
    >>> best, scores = choose_regularization(CCA(), [X, Y], [0.0, 30.0], random_state=0)
    >>> best, bool(scores[1] > scores[0])
    (30.0, True)
    """
    values = [_check_ridge(value) for value in values]
    if not values:
        raise ValueError("values must hold at least one number")
    n = _same_counts([objects(f"views[{v}]", view) for v, view in enumerate(views)])
    if check_count("cv", cv, 2) > n // 2:
        raise ValueError(f"cv must leave at least 2 of the {n} objects in each fold, got {cv} folds")
    scores = np.zeros(len(values))
    folds = KFold(cv, shuffle=True, random_state=seed_of(generator(random_state)))
    for train, test in folds.split(np.arange(n)):
        if isinstance(model, KernelCCA):
            inside, outside = (model._cut(views, rows, train) for rows in (train, test))
        else:
            inside, outside = ([chosen_objects(view, rows) for view in views] for rows in (train, test))
        for v, value in enumerate(values):
            fitted = clone(model).set_params(alpha=value)
            if isinstance(model, CCA):
                scores[v] += fitted.fit(*inside).score(*outside) / cv
            else:
                scores[v] += fitted.fit(inside).score(outside) / cv
    best = max(range(len(values)), key=lambda v: (round(float(scores[v]), 12), values[v]))
    return values[best], scores
