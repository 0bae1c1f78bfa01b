"""fit_file and its relatives: the same models as from memory, bounded memory, and files with all their faults."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import accuracy_score, r2_score

import mercer
from mercer import _core
from mercer.exceptions import DataFileError
from mercer.maps import RecordHasher, TextHasher
from mercer.online import FileFormat, HashedClassifier, HashedRegressor
from mercer.online import blocks as _blocks
from reference.forked import popen

WORDS = ["red", "blue", "green", "tree", "house", "river", "stone", "cloud", "Bird", "fish", "one2", "under_score"]

CSV = {"csv": {"separator": ",", "header": True}}


def documents(n: int, n_classes: int = 2, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts whose words lean towards the label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    texts = []
    for c in y:
        own = [f"word{c}a", f"word{c}b"]
        texts.append(" ".join(rng.choice(WORDS + own * 3, size=rng.integers(3, 12))))
    return texts, [f"class{c}" for c in y]


def write_text(path: Path, texts: list[str], labels: list[str]) -> Path:
    path.write_text("".join(f"{y}\t{x}\n" for x, y in zip(texts, labels, strict=True)))
    return path


def weights(model) -> tuple[np.ndarray, ...]:
    state = model.model_.state()
    return tuple(state[name] for name in sorted(state))


def same_model(a, b) -> None:
    assert a.model_.labels() == b.model_.labels()
    for one, other in zip(weights(a), weights(b), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Files of a few kilobytes then have many blocks."""
    monkeypatch.setattr(_blocks, "CHUNK", 1 << 10)


# ------------------------------------------------------------------------------------------- as from memory


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("optimizer", ["adagrad", "ftrl", "sgd"])
def test_a_text_file_gives_the_model_of_its_documents(tmp_path, n_classes, passes, optimizer):
    texts, labels = documents(400, n_classes)
    path = write_text(tmp_path / "a.txt", texts, labels)
    settings = {"n_bits": 12, "max_iter": passes, "solver": optimizer, "shuffle": False}
    memory = HashedClassifier(**settings).fit(texts, labels)
    for n_jobs in (1, 2, None):
        model = HashedClassifier(n_jobs=n_jobs, **settings).fit_file(path)
        same_model(model, memory)
        assert model.classes_.tolist() == memory.classes_.tolist()
        assert model.progressive_loss_ == pytest.approx(memory.progressive_loss_, rel=1e-12)
        assert (model.predict(texts) == model.predict_file(path)).all()


@pytest.mark.parametrize("n_bits", [6, 10])
@pytest.mark.parametrize("classes", [[-1, 1], [0, 1, 2]])
def test_an_svmlight_file_gives_the_model_of_its_matrix(tmp_path, n_bits, classes):
    """64 buckets are fewer than the columns, 1024 more."""
    rng = np.random.default_rng(1)
    X = random_sparse(300, 200, density=0.05, random_state=1, format="csr")
    y = rng.choice(classes, size=300)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    X, y = load_svmlight_file(str(path), n_features=200)
    memory = HashedClassifier(n_bits=n_bits, shuffle=False, max_iter=1).fit(X, y.astype(int))
    model = HashedClassifier(n_bits=n_bits).fit_file(path)
    same_model(model, memory)
    assert model.classes_.tolist() == classes
    assert model.n_features_in_ <= 200
    assert model.score_file(path) == pytest.approx(accuracy_score(y, memory.predict(X)))
    np.testing.assert_array_equal(model.coef_, memory.coef_[:, : model.n_features_in_])
    zero = tmp_path / "zero.svm"
    dump_svmlight_file(X, y, str(zero), zero_based=True)
    same_model(HashedClassifier(n_bits=n_bits).fit_file(zero, FileFormat(zero_based=True)), memory)


def test_a_model_of_floats_goes_on_with_a_file_of_integers(tmp_path):
    X, y = random_sparse(50, 20, density=0.3, random_state=0, format="csr"), np.tile([-1.0, 1.0], 25)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    memory = HashedClassifier(n_bits=8, shuffle=False, max_iter=2).fit(X, y)
    model = HashedClassifier(n_bits=8, shuffle=False, max_iter=1).fit(X, y)
    model.partial_fit_file(tmp_path / "a.svm")
    assert model.classes_.tolist() == [-1.0, 1.0]
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6)


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "vw"])
def test_the_same_texts_in_any_format_give_one_model(tmp_path, format):
    texts, labels = documents(200, 3)
    rows = list(zip(labels, texts, strict=True))
    path = tmp_path / f"a.{format}"
    if format == "jsonl":
        lines = [json.dumps({"id": i, "text": x, "label": y}) for i, (y, x) in enumerate(rows)]
    elif format == "vw":
        lines = [f"{y} | {x.lower()}" for y, x in rows]
    else:
        sep = "\t" if format == "tsv" else ","
        lines = [f"id{sep}label{sep}text", *(f'{i}{sep}{y}{sep}"{x}"' for i, (y, x) in enumerate(rows))]
    path.write_text("\n".join(lines))
    counts = "linear" if format == "vw" else "sqrt"  # what is no text has no counts of words
    memory = HashedClassifier(n_bits=12, shuffle=False, max_iter=1, counts=counts).fit(texts, labels)
    model = HashedClassifier(n_bits=12).fit_file(path)
    same_model(model, memory)
    assert model.score_file(path) == memory.score(texts, labels)


def test_the_features_of_a_text_are_those_of_the_hasher(tmp_path):
    texts, labels = documents(100)
    path = write_text(tmp_path / "a.txt", texts, labels)
    hasher = TextHasher(ngrams=(1, 2), lowercase=False, seed=7)
    model = HashedClassifier(n_bits=12, hasher=hasher).fit_file(path)
    same_model(model, HashedClassifier(n_bits=12, hasher=hasher, shuffle=False, max_iter=1).fit(texts, labels))
    mercer.save(model, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.hasher.get_params() == hasher.get_params()
    np.testing.assert_array_equal(loaded.predict_file(path), model.predict_file(path))


@pytest.mark.parametrize("seed", [0, 9])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_the_fields_of_files_are_hashed_as_records_are(format, seed):
    """The same rows as dicts: the same columns, signs and values, so models and rows can be compared."""
    rows = [
        {"city": "Oslo", "age": 31, "price": -2.5e-3, "zip": "01234"},
        {"city": "São Paulo", "age": 0, "zip": "7"},
        {"city": "a=b & c", "price": 1e10, "zip": "1.50"},
        {"age": 1},
    ]
    names = ["city", "age", "price", "zip"]
    if format == "csv":
        lines = [",".join([*names, "label"]), *(",".join([*(str(row.get(n, "")) for n in names), "x"]) for row in rows)]
    else:
        rows[3] |= {"city": None, "price": True}
        lines = [json.dumps({**row, "label": "x"}) for row in rows]
    reader = _core.examples.ExampleReader(format, rest=True, categorical=["zip"], seed=seed, **CSV.get(format, {}))
    block = reader.feed("\n".join(lines).encode(), True)
    assert reader.error is None
    values = np.where(block.hashes >> np.uint64(63), -1.0, 1.0) * block.values
    columns = (block.hashes & np.uint64(2**20 - 1)).astype(np.int64)
    read = csr_matrix((values, columns, block.indptr), shape=(4, 2**20))
    expected = RecordHasher(n_bits=20, seed=seed, dtype=np.float32).transform(rows)
    assert expected.nnz == (10 if format == "csv" else 11)
    assert (read != expected).nnz == 0


def test_what_was_unpacked_before_the_damage_is_learnt(tmp_path, monkeypatch):
    """Also where the whole of it is less than a chunk."""
    monkeypatch.setattr(_blocks, "CHUNK", 1 << 20)
    data = b"".join(b"%s\tword%d\n" % (b"ab"[i % 2 : i % 2 + 1], i * i * 7919 % 100_003) for i in range(20_000))
    for suffix, pack in ((".gz", gzip.compress), (".bz2", lambda data: bz2.compress(data, 1)), (".xz", lzma.compress)):
        path, packed = tmp_path / f"a.txt{suffix}", pack(data)
        path.write_bytes(packed[: 3 * len(packed) // 4])
        model = HashedClassifier(n_bits=12)
        with pytest.raises(DataFileError, match="damaged or truncated"):
            model.fit_file(path)
        assert model.progress_.examples > 5_000, suffix


def test_a_file_of_malformed_lines_says_so():
    broken = io.BytesIO(b"no tab\nagain\n")
    with pytest.raises(ValueError, match="no examples in this file; 2 malformed and skipped, the first: line 1"):
        HashedClassifier(n_bits=12).fit_file(broken, "text", on_error="skip")
    with pytest.raises(ValueError, match="found one class: 'a'; 1 malformed"):
        HashedClassifier(n_bits=12).fit_file(io.BytesIO(b"a\tone\nno tab\n"), "text", on_error="skip")


@pytest.mark.parametrize("columns", [None, "rest", ["town", "zip"]])
def test_numbers_of_json_may_be_names(tmp_path, columns):
    path = tmp_path / "a.jsonl"
    rows = [{"label": "ab"[i % 2], "town": "Oslo"} | ({"zip": i % 2} if i else {}) for i in range(60)]
    path.write_text("\n".join(map(json.dumps, rows)))  # the first object has no zip
    model = HashedClassifier(n_bits=12, fit_intercept=False).fit_file(
        path, FileFormat(columns=columns, categorical="zip")
    )
    assert model.score_file(path) > 0.9
    mercer.save(model, tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").score_file(path) == model.score_file(path)
    path.write_text('{"label": "a", "text": "one", "zip": 1}\n')
    with pytest.raises(DataFileError, match="categorical field 'zip' to be among the features") as caught:
        HashedClassifier(n_bits=12).fit_file(path, FileFormat(text="text", categorical="zip"))
    assert "columns=" in caught.value.hint


def test_a_regressor_learns_from_files(tmp_path):
    rng = np.random.default_rng(0)
    X = random_sparse(300, 30, density=0.3, random_state=0, format="csr")
    y = X @ rng.normal(size=30)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    X, y = load_svmlight_file(str(path), n_features=30)
    memory = HashedRegressor(n_bits=10, shuffle=False, max_iter=5).fit(X, y)
    model = HashedRegressor(n_bits=10, max_iter=5).fit_file(path)
    same_model(model, memory)
    np.testing.assert_array_equal(model.predict_file(path), memory.predict(X))
    assert model.score_file(path) == pytest.approx(r2_score(y, memory.predict(X)))
    with pytest.raises(ValueError, match="poisson"):
        HashedRegressor(n_bits=10, loss="poisson").fit_file(path)
    with pytest.raises(ValueError, match="classes means nothing"):
        HashedRegressor().fit_file(path, classes=[1, 2])


def test_importance_and_class_weights_count(tmp_path):
    texts, labels = documents(200)
    importance = np.random.default_rng(0).choice([0.5, 1.0, 2.0], size=200)
    path = tmp_path / "a.vw"
    path.write_text("".join(f"{y} {w} | {x.lower()}\n" for x, y, w in zip(texts, labels, importance, strict=True)))
    class_weight = {"class0": 3.0, "class1": 0.5}
    memory = HashedClassifier(n_bits=12, shuffle=False, max_iter=1, class_weight=class_weight, counts="linear")
    memory.fit(texts, labels, sample_weight=importance)
    model = HashedClassifier(n_bits=12, class_weight=class_weight).fit_file(path)
    same_model(model, memory)
    right = np.array(labels) == memory.predict(texts)
    assert model.score_file(path) == pytest.approx(np.average(right, weights=importance))
    with pytest.raises(ValueError, match="balanced"):
        HashedClassifier(class_weight="balanced").fit_file(path)


def test_partial_fit_file_goes_on_where_the_model_is(tmp_path):
    texts, labels = documents(300)
    whole = write_text(tmp_path / "whole.txt", texts, labels)
    first = write_text(tmp_path / "first.txt", texts[:170], labels[:170])
    second = write_text(tmp_path / "second.txt", texts[170:], labels[170:])
    model = HashedClassifier(n_bits=12).partial_fit_file(first).partial_fit_file(second)
    same_model(model, HashedClassifier(n_bits=12).fit_file(whole))
    assert model.progress_.examples == 300


# ------------------------------------------------------------------------------------------- where bytes come from


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_files_are_unpacked_and_their_damage_is_named(tmp_path, suffix, pack):
    texts, labels = documents(500)
    plain = write_text(tmp_path / "a.txt", texts, labels)
    packed = tmp_path / f"a.txt{suffix}"
    packed.write_bytes(pack(plain.read_bytes()))
    whole = HashedClassifier(n_bits=12, max_iter=2).fit_file(packed)
    same_model(whole, HashedClassifier(n_bits=12, max_iter=2).fit_file(plain))
    packed.write_bytes(packed.read_bytes()[:-200])
    model = HashedClassifier(n_bits=12)
    with pytest.raises(DataFileError, match="damaged or truncated") as caught:
        model.fit_file(packed)
    learnt = model.progress_.examples if hasattr(model, "model_") else 0  # bz2 has blocks larger than this file
    assert caught.value.line == learnt + 1
    packed.write_bytes(b"no such data")  # the content says what a file is, not its name
    with pytest.raises(DataFileError, match="expected a label, a tab and a text"):
        HashedClassifier(n_bits=12).fit_file(packed)


def test_open_files_and_pipes_are_read(tmp_path, monkeypatch):
    texts, labels = documents(300)
    path = write_text(tmp_path / "a.txt", texts, labels)
    expected = HashedClassifier(n_bits=12).fit_file(path)
    data = path.read_bytes()
    same_model(HashedClassifier(n_bits=12).fit_file(io.BytesIO(data), "text"), expected)
    with path.open("rb") as file:
        same_model(HashedClassifier(n_bits=12).fit_file(file), expected)
        assert not file.closed
    with path.open("rb") as file:  # two passes from where the file stood
        file.readline()
        twice = HashedClassifier(n_bits=12, max_iter=2).fit_file(file)
        assert twice.progress_.examples == 299
    out, into = os.pipe()
    threading.Thread(target=lambda: (os.write(into, data), os.close(into))).start()
    with os.fdopen(out, "rb") as pipe:
        same_model(HashedClassifier(n_bits=12).fit_file(pipe, "text"), expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    same_model(HashedClassifier(n_bits=12).fit_file("-", "text"), expected)


def test_a_stream_is_read_only_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\n")))
    with pytest.raises(ValueError, match="<stdin> can be read only once: max_iter must be 1, got 2"):
        HashedClassifier(max_iter=2).fit_file("-", "text")


def test_wrong_paths_and_arguments_are_named(tmp_path):
    path = write_text(tmp_path / "a.txt", *documents(20))
    with pytest.raises(FileNotFoundError):
        HashedClassifier().fit_file(tmp_path / "nowhere.txt")
    with pytest.raises(FileNotFoundError):
        HashedClassifier().fit_file(tmp_path / "a.unknown")
    with pytest.raises(ValueError, match="format must be one of"):
        HashedClassifier().fit_file(path, "xml")
    with pytest.raises(TypeError, match="binary mode"):
        HashedClassifier().fit_file(io.StringIO("a\tb"), "text")
    with pytest.raises(ValueError, match="columns means nothing for files of the format 'text'"):
        HashedClassifier().fit_file(path, FileFormat(columns=["a"]))
    with pytest.raises(ValueError, match="label must be one of 'first', 'last'"):
        HashedClassifier().fit_file(path, FileFormat(label="middle"))
    with pytest.raises(ValueError, match="on_error must be"):
        HashedClassifier().fit_file(path, on_error="ignore")
    with pytest.raises(ValueError, match="limit must be"):
        HashedClassifier().fit_file(path, limit=-1)
    with pytest.raises(TypeError, match="text must hold names or numbers"):
        HashedClassifier().fit_file(path, FileFormat("csv", text=[1.5]))
    model = HashedClassifier(n_bits=8).fit_file(path)
    (tmp_path / "b.svm").write_text("1 2:3\n")
    with pytest.raises(ValueError, match="this model has learnt from documents or files with names"):
        model.predict_file(tmp_path / "b.svm")


# ------------------------------------------------------------------------------------------- labels


def test_a_third_label_late_in_a_file_begins_again(tmp_path):
    texts, labels = documents(600, 3)
    order = np.argsort(np.array(labels) == "class2", kind="stable")
    texts, labels = [texts[i] for i in order], [labels[i] for i in order]
    path = write_text(tmp_path / "a.txt", texts, labels)
    model = HashedClassifier(n_bits=12).fit_file(path)
    same_model(model, HashedClassifier(n_bits=12, shuffle=False, max_iter=1).fit(texts, labels))
    assert model.progress_.examples == 600
    stream = io.BytesIO(path.read_bytes())
    stream.seekable = lambda: False
    with pytest.raises(ValueError, match=r"a third label, 'class2', .* name all labels in classes="):
        HashedClassifier(n_bits=12).fit_file(stream, "text")
    stream.seek(0)
    same_model(HashedClassifier(n_bits=12).fit_file(stream, "text", classes=sorted(set(labels))), model)


def test_labels_that_come_late_are_at_the_end(tmp_path):
    lines = [f"{i % 3}\tword{i % 3} common\n" for i in range(600)]
    path = tmp_path / "a.txt"
    path.write_text("".join(lines + ["-5\tlate word\n"] * 5))
    model = HashedClassifier(n_bits=12).fit_file(path)
    assert model.classes_.tolist() == [0, 1, 2, -5]
    assert set(model.predict_file(path).tolist()) <= {0, 1, 2, -5}
    path.write_text("".join(lines + ["-5\tlate word\n", "x\tlater word\n"] * 5))
    model = HashedClassifier(n_bits=12).fit_file(path)
    assert model.classes_.tolist() == ["0", "1", "2", "-5", "x"]


def test_labels_never_seen_count_as_errors(tmp_path):
    texts, labels = documents(200)
    model = HashedClassifier(n_bits=12).fit_file(write_text(tmp_path / "a.txt", texts, labels))
    strange = write_text(tmp_path / "b.txt", texts, ["strange" if i % 2 else y for i, y in enumerate(labels)])
    assert model.score_file(strange) == np.mean((model.predict(texts) == labels) & (np.arange(200) % 2 == 0))


def test_one_class_alone_is_refused(tmp_path):
    path = write_text(tmp_path / "a.txt", ["some words"] * 300, ["x"] * 300)
    with pytest.raises(ValueError, match="at least two classes"):
        HashedClassifier(n_bits=8).fit_file(path)
    assert HashedClassifier(n_bits=8).partial_fit_file(path).classes_.tolist() == ["x"]


def test_unlabelled_lines_of_vw_are_passed_over(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | red\n| blue\n2 | green\n'tag | stone\n")
    model = HashedClassifier(n_bits=8).fit_file(path)
    assert model.progress_.examples == 2
    assert len(model.predict_file(path)) == 4
    path.write_text("1| red\n2| blue\n")
    with pytest.raises(ValueError, match="no labelled examples"):
        HashedClassifier(n_bits=8).fit_file(path)


# ------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_malformed_line_is_named_and_what_was_learnt_before_is_kept(tmp_path, n_jobs):
    texts, labels = documents(300)
    path = write_text(tmp_path / "a.txt", texts, labels)
    lines = path.read_text().splitlines()
    lines[249] = "no tab in this line"
    path.write_text("\n".join(lines))
    model = HashedClassifier(n_bits=12, n_jobs=n_jobs)
    with pytest.raises(DataFileError, match=r"a\.txt:250: expected a label, a tab and a text") as caught:
        model.fit_file(path)
    assert caught.value.__notes__ == ["the model has learnt what comes before this line: 249 examples"]
    same_model(model, HashedClassifier(n_bits=12, shuffle=False, max_iter=1).fit(texts[:249], labels[:249]))
    skipped = HashedClassifier(n_bits=12, n_jobs=n_jobs).fit_file(path, on_error="skip")
    del texts[249], labels[249]
    same_model(skipped, HashedClassifier(n_bits=12, shuffle=False, max_iter=1).fit(texts, labels))
    assert skipped.skipped_.n_skipped == 1
    assert skipped.skipped_.skipped[0][0] == 250
    assert skipped.skipped_.examples == 299


def test_a_file_that_cannot_be_begun_leaves_the_model_as_it_was(tmp_path):
    texts, labels = documents(50)
    model = HashedClassifier(n_bits=8).fit(texts, labels)
    before = weights(model)
    bad = tmp_path / "a.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match=r"a\.csv:1: expected a column 'y' \(the label\); the columns are: a, b"):
        model.fit_file(bad, FileFormat(label="y"))
    bad.write_text("")
    with pytest.raises(ValueError, match="no examples in this file"):
        model.fit_file(bad)
    for one, other in zip(weights(model), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_odd_bytes_are_survived(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\tcaf\xe9 \xff\x00one\r\nb\ttwo\x00three\n\r\na\t\nb\tlast words")
    model = HashedClassifier(n_bits=8).fit_file(path)
    assert model.progress_.examples == 4


def test_a_line_of_100_megabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "CHUNK", 1 << 20)
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.write(b"a\tred house\nb\tblue river\na\t")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b" stone\n")
    model = HashedClassifier(n_bits=8).fit_file(path)
    assert model.progress_.examples == 3
    path.unlink()


def test_ctrl_c_keeps_the_model_so_far(tmp_path):
    """Lines come through a pipe that does not end; Ctrl-C comes in the middle."""
    code = """
import sys
import mercer
from mercer.online import HashedClassifier
from mercer.online import blocks as _blocks
from mercer.online import training as _training
_blocks.CHUNK = 1 << 12
learn = _training.Training._learn
def told(self, block, number):
    learn(self, block, number)
    print("learnt", self.model.progress_.examples, flush=True)
_training.Training._learn = told
model = HashedClassifier(n_bits=10).fit_file("-", "text")
mercer.save(model, sys.argv[1])
print()  # Ctrl-C may have come within a line of the above
print("kept", model.interrupted_, model.progress_.examples, model.score(["red one", "blue two"], ["a", "b"]))
"""
    process = popen(code, str(tmp_path / "m.mercer"), stdin=subprocess.PIPE)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    process.stdin.write(b"a\tred one\nb\tblue two\n" * 4000)
    process.stdin.flush()  # and no end: the reader waits for more
    for line in process.stdout:
        if line.startswith(b"learnt") and int(line.split()[1]) > 1000:
            break
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read().decode()
    process.stdin.close()
    err = process.stderr.read().decode()
    assert process.wait(timeout=60) == 0, err
    watchdog.cancel()
    _, interrupted, examples, score = rest.strip().splitlines()[-1].split()
    assert (interrupted, score) == ("True", "1.0")
    assert int(examples) > 1000
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.interrupted_
    assert loaded.predict(["red one"]).tolist() == ["a"]


def test_memory_does_not_grow_with_the_file():
    """60 MB of text through a pipe: the peak of memory grows by far less than that."""
    code = """
import resource
from mercer.online import HashedClassifier
model = HashedClassifier(n_bits=16).partial_fit(["red one", "blue two"], ["a", "b"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.partial_fit_file("-", "text")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(model.progress_.examples, (after - before) // 1024)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = b"a\t" + b"some words of the text " * 40 + b"\n"
    chunk = line * ((1 << 20) // len(line))
    for _ in range(60):
        process.stdin.write(chunk)
    process.stdin.close()
    examples, grown = map(int, process.stdout.read().split())
    assert process.wait() == 0
    assert examples == 60 * ((1 << 20) // len(line)) + 2
    assert grown < 30, f"{grown} MB more"


# ------------------------------------------------------------------------------------------- progress


def test_history_and_table_are_at_powers_of_two(tmp_path, capsys):
    path = write_text(tmp_path / "a.txt", *documents(300))
    model = HashedClassifier(n_bits=12, verbose=1).fit_file(path)
    assert model.history_["examples"] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    table = capsys.readouterr().err.splitlines()
    assert table[0].split() == ["average", "since", "example", "example", "current", "current", "current"]
    assert [line.split()[2] for line in table[2:-1]] == [str(2**i) for i in range(9)]
    assert [float(line.split()[0]) for line in table[2:-1]] == pytest.approx(model.history_["loss"][:-1], abs=1e-6)
    assert table[-1].startswith(f"300 examples, average loss {model.progressive_loss_:.6f}")
    quiet = HashedClassifier(n_bits=12).fit_file(path)
    for name in ("examples", "loss", "loss_since_last", "error"):
        assert quiet.history_[name] == model.history_[name]
    assert capsys.readouterr().err == ""
    HashedRegressor(n_bits=8, verbose=1, max_iter=1).fit_file(io.BytesIO(b"1.5 | a\n2.5 | b\n"), "vw")
    assert "2.5000" in capsys.readouterr().err


def test_the_history_counts_the_seconds_of_all_files(tmp_path):
    path = write_text(tmp_path / "a.txt", *documents(300))
    model = HashedClassifier(n_bits=12).fit_file(path)
    model.partial_fit_file(path)
    seconds = model.history_["seconds"]
    assert len(seconds) == len(model.history_["examples"])
    assert seconds[0] > 0
    assert seconds == sorted(seconds)
    assert seconds[-1] <= model.progress_.seconds


def test_a_limit_is_kept(tmp_path):
    texts, labels = documents(300)
    path = write_text(tmp_path / "a.txt", texts, labels)
    same_model(
        HashedClassifier(n_bits=12, max_iter=2).fit_file(path, limit=100),
        HashedClassifier(n_bits=12, max_iter=2, shuffle=False).fit(texts[:100], labels[:100]),
    )


# ------------------------------------------------------------------------------------------- prediction and model files


def test_a_saved_model_reads_files_as_it_did(tmp_path):
    rows = ["kind,colour,size,body", *(f"{'ab'[i % 2]},{['red', 'blue'][i % 2]},{i % 7},text {i}" for i in range(60))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    model = HashedClassifier(n_bits=10).fit_file(tmp_path / "a.csv", FileFormat(columns=["colour", "size"]))
    mercer.save(model, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.file_format_ == model.file_format_
    # Other order, no label, a column more.
    (tmp_path / "b.csv").write_text("size,extra,colour\n3,x,blue\n4,y,red\n")
    assert loaded.predict_file(tmp_path / "b.csv").tolist() == ["b", "a"]
    (tmp_path / "c.csv").write_text("size,extra\n3,x\n")
    with pytest.raises(DataFileError, match="expected a column 'colour'"):
        loaded.predict_file(tmp_path / "c.csv")
    same_model(loaded.partial_fit_file(tmp_path / "a.csv"), model.partial_fit_file(tmp_path / "a.csv"))


def test_predictions_are_written_line_by_line(tmp_path, capfdbinary):
    texts, labels = documents(150, 3)
    path = write_text(tmp_path / "a.txt", texts, labels)
    model = HashedClassifier(n_bits=12).fit_file(path)
    predicted = model.predict(texts)
    bare = tmp_path / "bare.txt"
    bare.write_text("\n".join(texts))
    out = tmp_path / "out.txt"
    assert model.predict_file(bare, out) == 150
    assert out.read_text().splitlines() == predicted.tolist()
    model.predict_file(path, tmp_path / "out.gz")
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().splitlines() == predicted.tolist()
    model.predict_file(path, "-", top=2)
    lines = capfdbinary.readouterr().out.decode().splitlines()
    names, scores = model.top_k(texts, 2)
    assert lines[5].split("\t") == [names[5, 0], f"{scores[5, 0]:.6f}", names[5, 1], f"{scores[5, 1]:.6f}"]
    model.predict_file(path, out, proba=True)
    name, p = out.read_text().splitlines()[7].split("\t")
    assert (name, p) == (predicted[7], f"{model.predict_proba(texts)[7].max():.6f}")
    np.testing.assert_array_equal(model.predict_file(path, proba=True), model.predict_proba(texts))
    with pytest.raises(ValueError, match="top needs an output"):
        model.predict_file(path, top=2)
    bare.write_text("")
    assert model.predict_file(bare).shape == (0,)


def test_a_failed_prediction_leaves_the_old_output(tmp_path):
    lines = b'{"label": "a", "text": "x yy"}\n{"label": "b", "text": "zz"}\n'
    model = HashedClassifier(n_bits=8).fit_file(io.BytesIO(lines), "jsonl")
    (tmp_path / "bad.jsonl").write_text('{"text": "yy"}\n{"text": }\n')
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(DataFileError, match=r"bad\.jsonl:2: column 10: expected a value"):
        model.predict_file(tmp_path / "bad.jsonl", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.jsonl", "out.txt"]
    assert model.predict_file(tmp_path / "bad.jsonl", on_error="skip").tolist() == ["a"]
