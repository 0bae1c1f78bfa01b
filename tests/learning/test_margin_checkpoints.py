"""Checkpoints of the margin solvers: a killed training goes on, to the last bit where the state says all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from mercer import ModelFileError, _core
from mercer.alignment import Aligner
from mercer.classification import LinearClassifier
from mercer.data.trees import Tree
from mercer.datasets import make_regions
from mercer.labeling import GraphLabeler
from mercer.learning import Checkpoint, ConvergenceWarning, Hybrid, RelativeMargin
from mercer.learning.solvers import BCFW, BMRM, CuttingPlane
from mercer.parsing import Parser
from mercer.ranking import LabelRanker, Ranker
from mercer.segmentation import Segmenter
from mercer.structured import Structure, StructuredPredictor
from mercer.tagging import Tagger

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


def unfinished(model, data, path, iterations=3):
    """Leaves the checkpoint of a run that died."""
    write = Checkpoint.write

    def dies(self, state, arrays):
        write(self, state, arrays)
        if len(state["history"]["seconds"]) >= iterations:
            raise SystemExit("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", dies)
        with pytest.raises(SystemExit):
            quietly(model, *data, checkpoint=Checkpoint(path, every=0))
    assert path.exists()


def same_history(a, b):
    assert a.keys() == b.keys()
    for name in a.keys() - {"seconds"}:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_training_killed_with_signal_9_goes_on_to_the_same_weights(solver, tmp_path):
    path = tmp_path / "run.checkpoint"
    command = [sys.executable, "-c", SCRIPT, solver, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
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


class Ordering(Structure):
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
    with pytest.raises(ValueError, match="leave checkpoint out"):
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


# ------------------------------------------------------------------------------------- the compiled planes


def planes(n_blocks=3, n_weights=4, power=1):
    return _core.Planes(n_blocks, n_weights, np.ones(n_blocks), power)


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
        ({"idle": lambda x: x[1:]}, "idle"),
        ({"gaps": lambda x: x[1:]}, "gap"),
    ],
    ids=str,
)
def test_planes_that_do_not_fit_are_refused(change, message):
    state = filled(1)[0].state()
    [(name, wrong)] = change.items()
    with pytest.raises(ValueError, match=message):
        planes().restore(**{**state, name: wrong(state[name])})
    with pytest.raises(ValueError, match="already"):
        filled(1)[0].restore(**state)
