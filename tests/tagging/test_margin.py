"""A Tagger with margin losses: every loss, solver and cost fits, is kept in files, and refuses what does not fit."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

import mercer
from mercer.learning import (
    ConvergenceWarning,
    Hinge,
    Hybrid,
    RelativeMargin,
    Slack,
    SoftmaxMargin,
    SquaredHinge,
)
from mercer.learning.solvers import BCFW, BMRM, CuttingPlane
from mercer.structures.costs import Cost, CostMatrix, Hamming, Taxonomy, ZeroOne
from mercer.tagging import Constraints, Tagger

MARGIN = ["bmrm", "cutting-plane", "bcfw", "subgradient"]


def data(n=25, seed=0):
    """Words that mostly give their label away; B is never followed by O."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        tags = []
        for _ in range(int(rng.integers(1, 6)) if i else 0):  # one sequence is empty
            tags.append("I" if tags and tags[-1] == "B" else str(rng.choice(["B", "I", "O"])))
        X.append([{"word": tag if rng.random() < 0.85 else "x", "other": str(rng.integers(4))} for tag in tags])
        y.append(tags)
    return X, y


def quiet(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **options)


COMBINATIONS = [
    *[("hinge", s) for s in ("auto", *MARGIN, CuttingPlane("n"), BCFW("uniform", cached=0), BMRM(False))],
    *[("squared-hinge", s) for s in ("auto", "bmrm", "cutting-plane", "bcfw")],
    *[("slack", s) for s in ("auto", *MARGIN)],
    *[("relative-margin", s) for s in ("auto", "cutting-plane", "bcfw")],
    *[("softmax-margin", s) for s in ("auto", "lbfgs", "bmrm")],
    *[("hybrid", s) for s in ("auto", "bmrm")],
    *[(Hybrid(0.2, margin="cost"), "bmrm"), (Hybrid(1.0), "bmrm"), (RelativeMargin(2.0), "auto")],
    *[(Slack(cost="zero-one"), "bcfw"), (Hinge({"B": 3.0}), "cutting-plane")],
]


@pytest.mark.parametrize(("loss", "solver"), COMBINATIONS)
def test_every_loss_and_solver_trains_and_predicts(loss, solver):
    X, y = data()
    model = quiet(Tagger(loss, solver, C=1.0, max_iter=100, random_state=0), X, y)
    assert model.score(X, y) > 0.85
    assert [len(tags) for tags in model.predict(X)] == [len(x) for x in X]
    history = model.history_
    assert len(history["seconds"]) == model.n_iter_ > 0
    if "dual" in history:
        primal, dual = np.array(history["primal"]), np.array(history["dual"])
        if getattr(loss, "name", loss) != "slack":  # see the test of its certificate
            assert (primal >= dual - 1e-9 * np.abs(dual)).all()
        assert (np.diff(dual) >= 0).all()
        if model.converged_:
            assert history["gap"][-1] <= 1e-3
    else:
        assert loss == "softmax-margin"


@pytest.mark.parametrize("solver", ["bmrm", "bcfw"])
def test_the_certificate_of_slack_rescaling_holds(solver):
    model = quiet(Tagger("slack", solver, C=1.0, max_iter=100, random_state=0), *data())
    primal, dual = np.array(model.history_["primal"]), np.array(model.history_["dual"])
    assert (primal >= dual - 1e-9 * np.abs(dual)).all()


@pytest.mark.parametrize("solver", MARGIN)
def test_margin_solvers_record_primal_dual_and_gap(solver):
    model = quiet(Tagger("hinge", solver, max_iter=8, random_state=0), *data())
    assert {"objective", "primal", "dual", "gap", "passes", "seconds"} <= set(model.history_)


COSTS = {
    "hamming": "hamming",
    "zero-one": "zero-one",
    "weights": {"B": 5.0},
    "list": [5.0, 1.0, 1.0],
    "matrix": [[0, 1, 4], [1, 0, 2], [3, 1, 0]],
    "array": np.array([[0, 1, 4], [1, 0, 2], [3, 1, 0.0]]),
    "function": lambda y, z: 0.0 if y == z else 1.0 + (y == "O"),
    "taxonomy": Taxonomy([("chunk", "B"), ("chunk", "I"), ("root", "chunk"), ("root", "O", 3.0)]),
    "object": Hamming({"O": 0.5}),
}


@pytest.mark.parametrize("loss", ["hinge", "slack", "softmax-margin", "relative-margin"])
@pytest.mark.parametrize("cost", COSTS)
def test_every_cost_trains(cost, loss):
    if (cost, loss) == ("zero-one", "softmax-margin"):
        pytest.skip("does not decompose")
    X, y = data()
    model = quiet(Tagger(loss, C=0.5, cost=COSTS[cost], max_iter=40, random_state=0), X, y)
    assert model.score(X, y) > 0.7


def test_a_costly_label_is_missed_less():
    """Three positions in ten are O and nothing tells which: slack rescaling turns to O when missing it is dear."""
    rng = np.random.default_rng(0)
    y = [["O" if rng.random() < 0.3 else "B"] for _ in range(100)]
    X = [[{"word": "x"}] for _ in y]
    answers = {
        weight: {tags[0] for tags in quiet(Tagger("slack", cost={"O": weight}, random_state=0), X, y).predict(X)}
        for weight in (1.0, 6.0)
    }
    assert answers == {1.0: {"B"}, 6.0: {"O"}}


@pytest.mark.parametrize("transitions", ["dense", "observed", "features"])
@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "bmrm"])
def test_solvers_agree_with_every_kind_of_transitions_and_constraints(solver, transitions):
    X, y = data()
    rules = Constraints(forbidden=[("B", "O")])
    model = Tagger("hinge", solver, transitions=transitions, constraints=rules, tol=1e-3, random_state=0).fit(X, y)
    same = Tagger("hinge", "cutting-plane", transitions=transitions, constraints=rules, tol=1e-4).fit(X, y)
    assert np.isclose(model.history_["primal"][-1], same.history_["primal"][-1], rtol=1.2e-3)
    for tags in model.predict(X):
        assert ("B", "O") not in list(pairwise(tags))


def test_a_seed_repeats_the_fit_for_any_number_of_jobs():
    X, y = data()
    found = [
        quiet(Tagger("hinge", max_iter=9, tol=1e-9, random_state=3, n_jobs=jobs), X, y).coef_ for jobs in (1, 1, 2)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("solver", MARGIN)
def test_held_out_data_stops_training_and_keeps_the_best_weights(solver):
    X, y = data(60)
    model = quiet(Tagger("hinge", solver, C=5.0, tol=0.0, max_iter=400, patience=3, random_state=0), X[:30], y[:30],
                  dev=(X[30:], y[30:]))  # fmt: skip
    scores = model.history_["dev_score"]
    assert len(scores) == model.n_iter_ < 400
    assert np.isclose(model.score(X[30:], y[30:]), max(scores))


# ------------------------------------------------------------------------------------------ model files


LOSSES = [
    "hinge",
    Hinge(cost=[[0, 1, 4], [1, 0, 2], [3, 1, 0]]),
    SquaredHinge({"B": 2.0}),
    Slack("zero-one", search=6),
    SoftmaxMargin(),
    Hybrid(0.3, margin="cost"),
    RelativeMargin(4.0),
]


def model_file(model, path):
    mercer.save(model, path)
    return mercer.load(path)


@pytest.mark.parametrize("loss", LOSSES)
def test_files_keep_the_loss_and_its_parameters(loss, tmp_path):
    X, y = data()
    model = quiet(Tagger(loss, max_iter=15, random_state=0), X, y)
    again = model_file(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.predict(X) == model.predict(X)
    if isinstance(loss, str):
        assert again.loss == loss
    else:
        assert type(again.loss) is type(loss)
        assert again.loss.to_json() == loss.for_labels(["B", "I", "O"]).to_json()
    np.testing.assert_array_equal(again.history_["objective"][-1], model.history_["objective"][-1])
    assert again.converged_ == model.converged_
    refitted = quiet(again, X, y)
    np.testing.assert_array_equal(refitted.coef_, model.coef_)


@pytest.mark.parametrize("cost", COSTS)
def test_files_keep_the_cost(cost, tmp_path):
    X, y = data()
    model = quiet(Tagger("hinge", cost=COSTS[cost], max_iter=15, random_state=0), X, y)
    again = model_file(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(quiet(again, X, y).coef_, model.coef_)


def test_files_keep_a_margin_without_bound(tmp_path):
    model = quiet(Tagger(RelativeMargin(np.inf), max_iter=5), *data())
    assert np.isposinf(model_file(model, tmp_path / "m.mercer").loss.B)


def test_a_cost_of_ones_own_cannot_be_saved_and_says_what_to_do(tmp_path):
    class Mine(Cost):
        def table(self, truth, n_labels):
            return (truth[:, None] != np.arange(n_labels)).astype(float)

    model = quiet(Tagger("hinge", cost=Mine(), max_iter=5, random_state=0), *data())
    with pytest.raises(TypeError, match="set cost='hamming' before saving"):
        mercer.save(model, tmp_path / "m.mercer")
    model.cost = "hamming"
    assert model_file(model, tmp_path / "m.mercer").predict(data()[0]) == model.predict(data()[0])


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (np.ones((2, 3)), "square"),
        (np.zeros((2, 2)), "for 2 labels, the data has 3"),
        (np.ones((3, 3)), "diagonal"),
        (-np.ones((3, 3)) + np.eye(3), "negative"),
        (np.full((3, 3), np.nan), "finite"),
        ({"X": 2.0}, "label 'X', which does not occur"),
        ({"B": -2.0}, "not negative"),
        ([1.0, 2.0], "one number a label"),
        ("hinge", "unknown cost"),
        (Taxonomy([("B", "I")]), "no node for the label 'O'"),
        (Taxonomy([("B", "I"), ("O", "root")]), "does not connect 'B' and 'O'"),
        (lambda y, z: 1.0, "diagonal"),
        (CostMatrix(np.zeros((4, 4))), "for 4 labels"),
    ],
)
def test_bad_costs_are_refused_and_leave_the_model_as_it_was(cost, words):
    X, y = data()
    model = quiet(Tagger("hinge", max_iter=3, random_state=0), X, y)
    before = model.coef_.copy()
    model.cost = cost
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("cost", [3.0, None])
def test_what_is_no_cost_is_a_type_error(cost):
    with pytest.raises(TypeError, match="cost must be"):
        Tagger("hinge", cost=cost).fit(*data())


def test_zero_one_is_no_cost_for_softmax_margin():
    with pytest.raises(ValueError, match="use 'hamming'"):
        Tagger("softmax-margin", cost="zero-one").fit(*data())


@pytest.mark.parametrize("hidden", [None, {"B", "I"}])
@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("softmax-margin", "auto"),
        ("hybrid", "auto"),
        ("hinge", "bmrm"),
        ("squared-hinge", "bmrm"),
        *[("hinge", s) for s in ("bcfw", "cutting-plane", "subgradient")],
        ("slack", "auto"),
        ("relative-margin", "auto"),
    ],
)
def test_labels_that_are_not_known_need_the_log_loss(loss, solver, hidden):
    X, y = data()
    y[3][0] = hidden
    with pytest.raises(ValueError, match="needs fully known outputs; use the log loss"):
        Tagger(loss, solver).fit(X, y)
    quiet(Tagger("log", max_iter=2), X, y)


@pytest.mark.parametrize("solver", MARGIN)
def test_margin_solvers_do_not_learn_online(solver):
    with pytest.raises(ValueError, match="online solver"):
        Tagger("hinge", solver).partial_fit(*data())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "margin"}, "unknown loss"),
        ({"loss": "log", "solver": "bcfw"}, "use 'bmrm'"),
        ({"loss": "log", "solver": "cutting-plane"}, "use 'bmrm'"),
        ({"loss": "hybrid", "solver": "bcfw"}, "use 'bmrm'"),
        ({"loss": "hinge", "solver": "sgd"}, "log loss"),
        ({"loss": "hinge", "penalty": "l1"}, "needs penalty='l2'"),
        ({"loss": "hinge", "penalty": None}, "needs penalty='l2'"),
        ({"loss": "relative-margin", "solver": "bmrm"}, "no bound"),
        ({"loss": "relative-margin", "solver": "subgradient"}, "no bound"),
        ({"loss": "squared-hinge", "solver": "subgradient"}, "no squared loss"),
        ({"loss": "hinge", "C": 0.0}, "C must"),
        ({"loss": "hinge", "C": -1.0}, "C must"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Tagger(**options).fit(*data())


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn"])
@pytest.mark.parametrize("loss", ["relative-margin", "hinge"])
def test_smooth_solvers_refuse_losses_with_corners_or_bounds(solver, loss):
    with pytest.raises(ValueError, match=r"bcfw|bmrm|cutting-plane"):
        quiet(Tagger(loss, solver, max_iter=2), *data())


def test_constraints_that_forbid_the_truth_name_the_example():
    X, y = data()
    number = next(i for i, tags in enumerate(y) if ("B", "I") in list(pairwise(tags)))
    for solver in MARGIN:
        with pytest.raises(ValueError, match=f"example {number}"):
            Tagger("hinge", solver, constraints=Constraints(forbidden=[("B", "I")])).fit(X, y)


# ---------------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize("solver", MARGIN)
def test_an_interrupted_fit_keeps_the_best_so_far(solver, monkeypatch):
    from mercer.learning.monitor import Monitor

    record, seen = Monitor.record, []

    def watch(self, weights, **figures):
        if len(seen) == 6:
            raise KeyboardInterrupt
        seen.append(figures)
        return record(self, weights, **figures)

    monkeypatch.setattr(Monitor, "record", watch)
    X, y = data()
    model = Tagger("hinge", solver, C=5.0, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert model.interrupted_
    assert not model.converged_
    assert model.n_iter_ == 6
    assert model.score(X, y) > 0.8
    assert len(model.predict(X)) == len(X)


def test_warm_starts_go_on_with_margin_solvers():
    X, y = data()
    model = Tagger("hinge", "bmrm", warm_start=True, tol=1e-4).fit(X, y)
    first = model.history_["primal"][-1]
    model.fit(X, y)
    assert np.isclose(model.history_["primal"][-1], first, rtol=1e-3)


def test_the_default_cost_is_hamming():
    X, y = data()
    weights = [quiet(Tagger("hinge", cost=c, max_iter=8, random_state=0), X, y).coef_ for c in ("hamming", Hamming())]
    np.testing.assert_array_equal(*weights)
    zero_one = quiet(Tagger(Hinge(ZeroOne()), max_iter=8, random_state=0), X, y).coef_
    assert (weights[0] != zero_one).any()
