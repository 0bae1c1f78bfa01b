"""LinearClassifier: optima, certificates, costs, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

import mercer
from mercer import _core
from mercer.classification import LinearClassifier
from mercer.data.sequences import Rows
from mercer.learning import ConvergenceWarning, Hybrid, RelativeMargin
from mercer.structures import CostMatrix, Taxonomy
from reference.multiclass import margin_objective, margin_optimum
from reference.names import stable

ZERO_ONE = 1.0 - np.eye(3)


def problem(n=60, d=5, k=3, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(k, d))
    X = rng.normal(size=(n, d))
    y = (X @ W.T + noise * rng.normal(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y


def weights_of(model, X):
    """W of shape (labels, features) with the intercept as its last column, also for two classes."""
    W = np.column_stack([model.coef_, model.intercept_])
    return np.vstack([-W / 2, W / 2]) if len(W) == 1 else W, np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_optimum_equals_the_program_with_all_constraints(k, squared):
    rng = np.random.default_rng(k)
    X, y = problem(14, 3, k, seed=k)
    X[3] = 0.0
    cost = rng.uniform(0, 2, (k, k))
    np.fill_diagonal(cost, 0.0)
    weights = rng.uniform(0, 2, len(y))
    weights[4] = 0.0
    model = LinearClassifier("squared-hinge" if squared else "hinge", C=0.7, cost=cost, fit_intercept=False, tol=1e-9)
    model.fit(X, y, sample_weight=weights)
    optimum = margin_optimum(X, y, cost, 0.7 * weights, squared)
    assert model.history_["primal"][-1] == pytest.approx(optimum, rel=1e-6)
    assert model.history_["dual"][-1] <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_optimum_equals_that_of_crammer_and_singer_in_scikit_learn(C):
    X, y = problem(200, 6, 4, seed=1)
    peer = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=1000000).fit(X, y)
    model = LinearClassifier(C=C, fit_intercept=False, tol=1e-8).fit(X, y)
    values = [margin_objective(m.coef_, X, y, 1.0 - np.eye(4), np.full(len(y), C)) for m in (peer, model)]
    assert values[1] == pytest.approx(values[0], rel=1e-5)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-3)


def test_two_classes_are_the_binary_machine_with_twice_the_C():
    X, y = problem(150, 4, 2, seed=2)
    model = LinearClassifier(C=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    peer = LinearSVC(C=1.0, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**7).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)


def test_two_classes_reach_the_objective_of_svc_where_its_offset_is_zero():
    # With every example and its mirror image the best offset is 0, and SVC solves the problem without one.
    X, y = problem(40, 3, 2, seed=3)
    X, y = np.vstack([X, -X]), np.concatenate([y, 1 - y])
    model = LinearClassifier(C=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    peer = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_gap_is_certified_and_within_tol(loss, dtype, sparse):
    X, y = problem(150, 20, 6, seed=4)
    X = np.where(np.abs(X) > 1.0, X, 0.0).astype(dtype)
    model = LinearClassifier(loss, tol=1e-5, random_state=0).fit(csr_array(X) if sparse else X, y)
    W, ones = weights_of(model, X.astype(float))
    primal = margin_objective(W, ones, y, 1.0 - np.eye(6), np.ones(len(y)), loss != "hinge")
    assert model.converged_
    assert model.history_["primal"][-1] == pytest.approx(primal, rel=1e-9)
    assert (primal - model.history_["dual"][-1]) / primal <= 1e-5
    assert np.all(np.diff(model.history_["dual"]) >= -1e-9 * primal)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_rows_without_features_have_their_share_in_the_certificate(loss):
    # Nothing can be learnt from a row of zeros: it costs max Δ (squared: its square), in the primal and in the dual.
    X, y = problem(40, 4, 3, seed=8)
    X[::2] = 0.0
    cost = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5], [3.0, 1.0, 0.0]])
    settings = {"C": 0.3, "cost": cost, "fit_intercept": False, "tol": 1e-6, "random_state": 0}
    parts = slice(None), slice(1, None, 2)
    model, alone = (LinearClassifier(loss, **settings).fit(X[part], y[part]) for part in parts)
    assert model.converged_
    worst = cost[y[::2]].max(axis=1)
    constant = 0.3 * (worst if loss == "hinge" else worst**2).sum()
    for side in ("primal", "dual"):
        assert model.history_[side][-1] == pytest.approx(alone.history_[side][-1] + constant, rel=3e-6)


def test_slack_bounds_the_cost_of_the_prediction_on_every_example():
    # Whatever the weights.
    rng = np.random.default_rng(5)
    X, y = problem(300, 4, 5, noise=3.0, seed=5)
    cost = rng.uniform(0, 4, (5, 5))
    np.fill_diagonal(cost, 0.0)
    for C in (1e-3, 1.0):
        model = LinearClassifier(C=C, cost=cost).fit(X, y)
        scores = model.decision_function(X)
        slack = (cost[y] + scores).max(axis=1) - scores[np.arange(len(y)), y]
        assert np.all(slack >= cost[y, model.predict(X)] - 1e-12)


def test_a_cost_of_999_moves_errors_from_cat_and_lion_to_tiger_and_lion():
    # Tiger/lion costs 1, cat/lion 999. Lions lie between cats and tigers.
    rng = np.random.default_rng(6)
    y = np.repeat(["cat", "lion", "tiger"], 200)
    X = np.repeat([[-1.0, 0.5], [0.0, -0.5], [1.0, 0.5]], 200, axis=0) + 0.7 * rng.normal(size=(600, 2))

    def cost(true, answer):
        return 0.0 if true == answer else 999.0 if {true, answer} == {"cat", "lion"} else 1.0

    def confusions(model):
        z = model.fit(X, y).predict(X)
        return [sum({a, b} == pair for a, b in zip(y, z, strict=True)) for pair in ({"cat", "lion"}, {"tiger", "lion"})]

    plain, shifted = confusions(LinearClassifier(C=1e-3)), confusions(LinearClassifier(C=1e-3, cost=cost))
    assert shifted[0] < plain[0] / 2
    assert shifted[1] > 1.5 * plain[1]


FIGURE = Taxonomy(
    [
        ("Computers", "Hardware"), ("Computers", "Software"), ("Hardware", "Storage"), ("Hardware", "Cables"),
        ("Storage", "HDD"), ("Storage", "CDROM"),
        ("Software", "Freeware"), ("Software", "Shareware"), ("Software", "Opensource"),
    ]
)  # fmt: skip


def test_taxonomy_of_figure_2_1_and_its_classifier():
    leaves = ["CDROM", "Cables", "Freeware", "HDD", "Opensource", "Shareware"]
    D = FIGURE.bind(leaves).matrix
    at = {leaf: i for i, leaf in enumerate(leaves)}
    assert D[at["CDROM"], at["HDD"]] == 2
    assert D[at["CDROM"], at["Cables"]] == 3
    assert D[at["CDROM"], at["Freeware"]] == 5
    X, y = problem(200, 8, 6, seed=7)
    names = np.array(leaves)[y]
    model = LinearClassifier(cost=FIGURE, random_state=0).fit(X, names)
    same = LinearClassifier(cost=D, random_state=0).fit(X, names)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_a_star_with_edges_of_half_the_margin_is_the_flat_margin():
    X, y = problem(100, 5, 4, seed=8)
    rho = 3.0
    star = Taxonomy([("root", c, rho / 2) for c in range(4)])
    flat = LinearClassifier(cost=rho * (1.0 - np.eye(4)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(LinearClassifier(cost=star, random_state=0).fit(X, y).coef_, flat.coef_)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_do_not_depend_on_the_number_of_threads(loss, sparse):
    X, y = problem(2500, 12, 4, seed=9)
    X = csr_array(np.where(np.abs(X) > 1.2, X, 0.0)) if sparse else X
    one, two, four = (LinearClassifier(loss, C=0.1, random_state=0, n_jobs=j).fit(X, y) for j in (1, 2, 4))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.coef_, four.coef_)
    assert one.history_["gap"] == two.history_["gap"]


def test_wide_sparse_data_is_cut_by_features_and_the_weights_do_not_depend_on_the_number_of_threads():
    random = np.random.default_rng(3)
    X = sparse_rows(4500, 3000, 12, random)
    y = np.argmax(X @ random.normal(size=(3000, 8)) + random.normal(size=(4500, 8)), axis=1)
    models = [LinearClassifier(C=0.1, random_state=0, n_jobs=j, tol=1e-3).fit(X, y) for j in (1, 2, 3)]
    for model in models[1:]:
        np.testing.assert_array_equal(models[0].coef_, model.coef_)
    assert models[0].history_["gap"] == models[1].history_["gap"]
    assert models[0].history_["gap"][-1] <= 1e-3
    rows = np.hstack([models[0].coef_, models[0].intercept_[:, None]])
    padded = np.hstack([X.toarray(), np.ones((4500, 1))])
    primal = margin_objective(rows, padded, y, 1.0 - np.eye(8), np.full(4500, 0.1), False)
    assert primal == pytest.approx(models[0].history_["primal"][-1], rel=1e-9)


def sparse_rows(n, n_columns, per_row, random):
    rows = np.repeat(np.arange(n), per_row)
    columns = random.zipf(1.3, n * per_row) % n_columns
    return csr_array((random.normal(size=n * per_row), (rows, columns)), shape=(n, n_columns))


def cut_ascent(X, y, strips, squared=False, C=1.0, n_labels=8):
    return _core.multiclass.MulticlassDual(
        Rows.from_matrix(csr_array(X)).core,
        y.astype(np.int32),
        np.full(len(y), C),
        1.0 - np.eye(n_labels),
        squared,
        seed=5,
        shards=1,
        block=100,
        strips=strips,
    )


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("strips", [2, 5])
def test_strips_give_feasible_dual_variables_and_the_optimum_of_one_example_at_a_time(strips, squared):
    random = np.random.default_rng(4)
    X = sparse_rows(400, 300, 10, random)
    y = random.integers(0, 8, 400)
    X.data /= 4  # C ‖x‖² about 1: both converge in few epochs
    whole, cut, threads = (cut_ascent(X, y, k, squared) for k in (1, strips, strips))
    assert (whole.strips, cut.strips) == (1, strips)
    values = []
    for _ in range(80):
        whole.epoch(1)
        whole.check(0.0, 1)
        cut.epoch(1)
        threads.epoch(3)
        values.append(cut.check(0.0, 1))
        assert threads.check(0.0, 2) == values[-1]
    assert values[-1][0] - values[-1][1] <= 1e-3 * values[-1][0]
    assert values[-1][0] == pytest.approx(whole.check(0.0, 1)[0], rel=1e-3)
    assert np.all(np.diff([d for _, d in values]) >= 0)
    alpha, W = np.empty((400, 8)), np.empty(2400)
    cut.dual_variables(alpha)
    cut.weights(W)
    mass = alpha.sum(axis=1)
    assert (alpha >= 0).all()
    assert squared or (mass <= 1 + 1e-12).all()
    pull = -alpha
    pull[np.arange(400), y] += mass
    np.testing.assert_allclose(W.reshape(300, 8), X.T @ pull, atol=1e-9)
    dual = (alpha * (1.0 - np.eye(8))[y]).sum() - 0.5 * W @ W - (mass @ mass / 4 if squared else 0.0)
    assert values[-1][1] == pytest.approx(dual, rel=1e-9)


@pytest.mark.parametrize("squared", [False, True])
def test_examples_that_are_all_alike_make_batches_smaller_and_never_lower_the_dual(squared):
    """Each example of a batch moves as if it were alone; of many equal ones, all together would go much too far."""
    random = np.random.default_rng(6)
    X = np.tile(np.abs(random.normal(size=(1, 40))), (300, 1))
    y = random.integers(0, 8, 300)
    ascent = cut_ascent(X, y, 2, squared, C=0.01)
    largest = ascent.state()["counts"][3]
    duals = []
    for _ in range(30):
        ascent.epoch(2)
        duals.append(ascent.check(0.0, 1)[1])
    assert ascent.state()["counts"][3] < largest
    assert np.isfinite(duals).all()
    assert np.all(np.diff(duals) >= -1e-9 * np.abs(duals[1:]))
    for _ in range(100):
        ascent.epoch(2)
        primal, dual = ascent.check(0.0, 1)
    assert primal - dual <= 0.01 * primal


def test_rows_that_cannot_be_cut_are_visited_whole():
    y = np.array([0, 1, 2, 3, 4, 5, 6, 7])
    assert cut_ascent(np.eye(8), y, 2).strips == 2
    unsorted = csr_array((np.ones(4), np.array([3, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 8))
    core = Rows.from_matrix(unsorted).core
    few = _core.multiclass.MulticlassDual(
        core, np.array([0, 1], np.int32), np.ones(2), 1.0 - np.eye(2), False, 0, 1, 9, 4
    )
    assert few.strips == 1


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(("shards", "strips"), [(1, 1), (2, 1), (1, 3)])
def test_an_ascent_goes_on_from_its_state_to_the_last_bit(shards, strips, squared):
    random = np.random.default_rng(8)
    X = sparse_rows(300, 200, 8, random)
    y = random.integers(0, 6, 300).astype(np.int32)
    core = Rows.from_matrix(X).core
    fresh = [
        _core.multiclass.MulticlassDual(core, y, np.ones(300), 1.0 - np.eye(6), squared, 3, shards, 20, strips)
        for _ in range(2)
    ]
    for _ in range(3):
        for _ in range(5):
            fresh[0].epoch(1)
        fresh[0].check(1e-9, 1)
    fresh[1].restore(**fresh[0].state())
    ends = []
    for ascent in fresh:
        for _ in range(11):
            ascent.epoch(2)
        W = np.empty(1200)
        ends.append((ascent.check(1e-9, 1), ascent.weights(W), W.tobytes()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros(3)}, "n_features"),
        ({"average": np.full(24, np.nan)}, "finite"),
        ({"starts": np.array([0, 0, 0, 1])}, "starts do not fit"),
        ({"starts": np.array([0, 2, 1, 2])}, "decrease"),
        ({"labels": np.array([0, 9], np.int32)}, "out of range"),
        ({"labels": np.array([2, 0], np.int32)}, "ascend"),
        ({"values": np.array([0.5, -0.5])}, "not negative"),
        ({"values": np.array([0.75, 0.5])}, "above their bound"),
        ({"labels": np.array([0, 1], np.int32)}, "true label"),
        ({"old_labels": np.zeros(10**6, np.int32)}, "old variables"),
        ({"old_values": np.zeros(3)}, "old variables"),
        ({"active": np.array([0, 0])}, "different"),
        ({"active": np.array([3])}, "different"),
        ({"counts": np.array([0, 1])}, "counts"),
        ({"reach": np.array([0.0])}, "reach"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(change, message):
    rows = Rows.from_matrix(csr_array(np.eye(3, 8))).core
    ascent = _core.multiclass.MulticlassDual(rows, np.array([0, 1, 2], np.int32), np.ones(3), ZERO_ONE, False, 0, 1, 10)
    state = {
        **ascent.state(),
        "starts": np.array([0, 0, 2, 2]), "labels": np.array([0, 2], np.int32), "values": np.array([0.5, 0.25]),
    }  # fmt: skip
    ascent.restore(**state)
    with pytest.raises(ValueError, match=message):
        ascent.restore(**{**state, **change})


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shards", [1, 2, 8])
def test_dual_variables_are_feasible_and_give_weights_and_dual_value(shards, squared):
    X, y = problem(300, 10, 5, seed=10)
    X[:, 0] = 0.0
    cost = np.random.default_rng(0).uniform(0, 2, (5, 5))
    np.fill_diagonal(cost, 0.0)
    upper = np.random.default_rng(1).uniform(0.1, 2, len(y))
    ascent = _core.multiclass.MulticlassDual(
        Rows.from_matrix(csr_array(X)).core, y.astype(np.int32), upper, cost, squared, 7, shards, 10
    )
    values = []
    for _ in range(12):
        ascent.epoch(1)
        values.append(ascent.check(0.0, 2))
    alpha, W = np.empty((len(y), 5)), np.empty(50)
    ascent.dual_variables(alpha)
    mass = alpha.sum(axis=1)
    assert (alpha >= 0).all()
    assert (alpha[np.arange(len(y)), y] == 0).all()
    assert squared or np.all(mass <= upper * (1 + 1e-12))
    pull = -alpha
    pull[np.arange(len(y)), y] += mass
    ascent.weights(W)  # averaged over one epoch: that of α
    np.testing.assert_allclose(W.reshape(10, 5), X.T @ pull, atol=1e-10)
    dual = (alpha * cost[y]).sum() - 0.5 * W @ W - ((mass**2 / (4 * upper)).sum() if squared else 0.0)
    primal = margin_objective(W.reshape(10, 5).T, X, y, cost, upper, squared)
    assert values[-1] == pytest.approx((primal, dual), rel=1e-9)
    assert np.all(np.diff([d for _, d in values]) >= 0)


@pytest.mark.parametrize(
    "loss",
    ["hinge", "squared-hinge", "slack", "softmax-margin", "hybrid", "log", RelativeMargin(50.0), Hybrid(0.2)],
    ids=stable,
)
def test_every_loss_classifies_with_its_own_solver_and_with_weights(loss):
    X, y = problem(80, 4, 3, noise=0.1, seed=11)
    repeated = np.repeat(np.arange(len(y)), 1 + np.arange(len(y)) % 2)
    weighted = LinearClassifier(loss, random_state=0).fit(X, y, sample_weight=1.0 + np.arange(len(y)) % 2)
    plain = LinearClassifier(loss, random_state=0).fit(X[repeated], y[repeated])
    assert plain.score(X, y) > 0.85
    assert weighted.history_["objective"][-1] == pytest.approx(plain.history_["objective"][-1], rel=5e-3)


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw"])
def test_generic_solvers_come_to_the_same_optimum(solver):
    X, y = problem(60, 4, 3, seed=12)
    best = LinearClassifier(C=0.1, tol=1e-8).fit(X, y).history_["primal"][-1]
    other = LinearClassifier(C=0.1, solver=solver, tol=1e-4, random_state=0).fit(X, y)
    assert best * (1 - 1e-8) <= other.history_["primal"][-1] <= best * (1 + 2e-4)


def test_class_weight_equals_sample_weight():
    X, y = problem(90, 4, 3, seed=13)
    by_class = LinearClassifier(class_weight={0: 1.0, 1: 2.0, 2: 5.0}).fit(X, y)
    by_example = LinearClassifier().fit(X, y, sample_weight=np.array([1.0, 2.0, 5.0])[y])
    np.testing.assert_allclose(by_class.coef_, by_example.coef_, atol=1e-7)
    assert LinearClassifier(class_weight="balanced").fit(X, y).score(X, y) > 0.5


def test_probabilities_come_with_the_log_loss_alone():
    X, y = problem(50, 4, 3, seed=14)
    p = LinearClassifier("log").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    model = LinearClassifier().fit(X, y)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_saved_models_predict_the_same(tmp_path, names, k):
    X, y = problem(60, 4, k, seed=15)
    y = np.array(["ä", "b", "c"])[y] if names else y * 10
    cost = CostMatrix(2.0 - 2.0 * np.eye(k))
    model = LinearClassifier(RelativeMargin(20.0), cost=cost, class_weight={y[0]: 2.0}, random_state=0).fit(X, y)
    mercer.save(model, tmp_path / "m.mercer")
    read = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    np.testing.assert_array_equal(read.decision_function(X), model.decision_function(X))
    assert read.loss.B == 20.0
    assert read.get_params()["C"] == model.C
    np.testing.assert_allclose(clone(read).fit(X, y).coef_, model.coef_, atol=1e-12)


def test_works_in_a_grid_search():
    X, y = problem(90, 4, 3, seed=16)
    search = GridSearchCV(LinearClassifier(), {"C": [0.01, 1.0], "loss": ["hinge", "log"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


def test_too_few_epochs_warn_and_keep_the_history():
    X, y = problem(300, 10, 5, seed=17)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = LinearClassifier(C=100.0, max_iter=2).fit(X, y)
    assert not model.converged_
    assert model.history_["gap"][-1] > 1e-4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cost": np.ones((2, 2)) - np.eye(2)}, "cost matrix is for 2 labels, the data has 3"),
        ({"cost": np.ones((2, 3))}, "square"),
        ({"cost": np.ones((3, 3))}, "diagonal"),
        ({"cost": np.eye(3) - 1}, "negative"),
        ({"cost": np.full((3, 3), np.nan)}, "finite"),
        ({"cost": {"cow": 2.0}}, "'cow'"),
        ({"cost": Taxonomy([(0, 1)])}, "no node for the label 2"),
        ({"cost": "hammer"}, "unknown cost"),
        ({"C": 0.0}, "C must be a positive"),
        ({"C": float("nan")}, "C must be a positive"),
        ({"loss": "hing"}, "unknown loss"),
        ({"solver": "liblinear"}, "unknown solver"),
        ({"solver": "dual", "loss": "log"}, "'hinge' and 'squared-hinge'"),
        ({"penalty": "l1"}, "penalty='l2'"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        LinearClassifier(**settings).fit(X, y)


def test_wrong_data_is_named():
    X, y = problem()
    with pytest.raises(ValueError, match="NaN"):
        LinearClassifier().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match=r"one class: 0$"):
        LinearClassifier().fit(X, np.zeros(len(y), int))
    with pytest.raises(ValueError, match="0 sample"):
        LinearClassifier().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="inconsistent"):
        LinearClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        LinearClassifier().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match=r"non-zero|zero for all"):
        LinearClassifier().fit(X, y, sample_weight=np.zeros(len(y)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 1, 3], np.int32)}, "label is out of range"),
        ({"labels": np.array([0, 1], np.int32)}, "one value for each row"),
        ({"upper": np.array([1.0, -1.0, 1.0])}, "not negative"),
        ({"upper": np.array([1.0, np.inf, 1.0])}, "finite"),
        ({"costs": np.ones((3, 3))}, "diagonal"),
        ({"costs": -ZERO_ONE}, "not negative"),
        ({"costs": np.zeros((3, 2))}, "square"),
        ({"shards": 9}, "shards"),
        ({"block": 0}, "block"),
        ({"strips": 0}, "strips"),
        ({"strips": 2, "shards": 2}, "strips"),
    ],
)
def test_the_binding_checks_its_arrays(change, message):
    arguments = {
        "labels": np.array([0, 1, 2], np.int32), "upper": np.ones(3), "costs": ZERO_ONE, "squared": False, "seed": 0,
        "shards": 1, "block": 10,
    }  # fmt: skip
    rows = Rows.from_matrix(np.eye(3)).core
    with pytest.raises(ValueError, match=message):
        _core.multiclass.MulticlassDual(rows, **{**arguments, **change})
    ascent = _core.multiclass.MulticlassDual(rows, **arguments)
    with pytest.raises(ValueError, match="threads"):
        ascent.epoch(0)
    with pytest.raises(ValueError, match="n_features"):
        ascent.weights(np.empty(5))


@pytest.mark.skipif(len(_core.instruction_sets()) < 2, reason="this processor has one instruction set")
def test_an_ascent_stays_with_its_instruction_set_and_its_state_fits_any_other():
    rng = np.random.default_rng(0)
    n, F, C = 300, 4000, 4
    X = random_array((n, F), density=0.02, format="csr", random_state=1)
    X.sort_indices()
    y = np.asarray(X @ rng.normal(size=(F, C))).argmax(axis=1).astype(np.int32)
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)

    def ascent():
        return _core.multiclass.MulticlassDual(
            _core.linear.Rows(*rows, F, False), y, np.ones(n), 1 - np.eye(C), False, 0, 1, 1000, 2
        )

    before, found = _core.instruction_set(), []
    try:
        for first, second in (_core.instruction_sets()[:2], _core.instruction_sets()[1::-1]):
            _core.use_instruction_set(first)
            one = ascent()
            _core.use_instruction_set(second)
            for _ in range(3):
                one.epoch(1)
            one.check(1e-3, 1)
            found.append(one.state()["w"])
            ascent().restore(**one.state())
    finally:
        _core.use_instruction_set(before)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("solver", ["dual", "bcfw", "bmrm", "cutting-plane"])
def test_the_number_of_iterations_is_in_the_unit_of_the_limit(solver, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=17 iterations"):
        model = LinearClassifier("squared-hinge", solver, tol=1e-14, max_iter=17).fit(X, y)
    assert model.n_iter_ == 17
    mercer.save(model, tmp_path / "m")
    assert mercer.load(tmp_path / "m").n_iter_ == 17
    assert 1 <= LinearClassifier("squared-hinge", solver, tol=1e-3, max_iter=2000).fit(X, y).n_iter_ < 2000
