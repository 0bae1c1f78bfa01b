"""Tables become numbers on one scale and columns of categories, and later tables are read the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.maps import TableEncoder

TABLE = {"age": [30, 50, None, 40], "city": ["Rome", "Oslo", "Rome", ""], "zip": [1, 2, 1, 3], "same": [1, 1, 1, 1]}


def test_numbers_have_mean_0_and_deviation_1_and_missing_ones_are_marked() -> None:
    F = TableEncoder().fit_transform({"age": TABLE["age"]}).toarray()
    known = np.array([30, 50, 40.0])
    assert np.allclose(F[[0, 1, 3], 0], (known - 40) / known.std())
    assert F[:, 1].tolist() == [0, 0, 1, 0]
    assert F[2, 0] == 0


def test_categories_are_columns_and_unknown_ones_are_none() -> None:
    encoder = TableEncoder(categorical=["zip"], ignore=["age"]).fit(TABLE)
    assert encoder.get_feature_names_out().tolist() == ["city=Oslo", "city=Rome", "zip=1", "zip=2", "zip=3"]
    row = encoder.transform({"age": [1], "city": ["Bern"], "zip": [2], "same": [1]}).toarray()
    assert row.tolist() == [[0, 0, 0, 1, 0]]


def test_rare_categories_share_a_column_that_new_ones_get() -> None:
    encoder = TableEncoder(max_categories=2).fit({"c": ["a", "a", "b", "c"]})
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=(rare)"]
    assert encoder.transform({"c": ["a", "c", "z"]}).toarray().tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize("kind", ["frame", "dicts", "polars"])
def test_frames_dicts_and_columns_give_the_same(kind: str) -> None:
    expected = TableEncoder().fit_transform(TABLE).toarray()
    table: Any
    if kind == "dicts":
        table = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    else:
        table = pytest.importorskip("pandas" if kind == "frame" else "polars").DataFrame(TABLE)
    assert np.allclose(TableEncoder().fit_transform(table).toarray(), expected)


def test_model_files_keep_scales_and_categories(tmp_path: Path) -> None:
    encoder = TableEncoder(ignore=["zip"]).fit(TABLE)
    mercer.save(encoder, tmp_path / "m")
    assert (mercer.load(tmp_path / "m").transform(TABLE) != encoder.transform(TABLE)).nnz == 0


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"ignore": ["town"]}, TABLE, "names the column 'town'"),
        ({"max_categories": 1}, TABLE, "max_categories"),
        ({}, {"a": []}, "no rows"),
        ({}, {"a": [1, 1]}, "no column gives a feature"),
        ({}, {"a": [1, np.inf]}, "must be finite"),
        ({}, {"a": [1, 2], "b": [1]}, "rows"),
    ],
)
def test_wrong_tables_are_named(options: dict[str, Any], table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableEncoder(**options).fit(table)


def test_later_tables_must_have_the_columns_of_training() -> None:
    encoder = TableEncoder().fit(TABLE)
    with pytest.raises(ValueError, match="no column 'age'"):
        encoder.transform({"city": ["Rome"], "zip": [1]})
    with pytest.raises(ValueError, match="was all numbers in training"):
        encoder.transform({"age": ["old"], "city": ["Rome"], "zip": [1]})


def test_numbers_that_are_names_stay_the_same_beside_a_missing_one() -> None:
    pd = pytest.importorskip("pandas")
    encoder = TableEncoder(categorical=["z"]).fit(pd.DataFrame({"z": [1, 2, 1]}))
    assert encoder.transform(pd.DataFrame({"z": [1, None, 2]})).toarray().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert TableEncoder().fit({"a": [1, pd.NA, 3]}).get_feature_names_out().tolist() == ["a", "a is missing"]


def test_columns_of_text_give_their_words():
    texts = [f"a {'good' if i % 2 else 'bad'} film number n{i}" for i in range(30)]
    table = {"review": texts, "town": ["oslo", "rome"] * 15}
    encoder = TableEncoder().fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names == [*(f"review: {w}" for w in ("a", "bad", "film", "good", "number")), "town=oslo", "town=rome"]
    assert encoder.transform({"review": ["Good and new", None], "town": ["oslo", "x"]}).toarray().tolist() == [
        [0, 0, 0, 1, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]
    assert len(TableEncoder(max_words=2).fit(table).get_feature_names_out()) == 4
