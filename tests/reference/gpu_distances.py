"""The counting of the Hamming kernel on the CPU: its functions are compiled by the C++ compiler, lane after lane.

Threads, shared memory and the sum over lanes are not tried here.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from mercer.retrieval._cuda_hamming import Layout, source

_HEAD = r"""
#define __device__
#define __forceinline__ inline
#define __popc __builtin_popcount
struct uint4 { unsigned x, y, z, w; };
"""

_MAIN = """
extern "C" int distance(const unsigned char* a, const unsigned char* b) {
  int total = 0;
  for (int lane = 0; lane < LANES; ++lane)
    total += part(reinterpret_cast<const Unit*>(a) + lane, LANES, reinterpret_cast<const Unit*>(b), lane);
  return total;
}
"""


def distances_by_lanes(layout: Layout, queries: np.ndarray, codes: np.ndarray, folder: Path) -> np.ndarray:
    """Distances of all pairs."""
    file, text = folder / "lanes.cpp", source(layout)
    file.write_text(_HEAD + text[: text.index('extern "C" __global__')] + _MAIN)
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", "-o", str(file) + ".so", str(file)], check=True)
    distance = ctypes.CDLL(str(file) + ".so").distance
    distance.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return np.array([[distance(c.ctypes.data, q.ctypes.data) for c in codes] for q in queries])
