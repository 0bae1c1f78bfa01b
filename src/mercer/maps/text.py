"""Map text to hashed counts of words or character n-grams, without a vocabulary.

    Φ̄_j(x) = Σ_{i : h(i) = j} ξ(i) Φ_i(x)

where h(i) is the bucket of feature i, ξ(i) = ±1 its sign (always 1 if not signed) and Φ_i(x) its count in x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize

from mercer import _core
from mercer._state.saved import Count, Fields, Optional, SparseInts
from mercer._validation import check_choice, check_count, check_seed, thread_count
from mercer.data import TextBuffer
from mercer.maps.hashed import HashedMap, check_dtype, to_csr

__all__ = ["TextHasher"]

ANALYZERS = ("word", "char", "char_wb")
BLOCK = 4096
"""Documents whose names are collected at a time."""


class TextHasher(HashedMap):
    """Counts of words or character n-grams of documents, hashed into 2^n_bits columns.

    No vocabulary is learnt or stored: each document becomes a sparse row on its own, in one pass, and new words can
    occur at any time. The columns are the same on all platforms and in all versions.

    Words are runs of two or more letters, digits and underscores of any script, as in scikit-learn's vectorizers.
    Lower-casing follows Unicode for each character separately: as Python's ``str.lower``, except that the Greek sigma
    at the end of a word stays σ. Invalid UTF-8 bytes raise no error; they belong to no word.

    Parameters
    ----------
    n_bits : int, default=20
        There are 2^n_bits columns, up to 2^30.
    ngrams : tuple (min_n, max_n), default=(1, 1)
        The shortest and the longest n-grams, of words or characters.
    analyzer : {"word", "char", "char_wb"}, default="word"
        "word": words and their n-grams; "char": n-grams of characters over the whole document, in which two or more
        white spaces in a row count as one space; "char_wb": n-grams of characters in each word between white spaces,
        with a space on both sides.
    lowercase : bool, default=True
        Whether to ignore case.
    signed : bool, default=True
        Whether features are added with a random sign, so that inner products are unbiased despite collisions: E ⟨Φ̄(x),
        Φ̄(z)⟩ = k(x, z). Without signs it is (1 − 1/n) k(x, z) + s(x) s(z) / n, s being the sum of a document's counts.
    copies : int, default=1
        Number of columns for each feature. A feature is lost only if all its copies collide with others.
    seed : int, default=0
        Another seed gives other, independent columns and signs.
    weighting : {None, "log", "tfidf"}, default=None
        None: counts; "log": sign · log(1 + count); "tfidf": count · idf_j with idf_j = log((1 + N) / (1 + df_j)) + 1,
        where df_j is the number of the N documents of `fit` with a nonzero column j.
    norm : {None, "l2", "l1"}, default=None
        Scale rows to norm 1, after the weighting.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.
    inverse_size : int, default=0
        How many names of features `fit` and `partial_fit` remember for `inverse`, `collision_report` and
        `get_feature_names_out`.
    idf_sample : float or int, default=1.0
        For "tfidf": the share of documents, from the start of each `fit` or `partial_fit` call, used for document
        frequencies (a float up to 1), or the total number of documents used (an int).
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns, 2^n_bits.
    document_frequency_ : ndarray of int64
        With "tfidf": number of used documents in which each column is nonzero.
    n_documents_ : int
        With "tfidf": number of documents used.

    See Also
    --------
    StringHasher : substrings, also with mismatches, gaps or positions.

    References
    ----------
    .. [Shi2009] Q. Shi, J. Petterson, G. Dror, J. Langford, A. Smola and S. V. N. Vishwanathan. Hash kernels for
       structured data. Journal of Machine Learning Research 10, 2009.
    .. [Weinberger2009] K. Weinberger, A. Dasgupta, J. Langford, A. Smola and J. Attenberg. Feature hashing for large
       scale multitask learning. ICML, 2009.

    Examples
    --------
    >>> from mercer.maps import TextHasher
    >>> documents = ["The cat sat on the mat.", "A dog!"]
    >>> X = TextHasher(n_bits=18).transform(documents)
    >>> X.shape, X.nnz
    ((2, 262144), 6)
    >>> hasher = TextHasher(n_bits=18, inverse_size=100).fit(documents)
    >>> [hasher.inverse(j) for j in X[1].indices]
    [['dog']]

    Use it in a pipeline:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(TextHasher(norm="l2"), LogisticRegression()).fit(documents, ["cat", "dog"])
    >>> model.predict(["the dog"]).tolist()
    ['dog']
    """

    document_frequency_: np.ndarray
    n_documents_: int
    _learnt = ("inverse_", "document_frequency_", "n_documents_")
    saved = HashedMap.saved | Fields(
        document_frequency_=Optional(SparseInts("n_features_out_")), n_documents_=Optional(Count())
    )

    def __init__(
        self,
        n_bits: int = 20,
        ngrams: tuple[int, int] = (1, 1),
        analyzer: str = "word",
        lowercase: bool = True,
        signed: bool = True,
        copies: int = 1,
        seed: int = 0,
        weighting: str | None = None,
        norm: str | None = None,
        dtype: Any = np.float64,
        inverse_size: int = 0,
        idf_sample: float | int = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.ngrams = ngrams
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.signed = signed
        self.copies = copies
        self.seed = seed
        self.weighting = weighting
        self.norm = norm
        self.dtype = dtype
        self.inverse_size = inverse_size
        self.idf_sample = idf_sample
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> TextHasher:
        """Check the parameters, count documents for "tfidf", and store feature names for ``inverse_size``.

        Parameters
        ----------
        X : documents
            See `mercer.data.TextBuffer`.
        y : ignored

        Returns
        -------
        TextHasher
            The map itself.
        """
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any = None) -> TextHasher:
        """Fit on more documents, in addition to earlier calls.

        Parameters
        ----------
        X : documents
            See `mercer.data.TextBuffer`.
        y : ignored

        Returns
        -------
        TextHasher
            The map itself.
        """
        self._check_parameters()
        buffer = TextBuffer(X)
        super().partial_fit(buffer)
        if self.weighting == "tfidf":
            self._count_documents(buffer)
        return self

    def _count_documents(self, buffer: TextBuffer) -> None:
        if not hasattr(self, "document_frequency_"):
            self.document_frequency_ = np.zeros(self.n_features_out_, np.int64)
            self.n_documents_ = 0
        if isinstance(self.idf_sample, Integral):
            wanted = max(0, int(self.idf_sample) - self.n_documents_)
        else:
            wanted = math.ceil(self.idf_sample * len(buffer))
        sample = buffer[:wanted]
        buckets, times = np.unique(self._rows(sample)[1], return_counts=True)
        self.document_frequency_[buckets] += times
        self.n_documents_ += len(sample)

    # ------------------------------------------------------------------------------------------------ transforming

    def transform(self, X: Any) -> csr_matrix:
        """Return the hashed counts of documents.

        Parameters
        ----------
        X : documents
            See `mercer.data.TextBuffer`: lists of str or bytes, arrays and columns of strings, a path or an open file.

        Returns
        -------
        scipy.sparse.csr_matrix
            One row per document, 2^n_bits columns; column indices ascend in each row, and values that cancel to 0 are
            not stored.
        """
        self._check_parameters()
        self._check_fitted()
        matrix = to_csr(self._rows(TextBuffer(X)), self.n_features_out_)
        if self.weighting == "log":
            matrix.data = np.copysign(np.log1p(np.abs(matrix.data)), matrix.data)
        elif self.weighting == "tfidf":
            matrix.data *= self._idf(self.document_frequency_[matrix.indices])
        return normalize(matrix, norm=self.norm, copy=False) if self.norm else matrix

    @property
    def idf_(self) -> np.ndarray:
        """Return the weight of each column with "tfidf": log((1 + N) / (1 + df_j)) + 1."""
        self._check_fitted()
        return self._idf(self.document_frequency_)

    def _idf(self, frequency: np.ndarray) -> np.ndarray:
        idf = np.log((1.0 + self.n_documents_) / (1.0 + frequency)) + 1.0
        return idf.astype(check_dtype(self.dtype), copy=False)

    def _rows(self, buffer: TextBuffer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        single = check_dtype(self.dtype) == np.float32
        return _core.text.text_rows(
            buffer.data, buffer.offsets, **self._settings(), n_bits=self.n_bits, with_signs=bool(self.signed),
            copies=self.copies, single=single, threads=thread_count(self.n_jobs),
        )  # fmt: skip

    def _names(self, X: Any) -> Iterator[tuple[list[str], np.ndarray, list[int]]]:
        buffer = TextBuffer(X)
        mask = np.uint64(self.n_features_out_ - 1)
        for start in range(0, len(buffer), BLOCK):
            block = buffer[start : start + BLOCK]
            names, hashes, counts = _core.text.text_names(block.data, block.offsets, **self._settings())
            for copy in range(self.copies):
                copied = _core.hashing.combine_hashes(hashes, copy) if copy else hashes
                yield names, copied & mask, counts.tolist()

    # -------------------------------------------------------------------------------------------- settings and files

    def _settings(self) -> dict[str, Any]:
        """What the compiled analyzer needs (TextSettings in cpp/hashing/text.hpp)."""
        low, high = self.ngrams
        return {
            "analyzer": self.analyzer,
            "min_n": int(low),
            "max_n": int(high),
            "lowercase": bool(self.lowercase),
            "seed": int(self.seed),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON data."""
        self._check_parameters()
        params = {**self.get_params(deep=False), "dtype": check_dtype(self.dtype).name}
        return {**params, "ngrams": [int(n) for n in self.ngrams]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TextHasher:
        """Return a map with the parameters of `to_json`."""
        hasher = cls(**{**data, "ngrams": tuple(data["ngrams"]), "dtype": check_dtype(data["dtype"]).type})
        hasher._check_parameters()
        return hasher

    def _check_state(self) -> None:
        super()._check_state()
        if hasattr(self, "document_frequency_") and self.document_frequency_.max(initial=0) > self.n_documents_:
            raise ValueError(f"a document frequency lies outside of 0 .. {self.n_documents_}")

    # ------------------------------------------------------------------------------------------------ checks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("analyzer", self.analyzer, ANALYZERS)
        check_choice("weighting", self.weighting, (None, "log", "tfidf"))
        check_choice("norm", self.norm, (None, "l1", "l2"))
        if check_count("copies", self.copies) > self.n_features_out_:
            raise ValueError(f"copies must be at most the number of columns, {self.n_features_out_}, got {self.copies}")
        check_seed(self.seed)
        check_dtype(self.dtype)
        thread_count(self.n_jobs)
        try:
            low, high = self.ngrams
        except (TypeError, ValueError):
            raise ValueError(f"ngrams must be a pair (min_n, max_n), got {self.ngrams!r}") from None
        if check_count("ngrams[0]", low) > check_count("ngrams[1]", high) or high > 1000:
            raise ValueError(f"ngrams must be a pair (min_n, max_n) with min_n ≤ max_n ≤ 1000, got {self.ngrams!r}")
        share = self.idf_sample
        if isinstance(share, bool) or not isinstance(share, Real) or not share > 0:
            raise ValueError(f"idf_sample must be a share in (0, 1] or a number of documents, got {share!r}")
        if not isinstance(share, Integral) and share > 1:
            raise ValueError(f"idf_sample must be a share in (0, 1] or an int, got {share!r}")

    def _check_fitted(self) -> None:
        if self.weighting == "tfidf" and not hasattr(self, "document_frequency_"):
            raise NotFittedError("weighting='tfidf' needs document frequencies: call fit or partial_fit first")
        if self.weighting == "tfidf" and len(self.document_frequency_) != self.n_features_out_:
            raise NotFittedError("n_bits has changed since the documents were counted: call fit again")

    def __sklearn_is_fitted__(self) -> bool:
        return self.weighting != "tfidf" or hasattr(self, "document_frequency_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.weighting == "tfidf"
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
