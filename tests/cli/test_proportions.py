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
    header, *labels = capsys.readouterr().out.splitlines()
    assert (header, set(labels)) == ("label", {"left", "not left"})
    assert main(["inspect", made["folder"] + "/m.mercer"]) == 0
    assert "town=Oslo" in capsys.readouterr().out


def test_a_start_is_chosen_where_random_ones_end_at_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accuracy: dict[str, list[float]] = {"random": [], "auto": []}
    model = str(tmp_path / "m.mercer")
    for seed in (1, 4):
        rng = np.random.default_rng(seed)
        y, district = rng.integers(0, 2, 400), rng.integers(0, 12, 400)
        x, sex = rng.normal(size=(400, 2)) + 2 * y[:, None], rng.integers(2, size=400)
        rows = [[f"d{district[i]}", *x[i], "mf"[sex[i]], ["not yes", "yes"][y[i]]] for i in range(400)]
        people = write(tmp_path / "people.csv", ["district", "age", "income", "sex", "vote"], rows)
        shares = [[f"d{k}", y[district == k].mean()] for k in range(12)]
        votes = write(tmp_path / "votes.csv", ["district", "yes"], shares)
        arguments = ["train", "proportions", people, "--bag", "district", "--proportions", votes, "--ignore", "vote"]
        for init, found in accuracy.items():
            assert main([*arguments, "--model", model, "--init", init, "--C", "10"]) == 0
            out = capsys.readouterr().out
            assert main(["evaluate", model, people, "--label", "vote", "--json"]) == 0
            found.append(json.loads(capsys.readouterr().out)["accuracy"])
    assert min(accuracy["random"]) < 0.6  # the margin between the sexes is the widest
    assert min(accuracy["auto"]) > 0.8
    # What the summary says is what the model has.
    settings = out.split("settings")[1].split("\n")[0].split("(chosen")[0]
    chosen = dict(part.strip().split("=") for part in settings.split(","))
    loaded = mercer.load(model)
    assert (float(chosen["C"]), float(chosen["C_instance"]), chosen["init"]) == (100.0, 10.0, loaded.init)
    assert (loaded.C, loaded.C_instance) == (100.0, 10.0)


def test_errors_are_shown_beside_those_of_constant_answers(
    made: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(made, "--method", "inverse-calibration") == 0
    captured = capsys.readouterr()
    assert captured.out.count("one share for all groups: ") == 2  # on training groups and on held-out ones
    assert captured.out.count("most frequent class: ") == 2
    assert "tells rows apart" not in captured.err
    evaluate = ["evaluate", made["folder"] + "/m.mercer", made["people"], "--label", "vote", "--bag", "district"]
    assert main([*evaluate, "--json"]) == 0
    captured = capsys.readouterr()
    figures = json.loads(captured.out)
    assert figures["error_of_shares"] < figures["error_of_one_share"] < figures["error_of_most_frequent"]
    assert figures["accuracy"] > figures["constant_accuracy"] >= 0.5
    assert "no better" not in captured.err
    assert main(evaluate) == 0
    assert "constant_accuracy" in capsys.readouterr().out


def test_models_of_noise_are_said_to_be_no_better_than_a_constant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    y, district = (rng.random(400) < 0.2).astype(int), rng.integers(0, 20, 400)
    rows = [[f"d{district[i]}", *rng.normal(size=4), ["no", "yes"][y[i]]] for i in range(400)]
    people = write(tmp_path / "people.csv", ["district", *"abcd", "vote"], rows)
    shares = [[f"d{k}", 1 - y[district == k].mean(), y[district == k].mean()] for k in range(20)]
    votes = write(tmp_path / "votes.csv", ["district", "no", "yes"], shares)
    model = str(tmp_path / "m.mercer")
    arguments = ["--bag", "district", "--proportions", votes, "--ignore", "vote", "--model", model]
    assert main(["train", "proportions", people, *arguments, "--method", "mean-map", "--quiet"]) == 0
    assert "the shares of held-out bags are met no better" in capsys.readouterr().err.replace("\n", " ")
    assert main(["evaluate", model, people, "--label", "vote"]) == 0
    assert "no better than the answer 'no' for every row" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--C", "-1"], "--C must be a positive number, got -1"),
        (["--method", "convex", "--init", "random"], "--init is for --method alternating"),
    ],
)
def test_settings_that_cannot_be_are_named(
    more: list[str], message: str, made: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(made, *more) == 2
    assert message in capsys.readouterr().err


def test_a_row_without_a_group_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = write(tmp_path / "p.csv", ["x", "district"], [[1, "a"], [2, "b"], [3, ""], [4, "a"]])
    votes = write(tmp_path / "v.csv", ["district", "yes"], [["a", 0.5], ["b", 1.0]])
    arguments = ["--bag", "district", "--proportions", votes, "--model", str(tmp_path / "m")]
    assert main(["train", "proportions", people, *arguments]) == 2
    assert "p.csv: row 3 after the header has no 'district'" in capsys.readouterr().err


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


def test_a_file_of_labels_names_both_classes_of_one_share_column(
    made: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The shares name one class; what the other one is called is in the file that the model is judged on."""
    assert train(made, "--method", "inverse-calibration", "--C", "1", "--quiet") == 0
    model = made["folder"] + "/m.mercer"
    lines = Path(made["people"]).read_text().splitlines()
    for one, other in (("left", "right"), ("LEFT", "centre"), ("yes", "no"), ("1", "0")):
        survey = tmp_path / "survey.csv"
        renamed = [",".join({"left": one, "not left": other}.get(c, c) for c in line.split(",")) for line in lines]
        survey.write_text("\n".join(renamed) + "\n")
        assert main(["evaluate", model, str(survey), "--label", "vote", "--bag", "district", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["accuracy"] > 0.85
        assert all(set(shares) == {one, other} for shares in found["groups"].values())
        assert main(["inspect", model, "--data", str(survey), "--label", "vote"]) == 0
        assert f"  {other} " in capsys.readouterr().out


def test_lines_without_a_row_have_a_line(
    made: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert train(made, "--method", "inverse-calibration", "--C", "1", "--quiet") == 0
    header, *rows = Path(made["people"]).read_text().splitlines()
    (tmp_path / "gaps.csv").write_text("\n".join([header, rows[0], "", rows[1], rows[2]]) + "\n\n")
    assert main(["predict", made["folder"] + "/m.mercer", str(tmp_path / "gaps.csv")]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [i for i, line in enumerate(lines) if not line] == [2, 5, 6]
    assert lines[0] == "label"


def test_held_out_rows_are_examined(made: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert train(made, "--method", "gradient", "--C", "1", "--quiet") == 0
    model = made["folder"] + "/m.mercer"
    assert main(["inspect", model, "--data", made["people"]]) == 2
    assert "--label" in capsys.readouterr().err
    assert main(["inspect", model, "--data", made["people"], "--label", "nothing"]) == 2
    assert main(["inspect", model, "--data", made["people"], "--label", "vote"]) == 0
    out = capsys.readouterr().out
    for part in ("held-out data", "confusion", "calibration", "most wrong", "town="):
        assert part in out
