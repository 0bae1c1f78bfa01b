"""One linear machine for each label: optima, C and thresholds from held-out rows, constant labels, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from mercer.exceptions import ConvergenceWarning
from mercer.multilabel import SeparateSVM


def task(n=120, d=8, T=11, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    Y = (X @ rng.normal(size=(d, T)) + 0.5 * rng.normal(size=(n, T)) > np.linspace(0.5, 1.5, T)).astype(int)
    return X, Y


def loss(X, y, w, b, C):
    return 0.5 * w @ w + C * (np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w + b)) ** 2).sum()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_each_label_has_the_machine_that_it_would_have_alone(kind):
    X, Y = task()
    model = SeparateSVM(0.3, threshold=None, tol=1e-9).fit(kind(X), Y)
    for t in range(Y.shape[1]):
        # A constant feature of 1000 stands for an offset that is not regularised.
        alone = LinearSVC(C=0.3, intercept_scaling=1000.0, tol=1e-9, max_iter=10**5, dual=False).fit(X, Y[:, t])
        best = loss(X, Y[:, t], alone.coef_[0], alone.intercept_[0], 0.3)
        assert loss(X, Y[:, t], model.coef_[t], model.intercept_[t], 0.3) == pytest.approx(best, rel=1e-5)
    assert (model.predict(kind(X)) == (X @ model.coef_.T + model.intercept_ > 0)).all()


def test_sparse_rows_are_the_same_as_dense_ones():
    X, Y = task()
    dense, sparse = SeparateSVM(tol=1e-8).fit(X, Y), SeparateSVM(tol=1e-8).fit(sp.csr_matrix(X), Y)
    assert dense.C_ == sparse.C_
    assert np.allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_matrix(X)), atol=1e-3)


def test_c_follows_the_unit_of_the_rows_and_the_held_out_scores():
    X, Y = task(300)
    model = SeparateSVM().fit(X, Y)
    mean = (X**2).sum(axis=1).mean()
    assert np.isclose(model.C_ * mean, [0.1, 1.0, 10.0]).any()
    scaled = SeparateSVM().fit(100 * X, Y)
    assert pytest.approx(model.C_) == scaled.C_ * 100**2
    assert (scaled.predict(100 * X) == model.predict(X)).mean() > 0.999
    assert pytest.approx(1.0 / mean) == SeparateSVM(threshold=None).fit(X, Y).C_
    # Labels that do not depend on X: the more C, the more is learnt by heart.
    noise = (np.random.default_rng(1).random((300, 3)) < 0.5).astype(int)
    wide = np.random.default_rng(2).normal(size=(300, 200))
    assert SeparateSVM(measure="hamming", decode="direct").fit(wide, noise).C_ * 200 < 5


def test_thresholds_help_rare_labels():
    X, Y = task(600, 20)
    Y = Y * (np.random.default_rng(3).random(Y.shape) < 0.3)  # rarer, and noisy: few scores are positive
    auto, plain = SeparateSVM(), SeparateSVM(threshold=None)
    assert (
        auto.fit(X[:400], Y[:400]).score(X[400:], Y[400:]) > plain.fit(X[:400], Y[:400]).score(X[400:], Y[400:]) + 0.1
    )


def test_labels_that_no_row_or_every_row_has_are_constant():
    X, Y = task()
    Y[:, 0], Y[:, 1] = 0, 1
    for threshold in ("auto", "per-label", None):
        given = SeparateSVM(threshold=threshold).fit(sp.csr_matrix(X), Y).predict(sp.csr_matrix(X))
        assert not given[:, 0].any()
        assert given[:, 1].all()


def test_label_sets_come_back_as_they_came_in_and_the_best_labels_are_given():
    X = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.1], [1.0, 1.0], [0.9, 1.1]] * 4)
    sets = [["sky"], ["sky"], ["sea"], ["sea"], ["sea", "sky"], ["sea", "sky"]] * 4
    model = SeparateSVM(10.0).fit(X, sets)
    assert model.predict(X[:6]) == [sorted(labels) for labels in sets[:6]]
    assert model.predict(X[:1], n_labels=1) == [["sky"]]
    assert SeparateSVM(10.0, threshold=None).fit(X, sets).predict(X[2:3], n_labels=1) == [["sea"]]


def test_without_thresholds_there_are_no_probabilities():
    X, Y = task()
    model = SeparateSVM(threshold=None).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "C"),
        ({"C": "most"}, "C"),
        ({"decode": "neighbours"}, "decode"),
        ({"decode": "seen", "threshold": None}, "needs probabilities"),
        ({"threshold": 2.0}, "threshold"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        SeparateSVM(**params).fit(*task())


def test_steps_that_do_not_suffice_are_told():
    X, Y = task()
    with pytest.warns(ConvergenceWarning, match="Newton steps"):
        SeparateSVM(1e4, tol=1e-12, max_iter=1).fit(X, Y)
