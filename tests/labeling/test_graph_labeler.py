"""GraphLabeler: structured learning beats nodes one by one, solvers agree, unknown labels, files, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mercer
from mercer.data import Graphs
from mercer.data.labels import TagSequences
from mercer.datasets import make_regions
from mercer.labeling import ApproximateInferenceWarning, GraphInputs, GraphLabeler, Piecewise, PseudoLikelihood
from mercer.learning import Risk
from mercer.structures import GraphLabels

REGIONS = make_regions(76, n_regions=(5, 10))
TRAIN, TEST = slice(0, 56), slice(56, 76)


@pytest.fixture(scope="module")
def small():
    task = make_regions(14, n_regions=(4, 6), random_state=3)
    return task.X, task.y


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid", "softmax-margin"])
def test_structured_models_beat_single_nodes_by_ten_points(loss):
    """The thesis has 24 to 31 points."""
    X, y = REGIONS.X, REGIONS.y
    together = GraphLabeler(loss, C=0.1).fit(X[TRAIN], y[TRAIN])
    alone = GraphLabeler("hinge" if loss == "hinge" else "log", C=0.1, edge_weights="none").fit(X[TRAIN], y[TRAIN])
    assert together.score(X[TEST], y[TEST]) > alone.score(X[TEST], y[TEST]) + 0.10
    assert together.exact_


@pytest.mark.parametrize("training", ["pseudo-likelihood", "piecewise"])
def test_baselines_without_inference_learn(training):
    X, y = REGIONS.X, REGIONS.y
    model = GraphLabeler(training=training, C=0.1).fit(X[TRAIN], y[TRAIN])
    assert model.score(X[TEST], y[TEST]) > 0.5
    with pytest.raises(ValueError, match="goes with loss='log'"):
        GraphLabeler("hinge", training=training).fit(X, y)


@pytest.mark.parametrize(
    ("loss", "solvers"), [("log", ("lbfgs", "bmrm")), ("hinge", ("bcfw", "bmrm", "cutting-plane"))]
)
def test_solvers_agree_on_the_optimum(small, loss, solvers):
    X, y = small
    objectives = []
    for solver in solvers:
        model = GraphLabeler(loss, solver=solver, C=0.5, tol=1e-4, max_iter=2000, random_state=0).fit(X, y)
        inputs = model._inputs(X)
        risk = Risk(model.structure_, model._loss(), inputs, model._read(X, y)[1])
        objectives.append(0.5 * model.coef_ @ model.coef_ + 0.5 * risk.value(model.coef_))
    assert max(objectives) <= min(objectives) * (1 + 1e-3)


def test_the_log_loss_has_one_optimum_from_two_starts(small):
    """Convex."""
    X, y = small
    model = GraphLabeler(C=0.5, tol=1e-9, max_iter=2000).fit(X, y)
    inputs = model._inputs(X)
    risk = Risk(model.structure_, model._loss(), inputs, model._read(X, y)[1])
    from mercer.learning.training import train

    w0 = np.random.default_rng(0).normal(size=len(model.coef_))
    other, _ = train(risk, solver="lbfgs", C=0.5, w0=w0, tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(other.w, model.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", [PseudoLikelihood(), Piecewise()])
def test_gradients_of_baselines_equal_finite_differences(loss):
    task = make_regions(3, n_regions=(4, 5), random_state=0)
    X = GraphInputs.from_list(task.X)
    random = np.random.default_rng(0)
    y = TagSequences(random.integers(-1, 7, size=X.nodes.shape[0]).astype(np.int32), X.offsets)
    structure = GraphLabels(7, X.n_features)
    risk = Risk(structure, loss, X, y)
    w = random.normal(size=structure.n_weights)
    _, gradient = risk.value_and_gradient(w)
    for k in range(0, len(w), 5):
        step = np.zeros(len(w))
        step[k] = 1e-5
        assert np.isclose(gradient[k], (risk.value(w + step) - risk.value(w - step)) / 2e-5, atol=1e-5)


def test_labels_that_are_not_known_are_marginalised(small):
    X, y = small
    hidden = [[None if i % 3 == 0 else label for i, label in enumerate(labels)] for labels in y]
    model = GraphLabeler(C=0.3).fit(X, hidden)
    assert model.score(X, hidden) > 0.7
    assert (model.log_likelihood(X, hidden) >= model.log_likelihood(X, y)).all()
    with pytest.raises(ValueError, match="fully known outputs"):
        GraphLabeler("hinge").fit(X, hidden)


@pytest.mark.parametrize("inference", ["bp", "trw", "mean-field", "dual", "lp", "icm"])
def test_learning_with_approximate_inference_runs_and_says_so(small, inference):
    X, y = small
    loss = "hinge" if inference in ("dual", "lp", "icm") else "log"
    with pytest.warns(ApproximateInferenceWarning, match="approximate"):
        model = GraphLabeler(loss, inference, C=0.1, max_iter=30).fit(X, y)
    assert not model.exact_
    assert model.score(X, y) > 0.6
    assert np.allclose([p.sum(axis=1).max() for p in model.predict_marginals(X)], 1.0)


def test_marginals_samples_and_labels_belong_together(small):
    X, y = small
    model = GraphLabeler(C=0.3, random_state=0).fit(X, y)
    marginals = model.predict_marginals(X)
    drawn = model.sample(X[:1], 4000)[0]
    shares = [[np.mean([row[v] == c for row in drawn]) for c in model.classes_] for v in range(len(y[0]))]
    np.testing.assert_allclose(shares, marginals[0], atol=0.04)
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
    assert model.predict([]) == []


def test_threads_change_nothing(small):
    X, y = small
    one, two = (GraphLabeler(n_jobs=n, C=0.3).fit(X, y).coef_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_saved_model_predicts_the_same(small, tmp_path):
    X, y = small
    model = GraphLabeler("hinge", C=0.3).fit(X, y)
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.predict(X) == model.predict(X)
    assert again.inference_ == model.inference_
    assert again.get_params() == model.get_params()
    meta, arrays = model.to_state()
    with pytest.raises(ValueError, match="coef_ must have the shape"):
        GraphLabeler.from_state(meta, {"coef_": arrays["coef_"][:-1]})
    with pytest.raises(ValueError, match="finite"):
        GraphLabeler.from_state(meta, {"coef_": arrays["coef_"] * np.nan})


def test_it_works_in_model_selection(small):
    X, y = small
    y = [["wet" if label == "water" else "dry" for label in labels] for labels in y]
    search = GridSearchCV(GraphLabeler(), {"C": [0.01, 1.0]}, cv=2, error_score="raise")
    search.fit(X, y)
    assert search.best_params_["C"] in (0.01, 1.0)
    assert clone(search.best_estimator_).get_params()["C"] == search.best_params_["C"]


def test_graphs_with_attributes_and_sparse_features_are_taken():
    rows = np.concatenate([np.eye(3), np.eye(3)[:2]])
    graphs = Graphs([0, 3, 5], [0, 1, 3, 4, 5, 6], [1, 0, 2, 1, 1, 0], node_attributes=rows)
    y = [["a", "b", "a"], ["a", "b"]]
    dense = GraphLabeler().fit(graphs, y)
    from scipy.sparse import csr_array

    sparse = GraphLabeler().fit([(csr_array(np.eye(3)), [(0, 1), (1, 2)]), (csr_array(np.eye(3)[:2]), [(0, 1)])], y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-6)
    assert dense.predict(graphs) == y


def test_attractive_weights_stay_at_zero_or_above():
    ring = [(i, (i + 1) % 6) for i in range(6)]
    random = np.random.default_rng(0)
    y = [[0, 1] * 3] * 8  # neighbours always differ: attraction cannot help
    X = [((np.array(labels) + random.normal(size=6))[:, None], ring) for labels in y]
    model = GraphLabeler(edge_weights="attractive").fit(X, y)
    assert (model.pair_weights_ == 0).all()
    free = GraphLabeler(edge_weights="potts").fit(X, y)
    assert free.pair_weights_[0, 0, 0, 0] < 0
    # With edges out of play the constrained optimum is that of single nodes.
    alone = GraphLabeler(edge_weights="none").fit(X, y)
    np.testing.assert_allclose(model.node_weights_, alone.node_weights_, atol=1e-2)


def test_types_of_edges_have_weights_of_their_own():
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(30):
        first = random.integers(2)
        y.append([first, first, 1 - first])  # type 0 joins equal labels, type 1 different ones
        seen = (2.0 * first - 1.0 + 0.1 * random.normal(), 0.0, 0.0)
        X.append((np.array(seen)[:, None], [(0, 1), (1, 2)], np.ones((2, 1)), [0, 1]))
    model = GraphLabeler(edge_weights="potts").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.pair_weights_[0, 0, 0, 0] > 0 > model.pair_weights_[1, 0, 0, 0]


def test_held_out_data_keeps_the_best_weights(small):
    X, y = small
    model = GraphLabeler(C=10.0, patience=2).fit(X[:8], y[:8], dev=(X[8:], y[8:]))
    assert model.score(X[8:], y[8:]) >= GraphLabeler(C=10.0).fit(X[:8], y[:8]).score(X[8:], y[8:])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda X, y: GraphLabeler().fit([], []), "nothing to learn"),
        (lambda X, y: GraphLabeler().fit(X, y[:-1]), "14 sequences in X, 13 in y"),
        (lambda X, y: GraphLabeler().fit(X[:1], [["a"] * len(y[0])]), "two different labels"),
        (lambda X, y: GraphLabeler(C=0).fit(X, y), "C must be"),
        (lambda X, y: GraphLabeler(inference="x").fit(X, y), "inference must be"),
        (lambda X, y: GraphLabeler(edge_weights="x").fit(X, y), "edge_weights must be"),
        (lambda X, y: GraphLabeler(training="x").fit(X, y), "training must be"),
        (lambda X, y: GraphLabeler(max_iter=2).fit(X, y).predict([(np.eye(3), [])]), "3 node features"),
        (lambda X, y: GraphLabeler("hinge", "cuts").fit(X, y), "cuts"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_input_is_named(small, act, message):
    with pytest.raises(ValueError, match=message):
        act(*small)


def test_a_separable_task_is_learnt_without_error():
    """Zero training loss where a margin of Δ can be had."""
    random = np.random.default_rng(0)
    y = [random.integers(2, size=5) for _ in range(6)]
    X = [(np.eye(2)[labels], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]) for labels in y]
    model = GraphLabeler("hinge", C=100.0).fit(X, y)
    inputs = model._inputs(X)
    risk = Risk(model.structure_, model._loss(), inputs, model._read(X, y)[1])
    assert risk.value(model.coef_) < 1e-2
    assert model.score(X, y) == 1.0


# ---------------------------------------------------------------------------------------------- unusual graphs


def test_a_disconnected_graph_is_labelled_like_its_parts(small):
    X, y = small
    model = GraphLabeler(C=0.3).fit(X, y)
    (a, a_edges), (b, b_edges) = X[0], X[1]
    both = (np.concatenate([a, b]), np.concatenate([a_edges, b_edges + len(a)]))
    assert model.predict([both])[0] == [label for labels in model.predict(X[:2]) for label in labels]
    np.testing.assert_allclose(
        model.predict_marginals([both])[0], np.concatenate(model.predict_marginals(X[:2])), atol=1e-9
    )
    together = model.log_likelihood([both], [y[0] + y[1]])
    np.testing.assert_allclose(together, model.log_likelihood(X[:2], y[:2]).sum(keepdims=True))


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid", "slack", "softmax-margin"])
@pytest.mark.parametrize("inference", ["auto", "bp", "trw", "mean-field", "dual", "icm"])
@pytest.mark.filterwarnings("ignore")
def test_graphs_without_nodes_and_nodes_without_edges_do_no_harm(small, loss, inference):
    X, y = small
    empty, single = (np.zeros((0, 10)), []), (X[0][0][:1], [])
    more, labels = [empty, *X[:4], single], [[], *y[:4], y[0][:1]]
    model = GraphLabeler(loss, inference, C=0.1, max_iter=3).fit(more, labels)
    assert [len(found) for found in model.predict(more)] == [len(a) for a in labels]
    assert model.predict_marginals(more)[0].shape == (0, len(model.classes_))
    assert model.sample([empty], 2) == [[[], []]]
    assert np.isfinite(model.log_likelihood(more, labels)).all()


def test_labels_may_be_one_of_several_and_whole_graphs_may_be_unknown(small):
    X, y = small
    vague = [[{"sky", label} for label in y[0]], [None] * len(y[1]), *y[2:]]
    model = GraphLabeler(C=0.3).fit(X, vague)
    assert model.score(X[2:], y[2:]) > 0.8
    with pytest.raises(ValueError, match="set of possible labels is empty"):
        GraphLabeler().fit(X, [[set(), *y[0][1:]], *y[1:]])
    with pytest.raises(ValueError, match="all are None"):
        GraphLabeler().fit(X, [[None] * len(labels) for labels in y])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ((np.eye(3), [(0, 3)]), "graph 0: edges name nodes from 0 to 2, got \\[0, 3\\]"),
        ((np.eye(3), [(0, -1)]), "nodes from 0 to 2"),
        ((np.eye(3), [(1, 1)]), "two different nodes"),
        ((np.eye(3), [(0.0, 1.0)]), "got float64 of shape"),
        ((np.eye(3), [(0, 1, 2)]), "shape \\(m, 2\\)"),
        ((np.eye(3), [(0, 1)], np.ones((2, 1))), "a row for each of the 1 edges"),
        ((np.eye(3), [(0, 1)], [["a"]]), "edge features must be numbers"),
        ((np.eye(3), [(0, 1)], [[np.nan]]), "NaN or infinity"),
        ((np.eye(3), [(0, 1)], [[1.0]], [0, 1]), "edge types must be 1 integers"),
        ((np.full((3, 3), np.inf), [(0, 1)]), "NaN or infinity"),
    ],
)
def test_graphs_that_do_not_hang_together_are_named(graph, message):
    with pytest.raises(ValueError, match=message):
        GraphLabeler().fit([graph], [["a", "b", "a"]])


@pytest.mark.parametrize("inference", ["cuts", "expansion", "swap"])
@pytest.mark.filterwarnings("ignore")
def test_energies_that_cannot_be_cut_are_refused_with_a_way_out(small, inference):
    X, y = small
    if inference == "cuts":
        y = [["wet" if label == "water" else "dry" for label in labels] for labels in y]
    with pytest.raises(ValueError, match="With edge_weights='attractive' cuts") as refused:
        GraphLabeler("hinge", inference).fit(X, y)
    assert "use method" not in str(refused.value)  # names of methods are those of another function
    model = GraphLabeler("hinge", inference, edge_weights="attractive", max_iter=10).fit(X, y)
    assert model.score(X, y) > 0.5
    assert (model.pair_weights_ >= 0).all()


def test_messages_that_do_not_settle_are_said_with_the_residual_and_advice():
    from mercer.inference import grid_edges

    random = np.random.default_rng(0)
    X = [(random.normal(size=(64, 1)), grid_edges((8, 8)), random.normal(size=(112, 1)))]
    y = [random.integers(2, size=64).tolist()]
    with pytest.warns(ApproximateInferenceWarning):
        model = GraphLabeler(inference="bp", C=0.01, edge_weights="potts", max_iter=2).fit(X, y)
    model.coef_ = np.array([0.1, -0.1, 0.0, 0.0, 12.0])  # strong couplings of both signs: frustration
    for ask in (lambda: model.predict_marginals(X), lambda: model.log_likelihood(X, y)):
        with pytest.warns(ApproximateInferenceWarning, match=r"still changed by up to \d.*inference='trw' settles"):
            ask()


def test_pseudo_likelihood_finds_the_weights_that_labels_were_drawn_with():
    """Consistent, as the likelihood is; piecewise training is not: pieces count neighbours twice."""
    from mercer.inference import grid_edges
    from mercer.learning.losses import Log
    from mercer.learning.training import train

    random = np.random.default_rng(0)
    edges, structure = grid_edges((4, 4)), GraphLabels(2, 2, edge_weights="potts")
    truth = np.array([0.5, -0.5, -0.3, 0.3, 0.8])
    X = GraphInputs.from_list([(random.normal(size=(16, 2)), edges) for _ in range(1000)])
    y = TagSequences(structure.sample(structure.scores(truth, X), 1, random)[0], X.offsets)
    error = {
        loss.name: np.abs(train(Risk(structure, loss, X, y), solver="lbfgs", C=1e4, tol=1e-5)[0].w - truth).max()
        for loss in (Log(), PseudoLikelihood(), Piecewise())
    }
    assert error["log"] < 0.03
    assert error["pseudo-likelihood"] < 0.04
    assert error["piecewise"] > 0.08


def test_a_label_unseen_in_training_counts_as_wrong(small):
    X, y = small
    model = GraphLabeler(C=0.5).fit(X, y)
    answer = model.predict(X)
    unseen = max(model.classes_) + 1 if np.issubdtype(model.classes_.dtype, np.number) else "unseen"
    truth = [list(one) for one in answer]
    truth[0][0] = unseen
    assert model.score(X, truth) == pytest.approx(1 - 1 / sum(map(len, truth)))
    with pytest.raises(ValueError, match="unknown label"):
        model.log_likelihood(X, truth)


@pytest.mark.parametrize(
    "options",
    [*({"edge_weights": name} for name in ("symmetric", "directed", "potts", "attractive")), {"bias": False}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::mercer.exceptions.ConvergenceWarning")
def test_names_of_weights_say_where_they_stand(options):
    rng = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2]])
    X = [(rng.normal(size=(3, 2)), edges, rng.random((2, 2)), np.array([0, 1])) for _ in range(6)]
    y = [["a", "b", "c"], ["b", "c", "a"]] * 3
    model = GraphLabeler(max_iter=2, random_state=0, **options).fit(X, y)
    names = [model._weight_name(k) for k in range(len(model.coef_))]
    assert len(set(names)) == len(names)
    labels = ["a", "b", "c"]
    of_name = dict(zip(names, model.coef_.tolist(), strict=True))
    for k, row in enumerate(model.node_weights_):
        feature = "bias" if k == 2 else f"x{k}"
        assert [of_name[f"{feature}: {label}"] for label in labels] == row.tolist()
    pairs = model.pair_weights_
    assert pairs.shape[0] == 2
    for kind, feature in np.ndindex(*pairs.shape[:2]):
        prefix = f"type {kind}, edge e{feature}: "
        for name, value in of_name.items():
            if name.startswith(prefix):
                what = name.removeprefix(prefix)
                i, j = (0, 0) if what == "equal labels" else (labels.index(c) for c in what.split(" – "))
                assert pairs[kind, feature, i, j] == value
