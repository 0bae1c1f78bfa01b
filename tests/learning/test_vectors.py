"""Vectors of solvers are zero, can be written to, and give their memory back."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.learning.vectors import zeros


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint16])
@pytest.mark.parametrize("size", [0, 1, 1000, 1_000_001])
def test_vectors_are_zero_and_writable(size, dtype):
    x = zeros(size, dtype)
    assert x.shape == (size,)
    assert x.dtype == dtype
    assert not x.any()
    x += dtype(1)
    assert x.sum() == size


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_vectors_take_memory_when_written_and_give_it_back():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    size = 64 << 20
    before = resident()
    x = zeros(size // 8)
    assert resident() - before < size // 4
    x += 1.0
    assert resident() - before > size // 2
    del x
    assert resident() - before < size // 4
