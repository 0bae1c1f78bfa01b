"""Layers for PyTorch (``pip install mercer[torch]``): structured outputs and structured matrices.

:class:`ChainCRF` and :class:`SemiMarkovCRF` are conditional random fields on top of a network. :class:`StructuredLoss`
does the same for any structure of the library. :class:`CRF` has the interface of pytorch-crf. :class:`WindowNetwork`
computes emissions of tokens. :class:`CirculantLinear` is a linear layer with a circulant matrix.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["CRF", "ChainCRF", "CirculantLinear", "SemiMarkovCRF", "StructuredLoss", "WindowNetwork"]

_MODULES = {
    "CRF": "chain",
    "ChainCRF": "chain",
    "CirculantLinear": "circulant",
    "SemiMarkovCRF": "segments",
    "StructuredLoss": "structured",
    "WindowNetwork": "window",
}


def __getattr__(name: str) -> Any:
    """Import the layers, which need torch, on first access."""
    if name not in _MODULES:
        raise AttributeError(f"module 'mercer.nn' has no attribute {name!r}")
    try:
        module = import_module(f"mercer.nn.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "mercer.nn needs PyTorch, which is not installed: pip install mercer[torch]", name="torch"
        ) from error
    return getattr(module, name)
