"""Hidden Markov models beside hmmlearn: the same answers from the same parameters, and the likelihood reached."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from mercer.markov import HiddenMarkovModel

hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn: not installed")

pytestmark = pytest.mark.filterwarnings("ignore::mercer.learning.ConvergenceWarning")
logging.getLogger("hmmlearn").setLevel(logging.ERROR)

START = np.array([0.5, 0.3, 0.2])
MOVES = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
SYMBOLS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.05, 0.05, 0.2, 0.7]])
MEANS = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])


def drawn(kind: str, n: int, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stacked observations and states of sequences from a chain of three states."""
    random = np.random.default_rng(seed)
    states = np.empty((n, length), int)
    for row in states:
        row[0] = random.choice(3, p=START)
        for t in range(1, length):
            row[t] = random.choice(3, p=MOVES[row[t - 1]])
    flat = states.ravel()
    if kind == "symbols":
        return np.array([random.choice(4, p=SYMBOLS[s]) for s in flat])[:, None], states
    return MEANS[flat] + random.normal(size=(len(flat), 2)), states


def as_ours(kind: str, stacked: np.ndarray, n: int) -> list:
    if kind == "symbols":
        return [["abcd"[v] for v in row] for row in stacked.reshape(n, -1)]
    return list(stacked.reshape(n, -1, 2))


def theirs_with_parameters_of(ours: HiddenMarkovModel, kind: str):
    if kind == "symbols":
        model = hmm.CategoricalHMM(3)
        model.emissionprob_ = ours.emission_
    else:
        model = hmm.GaussianHMM(3, covariance_type="diag")
        model.means_, model.covars_ = ours.emission_, ours.covariances_
        model.n_features = 2
    model.startprob_, model.transmat_ = ours.start_, ours.transitions_
    return model


@pytest.mark.parametrize("kind", ["symbols", "vectors"])
@pytest.mark.parametrize("seed", range(3))
def test_equal_parameters_give_equal_answers(kind, seed):
    n, length = 20, 30
    stacked, states = drawn(kind, n, length, seed)
    X, lengths = as_ours(kind, stacked, n), [length] * n
    ours = HiddenMarkovModel().fit(X, states.tolist())
    theirs = theirs_with_parameters_of(ours, kind)
    assert ours.log_likelihood(X).sum() == pytest.approx(theirs.score(stacked, lengths), rel=1e-9)
    marginals = np.concatenate(ours.predict_marginals(X))
    np.testing.assert_allclose(marginals, theirs.predict_proba(stacked, lengths), atol=1e-8)
    best, path = theirs.decode(stacked, lengths)
    assert np.array_equal(np.concatenate(ours.predict(X)), path)
    assert best <= theirs.score(stacked, lengths)


@pytest.mark.parametrize("kind", ["symbols", "vectors"])
def test_training_without_labels_reaches_the_likelihood_of_hmmlearn(kind):
    n, length = 40, 60
    gains, peer_gains = [], []
    for seed in range(20):
        stacked, _ = drawn(kind, n, length, seed)
        X, lengths = as_ours(kind, stacked, n), [length] * n
        if kind == "symbols":
            shares = np.bincount(stacked.ravel()) / len(stacked)
            alone = float(np.log(shares)[stacked.ravel()].sum())
            peer = hmm.CategoricalHMM(3, n_iter=200, tol=1e-3, random_state=seed)
        else:
            spread = stacked.var(axis=0)
            alone = float(-0.5 * (np.log(2 * np.pi * spread) + (stacked - stacked.mean(axis=0)) ** 2 / spread).sum())
            peer = hmm.GaussianHMM(3, n_iter=200, tol=1e-3, random_state=seed)
        ours = HiddenMarkovModel(3, random_state=seed).fit(X)
        gains.append(float(ours.log_likelihood(X).sum()) - alone)
        peer_gains.append(peer.fit(stacked, lengths).score(stacked, lengths) - alone)
    # Nats above the model whose positions are independent. Pseudo-counts cost a few of them, a bad start hundreds.
    figures = f"ours {np.round(gains)}, hmmlearn {np.round(peer_gains)}"
    assert np.median(gains) >= np.median(peer_gains) - 10, figures
    assert np.sum(np.array(gains) >= np.array(peer_gains) - 10) >= 17, figures
    assert min(gains) > 0.5 * np.median(peer_gains), figures
