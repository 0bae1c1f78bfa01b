"""Inputs of hashed learners: rows of a matrix or documents, passed to the compiled core in blocks of examples.

Columns of a matrix below 2^n_bits are their own hashes, so no two of them share a weight. A document's features are
hashes of its words or n-grams. No sparse matrix of documents is built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from mercer import _core
from mercer.data import TextBuffer
from mercer.learning.checkpoint import arrays_of, digest_of
from mercer.maps import StringHasher, TextHasher
from mercer.maps.columns import columns_of

__all__ = [
    "Documents",
    "Inputs",
    "Records",
    "Rows",
    "feature_settings",
    "has_texts",
    "hasher_params",
    "is_documents",
    "is_table",
    "n_copies",
    "table_columns",
    "text_features",
]


def text_features(hasher: Any) -> TextHasher | StringHasher:
    """Return the hasher that defines the features of a document; None is words in lower case.

    A learner takes counts from it. Other transformations of a hasher belong in a pipeline before the learner.
    """
    if hasher is None:
        return TextHasher()
    if not isinstance(hasher, (TextHasher, StringHasher)):
        raise TypeError(f"hasher must be a TextHasher, a StringHasher or None, got {type(hasher).__name__}")
    hasher._check_parameters()
    for name in ("weighting", "norm") if isinstance(hasher, TextHasher) else ("weights",):
        value = getattr(hasher, name)
        if value is not None:
            raise ValueError(
                f"hasher must leave counts as they are, and this one has {name}={value!r}: "
                f"put such a {type(hasher).__name__} before the learner, in a pipeline"
            )
    if isinstance(hasher, StringHasher) and hasher.kernel == "mismatch":
        hasher._known_letters()  # the learner has no look at all strings first
    return hasher


def feature_settings(hasher: Any, binary: bool = False) -> dict[str, Any]:
    """Return the hasher settings for the compiled readers; ``binary``: characters of strings are bytes."""
    hasher = text_features(hasher)
    if isinstance(hasher, TextHasher):
        return {**hasher._settings(), "copies": int(hasher.copies)}
    settings = {**hasher._settings(binary)}
    return {**TextHasher(seed=int(hasher.seed))._settings(), "strings": _core.text.StringSettings(**settings)}


def n_copies(hasher: Any) -> int:
    """Return the number of weights of each feature."""
    return int(getattr(hasher, "copies", 1))


def hasher_params(hasher: Any) -> dict[str, Any]:
    """Return the parameters of a hasher as JSON data, for fingerprints."""
    hasher = text_features(hasher)
    if isinstance(hasher, TextHasher):
        return hasher.to_json()
    letters = hasher._known_letters() if hasher.kernel == "mismatch" else []
    return {**hasher.get_params(deep=False), "dtype": str(hasher.dtype), "alphabet": [one.hex() for one in letters]}


def is_documents(X: Any, expected: bool = False) -> bool:
    """Return whether X is a collection of texts: a list of str or bytes, a string array, series or Arrow column.

    If X is empty and ambiguous, the result is ``expected``.
    """
    if isinstance(X, (str, bytes)):
        raise ValueError("X must be a collection of documents, not one string: wrap it in a list")
    if isinstance(X, os.PathLike) or hasattr(X, "read"):
        raise TypeError(
            "X must be an array or documents, got a path or file: use fit_file and similar methods to read files"
        )
    if is_table(X):
        return False
    if isinstance(X, (Iterator, Mapping, Set)):
        raise TypeError(f"X must be an array, a sparse matrix or a list of documents, got {type(X).__name__}")
    if isinstance(X, TextBuffer):
        return True
    if issparse(X):
        return False
    if isinstance(X, np.ndarray):
        if X.ndim != 1 or X.dtype.kind not in "OTUS":
            return expected and X.ndim == 1 and not len(X)
        return X.dtype.kind in "US" or (_is_text(X[0]) if len(X) else expected)
    if hasattr(X, "to_pylist"):  # Arrow
        return "string" in str(X.type) or "binary" in str(X.type)
    series = hasattr(X, "dtype") and getattr(X, "ndim", 1) == 1 and hasattr(X, "to_numpy")  # pandas, Polars
    if not series and not isinstance(X, (list, tuple)):
        return False
    first = next(iter(X), None)
    return _is_text(first) if len(X) else expected


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

    def fingerprint_arrays(self) -> list[np.ndarray]:
        """Return the arrays that identify the rows, for checkpoints."""
        return arrays_of(self.matrix)

    def examples(self, order: np.ndarray) -> _core.examples.Examples:
        """The rows in this order, as a block without labels."""
        m = self.matrix
        return _core.examples.row_examples(m.indptr, m.indices, m.data, order, m.shape[1], self.n_bits, 0)


def is_table(X: Any) -> bool:
    """Return whether X has named columns: a data frame, an Arrow table, a dict of columns, or records as dicts."""
    if issparse(X):  # one of SciPy's formats is a mapping, too
        return False
    if isinstance(X, Mapping):
        return bool(X) and all(isinstance(name, str) and not isinstance(X[name], str) for name in X)
    if isinstance(X, (list, tuple)):
        return bool(X) and isinstance(X[0], Mapping)
    return not isinstance(X, np.ndarray) and hasattr(X, "columns")


def has_texts(X: Any) -> bool:
    """Return whether a table holds values other than numbers, so that it is not a matrix."""
    if isinstance(X, (Mapping, list, tuple)):
        return True
    kinds = X.schema.types if hasattr(X, "column_names") else X.dtypes
    names = [str(kind).lower() for kind in kinds]
    if any(map(_is_named_kind, names)):
        return True
    objects = [name for name, kind in zip(X.columns, names, strict=True) if kind == "object"]
    return any(isinstance(value, (str, list)) for name in objects for value in X[name].tolist()[:100])


def _is_named_kind(kind: str) -> bool:
    numeric = ("int", "uint", "float", "double", "bool", "decimal", "half", "sparse", "complex", "object")
    return not any(kind.startswith(name) for name in numeric)


def table_columns(X: Any) -> dict[str, list[Any]]:
    """Return the columns of a table as lists of plain values; missing values are None."""
    if isinstance(X, (list, tuple)):
        names = dict.fromkeys(name for record in X for name in record)
        return {str(name): [_value(record.get(name)) for record in X] for name in names}
    columns = columns_of(X)
    if columns is None:
        raise TypeError(f"X must be a data frame, a dict of columns or records, got {type(X).__name__}")
    out = {}
    for name, column in columns:
        to_list = getattr(column, "to_pylist", None) or getattr(column, "tolist", None) or column.__iter__
        out[str(name)] = [_value(value) for value in to_list()]
    sizes = set(map(len, out.values()))
    if len(sizes) > 1:
        raise ValueError(f"the columns of X have different lengths: {sorted(sizes)}")
    return out


def _value(value: Any) -> Any:
    """A cell as JSON knows it."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != np.inf else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_value(item) for item in value]
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat(sep=" ") if hasattr(value, "date") else value.isoformat()
    return value.item() if hasattr(value, "item") else str(value)


@dataclass(frozen=True)
class Records:
    """Examples hashed by a reader: a small file, or a data frame."""

    indptr: np.ndarray
    hashes: np.ndarray
    values: np.ndarray | None
    documents: bool

    @classmethod
    def of(cls, blocks: list[_core.examples.Examples]) -> Records:
        """All blocks as one."""
        indptr = [np.zeros(1, np.int64)]
        for block in blocks:
            indptr.append(block.indptr[1:] + indptr[-1][-1])
        hashes = [block.hashes for block in blocks]
        values = None
        held = [block.values for block in blocks]
        if any(len(part) for part in held):
            values = np.concatenate(
                [v if len(v) else np.ones(len(h), np.float32) for v, h in zip(held, hashes, strict=True)]
            )
        documents = bool(blocks) and all(block.documents for block in blocks)
        return cls(
            np.concatenate(indptr), np.concatenate(hashes) if hashes else np.zeros(0, np.uint64), values, documents
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_values(self) -> int:
        """Features of all examples together."""
        return len(self.hashes)

    def fingerprint_arrays(self) -> list[np.ndarray]:
        """Return the arrays that identify the examples, for checkpoints."""
        return [self.indptr, self.hashes, *([] if self.values is None else [self.values])]

    def part(self, order: np.ndarray) -> Records:
        """These examples, in this order."""
        lengths = np.diff(self.indptr)[order]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.indptr[order] - indptr[:-1], lengths) + np.arange(indptr[-1])
        values = None if self.values is None else self.values[places]
        return Records(indptr, self.hashes[places], values, self.documents)

    def examples(self, order: np.ndarray) -> _core.examples.Examples:
        """The examples in this order, as a block without labels."""
        some = self.part(order)
        return _core.examples.Examples(some.indptr, some.hashes, values=some.values, documents=self.documents)


def _is_column_of_bytes(X: Any) -> bool:
    """Whether a series holds text in one buffer, not objects of Python, which may hold what has no form in UTF-8."""
    if not hasattr(X, "to_numpy"):
        return False
    return str(X.dtype).lower() != "object" and getattr(X.dtype, "storage", None) != "python"


@dataclass(frozen=True)
class Documents:
    """Documents and their features."""

    texts: Any
    hasher: TextHasher | StringHasher

    @classmethod
    def of(cls, X: Any, hasher: Any) -> Documents:
        """Of what `is_documents` accepts."""
        if len(X) and (hasattr(X, "to_pylist") or _is_column_of_bytes(X)):
            X = TextBuffer(X)  # Arrow, Polars, pandas: where the text lies
        elif not isinstance(X, (list, tuple, TextBuffer)):
            X = X.tolist() if hasattr(X, "tolist") else list(X)
        return cls(X, text_features(hasher))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def n_values(self) -> int:
        """Return an estimate of the number of features of all documents."""
        sample = [len(text) for text in self.texts[:100] if _is_text(text)]
        per_text = max(1, sum(sample) // max(1, len(sample)))
        if isinstance(self.hasher, StringHasher):
            return per_text * len(self) * self.hasher._features_a_place()
        least, most = self.hasher.ngrams
        size = per_text * len(self) * (most - least + 1) // (6 if self.hasher.analyzer == "word" else 1)
        return size * n_copies(self.hasher)

    def fingerprint_arrays(self) -> list[np.ndarray]:
        """Return the arrays that identify the documents, for checkpoints."""
        if isinstance(self.texts, TextBuffer):
            return [np.asarray(self.texts.data), np.asarray(self.texts.offsets)]
        return [np.array(digest_of(self.texts))]

    def examples(self, order: np.ndarray) -> _core.examples.Examples:
        """The documents in this order, as a block without labels."""
        if isinstance(self.texts, TextBuffer):
            settings = feature_settings(self.hasher, self.texts.binary)
            return _core.examples.buffer_examples(self.texts.data, self.texts.offsets, order, **settings)
        settings = feature_settings(self.hasher, bool(len(self.texts)) and isinstance(self.texts[0], bytes))
        return _core.examples.document_examples(self.texts, order, **settings)


Inputs: TypeAlias = Rows | Documents | Records
