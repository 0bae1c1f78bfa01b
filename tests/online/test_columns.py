"""Columns of csv files: what they are is guessed with evidence, said, and kept in the model."""

from __future__ import annotations

import io
import os
import threading
import warnings

import numpy as np
import pytest

import mercer
from mercer.data import DataFileError
from mercer.data.readers.roles import Column, guess_label
from mercer.data.readers.roles import table_of_csv as read_sample
from mercer.online import ColumnGuessWarning, FileFormat, HashedClassifier, HashedRegressor

RANDOM = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(60)]
SPAM = ["cheap", "pills", "now", "win"]


def messages(n=200):
    """Texts of many words, all different, and whether they are spam."""
    made = []
    for i in range(n):
        words = list(RANDOM.choice(WORDS, 6)) + ([SPAM[i // 2 % 4]] if i % 2 else [])
        made.append((" ".join(RANDOM.permutation(words)), "spam" if i % 2 else "ham"))
    return made


def write(path, header, rows, separator=","):
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in [header, *rows]))
    return path


def quietly(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnGuessWarning)
        return model.fit_file(*args, **kwargs)


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (["1", "2.5", "-3e2", "+.5"], "number"),
        (["1", "?", "", "NA", "3"], "number"),
        (["1", "x"], "category"),
        (["", "?", "nan"], "empty"),
        (["red", "blue", "red"], "category"),
        (["one two three", "four five six", "seven eight nine"], "text"),
        (["one two three"] * 5, "category"),
        (["New York City", "Los Angeles CA"] * 20, "category"),
        (["Oslo Norway", "Rome Italy", "Bonn Germany"], "category"),
        (["2020-01-01 12:00", "2020-01-02 13:00"], "date"),
        (["1_000"], "category"),
        (["0x10"], "category"),
    ],
)
def test_roles_of_columns(cells, role):
    assert Column.of("a", cells).role == role


@pytest.mark.parametrize(
    ("header", "rows", "expected"),
    [
        ("a,label", ["1,x", "2,y"], "label"),
        ("Class,a", ["x,1", "y,2"], "Class"),
        ("y,target", ["1,x", "2,y"], "target"),
        ("text,Y", ["x,1", "y,2"], "Y"),
        ("v1,v2", ["ham,a", "spam,b", "ham,c", "spam,d", "ham,e", "ham,f", "ham,g", "ham,h"], "v1"),
        ("id,a,kind", [f"{i},{i % 7},{i % 2}" for i in range(40)], "kind"),
        ("kind,a,sort", [f"{i % 2},{i},{i % 3}" for i in range(40)], None),
        ("kind,a,sort", [f"{'xy'[i % 2]},{i},{'abc'[i % 3]}" for i in range(40)], None),
        ("kind,a,sort", [f"{'xy'[i % 2]},{i},{i % 3}" for i in range(40)], "kind"),
        ("kind,a,sort", [f"{i % 2},{i},{'abc'[i % 3]}" for i in range(40)], "sort"),
        ("id,a", [f"{i},{i / 2}" for i in range(40)], None),
        ("only", ["x", "y"], None),
    ],
)
def test_the_label_is_named_or_the_only_candidate(header, rows, expected):
    table = read_sample("\n".join([header, *rows, ""]).encode(), True, ",", True)
    found = guess_label(table, numeric=False)
    assert (found and found[0]) == expected
    named = header.lower().split(",")
    if expected is not None and expected.lower() not in ("label", "class", "target", "y"):
        assert found[1].endswith("different values")
        assert guess_label(table, numeric=True) is None, "the target of a regression cannot be told by its values"
    elif expected is not None:
        assert expected.lower() in named
        assert found[1] == ""


def test_a_sample_reads_what_files_hold():
    data = '\ufefflabel, "a, b" ,n\n x, "1\n2", 3\ny,"q""q",4\n\nshort\n'.encode()
    table = read_sample(data, True, ",", True)
    assert table.names == ["label", "a, b", "n"]
    assert (table.n_rows, table.header) == (2, True)
    assert read_sample(data, True, ",", None).header
    assert read_sample(b"a,b\n1,2\n3,", False, ",", True).n_rows == 1, "the last line may be cut"
    assert read_sample(b"1,2\n3,4\n", True, ",", False).names == ["0", "1"]
    assert not read_sample(b"1,2\n3,4\n", True, ",", None).header
    for nothing in (b"", b"a,a\n1,2\n", b"a,b\n", b'a,b\n"' + b"x" * 200_000 + b'",1\n'):
        assert read_sample(nothing, True, ",", True) is None


def test_a_column_of_free_text_is_read_as_words(tmp_path):
    rows = messages()
    path = write(tmp_path / "sms.csv", ["kind", "message"], [(kind, text) for text, kind in rows])
    with pytest.warns(ColumnGuessWarning) as caught:
        model = HashedClassifier(n_bits=14).fit_file(path)
    said = [str(w.message) for w in caught]
    assert len(said) == 2
    assert "'kind' is taken as the label (the first column, 2 different values); label= names another" in said[0]
    assert "'message' is read as text (200 different values in 200 rows, 6 words each)" in said[1]
    told = quietly(HashedClassifier(n_bits=14), path, FileFormat(label="kind", text="message"))
    assert model.file_format_ == told.file_format_
    np.testing.assert_array_equal(model._table_weights(), told._table_weights())
    categories = quietly_but(HashedClassifier(n_bits=14), path, FileFormat(label="kind", columns="message"))
    assert model.progress_.average_error < 0.6 * categories.progress_.average_error


def quietly_but(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnGuessWarning)
        return model.fit_file(*args, **kwargs)


def test_a_model_reads_further_files_as_the_first(tmp_path):
    rows = messages()
    path = write(
        tmp_path / "a.csv", ["kind", "message", "n"], [(kind, text, i % 7) for i, (text, kind) in enumerate(rows)]
    )
    model = quietly_but(HashedClassifier(n_bits=14), path)
    assert (model.file_format_.label, model.file_format_.text) == ("kind", ("message",))
    assert model.file_format_.columns == ("n",)
    mercer.save(model, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert again.file_format_ == model.file_format_
    # Few rows, other columns in another order, no label: a guess would go wrong here.
    other = write(tmp_path / "b.csv", ["n", "extra", "message"], [(9, "x y z", "cheap pills now"), (9, "x", "word1")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert again.predict_file(other).tolist() == model.predict_file(other).tolist()
    assert again.score_file(path) == model.score_file(path)


def test_whoever_says_what_columns_are_is_believed(tmp_path):
    rows = messages(40)
    path = write(tmp_path / "a.csv", ["label", "message", "n"], [(kind, text, 1) for text, kind in rows])
    for how in ({"text": "message"}, {"text": "message", "columns": ["n"]}, {"columns": "n"}, {"columns": ["n"]}):
        quietly(HashedClassifier(n_bits=8), path, FileFormat(**how))
    with pytest.warns(ColumnGuessWarning, match="'message' looks like text .* is one category; text='message'"):
        model = HashedClassifier(n_bits=8).fit_file(path, FileFormat(columns="rest"))
    assert model.file_format_.columns == ("message", "n")
    assert model.file_format_.text == ()


def test_columns_beside_a_text_are_learnt_from_too(tmp_path):
    path = write(tmp_path / "a.csv", ["label", "text", "n"], [("x", "a b", 1), ("y", "c d", 2)])
    model = quietly(HashedClassifier(n_bits=8), path)
    assert (model.file_format_.text, model.file_format_.columns) == (("text",), ("n",))


def test_a_label_that_nobody_can_know_is_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", ["id", "size"], [(i, i / 2) for i in range(30)])
    with pytest.raises(DataFileError, match=r"no column is named label, target, class or y.*'id', 'size'") as caught:
        HashedClassifier(n_bits=8).fit_file(path)
    assert caught.value.hint == "label= names the label"
    with pytest.raises(DataFileError, match="no column is named"):
        HashedRegressor(n_bits=8).fit_file(path)
    assert quietly(HashedRegressor(n_bits=8), path, FileFormat(label="size")).progress_.examples == 30


def test_a_first_line_of_data_is_no_header(tmp_path):
    path = write(tmp_path / "a.csv", ["39", "x"], [(50, "x"), (38, "y"), (53, "x"), (28, "y")] * 3)
    model = quietly_but(HashedClassifier(n_bits=8), path)
    assert model.progress_.examples == 13
    assert (model.file_format_.label, model.file_format_.header) == ("1", False)
    assert quietly_but(HashedClassifier(n_bits=8), path, FileFormat(header=True)).progress_.examples == 12


@pytest.mark.parametrize(
    "form",
    [FileFormat(label="paid"), FileFormat("csv", columns="page", label=1), FileFormat(roles={"paid": "label"})],
)
def test_a_first_line_with_a_name_that_was_given_is_a_header(form, tmp_path):
    path = tmp_path / "a.csv"  # files put together: the header comes again among the rows
    path.write_text("page,paid\nhome,no\ncart,yes\n" * 20)
    assert not read_sample(path.read_bytes(), True, ",", None).header
    model = quietly_but(HashedClassifier(n_bits=8), path, form)
    assert model.file_format_.header
    assert set(model.classes_) == {"no", "yes", "paid"}


def test_streams_that_are_read_once_lose_nothing(tmp_path):
    rows = messages(3000)
    path = write(tmp_path / "a.csv", ["label", "message"], [(kind, text) for text, kind in rows])
    whole = quietly_but(HashedClassifier(n_bits=14), path)
    data = path.read_bytes()

    class Once(io.RawIOBase):
        def __init__(self):
            self.inner = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, view):
            return self.inner.readinto(memoryview(view)[:1000])

    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.csv").write_bytes(data))
    writer.start()
    for source in (Once(), tmp_path / "pipe.csv"):
        streamed = quietly_but(HashedClassifier(n_bits=14), source, "csv")
        assert streamed.progress_.examples == 3000
        assert streamed.file_format_.text == ("message",)
        np.testing.assert_array_equal(streamed._table_weights(), whole._table_weights())
    writer.join()


# ------------------------------------------------------------------------------------------ other encodings

LATIN = "label,größe,age\nspam,klein,3\nham,groß,4\nspam,klein,5\nham,mittel,6\n"


@pytest.mark.parametrize("options", [{}, {"columns": "rest"}, {"label": 0}, {"columns": ["größe"]}])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_columns_of_other_encodings_are_trained_and_predicted(options, encoding, tmp_path):
    path, utf8 = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_bytes(LATIN.encode(encoding))
    utf8.write_text(LATIN)
    model = quietly_but(HashedClassifier(n_bits=10), path, FileFormat(**options))
    assert "größe" in model.file_format_.columns
    mercer.save(model, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert again.file_format_ == model.file_format_
    for file in (path, utf8):
        assert again.predict_file(file).tolist() == model.predict_file(file).tolist() == ["spam", "ham"] * 2


def test_latin_1_is_said_aloud_and_only_taken_where_nothing_else_fits(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(LATIN.encode("latin-1"))
    with pytest.warns(ColumnGuessWarning, match="not UTF-8, read as Latin-1"):
        HashedClassifier(n_bits=8).fit_file(path)
    quietly(HashedClassifier(n_bits=8), path, FileFormat(encoding="latin-1"))
    path.write_text("label,größe\nspam,klein\nham,groß\n" * 1)
    quietly(HashedClassifier(n_bits=8), path)
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        HashedClassifier(n_bits=8).fit_file(path, FileFormat(encoding="klingon"))
    path.write_bytes(LATIN.encode("utf-16-le"))
    with pytest.raises(DataFileError, match="found a NUL byte: UTF-16 without its mark"):
        HashedClassifier(n_bits=8).fit_file(path)
    assert quietly(HashedClassifier(n_bits=8), path, FileFormat(encoding="utf-16-le")).file_format_.columns == (
        "größe",
        "age",
    )


def test_labels_of_any_bytes_are_learnt_from_documents_and_half_pairs_are_refused():
    texts = ["cheap pills", "long meeting"] * 5
    model = HashedClassifier(n_bits=8).fit(texts, ["sp\udce4m", "ham"] * 5)
    assert model.predict(["cheap pills"]).tolist() == ["sp\udce4m"]
    with pytest.raises(ValueError, match="half a surrogate pair"):
        HashedClassifier(n_bits=8).fit(texts, ["\ud800", "ham"] * 5)
