"""scikit-learn's contract, and inputs that are no good."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercer.kernel_methods import (
    IncompleteCholesky,
    KernelMeanClassifier,
    KernelNuSVC,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    LinearProgramSVC,
    OnlineKernelClassifier,
    ParzenWindow,
    RepresenterEstimator,
)
from mercer.kernels import Linear
from reference.contract import contract
from reference.kernel_methods import Bump, Letters, Minus, blobs


def takes_sparse() -> bool:
    try:
        Linear()(sp.eye_array(2, format="csr"))
    except TypeError:
        return False
    return True


SPARSE_CHECKS = [
    "check_sample_weight_equivalence_on_sparse_data", "check_estimator_sparse_tag", "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
]  # fmt: skip
LONGER_STEPS = "a step of weight 2 is twice as long, which is not two steps"
EXPECTED = {
    OnlineKernelClassifier: {
        "check_sample_weight_equivalence_on_dense_data": LONGER_STEPS,
        "check_sample_weight_equivalence_on_sparse_data": LONGER_STEPS,
        "check_class_weight_classifiers": "a perceptron takes steps at mistakes alone, whatever their weight",
    },
    KernelNuSVC: {"check_class_weight_classifiers": "weights that differ by 10⁵ make every nu infeasible"},
}
ESTIMATORS = [
    KernelSVC(tol=1e-8),
    KernelSVC("precomputed"),
    KernelSVC(Linear() + 1.0, tol=1e-8),
    KernelNuSVC(nu=0.2, tol=1e-8, max_iter=20_000),
    KernelSVR(tol=1e-8),
    KernelOneClass(tol=1e-10),
    KernelRidge(),
    KernelRidge("precomputed"),
    KernelPCA(),
    KernelPCA("precomputed"),
    KernelMeanClassifier(),
    ParzenWindow(),
    IncompleteCholesky(),
    OnlineKernelClassifier(max_iter=3),
    OnlineKernelClassifier(algorithm="norma", max_iter=3),
    RepresenterEstimator(),
    RepresenterEstimator(loss="logistic"),
    LinearProgramSVC(),
]


def expected_failures(estimator):
    expected = dict(EXPECTED.get(type(estimator), {}))
    if isinstance(estimator.kernel, str):
        expected["check_classifiers_one_label_sample_weights"] = "gives a matrix that is not symmetric"
    elif not takes_sparse():
        expected.update(dict.fromkeys(SPARSE_CHECKS, "the kernel does not take sparse matrices"))
    return expected


@contract(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(checks):
    checks()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_clone_has_the_same_parameters_and_a_kernel_of_its_own(estimator):
    copy = clone(estimator)
    assert repr(copy) == repr(estimator)
    assert copy.kernel is not estimator.kernel or not hasattr(estimator.kernel, "get_params")


def test_parameters_of_the_kernel_can_be_searched():
    X, y = blobs(0, n=60, apart=1.0)
    search = GridSearchCV(KernelSVC(Bump()), {"kernel__gamma": [1e-4, 0.3], "C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3, "C": 1.0}
    assert search.best_estimator_.kernel.gamma == 0.3


def test_strings_go_through_cross_validation_and_pipelines():
    rng = np.random.default_rng(0)
    words = [
        "".join(rng.choice(list("abcd"), 8, p=p))
        for p in ([0.4, 0.2, 0.2, 0.2], [0.1, 0.5, 0.2, 0.2])
        for _ in range(30)
    ]
    y = np.repeat([0, 1], 30)
    assert cross_val_score(KernelSVC(Letters()), words, y).mean() > 0.7
    assert cross_val_score(make_pipeline(KernelPCA(Letters(), 3), SVC()), words, y).mean() > 0.7
    assert cross_val_score(make_pipeline(IncompleteCholesky(Letters(), rank=4), SVC()), words, y).mean() > 0.7


@pytest.mark.parametrize("make", [KernelSVC, KernelRidge, RepresenterEstimator, KernelMeanClassifier])
def test_matrix_is_cut_by_rows_and_columns_in_cross_validation(make):
    X, y = blobs(1, n=40, apart=1.0)
    by_matrix = cross_val_predict(make("precomputed"), Bump()(X), y)
    np.testing.assert_allclose(by_matrix, cross_val_predict(make(Bump()), X, y), atol=1e-9)


CLASSIFIERS = [KernelSVC, KernelNuSVC, KernelMeanClassifier, OnlineKernelClassifier, LinearProgramSVC]
SUPERVISED = [*CLASSIFIERS, KernelSVR, KernelRidge, RepresenterEstimator]
ALL = [*SUPERVISED, KernelOneClass, ParzenWindow, KernelPCA, IncompleteCholesky]


@pytest.mark.parametrize("make", SUPERVISED)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(4), [0, 1, 0], "X has 4 objects, but y has 3 values"),
        (np.eye(4), [0, 1, 0, np.nan], "NaN"),
        (np.eye(4), None, "requires y to be passed"),
        (np.eye(4) * np.nan, [0, 1, 0, 1], "NaN"),
        ("abcd", [0, 1, 0, 1], "X must be a collection of objects"),
        (7, [0], "X must be a collection of objects"),
    ],
)
def test_wrong_data_is_named(make, X, y, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_one_class_alone_is_refused(make):
    with pytest.raises(ValueError, match="at least 2 classes"):
        make().fit(np.eye(3), [1, 1, 1])


@pytest.mark.parametrize("make", ALL)
def test_wrong_kernels_are_named(make):
    X, y = blobs(0, n=10)
    for kernel in ("rbf", 3):
        with pytest.raises(ValueError, match="kernel must be a Kernel"):
            make(kernel).fit(X, y)


@pytest.mark.parametrize("make", [KernelOneClass, KernelRidge, OnlineKernelClassifier, IncompleteCholesky])
def test_methods_with_an_origin_refuse_kernels_without_one(make):
    X, y = blobs(0, n=10)
    with pytest.raises(ValueError, match=f"{make.__name__} needs a positive definite kernel"):
        make(Minus()).fit(X, y)


@pytest.mark.parametrize("make", [m for m in ALL if m is not ParzenWindow] + [ParzenWindow])
def test_matrices_must_be_square_symmetric_and_of_the_right_width(make):
    X, y = blobs(0, n=10)
    K = Bump()(X)
    with pytest.raises(ValueError, match="must be a square matrix in fit"):
        make("precomputed").fit(K[:, :5], y)
    crooked = K.copy()
    crooked[2, 5] += 1.0
    with pytest.raises(ValueError, match=r"must be symmetric in fit, but X\[2, 5\]"):
        make("precomputed").fit(crooked, y)
    model = make("precomputed").fit(K, y)
    use = next(getattr(model, name) for name in ("predict", "score_samples", "transform") if hasattr(model, name))
    assert len(use(K[:3])) == 3
    with pytest.raises(ValueError, match="features"):
        use(K[:, :4])


@pytest.mark.parametrize("make", ALL)
def test_use_before_training_is_an_error(make):
    model = make()
    use = next(getattr(model, name) for name in ("predict", "score_samples", "transform") if hasattr(model, name))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        use(np.eye(3))


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0, 2.0], "expected"), ([-1.0, 1, 1, 1], "Negative"), ([0.0, 0, 0, 0], "zero"), (np.ones((4, 1)), "1D array")],
)
def test_wrong_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        KernelSVC().fit(np.eye(4), [0, 1, 0, 1], sample_weight=weights)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelSVC(C=0.0), "C must be"),
        (KernelSVC(C=float("nan")), "C must be"),
        (KernelSVC(tol=-1.0), "tol must be"),
        (KernelSVC(max_iter=0), "max_iter must be"),
        (KernelSVC(n_jobs=0), "n_jobs must be"),
        (KernelNuSVC(nu=0.0), "nu must be"),
        (KernelOneClass(nu=1.5), "nu must be"),
        (KernelSVR(epsilon=-0.1), "epsilon must be"),
        (KernelRidge(alpha=-1.0), "alpha must be"),
        (KernelPCA(n_components=0), "n_components must be"),
        (IncompleteCholesky(rank=0), "rank must be"),
        (IncompleteCholesky(tol=1.0), "tol must be"),
    ],
)
def test_wrong_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(4), [0, 1, 0, 1])


def test_tables_may_gain_columns_where_the_kernel_picks_its_own():
    pd = pytest.importorskip("pandas")
    X, y = blobs(2, n=20)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y})
    model = KernelSVC(Linear().on(["a", "b"])).fit(table, y)
    expected = KernelSVC(Linear()).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(table.drop(columns="label")), expected)
    whole = KernelSVC(Linear()).fit(table[["a", "b"]], y)
    assert whole.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        whole.predict(table)


@pytest.mark.skipif(importlib.util.find_spec("mercer.kernels.rkhs") is None, reason="RKHSFunction is not there yet")
@pytest.mark.parametrize("make", [m for m in ALL if m not in (LinearProgramSVC, IncompleteCholesky)])
def test_fitted_expansion_is_a_function_of_the_space(make):
    X, y = blobs(3, n=20, apart=1.0)
    model = make(Bump()).fit(X, y)
    function = model.as_function()
    first = function[0] if isinstance(function, list) else function
    coef = model.dual_coef_ if len(model.dual_coef_) != 1 else model.dual_coef_[0]
    coef = coef if coef.ndim == 1 else coef[:, 0]
    np.testing.assert_allclose(first(X), Bump()(X, model.support_objects_) @ coef, atol=1e-10)
    with pytest.raises(ValueError, match="precomputed"):
        make("precomputed").fit(Bump()(X), y).as_function()


@pytest.mark.parametrize("make", ALL)
def test_a_failed_fit_leaves_the_old_model(make):
    X, y = blobs(4, n=30, apart=1.0)
    model = make(Bump()).fit(X, y)
    use = next(name for name in ("predict", "score_samples", "transform") if hasattr(model, name))
    before = getattr(model, use)(X)
    wide = np.hstack([X, X])
    broken = wide.copy()
    broken[3, 1] = np.nan
    targets = y if make in CLASSIFIERS else X[:, 0]
    for bad_X, bad_y in (
        (broken, targets),
        (wide, targets[:-1]),
        (wide, np.where(np.arange(30) == 2, np.nan, 1.0 * y)),
    ):
        try:
            model.fit(bad_X, bad_y)
        except ValueError:
            np.testing.assert_array_equal(getattr(model, use)(X), before)
        else:
            assert make not in SUPERVISED  # y is ignored
            model.fit(X, y)
