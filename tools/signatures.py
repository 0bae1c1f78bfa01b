"""Lists the public signatures of the package with their defaults, one line each: defaults are claims.

    python tools/signatures.py            # compares with tests/signatures.txt, shows what changed
    python tools/signatures.py --write    # writes the file anew (make signatures)

Classes and functions of all modules' ``__all__``, and the methods of these classes that have defaults. What needs
PyTorch is left out, so that the list does not depend on what is installed.
"""

from __future__ import annotations

import argparse
import difflib
import enum
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "tests" / "signatures.txt"
OF_TORCH = ("mercer.nn",)


def modules() -> Iterator[Any]:
    """The package and its public modules."""
    import mercer

    yield mercer
    for found in pkgutil.walk_packages(mercer.__path__, "mercer."):
        private = any(part.startswith("_") for part in found.name.split("."))
        if not private and not found.name.startswith(OF_TORCH):
            yield importlib.import_module(found.name)


def public_things() -> dict[str, Any]:
    """Classes and functions under the shortest of their public names."""
    names: dict[int, str] = {}
    things: dict[str, Any] = {}
    for module in modules():
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or inspect.isroutine(thing)):
                continue
            full = f"{module.__name__}.{name}"
            if id(thing) in names and len(names[id(thing)]) <= len(full):
                continue
            things.pop(names.get(id(thing), ""), None)
            names[id(thing)], things[full] = full, thing
    return things


def shown(default: Any) -> str:
    """A default as text that is the same in every run."""
    if inspect.isclass(default) or inspect.isroutine(default):
        return f"{default.__module__}.{default.__qualname__}"
    if isinstance(default, enum.Enum):
        return str(default)
    if isinstance(default, functools.partial):
        return f"partial({shown(default.func)})"
    text = repr(default)
    if " at 0x" in text:
        return f"<{type(default).__name__}>"
    return text


def signature(thing: Any) -> str | None:
    """(a, b=1, *, c=None), without types; None where there is none."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    parts, starred = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if p.kind is p.VAR_POSITIONAL:
            starred = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(prefix + p.name + ("" if p.default is p.empty else f"={shown(p.default)}"))
    return f"({', '.join(parts)})"


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods that are ours and have defaults."""
    for name in sorted(dir(thing)):
        method = getattr(thing, name, None)
        if name.startswith("_") or not inspect.isroutine(method):
            continue
        if not str(getattr(method, "__module__", "")).startswith("mercer"):
            continue
        text = signature(method)
        if text is not None and "=" in text:
            yield name, method


def lines() -> list[str]:
    """All of them, sorted by name."""
    listed = {}
    for full, thing in public_things().items():
        text = signature(thing)
        if text is not None:
            listed[full] = full + text
        if inspect.isclass(thing):
            for name, method in methods(thing):
                listed[f"{full}.{name}"] = f"{full}.{name}{signature(method)}"
    return [listed[name] for name in sorted(listed)]


def changes() -> list[str]:
    """Lines that are new (+) or gone (-) against the file."""
    recorded = FILE.read_text().splitlines() if FILE.exists() else []
    difference = difflib.unified_diff(recorded, lines(), lineterm="", n=0)
    return [line for line in difference if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the file anew")
    changed = changes()
    print("\n".join(changed) or "no public signature changed")
    if parser.parse_args().write:
        FILE.write_text("\n".join(lines()) + "\n")
        return 0
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
