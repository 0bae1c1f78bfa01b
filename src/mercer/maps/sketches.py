"""Sketches of polynomial kernels: (γ⟨x, z⟩ + c)^p without the d^p products.

    CS_h,s(x)_j = Σ_{i : h(i) = j} s(i) x_i,     E⟨CS(x), CS(z)⟩ = ⟨x, z⟩
    TS(x) = F⁻¹(F(CS₁ x') ∘ … ∘ F(CS_p x')),     x' = (√γ x, √c),     E⟨TS(x), TS(z)⟩ = (γ⟨x, z⟩ + c)^p

A convolution of count sketches is the count sketch of the products of coordinates, with the columns added and the signs
multiplied [Pham2013]: O(p (d + n log n)) for a row.
"""

from __future__ import annotations

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
    on_processor,
    row_blocks,
)
from mercer._estimator import Estimator
from mercer._state.limits import OUTPUT_ROWS, reserve
from mercer._state.saved import Count, Fields, Floats, Ints, Saved, check_shapes
from mercer._validation import check_count, check_positive, thread_count

__all__ = ["PolynomialSketch"]


class PolynomialSketch(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Features whose inner products estimate (γ⟨x, z⟩ + c)^p: the tensor sketch.

    Unbiased, with an error of about (γ‖x‖‖z‖ + c)^p / √n_components. NumPy arrays, sparse matrices (dense features
    come out) and tensors of torch; float32 stays float32.

    Parameters
    ----------
    n_components : int, default=100
        Number of features. Powers of two and other numbers with small factors are fastest.
    degree : int, default=2
        p.
    gamma : float, default=1.0
        γ.
    coef0 : float, default=0.0
        c, at least 0; above 0, products of fewer coordinates count too.
    n_jobs : int, optional
        Threads.
    random_state : int, RandomState or None, default=None
        Seed of columns and signs.

    Attributes
    ----------
    columns_ : ndarray of shape (degree, n_features + 1)
        Column of each coordinate in each count sketch; the last is the constant √c.
    signs_ : ndarray of shape (degree, n_features + 1)
        Signs of the coordinates.

    References
    ----------
    .. [Pham2013] N. Pham and R. Pagh. Fast and scalable polynomial kernels via explicit feature maps. KDD, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import PolynomialSketch
    >>> X = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32) / 2
    >>> Z = PolynomialSketch(8192, degree=2, coef0=1.0, random_state=0).fit_transform(X)
    >>> Z.dtype, bool(np.abs(Z @ Z.T - (X @ X.T + 1) ** 2).max() < 0.5)
    (dtype('float32'), True)
    """

    saved = Fields(n_features_in_=Count(1), columns_=Ints(None, None, below="n_components"), signs_=Floats(single=True))

    def __init__(
        self,
        n_components: int = 100,
        degree: int = 2,
        *,
        gamma: float = 1.0,
        coef0: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state

    _parts_how = "first"  # of the examples only the number of columns matters

    def fit(self, X: Any, y: Any = None) -> PolynomialSketch:
        """Draw columns and signs for the number of features of X.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : PolynomialSketch
        """
        n, degree = self._check_params()
        as_rows(self, X, reset=True)
        random = check_random_state(self.random_state)
        shape = (degree, self.n_features_in_ + 1)
        self.columns_ = random.randint(0, n, shape).astype(np.int64)
        self.signs_ = 2.0 * random.randint(0, 2, shape) - 1.0
        self._n_features_out = n
        self._forget_copies()
        return self

    def transform(self, X: Any) -> Any:
        """Return the sketches of the rows of X, as an array of the same library as X.

        Parameters
        ----------
        X : array, tensor or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = as_rows(self, X, reset=False)
        if on_processor(X):
            return as_tensor(self.transform(X.numpy()))
        if not is_numpy(X) and not sp.issparse(X):
            return by_rows(self._sketch, X, 2 * X.shape[1] + 8 * self._n_features_out)
        if is_numpy(X):
            X = np.ascontiguousarray(X)
        out = np.empty((X.shape[0], self._n_features_out), X.dtype)
        for block in row_blocks(X.shape[0], self._n_features_out // 2):
            out[block] = self._sketch(X[block])
        return out

    def _sketch(self, X: Any) -> Any:
        xp = np if sp.issparse(X) else array_api_compat.array_namespace(X)
        fft, n = fft_of(xp), self._n_features_out
        product = None
        for p in range(len(self.columns_)):
            counted = self._count(X, p)
            if len(self.columns_) == 1:
                return counted
            spectrum = fft.rfft(counted, n=n)
            if product is None:
                product = spectrum
            else:
                product *= spectrum
        return fft.irfft(product, n=n)

    def _count(self, X: Any, p: int) -> Any:
        """The p-th count sketch of (√γ x, √c)."""
        core, n = compiled(), self._n_features_out
        if not sp.issparse(X) and (core is None or not is_numpy(X)):
            return self._gathered(X, p)
        kept = self._like(X.data if sp.issparse(X) else X, self._numbers)
        columns, weights = kept["columns"][p], kept["weights"][p]
        if sp.issparse(X):
            d = self.n_features_in_
            spread = sp.csr_matrix((weights[:-1], columns[:-1], np.arange(d + 1)), (d, n))
            sketched = (X @ spread).toarray()
        else:
            sketched = np.empty((len(X), n), X.dtype)
            core.count_sketch(X, columns[:-1], weights[:-1], sketched, thread_count(self.n_jobs))
        sketched[:, columns[-1]] += weights[-1]
        return sketched

    def _gathered(self, X: Any, p: int) -> Any:
        """The same with the operations that all kinds of arrays have: the t-th member of each column at a time."""
        xp = array_api_compat.array_namespace(X)
        tables = self._like(X, self._tables)
        members, weights = tables[f"members{p}"], tables[f"weights{p}"]
        one = xp.ones((X.shape[0], 1), dtype=X.dtype, device=array_api_compat.device(X))
        padded = xp.concat([X, one], axis=1)
        gathered = xp.take(padded, members[0, :], axis=1) * weights[0, :]
        for t in range(1, members.shape[0]):
            gathered += xp.take(padded, members[t, :], axis=1) * weights[t, :]
        return gathered

    def _numbers(self) -> dict[str, np.ndarray]:
        scale = np.full(self.n_features_in_ + 1, np.sqrt(self.gamma))
        scale[-1] = np.sqrt(self.coef0)
        return {"columns": self.columns_, "weights": self.signs_ * scale}

    def _tables(self) -> dict[str, np.ndarray]:
        """members[t, j]: the t-th coordinate that goes to column j, with its weight; weight 0 where there is none."""
        tables, n, d = {}, self._n_features_out, self.n_features_in_
        for p, (columns, scaled) in enumerate(zip(*self._numbers().values(), strict=True)):
            order = np.argsort(columns, kind="stable")
            loads = np.bincount(columns, minlength=n)
            rank = np.arange(d + 1) - np.repeat(np.cumsum(loads) - loads, loads)
            members = np.zeros((loads.max(), n), np.int64)
            weights = np.zeros((loads.max(), n))
            members[rank, columns[order]] = order
            weights[rank, columns[order]] = scaled[order]
            tables[f"members{p}"], tables[f"weights{p}"] = members, weights
        return tables

    def _check_params(self) -> tuple[int, int]:
        check_positive("gamma", self.gamma)
        if self.coef0 != 0:
            check_positive("coef0", self.coef0)
        thread_count(self.n_jobs)
        return check_count("n_components", self.n_components), check_count("degree", self.degree)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_state(self) -> None:
        n, degree = self._check_params()
        reserve(OUTPUT_ROWS * 8 * n, f"{OUTPUT_ROWS} rows of n_components={n}")
        check_shapes(self, columns_=(degree, self.n_features_in_ + 1), signs_=(degree, self.n_features_in_ + 1))
        self.columns_ = self.columns_.astype(np.int64)
        self._n_features_out = n
