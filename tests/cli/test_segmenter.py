"""Segmenters on the command line: paragraphs of texts, spans of column files, messages."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest

import mercer as package
from mercer.cli import main
from mercer.cli import segmenter as command
from mercer.datasets import make_paragraphs
from mercer.learning.losses import LOSSES
from mercer.learning.solvers import SOLVERS
from mercer.metrics import boundary_score, pk, span_f1, token_accuracy, window_diff
from mercer.segmentation import join_paragraphs, read_paragraphs


def sentences(n: int, seed: int) -> list[list[tuple[str, str]]]:
    """Tokens with IOB2 tags: names are runs of one to three capitalised words."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        tokens: list[tuple[str, str]] = []
        while len(tokens) < 10:
            if rng.random() < 0.3:
                kind = str(rng.choice(["PER", "LOC"]))
                words = rng.choice(["Anna", "Carl", "Eva"] if kind == "PER" else ["Rome", "Nile", "Oslo"], 2)
                tokens += [(str(words[0]), f"B-{kind}"), (str(words[1]), f"I-{kind}"), ("and", "O")]
            else:
                tokens.append((str(rng.choice(["the", "saw", "of"])), "O"))
        out.append(tokens)
    return out


def write_columns(path: Path, data: list[list[tuple[str, str]]]) -> str:
    path.write_text("\n\n".join("\n".join(" ".join(token) for token in one) for one in data) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("segmenter")
    task = make_paragraphs(12, topic_share=0.6, cue_share=0.8)
    texts = []
    for i, (document, starts) in enumerate(zip(task.documents, task.starts, strict=True)):
        texts.append(folder / f"d{i:02}.txt")
        texts[-1].write_text(join_paragraphs(document, starts))
    out = {
        "folder": str(folder),
        "text": str(texts[-1]),
        "train": write_columns(folder / "train.conll", sentences(40, 0)),
        "test": write_columns(folder / "test.conll", sentences(15, 1)),
        "paragraphs": str(folder / "paragraphs.mercer"),
        "names": str(folder / "names.mercer"),
    }
    files = [str(path) for path in texts[:8]]
    held_out = ["--dev", str(texts[8]), "--dev", str(texts[9])]
    assert main(["train", "segmenter", *files, *held_out, "--model", out["paragraphs"], "--quiet"]) == 0
    assert main(["train", "segmenter", out["train"], "--model", out["names"], "--loss", "log", "-q"]) == 0
    return out


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def mercer(capfd: pytest.CaptureFixture[str]):
    def run(*args: str) -> Ran:
        status = main(args)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(status, out, err)

    return run


# --------------------------------------------------------------------------------------------------------------- texts


def test_a_text_comes_back_with_the_paragraphs_of_the_model(mercer, made):
    model = package.load(made["paragraphs"])
    [document] = read_paragraphs(Path(made["text"]))
    starts = model.predict([document.sentences])[0]
    assert 1 < len(starts) < len(document.sentences)
    ran = mercer("predict", made["paragraphs"], made["text"])
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == join_paragraphs(document.sentences, starts)
    assert mercer("predict", made["paragraphs"], made["text"], "--lines").out == join_paragraphs(
        document.sentences, starts, lines=True
    )


def test_where_paragraphs_were_does_not_matter(mercer, made, tmp_path):
    flat = tmp_path / "flat.txt"
    flat.write_text(" ".join(Path(made["text"]).read_text().split()))
    expected = mercer("predict", made["paragraphs"], made["text"]).out
    assert mercer("predict", made["paragraphs"], str(flat)).out == expected


def test_json_has_paragraphs_and_probabilities(mercer, made):
    found = json.loads(mercer("predict", made["paragraphs"], made["text"], "--json").out)
    [document] = read_paragraphs(Path(made["text"]))
    model = package.load(made["paragraphs"])
    p = model.boundary_marginals([document.sentences])[0]
    assert found["starts"] == [int(s) for s in model.predict([document.sentences])[0]]
    assert [s for one in found["paragraphs"] for s in one["sentences"]] == document.sentences
    np.testing.assert_allclose([one["probability"] for one in found["paragraphs"]], p[found["starts"]])


def test_packed_files_standard_input_and_lines_as_sentences(mercer, made, tmp_path, monkeypatch):
    text = Path(made["text"]).read_bytes()
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(text))
    expected = mercer("predict", made["paragraphs"], made["text"]).out
    assert mercer("predict", made["paragraphs"], str(packed)).out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    written = tmp_path / "out.txt"
    assert mercer("predict", made["paragraphs"], "-", "--output", str(written)).status == 0
    assert written.read_text() == expected
    lines = tmp_path / "lines.txt"
    lines.write_text("one sentence. still it\nanother one\n")
    ran = mercer("predict", made["paragraphs"], str(lines), "--sentences", "lines", "--lines")
    assert ran.out.split("\n")[0] == "one sentence. still it"


def test_evaluation_prints_the_scores_of_the_metrics(mercer, made):
    [document] = read_paragraphs(Path(made["text"]))
    predicted = package.load(made["paragraphs"]).predict([document.sentences])
    case = [document.starts], predicted, [len(document.sentences)]
    score = boundary_score(*case)
    found = json.loads(mercer("evaluate", made["paragraphs"], made["text"], "--json").out)
    assert (found["precision"], found["recall"], found["F1"]) == (score.precision, score.recall, score.f1)
    assert (found["WindowDiff"], found["Pk"]) == (window_diff(*case), pk(*case))
    ran = mercer("evaluate", made["paragraphs"], made["text"])
    for name in ("accuracy", "precision", "recall", "F1", "WindowDiff", "Pk"):
        assert name in ran.out
    assert f"{score.f1:.4f}" in ran.out


def test_held_out_texts_choose_the_offset(mercer, made, tmp_path):
    files = [str(Path(made["folder"]) / f"d{i:02}.txt") for i in range(5)]
    model = str(tmp_path / "m.mercer")
    weak = ["--C", "0.001"]  # too weak to find all paragraphs
    ran = mercer("train", "segmenter", *files, "--dev", made["text"], "--tune", "recall", "--model", model, *weak)
    assert (ran.status, ran.err) == (0, "")
    for name in ("texts", "paragraphs", "longest", "offset", "F1, held out", "MB)"):
        assert name in ran.out
    tuned = package.load(model)
    assert mercer("train", "segmenter", *files, "--model", model, *weak, "-q").out == ""
    plain = package.load(model)
    assert (plain.offset_, plain.n_jobs) == (0.0, None)
    assert tuned.offset_ > 0
    [document] = read_paragraphs(Path(made["text"]))
    assert len(tuned.predict([document.sentences])[0]) > len(plain.predict([document.sentences])[0])


# -------------------------------------------------------------------------------------------------------- column files


def test_column_files_get_their_spans_appended(mercer, made):
    X = [[token[:1] for token in one] for one in sentences(15, 1)]
    y = [[tag for _, tag in one] for one in sentences(15, 1)]
    predicted = package.load(made["names"]).predict(X)
    ran = mercer("predict", made["names"], made["test"])
    assert [line.split()[-1] for line in ran.out.split("\n") if line] == [tag for tags in predicted for tag in tags]
    found = json.loads(mercer("evaluate", made["names"], made["test"], "--json").out)
    assert found["spans"]["f1"] == span_f1(y, predicted) > 0.9
    assert found["token_accuracy"] == token_accuracy(y, predicted)


def rows_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.split("\n") if line]


def test_marginals_ranks_and_json_of_column_files(mercer, made):
    model = package.load(made["names"])
    X = [[token[:1] for token in one] for one in sentences(15, 1)]
    rows = rows_of(mercer("predict", made["names"], made["test"], "--marginals").out)
    mu = np.concatenate(model.predict_marginals(X))
    names = model.classes_.tolist()
    expected = [mu[t, names.index(row[2].removeprefix("B-").removeprefix("I-"))] for t, row in enumerate(rows)]
    np.testing.assert_allclose([float(row[3]) for row in rows], expected, atol=1e-6)
    ranked = rows_of(mercer("predict", made["names"], made["test"], "--k-best", "2").out)
    assert {row[3] for row in ranked} == {"1", "2"}
    records = [json.loads(line) for line in mercer("predict", made["names"], made["test"], "--json").out.splitlines()]
    found = [[(s["start"], s["end"], s["label"]) for s in record["spans"]] for record in records]
    assert found == [[s for s in one if s[2] != "O"] for one in model.predict_segments(X)]


def test_other_span_schemes_train_the_same_model(mercer, made, tmp_path):
    other = []
    for one in sentences(40, 0):
        tags = [tag for _, tag in one]
        ends = [t + 1 == len(tags) or not tags[t + 1].startswith("I-") for t in range(len(tags))]
        bioes = [
            tag if tag == "O" else f"{('S' if e else 'B') if tag[0] == 'B' else ('E' if e else 'I')}{tag[1:]}"
            for tag, e in zip(tags, ends, strict=True)
        ]
        other.append([(word, tag) for (word, _), tag in zip(one, bioes, strict=True)])
    file, model = write_columns(tmp_path / "bioes.txt", other), str(tmp_path / "m.mercer")
    assert mercer("train", "segmenter", file, "--model", model, "--loss", "log", "-q").status == 0
    np.testing.assert_array_equal(package.load(model).coef_, package.load(made["names"]).coef_)


def test_held_out_column_files_stop_training(mercer, made, tmp_path):
    model = str(tmp_path / "m.mercer")
    ran = mercer("train", "segmenter", made["train"], "--dev", made["test"], "--model", model, "--max-iter", "30")
    assert ran.status == 0
    assert "span F1, held out" in ran.out
    assert "dev_score" in package.load(model).history_


# ------------------------------------------------------------------------------------------------- looking and mistakes


def test_inspect_shows_what_a_segmenter_is(mercer, made):
    ran = mercer("inspect", made["paragraphs"], "--top", "3")
    assert ran.status == 0
    assert "boundaries only" in ran.out
    assert ran.out.count("boundary:") <= 3
    ran = mercer("inspect", made["names"], "--label", "PER", "--top", "60")
    assert "LOC, O, PER" in ran.out
    assert "Anna" in ran.out
    assert "no label 'X'" in mercer("inspect", made["names"], "--label", "X").err


@pytest.mark.parametrize(
    ("name", "shown"),
    [("paragraphs", ("Lengths", "every segment", "boundary:")), ("names", ("Transitions", "LOC → PER", "suffix"))],
)
def test_inspect_writes_a_page(mercer, made, tmp_path, name, shown):
    page = tmp_path / "page.html"
    assert mercer("inspect", made[name], "--html", str(page)).status == 0
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    for each in shown:
        assert each in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "segmenter", "TEXT", "TRAIN", "--model", "m.mercer"], "reads as a text and"),
        (["train", "segmenter", "-", "--model", "m.mercer"], "--format text or --format columns"),
        (["train", "segmenter", "-", "--dev", "-", "--format", "text", "--model", "m"], "only one of the files"),
        (["train", "segmenter", "TEXT", "--model", "m", "--template", "words"], "--template is for column"),
        (["train", "segmenter", "TEXT", "--model", "nowhere/m.mercer"], "no such directory"),
        (["train", "segmenter", "TRAIN", "--model", "m.mercer", "--template", "words+pos"], "uses column 1"),
        (["train", "segmenter", "TEXT", "--model", "m.mercer", "--max-length", "2"], "max_length"),
        (["train", "segmenter", "FLAT", "--model", "m.mercer"], "no file has more than one paragraph"),
        (["train", "segmenter", "EMPTY", "--model", "m.mercer"], "no sentences in this file"),
        (["train", "segmenter", "TAGS", "--format", "columns", "--model", "m.mercer"], "expected span tags"),
        (["predict", "PARAGRAPHS", "TEXT", "--marginals"], "are for column files"),
        (["predict", "PARAGRAPHS", "TEXT", "--proba"], "for classifiers"),
        (["predict", "NAMES", "TEST", "--lines"], "for models of texts"),
        (["predict", "NAMES", "TEST", "--json", "--marginals"], "cannot be combined"),
        (["evaluate", "NAMES", "TEST", "--sentences", "lines"], "for models of texts"),
        (["evaluate", "PARAGRAPHS", "TEXT", "--label", "x"], "for classifiers"),
        (["inspect", "NAMES", "--html", "p.html", "--label", "X"], "no label 'X'"),
    ],
)
def test_mistakes_are_named(mercer, made, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name, content in (("flat", "One. Two."), ("empty", "\n\n"), ("tags", "a NN\nb VB\n")):
        (tmp_path / f"{name}.txt").write_text(content)
    place = {name.upper(): path for name, path in made.items()}
    place |= {name.upper(): str(tmp_path / f"{name}.txt") for name in ("flat", "empty", "tags")}
    ran = mercer(*(place.get(argument, argument) for argument in arguments))
    assert ran.status == 2, ran.err
    assert message in ran.err
    assert not (tmp_path / "m.mercer").exists()


def test_a_segmenter_of_features_is_for_python_only(mercer, tmp_path):
    from mercer.segmentation import Segmenter

    path = str(tmp_path / "m.mercer")
    package.save(Segmenter().fit([np.eye(4)], [list("aabb")]), path)
    for verb in ("predict", "evaluate"):
        assert "use it from Python" in mercer(verb, path, path).err


def test_the_help_names_what_the_estimator_takes():
    assert {name.value for name in command.SegmenterLoss} == {"auto", *LOSSES}
    assert {name.value for name in command.SegmenterSolver} <= set(SOLVERS)
