"""Map tables of named columns to numbers: standardised numbers, one-hot categories, and word indicators.

number v      (v − mean) / deviation, and an indicator column of missing values
category v    1 in the column of v; rare categories share a column
text          1 in the column of each of its words; words of only one row have none
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer._estimator import Estimator
from mercer._state.saved import Fields, Json, Saved
from mercer._validation import check_count
from mercer.data.readers.roles import Column
from mercer.maps.columns import _as_list, columns_of, row_count

__all__ = ["TableEncoder"]

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
_REST = "(rare)"


class TableEncoder(Saved, TransformerMixin, Estimator):
    """Features for linear models from a table with numbers and categories.

    Parameters
    ----------
    categorical : list of str, optional
        Columns whose numbers are names, such as postcodes. Text columns are always categories, unless all cells can be
        read as numbers.
    ignore : list of str, optional
        Columns to ignore.
    max_categories : int, default=50
        Maximum number of output columns of a categorical column; its rarest categories share the last one.
    max_words : int, default=500
        Maximum number of output columns of a text column, one for each of its most frequent words.

    Attributes
    ----------
    columns_ : list of dict
        For each column its ``name``, its ``kind``, and ``mean``, ``scale`` and ``missing``, or ``categories`` and
        ``rest``, or ``words``.

    Notes
    -----
    A value is missing if it is None, NaN, empty, or one of ? NA NaN null none in upper or lower case. A missing number
    counts as the mean. A column is text if its values mostly differ and have three words or more. A category unseen in
    training gets the column of rare ones, or none. A column unseen in training is ignored; a missing column raises an
    error.

    Examples
    --------
    >>> from mercer.maps import TableEncoder
    >>> table = {"age": ["30", "50", "?"], "city": ["Rome", "Oslo", "Rome"]}
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'city=Oslo', 'city=Rome']
    >>> encoder.transform(table).toarray().tolist()
    [[-1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """

    saved = Fields(columns_=Json())

    def __init__(
        self,
        *,
        categorical: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        max_categories: int = 50,
        max_words: int = 500,
    ) -> None:
        self.categorical = categorical
        self.ignore = ignore
        self.max_categories = max_categories
        self.max_words = max_words

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn scales and categories.

        Parameters
        ----------
        X : data frame, dict of columns or list of dicts
        y : None
            Not used.

        Returns
        -------
        TableEncoder
            This encoder.
        """
        most = check_count("max_categories", self.max_categories, 2)
        words = check_count("max_words", self.max_words)
        columns = _table(X)
        if row_count(columns) == 0:
            raise ValueError("X has no rows")
        names = [name for name, _ in columns]
        for option, wanted in (("categorical", self.categorical), ("ignore", self.ignore)):
            unknown = [name for name in wanted or () if name not in names]
            if unknown:
                raise ValueError(f"{option} names the column {unknown[0]!r}; there are {', '.join(map(repr, names))}")
        self.columns_ = [
            _learnt(name, _as_list(column), name in (self.categorical or ()), most, words)
            for name, column in columns
            if name not in (self.ignore or ())
        ]
        if not self._n_features_out:
            raise ValueError("no column gives a feature: all are ignored, constant or missing")
        return self

    @property
    def _n_features_out(self) -> int:
        return sum(map(_width, self.columns_))

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the features of every row.

        Parameters
        ----------
        X : data frame, dict of columns or list of dicts

        Returns
        -------
        csr_matrix of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        given = dict(_table(X))
        lacking = [column["name"] for column in self.columns_ if _width(column) and column["name"] not in given]
        if lacking:
            raise ValueError(f"X has no column {lacking[0]!r}, which was there in training")
        n = row_count(list(given.items()))
        parts = [_encoded(column, _as_list(given[column["name"]])) for column in self.columns_ if _width(column)]
        return sp.csr_matrix(sp.hstack(parts, format="csr")) if n else sp.csr_matrix((0, self._n_features_out))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the feature names: the column name for numbers, column=category for categories."""
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in _names(column)], dtype=object)

    def _saved_params(self) -> dict[str, Any]:
        names = {name: getattr(self, name) for name in ("categorical", "ignore")}
        return {**super()._saved_params(), **{k: None if v is None else list(v) for k, v in names.items()}}

    def _check_state(self) -> None:
        if not isinstance(self.columns_, list) or not all(map(_is_column, self.columns_)):
            raise ValueError("a column of the table is damaged")
        if not self._n_features_out:
            raise ValueError("no column of the table gives a feature")


def _is_column(column: Any) -> bool:
    """Whether it is what `_learnt` gives."""
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        return False
    if column.get("kind") == "number":
        numbers = [column.get("mean"), column.get("scale")]
        fits = all(isinstance(x, (int, float)) and math.isfinite(x) for x in numbers)
        return fits and column["scale"] >= 0 and isinstance(column.get("missing"), bool)
    if column.get("kind") == "text":
        words = column.get("words")
        return isinstance(words, list) and all(isinstance(word, str) for word in words)
    names = column.get("categories")
    fits = column.get("kind") == "category" and isinstance(names, list) and all(isinstance(c, str) for c in names)
    return fits and isinstance(column.get("rest"), bool)


def _table(X: Any) -> list[tuple[str, Any]]:
    columns = columns_of(X)
    if columns is not None:
        return columns
    rows = list(X)
    if not all(isinstance(row, Mapping) for row in rows):
        raise TypeError("X must be a data frame, a dict of columns or a list of dicts")
    names = dict.fromkeys(name for row in rows for name in row)
    return columns_of({name: [row.get(name) for row in rows] for name in names}) or []


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _numbers(values: list[Any]) -> np.ndarray | None:
    """The column as numbers, NaN where missing; None where something is no number."""
    out, infinite = np.full(len(values), np.nan), -1
    for i, value in enumerate(values):
        if _is_missing(value):
            continue
        try:
            out[i] = float(value)
        except (TypeError, ValueError):
            return None
        if infinite < 0 and not math.isfinite(out[i]):
            infinite = i
    if infinite >= 0:
        raise ValueError(f"row {infinite} holds {values[infinite]!r}: numbers must be finite")
    return out


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    # A column of integers becomes one of floats where a row lacks a value: 1 and 1.0 are one name.
    return str(int(value)) if isinstance(value, (float, np.floating)) and float(value).is_integer() else str(value)


def _words(value: Any) -> set[str]:
    return set() if _is_missing(value) else set(re.findall(r"\w+", str(value).lower()))


def _learnt(name: str, values: list[Any], category: bool, most: int, most_words: int) -> dict[str, Any]:
    numbers = None if category else _numbers(values)
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        mean, scale = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
        scale = scale if scale > 1e-12 * max(1.0, abs(mean)) else 0.0
        return {"name": name, "kind": "number", "mean": mean, "scale": scale, "missing": 0 < len(known) < len(numbers)}
    some = [_text(value) for value in values[:5000] if not _is_missing(value)]
    if not category and Column.of(name, some).role == "text":
        word_counts = Counter(word for value in values for word in _words(value))
        often = sorted(
            (word for word in word_counts if word_counts[word] > 1), key=lambda word: (-word_counts[word], word)
        )
        return {"name": name, "kind": "text", "words": sorted(often[:most_words])}
    counts = Counter(_text(value) for value in values if not _is_missing(value))
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    rest = len(ranked) > most
    kept = sorted(ranked[: most - 1] if rest else ranked)
    return {"name": name, "kind": "category", "categories": kept, "rest": rest}


def _names(column: dict[str, Any]) -> list[str]:
    name = column["name"]
    if column["kind"] == "number":
        return ([name] if column["scale"] else []) + ([f"{name} is missing"] if column["missing"] else [])
    if column["kind"] == "text":
        return [f"{name}: {word}" for word in column["words"]]
    return [f"{name}={c}" for c in column["categories"]] + ([f"{name}={_REST}"] if column["rest"] else [])


def _width(column: dict[str, Any]) -> int:
    return len(_names(column))


def _encoded(column: dict[str, Any], values: list[Any]) -> sp.csr_matrix:
    if column["kind"] == "number":
        numbers = _numbers(values)
        if numbers is None:
            raise ValueError(f"column {column['name']!r} was all numbers in training, now it is not")
        missing = np.isnan(numbers)
        parts = []
        if column["scale"]:
            parts.append(np.where(missing, 0.0, (numbers - column["mean"]) / column["scale"]))
        if column["missing"]:
            parts.append(missing.astype(np.float64))
        return sp.csr_matrix(np.column_stack(parts))
    if column["kind"] == "text":
        at = {word: i for i, word in enumerate(column["words"])}
        pairs = [(i, at[word]) for i, value in enumerate(values) for word in sorted(_words(value)) if word in at]
        rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
        return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(values), len(at)))
    place = {c: i for i, c in enumerate(column["categories"])}
    last = len(place) if column["rest"] else -1
    codes = [-1 if _is_missing(value) else place.get(_text(value), last) for value in values]
    rows = np.flatnonzero(np.array(codes) >= 0)
    where = (rows, np.array(codes, np.int64)[rows])
    return sp.csr_matrix((np.ones(len(rows)), where), shape=(len(values), _width(column)))
