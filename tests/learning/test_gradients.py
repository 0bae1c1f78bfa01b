"""Risks equal the enumerated objective, their gradients finite differences, for all structures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mercer.data import Sequences
from mercer.exceptions import InfeasibleError
from mercer.learning import Log, Risk
from mercer.structures import Constraints, Enumerated, Labels
from reference.problems import make_problem

RULES = Constraints([(0, 1), (2, 2)], forbidden_start=[1], forbidden_end=[2])
TRAINED = np.array([[True, False, True], [True, True, False], [False, True, True]])
VARIANTS = {
    "dense": {},
    "sparse": {"sparse": True},
    "pattern": {"pattern": True},
    "edges": {"edge_features": 2},
    "edges and patterns": {"edge_features": 3, "pattern": True, "edge_pattern": True},
    "constraints": {"constraints": RULES},
    "constraints and edges": {"constraints": RULES, "edge_features": 2},
    "hidden labels": {"partial": "none"},
    "sets of labels": {"partial": "sets"},
    "sets, edges, constraints": {
        "partial": "sets",
        "edge_features": 2,
        "constraints": RULES,
        "pattern": True,
    },
    "two threads": {"threads": 2},
}


def finite_differences(f, w, step=1e-5):
    out = np.empty_like(w)
    for k in range(len(w)):
        e = np.zeros_like(w)
        e[k] = step
        out[k] = (f(w + e) - f(w - e)) / (2 * step)
    return out


@pytest.mark.parametrize("variant", VARIANTS)
def test_chain_risk_equals_the_enumerated_objective(variant):
    problem = make_problem(**VARIANTS[variant])
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=problem.chain.n_weights)
        value, gradient = problem.risk.value_and_gradient(w)
        wanted, slope = problem.oracle.risk(w)
        assert np.isclose(value, wanted, rtol=1e-11)
        assert np.isclose(problem.risk.value(w), wanted, rtol=1e-11)
        np.testing.assert_allclose(gradient, slope, atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_chain_gradient_equals_finite_differences(variant):
    problem = make_problem(**VARIANTS[variant], seed=1)
    w = np.random.default_rng(0).normal(size=problem.chain.n_weights)
    _, gradient = problem.risk.value_and_gradient(w)
    np.testing.assert_allclose(gradient, finite_differences(problem.risk.value, w), atol=1e-5)


@pytest.mark.parametrize("variant", ["dense", "edges", "hidden labels", "constraints"])
def test_single_precision_is_close_to_double(variant):
    problem = make_problem(**VARIANTS[variant], dtype=np.float32)
    w = np.random.default_rng(0).normal(size=problem.chain.n_weights)
    value, gradient = problem.risk.value_and_gradient(w)
    wanted, slope = problem.oracle.risk(w)
    assert np.isclose(value, wanted, rtol=1e-5)
    np.testing.assert_allclose(gradient, slope, atol=1e-4)


def test_transitions_that_are_not_trained_have_no_gradient():
    problem = make_problem(trained=TRAINED)
    w = np.random.default_rng(0).normal(size=problem.chain.n_weights)
    at = problem.chain.slices["transitions"]
    w[at][~TRAINED.ravel()] = 0.0
    gradient = problem.risk.value_and_gradient(w)[1]
    slope = problem.oracle.risk(w)[1]
    assert (gradient[at][~TRAINED.ravel()] == 0).all()
    gradient[at][~TRAINED.ravel()] = slope[at][~TRAINED.ravel()]
    np.testing.assert_allclose(gradient, slope, atol=1e-10)


def test_a_view_has_the_risk_of_its_own_sequences():
    problem = make_problem(edge_features=2, partial="sets")
    w = np.random.default_rng(0).normal(size=problem.chain.n_weights)
    part = Risk(problem.chain, Log(), problem.X[2:5], problem.y[2:5])
    assert np.isclose(part.value(w), problem.oracle.losses(w)[2:5].sum(), rtol=1e-11)


def test_many_batches_add_up(monkeypatch):
    from mercer.learning import risk as module

    problem = make_problem()
    w = np.random.default_rng(0).normal(size=problem.chain.n_weights)
    wanted = problem.risk.value_and_gradient(w)
    for positions in (1, 3, 7):
        monkeypatch.setattr(module, "BATCH_POSITIONS", positions)
        monkeypatch.setattr(module, "CALL_POSITIONS", positions)
        value, gradient = problem.risk.value_and_gradient(w, np.full(len(w), np.nan))
        assert np.isclose(value, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, wanted[1], atol=1e-12)


MANY = tuple(np.random.default_rng(0).integers(0, 6, size=4000))  # more groups than threads keep at a time


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variant", ["dense", "sparse", "pattern", "constraints"])
def test_the_log_loss_in_one_call_equals_the_verbs_one_by_one(variant, dtype):
    problem = make_problem(lengths=MANY, F=6, dtype=dtype, **VARIANTS[variant])
    chain, X, y = problem.chain, problem.X[3:], problem.y[3:]
    w = np.random.default_rng(0).normal(size=chain.n_weights)
    gradient, slope = np.zeros(len(w)), np.zeros(len(w))
    assert chain.has_log_loss(X, y)
    values = chain.log_loss(w, X, y, gradient)
    wanted, mu = Log().value_and_gradient(chain, chain.scores(w, X), y)
    chain.backward(X, mu, slope)
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(values, wanted, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(gradient, slope, rtol=rtol, atol=1000 * rtol)


@pytest.mark.parametrize("scale", [1.0, 300.0])  # large scores take the log domain
@pytest.mark.parametrize("variant", ["dense", "pattern"])
def test_the_gradient_is_the_same_to_the_last_bit_for_any_number_of_threads(variant, scale):
    found = []
    problem = make_problem(lengths=MANY, F=6, **VARIANTS[variant])
    w = scale * np.random.default_rng(0).normal(size=problem.chain.n_weights)
    for problem.chain.threads in (1, 2, 3, 8):
        found.append(problem.risk.value_and_gradient(w))
    for value, gradient in found[1:]:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])


# ------------------------------------------------------------------------------------ other structures


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_labels_gradient_equals_finite_differences(sparse, hidden):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(8, 3))
    y = rng.integers(0, 4, 8)
    if hidden:
        y[::3] = -1
    risk = Risk(Labels(4, 3), Log(), Sequences(csr_matrix(matrix) if sparse else matrix, np.arange(9)), y)
    w = rng.normal(size=12)
    value, gradient = risk.value_and_gradient(w)
    theta = matrix @ w.reshape(3, 4)
    losses = np.log(np.exp(theta).sum(axis=1)) - theta[np.arange(8), y]
    assert np.isclose(value, losses[y >= 0].sum())
    np.testing.assert_allclose(gradient, finite_differences(risk.value, w), atol=1e-5)


def test_enumerated_gradient_equals_finite_differences():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(5, 6, 4))
    structure = Enumerated(lambda x: range(3 + x % 3), lambda x, y: table[x, y], 4)
    y = np.array([int(rng.integers(3)) for _ in range(5)])
    risk = Risk(structure, Log(), list(range(5)), y)
    w = rng.normal(size=4)
    value, gradient = risk.value_and_gradient(w)
    losses = [np.log(np.exp(table[x, : 3 + x % 3] @ w).sum()) - table[x, y[x]] @ w for x in range(5)]
    assert np.isclose(value, sum(losses))
    np.testing.assert_allclose(gradient, finite_differences(risk.value, w), atol=1e-5)


# ---------------------------------------------------------------------------------------------- errors


def test_a_forbidden_truth_names_its_example():
    problem = make_problem(lengths=(2, 2, 2))
    problem.y.labels[2:4] = [0, 1]
    problem.chain.masks = Constraints([(0, 1)]).masks(range(3))
    problem.y.labels[:2] = problem.y.labels[4:] = [1, 0]
    with pytest.raises(InfeasibleError, match="example 1"):
        problem.risk.value_and_gradient(np.zeros(problem.chain.n_weights))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_weights_too_large_for_floating_point_are_refused(threads):
    problem = make_problem(lengths=MANY, threads=threads)
    with pytest.raises(ValueError, match="finite"):
        problem.risk.value_and_gradient(np.full(problem.chain.n_weights, 1e308))


def test_inputs_and_outputs_must_be_equally_many():
    problem = make_problem()
    with pytest.raises(ValueError, match="6 inputs and 2 outputs"):
        Risk(problem.chain, Log(), problem.X, problem.y[:2])
