"""The algebra of kernels: operations that keep positive definite kernels positive definite.

a k₁ + b k₂ (a, b ≥ 0),   k₁ k₂,   kⁿ,   f(x) f(z),   k₁(x₁, z₁) k₂(x₂, z₂),   k₁(x₁, z₁) + k₂(x₂, z₂)
⟨Φ(x) + Γ, Φ(z) + Γ⟩,   Γ = Σ_i a_i Φ(x_i)
Σ_{parts of x} Σ_{parts of z} Π_i k_i(part_i, part'_i)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._validation import check_choice, check_count
from mercer.kernels.base import (
    CPD,
    INDEFINITE,
    PD,
    Kernel,
    Work,
    _scale,
    check_kernel,
    mirrored,
    require_positive_definite,
)

__all__ = [
    "Centered",
    "Constant",
    "Convolution",
    "Corrected",
    "DirectSum",
    "FunctionKernel",
    "Normalized",
    "OnColumn",
    "Power",
    "Product",
    "Scaled",
    "Sum",
    "TensorProduct",
    "Translated",
]

MAX_COLUMNS = 1 << 26  # of a product of explicit features


class Together:
    """Several prepared collections of the same objects, sliced together."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = tuple(parts)
        lengths = {len(part) for part in self.parts}
        if len(lengths) != 1:
            raise ValueError(f"the parts of a collection must be equally long, got {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: slice) -> Together:
        return Together(part[rows] for part in self.parts)


def _part(A: Any, i: int) -> Any:
    return None if A is None else A.parts[i]


# ---------------------------------------------------------------------------------------------------- sums and products


class _Pair(Kernel):
    """Two kernels on the same objects."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.left.has_features and self.right.has_features

    def _check_params(self) -> None:
        check_kernel("left", self.left)._check_params()
        check_kernel("right", self.right)._check_params()

    def _prepare(self, X: Any) -> Together:
        return Together((self.left._prepare(X), self.right._prepare(X)))


class Sum(_Pair):
    """k₁ + k₂: the concatenated features of both. Write ``k1 + k2``.

    Parameters
    ----------
    left, right : Kernel
        The two kernels, on the same objects.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> k = Linear() + Linear() ** 2
    >>> k
    Linear() + Linear() ** 2
    >>> k.pair([1.0, 2.0], [3.0, 0.0])
    12.0
    """

    @property
    def definiteness(self) -> str:
        kinds = {self.left.definiteness, self.right.definiteness}
        return INDEFINITE if INDEFINITE in kinds else CPD if CPD in kinds else PD

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        return self.left._gram(_part(A, 0), _part(B, 0), work) + self.right._gram(_part(A, 1), _part(B, 1), work)

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return self.left._diag(A.parts[0], work) + self.right._diag(A.parts[1], work)

    def _features(self, parts: list[Together]) -> list[Any]:
        pairs = zip(
            self.left._features([part.parts[0] for part in parts]),
            self.right._features([part.parts[1] for part in parts]),
            strict=True,
        )
        return [_side_by_side(F, G) for F, G in pairs]

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"

    def _bracketed(self) -> str:
        return f"({self!r})"


class Product(_Pair):
    """k₁ k₂: all products of a feature of k₁ and one of k₂. Write ``k1 * k2``.

    Parameters
    ----------
    left, right : Kernel
        The two kernels, on the same objects; both positive definite.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() * Linear()).pair([1.0, 2.0], [3.0, 0.0])
    9.0
    """

    @property
    def definiteness(self) -> str:
        return PD if self.left.definiteness == self.right.definiteness == PD else INDEFINITE

    def _check_params(self) -> None:
        super()._check_params()
        _no_conditional_factor(self.left)
        _no_conditional_factor(self.right)

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        return self.left._gram(_part(A, 0), _part(B, 0), work) * self.right._gram(_part(A, 1), _part(B, 1), work)

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return self.left._diag(A.parts[0], work) * self.right._diag(A.parts[1], work)

    def _features(self, parts: list[Together]) -> list[Any]:
        pairs = zip(
            self.left._features([part.parts[0] for part in parts]),
            self.right._features([part.parts[1] for part in parts]),
            strict=True,
        )
        return [_row_products(F, G) for F, G in pairs]

    def __repr__(self) -> str:
        return f"{self.left._bracketed()} * {self.right._bracketed()}"

    def _primary(self) -> str:
        return f"({self!r})"


class _Wrapped(Kernel):
    """One kernel, changed."""

    kernel: Kernel

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return self.kernel.has_features

    @property
    def definiteness(self) -> str:
        return self.kernel.definiteness

    def _check_params(self) -> None:
        check_kernel("kernel", self.kernel)._check_params()

    def _prepare(self, X: Any) -> Any:
        return self.kernel._prepare(X)


class Scaled(_Wrapped):
    """a k with a ≥ 0. Write ``2.0 * k``.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    scale : float
        At least 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> 0.5 * Linear()
    0.5 * Linear()
    >>> -1 * Linear()
    Traceback (most recent call last):
        ...
    ValueError: the scale of a kernel must be a finite number of at least 0, got -1
    """

    def __init__(self, kernel: Kernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def _check_params(self) -> None:
        super()._check_params()
        _scale("scale", self.scale)

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        return work.dtype(self.scale) * self.kernel._gram(A, B, work)

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return self.scale * self.kernel._diag(A, work)

    def _features(self, parts: list[Any]) -> list[Any]:
        return [np.sqrt(self.scale) * F for F in self.kernel._features(parts)]

    def __repr__(self) -> str:
        return f"{self.scale!r} * {self.kernel._bracketed()}"

    def _primary(self) -> str:
        return f"({self!r})"


class Power(_Wrapped):
    """kⁿ for an integer n ≥ 1. Write ``k ** n``.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.
    exponent : int
        At least 1.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() ** 3).pair([2.0], [1.0])
    8.0
    """

    def __init__(self, kernel: Kernel, exponent: int = 2) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def _check_params(self) -> None:
        super()._check_params()
        check_count("exponent", self.exponent)
        if self.exponent > 1:
            _no_conditional_factor(self.kernel)

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        return self.kernel._gram(A, B, work) ** self.exponent

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return self.kernel._diag(A, work) ** self.exponent

    def _features(self, parts: list[Any]) -> list[Any]:
        return [reduce(_row_products, [F] * self.exponent) for F in self.kernel._features(parts)]

    def __repr__(self) -> str:
        return f"{self.kernel._primary()} ** {self.exponent}"

    def _bracketed(self) -> str:
        return f"({self!r})"


class Constant(Kernel):
    """The same value for all pairs; ``k + 1.0`` adds it, which gives linear methods an offset.

    Parameters
    ----------
    value : float, default=1.0
        At least 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1.0) ** 2).pair([1.0, 2.0], [3.0, 0.0])
    16.0
    """

    has_features = True

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def _check_params(self) -> None:
        _scale("value", self.value)

    def _prepare(self, X: Any) -> np.ndarray:
        return np.ones(_count(X))

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Work) -> np.ndarray:
        return np.full((len(A), len(A if B is None else B)), self.value, work.dtype)

    def _diag(self, A: np.ndarray, work: Work) -> np.ndarray:
        return np.full(len(A), self.value)

    def _features(self, parts: list[np.ndarray]) -> list[Any]:
        return [np.full((len(part), 1), np.sqrt(self.value)) for part in parts]


# ------------------------------------------------------------------------------------------------ one kernel, changed


class Normalized(_Wrapped):
    """k(x, z) / √(k(x, x) k(z, z)): the cosine in feature space. Write ``k.normalized()``.

    An object with k(x, x) = 0, such as a string without any n-gram, has the value 0 with all objects, including itself.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> round(Linear().normalized().pair([1.0, 1.0], [1.0, 0.0]), 4)
    0.7071
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _check_params(self) -> None:
        super()._check_params()
        require_positive_definite(self.kernel, "normalized()")

    def _prepare(self, X: Any) -> Together:
        A = self.kernel._prepare(X)
        norms = np.sqrt(np.maximum(self.kernel._diag(A, Work()), 0.0))
        with np.errstate(divide="ignore"):
            return Together((A, np.where(norms > 0, 1.0 / norms, 0.0)))

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        # In double precision whatever the result is: values may be out of the range of float32 before the division.
        K = np.array(self.kernel._gram(_part(A, 0), _part(B, 0), Work(work.threads)), np.float64)
        if B is None:
            K *= np.multiply.outer(A.parts[1], A.parts[1])
            np.fill_diagonal(K, self._diag(A, work))
        else:
            K *= A.parts[1][:, None]
            K *= B.parts[1]
        return K.astype(work.dtype, copy=False)

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return (A.parts[1] > 0).astype(work.dtype)

    def _features(self, parts: list[Together]) -> list[Any]:
        plain = self.kernel._features([part.parts[0] for part in parts])
        return [_scaled_rows(F, part.parts[1]) for F, part in zip(plain, parts, strict=True)]

    def __repr__(self) -> str:
        return f"{self.kernel._primary()}.normalized()"


class _Anchored(_Wrapped):
    """A kernel that depends on given objects: their matrix is computed once."""

    points: Any

    def _anchor(self) -> Any:
        """What `_compute_anchor` makes, again only where the kernel or its parameters have changed."""
        # The text of long arrays leaves the middle out, so that their identities count too; they are kept, so that no
        # other array comes to have the same one.
        params = self.get_params()
        key = (repr(params), [id(value) for value in params.values() if not isinstance(value, (int, float, str))])
        if getattr(self, "_kept", (None,))[0] != key:
            self._kept = (key, self._compute_anchor(self.kernel._prepared("points", self.points)), params)
        return self._kept[1]

    def _compute_anchor(self, P: Any) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_kept"}

    def __repr__(self) -> str:
        return f"{self.kernel._primary()}.{self._verb}({_count(self.points)} points)"

    _verb = "anchored"


class Translated(_Anchored):
    """⟨Φ(x) + Γ, Φ(z) + Γ⟩ with Γ = Σ_i coef_i Φ(points_i). Write ``k.translated(points, coef)``.

    Parameters
    ----------
    kernel : Kernel
        A positive definite kernel; or a conditionally positive definite one with coefficients that sum to −1, which
        gives a positive definite kernel.
    points : collection of objects
        What the kernel takes.
    coef : array of float
        One for each of the points.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().translated([[1.0, 0.0]], [2.0]).pair([0.0, 1.0], [3.0, 0.0])  # ⟨(2, 1), (5, 0)⟩
    10.0
    """

    _verb = "translated"

    def __init__(self, kernel: Kernel, points: Any, coef: Any) -> None:
        self.kernel = kernel
        self.points = points
        self.coef = coef

    @property
    def definiteness(self) -> str:
        if self.kernel.definiteness == CPD:
            return PD if abs(self._coefficients().sum() + 1.0) < 1e-9 else INDEFINITE
        return self.kernel.definiteness

    def _coefficients(self) -> np.ndarray:
        coef = np.asarray(self.coef, np.float64)
        if coef.shape != (_count(self.points),) or not np.isfinite(coef).all():
            raise ValueError(f"coef must be finite numbers, one for each of the {_count(self.points)} points")
        return coef

    def _check_params(self) -> None:
        super()._check_params()
        if self.kernel.definiteness == CPD and self.definiteness != PD:
            raise ValueError(
                f"{self.kernel!r} is only conditionally positive definite: coef must sum to −1 in a translation"
            )

    def _compute_anchor(self, P: Any) -> tuple[Any, np.ndarray, float]:
        coef = self._coefficients()
        K = self.kernel._whole(P, None, Work())
        return P, coef, float(coef @ K @ coef)

    def _shifts(self, A: Any, work: Work) -> np.ndarray:
        P, coef, _ = self._anchor()
        return self.kernel._whole(A, P, Work(work.threads)) @ coef

    def _prepare(self, X: Any) -> Together:
        A = self.kernel._prepare(X)
        return Together((A, self._shifts(A, Work())))

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        constant = self._anchor()[2]
        K = np.asarray(self.kernel._gram(_part(A, 0), _part(B, 0), Work(work.threads)))
        return K + (A.parts[1][:, None] + (A if B is None else B).parts[1][None, :] + constant)

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return self.kernel._diag(A.parts[0], Work(work.threads)) + 2.0 * A.parts[1] + self._anchor()[2]

    def _features(self, parts: list[Together]) -> list[Any]:
        P, coef, _ = self._anchor()
        *plain, origin = self.kernel._features([*(part.parts[0] for part in parts), P])
        shift = np.asarray(coef @ origin).ravel()
        return [_dense(F) + shift for F in plain]


class Centered(Translated):
    """The kernel with the mean of given objects as the origin of feature space. Write ``k.centered(X)``.

    On the objects themselves the result is that of scikit-learn's ``KernelCenterer`` on their Gram matrix: rows and
    columns sum to 0. A conditionally positive definite kernel becomes positive definite.

    Parameters
    ----------
    kernel : Kernel
        A positive definite or conditionally positive definite kernel.
    points : collection of objects
        The objects whose mean is the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> X = np.array([[1.0], [2.0], [6.0]])
    >>> Linear().centered(X)(X)
    array([[ 4.,  2., -6.],
           [ 2.,  1., -3.],
           [-6., -3.,  9.]])
    """

    _verb = "centered"

    def __init__(self, kernel: Kernel, points: Any) -> None:
        self.kernel = kernel
        self.points = points

    def _coefficients(self) -> np.ndarray:
        n = _count(self.points)
        if n == 0:
            raise ValueError("a kernel cannot be centred on an empty collection")
        return np.full(n, -1.0 / n)


class Corrected(_Anchored):
    """A positive definite kernel from one that may be indefinite. Write ``k.corrected(X)``.

    With K = U Λ Uᵀ the matrix of the objects X, ``Φ(x) = |Λ|^{-1/2} Uᵀ k(X, x)``, without the negative
    eigenvalues (``"clip"``) or with their absolute values (``"flip"``). On X this is K with its spectrum corrected.

    Parameters
    ----------
    kernel : Kernel
        Any symmetric similarity, such as a negative edit distance.
    points : collection of objects
        The objects whose matrix is corrected: usually the training set.
    method : {"clip", "flip"}, default="clip"
        Treatment of negative eigenvalues: set to 0, or replaced by their absolute values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> Linear().corrected(X)(X)
    array([[1., 0.],
           [0., 4.]])
    """

    has_features = True
    _verb = "corrected"

    def __init__(self, kernel: Kernel, points: Any, method: str = "clip") -> None:
        self.kernel = kernel
        self.points = points
        self.method = method

    @property
    def definiteness(self) -> str:
        return PD

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("method", self.method, ("clip", "flip"))

    def _compute_anchor(self, P: Any) -> tuple[Any, np.ndarray]:
        values, vectors = np.linalg.eigh(self.kernel._whole(P, None, Work()))
        sizes = values if self.method == "clip" else np.abs(values)
        kept = sizes > 1e-12 * max(1e-300, np.abs(values).max(initial=0.0))
        return P, vectors[:, kept] / np.sqrt(sizes[kept])

    def _prepare(self, X: Any) -> np.ndarray:
        P, basis = self._anchor()
        return self.kernel._whole(self.kernel._prepare(X), P, Work()) @ basis

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Work) -> np.ndarray:
        return A @ (A if B is None else B).T

    def _diag(self, A: np.ndarray, work: Work) -> np.ndarray:
        return np.einsum("ij,ij->i", A, A)

    def _features(self, parts: list[np.ndarray]) -> list[Any]:
        return list(parts)


class OnColumn(_Wrapped):
    """The kernel of one column of a table. Write ``k.on("title")``.

    Parameters
    ----------
    kernel : Kernel
        A kernel for the values of the column. Numbers are passed to it as an array of one column.
    column : str, int, or list of these
        A name in a data frame, a dict of columns, a structured array or dicts; an index into tuples or the rows of an
        array. A list selects several columns as an array.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> k = Linear().on("price") + Linear().on("weight")
    >>> k([{"price": 2.0, "weight": 1.0}, {"price": 3.0, "weight": 0.0}])
    array([[5., 6.],
           [6., 9.]])
    """

    def __init__(self, kernel: Kernel, column: Any) -> None:
        self.kernel = kernel
        self.column = column

    def _prepare(self, X: Any) -> Any:
        if isinstance(self.column, list):
            columns = [np.asarray(_column(X, name), np.float64) for name in self.column]
            return self.kernel._prepare(np.column_stack(columns))
        values = _column(X, self.column)
        numbers = np.asarray(values) if _all_numbers(values) else None
        return self.kernel._prepare(values if numbers is None else numbers.reshape(-1, 1))

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        return self.kernel._gram(A, B, work)

    def _fill(self, K: np.ndarray, start: int, stop: int, A: Any, B: Any, work: Work) -> None:
        self.kernel._fill(K, start, stop, A, B, work)

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return self.kernel._diag(A, work)

    def _features(self, parts: list[Any]) -> list[Any]:
        return self.kernel._features(parts)

    def __repr__(self) -> str:
        return f"{self.kernel._primary()}.on({self.column!r})"


# ---------------------------------------------------------------------------------------------------- kernels of parts


class FunctionKernel(Kernel):
    """f(x) f(z) for any function f of an object.

    Parameters
    ----------
    function : callable
        Maps an object to a finite number.

    Examples
    --------
    >>> from mercer.kernels import FunctionKernel
    >>> FunctionKernel(len)(["a", "bcd"])
    array([[1., 3.],
           [3., 9.]])
    """

    has_features = True

    def __init__(self, function: Callable[[Any], float]) -> None:
        self.function = function

    def _check_params(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}")

    def _prepare(self, X: Any) -> np.ndarray:
        values = np.array([float(self.function(x)) for x in X])
        if not np.isfinite(values).all():
            at = np.flatnonzero(~np.isfinite(values))[0]
            raise ValueError(f"function gave {values[at]} for object {at}: it must give finite numbers")
        return values

    def _gram(self, A: np.ndarray, B: np.ndarray | None, work: Work) -> np.ndarray:
        return np.multiply.outer(A, A if B is None else B)

    def _diag(self, A: np.ndarray, work: Work) -> np.ndarray:
        return A**2

    def _features(self, parts: list[np.ndarray]) -> list[Any]:
        return [part[:, None] for part in parts]

    def __repr__(self) -> str:
        return f"FunctionKernel({getattr(self.function, '__name__', repr(self.function))})"


class _OnTuples(Kernel):
    """Kernels on the places of tuples."""

    def __init__(self, *kernels: Kernel) -> None:
        self.kernels = kernels

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["kernels"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = {f"kernel_{i}": k for i, k in enumerate(self.kernels)}
        if deep:
            for i, k in enumerate(self.kernels):
                params.update({f"kernel_{i}__{name}": value for name, value in k.get_params().items()})
        return params

    def set_params(self, **params: Any) -> _OnTuples:
        kernels = list(self.kernels)
        for key, value in params.items():
            place, _, rest = key.removeprefix("kernel_").partition("__")
            if not (key.startswith("kernel_") and place.isdigit() and int(place) < len(kernels)):
                last = len(kernels) - 1
                raise ValueError(f"Invalid parameter {key!r} for {self!r}: valid are kernel_0 … kernel_{last}")
            if rest:
                kernels[int(place)].set_params(**{rest: value})
            else:
                kernels[int(place)] = value
        self.kernels = tuple(kernels)
        return self

    def __sklearn_clone__(self) -> _OnTuples:
        from sklearn.base import clone

        return type(self)(*(clone(k) for k in self.kernels))

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return all(k.has_features for k in self.kernels)

    def _check_params(self) -> None:
        if not self.kernels:
            raise ValueError(f"{type(self).__name__} needs at least one kernel")
        for i, k in enumerate(self.kernels):
            check_kernel(f"kernel {i}", k)._check_params()

    def _prepare(self, X: Any) -> Together:
        for i, x in enumerate(X):
            if not isinstance(x, Sequence) or isinstance(x, (str, bytes)) or len(x) != len(self.kernels):
                raise ValueError(f"object {i} must be a tuple of {len(self.kernels)} parts, got {x!r}")
        return Together(k._prepare([x[i] for x in X]) for i, k in enumerate(self.kernels))

    def _grams(self, A: Together, B: Together | None, work: Work) -> list[np.ndarray]:
        return [k._gram(_part(A, i), _part(B, i), work) for i, k in enumerate(self.kernels)]

    def _each(self, parts: list[Together]) -> list[list[Any]]:
        """Feature matrices: for each collection, those of each place."""
        columns = [k._features([part.parts[i] for part in parts]) for i, k in enumerate(self.kernels)]
        return [list(row) for row in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.kernels))})"


class TensorProduct(_OnTuples):
    """Π_i k_i(x_i, z_i) on tuples: the product of kernels on the components of tuples.

    Parameters
    ----------
    *kernels : Kernel
        One for each component of the tuples; positive definite.

    Examples
    --------
    >>> from mercer.kernels import Linear, TensorProduct
    >>> TensorProduct(Linear(), Linear()).pair(([1.0], [2.0, 0.0]), ([3.0], [1.0, 1.0]))
    6.0
    """

    @property
    def definiteness(self) -> str:
        return PD if all(k.definiteness == PD for k in self.kernels) else INDEFINITE

    def _check_params(self) -> None:
        super()._check_params()
        for k in self.kernels:
            _no_conditional_factor(k)

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        return reduce(np.multiply, self._grams(A, B, work))

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return reduce(np.multiply, [k._diag(A.parts[i], work) for i, k in enumerate(self.kernels)])

    def _features(self, parts: list[Together]) -> list[Any]:
        return [reduce(_row_products, each) for each in self._each(parts)]


class DirectSum(_OnTuples):
    """Σ_i k_i(x_i, z_i) on tuples: the sum of kernels on the components of tuples.

    Parameters
    ----------
    *kernels : Kernel
        One for each component of the tuples.

    Examples
    --------
    >>> from mercer.kernels import DirectSum, Linear
    >>> DirectSum(Linear(), Linear()).pair(([1.0], [2.0, 0.0]), ([3.0], [1.0, 1.0]))
    5.0
    """

    @property
    def definiteness(self) -> str:
        kinds = {k.definiteness for k in self.kernels}
        return INDEFINITE if INDEFINITE in kinds else CPD if CPD in kinds else PD

    def _gram(self, A: Together, B: Together | None, work: Work) -> np.ndarray:
        return reduce(np.add, self._grams(A, B, work))

    def _diag(self, A: Together, work: Work) -> np.ndarray:
        return reduce(np.add, [k._diag(A.parts[i], work) for i, k in enumerate(self.kernels)])

    def _features(self, parts: list[Together]) -> list[Any]:
        return [reduce(_side_by_side, each) for each in self._each(parts)]


class _Bags:
    """Objects as stretches of parts: object i holds parts ``offsets[i] .. offsets[i + 1]`` of every place."""

    def __init__(self, offsets: np.ndarray, places: list[Any]) -> None:
        self.offsets = offsets
        self.places = places

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> _Bags:
        start, stop, _ = rows.indices(len(self))
        low, high = self.offsets[start], self.offsets[max(start, stop)]
        return _Bags(self.offsets[start : max(start, stop) + 1] - low, [place[low:high] for place in self.places])

    def membership(self) -> Any:
        """The 0/1 matrix of objects × parts."""
        n = int(self.offsets[-1])
        return sp.csr_matrix((np.ones(n), np.arange(n), self.offsets), shape=(len(self), n))


class Convolution(Kernel):
    """Σ over the parts of x and of z of a kernel of parts (Haussler's R-convolution).

    Parameters
    ----------
    decompose : callable
        Maps an object to a list of its parts. With several kernels each part is a tuple with one component for each
        kernel, and the values are multiplied.
    *kernels : Kernel
        Positive definite kernels of the parts.

    References
    ----------
    .. [Haussler1999] D. Haussler. Convolution kernels on discrete structures. Technical report UCSC-CRL-99-10,
       University of California, Santa Cruz, 1999.

    Examples
    --------
    Words of a text, compared by their lengths:

    >>> from mercer.kernels import Convolution, FunctionKernel
    >>> k = Convolution(str.split, FunctionKernel(len))
    >>> k.pair("a bc", "def")
    9.0
    """

    _block_entries = 1 << 14

    def __init__(self, decompose: Callable[[Any], Iterable[Any]], *kernels: Kernel) -> None:
        self.decompose = decompose
        self.kernels = kernels

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["decompose", "kernels"]

    def __sklearn_clone__(self) -> Convolution:
        from sklearn.base import clone

        return type(self)(self.decompose, *(clone(k) for k in self.kernels))

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        return all(k.has_features for k in self.kernels)

    @property
    def definiteness(self) -> str:
        return PD if all(k.definiteness == PD for k in self.kernels) else INDEFINITE

    def _check_params(self) -> None:
        if not callable(self.decompose):
            raise ValueError(f"decompose must be callable, got {self.decompose!r}")
        if not self.kernels:
            raise ValueError("Convolution needs at least one kernel of parts")
        for k in self.kernels:
            check_kernel("the kernel of parts", k)._check_params()
            require_positive_definite(k, "Convolution")

    def _prepare(self, X: Any) -> _Bags:
        bags = [list(self.decompose(x)) for x in X]
        offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags], dtype=np.int64)]).astype(np.int64)
        parts = [part for bag in bags for part in bag]
        if len(self.kernels) == 1:
            return _Bags(offsets, [self.kernels[0]._prepare(parts) if parts else parts])
        for part in parts:
            if not isinstance(part, Sequence) or isinstance(part, (str, bytes)) or len(part) != len(self.kernels):
                raise ValueError(f"decompose must give tuples of {len(self.kernels)} places, gave {part!r}")
        places = [k._prepare([p[i] for p in parts]) if parts else parts for i, k in enumerate(self.kernels)]
        return _Bags(offsets, places)

    def _gram(self, A: _Bags, B: _Bags | None, work: Work) -> np.ndarray:
        other = A if B is None else B
        if not (A.offsets[-1] and other.offsets[-1]):
            return np.zeros((len(A), len(other)), work.dtype)
        grams = [k._whole(A.places[i], None if B is None else B.places[i], work) for i, k in enumerate(self.kernels)]
        K = np.asarray(A.membership() @ (other.membership() @ reduce(np.multiply, grams).T).T)
        return mirrored(K) if B is None else K

    def _features(self, parts: list[_Bags]) -> list[Any]:
        if not all(bag.offsets[-1] for bag in parts):
            raise ValueError("features of an empty collection of parts")
        columns = [k._features([bag.places[i] for bag in parts]) for i, k in enumerate(self.kernels)]
        each = [reduce(_row_products, row) for row in zip(*columns, strict=True)]
        return [bag.membership() @ F for bag, F in zip(parts, each, strict=True)]

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.kernels))
        return f"Convolution({getattr(self.decompose, '__name__', repr(self.decompose))}, {inner})"


# ---------------------------------------------------------------------------------------------------- shared


def _no_conditional_factor(kernel: Kernel) -> None:
    if kernel.definiteness == CPD:
        require_positive_definite(kernel, "a product of kernels")


def _count(X: Any) -> int:
    """Number of objects: rows of a data frame, array or sparse matrix, entries of a list, rows of a dict of columns."""
    if isinstance(X, dict):
        return len(next(iter(X.values()))) if X else 0
    return X.shape[0] if sp.issparse(X) else len(X)


def _column(X: Any, name: Any) -> Any:
    """One column of a table of any of the usual forms."""
    if isinstance(X, np.ndarray) and X.dtype.names is None and X.ndim != 2:
        raise ValueError(f"a column of an array needs an array of 2 dimensions, got {X.ndim}")
    try:
        if isinstance(X, np.ndarray) and X.dtype.names is None:
            return X[:, name]
        if isinstance(X, (list, tuple)):
            return [row[name] for row in X]
        column = X[name] if not hasattr(X, "column") or hasattr(X, "columns") else X.column(name)
    except Exception as error:  # each kind of table has its own: KeyError, ValueError, polars' ColumnNotFoundError
        raise ValueError(f"there is no column {name!r} in the objects: {error!r}") from error
    if isinstance(column, np.ndarray):
        return column
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow, polars, pandas
        if hasattr(column, method):
            return getattr(column, method)()
    return list(column)


def _all_numbers(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "iuf"
    return bool(len(values)) and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values)


def _dense(F: Any) -> np.ndarray:
    return F.toarray() if sp.issparse(F) else np.asarray(F)


def _side_by_side(F: Any, G: Any) -> Any:
    if sp.issparse(F) or sp.issparse(G):
        return sp.hstack([sp.csr_matrix(F), sp.csr_matrix(G)], format="csr")
    return np.hstack([F, G])


def _row_products(F: Any, G: Any) -> Any:
    """All products of an entry of F and one of G, row by row."""
    n, p, q = F.shape[0], F.shape[1], G.shape[1]
    if p * q > MAX_COLUMNS:
        raise ValueError(
            f"the product has {p} x {q} features, too many to list: use the Gram matrix, or approximate(n_components)"
        )
    if not (sp.issparse(F) or sp.issparse(G)):
        return (F[:, :, None] * G[:, None, :]).reshape(n, p * q)
    F, G = sp.csr_matrix(F), sp.csr_matrix(G)
    left, right = np.diff(F.indptr), np.diff(G.indptr)
    rows = np.repeat(np.arange(n), left * right)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(left * right) - left * right, left * right)
    i = F.indptr[rows] + within // right[rows]
    j = G.indptr[rows] + within % right[rows]
    columns = F.indices[i].astype(np.int64) * q + G.indices[j]
    return sp.csr_matrix((F.data[i] * G.data[j], (rows, columns)), shape=(n, p * q))


def _scaled_rows(F: Any, factors: np.ndarray) -> Any:
    return sp.csr_matrix(sp.diags(factors) @ F) if sp.issparse(F) else F * factors[:, None]
