"""Records calls of the compiled core while tests and examples run, and keeps a few small ones of each entry point.

    PYTHONPATH=tests python -m fuzz.record tests/core tests/kernels/test_graphs.py src/mercer/maps

adds calls of these tests to ``seeds.jsonl``; seeds that no longer run are dropped. Needed when an entry point is new or
takes other arguments: ``tests/fuzz/test_fuzz.py`` says which ones have no seed.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from fuzz.entries import CONSTRUCTOR, call_entry, entry_points, is_property, modules
from fuzz.values import Builder, Node, NotRecordable, encode
from mercer import _core

SEEDS = Path(__file__).with_name("seeds.jsonl")
MOST_SEEDS = 4  # of an entry point, all of different types; more where these leave out arguments that may be None
MOST_BYTES = 8000  # of the JSON of one call
MOST_STEPS = 3  # calls of methods that make an object ready for another


class Recorder:
    """Wraps everything in the core; `seeds` holds the smallest calls by entry point and types of arguments."""

    def __init__(self) -> None:
        self.seeds: dict[str, dict[str, tuple[int, str]]] = {}
        self.with_given: dict[str, dict[str, tuple[int, str]]] = {}
        self.made: dict[int, Node] = {}
        self.alive: list[Any] = []

    def install(self) -> None:
        """Put wrappers in the place of functions, methods and classes."""
        entries = entry_points()
        for prefix, module in modules():
            for name, value in list(vars(module).items()):
                if name.startswith("__") or isinstance(value, str | ModuleType):
                    continue
                if isinstance(value, type):
                    members = [entry for entry in entries if entry.startswith(f"{prefix}{name}.")]
                    for entry in members:
                        part = entry.rpartition(".")[2]
                        if part != CONSTRUCTOR and not is_property(entry):
                            setattr(value, part, self._method(entry, getattr(value, part)))
                        elif part != CONSTRUCTOR:
                            self._note_property(entry)
                    setattr(module, name, self._proxy(prefix + name, value))
                else:
                    setattr(module, name, self._function(prefix + name, value))

    def _note_property(self, entry: str) -> None:
        self.seeds.setdefault(entry, {})

    def forget(self) -> None:
        """Let go of objects, after a test."""
        self.made.clear()
        self.alive.clear()

    def _function(self, entry: str, function: Any) -> Any:
        @functools.wraps(function, updated=())
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            call = self._encoded(entry, args, kwargs)
            result = function(*args, **kwargs)
            self._keep(entry, call)
            self._follow(result, call)
            return result

        return wrapper

    def _proxy(self, name: str, cls: type) -> Any:
        recorder = self

        class Meta(type):
            def __call__(proxy, *args: Any, **kwargs: Any) -> Any:
                call = recorder._encoded(f"{name}.{CONSTRUCTOR}", args, kwargs)
                result = cls(*args, **kwargs)
                recorder._keep(f"{name}.{CONSTRUCTOR}", call)
                recorder._follow(result, call)
                return result

            def __instancecheck__(proxy, instance: Any) -> bool:
                return isinstance(instance, cls)

            def __getattr__(proxy, attribute: str) -> Any:
                return getattr(cls, attribute)

        return Meta(cls.__name__, (), {})

    def _method(self, entry: str, function: Any) -> Any:
        @functools.wraps(function, updated=())
        def wrapper(instance: Any, *args: Any, **kwargs: Any) -> Any:
            call = self._encoded(entry, args, kwargs)
            recipe = self.made.get(id(instance))
            if call is not None and recipe is not None:
                call["self"] = {"made": {**recipe, "then": list(recipe.get("then", ()))}}
            else:
                call = None
            result = function(instance, *args, **kwargs)
            self._keep(entry, call)
            self._follow(result, call)
            if call is not None and recipe is not None and len(recipe.setdefault("then", [])) < MOST_STEPS:
                step = {key: call[key] for key in ("entry", "args", "kwargs")}
                if step not in recipe["then"]:
                    recipe["then"].append(step)
            return result

        return wrapper

    def _encoded(self, entry: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node | None:
        if _size(args) + _size(tuple(kwargs.values())) > 4 * MOST_BYTES:
            return None
        try:
            return {
                "entry": entry,
                "args": [encode(value, self.made) for value in args],
                "kwargs": {key: encode(value, self.made) for key, value in kwargs.items()},
            }
        except (NotRecordable, RecursionError):
            return None

    def _keep(self, entry: str, call: Node | None) -> None:
        if call is None:
            return
        text = json.dumps(call)
        if len(text) > MOST_BYTES:
            return
        with_given = self.with_given.setdefault(entry, {})
        for name in given(call):
            if name not in with_given or with_given[name][0] > len(text):
                with_given[name] = (len(text), text)
        seeds = self.seeds.setdefault(entry, {})
        kind = _types(call["args"]) + _types(list(call["kwargs"].items()))
        if kind in seeds and seeds[kind][0] <= len(text):
            return
        if kind not in seeds and len(seeds) >= MOST_SEEDS:
            largest = max(seeds, key=lambda key: seeds[key][0])
            if seeds[largest][0] <= len(text):
                return
            del seeds[largest]
        seeds[kind] = (len(text), text)

    def _follow(self, result: Any, call: Node | None) -> None:
        if call is None:
            return
        items = [((), result)] if not isinstance(result, (tuple, list)) else [((i,), r) for i, r in enumerate(result)]
        for path, value in items[:8]:
            if type(value).__module__.startswith(_core.__name__) and id(value) not in self.made:
                self.alive.append(value)
                self.made[id(value)] = {**call, "item": list(path)} if path else dict(call)


def _size(values: Any) -> int:
    if isinstance(values, (list, tuple)):
        return len(values) + sum(_size(item) for item in values[:1000]) + 10**9 * (len(values) > 1000)
    return int(getattr(values, "nbytes", 0)) or (len(values) if isinstance(values, (str, bytes, dict)) else 1)


def _types(node: Node, depth: int = 0) -> str:
    if isinstance(node, (list, tuple)):
        return ",".join(_types(item, depth + 1) for item in node[:12])
    if not isinstance(node, dict):
        return f"'{node}'" if isinstance(node, str) else type(node).__name__
    (kind, content), *_ = node.items()
    if kind == "array":
        return f"{content[0]}{len(content[1])}{0 in content[1]}"
    return kind


def given(call: Node) -> set[str]:
    """Return the arguments of a call that are not None, and of those that made its object."""
    names = {str(at) for at, value in enumerate(call["args"]) if value is not None}
    names |= {key for key, value in call["kwargs"].items() if value is not None}
    made = call.get("self", {}).get("made")
    return names | {f"self.{name}" for name in given(made)} if made else names


def load_seeds() -> dict[str, list[Node]]:
    """Return the recorded calls of each entry point; a property is read from the objects that others made."""
    seeds: dict[str, list[Node]] = {}
    if SEEDS.exists():
        for line in SEEDS.read_text().splitlines():
            call = json.loads(line)
            seeds.setdefault(call["entry"], []).append(call)
    for entry in entry_points():
        if is_property(entry) and entry not in seeds:
            seeds[entry] = [
                {"entry": entry, "args": [], "kwargs": {}, "self": {"made": call}}
                for call in seeds.get(f"{entry.rpartition('.')[0]}.{CONSTRUCTOR}", [])
            ]
    return seeds


def _runs(call: Node) -> bool:
    try:
        builder = Builder(call_entry, guarded=False)
        call_entry(call, builder)
    except Exception:
        return False
    return True


def write_seeds(found: dict[str, list[Node]]) -> None:
    """Replace the file of seeds by the smallest calls that run."""
    known = set(entry_points())
    lines = []
    for entry in sorted(known & set(found)):
        if is_property(entry):
            continue
        by_kind: dict[str, str] = {}
        with_given: dict[str, str] = {}
        for call in found[entry]:
            text = json.dumps(call)
            kind = _types(call["args"]) + _types(list(call["kwargs"].items()))
            wanted = [(by_kind, kind), *((with_given, name) for name in given(call))]
            wanted = [(best, key) for best, key in wanted if key not in best or len(text) < len(best[key])]
            if len(text) <= MOST_BYTES and wanted and _runs(call):
                for best, key in wanted:
                    best[key] = text
        kept = sorted(by_kind.values(), key=lambda text: (len(text), text))[:MOST_SEEDS]
        reached = set().union(*(given(json.loads(text)) for text in kept))
        for name in sorted(with_given, key=lambda name: (-len(given(json.loads(with_given[name]))), name)):
            if name not in reached:
                kept.append(with_given[name])
                reached |= given(json.loads(with_given[name]))
        lines += kept
    SEEDS.write_text("".join(line + "\n" for line in lines))


def main(arguments: list[str]) -> int:
    """Run pytest under the recorder and merge what it saw with the seeds there are."""
    import pytest

    recorder = Recorder()
    originals = {
        (module, name): value
        for _, module in modules()
        for name, value in vars(module).items()
        if not name.startswith("__") and not isinstance(value, ModuleType)
    }
    methods = {
        (value, part): vars(value)[part]
        for value in originals.values()
        if isinstance(value, type)
        for part in list(vars(value))
        if not part.startswith("__") or part == "__len__"
    }
    recorder.install()

    class Plugin:
        def pytest_runtest_teardown(self) -> None:
            recorder.forget()

    pytest.main(["-q", "-x", "--maxfail=1000", "-p", "no:cacheprovider", *arguments], plugins=[Plugin()])
    for (module, name), value in originals.items():
        setattr(module, name, value)
    for (cls, part), method in methods.items():
        if callable(method):
            setattr(cls, part, method)
    old = load_seeds()
    for entry, calls in recorder.seeds.items():
        found = [*calls.values(), *recorder.with_given.get(entry, {}).values()]
        old.setdefault(entry, []).extend(json.loads(text) for text in dict.fromkeys(text for _, text in found))
    write_seeds(old)
    seeds = load_seeds()
    missing = [entry for entry in entry_points() if not seeds.get(entry)]
    print(f"{sum(map(len, seeds.values()))} seeds of {len(entry_points()) - len(missing)} entry points")
    print("without a seed:", ", ".join(missing) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
