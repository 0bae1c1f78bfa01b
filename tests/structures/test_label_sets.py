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
from mercer.structures import LabelSets, ZeroOne

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


def test_the_best_set_of_many_labels_that_attract_is_a_cut():
    rng = np.random.default_rng(0)
    for _ in range(20):
        pairs = [pair for pair in itertools.combinations(range(10), 2) if rng.random() < 0.4]
        s = LabelSets(10, 1, pairs)
        t = s.with_scores(rng.normal(size=(3, 10)) - 1.0, rng.random(len(pairs)))
        wanted = s.argmax(t)[1]
        cuts = np.stack([s._cut(row, t.pairs) for row in t.labels])
        assert np.allclose(s.score(t, cuts), wanted, atol=1e-6)
    large = LabelSets(40, 1, [(i, i + 1) for i in range(39)])
    t = large.with_scores(rng.normal(size=(2, 40)), np.full(39, 0.3))
    assert (large.argmax(t)[1] >= large.score(t, (t.labels > 0).astype(int)) - 1e-6).all()
    with pytest.raises(ValueError, match="limit is 16"):
        large.log_partition(t)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelSets(17, 2), "up to 16"),
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
