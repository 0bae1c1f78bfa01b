"""Risks over parts: the same weights to the last bit wherever the parts lie, and the optimum of the whole."""

from __future__ import annotations

import copy
import warnings
from itertools import pairwise

import numpy as np
import pytest

from mercer.alignment import Aligner
from mercer.classification import LinearClassifier
from mercer.data import Partitions, Sequences, Store, StoreError
from mercer.labeling import GraphLabeler
from mercer.learning.partitioned import EmptyRisk, PartitionedRisk, TreeSum, prepare
from mercer.learning.risk import Risk
from mercer.ranking import LabelRanker, Ranker
from mercer.tagging import Tagger


def sentences(n=24, seed=0):
    random = np.random.default_rng(seed)
    X = [[{"w": f"w{j}", "s": f"{j % 7}"} for j in random.integers(30, size=random.integers(1, 7))] for _ in range(n)]
    y = [["ABCD"[int(token["w"][1:]) % 4 if random.random() < 0.9 else 0] for token in x] for x in X]
    return X, y


def stored(parts, path):
    store = Store(path)
    for part in parts:
        store.append(*part)
    return store


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_sums_do_not_depend_on_the_order_of_arrival(n):
    random = np.random.default_rng(n)
    values = random.normal(size=n) * 10.0 ** random.integers(-8, 8, size=n)
    found = set()
    for _ in range(5):
        whole, *some = [TreeSum(n, lambda a, b: a + b) for _ in range(3)]
        for i in random.permutation(n):
            some[random.integers(2)].put(0, int(i), values[i])
        for tree in some:
            for node in tree.pending():
                whole.put(*node)
        found.add(whole.result())
    assert len(found) == 1
    assert found.pop() == pytest.approx(values.sum())


SETTINGS = [
    {},
    {"penalty": "l1"},
    {"loss": "hinge", "random_state": 0, "tol": 0.01},
    {"loss": "hinge", "solver": "cutting-plane", "tol": 0.01},
    {"loss": "hinge", "solver": "subgradient", "random_state": 0, "max_iter": 3},
    {"loss": "squared-hinge", "solver": "bmrm", "tol": 0.05},
    {"loss": "relative-margin", "tol": 0.01},
    {"transitions": "features"},
    {"transitions": "observed"},
    {"weights": "all"},
    {"solver": "averaged-perceptron", "random_state": 0, "max_iter": 3},
    {"solver": "sgd", "random_state": 0},
    {"features": "hashing", "n_bits": 8},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())) or "default")
def test_memory_and_store_give_the_same_weights(tmp_path, settings):
    X, y = sentences()
    parts = Partitions.split(X, y, n=5)
    store = Store(tmp_path / "s")
    for part in parts:
        store.append(part.X, part.y, n_bits=settings.get("n_bits", 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there, whole = (Tagger(**settings).fit(*given) for given in ((parts,), (store,), (X, y)))
    np.testing.assert_array_equal(here.coef_, there.coef_)
    assert here.history_["passes"] == there.history_["passes"]
    assert len(here.coef_) == len(whole.coef_)
    assert (here.index_ is None) == (whole.index_ is None)
    assert here.index_ == whole.index_  # the sorted union of the names
    if settings.get("solver") not in ("averaged-perceptron", "subgradient"):
        assert value_of(here, X, y) <= value_of(whole, X, y) * (1.01 + here.tol if here.tol else 1.01)
    assert here.score(store) == here.score(X, y)
    assert here.predict(store) == here.predict(X)


def value_of(model, X, y):
    """penalty(w) + C · risk(w)."""
    from mercer.learning.penalties import Penalty

    loss = model._loss().for_labels(model.classes_.tolist())
    C = model.C_ if hasattr(model, "C_") else model.C
    return Penalty.named(model.penalty, 0.5).value(model._flat(model)) + C * Risk(
        model._structure(), loss, *model._read(X, y)
    ).value(model._flat(model))


def test_gradients_of_parts_add_up(tmp_path):
    X, y = sentences(20)
    model = Tagger()
    parts = Partitions.split(X, y, n=3)
    with prepare(copy.copy(model), parts, None, None, model._loss(), None) as risk:
        assert isinstance(risk, PartitionedRisk)
        shell = risk.shell
        whole = Risk(shell.structure_, risk.loss, *shell._read(X, y))
        w = np.random.default_rng(0).normal(size=risk.n_weights)
        (a, g), (b, h) = risk.value_and_gradient(w), whole.value_and_gradient(w)
        assert a == pytest.approx(b)
        np.testing.assert_allclose(g, h, atol=1e-12)
        assert risk.value(w) == pytest.approx(b)
        assert risk.n_examples == 20


def test_views_of_longer_sequences_are_parts():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 6, size=12)
    matrix, offsets = random.normal(size=(lengths.sum(), 3)), np.concatenate([[0], np.cumsum(lengths)])
    labels = np.array(["a", "b", "c"])[matrix.argmax(axis=1)]
    X, y = Sequences(matrix, offsets), [list(labels[a:b]) for a, b in pairwise(offsets)]
    copies = Partitions((X[np.arange(i, i + 4)], y[i : i + 4]) for i in (0, 4, 8))
    for settings in ({}, {"transitions": "features"}):
        views, alone = (Tagger(C=0.3, **settings).fit(p) for p in (Partitions.split(X, y, n=3), copies))
        np.testing.assert_array_equal(views.coef_, alone.coef_)


def test_likelihoods_of_parts(tmp_path):
    X, y = sentences()
    parts = Partitions.split(X, y, n=3)
    model = Tagger().fit(parts)
    for given in (parts, stored(parts, tmp_path / "s")):
        np.testing.assert_allclose(model.log_likelihood(given), model.log_likelihood(X, y))


def test_a_store_beyond_what_is_kept_gives_the_same(tmp_path, monkeypatch):
    X, y = sentences()
    store = stored(Partitions.split(X, y, n=4), tmp_path / "s")
    kept = Tagger().fit(store)
    monkeypatch.setattr("mercer.learning.partitioned.KEPT_BYTES", 0)
    np.testing.assert_array_equal(Tagger().fit(store).coef_, kept.coef_)


def test_rows_with_weights_and_class_weights(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    y, weights = np.array(["a", "b", "c"])[X.argmax(axis=1)], random.random(90)
    parts = Partitions.split(X, y, weights, n=4)
    store = stored(parts, tmp_path / "s")
    for settings in ({"loss": "log"}, {"loss": "log", "class_weight": "balanced"}, {"random_state": 0}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here, there = (LinearClassifier(tol=1e-4, **settings).fit(given) for given in (parts, store))
            whole = LinearClassifier(tol=1e-4, **settings).fit(X, y, weights)
        np.testing.assert_array_equal(here.coef_, there.coef_)
        np.testing.assert_allclose(here.coef_, whole.coef_, atol=0.05)
        assert here.predict(parts).tolist() == here.predict(X).tolist()


def test_graphs_labels_and_alignments_learn_from_parts():
    random = np.random.default_rng(0)
    nodes = [random.normal(size=(4, 2)) for _ in range(12)]
    graphs = [(x, np.array([[0, 1], [1, 2], [2, 3]])) for x in nodes]
    labels = [["AB"[int(v)] for v in x[:, 0] > 0] for x in nodes]
    whole = GraphLabeler().fit(graphs, labels)
    parts = GraphLabeler().fit(Partitions.split(graphs, labels, n=3))
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=0.02)
    X, y = [("ab", "ab"), ("ac", "aac"), ("cb", "b")], [[(0, 0), (1, 1)], [(0, 0), (1, 2)], [(1, 0)]]
    aligner = Aligner(C=1.0).fit(Partitions.split(X, y, n=2))
    assert aligner.alphabet_ == ["a", "b", "c"]
    rows = random.normal(size=(12, 2))
    preferences = [[("u", "v")] if x[0] > 0 else [("v", "t")] for x in rows]
    assert LabelRanker().fit(Partitions.split(rows, preferences, n=3)).classes_.tolist() == ["t", "u", "v"]


def test_a_training_that_was_killed_goes_on(tmp_path):
    X, y = sentences()
    parts = Partitions.split(X, y, n=3)
    whole = Tagger().fit(parts)

    from mercer.learning.checkpoint import Checkpoint

    class Killed(Checkpoint):
        def write(self, state, arrays):
            super().write(state, arrays)
            if state["solver"]["iterations"] == 4:
                raise SystemExit

    path = tmp_path / "c"
    with pytest.raises(SystemExit):
        Tagger().fit(parts, checkpoint=Killed(path, every=0))
    assert path.exists()
    np.testing.assert_array_equal(Tagger().fit(parts, checkpoint=path).coef_, whole.coef_)
    with pytest.raises(SystemExit):
        Tagger().fit(parts, checkpoint=Killed(path, every=0))
    with pytest.raises(ValueError, match="other data or settings"):
        Tagger().fit(Partitions.split(X, y, n=2), checkpoint=path)


# ---------------------------------------------------------------------------------------------- bad input


def test_empty_parts_and_labels_of_one_part_only(tmp_path):
    X, y = sentences(30)
    y[-1] = ["Z"] * len(y[-1])
    whole = Tagger(tol=1e-6).fit(X, y)
    parts = Partitions([([], []), (X[:1], y[:1]), ([], []), (X[1:29], y[1:29]), (X[29:], y[29:])])
    found = Tagger(tol=1e-6).fit(parts)
    assert found.classes_.tolist() == ["A", "B", "C", "D", "Z"]
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="all partitions are empty"):
        Tagger().fit(Partitions([([], []), ([], [])]))


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 3)), [0, 1])], "different numbers of features: 2 and 3"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 2), np.float32), [0, 1])], "different types of numbers"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 2)), [0])], "partition 1: "),
        ([(np.ones((2, 2)), [0, 0]), (np.ones((2, 2)), [0, 0])], "two classes"),
        ([(np.ones((2, 2)), [0, 1]), (np.full((2, 2), np.nan), [0, 1])], "partition 1: .*NaN"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 2)), None)], "partition 1: .*y"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, match):
    with pytest.raises(ValueError, match=match):
        LinearClassifier().fit(Partitions(parts))


def test_an_infeasible_example_is_named_with_its_part():
    from mercer.structures.constraints import Constraints

    X, y = sentences(20)
    with pytest.raises(ValueError, match=r"partition \d: example \d+: the constraints"):
        Tagger(constraints=Constraints([("A", "B")])).fit(Partitions.split(X, y, n=2))


def test_refusals_name_their_reason(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(8, 2)), np.arange(8) % 2
    parts = Partitions.split(X, y, n=2)
    with pytest.raises(TypeError, match="Ranker cannot learn from partitions: its loss compares"):
        Ranker().fit(parts)
    with pytest.raises(TypeError, match="holds y and sample_weight itself"):
        LinearClassifier().fit(parts, y)
    with pytest.raises(ValueError, match="no partitions"):
        LinearClassifier().fit(Partitions([]))
    with pytest.raises(StoreError, match="no store here"):
        LinearClassifier().fit(Store(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="'marginal-dual' visits examples"):
        LinearClassifier(solver="marginal-dual").fit(parts)
    with pytest.raises(ValueError, match="adaptive hybrid"):
        LinearClassifier("adaptive-hybrid").fit(parts)
    with pytest.raises(TypeError, match="partial_fit takes examples in memory"):
        LinearClassifier("log", "sgd").partial_fit(parts, None)
    model = LinearClassifier().fit(parts)
    with pytest.raises(TypeError, match="holds y and sample_weight itself"):
        model.score(parts, 1 - y)
    with pytest.raises(TypeError, match="holds y and sample_weight itself"):
        model.log_likelihood(parts, y)
    with pytest.raises(ValueError, match="all partitions are empty"):
        model.predict(Partitions([(X[:0], y[:0])]))


def test_a_part_without_examples_adds_no_value_no_slope_no_planes_and_no_leads():
    w = np.ones(3)
    part = EmptyRisk(None)
    value, slope = part.value_and_gradient(w)
    assert (value, part.value(w), part.n_examples) == (0.0, 0.0, 0)
    np.testing.assert_array_equal(slope, np.zeros(3))
    for numbers, rows, *_ in (part.oracle(w), part.lowest(w)):
        assert numbers.shape == (0,)
        assert rows.shape == (0, 3)
    assert part.oracle(w)[2].shape == (0,)
