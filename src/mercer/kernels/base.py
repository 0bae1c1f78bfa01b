"""Kernels: similarities k(x, z) = ⟨Φ(x), Φ(z)⟩ of objects of any kind.

A kernel offers three things: the Gram matrix ``k(X, Z)``, explicit features ``k.features(X)`` where Φ is finite, and a
map that approximates it, ``k.approximate(n)``. A concrete kernel defines how a collection is read (`Kernel._prepare`)
and how the matrix of two collections is computed (`Kernel._gram`). The base class handles blocks, symmetry, progress
and the algebra.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer import _core
from mercer._progress import Pace, say
from mercer._state.values import Codec, Reader, Writer, register
from mercer._validation import is_partitioned, thread_count

__all__ = ["Kernel", "Work", "check_kernel", "check_memory", "mirrored", "require_positive_definite"]

PD, CPD, INDEFINITE = "pd", "cpd", "indefinite"


@dataclass(frozen=True)
class Work:
    """Settings for the computation of a Gram matrix.

    Examples
    --------
    >>> from mercer.kernels.base import Work
    >>> Work().threads
    1
    """

    threads: int = 1
    """Threads that compiled loops may use."""
    dtype: Any = np.float64
    """np.float64 or np.float32: of the result."""


def with_length(name: str, X: Any) -> Any:
    """Return a collection of objects that has a length; an iterator becomes a list."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"{name} must be a collection of objects, got one string: pass a list, [{name}]")
    if not hasattr(X, "__len__"):
        if not hasattr(X, "__iter__"):
            raise ValueError(f"{name} must be a collection of objects, got {type(X).__name__}")
        X = list(X)
    return X


class Kernel(BaseEstimator):
    """Base class of kernels: matrices, closure rules, wrappers. Subclass it for your own kernel.

    A subclass stores its parameters in ``__init__`` (as scikit-learn's estimators do) and has

    - ``_check_params()``: raises ValueError for an invalid parameter;
    - ``_prepare(X)``: checks a collection of objects and converts it to the input of ``_gram``: anything with a length
      that can be sliced with ``[start:stop]``. All work on single objects belongs here, because it runs once, while
      ``_gram`` is called for many blocks;
    - ``_gram(A, B, work)``: the matrix of two prepared collections; B is None for A with itself (a symmetric matrix);
    - ``_diag(A, work)``: the values k(x, x), by default from ``_gram``, object by object;
    - ``_features(parts)``, if Φ is finite: a feature matrix (dense or CSR) for each prepared collection of the list,
      all with the same columns, so that ``F @ G.T`` is the Gram matrix. Also set the class attribute ``has_features``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Kernel
    >>> class SameLength(Kernel):
    ...     def _prepare(self, X):
    ...         return np.array([len(x) for x in X])
    ...     def _gram(self, A, B, work):
    ...         return (A[:, None] == (A if B is None else B)[None, :]).astype(float)
    >>> k = SameLength()
    >>> k(["a", "bb", "c"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    >>> (0.5 * k + k**2).pair("one", "two")
    1.5
    """

    has_features: bool = False
    """Whether `features` can be called."""
    _block_entries: int | None = 1 << 20
    """Entries of the matrix that one call of ``_gram`` computes; None: all at once."""

    # ------------------------------------------------------------------ what a subclass says

    @property
    def definiteness(self) -> str:
        """Return ``"pd"`` (positive definite), ``"cpd"`` (only for coefficients that sum to 0) or ``"indefinite"``."""
        return PD

    def _check_params(self) -> None:
        """Raises ValueError for a parameter that is no good."""

    def _prepare(self, X: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _prepare")

    def _gram(self, A: Any, B: Any, work: Work) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} must define _gram")

    def _diag(self, A: Any, work: Work) -> np.ndarray:
        return np.array([float(self._gram(A[i : i + 1], None, work)[0, 0]) for i in range(len(A))])

    def _features(self, parts: list[Any]) -> list[Any]:
        raise NotImplementedError

    # ------------------------------------------------------------------ matrices

    def __call__(
        self, X: Any, Z: Any = None, *, dtype: Any = np.float64, n_jobs: int | None = None, verbose: int = 0
    ) -> np.ndarray:
        """Return the Gram matrix k(x, z) of all x in X and z in Z (default: X itself).

        Parameters
        ----------
        X, Z : collections of objects
            Inputs of the kernel: rows of an array, strings, trees, graphs, …; both may be partitioned.
        dtype : {np.float64, np.float32}, default=np.float64
            Of the matrix.
        n_jobs : int, optional
            Threads; −1 for all cores. The result does not depend on it.
        verbose : int, default=0
            1 shows the progress of a long computation.

        Returns
        -------
        ndarray of shape (len(X), len(Z)); for Dask collections a Dask array with a block for each pair of partitions
        """
        work = self._work(dtype, n_jobs)
        if is_partitioned(X) or is_partitioned(Z):
            return self._by_blocks(X, None if Z is X else Z, work)
        A = self._prepared("X", X)
        if Z is None or Z is X:
            return self._whole(A, None, work, verbose)
        return self._whole(A, self._prepared("Z", Z), work, verbose)

    def _by_blocks(self, X: Any, Z: Any, work: Work) -> Any:
        """The matrix of objects in partitions; what knows of them lives above this layer."""
        partitioned: Any = importlib.import_module("mercer.learning.partitioned")
        return partitioned.gram_matrix(self, X, Z, work.dtype, work.threads)

    def diag(self, X: Any, *, dtype: Any = np.float64, n_jobs: int | None = None) -> np.ndarray:
        """Return the values k(x, x), without the rest of the matrix."""
        work = self._work(dtype, n_jobs)
        return np.asarray(self._diag(self._prepared("X", X), work), work.dtype)

    def pair(self, x: Any, z: Any) -> float:
        """Return k(x, z) of two objects."""
        return float(self([x], [z])[0, 0])

    def features(self, X: Any, Z: Any = None) -> Any:
        """Return Φ as a matrix, one row per object: ``F @ F.T`` is the Gram matrix.

        The columns depend on the objects of the call. With Z, the result is a pair of matrices with the same columns,
        so that ``F @ G.T`` is ``k(X, Z)``.
        """
        if not self.has_features:
            raise NotImplementedError(
                f"{self!r} has no finite features that could be listed: use approximate(n_components) for a map"
            )
        self._check_params()
        A = self._prepared("X", X)
        if Z is None:
            return self._features([A])[0]
        F, G = self._features([A, self._prepared("Z", Z)])
        return F, G

    def approximate(self, n_components: int = 100, random_state: Any = None) -> Any:
        """Return a transformer of objects into vectors whose inner products approximate the kernel.

        By default this is Nyström's map on ``n_components`` objects drawn from the training objects
        (`mercer.kernels.NystroemMap`).
        """
        from mercer.kernels.approximations import NystroemMap

        return NystroemMap(self, n_components=n_components, random_state=random_state)

    def _work(self, dtype: Any, n_jobs: int | None) -> Work:
        self._check_params()
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
        return Work(thread_count(n_jobs), np.dtype(dtype).type)

    def _prepared(self, name: str, X: Any) -> Any:
        return self._prepare(with_length(name, X))

    def _whole(self, A: Any, B: Any, work: Work, verbose: int = 0) -> np.ndarray:
        """The matrix of prepared collections, block by block, symmetric entries once."""
        n, m = len(A), len(A if B is None else B)
        check_memory(n, m, work.dtype)
        if n == 0 or m == 0:
            return np.zeros((n, m), work.dtype)
        if self._block_entries is None or n * m <= self._block_entries:
            return np.asarray(self._gram(A, B, work), work.dtype)
        K = np.empty((n, m), work.dtype)
        step = max(1, self._block_entries // m)
        for start, stop in _with_progress(_blocks(n, step), n, B is None, verbose, self):
            self._fill(K, start, stop, A, B, work)
        return K

    def _fill(self, K: np.ndarray, start: int, stop: int, A: Any, B: Any, work: Work) -> None:
        """The rows start .. stop of K; without B (a symmetric matrix) the columns up to stop, and these rows of Kᵀ.

        A kernel that can write into K itself says so here, and saves a copy.
        """
        rows = A[start:stop]
        if B is not None:
            K[start:stop] = self._gram(rows, B, work)
            return
        if start:
            K[start:stop, :start] = self._gram(rows, A[:start], work)
            _core.kernels.transpose_into(K[start:stop, :start], K[:start, start:stop])
        K[start:stop, start:stop] = self._gram(rows, None, work)

    # ------------------------------------------------------------------ closure rules and wrappers

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Constant, Sum

        if isinstance(other, Real):
            other = Constant(_scale("a constant added to a kernel", other))
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Real):
            return Scaled(self, _scale("the scale of a kernel", other))
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.algebra import Power

        if isinstance(exponent, bool) or not isinstance(exponent, Integral) or exponent < 1:
            raise ValueError(f"the exponent of a kernel must be an integer of at least 1, got {exponent!r}")
        return Power(self, int(exponent))

    def normalized(self) -> Kernel:
        """Return k(x, z) / √(k(x, x) k(z, z)); 0 where k(x, x) is 0."""
        from mercer.kernels.algebra import Normalized

        return Normalized(self)

    def centered(self, X: Any) -> Kernel:
        """Return the kernel with the mean of the objects X as the origin of feature space."""
        from mercer.kernels.algebra import Centered

        return Centered(self, X)

    def translated(self, points: Any, coef: Any) -> Kernel:
        """Return the kernel of Φ(x) + Σ_i coef_i Φ(points_i)."""
        from mercer.kernels.algebra import Translated

        return Translated(self, points, coef)

    def corrected(self, X: Any, method: str = "clip") -> Kernel:
        """Return a positive definite kernel: the matrix on X without its negative eigenvalues."""
        from mercer.kernels.algebra import Corrected

        return Corrected(self, X, method)

    def on(self, column: Any) -> Kernel:
        """Return the kernel on a column (or a list of columns) of a table: data frame, dict, records, array."""
        from mercer.kernels.algebra import OnColumn

        return OnColumn(self, column)

    def _bracketed(self) -> str:
        """The kernel as a factor in the repr of a product."""
        return repr(self)

    def _primary(self) -> str:
        """The kernel in the repr of a power, or before a dot: products have brackets too."""
        return self._bracketed()


# ---------------------------------------------------------------------------------------------------- checks


def check_kernel(name: str, value: Any) -> Kernel:
    """Return the value if it is a kernel, else raise TypeError.

    Examples
    --------
    >>> from mercer.kernels.base import check_kernel
    >>> check_kernel("kernel", "rbf")
    Traceback (most recent call last):
        ...
    ValueError: kernel must be a Kernel such as mercer.kernels.Gaussian(), got 'rbf'
    """
    if not isinstance(value, Kernel):
        raise ValueError(f"{name} must be a Kernel such as mercer.kernels.Gaussian(), got {value!r}")
    return value


def require_positive_definite(kernel: Kernel, where: str, conditional: bool = False) -> None:
    """Raise ValueError for a kernel that ``where`` cannot take; ``conditional=True`` also allows cpd kernels.

    Examples
    --------
    >>> from mercer.kernels import Constant
    >>> from mercer.kernels.base import require_positive_definite
    >>> require_positive_definite(Constant(1.0), "KernelRidge")
    """
    if kernel.definiteness == PD or (conditional and kernel.definiteness == CPD):
        return
    if kernel.definiteness == CPD:
        raise ValueError(
            f"{where} needs a positive definite kernel, {kernel!r} is only conditionally positive definite: use "
            "kernel.centered(X)"
        )
    raise ValueError(f"{where} needs a positive definite kernel, {kernel!r} may be indefinite: use kernel.corrected(X)")


_SMALL = 1 << 20


def check_memory(rows: int, columns: int, dtype: Any) -> None:
    """Raise MemoryError for a matrix that does not fit; the message gives the sizes and an alternative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.base import check_memory
    >>> check_memory(10**7, 10**7, np.float32)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    MemoryError: a Gram matrix of 10000000 x 10000000 float32 values needs 364 TiB, ... free: ...
    """
    if rows * columns < _SMALL:  # asking the system would take longer than a small matrix
        return
    needed = rows * columns * np.dtype(dtype).itemsize
    free = _free_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"a Gram matrix of {rows} x {columns} {np.dtype(dtype).name} values needs {_size(needed)}, {_size(free)} "
            "are free: use kernel.approximate(n_components) and a linear method, fewer objects, or dtype=np.float32"
        )


def mirrored(K: np.ndarray) -> np.ndarray:
    """Copy the lower triangle of a square matrix to the upper one, in place: rounding may differ between the two.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels.base import mirrored
    >>> mirrored(np.array([[1.0, 0.0], [2.0, 3.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    for start, stop in _blocks(len(K), 256):  # in pieces that stay in the cache
        K[:start, start:stop] = K[start:stop, :start].T
        corner = K[start:stop, start:stop]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
    return K


def _free_memory() -> int | None:
    """Bytes that can be had: the machine's, or what is left of a container's limit; None where this cannot be told."""
    sizes = []
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        sizes.append(1024 * int(fields["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        try:
            sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        except (AttributeError, OSError, ValueError):
            return None
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        sizes.append(max(0, limit - int(Path("/sys/fs/cgroup/memory.current").read_text())))
    except (OSError, ValueError):
        pass
    return min(sizes)


def _size(n_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n_bytes < 1024 or unit == "TiB":
            return f"{n_bytes:.3g} {unit}" if n_bytes < 1000 else f"{n_bytes:.0f} {unit}"
        n_bytes /= 1024
    raise AssertionError


def _scale(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def _blocks(n: int, step: int) -> list[tuple[int, int]]:
    return [(start, min(n, start + step)) for start in range(0, n, step)]


def _with_progress(
    blocks: list[tuple[int, int]], n: int, triangle: bool, verbose: int, kernel: Kernel
) -> Iterator[tuple[int, int]]:
    """The blocks; with ``verbose`` a line on stderr at most twice a second, and at the end."""
    pace = Pace(0.5)
    for start, stop in blocks:
        yield start, stop
        if verbose and (pace.due() or stop == n):
            share = (stop / n) ** 2 if triangle else stop / n
            say(f"{type(kernel).__name__}: {share:6.1%} of the Gram matrix, {pace.elapsed():.1f} s")


# ---------------------------------------------------------------------------------------------------- model files


def _write(kernel: Kernel, out: Writer) -> dict[str, Any]:
    name = type(kernel).__name__
    if _public(name) is not type(kernel):
        raise TypeError(f"{kernel!r} cannot be written to a model file: {name} is no kernel of mercer.kernels")
    nodes = []
    for parameter in _parameters(type(kernel)):
        value = getattr(kernel, parameter.name)
        if callable(value) and not isinstance(value, Kernel):
            raise TypeError(f"{kernel!r} cannot be written to a model file: its {parameter.name} is a function")
        nodes.append(out.node(value, parameter.name))
    return {"name": name, "parameters": nodes}


def _read(node: dict[str, Any], source: Reader) -> Kernel:
    cls = _public(node["name"])
    if cls is None or not issubclass(cls, Kernel) or cls is Kernel:
        raise ValueError(f"there is no kernel {node['name']!r} in mercer.kernels")
    parameters = _parameters(cls)
    values = [source.value(part) for part in node["parameters"]]
    if len(values) != len(parameters):
        raise ValueError(f"{cls.__name__} has {len(parameters)} parameters, found {len(values)}")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            positional.append(value)
    kernel = cls(*positional, **named)
    kernel._check_params()
    return kernel


def _public(name: Any) -> Any:
    """A public name of mercer.kernels that is a class, else None."""
    from mercer import kernels

    value = getattr(kernels, name) if isinstance(name, str) and name in kernels.__all__ else None
    return value if isinstance(value, type) else None


def _parameters(cls: type) -> list[inspect.Parameter]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return []
    listed = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return [parameter for parameter in listed if parameter.kind is not parameter.VAR_KEYWORD]


register(Kernel, Codec("kernel", _write, _read))
