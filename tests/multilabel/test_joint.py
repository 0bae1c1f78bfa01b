"""The joint machine: its dual against a reference solver, decoding against enumeration, thresholds, forms of labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import _core
from mercer.kernels import Gaussian, Linear
from mercer.metrics import multilabel_scores
from mercer.multilabel import JointSVM, LinearOutput, LogOddsOutput, PolynomialOutput, joint
from mercer.multilabel._decisions import Decisions

OUTPUTS = [
    LinearOutput(),
    LinearOutput(code="signs"),
    LinearOutput(code="indicator"),
    PolynomialOutput(),
    PolynomialOutput(3, 0.5, code="signs"),
    LogOddsOutput(),
    LogOddsOutput(repair="square"),
]
every_output = pytest.mark.parametrize("output", OUTPUTS, ids=repr)


def task(n: int = 60, T: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, Y = make_multilabel_classification(n, 6, n_classes=T, n_labels=2, random_state=seed)
    return StandardScaler().fit_transform(X), Y


def dual(model: JointSVM, X: np.ndarray, Y: np.ndarray, kernel: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    alpha = np.zeros(len(X))
    alpha[model.support_] = model.dual_coef_
    return model.output_(sp.csr_matrix(Y)) * kernel(X), alpha


@every_output
def test_the_dual_is_that_of_a_reference_solver(output):
    X, Y = task(40)
    kernel = Gaussian(0.2)
    model = JointSVM(C=2.0, kernel=kernel, output_kernel=output, tol=1e-7).fit(X, Y)
    G, alpha = dual(model, X, Y, kernel)
    reference = minimize(
        lambda a: 0.5 * a @ G @ a - a.sum(),
        np.full(len(X), 0.5),
        jac=lambda a: G @ a - 1,
        bounds=[(0, 2.0)] * len(X),
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert 0.5 * alpha @ G @ alpha - alpha.sum() <= reference.fun + 1e-6 * abs(reference.fun)


@every_output
def test_optimality_conditions_and_the_duality_gap(output):
    X, Y = task()
    kernel = Gaussian(0.2)
    model = JointSVM(C=1.5, kernel=kernel, output_kernel=output, tol=1e-6).fit(X, Y)
    G, alpha = dual(model, X, Y, kernel)
    values = G @ alpha
    free = (alpha > 1e-9) & (alpha < 1.5 - 1e-9)
    assert np.abs(values[free] - 1).max(initial=0) < 1e-5
    assert (values[alpha <= 1e-9] > 1 - 1e-5).all()
    assert (values[alpha >= 1.5 - 1e-9] < 1 + 1e-5).all()
    primal = 0.5 * alpha @ G @ alpha + 1.5 * np.maximum(0, 1 - values).sum()
    gap = primal - (alpha.sum() - 0.5 * alpha @ G @ alpha)
    assert gap == pytest.approx(model.duality_gap_, abs=1e-8)
    assert gap < 1e-4 * primal


def test_a_matrix_of_label_similarities_is_a_change_of_basis():
    X, Y = task(50, 5)
    P = np.random.default_rng(0).normal(size=(5, 5))
    kernel = Gaussian(0.3)
    by_matrix = JointSVM(kernel=kernel, output_kernel=LinearOutput(P @ P.T), tol=1e-7).fit(X, Y)
    V = (Y - Y.mean(axis=0)) @ P
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    G = (V @ V.T) * kernel(X)
    alpha = np.zeros(len(X))
    alpha[by_matrix.support_] = by_matrix.dual_coef_
    by_hand = minimize(
        lambda a: 0.5 * a @ G @ a - a.sum(),
        np.zeros(len(X)),
        jac=lambda a: G @ a - 1,
        bounds=[(0, 1)] * len(X),
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert 0.5 * alpha @ G @ alpha - alpha.sum() == pytest.approx(by_hand.fun, rel=1e-6)


def test_enumeration_is_the_best_of_all_label_sets_and_equals_the_signs_of_a_linear_kernel():
    X, Y = task(50, 5)
    model = JointSVM(kernel=Gaussian(0.3), output_kernel=LinearOutput(code="signs"), decode="enumerate").fit(X, Y)
    direct = JointSVM(kernel=Gaussian(0.3), output_kernel=LinearOutput(code="signs")).fit(X, Y)
    assert np.array_equal(model.predict(X), (direct.decision_function(X) > 0).astype(int))


@every_output
def test_enumeration_equals_a_search_by_hand(output):
    X, Y = task(40, 4)
    kernel = Gaussian(0.3)
    model = JointSVM(kernel=kernel, output_kernel=output, decode="enumerate").fit(X, Y)
    sets = np.array(list(itertools.product((0, 1), repeat=4)))
    scores = (kernel(X[:7], X[model.support_]) * model.dual_coef_) @ model.output_(Y[model.support_], sets)
    chosen = model.predict(X[:7])
    for row, answer in zip(scores, chosen, strict=True):
        assert row[(sets == answer).all(axis=1)] == pytest.approx(row.max())


def test_neighbours_average_the_best_label_sets_of_training():
    X, Y = task(40, 4)
    kernel = Gaussian(0.3)
    model = JointSVM(kernel=kernel, output_kernel=PolynomialOutput(), n_neighbors=3).fit(X, Y)
    seen = model.decisions_.seen_.toarray()
    scores = (kernel(X[:9], X[model.support_]) * model.dual_coef_) @ model.output_(Y[model.support_], seen)
    best = np.argsort(-scores, axis=1)[:, :3]
    for row, places, given in zip(scores, best, model.decision_function(X[:9]), strict=True):
        weights = np.maximum(row[places], 0)
        assert np.allclose(given, 2 * (weights @ seen[places]) / weights.sum() - 1)


def test_scores_left_out_are_those_without_the_rows_own_term():
    X, Y = task(40, 4)
    kernel = Gaussian(0.3)
    model = JointSVM(kernel=kernel).fit(X, Y)
    alpha = np.zeros(len(X))
    alpha[model.support_] = model.dual_coef_
    V = model.output_.features(Y)
    scores = model._left_out_scores(kernel(X), alpha, sp.csr_matrix(Y))
    for i in (0, 7, 39):
        others = np.arange(len(X)) != i
        by_hand = (kernel(X[[i]], X[others]) * alpha[others]) @ V[others]
        assert np.allclose(scores[i], by_hand[0])


def test_label_sets_come_back_in_the_form_they_came_in():
    X, Y = task()
    names = np.array(["sea", "sky", "sun", "tree"])
    sets = [list(names[row == 1]) for row in Y]
    dense, sparse, listed = (JointSVM().fit(X, labels) for labels in (Y, sp.csr_matrix(Y), sets))
    assert dense.predict(X).shape == Y.shape
    assert sp.issparse(sparse.predict(X))
    assert np.array_equal(sparse.predict(X).toarray(), dense.predict(X))
    assert listed.predict(X[:3]) == [list(names[row == 1]) for row in dense.predict(X[:3])]
    assert [len(row) for row in listed.predict(X[:3], n_labels=2)] == [2, 2, 2]


def test_frames_of_labels_and_columns_of_lists_are_taken():
    pd = pytest.importorskip("pandas")
    X, Y = task()
    frame = JointSVM().fit(X, pd.DataFrame(Y, columns=list("abcd")))
    assert list(frame.classes_) == list("abcd")
    column = pd.DataFrame({"tags": [["a"] if row[0] else ["b", "c"] for row in Y]})["tags"]
    assert JointSVM().fit(X, column).predict(X[:1])[0] in (["a"], ["b", "c"], ["b"], ["c"], [], ["a", "b", "c"])


def test_a_warm_start_takes_fewer_steps_to_the_same_solution():
    X, Y = task(200, 6)
    cold = JointSVM(C=0.21, tol=1e-5).fit(X, Y)
    warm = JointSVM(C=0.2, tol=1e-5, warm_start=True).fit(X, Y).set_params(C=0.21).fit(X, Y)
    assert warm.n_iter_ < 0.8 * cold.n_iter_
    assert np.allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-3)


def test_thresholds_suit_the_measure_they_were_chosen_for():
    X, Y = task(300, 8, seed=3)
    Y[:, 0] &= np.arange(300) % 7 == 0  # a rare label
    held = slice(200, None)
    by = {m: JointSVM(measure=m).fit(X[:200], Y[:200]) for m in ("micro-f1", "subset", "hamming")}
    default = JointSVM(threshold=None).fit(X[:200], Y[:200])
    assert by["micro-f1"].score(X[held], Y[held]) >= default.set_params(measure="micro-f1").score(X[held], Y[held])
    per_label = JointSVM(threshold="per-label", measure="macro-f1").fit(X[:200], Y[:200])
    one = JointSVM(threshold=None, measure="macro-f1").fit(X[:200], Y[:200])
    assert per_label.score(X[held], Y[held]) > one.score(X[held], Y[held])


def test_seen_answers_with_label_sets_of_training():
    X, Y = task(100, 6)
    predicted = JointSVM(decode="seen").fit(X[:60], Y[:60]).predict(X[60:])
    seen = {tuple(row) for row in Y[:60]}
    assert {tuple(row) for row in predicted} <= seen


def test_time_does_not_depend_on_the_number_of_labels():
    """The dual has a variable for each row: its matrix has the same size for 5 and for 80 labels."""
    X, Y = task(80, 4)
    few, many = (JointSVM(tol=1e-6).fit(X, np.tile(Y, (1, k))) for k in (1, 20))
    assert few.n_iter_ == pytest.approx(many.n_iter_, rel=0.05)
    assert np.allclose(few.dual_coef_, many.dual_coef_, atol=1e-6)


def test_sets_are_better_than_those_of_the_most_frequent_labels():
    X, Y = task(300, 5)
    model = JointSVM().fit(X[:200], Y[:200])
    common = np.argsort(-Y[:200].mean(axis=0))[: round(Y[:200].sum(axis=1).mean())]
    frequent = np.zeros_like(Y[200:])
    frequent[:, common] = 1
    assert model.score(X[200:], Y[200:]) > multilabel_scores(Y[200:], frequent).micro_f1 + 0.05


def test_single_precision_is_within_the_tolerance(monkeypatch):
    """Kernel values of many rows are in single precision unless the tolerance is small; both solve the same dual."""
    monkeypatch.setattr(joint, "_SINGLE", (1e-4, 10))
    X, Y = task(80, 4)
    rough, fine = JointSVM(kernel=Gaussian(0.5)).fit(X, Y), JointSVM(kernel=Gaussian(0.5), tol=1e-7).fit(X, Y)
    assert fine.duality_gap_ < 1e-5
    assert rough.duality_gap_ < 0.05
    values = [dual(model, X, Y, Gaussian(0.5)) for model in (rough, fine)]
    objectives = [a.sum() - 0.5 * a @ G @ a for G, a in values]
    assert objectives[0] <= objectives[1] + 1e-9
    assert objectives[1] - objectives[0] <= rough.duality_gap_ + 1e-9


def test_a_row_without_a_code_goes_to_the_bound_and_changes_nothing():
    """A label set that is the mean of all has the code 0: its loss is 1 whatever the machine says."""
    G = np.array([[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 0.0]])
    alpha = np.zeros(3)
    slopes, _, converged = _core.joint.joint_dual(G, np.full(len(alpha), 2.0), alpha, 1e-10, 1000)
    assert converged
    assert np.allclose(alpha, [1 / 1.2, 1 / 1.2, 2.0])
    assert np.allclose(slopes, [0, 0, 1], atol=1e-9)
    with pytest.raises(ValueError, match="not finite"):
        _core.joint.joint_dual(np.array([[np.nan]]), np.ones(1), np.zeros(1), 1e-3, 10)
    with pytest.raises(ValueError, match="between 0 and C"):
        _core.joint.joint_dual(G, np.ones(3), np.full(3, 2.0), 1e-3, 10)


def test_labels_that_are_always_or_never_there():
    X, Y = task()
    Y = np.c_[Y, np.ones(len(Y), int), np.zeros(len(Y), int)]
    model = JointSVM().fit(X, Y)
    assert (model.predict(X)[:, -2:] == [1, 0]).all()


def test_rows_without_labels_and_a_single_label():
    X, Y = task()
    Y[:20] = 0
    assert JointSVM().fit(X, Y).predict(X).shape == Y.shape
    label = (X[:, :1] > 0).astype(int)
    one = JointSVM().fit(X, label)
    assert one.predict(X).shape == (len(X), 1)
    assert one.score(X, label) > 0.8


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.zeros((3, 2)), np.zeros((2, 2), int), "X has 3 rows and Y 2"),
        (np.ones((3, 2)), np.array([[0, 2], [1, 0], [1, 1]]), "0 and 1 only, found 2"),
        (np.ones((3, 2)), np.array([[0, np.nan], [1, 0], [1, 1]]), "NaN"),
        (np.ones((3, 2)), ["a", "b", "c"], "row 0 of Y must be a collection"),
        (np.ones((3, 2)), [["a"], [1], []], "all strings or all integers"),
        (np.ones((3, 2)), [[], [], []], "no label"),
        (np.ones((3, 2)), np.zeros((3, 0)), "no label"),
        (np.ones((0, 2)), np.zeros((0, 2)), "X is empty"),
        (np.ones((0, 2)), [], "X is empty"),
        (np.array([[1.0, np.nan]] * 3), np.eye(3, dtype=int), "NaN"),
        (np.ones((3, 2)), "abc", "label sets"),
        (np.ones((3, 2)), np.ones(3), "dimensions"),
    ],
)
def test_wrong_labels_and_rows_are_named(X, Y, message):
    with pytest.raises(ValueError, match=message):
        JointSVM().fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be"),
        ({"decode": "best"}, "decode must be one of"),
        ({"decode": "direct", "output_kernel": PolynomialOutput()}, "linear"),
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": "each"}, "threshold must be one of"),
        ({"measure": "f1"}, "measure must be one of"),
        ({"output_kernel": Linear()}, "output_kernel must be"),
        ({"output_kernel": LinearOutput(-np.eye(4))}, "not positive semi-definite"),
        ({"output_kernel": LinearOutput(np.eye(3))}, r"shape \(4, 4\)"),
        ({"output_kernel": LinearOutput(np.triu(np.ones((4, 4))))}, "symmetric"),
        ({"output_kernel": LogOddsOutput(smoothing=0)}, "smoothing"),
        ({"n_neighbors": 0}, "n_neighbors"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    X, Y = task()
    with pytest.raises(ValueError, match=message):
        JointSVM(**params).fit(X, Y)


def test_enumeration_of_many_labels_raises():
    X, Y = task(60, 17)
    with pytest.raises(ValueError, match="up to 16 labels"):
        JointSVM(decode="enumerate").fit(X, Y)


def test_unknown_labels_at_scoring_are_named():
    X, Y = task()
    model = JointSVM().fit(X, [["a"] if row[0] else ["b"] for row in Y])
    with pytest.raises(ValueError, match="'c'"):
        model.score(X[:1], [["c"]])
    with pytest.raises(ValueError, match="3 columns"):
        model.score(X[:1], [[0, 1, 1]])


def test_units_a_million_times_larger_change_nothing():
    X, Y = task()
    assert np.array_equal(JointSVM().fit(X, Y).predict(X), JointSVM().fit(X * 1e6, Y).predict(X * 1e6))


@every_output
def test_files_hold_the_model(output, tmp_path):
    X, Y = task()
    model = JointSVM(output_kernel=output).fit(X, Y)
    mercer.save(model, tmp_path / "joint.mercer")
    loaded = mercer.load(tmp_path / "joint.mercer")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert repr(loaded.output_kernel) == repr(output)


def test_precomputed_kernels():
    X, Y = task()
    K = Gaussian(0.2)(X)
    a = JointSVM(kernel=Gaussian(0.2), tol=1e-6).fit(X[:40], Y[:40])
    b = JointSVM(kernel="precomputed", tol=1e-6).fit(K[:40, :40], Y[:40])
    assert np.allclose(a.decision_function(X[40:]), b.decision_function(K[40:, :40]))


def test_calibration_of_many_rows_by_cells_is_that_of_single_rows(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3000, 4))
    on = rng.random((3000, 4)) < 1 / (1 + np.exp(-(2 * scores - [0, 1, 2, 3])))
    by_cells = Decisions().fit(scores, sp.csr_matrix(on, dtype=float))
    monkeypatch.setattr("mercer.learning.sigmoids._CELLS", 10**6)
    by_rows = Decisions().fit(scores, sp.csr_matrix(on, dtype=float))
    assert np.allclose(by_cells.slopes_, by_rows.slopes_, rtol=1e-3)
    assert np.allclose(by_cells.offsets_, by_rows.offsets_, atol=5e-3)
    assert np.allclose(by_rows.slopes_, 2, rtol=0.15)
    assert np.allclose(by_rows.offsets_, [0, -1, -2, -3], atol=0.3)
