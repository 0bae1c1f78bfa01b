"""``mercer convert`` and training from what it wrote."""

from __future__ import annotations

import gzip

import numpy as np

import mercer
from mercer.cli import main
from mercer.data import Partitions, Store
from mercer.tagging import Tagger

COLUMNS = "the DT B-NP\ndog NN I-NP\nbarks VB O\n\na DT B-NP\ncat NN I-NP\n\n" * 4


def test_column_files_become_stores_and_models(tmp_path, capsys):
    file, folder, model = tmp_path / "t.conll", tmp_path / "t.store", tmp_path / "m.mercer"
    file.write_text(COLUMNS)
    assert main(["convert", str(file), str(folder), "--size", "3"]) == 0
    assert "sequences" in capsys.readouterr().out
    store = Store(folder)
    assert [piece["examples"] for piece in store.pieces] == [3, 3, 2]
    assert main(["train", "tagger", "--store", str(folder), "--model", str(model), "-q"]) == 0
    sentences = [[line.split() for line in one.split("\n")] for one in COLUMNS.strip().split("\n\n")]
    X, y = [[row[:2] for row in one] for one in sentences], [[row[2] for row in one] for one in sentences]
    parts = [(X[a:b], y[a:b]) for a, b in ((0, 3), (3, 6), (6, 8))]
    expected = Tagger(template=store.template, random_state=0).fit(Partitions(parts))
    found = mercer.load(model)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert list(found.classes_) == list(expected.classes_) == ["B-NP", "I-NP", "O"]  # the last column, no other


def test_csv_files_become_rows_or_texts(tmp_path):
    with gzip.open(tmp_path / "d.csv.gz", "wt") as file:
        file.write("a,b,label\n1,2,x\n3,4,y\n")
    assert main(["convert", str(tmp_path / "d.csv.gz"), str(tmp_path / "d.store"), "-q"]) == 0
    part = Store(tmp_path / "d.store")[0]
    assert (part.X.tolist(), part.y.tolist()) == ([[1.0, 2.0], [3.0, 4.0]], ["x", "y"])
    (tmp_path / "e.csv").write_text("class,text\nx,hello there\ny,bye\n")
    assert main(["convert", str(tmp_path / "e.csv"), str(tmp_path / "e.store"), "-q"]) == 0
    assert list(Store(tmp_path / "e.store")[0].X) == ["hello there", "bye"]


def test_mistakes_are_named(tmp_path, capsys):
    file, folder = tmp_path / "t.conll", str(tmp_path / "t.store")
    file.write_text(COLUMNS)
    (tmp_path / "bad.csv").write_text("a,b,label\n1,2,x\n3,x,y\n")
    (tmp_path / "mixed.csv").write_text("a,b,label\nu,v,x\n")
    for call, message in (
        (["train", "tagger", "--model", "m"], "give a FILE"),
        (["train", "tagger", "--store", folder, "--model", "m"], "there is no store here"),
        (["train", "tagger", str(file), "--cluster", "tcp://127.0.0.1:1", "--model", "m"], "--cluster needs --store"),
        (["convert", str(tmp_path / "bad.csv"), str(tmp_path / "b.store")], "bad.csv:3: expected numbers"),
        (["convert", str(tmp_path / "mixed.csv"), str(tmp_path / "x.store")], "not numbers"),
        (["convert", str(tmp_path / "bad.csv"), str(tmp_path / "y.store"), "--label", "z"], "no column 'z'"),
    ):
        assert main(call) == 2
        assert message in capsys.readouterr().err
