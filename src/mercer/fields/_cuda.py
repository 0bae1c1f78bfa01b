"""Draws of binary units on a GPU by one kernel, with the random numbers of the compiled loops.

Where NVRTC is missing, `draw` returns None and the same numbers are computed by operations of torch.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mercer.retrieval._cuda import Kernel, KernelError

__all__ = ["RANDOM", "draw"]

_THREADS = 256

RANDOM = """
typedef unsigned long long u64;
typedef unsigned int u32;

__device__ u64 mixed(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The number of a key, row and column, in (0, 1).
__device__ float uniform(u64 key, long long row, long long column) {
  const u64 of_row = mixed(key ^ mixed((u64)row));
  u32 x = (u32)column ^ (u32)of_row;
  x ^= x >> 16; x *= 0x21f0aaadu; x ^= x >> 15; x *= 0xd35a2d97u; x ^= x >> 15;
  x += (u32)(of_row >> 32);
  x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; x ^= x >> 16;
  return (float)(x >> 9) * 1.1920928955078125e-07f + 5.9604644775390625e-08f;
}

// 1 with the log odds f, of a number in (0, 1).
__device__ float drawn(float u, float f) { return u * (1.0f + expf(-f)) < 1.0f ? 1.0f : 0.0f; }
"""
"""The random numbers of the compiled loops, for kernels."""

_SOURCE = (
    RANDOM
    + """
struct Arguments { const float* fields; float* out; long long n, m; u64 key; };

extern "C" __global__ void draw_units(const Arguments a) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= a.n * a.m) return;
  a.out[at] = drawn(uniform(a.key, at / a.m, at % a.m), a.fields[at]);
}
"""
)


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("fields", ctypes.c_void_p), ("out", ctypes.c_void_p), ("n", ctypes.c_longlong), ("m", ctypes.c_longlong),
        ("key", ctypes.c_ulonglong),
    )  # fmt: skip


@functools.lru_cache(maxsize=8)
def _kernel(device: int) -> Kernel | None:
    try:
        return Kernel(_SOURCE, "draw_units", device)
    except KernelError:
        return None


def draw(fields: Any, key: int) -> Any:
    """Return units of float32 that are 1 with the log odds ``fields``; None where there is no kernel.

    Parameters
    ----------
    fields : CUDA tensor of float32 of shape (n, m), contiguous
    key : int
        Of 64 bits.
    """
    import torch

    kernel = _kernel(fields.device.index)
    if kernel is None:
        return None
    out = torch.empty_like(fields)
    n, m = fields.shape
    arguments = _Arguments(fields.data_ptr(), out.data_ptr(), n, m, key)
    kernel.start((-(-n * m // _THREADS), 1), _THREADS, arguments)
    return out
