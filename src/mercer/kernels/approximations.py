"""Maps that approximate a kernel: on landmarks drawn from the data, with random frequencies, or with fixed frequencies.

Nyström    Φ̂(x) = K_LL^{-1/2} k(L, x),   ⟨Φ̂(x), Φ̂(z)⟩ = k(x, L) K_LL⁻¹ k(L, z):   exact for x or z among the landmarks L
Fourier    k(x, z) = E cos⟨ω, x − z⟩ = E[cos⟨ω, x⟩ cos⟨ω, z⟩ + sin⟨ω, x⟩ sin⟨ω, z⟩]:   ω drawn from the spectral density
additive   Σ_k κ(x_k, z_k),   κ(a, b) = √(ab) ∫ e^{iλ log(b/a)} g(λ) dλ:   the integral as a sum over λ = jL
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.limits import OUTPUT_ROWS, reserve
from mercer._state.saved import Count, Fields, Floats, Number, Objects, Saved
from mercer._validation import check_count, check_positive
from mercer.kernels.algebra import _count
from mercer.kernels.base import Kernel, check_kernel, require_positive_definite
from mercer.kernels.vectors import ChiSquared, HistogramIntersection, VectorRows, _Stationary

__all__ = ["AdditiveMap", "FourierMap", "NystroemMap"]


class NystroemMap(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Map objects of any kind to vectors whose inner products approximate a kernel.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.
    n_components : int, default=100
        Number of landmarks, drawn without replacement; at most the number of objects.
    random_state : int, RandomState or None, default=None
        Seed of the draw.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    landmarks_ : list
        The objects drawn.
    normalization_ : ndarray of shape (n_landmarks, n_landmarks)
        K_LL^{-1/2}.

    References
    ----------
    .. [Williams2000] C. Williams and M. Seeger. Using the Nyström method to speed up kernel machines. NIPS, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> F = Linear().approximate(10, random_state=0).fit_transform(X)
    >>> F.shape, bool(np.allclose(F @ F.T, X @ X.T))  # a kernel of rank 3 is met exactly
    ((50, 10), True)
    """

    saved = Fields(landmarks_=Objects(), normalization_=Floats("_n_landmarks", "_n_landmarks"))

    def __init__(
        self, kernel: Kernel, n_components: int = 100, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> NystroemMap:
        """Draw the landmarks from X.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes
        y : ignored

        Returns
        -------
        self : NystroemMap
        """
        require_positive_definite(check_kernel("kernel", self.kernel), "NystroemMap")
        n = check_count("n_components", self.n_components)
        X = X if hasattr(X, "__len__") else list(X)
        size = _count(X)
        if size == 0:
            raise ValueError("X is empty: there are no landmarks to draw")
        chosen = np.sort(check_random_state(self.random_state).permutation(size)[:n])
        self.landmarks_ = chosen_objects(X, chosen)
        values, vectors = np.linalg.eigh(self.kernel(self.landmarks_, n_jobs=self.n_jobs))
        kept = values > 1e-12 * max(values.max(), 1e-300)
        scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        self.normalization_ = (vectors * scale) @ vectors.T
        self._n_features_out = len(chosen)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of objects.

        Parameters
        ----------
        X : collection of n objects, of the kind that the kernel takes

        Returns
        -------
        array of shape (n, n_landmarks)
        """
        check_is_fitted(self)
        return self.kernel(X, self.landmarks_, n_jobs=self.n_jobs) @ self.normalization_

    def _check_state(self) -> None:
        require_positive_definite(check_kernel("kernel", self.kernel), "NystroemMap")
        self._n_features_out = self._n_landmarks

    @property
    def _n_landmarks(self) -> int:
        return _count(self.landmarks_)


class FourierMap(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Random Fourier features of a shift-invariant kernel: cosines and sines at random frequencies.

    Inner products are unbiased estimates of the kernel with an error of about 1 / √n_components. float32 vectors give
    float32 features.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern
        Frequencies are drawn from its spectral density: normal, Cauchy, Student's t.
    n_components : int, default=100
        Columns: a cosine and a sine for each frequency. If odd, the last column is one cosine with a random phase.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, ⌈n_components / 2⌉)
        ω, one column per frequency.
    phase_ : float
        Phase of the last column, if ``n_components`` is odd.

    References
    ----------
    .. [Rahimi2007] A. Rahimi and B. Recht. Random features for large-scale kernel machines. NIPS, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> k = Gaussian(0.2)
    >>> F = k.approximate(4000, random_state=0).fit_transform(X)
    >>> F.shape, bool(np.abs(F @ F.T - k(X)).max() < 0.1)
    ((40, 4000), True)
    """

    saved = Fields(n_features_in_=Count(1), frequencies_=Floats("n_features_in_", None), phase_=Number())

    def __init__(self, kernel: Kernel, n_components: int = 100, random_state: Any = None) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> FourierMap:
        """Draw the frequencies; only the number of columns of X is used.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Vectors.
        y : ignored

        Returns
        -------
        self : FourierMap
        """
        kernel = self._checked()
        n = check_count("n_components", self.n_components)
        self.n_features_in_ = kernel._prepared("X", X).width
        random = check_random_state(self.random_state)
        self.frequencies_ = kernel._frequencies(self.n_features_in_, (n + 1) // 2, random)
        self.phase_ = float(random.uniform(0, 2 * np.pi))
        self._n_features_out = n
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of objects.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        rows = _rows_of_width(self.kernel, X, self.n_features_in_)
        X, n = rows.matrix(), self._n_features_out
        angles = np.asarray(X @ self.frequencies_.astype(X.dtype))
        out = np.empty((len(rows), n), X.dtype)
        waves = n // 2
        np.cos(angles[:, :waves], out=out[:, :waves])
        np.sin(angles[:, :waves], out=out[:, waves : 2 * waves])
        if n % 2:
            out[:, -1] = np.cos(angles[:, -1] + X.dtype.type(self.phase_))
        out *= X.dtype.type(np.sqrt(2.0 / n))
        return out

    def _checked(self) -> Any:
        kernel = check_kernel("kernel", self.kernel)
        if not isinstance(kernel, _Stationary):
            raise ValueError(
                f"FourierMap takes Gaussian, Laplacian or Matern, got {kernel!r}: NystroemMap takes every kernel"
            )
        kernel._check_params()
        return kernel

    def _check_state(self) -> None:
        self._checked()
        n = self._n_features_out = check_count("n_components", self.n_components)
        if self.frequencies_.shape[1] != (n + 1) // 2:
            raise ValueError(f"expected {(n + 1) // 2} frequencies, found {self.frequencies_.shape[1]}")


class AdditiveMap(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Deterministic feature map of the additive kernels of histograms.

    Each coordinate becomes 2 · n_steps + 1 columns: √(x g(0) L), √(2 x g(jL) L) cos(jL log x) and the same with sin,
    where g is the spectrum of the kernel: sech(πλ) for χ², 2 / (π (1 + 4λ²)) for the intersection. For the exponential
    kernel ``ChiSquared(g)``, put ``FourierMap(Gaussian(g))`` after the map of ``ChiSquared(None)``.

    Parameters
    ----------
    kernel : ChiSquared(None) or HistogramIntersection
        The additive kernel.
    n_steps : int, default=3
        Frequencies besides 0.
    period : float, optional
        L, the spacing of the frequencies; by default a value with small errors for this number of steps.

    References
    ----------
    .. [Vedaldi2012] A. Vedaldi and A. Zisserman. Efficient additive kernels via explicit feature maps. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 34, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import AdditiveMap, ChiSquared
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    >>> F = AdditiveMap(ChiSquared(None)).fit_transform(X)
    >>> F.shape, bool(np.abs(F @ F.T - ChiSquared(None)(X)).max() < 0.01)
    ((20, 28), True)
    """

    saved = Fields(n_features_in_=Count(1))  # the number of columns is all there is

    def __init__(self, kernel: Kernel, n_steps: int = 3, period: float | None = None) -> None:
        self.kernel = kernel
        self.n_steps = n_steps
        self.period = period

    def fit(self, X: Any, y: Any = None) -> AdditiveMap:
        """Store the number of columns of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Nonnegative histograms.
        y : ignored

        Returns
        -------
        self : AdditiveMap
        """
        self.n_features_in_ = self._checked()._prepared("X", X).width
        self._n_features_out = self.n_features_in_ * (2 * self.n_steps + 1)
        return self

    def _checked(self) -> Kernel:
        kernel = check_kernel("kernel", self.kernel)
        if not (isinstance(kernel, HistogramIntersection) or (isinstance(kernel, ChiSquared) and kernel.gamma is None)):
            raise ValueError(f"AdditiveMap takes ChiSquared(None) or HistogramIntersection(), got {kernel!r}")
        check_count("n_steps", self.n_steps)
        if self.period is not None:
            check_positive("period", self.period)
        return kernel

    def _check_state(self) -> None:
        self._checked()
        self._n_features_out = self.n_features_in_ * (2 * self.n_steps + 1)
        reserve(OUTPUT_ROWS * 8 * self._n_features_out, f"{OUTPUT_ROWS} rows of n_steps={self.n_steps}")

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of histograms: the columns of step 0 first, then cosines and sines of each step.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Nonnegative histograms.

        Returns
        -------
        array of shape (n_samples, n_features · (2 n_steps + 1))
        """
        check_is_fitted(self, "n_features_in_")
        rows = _rows_of_width(self.kernel, X, self.n_features_in_)
        H = rows.matrix().toarray() if rows.sparse else rows.matrix()
        L = self._period()
        logs = np.log(np.where(H > 0, H, 1))
        parts = [np.sqrt(H * H.dtype.type(L * self._spectrum(0.0)))]
        for j in range(1, self.n_steps + 1):
            size = np.sqrt(H * H.dtype.type(2 * L * self._spectrum(j * L)))
            parts += [size * np.cos(H.dtype.type(j * L) * logs), size * np.sin(H.dtype.type(j * L) * logs)]
        return np.hstack(parts)

    def _spectrum(self, frequency: float) -> float:
        if isinstance(self.kernel, ChiSquared):
            return float(1.0 / np.cosh(np.pi * frequency))
        return float(2.0 / (np.pi * (1.0 + 4.0 * frequency**2)))

    def _period(self) -> float:
        """Errors come from frequencies left out (a short period) and from repetition (a long one).

        The tails of sech fall like those of the kernel in log x: both errors are alike for L ∝ 1 / √n. The spectrum of
        the intersection falls like 1 / λ², and a period that shrinks with log n is best (fitted to histograms).
        """
        if self.period is not None:
            return float(self.period)
        if isinstance(self.kernel, ChiSquared):
            return float(0.95 / np.sqrt(self.n_steps + 1))
        return float(1.0 / (1.31 + 0.29 * np.log(self.n_steps)))


def _rows_of_width(kernel: Kernel, X: Any, width: int) -> VectorRows:
    rows: VectorRows = kernel._prepared("X", X)
    if rows.width != width:
        raise ValueError(f"X has {rows.width} columns, the map was fitted to {width}")
    return rows


def chosen_objects(X: Any, chosen: np.ndarray) -> Any:
    """Return some objects of a collection of any kind."""
    if hasattr(X, "iloc"):
        return X.iloc[chosen]
    if isinstance(X, dict):
        return {name: [column[i] for i in chosen] for name, column in X.items()}
    if isinstance(X, (list, tuple)):
        return [X[i] for i in chosen]
    return X[chosen]
