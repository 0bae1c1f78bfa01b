"""The counting of the Hamming kernel on the CPU: its functions are compiled by the C++ compiler, lane after lane.

Threads, shared memory and the sum over lanes are not tried here.
"""

from __future__ import annotations

import ctypes

import numpy as np

from mercer.retrieval._cuda_hamming import Layout, source
from reference.compiled import library

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


def distances_by_lanes(layout: Layout, queries: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Distances of all pairs."""
    text = source(layout)
    distance = library(_HEAD + text[: text.index('extern "C" __global__')] + _MAIN).distance
    distance.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return np.array([[distance(c.ctypes.data, q.ctypes.data) for c in codes] for q in queries])
