"""Data frames with text, categories, numbers and dates, straight into hashed learners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import mercer
from mercer.maps import RecordHasher, TextHasher
from mercer.online import ColumnGuessWarning, HashedClassifier, HashedRegressor

pd = pytest.importorskip("pandas")

RANDOM = np.random.default_rng(0)


def frame(n=120):
    words = RANDOM.choice(["red", "blue", "green", "old", "new", "big"], (n, 5))
    town = RANDOM.choice(["oslo", "rome", "bonn"], n)
    age = RANDOM.integers(20, 70, n)
    label = np.where((town == "oslo") | (age > 55), "yes", "no")
    text = [" ".join(row) + f" n{i}" for i, row in enumerate(words)]
    return pd.DataFrame({"text": text, "town": town, "age": age, "label": label})


def made(kind, df):
    if kind == "pandas":
        return df
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(df)
    if kind == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(df, preserve_index=False)
    return df.to_dict("records") if kind == "records" else {name: df[name].tolist() for name in df}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "records", "columns"])
def test_a_frame_and_the_name_of_its_label_are_enough(kind, tmp_path):
    df = frame()
    model = HashedClassifier(n_bits=14).fit(made(kind, df), "label")
    rest = made(kind, df.drop(columns="label"))
    assert model.score(rest, df["label"].to_numpy()) > 0.95
    assert model.feature_names_in_.tolist() == ["text", "town", "age"]
    assert (model.file_format_.text, model.n_features_in_) == (("text",), 3)
    same = HashedClassifier(n_bits=14).fit(rest, df["label"].to_numpy())
    np.testing.assert_array_equal(same.predict_proba(rest), model.predict_proba(rest))
    mercer.save(model, tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(rest), model.predict(rest))


def test_a_frame_gives_the_model_of_its_csv(tmp_path):
    df = frame()
    df.to_csv(tmp_path / "a.csv", index=False)
    file, memory = (
        HashedClassifier(n_bits=14).fit_file(tmp_path / "a.csv"),
        HashedClassifier(n_bits=14).fit(df, "label"),
    )
    np.testing.assert_allclose(file._table_weights(), memory._table_weights(), rtol=1e-3, atol=1e-4)
    assert file.predict(df).tolist() == memory.predict(df).tolist()
    assert {"town=oslo", "red"} <= set(memory.names_.names)


def test_mistakes_are_named():
    df = frame(40)
    for y, message in (("nowhere", "y names the column 'nowhere'"), (np.zeros(3), "40 rows and 3 values")):
        with pytest.raises(ValueError, match=message):
            HashedClassifier(n_bits=8).fit(df, y)
    with pytest.raises(ValueError, match="lacks 1 of its values"):
        HashedClassifier(n_bits=8).fit(df.assign(label=[None, *df["label"][1:]]), "label")
    model = HashedClassifier(n_bits=8).fit(df, "label")
    with pytest.raises(ValueError, match="X has no column 'town'"):
        model.predict(df.drop(columns="town"))
    with pytest.raises(ValueError, match="learnt from documents or files, and X is an array"):
        model.predict(np.zeros((2, 3)))


def test_missing_values_dates_and_bools_are_read():
    df = frame(60)
    df["when"] = pd.date_range("2024-01-01", periods=60, freq="h")
    df["member"] = RANDOM.random(60) > 0.5
    df["age"] = df["age"].astype(float).where(RANDOM.random(60) > 0.1)
    df.loc[3, "town"] = None
    model = HashedClassifier(n_bits=12).fit(df, "label")
    assert model.file_format_.dates == (("when", "ymd"),)
    assert {name for name, *_ in model.file_format_.numbers} == {"age", "when", "member"}
    assert len(model.predict(df)) == 60


def test_frames_of_numbers_stay_arrays_and_targets_may_be_columns():
    df = pd.DataFrame({"a": RANDOM.normal(size=80), "b": RANDOM.normal(size=80)})
    model = HashedClassifier(n_bits=8).fit(df, (df["a"] > 0).to_numpy())
    assert model.coef_.shape == (1, 2)
    df["town"], df["y"] = RANDOM.choice(["oslo", "rome"], 80), 3 * df["a"]
    assert HashedRegressor(n_bits=12).fit(df, "y").score(df.drop(columns="y"), df["y"]) > 0.9


def test_frames_go_through_cross_validation_and_column_transformers():
    df = frame(90)
    scores = cross_val_score(clone(HashedClassifier(n_bits=12)), df.drop(columns="label"), df["label"], cv=3)
    assert scores.mean() > 0.7
    columns = make_column_transformer((TextHasher(n_bits=8), "text"), (RecordHasher(n_bits=8), ["town", "age"]))
    assert make_pipeline(columns, LogisticRegression()).fit(df, df["label"]).score(df, df["label"]) > 0.6


def test_an_id_is_left_out_with_a_warning():
    df = frame(50).assign(user=[f"u{i}" for i in range(50)])
    with pytest.warns(ColumnGuessWarning, match="'user' is left out: it looks like an id"):
        model = HashedClassifier(n_bits=8).fit(df, "label")
    assert model.file_format_.ignored == ("user",)
