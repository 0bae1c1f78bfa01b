"""Random Fourier features: cosines and sines of random frequencies, independent or in fast structured blocks.

    k(x, z) = E cos⟨ω, x − z⟩,   Φ(x) = √(2/n) [cos⟨ω_j, x⟩, sin⟨ω_j, x⟩]_j   or   √(2/n) [cos(⟨ω_j, x⟩ + b_j)]_j

With pairs, inner products depend on x − z alone; a cosine without its sine and without a phase b ~ U(0, 2π) does not
estimate the kernel.

iid           ω_j independent                                        O(n d) for a row
orthogonal    ω_j orthogonal inside blocks of d                      O(n d), smaller variance
structured    blocks χ ∘ H S₁ H S₂ H S₃, Hadamard H, signs S         O(n log d)
circulant     blocks circ(r) S                                       O(n log d)
"""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._arrays import (
    Copies,
    as_rows,
    as_tensor,
    by_rows,
    compiled,
    fft_of,
    is_numpy,
    on_device_of,
    on_processor,
    row_blocks,
)
from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Floats, Number, Saved, check_shapes
from mercer._validation import check_choice, check_count, check_positive, thread_count
from mercer.maps import spectra

__all__ = ["FourierFeatures"]

KERNELS = ("gaussian", "laplacian", "matern")
VARIANTS = ("iid", "orthogonal", "structured", "circulant")
SMALLEST_BLOCK = 64  # Hadamard blocks of few rows have few directions: rows are padded to at least this


class FourierFeatures(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Random features of a Gaussian, Laplacian or Matérn kernel, in O(n_components log n_features) if structured.

    Inner products of features estimate the kernel with an error of about 1 / √n_components. NumPy arrays and torch
    tensors on any device keep their type, also float32.

    Parameters
    ----------
    n_components : int, default=100
        Number of features. With ``pairs`` and an odd number, the last feature is one cosine with a random phase.
    kernel : {"gaussian", "laplacian", "matern"}, default="gaussian"
        exp(−γ‖x − z‖²), exp(−γ‖x − z‖₁), or the Matérn kernel of length ℓ and smoothness ν.
    gamma : float, "scale" or "neighbours", default="scale"
        γ of the first two. With v the variance of all entries of X, "scale" takes 1 / (n_features · v) for the Gaussian
        kernel, as scikit-learn does, and 1 / (n_features · √v) for the Laplacian. "neighbours" uses 2 / σ², with σ the
        mean distance to the 50th nearest neighbour.
    length_scale : float or "scale", default="scale"
        ℓ of Matérn's kernel. "scale" takes √(n_features · v / 2), with which the kernel tends to the Gaussian one with
        gamma="scale" as ν grows.
    nu : float, default=1.5
        ν of Matérn's kernel.
    variant : {"iid", "orthogonal", "structured", "circulant"}, default="structured"
        How the frequencies are drawn. "structured" is the fastest, with the small error of "orthogonal". Its directions
        are only approximately uniform, with a bias below 0.01 for any number of columns. "circulant" has a larger error
        than "iid" for wide kernels. The Laplacian kernel, which is not rotation-invariant, allows only "iid" and
        "circulant".
    pairs : bool, default=True
        A cosine and a sine for each frequency; otherwise cosines of twice as many frequencies with random phases.
    n_jobs : int, optional
        Threads of the compiled loops.
    random_state : int, RandomState or None, default=None
        Seed of the frequencies.

    Attributes
    ----------
    gamma_ : float
        The γ in use.
    length_scale_ : float
        The ℓ in use.
    scales_ : ndarray of shape (n_waves,)
        Factors of the directions.
    directions_ : ndarray
        "iid" and "orthogonal": the frequencies, a column for each wave. "circulant": r, a row for each block.
    signs_ : ndarray
        "structured": (n_blocks, 3, size) of ±1; "circulant": (n_features,).
    phases_ : ndarray
        b of the unpaired frequencies.

    References
    ----------
    .. [Rahimi2007] A. Rahimi and B. Recht. Random features for large-scale kernel machines. NIPS, 2007.
    .. [Yu2016] F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar. Orthogonal random features. NIPS,
       2016.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import FourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    >>> Z = FourierFeatures(4000, gamma=0.2, random_state=0).fit_transform(X)
    >>> K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    >>> Z.shape, Z.dtype, bool(np.abs(Z @ Z.T - K).max() < 0.1)
    ((40, 4000), dtype('float32'), True)
    """

    saved = Fields(
        n_features_in_=Count(1),
        gamma_=Number(0.0),
        length_scale_=Number(0.0),
        directions_=Floats(single=True),
        signs_=Floats(single=True),
        scales_=Floats(single=True),
        phases_=Floats(single=True),
    )

    def __init__(
        self,
        n_components: int = 100,
        kernel: str = "gaussian",
        *,
        gamma: float | str = "scale",
        length_scale: float | str = "scale",
        nu: float = 1.5,
        variant: str = "structured",
        pairs: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.length_scale = length_scale
        self.nu = nu
        self.variant = variant
        self.pairs = pairs
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ drawing

    _parts_how = "first"  # the number of columns; widths that are words are those of the first part

    def fit(self, X: Any, y: Any = None) -> FourierFeatures:
        """Draw the frequencies; only the number of columns of X is used, unless γ or ℓ comes from the data.

        Parameters
        ----------
        X : array, tensor or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : FourierFeatures
        """
        n = self._check_params()
        X = as_rows(self, X, reset=True, sparse_hint=self._sparse_hint())
        random = check_random_state(self.random_state)
        self.gamma_, self.length_scale_ = self._widths(X, random)
        self._forget_copies()
        self._n_features_out = n
        d, waves = self.n_features_in_, self._counts()[0]
        self.signs_: np.ndarray = np.empty(0)
        self.scales_: np.ndarray = np.ones(waves)
        if self.variant == "iid":
            self.directions_ = self._independent(d, waves, random)
        elif self.variant == "orthogonal":
            normals = spectra.orthogonal_normals(d, waves, random)
            self.directions_ = normals * self._amplitudes(waves, random)
        elif self.variant == "structured":
            self._draw_structured(d, waves, random)
        else:
            self._draw_circulant(d, waves, random)
        self.phases_ = random.uniform(0, 2 * np.pi, waves - self._counts()[1])
        return self

    def _independent(self, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
        if self.kernel == "gaussian":
            return spectra.gaussian(self.gamma_, width, count, random)
        if self.kernel == "laplacian":
            return spectra.cauchy(self.gamma_, width, count, random)
        return spectra.matern(self.length_scale_, self.nu, width, count, random)

    def _amplitudes(self, count: int, random: np.random.RandomState) -> np.ndarray:
        return spectra.amplitudes(self.kernel, self.gamma_, self.length_scale_, self.nu, count, random)

    def _draw_structured(self, d: int, waves: int, random: np.random.RandomState) -> None:
        size = max(SMALLEST_BLOCK, 1 << (d - 1).bit_length())
        blocks = -(-waves // size)
        self.directions_ = np.empty(0)
        self.signs_ = 2.0 * random.randint(0, 2, (blocks, 3, size)) - 1.0
        # A row of H S₁ H S₂ H S₃ is a unit vector once each H has its factor size^{-1/2}: normal vectors are longer.
        lengths = np.sqrt(random.chisquare(size, waves)) * float(size) ** -1.5
        self.scales_ = lengths * self._amplitudes(waves, random)

    def _draw_circulant(self, d: int, waves: int, random: np.random.RandomState) -> None:
        blocks = -(-waves // d)
        self.signs_ = 2.0 * random.randint(0, 2, d) - 1.0
        if self.kernel == "laplacian":
            self.directions_ = random.standard_cauchy((blocks, d))
            self.scales_ = np.full(waves, self.gamma_)
        else:
            self.directions_ = random.standard_normal((blocks, d))
            self.scales_ = self._amplitudes(waves, random)

    # ------------------------------------------------------------------------------------------------ features

    def transform(self, X: Any) -> Any:
        """Return the features of the rows of X, as an array of the same library as X.

        Parameters
        ----------
        X : array, tensor or sparse matrix of shape (n_samples, n_features)
            Sparse with the variants "iid" and "orthogonal".

        Returns
        -------
        array or tensor of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = as_rows(self, X, reset=False, sparse_hint=self._sparse_hint())
        if sp.issparse(X) or is_numpy(X):
            return self._transform_numpy(X)
        if on_processor(X):
            return as_tensor(self._transform_numpy(X.numpy()))
        width = 4 * (self._n_features_out + len(self.scales_)) + 2 * self.signs_.size
        return by_rows(lambda rows: self._waves(self._angles(rows), self._copies_like(rows)["phases"]), X, width)

    def _transform_numpy(self, X: Any) -> np.ndarray:
        core, threads = compiled(), thread_count(self.n_jobs)
        paired, amplitude = self._counts()[1], math.sqrt(2.0 / self._n_features_out)
        out = np.empty((X.shape[0], self._n_features_out), X.dtype)
        kept = self._copies_like(out)
        if core is not None and self.variant == "structured":
            X = np.ascontiguousarray(X)
            core.structured_waves(X, kept["signs"], kept["scales"], kept["phases"], paired, amplitude, out, threads)
            return out
        for block in row_blocks(X.shape[0], len(self.scales_)):
            angles = np.ascontiguousarray(self._angles(X[block]))
            if core is None:
                out[block] = self._waves(angles, kept["phases"])
            else:
                core.waves(angles, kept["phases"], paired, amplitude, out[block], threads)
        return out

    def _angles(self, X: Any) -> Any:
        """⟨ω_j, x⟩ for all waves, a row for each x."""
        kept = self._copies_like(X)
        if self.variant in ("iid", "orthogonal"):
            return X @ kept["directions"]
        xp, waves = array_api_compat.array_namespace(X), len(self.scales_)
        if self.variant == "circulant":
            fft, d = fft_of(xp), self.n_features_in_
            spectrum = fft.rfft(X * kept["signs"], n=d)
            parts = [fft.irfft(spectrum * fft.rfft(r, n=d), n=d) for r in _rows_of(kept["directions"])]
        else:
            size = self.signs_.shape[2]
            padded = padded_to(xp, X, size)
            parts = []
            for block in range(self.signs_.shape[0]):
                part = padded
                for step in range(3):
                    part = hadamard(xp, part * kept["signs"][block, step, :])
                parts.append(part)
        return xp.concat(parts, axis=1)[:, :waves] * kept["scales"]

    def _waves(self, angles: Any, phases: Any) -> Any:
        xp, paired = array_api_compat.array_namespace(angles), self._counts()[1]
        both, single = angles[:, :paired], angles[:, paired:]
        parts = [xp.cos(both), xp.sin(both), xp.cos(single + phases)]
        return xp.concat(parts, axis=1) * math.sqrt(2.0 / self._n_features_out)

    def _copies_like(self, X: Any) -> dict[str, Any]:
        if sp.issparse(X):
            X = X.data
        return self._like(X, self._numbers)

    def _numbers(self) -> dict[str, np.ndarray]:
        return {
            "directions": self.directions_,
            "signs": self.signs_,
            "scales": self.scales_,
            "phases": self.phases_,
        }

    def _counts(self) -> tuple[int, int]:
        """Waves, and how many of them have both a cosine and a sine."""
        n = self._n_features_out
        return ((n + 1) // 2, n // 2) if self.pairs else (n, 0)

    # ------------------------------------------------------------------------------------------------ parameters

    def _check_params(self) -> int:
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("variant", self.variant, VARIANTS)
        check_choice("pairs", self.pairs, (True, False))
        check_width("gamma", self.gamma, ("scale", "neighbours"))
        check_width("length_scale", self.length_scale, ("scale",))
        if self.nu != np.inf:
            check_positive("nu", self.nu)
        thread_count(self.n_jobs)
        if self.kernel == "laplacian" and self.variant in ("orthogonal", "structured"):
            raise ValueError(
                f"variant={self.variant!r} rotates waves, and the Laplacian kernel changes under rotations: "
                "take variant='iid' or 'circulant'"
            )
        return check_count("n_components", self.n_components)

    def _widths(self, X: Any, random: np.random.RandomState) -> tuple[float, float]:
        """γ and ℓ, from X where they are words; only the one that the kernel has is looked for there."""
        matern = self.kernel == "matern"
        gamma = 1.0 if isinstance(self.gamma, str) else float(self.gamma)
        length_scale = 1.0 if isinstance(self.length_scale, str) else float(self.length_scale)
        if self.gamma == "neighbours":
            gamma = spectra.neighbour_gamma(X.toarray() if sp.issparse(X) else X, random)
        elif isinstance(self.gamma, str) and not matern:
            gamma = spectra.scale_gamma(X)
            if self.kernel == "laplacian":
                gamma = math.sqrt(gamma / X.shape[1])
        if isinstance(self.length_scale, str) and matern:
            length_scale = 1.0 / math.sqrt(2.0 * spectra.scale_gamma(X))
        return gamma, length_scale

    def _sparse_hint(self) -> str | None:
        if self.variant in ("iid", "orthogonal"):
            return None
        return f"with variant={self.variant!r} use X.toarray(), or take variant='iid' or 'orthogonal'"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.variant in ("iid", "orthogonal")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------------------------------------------ model files

    def _check_state(self) -> None:
        self._n_features_out = self._check_params()
        d, (waves, paired) = self.n_features_in_, self._counts()
        size = max(SMALLEST_BLOCK, 1 << (d - 1).bit_length())
        check_shapes(
            self,
            directions_={"structured": (0,), "circulant": (-(-waves // d), d)}.get(self.variant, (d, waves)),
            signs_={"structured": (-(-waves // size), 3, size), "circulant": (d,)}.get(self.variant, (0,)),
            scales_=(waves,),
            phases_=(waves - paired,),
        )


def check_width(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is a positive number or one of the choices."""
    if isinstance(value, str) and value in words:
        return
    if isinstance(value, str) or value is None:
        choices = " or ".join(map(repr, words))
        raise ValueError(f"{name} must be a positive finite number or {choices}, got {value!r}")
    check_positive(name, value)


def hadamard(xp: Any, X: Any) -> Any:
    """X H for the Hadamard matrix H of ±1, the Kronecker product of small ones; columns are a power of two."""
    n, size = X.shape
    done = 1
    while done < size:
        factor = min(64, size // done)
        H = xp.astype(on_device_of(X, sylvester(factor)), X.dtype)
        rest = size // (done * factor)
        X = xp.reshape(X, (n * done, factor) if rest == 1 else (n * done, factor, rest))
        X = X @ H if rest == 1 else H @ X
        done *= factor
    return xp.reshape(X, (n, size))


def sylvester(size: int) -> np.ndarray:
    """The symmetric Hadamard matrix of a power of two: (−1)^(ones in i and j both)."""
    H = np.ones((1, 1))
    while len(H) < size:
        H = np.block([[H, H], [H, -H]])
    return H


def padded_to(xp: Any, X: Any, size: int) -> Any:
    """X with columns of zeros up to ``size``."""
    missing = size - X.shape[1]
    if not missing:
        return X
    return xp.concat([X, xp.zeros((X.shape[0], missing), dtype=X.dtype, device=array_api_compat.device(X))], axis=1)


def _rows_of(matrix: Any) -> list[Any]:
    return [matrix[i, :] for i in range(matrix.shape[0])]
