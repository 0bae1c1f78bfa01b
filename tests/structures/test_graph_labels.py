"""Labellings of graphs: every verb equals enumeration, every gradient finite differences, and bounds hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from mercer.data.labels import TagSequences
from mercer.inference import TreewidthError
from mercer.learning import Risk
from mercer.learning.losses import LOSSES
from mercer.structures import GraphInputs, GraphLabels, GraphScores, Hamming
from mercer.structures.graph_labels import EDGE_WEIGHTS, _log_losses

KINDS = {
    "trees": lambda n: [(i // 2, i) for i in range(1, n)],
    "cycles": lambda n: [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)][: n - 1],
    "cliques": lambda n: list(itertools.combinations(range(n), 2)),
    "no edges": lambda n: [],
}


def make_inputs(kind, *, sizes=(4, 1, 5, 0, 3), features=2, edge_features=2, types=1, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    graphs = []
    for n in sizes:
        edges = np.array(KINDS[kind](n), np.int64).reshape(-1, 2)
        flipped = rng.random(len(edges)) < 0.5
        edges[flipped] = edges[flipped][:, ::-1]
        rows = rng.normal(size=(n, features))
        graphs.append(
            (
                csr_array(rows) if sparse else rows,
                edges,
                rng.random((len(edges), edge_features)),
                rng.integers(types, size=len(edges)),
            )
        )
    return GraphInputs.from_list(graphs)


def make_outputs(X, L, seed=1, hidden=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(L, size=X.nodes.shape[0]).astype(np.int32)
    labels[rng.random(len(labels)) < hidden] = -1
    return TagSequences(labels, X.offsets)


def structure_for(X, L, **options):
    return GraphLabels(L, X.n_features, n_edge_features=X.n_edge_features, n_types=X.n_types, **options)


def enumerated(theta: GraphScores):
    """All labellings of each graph with their scores, from the tables alone."""
    shape, L = theta.shape, theta.nodes.shape[1]
    for i in range(len(theta)):
        a, b = shape.offsets[i], shape.offsets[i + 1]
        edges = range(shape.edge_offsets[i], shape.edge_offsets[i + 1])
        labellings = list(itertools.product(range(L), repeat=b - a))
        scores = [
            sum(theta.nodes[a + v, y[v]] for v in range(b - a))
            + sum(theta.edges[e, y[shape.edges[e, 0] - a], y[shape.edges[e, 1] - a]] for e in edges)
            for y in labellings
        ]
        yield slice(a, b), edges, np.array(labellings).reshape(len(labellings), b - a), np.array(scores, float)


@pytest.fixture(params=["trees", "cycles", "cliques", "no edges"])
def kind(request):
    return request.param


@pytest.mark.parametrize("inference", ["auto", "exact"])
@pytest.mark.parametrize("edge_weights", EDGE_WEIGHTS)
def test_verbs_equal_enumeration(kind, edge_weights, inference):
    X = make_inputs(kind, types=2)
    structure = structure_for(X, 3, edge_weights=edge_weights, inference=inference, threads=2)
    w = np.random.default_rng(3).normal(size=structure.n_weights)
    check_verbs(structure, structure.scores(w, X))


def check_verbs(structure, theta):
    assert structure.plan(theta).exact_sums
    assert structure.plan(theta).exact_maxima
    best, best_score = structure.argmax(theta)
    worst, worst_score = structure.argmin(theta)
    ranked, ranked_scores = structure.k_best(theta, 4)
    mu, entropy = structure.marginals(theta), structure.entropy(theta)
    y = TagSequences(worst, theta.offsets)
    np.testing.assert_allclose(structure.score(theta, y), worst_score, atol=1e-9)
    for i, (nodes, edges, labellings, scores) in enumerate(enumerated(theta)):
        allowed = ~np.isneginf(scores)
        log_z = np.logaddexp.reduce(scores)
        p = np.exp(scores - log_z)
        assert np.isclose(best_score[i], scores.max())
        assert np.isclose(worst_score[i], scores[allowed].min())
        assert np.isclose(scores[(labellings == best[nodes]).all(axis=1)][0], scores.max())
        assert np.isclose(scores[(labellings == worst[nodes]).all(axis=1)][0], scores[allowed].min())
        wanted = np.sort(scores)[::-1][:4]
        np.testing.assert_allclose(ranked_scores[i, : len(wanted)], wanted, atol=1e-9)
        assert np.isneginf(ranked_scores[i, len(wanted) :]).all()
        for r in range(len(wanted)):
            if np.isfinite(wanted[r]):
                assert np.isclose(scores[(labellings == ranked[r, nodes]).all(axis=1)][0], wanted[r])
        assert np.isclose(mu.log_partition[i], log_z)
        assert np.isclose(entropy[i], -(p[p > 0] * np.log(p[p > 0])).sum(), atol=1e-8)
        for l in range(structure.n_labels):
            np.testing.assert_allclose(mu.nodes[nodes, l], p @ (labellings == l), atol=1e-9)
        for e in edges:
            u, v = theta.shape.edges[e] - nodes.start
            for k, l in itertools.product(range(structure.n_labels), repeat=2):
                wanted = p @ ((labellings[:, u] == k) & (labellings[:, v] == l))
                assert np.isclose(mu.edges[e, k, l], wanted, atol=1e-9)


def test_labels_that_are_partly_known_restrict_exactly(kind):
    X = make_inputs(kind)
    structure = structure_for(X, 3)
    theta = structure.scores(np.random.default_rng(0).normal(size=structure.n_weights), X)
    y = make_outputs(X, 3, hidden=0.6)
    y.allowed = np.ones((len(y.labels), 3), np.uint8)
    y.allowed[0] = [0, 1, 1]
    assert structure.is_partial(y)
    check_verbs(structure, structure.restrict(theta, y))


def test_samples_have_the_marginals():
    X = make_inputs("cycles", sizes=(4, 3))
    structure = structure_for(X, 2)
    theta = structure.scores(np.random.default_rng(0).normal(size=structure.n_weights), X)
    drawn = structure.sample(theta, 20_000, 0)
    np.testing.assert_allclose((drawn == 1).mean(axis=0), structure.marginals(theta).nodes[:, 1], atol=0.02)
    np.testing.assert_array_equal(drawn, structure.sample(theta, 20_000, 0))


def test_gibbs_samples_have_nearly_the_marginals_where_inference_is_approximate():
    X = make_inputs("cycles", sizes=(4, 3))
    exact, approximate = structure_for(X, 2), structure_for(X, 2, inference="bp")
    theta = exact.scores(np.random.default_rng(0).normal(size=exact.n_weights), X)
    drawn = approximate.sample(theta, 5000, 0)
    np.testing.assert_allclose((drawn == 1).mean(axis=0), exact.marginals(theta).nodes[:, 1], atol=0.04)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("edge_weights", EDGE_WEIGHTS)
def test_backward_is_the_adjoint_of_scores(kind, edge_weights, sparse):
    X = make_inputs(kind, types=3, sparse=sparse)
    structure = structure_for(X, 3, edge_weights=edge_weights)
    rng = np.random.default_rng(0)
    w = np.abs(rng.normal(size=structure.n_weights))
    theta = structure.scores(w, X)
    mu = structure.zeros(theta)
    mu.nodes, mu.edges = rng.normal(size=mu.nodes.shape), rng.normal(size=mu.edges.shape)
    out = np.zeros(structure.n_weights)
    structure.backward(X, mu, out)
    assert np.isclose(out @ w, (mu.nodes * theta.nodes).sum() + (mu.edges * theta.edges).sum())


@pytest.mark.parametrize("edge_weights", EDGE_WEIGHTS)
def test_difference_is_that_of_features(kind, edge_weights):
    X = make_inputs(kind, types=2, sparse=edge_weights == "directed")
    structure = structure_for(X, 3, edge_weights=edge_weights)
    y, z = make_outputs(X, 3, 1), make_outputs(X, 3, 2)
    rows = structure.difference(X, y, z)
    for i in range(len(X)):
        mu = structure.zeros(structure.scores(np.zeros(structure.n_weights), X[i : i + 1]))
        structure.add_output(mu, y[i : i + 1], np.ones(1))
        structure.add_output(mu, z[i : i + 1], -np.ones(1))
        out = np.zeros(structure.n_weights)
        structure.backward(X[i : i + 1], mu, out)
        np.testing.assert_allclose(rows[[i]].toarray()[0], out, atol=1e-12)
    assert structure.difference(X, y, y).nnz == 0


def test_memory_of_differences_follows_what_differs():
    """A pair of labels of thousands of features: rows that are dense would take gigabytes."""
    n, d = 2000, 50_000
    nodes = csr_array((np.ones(2 * n), np.arange(2 * n) % d, np.arange(2 * n + 1)), shape=(2 * n, d))
    X = GraphInputs(nodes, np.arange(0, 2 * n + 1, 2), np.arange(2 * n).reshape(n, 2))
    y, z = (TagSequences(np.tile(np.array(pair, np.int32), n), X.offsets) for pair in ([0, 1], [0, 2]))
    rows = GraphLabels(3, d, edge_weights="potts").difference(X, y, z)
    assert rows.nnz == 2 * n


def test_slices_of_graphs_give_what_the_whole_gives():
    X = make_inputs("cliques", types=2)
    structure = structure_for(X, 3)
    w = np.random.default_rng(0).normal(size=structure.n_weights)
    whole = structure.marginals(structure.scores(w, X))
    part = structure.marginals(structure.scores(w, X[2:4]))
    np.testing.assert_allclose(part.nodes, whole.nodes[5:10])
    np.testing.assert_allclose(part.log_partition, whole.log_partition[2:4])
    picked = structure.marginals(structure.scores(w, X[np.array([4, 0])]))
    np.testing.assert_allclose(picked.log_partition, whole.log_partition[[4, 0]])


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("edge_weights", ["symmetric", "directed", "attractive"])
def test_gradient_of_every_loss_equals_finite_differences(loss, edge_weights):
    X = make_inputs("cycles", types=2)
    structure = structure_for(X, 3, edge_weights=edge_weights)
    hidden = 0.3 if loss == "log" else 0.0
    risk = Risk(structure, LOSSES[loss](), X, make_outputs(X, 3, hidden=hidden))
    check_gradient(risk, structure)


def check_gradient(risk, structure, atol=1e-5):
    w = np.random.default_rng(5).normal(size=structure.n_weights)
    if structure.edge_weights == "attractive":
        w = np.abs(w)
    _, gradient = risk.value_and_gradient(w)
    for k in range(len(w)):
        step = np.zeros(len(w))
        step[k] = 1e-5
        slope = (risk.value(w + step) - risk.value(w - step)) / 2e-5
        assert np.isclose(gradient[k], slope, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("inference", ["trw", "bp", "mean-field"])
def test_gradient_of_the_approximate_log_loss_equals_finite_differences(inference):
    """Free energies are stationary in their beliefs: the beliefs are the slope even where they are not exact."""
    X = make_inputs("cliques", sizes=(4, 3))
    structure = structure_for(X, 2, inference=inference)
    risk = Risk(structure, LOSSES["log"](), X, make_outputs(X, 2))
    check_gradient(risk, structure, atol=2e-3)


def test_slopes_know_which_weights_counted_when_their_scores_were_made():
    X = make_inputs("cycles")
    structure = structure_for(X, 2, edge_weights="attractive")
    edges = structure.slices["edges"]
    w = np.ones(structure.n_weights)
    above = structure.scores(w, X)
    w[edges] = -1.0
    below = structure.scores(w, X)  # between the scores of the others and their slope
    for theta, counts in ((above, True), (below, False), (structure.scaled(above, 2.0), True)):
        for mu in (structure.marginals(theta), structure.pseudo_likelihood(theta, make_outputs(X, 2))[1]):
            out = np.zeros(structure.n_weights)
            structure.backward(X, mu, out)
            assert out[edges].any() == counts


def test_an_attractive_weight_below_zero_counts_as_zero():
    X = make_inputs("cycles")
    structure = structure_for(X, 2, edge_weights="attractive")
    w = np.random.default_rng(0).normal(size=structure.n_weights)
    w[structure.slices["edges"]] = -1.0
    theta = structure.scores(w, X)
    assert not theta.edges.any()
    out = np.zeros(structure.n_weights)
    structure.backward(X, structure.marginals(theta), out)
    assert not out[structure.slices["edges"]].any()
    assert (structure.feasible(w)[structure.slices["edges"]] == 0).all()


@pytest.mark.parametrize("inference", ["bp", "trw", "mean-field", "expansion", "swap", "lp", "dual", "icm"])
def test_approximate_maxima_are_labellings_and_never_above_the_optimum(inference):
    X = make_inputs("cliques")
    edge_weights = "attractive" if inference in ("expansion", "swap") else "symmetric"
    exact = structure_for(X, 3, edge_weights=edge_weights)
    approximate = structure_for(X, 3, edge_weights=edge_weights, inference=inference)
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=exact.n_weights)
        theta = exact.scores(w, X)
        labels, score = approximate.argmax(theta)
        assert not approximate.plan(theta).exact_maxima
        np.testing.assert_allclose(score, approximate.score(theta, TagSequences(labels, theta.offsets)))
        assert (score <= exact.argmax(theta)[1] + 1e-9).all()
        ranked, scores = approximate.k_best(theta, 2)
        assert (scores[:, 1] <= exact.k_best(theta, 2)[1][:, 1] + 1e-9).all()
        assert (~approximate.equal(*(TagSequences(row, theta.offsets) for row in ranked)))[[0, 2]].all()


def test_cuts_are_exact_for_two_labels_that_attract():
    X = make_inputs("cliques")
    cuts, exact = (structure_for(X, 2, edge_weights="attractive", inference=name) for name in ("cuts", "exact"))
    for seed in range(10):
        theta = cuts.scores(np.random.default_rng(seed).normal(size=cuts.n_weights), X)
        np.testing.assert_allclose(cuts.argmax(theta)[1], exact.argmax(theta)[1])


def test_bounds_of_the_partition_function_lie_on_their_side():
    X = make_inputs("cliques")
    exact, upper, lower = (structure_for(X, 3, inference=name) for name in ("exact", "trw", "mean-field"))
    for seed in range(10):
        theta = exact.scores(np.random.default_rng(seed).normal(size=exact.n_weights), X)
        log_z = exact.log_partition(theta)
        assert (upper.log_partition(theta) >= log_z - 1e-5).all()
        assert (lower.log_partition(theta) <= log_z + 1e-8).all()


@pytest.mark.parametrize(
    ("graphs", "options", "sums", "maxima"),
    [
        ({"kind": "trees"}, {}, "tree", "tree"),
        ({"kind": "cycles"}, {}, "junction-tree", "junction-tree"),
        ({"kind": "cycles"}, {"edge_weights": "attractive"}, "junction-tree", "cuts"),
        ({"kind": "cliques", "sizes": (24,)}, {"edge_weights": "attractive"}, "trw", "cuts"),
        ({"kind": "cliques", "sizes": (24,)}, {}, "trw", "cuts or dual"),
        ({"kind": "cliques", "sizes": (24,)}, {"edge_weights": "none"}, "tree", "tree"),
    ],
)
def test_auto_picks_what_suits_the_graphs(graphs, options, sums, maxima):
    X = make_inputs(**graphs)
    plan = structure_for(X, 2, **options).plan(X)
    assert (plan.sums, plan.maxima) == (sums, maxima)
    assert plan.reason


def test_wide_graphs_are_refused_when_exact_inference_is_asked_for():
    X = make_inputs("cliques", sizes=(30,))
    structure = structure_for(X, 3, inference="exact")
    with pytest.raises(TreewidthError, match="graph 0"):
        structure.argmax(structure.scores(np.zeros(structure.n_weights), X))


def test_wide_graphs_have_all_verbs_that_learning_needs():
    X = make_inputs("cliques", sizes=(24, 3))
    y = make_outputs(X, 3)
    structure = structure_for(X, 3)
    w = 0.1 * np.random.default_rng(0).normal(size=structure.n_weights)
    for loss in ("log", "hinge", "softmax-margin", "hybrid"):
        value, gradient = Risk(structure, LOSSES[loss](), X, y).value_and_gradient(w)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_costs_are_added_to_scores():
    X = make_inputs("trees")
    structure = structure_for(X, 3)
    theta = structure.scores(np.random.default_rng(0).normal(size=structure.n_weights), X)
    y, z = make_outputs(X, 3, 1), make_outputs(X, 3, 2)
    scale = np.arange(1.0, 6.0)
    for cost in (None, Hamming([1.0, 2.0, 5.0])):
        gained = structure.score(structure.augment(theta, y, cost, scale), z) - structure.score(theta, z)
        np.testing.assert_allclose(gained, scale * structure.cost_between(y, z, cost))


def test_training_without_inference_equals_its_definition():
    X = make_inputs("cliques", sizes=(4, 3))
    structure = structure_for(X, 3)
    theta = structure.scores(np.random.default_rng(0).normal(size=structure.n_weights), X)
    y = make_outputs(X, 3)
    value, _ = structure.pseudo_likelihood(theta, y)
    wanted = np.zeros(2)
    for i, (nodes, _, labellings, scores) in enumerate(enumerated(theta)):
        truth = y.labels[nodes]
        for v in range(len(truth)):
            others = np.delete(np.arange(len(truth)), v)
            agree = (labellings[:, others] == truth[others]).all(axis=1)
            right = (labellings == truth).all(axis=1)
            wanted[i] += np.logaddexp.reduce(scores[agree]) - scores[right][0]
    np.testing.assert_allclose(value, wanted)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GraphInputs.from_list([(np.eye(2), [(0, 2)])]), "graph 0: edges name nodes from 0 to 1"),
        (lambda: GraphInputs.from_list([(np.eye(2), [(1, 1)])]), "two different nodes"),
        (lambda: GraphInputs.from_list([(np.full((2, 1), np.nan), [])]), "NaN"),
        (lambda: GraphInputs.from_list([(np.eye(2), []), (np.eye(3), [])]), "different numbers of node features"),
        (lambda: GraphInputs.from_list([(np.eye(2), [(0, 1)], np.ones((2, 1)))]), "each of the 1 edges"),
        (lambda: GraphInputs(np.eye(4), [0, 2, 4], [[1, 2]]), "nodes of two graphs"),
        (lambda: GraphInputs(np.eye(4), [0, 5], []), "begin with 0, end with 4"),
        (lambda: GraphLabels(2, 1, edge_weights="odd"), "edge_weights"),
        (lambda: GraphLabels(2, 1, inference="odd"), "inference"),
        (lambda: GraphLabels(2, 3).scores(np.zeros(9), make_inputs("trees")), "2 node features, the model has 3"),
    ],
)
def test_wrong_inputs_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_margin_losses_equal_enumeration():
    """Hinge, softmax margin and the blend from all labellings; the gap of the soft one is bounded."""
    X = make_inputs("cycles", sizes=(4, 3))
    structure, y = structure_for(X, 3), make_outputs(X, 3)
    theta = structure.scores(np.random.default_rng(0).normal(size=structure.n_weights), X)
    found = {name: LOSSES[name]().value_and_gradient(structure, theta, y)[0] for name in LOSSES}
    for i, (nodes, _, labellings, scores) in enumerate(enumerated(theta)):
        truth = y.labels[nodes]
        cost, right = (labellings != truth).sum(axis=1), (labellings == truth).all(axis=1)
        margin = scores - scores[right][0]
        hinge = (cost + margin).max()
        assert np.isclose(found["hinge"][i], hinge)
        assert np.isclose(found["squared-hinge"][i], hinge**2)
        assert np.isclose(found["softmax-margin"][i], np.logaddexp.reduce(cost + margin))
        assert 0 <= found["softmax-margin"][i] - hinge <= np.log(len(scores))
        log = np.logaddexp.reduce(margin)
        assert np.isclose(found["log"][i], log)
        assert np.isclose(found["hybrid"][i], 0.5 * log + 0.5 * max(0.0, 1 + margin[~right].max()))
        assert found["slack"][i] <= (cost * (1 + margin)).max() + 1e-9  # a search over corners: never above


def test_pickled_inputs_score_the_same():
    import pickle

    X = make_inputs("cycles", types=2)
    structure = structure_for(X, 3)
    w = np.random.default_rng(0).normal(size=structure.n_weights)
    again = pickle.loads(pickle.dumps(X))
    np.testing.assert_array_equal(
        structure.argmax(structure.scores(w, again))[0], structure.argmax(structure.scores(w, X))[0]
    )


def test_messages_kept_from_strong_weights_do_not_underflow_under_weak_ones():
    n = 20
    F = np.vstack([np.zeros((1, 3)), np.eye(3)[np.arange(n) % 3]])
    edges = np.array([[0, i + 1] for i in range(n)] + [[1, 2], [2, 3], [3, 1]])
    X = GraphInputs.from_list([(F, edges)])
    structure = GraphLabels(3, X.n_features, n_edge_features=X.n_edge_features, edge_weights="potts", inference="trw")

    def scores(node, edge):
        weights = np.zeros(structure.n_weights)
        nodes, pairs = structure.split(weights)
        nodes[:], pairs[:] = node * np.eye(3), edge
        return structure.scores(weights, X)

    alone = structure.marginals(scores(0.1, 0.1))
    with structure.remembering():
        structure.marginals(scores(2000.0, 120.0))
        again = structure.marginals(scores(0.1, 0.1))
    np.testing.assert_allclose(again.nodes, alone.nodes, atol=1e-4)


def test_rows_that_do_not_count_have_neither_loss_nor_slope():
    scores, labels = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([0, 1])
    values, slopes = _log_losses(scores, labels, np.array([True, False]))
    p = np.exp(scores[0]) / np.exp(scores[0]).sum()
    np.testing.assert_allclose(values, [-np.log(p[0]), 0.0])
    np.testing.assert_allclose(slopes, [p - [1.0, 0.0], [0.0, 0.0]])
