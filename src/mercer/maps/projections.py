"""Random features: maps whose inner products are a kernel in expectation.

    Φ̄(x) = n^{-1/2} (Φ_{c_1}(x), …, Φ_{c_n}(x)),   c_i ~ P,     E ⟨Φ̄(x), Φ̄(z)⟩ = E_c[Φ_c(x) Φ_c(z)]

Projections are the case Φ_c(x) = ⟨c, x⟩ with E[c cᵀ] = I; the empirical kernel map is Φ_c(x) = κ(c, x) with c drawn
from the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from mercer._estimator import Estimator
from mercer._state.saved import Count, Fields, Objects, Saved
from mercer._validation import check_choice, check_count, check_sparse
from mercer.maps.hashed import check_dtype

__all__ = ["EmpiricalKernelMap", "RandomFeatures", "RandomProjection"]


class RandomProjection(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Project onto random directions, with unbiased inner products and distances.

    x ↦ R x with entries of mean 0 and variance 1 / n_components, so that E⟨Rx, Rz⟩ = ⟨x, z⟩.

    Parameters
    ----------
    n_components : int, default=256
        Dimensions of the output.
    kind : {"gaussian", "achlioptas", "sign"}, default="gaussian"
        Entries are normal; or √(3/n) times +1, 0, −1 with probabilities 1/6, 2/3, 1/6 (stored sparse: a third of the
        work); or ±1/√n [Achlioptas2003]_.
    random_state : int, RandomState or None, default=None
        Seed of the directions.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the directions and the output.

    Attributes
    ----------
    components_ : ndarray or csr_matrix of shape (n_features, n_components)
        The directions R, transposed.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Achlioptas2003] D. Achlioptas. Database-friendly random projections: Johnson-Lindenstrauss with binary coins.
       Journal of Computer and System Sciences 66, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import RandomProjection
    >>> X = np.eye(50)
    >>> Z = RandomProjection(2000, kind="achlioptas", random_state=0).fit_transform(X)
    >>> Z.shape, bool(abs(Z @ Z.T - X).max() < 0.15)
    ((50, 2000), True)
    """

    saved = Fields(n_features_in_=Count(1), components_=Objects())

    def __init__(
        self, n_components: int = 256, kind: str = "gaussian", random_state: Any = None, dtype: Any = np.float64
    ) -> None:
        self.n_components = n_components
        self.kind = kind
        self.random_state = random_state
        self.dtype = dtype

    _parts_how = "first"  # of the examples only the number of columns matters

    def fit(self, X: Any, y: Any = None) -> RandomProjection:
        """Draw the directions for the number of features of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : RandomProjection
        """
        n = check_count("n_components", self.n_components)
        check_choice("kind", self.kind, ("gaussian", "achlioptas", "sign"))
        X = self._checked(X, reset=True)
        random = check_random_state(self.random_state)
        shape = (X.shape[1], n)
        if self.kind == "gaussian":
            drawn = random.standard_normal(shape) / np.sqrt(n)
        elif self.kind == "sign":
            drawn = (2.0 * random.randint(0, 2, size=shape) - 1.0) / np.sqrt(n)
        else:
            faces = random.randint(0, 6, size=shape, dtype=np.int8)  # a die: 0 is +1, 1 is −1, the rest 0
            drawn = sp.csr_matrix(((faces == 0).astype(np.float64) - (faces == 1)) * np.sqrt(3.0 / n))
        self.components_ = drawn.astype(self.dtype)
        self._n_features_out = n
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the projections of the rows of X, dense.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        if not hasattr(self, "components_"):
            raise NotFittedError("this RandomProjection is not fitted yet: call fit first")
        X = self._checked(X, reset=False)
        product = X @ self.components_
        return product.toarray() if sp.issparse(product) else np.asarray(product)

    def _check_complete(self) -> None:
        if not hasattr(self, "components_"):
            raise NotFittedError("this RandomProjection is not fitted yet: call fit first")

    def _check_state(self) -> None:
        check_dtype(self.dtype)
        drawn = self.components_
        if sp.issparse(drawn) != (self.kind == "achlioptas") or drawn.ndim != 2 or drawn.dtype.kind != "f":
            raise ValueError("expected a matrix of floating-point numbers as components_, sparse if kind='achlioptas'")
        values = drawn.data if sp.issparse(drawn) else drawn
        if drawn.shape != (self.n_features_in_, self.n_components) or not np.isfinite(values).all():
            raise ValueError(f"expected a finite matrix of {self.n_components} columns, found shape {drawn.shape}")
        self._n_features_out = drawn.shape[1]

    def _checked(self, X: Any, reset: bool) -> Any:
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        return validate_data(self, check_sparse("X", X), accept_sparse="csr", dtype=self.dtype, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """User-defined random features: x ↦ n^{-1/2} (Φ_{c_1}(x), …, Φ_{c_n}(x)) with c_i drawn at random.

    Inner products are means over n draws, and tend to the kernel E_c[Φ_c(x) Φ_c(z)]. If its terms lie in an interval of
    length R, all m × m inner products are off by at most ε with n = O(R² ε⁻² log m) draws
    (`mercer.theory.hashing.required_buckets`).

    Parameters
    ----------
    feature : callable
        ``feature(X, draws)`` returns the matrix of Φ_c(x), with a row for each x and a column for each draw.
    sampler : callable
        ``sampler(n, random)`` returns n draws of c in any form that ``feature`` takes; ``random`` is a NumPy
        RandomState.
    n_components : int, default=256
        Number of draws.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    draws_ : object
        The result of the sampler.

    Examples
    --------
    The Gaussian kernel exp(−‖x − z‖² / 2) by Bochner's theorem: cosines with normal frequencies and random phases.

    >>> import numpy as np
    >>> from mercer.maps import RandomFeatures
    >>> def sampler(n, random):
    ...     return random.standard_normal((2, n)), random.uniform(0, 2 * np.pi, n)
    >>> def feature(X, draws):
    ...     return np.sqrt(2) * np.cos(X @ draws[0] + draws[1])
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> Z = RandomFeatures(feature, sampler, n_components=20_000, random_state=0).fit_transform(X)
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-0.5)) < 0.02)
    True
    """

    def __init__(
        self,
        feature: Callable[[Any, Any], np.ndarray],
        sampler: Callable[[int, np.random.RandomState], Any],
        n_components: int = 256,
        random_state: Any = None,
    ) -> None:
        self.feature = feature
        self.sampler = sampler
        self.n_components = n_components
        self.random_state = random_state

    _parts_how = "first"  # of the examples only the number of columns matters

    def fit(self, X: Any = None, y: Any = None) -> RandomFeatures:
        """Draw the features; X is ignored."""
        n = check_count("n_components", self.n_components)
        for name in ("feature", "sampler"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name} must be a function, got {getattr(self, name)!r}")
        self.draws_ = self.sampler(n, check_random_state(self.random_state))
        self._n_features_out = n
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of all x in X."""
        if not hasattr(self, "draws_"):
            raise NotFittedError("this RandomFeatures is not fitted yet: call fit first")
        values = np.asarray(self.feature(X, self.draws_))
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if values.shape != (rows, self._n_features_out):
            raise ValueError(
                f"feature must give a matrix of shape {(rows, self._n_features_out)} (rows of X, draws), "
                f"got {values.shape}"
            )
        if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            raise ValueError("feature must give finite real numbers")
        return values / np.sqrt(self._n_features_out)


class EmpiricalKernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Use similarities to anchors as features: x ↦ n^{-1/2} (κ(c_1, x), …, κ(c_n, x)), anchors c_i from the data.

    κ may be any similarity: the inner products of the features are a kernel even if κ is not.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, or a function ``kernel(X, anchors)`` that returns the
        matrix of similarities; X and anchors may then be sequences of any objects.
    anchors : array or sequence, optional
        The anchors. Otherwise `fit` draws ``n_components`` different rows of its data.
    n_components : int, default=100
        Number of anchors to draw.
    kernel_params : dict, optional
        Passed to the named kernel, such as ``{"gamma": 0.5}``.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Attributes
    ----------
    anchors_ : array or sequence
        The anchors in use.

    Examples
    --------
    >>> from mercer.maps import EmpiricalKernelMap
    >>> def common_letters(words, anchors):
    ...     return [[len(set(a) & set(b)) for b in anchors] for a in words]
    >>> EmpiricalKernelMap(common_letters, anchors=["star", "tree", "rats", "oak"]).fit_transform(["rat", "toe"])
    array([[1.5, 1. , 1.5, 0.5],
           [0.5, 1. , 0.5, 0.5]])
    """

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        anchors: Any = None,
        n_components: int = 100,
        *,
        kernel_params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.anchors = anchors
        self.n_components = n_components
        self.kernel_params = kernel_params
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> EmpiricalKernelMap:
        """Set the anchors, or draw them from X."""
        if not callable(self.kernel) and not isinstance(self.kernel, str):
            raise TypeError(f"kernel must be a name or a function, got {self.kernel!r}")
        if callable(self.kernel) and self.kernel_params is not None:
            raise ValueError("kernel_params are for named kernels; a function may carry its own")
        X = self._checked(X)
        if self.anchors is not None:
            self.anchors_ = self._checked(self.anchors)
        else:
            rows, n = _length(X), check_count("n_components", self.n_components)
            if n > rows:
                raise ValueError(f"n_components must be at most the {rows} rows of X, got {n}")
            chosen = check_random_state(self.random_state).choice(rows, n, replace=False)
            self.anchors_ = X[chosen] if hasattr(X, "shape") else [X[i] for i in chosen]
        self._n_features_out = _length(self.anchors_)
        if not self._n_features_out:
            raise ValueError("anchors must not be empty")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the similarities of all x in X to the anchors, divided by √n."""
        if not hasattr(self, "anchors_"):
            raise NotFittedError("this EmpiricalKernelMap is not fitted yet: call fit first")
        X = self._checked(X)
        if callable(self.kernel):
            similarities = np.asarray(self.kernel(X, self.anchors_), dtype=np.float64)
        else:
            similarities = pairwise_kernels(X, self.anchors_, metric=self.kernel, **(self.kernel_params or {}))
        if similarities.shape != (_length(X), self._n_features_out):
            raise ValueError(
                f"kernel must give a matrix of shape {(_length(X), self._n_features_out)} (rows of X, anchors), "
                f"got {similarities.shape}"
            )
        if not np.isfinite(similarities).all():
            raise ValueError("kernel gave NaN or infinite values")
        return similarities / np.sqrt(self._n_features_out)

    def _checked(self, X: Any) -> Any:
        return X if callable(self.kernel) else check_array(check_sparse("X", X), accept_sparse="csr")


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)
