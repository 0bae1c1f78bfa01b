"""The entry points of the compiled core, found by walking the module, and calls of them by name."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from fuzz.values import Builder, Node
from mercer import _core

CONSTRUCTOR = "__init__"
_SPECIAL = (CONSTRUCTOR, "__len__", "__call__", "__getitem__", "__getstate__", "__setstate__", "__iter__", "__next__")


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Return the core and its submodules, each with what comes before the names of its entry points."""
    yield "", _core
    for name, value in list(vars(_core).items()):
        if isinstance(value, ModuleType):
            yield f"{name}.", value


def entry_points() -> list[str]:
    """Return all functions, constructors, methods and properties: ``linear.scores``, ``linear.Rows.n_rows``, …"""
    names = []
    for prefix, module in modules():
        for name, value in vars(module).items():
            if name.startswith("__") or isinstance(value, str | ModuleType):
                continue
            if isinstance(value, type):
                own = vars(value)
                names += [
                    f"{prefix}{name}.{part}"
                    for part, member in own.items()
                    if (part in _SPECIAL or not part.startswith("_")) and type(member).__name__ != "wrapper_descriptor"
                ]
            else:
                names.append(prefix + name)
    return sorted(names)


def located(entry: str) -> tuple[Any, str]:
    """Return the function or the class of an entry point, and the name of the member ("" for a function)."""
    pieces = entry.split(".")
    found: Any = getattr(_core, pieces.pop(0))
    if isinstance(found, ModuleType):
        found = getattr(found, pieces.pop(0))
    return found, pieces[0] if pieces else ""


def is_property(entry: str) -> bool:
    """Whether an entry point is read, not called."""
    owner, part = located(entry)
    return bool(part) and not callable(vars(owner)[part])


def call_entry(call: Node, builder: Builder) -> Any:
    """Run a recorded call: its object is made first, and earlier calls of the object's methods are repeated.

    A call has ``entry``, ``args`` and ``kwargs``; that of a method also ``self``. ``then`` are calls that make it
    ready, and ``item`` takes part of a result.
    """
    target, part = located(call["entry"])
    if part and part != CONSTRUCTOR:
        target = getattr(builder.build(call["self"]), part)
        if is_property(call["entry"]):
            return target
    result = _item(target(*_arguments(call, builder), **_named(call, builder)), call)
    for step in call.get("then", ()):
        getattr(result, step["entry"].rpartition(".")[2])(*_arguments(step, builder), **_named(step, builder))
    return result


def _arguments(call: Node, builder: Builder) -> list[Any]:
    return [builder.build(node) for node in call["args"]]


def _named(call: Node, builder: Builder) -> dict[str, Any]:
    return {key: builder.build(node) for key, node in call["kwargs"].items()}


def _item(result: Any, call: Node) -> Any:
    for index in call.get("item", ()):
        result = result[index]
    return result
