"""Checkpoints of every training with their contents mutated and the checksum computed anew, then gone on from."""

from __future__ import annotations

import copy
import inspect
import os
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fuzz.engine import REFUSED, Case, Target, describe
from fuzz.model_files import change_array, change_json
from fuzz.mutate import Mutator
from fuzz.values import Builder, decode_array, encode, plain
from mercer._state import container
from mercer.exceptions import ModelFileError
from mercer.learning.checkpoint import KIND, Checkpoint

WRITES = 2  # after which a training dies
TABLE = "label,words,age\n" + "".join(f"{'ab'[i % 2]},{'x y' if i % 3 else 'y z'},{i}\n" for i in range(40))


@dataclass
class Run:
    """A training that can be killed and gone on with: a fresh model, its verb and what it takes."""

    make: Callable[[], Any]
    verb: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    def go(self, checkpoint: Checkpoint) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(self.make(), self.verb)(*self.args, **self.options, checkpoint=checkpoint)


class Killed(BaseException):
    """Ends a training as a kill would."""


def takers() -> list[type]:
    """Every public estimator whose ``fit`` takes a checkpoint."""
    from estimators.cases import public_estimators

    return sorted(
        (cls for cls in public_estimators() if "checkpoint" in inspect.signature(cls.fit).parameters),
        key=lambda cls: cls.__name__,
    )


def runs(file: Path) -> dict[str, Run]:
    """Trainings by name: every estimator that takes a checkpoint, every solver, and one from a file."""
    from estimators.cases import CASES
    from mercer.classification import LinearClassifier
    from mercer.online import FileFormat, HashedClassifier, HashedRegressor
    from mercer.tagging import Tagger

    found: dict[str, Run] = {}
    classes = takers()
    for case in CASES:
        name = case.cls.__name__
        if case.cls in classes and name not in found:
            data = case.data(0)
            limit = {"max_iter": 6} if "max_iter" in case.make().get_params() else {}

            def make(case: Any = case, limit: dict[str, int] = limit) -> Any:
                return case.make().set_params(**limit)

            found[name] = Run(make, "fit", data.args, data.kwargs)
    drawn = np.random.default_rng(0)
    X, y = drawn.normal(size=(30, 3)), drawn.integers(0, 3, 30)
    tagged = ([drawn.normal(size=(3, 3)) for _ in range(8)], [drawn.integers(0, 2, 3).tolist() for _ in range(8)])
    settings: list[tuple[str, type, tuple[Any, ...], dict[str, Any]]] = []
    for loss, solver in (
        ("log", "lbfgs"), ("log", "sgd"), ("log", "averaged-perceptron"), ("log", "passive-aggressive"),
        ("hinge", "bmrm"), ("hinge", "cutting-plane"), ("hinge", "bcfw"), ("hinge", "subgradient"),
        ("hinge", "marginal-dual"), ("squared-hinge", "bcfw"),
    ):  # fmt: skip
        settings.append((f"{solver}, {loss}", Tagger, tagged, {"loss": loss, "solver": solver}))
    settings.append(("owlqn, log", Tagger, tagged, {"loss": "log", "solver": "owlqn", "penalty": "l1"}))
    for loss, solver in (("log", "newton"), ("log", "lbfgs"), ("hinge", "dual"), ("squared-hinge", "dual")):
        settings.append((f"classes: {solver}, {loss}", LinearClassifier, (X, y), {"loss": loss, "solver": solver}))
    for name, cls, data, parameters in settings:
        parameters = {"C": 1.0, "max_iter": 6, "tol": 1e-9, "random_state": 0, **parameters}
        found[name] = Run(lambda cls=cls, of=parameters: cls(**of), "fit", data, {})
    found["held-out data"] = Run(lambda: Tagger(C=1.0, max_iter=6, random_state=0), "fit", tagged, {"dev": tagged})
    names = np.array(["a", "b", "c"])[y]
    found["HashedClassifier"] = Run(lambda: HashedClassifier(n_bits=6, max_iter=3), "fit", (X, names), {})
    found["ftrl"] = Run(lambda: HashedClassifier(n_bits=6, max_iter=3, solver="ftrl"), "fit", (X, names), {})
    found["HashedRegressor"] = Run(lambda: HashedRegressor(n_bits=6, max_iter=3), "fit", (X, X[:, 0]), {})
    layout = FileFormat("csv", label="label", columns="rest")
    found["file"] = Run(lambda: HashedClassifier(n_bits=6, max_iter=3), "fit_file", (str(file), layout), {})
    return found


def small_blocks() -> None:
    """Let learners from streams write a checkpoint after some rows."""
    from mercer.online import blocks, learner

    learner._BLOCK, blocks.CHUNK = 1 << 5, 1 << 8


class Checkpoints(Target):
    """Mutated checkpoints."""

    name = "checkpoints"

    def __init__(self, only: str | None = None) -> None:
        self.only = only
        self.runs: dict[str, Run] = {}
        self.files: dict[str, Any] = {}  # (meta, arrays) of what a killed training left
        self.values = Mutator({})

    def load(self) -> None:
        if self.files:
            return
        small_blocks()
        self.scratch = tempfile.TemporaryDirectory()
        file = Path(self.scratch.name, "rows.csv")
        file.write_text(TABLE)
        self.runs = {name: run for name, run in runs(file).items() if self.only in (None, name)}
        for name, run in self.runs.items():
            with tempfile.TemporaryDirectory() as folder:
                if (left := left_by(run, Path(folder, "run"))) is not None:
                    self.files[name] = left
                    self._go(name, *left)  # imports happen before workers are forked
        self.names = sorted(self.files)

    def unreached(self) -> list[str]:
        """Return the trainings that left nothing."""
        covered = {type(self.runs[name].make()) for name in self.files}
        missing = [] if self.only else [cls.__name__ for cls in takers() if cls not in covered]
        return sorted({*(set(self.runs) - set(self.files)), *missing})

    def case(self, seed: int, number: int) -> Case:
        draw = random.Random(seed * 1_000_003 + number)
        name = self.names[number % len(self.names)]
        meta, arrays = self.files[name]
        state = copy.deepcopy(meta["state"])
        held = {key: {"held": np.array(array)} for key, array in arrays.items()}
        for _ in range(draw.choice((1, 1, 2, 3))):
            if held and draw.random() < 0.5:
                change_array(held, self.values, draw)
            else:
                change_json(state, draw)
        return {"run": name, "state": state, "arrays": held}

    def run(self, case: Case) -> str | None:
        builder = Builder(None, guarded=False)
        arrays = {
            name: builder.build(node) if "held" in node else decode_array(node) for name, node in case["arrays"].items()
        }
        return self._go(case["run"], {**self.files[case["run"]][0], "state": case["state"]}, arrays)

    def _go(self, name: str, meta: Any, arrays: Any) -> str | None:
        """How a training ends that finds this checkpoint."""
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            path = Path(folder, "run")
            try:
                container.write_file(path, KIND, meta, arrays)
            except (TypeError, ValueError, RecursionError):
                return REFUSED  # no such file
            try:
                model = self.runs[name].go(Checkpoint(path))
            except ModelFileError as error:
                return REFUSED if path.exists() and str(path) in str(error) else f"refused without its file: {error}"
            except Exception as error:
                clear = isinstance(error, (ValueError, RuntimeError)) and describe(error) is None
                return REFUSED if clear else f"go on: {type(error).__name__}: {error}"
            weights = getattr(model, "coef_", None)
            if isinstance(weights, np.ndarray) and not np.isfinite(weights).all():
                return "go on: weights that are not finite"
        return None

    def subject(self, case: Case) -> str:
        return str(case["run"])

    def smaller(self, case: Case) -> Iterator[Case]:
        meta, arrays = self.files[case["run"]]
        for name, array in arrays.items():
            if name not in case["arrays"] or plain(case["arrays"][name]) != encode(np.asarray(array)):
                made = copy.deepcopy(case)
                made["arrays"][name] = {"held": np.array(array)}
                yield made
        if case["state"] != meta["state"]:
            yield {**copy.deepcopy(case), "state": copy.deepcopy(meta["state"])}

    def plain(self, case: Case) -> Case:
        return {**case, "arrays": plain(case["arrays"])}


def left_by(run: Run, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """What a training leaves that dies after some writes; None where it ends before."""
    record, written = Checkpoint.write, []

    def write(self: Checkpoint, state: Any, arrays: Any) -> None:
        record(self, state, arrays)
        written.append(state)
        if len(written) == WRITES:
            raise Killed

    with mock.patch.object(Checkpoint, "write", write):
        try:
            run.go(Checkpoint(path, every=0))
        except Killed:
            file = container.read_file(path, KIND)
            return file.meta, dict(file.arrays)
    return None
