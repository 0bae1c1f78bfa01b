"""Retrieval by several attributes: costs and oracles against all sets, training against the plain hinge, selection."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

import mercer
from mercer.attributes import AttributeRetriever
from mercer.attributes._information import TreeInformation, empirical_information
from mercer.attributes.retriever import area_under_curve, linear_scores
from mercer.inference import ChowLiuTree
from mercer.learning.losses import Hinge
from mercer.learning.risk import Risk
from mercer.learning.training import train
from mercer.structures.label_sets import LabelSetScores
from mercer.structures.row_sets import COSTS, Queries, RowSets


def task(n=60, m=8, A=3, seed=0, noise=0.5):
    """Rows with A hidden attributes, seen through m weak ones."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, A)) < 0.5).astype(int)
    return Y @ rng.normal(size=(A, m)) + noise * rng.normal(size=(n, m)), Y


def queries_of(A, sizes=(1, 2, 3)):
    return [q for size in sizes for q in itertools.combinations(range(A), size)]


def members_of(queries, A):
    members = np.zeros((len(queries), A))
    for k, query in enumerate(queries):
        members[k, list(query)] = 1.0
    return members


# ------------------------------------------------------------------------------------------------ the structure


def f_beta(y, z, beta):
    right = (y & z).sum()
    total = z.sum() + beta**2 * y.sum()
    return 1.0 if total == 0 else (1 + beta**2) * right / total


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("empty", [False, True])
def test_the_most_violating_set_is_the_worst_of_all_sets(cost, empty):
    rng = np.random.default_rng(0)
    for _ in range(10):
        Z = rng.normal(size=(8, 3))
        structure = RowSets(Z, 2, cost, 0.7)
        X = Queries(np.array([[1.0, 1.0]]))
        y = np.zeros((1, 8), np.int8) if empty else (rng.random((1, 8)) < 0.4).astype(np.int8)
        w = rng.normal(size=6) * 2
        theta = structure.scores(w, X)
        z, value, delta = structure.most_violating(theta, y)
        best = -np.inf
        for states in itertools.product((0, 1), repeat=8):
            other = np.array([states], np.int8)
            if cost == "precision" and other.sum() != y.sum():
                continue
            best = max(best, float((structure.cost_between(y, other) + structure.score(theta, other))[0]))
        assert value[0] == pytest.approx(best)
        assert delta[0] == pytest.approx(structure.cost_between(y, z)[0])
        assert structure.score(theta, z)[0] + delta[0] == pytest.approx(best)


def test_costs_are_what_their_names_say():
    rng = np.random.default_rng(1)
    y, z = (rng.random((2, 20, 9)) < 0.4).astype(int)
    Z = np.zeros((9, 1))
    assert (RowSets(Z, 1, "hamming").cost_between(y, z) == (y != z).sum(axis=1)).all()
    missed = np.array([(a > b).sum() / max(a.sum(), 1) for a, b in zip(y, z, strict=True)])
    alarms = np.array([(a < b).sum() / max((1 - a).sum(), 1) for a, b in zip(y, z, strict=True)])
    assert RowSets(Z, 1, "balanced").cost_between(y, z) == pytest.approx(9 * (missed + alarms) / 2)
    expected = [9 * (1 - f_beta(a, b, 2.0)) for a, b in zip(y, z, strict=True)]
    assert RowSets(Z, 1, "f-beta", 2.0).cost_between(y, z) == pytest.approx(expected)
    right = (y & z).sum(axis=1) / np.maximum(y.sum(axis=1), 1)
    assert RowSets(Z, 1, "precision").cost_between(y, z) == pytest.approx(9 * (1 - np.where(y.any(axis=1), right, 1.0)))


def test_gradients_equal_finite_differences():
    Z, Y = task(15, 4, 3)
    queries = queries_of(3)
    rng = np.random.default_rng(0)
    X = Queries(members_of(queries, 3), (rng.random((7, 4)) < 0.6).astype(float))
    truth = np.stack([Y[:, q].all(axis=1) for q in queries]).astype(np.int8)
    for cost in COSTS:
        risk = Risk(RowSets(Z, 3, cost), Hinge(), X, truth)
        w, direction = rng.normal(size=12), rng.normal(size=12)
        value, gradient = risk.value_and_gradient(w)
        numeric = (risk.value(w + 1e-6 * direction) - risk.value(w - 1e-6 * direction)) / 2e-6
        assert gradient @ direction == pytest.approx(numeric, rel=1e-4)
        values, slopes, offsets = risk.oracle(w)
        assert values.sum() == pytest.approx(value)
        assert offsets - slopes @ w == pytest.approx(values)


@pytest.mark.parametrize("solver", ["cutting-plane", "bcfw"])
def test_training_reaches_the_optimum_of_the_plain_hinge(solver):
    """With the Hamming cost the structured hinge is Σ max(0, 1 ∓ s) over queries and rows: solved here by smoothing."""
    Z, Y = task(60, 5, 3)
    queries = queries_of(3)
    members = members_of(queries, 3)
    truth = np.stack([Y[:, q].all(axis=1) for q in queries])
    sign = np.where(truth, 1.0, -1.0)
    C = 0.05

    def smooth(w, width):
        s = members @ w.reshape(3, 5) @ Z.T
        gap = 1.0 - sign * s
        inner = np.clip(gap / width, 0.0, 1.0)
        loss = np.where(gap >= width, gap - width / 2, gap * inner / 2)
        slope = -C * (members.T @ ((inner * sign) @ Z)).ravel()
        return 0.5 * w @ w + C * loss.sum(), w + slope

    w = np.zeros(15)
    for width in (1.0, 0.1, 1e-2, 1e-3, 1e-4):
        w = minimize(smooth, w, args=(width,), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}).x
    exact = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - sign * (members @ w.reshape(3, 5) @ Z.T)).sum()
    risk = Risk(RowSets(Z, 3), Hinge(), Queries(members), truth.astype(np.int8))
    result, _ = train(risk, solver=solver, C=C, tol=1e-5, max_iter=3000, warn=False)
    found = 0.5 * result.w @ result.w + C * risk.value(result.w)
    assert found == pytest.approx(exact, rel=1e-3)
    scores = [members[3] @ v.reshape(3, 5) @ Z.T for v in (w, result.w)]
    assert np.corrcoef(*scores)[0, 1] > 0.999


# ------------------------------------------------------------------------------------------------ selection


def test_information_equals_counting():
    rng = np.random.default_rng(0)
    Y, bits = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (40, 4)).astype(float)
    bits[:, 1] = Y[:, 0]
    for query in ([0], [0, 2], [2, 0, 1]):
        found = empirical_information(Y, bits, query)
        for j in range(4):
            table = np.full((2 ** len(query), 2), 0.5)
            for row, z in zip(Y[:, query], bits[:, j].astype(int), strict=True):
                table[int("".join(map(str, row)), 2), z] += 1
            table /= table.sum()
            h = -(table.sum(axis=1) * np.log(table.sum(axis=1))).sum()
            given = -(table * np.log(table / table.sum(axis=0))).sum()
            assert found[j] == pytest.approx(h - given)


def test_tree_information_equals_enumeration():
    """With one tree for both, imposing its own marginals adds their dependence on z alone: compared on whole tables."""
    rng = np.random.default_rng(0)
    cause = rng.random(400) < 0.5
    data = (cause[:, None] ^ (rng.random((400, 5)) < [0.1, 0.2, 0.2, 0.3, 0.4])).astype(int)
    supervised, unsupervised = ChowLiuTree().fit(data[:100]), ChowLiuTree().fit(data[:, 2:])
    found = TreeInformation(supervised, unsupervised)([0, 1])
    states = np.array(list(itertools.product((0, 1), repeat=5)))
    p = np.exp(supervised.score_samples(states))
    for j in range(3):
        table = np.zeros((4, 2))
        on = unsupervised.marginals()[0, j]
        for z in (0, 1):
            targets = unsupervised.marginals({j: z})[0]
            q = p.copy()
            for _ in range(300):
                for v in range(3):
                    has = states[:, 2 + v] == 1
                    q = q / q.sum()
                    up, down = q[has].sum(), q[~has].sum()
                    q = np.where(has, q * targets[v] / max(up, 1e-300), q * (1 - targets[v]) / max(down, 1e-300))
            for k, (a, b) in enumerate(itertools.product((0, 1), repeat=2)):
                table[k, z] = (on if z else 1 - on) * q[(states[:, 0] == a) & (states[:, 1] == b)].sum()
        r, c = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
        expected = np.where(table > 0, table * np.log(np.maximum(table, 1e-300) / (r * c)), 0.0).sum()
        assert found[j] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("information", ["empirical", "semi-supervised", "latent"])
def test_the_weak_attributes_that_matter_are_found(information):
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 3)) < 0.5).astype(int)
    Z = rng.normal(size=(300, 60))
    Z[:, 10:15] += 2.0 * Y[:, :1]
    Z[:, 30:35] += 2.0 * Y[:, 1:2]
    model = AttributeRetriever(n_weak=5, information=information, max_size=1).fit(Z, Y)
    assert len(set(model.selected(0)) & set(range(10, 15))) >= 4
    assert len(set(model.selected([1])) & set(range(30, 35))) >= 4
    weights = model.weights_of(0)[0]
    assert set(np.flatnonzero(weights)) <= set(model.selected(0))
    assert len(set(model.selected([0, 1])) & {*range(10, 15), *range(30, 35)}) >= 4
    assert model.information_of(0).argmax() in range(10, 15)


def test_rows_without_labels_help_to_choose():
    """Few labelled rows: a tree of weak attributes from many others, beside counting."""
    gains = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        hidden = rng.random((4040, 4)) < 0.5
        Z = np.repeat(hidden, 6, axis=1) + 0.8 * rng.normal(size=(4040, 24))
        Z = np.hstack([Z, rng.normal(size=(4040, 26))])
        Y = hidden.astype(int)
        areas = []
        for information, more in (("semi-supervised", {"unlabelled": Z[40:2040]}), ("empirical", {})):
            model = AttributeRetriever(n_weak=10, information=information, max_size=2).fit(Z[:40], Y[:40], **more)
            areas.append(model.score(Z[2040:], Y[2040:]))
        gains.append(areas[0] - areas[1])
    assert np.mean(gains) > -0.01


def test_a_choice_of_weak_attributes_helps_where_labelled_rows_are_few():
    scores = {"sparse": [], "all": [], "marr": [], "sum": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Y = (rng.random((1060, 4)) < 0.5).astype(int)
        Z = rng.normal(size=(1060, 150))
        for q in range(4):
            Z[:, 10 * q : 10 * q + 5] += 0.8 * Y[:, q : q + 1]
        options = {"sparse": {"n_weak": 15}, "all": {}, "marr": {"method": "marr"}, "sum": {"method": "sum"}}
        for name, option in options.items():
            scores[name].append(AttributeRetriever(max_size=2, **option).fit(Z[:60], Y[:60]).score(Z[60:], Y[60:]))
    means = {name: np.mean(values) for name, values in scores.items()}
    assert means["sparse"] > means["all"]
    assert means["sparse"] > means["marr"]
    assert means["sparse"] > means["sum"]


# ------------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize("method", ["structured", "marr", "sum"])
@pytest.mark.parametrize("loss", COSTS)
def test_every_method_and_loss_ranks(method, loss):
    Z, Y = task(150, 10)
    model = AttributeRetriever(method, loss, tol=0.05).fit(Z[:100], Y[:100])
    areas = model.auc(Z[100:], Y[100:])
    assert min(areas.values()) > 0.85
    assert model.score(Z[100:], Y[100:]) == pytest.approx(np.mean(list(areas.values())))


def test_answers_are_those_of_the_scores():
    Z, Y = task(150, 10)
    names = np.array(["old", "red", "round"])
    model = AttributeRetriever().fit(Z[:100], [list(names[row == 1]) for row in Y[:100]])
    new = Z[100:]
    scores = model.query_scores(new, ["red", "old"])
    weights, offset = model.weights_of(("old", "red"))
    assert scores == pytest.approx(new @ weights + offset)
    assert scores == pytest.approx(model.query_scores(new, "red") + model.query_scores(new, "old"))
    ranking = model.rank(new, ["red", "old"])
    assert (ranking.rows == np.argsort(-scores, kind="stable")).all()
    assert (ranking.scores == scores[ranking.rows]).all()
    assert (model.rank(new, ["red", "old"], k=7).rows == ranking.rows[:7]).all()
    assert (model.retrieve(new, ["red", "old"]) == np.flatnonzero(scores > 0)).all()
    assert model.decision_function(new)[:, 1] == pytest.approx(model.query_scores(new, "red"))


def test_large_arrays_are_ranked_in_blocks_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.attributes.retriever._BLOCK", 16)
    Z, Y = task(150, 10)
    model = AttributeRetriever(n_weak=4).fit(Z[:100], Y[:100])
    expected = model.query_scores(Z, [0, 2])
    for order in "CF":
        for kind in (np.float32, np.float64, np.float16):
            stored = np.memmap(tmp_path / f"{order}", kind, "w+", shape=Z.shape, order=order)
            stored[:] = Z
            assert model.query_scores(stored, [0, 2]) == pytest.approx(expected, abs=0.02)
    stored[3, model.selected([0, 2])[0]] = np.nan
    with pytest.raises(ValueError, match="row 3 of Z contains NaN"):
        model.rank(stored, [0, 2])
    with pytest.raises(ValueError, match="training had 10"):
        model.rank(np.zeros((40, 9)), 0)
    assert linear_scores(np.ones((3, 2)), np.zeros(2)).tolist() == [0.0] * 3


def test_the_area_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, scores = rng.random(50) < 0.3, rng.integers(0, 8, 50)
    assert area_under_curve(scores, truth) == pytest.approx(roc_auc_score(truth, scores))
    assert np.isnan(area_under_curve(scores, np.ones(50, bool)))


@pytest.mark.parametrize("information", ["empirical", "semi-supervised", "latent"])
def test_a_saved_model_answers_the_same(tmp_path, information):
    Z, Y = task(100, 12)
    model = AttributeRetriever(n_weak=4, information=information).fit(Z, Y)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    for query in queries_of(3):
        assert (again.query_scores(Z, query) == model.query_scores(Z, query)).all()
        assert (again.selected(query) == model.selected(query)).all()


@pytest.mark.parametrize(
    ("query", "message"),
    [("blue", "'blue', which is no attribute of training"), ([], "empty"), (["red", 5], "5, which is no attribute")],
)
def test_unknown_attributes_in_a_query_are_named(query, message):
    Z, Y = task(40)
    model = AttributeRetriever("sum").fit(Z, [list(np.array(["old", "red", "round"])[row == 1]) for row in Y])
    with pytest.raises(ValueError, match=message):
        model.rank(Z, query)


def test_attributes_that_are_never_or_always_on_are_named():
    Z, Y = task(60, A=4)
    Y[:, 1], Y[:, 2] = 0, 1
    with (
        pytest.warns(UserWarning, match=r"1 is never on in training"),
        pytest.warns(UserWarning, match="2 is always on"),
    ):
        model = AttributeRetriever().fit(Z, Y)
    with pytest.raises(ValueError, match="1, which was never on in training"):
        model.rank(Z, [0, 1])
    assert np.isfinite(model.query_scores(Z, [0, 2])).all()
    with pytest.warns(UserWarning, match="never on"), pytest.raises(ValueError, match="nothing to learn"):
        AttributeRetriever().fit(Z, Y[:, 1:3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "svm"}, "method"),
        ({"loss": "auc"}, "loss"),
        ({"n_weak": 0}, "n_weak"),
        ({"method": "marr", "n_weak": 3}, "n_weak chooses"),
        ({"C": 0.0}, "C"),
        ({"max_size": 0}, "max_size"),
        ({"information": "tree"}, "information"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    Z, Y = task(30)
    with pytest.raises(ValueError, match=message):
        AttributeRetriever(**options).fit(Z, Y)


def test_wrong_rows_are_named():
    Z, Y = task(30)
    with pytest.raises(ValueError, match="one length"):
        AttributeRetriever().fit(Z, Y[:20])
    with pytest.raises(ValueError, match="0 and 1"):
        AttributeRetriever().fit(Z, Y + 1)
    with pytest.raises(ValueError, match="NaN"):
        AttributeRetriever().fit(np.where(Z > 1, np.nan, Z), Y)
    with pytest.raises(ValueError, match="semi-supervised"):
        AttributeRetriever().fit(Z, Y, unlabelled=Z)
    with pytest.raises(ValueError, match="features"):
        AttributeRetriever(n_weak=2, information="semi-supervised").fit(Z, Y, unlabelled=Z[:, :3])
    model = AttributeRetriever("sum").fit(Z, Y)
    with pytest.raises(ValueError, match="one length"):
        model.auc(Z, Y[:5])
    with pytest.raises(ValueError, match="n_weak"):
        model.information_of(0)


def test_constant_weak_attributes_do_not_matter():
    Z, Y = task(60)
    plain = AttributeRetriever(tol=1e-4).fit(Z, Y).query_scores(Z, [0, 1])
    more = np.c_[Z, np.full(60, 3.0)]
    assert np.corrcoef(AttributeRetriever(tol=1e-4).fit(more, Y).query_scores(more, [0, 1]), plain)[0, 1] > 0.999


# ------------------------------------------------------------------------------------- the structure, few rows


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("cells", [1, 6, 1 << 21])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_most_violating_set_of_few_rows_and_of_tables_in_parts(cost, cells, n, monkeypatch):
    monkeypatch.setattr("mercer.structures.row_sets._CELLS", cells)
    rng = np.random.default_rng(n)
    structure = RowSets(np.zeros((n, 1)), 1, cost, 0.7)
    every = np.array(list(itertools.product((0, 1), repeat=n)), np.int8)
    scores = rng.normal(size=(len(every), n)).round(2)
    constant = rng.normal(size=len(every)).round(2)
    theta = LabelSetScores(scores, np.zeros(0), constant)
    for options, scale in (({}, 1.0), ({"scale": 0.5}, 0.5), ({"scale": 3.0}, 3.0)):
        z, value, delta = structure.most_violating(theta, every, **options)
        for i, truth in enumerate(every):
            costs = structure.cost_between(np.tile(truth, (len(every), 1)), every)
            total = scale * costs + every @ scores[i] + constant[i]
            if cost == "precision":
                total = np.where(every.sum(axis=1) == truth.sum(), total, -np.inf)
            assert value[i] == pytest.approx(total.max())
            chosen = int(np.flatnonzero((every == z[i]).all(axis=1))[0])
            assert total[chosen] == pytest.approx(total.max())
            assert delta[i] == pytest.approx(costs[chosen])


@pytest.mark.parametrize(
    ("cost", "y", "z", "expected"),
    [
        ("f-beta", [0, 0, 0], [0, 0, 0], 0.0),
        ("f-beta", [0, 0, 0], [1, 0, 0], 3.0),
        ("f-beta", [1, 0, 0], [0, 0, 0], 3.0),
        ("f-beta", [1, 0, 0], [1, 0, 0], 0.0),
        ("f-beta", [1, 0, 0], [1, 1, 0], 3 * (1 - 1.25 / 2.25)),
        ("precision", [0, 0, 0], [0, 0, 0], 0.0),
        ("precision", [1, 0, 0], [0, 1, 0], 3.0),
        ("precision", [1, 1, 0], [0, 1, 1], 1.5),
        ("balanced", [1, 0, 0], [0, 0, 0], 1.5),
        ("balanced", [1, 0, 0], [1, 1, 0], 0.75),
        ("balanced", [1, 1, 0], [1, 1, 1], 1.5),
        ("balanced", [0, 0, 0], [1, 0, 0], 0.5),
        ("balanced", [1, 1, 1], [0, 1, 1], 0.5),
        ("hamming", [1, 0, 0], [0, 0, 1], 2.0),
    ],
)
def test_costs_of_small_sets(cost, y, z, expected):
    structure = RowSets(np.zeros((3, 1)), 1, cost, 0.5)
    assert structure.cost_between(np.array([y]), np.array([z])) == pytest.approx([expected])
    if cost in ("balanced", "hamming"):
        theta = LabelSetScores(np.zeros((1, 3)), np.zeros(0), np.zeros(1))
        for options, scale in (({}, 1.0), ({"scale": 2.0}, 2.0)):
            augmented = structure.augment(theta, np.array([y]), **options)
            assert structure.score(augmented, np.array([z])) == pytest.approx([scale * expected])


def test_queries_are_scored_a_few_at_a_time(monkeypatch):
    structure = RowSets(np.zeros((4, 1)), 1)
    X = Queries(np.ones((5, 1)))
    assert list(structure.batches(X, 1)) == [slice(0, 5)]
    monkeypatch.setattr("mercer.structures.row_sets._CELLS", 11)
    assert list(structure.batches(X, 1)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    monkeypatch.setattr("mercer.structures.row_sets._CELLS", 3)
    assert [part.stop - part.start for part in structure.batches(X, 1)] == [1] * 5
