"""A killed training continues; foreign checkpoints are left alone; Ctrl-C keeps the best so far."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
import warnings

import numpy as np
import pytest

from fuzz import checkpoints
from mercer import ModelFileError
from mercer._state import container
from mercer._state.container import read_file, write_file
from mercer.learning import Checkpoint, ConvergenceWarning
from mercer.learning.risk import Risk
from mercer.online import learner
from mercer.structures import Constraints
from mercer.tagging import Tagger
from reference.forked import popen

# The training that is killed, and the same here. Slow steps: the parent must be able to strike in the middle.
SCRIPT = """
import sys, time
import numpy as np
from mercer.learning import Checkpoint
from mercer.learning.monitor import Monitor
from mercer.tagging import Tagger

record = Monitor.record
def slowly(self, *args, **figures):
    stop = record(self, *args, **figures)
    print(self.iterations, flush=True)
    time.sleep(0.05)
    return stop
Monitor.record = slowly

rng = np.random.default_rng(0)
X = [rng.normal(size=(6, 8)) for _ in range(60)]
y = [rng.integers(0, 4, 6).tolist() for _ in X]
path = sys.argv[2]
model = Tagger(solver=sys.argv[1], C=5.0, max_iter=400, tol=1e-9, random_state=0)
model.fit(X, y, checkpoint=Checkpoint(path, every=0) if path != "-" else None)
print("fitted", model.converged_, len(model.history_["seconds"]), np.isfinite(model.coef_).all(), flush=True)
print("score", model.score(X, y), flush=True)
"""


def data():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 8)) for _ in range(60)]
    return X, [rng.integers(0, 4, 6).tolist() for _ in X]


def tagger(solver="lbfgs", **changes) -> Tagger:
    return Tagger(**{"solver": solver, "C": 5.0, "max_iter": 400, "tol": 1e-9, "random_state": 0, **changes})


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


def strike(solver, path, sent, after=5):
    """Starts the script, sends the signal after some iterations; gives its further output and exit code."""
    process = popen(SCRIPT, solver, str(path), text=True)
    for line in process.stdout:
        if line.strip() == str(after):
            break
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def unfinished(path, solver="lbfgs", iterations=4, *, dev=None, model=None, **changes):
    """Leaves the checkpoint of a run that died, made by a fit that is interrupted from within."""
    record = Checkpoint.write

    def write(self, state, arrays):
        record(self, state, arrays)
        if len(state["history"]["seconds"]) >= iterations:
            raise SystemExit("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", write)
        with pytest.raises(SystemExit):
            (model or tagger(solver, **changes)).fit(*data(), dev=dev, checkpoint=Checkpoint(path, every=0))
    assert path.exists()


def test_killed_training_resumes_from_its_checkpoint(tmp_path):
    path, solver = tmp_path / "run.checkpoint", "sgd"
    code, _, _ = strike(solver, path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert path.exists()
    whole = quiet_fit(tagger(solver), *data())
    limit = len(whole.history_["seconds"])
    again = quiet_fit(tagger(solver), *data(), checkpoint=path)
    assert again.history_["objective"][:4] == whole.history_["objective"][:4]
    assert np.isclose(again.history_["objective"][-1], whole.history_["objective"][-1], rtol=1e-6)
    np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-4)
    assert len(again.history_["passes"]) == again.n_iter_ <= 2 * limit
    assert (np.diff(again.history_["passes"]) > 0).all()
    assert (np.diff(again.history_["seconds"]) > 0).all()
    assert not path.exists(), "the checkpoint is removed when training ends"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn", "sgd", "averaged-perceptron", "passive-aggressive"])
def test_a_resumed_training_does_not_repeat_what_was_done(solver, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path, solver)
    passes = []
    value_and_gradient = Risk.value_and_gradient

    def counted(self, *args):
        passes.append(1)
        return value_and_gradient(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Risk, "value_and_gradient", counted)
        model = quiet_fit(tagger(solver, max_iter=4), *data(), checkpoint=path)
    assert len(passes) <= 2
    assert len(model.history_["seconds"]) == 4


@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize(
    ("solver", "penalty"),
    [("lbfgs", "l2"), ("owlqn", "l1"), ("sgd", "l2"), ("averaged-perceptron", "l2"), ("passive-aggressive", "l2")],
)
def test_a_run_that_was_resumed_equals_one_that_was_not(solver, penalty, iterations, tmp_path):
    path = tmp_path / "run.checkpoint"
    settings = {"penalty": penalty, "C": 0.5}
    unfinished(path, solver, iterations, **settings)
    again = quiet_fit(tagger(solver, max_iter=12, tol=0.0, **settings), *data(), checkpoint=path)
    whole = quiet_fit(tagger(solver, max_iter=12, tol=0.0, **settings), *data())
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    for name, values in whole.history_.items():
        if name != "seconds":
            assert again.history_[name] == values


def test_the_pairs_of_large_models_come_back_to_the_bit(monkeypatch, tmp_path):
    """Above a size the vectors of the quasi-Newton memory are kept as bfloat16."""
    from mercer.learning.solvers import lbfgs

    monkeypatch.setattr(lbfgs, "_SMALL", 4)
    path = tmp_path / "run.checkpoint"
    unfinished(path, iterations=5)
    again = quiet_fit(tagger(max_iter=12, tol=0.0), *data(), checkpoint=path)
    np.testing.assert_array_equal(again.coef_, quiet_fit(tagger(max_iter=12, tol=0.0), *data()).coef_)


@pytest.mark.parametrize("spoil", ["slot", "dtype", "too many", "missing"])
def test_a_memory_that_does_not_fit_is_refused(spoil, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)
    file = read_file(path)
    arrays = dict(file.arrays)
    if spoil == "slot":
        arrays["solver.pairs"][0, 0] = 99
    elif spoil == "dtype":
        arrays["solver.d0"] = arrays["solver.d0"].astype(float)
    elif spoil == "too many":
        arrays["solver.pairs"] = np.repeat(arrays["solver.pairs"], 20, axis=0)
    else:
        del arrays["solver.g"]
    write_file(path, file.kind, file.meta, arrays)
    with pytest.raises(ModelFileError, match="does not fit this training"):
        tagger().fit(*data(), checkpoint=path)


def test_the_best_held_out_weights_survive_a_kill(tmp_path):
    path = tmp_path / "run.checkpoint"
    X, y = data()
    dev = X[:10], y[:10]
    record = Checkpoint.write

    def write(self, state, arrays):
        record(self, state, arrays)
        if len(state["history"]["seconds"]) >= 6:
            raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", write)
        with pytest.raises(SystemExit):
            tagger().fit(X[10:], y[10:], dev=dev, checkpoint=Checkpoint(path, every=0))
    model = quiet_fit(tagger(max_iter=6), X[10:], y[10:], dev=dev, checkpoint=path)
    assert np.isclose(model.score(*dev), max(model.history_["dev_score"]))


# --------------------------------------------------------------------------------- foreign and damaged


@pytest.mark.parametrize(
    "changes",
    [
        {"C": 1.0},
        {"solver": "sgd"},
        {"penalty": None},
        {"transitions": "observed"},
        {"constraints": Constraints([(0, 1)])},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_settings_is_refused_and_left_alone(changes, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="other data or settings"):
        tagger(**changes).fit(*data(), checkpoint=path)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)
    before = path.read_bytes()
    X, y = data()
    other_y = [tags[::-1] for tags in y]
    other_X = [x + 1e-9 for x in X]
    for given in ((other_X, y), (X, other_y), (X[1:], y[1:])):
        with pytest.raises(ModelFileError, match="other data or settings"):
            tagger().fit(*given, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "seed",
    [1, None, np.random.RandomState(0), np.random.default_rng(0)],
    ids=["1", "None", "RandomState", "default_rng"],
)
def test_a_checkpoint_of_another_random_state_is_refused(seed, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)
    with pytest.raises(ModelFileError, match="random_state"):
        tagger(random_state=seed).fit(*data(), checkpoint=path)
    quiet_fit(tagger(random_state=np.int64(0), max_iter=6), *data(), checkpoint=path)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_in_the_same_state_go_on(make, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path, random_state=make(3))
    with pytest.raises(ModelFileError, match="random_state"):
        tagger(random_state=make(4)).fit(*data(), checkpoint=path)
    assert quiet_fit(tagger(random_state=make(3), max_iter=6), *data(), checkpoint=path).n_iter_ == 6


def test_a_checkpoint_of_other_held_out_data_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    X, y = data()
    unfinished(path, dev=(X[:5], y[:5]))
    for dev in (None, (X[:6], y[:6]), (X[:5], [tags[::-1] for tags in y[:5]])):
        with pytest.raises(ModelFileError, match="held-out data"):
            tagger().fit(X, y, dev=dev, checkpoint=path)
    assert quiet_fit(tagger(max_iter=6), X, y, dev=(X[:5], y[:5]), checkpoint=path).n_iter_ == 6


def test_a_checkpoint_of_another_start_is_refused(tmp_path):
    """Warm starts: the weights to begin with are part of what a run is."""
    path = tmp_path / "run.checkpoint"
    X, y = data()

    def begun(iterations):
        return quiet_fit(tagger(max_iter=iterations), X, y).set_params(warm_start=True, max_iter=400)

    unfinished(path, model=begun(2))
    for other in (begun(3), tagger()):
        with pytest.raises(ModelFileError, match="starting weights"):
            other.fit(X, y, checkpoint=path)
    assert quiet_fit(begun(2).set_params(max_iter=6), X, y, checkpoint=path).n_iter_ == 6


def test_a_fit_that_fails_keeps_its_history_and_a_fitted_model_its_own(monkeypatch):
    X, y = data()
    fitted = quiet_fit(tagger(max_iter=2), X, y)
    value_and_gradient, calls = Risk.value_and_gradient, []

    def tires(self, *args):
        calls.append(1)
        if len(calls) > 12:
            raise RuntimeError("tired")
        return value_and_gradient(self, *args)

    monkeypatch.setattr(Risk, "value_and_gradient", tires)
    model = tagger()
    with pytest.raises(RuntimeError, match="tired"):
        model.fit(X, y)
    assert len(model.history_["objective"]) >= 3
    assert not hasattr(model, "coef_")
    own = {name: list(values) for name, values in fitted.history_.items()}
    calls.clear()
    with pytest.raises(RuntimeError, match="tired"):
        fitted.set_params(max_iter=50).fit(X, y)
    assert fitted.history_ == own


def test_runs_that_differ_only_in_which_rules_or_sets_they_have_are_told_apart():
    """Constraints and sets of labels are part of what a run is."""

    def fingerprint(constraints=None, first=(0, 1)):
        model = tagger(constraints=constraints)
        X, y = data()
        y[0][0] = set(first)
        risk = model._learn(X, y, model._resolve()[0], None)
        return model._fingerprint(risk, 1.0, None)

    assert fingerprint() == fingerprint()
    assert fingerprint(Constraints([(0, 1)])) != fingerprint(Constraints([(1, 0)]))
    assert fingerprint(first=(0, 1)) != fingerprint(first=(0, 2))


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(keep, tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(ModelFileError, match=r"run\.checkpoint"):
        tagger().fit(*data(), checkpoint=path)
    assert path.exists()


def test_a_model_file_is_no_checkpoint(tmp_path):
    import mercer

    path = tmp_path / "model.mercer"
    mercer.save(quiet_fit(tagger(max_iter=2), *data()), path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="Tagger"):
        tagger().fit(*data(), checkpoint=path)
    assert path.read_bytes() == before


def test_a_checkpoint_needs_a_folder_and_a_sensible_interval(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        tagger().fit(*data(), checkpoint=tmp_path / "nowhere" / "run")
    with pytest.raises(ValueError, match="every"):
        Checkpoint(tmp_path / "run", every=-1)


def test_checkpoints_are_written_as_often_as_asked(tmp_path):
    often, never = Checkpoint(tmp_path / "a", every=0), Checkpoint(tmp_path / "b", every=1e9)
    often.open("x")
    never.open("x")
    time.sleep(0.001)
    assert often.due()
    assert not never.due()


# ------------------------------------------------------------------------------------- full disks, kills, two runs


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_a_warning_and_training_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    monkeypatch.setattr(container.os, "fsync", no_space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = tagger(max_iter=8).fit(*data(), checkpoint=Checkpoint(path, every=0))
    messages = [str(w.message) for w in caught if w.category is RuntimeWarning]
    assert len(messages) == 1, "one warning, not one for every iteration"
    assert "training continues without a new checkpoint" in messages[0]
    assert "No space left on device" in messages[0]
    assert str(path) in messages[0]
    np.testing.assert_array_equal(model.coef_, quiet_fit(tagger(max_iter=8), *data()).coef_)
    assert os.listdir(tmp_path) == []


def test_a_limit_of_the_kernel_on_files_is_a_warning(tmp_path):
    path = tmp_path / "run.checkpoint"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, limits[1]))
    try:
        with pytest.warns(RuntimeWarning, match="training continues"):
            model = quiet_fit(tagger(max_iter=3), *data(), checkpoint=Checkpoint(path, every=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert model.n_iter_ == 3


def test_a_disk_that_fills_up_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, every=0)
    checkpoint.open("x")
    checkpoint.write({"n": 1}, {})
    monkeypatch.setattr(container.os, "fsync", no_space)
    with pytest.warns(RuntimeWarning, match="the old file is intact"):
        checkpoint.write({"n": 2}, {})
    checkpoint.release()
    assert read_file(path).meta["state"] == {"n": 1}


def test_kills_while_writing_leave_no_pile_of_files(tmp_path):
    """Each write removes what writers that are gone have left, and nothing that somebody is writing."""
    path = tmp_path / "run.checkpoint"
    script = (
        "import os, sys; from mercer._state import container\n"
        "container.os.fsync = lambda fd: os.kill(os.getpid(), 9)\n"
        "container.write_file(sys.argv[1], 'checkpoint', {}, {})"
    )
    for _ in range(3):
        assert popen(script, str(path)).wait() == -signal.SIGKILL
        assert len(os.listdir(tmp_path)) == 1
    other = tmp_path / "run.checkpoint.0123456789ab.tmp.txt"
    other.write_text("mine")
    with container._new_file(f"{path}.aaaaaaaaaaaa.tmp"):
        write_file(path, "checkpoint", {}, {})
        assert sorted(os.listdir(tmp_path)) == [path.name, other.name, f"{path.name}.aaaaaaaaaaaa.tmp"]
    write_file(path, "checkpoint", {}, {})
    assert sorted(os.listdir(tmp_path)) == [path.name, other.name]


def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    if container.fcntl is None:
        pytest.skip("needs flock")
    path = tmp_path / "m"
    flock, calls = container.fcntl.flock, []

    def removed_first(file, how):
        calls.append(how)
        if len(calls) == 1:
            os.unlink(file.name if isinstance(file.name, str) else next(tmp_path.iterdir()))
        return flock(file, how)

    monkeypatch.setattr(container.fcntl, "flock", removed_first)
    write_file(path, "K", {}, {})
    assert len(calls) == 2
    assert os.listdir(tmp_path) == ["m"]


def test_two_runs_on_one_path_are_kept_apart(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    refused = []
    record = Checkpoint.write

    def write(self, state, arrays):
        record(self, state, arrays)
        if not refused:
            before = path.read_bytes()
            message = rf"another training run \(process {os.getpid()}\) is using"
            with pytest.raises(ModelFileError, match=message) as caught:
                tagger().fit(*data(), checkpoint=path)
            refused.append(str(caught.value))
            assert path.read_bytes() == before

    monkeypatch.setattr(Checkpoint, "write", write)
    quiet_fit(tagger(max_iter=4), *data(), checkpoint=Checkpoint(path, every=0))
    assert str(path) in refused[0]
    assert os.listdir(tmp_path) == [], "neither checkpoint nor lock is left"
    quiet_fit(tagger(max_iter=4), *data(), checkpoint=path)


def test_a_run_lets_go_of_its_path_however_it_ends(tmp_path):
    path = tmp_path / "run.checkpoint"
    unfinished(path)  # by an exception
    assert os.listdir(tmp_path) == [path.name]
    with pytest.raises(ModelFileError, match="other data or settings"):
        tagger(C=1.0).fit(*data(), checkpoint=path)
    (tmp_path / "run.checkpoint.lock").write_text("999999")  # of a run that was killed
    assert quiet_fit(tagger(max_iter=6), *data(), checkpoint=path).n_iter_ == 6
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------------------------------------- Ctrl-C


def test_ctrl_c_in_a_terminal_leaves_a_fitted_model_and_a_warning():
    code, out, err = strike("lbfgs", "-", signal.SIGINT)
    assert code == 0, err
    assert "interrupted" in err
    words = out.split("fitted", 1)[1].split()
    assert words[0] == "False"
    assert 5 <= int(words[1]) < 400
    assert words[2] == "True"


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn", "sgd", "averaged-perceptron", "passive-aggressive"])
def test_an_interrupted_fit_keeps_the_weights_so_far(solver, monkeypatch):
    """KeyboardInterrupt in the middle of the fourth iteration: the weights of the third are kept."""
    from mercer.learning.monitor import Monitor

    seen = []
    record = Monitor.record

    def watch(self, weights, **figures):
        stop = record(self, weights, **figures)
        seen.append(weights().copy())
        return stop

    monkeypatch.setattr(Monitor, "record", watch)
    target, name = (Risk, "value_and_gradient")
    if solver not in ("lbfgs", "owlqn"):
        from mercer.learning.solvers.online import Epochs

        target, name = Epochs, "shuffled"
    inner = getattr(target, name)

    def strikes(self, *args, **kwargs):
        if len(seen) == 3:
            raise KeyboardInterrupt
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(target, name, strikes)
    X, y = data()
    model = tagger(solver)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    np.testing.assert_allclose(model.coef_, seen[-1], rtol=1e-12, atol=1e-12)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert len(model.predict(X)) == len(X)


def test_an_interrupted_fit_can_go_on_from_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    inner, calls = Risk.value_and_gradient, []

    def strikes(self, *args):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return inner(self, *args)

    monkeypatch.setattr(Risk, "value_and_gradient", strikes)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        first = tagger().fit(*data(), checkpoint=Checkpoint(path, every=0))
    assert path.exists()
    again = quiet_fit(tagger(), *data(), checkpoint=path)
    assert again.history_["objective"][: first.n_iter_] == first.history_["objective"]
    assert again.n_iter_ > first.n_iter_


# -------------------------------------------------------------------------------------------- states that do not fit


def _set(name, value):
    def change(state, arrays):
        holder = state.get("solver", state)
        holder[name] = value

    return change


def _replace(name, made):
    def change(state, arrays):
        arrays[name] = made(arrays[name])

    return change


DAMAGED = [
    ("BoltzmannMachine", "epochs before the first", _set("epoch", -(2**63)), "epoch must be"),
    ("BoltzmannMachine", "particles of no value", _replace("solver.particles0", lambda a: a + 2), "between 0 and 1"),
    ("BoltzmannMachine", "particles of another type", _replace("solver.particles0", np.float32), "int8"),
    ("BoltzmannMachine", "no particles", lambda state, arrays: arrays.pop("solver.particles0"), "sets of particles"),
    ("RBM", "weights of another size", _replace("solver.theta", lambda a: a[1:]), "theta must be finite"),
    ("classes: newton, log", "passes below none", _set("passes", -(2**63)), "passes must be"),
    ("classes: newton, log", "a gradient of zero", _set("first_norm", 0.0), "first_norm"),
    ("lbfgs, log", "no end of iterations", _set("iterations", -(2**40)), "iterations must be"),
    ("sgd, log", "a step that is no number", _set("step", "nan"), "step must be a finite number"),
    ("HashedClassifier", "a place that no integer holds", _set("generator", [1e300, 0.0, 0.0]), "does not fit"),
]


@pytest.mark.parametrize(
    ("name", "damage", "change", "why"), DAMAGED, ids=[f"{name}-{what}" for name, what, *_ in DAMAGED]
)
def test_a_state_that_does_not_fit_is_refused_by_the_name_of_its_file(name, damage, change, why, tmp_path, monkeypatch):
    """With the right checksum and fingerprint: as a defect, or another version, would leave it."""
    monkeypatch.setattr(learner, "_BLOCK", 1 << 5)
    path = tmp_path / "run"
    run = checkpoints.runs(tmp_path / "rows.csv")[name]
    meta, arrays = checkpoints.left_by(run, path)
    change(meta["state"], arrays)
    write_file(path, "checkpoint", meta, arrays)
    with pytest.raises(ModelFileError, match=why) as caught:
        run.go(Checkpoint(path))
    assert str(path) in str(caught.value)
    assert path.exists()
    Checkpoint(path).open(meta["fingerprint"])  # its lock is free again
