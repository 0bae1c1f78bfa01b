"""Machines over features and over kernel matrices reach the optimum of scikit-learn's, from any start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from mercer import _core


def problem(seed, n=120, d=5, noise=1.0, share=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, 0] + noise * rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1 - share), 1, -1).astype(np.int8)


def rows(X):
    if sp.issparse(X):
        return _core.linear.Rows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1], False)
    return _core.linear.Rows(X)


MACHINES = {
    "kernel": lambda X: _core.machines.KernelMachine(np.ascontiguousarray(X @ X.T)),
    "dense": lambda X: _core.machines.LinearMachine(rows(X)),
    "sparse": lambda X: _core.machines.LinearMachine(rows(sp.csr_matrix(X))),
}


def primal(machine, X, y, upper):
    """The objective by its formula, from what the machine says of itself."""
    weights, f = machine.weights(), machine.scores()
    w = weights if len(weights) == X.shape[1] else X.T @ weights
    b = f - X @ w
    np.testing.assert_allclose(b, b[0], atol=1e-8 * (1 + np.abs(f).max()))
    return 0.5 * w @ w + upper @ np.maximum(0.0, 1.0 - y * f)


def peer(X, y, upper):
    with warnings.catch_warnings():  # it may not end where w = 0 is best
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="linear", C=1.0, tol=1e-8, max_iter=100_000).fit(X, y, sample_weight=upper)
    loss = upper @ np.maximum(0.0, 1.0 - y * model.decision_function(X))
    return 0.5 * float((model.coef_**2).sum()) + loss


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_optimum_equals_scikit_learns(name, C, share):
    X, y = problem(0, share=share)
    upper = C * np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    machine = MACHINES[name](X)
    _, square, loss, gap, _, converged = machine.solve(y, upper, 1e-8, 10**7)
    assert converged
    objective = primal(machine, X, y, upper)
    assert objective == pytest.approx(0.5 * square + loss, rel=1e-9)
    assert objective <= peer(X, y, upper) * (1 + 1e-6)
    # Weak duality: nothing is better than this by more than the gap.
    assert -1e-10 * objective <= gap <= max(1e-8 * 0.5 * square, 1e-12 * upper.sum())


@pytest.mark.parametrize("name", ["dense", "sparse"])
@pytest.mark.parametrize("d", [150, 700])
def test_many_features_by_factors_and_by_conjugate_gradients(name, d):
    X, y = problem(2, n=100, d=d)
    upper = np.full(100, 0.1)
    machine = MACHINES[name](X)
    assert machine.solve(y, upper, 1e-6, 10**6)[-1]
    assert primal(machine, X, y, upper) == pytest.approx(peer(X, y, upper), rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(MACHINES)), st.floats(-4, 1))
def test_warm_starts_after_relabelling_and_new_bounds_lose_nothing(seed, name, log_c):
    rng = np.random.default_rng(seed)
    X, y = problem(seed, n=60, d=3)
    machine, C = MACHINES[name](X), 10.0**log_c
    for _ in range(6):
        upper = np.full(60, C)
        assert machine.solve(y, upper, 1e-7, 10**7)[-1]
        fresh = MACHINES[name](X)
        assert fresh.solve(y, upper, 1e-7, 10**7)[-1]
        reached, other = primal(machine, X, y, upper), primal(fresh, X, y, upper)
        assert reached == pytest.approx(other, rel=1e-6, abs=1e-9 * upper.sum())
        y = np.where(rng.random(60) < 0.1, -y, y).astype(np.int8)
        C *= rng.choice([0.5, 1.0, 1.5])


@pytest.mark.parametrize("name", MACHINES)
def test_small_bounds_still_give_an_exact_direction(name):
    """With bounds of 10⁻⁶ the gap is tiny beside the objective; the direction of w must be right all the same."""
    X, y = problem(3)
    machine = MACHINES[name](X)
    machine.solve(y, np.full(len(y), 1e-6), 1e-6, 10**6)
    w = machine.weights() if name != "kernel" else X.T @ machine.weights()
    np.testing.assert_allclose(w, 1e-6 * X.T @ y, rtol=1e-6)  # equally many of both labels: all at their bounds


@pytest.mark.parametrize("name", MACHINES)
def test_one_label_alone_gives_a_constant(name):
    X, _ = problem(4, n=20)
    machine = MACHINES[name](X)
    for label in (1, -1):
        y = np.full(20, label, np.int8)
        assert machine.solve(y, np.ones(20), 1e-6, 1000)[-1]
        assert (y * machine.scores() > 0.99).all()
        assert primal(machine, X, y, np.ones(20)) < 1e-4


@pytest.mark.parametrize("name", MACHINES)
def test_instances_of_bound_zero_do_not_count(name):
    X, y = problem(5)
    kept = np.random.default_rng(0).random(len(y)) < 0.6
    machine, other = MACHINES[name](X), MACHINES[name](X[kept])
    machine.solve(y, kept.astype(float), 1e-9, 10**6)
    other.solve(y[kept], np.ones(kept.sum()), 1e-9, 10**6)
    np.testing.assert_allclose(machine.scores()[kept], other.scores(), atol=1e-3)


def test_shrinking_reaches_the_same_optimum():
    X, y = problem(6, n=500, d=4, noise=2.0)
    upper = np.full(500, 5.0)
    machine = _core.machines.KernelMachine(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)))
    _, square, loss, _, steps, converged = machine.solve(y, upper, 1e-7, 10**7)
    assert converged
    assert steps > 1000  # instances are set aside after every 500
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    model = SVC(kernel="precomputed", C=5.0, tol=1e-8).fit(K, y)
    f = model.decision_function(K)
    w2 = model.dual_coef_[0] @ K[np.ix_(model.support_, model.support_)] @ model.dual_coef_[0]
    assert 0.5 * square + loss == pytest.approx(0.5 * w2 + 5.0 * np.maximum(0, 1 - y * f).sum(), rel=1e-6)
    np.testing.assert_allclose(
        machine.scores(), K @ machine.weights() + (machine.scores() - K @ machine.weights())[0], atol=1e-8
    )


def test_constant_features_and_equal_rows_are_no_trouble():
    y = np.array([1, -1, 1, 1], np.int8)
    for X in (np.zeros((4, 2)), np.ones((4, 2))):
        for make in MACHINES.values():
            machine = make(X)
            machine.solve(y, np.ones(4), 1e-6, 10_000)
            # The majority has its way, at the loss 2 of the one instance of the other label.
            assert primal(machine, X, y, np.ones(4)) == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    ("labels", "upper", "tol", "max_iter", "message"),
    [
        (np.ones(3, np.int8), np.ones(4), 1e-3, 10, "one entry for each instance"),
        (np.zeros(4, np.int8), np.ones(4), 1e-3, 10, "labels must be -1 or 1"),
        (np.ones(4, np.int8), -np.ones(4), 1e-3, 10, "upper must be"),
        (np.ones(4, np.int8), np.full(4, np.nan), 1e-3, 10, "upper must be"),
        (np.ones(4, np.int8), np.ones(4), 0.0, 10, "tol must be"),
        (np.ones(4, np.int8), np.ones(4), 1e-3, 0, "max_iter must be"),
    ],
)
def test_wrong_arguments_are_named(name, labels, upper, tol, max_iter, message):
    with pytest.raises(ValueError, match=message):
        MACHINES[name](np.eye(4)).solve(labels, upper, tol, max_iter)


def test_matrices_must_be_square_and_finite():
    with pytest.raises(ValueError, match="square"):
        _core.machines.KernelMachine(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="finite"):
        _core.machines.KernelMachine(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="at least one"):
        _core.machines.LinearMachine(_core.linear.Rows(np.zeros((0, 3))))


def test_kernel_machines_refuse_numbers_whose_sums_are_infinite():
    with pytest.raises(ValueError, match="1e150"):
        _core.machines.KernelMachine(np.diag([1e308] * 4))


def test_bounds_that_balance_exactly_do_not_throw_the_intercept_away():
    """Where no instance is active the intercept has no curvature, and rounding errors must not stand in for it."""
    rng = np.random.default_rng(32)
    n, d = int(rng.integers(5, 60)), int(rng.integers(1, 10))
    X, upper = np.ascontiguousarray(rng.normal(size=(n, d))), np.full(n, 1e6)
    y = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    z = np.where(rng.random(n) < 0.2, -y, y).astype(np.int8)
    machine = _core.machines.LinearMachine(rows(X))
    machine.solve(y, upper, 1e-4, 2000)
    intercept, square, loss, gap, _, _ = machine.solve(z, upper, 1e-4, 2000)
    fresh = _core.machines.LinearMachine(rows(X)).solve(z, upper, 1e-4, 2000)
    assert np.isfinite([intercept, square, loss, gap]).all()
    assert 0.5 * square + loss == pytest.approx(0.5 * fresh[1] + fresh[2], rel=1e-6)


@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
def test_the_norm_is_that_of_the_weights_with_equal_rows_and_large_bounds(C):
    X = np.array([[0.0, 1], [0, 1], [1, 0], [-1, 0]])
    y = np.array([1, -1, 1, -1], np.int8)
    machine = _core.machines.KernelMachine(np.ascontiguousarray(X @ X.T))
    square = machine.solve(y, np.full(4, C), 1e-4, 10**5)[1]
    assert square == pytest.approx(float(np.square(X.T @ machine.weights()).sum()), rel=1e-6)
    assert square == pytest.approx(1.0, rel=1e-3)


def test_large_offsets_and_bounds_leave_a_machine_that_can_be_used_again():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1.6e9, 1e6, 60), rng.normal(size=60)])
    machine = _core.machines.LinearMachine(rows(X))
    for C in (1e4, 1e4, 1e-3):
        y = np.where(rng.random(60) < 0.5, 1, -1).astype(np.int8)
        found = machine.solve(y, np.full(60, C), 1e-4, 500)
        assert np.isfinite(found[:4]).all()
