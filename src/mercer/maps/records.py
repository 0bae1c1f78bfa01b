"""Map records to sparse rows: named fields with categories, numbers and crosses, hashed into 2^n_bits columns.

    Φ̄_j(x) = Σ_{features i of x: bucket(i) = j} sign(i) Φ_i(x)

Features and their 64-bit hash h (bucket: the low bits; sign: the highest bit):

    number v in field f      h = H(f)                    value v
    category v in field f    h = combine(H(f), H(v))     value 1
    cross of f, g, …         h = combine(…combine(h_f, h_g)…, …)    value: the product
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import _core
from mercer._validation import check_choice, check_seed, thread_count
from mercer.maps.columns import add_column, as_rows, columns_of, row_count
from mercer.maps.hashed import HashedMap

__all__ = ["RecordHasher"]

NAMED_ROWS = 10_000
"""Rows whose names are collected at a time."""


class RecordHasher(HashedMap):
    """Hash records (dicts, data frames, columns, pairs) into sparse rows, with feature crosses.

    Rows do not depend on the order of fields. Dicts and columns give the same matrix, bit for bit. Hashes are the same
    in every process, on every platform, and in every version.

    Parameters
    ----------
    n_bits : int, default=20
        There are 2^n_bits columns; 1 to 30.
    interactions : None, "pairs" or list of tuples of str, default=None
        Crosses of fields, in addition to the fields themselves: ``[("city", "device"), ("a", "b", "c")]``. The value of
        a cross is the product of the values of its parts; it exists if all its parts do. The hash depends on the order
        in the tuple. A field with several categories gives a cross for each. ``"pairs"`` crosses all pairs of fields,
        each in the alphabetical order of their names.
    signed : bool, default=True
        Whether features get hashed signs, which makes inner products unbiased.
    seed : int, default=0
        Seed of the hash function; 0 to 2^64 − 1.
    numeric : {"value", "category"}, default="value"
        How numbers are read: as the value of the feature of their field, or as a category by their digits: 7, 7.0 and
        "7" are the same category. In data frames, columns of a categorical type are always categories.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the matrix.
    inverse_size : int, default=0
        Maximum number of names to store in `fit` and `partial_fit` for `inverse` and `collision_report`.
    n_jobs : int or None, default=None
        Threads for columns; one thread reads records of Python objects. The result does not depend on it.

    Attributes
    ----------
    inverse_ : InverseDictionary
        The stored names, with ``inverse_size`` > 0.

    Notes
    -----
    A value may be a string or bytes (a category; bytes are unchanged), a number or a bool (False is 0), a
    list of strings (several categories), or None (no feature). Features of value 0 are left out. NaN and infinite
    numbers are errors; in data frames, missing values of columns that mark them (nulls of Arrow, NA of pandas, None
    or NaN in object columns) give no feature.

    Features in the same column are summed. A plain string in a row of pairs is a feature of that name with value 1, so
    you can mix tokens and fields.

    Examples
    --------
    >>> from mercer.maps import RecordHasher
    >>> hasher = RecordHasher(n_bits=10, interactions=[("city", "device")])
    >>> X = hasher.transform([{"city": "Oslo", "device": "phone", "age": 31}, {"city": "Rome", "age": None}])
    >>> X.shape, X.nnz
    ((2, 1024), 5)
    >>> same = hasher.transform({"city": ["Oslo", "Rome"], "device": ["phone", None], "age": [31, None]})
    >>> (X != same).nnz
    0
    """

    def __init__(
        self,
        n_bits: int = 20,
        interactions: str | Sequence[Sequence[str]] | None = None,
        *,
        signed: bool = True,
        seed: int = 0,
        numeric: str = "value",
        dtype: Any = np.float64,
        inverse_size: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.interactions = interactions
        self.signed = signed
        self.seed = seed
        self.numeric = numeric
        self.dtype = dtype
        self.inverse_size = inverse_size
        self.n_jobs = n_jobs

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the rows of records.

        Parameters
        ----------
        X : records
            A list of dicts or of lists of (name, value) pairs; a pandas or Polars data frame, an Arrow table, a dict of
            columns (name → array or list), or a structured array.

        Returns
        -------
        csr_matrix of shape (n_records, 2^n_bits)
            Indices ascend and are unique in each row; there are no stored zeros.
        """
        self._check_parameters()
        columns = columns_of(X)
        single, categories, seed = self._single, self.numeric == "category", check_seed(self.seed)
        if columns is None:
            pairs = self.interactions == "pairs"
            parts = _core.hashing.hash_records(
                X, self.n_bits, seed, bool(self.signed), categories, self._crosses(), pairs, single
            )
        else:
            core = _core.hashing.RecordColumns(row_count(columns), seed, categories)
            for name, column in columns:
                add_column(core, name, column, seed, categories=categories, single=single)
            crosses = self._column_crosses([name for name, _ in columns])
            parts = core.transform(self.n_bits, bool(self.signed), crosses, single, thread_count(self.n_jobs))
        return self._matrix(*parts)

    # ------------------------------------------------------------------ parts

    @property
    def _single(self) -> bool:
        return np.dtype(self.dtype) == np.float32

    def _matrix(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> sp.csr_matrix:
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, 1 << self.n_bits))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_seed(self.seed)
        check_choice("numeric", self.numeric, ("value", "category"))
        thread_count(self.n_jobs)
        try:
            known = np.dtype(self.dtype) in (np.float32, np.float64)
        except TypeError:
            known = False
        if not known:
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        self._crosses()

    def _crosses(self) -> list[list[str]]:
        """The crosses that are listed."""
        expected = 'interactions must be None, "pairs" or a list of tuples of two or more names of fields'
        if self.interactions is None or (isinstance(self.interactions, str) and self.interactions == "pairs"):
            return []
        if isinstance(self.interactions, str) or not isinstance(self.interactions, Sequence):
            raise ValueError(f"{expected}, got {self.interactions!r}")
        for cross in self.interactions:
            named = isinstance(cross, (tuple, list)) and all(isinstance(name, str) for name in cross)
            if not named or len(cross) < 2:
                raise ValueError(f"{expected}, got {cross!r} among them")
            for name in cross:
                try:
                    name.encode()
                except UnicodeEncodeError:
                    raise ValueError(f"interactions must name fields in valid Unicode, got {name!r}") from None
        return [list(cross) for cross in self.interactions]

    def _column_crosses(self, names: list[str]) -> list[list[int]]:
        place = {name: i for i, name in enumerate(names)}
        if isinstance(self.interactions, str):
            ordered = [place[name] for name in sorted(names, key=str.encode)]
            return [[a, b] for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
        for cross in self._crosses():
            for name in cross:
                if name not in place:
                    raise ValueError(f"interactions name field {name!r}, which is not among the columns {names}")
        return [[place[name] for name in cross] for cross in self._crosses()]

    def _names(self, X: Any) -> Iterator[tuple[list[str], np.ndarray, list[int]]]:
        columns = columns_of(X)
        rows = X if columns is not None or isinstance(X, (list, tuple)) else list(X)
        n = len(rows) if columns is None else row_count(columns)
        for begin in range(0, n, NAMED_ROWS):
            end = min(n, begin + NAMED_ROWS)
            part = rows[begin:end] if columns is None else as_rows(columns, begin, end)
            pairs, categories = self.interactions == "pairs", self.numeric == "category"
            names, hashes = _core.hashing.name_records(
                part, begin, check_seed(self.seed), categories, self._crosses(), pairs
            )
            counts: dict[tuple[str, int], int] = {}
            for item in zip(names, (hashes & np.uint64((1 << self.n_bits) - 1)).tolist(), strict=True):
                counts[item] = counts.get(item, 0) + 1
            yield [name for name, _ in counts], np.array([b for _, b in counts], np.int64), list(counts.values())
