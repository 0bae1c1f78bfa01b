"""What every kernel is tested on: `Case` says how to make objects, and what the kernel is by its definition.

Each module of this package holds a list ``CASES``; `all_cases` gathers them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.kernels import Kernel


@dataclass(frozen=True)
class Case:
    """One kernel and what it is to be compared with."""

    name: str
    kernel: Kernel
    objects: Callable[[np.random.Generator, int], Any]
    """Random objects: (generator, how many) to a collection; small ones, also odd ones (empty, equal, of all sizes)."""
    reference: Callable[[Any, Any], float] | None = None
    """k(x, z) by its definition, slow and obviously right; None only for wrappers that have tests of their own."""
    invariances: dict[str, Callable[[np.random.Generator, Any], Any]] = field(default_factory=dict)
    """Changes of one object that must not change its values with others: name to (generator, object) to object."""
    rtol: float = 1e-9
    """Relative tolerance of comparisons with the reference and the features."""


def all_cases() -> list[Case]:
    """The cases of all modules of this package."""
    found: list[Case] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        found.extend(importlib.import_module(f"{__name__}.{module}").CASES)
    names = [case.name for case in found]
    assert len(set(names)) == len(names), "names of cases must differ"
    return found
