"""Conditional random sampling: samples of sparse rows whose inner products estimate those of the rows.

Every column has a random rank r_j, the same for all rows. The sample of a row x keeps its k nonzero entries of lowest
rank, and the threshold τ_x, the rank of the next entry (1 if there is none). A column is in the samples of both x and z
if its rank is below min(τ_x, τ_z), and given the ranks of the other columns that has this probability, so that

    Σ_{j in both samples} x_j z_j / min(τ_x, τ_z)

is an unbiased estimate of ⟨x, z⟩ [Li2006]_, [Cohen2007]_. Samples keep entries of the rows, whereas hashing keeps sums
of entries. A linear model on samples has as many weights as the rows have columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._validation import check_count, check_seed, check_sparse

__all__ = ["RowSamples"]


class RowSamples:
    """The k entries of lowest rank of each row, with the thresholds for unbiased estimates.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Rows; only nonzero entries count.
    n_samples : int, default=100
        k, number of entries kept per row. Rows with at most k entries are kept completely, and products between them
        are exact.
    seed : int, default=0
        Seed of the ranks. Samples are comparable if they have the same seed and number of columns.

    Attributes
    ----------
    rows : CSR matrix of shape (n_rows, n_features)
        The entries kept.
    thresholds : array of shape (n_rows,)
        τ of each row, from 0 to 1.
    squares : array of shape (n_rows,)
        Squared norms of the whole rows.

    References
    ----------
    .. [Li2006] P. Li, K. Church and T. Hastie. Conditional random sampling: a sketch-based sampling technique for
       sparse data. NIPS, 2006.
    .. [Cohen2007] E. Cohen and H. Kaplan. Summarizing data using bottom-k sketches. PODC, 2007.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from mercer.maps import RowSamples
    >>> X = sp.random(2, 10_000, 0.2, "csr", random_state=0)
    >>> found = [RowSamples(X, 200, seed=s).inner()[0, 1] for s in range(200)]
    >>> bool(abs(np.mean(found) / (X @ X.T)[0, 1] - 1) < 0.1)
    True
    """

    def __init__(self, X: Any, n_samples: int = 100, seed: int = 0) -> None:
        self.n_samples, self.seed = check_count("n_samples", n_samples), check_seed(seed)
        csr = sp.csr_array(check_sparse("X", X) if sp.issparse(X) else _dense(X), dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if not np.isfinite(csr.data).all():
            raise ValueError("X must be finite: it holds NaN or infinity")
        self.squares = np.asarray(csr.multiply(csr).sum(axis=1)).ravel()
        ranks = _ranks(csr.indices, self.seed)
        row = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        order = np.lexsort((ranks, row))
        place = np.arange(len(row)) - csr.indptr[row]  # of each entry of the order in its row
        kept = order[place < self.n_samples]
        self.thresholds = np.ones(csr.shape[0])
        following = place == self.n_samples
        self.thresholds[row[following]] = ranks[order[following]]
        self.rows = sp.csr_matrix((csr.data[kept], (row[kept], csr.indices[kept])), shape=csr.shape)

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __repr__(self) -> str:
        return f"RowSamples({len(self)} rows of {self.rows.shape[1]} features, {self.rows.nnz} entries kept)"

    @property
    def nbytes(self) -> int:
        """Bytes of the entries and thresholds."""
        arrays = (self.rows.data, self.rows.indices, self.rows.indptr, self.thresholds, self.squares)
        return sum(array.nbytes for array in arrays)

    def inner(self, other: RowSamples | None = None) -> np.ndarray:
        """Return unbiased estimates of the inner products of rows.

        Parameters
        ----------
        other : RowSamples, optional
            Samples with the same seed and columns; by default these samples themselves.

        Returns
        -------
        array of shape (n_rows, n_other_rows)
        """
        p, left, right = self._pairs(other)
        return np.asarray((left @ right.T).todense()) / p

    def variance(self, other: RowSamples | None = None) -> np.ndarray:
        """Return unbiased estimates of the variances of the estimates of :meth:`inner`; ``n_samples`` of at least 2.

        Parameters
        ----------
        other : RowSamples, optional

        Returns
        -------
        array of shape (n_rows, n_other_rows)
        """
        if self.n_samples < 2:
            raise ValueError("variance needs n_samples of at least 2, got 1")
        p, left, right = self._pairs(other)
        return np.asarray((left.multiply(left).tocsr() @ right.multiply(right).T).todense()) * (1 - p) / p**2

    def squared_distances(self, other: RowSamples | None = None) -> np.ndarray:
        """Return unbiased estimates of ‖x − z‖², from the exact norms; they may be negative.

        Parameters
        ----------
        other : RowSamples, optional

        Returns
        -------
        array of shape (n_rows, n_other_rows)
        """
        right = self.squares if other is None else other.squares
        return self.squares[:, None] + right[None, :] - 2 * self.inner(other)

    def _pairs(self, other: RowSamples | None) -> tuple[np.ndarray, Any, Any]:
        other = self if other is None else other
        if not isinstance(other, RowSamples):
            raise TypeError(f"other must be RowSamples, got {type(other).__name__}")
        if (self.seed, self.rows.shape[1]) != (other.seed, other.rows.shape[1]):
            raise ValueError(
                f"samples with seed={self.seed} of {self.rows.shape[1]} columns cannot be compared with samples with "
                f"seed={other.seed} of {other.rows.shape[1]} columns"
            )
        return np.minimum.outer(self.thresholds, other.thresholds), self.rows, other.rows


def _dense(X: Any) -> np.ndarray:
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers, got {array.ndim} dimensions of type {array.dtype}")
    return array


def _ranks(columns: np.ndarray, seed: int) -> np.ndarray:
    """A number in (0, 1) for each column: splitmix64 of its index and the seed."""
    with np.errstate(over="ignore"):
        z = columns.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        for _ in range(2):
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = (z ^ (z >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)
    return ((z >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
