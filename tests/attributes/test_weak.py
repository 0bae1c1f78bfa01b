"""Weak attributes: what each kind gives, scores of rows that machines did not see, what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import mercer
from mercer.attributes import WeakAttributes
from mercer.learning.weighted_machines import fit_machines


def task(n=80, d=6, T=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, :T] + 0.5 * rng.normal(size=(n, T)) > 0).astype(int)


def test_columns_are_machines_splits_and_distances():
    X, Y = task()
    weak = WeakAttributes(n_splits=7, n_references=9, random_state=0).fit(X, Y)
    Z = weak.transform(X) * weak.scale_ + weak.mean_
    assert Z.shape == (80, 4 + 7 + 9)
    own = fit_machines(X, np.where(Y > 0, 1.0, -1.0))
    assert Z[:, :4] == pytest.approx(X @ own.coef.T + own.intercept, abs=1e-2)
    assert Z[:, :11] == pytest.approx(X @ weak.coef_.T + weak.intercept_)
    assert Z[:, 11:] == pytest.approx(np.linalg.norm(X[:, None] - weak.references_, axis=2), abs=1e-6)
    assert all((weak.references_[k] == X).all(axis=1).any() for k in range(9))
    assert weak.get_feature_names_out().shape == (20,)


def test_training_rows_are_scored_by_machines_that_did_not_see_them():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 50)), rng.integers(0, 2, (60, 2))  # nothing to learn, much to overfit
    weak = WeakAttributes(n_splits=0, n_references=0, C=10.0, random_state=0)
    out = weak.fit_transform(X, Y)
    seen = weak.transform(X)
    sign = 2 * Y - 1
    assert (np.sign(seen) == sign).mean() > 0.95
    assert (np.sign(out) == sign).mean() < 0.75
    whole = WeakAttributes(n_splits=0, n_references=0, C=10.0, folds=1)
    assert np.allclose(whole.fit_transform(X, Y), whole.transform(X))


def test_hidden_variables_come_last_and_are_bounded():
    X, Y = task(300)
    weak = WeakAttributes(n_splits=20, n_references=10, latent=True, random_state=0).fit(X, Y)
    assert weak.tree_.n_hidden_ > 0
    Z = weak.transform(X)
    assert Z.shape == (300, 34 + weak.tree_.n_hidden_)
    assert np.abs(Z[:, 34:]).max() <= 1.0


def test_models_of_your_own_are_asked():
    X, Y = task()
    own = LogisticRegression().fit(X, Y[:, 0])
    weak = WeakAttributes([own], n_splits=0, n_references=0).fit(X, Y)
    assert (weak.transform(X) * weak.scale_ + weak.mean_)[:, -1] == pytest.approx(own.decision_function(X))


@pytest.mark.parametrize("form", ["classes", "sets", "sparse"])
def test_labels_come_in_any_form(form):
    X, Y = task()
    given = {
        "classes": np.array(list("abcd"))[Y.argmax(axis=1)],
        "sets": [{"abcd"[t] for t in np.flatnonzero(row)} for row in Y],
        "sparse": sp.csr_matrix(Y),
    }[form]
    weak = WeakAttributes(n_splits=3, n_references=2, random_state=0).fit(X, given)
    assert weak.transform(X).shape == (80, 9)
    assert list(weak.classes_) == (list("abcd") if form != "sparse" else [0, 1, 2, 3])


def test_sparse_rows_give_the_same():
    X, Y = task()
    X = X * (np.abs(X) > 0.5)
    dense = WeakAttributes(n_splits=3, n_references=4, random_state=0, tol=1e-8).fit(X, Y)
    sparse = WeakAttributes(n_splits=3, n_references=4, random_state=0, tol=1e-8).fit(sp.csr_matrix(X), Y)
    assert sparse.transform(sp.csr_matrix(X)) == pytest.approx(dense.transform(X), abs=1e-2)


def test_a_saved_model_transforms_the_same(tmp_path):
    X, Y = task(200)
    for options in ({}, {"latent": True}):
        weak = WeakAttributes(n_splits=6, n_references=5, random_state=0, **options).fit(X, Y)
        mercer.save(weak, tmp_path / "weak.mercer")
        assert (mercer.load(tmp_path / "weak.mercer").transform(X) == weak.transform(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifiers": False, "n_splits": 0, "n_references": 0}, "no weak attribute"),
        ({"classifiers": "all"}, "classifiers must be"),
        ({"classifiers": [3]}, "gives no scores"),
        ({"n_splits": -1}, "n_splits"),
        ({"folds": 0}, "folds"),
        ({"loss": "log"}, "loss"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    X, Y = task()
    with pytest.raises(ValueError, match=message):
        WeakAttributes(**options).fit(X, Y)


def test_wrong_rows_are_named():
    X, Y = task()
    wrong = ((Y[:10], "one length"), (Y + 1, "0 and 1"), (np.arange(70), "one length"), (Y[:, :1], "two labels"))
    for given, message in wrong:
        with pytest.raises(ValueError, match=message):
            WeakAttributes().fit(X, given)
    with pytest.raises(ValueError, match="NaN"):
        WeakAttributes().fit(np.where(X > 1, np.nan, X), Y)


def test_a_failed_fit_transform_leaves_the_model():
    X, Y = task()
    weak = WeakAttributes(n_splits=3, n_references=2, random_state=0).fit(X, Y)
    before = weak.transform(X)
    with pytest.raises(ValueError, match="NaN"):
        weak.fit_transform(np.full((80, 6), np.nan), Y)
    assert (weak.transform(X) == before).all()
