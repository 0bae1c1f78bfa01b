"""The relative margin machine: its optimum, its bounds, its limit (the SVM), and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import mercer
from mercer import _core
from mercer.classification import RelativeMarginSVC
from mercer.learning import ConvergenceWarning
from mercer.learning.qp.interior_point import fit_relative_margin
from reference.contract import contract
from reference.histories import without_seconds
from reference.relative import primal_linear


def problem(seed: int = 0, n: int = 60, d: int = 4, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    shape = {"n_informative": d, "n_redundant": 0, "n_classes": classes, "n_clusters_per_class": 1}
    return make_classification(n, d, class_sep=0.8, random_state=seed, **shape)


def objective(model: RelativeMarginSVC | SVC, X: np.ndarray, y: np.ndarray, K: np.ndarray) -> float:
    """½‖w‖² + C Σ ξ of the fitted binary machine."""
    s = np.zeros(len(y))
    s[model.support_] = model.dual_coef_[0]
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    return float(0.5 * s @ K @ s + model.C * np.maximum(0, 1 - margins).sum())


# ----------------------------------------------------------------------------------------------- the optimum


@contract(
    [
        RelativeMarginSVC(tol=1e-10),
        RelativeMarginSVC(kernel="linear", B=np.inf, tol=1e-10, multiclass="one-vs-rest"),
    ]
)
def test_it_keeps_the_contract_of_scikit_learn(checks):
    checks()


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_without_a_bound_it_is_the_svm(kernel, C):
    X, y = problem(n=150)
    ours = RelativeMarginSVC(kernel, C, np.inf, tol=1e-9, coef0=1.0).fit(X, y)
    theirs = SVC(kernel=kernel, C=C, tol=1e-9, coef0=1.0).fit(X, y)
    # libsvm keeps kernel values in single precision, so its outputs carry an error that grows with C.
    atol = 2e-6 if C < 1 else 1e-4
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    K = ours._values(X, X)
    assert objective(ours, X, y, K) == pytest.approx(objective(theirs, X, y, K), rel=1e-6)
    if kernel != "linear":  # with few features the coefficients are not unique
        np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("B", [1.0, 1.1, 1.5, 3.0])
def test_the_dual_finds_the_optimum_of_the_written_out_program(seed, B):
    X, y = problem(seed, n=25, d=3)
    w, b, value = primal_linear(X, 2.0 * y - 1, 2.0, B)
    model = RelativeMarginSVC("linear", 2.0, B, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-3)
    np.testing.assert_allclose(model.intercept_[0], b, atol=1e-3)
    assert model.history_["primal"][-1] == pytest.approx(value, rel=1e-3)
    assert model.history_["primal"][-1] <= value * (1 + 1e-7)
    assert model.history_["dual"][-1] <= value * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("B", [1.0, 1.3, 3.0])
def test_multipliers_of_every_constraint_prove_the_optimum(kernel, B):
    # Weak duality, with all multipliers written out: no primal point is below this dual value.
    X, y = problem(n=60)
    model = RelativeMarginSVC(kernel, 2.0, B, tol=1e-8).fit(X, y)
    K, signs = model._values(X, X), 2.0 * y - 1
    s = np.zeros(len(y))
    s[model.support_] = model.dual_coef_[0]
    delta = signs * s
    alpha, beta, gamma = np.clip(delta, 0, 2.0), np.maximum(-delta, 0), np.maximum(delta - 2.0, 0)
    assert abs(s.sum()) < 1e-9
    np.testing.assert_allclose(alpha - beta + gamma, delta)
    dual = alpha.sum() - B * (beta + gamma).sum() - 0.5 * s @ K @ s
    assert objective(model, X, y, K) == pytest.approx(dual, rel=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("B", [1.0, 1.2, 2.0])
def test_every_training_point_keeps_the_bounds_and_the_gap_is_certified(kernel, B):
    X, y = problem(n=120)
    model = RelativeMarginSVC(kernel, 5.0, B, coef0=1.0).fit(X, y)
    assert np.abs(model.decision_function(X)).max() <= B + 1e-9
    history = model.history_
    assert (np.array(history["primal"]) >= np.array(history["dual"]) - 1e-9).all()
    assert history["gap"][-1] < 0.02
    assert history["violation"][-1] <= model.tol
    assert np.diff(history["dual"]).min(initial=0.0) >= -1e-9
    K = model._values(X, X)
    assert objective(model, X, y, K) == pytest.approx(history["primal"][-1], rel=1e-6)


def test_a_tighter_bound_never_lowers_the_objective():
    X, y = problem(n=100)
    values = [RelativeMarginSVC("rbf", 3.0, B, tol=1e-6).fit(X, y).history_["primal"][-1] for B in (1, 1.2, 2, np.inf)]
    assert np.diff(values).max() <= 1e-6


@pytest.mark.parametrize("B", [1.0, 1.3, 4.0, np.inf])
@pytest.mark.parametrize("C", [0.5, 100.0])
def test_few_features_go_through_the_interior_and_end_at_the_optimum(B, C):
    # Two features and 200 examples: steps over pairs alone would need millions.
    X, y = problem(n=200, d=2)
    model = RelativeMarginSVC("linear", C, B, tol=1e-5).fit(X, y)
    assert model.history_["gap"][-1] < 1e-4
    assert model.n_iter_[0] < 50_000
    signs = 2.0 * y - 1
    s = fit_relative_margin(X, signs, np.full(len(signs), C), B)
    assert abs(s.sum()) < 1e-9
    np.testing.assert_allclose(X.T @ s, model.coef_[0], atol=1e-4)


# ------------------------------------------------------------------------------------------------ ways to kernels


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "matrix", "array"])
def test_rows_computed_one_by_one_give_what_the_whole_matrix_gives(kernel, make):
    X, y = problem(n=80)
    X = make(np.where(np.abs(X) < 0.3, 0.0, X))
    whole = RelativeMarginSVC(kernel, 2.0, 3.0, tol=1e-5, gamma=0.3).fit(X, y)
    rows = RelativeMarginSVC(kernel, 2.0, 3.0, tol=1e-5, gamma=0.3, cache_size=0.002, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(rows.decision_function(X), whole.decision_function(X), atol=1e-3)
    assert rows.history_["primal"][-1] == pytest.approx(whole.history_["primal"][-1], rel=1e-5)


def test_a_callable_and_a_precomputed_kernel_are_the_named_one():
    X, y = problem(n=80)
    named = RelativeMarginSVC("rbf", gamma=0.5, tol=1e-6).fit(X, y)
    called = RelativeMarginSVC(lambda a, b: rbf_kernel(a, b, gamma=0.5), tol=1e-6).fit(X, y)
    given = RelativeMarginSVC("precomputed", tol=1e-6).fit(rbf_kernel(X, gamma=0.5), y)
    expected = named.decision_function(X[:7])
    np.testing.assert_allclose(called.decision_function(X[:7]), expected, atol=1e-8)
    np.testing.assert_allclose(given.decision_function(rbf_kernel(X[:7], X, gamma=0.5)), expected, atol=1e-8)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.2])
def test_gamma_means_what_it_means_to_svc(gamma):
    X, y = problem(n=80)
    ours = RelativeMarginSVC(gamma=gamma, B=np.inf, tol=1e-8).fit(sp.csr_matrix(X), y)
    theirs = SVC(gamma=gamma, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-6)


# ---------------------------------------------------------------------------------------------------- many classes


def test_pairs_of_classes_vote_as_in_svc():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    ours = RelativeMarginSVC(B=np.inf, C=5.0, tol=1e-8, n_jobs=2).fit(X, y)
    theirs = SVC(C=5.0, tol=1e-8, break_ties=True).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.dual_coef_.shape == (45, len(ours.support_))
    assert ours.n_support_.sum() == len(ours.support_)
    assert sorted(set(ours.history_["machine"])) == list(range(45))


@pytest.mark.parametrize("multiclass", ["one-vs-one", "one-vs-rest"])
def test_many_classes_are_learnt_within_the_bounds(multiclass):
    X, y = problem(n=240, d=6, classes=4)
    labels = np.array(["spring", "summer", "autumn", "winter"])[y]
    model = RelativeMarginSVC(B=1.5, C=3.0, multiclass=multiclass).fit(X, labels)
    assert model.score(X, labels) > 0.85
    assert model.decision_function(X).shape == (240, 4)
    assert list(model.classes_) == sorted(set(labels))
    if multiclass == "one-vs-rest":
        assert np.abs(model.decision_function(X)).max() <= 1.5 + 1e-9


def test_the_result_does_not_depend_on_the_number_of_threads():
    X, y = problem(n=150, d=6, classes=3)
    one = RelativeMarginSVC(n_jobs=1, cache_size=0.02).fit(X, y)
    two = RelativeMarginSVC(n_jobs=2, cache_size=0.02).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_it_works_in_a_search():
    X, y = problem(n=90)
    search = GridSearchCV(RelativeMarginSVC(), {"B": [1.1, 2.0, np.inf], "C": [0.5, 5.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    assert search.best_params_["B"] == clone(search.best_estimator_).B


# --------------------------------------------------------------------------------------------------- model files


@pytest.mark.parametrize(
    ("settings", "make"),
    [
        ({}, np.asarray),
        ({"B": np.inf, "kernel": "poly"}, np.asarray),
        ({"kernel": "linear", "gamma": 0.5}, sp.csr_matrix),
        ({"multiclass": "one-vs-rest"}, np.asarray),
    ],
)
def test_a_saved_model_comes_back_as_it_was(settings, make, tmp_path):
    X, y = problem(n=90, classes=3)
    X, y = make(X), np.array(["a", "b", "c"])[y]
    model = RelativeMarginSVC(**settings).fit(X, y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert without_seconds(again.history_) == without_seconds(model.history_)


def test_a_model_with_a_callable_kernel_is_not_saved(tmp_path):
    X, y = problem()
    model = RelativeMarginSVC(rbf_kernel).fit(X, y)
    with pytest.raises(TypeError, match="callable kernel cannot be saved"):
        mercer.save(model, tmp_path / "m.mercer")


@pytest.mark.parametrize("change", ["dual_coef_", "intercept_", "support_vectors_", "support_"])
def test_a_model_file_with_arrays_that_do_not_fit_is_refused(change):
    X, y = problem()
    meta, arrays = RelativeMarginSVC().fit(X, y).to_state()
    arrays = {**arrays, change: arrays[change][..., :-1]}
    with pytest.raises(ValueError, match="must have the shape"):
        RelativeMarginSVC.from_state(meta, arrays)


# ----------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"B": 0.9}, "B must be a number of at least 1"),
        ({"B": np.nan}, "B must be"),
        ({"B": "2"}, "B must be"),
        ({"C": 0}, "C must be a positive"),
        ({"C": np.inf}, "C must be a positive"),
        ({"kernel": "gauss"}, "kernel must be one of 'linear'"),
        ({"degree": -1}, "degree must be an integer"),
        ({"gamma": "big"}, "gamma must be one of 'scale', 'auto'"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"coef0": np.nan}, "coef0 must be a finite"),
        ({"multiclass": "all"}, "multiclass must be one of"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"cache_size": -1}, "cache_size must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        RelativeMarginSVC(**settings).fit(X, y)


def test_wrong_data_are_named():
    X, y = problem()
    with pytest.raises(ValueError, match="at least two classes"):
        RelativeMarginSVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="square matrix"):
        RelativeMarginSVC("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="symmetric"):
        RelativeMarginSVC("precomputed").fit(np.triu(np.ones((len(y), len(y)))), y)
    with pytest.raises(ValueError, match="shape"):
        RelativeMarginSVC(lambda a, b: np.ones(3)).fit(X, y)
    with pytest.raises(ValueError, match="finite"):
        RelativeMarginSVC(lambda a, b: np.full((len(a), len(b)), np.nan)).fit(X, y)


def test_an_indefinite_kernel_is_refused_where_it_has_no_solution():
    X, y = problem()
    with pytest.raises(ValueError, match="not positive semi-definite"):
        RelativeMarginSVC("precomputed", B=1.5).fit(-rbf_kernel(X), y)


def test_too_few_steps_are_a_warning_with_the_gap_and_still_a_feasible_model():
    X, y = problem(n=120)
    model = RelativeMarginSVC("linear", 10.0, 1.1, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="max_iter=30"):
        model.fit(X, y)
    assert not model.converged_
    assert model.n_iter_[0] == 30
    assert np.abs(model.decision_function(X)).max() <= 1.1 + 1e-9


def test_ctrl_c_keeps_the_point_at_hand(monkeypatch):
    X, y = problem(n=120)
    calls = []

    def interrupt(self, *args):
        calls.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(RelativeMarginSVC, "_start_inside", interrupt)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        model = RelativeMarginSVC("linear", 100.0, 1.1, tol=1e-9).fit(X, y)
    assert calls
    assert not model.converged_
    assert np.abs(model.decision_function(X)).max() <= 1.1 + 1e-9


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_is_printed_when_asked_for(verbose, capsys):
    RelativeMarginSVC(verbose=verbose).fit(*problem())
    assert "gap" in capsys.readouterr().err


def test_identical_points_of_both_classes_are_no_trouble():
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    model = RelativeMarginSVC(B=1.5).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# ----------------------------------------------------------------------------------------------- compiled problem


K2, Y2, C2 = np.eye(2), np.array([1.0, -1.0]), np.ones(2)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.eye(3), Y2, C2, 2.0),
        (np.ones((2, 3)), Y2, C2, 2.0),
        (np.full((2, 2), np.nan), Y2, C2, 2.0),
        (K2, np.array([1.0, 1.0]), C2, 2.0),
        (K2, np.array([1.0, 0.5]), C2, 2.0),
        (K2, Y2, C2 * 0.0, 2.0),
        (K2, Y2, C2[:1], 2.0),
        (K2, Y2, C2 * np.inf, 2.0),
        (K2, Y2, C2, 0.5),
        (K2, Y2, C2, np.nan),
        (K2.astype(np.float32), Y2, C2, 2.0),
        (_core.linear.Rows(np.eye(3)), "rbf", 3, 1.0, 0.0, Y2, C2, 2.0, 2, 1),
        (_core.linear.Rows(np.eye(2)), "other", 3, 1.0, 0.0, Y2, C2, 2.0, 2, 1),
        (_core.linear.Rows(np.eye(2)), "rbf", -1, 1.0, 0.0, Y2, C2, 2.0, 2, 1),
        (_core.linear.Rows(np.eye(2)), "rbf", 3, np.nan, 0.0, Y2, C2, 2.0, 2, 1),
        (_core.linear.Rows(np.eye(2)), "rbf", 3, 1.0, np.inf, Y2, C2, 2.0, 2, 1),
        (_core.linear.Rows(np.eye(2)), "rbf", 3, 1.0, 0.0, Y2, C2, 2.0, 1, 1),
        (_core.linear.Rows(np.eye(2)), "rbf", 3, 1.0, 0.0, Y2, C2, 2.0, 2, 0),
        (_core.linear.Rows(np.eye(2, dtype=np.float32)), "rbf", 3, 1.0, 0.0, Y2, C2, 2.0, 2, 1),
    ],
)
def test_the_compiled_problem_checks_its_arguments(arguments):
    with pytest.raises((TypeError, ValueError)):
        _core.machines.RelativeMarginDual(*arguments)


def test_the_compiled_problem_keeps_its_arrays_alive_and_checks_its_calls():
    dual = _core.machines.RelativeMarginDual(np.eye(2) * 2.0, np.array([1.0, -1.0]), np.ones(2), 2.0)
    with pytest.raises(ValueError):
        dual.run(-1, 1e-3)
    with pytest.raises(ValueError):
        dual.run(1, 0.0)
    with pytest.raises(ValueError):
        dual.coefficients(np.empty(3))
    with pytest.raises(ValueError):
        dual.start(np.zeros(3), np.zeros(3))
    assert not dual.start(np.array([1.0, 0.0]), np.zeros(2))  # does not sum to 0
    assert not dual.start(np.array([-1.0, 1.0]), np.array([-2.0, 2.0]))  # worse than the start
    assert dual.start(np.array([0.25, -0.25]), np.array([0.5, -0.5]))
    with pytest.raises(ValueError):
        dual.start(np.array([np.nan, 0.0]), np.zeros(2))
    dual.run(100, 1e-6)
    out = np.empty(2)
    dual.coefficients(out)
    np.testing.assert_allclose(out, [0.5, -0.5], atol=1e-6)
