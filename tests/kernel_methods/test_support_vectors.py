"""Support vector machines against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import mercer
from mercer.data.trees import Tree
from mercer.datasets import make_motif_graphs
from mercer.kernel_methods import (
    KernelMeanClassifier,
    KernelNuSVC,
    KernelOneClass,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    ParzenWindow,
)
from mercer.kernels import Linear
from mercer.learning import ConvergenceWarning
from reference.kernel_methods import Bump, Letters, Minus, blobs, one_class_dual, svm_dual

# scikit-learn's solver holds kernel values as float32, which bounds the gap for kernels with large ones.
KERNELS = [Linear(), Bump(0.5), ((Linear() + 1.0) ** 2).normalized()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_primal_equals_dual_and_the_optimality_conditions_hold(kernel, C):
    X, y = blobs(0, n=60, apart=1.0)
    model = KernelSVC(kernel, C=C, tol=1e-7).fit(X, y)
    signs, a = np.where(y == 1, 1.0, -1.0), np.zeros(60)
    a[model.support_] = model.dual_coef_[0]
    a *= signs
    margins = signs * model.decision_function(X)
    slack = np.maximum(0.0, 1.0 - margins)
    norm = (a * signs) @ kernel(X) @ (a * signs)
    primal, dual = 0.5 * norm + C * slack.sum(), a.sum() - 0.5 * norm
    assert primal - dual < 1e-6 * max(1.0, primal)
    assert model.duality_gap_[0] == pytest.approx((primal - dual) / primal, abs=1e-12)
    assert abs(a @ signs) < 1e-9
    assert a.min() >= 0
    assert a.max() <= C * (1 + 1e-12)
    np.testing.assert_allclose(a * (margins - 1.0 + slack), 0.0, atol=1e-5 * C)  # not a (y f − 1), which is for C = ∞
    np.testing.assert_allclose((C - a) * slack, 0.0, atol=1e-5 * C)
    assert slack.sum() >= np.sum(margins < 0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_machine_equals_a_general_quadratic_program(kernel):
    X, y = blobs(1, n=40, apart=0.7)
    signs, weights = np.where(y == 1, 1.0, -1.0), np.linspace(0.2, 2.0, 40)
    model = KernelSVC(kernel, C=0.5, tol=1e-8).fit(X, y, sample_weight=weights)
    a, value = svm_dual(kernel(X), signs, 0.5 * weights)
    s = model.dual_coef_[0]
    K = kernel(X)[np.ix_(model.support_, model.support_)]
    assert np.abs(s).sum() - 0.5 * s @ K @ s == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X) - model.intercept_[0], kernel(X) @ (a * signs), rtol=1e-3, atol=1e-3
    )


def test_hard_margin_has_the_largest_margin():
    X, y = blobs(2, n=40, apart=6.0)
    model = KernelSVC(Linear(), C=np.inf, tol=1e-8).fit(X, y)
    w = model.dual_coef_[0] @ model.support_objects_
    margins = np.where(y == 1, 1, -1) * (X @ w + model.intercept_[0])
    assert margins.min() == pytest.approx(1.0, abs=1e-6)
    width = margins.min() / np.linalg.norm(w) * 2
    assert width == pytest.approx(2 / np.linalg.norm(w), rel=1e-6)
    directions = np.random.default_rng(0).normal(size=(2000, 2))
    projected = X @ directions.T
    gaps = projected[y == 1].min(axis=0) - projected[y == 0].max(axis=0)
    assert (gaps / np.linalg.norm(directions, axis=1)).max() <= width + 1e-9
    assert model.duality_gap_[0] < 1e-6


def test_hard_margin_in_a_rich_space_separates_any_labels():
    X, _ = blobs(3, n=30)
    y = np.random.default_rng(0).permutation(np.arange(30) % 2)
    assert KernelSVC(Bump(20.0), C=np.inf).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("make", [KernelSVC, LinearProgramSVC])
def test_hard_margin_without_a_solution_raises(make):
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="C=inf"):
        make(Linear(), C=np.inf).fit(X, [0, 0, 1, 1])
    assert make((Linear() + 1.0) ** 2, C=np.inf).fit(X, [0, 0, 1, 1]).score(X, [0, 0, 1, 1]) == 1.0
    with pytest.raises(ValueError, match="C=inf"):
        make(Bump(), C=np.inf).fit(np.vstack([X, X[:1]]), [0, 0, 1, 1, 1])  # the same object with both labels


def test_votes_of_pairs_are_those_of_scikit_learn():
    X, y = blobs(4, n=90, apart=2.5, classes=4)
    K = Bump(0.3)(X)
    ours = KernelSVC(Bump(0.3), C=1.0, tol=1e-6).fit(X, y)
    theirs = SVC(kernel="precomputed", tol=1e-6, break_ties=True, decision_function_shape="ovr").fit(K, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(K), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(K))
    assert ours.dual_coef_.shape == (6, len(ours.support_))
    assert ours.n_support_.sum() == len(ours.support_) == len(ours.support_objects_)


def test_a_shift_of_feature_space_changes_nothing():
    X, y = blobs(5, n=40, apart=1.0)
    for make in (KernelSVC, KernelNuSVC):
        shifted = make(Minus(), tol=1e-7).fit(X, y).decision_function(X)
        plain = make(2.0 * Linear(), tol=1e-7).fit(X, y).decision_function(X)
        np.testing.assert_allclose(shifted, plain, atol=1e-4)
    for make in (KernelSVR,):
        shifted = make(Minus(), tol=1e-7).fit(X, X[:, 0] ** 2).predict(X)
        np.testing.assert_allclose(shifted, make(2.0 * Linear(), tol=1e-7).fit(X, X[:, 0] ** 2).predict(X), atol=1e-4)


def test_one_class_needs_an_origin():
    with pytest.raises(ValueError, match="KernelOneClass needs a positive definite kernel"):
        KernelOneClass(Minus()).fit(np.eye(3))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("nu", "apart"), [(0.05, 4.0), (0.2, 4.0), (0.3, 2.0), (0.5, 2.0), (0.8, 0.5), (1.0, 0.5)])
def test_nu_bounds_margin_errors_from_above_and_support_objects_from_below(seed, nu, apart):
    X, y = blobs(seed, n=80, apart=apart)
    model = KernelNuSVC(Bump(0.5), nu=nu, tol=1e-6).fit(X, y)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert np.mean(margins < 1 - 1e-4) <= nu + 1e-12  # the function is divided by ρ
    assert len(model.support_) >= nu * 80 - 1e-9
    assert model.duality_gap_[0] < 1e-4


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_nu_machine_is_the_ordinary_one_at_the_inverse_of_rho(nu):
    X, y = blobs(6, n=60, apart=1.5)
    one = KernelNuSVC(Bump(0.5), nu=nu, tol=1e-8).fit(X, y)
    other = KernelSVC(Bump(0.5), C=1.0 / one.rho_[0], tol=1e-8).fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-5)


def test_nu_of_one_with_balanced_classes_is_the_mean_classifier_up_to_the_offset():
    X, y = blobs(7, n=40, apart=1.0)
    one = KernelNuSVC(Bump(0.5), nu=1.0, tol=1e-8).fit(X, y)
    mean = KernelMeanClassifier(Bump(0.5)).fit(X, y)
    f = one.decision_function(X) - one.intercept_[0]
    g = mean.decision_function(X) - mean.intercept_[0]
    np.testing.assert_allclose(f / np.linalg.norm(f), g / np.linalg.norm(g), atol=1e-9)


def test_the_gap_of_the_nu_machine_is_that_of_its_program():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), np.arange(40) % 2
    for tol in (1e-1, 1e-8):
        gap = KernelNuSVC(nu=0.5, tol=tol).fit(X + 0.7 * y[:, None], y).duality_gap_[0]
        assert -1e-9 < gap < 3 * tol


def test_nu_that_the_sizes_do_not_allow_is_named_with_the_most_they_do():
    X, y = blobs(0, n=40)
    keep = np.flatnonzero((y == 0) | (np.arange(40) < 20))
    with pytest.raises(ValueError, match=r"nu=0.9 is infeasible for the classes 0 and 1.* at most 0\.6667"):
        KernelNuSVC(nu=0.9).fit(X[keep], y[keep])


def test_nu_too_small_for_any_margin_is_said_to_be():
    X, y = blobs(0, n=80, apart=0.0)
    with pytest.warns(ConvergenceWarning, match="margin of 0.*larger nu"):
        KernelNuSVC(Linear(), nu=0.1).fit(X, y)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nu", [0.05, 0.3, 0.7])
def test_one_class_machine_keeps_the_nu_property_and_equals_its_program(seed, nu):
    X, _ = blobs(seed, n=40)
    model = KernelOneClass(Bump(0.3), nu=nu, tol=1e-8).fit(X)
    assert np.mean(model.decision_function(X) < -1e-5) <= nu
    assert len(model.support_) >= nu * 40 - 1e-9
    assert model.dual_coef_.sum() == pytest.approx(nu * 40)
    K, s = Bump(0.3)(X), model.dual_coef_[0]
    value = 0.5 * s @ K[np.ix_(model.support_, model.support_)] @ s
    assert value == pytest.approx(one_class_dual(K, nu)[1], rel=1e-6)
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-8).fit(K)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(K), atol=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [21, 100, 300])
def test_objects_on_the_boundary_are_inside(n, nu):
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(n, 3))
        for kernel in (None, 1e-6 * Bump(0.5), "precomputed"):
            objects = Bump(0.5)(X) if kernel == "precomputed" else X
            model = KernelOneClass(kernel, nu=nu).fit(objects)
            outside = np.flatnonzero(model.predict(objects) < 0)
            assert len(outside) <= nu * n + 1e-9
            coef = np.zeros(n)
            coef[model.support_] = model.dual_coef_[0]
            np.testing.assert_allclose(coef[outside], 1.0, atol=1e-9)  # only objects with slack
            assert model.level_set_mass(objects) >= 1 - nu - 1e-12


def test_one_class_machine_with_nu_of_one_is_a_parzen_window():
    X, _ = blobs(1, n=50)
    f = KernelOneClass(Bump(), nu=1.0).fit(X).score_samples(X)
    np.testing.assert_allclose(f / 50, ParzenWindow(Bump()).fit(X).score_samples(X), rtol=1e-9)


def test_region_has_the_mass_that_was_asked_for():
    rng = np.random.default_rng(0)
    model = KernelOneClass(Bump(0.5), nu=0.2).fit(rng.normal(size=(2000, 2)))
    mass = model.level_set_mass(rng.normal(size=(2000, 2)))
    assert abs(mass - 0.8) < 3 * np.sqrt(2 * 0.8 * 0.2 / 2000)  # both samples vary
    with pytest.raises(ValueError, match="empty"):
        model.level_set_mass(np.zeros((0, 2)))


def test_regression_equals_scikit_learn_and_keeps_support_objects_only():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), 6)) for _ in range(60)]
    y = np.array([w.count("a") - 0.5 * w.count("b") for w in words]) + 0.05 * rng.normal(size=60)
    model = KernelSVR(Letters(), C=10.0, epsilon=0.1, tol=1e-6).fit(words, y)
    theirs = SVR(kernel="precomputed", C=10.0, epsilon=0.1, tol=1e-6).fit(Letters()(words), y)
    np.testing.assert_allclose(model.predict(words), theirs.predict(Letters()(words)), atol=1e-5)
    assert model.support_objects_ == [words[i] for i in model.support_]
    assert len(model.support_) < 60


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_linear_program_reaches_its_optimum_with_few_objects(C):
    X, y = blobs(8, n=50, apart=1.0)
    model = LinearProgramSVC(Bump(0.5), C=C).fit(X, y)
    K, signs = Bump(0.5)(X), np.where(y == 1, 1.0, -1.0)
    risk = np.abs(model.dual_coef_).sum() + C * np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert risk == pytest.approx(model.objective_[0], rel=1e-6)
    # The same program with its absolute values as bounds: variables a, t ≥ |a|, b, ξ.
    n, eye, no = 50, np.eye(50), np.zeros((50, 50))
    A = np.block(
        [
            [-signs[:, None] * K, no, -signs[:, None], -eye],
            [eye, -eye, np.zeros((n, 1)), no],
            [-eye, -eye, np.zeros((n, 1)), no],
        ]
    )
    cost = np.concatenate([np.zeros(n), np.ones(n), [0.0], np.full(n, C)])
    bounds = [(None, None)] * n + [(0, None)] * n + [(None, None)] + [(0, None)] * n
    found = linprog(cost, A_ub=A, b_ub=np.concatenate([-np.ones(n), np.zeros(2 * n)]), bounds=bounds)
    assert model.objective_[0] == pytest.approx(found.fun, rel=1e-7)
    assert len(model.support_) < 15


def test_weight_of_zero_is_absence():
    X, y = blobs(9, n=40, apart=1.0)
    weights = (np.arange(40) >= 10).astype(float)
    for make in (KernelSVC, KernelNuSVC, LinearProgramSVC):
        options = {} if make is LinearProgramSVC else {"tol": 1e-8}
        weighted = make(**options).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(
            weighted.decision_function(X), make(**options).fit(X[10:], y[10:]).decision_function(X), atol=1e-6
        )
        assert weighted.support_.min() >= 10


def test_class_weights_multiply_the_slack_of_a_class():
    X, y = blobs(10, n=40, apart=0.5)
    weighted = KernelSVC(class_weight={0: 3.0, 1: 1.0}, tol=1e-8).fit(X, y).decision_function(X)
    by_hand = KernelSVC(tol=1e-8).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0)).decision_function(X)
    np.testing.assert_allclose(weighted, by_hand, atol=1e-9)


@pytest.mark.parametrize("C", [0.02, 0.3, 5.0])
def test_norm_of_the_weights_is_the_linear_program_s_and_its_dual_s(C):
    X, y = blobs(5, n=40, apart=1.0)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 5))])
    signs = np.where(y == 1, 1.0, -1.0)
    model = LinearProgramSVC(C=C, penalty="w").fit(X, y)
    slack = np.maximum(0.0, 1.0 - signs * model.decision_function(X)).sum()
    value = np.abs(model.coef_).sum() + C * slack
    # The dual: max Σ α_i for |Σ α_i y_i x_i| ≤ 1 in every column, Σ α_i y_i = 0, 0 ≤ α ≤ C.
    columns = (signs[:, None] * X).T
    dual = linprog(
        -np.ones(len(X)), np.vstack([columns, -columns]), np.ones(2 * X.shape[1]), signs[None], [0.0], (0.0, C)
    )
    np.testing.assert_allclose(value, -dual.fun, rtol=1e-8)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-8)


def test_norm_of_the_weights_leaves_columns_out_and_takes_sparse_matrices():
    random = np.random.default_rng(1)
    X = np.where(random.random((120, 30)) < 0.3, random.normal(size=(120, 30)), 0.0)
    y = np.where(X[:, 3] - X[:, 7] > 0, "up", "down")
    model = LinearProgramSVC(Linear(), C=0.5, penalty="w").fit(X, y)
    assert {3, 7} <= set(np.flatnonzero(model.coef_[0]))
    assert np.count_nonzero(model.coef_) < 20
    assert len(model.support_) == 0
    sparse = LinearProgramSVC(Linear(), C=0.5, penalty="w").fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), model.decision_function(X), atol=1e-8)
    again = model.set_params(penalty="a").fit(X, y)
    assert not hasattr(again, "coef_")
    assert len(again.support_)


def test_norm_of_the_weights_takes_lists_of_vectors_of_one_width(tmp_path):
    X, y = blobs(5, n=20)
    model = LinearProgramSVC(penalty="w").fit(X.tolist(), y)
    mercer.save(model, tmp_path / "m")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m").predict(X.tolist()), model.predict(X.tolist()))
    with pytest.raises(ValueError, match="X has 3 columns"):
        model.predict([[1.0, 2.0, 3.0]])


def test_norm_of_the_weights_is_for_the_linear_kernel():
    X, y = blobs(5, n=20)
    with pytest.raises(ValueError, match="penalty='w' needs the linear kernel"):
        LinearProgramSVC(Bump(), penalty="w").fit(X, y)
    with pytest.raises(ValueError, match="penalty must be"):
        LinearProgramSVC(penalty="l1").fit(X, y)


# ------------------------------------------------------------------------------------------------ defaults


def two_rings(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angles, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + y + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]), y


def test_default_kernel_is_the_gaussian_of_scikit_learn():
    X, y = two_rings()
    for table in (X, X.tolist(), sp.csr_matrix(X), X.astype(np.float32)):
        ours = KernelSVC(C=1.0, tol=1e-8).fit(table, y)
        theirs = SVC(tol=1e-8).fit(X, y)
        assert ours.gamma_ == pytest.approx(theirs._gamma, rel=1e-6)
        np.testing.assert_allclose(ours.decision_function(table), theirs.decision_function(X), atol=1e-4)
    assert KernelSVC().fit(X, y).score(X, y) > 0.95
    nu, other_nu = KernelNuSVC(nu=0.5, tol=1e-8).fit(X, y), NuSVC(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), other_nu.decision_function(X), atol=1e-4)
    target = X[:, 0] ** 2
    values = KernelSVR(tol=1e-8).fit(X, target).predict(X)
    np.testing.assert_allclose(values, SVR(tol=1e-8).fit(X, target).predict(X), atol=1e-5)
    region, other_region = KernelOneClass(tol=1e-8).fit(X), OneClassSVM(tol=1e-8).fit(X)
    np.testing.assert_allclose(region.score_samples(X), other_region.score_samples(X), atol=1e-4)


def test_the_fraction_of_margin_errors_comes_from_nearest_neighbours():
    X = np.array([[0.0], [1.0], [2.1], [3.3], [4.6], [6.0]])
    clear = KernelNuSVC(Linear()).fit(X, [0, 0, 0, 1, 1, 1])
    # The nearest of 3.3 is 2.1, of another class; all others have a neighbour of their own.
    assert clear.nu_.tolist() == [pytest.approx(2 / 6)]
    assert KernelNuSVC(Linear()).fit(X, [0, 1, 0, 1, 0, 1]).nu_.tolist() == [0.5]
    twice = KernelNuSVC(Linear()).fit(np.repeat(X, 2, axis=0), np.repeat([0, 0, 0, 1, 1, 1], 2))
    assert twice.nu_.tolist() == clear.nu_.tolist()  # a repeat is no neighbour
    rare = KernelNuSVC(Linear()).fit(np.arange(20.0)[:, None], [1] + [0] * 19)
    assert rare.nu_.tolist() == [pytest.approx(0.1)]  # two of twenty, as many as the rare class allows


@pytest.mark.parametrize("make", [KernelSVC, KernelNuSVC, KernelSVR, KernelOneClass, ParzenWindow])
def test_default_kernel_is_kept_in_files_and_forgotten_with_another_kernel(make, tmp_path):
    X, y = two_rings(40)
    model = make().fit(X, y)
    use = "predict" if hasattr(model, "predict") else "score_samples"
    expected = getattr(model, use)(X + 0.1)
    mercer.save(model, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    assert again.gamma_ == model.gamma_
    np.testing.assert_array_equal(getattr(again, use)(X + 0.1), expected)
    meta, arrays = model.to_state()
    del meta["fitted"]["gamma_"]
    with pytest.raises(ValueError, match="gamma_"):
        make.from_state(meta, arrays)
    assert not hasattr(model.set_params(kernel=Bump()).fit(X, y), "gamma_")


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (["ab", "ba", "bb", "aa"], r"needs a kernel for strings, such as mercer\.kernels\.NGram"),
        (np.array(["ab", "ba", "bb", "aa"]), "needs a kernel for strings"),
        ([["the", "dog"], ["a", "cat"], ["x"], ["y"]], "needs a kernel for strings"),
        (make_motif_graphs(n_graphs=4, random_state=0)[0], "needs a kernel for graphs, such as .*WeisfeilerLehman"),
        ([Tree.parse("(S (A a))")] * 4, "needs a kernel for trees, such as .*SubsetTree"),
        ([{1, 2}, {2}, {3}, {1}], "needs a kernel for sets, such as .*Jaccard"),
        ([object()] * 4, "needs a kernel for objects of type object"),
        ({"a": [1.0, 2.0, 3.0, 4.0]}, r"needs a kernel for tables of columns, such as .*\.on\("),
    ],
    ids=["strings", "string array", "words", "graphs", "trees", "sets", "objects", "columns"],
)
@pytest.mark.parametrize("make", [KernelSVC, KernelNuSVC, KernelSVR, KernelOneClass, ParzenWindow])
def test_objects_that_are_no_rows_of_numbers_need_a_kernel(make, objects, message):
    with pytest.raises(ValueError, match=f"{make.__name__} {message}"):
        make().fit(objects, [0, 1, 0, 1])


def test_scaled_slack_weight_makes_a_factor_and_a_constant_of_the_kernel_irrelevant():
    X, y = blobs(3, n=60, apart=1.0, classes=3)
    plain = KernelSVC(Bump(0.3), tol=1e-6).fit(X, y)
    K = Bump(0.3)(X)
    assert pytest.approx(3.0 / (1.0 - K.mean())) == plain.C_
    for factor, constant in ((1e6, 0.0), (1e-6, 0.0), (1.0, 1e6), (1e-3, 1.0)):
        kernel = factor * Bump(0.3) + constant if constant else factor * Bump(0.3)
        changed = KernelSVC(kernel, tol=1e-6).fit(X, y)
        assert changed.C_ * factor == pytest.approx(plain.C_, rel=1e-6)
        np.testing.assert_allclose(changed.decision_function(X), plain.decision_function(X), atol=1e-3)
    given = KernelSVC(Bump(0.3), C=plain.C_, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(given.decision_function(X), plain.decision_function(X), atol=1e-9)
    assert KernelSVC("precomputed").fit(np.ones((4, 4)), [0, 1, 0, 1]).C_ == 1.0
    with pytest.raises(ValueError, match="C must be one of 'scale'"):
        KernelSVC(C="auto").fit(X, y)


@pytest.mark.parametrize("make", [KernelSVC, KernelNuSVC, KernelSVR, KernelOneClass])
def test_units_and_offsets_of_the_rows_do_not_change_the_answer(make):
    X, y = blobs(4, n=80, apart=2.0)
    target = X[:, 0] if make is KernelSVR else y
    answer = lambda Z: make(tol=1e-7).fit(Z, target).predict(Z)  # noqa: E731
    plain = answer(X)
    for changed in (1e6 * X, 1e-6 * X, X + 1e6, X[:, ::-1]):
        np.testing.assert_allclose(answer(changed), plain, atol=1e-3)
    if (
        make is not KernelOneClass
    ):  # without an origin an offset of the rows does not matter to the linear kernel either
        line = lambda Z: make(Linear(), tol=1e-7).fit(Z, target).predict(Z)  # noqa: E731
        np.testing.assert_allclose(line(X + 1e4), line(X), atol=1e-3)


@pytest.mark.parametrize("make", [KernelSVC, KernelNuSVC, KernelSVR, KernelOneClass])
def test_weights_are_repetitions_for_the_default_width_and_slack_weight_too(make):
    X, y = blobs(5, n=40, apart=1.0)
    weights = np.arange(40) % 3
    rows = np.repeat(np.arange(40), weights)
    weighted = make(tol=1e-8).fit(X, y, sample_weight=weights)
    repeated = make(tol=1e-8).fit(X[rows], y[rows])
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)
    assert weighted.gamma_ != pytest.approx(make().fit(X, y).gamma_, rel=1e-3)
    use = "decision_function" if hasattr(weighted, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(weighted, use)(X), getattr(repeated, use)(X), atol=1e-5)


# ------------------------------------------------------------------------------------------------ rows on demand

FEW = 0.02  # megabytes: some tens of rows


@pytest.mark.parametrize("make", [KernelSVC, KernelSVR])
@pytest.mark.parametrize("kernel", [None, Linear() + 1.0, Bump(0.5)])
def test_rows_on_demand_give_the_machine_of_the_whole_matrix(make, kernel):
    X, y = blobs(3, n=120, apart=0.7)
    weights = np.linspace(0.0, 2.0, 120)
    models = [make(kernel, C=1.0, tol=1e-8, cache_size=size).fit(X, y, weights) for size in (FEW, 200.0)]
    outputs = [getattr(model, "decision_function", model.predict)(X) for model in models]
    np.testing.assert_allclose(*outputs, atol=1e-5)
    np.testing.assert_allclose(models[0].intercept_, models[1].intercept_, atol=1e-5)
    assert len(models[0].support_) == pytest.approx(len(models[1].support_), abs=2)


def test_rows_on_demand_of_pairs_of_classes_sparse_rows_and_strings():
    X, _ = blobs(4, n=90, apart=1.0)
    y = np.arange(90) % 3
    X = X + y[:, None]
    words = ["".join(np.random.default_rng(i).choice(list("abcd"[: 2 + i % 3]), 8)) for i in range(90)]
    for objects, kernel in ((X, None), (sp.csr_matrix(X), None), (words, Letters())):
        few, whole = (KernelSVC(kernel, C=1.0, tol=1e-7, cache_size=size).fit(objects, y) for size in (FEW, 200.0))
        assert few.dual_coef_.shape[0] == 3
        np.testing.assert_array_equal(few.predict(objects), whole.predict(objects))
        assert np.abs(few.duality_gap_).max() < 1e-5


def test_scaled_slack_weight_of_many_objects_is_measured_on_some_of_them():
    X, y = blobs(5, n=2300, apart=1.0)
    measured, exact = (KernelSVC(cache_size=size, tol=0.1).fit(X, y).C_ for size in (10.0, 200.0))
    assert measured == pytest.approx(exact, rel=0.02)
    assert measured != exact


def test_values_that_are_not_finite_name_the_kernel_before_rows_are_kept():
    class Broken(Letters):
        def _gram(self, A, B, work):
            K = super()._gram(A, B, work)
            return K if B is None else K + np.where(K.max() > K, 0.0, np.nan)

    words = ["".join(np.random.default_rng(i).choice(list("abcd"), 8)) for i in range(60)]
    with pytest.raises(ValueError, match=r"Broken.*NaN or infinite"):
        KernelSVC(Broken(), C=1.0, cache_size=FEW).fit(words, np.arange(60) % 2)


def test_the_hard_margin_forms_its_matrix_whatever_the_room():
    X, y = blobs(6, n=60, apart=9.0)
    models = [KernelSVC(Linear(), C=np.inf, cache_size=size).fit(X, y) for size in (1e-3, 200.0)]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


@pytest.mark.parametrize("size", [0, -1.0, np.inf, "large"])
def test_room_for_kernel_values_must_be_positive(size):
    with pytest.raises(ValueError, match="cache_size"):
        KernelSVC(cache_size=size).fit(*blobs(0, n=10, apart=1.0))
