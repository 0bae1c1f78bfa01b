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
        instance = builder.build(call["self"])
        target = getattr(type(instance), part) if not is_property(call["entry"]) else None
        if target is None:
            return getattr(instance, part)
        arguments = [builder.build(node) for node in call["args"]]
        named = {key: builder.build(node) for key, node in call["kwargs"].items()}
        result = getattr(instance, part)(*arguments, **named)
        return instance if call.get("gives_self") else _item(result, call)
    arguments = [builder.build(node) for node in call["args"]]
    named = {key: builder.build(node) for key, node in call["kwargs"].items()}
    made = target(*arguments, **named)
    for step in call.get("then", ()):
        method = getattr(made, step["entry"].partition(".")[2])
        method(
            *[builder.build(node) for node in step["args"]], **{k: builder.build(n) for k, n in step["kwargs"].items()}
        )
    return _item(made, call)


def _item(result: Any, call: Node) -> Any:
    for index in call.get("item", ()):
        result = result[index]
    return result
