"""Sparse codes equal brute force, linear programs and quadratic programs, and certify what they find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, nnls
from sklearn.linear_model import Lasso, orthogonal_mp

from mercer.learning.sparse_codes import SOLVERS, Dictionary, SparseCodes, sparse_codes
from mercer.maps import SignedHashProjection

STOP: dict[str, dict[str, float]] = {
    "omp": {"n_nonzero": 6},
    "order-recursive": {"n_nonzero": 6},
    "l1": {"tol": 0.2},
    "lasso": {"alpha": 0.05},
}


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def problem(n: int = 60, d: int = 25, signals: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(n, d))), unit(rng.normal(size=(signals, d)))


def least_squares(x: np.ndarray, atoms: np.ndarray, support: list[int]) -> tuple[np.ndarray, float]:
    code = np.zeros(len(atoms))
    code[support] = np.linalg.lstsq(atoms[support].T, x, rcond=None)[0]
    return code, float(np.linalg.norm(x - code @ atoms))


def matching_pursuit(x: np.ndarray, atoms: np.ndarray, k: int, order_recursive: bool) -> np.ndarray:
    """By the definition: all atoms are tried in every step."""
    support: list[int] = []
    code = np.zeros(len(atoms))
    for _ in range(k):
        left = [j for j in range(len(atoms)) if j not in support]
        if order_recursive:
            support.append(min(left, key=lambda j: least_squares(x, atoms, [*support, j])[1]))
        else:
            residual = x - code @ atoms
            support.append(max(left, key=lambda j: abs(atoms[j] @ residual) / np.linalg.norm(atoms[j])))
        code, _ = least_squares(x, atoms, support)
    return code


# ------------------------------------------------------------------------------------------------------------- greedy


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("solver", ["omp", "order-recursive"])
def test_greedy_codes_equal_the_definition(solver, gram):
    atoms, X = problem(30, 15, 6)
    atoms *= np.random.default_rng(1).uniform(0.1, 10, size=(30, 1))
    expected = [matching_pursuit(x, atoms, 5, solver == "order-recursive") for x in X]
    found = sparse_codes(X, Dictionary(atoms, gram=gram), solver, n_nonzero=5)
    assert np.allclose(found.codes.toarray(), expected, atol=1e-10)
    assert np.allclose(found.residuals, np.linalg.norm(X - found.codes @ atoms, axis=1), atol=1e-12)


def test_omp_equals_scikit_learn():
    atoms, X = problem(200, 40, 20)
    expected = orthogonal_mp(atoms.T, X.T, n_nonzero_coefs=12).T
    assert np.allclose(sparse_codes(X, atoms, n_nonzero=12).codes.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("solver", ["omp", "order-recursive"])
def test_greedy_codes_stop_at_the_residual(solver):
    atoms, X = problem()
    found = sparse_codes(X, atoms, solver, tol=0.3)
    assert found.reached.all()
    assert (found.residuals <= 0.3).all()
    shorter = [sparse_codes(X[[i]], atoms, solver, n_nonzero=n - 1).residuals[0] for i, n in enumerate(found.n_iter)]
    assert (np.array(shorter) > 0.3).all()


def test_positive_omp_without_a_limit_is_nonnegative_least_squares():
    atoms, X = problem()
    found = sparse_codes(X, atoms, "omp", tol=1e-9, positive=True)
    assert (found.codes.data > 0).all()
    assert np.allclose(found.residuals, [nnls(atoms.T, x)[1] for x in X], atol=1e-12)


# ----------------------------------------------------------------------------------------------------------------- ℓ1


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
def test_lasso_equals_coordinate_descent(alpha, positive, gram):
    atoms, X = problem(40, 25, 4)
    found = sparse_codes(X, Dictionary(atoms, gram=gram), "lasso", alpha=alpha, positive=positive)
    peer = Lasso(alpha / atoms.shape[1], fit_intercept=False, positive=positive, tol=1e-13, max_iter=1_000_000)
    expected = np.array([peer.fit(atoms.T, x).coef_ for x in X])
    assert np.abs(found.codes.toarray() - expected).max() < 1e-6
    assert found.gaps.max() < 1e-10


def smallest_norm(x: np.ndarray, atoms: np.ndarray, tol: float, positive: bool) -> float:
    """min ‖a‖₁ subject to ‖x − Φa‖ ≤ tol, by cutting planes of the cone: linear programs from outside."""
    _n, _d = atoms.shape
    columns = atoms.T if positive else np.hstack([atoms.T, -atoms.T])
    cuts, limits = [], []
    direction = x / np.linalg.norm(x)
    value = 0.0
    for _ in range(300):
        cuts.append(-(direction @ columns))  # ⟨u, x − Φa⟩ ≤ tol for every unit vector u
        limits.append(tol - direction @ x)
        answer = linprog(np.ones(columns.shape[1]), A_ub=np.array(cuts), b_ub=np.array(limits), method="highs")
        value, residual = answer.fun, x - columns @ answer.x
        if np.linalg.norm(residual) <= tol * (1 + 1e-6):
            break
        direction = residual / np.linalg.norm(residual)
    return value


@pytest.mark.parametrize("positive", [False, True])
def test_l1_codes_satisfy_the_constraint_and_have_the_norm_of_a_linear_program(positive):
    atoms, X = problem(60, 5, 2, seed=4)
    found = sparse_codes(X, atoms, "l1", tol=0.25, positive=positive)
    assert np.abs(found.residuals - 0.25).max() < 1e-6
    for x, code in zip(X, found.codes.toarray(), strict=True):
        assert abs(np.abs(code).sum() / smallest_norm(x, atoms, 0.25, positive) - 1) < 1e-4
    assert found.gaps.max() < 1e-10


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("solver", "stop"), [("lasso", {"alpha": 0.003}), ("l1", {"tol": 0.02})])
def test_paths_over_many_coherent_atoms_equal_those_that_look_at_all_of_them(solver, stop, positive):
    # With a Gram matrix and many atoms, a stretch of the path looks at the atoms near the penalty only.
    rng = np.random.default_rng(0)
    atoms = rng.normal(size=(400, 40)) + 3 * rng.normal(size=40)
    signals = rng.dirichlet(np.full(400, 0.02), size=12) @ atoms + 0.1 * rng.normal(size=(12, 40))
    some, all_ = (
        sparse_codes(signals, Dictionary(atoms, gram=gram), solver, positive=positive, **stop) for gram in (True, False)
    )
    assert np.allclose(some.codes.toarray(), all_.codes.toarray(), atol=1e-8)
    assert some.gaps[some.reached].max() < 1e-9


def test_the_path_ends_where_the_lasso_of_its_penalty_does():
    atoms, X = problem()
    found = sparse_codes(X, atoms, "l1", tol=0.15)
    for i in range(len(X)):
        again = sparse_codes(X[[i]], atoms, "lasso", alpha=float(found.penalties[i]))
        assert np.abs((again.codes - found.codes[i]).toarray()).max() < 1e-9


def test_a_larger_residual_gives_a_smaller_norm_and_mostly_a_sparser_code():
    atoms, X = problem()
    norms, counts = [], []
    for tol in (0.02, 0.1, 0.3, 0.6):
        codes = sparse_codes(X, atoms, "l1", tol=tol).codes
        norms.append(abs(codes).sum())
        counts.append(codes.nnz)
    assert norms == sorted(norms, reverse=True)
    assert counts == sorted(counts, reverse=True)


# ------------------------------------------------------------------------------------------------------------ recovery


@pytest.mark.parametrize(("solver", "stop"), [("omp", {"n_nonzero": 5}), ("l1", {"tol": 1e-4})])
def test_planted_codes_are_recovered_from_hashed_measurements(solver, stop):
    rng, recovered = np.random.default_rng(0), 0
    for trial in range(100):
        A = rng.normal(size=(200, 400))
        support = rng.choice(200, 5, replace=False)
        values = rng.choice([-1.0, 1.0], 5) * rng.uniform(0.5, 1.5, 5)
        project = SignedHashProjection(100, n_hashes=5, random_state=trial).fit(A)
        x = (values @ A[support])[None]
        code = sparse_codes(project.transform(x), project.transform(A), solver, **stop).codes.toarray()[0]
        expected = np.zeros(200)
        expected[support] = values
        recovered += np.abs(code - expected).max() < 1e-2
    assert recovered >= (99 if solver == "omp" else 95)


# -------------------------------------------------------------------------------------------------- hard and bad input


def repeated(d: int = 12) -> np.ndarray:
    """Atoms that are repeated, negated, zero, sums of others, and with ties in their entries."""
    rng = np.random.default_rng(3)
    base = rng.integers(-2, 3, size=(20, d)).astype(float)
    return np.vstack([base, base, -base[:5], np.zeros((3, d)), base[:6] + base[6:12], np.eye(d)])


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_repeated_dependent_and_zero_atoms_do_no_harm(solver, positive, gram):
    if positive and solver == "order-recursive":
        pytest.skip("has no such form")
    atoms = repeated()
    X = np.vstack(
        [np.random.default_rng(0).integers(-3, 4, size=(40, 12)).astype(float), atoms[:10], np.zeros((1, 12))]
    )
    stop = {"lasso": {"alpha": 0.02}}.get(solver, {"tol": 0.05})
    found = sparse_codes(X, Dictionary(atoms, gram=gram), solver, positive=positive, **stop)
    assert np.isfinite(found.codes.data).all()
    norms = np.linalg.norm(X, axis=1)
    assert np.allclose(found.residuals * norms, np.linalg.norm(X - found.codes @ atoms, axis=1), atol=1e-9)
    assert found.finished.all()
    assert found.gaps.max() < 1e-8
    assert not found.codes[:, 45:48].nnz
    if not positive:
        assert found.reached.all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_number_of_threads_changes_a_bit(solver):
    atoms, X = problem(80, 30, 50)
    one, three = (sparse_codes(X, atoms, solver, n_jobs=n, **STOP[solver]) for n in (1, 3))
    assert np.array_equal(one.codes.toarray(), three.codes.toarray())
    assert np.array_equal(one.gaps, three.gaps)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit_of", [1e-150, 1e-6, 1e6, 1e150])
def test_units_do_not_change_codes(solver, unit_of):
    atoms, X = problem()
    found = sparse_codes(unit_of * X, atoms, solver, **STOP[solver])
    assert np.allclose(found.codes.toarray() / unit_of, sparse_codes(X, atoms, solver, **STOP[solver]).codes.toarray())
    found = sparse_codes(X, unit_of * atoms, solver, **STOP[solver])
    assert np.allclose(found.codes.toarray() * unit_of, sparse_codes(X, atoms, solver, **STOP[solver]).codes.toarray())


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_barred_atom_is_as_if_it_were_not_there(solver, positive):
    if positive and solver == "order-recursive":
        pytest.skip("has no such form")
    atoms, _ = problem(40, 20)
    found = sparse_codes(atoms, atoms, solver, positive=positive, barred=np.arange(40), **STOP[solver]).codes.toarray()
    for j in range(0, 40, 7):
        without = np.delete(atoms, j, axis=0)
        alone = sparse_codes(atoms[[j]], without, solver, positive=positive, **STOP[solver]).codes.toarray()[0]
        assert np.allclose(np.delete(found[j], j), alone, atol=1e-10)
        assert found[j, j] == 0


def test_a_tolerance_out_of_reach_gives_the_smallest_residual():
    atoms, X = problem(8, 25)
    best = [least_squares(x, atoms, list(range(8)))[1] for x in X]
    for solver in ("omp", "order-recursive", "l1"):
        found = sparse_codes(X, atoms, solver, tol=0.05)
        assert not found.reached.any()
        assert np.allclose(found.residuals, best, atol=1e-9)


def test_a_tolerance_beyond_the_signal_gives_codes_of_zero():
    atoms, X = problem()
    for solver in ("omp", "order-recursive", "l1"):
        assert sparse_codes(X, atoms, solver, tol=1.0).codes.nnz == 0
    assert sparse_codes(X, atoms, "lasso", alpha=1.0).codes.nnz == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "pursuit"}, "solver"),
        ({"solver": "omp"}, "n_nonzero"),
        ({"solver": "l1"}, "tol"),
        ({"solver": "lasso"}, "alpha"),
        ({"solver": "lasso", "alpha": 0.1, "tol": 0.1}, "tol"),
        ({"solver": "l1", "tol": 0.1, "n_nonzero": 3}, "n_nonzero"),
        ({"solver": "omp", "n_nonzero": 0}, "n_nonzero"),
        ({"solver": "omp", "tol": -1.0}, "tol"),
        ({"solver": "order-recursive", "tol": 0.1, "positive": True}, "positive"),
        ({"solver": "l1", "tol": 0.1, "max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    atoms, X = problem()
    with pytest.raises((ValueError, TypeError), match=message):
        sparse_codes(X, atoms, **settings)


def test_signals_of_another_length_are_refused():
    atoms, X = problem()
    with pytest.raises(ValueError, match="25 features"):
        sparse_codes(X[:, :-1], atoms, n_nonzero=3)


def test_a_step_limit_is_told():
    atoms, X = problem()
    found = sparse_codes(X, atoms, "lasso", alpha=0.001, max_iter=3)
    assert isinstance(found, SparseCodes)
    assert not found.finished.any()
    assert (found.gaps > 1e-3).all()


def test_no_signals_give_no_codes():
    atoms, X = problem()
    assert sparse_codes(X[:0], atoms, n_nonzero=3).codes.shape == (0, 60)


def test_codes_that_overflow_are_refused():
    atoms = np.random.default_rng(0).normal(size=(6, 4))
    for solver, stop in STOP.items():
        with pytest.raises(ValueError, match="row 1 overflows"):
            sparse_codes(np.stack([1e-200 * atoms[0], 1e200 * atoms[1]]), 1e-200 * atoms, solver, **stop)
        found = sparse_codes(1e100 * atoms[:1], 1e-200 * atoms, solver, **stop)
        assert np.isfinite(found.codes.data).all()
