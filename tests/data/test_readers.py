"""What a file is, is told from its content; every command and estimator reads it in the same way."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma

import numpy as np
import pytest

from mercer.data import DataFileError, read_columns, read_records
from mercer.data.readers.roles import Column, guess_label, table_of_csv
from mercer.data.readers.sniff import are_numbers, has_header, sniff
from mercer.data.readers.source import Source, class_folders
from mercer.online import FileFormat, HashedClassifier

pa = pytest.importorskip("pyarrow")

SVM = b"-1 3:1 11:1 14:1 \n+1 3:1 6:1 # comment\n-1 4:0.5\n" * 5
VW = b"1 2.0 'tag| a:1.5 b c:-2e3\n-1 | d e\n1 |f a b |g c:0.25\n" * 5
SMS = b'ham\tgo until "jurong point, crazy\nspam\tfree entry in 2 a wkly comp\nham\tok lar joking wif u\n' * 8
FASTTEXT = b"__label__a some words here\n__label__b other words, here\n" * 5
QUESTIONS = b"".join(
    b"%s how did serfdom develop in %d\n" % ((b"DESC:manner", b"ENTY:cremat")[i % 2], i) for i in range(60)
)
CONLL = b"He PRP B-NP\nreckons VBZ B-VP\n\nthe DT B-NP\ndeficit NN I-NP\nwill MD B-VP\n\n" * 4
CSV = b"age,job,label\n39,clerk,no\n50,boss,yes\n38,clerk,no\n"
SEMICOLONS = b"age;share;label\n39;3,5;no\n50;4,25;yes\n38;1,0;no\n"
JSONL = b'{"label": "a", "text": "x"}\n{"label": "b", "text": "y"}\n'
JSON = b'[\n  {"label": "a", "text": "x"},\n  {"label": "b", "text": "y"}]'
PROSE = b"It was a dark night, and it rained.\nNobody came; nobody left.\n\nThen, in the morning, the sun rose.\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (SVM, ("svmlight", None, None)),
        (VW, ("vw", None, None)),
        (SMS, ("text", None, "\t")),
        (FASTTEXT, ("text", None, " ")),
        (QUESTIONS, ("text", None, " ")),
        (CONLL, ("columns", None, None)),
        (CONLL.replace(b" ", b"\t"), ("columns", None, None)),
        (CSV, ("csv", None, ",")),
        (CSV.replace(b",", b"\t"), ("csv", None, "\t")),
        (CSV.replace(b",", b"|"), ("csv", None, "|")),
        (SEMICOLONS, ("csv", None, ";")),
        (CSV.replace(b"\n", b"\r\n"), ("csv", None, ",")),
        (b"\xef\xbb\xbf" + CSV, ("csv", None, ",")),
        (CSV.decode().encode("utf-16"), ("csv", None, ",")),
        (JSONL, ("jsonl", None, None)),
        (JSON, ("jsonl", "json", None)),
        (b'{\n "a": [1, 2],\n "label": ["x", "y"]\n}', ("jsonl", "json", None)),
        (PROSE, ("prose", None, None)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("name", ["data", "data.bin"])
def test_the_format_is_that_of_the_content(tmp_path, content, expected, name):
    path = tmp_path / name
    for pack in (bytes, gzip.compress, bz2.compress, lzma.compress):
        path.write_bytes(pack(content))
        found = sniff(Source(path))
        assert (found.format, found.layout, found.separator) == expected


def test_the_name_decides_between_formats_that_both_fit(tmp_path):
    content = b"spam\tcheap pills\nham\tlong meeting\n"
    for name, expected in (("a.txt", "text"), ("a.tsv", "csv")):
        (tmp_path / name).write_bytes(content)
        assert sniff(Source(tmp_path / name)).format == expected
    (tmp_path / "wrong.csv").write_bytes(SVM)
    assert sniff(Source(tmp_path / "wrong.csv")).format == "svmlight"


def test_zst_is_read_and_its_damage_is_named(tmp_path):
    path = tmp_path / "a.txt.zst"
    packed = pa.compress(SMS * 50, codec="zstd", asbytes=True)
    path.write_bytes(packed)
    model = HashedClassifier(n_bits=10, max_iter=1).fit_file(path)
    assert model.progress_.examples == 24 * 50
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataFileError, match="damaged or truncated"):
        HashedClassifier(n_bits=10, max_iter=1).fit_file(path)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04" + bytes(40), "zip archive"),
        (b"%PDF-1.7\n" + b"x" * 40, "PDF"),
        (b"\x89PNG" + bytes(40), "picture"),
    ],
)
def test_what_is_no_data_is_named(tmp_path, head, what):
    path = tmp_path / "data.csv"
    path.write_bytes(head)
    with pytest.raises(DataFileError, match=what):
        HashedClassifier().fit_file(path)


ROWS = [
    {"size": float(i % 7), "job": "xyz"[i % 3], "when": f"2024-0{1 + i % 9}-11", "label": ("no", "yes")[i % 2]}
    for i in range(60)
]


def test_one_table_in_any_layout_gives_one_model(tmp_path):
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    (tmp_path / "b.json").write_text(json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "a.csv").write_text("\n".join([",".join(ROWS[0]), *(",".join(map(str, r.values())) for r in ROWS)]))
    models = {
        name: HashedClassifier(n_bits=12).fit_file(tmp_path / name)
        for name in ("a.parquet", "a.arrow", "a.json", "b.json", "a.jsonl", "a.csv")
    }
    frame = HashedClassifier(n_bits=12).fit(table, "label")
    first = models["a.csv"]
    weights = first._table_weights()
    for name, model in [*models.items(), ("frame", frame)]:
        np.testing.assert_allclose(model._table_weights(), weights, rtol=2e-3, atol=2e-3, err_msg=name)
        assert model.file_format_.dates == (("when", "ymd"),)
    for name in models:  # a model reads files in other layouts than its own
        assert first.predict_file(tmp_path / name).tolist() == first.predict_file(tmp_path / "a.csv").tolist()


def test_damaged_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing of the kind PAR1")
    with pytest.raises(DataFileError, match="no valid Parquet data"):
        HashedClassifier().fit_file(tmp_path / "a.parquet")


def test_a_folder_of_class_folders_is_a_file_of_texts(tmp_path):
    for label, word in (("pos", "good"), ("neg", "bad")):
        for i in range(12):
            path = tmp_path / "reviews" / label / f"{i}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"a {word} film\nnumber {i}")
    (tmp_path / "reviews" / "README").write_text("not a class")
    assert {label: len(files) for label, files in class_folders(str(tmp_path / "reviews")).items()} == {
        "neg": 12,
        "pos": 12,
    }
    model = HashedClassifier(n_bits=12).fit_file(tmp_path / "reviews")
    assert model.classes_.tolist() == ["neg", "pos"]
    assert model.predict(["a good film", "a bad film"]).tolist() == ["pos", "neg"]
    assert model.score_file(tmp_path / "reviews") == 1.0
    with pytest.raises(DataFileError, match="expected a folder for each class"):
        HashedClassifier().fit_file(tmp_path / "reviews" / "pos")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age,job\n39,clerk\n50,boss", True),
        ("39,clerk\n50,boss\n38,clerk", False),
        ("job,kind\nclerk,a\nboss,b\nclerk,a", True),
        ("clerk,a\nboss,b\nclerk,a", False),
        ("1,2\n3,4", False),
        ("V1,V2\ny,n\n?,y", True),
    ],
)
def test_a_header_is_told_from_data(text, expected):
    rows = [line.split(",") for line in text.split("\n")]
    assert has_header(rows, frozenset(("", "?"))) is expected


@pytest.mark.parametrize(
    ("name", "cells", "role"),
    [
        ("Id", [str(i * 7) for i in range(40)], "id"),
        ("row", [str(i) for i in range(40)], "id"),
        ("age", [str(i * 7 % 31) for i in range(40)], "number"),
        ("user", [f"u{i}x" for i in range(40)], "id"),
        ("sequence", ["acgt"[i % 4] * 30 + "tgca"[i % 3] * 30 + str(i) for i in range(40)], "text"),
        ("day", ["01.02.2024", "31.12.2023"], "date"),
        ("day", ["3/15/2024", "12/31/2023 10:30"], "date"),
        ("sign", ["+", "-"] * 10, "category"),
        ("tags", [["a"], ["b", "c"]], "list"),
    ],
)
def test_roles_of_columns(name, cells, role):
    column = Column.of(name, cells)
    assert column.role == role
    if name == "day":
        assert column.order == ("dmy" if "." in cells[0] else "mdy")


def test_without_names_the_last_column_is_the_label():
    table = table_of_csv(
        "\n".join(f"{'ab'[i % 2]},{i * 37 % 101},{'xyz'[i % 3]}" for i in range(40)).encode(), True, ",", None
    )
    assert not table.header
    assert guess_label(table, False)[0] == "2"


def test_dates_are_days_with_a_month_and_a_weekday(tmp_path):
    path = tmp_path / "a.csv"
    days = [f"2024-{m:02d}-{d:02d}" for m in (1, 7) for d in range(1, 29)] * 3
    path.write_text("day,label\n" + "".join(f"{day},{'summer' if day[5:7] == '07' else 'winter'}\n" for day in days))
    model = HashedClassifier(n_bits=12).fit_file(path)
    assert model.score_file(path) == 1.0
    (tmp_path / "b.csv").write_text("day\n2031-07-15\n2019-01-15\n")
    assert model.predict_file(tmp_path / "b.csv").tolist() == ["summer", "winter"]


def test_numbers_are_read_on_one_scale(tmp_path):
    """What makes a class lies in the middle of a column of large numbers, which no straight line finds."""
    path = tmp_path / "a.csv"
    values = np.random.default_rng(0).uniform(0, 1e6, 400)
    path.write_text("income,label\n" + "".join(f"{v:.0f},{'mid' if 3e5 < v < 7e5 else 'out'}\n" for v in values))
    model = HashedClassifier(n_bits=12).fit_file(path)
    assert model.score_file(path) > 0.9
    [(name, mean, scale, knots)] = model.file_format_.numbers
    assert (name, len(knots)) == ("income", 8)
    assert mean == pytest.approx(values.mean(), rel=1e-3)
    assert scale == pytest.approx(values.std(), rel=1e-3)


def test_odd_columns_are_mentioned(tmp_path):
    from mercer.online import ColumnGuessWarning

    path = tmp_path / "a.csv"
    path.write_text("uid,same,void,label\n" + "".join(f"u{i},x,,{'ab'[i % 2]}\n" for i in range(50)))
    with pytest.warns(ColumnGuessWarning) as caught:
        model = HashedClassifier(n_bits=8).fit_file(path)
    said = " ".join(str(w.message) for w in caught)
    assert "'uid' is left out: it looks like an id (50 different values in 50 rows); roles={'uid': 'category'}" in said
    assert "columns that hold the same value in every row: 'same'" in said
    assert "columns that hold nothing in every row: 'void'" in said
    assert model.file_format_.ignored == ("uid",)
    path.write_text("size,label\n" + "".join(f"{i % 9},{i * 7}\n" for i in range(400)))
    with pytest.warns(ColumnGuessWarning, match="the label 'label' has 400 different values in 400 rows; a HashedReg"):
        HashedClassifier(n_bits=8).fit_file(path)


def test_roles_are_believed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + "".join(f"{i % 5},word{i % 3} two three,{i % 2}\n" for i in range(40)))
    model = HashedClassifier(n_bits=8).fit_file(path, FileFormat(roles={"a": "category", "b": "text", "c": "label"}))
    form = model.file_format_
    assert (form.label, form.text, form.categorical, form.numbers) == ("c", ("b",), ("a",), ())
    for roles, message in (({"z": "text"}, "column 'z'"), ({"a": "verb"}, "a role must be one of")):
        with pytest.raises(ValueError, match=message):
            HashedClassifier(n_bits=8).fit_file(path, FileFormat(roles=roles))


def test_what_training_did_not_have_is_counted(tmp_path):
    from mercer.online import ColumnGuessWarning
    from mercer.online.files import ReadReport, labelled_blocks

    (tmp_path / "a.csv").write_text("label,town\nx,oslo\ny,rome\n" * 1 + "x,oslo\ny,rome\n" * 5)
    model = HashedClassifier(n_bits=8).fit_file(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("label,town\nx,oslo\ny,bonn\ny,lima\n")
    with pytest.warns(ColumnGuessWarning, match="2 categories that training did not have, such as town=bonn"):
        model.predict_file(tmp_path / "b.csv")
    report = ReadReport()
    list(labelled_blocks(model, tmp_path / "b.csv", FileFormat(), report=report))
    assert report.n_unseen_categories == 2
    (tmp_path / "a.svm").write_text("1 1:1 3:1\n-1 2:1\n" * 5)
    model = HashedClassifier(n_bits=8).fit_file(tmp_path / "a.svm")
    (tmp_path / "b.svm").write_text("1 1:1 9:1 12:2\n-1 2:1\n")
    with pytest.warns(ColumnGuessWarning, match="2 values in columns that training did not have are ignored"):
        assert model.predict_file(tmp_path / "b.svm").tolist() == [1, -1]


def test_predictions_have_the_lines_of_the_file(tmp_path):
    path, out = tmp_path / "a.svm", tmp_path / "out"
    path.write_text("# made by hand\n1 1:1\n\n-1 2:1\n# the end\n")
    model = HashedClassifier(n_bits=8).fit_file(path)
    assert model.predict_file(path, out) == 2
    assert out.read_text() == "# made by hand\n1\n\n-1\n# the end\n"
    path = tmp_path / "a.csv"
    path.write_text("label,a\nx,1\n\ny,2\nx,1,9\ny,2\n")
    model = HashedClassifier(n_bits=8).fit_file(path, on_error="skip")
    assert model.predict_file(path, out, on_error="skip") == 3
    assert out.read_text() == "label\nx\n\ny\n\ny\n"


def test_tables_are_read_as_columns_and_records():
    assert read_columns(io.BytesIO(b"a;b\n1; x \n2;y\n")) == {"a": ["1", "2"], "b": ["x", "y"]}
    assert read_columns(io.BytesIO(JSONL)) == {"label": ["a", "b"], "text": ["x", "y"]}
    assert read_records(io.BytesIO(CSV))[1] == {"age": "50", "job": "boss", "label": "yes"}
    assert read_records(io.BytesIO(b'[{"tags": ["a", "b"]}, {"tags": []}]')) == [{"tags": ["a", "b"]}, {"tags": []}]
    with pytest.raises(DataFileError, match="<file>:2: expected a JSON object"):
        read_records(io.BytesIO(b'{"a": 1}\n{"a": \n'))


def test_a_first_line_of_another_kind_is_malformed_not_the_header(tmp_path):
    path = tmp_path / "adult.test"
    path.write_text("|1x3 Cross validator\n" + "39, clerk, no\n50, boss, yes\n" * 10)
    with pytest.raises(DataFileError, match=r"adult\.test:1: expected 3 columns as in most lines, found 1"):
        HashedClassifier(n_bits=8).fit_file(path)
    assert HashedClassifier(n_bits=8).fit_file(path, on_error="skip").progress_.examples == 20


@pytest.mark.parametrize("number", ["12345", "12.50", ".5", "1e5", "-3.", "+.5e-10"])
def test_a_column_of_numbers_with_one_other_cell_is_told_at_once(number):
    assert are_numbers([number] * 400)
    assert not are_numbers([number] * 400 + ["16b"])  # two ways to read a number would be tried in all combinations


def test_quotes_that_do_not_end_are_part_of_texts(tmp_path):
    lines = [
        f"{('ham', 'spam')[i % 2]}\t{'call now' if i % 2 else 'see you later'} about number {i}" for i in range(40)
    ]
    path = tmp_path / "messages.tsv"
    path.write_text("\n".join(lines))
    assert sniff(Source(path)).format == "csv"  # as its name says: both fit
    long = [f"{('ham', 'spam')[i % 2]}\tcall me about the number {i} before the evening" for i in range(450)]
    long[399] = 'spam\t"call me\nbefore the evening"'  # goes on behind the lines that are looked at
    path.write_text("\n".join(long))
    assert sniff(Source(path)).format == "csv"
    lines[7] = 'spam\t"good news" about the prize number 7'
    path.write_text("\n".join(lines))
    assert sniff(Source(path)).format == "text"
    assert list(HashedClassifier().fit_file(path).classes_) == ["ham", "spam"]
