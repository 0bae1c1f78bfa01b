"""Draws of binary units on a GPU by one kernel, with the random numbers of the compiled loops.

Where NVRTC is missing, `draw` returns None and the same numbers are computed by operations of torch.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mercer.retrieval._cuda import Kernel, KernelError

__all__ = ["draw"]

_THREADS = 256

_SOURCE = """
typedef unsigned long long u64;
typedef unsigned int u32;

struct Arguments { const float* fields; float* out; long long n, m; u64 key; };

__device__ u64 mixed(u64 z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

extern "C" __global__ void draw_units(const Arguments a) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= a.n * a.m) return;
  const u64 key = mixed(a.key ^ mixed((u64)(at / a.m)));
  u32 x = (u32)(at % a.m) ^ (u32)key;
  x ^= x >> 16; x *= 0x21f0aaadu; x ^= x >> 15; x *= 0xd35a2d97u; x ^= x >> 15;
  x += (u32)(key >> 32);
  x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; x ^= x >> 16;
  const float u = (float)(x >> 9) * 1.1920928955078125e-07f + 5.9604644775390625e-08f;
  a.out[at] = u * (1.0f + expf(-a.fields[at])) < 1.0f ? 1.0f : 0.0f;
}
"""


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
