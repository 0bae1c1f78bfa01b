"""Generators keep their promises; loaders find their files, or say where they looked."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mercer.datasets import (
    load_basenp,
    load_conll2000,
    load_conll2002,
    make_chain_task,
    make_digit_codes,
)
from mercer.metrics import is_span_labelling

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCER_DATA"), reason="set MERCER_DATA to the folder of public data sets"
)


# ---------------------------------------------------------------------------------------------- corpora


@needs_data
@pytest.mark.parametrize(
    ("subset", "n_sentences", "n_tokens", "n_tags"),
    [("train", 8936, 211_727, 22), ("test", 2012, 47_377, 19)],
)
def test_conll2000_is_complete(subset: str, n_sentences: int, n_tokens: int, n_tags: int) -> None:
    sentences = load_conll2000(subset)
    tags = {row[2] for s in sentences for row in s}
    assert (len(sentences), sum(map(len, sentences)), len(tags)) == (n_sentences, n_tokens, n_tags)
    assert is_span_labelling(tags)


@needs_data
@pytest.mark.parametrize(
    ("language", "subset", "n_sentences"),
    [
        ("esp", "train", 8323),
        ("esp", "testa", 1915),
        ("esp", "testb", 1517),
        ("ned", "train", 15_806),
        ("ned", "testa", 2895),
        ("ned", "testb", 5195),
    ],
)
def test_conll2002_is_complete_and_without_docstart(language: str, subset: str, n_sentences: int) -> None:
    sentences = load_conll2002(language, subset)
    assert len(sentences) == n_sentences
    assert len({row[2] for s in sentences for row in s}) == 9
    assert not any(row[0] == "-DOCSTART-" for s in sentences for row in s)


@needs_data
@pytest.mark.parametrize(("subset", "n_sentences", "n_tokens"), [("train", 77, 1896), ("test", 823, 19_172)])
def test_basenp_is_complete(subset: str, n_sentences: int, n_tokens: int) -> None:
    sentences = load_basenp(subset)
    assert (len(sentences), sum(map(len, sentences))) == (n_sentences, n_tokens)
    assert {row[2] for s in sentences for row in s} == {"B", "I", "O"}


def test_docstart_tokens_are_taken_out_and_the_sentence_stays(tmp_path: Path) -> None:
    (tmp_path / "conll2002").mkdir()
    text = "-DOCSTART- -DOCSTART- O\nDe Art O\n\ntekst N O\n\n-DOCSTART- -DOCSTART- O\n"
    (tmp_path / "conll2002" / "ned.testa").write_text(text)
    sentences = load_conll2002("ned", "testa", data_home=tmp_path)
    assert sentences == [[("De", "Art", "O")], [("tekst", "N", "O")]]


def test_data_home_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home, word in (("argument", "a"), ("environment", "e")):
        (tmp_path / home / "basenp-crfpp").mkdir(parents=True)
        (tmp_path / home / "basenp-crfpp" / "train.data").write_text(f"{word} NN B\n")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "environment"))
    assert load_basenp()[0][0][0] == "e"
    assert load_basenp(data_home=tmp_path / "argument")[0][0][0] == "a"


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_data_home_the_error_says_what_to_do(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("MERCER_DATA", value)
    with pytest.raises(FileNotFoundError, match=r"pass data_home=\.\.\., or set the environment variable MERCER_DATA"):
        load_conll2000()


def test_a_missing_folder_or_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"data_home is the folder .*nowhere', which does not exist"):
        load_conll2000(data_home=tmp_path / "nowhere")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="MERCER_DATA is the folder"):
        load_conll2000()
    with pytest.raises(FileNotFoundError, match=r"'conll2000' needs the file train\.txt or train\.txt\.gz"):
        load_conll2000(data_home=tmp_path)


def test_unknown_subsets_are_refused_before_looking_for_files() -> None:
    with pytest.raises(ValueError, match="subset must be one of 'train', 'test', found 'dev'"):
        load_conll2000("dev")
    with pytest.raises(ValueError, match="language must be one of 'esp', 'ned', found 'deu'"):
        load_conll2002("deu")
    with pytest.raises(ValueError, match="subset must be one of 'train', 'testa', 'testb', found 'test'"):
        load_conll2002("esp", "test")
    with pytest.raises(ValueError, match="subset must be one of"):
        load_basenp("all")


# ---------------------------------------------------------------------------------------------- chains


def test_chain_task_has_the_stated_shape() -> None:
    task = make_chain_task(n_train=30, n_test=20)
    assert (len(task.X_train), len(task.y_train), len(task.X_test), len(task.y_test)) == (30, 30, 20, 20)
    for x, y in zip(task.X_train + task.X_test, task.y_train + task.y_test, strict=True):
        assert len(x) == len(y) == 25
        assert all(len(token) == len(set(token)) == 15 for token in x)
    labels = {label for y in task.y_train for label in y}
    assert labels <= {f"L{k:02d}" for k in range(20)}
    assert all(0 <= int(f.removeprefix("f")) < 5000 for x in task.X_train for token in x for f in token)


def test_chain_lengths_may_vary() -> None:
    lengths = {len(y) for y in make_chain_task(n_train=200, n_test=0, length=(2, 5)).y_train}
    assert lengths == {2, 3, 4, 5}


def test_chain_labels_follow_a_sparse_chain() -> None:
    task = make_chain_task(n_train=300, n_test=100)
    followers: dict[str, set[str]] = {}
    for y in task.y_train + task.y_test:
        for a, b in pairwise(y):
            followers.setdefault(a, set()).add(b)
    assert max(map(len, followers.values())) <= 6


def test_chain_features_speak_of_their_label() -> None:
    # Noise alone spreads a feature over the labels as the labels are spread; the pools must show through it.
    task = make_chain_task(n_train=300, n_test=0, n_labels=4)
    counts = np.zeros((5000, 4))
    for x, y in zip(task.X_train, task.y_train, strict=True):
        for token, label in zip(x, y, strict=True):
            counts[[int(f[1:]) for f in token], int(label[1:])] += 1
    share = counts.sum(axis=0) / counts.sum()
    excess = np.clip(counts - counts.sum(axis=1, keepdims=True) * share, 0, None).sum() / counts.sum()
    assert 0.1 < excess < 0.3


@pytest.mark.parametrize("make", [make_chain_task, make_digit_codes])
def test_the_same_seed_gives_the_same_task(make) -> None:
    first, again, other = (make(n_train=5, n_test=3, random_state=seed) for seed in (1, 1, 2))
    assert first.y_train == again.y_train
    assert all(np.array_equal(a, b) for a, b in zip(first.X_test, again.X_test, strict=True))
    assert first.y_train != other.y_train


def test_a_token_may_use_every_feature_there_is() -> None:
    task = make_chain_task(n_train=3, n_test=1, length=4, n_labels=2, n_features=6, active=6)
    assert all(sorted(token) == [f"f{k}" for k in range(6)] for x in task.X_train for token in x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_labels": 0}, "n_labels must be at least 1, found 0"),
        ({"length": 0}, "length must be at least 1, found 0"),
        ({"length": (5, 3)}, r"low <= high, found \(5, 3\)"),
        ({"n_test": -1}, "n_test must not be negative, found -1"),
        ({"active": 11, "n_features": 10}, "active must be at most n_features = 10, found 11"),
    ],
)
def test_impossible_chain_tasks_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_chain_task(**arguments)


# ---------------------------------------------------------------------------------------------- digits

KEYPAD = {"1": (0, 0), "2": (0, 1), "3": (0, 2), "4": (1, 0), "5": (1, 1), "6": (1, 2), "7": (2, 0)}
KEYPAD |= {"8": (2, 1), "9": (2, 2), "0": (3, 1)}


def test_neighbouring_digits_are_neighbouring_keys() -> None:
    codes = make_digit_codes(n_train=100, n_test=50)
    steps = set()
    for y in codes.y_train + codes.y_test:
        for a, b in pairwise(y):
            (r, c), (s, d) = KEYPAD[a], KEYPAD[b]
            assert abs(r - s) + abs(c - d) == 1
            steps.add(a + b)
    assert len(steps) == 26  # every step that the keypad allows is taken


def test_codes_are_scaled_arrays_with_pictures() -> None:
    codes = make_digit_codes(n_train=20, n_test=10)
    assert (len(codes.X_train), len(codes.X_test)) == (20, 10)
    for subset, X, Y in (("train", codes.X_train, codes.y_train), ("test", codes.X_test, codes.y_test)):
        for x, y, picture in zip(X, Y, codes.images(subset), strict=True):
            assert 6 <= len(y) <= 10
            assert x.shape == (len(y), 64)
            assert x.dtype == np.float64
            assert x.min() >= 0
            assert x.max() <= 1
            assert np.array_equal(picture, x.reshape(-1, 8, 8))
    with pytest.raises(ValueError, match="subset must be 'train' or 'test', found 'dev'"):
        codes.images("dev")


def test_train_and_test_codes_share_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.datasets.digits._NOISE", 0.0)
    codes = make_digit_codes(n_train=300, n_test=300)
    train = {row.tobytes() for x in codes.X_train for row in x}
    test = {row.tobytes() for x in codes.X_test for row in x}
    assert len(train) > 800
    assert len(test) > 500
    assert train.isdisjoint(test)


def test_a_digit_alone_is_hard_to_read_and_its_neighbours_help() -> None:
    from sklearn.linear_model import LogisticRegression

    codes = make_digit_codes()
    model = LogisticRegression(max_iter=1000).fit(np.vstack(codes.X_train), np.concatenate(codes.y_train))
    truth = np.concatenate(codes.y_test)
    alone = np.vstack(codes.X_test)
    accuracy = np.mean(model.predict(alone) == truth)
    assert 0.7 < accuracy < 0.85

    # the true left neighbour, by the keypad's rules alone, must rule out most of the mistakes
    allowed = np.array(
        [
            [abs(KEYPAD[a][0] - KEYPAD[b][0]) + abs(KEYPAD[a][1] - KEYPAD[b][1]) == 1 for b in "0123456789"]
            for a in "0123456789"
        ]
    )
    right = total = 0
    for x, y in zip(codes.X_test, codes.y_test, strict=True):
        scores = np.where(allowed[[int(d) for d in y[:-1]]], model.decision_function(x[1:]), -np.inf)
        right += np.sum(model.classes_[scores.argmax(axis=1)] == np.array(y[1:]))
        total += len(y) - 1
    assert right / total > accuracy + 0.1
