"""The tempered losses lie between log and hinge; the entropy of fitted models obeys its identity."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.learning import Hinge, Log, SoftmaxMargin, Tempered, entropy_path, resolve_loss
from mercer.learning.losses import loss_from_json
from mercer.segmentation import Segmenter
from mercer.structures.costs import Hamming
from mercer.tagging import Tagger
from reference.problems import make_problem

PROBLEM = make_problem()
W = np.random.default_rng(0).normal(size=PROBLEM.chain.n_weights)


def values(loss, w=W):
    theta = PROBLEM.chain.scores(w, PROBLEM.risk.X)
    return loss.value_and_gradient(PROBLEM.chain, theta, PROBLEM.risk.y)[0]


def test_both_ends_are_the_losses_that_are_known():
    np.testing.assert_allclose(values(Tempered(1.0)), values(SoftmaxMargin()))
    np.testing.assert_allclose(values(Tempered(1.0, margin=False)), values(Log()))
    np.testing.assert_allclose(values(Tempered(1e5)), values(Hinge()), atol=1e-3)


def test_the_loss_falls_with_beta_and_stays_near_the_hinge():
    """0 ≤ loss − hinge ≤ log |Y| / β, and a larger β is never a larger loss."""
    hinge, count = values(Hinge()), PROBLEM.chain.log_cardinality(PROBLEM.risk.X)
    last = np.full(len(hinge), np.inf)
    for beta in (0.1, 0.5, 1.0, 3.0, 10.0, 100.0):
        found = values(Tempered(beta))
        assert (found <= last + 1e-9).all()
        assert (found >= hinge - 1e-9).all()
        assert (found <= hinge + count / beta + 1e-9).all()
        last = found


def test_the_gap_of_equal_scores_is_that_of_all_outputs():
    """Where all augmented scores are equal the bound is reached: log |Y| / β."""
    theta = PROBLEM.chain.scores(np.zeros_like(W), PROBLEM.risk.X)
    value, _ = Tempered(2.0, margin=False).value_and_gradient(PROBLEM.chain, theta, PROBLEM.risk.y)
    np.testing.assert_allclose(value, PROBLEM.chain.log_cardinality(PROBLEM.risk.X) / 2.0)


@pytest.mark.parametrize("loss", [Tempered(0.3), Tempered(4.0), Tempered(2.0, margin=False)])
def test_gradients_equal_finite_differences(loss):
    from mercer.learning import Risk

    risk = Risk(PROBLEM.chain, loss, PROBLEM.risk.X, PROBLEM.risk.y)
    _, gradient = risk.value_and_gradient(W)
    steps = 1e-6 * np.eye(len(W))
    np.testing.assert_allclose(gradient, [(risk.value(W + e) - risk.value(W - e)) / 2e-6 for e in steps], atol=1e-5)


def test_the_loss_is_found_by_name_and_comes_back_from_plain_data():
    assert isinstance(resolve_loss("tempered"), Tempered)
    again = loss_from_json(Tempered(3.0, margin=False, cost=Hamming()).to_json())
    assert (again.beta, again.margin) == (3.0, False)
    with pytest.raises(ValueError, match="beta"):
        Tempered(0.0)
    with pytest.raises(ValueError, match="tempered needs a cost"):
        Tagger("tempered", cost="zero-one").fit([[["a"], ["b"]]], [["x", "y"]])


X = [[["a"], ["b"], ["b", "c"]], [["b"], ["a", "c"]], [["c"], ["c"], ["a"], ["b"]]]
Y = [["x", "y", "x"], ["y", "y"], ["x", "x", "y", "y"]]


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
def test_likelihood_entropy_and_cost_balance_the_norm_at_the_optimum(loss):
    path = entropy_path(Tagger(loss, tol=1e-10), X, Y, Cs=(0.01, 1.0, 30.0))
    np.testing.assert_allclose(path.residual, 0.0, atol=1e-4)
    assert (np.diff(path.norm) > 0).all()
    assert path.largest == pytest.approx(np.mean([3, 2, 4]) * np.log(2))
    if loss == "log":
        assert (np.diff(path.entropy) < 0).all()
        assert path.entropy[0] == pytest.approx(path.largest[0], rel=0.01)
        assert not path.expected_cost.any()
    else:
        assert (path.expected_cost > 0).all()


def test_the_path_takes_other_structures():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 2)) for _ in range(4)]
    path = entropy_path(Segmenter(loss="log", tol=1e-9), X, [["a", "a", "b", "b", "b", "a"]] * 4, Cs=(0.1, 1.0))
    np.testing.assert_allclose(path.residual, 0.0, atol=1e-4)


def test_models_without_the_identity_are_refused():
    with pytest.raises(ValueError, match="loss 'log' or 'softmax-margin', got 'hinge'"):
        entropy_path(Tagger("hinge"), X, Y)
    with pytest.raises(ValueError, match="penalty='l2'"):
        entropy_path(Tagger(penalty="l1"), X, Y)
    with pytest.raises(ValueError, match="Cs"):
        entropy_path(Tagger(), X, Y, Cs=())
    with pytest.raises(ValueError, match="Cs"):
        entropy_path(Tagger(), X, Y, Cs=(1.0, -1.0))
    with pytest.raises(ValueError, match="fully known"):
        entropy_path(Tagger(), X, [["x", None, "x"], *Y[1:]], Cs=(1.0,))
