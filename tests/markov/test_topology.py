"""Given parameters and topology: zeros stay, likelihoods equal enumeration, scores equal finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer
from mercer.kernels import Fisher
from mercer.markov import HiddenMarkovModel

LEFT_RIGHT = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
FIRST = np.array([1.0, 0.0, 0.0])
TABLE = np.array([[0.7, 0.3, 0.0], [0.2, 0.2, 0.6], [0.0, 0.5, 0.5]])


def given(**more):
    return HiddenMarkovModel.from_parameters(FIRST, LEFT_RIGHT, **({"emission": TABLE, "names": "abc"} | more))


def likelihood(x, start, transitions, emission):
    """p(x), one path after the other."""
    total = 0.0
    for path in itertools.product(range(len(start)), repeat=len(x)):
        p = start[path[0]] * emission[path[0], x[0]]
        for t in range(1, len(x)):
            p *= transitions[path[t - 1], path[t]] * emission[path[t], x[t]]
        total += p
    return total


def test_given_parameters_are_a_model():
    model = given()
    for x in ("a", "aab", "acb", "c", "abcb"):
        p = likelihood(["abc".index(c) for c in x], FIRST, LEFT_RIGHT, TABLE)
        with np.errstate(divide="ignore"):
            assert model.log_likelihood([x])[0] == pytest.approx(np.log(p))
    numbers = given(names=[3, 5, 9])
    assert numbers.log_likelihood([[3, 5]])[0] == pytest.approx(model.log_likelihood(["ab"])[0])
    assert given(classes=["x", "y", "z"]).predict(["acc"]) == [["x", "y", "y"]]


@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("mixture", [False, True])
def test_given_normals_are_those_of_scipy(covariance, mixture):
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, 2, 2) if mixture else (3, 2))
    variances = rng.random(means.shape) + 0.5
    matrices = variances[..., None] * np.eye(2) + 0.1
    weights = np.array([[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]) if mixture else None
    model = HiddenMarkovModel.from_parameters(
        np.full(3, 1 / 3), LEFT_RIGHT, means=means, covariances=matrices if covariance == "full" else variances,
        weights=weights,
    )  # fmt: skip
    x = rng.normal(size=2)

    def density(mean, variance, matrix):
        return multivariate_normal(mean, matrix if covariance == "full" else np.diag(variance)).pdf(x)

    parts = zip(means.reshape(-1, 2), variances.reshape(-1, 2), matrices.reshape(-1, 2, 2), strict=True)
    densities = np.array([density(*part) for part in parts]).reshape(3, -1)
    wanted = (densities * (1.0 if weights is None else weights)).sum() / 3
    with np.errstate(divide="ignore"):
        assert model.log_likelihood([x[None]])[0] == pytest.approx(np.log(wanted))


@pytest.mark.parametrize("training", ["em", "viterbi"])
@pytest.mark.parametrize("symbols", [False, True])
def test_zeros_stay_zeros_and_the_objective_never_falls(training, symbols):
    drawn, _ = given().sample([12] * 20, random_state=1)
    if not symbols:
        drawn = [np.array([["abc".index(c) * 2.0] for c in x]) for x in drawn]
    model = HiddenMarkovModel(training=training, n_init=3, random_state=0, start=FIRST, transition=LEFT_RIGHT).fit(
        drawn
    )
    assert (model.transitions_[LEFT_RIGHT == 0] == 0).all()
    assert model.start_.tolist() == [1.0, 0.0, 0.0]
    assert (np.diff(model.history_["objective"]) > -1e-8).all()
    assert all(path == sorted(path) and path[0] == 0 for path in model.predict(drawn))
    again = type(model).from_state(*model.to_state())
    np.testing.assert_array_equal(again.log_likelihood(drawn), model.log_likelihood(drawn))


def test_a_left_to_right_model_is_found_again():
    drawn, states = given().sample([15] * 200, random_state=0)
    model = HiddenMarkovModel(random_state=0, smoothing=0.01, start=FIRST, transition=LEFT_RIGHT).fit(drawn)
    assert model.log_likelihood(drawn).sum() >= given().log_likelihood(drawn).sum()
    right = np.concatenate([np.array(a) == b for a, b in zip(model.predict(drawn), states, strict=True)])
    assert right.mean() > 0.85


def test_labels_that_the_topology_forbids_are_named():
    options = {"start": [1.0, 0.0], "transition": [[0.5, 0.5], [0.0, 1.0]]}
    fitted = HiddenMarkovModel(**options).fit([["a", "b"]], [["one", "two"]])
    assert fitted.transitions_[1, 0] == 0
    with pytest.raises(ValueError, match="'one' follows 'two', and transition\\[1, 0\\] is 0"):
        HiddenMarkovModel(**options).fit([["a", "b", "a"]], [["one", "two", "one"]])
    with pytest.raises(ValueError, match="begins with 'two'"):
        HiddenMarkovModel(**options).fit([["a", "b"], ["a"]], [["two", "two"], ["one"]])
    with pytest.raises(ValueError, match="2 states, but y has 3 labels"):
        HiddenMarkovModel(**options).fit([["a", "b", "c"]], [["one", "three", "two"]])
    with pytest.raises(ValueError, match="probability 0"):
        HiddenMarkovModel(**options).fit([["a", "b", "b", "a"]], [["one", "two", None, "one"]])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": [0.5, 0.6]}, "start must sum to 1"),
        ({"start": [[1.0]]}, "start must be an array of 1 dimension"),
        ({"transition": [[0.5, 0.5], [0.5, 0.6]]}, "transition must sum to 1 in each row"),
        ({"transition": [[0.5, 0.5]]}, "transition must be of shape"),
        ({"transition": [[-1.0, 2.0], [0.0, 1.0]]}, "negative or not finite"),
        ({"start": [1.0], "transition": np.eye(2)}, "transition must be of shape \\(1, 1\\)"),
    ],
)
def test_wrong_probabilities_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkovModel(**wrong).fit([["a", "b"]])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"emission": None}, "pass emission"),
        ({"means": np.zeros((3, 1))}, "pass emission"),
        ({"emission": TABLE[:2]}, "a row for each of the 3 states"),
        ({"names": "ab"}, "3 different names"),
        ({"names": [3, 2, 1]}, "ascend"),
        ({"names": [1, "a", 2]}, "strings, or integers"),
        ({"classes": ["a", "b"]}, "3 different states"),
        ({"emission": None, "names": None, "means": np.zeros((3, 1))}, "covariances must be of shape"),
        ({"emission": None, "names": None, "means": np.zeros((2, 1))}, "means must be of shape"),
        (
            {"emission": None, "means": np.zeros((3, 1)), "covariances": np.ones((3, 1))},
            "names are the names of symbols",
        ),
        ({"emission": None, "names": None, "means": np.zeros((3, 1)), "covariances": np.zeros((3, 1))}, "above 0"),
        ({"emission": None, "names": None, "means": np.zeros((3, 1)), "covariances": -np.ones((3, 1, 1))}, "definite"),
        ({"emission": None, "names": None, "means": np.zeros((3, 2, 1)), "covariances": np.ones((3, 2, 1))}, "weights"),
    ],
)
def test_wrong_parameters_are_named(more, message):
    with pytest.raises(ValueError, match=message):
        given(**more)


def test_scores_of_symbols_equal_finite_differences():
    start, transitions = np.array([0.5, 0.3, 0.2]), LEFT_RIGHT
    model = HiddenMarkovModel.from_parameters(start, transitions, emission=TABLE, names="abc")
    x = [0, 1, 2, 1]
    (score,) = model.scores([["abc"[k] for k in x]])

    def value(logits):
        def softmax(p, shift):
            e = p * np.exp(shift)
            return e / e.sum(axis=-1, keepdims=True)

        parts = logits[:3], logits[3:12].reshape(3, 3), logits[12:].reshape(3, 3)
        return np.log(likelihood(x, *(softmax(p, s) for p, s in zip((start, transitions, TABLE), parts, strict=True))))

    steps = 1e-6 * np.eye(21)
    np.testing.assert_allclose(score, [(value(e) - value(-e)) / 2e-6 for e in steps], atol=1e-8)


@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("components", [1, 2])
def test_scores_of_vectors_equal_finite_differences(covariance, components):
    rng = np.random.default_rng(0)
    M, S, d = components, 2, 2
    means, variances = rng.normal(size=(S, M, d)), rng.random((S, M, d)) + 0.5
    matrices = variances[..., None] * np.eye(2) + 0.2
    start, transitions = np.array([0.4, 0.6]), np.array([[0.5, 0.5], [0.2, 0.8]])
    shares = np.full((S, M), 1 / M)
    x = rng.normal(size=(5, d))

    def build(first, following, logits, m, c):
        def softmax(p, shift):
            e = p * np.exp(shift)
            return e / e.sum(axis=-1, keepdims=True)

        c = matrices + _symmetric(c.reshape(S, M, 3)) if covariance == "full" else variances * np.exp(c)
        m = means + m
        squeeze = (lambda a: a[:, 0]) if M == 1 else (lambda a: a)
        return HiddenMarkovModel.from_parameters(
            softmax(start, first), softmax(transitions, following), means=squeeze(m), covariances=squeeze(c),
            weights=None if M == 1 else softmax(shares, logits),
        )  # fmt: skip

    shapes = [(S,), (S, S), (S, M) if M > 1 else (0,), (S, M, d), (S, M, 3) if covariance == "full" else (S, M, d)]
    sizes = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])

    def value(v):
        parts = [v[a:b].reshape(s) for (a, b), s in zip(itertools.pairwise(sizes), shapes, strict=True)]
        return build(*parts).log_likelihood([x])[0]

    (score,) = build(*map(np.zeros, shapes)).scores([x])
    steps = 1e-6 * np.eye(sizes[-1])
    np.testing.assert_allclose(score, [(value(e) - value(-e)) / 2e-6 for e in steps], atol=1e-6)


def _symmetric(entries):
    out = np.zeros((*entries.shape[:-1], 2, 2))
    out[..., 0, 0], out[..., 0, 1], out[..., 1, 0], out[..., 1, 1] = (entries[..., k] for k in (0, 1, 1, 2))
    return out


def test_fisher_takes_a_hidden_markov_model(tmp_path):
    drawn, _ = given().sample([8] * 12, random_state=1)
    model = HiddenMarkovModel(2, n_init=2, random_state=0).fit(drawn)
    kernel = Fisher(model, sample=drawn)
    K = kernel(drawn)
    assert K.shape == (12, 12)
    assert np.linalg.eigvalsh(K).min() > -1e-8 * np.abs(K).max()
    with pytest.raises(ValueError, match="probability 0"):
        given().scores(["c"])


def test_a_given_model_comes_back_from_its_file(tmp_path):
    mercer.save(given(), tmp_path / "given.mercer")
    again = mercer.load(tmp_path / "given.mercer")
    np.testing.assert_array_equal(again.log_likelihood(["aacb"]), given().log_likelihood(["aacb"]))


def test_a_model_has_the_names_that_models_of_kernels_have():
    model, x = given(), ["aacb", "", "a"]
    np.testing.assert_array_equal(model.log_prob(x), model.log_likelihood(x))
    assert model.log_prob(x)[1] == 0.0
    assert len(model.parameters) == model.scores(x).shape[1]
    assert not model.scores(x)[1].any()
    np.testing.assert_allclose(np.exp(model.parameters[:3]), model.start_)
    vectors = HiddenMarkovModel(2, "mixture", "full", random_state=0).fit(
        [np.random.default_rng(0).normal(size=(60, 2))]
    )
    assert len(vectors.parameters) == vectors.scores([np.zeros((3, 2))]).shape[1]
    with pytest.raises(NotFittedError):
        _ = HiddenMarkovModel().parameters
