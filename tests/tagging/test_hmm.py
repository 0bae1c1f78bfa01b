"""Hidden Markov models (spec 000 S36): all equals enumeration, Baum-Welch never falls, counts are counts."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import mercer
from mercer.learning import ConvergenceWarning
from mercer.tagging import HMM

pytestmark = pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")


def planted(n=200, length=30, seed=0):
    """Words from a chain with three well separated states."""
    rng = np.random.default_rng(seed)
    start = np.array([0.6, 0.3, 0.1])
    A = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]])
    B = np.array([[0.85, 0.05, 0.05, 0.05], [0.05, 0.85, 0.05, 0.05], [0.02, 0.03, 0.45, 0.5]])
    X, y = [], []
    for _ in range(n):
        states = [rng.choice(3, p=start)]
        while len(states) < length:
            states.append(rng.choice(3, p=A[states[-1]]))
        y.append([int(s) for s in states])
        X.append([f"w{rng.choice(4, p=B[s])}" for s in states])
    return X, y, start, A, B


def vectors(n=60, length=20, seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    X, y = [], []
    for _ in range(n):
        states = np.cumsum(rng.random(length) < 0.2) % 3
        y.append(states.tolist())
        X.append(means[states] + rng.normal(size=(length, 2)))
    return X, y, means


def joint(model, rows, states) -> float:
    """log p(x, y), factor by factor, from the fitted probabilities."""
    total = np.log(model.start_[states[0]])
    for t, (row, s) in enumerate(zip(rows, states, strict=True)):
        if t:
            total += np.log(model.transitions_[states[t - 1], s])
        if hasattr(model, "variances_"):
            v = model.variances_[s]
            total += float((-0.5 * np.log(2 * np.pi * v) - 0.5 * (row - model.emission_[s]) ** 2 / v).sum())
        else:
            total += float((row * np.log(model.emission_[s])).sum())
    return float(total)


def models():
    words, tags, *_ = planted(30, 10)
    points, states, _ = vectors(20, 10)
    rng = np.random.default_rng(1)
    counts = [rng.poisson(1.5, size=(8, 5)).astype(float) for _ in range(20)]
    return {
        "categorical": (HMM().fit(words, tags), words),
        "counts": (HMM(emission="multinomial", n_states=3, random_state=0, max_iter=5).fit(counts), counts),
        "sparse counts": (
            HMM(n_states=3, random_state=0, max_iter=5).fit([csr_matrix(c) for c in counts]),
            [csr_matrix(c) for c in counts],
        ),
        "gaussian": (HMM().fit(points, states), points),
    }


@pytest.mark.parametrize("kind", ["categorical", "counts", "sparse counts", "gaussian"])
def test_probabilities_and_best_states_equal_enumeration(kind):
    model, X = models()[kind]
    for length in (1, 3, 6, 7):
        x = X[0][:length]
        matrix = model.index_.encode([x])[0] if kind == "categorical" else x
        rows = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        every = list(itertools.product(range(3), repeat=len(rows)))
        scores = np.array([joint(model, rows, states) for states in every])
        top = scores.max()
        log_likelihood = top + np.log(np.exp(scores - top).sum())
        assert np.isclose(model.log_likelihood([x])[0], log_likelihood, rtol=1e-10)
        assert model.predict([x])[0] == [model.classes_[s] for s in every[int(scores.argmax())]]
        p = np.exp(scores - log_likelihood)
        marginals = np.array(
            [[p[[z[t] == s for z in every]].sum() for s in range(3)] for t in range(len(rows))]
        )
        np.testing.assert_allclose(model.predict_marginals([x])[0], marginals, atol=1e-10)


@pytest.mark.parametrize("kind", ["categorical", "gaussian"])
@pytest.mark.parametrize("seed", range(4))
def test_baum_welch_never_lowers_its_objective(kind, seed):
    X = planted(20, 15, seed)[0] if kind == "categorical" else vectors(15, 12, seed)[0]
    model = HMM(n_states=3, random_state=seed, max_iter=60, tol=0.0).fit(X)
    objective = np.array(model.history_["objective"])
    assert len(objective) > 3
    assert (np.diff(objective) >= -1e-8 * np.abs(objective[1:])).all()
    assert objective[-1] > objective[0] + 1


def test_with_little_smoothing_the_objective_is_the_log_likelihood():
    X = planted(20, 15)[0]
    model = HMM(n_states=3, random_state=0, smoothing=1e-12, max_iter=300, tol=1e-9).fit(X)
    assert np.isclose(model.log_likelihood(X).sum(), model.history_["log_likelihood"][-1], rtol=1e-5)


def test_supervised_parameters_are_smoothed_counts():
    X = [["a", "b", "a"], ["b"], [], ["a", "a"]]
    y = [["S", "T", "S"], ["T"], [], ["S", "S"]]
    model = HMM(smoothing=0.5).fit(X, y)
    assert model.classes_.tolist() == ["S", "T"]
    np.testing.assert_allclose(model.start_, np.array([2.5, 1.5]) / 4)
    np.testing.assert_allclose(model.transitions_, [[1.5 / 3, 1.5 / 3], [1.5 / 2, 0.5 / 2]])
    np.testing.assert_allclose(model.emission_, [[4.5 / 5, 0.5 / 5], [0.5 / 3, 2.5 / 3]])


def test_supervised_gaussians_have_the_moments_of_their_states():
    X, y, _ = vectors()
    model = HMM(smoothing=1e-9).fit(X, y)
    stacked, states = np.concatenate(X), np.concatenate(y)
    for s in range(3):
        np.testing.assert_allclose(model.emission_[s], stacked[states == s].mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(model.variances_[s], stacked[states == s].var(axis=0), rtol=1e-6)


def test_a_planted_model_is_recovered_up_to_the_names_of_the_states():
    X, y, start, A, B = planted()
    best = max(
        (HMM(n_states=3, random_state=s, max_iter=200).fit(X) for s in range(4)), key=lambda m: m.score(X)
    )
    order = [int(best.emission_[:, k].argmax()) for k in (0, 1, 3)]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(best.transitions_[np.ix_(order, order)], A, atol=0.05)
    np.testing.assert_allclose(best.emission_[order], B, atol=0.05)
    np.testing.assert_allclose(best.start_[order], start, atol=0.12)
    assert best.score(X) >= HMM().fit(X, y).score(X) - 0.1


def test_planted_gaussians_are_recovered():
    X, y, means = vectors()
    best = max((HMM(n_states=3, random_state=s).fit(X) for s in range(4)), key=lambda m: m.score(X))
    order = [int(((best.emission_ - m) ** 2).sum(axis=1).argmin()) for m in means]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(best.emission_[order], means, atol=0.3)
    predicted = np.concatenate(best.predict(X))
    assert (np.array(order)[np.concatenate(y)] == predicted).mean() > 0.97


def test_probabilities_add_up_to_one():
    for model, _ in models().values():
        np.testing.assert_allclose(model.start_.sum(), 1.0)
        np.testing.assert_allclose(model.transitions_.sum(axis=1), 1.0)
        if not hasattr(model, "variances_"):
            np.testing.assert_allclose(model.emission_.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["categorical", "counts", "sparse counts", "gaussian"])
def test_saved_and_pickled_models_are_the_same(kind, tmp_path):
    model, X = models()[kind]
    mercer.save(model, tmp_path / "hmm")
    for again in (mercer.load(tmp_path / "hmm"), pickle.loads(pickle.dumps(model))):
        assert again.predict(X) == model.predict(X)
        np.testing.assert_array_equal(again.log_likelihood(X), model.log_likelihood(X))
        assert again.get_params() == model.get_params()
        assert again.history_ == model.history_


def test_the_same_seed_gives_the_same_model_for_any_number_of_threads():
    X = planted(30, 10)[0]
    runs = [HMM(n_states=3, random_state=1, n_jobs=n, max_iter=20).fit(X).transitions_ for n in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_scores_are_accuracy_with_labels_and_likelihood_without():
    X, y, *_ = planted(40, 10)
    model = HMM().fit(X, y)
    predicted = model.predict(X)
    right = np.mean([a == b for p, t in zip(predicted, y, strict=True) for a, b in zip(p, t, strict=True)])
    assert np.isclose(model.score(X, y), right)
    assert np.isclose(model.score(X), model.log_likelihood(X).mean())
    known = [
        [t if t == p else None for t, p in zip(a, b, strict=True)] for a, b in zip(y, predicted, strict=True)
    ]
    assert model.score(X, known) == 1.0


def test_unseen_words_and_empty_sequences_are_no_trouble():
    X, y, *_ = planted(20, 10)
    model = HMM().fit(X, y)
    assert model.predict([[], ["never seen"], X[0]])[0] == []
    assert model.log_likelihood([[]]).tolist() == [0.0]
    assert np.isfinite(model.log_likelihood([["never seen"] * 3])).all()
    assert model.predict([]) == []


def test_a_run_that_still_rises_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        HMM(n_states=3, random_state=0, max_iter=2, tol=0.0).fit(planted(20, 10)[0])
    assert clone(HMM(n_states=5)).n_states == 5


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"n_states": 0}, ([["a"]],), "n_states"),
        ({"smoothing": 0.0}, ([["a"]],), "smoothing"),
        ({"smoothing": float("nan")}, ([["a"]],), "smoothing"),
        ({"max_iter": 0}, ([["a"]],), "max_iter"),
        ({"emission": "poisson"}, ([["a"]],), "emission"),
        ({"emission": "multinomial"}, ([np.array([[-1.0]])],), "negative"),
        ({}, ([],), "nothing to learn"),
        ({}, ([[]],), "nothing to learn"),
        ({}, ([["a", "b"]], [["S"]]), "sequence 0"),
        ({}, ([["a", "b"]], [["S", None]]), "complete labels"),
        ({}, ([np.array([[np.nan]])],), "finite"),
    ],
    ids=str,
)
def test_bad_input_is_refused(parameters, data, message):
    with pytest.raises(ValueError, match=message):
        HMM(**parameters).fit(*data)


def test_features_of_another_number_are_refused():
    X, y, _ = vectors(5, 5)
    with pytest.raises(ValueError, match="X has 3 features, the model has 2"):
        HMM().fit(X, y).predict([np.zeros((2, 3))])
