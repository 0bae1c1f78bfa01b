"""HashedClassifier: what it learns, that hashing costs little, and what it refuses."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC, LinearSVC

import mercer
from mercer import _core
from mercer.data import TextBuffer
from mercer.maps import RecordHasher, TextHasher
from mercer.online import HashedClassifier
from reference.contract import contract
from reference.histories import without_seconds

LOSSES = ("log", "hinge", "hybrid", "squared-hinge")
SOLVERS = ("adagrad", "ftrl", "sgd")
ONLINE = "the order of examples matters to an online learner, and weights are steps of another length"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ONLINE,
    "check_sample_weight_equivalence_on_sparse_data": ONLINE,
}


@contract(
    [
        HashedClassifier(),
        HashedClassifier("hinge"),
        HashedClassifier(solver="ftrl"),
        HashedClassifier(label_hashing="separate", n_bits=10),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_every_check_of_scikit_learn_passes(checks):
    checks()


def topics(n, n_classes, seed=0, length=30, own=10, vocabulary=6000, share=0.35):
    """Word counts: each class has words of its own among common ones, as in a directory of sites."""
    random = np.random.default_rng(seed)
    names = np.random.default_rng(1).integers(0, vocabulary, (n_classes, own))
    chance = 1 / np.arange(1, vocabulary + 1)
    y = random.integers(0, n_classes, n)
    common = random.choice(vocabulary, (n, length), p=chance / chance.sum())
    words = np.where(
        random.random((n, length)) < share, names[y[:, None], random.integers(0, own, (n, length))], common
    )
    rows = csr_array((np.ones(n * length), words.ravel(), np.arange(n + 1) * length), shape=(n, vocabulary))
    rows.sum_duplicates()
    return rows, y


# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "passes"), [("log", 2), ("hinge", 1)])
def test_joint_hashing_of_hundreds_of_classes_is_as_good_as_a_weight_for_each_pair(loss, passes):
    X, y = topics(3600, 300, share=0.5)
    test, truth = topics(600, 300, seed=1, share=0.5)
    unhashed = HashedClassifier(loss, 13, "separate", max_iter=passes).fit(X, y)  # nothing is shared
    joint = HashedClassifier(loss, 22, max_iter=passes).fit(X, y)
    two_stage = HashedClassifier(loss, 22, "two-stage", max_iter=passes).fit(X, y)
    best = unhashed.score(test, truth)
    assert best > 0.9
    assert joint.score(test, truth) >= best - 0.01
    assert two_stage.score(test, truth) >= best - 0.02


@pytest.mark.parametrize("hashing", ["joint", "two-stage"])
def test_model_bytes_do_not_depend_on_the_number_of_classes(hashing):
    sizes = [HashedClassifier(n_bits=12, label_hashing=hashing).fit(*topics(3 * m, m)).model_bytes_ for m in (20, 400)]
    assert sizes[0] == sizes[1] == 2**12 * 12


def test_separate_tables_cost_memory_for_each_class():
    sizes = [HashedClassifier(n_bits=6, label_hashing="separate").fit(*topics(400, m)).model_bytes_ for m in (20, 100)]
    assert sizes == [2**6 * (m * 8 + 4) for m in (20, 100)]


def test_a_wide_table_has_no_collisions_so_a_wider_one_gives_the_same_model():
    X, y = topics(500, 2)
    models = [HashedClassifier(n_bits=bits).fit(X, y) for bits in (13, 18)]
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))
    crowded = HashedClassifier(n_bits=8).fit(X, y)
    assert not np.array_equal(crowded.decision_function(X), models[0].decision_function(X))
    assert crowded.score(X, y) > 0.9


# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_sgd_comes_within_one_percent_of_the_exact_support_vector_machine(intercept):
    X, y = make_classification(500, 20, n_informative=6, flip_y=0.1, random_state=3)
    s, lam = np.where(y == 1, 1.0, -1.0), 0.01

    def objective(w, b):
        return lam / 2 * w @ w + np.maximum(0, 1 - s * (X @ w + b)).mean()

    if intercept:
        machine = SVC(kernel="linear", C=1 / (500 * lam), tol=1e-6).fit(X, y)
    else:
        machine = LinearSVC(loss="hinge", C=1 / (500 * lam), fit_intercept=False, tol=1e-8, max_iter=10**6).fit(X, y)
    exact = objective(machine.coef_[0], machine.intercept_)
    model = HashedClassifier("hinge", 5, solver="sgd", alpha=lam, max_iter=300, fit_intercept=intercept).fit(X, y)
    assert objective(model.coef_[0], model.intercept_[0]) <= 1.01 * exact


# ------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("optimizer", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_every_loss_and_optimizer_learns(loss, optimizer, n_classes):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < n_classes] / 16, y[y < n_classes]
    model = HashedClassifier(loss, 12, solver=optimizer, max_iter=3, alpha=1e-3 if optimizer == "sgd" else None).fit(
        X, y
    )
    assert model.score(X, y) > (0.98 if n_classes == 2 else 0.9)
    history = model.history_
    assert history["loss_since_last"][-1] < 0.6 * history["loss_since_last"][0]
    assert history["examples"][-1] == len(y)


def test_documents_are_learnt_without_a_matrix():
    texts = [
        "the red rose",
        "blue sky of may",
        "a green tree",
        "red and red again",
        "sky, so blue",
        "tree tree green",
    ] * 20
    labels = np.array(["r", "b", "g"] * 40)
    model = HashedClassifier(n_bits=14).fit(texts, labels)
    assert model.score(texts, labels) == 1
    np.testing.assert_array_equal(model.predict(np.array(texts)), labels)
    np.testing.assert_array_equal(model.predict([text.encode() for text in texts]), labels)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(AttributeError, match="documents"):
        _ = model.coef_


def test_series_and_arrow_columns_are_documents():
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    texts, labels = ["red rose", "blue sky"] * 20, [1, 0] * 20
    scores = HashedClassifier(n_bits=10).fit(texts, labels).decision_function(texts)
    for kind in (pandas.Series, polars.Series, pyarrow.array, lambda x: pyarrow.chunked_array([x[:3], x[3:]])):
        model = HashedClassifier(n_bits=10).fit(kind(texts), labels)
        np.testing.assert_array_equal(model.decision_function(kind(texts)), scores)
        np.testing.assert_array_equal(model.decision_function(kind(["", *texts])[1:]), scores)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_examples_of_a_buffer_are_those_of_its_documents(dtype):
    texts = ["red rose", "", "naïve 日本 blue", "\0a b\0", "sky"]
    buffer, order = TextBuffer(texts), np.array([4, 0, 2, 2, 3, 1])
    settings = {"analyzer": "char", "min_n": 1, "max_n": 3, "lowercase": True, "seed": 3}
    found = _core.examples.buffer_examples(buffer.data, buffer.offsets.astype(dtype), order, **settings)
    expected = _core.examples.document_examples(texts, order, **settings)
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    for offsets, wrong, message in [
        ([0, 3, 2], [1], "offsets"),
        ([0, 3, 99], [1], "offsets"),
        ([-1, 3], [0], "offsets"),
        ([0, 3], [1], "order"),
        ([], [0], "order"),
    ]:
        with pytest.raises(ValueError, match=message):
            _core.examples.buffer_examples(buffer.data, np.array(offsets, dtype), np.array(wrong), **settings)


def test_no_documents_have_no_predictions():
    texts, labels = ["red rose", "blue sky"] * 20, ["r", "b"] * 20
    model = HashedClassifier(n_bits=10).fit(texts, labels)
    for empty in ([], (), np.array([]), np.array([], dtype=str), TextBuffer([])):
        assert model.predict(empty).shape == (0,)
        assert model.predict_proba(empty).shape == (0, 2)
        assert model.top_k(empty, 2)[0].shape == (0, 2)
    np.testing.assert_array_equal(model.predict(TextBuffer(texts[:2])), labels[:2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("red rose", "wrap it in a list"),
        (Path("a.txt"), "fit_file"),
        (io.BytesIO(b"red rose"), "fit_file"),
        ((text for text in ["red", "blue"]), "a list of documents, got generator"),
        ({"red": 1}, "field 'red': expected a column"),
    ],
    ids=["str", "path", "file", "generator", "dict"],
)
def test_what_is_neither_array_nor_documents_is_named(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HashedClassifier(n_bits=10).fit(X, [0, 1])


def test_a_hasher_says_which_features_documents_have():
    texts, labels = ["not good", "good not", "very bad"] * 30, [0, 1, 1] * 30
    pairs = TextHasher(ngrams=(2, 2))
    assert HashedClassifier(n_bits=10, hasher=pairs).fit(texts, labels).score(texts, labels) == 1
    assert HashedClassifier(n_bits=10).fit(texts, labels).score(texts, labels) < 1  # words alone cannot tell


@pytest.mark.parametrize(
    "settings", [{"seed": 5}, {"analyzer": "char_wb", "ngrams": (2, 3)}, {"lowercase": False, "ngrams": (1, 2)}]
)
def test_the_weights_of_documents_stand_where_the_hasher_puts_their_features(settings):
    texts, labels = ["Not good, naïve", "good NOT", "very bad"] * 10, [0, 1, 1] * 10
    model = HashedClassifier(n_bits=12, solver="sgd", hasher=TextHasher(**settings)).fit(texts, labels)
    columns = np.unique(TextHasher(12, signed=False, **settings).transform(texts).indices)
    used = np.flatnonzero(model.model_.state()["table"])
    assert set(used) <= set(columns)
    assert len(used) > len(columns) / 2


@pytest.mark.parametrize("settings", [{"weighting": "tfidf"}, {"weighting": "log"}, {"norm": "l2"}])
def test_a_hasher_that_makes_other_values_than_counts_is_refused(settings, tmp_path):
    (tmp_path / "a.txt").write_text("a\tone\nb\ttwo\n")
    model = HashedClassifier(hasher=TextHasher(**settings))
    name = next(iter(settings))
    with pytest.raises(ValueError, match=f"this one has {name}=.*pipeline"):
        model.fit(["one", "two"], [0, 1])
    with pytest.raises(ValueError, match=f"this one has {name}=.*pipeline"):
        model.fit_file(tmp_path / "a.txt")


@pytest.mark.parametrize("hasher", ["words", RecordHasher(), TextHasher])
def test_a_hasher_is_one_of_texts_or_strings(hasher):
    with pytest.raises(TypeError, match="hasher must be a TextHasher, a StringHasher or None"):
        HashedClassifier(hasher=hasher).fit(["one", "two"], [0, 1])


def test_the_parameters_of_a_hasher_are_those_of_the_learner():
    model = clone(HashedClassifier(hasher=TextHasher())).set_params(hasher__ngrams=(2, 1))
    assert model.get_params()["hasher__ngrams"] == (2, 1)
    with pytest.raises(ValueError, match="ngrams must be a pair"):
        model.fit(["one", "two"], [0, 1])


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("optimizer", SOLVERS)
def test_partial_fit_in_chunks_equals_fit(n_classes, optimizer):
    X, y = topics(300, n_classes)
    whole = HashedClassifier(n_bits=12, shuffle=False, max_iter=1, solver=optimizer).fit(X, y)
    parts = HashedClassifier(n_bits=12, solver=optimizer)
    for begin in range(0, 300, 70):
        parts.partial_fit(X[begin : begin + 70], y[begin : begin + 70], classes=range(n_classes))
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.progressive_loss_ == pytest.approx(whole.progressive_loss_, rel=1e-12)


def test_labels_may_come_later():
    X, y = topics(600, 9)
    old = y < 5
    model = HashedClassifier(n_bits=16).partial_fit(X[old], y[old])
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    for _ in range(3):
        model.partial_fit(X, y)
    assert model.classes_.tolist() == list(range(9))
    assert model.score(X, y) > 0.95
    with pytest.raises(ValueError, match="third one"):
        HashedClassifier(n_bits=16).partial_fit(X[y < 2], y[y < 2]).partial_fit(X, y)


def test_a_failed_call_leaves_the_model_as_it_was():
    X, y = topics(200, 3)
    model = HashedClassifier(n_bits=12).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError):
        model.fit(X, np.zeros(200))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_weights_stand_for_repeats():
    X, y = topics(300, 2, seed=4)
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(300), weights.astype(int))
    once = HashedClassifier(n_bits=13, shuffle=False, max_iter=1).fit(X, y, weights).decision_function(X)
    twice = HashedClassifier(n_bits=13, shuffle=False, max_iter=1).fit(X[repeated], y[repeated]).decision_function(X)
    plain = HashedClassifier(n_bits=13, shuffle=False, max_iter=1).fit(X, y).decision_function(X)
    assert np.abs(once - twice).mean() < 0.5 * np.abs(plain - twice).mean()
    same = HashedClassifier(n_bits=13, shuffle=False, max_iter=1, class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    given = HashedClassifier(n_bits=13, shuffle=False, max_iter=1).fit(X, y, np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(same.decision_function(X), given.decision_function(X))


def test_balanced_weights_help_a_rare_class():
    X, y = make_classification(2000, 10, weights=[0.95], class_sep=0.6, random_state=0)
    plain = HashedClassifier(n_bits=8, max_iter=1).fit(X, y)
    balanced = HashedClassifier(n_bits=8, max_iter=1, class_weight="balanced").fit(X, y)
    assert balanced.predict(X)[y == 1].mean() > plain.predict(X)[y == 1].mean() + 0.1
    with pytest.raises(ValueError, match="balanced"):
        HashedClassifier(class_weight="balanced").partial_fit(X, y)


def test_the_progressive_loss_is_that_of_examples_not_yet_seen():
    X, y = topics(400, 2)
    X.data[:] = 1
    model, losses = HashedClassifier(n_bits=13), []
    for i in range(400):
        if i:
            p = np.clip(model.predict_proba(X[i : i + 1])[0, y[i]], 1e-30, 1)
            losses.append(-np.log(p))
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert model.progressive_loss_ == pytest.approx((sum(losses) + np.log(2)) / 400, rel=1e-4)


def test_l1_of_ftrl_makes_sparse_weights():
    X, y = topics(600, 2)
    dense = HashedClassifier(n_bits=13, solver="ftrl").fit(X, y)
    sparse = HashedClassifier(n_bits=13, solver="ftrl", penalty="l1", alpha=1.0).fit(X, y)
    assert (sparse.coef_ != 0).sum() < 0.2 * (dense.coef_ != 0).sum()
    assert sparse.score(X, y) > 0.9


# ------------------------------------------------------------------------------------------- prediction


def test_top_k_are_the_best_scores_in_order():
    X, y = topics(300, 20)
    model = HashedClassifier(n_bits=14).fit(X, y)
    labels, scores = model.top_k(X, 3)
    all_scores = model.decision_function(X)
    np.testing.assert_array_equal(scores, -np.sort(-all_scores, axis=1)[:, :3])
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    np.testing.assert_array_equal(HashedClassifier(n_bits=14, n_jobs=2).fit(X, y).top_k(X, 3)[1], scores)
    with pytest.raises(ValueError, match="at most the number of classes"):
        model.top_k(X, 21)
    two = HashedClassifier(n_bits=14).fit(X, y % 2)
    labels, scores = two.top_k(X, 2)
    np.testing.assert_array_equal(labels[:, 0], two.predict(X))
    assert (scores[:, 0] >= scores[:, 1]).all()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_columns_have_coefficients(n_classes):
    X, y = topics(300, n_classes, vocabulary=200)
    model = HashedClassifier(n_bits=10).fit(X, y)
    scores = model.decision_function(X).reshape(300, -1)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, scores, atol=1e-4)


def test_probabilities_come_with_log_and_hybrid_only():
    X, y = topics(300, 4)
    p = HashedClassifier("hybrid", 12).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for loss in ("hinge", "squared-hinge"):
        assert not hasattr(HashedClassifier(loss), "predict_proba")


# ------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("hashing", ["joint", "separate", "two-stage"])
@pytest.mark.parametrize("optimizer", SOLVERS)
def test_a_saved_model_goes_on_learning_bit_for_bit(tmp_path, hashing, optimizer):
    X, y = topics(300, 6)
    model = HashedClassifier(n_bits=10, label_hashing=hashing, solver=optimizer, class_weight={2: 3.0}).fit(X, y)
    mercer.save(model, tmp_path / "m.mercer")
    again, copied = mercer.load(tmp_path / "m.mercer"), pickle.loads(pickle.dumps(model))
    assert again.get_params()["class_weight"][2] == 3.0
    for other in (again, copied):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        assert without_seconds(other.history_) == without_seconds(model.history_)
    X, y = topics(300, 6, seed=2)
    for each in (model, again, copied):
        each.partial_fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))


def test_a_model_of_documents_comes_back_with_its_hasher(tmp_path):
    texts, labels = ["not good", "good not", "very bad"] * 30, ["a", "b", "b"] * 30
    model = HashedClassifier(n_bits=22, hasher=TextHasher(ngrams=(1, 2), seed=3)).fit(texts, labels)
    mercer.save(model, tmp_path / "m.mercer")
    assert (tmp_path / "m.mercer").stat().st_size < 10_000  # of 32 MiB, the lines that are in use
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))
    assert again.classes_.tolist() == ["a", "b"]
    assert isinstance(again.hasher, TextHasher)
    assert again.hasher.get_params() == model.hasher.get_params()


def test_ctrl_c_keeps_the_model_so_far(monkeypatch):
    X, y = topics(300, 2)
    model = HashedClassifier(n_bits=12, max_iter=50)
    calls = []
    outputs = HashedClassifier._outputs

    def interrupting(self, y, weights):
        of = outputs(self, y, weights)

        def part(rows):
            calls.append(len(rows))
            if len(calls) == 10:
                raise KeyboardInterrupt
            return of(rows)

        return part

    monkeypatch.setattr(HashedClassifier, "_outputs", interrupting)
    model.fit(X, y)
    assert model.interrupted_
    assert len(calls) == 10
    assert model.score(X, y) > 0.9


# ------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "squared"}, "loss must be one of"),
        ({"label_hashing": "none"}, "label_hashing must be one of"),
        ({"solver": "adam"}, "solver must be one of"),
        ({"counts": "cubed"}, "counts must be one of"),
        ({"n_bits": 0}, "n_bits"),
        ({"n_bits": 33}, "32 GiB"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"n_bits": 3}, "at least 4"),
        ({"alpha": -1}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"penalty": "l3"}, "unknown penalty"),
        ({"solver": "sgd", "penalty": "l1", "alpha": 0.1}, "needs alpha > 0"),
        ({"solver": "sgd", "penalty": "elasticnet", "alpha": 0.1, "l1_ratio": 1.0}, "l1_ratio below 1"),
        ({"solver": "ftrl", "penalty": "l1"}, "needs alpha, its factor"),
        ({"penalty": "elasticnet"}, "needs alpha, its factor"),
        ({"solver": "sgd", "alpha": 0.0}, "needs alpha > 0"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"log_share": 1.5}, "log_share must"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"class_weight": {0: -1.0}}, "class_weight must not be negative"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    X, y = topics(30, 3)
    with pytest.raises(ValueError, match=message):
        HashedClassifier(**{"n_bits": 8} | change).fit(X, y)


def test_wrong_data_are_refused():
    X, y = topics(30, 3)
    model = HashedClassifier(n_bits=8)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 2), np.nan), [0, 1, 2])
    with pytest.raises(ValueError, match="finite in single precision"):
        model.fit(np.full((3, 2), 1e300), [0, 1, 2])
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(30))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, -np.ones(30))
    with pytest.raises(ValueError, match="wrap it in a list"):
        model.fit("a text", [0])
    with pytest.raises(ValueError, match="2 documents and 3 values"):
        model.fit(["a", "b"], [0, 1, 0])
    with pytest.raises(TypeError, match="document 1"):
        model.fit(["a", None], [0, 1])
    with pytest.raises(ValueError):
        model.fit([["a", "b"]], [0])
    model.fit(X, y)
    with pytest.raises(ValueError, match="learnt from arrays"):
        model.predict(["a document"])
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match="learnt from documents"):
        HashedClassifier(n_bits=8).fit(["aa", "bb"], [0, 1]).predict(X)


def test_tables_beyond_the_memory_of_the_machine_are_refused():
    X, y = topics(2000, 1000)
    with pytest.raises(MemoryError, match=r"2\^32 weights for each of .* GiB"):
        HashedClassifier(n_bits=32, label_hashing="separate").fit(X, y)


def test_series_of_objects_and_of_lone_surrogates_are_read_as_lists_are():
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    texts, y = ["good movie", "bad film", "good film", "bad movie"] * 10, [1, 0, 1, 0] * 10
    model = HashedClassifier().fit(texts, y)
    found = model.decision_function(pl.Series(texts, dtype=pl.Object))
    np.testing.assert_array_equal(found, model.decision_function(texts))
    odd = ["good \ud800 day", "bad day"]
    found = model.decision_function(pd.Series(odd, dtype="string[python]"))
    np.testing.assert_array_equal(found, model.decision_function(odd))


# ------------------------------------------------------------------------------------------------ passes


def test_few_rows_are_passed_over_more_often_by_default():
    X, y = load_digits(return_X_y=True)
    X, y = X / 16.0, y
    once, often = (HashedClassifier(n_bits=16, **given).fit(X[:300], y[:300]) for given in ({"max_iter": 1}, {}))
    assert (once.n_iter_, often.n_iter_) == (1, 16)
    assert often.score(X[300:], y[300:]) > once.score(X[300:], y[300:]) + 0.01
    assert often.progressive_loss_ == once.progressive_loss_  # that of the first pass


@pytest.mark.parametrize(("rows", "passes"), [(2, 16), (6250, 16), (10_000, 10), (60_000, 2), (100_000, 1), (10**6, 1)])
def test_the_passes_visit_about_a_hundred_thousand_rows(rows, passes):
    X = np.arange(2.0)[np.arange(rows) % 2][:, None]
    assert HashedClassifier(n_bits=2).fit(X, X[:, 0] > 0).n_iter_ == passes
    assert HashedClassifier(n_bits=2, max_iter=1).fit(X, X[:, 0] > 0).n_iter_ == 1


@pytest.mark.parametrize(("documents", "passes"), [(300, 16), (1000, 6), (2000, 3), (3000, 2), (6000, 1)])
def test_the_passes_visit_about_six_thousand_documents(documents, passes):
    labels = ["a", "b"] * (documents // 2)
    assert HashedClassifier(n_bits=4).fit(labels, labels).n_iter_ == passes


def test_small_files_are_learnt_as_arrays_and_streams_in_one_pass(tmp_path):
    texts, labels = ["a b", "c d", "a d", "b c"] * 5, ["x", "y", "x", "y"] * 5
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)))
    once = HashedClassifier(n_bits=8, shuffle=False, max_iter=1).fit(texts, labels)
    for model in (
        HashedClassifier(n_bits=8, max_iter=1).fit_file(path),
        HashedClassifier(n_bits=8).partial_fit_file(path),
        HashedClassifier(n_bits=8).partial_fit(texts, labels),
    ):
        np.testing.assert_array_equal(model.decision_function(texts), once.decision_function(texts))
    small, array = HashedClassifier(n_bits=8).fit_file(path), HashedClassifier(n_bits=8).fit(texts, labels)
    assert small.n_iter_ == array.n_iter_ == 16
    np.testing.assert_array_equal(small.decision_function(texts), array.decision_function(texts))


@pytest.mark.parametrize("passes", [0, -1, 1.5, "many", None, True])
def test_other_passes_are_refused(passes):
    with pytest.raises(ValueError, match="max_iter must be 'auto' or an integer"):
        HashedClassifier(max_iter=passes).fit([[0.0], [1.0]], [0, 1])


def test_the_number_of_passes_is_saved(tmp_path):
    model = HashedClassifier(n_bits=8).fit([[0.0], [1.0]], [0, 1])
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    assert (loaded.max_iter, loaded.n_iter_) == ("auto", 16)
