"""Oblique, Stiefel, SO(n) and SE(n) as embedded submanifolds of matrix spaces.

    Oblique(n, m)   {X ∈ R^{n×m}: diag(XᵀX) = 1}       unit columns
    Stiefel(n, m)   {X ∈ R^{n×m}: XᵀX = I}             orthonormal columns
    SO(n)           {X ∈ R^{n×n}: XᵀX = I, det X = 1}  rotations
    SE(n)           {[[R, b], [0, 1]]: R ∈ SO(n)}      rigid motions, as (n + 1) × (n + 1) matrices

Points and tangent vectors are matrices of the embedding space, and the metric is that of the embedding: the Riemannian
gradient of f is the projection of its gradient by the entries of X. In SO and SE, exp and log are those of the group,

    exp_X(V) = Exp(V X⁻¹) X,    log_X(Y) = Log(Y X⁻¹) X,

with Exp and Log in closed form for n = 2 and 3 and by an eigendecomposition above. NumPy only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer._validation import check_count

__all__ = ["SE", "SO", "Manifold", "Oblique", "Stiefel"]


class Manifold:
    """Base class: a set of matrices of shape ``shape`` with a tangent space at each of them."""

    shape: tuple[int, int]

    @property
    def dimension(self) -> int:
        """Number of independent directions in a tangent space."""
        raise NotImplementedError

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the tangent vector at ``x`` nearest to the matrix ``v``."""
        raise NotImplementedError

    def retract(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return a point in the direction of the tangent vector ``v``: equal to ``exp`` up to second order."""
        raise NotImplementedError

    def exp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the end of the curve that leaves ``x`` with velocity ``v``, after unit time."""
        raise NotImplementedError

    def log(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the shortest tangent vector at ``x`` with ``exp(x, v) == y``."""
        raise NotImplementedError(f"{self!r} has no logarithm in closed form")

    def nearest(self, a: np.ndarray) -> np.ndarray:
        """Return the point of the manifold nearest to the matrix ``a``."""
        raise NotImplementedError

    def transport(self, x: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the tangent vector ``v`` at ``x`` carried to ``y``, by projection."""
        return self.project(y, v)

    def inner(self, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
        """Return the inner product of two tangent vectors at ``x``."""
        return float(np.vdot(u, v))

    def norm(self, x: np.ndarray, v: np.ndarray) -> float:
        """Return the length of a tangent vector at ``x``."""
        return math.sqrt(max(0.0, self.inner(x, v, v)))

    def distance(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the length of ``log(x, y)``."""
        return self.norm(x, self.log(x, y))

    def residual(self, x: np.ndarray) -> float:
        """Return how far ``x`` is from satisfying the equations of the manifold: the largest absolute violation."""
        raise NotImplementedError

    def random(self, random_state: Any = None) -> np.ndarray:
        """Return a random point, uniformly distributed where the manifold is compact.

        Parameters
        ----------
        random_state : int, Generator or None

        Returns
        -------
        ndarray
        """
        return self.nearest(np.random.default_rng(random_state).standard_normal(self.shape))

    def random_tangent(self, x: np.ndarray, random_state: Any = None) -> np.ndarray:
        """Return a random tangent vector at ``x`` of length 1."""
        v = self.project(x, np.random.default_rng(random_state).standard_normal(self.shape))
        return v / self.norm(x, v)

    def check(self, name: str, x: Any, tol: float = 1e-6) -> np.ndarray:
        """Return ``x`` as an array, or raise a ValueError that describes the violation."""
        point = np.array(x, dtype=float)
        if point.shape != self.shape:
            raise ValueError(f"{name} must have shape {self.shape}, got {point.shape}")
        if not np.isfinite(point).all():
            raise ValueError(f"{name} must not contain NaN or infinite values")
        if (residual := self.residual(point)) > tol:
            raise ValueError(f"{name} is not on {self!r}: the equations are violated by {residual:.2g}")
        return point


class Oblique(Manifold):
    """Matrices with columns of length 1: a product of spheres.

    Parameters
    ----------
    n : int
        Rows.
    m : int, default=1
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import Oblique
    >>> sphere = Oblique(3)
    >>> north, east = np.array([[0.0], [0.0], [1.0]]), np.array([[1.0], [0.0], [0.0]])
    >>> round(sphere.distance(north, east), 4)
    1.5708
    """

    def __init__(self, n: int, m: int = 1) -> None:
        self.shape = check_count("n", n), check_count("m", m)

    def __repr__(self) -> str:
        return f"Oblique{self.shape}"

    @property
    def dimension(self) -> int:
        return (self.shape[0] - 1) * self.shape[1]

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return v - x * (x * v).sum(axis=0)

    def nearest(self, a: np.ndarray) -> np.ndarray:
        lengths = np.linalg.norm(a, axis=0)
        if not lengths.all():
            raise ValueError("a column is 0, so no point of the sphere is nearest to it")
        return a / lengths

    def retract(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.nearest(x + v)

    def exp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        angle = np.linalg.norm(v, axis=0)
        return self.nearest(x * np.cos(angle) + v * np.sinc(angle / math.pi))

    def log(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        direction = self.project(x, y)
        sine, cosine = np.linalg.norm(direction, axis=0), (x * y).sum(axis=0)
        if ((sine < 1e-14) & (cosine < 0)).any():
            raise ValueError("opposite columns are joined by many shortest curves: the logarithm is not unique")
        return direction * np.where(sine < 1e-14, 1.0, np.arctan2(sine, cosine) / np.where(sine < 1e-14, 1.0, sine))

    def residual(self, x: np.ndarray) -> float:
        return float(np.abs((x * x).sum(axis=0) - 1).max())


class Stiefel(Manifold):
    """Matrices with orthonormal columns.

    Parameters
    ----------
    n : int
        Rows.
    m : int
        Columns, at most ``n``.

    References
    ----------
    .. [Edelman1998] A. Edelman, T. Arias and S. Smith. The geometry of algorithms with orthogonality constraints. SIAM
       Journal on Matrix Analysis and Applications 20, 1998.

    Examples
    --------
    The two leading eigenvectors of a symmetric matrix maximise the trace of XᵀAX.

    >>> import numpy as np
    >>> from mercer.manifolds import Stiefel, minimize
    >>> A = np.diag([5.0, 4.0, 1.0, 0.5])
    >>> result = minimize(lambda X: -np.trace(X.T @ A @ X), lambda X: -2 * A @ X, Stiefel(4, 2), random_state=0)
    >>> round(-result.value, 6), bool(np.abs(result.x[2:]).max() < 1e-5)
    (9.0, True)
    """

    def __init__(self, n: int, m: int) -> None:
        self.shape = check_count("n", n), check_count("m", m)
        if m > n:
            raise ValueError(f"m must be at most n = {n}: there are no {m} orthonormal columns of length {n}")

    def __repr__(self) -> str:
        return f"Stiefel{self.shape}"

    @property
    def dimension(self) -> int:
        n, m = self.shape
        return n * m - m * (m + 1) // 2

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = x.T @ v
        return v - x @ (0.5 * (a + a.T))

    def nearest(self, a: np.ndarray) -> np.ndarray:
        u, _, vt = np.linalg.svd(a, full_matrices=False)
        return u @ vt

    def retract(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.nearest(x + v)

    def exp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        # The geodesic of the embedded metric: [x v] expm([[a, -vᵀv], [I, a]]) [I; 0] expm(-a), a = xᵀv. [Edelman1998]
        m = self.shape[1]
        a = x.T @ v
        block = np.block([[a, -v.T @ v], [np.eye(m), a]])
        moved = np.hstack([x, v]) @ _expm(block)[:, :m] @ _expm(-a)
        return self.nearest(moved)  # which removes the rounding errors of the products

    def residual(self, x: np.ndarray) -> float:
        return float(np.abs(x.T @ x - np.eye(self.shape[1])).max())


class SO(Manifold):
    """Rotations of n dimensions.

    Parameters
    ----------
    n : int
        Dimension of the space, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SO
    >>> quarter = SO(3).Exp([0, 0, np.pi / 2])  # about the third axis
    >>> quarter.round(3) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    >>> SO(3).Log(quarter).round(4)
    array([0.    , 0.    , 1.5708])
    """

    def __init__(self, n: int) -> None:
        self.n = check_count("n", n, 2)
        self.shape = self.n, self.n

    def __repr__(self) -> str:
        return f"SO({self.n})"

    @property
    def dimension(self) -> int:
        return self.n * (self.n - 1) // 2

    def hat(self, w: Any) -> np.ndarray:
        """Return the skew matrix with the given coordinates; in three dimensions ``hat(w) @ x`` is w × x."""
        return _skew(np.asarray(w, dtype=float), self.n)

    def vee(self, skew: np.ndarray) -> np.ndarray:
        """Return the coordinates of a skew matrix: the inverse of :meth:`hat`."""
        return _unskew(skew)

    def Exp(self, w: Any) -> np.ndarray:
        """Return the rotation exp(hat(w)) of a vector of ``dimension`` coordinates."""
        return _rotation(self.hat(_coordinates(w, self.dimension)))

    def Log(self, x: np.ndarray) -> np.ndarray:
        """Return the shortest coordinates w with ``Exp(w) == x``."""
        return self.vee(_rotation_log(x))

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = x.T @ v
        return x @ (0.5 * (a - a.T))

    def nearest(self, a: np.ndarray) -> np.ndarray:
        u, _, vt = np.linalg.svd(a)
        u[:, -1] *= np.linalg.det(u) * np.linalg.det(vt)
        return u @ vt

    def random(self, random_state: Any = None) -> np.ndarray:
        q, r = np.linalg.qr(np.random.default_rng(random_state).standard_normal(self.shape))
        q *= np.sign(np.diag(r))  # the Haar measure of O(n)
        q[:, 0] *= np.linalg.det(q)
        return q

    def exp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return x @ _rotation(_antisymmetric(x.T @ v))

    retract = exp

    def log(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x @ _rotation_log(x.T @ y)

    def residual(self, x: np.ndarray) -> float:
        return float(max(np.abs(x.T @ x - np.eye(self.n)).max(), abs(np.linalg.det(x) - 1)))


class SE(Manifold):
    """Rigid motions of n dimensions as matrices [[R, b], [0, 1]].

    Parameters
    ----------
    n : int
        Dimension of the space, at least 2.
    length : float, default=1.0
        The unit of translations: a shift by ``length`` is as long as a rotation by 1 radian in one plane. Take about
        the radius of the object that moves.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.manifolds import SE
    >>> motion = SE(2).Exp([np.pi, np.pi, 0.0])  # half a turn on a circle of radius 1: coordinates w, then v
    >>> (motion @ [0, 0, 1]).round(6) + 0.0
    array([0., 2., 1.])
    """

    def __init__(self, n: int, length: float = 1.0) -> None:
        self.n, self.length = check_count("n", n, 2), float(length)
        if not 0 < self.length < math.inf:
            raise ValueError(f"length must be a positive finite number, got {length!r}")
        self.shape = self.n + 1, self.n + 1

    def __repr__(self) -> str:
        return f"SE({self.n})"

    @property
    def dimension(self) -> int:
        return self.n * (self.n + 1) // 2

    def point(self, rotation: Any, translation: Any) -> np.ndarray:
        """Return [[R, b], [0, 1]]."""
        x = np.eye(self.n + 1)
        x[:-1, :-1], x[:-1, -1] = rotation, translation
        return x

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """Return the motion that undoes ``x``."""
        return self.point(x[:-1, :-1].T, -x[:-1, :-1].T @ x[:-1, -1])

    def Exp(self, xi: Any) -> np.ndarray:
        """Return the exponential of the coordinates (w, v): of [[hat(w), v], [0, 0]]."""
        xi = _coordinates(xi, self.dimension)
        skew = _skew(xi[: -self.n], self.n)
        return self.point(_rotation(skew), _mean_rotation(skew) @ xi[-self.n :])

    def Log(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates (w, v) with ``Exp(…) == x`` and the smallest angles."""
        skew = _rotation_log(x[:-1, :-1])
        return np.concatenate([_unskew(skew), np.linalg.solve(_mean_rotation(skew), x[:-1, -1])])

    def inner(self, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
        turned = float(np.vdot(u[:-1, :-1], v[:-1, :-1]))
        return turned + float(u[:-1, -1] @ v[:-1, -1]) * 2 / self.length**2

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        tangent = np.zeros(self.shape)
        rotation = x[:-1, :-1]
        tangent[:-1, :-1] = rotation @ _antisymmetric(rotation.T @ v[:-1, :-1])
        tangent[:-1, -1] = v[:-1, -1]
        return tangent

    def gradient(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the Riemannian gradient for the matrix ``g`` of partial derivatives."""
        tangent = self.project(x, g)
        tangent[:-1, -1] *= self.length**2 / 2
        return tangent

    def nearest(self, a: np.ndarray) -> np.ndarray:
        return self.point(SO(self.n).nearest(a[:-1, :-1]), a[:-1, -1])

    def random(self, random_state: Any = None) -> np.ndarray:
        """Return a uniform rotation with a normally distributed translation of scale ``length``."""
        rng = np.random.default_rng(random_state)
        return self.point(SO(self.n).random(rng), self.length * rng.standard_normal(self.n))

    def exp(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        rotation = x[:-1, :-1]
        skew, shift = _antisymmetric(rotation.T @ v[:-1, :-1]), rotation.T @ v[:-1, -1]
        return self.point(rotation @ _rotation(skew), x[:-1, -1] + rotation @ _mean_rotation(skew) @ shift)

    def retract(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        rotation = x[:-1, :-1]
        return self.point(rotation @ _rotation(_antisymmetric(rotation.T @ v[:-1, :-1])), x[:-1, -1] + v[:-1, -1])

    def log(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        rotation = x[:-1, :-1]
        skew = _rotation_log(rotation.T @ y[:-1, :-1])
        tangent = np.zeros(self.shape)
        tangent[:-1, :-1] = rotation @ skew
        tangent[:-1, -1] = rotation @ np.linalg.solve(_mean_rotation(skew), rotation.T @ (y[:-1, -1] - x[:-1, -1]))
        return tangent

    def residual(self, x: np.ndarray) -> float:
        last = np.zeros(self.n + 1)
        last[-1] = 1
        return max(SO(self.n).residual(x[:-1, :-1]), float(np.abs(x[-1] - last).max()))


# ------------------------------------------------------------------------------------------------ skew matrices


def _coordinates(values: Any, count: int) -> np.ndarray:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (count,):
        raise ValueError(f"expected {count} coordinates, got an array of shape {vector.shape}")
    return vector


def _antisymmetric(a: np.ndarray) -> np.ndarray:
    return 0.5 * (a - a.T)


def _skew(w: np.ndarray, n: int) -> np.ndarray:
    """The skew matrix of its coordinates: an angle for n = 2, the axis times the angle for n = 3, else row by row."""
    if n == 2:
        return np.array([[0.0, -w[0]], [w[0], 0.0]])
    if n == 3:
        return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    skew = np.zeros((n, n))
    skew[np.tril_indices(n, -1)] = w
    return skew - skew.T


def _unskew(skew: np.ndarray) -> np.ndarray:
    n = len(skew)
    if n == 2:
        return np.array([skew[1, 0]])
    if n == 3:
        return np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    return skew[np.tril_indices(n, -1)]


def _series(angle: float) -> tuple[float, float, float]:
    """sin a / a, (1 - cos a) / a², (a - sin a) / a³, also near 0."""
    if abs(angle) < 1e-2:
        s = angle * angle
        return 1 - s / 6 * (1 - s / 20), 0.5 - s / 24 * (1 - s / 30), (1 - s / 20 * (1 - s / 42)) / 6
    half = math.sin(angle / 2) / angle
    return math.sin(angle) / angle, 2 * half * half, (angle - math.sin(angle)) / angle**3


def _rotation(skew: np.ndarray) -> np.ndarray:
    """The exponential of a skew matrix."""
    n = len(skew)
    if n <= 3:
        first, second, _ = _series(math.sqrt(0.5 * float(np.vdot(skew, skew))))
        return np.eye(n) + first * skew + second * (skew @ skew)
    values, vectors = np.linalg.eigh(1j * skew)
    return ((vectors * np.exp(-1j * values)) @ vectors.conj().T).real


def _mean_rotation(skew: np.ndarray) -> np.ndarray:
    """∫₀¹ exp(s·skew) ds, which turns the v of a motion's coordinates into its translation."""
    n = len(skew)
    if n <= 3:
        _, second, third = _series(math.sqrt(0.5 * float(np.vdot(skew, skew))))
        return np.eye(n) + second * skew + third * (skew @ skew)
    values, vectors = np.linalg.eigh(1j * skew)
    means = np.exp(-0.5j * values) * np.sinc(values / (2 * math.pi))
    return ((vectors * means) @ vectors.conj().T).real


def _rotation_log(rotation: np.ndarray) -> np.ndarray:
    """The skew matrix with the smallest angles whose exponential is the rotation."""
    n = len(rotation)
    if n == 2:
        return _skew(np.array([math.atan2(rotation[1, 0] - rotation[0, 1], rotation[0, 0] + rotation[1, 1])]), 2)
    if n == 3:
        return _rotation_log_3(rotation)
    return _rotation_log_n(rotation)


def _rotation_log_3(rotation: np.ndarray) -> np.ndarray:
    axis = _unskew(_antisymmetric(rotation))  # times sin of the angle
    sine, cosine = float(np.linalg.norm(axis)), 0.5 * (float(np.trace(rotation)) - 1)
    angle = math.atan2(sine, cosine)
    if cosine > -0.5:
        return _skew(axis / _series(angle)[0], 3)
    # Near half a turn the sine says little: the symmetric part is (1 - cos) a aᵀ + cos I.
    square = 0.5 * (rotation + rotation.T) - cosine * np.eye(3)
    column = square[:, int(np.argmax(np.diag(square)))]
    unit = column / np.linalg.norm(column)
    return _skew(unit * (angle if unit @ axis >= 0 else -angle), 3)


def _rotation_log_n(rotation: np.ndarray) -> np.ndarray:
    # A rotation is normal: its symmetric and antisymmetric parts share eigenvectors. Half turns (-1) come in
    # pairs whose plane is not unique: any orthonormal pair of real vectors of that space will do.
    n = len(rotation)
    cosines, vectors = np.linalg.eigh(0.5 * (rotation + rotation.T))
    half = int((cosines < -1 + 1e-13).sum())
    half -= half % 2
    flipped, rest = vectors[:, :half], vectors[:, half:]
    skew = np.zeros((n, n))
    for k in range(0, half, 2):
        plane = np.outer(flipped[:, k + 1], flipped[:, k])
        skew += math.pi * (plane - plane.T)
    if rest.shape[1]:
        inside = rest.T @ rotation @ rest
        best, best_error = None, math.inf
        for a, b in ((1.0, 0.7236), (0.4142, 1.0), (1.0, -0.3178)):  # some mixture separates the eigenvalues
            mixture = 0.5 * a * (inside + inside.T) - 0.5j * b * (inside - inside.T)
            frame = np.linalg.eigh(mixture)[1]
            diagonal = np.einsum("ij,ij->j", frame.conj(), inside @ frame)
            error = float(np.abs((frame * diagonal) @ frame.conj().T - inside).max())
            if error < best_error:
                best, best_error = ((frame * (1j * np.angle(diagonal))) @ frame.conj().T).real, error
        assert best is not None
        skew += rest @ _antisymmetric(best) @ rest.T
    return skew


def _expm(a: np.ndarray) -> np.ndarray:
    """The exponential of a small matrix by scaling, a Taylor sum and squaring."""
    norm = float(np.abs(a).sum(axis=0).max())
    squarings = max(0, math.ceil(math.log2(norm)) + 2) if norm > 0 else 0
    scaled = a / 2**squarings
    term = result = np.eye(len(a))
    for k in range(1, 19):
        term = term @ scaled / k
        result = result + term
    for _ in range(squarings):
        result = result @ result
    return result
