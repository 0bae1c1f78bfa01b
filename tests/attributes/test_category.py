"""Attributes of classes: codes that are known by other names, the error bound, tables that people give."""

import warnings

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC

from mercer.attributes import CategoryAttributes, attribute_report, attribute_table

pd = pytest.importorskip("pandas")


def classes_of_rows(M=6, per_class=15, d=8, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(M), per_class)
    return rng.normal(size=(M, d))[y] * 2 + noise * rng.normal(size=(len(y), d)), np.array(list("abcdefghijkl"))[y]


@pytest.mark.parametrize("decode", ["euclidean", "cosine"])
def test_one_versus_all_is_the_largest_score(decode):
    X, y = classes_of_rows()
    model = CategoryAttributes("one-vs-all", decode=decode).fit(X, y)
    assert (model.predict(X) == model.classes_[model.transform(X).argmax(axis=1)]).all()


def test_one_versus_all_is_that_of_scikit_learn():
    X, y = classes_of_rows(noise=2.5)
    ours = CategoryAttributes("one-vs-all", C=0.1, tol=1e-10).fit(X, y)
    svc = LinearSVC(C=0.1, tol=1e-10, max_iter=100_000, intercept_scaling=1e3, random_state=0)
    peer = OneVsRestClassifier(svc).fit(X, y)
    assert np.abs(ours.transform(X) - peer.decision_function(X)).max() < 1e-2


def test_signs_are_decoded_by_hamming_distance():
    X, y = classes_of_rows()
    A = attribute_table("ecoc", 6, 15, 0)
    model = CategoryAttributes(A, decode="hamming").fit(X, y)
    wrong = (np.sign(model.transform(X))[:, None] != A).sum(axis=2)
    assert (model.predict(X) == model.classes_[wrong.argmin(axis=1)]).all()


def test_the_error_is_below_its_bound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        M, l, n = rng.integers(2, 8), rng.integers(1, 10), 20
        A, y = rng.normal(size=(M, l)), rng.integers(0, M, n)
        F = A[y] + rng.exponential(0.5) * rng.normal(size=(n, l))
        report = attribute_report(A, F, y)
        assert report.error <= report.error_bound + 1e-12


def test_the_report_is_that_of_the_formulas():
    X, y = classes_of_rows()
    model = CategoryAttributes(n_attributes=9).fit(X, y)
    report = attribute_report(model, X, y)
    A, F = model.attributes_, model.transform(X)
    distances = [np.linalg.norm(A[i] - A[j]) for i in range(6) for j in range(i)]
    truth = np.searchsorted(model.classes_, y)
    assert report.separation == pytest.approx(min(distances))
    assert report.average_separation == pytest.approx(np.mean(distances))
    assert report.redundancy == pytest.approx(np.linalg.norm(A.T @ A - np.eye(9)) ** 2 / 9)
    assert report.encoding_error == pytest.approx(np.linalg.norm(A[truth] - F, axis=1).mean())
    assert report.classes.tolist() == list("abcdef")
    assert "smallest separation" in repr(report)
    assert "<svg" in report._repr_html_()


def test_a_table_in_another_order_is_the_same_model():
    X, y = classes_of_rows()
    A = attribute_table("ecoc", 6, 10, 0) * np.random.default_rng(0).uniform(0.2, 1, (6, 10))
    expected = CategoryAttributes(A).fit(X, y).transform(X)
    order = [3, 1, 5, 0, 2, 4]
    names = np.array(list("abcdef"))[order]
    assert np.allclose(CategoryAttributes(A[order], classes=names).fit(X, y).transform(X), expected)
    assert np.allclose(CategoryAttributes(pd.DataFrame(A[order], index=names)).fit(X, y).transform(X), expected)


def test_zeros_and_ones_are_signs():
    X, y = classes_of_rows()
    A = attribute_table("ecoc", 6, 12, 0)
    zeros = CategoryAttributes((A > 0).astype(int)).fit(X, y)
    assert (zeros.attributes_ == A).all()
    assert np.allclose(zeros.transform(X), CategoryAttributes(A).fit(X, y).transform(X))


def test_designed_attributes_beat_random_ones_for_known_classes():
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        prototypes = rng.normal(size=(40, 12)) @ rng.normal(size=(12, 60)) / 4
        y = np.repeat(np.arange(40), 40)
        X = prototypes[y] + 1.5 * rng.normal(size=(1600, 60))
        train = np.arange(1600) % 2 == 0
        accuracy = [
            CategoryAttributes(A, 85, random_state=seed).fit(X[train], y[train]).score(X[~train], y[~train])
            for A in ("designed", "random")
        ]
        gains.append(accuracy[0] - accuracy[1])
    assert np.mean(gains) >= 0.03


def test_attributes_of_known_classes_help_where_new_ones_have_few_rows():
    """Ten classes that were not in training, two rows each: attributes as features beside the features themselves."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        prototypes = rng.normal(size=(50, 12)) @ rng.normal(size=(12, 60)) / 4
        y = np.repeat(np.arange(50), 32)
        X = prototypes[y] + 1.5 * rng.normal(size=(len(y), 60))
        known = y < 40
        model = CategoryAttributes(n_attributes=60, C=0.01).fit(X[known], y[known])
        rest, labels = X[~known], y[~known]
        few = np.arange(len(labels)) % 32 < 2

        def score(Z, few=few, labels=labels):
            return NearestCentroid().fit(Z[few], labels[few]).score(Z[~few], labels[~few])

        gains.append(score(model.transform(rest)) - score(rest))
    assert np.mean(gains) > 0.0


def test_two_classes_are_a_sign():
    X, y = classes_of_rows(2)
    model = CategoryAttributes().fit(X, y)
    assert model.attributes_.shape == (2, 1)
    assert model.decision_function(X).shape == (30,)
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "b")).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"A": np.ones((5, 3))}, "row for each of the 6 classes"),
        ({"A": np.full((6, 3), np.nan)}, "NaN"),
        ({"A": np.ones((7, 3)), "classes": list("abcdefg")}, "class 'g' of the table has no row in y"),
        ({"A": np.ones((5, 3)), "classes": list("abcde")}, "class 'f' of y is not among"),
        ({"A": np.ones((6, 3)), "classes": list("abcdee")}, "twice"),
        ({"A": "manual"}, "A must be"),
        ({"classes": list("abcdef")}, "classes names the rows of a given table"),
        ({"n_attributes": 500, "sparsify": 0.0}, "different attributes exist"),
        ({"A": "one-vs-all", "n_attributes": 3}, "one-vs-all has an attribute for each"),
        ({"decode": "loss"}, "decode"),
        ({"C": -1.0}, "C"),
    ],
)
def test_wrong_tables_are_named(options, message):
    X, y = classes_of_rows()
    with pytest.raises(ValueError, match=message):
        CategoryAttributes(**options).fit(X, y)


def test_attributes_that_are_always_or_never_on_are_named():
    X, y = classes_of_rows()
    A = np.random.default_rng(0).uniform(-1, 1, (6, 4))
    A[:, 2] = 1.0
    with pytest.warns(UserWarning, match="attribute 2 has the same sign"):
        model = CategoryAttributes(A).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    A[0] = A[1]
    with pytest.warns(UserWarning, match="'a' and 'b' have the same attributes"):
        CategoryAttributes(A[:, [0, 1, 3]]).fit(X, y)


def test_constant_features_do_not_matter():
    X, y = classes_of_rows()
    model = CategoryAttributes(n_attributes=9).fit(X, y)
    more = CategoryAttributes(n_attributes=9).fit(np.c_[X, np.full(len(X), 7.0)], y)
    assert np.allclose(model.transform(X), more.transform(np.c_[X, np.full(len(X), 7.0)]), atol=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (None, [0, 1, 7], "places 0 to 2"),
        ([[1.0, 2, 3]], None, "together"),
        ([[1.0, 2, 3]], [0], "attributes and A"),
        ([[1.0, np.nan]], [0], "NaN"),
    ],
)
def test_wrong_rows_of_a_report_are_named(X, y, message):
    X = [[1.0, 2.0]] * 3 if X is None else X
    with pytest.raises(ValueError, match=message):
        attribute_report(np.array([[1.0, 0], [0, 1], [1, 1]]), X, y)


def test_a_code_too_short_for_its_classes_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="too few to tell"):
            attribute_table("ecoc", 20, 2, 0)
