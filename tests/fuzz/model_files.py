"""Every kind of model file with its contents mutated and the checksum computed anew, then loaded and used."""

from __future__ import annotations

import contextlib
import copy
import doctest
import inspect
import io
import os
import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.engine import REFUSED, Case, Target
from fuzz.mutate import FLOATS, TEXTS, Mutator
from fuzz.values import Builder, decode_array, encode, plain
from mercer._state import container, registry

USES = (
    "predict",
    "transform",
    "predict_proba",
    "decision_function",
    "score_samples",
    "apply",
    "tag",
    "estimate",
    "codes",
    "inverse_transform",
    "predict_log_proba",
    "k_best",
    "marginals",
    "sample",
    "encode",
    "kneighbors",
    "score",
    "log_prob",
    "scores",
    "decode",
    "distances",
    "query",
    "merge",
)
FITS = ("fit", "fit_transform", "partial_fit", "update", "add")
MOST_BYTES = 1 << 28
# Where the example in the docstring makes a model that is large, or has a kernel of its own that no file can hold.
INSTEAD = {
    "KernelSVC": """
>>> from mercer.kernels import Gaussian
>>> model = KernelSVC(Gaussian()).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [0, 1, 0, 1])
>>> model.predict([[0.0, 1.0]])
""",
    "RandomProjection": """
>>> import numpy as np
>>> model = RandomProjection(n_components=4, random_state=0)
>>> model.fit_transform(np.ones((3, 5)))
""",
    "HashAccumulator": """
>>> model = HashAccumulator(n_bits=4).update(["cat", "dog", "cat"])
>>> model.merge(HashAccumulator(n_bits=4).update("dog"))
""",
}


class Example:
    """A fitted model of one kind, as it comes out of the example in its docstring, and what was done with it there."""

    def __init__(self, kind: str) -> None:
        cls = registry.class_of(kind)
        self.kind, self.uses = kind, []
        found: list[Any] = []
        with _recorded_uses(cls, self.uses, found), contextlib.redirect_stdout(io.StringIO()):
            namespace: dict[str, Any] = dict(vars(inspect.getmodule(cls)))
            for example in doctest.DocTestParser().get_examples(INSTEAD.get(kind) or cls.__doc__ or ""):
                if doctest.SKIP in example.options:
                    continue
                try:
                    exec(compile(example.source, f"<{kind}>", "single"), namespace)
                except Exception:
                    if example.exc_msg is None:
                        raise
            found += [value for value in namespace.values() if type(value) is cls]
        for model in found[::-1]:
            try:
                self.meta, self.arrays = model.to_state()
            except Exception:  # not fitted
                continue
            own = [use for use in self.uses if use[2] is model]
            self.uses = [use for use in own if use[0] in USES] or _guessed_uses(model, own)
            return
        raise LookupError(f"the example of {kind} fits no model")


def _guessed_uses(model: Any, fits: list[Any]) -> list[Any]:
    """What can be done with a model that its example only fits: what takes the inputs of the training."""
    guessed = []
    for name in USES:
        for inputs in [args[:count] for _, (args, _), _ in fits for count in (1, 2)]:
            with contextlib.suppress(Exception):
                getattr(model, name)(*inputs)
                guessed.append((name, (inputs, {}), model))
                break
    return guessed


@contextlib.contextmanager
def _recorded_uses(cls: type, uses: list[Any], found: list[Any]) -> Iterator[None]:
    old = {name: cls.__dict__.get(name) for name in (*USES, *FITS) if callable(getattr(cls, name, None))}

    def wrapped(name: str, function: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = function(self, *args, **kwargs)
            if type(self) is cls:
                found.append(self)
                uses.append((name, (args, kwargs), self))
            return result

        return method

    for name in old:
        setattr(cls, name, wrapped(name, getattr(cls, name)))
    try:
        yield
    finally:
        for name, function in old.items():
            if function is None:
                delattr(cls, name)
            else:
                setattr(cls, name, function)


class ModelFiles(Target):
    """Mutated model files."""

    name = "models"

    def __init__(self, only: str | None = None) -> None:
        self.kinds = [only] if only else sorted(registry.MODELS)
        self.examples: dict[str, Example] = {}
        self.missing: dict[str, str] = {}
        self.values = Mutator({})

    def load(self) -> None:
        warnings.simplefilter("ignore")
        if self.examples:
            return
        for kind in self.kinds:
            try:
                self.examples[kind] = Example(kind)
            except Exception as error:
                self.missing[kind] = f"{type(error).__name__}: {error}"
        self.kinds = sorted(self.examples)
        for kind, example in self.examples.items():
            example.uses = [use for use in example.uses if self._works(kind, example, use)]
        version = container._mercer_version()
        container._mercer_version = lambda: version  # which reads the metadata of the package each time
        self.options = {"max_bytes": MOST_BYTES} if "max_bytes" in inspect.signature(registry.load).parameters else {}

    @staticmethod
    def _works(kind: str, example: Example, use: Any) -> bool:
        """Whether a model that comes from an unharmed file can be used in this way."""
        with tempfile.TemporaryDirectory() as folder:
            container.write_file(Path(folder, "model"), kind, example.meta, example.arrays)
            model = registry.load(Path(folder, "model"))
        name, (args, kwargs), _ = use
        with contextlib.suppress(Exception):
            getattr(model, name)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
            return True
        return False

    def case(self, seed: int, number: int) -> Case:
        draw = random.Random(seed * 1_000_003 + number)
        kind = self.kinds[number % len(self.kinds)]
        example = self.examples[kind]
        meta = copy.deepcopy(example.meta)
        arrays = {name: {"held": np.array(array)} for name, array in example.arrays.items()}
        for _ in range(draw.choice((1, 1, 2, 3))):
            if arrays and draw.random() < 0.5:
                change_array(arrays, self.values, draw)
            else:
                change_json(meta, draw)
        return {"kind": kind, "meta": meta, "arrays": arrays}

    def run(self, case: Case) -> str | None:
        builder = Builder(None, guarded=False)
        arrays = {
            name: builder.build(node) if "held" in node else decode_array(node) for name, node in case["arrays"].items()
        }
        handle, path = tempfile.mkstemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.close(handle)
        try:
            try:
                container.write_file(path, case["kind"], case["meta"], arrays)
            except (TypeError, ValueError, RecursionError):
                return REFUSED  # no such file
            try:
                model = registry.load(path, **self.options)
            except Exception as error:
                return (
                    None if isinstance(error, ValueError) and str(error) else f"load: {type(error).__name__}: {error}"
                )
        finally:
            Path(path).unlink()
        return self._use(case["kind"], model)

    def _use(self, kind: str, model: Any) -> str | None:
        for name, (args, kwargs), _ in self.examples[kind].uses[:4]:
            try:
                getattr(model, name)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
            except (MemoryError, RecursionError) as error:
                return f"use: {type(error).__name__}: {error}"
            except Exception as error:
                return (
                    REFUSED if isinstance(error, (ValueError, TypeError)) else f"use: {type(error).__name__}: {error}"
                )
        return None

    def unreached(self) -> list[str]:
        """Return the kinds without a model; a few models need code of their user before they can be used again."""
        return list(self.missing)

    def subject(self, case: Case) -> str:
        return str(case["kind"])

    def smaller(self, case: Case) -> Iterator[Case]:
        example = self.examples[case["kind"]]
        for name, array in example.arrays.items():
            if name not in case["arrays"] or plain(case["arrays"][name]) != encode(np.asarray(array)):
                made = copy.deepcopy(case)
                made["arrays"][name] = {"held": np.array(array)}
                yield made
        if case["meta"] != example.meta:
            yield {**copy.deepcopy(case), "meta": copy.deepcopy(example.meta)}
            for key, value in example.meta.items():
                if case["meta"].get(key) != value:
                    made = copy.deepcopy(case)
                    made["meta"][key] = copy.deepcopy(value)
                    yield made

    def plain(self, case: Case) -> Case:
        return {**case, "arrays": plain(case["arrays"])}


def change_array(arrays: dict[str, Any], values: Mutator, draw: random.Random) -> None:
    """Change, remove or exchange one of the arrays of a file, in place."""
    name = draw.choice(sorted(arrays))
    if draw.random() < 0.1:
        del arrays[name]
    elif draw.random() < 0.1:
        arrays[name] = {"held": arrays[draw.choice(sorted(arrays))]["held"].copy()}
    else:
        changed = values._array(arrays[name]["held"].copy(), name, draw)
        if changed.dtype.kind in "biuf" and changed.dtype.byteorder != ">":
            arrays[name] = {"held": changed}


def change_json(meta: Any, draw: random.Random) -> None:
    """Change one value somewhere in what JSON can hold, in place."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            pairs = list(node.items())
        elif isinstance(node, list):
            pairs = list(enumerate(node))
        else:
            return
        for key, value in pairs:
            places.append((node, key))
            walk(value)

    walk(meta)
    if not places:
        return
    holder, key = draw.choice(places)
    value = holder[key]
    way = draw.random()
    if way < 0.1:
        del holder[key]
    elif way < 0.2:
        holder[key] = draw.choice((None, 0, "", [], {}, True, [[]] * 3, "x" * 5000))
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = draw.choice(
            (0, -1, 1, 2, 28, 30, 31, 10**6, 2**31, 2**63 - 1, -(2**63), 10**23, value + 1, value - 1, value * 2)
        )
    elif isinstance(value, float):
        holder[key] = draw.choice([f for f in FLOATS if not isinstance(f, dict)])
    elif isinstance(value, str):
        holder[key] = draw.choice([t for t in TEXTS if isinstance(t, str)])
    elif isinstance(value, list) and value:
        holder[key] = draw.choice((value[:-1], value * 2, value[::-1], value * 1000 if len(value) < 10 else value[:1]))
    else:
        holder[key] = draw.choice((None, 1, -1, 1.5, "a", [1], {"a": 1}))
