"""All solvers reach one optimum, SciPy's on the enumerated objective; rules separate what is separable."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mercer import _core
from mercer.exceptions import InfeasibleError
from mercer.learning import SOLVERS, Hinge, Log, Penalty, Risk, resolve_solver
from mercer.learning.monitor import Monitor
from mercer.learning.solvers import LBFGS, lbfgs
from mercer.learning.solvers.lbfgs import _Memory, _Objective
from mercer.learning.solvers.online import Epochs
from mercer.learning.solvers.sgd import _calibrate, _options, warm_up
from mercer.segmentation import Segmenter
from mercer.structures import Constraints
from mercer.tagging import Tagger
from reference.problems import make_problem

RULES = Constraints([(0, 1), (2, 2)], forbidden_start=[1])
PENALTIES = {"l2": Penalty(0.0, 1.0), "l1": Penalty(1.0, 0.0), "elasticnet": Penalty(0.3, 0.7)}
PROBLEMS = {
    "plain": {},
    "edges": {"edge_features": 2},
    "pattern": {"pattern": True},
    "constraints": {"constraints": RULES},
}


def solve(problem, solver, penalty, C, *, max_iter=5000, tol=1e-9, w0=None, seed=0, loss=None):
    monitor = Monitor(max_iter=max_iter)
    w0 = np.zeros(problem.chain.n_weights) if w0 is None else w0
    solver = resolve_solver(solver)
    risk = problem.risk if loss is None else Risk(problem.chain, loss, problem.X, problem.y)
    solver.check(risk, penalty)
    result = solver.minimize(risk, penalty, C, w0, max_iter=max_iter, tol=tol, monitor=monitor, random_state=seed)
    return result, monitor.history


def loss_for(solver):
    """The log loss, or the hinge for solvers that work on planes."""
    try:
        resolve_solver(solver).check(make_problem().risk, PENALTIES["l2"])
    except ValueError:
        return Hinge()
    return Log()


def gap(problem, w, penalty, C) -> float:
    """How far F(w) lies above SciPy's minimum, relative to it."""
    best = problem.oracle.objective(problem.oracle.optimum(C, penalty.l1, penalty.l2), C, penalty.l1, penalty.l2)
    return (problem.oracle.objective(w, C, penalty.l1, penalty.l2) - best) / best


@pytest.mark.parametrize("C", [0.1, 2.0])
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize(
    ("solver", "penalty"), [("lbfgs", "l2"), ("owlqn", "l2"), ("owlqn", "l1"), ("owlqn", "elasticnet")]
)
def test_batch_solvers_reach_scipys_optimum(solver, penalty, kind, C):
    problem, penalty = make_problem(**PROBLEMS[kind]), PENALTIES[penalty]
    result, _ = solve(problem, solver, penalty, C)
    assert abs(gap(problem, result.w, penalty, C)) < 1e-8
    if penalty.l2:  # strictly convex: one minimiser
        np.testing.assert_allclose(result.w, problem.oracle.optimum(C, penalty.l1, penalty.l2), atol=1e-4)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_long_sgd_comes_close_to_the_optimum(penalty, kind):
    problem, penalty = make_problem(**PROBLEMS[kind]), PENALTIES[penalty]
    result, _ = solve(problem, "sgd", penalty, 1.0, max_iter=1000, tol=0.0)
    # Without an ℓ2 part the objective is not strongly convex, and the last digits come slowly.
    assert 0 <= gap(problem, result.w, penalty, 1.0) < (1e-4 if penalty.l2 else 1e-3)


def test_sgd_with_hidden_labels_comes_close_to_the_optimum():
    """The objective is not convex: the batch optimum from the same start is the mark."""
    problem, penalty = make_problem(partial="sets"), PENALTIES["l2"]
    batch = solve(problem, "lbfgs", penalty, 1.0)[0].w
    online = solve(problem, "sgd", penalty, 1.0, max_iter=1000, tol=0.0)[0].w
    values = [problem.oracle.objective(w, 1.0) for w in (batch, online)]
    assert np.isclose(*values, rtol=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
def test_the_l1_optimum_satisfies_the_subgradient_conditions(penalty, C):
    problem, penalty = make_problem(), PENALTIES[penalty]
    w = solve(problem, "owlqn", penalty, C, tol=1e-10)[0].w
    slope = C * problem.oracle.risk(w)[1] + penalty.l2 * w
    zero = w == 0
    assert zero.sum() > 0
    assert (np.abs(slope[zero]) <= penalty.l1 + 1e-5).all()
    np.testing.assert_allclose(slope[~zero], -penalty.l1 * np.sign(w[~zero]), atol=1e-5)


def test_a_strong_l1_penalty_leaves_nothing():
    problem = make_problem()
    slope = np.abs(problem.oracle.risk(np.zeros(problem.chain.n_weights))[1]).max()
    result, _ = solve(problem, "owlqn", PENALTIES["l1"], 0.99 / slope)
    assert not result.w.any()
    assert result.converged
    assert solve(problem, "owlqn", PENALTIES["l1"], 1.5 / slope)[0].w.any()


@pytest.mark.parametrize(("solver", "penalty"), [("lbfgs", "l2"), ("owlqn", "l1"), ("owlqn", "elasticnet")])
def test_the_history_holds_the_objective_which_never_rises(solver, penalty):
    problem, penalty = make_problem(lengths=(4,) * 12), PENALTIES[penalty]
    C = 3.0
    result, history = solve(problem, solver, penalty, C)
    objective = np.array(history["objective"])
    assert len(objective) > 5
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[1:])).all()
    assert np.isclose(objective[-1], problem.oracle.objective(result.w, C, penalty.l1, penalty.l2), rtol=1e-10)
    assert {len(values) for values in history.values()} == {len(objective)}
    assert (np.diff(history["passes"]) >= 1).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    shorter, begin = solve(problem, solver, penalty, C, max_iter=3)
    assert np.isclose(
        begin["objective"][-1], problem.oracle.objective(shorter.w, C, penalty.l1, penalty.l2), rtol=1e-10
    )
    assert not shorter.converged
    assert "max_iter=3" in shorter.message


def test_without_a_penalty_expected_features_equal_empirical_features():
    """Maximum likelihood matches moments, on data that is not separable."""
    problem = make_problem(lengths=(3,) * 40, C=2, F=2, seed=3)
    result, _ = solve(problem, "lbfgs", Penalty(0.0, 0.0), 1.0, tol=1e-9)
    value, gradient = problem.oracle.risk(result.w)
    assert np.isfinite(value)
    assert np.abs(result.w).max() < 20
    expected = problem.oracle.empirical() + gradient  # ∇ = E[Φ] − Φ(y)
    assert np.linalg.norm(expected - problem.oracle.empirical()) < 1e-5


@pytest.mark.parametrize(("solver", "penalty"), [("lbfgs", "l2"), ("owlqn", "elasticnet")])
def test_different_starts_end_at_the_same_weights(solver, penalty):
    problem = make_problem()
    ends = []
    for seed in range(3):
        w0 = np.random.default_rng(seed).normal(scale=3.0, size=problem.chain.n_weights)
        ends.append(solve(problem, solver, PENALTIES[penalty], 1.0, w0=w0)[0].w)
    for w in ends[1:]:
        np.testing.assert_allclose(w, ends[0], atol=1e-4)


@pytest.mark.parametrize("memory", [1, 3, 20])
@pytest.mark.parametrize("warm_up", [0, 1, 5])
def test_any_memory_and_warm_up_reach_the_optimum(memory, warm_up):
    problem = make_problem()
    result, _ = solve(problem, LBFGS(memory, warm_up), PENALTIES["l2"], 1.0)
    assert abs(gap(problem, result.w, PENALTIES["l2"], 1.0)) < 1e-9


def test_a_step_that_is_too_long_is_cut_to_the_minimum_of_the_parabola():
    class Parabola:
        def value_and_gradient(self, w, g):
            g[:] = w - 3.0
            return 0.5 * float((w - 3.0) @ (w - 3.0)), None

    objective = _Objective(Parabola(), SimpleNamespace(l2=0.0, l1=0.0, value=lambda w: 0.0), 1.0)
    w, g = np.zeros(1), np.zeros(1)
    value = objective(w, g)
    found = objective.wolfe_search(w, g, value, np.array([3.0]), -9.0, 3.0)
    assert found is not None
    assert abs(found[0] - 1.0) < 1e-12
    assert abs(w[0] - 3.0) < 1e-12
    assert objective.passes == 3


def test_large_features_do_not_break_the_line_search():
    problem = make_problem()
    from mercer.data import Sequences

    problem.X = Sequences(problem.X.matrix() * 1e6, problem.X.offsets)
    result, history = solve(problem, "lbfgs", PENALTIES["l2"], 1.0, max_iter=200)
    assert np.isfinite(result.w).all()
    assert history["objective"][-1] < history["objective"][0]


# -------------------------------------------------------------------------------- mistake-driven rules


def separable():
    """Each position's label is the largest of its features."""
    problem = make_problem(lengths=(5,) * 30, F=3)
    problem.y.labels[:] = problem.X.matrix().argmax(axis=1)
    return problem


@pytest.mark.parametrize("solver", ["averaged-perceptron", "passive-aggressive"])
def test_mistake_driven_rules_separate_separable_data(solver):
    problem = separable()
    result, history = solve(problem, solver, Penalty(), 1.0, max_iter=200, tol=0.0)
    assert history["mistakes"][-1] == 0
    assert history["mistakes"][0] > 0
    assert result.converged
    assert result.message == "no mistakes left"
    predicted, _ = problem.chain.argmax(problem.chain.scores(result.w, problem.X))
    assert (predicted == problem.y.labels).mean() > 0.97


def test_passive_aggressive_steps_are_bounded_by_C():
    problem = separable()
    for bound in (1e-3, 1e-1):
        result, _ = solve(problem, "passive-aggressive", Penalty(), bound, max_iter=1)
        biggest = 30 * bound * 2 * np.abs(problem.X.matrix()).sum(axis=0).max()
        assert 0 < np.abs(result.w).max() <= biggest
    small, large = (solve(problem, "passive-aggressive", Penalty(), bound, max_iter=1)[0].w for bound in (1e-3, 1e-1))
    assert np.linalg.norm(small) < np.linalg.norm(large) / 5


def test_one_perceptron_step_is_the_difference_of_joint_features():
    from reference.crf import joint_features

    problem = make_problem(lengths=(4,), edge_features=2)
    problem.y.labels[:] = [2, 1, 1, 0]
    result, _ = solve(problem, "averaged-perceptron", Penalty(), 1.0, max_iter=1)
    edges = problem.X.edges.dense
    step = joint_features(problem.matrices[0], [2, 1, 1, 0], 3, edges) - joint_features(
        problem.matrices[0], [0, 0, 0, 0], 3, edges
    )
    np.testing.assert_allclose(result.state["w"], step)  # at w = 0 all labels tie: the first is predicted
    np.testing.assert_allclose(result.w, step / 2)  # the mean of w before and after the step


def test_rules_leave_forbidden_and_untrained_transitions_alone():
    trained = np.array([[True, True, False], [True, True, True], [True, True, True]])
    for solver in ("sgd", "averaged-perceptron", "passive-aggressive"):
        problem = make_problem(lengths=(5,) * 10, constraints=RULES, trained=trained)
        result, _ = solve(problem, solver, Penalty(), 1.0, max_iter=5)
        transitions = result.w[problem.chain.slices["transitions"]].reshape(3, 3)
        assert transitions[0, 2] == 0
        assert transitions[0, 1] == 0
        assert transitions[2, 2] == 0
        assert transitions.any()


def test_sgd_gives_weights_with_a_lower_objective_than_those_of_its_last_step():
    problem = make_problem(lengths=(3, 2) * 100, F=6)
    problem.y.labels[:] = problem.X.rows.matrix(0, 500)[:, :3].argmax(axis=1)
    run = Epochs(problem.risk, 0, None, 0, lean=True)
    options = _options(problem.risk, PENALTIES["l2"], 10.0)
    rate = _calibrate(problem.risk, PENALTIES["l2"], 10.0, None, run, options)
    for _ in range(5):
        run.run(run.shuffled(), rate=rate, **options)
    objective = _Objective(problem.risk, PENALTIES["l2"], 10.0)
    found = solve(problem, "sgd", PENALTIES["l2"], 10.0, max_iter=5, tol=0.0)[0].w
    assert (found != run.weights()).any()
    assert objective(found, np.empty_like(found)) < objective(run.weights(), np.empty_like(found))


# ----------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_pairs_stand_for_a_positive_definite_matrix_that_knows_the_last_of_them(scale, rounded):
    rng = np.random.default_rng(0)
    n, step = 300, 0.25
    curvature = rng.uniform(0.1, 10.0, n) * 10.0 ** rng.uniform(-3, 3, n)
    memory = _Memory(3, n, rounded=rounded)
    for _ in range(5):
        slot = memory.free_slot()
        d = (scale * rng.normal(size=n)).astype(np.float32)
        memory.write(d, memory.d[slot])
        memory.write((step * curvature * d).astype(np.float32), memory.y[slot])
        memory.keep(slot, step)
    assert len(memory.pairs) == 3
    for _ in range(20):
        x = rng.normal(size=n).astype(np.float32)
        q = x.copy()
        memory.apply(q)
        assert x.astype(float) @ q > 0
    y, d = np.zeros(n, np.float32), np.zeros(n)
    _core.vectors.axpy(1.0, memory.y[slot], y)
    _core.vectors.axpy(step, memory.d[slot], d)
    memory.apply(y)  # H y = s
    assert np.abs(y - d).max() < 1e-4 * np.abs(d).max()


@pytest.mark.parametrize("rounded", [True, False])
def test_a_pair_without_positive_curvature_is_left_out(rounded):
    memory = _Memory(2, 3, rounded=rounded)
    for x, y in ((1.0, -1.0), (1.0, 0.0)):
        slot = memory.free_slot()
        memory.write(np.full(3, x, np.float32), memory.d[slot])
        memory.write(np.full(3, y, np.float32), memory.y[slot])
        memory.keep(slot, 1.0)
    assert not memory.pairs


# ----------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"dual", "newton"}))  # tests/classification has single labels
def test_results_are_the_same_to_the_last_bit_for_any_number_of_threads(solver):
    lengths = tuple(np.random.default_rng(0).integers(1, 5, size=400))
    found = []
    for threads in (1, 2, 3):
        problem = make_problem(lengths=lengths, F=6, edge_features=2, sparse=True, threads=threads)
        rounds = 1 if solver == "marginal-dual" else 5
        found.append(solve(problem, solver, PENALTIES["l2"], 1.0, max_iter=rounds, loss=loss_for(solver))[0].w)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_warm_up_is_the_same_to_the_last_bit_for_any_number_of_threads(penalty):
    found = []
    problem = make_problem(lengths=(3, 2) * 600, F=6, pattern=True)
    for problem.chain.threads in (1, 2, 3):
        found.append(warm_up(problem.risk, PENALTIES[penalty], 1.0, 2, None))
    assert found[0].any()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_warm_up_of_many_examples_comes_close_to_the_minimum():
    problem = make_problem(lengths=(3, 2) * 600, F=6)
    problem.y.labels[:] = problem.X.rows.matrix(0, 3000)[:, :3].argmax(axis=1)
    objective = _Objective(problem.risk, PENALTIES["l2"], 1.0)
    minimum = solve(problem, "lbfgs", PENALTIES["l2"], 1.0, max_iter=100, tol=1e-4)[0].w
    g = np.empty_like(minimum)
    at_zero, at_minimum = objective(np.zeros_like(g), g), objective(minimum, g)
    reached = objective(warm_up(problem.risk, PENALTIES["l2"], 1.0, 3, None), g)
    assert reached - at_minimum < 0.1 * (at_zero - at_minimum)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_infeasible_example_is_named_in_the_warm_up(threads):
    problem = make_problem(lengths=(2,) * 1200, threads=threads)
    problem.chain.masks = Constraints([(0, 1)]).masks(range(3))
    problem.y.labels[:] = 1
    problem.y.labels[2 * 700 : 2 * 701] = [0, 1]
    with pytest.raises(InfeasibleError, match="example 700"):
        warm_up(problem.risk, PENALTIES["l2"], 1.0, 1, None)


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "passive-aggressive"])
def test_online_solvers_repeat_with_a_seed_and_differ_without(solver):
    problem = make_problem(lengths=(4,) * 20)
    runs = [solve(problem, solver, PENALTIES["l2"], 1.0, max_iter=3, seed=seed)[0].w for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


# ------------------------------------------------------------------------------------- what is refused


def test_lbfgs_refuses_an_l1_penalty():
    with pytest.raises(ValueError, match="owlqn"):
        solve(make_problem(), "lbfgs", PENALTIES["l1"], 1.0)


@pytest.mark.parametrize("name", ["simplex", "", None, 3])
def test_an_unknown_solver_is_refused(name):
    with pytest.raises(ValueError, match="unknown solver"):
        resolve_solver(name)


def test_penalties_have_their_formula():
    w = np.array([1.0, -2.0, 0.0])
    assert Penalty.named("l2").value(w) == 2.5
    assert Penalty.named("l1").value(w) == 3.0
    assert Penalty.named("elasticnet", 0.25).value(w) == 0.25 * 3.0 + 0.75 * 2.5
    assert Penalty.named(None).value(w) == 0.0
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="l1_ratio"):
            Penalty.named("elasticnet", bad)
    with pytest.raises(ValueError, match="unknown penalty"):
        Penalty.named("l0")


def names_problem(n=40, seed=0):
    """Sequences whose features occur as often as words do: a few everywhere, most of them once or twice."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = np.minimum(rng.zipf(1.3, size=8), 400)
        X.append([["bias", f"w{word}", f"p{word % 7}"] for word in words])
        y.append([str((word + (rng.random() < 0.2)) % 3) for word in words])
    return X, y


@pytest.mark.parametrize("transitions", ["dense", "features"])
def test_curvature_is_the_variance_of_labels_summed_over_features(transitions):
    X, y = names_problem(6)
    tagger = Tagger(max_iter=3, transitions=transitions).fit(X, y)
    sequences, tags = tagger._read(X, y)
    risk, w = Risk(tagger.structure_, Log(), sequences, tags), tagger.coef_
    out = np.full(len(w), 7.0)
    assert risk.curvature(w, out)
    mu = tagger.predict_marginals(X)
    wanted = np.zeros((sequences.n_features, 3))
    for rows, one in zip(sequences, mu, strict=True):
        wanted += rows.T @ (one * (1 - one))
    keys = tagger.structure_.keys("nodes")
    np.testing.assert_allclose(out[tagger.structure_.slices["nodes"]], wanted.ravel()[keys], atol=1e-12)
    assert (out >= -1e-12).all()


def test_curvature_is_for_features_that_are_0_or_1():
    problem = make_problem()
    assert not problem.risk.curvature(np.zeros(problem.chain.n_weights), np.zeros(problem.chain.n_weights))
    X, y = names_problem(3)
    segmenter = Segmenter(loss="log", max_iter=2).fit(X, y)
    sequences, segments = segmenter._read(X, y)
    risk = Risk(segmenter.structure_, Log(), sequences, segments)
    out = np.zeros(len(segmenter.coef_))
    assert risk.curvature(segmenter.coef_, out)
    mu = segmenter.structure_.marginals(segmenter.structure_.scores(segmenter.coef_, sequences))
    spread = sequences.matrix().T @ (mu.frames * (1 - mu.frames))
    part = segmenter.structure_.slices["sum"]
    np.testing.assert_allclose(out[part], spread.ravel()[segmenter.structure_.keys("sum")], atol=1e-12)


@pytest.mark.parametrize("rounded", [False, True])
def test_curvature_changes_the_way_and_not_the_end(monkeypatch, rounded):
    X, y = names_problem(100)
    if rounded:
        monkeypatch.setattr(lbfgs, "_SMALL", 4)
    settings = {"C": 2.0, "solver": LBFGS(memory=3)}
    near, end = (Tagger(tol=tol, **settings).fit(X, y) for tol in (1e-3, 1e-6))
    monkeypatch.setattr(Risk, "curvature", lambda self, w, out: False)
    near_without, end_without = (Tagger(tol=tol, **settings).fit(X, y) for tol in (1e-3, 1e-6))
    np.testing.assert_allclose(end.history_["objective"][-1], end_without.history_["objective"][-1], rtol=1e-7)
    assert near.history_["passes"][-1] < 0.7 * near_without.history_["passes"][-1]
    np.testing.assert_allclose(near.history_["objective"][-1], end.history_["objective"][-1], rtol=1e-3)
