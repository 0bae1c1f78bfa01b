"""Mercer: learning with structure.

Inputs are strings, trees, graphs or point clouds. Outputs are tag sequences, segmentations or labelled graphs. Every
model combines a feature map, an output structure, a loss and a solver.

Importing the package is cheap. Its modules (``mercer.tagging``, ``mercer.kernels``, …) and its estimators
(``mercer.Tagger`` is ``mercer.tagging.Tagger``) are imported when they are first used.
"""

from mercer import _command

_command.guard()

import importlib  # noqa: E402
import pkgutil  # noqa: E402
from typing import Any  # noqa: E402

from mercer._state.registry import MODELS, load, save  # noqa: E402
from mercer._versions import show_versions  # noqa: E402
from mercer.exceptions import ModelFileError  # noqa: E402

__version__ = "0.1.0"

__all__ = ["ModelFileError", "__version__", "load", "save", "show_versions"]

_MODULES = frozenset(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"mercer.{name}")
    if name in MODELS:
        module, _, attribute = MODELS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *MODELS})
