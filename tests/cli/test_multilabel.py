"""Label sets at the command line: train, predict and evaluate on csv and svmlight files."""

from __future__ import annotations

import json
import lzma

import numpy as np
import pytest

from mercer.cli import main
from mercer.data import read_multilabel


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    sets = [";".join(n for n, on in zip(("sea", "sky", "sun"), row > 0, strict=True) if on) for row in X]
    lines = [",".join(f"{v:.4f}" for v in row) + f",{names}" for row, names in zip(X, sets, strict=True)]
    (tmp_path / "a.csv").write_text("x,y,z,tags\n" + "\n".join(lines[:100]) + "\n")
    (tmp_path / "b.csv").write_text("x,y,z,tags\n" + "\n".join(lines[100:]) + "\n")
    return tmp_path, sets[100:]


@pytest.mark.parametrize("method", ["auto", "joint", "online", "neighbors"])
def test_a_table_is_learned_predicted_and_scored(files, method, capsys):
    folder, truth = files
    model = str(folder / "m.mercer")
    assert (
        main(["train", "multilabel", str(folder / "a.csv"), "--labels", "tags", "-m", model, "--method", method]) == 0
    )
    capsys.readouterr()
    assert main(["predict", model, str(folder / "b.csv"), "--label", "tags"]) == 0
    header, *given = capsys.readouterr().out.splitlines()
    assert (header, len(given)) == ("tags", 20)
    assert np.mean([a.split(",") == b.split(";") for a, b in zip(given, truth, strict=True)]) > 0.5
    assert main(["evaluate", model, str(folder / "b.csv"), "--label", "tags", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["micro_f1"] > 0.8


def test_formats_are_known_by_their_content(files, capsys):
    folder, _ = files
    table = (folder / "a.csv").read_text()
    header, *rows = table.splitlines()
    (folder / "plain").write_text(table)
    (folder / "semicolons.csv").write_text(
        "\n".join(line.replace(";", "|").replace(",", ";") for line in table.splitlines())
    )
    (folder / "a.csv.xz").write_bytes(lzma.compress(table.encode()))
    names = header.split(",")
    records = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    listed = [{**{n: float(r[n]) for n in names[:3]}, "tags": [t for t in r["tags"].split(";") if t]} for r in records]
    (folder / "records").write_text("".join(json.dumps(record) + "\n" for record in listed))
    (folder / "light").write_text(
        "".join(
            f"{r['tags'].replace(';', ',')} " + " ".join(f"{j + 1}:{r[n]}" for j, n in enumerate(names[:3])) + "\n"
            for r in records
        )
    )
    first = read_multilabel(folder / "a.csv", "tags")
    for name in ("plain", "semicolons.csv", "a.csv.xz", "records", "light"):
        other = read_multilabel(folder / name, "tags")
        assert other.label_sets() == first.label_sets(), name
        X = other.X.toarray() if hasattr(other.X, "toarray") else other.X
        assert np.allclose(X, first.X), name


def test_lines_without_a_row_are_kept(files, capsys):
    folder, _ = files
    (folder / "a.txt").write_text("sea 1:1\nsky 2:1\nsea,sky 1:1 2:1\n" * 10)
    model = str(folder / "m.mercer")
    assert main(["train", "multilabel", str(folder / "a.txt"), "-m", model, "--method", "neighbors"]) == 0
    (folder / "b.txt").write_text("# a comment\nsea 1:1\n\n 2:1\n# end\n")
    capsys.readouterr()
    assert main(["predict", model, str(folder / "b.txt")]) == 0
    assert capsys.readouterr().out == "# a comment\nsea\n\nsky\n# end\n"


def test_held_out_label_sets_are_examined(files, capsys):
    folder, _ = files
    model = str(folder / "m.mercer")
    assert main(["train", "multilabel", str(folder / "a.csv"), "--labels", "tags", "-m", model]) == 0
    assert main(["inspect", model, "--data", str(folder / "b.csv"), "--label", "tags"]) == 0
    out = capsys.readouterr().out
    for part in ("held-out data", "micro f1", "precision", "sky"):
        assert part in out
    page = folder / "m.html"
    assert main(["inspect", model, "--data", str(folder / "b.csv"), "--label", "tags", "--html", str(page)]) == 0
    assert "Held-out data" in page.read_text()


def test_a_file_of_texts_with_label_sets_is_learned_by_a_flag(tmp_path, capsys):
    """`train classifier --multilabel`, then predict, evaluate and the page of inspect."""
    lines = ["sea,sky\tblue sky over the sea", "sea\tthe sea at night", "sky\ta clear sky", "town\train in town"] * 30
    train, test, model = (str(tmp_path / name) for name in ("a.txt", "b.txt", "m.mercer"))
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.txt").write_text("\n".join([*lines[:4], "moon\tthe moon at sea"]) + "\n")
    assert main(["train", "classifier", train, "--multilabel", "-m", model, "--n-bits", "16", "--format", "text"]) == 0
    assert "HashedLabelSets" in capsys.readouterr().out
    assert main(["predict", model, test]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == ["sea,sky", "sea", "sky", "town"]
    assert main(["evaluate", model, test, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["micro_f1"] > 0.8
    assert "'moon'" in err
    page = tmp_path / "m.html"
    assert main(["inspect", model, "--data", test, "--html", str(page)]) == 0
    assert "Worst labels" in page.read_text()
    capsys.readouterr()
    assert main(["train", "classifier", train, "--multilabel", "--loss", "hinge", "-m", model]) != 0
    assert "--loss" in capsys.readouterr().err


def test_the_page_shows_dependence_worst_labels_and_labels_together(files, capsys):
    folder, _ = files
    model, page = str(folder / "m.mercer"), folder / "m.html"
    assert main(["train", "multilabel", str(folder / "a.csv"), "--labels", "tags", "-m", model]) == 0
    assert main(["inspect", model, "--data", str(folder / "b.csv"), "--label", "tags", "--html", str(page)]) == 0
    text = page.read_text()
    titles = ("Dependence of labels", "Worst labels", "Labels together, in the file", "Labels together, as predicted")
    assert [title for title in titles if title not in text] == []


def test_columns_of_different_units_are_named(files, capsys):
    folder, _ = files
    train = ["train", "multilabel", "--labels", "tags", "-m", str(folder / "m.mercer"), str(folder / "a.csv")]
    assert main(train) == 0
    assert "spreads by" not in capsys.readouterr().err
    header, *lines = (folder / "a.csv").read_text().splitlines()
    wide = [f"{1000 * float(line.split(',')[0])},{line.partition(',')[2]}" for line in lines]
    (folder / "a.csv").write_text("\n".join([header, *wide]) + "\n")
    assert main(train) == 0
    assert "the column 'x' spreads by" in capsys.readouterr().err
    assert main([*train, "--method", "hashed"]) == 0
    assert "spreads by" not in capsys.readouterr().err


def test_mistakes_are_named(files, capsys):
    folder, _ = files
    assert main(["train", "multilabel", str(folder / "a.csv"), "--labels", "none", "-m", str(folder / "m")]) != 0
    assert "one column 'none'" in capsys.readouterr().err
    assert main(["train", "multilabel", str(folder / "missing.csv"), "-m", str(folder / "m")]) != 0
