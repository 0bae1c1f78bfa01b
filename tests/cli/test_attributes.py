"""Models of attributes on the command line: what inspect shows, how evaluate judges, what it refuses."""

import json

import numpy as np
import pytest

import mercer
from mercer.attributes import CategoryAttributes, ZeroShotClassifier
from mercer.cli import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["cat", "dog", "cow"])[np.arange(60) % 3]
    X = rng.normal(size=(60, 4)) + 3 * np.eye(4)[np.arange(60) % 3]
    mercer.save(CategoryAttributes().fit(X, y), tmp_path / "known.mercer")
    mercer.save(ZeroShotClassifier([[1, 0, 1]], novel=["fox"]).fit(X, y), tmp_path / "new.mercer")
    lines = [
        "a,b,c,d,animal",
        *[",".join([*(f"{v:.4f}" for v in row), label]) for row, label in zip(X, y, strict=True)],
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_inspect_shows_the_table_with_the_names_of_classes(files, capsys):
    assert main(["inspect", str(files / "known.mercer")]) == 0
    shown = capsys.readouterr().out
    assert "attributes of classes" in shown
    assert "cow" in shown
    assert main(["inspect", str(files / "new.mercer"), "--html", str(files / "page.html")]) == 0
    assert "Attributes of new classes" in (files / "page.html").read_text()


def test_evaluate_gives_the_accuracy(files, capsys):
    assert main(["evaluate", str(files / "known.mercer"), str(files / "rows.csv"), "--label", "animal", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 60
    assert found["accuracy"] > 0.9
    assert set(found["classes"]) == {"cat", "cow", "dog"}
    assert main(["evaluate", str(files / "known.mercer"), str(files / "rows.csv"), "--label", "animal"]) == 0
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "label", "message"),
    [
        ("known", "race", "no column 'race'"),
        ("known", None, "--label"),
        ("new", "animal", "none of the classes"),
        ("known", "a", "holds something that is no number"),
    ],
)
def test_evaluate_names_what_is_wrong(files, capsys, model, label, message):
    options = [] if label is None else ["--label", label]
    assert main(["evaluate", str(files / f"{model}.mercer"), str(files / "rows.csv"), *options]) != 0
    assert message in capsys.readouterr().err


def test_evaluate_names_missing_columns(files, capsys):
    (files / "few.csv").write_text("a,animal\n1,cat\n")
    assert main(["evaluate", str(files / "known.mercer"), str(files / "few.csv"), "--label", "animal"]) != 0
    assert "trained with 4 features" in capsys.readouterr().err
