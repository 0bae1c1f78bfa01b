"""Without PyTorch the error names what to install."""

from __future__ import annotations

import sys

import pytest


def test_a_missing_torch_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    import mercer.nn

    monkeypatch.delitem(sys.modules, "mercer.nn.circulant", raising=False)
    monkeypatch.delattr(mercer.nn, "circulant", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r"pip install mercer\[torch\]"):
        _ = mercer.nn.CirculantLinear
    with pytest.raises(AttributeError, match="no attribute 'Dense'"):
        _ = mercer.nn.Dense
