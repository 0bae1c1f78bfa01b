"""Designed attributes: the greedy search against eigenvectors and random search, proximity, what is refused."""

import numpy as np
import pytest

from mercer.attributes import attribute_report, attribute_table, design_attributes, visual_proximity
from mercer.attributes.design import _Leading, objective, proximity_of_distances


def proximity(M, seed=0, k=10, d=12):
    points = np.random.default_rng(seed).normal(size=(M, d))
    return proximity_of_distances(np.linalg.norm(points[:, None] - points, axis=2), k, 0.5)


def matrix(S, lam):
    M = len(S)
    return M * np.eye(M) - np.ones((M, M)) - lam * (np.diag(S.sum(axis=1)) - S)


def test_the_objective_is_the_sum_over_pairs():
    S, rng = proximity(8), np.random.default_rng(1)
    A = rng.normal(size=(8, 5))
    D = ((A[:, None] - A) ** 2).sum(axis=2)
    assert objective(A, S, 3.0) == pytest.approx((D.sum() - 3.0 * (S * D).sum()) / 2)


def test_the_adaptive_objective_is_that_of_the_new_classes():
    S, rng = proximity(8), np.random.default_rng(1)
    A, similar = rng.normal(size=(8, 5)), rng.uniform(size=(3, 8))
    D, new = ((A[:, None] - A) ** 2).sum(axis=2), similar @ A
    apart = ((new[:, None] - new) ** 2).sum()
    assert objective(A, S, 3.0, similar) == pytest.approx((apart - 3.0 * (S * D).sum()) / 2)


def test_the_first_attribute_is_the_leading_eigenvector():
    S = proximity(20)
    A = design_attributes(S, 1, sparsify=0.0)
    vectors = np.linalg.eigh(matrix(S, 3.0))[1]
    assert abs(A[:, 0] @ vectors[:, -1]) == pytest.approx(1.0, abs=1e-8)


def test_columns_have_unit_length_and_are_distinct_and_deterministic():
    S = proximity(40)
    A = design_attributes(S, 200)
    assert np.allclose(np.linalg.norm(A, axis=0), 1.0)
    assert len(np.unique(A.round(7), axis=1).T) == 200
    assert (design_attributes(S, 200) == A).all()
    assert (np.take_along_axis(A, np.abs(A).argmax(axis=0)[None], 0) > 0).all()


def test_separation_and_redundancy_are_those_of_the_published_table():
    designed = attribute_report(design_attributes(proximity(40), 85), normalize="rows")
    random = attribute_report(attribute_table("random", 40, 85, 0), normalize="rows")
    assert designed.separation == pytest.approx(1.37, abs=0.06)
    assert designed.average_separation == pytest.approx(1.42, abs=0.03)
    assert designed.redundancy == pytest.approx(0.55, abs=0.04)
    assert random.separation == pytest.approx(1.15, abs=0.08)
    assert random.average_separation == pytest.approx(1.41, abs=0.02)
    assert designed.redundancy < random.redundancy


def test_lam_lowers_separation_and_eta_lowers_redundancy():
    S = proximity(40)
    separation = [
        attribute_report(design_attributes(S, 60, proximity_weight=lam)).average_separation for lam in (1.0, 12.0)
    ]
    redundancy = [attribute_report(design_attributes(S, 60, redundancy_weight=eta)).redundancy for eta in (4.0, 15.0)]
    assert separation[0] > separation[1]
    assert redundancy[0] > redundancy[1]


def test_the_greedy_design_beats_random_search_and_is_below_strict_eigenvectors():
    S, rng = proximity(15), np.random.default_rng(2)
    A = design_attributes(S, 10, redundancy_weight=4.0)

    def penalised(table):
        return objective(table, S) - 2.0 * ((table.T @ table - np.eye(10)) ** 2).sum()

    draws = rng.normal(size=(2000, 15, 10))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    assert penalised(A) > max(penalised(table) for table in draws)
    top = np.linalg.eigvalsh(matrix(S, 3.0))[-1]
    assert objective(A, S) <= 10 * top + 1e-9
    assert objective(A, S) > objective(np.linalg.eigh(matrix(S, 3.0))[1][:, -10:], S)  # strict orthogonality is poorer


def test_many_classes_give_the_same_attributes_by_the_kept_eigenvectors(monkeypatch):
    S = proximity(60, k=8)
    expected = design_attributes(S, 12)
    monkeypatch.setattr("mercer.attributes.design._DIRECT", 10)
    found = design_attributes(S, 12)
    assert np.abs(expected - found).max() < 1e-4


def test_kept_eigenvectors_follow_a_deflated_matrix(monkeypatch):
    monkeypatch.setattr("mercer.attributes.design._DIRECT", 10)
    rng = np.random.default_rng(0)
    R = rng.normal(size=(50, 50))
    R = R + R.T
    leading = _Leading(R.copy())
    for _ in range(30):
        values = np.linalg.eigvalsh(leading.R)
        a = leading.vector()
        assert a @ leading.R @ a == pytest.approx(values[-1], abs=1e-8 * np.abs(values).max())
        leading.deflate(a, 3.0)


def test_a_disconnected_proximity_is_designed_for():
    S = np.zeros((6, 6))
    S[0, 1] = S[1, 0] = S[2, 3] = S[3, 2] = 1.0
    A = design_attributes(S, 4)
    assert np.isfinite(A).all()
    assert A.shape == (6, 4)


def test_every_attribute_has_two_sides_though_a_class_is_near_to_none():
    S = np.pad(proximity(39), (0, 1))
    A = design_attributes(S, 85)
    assert (A.min(axis=0) < 0).all()
    assert (A.max(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.array([[0, 1], [0, 0.0]]), r"symmetric.*S\[0, 1\] = 1"),
        (np.array([[0, -1], [-1, 0.0]]), "must not be negative"),
        (np.array([[0, np.nan], [np.nan, 0.0]]), "NaN"),
        (np.zeros((2, 3)), "square"),
        (np.zeros((1, 1)), "two classes"),
        ([["a", "b"], ["c", "d"]], "matrix of numbers"),
    ],
)
def test_what_is_no_proximity_is_refused(S, message):
    with pytest.raises(ValueError, match=message):
        design_attributes(S, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_attributes": 0}, "n_attributes"),
        ({"n_attributes": 40, "sparsify": 0.0}, r"only \d+ different attributes.*sparsify=0.1"),
        ({"n_attributes": 4, "sparsify": 1.0}, "sparsify must be"),
        ({"n_attributes": 4, "proximity_weight": -1.0}, "proximity_weight"),
        ({"n_attributes": 4, "redundancy_weight": np.nan}, "redundancy_weight"),
        ({"n_attributes": 4, "adaptive": np.ones((2, 9))}, "column for each of the 10 known classes"),
        ({"n_attributes": 4, "adaptive": np.zeros((2, 10))}, "similar to no known class"),
        ({"n_attributes": 4, "adaptive": -np.ones((2, 10))}, "not be negative"),
    ],
)
def test_wrong_options_of_a_design_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        design_attributes(proximity(10), **options)


# ------------------------------------------------------------------------------------------------ proximity


@pytest.mark.parametrize("metric", ["centers", "svm-margin"])
def test_proximity_is_symmetric_and_of_mutual_neighbours(metric):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 6)
    X = rng.normal(size=(8, 5))[y] * 3 + rng.normal(size=(48, 5))
    S = visual_proximity(X, y, metric=metric, n_neighbors=3)
    assert (S == S.T).all()
    assert (np.diag(S) == 0).all()
    assert ((S >= 0) & (S <= 1)).all()
    assert (S > 0).sum(axis=1).max() <= 3


def test_proximity_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 4)
    X = rng.normal(size=(20, 3)) + y[:, None]
    means = np.stack([X[y == k].mean(axis=0) for k in range(5)])
    D = np.linalg.norm(means[:, None] - means, axis=2)
    sigma = 0.5 * D[np.triu_indices(5, 1)].mean()
    expected = np.exp(-D / sigma)
    np.fill_diagonal(expected, 0.0)
    assert np.allclose(visual_proximity(X, y, n_neighbors=4), expected)


def test_margins_are_those_of_the_machines():
    X = np.array([[0.0, 0], [0, 1], [3, 0], [3, 1], [10, 0], [10, 1]])
    S = visual_proximity(X, [0, 0, 1, 1, 2, 2], metric="svm-margin", n_neighbors=2, C=1e4)
    D = np.array([[0, 3, 10], [3, 0, 7], [10, 7, 0.0]])  # widths of the gaps
    expected = np.exp(-D / (0.5 * 20 / 3)) * (1 - np.eye(3))
    assert np.allclose(S, expected, atol=1e-2)


def test_sparse_rows_have_the_proximity_of_dense_ones():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    y, X = np.arange(30) % 4, rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.4)
    assert np.allclose(visual_proximity(sp.csr_matrix(X), y), visual_proximity(X, y))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [np.nan]], [0, 1], "NaN"),
        ([[0.0], [1.0]], [0, 0], "at least two classes"),
        ([[0.0], [1.0]], [0, 1, 1], "one length"),
        (np.zeros((0, 2)), [], "minimum of 1"),
    ],
)
def test_wrong_rows_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        visual_proximity(X, y)


def test_classes_with_one_mean_are_near_to_none():
    with pytest.warns(UserWarning, match="same mean"):
        S = visual_proximity(np.ones((6, 2)), np.arange(6) % 3)
    assert not S.any()
