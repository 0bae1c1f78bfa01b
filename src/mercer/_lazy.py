"""Packages whose names are imported when they are first used, so that importing the package itself is cheap.

    if TYPE_CHECKING:
        from mercer.tagging.tagger import Tagger

    __all__ = ["Tagger"]
    __getattr__, __dir__ = on_demand(__name__)

The imports under ``if TYPE_CHECKING`` are what type checkers and editors see. They are also the table of `on_demand`,
which reads them in the source of the package, so every name stands there once. ``mercer.tagging.Tagger`` then imports
``mercer.tagging.tagger`` and nothing else of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["on_demand"]


def on_demand(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package from its imports under ``if TYPE_CHECKING``."""

    @cache
    def table() -> dict[str, tuple[str, str]]:
        return _imports(package)

    def get(name: str) -> Any:
        if name.startswith("__") or name not in table():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        source, original = table()[name]
        if source == package:
            value: Any = import_module(f"{package}.{original}")
        else:
            module = import_module(source)
            value = getattr(module, original) if hasattr(module, original) else import_module(f"{source}.{original}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *table()})

    return get, names


def _imports(package: str) -> dict[str, tuple[str, str]]:
    """Where each name comes from: (module, its name there)."""
    import ast
    import inspect

    imported = {}
    for block in ast.parse(inspect.getsource(sys.modules[package])).body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if not isinstance(line, ast.ImportFrom) or line.module is None:
                    raise ImportError(f"{package}: only imports of names may stand under TYPE_CHECKING")
                imported.update({alias.asname or alias.name: (line.module, alias.name) for alias in line.names})
    return imported
