"""Layers of networks with structured matrices, for PyTorch (``pip install mercer[torch]``)."""

from __future__ import annotations

from typing import Any

__all__ = ["CirculantLinear"]


def __getattr__(name: str) -> Any:
    """The layers, which need torch, when they are asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'mercer.nn' has no attribute {name!r}")
    try:
        from mercer.nn import circulant
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "mercer.nn needs PyTorch, which is not installed: pip install mercer[torch]", name="torch"
        ) from error
    return getattr(circulant, name)
