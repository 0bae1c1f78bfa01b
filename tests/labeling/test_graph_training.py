"""How graph labellers are trained: online rules equal enumeration, warm starts, checkpoints, the hybrid, memory."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from mercer import _core
from mercer.data.labels import TagSequences
from mercer.datasets import make_regions, make_shapes
from mercer.labeling import GraphInputs, GraphLabeler, GridLabeler
from mercer.learning import Risk
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.losses import Hybrid
from mercer.learning.solvers.bundle import BMRM
from mercer.structures import GraphLabels

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
KINDS = {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 2}


def small_task(n=6, seed=0):
    random = np.random.default_rng(seed)
    graphs = [(random.normal(size=(4, 2)), EDGES[: random.integers(2, 6)]) for _ in range(n)]
    X = GraphInputs.from_list(graphs)
    return graphs, X, TagSequences(random.integers(2, size=4 * n).astype(np.int32), X.offsets)


def features(graph, z):
    """Φ(x, z) by its definition: 2 node features × 2 labels, then a constant for each unordered pair of labels."""
    out = np.zeros(7)
    for v, label in enumerate(z):
        out[[label, 2 + label]] += graph[0][v]
    for u, v in graph[1]:
        out[4 + KINDS[z[u], z[v]]] += 1.0
    return out


OUTPUTS = list(itertools.product(range(2), repeat=4))


def enumerated_pass(rule, graphs, y, order, C):
    """The online rules over all sixteen labellings; weights after each step."""
    w, steps = np.zeros(7), []
    for i in order:
        phi = np.array([features(graphs[i], z) for z in OUTPUTS])
        truth = tuple(y[4 * i : 4 * i + 4])
        at = OUTPUTS.index(truth)
        best = int(np.argmax(phi @ w))
        wrong = sum(a != b for a, b in zip(truth, OUTPUTS[best], strict=True))
        if wrong:
            d = phi[at] - phi[best]
            tau = 1.0 if rule == 1 else min(C, ((phi[best] - phi[at]) @ w + np.sqrt(wrong)) / (d @ d))
            w = w + tau * d
        steps.append(w)
    return w, np.mean([np.zeros(7), *steps], axis=0)


@pytest.mark.parametrize("rule", [1, 2])
def test_mistake_driven_passes_equal_enumeration(rule):
    graphs, X, y = small_task()
    order = np.array([3, 0, 5, 1, 2, 4, 0, 1])
    w, extra, state = np.zeros(7), np.zeros(7), _core.chain.OnlineState()
    # Every labelling ties at w = 0: begin where both have made a first step.
    GraphLabels(2, 2).online(rule, X, y, order, w, extra, state, aggressiveness=0.3)
    expected, mean = enumerated_pass(rule, graphs, y.labels, order, 0.3)
    np.testing.assert_allclose(w, expected, atol=1e-12)
    np.testing.assert_allclose(w - extra / (state.step + 1.0), mean, atol=1e-12)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_pass_of_gradient_descent_equals_enumeration(hidden):
    graphs, X, y = small_task()
    if hidden:
        y.labels[::3] = -1
        y = TagSequences(y.labels, X.offsets)
    order, rate, decay, l2 = np.array([2, 0, 1, 4]), 0.2, 0.1, 0.05
    w, state = np.zeros(7), _core.chain.OnlineState()
    loss, _ = GraphLabels(2, 2).online(0, X, y, order, w, np.zeros(0), state, rate=rate, decay=decay, l2=l2)
    v, total = np.zeros(7), 0.0
    for t, i in enumerate(order):
        phi = np.array([features(graphs[i], z) for z in OUTPUTS])
        known = y.labels[4 * i : 4 * i + 4]
        agree = np.array([all(k in (-1, a) for k, a in zip(known, z, strict=True)) for z in OUTPUTS])
        p = np.exp(phi @ v)
        total += np.log(p.sum()) - np.log(p[agree].sum())
        slope = p @ phi / p.sum() - p[agree] @ phi[agree] / p[agree].sum()
        eta = rate / (1 + rate * decay * t)
        v = v * (1 - eta * l2) - eta * slope
    np.testing.assert_allclose(w * state.scale, v, atol=1e-9)
    assert np.isclose(loss, total)


def test_the_penalty_of_gradient_descent_leaves_zeros():
    _, X, y = small_task(20)
    w, paid, state = np.zeros(7), np.zeros(7), _core.chain.OnlineState()
    for _ in range(5):
        GraphLabels(2, 2).online(0, X, y, np.arange(20), w, paid, state, rate=0.05, l1=5.0)
    assert (w == 0).sum() >= 5
    again, lean = np.zeros(7), _core.chain.OnlineState()
    GraphLabels(2, 2).online(0, X, y, np.arange(20), again, np.zeros(0), lean, rate=0.05)
    assert (again != 0).all()


def test_gradient_descent_comes_close_to_the_optimum():
    task = make_regions(30, n_regions=(4, 6), random_state=1)
    models = {s: GraphLabeler(solver=s, C=0.3, random_state=0).fit(task.X, task.y) for s in ("lbfgs", "sgd")}
    values = {}
    for name, model in models.items():
        inputs = model._inputs(task.X)
        risk = Risk(model.structure_, model._loss(), inputs, model._read(task.X, task.y)[1])
        values[name] = 0.5 * model.coef_ @ model.coef_ + 0.3 * risk.value(model.coef_)
    assert values["sgd"] <= 1.02 * values["lbfgs"]


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "passive-aggressive"])
def test_online_solvers_beat_single_nodes(solver):
    task = make_regions(60, n_regions=(4, 7), random_state=0)
    X, y = task.X, task.y
    options = {"C": 0.3, "max_iter": 15, "tol": 0.02, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GraphLabeler(solver=solver, **options).fit(X[:40], y[:40])
        alone = GraphLabeler(edge_weights="none", C=0.1).fit(X[:40], y[:40])
    assert model.solver_ == solver
    assert model.score(X[40:], y[40:]) > alone.score(X[40:], y[40:]) + 0.05


def test_online_solvers_do_not_depend_on_threads():
    task = make_regions(12, n_regions=(4, 6), random_state=0)
    one, two = (
        GraphLabeler(solver="sgd", edge_weights="attractive", max_iter=3, tol=1.0, n_jobs=n, random_state=0)
        .fit(task.X, task.y)
        .coef_
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_online_solvers_take_unknown_labels():
    task = make_regions(40, n_regions=(4, 6), random_state=0)
    hidden = [[None if i == 0 else label for i, label in enumerate(labels)] for labels in task.y]
    model = GraphLabeler(solver="averaged-perceptron", random_state=0).fit(task.X, hidden)
    assert model.score(task.X, task.y) > 0.7


# ---------------------------------------------------------------------------------------------- warm starts


@pytest.mark.parametrize("edge_weights", ["symmetric", "directed", "potts", "none"])
def test_a_warm_start_at_the_optimum_is_done_at_once(edge_weights):
    task = make_regions(12, n_regions=(4, 5), random_state=0)
    model = GraphLabeler(C=0.3, edge_weights=edge_weights, tol=1e-6, warm_start=True).fit(task.X, task.y)
    before, steps = model.coef_, model.n_iter_
    model.fit(task.X, task.y)
    assert model.n_iter_ < steps / 2
    np.testing.assert_allclose(model.coef_, before, atol=1e-3)


@pytest.mark.parametrize("edge_weights", ["symmetric", "directed"])
def test_weights_keep_their_meaning_when_labels_come_in_between(edge_weights):
    random = np.random.default_rng(0)
    old, new = (GraphLabels(n, 2, edge_weights=edge_weights, n_edge_features=2, n_types=t) for n, t in ((2, 1), (3, 2)))
    w = random.normal(size=old.n_weights)
    carried = new.carry_over(w, old, np.array([0, 2]))  # the new label is the second of three
    graph = (random.normal(size=(4, 2)), EDGES, random.normal(size=(5, 2)))
    here = new.scores(carried, GraphInputs.from_list([(*graph, np.zeros(5, int))]))
    there = old.scores(w, GraphInputs.from_list([graph]))
    np.testing.assert_allclose(here.nodes[:, [0, 2]], there.nodes)
    np.testing.assert_allclose(here.edges[:, [0, 2]][:, :, [0, 2]], there.edges)
    assert (here.edges[:, 1] == 0).all()


def test_a_warm_start_takes_new_labels_and_refuses_other_features():
    task = make_regions(20, n_regions=(4, 6), random_state=0)
    coarse = [["dry" if label != "water" else "water" for label in labels] for labels in task.y]
    model = GraphLabeler(C=0.3, warm_start=True).fit(task.X, coarse)
    model.fit(task.X, task.y)
    assert set(model.classes_) == {"dry", *(label for labels in task.y for label in labels)}
    assert model.score(task.X, task.y) > 0.7
    other = [(rows[:, :8], edges) for rows, edges in task.X]
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(other, task.y)
    assert model.n_features_in_ == 10  # a failed fit leaves the model as it was


@pytest.mark.filterwarnings("ignore")
def test_grids_go_on_with_the_same_standardisation():
    task = make_shapes(6, size=16, random_state=0)
    model = GridLabeler("hinge", block=4, C=0.1, max_iter=8, warm_start=True).fit(task.images[:3], task.maps[:3])
    mean = model.mean_
    model.fit(task.images[3:], task.maps[3:])
    np.testing.assert_array_equal(model.mean_, mean)
    with pytest.raises(ValueError, match="as many channels"):
        model.fit([image[:, :, :1] for image in task.images], task.maps)


# ---------------------------------------------------------------------------------------------- checkpoints


class Killed(Exception):
    pass


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron"])
@pytest.mark.filterwarnings("ignore")
def test_killed_training_resumes_from_its_checkpoint(solver, tmp_path, monkeypatch):
    task = make_regions(12, n_regions=(4, 6), random_state=0)
    options = {"C": 1.0, "solver": solver, "max_iter": 12, "tol": 1e-9, "random_state": 0}
    whole = GraphLabeler(**options).fit(task.X, task.y)
    path = tmp_path / "run.mercer"
    write = Checkpoint.write

    def killed(self, *args):
        write(self, *args)
        if len(args[0]["history"]["seconds"]) == 5:
            raise Killed

    monkeypatch.setattr(Checkpoint, "write", killed)
    with pytest.raises(Killed):
        GraphLabeler(**options).fit(task.X, task.y, checkpoint=Checkpoint(path, every=0))
    monkeypatch.undo()
    assert path.exists()
    with pytest.raises(ValueError, match="checkpoint"):
        GraphLabeler(**{**options, "C": 2.0}).fit(task.X, task.y, checkpoint=path)
    with pytest.raises(ValueError, match="held-out data"):
        GraphLabeler(**options).fit(task.X, task.y, dev=(task.X, task.y), checkpoint=path)
    resumed = GraphLabeler(**options).fit(task.X, task.y, checkpoint=path)
    assert not path.exists()
    assert resumed.n_iter_ == whole.n_iter_ > 5
    if solver == "lbfgs":  # the memory of curvature is lost: another way to the same optimum
        assert resumed.history_["objective"][-1] < whole.history_["objective"][4]
    else:
        np.testing.assert_allclose(resumed.coef_, whole.coef_)


# ---------------------------------------------------------------------------------------------- the hybrid; messages


@pytest.mark.parametrize("margin", ["unit", "cost"])
def test_steps_before_the_bundle_find_the_optimum_in_fewer_passes(margin):
    task = make_regions(16, n_regions=(4, 6), random_state=0)
    found = {}
    for descent in (True, False):
        solver = BMRM(descent=descent)
        model = GraphLabeler(Hybrid(0.5, margin), solver=solver, C=10.0, tol=1e-3).fit(task.X, task.y)
        assert model.history_["gap"][-1] <= 1e-3
        found[descent] = model.history_["objective"][-1], model.history_["passes"][-1]
    assert found[True][0] <= found[False][0] * (1 + 1e-3)
    assert found[True][1] < found[False][1]


def test_messages_that_begin_where_others_ended_settle_in_the_same_place():
    random = np.random.default_rng(0)
    from mercer.inference import grid_edges

    edges = grid_edges((8, 9))
    for n_labels in (2, 3):
        X = GraphInputs.from_list([(random.normal(size=(72, 2)), edges)])
        structure = GraphLabels(n_labels, 2, inference="trw")
        w = random.normal(size=structure.n_weights)
        fresh = structure.marginals(structure.scores(1.05 * w, X))
        with structure.remembering():
            structure.marginals(structure.scores(w, X))
            again = structure.marginals(structure.scores(1.05 * w, X))
        np.testing.assert_allclose(again.nodes, fresh.nodes, atol=2e-4)
        np.testing.assert_allclose(again.log_partition, fresh.log_partition, atol=1e-3)
        assert structure._memory is None


def sweep(unary, edges, tables, rho, m, combine, damping):
    """One synchronous sweep of reweighted messages by the formula; m[e, side] goes to the variable at that side."""
    total = unary.copy()
    for e, ends in enumerate(edges):
        for side in (0, 1):
            total[ends[side]] += rho[e] * m[e, side]
    out = np.empty_like(m)
    for e, ends in enumerate(edges):
        for side in (0, 1):
            table = tables[e] / rho[e] if side == 0 else tables[e].T / rho[e]
            new = combine(table + (total[ends[1 - side]] - m[e, 1 - side]), axis=1)
            new -= combine(new)
            out[e, side] = np.log((1 - damping) * np.exp(new) + damping * np.exp(m[e, side]))
    return out


@pytest.mark.parametrize("states", [2, 3, 6])
@pytest.mark.parametrize("maximise", [False, True])
def test_quick_reweighted_messages_equal_the_formula(states, maximise):
    from scipy.special import logsumexp

    from mercer.inference import FactorGraph, appearance_probabilities, grid_edges

    random = np.random.default_rng(states)
    edges, n, damping = grid_edges((3, 4)), 12, 0.0 if maximise else 0.3
    unary, tables = random.normal(size=(n, states)), random.normal(size=(len(edges), states, states))
    graph = FactorGraph([states] * n, unary=unary, edges=edges, pairwise=tables, log=True).compiled
    rho = appearance_probabilities(graph, random_state=0)
    start = np.zeros(0)
    m = np.full((len(edges), 2, states), 0.0 if maximise else -np.log(states))
    for sweeps in (1, 2):  # the second call goes on from the messages of the first
        found = _core.inference.loopy_messages(
            graph.core, maximise, "synchronous", sweeps, 0.0, damping, 0, rho, start if len(start) else None
        )
        for _ in range(sweeps):
            m = sweep(unary, edges, tables, rho, m, np.max if maximise else logsumexp, damping)
        np.testing.assert_allclose(found[5].reshape(m.shape), m, atol=1e-9)
        start = found[5]


@pytest.mark.parametrize(
    ("start", "message"),
    [(np.zeros(3), "messages of this graph"), (np.ones(4), "normalised"), (np.full(4, -np.inf), "normalised")],
)
def test_messages_to_begin_with_are_checked(start, message):
    from mercer.inference import FactorGraph

    core = FactorGraph([2, 2], edges=[[0, 1]], pairwise=np.ones((2, 2))).compiled.core
    with pytest.raises(ValueError, match=message):
        _core.inference.loopy_messages(core, False, "synchronous", 5, 0.0, 0.0, 0, None, start)
