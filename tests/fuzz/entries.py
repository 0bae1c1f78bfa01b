"""The entry points of the compiled core, found by walking the module, and calls of them by name."""

from __future__ import annotations

from typing import Any

from fuzz.values import Builder, Node
from mercer import _core

CONSTRUCTOR = "__init__"
_SPECIAL = (CONSTRUCTOR, "__len__", "__call__", "__getitem__", "__getstate__", "__setstate__", "__iter__", "__next__")


def entry_points() -> list[str]:
    """Return all functions, constructors, methods and properties of the core: ``scores``, ``Rows.n_rows``, …"""
    names = []
    for name, value in vars(_core).items():
        if name.startswith("__") or isinstance(value, str):
            continue
        if isinstance(value, type):
            own = vars(value)
            names += [
                f"{name}.{part}"
                for part, member in own.items()
                if (part in _SPECIAL or not part.startswith("_")) and type(member).__name__ != "wrapper_descriptor"
            ]
        else:
            names.append(name)
    return sorted(names)


def is_property(entry: str) -> bool:
    """Whether an entry point is read, not called."""
    owner, _, part = entry.partition(".")
    return bool(part) and not callable(vars(getattr(_core, owner))[part])


def call_entry(call: Node, builder: Builder) -> Any:
    """Run a recorded call: its object is made first, and earlier calls of the object's methods are repeated.

    A call has ``entry``, ``args`` and ``kwargs``; that of a method also ``self``. ``then`` are calls that make it
    ready, and ``item`` takes part of a result.
    """
    owner, _, part = call["entry"].partition(".")
    if not part or part == CONSTRUCTOR:
        target = getattr(_core, owner)
    else:
        target = getattr(builder.build(call["self"]), part)
        if is_property(call["entry"]):
            return target
    result = _item(target(*_arguments(call, builder), **_named(call, builder)), call)
    for step in call.get("then", ()):
        getattr(result, step["entry"].partition(".")[2])(*_arguments(step, builder), **_named(step, builder))
    return result


def _arguments(call: Node, builder: Builder) -> list[Any]:
    return [builder.build(node) for node in call["args"]]


def _named(call: Node, builder: Builder) -> dict[str, Any]:
    return {key: builder.build(node) for key, node in call["kwargs"].items()}


def _item(result: Any, call: Node) -> Any:
    for index in call.get("item", ()):
        result = result[index]
    return result
