"""Classifiers and regressors on the command line: training, prediction, evaluation, messages."""

from __future__ import annotations

import gzip
import io
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, precision_recall_fscore_support

import mercer as package
from mercer._state import container
from mercer.cli import classifier as command
from mercer.cli import main, options
from mercer.data.readers.sniff import FORMATS, LAYOUTS
from mercer.maps import TextHasher
from mercer.online import HashedClassifier, HashedRegressor
from reference.forked import popen


def mail(n: int, seed: int = 0) -> list[tuple[str, str]]:
    rng = np.random.default_rng(seed)
    common = ["meeting", "noon", "today", "the", "report", "please"]
    own = {"ham": ["agenda", "minutes"], "spam": ["pills", "cheap", "winner"]}
    rows = []
    for _ in range(n):
        y = str(rng.choice(["ham", "spam"]))
        rows.append((y, " ".join(rng.choice(common + own[y], size=6))))
    return rows


def write(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{y}\t{x}\n" for y, x in rows))
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cli")
    out = {
        "folder": str(folder),
        "train": write(folder / "train.txt", mail(300)),
        "test": write(folder / "test.txt", mail(80, seed=1)),
        "model": str(folder / "spam.mercer"),
        "prices": str(folder / "prices.csv"),
        "regressor": str(folder / "prices.mercer"),
    }
    rows = [f"{3 * (i % 5) + (i % 2)},{i % 5},{'ab'[i % 2]}" for i in range(200)]
    (folder / "prices.csv").write_text("price,rooms,town\n" + "\n".join(rows) + "\n")
    assert main(["train", "classifier", out["train"], "--model", out["model"], "--n-bits", "14", "--quiet"]) == 0
    arguments = ["--model", out["regressor"], "--label", "price", "--n-bits", "10", "--max-iter", "20", "-q"]
    assert main(["train", "regressor", out["prices"], *arguments]) == 0
    return out


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def mercer(capfd: pytest.CaptureFixture[str]):
    """Run a command in this process; return status and what it printed."""

    def run(*args: str) -> Ran:
        status = main(args)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(status, out, err)

    return run


def test_training_prints_what_was_learnt(mercer, made, tmp_path):
    model = str(tmp_path / "m.mercer")
    ran = mercer("train", "classifier", made["train"], "--model", model, "--dev", made["test"], "--ngrams", "1-2")
    assert (ran.status, ran.err) == (0, "")
    for name in ("examples           ", "classes", "progressive loss", "accuracy on ", "weights", "seconds", "MB)"):
        assert name in ran.out
    loaded = package.load(model)
    assert isinstance(loaded.hasher, TextHasher)
    assert loaded.hasher.ngrams == (1, 2)
    assert loaded.n_jobs is None
    assert f"{loaded.score_file(made['test']):.4f}" in ran.out


def test_the_command_trains_the_model_that_python_trains(made):
    model = HashedClassifier(n_bits=14).fit_file(made["train"])
    loaded = package.load(made["model"])
    np.testing.assert_array_equal(loaded.model_.state()["table"], model.model_.state()["table"])


def test_options_about_features_are_those_of_the_estimators(mercer, made, tmp_path):
    model = str(tmp_path / "m.mercer")
    options = ["--counts", "linear", "--analyzer", "char_wb", "--ngrams", "2-3", "--keep-case", "--n-bits", "14", "-q"]
    assert mercer("train", "classifier", made["train"], "--model", model, *options).status == 0
    hasher = TextHasher(analyzer="char_wb", ngrams=(2, 3), lowercase=False)
    same = HashedClassifier(n_bits=14, counts="linear", hasher=hasher).fit_file(made["train"])
    np.testing.assert_array_equal(package.load(model).model_.state()["table"], same.model_.state()["table"])
    other = HashedClassifier(n_bits=14, hasher=hasher).fit_file(made["train"])
    assert not np.array_equal(other.model_.state()["table"], same.model_.state()["table"])


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.vw.gz", gzip.compress(b"ham | a\nspam | pills\n" * 20), ["--solver=ftrl", "--penalty=l1", "--alpha=.1"]),
        ("a.svm", b"1 1:1 3:1\n-1 2:1\n" * 20, ["--loss", "hinge"]),
        ("a.csv", b"id,y,title\n1,x,one\n2,z,three\n", ["--label", "y", "--text", "title", "--text", "id"]),
        ("a.tsv", b"y\tsize\ttown\nx\t1\tparis\nz\t2\trome\n", ["--categorical", "size", "--max-iter", "2"]),
        ("a.jsonl", b'{"y": 1, "a": {"b": "one"}}\n{"y": 2, "a": {"b": "two"}}\n', ["--label", "y", "--text", "a.b"]),
        ("a.txt", b"one two;x\nthree;y\n", ["--label", "last", "--separator", ";", "--analyzer", "char_wb"]),
        ("a.dat", b"x | a\ny | b\nz | c\n" * 5, ["--format", "vw", "--label-hashing", "two-stage", "--limit", "6"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_every_format_is_trained_predicted_and_evaluated(mercer, tmp_path, name, content, options):
    path, model = tmp_path / name, str(tmp_path / "m.mercer")
    path.write_bytes(content)
    assert mercer("train", "classifier", str(path), "--model", model, "--n-bits", "12", "-q", *options).status == 0
    ran = mercer("predict", model, str(path))
    assert ran.status == 0, ran.err
    header = ["y"] if name in ("a.csv", "a.tsv") else []
    assert ran.out.splitlines() == header + [str(y) for y in package.load(model).predict_file(path)]
    ran = mercer("evaluate", model, str(path), "--json")
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["accuracy"] == package.load(model).score_file(path)


def test_evaluation_is_that_of_scikit_learn(mercer, made):
    found = json.loads(mercer("evaluate", made["model"], made["test"], "--json").out)
    model = package.load(made["model"])
    truth, texts = zip(*mail(80, seed=1), strict=True)
    predicted, p = model.predict(list(texts)), model.predict_proba(list(texts))
    assert found["examples"] == 80
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert found["log_loss"] == pytest.approx(log_loss(truth, p, labels=model.classes_), rel=1e-6)
    assert found["confusion"] == confusion_matrix(truth, predicted).tolist()
    expected = precision_recall_fscore_support(truth, predicted, zero_division=0)
    for i, name in enumerate(("precision", "recall", "f1", "support")):
        assert [found["classes"][c][name] for c in ("ham", "spam")] == pytest.approx(expected[i])
    shown = mercer("evaluate", made["model"], made["test"]).out
    assert f"accuracy         {found['accuracy']:.4f}" in shown
    assert "true label on the left" in shown


def test_labels_never_seen_are_counted(mercer, made, tmp_path):
    path = write(tmp_path / "a.txt", [("ham", "agenda"), ("eggs", "minutes")])
    found = json.loads(mercer("evaluate", made["model"], path, "--json").out)
    assert (found["unknown_labels"], found["examples"]) == (1, 2)
    assert found["classes"]["eggs"]["recall"] == 0
    assert "unknown labels" in mercer("evaluate", made["model"], path).out


def test_predictions_with_probabilities_and_the_best_few(mercer, made, tmp_path, monkeypatch):
    texts = ["agenda minutes", "cheap pills"]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    model = package.load(made["model"])
    p = model.predict_proba(texts)
    ran = mercer("predict", made["model"], str(tmp_path / "a.txt"), "--proba")
    assert ran.out.splitlines() == [f"ham\t{p[0, 0]:.6f}", f"spam\t{p[1, 1]:.6f}"]
    ran = mercer("predict", made["model"], str(tmp_path / "a.txt"), "--proba", "--top", "5")
    assert ran.out.splitlines()[1] == f"spam\t{p[1, 1]:.6f}\tham\t{p[1, 0]:.6f}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"cheap pills\n")))
    assert mercer("predict", made["model"], "-").out == "spam\n"
    out = tmp_path / "out.txt"
    assert mercer("predict", made["model"], str(tmp_path / "a.txt"), "-o", str(out)).out == ""
    assert out.read_text() == "ham\nspam\n"


def test_a_regressor_is_evaluated_by_its_errors(mercer, made):
    found = json.loads(mercer("evaluate", made["regressor"], made["prices"], "--json").out)
    model = package.load(made["regressor"])
    truth = np.array([3 * (i % 5) + (i % 2) for i in range(200)])
    predicted = model.predict_file(made["prices"])
    assert found["mean_absolute_error"] == pytest.approx(np.abs(truth - predicted).mean())
    assert found["r2"] == pytest.approx(1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    lines = mercer("predict", made["regressor"], made["prices"]).out.splitlines()
    assert lines == ["price", *(repr(float(x)) for x in predicted)]
    assert "r2" in mercer("evaluate", made["regressor"], made["prices"]).out


def test_inspect_shows_a_hashed_model(mercer, made):
    out = mercer("inspect", made["model"]).out
    for piece in ("HashedClassifier", "n_bits", "2: ham, spam", "progressive loss", "trained on", "0.1 MB"):
        assert piece in out
    assert "HashedRegressor" in mercer("inspect", made["regressor"]).out


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [
        (2, {}),
        (2, {"solver": "ftrl", "penalty": "l1", "alpha": 0.1}),
        (2, {"solver": "sgd"}),
        (5, {}),
        (5, {"solver": "ftrl"}),
        (5, {"label_hashing": "separate"}),
        (5, {"solver": "sgd", "label_hashing": "two-stage"}),
    ],
)
def test_inspect_shows_how_large_the_weights_are(mercer, tmp_path, n_classes, settings):
    """With so many bits no two columns share a weight, and coef_ has them all."""
    X = np.eye(20)
    model = HashedClassifier(n_bits=14, fit_intercept=False, **settings).fit(X, np.arange(20) % n_classes)
    weights = np.abs(model.coef_[model.coef_ != 0])
    package.save(model, tmp_path / "m.mercer")
    out = mercer("inspect", str(tmp_path / "m.mercer")).out
    assert f"{len(weights):,} of " in out
    assert f"{weights.max():.4f} (in absolute value" in out
    assert f"sum of sizes {weights.sum():,.4f}, length {np.sqrt(weights @ weights):,.4f}" in out


def test_malformed_lines_are_named_or_skipped(mercer, made, tmp_path):
    path = tmp_path / "broken.jsonl"
    lines = [json.dumps({"label": y, "text": x}) for y, x in mail(20)]
    path.write_text("\n".join([*lines[:12], '{"label": "ham", "text": agenda}', *lines[12:]]))
    model = str(tmp_path / "m.mercer")
    ran = mercer("train", "classifier", str(path), "--model", model, "--n-bits", "10")
    assert ran.status == 2
    assert f"error: {path}:13: column 26: expected a value, found 'a'" in ran.err
    assert "hint: --on-error skip skips" in ran.err
    assert not Path(model).exists()
    ran = mercer("train", "classifier", str(path), "--model", model, "--n-bits", "10", "--on-error", "skip")
    assert ran.status == 0
    assert "skipped 1 malformed line; the first: line 13: column 26" in ran.err
    ran = mercer("evaluate", model, str(path), "--on-error", "skip")
    assert ran.status == 0
    assert "skipped lines" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "classifier", "nowhere.txt", "--model", "m.mercer"], "nowhere.txt: no such file"),
        (["train", "classifier", "TRAIN", "--model", "m.mercer", "--dev", "nowhere.txt"], "nowhere.txt: no such file"),
        (["train", "classifier", "TRAIN", "--model", "m.mercer", "--ngrams", "2-1"], "--ngrams must be"),
        (["train", "classifier", "TRAIN", "--model", "m.mercer", "--n-bits", "50"], "--n-bits must be"),
        (["train", "classifier", "TRAIN", "--model", "m.mercer", "--columns", "a"], "columns means nothing"),
        (["train", "classifier", "PRICES", "--model", "m.mercer", "--label", "cost"], "the columns are: price, rooms"),
        (["train", "classifier", "TRAIN", "--model", "nowhere/m.mercer"], "no such directory"),
        (["predict", "MODEL", "TRAIN", "--marginals"], "--marginals and --k-best are for taggers"),
        (["predict", "REGRESSOR", "PRICES", "--proba"], "this model is a regressor"),
        (["predict", "MODEL", "PRICES", "--format", "svmlight"], "this model has learnt from documents"),
    ],
)  # fmt: skip
def test_mistakes_are_named(mercer, made, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    names = {"TRAIN": made["train"], "MODEL": made["model"], "PRICES": made["prices"], "REGRESSOR": made["regressor"]}
    ran = mercer(*(names.get(a, a) for a in arguments))
    assert ran.status == 2
    assert message in ran.err
    assert not list(tmp_path.iterdir())


def test_choices_are_those_of_the_estimators():
    from mercer.online.classifier import LABEL_HASHINGS, LOSSES
    from mercer.online.regressor import LOSSES as REGRESSOR_LOSSES

    assert [str(f) for f in options.FormatName] == [*FORMATS, *LAYOUTS]
    assert {str(x) for x in command.ClassifierLoss} == set(LOSSES)
    assert {str(x) for x in command.RegressorLoss} == set(REGRESSOR_LOSSES)
    assert {str(x) for x in command.LabelHashingName} == set(LABEL_HASHINGS)
    for name in command.CountsName:
        HashedRegressor(counts=str(name))._check_parameters()
    for name in command.SolverName:
        HashedRegressor(solver=str(name))._check_parameters()


def test_guesses_about_columns_are_said_before_training_and_kept(mercer, tmp_path):
    rows = [(("spam", "ham")[i % 2], f"word{i} {'cheap pills' if i % 2 == 0 else 'long meeting'} word{i + 1}")
            for i in range(60)]  # fmt: skip
    file, model = tmp_path / "mail.csv", str(tmp_path / "m.mercer")
    file.write_text("kind, message\n" + "".join(f"{kind}, {text}\n" for kind, text in rows))
    ran = mercer("train", "classifier", str(file), "--model", model)
    assert ran.status == 0
    assert "warning: " in ran.err
    assert "the column 'kind' is taken as the label (the first column, 2 different values)" in ran.err
    assert "the column 'message' is read as text (60 different values in 60 rows, 4 words each)" in ran.err
    assert "note: " in ran.err
    assert "csv; label 'kind' (2 classes: spam 50 %, ham 50 %); text 'message'" in ran.err
    assert mercer("predict", model, str(file)).out.split() == ["kind", *(kind for kind, _ in rows)]
    told = mercer("train", "classifier", str(file), "--model", model, "-q", "--label", "kind", "--text", "message")
    assert (told.status, told.out, told.err) == (0, "", "")
    wrong = mercer("train", "classifier", str(file), "--model", model, "-q", "--label", "kind", "--columns", "rest")
    assert "looks like text" in wrong.err


def test_tables_with_spaces_after_commas_have_numbers(mercer, tmp_path):
    file, model = tmp_path / "adult.csv", str(tmp_path / "m.mercer")
    file.write_text("age, job, class\n" + "39, clerk, low\n 60, boss, high\n" * 20)
    ran = mercer("train", "classifier", str(file), "--model", model)
    assert "label 'class' (2 classes: low 50 %, high 50 %); numbers 'age'; categories 'job'" in ran.err
    assert sorted(package.load(model).classes_) == ["high", "low"]


def test_a_label_that_nobody_can_know_is_a_mistake(mercer, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("id,size\n" + "".join(f"{i},{i / 2}\n" for i in range(20)))
    ran = mercer("train", "classifier", str(file), "--model", str(tmp_path / "m"))
    assert ran.status == 2
    assert "which one is the label?" in ran.err
    assert "hint: --label names the label" in ran.err


def test_checkpoints_of_the_command_are_removed_at_the_end_and_refused_for_others(mercer, made, tmp_path):
    run, model = tmp_path / "run.checkpoint", str(tmp_path / "m.mercer")
    file = tmp_path / "a.txt"
    file.write_text("x\tcheap pills\ny\tlong meeting\n" * 20)
    assert mercer("train", "classifier", str(file), "--model", model, "--checkpoint", str(run)).status == 0
    assert not run.exists()
    container.write_file(run, "checkpoint", {"fingerprint": "another"}, {})
    ran = mercer("train", "classifier", str(file), "--model", model, "--checkpoint", str(run))
    assert ran.status == 2
    assert "other data or settings" in ran.err


def test_models_that_ask_for_much_memory_are_for_those_who_allow_it(mercer, tmp_path):
    file, model = tmp_path / "a.txt", str(tmp_path / "m.mercer")
    file.write_text("x\tcheap pills\ny\tlong meeting\n" * 20)
    assert mercer("train", "classifier", str(file), "--model", model, "--n-bits", "20", "-q").status == 0
    refused = mercer("--max-bytes", "1000000", "predict", model, str(file))
    assert refused.status == 2
    assert "--max-bytes" in refused.err
    assert mercer("--max-bytes", "9000000", "predict", model, str(file)).status == 0


def test_ctrl_c_keeps_a_model(tmp_path):
    """Lines come without end; Ctrl-C comes once some were learnt."""
    model = tmp_path / "m.mercer"
    code = """
import sys
from mercer.online import blocks as _blocks
from mercer.online import training as _training
_blocks.CHUNK = 1 << 12
learn = _training.Training._learn
def told(self, block, number):
    learn(self, block, number)
    print("learnt", flush=True)
_training.Training._learn = told
from mercer.cli import main
from mercer.maps import TextHasher
sys.exit(main(sys.argv[1:]))
"""
    arguments = ("train", "classifier", "-", "--format", "text", "--model", str(model))
    process = popen(code, *arguments, stdin=subprocess.PIPE)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    process.stdin.write(b"ham\tagenda\nspam\tcheap pills\n" * 3000)
    process.stdin.flush()
    assert process.stdout.readline() == b"learnt\n"
    process.send_signal(signal.SIGINT)
    out, err = process.stdout.read().decode(), process.stderr.read().decode()
    assert process.wait() == 130, err
    watchdog.cancel()
    assert f"the model trained so far is saved to {model}" in err
    assert "progressive loss" in out
    assert package.load(model).interrupted_


def test_limit_reads_only_the_first_examples(mercer, tmp_path):
    path, model = tmp_path / "a.txt", str(tmp_path / "m.mercer")
    path.write_text("x\ta\ny\tb\nz\tc\n")
    train = ["train", "classifier", str(path), "--model", model, "--n-bits", "8", "--quiet", "--limit"]
    assert mercer(*train, "2").status == 0
    assert package.load(model).classes_.tolist() == ["x", "y"]
    assert "'--limit': Input should be greater than or equal to 1" in mercer(*train, "0").err
    assert "--limit" not in mercer(*train, "1").err  # allowed, but one class cannot be told from another
