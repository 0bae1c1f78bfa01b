"""Margin solvers reach the optimum of the program over all constraints, and certify it on the way."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.data import Sequences
from mercer.exceptions import InfeasibleError
from mercer.learning import (
    ConvergenceWarning,
    Hinge,
    Hybrid,
    Log,
    Penalty,
    RelativeMargin,
    Slack,
    SoftmaxMargin,
    SquaredHinge,
)
from mercer.learning.qp.simplex import simplex_qp
from mercer.learning.solvers import BCFW, BMRM, CuttingPlane, MarginalDual, Subgradient
from mercer.learning.training import train
from mercer.segmentation import Segmenter
from mercer.structures import Constraints, Enumerated, Labels
from mercer.theory.cuts import cutting_planes_bound
from reference.margin import COSTS, PROBLEMS, chain, enumerated, joint, labels
from reference.problems import make_problem

FAST = {
    "bmrm": BMRM(),
    "bmrm, no line search": BMRM(line_search=False),
    "one slack": CuttingPlane(),
    "one slack, no cache": CuttingPlane(cache=False),
    "n slacks": CuttingPlane("n"),
    "bcfw": BCFW(),
    "bcfw, uniform": BCFW(sampling="uniform"),
    "bcfw, no average": BCFW(average=False),
    "bcfw, no cached planes": BCFW(cached=0),
    "bcfw, always measured": BCFW(check_every=1),
}
SLOW = {"subgradient": Subgradient(), "marginal-dual": MarginalDual()}
MARGIN = ["bmrm", "cutting-plane", "bcfw", "subgradient", "marginal-dual"]
KINDS = [
    *("labels", "labels, sparse", "enumerated", "joint"),
    *("chain", "chain, edges", "chain, pattern", "chain, constraints"),
    *("segments, bounds", "unlabelled segments"),
]
B = 0.8
LOSSES = {"hinge": Hinge(), "squared-hinge": SquaredHinge(), "slack": Slack(), "relative-margin": RelativeMargin(B)}

_optima: dict = {}


def optimum(kind, C, loss="hinge"):
    """The reference optimum, solved once."""
    key = kind, C, loss
    if key not in _optima:
        _optima[key] = PROBLEMS[kind]().optimum(C, loss, B if loss == "relative-margin" else np.inf)
    return _optima[key]


def solve(risk, solver, C, *, tol=1e-3, max_iter=5000, seed=0, warn=False, **options):
    return train(risk, solver=solver, C=C, tol=tol, max_iter=max_iter, random_state=seed, warn=warn, **options)


@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_held_out_data_that_get_no_better_end_the_training(name):
    solver = (FAST | SLOW)[name]
    result, history = solve(labels().risk(Hinge()), solver, 1.0, tol=1e-12, evaluate=lambda w: 0.5, patience=2)
    assert (result.converged, result.message) == (True, "stopped early: no better score on the held-out data")
    assert len(history["dev_score"]) == 3


def check_certificate(problem, loss, C, result, history, best, tol):
    """What must hold of every finished run."""
    primal = problem.objective(result.w, C, loss)
    assert result.converged
    assert history["gap"][-1] <= tol
    assert np.isclose(history["primal"][-1], primal, rtol=1e-9)
    assert history["objective"] == history["primal"]
    assert best - 1e-7 * best <= primal <= best + 1.001 * tol * primal  # the reference is a minimum, and is reached
    assert history["dual"][-1] <= best + 1e-7 * best
    primals, duals = np.array(history["primal"]), np.array(history["dual"])
    assert (np.diff(duals) >= 0).all()  # the lower bound never falls
    assert (np.diff(primals[np.isfinite(primals)]) <= 0).all()
    assert (primals - duals >= -1e-9 * np.abs(duals)).all()
    known = np.isfinite(primals)
    np.testing.assert_allclose(
        np.array(history["gap"])[known], np.maximum(0, primals - duals)[known] / primals[known], atol=1e-12
    )
    assert (np.diff(history["seconds"]) >= 0).all()
    assert {len(values) for values in history.values()} == {len(duals)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", FAST)
def test_solvers_reach_the_optimum_of_all_constraints(solver, kind):
    problem, C = PROBLEMS[kind](), 0.5
    tol = 1e-4 if kind != "joint" else 1e-3
    result, history = solve(problem.risk(Hinge()), FAST[solver], C, tol=tol)
    w, best = optimum(kind, C)
    check_certificate(problem, "hinge", C, result, history, best, tol)
    # ½‖w − w*‖² ≤ P(w) − P*, as the objective is strongly convex.
    assert 0.5 * np.sum((result.w - w) ** 2) <= tol * best * 1.01


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("labels, sparse", "joint")])
@pytest.mark.parametrize("solver", SLOW)
def test_first_order_solvers_reach_the_optimum_of_all_constraints(solver, kind):
    problem, C = PROBLEMS[kind](), 0.1
    result, history = solve(problem.risk(Hinge()), SLOW[solver], C)
    check_certificate(problem, "hinge", C, result, history, optimum(kind, C)[1], 1e-3)


@pytest.mark.parametrize("solver", SLOW)
def test_first_order_solvers_reach_the_optimum_of_a_users_structure(solver):
    problem, C = joint(4), 0.1
    result, history = solve(problem.risk(Hinge()), SLOW[solver], C, tol=3e-3)
    check_certificate(problem, "hinge", C, result, history, problem.optimum(C)[1], 3e-3)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        *[(kind, "squared-hinge") for kind in ("labels", "enumerated", "chain, edges", "segments, bounds", "joint")],
        # Exact: not a search over a hull.
        *[(kind, "slack") for kind in ("labels", "enumerated", "chain, edges", "segments, bounds")],
    ],
)
@pytest.mark.parametrize("solver", ["bmrm", "one slack", "n slacks", "bcfw"])
def test_other_losses_reach_the_optimum_of_all_constraints(solver, kind, loss):
    problem, C = PROBLEMS[kind](), 0.5
    result, history = solve(problem.risk(LOSSES[loss]), FAST[solver], C)
    check_certificate(problem, loss, C, result, history, optimum(kind, C, loss)[1], 1e-3)


@pytest.mark.parametrize("kind", ["chain", "chain, edges"])
@pytest.mark.parametrize("solver", ["bmrm", "one slack", "bcfw"])
def test_slack_rescaling_is_certified_on_chains(solver, kind):
    problem, C = PROBLEMS[kind](), 1.0
    result, history = solve(problem.risk(Slack()), FAST[solver], C)
    check_certificate(problem, "slack", C, result, history, optimum(kind, C, "slack")[1], 1e-3)


@pytest.mark.parametrize("options", [{}, {"edge_features": 2, "pattern": True, "edge_pattern": True}])
@pytest.mark.parametrize("solver", MARGIN)
def test_a_view_is_trained_on_its_own_sequences(solver, options):
    """Sequences 3 to 9 of 12: planes, steps and objectives are of those only."""
    from mercer.learning import Risk

    problem, C = chain((3, 1, 2, 0, 3, 2, 4, 1, 0, 2, 3, 2), **options), 0.1
    risk = Risk(problem.structure, Hinge(), problem.X[3:9], problem.y[3:9])
    result, history = solve(risk, solver, C, tol=3e-3)
    primal = 0.5 * result.w @ result.w + C * problem.losses(result.w)[3:9].sum()
    assert result.converged
    assert np.isclose(history["primal"][-1], primal)


@pytest.mark.parametrize("solver", MARGIN)
def test_empty_sequences_alone_are_solved_by_zero(solver):
    result, history = solve(chain((0, 0)).risk(Hinge()), solver, 1.0)
    assert result.converged
    assert not result.w.any()
    assert history["primal"][-1] == history["dual"][-1] == 0.0


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw"])
def test_every_cost_has_the_optimum_of_its_constraints(solver, cost):
    problem, C = chain((2, 1, 2, 3)).with_cost(COSTS[cost][1]), 0.3
    if ("cost", cost) not in _optima:
        _optima["cost", cost] = problem.optimum(C)
    best = _optima["cost", cost][1]
    result, history = solve(problem.risk(Hinge(COSTS[cost][0])), solver, C)
    check_certificate(problem, "hinge", C, result, history, best, 1e-3)


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw", "subgradient"])
def test_the_penalty_scales_the_objective(solver):
    """½ l2 ‖w‖² + C Σ loss = l2 (½‖w‖² + C / l2 Σ loss)."""
    problem = labels()
    result, history = solve(problem.risk(Hinge()), solver, 0.1, penalty=Penalty(0.0, 0.5))
    best = 0.5 * problem.optimum(0.2)[1]
    value = 0.25 * float(result.w @ result.w) + 0.1 * problem.losses(result.w).sum()
    assert np.isclose(history["primal"][-1], value)
    assert best * (1 - 1e-7) <= value <= best * (1 + 1.1e-3)


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw", "subgradient"])
@pytest.mark.parametrize("C", [1e-4, 1e-2])
def test_small_C_is_solved_at_once(solver, C):
    problem = PROBLEMS["labels"]()
    result, history = solve(problem.risk(Hinge()), solver, C)
    check_certificate(problem, "hinge", C, result, history, optimum("labels", C)[1], 1e-3)


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw"])
def test_a_large_C_separates_what_can_be_separated(solver):
    problem = make_problem(lengths=(3,) * 8, F=3)
    problem.y.labels[:] = problem.X.matrix().argmax(axis=1)
    from mercer.learning import Risk

    risk = Risk(problem.chain, Hinge(), problem.X, problem.y)
    result, _ = solve(risk, solver, 100.0, tol=1e-2)
    predicted, _ = problem.chain.argmax(problem.chain.scores(result.w, problem.X))
    assert (predicted == problem.y.labels).all()


@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw"])
def test_single_precision_reaches_the_optimum(solver):
    problem = chain(dtype=np.float32)
    result, _ = solve(problem.risk(Hinge()), solver, 0.5)
    assert abs(problem.objective(result.w, 0.5) / problem.optimum(0.5)[1] - 1) < 1.1e-3


@pytest.mark.parametrize("solver", MARGIN)
def test_features_that_say_nothing_leave_the_weights_at_zero(solver):
    n = 6
    structure = Labels(3, 2)
    from mercer.learning import Risk

    risk = Risk(structure, Hinge(), Sequences(np.zeros((n, 2)), np.arange(n + 1)), np.arange(n) % 3)
    result, history = solve(risk, solver, 2.0)
    assert not result.w.any()
    assert np.isclose(history["primal"][-1], 2.0 * n)
    assert np.isclose(history["dual"][-1], 2.0 * n)


def test_the_marginal_dual_is_the_dual_over_all_labellings():
    """On chains of four positions: as many multipliers as labellings, or one marginal a part, give one optimum."""
    problem, C = chain((4, 4, 4)), 0.1
    result, history = solve(problem.risk(Hinge()), "marginal-dual", C, tol=1e-4)
    exponential = problem.optimum(C)[1]
    assert np.isclose(history["dual"][-1], exponential, rtol=1.1e-4)
    check_certificate(problem, "hinge", C, result, history, exponential, 1e-4)


# ------------------------------------------------------------------------------------- smooth risks


@pytest.mark.parametrize(
    "kind", ["labels", "chain, edges", "chain, constraints", "segments, everything", "enumerated", "joint"]
)
@pytest.mark.parametrize("loss", [Log(), SoftmaxMargin(), Hybrid(1.0)])
def test_bundles_of_a_smooth_risk_end_where_lbfgs_does(loss, kind):
    problem = PROBLEMS[kind]()
    smooth = Log() if isinstance(loss, Hybrid) else loss
    wanted, _ = solve(problem.risk(smooth), "lbfgs", 0.5, tol=1e-8)
    result, history = solve(problem.risk(loss), "bmrm", 0.5, tol=1e-4)
    name = smooth.name
    best = problem.objective(wanted.w, 0.5, name)
    assert 0 <= problem.objective(result.w, 0.5, name) / best - 1 + 1e-9 <= 1.1e-4
    assert history["dual"][-1] <= best * (1 + 1e-9)
    assert (np.diff(history["dual"]) >= 0).all()


@pytest.mark.parametrize("kind", ["labels", "chain", "segments", "enumerated", "joint"])
@pytest.mark.parametrize("margin", ["unit", "cost"])
def test_hybrid_is_below_both_of_its_ends_blended(kind, margin):
    """min of the blend ≥ blend of the minima; and no random step from the solution goes down."""
    problem, C = PROBLEMS[kind](), 0.5
    options = {"alpha": 0.4, "margin": margin}
    result, history = solve(problem.risk(Hybrid(**options)), "bmrm", C, tol=1e-5)
    value = problem.objective(result.w, C, "hybrid", **options)
    assert np.isclose(value, history["primal"][-1])
    rng = np.random.default_rng(0)
    for scale in (1e-2, 1e-1, 1.0):
        for _ in range(20):
            w = result.w + scale * rng.normal(size=len(result.w))
            assert problem.objective(w, C, "hybrid", **options) >= value * (1 - 1e-5)
    if margin == "cost":
        ends = [solve(problem.risk(loss), "bmrm", C, tol=1e-5)[1]["dual"][-1] for loss in (Log(), Hinge())]
        assert value >= 0.4 * ends[0] + 0.6 * ends[1] - 1e-9


# ------------------------------------------------------------------------------- one slack, n slacks


def test_constraints_are_as_many_as_counted():
    """Three labels and four examples make 8 constraints with n slacks, 81 with one."""
    problem = labels(4, 2, 3)
    slopes, offsets, examples = problem.rows("hinge")
    assert len(slopes) == 8
    combined = list(itertools.product(*[range(3)] * 4))
    assert len(combined) == 81
    # Both programs have one optimum: that with one slack is over sums of one plane an example.
    C = 0.7
    planes = [
        (
            sum(phi[t] - phi[k] for phi, t, k in zip(problem.features, problem.truth, ks, strict=True)),
            sum(d[k] for d, k in zip(problem.costs, ks, strict=True)),
        )
        for ks in combined
    ]
    S, b = C * np.array([s for s, _ in planes]), C * np.array([d for _, d in planes])
    a = simplex_qp(S @ S.T, b, 1.0)
    value = b @ a - 0.5 * np.sum((a @ S) ** 2)
    assert np.isclose(value, problem.optimum(C)[1], rtol=1e-6)
    assert len(examples) == len(offsets) == 8


@pytest.mark.parametrize("kind", ["labels", "enumerated", "chain"])
@pytest.mark.parametrize("eps", [1e-1, 1e-2, 1e-3])
def test_one_slack_n_slacks_and_enumeration_agree_within_C_eps(kind, eps):
    """With C for the mean: gap ≤ C n eps."""
    problem, C = PROBLEMS[kind](), 0.5
    n, best = len(problem), optimum(kind, C)[1]
    tol = C * n * eps / best
    values = [
        problem.objective(solve(problem.risk(Hinge()), CuttingPlane(slack), C, tol=tol)[0].w, C)
        for slack in ("one", "n")
    ]
    for value in values:
        assert best * (1 - 1e-7) <= value <= best + C * n * eps * (1 + value / best)


@pytest.mark.parametrize("kind", ["labels", "enumerated", "chain", "joint"])
def test_cuts_stay_below_the_bound(kind):
    """At most ⌈log₂(Δ / 4R²C)⌉ + ⌈16 R² C / eps⌉ cuts, whatever n (C of the mean loss)."""
    problem, C, tol = PROBLEMS[kind](), 0.5, 1e-3
    _, history = solve(problem.risk(Hinge()), CuttingPlane(cache=False), C, tol=tol)
    mean = C * len(problem)
    R2 = 4 * max((phi**2).sum(axis=1).max() for phi in problem.features)
    delta, eps = max(c.max() for c in problem.costs), tol * optimum(kind, C)[1] / mean
    bound = math.ceil(math.log2(delta / (4 * R2 * mean))) + math.ceil(16 * R2 * mean / eps)
    assert bound == cutting_planes_bound(mean, math.sqrt(R2), eps, delta)
    assert 0 < history["planes"][-1] <= history["passes"][-1] <= bound


def test_cuts_do_not_grow_with_the_number_of_examples():
    """The same data over and over, at the same C of the mean."""
    counts = []
    for copies in (1, 8, 64):
        one = labels(8, 3, 3)
        X = Sequences(np.tile(one.X.matrix(), (copies, 1)), np.arange(8 * copies + 1))
        from mercer.learning import Risk

        risk = Risk(one.structure, Hinge(), X, np.tile(one.y, copies))
        _, history = solve(risk, CuttingPlane(cache=False), 2.0 / copies, tol=1e-4)
        counts.append(history["passes"][-1])
    assert max(counts) <= counts[0] + 2


def test_the_cache_saves_searches():
    """Rounds on planes known already count in ``cached``, searches in ``passes``."""
    problem = make_problem(lengths=(4,) * 30, F=6)
    from mercer.learning import Risk

    risk = Risk(problem.chain, Hinge(), problem.X, problem.y)
    _, with_cache = solve(risk, CuttingPlane(), 1.0)
    _, without = solve(risk, CuttingPlane(cache=False), 1.0)
    assert with_cache["cached"][-1] > 0
    assert without["cached"][-1] == 0
    assert with_cache["passes"][-1] < without["passes"][-1]


# ------------------------------------------------------------------------------------ binary machines


@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("solver", ["bmrm", "cutting-plane", "bcfw"])
def test_two_classes_are_the_support_vector_machine_without_offset(solver, C):
    """With Φ(x, y) = y x, v = 2 w solves ½‖v‖² + 4 C Σ [1 − y⟨x, v⟩]₊, four times the objective."""
    from sklearn.svm import LinearSVC

    from mercer.learning import Risk

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=40) > 0, 1, -1)
    structure = Enumerated([-1, 1], lambda x, z: z * np.asarray(x), 4)
    risk = Risk(structure, Hinge(), list(X), (y > 0).astype(int))
    result, history = solve(risk, solver, C, tol=1e-5)
    svm = LinearSVC(C=4 * C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)
    v = svm.coef_[0]
    best = 0.5 * v @ v + 4 * C * np.maximum(0, 1 - y * (X @ v)).sum()
    assert np.isclose(4 * history["primal"][-1], best, rtol=2e-5)
    np.testing.assert_allclose(2 * result.w, v, atol=2e-2)


def test_two_classes_are_the_kernel_machine_of_sklearn_with_an_offset_feature():
    """SVC with a linear kernel has a free offset; a large constant feature comes close to one."""
    from sklearn.svm import SVC

    from mercer.learning import Risk

    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) + 0.5
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=30) > 0.3, 1, -1)
    C, big = 0.25, 100.0
    wide = np.hstack([X, np.full((30, 1), big)])
    structure = Enumerated([-1, 1], lambda x, z: z * np.asarray(x), 4)
    _, history = solve(Risk(structure, Hinge(), list(wide), (y > 0).astype(int)), "bmrm", C, tol=1e-6)
    svc = SVC(kernel="linear", C=4 * C, tol=1e-8).fit(X, y)
    v, b = svc.coef_[0], svc.intercept_[0]
    best = 0.5 * v @ v + 4 * C * np.maximum(0, 1 - y * (X @ v + b)).sum()
    assert np.isclose(4 * history["primal"][-1], best, rtol=1e-3)


# ------------------------------------------------------------------------------------- relative margin

BOUNDED = {"cutting-plane": CuttingPlane(), "bcfw": BCFW()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", BOUNDED)
def test_a_relative_margin_is_the_program_with_both_constraints(solver, kind):
    problem, C, tol = PROBLEMS[kind](), 0.5, 1e-3
    result, history = solve(problem.risk(RelativeMargin(B)), BOUNDED[solver], C, tol=tol)
    check_certificate(problem, "hinge", C, result, history, optimum(kind, C, "relative-margin")[1], tol)
    assert problem.leads(result.w).max() <= B * (1 + 1e-9)  # of every output written out
    assert problem.leads(optimum(kind, C)[0]).max() > B  # and without the bound it would be broken


@pytest.mark.parametrize("kind", ["labels", "chain", "joint"])
@pytest.mark.parametrize("solver", BOUNDED)
@pytest.mark.parametrize("wide", [np.inf, 1e6])
def test_a_bound_that_never_binds_is_the_hinge(solver, kind, wide):
    problem, C = PROBLEMS[kind](), 0.5
    result, history = solve(problem.risk(RelativeMargin(wide)), BOUNDED[solver], C)
    check_certificate(problem, "hinge", C, result, history, optimum(kind, C)[1], 1e-3)


@pytest.mark.parametrize("solver", BOUNDED)
@pytest.mark.parametrize("tight", [1e-3, 0.1])
def test_a_tight_bound_forces_slack_and_still_ends(solver, tight):
    problem, C = labels(), 0.5
    result, _ = solve(problem.risk(RelativeMargin(tight)), BOUNDED[solver], C)
    assert result.converged
    assert problem.leads(result.w).max() <= tight * (1 + 1e-9)
    best = problem.optimum(C, B=tight)[1]
    assert best * (1 - 1e-6) <= problem.objective(result.w, C) <= best * (1 + 1.1e-3)


# ---------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("solver", [n for n in FAST if n.startswith("bcfw")] + list(SLOW) + ["n slacks", "one slack"])
def test_a_seed_repeats_the_result_to_the_last_bit(solver):
    runs = []
    for seed in (1, 1, 2):
        problem = make_problem(lengths=(4,) * 20)
        from mercer.learning import Risk

        risk = Risk(problem.chain, Hinge(), problem.X, problem.y)
        method = {**FAST, **SLOW}[solver]
        runs.append(solve(risk, method, 1.0, max_iter=3, seed=seed)[0].w)
    np.testing.assert_array_equal(runs[0], runs[1])
    if "slack" in solver:
        np.testing.assert_array_equal(runs[0], runs[2])
    elif solver not in ("marginal-dual", "bcfw, always measured"):  # the first weights may still be the best
        assert (runs[0] != runs[2]).any()


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        (solver, loss)
        for solver in ("bmrm", "one slack", "n slacks", "bcfw")
        for loss in ("hinge", "squared-hinge", "slack", "relative-margin")
        if (solver, loss) != ("bmrm", "relative-margin")  # bmrm takes no bound
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(solver, loss):
    lengths = tuple(np.random.default_rng(0).integers(0, 5, size=120))
    found = []
    for threads in (1, 3):
        problem = make_problem(lengths=lengths, F=5, edge_features=2, sparse=True, threads=threads)
        from mercer.learning import Risk

        risk = Risk(problem.chain, LOSSES[loss], problem.X, problem.y)
        found.append(solve(risk, FAST[solver], 1.0, max_iter=5)[0].w)
    np.testing.assert_array_equal(found[0], found[1])


# ----------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("solver", [s for s in MARGIN if s != "bmrm"])
@pytest.mark.parametrize("loss", [Log(), SoftmaxMargin(), Hybrid()])
def test_losses_that_are_no_planes_are_sent_to_bmrm(solver, loss):
    with pytest.raises(ValueError, match="use 'bmrm'"):
        solve(labels().risk(loss), solver, 1.0)


@pytest.mark.parametrize("solver", MARGIN)
@pytest.mark.parametrize("penalty", [Penalty(1.0, 0.0), Penalty(0.5, 0.5), Penalty(0.0, 0.0)])
def test_only_a_ridge_penalty_has_this_dual(solver, penalty):
    with pytest.raises(ValueError, match="needs penalty='l2'"):
        solve(labels().risk(Hinge()), solver, 1.0, penalty=penalty)


@pytest.mark.parametrize("solver", [s for s in MARGIN if s not in BOUNDED])
def test_bounds_are_refused_where_they_cannot_be_held(solver):
    with pytest.raises(ValueError, match="takes no bound on margins"):
        solve(labels().risk(RelativeMargin()), solver, 1.0)


def test_pegasos_takes_no_squared_loss():
    with pytest.raises(ValueError, match="no squared loss; use 'bcfw'"):
        solve(labels().risk(SquaredHinge()), "subgradient", 1.0)


def test_slack_is_one_or_n():
    with pytest.raises(ValueError, match="slack"):
        CuttingPlane("two")


@pytest.mark.parametrize("bad", [{"sampling": "gaps"}, {"cached": -1}, {"check_every": 0}, {"check_every": 2.5}])
def test_parameters_of_frank_wolfe_are_checked(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        solve(labels().risk(Hinge()), BCFW(**bad), 1.0, max_iter=1)


@pytest.mark.parametrize("solver", list(MARGIN))
def test_a_forbidden_truth_is_named_by_every_solver(solver):
    from mercer.learning import Risk

    problem = make_problem(lengths=(2, 2, 2))
    problem.y.labels[:] = [1, 0, 0, 1, 1, 0]
    problem.chain.masks = Constraints([(0, 1)]).masks(range(3))
    with pytest.raises(InfeasibleError, match="example 1"):
        solve(Risk(problem.chain, Hinge(), problem.X, problem.y), solver, 1.0)


@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        ("bmrm", "chain"),
        ("bmrm", "labels"),
        ("subgradient", "labels"),
        *[(s, "chain") for s in ("bcfw", "cutting-plane", "subgradient")],
        *[(s, "labels") for s in ("bcfw", "cutting-plane")],
    ],
)
def test_partly_known_outputs_are_refused_by_every_solver(solver, kind):
    from mercer.learning import Risk

    problem = make_problem(partial="none")
    risk = Risk(problem.chain, Hinge(), problem.X, problem.y)
    if kind == "labels":
        written = labels()
        written.y[2] = -1
        risk = written.risk(Hinge())
    with pytest.raises(ValueError, match="fully known outputs; use the log loss"):
        solve(risk, solver, 1.0)


@pytest.mark.parametrize("solver", MARGIN)
def test_a_run_that_ends_too_early_says_so(solver):
    problem = chain()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 iterations at a relative gap of .* \(tol=1e-09\)"):
        result, history = solve(problem.risk(Hinge()), solver, 0.5, max_iter=2, tol=1e-9, warn=True)
    assert not result.converged
    assert len(history["gap"]) == 2
    assert np.isclose(history["primal"][-1], problem.objective(result.w, 0.5))
    assert history["dual"][-1] <= optimum("chain", 0.5)[1] * (1 + 1e-7)


@pytest.mark.parametrize("solver", MARGIN)
def test_no_iterations_give_weights_all_the_same(solver):
    result, history = solve(chain().risk(Hinge()), solver, 1.0, max_iter=0)
    assert result.w.shape == (27,)
    assert not result.converged
    assert not history


@pytest.mark.parametrize("solver", MARGIN)
@pytest.mark.parametrize("bad", [{"tol": -1.0}, {"tol": np.nan}, {"tol": "small"}, {"max_iter": -1}, {"max_iter": 1.5}])
def test_training_checks_when_to_stop(solver, bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        solve(labels().risk(Hinge()), solver, 1.0, **bad)


def test_an_error_on_the_way_keeps_the_history():
    problem, calls = enumerated(), []
    inner = problem.structure.features

    def features(x, y):
        calls.append(1)
        if len(calls) > 300:
            raise RuntimeError("no more")
        return inner(x, y)

    problem.structure.features = features
    with pytest.raises(RuntimeError, match="no more") as caught:
        solve(problem.risk(Hinge()), "bmrm", 0.5, tol=0.0)
    assert len(caught.value.history["primal"]) > 1


@pytest.mark.parametrize("solver", MARGIN)
def test_an_interrupt_gives_the_best_so_far(solver, monkeypatch):
    from mercer.learning.monitor import Monitor

    record, seen = Monitor.record, []

    def strikes(self, weights, **figures):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(figures)
        return record(self, weights, **figures)

    monkeypatch.setattr(Monitor, "record", strikes)
    problem = chain()
    result, history = solve(problem.risk(Hinge()), solver, 1.0, tol=1e-12)
    assert result.interrupted
    assert not result.converged
    assert "interrupted" in result.message
    assert len(history["primal"]) == 5
    assert problem.objective(result.w, 1.0) <= history["primal"][-1] * (1 + 1e-9)


@pytest.mark.parametrize("check_every", [1, 2])
def test_frank_wolfe_moves_without_passes_over_known_planes(check_every):
    # Every pass of check_every = 1 measures; it must take its steps all the same.
    result, history = solve(chain().risk(Hinge()), BCFW(cached=0, check_every=check_every), 0.5, tol=1e-3)
    assert result.converged
    assert history["gap"][-1] <= 1e-3


@pytest.mark.parametrize("n", [5, 70, 200])
def test_groups_are_visited_as_often_as_their_examples(n):
    structure = SimpleNamespace(searched_together=4)
    sets = SimpleNamespace(everyone=np.arange(n), risk=SimpleNamespace(structure=structure))
    size = max(1, min(4, n // 32))
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(n), 3))
    groups = BCFW()._groups(sets, order)
    assert all(group.start % size == 0 and group.stop <= n for group in groups)
    visits = np.zeros(n, int)
    for group in groups:
        visits[group] += 1
    assert (visits == 3).all()


def test_ascent_over_groups_of_segmentations_reaches_the_optimum():
    rng = np.random.default_rng(0)
    X = [[[f"w{word}", f"p{word % 3}"] for word in rng.integers(0, 9, 5)] for _ in range(70)]
    y = [[f"{'BI'[t % 2]}-X" for t in range(4)] + ["O"] for _ in X]
    ends = []
    for solver in (BCFW(), BMRM()):
        model = Segmenter(loss="hinge", C=0.5, form="bio", solver=solver, tol=1e-3, random_state=0).fit(X, y)
        assert model.converged_
        ends.append(model.history_["primal"][-1])
    assert model.structure_.searched_together > 1
    np.testing.assert_allclose(*ends, rtol=2e-3)
    assert Segmenter(loss="hinge", C=0.5, form="bio", tol=1e-2).fit(X, y).solver_ == "bcfw"
