"""mi-SVM and MI-SVM: labels of bags in, a classifier of rows out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import mercer
import mercer.proportions
from mercer.kernels import Gaussian, Linear
from mercer.maps import FourierFeatures
from mercer.proportions import Bags, ConvexProportionSVM, MultipleInstanceSVM
from reference.contract import contract

MODES = ["mi", "MI"]


def one_positive(seed: int, n_bags: int = 40, size: int = 8, d: int = 5, away: float = 4.0):
    """Half of the bags have one positive row, the others none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_bags * size, d))
    y = np.zeros((n_bags, size), int)
    y[np.arange(0, n_bags, 2), rng.integers(0, size, n_bags // 2)] = 1
    y = y.ravel()
    X[:, 0] += away * y
    return X, y, np.repeat(np.arange(n_bags), size), (np.arange(n_bags) % 2 == 0).astype(int)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", [None, Linear()], ids=["features", "kernel"])
def test_rows_and_bags_are_found(mode: str, kernel) -> None:
    X, y, bags, labels = one_positive(0)
    model = MultipleInstanceSVM(mode, kernel=kernel).fit(X, bags=bags, labels=labels)
    X, y, bags, labels = one_positive(1)
    assert model.score(X, y) > 0.96
    assert (model.predict_bags(X, bags) == labels).mean() > 0.85
    np.testing.assert_allclose(model.bag_scores(X, bags), model.decision_function(X).reshape(40, 8).max(axis=1))


@pytest.mark.parametrize("mode", MODES)
def test_features_and_their_kernel_give_one_machine(mode: str) -> None:
    X, _, bags, labels = one_positive(2, away=2.0)
    of = [(None, X), (None, sp.csr_matrix(X)), (Linear(), X), ("precomputed", X @ X.T)]
    outputs = [
        MultipleInstanceSVM(mode, kernel=kernel, tol=1e-4).fit(Z, bags=bags, labels=labels).decision_function(Z)
        for kernel, Z in of
    ]
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=2e-3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_objective_never_rises_and_the_end_is_a_fixed_point(mode: str, seed: int) -> None:
    X, _, bags, labels = one_positive(seed, away=1.5)
    model = MultipleInstanceSVM(mode, tol=1e-4).fit(X, bags=bags, labels=labels)
    assert (np.diff(model.history_) <= 1e-3 * model.history_[:-1]).all()
    assert model.n_iter_ == len(model.history_)
    f = model.decision_function(X)
    # The machine of the labels (or witnesses) that the machine itself gives is the machine.
    positive = labels[bags] == 1
    largest = np.array([np.flatnonzero(bags == k)[f[bags == k].argmax()] for k in np.flatnonzero(labels)])
    np.testing.assert_array_equal(np.sort(model.witnesses_), np.sort(largest))
    if mode == "mi":
        used, y = np.arange(len(X)), np.where(positive & (f > 0), 1, -1)
        y[largest] = 1
    else:
        used = np.union1d(np.flatnonzero(~positive), largest)
        y = np.where(np.isin(used, largest), 1, -1)
    peer = SVC(kernel="linear", tol=1e-4).fit(X[used], y)
    np.testing.assert_allclose(peer.decision_function(X), f, atol=2e-3)


def alternated(X: np.ndarray, bags: np.ndarray, labels: np.ndarray) -> float:
    """The objective that libsvm's machines come to by turns, with all rows of positive bags positive at first."""
    positive, seen = labels[bags] == 1, set()
    y, best = np.where(positive, 1, -1), np.inf
    while y.tobytes() not in seen:
        seen.add(y.tobytes())
        machine = SVC(kernel="linear", tol=1e-4).fit(X, y)
        f = machine.decision_function(X)
        best = min(best, float(machine.coef_[0] @ machine.coef_[0] / 2 + np.maximum(0, 1 - y * f).sum()))
        y = np.where(positive & (f > 0), 1, -1)
        y[[np.flatnonzero(bags == k)[f[bags == k].argmax()] for k in np.flatnonzero(labels)]] = 1
    return best


def test_mi_does_not_end_above_the_turns_from_all_rows_as_positive() -> None:
    ratios = []
    for seed in range(4):
        X, _, bags, labels = one_positive(seed, size=6, d=40, away=1.5)
        model = MultipleInstanceSVM("mi", tol=1e-4).fit(X, bags=bags, labels=labels)
        ratios.append(model.history_[-1] / alternated(X, bags, labels))
    assert max(ratios) < 1.01  # a second start can only help
    assert min(ratios) < 0.95  # and does


@pytest.mark.parametrize("mode", MODES)
def test_on_their_home_ground_they_are_not_below_learners_from_proportions(mode: str) -> None:
    """One positive row in each positive bag, labels of bags read as proportions 1 and 0."""
    learners = [ConvexProportionSVM()]
    if hasattr(mercer.proportions, "AlternatingProportionSVM"):
        learners.append(mercer.proportions.AlternatingProportionSVM(random_state=0))
    own, others = [], [[] for _ in learners]
    for seed in range(3):
        X, _, bags, labels = one_positive(seed, away=3.0)
        held, truth, *_ = one_positive(seed + 100, away=3.0)
        own.append(MultipleInstanceSVM(mode).fit(X, bags=bags, labels=labels).score(held, truth))
        for scores, learner in zip(others, learners, strict=True):
            scores.append(learner.fit(X, bags=bags, proportions=labels.astype(float)).score(held, truth))
    for scores in others:
        assert np.mean(own) >= np.mean(scores)


@pytest.mark.parametrize("mode", MODES)
def test_without_bags_it_is_a_support_vector_machine(mode: str) -> None:
    X, y, *_ = one_positive(3)
    peer = SVC(kernel="linear", C=0.5, tol=1e-4).fit(X, y)
    model = MultipleInstanceSVM(mode, C=0.5, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)
    weighted = MultipleInstanceSVM(mode, class_weight={0: 1.0, 1: 5.0}, tol=1e-4).fit(X, y)
    peer = SVC(kernel="linear", class_weight={0: 1.0, 1: 5.0}, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(weighted.decision_function(X), peer.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_labels_may_be_named_and_proportions_do_as_well(mode: str) -> None:
    X, _, bags, labels = one_positive(4)
    names = np.array([f"bag {k:02d}" for k in range(40)])
    plain = MultipleInstanceSVM(mode).fit(X, bags=bags, labels=labels)
    table = {name: "yes" if label else "no" for name, label in zip(names, labels, strict=True)}
    named = MultipleInstanceSVM(mode).fit(X, bags=names[bags], labels=table)
    assert named.classes_.tolist() == ["no", "yes"]
    shares = MultipleInstanceSVM(mode).fit(X, bags=Bags(bags, labels / 8))
    for other in (named, shares):
        np.testing.assert_array_equal(other.decision_function(X), plain.decision_function(X))
    pd = pytest.importorskip("pandas")
    series = MultipleInstanceSVM(mode).fit(X, bags=names[bags], labels=pd.Series(table))
    np.testing.assert_array_equal(series.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("mode", MODES)
def test_known_rows_keep_their_labels(mode: str) -> None:
    X, y, bags, labels = one_positive(5, away=0.5)
    known = np.full(len(X), np.nan)
    inside = np.flatnonzero(labels[bags])
    known[inside] = y[inside]  # everything is known: the labels decide alone
    model = MultipleInstanceSVM(mode, tol=1e-4).fit(X, known, bags=bags, labels=labels)
    peer = SVC(kernel="linear", tol=1e-4).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_three_kinds_of_bags(mode: str) -> None:
    rng = np.random.default_rng(0)
    labels, names = np.arange(45) % 3, np.array(["a", "b", "c"])
    X, bags = rng.normal(size=(45 * 6, 3)), np.repeat(np.arange(45), 6)
    X[np.arange(45) * 6, labels] += 6.0
    model = MultipleInstanceSVM(mode, class_weight="balanced").fit(X, bags=bags, labels=names[labels])
    assert (model.predict_bags(X, bags) == names[labels]).mean() > 0.9
    assert model.bag_scores(X, bags).shape == (45, 3)


@pytest.mark.parametrize("mode", MODES)
def test_kernels_and_maps(mode: str) -> None:
    rng = np.random.default_rng(0)
    X, bags, labels = rng.normal(size=(240, 2)) * 0.5, np.repeat(np.arange(40), 6), np.arange(40) % 2
    angle = rng.random(20) * 2 * np.pi
    X[6::12] = 3 * np.column_stack([np.cos(angle), np.sin(angle)])  # a ring around the negative rows
    y = np.zeros(240, int)
    y[6::12] = 1
    model = MultipleInstanceSVM(mode, 10.0, kernel=Gaussian(0.3)).fit(X, bags=bags, labels=labels)
    assert model.score(X, y) > 0.95
    mapped = MultipleInstanceSVM(mode, 10.0, map=FourierFeatures(n_components=60, random_state=0))
    assert mapped.fit(X, bags=bags, labels=labels).score(X, y) > 0.95


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", [None, Gaussian(0.3)], ids=["linear", "gaussian"])
def test_models_come_back_from_files(tmp_path, mode: str, kernel) -> None:
    X, _, bags, labels = one_positive(6)
    model = MultipleInstanceSVM(mode, kernel=kernel).fit(X, bags=bags, labels=labels)
    mercer.save(model, tmp_path / "model")
    back = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(back.bag_scores(X, bags), model.bag_scores(X, bags))
    np.testing.assert_array_equal(back.witnesses_, model.witnesses_)


def test_turns_are_shown_and_their_limit_is_reported(capsys) -> None:
    X, _, bags, labels = one_positive(7, away=1.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        MultipleInstanceSVM(max_iter=1, verbose=True).fit(X, bags=bags, labels=labels)
    assert capsys.readouterr().err.startswith("turn 1: objective")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "Mi"}, "mode must be one of"),
        ({"C": -1.0}, "C must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultipleInstanceSVM(**parameters).fit(np.eye(4), bags=[0, 0, 1, 1], labels=[0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bags": [0, 0, 1, 1], "labels": [0, 1, 1]}, "one label for each of the 2 bags"),
        ({"bags": [0, 0, 1, 1], "labels": [1, 1]}, "at least 2 classes"),
        ({"bags": [0, 0, 1, 1], "labels": [0.0, np.nan]}, "the label of bag 1 is missing"),
        ({"bags": [0, 0, 1, 1], "labels": {0: 0, 2: 1}}, "labels names bag 2"),
        ({"bags": [0, 0, 1, 1], "labels": {0: 0}}, "no entry for bag 1"),
        ({"labels": [0, 1]}, "pass bags="),
        ({"bags": [0, 0, 1, 1], "labels": [0, 1], "proportions": [0.0, 1.0]}, "not both"),
        ({"bags": [0, 0, 1, 1], "proportions": [0.5, 1.0]}, "all 2 bags are positive"),
        ({"bags": [0, 0, 1], "labels": [0, 1]}, "bags has 3 rows, but X has 4"),
        ({}, "requires"),
    ],
)
def test_wrong_labels_are_named(given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultipleInstanceSVM().fit(np.eye(4), **given)


@contract([MultipleInstanceSVM(), MultipleInstanceSVM("MI"), MultipleInstanceSVM(kernel="precomputed")])
def test_scikit_learn_contract(checks) -> None:
    checks()
