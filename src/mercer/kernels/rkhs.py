"""Geometry in the feature space of a kernel: functions, distances, orthogonal bases, alignment, definiteness.

f = Σ_i α_i k(·, x_i),   ⟨f, g⟩ = Σ_ij α_i β_j k(x_i, z_j),   ⟨k(·, x), f⟩ = f(x)
d(x, z)² = k(x, x) + k(z, z) − 2 k(x, z)
f ↦ (⟨g, f⟩ / ‖g‖²) g,   f ↦ f − (⟨g, f⟩ / ‖g‖²) g
A(K, L) = ⟨K, L⟩_F / (‖K‖_F ‖L‖_F)

Positive definite means cᵀ K c ≥ 0 for all c, as in the whole library (often called semi-definite). Strictly positive
definite: only c = 0 gives 0. Conditionally positive definite: it holds for all c that sum to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from mercer import _linalg
from mercer._validation import check_count, thread_count
from mercer.kernels.algebra import _count
from mercer.kernels.base import Kernel, Work, check_kernel, require_positive_definite

__all__ = [
    "RKHSFunction",
    "alignment",
    "distance",
    "gram_schmidt",
    "is_conditionally_positive_definite",
    "is_positive_definite",
    "is_strictly_positive_definite",
    "pivoted_cholesky",
]


# ---------------------------------------------------------------------------------------------------- functions


class RKHSFunction:
    """f = Σ_i coef_i k(·, points_i), an element of the reproducing kernel Hilbert space.

    Functions of the same kernel can be added, subtracted and scaled; their points need not be the same.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.
    points : collection of objects
        What the kernel takes.
    coef : array of float
        One for each of the points.

    Examples
    --------
    With the linear kernel f(x) = ⟨w, x⟩ for w = Σ_i coef_i points_i:

    >>> from mercer.kernels import Linear, RKHSFunction
    >>> f = RKHSFunction(Linear(), [[1.0, 0.0], [0.0, 2.0]], [3.0, 2.0])
    >>> f([[1.0, 1.0]])
    array([7.])
    >>> f.norm()
    5.0
    >>> g = RKHSFunction(Linear(), [[1.0, 0.0]], [1.0])
    >>> f.inner(g), f.deflate(g).norm()
    (3.0, 4.0)
    """

    def __init__(self, kernel: Kernel, points: Any, coef: Any) -> None:
        require_positive_definite(check_kernel("kernel", kernel), "RKHSFunction")
        self.kernel = kernel
        self.points = points if hasattr(points, "__len__") else list(points)
        n = _length(self.points)
        try:
            self.coef = np.array(coef, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"coef must be {n} numbers, one for each of the points") from error
        if self.coef.shape != (n,) or not np.isfinite(self.coef).all():
            raise ValueError(
                f"coef must be finite numbers, one for each of the {n} points, got shape {self.coef.shape}"
            )

    def __call__(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Return the values f(x)."""
        if len(self.coef) == 0:
            return np.zeros(_length(X))
        return self.kernel(X, self.points, n_jobs=n_jobs) @ self.coef

    def inner(self, other: RKHSFunction) -> float:
        """Return ⟨f, g⟩ of two functions."""
        _same_kernel([self, other])
        if not (len(self.coef) and len(other.coef)):
            return 0.0
        same = other.points is self.points
        return float(self.coef @ self.kernel(self.points, None if same else other.points) @ other.coef)

    def norm(self) -> float:
        """Return ‖f‖ = √⟨f, f⟩; |f(x)| is at most ‖f‖ √k(x, x)."""
        return float(np.sqrt(max(0.0, self.inner(self))))

    def __add__(self, other: Any) -> RKHSFunction:
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        points, coef = _in_common([self, other])
        return RKHSFunction(self.kernel, points, coef.sum(axis=0))

    def __neg__(self) -> RKHSFunction:
        return RKHSFunction(self.kernel, self.points, -self.coef)

    def __sub__(self, other: Any) -> RKHSFunction:
        return self + (-other) if isinstance(other, RKHSFunction) else NotImplemented

    def __mul__(self, scale: Any) -> RKHSFunction:
        if isinstance(scale, bool) or not isinstance(scale, Real):
            return NotImplemented
        if not np.isfinite(float(scale)):
            raise ValueError(f"the scale of a function must be finite, got {scale!r}")
        return RKHSFunction(self.kernel, self.points, float(scale) * self.coef)

    __rmul__ = __mul__

    def __truediv__(self, scale: Any) -> RKHSFunction:
        return self * (1.0 / scale) if isinstance(scale, Real) else NotImplemented

    def project(self, onto: RKHSFunction | Sequence[RKHSFunction]) -> RKHSFunction:
        """Return the projection onto another function, or onto the span of several."""
        others = [onto] if isinstance(onto, RKHSFunction) else list(onto)
        if not others:
            return RKHSFunction(self.kernel, self.points, np.zeros(len(self.coef)))
        points, coef = _in_common([self, *others])
        G = _inner_products(self.kernel, points, coef)
        if not np.diag(G)[1:].max() > 0:
            raise ValueError("the function that is projected onto is 0")
        weights = np.linalg.lstsq(G[1:, 1:], G[1:, 0], rcond=1e-12)[0]
        own, own_coef = _in_common(others)
        return RKHSFunction(self.kernel, own, weights @ own_coef)

    def deflate(self, by: RKHSFunction | Sequence[RKHSFunction]) -> RKHSFunction:
        """Return the function without its projection, orthogonal to ``by``."""
        return self - self.project(by)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.coef)

    def __repr__(self) -> str:
        return f"RKHSFunction({self.kernel!r}, {len(self.coef)} points)"


def gram_schmidt(functions: Sequence[RKHSFunction], tol: float = 1e-7) -> tuple[list[RKHSFunction], list[int]]:
    """Return orthonormal functions with the same span, by the Gram-Schmidt process.

    Parameters
    ----------
    functions : sequence of RKHSFunction
        Functions of one kernel.
    tol : float, default=1e-7
        A function is dropped as linearly dependent if its residual is at most ``tol`` times its norm.

    Returns
    -------
    basis : list of RKHSFunction
        Their Gram matrix is the identity.
    dropped : list of int
        The numbers of the functions that were dropped.

    Examples
    --------
    >>> from mercer.kernels import Linear, RKHSFunction, gram_schmidt
    >>> f, g, h = (RKHSFunction(Linear(), [point], [1.0]) for point in ([2.0, 0.0], [3.0, 1.0], [0.0, 5.0]))
    >>> basis, dropped = gram_schmidt([f, g, h])
    >>> len(basis), dropped, basis[1]([[7.0, 8.0]])
    (2, [2], array([8.]))
    """
    functions = list(functions)
    _tolerance(tol)
    if not functions:
        return [], []
    points, coef = _in_common(functions)
    G = _inner_products(functions[0].kernel, points, coef)
    chosen: list[np.ndarray] = []
    dropped = []
    for i in range(len(functions)):
        v = np.zeros(len(functions))
        v[i] = 1.0
        for _ in range(2):  # the second time takes away what rounding left
            for e in chosen:
                v = v - (e @ G @ v) * e
        left = v @ G @ v
        if not left > (tol * tol) * G[i, i]:
            dropped.append(i)
            continue
        chosen.append(v / np.sqrt(left))
    return [RKHSFunction(functions[0].kernel, points, e @ coef) for e in chosen], dropped


def _same_kernel(functions: Sequence[RKHSFunction]) -> None:
    first = functions[0].kernel
    for f in functions[1:]:
        if not isinstance(f, RKHSFunction):
            raise ValueError(f"expected an RKHSFunction, got {type(f).__name__}")
        if not _equal(f.kernel, first):
            raise ValueError(f"functions of different kernels cannot be combined: {first!r} and {f.kernel!r}")


def _equal(first: Any, second: Any) -> bool:
    """Whether two kernels, or parameters of kernels, are the same."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, Kernel):
        left, right = first.get_params(deep=False), second.get_params(deep=False)
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(_equal(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    same = first == second
    return same if isinstance(same, bool) else False


def _in_common(functions: Sequence[RKHSFunction]) -> tuple[Any, np.ndarray]:
    """One collection of points for several functions, and the coefficients on it, one row a function."""
    _same_kernel(functions)
    pools: list[Any] = []
    starts: dict[int, int] = {}
    total = 0
    for f in functions:
        if id(f.points) not in starts:
            starts[id(f.points)] = total
            pools.append(f.points)
            total += len(f.coef)
    coef = np.zeros((len(functions), total))
    for i, f in enumerate(functions):
        start = starts[id(f.points)]
        coef[i, start : start + len(f.coef)] = f.coef
    return _joined(pools), coef


def _joined(pools: list[Any]) -> Any:
    """Collections of one kind, one after the other."""
    if len(pools) == 1:
        return pools[0]
    if all(sp.issparse(pool) for pool in pools):
        return sp.vstack(pools, format="csr")
    if all(isinstance(pool, np.ndarray) for pool in pools):
        return np.concatenate(pools)
    if all(isinstance(pool, dict) for pool in pools):
        return {name: [value for pool in pools for value in pool[name]] for name in pools[0]}
    if all(hasattr(pool, "iloc") for pool in pools):
        import pandas as pd

        return pd.concat(pools)
    return [point for pool in pools for point in pool]


def _length(X: Any) -> int:
    return int(X.shape[0]) if sp.issparse(X) else _count(X)


def _inner_products(kernel: Kernel, points: Any, coef: np.ndarray) -> np.ndarray:
    if not coef.shape[1]:
        return np.zeros((len(coef), len(coef)))
    return coef @ kernel(points) @ coef.T


# ---------------------------------------------------------------------------------------------------- distances


def distance(kernel: Kernel, X: Any, Z: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the distances in feature space, ‖Φ(x) − Φ(z)‖ = √(k(x, x) + k(z, z) − 2 k(x, z)).

    Negative values under the root, which only rounding can cause, count as zero. The kernel may be conditionally
    positive definite. scikit-learn's nearest neighbours take the matrix with ``metric="precomputed"``.

    Parameters
    ----------
    kernel : Kernel
        A positive definite or conditionally positive definite kernel.
    X, Z : collections of objects
        What the kernel takes; Z is X by default.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (len(X), len(Z))

    Examples
    --------
    >>> from mercer.kernels import Intersection, Linear, distance
    >>> distance(Linear(), [[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    >>> distance(Intersection(), [{"a", "b"}], [{"b", "c"}, {"a", "b"}])   # √ of the number of elements in one only
    array([[1.41421356, 0.        ]])
    """
    require_positive_definite(check_kernel("kernel", kernel), "distance", conditional=True)
    work = kernel._work(np.float64, n_jobs)
    A = kernel._prepared("X", X)
    own = Z is None or Z is X
    B = A if own else kernel._prepared("Z", Z)
    D = kernel._whole(A, None if own else B, work)
    left = np.asarray(kernel._diag(A, work), np.float64)
    right = left if own else np.asarray(kernel._diag(B, work), np.float64)
    D = np.sqrt(np.maximum(left[:, None] + right[None, :] - 2.0 * D, 0.0))
    if own:
        np.fill_diagonal(D, 0.0)
    return D


# ---------------------------------------------------------------------------------------------------- low rank


def pivoted_cholesky(
    kernel: Kernel, X: Any, rank: int | None = None, tol: float = 1e-10, *, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return L with K ≈ L Lᵀ from a few columns of the Gram matrix, by pivoted Cholesky decomposition.

    Each step takes the object with the largest remaining diagonal entry k(x, x) − ‖L_x‖², so K − L Lᵀ stays positive
    definite, its trace is the sum of the remaining entries, and the rows of the chosen objects are exact. The Gram
    matrix is never formed: r columns of it are computed, in O(n r²) further steps.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.
    X : collection of n objects
        What the kernel takes.
    rank : int, optional
        Maximum number of columns; by default as many as ``tol`` requires.
    tol : float, default=1e-10
        Stop when the sum of the remaining diagonal is at most ``tol`` times that of K.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    L : ndarray of shape (n, r)
        Rows in the order of X; ``L[pivots]`` is lower triangular.
    pivots : ndarray of int of shape (r,)
        The chosen objects, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, pivoted_cholesky
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> L, pivots = pivoted_cholesky(Linear(), X)
    >>> L.shape, bool(np.allclose(L @ L.T, X @ X.T))
    ((50, 3), True)
    """
    require_positive_definite(check_kernel("kernel", kernel), "pivoted_cholesky")
    _tolerance(tol)
    kernel._check_params()
    A = kernel._prepared("X", X)
    n = len(A) if not hasattr(A, "shape") else A.shape[0]
    most = n if rank is None else min(n, check_count("rank", rank))
    work = Work(thread_count(n_jobs))
    diagonal = np.array(kernel._diag(A, work), np.float64)
    if not np.isfinite(diagonal).all():
        raise ValueError("k(x, x) is not finite for all objects")
    floor = tol * diagonal.sum()
    noise = n * np.finfo(float).eps * diagonal.max(initial=0.0)
    L, pivots, _ = _linalg.pivoted_cholesky(
        diagonal,
        lambda p: kernel._whole(A, A[p : p + 1], work)[:, 0],
        most,
        lambda largest, total: largest <= noise or total <= floor,
    )
    return L, pivots


# ---------------------------------------------------------------------------------------------------- alignment


def alignment(K: Any, target: Any, *, centered: bool = False) -> float:
    """Return the alignment of a Gram matrix with labels or another one: ⟨K, L⟩_F / (‖K‖_F ‖L‖_F).

    Parameters
    ----------
    K : array of shape (n, n)
        A Gram matrix.
    target : array of shape (n,) or (n, n)
        Labels or another Gram matrix L. Two labels become 1 and −1, and L is y yᵀ. With more than two labels (strings,
        integers), L_ij is 1 for equal labels. Real targets y with more than two values are used unchanged.
    centered : bool, default=False
        Centre both matrices first, so that a constant added to a kernel does not count.

    Returns
    -------
    float
        In [−1, 1]; in [0, 1] for positive definite matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, alignment
    >>> X = np.array([[1.0, 0.1], [0.9, -0.2], [-1.0, 0.1], [-1.1, 0.0]])
    >>> round(alignment(Linear()(X), ["a", "a", "b", "b"]), 3)
    0.995
    >>> y = np.array([1, 1, -1, -1])
    >>> alignment(np.outer(y, y), y)
    1.0
    """
    K = _checked_matrix("K", K)
    L = _target_matrix(target, len(K))
    if centered:
        K, L = _centered(K), _centered(L)
    scale = np.linalg.norm(K) * np.linalg.norm(L)
    if scale == 0:
        raise ValueError(f"a matrix is 0{' after centring' if centered else ''}: its alignment is not defined")
    return float(np.clip((K * L).sum() / scale, -1.0, 1.0))


def _target_matrix(target: Any, n: int) -> np.ndarray:
    values = np.asarray(target)
    if values.ndim == 2:
        L = _checked_matrix("target", values)
        if len(L) != n:
            raise ValueError(f"target must be a matrix of {n} rows as K is, got {len(L)}")
        return L
    if values.shape != (n,):
        raise ValueError(f"target must hold {n} labels or be a {n} x {n} matrix, got shape {values.shape}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("target must not hold NaN or infinite values")
    try:
        kinds, number = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError("target must hold labels of one kind, such as integers or strings") from error
    if len(kinds) == 2:
        y = 2.0 * number - 1.0
        return np.outer(y, y)
    if values.dtype.kind == "f":
        return np.outer(values, values)
    return (number[:, None] == number[None, :]).astype(float)


def _centered(K: np.ndarray) -> np.ndarray:
    means = K.mean(axis=0)
    return K - means[:, None] - means[None, :] + means.mean()


# ---------------------------------------------------------------------------------------------------- definiteness


def is_positive_definite(K: Any, X: Any = None, *, tol: float = 1e-9) -> bool:
    """Return whether cᵀ K c ≥ 0 for all c, up to rounding.

    Parameters
    ----------
    K : array of shape (n, n), or Kernel
        A symmetric matrix; or a kernel, whose Gram matrix of X is tested.
    X : collection of objects, optional
        Given with a kernel only.
    tol : float, default=1e-9
        The smallest eigenvalue must be at least −``tol`` times the sum of the absolute eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, is_positive_definite
    >>> is_positive_definite(Linear(), np.ones((3, 2))), is_positive_definite([[0.0, 1.0], [1.0, 0.0]])
    (True, False)
    """
    values = sla.eigvalsh(_matrix_of(K, X))
    return bool(values.min(initial=0.0) >= -_tolerance(tol) * np.abs(values).sum())


def is_strictly_positive_definite(K: Any, X: Any = None, *, tol: float = 1e-12) -> bool:
    """Return whether cᵀ K c > 0 for all c but 0: all eigenvalues exceed rounding error.

    With a kernel, pass distinct objects: a repeated object makes every Gram matrix singular.

    Parameters
    ----------
    K : array of shape (n, n), or Kernel
        A symmetric matrix; or a kernel, whose Gram matrix of X is tested.
    X : collection of objects, optional
        Given with a kernel only.
    tol : float, default=1e-12
        The smallest eigenvalue must lie above ``tol`` times the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import is_strictly_positive_definite
    >>> is_strictly_positive_definite(np.eye(2)), is_strictly_positive_definite(np.ones((2, 2)))
    (True, False)
    """
    values = sla.eigvalsh(_matrix_of(K, X))
    if not len(values):
        return True
    return bool(values[0] > max(_tolerance(tol), len(values) * np.finfo(float).eps) * max(values[-1], 0.0))


def is_conditionally_positive_definite(K: Any, X: Any = None, *, tol: float = 1e-9) -> bool:
    """Return whether cᵀ K c ≥ 0 for all c that sum to 0: whether the centred matrix is positive definite.

    Parameters
    ----------
    K : array of shape (n, n), or Kernel
        A symmetric matrix; or a kernel, whose Gram matrix of X is tested.
    X : collection of objects, optional
        Given with a kernel only.
    tol : float, default=1e-9
        The smallest eigenvalue of the centred matrix must be at least −``tol`` times the sum of the absolute
        eigenvalues of K.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import is_conditionally_positive_definite, is_positive_definite
    >>> x = np.array([0.0, 1.0, 3.0])
    >>> K = -np.subtract.outer(x, x) ** 2
    >>> is_conditionally_positive_definite(K), is_positive_definite(K)
    (True, False)
    """
    K = _matrix_of(K, X)
    if not len(K):
        return True
    centered = _centered(K)
    scale = np.abs(sla.eigvalsh(K)).sum()
    return bool(sla.eigvalsh((centered + centered.T) / 2.0).min() >= -_tolerance(tol) * scale)


def _matrix_of(K: Any, X: Any) -> np.ndarray:
    if isinstance(K, Kernel):
        if X is None:
            raise ValueError("X must be given with a kernel: the objects whose Gram matrix is judged")
        return _checked_matrix("the Gram matrix", K(X))
    if X is not None:
        raise ValueError("X is given with a kernel only, not with a matrix")
    return _checked_matrix("K", K)


def _checked_matrix(name: str, K: Any) -> np.ndarray:
    """A square, symmetric, finite matrix of float64; the error says what is wrong, and where."""
    try:
        K = np.asarray(K.toarray() if sp.issparse(K) else K, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a square matrix of numbers: {error}") from error
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {K.shape}")
    wrong = ~np.isfinite(K)
    if wrong.any():
        place = tuple(map(int, np.unravel_index(np.argmax(wrong), K.shape)))
        raise ValueError(f"{name} must be finite, entry {place} is {K[place]}")
    apart, i, j = _linalg.asymmetry(K)
    if apart > 1e-8 * np.abs(K).max(initial=0.0):
        raise ValueError(f"{name} must be symmetric: entry ({i}, {j}) is {K[i, j]}, entry ({j}, {i}) is {K[j, i]}")
    return K


def _tolerance(tol: Any) -> float:
    if isinstance(tol, bool) or not isinstance(tol, Real) or not np.isfinite(float(tol)) or float(tol) < 0:
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}")
    return float(tol)
