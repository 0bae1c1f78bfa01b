"""The command line as a person meets it: figures, files, messages, exit statuses."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mercer import save
from mercer.cli import main
from mercer.cli.train import ConstraintsName, LossName, PenaltyName, SolverName, TransitionsName
from mercer.data import read_conll
from reference.forked import popen

_PHRASES = {
    "NP": [[("the", "DT"), ("dog", "NN")], [("a", "DT"), ("red", "JJ"), ("cat", "NN")], [("she", "PRP")]],
    "VP": [[("sleeps", "VBZ")], [("has", "VBZ"), ("slept", "VBN")], [("sees", "VBZ")]],
}


def sentences(n: int, seed: int = 0) -> list[list[tuple[str, str, str]]]:
    """Noun and verb phrases in turn, with their IOB2 labels."""
    draw = random.Random(seed)
    out = []
    for _ in range(n):
        sentence = []
        for kind in ("NP", "VP", "NP"):
            phrase = draw.choice(_PHRASES[kind])
            sentence += [(w, pos, f"{'B' if t == 0 else 'I'}-{kind}") for t, (w, pos) in enumerate(phrase)]
        out.append([*sentence, (".", ".", "O")])
    return out


def write(path: Path, rows: list[list[tuple[str, ...]]]) -> str:
    path.write_text("".join("".join(" ".join(t) + "\n" for t in s) + "\n" for s in rows))
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cli")
    test = sentences(15, seed=1)
    made = {
        "train": write(folder / "train.conll", sentences(40)),
        "test": write(folder / "test.conll", test),
        "bare": write(folder / "bare.conll", [[t[:2] for t in s] for s in test]),
        "words": write(folder / "words.conll", [[(t[0], t[2]) for t in s] for s in test]),
        "empty": write(folder / "empty.conll", []),
        "folder": str(folder),
        "model": str(folder / "np.mercer"),
    }
    assert main(["train", "tagger", made["train"], "--model", made["model"], "--quiet"]) == 0
    return made


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
        assert "\x1b" not in out + err  # no colours where there is no terminal
        return Ran(status, out, err)

    return run


COMMAND = "import sys; from mercer.cli import main; sys.exit(main())"


def spawn(*args: str, **options: object) -> subprocess.Popen[bytes]:
    """A command in an interpreter of its own."""
    command = [sys.executable, "-c", COMMAND, *args]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, **streams)  # type: ignore[call-overload]


# ---------------------------------------------------------------------------------------------- the commands


def test_help_lists_the_commands(mercer) -> None:
    ran = mercer("--help")
    assert ran.status == 0
    places = [ran.out.index(f" {name} ") for name in ("demo", "train", "predict", "evaluate", "inspect")]
    assert all(places)
    assert "mercer train tagger train.conll" in ran.out


@pytest.mark.parametrize(
    "command", [("demo",), ("train",), ("train", "tagger"), ("predict",), ("evaluate",), ("inspect",)]
)
def test_every_command_has_help(mercer, command: tuple[str, ...]) -> None:
    ran = mercer(*command, "--help")
    assert ran.status == 0
    assert "Usage: mercer" in ran.out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from mercer.cli import main; main(['--help']); "
        "heavy = {'sklearn', 'scipy', 'mercer.tagging', 'mercer._core'} & set(sys.modules); "
        "sys.exit(bool(heavy))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_version(mercer) -> None:
    import mercer as package

    assert mercer("--version").out == f"mercer {package.__version__}\n"


def test_choices_are_those_of_the_estimator() -> None:
    from mercer.learning import LOSSES, SOLVERS
    from mercer.tagging import Tagger

    assert {name.value for name in SolverName} == set(SOLVERS) - {"dual", "newton"}  # which are for single labels
    assert {name.value for name in LossName} == set(LOSSES)
    X, y = [[{"a": 1}, {"b": 1}]], [["B", "I"]]
    for penalty in PenaltyName:
        Tagger(penalty=None if penalty == "none" else penalty.value, solver="owlqn", max_iter=1)._resolve()
    for transitions in TransitionsName:
        Tagger(transitions=transitions.value).fit(X, y)
    assert [name.value for name in ConstraintsName] == ["none", "bio", "bilou"]


def test_train_prints_a_summary_with_held_out_scores(mercer, files, tmp_path) -> None:
    model = str(tmp_path / "m.mercer")
    ran = mercer("train", "tagger", files["train"], "--dev", files["test"], "--model", model)
    assert ran.status == 0
    rows = dict(line.split(None, 1) for line in ran.out.splitlines() if line.startswith("  "))
    assert rows["sentences"] == "40"
    assert rows["labels"] == "5"
    assert "span F1 on" in ran.out
    assert "accuracy on" in ran.out
    assert os.path.exists(model)


@pytest.mark.parametrize(
    "options",
    [
        ["--template", "words"],
        ["--constraints", "bio"],
        ["--hashing", "--n-bits", "12"],
        ["--penalty", "l1"],
        ["--penalty", "elasticnet", "--l1-ratio", "0.3"],
        ["--penalty", "none", "--max-iter", "20", "--tol", "0.1"],
        ["--transitions", "features"],
        ["--transitions", "observed"],
        ["--solver", "sgd", "--seed", "3", "--jobs", "1"],
        ["--solver", "averaged-perceptron"],
        ["--solver", "passive-aggressive"],
    ],
)
def test_options_of_training_give_models_that_work(mercer, files, tmp_path, options: list[str]) -> None:
    model = str(tmp_path / "m.mercer")
    assert mercer("train", "tagger", files["train"], "--model", model, "--quiet", *options).status == 0
    found = json.loads(mercer("evaluate", model, files["test"], "--json").out)
    assert found["token_accuracy"] > 0.9


def test_same_seed_and_any_number_of_threads_give_the_same_file(mercer, files, tmp_path) -> None:
    written = []
    for jobs in ("1", "2"):
        path = tmp_path / f"{jobs}.mercer"
        options = ["--solver", "sgd", "--max-iter", "5", "--jobs", jobs, "--quiet"]
        mercer("train", "tagger", files["train"], "--model", str(path), *options)
        import mercer as package

        written.append(package.load(path).coef_.tolist())
    assert written[0] == written[1]


def test_quiet_prints_nothing(mercer, files, tmp_path) -> None:
    ran = mercer("train", "tagger", files["train"], "--model", str(tmp_path / "m.mercer"), "-q")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_two_columns_take_the_words_template(mercer, files, tmp_path) -> None:
    model = str(tmp_path / "m.mercer")
    assert mercer("train", "tagger", files["words"], "--model", model).status == 0
    assert "26 unigram" in mercer("inspect", model).out


def test_bigram_macros_give_observation_dependent_transitions(mercer, files, tmp_path) -> None:
    template = tmp_path / "my.template"
    template.write_text("U0:%x[0,0]\nB0:%x[0,1]\n")
    model = str(tmp_path / "m.mercer")
    assert mercer("train", "tagger", files["train"], "--model", model, "--template", str(template)).status == 0
    out = mercer("inspect", model).out
    assert "transitions features" in " ".join(out.split())
    ran = mercer(
        "train",
        "tagger",
        files["train"],
        "--model",
        model,
        "--template",
        str(template),
        "--transitions",
        "dense",
    )
    assert ran.status == 2
    assert "bigram macros" in ran.err


def test_a_label_that_only_the_held_out_file_has_is_no_obstacle(mercer, files, tmp_path) -> None:
    rows = sentences(3, seed=5)
    rows[0][0] = (*rows[0][0][:2], "B-XP")
    dev = write(tmp_path / "dev.conll", rows)
    ran = mercer("train", "tagger", files["train"], "--dev", dev, "--model", str(tmp_path / "m.mercer"))
    assert ran.status == 0
    assert "accuracy on" in ran.out


def test_training_that_does_not_converge_warns_on_one_line(mercer, files, tmp_path) -> None:
    ran = mercer("train", "tagger", files["train"], "--model", str(tmp_path / "m"), "--max-iter", "1", "--tol", "1e-9")
    assert ran.status == 0
    assert ran.err.startswith("warning: stopped after --max-iter 1 iterations")
    assert ran.err.count("\n") == 1


def test_predict_appends_a_label(mercer, files) -> None:
    for name in ("bare", "test"):
        ran = mercer("predict", files["model"], files[name])
        assert ran.status == 0
        given = read_conll(files[name])
        labelled = read_conll(io.StringIO(ran.out))
        assert [[t[:-1] for t in s] for s in labelled] == given
        assert {t[-1] for s in labelled for t in s} <= {"B-NP", "I-NP", "B-VP", "I-VP", "O"}


def test_predict_appends_probabilities(mercer, files) -> None:
    labelled = read_conll(io.StringIO(mercer("predict", files["model"], files["bare"], "--marginals").out))
    assert all(0 < float(token[-1]) <= 1 for sentence in labelled for token in sentence)


def test_predict_k_best_gives_blocks_with_rank_and_score(mercer, files) -> None:
    ran = mercer("predict", files["model"], files["bare"], "--k-best", "3")
    blocks = read_conll(io.StringIO(ran.out))
    assert len(blocks) == 3 * 15
    for first, second, third in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        assert [block[0][-2] for block in (first, second, third)] == ["1", "2", "3"]
        scores = [float(block[0][-1]) for block in (first, second, third)]
        assert scores == sorted(scores, reverse=True)
        assert [t[2] for t in first] != [t[2] for t in second]


def test_predict_writes_a_file(mercer, files, tmp_path) -> None:
    path = tmp_path / "out.conll.gz"
    ran = mercer("predict", files["model"], files["bare"], "--output", str(path))
    assert (ran.status, ran.out) == (0, "")
    assert len(read_conll(path)) == 15


def test_predict_of_nothing_is_nothing(mercer, files) -> None:
    assert (mercer("predict", files["model"], files["empty"]).out) == ""


def test_evaluate_prints_spans(mercer, files) -> None:
    ran = mercer("evaluate", files["model"], files["test"])
    assert ran.status == 0
    for word in ("token accuracy", "sentence accuracy", "precision", "NP", "VP", "all"):
        assert word in ran.out


def test_evaluate_json(mercer, files) -> None:
    found = json.loads(mercer("evaluate", files["model"], files["test"], "--json").out)
    assert found["sentences"] == 15
    assert found["token_accuracy"] == 1.0
    assert found["spans"]["by_label"]["NP"]["support"] == 30


def test_labels_that_are_no_spans_have_no_span_scores(mercer, files, tmp_path) -> None:
    rows = [[(t[0], t[1]) for t in s] for s in sentences(20)]
    file, model = write(tmp_path / "pos.conll", rows), str(tmp_path / "m.mercer")
    mercer("train", "tagger", file, "--model", model)
    assert "precision" not in mercer("evaluate", model, file).out


@pytest.mark.parametrize(
    ("loss", "solver"),
    [("log", "lbfgs"), ("hinge", "bcfw"), ("hinge", "cutting-plane"), ("hybrid", "bmrm"), ("relative-margin", None)],
)
def test_margin_losses_train_from_the_command_line(mercer, files, tmp_path, loss, solver) -> None:
    model = str(tmp_path / "m.mercer")
    choice = ["--solver", solver] if solver else []
    ran = mercer("train", "tagger", files["train"], "--model", model, "--loss", loss, *choice, "--max-iter", "20")
    assert ran.status == 0
    told = mercer("inspect", model).out
    assert f"{loss} loss" in told
    assert (solver or "cutting-plane") in told
    assert mercer("evaluate", model, files["test"]).status == 0


def test_a_solver_that_does_not_fit_the_loss_is_an_error(mercer, files, tmp_path) -> None:
    model = tmp_path / "m.mercer"
    ran = mercer("train", "tagger", files["train"], "--model", str(model), "--loss", "log", "--solver", "bcfw")
    assert ran.status != 0
    assert "error:" in ran.err
    assert "use 'bmrm'" in ran.err
    assert not model.exists()


def test_inspect(mercer, files, tmp_path) -> None:
    ran = mercer("inspect", files["model"], "--top", "3")
    for word in ("Tagger", "weights", "log loss", "lbfgs", "transitions", "B-NP", "pos=DT"):
        assert word in ran.out
    one = mercer("inspect", files["model"], "--label", "O", "--top", "2").out
    assert "word=." in one
    assert "pos=DT" not in one
    page = tmp_path / "page.html"
    assert mercer("inspect", files["model"], "--html", str(page)).status == 0
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_inspect_shows_bounds_on_held_out_data(mercer, files, tmp_path) -> None:
    held = write(tmp_path / "held", sentences(12, seed=5))
    ran = mercer("inspect", files["model"], "--data", held)
    assert ran.status == 0, ran.err
    for part in ("bounds on the error", "wrong sentences", "others like these", "by margins", "by PAC-Bayes"):
        assert part in ran.out


def _structured_models() -> dict[str, tuple[object, list[tuple[object, object]]]]:
    """A small model of each structured kind, and examples as lines of JSON hold them."""
    import numpy as np

    import mercer

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 2)).round(2).tolist()
    signs = [int(row[0] > 0) for row in rows]
    segments = [[[0, 2, "a"], [2, 4, "b"]], [[0, 1, "b"], [1, 4, "a"]]]
    frames = [rng.normal(size=(4, 2)).round(2).tolist() for _ in segments]
    graphs = [[np.eye(3).tolist(), [[0, 1], [1, 2]]], [np.eye(3).tolist(), [[0, 2]]]]
    trees = ["(S (N dogs) (V ran))", "(S (N cats) (V sat))"]
    words = [["dogs", "ran"], ["cats", "sat"]]
    pairs, links = [["abc", "abc"], ["ab", "abb"]], [[[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1]]]
    sets, clusters = [rng.normal(size=(3, 2)).tolist() for _ in range(3)], [[0, 0, 1], [0, 1, 1], [0, 0, 0]]
    as_arrays = [np.array(x) for x in frames]
    return {
        "classifier": (mercer.LinearClassifier().fit(rows, signs), list(zip(rows, signs, strict=True))),
        "tagger": (mercer.Tagger().fit(words, [["N", "V"]] * 2), [(words[0], ["N", "V"]), (words[1], ["V", "V"])]),
        "segmenter": (
            mercer.Segmenter(max_length=4).fit(as_arrays, [[tuple(s) for s in one] for one in segments]),
            list(zip(frames, segments, strict=True)),
        ),
        "graphs": (
            mercer.GraphLabeler().fit([(np.array(x), e) for x, e in graphs], [[0, 1, 1], [0, 1, 0]]),
            list(zip(graphs, [[0, 1, 1], [0, 1, 0]], strict=True)),
        ),
        "grids": (
            mercer.GridLabeler(edge_weights="none").fit(
                [np.eye(2), np.ones((2, 2))], [np.eye(2) > 0, np.ones((2, 2)) > 0]
            ),
            [(np.eye(2).tolist(), (np.eye(2) > 0).tolist()), (np.ones((2, 2)).tolist(), [[True, True]] * 2)],
        ),
        "parser": (
            mercer.Parser(C=1.0, random_state=0).fit(None, mercer.parsing.read_trees(" ".join(trees))),
            list(zip(words, trees, strict=True)),
        ),
        "aligner": (
            mercer.Aligner(C=1.0).fit([tuple(p) for p in pairs], [[tuple(i) for i in one] for one in links]),
            list(zip(pairs, links, strict=True)),
        ),
        "clusterer": (
            mercer.SupervisedClusterer(decode="exact").fit([np.array(x) for x in sets], clusters),
            list(zip(sets, clusters, strict=True)),
        ),
        "kernel": (mercer.KernelSVC(mercer.kernels.Linear()).fit(rows, signs), list(zip(rows, signs, strict=True))),
    }


def test_inspect_shows_bounds_of_every_structured_model(mercer, tmp_path) -> None:
    for name, (model, examples) in _structured_models().items():
        path, held = str(tmp_path / f"{name}.mercer"), tmp_path / f"{name}.jsonl"
        save(model, path)
        held.write_text("".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in examples))
        ran = mercer("inspect", path, "--data", str(held))
        assert ran.status == 0, (name, ran.err)
        assert "bounds on the error" in ran.out, name
        assert "by PAC-Bayes" in ran.out, name
        assert "not known" not in ran.out, (name, ran.out)
        page = tmp_path / f"{name}.html"
        assert mercer("inspect", path, "--data", str(held), "--html", str(page)).status == 0
        assert "Bounds on the error" in page.read_text(encoding="utf-8")
    trees = tmp_path / "held.txt"
    trees.write_text("(S (N dogs) (V sat))")
    assert "by margins" in mercer("inspect", str(tmp_path / "parser.mercer"), "--data", str(trees)).out


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "no examples in this file"),
        ('{"x": [1.0, 2.0]}\n', "no field 'y'"),
        ('{"x": [1.0, 2.0], "y": 0}\n{"x": [1.0], "y": 0}\n', "x: "),
        ('{"x": [1.0, 2.0, 3.0], "y": 0}\n', "features"),
    ],
)
def test_inspect_says_what_is_wrong_with_examples(mercer, tmp_path, lines, message) -> None:
    import numpy as np

    from mercer import LinearClassifier

    path, held = str(tmp_path / "m.mercer"), tmp_path / "held.jsonl"
    save(LinearClassifier().fit(np.eye(2), [0, 1]), path)
    held.write_text(lines)
    ran = mercer("inspect", path, "--data", str(held))
    assert ran.status != 0
    assert message in ran.err
    np.savez(tmp_path / "held.npz", X=np.eye(2))
    assert "expected the arrays X and y" in mercer("inspect", path, "--data", str(tmp_path / "held.npz")).err
    np.savez(tmp_path / "held.npz", X=np.eye(2), y=[0, 1])
    assert "by margins" in mercer("inspect", path, "--data", str(tmp_path / "held.npz")).out


def test_inspect_shows_models_of_other_kinds(mercer, tmp_path) -> None:
    import mercer as package
    from mercer.tagging import HMM

    path = str(tmp_path / "hmm.mercer")
    package.save(HMM().fit([[["a"], ["b"]]], [["x", "y"]]), path)
    assert "HiddenMarkovModel" in mercer("inspect", path).out
    assert mercer("inspect", path, "--html", str(tmp_path / "p.html")).status == 0
    for command in (["predict", path, os.devnull], ["inspect", path, "--data", os.devnull]):
        ran = mercer(*command)
        assert ran.status == 2
        assert "HiddenMarkovModel" in ran.err


# ----------------------------------------------------------------------------------------------- the streams


def test_standard_input_and_output(files) -> None:
    with open(files["bare"], "rb") as file:
        process = popen(COMMAND, "predict", files["model"], "-", stdin=file)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert len(read_conll(io.BytesIO(out))) == 15


def test_training_from_standard_input(files, tmp_path) -> None:
    with open(files["train"], "rb") as file:
        process = popen(COMMAND, "train", "tagger", "-", "--model", str(tmp_path / "m.mercer"), stdin=file)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"40" in out


def test_a_closed_pipe_ends_quietly(files, tmp_path) -> None:
    long = tmp_path / "long.conll"
    long.write_text(Path(files["bare"]).read_text() * 40)  # more than a pipe holds
    process = spawn("predict", files["model"], str(long))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().split()[0]
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_full_disk_is_a_failure_and_no_traceback(files) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-c", COMMAND, "predict", files["model"], files["bare"]],
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0] == b"error: no space left on device"
    assert b"Traceback" not in ran.stderr


def test_ctrl_c_in_training_keeps_the_model(mercer, files, tmp_path, monkeypatch) -> None:
    from mercer.learning.monitor import Monitor

    record = Monitor.record

    def interrupted(self: Monitor, *args: object, **figures: float) -> bool:
        record(self, *args, **figures)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Monitor, "record", interrupted)
    model = str(tmp_path / "m.mercer")
    ran = mercer("train", "tagger", files["train"], "--model", model, "--quiet")
    assert ran.status == 130
    assert f"interrupted: the model trained so far is saved to {model}" in ran.err
    monkeypatch.undo()
    assert mercer("evaluate", model, files["test"]).status == 0


def test_ctrl_c_elsewhere_is_130(mercer, files, monkeypatch) -> None:
    from mercer.tagging import Tagger

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tagger, "predict", stop)
    ran = mercer("evaluate", files["model"], files["test"])
    assert (ran.status, ran.err) == (130, "interrupted\n")


# ---------------------------------------------------------------------------------------------- the mistakes


def test_a_broken_line_is_named_as_the_tour_promises(mercer, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.conll").write_text("a DT B\n" * 1202 + "a DT\n")
    ran = mercer("train", "tagger", "broken.conll", "--model", "m.mercer")
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err == (
        "error: broken.conll:1203: expected 3 columns as in line 1, found 2\n"
        "hint: sentences are separated by blank lines; columns by spaces or tabs\n"
    )
    assert os.listdir() == ["broken.conll"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "tagger", "nowhere.conll", "--model", "{new}"], "nowhere.conll: no such file"),
        (["train", "tagger", "{train}"], "missing option '--model'"),
        (["train", "tagger", "{train}", "--model", "{folder}"], "it is a directory"),
        (["train", "tagger", "{train}", "--model", "{folder}/no/m"], "no such directory"),
        (
            ["train", "tagger", "{train}", "--model", "{new}", "--solver", "magic"],
            "'magic' is not one of 'lbfgs'",
        ),
        (
            ["train", "tagger", "{train}", "--model", "{new}", "--C", "-1"],
            "C must be a positive finite number",
        ),
        (["train", "tagger", "{train}", "--model", "{new}", "--C", "much"], "invalid value for '--C'"),
        (["train", "tagger", "{train}", "--model", "{new}", "--template", "words+x"], "no such template"),
        (["train", "tagger", "{train}", "--model", "{new}", "--n-bits", "99", "--hashing"], "--n-bits must be"),
        (["train", "tagger", "{train}", "--model", "{new}", "--solver", "lbfgs", "--penalty", "l1"], "owlqn"),
        (["train", "tagger", "{train}", "--model", "{new}", "--constraints", "bilou"], "bilou"),
        (["train", "tagger", "{words}", "--model", "{new}", "--template", "words+pos"], "uses column 1"),
        (["train", "tagger", "{train}", "--model", "{new}", "--dev", "{bare}"], "no labels"),
        (["train", "tagger", "{empty}", "--model", "{new}"], "no sentences"),
        (["train", "tagger", "{folder}", "--model", "{new}"], "is a directory"),
        (["predict", "{model}", "nowhere.conll"], "nowhere.conll: no such file"),
        (["predict", "nowhere.mercer", "{bare}"], "nowhere.mercer: no such file"),
        (["predict", "{folder}", "{bare}"], "is a directory"),
        (["predict", "{train}", "{bare}"], "this is not a model, it looks like a column file"),
        (["predict", "{model}", "{bare}", "--k-best", "0"], "--k-best"),
        (["predict", "{model}", "{bare}", "--k-best", "2", "--marginals"], "cannot be combined"),
        (["predict", "{model}", "{bare}", "--output", "{folder}"], "it is a directory"),
        (["evaluate", "{model}", "{bare}"], "no labels: expected 3 columns"),
        (["evaluate", "{model}", "{empty}"], "no sentences"),
        (["inspect", "{model}", "--label", "B-XP"], "no label 'B-XP'"),
        (["inspect", "{model}", "--html", "{folder}"], "it is a directory"),
        (["trian"], "no such command 'trian'"),
    ],
)
def test_a_mistake_is_one_message_and_status_2(mercer, files, tmp_path, arguments, message) -> None:
    names = {**files, "new": str(tmp_path / "new.mercer")}
    ran = mercer(*(argument.format(**names) for argument in arguments))
    assert ran.status == 2
    assert ran.out == ""
    first, *rest = ran.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert all(line.startswith("hint: ") for line in rest)
    assert len(rest) <= 1
    assert os.listdir(tmp_path) == []


def test_one_column_is_not_enough_to_train(mercer, tmp_path) -> None:
    file = write(tmp_path / "one.conll", [[("a",), ("b",)]])
    ran = mercer("train", "tagger", file, "--model", str(tmp_path / "m"))
    assert ran.status == 2
    assert "at least 2 columns" in ran.err


def test_a_wrong_number_of_columns_is_refused(mercer, files, tmp_path) -> None:
    file = write(tmp_path / "four.conll", [[("a", "b", "c", "d")]])
    for command in ("predict", "evaluate"):
        ran = mercer(command, files["model"], file)
        assert ran.status == 2
        assert "found 4" in ran.err


def test_a_half_written_model_is_refused(mercer, files, tmp_path) -> None:
    whole = Path(files["model"]).read_bytes()
    half = tmp_path / "half.mercer"
    half.write_bytes(whole[: len(whole) // 2])
    for command in (["predict", str(half), files["bare"]], ["inspect", str(half)]):
        ran = mercer(*command)
        assert ran.status == 2
        assert ran.err.startswith(f"error: {half} ")
        assert "truncated" in ran.err


def test_a_model_without_a_template_is_for_python(mercer, files, tmp_path) -> None:
    import mercer as package
    from mercer.tagging import Tagger

    path = str(tmp_path / "dicts.mercer")
    package.save(Tagger().fit([[{"a": 1}, {"b": 1}]], [["x", "y"]]), path)
    ran = mercer("predict", path, files["bare"])
    assert ran.status == 2
    assert "no template" in ran.err
    assert "hint: " in ran.err
    assert mercer("inspect", path).status == 0


def test_labels_that_break_the_constraints_are_named(mercer, tmp_path) -> None:
    file = write(tmp_path / "iob1.conll", [[("a", "B-X"), ("b", "O")], [("a", "O"), ("b", "I-X")]])
    ran = mercer("train", "tagger", file, "--model", str(tmp_path / "m"), "--constraints", "bio")
    assert ran.status == 2
    assert "sentence 2 break the bio scheme: I-X after O" in ran.err


def test_a_bug_of_ours_is_status_1_and_debug_shows_it(files, monkeypatch, capfd) -> None:
    from mercer.tagging import Tagger

    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(Tagger, "predict", broken)
    assert main(["evaluate", files["model"], files["test"]]) == 1
    err = capfd.readouterr().err
    assert err.startswith("error: unexpected KeyError")
    assert "Traceback" not in err
    assert main(["--debug", "evaluate", files["model"], files["test"]]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_a_checkpoint_of_another_training_is_refused_and_kept(mercer, files, tmp_path) -> None:
    checkpoint = tmp_path / "training.ckpt"
    checkpoint.write_bytes(Path(files["model"]).read_bytes())
    before = checkpoint.read_bytes()
    ran = mercer("train", "tagger", files["train"], "--model", str(tmp_path / "m"), "--checkpoint", str(checkpoint))
    assert ran.status == 2
    assert checkpoint.read_bytes() == before
