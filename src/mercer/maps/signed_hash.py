"""Signed hash projections: every feature is added to S hashed buckets with hashed signs; no matrix is stored.

    z = H x / √S,     H[i, t] = Σ_{s ≤ S} 1[bucket_s(t) = i] sign_s(t),     E⟨z, z'⟩ = ⟨x, x'⟩

With one bucket per feature this is the count sketch. With several, columns of H differ in more than one entry, which
the recovery of sparse codes needs. Two buckets of a feature may coincide, so entries of H can exceed {−1, 0, 1}.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._arrays import Copies, as_rows, as_tensor, by_rows, compiled, is_numpy, on_processor
from mercer._estimator import Estimator
from mercer._state.limits import OUTPUT_ROWS, reserve
from mercer._state.saved import Count, Fields, Saved
from mercer._validation import check_count, thread_count

__all__ = ["SignedHashProjection"]

MOST_COMPONENTS = 1 << 25
MOST_HASHES = 1 << 16


class SignedHashProjection(Saved, Copies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Project onto hashed buckets with hashed signs, with unbiased inner products.

    A row costs O(n_hashes · n_features) additions, and the map stores a seed instead of a matrix [Shi2010]_
    [Weinberger2009]_. NumPy arrays, sparse matrices (dense features come out) and tensors of torch; float32 stays
    float32. Tensors on other devices, and those that need a gradient, are multiplied by the matrix.

    Parameters
    ----------
    n_components : int, default=256
        Dimensions of the output.
    n_hashes : int, default=4
        S: number of buckets for each feature.
    n_jobs : int, optional
        Threads; results do not depend on them.
    random_state : int, RandomState or None, default=None
        Seed of the hash functions.

    Attributes
    ----------
    seed_ : int
        Of the hash functions.
    n_features_in_ : int
        Features of the input.

    References
    ----------
    .. [Shi2010] Q. Shi, H. Li and C. Shen. Rapid face recognition using hashing. CVPR, 2010.
    .. [Weinberger2009] K. Weinberger, A. Dasgupta, J. Langford, A. Smola and J. Attenberg. Feature hashing for large
       scale multitask learning. ICML, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import SignedHashProjection
    >>> X = np.random.default_rng(0).normal(size=(3, 1000))
    >>> map = SignedHashProjection(300, random_state=0).fit(X)
    >>> Z = map.transform(X)
    >>> Z.shape, bool(np.allclose(Z, X @ map.to_matrix().T.toarray()))
    ((3, 300), True)
    >>> bool(np.abs((Z**2).sum(axis=1) / (X**2).sum(axis=1) - 1).max() < 0.25)
    True
    """

    saved = Fields(n_features_in_=Count(1), seed_=Count(0, 2**31 - 1))

    def __init__(
        self, n_components: int = 256, *, n_hashes: int = 4, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.n_hashes = n_hashes
        self.n_jobs = n_jobs
        self.random_state = random_state

    _parts_how = "first"  # of the examples only the number of columns matters

    def fit(self, X: Any, y: Any = None) -> SignedHashProjection:
        """Draw the hash functions; only the number of features of X is used.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        SignedHashProjection
            This map.
        """
        n, _ = self._check_params()
        as_rows(self, X, reset=True)
        self.seed_ = int(check_random_state(self.random_state).randint(0, 2**31 - 1))
        self._n_features_out = n
        self._forget_copies()
        return self

    def transform(self, X: Any) -> Any:
        """Project the rows of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        array of shape (n_rows, n_components)
            Dense projections, of the library and dtype of X; a NumPy array for sparse X.
        """
        check_is_fitted(self)
        given, X = X, as_rows(self, X, reset=False, finite=False)
        if on_processor(X):
            return as_tensor(self.transform(X.numpy()))
        if not is_numpy(X) and not sp.issparse(X):
            matrix = self._like(X, self._transposed)["matrix"]
            return by_rows(lambda rows: rows @ matrix, X, self._n_features_out)
        core, threads = compiled(), thread_count(self.n_jobs)
        if core is None:
            product = X @ self.to_matrix().T.astype(X.dtype)
            return product.toarray() if sp.issparse(product) else np.asarray(product)
        out = np.empty((X.shape[0], self._n_features_out), X.dtype)
        if sp.issparse(X):
            places = X.indptr.astype(np.int64), X.indices.astype(np.int64)
            core.signed_hash_sparse(*places, np.ascontiguousarray(X.data), self.seed_, self.n_hashes, out, threads)
        elif (plan := self._plan(core)) is not None:
            core.planned_hash_rows(plan, np.ascontiguousarray(X), out, threads)
        else:
            core.signed_hash_rows(np.ascontiguousarray(X), self.seed_, self.n_hashes, out, threads)
        with np.errstate(all="ignore"):
            finite = np.isfinite(out.sum())
        if not finite:  # every feature is in some sum, so that NaN and infinity of X show here
            as_rows(self, given, reset=False)
        return out

    def to_matrix(self) -> sp.csr_matrix:
        """Return the projection as a matrix: ``transform(X)`` equals ``X @ to_matrix().T``.

        Returns
        -------
        csr_matrix of shape (n_components, n_features)
            H / √S.
        """
        check_is_fitted(self)
        d, S, n = self.n_features_in_, self.n_hashes, self._n_features_out
        buckets, signs = hashed_places(d, S, n, self.seed_)
        features = np.repeat(np.arange(d), S)
        return sp.csr_matrix((signs.ravel() / np.sqrt(S), (buckets.ravel(), features)), (n, d))

    def _plan(self, core: Any) -> Any:
        """The places by buckets, made at the first call; None where features are added to their places."""
        sizes = self.n_features_in_, self.n_hashes, self._n_features_out
        if not core.hash_plan_serves(*sizes):
            return None
        d, S, n = sizes
        return self._kept("plan", lambda: core.HashPlan(d, self.seed_, S, n))

    def _transposed(self) -> dict[str, np.ndarray]:
        return {"matrix": self.to_matrix().T.toarray()}

    def _check_params(self) -> tuple[int, int]:
        thread_count(self.n_jobs)
        for name, most in (("n_components", MOST_COMPONENTS), ("n_hashes", MOST_HASHES)):
            if check_count(name, getattr(self, name)) > most:
                raise ValueError(f"{name} must be at most {most}, got {getattr(self, name)}")
        return int(self.n_components), int(self.n_hashes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_state(self) -> None:
        n, _ = self._check_params()
        reserve(OUTPUT_ROWS * 8 * n, f"{OUTPUT_ROWS} rows of n_components={n}")
        self._n_features_out = n


def hashed_places(n_features: int, n_hashes: int, n_buckets: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return buckets and signs of all features, a row of ``n_hashes`` for each, as the compiled loops compute them.

    A word of 64 mixed bits gives two buckets, each with 31 bits for the bucket and one bit for the sign. The sign needs
    a separate bit: with remainders of one number and an even ``n_buckets``, signs within a bucket would agree.
    """
    features = _mix(np.arange(n_features, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    pairs = np.arange((n_hashes + 1) // 2, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    keys = _mix(_mix(_mix(pairs) ^ _mix(np.array([seed], np.uint64))))
    words = _mix(features[:, None] ^ keys[None, :])
    halves = np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=2).reshape(n_features, -1)
    halves = halves[:, :n_hashes]
    buckets = ((halves & np.uint64(0x7FFFFFFF)) * np.uint64(n_buckets)) >> np.uint64(31)
    return buckets.astype(np.int64), 1.0 - 2.0 * (halves >> np.uint64(31)).astype(np.float64)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread every bit over all bits, modulo 2⁶⁴."""
    factor, half = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
    for _ in range(2):
        x = (x ^ (x >> half)) * factor
    return x ^ (x >> half)
