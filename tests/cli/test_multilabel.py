"""Label sets at the command line: train, predict and evaluate on csv and svmlight files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mercer.cli import main


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
    given = capsys.readouterr().out.splitlines()
    assert len(given) == 20
    assert np.mean([a.split(",") == b.split(";") for a, b in zip(given, truth, strict=True)]) > 0.5
    assert main(["evaluate", model, str(folder / "b.csv"), "--label", "tags", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["micro_f1"] > 0.8


def test_mistakes_are_named(files, capsys):
    folder, _ = files
    assert main(["train", "multilabel", str(folder / "a.csv"), "--labels", "none", "-m", str(folder / "m")]) != 0
    assert "one column 'none'" in capsys.readouterr().err
    assert main(["train", "multilabel", str(folder / "missing.csv"), "-m", str(folder / "m")]) != 0
