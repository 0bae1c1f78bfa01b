"""Many weighted machines: optima of single ones, weights as copies of rows, blocks, sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import mercer.learning.weighted_machines as machines_module
from mercer import _core
from mercer.learning.weighted_machines import fit_machines


def problem(seed=0, n=60, d=5, m=7, groups=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    labels = np.arange(n) % groups
    X += rng.normal(size=(groups, d))[labels]
    return X, rng.uniform(-1, 1, (groups, m)), labels


def objective(w, b, X, t, C, power):
    margin = np.maximum(0.0, 1.0 - np.sign(t) * (X @ w + b))
    return 0.5 * w @ w + C * (np.abs(t) * margin**power).sum()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_squared_hinge_reaches_the_optimum_of_a_general_solver(intercept, C):
    X, A, labels = problem()
    found = fit_machines(X, A, labels, C=C, fit_intercept=intercept, tol=1e-8)
    sparse = fit_machines(sp.csr_matrix(X), A, labels, C=C, fit_intercept=intercept, tol=1e-8)
    assert sparse.objective == pytest.approx(found.objective, rel=1e-6)
    for j in range(A.shape[1]):
        t = A[labels, j]

        def value(v, t=t):
            return objective(v[:-1], v[-1] if intercept else 0.0, X, t, C, 2)

        best = minimize(value, np.zeros(X.shape[1] + 1), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).fun
        assert found.objective[j] == pytest.approx(best, rel=1e-5)
        for machines in (found, sparse):
            value_of = objective(machines.coef[j], machines.intercept[j], X, t, C, 2)
            assert value_of == pytest.approx(machines.objective[j], rel=1e-9)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_hinge_equals_the_single_machine_of_the_core(C):
    X, A, labels = problem()
    found = fit_machines(X, A, labels, C=C, loss="hinge", tol=1e-6, max_iter=1000)
    assert found.converged.all()
    for j in range(A.shape[1]):
        t = A[labels, j]
        machine = _core.machines.KernelMachine(np.ascontiguousarray(X @ X.T))
        _, squared, loss, _, _, _ = machine.solve(np.sign(t).astype(np.int8), C * np.abs(t), 1e-8, 10**7)
        assert found.objective[j] == pytest.approx(0.5 * squared + loss, rel=1e-5)


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
def test_whole_weights_are_copies_of_rows_and_zero_weights_do_not_count(loss):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, 4)), rng.integers(0, 4, 40)
    sign = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    weighted = fit_machines(X, (sign * weight)[:, None], loss=loss, tol=1e-9, max_iter=2000)
    copies = np.repeat(np.arange(40), weight)
    copied = fit_machines(X[copies], sign[copies, None], loss=loss, tol=1e-9, max_iter=2000)
    assert np.allclose(weighted.coef, copied.coef, atol=2e-3)
    assert weighted.objective == pytest.approx(copied.objective, rel=1e-6)


def test_the_gap_bounds_what_is_left():
    X, A, labels = problem(1, n=120)
    exact = fit_machines(X, A, labels, tol=1e-10).objective
    rough = fit_machines(X, A, labels, tol=0.05)
    assert (rough.objective - exact <= rough.gap * rough.objective + 1e-9).all()


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
def test_blocks_axes_and_sparse_rows_give_the_same_machines(monkeypatch, loss):
    X, A, labels = problem(2)
    options = {"C": 0.5, "loss": loss, "tol": 1e-8, "max_iter": 2000}
    expected = fit_machines(X, A, labels, **options).objective
    assert fit_machines(sp.csr_matrix(X), A, labels, **options).objective == pytest.approx(expected, rel=1e-5)
    assert fit_machines(
        X[:, :1] * np.ones(80), A, labels, **options
    ).converged.all()  # more columns than rows, of rank 1
    monkeypatch.setattr(machines_module, "_CELLS", 1)
    assert fit_machines(X, A, labels, **options).objective == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(machines_module, "_AXES", 0)
    assert fit_machines(X, A, labels, **options).objective == pytest.approx(expected, rel=1e-6)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(20, 90)), rng.uniform(-1, 1, (20, 5))
    found = fit_machines(X, t, tol=1e-9)
    monolithic = fit_machines(X, t[:, :1], tol=1e-9)  # too few machines for axes
    assert found.coef[0] == pytest.approx(monolithic.coef[0], abs=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_start_at_the_optimum_is_kept(kind):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(40, 9)), rng.uniform(-1, 1, (40, 11))  # a whole block of machines, and three
    best = fit_machines(kind(X), t, tol=1e-12)
    again = fit_machines(kind(X), t, tol=1e-9, start=(best.coef, best.intercept), threads=2)
    assert again.n_iter == 0
    assert again.coef == pytest.approx(best.coef, abs=1e-12)
    assert again.intercept == pytest.approx(best.intercept, abs=1e-12)


def test_the_core_refuses_a_start_that_does_not_fit():
    X, t = sp.csr_matrix(np.eye(4)), np.ones((4, 2))
    for start in ((np.zeros((2, 3)), np.zeros(2)), (np.full((2, 4), np.nan), np.zeros(2))):
        with pytest.raises(ValueError, match=r"wrong shape|start must be finite"):
            fit_machines(X, t, start=start)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_labels_of_one_sign_give_a_constant(kind):
    X = kind(np.random.default_rng(0).normal(size=(10, 3)))
    found = fit_machines(X, np.ones((10, 1)))
    assert np.abs(found.coef).max() < 1e-6
    assert found.intercept[0] == pytest.approx(1.0, abs=1e-3)
    nothing = fit_machines(X, np.zeros((10, 1)))
    assert not nothing.coef.any()


def test_a_machine_that_did_not_converge_says_so():
    X, A, labels = problem()
    with pytest.warns(UserWarning, match="machines stopped after 1 Newton steps"):
        fit_machines(X, A, labels, C=1e4, tol=1e-12, max_iter=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": np.ones(6)}, "targets must be"),
        ({"targets": np.full((6, 2), np.nan)}, "targets must be"),
        ({"groups": np.zeros(3, int)}, "X has 60 rows"),
        ({"C": 0.0}, "C"),
        ({"loss": "log"}, "loss"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    X, A, labels = problem()
    given = {"targets": A, "groups": labels, **change}
    with pytest.raises(ValueError, match=message):
        fit_machines(X, **given)
