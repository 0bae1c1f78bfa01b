"""Hashed learners that were killed go on from their checkpoint, to the same model to the bit."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

import mercer
from mercer import ModelFileError
from mercer.learning import Checkpoint
from mercer.maps import TextHasher
from mercer.online import FileFormat, HashedClassifier, HashedRegressor
from mercer.online import blocks as _blocks
from mercer.online import learner as _learner

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 4))
LABELS = np.array(["low", "middle", "high"])[np.digitize(X @ [1.0, -1.0, 0.5, 0.0], [-0.5, 0.5])]
WORDS = ["cheap", "pills", "now", "meeting", "noon", "notes", "agenda", "watch"]
TEXTS = [" ".join(RANDOM.choice(WORDS, 5)) for _ in range(300)]


def killed(model, method, *data, after=3, **options):
    """Runs until a checkpoint was written so many times, and dies."""
    record, written = Checkpoint.write, []

    def write(self, state, arrays):
        record(self, state, arrays)
        written.append(state)
        if len(written) >= after:
            raise SystemExit("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", write)
        with pytest.raises(SystemExit):
            getattr(model, method)(*data, **options)
    assert len(written) == after
    return written[-1]


def bytes_of(model, path):
    mercer.save(model, path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of some examples, so that a run has many places to die at."""
    monkeypatch.setattr(_learner, "_BLOCK", 1 << 7)
    monkeypatch.setattr(_blocks, "CHUNK", 1 << 9)


MODELS = {
    "classes": (lambda: HashedClassifier(n_bits=8, max_iter=3), (X, LABELS)),
    "ftrl": (lambda: HashedClassifier(n_bits=8, max_iter=2, solver="ftrl", label_hashing="separate"), (X, LABELS)),
    "texts": (lambda: HashedClassifier(n_bits=10, max_iter=2, hasher=TextHasher(ngrams=(1, 2))), (TEXTS, LABELS)),
    "numbers": (lambda: HashedRegressor(n_bits=8, max_iter=3), (X, X[:, 0])),
    "in order": (lambda: HashedClassifier(n_bits=8, max_iter=2, shuffle=False, solver="sgd"), (X, LABELS == "low")),
}


@pytest.mark.parametrize("after", [1, 15])
@pytest.mark.parametrize("kind", MODELS)
def test_a_fit_that_was_killed_goes_on_to_the_same_model(kind, after, tmp_path):
    make, data = MODELS[kind]
    path = tmp_path / "run.checkpoint"
    state = killed(make(), "fit", *data, after=after, checkpoint=Checkpoint(path, every=0))
    again = make().fit(*data, checkpoint=path)
    whole = make().fit(*data)
    assert bytes_of(again, tmp_path / "a") == bytes_of(whole, tmp_path / "b")
    assert not path.exists()
    assert state["row"] > 0
    assert not [name for name in os.listdir(tmp_path) if "checkpoint" in name]
    seconds = again.history_["seconds"]
    assert seconds == sorted(seconds)


def test_a_generator_goes_on_as_well(tmp_path):
    path = tmp_path / "run.checkpoint"
    make = lambda: HashedClassifier(n_bits=8, max_iter=3, random_state=np.random.RandomState(5))  # noqa: E731
    killed(make(), "fit", X, LABELS, after=14, checkpoint=Checkpoint(path, every=0))
    again, whole = make(), make()
    np.testing.assert_array_equal(
        again.fit(X, LABELS, checkpoint=path).decision_function(X), whole.fit(X, LABELS).decision_function(X)
    )
    assert again.random_state.random_sample() == whole.random_state.random_sample()


@pytest.mark.parametrize("change", ["C", "rows", "labels", "weights", "order"])
def test_other_data_and_settings_are_refused(change, tmp_path):
    path = tmp_path / "run.checkpoint"
    killed(HashedClassifier(n_bits=8), "fit", X, LABELS, checkpoint=Checkpoint(path, every=0))
    before = path.read_bytes()
    model = HashedClassifier(n_bits=9) if change == "C" else HashedClassifier(n_bits=8)
    if change == "order":
        model.set_params(random_state=1)
    rows = X + 1e-9 if change == "rows" else X
    labels = LABELS[::-1] if change == "labels" else LABELS
    weights = np.ones(len(X)) if change == "weights" else None
    with pytest.raises(ModelFileError, match="other data or settings"):
        model.fit(rows, labels, sample_weight=weights, checkpoint=path)
    assert path.read_bytes() == before
    assert not hasattr(model, "model_")


def test_an_interrupted_fit_keeps_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    learn, calls = HashedClassifier._learn_block, []

    def strikes(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        learn(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(HashedClassifier, "_learn_block", strikes)
        model = HashedClassifier(n_bits=8, max_iter=2).fit(X, LABELS, checkpoint=Checkpoint(path, every=0))
    assert model.interrupted_
    again = HashedClassifier(n_bits=8, max_iter=2).fit(X, LABELS, checkpoint=path)
    whole = HashedClassifier(n_bits=8, max_iter=2).fit(X, LABELS)
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))
    assert not path.exists()


def test_a_damaged_checkpoint_of_a_fit_is_refused(tmp_path):
    from mercer._state.container import read_file, write_file

    path = tmp_path / "run.checkpoint"
    killed(HashedClassifier(n_bits=8), "fit", X, LABELS, checkpoint=Checkpoint(path, every=0))
    file = read_file(path)
    for name, array in {
        "order": file.arrays["order"][:-1], "generator": file.arrays["generator"][:5],
        "model_.counters": file.arrays["model_.counters"][:1],
    }.items():  # fmt: skip
        write_file(path, file.kind, file.meta, {**file.arrays, name: array})
        with pytest.raises(ModelFileError, match="does not fit this training"):
            HashedClassifier(n_bits=8).fit(X, LABELS, checkpoint=path)
    assert os.listdir(tmp_path) == [path.name]


# ---------------------------------------------------------------------------------------------------- files


def write_file_of(kind, path):
    if kind == "svmlight":
        lines = [f"{y} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, y in zip(X, LABELS, strict=True)]
        target = path / "a.svm"
    else:
        lines = [f"{y}\t{text}" for text, y in zip(TEXTS, LABELS, strict=True)]
        target = path / ("a.txt.gz" if kind == "packed" else "a.txt")
    with gzip.open(target, "wt") if kind == "packed" else open(target, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return target


@pytest.mark.parametrize(("after", "n_jobs"), [(2, 2), (20, 1), (30, 2)])
@pytest.mark.parametrize("kind", ["text", "packed", "svmlight"])
def test_a_file_that_was_half_learnt_goes_on_to_the_same_model(kind, after, n_jobs, tmp_path):
    data, path = write_file_of(kind, tmp_path), tmp_path / "run.checkpoint"
    make = lambda: HashedClassifier(n_bits=8, max_iter=3, n_jobs=n_jobs)  # noqa: E731
    killed(make(), "fit_file", data, after=after, checkpoint=Checkpoint(path, every=0))
    again = make().fit_file(data, checkpoint=path)
    assert bytes_of(again, tmp_path / "a") == bytes_of(make().fit_file(data), tmp_path / "b")
    assert again.skipped_.examples == 300
    assert not path.exists()


def test_labels_that_come_late_survive_a_kill(tmp_path):
    data, path = tmp_path / "a.txt", tmp_path / "run.checkpoint"
    early = "".join(f"{i % 3}\t{text}\n" for i, text in enumerate(TEXTS))
    data.write_text(early + "".join(f"{i % 5 + 3}\t{text}\n" for i, text in enumerate(TEXTS)))
    make = lambda: HashedClassifier(n_bits=8, max_iter=2)  # noqa: E731
    for after in (3, 15, 25, 45):
        killed(make(), "fit_file", data, after=after, checkpoint=Checkpoint(path, every=0))
        again = make().fit_file(data, checkpoint=path)
        assert bytes_of(again, tmp_path / "a") == bytes_of(make().fit_file(data), tmp_path / "b")


def test_a_third_label_after_a_kill_begins_again(tmp_path):
    data, path = tmp_path / "a.txt", tmp_path / "run.checkpoint"
    data.write_text("".join(f"{'ab'[i % 2]}\t{text}\n" for i, text in enumerate(TEXTS)) + "c\tagenda\n" * 20)
    killed(HashedClassifier(n_bits=8), "fit_file", data, after=5, checkpoint=Checkpoint(path, every=0))
    again = HashedClassifier(n_bits=8).fit_file(data, checkpoint=path)
    assert bytes_of(again, tmp_path / "a") == bytes_of(HashedClassifier(n_bits=8).fit_file(data), tmp_path / "b")
    assert again.classes_.tolist() == ["a", "b", "c"]


def test_a_file_that_has_changed_is_refused(tmp_path):
    data, path = write_file_of("text", tmp_path), tmp_path / "run.checkpoint"
    killed(HashedClassifier(n_bits=8), "fit_file", data, after=10, checkpoint=Checkpoint(path, every=0))
    before, text = path.read_bytes(), data.read_text()
    for other in (text.replace("cheap", "CHEAP", 1), text[: len(text) // 4]):
        data.write_text(other)
        with pytest.raises(ModelFileError, match="does not begin as it did then"):
            HashedClassifier(n_bits=8).fit_file(data, checkpoint=path)
        assert path.read_bytes() == before
    data.write_text(text)
    with pytest.raises(ModelFileError, match="other data or settings"):
        HashedClassifier(n_bits=8, penalty="l1", alpha=0.1).fit_file(data, checkpoint=path)
    HashedClassifier(n_bits=8, n_jobs=2, random_state=3).fit_file(data, checkpoint=path)


def test_a_regressor_of_a_file_goes_on(tmp_path):
    data, path = tmp_path / "a.csv", tmp_path / "run.checkpoint"
    rows = "".join(f"{row[0]},{row[1]},{row[2]}\n" for row in X)
    data.write_text("a,b,price\n" + rows)
    make = lambda: HashedRegressor(n_bits=8, max_iter=2)  # noqa: E731
    killed(make(), "fit_file", data, after=9, format=FileFormat(label="price"), checkpoint=Checkpoint(path, every=0))
    again = make().fit_file(data, FileFormat(label="price"), checkpoint=path)
    assert bytes_of(again, tmp_path / "m") == bytes_of(make().fit_file(data, FileFormat(label="price")), tmp_path / "n")
