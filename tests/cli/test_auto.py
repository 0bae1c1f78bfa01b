"""``mercer train auto`` and ``mercer tune``: a file, no options, a model and a page."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time

import numpy as np
import pytest

import mercer as package
from mercer.cli import main
from mercer.cli.tasks import SegmenterTask
from mercer.datasets import make_paragraphs
from mercer.online import HashedClassifier, HashedRegressor
from mercer.segmentation import Segmenter, join_paragraphs
from mercer.tagging import Tagger
from reference.forked import popen


@pytest.fixture
def run(capfd, tmp_path, monkeypatch):
    """Run a command in an empty directory; return status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*args):
        status = main(args)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return call


def table(n=120, seed=0):
    random = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        age, job = int(random.integers(20, 70)), random.choice(["clerk", "boss", "cook"])
        rich = (age > 40) + (job == "boss") + random.normal(0, 0.2) > 1.2
        rows.append(f"{i + 1}, {age}, {job}, {'>50K' if rich else '<=50K'}")
    return "\n".join(rows) + "\n"


def test_a_table_without_names_becomes_a_classifier(run, tmp_path):
    (tmp_path / "adult.data").write_text(table())
    status, out, err = run("train", "auto", "adult.data")
    assert status == 0, err
    assert "csv, no header; label '3' (2 classes:" in err
    assert "numbers '1'; categories '2'; left out '0'" in err
    assert "a classifier, since adult.data is a file of examples: its label '3' has 2 classes" in err
    for name in (
        "accuracy, held out",
        "most frequent class, held out",
        "mercer train classifier adult.data --model adult.mercer",
    ):
        assert name in out
    model = package.load("adult.mercer")
    assert isinstance(model, HashedClassifier)
    assert model.progress_.examples == 96
    page = (tmp_path / "adult.html").read_text()
    assert "Evaluated on held-out rows" in page
    assert "Confusion" in page
    assert "2=boss" in page


def test_the_command_for_all_rows_can_be_typed_as_it_is_printed(run, tmp_path):
    rows = [f"{colour},{n},{colour[0]}{n % 2}" for n in range(30) for colour in ("red", "blue")]
    (tmp_path / "some colours.csv").write_text("\n".join(["colour,count,kind", *rows]) + "\n")
    status, out, err = run("train", "auto", "some colours.csv", "--label", "kind", "--roles", "count=category")
    assert status == 0, err
    line = next(line for line in out.splitlines() if "on all rows" in line).split("on all rows")[1]
    words = shlex.split(line)
    assert words[0] == "mercer"
    assert run(*words[1:])[0] == 0
    whole = package.load(words[-1])
    assert whole.classes_.tolist() == ["b0", "b1", "r0", "r1"]
    assert whole.progress_.examples == 60


def test_numbers_become_a_regressor_and_sentences_a_tagger(run, tmp_path):
    random = np.random.default_rng(0)
    x = random.uniform(0, 10, 80)
    (tmp_path / "prices.csv").write_text("size,y\n" + "".join(f"{v:.3f},{3 * v + 1:.3f}\n" for v in x))
    status, _, err = run("train", "auto", "prices.csv", "--model", "p.mercer")
    assert (status, isinstance(package.load("p.mercer"), HashedRegressor)) == (0, True), err
    assert "a number with" in err
    words = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V"}
    sentences = [list(random.choice(list(words), 4)) for _ in range(40)]
    (tmp_path / "train").write_text("\n\n".join("\n".join(f"{w} {words[w]}" for w in s) for s in sentences) + "\n")
    status, out, err = run("train", "auto", "train", "-q")
    assert (status, out) == (0, ""), err
    assert isinstance(package.load("train.mercer"), Tagger)


def test_a_tagger_of_spans_names_the_segmenter(run, tmp_path):
    sentences = ["the B-NP\ndog I-NP\nran O\n", "cats B-NP\nsleep O\n"] * 10
    (tmp_path / "spans").write_text("\n".join(sentences))
    status, out, err = run("train", "auto", "spans")
    assert (status, isinstance(package.load("spans.mercer"), Tagger)) == (0, True), err
    assert "mercer train segmenter spans --model spans.mercer" in " ".join((out + err).split())
    (tmp_path / "tags").write_text("\n".join(sentences).replace("B-NP", "N").replace("I-NP", "D").replace("O", "V"))
    assert "segmenter" not in "".join(run("train", "auto", "tags")[1:])


@pytest.mark.parametrize("command", [("train", "auto"), ("tune",)], ids=" ".join)
@pytest.mark.parametrize("kind", ["csv", "svmlight"])
def test_malformed_lines_are_named_and_can_be_skipped(run, tmp_path, command, kind):
    good = table(40).splitlines() if kind == "csv" else ["1 1:0.5 2:1", "-1 1:-0.5 3:1"] * 20
    bad = "1, 2" if kind == "csv" else "1 1:x"
    (tmp_path / "a.data").write_text("\n".join([*good[:20], bad, *good[20:]]) + "\n")
    arguments = [*command, "a.data", *(["--folds", "2"] if command == ("tune",) else [])]
    status, _, err = run(*arguments)
    assert status == 2
    assert "a.data:21: " in err
    assert "hint: --on-error skip skips malformed lines" in err
    assert not (tmp_path / "a.mercer").exists()
    status, _, err = run(*arguments, "--on-error", "skip")
    assert status == 0, err
    assert "skipped 1 malformed line" in err
    assert (tmp_path / "a.mercer").exists()


def test_pages_show_the_examples_that_are_most_wrong(run, tmp_path):
    rows = table(200, seed=3).splitlines()
    odd = [row.replace("boss", "queer").replace(">50K", "<=50K") if i % 7 == 0 else row for i, row in enumerate(rows)]
    (tmp_path / "adult.data").write_text("\n".join(odd) + "\n\n")
    assert run("train", "auto", "adult.data")[0] == 0
    page = (tmp_path / "adult.html").read_text()
    assert "Most wrong" in page
    listed = page[page.index("Most wrong") :]
    assert any(
        row.replace(",", ", ").replace(",  ", ", ").replace(">", "&gt;").replace("<", "&lt;") in listed for row in odd
    )
    assert page.count("most frequent class") == 1  # said once


def spans(n=60, seed=0):
    random = np.random.default_rng(seed)
    names, others = ["Rome", "Oslo", "Nile"], ["the", "saw", "of", "in"]
    out = []
    for _ in range(n):
        tokens = []
        while len(tokens) < 8:
            name = random.random() < 0.3
            tokens += (
                [(str(random.choice(names)), "B-LOC"), (str(random.choice(names)), "I-LOC"), ("and", "O")]
                if name
                else [(str(random.choice(others)), "O")]
            )
        out.append("\n".join(f"{word} {tag}" for word, tag in tokens))
    return "\n\n".join(out) + "\n"


def test_segmenters_of_column_files_are_tuned_and_keep_lines(run, tmp_path):
    (tmp_path / "train").write_text(spans())
    for wrong in (("segmentr", "train"), ("segmenter", "train", "--kind", "tagger"), ("tagger", "segmenter", "train")):
        status, _, err = run("tune", *wrong)
        assert status == 2
        assert "one file is tuned" in err
    status, out, err = run("tune", "segmenter", "train", "--folds", "2", "--model", "m.mercer")
    assert status == 0, err
    assert "span F1 of the defaults" in out
    assert isinstance(package.load("m.mercer"), Segmenter)
    text = "# a comment of several words\nin\nRome\nOslo\n\n\n# another one, of seven words\nthe\n"
    (tmp_path / "new").write_text(text)
    status, out, err = run("predict", "m.mercer", "new")
    assert status == 0, err
    expected = text.replace("in\n", "in O\n").replace("Rome\n", "Rome B-LOC\n").replace("Oslo\n", "Oslo I-LOC\n")
    assert out == expected.replace("the\n", "the O\n")
    status, out, err = run("inspect", "m.mercer", "--data", "train")
    assert status == 0, err
    assert "held-out data" in out


def test_held_out_texts_of_a_segmenter_are_examined(run, tmp_path):
    task = make_paragraphs(6, topic_share=0.6, cue_share=0.8)
    for i, (document, starts) in enumerate(zip(task.documents, task.starts, strict=True)):
        (tmp_path / f"d{i}.txt").write_text(join_paragraphs(document, starts))
    files = [f"d{i}.txt" for i in range(5)]
    assert run("train", "segmenter", *files, "--model", "m", "--max-iter", "20", "-q")[0] == 0
    status, out, err = run("inspect", "m", "--data", "d5.txt")
    assert status == 0, err
    for part in ("WindowDiff", "starts", "goes on"):
        assert part in out


def test_advice_names_options(run, tmp_path):
    (tmp_path / "train").write_text("the D\ndog N\n\na D\ncat N\n\n" * 4)
    _, _, err = run("train", "tagger", "train", "--model", "m", "-q", "--max-iter", "1")
    assert "raise --max-iter or --tol, or lower --C" in err
    status, _, err = run("train", "tagger", "train", "--model", "m", "--C", "-1")
    assert status == 2
    assert "error: --C must be" in err


def test_a_file_that_nothing_suits_says_so(run, tmp_path):
    (tmp_path / "a.txt").write_text("one line of text, nothing else\n")
    status, _, err = run("train", "auto", "a.txt")
    assert status == 2
    assert "a.txt:1: expected a label, a tab and a text" in err
    assert run("train", "auto", "nowhere")[0] == 2


def test_settings_are_tried_on_folds_and_the_best_is_trained(run, tmp_path):
    (tmp_path / "adult.data").write_text(table())
    status, out, err = run("tune", "adult.data", "--folds", "2", "--model", "m.mercer")
    assert status == 0, err
    assert " 1 of " in err
    assert "the defaults" in err
    assert "accuracy of the defaults" in out
    assert "Settings" in (tmp_path / "m.html").read_text()
    assert package.load("m.mercer").progress_.examples == 120


def test_flags_take_no_value_and_hints_name_options(run, tmp_path):
    status, out, _ = run("--help")
    assert status == 0
    assert "<bool>" not in next(line for line in out.splitlines() if "--version" in line)
    (tmp_path / "a.csv").write_text("id,size\n" + "".join(f"{i},{i / 2}\n" for i in range(30)))
    _, _, err = run("train", "classifier", "a.csv", "--model", "m")
    assert "hint: --label names the label" in err
    status, _, err = run("predict", "a.csv", "a.csv")
    assert status == 2
    assert "this is not a model, it looks like a table" in err


def test_predictions_of_taggers_keep_blank_lines_and_comments(run, tmp_path):
    (tmp_path / "train").write_text("the D\ndog N\n\na D\ncat N\n\n" * 4)
    assert run("train", "tagger", "train", "--model", "m", "-q")[0] == 0
    text = "# a comment here\nthe\ndog\n\n\n# another one here\na\n"
    (tmp_path / "new").write_text(text)
    status, out, err = run("predict", "m", "new")
    assert status == 0, err
    assert out == "# a comment here\nthe D\ndog N\n\n\n# another one here\na D\n"


@pytest.mark.slow
def test_killed_predictions_leave_nothing_that_piles_up(tmp_path):
    (tmp_path / "a.txt").write_text("x\tone\ny\ttwo\n" * 20)
    package.save(HashedClassifier(n_bits=8).fit_file(tmp_path / "a.txt"), tmp_path / "m")
    code = "import sys; from mercer.cli import main; main(sys.argv[1:])"
    for _ in range(2):
        arguments = ("predict", str(tmp_path / "m"), "-", "--output", str(tmp_path / "out"))
        process = popen(code, *arguments, stdin=subprocess.PIPE)
        process.stdin.write(b"one\n" * 40_000)
        process.stdin.flush()
        for _ in range(1000):
            if any(name.endswith(".tmp") for name in os.listdir(tmp_path)):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert len(left) <= 1
    package.load(tmp_path / "m").predict_file(tmp_path / "a.txt", tmp_path / "out")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_paragraph_starts_are_judged_by_those_that_are_both_true_and_predicted():
    task = SegmenterTask.__new__(SegmenterTask)
    task.X, task.y = [["a", "b", "c", "d", "e"]], [[0, 2, 4]]

    class Model:
        def predict(self, X):
            return [[0, 2, 3]]

    verdict = task.judge(Model(), np.array([0]))
    assert verdict.figures[0] == ("F1 of paragraph starts", "0.5000")  # one of two found, one of two right
    assert verdict.figures[1][1] == "0.6667"


# ---------------------------------------------------------------------------------------------------- tune, other kinds


def test_every_kind_that_train_knows_can_be_tuned():
    from mercer.cli.train import app
    from mercer.cli.tune import KindName

    trained = {command.name for command in app.registered_commands} - {"auto"}
    assert trained == {kind.value for kind in KindName}


def groups_and_shares(folder):
    random = np.random.default_rng(0)
    rows, shares = ["district,age,job"], ["district,yes"]
    for d in range(9):
        yes = random.random(10) < random.random()
        rows += [f"d{d},{30 + 20 * v + random.normal(0, 6):.0f},{'boss' if v else 'cook'}" for v in yes]
        shares.append(f"d{d},{yes.mean()}")
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    (folder / "votes.csv").write_text("\n".join(shares) + "\n")


def test_label_sets_groups_and_fields_are_tuned(run, tmp_path, monkeypatch):
    from mercer.cli import searched

    random = np.random.default_rng(0)
    for kind, some in (
        (searched.LabelSetTask, [{}, {"method": "neighbors", "n_neighbors": 5}]),
        (searched.ShareTask, [{}, {"method": "mean-map", "alpha": 1.0}]),
        (searched.FieldTask, [{"max_iter": 3}, {"max_iter": 3, "weight_decay": 1e-2}]),
    ):
        task = kind.__new__(kind)
        task.usual, task.hidden = "views", 256
        assert kind.candidates(task)[0] == {}
        assert len({str(settings) for settings in kind.candidates(task)}) >= 5
        monkeypatch.setattr(kind, "candidates", lambda self, some=some: some)
    X = random.normal(size=(40, 2))
    cells = [f"{a:.3f},{b:.3f},{';'.join(['sea'][: a > 0] + ['sky'][: b > 0])}" for a, b in X.tolist()]
    (tmp_path / "photos.csv").write_text("\n".join(["a,b,tags", *cells]) + "\n")
    groups_and_shares(tmp_path)
    bits = (random.random((40, 1)) < 0.5) ^ (random.random((40, 4)) < 0.1)
    np.save(tmp_path / "bits.npy", bits.astype(np.uint8))
    for arguments, name, score in (
        (["photos.csv", "--labels", "tags"], "multilabel", "micro-F1"),
        (["people.csv", "--bag", "district", "--proportions", "votes.csv"], "proportions", "1 − error of shares"),
        (["bits.npy", "--kind", "field", "--hidden", "3"], "fields", "log-likelihood"),
    ):
        status, out, err = run("tune", *arguments, "--folds", "2", "--model", "m.mercer")
        assert status == 0, err
        assert f"{score} of the defaults" in out
        assert "warning" not in err
        assert type(package.load("m.mercer")).__module__.startswith(f"mercer.{name}")
        assert "Settings" in (tmp_path / "m.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bag", "district"], "--proportions is missing"),
        (["--labels", "tags", "--kind", "tagger"], "--labels is for --kind multilabel, not tagger"),
        (["--bag", "town", "--proportions", "votes.csv"], "no column 'town'"),
        (["--kind", "proportions"], "--bag is missing"),
        (["--kind", "field"], "expected numbers, found"),
        (["--kind", "multilabel"], "people.csv"),
    ],
)
def test_options_of_other_kinds_are_checked(run, tmp_path, arguments, message):
    groups_and_shares(tmp_path)
    status, _, err = run("tune", "people.csv", *arguments)
    assert status == 2
    assert message in err


# ------------------------------------------------------------------------------------------------------------ odd files


def test_bytes_that_are_no_text_are_named_so(run, tmp_path):
    (tmp_path / "image").write_bytes(bytes(range(256)) * 20)
    status, _, err = run("train", "auto", "image")
    assert status == 2
    assert "expected text, found other bytes" in err
    assert "note" not in err


def test_one_class_is_nothing_to_learn(run, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},a\n" for i in range(40)))
    status, _, err = run("train", "auto", "a.csv")
    assert status == 2
    assert "all 40 rows have the label 'a': there is nothing to learn" in err
    assert "(1 class: a 100 %)" in err


def test_a_field_that_the_first_record_lacks_is_not_the_last_column(run, tmp_path):
    random = np.random.default_rng(0)
    records = []
    for i, age in enumerate(random.integers(20, 70, 60).tolist()):
        city = {} if i % 5 == 0 else {"city": "xy"[i % 2]}
        records.append(json.dumps({"age": age, **city, "paid": "yes" if age > 40 else "no"}))
    (tmp_path / "people.jsonl").write_text("\n".join(records) + "\n")
    status, _, err = run("train", "auto", "people.jsonl")
    assert status == 0, err
    assert "the column 'paid' is taken as the label (the last column" in err
    status, _, err = run("train", "classifier", "people.jsonl", "--label", "city", "--model", "m.mercer")
    assert status == 2
    assert "hint: --label names the label, --columns the features, and --roles says what fields are" in err


def test_first_words_that_are_taken_as_labels_are_said_aloud(run, tmp_path):
    lines = [f"{('good', 'bad')[i % 2]} film number {i}" for i in range(60)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    _, _, err = run("train", "auto", "a.txt")
    assert "warning: a.txt: the first word of each line is taken as its label (2 of them: good, bad)" in err
    (tmp_path / "b.txt").write_text("\n".join(f"__label__{line}" for line in lines) + "\n")
    _, _, err = run("train", "auto", "b.txt")
    assert "first word" not in err
