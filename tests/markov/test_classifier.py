"""One hidden Markov model a class: Bayes' rule over likelihoods that can be compared."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.markov import HiddenMarkovModel, HMMClassifier

WORDS = ["aabbaabb", "aabbaab", "abababab", "babababa", "abab"]
KINDS = ["pairs", "pairs", "turns", "turns", "turns"]


def test_probabilities_are_bayes_rule_over_the_models():
    model = HMMClassifier(random_state=0).fit(WORDS, KINDS)
    X = ["aabb", "abab", ""]
    joint = np.exp([one.log_likelihood(X) for one in model.models_]).T * [0.4, 0.6]
    np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True))
    assert model.predict(X).tolist() == ["pairs", "turns", "turns"]
    assert HMMClassifier(priors="equal", random_state=0).fit(WORDS, KINDS).predict_proba([""])[0].tolist() == [0.5, 0.5]


def test_models_share_one_vocabulary():
    """What a class has never seen is improbable for it, not ignored."""
    model = HMMClassifier(HiddenMarkovModel(1)).fit([["a", "a"], ["b", "b"]], [0, 1])
    assert {one.n_features_in_ for one in model.models_} == {2}
    assert model.predict([["a"], ["b"]]).tolist() == [0, 1]
    numbers = HMMClassifier(HiddenMarkovModel(1)).fit([[7, 7], [9, 9]], ["x", "y"])
    assert numbers.predict([[7], [9]]).tolist() == ["x", "y"]
    np.testing.assert_allclose(model.predict_proba([["never seen"]]), [[0.5, 0.5]])


def test_dynamics_are_told_apart_where_positions_are_alike():
    rng = np.random.default_rng(0)

    def walk(stay, n=40):
        states = np.cumsum(rng.random(n) > stay) % 2
        return rng.normal(4.0 * states[:, None], 1.0)

    X = [walk(stay) for stay in (0.9, 0.3) for _ in range(20)]
    y = np.repeat(["slow", "fast"], 20)
    chosen = np.arange(40) % 2 == 0
    model = HMMClassifier(HiddenMarkovModel(2, n_init=2), random_state=0).fit(
        [x for x, c in zip(X, chosen, strict=True) if c], y[chosen]
    )
    assert model.score([x for x, c in zip(X, chosen, strict=True) if not c], y[~chosen]) > 0.9


def test_weights_are_repeats():
    weights = np.array([2, 1, 1, 0, 3])
    base = HiddenMarkovModel(2, n_init=2, random_state=0)
    weighted = HMMClassifier(base).fit(WORDS, KINDS, sample_weight=weights)
    repeated = HMMClassifier(base).fit(np.repeat(WORDS, weights).tolist(), np.repeat(KINDS, weights))
    np.testing.assert_allclose(weighted.priors_, repeated.priors_)
    assert weighted.predict(WORDS).tolist() == repeated.predict(WORDS).tolist()


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, WORDS, KINDS[:2], "one label for each of the 5 sequences"),
        ({"priors": "guess"}, WORDS, KINDS, "priors must be"),
        ({"priors": [0.5, 0.6]}, WORDS, KINDS, "sum to 1"),
        ({"priors": [1.0]}, WORDS, KINDS, "2 probabilities"),
        ({}, [], [], "nothing to learn"),
        ({}, ["ab", ""], ["x", "y"], "class 'y' have no positions"),
        ({}, ["ab", "ba"], ["x", None], "that of sequence 1 is missing"),
        ({}, ["ab", "ba"], [np.nan, 1.0], "that of sequence 0 is missing"),
    ],
)
def test_wrong_input_is_named(options, X, y, message):
    with pytest.raises(ValueError, match=message):
        HMMClassifier(**options).fit(X, y)
    with pytest.raises(TypeError, match="HiddenMarkovModel"):
        HMMClassifier("tagger").fit(WORDS, KINDS)
