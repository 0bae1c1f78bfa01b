"""Conditional fields: sampled gradients equal exact ones, and learners come to the optimum of exact training."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.datasets import make_regions
from mercer.labeling import GraphLabeler
from mercer.learning.learners import Chains, Keys, resolve_learner
from mercer.learning.solvers import Sampled
from mercer.learning.solvers.sampled import SAMPLED, LabelField
from mercer.multilabel import MultiLabelCRF
from mercer.multilabel.crf import _LabelSpins
from mercer.structures.graph_inputs import GraphInputs
from mercer.structures.graph_labels import GraphLabels


@pytest.fixture(scope="module")
def graphs():
    random = np.random.default_rng(0)
    inputs = [
        (random.normal(size=(3, 2)), [(0, 1), (1, 2)]),
        (random.normal(size=(4, 2)), [(0, 1), (1, 2), (2, 3), (3, 0)]),
    ]
    structure = GraphLabels(n_labels=3, n_features=2)
    return structure, GraphInputs.from_list(inputs), random.normal(size=structure.n_weights)


def exact_statistics(structure, X, w):
    out = np.zeros(structure.n_weights)
    structure.backward(X, structure.marginals(structure.scores(w, X)), out)
    return out / len(X)


@pytest.mark.parametrize("backward", [False, True])
def test_sweeps_of_labels_leave_their_field_invariant(graphs, backward):
    structure, X, w = graphs
    field = LabelField(structure, X)
    keys, states = Keys(1), field.uniform(20_000, Keys(0))
    for _ in range(12):
        states = field.sweep(states, w, keys, backward=backward)
    np.testing.assert_allclose(field.statistics(states, w), exact_statistics(structure, X, w), atol=0.03)


@pytest.mark.parametrize("name", ["smc", "psmc", "parallel-tempering", "tempered"])
def test_particles_of_every_graph_have_the_exact_expectations(graphs, name):
    structure, X, w = graphs
    field = LabelField(structure, X)
    learner = resolve_learner(name)
    chains = Chains(field, Keys(0), 5000)
    learner.start(chains, np.zeros_like(w))
    for share in (0.5, 1.0, 1.0, 1.0, 1.0, 1.0):
        mean = learner.negative(chains, share * w, None)
    np.testing.assert_allclose(mean, exact_statistics(structure, X, w), atol=0.06)


def test_scores_and_their_paths_are_those_of_the_structure(graphs):
    structure, X, w = graphs
    field = LabelField(structure, X)
    states = field.uniform(3, Keys(0))
    theta = structure.scores(w, X)
    for s, labels in enumerate(states):
        expected = structure._score(theta, labels.astype(np.int64))
        np.testing.assert_allclose(field.log_density(states, w)[s], expected)
        np.testing.assert_allclose(field.path(states, w, 3.0 * w)(0.5)[s], 2.0 * expected)


@pytest.mark.parametrize("solver", ["pcd", "psmc"])
def test_sampled_training_comes_close_to_the_exact_objective(solver):
    task = make_regions(12, random_state=0)
    exact = GraphLabeler(C=0.1).fit(task.X, task.y)
    sampled = GraphLabeler(solver=Sampled(solver, n_particles=10), C=0.1, max_iter=100, random_state=0)
    sampled.fit(task.X, task.y)
    assert not sampled.exact_
    objectives = [
        0.5 * model.coef_ @ model.coef_ - 0.1 * np.sum(model.log_likelihood(task.X, task.y))
        for model in (exact, sampled)
    ]
    assert objectives[1] < 1.05 * objectives[0]


def test_solvers_are_found_by_name_and_refuse_what_they_cannot_do():
    task = make_regions(8, random_state=0)
    for name in SAMPLED:
        model = GraphLabeler(solver=name, C=0.1, max_iter=2, random_state=0).fit(task.X, task.y)
        assert model.solver_ == name
    with pytest.raises(ValueError, match="log loss"):
        GraphLabeler("hinge", solver="pcd").fit(task.X, task.y)
    with pytest.raises(ValueError, match="ℓ1"):
        GraphLabeler(solver="pcd", penalty="l1").fit(task.X, task.y)
    with pytest.raises(ValueError, match="needs all labels"):
        GraphLabeler(solver="pcd").fit(task.X, [[None, *labels[1:]] for labels in task.y])
    with pytest.raises(ValueError, match="learner must be one of"):
        Sampled("exact")


# ------------------------------------------------------------------ label sets


@pytest.fixture(scope="module")
def planted():
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 3))
    field = _LabelSpins(X, 5, 1)
    w = np.concatenate([random.choice([-0.8, 0.8], 10), random.normal(size=15), np.zeros(5)])
    keys = Keys(0)
    states = field.uniform(1, keys)
    for _ in range(200):
        states = field.sweep(states, w, keys)
    return X, states.reshape(1500, 5), w


def test_a_sweep_of_label_sets_is_at_inverse_temperature_1_where_no_other_is_given(planted):
    X, Y, w = planted
    field = _LabelSpins(X[:40], 5, 1)
    states = np.ascontiguousarray(Y[:40].reshape(1, -1), np.int8)
    plain, one, two = (field.sweep(states, w, Keys(3), **given) for given in ({}, {"beta": 1.0}, {"beta": 2.0}))
    np.testing.assert_array_equal(plain, one)
    assert (plain != two).any()


def test_gradients_of_label_sets_equal_finite_differences(planted):
    X, Y, w = planted
    field = _LabelSpins(X[:40], 5, 1)
    data = np.ascontiguousarray(Y[:40].reshape(1, -1))

    def likelihood(w):
        return float(field.log_density(data, w).mean()) - field.exact(w)[0]

    def pseudo(w):
        return field.pseudo_gradient(data, w)[0]

    chains = Chains(field, Keys(0), 4)
    for function, name in ((likelihood, "exact"), (pseudo, "pseudo-likelihood")):
        gradient = resolve_learner(name).gradient(chains, w, data)
        for i in range(0, len(w), 4):
            step = 1e-5 * np.eye(len(w))[i]
            slope = (function(w + step) - function(w - step)) / 2e-5
            assert gradient[i] == pytest.approx(slope, abs=1e-6)


def test_planted_couplings_are_found(planted):
    X, Y, w = planted
    model = MultiLabelCRF(C=100.0).fit(X, Y)
    assert model.learner_ == "exact"
    found = model.couplings_[np.triu_indices(5, 1)]
    assert np.corrcoef(found, w[:10])[0, 1] > 0.93
    again = MultiLabelCRF("pseudo-likelihood", C=100.0).fit(X, Y)
    assert np.abs(again.couplings_ - model.couplings_).max() < 0.25


@pytest.mark.parametrize("learner", ["psmc", "pcd"])
def test_sampled_learners_predict_as_the_exact_one(planted, learner):
    X, Y, _ = planted
    exact = MultiLabelCRF().fit(X[:300], Y[:300])
    sampled = MultiLabelCRF(learner, max_iter=60, random_state=0).fit(X[:300], Y[:300])
    assert sampled.score(X[300:600], Y[300:600]) > exact.score(X[300:600], Y[300:600]) - 0.02
    alone = np.mean(
        [(exact.coef_ @ x + exact.intercept_ > 0) == y for x, y in zip(X[300:600], Y[300:600], strict=True)]
    )
    assert np.mean(exact.predict(X[300:600]) == Y[300:600]) >= alone


def test_log_probabilities_sum_to_one_and_many_labels_are_sampled():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 2))
    model = MultiLabelCRF().fit(X, random.integers(0, 2, (30, 3)))
    sets = (np.arange(8)[:, None] >> np.arange(3)) & 1
    total = sum(np.exp(model.log_prob(X[:1], row[None])) for row in sets)
    assert total == pytest.approx(1.0)
    wide = MultiLabelCRF(random_state=0, max_iter=20).fit(X, random.integers(0, 2, (30, 18)))
    assert wide.learner_ == "pseudo-likelihood"
    assert wide.predict(X).shape == (30, 18)
    with pytest.raises(ValueError, match="2\\^18"):
        MultiLabelCRF("exact").fit(X, random.integers(0, 2, (30, 18)))
    with pytest.raises(ValueError, match="threshold"):
        MultiLabelCRF(threshold=1.5).fit(X, random.integers(0, 2, (30, 2)))
