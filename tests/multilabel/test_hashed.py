"""A tree of labels over hashed features: against the products of its nodes by hand, files, many labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer import _core
from mercer.multilabel import HashedLabelSets
from mercer.multilabel.hashed import DEPTH
from mercer.online import FileFormat


def task(n: int = 400, T: int = 40, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows with a feature for each label, and noise."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, T)) < 2 / T).astype(int)
    X = np.hstack([Y * (rng.random((n, T)) < 0.9), rng.random((n, 20)) < 0.1]).astype(float)
    X[:, -1] = 1.0
    return sp.csr_matrix(X), Y


def test_labels_that_have_features_are_learned():
    X, Y = task(1500)
    model = HashedLabelSets(16, random_state=0).fit(X[:1200], Y[:1200])
    assert model.score(X[1200:], Y[1200:]) > 0.85
    assert 0 < model.threshold_ < 1


def test_probabilities_are_products_along_the_paths_and_the_search_finds_the_best():
    X, Y = task(200, 40)
    model = HashedLabelSets(14, random_state=0).fit(X, Y)
    P = model.predict_proba(X[:20])
    assert P.shape == (20, 40)
    assert ((P > 0) & (P < 1)).all()
    top = model.predict(X[:20], n_labels=3)
    for row, p in zip(top, P, strict=True):
        assert set(np.flatnonzero(row)) == set(np.argsort(-p, kind="stable")[:3])
    given = model.predict(X[:20])
    assert np.array_equal(given > 0, np.float32(model.threshold_) <= P.astype(np.float32))


def test_one_update_by_hand():
    """One example, one feature and the constant, two of three labels: a step of AdaGrad from 0."""
    block = _core.examples.Examples(np.array([0, 1]), np.array([7], np.uint64))
    weights, squares = np.zeros(1 << 10, np.float32), np.zeros(1 << 10, np.float32)
    loss = _core.joint.learn_label_sets(
        block, np.array([0, 2]), np.array([0, 2], np.int32), weights, squares, 3, DEPTH, 0.5
    )
    assert loss == pytest.approx(3 * np.log(2), rel=1e-5)
    step = 0.5 * 0.5 / np.sqrt(0.25 + 0.01)
    used = weights[weights != 0]
    assert np.allclose(np.sort(used), np.sort([step, -step, step] * 2), rtol=1e-5)
    _, labels, p = _core.joint.likely_labels(block, weights, 3, DEPTH, 0.0, 10, 1)
    assert np.allclose(p[np.argsort(labels)], 1 / (1 + np.exp(np.array([-2, 2, -2]) * step)), rtol=1e-5)


def test_threads_and_the_form_of_labels_change_nothing():
    X, Y = task()
    a = HashedLabelSets(14, random_state=0).fit(X, Y)
    b = HashedLabelSets(14, random_state=0, n_jobs=2).fit(X, sp.csr_matrix(Y))
    assert np.array_equal(a.predict(X), b.predict(X).toarray())


@pytest.mark.parametrize("form", ["svm", "txt", "csv", "jsonl"])
def test_files_are_learned_like_what_they_hold(form, tmp_path):
    rng = np.random.default_rng(0)
    words, lines = ["sea", "sky", "sun", "tree"], []
    for _ in range(300):
        row = rng.random(4) < 0.4
        names = [w for w, on in zip(words, row, strict=True) if on]
        labels = ",".join(names)
        text = " ".join([*names, str(rng.choice(["a", "b", "c"]))])
        lines.append({
            "svm": f"{labels or 'none'} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero([*row, True])),
            "txt": f"{labels or 'none'}\t{text}",
            "csv": f'"{labels or "none"}",{text}',
            "jsonl": f'{{"label": "{labels or "none"}", "text": "{text}"}}',
        }[form])  # fmt: skip
    path = tmp_path / f"train.{form}"
    header = "label,text\n" if form == "csv" else ""
    path.write_text(header + "\n".join(lines) + "\n")
    said = {"svm": "svmlight", "txt": "text"}.get(form, FileFormat(label="label", text=["text"]))
    model = HashedLabelSets(14, max_iter=5).fit_file(path, said)
    assert set(model.classes_) == {*words, "none"}
    found = model.predict_file(path, said)
    truth = [line.split(" ")[0].split("\t")[0] for line in lines] if form in ("svm", "txt") else None
    if truth is not None:
        assert np.mean([sorted(a) == sorted(b.split(",")) for a, b in zip(found, truth, strict=True)]) > 0.9
    assert len(found) == 300


def test_texts_and_model_files(tmp_path):
    texts = ["blue sky over the sea", "the sea at night", "a clear sky", "rain in town"] * 10
    labels = [["sea", "sky"], ["sea"], ["sky"], []] * 10
    model = HashedLabelSets(14, max_iter=5, random_state=0).fit(texts, labels)
    assert model.predict(texts[:4]) == labels[:4]
    mercer.save(model, tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.predict(texts[:4]) == labels[:4]
    with pytest.raises(ValueError, match="learnt from documents"):
        model.predict(np.zeros((1, 3)))


def test_work_does_not_grow_with_the_number_of_labels():
    """An example touches the lines of its own path: at most (depth) × (features) of them for one label."""
    block = _core.examples.Examples(np.array([0, 3]), np.arange(3, dtype=np.uint64) + 100)
    for T in (1000, 30_000):
        weights, squares = np.zeros(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
        args = np.array([0, 1]), np.array([T // 2], np.int32), weights, squares, T, DEPTH, 0.5
        _core.joint.learn_label_sets(block, *args)
        lines = np.count_nonzero(squares.reshape(-1, 16).any(axis=1))
        assert lines <= 4 * np.ceil(np.log(T) / np.log(16))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_bits": 3}, "n_bits"),
        ({"n_bits": 40}, "at most 32"),
        ({"max_iter": 0}, "max_iter"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"threshold": 2}, "probability"),
        ({"threshold": "best"}, "threshold"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        HashedLabelSets(**params).fit(*task(50))


def test_wrong_inputs_are_named(tmp_path):
    X, Y = task(60)
    model = HashedLabelSets(10).fit(X, Y)
    with pytest.raises(ValueError, match="n_labels is 99"):
        model.predict(X, n_labels=99)
    with pytest.raises(ValueError, match="rows"):
        HashedLabelSets(10).fit(X, Y[:-1])
    empty = tmp_path / "empty.svm"
    empty.write_text("")
    with pytest.raises(ValueError, match=r"no examples|empty"):
        HashedLabelSets(10).fit_file(empty, "svmlight")
    with pytest.raises(ValueError, match="label_separator"):
        HashedLabelSets(10).fit_file(empty, label_separator="")
