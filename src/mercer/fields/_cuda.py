"""Draws of binary units on a GPU by one kernel, with the random numbers of the compiled loops.

Where NVRTC is missing, `draw` returns None and the same numbers are computed by operations of torch.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mercer._gpu_random import RANDOM
from mercer._nvrtc import Kernel, KernelError

__all__ = ["draw"]

_THREADS = 256

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
