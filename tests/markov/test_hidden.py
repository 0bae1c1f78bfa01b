"""Hidden Markov models: all equals enumeration, Baum-Welch never falls, counts are counts."""

from __future__ import annotations

import functools
import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import multivariate_normal
from sklearn.base import clone

import mercer
from mercer import _core
from mercer.learning import ConvergenceWarning
from mercer.markov import HiddenMarkovModel as HMM
from mercer.markov.emissions import Multinomial
from mercer.structures.chain import Chain, ChainScores

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


def joint(model, emitted, states) -> float:
    """log p(x, y), factor by factor, from the fitted probabilities."""
    total = np.log(model.start_[states[0]])
    for t, s in enumerate(states):
        if t:
            total += np.log(model.transitions_[states[t - 1], s])
        total += emitted[t][s]
    return float(total)


def emission_logs(model, rows) -> list[list[float]]:
    """log p(x_t | s), position by position."""
    if hasattr(model, "covariances_"):
        return [[float(np.log(density(model, row, s))) for s in range(3)] for row in rows]
    return [[float((row * np.log(model.emission_[s])).sum()) for s in range(3)] for row in rows]


def density(model, row, s) -> float:
    """p(x | state) as a sum over the components of the state."""
    d = len(row)
    covariances = model.covariances_.reshape(len(model.classes_), model.weights_.shape[1], -1)
    total = 0.0
    for m, weight in enumerate(model.weights_[s]):
        inner = covariances[s, m]
        matrix = inner.reshape(d, d) if model.covariance == "full" else np.diag(np.broadcast_to(inner, d))
        total += weight * multivariate_normal(model.means_[s, m], matrix).pdf(row)
    return total


@functools.cache
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
        "full": (HMM(covariance="full", n_states=3, random_state=0, max_iter=5).fit(points), points),
        "spherical": (HMM(covariance="spherical").fit(points, states), points),
        "mixture": (HMM(emission="mixture", n_mixtures=3, random_state=0).fit(points, states), points),
        "full mixture": (
            HMM(3, emission="mixture", covariance="full", training="viterbi", random_state=0, max_iter=5).fit(points),
            points,
        ),
    }


KINDS = ["categorical", "counts", "sparse counts", "gaussian", "full", "spherical", "mixture", "full mixture"]


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_and_best_states_equal_enumeration(kind):
    model, X = models()[kind]
    for length in (1, 3, 6, 7):
        x = X[0][:length]
        matrix = model.index_.encode([x])[0] if kind == "categorical" else x
        rows = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        every = list(itertools.product(range(3), repeat=len(rows)))
        emitted = emission_logs(model, rows)
        scores = np.array([joint(model, emitted, states) for states in every])
        top = scores.max()
        log_likelihood = top + np.log(np.exp(scores - top).sum())
        assert np.isclose(model.log_likelihood([x])[0], log_likelihood, rtol=1e-10)
        assert model.predict([x])[0] == [model.classes_[s] for s in every[int(scores.argmax())]]
        p = np.exp(scores - log_likelihood)
        marginals = np.array([[p[[z[t] == s for z in every]].sum() for s in range(3)] for t in range(len(rows))])
        np.testing.assert_allclose(model.predict_marginals([x])[0], marginals, atol=1e-10)


@pytest.mark.parametrize("training", ["em", "viterbi"])
@pytest.mark.parametrize("kind", ["categorical", "diag", "full", "spherical", "mixture"])
@pytest.mark.parametrize("seed", [0])
def test_training_never_lowers_its_objective(kind, training, seed):
    X = planted(20, 15, seed)[0] if kind == "categorical" else vectors(15, 12, seed)[0]
    options = {"covariance": kind} if kind in ("diag", "full", "spherical") else {"emission": kind}
    model = HMM(n_states=3, random_state=seed, max_iter=25, tol=-1.0, training=training, **options).fit(X)
    objective = np.array(model.history_["objective"])
    assert len(objective) == 25
    assert (np.diff(objective) >= -1e-8 * np.abs(objective[1:])).all()
    assert objective[-1] > objective[0]


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
        np.testing.assert_allclose(model.covariances_[s], stacked[states == s].var(axis=0), rtol=1e-6)


def test_a_planted_model_is_recovered_up_to_the_names_of_the_states():
    X, y, start, A, B = planted()
    best = max((HMM(n_states=3, random_state=s, max_iter=200).fit(X) for s in range(4)), key=lambda m: m.score(X))
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
        if not hasattr(model, "covariances_"):
            np.testing.assert_allclose(model.emission_.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", KINDS)
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
    known = [[t if t == p else None for t, p in zip(a, b, strict=True)] for a, b in zip(y, predicted, strict=True)]
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
        ({}, ([["a", "b"]], [[None, None]]), "contains no label"),
        ({"covariance": "tied"}, ([["a"]],), "covariance"),
        ({"training": "sgd"}, ([["a"]],), "training"),
        ({"n_init": 0}, ([["a"]],), "n_init"),
        ({"n_mixtures": 0}, ([["a"]],), "n_mixtures"),
        ({"emission": "categorical"}, ([[{"a": 1.0, "b": 1.0}]],), "one name per position"),
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


def test_some_labels_are_kept_to_and_name_the_states():
    X, y, _, A, _ = planted(80, 20)
    names = [[["low", "mid", "high"][s] for s in states] for states in y]
    random = np.random.default_rng(0)
    some = [[tag if random.random() < 0.1 else None for tag in tags] for tags in names]
    model = HMM(random_state=0).fit(X, some)
    assert set(model.classes_) == {"low", "mid", "high"}
    assert model.score(X, names) > HMM().fit([X[0]], [names[0]]).score(X, names) - 0.02
    assert model.score(X, names) > 0.85
    order = [list(model.classes_).index(name) for name in ("low", "mid", "high")]
    np.testing.assert_allclose(model.transitions_[np.ix_(order, order)], A, atol=0.1)


def test_of_several_starts_the_best_is_kept():
    X = planted(30, 10)[0]
    single = [HMM(3, random_state=s, max_iter=30).fit(X).history_["objective"][-1] for s in range(3)]
    best = HMM(3, random_state=0, max_iter=30, n_init=6).fit(X)
    assert best.history_["objective"][-1] >= single[0]
    theta = best.log_likelihood(X).sum() + best._log_prior()
    assert theta >= best.history_["objective"][-1] - 1e-6


def test_mixtures_fit_states_with_two_modes():
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        states = np.repeat([0, 1], 10)
        centre = np.where(states == 0, random.choice([-6.0, 6.0], size=20), 0.0)
        X.append((centre + random.normal(size=20))[:, None])
        y.append(states.tolist())
    single, double = HMM().fit(X, y), HMM(emission="mixture", n_mixtures=2, random_state=0).fit(X, y)
    assert double.score(X) > single.score(X) + 5
    assert double.score(X, y) >= single.score(X, y)
    np.testing.assert_allclose(np.sort(double.means_[0].ravel()), [-6, 6], atol=0.5)
    np.testing.assert_allclose(double.weights_.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["gaussian", "full", "spherical", "mixture", "full mixture"])
def test_drawn_vectors_have_the_variances_of_the_model(kind):
    """Var(x | s) = Σ_m w_m (Σ_m + μ_m μ_mᵀ) − μ μᵀ, over the components of the state."""
    model, _ = models()[kind]
    n, d, M = len(model.classes_), 2, model.weights_.shape[1]
    inner = model.covariances_.reshape(n, M, -1)
    X, states = model.sample(20_000, random_state=3)
    path = np.array([list(model.classes_).index(s) for s in states[0]])
    for s in range(n):
        expected = -np.outer(model.emission_[s], model.emission_[s])
        for weight, mean, part in zip(model.weights_[s], model.means_[s], inner[s], strict=True):
            matrix = part.reshape(d, d) if model.covariance == "full" else np.diag(np.broadcast_to(part, d))
            expected = expected + weight * (matrix + np.outer(mean, mean))
        drawn = X[0][path == s]
        assert len(drawn) > 500
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        np.testing.assert_allclose(np.cov(drawn.T) / scale, expected / scale, atol=6 / np.sqrt(len(drawn)))


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "full", "mixture"])
def test_drawn_sequences_have_the_frequencies_of_the_model(kind):
    model, _ = models()[kind]
    X, states = model.sample([4000, 3000], random_state=0)
    assert [len(x) for x in X] == [4000, 3000]
    path = [list(model.classes_).index(s) for s in states[0]]
    counts = np.zeros((3, 3))
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), model.transitions_, atol=0.06)
    if kind == "categorical":
        names = model.index_.names()
        for s in range(3):
            drawn = [x for x, z in zip(X[0], path, strict=True) if z == s]
            share = [drawn.count(name) / len(drawn) for name in names]
            np.testing.assert_allclose(share, model.emission_[s], atol=0.06)
    else:
        for s in range(3):
            np.testing.assert_allclose(X[0][np.array(path) == s].mean(axis=0), model.emission_[s], atol=0.4)
    again, _ = model.sample([4000, 3000], random_state=0)
    assert all((a == b).all() if isinstance(a, np.ndarray) else a == b for a, b in zip(X, again, strict=True))
    assert [len(x) for x in model.sample(7)[0]] == [7]


def test_what_a_model_does_not_have_is_an_attribute_error():
    X, y, *_ = planted(5, 5)
    assert not hasattr(HMM().fit(X, y), "means_")
    assert not hasattr(HMM(), "emission_")


def test_names_one_a_position_are_counted_as_features_are(monkeypatch):
    """Positions that share the row of their name give what rows of their own give."""
    X = planted(30, 12, 4)[0] + [[]]
    one = HMM(n_states=3, random_state=0, max_iter=15, tol=-1.0).fit(X)
    monkeypatch.setattr(Multinomial, "symbols", staticmethod(lambda matrix: None))
    other = HMM(n_states=3, random_state=0, max_iter=15, tol=-1.0).fit(X)
    for name in ("start_", "transitions_", "emission_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(one.history_["objective"], other.history_["objective"], rtol=1e-12)


def chain_of_symbols(seed: int, forbid: float = 0.0, scale: float = 1.0):
    random = np.random.default_rng(seed)
    C, rows, lengths = 5, 7, [4, 0, 9, 1, 300]
    table = random.normal(size=(rows, C)) * scale
    table[random.random(table.shape) < forbid] = -np.inf
    table[:, 0] = np.maximum(table[:, 0], -50.0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = random.integers(0, rows, size=offsets[-1]).astype(np.int32)
    return table, codes, np.log(random.dirichlet(np.ones(C), size=C)), np.log(random.dirichlet(np.ones(C))), offsets


@pytest.mark.parametrize(("forbid", "scale"), [(0.0, 1.0), (0.4, 1.0), (0.0, 300.0)])
@pytest.mark.parametrize("threads", [1, 3])
def test_expected_counts_of_symbols_equal_those_of_positions(forbid, scale, threads):
    table, codes, transitions, start, offsets = chain_of_symbols(1, forbid, scale)
    C = len(start)
    mu = Chain(C, 1).marginals(ChainScores(table[codes], transitions, start, np.zeros(C), offsets))
    nodes, counts, moves, first = np.empty((len(codes), C)), np.zeros_like(table), np.zeros((C, C)), np.zeros(C)
    logs = np.empty(len(offsets) - 1)
    _core.chain.hidden_marginals(table, codes, transitions, start, offsets, nodes, counts, moves, first, logs, threads)
    np.testing.assert_allclose(nodes, mu.nodes, atol=1e-12)
    np.testing.assert_allclose(moves, mu.transitions, atol=1e-10)
    np.testing.assert_allclose(first, mu.start, atol=1e-12)
    np.testing.assert_allclose(logs, mu.log_partition, rtol=1e-12)
    expected = np.zeros_like(table)
    np.add.at(expected, codes, mu.nodes)
    np.testing.assert_allclose(counts, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.array([7], np.int32)}, "rows of table"),
        ({"codes": np.array([-1], np.int32)}, "rows of table"),
        ({"offsets": np.array([0, 2])}, "do not fit"),
        ({"offsets": np.array([1, 0])}, "decrease"),
        ({"table": np.full((2, 2), np.nan)}, "NaN"),
        ({"start": np.zeros(3)}, "start"),
        ({"nodes": np.zeros((2, 2))}, "nodes"),
        ({"counts": np.zeros((1, 2))}, "counts"),
        ({"log_partition": np.zeros(2)}, "log_partition"),
    ],
)
def test_compiled_counts_check_their_arrays(change, message):
    arrays = {
        "table": np.zeros((2, 2)), "codes": np.array([1], np.int32), "transitions": np.zeros((2, 2)),
        "start": np.zeros(2), "offsets": np.array([0, 1]), "nodes": np.zeros((1, 2)), "counts": np.zeros((2, 2)),
        "out_transitions": np.zeros((2, 2)), "out_start": np.zeros(2), "log_partition": np.zeros(1),
    }  # fmt: skip
    _core.chain.hidden_marginals(**arrays)
    with pytest.raises(ValueError, match=message):
        _core.chain.hidden_marginals(**{**arrays, **change})
