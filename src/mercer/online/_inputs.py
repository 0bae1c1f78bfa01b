"""What a hashed learner takes: rows of a matrix or documents, handed to the compiled core in blocks of examples.

Columns of a matrix are their own hashes if there are at most 2^n_bits of them, so that no two share a weight; a
document's features are hashes of its words or n-grams. A sparse matrix of documents is never made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mercer import _core
from mercer._validation import check_choice

__all__ = ["Documents", "Rows", "TextFeatures", "is_documents", "text_features"]


@dataclass(frozen=True)
class TextFeatures:
    """Which features a document has: the part of a ``TextHasher`` that matters to a learner, with the same names."""

    analyzer: str = "word"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {"analyzer": self.analyzer, "ngrams": list(self.ngrams), "lowercase": self.lowercase, "seed": self.seed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TextFeatures:
        """The inverse of :meth:`to_json`."""
        least, most = data["ngrams"]
        return text_features(
            cls(str(data["analyzer"]), (int(least), int(most)), bool(data["lowercase"]), int(data["seed"]))
        )


def text_features(hasher: Any) -> TextFeatures:
    """The settings of a hasher, a ``TextHasher`` or anything with its attributes; None is words in lower case."""
    if hasher is None:
        return TextFeatures()
    missing = [name for name in ("analyzer", "ngrams", "lowercase", "seed") if not hasattr(hasher, name)]
    if missing:
        raise TypeError(f"hasher must be a TextHasher or None, but this {type(hasher).__name__} has no {missing[0]!r}")
    if getattr(hasher, "weighting", None) is not None or getattr(hasher, "copies", 1) != 1:
        raise ValueError(
            "a hasher with weighting or copies makes other values than counts: put it before the learner in a pipeline"
        )
    check_choice("hasher.analyzer", hasher.analyzer, ("word", "char", "char_wb"))
    least, most = hasher.ngrams
    if not 1 <= least <= most:
        raise ValueError(f"hasher.ngrams must be a pair 1 <= least <= most, got {hasher.ngrams!r}")
    return TextFeatures(hasher.analyzer, (int(least), int(most)), bool(hasher.lowercase), int(hasher.seed))


def is_documents(X: Any) -> bool:
    """Whether X is a collection of texts: a list or tuple of str or bytes, a string array, series or Arrow column."""
    if isinstance(X, (str, bytes)):
        raise ValueError("X must be a collection of documents, not one string: wrap it in a list")
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind in "US" or (X.dtype.kind in "OT" and len(X) > 0 and _is_text(X[0])))
    if issparse(X):
        return False
    if hasattr(X, "to_pylist"):  # Arrow
        return "string" in str(X.type) or "binary" in str(X.type)
    if hasattr(X, "dtype") and getattr(X, "ndim", 1) == 1 and hasattr(X, "to_numpy"):  # a series of pandas or Polars
        return len(X) > 0 and _is_text(next(iter(X)))
    return isinstance(X, (list, tuple)) and len(X) > 0 and _is_text(X[0])


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


@dataclass(frozen=True)
class Rows:
    """Rows of a CSR matrix."""

    matrix: Any
    n_bits: int

    @classmethod
    def of(cls, X: Any, n_bits: int) -> Rows:
        """Of an array or a sparse matrix that was validated."""
        matrix = csr_array(X)
        return cls(matrix, n_bits)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def n_values(self) -> int:
        """Features of all examples together."""
        return int(self.matrix.nnz)

    def examples(self, order: np.ndarray) -> _core.Examples:
        """The rows in this order, as a block without labels."""
        m = self.matrix
        return _core.row_examples(m.indptr, m.indices, m.data, order, m.shape[1], self.n_bits, 0)


@dataclass(frozen=True)
class Documents:
    """Documents and the features they have."""

    texts: Any
    features: TextFeatures

    @classmethod
    def of(cls, X: Any, hasher: Any) -> Documents:
        """Of what `is_documents` accepts."""
        if hasattr(X, "to_pylist"):
            X = X.to_pylist()
        elif not isinstance(X, (list, tuple)):
            X = X.tolist() if hasattr(X, "tolist") else list(X)
        return cls(X, text_features(hasher))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def n_values(self) -> int:
        """About how many features all documents have together."""
        f = self.features
        sample = [len(text) for text in self.texts[:100] if _is_text(text)]
        per_text = max(1, sum(sample) // max(1, len(sample)))
        return per_text * len(self) * (f.ngrams[1] - f.ngrams[0] + 1) // (6 if f.analyzer == "word" else 1)

    def examples(self, order: np.ndarray) -> _core.Examples:
        """The documents in this order, as a block without labels."""
        f = self.features
        return _core.document_examples(self.texts, order, f.analyzer, *f.ngrams, f.lowercase, f.seed)
