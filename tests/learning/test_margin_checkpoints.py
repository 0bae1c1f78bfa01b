"""Checkpoints of the margin solvers: a killed training goes on, to the last bit where the state says all."""

from __future__ import annotations

import os
import signal
import warnings
import weakref

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import ModelFileError, _core
from mercer._state.container import read_file, write_file
from mercer.alignment import Aligner
from mercer.classification import LinearClassifier
from mercer.data.trees import Tree
from mercer.datasets import make_regions
from mercer.labeling import GraphLabeler
from mercer.learning import Checkpoint, ConvergenceWarning, Hybrid, RelativeMargin
from mercer.learning.monitor import Monitor
from mercer.learning.solvers import BCFW, BMRM, CuttingPlane
from mercer.learning.solvers.certified import Best
from mercer.parsing import Parser
from mercer.ranking import LabelRanker, Ranker
from mercer.segmentation import Segmenter
from mercer.structured import CustomStructure, StructuredPredictor
from mercer.structures.joint import Joint
from mercer.tagging import Tagger
from reference.forked import popen

SCRIPT = """
import sys, time
import numpy as np
from mercer.learning import Checkpoint
from mercer.learning.monitor import Monitor

record = Monitor.record
def slowly(self, *args, **figures):
    stop = record(self, *args, **figures)
    print(self.iterations, flush=True)
    time.sleep(0.05)
    return stop
Monitor.record = slowly
solver, path = sys.argv[1:]
rng = np.random.default_rng(0)
if solver == "dual":
    from mercer.classification import LinearClassifier
    X, y = rng.normal(size=(200, 8)), rng.integers(0, 4, 200)
    LinearClassifier(C=5.0, solver="dual", tol=1e-9, random_state=0).fit(X, y, checkpoint=Checkpoint(path, every=0))
else:
    from mercer.tagging import Tagger
    X = [rng.normal(size=(5, 6)) for _ in range(30)]
    y = [rng.integers(0, 3, 5).tolist() for _ in X]
    model = Tagger("hinge", solver, C=1.0, max_iter=40, tol=1e-4, random_state=0)
    model.fit(X, y, checkpoint=Checkpoint(path, every=0))
"""
SOLVERS = ["bcfw", "cutting-plane", "bmrm", "subgradient", "marginal-dual", "dual"]


def quietly(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


def tagging():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 6)) for _ in range(30)]
    return X, [rng.integers(0, 3, 5).tolist() for _ in X]


def task(solver):
    """A model and its data, as in the script."""
    if solver == "dual":
        rng = np.random.default_rng(0)
        data = rng.normal(size=(200, 8)), rng.integers(0, 4, 200)
        return LinearClassifier(C=5.0, solver="dual", tol=1e-9, random_state=0), data
    return Tagger("hinge", solver, C=1.0, max_iter=40, tol=1e-4, random_state=0), tagging()


def unfinished(model, data, path, iterations=3, **options):
    """Leaves the checkpoint of a run that died."""
    write = Checkpoint.write

    def dies(self, state, arrays):
        write(self, state, arrays)
        if len(state["history"]["seconds"]) >= iterations:
            raise SystemExit("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", dies)
        with pytest.raises(SystemExit):
            quietly(model, *data, checkpoint=Checkpoint(path, every=0), **options)
    assert path.exists()


def same_history(a, b):
    assert a.keys() == b.keys()
    for name in a.keys() - {"seconds"}:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_training_that_died_goes_on_to_the_same_weights(solver, tmp_path):
    """In the middle of a write, in this process: the next test kills one in earnest, and all write in one way."""
    path = tmp_path / "run.checkpoint"
    unfinished(*task(solver), path, iterations=4)
    model, data = task(solver)
    again = quietly(model, *data, checkpoint=path)
    whole = quietly(task(solver)[0], *data)
    same_history(again.history_, whole.history_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert os.listdir(tmp_path) == [], "the checkpoint is removed when training ends"


def test_a_training_killed_with_signal_9_goes_on_to_the_same_weights(tmp_path):
    path, solver = tmp_path / "run.checkpoint", "bcfw"
    process = popen(SCRIPT, solver, str(path), text=True)
    for line in process.stdout:
        if line.strip() == "4":
            break
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err
    assert path.exists()
    model, data = task(solver)
    again = quietly(model, *data, checkpoint=path)
    whole = quietly(task(solver)[0], *data)
    same_history(again.history_, whole.history_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert os.listdir(tmp_path) == [], "the checkpoint is removed when training ends"


CONFIGURED = {
    "bcfw, average": ("hinge", BCFW(sampling="uniform", average=True)),
    "bcfw, squared": ("squared-hinge", "bcfw"),
    "bcfw, bound": (RelativeMargin(B=4.0), "bcfw"),
    "bcfw, slack": ("slack", "bcfw"),
    "n-slack": ("hinge", CuttingPlane("n")),
    "n-slack, bound": (RelativeMargin(B=4.0), "cutting-plane"),
    "no cache": ("hinge", CuttingPlane(cache=False)),
    "bmrm, no line search": ("hinge", BMRM(line_search=False)),
    "bmrm, smooth": ("softmax-margin", "bmrm"),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_every_form_of_a_solver_goes_on_as_if_nothing_had_been(name, tmp_path):
    loss, solver = CONFIGURED[name]
    options = {"loss": loss, "solver": solver, "C": 1.0, "max_iter": 12, "tol": 1e-6, "random_state": 0}
    path = tmp_path / "run"
    unfinished(Tagger(**options), tagging(), path, iterations=5)
    again = quietly(Tagger(**options), *tagging(), checkpoint=path)
    whole = quietly(Tagger(**options), *tagging())
    same_history(again.history_, whole.history_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("iterations", [3, 25])
def test_the_hybrid_loss_resumes_among_its_first_steps_and_after_them_to_the_same_optimum(iterations, tmp_path):
    options = {"loss": Hybrid(0.5), "solver": "bmrm", "C": 1.0, "tol": 1e-4}
    whole = quietly(Tagger(**options), *tagging())
    assert whole.n_iter_ > iterations
    path = tmp_path / "run"
    unfinished(Tagger(**options), tagging(), path, iterations)
    again = quietly(Tagger(**options), *tagging(), checkpoint=path)
    assert again.converged_
    assert again.history_["gap"][-1] <= 1e-4
    assert again.history_["objective"][:iterations] == whole.history_["objective"][:iterations]
    assert again.history_["objective"][-1] == pytest.approx(whole.history_["objective"][-1], rel=2e-4)


# ------------------------------------------------------------------------------------- estimators


class Ordering(CustomStructure):
    """y is an order of the rows of x; the earlier a row, the more it counts."""

    def features(self, x, y):
        return np.linspace(1, -1, len(y)) @ x[list(y)]

    def argmax(self, w, x, cost_to=None):
        from itertools import permutations

        def value(y):
            return w @ self.features(x, y) + (0 if cost_to is None else self.cost(cost_to, y))

        return max(permutations(range(len(x))), key=value)


def estimators():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 3, 40)
    wide = csr_array(np.where(rng.random((4200, 300)) < 0.03, rng.normal(size=(4200, 300)), 0.0))
    regions = make_regions(8, n_regions=(4, 6), random_state=0)
    rows = [rng.normal(size=(3, 2)) for _ in range(12)]
    orders = [tuple(rng.permutation(3).tolist()) for _ in rows]
    frames = [rng.normal(size=(8, 3)) for _ in range(8)]
    segments = [["a"] * 3 + ["b"] * 3 + ["a"] * 2 for _ in frames]
    edges = [[(int(a), int((a + 1) % 3))] for a in y]
    trees = [
        Tree.parse(text)
        for text in (
            "(S (NP (N dogs)) (VP (V see) (NP (N cats))))",
            "(S (NP (N cats)) (VP (V see) (NP (N dogs) (PP (P with) (N cats)))))",
            "(S (NP (N dogs)) (VP (V see) (NP (N cats)) (PP (P with) (N dogs))))",
            "(S (NP (N dogs)) (VP (V see) (NP (N dogs) (PP (P with) (N dogs)))))",
            "(S (NP (N cats)) (VP (V see) (NP (N cats)) (PP (P with) (N cats))))",
        )
    ]
    pairs = [("ACGT", "AGT"), ("AACC", "ACC"), ("GATT", "GCT"), ("CCG", "CG")]
    gapped = [("ACGT", "A-GT"), ("AACC", "-ACC"), ("GATT", "GC-T"), ("CCG", "-CG")]
    exact = {"tol": 1e-7, "random_state": 0}
    return {
        "LinearClassifier": (lambda: LinearClassifier(C=3.0, **exact), (X, y)),
        "LinearClassifier, wide": (
            lambda: LinearClassifier(C=1.0, solver="dual", tol=1e-5, random_state=0),
            (wide, rng.integers(0, 6, 4200)),
        ),
        "LinearClassifier, log": (lambda: LinearClassifier("log", C=3.0, **exact), (X, y)),
        "StructuredPredictor": (lambda: StructuredPredictor(Ordering(), C=1.0, max_iter=9, **exact), (rows, orders)),
        "Segmenter": (lambda: Segmenter(C=1.0, max_iter=9, **exact), (frames, segments)),
        "GraphLabeler": (lambda: GraphLabeler("hinge", C=1.0, max_iter=9, **exact), (regions.X, regions.y)),
        "Ranker": (lambda: Ranker(C=1.0, max_iter=9, **exact), (X, y, y % 2)),
        "LabelRanker": (lambda: LabelRanker(C=1.0, max_iter=9, **exact), (X, edges)),
        "Parser": (lambda: Parser(C=1.0, max_iter=9, **exact), (None, trees)),
        "Aligner": (lambda: Aligner(C=1.0, max_iter=9, **exact), (pairs, gapped)),
    }


ESTIMATORS = estimators()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_goes_on_from_its_checkpoint_and_refuses_that_of_other_data(name, tmp_path):
    make, data = ESTIMATORS[name]
    path = tmp_path / "run"
    unfinished(make(), data, path, iterations=2)
    before = path.read_bytes()
    fewer = [None if part is None else part[:-1] for part in data]
    with pytest.raises(ModelFileError, match="other data or settings"):
        quietly(make(), *fewer, checkpoint=path)
    with pytest.raises(ModelFileError, match="other data or settings"):
        quietly(make().set_params(C=2.0), *data, checkpoint=path)
    assert path.read_bytes() == before
    again, whole = quietly(make(), *data, checkpoint=path), quietly(make(), *data)
    assert not path.exists()
    if "log" in name:  # the memory of curvature is lost: another way to the same optimum
        np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-4)
        return
    same_history(again.history_, whole.history_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_first_training_that_fails_leaves_a_model_that_is_not_fitted(name, monkeypatch):
    make, data = ESTIMATORS[name]
    record = Monitor.record

    def fails(self, *args, **figures):
        record(self, *args, **figures)
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Monitor, "record", fails)
    model = make()
    with pytest.raises(RuntimeError, match="out of luck"):
        quietly(model, *data)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(data[0] if data[0] is not None else [["dogs"]])
    with pytest.raises(NotFittedError):
        model.to_state()
    monkeypatch.undo()
    check_is_fitted(quietly(model, *data))


def test_solvers_with_other_settings_are_other_runs(tmp_path):
    path = tmp_path / "run"
    unfinished(Tagger("hinge", CuttingPlane("one"), tol=1e-9), tagging(), path)
    with pytest.raises(ModelFileError, match="other data or settings"):
        Tagger("hinge", CuttingPlane("n"), tol=1e-9).fit(*tagging(), checkpoint=path)


@pytest.mark.parametrize("solver", ["bcfw", "bmrm"])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_truncated_checkpoint_is_refused_by_name(solver, keep, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(*task(solver), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    model, data = task(solver)
    with pytest.raises(ModelFileError, match=r"run\.checkpoint"):
        model.fit(*data, checkpoint=path)
    assert path.exists()


def test_a_parser_that_only_counts_takes_no_checkpoint(tmp_path):
    _, data = ESTIMATORS["Parser"]
    with pytest.raises(ValueError, match="omit checkpoint"):
        Parser(method="pcfg").fit(*data, checkpoint=tmp_path / "run")


def test_an_interrupted_margin_training_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from mercer.learning.solvers.cutting_plane import WorkingSets

    path, solve, calls = tmp_path / "run", WorkingSets.solve, []

    def strikes(self, *args):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return solve(self, *args)

    monkeypatch.setattr(WorkingSets, "solve", strikes)
    model, data = task("bcfw")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        first = model.fit(*data, checkpoint=Checkpoint(path, every=0))
    assert path.exists()
    again, whole = quietly(task("bcfw")[0], *data, checkpoint=path), quietly(task("bcfw")[0], *data)
    assert again.n_iter_ > first.n_iter_
    same_history(again.history_, whole.history_)


# ------------------------------------------------------------------------------------- states that do not fit

BROKEN = {
    "half of the best weights": (SOLVERS, "solver.best.w", lambda x: x[: len(x) // 2]),
    "best weights beyond numbers": (SOLVERS, "solver.best.bounds", lambda x: np.full(2, np.nan)),
    "bounds that are already met": (SOLVERS, "solver.best.bounds", lambda x: np.full(2, 1e30)),
    "a dual value above the primal one": (SOLVERS, "solver.best.bounds", lambda x: np.array([1.0, 2.0])),
    "no bounds": (SOLVERS, "solver.best.bounds", lambda x: None),
    "one bound": (SOLVERS, "solver.best.bounds", lambda x: x[:1]),
    "weights of no multipliers": (["bcfw"], "solver.sets.w", lambda x: 0.5 * x),
    "short weights": (["bcfw"], "solver.sets.w", lambda x: x[1:]),
    "a short average": (["bcfw"], "solver.average", lambda x: x[:1]),
    "multipliers above the mass": (["bcfw"], "solver.sets.multipliers", lambda x: 1e6 * x),
    "another linear term": (["bcfw"], "solver.sets.linear", lambda x: np.full(1, 1e30)),
    "high planes": (["bcfw", "cutting-plane"], "solver.sets.offsets", lambda x: np.full_like(x, 1e30)),
    "no planes": (["bcfw"], "solver.sets.blocks", lambda x: None),
    "a high bundle": (["bmrm", "cutting-plane"], "solver.bundle.offsets", lambda x: x + np.where(x > 0, 1e30, 0)),
    "a first plane above 0": (["bmrm", "cutting-plane"], "solver.bundle.offsets", lambda x: x + 1e-3),
    "fewer slopes": (["bmrm", "cutting-plane"], "solver.bundle.slopes", lambda x: x[:-1]),
    "another Gram matrix": (["bmrm", "cutting-plane"], "solver.bundle.gram", lambda x: 0.5 * x),
    "shares above 1": (["bmrm", "cutting-plane"], "solver.bundle.multipliers", lambda x: 2.0 * x),
    "a slope held": (["bmrm"], "solver.held.slope", lambda x: x[1:]),
    "a short sum": (["subgradient"], "solver.total", lambda x: x[:1]),
    "costs": (["marginal-dual"], "solver.costs", lambda x: np.full_like(x, 1e30)),
    "marginals": (["marginal-dual"], "solver.marginals", lambda x: 2.0 * x),
    "weights of no marginals": (["marginal-dual"], "solver.w", lambda x: 0.5 * x),
    "dual variables": (["dual"], "solver.ascent.values", lambda x: 1e6 * x),
    "weights of no dual variables": (["dual"], "solver.ascent.w", lambda x: 0.5 * x),
    "nobody active": (["dual"], "solver.ascent.active", lambda x: x[:0]),
}


@pytest.mark.parametrize(("name", "solver"), [(name, s) for name, (solvers, _, _) in BROKEN.items() for s in solvers])
def test_a_broken_state_is_refused_by_the_name_of_its_file(name, solver, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(*task(solver), path, iterations=4)
    file, (_, array, change) = read_file(path, "checkpoint"), BROKEN[name]
    wrong = change(file.arrays[array])
    arrays = {key: x for key, x in file.arrays.items() if key != array}
    write_file(path, "checkpoint", file.meta, arrays if wrong is None else {**arrays, array: wrong})
    model, data = task(solver)
    with pytest.raises(ModelFileError, match=r"run\.checkpoint"):
        quietly(model, *data, checkpoint=path)
    assert path.exists()


@pytest.mark.parametrize("solver", [*SOLVERS, "lbfgs", "sgd", "averaged-perceptron"])
@pytest.mark.parametrize("change", ["missing", "of another kind"])
def test_numbers_that_do_not_fit_are_refused_by_the_name_of_their_file(solver, change, tmp_path):
    def make():
        if solver in SOLVERS:
            return task(solver)
        return Tagger("log", solver, max_iter=40, random_state=0), tagging()

    path = tmp_path / "run.checkpoint"
    unfinished(*make(), path)
    file = read_file(path, "checkpoint")
    numbers = file.meta["state"]["solver"]
    for name in sorted(numbers):
        broken = {**numbers, name: None} if change == "of another kind" else {**numbers}
        if change == "missing":
            del broken[name]
        elif name == "descending":
            continue  # anything can be true or not
        meta = {**file.meta, "state": {**file.meta["state"], "solver": broken}}
        write_file(path, "checkpoint", meta, dict(file.arrays))
        model, data = make()
        with pytest.raises(ModelFileError, match=r"run\.checkpoint"):
            quietly(model, *data, checkpoint=path)
    for part in ("history", "seconds", "stale"):
        meta = {**file.meta, "state": {k: v for k, v in file.meta["state"].items() if k != part}}
        write_file(path, "checkpoint", meta, dict(file.arrays))
        with pytest.raises(ModelFileError, match=rf"run\.checkpoint.*no '{part}'"):
            quietly(make()[0], *make()[1], checkpoint=path)


def test_the_best_weights_on_held_out_data_must_be_as_long_as_the_weights(tmp_path):
    X, y = tagging()
    path, model = tmp_path / "run.checkpoint", Tagger("hinge", "bcfw", tol=1e-9, random_state=0)
    unfinished(model, (X, y), path, dev=(X[:5], y[:5]))
    file = read_file(path, "checkpoint")
    write_file(path, "checkpoint", file.meta, {**file.arrays, "best_w": file.arrays["best_w"][1:]})
    with pytest.raises(ModelFileError, match=r"run\.checkpoint.*best_w"):
        model.fit(X, y, dev=(X[:5], y[:5]), checkpoint=path)


def test_a_bound_proven_for_another_problem_is_an_error_and_no_gap_of_0():
    best = Best(3)
    best.resume({"best.w": np.zeros(3), "best.bounds": np.array([np.inf, 600.0])}, "run.checkpoint")
    assert best.gap == np.inf
    best.offer(60.0, np.ones(3))
    with pytest.raises(ModelFileError, match=r"run\.checkpoint.*600 lies above the objective 60"):
        best.gap  # noqa: B018
    own = Best(3)
    own.primal, own.dual = 1.0, 1.0 + 1e-12
    assert own.gap == 0.0


# ------------------------------------------------------------------------------------- structures of your own


class Choice(CustomStructure):
    """One of three labels; the cost of a wrong one, and what else may be set."""

    factor = 1.0

    def __init__(self, scale=1.0, table=None, more=None):
        self.scale, self.table, self.more = scale, table, more

    def features(self, x, y):
        return np.outer(np.eye(3)[y], x).ravel()

    def cost(self, y, z):
        return self.factor * self.scale * float(y != z)

    def argmax(self, w, x, cost_to=None):
        self._calls = getattr(self, "_calls", 0) + 1
        scores = w.reshape(3, -1) @ x
        if cost_to is not None:
            scores = scores + np.array([self.cost(cost_to, z) for z in range(3)])
        return int(scores.argmax())


class Dear(Choice):
    """The same with the cost in a method."""

    def cost(self, y, z):
        return 10.0 * float(y != z)


class Settings:
    """Of a structure, one level down."""

    def __init__(self, depth):
        self.depth, self.owner = depth, self


OTHER = {
    "a number": (lambda: Choice(10.0), lambda: Choice(1.0)),
    "an array": (lambda: Choice(table=np.zeros(3)), lambda: Choice(table=np.ones(3))),
    "a sparse matrix": (lambda: Choice(table=csr_array(np.eye(3))), lambda: Choice(table=csr_array(2 * np.eye(3)))),
    "within lists and dicts": (lambda: Choice(more={"a": [1, {2}]}), lambda: Choice(more={"a": [1, {3}]})),
    "of an object": (lambda: Choice(more=Settings(1)), lambda: Choice(more=Settings(2))),
    "a function": (lambda: Choice(more=np.sin), lambda: Choice(more=np.cos)),
    "another class": (Dear, Choice),
}


def choosing():
    rng = np.random.default_rng(0)
    return list(rng.normal(size=(60, 5))), rng.integers(0, 3, 60).tolist()


def predictor(structure):
    return StructuredPredictor(structure, "hinge", "bcfw", C=1.0, tol=1e-3, max_iter=300, random_state=0)


@pytest.mark.parametrize("name", OTHER)
def test_another_setting_of_a_structure_is_another_run(name, tmp_path):
    first, second = OTHER[name]
    path = tmp_path / "run"
    unfinished(predictor(first()), choosing(), path, iterations=2)
    with pytest.raises(ModelFileError, match="other data or settings"):
        predictor(second()).fit(*choosing(), checkpoint=path)
    again, whole = predictor(first()).fit(*choosing(), checkpoint=path), predictor(first()).fit(*choosing())
    np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("way", ["class attribute", "method"])
def test_what_changes_the_cost_between_true_outputs_is_another_run(way, tmp_path, monkeypatch):
    path = tmp_path / "run"
    unfinished(predictor(Choice()), choosing(), path, iterations=2)
    if way == "method":
        monkeypatch.setattr(Choice, "cost", Dear.cost)
    else:
        monkeypatch.setattr(Choice, "factor", 3.0)
    with pytest.raises(ModelFileError, match="other data or settings"):
        predictor(Choice()).fit(*choosing(), checkpoint=path)


def test_private_attributes_and_pairs_without_a_cost_do_not_hinder_a_run_to_go_on(tmp_path):
    class Strict(Choice):
        seen = 0

        def cost(self, y, z):
            if y != z and not self._searching:
                raise ValueError("outputs of two inputs")
            return float(y != z)

        def argmax(self, w, x, cost_to=None):
            self._searching = True
            found = super().argmax(w, x, cost_to)
            self._searching = cost_to is not None
            return found

        _searching = False

    structure, path = Strict(), tmp_path / "run"
    unfinished(predictor(structure), choosing(), path, iterations=2)
    assert structure._calls > 0
    structure._searching = False
    predictor(structure).fit(*choosing(), checkpoint=path)
    assert not path.exists()


@pytest.mark.parametrize("saves", [False, True])
def test_the_features_of_true_outputs_are_not_kept_with_or_without_a_checkpoint(saves, tmp_path, monkeypatch):
    rows, alive, features = [], [], Joint.features

    def watched(self, *args):
        row = features(self, *args)
        if len(rows) < 60:
            rows.append(weakref.ref(row.indices))
        return row

    class Counting(Choice):
        def argmax(self, w, x, cost_to=None):
            alive.append(sum(row() is not None for row in rows))
            return super().argmax(w, x, cost_to)

    monkeypatch.setattr(Joint, "features", watched)
    predictor(Counting()).fit(*choosing(), checkpoint=tmp_path / "run" if saves else None)
    assert alive[0] < 60
    assert saves or alive[0] <= 1


# ------------------------------------------------------------------------------------- the compiled planes


def planes(n_blocks=3, n_weights=4, power=1):
    return _core.planes.Planes(n_blocks, n_weights, np.ones(n_blocks), power)


def filled(power):
    found, w = planes(power=power), np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(3):
        slopes = csr_array(rng.normal(size=(3, 4)) * (rng.random((3, 4)) < 0.7))
        indptr, indices = slopes.indptr.astype(np.int64), slopes.indices.astype(np.int64)
        found.add(np.arange(3), indptr, indices, slopes.data, rng.random(3), False, w)
        found.solve(np.arange(3), w, 0)
    return found, w


@pytest.mark.parametrize("power", [1, 2])
def test_planes_come_back_from_their_state_as_they_were(power):
    found, w = filled(power)
    copy, v = planes(power=power), w.copy()
    copy.restore(**found.state())
    assert (copy.count, copy.linear, copy.quadratic) == (found.count, found.linear, found.quadratic)
    np.testing.assert_array_equal(copy.gaps(), found.gaps())
    for each, x in ((found, w), (copy, v)):
        for _ in range(5):
            each.solve(np.arange(3), x, 2)
    np.testing.assert_array_equal(w, v)
    assert copy.count == found.count


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": lambda x: x + 9}, "no such block"),
        ({"indptr": lambda x: x[:-1]}, "CSR"),
        ({"indices": lambda x: x + 9}, "out of range"),
        ({"values": lambda x: np.where(np.arange(len(x)) == 1, np.nan, x)}, "finite"),
        ({"multipliers": lambda x: x - 5}, "negative"),
        ({"multipliers": lambda x: x + 1}, "above its mass"),
        ({"offsets": lambda x: x + 1e30}, "sum of multipliers"),
        ({"linear": lambda x: x + 1e-3}, "sum of multipliers"),
        ({"indices": lambda x: np.zeros_like(x)}, "twice"),
        ({"idle": lambda x: x[1:]}, "idle"),
        ({"gaps": lambda x: x[1:]}, "gap"),
    ],
    ids=lambda part: part if isinstance(part, str) else "".join(part),
)
def test_planes_that_do_not_fit_are_refused(change, message):
    state = filled(1)[0].state()
    [(name, wrong)] = change.items()
    with pytest.raises(ValueError, match=message):
        planes().restore(**{**state, name: wrong(state[name])})
    with pytest.raises(ValueError, match="already"):
        filled(1)[0].restore(**state)
