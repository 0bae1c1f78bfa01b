"""MMD: do two samples come from one distribution?

    MMD_b = ‖mean φ(x) − mean φ(y)‖² = zᵀ K z           z_i = 1/m for the m objects of X, −1/n for the n of Y
    MMD_u = the same without the terms i = j of each sample, and 1/(m(m−1)), 1/(n(n−1)) for their weights

Permuting the sample memberships gives the null distribution. With features, the means take linear time. A block test
averages MMD_u over blocks of both samples: its null distribution is normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer._validation import check_choice, check_count, thread_count
from mercer.kernel_methods import _permutations
from mercer.kernel_methods._feature_sums import FeatureSums, feature_blocks
from mercer.kernel_methods._permutations import moments_from_sums, quadratic_forms
from mercer.kernel_methods._precomputed import check_gram, is_precomputed
from mercer.kernel_methods._result import KernelTestResult, gamma_result, normal_result, permutation_result
from mercer.kernel_methods.collections import (
    count,
    cut,
    default_kernel,
    generator,
    objects,
    pooled_sample,
    seed_of,
)
from mercer.kernel_methods.hsic import check_level
from mercer.kernels.base import PD, Kernel, check_kernel, check_memory, require_positive_definite

__all__ = ["MMD"]

CELLS = 4096  # of a feature test: what is permuted together when there are more objects than this


class MMD(BaseEstimator):
    """The maximum mean discrepancy: two-sample tests for objects of any kind.

    Parameters
    ----------
    kernel : Kernel or "precomputed", optional
        By default a Gaussian whose width is the median distance of the pooled objects. With ``"precomputed"`` X is the
        kernel matrix of the objects of both samples, and Y is True for the objects of the second sample.
    estimator : {"unbiased", "biased"}, default="unbiased"
        The unbiased one may be negative.
    method : {"exact", "features", "block"}, default="exact"
        ``"exact"``: the Gram matrix of all objects. ``"features"``: means of the kernel's map (`Kernel.approximate`),
        in one pass over blocks of objects. ``"block"``: the mean of the unbiased statistic over blocks of
        ``block_size`` objects of each sample; the kernel itself, in time proportional to n · block_size.
    n_components : int, default=100
        Features of the map.
    block_size : int, optional
        For ``method="block"``; by default about the square root of the size of the smaller sample. 2 gives the
        linear-time statistic.

    See Also
    --------
    HSIC : Are two views of the same objects independent?

    References
    ----------
    .. [Gretton2012] A. Gretton, K. Borgwardt, M. Rasch, B. Schölkopf and A. Smola. A kernel two-sample test. Journal of
       Machine Learning Research 13, 2012.
    .. [Zaremba2013] W. Zaremba, A. Gretton and M. Blaschko. B-tests: low variance kernel two-sample tests. NIPS, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.kernel_methods import MMD
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 2)), 2.0 * rng.normal(size=(50, 2))
    >>> MMD((1.0 + Linear()) ** 2).test(X, Y, 199, random_state=0).p_value  # the same mean, other variances
    0.005
    >>> MMD(Linear(), estimator="biased").statistic([[0.0], [2.0]], [[3.0], [5.0]])
    9.0
    >>> both = Linear()([[0.0], [3.0], [2.0], [5.0]])
    >>> MMD("precomputed", estimator="biased").statistic(both, [False, True, False, True])
    9.0
    """

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        estimator: str = "unbiased",
        method: str = "exact",
        n_components: int = 100,
        block_size: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.estimator = estimator
        self.method = method
        self.n_components = n_components
        self.block_size = block_size

    def statistic(self, X: Any, Y: Any, random_state: Any = None, n_jobs: int | None = None) -> float:
        """Return the squared discrepancy of two samples.

        Parameters
        ----------
        X, Y : collections of objects
            At least 2 objects each, as the kernel takes them. With ``kernel="precomputed"`` a matrix and an array of
            bool.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the feature map.
        n_jobs : int, optional
            Threads for the Gram matrix.
        """
        X, Y, kernel = self._checked(X, Y)
        rng, threads = generator(random_state), thread_count(n_jobs)
        if self.method == "block":
            return float(self._block_values(kernel, X, Y, threads).mean())
        pooled = self._pooled(kernel, X, Y, rng, threads)
        return float(pooled.statistics(pooled.own(), self.estimator)[0])

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
        """Test that X and Y come from one distribution.

        Parameters
        ----------
        X, Y : collections of objects
            At least 2 objects each, as the kernel takes them. With ``kernel="precomputed"`` a matrix and an array of
            bool.
        n_permutations : int, default=1000
            Number of random exchanges of objects between the samples. The p-value (1 + number with a statistic as
            large) / (1 + n_permutations) is exact for every sample size. With ``method="features"`` and more than 4096
            objects, runs of neighbouring objects are exchanged together, which is equally exact, at a cost that does
            not grow with the number of objects. ``method="block"`` uses no permutations.
        null : {"permutation", "gamma"}, default="permutation"
            ``"gamma"``: no permutations, but a gamma distribution with the mean and variance of the biased statistic
            over all permutations.
        alpha : float, default=0.05
            Level of ``threshold``.
        random_state : int, Generator, RandomState or None, default=None
            Seed of permutations and the feature map.
        n_jobs : int, optional
            Threads for the Gram matrix. The result does not depend on it.
        """
        check_choice("null", null, ("permutation", "gamma"))
        number, alpha = check_count("n_permutations", n_permutations), check_level(alpha)
        X, Y, kernel = self._checked(X, Y)
        rng, threads = generator(random_state), thread_count(n_jobs)
        if self.method == "block":
            values = self._block_values(kernel, X, Y, threads)
            if len(values) < 2:
                raise ValueError(
                    f"method='block' needs at least two blocks of block_size objects, got samples of {count(X)} and "
                    f"{count(Y)} objects: use a smaller block_size"
                )
            std = float(values.std(ddof=1) / np.sqrt(len(values)))
            return normal_result(float(values.mean()), std, alpha, "normal")
        pooled = self._pooled(kernel, X, Y, rng, threads)
        if null == "gamma":
            return self._gamma(pooled, alpha)
        statistics = pooled.statistics(_random_members(pooled.own(), number, rng), self.estimator)
        return permutation_result(float(statistics[0]), statistics[1:], alpha)

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any, Any]:
        check_choice("estimator", self.estimator, ("unbiased", "biased"))
        check_choice("method", self.method, ("exact", "features", "block"))
        if is_precomputed(self.kernel):
            if self.method != "exact":
                raise ValueError(f"method={self.method!r} needs a kernel, but kernel is 'precomputed'")
            return check_gram("kernel", "X", X, 4, conditional=True), Y, self.kernel
        X, Y = objects("X", X, 2), objects("Y", Y, 2)
        if self.kernel is None:
            kernel = default_kernel(pooled_sample(X, Y, 2000, np.random.default_rng(0)))
        else:
            kernel = check_kernel("kernel", self.kernel)
        # Weights sum to 0 over all objects, so that conditionally positive definite kernels will do.
        require_positive_definite(kernel, "MMD", conditional=self.method != "features")
        return X, Y, kernel

    def _pooled(self, kernel: Any, X: Any, Y: Any, rng: np.random.Generator, threads: int) -> _Pooled:
        if is_precomputed(kernel):
            return _pooled_matrix(X, Y)
        if self.method == "exact":
            return _pooled_gram(kernel, X, Y, threads)
        return _pooled_features(kernel, X, Y, check_count("n_components", self.n_components), rng)

    def _gamma(self, pooled: _Pooled, alpha: float) -> KernelTestResult:
        m, n = pooled.m, pooled.n
        if m + n < 4:
            raise ValueError(f"null='gamma' needs at least 4 objects, got {m + n}")
        weights = (1 / m + 1 / n, (1 / m + 1 / n) ** 2, 1 / m**3 + 1 / n**3)  # of z zᵀ, as of a second Gram matrix
        mean, variance = moments_from_sums(m + n, pooled.centered_sums, weights)
        biased, wanted = (float(pooled.statistics(pooled.own(), kind)[0]) for kind in ("biased", self.estimator))
        shift = wanted - biased  # as if the samples at hand had no other diagonals than they have
        return gamma_result(biased, mean, variance, alpha, lambda t: float(t + shift), 1.0)

    def _block_values(self, kernel: Kernel, X: Any, Y: Any, threads: int) -> np.ndarray:
        smaller = min(count(X), count(Y))
        size = max(2, round(smaller**0.5)) if self.block_size is None else check_count("block_size", self.block_size, 2)
        if size > smaller:
            raise ValueError(f"block_size must be at most the size of the smaller sample, {smaller}, got {size}")
        # As many blocks as the smaller sample gives; those of the larger one are longer in proportion.
        blocks = smaller // size
        x_size, y_size = count(X) // blocks, count(Y) // blocks
        values = np.empty(blocks)
        for b in range(blocks):
            x, y = cut(X, b * x_size, (b + 1) * x_size), cut(Y, b * y_size, (b + 1) * y_size)
            pooled = _pooled_gram(kernel, x, y, threads, centered=False)
            values[b] = pooled.statistics(pooled.own(), "unbiased")[0]
        return values


@dataclass
class _Pooled:
    """Both samples together: rows are objects, or cells of objects that are exchanged together."""

    m: int
    n: int
    total: float
    """1ᵀK1"""
    trace: float
    centered_sums: tuple[float, float, float]
    """Σ K̃_ii, Σ K̃_ij², Σ K̃_ii² of the centred Gram matrix."""

    def own(self) -> np.ndarray:
        """The 0/1 vector of the first sample, as a matrix with one row."""
        raise NotImplementedError

    def forms(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sᵀKs, sᵀK1, Σ s_i K_ii for each row s."""
        raise NotImplementedError

    def statistics(self, S: np.ndarray, estimator: str) -> np.ndarray:
        """The discrepancy for each 0/1 row of S, which marks the first sample."""
        q, row, diagonal = self.forms(S)
        m, n = self.m, self.n
        crossed, other = row - q, self.total - 2.0 * row + q
        if estimator == "biased":
            return q / m**2 + other / n**2 - 2.0 * crossed / (m * n)
        within = (q - diagonal) / (m * (m - 1)) + (other - (self.trace - diagonal)) / (n * (n - 1))
        return within - 2.0 * crossed / (m * n)


@dataclass
class _PooledGram(_Pooled):
    K: np.ndarray

    def own(self) -> np.ndarray:
        return (np.arange(self.m + self.n) < self.m).astype(np.float64)[None, :]

    def forms(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if len(S) == 1:
            q = np.array([float(self.K[: self.m, : self.m].sum())])
        else:
            q = quadratic_forms(self.K, S)
        return q, S @ self.K.sum(axis=0), S @ self.K.diagonal()


def _pooled_gram(kernel: Kernel, X: Any, Y: Any, threads: int, centered: bool = True) -> _PooledGram:
    m, n = count(X), count(Y)
    check_memory(m + n, m + n, np.float64)
    K = np.empty((m + n, m + n))
    K[:m, :m] = kernel(X, n_jobs=threads)
    K[m:, m:] = kernel(Y, n_jobs=threads)
    K[:m, m:] = kernel(X, Y, n_jobs=threads)
    K[m:, :m] = K[:m, m:].T
    if not np.isfinite(K).all():
        raise ValueError(f"the Gram matrix of {kernel!r} is not finite")
    # Factors of quadratic forms are those of a positive definite matrix, and no shift of feature space changes them.
    return _summed(_permutations.centered(K) if centered and kernel.definiteness != PD else K, m, n, centered)


def _pooled_matrix(K: np.ndarray, second: Any) -> _PooledGram:
    """A given matrix of the objects of both samples, put into the order of the samples."""
    second = np.asarray(second)
    if second.shape != (len(K),) or second.dtype.kind not in "biu" or not np.isin(second, (0, 1)).all():
        raise ValueError(
            f"with kernel='precomputed', Y must state for each of the {len(K)} objects whether it belongs to the second"
            f" sample (True) or the first (False), got an array of {second.dtype} of shape {second.shape}"
        )
    order = np.argsort(second, kind="stable")
    n = int(second.sum())
    if min(n, len(K) - n) < 2:
        raise ValueError(f"both samples must hold at least 2 objects, got {len(K) - n} and {n}")
    return _summed(_permutations.centered(K[np.ix_(order, order)]), len(K) - n, n)


def _summed(K: np.ndarray, m: int, n: int, centered: bool = True) -> _PooledGram:
    trace, total = float(np.trace(K)), float(K.sum())
    if not centered:
        return _PooledGram(m, n, total, trace, (0.0, 0.0, 0.0), K)
    rows = K.mean(axis=0)
    d = K.diagonal() - 2 * rows + rows.mean()
    squares = float(np.vdot(K, K)) - 2 * (m + n) * float(rows @ rows) + (m + n) ** 2 * float(rows.mean()) ** 2
    return _PooledGram(m, n, total, trace, (float(d.sum()), max(squares, 0.0), float(d @ d)), K)


@dataclass
class _PooledFeatures(_Pooled):
    cells: np.ndarray
    """(x cells + y cells) × D sums of features."""
    norms: np.ndarray
    """Sums of square norms of the cells."""
    x_cells: int
    rest: np.ndarray
    """Sum of the features of the objects of X that are in no cell."""
    rest_norm: float
    sum_all: np.ndarray

    def own(self) -> np.ndarray:
        return (np.arange(len(self.cells)) < self.x_cells).astype(np.float64)[None, :]

    def forms(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums = S @ self.cells + self.rest
        return np.square(sums).sum(axis=1), sums @ self.sum_all, S @ self.norms + self.rest_norm


def _pooled_features(kernel: Kernel, X: Any, Y: Any, D: int, rng: np.random.Generator) -> _PooledFeatures:
    """One pass over both samples. Objects are exchanged in runs of ``run`` neighbours of one sample.

    Exchanges of such runs are a group of permutations, for which the test is exact as for all of them; what is left of
    a sample after its last full run stays where it is.
    """
    m, n = count(X), count(Y)
    run = max(1, (m + n) // CELLS)
    feature_map = kernel.approximate(D, random_state=seed_of(rng)).fit(pooled_sample(X, Y, max(1000, 2 * D), rng))
    sums = FeatureSums()
    parts = [_cells(feature_map, view, D, run, sums) for view in (X, Y)]
    cells = np.concatenate([part[0] for part in parts])
    norms = np.concatenate([part[1] for part in parts])
    sum_all = cells.sum(axis=0) + parts[0][2] + parts[1][2]
    trace = float(norms.sum() + parts[0][3] + parts[1][3])
    return _PooledFeatures(
        m, n, float(sum_all @ sum_all), trace, sums.centered_sums(), cells, norms, m // run, parts[0][2], parts[0][3],
        sum_all,
    )  # fmt: skip


def _cells(
    feature_map: Any, X: Any, D: int, run: int, sums: FeatureSums
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Sums of features and of square norms of each full run, and of the rest; blocks end where they end."""
    number = count(X) // run
    cells: Any = None
    norms = np.zeros(number + 1)
    start = 0
    for F in feature_blocks(feature_map, X, D):
        sums.add(F)
        if cells is None:
            cells = np.zeros((number + 1, F.shape[1]))
        cell = np.minimum((start + np.arange(len(F))) // run, number)
        begins = np.flatnonzero(np.diff(cell, prepend=-1))
        cells[cell[begins]] += np.add.reduceat(F, begins, axis=0, dtype=np.float64)
        norms[cell[begins]] += np.add.reduceat(np.einsum("ij,ij->i", F, F, dtype=np.float64), begins)
        start += len(F)
    return cells[:-1], norms[:-1], cells[-1], float(norms[-1])


def _random_members(own: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """The given 0/1 row and ``number`` random orders of it."""
    S = np.repeat(own, number + 1, axis=0)
    rng.permuted(S[1:], axis=1, out=S[1:])
    return S
