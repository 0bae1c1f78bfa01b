"""The median of correlations: half of the features, all informative ones, and no leak across folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import mercer
from mercer.maps import CorrelationSelector
from reference.contract import contract


@contract([CorrelationSelector()])
def test_follows_the_contract_of_scikit_learn(checks):
    checks()


@pytest.mark.parametrize("n_features", [1, 2, 7, 100, 101])
def test_keeps_half_of_the_features(n_features):
    rng = np.random.default_rng(n_features)
    X, y = rng.normal(size=(50, n_features)), rng.integers(2, size=50)
    assert abs(CorrelationSelector().fit(X, y).get_support().sum() - n_features / 2) <= 1


def test_keeps_all_informative_features():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = rng.normal(size=(200, 1000))
    X[:, :10] += y[:, None]
    assert CorrelationSelector().fit(X, y).get_support()[:10].all()


def test_selection_inside_folds_does_not_leak():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(100, 2000)), np.arange(100) % 2
    honest = cross_val_score(make_pipeline(CorrelationSelector(), LinearSVC()), X, y, cv=10).mean()
    leaked = cross_val_score(LinearSVC(), CorrelationSelector().fit_transform(X, y), y, cv=10).mean()
    assert abs(honest - 0.5) < 0.12
    assert leaked > 0.7


@pytest.mark.parametrize("target", ["binary", "multiclass", "continuous"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_scores_are_correlations(target, form):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((60, 12)) < 0.5, 0.0, rng.normal(3, 2, size=(60, 12)))
    y = rng.normal(size=60) if target == "continuous" else rng.integers(2 if target == "binary" else 4, size=60)
    targets = [y] if target == "continuous" else [y == c for c in np.unique(y)]
    expected = [max(abs(np.corrcoef(column, t)[0, 1]) for t in targets) for column in X.T]
    selector = CorrelationSelector().fit(form(X), y)
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-12)
    kept = selector.transform(form(X))
    assert sparse.issparse(kept) == sparse.issparse(form(X))
    assert kept.shape[1] == (np.array(expected) > np.median(expected)).sum()


def test_constant_columns_are_never_kept_and_do_not_move_the_median():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 20)), rng.integers(2, size=40)
    wide = sparse.hstack([sparse.csr_matrix((40, 5000)), X, np.full((40, 3), 0.1)], format="csr")
    support = CorrelationSelector().fit(wide, y).get_support()
    assert support.sum() == 10
    assert support[5000:5020].tolist() == CorrelationSelector().fit(X, y).get_support().tolist()
    assert not CorrelationSelector().fit(np.full((4, 3), 0.1), [0, 1, 0, 1]).get_support().any()


def test_huge_sparse_matrices_are_not_made_dense():
    y = np.arange(50) % 2
    places = np.random.default_rng(0).integers(1, 2**20, size=(50, 20))
    places[y == 1, 0] = 0  # 50 × 2^20 numbers would take 0.4 GB
    X = sparse.csr_matrix((np.ones(1000), (np.repeat(np.arange(50), 20), places.ravel())), shape=(50, 2**20))
    selector = CorrelationSelector().fit(X, y)
    assert selector.get_support()[0]
    assert sparse.issparse(selector.transform(X))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((3, 2)), [[0, 1], [1, 0], [1, 1]], "1d array"),
        (np.ones((3, 2)), [0, 1], "inconsistent numbers of samples"),
        (np.array([[np.nan], [1.0]]), [0, 1], "NaN"),
    ],
)
def test_bad_input_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        CorrelationSelector().fit(X, y)


def test_a_model_file_keeps_the_choice(tmp_path):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 9)), rng.integers(3, size=30)
    selector = CorrelationSelector().fit(X, y)
    mercer.save(selector, tmp_path / "selector.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "selector.mercer").transform(X), selector.transform(X))
    meta, arrays = selector.to_state()
    for wrong in (arrays["scores_"] * np.nan, arrays["scores_"][1:]):
        with pytest.raises(ValueError, match="scores_"):
            CorrelationSelector.from_state(meta, {**arrays, "scores_": wrong})
