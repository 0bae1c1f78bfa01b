"""Learnt clustering: its searches against all partitions, planted affinities, certificates, model files, bad input."""

from __future__ import annotations

from itertools import pairwise

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.clustering import SupervisedClusterer
from mercer.datasets import COREFERENCE_FEATURES, coreference_features, make_coreference
from mercer.metrics import pairwise_score
from mercer.structures.correlation import canonical, components, correlation_clustering, n_items, square, together
from mercer.structures.partitions import Partitions
from reference.partitions import partitions, wrong_pairs


def planted(seed=0, n_sets=12, sizes=(4, 6), noise=0.0):
    """Sets of items whose first feature tells the clusters apart; the second is noise."""
    random = np.random.default_rng(seed)
    X, Y = [], []
    while len(X) < n_sets:
        n = int(random.integers(sizes[0], sizes[1] + 1))
        y = random.integers(0, 3, n)
        x = np.stack([4.0 * y + 0.5 * random.normal(size=n), random.normal(size=n)], axis=1)
        X.append(x + noise * random.normal(size=x.shape))
        Y.append(canonical(y))
    return X, Y


# ------------------------------------------------------------------------------------------------------- the searches


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [2, 4, 6])
@pytest.mark.parametrize("cost", ["pairs", "rand"])
def test_exact_searches_equal_brute_force(seed, n, cost):
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(n * (n - 1) // 2, 3)), random.normal(size=4)
    truth = canonical(random.integers(0, 3, n))
    every = [together(np.array(y)) for y in partitions(n)]
    unit = 1 / len(x) if cost == "rand" else 1.0
    structure = Partitions("exact", cost)

    def score(y):
        return w @ structure.features(x, y)

    def augmented(y):
        labels = tuple(components(y > 0.5, n))
        return score(y) + unit * wrong_pairs(tuple(truth), labels)

    t = together(truth)
    assert score(structure.argmax(w, x)) == pytest.approx(max(map(score, every)))
    assert augmented(structure.argmax(w, x, cost_to=t)) == pytest.approx(max(map(augmented, every)))
    assert score(structure.argmin(w, x)) == pytest.approx(min(map(score, every)))
    for y in every:
        assert structure.cost(t, y) == pytest.approx(augmented(y) - score(y))
    # The relaxed search is above all of them, the greedy one below the best but not below the truth.
    relaxed = Partitions("lp", cost)
    z = relaxed.argmax(w, x, cost_to=t)
    assert score(z) + relaxed.cost(t, z) >= max(map(augmented, every)) - 1e-6
    z = Partitions("greedy", cost).argmax(w, x, cost_to=t)
    assert score(t) - 1e-9 <= augmented(z) <= max(map(augmented, every)) + 1e-9


# --------------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("decode", ["greedy", "exact", "lp"])
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
def test_a_planted_affinity_is_recovered(decode, solver):
    X, Y = planted(n_sets=10, sizes=(4, 5))
    model = SupervisedClusterer(decode=decode, solver=solver, C=0.3, tol=1e-2, random_state=0).fit(X, Y)
    test_X, test_Y = planted(seed=1, n_sets=40)
    assert model.score(test_X, test_Y) > 0.97
    assert model.coef_[0] < -0.3  # far apart in the first feature: apart
    assert abs(model.coef_[1]) < 0.7 * abs(model.coef_[0])
    assert model.intercept_ > 0
    assert model.certified_ is (decode != "greedy")
    assert model.converged_


def test_planted_weights_are_recovered():
    # Pair features of any kind, and the clusters that planted weights choose.
    random = np.random.default_rng(0)
    weights, X, Y = np.array([2.0, -1.0, 0.5, -0.5]), [], []
    for _ in range(60):
        pairs = random.normal(size=(10, 3))
        X.append(np.stack([square(column, 5) for column in pairs.T], axis=2))
        Y.append(correlation_clustering(square(pairs @ weights[:3] + weights[3], 5), "exact").labels)
    model = SupervisedClusterer(decode="exact", C=10.0, tol=0.05, random_state=0).fit(X, Y)
    found = np.append(model.coef_, model.intercept_)
    assert found @ weights / np.linalg.norm(found) / np.linalg.norm(weights) > 0.98


@pytest.mark.parametrize("loss", ["squared-hinge", "slack", "relative-margin"])
def test_other_margin_losses_learn_it_too(loss):
    X, Y = planted(n_sets=6)
    solver = "cutting-plane" if loss == "relative-margin" else "bmrm"
    model = SupervisedClusterer(loss, solver, C=0.5, decode="exact", tol=5e-2, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_exact_and_relaxed_training_agree_where_the_relaxation_is_tight():
    X, Y = planted(n_sets=6)
    exact, relaxed, greedy = (
        SupervisedClusterer(decode=d, C=0.3, tol=1e-3, random_state=0).fit(X, Y) for d in ("exact", "lp", "greedy")
    )
    # A relaxed loss is never less than the true one.
    assert relaxed.history_["primal"][-1] >= exact.history_["dual"][-1] - 1e-6
    for model in (exact, relaxed, greedy):
        certificate = model.certify(X, Y)
        assert certificate.primal >= exact.history_["dual"][-1] - 1e-6
        assert certificate.dual <= certificate.primal + 1e-9
    # The planes of a greedy search are planes of the true loss, so its dual value is a bound for the exact problem.
    assert greedy.history_["dual"][-1] <= exact.history_["primal"][-1] * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["difference", "product", "function", "array"])
def test_pair_features_come_in_four_forms(kind):
    X, Y = planted(n_sets=12)
    names = {"difference": "difference", "product": "product", "function": difference, "array": "difference"}
    given = [np.abs(x[:, None] - x[None]) for x in X] if kind == "array" else X
    settings = {"C": 0.03, "tol": 0.1, "random_state": 0}
    model = SupervisedClusterer(pair_features=names[kind], **settings).fit(given, Y)
    if kind != "product":
        expected = SupervisedClusterer(**settings).fit(X, Y)
        np.testing.assert_allclose(model.coef_, expected.coef_)
    A = model.affinity(given[0])
    np.testing.assert_array_equal(A, A.T)
    pair = X[0][0] * X[0][1] if kind == "product" else np.abs(X[0][0] - X[0][1])
    assert A[0, 1] == pytest.approx(model.coef_ @ pair + model.intercept_)


def difference(a, b):
    return np.abs(np.asarray(a) - np.asarray(b))


def test_predictions_are_the_correlation_clustering_of_the_affinities():
    X, Y = planted(n_sets=6, noise=1.0)
    for decode in ("greedy", "lp", "exact"):
        model = SupervisedClusterer(decode=decode, C=0.1, tol=0.05, random_state=0).fit(X, Y)
        for x, labels in zip(X, model.predict(X), strict=True):
            expected = correlation_clustering(model.affinity(x), decode)
            np.testing.assert_array_equal(labels, expected.labels)
            bounded = model.bound(x)
            assert bounded.value <= bounded.bound
            assert bounded.bound >= correlation_clustering(model.affinity(x), "exact").value - 1e-6
            np.testing.assert_array_equal(bounded.labels, labels)


def test_scores_are_pairwise_f1_and_jobs_change_nothing():
    X, Y = planted(n_sets=10, noise=1.5)
    model = SupervisedClusterer(C=0.1, tol=0.05, random_state=0).fit(X, Y)
    predicted = [z.tolist() for z in model.predict(X)]
    assert model.score(X, Y) == pairwise_score([y.tolist() for y in Y], predicted).f1
    np.testing.assert_array_equal(clone(model).fit(X, Y).coef_, model.coef_)
    with joblib.parallel_config(backend="threading"):
        assert [z.tolist() for z in model.set_params(n_jobs=2).predict(X)] == predicted


def test_names_of_clusters_do_not_matter():
    X, Y = planted(n_sets=8)
    named = [[f"cluster {c}" for c in y] for y in Y]
    a = SupervisedClusterer(C=0.3, tol=1e-2, random_state=0).fit(X, Y)
    b = SupervisedClusterer(C=0.3, tol=1e-2, random_state=0).fit(X, named)
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_sets_of_one_item_are_fine_among_others():
    X, Y = planted(n_sets=8)
    X, Y = [*X, np.zeros((1, 2))], [*Y, [0]]
    model = SupervisedClusterer(C=0.3, tol=1e-2, random_state=0).fit(X, Y)
    assert model.predict([np.ones((1, 2))])[0].tolist() == [0]
    assert model.affinity(np.ones((1, 2))).shape == (1, 1)
    called = SupervisedClusterer(pair_features=difference, C=0.3, tol=1e-2, random_state=0).fit(X, Y)
    assert called.predict([[[1.0, 2.0]]])[0].tolist() == [0]


# ------------------------------------------------------------------------------------------------------- coreference


def test_coreference_is_learnt_better_than_trivial_answers():
    task = make_coreference(n_train=30, n_test=30, n_mentions=(6, 12), random_state=0)
    model = SupervisedClusterer(pair_features=coreference_features, C=0.1, tol=3e-2, random_state=0)
    model.fit(task.X_train, task.y_train)
    together_ = pairwise_score(task.y_test, [[0] * len(y) for y in task.y_test]).f1
    assert model.score(task.X_test, task.y_test) > together_ + 0.1
    weights = dict(zip(COREFERENCE_FEATURES, model.coef_, strict=True))
    assert weights["different names"] < 0 < weights["same last word"] + weights["same words"]
    assert weights["gender differs"] < weights["gender agrees"]
    assert weights["number differs"] < weights["number agrees"]


def test_coreference_documents_repeat_and_are_as_described():
    first, second = (make_coreference(n_train=6, n_test=3, random_state=3) for _ in range(2))
    assert first == second
    assert first != make_coreference(n_train=6, n_test=3, random_state=4)
    for mentions, labels in zip(first.X_train, first.y_train, strict=True):
        assert len(mentions) == len(labels)
        assert 10 <= len(mentions) <= 25
        sentences = [m["sentence"] for m in mentions]
        assert sentences == sorted(sentences)
        for a, b in pairwise(mentions):
            features = coreference_features(a, b)
            assert features.shape == (len(COREFERENCE_FEATURES),)
            np.testing.assert_array_equal(features, coreference_features(b, a))
    pronouns = [m for x in first.X_train for m in x if m["kind"] == "pronoun"]
    assert pronouns


def test_without_noise_mentions_show_what_is_true():
    task = make_coreference(n_train=30, n_test=0, noise=0.0)
    for mentions, labels in zip(task.X_train, task.y_train, strict=True):
        for entity in set(labels):
            numbers = {m["number"] for m, label in zip(mentions, labels, strict=True) if label == entity}
            assert len(numbers) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_train": -1}, "n_train"),
        ({"noise": 1.5}, "noise"),
        ({"n_entities": (0, 3)}, "n_entities"),
        ({"n_mentions": (5, 3)}, "n_mentions"),
    ],
)
def test_wrong_sizes_of_documents_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        make_coreference(**settings)


# ------------------------------------------------------------------------------------------------------- model files


def test_a_saved_model_comes_back(tmp_path):
    X, Y = planted(n_sets=8)
    model = SupervisedClusterer(C=0.3, decode="lp", tol=1e-2, random_state=0).fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert [z.tolist() for z in again.predict(X)] == [z.tolist() for z in model.predict(X)]
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert len(again.history_["seconds"]) == len(model.history_["seconds"]) == again.n_iter_
    assert again.history_["gap"][-1] == model.history_["gap"][-1]
    assert again.get_params() == model.get_params()


def test_a_function_of_two_items_is_set_again_after_loading(tmp_path):
    X, Y = planted(n_sets=8)
    model = SupervisedClusterer(pair_features=difference, C=0.3, tol=1e-2, random_state=0).fit(X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    with pytest.raises(ValueError, match=r"set model\.pair_features"):
        again.predict(X)
    again.pair_features = difference
    assert [z.tolist() for z in again.predict(X)] == [z.tolist() for z in model.predict(X)]


def test_damaged_weights_are_refused():
    X, Y = planted(n_sets=5)
    meta, _ = SupervisedClusterer(C=0.3, tol=1e-2, random_state=0).fit(X, Y).to_state()
    for w in (np.zeros((2, 2)), np.array([np.nan]), np.zeros(0)):
        with pytest.raises(ValueError, match="coef_ must h"):
            SupervisedClusterer.from_state(meta, {"coef_": w})


# --------------------------------------------------------------------------------------------------------- bad input


GOOD = np.arange(6.0).reshape(3, 2)
SKEW = np.arange(18.0).reshape(3, 3, 2)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([], [], "X is empty"),
        ([GOOD], [[0, 0]], "set 0 has 3 items in X, but 2 labels"),
        ([GOOD], [[0, 0, 1], [0]], "X has 1 sets, but y has 2"),
        ([GOOD], [[0, None, 1]], "item 1 has no cluster"),
        ([GOOD], [[0, np.nan, 1]], "item 1 has no cluster"),
        ([GOOD], ["aab"], "list of cluster labels"),
        ([GOOD], [3], "list of cluster labels"),
        ([GOOD, np.zeros((0, 2))], [[0, 0, 1], []], "set 1 is empty"),
        ([GOOD * np.nan], [[0, 0, 1]], "NaN"),
        ([np.zeros(3)], [[0, 0, 1]], "expected an array of shape"),
        ([GOOD, np.zeros((3, 5))], [[0, 0, 1]] * 2, "set 1: pairs have 5 features, expected 2"),
        ([SKEW], [[0, 0, 1]], "symmetric"),
        ([np.zeros((3, 2, 4))], [[0, 0, 1]], "shape \\(n, n, p\\)"),
        ([["a", "b"]], [[0, 1]], "rows of numbers"),
        (["ab"], [[0, 1]], "expected an array or a list"),
        ([np.zeros((1, 2))], [[0]], "one item only"),
    ],
)
def test_wrong_data_are_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        SupervisedClusterer().fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": -1}, "C must be"),
        ({"decode": "fast"}, "decode must be one of"),
        ({"cost": "vi"}, "cost must be one of"),
        ({"pair_features": "sum"}, "pair_features must be"),
        ({"pair_features": None}, "pair_features must be"),
        ({"loss": "none"}, "unknown loss"),
        ({"solver": "none"}, "unknown solver"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"pair_features": lambda a, b: a[0] - b}, "must be the same for"),
        ({"pair_features": lambda a, b: 1.0}, "vectors of one length"),
        ({"pair_features": lambda a, b: a["x"]}, "pair_features raised"),
        ({"pair_features": lambda a, b: [np.inf]}, "NaN or infinite"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SupervisedClusterer(**settings).fit([GOOD], [[0, 0, 1]])


def test_what_needs_a_fit_says_so():
    model = SupervisedClusterer()
    for call in (lambda: model.predict([GOOD]), lambda: model.affinity(GOOD), model.to_state):
        with pytest.raises(NotFittedError):
            call()
    fitted = SupervisedClusterer("squared-hinge", "bmrm", C=0.1).fit([GOOD], [[0, 0, 1]])
    with pytest.raises(ValueError, match="certificate needs loss='hinge'"):
        fitted.certify([GOOD], [[0, 0, 1]])
    with pytest.raises(ValueError, match="X is empty"):
        fitted.score([], [])


def test_the_form_of_condensed_vectors():
    for n in range(1, 30):
        assert n_items(n * (n - 1) // 2) in (n, 1, 0) if n < 2 else n_items(n * (n - 1) // 2) == n
    np.testing.assert_array_equal(square(np.array([1.0, 2.0, 3.0]), 3), [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
