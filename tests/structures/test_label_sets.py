"""Label sets: every verb against enumeration, gradients, cuts, and T separate machines where labels are independent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mercer.data import Sequences
from mercer.learning import Log, Risk, resolve_loss
from mercer.learning.monitor import Monitor
from mercer.learning.penalties import Penalty
from mercer.learning.solvers import resolve_solver
from mercer.structures import Hamming, LabelSets, ZeroOne, dependent_pairs, label_sets

PAIRS = {"all": "all", "some": [(0, 1), (3, 2)], "none": []}
every = pytest.mark.parametrize("pairs", PAIRS)
SETS = np.array(list(itertools.product((0, 1), repeat=4)))


def structure(pairs: str) -> LabelSets:
    return LabelSets(4, 3, PAIRS[pairs])


def theta(structure: LabelSets, seed: int = 0, n: int = 5):
    rng = np.random.default_rng(seed)
    return structure.with_scores(rng.normal(size=(n, 4)), rng.normal(size=len(structure.pairs)))


def by_hand(structure: LabelSets, t) -> np.ndarray:
    """Scores (n, 16) of all sets."""
    out = np.zeros((len(t), 16))
    for i, row in enumerate(t.labels):
        for j, y in enumerate(SETS):
            out[i, j] = t.constant[i] + row @ y
            out[i, j] += sum(w for (a, b), w in zip(structure.pairs, t.pairs, strict=True) if y[a] and y[b])
    return out


@every
def test_verbs_equal_enumeration(pairs):
    s = structure(pairs)
    t = theta(s)
    scores = by_hand(s, t)
    for y, value, extreme in ((*s.argmax(t), scores.max(axis=1)), (*s.argmin(t), scores.min(axis=1))):
        assert np.allclose(value, extreme)
        assert np.allclose(s.score(t, y), extreme)
    y, values = s.k_best(t, 3)
    assert np.allclose(values, np.sort(scores, axis=1)[:, ::-1][:, :3])
    assert np.allclose(s.score(t, y[2]), values[:, 2])
    log_z = np.log(np.exp(scores).sum(axis=1))
    p = np.exp(scores - log_z[:, None])
    mu = s.marginals(t)
    assert np.allclose(s.log_partition(t), log_z)
    assert np.allclose(mu.log_partition, log_z)
    assert np.allclose(mu.labels, p @ SETS)
    if len(s.pairs):
        assert np.allclose(mu.pairs, p @ (SETS[:, s.pairs[:, 0]] * SETS[:, s.pairs[:, 1]]))
    assert np.allclose(s.entropy(t), -(p * np.log(p)).sum(axis=1))


@every
def test_samples_have_the_marginals(pairs):
    s = structure(pairs)
    t = theta(s, n=2)
    drawn = s.sample(t, 4000, random_state=0)
    assert np.abs(drawn.mean(axis=0) - s.marginals(t).labels).max() < 0.03


@every
def test_augmented_scores_add_the_number_of_wrong_labels(pairs):
    s = structure(pairs)
    t, y = theta(s), np.random.default_rng(1).integers(0, 2, (5, 4))
    wrong = (SETS[None] != y[:, None]).sum(axis=2)
    assert np.allclose(by_hand(s, s.augment(t, y, None, 0.5)), by_hand(s, t) + 0.5 * wrong)
    z, value, delta = s.most_violating(t, y)
    assert np.allclose(value, (by_hand(s, t) + wrong).max(axis=1))
    assert np.array_equal(delta, (z != y).sum(axis=1))
    z, value, delta = s.most_violating(t, y, ZeroOne())
    assert np.allclose(value, (by_hand(s, t) + (wrong > 0)).max(axis=1))


def inputs(n: int = 12, seed: int = 0) -> tuple[Sequences, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(n, 4)) > 0).astype(np.int8)
    return Sequences(X, np.arange(n + 1)), Y


@every
def test_gradients_and_differences_equal_finite_differences(pairs):
    s = structure(pairs)
    X, Y = inputs()
    risk = Risk(s, Log(), X, Y)
    w = np.random.default_rng(3).normal(size=s.n_weights)
    _, gradient = risk.value_and_gradient(w)
    steps = 1e-6 * np.eye(len(w))
    assert np.allclose(gradient, [(risk.value(w + e) - risk.value(w - e)) / 2e-6 for e in steps], atol=1e-5)
    t = s.scores(w, X)
    Z = s.argmax(t)[0]
    assert np.allclose(s.difference(X, Y, Z) @ w, s.score(t, Y) - s.score(t, Z))


def minimised(s: LabelSets, loss: str, solver: str, C: float, X: Sequences, Y: np.ndarray) -> np.ndarray:
    risk = Risk(s, resolve_loss(loss), X, Y)
    settings = {"max_iter": 2000, "tol": 1e-6, "monitor": Monitor(), "random_state": 0}
    return resolve_solver(solver).minimize(risk, Penalty(), C, None, **settings).w


def test_without_pairs_the_hinge_loss_gives_separate_machines():
    """max over z of [z ≠ y] + z θ − y θ = max(0, 1 − s θ) with s = ±1, so that the loss is that of T machines."""
    X, Y = inputs(40)
    rows = X.rows.matrix(0, 40)
    W = minimised(LabelSets(4, 3, []), "hinge", "cutting-plane", 0.7, X, Y).reshape(3, 4)
    for t in range(4):
        one = LinearSVC(C=0.7, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000).fit(rows, Y[:, t])
        assert np.allclose(W[:, t], one.coef_[0], atol=2e-2)
        values = []
        for w in (W[:, t], one.coef_[0]):
            values.append(0.5 * w @ w + 0.7 * np.maximum(0, 1 - (2 * Y[:, t] - 1) * (rows @ w)).sum())
        assert values[0] == pytest.approx(values[1], rel=1e-4)


@pytest.mark.parametrize(("loss", "solvers"), [("log", ("lbfgs",)), ("hinge", ("cutting-plane", "bcfw"))])
def test_solvers_agree_and_pairs_fit_better(loss, solvers):
    X, Y = inputs(60)
    Y[:, 1] = Y[:, 0]  # labels that go together
    s, alone = LabelSets(4, 3), LabelSets(4, 3, [])
    risk, independent = Risk(s, resolve_loss(loss), X, Y), Risk(alone, resolve_loss(loss), X, Y)
    values = []
    for solver in solvers:
        w = minimised(s, loss, solver, 1.0, X, Y)
        values.append(0.5 * w @ w + risk.value(w))
    assert np.allclose(values, values[0], rtol=1e-3)
    w = minimised(alone, loss, solvers[0], 1.0, X, Y)
    assert values[0] < 0.5 * w @ w + independent.value(w)


SHAPES = {
    "tree": [(0, 1), (1, 2), (1, 3)],
    "cliques": [(0, 1), (1, 2), (2, 0), (2, 3)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_graphs_of_labels_answer_like_enumeration(shape, monkeypatch):
    monkeypatch.setattr(label_sets, "MOST_ENUMERATED", 2)
    s = LabelSets(4, 3, SHAPES[shape])
    t = theta(s)
    t.constant += np.arange(5.0)
    scores = by_hand(s, t)
    assert s.plan().exact_sums
    assert s.plan().exact_maxima
    assert np.allclose(s.argmax(t)[1], scores.max(axis=1))
    assert np.allclose(s.argmin(t)[1], scores.min(axis=1))
    y, values = s.k_best(t, 3)
    assert np.allclose(values, np.sort(scores, axis=1)[:, ::-1][:, :3])
    assert np.allclose(s.score(t, y[2]), values[:, 2])
    log_z = np.log(np.exp(scores).sum(axis=1))
    p = np.exp(scores - log_z[:, None])
    mu = s.marginals(t)
    assert np.allclose(s.log_partition(t), log_z)
    assert np.allclose(mu.labels, p @ SETS)
    assert np.allclose(mu.pairs, p @ (SETS[:, s.pairs[:, 0]] * SETS[:, s.pairs[:, 1]]))
    assert np.allclose(s.entropy(t), -(p * np.log(p)).sum(axis=1))
    drawn = s.sample(t, 3000, random_state=0)
    assert np.abs(drawn.mean(axis=0) - mu.labels).max() < 0.05
    Y = np.random.default_rng(1).integers(0, 2, (5, 4))
    wrong = (SETS[None] != Y[:, None]).sum(axis=2)
    assert np.allclose(s.most_violating(t, Y)[1], (scores + wrong).max(axis=1))
    assert np.allclose(s.most_violating(t, Y, ZeroOne())[1], (scores + (wrong > 0)).max(axis=1))


def test_approximate_sums_are_bounds_and_the_best_found_is_a_set(monkeypatch):
    monkeypatch.setattr(label_sets, "MOST_ENUMERATED", 2)
    s = LabelSets(4, 3, "all", inference="trw")
    t = theta(s)
    scores = by_hand(s, t)
    assert not s.plan().exact_sums
    log_z = s.log_partition(t)
    assert (log_z >= np.log(np.exp(scores).sum(axis=1)) - 1e-4).all()
    assert s.unconverged == 0
    y, value = s.argmax(t)
    assert np.allclose(s.score(t, y), value)
    assert np.mean(value >= scores.max(axis=1) - 1e-9) >= 0.6
    two, values = s.k_best(t, 2)
    assert np.array_equal(two[0], y)
    assert ((two[1] != y).sum(axis=1) == 1).all()
    assert np.allclose(s.score(t, two[1]), values[:, 1])
    with pytest.raises(ValueError, match="two best sets"):
        s.k_best(t, 3)


def test_the_best_set_of_many_labels_that_attract_is_a_cut(monkeypatch):
    rng = np.random.default_rng(0)
    for _ in range(10):
        pairs = [pair for pair in itertools.combinations(range(8), 2) if rng.random() < 0.7]
        s = LabelSets(8, 1, pairs)
        t = s.with_scores(rng.normal(size=(3, 8)) - 1.0, rng.random(len(pairs)))
        wanted = s.argmax(t)[1]
        monkeypatch.setattr(label_sets, "MOST_ENUMERATED", 2)
        assert np.allclose(LabelSets(8, 1, pairs).argmax(t)[1], wanted, atol=1e-6)
        monkeypatch.undo()


def test_a_tree_of_labels_needs_no_enumeration():
    pairs = [(i, i + 1) for i in range(11)]
    rng = np.random.default_rng(0)
    tree, every = LabelSets(12, 1, pairs), LabelSets(12, 1, [*pairs, (0, 2)])
    t = tree.with_scores(rng.normal(size=(4, 12)), rng.normal(size=11))
    same = every.with_scores(t.labels, np.append(t.pairs, 0.0))
    assert (tree.plan().sums, every.plan().sums) == ("tree", "enumeration")
    assert np.allclose(tree.log_partition(t), every.log_partition(same))
    assert np.allclose(tree.argmax(t)[1], every.argmax(same)[1])


def test_forty_labels_on_a_chain_equal_sums_by_hand():
    """log Z and the best set of a chain by the recursion over its labels."""
    rng = np.random.default_rng(0)
    s = LabelSets(40, 1, [(i, i + 1) for i in range(39)])
    t = s.with_scores(rng.normal(size=(2, 40)), rng.normal(size=39))
    for i in range(2):
        total, best = np.array([0.0, t.labels[i, 0]]), np.array([0.0, t.labels[i, 0]])
        for j in range(1, 40):
            step = np.array([[0.0, t.labels[i, j]], [0.0, t.labels[i, j] + t.pairs[j - 1]]])
            total, best = np.logaddexp.reduce(total[:, None] + step, axis=0), (best[:, None] + step).max(axis=0)
        assert np.isclose(s.log_partition(t)[i], np.logaddexp.reduce(total))
        assert np.isclose(s.argmax(t)[1][i], best.max())


def test_dependent_pairs_find_planted_trees():
    rng = np.random.default_rng(0)
    Y = np.zeros((2000, 6), int)
    Y[:, 0] = rng.random(2000) < 0.5
    planted = [(0, 1), (1, 2), (1, 3), (0, 4)]
    for s, t in planted:
        Y[:, t] = np.where(rng.random(2000) < 0.85, Y[:, s], 1 - Y[:, s])
    Y[:, 5] = 1  # always there: says nothing
    assert sorted(dependent_pairs(Y)) == sorted(planted)
    assert dependent_pairs(Y, 2) == dependent_pairs(Y)[:2]
    with pytest.raises(ValueError, match="0 and 1"):
        dependent_pairs(2 * Y)
    with pytest.raises(ValueError, match="no rows"):
        dependent_pairs(Y[:0])
    with pytest.raises(ValueError, match="column for each label"):
        dependent_pairs(Y[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelSets(3, 2, inference="magic"), "inference"),
        (lambda: LabelSets(0, 2), "n_labels"),
        (lambda: LabelSets(3, 2, "some"), "'all'"),
        (lambda: LabelSets(3, 2, [(0, 3)]), "two different labels"),
        (lambda: LabelSets(3, 2, [(0, 0)]), "two different labels"),
        (lambda: LabelSets(3, 2, [(0, 1), (1, 0)]), "none twice"),
        (lambda: LabelSets(3, 2).with_scores(np.zeros((1, 2)), np.zeros(3)), "3 labels"),
        (lambda: LabelSets(4, 2).scores(np.zeros(14), inputs()[0]), "features"),
        (lambda: structure("all").k_best(theta(structure("all")), 0), "k must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_weighted_cost_is_the_sum_of_the_weights_of_wrong_labels():
    structure = LabelSets(3, 1, [])
    y, z = np.array([[1, 0, 1], [0, 0, 0]]), np.array([[0, 0, 0], [0, 1, 1]])
    assert structure.cost_between(y, z, Hamming([1.0, 2.0, 4.0])).tolist() == [5.0, 6.0]
    assert structure.cost_between(y, z, Hamming()).tolist() == structure.cost_between(y, z).tolist() == [2.0, 2.0]
