"""Rankers reach the optimum of their objective, respect groups, and are better by the measure they learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.svm import LinearSVC

import mercer
from mercer.learning import ConvergenceWarning
from mercer.ranking import Ranker
from mercer.ranking.ranker import fit_thresholds
from mercer.ranking.risks import MEASURES, RankingRisk
from reference import ranking as reference
from reference.contract import contract
from reference.histories import without_seconds

TOL = 1e-6


def make(seed=0, n=30, d=4, grades=3, noise=0.5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    hidden = X @ random.normal(size=d) + noise * random.normal(size=n)
    return X, np.searchsorted(np.quantile(hidden, np.arange(1, grades) / grades), hidden)


def differences(X, y, groups=None):
    groups = np.zeros(len(y)) if groups is None else np.asarray(groups)
    return np.array(
        [X[i] - X[j] for i in range(len(y)) for j in range(len(y)) if groups[i] == groups[j] and y[i] > y[j]]
    )


def objective(model, X, y, groups=None):
    """½‖w‖² + C · loss, by enumeration of the pairs."""
    squared = model.loss == "squared-hinge"
    return 0.5 * model.coef_ @ model.coef_ + model.C * reference.pair_loss(X @ model.coef_, y, groups, squared)[0]


# -------------------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_reach_the_optimum_of_liblinear_on_explicit_differences(loss, C, grouped):
    X, y = make()
    groups = np.arange(30) % 3 if grouped else None
    D = differences(X, y, groups)
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    name = loss.replace("-", "_")
    peer = LinearSVC(C=C, loss=name, fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0).fit(
        D * sign[:, None], sign
    )
    model = Ranker(loss=loss, C=C, tol=TOL, max_iter=5000).fit(X, y, groups)
    hinge = np.maximum(0, 1 - D @ peer.coef_[0])
    expected = 0.5 * peer.coef_[0] @ peer.coef_[0] + C * (hinge**2 if loss == "squared-hinge" else hinge).sum()
    assert objective(model, X, y, groups) == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], atol=0.02)


def test_pairs_reach_the_optimum_of_the_quadratic_program():
    X, y = make(n=10, d=3)
    expected, w = reference.optimum_of_planes([[(np.zeros(3), 0.0), (-d, 1.0)] for d in differences(X, y)], 0.5, 3)
    model = Ranker(C=0.5, tol=TOL).fit(X, y)
    assert objective(model, X, y) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(model.coef_, w, atol=1e-2)


@pytest.mark.parametrize("measure", ["roc-area", "average-precision", "f1"])
@pytest.mark.parametrize("C", [1.0, 20.0])
def test_measures_reach_the_optimum_of_the_enumerated_quadratic_program(measure, C):
    X, y = make(3, n=12, d=3, grades=2, noise=1.0)
    groups = np.arange(12) % 2
    Z = np.hstack([X, np.ones((12, 1))]) if measure == "f1" else X
    parts = [reference.planes(Z[groups == k], y[groups == k], measure) for k in (0, 1)]
    expected, _ = reference.optimum_of_planes(parts, C, Z.shape[1])
    model = Ranker(measure, C=C, tol=TOL, max_iter=5000).fit(X, y, groups)
    w = np.append(model.coef_, model.intercept_) if measure == "f1" else model.coef_
    found = 0.5 * w @ w + C * sum(max(b + a @ w for a, b in part) for part in parts)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_gap_is_certified_and_at_most_the_tolerance(measure):
    X, y = make(n=80, grades=2)
    model = Ranker(measure, C=0.01 if measure == "pairs" else 10.0, tol=1e-4).fit(X, y)
    primal, dual = np.array(model.history_["primal"]), np.array(model.history_["dual"])
    assert model.converged_
    assert model.n_iter_ == len(model.history_["seconds"])
    assert model.history_["gap"][-1] <= 1e-4
    assert dual.max() <= primal.min() * (1 + 1e-9)
    risk = RankingRisk(X, y, measure=measure, intercept=measure == "f1")
    w = np.append(model.coef_, model.intercept_) if measure == "f1" else model.coef_
    value = 0.5 * w @ w + model.C * risk.value(w)
    assert value == pytest.approx(primal.min(), rel=1e-9)
    assert (value - dual.max()) / value <= 1.01e-4


def test_two_solvers_come_to_the_same_optimum():
    X, y = make(n=60)
    one, two = (
        Ranker(loss="squared-hinge", solver=solver, C=0.01, tol=1e-6, max_iter=5000).fit(X, y)
        for solver in ("bmrm", "lbfgs")
    )
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)


def test_too_few_iterations_are_warned_of():
    X, y = make(n=60)
    with pytest.warns(ConvergenceWarning):
        model = Ranker(C=1.0, max_iter=2, tol=1e-9).fit(X, y)
    assert not model.converged_
    assert np.isfinite(model.coef_).all()


# -------------------------------------------------------------------------------------------------- what it learns


def test_scores_follow_the_hidden_order():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6))
    hidden = X @ random.normal(size=6) + 0.1 * random.normal(size=300)
    model = Ranker(C=0.001).fit(X[:200], hidden[:200])
    assert kendalltau(model.predict(X[200:]), hidden[200:]).statistic >= 0.9


def test_users_are_compared_with_themselves_only():
    """Each user has a level of their own that would spoil comparisons between users (conjoint analysis)."""
    random = np.random.default_rng(0)
    users = np.repeat(np.arange(20), 6)
    X = random.normal(size=(120, 3))
    level = random.normal(size=20)[users] * 50
    X[:, 2] = level  # a feature that tells the users apart, and nothing else
    y = X[:, 0] - X[:, 1] + level
    model = Ranker(C=0.1).fit(X, y, groups=users)
    assert abs(model.coef_[2]) < 1e-9
    assert model.score(X, y, groups=users) > 0.97
    shuffled = random.permutation(120)
    again = Ranker(C=0.1).fit(X[shuffled], y[shuffled], groups=np.array([f"user {u}" for u in users])[shuffled])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-2)


@pytest.mark.parametrize("measure", ["pairs", "roc-area", "average-precision"])
def test_a_shift_of_all_features_of_a_group_changes_nothing(measure):
    """Only differences within a group count."""
    X, y = make(n=40, grades=2)
    groups = np.arange(40) % 4
    shift = np.random.default_rng(1).normal(size=(4, 4))[groups]
    C = 0.1 if measure == "pairs" else 10.0
    one = Ranker(measure, C=C, tol=1e-10, max_iter=20000).fit(X, y, groups)
    two = Ranker(measure, C=C, tol=1e-10, max_iter=20000).fit(X + shift, y, groups)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=2e-4)


def rare(seed, lead=0.5, spread=1.0, n=3000):
    """2 % positives with a lead in half of the features; the examples' scale may vary."""
    random = np.random.default_rng(seed)
    y = (np.arange(n) < 0.02 * n).astype(int)
    scale = random.gamma(1.0 / spread, spread, size=(n, 1)) if spread else 1.0
    return random.normal(size=(n, 20)) * scale + lead * y[:, None] * (np.arange(20) < 10), y


def hinge(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(C=1.0, loss="hinge", max_iter=20000, random_state=0).fit(X, y)


def test_a_ranker_trained_for_roc_area_beats_the_hinge_at_two_percent_positives():
    ours, theirs = [], []
    for seed in range(4):
        (X, y), (Z, truth) = rare(seed), rare(100 + seed)
        ours.append(Ranker("roc-area", C=10.0).fit(X, y).score(Z, truth))
        theirs.append(roc_auc_score(truth, hinge(X, y).decision_function(Z)))
    assert np.mean(ours) > np.mean(theirs) + 0.05
    assert (np.array(ours) > theirs).all()


def test_a_ranker_trained_for_average_precision_beats_the_hinge_at_two_percent_positives():
    ours, theirs = [], []
    for seed in range(4):
        (X, y), (Z, truth) = rare(seed), rare(100 + seed)
        ours.append(Ranker("average-precision", C=10.0).fit(X, y).score(Z, truth))
        theirs.append(average_precision_score(truth, hinge(X, y).decision_function(Z)))
    assert np.mean(ours) > np.mean(theirs) + 0.02


def test_a_ranker_trained_for_f1_beats_the_hinge_at_two_percent_positives():
    ours, theirs = [], []
    for seed in range(4):
        (X, y), (Z, truth) = rare(seed, 0.8, 0), rare(100 + seed, 0.8, 0)
        ours.append(Ranker("f1", C=100.0, tol=1e-2).fit(X, y).score(Z, truth))
        theirs.append(f1_score(truth, hinge(X, y).predict(Z)))
    assert np.mean(ours) > np.mean(theirs) + 0.05


def test_grades_are_predicted_by_the_best_thresholds():
    X, y = make(n=200, grades=4, noise=0.3)
    model = Ranker(C=0.01).fit(X, y - 2)
    assert model.thresholds_.shape == (3,)
    assert set(model.predict_grades(X)) <= {-2, -1, 0, 1}
    assert np.abs(model.predict_grades(X) - (y - 2)).mean() < 0.25


@pytest.mark.parametrize("seed", range(10))
def test_thresholds_have_the_least_distance_of_all(seed):
    random = np.random.default_rng(seed)
    s, r = random.integers(0, 8, 12) / 8, random.integers(0, 3, 12)
    a, b = fit_thresholds(s, r, 3)
    assert a <= b

    def distance(cuts):
        return np.abs(np.searchsorted(cuts, s, side="right") - r).sum()

    grid = np.arange(-1, 18) / 16
    assert distance([a, b]) == min(distance([u, v]) for u in grid for v in grid if u <= v)


# -------------------------------------------------------------------------------------------------- the estimator


ONE_WEIGHT = dict.fromkeys(
    (
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "without groups all rows are one example, which has one weight",
)


@contract([Ranker(C=0.01)], expected_failed_checks=lambda model: ONE_WEIGHT)
def test_the_contract_of_scikit_learn_is_kept(checks):
    checks()


@pytest.mark.parametrize("measure", MEASURES)
def test_score_is_the_measure_itself(measure):
    X, y = make(n=60, grades=2, noise=2.0)
    groups = np.arange(60) % 3
    model = Ranker(measure, C=0.01 if measure == "pairs" else 10.0).fit(X, y, groups)
    s = model.decision_function(X)
    by_group = [groups == k for k in range(3)]
    expected = {
        "pairs": lambda: 1 - reference.pairwise_error(y, s, groups),
        "roc-area": lambda: np.mean([roc_auc_score(y[g], s[g]) for g in by_group]),
        "average-precision": lambda: np.mean([average_precision_score(y[g], s[g]) for g in by_group]),
        "f1": lambda: np.mean([f1_score(y[g], model.predict(X)[g]) for g in by_group]),
    }
    assert model.score(X, y, groups) == pytest.approx(expected[measure](), rel=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_dense_and_sparse_features_give_the_same_model(measure):
    X, y = make(n=60, grades=2)
    X[np.abs(X) < 0.5] = 0.0
    model = Ranker(measure, C=1.0, tol=1e-7)
    dense = clone(model).fit(X, y)
    sparse = clone(model).fit(sp.coo_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-5)
    np.testing.assert_allclose(sparse.decision_function(sp.csc_matrix(X)), sparse.decision_function(X), atol=1e-9)


def test_large_sparse_features_give_the_same_model_for_any_number_of_threads():
    X = sp.random(20000, 50, 0.6, format="csr", random_state=0)
    y = (np.asarray(X @ np.arange(50.0)) > 400).astype(int)
    groups = np.arange(20000) % 7
    models = [Ranker("roc-area", C=10.0, n_jobs=jobs).fit(X, y, groups) for jobs in (1, 2, 3)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True)])
def test_f1_predicts_the_labels_it_was_given(labels):
    X, y = make(n=60, grades=2)
    given = np.array(labels)[y]
    model = Ranker("f1", C=100.0).fit(X, given)
    assert model.predict(X).dtype == given.dtype
    assert set(model.predict(X).tolist()) == set(labels)
    assert model.score(X, given) > 0.8
    assert Ranker("f1", fit_intercept=False).fit(X, given).intercept_ == 0.0


@pytest.mark.parametrize("measure", MEASURES)
def test_a_saved_ranker_predicts_the_same(measure, tmp_path):
    X, y = make(n=40, grades=2)
    model = Ranker(measure, C=0.5, random_state=np.random.default_rng(0)).fit(X, y)
    mercer.save(model, tmp_path / "ranker.mercer")
    loaded = mercer.load(tmp_path / "ranker.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.measure == measure
    assert without_seconds(loaded.history_) == without_seconds(model.history_)
    assert (loaded.converged_, loaded.n_iter_) == (model.converged_, model.n_iter_)
    if measure == "pairs":
        np.testing.assert_array_equal(loaded.predict_grades(X), model.predict_grades(X))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("coef", np.zeros(3)),
        ("coef", np.full(4, np.nan)),
        ("classes", np.zeros(1)),
        ("classes", np.array([0.0, np.nan])),
        ("thresholds", np.zeros(5)),
        ("thresholds", np.array([1.0, 0.0])),
        ("thresholds", np.array([1.0, np.nan])),
    ],
)
def test_damaged_states_are_refused(name, array):
    X, y = make()
    meta, arrays = Ranker(C=0.1).fit(X, y).to_state()
    with pytest.raises(ValueError, match=name):
        Ranker.from_state(meta, {**arrays, f"{name}_": array})


# -------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"measure": "ndcg"}, "measure"),
        ({"loss": "log"}, "loss"),
        ({"measure": "f1", "loss": "squared-hinge"}, "hinge"),
        ({"solver": "bcfw"}, "solver"),
        ({"solver": "subgradient"}, "solver"),
        ({"solver": "lbfgs"}, "squared-hinge"),
        ({"C": 0.0}, "C must"),
        ({"C": np.nan}, "C must"),
        ({"max_iter": -1}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_named(params, match):
    X, y = make(grades=2)
    with pytest.raises(ValueError, match=match):
        Ranker(**params).fit(X, y)


NAN = np.array([[1.0, np.nan], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("X", "y", "groups", "match"),
    [
        (NAN, [0, 1], None, "NaN"),
        (sp.csr_matrix(NAN), [0, 1], None, "NaN"),
        (np.zeros((0, 2)), [], None, "0 sample"),
        (np.zeros((2, 0)), [0, 1], None, "0 feature"),
        (np.zeros(3), [0, 1, 2], None, "2D"),
        (np.eye(3), [0, 1], None, "3 rows and y 2"),
        (np.eye(2), [0.0, np.nan], None, "y must not hold NaN"),
        (np.eye(2), ["a", "b"], None, "y must hold numbers"),
        (np.eye(2), [None, 1], None, "y must (hold numbers|not hold NaN)"),
        (np.eye(2), None, None, "y is None"),
        (np.eye(2), [[0, 1], [1, 0]], None, "1d"),
        (np.eye(3), [1, 1, 1], None, "only one grade"),
        (np.eye(3), [1, 1, 2], [0, 0, 1], "one grade in each of the groups"),
        (np.eye(3), [1, 2, 3], [0, 0], "groups must hold one value for each of the 3"),
        (np.eye(3), [1, 2, 3], [], "groups must hold"),
        (np.eye(3), [1, 2, 3], [0.0, np.nan, 1.0], "groups must not hold NaN"),
        (np.eye(3), [1, 2, 3], np.array([0, "a", None], dtype=object), "groups must be values of one kind"),
    ],
)
def test_wrong_data_are_named(X, y, groups, match):
    with pytest.raises(ValueError, match=match):
        Ranker().fit(X, y, groups)


@pytest.mark.parametrize("measure", ["roc-area", "average-precision", "f1"])
@pytest.mark.parametrize("y", [[0, 1, 2], [-2, 0, 1], [-1, 0, 1], [0.5, 1, 0]])
def test_graded_or_negative_relevance_is_refused_where_two_classes_are_needed(measure, y):
    with pytest.raises(ValueError, match="needs two classes"):
        Ranker(measure).fit(np.eye(3), y)


@pytest.mark.parametrize("measure", ["roc-area", "average-precision", "f1"])
def test_one_class_alone_is_refused(measure):
    with pytest.raises(ValueError, match="only one grade"):
        Ranker(measure).fit(np.eye(3), [1, 1, 1])
    model = Ranker(measure).fit(np.eye(3), [1, 0, 0])
    with pytest.raises(ValueError, match="the model knows"):
        model.score(np.eye(3), [0, 1, 2])
    if measure == "roc-area":
        with pytest.raises(ValueError, match="no group"):
            model.score(np.eye(3), [0, 0, 0])


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = make()
    model = Ranker(C=0.1).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.fit(np.zeros((30, 7)), np.ones(30))
    np.testing.assert_array_equal(model.predict(X), before)


def test_predictions_need_a_fitted_model_and_its_features():
    with pytest.raises(NotFittedError):
        Ranker().predict(np.eye(2))
    with pytest.raises(NotFittedError):
        Ranker().to_state()
    X, y = make()
    with pytest.raises(ValueError, match="X has 2 features"):
        Ranker(C=0.1).fit(X, y).predict(np.eye(2))


def test_grades_are_predicted_for_ordinal_scales_only():
    X, y = make(grades=2)
    with pytest.raises(ValueError, match="measure='pairs'"):
        Ranker("f1").fit(X, y).predict_grades(X)
    many = Ranker(C=1e-4).fit(np.arange(300.0)[:, None] / 300, np.arange(300))
    assert many.thresholds_ is None
    with pytest.raises(ValueError, match="300 different grades"):
        many.predict_grades(np.ones((1, 1)))


def test_features_without_any_information_give_ties_and_no_error():
    model = Ranker().fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2])
    assert not model.coef_.any()
    assert model.score(np.ones((6, 2)), [0, 1, 2, 0, 1, 2]) == 0.5
