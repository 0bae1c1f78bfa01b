"""Code shared by all hashing maps: the number of buckets, the stored names, the names of output columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import TransformerMixin

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Nested, Optional, Saved
from mercer._validation import check_count
from mercer.maps._inverse import CollisionReport, InverseDictionary

__all__ = ["HashedMap", "check_bits", "check_dtype", "to_csr"]

MAX_BITS = 30
"""CSR matrices count their columns in 32-bit integers."""


def check_bits(n_bits: Any, most: int = MAX_BITS) -> int:
    """Return ``n_bits`` as an integer from 1 to ``most``."""
    if check_count("n_bits", n_bits) > most:
        raise ValueError(f"n_bits must be at most {most} (2^{most} columns), got {n_bits!r}")
    return int(n_bits)


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """float32 or float64."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
    return kind


def to_csr(rows: tuple[np.ndarray, np.ndarray, np.ndarray], n_columns: int) -> csr_matrix:
    """Return a CSR matrix from (indptr, indices, values) of the compiled core, with unique ascending columns."""
    indptr, indices, values = rows
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    matrix = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns), copy=False)
    matrix.has_canonical_format = True
    return matrix


class HashedMap(Saved, TransformerMixin, Estimator):
    """Base of maps into 2^n_bits columns.

    A map needs no fitting. With ``inverse_size`` > 0, `fit` and `partial_fit` store up to that many feature names, for
    `inverse`, `collision_report` and `get_feature_names_out`.

    A subclass has the parameters ``n_bits`` and ``inverse_size``, a method `transform`, and ``_names(X)``, which yields
    (names, buckets, counts) of the features of X.
    """

    n_bits: int
    inverse_size: int
    inverse_: InverseDictionary
    _learnt: tuple[str, ...] = ("inverse_",)  # what `fit` begins without
    saved = Fields(inverse_=Optional(Nested(InverseDictionary)))

    @property
    def n_features_out_(self) -> int:
        """Number of columns."""
        return 1 << check_bits(self.n_bits)

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters; with ``inverse_size`` > 0, store the feature names of X and drop earlier ones.

        Parameters
        ----------
        X : documents, records, strings or graphs
            Inputs of :meth:`transform`.
        y : ignored

        Returns
        -------
        self : object
        """
        for name in self._learnt:
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Fit on more data, in addition to earlier calls."""
        self._check_parameters()
        if self.inverse_size:
            if not hasattr(self, "inverse_"):
                self.inverse_ = InverseDictionary(self.inverse_size, self.n_features_out_)
            for names, buckets, counts in self._names(X):
                self.inverse_.add(names, buckets, counts)
        return self

    def inverse(self, bucket: int) -> list[str]:
        """Return the likely names of a column, the most frequent first; empty if none was seen.

        Needs ``inverse_size`` > 0 and a call of `fit` or `partial_fit`.
        """
        if not 0 <= int(bucket) < self.n_features_out_:
            raise ValueError(f"bucket must lie in 0 .. {self.n_features_out_ - 1}, got {bucket!r}")
        return self._kept_names().names(int(bucket))

    def collision_report(self, n_crowded: int = 10) -> CollisionReport:
        """Report the share of names that share a column, and the expected share.

        Needs ``inverse_size`` > 0 and a call of `fit` or `partial_fit`.
        """
        return self._kept_names().report(n_crowded)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns: likely names joined by "|" if stored, else ``hash<bucket>``."""
        names = np.array([f"hash{j}" for j in range(self.n_features_out_)], dtype=object)
        if hasattr(self, "inverse_"):
            for bucket, shared in self.inverse_.by_bucket().items():
                names[bucket] = "|".join(shared)
        return names

    def _check_parameters(self) -> None:
        check_bits(self.n_bits)
        check_count("inverse_size", self.inverse_size, 0)

    def _check_complete(self) -> None:
        self._check_parameters()

    def _check_state(self) -> None:
        self._check_parameters()
        if hasattr(self, "inverse_") and self.inverse_.n_buckets != self.n_features_out_:
            raise ValueError(f"the kept names are those of {self.inverse_.n_buckets} columns")

    def _kept_names(self) -> InverseDictionary:
        if not hasattr(self, "inverse_"):
            raise ValueError(
                f"no names were kept: make {type(self).__name__} with inverse_size=100_000 (or how many you like) "
                "and call fit or partial_fit"
            )
        return self.inverse_

    def _names(self, X: Any) -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    _parts_how = "first"  # nothing is learnt

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
