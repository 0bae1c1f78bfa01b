"""Scores of bags, and parameters chosen by them without a label of any row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.kernels import Gaussian
from mercer.proportions import (
    BagCV,
    Bags,
    ConvexProportionSVM,
    InverseCalibration,
    MajorityBag,
    MeanMap,
    bag_proportions,
    bag_score,
    make_bags,
    proportion_risk,
    sample_mixture_bags,
)


def task(n: int = 150, n_classes: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 2 * np.eye(3)[y], y


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted to; predicts a class by the sign of the first column."""

    seen: list = []  # noqa: RUF012

    def __init__(self, shift=0.0, random_state=None):
        self.shift = shift
        self.random_state = random_state

    def fit(self, X, y=None, *, bags, proportions=None):
        self.classes_ = np.array([0, 1])
        Recorder.seen.append((np.asarray(X).copy(), None if y is None else np.array(y), bags, self.random_state))
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.shift).astype(int)


@pytest.fixture(autouse=True)
def _forget():
    Recorder.seen = []


# ---------------------------------------------------------------------------------------------------- risks


def test_risks_by_hand():
    bags = Bags(["a", "a", "b", "c"], [0.5, 1.0, 0.0], bag_weight=[1.0, 2.0, 1.0])
    assert proportion_risk([0.0, 0.5, 0.0], bags) == pytest.approx((0.5 + 2 * 0.5) / 4)
    assert proportion_risk([0.0, 0.5, 0.0], bags, loss="squared") == pytest.approx((0.25 + 2 * 0.25) / 4)


def test_two_classes_as_one_column_or_two_have_the_same_risk():
    rng = np.random.default_rng(0)
    p, q = rng.random(6), rng.random(6)
    for loss in ("absolute", "squared"):
        one = proportion_risk(q, np.arange(6), p, loss=loss)
        two = proportion_risk(np.column_stack([1 - q, q]), np.arange(6), np.column_stack([1 - p, p]), loss=loss)
        assert one == pytest.approx(two)


def test_shares_within_bounds_cost_nothing():
    bags = Bags(["a", "b"], ([0.2, 0.4], [0.4, 0.6]))
    assert proportion_risk([0.3, 0.4], bags) == 0.0
    assert proportion_risk([0.1, 0.9], bags) == pytest.approx((0.1 + 0.3) / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], ["a", "b"], [0.5, 0.5]), "shares of 2 bags and 2 classes"),
        (([0.1, np.nan], ["a", "b"], [0.5, 0.5]), "must be finite"),
        (([0.1, 0.2], ["a", "b"]), "without proportions"),
    ],
)
def test_wrong_risks_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        proportion_risk(*arguments)
    with pytest.raises(ValueError, match="loss must be one of"):
        proportion_risk([0.5], ["a"], [0.5], loss="hinge")


def test_the_score_of_bags_is_minus_the_mean_error_of_shares():
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    model = MeanMap().fit(X, bags=bags)
    expected = -np.abs(bag_proportions(model.predict(X), bags) - bags.proportions).mean()
    assert bag_score(model, X, bags) == pytest.approx(expected)
    code = np.empty(len(y), int)
    code[bags.members] = bags.number
    assert bag_score(model, X, code, bags.proportions) == pytest.approx(expected)


def test_classes_are_matched_by_name():
    X, y = task()
    names = np.array(["no", "yes"])[y]
    model = InverseCalibration().fit(X, names)
    bags = make_bags(y, 5, random_state=0)
    shares = bags.shares
    forwards = Bags(bags, shares, classes=["no", "yes"])
    backwards = Bags(bags, shares[:, ::-1], classes=["yes", "no"])
    assert bag_score(model, X, forwards) == bag_score(model, X, backwards) == bag_score(model, X, bags)
    with pytest.raises(ValueError, match="bags have the class 'maybe'"):
        bag_score(model, X, Bags(bags, shares, classes=["no", "maybe"]))


def test_any_classifier_can_be_scored():
    X, y = task()
    assert bag_score(Recorder().fit(X, bags=None), X, make_bags(y, 5, random_state=0)) < 0


# ---------------------------------------------------------------------------------------------------- search


def test_labels_of_rows_are_never_touched():
    """With labels of NaN everything is as without labels."""
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    grid = {"alpha": [0.001, 0.1, 10.0]}
    without = BagCV(MeanMap(), grid, random_state=0).fit(X, bags=bags)
    unknown = BagCV(MeanMap(), grid, random_state=0).fit(X, np.full(len(y), np.nan), bags=bags)
    np.testing.assert_array_equal(without.cv_results_["mean_test_score"], unknown.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(without.predict(X), unknown.predict(X))


def test_folds_hold_whole_bags_and_every_bag_is_held_out_once():
    X, y = task(60)
    bags = make_bags(y, 5, random_state=0)
    search = BagCV(Recorder(), {"shift": [0.0]}, cv=4, random_state=0).fit(X, bags=bags)
    fits = Recorder.seen[:-1]
    assert search.n_splits_ == len(fits) == 4
    held = [set(bags.names) - set(part.names) for _, _, part, _ in fits]
    assert sorted(name for names in held for name in names) == bags.names.tolist()
    for rows, _, part, _ in fits:
        for k, name in enumerate(part.names):
            original = bags.members[bags.offsets[name] : bags.offsets[name + 1]]
            np.testing.assert_array_equal(rows[part.members[part.offsets[k] : part.offsets[k + 1]]], X[original])
        np.testing.assert_array_equal(part.proportions, bags.proportions[part.names])
    np.testing.assert_array_equal(Recorder.seen[-1][0], X)


def test_scores_are_those_of_a_loop_written_out():
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    numbers = np.arange(len(bags))
    splits = [(numbers[numbers % 3 != f], numbers[numbers % 3 == f]) for f in range(3)]
    search = BagCV(InverseCalibration(), {"C": [0.01, 1.0], "epsilon": [0.0, 0.1]}, cv=splits).fit(X, bags=bags)
    for at, params in enumerate(search.cv_results_["params"]):
        for f, (train, test) in enumerate(splits):
            part, rows = bags.select(train)
            held, others = bags.select(test)
            model = InverseCalibration(**params).fit(X[rows], bags=part)
            assert search.cv_results_[f"split{f}_test_score"][at] == bag_score(model, X[others], held)
    best = np.argmax(search.cv_results_["mean_test_score"])
    assert search.best_index_ == best
    assert search.cv_results_["rank_test_score"][best] == 1
    assert search.best_params_ == search.cv_results_["params"][best]
    assert search.best_score_ == search.cv_results_["mean_test_score"][best]


def test_a_good_parameter_is_found_and_the_best_estimator_answers():
    X, y = task(400)
    bags = make_bags(y, 4, random_state=0)
    search = BagCV(MeanMap(), {"alpha": [1e-3, 1e4]}, random_state=0).fit(X, bags=bags)
    assert search.best_params_ == {"alpha": 1e-3}
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), search.best_estimator_.decision_function(X))
    np.testing.assert_array_equal(
        search.predict_proportions(X, bags), search.best_estimator_.predict_proportions(X, bags)
    )
    assert search.score(X, y) == np.mean(search.predict(X) == y)
    assert search.classes_.tolist() == [0, 1]
    assert not hasattr(search, "predict_proba")


@pytest.mark.parametrize("estimator", [MeanMap(), Recorder()], ids=["mean map", "random"])
def test_threads_and_runs_change_nothing(estimator):
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    grid = {"alpha": [0.01, 1.0]} if isinstance(estimator, MeanMap) else {"shift": [0.0, 1.0]}
    runs = [BagCV(estimator, grid, n_jobs=n, random_state=3).fit(X, bags=bags) for n in (1, 2)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.cv_results_["mean_test_score"], runs[0].cv_results_["mean_test_score"])


def test_estimators_without_a_seed_get_one_for_each_fold():
    X, y = task(60)
    bags = make_bags(y, 5, random_state=0)
    BagCV(Recorder(), {"shift": [0.0, 1.0]}, cv=2, random_state=0).fit(X, bags=bags)
    seeds = [seed for *_, seed in Recorder.seen]
    assert seeds[:2] == seeds[2:4]
    assert len(set(seeds)) == 3
    Recorder.seen = []
    BagCV(Recorder(random_state=7), {"shift": [0.0]}, cv=2, random_state=0).fit(X, bags=bags)
    assert {seed for *_, seed in Recorder.seen} == {7}


def test_known_labels_follow_their_bags():
    X, y = task(60)
    bags = make_bags(y, 5, random_state=0)
    known = np.where(np.arange(60) % 4 == 0, y, np.nan)
    BagCV(Recorder(), {"shift": [0.0]}, cv=3, random_state=0).fit(X, known, bags=bags)
    for rows, labels, _, _ in Recorder.seen:
        places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
        np.testing.assert_array_equal(labels, known[places])


def test_labelled_rows_without_a_bag_are_in_every_training_part():
    X, y = task(60)
    bag = np.where(np.arange(60) < 50, np.arange(60) // 5, np.nan)
    names = np.array(["no", "yes"], object)[y]
    known = np.array([name if i >= 50 else None for i, name in enumerate(names)], object)
    shares = [y[bag == k].mean() for k in range(10)]
    search = BagCV(MeanMap(), {"alpha": [0.1]}, cv=5, random_state=0).fit(X, known, bags=bag, proportions=shares)
    assert search.classes_.tolist() == ["no", "yes"]
    numbers = np.where(np.arange(60) >= 50, y, np.nan)
    BagCV(Recorder(), {"shift": [0.0]}, cv=5, random_state=0).fit(X, numbers, bags=bag, proportions=shares)
    for rows, labels, part, _ in Recorder.seen[:-1]:
        np.testing.assert_array_equal(rows[part.alone], X[50:])
        np.testing.assert_array_equal(labels[part.alone], y[50:])


def test_matrices_of_kernels_are_cut_by_rows_and_columns():
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    kernel = Gaussian(0.3)
    by_kernel = BagCV(InverseCalibration(kernel=kernel), {"C": [0.1, 10.0]}, random_state=0).fit(X, bags=bags)
    K = kernel(X)
    by_matrix = BagCV(InverseCalibration(kernel="precomputed"), {"C": [0.1, 10.0]}, random_state=0).fit(K, bags=bags)
    np.testing.assert_allclose(
        by_matrix.cv_results_["mean_test_score"], by_kernel.cv_results_["mean_test_score"], atol=1e-9
    )
    np.testing.assert_array_equal(by_matrix.predict(K), by_kernel.predict(X))


def test_parameters_of_kernels_are_searched():
    X, y = task()
    search = BagCV(InverseCalibration(kernel=Gaussian(1.0)), {"kernel__gamma": [0.01, 100.0]}, random_state=0)
    assert search.fit(X, bags=make_bags(y, 5, random_state=0)).best_params_ == {"kernel__gamma": 0.01}


@pytest.mark.parametrize("kind", ["sparse", "coo", "frame", "strings"])
def test_rows_of_any_kind_are_cut(kind):
    X, y = task()
    bags = make_bags(y, 5, random_state=0)
    model = MeanMap()
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    elif kind == "strings":
        from mercer.kernels import Spectrum

        X, model = ["ab" * 3 if label else "ba" * 2 + "c" for label in y], MeanMap(kernel=Spectrum(2))
    else:
        X = sp.csr_matrix(X) if kind == "sparse" else sp.coo_array(X)
    search = BagCV(model, {"alpha": [0.1]}, cv=3, random_state=0).fit(X, bags=bags)
    assert np.isfinite(search.best_score_)


def test_several_classes_and_grids_in_a_list():
    X, y = task(300, 3)
    grids = [{"alpha": [0.01]}, {"alpha": [0.1], "laplacian": [1.0]}]
    search = BagCV(MeanMap(), grids, cv=3, random_state=0).fit(X, bags=make_bags(y, 5, random_state=0))
    assert search.cv_results_["param_laplacian"].mask.tolist() == [True, False]
    pd = pytest.importorskip("pandas")
    assert len(pd.DataFrame(search.cv_results_)) == 2


def test_weights_of_bags_count_in_scores():
    X, y = task(60)
    bags = make_bags(y, 5, random_state=0)
    weight = np.zeros(12)
    weight[[2, 5, 7, 9]] = 1
    with_weights = BagCV(Recorder(), {"shift": [0.5]}, cv=2, random_state=0).fit(X, bags=bags, bag_weight=weight)
    part, rows = bags.select([2, 5, 7, 9])
    model = Recorder(0.5).fit(X, bags=None)
    assert with_weights.best_score_ == pytest.approx(bag_score(model, X[rows], part))


def test_a_function_may_score():
    X, y = task()
    search = BagCV(Recorder(), {"shift": [0.0, 5.0]}, scoring=lambda model, X, bags: model.shift, cv=2, random_state=0)
    assert search.fit(X, bags=make_bags(y, 5, random_state=0)).best_params_ == {"shift": 5.0}
    squared = BagCV(Recorder(), {"shift": [1.0]}, scoring="squared", cv=2, random_state=0)
    absolute = BagCV(Recorder(), {"shift": [1.0]}, cv=2, random_state=0)
    bags = make_bags(y, 5, random_state=0)
    assert squared.fit(X, bags=bags).best_score_ > absolute.fit(X, bags=bags).best_score_


def test_rows_on_both_sides_are_warned_of():
    X, y = task()
    bags = make_bags(y, 20, scheme="iid", n_bags=10, random_state=0)
    rows = np.unique(bags.members)
    pairs = np.column_stack([np.searchsorted(rows, bags.members), bags.number])
    with pytest.warns(UserWarning, match="bags overlap"):
        BagCV(MeanMap(), {"alpha": [0.1]}, cv=2, random_state=0).fit(X[rows], bags=pairs, proportions=bags.proportions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BagCV(MeanMap(), {"alpha": [0.1]}, cv=2, random_state=0).fit(X, bags=make_bags(y, 5, random_state=0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": 5}, "cv=5 folds need at least as many bags, but there are 3"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"cv": 2.5}, "cv must be"),
        ({"cv": [([0, 1], [7])]}, r"numbers of bags in 0 … 2"),
        ({"cv": []}, "cv holds no split"),
        ({"scoring": "accuracy", "cv": 2}, "scoring must be one of 'absolute'"),
        ({"param_grid": [], "cv": 2}, "no combination"),
        ({"n_jobs": 0, "cv": 2}, "n_jobs must be"),
    ],
)
def test_wrong_searches_are_named(parameters, message):
    X, y = task(15)
    with pytest.raises(ValueError, match=message):
        BagCV(**{"estimator": MeanMap(), "param_grid": {"alpha": [1.0]}, **parameters}).fit(
            X, bags=make_bags(y, 5, random_state=0)
        )


def test_searches_need_proportions_and_a_fit():
    X, y = task(30)
    search = BagCV(MeanMap(), {"alpha": [1.0]}, cv=2)
    with pytest.raises(ValueError, match="without proportions"):
        search.fit(X, bags=np.arange(30) // 5)
    with pytest.raises(ValueError, match="one value for each of the 30 rows"):
        search.fit(X, bags=[0, 1], proportions=[0.5, 0.5])
    with pytest.raises(NotFittedError):
        search.predict(X)
    bags = make_bags(y, 5, random_state=0)
    with pytest.raises(ValueError, match="y must hold one label for each of the 30 rows"):
        search.fit(X, [1, 2], bags=bags)
    unfitted = BagCV(MeanMap(), {"alpha": [1.0]}, cv=2, refit=False).fit(X, bags=bags)
    assert unfitted.best_params_ == {"alpha": 1.0}
    with pytest.raises(AttributeError, match="refit=False"):
        unfitted.predict(X)
    assert repr(clone(search)) == repr(search)


def test_verbose_says_what_happens(capsys):
    X, y = task(30)
    BagCV(MeanMap(), {"alpha": [1.0]}, cv=2, verbose=2, random_state=0).fit(X, bags=make_bags(y, 5, random_state=0))
    said = capsys.readouterr().err
    assert "1 combinations, 2 folds of 6 bags" in said
    assert "best is {'alpha': 1.0}" in said


# ---------------------------------------------------------------------------------------------------- majorities


def test_rows_get_the_majority_of_their_group(tmp_path):
    groups = ["x", "x", "y", "z", "z", "z"]
    model = MajorityBag().fit(groups, {"x": 0.5, "y": 1.0, "z": 0.2})
    assert model.predict(["x", "y", "z", "new"]).tolist() == [0, 1, 0, 0]
    mercer.save(model, tmp_path / "m")
    assert mercer.load(tmp_path / "m").predict(["y", "new"]).tolist() == [1, 0]
    assert model.score(["x", "y"], [0, 1]) == 1.0


def test_majorities_of_several_classes():
    y = np.array(["a", "b", "c", "c", "b", "b"])
    model = MajorityBag().fit(Bags([0, 0, 1, 1, 2, 2], bag_proportions(y, [0, 0, 1, 1, 2, 2]), classes=["a", "b", "c"]))
    assert model.predict([1, 2, 9]).tolist() == ["c", "b", "b"]
    with pytest.raises(ValueError, match="without proportions"):
        MajorityBag().fit([0, 1])
    with pytest.raises(ValueError, match="the group of every row"):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(NotFittedError):
        MajorityBag().predict([0])


# ---------------------------------------------------------------------------------------------------- mixtures


def test_bags_of_a_mixture_come_from_one_component_each():
    pools = [(np.full((5, 1), c), np.array([0, 0, 0, 0, 1])) for c in range(3)]
    X, y, bags = sample_mixture_bags(pools, 7, 40, random_state=0)
    assert X.shape == (280, 1)
    for k in range(40):
        rows = bags.members[bags.offsets[k] : bags.offsets[k + 1]]
        assert len(np.unique(X[rows])) == 1
        assert bags.proportions[k] == pytest.approx(y[rows].mean())
    assert set(X[:, 0]) == {0, 1, 2}
    only, *_ = sample_mixture_bags(pools, 7, 40, weights=[0, 1, 0], random_state=0)
    assert set(only[:, 0]) == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 5, 5), "components is empty"),
        (([(np.eye(2), [0, 1])], 0, 5), "size must be"),
        (([(np.eye(2), [0, 1])], 5, 0), "n_bags must be"),
        (([(np.eye(2), [0])], 5, 5), "component 0 has 2 rows and 1 labels"),
        (([lambda random, n: (np.eye(2), [0, 1])], 5, 5), "component 0 gave 2 rows"),
    ],
)
def test_wrong_mixtures_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_mixture_bags(*arguments)


def test_a_pipeline_is_searched() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = 1000 * rng.normal(size=(200, 2)) + 4000 * y[:, None]
    bags = make_bags(y, 5, random_state=0)
    search = BagCV(make_pipeline(StandardScaler(), MeanMap()), {"meanmap__alpha": [0.01, 100.0]}, random_state=0)
    assert search.fit(X, bags=bags).best_params_ == {"meanmap__alpha": 0.01}
    assert search.score(X, y) > 0.95


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_warnings_of_fits_are_told_once(n_jobs) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 48)
    X = rng.normal(size=(48, 2)) + 3 * y[:, None]
    bags = Bags(np.arange(48) // 4, np.clip(y.reshape(12, 4).mean(axis=1), 0.1, 0.9) + 0.03)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BagCV(ConvexProportionSVM(), {"C": [0.1, 1.0]}, cv=3, refit=False, n_jobs=n_jobs).fit(X, bags=bags)
    assert [str(w.message)[:8] for w in caught] == ["8 of 8 b"]
