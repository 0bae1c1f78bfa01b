"""Losses equal their formulas by enumeration, have the slopes they claim, and the inequalities that tie them."""

from __future__ import annotations

import functools
import itertools
import json
import warnings

import numpy as np
import pytest

from mercer.exceptions import InfeasibleError
from mercer.learning import (
    LOSSES,
    Hinge,
    Hybrid,
    Log,
    RelativeMargin,
    Slack,
    SoftmaxMargin,
    SquaredHinge,
    resolve_loss,
)
from mercer.learning.losses import PlaneLoss, loss_from_json
from mercer.structures import Constraints
from mercer.structures.costs import Hamming, ZeroOne
from reference.margin import COSTS, PROBLEMS, chain, enumerated, labels
from reference.problems import make_problem

# name → (loss, formula, its options)
KINDS = {
    "log": (Log(), "log", {}),
    "hinge": (Hinge(), "hinge", {}),
    "squared-hinge": (SquaredHinge(), "squared-hinge", {}),
    "slack": (Slack(), "slack", {}),
    "softmax-margin": (SoftmaxMargin(), "softmax-margin", {}),
    "hybrid": (Hybrid(0.3), "hybrid", {"alpha": 0.3}),
    "hybrid, cost": (Hybrid(0.6, margin="cost"), "hybrid", {"alpha": 0.6, "margin": "cost"}),
    "relative-margin": (RelativeMargin(5.0), "relative-margin", {}),
}
# Slack rescaling over a user's structure is a search over the hull, with its own test.
EXACT = [
    (kind, loss) for kind, loss in itertools.product(PROBLEMS, KINDS) if loss != "slack" or not kind.startswith("joint")
]
SOME = ("labels", "enumerated", "joint", "chain, constraints and edges")
CONVEX = [(kind, loss) for kind, loss in EXACT if kind in SOME]


@functools.cache
def problem_of(kind):
    """Made once: all outputs of every example are written out."""
    return PROBLEMS[kind]()


def random_weights(problem, seed, scale=1.0):
    return np.random.default_rng(seed).normal(scale=scale, size=problem.n_weights)


def single_losses(problem, loss, w):
    theta = problem.structure.scores(w, problem.X)
    return loss.value_and_gradient(problem.structure, theta, problem.y)[0]


@pytest.mark.parametrize(("kind", "name"), EXACT)
def test_values_equal_the_formula(kind, name):
    problem, (loss, formula, options) = problem_of(kind), KINDS[name]
    for seed in range(3):
        w = random_weights(problem, seed, 0.5 + seed)
        np.testing.assert_allclose(
            single_losses(problem, loss, w), problem.losses(w, formula, **options), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize(
    ("kind", "cost", "name"),
    [
        (kind, cost, name)
        for kind in ("labels", "chain, edges")
        for cost in COSTS
        for name in ("hinge", "squared-hinge", "softmax-margin", "hybrid, cost", "slack")
        if (kind, cost, name) != ("chain, edges", "zero-one", "softmax-margin")  # refused: 0/1 is no sum over positions
    ],
)
def test_values_equal_the_formula_for_every_cost(kind, cost, name):
    problem = PROBLEMS[kind]().with_cost(COSTS[cost][1])
    loss, formula, options = KINDS[name]
    w = random_weights(problem, 0)
    np.testing.assert_allclose(
        single_losses(problem, loss.bind(COSTS[cost][0]), w), problem.losses(w, formula, **options), atol=1e-10
    )


@pytest.mark.parametrize(("kind", "name"), [*EXACT, ("chain", "slack"), ("joint", "slack")])
def test_gradients_equal_finite_differences(kind, name):
    """At random weights the maxima are unique, so the losses are smooth there."""
    problem, (loss, _, _) = problem_of(kind), KINDS[name]
    risk = problem.risk(loss)
    w = random_weights(problem, 3)
    value, gradient = risk.value_and_gradient(w)
    assert np.isclose(value, risk.value(w), rtol=1e-12)
    directions = np.random.default_rng(4).normal(size=(5, len(w)))  # a wrong coordinate shows in each of them
    slopes = [(risk.value(w + 1e-6 * d) - risk.value(w - 1e-6 * d)) / 2e-6 for d in directions]
    np.testing.assert_allclose(directions @ gradient, slopes, atol=1e-4)


@pytest.mark.parametrize(("kind", "name"), CONVEX)
def test_the_subgradient_inequality_holds(kind, name):
    """f(v) ≥ f(w) + ⟨∇f(w), v − w⟩ for hundreds of pairs."""
    problem, (loss, _, _) = problem_of(kind), KINDS[name]
    risk = problem.risk(loss)
    points = [random_weights(problem, seed, 10.0 ** (seed % 3 - 1)) for seed in range(15)]
    found = [(w, *risk.value_and_gradient(w)) for w in points]
    for (w, value, slope), (v, other, _) in itertools.permutations(found, 2):
        assert other >= value + slope @ (v - w) - 1e-9 * max(1.0, abs(other))


@pytest.mark.parametrize(("kind", "name"), CONVEX)
def test_losses_are_convex_at_midpoints(kind, name):
    problem, (loss, _, _) = problem_of(kind), KINDS[name]
    risk = problem.risk(loss)
    points = [random_weights(problem, 100 + seed, 10.0 ** (seed % 3 - 1)) for seed in range(10)]
    values = [risk.value(w) for w in points]
    for i, j in itertools.combinations(range(len(points)), 2):
        ends = 0.5 * (values[i] + values[j])
        assert risk.value(0.5 * (points[i] + points[j])) <= ends + 1e-9 * max(1.0, ends)


@pytest.mark.parametrize("name", [n for n in KINDS if isinstance(KINDS[n][0], PlaneLoss)])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_loss_is_the_height_of_its_highest_plane(kind, name):
    problem, (loss, _, _) = problem_of(kind), KINDS[name]
    risk, w = problem.risk(loss), random_weights(problem, 0)
    values, slopes, offsets = risk.oracle(w)
    np.testing.assert_allclose(values, offsets - slopes @ w, atol=1e-10)
    np.testing.assert_allclose((values**loss.power).sum(), risk.value(w))
    one = risk.oracle(w, slice(2, 4))
    np.testing.assert_allclose(one[0], values[2:4], atol=1e-12)
    np.testing.assert_allclose(one[1].toarray(), slopes.toarray()[2:4], atol=1e-12)


# ------------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("kind", PROBLEMS)
def test_hybrid_with_alpha_one_is_log_and_with_zero_the_hinge_at_margin_one(kind):
    problem = problem_of(kind)
    for seed in range(5):
        w = random_weights(problem, seed)
        for alpha, other in ((1.0, Log()), (0.0, Hinge(ZeroOne()))):
            value, gradient = problem.risk(Hybrid(alpha)).value_and_gradient(w)
            wanted, slope = problem.risk(other).value_and_gradient(w)
            assert abs(value - wanted) <= 1e-12 * max(1.0, abs(wanted))
            np.testing.assert_allclose(gradient, slope, atol=1e-12)


@pytest.mark.parametrize("kind", ["labels", "chain", "enumerated", "joint"])
def test_hybrid_with_alpha_zero_and_cost_margin_is_the_hinge(kind):
    problem = problem_of(kind)
    w = random_weights(problem, 0)
    value, gradient = problem.risk(Hybrid(0.0, margin="cost")).value_and_gradient(w)
    wanted, slope = problem.risk(Hinge()).value_and_gradient(w)
    assert np.isclose(value, wanted, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)


@pytest.mark.parametrize("kind", ["labels", "enumerated", "joint", "chain", "chain, constraints and edges"])
def test_softmax_margin_lies_above_the_hinge_by_the_surprise_of_its_mode(kind):
    """Gap = −log max p̄, between 0 and log |Y|, and decreasing in max p̄."""
    problem = problem_of(kind)
    sizes = np.log([len(o) for o in problem.outputs])
    pairs = []
    for seed in range(20):
        w = random_weights(problem, seed, 10.0 ** (seed % 4 - 2))
        gap = single_losses(problem, SoftmaxMargin(), w) - single_losses(problem, Hinge(), w)
        assert (gap >= -1e-10).all()
        assert (gap <= sizes + 1e-10).all()
        for i, (scores, costs) in enumerate(zip(problem.scores(w), problem.costs, strict=True)):
            p = np.exp(scores + costs - (scores + costs).max())
            top = (p / p.sum()).max()
            assert np.isclose(gap[i], -np.log(top), atol=1e-10)
            pairs.append((top, gap[i]))
    pairs.sort()
    assert (np.diff([g for _, g in pairs]) <= 1e-9).all()


def test_the_gap_is_zero_for_a_point_mass_and_log_size_for_the_uniform():
    """The ends: a score that drowns all others, and scores that cancel the costs."""
    problem = labels()
    zero = np.zeros((len(problem), 3))
    y = problem.y

    def gap(theta):
        both = [loss.value_and_gradient(problem.structure, theta, y)[0] for loss in (SoftmaxMargin(), Hinge())]
        return both[0] - both[1]

    far = zero.copy()
    far[:, 1] = 1000.0
    np.testing.assert_allclose(gap(far), 0.0, atol=1e-12)
    level = zero - Hamming().table(y, 3)
    np.testing.assert_allclose(gap(level), np.log(3), atol=1e-12)


@pytest.mark.parametrize("name", ["hinge", "squared-hinge", "softmax-margin", "slack", "relative-margin"])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_losses_bound_the_cost_of_the_prediction(kind, name):
    """For each example at random weights."""
    problem, (loss, _, _) = problem_of(kind), KINDS[name]
    for seed in range(8):
        w = random_weights(problem, seed, 10.0 ** (seed % 4 - 2))
        values = single_losses(problem, loss, w)
        if name == "squared-hinge":
            values = np.sqrt(values)
        cost = [d[s.argmax()] for d, s in zip(problem.costs, problem.scores(w), strict=True)]
        assert (values >= np.array(cost) - 1e-9).all()


# ----------------------------------------------------------------------------------------------- slack


def hull_corners(points):
    """Numbers of the points that maximise λ Δ + m for some λ ≥ 0: by trying all slopes between pairs."""
    found = set()
    slopes = {0.0, 1e9}
    for (a, b), (c, d) in itertools.combinations(points, 2):
        if a != c and (b - d) / (c - a) > 0:
            slopes |= {(b - d) / (c - a) * factor for factor in (1 - 1e-6, 1 + 1e-6)}
    for slope in slopes:
        found.add(max(range(len(points)), key=lambda k: slope * points[k][0] + points[k][1]))
    return found


@pytest.mark.parametrize("cost", ["hamming", "weighted", "matrix", "zero-one"])
@pytest.mark.parametrize("kind", ["chain", "chain, edges", "chain, constraints", "joint"])
def test_slack_is_exact_on_chains_and_else_between_the_hulls_corners_and_brute_force(kind, cost):
    problem = PROBLEMS[kind]()
    loss = Slack()
    if kind != "joint":
        loss = Slack(COSTS[cost][0])
        problem.with_cost(COSTS[cost][1])
    for seed in range(8):
        w = random_weights(problem, seed, 10.0 ** (seed % 3 - 1.0))
        values, most = single_losses(problem, loss, w), problem.losses(w, "slack")
        assert (values <= most + 1e-9).all()
        if kind != "joint":
            np.testing.assert_allclose(values, most, rtol=1e-9, atol=1e-9)
        for i, (scores, t, delta) in enumerate(zip(problem.scores(w), problem.truth, problem.costs, strict=True)):
            points = list(zip(delta, 1.0 + scores - scores[t], strict=True))
            corners = max(points[k][0] * points[k][1] for k in hull_corners(points))
            assert values[i] >= corners - 1e-9 * max(1.0, corners)


@pytest.mark.parametrize("cost", ["hamming", "weighted", "matrix"])
def test_the_search_for_slack_finds_the_best_corner_where_a_structure_lists_no_products(cost, monkeypatch):
    """Long chains have many corners between the two that the search begins with."""
    problem = chain((6, 5)).with_cost(COSTS[cost][1])
    monkeypatch.setattr(type(problem.structure), "best_product", lambda *given: None)
    inner = 0
    for seed in range(30):
        w = random_weights(problem, seed, 10.0 ** (seed % 3 - 1.0))
        values, most = single_losses(problem, Slack(COSTS[cost][0]), w), problem.losses(w, "slack")
        assert (values <= most + 1e-9).all()
        for i, (scores, t, delta) in enumerate(zip(problem.scores(w), problem.truth, problem.costs, strict=True)):
            best = dict(sorted(zip(delta, 1.0 + scores - scores[t], strict=True)))  # at each cost the largest margin
            points = list(best.items())
            products = {k: points[k][0] * points[k][1] for k in hull_corners(points)}
            corner = max(products, key=products.get)
            inner += min(products) < corner < max(products)
            assert values[i] >= products[corner] - 1e-9 * max(1.0, products[corner])
    assert inner >= 10


@pytest.mark.parametrize("kind", PROBLEMS)
def test_slack_with_zero_one_cost_is_the_hinge_with_zero_one_cost(kind):
    problem = problem_of(kind)
    for seed in range(5):
        w = random_weights(problem, seed)
        slack, hinge = (single_losses(problem, kind_(ZeroOne()), w) for kind_ in (Slack, Hinge))
        np.testing.assert_allclose(slack, hinge, atol=1e-9)


def test_slack_over_unequal_numbers_of_outputs_does_not_warn():
    problem = enumerated()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = single_losses(problem, Slack(), random_weights(problem, 0))
    assert np.isfinite(values).all()


# ------------------------------------------------------------------------------------ edges and refusals


@pytest.mark.parametrize("name", KINDS)
def test_empty_sequences_cost_nothing(name):
    problem = chain((0, 2, 0))
    values = single_losses(problem, KINDS[name][0], random_weights(problem, 0))
    assert values[0] == values[2] == 0.0
    assert values[1] > 0


@pytest.mark.parametrize("name", [n for n in KINDS if n != "log"])
@pytest.mark.parametrize("kind", ["chain", "labels"])
def test_partly_known_outputs_are_refused_by_all_but_log(kind, name):
    if kind == "chain":
        problem = make_problem(partial="none")
        structure, X, y = problem.chain, problem.X, problem.y
    else:
        written = labels()
        structure, X, y = written.structure, written.X, written.y.copy()
        y[3] = -1
    from mercer.learning import Risk

    loss = KINDS[name][0]
    with pytest.raises(ValueError, match="fully known outputs; use the log loss"):
        Risk(structure, loss, X, y).value_and_gradient(np.zeros(structure.n_weights))
    assert not loss.takes_partial


@pytest.mark.parametrize("kind", ["chain", "labels"])
def test_planes_of_partly_known_outputs_are_refused(kind):
    from mercer.learning import Risk

    if kind == "chain":
        problem = make_problem(partial="none")
        structure, X, y = problem.chain, problem.X, problem.y
    else:
        written = labels()
        structure, X, y = written.structure, written.X, written.y.copy()
        y[3] = -1
    with pytest.raises(ValueError, match="fully known outputs"):
        Risk(structure, Hinge(), X, y).oracle(np.zeros(structure.n_weights))


@pytest.mark.parametrize("name", [n for n in KINDS if n != "log"])
def test_a_forbidden_truth_names_its_example(name):
    problem = make_problem(lengths=(2, 2, 2))
    problem.y.labels[:] = [1, 0, 0, 1, 1, 0]
    problem.chain.masks = Constraints([(0, 1)]).masks(range(3))
    from mercer.learning import Risk

    risk = Risk(problem.chain, KINDS[name][0], problem.X, problem.y)
    with pytest.raises(InfeasibleError, match="example 1"):
        risk.value_and_gradient(np.zeros(problem.chain.n_weights))


def test_softmax_margin_needs_a_cost_that_decomposes():
    problem = chain()
    with pytest.raises(ValueError, match="sum over positions"):
        single_losses(problem, SoftmaxMargin("zero-one"), np.zeros(problem.n_weights))
    single_losses(labels(), SoftmaxMargin("zero-one"), np.zeros(9))  # one label: nothing to decompose


@pytest.mark.parametrize("alpha", [-0.1, 1.1, np.nan, "half", None])
def test_alpha_must_lie_between_hinge_and_log(alpha):
    with pytest.raises(ValueError, match="alpha must lie between 0"):
        Hybrid(alpha)


@pytest.mark.parametrize("B", [0.0, -1.0, np.nan, "wide", -np.inf])
def test_a_bound_must_be_positive(B):
    with pytest.raises(ValueError, match=r"B must be positive \(np.inf: no bound\)"):
        RelativeMargin(B)
    assert RelativeMargin(np.inf).B == RelativeMargin(None).B == np.inf


def test_margins_have_a_name():
    with pytest.raises(ValueError, match="margin"):
        Hybrid(0.5, margin="wide")


def test_losses_are_found_by_name_and_take_the_cost_unless_they_have_one():
    for name in LOSSES:
        assert resolve_loss(name).name == name
    cost = Hamming([1.0, 2.0])
    assert resolve_loss("hinge", cost).cost is cost
    own = Hinge("zero-one")
    assert resolve_loss(own, cost) is own
    assert Hinge().cost is None
    assert resolve_loss("log", cost).name == "log"
    for bad in ("margin", "", None, 3):
        with pytest.raises(ValueError, match="unknown loss"):
            resolve_loss(bad)


@pytest.mark.parametrize(
    "loss",
    [
        Log(),
        Hinge(),
        Hinge([[0, 2], [1, 0]]),
        Slack("zero-one", search=7),
        SquaredHinge({"a": 3.0}),
        Hybrid(0.25, margin="cost", cost="hamming"),
        RelativeMargin(3.5),
        SoftmaxMargin("hamming"),
    ],
)
def test_losses_come_back_from_json(loss):
    again = loss_from_json(json.loads(json.dumps(loss.for_labels(["a", "b"]).to_json(), allow_nan=False)))
    assert type(again) is type(loss)
    wanted, found = loss.for_labels(["a", "b"]).to_json(), again.to_json()
    assert found == wanted


def test_a_loss_without_bound_comes_back_from_json():
    again = loss_from_json(json.loads(json.dumps(RelativeMargin(np.inf).to_json(), allow_nan=False)))
    assert np.isposinf(again.B)
