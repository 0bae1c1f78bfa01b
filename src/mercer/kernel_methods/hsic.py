"""HSIC: are two views of the same objects independent?

    HSIC_b = ⟨K̃, L̃⟩ / n²                                        K̃ = H K H, H = I − 11ᵀ/n
    HSIC_u = (⟨K̃, L̃⟩ − n/(n−2) Σ_i K̃_ii L̃_ii + tr K̃ tr L̃ / ((n−1)(n−2))) / (n(n−3))      without bias

Permuting one view gives the distribution under independence. By features φ, ψ with n rows and D columns,
⟨K̃, L̃⟩ = ‖Σ_i φ̃(x_i) ψ̃(y_i)ᵀ‖² costs n D² instead of n².
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer._validation import check_choice, check_count, thread_count
from mercer.kernel_methods._feature_sums import cross_sums, feature_blocks
from mercer.kernel_methods._permutations import (
    centered,
    factor_products,
    moments_from_sums,
    permutations,
    products,
)
from mercer.kernel_methods._precomputed import check_gram, is_precomputed
from mercer.kernel_methods._result import KernelTestResult, gamma_result, permutation_result
from mercer.kernel_methods.collections import default_kernel, generator, objects, same_count, sample, seed_of
from mercer.kernels.base import Kernel, check_kernel, check_memory, require_positive_definite

__all__ = ["HSIC"]

CELLS = 1 << 14  # of a feature test: what is permuted together when there are more objects than this


def check_level(alpha: Any) -> float:
    """Return the level of a test, a number between 0 and 1."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.floating)) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be a number between 0 and 1, got {alpha!r}")
    return float(alpha)


class HSIC(BaseEstimator):
    """The Hilbert-Schmidt independence criterion: dependence of any kind, between objects of any kind.

    With characteristic kernels such as a Gaussian it is 0 only for independent views; with linear kernels it measures
    only correlation.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel or "precomputed", optional
        Kernels of the two views. By default a Gaussian whose width is the median distance of the objects. With
        ``"precomputed"`` the view is the kernel matrix of all pairs of its objects.
    estimator : {"unbiased", "biased"}, default="unbiased"
        The unbiased estimate may be negative.
    normalized : bool, default=False
        Divide by √(HSIC(x, x) HSIC(y, y)). The result is a correlation, 1 for equal views. The test does not change.
    method : {"exact", "features"}, default="exact"
        ``"exact"``: the Gram matrices. ``"features"``: the kernels' maps (`Kernel.approximate`), in time and memory
        linear in the number of objects.
    n_components : int, default=100
        Features of each map.

    See Also
    --------
    MMD : Do two samples come from one distribution?

    References
    ----------
    .. [Gretton2005] A. Gretton, O. Bousquet, A. Smola and B. Schölkopf. Measuring statistical dependence with
       Hilbert-Schmidt norms. ALT, 2005.
    .. [Song2012] L. Song, A. Smola, A. Gretton, J. Bedo and K. Borgwardt. Feature selection via dependence
       maximization. Journal of Machine Learning Research 13, 2012.
    .. [KaziAoual1995] F. Kazi-Aoual, S. Hitier, R. Sabatier and J.-D. Lebreton. Refined approximations to permutation
       tests for multivariate inference. Computational Statistics & Data Analysis 20, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import HSIC
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> square = (1.0 + Linear()) ** 2
    >>> HSIC(Linear(), Linear()).test(x, x**2, 199, random_state=0).p_value > 0.05  # uncorrelated, but
    True
    >>> HSIC(square, square).test(x, x**2, 199, random_state=0).p_value
    0.005
    >>> HSIC("precomputed", square).test(square(x), x**2, 199, random_state=0).p_value
    0.005
    """

    def __init__(
        self,
        kernel_x: Kernel | str | None = None,
        kernel_y: Kernel | str | None = None,
        estimator: str = "unbiased",
        normalized: bool = False,
        method: str = "exact",
        n_components: int = 100,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.estimator = estimator
        self.normalized = normalized
        self.method = method
        self.n_components = n_components

    def statistic(self, X: Any, Y: Any, random_state: Any = None, n_jobs: int | None = None) -> float:
        """Return the criterion for paired objects X and Y.

        Parameters
        ----------
        X, Y : collections of n objects
            At least 4 objects, as the kernels take them.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the feature maps.
        n_jobs : int, optional
            Threads for the Gram matrices.
        """
        pair = self._pair(X, Y, generator(random_state), thread_count(n_jobs))
        return self._value(pair, pair.product, pair.diagonals)

    def test(
        self,
        X: Any,
        Y: Any,
        n_permutations: int = 1000,
        null: str = "permutation",
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> KernelTestResult:
        """Test that X and Y are independent.

        Parameters
        ----------
        X, Y : collections of n objects
            At least 4 objects, as the kernels take them.
        n_permutations : int, default=1000
            Number of random permutations of Y. The p-value (1 + number with a statistic as large) / (1 +
            n_permutations) is exact: under independence it is at most α with a probability of at most α, for every
            sample size.
        null : {"permutation", "gamma"}, default="permutation"
            ``"gamma"``: no permutations, but a gamma distribution with the mean and variance of the biased statistic
            over all permutations. It is an approximation that costs one statistic.
        alpha : float, default=0.05
            Level of ``threshold``.
        random_state : int, Generator, RandomState or None, default=None
            Seed of permutations and feature maps.
        n_jobs : int, optional
            Threads. The result does not depend on it.
        """
        check_choice("null", null, ("permutation", "gamma"))
        number, alpha = check_count("n_permutations", n_permutations), check_level(alpha)
        rng, threads = generator(random_state), thread_count(n_jobs)
        pair = self._pair(X, Y, rng, threads)
        if null == "gamma":
            mean, variance = moments_from_sums(pair.n, pair.sums_x, pair.sums_y)
            zero, one = (self._value(pair, t, pair.diagonals) for t in (0.0, 1.0))
            return gamma_result(
                pair.product, mean, variance, alpha, lambda t: float(self._value(pair, t, pair.diagonals)), one - zero
            )
        values = pair.permuted(number, rng, threads, self.estimator == "unbiased")
        statistics = self._value(pair, *values)
        rounding = 1e-8 if self.method == "exact" else 1e-5  # features are of single precision
        return permutation_result(float(statistics[0]), statistics[1:], alpha, rounding)

    def _pair(self, X: Any, Y: Any, rng: np.random.Generator, threads: int) -> _ExactPair | _FeaturePair:
        check_choice("estimator", self.estimator, ("unbiased", "biased"))
        check_choice("method", self.method, ("exact", "features"))
        D = check_count("n_components", self.n_components)
        X, Y = objects("X", X, 4), objects("Y", Y, 4)
        same_count(("X", "Y"), X, Y)
        kernels: list[Any] = []
        for name, kernel, view in (("kernel_x", self.kernel_x, X), ("kernel_y", self.kernel_y, Y)):
            if is_precomputed(kernel):
                if self.method != "exact":
                    raise ValueError(f"method={self.method!r} needs a kernel with a map, but {name} is 'precomputed'")
                kernels.append(kernel)
                continue
            kernels.append(default_kernel(view) if kernel is None else check_kernel(name, kernel))
            require_positive_definite(kernels[-1], "HSIC", conditional=self.method == "exact")
        if self.method == "exact":
            views = (("kernel_x", "X", X), ("kernel_y", "Y", Y))
            return _ExactPair(*(_gram(k, *view, threads) for k, view in zip(kernels, views, strict=True)))
        return _FeaturePair(kernels, X, Y, D, rng)

    def _value(self, pair: Any, T: Any, diagonals: Any) -> Any:
        """The statistic from ⟨K̃, P L̃ Pᵀ⟩ and Σ_i K̃_ii L̃_π(i)π(i)."""
        n = pair.n
        if self.estimator == "biased":
            value, norms = T / n**2, [squares / n**2 for _, squares, _ in (pair.sums_x, pair.sums_y)]
        else:
            value = _unbiased(n, T, diagonals, pair.sums_x[0] * pair.sums_y[0])
            norms = [_unbiased(n, squares, peaks, trace**2) for trace, squares, peaks in (pair.sums_x, pair.sums_y)]
        if not self.normalized:
            return value
        scale = np.sqrt(max(norms[0], 0.0) * max(norms[1], 0.0))
        return value / scale if scale > 0 else 0.0 * value


def _unbiased(n: int, T: Any, diagonals: Any, traces: float) -> Any:
    return (T - n / (n - 2) * diagonals + traces / ((n - 1) * (n - 2))) / (n * (n - 3))


def _gram(kernel: Any, parameter: str, name: str, X: Any, threads: int) -> np.ndarray:
    if is_precomputed(kernel):
        return centered(check_gram(parameter, name, X, 4, conditional=True))
    K = kernel(X, n_jobs=threads)
    if not np.isfinite(K).all():
        raise ValueError(f"the Gram matrix of {kernel!r} is not finite")
    return centered(K)


class _ExactPair:
    """Two centred Gram matrices."""

    def __init__(self, K: np.ndarray, L: np.ndarray) -> None:
        self.K, self.L, self.n = K, L, len(K)
        self.d, self.e = K.diagonal().copy(), L.diagonal().copy()
        self.product, self.diagonals = float(np.vdot(K, L)), float(self.d @ self.e)
        self.sums_x, self.sums_y = (
            (float(d.sum()), float(np.vdot(M, M)), float(d @ d)) for M, d in ((K, self.d), (L, self.e))
        )

    def permuted(
        self, number: int, rng: np.random.Generator, threads: int, unbiased: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """⟨K̃, P L̃ Pᵀ⟩ and Σ K̃_ii L̃_π(i)π(i) for the identity and ``number`` random orders."""
        orders = permutations(self.n, number, rng)
        return products(self.K, self.L, orders, threads), self.e[orders] @ self.d if unbiased else np.zeros(number + 1)


class _FeaturePair:
    """Two views through feature maps, in blocks; only permutations need the features of all objects at once."""

    def __init__(self, kernels: list[Kernel], X: Any, Y: Any, D: int, rng: np.random.Generator) -> None:
        self.views = (X, Y)
        self.maps = tuple(
            kernel.approximate(D, random_state=seed_of(rng)).fit(sample(view, max(1000, 2 * D), rng))
            for kernel, view in zip(kernels, (X, Y), strict=True)
        )
        self.width = D
        left, right, crossed = cross_sums((self.maps[0], self.maps[1]), X, Y, (D, D))
        self.sums = (left, right)
        self.n = left.n
        self.product, self.diagonals = float(np.vdot(crossed[:-1, :-1], crossed[:-1, :-1])), float(crossed[-1, -1])
        self.sums_x, self.sums_y = left.centered_sums(), right.centered_sums()

    def permuted(
        self, number: int, rng: np.random.Generator, threads: int, unbiased: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of Gram matrices. Of many objects, runs of neighbours are moved together, from memory to memory.

        Such moves are a group of permutations, for which the test is exact as for all of them; what is left after the
        last full run stays where it is.
        """
        check_memory(self.n, 2 * self.width, np.float32)
        (A, d), (B, e) = (self._principal(side) for side in (0, 1))
        run = max(1, self.n // CELLS)
        cells = self.n // run
        orders = permutations(cells, number, rng)
        if run == 1:
            return factor_products(A, B, orders), e[orders] @ d if unbiased else np.zeros(number + 1)
        body = cells * run
        T, diagonals = np.empty(number + 1), np.zeros(number + 1)
        rest, rest_diagonal = A[body:].T @ B[body:], float(d[body:] @ e[body:])
        moving, moving_e = B[:body].reshape(cells, run * B.shape[1]), e[:body].reshape(cells, run)
        transposed = np.ascontiguousarray(A[:body].T)
        for b, order in enumerate(orders):
            crossed = (transposed @ moving[order].reshape(body, B.shape[1]) + rest).astype(np.float64)
            T[b] = np.vdot(crossed, crossed)
            if unbiased:
                diagonals[b] = moving_e[order].ravel() @ d[:body] + rest_diagonal
        return T, diagonals

    def _principal(self, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Centred features in their principal axes, those beyond single precision left out; and their square norms."""
        sums = self.sums[side]
        mean = sums.mean
        S = sums.to_centered.T @ sums.squares @ sums.to_centered
        values, vectors = np.linalg.eigh(S[:-1, :-1])
        tail = np.cumsum(np.maximum(values, 0.0)) <= 1e-6 * max(values.sum(), 0.0)
        axes = vectors[:, ~tail].astype(np.float32)
        A = np.empty((self.n, axes.shape[1]), np.float32)
        d = np.empty(self.n)
        start = 0
        for F in feature_blocks(self.maps[side], self.views[side], self.width):
            F = F - mean.astype(np.float32)
            A[start : start + len(F)] = F @ axes
            d[start : start + len(F)] = np.einsum("ij,ij->i", F, F)
            start += len(F)
        return A, d
