"""``mercer train field`` and the page of a field."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.cli import main
from mercer.cli.field import FieldLearnerName
from mercer.fields import RBM, BoltzmannMachine, learners
from mercer.report.model import model_page


def run(*arguments):
    """The status of a command."""
    try:
        return main([str(argument) for argument in arguments]) or 0
    except SystemExit as end:
        return end.code or 0


def test_names_of_learners_are_those_of_the_package():
    assert {name.value for name in FieldLearnerName} == set(learners.LEARNERS)


def test_fields_are_trained_from_arrays_and_tables_and_shown(tmp_path, capsys):
    random = np.random.default_rng(0)
    np.save(tmp_path / "images.npy", random.integers(0, 256, (60, 4, 4)))
    path = tmp_path / "images.mercer"
    options = ("--hidden", "5", "--max-iter", "3", "--above", "127", "--jobs", "1")
    assert run("train", "field", tmp_path / "images.npy", "-m", path, *options) == 0
    assert "log-likelihood of a row" in capsys.readouterr().out
    assert isinstance(mercer.load(path), RBM)
    assert run("inspect", path, "--html", tmp_path / "page.html") == 0
    assert "Rows drawn from the model" in (tmp_path / "page.html").read_text()
    assert run("inspect", path) == 0
    assert "pictures" in capsys.readouterr().out

    rows = "\n".join(",".join(map(str, row)) for row in random.integers(0, 2, (40, 3)))
    (tmp_path / "votes.csv").write_text("a,b,c\n" + rows)
    options = ("--hidden", "0", "--max-iter", "3", "--learner", "exact")
    assert run("train", "field", tmp_path / "votes.csv", "-m", tmp_path / "v.mercer", *options) == 0
    model = mercer.load(tmp_path / "v.mercer")
    assert isinstance(model, BoltzmannMachine)
    assert "Couplings" in model_page(model, title="votes")


def test_likelihoods_are_measured_ten_times_where_no_exact_sum_is_quick(tmp_path, capsys, monkeypatch):
    from mercer.fields import _base

    monkeypatch.setattr(_base, "_TEMPERATURES", 20)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 2, (40, 16)))
    path = tmp_path / "m.mercer"
    given = ("train", "field", tmp_path / "rows.npy", "-m", path, "--hidden", "16", "--jobs", "1")
    assert run(*given, "--max-iter", "30") == 0
    history = mercer.load(path).history_["log_likelihood"]
    assert [at for at, value in enumerate(history, 1) if np.isfinite(value)] == list(range(3, 31, 3))
    capsys.readouterr()
    assert run("inspect", path) == 0
    shown = capsys.readouterr().out
    assert "log-likelihood by iteration" in shown
    assert "nan" not in shown
    assert run("inspect", path, "--html", tmp_path / "page.html") == 0
    assert "if measured" in (tmp_path / "page.html").read_text()
    assert run(*given, "--max-iter", "3", "--likelihood-every", "0") == 0
    assert "log_likelihood" not in mercer.load(path).history_


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("1,0\n1", "line 2"),
        ("1,0\n1,x", "line 2"),
        ("0.5,0.2\n0.1,0.9", "must contain 0 and 1"),
        ("a,b\n", "shape"),
    ],
)
def test_bad_files_are_named(content, said, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text(content)
    assert run("train", "field", tmp_path / "bad.csv", "-m", tmp_path / "m.mercer") != 0
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "m.mercer").exists()
