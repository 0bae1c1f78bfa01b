"""Kernels of vectors: rows of an array or of a sparse matrix.

⟨x, z⟩,  (γ⟨x, z⟩ + c)^p,  exp(γ⟨x, z⟩)
exp(−γ‖x − z‖²),  exp(−γ‖x − z‖₁),  Matérn,  Π_k B_{2p+1}((x_k − z_k) / w)
Σ_k min(x_k, z_k),  Σ_k 2 x_k z_k / (x_k + z_k),  exp(−γ Σ_k (x_k − z_k)² / (x_k + z_k))        histograms
(Σ_g ω_g (Σ_{k ∈ g} v_k x_k z_k)^{p₁})^{p₂}

Sums over coordinates and functions of the sum are compiled (cpp/kernels/pairwise.hpp). float32 vectors with
``dtype=np.float32`` stay float32 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, kve
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from mercer import _core
from mercer._validation import check_count, check_positive, check_sparse
from mercer.kernels.base import CPD, Kernel, Work, mirrored
from mercer.maps import spectra

__all__ = [
    "ANOVA",
    "BSpline",
    "ChiSquared",
    "ExponentialDot",
    "Gaussian",
    "HistogramIntersection",
    "Laplacian",
    "Linear",
    "LocalityImproved",
    "Matern",
    "NegativeDistance",
    "Polynomial",
    "Pyramid",
    "median_heuristic",
    "position_weights",
]

MAX_FEATURES = 1 << 27  # entries of a matrix of explicit features
BLOCK_TERMS = 1 << 35  # terms that one compiled call adds up, at most: about a second
# The squared distance as ‖x‖² + ‖z‖² − 2⟨x, z⟩ is off by about ε (‖x‖² + ‖z‖²): used where γ times that stays small.
EXPANSION_LIMIT = {np.float32: 6.0, np.float64: 1e3}


# ---------------------------------------------------------------------------------------------------- collections


class _Store:
    """A collection of vectors, and what has been made of it: copies of another type, or moved to another origin."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.sparse = sp.issparse(X)
        self._casts: dict[Any, Any] = {}
        self._moved: dict[Any, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._origin: np.ndarray | None = None

    def cast(self, dtype: Any) -> Any:
        """The vectors as float32 or float64."""
        if self.X.dtype == dtype:
            return self.X
        if dtype not in self._casts:
            self._casts[dtype] = self.X.astype(dtype)
        return self._casts[dtype]

    def mean_entries(self) -> int:
        """Entries of a vector: all, or those that are stored."""
        return int(self.X.nnz // max(1, self.X.shape[0]) if self.sparse else self.X.shape[1])

    @property
    def origin(self) -> np.ndarray:
        """The mean."""
        if self._origin is None:
            self._origin = self.X.mean(axis=0, dtype=np.float64) if len(self.X) else np.zeros(self.X.shape[1])
        return self._origin

    def moved(self, origin: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """The (dense) vectors minus an origin, and their squared lengths."""
        key = (id(origin), dtype)
        if key not in self._moved:
            if len(self._moved) >= 2:
                self._moved.clear()
            moved = np.subtract(self.X, origin.astype(self.X.dtype)).astype(dtype, copy=False)
            norms = np.einsum("ij,ij->i", moved, moved, dtype=np.float64).astype(dtype)
            self._moved[key] = (origin, moved, norms)  # the origin too: its id must not be used again
        return self._moved[key][1:]


class VectorRows:
    """A slice of a collection of vectors, in the prepared form of the vector kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.vectors import VectorRows
    >>> rows = VectorRows(np.eye(4))[1:3]
    >>> len(rows), rows.width
    (2, 4)
    """

    def __init__(self, X: Any, store: _Store | None = None, start: int = 0, stop: int | None = None) -> None:
        self.store = _Store(X) if store is None else store
        self.start = start
        self.stop = self.store.X.shape[0] if stop is None else stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, rows: slice) -> VectorRows:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("vectors are cut in stretches: a step other than 1 is not possible")
        return VectorRows(None, self.store, self.start + start, self.start + max(start, stop))

    def chosen(self, places: np.ndarray) -> VectorRows:
        """Return some of the vectors, with the common origin."""
        some = VectorRows(self.matrix()[places])
        some.store._origin = self.store.origin if not self.sparse else None
        return some

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.store.X.shape[1])

    @property
    def sparse(self) -> bool:
        """Whether the vectors are rows of a sparse matrix."""
        return self.store.sparse

    def matrix(self, dtype: Any = None) -> Any:
        """Return the vectors as a float32 or float64 matrix (default: their own type)."""
        return (self.store.X if dtype is None else self.store.cast(dtype))[self.start : self.stop]

    def moved(self, origin: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors minus an origin, and their squared lengths."""
        X, norms = self.store.moved(origin, dtype)
        return X[self.start : self.stop], norms[self.start : self.stop]

    def largest_norm(self, origin: np.ndarray, dtype: Any) -> float:
        """Return the largest squared distance from an origin in the whole collection, for any slice."""
        return float(self.store.moved(origin, dtype)[1].max(initial=0.0))

    def norms(self, dtype: Any) -> np.ndarray:
        """Squared lengths."""
        X = self.matrix()
        if self.sparse:
            squares = X.astype(np.float64).power(2)
            return np.asarray(squares.sum(axis=1)).ravel().astype(dtype)
        return np.einsum("ij,ij->i", X, X, dtype=np.float64).astype(dtype)

    def masses(self, dtype: Any) -> np.ndarray:
        """Sums of the entries."""
        X = self.matrix().astype(np.float64) if self.sparse else self.matrix()
        return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel().astype(dtype)


def _alike(A: VectorRows, B: VectorRows) -> VectorRows:
    """B, with as many columns as A and in the same form."""
    if A.width != B.width:
        raise ValueError(
            f"the vectors of X have {A.width} entries, those of Z have {B.width}: they must be equally long"
        )
    if A.sparse == B.sparse:
        return B
    return VectorRows(sp.csr_matrix(B.matrix()) if A.sparse else B.matrix().toarray())


def _index_arrays(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data


# ---------------------------------------------------------------------------------------------------- what they share


class _VectorKernel(Kernel):
    """A kernel that is a function of a sum over coordinates."""

    _block_entries = 1 << 24
    _takes_sparse = True
    _nonnegative = False
    _diagonal: float | None = None
    """k(x, x), where it is the same for all x."""

    def _rule(self) -> Any:
        """The compiled sum, with what is made of it where that is compiled too."""
        raise NotImplementedError

    _term = "product"
    _fused = True
    """Whether the rule makes the kernel of the sum; otherwise `_after` does."""

    def _after(self, S: np.ndarray) -> np.ndarray:
        """The kernel from sums of terms, in place where possible: for sparse vectors, and where it is not compiled."""
        return S

    def _prepare(self, X: Any) -> VectorRows:
        name = type(self).__name__
        if isinstance(X, (list, tuple)) and X and all(sp.issparse(x) for x in X):
            X = sp.vstack([check_sparse(f"X[{i}]", x) for i, x in enumerate(X)])
        if sp.issparse(X):
            if not self._takes_sparse:
                raise ValueError(f"{name} takes dense vectors only: pass X.toarray()")
            X = _checked(name, check_sparse("X", X), accept_sparse="csr")
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            values = X.data
        else:
            if _dimensions(X) == 1 and len(X):
                if isinstance(X[0] if isinstance(X, (list, tuple, np.ndarray)) else None, (str, bytes)):
                    raise ValueError(f"{name} takes vectors of numbers, got strings: kernels of strings take them")
                raise ValueError(
                    f"{name} takes vectors, one row an object, got {len(X)} single values: use "
                    "np.reshape(X, (-1, 1)) for objects of one number each, or [X] for one vector"
                )
            X = np.ascontiguousarray(_checked(name, X))
            values = X
        if self._nonnegative and values.size and values.min() < 0:
            raise ValueError(f"{name} takes histograms: entries must not be negative, the smallest is {values.min():g}")
        rows = VectorRows(X)
        self._check_width(rows.width)
        return rows

    def _check_width(self, width: int) -> None:
        """Raises ValueError where vectors of that length are no good."""

    def _gram(self, A: VectorRows, B: VectorRows | None, work: Work) -> np.ndarray:
        K = np.empty((len(A), len(A if B is None else B)), work.dtype)
        if K.size:
            self._fill(K, 0, len(A), A, B, work)
        return K

    def _fill(self, K: np.ndarray, start: int, stop: int, A: Any, B: Any, work: Work) -> None:
        if B is not None:
            B = _alike(A, B)
        terms = K.shape[1] * (A.store.mean_entries() + 1)
        rows_at_once = max(96, BLOCK_TERMS // terms)  # long vectors: so that Ctrl-C is heard
        for low in range(start, stop, rows_at_once):
            self._fill_some(K, low, min(stop, low + rows_at_once), A, B, work)

    def _fill_some(self, K: np.ndarray, start: int, stop: int, A: VectorRows, B: VectorRows | None, work: Work) -> None:
        mirror = B is None
        rows, columns = A[start:stop], A[:stop] if B is None else B
        if self._fused and not A.sparse:
            self._compiled(K, start, rows, columns, mirror, work)
        else:
            K[start:stop, : len(columns)] = self._after(self._sums(rows, columns, work))
            if mirror:
                if start:
                    _core.kernels.transpose_into(K[start:stop, :start], K[:start, start:stop])
                mirrored(K[start:stop, start:stop])
        if mirror and self._diagonal is not None:
            at = np.arange(start, stop)
            K[at, at] = self._diagonal

    def _compiled(
        self, K: np.ndarray, start: int, rows: VectorRows, columns: VectorRows, mirror: bool, work: Work
    ) -> None:
        """Values of dense rows with dense columns, into K."""
        X, Z = rows.matrix(work.dtype), columns.matrix(work.dtype)
        _core.kernels.pairwise(X, Z, self._rule(), None, None, K, start, mirror, work.threads)

    def _sums(self, A: VectorRows, B: VectorRows, work: Work) -> np.ndarray:
        """Sums over coordinates, without what is made of them."""
        X, Z = A.matrix(work.dtype), B.matrix(work.dtype)
        if A.sparse and self._term == "product":
            return np.asarray(safe_sparse_dot(X, Z.T, dense_output=True), work.dtype)
        S = np.empty((len(A), len(B)), work.dtype)
        if A.sparse:
            _core.kernels.sparse_pairwise(*_index_arrays(X), *_index_arrays(Z), A.width, self._term, S, work.threads)
        else:
            _core.kernels.pairwise(X, Z, _core.kernels.PairRule(self._term), None, None, S, 0, False, work.threads)
        return S

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        if self._diagonal is None:
            return super()._diag(A, work)
        return np.full(len(A), self._diagonal, work.dtype)


def _checked(name: str, X: Any, **options: Any) -> Any:
    """The vectors as float64 or float32, all of them finite: else an error says where."""
    try:
        return check_array(X, dtype=(np.float64, np.float32), ensure_min_samples=0, **options)
    except ValueError as error:
        if not ("NaN" in str(error) or "infinity" in str(error)):
            raise
        if sp.issparse(X):
            stored = sp.coo_matrix(X)
            at = np.stack([stored.row, stored.col], axis=1)[~np.isfinite(stored.data)]
            values = stored.data[~np.isfinite(stored.data)]
        else:
            table = np.asarray(X, np.float64)
            at, values = np.argwhere(~np.isfinite(table)), table[~np.isfinite(table)]
        if not len(at):
            raise
        row, column, value = at[0][0], at[0][1], values[0]
        place = f"object {row} has {value} at place {column}"
        raise ValueError(f"{name} takes no NaN or infinite numbers: {place}") from error


def _dimensions(X: Any) -> int:
    try:
        return int(np.ndim(X))
    except ValueError as error:
        raise ValueError("the objects must be vectors of numbers, all equally long") from error


def _pd_positive(name: str, value: Any, hint: str = "") -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise ValueError(
            f"{name} must be a positive finite number, or the kernel is not positive definite, got {value!r}{hint}"
        )
    return float(value)


def _check_gamma(value: Any) -> float:
    hint = ": median_heuristic(X) gives a number from data" if isinstance(value, str) or value is None else ""
    return _pd_positive("gamma", value, hint)


def _same_width(parts: list[VectorRows]) -> int:
    for part in parts:
        _alike(parts[0], part)
    return parts[0].width


def _rows_dense(A: VectorRows) -> np.ndarray:
    X = A.matrix()
    return X.toarray() if A.sparse else X


def _check_features(rows: int, columns: int, what: str) -> None:
    if rows * columns > MAX_FEATURES or columns > MAX_FEATURES // 8:
        raise ValueError(
            f"{rows} objects would have {columns} features each ({what}), too many to list: use the Gram matrix, or "
            "approximate(n_components)"
        )


def _monomials(F: np.ndarray, degree: int) -> np.ndarray:
    """All products of ``degree`` columns, times the root of how often each arises: inner products become powers."""
    n, d = F.shape
    if degree == 1:
        return F
    _check_features(n, math.comb(d + degree - 1, degree), f"monomials of degree {degree} in {d} values")
    chosen = np.array(list(combinations_with_replacement(range(d), degree)), np.int64).reshape(-1, degree)
    out = np.ones((n, len(chosen)), F.dtype)
    run = np.ones(len(chosen))
    ways = np.full(len(chosen), float(math.factorial(degree)))
    for t in range(degree):
        out *= F[:, chosen[:, t]]
        run = np.where(chosen[:, t] == chosen[:, t - 1], run + 1, 1.0) if t else run
        ways /= run
    return out * np.sqrt(ways).astype(F.dtype)


# ---------------------------------------------------------------------------------------------------- dot products


class Linear(_VectorKernel):
    """⟨x, z⟩.

    Dense or sparse vectors.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

    has_features = True

    def _rule(self) -> Any:
        return _core.kernels.PairRule("product")

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        return A.norms(work.dtype)

    def _features(self, parts: list[VectorRows]) -> list[Any]:
        _same_width(parts)
        return [part.matrix() for part in parts]


class Polynomial(_VectorKernel):
    """(γ⟨x, z⟩ + c)^p: all monomials of degree p in the coordinates, or up to degree p with c > 0.

    Dense or sparse vectors. The features are the monomials, each with the root of its multinomial coefficient.

    Parameters
    ----------
    degree : int, default=3
        p, at least 1.
    gamma : float, default=1.0
        γ, above 0.
    coef0 : float, default=0.0
        c, at least 0: with c < 0 the kernel is not positive definite.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> k = Polynomial(degree=2, coef0=1.0)
    >>> k.pair([1.0, 2.0], [3.0, 0.0])
    16.0
    >>> k.features([[1.0, 2.0]]).round(3)  # x₁², √2 x₁x₂, √2 x₁, x₂², √2 x₂, 1
    array([[1.   , 2.828, 1.414, 4.   , 2.828, 1.   ]])
    """

    has_features = True

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _check_params(self) -> None:
        check_count("degree", self.degree)
        _check_gamma(self.gamma)
        c = self.coef0
        if isinstance(c, bool) or not isinstance(c, Real) or not math.isfinite(c) or c < 0:
            raise ValueError(
                f"coef0 must be a finite number of at least 0, or the kernel is not positive definite, got {c!r}"
            )

    def _rule(self) -> Any:
        return _core.kernels.PairRule("product", "power", self.gamma, self.coef0, self.degree)

    def _after(self, S: np.ndarray) -> np.ndarray:
        S *= S.dtype.type(self.gamma)
        S += S.dtype.type(self.coef0)
        return S**self.degree

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        return self._after(A.norms(work.dtype))

    def _features(self, parts: list[VectorRows]) -> list[Any]:
        extended = _same_width(parts) + (self.coef0 > 0)
        columns = math.comb(extended + self.degree - 1, self.degree)
        out = []
        for part in parts:
            _check_features(len(part), columns, f"monomials of degree {self.degree}")
            F = _rows_dense(part) * np.sqrt(self.gamma)
            if self.coef0 > 0:
                F = np.hstack([F, np.full((len(F), 1), np.sqrt(self.coef0), F.dtype)])
            out.append(_monomials(F, self.degree))
        return out


class ExponentialDot(_VectorKernel):
    """exp(γ⟨x, z⟩): polynomials of all degrees.

    Dense or sparse vectors. ``ExponentialDot(2 * g).normalized()`` is the Gaussian kernel exp(−g ‖x − z‖²).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, above 0: with γ < 0 the kernel is not positive definite.

    Examples
    --------
    >>> from mercer.kernels import ExponentialDot
    >>> round(ExponentialDot(0.5).pair([1.0, 2.0], [0.0, 1.0]), 4)
    2.7183
    """

    _fused = False

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _check_params(self) -> None:
        _check_gamma(self.gamma)

    def _after(self, S: np.ndarray) -> np.ndarray:
        S *= S.dtype.type(self.gamma)
        largest = S.max(initial=0.0)
        if largest > np.log(np.finfo(S.dtype).max):
            raise ValueError(
                f"exp(γ⟨x, z⟩) with γ⟨x, z⟩ = {largest:g} is too large for {S.dtype}: choose a smaller gamma, scale "
                "the vectors, or take Gaussian(gamma / 2), which is this kernel normalized"
            )
        return np.exp(S, out=S)

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        return self._after(A.norms(work.dtype))


# ------------------------------------------------------------------------------------------------ functions of x − z


class _Stationary(_VectorKernel):
    """A kernel of x − z with a spectral density that can be drawn from."""

    _diagonal = 1.0

    def _frequencies(self, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
        """Draws from the spectral density (Bochner), a column each: E cos⟨ω, x − z⟩ = k(x, z)."""
        raise NotImplementedError

    def approximate(self, n_components: int = 100, random_state: Any = None) -> Any:
        """Return random Fourier features: `mercer.kernels.FourierMap`."""
        from mercer.kernels.approximations import FourierMap

        return FourierMap(self, n_components=n_components, random_state=random_state)


class Gaussian(_Stationary):
    """exp(−γ‖x − z‖²).

    Dense or sparse vectors. γ is a number and never estimated from the data of a call, because two calls would then use
    two different kernels. `median_heuristic` computes a γ from data.

    Parameters
    ----------
    gamma : float, default=1.0
        γ, above 0.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> round(Gaussian(0.5).pair([0.0, 0.0], [1.0, 1.0]), 4)
    0.3679
    >>> Gaussian.from_width(2.0)
    Gaussian(gamma=0.125)
    """

    _fused = True

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @classmethod
    def from_width(cls, sigma: float) -> Gaussian:
        """Return the kernel exp(−‖x − z‖² / (2 σ²))."""
        return cls(1.0 / (2.0 * check_positive("sigma", sigma) ** 2))

    def _check_params(self) -> None:
        _check_gamma(self.gamma)

    def _compiled(
        self, K: np.ndarray, start: int, rows: VectorRows, columns: VectorRows, mirror: bool, work: Work
    ) -> None:
        origin = rows.store.origin
        X, x_norms = rows.moved(origin, work.dtype)
        Z, z_norms = columns.moved(origin, work.dtype)
        reach = self.gamma * (rows.largest_norm(origin, work.dtype) + columns.largest_norm(origin, work.dtype))
        if reach <= EXPANSION_LIMIT[work.dtype]:
            rule = _core.kernels.PairRule("product", "gaussian", self.gamma)
            _core.kernels.pairwise(X, Z, rule, x_norms, z_norms, K, start, mirror, work.threads)
        else:
            rule = _core.kernels.PairRule("squared", "decay", self.gamma)
            _core.kernels.pairwise(X, Z, rule, None, None, K, start, mirror, work.threads)

    def _sums(self, A: VectorRows, B: VectorRows, work: Work) -> np.ndarray:
        # In double precision: the squared lengths of long vectors cancel.
        S = super()._sums(A, B, Work(work.threads))
        S *= -2
        S += A.norms(np.float64)[:, None]
        S += B.norms(np.float64)
        return np.maximum(S, 0, out=S).astype(work.dtype, copy=False)

    def _after(self, S: np.ndarray) -> np.ndarray:
        S *= S.dtype.type(-self.gamma)
        return np.exp(S, out=S)

    def _frequencies(self, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
        return spectra.gaussian(self.gamma, width, count, random)


class Laplacian(_Stationary):
    """exp(−γ‖x − z‖₁).

    Dense or sparse vectors.

    Parameters
    ----------
    gamma : float, default=1.0
        γ, above 0.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> round(Laplacian(0.5).pair([0.0, 0.0], [1.0, 1.0]), 4)
    0.3679
    """

    _term = "absolute"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _check_params(self) -> None:
        _check_gamma(self.gamma)

    def _rule(self) -> Any:
        return _core.kernels.PairRule("absolute", "decay", self.gamma)

    def _after(self, S: np.ndarray) -> np.ndarray:
        S *= S.dtype.type(-self.gamma)
        return np.exp(S, out=S)

    def _frequencies(self, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
        return spectra.cauchy(self.gamma, width, count, random)


class Matern(_Stationary):
    """2^{1−ν} / Γ(ν) · r^ν K_ν(r) with r = √(2ν) ‖x − z‖ / ℓ: Matérn kernels, smoother with larger ν.

    ν = 1/2 is exp(−‖x − z‖ / ℓ), ν = 3/2 is (1 + r) e^{−r}, ν = 5/2 is (1 + r + r²/3) e^{−r} (these are compiled); ν =
    ∞ is the Gaussian kernel of width ℓ. Dense or sparse vectors. For dense vectors, distances are sums of squared
    differences, which are accurate for close vectors.

    Parameters
    ----------
    length_scale : float, default=1.0
        ℓ, above 0.
    nu : float, default=1.5
        ν, above 0; ``np.inf`` for the limit.

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> round(Matern(nu=0.5).pair([0.0, 0.0], [3.0, 4.0]), 4)
    0.0067
    """

    _term = "squared"

    def __init__(self, length_scale: float = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def _check_params(self) -> None:
        _pd_positive("length_scale", self.length_scale)
        if self.nu != np.inf:
            _pd_positive("nu", self.nu)

    @property
    def _fused(self) -> bool:  # type: ignore[override]
        return self.nu in (0.5, 1.5, 2.5, np.inf)

    def _rule(self) -> Any:
        if self.nu == np.inf:
            return _core.kernels.PairRule("squared", "decay", 0.5 / self.length_scale**2)
        return _core.kernels.PairRule("squared", f"matern_{int(2 * self.nu)}", np.sqrt(2 * self.nu) / self.length_scale)

    def _after(self, S: np.ndarray) -> np.ndarray:
        if self.nu == np.inf:
            return np.exp(S * S.dtype.type(-0.5 / self.length_scale**2))
        r = np.sqrt(S) * S.dtype.type(np.sqrt(2 * self.nu) / self.length_scale)
        if self.nu == 0.5:
            return np.exp(-r)
        if self.nu == 1.5:
            return (1 + r) * np.exp(-r)
        if self.nu == 2.5:
            return (1 + r + r * r / 3) * np.exp(-r)
        return _matern(r.astype(np.float64), self.nu).astype(S.dtype)

    def _frequencies(self, width: int, count: int, random: np.random.RandomState) -> np.ndarray:
        return spectra.matern(self.length_scale, self.nu, width, count, random)


def _matern(r: np.ndarray, nu: float) -> np.ndarray:
    """2^{1−ν} / Γ(ν) · r^ν K_ν(r), 1 at r = 0; in logarithms, since the factors are out of range long before k is."""
    safe = np.maximum(r, 1e-300)
    log_values = (1 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(safe) + _log_bessel(safe, nu)
    near = (safe / 2) ** 2 / max(1.0, nu - 1) < 1e-16  # 1 to all digits, for ν > 1
    return np.where((r == 0) | ((nu > 1) & near), 1.0, np.exp(np.minimum(log_values, 0.0)))


def _log_bessel(r: np.ndarray, nu: float) -> np.ndarray:
    """log K_ν(r); for large ν by Debye's expansion, whose error is below 1e-12 here, since K_ν itself overflows."""
    if nu <= 100:
        with np.errstate(over="ignore", divide="ignore"):
            values = np.log(kve(nu, r)) - r
        tiny = gammaln(nu) - np.log(2.0) - nu * np.log(r / 2)  # K_ν ~ Γ(ν) / 2 · (2 / r)^ν
        return np.where(np.isfinite(values), values, tiny)
    p = 1.0 / np.sqrt(1.0 + (r / nu) ** 2)
    exponent = 1.0 / p + np.log(r / nu) - np.log1p(1.0 / p)
    series = 1.0 - (3 * p - 5 * p**3) / (24 * nu)
    series += (81 * p**2 - 462 * p**4 + 385 * p**6) / (1152 * nu**2)
    series -= (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / (414720 * nu**3)
    u4 = 4465125 * p**4 - 94121676 * p**6 + 349922430 * p**8 - 446185740 * p**10 + 185910725 * p**12
    series += u4 / (39813120 * nu**4)
    return 0.5 * np.log(np.pi * p / (2 * nu)) - nu * exponent + np.log(series)


class NegativeDistance(_VectorKernel):
    """−‖x − z‖^q with 0 < q ≤ 2: the conditionally positive definite kernel of a distance.

    It is positive definite only for coefficients that sum to 0. SVMs and centred methods accept it; others raise an
    error. ``NegativeDistance().centered(X)`` is positive definite. Dense or sparse vectors.

    Parameters
    ----------
    power : float, default=1.0
        q, above 0 and at most 2: with a larger q the kernel is not even conditionally positive definite.

    Examples
    --------
    >>> from mercer.kernels import NegativeDistance
    >>> k = NegativeDistance()
    >>> k.pair([0.0, 0.0], [3.0, 4.0])
    -5.0
    >>> k.definiteness
    'cpd'
    """

    _term = "squared"
    _fused = False
    _diagonal = 0.0

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    @property
    def definiteness(self) -> str:
        return CPD

    def _check_params(self) -> None:
        q = self.power
        if isinstance(q, bool) or not isinstance(q, Real) or not 0 < q <= 2:
            raise ValueError(
                f"power must be above 0 and at most 2, or the kernel is not conditionally positive definite, got {q!r}"
            )

    def _after(self, S: np.ndarray) -> np.ndarray:
        if self.power == 1:
            np.sqrt(S, out=S)
        elif self.power != 2:
            np.power(S, S.dtype.type(self.power / 2), out=S)
        return np.negative(S, out=S)


@lru_cache(maxsize=32)
def _spline_pieces(p: int) -> np.ndarray:
    """B_{2p+1} on [j, j + 1), j = 0 … p, as polynomials in v = j + 1 − t, highest power first.

    The coefficients are exact fractions, rounded once: the alternating sum of truncated powers loses all
    digits for large p, its pieces do not.
    """
    m = 2 * p + 1
    table = np.empty((p + 1, m + 1))
    for j in range(p + 1):
        for q in range(m + 1):
            total = sum((-1) ** r * math.comb(m + 1, r) * (p - j - r) ** (m - q) for r in range(p - j + 1))
            table[j, m - q] = float(Fraction(total * math.comb(m, q), math.factorial(m)))
    return table


class BSpline(_VectorKernel):
    """Π_k B_{2p+1}((x_k − z_k) / w): B-splines of odd order, with compact support.

    B_0 is the indicator of [−1/2, 1/2] and B_{i+1} the convolution of B_i and B_0. Only odd orders are positive
    definite, so the parameter is p and not the order: B_1 is a triangle, B_3 the cubic spline. In several dimensions
    the product over the coordinates is taken (B_0 the indicator of a cube); k(x, z) = 0 once two coordinates are (p +
    1) w apart. Dense vectors only.

    Parameters
    ----------
    p : int, default=1
        Half the order, rounded down: 0 to 20.
    width : float, default=1.0
        w, the spacing of the knots.

    Examples
    --------
    >>> from mercer.kernels import BSpline
    >>> BSpline(p=1)([[0.0], [1.0], [2.0]]).round(4)
    array([[0.6667, 0.1667, 0.    ],
           [0.1667, 0.6667, 0.1667],
           [0.    , 0.1667, 0.6667]])
    """

    _takes_sparse = False
    _block_entries = 1 << 20

    def __init__(self, p: int = 1, width: float = 1.0) -> None:
        self.p = p
        self.width = width

    def _check_params(self) -> None:
        if check_count("p", self.p, least=0) > 20:
            raise ValueError(f"p must be at most 20 (order 41), got {self.p}: use Gaussian, which B-splines tend to")
        _pd_positive("width", self.width)

    def _rule(self) -> Any:
        rule = _core.kernels.PairRule("splines")
        rule.set_splines(_spline_pieces(self.p), float(self.width))
        return rule

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        at_zero = float(np.polyval(_spline_pieces(self.p)[0], 1.0))
        return np.full(len(A), at_zero**A.width, work.dtype)


# ------------------------------------------------------------------------------------------------ subsets, histograms


class ANOVA(_VectorKernel):
    """Σ over the subsets of ``degree`` coordinates of Π_k κ(x_k, z_k): interactions of different coordinates.

    κ(a, b) is a b, or exp(−γ (a − b)²) with ``gamma``. Dynamic programming computes it in O(d · degree) per pair. Dense
    vectors only.

    Parameters
    ----------
    degree : int, default=2
        Size of the subsets, at most the number of coordinates.
    gamma : float or None, default=None
        γ of the Gaussian kernel of single coordinates; None takes their products, whose features are the products of
        ``degree`` different coordinates.

    Examples
    --------
    >>> from mercer.kernels import ANOVA
    >>> ANOVA(2).pair([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])  # 1·2 + 1·3 + 2·3
    11.0
    """

    _takes_sparse = False
    _block_entries = 1 << 20

    def __init__(self, degree: int = 2, gamma: float | None = None) -> None:
        self.degree = degree
        self.gamma = gamma

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.gamma is None

    def _check_params(self) -> None:
        check_count("degree", self.degree)
        if self.gamma is not None:
            _check_gamma(self.gamma)

    def _check_width(self, width: int) -> None:
        if self.degree > width:
            raise ValueError(f"degree must be at most the number of coordinates, {width}, got {self.degree}")

    def _rule(self) -> Any:
        rule = _core.kernels.PairRule("subsets")
        rule.set_subsets(self.degree, 0.0 if self.gamma is None else float(self.gamma))
        return rule

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        X = A.matrix(work.dtype)
        if self.gamma is not None:
            return np.full(len(A), math.comb(A.width, self.degree), work.dtype)
        sums = np.zeros((self.degree + 1, len(A)), work.dtype)
        sums[0] = 1
        for column in X.T:
            sums[1:] += sums[:-1] * (column * column)
        return sums[self.degree]

    def _features(self, parts: list[VectorRows]) -> list[Any]:
        d = _same_width(parts)
        for part in parts:
            _check_features(len(part), math.comb(d, self.degree), f"subsets of {self.degree} of {d} coordinates")
        chosen = np.array(list(combinations(range(d), self.degree)), np.int64)
        return [np.multiply.reduce([part.matrix()[:, c] for c in chosen.T]) for part in parts]


class HistogramIntersection(_VectorKernel):
    """Σ_k min(x_k, z_k) for vectors without negative entries.

    Dense or sparse vectors. `AdditiveMap` approximates it by vectors, without random numbers.

    Examples
    --------
    >>> from mercer.kernels import HistogramIntersection
    >>> HistogramIntersection().pair([0.5, 0.5, 0.0], [0.2, 0.5, 0.3])
    0.7
    """

    _nonnegative = True
    _term = "minimum"

    def _rule(self) -> Any:
        return _core.kernels.PairRule("minimum")

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        return A.masses(work.dtype)


class ChiSquared(_VectorKernel):
    """exp(−γ Σ_k (x_k − z_k)² / (x_k + z_k)), or the additive Σ_k 2 x_k z_k / (x_k + z_k), for histograms.

    Coordinates where both vectors are 0 contribute 0. Dense or sparse vectors without negative entries.

    Parameters
    ----------
    gamma : float or None, default=1.0
        γ, above 0; None selects the additive kernel, which `AdditiveMap` approximates by vectors.

    Examples
    --------
    >>> from mercer.kernels import ChiSquared
    >>> round(ChiSquared(1.0).pair([1.0, 0.0], [0.0, 1.0]), 4)  # exp(−2)
    0.1353
    >>> ChiSquared(None).pair([1.0, 3.0], [1.0, 1.0])
    2.5
    """

    _nonnegative = True

    def __init__(self, gamma: float | None = 1.0) -> None:
        self.gamma = gamma

    def _check_params(self) -> None:
        if self.gamma is not None:
            _check_gamma(self.gamma)

    @property
    def _term(self) -> str:  # type: ignore[override]
        return "harmonic" if self.gamma is None else "chi_squared"

    @property
    def _diagonal(self) -> float | None:  # type: ignore[override]
        return None if self.gamma is None else 1.0

    def _rule(self) -> Any:
        if self.gamma is None:
            return _core.kernels.PairRule("harmonic")
        return _core.kernels.PairRule("chi_squared", "decay", self.gamma)

    def _after(self, S: np.ndarray) -> np.ndarray:
        if self.gamma is None:
            return S
        S *= S.dtype.type(-self.gamma)
        return np.exp(S, out=S)

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        if self.gamma is not None:
            return np.ones(len(A), work.dtype)
        return A.masses(work.dtype)


# ---------------------------------------------------------------------------------------------------- locality


def position_weights(length: int, center: float, width: float) -> np.ndarray:
    """Return position weights exp(−(i − center)² / (2 width²)), largest at the centre.

    Parameters
    ----------
    length : int
        Number of positions, numbered from 0.
    center : float
        Position with weight 1.
    width : float
        At this distance from the centre the weight is e^{−1/2}.

    Examples
    --------
    >>> from mercer.kernels import position_weights
    >>> position_weights(5, center=2, width=1.0).round(3)
    array([0.135, 0.607, 1.   , 0.607, 0.135])
    """
    check_count("length", length)
    check_positive("width", width)
    if isinstance(center, bool) or not isinstance(center, Real) or not math.isfinite(center):
        raise ValueError(f"center must be a finite number, got {center!r}")
    return np.exp(-0.5 * ((np.arange(length) - float(center)) / width) ** 2)


class _Groups(_VectorKernel):
    """(Σ_g ω_g (Σ_{k ∈ g} v_k x_k z_k)^{p1})^{p2}."""

    has_features = True
    _takes_sparse = False
    _block_entries = 1 << 18
    p1: int
    p2: int

    def _groups(self, width: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Columns and their weights v in each group, and the weights ω of the groups."""
        raise NotImplementedError

    def _compiled(
        self, K: np.ndarray, start: int, rows: VectorRows, columns: VectorRows, mirror: bool, work: Work
    ) -> None:
        members, values, weights = self._groups(rows.width)
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in members])]).astype(np.int64)
        rule = _core.kernels.PairRule("groups", "power", 1.0, 0.0, self.p2)
        rule.set_groups(
            offsets, np.concatenate(members).astype(np.int64), np.concatenate(values).astype(float), weights, self.p1
        )
        X, Z = rows.matrix(work.dtype), columns.matrix(work.dtype)
        _core.kernels.pairwise(X, Z, rule, None, None, K, start, mirror, work.threads)

    def _diag(self, A: VectorRows, work: Work) -> np.ndarray:
        squares = A.matrix(work.dtype) ** 2
        members, values, weights = self._groups(A.width)
        total = np.zeros(len(A), work.dtype)
        for group, v, w in zip(members, values, weights, strict=True):
            total += work.dtype(w) * (squares[:, group] @ v.astype(work.dtype)) ** self.p1
        return total**self.p2

    def _features(self, parts: list[VectorRows]) -> list[Any]:
        members, values, weights = self._groups(_same_width(parts))
        count = sum(math.comb(len(group) + self.p1 - 1, self.p1) for group in members)
        columns = math.comb(count + self.p2 - 1, self.p2)
        out = []
        for part in parts:
            _check_features(len(part), columns, f"degrees {self.p1} in {len(members)} groups, then {self.p2}")
            X = part.matrix()
            inner = [
                _monomials(X[:, group] * np.sqrt(v).astype(X.dtype), self.p1) * X.dtype.type(np.sqrt(w))
                for group, v, w in zip(members, values, weights, strict=True)
            ]
            out.append(_monomials(np.hstack(inner), self.p2))
        return out


def _weights(name: str, values: Any, length: int | None = None) -> np.ndarray:
    weights = np.asarray(values, np.float64)
    if weights.ndim != 1 or weights.size == 0 or (length is not None and len(weights) != length):
        wanted = "numbers" if length is None else f"{length} numbers, one for each position"
        raise ValueError(f"{name} must be a list of {wanted}, got an array of shape {weights.shape}")
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError(f"{name} must be finite and not negative, or the kernel is not positive definite")
    return weights


class LocalityImproved(_Groups):
    """``(Σ_p ω_p (Σ_{|j| ≤ l} v_j ⟨x_{p+j}, z_{p+j}⟩)^{p1})^{p2}``: positions agree more if their neighbours do.

    With ``window=1`` and both degrees 1 it is the weighted dot product xᵀΩz with the diagonal Ω, from which the algebra
    builds polynomials: ``(LocalityImproved(weights) + 1.0) ** 2``. For a Gaussian kernel with these weights, multiply
    the vectors by √ω. Windows are cut off at the ends. Dense vectors only.

    Parameters
    ----------
    weights : array of float, optional
        ω, one for each position, at least 0: such as `position_weights`. Default: 1.
    window : int or array of float, default=1
        v: an odd number of nonnegative weights, the middle one for the position itself; or an odd number, for weights
        1.
    p1, p2 : int, default=1
        Degrees inside the windows, and of the whole sum.
    channels : int, default=1
        Adjacent entries of the vector for each position: 4 for one-hot nucleotides.

    References
    ----------
    .. [Zien2000] A. Zien, G. Rätsch, S. Mika, B. Schölkopf, T. Lengauer and K.-R. Müller. Engineering support vector
       machine kernels that recognize translation initiation sites. Bioinformatics 16, 2000.

    Examples
    --------
    >>> from mercer.kernels import LocalityImproved, position_weights
    >>> x, z = [1.0, 0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0]
    >>> round(LocalityImproved(position_weights(5, 2, 1.0)).pair(x, z), 4)
    1.7419
    >>> LocalityImproved(window=3, p1=2).pair(x, z)  # 1² + 2² + 2² + 2² + 1²
    14.0
    """

    def __init__(self, weights: Any = None, window: Any = 1, p1: int = 1, p2: int = 1, channels: int = 1) -> None:
        self.weights = weights
        self.window = window
        self.p1 = p1
        self.p2 = p2
        self.channels = channels

    def _window(self) -> np.ndarray:
        window = np.ones(check_count("window", self.window)) if np.ndim(self.window) == 0 else self.window
        v = _weights("window", window)
        if len(v) % 2 == 0:
            raise ValueError(f"window must have an odd length, so that it has a middle, got {len(v)}")
        return v

    def _check_params(self) -> None:
        for name in ("p1", "p2", "channels"):
            check_count(name, getattr(self, name))
        self._window()
        if self.weights is not None:
            _weights("weights", self.weights)

    def _check_width(self, width: int) -> None:
        if width % self.channels:
            raise ValueError(f"the vectors have {width} entries, which is no multiple of channels={self.channels}")
        if self.weights is not None:
            _weights("weights", self.weights, width // self.channels)

    def _groups(self, width: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        positions, v = width // self.channels, self._window()
        half = len(v) // 2
        weights = np.ones(positions) if self.weights is None else _weights("weights", self.weights, positions)
        members, values = [], []
        for p in range(positions):
            low, high = max(0, p - half), min(positions, p + half + 1)
            members.append(np.arange(low * self.channels, high * self.channels))
            values.append(np.repeat(v[low - p + half : high - p + half], self.channels))
        if self.p1 > 1:
            return members, values, weights
        total = np.zeros(width)  # a sum of sums: one weight for each entry
        for group, value, weight in zip(members, values, weights, strict=True):
            total[group] += weight * value
        return [np.arange(width)], [total], np.ones(1)


class Pyramid(_Groups):
    """(Σ over patches ⟨x_patch, z_patch⟩^{p1})^{p2}: images whose neighbouring pixels agree.

    Unlike a Gaussian or polynomial kernel, this kernel depends on the order of the pixels. All patches inside the image
    have the same weight. Images are arrays (n, rows, columns) or (n, rows, columns, channels), or flattened; dense
    only.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of an image; a third number for channels.
    patch : int or tuple of int, default=3
        Rows and columns of a patch.
    p1, p2 : int, default=2 and 1
        Degrees of a patch and of the whole sum.
    stride : int, default=1
        Step from one patch to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Pyramid
    >>> k = Pyramid(shape=(3, 3), patch=2, p1=2)
    >>> k.pair(np.ones(9), np.ones(9))  # 4 patches of 4 pixels
    64.0
    """

    def __init__(self, shape: Sequence[int], patch: Any = 3, p1: int = 2, p2: int = 1, stride: int = 1) -> None:
        self.shape = shape
        self.patch = patch
        self.p1 = p1
        self.p2 = p2
        self.stride = stride

    def _sizes(self) -> tuple[tuple[int, int, int], tuple[int, int]]:
        if isinstance(self.shape, (str, bytes)) or np.ndim(self.shape) != 1 or len(self.shape) not in (2, 3):
            raise ValueError(f"shape must be (rows, columns) or (rows, columns, channels), got {self.shape!r}")
        rows, columns, channels = (*(check_count("shape", size) for size in self.shape), 1)[:3]
        patch = (self.patch, self.patch) if np.ndim(self.patch) == 0 else tuple(self.patch)
        if len(patch) != 2:
            raise ValueError(f"patch must be a number or (rows, columns), got {self.patch!r}")
        height, width = (check_count("patch", size) for size in patch)
        if height > rows or width > columns:
            raise ValueError(f"a patch of {height} x {width} does not lie in an image of {rows} x {columns}")
        return (rows, columns, channels), (height, width)

    def _check_params(self) -> None:
        for name in ("p1", "p2", "stride"):
            check_count(name, getattr(self, name))
        self._sizes()

    def _prepare(self, X: Any) -> VectorRows:
        if not sp.issparse(X) and _dimensions(X) > 2:
            images = np.asarray(X)
            if images.shape[1:] != tuple(self.shape):
                raise ValueError(f"the images have the shape {images.shape[1:]}, the kernel is for {tuple(self.shape)}")
            X = images.reshape(len(images), -1)
        return super()._prepare(X)

    def _check_width(self, width: int) -> None:
        if width != math.prod(self.shape):
            raise ValueError(
                f"the vectors have {width} entries, images of shape {self.shape} have {math.prod(self.shape)}"
            )

    def _groups(self, width: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        (rows, columns, channels), (height, breadth) = self._sizes()
        pixels = np.arange(width).reshape(rows, columns, channels)
        members = [
            pixels[r : r + height, c : c + breadth].ravel()
            for r in range(0, rows - height + 1, self.stride)
            for c in range(0, columns - breadth + 1, self.stride)
        ]
        return members, [np.ones(len(group)) for group in members], np.ones(len(members))


# ---------------------------------------------------------------------------------------------------- parameters


def median_heuristic(X: Any, n_samples: int = 1000, random_state: Any = None) -> float:
    """Return γ = 1 / (2 m²), with m the median distance of two different objects, as a first guess for `Gaussian`.

    Parameters
    ----------
    X : array or sparse matrix
        The vectors.
    n_samples : int, default=1000
        Maximum number of objects used.
    random_state : int, RandomState or None, default=None
        Seed of their choice.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, median_heuristic
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> median_heuristic(X)  # distances 1, 2, 3
    0.125
    """
    count = check_count("n_samples", n_samples, least=2)
    rows = NegativeDistance(2.0)._prepare(X)
    if len(rows) < 2:
        raise ValueError(f"X must hold at least 2 vectors for a median of distances, got {len(rows)}")
    if len(rows) > count:
        chosen = np.sort(check_random_state(random_state).permutation(len(rows))[:count])
        rows = VectorRows(rows.matrix()[chosen])
    squared = -NegativeDistance(2.0)._gram(rows, None, Work())
    median = float(np.median(np.sqrt(squared[np.triu_indices(len(rows), 1)])))
    if median == 0:
        raise ValueError(
            "more than half of the pairs of vectors are equal: the median distance is 0, choose gamma yourself"
        )
    return 1.0 / (2.0 * median**2)
