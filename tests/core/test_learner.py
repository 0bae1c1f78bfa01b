"""The compiled learner against dictionaries of weights, step by step, and what its binding refuses."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core
from reference.online import CLASS_LOSSES, Learner

OPTIMIZERS = ("adagrad", "ftrl", "sgd")
RATES = {"adagrad": 1.0, "ftrl": 0.3, "sgd": 0.5}
N_CLASSES = 5


def problem(seed=0, n=20, n_features=12, target="sign"):
    """Sparse examples with values, as dictionaries, targets and weights."""
    random = np.random.default_rng(seed)
    X = (
        random.normal(size=(n, n_features))
        * (random.random((n, n_features)) < 0.5)
        * random.uniform(0.2, 3, n_features)
    )
    s = X @ random.normal(size=n_features)
    y = {
        "sign": lambda: np.where(s > 0, 1.0, -1.0),
        "number": lambda: (3 + s + random.normal(size=n)).astype(np.float32).astype(float),
        "count": lambda: random.poisson(np.exp(np.clip(0.3 * s, -3, 2))).astype(float),
        "class": lambda: (X @ random.normal(size=(n_features, N_CLASSES))).argmax(1),
    }[target]()
    rows = [{f: float(np.float32(row[f])) for f in np.flatnonzero(row)} for row in X]
    return rows, y, np.where(random.random(n) < 0.3, 2.5, 1.0)


def block(rows, **outputs):
    indptr = np.cumsum([0, *map(len, rows)])
    hashes = np.array([f for row in rows for f in row], np.uint64)
    values = np.array([v for row in rows for v in row.values()], np.float32)
    return _core.examples.Examples(indptr, hashes, values=values, **outputs)


def agree(model, reference, rows, y, weights, outputs, tolerance):
    examples = block(rows, weights=weights.astype(np.float32), **outputs)
    for i, (row, target, weight) in enumerate(zip(rows, y, weights, strict=True)):
        found = model.learn(examples, i, i + 1)
        expected = reference.learn(row, target, weight)
        assert found["loss"] == pytest.approx(weight * expected, rel=tolerance, abs=tolerance)
    scores = model.scores(examples)
    expected = [[reference.score(row, c) for c in range(scores.shape[1])] for row in rows]
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("penalty", [0.0, 0.01])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("loss", [*CLASS_LOSSES, "squared", "quantile", "huber", "poisson"])
def test_one_output_agrees_with_a_dictionary_of_weights_step_by_step(loss, optimizer, penalty):
    classes = loss in CLASS_LOSSES
    rows, y, weights = problem(target="sign" if classes else "count" if loss == "poisson" else "number")
    settings = {"alpha": 0.4, "quantile": 0.3, "epsilon": 0.7}
    l2 = max(penalty, 0.02) if optimizer == "sgd" else penalty
    rate = RATES[optimizer] * (0.2 if loss == "poisson" and optimizer != "adagrad" else 1)
    model = _core.learner.HashedModel(
        task="binary" if classes else "regression", loss=loss, n_bits=6, optimizer=optimizer, rate=rate,
        l1=penalty, l2=l2, scaled=True, **settings,
    )  # fmt: skip
    reference = Learner(loss, optimizer, rate, penalty, l2, settings=settings)
    if classes:
        model.set_labels(["-", "+"])
        outputs = {"labels": (y > 0).astype(np.int32), "label_names": ["-", "+"]}
    else:
        outputs = {"targets": y}
    agree(model, reference, rows, y, weights, outputs, 3e-4)


@pytest.mark.parametrize("hashing", ["joint", "separate", "two-stage"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_classes_agree_with_a_dictionary_of_weights_step_by_step(loss, optimizer, hashing):
    rows, y, weights = problem(1, target="class")
    l2 = 0.02 if optimizer == "sgd" else 0.0
    # 60 weights in 2^20 places: for these features no two share one.
    model = _core.learner.HashedModel(
        task="multiclass", loss=loss, n_bits=8 if hashing == "separate" else 20, optimizer=optimizer,
        label_hashing=hashing, rate=RATES[optimizer], l2=l2, alpha=0.4, scaled=True,
    )  # fmt: skip
    names = [f"class {c}" for c in range(N_CLASSES)]
    model.set_labels(names)
    settings = {"alpha": 0.4, "quantile": 0.5, "epsilon": 1.0}
    reference = Learner(loss, optimizer, RATES[optimizer], 0.0, l2, N_CLASSES, settings)
    agree(model, reference, rows, y, weights, {"labels": y.astype(np.int32), "label_names": names}, 3e-4)


def topics(n=200, n_classes=37, length=30, seed=0):
    """Documents of hashes without values."""
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n)
    words = np.where(random.random((n, length)) < 0.3, 1000 + 7 * y[:, None] + random.integers(0, 7, (n, length)),
                     random.integers(0, 300, (n, length)))  # fmt: skip
    hashes = np.random.default_rng(9).integers(0, 2**63, 3000, dtype=np.uint64)[words]
    return _core.examples.Examples(
        np.arange(n + 1) * length,
        hashes.ravel(),
        labels=y.astype(np.int32),
        label_names=[str(c) for c in range(n_classes)],
    )


@pytest.mark.parametrize("hashing", ["joint", "separate", "two-stage"])
@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_vector_loops_and_plain_loops_agree_to_the_last_bit(loss, hashing):
    before, states = _core.instruction_set(), []
    try:
        for name in _core.instruction_sets():
            _core.use_instruction_set(name)
            model = _core.learner.HashedModel(task="multiclass", loss=loss, n_bits=10, label_hashing=hashing)
            model.learn(topics())
            states.append((model.state()["table"], model.scores(topics(seed=1))))
    finally:
        _core.use_instruction_set(before)
    for table, scores in states[1:]:
        np.testing.assert_array_equal(table, states[0][0])
        np.testing.assert_array_equal(scores, states[0][1])


@pytest.mark.parametrize("hashing", ["joint", "two-stage"])
def test_weights_of_classes_spread_over_the_whole_table(hashing):
    model = _core.learner.HashedModel(task="multiclass", loss="log", n_bits=12, label_hashing=hashing, intercept=False)
    model.set_labels(["a", "b", "c"])
    n = 2000  # 6,000 weights into 4,096 places, of which balls in bins would leave exp(-1.46) empty
    hashes = np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64)
    model.learn(_core.examples.Examples(np.arange(n + 1), hashes, labels=np.zeros(n, np.int32), label_names=["a"]))
    used = (model.state()["table"].reshape(-1, 2, 16)[:, 1] > 0).mean()
    assert used == pytest.approx(1 - np.exp(-6000 / 4096), abs=0.04)


def test_scores_do_not_depend_on_threads_or_on_how_the_examples_are_cut():
    model = _core.learner.HashedModel(task="multiclass", loss="log", n_bits=12)
    model.learn(topics())
    examples = topics(seed=1)
    one = model.scores(examples)
    np.testing.assert_array_equal(one, model.scores(examples, threads=3))
    np.testing.assert_array_equal(one[50:70], model.scores(examples, 50, 70))
    labels, scores = model.top_k(examples, 4, threads=2)
    np.testing.assert_array_equal(labels, np.argsort(-one, axis=1, kind="stable")[:, :4])
    np.testing.assert_array_equal(scores, np.take_along_axis(one, labels, 1))


def test_labels_get_numbers_in_the_order_of_their_first_example():
    model = _core.learner.HashedModel(task="multiclass", loss="log", n_bits=8, label_hashing="separate")
    examples = _core.examples.Examples(
        np.arange(6),
        np.arange(5, dtype=np.uint64),
        labels=np.array([2, -1, 0, 2, 3], np.int32),
        label_names=["a", "b", "c", "é"],
    )
    figures = model.learn(examples)
    assert model.labels() == ["c", "a", "é"]
    assert figures["examples"] == 5
    assert figures["labelled"] == 4
    assert model.scores(examples).shape == (5, 3)


def test_separate_tables_keep_their_weights_when_labels_come():
    model = _core.learner.HashedModel(task="multiclass", loss="log", n_bits=8, label_hashing="separate")
    first = topics(n_classes=3)
    model.learn(first)
    before = model.scores(first)
    model.set_labels(model.labels() + [f"new {i}" for i in range(40)])
    np.testing.assert_array_equal(model.scores(first)[:, :3], before)
    assert not model.scores(first)[:, 3:].any()


def test_repeats_count_as_their_root_or_add_up():
    repeated = _core.examples.Examples(np.array([0, 5]), np.array([7, 3, 7, 7, 7], np.uint64), documents=True)
    for damped, value in ((True, 2.0), (False, 4.0)):
        model = _core.learner.HashedModel(
            task="regression", loss="squared", n_bits=4, optimizer="sgd", l2=0.1, damped=damped, intercept=False
        )
        table = np.zeros(16, np.float32)
        table[[3, 7]] = 1, 10
        model.set_state(table, np.empty(0, np.float32), np.zeros(1, np.float32), model.state()["counters"])
        assert model.scores(repeated)[0, 0] == 1 + 10 * value


def test_state_makes_the_same_model_again():
    model = _core.learner.HashedModel(task="multiclass", loss="hybrid", n_bits=9, alpha=0.2)
    model.learn(topics())
    again = _core.learner.HashedModel(**model.settings())
    again.set_labels(model.labels())
    again.set_state(**model.state())
    model.learn(topics(seed=2))
    again.learn(topics(seed=2))
    np.testing.assert_array_equal(model.state()["table"], again.state()["table"])
    np.testing.assert_array_equal(model.state()["counters"], again.state()["counters"])


def test_rows_become_examples_in_the_order_asked_for():
    indptr, indices, data = np.array([0, 2, 2, 4]), np.array([1, 5, 0, 2]), np.array([2.0, 3.0, 0.0, 4.0])
    examples = _core.examples.row_examples(indptr, indices, data, np.array([2, 0]), 6, 3, 0)
    assert examples.indptr.tolist() == [0, 1, 3]
    assert examples.hashes.tolist() == [2, 1, 5]  # columns themselves, without the zero
    assert examples.values.tolist() == [4, 2, 3]
    hashed = _core.examples.row_examples(indptr, indices, data, np.array([0]), 6, 2, 0)
    assert (hashed.hashes > 2**32).any()  # six columns do not fit into four weights


def test_documents_become_examples():
    examples = _core.examples.document_examples(["Aa bb", b"bb aa bb", ""], np.array([1, 0, 2]), "word", 1, 1, True, 0)
    a, b = examples.hashes.tolist()[1], examples.hashes.tolist()[0]
    assert examples.indptr.tolist() == [0, 3, 5, 5]
    assert examples.hashes.tolist() == [b, a, b, a, b]
    assert a != b


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bits": 0}, "n_bits"),
        ({"n_bits": 33}, "n_bits"),
        ({"n_bits": 3, "task": "multiclass"}, "at least 4"),
        ({"loss": "squared"}, "not one of this task"),
        ({"loss": "zero"}, "unknown loss 'zero'"),
        ({"optimizer": "adam"}, "unknown optimizer"),
        ({"optimizer": "sgd"}, "l2"),
        ({"rate": float("nan")}, "rate"),
        ({"l1": -1.0}, "l1"),
        ({"l2": float("inf")}, "l2"),
        ({"alpha": 2.0}, "alpha"),
        ({"quantile": 0.0}, "quantile"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"label_hashing": "none"}, "unknown label_hashing"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        _core.learner.HashedModel(**{"task": "binary", "loss": "log", "n_bits": 8} | change)


def test_wrong_calls_are_refused():
    model = _core.learner.HashedModel(task="binary", loss="log", n_bits=8)
    examples = topics(n_classes=2)
    model.learn(examples)
    with pytest.raises(ValueError, match="a third label came to a model of two"):
        model.learn(topics(n_classes=3))
    with pytest.raises(ValueError, match="begin and end"):
        model.learn(examples, 5, 4)
    with pytest.raises(ValueError, match="begin with those"):
        model.set_labels(["x"])
    with pytest.raises(ValueError, match="several classes"):
        model.top_k(examples, 1)
    with pytest.raises(ValueError, match="with labels"):
        model.learn(_core.examples.Examples(np.array([0, 0]), np.empty(0, np.uint64)))
    with pytest.raises(ValueError, match="numeric targets"):
        _core.learner.HashedModel(task="regression", loss="squared", n_bits=8).learn(examples)
    state = model.state()
    with pytest.raises(ValueError, match="table has the wrong length"):
        model.set_state(**{**state, "table": state["table"][:-1]})
    with pytest.raises(ValueError, match="finite"):
        model.set_state(**{**state, "table": np.full_like(state["table"], np.nan)})
    with pytest.raises(ValueError, match="order names"):
        _core.examples.row_examples(np.array([0, 1]), np.array([0]), np.array([1.0]), np.array([1]), 1, 4, 0)
    with pytest.raises(ValueError, match="out of range"):
        _core.examples.row_examples(np.array([0, 1]), np.array([3]), np.array([1.0]), np.array([0]), 1, 4, 0)
    with pytest.raises(TypeError, match="document 1 is not"):
        _core.examples.document_examples(["a", 3], np.array([0, 1]), "word", 1, 1, True, 0)


def test_scores_beyond_all_bounds_are_an_error():
    model = _core.learner.HashedModel(task="regression", loss="squared", n_bits=4, optimizer="sgd", l2=1e-6, rate=1e9)
    rows, y, _ = problem(target="number")
    with pytest.raises(RuntimeError, match="learning_rate"):
        model.learn(block(rows * 50, targets=np.tile(y, 50)))
