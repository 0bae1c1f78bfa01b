"""Models of proportions on the command line: training from two tables, prediction, evaluation, messages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
import mercer.proportions
from mercer.cli import main
from mercer.cli import proportions as command


def write(path: Path, header: list[str], rows: Any) -> str:
    path.write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """People whose vote follows their age and town, in 20 districts that differ in both."""
    folder, rng = tmp_path_factory.mktemp("cli"), np.random.default_rng(0)
    district = rng.integers(0, 20, 500)
    town = np.where(rng.random(500) < (district % 5) / 5 + 0.1, "Oslo", "Rome")
    age = rng.normal(40 + 2 * (district - 10), 8)
    left = age - 40 + np.where(town == "Oslo", 12, -4) > 0
    rows = [
        [f"{a:.0f}" if i % 20 else "?", t, f"D{d}", "left" if v else "not left"]
        for i, (a, t, d, v) in enumerate(zip(age, town, district, left, strict=True))
    ]
    shares = [[f"D{d}", f"{left[district == d].mean():.4f}"] for d in range(20)]
    return {
        "folder": str(folder),
        "people": write(folder / "people.csv", ["age", "town", "district", "vote"], rows),
        "votes": write(folder / "votes.csv", ["district", "left"], shares),
    }


def train(made: dict[str, str], *more: str) -> int:
    arguments = ["--bag", "district", "--proportions", made["votes"], "--model", made["folder"] + "/m.mercer"]
    return main(["train", "proportions", made["people"], *arguments, "--ignore", "vote", *more])


@pytest.mark.parametrize("method", [name.value for name in command.MethodName])
def test_every_method_learns_votes_from_the_shares_of_districts(
    method: str, made: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    if not hasattr(mercer.proportions, command._CLASSES[method]):
        pytest.fail(f"{command._CLASSES[method]} is missing")
    assert train(made, "--method", method, "--C", "1", "--quiet") == 0
    capsys.readouterr()
    assert main(["evaluate", made["folder"] + "/m.mercer", made["people"], "--label", "vote", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.85


def test_C_is_chosen_by_groups_and_pages_are_written(made: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    page = made["folder"] + "/page.html"
    assert train(made, "--method", "inverse-calibration", "--html", page) == 0
    out = capsys.readouterr().out
    assert "chosen on 5 folds of groups" in out
    assert Path(page).read_text().count("<circle") == 20
    assert main(["evaluate", made["folder"] + "/m.mercer", made["people"], "--bag", "district"]) == 0
    assert "D19" in capsys.readouterr().out
    assert main(["predict", made["folder"] + "/m.mercer", made["people"]]) == 0
    assert set(capsys.readouterr().out.split("\n")) == {"left", "not left", ""}
    assert main(["inspect", made["folder"] + "/m.mercer"]) == 0
    assert "town=Oslo" in capsys.readouterr().out


def test_gaussian_kernels_work_over_the_encoded_table(made: dict[str, str]) -> None:
    assert train(made, "--method", "inverse-calibration", "--kernel", "gaussian", "--C", "1", "--quiet") == 0
    model = mercer.load(made["folder"] + "/m.mercer")
    rows = command.read_table(made["people"], None)
    assert np.mean(model.predict(rows) == np.array(rows["vote"])) > 0.85


def test_known_labels_and_packed_files_are_read(made: dict[str, str], tmp_path: Path) -> None:
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress(Path(made["people"]).read_bytes()))
    arguments = ["--bag", "district", "--proportions", made["votes"], "--model", str(tmp_path / "m"), "--label", "vote"]
    more = ["--method", "inverse-calibration", "--C", "1", "-q"]
    assert main(["train", "proportions", str(packed), *arguments, *more]) == 0


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ("district,left\nD0,0.5\n", "no entry for bag 'D1'"),
        ("district,left\n" + "".join(f"D{d},1.5\n" for d in range(20)), "must lie in [0, 1]"),
        ("district,left\n" + "".join(f"D{d},a\n" for d in range(20)), "is no number"),
        ("district,left\nD0,0.5\nD0,0.5\n", "two rows are about the group 'D0'"),
        ("district\nD0\n", "expected a column of shares"),
        ("district,left\nD0,0.5,1\n", "votes.csv:2: expected 2 columns"),
        ("district,left\n", "no rows after the header"),
        ("", "expected a header"),
    ],
)
def test_wrong_tables_of_shares_are_named(
    votes: str, message: str, made: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "votes.csv"
    table.write_text(votes)
    arguments = ["--bag", "district", "--proportions", str(table), "--model", str(tmp_path / "m")]
    assert main(["train", "proportions", made["people"], *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_wrong_columns_and_options_are_named(made: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert train(made, "--gamma", "1") == 2
    assert "--gamma is for --kernel gaussian" in capsys.readouterr().err
    assert train(made, "--label", "party") == 2
    assert "no column 'party'" in capsys.readouterr().err
    assert train(made, "--method", "inverse-calibration", "--C", "1", "-q") == 0
    model = made["folder"] + "/m.mercer"
    assert main(["evaluate", model, made["people"]]) == 2
    assert "--label" in capsys.readouterr().err
    assert main(["evaluate", model, made["people"], "--label", "town"]) == 2
    assert "none of the classes" in capsys.readouterr().err
    assert main(["predict", model, made["votes"]]) == 2
    assert "no column 'age'" in capsys.readouterr().err


def test_groups_without_rows_are_left_out_with_a_word(
    made: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "votes.csv"
    table.write_text(Path(made["votes"]).read_text() + "D77,50%\n")
    arguments = ["--bag", "district", "--proportions", str(table), "--model", str(tmp_path / "m"), "--C", "1", "-q"]
    assert main(["train", "proportions", made["people"], *arguments, "--method", "inverse-calibration"]) == 0
    assert "'D77'" in capsys.readouterr().err


def test_columns_to_ignore_must_be_there(made: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert train(made, "--ignore", "truht") == 2
    assert "no column 'truht' to ignore" in capsys.readouterr().err
