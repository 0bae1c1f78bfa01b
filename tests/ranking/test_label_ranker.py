"""Label rankers: the objective of preference graphs, its special cases, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.svm import LinearSVC

import mercer
from mercer.ranking import LabelRanker, preference_graph
from mercer.ranking.label_ranker import _stars
from mercer.ranking.risks import LabelRankingRisk
from reference import ranking as reference
from reference.histories import without_seconds

TOL = 1e-6


def make(seed=0, n=40, d=4, labels=3, noise=0.5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ random.normal(size=(d, labels)) + noise * random.normal(size=(n, labels))


def objective(model, X, parts):
    W = np.column_stack([model.coef_, model.intercept_])
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    numbered = [[[(place[u], place[v]) for u, v in part] for part in graph] for graph in parts]
    return 0.5 * (W**2).sum() + model.C * reference.label_ranking_loss(model.decision_function(X), numbered)


# -------------------------------------------------------------------------------------------------- the loss


@st.composite
def problems(draw):
    n, labels = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    pairs = [(u, v) for u in range(labels) for v in range(labels) if u < v]
    graphs = []
    for _ in range(n):
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
        graphs.append([pair[::-1] if draw(st.booleans()) else pair for pair in chosen])
    F = np.array(draw(st.lists(st.integers(-6, 6), min_size=n * labels, max_size=n * labels))) / 4
    return graphs, F.reshape(n, labels)


@given(problems(), st.sampled_from(["edges", "star"]))
@settings(max_examples=50, deadline=None)
def test_loss_is_that_of_the_definition_and_its_slope_a_subgradient(problem, decomposition):
    graphs, F = problem
    parts = [_stars(graph) if decomposition == "star" else [[edge] for edge in graph] for graph in graphs]
    if not any(graphs):
        return
    risk = LabelRankingRisk(np.eye(len(F)), parts, F.shape[1])
    value, slope = risk.loss_of(F)
    assert value == pytest.approx(reference.label_ranking_loss(F, parts), abs=1e-12)
    random = np.random.default_rng(0)
    for scale in (0.1, 1.0):
        Z = F + scale * random.normal(size=F.shape)
        assert reference.label_ranking_loss(Z, parts) >= value + (slope * (Z - F)).sum() - 1e-9


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_in_the_weights_is_that_of_finite_differences(squared, intercept, sparse):
    X, scores = make(n=12)
    parts = [_stars(graph) for graph in preference_graph.from_ranking(np.argsort(-scores, axis=1))]
    risk = LabelRankingRisk(sp.csr_matrix(X) if sparse else X, parts, 3, squared=squared, intercept=intercept)
    w = np.random.default_rng(1).normal(size=risk.n_weights)
    value, gradient = risk.value_and_gradient(w)
    for k, step in enumerate(1e-6 * np.eye(risk.n_weights)):
        assert gradient[k] == pytest.approx((risk.value(w + step) - risk.value(w - step)) / 2e-6, abs=1e-5)
    out = np.full(risk.n_weights, np.nan)
    assert risk.value_and_gradient(w, out)[0] == value
    np.testing.assert_array_equal(out, gradient)


# -------------------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("graph", ["label", "multilabel"])
def test_stars_from_the_right_label_are_the_multiclass_machine(intercept, graph):
    X, scores = make()
    y = scores.argmax(axis=1)
    peer = LinearSVC(
        multi_class="crammer_singer", C=0.5, fit_intercept=intercept, tol=1e-9, max_iter=10**6, random_state=0
    ).fit(X, y)
    graphs = preference_graph.from_label(y) if graph == "label" else preference_graph.from_multilabel(np.eye(3)[y])
    model = LabelRanker("star", C=0.5, fit_intercept=intercept, tol=TOL, max_iter=5000).fit(X, graphs)
    W = np.column_stack([peer.coef_, peer.intercept_]) if intercept else peer.coef_
    F = peer.decision_function(X)
    expected = 0.5 * (W**2).sum() + 0.5 * reference.label_ranking_loss(F, [[graph] for graph in graphs])
    assert objective(model, X, [[graph] for graph in graphs]) == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=0.02)
    np.testing.assert_array_equal(model.predict(X)[:, 0], F.argmax(axis=1))


@pytest.mark.parametrize("decomposition", ["edges", "star", "whole"])
def test_every_decomposition_reaches_the_optimum_of_the_quadratic_program(decomposition):
    X, scores = make(n=6, d=2)
    graphs = preference_graph.from_ranking(np.argsort(-scores, axis=1).tolist())
    cut = {"edges": lambda g: [[e] for e in g], "star": _stars, "whole": lambda g: [g]}[decomposition]
    parts = [cut(graph) for graph in graphs]
    groups = []
    for x, graph in zip(X, parts, strict=True):
        for part in graph:
            planes = [(np.zeros(6), 0.0)]
            for u, v in part:
                a = np.zeros((3, 2))
                a[u], a[v] = -x, x
                planes.append((a.ravel() / len(graph), 1.0 / len(graph)))
            groups.append(planes)
    expected, _ = reference.optimum_of_planes(groups, 2.0, 6)
    given = (lambda g: [g]) if decomposition == "whole" else decomposition
    model = LabelRanker(given, C=2.0, fit_intercept=False, tol=TOL, max_iter=5000).fit(X, graphs)
    assert objective(model, X, parts) == pytest.approx(expected, rel=1e-4)
    assert model.history_["gap"][-1] <= TOL


def test_squared_hinge_reaches_one_optimum_from_two_solvers():
    X, scores = make()
    graphs = preference_graph.from_ranking(np.argsort(-scores, axis=1))
    one, two = (
        LabelRanker(loss="squared-hinge", solver=solver, C=0.1, tol=1e-6, max_iter=5000).fit(X, graphs)
        for solver in ("bmrm", "lbfgs")
    )
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)


# -------------------------------------------------------------------------------------------------- what it learns


def test_rankings_of_unseen_examples_are_recovered():
    X, scores = make(n=400, d=5, labels=5, noise=0.0)
    rankings = np.argsort(-scores, axis=1)
    graphs = preference_graph.from_ranking(rankings)
    model = LabelRanker(C=1.0, n_jobs=2).fit(X[:300], graphs[:300])
    assert model.score(X[300:], graphs[300:]) > 0.95
    assert (model.predict(X[300:])[:, 0] == rankings[300:, 0]).mean() > 0.9


def test_labels_may_be_words_and_preferences_few():
    X, scores = make(n=200, noise=0.0)
    names = np.array(["tea", "milk", "water"])
    graphs = [
        [] if i % 5 == 0 else preference_graph.from_ranking([names[np.argsort(-s)[:2]]])[0]
        for i, s in enumerate(scores)
    ]
    model = LabelRanker(C=1.0).fit(X, graphs)
    assert model.classes_.tolist() == ["milk", "tea", "water"]
    assert model.predict(X).shape == (200, 3)
    assert model.score(X, graphs) > 0.95


def test_dense_and_sparse_features_give_the_same_model():
    X, scores = make()
    graphs = preference_graph.from_ranking(np.argsort(-scores, axis=1))
    dense = LabelRanker(C=0.1, tol=1e-7).fit(X, graphs)
    sparse = LabelRanker(C=0.1, tol=1e-7).fit(sp.csc_matrix(X), graphs)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-4)


@pytest.mark.parametrize("names", [("a", "b", "c"), (10, 20, 30)])
def test_a_saved_ranker_predicts_the_same(names, tmp_path):
    X, scores = make()
    graphs = preference_graph.from_label(np.array(names)[scores.argmax(axis=1)])
    model = LabelRanker("star").fit(X, graphs)
    mercer.save(model, tmp_path / "labels.mercer")
    loaded = mercer.load(tmp_path / "labels.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert without_seconds(loaded.history_) == without_seconds(model.history_)
    meta, arrays = model.to_state()
    for name, array in (("coef", np.zeros((2, 4))), ("intercept", np.full(3, np.inf))):
        with pytest.raises(ValueError, match=name):
            LabelRanker.from_state(meta, {**arrays, f"{name}_": array})
    twice = {"kind": "objects", "shape": [3], "dtype": "U", "items": {"kind": "list", "items": ["a", "a", "b"]}}
    with pytest.raises(ValueError, match="classes"):
        LabelRanker.from_state({**meta, "fitted": {**meta["fitted"], "classes_": twice}}, arrays)


def test_a_function_is_not_written_to_a_file(tmp_path):
    X, scores = make()
    model = LabelRanker(lambda graph: [graph]).fit(X, preference_graph.from_label(scores.argmax(axis=1)))
    with pytest.raises(TypeError, match="set_params"):
        mercer.save(model, tmp_path / "labels.mercer")
    mercer.save(model.set_params(decomposition="edges"), tmp_path / "labels.mercer")


# ------------------------------------------------------------------------------------------------ graphs and bad input


def test_graphs_are_made_of_labels_sets_and_rankings():
    assert preference_graph.from_label([1, 0]) == [[(1, 0)], [(0, 1)]]
    assert preference_graph.from_label(np.array(["b"]), ["a", "b", "c"]) == [[("b", "a"), ("b", "c")]]
    expected = [[(0, 1), (2, 1)], [], []]
    for Y in ([[1, 0, 1], [0, 0, 0], [1, 1, 1]], [{0, 2}, set(), {0, 1, 2}]):
        assert preference_graph.from_multilabel(Y) == expected
    assert preference_graph.from_multilabel(sp.csr_matrix([[1, 0, 1]])) == expected[:1]
    assert preference_graph.from_ranking(np.array([[2, 0, 1]])) == [[(2, 0), (2, 1), (0, 1)]]


@pytest.mark.parametrize(
    ("make_graphs", "match"),
    [
        (lambda: preference_graph.from_label(["d"], ["a", "b"]), "not in classes"),
        (lambda: preference_graph.from_label(["a", "a"]), "at least two labels"),
        (lambda: preference_graph.from_label(["a"], ["a", "a", "b"]), "twice"),
        (lambda: preference_graph.from_multilabel([[0, 2]]), "0 and 1"),
        (lambda: preference_graph.from_multilabel([0, 1]), "matrix"),
        (lambda: preference_graph.from_multilabel([[0, 1]], ["a"]), "at least two labels|columns"),
        (lambda: preference_graph.from_multilabel([{"c"}], ["a", "b"]), "not in classes"),
        (lambda: preference_graph.from_ranking([["a", "b", "a"]]), "twice"),
    ],
)
def test_wrong_labels_sets_and_rankings_are_named(make_graphs, match):
    with pytest.raises(ValueError, match=match):
        make_graphs()


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([[(0, 0)], []], r"y\[0\] prefers 0 to itself"),
        ([[], [(0, 1), (1, 0)]], r"y\[1\] prefers 0 to 1 and 1 to 0"),
        ([[(0, 1), (0, 1)], []], "twice"),
        ([[], []], "no preferences"),
        ([[(0, 1)]], "2 rows and y 1"),
        ([[(0, 1, 2)], []], r"edges \(u, v\)"),
        ([["ab"], []], r"edges \(u, v\)"),
        ([[([], 1)], []], r"edges \(u, v\)"),
        (["ab", []], "list of edges"),
        ([1, 2], "list of edges"),
        ("ab", "preference graph"),
        (None, "preference graph"),
        ([[(0, "a")], []], "all be strings or all be numbers"),
        ([[(0, (1, 2))], []], "strings or numbers"),
        ([[(0, float("nan"))], []], "NaN"),
    ],
)
def test_what_is_no_preference_graph_is_named(y, match):
    with pytest.raises(ValueError, match=match):
        LabelRanker().fit(np.eye(2), y)


def test_longer_cycles_are_allowed():
    model = LabelRanker().fit(np.eye(2), [[(0, 1), (1, 2), (2, 0)], [(0, 1)]])
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("decomposition", "match"),
    [
        ("trees", "decomposition"),
        (None, "decomposition"),
        (lambda graph: [[]], "empty part"),
        (lambda graph: [graph[:1]], "leaves out"),
        (lambda graph: [[*graph, (5, 6)]], "no edge of the graph"),
    ],
)
def test_wrong_decompositions_are_named(decomposition, match):
    with pytest.raises(ValueError, match=match):
        LabelRanker(decomposition).fit(np.eye(2), [[(0, 1), (0, 2)], []])


def test_other_wrong_input_is_named():
    graphs = [[(0, 1)], [(1, 0)]]
    with pytest.raises(ValueError, match="NaN"):
        LabelRanker().fit([[np.nan], [1.0]], graphs)
    with pytest.raises(ValueError, match="loss"):
        LabelRanker(loss="log").fit(np.eye(2), graphs)
    with pytest.raises(ValueError, match="decomposition='edges'"):
        LabelRanker("star", loss="squared-hinge", solver="lbfgs").fit(np.eye(2), graphs)
    with pytest.raises(NotFittedError):
        LabelRanker().predict(np.eye(2))
    model = LabelRanker().fit(np.eye(2), graphs)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.eye(3))
    with pytest.raises(ValueError, match="does not know"):
        model.score(np.eye(2), [[(0, 7)], []])
    with pytest.raises(ValueError, match="no preferences"):
        model.score(np.eye(2), [[], []])
    with pytest.raises(ValueError, match="2 rows and y 1"):
        model.score(np.eye(2), [[(0, 1)]])
